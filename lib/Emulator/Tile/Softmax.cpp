//===- Softmax.cpp - The softmax on whole tiles -----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Math.h"
#include "OwnOps.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Weights.h"
#include <cmath>
#include <numbers>

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::emu;
using namespace kvbuf::emu::tile;

LogicalResult tile::execute(TileContext &context, AnyNegativeOp op) {
  context.setInteger(
      op.getAny(),
      int64_t(llvm::any_of(context.matrixOf(op.getRows()).data,
                           [](float x) { return std::signbit(x); })));
  return success();
}

LogicalResult tile::execute(TileContext &context, OnlineSoftmaxOp op) {
  const Matrix &scores = context.matrixOf(op.getScores());
  if (op.getNotNegative())
    for (auto [r, m] : llvm::enumerate(context.matrixOf(op.getMax()).data))
      if (std::signbit(m))
        return context.errorAt(op)
               << "has 'not_negative', but the maximum of row " << r << " is "
               << m;
  if (!op.getMasked())
    for (auto [i, s] : llvm::enumerate(scores.data))
      if (s == -std::numeric_limits<float>::infinity())
        return context.errorAt(op)
               << "has no 'masked', but the score at [" << i / scores.cols
               << ", " << i % scores.cols << "] is -inf";
  SoftmaxStep step = onlineSoftmax(
      scores, context.matrixOf(op.getMax()), context.matrixOf(op.getSum()),
      op.getRowMax() ? &context.matrixOf(op.getRowMax()) : nullptr,
      op.getScale().convertToFloat(), op.getUnbounded());
  Type element = op.getP().getType().getElementType();
  float gain = op.gainOfWeights();
  context.setMatrix(op.getP(),
                    map(step.p, element, [&](float x) { return gain * x; }));
  context.setMatrix(op.getNewMax(), std::move(step.max));
  context.setMatrix(op.getNewSum(), std::move(step.sum));
  context.setMatrix(op.getRescale(), std::move(step.rescale));
  return success();
}

LogicalResult tile::execute(TileContext &context, RaiseMaxOp op) {
  bool exact = op.getExact() && context.integerOf(op.getExact());
  const Matrix &max = context.matrixOf(op.getMax());
  RaisedMax raised =
      op.getExactOnly() && !exact &&
              !llvm::is_contained(max.data,
                                  -std::numeric_limits<float>::infinity())
          ? RaisedMax{max, Matrix(max.rows, max.cols, 1), false}
          : raiseMax(context.matrixOf(op.getScores()), max,
                     op.getScale().convertToFloat(), exact || op.getExactOnly(),
                     op.getUnbounded());
  context.setMatrix(op.getNewMax(), std::move(raised.max));
  context.setMatrix(op.getFactor(), std::move(raised.factor));
  context.setInteger(op.getRaised(), int64_t(raised.any));
  return success();
}

LogicalResult tile::execute(TileContext &context, ApplyRaiseOp op) {
  Matrix acc = context.matrixOf(op.getAcc()),
         sum = context.matrixOf(op.getSum());
  const Matrix &factor = context.matrixOf(op.getFactor());
  if (context.integerOf(op.getRaised()))
    for (int64_t r = 0; r < acc.rows; ++r) {
      sum.at(r, 0) *= factor.at(r, 0);
      for (int64_t c = 0; c < acc.cols; ++c)
        acc.at(r, c) *= factor.at(r, 0);
    }
  context.setMatrix(op.getNewAcc(), std::move(acc));
  context.setMatrix(op.getNewSum(), std::move(sum));
  return success();
}

LogicalResult tile::execute(TileContext &context, SoftmaxHeadOp op) {
  const Matrix &scores = context.matrixOf(op.getScores()),
               &max = context.matrixOf(op.getMax());
  if (!op.getMasked())
    for (int64_t r = 0; r < max.rows; ++r)
      if (max.at(r, 0) == -std::numeric_limits<float>::infinity())
        return context.errorAt(op)
               << "has no 'masked', but the maximum of row " << r << " is -inf";
  Matrix x = softmaxHead(scores, max, op.getScale().convertToFloat(),
                         op.getExponentsOnly(), op.getUnbounded());
  Matrix largest = max;
  for (int64_t r = 0; r < max.rows; ++r) {
    largest.at(r, 0) = 0;
    for (int64_t c = 0; c < x.cols; ++c)
      largest.at(r, 0) =
          std::max(largest.at(r, 0),
                   2 * c < x.cols ? x.at(r, c) : std::exp2(x.at(r, c)));
  }
  Matrix excess = map(largest, op.getOperand(), [](float w) { return w; });
  for (int64_t r = 0; r < max.rows; ++r)
    excess.at(r, 0) -= largest.at(r, 0);
  context.setMatrix(op.getExponents(), std::move(x));
  context.setMatrix(op.getExcess(), std::move(excess));
  return success();
}

