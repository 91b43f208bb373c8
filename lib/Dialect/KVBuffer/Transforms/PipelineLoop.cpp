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
#include "mlir/Dialect/SCF/Transforms/Transforms.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace kvbuf;

static StageAttr stageOf(Operation *op) {
  return op->getAttrOfType<StageAttr>(KVBufferDialect::kStageAttr);
}

static void setStage(Operation *op, int64_t ahead, StageSpan span, int64_t at) {
  op->setAttr(KVBufferDialect::kStageAttr,
              StageAttr::get(op->getContext(), ahead, span, at));
}

void kvbuf::setSpan(Operation *op, StageSpan span) {
  StageAttr stage = stageOf(op);
  setStage(op, stage ? stage.getAhead() : 0, span, stage ? stage.getAt() : -1);
}

StageSpan kvbuf::spanOf(Operation *op) {
  StageAttr stage = stageOf(op);
  return stage ? stage.getSpan() : StageSpan::Own;
}

int64_t kvbuf::aheadOf(Operation *op) {
  StageAttr stage = stageOf(op);
  return stage ? stage.getAhead() : 0;
}

void kvbuf::annotate(scf::ForOp loop, const PipelineOrder &order,
                     Pipeline how) {
  unsigned now = 0;
  for (auto [op, stage] : order)
    now = std::max(now, stage);
  for (auto [at, entry] : llvm::enumerate(order))
    setStage(entry.first, now - entry.second, spanOf(entry.first), at);
  loop->setAttr(KVBufferDialect::kPipelineAttr,
                PipelineAttr::get(loop.getContext(), how));
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

/// Overlaps the iterations of a loop whose ops run ahead by predicates.
static FailureOr<scf::ForOp> pipelinePredicated(IRRewriter &rewriter,
                                                scf::ForOp loop,
                                                const PipelineOrder &order,
                                                StringRef what) {
  Location loc = loop.getLoc();
  bool wholeAfterFirst = loop->hasAttr(KVBufferDialect::kWholeAfterFirstAttr);
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
  continueBehind(rewriter, *result);
  forgetStages(*result);
  return result;
}

FailureOr<scf::ForOp> kvbuf::pipelineLoop(IRRewriter &rewriter, scf::ForOp loop,
                                          StringRef what) {
  auto how = loop->getAttrOfType<PipelineAttr>(KVBufferDialect::kPipelineAttr);
  bool peeled = how.getValue() != Pipeline::Predicated;
  FailureOr<PipelineOrder> order = readOrder(loop, peeled);
  if (failed(order))
    return failure();
  loop->removeAttr(KVBufferDialect::kPipelineAttr);
  return peeled ? pipelinePeeled(rewriter, loop, *order, how.getValue(), what)
                : pipelinePredicated(rewriter, loop, *order, what);
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
