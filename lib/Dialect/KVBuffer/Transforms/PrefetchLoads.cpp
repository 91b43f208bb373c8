//===- PrefetchLoads.cpp - Issue loads ahead of their use -------*- C++ -*-===//
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
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"

namespace kvbuf {
#define GEN_PASS_DEF_PREFETCHLOADS
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-prefetch-loads"

/// Whether all warps meet before an op, in its block.
static bool meetBefore(Operation *op) {
  for (op = op->getPrevNode(); op; op = op->getPrevNode())
    if (isa<LdsStageOp, MeetOp>(op))
      return true;
  return false;
}

/// The loads into the buffer of `load`, of a loop's body, that may come before
/// the loop, without a meeting of all warps between in a block that has the
/// loop and not the load.
static SmallVector<DramLoadOp> loadsBefore(DramLoadOp load) {
  SmallVector<DramLoadOp> found;
  for (Operation *user : load.getBuffer().getUsers()) {
    auto other = dyn_cast<DramLoadOp>(user);
    if (!other || load->getBlock()->findAncestorOpInBlock(*other))
      continue;
    for (Operation *at = load->getParentOp(); at->getBlock();
         at = at->getParentOp()) {
      if (Operation *there = at->getBlock()->findAncestorOpInBlock(*other)) {
        if (there->isBeforeInBlock(at))
          found.push_back(other);
        break;
      }
      if (meetBefore(at))
        break;
    }
  }
  return found;
}

/// Whether none of the slots that a loop's first loads fill, those of
/// iterations `from` to `to`, is the slot of `other`.
static bool fillOtherSlots(DramLoadOp load, DramLoadOp other, int64_t from,
                           int64_t to) {
  int64_t count = load.getBuffer().getType().getParams().getStages();
  std::optional<int64_t> since = fillingsSince(other, load);
  if (!since)
    return false;
  for (int64_t i = from; i <= to; ++i)
    if ((*since + i) % count == 0)
      return false;
  return true;
}

/// Whether a slot that is filled before the loop, instead of after the
/// barrier of its first iteration, may still be read there.
static bool mayBeRead(DramLoadOp load, int64_t distance) {
  if (distance < 2)
    return false;
  if (llvm::any_of(loadsBefore(load), [&](DramLoadOp other) {
        return !fillOtherSlots(load, other, 1, distance - 1);
      }))
    return true;
  // What a loop around this one has read before, a barrier has to end. A buffer
  // that it allocates is the same each time.
  for (Operation *at = load->getParentOp(); at->getBlock();
       at = at->getParentOp()) {
    if (meetBefore(at))
      return false;
    if (isa<LoopLikeOpInterface>(at->getParentOp()))
      return true;
  }
  return false;
}

/// Whether an op with regions, in the body that `load` is in, loads into the
/// same buffer.
static bool loadsInBranch(DramLoadOp load) {
  return llvm::any_of(*load->getBlock(), [&](Operation &op) {
    return op.getNumRegions() && loadsInto(&op, load.getBuffer());
  });
}

/// Whether a load of a loop's body is for later iterations alone.
static bool runsAhead(DramLoadOp load) {
  return !load.getToken().use_empty() &&
         llvm::all_of(load.getToken().getUsers(), [](Operation *user) {
           return user->hasTrait<OpTrait::IsTerminator>();
         });
}

/// Why the loads of a loop cannot run `slots` - 1 iterations ahead; empty if
/// they can.
static StringRef findObstacle(scf::ForOp loop, ArrayRef<DramLoadOp> loads,
                              ArrayRef<LdsStageOp> stages, int64_t slots) {
  if (slots < 2)
    return "a buffer of one slot cannot be loaded while it is read";
  if (!loop.getBody()->getOps<MeetOp>().empty())
    return "all warps meet in the loop's body";
  // scf::pipelineForLoop refuses them.
  if (loop.getUnsignedCmp())
    return "the loop compares its index without signs";
  llvm::SmallPtrSet<Operation *, 8> awaited;
  for (LdsStageOp stage : stages)
    for (Value token : stage.getTokens()) {
      Operation *load = token.getDefiningOp<DramLoadOp>();
      if (!load || load->getBlock() != loop.getBody())
        return "a load of another iteration is awaited";
      awaited.insert(load);
    }
  llvm::SmallPtrSet<Value, 4> filled;
  for (DramLoadOp load : loads) {
    if (!awaited.contains(load) || !load.getToken().hasOneUse())
      return "a load is not awaited once in its own iteration";
    // Loads ahead of iteration i fill other slots than those that it reads.
    if (!fillsInTurn(load, loop))
      return "a slot is not the iteration, or one a fixed number of iterations "
             "away, modulo the number of slots";
    if (!filled.insert(load.getBuffer()).second || loadsInBranch(load))
      return "two loads fill the slots of one buffer";
    if (mayBeRead(load, slots - 1))
      return "a slot may still be read when the loop begins";
  }
  if (getConstantIntValue(loop.getStep()) != 1)
    return "the loop's step is not 1";
  return {};
}

/// The loads of a loop's body that a load after the loop, the second of a
/// pair, continues: it is what the next iteration would load.
static SmallVector<std::pair<DramLoadOp, DramLoadOp>>
findTails(scf::ForOp loop, ArrayRef<DramLoadOp> loads) {
  SmallVector<std::pair<DramLoadOp, DramLoadOp>> tails;
  for (DramLoadOp load : loads) {
    DramLoadOp tail = loadBehind(loop, load.getBuffer());
    if (tail && !tail.getPred() && !load.getPred() &&
        tail.getBlock() == load.getBlock() &&
        tail->getBlock() == loop->getBlock() &&
        isNextFilling(load, tail, loop) &&
        isNextIteration(load.getTile(), tail.getTile(), loop))
      tails.push_back({load, tail});
  }
  return tails;
}

/// Whether an op looks up where a tile lies, for all its rows at once; of a
/// tile over smaller pages, by lanes, where `warps` warps copy it.
static bool isLookUp(Operation *op, const std::optional<TargetInfo> &target,
                     int64_t warps) {
  auto tile = dyn_cast<CacheTileOp>(op);
  if (!tile || !tile.getLayout().getRun())
    return false;
  TileType type = tile.getTile().getType();
  return !type.getPageSize() ||
         (target && tile.getLayout().getRows().table &&
          target->lanesLookUp(type.getRows(), type.getPageSize(), warps));
}

/// Moves `op` before `stage`, with the arithmetic that it needs; false if it
/// needs what comes later.
static bool hoist(Operation *op, LdsStageOp stage) {
  if (op->getBlock() != stage->getBlock() || op->isBeforeInBlock(stage))
    return true;
  if (op == stage || op->getNumRegions() ||
      !(isa<DramLoadOp, CacheTileOp>(op) || isMemoryEffectFree(op)))
    return false;
  for (Value operand : op->getOperands())
    if (Operation *def = operand.getDefiningOp(); def && !hoist(def, stage))
      return false;
  op->moveBefore(stage);
  return true;
}

/// Moves the loads between `before` and `loop` before `stage`.
static void moveLoads(LdsStageOp stage, Operation *before, scf::ForOp loop) {
  SmallVector<Operation *> loads;
  for (Operation *op = before->getNextNode(); op != loop;
       op = op->getNextNode())
    if (isa<DramLoadOp>(op))
      loads.push_back(op);
  for (Operation *load : loads)
    hoist(load, stage);
}

namespace {
struct PrefetchLoadsPass : kvbuf::impl::PrefetchLoadsBase<PrefetchLoadsPass> {
  using Base::Base;

