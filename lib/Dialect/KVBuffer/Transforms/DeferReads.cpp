//===- DeferReads.cpp - Ask for tiles before what stays in registers ------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop's first tiles are asked for in front of it. What a program reads into
// registers before, for the loop's products, is needed only when the first of
// these tiles are there, but an instruction that needs a page's number may wait
// for both: loads into registers share a few counters.
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/Transforms/ChooseTarget.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace kvbuf {
#define GEN_PASS_DEF_DEFERREADS
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

/// Whether an op does nothing to memory but read it, or asks for a tile.
static bool onlyReads(Operation *op) {
  return isMemoryEffectFree(op) || isa<CacheTileOp, DramLoadOp>(op) ||
         hasSingleEffect<MemoryEffects::Read>(op);
}

/// The last load of a tile in front of a loop, in its block, behind which
/// nothing waits or writes; null if there is none.
static DramLoadOp lastLoadBefore(scf::ForOp loop) {
  for (Operation *op = loop->getPrevNode(); op && onlyReads(op);
       op = op->getPrevNode())
    if (auto load = dyn_cast<DramLoadOp>(op))
      return load;
  return nullptr;
}

/// Whether an op, or one in it, has one of `values` as an operand.
static bool needsSomeOf(const llvm::SetVector<Operation *> &values,
                        Operation *op) {
  return op
      ->walk([&](Operation *inner) {
        return llvm::any_of(inner->getOperands(),
                            [&](Value operand) {
                              return values.contains(operand.getDefiningOp());
                            })
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// What is read into registers in front of `last`, behind the last op there
/// that waits or writes, and what is computed of it in front of `loop`, in
/// order; nothing where some of that cannot come later: a load needs it, or a
/// branch.
static llvm::SetVector<Operation *> readsBefore(DramLoadOp last,
                                                scf::ForOp loop) {
  Operation *first = last;
  while (first->getPrevNode() && onlyReads(first->getPrevNode()))
    first = first->getPrevNode();
  llvm::SetVector<Operation *> found;
  for (Operation *op = first; op != loop; op = op->getNextNode()) {
    bool needsSome = needsSomeOf(found, op);
    if (needsSome && (op->getNumRegions() || !isPure(op)))
      return {};
    if (needsSome ||
        (isa<TileFragmentOp>(op) && op->isBeforeInBlock(last.getOperation())))
      found.insert(op);
  }
  return found;
}

namespace {
struct DeferReadsPass : kvbuf::impl::DeferReadsBase<DeferReadsPass> {
  using Base::Base;

  void runOnOperation() override {
    // Where waits count loads, in their order, who waits for the last of them
    // waits for all.
    std::optional<TargetInfo> target = targetOf(getOperation());
    if (!target || target->waitsByOperand)
      return;
    getOperation().walk([](scf::ForOp loop) {
      if (DramLoadOp last = lastLoadBefore(loop))
        for (Operation *op : readsBefore(last, loop))
          op->moveBefore(loop);
    });
  }
};
} // namespace
