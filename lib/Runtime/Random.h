//===- lib/Runtime/Random.h - Seeded random numbers -------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Every row of data is drawn from a generator of its own, seeded by (seed,
// stream, row): the values depend neither on the number of threads nor on where
// a page happens to lie. The standard library's distributions are not used,
// because they differ between implementations.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_RUNTIME_RANDOM_H
#define KVBUFFER_LIB_RUNTIME_RANDOM_H

#include <cmath>
#include <cstdint>
#include <numbers>

namespace kvbuf::rt {

/// A mixing function on 64 bits (the finalizer of SplitMix64).
inline uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

/// SplitMix64 with the draws that the harness needs.
class Random {
public:
  Random(uint64_t seed, uint64_t stream, uint64_t row = 0)
      : state(mix(mix(mix(seed) ^ stream) ^ row)) {}

  uint64_t next() { return mix(state += 0x9E3779B97F4A7C15ull); }
  /// Uniform in [0, n); n > 0. The bias of the remainder is below 2^-30 for
  /// the sizes used here.
  int64_t below(int64_t n) {
    return static_cast<int64_t>(next() % static_cast<uint64_t>(n));
  }
  /// Uniform in (0, 1).
  float uniform() {
    return (static_cast<float>(next() >> 41) + 0.5f) * 0x1p-23f;
  }
  /// Standard normal (Box and Muller; both values of a pair are used).
  float normal() {
    if (haveSpare) {
      haveSpare = false;
      return spare;
    }
    float radius = std::sqrt(-2.0f * std::log(uniform()));
    float angle = 2.0f * std::numbers::pi_v<float> * uniform();
    spare = radius * std::sin(angle);
    haveSpare = true;
    return radius * std::cos(angle);
  }

private:
  uint64_t state;
  float spare = 0;
  bool haveSpare = false;
};

} // namespace kvbuf::rt

#endif // KVBUFFER_LIB_RUNTIME_RANDOM_H
