//===- LaneSoftmax.cpp - The online softmax in two parts ------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaneSoftmax.h"
#include "LaneArithmetic.h"
#include "LaneMath.h"
#include "LaneSoftcap.h"
#include "kvbuffer/Target/IssueModel.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"
#include <numbers>

using namespace mlir;
using namespace kvbuf;

/// How far scores may be above a row's maximum before it is raised, in base 2:
/// weights of up to 256.
static constexpr double kSlack = 8;

/// From which product of a maximum and the scale on, in base 2, any larger
/// score raises: up to there its rounding loses 2^-5 at most, which no weight
/// minds.
static constexpr double kExactFrom = 1 << 20;

/// Folds values in one chain; the backend makes operations of three operands of
/// a chain of maxima.
static Value chain(ArrayRef<Value> values,
                   llvm::function_ref<Value(Value, Value)> fn) {
  Value result = values.front();
  for (Value value : values.drop_front())
    result = fn(result, value);
  return result;
}

/// The product of scores with what `kvbuffer.fragment_fit` leaves to each row,
/// which is never negative; null if `scores` are others. A softmax takes the
/// product's scores: the factor belongs to the one that it multiplies them by
/// anyway.
static RescaleOp productWithFit(TypedValue<FragmentType> scores) {
  auto product = scores.getDefiningOp<RescaleOp>();
  if (!product || product.getAddend() ||
      !product.getFactor().getDefiningOp<FragmentFitOp>())
    return nullptr;
  return product;
}

namespace {
/// A lane's scores as a softmax takes them: x * gain + outer, where a cap has
/// left such, or x times a factor of each row. (Scores of any size are taken as
/// they are: another product is another rounding.)
struct LaneScores {
  LaneScores(LaneContext &lanes, TypedValue<FragmentType> scores,
             bool unbounded)
      : b(lanes.builder()), lanes(lanes), type(scores.getType()),
        shares(findShares(lanes, scores)) {
    RescaleOp product;
    if (!shares && !unbounded)
      product = productWithFit(scores);
    if (product)
      factors = lanes.lanesOf(product.getFactor());
    vectors =
        shares ? shares->x : lanes.lanesOf(product ? product.getAcc() : scores);
  }

  /// The lane's largest of each row, of those that `vectors` holds.
  Values tops() const {
    Values own;
    for (const Values &values : valuesByRow(lanes, type, vectors))
      own.push_back(chain(values, [&](Value x, Value y) -> Value {
        if (shares)
          return arith::MinNumFOp::create(b, x, y);
        return arith::MaxNumFOp::create(b, x, y);
      }));
    return own;
  }
  /// The lane's largest score of each row.
  Values largest() const {
    Values own = tops();
    for (auto [row, top] : llvm::enumerate(own)) {
      if (shares)
        top = fma(b, top, lanes.f32(shares->gain), lanes.f32(shares->outer));
      else if (!factors.empty())
        top = mulf(b, top, factors[row]);
    }
    return own;
  }
  /// By what `vectors` become exponents, where the scores of row number `row`
  /// do by `by`.
  RowExponents ofVectors(RowExponents by, double scale, size_t row) const {
    if (shares) {
      by.scale = lanes.f32(shares->gain * scale);
      by.offset = addf(b, by.offset, lanes.f32(shares->outer * scale));
    } else if (!factors.empty()) {
      // All lanes of a warp have one factor: it may be in no lane's registers.
      Value word = arith::BitcastOp::create(b, b.getI32Type(),
                                            mulf(b, by.scale, factors[row]));
      by.scale =
          arith::BitcastOp::create(b, b.getF32Type(), lanes.uniform(word));
    }
    return by;
  }

  ImplicitLocOpBuilder &b;
  LaneContext &lanes;
  FragmentType type;
  const CappedShares *shares;
  /// Empty where scores are as they are.
  Values factors;
  Values vectors;
};
} // namespace

