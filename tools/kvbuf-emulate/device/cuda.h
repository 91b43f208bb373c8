// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What kernels in CUDA use, on top of clang's own headers for it: enough to
// compile them without NVIDIA's toolkit. Of the host's functions there is none.

#pragma once
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((managed))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __grid_constant__ __attribute__((grid_constant))
#define __CUDACC__
#define CUDA_VERSION 12080
#define CUDART_VERSION CUDA_VERSION
// The guards of the toolkit's headers, which NVIDIA's samples ask for.
#define __CUDA_RUNTIME_H__
#define __DRIVER_TYPES_H__

#include <__clang_cuda_math_forward_declares.h>
#include <cmath>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <utility>

#include "kvbuf_common.h"

// Each of these needs those before it.
// clang-format off
#include <__clang_cuda_builtin_vars.h>
#include <__clang_cuda_libdevice_declares.h>
#include <__clang_cuda_device_functions.h>
#include <__clang_cuda_math.h>
#include <__clang_cuda_cmath.h>
typedef uint32_t cuuint32_t; // of cuda.h, which clang's header wants
// clang-format on

// Addresses of shared memory as assembly takes them.
static inline __device__ size_t __cvta_generic_to_shared(const void *p) {
  return (size_t)(const void __attribute__((address_space(3))) *)p;
}
static inline __device__ size_t __cvta_generic_to_global(const void *p) {
  return (size_t)(const void __attribute__((address_space(1))) *)p;
}
// Of which memory a pointer is.
#define KVBUF_SPACE(NAME, SPACE)                                               \
  static inline __device__ unsigned NAME(const void *p) {                      \
    return __nvvm_isspacep_##SPACE(p);                                         \
  }
KVBUF_SPACE(__isGlobal, global)
KVBUF_SPACE(__isShared, shared)
KVBUF_SPACE(__isConstant, const)
KVBUF_SPACE(__isLocal, local)
#undef KVBUF_SPACE

#include <__clang_cuda_intrinsics.h>

extern "C" {
__device__ int vprintf(const char *, const char *);
__device__ int printf(const char *, ...);
__device__ void __assertfail(const char *message, const char *file,
                             unsigned line, const char *function, size_t size);
__device__ static inline void __assert_fail(const char *message,
                                            const char *file, unsigned line,
                                            const char *function) {
  __assertfail(message, file, line, function, 1);
}
}

// NVIDIA's library has these; here they are clang's own.
extern "C" {
inline __device__ int __nv_popc(unsigned x) { return __builtin_popcount(x); }
inline __device__ int __nv_popcll(unsigned long long x) {
  return __builtin_popcountll(x);
}
inline __device__ int __nv_clz(int x) { return x ? __builtin_clz(x) : 32; }
inline __device__ int __nv_clzll(long long x) {
  return x ? __builtin_clzll(x) : 64;
}
inline __device__ int __nv_min(int a, int b) { return a < b ? a : b; }
inline __device__ int __nv_max(int a, int b) { return a > b ? a : b; }
inline __device__ int __nv_ffs(int x) { return __builtin_ffs(x); }
inline __device__ int __nv_ffsll(long long x) { return __builtin_ffsll(x); }
inline __device__ unsigned __nv_brev(unsigned x) {
  return __builtin_bitreverse32(x);
}
inline __device__ unsigned long long __nv_brevll(unsigned long long x) {
  return __builtin_bitreverse64(x);
}
}

#if __CUDA_ARCH__ >= 700
// Lanes with the same bits.
template <typename T>
static inline __device__ unsigned __match_any_sync(unsigned lanes, T v) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "4 or 8 bytes");
  if constexpr (sizeof(T) == 8)
    return __nvvm_match_any_sync_i64(lanes, __builtin_bit_cast(long long, v));
  else
    return __nvvm_match_any_sync_i32(lanes, __builtin_bit_cast(int, v));
}
template <typename T>
static inline __device__ unsigned __match_all_sync(unsigned lanes, T v,
                                                   int *same) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "4 or 8 bytes");
  if constexpr (sizeof(T) == 8)
    return __nvvm_match_all_sync_i64p(lanes, __builtin_bit_cast(long long, v),
                                      same);
  else
    return __nvvm_match_all_sync_i32p(lanes, __builtin_bit_cast(int, v), same);
}
#endif

