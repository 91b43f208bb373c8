//===- PipelineLoop.cpp - Loops whose iterations overlap --------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PipelineLoop.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/SCF/Transforms/Transforms.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace kvbuf;

static StageAttr stageOf(Operation *op) {
  return op->getAttrOfType<StageAttr>(KVBufferDialect::kStageAttr);
}

static void setStage(Operation *op, int64_t ahead, StageSpan span) {
  op->setAttr(KVBufferDialect::kStageAttr,
              StageAttr::get(op->getContext(), ahead, span));
}

void kvbuf::setSpan(Operation *op, StageSpan span) {
  StageAttr stage = stageOf(op);
  setStage(op, stage ? stage.getAhead() : 0, span);
}

StageSpan kvbuf::spanOf(Operation *op) {
  StageAttr stage = stageOf(op);
  return stage ? stage.getSpan() : StageSpan::Own;
}

/// Says at loads how far ahead they run: those of a stage below `now` do.
static void markLoads(const PipelineOrder &order, unsigned now) {
  for (auto [op, stage] : order)
    if (isa<DramLoadOp>(op) && stage < now)
      setStage(op, now - stage, spanOf(op));
}

/// Makes the loads whole that run ahead in a loop of which only the tiles of
/// the first iteration can have invalid rows.
static void loadWhole(scf::ForOp loop) {
  for (auto load : loop.getBody()->getOps<DramLoadOp>())
    if (StageAttr stage = stageOf(load); stage && stage.getAhead() > 0)
      load.setWhole(true);
}

/// Forgets how far ahead ops run, once their loop is made, but not for which
/// iterations: who has said so may ask.
static void forgetAhead(scf::ForOp loop) {
  loop->getBlock()->walk([](Operation *op) {
    StageSpan span = spanOf(op);
    if (span == StageSpan::Own)
      op->removeAttr(KVBufferDialect::kStageAttr);
    else
      setStage(op, /*ahead=*/0, span);
  });
}

/// Whether `op` loads one number of an argument that its kernel only reads.
static bool loadsNumber(Operation *op) {
  auto load = dyn_cast<memref::LoadOp>(op);
  auto tensor = load ? dyn_cast<BlockArgument>(load.getMemRef()) : nullptr;
  return tensor && isa<FunctionOpInterface>(tensor.getOwner()->getParentOp()) &&
         llvm::all_of(tensor.getUsers(), [](Operation *user) {
           return isa<memref::LoadOp, memref::DimOp>(user);
         });
}

Operation *kvbuf::findBound(const OpSlice &slice) {
  auto isBound = [](Operation *op) {
    return !isMemoryEffectFree(op) && !isa<DramLoadOp, CacheTileOp>(op) &&
           !loadsNumber(op);
  };
  const auto *found = llvm::find_if(slice, isBound);
  return found == slice.end() ? nullptr : *found;
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

FailureOr<scf::ForOp> kvbuf::pipelineLoop(IRRewriter &rewriter, scf::ForOp loop,
                                          const PipelineOrder &order,
                                          StringRef what) {
  Location loc = loop.getLoc();
  bool wholeAfterFirst = loop->hasAttr(KVBufferDialect::kWholeAfterFirstAttr);
  unsigned now = 0;
  for (auto [op, stage] : order)
    now = std::max(now, stage);
  markLoads(order, now);

  scf::PipeliningOption options;
  options.supportDynamicLoops = true;
  options.peelEpilogue = false;
  options.predicateFn = predicate;
  options.getScheduleFn = [&](scf::ForOp, PipelineOrder &schedule) {
    schedule = order;
  };
  rewriter.setInsertionPoint(loop);
  bool modified = false;
  FailureOr<scf::ForOp> result =
      scf::pipelineForLoop(rewriter, loop, options, &modified);
  if (failed(result))
    return emitError(loc) << "cannot pipeline the loop " << what;
  if (wholeAfterFirst)
    loadWhole(*result);
  forgetAhead(*result);
  return result;
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

void kvbuf::settleBehind(IRRewriter &rewriter, scf::ForOp loop,
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

bool kvbuf::canTakeApart(scf::ForOp loop, const OpSlice &ahead,
                         ArrayRef<Value> handed) {
  OpSlice twice;
  auto read = [&](Operation *op) {
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Operation *def = operand.getDefiningOp();
            def && ahead.contains(def) && !llvm::is_contained(handed, operand))
          twice.insert(def);
    });
  };
  for (Operation &op : *loop.getBody())
    if (!ahead.contains(&op))
      read(&op);
  for (unsigned i = 0; i < twice.size(); ++i) {
    if (isa<MmaOp>(twice[i]) ||
        (!isMemoryEffectFree(twice[i]) && !loadsNumber(twice[i])))
      return false;
    read(twice[i]);
  }
  return true;
}

