//===- lib/Runtime/WorkloadData.cpp - Tensors and their contents *- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Random.h"
#include "kvbuffer/Runtime/Error.h"
#include "kvbuffer/Runtime/Parallel.h"
#include "kvbuffer/Runtime/Workload.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <numeric>
#include <sys/mman.h>

using namespace kvbuf::rt;

namespace {

enum Stream : uint64_t { kQuery = 1, kKey, kValue, kSink, kDirection };

/// All bits set is a NaN in every float type.
constexpr int kPoisonByte = 0xFF;

/// Beyond this, a tensor that is mostly gaps (explicit strides) keeps zero
/// pages in its gaps instead of poison, so that it costs no memory.
constexpr uint64_t kSparseBytes = uint64_t(1) << 30;

/// More elements in front of a tensor show nothing that fewer do not.
constexpr int64_t kMostOffset = 1 << 20;

int64_t elementCount(const std::vector<int64_t> &shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    if (__builtin_mul_overflow(count, extent, &count) ||
        count > (int64_t(1) << 50))
      throw Error("a tensor of shape " + shapeString(shape) +
                  " exceeds 64-bit addressing");
  return count;
}

/// Bytes of memory that can still be used; "no limit" where the system does not
/// tell.
uint64_t availableBytes() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  uint64_t kilobytes = 0;
  while (file >> key >> kilobytes) {
    if (key == "MemAvailable:")
      return kilobytes << 10;
    std::getline(file, unit);
  }
  return std::numeric_limits<uint64_t>::max();
}

/// Is the tensor mostly gaps that are better left untouched?
bool isSparse(uint64_t span, uint64_t used) {
  return span > kSparseBytes && span / 4 >= used;
}

bool isData(const TensorSpec &spec) {
  return spec.dtype == DType::F16 || spec.dtype == DType::BF16;
}

/// Strides in elements as the memory options ask for them.
std::vector<int64_t> chooseStrides(const TensorSpec &spec,
                                   const std::vector<int64_t> &shape,
                                   const MemoryOptions &memory) {
  size_t rank = shape.size();
  if (auto it = memory.strides.find(spec.name); it != memory.strides.end()) {
    const std::vector<int64_t> &strides = it->second;
    if (strides.size() != rank)
      throw Error("--strides " + spec.name + " has " +
                  std::to_string(strides.size()) + " numbers; the tensor has " +
                  std::to_string(rank) + " dimensions");
    // Inside out, every dimension must step over all that lies within it.
    std::vector<size_t> order(rank);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::pair(strides[a], a) < std::pair(strides[b], b);
    });
    int64_t within = 1;
    for (size_t d : order) {
      if (shape[d] < 2)
        continue;
      if (strides[d] < within)
        throw Error("--strides " + spec.name + ": stride " +
                    std::to_string(strides[d]) + " of dimension " +
                    std::to_string(d) + " makes elements overlap; expected " +
                    std::to_string(within) + " or more");
      if (__builtin_mul_overflow(strides[d], shape[d] - 1, &within) ||
          within >= (int64_t(1) << 44))
        throw Error("--strides " + spec.name + ": the tensor spans too much");
      within += strides[d];
    }
    return strides;
  }
  if (!isData(spec) || rank < 3 || (!memory.rowPad && !memory.headsMajor))
    return contiguousStrides(shape);
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  if (memory.headsMajor)
    std::swap(order[rank - 3], order[rank - 2]);
  std::vector<int64_t> strides(rank, 1);
  int64_t step = shape[rank - 1] + memory.rowPad;
  for (size_t i = rank - 1; i-- > 0;) {
    strides[order[i]] = step;
    if (__builtin_mul_overflow(step, std::max<int64_t>(shape[order[i]], 1),
                               &step))
      throw Error("a tensor of shape " + shapeString(shape) +
                  " with --row-pad exceeds 64-bit addressing");
  }
  return strides;
}