/// Maxima of rows, raised to the lanes' largest scores if those are larger, and
/// by what is to be multiplied what was relative to the old ones.
static std::pair<Values, Values> raiseTo(LaneContext &lanes, RaiseMaxOp op,
                                         double scale, ArrayRef<Value> max,
                                         ArrayRef<Value> own) {
  ImplicitLocOpBuilder &b = lanes.builder();
  FragmentType scores = op.getScores().getType();
  Value lowest = lanes.f32(-std::numeric_limits<double>::infinity());
  Values newMax, factors;
  for (auto [before, value] : llvm::zip_equal(max, own)) {
    Value raised = lanes.reduceLanes(lanes.layoutOf(scores),
                                     arith::MaxNumFOp::create(b, before, value),
                                     /*isMax=*/true);
    newMax.push_back(raised);
    if (op.getUnbounded()) {
      // Of offsets as they were rounded: no weight is counted under two.
      RowExponents row = unboundedExponents(lanes, raised, op.getScale());
      factors.push_back(exp2(
          b, arith::SubFOp::create(b, row.offset, row.offsetOf(b, before))));
      continue;
    }
    // A row that has seen no key: -inf - -inf would be NaN.
    Value none =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, raised, lowest);
    Value finite = arith::SelectOp::create(b, none, lanes.f32(0), raised);
    Value down = arith::SubFOp::create(b, before, finite);
    factors.push_back(
        exp2(b, arith::MulFOp::create(b, down, lanes.f32(scale))));
  }
  return {newMax, factors};
}

/// What scores of any size may come to, by their maxima: `kSlack` more, no more
/// where those are large. `exact`, which may be null, says that they are to
/// stay below the maxima. It chooses last, so that the rest is of the maximum
/// alone: who raises that makes it anew (lib/Compiler/SeldomChanges.cpp).
static Values unboundedLimits(LaneContext &lanes, double scale,
                              ArrayRef<Value> max, Value exact) {
  ImplicitLocOpBuilder &b = lanes.builder();
  Values limits;
  for (Value ofRow : max) {
    Value isSmall = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT,
                                          math::AbsFOp::create(b, ofRow),
                                          lanes.f32(kExactFrom / scale));
    Value slack = arith::SelectOp::create(b, isSmall, lanes.f32(kSlack / scale),
                                          lanes.f32(0));
    Value limit = arith::AddFOp::create(b, ofRow, slack);
    limits.push_back(exact ? arith::SelectOp::create(b, exact, ofRow, limit)
                           : limit);
  }
  return limits;
}

/// Maxima and factors where any lane of the warp has a score above its row's
/// limit, and last whether one has.
static Values raiseAbove(LaneContext &lanes, RaiseMaxOp op, double scale,
                         ArrayRef<Value> max, ArrayRef<Value> limits) {
  ImplicitLocOpBuilder &b = lanes.builder();
  // Each lane looks at its own scores; who raises asks the others of the row.
  Values own = LaneScores(lanes, op.getScores(), op.getUnbounded()).largest();
  Value needed;
  for (auto [value, limit] : llvm::zip_equal(own, limits)) {
    Value above =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, value, limit);
    needed = needed ? arith::OrIOp::create(b, needed, above) : above;
  }
  Value any = LaneAnyOp::create(b, needed);
  SmallVector<Type> types(2 * max.size(), b.getF32Type());
  auto raise = scf::IfOp::create(b, types, any, /*addThenBlock=*/true,
                                 /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(raise.thenBlock());
  auto [newMax, factors] = raiseTo(lanes, op, scale, max, own);
  llvm::append_range(newMax, factors);
  scf::YieldOp::create(b, newMax);
  b.setInsertionPointToEnd(raise.elseBlock());
  Values same(max);
  same.append(max.size(), lanes.f32(1));
  scf::YieldOp::create(b, same);
  Values results(raise->result_begin(), raise->result_end());
  results.push_back(any);
  return results;
}

