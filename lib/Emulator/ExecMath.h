//===- ExecMath.h - Scalar arithmetic that vectorizes -----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Branch-free, so that a loop over the lanes becomes vector code. Included by
// Interpreter.cpp once for each instruction set, inside its namespace.
//
//===----------------------------------------------------------------------===//

static inline float asFloat(uint32_t x) { return __builtin_bit_cast(float, x); }
static inline uint32_t asBits(float x) {
  return __builtin_bit_cast(uint32_t, x);
}

static inline uint32_t toBF16(float x) {
  uint32_t u = asBits(x);
  uint32_t rounded = (u + 0x7FFF + ((u >> 16) & 1)) >> 16;
  return (u & 0x7FFFFFFF) > 0x7F800000 ? (u >> 16) | 0x40 : rounded;
}

static inline float fromBF16(uint32_t x) { return asFloat(x << 16); }

static inline uint32_t toF16(float x) {
  uint32_t u = asBits(x), sign = (u >> 16) & 0x8000, a = u & 0x7FFFFFFF;
  // Below 2^-14 adding 1/2 puts the rounding where f16's denormals end.
  uint32_t small = asBits(asFloat(a) + 0.5f) - 0x3F000000;
  uint32_t normal = (a + 0xC8000FFF + ((a >> 13) & 1)) >> 13;
  uint32_t large = a > 0x7F800000 ? 0x7E00 : 0x7C00;
  uint32_t h = a < 0x38800000 ? small : normal;
  return sign | (a >= 0x47800000 ? large : h);
}

static inline float fromF16(uint32_t h) {
  uint32_t mag = (h & 0x7FFF) << 13;
  // Rebasing the exponent by a product also brings denormals right.
  uint32_t finite = asBits(asFloat(mag) * 0x1p112f);
  uint32_t bits = (h & 0x7C00) == 0x7C00 ? mag | 0x7F800000 : finite;
  return asFloat(bits | (h & 0x8000) << 16);
}

/// The nearest 8-bit float, ties to even, of a format with so many mantissa
/// bits and such a bias; the largest finite one, of code `largest`, for what
/// exceeds it (PTX ISA, "cvt", .satfinite).
static inline uint32_t toFloat8(float x, uint32_t mantissa, uint32_t bias,
                                uint32_t largest) {
  uint32_t u = asBits(x), sign = u >> 24 & 0x80, a = u & 0x7FFFFFFF;
  if (a > 0x7F800000)
    return 0x7F;
  // Units of the last place: of normal numbers the exponent's, of others one.
  uint32_t exponent = std::max(a >> 23, 128 - bias);
  float units = asFloat(a) * std::ldexp(1.0f, 127 + static_cast<int>(mantissa) -
                                                  static_cast<int>(exponent));
  auto whole = static_cast<uint32_t>(std::nearbyint(units));
  uint32_t code = ((exponent + bias - 128) << mantissa) + whole;
  return sign | (a >= 0x7F800000 ? largest : std::min(code, largest));
}
static inline uint32_t toE4M3(float x) { return toFloat8(x, 3, 7, 0x7E); }
static inline uint32_t toE5M2(float x) { return toFloat8(x, 2, 15, 0x7B); }

/// The values of all 8-bit floats of a format with so many mantissa bits and
/// such a bias (OCP's OFP8; CDNA3 ISA, "FP8 and BF8").
struct Float8Table {
  float values[256];

  constexpr Float8Table(int mantissa, int bias, bool fnuz) : values() {
    for (int bits = 0; bits < 256; ++bits) {
      int fraction = bits & ((1 << mantissa) - 1),
          exponent = (bits & 0x7F) >> mantissa,
          largest = (1 << (7 - mantissa)) - 1;
      bool normal = exponent != 0;
      float x = static_cast<float>(fraction + (normal ? 1 << mantissa : 0));
      for (int e = (normal ? exponent : 1) - bias - mantissa; e != 0;
           e += e > 0 ? -1 : 1)
        x *= e > 0 ? 2.0f : 0.5f;
      if (fnuz            ? bits == 0x80
          : mantissa == 2 ? exponent == largest && fraction != 0
                          : (bits & 0x7F) == 0x7F)
        x = __builtin_nanf("");
      else if (!fnuz && mantissa == 2 && exponent == largest)
        x = __builtin_inff();
      values[bits] = bits & 0x80 ? -x : x;
    }
  }
};

