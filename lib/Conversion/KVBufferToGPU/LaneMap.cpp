//===- LaneMap.cpp - Arithmetic by regions, element by element --*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaneMap.h"
#include "LaneLowering.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace kvbuf;

/// The region's body, once for each element that the lane holds.
LogicalResult kvbuf::lowerOp(LaneLowering &lower, MapOp op) {
  ImplicitLocOpBuilder &b = lower.b;
  FragmentType type = op.getResult().getType();
  const FragmentLayout &atom = lower.layouts.of(type);
  int64_t cols = atom.atomCols(type);
  unsigned parts = atom.rowParts().size();
  SmallVector<Values> inputs;
  for (Value input : op.getInputs())
    inputs.push_back(lower.get(input));
  Block &body = op.getBody().front();
  Value rowArgument = body.getArgument(inputs.size()),
        colArgument = body.getArgument(inputs.size() + 1);
  // Coordinates fit 32 bits, as the problem's sizes do.
  auto base = [&](Value inLane, Value first) -> Value {
    if (!first)
      return inLane;
    return arith::AddIOp::create(b, lower.toI32(lower.single(first)), inLane);
  };
  bool needsRow = !rowArgument.use_empty(), needsCol = !colArgument.use_empty();
  Value firstRow = needsRow ? base(lower.laneRow(type), op.getRow()) : Value(),
        firstCol = needsCol ? base(lower.laneCol(type), op.getCol()) : Value();
  // One value for each row and each column of registers.
  llvm::DenseMap<int64_t, Value> rows, columns;
  auto coordinate = [&](llvm::DenseMap<int64_t, Value> &known, Value first,
                        int64_t offset) {
    Value &value = known[offset];
    if (!value)
      value = lower.toIndex(arith::AddIOp::create(b, first, lower.i32(offset)));
    return value;
  };
  if (needsRow)
    for (int64_t i = 0, e = inputs[0].size() / cols; i < e; ++i)
      for (unsigned part = 0; part < parts; ++part)
        coordinate(rows, firstRow, atom.rowOffset(i, part));
  if (needsCol)
    for (int64_t j = 0; j < cols; ++j)
      for (int64_t reg = 0; reg < atom.registers(); ++reg)
        coordinate(columns, firstCol, j * atom.cols + atom.colOffset(reg));

  Values results;
  for (auto [index, vector] : llvm::enumerate(inputs[0])) {
    Values elements;
    for (int64_t reg = 0; reg < atom.registers(); ++reg) {
      for (auto [argument, input] : llvm::zip(body.getArguments(), inputs))
        lower.set(argument, {lower.element(input[index], reg)});
      if (needsRow)
        lower.set(rowArgument,
                  {rows[atom.rowOffset(index / cols, atom.rowPart(reg))]});
      if (needsCol)
        lower.set(colArgument,
                  {columns[index % cols * atom.cols + atom.colOffset(reg)]});
      if (failed(lower.lowerBlock(body)))
        return failure();
      elements.push_back(
          lower.single(cast<YieldOp>(body.getTerminator()).getValue()));
    }
    b.setLoc(op.getLoc());
    auto wide =
        VectorType::get({int64_t(elements.size())}, type.getElementType());
    results.push_back(vector::FromElementsOp::create(b, wide, elements));
  }
  lower.set(op.getResult(), results);
  return success();
}
