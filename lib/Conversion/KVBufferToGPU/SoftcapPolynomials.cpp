//===- SoftcapPolynomials.cpp - Soft caps as polynomials ------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SoftcapPolynomials.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <numbers>

using namespace mlir;
using namespace kvbuf;

double TanhNearZero::at(double x) const {
  double value = 0;
  for (double coefficient : llvm::reverse(coefficients))
    value = value * x * x + coefficient;
  return value * x;
}

double TanhNearZero::error() const {
  constexpr int steps = 256;
  double largest = 0;
  for (int i = 1; i <= steps; ++i) {
    double x = bound * i / steps;
    largest = std::max(largest, std::abs(at(x) - std::tanh(x)));
  }
  return largest;
}

TanhNearZero kvbuf::tanhNearZero() {
  return {0.5, {0.9999994558, -0.3332631794, 0.1319029659, -0.04440222584}};
}

TanhNearZero kvbuf::tanhFarther() {
  return {1.0,
          {0.9999994139, -0.3332904301, 0.1328143733, -0.05160575046,
           0.01674318939, -0.003067086622}};
}

/// The polynomial of `terms` terms that is tanh x at the zeros of a Chebyshev
/// polynomial on [-bound, bound], of which one is 0: hardly farther from tanh
/// than the best one.
static TanhNearZero meetTanh(unsigned terms, double bound) {
  TanhNearZero result{bound, {}};
  SmallVector<double> squares, differences;
  for (unsigned i = 0; i < terms; ++i) {
    double x =
        bound * std::cos((2 * i + 1) * std::numbers::pi / (4 * terms + 2));
    squares.push_back(x * x);
    differences.push_back(std::tanh(x) / x);
  }
  // Newton's divided differences, multiplied out.
  for (unsigned order = 1; order < terms; ++order)
    for (unsigned i = terms - 1; i >= order; --i)
      differences[i] = (differences[i] - differences[i - 1]) /
                       (squares[i] - squares[i - order]);
  result.coefficients.assign(terms, 0);
  for (unsigned i = terms; i-- > 0;) {
    for (unsigned power = terms - 1; power > 0; --power)
      result.coefficients[power] = result.coefficients[power - 1] -
                                   squares[i] * result.coefficients[power];
    result.coefficients[0] =
        differences[i] - squares[i] * result.coefficients[0];
  }
  return result;
}

/// The polynomial of `terms` terms that is right to `error` farthest from zero.
static TanhNearZero farthestOf(unsigned terms, double error) {
  constexpr double step = 1.0 / 128;
  TanhNearZero result;
  for (double bound = step; bound <= 1.5; bound += step) {
    TanhNearZero next = meetTanh(terms, bound);
    if (next.error() > error)
      break;
    result = std::move(next);
  }
  return result;
}

/// What a capped score may be off by where a kernel has sums of weights beside
/// its output, or an output of more bits than bf16; and elsewhere, where
/// weights are rounded by 1e-3, and so are outputs.
static constexpr double kError = 4e-5, kErrorBF16 = 5e-4;
/// Terms of the polynomials that a softmax caps by: each is an instruction a
/// score, and more of them reach farther.
static constexpr unsigned kTerms[] = {2, 3, 4, 5};
/// Where nothing shows a kernel's sums, weights far below a row's maximum may
/// be off by so much of the largest one: those of 100000 keys by less than
/// rounding one of them is.
static constexpr double kFarError = 4e-9;
/// Terms up to which a polynomial that serves lower scores, too, takes less
/// than the search for the smallest score and those up to it (docs/tuning.md).
static constexpr unsigned kTermsBelow = 3;
/// Columns of the accumulator up to which that was measured to win: 2 to 3 % at
/// 64, where scores are near the cap, and a loss of half a per cent at 128
/// where they are not (H200).
static constexpr int64_t kColumnsBelow = 64;
std::optional<SoftcapNearZero>
kvbuf::softcapNearZero(const TanhNearZero &tanh, double scale, double cap) {
  SoftcapNearZero result{tanh.bound * cap / std::abs(scale), {}};
  double power = scale;
  for (double coefficient : tanh.coefficients) {
    result.coefficients.push_back(coefficient * power);
    power *= scale * scale / (cap * cap);
  }
  double last = std::abs(result.coefficients.back());
  if (!(last > 0x1p-100 && last < 0x1p100 && result.bound > 0x1p-50 &&
        result.bound < 0x1p50))
    return std::nullopt;
  return result;
}

/// Whether a polynomial of tanh serves scores below its bound, too: what
/// becomes of their weights, beside one of 1 for a score of zero or more.
static bool holdsBelow(const TanhNearZero &tanh, double cap) {
  // The last term outgrows the others within that many bounds.
  if (tanh.coefficients.back() < 0)
    return false;
  constexpr int steps = 256, bounds = 16;
  for (int i = 1; i <= steps * bounds; ++i) {
    double x = -tanh.bound * (1 + double(i) / steps);
    if (std::abs(std::exp(cap * tanh.at(x)) - std::exp(cap * std::tanh(x))) >
        kFarError)
      return false;
  }
  return true;
}

SmallVector<SoftcapNearZero>
kvbuf::softcapTiers(double scale, double cap, bool showsSums, int64_t columns) {
  bool mayHold = !showsSums && columns <= kColumnsBelow;
  double error = (showsSums ? kError : kErrorBF16) / cap;
  SmallVector<SoftcapNearZero> tiers;
  for (unsigned terms : kTerms) {
    TanhNearZero tanh = farthestOf(terms, error);
    auto near = softcapNearZero(tanh, scale, cap);
    if (!near || !(tiers.empty() || near->bound > tiers.back().bound))
      continue;
    near->holdsBelow = mayHold && holdsBelow(tanh, cap);
    tiers.push_back(*near);
  }
  // Behind one that serves lower scores, too, nobody looks for these.
  auto below = llvm::find_if(
      tiers, [](const SoftcapNearZero &near) { return near.holdsBelow; });
  if (below == tiers.end() || below->coefficients.size() > kTermsBelow) {
    for (SoftcapNearZero &near : tiers)
      near.holdsBelow = false;
    return tiers;
  }
  tiers.erase(std::remove_if(
                  below, tiers.end(),
                  [](const SoftcapNearZero &near) { return !near.holdsBelow; }),
              tiers.end());
  return tiers;
}