LogicalResult tile::execute(TileContext &context, SoftmaxTailOp op) {
  Type element = op.getP().getType().getElementType();
  SoftmaxTail tail = softmaxTail(context.matrixOf(op.getExponents()),
                                 context.matrixOf(op.getSum()),
                                 op.getRounded() ? element : Type());
  context.setMatrix(op.getP(), map(tail.p, element, [](float x) { return x; }));
  if (op.getExcess())
    for (int64_t r = 0; r < tail.sum.rows; ++r)
      tail.sum.at(r, 0) += context.matrixOf(op.getExcess()).at(r, 0);
  context.setMatrix(op.getNewSum(), std::move(tail.sum));
  return success();
}

LogicalResult tile::execute(TileContext &context, SoftmaxSettleOp op) {
  Type element = op.getP().getType().getElementType();
  Matrix max = context.matrixOf(op.getMax()),
         sum = context.matrixOf(op.getSum()),
         acc = context.matrixOf(op.getAcc()), none(sum.rows, sum.cols),
         x = context.matrixOf(op.getAll());
  float base2 = op.getScale().convertToFloat() * std::numbers::log2e_v<float>;
  SoftmaxTail tail =
      softmaxTail(context.matrixOf(op.getExponents()), none, element);
  // Weights of up to 2^8.
  bool anew = llvm::any_of(tail.sum.data, [](float s) { return s > 256; });
  for (int64_t r = 0; anew && r < sum.rows; ++r) {
    float top = 0;
    for (int64_t c = 0; c < x.cols; ++c)
      top = std::max(top, x.at(r, c));
    for (int64_t c = 0; c < x.cols; ++c)
      x.at(r, c) =
          2 * c < x.cols ? std::exp2(x.at(r, c) - top) : x.at(r, c) - top;
    max.at(r, 0) += top / base2;
    sum.at(r, 0) *= std::exp2(-top);
    for (int64_t c = 0; c < acc.cols; ++c)
      acc.at(r, c) *= std::exp2(-top);
  }
  if (anew)
    tail = softmaxTail(x, none, element);
  for (int64_t r = 0; r < sum.rows; ++r)
    sum.at(r, 0) += tail.sum.at(r, 0);
  context.setMatrix(op.getP(), std::move(tail.p));
  context.setMatrix(op.getNewMax(), std::move(max));
  context.setMatrix(op.getNewSum(), std::move(sum));
  context.setMatrix(op.getNewAcc(), std::move(acc));
  return success();
}

LogicalResult tile::execute(TileContext &context, CarryExcessOp op) {
  Matrix carried = context.matrixOf(op.getCarried());
  for (int64_t r = 0; r < carried.rows; ++r)
    carried.at(r, 0) =
        std::fma(carried.at(r, 0), context.matrixOf(op.getFactor()).at(r, 0),
                 context.matrixOf(op.getExcess()).at(r, 0));
  context.setMatrix(op.getNewCarried(), std::move(carried));
  return success();
}

LogicalResult tile::execute(TileContext &context, SoftmaxFinishOp op) {
  float sink = 0;
  if (op.getSink())
    sink = context.floatOf(op.getSink());
  SoftmaxResult result = finishSoftmax(
      context.matrixOf(op.getAcc()), context.matrixOf(op.getMax()),
      context.matrixOf(op.getSum()),
      op.getExcess() ? &context.matrixOf(op.getExcess()) : nullptr,
      op.getExcess() ? Type() : findWeightType(op.getMax()),
      op.getScale().convertToFloat(), op.getSink() ? &sink : nullptr,
      op.getUnbounded());
  context.setMatrix(op.getResult(), std::move(result.out));
  context.setMatrix(op.getLse(), std::move(result.lse));
  return success();
}

LogicalResult tile::execute(TileContext &context, SoftmaxMergeOp op) {
  SoftmaxPart part = mergeSoftmax(
      {context.matrixOf(op.getAcc()), context.matrixOf(op.getMax()),
       context.matrixOf(op.getSum())},
      {context.matrixOf(op.getOtherAcc()), context.matrixOf(op.getOtherMax()),
       context.matrixOf(op.getOtherSum())},
      op.getScale().convertToFloat(), op.getUnbounded());
  context.setMatrix(op.getNewAcc(), std::move(part.acc));
  context.setMatrix(op.getNewMax(), std::move(part.max));
  context.setMatrix(op.getNewSum(), std::move(part.sum));
  return success();
}
