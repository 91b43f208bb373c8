//===- Weights.cpp - The weights of a softmax -----------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/IR/Weights.h"
#include "kvbuffer/Dialect/KVBuffer/IR/FragmentSources.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"

using namespace mlir;

Type kvbuf::findWeightType(Value max) {
  Type found;
  for (Value source : fragmentSources(max)) {
    Operation *op = source.getDefiningOp();
    if (isa_and_nonnull<FragmentFillOp>(op))
      continue;
    auto step = dyn_cast_or_null<OnlineSoftmaxOp>(op);
    if (!step || source != step.getNewMax())
      return {};
    Type type = step.getP().getType().getElementType();
    if (found && found != type)
      return {};
    found = type;
  }
  return found;
}