  /// Whether a product waits for its own operand only (TargetInfo).
  bool waitsByOperand = false;
  /// Whether the schedule wants look-ups before loads.
  bool looksAhead = false;
  /// The chip, and the warps of the kernel that copy together.
  std::optional<TargetInfo> target;
  int64_t warps = 0;
  /// Whether a copy counts even where it copies nothing (TargetInfo).
  bool copiesByWave = false;

  /// Replaces all waits of a loop by one before the first.
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

  /// A loop whose loads are made to run ahead.
  struct Loop {
    scf::ForOp loop;
    SmallVector<DramLoadOp> loads;
    SmallVector<LdsStageOp> stages;
    /// Slots of the buffer that has the fewest.
    int64_t slots = 0;
    /// What loads need, which runs ahead with them; and in their order.
    OpSlice ahead;
    SmallVector<Operation *> inOrder;
    /// Loads through registers, and the waits that store what they loaded.
    llvm::MapVector<Operation *, Operation *> behindStage;
    /// Loads of the tile after the last, which stand behind the loop.
    SmallVector<std::pair<DramLoadOp, DramLoadOp>> tails;
    /// Iterations that loads run ahead, and that look-ups run further.
    unsigned distance = 0, lookAhead = 0;

    Block *body() { return loop.getBody(); }
    /// The stage of what does not run ahead.
    unsigned last() const { return distance + lookAhead; }
  };

