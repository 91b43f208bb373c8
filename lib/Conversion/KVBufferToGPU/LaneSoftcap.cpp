//===- LaneSoftcap.cpp - Soft caps on lanes -------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// cap * tanh(scale * s / cap) of a lane's scores. Exponential and reciprocal
/// come on top of the softmax's exponential, and all three from the unit with
/// the fewest lanes. Scores are mostly well below the cap: where those of all
/// lanes are, products and sums will do.
///
//===----------------------------------------------------------------------===//

#include "LaneSoftcap.h"
#include "LaneArithmetic.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

using namespace mlir;
using namespace kvbuf;

/// tanh x / x for x up to a bound as a polynomial of x^2, lowest power first.
namespace {
struct TanhNearZero {
  double bound = 0;
  SmallVector<double> coefficients;

  /// The tanh that it gives.
  double at(double x) const {
    double value = 0;
    for (double coefficient : llvm::reverse(coefficients))
      value = value * x * x + coefficient;
    return value * x;
  }
  /// By how much that is off, at most.
  double error() const {
    constexpr int steps = 256;
    double largest = 0;
    for (int i = 1; i <= steps; ++i) {
      double x = bound * i / steps;
      largest = std::max(largest, std::abs(at(x) - std::tanh(x)));
    }
    return largest;
  }
};
} // namespace

/// Off by 5.4e-7 of tanh x (Remez's algorithm).
static TanhNearZero tanhNearZero() {
  return {0.5, {0.9999994558, -0.3332631794, 0.1319029659, -0.04440222584}};
}
/// For scores that this leaves over, and is still less than what any score
/// takes. Off by 6.5e-7.
static TanhNearZero tanhFarther() {
  return {1.0,
          {0.9999994139, -0.3332904301, 0.1328143733, -0.05160575046,
           0.01674318939, -0.003067086622}};
}

/// The polynomial of `terms` terms that is tanh x at the zeros of a Chebyshev
/// polynomial on [-bound, bound], of which one is 0: hardly farther from tanh
/// than the best one.
static TanhNearZero meetTanh(unsigned terms, double bound) {
  TanhNearZero result{bound, {}};
  SmallVector<double> squares, differences;
  for (unsigned i = 0; i < terms; ++i) {
    double x =
        bound * std::cos((2 * i + 1) * std::numbers::pi / (4 * terms + 2));
    squares.push_back(x * x);
    differences.push_back(std::tanh(x) / x);
  }
  // Newton's divided differences, multiplied out.
  for (unsigned order = 1; order < terms; ++order)
    for (unsigned i = terms - 1; i >= order; --i)
      differences[i] = (differences[i] - differences[i - 1]) /
                       (squares[i] - squares[i - order]);
  result.coefficients.assign(terms, 0);
  for (unsigned i = terms; i-- > 0;) {
    for (unsigned power = terms - 1; power > 0; --power)
      result.coefficients[power] = result.coefficients[power - 1] -
                                   squares[i] * result.coefficients[power];
    result.coefficients[0] =
        differences[i] - squares[i] * result.coefficients[0];
  }
  return result;
}

/// The polynomial of `terms` terms that is right to `error` farthest from zero.
static TanhNearZero farthestOf(unsigned terms, double error) {
  constexpr double step = 1.0 / 128;
  TanhNearZero result;
  for (double bound = step; bound <= 1.5; bound += step) {
    TanhNearZero next = meetTanh(terms, bound);
    if (next.error() > error)
      break;
    result = std::move(next);
  }
  return result;
}

/// What a capped score may be off by where a kernel has sums of weights beside
/// its output, or an output of more bits than bf16; and elsewhere, where
/// weights are rounded by 1e-3, and so are outputs.
static constexpr double kError = 4e-5, kErrorBF16 = 5e-4;
/// Terms of the polynomials that a softmax caps by: each is an instruction a
/// score, and more of them reach farther.
static constexpr unsigned kTerms[] = {2, 3, 4, 5};
/// Where nothing shows a kernel's sums, weights far below a row's maximum may
/// be off by so much of the largest one: those of 100000 keys by less than
/// rounding one of them is.
static constexpr double kFarError = 4e-9;
/// Terms up to which a polynomial that serves lower scores, too, takes less
/// than the search for the smallest score and those up to it (docs/tuning.md).
static constexpr unsigned kTermsBelow = 3;
/// Columns of the accumulator up to which that was measured to win: 2 to 3 % at
/// 64, where scores are near the cap, and a loss of half a per cent at 128
/// where they are not (H200).
static constexpr int64_t kColumnsBelow = 64;
/// Caps that a softmax takes, at most: of larger ones the weight of the largest
/// score is so far from 1 that rounding it shows.
static constexpr double kLargestCap = 256;
/// Columns of the accumulator up to which the softmax caps: a product of more
/// takes so long beside a softmax that capping before it is hidden, too (H200,
/// docs/tuning.md).
static constexpr int64_t kColumns = 128;

