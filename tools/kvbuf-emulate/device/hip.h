// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What kernels in HIP use, on top of clang's own headers for it: enough to
// compile them without ROCm. Of the host's functions there is none.

#pragma once
#define __HIP_PLATFORM_AMD__ 1
#define __HIP_PLATFORM_CLANG__ 1
#include <__clang_hip_runtime_wrapper.h>

#include "kvbuf_common.h"

#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#ifndef __forceinline__
#define __forceinline__ __inline__ __attribute__((always_inline))
#endif

#define hipStreamDefault 0
#define HIP_SYMBOL(NAME) NAME
#define KVBUF_HOST(NAME) hip##NAME
#define KVBUF_MAKE(NAME) make_hip##NAME
#include "kvbuf_host.h"
#include "kvbuf_texture.h"
#undef KVBUF_HOST
#undef KVBUF_MAKE

extern "C" {
__device__ size_t __ockl_get_local_id(unsigned);
__device__ size_t __ockl_get_group_id(unsigned);
__device__ size_t __ockl_get_local_size(unsigned);
__device__ size_t __ockl_get_num_groups(unsigned);
__device__ int printf(const char *, ...);
__device__ void __assertfail(const char *message, const char *file,
                             unsigned line, const char *function, size_t size);
__device__ static inline void __assert_fail(const char *message,
                                            const char *file, unsigned line,
                                            const char *function) {
  __assertfail(message, file, line, function, 1);
}
}

// A place or a size in three dimensions.
#define KVBUF_INDEX(NAME, FUNCTION)                                            \
  struct NAME##_of_kernels {                                                   \
    __declspec(property(get = get_x)) unsigned x;                              \
    __declspec(property(get = get_y)) unsigned y;                              \
    __declspec(property(get = get_z)) unsigned z;                              \
    static __device__ unsigned get_x() { return FUNCTION(0); }                 \
    static __device__ unsigned get_y() { return FUNCTION(1); }                 \
    static __device__ unsigned get_z() { return FUNCTION(2); }                 \
    __device__ operator dim3() const {                                         \
      return dim3(get_x(), get_y(), get_z());                                  \
    }                                                                          \
  };                                                                           \
  extern const __device__ __attribute__((weak)) NAME##_of_kernels NAME;
KVBUF_INDEX(threadIdx, __ockl_get_local_id)
KVBUF_INDEX(blockIdx, __ockl_get_group_id)
KVBUF_INDEX(blockDim, __ockl_get_local_size)
KVBUF_INDEX(gridDim, __ockl_get_num_groups)
#undef KVBUF_INDEX
struct warpSize_of_kernels {
  __device__ operator int() const {
    return static_cast<int>(__builtin_amdgcn_wavefrontsize());
  }
};
extern const __device__ __attribute__((weak)) warpSize_of_kernels warpSize;

static inline __device__ void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
static inline __device__ void __threadfence() {
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
}
static inline __device__ void __threadfence_block() {
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup");
}
static inline __device__ void __threadfence_system() {
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "");
}

static inline __device__ unsigned __lane_id() {
  return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
}
static inline __device__ unsigned long long __ballot(int predicate) {
  return __builtin_amdgcn_ballot_w64(predicate);
}
static inline __device__ int __any(int predicate) {
  return __ballot(predicate) != 0;
}
static inline __device__ int __all(int predicate) {
  return __ballot(!predicate) == 0;
}
static inline __device__ unsigned long long __activemask() {
  return __ballot(1);
}

// Bits and integers.
#define KVBUF_FUNCTION(RESULT, NAME, TYPE, CALL)                               \
  static inline __device__ RESULT NAME(TYPE x) { return CALL; }
#define KVBUF_FUNCTION2(RESULT, NAME, TYPE, CALL)                              \
  static inline __device__ RESULT NAME(TYPE x, TYPE y) { return CALL; }