  /// Whether a loop's loads can run ahead; says why not if they are to. `asks`:
  /// whether a load of the loop's own has a buffer of several slots; buffers of
  /// one slot ask for no prefetch.
  bool canPipeline(Loop &l, bool asks) {
    l.loads.assign(l.body()->getOps<DramLoadOp>().begin(),
                   l.body()->getOps<DramLoadOp>().end());
    l.stages.assign(l.body()->getOps<LdsStageOp>().begin(),
                    l.body()->getOps<LdsStageOp>().end());
    // A loop inside of this one may have taken them over.
    if (l.loads.empty())
      return false;
    // Where halves of the block take turns, loads run ahead already.
    if (!l.body()->getOps<MeetOp>().empty() && llvm::all_of(l.loads, runsAhead))
      return false;
    auto paramsOf = [](DramLoadOp load) {
      return load.getBuffer().getType().getParams();
    };
    // Blocks have a pass of their own.
    if (llvm::any_of(l.loads, [&](DramLoadOp load) {
          return !paramsOf(load).getFullKv();
        }))
      return false;
    l.slots = paramsOf(l.loads.front()).getStages();
    for (DramLoadOp load : l.loads)
      l.slots = std::min(l.slots, paramsOf(load).getStages());
    if (StringRef obstacle = findObstacle(l.loop, l.loads, l.stages, l.slots);
        !obstacle.empty()) {
      if (!asks)
        remark::missed(
            l.loop.getLoc(),
            remark::RemarkOpts::name("prefetch").category(DEBUG_TYPE))
            << "not prefetched: " << obstacle;
      else
        warnLost(l.loop, DEBUG_TYPE, "prefetch", "not prefetched: " + obstacle);
      return false;
    }
    // Everything that the loads need runs ahead; what the rest of the body
    // needs of it too is cheap index arithmetic and is computed twice.
    for (DramLoadOp load : l.loads)
      collectSlice(load.getToken(), l.loop, l.ahead);
    if (Operation *bound = findBound(l.ahead)) {
      warnLost(bound, DEBUG_TYPE, "prefetch", kNotAhead);
      return false;
    }
    return true;
  }

  /// Puts what runs ahead before the first wait, and copies of what the rest of
  /// the body reads of it.
  void separate(IRRewriter &rewriter, Loop &l) {
    Block *body = l.body();
    IRMapping copies;
    for (Operation &op : *body)
      if (l.ahead.contains(&op))
        l.inOrder.push_back(&op);
    llvm::SmallPtrSet<Operation *, 8> clones;
    rewriter.setInsertionPoint(l.stages.front());
    for (Operation *op : l.inOrder) {
      if (isa<DramLoadOp, CacheTileOp>(op) || !isMemoryEffectFree(op))
        continue;
      Operation *clone = rewriter.clone(*op, copies);
      clones.insert(clone);
      rewriter.replaceUsesWithIf(
          op->getResults(), clone->getResults(), [&](OpOperand &use) {
            Operation *user = body->findAncestorOpInBlock(*use.getOwner());
            return !l.ahead.contains(user) && !clones.contains(user);
          });
    }
    // What stands before the first wait and reads the copies comes after them.
    SmallVector<Operation *> readers;
    for (Operation &op : *body) {
      if (&op == l.stages.front().getOperation())
        break;
      if (!l.ahead.contains(&op) && !clones.contains(&op))
        readers.push_back(&op);
    }
    for (Operation *op : readers)
      rewriter.moveOpBefore(op, l.stages.front());
    // Loads first, then one wait for all of them; or one for each product, so
    // that the loads of the others need not have come.
    for (Operation *op : l.inOrder)
      rewriter.moveOpBefore(op, l.stages.front());
    if (waitsByOperand)
      for (LdsStageOp stage : l.stages)
        for (Value token : stage.getTokens())
          if (cast<TokenType>(token.getType()).getParams().getPolicy() ==
              Policy::RegisterStaged)
            l.behindStage[token.getDefiningOp()] = stage;
  }

