// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random numbers in kernels, with the names, the order and the bits of
// cuRAND's: XORWOW (Marsaglia, "Xorshift RNGs", 2003) and Philox4x32-10
// (Salmon and others, "Parallel random numbers: as easy as 1, 2, 3", 2011).

#pragma once

namespace kvbuf {
/// Floats of normal distribution come in pairs; the second one waits here.
struct Pair {
  float other;
  bool waits;
};

/// A polynomial over GF(2) of degree below 160, modulo that of which powers of
/// XORWOW's step are a root: the step's powers are sums of its first 160.
struct Steps {
  unsigned word[5];
};
__device__ inline Steps times(const Steps &a, const Steps &b) {
  constexpr unsigned modulus[5] = {0x60001, 0x8610030, 0x62121, 0xf3c0035,
                                   0xf0e};
  Steps product = {};
  for (int i = 159; i >= 0; --i) {
    bool over = product.word[4] >> 31;
    for (int k = 4; k >= 0; --k) {
      product.word[k] =
          product.word[k] << 1 | (k ? product.word[k - 1] >> 31 : 0);
      if (over)
        product.word[k] ^= modulus[k];
      if (b.word[i / 32] >> i % 32 & 1)
        product.word[k] ^= a.word[k];
    }
  }
  return product;
}
__device__ inline Steps power(Steps base, unsigned long long n) {
  Steps result = {{1}};
  for (; n; n >>= 1) {
    if (n & 1)
      result = times(result, base);
    if (n > 1)
      base = times(base, base);
  }
  return result;
}
} // namespace kvbuf

struct curandStateXORWOW {
  unsigned d, v[5];
  kvbuf::Pair normal;
};
typedef curandStateXORWOW curandStateXORWOW_t, curandState_t, curandState;

__device__ inline unsigned curand(curandStateXORWOW *state) {
  unsigned *v = state->v, t = v[0] ^ v[0] >> 2;
  for (int k = 0; k < 4; ++k)
    v[k] = v[k + 1];
  v[4] ^= v[4] << 4 ^ t ^ t << 1;
  state->d += 362437;
  return v[4] + state->d;
}

namespace kvbuf {
__device__ inline void move(curandStateXORWOW *state, const Steps &steps) {
  unsigned sum[5] = {}, d = state->d;
  for (int i = 0; i < 160; ++i) {
    if (steps.word[i / 32] >> i % 32 & 1)
      for (int k = 0; k < 5; ++k)
        sum[k] ^= state->v[k];
    curand(state);
  }
  for (int k = 0; k < 5; ++k)
    state->v[k] = sum[k];
  state->d = d;
}
} // namespace kvbuf

__device__ inline void skipahead(unsigned long long n,
                                 curandStateXORWOW *state) {
  kvbuf::move(state, kvbuf::power({{2}}, n));
  state->d += 362437 * static_cast<unsigned>(n);
}
// Sequences lie 2^67 numbers apart, of which d is what it was.
__device__ inline void skipahead_sequence(unsigned long long n,
                                          curandStateXORWOW *state) {
  kvbuf::move(state, kvbuf::power({{0x26294934, 0x77bbc248, 0x1a87dad0,
                                    0x930052d4, 0x947e6dd2}},
                                  n));
}
__device__ inline void curand_init(unsigned long long seed,
                                   unsigned long long sequence,
                                   unsigned long long offset,
                                   curandStateXORWOW *state) {
  unsigned low = 1099087573u * (static_cast<unsigned>(seed) ^ 0xaad26b49u),
           high =
               2591861531u * (static_cast<unsigned>(seed >> 32) ^ 0xf7dcefddu);
  *state = {6615241u + high + low,
            {123456789u + low, 362436069u ^ low, 521288629u + high,
             88675123u ^ high, 5783321u + low},
            {}};
  if (sequence)
    skipahead_sequence(sequence, state);
  if (offset)
    skipahead(offset, state);
}

struct curandStatePhilox4_32_10 {
  uint4 ctr, output;
  uint2 key;
  unsigned STATE;
  kvbuf::Pair normal;
};
typedef curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;