// C++'s functions of a float, which clang declares and NVIDIA's headers define.
#define KVBUF_FLOAT(NAME)                                                      \
  static inline __device__ float NAME(float x) { return NAME##f(x); }
#define KVBUF_FLOAT2(NAME)                                                     \
  static inline __device__ float NAME(float x, float y) {                      \
    return NAME##f(x, y);                                                      \
  }
#define KVBUF_INTEGER(TYPE, NAME)                                              \
  static inline __device__ TYPE NAME(float x) { return NAME##f(x); }
// clang-format off
KVBUF_FLOAT(acosh) KVBUF_FLOAT(asinh) KVBUF_FLOAT(atanh) KVBUF_FLOAT(cbrt)
KVBUF_FLOAT(erf) KVBUF_FLOAT(erfc) KVBUF_FLOAT(exp2) KVBUF_FLOAT(expm1)
KVBUF_FLOAT(lgamma) KVBUF_FLOAT(log1p) KVBUF_FLOAT(log2) KVBUF_FLOAT(logb)
KVBUF_FLOAT(nearbyint) KVBUF_FLOAT(rint) KVBUF_FLOAT(round)
KVBUF_FLOAT(tgamma) KVBUF_FLOAT(trunc)
KVBUF_FLOAT2(copysign) KVBUF_FLOAT2(fdim) KVBUF_FLOAT2(fmax)
KVBUF_FLOAT2(fmin) KVBUF_FLOAT2(hypot) KVBUF_FLOAT2(nextafter)
KVBUF_FLOAT2(remainder)
KVBUF_INTEGER(int, ilogb) KVBUF_INTEGER(long, lrint)
KVBUF_INTEGER(long, lround) KVBUF_INTEGER(long long, llrint)
KVBUF_INTEGER(long long, llround);
// clang-format on
#undef KVBUF_FLOAT
#undef KVBUF_FLOAT2
#undef KVBUF_INTEGER
static inline __device__ float fma(float x, float y, float z) {
  return fmaf(x, y, z);
}
static inline __device__ double nan(const char *) { return __builtin_nan(""); }
static inline __device__ float nanf(const char *) { return __builtin_nanf(""); }
static inline __device__ float remquo(float x, float y, int *quotient) {
  return remquof(x, y, quotient);
}
static inline __device__ float scalbln(float x, long n) {
  return scalblnf(x, n);
}
static inline __device__ float scalbn(float x, int n) { return scalbnf(x, n); }

// What CUDA's headers have on the host, too.
using std::isfinite;
using std::isinf;
using std::isnan;
static inline __host__ float rsqrtf(float x) { return 1 / __builtin_sqrtf(x); }
static inline __host__ double rsqrt(double x) { return 1 / __builtin_sqrt(x); }

// Hints to caches, which change no result.
template <typename T> static inline __device__ T __ldlu(const T *p) {
  return *p;
}
template <typename T> static inline __device__ T __ldca(const T *p) {
  return *p;
}
// Of types that clang's header has not.
template <typename T> static inline __device__ T __ldg(const T *p) {
  return *p;
}
template <typename T> static inline __device__ T __ldcg(const T *p) {
  return *p;
}
template <typename T> static inline __device__ T __ldcs(const T *p) {
  return *p;
}
template <typename T> static inline __device__ void __stcs(T *p, T v) {
  *p = v;
}
template <typename T> static inline __device__ void __stcg(T *p, T v) {
  *p = v;
}
template <typename T> static inline __device__ void __stwb(T *p, T v) {
  *p = v;
}

#define KVBUF_INDEX(NAME)                                                      \
  __device__ inline __cuda_builtin_##NAME##_t::operator dim3() const {         \
    return dim3(x, y, z);                                                      \
  }                                                                            \
  __device__ inline __cuda_builtin_##NAME##_t::operator uint3() const {        \
    return {x, y, z};                                                          \
  }
