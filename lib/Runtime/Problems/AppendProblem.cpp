//===- lib/Runtime/AppendProblem.cpp - Appends with data --------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Runtime/AppendProblem.h"
#include "../Float8.h"
#include "../Random.h"
#include "kvbuffer/Runtime/Check.h"
#include "kvbuffer/Runtime/Error.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

using namespace kvbuf::rt;

namespace {

enum Stream : uint64_t {
  kKeys = 1,
  kValues,
  kAngles,
  kScales,
  kFresh = 100,
  kBegin,
  kTable
};

/// An entry that no kernel may follow.
constexpr int32_t kPoisonId = 0x3FFFFFFF;

/// What one rounding of f32 does.
constexpr double kRounding = 0x1p-24;

std::vector<int64_t> drawLengths(int64_t count, int64_t longest, uint64_t seed,
                                 uint64_t stream) {
  Random random(seed, stream);
  std::vector<int64_t> lengths(static_cast<size_t>(count));
  for (int64_t &n : lengths)
    n = random.below(longest + 1);
  if (count > 0)
    lengths[random.below(count)] = longest;
  return lengths;
}

/// An element of a tensor of floats.
double decode(const HostTensor &t, int64_t at) {
  switch (t.dtype) {
  case DType::F32:
    return t.as<float>()[at];
  case DType::F16:
  case DType::BF16:
    return decode16(t.dtype, t.as<uint16_t>()[at]);
  default:
    return decode8(t.dtype, t.as<uint8_t>()[at]);
  }
}

void encode(HostTensor &t, int64_t at, float value) {
  if (t.dtype == DType::F32)
    t.as<float>()[at] = value;
  else
    t.as<uint16_t>()[at] = encode16(t.dtype, value);
}

/// Half the distance between neighbours of a tensor's elements.
double halfUlp(DType type, double magnitude) {
  if (type == DType::F32)
    return magnitude * kRounding;
  return 0.5 *
         (isFloat8(type) ? ulp8(type, magnitude) : ulpOf(type, magnitude));
}

} // namespace

