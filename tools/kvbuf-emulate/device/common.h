// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Types of CUDA and HIP, in front of a program whose kernels are emulated.

#pragma once
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  __attribute__((host, device)) constexpr dim3(unsigned x = 1, unsigned y = 1,
                                               unsigned z = 1)
      : x(x), y(y), z(z) {}
  __attribute__((host, device)) constexpr dim3(uint3 v)
      : x(v.x), y(v.y), z(v.z) {}
  __attribute__((host, device)) constexpr operator uint3() const {
    return {x, y, z};
  }
};

#define KVBUF_VECTORS(NAME, TYPE, ALIGN2, ALIGN4)                              \
  struct NAME##1 { TYPE x; };                                                  \
  struct alignas(ALIGN2) NAME##2 { TYPE x, y; };                               \
  struct alignas(ALIGN4) NAME##4 { TYPE x, y, z, w; };                         \
  static inline                                                                \
      __attribute__((host, device)) NAME##2 make_##NAME##2(TYPE x, TYPE y) {   \
    return {x, y};                                                             \
  }                                                                            \
  static inline __attribute__((host, device)) NAME##4 make_##NAME##4(          \
      TYPE x, TYPE y, TYPE z, TYPE w) {                                        \
    return {x, y, z, w};                                                       \
  }
#define KVBUF_VECTOR3(NAME, TYPE)                                              \
  struct NAME##3 { TYPE x, y, z; };                                            \
  static inline __attribute__((host, device)) NAME##3 make_##NAME##3(          \
      TYPE x, TYPE y, TYPE z) {                                                \
    return {x, y, z};                                                          \
  }
KVBUF_VECTORS(char, signed char, 2, 4)
KVBUF_VECTORS(uchar, unsigned char, 2, 4)
KVBUF_VECTORS(short, short, 4, 8)
KVBUF_VECTORS(ushort, unsigned short, 4, 8)
KVBUF_VECTORS(int, int, 8, 16)
KVBUF_VECTORS(uint, unsigned, 8, 16)
KVBUF_VECTORS(float, float, 8, 16)
KVBUF_VECTORS(longlong, long long, 16, 16)
KVBUF_VECTORS(ulonglong, unsigned long long, 16, 16)
KVBUF_VECTORS(double, double, 16, 16)
KVBUF_VECTOR3(int, int)
KVBUF_VECTOR3(float, float)
KVBUF_VECTOR3(double, double)
#undef KVBUF_VECTORS
#undef KVBUF_VECTOR3
static inline
    __attribute__((host, device)) uint3 make_uint3(unsigned x, unsigned y,
                                                   unsigned z) {
  return {x, y, z};
}

// Atomic operations in the scopes that both languages have.
#define KVBUF_ATOMIC(TYPE, NAME, CALL)                                         \
  static inline __attribute__((device)) TYPE NAME(TYPE *p, TYPE v) {           \
    return CALL;                                                               \
  }
#define KVBUF_ATOMIC_OF(TYPE, SUFFIX, SCOPE)                                   \
  KVBUF_ATOMIC(TYPE, atomicAdd##SUFFIX,                                        \
               __scoped_atomic_fetch_add(p, v, __ATOMIC_RELAXED, SCOPE))
#define KVBUF_ATOMIC_FLOAT(TYPE, BITS, SUFFIX, SCOPE)                          \
  KVBUF_ATOMIC_OF(TYPE, SUFFIX, SCOPE)                                         \
  static inline __attribute__((device)) TYPE atomicExch##SUFFIX(TYPE *p,       \
                                                                TYPE v) {      \
    return __builtin_bit_cast(                                                 \
        TYPE, __scoped_atomic_exchange_n(reinterpret_cast<BITS *>(p),          \
                                         __builtin_bit_cast(BITS, v),          \
                                         __ATOMIC_RELAXED, SCOPE));            \
  }
#define KVBUF_ATOMIC_INT(TYPE, SUFFIX, SCOPE)                                  \
  KVBUF_ATOMIC_OF(TYPE, SUFFIX, SCOPE)                                         \
  KVBUF_ATOMIC(TYPE, atomicExch##SUFFIX,                                       \
               __scoped_atomic_exchange_n(p, v, __ATOMIC_RELAXED, SCOPE))      \
  KVBUF_ATOMIC(TYPE, atomicSub##SUFFIX,                                        \
               __scoped_atomic_fetch_sub(p, v, __ATOMIC_RELAXED, SCOPE))       \
  KVBUF_ATOMIC(TYPE, atomicMin##SUFFIX,                                        \
               __scoped_atomic_fetch_min(p, v, __ATOMIC_RELAXED, SCOPE))       \
  KVBUF_ATOMIC(TYPE, atomicMax##SUFFIX,                                        \
               __scoped_atomic_fetch_max(p, v, __ATOMIC_RELAXED, SCOPE))       \
  KVBUF_ATOMIC(TYPE, atomicAnd##SUFFIX,                                        \
               __scoped_atomic_fetch_and(p, v, __ATOMIC_RELAXED, SCOPE))       \
  KVBUF_ATOMIC(TYPE, atomicOr##SUFFIX,                                         \
               __scoped_atomic_fetch_or(p, v, __ATOMIC_RELAXED, SCOPE))        \
  KVBUF_ATOMIC(TYPE, atomicXor##SUFFIX,                                        \
               __scoped_atomic_fetch_xor(p, v, __ATOMIC_RELAXED, SCOPE))       \
  static inline __attribute__((device)) TYPE atomicCAS##SUFFIX(                \
      TYPE *p, TYPE expected, TYPE v) {                                        \
    __scoped_atomic_compare_exchange_n(                                        \
        p, &expected, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED, SCOPE);    \
    return expected;                                                           \
  }
#define KVBUF_ATOMICS(SUFFIX, SCOPE)                                           \
  KVBUF_ATOMIC_INT(int, SUFFIX, SCOPE)                                         \
  KVBUF_ATOMIC_INT(unsigned, SUFFIX, SCOPE)                                    \
  KVBUF_ATOMIC(unsigned, atomicInc##SUFFIX,                                    \
               __scoped_atomic_fetch_uinc(p, v, __ATOMIC_RELAXED, SCOPE))      \
  KVBUF_ATOMIC(unsigned, atomicDec##SUFFIX,                                    \
               __scoped_atomic_fetch_udec(p, v, __ATOMIC_RELAXED, SCOPE))      \
  KVBUF_ATOMIC_INT(long long, SUFFIX, SCOPE)                                   \
  KVBUF_ATOMIC_INT(unsigned long long, SUFFIX, SCOPE)                          \
  KVBUF_ATOMIC_FLOAT(float, int, SUFFIX, SCOPE)                                \
  KVBUF_ATOMIC_FLOAT(double, long long, SUFFIX, SCOPE)
KVBUF_ATOMICS(, __MEMORY_SCOPE_DEVICE)
KVBUF_ATOMICS(_block, __MEMORY_SCOPE_WRKGRP)
KVBUF_ATOMICS(_system, __MEMORY_SCOPE_SYSTEM)
#undef KVBUF_ATOMICS
#undef KVBUF_ATOMIC_INT
#undef KVBUF_ATOMIC_FLOAT
#undef KVBUF_ATOMIC_OF
#undef KVBUF_ATOMIC
