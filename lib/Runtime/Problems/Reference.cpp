//===- lib/Runtime/Reference.cpp - Attention on the host --------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Runtime/Reference.h"
#include "../Float8.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

using namespace kvbuf::rt;

// The two inner loops are compiled for several instruction sets, and the one
// for the processor at hand is picked when the program starts.
#if defined(__x86_64__) && defined(__has_attribute)
#if __has_attribute(target_clones)
#define KVBUF_CLONES                                                           \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
#endif
#ifndef KVBUF_CLONES
#define KVBUF_CLONES
#endif

namespace {

/// Eight elements: head sizes are multiples of that.
constexpr int64_t kStep = 8;
using U16 = uint16_t __attribute__((vector_size(16)));
using U32 = uint32_t __attribute__((vector_size(32)));
using F32 = float __attribute__((vector_size(32)));
using F64 = double __attribute__((vector_size(64)));

/// Does a sink count as infinite, as its product with log2(e) does in f32? It
/// has all of a row's weight then.
bool isAllOfRow(float sink) {
  return sink * std::numbers::log2e_v<float> >
         std::numeric_limits<float>::max();
}

#define KVBUF_INLINE inline __attribute__((always_inline))

template <typename V, typename T> KVBUF_INLINE void load(V &v, const T *p) {
  std::memcpy(&v, p, sizeof(V));
}

/// The exact values of eight 16-bit floats.
template <DType type> KVBUF_INLINE void decode8(const uint16_t *p, F32 &out) {
  U16 raw;
  load(raw, p);
  U32 bits = __builtin_convertvector(raw, U32);
  if constexpr (type == DType::BF16) {
    bits <<= 16;
    std::memcpy(&out, &bits, sizeof(out));
    return;
  }
  // As decodeF16, without branches.
  U32 sign = (bits & 0x8000u) << 16, rest = bits & 0x7FFFu;
  U32 shifted = rest << 13, special = shifted | 0x7F800000u;
  F32 scaled;
  std::memcpy(&scaled, &shifted, sizeof(scaled));
  scaled *= 0x1p112f;
  U32 finite, isSpecial = reinterpret_cast<U32>(rest >= 0x7C00u);
  std::memcpy(&finite, &scaled, sizeof(finite));
  finite = (finite & ~isSpecial) | (special & isSpecial) | sign;
  std::memcpy(&out, &finite, sizeof(out));
}

struct Dots {
  double s64;
  float s32;
};

template <DType type>
KVBUF_INLINE Dots dot(const double *q64, const float *q32, const uint16_t *k,
                      int64_t n) {
  F64 a64 = {};
  F32 a32 = {};
  for (int64_t d = 0; d < n; d += kStep) {
    F32 x, y32;
    F64 y64;
    decode8<type>(k + d, x);
    load(y32, q32 + d);
    load(y64, q64 + d);
    a32 += x * y32;
    a64 += __builtin_convertvector(x, F64) * y64;
  }
  Dots dots = {0, 0};
  for (int i = 0; i < kStep; ++i) {
    dots.s64 += a64[i];
    dots.s32 += a32[i];
  }
  return dots;
}

/// acc += p * v, in both precisions.
template <DType type>
KVBUF_INLINE void accumulate(double *acc64, float *acc32, double p64, float p32,
                             const uint16_t *v, int64_t n) {
  for (int64_t d = 0; d < n; d += kStep) {
    F32 x, y32;
    F64 y64;
    decode8<type>(v + d, x);
    load(y32, acc32 + d);
    load(y64, acc64 + d);
    y32 += x * p32;
    y64 += __builtin_convertvector(x, F64) * p64;
    std::memcpy(acc32 + d, &y32, sizeof(y32));
    std::memcpy(acc64 + d, &y64, sizeof(y64));
  }
}

KVBUF_CLONES Dots dotOf(DType type, const double *q64, const float *q32,
                        const uint16_t *k, int64_t n) {
  return type == DType::BF16 ? dot<DType::BF16>(q64, q32, k, n)
                             : dot<DType::F16>(q64, q32, k, n);
}

KVBUF_CLONES void accumulateOf(DType type, double *acc64, float *acc32,
                               double p64, float p32, const uint16_t *v,
                               int64_t n) {
  if (type == DType::BF16)
    accumulate<DType::BF16>(acc64, acc32, p64, p32, v, n);
  else
    accumulate<DType::F16>(acc64, acc32, p64, p32, v, n);
}

/// A weight of at most 1 as an operand beside elements of `type`: those of 8
/// bits are e4m3, and small ones are not lost.
float roundWeight(DType type, float weight) {
  if (!isFloat8(type))
    return roundTo(type, weight);
  bool fnuz = type == DType::F8E4M3FNUZ || type == DType::F8E5M2FNUZ;
  DType rounded = fnuz ? DType::F8E4M3FNUZ : DType::F8E4M3FN;
  // The largest power of two that leaves room for what is a little above 1.
  double gain = fnuz ? 128 : 256;
  return static_cast<float>(decode8(rounded, encode8(rounded, weight * gain)) /
                            gain);
}

/// What kernels multiply scales of V's tokens by.
constexpr float kTokenScaleGain = 256;

/// A weight times a scale of V as kernels multiply it where O has more bits
/// than bf16: the sum of two numbers of f16, of which the first is below it
/// where the second may not be 0, as beside infinite elements of V. Scales may
/// be so small that the second one has few bits.
float roundScaledWeight(DType v, float weight) {
  float scaled = weight * kTokenScaleGain, most = roundTo(DType::F16, scaled);
  if (!std::isfinite(most))
    return weight;
  if (v == DType::F8E5M2 && scaled != 0 && std::abs(most) >= std::abs(scaled)) {
    double below = std::abs(most) * (1 - 0x1p-20);
    most -= std::copysign(static_cast<float>(ulpOf(DType::F16, below)), most);
  }
  return (most + roundTo(DType::F16, scaled - most)) / kTokenScaleGain;
}

/// An element of O as it is stored; of 8 bits the largest one for what exceeds
/// it.
float roundOutput(DType type, float value) {
  return isFloat8(type)
             ? static_cast<float>(decode8(type, encode8(type, value)))
             : roundTo(type, value);
}

} // namespace

