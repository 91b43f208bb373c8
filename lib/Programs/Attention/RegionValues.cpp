//===- RegionValues.cpp - Values of a problem's functions -----------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RegionValues.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace kvbuf;

Value kvbuf::stripCasts(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::IndexCastOp, arith::ExtSIOp>(op))
      break;
    // Coordinates fit 32 bits, and fewer cut them off.
    if (op->getOperand(0).getType().isIndex() &&
        value.getType().getIntOrFloatBitWidth() < 32)
      break;
    value = op->getOperand(0);
  }
  return value;
}

Value kvbuf::copyValue(ImplicitLocOpBuilder &b, Value value, IRMapping &known) {
  if (Value copy = known.lookupOrNull(value))
    return copy;
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    copyValue(b, operand, known);
  b.clone(*op, known);
  return known.lookup(value);
}
