//===- HoistReads.cpp - Read in front of loops what stays the same --------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace kvbuf {
#define GEN_PASS_DEF_HOISTREADS
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

/// Whether all that becomes of a tensor is that elements of it are read.
static bool isOnlyRead(Value tensor) {
  return llvm::all_of(tensor.getUsers(), [](Operation *user) {
    if (isa<memref::LoadOp, memref::DimOp>(user))
      return true;
    return isa<memref::ReinterpretCastOp, memref::CastOp>(user) &&
           isOnlyRead(user->getResult(0));
  });
}

/// Whether an op reads an element of an argument that its kernel only reads.
static bool readsArgument(Operation *op) {
  auto load = dyn_cast<memref::LoadOp>(op);
  if (!load)
    return false;
  Value tensor = load.getMemRef();
  while (Operation *def = tensor.getDefiningOp()) {
    if (!isa<memref::ReinterpretCastOp, memref::CastOp>(def))
      return false;
    tensor = def->getOperand(0);
  }
  return isa<FunctionOpInterface>(
             cast<BlockArgument>(tensor).getOwner()->getParentOp()) &&
         isOnlyRead(tensor);
}

namespace {
struct HoistReadsPass : kvbuf::impl::HoistReadsBase<HoistReadsPass> {
  using Base::Base;

  /// Adds what `value` needs of a loop's body to `slice`, each op behind what
  /// it needs itself; false where another iteration may need something else.
  static bool collect(Value value, Block *body,
                      llvm::SetVector<Operation *> &slice) {
    if (!body->getParent()->isAncestor(value.getParentRegion()))
      return true;
    Operation *def = value.getDefiningOp();
    if (!def || def->getBlock() != body || def->getNumRegions() ||
        !(isPure(def) || readsArgument(def)))
      return false;
    for (Value operand : def->getOperands())
      if (!collect(operand, body, slice))
        return false;
    slice.insert(def);
    return true;
  }

  void runOnOperation() override {
    // The body of a rotated loop runs at least once, all that stands directly
    // in it.
    SmallVector<scf::WhileOp> loops;
    getOperation().walk([&](scf::WhileOp loop) { loops.push_back(loop); });
    for (scf::WhileOp loop : loops) {
      Block *body = loop.getBeforeBody();
      for (auto load :
           llvm::make_early_inc_range(body->getOps<memref::LoadOp>())) {
        llvm::SetVector<Operation *> slice;
        if (!readsArgument(load) || !collect(load.getResult(), body, slice))
          continue;
        for (Operation *op : slice)
          op->moveBefore(loop);
      }
    }
  }
};
} // namespace
