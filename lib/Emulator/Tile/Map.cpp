//===- Map.cpp - Arithmetic by regions on whole tiles -----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OwnOps.h"

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::emu;
using namespace kvbuf::emu::tile;

LogicalResult tile::execute(TileContext &context, MapOp op) {
  FragmentType type = op.getResult().getType();
  Matrix result(type.getRows(), type.getCols(), 0);
  Block &body = op.getBody().front();
  unsigned count = op.getInputs().size();
  int64_t row = op.getRow() ? context.integerOf(op.getRow()) : 0;
  int64_t col = op.getCol() ? context.integerOf(op.getCol()) : 0;
  Value yielded = cast<YieldOp>(body.getTerminator()).getValue();
  for (int64_t r = 0; r < type.getRows(); ++r)
    for (int64_t c = 0; c < type.getCols(); ++c) {
      for (auto [input, argument] :
           llvm::zip(op.getInputs(), body.getArguments())) {
        // A value of a row is that of all its elements.
        Role role = cast<FragmentType>(input.getType()).getRole();
        context.setFloat(
            argument, context.matrixOf(input).at(r, role == Role::Row ? 0 : c));
      }
      context.setInteger(body.getArgument(count), row + r);
      context.setInteger(body.getArgument(count + 1), col + c);
      if (failed(context.runBody(body)))
        return failure();
      result.at(r, c) = context.floatOf(yielded);
    }
  context.setMatrix(op.getResult(), std::move(result));
  return success();
}