/// cap * tanh(s * scale / cap) / s as a polynomial of s^2. Nullopt where a
/// coefficient may leave the range of an f32.
static std::optional<SoftcapNearZero>
softcapNearZero(const TanhNearZero &tanh, double scale, double cap) {
  SoftcapNearZero result{tanh.bound * cap / std::abs(scale), {}};
  double power = scale;
  for (double coefficient : tanh.coefficients) {
    result.coefficients.push_back(coefficient * power);
    power *= scale * scale / (cap * cap);
  }
  double last = std::abs(result.coefficients.back());
  if (!(last > 0x1p-100 && last < 0x1p100 && result.bound > 0x1p-50 &&
        result.bound < 0x1p50))
    return std::nullopt;
  return result;
}

/// Whether a polynomial of tanh serves scores below its bound, too: what
/// becomes of their weights, beside one of 1 for a score of zero or more.
static bool holdsBelow(const TanhNearZero &tanh, double cap) {
  // The last term outgrows the others within that many bounds.
  if (tanh.coefficients.back() < 0)
    return false;
  constexpr int steps = 256, bounds = 16;
  for (int i = 1; i <= steps * bounds; ++i) {
    double x = -tanh.bound * (1 + double(i) / steps);
    if (std::abs(std::exp(cap * tanh.at(x)) - std::exp(cap * std::tanh(x))) >
        kFarError)
      return false;
  }
  return true;
}

