//===- lib/Runtime/WorkloadData.cpp - Tensors and their contents *- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Float8.h"
#include "../Random.h"
#include "kvbuffer/Runtime/Check.h"
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

enum Stream : uint64_t {
  kQuery = 1,
  kKey,
  kValue,
  kSink,
  kDirection,
  kKeyScales,
  kValueScales
};

/// The shape that the problem gives a tensor of this name; empty for names that
/// it does not use.
std::vector<int64_t> problemShape(const AttentionProblem &p, const Sizes &sizes,
                                  const std::string &name) {
  int64_t batch = sizes.at("batch");
  bool ragged = p.query == Layout::Ragged;
  if (name == "q" || name == "o") {
    int64_t size = name == "q" ? p.headSize : p.valueHeadSize;
    return ragged ? std::vector{sizes.at("total_q"), p.heads, size}
                  : std::vector{batch, sizes.at("seq_q"), p.heads, size};
  }
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
  if (p.latent && name.starts_with("v"))
    return {};
  bool isK = name.starts_with("k");
  // Rows may be wider than the head that is a part of them.
  int64_t depth = (isK ? p.k : p.v).cacheDepth;
  const auto &quantized = isK ? p.kQuantized : p.vQuantized;
  if ((name == "k.scales" || name == "v.scales") && quantized &&
      quantized->granularity) {
    int64_t group = *quantized->granularity;
    if (group <= 0)
      return {group == 0 ? 1 : p.kvHeads};
    depth = ((isK ? p.headSize : p.valueHeadSize) + group - 1) / group;
  } else if (name != "k" && name != "v") {
    return {};
  }
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

/// Draws one row of the elements of a head.
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

  /// From element `at` of a tensor on. `row` names the row among all of it, `j`
  /// is its position in the sequence.
  void write(HostTensor &t, int64_t at, uint64_t stream, uint64_t row,
             int64_t head, int64_t heads, int64_t j) const {
    if (isFloat8(t.dtype))
      draw(stream, row, head, heads, j, [&](int64_t d, float x) {
        t.as<uint8_t>()[at + d] = encode8(t.dtype, x);
      });
    else
      draw(stream, row, head, heads, j, [&](int64_t d, float x) {
        t.as<uint16_t>()[at + d] = encode16(t.dtype, x);
      });
  }
  /// The same, each element by `put`.
  template <typename Put>
  void draw(uint64_t stream, uint64_t row, int64_t head, int64_t heads,
            int64_t j, Put put) const {
    Random random(seed, stream, row * static_cast<uint64_t>(heads) + head);
    float headScale = heads > 1 ? std::exp2(3.0f * static_cast<float>(head) /
                                                static_cast<float>(heads - 1) -
                                            1.5f)
                                : 1.0f;
    int64_t size = stream == kValue ? p.valueHeadSize : p.headSize;
    for (int64_t d = 0; d < size; ++d) {
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
      put(d, x);
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
// Filling
//===----------------------------------------------------------------------===//

CheckResult Workload::check(const CheckOptions &options) const {
  return checkOutputs(*this, options);
}

double Workload::operations() const {
  const AttentionProblem &p = problem();
  return 2 * static_cast<double>((p.headSize + p.valueHeadSize) * p.heads) *
         visiblePairs();
}

void Workload::allocate() {
  allocateAll([&](const std::string &name) {
    return problemShape(problem(), values, name);
  });
}

void Workload::locate() {
  q = part("q");
  o = part("o");
  // A tensor that the problem does not need may be of any type.
  const AttentionProblem &p = problem();
  auto findIf = [&](bool needed, const std::string &role) {
    return needed ? part(role) : nullptr;
  };
  qOffsets = findIf(p.query == Layout::Ragged, "q_offsets");
  lseTensor = findIf(p.lse, "lse");
  bool ragged = p.cache == Layout::Ragged;
  bool table = p.cache == Layout::Continuous || p.cache == Layout::Paged;
  for (const std::string &name : p.caches()) {
    const auto &quantized = name == "k" ? p.kQuantized : p.vQuantized;
    (name == "k" ? k : v) = {
        part(name),
        findIf(ragged, name + ".offsets"),
        findIf(table, name + ".table"),
        findIf(table, name + ".lengths"),
        findIf(quantized && quantized->granularity, name + ".scales"),
        quantized ? &*quantized : nullptr};
  }
  if (p.latent)
    v = k;
}

/// The number of the first element of a row.
static int64_t queryPlace(const HostTensor &t, const HostTensor *offsets,
                          int64_t b, int64_t i, int64_t h) {
  if (offsets)
    return (offsets->integer(b) + i) * t.strides[0] + h * t.strides[1];
  return b * t.strides[0] + i * t.strides[1] + h * t.strides[2];
}

void Workload::fillData() {
  const AttentionProblem &p = problem();
  if (HostTensor *sink = part("sink"); p.sink && !isGiven("sink")) {
    Random random(options.seed, kSink);
    for (int64_t h = 0; h < p.heads; ++h)
      sink->as<float>()[h] = 2.0f * random.normal();
  }
  if (!isGiven("q")) {
    RowWriter writer(p, options.init, options.seed);
    int64_t rowsBefore = 0;
    for (int64_t b = 0; b < batch(); ++b) {
      parallelFor(lenQ[b], 64, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          for (int64_t h = 0; h < p.heads; ++h)
            writer.write(*q, queryPlace(*q, qOffsets, b, i, h), kQuery,
                         static_cast<uint64_t>(rowsBefore + i), h, p.heads, i);
      });
      rowsBefore += lenQ[b];
    }
  }
  if (k.scales && !isGiven("k.scales"))
    fillScales(k, kKeyScales);
  if (!p.latent && v.scales && !isGiven("v.scales"))
    fillScales(v, kValueScales);
  if (!isGiven("k"))
    fillCache(k, kKey);
  if (!p.latent && !isGiven("v"))
    fillCache(v, kValue);
}

void Workload::fillScales(const CacheTensors &cache, uint64_t stream) {
  const AttentionProblem &p = problem();
  HostTensor &t = *cache.scales;
  // What is drawn reaches far into the format, and a few elements exceed it.
  double reach = options.init == Init::Normal ? 2 : 8;
  if (options.init == Init::Ramp && cache.data == k.data)
    reach = 32;
  auto put = [&](int64_t at, Random &random) {
    auto scale = static_cast<float>(reach * (1.0 + random.uniform()) /
                                    largest8(cache.quantized->dtype));
    if (t.dtype == DType::F32)
      t.as<float>()[at] = scale;
    else
      t.as<uint16_t>()[at] = encode16(t.dtype, scale);
  };
  int64_t group = *cache.quantized->granularity;
  int64_t size = cache.data == k.data ? p.headSize : p.valueHeadSize;
  if (group <= 0) {
    Random random(options.seed, stream);
    for (int64_t i = 0; i < t.shape[0]; ++i)
      put(i * t.strides[0], random);
    return;
  }
  // Those of tokens that no sequence has stay poisoned.
  for (int64_t b = 0; b < batch(); ++b)
    parallelFor(lenK[b], 64, [&](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j)
        for (int64_t h = 0; h < p.kvHeads; ++h)
          for (int64_t d = 0; d < size; d += group) {
            int64_t at = scalePlace(cache, b, j, h, d);
            // Of the place alone: sequences may share pages.
            Random random(options.seed, stream, static_cast<uint64_t>(at));
            put(at, random);
          }
    });
}

/// The bits of a scale of a packed row, and its value.
static double storeScale(const PackedPart &part, uint8_t *to, double scale) {
  if (!part.scale) {
    // The next power of two.
    int exponent =
        std::clamp(static_cast<int>(std::ceil(std::log2(scale))), -127, 127);
    *to = static_cast<uint8_t>(exponent + 127);
    return std::ldexp(1.0, exponent);
  }
  auto number = static_cast<float>(scale);
  if (*part.scale == DType::F32) {
    std::memcpy(to, &number, sizeof(number));
    return number;
  }
  uint16_t word = encode16(*part.scale, number);
  std::memcpy(to, &word, sizeof(word));
  return decode16(*part.scale, word);
}

/// The same, read.
static double loadScale(const PackedPart &part, const uint8_t *from) {
  if (!part.scale)
    return *from == 255 ? std::numeric_limits<double>::quiet_NaN()
                        : std::ldexp(1.0, *from - 127);
  if (*part.scale == DType::F32) {
    float number;
    std::memcpy(&number, from, sizeof(number));
    return number;
  }
  uint16_t word;
  std::memcpy(&word, from, sizeof(word));
  return decode16(*part.scale, word);
}

/// Where group `g` of a part has its scale, behind the row's first byte.
static int64_t scaleByte(const PackedPart &part, int64_t g) {
  return part.scaleAt +
         g * (part.scale ? static_cast<int64_t>(sizeOf(*part.scale)) : 1);
}

void Workload::pack(uint8_t *to, const std::vector<float> &row) const {
  int64_t first = 0;
  for (const PackedPart &part : problem().packed->parts) {
    int64_t group = part.granularity ? part.granularity : part.count;
    for (int64_t from = 0; from < part.count; from += group) {
      int64_t upto = std::min(from + group, part.count);
      double scale = 1, largest = 0;
      for (int64_t d = from; d < upto; ++d)
        largest = std::max<double>(largest, std::abs(row[first + d]));
      if (part.granularity)
        scale = storeScale(part, to + scaleByte(part, from / group),
                           std::max(largest, 1e-6) / largest8(part.element));
      for (int64_t d = from; d < upto; ++d) {
        double x = row[first + d] / scale;
        if (isFloat8(part.element)) {
          to[part.at + d] = encode8(part.element, x);
          continue;
        }
        uint16_t word = encode16(part.element, static_cast<float>(x));
        std::memcpy(to + part.at + 2 * d, &word, sizeof(word));
      }
    }
    first += part.count;
  }
}

void Workload::packedRow(int64_t b, int64_t j, int64_t h,
                         std::vector<double> &row) const {
  row.clear();
  const uint8_t *from = k.data->as<uint8_t>() + cachePlace(k, *k.data, b, j, h);
  for (const PackedPart &part : problem().packed->parts)
    for (int64_t d = 0; d < part.count; ++d) {
      double x;
      if (isFloat8(part.element)) {
        x = decode8(part.element, from[part.at + d]);
      } else {
        uint16_t word;
        std::memcpy(&word, from + part.at + 2 * d, sizeof(word));
        x = decode16(part.element, word);
      }
      if (part.granularity)
        x *= loadScale(part, from + scaleByte(part, d / part.granularity));
      row.push_back(x);
    }
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
            for (int64_t h = 0; h < p.kvHeads; ++h) {
              uint64_t number = static_cast<uint64_t>(rowsBefore + rows[i]);
              int64_t at = cachePlace(cache, *cache.data, b, rows[i], h);
              if (p.packed) {
                std::vector<float> row(p.headSize);
                writer.draw(stream, number, h, p.kvHeads, rows[i],
                            [&](int64_t d, float x) { row[d] = x; });
                pack(cache.data->as<uint8_t>() + at, row);
                continue;
              }
              if (!cache.quantized) {
                writer.write(*cache.data, at, stream, number, h, p.kvHeads,
                             rows[i]);
                continue;
              }
              DType type = cache.quantized->dtype;
              auto *to = cache.data->as<uint8_t>() + at;
              writer.draw(stream, number, h, p.kvHeads, rows[i],
                          [&](int64_t d, float x) {
                            to[d] = encode8(
                                type, x / cacheScale(cache, b, rows[i], h, d));
                          });
            }
        });
    rowsBefore += lenK[b];
  }
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// 8-bit elements in the type that has all of them.
static const uint16_t *widened(const AttentionProblem &p, DType type,
                               const uint8_t *codes, int64_t count,
                               std::vector<uint16_t> &scratch) {
  scratch.resize(count);
  for (int64_t d = 0; d < count; ++d)
    scratch[d] =
        encode16(p.wideDtype(), static_cast<float>(decode8(type, codes[d])));
  return scratch.data();
}