void kvbuf::lowerOp(LaneContext &lanes, RaiseMaxOp op) {
  ImplicitLocOpBuilder &b = lanes.builder();
  double scale = op.getScale().convertToFloat() * std::numbers::log2e;
  // A copy: new values move those that are kept.
  const Values max = lanes.lanesOf(op.getMax());
  Values results;
  auto fill = op.getMax().getDefiningOp<FragmentFillOp>();
  if (op.getExactOnly() && fill && fill.getValue().isFinite() &&
      matchPattern(op.getExact(), m_Zero())) {
    // A number that nothing raises.
    results = max;
    results.append(max.size(), lanes.f32(1));
    results.push_back(arith::ConstantOp::create(b, b.getBoolAttr(false)));
  } else if (op.getExactOnly()) {
    Value lowest = lanes.f32(-std::numeric_limits<double>::infinity()), none;
    for (Value row : max) {
      Value empty =
          arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, row, lowest);
      none = none ? arith::OrIOp::create(b, none, empty) : empty;
    }
    Value looks = arith::OrIOp::create(b, LaneAnyOp::create(b, none),
                                       lanes.single(op.getExact()));
    SmallVector<Type> types(2 * max.size(), b.getF32Type());
    types.push_back(b.getI1Type());
    auto exact = scf::IfOp::create(b, types, looks, /*addThenBlock=*/true,
                                   /*addElseBlock=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(exact.thenBlock());
    scf::YieldOp::create(b, raiseAbove(lanes, op, scale, max, max));
    b.setInsertionPointToEnd(exact.elseBlock());
    Values same(max);
    same.append(max.size(), lanes.f32(1));
    same.push_back(arith::ConstantOp::create(b, b.getBoolAttr(false)));
    scf::YieldOp::create(b, same);
    results.assign(exact->result_begin(), exact->result_end());
  } else if (op.getUnbounded()) {
    Value exact = op.getExact() ? lanes.single(op.getExact()) : Value();
    results = raiseAbove(lanes, op, scale, max,
                         unboundedLimits(lanes, scale, max, exact));
  } else {
    Value slack = lanes.f32(kSlack / scale);
    if (op.getExact()) {
      // Where it is known whether it is, in the same block, and by bits: the
      // answer would come as a mask of lanes, and a vector instruction would
      // choose between floats.
      Value exact = lanes.single(op.getExact());
      auto at = b.saveInsertionPoint();
      if (Operation *known = exact.getDefiningOp<arith::CmpIOp>();
          known && known->getBlock() == b.getInsertionBlock())
        b.setInsertionPointAfter(known);
      auto bits = llvm::bit_cast<int32_t>(static_cast<float>(kSlack / scale));
      Value chosen =
          arith::SelectOp::create(b, exact, lanes.i32(0), lanes.i32(bits));
      b.restoreInsertionPoint(at);
      slack = arith::BitcastOp::create(b, b.getF32Type(), chosen);
    }
    Values limits;
    for (Value ofRow : max)
      limits.push_back(arith::AddFOp::create(b, ofRow, slack));
    results = raiseAbove(lanes, op, scale, max, limits);
  }
  lanes.setLanes(op.getRaised(), {results.pop_back_val()});
  lanes.setLanes(op.getNewMax(), ArrayRef(results).take_front(max.size()));
  lanes.setLanes(op.getFactor(), ArrayRef(results).drop_front(max.size()));
}

void kvbuf::lowerOp(LaneContext &lanes, ApplyRaiseOp op) {
  ImplicitLocOpBuilder &b = lanes.builder();
  Values acc = lanes.lanesOf(op.getAcc()),
         factors = lanes.lanesOf(op.getFactor());
  Values sum = lanes.lanesOf(op.getSum()), before(acc);
  llvm::append_range(before, sum);
  SmallVector<Type> types;
  for (Value value : before)
    types.push_back(value.getType());
  auto apply = scf::IfOp::create(b, types, lanes.single(op.getRaised()),
                                 /*addThenBlock=*/true, /*addElseBlock=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(apply.thenBlock());
    FragmentType type = op.getAcc().getType();
    const FragmentLayout &atom = lanes.layoutOf(type);
    int64_t cols = atom.atomCols(type);
    unsigned parts = atom.rowParts().size();
    Values results =
        lanes.mapElements(acc, [&](Value x, unsigned index, int64_t reg) {
          Value factor = factors[index / cols * parts + atom.rowPart(reg)];
          return arith::MulFOp::create(b, x, factor).getResult();
        });
    for (auto [value, factor] : llvm::zip_equal(sum, factors))
      results.push_back(arith::MulFOp::create(b, value, factor));
    scf::YieldOp::create(b, results);
    b.setInsertionPointToEnd(apply.elseBlock());
    scf::YieldOp::create(b, before);
  }
  ValueRange results = apply.getResults();
  auto take = [&](ValueRange part) { return Values(part.begin(), part.end()); };
  lanes.setLanes(op.getNewAcc(), take(results.take_front(acc.size())));
  lanes.setLanes(op.getNewSum(), take(results.drop_front(acc.size())));
}

namespace {
/// Which of a lane's elements the heads of a kernel's softmaxes make weights:
/// of each row's accumulators, or of the registers of the only one, the first
/// half. Where functions have made scores, for which a head's part of an
/// iteration has less time, a quarter, if the other part's products hide the
/// rest; all of the only one where rows of the output are so long that products
/// hide everything.
class HeadShare : public LaneState {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(HeadShare)

  /// Whether an element is one of them; `op` is a head or a tail.
  bool has(LaneContext &lanes, Operation *op, FragmentType type, unsigned index,
           int64_t reg) {
    constexpr int64_t longRows = 4;
    const FragmentLayout &atom = lanes.layoutOf(type);
    int64_t cols = atom.atomCols(type), own = atom.registers();
    if (!parts) {
      bool ofFunctions = false;
      op->getParentOfType<FunctionOpInterface>()->walk([&](Operation *other) {
        if (auto head = dyn_cast<SoftmaxHeadOp>(other);
            head && head.getUnbounded())
          ofFunctions = true;
        if (auto finish = dyn_cast<SoftmaxFinishOp>(other))
          columns = std::max(columns, finish.getAcc().getType().getCols());
      });
      constexpr double rest = 0.75;
      parts = ofFunctions && hiddenExponentials(lanes.chip()) >= rest ? 4 : 2;
    }
    if (cols == 1 && columns > longRows * type.getCols())
      return true;
    return *parts * (index % cols * own + reg) < cols * own;
  }

private:
  /// Exponentials that run beside a product for each of its scores, where it is
  /// as long as rows of the output: whole ones beside each MFMA.
  double hiddenExponentials(const TargetInfo &chip) const {
    std::optional<IssueModel> model = lookupIssueModel(chip.chip);
    if (!model || chip.matrixInstructions.empty())
      return 1;
    const MatrixInstruction &mma = chip.matrixInstructions.front();
    int64_t cycles = mma.m * mma.n * mma.k / model->matrixMacs;
    int64_t each = (cycles - model->matrixIssue) / model->transcendental;
    double ofScore = double(chip.waveSize) * columns / model->matrixMacs;
    return ofScore / cycles * each;
  }

  /// Known from the first op on that asks, before any is lowered.
  std::optional<int64_t> parts;
  /// Those of the output.
  int64_t columns = 0;
};
} // namespace

void kvbuf::lowerOp(LaneContext &lanes, SoftmaxHeadOp op) {
  ImplicitLocOpBuilder &b = lanes.builder();
  FragmentType type = op.getScores().getType();
  const FragmentLayout &atom = lanes.layoutOf(type);
  int64_t cols = atom.atomCols(type);
  unsigned parts = atom.rowParts().size();
  double scale = op.getScale().convertToFloat() * std::numbers::log2e;
  Value lowest = lanes.f32(-std::numeric_limits<double>::infinity());
  LaneScores scores(lanes, op.getScores(), op.getUnbounded());
  bool unbounded = op.getUnbounded() && !scores.shares;
  SmallVector<RowExponents> ofVectors;
  for (Value max : lanes.lanesOf(op.getMax())) {
    bool guards = op.getMasked() && !unbounded;
    // A row that has seen no key has scores of -inf alone, whose exponents are
    // -inf with any finite offset.
    if (guards && !scores.shares && scale < 1) {
      max = arith::MaxNumFOp::create(
          b, max, lanes.f32(-std::numeric_limits<float>::max()));
    } else if (guards) {
      Value none =
          arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, max, lowest);
      max = arith::SelectOp::create(b, none, lanes.f32(0), max);
    }
    RowExponents by = unbounded
                          ? unboundedExponents(lanes, max, op.getScale())
                          : RowExponents{lanes.f32(scale), lanes.f32(-scale),
                                         mulf(b, max, lanes.f32(-scale))};
    ofVectors.push_back(scores.ofVectors(by, scale, ofVectors.size()));
  }
  // What rounding adds to the lane's largest weight; its score was found for
  // the maximum already.
  Values excess;
  for (auto [row, top] : llvm::enumerate(scores.tops())) {
    const RowExponents &by = ofVectors[row];
    Value weight = exp2(b, fma(b, top, by.scale, by.offset));
    excess.push_back(roundingOf(lanes, weight, op.getOperand()));
  }
  lanes.setLanes(op.getExcess(), excess);
  auto &share = lanes.ofKernel<HeadShare>();
  lanes.setLanes(
      op.getExponents(),
      lanes.mapElements(
          scores.vectors, [&](Value s, unsigned index, int64_t reg) -> Value {
            int64_t row = index / cols * parts + atom.rowPart(reg);
            const RowExponents &by = ofVectors[row];
            Value x = fma(b, s, by.scale, by.offset);
            return !op.getExponentsOnly() &&
                           share.has(lanes, op, type, index, reg)
                       ? exp2(b, x)
                       : x;
          }));
}

/// The weights of which a head has left some as exponents (`HeadShare`).
static Values finishWeights(LaneContext &lanes, Operation *op,
                            TypedValue<FragmentType> exponents) {
  FragmentType type = exponents.getType();
  auto &share = lanes.ofKernel<HeadShare>();
  return lanes.mapElements(lanes.lanesOf(exponents),
                           [&](Value x, unsigned index, int64_t reg) -> Value {
                             return share.has(lanes, op, type, index, reg)
                                        ? x
                                        : exp2(lanes.builder(), x);
                           });
}

/// Rounds weights to words of an operand, and adds these up by row, to `sums`.
static LogicalResult addRounded(LaneContext &lanes, Operation *op,
                                FragmentType from, FragmentType type,
                                ArrayRef<Value> weights, Values &words,
                                Values &sums) {
  SmallVector<int64_t> rows;
  if (failed(toOperand(lanes, op, from, type, weights, words, &rows)))
    return failure();
  for (auto [word, row] : llvm::zip_equal(words, rows))
    sums[row] = lanes.addElements(sums[row], word);
  return success();
}

LogicalResult kvbuf::lowerOp(LaneContext &lanes, SoftmaxTailOp op) {
  ImplicitLocOpBuilder &b = lanes.builder();
  FragmentType type = op.getExponents().getType();
  Values p = finishWeights(lanes, op, op.getExponents());
  // The sum stays this lane's part of it until the end.
  Values sum = lanes.lanesOf(op.getSum()), excess;
  if (op.getRounded()) {
    Values words;
    if (failed(addRounded(lanes, op, type, op.getP().getType(), p, words, sum)))
      return failure();
    lanes.setLanes(op.getP(), words);
    lanes.setLanes(op.getNewSum(), sum);
    return success();
  }
  if (op.getExcess())
    excess = lanes.lanesOf(op.getExcess());
  // kvbuf-pair-arithmetic may add up pairs, and settles the order.
  const TargetInfo &chip = lanes.chip();
  auto order = chip.vendor == Vendor::AMD && chip.pairsOfF32
                   ? arith::FastMathFlags::reassoc
                   : arith::FastMathFlags::none;
  for (auto [row, values] : llvm::enumerate(valuesByRow(lanes, type, p))) {
    values.insert(values.begin(), sum[row]);
    if (!excess.empty())
      values.push_back(excess[row]);
    sum[row] = chain(values, [&](Value x, Value y) -> Value {
      return arith::AddFOp::create(b, x, y, order);
    });
  }
  // What nothing multiplies has no layout to be in.
  if (!op.getP().use_empty()) {
    Values words;
    if (failed(toOperand(lanes, op, type, op.getP().getType(), p, words)))
      return failure();
    lanes.setLanes(op.getP(), words);
  }
  lanes.setLanes(op.getNewSum(), sum);
  return success();
}

/// Words, maxima, sums and accumulators of weights that are computed anew.
static FailureOr<Values> settleAnew(LaneContext &lanes, SoftmaxSettleOp op,
                                    ArrayRef<Value> max, ArrayRef<Value> sum,
                                    ArrayRef<Value> acc) {
  ImplicitLocOpBuilder &b = lanes.builder();
  FragmentType type = op.getAll().getType(), accType = op.getAcc().getType();
  double unit = 1 / (op.getScale().convertToFloat() * std::numbers::log2e);
  const Values exponents = lanes.lanesOf(op.getAll());
  Values newMax, sums, factors, offsets;
  for (auto [row, values] :
       llvm::enumerate(valuesByRow(lanes, type, exponents))) {
    values.insert(values.begin(), lanes.f32(0));
    Value own = chain(values, [&](Value x, Value y) -> Value {
      return arith::MaxNumFOp::create(b, x, y);
    });
    Value top = lanes.reduceLanes(lanes.layoutOf(type), own, /*isMax=*/true);
    offsets.push_back(arith::NegFOp::create(b, top));
    factors.push_back(exp2(b, offsets.back()));
    newMax.push_back(fma(b, top, lanes.f32(unit), max[row]));
    sums.push_back(mulf(b, sum[row], factors.back()));
  }
  auto rowOf = [&](FragmentType of, unsigned index, int64_t reg) {
    const FragmentLayout &atom = lanes.layoutOf(of);
    return index / atom.atomCols(of) * atom.rowParts().size() +
           atom.rowPart(reg);
  };
  Values p =
      lanes.mapElements(exponents, [&](Value x, unsigned index, int64_t reg) {
        return exp2(b, addf(b, x, offsets[rowOf(type, index, reg)]));
      });
  Values results;
  if (failed(
          addRounded(lanes, op, type, op.getP().getType(), p, results, sums)))
    return failure();
  llvm::append_range(results, newMax);
  llvm::append_range(results, sums);
  llvm::append_range(
      results,
      lanes.mapElements(acc, [&](Value x, unsigned index, int64_t reg) {
        return mulf(b, x, factors[rowOf(accType, index, reg)]);
      }));
  return results;
}