void kvbuf::placeRest(RewriterBase &rewriter, scf::ForOp loop,
                      const OpSlice &ahead, ArrayRef<Value> handed,
                      PipelineOrder &order) {
  IRMapping copies;
  auto isMissing = [&](Value value) {
    Operation *def = value.getDefiningOp();
    return def && ahead.contains(def) && !llvm::is_contained(handed, value);
  };
  std::function<void(Operation *)> copyNeeds = [&](Operation *op) {
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands()) {
        if (!isMissing(operand) || copies.contains(operand))
          continue;
        Operation *def = operand.getDefiningOp();
        copyNeeds(def);
        order.push_back({rewriter.clone(*def, copies), 1});
      }
    });
  };
  for (Operation &op : llvm::make_early_inc_range(*loop.getBody())) {
    if (ahead.contains(&op))
      continue;
    rewriter.setInsertionPoint(&op);
    copyNeeds(&op);
    op.walk([&](Operation *inner) {
      for (OpOperand &operand : inner->getOpOperands())
        if (isMissing(operand.get()))
          operand.set(copies.lookup(operand.get()));
    });
    if (!op.hasTrait<OpTrait::IsTerminator>())
      order.push_back({&op, 1});
  }
}

/// Takes out of a loop what it carries and nobody reads: what stage 0 reads of
/// stage 1 of the iteration before, it reads directly. The place of one of the
/// first `own` values goes to the first of the others that has its type: of an
/// accumulator, say, to what stage 0 has made of it.
static scf::ForOp dropUnread(IRRewriter &rewriter, scf::ForOp loop,
                             unsigned own) {
  llvm::SetVector<unsigned> kept;
  auto isRead = [&](unsigned i) {
    return !loop.getRegionIterArg(i).use_empty() ||
           !loop.getResult(i).use_empty();
  };
  auto others = llvm::seq<unsigned>(own, loop.getNumResults());
  for (unsigned i = 0; i < own; ++i) {
    if (isRead(i)) {
      kept.insert(i);
      continue;
    }
    for (unsigned other : others)
      if (isRead(other) && !kept.contains(other) &&
          loop.getResult(other).getType() == loop.getResult(i).getType()) {
        kept.insert(other);
        break;
      }
  }
  kept.insert_range(llvm::make_filter_range(others, isRead));
  if (kept.size() == loop.getNumResults())
    return loop;
  SmallVector<Value> inits, yields;
  for (unsigned i : kept) {
    inits.push_back(loop.getInitArgs()[i]);
    yields.push_back(loop.getYieldedValues()[i]);
  }
  rewriter.setInsertionPoint(loop);
  auto result =
      scf::ForOp::create(rewriter, loop.getLoc(), loop.getLowerBound(),
                         loop.getUpperBound(), loop.getStep(), inits);
  result->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  SmallVector<Value> args(loop.getInitArgs());
  for (auto [arg, i] : llvm::zip_equal(result.getRegionIterArgs(), kept)) {
    args[i] = arg;
    rewriter.replaceAllUsesWith(loop.getResult(i),
                                result.getResult(arg.getArgNumber() - 1));
  }
  args.insert(args.begin(), result.getInductionVar());
  Operation *end = loop.getBody()->getTerminator();
  rewriter.modifyOpInPlace(end, [&] { end->setOperands(yields); });
  if (result.getNumResults() == 0)
    rewriter.eraseOp(result.getBody()->getTerminator());
  rewriter.mergeBlocks(loop.getBody(), result.getBody(), args);
  rewriter.eraseOp(loop);
  return result;
}

/// Lets the body of a loop that counts the iterations of its stage 1 count
/// those of stage 0, from the second on.
static void countAhead(IRRewriter &rewriter, scf::ForOp loop) {
  Location loc = loop.getLoc();
  Value iv = loop.getInductionVar(), step = loop.getStep();
  rewriter.setInsertionPoint(loop);
  loop.setLowerBound(
      rewriter.createOrFold<arith::AddIOp>(loc, loop.getLowerBound(), step));
  // What was the next number is this one; others are one less.
  SmallVector<Operation *> nexts;
  SmallVector<OpOperand *> others;
  Operation *first = nullptr;
  for (OpOperand &use : iv.getUses()) {
    Operation *user = use.getOwner();
    if (auto sum = dyn_cast<arith::AddIOp>(user);
        sum && use.getOperandNumber() == 0 &&
        isEqualConstantIntOrValue(sum.getRhs(), step)) {
      nexts.push_back(user);
      continue;
    }
    others.push_back(&use);
    Operation *inBody = loop.getBody()->findAncestorOpInBlock(*user);
    if (!first || inBody->isBeforeInBlock(first))
      first = inBody;
  }
  if (first) {
    rewriter.setInsertionPoint(first);
    Value before = arith::SubIOp::create(rewriter, loc, iv, step);
    for (OpOperand *use : others)
      rewriter.modifyOpInPlace(use->getOwner(), [&] { use->set(before); });
  }
  for (Operation *next : nexts)
    rewriter.replaceOp(next, iv);
}