AppendProblem::AppendProblem(const Manifest &manifest,
                             const WorkloadOptions &options)
    : Problem(manifest, options) {
  chooseSizes();
  allocateAll([&](const std::string &name) { return problemShape(name); });
  fill();
  keepInitial();
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

void AppendProblem::chooseSizes() {
  const AppendSpec &p = problem();
  if (!options.inputs.empty())
    throw Error("--input " + options.inputs.begin()->first +
                ": an append makes its own data");
  std::set<std::string> known = spec.sizeNames();
  known.insert({"batch", "seq_new", "cache"});
  takeSizes(known);
  auto get = [&](const char *name, int64_t usual) {
    return values.emplace(name, usual).first->second;
  };
  int64_t batch = options.large ? 64 : 3;
  for (const auto *list : {&options.lengthsQ, &options.cacheLengths})
    if (*list)
      batch = static_cast<int64_t>((*list)->size());
  // Types may fix what the tokens' shape says.
  const TensorSpec &tokens = *spec.findTensor(p.tensor("k_new"));
  bool ragged = p.tokens == Layout::Ragged;
  auto fixed = [&](size_t dim, const char *name) {
    if (!ragged && tokens.shape[dim].kind == SizeExpr::Kind::Constant)
      values[name] = tokens.shape[dim].constant;
  };
  fixed(0, "batch");
  fixed(1, "seq_new");
  batch = get("batch", batch);
  if (batch > (int64_t(1) << 24))
    throw Error("size batch is " + std::to_string(batch) +
                "; this tool takes at most 16777216");
  for (auto [list, name] : {std::pair(&options.lengthsQ, "--lengths-q"),
                            {&options.cacheLengths, "--cache-lengths"}})
    if (*list && static_cast<int64_t>((*list)->size()) != batch)
      throw Error(std::string(name) + " has " +
                  std::to_string((*list)->size()) + " lengths; the batch is " +
                  std::to_string(batch));
  if (options.lengthsQ && !ragged)
    throw Error("--lengths-q: the new tokens are dense; give --size "
                "seq_new=N");
  if (options.lengthsK)
    throw Error("--lengths-k: an append has no such lengths; give "
                "--lengths-q for the new tokens and --cache-lengths for those "
                "before");
  refuse(options.sharePages, "--share-pages",
         "an append writes the pages of a sequence, which are its own");
  bool tables = p.cache == Layout::Continuous || p.cache == Layout::Paged;
  refuse(options.separateTables && !(tables && p.values), "--separate-tables",
         "the cache has no tables of K and of V; it needs a paged or "
         "continuous one of both");
  refuse(options.init != Init::Normal, "--init",
         "an append's tokens are normal; other distributions are of attention");
  refuse(options.cacheLengths && options.sizes.count("cache"), "--size cache",
         "--cache-lengths says the lengths");
  refuse(options.lengthsQ && options.sizes.count("seq_new"), "--size seq_new",
         "--lengths-q says the lengths");
  int64_t usual = options.large ? 64 : 5;
  if (!ragged)
    fresh.assign(batch, get("seq_new", usual));
  else
    fresh = options.lengthsQ ? *options.lengthsQ
                             : drawLengths(batch, get("seq_new", usual),
                                           options.seed, kFresh);
  begin = options.cacheLengths
              ? *options.cacheLengths
              : drawLengths(batch, get("cache", options.large ? 4096 : 20),
                            options.seed, kBegin);
  int64_t rows = 0, fullest = 0, pages = 0, total = 0;
  for (int64_t b = 0; b < batch; ++b) {
    if (fresh[b] < 0 || begin[b] < 0)
      throw Error("sequence " + std::to_string(b) +
                  " has a negative length; expected 0 or more");
    total += fresh[b];
    fullest = std::max(fullest, begin[b] + fresh[b]);
    rows += begin[b] + fresh[b];
    if (p.pageSize)
      pages += (begin[b] + fresh[b] + p.pageSize - 1) / p.pageSize;
  }
  auto atLeast = [&](const char *name, int64_t least, int64_t more) {
    if (int64_t value = get(name, least + more); value < least)
      throw Error(std::string("size ") + name + " is " + std::to_string(value) +
                  ", but the tokens need " + std::to_string(least));
  };
  if (ragged)
    atLeast("total_new", total, 0);
  if (p.rope != AppendSpec::Rope::None)
    atLeast("positions", fullest, 2);
  switch (p.cache) {
  case Layout::Dense:
    atLeast("seq_k", fullest, 3);
    break;
  case Layout::Ragged:
    atLeast("total_k", rows, 2);
    break;
  case Layout::Continuous:
    atLeast("max_seq", fullest, 3);
    atLeast("num_blocks", batch, 2);
    break;
  case Layout::Paged:
    atLeast("pages_per_seq", (fullest + p.pageSize - 1) / p.pageSize, 1);
    atLeast("num_blocks", pages, 2);
    break;
  }
}

std::vector<int64_t>
AppendProblem::problemShape(const std::string &name) const {
  const AppendSpec &p = problem();
  int64_t batch = values.at("batch");
  auto cacheShape = [&](int64_t columns) -> std::vector<int64_t> {
    switch (p.cache) {
    case Layout::Dense:
      return {batch, values.at("seq_k"), p.heads, columns};
    case Layout::Ragged:
      return {values.at("total_k"), p.heads, columns};
    case Layout::Continuous:
      return {values.at("num_blocks"), values.at("max_seq"), p.heads, columns};
    case Layout::Paged:
      return {values.at("num_blocks"), p.pageSize, p.heads, columns};
    }
    return {};
  };
  if (name == "k" || name == "v")
    return cacheShape((name == "k" ? p.k : p.v).cacheDepth);
  if (name == "k.scales" || name == "v.scales") {
    int64_t group =
        (name[0] == 'k' ? p.kGranularity : p.vGranularity).value_or(0);
    if (group > 0)
      return cacheShape((headSizeOf(name) + group - 1) / group);
    return {group ? p.heads : 1};
  }
  if (name == "k_new" || name == "v_new") {
    if (p.tokens == Layout::Ragged)
      return {values.at("total_new"), p.heads, headSizeOf(name)};
    return {batch, values.at("seq_new"), p.heads, headSizeOf(name)};
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Filling
//===----------------------------------------------------------------------===//

int64_t AppendProblem::tokenPlace(const HostTensor &t, int64_t b, int64_t i,
                                  int64_t head) const {
  if (const HostTensor *offsets = part("offsets"))
    return (offsets->integer(b) + i) * t.strides[0] + head * t.strides[1];
  return b * t.strides[0] + i * t.strides[1] + head * t.strides[2];
}

int64_t AppendProblem::place(const std::string &name, int64_t b,
                             int64_t position, int64_t head,
                             bool scales) const {
  const AppendSpec &p = problem();
  const HostTensor &t = *part(scales ? name + ".scales" : name);
  int64_t first = scales ? 0 : (name == "k" ? p.k : p.v).headDimOffset;
  if (position < 0)
    return -1;
  int64_t block = b, row = position;
  switch (p.cache) {
  case Layout::Dense:
    if (row >= t.shape[1])
      return -1;
    break;
  case Layout::Ragged: {
    const HostTensor &offsets = *part(name + ".offsets");
    row += offsets.integer(b);
    return row < offsets.integer(b + 1)
               ? row * t.strides[0] + head * t.strides[1] + first
               : -1;
  }
  case Layout::Continuous:
    if (row >= t.shape[1])
      return -1;
    block = part(name + ".table")->integer(b);
    break;
  case Layout::Paged: {
    const HostTensor &table = *part(name + ".table");
    int64_t page = position / p.pageSize;
    if (page >= table.shape[1])
      return -1;
    block = table.integer(b * table.strides[0] + page);
    row = position % p.pageSize;
    break;
  }
  }
  if (block < 0 || block >= t.shape[0])
    return -1;
  return block * t.strides[0] + row * t.strides[1] + head * t.strides[2] +
         first;
}

void AppendProblem::fillTokens(const std::string &name, uint64_t stream) {
  const AppendSpec &p = problem();
  HostTensor &t = *part(name);
  uint64_t number = 0;
  for (size_t b = 0; b < fresh.size(); ++b)
    for (int64_t i = 0; i < fresh[b]; ++i)
      for (int64_t h = 0; h < p.heads; ++h) {
        Random random(options.seed, stream, number++);
        int64_t at = tokenPlace(t, static_cast<int64_t>(b), i, h);
        for (int64_t d = 0; d < headSizeOf(name); ++d)
          encode(t, at + d, random.normal());
      }
}

void AppendProblem::fillIndices(const std::string &name) {
  const AppendSpec &p = problem();
  int64_t batch = values.at("batch");
  if (HostTensor *offsets = part(name + ".offsets")) {
    int64_t at = 0;
    for (int64_t b = 0; b <= batch; ++b) {
      offsets->setInteger(b, at);
      at += b < batch ? begin[b] + fresh[b] : 0;
    }
  }
  if (HostTensor *lengths = part(name + ".lengths"))
    for (int64_t b = 0; b < batch; ++b)
      lengths->setInteger(b, begin[b]);
  HostTensor *table = part(name + ".table");
  if (!table)
    return;
  std::vector<int32_t> blocks(values.at("num_blocks"));
  std::iota(blocks.begin(), blocks.end(), 0);
  bool own = name == "k" || options.separateTables;
  Random random(options.seed, kTable + (own && name == "v"));
  for (size_t i = blocks.size(); i > 1; --i)
    std::swap(blocks[i - 1], blocks[random.below(static_cast<int64_t>(i))]);
  size_t taken = 0;
  int64_t width = p.pageSize ? table->shape[1] : 1;
  for (int64_t b = 0; b < batch; ++b) {
    int64_t used =
        p.pageSize ? (begin[b] + fresh[b] + p.pageSize - 1) / p.pageSize : 1;
    for (int64_t i = 0; i < width; ++i)
      table->setInteger(b * width + i, i < used ? blocks[taken++] : kPoisonId);
  }
}

void AppendProblem::fill() {
  const AppendSpec &p = problem();
  int64_t batch = values.at("batch");
  if (HostTensor *offsets = part("offsets")) {
    int64_t at = 0;
    for (int64_t b = 0; b <= batch; ++b) {
      offsets->setInteger(b, at);
      at += b < batch ? fresh[b] : 0;
    }
  }
  if (HostTensor *at = part("at"))
    for (int64_t b = 0; b < batch; ++b)
      at->setInteger(b, begin[b]);
  // Rows of angles in an order that no position has.
  if (HostTensor *at = part("rope_at"))
    for (int64_t b = 0; b < batch; ++b)
      at->setInteger(b, 3 * (batch - b));
  if (p.rope != AppendSpec::Rope::None) {
    HostTensor &cos = *part("cos"), &sin = *part("sin");
    Random random(options.seed, kAngles);
    for (int64_t r = 0; r < cos.shape[0]; ++r)
      for (int64_t c = 0; c < cos.shape[1]; ++c) {
        float angle = 6.2831853f * random.uniform();
        encode(cos, r * cos.strides[0] + c, std::cos(angle));
        encode(sin, r * sin.strides[0] + c, std::sin(angle));
      }
  }
  for (std::string name : {"k", "v"}) {
    if (name == "v" && !p.values)
      continue;
    fillIndices(name);
    fillTokens(name + "_new", name == "k" ? kKeys : kValues);
    std::optional<int64_t> group =
        name == "k" ? p.kGranularity : p.vGranularity;
    if (!group || *group > 0)
      continue;
    // Those of whole tensors and heads are given: three deviations reach far
    // into the format, and a few elements exceed it.
    HostTensor &scales = *part(name + ".scales");
    Random random(options.seed, kScales + (name == "v" ? 1000 : 0));
    for (int64_t i = 0; i < scales.shape[0]; ++i)
      encode(scales, i,
             static_cast<float>((2.0f + random.uniform()) /
                                largest8(part(name)->dtype)));
  }
}

//===----------------------------------------------------------------------===//
// Check
//===----------------------------------------------------------------------===//

/// Compares the rows of one cache, and notes in copies what was to be written.
struct AppendProblem::Checker {
  Checker(const AppendProblem &problem, const std::string &name)
      : w(problem), p(problem.problem()), name(name), isK(name == "k"),
        tokens(*w.part(name + "_new")), cache(*w.part(name)),
        scales(w.part(name + ".scales")),
        group((isK ? p.kGranularity : p.vGranularity)),
        headSize(w.headSizeOf(name)), expected(cache.initial) {
    if (scales)
      expectedScales.assign(scales->output
                                ? scales->initial
                                : std::string(reinterpret_cast<const char *>(
                                                  scales->memory->data()),
                                              scales->memory->size()));
  }

  /// The token as it goes into the cache, and the magnitude of what each
  /// element is made of.
  void rotate(std::vector<double> &x, std::vector<double> &size,
              int64_t position) const {
    for (size_t d = 0; d < x.size(); ++d)
      size[d] = std::abs(x[d]);
    if (!isK || p.rope == AppendSpec::Rope::None)
      return;
    const HostTensor &cos = *w.part("cos"), &sin = *w.part("sin");
    int64_t n = cos.shape[1], row = std::min(position, cos.shape[0] - 1);
    bool half = p.rope == AppendSpec::Rope::Half;
    for (int64_t i = 0; i < n; ++i) {
      size_t a = half ? i : 2 * i, b = half ? i + n : 2 * i + 1;
      double c = decode(cos, row * cos.strides[0] + i),
             s = decode(sin, row * sin.strides[0] + i);
      double first = x[a], second = x[b];
      x[a] = first * c - second * s;
      x[b] = second * c + first * s;
      size[a] = std::abs(first * c) + std::abs(second * s);
      size[b] = std::abs(second * c) + std::abs(first * s);
    }
  }

  void checkRow(int64_t b, int64_t i, int64_t h, CheckResult &result) {
    int64_t position = w.begin[b] + i;
    int64_t at = w.place(name, b, position, h),
            from = w.tokenPlace(tokens, b, i, h);
    if (at < 0)
      return;
    size_t bytes = sizeOf(cache.dtype);
    if (!expected.empty())
      std::memcpy(expected.data() + at * bytes,
                  cache.memory->data() + at * bytes, headSize * bytes);
    bool rotated = isK && p.rope != AppendSpec::Rope::None;
    std::vector<double> x(headSize), size(headSize);
    for (int64_t d = 0; d < headSize; ++d)
      x[d] = decode(tokens, from + d);
    const HostTensor *turns = w.part("rope_at");
    rotate(x, size, turns ? turns->integer(b) + i : position);
    int64_t scaleAt = -1;
    if (group && *group > 0) {
      scaleAt = w.place(name, b, position, h, /*scales=*/true);
      checkScales(x, scaleAt, b, i, h, result);
    }
    for (int64_t d = 0; d < headSize; ++d) {
      double scale = 1;
      if (group)
        scale = decode(*scales, *group > 0    ? scaleAt + d / *group
                                : *group == 0 ? 0
                                              : h);
      double wanted = x[d] / scale;
      if (isFloat8(cache.dtype))
        wanted =
            std::clamp(wanted, -largest8(cache.dtype), largest8(cache.dtype));
      double error = std::abs(decode(cache, at + d) - wanted);
      double operations = (rotated ? 3 : 0) + (group ? 3 : 0);
      double limit = halfUlp(cache.dtype, std::abs(wanted)) * (1 + 0x1p-20) +
                     operations * kRounding * size[d] / scale;
      if (!rotated && cache.dtype == tokens.dtype)
        limit = 0;
      double share = error <= limit ? (limit > 0 ? error / limit : 0)
                                    : std::max(error / limit, 1.001);
      if (!(share <= 1))
        ++wrong;
      if (!(share <= result.largest.value)) {
        result.largest = {share, 0, 1, share <= 1};
        result.largestWhere = "at '" + cache.name + "' of " + rowOf(b, i, h) +
                              ", element " + std::to_string(d);
        worst = "'" + cache.name + "' holds " +
                std::to_string(decode(cache, at + d)) + " at " +
                rowOf(b, i, h) + ", element " + std::to_string(d) +
                "; expected " + std::to_string(wanted) + " give or take " +
                std::to_string(limit);
      }
    }
  }

  /// Scales that the kernel made of the elements of groups.
  void checkScales(const std::vector<double> &x, int64_t at, int64_t b,
                   int64_t i, int64_t h, CheckResult &result) {
    int64_t groups = (headSize + *group - 1) / *group;
    size_t bytes = sizeOf(scales->dtype);
    if (!expectedScales.empty())
      std::memcpy(expectedScales.data() + at * bytes,
                  scales->memory->data() + at * bytes, groups * bytes);
    for (int64_t g = 0; g < groups; ++g) {
      double amax = 0;
      for (int64_t d = g * *group; d < std::min((g + 1) * *group, headSize);
           ++d)
        amax = std::max(amax, std::abs(x[d]));
      double wanted = amax == 0 ? 1 : amax / largest8(cache.dtype);
      double got = decode(*scales, at + g);
      if (std::abs(got - wanted) <=
          halfUlp(scales->dtype, wanted) * (1 + 0x1p-20) +
              8 * kRounding * wanted)
        continue;
      if (!wrongScales++)
        result.failures.push_back(
            "'" + scales->name + "' holds " + std::to_string(got) + " for " +
            rowOf(b, i, h) + ", group " + std::to_string(g) + "; expected " +
            std::to_string(wanted));
    }
  }

  static std::string rowOf(int64_t b, int64_t i, int64_t h) {
    return "sequence " + std::to_string(b) + ", new token " +
           std::to_string(i) + ", head " + std::to_string(h);
  }

  /// What was written where no token went.
  void checkRest(CheckResult &result) const {
    auto compare = [&](const HostTensor &t, const std::string &wanted) {
      const char *got = reinterpret_cast<const char *>(t.memory->data());
      // Empty for a tensor of which nothing was kept.
      auto [a, b] = std::mismatch(wanted.begin(), wanted.end(), got);
      if (a != wanted.end())
        result.failures.push_back(
            "tensor '" + t.name + "' was written where no token goes, first " +
            "at byte " + std::to_string(a - wanted.begin()));
    };
    compare(cache, expected);
    if (scales && scales->output)
      compare(*scales, expectedScales);
    if (wrong)
      result.failures.push_back(worst + "; " + std::to_string(wrong) +
                                " elements are wrong");
  }

  const AppendProblem &w;
  const AppendSpec &p;
  std::string name;
  bool isK;
  const HostTensor &tokens, &cache;
  const HostTensor *scales;
  std::optional<int64_t> group;
  int64_t headSize;
  std::string expected, expectedScales, worst;
  int64_t wrong = 0, wrongScales = 0;
};

CheckResult AppendProblem::check(const CheckOptions &options) const {
  const AppendSpec &p = problem();
  CheckResult result;
  result.ofElements = true;
  for (std::string name : {"k", "v"}) {
    if (name == "v" && !p.values)
      continue;
    Checker checker(*this, name);
    for (size_t b = 0; b < fresh.size(); ++b) {
      for (int64_t i = 0; i < fresh[b]; ++i)
        for (int64_t h = 0; h < p.heads; ++h) {
          checker.checkRow(static_cast<int64_t>(b), i, h, result);
          ++result.rowsChecked;
        }
      if (options.progress)
        options.progress(b + 1, fresh.size());
    }
    checker.checkRest(result);
  }
  result.rowsTotal = result.rowsChecked;
  checkZones(result);
  result.pass = result.failures.empty();
  return result;
}

double AppendProblem::minimalBytes() const {
  const AppendSpec &p = problem();
  double tokens = 0, bytes = 0;
  for (int64_t n : fresh)
    tokens += static_cast<double>(n);
  for (std::string name : {"k", "v"}) {
    if (name == "v" && !p.values)
      continue;
    double each = static_cast<double>(sizeOf(part(name + "_new")->dtype) +
                                      sizeOf(part(name)->dtype));
    bytes += tokens * static_cast<double>(p.heads * headSizeOf(name)) * each;
    if (const HostTensor *scales = part(name + ".scales");
        scales && scales->output)
      bytes += tokens * static_cast<double>(p.heads * scales->shape.back()) *
               static_cast<double>(sizeOf(scales->dtype));
  }
  if (const HostTensor *cos = part("cos")) {
    double rows = std::min(tokens, static_cast<double>(cos->shape[0]));
    bytes += 2 * rows * static_cast<double>(cos->shape[1]) *
             static_cast<double>(sizeOf(cos->dtype));
  }
  return bytes;
}

std::string AppendProblem::describe() const {
  std::string text;
  for (const auto &[name, value] : values)
    text += (text.empty() ? "" : " ") + name + "=" + std::to_string(value);
  auto list = [&](const char *name, const std::vector<int64_t> &lengths) {
    text += std::string(" ") + name + "=";
    size_t shown = std::min<size_t>(lengths.size(), 8);
    for (size_t i = 0; i < shown; ++i)
      text += (i ? "," : "") + std::to_string(lengths[i]);
    if (shown < lengths.size())
      text += ",...";
  };
  if (problem().tokens == Layout::Ragged)
    list("new", fresh);
  list("before", begin);
  return text;
}