/// Whether a kernel has results of its softmax's sums beside the output, or an
/// output of more bits than bf16.
static bool showsSums(gpu::GPUFuncOp kernel) {
  return kernel
      .walk([](Operation *op) {
        bool shows = isa<PartialStoreOp>(op);
        if (auto finish = dyn_cast<SoftmaxFinishOp>(op))
          shows = !finish.getLse().use_empty();
        if (auto store = dyn_cast<FragmentStoreOp>(op))
          shows = !store.getFragment().getType().getElementType().isBF16();
        return shows ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The polynomials by which a softmax caps, each of more terms than the one
/// before, and for scores farther from zero.
static SmallVector<SoftcapNearZero> softcapTiers(const LaneContext &lower,
                                                 gpu::GPUFuncOp kernel,
                                                 double scale, double cap) {
  bool shows = showsSums(kernel),
       mayHold = !shows && lower.accumulatorColumns() <= kColumnsBelow;
  double error = (shows ? kError : kErrorBF16) / cap;
  SmallVector<SoftcapNearZero> tiers;
  for (unsigned terms : kTerms) {
    TanhNearZero tanh = farthestOf(terms, error);
    auto near = softcapNearZero(tanh, scale, cap);
    if (!near || !(tiers.empty() || near->bound > tiers.back().bound))
      continue;
    near->holdsBelow = mayHold && holdsBelow(tanh, cap);
    tiers.push_back(*near);
  }
  // Behind one that serves lower scores, too, nobody looks for these.
  auto below = llvm::find_if(
      tiers, [](const SoftcapNearZero &near) { return near.holdsBelow; });
  if (below == tiers.end() || below->coefficients.size() > kTermsBelow) {
    for (SoftcapNearZero &near : tiers)
      near.holdsBelow = false;
    return tiers;
  }
  tiers.erase(std::remove_if(
                  below, tiers.end(),
                  [](const SoftcapNearZero &near) { return !near.holdsBelow; }),
              tiers.end());
  return tiers;
}

/// Whether no row's bits may depend on other rows.
static bool isBatchInvariant(Operation *op) {
  auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
  ProblemAttr problem = ProblemAttr::of(kernel);
  auto invariant =
      problem ? problem.getField<BoolAttr>("batch_invariant") : BoolAttr();
  return invariant && invariant.getValue();
}

/// 1 / x by the approximate instruction.
static Value reciprocal(LaneContext &lower, Value x) {
  ImplicitLocOpBuilder &b = lower.builder();
  auto flags =
      arith::FastMathFlagsAttr::get(b.getContext(), arith::FastMathFlags::arcp);
  return arith::DivFOp::create(b, lower.f32(1), x, flags);
}

namespace {
class SharesOfCaps : public LaneState {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SharesOfCaps)
  llvm::DenseMap<Value, CappedShares> known;
};
} // namespace

const CappedShares *kvbuf::findShares(LaneContext &lower, Value scores) {
  auto &known = lower.ofKernel<SharesOfCaps>().known;
  auto it = known.find(scores);
  return it == known.end() ? nullptr : &it->second;
}

/// The finite number of f32's range that is nearest.
static double inRange(double x) {
  constexpr double most = std::numeric_limits<float>::max();
  return std::clamp(x, -most, most);
}

/// outer + gain / (exp(2 s inner) + 1) of each: with a gain of -2 cap and the
/// cap that is capped.
static Values capElements(LaneContext &lower, ArrayRef<Value> scores,
                          double inner, Value gain, Value outer) {
  ImplicitLocOpBuilder &b = lower.builder();
  // cap tanh x = cap - 2 cap / (exp(2 x) + 1), right to a few 1e-7 of the cap;
  // an instruction for tanh is off by 5e-4. Exponentials and reciprocals come
  // from the unit with the fewest lanes, so four scores share a reciprocal:
  // with r = 1 / (y z), 1 / y = r z and 1 / z = r y, where y and z are products
  // of two. Of more than 2^30 these might overflow; tanh is 1 long before. What
  // is no number stays so.
  constexpr double most = 30;
  Value factor = lower.f32(inRange(2 * std::numbers::log2e * inner)),
        limit = lower.f32(most), one = lower.f32(1);
  Values sums;
  for (Value score : scores) {
    Value x = mulf(b, score, factor);
    x = arith::MinimumFOp::create(b, x, limit);
    sums.push_back(addf(b, exp2(b, x), one));
  }
  // gain / (y z) of each pair of sums, and of one that is left alone.
  auto productAt = [&](size_t i) {
    return i + 1 < sums.size() ? mulf(b, sums[i], sums[i + 1]) : sums[i];
  };
  auto inverse = [&](Value x) { return mulf(b, reciprocal(lower, x), gain); };
  Values inverses;
  for (size_t i = 0; i < sums.size(); i += 4) {
    Value y = productAt(i);
    if (i + 2 >= sums.size()) {
      inverses.push_back(inverse(y));
      continue;
    }
    Value z = productAt(i + 2), r = inverse(mulf(b, y, z));
    inverses.push_back(mulf(b, r, z));
    inverses.push_back(mulf(b, r, y));
  }
  Values capped;
  for (size_t i = 0; i < sums.size(); i += 2) {
    Value r = inverses[i / 2];
    if (i + 1 == sums.size()) {
      capped.push_back(addf(b, r, outer));
      continue;
    }
    capped.push_back(fma(b, r, sums[i + 1], outer));
    capped.push_back(fma(b, r, sums[i], outer));
  }
  return capped;
}

/// Scores, as a soft cap makes them, right to a few 1e-7 of the cap.
static Values capToShareOfCap(LaneContext &lower, SoftcapOp op,
                              ArrayRef<Value> scores) {
  ImplicitLocOpBuilder &b = lower.builder();
  double scale = op.getScale().convertToFloat(),
         cap = op.getCap().convertToFloat();
  if (!lower.sharesReciprocals()) {
    // cap tanh x = cap - 2 cap / (exp(2 x) + 1), in as few instructions: what
    // is of whole vectors, chips do for two elements at once if they can.
    auto splat = [&](Value like, double number) -> Value {
      return arith::ConstantOp::create(
          b, DenseElementsAttr::get(
                 cast<VectorType>(like.getType()),
                 b.getF32FloatAttr(static_cast<float>(number)).getValue()));
    };
    auto each = [&](Value vector, auto of) {
      return lower
          .mapElements(vector,
                       [&](Value x, unsigned, int64_t) { return of(x); })
          .front();
    };
    // Those of large caps are chosen among with others.
    CappedShares shares{{}, -2 * cap, cap};
    Values capped;
    for (Value vector : scores) {
      Value x =
          mulf(b, vector,
               splat(vector, inRange(2 * std::numbers::log2e * scale / cap)));
      Value sum = addf(b, each(x, [&](Value y) { return exp2(b, y); }),
                       splat(vector, 1));
      Value inverse = each(sum, [&](Value y) { return reciprocal(lower, y); });
      shares.x.push_back(inverse);
      capped.push_back(
          fma(b, inverse, splat(vector, -2 * cap), splat(vector, cap)));
    }
    if (cap <= kLargestCap)
      lower.ofKernel<SharesOfCaps>().known[op.getResult()] = shares;
    return capped;
  }
  Values elements;
  for (Value vector : scores)
    for (int64_t reg = 0, e = cast<VectorType>(vector.getType()).getDimSize(0);
         reg < e; ++reg)
      elements.push_back(lower.element(vector, reg));
  Values capped = capElements(lower, elements, scale / cap, lower.f32(-2 * cap),
                              lower.f32(cap));
  size_t next = 0;
  return lower.mapElements(
      scores, [&](Value, unsigned, int64_t) { return capped[next++]; });
}

/// By what a score is multiplied to be capped: a polynomial of its square, of
/// these coefficients, lowest power first.
static Value capFactor(ImplicitLocOpBuilder &b, ArrayRef<Value> coefficients,
                       Value score) {
  Value square = mulf(b, score, score), factor = coefficients.back();
  for (Value coefficient : llvm::reverse(coefficients.drop_back()))
    factor = fma(b, factor, square, coefficient);
  return factor;
}

/// Scores, as a soft cap of any size makes them.
static Values capAnywhere(LaneContext &lower, SoftcapOp op,
                          ArrayRef<Value> scores) {
  Values capped = capToShareOfCap(lower, op, scores);
  double scale = op.getScale().convertToFloat(),
         cap = op.getCap().convertToFloat();
  if (cap <= kLargestCap)
    return capped;
  // Of a large cap a few 1e-7 show. Near zero a polynomial of the score's share
  // of the cap, which is in range where coefficients of scores are not.
  ImplicitLocOpBuilder &b = lower.builder();
  TanhNearZero tanh = tanhNearZero();
  Value share = lower.f32(inRange(scale / cap)), factor = lower.f32(scale),
        bound = lower.f32(tanh.bound);
  Values coefficients;
  for (double coefficient : tanh.coefficients)
    coefficients.push_back(lower.f32(coefficient));
  return lower.mapElements(
      scores, [&](Value s, unsigned index, int64_t reg) -> Value {
        Value x = mulf(b, s, share);
        Value near = mulf(b, mulf(b, s, factor), capFactor(b, coefficients, x));
        Value isNear = arith::CmpFOp::create(b, arith::CmpFPredicate::OLE,
                                             math::AbsFOp::create(b, x), bound);
        return arith::SelectOp::create(b, isNear, near,
                                       lower.element(capped[index], reg));
      });
}

/// Capped by a polynomial, for scores near zero; its coefficients, lowest power
/// first.
static Values capNearZero(LaneContext &lower, ArrayRef<double> coefficients,
                          ArrayRef<Value> scores) {
  ImplicitLocOpBuilder &b = lower.builder();
  Values constants;
  for (double coefficient : coefficients)
    constants.push_back(lower.f32(coefficient));
  return lower.mapElements(scores, [&](Value s, unsigned, int64_t) {
    return mulf(b, s, capFactor(b, constants, s));
  });
}

/// The lane's largest score by magnitude.
static Value largestMagnitude(LaneContext &lower, ArrayRef<Value> scores) {
  ImplicitLocOpBuilder &b = lower.builder();
  Values magnitudes;
  for (Value vector : scores)
    for (int64_t reg = 0, e = cast<VectorType>(vector.getType()).getDimSize(0);
         reg < e; ++reg)
      magnitudes.push_back(math::AbsFOp::create(b, lower.element(vector, reg)));
  return fold(2, magnitudes, [&](Value x, Value y) -> Value {
    return arith::MaxNumFOp::create(b, x, y);
  });
}

/// Caps scores, of which none of the lane is farther from zero than `largest`,
/// by the first of `reach` that reaches as far, each farther than the one
/// before, or else as those of any size: branches of the warp.
static Values capByBranch(LaneContext &lower, SoftcapOp op,
                          ArrayRef<SoftcapNearZero> reach,
                          ArrayRef<Value> scores, Value largest) {
  if (reach.empty())
    return capAnywhere(lower, op, scores);
  ImplicitLocOpBuilder &b = lower.builder();
  SmallVector<Type> types;
  for (Value vector : scores)
    types.push_back(vector.getType());
  Value far = arith::CmpFOp::create(b, arith::CmpFPredicate::UGT, largest,
                                    lower.f32(reach.front().bound));
  auto choose =
      scf::IfOp::create(b, types, LaneAnyOp::create(b, far).getResult(),
                        /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(choose.thenBlock());
  scf::YieldOp::create(
      b, capByBranch(lower, op, reach.drop_front(), scores, largest));
  b.setInsertionPointToEnd(choose.elseBlock());
  scf::YieldOp::create(b,
                       capNearZero(lower, reach.front().coefficients, scores));
  ValueRange results = choose.getResults();
  return Values(results.begin(), results.end());
}

/// The softmax that alone takes what the op caps, behind a mask or none, where
/// nobody sees by how little polynomials miss a capped score; null if there is
/// none.
static OnlineSoftmaxOp softmaxBehind(SoftcapOp op) {
  Value scores = op.getResult();
  if (scores.hasOneUse())
    if (auto mask = dyn_cast<MaskOp>(*scores.getUsers().begin()))
      scores = mask.getResult();
  auto softmax = scores.hasOneUse()
                     ? dyn_cast<OnlineSoftmaxOp>(*scores.getUsers().begin())
                     : OnlineSoftmaxOp();
  if (!softmax || softmax->getBlock() != op->getBlock() ||
      op.getCap().convertToFloat() > kLargestCap ||
      !(op.getScale().convertToFloat() > 0) ||
      !(softmax.getScale().convertToFloat() > 0))
    return nullptr;
  return softmax;
}

/// Whether such a softmax may cap scores by itself.
static bool mayCap(const LaneContext &lower, SoftcapOp op,
                   OnlineSoftmaxOp softmax) {
  // A maximum of scores is that of capped ones if these rise with them.
  // One that is told a maximum is told that of capped scores.
  return softmax.getScores() == op.getResult() && !softmax.getRowMax() &&
         lower.accumulatorColumns() <= kColumns;
}

namespace {
/// Caps scores on their way into a softmax: exponents in base 2, below the
/// rows' new maxima, in branches of the warp by how large its scores are.
class CapsInSoftmax {
public:
  CapsInSoftmax(LaneContext &lower, const CapInSoftmax &left,
                OnlineSoftmaxOp softmax, ArrayRef<Value> scores,
                ArrayRef<Value> max);
  CappedExponents emit();

private:
  Value bitsOf(Value x) {
    return arith::BitcastOp::create(b, b.getI32Type(), x);
  }
  Value withoutSign(Value bits) {
    return arith::AndIOp::create(
        b, bits, lower.i32(std::numeric_limits<int32_t>::max()));
  }
  /// Looks for the rows' extremes as integers, of which an instruction may take
  /// the largest of three; for the lowest scores where `lows`.
  void search(bool lows);
  /// The same, with lows where the polynomials that need them may serve.
  void findExtremes();
  Value halved(Value bits) {
    return arith::ShRUIOp::create(b, bits, lower.i32(1));
  }
  /// Half the bits of the warp's largest magnitude of a score, the same for all
  /// of its lanes; with `signs`, more than any where a row's maximum is
  /// negative.
  Value findLargest(bool signs);
  /// Whether the largest is beyond a bound. What is no number is.
  Value isBeyond(double bound) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, largest,
                                 halved(bitsOf(lower.f32(bound))));
  }
  /// The new maxima, of which `capOf` caps the rows' largest scores.
  void raise(llvm::function_ref<Value(Value)> capOf);
  /// The rows' largest scores of those of lanes.
  Values ofRows(ArrayRef<Value> lanes);
  void yield(Values exponents);
  /// What branches yield: by a polynomial near zero, and anywhere.
  void yieldNear(const SoftcapNearZero &near);
  void yieldFar();
  /// A branch of the warp for scores beyond a bound, and one for the others.
  ValueRange choose(Value beyond, llvm::function_ref<void()> far,
                    llvm::function_ref<void()> near);
  /// Of the polynomials from `tier` on the first that reaches as far as needed.
  void yieldFrom(size_t tier);
  /// The same with the largest scores of rows that are negative.
  void yieldExact(size_t tier);
  /// The first polynomials, which take largest scores as they were found.
  void yieldFirst(size_t tier);

  LaneContext &lower;
  ImplicitLocOpBuilder &b;
  ArrayRef<SoftcapNearZero> tiers;
  double scale, cap, unit;
  ArrayRef<Value> scores, max;
  const FragmentLayout &atom;
  int64_t cols, parts;
  unsigned chains;
  SmallVector<Values> rows;
  /// Of the lane's scores of each row, and of the row's.
  Values tops, rowTops;
  /// The bits of the lane's lowest score, if one is negative, without a sign;
  /// null where nobody looks for it.
  Value lowest;
  Values newMax, offsets;
  Value largest;
};
} // namespace

CapsInSoftmax::CapsInSoftmax(LaneContext &lower, const CapInSoftmax &left,
                             OnlineSoftmaxOp softmax, ArrayRef<Value> scores,
                             ArrayRef<Value> max)
    : lower(lower), b(lower.builder()), tiers(left.tiers),
      scale(SoftcapOp(left.op).getScale().convertToFloat()),
      cap(SoftcapOp(left.op).getCap().convertToFloat()),
      unit(softmax.getScale().convertToFloat() * std::numbers::log2e),
      scores(scores), max(max),
      atom(lower.layoutOf(SoftcapOp(left.op).getScores().getType())) {
  FragmentType type = SoftcapOp(left.op).getScores().getType();
  cols = atom.atomCols(type);
  parts = atom.rowParts().size();
  chains = foldChains(lower, type);
  rows = valuesByRow(lower, type, scores);
}

void CapsInSoftmax::search(bool lows) {
  // Signed ones have numbers that are not negative in their order, above all
  // others, so that the row's largest score comes out if it is not negative. Of
  // unsigned ones negative numbers are larger than others, and the larger the
  // lower they are: the row's smallest score, if one is negative.
  tops.clear();
  for (const Values &row : rows) {
    tops.push_back(largestOfBits(b, chains, row));
    if (!lows)
      continue;
    Values bits = llvm::map_to_vector(row, [&](Value x) { return bitsOf(x); });
    Value low = withoutSign(fold(chains, bits, [&](Value x, Value y) -> Value {
      return arith::MaxUIOp::create(b, x, y);
    }));
    lowest = lowest ? arith::MaxUIOp::create(b, lowest, low).getResult() : low;
  }
  largest = findLargest(/*signs=*/true);
  // Before the branch, so that lanes' answers come while it is decided.
  rowTops = ofRows(tops);
}

void CapsInSoftmax::findExtremes() {
  const SoftcapNearZero *below = llvm::find_if(
      tiers, [](const SoftcapNearZero &near) { return near.holdsBelow; });
  if (below == tiers.begin() || below == tiers.end())
    return search(/*lows=*/below == tiers.end());
  // Where scores were beyond the polynomials that need the smallest one, those
  // of this tile will be, too: it counts as if they were.
  const SoftcapNearZero &last = below[-1];
  double capped = 0;
  for (double coefficient : llvm::reverse(last.coefficients))
    capped = capped * last.bound * last.bound + coefficient;
  Value limit = lower.f32(capped * last.bound), beyond;
  for (Value row : max) {
    Value is = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, row, limit);
    beyond = beyond ? arith::OrIOp::create(b, beyond, is).getResult() : is;
  }
  SmallVector<Type> types(2, b.getI32Type());
  types.append(2 * rows.size(), b.getF32Type());
  auto choose =
      scf::IfOp::create(b, types, LaneAnyOp::create(b, beyond).getResult(),
                        /*addThenBlock=*/true, /*addElseBlock=*/true);
  auto yieldSearch = [&](bool lows) {
    search(lows);
    Values found{largest, lowest};
    llvm::append_range(found, tops);
    llvm::append_range(found, rowTops);
    scf::YieldOp::create(b, found);
  };
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(choose.thenBlock());
    // Half of it is beyond half the bound.
    lowest =
        arith::AddIOp::create(b, bitsOf(lower.f32(last.bound)), lower.i32(2));
    yieldSearch(/*lows=*/false);
    b.setInsertionPointToEnd(choose.elseBlock());
    lowest = nullptr;
    yieldSearch(/*lows=*/true);
  }
  ValueRange found = choose.getResults();
  largest = found[0];
  lowest = found[1];
  found = found.drop_front(2);
  tops.assign(found.begin(), found.begin() + rows.size());
  rowTops.assign(found.begin() + rows.size(), found.end());
}

