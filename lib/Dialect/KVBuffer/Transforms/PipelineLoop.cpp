//===- PipelineLoop.cpp - Loops whose iterations overlap --------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PipelineLoop.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ChooseTarget.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace kvbuf;

static StageAttr stageOf(Operation *op) {
  return op->getAttrOfType<StageAttr>(KVBufferDialect::kStageAttr);
}

void kvbuf::setStage(Operation *op, int64_t ahead, StageSpan span, int64_t at) {
  op->setAttr(KVBufferDialect::kStageAttr,
              StageAttr::get(op->getContext(), ahead, span, at));
}

StageSpan kvbuf::spanOf(Operation *op) {
  StageAttr stage = stageOf(op);
  return stage ? stage.getSpan() : StageSpan::Own;
}

int64_t kvbuf::aheadOf(Operation *op) {
  StageAttr stage = stageOf(op);
  return stage ? stage.getAhead() : 0;
}

/// The order that the ops of a loop's body say; an error at one that says none.
static FailureOr<PipelineOrder> readOrder(scf::ForOp loop, bool peeled) {
  SmallVector<Operation *> ops;
  int64_t most = 0;
  for (Operation &op : loop.getBody()->without_terminator()) {
    StageAttr stage = stageOf(&op);
    if (!stage || stage.getAt() < 0)
      return op.emitOpError()
             << "has no place in the loop that is to be made of its own; "
                "expected '"
             << KVBufferDialect::kStageAttr << "', as in "
             << StageAttr::get(op.getContext(), 0, StageSpan::Own, 0);
    if (peeled && stage.getAhead() > 1)
      return op.emitOpError()
             << "runs " << stage.getAhead()
             << " iterations ahead in a loop of which two overlap; expected 0 "
                "or 1";
    most = std::max(most, stage.getAhead());
    ops.push_back(&op);
  }
  llvm::sort(ops, [](Operation *one, Operation *other) {
    return stageOf(one).getAt() < stageOf(other).getAt();
  });
  PipelineOrder order;
  for (auto [i, op] : llvm::enumerate(ops)) {
    if (i && stageOf(ops[i - 1]).getAt() == stageOf(op).getAt()) {
      InFlightDiagnostic diag = op->emitOpError()
                                << "has place " << stageOf(op).getAt()
                                << ", which another op of the loop has; "
                                   "expected a place of its own";
      diag.attachNote(ops[i - 1]->getLoc()) << "the other op is here";
      return diag;
    }
    order.push_back({op, unsigned(most - stageOf(op).getAhead())});
  }
  return order;
}

void kvbuf::loadWhole(scf::ForOp loop) {
  for (auto load : loop.getBody()->getOps<DramLoadOp>())
    if (aheadOf(load) > 0)
      load.setWhole(true);
}

void kvbuf::forgetStages(scf::ForOp loop) {
  // Loops beside it that are still to be made need what their ops say.
  loop->getBlock()->walk<WalkOrder::PreOrder>([](Operation *op) {
    op->removeAttr(KVBufferDialect::kStageAttr);
    return op->hasAttr(KVBufferDialect::kPipelineAttr) ? WalkResult::skip()
                                                       : WalkResult::advance();
  });
}

/// Loads a number in the iterations alone in which a predicate holds.
static Operation *predicateNumber(RewriterBase &rewriter, memref::LoadOp load,
                                  Value pred) {
  OpBuilder::InsertionGuard guard(rewriter);
  Location loc = load.getLoc();
  rewriter.setInsertionPoint(load);
  auto branch = scf::IfOp::create(rewriter, loc, load.getType(), pred,
                                  /*withElseRegion=*/true);
  rewriter.moveOpBefore(load, branch.thenBlock(), branch.thenBlock()->begin());
  rewriter.setInsertionPointToEnd(branch.thenBlock());
  scf::YieldOp::create(rewriter, loc, load.getResult());
  rewriter.setInsertionPointToEnd(branch.elseBlock());
  Value none = arith::ConstantOp::create(rewriter, loc,
                                         rewriter.getZeroAttr(load.getType()));
  scf::YieldOp::create(rewriter, loc, none);
  return branch;
}

/// Gives an op that runs ahead the predicate of its iteration; null for what
/// cannot be predicated.
static Operation *predicate(RewriterBase &rewriter, Operation *op, Value pred) {
  if (spanOf(op) == StageSpan::All || isa<LdsStageOp>(op))
    return op;
  auto compare = pred.getDefiningOp<arith::CmpIOp>();
  if (isa<DramLoadOp, CacheTileOp, memref::LoadOp>(op) &&
      spanOf(op) == StageSpan::OneMore && compare) {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointAfter(compare);
    pred =
        arith::CmpIOp::create(rewriter, op->getLoc(), arith::CmpIPredicate::sle,
                              compare.getLhs(), compare.getRhs());
  }
  auto assign = [&](auto one) -> Operation * {
    if (!one.getPred())
      rewriter.modifyOpInPlace(one, [&] { one.getPredMutable().assign(pred); });
    return one;
  };
  if (auto load = dyn_cast<DramLoadOp>(op))
    return assign(load);
  if (auto tile = dyn_cast<CacheTileOp>(op))
    return assign(tile);
  if (auto number = dyn_cast<memref::LoadOp>(op))
    return predicateNumber(rewriter, number, pred);
  return isMemoryEffectFree(op) ? op : nullptr;
}

