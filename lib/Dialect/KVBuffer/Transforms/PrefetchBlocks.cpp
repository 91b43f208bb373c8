//===- PrefetchBlocks.cpp - Issue loads of blocks ahead ---------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopParts.h"
#include "LostRequest.h"
#include "PipelineLoop.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ChooseTarget.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/IR/Remarks.h"

namespace kvbuf {
#define GEN_PASS_DEF_PREFETCHBLOCKS
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-prefetch-blocks"

/// The loads of a loop that takes blocks one after the other, each awaited by
/// itself, in the order in which they are awaited; `why` says what is missing.
static SmallVector<DramLoadOp> findBlocks(scf::ForOp loop, StringRef &why) {
  SmallVector<DramLoadOp> loads;
  for (auto stage : loop.getBody()->getOps<LdsStageOp>()) {
    auto load = stage.getTokens().size() == 1
                    ? stage.getTokens().front().getDefiningOp<DramLoadOp>()
                    : DramLoadOp();
    why = "a wait is not for one load of its own iteration";
    if (!load || load->getBlock() != loop.getBody() || load.getPred())
      return {};
    loads.push_back(load);
  }
  why = "a load is not awaited in its own iteration";
  if (loads.size() !=
      size_t(llvm::range_size(loop.getBody()->getOps<DramLoadOp>())))
    return {};
  why = "a buffer of one slot cannot be loaded while it is read";
  for (DramLoadOp load : loads)
    if (load.getBuffer().getType().getParams().getStages() < 2)
      return {};
  return loads;
}

namespace {
struct PrefetchBlocksPass
    : kvbuf::impl::PrefetchBlocksBase<PrefetchBlocksPass> {
  using Base::Base;

  /// Whether a copy counts even where it copies nothing (TargetInfo).
  bool copiesByWave = false;

  LogicalResult pipeline(scf::ForOp loop) {
    Block *body = loop.getBody();
    StringRef why;
    SmallVector<DramLoadOp> loads = findBlocks(loop, why);
    int64_t distance = std::numeric_limits<int64_t>::max();
    for (DramLoadOp load : loads)
      distance = std::min(
          distance, load.getBuffer().getType().getParams().getStages() - 1);
    int64_t count = loads.size();
    if (count && distance > count)
      distance = count;
    if (!count) {
      warnLost(loop, DEBUG_TYPE, "blocks", "not prefetched: " + why);
      return success();
    }

    OpSlice needed;
    for (DramLoadOp load : ArrayRef(loads).take_front(distance))
      collectSlice(load.getToken(), loop, needed);
    if (Operation *bound = findBound(needed)) {
      warnLost(bound, DEBUG_TYPE, "blocks", kNotAhead);
      return success();
    }

    // The first loads run an iteration ahead, with copies of all that they
    // need: tiles and indices are not carried from one iteration to the next.
    IRRewriter rewriter(&getContext());
    SmallVector<SmallVector<Operation *>> ahead(distance);
    for (int64_t i = 0; i < distance; ++i) {
      rewriter.setInsertionPoint(loads[i]);
      IRMapping mapping;
      Operation *previous = loads[i]->getPrevNode();
      auto copy = cast<DramLoadOp>(
          cloneWithOperands(rewriter, loop, loads[i], mapping));
      for (Operation *op = previous ? previous->getNextNode() : &body->front();
           op != loads[i]; op = op->getNextNode())
        ahead[i].push_back(op);
      rewriter.replaceOp(loads[i], copy.getToken());
      loads[i] = copy;
    }
    llvm::SmallPtrSet<Operation *, 32> runsAhead;
    for (ArrayRef<Operation *> ops : ahead)
      runsAhead.insert_range(ops);
    // Look-ups that the copies have made unnecessary.
    for (auto tile : llvm::make_early_inc_range(body->getOps<CacheTileOp>()))
      if (tile->use_empty())
        rewriter.eraseOp(tile);

    constexpr unsigned next = 0, now = 1;
    PipelineOrder order;
    llvm::SmallPtrSet<Operation *, 32> placed;
    auto place = [&](Operation *op, unsigned stage) {
      if (placed.insert(op).second)
        order.push_back({op, stage});
    };
    std::function<void(Operation *)> placeWithOperands = [&](Operation *op) {
      if (!op || op->getBlock() != body || placed.contains(op))
        return;
      for (Value operand : op->getOperands())
        placeWithOperands(operand.getDefiningOp());
      place(op, now);
    };
    int64_t awaited = 0;
    for (Operation &op : body->without_terminator()) {
      if (isa<DramLoadOp>(op) || runsAhead.contains(&op))
        continue;
      place(&op, now);
      if (!isa<LdsStageOp>(op))
        continue;
      // Its barrier has freed a slot.
      int64_t target = awaited++ + distance;
      if (target < count)
        placeWithOperands(loads[target]);
      else
        for (Operation *part : ahead[target - count])
          place(part, next);
    }

    Location loc = loop.getLoc();
    annotate(loop, order, Pipeline::Predicated);
    if (annotateOnly)
      return success();
    FailureOr<scf::ForOp> result =
        pipelineLoop(rewriter, loop, "that loads blocks");
    if (failed(result))
      return failure();
    settleBehind(rewriter, *result, copiesByWave);
    remark::passed(loc, remark::RemarkOpts::name("blocks").category(DEBUG_TYPE))
        << "loads run " << std::to_string(distance) << " block(s) ahead";
    return success();
  }

  void runOnOperation() override {
    std::optional<TargetInfo> target = targetOf(getOperation());
    copiesByWave = target && target->has(CopyEngine::Waves);
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) {
      // Buffers of one slot ask for no prefetch.
      if (llvm::any_of(
              loop.getBody()->getOps<DramLoadOp>(), [](DramLoadOp load) {
                KVBufferAttr params = load.getBuffer().getType().getParams();
                return !params.getFullKv() && params.getStages() > 1;
              }))
        loops.push_back(loop);
    });
    for (scf::ForOp loop : loops)
      if (failed(pipeline(loop)))
        return signalPassFailure();
  }
};
} // namespace
