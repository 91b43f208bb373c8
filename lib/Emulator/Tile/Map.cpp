//===- Map.cpp - Arithmetic by regions on whole tiles -----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockRun.h"
#include "Math.h"
#include <cmath>

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::emu;
using namespace kvbuf::emu::tile;

LogicalResult BlockRun::runOp(MapOp op) {
  FragmentType type = op.getResult().getType();
  Matrix result(type.getRows(), type.getCols(), 0);
  Block &body = op.getBody().front();
  unsigned count = op.getInputs().size();
  int64_t row = op.getRow() ? integer(op.getRow()) : 0;
  int64_t col = op.getCol() ? integer(op.getCol()) : 0;
  Value yielded = cast<YieldOp>(body.getTerminator()).getValue();
  for (int64_t r = 0; r < type.getRows(); ++r)
    for (int64_t c = 0; c < type.getCols(); ++c) {
      for (auto [input, argument] :
           llvm::zip(op.getInputs(), body.getArguments())) {
        // A value of a row is that of all its elements.
        Role role = cast<FragmentType>(input.getType()).getRole();
        set(argument, Attribute(FloatAttr::get(
                          argument.getType(),
                          matrix(input).at(r, role == Role::Row ? 0 : c))));
      }
      set(body.getArgument(count), row + r);
      set(body.getArgument(count + 1), col + c);
      if (failed(runBlock(body)))
        return failure();
      result.at(r, c) =
          cast<FloatAttr>(get<Attribute>(yielded)).getValue().convertToDouble();
    }
  set(op.getResult(), std::move(result));
  return success();
}