Value CapsInSoftmax::findLargest(bool signs) {
  Value largest;
  auto add = [&](Value bits) {
    largest =
        largest ? arith::MaxUIOp::create(b, largest, bits).getResult() : bits;
  };
  // A lane's top is its lowest score where all are negative.
  for (Value top : tops)
    add(signs ? bitsOf(top) : withoutSign(bitsOf(top)));
  if (lowest)
    add(lowest);
  // Half of them, of which the largest as a signed integer is that of all.
  return gpu::SubgroupReduceOp::create(b, halved(largest),
                                       gpu::AllReduceOperation::MAXSI,
                                       /*uniform=*/true);
}

Values CapsInSoftmax::ofRows(ArrayRef<Value> lanes) {
  return llvm::map_to_vector(lanes, [&](Value top) {
    return lower.reduceLanes(atom, top, /*isMax=*/true);
  });
}

void CapsInSoftmax::raise(llvm::function_ref<Value(Value)> capOf) {
  newMax.clear();
  offsets.clear();
  for (auto [row, top] : llvm::enumerate(rowTops)) {
    newMax.push_back(arith::MaxNumFOp::create(
        b, max[row], mulf(b, capOf(top), lower.f32(1 / unit))));
    offsets.push_back(mulf(b, newMax.back(), lower.f32(-unit)));
  }
}

