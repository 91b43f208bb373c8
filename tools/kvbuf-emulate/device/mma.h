// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CUDA's products of a warp (wmma), onto clang's builtins for them.

#pragma once
#include <kvbuf_half.h>

namespace nvcuda {
namespace wmma {
struct row_major;
struct col_major;
struct matrix_a;
struct matrix_b;
struct accumulator;
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32;
} // namespace precision

namespace details {
template <typename T, int Count> struct alignas(8) Held {
  enum { num_elements = Count, num_storage_elements = Count };
  typedef T element_type;
  T x[Count];
};
template <typename Layout> struct IsCol;
template <> struct IsCol<row_major> {
  static constexpr int value = 0;
};
template <> struct IsCol<col_major> {
  static constexpr int value = 1;
};
} // namespace details

template <typename Use, int M, int N, int K, typename T, typename Layout = void>
class fragment;

template <typename T, int Count, typename V>
__device__ inline void fill_fragment(details::Held<T, Count> &f, V v) {
  for (T &x : f.x)
    x = static_cast<T>(v);
}

// A fragment is loaded and stored as words. Where a builtin takes a layout it
// is a constant.
#define KVBUF_OPERAND(USE, M, N, K, T, STORED, COUNT, WORD, LOAD)              \
  template <typename Layout>                                                   \
  class fragment<USE, M, N, K, T, Layout>                                      \
      : public details::Held<STORED, COUNT> {};                                \
  template <typename Layout>                                                   \
  __device__ inline void load_matrix_sync(                                     \
      fragment<USE, M, N, K, T, Layout> &f, const STORED *p, unsigned by) {    \
    LOAD(reinterpret_cast<WORD *>(f.x), reinterpret_cast<const WORD *>(p), by, \
         details::IsCol<Layout>::value);                                       \
  }
#define KVBUF_SUMS(M, N, K, T, COUNT, WORD, LOAD, STORE)                       \
  template <>                                                                  \
  class fragment<accumulator, M, N, K, T> : public details::Held<T, COUNT> {}; \
  __device__ inline void load_matrix_sync(                                     \
      fragment<accumulator, M, N, K, T> &f, const T *p, unsigned by,           \
      layout_t layout) {                                                       \
    WORD *to = reinterpret_cast<WORD *>(f.x);                                  \
    const WORD *from = reinterpret_cast<const WORD *>(p);                      \
    if (layout == mem_row_major)                                               \
      LOAD(to, from, by, 0);                                                   \
    else                                                                       \
      LOAD(to, from, by, 1);                                                   \
  }                                                                            \
  __device__ inline void store_matrix_sync(                                    \
      T *p, const fragment<accumulator, M, N, K, T> &f, unsigned by,           \
      layout_t layout) {                                                       \
    WORD *to = reinterpret_cast<WORD *>(p);                                    \
    const WORD *from = reinterpret_cast<const WORD *>(f.x);                    \
    if (layout == mem_row_major)                                               \
      STORE(to, from, by, 0);                                                  \
    else                                                                       \
      STORE(to, from, by, 1);                                                  \
  }
#define KVBUF_PRODUCT(M, N, K, T, D, C, IN, DWORD, CWORD, SATURATES, NAME)     \
  template <typename A, typename B>                                            \
  __device__ inline void mma_sync(fragment<accumulator, M, N, K, D> &d,        \
                                  const fragment<matrix_a, M, N, K, T, A> &a,  \
                                  const fragment<matrix_b, M, N, K, T, B> &b,  \
                                  const fragment<accumulator, M, N, K, C> &c,  \
                                  bool satf = false) {                         \
    constexpr int layout =                                                     \
        details::IsCol<A>::value * 2 + details::IsCol<B>::value;               \
    DWORD *to = reinterpret_cast<DWORD *>(d.x);                                \
    const IN *x = reinterpret_cast<const IN *>(a.x);                           \
    const IN *y = reinterpret_cast<const IN *>(b.x);                           \
    const CWORD *z = reinterpret_cast<const CWORD *>(c.x);                     \
    if constexpr (SATURATES)                                                   \
      if (satf)                                                                \
        return NAME(to, x, y, z, layout, 1);                                   \
    NAME(to, x, y, z, layout, 0);                                              \
  }

// fp16, with sums of either type.
#define KVBUF_HALF(M, N, K, SHAPE)                                             \
  KVBUF_OPERAND(matrix_a, M, N, K, __half, __half, 16, int,                    \
                __hmma_##SHAPE##_ld_a)                                         \
  KVBUF_OPERAND(matrix_b, M, N, K, __half, __half, 16, int,                    \
                __hmma_##SHAPE##_ld_b)                                         \
  KVBUF_SUMS(M, N, K, __half, 8, int, __hmma_##SHAPE##_ld_c_f16,               \
             __hmma_##SHAPE##_st_c_f16)                                        \
  KVBUF_SUMS(M, N, K, float, 8, float, __hmma_##SHAPE##_ld_c_f32,              \
             __hmma_##SHAPE##_st_c_f32)                                        \
  KVBUF_PRODUCT(M, N, K, __half, float, float, int, float, float, true,        \
                __hmma_##SHAPE##_mma_f32f32)                                   \
  KVBUF_PRODUCT(M, N, K, __half, float, __half, int, float, int, true,         \
                __hmma_##SHAPE##_mma_f32f16)                                   \
  KVBUF_PRODUCT(M, N, K, __half, __half, float, int, int, float, true,         \
                __hmma_##SHAPE##_mma_f16f32)                                   \
  KVBUF_PRODUCT(M, N, K, __half, __half, __half, int, int, int, true,          \
                __hmma_##SHAPE##_mma_f16f16)
KVBUF_HALF(16, 16, 16, m16n16k16)
KVBUF_HALF(32, 8, 16, m32n8k16)
KVBUF_HALF(8, 32, 16, m8n32k16)
#undef KVBUF_HALF

// Integers of 8 bits: A and B have as many elements as a warp's share is.
#define KVBUF_BYTES(M, N, K, SHAPE, T, SUFFIX)                                 \
  KVBUF_OPERAND(matrix_a, M, N, K, T, T, M *K / 32, int,                       \
                __imma_##SHAPE##_ld_a_##SUFFIX)                                \
  KVBUF_OPERAND(matrix_b, M, N, K, T, T, N *K / 32, int,                       \
                __imma_##SHAPE##_ld_b_##SUFFIX)                                \
  KVBUF_PRODUCT(M, N, K, T, int, int, int, int, int, true,                     \
                __imma_##SHAPE##_mma_##SUFFIX)
#define KVBUF_INTEGERS(M, N, K, SHAPE)                                         \
  KVBUF_SUMS(M, N, K, int, 8, int, __imma_##SHAPE##_ld_c,                      \
             __imma_##SHAPE##_st_c_i32)                                        \
  KVBUF_BYTES(M, N, K, SHAPE, signed char, s8)                                 \
  KVBUF_BYTES(M, N, K, SHAPE, unsigned char, u8)
KVBUF_INTEGERS(16, 16, 16, m16n16k16)
KVBUF_INTEGERS(32, 8, 16, m32n8k16)
KVBUF_INTEGERS(8, 32, 16, m8n32k16)
#undef KVBUF_INTEGERS
#undef KVBUF_BYTES

#if __CUDA_ARCH__ >= 800
// bf16, whose sums are those of fp16 in fp32.
#define KVBUF_BF16(M, N, K, SHAPE)                                             \
  KVBUF_OPERAND(matrix_a, M, N, K, __nv_bfloat16, __nv_bfloat16, M *K / 32,    \
                int, __mma_bf16_##SHAPE##_ld_a)                                \
  KVBUF_OPERAND(matrix_b, M, N, K, __nv_bfloat16, __nv_bfloat16, N *K / 32,    \
                int, __mma_bf16_##SHAPE##_ld_b)                                \
  KVBUF_PRODUCT(M, N, K, __nv_bfloat16, float, float, int, float, float,       \
                false, __mma_bf16_##SHAPE##_mma_f32)
KVBUF_BF16(16, 16, 16, m16n16k16)
KVBUF_BF16(32, 8, 16, m32n8k16)
KVBUF_BF16(8, 32, 16, m8n32k16)
#undef KVBUF_BF16

KVBUF_OPERAND(matrix_a, 16, 16, 8, precision::tf32, float, 4, int,
              __mma_tf32_m16n16k8_ld_a)
KVBUF_OPERAND(matrix_b, 16, 16, 8, precision::tf32, float, 4, int,
              __mma_tf32_m16n16k8_ld_b)
KVBUF_SUMS(16, 16, 8, float, 8, float, __mma_tf32_m16n16k8_ld_c,
           __mma_m16n16k8_st_c_f32)
KVBUF_PRODUCT(16, 16, 8, precision::tf32, float, float, int, float, float,
              false, __mma_tf32_m16n16k8_mma_f32)

KVBUF_OPERAND(matrix_a, 8, 8, 4, double, double, 1, double, __dmma_m8n8k4_ld_a)
KVBUF_OPERAND(matrix_b, 8, 8, 4, double, double, 1, double, __dmma_m8n8k4_ld_b)
KVBUF_SUMS(8, 8, 4, double, 2, double, __dmma_m8n8k4_ld_c,
           __dmma_m8n8k4_st_c_f64)
KVBUF_PRODUCT(8, 8, 4, double, double, double, double, double, double, false,
              __dmma_m8n8k4_mma_f64)
#endif
#undef KVBUF_OPERAND
#undef KVBUF_SUMS
#undef KVBUF_PRODUCT

/// Rounded to nearest, ties away from zero.
__device__ inline float __float_to_tf32(float x) {
  unsigned bits = __builtin_bit_cast(unsigned, x);
  if ((bits & 0x7F800000) != 0x7F800000)
    bits = (bits + 0x1000) & ~0x1FFFu;
  return __builtin_bit_cast(float, bits);
}
} // namespace wmma
} // namespace nvcuda
