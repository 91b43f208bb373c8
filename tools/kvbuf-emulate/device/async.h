// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies from global to shared memory in the background (cp.async), and what
// CUDA calls them in C: the parts that pipelines, barriers and groups share.

#pragma once
namespace cuda {
/// A size in bytes of which the addresses are known to be aligned, too.
template <size_t Align> struct aligned_size_t {
  static constexpr size_t align = Align;
  size_t value;
  __attribute__((host, device)) explicit constexpr aligned_size_t(size_t n)
      : value(n) {}
  __attribute__((host, device)) constexpr operator size_t() const {
    return value;
  }
};
} // namespace cuda

namespace kvbuf {
template <typename T> struct AlignOf {
  static constexpr size_t value = alignof(T);
};
template <> struct AlignOf<void> {
  static constexpr size_t value = 1;
};

#if __CUDA_ARCH__ >= 800
template <size_t Bytes>
__device__ inline void startCopy(void *to, const void *from) {
  auto *shared = (__attribute__((address_space(3))) void *)to;
  auto *global = (const __attribute__((address_space(1))) void *)from;
  if constexpr (Bytes == 16)
    __nvvm_cp_async_ca_shared_global_16(shared, global);
  else if constexpr (Bytes == 8)
    __nvvm_cp_async_ca_shared_global_8(shared, global);
  else
    __nvvm_cp_async_ca_shared_global_4(shared, global);
}
#endif

/// Copies by the threads of a group, of which this one is `rank`: in the
/// background where the machine can, which takes 4, 8 or 16 bytes at once.
template <size_t Align>
__device__ inline void copyAsync(void *to, const void *from, size_t bytes,
                                 size_t rank, size_t threads) {
  char *target = static_cast<char *>(to);
  const char *source = static_cast<const char *>(from);
#if __CUDA_ARCH__ >= 800
  if constexpr (Align >= 4) {
    constexpr size_t part = Align >= 16 ? 16 : Align >= 8 ? 8 : 4;
    if (bytes % part == 0 && __isShared(to) && __isGlobal(from)) {
      for (size_t at = rank * part; at < bytes; at += threads * part)
        startCopy<part>(target + at, source + at);
      return;
    }
  }
#endif
  for (size_t at = rank; at < bytes; at += threads)
    target[at] = source[at];
}

__device__ inline void commitCopies() {
#if __CUDA_ARCH__ >= 800
  __nvvm_cp_async_commit_group();
#endif
}
/// Waits until at most so many of this thread's committed groups are under way.
template <int Groups> __device__ inline void waitForCopies() {
#if __CUDA_ARCH__ >= 800
  __nvvm_cp_async_wait_group(Groups);
#endif
}
/// An arrival at a barrier once this thread's copies have landed.
__device__ inline void arriveWithCopies(void *barrier) {
#if __CUDA_ARCH__ >= 800
  __nvvm_cp_async_mbarrier_arrive_shared(
      (__attribute__((address_space(3))) int64_t *)barrier);
#endif
}
} // namespace kvbuf

/// Of `bytes`, the last `zeros` are not read and become 0.
static inline __device__ void __pipeline_memcpy_async(void *to,
                                                      const void *from,
                                                      size_t bytes,
                                                      size_t zeros = 0) {
#if __CUDA_ARCH__ >= 800
  unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(to));
  int given = static_cast<int>(bytes - zeros);
  if (bytes == 16)
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(place),
                 "l"(from), "r"(given)
                 : "memory");
  else if (bytes == 8)
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(place),
                 "l"(from), "r"(given)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(place),
                 "l"(from), "r"(given)
                 : "memory");
#else
  for (size_t i = 0; i < bytes; ++i)
    static_cast<char *>(to)[i] =
        i < bytes - zeros ? static_cast<const char *>(from)[i] : 0;
#endif
}
static inline __device__ void __pipeline_commit() { kvbuf::commitCopies(); }
static inline __device__ void __pipeline_wait_prior(size_t groups) {
  switch (groups) {
  case 0:
    return kvbuf::waitForCopies<0>();
  case 1:
    return kvbuf::waitForCopies<1>();
  case 2:
    return kvbuf::waitForCopies<2>();
  case 3:
    return kvbuf::waitForCopies<3>();
  case 4:
    return kvbuf::waitForCopies<4>();
  case 5:
    return kvbuf::waitForCopies<5>();
  case 6:
    return kvbuf::waitForCopies<6>();
  case 7:
    return kvbuf::waitForCopies<7>();
  default: // as CUDA, no more than this is left
    return kvbuf::waitForCopies<8>();
  }
}
