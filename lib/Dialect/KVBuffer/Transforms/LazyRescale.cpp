//===- LazyRescale.cpp - Rescale only where maxima have grown by much -----===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LostRequest.h"
#include "kvbuffer/Dialect/KVBuffer/IR/FragmentSources.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ChooseTarget.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/VerifyElements.h"
#include "kvbuffer/Target/TargetInfo.h"
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

/// The branch that tells tiles that a mask may cut from others: around the
/// mask, or around what the product begins with; null: there is none.
static scf::IfOp findEdgeBranch(Value scores) {
  while (auto product = scores.getDefiningOp<MmaOp>())
    scores = product.getAcc();
  return scores.getDefiningOp<scf::IfOp>();
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
  if (scf::IfOp branch = findEdgeBranch(op.getScores())) {
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

/// Whether the chip adds pairs of a softmax's weights up as they are rounded.
static bool addsPairs(OnlineSoftmaxOp op) {
  std::optional<TargetInfo> target = targetOf(op);
  return target &&
         llvm::is_contained(target->pairSums,
                            elementName(op.getP().getType().getElementType()));
}

/// Whether a soft cap makes a softmax's scores, but for those that are hidden.
static bool isCapped(OnlineSoftmaxOp op) {
  return llvm::any_of(fragmentSources(op.getScores()), [](Value source) {
    auto mask = source.getDefiningOp<MaskOp>();
    return (mask ? Value(mask.getScores()) : source)
               .getDefiningOp<SoftcapOp>() != nullptr;
  });
}

/// Whether a row of the output is no longer than one of scores: products then
/// leave no cycles for a softmax, but registers.
static bool hasShortRows(OnlineSoftmaxOp op, RescaleOp rescale) {
  return rescale.getAcc().getType().getCols() <=
         op.getScores().getType().getCols();
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
    std::optional<SumReaders> readers = findReaders(op);
    if (!readers)
      return missed("the sum of the weights is not one that only a division "
                    "reads");
    IRRewriter b(op);
    Location loc = op.getLoc();
    Type row = op.getMax().getType();
    // A log-sum-exp is of the weights as they are, not as the operand rounds
    // them: only where none is asked for may the sum be of those, or be
    // corrected in place. Pairs are added up where products leave no cycles for
    // the softmax: nothing of that runs beside products. Weights that nobody
    // multiplies are not rounded at all.
    Value early = findEarly(b, op);
    bool isShort = hasShortRows(op, rescale);
    bool rounded = !readers->lse && !op.getP().use_empty() && addsPairs(op) &&
                   (isShort || isCapped(op));
    UnitAttr settles, unit = b.getUnitAttr();
    // Of scores of any size a sum does not tell how far they are above.
    if (rounded && early && isShort && !op.getUnbounded())
      settles = unit;
    auto raise = RaiseMaxOp::create(
        b, loc, row, row, b.getI1Type(), op.getScores(), op.getMax(), early,
        op.getScaleAttr(), settles, op.getUnboundedAttr());
    auto head = SoftmaxHeadOp::create(
        b, loc, op.getScores().getType(), row, op.getScores(),
        raise.getNewMax(), op.getScaleAttr(),
        TypeAttr::get(op.getP().getType().getElementType()), op.getMaskedAttr(),
        /*exponents_only=*/UnitAttr(), op.getUnboundedAttr());
    auto apply = ApplyRaiseOp::create(b, loc, rescale.getAcc().getType(), row,
                                      raise.getRaised(), raise.getFactor(),
                                      rescale.getAcc(), op.getSum());
    Value p, max = raise.getNewMax(), sum, acc = apply.getNewAcc();
    if (settles) {
      b.setInsertionPointAfter(head);
      auto all = cast<SoftmaxHeadOp>(b.clone(*head));
      all.setExponentsOnly(true);
      b.setInsertionPoint(op);
      auto settle = SoftmaxSettleOp::create(
          b, loc, op.getP().getType(), row, row, acc.getType(),
          head.getExponents(), all.getExponents(), max, apply.getNewSum(), acc,
          op.getScaleAttr());
      p = settle.getP();
      max = settle.getNewMax();
      sum = settle.getNewSum();
      acc = settle.getNewAcc();
    } else {
      auto tail = SoftmaxTailOp::create(
          b, loc, op.getP().getType(), row, head.getExponents(),
          apply.getNewSum(),
          readers->lse || rounded ? Value() : Value(head.getExcess()),
          rounded ? unit : UnitAttr());
      p = tail.getP();
      sum = tail.getNewSum();
    }
    rescale.replaceAllUsesWith(acc);
    rescale.erase();
    op.getP().replaceAllUsesWith(p);
    op.getNewMax().replaceAllUsesWith(max);
    op.getNewSum().replaceAllUsesWith(sum);
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
