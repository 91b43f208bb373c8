//===- LazyRescale.cpp - Rescale only where maxima have grown by much -----===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LostRequest.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Remarks.h"

namespace kvbuf {
#define GEN_PASS_DEF_LAZYRESCALE
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-lazy-rescale"

namespace {
/// Where the sum of a softmax's weights goes.
struct SumReaders {
  /// The loop that carries it; null if it is in none.
  scf::ForOp loop;
  /// Whether a log-sum-exp is asked for.
  bool lse = false;
  SmallVector<SoftmaxFinishOp> finishes;
};
} // namespace

/// Follows the sum through the loop that carries it to the ops that divide by
/// it; nullopt if anything else reads it or it does not start empty.
static std::optional<SumReaders> findReaders(OnlineSoftmaxOp op) {
  SumReaders found;
  Value sum = op.getNewSum();
  if (auto arg = dyn_cast<BlockArgument>(op.getSum())) {
    found.loop = dyn_cast<scf::ForOp>(op->getParentOp());
    if (!found.loop || arg.getOwner() != op->getBlock() || !arg.hasOneUse() ||
        !sum.hasOneUse() ||
        found.loop.getTiedLoopYieldedValue(arg)->get() != sum)
      return std::nullopt;
    sum = found.loop.getTiedLoopResult(arg);
  } else if (!op.getSum().getDefiningOp<FragmentFillOp>()) {
    return std::nullopt;
  }
  for (OpOperand &use : sum.getUses()) {
    auto finish = dyn_cast<SoftmaxFinishOp>(use.getOwner());
    if (!finish || finish.getSum() != sum || finish.getMax() == sum ||
        finish.getExcess())
      return std::nullopt;
    found.lse |= !finish.getLse().use_empty();
    found.finishes.push_back(finish);
  }
  return found;
}

/// Whether few scores have been seen: the tiles that a mask may cut and the one
/// after them, at least two. Null where the tiles cannot be counted.
static Value findEarly(OpBuilder &b, OnlineSoftmaxOp op) {
  auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
  if (!loop || getConstantIntValue(loop.getLowerBound()) != 0 ||
      getConstantIntValue(loop.getStep()) != 1)
    return {};
  Value iv = loop.getInductionVar();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(loop);
  Location loc = op.getLoc();
  // In 32 bits, which is what scalar units compare.
  auto narrow = [&](Value index) -> Value {
    return arith::IndexCastOp::create(b, loc, b.getI32Type(), index);
  };
  Value last = arith::ConstantIntOp::create(b, loc, 1, 32);
  if (auto branch = op.getScores().getDefiningOp<scf::IfOp>()) {
    SmallVector<Value> parts{branch.getCondition()};
    if (auto either = parts.front().getDefiningOp<arith::OrIOp>())
      parts = {either.getLhs(), either.getRhs()};
    for (Value part : parts)
      if (auto edge = part.getDefiningOp<arith::CmpIOp>();
          edge && edge.getPredicate() == arith::CmpIPredicate::slt &&
          edge.getLhs() == iv && loop.isDefinedOutsideOfLoop(edge.getRhs()))
        last = arith::MaxSIOp::create(b, loc, narrow(edge.getRhs()), last);
  }
  b.setInsertionPoint(op);
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, narrow(iv),
                               last);
}

namespace {
struct LazyRescalePass : kvbuf::impl::LazyRescaleBase<LazyRescalePass> {
  using Base::Base;

  void runOnOperation() override {
    auto schedule = getOperation()->getAttrOfType<ScheduleAttr>(
        KVBufferDialect::kScheduleAttr);
    if (!schedule || !schedule.getLazyRescale())
      return;
    SmallVector<OnlineSoftmaxOp> found;
    getOperation().walk([&](OnlineSoftmaxOp op) { found.push_back(op); });
    if (found.empty())
      warnLost(getOperation(), DEBUG_TYPE, "lazy",
               "rescaled every time: there is no kvbuffer.online_softmax");
    for (OnlineSoftmaxOp op : found)
      rewrite(op);
  }