  /// How far ahead loads and look-ups run, and the marks of those that run for
  /// one iteration more.
  void findDistances(Loop &l) {
    l.distance = l.slots - 1;
    l.tails = findTails(l.loop, l.loads);
    bool hasLookUps = llvm::any_of(
        l.inOrder, [&](Operation *op) { return isLookUp(op, target, warps); });
    l.lookAhead = looksAhead && l.tails.empty() && hasLookUps ? 1 : 0;
    for (auto [load, tail] : l.tails) {
      setSpan(load, StageSpan::OneMore);
      setSpan(load.getTile().getDefiningOp(), StageSpan::OneMore);
      // What the load after the loop reads to know its place is there, too.
      OpSlice slice;
      collectSlice(load.getToken(), l.loop, slice);
      for (Operation *op : slice)
        if (isa<memref::LoadOp>(op))
          setSpan(op, StageSpan::OneMore);
    }
  }

  /// Adds what runs ahead to an order, but loads that follow a wait of theirs.
  /// Loads come before look-ups, so that no load waits for those of its own
  /// iteration. Where waits are counted, who waits for what a lane has looked
  /// up waits for all loads before it: only for the load that is awaited first.
  void issue(Loop &l, PipelineOrder &order) {
    SmallVector<Operation *> issuedLoads, others;
    for (Operation *op : l.inOrder)
      if (!isa<DramLoadOp>(op))
        others.push_back(op);
      else if (!l.behindStage.contains(op))
        issuedLoads.push_back(op);
    auto add = [&](ArrayRef<Operation *> ops, unsigned iteration) {
      for (Operation *op : ops)
        order.push_back({op, iteration});
    };
    if (!l.lookAhead) {
      for (Operation *op : l.inOrder)
        if (!l.behindStage.contains(op))
          order.push_back({op, 0});
      return;
    }
    bool counts = waitsByOperand && llvm::any_of(others, [](Operation *op) {
                    auto tile = dyn_cast<CacheTileOp>(op);
                    return tile && tile.getTile().getType().getPageSize();
                  });
    size_t before =
        counts ? std::min<size_t>(1, issuedLoads.size()) : issuedLoads.size();
    add(ArrayRef(issuedLoads).take_front(before), l.lookAhead);
    add(others, 0);
    add(ArrayRef(issuedLoads).drop_front(before), l.lookAhead);
  }

  /// The wait and its barrier; the first product; the loads into the slots that
  /// the barrier has freed, whose addresses are so computed while the matrix
  /// unit is busy; the rest. Where waits are counted, the loads come first: the
  /// earlier they are issued, the longer they may take.
  PipelineOrder orderOf(Loop &l, Operation *firstStage) {
    PipelineOrder order;
    Operation *product = nullptr;
    for (Operation &op : l.body()->without_terminator())
      if (isa<MmaOp>(op) && !product && !waitsByOperand)
        product = &op;
    order.push_back({firstStage, l.last()});
    // A load through registers needs those that its wait has stored.
    auto issueBehind = [&](Operation *stage) {
      for (auto [load, itsStage] : l.behindStage)
        if (itsStage == stage)
          order.push_back({load, l.lookAhead});
    };
    bool issued = !product;
    if (issued)
      issue(l, order);
    issueBehind(firstStage);
    for (Operation &op : l.body()->without_terminator()) {
      if (&op == firstStage || l.ahead.contains(&op))
        continue;
      order.push_back({&op, l.last()});
      if (&op == product) {
        issue(l, order);
        issued = true;
      }
      issueBehind(&op);
    }
    if (!issued)
      issue(l, order);
    return order;
  }

