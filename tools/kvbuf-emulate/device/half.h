// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Floats of 16 bits, and pairs of them, as CUDA and HIP name them. Arithmetic
// is rounded once, as the machines do it.

#pragma once
#define KVBUF_BOTH static inline __attribute__((host, device))

#define KVBUF_SMALL(NAME, STORED)                                              \
  struct NAME {                                                                \
    STORED value;                                                              \
    NAME() = default;                                                          \
    __attribute__((host, device)) NAME(float x)                                \
        : value(static_cast<STORED>(x)) {}                                     \
    __attribute__((host, device)) operator float() const {                     \
      return static_cast<float>(value);                                        \
    }                                                                          \
    __attribute__((host, device)) NAME &operator+=(NAME b) {                   \
      return *this = NAME(float(*this) + float(b));                            \
    }                                                                          \
    __attribute__((host, device)) NAME &operator-=(NAME b) {                   \
      return *this = NAME(float(*this) - float(b));                            \
    }                                                                          \
    __attribute__((host, device)) NAME &operator*=(NAME b) {                   \
      return *this = NAME(float(*this) * float(b));                            \
    }                                                                          \
    __attribute__((host, device)) NAME &operator/=(NAME b) {                   \
      return *this = NAME(float(*this) / float(b));                            \
    }                                                                          \
  };                                                                           \
  KVBUF_BOTH NAME operator+(NAME a, NAME b) { return a += b; }                 \
  KVBUF_BOTH NAME operator-(NAME a, NAME b) { return a -= b; }                 \
  KVBUF_BOTH NAME operator*(NAME a, NAME b) { return a *= b; }                 \
  KVBUF_BOTH NAME operator/(NAME a, NAME b) { return a /= b; }                 \
  KVBUF_BOTH NAME operator-(NAME a) { return NAME(-float(a)); }                \
  KVBUF_BOTH NAME __hadd(NAME a, NAME b) { return a + b; }                     \
  KVBUF_BOTH NAME __hsub(NAME a, NAME b) { return a - b; }                     \
  KVBUF_BOTH NAME __hmul(NAME a, NAME b) { return a * b; }                     \
  KVBUF_BOTH NAME __hdiv(NAME a, NAME b) { return a / b; }                     \
  KVBUF_BOTH NAME __hneg(NAME a) { return -a; }                                \
  KVBUF_BOTH NAME __habs(NAME a) { return NAME(__builtin_fabsf(a)); }          \
  KVBUF_BOTH NAME __hmax(NAME a, NAME b) {                                     \
    return NAME(__builtin_fmaxf(a, b));                                        \
  }                                                                            \
  KVBUF_BOTH NAME __hmin(NAME a, NAME b) {                                     \
    return NAME(__builtin_fminf(a, b));                                        \
  }                                                                            \
  KVBUF_BOTH bool __hgt(NAME a, NAME b) { return float(a) > float(b); }        \
  KVBUF_BOTH bool __hge(NAME a, NAME b) { return float(a) >= float(b); }       \
  KVBUF_BOTH bool __hlt(NAME a, NAME b) { return float(a) < float(b); }        \
  KVBUF_BOTH bool __hle(NAME a, NAME b) { return float(a) <= float(b); }       \
  KVBUF_BOTH bool __heq(NAME a, NAME b) { return float(a) == float(b); }       \
  KVBUF_BOTH bool __hne(NAME a, NAME b) { return float(a) != float(b); }       \
  KVBUF_BOTH bool __hisnan(NAME a) { return float(a) != float(a); }            \
  KVBUF_BOTH NAME __hfma(NAME a, NAME b, NAME c) {                             \
    NAME r;                                                                    \
    r.value = __builtin_elementwise_fma(a.value, b.value, c.value);            \
    return r;                                                                  \
  }

// Each half of a pair is added by itself, as CUDA has it.
#define KVBUF_ATOMIC(NAME, PAIR, STORED)                                       \
  static inline __attribute__((device)) NAME atomicAdd(NAME *p, NAME x) {      \
    return __builtin_bit_cast(                                                 \
        NAME,                                                                  \
        __scoped_atomic_fetch_add(reinterpret_cast<STORED *>(p), x.value,      \
                                  __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE));   \
  }                                                                            \
  static inline __attribute__((device)) PAIR atomicAdd(PAIR *p, PAIR x) {      \
    return {atomicAdd(&p->x, x.x), atomicAdd(&p->y, x.y)};                     \
  }