KVBUF_INDEX(threadIdx)
KVBUF_INDEX(blockIdx)
KVBUF_INDEX(blockDim)
KVBUF_INDEX(gridDim)
#undef KVBUF_INDEX

// min and max of two int are clang's on the device.
#define KVBUF_LEAST(SIDE, TYPE)                                                \
  static inline SIDE TYPE min(TYPE a, TYPE b) { return a < b ? a : b; }        \
  static inline SIDE TYPE max(TYPE a, TYPE b) { return a > b ? a : b; }
KVBUF_LEAST(__host__, int)
KVBUF_LEAST(__host__ __device__, unsigned)
KVBUF_LEAST(__host__ __device__, long)
KVBUF_LEAST(__host__ __device__, unsigned long)
KVBUF_LEAST(__host__ __device__, long long)
KVBUF_LEAST(__host__ __device__, unsigned long long)
#undef KVBUF_LEAST
// Of two types of one size, the unsigned one.
#define KVBUF_LEAST(TYPE)                                                      \
  static inline __host__ __device__ unsigned TYPE min(TYPE a,                  \
                                                      unsigned TYPE b) {       \
    return min((unsigned TYPE)a, b);                                           \
  }                                                                            \
  static inline __host__ __device__ unsigned TYPE min(unsigned TYPE a,         \
                                                      TYPE b) {                \
    return min(a, (unsigned TYPE)b);                                           \
  }                                                                            \
  static inline __host__ __device__ unsigned TYPE max(TYPE a,                  \
                                                      unsigned TYPE b) {       \
    return max((unsigned TYPE)a, b);                                           \
  }                                                                            \
  static inline __host__ __device__ unsigned TYPE max(unsigned TYPE a,         \
                                                      TYPE b) {                \
    return max(a, (unsigned TYPE)b);                                           \
  }
KVBUF_LEAST(int)
KVBUF_LEAST(long)
KVBUF_LEAST(long long)
#undef KVBUF_LEAST
#define KVBUF_LEAST(TYPE, LIBRARY)                                             \
  static inline __device__ TYPE min(TYPE a, TYPE b) {                          \
    return __nv_fmin##LIBRARY(a, b);                                           \
  }                                                                            \
  static inline __device__ TYPE max(TYPE a, TYPE b) {                          \
    return __nv_fmax##LIBRARY(a, b);                                           \
  }
KVBUF_LEAST(float, f)
KVBUF_LEAST(double, )
#undef KVBUF_LEAST
#define KVBUF_LEAST(NAME)                                                      \
  static inline __device__ double NAME(float a, double b) {                    \
    return NAME((double)a, b);                                                 \
  }                                                                            \
  static inline __device__ double NAME(double a, float b) {                    \
    return NAME(a, (double)b);                                                 \
  }
KVBUF_LEAST(min)
KVBUF_LEAST(max)
#undef KVBUF_LEAST

#define cudaStreamDefault 0
#define KVBUF_HOST(NAME) cuda##NAME
#define KVBUF_MAKE(NAME) make_cuda##NAME
#include "kvbuf_host.h"
#include "kvbuf_texture.h"
#undef KVBUF_HOST
#undef KVBUF_MAKE
// What "<<<...>>>" becomes in a kernel, where it is refused by name.
extern "C" __device__ void *cudaGetParameterBuffer(size_t align, size_t size);
extern "C" __device__ cudaError_t cudaLaunchDevice(void *kernel, void *values,
                                                   dim3 grid, dim3 block,
                                                   unsigned shared,
                                                   cudaStream_t stream);
// And what it becomes on the host.
extern "C" cudaError_t cudaConfigureCall(dim3 grid, dim3 block,
                                         size_t shared = 0,
                                         cudaStream_t stream = 0);
