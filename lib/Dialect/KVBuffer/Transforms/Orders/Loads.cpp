//===- Loads.cpp - Loads of tiles run ahead -------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../PipelineLoop.h"
#include "LoopOrder.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace kvbuf;

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
    return kOneSlot;
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

namespace {
/// A loop whose loads are made to run ahead.
struct LoadsLoop {
  LoadsLoop(const OrderedKernel &kernel, scf::ForOp loop)
      : kernel(kernel), loop(loop), loads(body()->getOps<DramLoadOp>()),
        stages(body()->getOps<LdsStageOp>()),
        waitsByOperand(kernel.target && kernel.target->waitsByOperand) {}

  const OrderedKernel &kernel;
  scf::ForOp loop;
  SmallVector<DramLoadOp> loads;
  SmallVector<LdsStageOp> stages;
  /// Whether a product waits for its own operand only (TargetInfo).
  bool waitsByOperand;
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
  int64_t distance = 0, lookAhead = 0;

  Block *body() { return loop.getBody(); }

  /// Whether the loads can run ahead.
  Placed match(Refusal &refusal);
  void separate(IRRewriter &rewriter);
  void merge(IRRewriter &rewriter);
  void findDistances();
  void issue(Placement &placement);
  void placeAll(Placement &placement);
  PipelineStart findStart();
};
} // namespace

Placed LoadsLoop::match(Refusal &refusal) {
  // A loop inside of this one may have taken them over.
  if (loads.empty())
    return Placed::NotMine;
  // Where halves of the block take turns, loads run ahead already.
  if (!body()->getOps<MeetOp>().empty() && llvm::all_of(loads, runsAhead))
    return Placed::NotMine;
  auto paramsOf = [](DramLoadOp load) {
    return load.getBuffer().getType().getParams();
  };
  // Blocks have an order of their own.
  if (llvm::any_of(
          loads, [&](DramLoadOp load) { return !paramsOf(load).getFullKv(); }))
    return Placed::NotMine;
  slots = paramsOf(loads.front()).getStages();
  for (DramLoadOp load : loads)
    slots = std::min(slots, paramsOf(load).getStages());
  refusal.why = findObstacle(loop, loads, stages, slots);
  if (!refusal.why.empty())
    return Placed::No;
  // Everything that the loads need runs ahead; what the rest of the body
  // needs of it too is cheap index arithmetic and is computed twice.
  for (DramLoadOp load : loads)
    collectSlice(load.getToken(), loop, ahead);
  if (Operation *bound = findBound(ahead)) {
    refusal = {bound, kNotAhead};
    return Placed::No;
  }
  return Placed::Yes;
}

/// Puts what runs ahead before the first wait, and copies of what the rest of
/// the body reads of it.
void LoadsLoop::separate(IRRewriter &rewriter) {
  Block *body = this->body();
  IRMapping copies;
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
  // What stands before the first wait and reads the copies comes after them.
  SmallVector<Operation *> readers;
  for (Operation &op : *body) {
    if (&op == stages.front().getOperation())
      break;
    if (!ahead.contains(&op) && !clones.contains(&op))
      readers.push_back(&op);
  }
  for (Operation *op : readers)
    rewriter.moveOpBefore(op, stages.front());
  // Loads first, then one wait for all of them; or one for each product, so
  // that the loads of the others need not have come.
  for (Operation *op : inOrder)
    rewriter.moveOpBefore(op, stages.front());
  if (waitsByOperand)
    for (LdsStageOp stage : stages)
      for (Value token : stage.getTokens())
        if (cast<TokenType>(token.getType()).getParams().getPolicy() ==
            Policy::RegisterStaged)
          behindStage[token.getDefiningOp()] = stage;
}

/// Replaces all waits by one before the first.
void LoadsLoop::merge(IRRewriter &rewriter) {
  SmallVector<Value> tokens;
  for (LdsStageOp stage : stages)
    llvm::append_range(tokens, stage.getTokens());
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
  stages = {merged};
}

/// How far ahead loads and look-ups run, and the marks of those that run for
/// one iteration more.
void LoadsLoop::findDistances() {
  distance = slots - 1;
  tails = findTails(loop, loads);
  ScheduleAttr schedule = kernel.schedule;
  const auto *wanted =
      schedule ? std::get_if<LoadsAhead>(&schedule.getAhead()) : nullptr;
  int64_t warps = schedule ? schedule.getWarps() : 0;
  bool hasLookUps = llvm::any_of(inOrder, [&](Operation *op) {
    return isLookUp(op, kernel.target, warps);
  });
  lookAhead = wanted && wanted->pages && tails.empty() && hasLookUps;
  for (auto [load, tail] : tails) {
    setSpan(load, StageSpan::OneMore);
    setSpan(load.getTile().getDefiningOp(), StageSpan::OneMore);
    // What the load after the loop reads to know its place is there, too.
    OpSlice slice;
    collectSlice(load.getToken(), loop, slice);
    for (Operation *op : slice)
      if (isa<memref::LoadOp>(op))
        setSpan(op, StageSpan::OneMore);
  }
}

