//===- LaneSoftcap.h - Soft caps on lanes -----------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANESOFTCAP_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANESOFTCAP_H

#include "Lanes.h"
#include "SoftcapPolynomials.h"
#include "llvm/ADT/DenseMap.h"

namespace kvbuf {

/// A cap that is left to the softmax which takes its result, and polynomials
/// for it, each for scores farther from zero than the one before. Behind the
/// first that holds below its bound all do.
struct CapInSoftmax {
  SoftcapOp op;
  llvm::SmallVector<SoftcapNearZero> tiers;
};

/// What a softmax makes of scores that are still to be capped: exponents in
/// base 2, below rows' new maxima.
struct CappedExponents {
  Values exponents, max;
};

/// The scores that softmaxes are to cap, as a part of their exponents.
class SoftcapsInSoftmax : public LaneState {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SoftcapsInSoftmax)

  /// Leaves scores to the softmax that takes them.
  CapInSoftmax &leave(mlir::Value scores) { return left[scores]; }
  /// What is left to do with scores; null for those that are not capped, or
  /// have been.
  const CapInSoftmax *find(mlir::Value scores) const {
    auto it = left.find(scores);
    return it == left.end() ? nullptr : &it->second;
  }

private:
  llvm::DenseMap<mlir::Value, CapInSoftmax> left;
};

/// Capped scores as another number of each: x times `gain`, plus `outer`. A
/// softmax that scales scores anyway takes that in.
struct CappedShares {
  /// As a fragment's.
  Values x;
  /// Below 0: the larger the score, the smaller is x.
  double gain = -1, outer = 0;
};

/// What is known of capped scores; null of others.
const CappedShares *findShares(LaneContext &lower, mlir::Value scores);

/// Exponents of scores whose cap is left to a softmax, by branches of the warp:
/// by the shortest polynomial that reaches as far as the lane's scores, else by
/// exponentials and reciprocals. `max`: the rows' old maxima.
CappedExponents capInSoftmax(LaneContext &lower, const CapInSoftmax &left,
                             OnlineSoftmaxOp softmax,
                             llvm::ArrayRef<mlir::Value> scores,
                             llvm::ArrayRef<mlir::Value> max);

/// outer + gain / (exp(2 s inner) + 1) of each score s: with a gain of -2 cap
/// and the cap that is capped. Four scores share a reciprocal.
Values capElements(LaneContext &lower, llvm::ArrayRef<mlir::Value> scores,
                   double inner, mlir::Value gain, mlir::Value outer);

/// By what a score is multiplied to be capped: a polynomial of its square, of
/// these coefficients, lowest power first.
mlir::Value capFactor(mlir::ImplicitLocOpBuilder &b,
                      llvm::ArrayRef<mlir::Value> coefficients,
                      mlir::Value score);

/// Lowers an op; its model calls it (LaneModels.cpp).
void lowerOp(LaneContext &lower, SoftcapOp op);

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANESOFTCAP_H