/// The shape that the problem gives a tensor of this name; empty for names that
/// it does not use.
std::vector<int64_t> problemShape(const AttentionProblem &p, const Sizes &sizes,
                                  const std::string &name) {
  int64_t batch = sizes.at("batch");
  bool ragged = p.query == Layout::Ragged;
  if (name == "q" || name == "o")
    return ragged ? std::vector{sizes.at("total_q"), p.heads, p.headSize}
                  : std::vector{batch, sizes.at("seq_q"), p.heads, p.headSize};
  if (name == "lse")
    return ragged ? std::vector{p.heads, sizes.at("total_q")}
                  : std::vector{batch, p.heads, sizes.at("seq_q")};
  if (name == "sink")
    return {p.heads};
  if (name == "q_offsets" || name == "k.offsets" || name == "v.offsets")
    return {batch + 1};
  if (name == "k.lengths" || name == "v.lengths")
    return {batch};
  bool paged = p.cache == Layout::Paged;
  if (name == "k.table" || name == "v.table")
    return paged ? std::vector{batch, sizes.at("pages_per_seq")}
                 : std::vector{batch};
  if (name != "k" && name != "v")
    return {};
  // Rows may be wider than the head that is a part of them.
  int64_t depth = (name == "k" ? p.k : p.v).cacheDepth;
  switch (p.cache) {
  case Layout::Dense:
    return {batch, sizes.at("seq_k"), p.kvHeads, depth};
  case Layout::Ragged:
    return {sizes.at("total_k"), p.kvHeads, depth};
  case Layout::Continuous:
    return {sizes.at("num_blocks"), sizes.at("max_seq"), p.kvHeads, depth};
  case Layout::Paged:
    return {sizes.at("num_blocks"), p.pageSize, p.kvHeads, depth};
  }
  return {};
}

/// Calls `body(offset in elements, packed index)` for each innermost row.
template <typename F> void forEachRow(const HostTensor &t, F body) {
  int64_t rows = t.shape.empty() ? 0 : 1;
  for (size_t d = 0; d + 1 < t.shape.size(); ++d)
    rows *= t.shape[d];
  for (int64_t r = 0; r < rows; ++r) {
    int64_t rest = r, offset = 0;
    for (size_t d = t.shape.size() - 1; d-- > 0;) {
      offset += rest % t.shape[d] * t.strides[d];
      rest /= t.shape[d];
    }
    body(offset, r);
  }
}

/// Draws one row of head_size elements.
class RowWriter {
public:
  RowWriter(const AttentionProblem &p, Init init, uint64_t seed)
      : p(p), init(init), seed(seed), direction(p.headSize) {
    Random random(seed, kDirection);
    for (float &x : direction)
      x = random.below(2) ? 1.0f : -1.0f;
    // One nat every 32 keys: two in a block of 64, so that the running maximum
    // rises in every block. No ramp follows from a scale of zero; the limit
    // keeps keys in f16's range.
    double scale = std::max(std::abs(p.scale), 1e-3);
    slope = static_cast<float>(
        1.0 / (32.0 * scale * static_cast<double>(p.headSize)));
  }

  /// `row` names the row among all of this tensor, `j` is its position in the
  /// sequence.
  void write(uint16_t *to, uint64_t stream, uint64_t row, int64_t head,
             int64_t heads, int64_t j) const {
    Random random(seed, stream, row * static_cast<uint64_t>(heads) + head);
    float headScale = heads > 1 ? std::exp2(3.0f * static_cast<float>(head) /
                                                static_cast<float>(heads - 1) -
                                            1.5f)
                                : 1.0f;
    for (int64_t d = 0; d < p.headSize; ++d) {
      float x = random.normal();
      switch (init) {
      case Init::Normal:
        break;
      case Init::Outliers:
        if (random.below(1000) == 0)
          x += 10.0f * random.normal();
        break;
      case Init::Octaves:
        x *= headScale;
        break;
      case Init::Ramp:
        // Scores rise along the keys in even rows and fall in odd ones: the
        // maximum rises whichever way a kernel walks.
        if (stream == kQuery)
          x = (j % 2 ? -direction[d] : direction[d]) + 0.25f * x;
        else if (stream == kKey)
          x = direction[d] * slope * static_cast<float>(j) + 0.5f * x;
        break;
      }
      to[d] = encode16(p.dtype, x);
    }
  }

private:
  const AttentionProblem &p;
  Init init;
  uint64_t seed;
  std::vector<float> direction;
  float slope;
};

} // namespace