const uint16_t *Workload::qRow(int64_t b, int64_t i, int64_t h,
                               std::vector<uint16_t> &scratch) const {
  int64_t at = queryPlace(*q, qOffsets, b, i, h);
  if (!isFloat8(q->dtype))
    return q->as<uint16_t>() + at;
  return widened(problem(), q->dtype, q->as<uint8_t>() + at, problem().headSize,
                 scratch);
}

const uint8_t *Workload::oAddress(int64_t b, int64_t i, int64_t h) const {
  return o->memory->data() + queryPlace(*o, qOffsets, b, i, h) *
                                 static_cast<int64_t>(sizeOf(o->dtype));
}

void Workload::oRow(int64_t b, int64_t i, int64_t h,
                    std::vector<float> &row) const {
  row.resize(problem().valueHeadSize);
  const uint8_t *at = oAddress(b, i, h);
  if (o->dtype == DType::F32) {
    std::memcpy(row.data(), at, row.size() * sizeof(float));
    return;
  }
  if (isFloat8(o->dtype)) {
    for (size_t d = 0; d < row.size(); ++d)
      row[d] = static_cast<float>(decode8(o->dtype, at[d]));
    return;
  }
  const auto *elements = reinterpret_cast<const uint16_t *>(at);
  for (size_t d = 0; d < row.size(); ++d)
    row[d] = decode16(o->dtype, elements[d]);
}