void CapsInSoftmax::yield(Values exponents) {
  llvm::append_range(exponents, newMax);
  scf::YieldOp::create(b, exponents);
}

void CapsInSoftmax::yieldNear(const SoftcapNearZero &near) {
  Values factors;
  for (double coefficient : near.coefficients)
    factors.push_back(lower.f32(coefficient * unit));
  raise([&](Value top) { return mulf(b, top, capFactor(b, factors, top)); });
  yield(lower.mapElements(scores, [&](Value s, unsigned index, int64_t reg) {
    return fma(b, s, capFactor(b, factors, s),
               offsets[index / cols * parts + atom.rowPart(reg)]);
  }));
}

void CapsInSoftmax::yieldFar() {
  Value gain = lower.f32(-2 * cap * unit), outer = lower.f32(cap * unit);
  raise([&](Value top) {
    return capElements(lower, {top}, scale / cap, gain, outer).front();
  });
  SmallVector<Values> exponents;
  for (auto [row, offset] : llvm::zip_equal(rows, offsets))
    exponents.push_back(
        capElements(lower, row, scale / cap, gain, addf(b, outer, offset)));
  SmallVector<size_t> next(rows.size());
  yield(lower.mapElements(scores, [&](Value, unsigned index, int64_t reg) {
    int64_t row = index / cols * parts + atom.rowPart(reg);
    return exponents[row][next[row]++];
  }));
}