/// The token that the loop hands to the iteration after its last one, of a
/// load that has been moved ahead.
static Value nextToken(scf::ForOp loop, DramLoadOp load) {
  Value token = load.getToken();
  for (unsigned i = 0; i < loop.getNumResults(); ++i) {
    auto yielded = llvm::find(loop.getYieldedValues(), token);
    if (yielded == loop.getYieldedValues().end())
      return {};
    unsigned index = yielded - loop.getYieldedValues().begin();
    Value carried = loop.getRegionIterArg(index);
    if (llvm::any_of(carried.getUsers(),
                     [](Operation *user) { return isa<LdsStageOp>(user); }))
      return loop.getResult(index);
    token = carried;
  }
  return {};
}

DramLoadOp kvbuf::loadBehind(scf::ForOp loop, Value buffer) {
  for (Operation *op = loop->getNextNode(); op; op = op->getNextNode())
    if (auto load = dyn_cast<DramLoadOp>(op);
        load && load.getBuffer() == buffer)
      return load;
  return nullptr;
}

/// Lets what a loop has loaded ahead, for more than its own iterations, take
/// the place of loads behind it.
static void continueBehind(IRRewriter &rewriter, scf::ForOp loop) {
  for (auto load : loop.getBody()->getOps<DramLoadOp>()) {
    DramLoadOp behind = spanOf(load) == StageSpan::Own
                            ? DramLoadOp()
                            : loadBehind(loop, load.getBuffer());
    Value token = behind ? nextToken(loop, load) : Value();
    if (!token)
      continue;
    Operation *tile = behind.getTile().getDefiningOp();
    rewriter.replaceOp(behind, token);
    if (tile && tile->use_empty())
      rewriter.eraseOp(tile);
  }
}

FailureOr<scf::ForOp> kvbuf::runPipeliner(IRRewriter &rewriter, scf::ForOp loop,
                                          const PipelineOrder &order,
                                          scf::PipeliningOption &options,
                                          StringRef what) {
  Location loc = loop.getLoc();
  options.supportDynamicLoops = true;
  options.getScheduleFn = [&](scf::ForOp, PipelineOrder &schedule) {
    schedule = order;
  };
  rewriter.setInsertionPoint(loop);
  bool modified = false;
  FailureOr<scf::ForOp> result =
      scf::pipelineForLoop(rewriter, loop, options, &modified);
  if (failed(result))
    return emitError(loc) << "cannot pipeline the loop " << what;
  return result;
}

LdsStageOp kvbuf::waitBefore(scf::ForOp loop) {
  for (Operation *op = loop->getPrevNode(); op; op = op->getPrevNode())
    if (auto stage = dyn_cast<LdsStageOp>(op))
      return stage;
  return nullptr;
}