const uint16_t *Workload::kRow(int64_t b, int64_t j, int64_t h,
                               std::vector<uint16_t> &scratch) const {
  return cacheRow(k, b, j, h, scratch);
}

const uint16_t *Workload::vRow(int64_t b, int64_t j, int64_t h,
                               std::vector<uint16_t> &scratch) const {
  return cacheRow(v, b, j, h, scratch);
}

double Workload::kScale(int64_t b, int64_t j, int64_t h, int64_t d) const {
  return cacheScale(k, b, j, h, d);
}

double Workload::vScale(int64_t b, int64_t j, int64_t h, int64_t d) const {
  return cacheScale(v, b, j, h, d);
}

int64_t Workload::cachePlace(const CacheTensors &cache, const HostTensor &t,
                             int64_t b, int64_t j, int64_t h) const {
  const CacheRow &row = cache.data == k.data ? problem().k : problem().v;
  int64_t first = &t == cache.data ? row.headDimOffset : 0;
  switch (problem().cache) {
  case Layout::Dense:
    break;
  case Layout::Ragged:
    return (cache.offsets->integer(b) + j) * t.strides[0] + h * t.strides[1] +
           first;
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
  return b * t.strides[0] + j * t.strides[1] + h * t.strides[2] + first;
}

const uint16_t *Workload::cacheRow(const CacheTensors &cache, int64_t b,
                                   int64_t j, int64_t h,
                                   std::vector<uint16_t> &scratch) const {
  int64_t at = cachePlace(cache, *cache.data, b, j, h);
  if (!cache.quantized)
    return cache.data->as<uint16_t>() + at;
  return widened(
      problem(), cache.quantized->dtype, cache.data->as<uint8_t>() + at,
      cache.data == k.data ? problem().headSize : problem().valueHeadSize,
      scratch);
}

int64_t Workload::scalePlace(const CacheTensors &cache, int64_t b, int64_t j,
                             int64_t h, int64_t d) const {
  int64_t group = *cache.quantized->granularity;
  const HostTensor &t = *cache.scales;
  if (group <= 0)
    return group == 0 ? 0 : h * t.strides[0];
  return cachePlace(cache, t, b, j, h) + d / group;
}

double Workload::cacheScale(const CacheTensors &cache, int64_t b, int64_t j,
                            int64_t h, int64_t d) const {
  if (!cache.scales)
    return 1;
  int64_t at = scalePlace(cache, b, j, h, d);
  const HostTensor &t = *cache.scales;
  return t.dtype == DType::F32 ? t.as<float>()[at]
                               : decode16(t.dtype, t.as<uint16_t>()[at]);
}

float Workload::lse(int64_t b, int64_t i, int64_t h) const {
  const HostTensor &t = *lseTensor;
  const float *base = t.as<float>();
  if (qOffsets)
    return base[h * t.strides[0] + (qOffsets->integer(b) + i) * t.strides[1]];
  return base[b * t.strides[0] + h * t.strides[1] + i * t.strides[2]];
}
