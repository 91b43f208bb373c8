//===- PrefetchLoads.cpp - Issue loads ahead of their use -------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopParts.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/SCF/Transforms/Transforms.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace kvbuf {
#define GEN_PASS_DEF_PREFETCHLOADS
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-prefetch-loads"

/// The ops of `body` that `op` needs, before it in the block, with `op` itself.
static void collectSlice(Operation *op, Block *body,
                         llvm::SetVector<Operation *> &slice) {
  if (op->getBlock() != body || slice.contains(op))
    return;
  for (Value operand : op->getOperands())
    if (Operation *def = operand.getDefiningOp())
      collectSlice(def, body, slice);
  slice.insert(op);
}

/// Why the loads of a loop cannot run `slots` - 1 iterations ahead; empty if
/// they can.
static StringRef findObstacle(scf::ForOp loop, ArrayRef<DramLoadOp> loads,
                              ArrayRef<LdsStageOp> stages, int64_t slots) {
  if (slots < 2)
    return "a buffer of one slot cannot be loaded while it is read";
  llvm::SmallPtrSet<Operation *, 8> awaited;
  for (LdsStageOp stage : stages)
    for (Value token : stage.getTokens()) {
      Operation *load = token.getDefiningOp<DramLoadOp>();
      if (!load || load->getBlock() != loop.getBody())
        return "a load of another iteration is awaited";
      awaited.insert(load);
    }
  for (DramLoadOp load : loads) {
    if (!awaited.contains(load) || !load.getToken().hasOneUse())
      return "a load is not awaited once in its own iteration";
    // Loads ahead of iteration i fill other slots than those that it reads.
    auto slot = load.getSlot().getDefiningOp<arith::RemUIOp>();
    int64_t count = load.getBuffer().getType().getParams().getStages();
    if (!slot || slot.getLhs() != loop.getInductionVar() ||
        getConstantIntValue(slot.getRhs()) != count)
      return "a slot is not the iteration modulo the number of slots";
  }
  if (getConstantIntValue(loop.getStep()) != 1)
    return "the loop's step is not 1";
  return {};
}

namespace {
struct PrefetchLoadsPass : kvbuf::impl::PrefetchLoadsBase<PrefetchLoadsPass> {
  using Base::Base;

  /// Whether a product waits for its own operand only (TargetInfo).
  bool waitsByOperand = false;

  /// Replaces all waits of a loop by one in front of the first.
  static LdsStageOp merge(IRRewriter &rewriter, ArrayRef<LdsStageOp> stages) {
    SmallVector<Value> tokens;
    for (LdsStageOp stage : stages)
      llvm::append_range(tokens, LdsStageOp(stage).getTokens());
    LdsStageOp first = stages.front();
    rewriter.setInsertionPoint(first);
    auto merged =
        LdsStageOp::create(rewriter, first.getLoc(), tokens, IntegerAttr());
    size_t next = 0;
    for (LdsStageOp stage : stages) {
      size_t count = stage->getNumResults();
      rewriter.replaceOp(stage, merged.getStaged().slice(next, count));
      next += count;
    }
    return merged;
  }