// clang-format off
KVBUF_FUNCTION(int, __ffs, int, __builtin_ffs(x))
KVBUF_FUNCTION(int, __ffs, unsigned, __builtin_ffs(x))
KVBUF_FUNCTION(int, __ffsll, long long, __builtin_ffsll(x))
KVBUF_FUNCTION(int, __ffsll, unsigned long long, __builtin_ffsll(x))
KVBUF_FUNCTION(int, __ffsll, unsigned long, __builtin_ffsll(x))
KVBUF_FUNCTION(int, __popc, unsigned, __builtin_popcount(x))
KVBUF_FUNCTION(int, __popcll, unsigned long long, __builtin_popcountll(x))
KVBUF_FUNCTION(int, __clz, int, x ? __builtin_clz(x) : 32)
KVBUF_FUNCTION(int, __clzll, long long, x ? __builtin_clzll(x) : 64)
KVBUF_FUNCTION(unsigned, __brev, unsigned, __builtin_bitreverse32(x))
KVBUF_FUNCTION(unsigned long long, __brevll, unsigned long long, __builtin_bitreverse64(x))
KVBUF_FUNCTION2(int, __mul24, int, ((x << 8) >> 8) * ((y << 8) >> 8))
KVBUF_FUNCTION2(unsigned, __umul24, unsigned, (x & 0xFFFFFF) * (y & 0xFFFFFF))
KVBUF_FUNCTION2(int, __mulhi, int, int((long long)x * y >> 32))
KVBUF_FUNCTION2(unsigned, __umulhi, unsigned, unsigned((unsigned long long)x * y >> 32))
KVBUF_FUNCTION2(int, __hadd, int, int(((long long)x + y) >> 1))
KVBUF_FUNCTION2(unsigned, __uhadd, unsigned, unsigned(((unsigned long long)x + y) >> 1))
// clang-format on
#undef KVBUF_FUNCTION
#undef KVBUF_FUNCTION2
static inline __device__ unsigned long long __umul64hi(unsigned long long x,
                                                       unsigned long long y) {
  unsigned long long a = x >> 32, b = x & ~0u, c = y >> 32, d = y & ~0u;
  unsigned long long low = b * d, middle = a * d + (low >> 32);
  unsigned long long other = b * c + (middle & ~0u);
  return a * c + (middle >> 32) + (other >> 32);
}
static inline __device__ long long __mul64hi(long long x, long long y) {
  return static_cast<long long>(__umul64hi(x, y)) - (x < 0 ? y : 0) -
         (y < 0 ? x : 0);
}
static inline __device__ unsigned __funnelshift_l(unsigned low, unsigned high,
                                                  unsigned by) {
  return ((unsigned long long)high << 32 | low) << (by & 31) >> 32;
}
static inline __device__ unsigned __funnelshift_r(unsigned low, unsigned high,
                                                  unsigned by) {
  return ((unsigned long long)high << 32 | low) >> (by & 31);
}

// The same bits, and numbers of other types.
#define KVBUF_BITS(NAME, TO, FROM)                                             \
  static inline __device__ TO NAME(FROM x) { return __builtin_bit_cast(TO, x); }
KVBUF_BITS(__float_as_int, int, float)
KVBUF_BITS(__float_as_uint, unsigned, float)
KVBUF_BITS(__int_as_float, float, int)
KVBUF_BITS(__uint_as_float, float, unsigned)
KVBUF_BITS(__double_as_longlong, long long, double)
KVBUF_BITS(__longlong_as_double, double, long long)
#undef KVBUF_BITS
#define KVBUF_WHOLE(NAME, TO, FROM, SUFFIX)                                    \
  static inline __device__ TO NAME##_rn(FROM x) {                              \
    return static_cast<TO>(__builtin_rint##SUFFIX(x));                         \
  }                                                                            \
  static inline __device__ TO NAME##_rz(FROM x) { return static_cast<TO>(x); } \
  static inline __device__ TO NAME##_rd(FROM x) {                              \
    return static_cast<TO>(__builtin_floor##SUFFIX(x));                        \
  }                                                                            \
  static inline __device__ TO NAME##_ru(FROM x) {                              \
    return static_cast<TO>(__builtin_ceil##SUFFIX(x));                         \
  }
KVBUF_WHOLE(__float2int, int, float, f)
KVBUF_WHOLE(__float2uint, unsigned, float, f)
KVBUF_WHOLE(__float2ll, long long, float, f)
KVBUF_WHOLE(__float2ull, unsigned long long, float, f)
KVBUF_WHOLE(__double2int, int, double, )
KVBUF_WHOLE(__double2uint, unsigned, double, )
KVBUF_WHOLE(__double2ll, long long, double, )
#undef KVBUF_WHOLE
#define KVBUF_NEAREST(NAME, TO, FROM)                                          \
  static inline __device__ TO NAME(FROM x) { return static_cast<TO>(x); }
KVBUF_NEAREST(__int2float_rn, float, int)
KVBUF_NEAREST(__uint2float_rn, float, unsigned)
KVBUF_NEAREST(__ll2float_rn, float, long long)
KVBUF_NEAREST(__int2double_rn, double, int)
KVBUF_NEAREST(__double2float_rn, float, double)
#undef KVBUF_NEAREST