FailureOr<scf::ForOp> kvbuf::pipelinePeeled(IRRewriter &rewriter,
                                            scf::ForOp loop,
                                            const PipelineOrder &order,
                                            CountedStage counted,
                                            StringRef what) {
  Location loc = loop.getLoc();
  Value upperBound = loop.getUpperBound();
  unsigned carried = loop.getNumResults();
  markLoads(order, /*now=*/1);
  DictionaryAttr attributes = loop->getDiscardableAttrDictionary();
  rewriter.setInsertionPoint(loop);
  Value any = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::slt,
                                    loop.getLowerBound(), loop.getUpperBound());
  auto guarded =
      scf::IfOp::create(rewriter, loc, loop.getResultTypes(), any,
                        /*addThenBlock=*/true, /*addElseBlock=*/true);
  rewriter.setInsertionPointToStart(guarded.elseBlock());
  scf::YieldOp::create(rewriter, loc, loop.getInitArgs());
  rewriter.replaceAllUsesWith(loop.getResults(), guarded.getResults());
  rewriter.setInsertionPointToStart(guarded.thenBlock());
  Value end = arith::SubIOp::create(rewriter, loc, loop.getUpperBound(),
                                    loop.getStep());
  auto yield = scf::YieldOp::create(rewriter, loc, loop.getResults());
  rewriter.moveOpBefore(loop, yield);

  scf::PipeliningOption options;
  options.supportDynamicLoops = true;
  options.peelEpilogue = true;
  // There is an iteration for all that stands before the loop and after it.
  options.predicateFn = [](RewriterBase &, Operation *op, Value) { return op; };
  options.getScheduleFn = [&](scf::ForOp, PipelineOrder &schedule) {
    schedule = order;
  };
  llvm::DenseSet<Operation *> clones;
  options.annotateFn = [&](Operation *op, scf::PipeliningOption::PipelinerPart,
                           unsigned) { clones.insert(op); };
  rewriter.setInsertionPoint(loop);
  bool modified = false;
  FailureOr<scf::ForOp> result =
      scf::pipelineForLoop(rewriter, loop, options, &modified);
  if (failed(result))
    return emitError(loc) << "cannot pipeline the loop " << what;
  (*result)->setDiscardableAttrs(attributes);
  // Not beside scores alone: what that saves before the loop costs gfx942 a
  // hundredth of its loop (2.94 and not 2.88 VALU instructions an MFMA).
  if (counted == CountedStage::Ahead &&
      (*result)->hasAttr(KVBufferDialect::kWholeAfterFirstAttr))
    loadWhole(*result);
  forgetAhead(*result);
  if (counted == CountedStage::Ahead) {
    // Only what follows the loop needs the number of the last iteration.
    result->setUpperBound(upperBound);
    rewriter.moveOpAfter(end.getDefiningOp(), *result);
  } else {
    result->setUpperBound(end);
  }
  // The pipeliner does not know of the guard: it asks whether there is an
  // iteration, and after the loop which one was the last.
  for (Operation &op : llvm::make_early_inc_range(*guarded.thenBlock())) {
    if (clones.contains(&op))
      continue;
    if (auto select = dyn_cast<arith::SelectOp>(op)) {
      rewriter.replaceOp(select, select.getTrueValue());
    } else if (auto number = dyn_cast<arith::MaxSIOp>(op)) {
      // lb + step * n: of a step of 1, the number that the loop ends before.
      if (isConstantIntValue(result->getStep(), 1))
        for (Operation *steps : number->getUsers())
          for (Operation *last : llvm::make_early_inc_range(steps->getUsers()))
            if (isa<arith::MulIOp>(steps) && isa<arith::AddIOp>(last))
              rewriter.replaceAllUsesWith(last->getResults(), end);
      rewriter.replaceOp(number, number.getRhs());
    }
  }
  // Passes look for indices as programs have them.
  SmallVector<Operation *> scalars;
  guarded.getThenRegion().walk([&](Operation *op) {
    if (isa_and_nonnull<arith::ArithDialect>(op->getDialect()))
      scalars.push_back(op);
  });
  RewritePatternSet patterns(loc.getContext());
  arith::AddIOp::getCanonicalizationPatterns(patterns, loc.getContext());
  arith::SubIOp::getCanonicalizationPatterns(patterns, loc.getContext());
  GreedyRewriteConfig config;
  config.setStrictness(GreedyRewriteStrictness::ExistingAndNewOps);
  (void)applyOpPatternsGreedily(scalars, std::move(patterns), config);
  result = dropUnread(rewriter, *result, carried);
  if (counted == CountedStage::Ahead)
    countAhead(rewriter, *result);
  return result;
}

void kvbuf::forgetStages(scf::ForOp loop) {
  loop->getBlock()->walk(
      [](Operation *op) { op->removeAttr(KVBufferDialect::kStageAttr); });
}