  LogicalResult pipeline(scf::ForOp loop) {
    Block *body = loop.getBody();
    SmallVector<DramLoadOp> loads(body->getOps<DramLoadOp>());
    SmallVector<LdsStageOp> stages(body->getOps<LdsStageOp>());
    // Where halves of the block take turns, loads run ahead already.
    if (loads.empty() || !body->getOps<MeetOp>().empty())
      return success();
    // Blocks have a pass of their own.
    if (llvm::any_of(loads, [](DramLoadOp load) {
          return !load.getBuffer().getType().getParams().getFullKv();
        }))
      return success();
    int64_t slots = loads.front().getBuffer().getType().getParams().getStages();
    for (DramLoadOp load : loads)
      slots =
          std::min(slots, load.getBuffer().getType().getParams().getStages());
    if (StringRef obstacle = findObstacle(loop, loads, stages, slots);
        !obstacle.empty()) {
      remark::missed(loop.getLoc(),
                     remark::RemarkOpts::name("prefetch").category(DEBUG_TYPE))
          << "not prefetched: " << obstacle;
      return success();
    }

    // Everything that the loads need runs ahead; what the rest of the body
    // needs of it too is cheap index arithmetic and is computed twice.
    llvm::SetVector<Operation *> ahead;
    for (DramLoadOp load : loads)
      collectSlice(load, body, ahead);
    IRRewriter rewriter(&getContext());
    IRMapping copies;
    SmallVector<Operation *> inOrder;
    for (Operation &op : *body)
      if (ahead.contains(&op))
        inOrder.push_back(&op);
    llvm::SmallPtrSet<Operation *, 8> clones;
    rewriter.setInsertionPoint(stages.front());
    for (Operation *op : inOrder) {
      if (isa<DramLoadOp, CacheTileOp>(op) || !isMemoryEffectFree(op))
        continue;
      Operation *clone = rewriter.clone(*op, copies);
      clones.insert(clone);
      rewriter.replaceUsesWithIf(
          op->getResults(), clone->getResults(), [&](OpOperand &use) {
            Operation *user = body->findAncestorOpInBlock(*use.getOwner());
            return !ahead.contains(user) && !clones.contains(user);
          });
    }
    // Loads first, then one wait for all of them; or one for each product, so
    // that the loads of the others need not have come.
    for (Operation *op : inOrder)
      rewriter.moveOpBefore(op, stages.front());
    // Loads through registers, and the waits that store what they loaded.
    llvm::MapVector<Operation *, Operation *> behindStage;
    if (waitsByOperand)
      for (LdsStageOp stage : stages)
        for (Value token : stage.getTokens())
          if (cast<TokenType>(token.getType()).getParams().getPolicy() ==
              Policy::RegisterStaged)
            behindStage[token.getDefiningOp()] = stage;
    Operation *firstStage = stages.front();
    if (!waitsByOperand)
      firstStage = merge(rewriter, stages);

    unsigned distance = slots - 1;
    scf::PipeliningOption options;
    options.supportDynamicLoops = true;
    options.peelEpilogue = false;
    options.predicateFn = predicateLoad;
    options.getScheduleFn =
        [&](scf::ForOp,
            std::vector<std::pair<Operation *, unsigned>> &schedule) {
          // The wait and its barrier; the first product; the loads into the
          // slots that the barrier has freed, whose addresses are so computed
          // while the matrix unit is busy; the rest. Where waits are counted,
          // the loads come first: the earlier they are issued, the longer they
          // may take.
          Operation *product = nullptr;
          for (Operation &op : body->without_terminator())
            if (isa<MmaOp>(op) && !product && !waitsByOperand)
              product = &op;
          schedule.push_back({firstStage, distance});
          bool issued = false;
          auto issue = [&] {
            for (Operation *op : inOrder)
              if (!behindStage.contains(op))
                schedule.push_back({op, 0});
            issued = true;
          };
          // A load through registers needs those that its wait has stored.
          auto issueBehind = [&](Operation *stage) {
            for (auto [load, itsStage] : behindStage)
              if (itsStage == stage)
                schedule.push_back({load, 0});
          };
          if (!product)
            issue();
          issueBehind(firstStage);
          for (Operation &op : body->without_terminator()) {
            if (&op == firstStage || ahead.contains(&op))
              continue;
            schedule.push_back({&op, distance});
            if (&op == product)
              issue();
            issueBehind(&op);
          }
          if (!issued)
            issue();
        };
    rewriter.setInsertionPoint(loop);
    bool modified = false;
    Location loc = loop.getLoc();
    bool wholeAfterFirst = loop->hasAttr(KVBufferDialect::kWholeAfterFirstAttr);
    FailureOr<scf::ForOp> result =
        scf::pipelineForLoop(rewriter, loop, options, &modified);
    if (failed(result))
      return emitError(loc) << "cannot pipeline the loop that loads tiles";
    // The loop now loads for later iterations than the first.
    if (wholeAfterFirst)
      for (auto load : result->getBody()->getOps<DramLoadOp>())
        load.setWhole(true);
    // A wait in front of the loop moves behind the first loads, which it need
    // not hold up.
    Operation *before = (*result)->getPrevNode();
    for (Operation *op = before; op; op = op->getPrevNode())
      if (auto stage = dyn_cast<LdsStageOp>(op)) {
        bool usedBefore = llvm::any_of(stage->getUsers(), [&](Operation *user) {
          return user->getBlock() == stage->getBlock() &&
                 user->isBeforeInBlock(*result);
        });
        if (!usedBefore)
          stage->moveBefore(*result);
        break;
      }
    remark::passed(loc,
                   remark::RemarkOpts::name("prefetch").category(DEBUG_TYPE))
        << "loads run " << std::to_string(distance) << " iteration(s) ahead";
    return success();
  }

  void runOnOperation() override {
    auto module = getOperation()->getParentOfType<ModuleOp>();
    auto chip =
        module ? module->getAttrOfType<StringAttr>(KVBufferDialect::kTargetAttr)
               : StringAttr();
    auto target = chip ? lookupTarget(chip.getValue()) : std::nullopt;
    waitsByOperand = target && target->waitsByOperand;
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops)
      if (failed(pipeline(loop)))
        return signalPassFailure();
  }
};
} // namespace