#define KVBUF_PAIR(NAME, PAIR, SHORT, ONE, JOINED)                             \
  struct alignas(4) PAIR {                                                     \
    NAME x, y;                                                                 \
    PAIR() = default;                                                          \
    __attribute__((host, device)) PAIR(NAME x, NAME y) : x(x), y(y) {}         \
  };                                                                           \
  KVBUF_BOTH PAIR __hadd2(PAIR a, PAIR b) { return {a.x + b.x, a.y + b.y}; }   \
  KVBUF_BOTH PAIR __hsub2(PAIR a, PAIR b) { return {a.x - b.x, a.y - b.y}; }   \
  KVBUF_BOTH PAIR __hmul2(PAIR a, PAIR b) { return {a.x * b.x, a.y * b.y}; }   \
  KVBUF_BOTH PAIR __hfma2(PAIR a, PAIR b, PAIR c) {                            \
    return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};                     \
  }                                                                            \
  KVBUF_BOTH PAIR __hmax2(PAIR a, PAIR b) {                                    \
    return {__hmax(a.x, b.x), __hmax(a.y, b.y)};                               \
  }                                                                            \
  KVBUF_BOTH PAIR __hmin2(PAIR a, PAIR b) {                                    \
    return {__hmin(a.x, b.x), __hmin(a.y, b.y)};                               \
  }                                                                            \
  KVBUF_BOTH PAIR __hneg2(PAIR a) { return {-a.x, -a.y}; }                     \
  KVBUF_BOTH PAIR operator+(PAIR a, PAIR b) { return __hadd2(a, b); }          \
  KVBUF_BOTH PAIR operator-(PAIR a, PAIR b) { return __hsub2(a, b); }          \
  KVBUF_BOTH PAIR operator*(PAIR a, PAIR b) { return __hmul2(a, b); }          \
  KVBUF_BOTH PAIR operator/(PAIR a, PAIR b) { return {a.x / b.x, a.y / b.y}; } \
  KVBUF_BOTH PAIR make_##JOINED(NAME x, NAME y) { return {x, y}; }             \
  KVBUF_BOTH NAME __low2##ONE(PAIR v) { return v.x; }                          \
  KVBUF_BOTH NAME __high2##ONE(PAIR v) { return v.y; }                         \
  KVBUF_BOTH PAIR __low2##JOINED(PAIR v) { return {v.x, v.x}; }                \
  KVBUF_BOTH PAIR __high2##JOINED(PAIR v) { return {v.y, v.y}; }               \
  KVBUF_BOTH unsigned short __##ONE##_as_ushort(NAME x) {                      \
    return __builtin_bit_cast(unsigned short, x);                              \
  }                                                                            \
  KVBUF_BOTH short __##ONE##_as_short(NAME x) {                                \
    return __builtin_bit_cast(short, x);                                       \
  }                                                                            \
  KVBUF_BOTH NAME __ushort_as_##ONE(unsigned short x) {                        \
    return __builtin_bit_cast(NAME, x);                                        \
  }                                                                            \
  KVBUF_BOTH NAME __short_as_##ONE(short x) {                                  \
    return __builtin_bit_cast(NAME, x);                                        \
  }                                                                            \
  KVBUF_BOTH NAME __double2##ONE(double x) { return NAME(x); }                 \
  KVBUF_BOTH NAME __int2##ONE##_rn(int x) { return NAME(x); }                  \
  KVBUF_BOTH int __##ONE##2int_rz(NAME x) {                                    \
    return static_cast<int>(float(x));                                         \
  }                                                                            \
  KVBUF_BOTH NAME __float2##ONE(float x) { return NAME(x); }                   \
  KVBUF_BOTH NAME __float2##ONE##_rn(float x) { return NAME(x); }              \
  KVBUF_BOTH float __##ONE##2float(NAME x) { return x; }                       \
  KVBUF_BOTH PAIR __floats2##SHORT##2_rn(float x, float y) {                   \
    return {NAME(x), NAME(y)};                                                 \
  }                                                                            \
  KVBUF_BOTH PAIR __float2##SHORT##2_rn(float x) {                             \
    return {NAME(x), NAME(x)};                                                 \
  }                                                                            \
  KVBUF_BOTH PAIR __float22##SHORT##2_rn(float2 v) {                           \
    return {NAME(v.x), NAME(v.y)};                                             \
  }                                                                            \
  KVBUF_BOTH float2 __##JOINED##2float2(PAIR v) { return {v.x, v.y}; }         \
  KVBUF_BOTH float __low2float(PAIR v) { return v.x; }                         \
  KVBUF_BOTH float __high2float(PAIR v) { return v.y; }                        \
  KVBUF_BOTH PAIR __halves2##SHORT##2(NAME x, NAME y) { return {x, y}; }       \
  KVBUF_BOTH PAIR __##ONE##2##JOINED(NAME x) { return {x, x}; }