static inline __device__ unsigned __sad(int x, int y, unsigned z) {
  return (x > y ? (unsigned)x - y : (unsigned)y - x) + z;
}
static inline __device__ unsigned __usad(unsigned x, unsigned y, unsigned z) {
  return (x > y ? x - y : y - x) + z;
}
static inline __device__ unsigned __byte_perm(unsigned x, unsigned y,
                                              unsigned selector) {
  unsigned long long both = (unsigned long long)y << 32 | x;
  unsigned result = 0;
  for (unsigned k = 0; k < 4; ++k)
    result |= unsigned(both >> 8 * (selector >> 4 * k & 7) & 0xFF) << 8 * k;
  return result;
}
template <typename T> static inline __device__ T __ldg(const T *p) {
  return *p;
}
template <typename T> static inline __device__ T unsafeAtomicAdd(T *p, T v) {
  return atomicAdd(p, v);
}

// A barrier that counts, in shared memory.
static inline __device__ int __syncthreads_count(int predicate) {
  __shared__ int count;
  __syncthreads();
  count = 0;
  __syncthreads();
  atomicAdd_block(&count, predicate != 0);
  __syncthreads();
  return count;
}
static inline __device__ int __syncthreads_or(int predicate) {
  return __syncthreads_count(predicate) != 0;
}
static inline __device__ int __syncthreads_and(int predicate) {
  return __syncthreads_count(!predicate) == 0;
}

// The value that another lane of the wave has, a word at a time.
template <typename T>
static inline __device__ T __kvbuf_of_lane(T value, unsigned lane) {
  int words[(sizeof(T) + 3) / 4] = {};
  __builtin_memcpy(words, &value, sizeof(T));
  for (int &word : words)
    word = __builtin_amdgcn_ds_bpermute(static_cast<int>(lane << 2), word);
  __builtin_memcpy(&value, words, sizeof(T));
  return value;
}
template <typename T>
static inline __device__ T __shfl(T value, int lane, int width = warpSize) {
  unsigned self = __lane_id();
  return __kvbuf_of_lane(value, (self & ~(width - 1)) | (lane & (width - 1)));
}
template <typename T>
static inline __device__ T __shfl_xor(T value, int mask, int width = warpSize) {
  unsigned self = __lane_id(), lane = self ^ mask;
  return __kvbuf_of_lane(
      value, (lane | (width - 1)) > (self | (width - 1)) ? self : lane);
}
template <typename T>
static inline __device__ T __shfl_down(T value, unsigned by,
                                       int width = warpSize) {
  unsigned self = __lane_id();
  return __kvbuf_of_lane(
      value, (self & (width - 1)) + by >= unsigned(width) ? self : self + by);
}
template <typename T>
static inline __device__ T __shfl_up(T value, unsigned by,
                                     int width = warpSize) {
  unsigned self = __lane_id();
  return __kvbuf_of_lane(value, (self & (width - 1)) < by ? self : self - by);
}

// With the lanes that take part, as CUDA has them.
template <typename Mask, typename T>
static inline __device__ T __shfl_sync(Mask, T value, int lane,
                                       int width = warpSize) {
  return __shfl(value, lane, width);
}
template <typename Mask, typename T>
static inline __device__ T __shfl_xor_sync(Mask, T value, int mask,
                                           int width = warpSize) {
  return __shfl_xor(value, mask, width);
}
template <typename Mask, typename T>
static inline __device__ T __shfl_down_sync(Mask, T value, unsigned by,
                                            int width = warpSize) {
  return __shfl_down(value, by, width);
}
template <typename Mask, typename T>
static inline __device__ T __shfl_up_sync(Mask, T value, unsigned by,
                                          int width = warpSize) {
  return __shfl_up(value, by, width);
}
template <typename Mask>
static inline __device__ unsigned long long __ballot_sync(Mask mask,
                                                          int predicate) {
  return __ballot(predicate) & mask;
}
template <typename Mask>
static inline __device__ int __any_sync(Mask mask, int predicate) {
  return __ballot_sync(mask, predicate) != 0;
}
template <typename Mask>
static inline __device__ int __all_sync(Mask mask, int predicate) {
  return __ballot_sync(mask, !predicate) == 0;
}
static inline __device__ void __syncwarp(unsigned long long = ~0ull) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

// What "<<<...>>>" becomes, and a macro that does the same.
extern "C" hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block,
                                                 size_t shared = 0,
                                                 hipStream_t stream = 0);
#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define hipLaunchKernelGGL(KERNEL, GRID, BLOCK, SHARED, STREAM, ...)           \
  KERNEL<<<GRID, BLOCK, SHARED, STREAM>>>(__VA_ARGS__)
#define HIP_DYNAMIC_SHARED(TYPE, NAME) extern __shared__ TYPE NAME[];
