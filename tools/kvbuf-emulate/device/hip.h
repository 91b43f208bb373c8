// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What kernels in HIP use, on top of clang's own headers for it: enough to
// compile them without ROCm. Of the host's functions there is none.

#pragma once
#include <__clang_hip_runtime_wrapper.h>

#include "kvbuf_common.h"

#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#ifndef __forceinline__
#define __forceinline__ __inline__ __attribute__((always_inline))
#endif

#define hipStreamDefault 0
#define KVBUF_HOST(NAME) hip##NAME
#include "kvbuf_host.h"
#undef KVBUF_HOST

extern "C" {
__device__ size_t __ockl_get_local_id(unsigned);
__device__ size_t __ockl_get_group_id(unsigned);
__device__ size_t __ockl_get_local_size(unsigned);
__device__ size_t __ockl_get_num_groups(unsigned);
__device__ int printf(const char *, ...);
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

// What "<<<...>>>" becomes, and a macro that does the same.
extern "C" hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block,
                                                 size_t shared = 0,
                                                 hipStream_t stream = 0);
#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define hipLaunchKernelGGL(KERNEL, GRID, BLOCK, SHARED, STREAM, ...)           \
  KERNEL<<<GRID, BLOCK, SHARED, STREAM>>>(__VA_ARGS__)
#define HIP_DYNAMIC_SHARED(TYPE, NAME) extern __shared__ TYPE NAME[];
