//===- SoftcapPolynomials.h - Soft caps as polynomials ----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// cap * tanh(scale * s / cap) as polynomials of a score, which take fewer
/// instructions than exponentials and reciprocals, and reach so far.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_SOFTCAPPOLYNOMIALS_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_SOFTCAPPOLYNOMIALS_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <optional>

namespace kvbuf {

/// tanh x / x for x up to a bound as a polynomial of x^2, lowest power first.
struct TanhNearZero {
  double bound = 0;
  llvm::SmallVector<double> coefficients;

  /// The tanh that it gives.
  double at(double x) const;
  /// By how much that is off, at most: an absolute error.
  double error() const;
};

/// One for magnitudes up to a half, off by 5.4e-7 of tanh x (Remez's
/// algorithm).
TanhNearZero tanhNearZero();
/// For scores that this leaves over, and is still less than what any score
/// takes: up to 1, off by 6.5e-7.
TanhNearZero tanhFarther();

/// cap * tanh(s * scale / cap) / s as a polynomial of s^2, for s of magnitudes
/// up to the bound.
struct SoftcapNearZero {
  double bound;
  /// Lowest power first.
  llvm::SmallVector<double> coefficients;
  /// Whether it serves scores below -bound as well, beside a row's maximum that
  /// is not negative: their weights are next to nothing by it, too.
  bool holdsBelow = false;
};

/// cap * tanh(s * scale / cap) / s as a polynomial of s^2. Nullopt where a
/// coefficient may leave the range of an f32.
std::optional<SoftcapNearZero> softcapNearZero(const TanhNearZero &tanh,
                                               double scale, double cap);

/// The polynomials by which a softmax caps, each of more terms than the one
/// before, and for scores farther from zero. `showsSums`: whether the kernel
/// has results of its softmax's sums beside the output, or an output of more
/// bits than bf16. `columns`: those of its accumulator.
llvm::SmallVector<SoftcapNearZero>
softcapTiers(double scale, double cap, bool showsSums, int64_t columns);

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_SOFTCAPPOLYNOMIALS_H