namespace kvbuf {
__device__ inline uint4 philox(uint4 c, uint2 key) {
  for (int round = 0; round < 10; ++round) {
    unsigned long long x = 0xD2511F53ull * c.x, z = 0xCD9E8D57ull * c.z;
    c = {static_cast<unsigned>(z >> 32) ^ c.y ^ key.x, static_cast<unsigned>(z),
         static_cast<unsigned>(x >> 32) ^ c.w ^ key.y,
         static_cast<unsigned>(x)};
    key.x += 0x9E3779B9;
    key.y += 0xBB67AE85;
  }
  return c;
}
/// Adds to a counter of 128 bits, from its word 0 or 2 on.
__device__ inline void count(curandStatePhilox4_32_10 *state,
                             unsigned long long n, int from) {
  unsigned *word = &state->ctr.x;
  unsigned long long sum = 0;
  for (int k = from; k < 4; ++k, n >>= 32) {
    sum = (sum >> 32) + word[k] + static_cast<unsigned>(n);
    word[k] = static_cast<unsigned>(sum);
  }
  state->output = philox(state->ctr, state->key);
}
} // namespace kvbuf

__device__ inline void skipahead(unsigned long long n,
                                 curandStatePhilox4_32_10 *state) {
  state->STATE += n & 3;
  n = n / 4 + state->STATE / 4;
  state->STATE &= 3;
  kvbuf::count(state, n, 0);
}
__device__ inline void skipahead_sequence(unsigned long long n,
                                          curandStatePhilox4_32_10 *state) {
  kvbuf::count(state, n, 2);
}
__device__ inline void curand_init(unsigned long long seed,
                                   unsigned long long sequence,
                                   unsigned long long offset,
                                   curandStatePhilox4_32_10 *state) {
  *state = {};
  state->key = {static_cast<unsigned>(seed), static_cast<unsigned>(seed >> 32)};
  skipahead_sequence(sequence, state);
  skipahead(offset, state);
}
__device__ inline unsigned curand(curandStatePhilox4_32_10 *state) {
  uint4 o = state->output;
  unsigned i = state->STATE, word = i == 0   ? o.x
                                    : i == 1 ? o.y
                                    : i == 2 ? o.z
                                             : o.w;
  skipahead(1, state);
  return word;
}
__device__ inline uint4 curand4(curandStatePhilox4_32_10 *state) {
  unsigned x = curand(state), y = curand(state), z = curand(state);
  return {x, y, z, curand(state)};
}

namespace kvbuf {
// Never 0, and 1 after rounding only.
__device__ inline float uniform(unsigned x) { return x * 0x1p-32f + 0x1p-33f; }
__device__ inline float2 normal(unsigned x, unsigned y) {
  constexpr float turn = 6.2831855f * 0x1p-32f;
  float v = y * turn + turn / 2, size = sqrtf(-2.0f * logf(uniform(x)));
  return {sinf(v) * size, cosf(v) * size};
}
} // namespace kvbuf

template <typename State> __device__ inline float curand_uniform(State *state) {
  return kvbuf::uniform(curand(state));
}
__device__ inline double curand_uniform_double(curandStateXORWOW *state) {
  unsigned long long x = curand(state), y = curand(state);
  return (x ^ y << 21) * 0x1p-53 + 0x1p-54;
}
__device__ inline double
curand_uniform_double(curandStatePhilox4_32_10 *state) {
  return curand(state) * 0x1p-32 + 0x1p-32;
}
__device__ inline float4 curand_uniform4(curandStatePhilox4_32_10 *state) {
  uint4 x = curand4(state);
  return {kvbuf::uniform(x.x), kvbuf::uniform(x.y), kvbuf::uniform(x.z),
          kvbuf::uniform(x.w)};
}
template <typename State>
__device__ inline float2 curand_normal2(State *state) {
  unsigned x = curand(state), y = curand(state);
  return kvbuf::normal(x, y);
}
__device__ inline float4 curand_normal4(curandStatePhilox4_32_10 *state) {
  uint4 x = curand4(state);
  float2 a = kvbuf::normal(x.x, x.y), b = kvbuf::normal(x.z, x.w);
  return {a.x, a.y, b.x, b.y};
}
template <typename State> __device__ inline float curand_normal(State *state) {
  state->normal.waits = !state->normal.waits;
  if (!state->normal.waits)
    return state->normal.other;
  float2 both = curand_normal2(state);
  state->normal.other = both.y;
  return both.x;
}
template <typename State>
__device__ inline float curand_log_normal(State *state, float mean,
                                          float deviation) {
  return expf(mean + deviation * curand_normal(state));
}
