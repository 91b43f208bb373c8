//===- lib/Runtime/WorkloadData.cpp - Tensors and their contents *- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Random.h"
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

enum Stream : uint64_t { kQuery = 1, kKey, kValue, kSink, kDirection };

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
// Filling
//===----------------------------------------------------------------------===//

CheckResult Workload::check(const CheckOptions &options) const {
  return checkOutputs(*this, options);
}

double Workload::operations() const {
  return 4 * static_cast<double>(problem().headSize * problem().heads) *
         visiblePairs();
}

void Workload::allocate() {
  allocateAll([&](const std::string &name) {
    return problemShape(problem(), values, name);
  });
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