KVBUF_SMALL(__half, _Float16)
KVBUF_SMALL(__nv_bfloat16, __bf16)
KVBUF_PAIR(__half, __half2, half, half, half2)
KVBUF_PAIR(__nv_bfloat16, __nv_bfloat162, bfloat16, bfloat16, bfloat162)
KVBUF_ATOMIC(__half, __half2, _Float16)
KVBUF_ATOMIC(__nv_bfloat16, __nv_bfloat162, __bf16)
#define KVBUF_FUNCTION(NAME, FUNCTION)                                         \
  static inline __device__ __half NAME(__half x) {                             \
    return __half(FUNCTION(float(x)));                                         \
  }                                                                            \
  static inline __device__ __nv_bfloat16 NAME(__nv_bfloat16 x) {               \
    return __nv_bfloat16(FUNCTION(float(x)));                                  \
  }
KVBUF_FUNCTION(hexp, expf)
KVBUF_FUNCTION(hlog, logf)
KVBUF_FUNCTION(hsqrt, sqrtf)
KVBUF_FUNCTION(hrsqrt, rsqrtf)
KVBUF_FUNCTION(hsin, sinf)
KVBUF_FUNCTION(hcos, cosf)
KVBUF_FUNCTION(htanh, tanhf)
KVBUF_FUNCTION(hfloor, floorf)
KVBUF_FUNCTION(hceil, ceilf)
KVBUF_FUNCTION(hrcp, 1 /)
#undef KVBUF_FUNCTION
#undef KVBUF_SMALL
#undef KVBUF_PAIR
#undef KVBUF_ATOMIC

#if !defined(__HIP__) // where shuffles take any type
// Shuffles, by bits.
#define KVBUF_SHUFFLE(NAME)                                                    \
  template <typename T>                                                        \
  static inline __device__ typename kvbufSmall<T>::Type NAME(                  \
      unsigned mask, T x, int lane, int width = 32) {                          \
    typedef typename kvbufSmall<T>::Bits Bits;                                 \
    unsigned bits = __builtin_bit_cast(Bits, x);                               \
    return __builtin_bit_cast(T, Bits(NAME(mask, bits, lane, width)));         \
  }
template <typename T> struct kvbufSmall {};
template <> struct kvbufSmall<__half> {
  typedef unsigned short Bits;
  typedef __half Type;
};
template <> struct kvbufSmall<__nv_bfloat16> {
  typedef unsigned short Bits;
  typedef __nv_bfloat16 Type;
};
template <> struct kvbufSmall<__half2> {
  typedef unsigned Bits;
  typedef __half2 Type;
};
template <> struct kvbufSmall<__nv_bfloat162> {
  typedef unsigned Bits;
  typedef __nv_bfloat162 Type;
};
KVBUF_SHUFFLE(__shfl_sync)
KVBUF_SHUFFLE(__shfl_up_sync)
KVBUF_SHUFFLE(__shfl_down_sync)
KVBUF_SHUFFLE(__shfl_xor_sync)
#undef KVBUF_SHUFFLE
#endif
#undef KVBUF_BOTH

typedef __half half;
typedef __half2 half2;
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
typedef __nv_bfloat16 __hip_bfloat16;
typedef __nv_bfloat162 __hip_bfloat162;
