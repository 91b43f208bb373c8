//===- lib/Runtime/Workload.cpp - Sizes, lengths and page tables *- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Runtime/Workload.h"
#include "../Random.h"
#include "kvbuffer/Runtime/Error.h"
#include "kvbuffer/Runtime/Npy.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

using namespace kvbuf::rt;

namespace {

/// Streams of random numbers, one for each thing that is drawn.
enum Stream : uint64_t {
  kLengthsQ = 100,
  kLengthsK,
  kLengthsCache,
  kTable,
  kTableV
};

/// An entry that no kernel may follow: as a page id it lies far outside of any
/// pool, yet id * page bytes stays below 2^63.
constexpr int32_t kPoisonId = 0x3FFFFFFF;

/// More sequences than this are a slip of the finger.
constexpr int64_t kMostSequences = int64_t(1) << 24;

int64_t sum(const std::vector<int64_t> &v) {
  return std::accumulate(v.begin(), v.end(), int64_t(0));
}
int64_t largest(const std::vector<int64_t> &v) {
  return v.empty() ? 0 : *std::max_element(v.begin(), v.end());
}

/// Uniform in [0, longest], with one sequence at the maximum, so that the
/// sizes mean what they say.
std::vector<int64_t> randomLengths(int64_t count, int64_t longest,
                                   uint64_t seed, uint64_t stream) {
  Random random(seed, stream);
  std::vector<int64_t> lengths(count);
  for (int64_t &n : lengths)
    n = random.below(longest + 1);
  if (count > 0)
    lengths[random.below(count)] = longest;
  return lengths;
}

bool hasTable(Layout layout) {
  return layout == Layout::Continuous || layout == Layout::Paged;
}

/// The size names that this problem has, `seq` and `cache` included.
std::vector<std::string> userSizeNames(const AttentionProblem &p) {
  std::vector<std::string> names = {"batch", "seq", "seq_q"};
  if (p.query == Layout::Ragged)
    names.push_back("total_q");
  if (!hasTable(p.cache))
    names.push_back("seq_k");
  if (p.cache == Layout::Ragged)
    names.push_back("total_k");
  if (hasTable(p.cache))
    names.insert(names.end(), {"cache", "num_blocks"});
  if (p.cache == Layout::Continuous)
    names.push_back("max_seq");
  if (p.cache == Layout::Paged)
    names.push_back("pages_per_seq");
  return names;
}

template <typename T> std::vector<int64_t> readAs(const std::string &data) {
  std::vector<T> raw(data.size() / sizeof(T));
  std::memcpy(raw.data(), data.data(), raw.size() * sizeof(T));
  return {raw.begin(), raw.end()};
}

/// Lengths from prefix sums; the sums are validated.
std::vector<int64_t> lengthsOf(const std::vector<int64_t> &offsets,
                               const std::string &name) {
  std::vector<int64_t> lengths;
  for (size_t b = 0; b + 1 < offsets.size(); ++b) {
    if (offsets[b] < 0 || offsets[b + 1] < offsets[b])
      throw Error("tensor '" + name + "': offsets " +
                  std::to_string(offsets[b]) + ", " +
                  std::to_string(offsets[b + 1]) + " at " + std::to_string(b) +
                  "; expected prefix sums, which never fall");
    lengths.push_back(offsets[b + 1] - offsets[b]);
  }
  return lengths;
}

} // namespace

/// The manifest of an attention, if that appends nothing.
static const Manifest &ofAttention(const Manifest &manifest) {
  if (static_cast<const AttentionProblem &>(*manifest.problem()).appends)
    throw Error("the artifact '" + manifest.name +
                "' appends new tokens before it attends; it can only be "
                "launched through the C or Python API");
  return manifest;
}