/// The table of fp8 (E4M3) or bf8 (E5M2), as OCP or as FNUZ has it.
static inline const float *float8Values(bool bf8, bool fnuz) {
  static constexpr Float8Table tables[] = {
      {3, 7, false}, {3, 8, true}, {2, 15, false}, {2, 16, true}};
  return tables[2 * bf8 + fnuz].values;
}

static inline float flush(float x) {
  return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0.0f, x) : x;
}

// 2^x within about one unit in the last place: the nearest integer by the
// scaling, the rest by Taylor's series, whose next term is below 6e-9.
static inline float exp2Of(float x) {
  float y = x < -160.0f ? -160.0f : x;
  y = y > 160.0f ? 160.0f : y;
  float t = y + 12582912.0f;
  int32_t n = static_cast<int32_t>(asBits(t) - asBits(12582912.0f));
  float f = y - (t - 12582912.0f);
  float p = 1.5252733804e-05f;
  p = __builtin_fmaf(p, f, 1.5403530394e-04f);
  p = __builtin_fmaf(p, f, 1.3333558146e-03f);
  p = __builtin_fmaf(p, f, 9.6181291076e-03f);
  p = __builtin_fmaf(p, f, 5.5504108665e-02f);
  p = __builtin_fmaf(p, f, 2.4022650696e-01f);
  p = __builtin_fmaf(p, f, 6.9314718056e-01f);
  p = __builtin_fmaf(p, f, 1.0f);
  int32_t n1 = n >> 1, n2 = n - n1;
  return p * asFloat(static_cast<uint32_t>(n1 + 127) << 23) *
         asFloat(static_cast<uint32_t>(n2 + 127) << 23);
}

static inline float maxNum(float x, float y) {
  float m = x > y ? x : y;
  m = x == y ? asFloat(asBits(x) & asBits(y)) : m; // +0 above -0
  m = x != x ? y : m;
  return y != y ? x : m;
}
static inline float minNum(float x, float y) {
  float m = x < y ? x : y;
  m = x == y ? asFloat(asBits(x) | asBits(y)) : m;
  m = x != x ? y : m;
  return y != y ? x : m;
}
static inline float maximumOf(float x, float y) {
  float m = x > y ? x : y;
  m = x == y ? asFloat(asBits(x) & asBits(y)) : m;
  return x != x || y != y ? asFloat(0x7FC00000) : m;
}
static inline float minimumOf(float x, float y) {
  float m = x < y ? x : y;
  m = x == y ? asFloat(asBits(x) | asBits(y)) : m;
  return x != x || y != y ? asFloat(0x7FC00000) : m;
}

static inline uint32_t prmt(uint32_t lo, uint32_t hi, uint32_t selector) {
  uint64_t all = static_cast<uint64_t>(hi) << 32 | lo;
  uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    uint32_t s = selector >> (4 * i);
    uint32_t byte = (all >> (8 * (s & 7))) & 0xFF;
    if (s & 8)
      byte = byte & 0x80 ? 0xFF : 0;
    result |= byte << (8 * i);
  }
  return result;
}

// Float to integer as PTX's cvt: toward zero, saturating, NaN to zero.
template <typename To, typename From>
static inline To toInt(From x, From least, From above) {
  if (x != x)
    return 0;
  if (x < least)
    return static_cast<To>(-1) < To(0)
               ? static_cast<To>(To(1) << (sizeof(To) * 8 - 1))
               : To(0);
  if (x >= above)
    return static_cast<To>(-1) < To(0)
               ? static_cast<To>(~(To(1) << (sizeof(To) * 8 - 1)))
               : static_cast<To>(-1);
  return static_cast<To>(x);
}