//===----------------------------------------------------------------------===//
// GuardedMemory, HostTensor
//===----------------------------------------------------------------------===//

GuardedMemory::GuardedMemory(uint64_t bytes, uint64_t shift)
    : bytes(bytes), start(kZone + shift) {
  void *p = mmap(nullptr, regionSize(), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    throw Error("cannot allocate " + std::to_string(regionSize()) +
                " bytes of host memory");
  base = static_cast<uint8_t *>(p);
  restoreZones();
}

void GuardedMemory::restoreZones() {
  std::memset(base, kZoneByte, start);
  std::memset(base + start + bytes, kZoneByte, kZone);
}

GuardedMemory::~GuardedMemory() { munmap(base, regionSize()); }

bool GuardedMemory::zonesIntact() const {
  auto intact = [](const uint8_t *p, uint64_t size) {
    return std::all_of(p, p + size,
                       [](uint8_t byte) { return byte == kZoneByte; });
  };
  return intact(base, start) && intact(base + start + bytes, kZone);
}

int64_t HostTensor::integer(int64_t i) const {
  return dtype == DType::I64 ? as<int64_t>()[i] : as<int32_t>()[i];
}

void HostTensor::setInteger(int64_t i, int64_t value) {
  if (dtype == DType::I64) {
    as<int64_t>()[i] = value;
    return;
  }
  if (value != static_cast<int32_t>(value))
    throw Error("tensor '" + name + "': " + std::to_string(value) +
                " exceeds 32 bits");
  as<int32_t>()[i] = static_cast<int32_t>(value);
}

std::string HostTensor::packed() const {
  size_t rowBytes = static_cast<size_t>(shape.back()) * sizeOf(dtype);
  std::string out(static_cast<size_t>(elementCount(shape)) * sizeOf(dtype), 0);
  forEachRow(*this, [&](int64_t offset, int64_t row) {
    std::memcpy(out.data() + static_cast<size_t>(row) * rowBytes,
                memory->data() + static_cast<size_t>(offset) * sizeOf(dtype),
                rowBytes);
  });
  return out;
}

//===----------------------------------------------------------------------===//
// Filling
//===----------------------------------------------------------------------===//

void Workload::allocate() {
  for (const auto &[name, strides] : options.memory.strides)
    if (!spec.findTensor(name))
      throw Error("--strides " + name + ": the kernel has no such tensor");
  for (const auto &[name, elements] : options.memory.offsets) {
    if (!spec.findTensor(name))
      throw Error("--offset " + name + ": the kernel has no such tensor");
    if (elements < 0 || elements > kMostOffset)
      throw Error("--offset " + name + "=" + std::to_string(elements) +
                  ": expected 0 to " + std::to_string(kMostOffset));
  }
  uint64_t wanted = 0, available = availableBytes();
  for (const TensorSpec &t : spec.tensors) {
    HostTensor tensor;
    tensor.name = t.name;
    tensor.dtype = t.dtype;
    tensor.output = t.output;
    tensor.shape = evaluateShape(t, values);
    // Rows are found by the problem's sizes: those of another shape would lie
    // outside of the tensor.
    if (std::vector<int64_t> shape = problemShape(problem(), values, t.name);
        !shape.empty() && shape != tensor.shape)
      throw Error("tensor '" + t.name + "' has shape " +
                  shapeString(tensor.shape) + "; the problem needs " +
                  shapeString(shape));
    uint64_t used =
        static_cast<uint64_t>(elementCount(tensor.shape)) * sizeOf(t.dtype);
    tensor.strides = chooseStrides(t, tensor.shape, options.memory);
    uint64_t span = spanBytes(t.dtype, tensor.shape, tensor.strides);
    // Pages are handed out when they are touched, and a process that touches
    // too many is killed: refuse before.
    wanted += isSparse(span, used) ? used : span;
    if (wanted > available)
      throw Error("the tensors need more than the " +
                  std::to_string(available >> 20) +
                  " MiB of memory that this machine has left; give smaller "
                  "sizes");
    uint64_t shift = 0;
    if (auto it = options.memory.offsets.find(t.name);
        it != options.memory.offsets.end())
      shift = static_cast<uint64_t>(it->second) * sizeOf(t.dtype);
    tensor.memory = std::make_shared<GuardedMemory>(span, shift);
    if (!isSparse(span, used))
      parallelFor(static_cast<int64_t>(span), int64_t(1) << 26,
                  [&](int64_t begin, int64_t end) {
                    std::memset(tensor.memory->data() + begin, kPoisonByte,
                                static_cast<size_t>(end - begin));
                  });
    if (auto it = fileData.find(t.name); it != fileData.end()) {
      size_t rowBytes =
          static_cast<size_t>(tensor.shape.back()) * sizeOf(t.dtype);
      forEachRow(tensor, [&](int64_t offset, int64_t row) {
        std::memcpy(tensor.memory->data() +
                        static_cast<size_t>(offset) * sizeOf(t.dtype),
                    it->second.data() + static_cast<size_t>(row) * rowBytes,
                    rowBytes);
      });
    }
    all.push_back(std::move(tensor));
  }
}

void Workload::poisonOutputs() {
  for (HostTensor &tensor : all) {
    if (!tensor.output)
      continue;
    tensor.memory->restoreZones();
    size_t elementBytes = sizeOf(tensor.dtype);
    uint64_t used =
        static_cast<uint64_t>(elementCount(tensor.shape)) * elementBytes;
    if (!isSparse(tensor.memory->size(), used)) {
      std::memset(tensor.memory->data(), kPoisonByte, tensor.memory->size());
      continue;
    }
    size_t rowBytes = static_cast<size_t>(tensor.shape.back()) * elementBytes;
    forEachRow(tensor, [&](int64_t offset, int64_t) {
      std::memset(tensor.memory->data() +
                      static_cast<size_t>(offset) * elementBytes,
                  kPoisonByte, rowBytes);
    });
  }
}

HostTensor *Workload::find(const std::string &name) {
  for (HostTensor &t : all)
    if (t.name == name)
      return &t;
  return nullptr;
}

const HostTensor *Workload::find(const std::string &name) const {
  return const_cast<Workload *>(this)->find(name);
}

void Workload::locate() {
  q = find("q");
  o = find("o");
  // A tensor that the problem does not need may be of any type.
  const AttentionProblem &p = problem();
  auto findIf = [&](bool needed, const std::string &name) {
    return needed ? find(name) : nullptr;
  };
  qOffsets = findIf(p.query == Layout::Ragged, "q_offsets");
  lseTensor = findIf(p.lse, "lse");
  bool ragged = p.cache == Layout::Ragged;
  bool table = p.cache == Layout::Continuous || p.cache == Layout::Paged;
  for (auto [cache, name] :
       {std::pair<CacheTensors *, std::string>{&k, "k"}, {&v, "v"}})
    *cache = {find(name), findIf(ragged, name + ".offsets"),
              findIf(table, name + ".table"), findIf(table, name + ".lengths")};
}

void Workload::fillData() {
  const AttentionProblem &p = problem();
  if (HostTensor *sink = find("sink"); p.sink && !fromFile("sink")) {
    Random random(options.seed, kSink);
    for (int64_t h = 0; h < p.heads; ++h)
      sink->as<float>()[h] = 2.0f * random.normal();
  }
  if (!fromFile("q")) {
    RowWriter writer(p, options.init, options.seed);
    int64_t rowsBefore = 0;
    for (int64_t b = 0; b < batch(); ++b) {
      parallelFor(lenQ[b], 64, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          for (int64_t h = 0; h < p.heads; ++h)
            writer.write(const_cast<uint16_t *>(qRow(b, i, h)), kQuery,
                         static_cast<uint64_t>(rowsBefore + i), h, p.heads, i);
      });
      rowsBefore += lenQ[b];
    }
  }
  if (!fromFile("k"))
    fillCache(k, kKey);
  if (!fromFile("v"))
    fillCache(v, kValue);
}

