//===- LoopParts.cpp - Parts of a loop over tiles ---------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopParts.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace kvbuf;

bool kvbuf::collectSlice(Value value, scf::ForOp loop, OpSlice &slice) {
  if (auto arg = dyn_cast<BlockArgument>(value))
    return arg.getOwner() != loop.getBody() || arg == loop.getInductionVar();
  Operation *op = value.getDefiningOp();
  if (op->getBlock() != loop.getBody() || slice.contains(op))
    return true;
  slice.insert(op);
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    return collectSlice(operand, loop, slice);
  });
}

void kvbuf::cloneSlice(OpBuilder &b, scf::ForOp loop, const OpSlice &slice,
                       IRMapping &mapping) {
  for (Operation &op : *loop.getBody())
    if (slice.contains(&op))
      b.clone(op, mapping);
}

Operation *kvbuf::cloneWithOperands(OpBuilder &b, scf::ForOp loop,
                                    Operation *op, IRMapping &mapping) {
  // What ops inside of its regions use counts too.
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (Operation *def = operand.getDefiningOp())
        if (def->getBlock() == loop.getBody() && !mapping.contains(operand))
          cloneWithOperands(b, loop, def, mapping);
  });
  return b.clone(*op, mapping);
}

Operation *kvbuf::predicateLoad(RewriterBase &rewriter, Operation *op,
                                Value pred) {
  if (auto load = dyn_cast<DramLoadOp>(op)) {
    if (!load.getPred())
      rewriter.modifyOpInPlace(load,
                               [&] { load.getPredMutable().assign(pred); });
    return op;
  }
  if (auto tile = dyn_cast<CacheTileOp>(op)) {
    if (!tile.getPred())
      rewriter.modifyOpInPlace(tile,
                               [&] { tile.getPredMutable().assign(pred); });
    return op;
  }
  return isMemoryEffectFree(op) ? op : nullptr;
}
