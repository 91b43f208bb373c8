//===- KVBufferSoftmaxOps.cpp - The online softmax in two parts -----------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"

using namespace mlir;
using namespace kvbuf;

/// Checks scores, row values for each of their rows, and the scale.
static LogicalResult verifyScores(Operation *op, FragmentType scores,
                                  FragmentType max, const APFloat &scale) {
  if (!scale.isFinite() || scale.isNegative() || scale.isZero())
    return op->emitOpError() << "expected a finite scale above 0: the maximum "
                                "is taken before the scores are scaled";
  if (scores.getRole() != Role::Acc || max.getRole() != Role::Row ||
      max.getRows() != scores.getRows())
    return op->emitOpError() << "expected scores in accumulators and a row "
                                "value for each of their rows, got "
                             << scores << " and " << max;
  return success();
}

LogicalResult RaiseMaxOp::verify() {
  if (getExactOnly() && !getExact())
    return emitOpError() << "has 'exact_only'; expected 'exact', which says "
                            "where maxima are raised at all";
  if (getExactOnly() && getUnbounded())
    return emitOpError() << "has 'exact_only' and 'unbounded'; expected one of "
                            "them: a sum does not tell by how much scores of "
                            "any size are above a maximum";
  return verifyScores(*this, getScores().getType(), getMax().getType(),
                      getScale());
}

LogicalResult SoftmaxHeadOp::verify() {
  return verifyScores(*this, getScores().getType(), getMax().getType(),
                      getScale());
}

LogicalResult CarryExcessOp::verify() {
  if (getCarried().getType().getRole() != Role::Row)
    return emitOpError() << "expected row values, got "
                         << getCarried().getType();
  return success();
}

/// Checks weights against the exponents that they come of.
static LogicalResult verifyWeights(Operation *op, FragmentType x,
                                   FragmentType p) {
  if (x.getRole() != Role::Acc || p.getRole() != Role::A ||
      p.getRows() != x.getRows() || p.getCols() != x.getCols())
    return op->emitOpError()
           << "expected exponents in accumulators and weights in "
              "their shape in role a, got "
           << x << " and " << p;
  return success();
}

LogicalResult SoftmaxTailOp::verify() {
  if (getRounded() && getExcess())
    return emitOpError() << "has 'rounded', by which the sum is of rounded "
                            "weights; expected no excess";
  return verifyWeights(*this, getExponents().getType(), getP().getType());
}

LogicalResult SoftmaxSettleOp::verify() {
  FragmentType acc = getAcc().getType();
  if (failed(verifyScores(*this, getAll().getType(), getMax().getType(),
                          getScale())))
    return failure();
  if (acc.getRole() != Role::Acc ||
      acc.getRows() != getAll().getType().getRows())
    return emitOpError() << "expected accumulators of as many rows as the "
                            "exponents have, got "
                         << acc;
  return verifyWeights(*this, getExponents().getType(), getP().getType());
}