LogicalResult kvbuf::lowerOp(LaneContext &lanes, SoftmaxSettleOp op) {
  ImplicitLocOpBuilder &b = lanes.builder();
  FragmentType type = op.getAll().getType(), to = op.getP().getType();
  // Copies: new values move those that are kept.
  const Values max = lanes.lanesOf(op.getMax()),
               sum = lanes.lanesOf(op.getSum()),
               acc = lanes.lanesOf(op.getAcc());
  Values words, sums(sum.size(), lanes.f32(0));
  if (failed(addRounded(lanes, op, type, to,
                        finishWeights(lanes, op, op.getExponents()), words,
                        sums)))
    return failure();
  // No weight is larger than the lane's sum of them.
  Value needed;
  for (Value own : sums) {
    Value above = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, own,
                                        lanes.f32(std::exp2(kSlack)));
    needed = needed ? arith::OrIOp::create(b, needed, above) : above;
  }
  Values settled(words);
  llvm::append_range(settled, max);
  for (auto [before, own] : llvm::zip_equal(sum, sums))
    settled.push_back(arith::AddFOp::create(b, before, own));
  llvm::append_range(settled, acc);
  auto anew = scf::IfOp::create(b, ValueRange(settled).getTypes(),
                                LaneAnyOp::create(b, needed),
                                /*addThenBlock=*/true, /*addElseBlock=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(anew.elseBlock());
    scf::YieldOp::create(b, settled);
    b.setInsertionPointToEnd(anew.thenBlock());
    FailureOr<Values> results = settleAnew(lanes, op, max, sum, acc);
    if (failed(results))
      return failure();
    scf::YieldOp::create(b, *results);
  }
  Values results(anew->result_begin(), anew->result_end());
  ArrayRef<Value> all = results;
  auto take = [&](size_t count) {
    ArrayRef<Value> part = all.take_front(count);
    all = all.drop_front(count);
    return part;
  };
  lanes.setLanes(op.getP(), take(words.size()));
  lanes.setLanes(op.getNewMax(), take(max.size()));
  lanes.setLanes(op.getNewSum(), take(sum.size()));
  lanes.setLanes(op.getNewAcc(), take(acc.size()));
  return success();
}

void kvbuf::lowerOp(LaneContext &lanes, CarryExcessOp op) {
  ImplicitLocOpBuilder &b = lanes.builder();
  Values carried;
  for (auto [value, factor, excess] : llvm::zip_equal(
           lanes.lanesOf(op.getCarried()), lanes.lanesOf(op.getFactor()),
           lanes.lanesOf(op.getExcess())))
    carried.push_back(math::FmaOp::create(b, value, factor, excess));
  lanes.setLanes(op.getNewCarried(), carried);
}

void kvbuf::lowerOp(LaneContext &lanes, MeetOp) { lanes.meet(); }

void kvbuf::lowerOp(LaneContext &lanes, StaggerOp op) {
  ImplicitLocOpBuilder &b = lanes.builder();
  // All lanes of a warp agree on it.
  Value upper =
      arith::CmpIOp::create(b, arith::CmpIPredicate::uge, lanes.ownWarp(),
                            lanes.i32(lanes.ownSchedule().getWarps() / 2));
  if (op.getEnd())
    upper = arith::XOrIOp::create(
        b, upper, arith::ConstantOp::create(b, b.getBoolAttr(true)));
  auto extra = scf::IfOp::create(b, upper, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(extra.thenBlock());
  lanes.meet();
}