/// Elements that have a scale together.
static int64_t groupOf(const std::optional<QuantizedSpec> &quantized,
                       int64_t all) {
  int64_t group = quantized ? quantized->granularity.value_or(0) : 0;
  return group > 0 ? group : all;
}

/// What a kernel makes of an element of a packed row.
static float widenedOf(DType wide, double x) {
  return roundTo(wide, static_cast<float>(x));
}

void Reference::cap(double &a, float &b) const {
  const AttentionProblem &p = w.problem();
  if (p.softcap <= 0)
    return;
  const float cap32 = static_cast<float>(p.softcap);
  a = p.softcap * std::tanh(a / p.softcap);
  b = cap32 * std::tanh(b / cap32);
}

void Reference::scorePacked(const RowId &row, const Keys &keys, int64_t j) {
  const AttentionProblem &p = w.problem();
  const DType wide = p.wideDtype();
  w.packedRow(row.b, j, keys.head, packed);
  Dots dots{0, 0};
  double ofWidened = 0;
  for (int64_t d = 0; d < p.headSize; ++d) {
    dots.s64 += q64[d] * packed[d];
    dots.s32 += q32[d] * widenedOf(wide, packed[d]);
    ofWidened += q64[d] * widenedOf(wide, packed[d]);
  }
  double a = dots.s64 * p.scale;
  float b = dots.s32 * static_cast<float>(p.scale), unused = 0;
  cap(a, b);
  s64[j - keys.first] = a;
  s32[j - keys.first] = b;
  ofWidened *= p.scale;
  cap(ofWidened, unused);
  widened.push_back(ofWidened);
}

void Reference::score(const RowId &row, const Keys &keys, Sums &sums) {
  const AttentionProblem &p = w.problem();
  const int64_t n = p.headSize, group = groupOf(p.kQuantized, n);
  const DType wide = p.wideDtype();
  const float scale32 = static_cast<float>(p.scale);
  s64.resize(keys.last - keys.first);
  s32.resize(keys.last - keys.first);
  widened.clear();
  for (int64_t j = keys.first; j < keys.last; ++j) {
    double &a = s64[j - keys.first];
    float &b = s32[j - keys.first];
    if (p.packed) {
      scorePacked(row, keys, j);
    } else {
      Dots dots{0, 0};
      const uint16_t *k = w.kRow(row.b, j, keys.head, row16);
      for (int64_t d = 0; d < n; d += group) {
        Dots part = dotOf(wide, q64.data() + d, q32.data() + d, k + d,
                          std::min(group, n - d));
        double own = w.kScale(row.b, j, keys.head, d);
        dots.s64 += part.s64 * own;
        dots.s32 += part.s32 * static_cast<float>(own);
      }
      a = dots.s64 * p.scale;
      b = dots.s32 * scale32;
      cap(a, b);
    }
    sums.m64 = std::max(sums.m64, a);
    sums.m32 = std::max(sums.m32, b);
  }
}