ValueRange CapsInSoftmax::choose(Value beyond, llvm::function_ref<void()> far,
                                 llvm::function_ref<void()> near) {
  SmallVector<Type> types(ValueRange(scores).getTypes());
  types.append(rows.size(), b.getF32Type());
  auto branch = scf::IfOp::create(b, types, beyond, /*addThenBlock=*/true,
                                  /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(branch.thenBlock());
  far();
  b.setInsertionPointToEnd(branch.elseBlock());
  near();
  return branch.getResults();
}

void CapsInSoftmax::yieldFrom(size_t tier) {
  if (tier >= tiers.size())
    return yieldFar();
  scf::YieldOp::create(b, choose(
                              isBeyond(tiers[tier].bound),
                              [&] { yieldFrom(tier + 1); },
                              [&] { yieldNear(tiers[tier]); }));
}

void CapsInSoftmax::yieldExact(size_t tier) {
  // Rows that are negative may be near zero all the same.
  Value negative = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, largest,
                                         lower.i32(1 << 30));
  SmallVector<Type> types(rowTops.size(), b.getF32Type());
  types.push_back(b.getI32Type());
  auto exact = scf::IfOp::create(b, types, negative, /*addThenBlock=*/true,
                                 /*addElseBlock=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(exact.elseBlock());
    Values same(rowTops);
    same.push_back(largest);
    scf::YieldOp::create(b, same);
    b.setInsertionPointToEnd(exact.thenBlock());
    Values maxima;
    for (const Values &row : rows)
      maxima.push_back(fold(chains, row, [&](Value x, Value y) -> Value {
        return arith::MaxNumFOp::create(b, x, y);
      }));
    maxima = ofRows(maxima);
    maxima.push_back(findLargest(/*signs=*/false));
    scf::YieldOp::create(b, maxima);
  }
  Values inexact = rowTops;
  Value all = largest;
  rowTops.assign(exact.getResults().begin(),
                 std::prev(exact.getResults().end()));
  largest = exact.getResults().back();
  yieldFrom(tier);
  rowTops = inexact;
  largest = all;
}