  void rewrite(OnlineSoftmaxOp op) {
    auto missed = [&](StringRef why) {
      warnLost(op, DEBUG_TYPE, "lazy", "rescaled every time: " + why);
    };
    RescaleOp rescale;
    if (op.getRescale().hasOneUse())
      rescale = dyn_cast<RescaleOp>(*op.getRescale().user_begin());
    bool movable = rescale && rescale->getBlock() == op->getBlock();
    if (movable)
      if (Operation *def = rescale.getAcc().getDefiningOp())
        movable = def->getBlock() != op->getBlock() || def->isBeforeInBlock(op);
    if (!movable)
      return missed("the factor is not of one accumulator that is there before "
                    "the softmax");
    if (op.getGain() || rescale.getAddend())
      return missed("weights are multiplied by a gain, or what is rescaled is "
                    "added to");
    if (op.getUnbounded())
      return missed(
          "scores may be of any size, and a maximum that stays behind "
          "them need not be of theirs");
    std::optional<SumReaders> readers = findReaders(op);
    if (!readers)
      return missed("the sum of the weights is not one that only a division "
                    "reads");
    IRRewriter b(op);
    Location loc = op.getLoc();
    Type row = op.getMax().getType();
    auto raise =
        RaiseMaxOp::create(b, loc, row, row, b.getI1Type(), op.getScores(),
                           op.getMax(), findEarly(b, op), op.getScaleAttr());
    auto head = SoftmaxHeadOp::create(
        b, loc, op.getScores().getType(), row, op.getScores(),
        raise.getNewMax(), op.getScaleAttr(),
        TypeAttr::get(op.getP().getType().getElementType()),
        op.getMaskedAttr());
    auto apply = ApplyRaiseOp::create(b, loc, rescale.getAcc().getType(), row,
                                      raise.getRaised(), raise.getFactor(),
                                      rescale.getAcc(), op.getSum());
    // A log-sum-exp is of the weights as they are, not as the operand rounds
    // them: only where none is asked for may the sum be corrected in place.
    auto tail = SoftmaxTailOp::create(
        b, loc, op.getP().getType(), row, head.getExponents(),
        apply.getNewSum(), readers->lse ? Value() : head.getExcess());
    rescale.replaceAllUsesWith(apply.getNewAcc());
    rescale.erase();
    op.getP().replaceAllUsesWith(tail.getP());
    op.getNewMax().replaceAllUsesWith(raise.getNewMax());
    op.getNewSum().replaceAllUsesWith(tail.getNewSum());
    op.erase();
    if (readers->lse)
      carryExcess(b, *readers, apply, head.getExcess());
    remark::passed(raise.getLoc(),
                   remark::RemarkOpts::name("lazy").category(DEBUG_TYPE))
        << "accumulators are rescaled where a maximum has grown by more than "
           "8 in base 2";
  }

  /// Sums what rounding adds to the weights beside the sum of the weights, for
  /// the ops that divide by both.
  static void carryExcess(IRRewriter &b, SumReaders &readers,
                          ApplyRaiseOp apply, Value excess) {
    if (scf::ForOp loop = readers.loop) {
      b.setInsertionPoint(loop);
      Value none = FragmentFillOp::create(b, loop.getLoc(), excess.getType(),
                                          b.getF32FloatAttr(0));
      auto carry = [&](OpBuilder &inner, Location loc,
                       ArrayRef<BlockArgument> args) -> SmallVector<Value> {
        auto op = CarryExcessOp::create(inner, loc, args.front(),
                                        apply.getFactor(), excess);
        // Where its factor is used up, too.
        op->moveAfter(apply);
        return {op.getNewCarried()};
      };
      auto carrying = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
          b, none, /*replaceInitOperandUsesInLoop=*/false, carry));
      excess = carrying.getResults().back();
    }
    for (SoftmaxFinishOp finish : readers.finishes)
      finish.getExcessMutable().assign(excess);
  }
};
} // namespace
