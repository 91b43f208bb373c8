//===- CountWaits.cpp - Count the loads that a wait may leave in flight *- C++
//-*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "mlir/IR/Builders.h"

namespace kvbuf {
#define GEN_PASS_DEF_COUNTWAITS
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

/// Loads in [from, to) of one block; those in nested regions do not count, they
/// may not run.
static int64_t loadsBetween(Block::iterator from, Block::iterator to) {
  return std::count_if(from, to,
                       [](Operation &op) { return isa<DramLoadOp>(op); });
}

/// The least number of loads issued after the load of `token` and before
/// `point`, a place in a block that the token reaches. `visited` cuts cycles of
/// tokens that a loop passes round unchanged.
static int64_t countYounger(Value token, Block *block, Block::iterator point,
                            SmallVectorImpl<Value> &visited) {
  constexpr int64_t kMany = std::numeric_limits<int32_t>::max();
  if (llvm::is_contained(visited, token))
    return kMany;
  if (Operation *def = token.getDefiningOp()) {
    if (isa<DramLoadOp>(def)) {
      if (def->getBlock() == block)
        return loadsBetween(std::next(def->getIterator()), point);
      return 0;
    }
    // A loop's result: what the loop was entered with, or yields at its end.
    auto loop = dyn_cast<scf::ForOp>(def);
    if (!loop || loop->getBlock() != block)
      return 0;
    unsigned index = cast<OpResult>(token).getResultNumber();
    int64_t behind = loadsBetween(std::next(loop->getIterator()), point);
    visited.push_back(token);
    int64_t entered = countYounger(loop.getInitArgs()[index], block,
                                   loop->getIterator(), visited);
    int64_t yielded =
        countYounger(loop.getYieldedValues()[index], loop.getBody(),
                     loop.getBody()->end(), visited);
    visited.pop_back();
    return behind + std::min(entered, yielded);
  }
  auto arg = cast<BlockArgument>(token);
  auto loop = dyn_cast<scf::ForOp>(arg.getOwner()->getParentOp());
  if (!loop || arg.getOwner() != block)
    return 0;
  unsigned index = arg.getArgNumber() - loop.getNumInductionVars();
  int64_t here = loadsBetween(block->begin(), point);
  visited.push_back(token);
  int64_t entered = countYounger(loop.getInitArgs()[index], loop->getBlock(),
                                 loop->getIterator(), visited);
  int64_t yielded = countYounger(loop.getYieldedValues()[index], block,
                                 block->end(), visited);
  visited.pop_back();
  return here + std::min(entered, yielded);
}

namespace {
struct CountWaitsPass : kvbuf::impl::CountWaitsBase<CountWaitsPass> {
  using Base::Base;

  void runOnOperation() override {
    // A kernel by lanes has no tiles to wait for, and is past this stage.
    auto phase =
        getOperation()->getAttrOfType<PhaseAttr>(KVBufferDialect::kPhaseAttr);
    if (phase && phase.getValue() != Phase::Tile &&
        phase.getValue() != Phase::Scheduled)
      return;
    getOperation().walk([&](LdsStageOp stage) {
      int64_t younger = std::numeric_limits<int32_t>::max();
      for (Value token : stage.getTokens()) {
        SmallVector<Value> visited;
        younger =
            std::min(younger, countYounger(token, stage->getBlock(),
                                           stage->getIterator(), visited));
      }
      stage.setYounger(younger);
    });
    getOperation()->setAttr(KVBufferDialect::kPhaseAttr,
                            PhaseAttr::get(&getContext(), Phase::Scheduled));
  }
};
} // namespace