/// Places what runs ahead, but loads that follow a wait of theirs. Loads come
/// before look-ups, so that no load waits for those of its own iteration. Where
/// waits are counted, who waits for what a lane has looked up waits for all
/// loads before it: only for the load that is awaited first.
void LoadsLoop::issue(Placement &placement) {
  SmallVector<Operation *> issuedLoads, others;
  for (Operation *op : inOrder)
    if (!isa<DramLoadOp>(op))
      others.push_back(op);
    else if (!behindStage.contains(op))
      issuedLoads.push_back(op);
  if (!lookAhead) {
    for (Operation *op : inOrder)
      if (!behindStage.contains(op))
        placement.place(op, distance);
    return;
  }
  bool counts = waitsByOperand && llvm::any_of(others, [](Operation *op) {
                  auto tile = dyn_cast<CacheTileOp>(op);
                  return tile && tile.getTile().getType().getPageSize();
                });
  size_t before =
      counts ? std::min<size_t>(1, issuedLoads.size()) : issuedLoads.size();
  placement.place(ArrayRef(issuedLoads).take_front(before), distance);
  placement.place(others, distance + lookAhead);
  placement.place(ArrayRef(issuedLoads).drop_front(before), distance);
}

/// The wait and its barrier; the first product; the loads into the slots that
/// the barrier has freed, whose addresses are so computed while the matrix
/// unit is busy; the rest. Where waits are counted, the loads come first: the
/// earlier they are issued, the longer they may take.
void LoadsLoop::placeAll(Placement &placement) {
  Operation *firstStage = stages.front(), *product = nullptr;
  for (Operation &op : body()->without_terminator())
    if (isa<MmaOp>(op) && !ahead.contains(&op) && !product && !waitsByOperand)
      product = &op;
  placement.place(firstStage);
  // A load through registers needs those that its wait has stored.
  auto issueBehind = [&](Operation *stage) {
    for (auto [load, itsStage] : behindStage)
      if (itsStage == stage)
        placement.place(load, distance);
  };
  if (!product)
    issue(placement);
  issueBehind(firstStage);
  for (Operation &op : body()->without_terminator()) {
    if (&op == firstStage || ahead.contains(&op))
      continue;
    placement.place(&op);
    if (&op == product)
      issue(placement);
    issueBehind(&op);
  }
}

/// Whether the first loads can be issued while a wait before the loop still
/// waits: they fill slots that nothing before the loop does. A wait whose data
/// is needed before the loop they pass only where no loop is around.
PipelineStart LoadsLoop::findStart() {
  bool apart = llvm::all_of(loads, [&](DramLoadOp load) {
    return llvm::all_of(loadsBefore(load), [&](DramLoadOp other) {
      return fillOtherSlots(load, other, 0, distance - 1);
    });
  });
  LdsStageOp wait = waitBefore(loop);
  bool early = wait && apart &&
               (!isReadBefore(wait, loop) ||
                !loop->getParentOfType<LoopLikeOpInterface>());
  return early ? PipelineStart::BeforeWait : PipelineStart::AtLoop;
}

namespace {
struct LoadsOrder {
  static bool asks(const OrderedKernel &) { return true; }

  static void find(const OrderedKernel &kernel, FoundLoops &found) {
    // The first loads of a loop that runs ahead stand in the loop around it,
    // which asks for nothing by them.
    kernel.op->walk([&](scf::ForOp loop) {
      auto loads = loop.getBody()->getOps<DramLoadOp>();
      if (loads.empty())
        return;
      found.add(loop, llvm::any_of(loads, [](DramLoadOp load) {
                  return load.getBuffer().getType().getParams().getStages() > 1;
                }));
    });
    kernel.op->walk([&](DramLoadOp load) {
      auto loop = load->getParentOfType<LoopLikeOpInterface>();
      KVBufferAttr params = load.getBuffer().getType().getParams();
      if (!loop || params.getStages() < 2 ||
          (isa<scf::ForOp>(loop) && load->getParentOp() == loop))
        return;
      found.refused.push_back({load, isa<scf::ForOp>(loop)
                                         ? "a load stands inside of a branch"
                                         : "only loads of scf.for are"});
    });
  }

  static Placed place(const OrderedKernel &kernel, scf::ForOp loop,
                      IRRewriter &rewriter, Placement &placement,
                      Refusal &refusal) {
    LoadsLoop l(kernel, loop);
    if (Placed matched = l.match(refusal); matched != Placed::Yes)
      return matched;
    l.separate(rewriter);
    if (!l.waitsByOperand)
      l.merge(rewriter);
    l.findDistances();
    placement.start = l.findStart();
    l.placeAll(placement);
    placement.gain =
        "loads run " + std::to_string(l.distance) + " iteration(s) ahead";
    return Placed::Yes;
  }
};
} // namespace

const LoopOrder kvbuf::loadsOrder = {"loads",
                                     "prefetch",
                                     "not prefetched: ",
                                     "",
                                     "that loads tiles",
                                     LoadsOrder::asks,
                                     LoadsOrder::find,
                                     LoadsOrder::place};