void Workload::fillCache(const CacheTensors &cache, uint64_t stream) {
  const AttentionProblem &p = problem();
  RowWriter writer(p, options.init, options.seed);
  // A shared page is written once, for the first sequence that uses it: the
  // rows are drawn in the order of (sequence, page), and which rows of a page
  // are in use is the union over its users.
  int64_t unit = p.cache == Layout::Paged ? p.pageSize : 0;
  std::map<int64_t, int64_t> filled; // block -> rows written so far
  int64_t rowsBefore = 0;
  for (int64_t b = 0; b < batch(); ++b) {
    int64_t step = unit ? unit : std::max<int64_t>(lenK[b], 1);
    std::vector<int64_t> rows;
    for (int64_t at = 0; at < lenK[b]; at += step) {
      int64_t begin = at, end = std::min(at + step, lenK[b]);
      if (cache.table) {
        int64_t width = unit ? values.at("pages_per_seq") : 1;
        int64_t id = cache.table->integer(b * width + at / step);
        int64_t &written = filled[id];
        begin = std::min(end, at + written);
        written = std::max(written, end - at);
      }
      for (int64_t j = begin; j < end; ++j)
        rows.push_back(j);
    }
    parallelFor(
        static_cast<int64_t>(rows.size()), 64, [&](int64_t from, int64_t to) {
          for (int64_t i = from; i < to; ++i)
            for (int64_t h = 0; h < p.kvHeads; ++h)
              writer.write(
                  const_cast<uint16_t *>(cacheRow(cache, b, rows[i], h)),
                  stream, static_cast<uint64_t>(rowsBefore + rows[i]), h,
                  p.kvHeads, rows[i]);
        });
    rowsBefore += lenK[b];
  }
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

namespace {
const uint16_t *queryRow(const HostTensor &t, const HostTensor *offsets,
                         int64_t b, int64_t i, int64_t h) {
  const uint16_t *base = t.as<uint16_t>();
  if (offsets)
    return base + (offsets->integer(b) + i) * t.strides[0] + h * t.strides[1];
  return base + b * t.strides[0] + i * t.strides[1] + h * t.strides[2];
}
} // namespace

const uint16_t *Workload::qRow(int64_t b, int64_t i, int64_t h) const {
  return queryRow(*q, qOffsets, b, i, h);
}

const uint16_t *Workload::oRow(int64_t b, int64_t i, int64_t h) const {
  return queryRow(*o, qOffsets, b, i, h);
}

const uint16_t *Workload::kRow(int64_t b, int64_t j, int64_t h) const {
  return cacheRow(k, b, j, h);
}

const uint16_t *Workload::vRow(int64_t b, int64_t j, int64_t h) const {
  return cacheRow(v, b, j, h);
}

const uint16_t *Workload::cacheRow(const CacheTensors &cache, int64_t b,
                                   int64_t j, int64_t h) const {
  const HostTensor &t = *cache.data;
  const CacheRow &row = cache.data == k.data ? problem().k : problem().v;
  const uint16_t *base = t.as<uint16_t>() + row.headDimOffset;
  switch (problem().cache) {
  case Layout::Dense:
    break;
  case Layout::Ragged:
    return base + (cache.offsets->integer(b) + j) * t.strides[0] +
           h * t.strides[1];
  case Layout::Continuous:
    b = cache.table->integer(b);
    break;
  case Layout::Paged: {
    int64_t page = j / problem().pageSize;
    j -= page * problem().pageSize;
    b = cache.table->integer(b * cache.table->strides[0] + page);
    break;
  }
  }
  return base + b * t.strides[0] + j * t.strides[1] + h * t.strides[2];
}

float Workload::lse(int64_t b, int64_t i, int64_t h) const {
  const HostTensor &t = *lseTensor;
  const float *base = t.as<float>();
  if (qOffsets)
    return base[h * t.strides[0] + (qOffsets->integer(b) + i) * t.strides[1]];
  return base[b * t.strides[0] + h * t.strides[1] + i * t.strides[2]];
}
