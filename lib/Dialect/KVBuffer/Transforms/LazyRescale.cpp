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
#include <cmath>
#include <limits>
#include <numbers>

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

/// The soft cap that makes scores, but for those that a mask hides; null if
/// none does.
static SoftcapOp capOf(Value source) {
  auto mask = source.getDefiningOp<MaskOp>();
  return (mask ? Value(mask.getScores()) : source).getDefiningOp<SoftcapOp>();
}

/// Whether a soft cap makes a softmax's scores, but for those that are hidden.
static bool isCapped(OnlineSoftmaxOp op) {
  return llvm::any_of(fragmentSources(op.getScores()),
                      [](Value source) { return bool(capOf(source)); });
}

/// A score that weights may be relative to in all rows, where soft caps c leave
/// all that is not hidden in [-c, c]; nullopt where a row's maximum is needed.
///
/// In base 2, with L = log2(e) * scale * c and R = log2(e) * scale * reference,
/// weights lie from 2^(-L - R) to 2^(L - R). Let normal numbers of the weights'
/// type, and of f32, in which they are added up, lie from 2^a to 2^(b + 1).
/// Values of V up to 2^v do not overflow in a sum over 2^24 keys while
///   L - R + 24 + v <= b,
/// and values down to 2^-v keep all of their bits while
///   -L - R - v >= a.
/// R = (24 - a - b) / 2 serves both alike, with v = (b - 24 - a) / 2 - L: for
/// the exponents of bf16 (a = -126, b = 127) R = 11.5 and v = 114.5 - L. R is
/// the next number from there on for which L - R is whole, so that the weight
/// of a score at the cap is a power of two; v is less by up to 1. Small caps
/// have R = L: weights of at most 1. Caps with a v below 32 keep the maximum
/// (with a scale of 1 those above 57), as do all with weights of f16.
static std::optional<float> findReference(OnlineSoftmaxOp op) {
  double bound = 0;
  for (Value source : fragmentSources(op.getScores())) {
    SoftcapOp cap = capOf(source);
    if (!cap)
      return std::nullopt;
    bound = std::max<double>(bound, cap.getCap().convertToFloat());
  }
  auto weights = dyn_cast<FloatType>(op.getP().getType().getElementType());
  if (!weights || op.getUnbounded())
    return std::nullopt;
  constexpr double keys = 24, values = 32;
  const llvm::fltSemantics &type = weights.getFloatSemantics(),
                           &sums = llvm::APFloat::IEEEsingle();
  double least = std::max(llvm::APFloat::semanticsMinExponent(type),
                          llvm::APFloat::semanticsMinExponent(sums)),
         most = std::min(llvm::APFloat::semanticsMaxExponent(type),
                         llvm::APFloat::semanticsMaxExponent(sums)),
         unit = op.getScale().convertToFloat() * std::numbers::log2e,
         reach = unit * bound;
  if (!((most - keys - least) / 2 - reach >= values))
    return std::nullopt;
  double middle = (keys - least - most) / 2;
  return (reach - std::max(0.0, std::floor(reach - middle))) / unit;
}

/// Whether a row of the output is no longer than one of scores: products then
/// leave no cycles for a softmax, but registers.
static bool hasShortRows(OnlineSoftmaxOp op, RescaleOp rescale) {
  return rescale.getAcc().getType().getCols() <=
         op.getScores().getType().getCols();
}

/// Whether what a loop carries begins with a number, and not with what comes of
/// other steps than the loop's, which are relative to a maximum. Without a
/// loop, whether it is that number.
static bool beginsWith(scf::ForOp loop, Value carried, float number) {
  return llvm::all_of(fragmentSources(carried), [&](Value source) {
    Operation *made = source.getDefiningOp();
    if (auto fill = dyn_cast_or_null<FragmentFillOp>(made))
      return fill.getValue().convertToFloat() == number;
    return isa_and_nonnull<MmaOp, RescaleOp, OnlineSoftmaxOp>(made) && loop &&
           loop->isProperAncestor(made);
  });
}

/// Whether weights may be relative to anything: nothing is there before the
/// first step, which a factor of 0 would have to remove, and no sink joins the
/// sum, which may be as far above a score as it likes.
static bool needsNoMaximum(OnlineSoftmaxOp op, RescaleOp rescale,
                           const SumReaders &readers) {
  return llvm::none_of(readers.finishes,
                       [](SoftmaxFinishOp end) { return end.getSink(); }) &&
         beginsWith(readers.loop, op.getMax(),
                    -std::numeric_limits<float>::infinity()) &&
         beginsWith(readers.loop, op.getSum(), 0) &&
         beginsWith(readers.loop, rescale.getAcc(), 0);
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
    Value before = op.getMax();
    UnitAttr never;
    std::optional<float> reference =
        rounded && needsNoMaximum(op, rescale, *readers) ? findReference(op)
                                                         : std::nullopt;
    if (reference) {
      // Nothing ever raises it, and nobody looks for what could.
      OpBuilder::InsertionGuard guard(b);
      if (readers->loop)
        b.setInsertionPoint(readers->loop);
      before =
          FragmentFillOp::create(b, loc, row, b.getF32FloatAttr(*reference));
      early = arith::ConstantOp::create(b, loc, b.getBoolAttr(false));
      never = unit;
      settles = nullptr;
    }
    auto raise = RaiseMaxOp::create(
        b, loc, row, row, b.getI1Type(), op.getScores(), before, early,
        op.getScaleAttr(), settles ? settles : never, op.getUnboundedAttr());
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
        << (reference ? "accumulators are not rescaled: a cap bounds scores"
                      : "accumulators are rescaled where a maximum has grown "
                        "by more than 8 in base 2");
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
