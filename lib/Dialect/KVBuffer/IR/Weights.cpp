//===- Weights.cpp - The weights of a softmax -----------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/IR/Weights.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

Type kvbuf::findWeightType(Value max) {
  Type found;
  // Grows while it is walked: loops lead back to what has been seen.
  llvm::SetVector<Value> sources;
  sources.insert(max);
  for (size_t i = 0; i < sources.size(); ++i) {
    Value source = sources[i];
    if (auto arg = dyn_cast<BlockArgument>(source)) {
      auto loop = dyn_cast<scf::ForOp>(arg.getOwner()->getParentOp());
      if (!loop || arg == loop.getInductionVar())
        return {};
      sources.insert(loop.getTiedLoopInit(arg)->get());
      sources.insert(loop.getTiedLoopYieldedValue(arg)->get());
      continue;
    }
    unsigned number = cast<OpResult>(source).getResultNumber();
    Operation *op = source.getDefiningOp();
    if (auto step = dyn_cast<OnlineSoftmaxOp>(op)) {
      Type type = step.getP().getType().getElementType();
      if (source != step.getNewMax() || (found && found != type))
        return {};
      found = type;
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      sources.insert(loop.getInitArgs()[number]);
      sources.insert(loop.getYieldedValues()[number]);
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      for (Block *block : {branch.thenBlock(), branch.elseBlock()})
        sources.insert(block->getTerminator()->getOperand(number));
    } else if (!isa<FragmentFillOp>(op)) {
      return {};
    }
  }
  return found;
}