void CapsInSoftmax::yieldFirst(size_t tier) {
  // The last polynomial is left to rows that are negative.
  constexpr size_t most = 2;
  if (tier + 1 >= tiers.size() || tier == most)
    return yieldExact(tier);
  scf::YieldOp::create(b, choose(
                              isBeyond(tiers[tier].bound),
                              [&] { yieldFirst(tier + 1); },
                              [&] { yieldNear(tiers[tier]); }));
}

CappedExponents CapsInSoftmax::emit() {
  findExtremes();
  ValueRange results = choose(
      isBeyond(tiers.front().bound), [&] { yieldFirst(1); },
      [&] { yieldNear(tiers.front()); });
  auto exponents = results.take_front(scores.size());
  auto maxima = results.drop_front(scores.size());
  return {Values(exponents.begin(), exponents.end()),
          Values(maxima.begin(), maxima.end())};
}

CappedExponents kvbuf::capInSoftmax(LaneContext &lower,
                                    const CapInSoftmax &left,
                                    OnlineSoftmaxOp softmax,
                                    ArrayRef<Value> scores,
                                    ArrayRef<Value> max) {
  return CapsInSoftmax(lower, left, softmax, scores, max).emit();
}

void kvbuf::lowerOp(LaneContext &lower, SoftcapOp op) {
  // A copy: new values move those that are kept.
  const Values scores = lower.lanesOf(op.getScores());
  double scale = op.getScale().convertToFloat(),
         cap = op.getCap().convertToFloat();
  auto near = softcapNearZero(tanhNearZero(), scale, cap);
  if (!near || !lower.branchesBesideProducts() || isBatchInvariant(op))
    return lower.setLanes(op.getResult(), capAnywhere(lower, op, scores));
  SmallVector<SoftcapNearZero> reach{*near}, tiers;
  if (OnlineSoftmaxOp softmax = softmaxBehind(op)) {
    tiers =
        softcapTiers(lower, op->getParentOfType<gpu::GPUFuncOp>(), scale, cap);
    if (!tiers.empty() && mayCap(lower, op, softmax)) {
      lower.ofKernel<SoftcapsInSoftmax>().leave(op.getResult()) = {op, tiers};
      return lower.setLanes(op.getResult(), scores);
    }
    // The shortest takes half the instructions, where nothing shows its error.
    if (!tiers.empty() && tiers.front().bound < near->bound &&
        !showsSums(op->getParentOfType<gpu::GPUFuncOp>()))
      reach.insert(reach.begin(), tiers.front());
  }
  auto farther = softcapNearZero(tanhFarther(), scale, cap);
  if (farther && farther->bound > near->bound)
    reach.push_back(*farther);
  lower.setLanes(op.getResult(), capByBranch(lower, op, reach, scores,
                                             largestMagnitude(lower, scores)));
}
