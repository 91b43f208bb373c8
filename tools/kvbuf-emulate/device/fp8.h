// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Floats of 8 bits as CUDA names them. All arithmetic is that of fp32.

#pragma once
#include <kvbuf_half.h>
#define KVBUF_BOTH static inline __attribute__((host, device))

typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };

/// Rounded to nearest, ties to even. Of e4m3 0x7F is no number and there is no
/// infinity, of e5m2 0x7C is infinity.
KVBUF_BOTH __nv_fp8_storage_t __nv_cvt_float_to_fp8(
    float x, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind) {
  bool e4m3 = kind == __NV_E4M3;
  int fraction = e4m3 ? 3 : 2, bias = e4m3 ? 7 : 15;
  int most = e4m3 ? 0x7E : 0x7B, beyond = e4m3 ? 0x7F : 0x7C;
  unsigned bits = __builtin_bit_cast(unsigned, x);
  unsigned sign = bits >> 24 & 0x80;
  float a = __builtin_fabsf(x);
  if (a != a)
    return 0x7F;
  if (a >= 1 << 17) // infinity, too
    return sign | (saturate == __NV_SATFINITE ? most : beyond);
  int power = static_cast<int>(bits >> 23 & 0xFF) - 127;
  if (power < 1 - bias)
    power = 1 - bias;
  // A power of two scales the last place to 1; adding 2^23 rounds there.
  float places = a * __builtin_bit_cast(float, (127u + fraction - power) << 23);
  int whole = static_cast<int>(places);
  float rest = places - static_cast<float>(whole);
  whole += rest > 0.5f || (rest == 0.5f && (whole & 1));
  int code = (power + bias) * (1 << fraction) + whole - (1 << fraction);
  if (code > most)
    code = saturate == __NV_SATFINITE ? most : beyond;
  return sign | code;
}
KVBUF_BOTH float kvbufFloatOf(__nv_fp8_storage_t x,
                              __nv_fp8_interpretation_t kind) {
  bool e4m3 = kind == __NV_E4M3;
  int fraction = e4m3 ? 3 : 2, bias = e4m3 ? 7 : 15;
  int magnitude = x & 0x7F;
  unsigned sign = (x & 0x80u) << 24;
  if (e4m3 ? magnitude == 0x7F : magnitude > 0x7C)
    return __builtin_nanf("");
  if (!e4m3 && magnitude == 0x7C)
    return __builtin_bit_cast(float, sign | 0x7F800000u);
  int power = magnitude >> fraction;
  int whole = magnitude & ((1 << fraction) - 1);
  if (power)
    whole += 1 << fraction;
  else
    power = 1;
  float one = __builtin_bit_cast(float, (127u + power - bias - fraction) << 23);
  float value = static_cast<float>(whole) * one;
  return sign ? -value : value;
}
KVBUF_BOTH __half __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x,
                                          __nv_fp8_interpretation_t kind) {
  return __half(kvbufFloatOf(x, kind));
}
KVBUF_BOTH __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(
    float2 v, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind) {
  return __nv_cvt_float_to_fp8(v.x, saturate, kind) |
         __nv_cvt_float_to_fp8(v.y, saturate, kind) << 8;
}

#define KVBUF_FP8(NAME, KIND)                                                  \
  struct NAME {                                                                \
    __nv_fp8_storage_t __x;                                                    \
    NAME() = default;                                                          \
    __attribute__((host, device)) explicit NAME(float x)                       \
        : __x(__nv_cvt_float_to_fp8(x, __NV_SATFINITE, KIND)) {}               \
    __attribute__((host, device)) explicit NAME(double x)                      \
        : NAME(static_cast<float>(x)) {}                                       \
    __attribute__((host, device)) explicit NAME(int x)                         \
        : NAME(static_cast<float>(x)) {}                                       \
    __attribute__((host, device)) explicit NAME(__half x) : NAME(float(x)) {}  \
    __attribute__((host, device)) explicit NAME(__nv_bfloat16 x)               \
        : NAME(float(x)) {}                                                    \
    __attribute__((host, device)) explicit operator float() const {            \
      return kvbufFloatOf(__x, KIND);                                          \
    }                                                                          \
    __attribute__((host, device)) explicit operator __half() const {           \
      return __half(float(*this));                                             \
    }                                                                          \
    __attribute__((host, device)) explicit operator __nv_bfloat16() const {    \
      return __nv_bfloat16(float(*this));                                      \
    }                                                                          \
    __attribute__((host, device)) explicit operator bool() const {             \
      return (__x & 0x7F) != 0;                                                \
    }                                                                          \
  };
KVBUF_FP8(__nv_fp8_e4m3, __NV_E4M3)
KVBUF_FP8(__nv_fp8_e5m2, __NV_E5M2)
#undef KVBUF_FP8
#undef KVBUF_BOTH
typedef __nv_fp8_e4m3 __hip_fp8_e4m3;
typedef __nv_fp8_e5m2 __hip_fp8_e5m2;