void Reference::weigh(const RowId &row, const Keys &keys, Sums &sums,
                      RowResult &result) {
  const AttentionProblem &p = w.problem();
  const int64_t columns = p.valueHeadSize,
                group = groupOf(p.vQuantized, columns);
  const DType wide = p.wideDtype();
  const bool isPair = p.vQuantized &&
                      p.vQuantized->granularity.value_or(0) > 0 &&
                      !isFloat8(p.dtype) && p.outDtype != DType::BF16;
  for (int64_t j = keys.first; j < keys.last; ++j) {
    double p64 = std::exp(s64[j - keys.first] - sums.m64);
    float p32 = std::exp(s32[j - keys.first] - sums.m32);
    sums.l64 += p64;
    sums.l32 += p32; // the sum is of the unrounded weights
    p32 = roundWeight(p.dtype, p32);
    if (p.packed) {
      w.packedRow(row.b, j, keys.head, packed);
      for (int64_t d = 0; d < columns; ++d) {
        result.reference[d] += p64 * packed[d];
        result.baseline[d] += p32 * widenedOf(wide, packed[d]);
      }
      continue;
    }
    const uint16_t *v = w.vRow(row.b, j, keys.head, row16);
    for (int64_t d = 0; d < columns; d += group) {
      double own = w.vScale(row.b, j, keys.head, d);
      float own32 = p32 * static_cast<float>(own);
      if (isPair)
        own32 = roundScaledWeight(p.vQuantized->dtype, own32);
      accumulateOf(wide, result.reference.data() + d,
                   result.baseline.data() + d, p64 * own, own32, v + d,
                   std::min(group, columns - d));
    }
  }
}

void Reference::compute(const RowId &row, RowResult &result) {
  const AttentionProblem &p = w.problem();
  int64_t n = p.headSize, columns = p.valueHeadSize;
  auto [first, last] = w.visible(row.b, row.i);
  const Keys keys{first, last, row.h / (p.heads / p.kvHeads)};
  result.keys = last - first;
  result.reference.assign(columns, 0.0);
  result.baseline.assign(columns, 0.0f);

  q64.resize(n);
  q32.resize(n);
  const uint16_t *q = w.qRow(row.b, row.i, row.h, row16);
  for (int64_t d = 0; d < n; ++d)
    q64[d] = q32[d] = decode16(p.wideDtype(), q[d]);

  Sums sums{-std::numeric_limits<double>::infinity(), 0,
            -std::numeric_limits<float>::infinity(), 0};
  score(row, keys, sums);
  float sink = p.sink ? w.part("sink")->as<float>()[row.h] : 0;
  if (p.sink) {
    sums.m64 = std::max(sums.m64, static_cast<double>(sink));
    sums.m32 = std::max(sums.m32, sink);
  }
  if (p.sink && isAllOfRow(sink)) {
    result.lse = std::numeric_limits<double>::infinity();
    return;
  }
  if (result.keys == 0) {
    // Without keys O is 0, and all of the weight is the sink's.
    result.lse = p.sink ? sink : -std::numeric_limits<double>::infinity();
    return;
  }
  double sink64 = p.sink ? std::exp(sink - sums.m64) : 0;
  sums.l64 = sink64;
  sums.l32 = p.sink ? std::exp(sink - sums.m32) : 0;
  weigh(row, keys, sums, result);
  for (int64_t d = 0; d < columns; ++d) {
    result.reference[d] /= sums.l64;
    if (isFloat8(p.outDtype))
      result.reference[d] = std::clamp(
          result.reference[d], -largest8(p.outDtype), largest8(p.outDtype));
    result.baseline[d] = roundOutput(p.outDtype, result.baseline[d] / sums.l32);
  }
  double ofKernels = sums.l64;
  if (p.packed) {
    ofKernels = sink64;
    for (double s : widened)
      ofKernels += std::exp(s - sums.m64);
  }
  result.lse = sums.m64 + std::log(ofKernels);
}