bool kvbuf::isReadBefore(LdsStageOp wait, scf::ForOp loop) {
  return llvm::any_of(wait->getUsers(), [&](Operation *user) {
    return user->getBlock() == wait->getBlock() && user->isBeforeInBlock(loop);
  });
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

/// Overlaps the iterations of a loop whose ops run ahead by predicates.
static FailureOr<scf::ForOp> pipelinePredicated(IRRewriter &rewriter,
                                                scf::ForOp loop,
                                                const PipelineOrder &order,
                                                PipelineAttr how,
                                                StringRef what) {
  bool wholeAfterFirst = loop->hasAttr(KVBufferDialect::kWholeAfterFirstAttr);
  LdsStageOp wait;
  if (how.getStart() == PipelineStart::BeforeWait)
    wait = waitBefore(loop);
  Operation *start = loop->getPrevNode();
  scf::PipeliningOption options;
  options.peelEpilogue = false;
  options.predicateFn = predicate;
  FailureOr<scf::ForOp> result =
      runPipeliner(rewriter, loop, order, options, what);
  if (failed(result))
    return failure();
  if (wholeAfterFirst)
    loadWhole(*result);
  continueBehind(rewriter, *result);
  forgetStages(*result);
  if (wait && isReadBefore(wait, *result))
    moveLoads(wait, start, *result);
  else if (wait)
    wait->moveBefore(*result);
  return result;
}

/// Lets one half of the block's warps go through a loop one meeting later than
/// the other.
static void stagger(IRRewriter &rewriter, scf::ForOp loop) {
  rewriter.setInsertionPoint(loop);
  StaggerOp::create(rewriter, loop.getLoc(), /*end=*/false);
  rewriter.setInsertionPointAfter(loop);
  StaggerOp::create(rewriter, loop.getLoc(), /*end=*/true);
}

/// Of ops of one block, from one to before another: whether the first that
/// matters is a meeting of all warps (false) or loads into a buffer (true).
/// With `inFlight` meetings do not matter.
static std::optional<bool> fillsBeforeMeeting(Operation *from, Operation *to,
                                              Value buffer, bool inFlight) {
  for (Operation *op = from; op && op != to; op = op->getNextNode()) {
    if (!inFlight && isa<LdsStageOp, MeetOp>(op))
      return false;
    if (loadsInto(op, buffer))
      return true;
  }
  return std::nullopt;
}

/// Whether a load may fill a buffer after `loop` without a meeting between, in
/// its kernel: passes run on several kernels of a module at a time.
static bool isFilledBehind(Operation *loop, Value buffer, bool inFlight) {
  for (Operation *at = loop;
       !isa<TeamOp>(at) && !at->hasTrait<OpTrait::IsIsolatedFromAbove>();
       at = at->getParentOp()) {
    if (std::optional<bool> fills =
            fillsBeforeMeeting(at->getNextNode(), nullptr, buffer, inFlight))
      return *fills;
    if (isa<LoopLikeOpInterface>(at->getParentOp()) &&
        fillsBeforeMeeting(&at->getBlock()->front(), at->getNextNode(), buffer,
                           inFlight)
            .value_or(false))
      return true;
  }
  return false;
}

/// Whether loads behind a pipelined loop may fill a slot that its last
/// iteration still reads: the next filling is then that of the slot which was
/// read last, unless slots are named. With `inFlight`: or any slot that a copy
/// beyond the last iteration is on its way to.
static bool mayFillAgain(scf::ForOp loop, bool inFlight) {
  return llvm::any_of(
      loop.getBody()->getOps<DramLoadOp>(), [&](DramLoadOp load) {
        return load.getPred() && (inFlight || !load.getSlot()) &&
               isFilledBehind(loop, load.getBuffer(), inFlight);
      });
}

/// Awaits the copies that a loop has asked for beyond its last iteration; false
/// where there are none.
static bool awaitRest(IRRewriter &rewriter, scf::ForOp loop) {
  SmallVector<Value> tokens;
  for (Value result : loop.getResults())
    if (auto token = dyn_cast<TokenType>(result.getType());
        token && result.use_empty() &&
        token.getParams().getPolicy() == Policy::DoubleBuffered)
      tokens.push_back(result);
  if (tokens.empty())
    return false;
  rewriter.setInsertionPointAfter(loop);
  LdsStageOp::create(rewriter, loop.getLoc(), tokens, IntegerAttr());
  return true;
}

/// Ends a loop of loads that run ahead, which have taken their numbers beyond
/// its last iteration, too, although they load nothing there. Where later
/// loads, or the loop's own when a loop around it runs again, fill a slot that
/// its last iteration still reads, all warps meet behind it. Where a copy that
/// copies nothing is on its way all the same (`CopyEngine::Waves`), those
/// copies are awaited before their slots are filled again, whoever names these.
static void settleBehind(IRRewriter &rewriter, scf::ForOp loop,
                         bool copiesByWave) {
  // A wait is a meeting, too.
  if (copiesByWave &&
      (loop->getParentOfType<LoopLikeOpInterface>() ||
       mayFillAgain(loop, /*inFlight=*/true)) &&
      awaitRest(rewriter, loop))
    return;
  if (!mayFillAgain(loop, /*inFlight=*/false))
    return;
  rewriter.setInsertionPointAfter(loop);
  MeetOp::create(rewriter, loop.getLoc());
}

/// An op of a loop's body that runs ahead for one iteration more than there
/// are; null if there is none.
static Operation *runsOnceMore(scf::ForOp loop) {
  for (Operation &op : loop.getBody()->without_terminator())
    if (spanOf(&op) == StageSpan::OneMore)
      return &op;
  return nullptr;
}

FailureOr<scf::ForOp> kvbuf::pipelineLoop(IRRewriter &rewriter, scf::ForOp loop,
                                          StringRef what) {
  auto how = loop->getAttrOfType<PipelineAttr>(KVBufferDialect::kPipelineAttr);
  bool peeled = how.getValue() == Pipeline::PeeledAhead ||
                how.getValue() == Pipeline::PeeledNow;
  if (Operation *more = runsOnceMore(loop);
      more && !peeled && getConstantIntValue(loop.getStep()) != 1) {
    InFlightDiagnostic diag =
        loop.emitOpError("has a step other than 1, and an op that runs ahead "
                         "for one more iteration; expected the step 1");
    diag.attachNote(more->getLoc()) << "the op is here";
    return diag;
  }
  FailureOr<PipelineOrder> order = readOrder(loop, peeled);
  if (failed(order))
    return failure();
  loop->removeAttr(KVBufferDialect::kPipelineAttr);
  if (peeled)
    return pipelinePeeled(rewriter, loop, *order, how.getValue(), what);
  FailureOr<scf::ForOp> result =
      pipelinePredicated(rewriter, loop, *order, how, what);
  if (failed(result))
    return failure();
  // Only now is it known what stands between two runs of the loop.
  std::optional<TargetInfo> target = targetOf(*result);
  settleBehind(rewriter, *result, target && target->has(CopyEngine::Waves));
  if (how.getValue() == Pipeline::Turns)
    stagger(rewriter, *result);
  return result;
}
