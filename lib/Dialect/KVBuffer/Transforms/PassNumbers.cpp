//===- PassNumbers.cpp - What numbers passes take as options --------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/Transforms/PassNumbers.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

LogicalResult kvbuf::checkPassNumber(Operation *op, StringRef name,
                                     int64_t value, int64_t least,
                                     int64_t most) {
  if (value >= least && value <= most)
    return success();
  return op->emitOpError() << "is to be lowered with " << name << " = " << value
                           << "; expected " << least << " to " << most;
}

bool kvbuf::isAlignment(int64_t bytes) {
  return llvm::is_contained({2, 4, 8, 16}, bytes);
}

LogicalResult kvbuf::checkAlignment(Operation *op, int64_t bytes) {
  if (isAlignment(bytes))
    return success();
  return op->emitOpError() << "is to be lowered with alignment = " << bytes
                           << "; expected 2, 4, 8 or 16";
}