  LogicalResult pipeline(scf::ForOp loop, bool asks) {
    Loop l;
    l.loop = loop;
    if (!canPipeline(l, asks))
      return success();
    IRRewriter rewriter(&getContext());
    separate(rewriter, l);
    Operation *firstStage = l.stages.front();
    if (!waitsByOperand)
      firstStage = merge(rewriter, l.stages);
    findDistances(l);
    // Whether the first loads can be issued while a wait before the loop
    // still waits: they fill slots that nothing before the loop does.
    bool apart = llvm::all_of(l.loads, [&](DramLoadOp load) {
      return llvm::all_of(loadsBefore(load), [&](DramLoadOp other) {
        return fillOtherSlots(load, other, 0, l.distance - 1);
      });
    });
    bool early = apart && !loop->getParentOfType<LoopLikeOpInterface>();
    PipelineOrder order = orderOf(l, firstStage);
    Location loc = loop.getLoc();
    Operation *start = loop->getPrevNode();
    annotate(loop, order, Pipeline::Predicated);
    if (annotateOnly)
      return success();
    FailureOr<scf::ForOp> result =
        pipelineLoop(rewriter, loop, "that loads tiles");
    if (failed(result))
      return failure();
    // A wait before the loop moves after the first loads, which it need
    // not hold up; or they before it, where its data is needed sooner.
    for (Operation *op = start; op; op = op->getPrevNode())
      if (auto stage = dyn_cast<LdsStageOp>(op)) {
        bool usedBefore = llvm::any_of(stage->getUsers(), [&](Operation *user) {
          return user->getBlock() == stage->getBlock() &&
                 user->isBeforeInBlock(*result);
        });
        if (!usedBefore && apart)
          stage->moveBefore(*result);
        else if (early)
          moveLoads(stage, start, *result);
        break;
      }
    // Only now is it known what stands between two runs of the loop.
    settleBehind(rewriter, *result, copiesByWave);
    remark::passed(loc,
                   remark::RemarkOpts::name("prefetch").category(DEBUG_TYPE))
        << "loads run " << std::to_string(l.distance) << " iteration(s) ahead";
    return success();
  }

  void runOnOperation() override {
    target = targetOf(getOperation());
    waitsByOperand = target && target->waitsByOperand;
    copiesByWave = target && target->has(CopyEngine::Waves);
    auto schedule = getOperation()->getAttrOfType<ScheduleAttr>(
        KVBufferDialect::kScheduleAttr);
    const auto *loads =
        schedule ? std::get_if<LoadsAhead>(&schedule.getAhead()) : nullptr;
    looksAhead = loads && loads->pages;
    warps = schedule ? schedule.getWarps() : 0;
    SmallVector<std::pair<scf::ForOp, bool>> loops;
    // The first loads of a loop that runs ahead stand in the loop around it,
    // which asks for nothing by them.
    getOperation().walk([&](scf::ForOp loop) {
      auto loads = loop.getBody()->getOps<DramLoadOp>();
      if (loads.empty())
        return;
      loops.push_back(
          {loop, llvm::any_of(loads, [](DramLoadOp load) {
             return load.getBuffer().getType().getParams().getStages() > 1;
           })});
    });
    getOperation().walk([&](DramLoadOp load) {
      auto loop = load->getParentOfType<LoopLikeOpInterface>();
      KVBufferAttr params = load.getBuffer().getType().getParams();
      if (!loop || params.getStages() < 2 ||
          (isa<scf::ForOp>(loop) && load->getParentOp() == loop))
        return;
      warnLost(load, DEBUG_TYPE, "prefetch",
               isa<scf::ForOp>(loop)
                   ? "not prefetched: a load stands inside of a branch"
                   : "not prefetched: only loads of scf.for are");
    });
    for (auto [loop, asks] : loops)
      if (failed(pipeline(loop, asks)))
        return signalPassFailure();
  }
};
} // namespace