Workload::Workload(const Manifest &manifest, const WorkloadOptions &options)
    : Problem(ofAttention(manifest), options) {
  applyFixedSizes();
  applyUserSizes();
  chooseLengths();
  if (problem().packed && problem().packed->tail)
    throw Error("rows have tails behind those of their page, which this tool "
                "draws none of; expected rows that lie together");
  completeSizes();
  allocate();
  locate();
  refuseIdleOptions();
  fillIndices();
  validateIndices();
  fillData();
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

std::vector<int64_t> Workload::readFile(const std::string &role) const {
  std::string name = problem().tensor(role);
  const std::string &data = fileData.at(name);
  return spec.findTensor(name)->dtype == DType::I64 ? readAs<int64_t>(data)
                                                    : readAs<int32_t>(data);
}

void Workload::applyFixedSizes() {
  // Batch and rows may be part of the kernel's types.
  if (problem().query != Layout::Dense)
    return;
  const TensorSpec *q = spec.findTensor(problem().tensor("q"));
  if (!q || q->shape.size() != 4)
    return;
  const char *names[] = {"batch", "seq_q"};
  for (int dim = 0; dim < 2; ++dim)
    if (q->shape[dim].kind == SizeExpr::Kind::Constant)
      values[names[dim]] = fixed[names[dim]] = q->shape[dim].constant;
}

void Workload::applyUserSizes() {
  std::vector<std::string> names = userSizeNames(problem());
  for (const auto &[name, value] : options.sizes) {
    bool known = std::find(names.begin(), names.end(), name) != names.end() ||
                 spec.sizeNames().count(name) || spec.sizeDefaults.count(name);
    if (!known)
      throw Error("--size " + name + ": no such size; this kernel (query " +
                  nameOf(problem().query) + ", cache " +
                  nameOf(problem().cache) + ") has " +
                  quotedList(names, "and"));
    if (value < 0 || value > std::numeric_limits<int32_t>::max())
      throw Error("--size " + name + "=" + std::to_string(value) +
                  ": expected 0 to 2147483647");
    auto [it, inserted] = values.emplace(name, value);
    if (auto own = fixed.find(name); own != fixed.end() && own->second != value)
      throw Error("--size " + name + "=" + std::to_string(value) +
                  ": the kernel's types fix it at " +
                  std::to_string(own->second));
    if (!inserted && it->second != value)
      throw Error("--size " + name + "=" + std::to_string(value) +
                  " contradicts an input file, where it is " +
                  std::to_string(it->second));
  }
  if (auto seq = values.find("seq"); seq != values.end()) {
    if (auto own = fixed.find("seq_q");
        own != fixed.end() && own->second != seq->second)
      throw Error("--size seq=" + std::to_string(seq->second) +
                  ": the kernel's types fix seq_q at " +
                  std::to_string(own->second));
    setDefault("seq_q", seq->second);
    if (!hasTable(problem().cache))
      setDefault("seq_k", seq->second);
    values.erase("seq");
  }
}

int64_t Workload::setDefault(const char *name, int64_t value) {
  return values.emplace(name, value).first->second;
}

int64_t Workload::require(const char *name, int64_t usual, const char *what) {
  bool any = !options.sizes.empty() || !options.inputs.empty() ||
             options.lengthsQ || options.lengthsK || options.cacheLengths;
  if (any && !values.count(name))
    throw Error(std::string("missing --size ") + name + "=N: " + what);
  return setDefault(name, usual);
}

void Workload::chooseLengths() {
  const AttentionProblem &p = problem();
  auto reject = [](const std::optional<std::vector<int64_t>> &list,
                   const char *option, const std::string &why) {
    if (list)
      throw Error(std::string(option) + ": " + why);
  };
  if (p.query != Layout::Ragged)
    reject(options.lengthsQ, "--lengths-q",
           "the query is dense; give --size seq_q=N");
  if (p.cache != Layout::Ragged && !p.lengthsCountNew)
    reject(options.lengthsK, "--lengths-k",
           std::string("the cache is ") + nameOf(p.cache) + "; give " +
               (hasTable(p.cache) ? "--cache-lengths" : "--size seq_k=N"));
  if (!hasTable(p.cache))
    reject(options.cacheLengths, "--cache-lengths",
           std::string("the cache is ") + nameOf(p.cache) +
               ", where all keys are given; use --size seq_k=N" +
               (p.cache == Layout::Ragged ? " or --lengths-k" : ""));

  refuseLengthsTwice();
  int64_t batch = options.large ? 4 : 1;
  if (p.cache != Layout::Dense || p.query != Layout::Dense)
    batch = options.large ? 4 : 2;
  for (const auto *list :
       {&options.cacheLengths, &options.lengthsK, &options.lengthsQ})
    if (*list)
      batch = static_cast<int64_t>((*list)->size());
  batch = setDefault("batch", batch);
  if (batch > kMostSequences)
    throw Error("size batch is " + std::to_string(batch) +
                "; this tool takes at most " + std::to_string(kMostSequences));
  auto count = [&](const std::optional<std::vector<int64_t>> &list,
                   const char *option) {
    if (list && static_cast<int64_t>(list->size()) != batch)
      throw Error(std::string(option) + " has " + std::to_string(list->size()) +
                  " lengths; the batch is " + std::to_string(batch));
  };
  count(options.lengthsQ, "--lengths-q");
  count(options.lengthsK, "--lengths-k");
  count(options.cacheLengths, "--cache-lengths");

  chooseQueryLengths();
  chooseKeyLengths();
}

/// What says the same lengths twice says one of them in vain.
void Workload::refuseLengthsTwice() const {
  const AttentionProblem &p = problem();
  auto fileOf = [&](const char *role) {
    return "--input " + p.tensor(role) + " says the lengths";
  };
  refuse(options.lengthsQ && isGiven("q_offsets"), "--lengths-q",
         fileOf("q_offsets"));
  bool ragged = p.cache == Layout::Ragged;
  const char *role = ragged ? "k.offsets" : "k.lengths";
  refuse(options.lengthsK && isGiven(role), "--lengths-k", fileOf(role));
  refuse(options.cacheLengths && isGiven(role), "--cache-lengths",
         fileOf(role));
  refuse(options.cacheLengths && options.lengthsK, "--cache-lengths",
         "--lengths-k says the lengths, with the new tokens");
  // Random lengths are up to these.
  const char *size = ragged ? "seq_k" : "cache";
  bool known = options.lengthsK || options.cacheLengths || isGiven(role);
  refuse(p.cache != Layout::Dense && known && options.sizes.count(size),
         ragged ? "--size seq_k" : "--size cache",
         "the lengths of the sequences are given");
}

/// Options that this problem has no use for.
void Workload::refuseIdleOptions() const {
  const AttentionProblem &p = problem();
  std::string cache = std::string("the cache is ") + nameOf(p.cache);
  for (auto [given, option] : {std::pair(options.sharePages, "--share-pages"),
                               {options.separateTables, "--separate-tables"}})
    refuse(given && !k.table, option,
           cache + ", which has no table; it needs a paged or continuous one");
  refuse(options.separateTables && v.table == k.table, "--separate-tables",
         "K and V are one cache, with one table");
  auto nameOfFile = [&](const HostTensor *table) {
    return table && fromFile(table->name) ? table->name : std::string();
  };
  std::string ofK = nameOfFile(k.table), ofV = nameOfFile(v.table);
  refuse(options.separateTables && !ofV.empty(), "--separate-tables",
         "--input " + ofV + " says the pages");
  refuse(options.sharePages && !ofK.empty(), "--share-pages",
         "--input " + ofK + " says the pages");
  refuse(options.init != Init::Normal && fromFile(q->name) &&
             fromFile(k.data->name) && fromFile(v.data->name),
         "--init", "q, k and v come from files");
}

void Workload::chooseQueryLengths() {
  const AttentionProblem &p = problem();
  int64_t batch = values.at("batch");
  // New tokens on top of a cache are few beside it.
  int64_t usual = hasTable(p.cache) ? (options.large ? 1024 : 100)
                                    : (options.large ? 4096 : 300);
  if (p.query == Layout::Dense) {
    lenQ.assign(batch, require("seq_q", usual, "queries a sequence"));
    return;
  }
  if (isGiven("q_offsets"))
    lenQ = lengthsOf(readFile("q_offsets"), problem().tensor("q_offsets"));
  else if (options.lengthsQ)
    lenQ = *options.lengthsQ;
  else if (isGiven("q") || isGiven("q_offsets"))
    throw Error("ragged queries from a file need their offsets: give --input " +
                p.tensor("q_offsets") + "=FILE or --lengths-q");
  else
    lenQ = randomLengths(batch,
                         require("seq_q", usual,
                                 "queries of the longest sequence (or give "
                                 "--lengths-q)"),
                         options.seed, kLengthsQ);
  if (setDefault("seq_q", largest(lenQ)) < largest(lenQ))
    throw Error("size seq_q is " + std::to_string(values["seq_q"]) +
                ", but a sequence has " + std::to_string(largest(lenQ)) +
                " queries");
  if (auto least = values.find(kShortestQuery); least != values.end())
    for (int64_t rows : lenQ)
      if (rows > 0 && rows < least->second)
        throw Error("size " + least->first + " is " +
                    std::to_string(least->second) + ", but a sequence has " +
                    std::to_string(rows) + " queries");
}

void Workload::chooseKeyLengths() {
  const AttentionProblem &p = problem();
  int64_t batch = values.at("batch");
  int64_t usual = options.large ? 4096 : 300;
  switch (p.cache) {
  case Layout::Dense:
    lenK.assign(batch, require("seq_k", usual, "keys a sequence"));
    return;
  case Layout::Ragged: {
    if (isGiven("k.offsets"))
      lenK = lengthsOf(readFile("k.offsets"), problem().tensor("k.offsets"));
    else if (options.lengthsK)
      lenK = *options.lengthsK;
    else if (isGiven("k") || isGiven("v"))
      throw Error("ragged keys from a file need their offsets: give --input " +
                  p.tensor("k.offsets") + "=FILE or --lengths-k");
    else
      lenK = randomLengths(batch,
                           require("seq_k", usual,
                                   "keys of the longest sequence (or give "
                                   "--lengths-k)"),
                           options.seed, kLengthsK);
    return;
  }
  case Layout::Continuous:
  case Layout::Paged:
    break;
  }
  // Lengths that count the new tokens can be fewer than those.
  if (p.lengthsCountNew && (isGiven("k.lengths") || options.lengthsK)) {
    lenK = cacheLen =
        isGiven("k.lengths") ? readFile("k.lengths") : *options.lengthsK;
    for (int64_t b = 0; b < batch; ++b)
      if (lenK[b] < 0)
        throw Error("tensor '" + p.tensor("k.lengths") + "' holds " +
                    std::to_string(lenK[b]) + " at " + std::to_string(b) +
                    "; expected 0 or more");
    return;
  }
  if (isGiven("k.lengths"))
    cacheLen = readFile("k.lengths");
  else if (options.cacheLengths)
    cacheLen = *options.cacheLengths;
  else
    cacheLen = randomLengths(batch,
                             require("cache", usual,
                                     "cached tokens of the longest sequence "
                                     "before the new ones (or give "
                                     "--cache-lengths)"),
                             options.seed, kLengthsCache);
  lenK.resize(batch);
  for (int64_t b = 0; b < batch; ++b) {
    if (cacheLen[b] < 0)
      throw Error("tensor '" + p.tensor("k.lengths") + "' holds " +
                  std::to_string(cacheLen[b]) + " at " + std::to_string(b) +
                  "; expected 0 or more");
    lenK[b] = cacheLen[b] + lenQ[b];
  }
  // What the tensor holds.
  if (p.lengthsCountNew)
    cacheLen = lenK;
}

void Workload::completeSizes() {
  const AttentionProblem &p = problem();
  auto atLeast = [&](const char *name, int64_t fallback, int64_t least,
                     const std::string &what) {
    int64_t value = setDefault(name, fallback);
    if (value < least)
      throw Error(std::string("size ") + name + " is " + std::to_string(value) +
                  ", but " + what + " " + std::to_string(least));
  };
  if (p.query == Layout::Ragged)
    atLeast("total_q", sum(lenQ), sum(lenQ), "the queries number");
  if (p.cache == Layout::Ragged)
    atLeast("total_k", sum(lenK), sum(lenK), "the keys number");
  if (p.cache == Layout::Continuous) {
    // Rows and slots beyond those in use hold poison.
    atLeast("max_seq", largest(lenK) + 5, largest(lenK),
            "the longest sequence has keys:");
    int64_t least =
        options.sharePages ? std::min<int64_t>(batch(), 1) : batch();
    atLeast("num_blocks", batch() + 2, isGiven("k.table") ? 0 : least,
            "the sequences need slots:");
  }
  if (p.cache == Layout::Paged) {
    int64_t most = 0, total = 0;
    for (int64_t n : lenK) {
      int64_t pages = (n + p.pageSize - 1) / p.pageSize;
      most = std::max(most, pages);
      total += pages;
    }
    atLeast("pages_per_seq", most + 2, most, "the longest sequence has pages:");
    int64_t least = options.sharePages ? std::min<int64_t>(most, 1) : total;
    atLeast("num_blocks", total + 3, isGiven("k.table") ? 0 : least,
            options.sharePages
                ? "there are pages in use, at least"
                : "the sequences need (or use --share-pages) pages:");
  }
  values.erase("cache");
  if (p.cache == Layout::Ragged)
    values.erase("seq_k");
}

//===----------------------------------------------------------------------===//
// Offsets, lengths, tables
//===----------------------------------------------------------------------===//

void Workload::fillTable(HostTensor &table, uint64_t stream) {
  const AttentionProblem &p = problem();
  int64_t blocks = values.at("num_blocks");
  int64_t rowLength = p.cache == Layout::Paged ? values.at("pages_per_seq") : 1;
  for (int64_t i = 0; i < batch() * rowLength; ++i)
    table.setInteger(i, kPoisonId);

  std::vector<int32_t> order(blocks);
  std::iota(order.begin(), order.end(), 0);
  Random random(options.seed, stream);
  size_t taken = 0;
  auto take = [&]() -> int32_t {
    bool exhausted = taken == order.size();
    if (options.sharePages && taken > 0 && (exhausted || random.below(2)))
      return order[random.below(static_cast<int64_t>(taken))];
    std::swap(order[taken], order[taken + random.below(static_cast<int64_t>(
                                              order.size() - taken))]);
    return order[taken++];
  };
  for (int64_t b = 0; b < batch(); ++b) {
    int64_t used =
        p.cache == Layout::Paged ? (lenK[b] + p.pageSize - 1) / p.pageSize : 1;
    for (int64_t i = 0; i < used; ++i)
      table.setInteger(b * rowLength + i, take());
  }
}

void Workload::fillIndices() {
  auto prefix = [&](HostTensor *tensor, const std::vector<int64_t> &lengths) {
    if (!tensor || fromFile(tensor->name))
      return;
    int64_t at = 0;
    for (size_t b = 0; b <= lengths.size(); ++b) {
      if (at > std::numeric_limits<int32_t>::max())
        throw Error("tensor '" + tensor->name + "': " + std::to_string(at) +
                    " rows exceed 32-bit offsets");
      tensor->setInteger(static_cast<int64_t>(b), at);
      at += b < lengths.size() ? lengths[b] : 0;
    }
  };
  prefix(qOffsets, lenQ);
  for (CacheTensors *cache : {&k, &v}) {
    prefix(cache->offsets, lenK);
    if (cache->lengths && !fromFile(cache->lengths->name))
      for (int64_t b = 0; b < batch(); ++b)
        cache->lengths->setInteger(b, cacheLen[b]);
  }
  if (!k.table)
    return;
  if (!fromFile(k.table->name))
    fillTable(*k.table, kTable);
  if (v.table == k.table || fromFile(v.table->name))
    return;
  if (options.separateTables)
    fillTable(*v.table, kTableV);
  else
    std::memcpy(v.table->memory->data(), k.table->memory->data(),
                k.table->memory->size());
}

void Workload::validateIndices() const {
  const AttentionProblem &p = problem();
  auto checkOffsets = [&](const HostTensor *tensor, const char *total,
                          const std::vector<int64_t> &lengths) {
    if (!tensor)
      return;
    int64_t count = static_cast<int64_t>(lengths.size());
    for (int64_t b = 0; b < count; ++b)
      if (int64_t rows = tensor->integer(b + 1) - tensor->integer(b);
          rows != lengths[b])
        throw Error("tensor '" + tensor->name + "': sequence " +
                    std::to_string(b) + " has " + std::to_string(rows) +
                    " rows; expected " + std::to_string(lengths[b]));
    if (tensor->integer(0) < 0 || tensor->integer(count) > values.at(total))
      throw Error("tensor '" + tensor->name + "' ends at row " +
                  std::to_string(tensor->integer(count)) +
                  "; expected at most " + total + " = " +
                  std::to_string(values.at(total)));
  };
  checkOffsets(qOffsets, "total_q", lenQ);
  for (const CacheTensors *cache : {&k, &v}) {
    checkOffsets(cache->offsets, "total_k", lenK);
    if (!cache->table)
      continue;
    bool paged = p.cache == Layout::Paged;
    int64_t blocks = values.at("num_blocks");
    int64_t rowLength = paged ? values.at("pages_per_seq") : 1;
    for (int64_t b = 0; b < batch(); ++b) {
      if (cache->lengths->integer(b) != cacheLen[b])
        throw Error("tensors '" + p.tensor("k.lengths") + "' and '" +
                    p.tensor("v.lengths") + "' differ at " + std::to_string(b));
      int64_t used = paged ? (lenK[b] + p.pageSize - 1) / p.pageSize : 1;
      for (int64_t i = 0; i < used; ++i) {
        int64_t id = cache->table->integer(b * rowLength + i);
        if (id < 0 || id >= blocks)
          throw Error("tensor '" + cache->table->name + "': sequence " +
                      std::to_string(b) + " uses " + (paged ? "page" : "slot") +
                      " id " + std::to_string(id) + " at position " +
                      std::to_string(i) + "; expected 0 to " +
                      std::to_string(blocks - 1));
      }
    }
  }
}

//===----------------------------------------------------------------------===//
// What the problem amounts to
//===----------------------------------------------------------------------===//

std::pair<int64_t, int64_t> Workload::visible(int64_t b, int64_t i) const {
  const AttentionProblem &p = problem();
  // The last query sees the last key: masks are aligned at the bottom right.
  int64_t diagonal = i + lenK[b] - lenQ[b];
  int64_t first = 0, last = lenK[b];
  if (p.causal)
    last = std::min(last, diagonal + 1);
  if (p.windowRight >= 0)
    last = std::min(last, diagonal + p.windowRight + 1);
  if (p.windowLeft >= 0)
    first = std::max(first, diagonal - p.windowLeft);
  return {first, std::max(first, last)};
}

double Workload::visiblePairs() const {
  double pairs = 0;
  for (int64_t b = 0; b < batch(); ++b)
    for (int64_t i = 0; i < lenQ[b]; ++i) {
      auto [first, last] = visible(b, i);
      pairs += static_cast<double>(last - first);
    }
  return pairs;
}

double Workload::minimalBytes() const {
  const AttentionProblem &p = problem();
  double rowBytes = static_cast<double>(p.headSize * sizeOf(p.dtype) +
                                        p.valueHeadSize * sizeOf(p.outDtype)),
         bytes = 0;
  // Rows of K and V of a head, with the scales of their tokens.
  double cacheBytes = 0;
  for (const CacheTensors *cache : {&k, &v}) {
    // Rows of both are read once.
    if (p.latent && cache == &v)
      continue;
    int64_t size = cache == &k ? p.headSize : p.valueHeadSize;
    cacheBytes += p.packed
                      ? static_cast<double>(p.packed->bytes)
                      : static_cast<double>(size * sizeOf(cache->data->dtype));
    if (cache->scales && *cache->quantized->granularity > 0)
      cacheBytes += static_cast<double>(cache->scales->shape.back() *
                                        sizeOf(cache->scales->dtype));
  }
  for (int64_t b = 0; b < batch(); ++b) {
    bytes +=
        static_cast<double>(lenQ[b] * p.heads) * (rowBytes + (p.lse ? 4 : 0));
    if (lenQ[b] == 0)
      continue;
    // Both ends of the visible range rise with the query.
    int64_t first = visible(b, 0).first, last = visible(b, lenQ[b] - 1).second;
    bytes +=
        static_cast<double>(std::max<int64_t>(last - first, 0) * p.kvHeads) *
        cacheBytes;
  }
  return bytes;
}

std::string Workload::describe() const {
  const AttentionProblem &p = problem();
  std::string text;
  for (const char *name : {"batch", "seq_q", "seq_k", "total_q", "total_k",
                           "num_blocks", "max_seq", "pages_per_seq"})
    if (auto it = values.find(name); it != values.end())
      text += (text.empty() ? "" : " ") + it->first + "=" +
              std::to_string(it->second);
  auto range = [&](const char *what, const std::vector<int64_t> &lengths) {
    if (!lengths.empty())
      text +=
          std::string(" ") + what + "=" +
          std::to_string(*std::min_element(lengths.begin(), lengths.end())) +
          ".." + std::to_string(largest(lengths));
  };
  if (p.query == Layout::Ragged)
    range("queries", lenQ);
  if (p.cache != Layout::Dense)
    range("keys", lenK);
  return text;
}
