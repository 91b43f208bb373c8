//===- Fragments.cpp - Ops from fragments to fragments ----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Math.h"
#include "OwnOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::emu;
using namespace kvbuf::emu::tile;

LogicalResult tile::execute(TileContext &context, MmaOp op) {
  const Matrix &a = context.matrixOf(op.getA());
  const Matrix &acc = context.matrixOf(op.getAcc());
  const Matrix &b = context.matrixOf(op.getB());
  int64_t cols = op.getTransposeB() ? b.rows : b.cols, first = op.getColumn();
  context.countMultiplyAdds(a.rows * a.cols * cols);
  if (cols == acc.cols) {
    context.setMatrix(op.getResult(), multiply(a, b, acc, op.getTransposeB()));
    return success();
  }
  Matrix part =
      multiply(a, b, slice(acc, 0, first, acc.rows, cols), op.getTransposeB());
  Matrix result = acc;
  for (int64_t r = 0; r < acc.rows; ++r)
    for (int64_t c = 0; c < cols; ++c)
      result.at(r, first + c) = part.at(r, c);
  context.setMatrix(op.getResult(), std::move(result));
  return success();
}

LogicalResult tile::execute(TileContext &context, FragmentFitOp op) {
  const Matrix &source = context.matrixOf(op.getSource());
  int power = powerThatFits(source);
  float scale = 1;
  if (op.getScale())
    scale = context.floatOf(op.getScale());
  // Factors are positive, and no zeros: what is hidden stays -inf.
  float factor = std::max(float(std::ldexp(1.0, -power)) * std::abs(scale),
                          std::numeric_limits<float>::min());
  context.setMatrix(op.getFactor(),
                    Matrix(op.getFactor().getType().getRows(), 1, factor));
  context.setMatrix(
      op.getFragment(),
      map(source, op.getFragment().getType().getElementType(), [&](float x) {
        return float(std::ldexp(std::copysign(1.0, scale) * x, power));
      }));
  return success();
}

LogicalResult tile::executeFragmentOp(TileContext &context, Operation *op) {
  auto type = cast<FragmentType>(op->getResult(0).getType());
  Type element = type.getElementType();
  Matrix result =
      llvm::TypeSwitch<Operation *, Matrix>(op)
          .Case([&](FragmentFillOp op) {
            return Matrix(type.getRows(), type.getCols(),
                          roundTo(element, op.getValue().convertToFloat()));
          })
          .Case([&](FragmentSliceOp op) {
            return slice(context.matrixOf(op.getSource()), op.getRow(),
                         op.getCol(), type.getRows(), type.getCols());
          })
          .Case([&](FragmentConvertOp op) {
            return map(context.matrixOf(op.getSource()), element,
                       [](float x) { return x; });
          })
          .Case([&](ExchangeOp op) { return context.matrixOf(op.getSource()); })
          .Case([&](RowReduceOp op) {
            return reduceRows(context.matrixOf(op.getSource()),
                              op.getKind() == Reduction::Maximum);
          })
          // A row of a tile has one sum, of all its columns.
          .Case(
              [&](WarpReduceOp op) { return context.matrixOf(op.getSource()); })
          .Case([&](SoftcapOp op) {
            float scale = op.getScale().convertToFloat(),
                  cap = op.getCap().convertToFloat();
            return map(context.matrixOf(op.getScores()), element, [&](float x) {
              return cap * std::tanh(scale * x / cap);
            });
          })
          .Case([&](FragmentScaleOp op) {
            float factor = op.getFactor().convertToFloat();
            return map(context.matrixOf(op.getSource()), element,
                       [&](float x) { return x * factor; });
          })
          .Case([&](MaskOp op) {
            return hide(context.matrixOf(op.getScores()),
                        context.integerOf(op.getRow()),
                        context.integerOf(op.getQueries()),
                        context.integerOf(op.getKey()),
                        context.integerOf(op.getKeys()), op.getMask(),
                        op.getGroup());
          })
          .Case([&](RescaleOp op) {
            Matrix scaled = context.matrixOf(op.getAcc());
            const Matrix &factor = context.matrixOf(op.getFactor());
            for (int64_t r = 0; r < scaled.rows; ++r)
              for (int64_t c = 0; c < scaled.cols; ++c)
                scaled.at(r, c) =
                    op.getAddend()
                        ? std::fma(scaled.at(r, c), factor.at(r, 0),
                                   context.matrixOf(op.getAddend()).at(r, c))
                        : scaled.at(r, c) * factor.at(r, 0);
            return scaled;
          });
  context.setMatrix(op->getResult(0), std::move(result));
  return success();
}

LogicalResult tile::execute(TileContext &context, TileFragmentOp op) {
  FailureOr<Matrix> tile = context.tileBy(op, op.getTile());
  if (failed(tile))
    return failure();
  // Columns of the fragment that the tile does not have are zeros.
  FragmentType type = op.getFragment().getType();
  Matrix result(type.getRows(), type.getCols());
  for (int64_t r = 0; r < result.rows; ++r)
    for (int64_t c = 0; c < std::min(result.cols, tile->cols); ++c)
      result.at(r, c) = tile->at(r, c);
  context.setMatrix(op.getFragment(), std::move(result));
  return success();
}
