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

#include "LaneArithmetic.h"
#include "LaneLowering.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <cmath>
#include <numbers>

using namespace mlir;
using namespace kvbuf;

static Value mulf(ImplicitLocOpBuilder &b, Value x, Value y) {
  return arith::MulFOp::create(b, x, y);
}
static Value addf(ImplicitLocOpBuilder &b, Value x, Value y) {
  return arith::AddFOp::create(b, x, y);
}
static Value fma(ImplicitLocOpBuilder &b, Value x, Value y, Value z) {
  return math::FmaOp::create(b, x, y, z);
}

/// tanh x / x for x up to a bound as a polynomial of x^2, lowest power first,
/// whose largest relative error is least (Remez's algorithm).
namespace {
struct TanhNearZero {
  double bound;
  ArrayRef<double> coefficients;

  /// The tanh that it gives, for any x > 0.
  double at(double x) const {
    double value = 0;
    for (double coefficient : llvm::reverse(coefficients))
      value = value * x * x + coefficient;
    return value * x;
  }
};
} // namespace

/// Off by 5.4e-7.
static constexpr double kFour[] = {0.9999994558, -0.3332631794, 0.1319029659,
                                   -0.04440222584};
static constexpr TanhNearZero kTanhNearZero{0.5, kFour};
/// For scores that this leaves over, and is still less than what any score
/// takes. Off by 6.5e-7.
static constexpr double kSix[] = {0.9999994139,  -0.3332904301,
                                  0.1328143733,  -0.05160575046,
                                  0.01674318939, -0.003067086622};
static constexpr TanhNearZero kTanhFarther{1.0, kSix};
/// For the softmax, to which each coefficient is an instruction a score. Off by
/// 4.3e-6: less of a capped score than what a log-sum-exp may be off by. The
/// last one is positive, so that below the bound this falls to -inf and does
/// not rise to +inf.
static constexpr double kThree[] = {0.9999957079, -0.3327806666, 0.1226475859};
static constexpr TanhNearZero kTanhInSoftmax{0.375, kThree};

/// What a weight may be wrong by, in parts of its row's largest, where a score
/// that the polynomial is not made for hides below the row's maximum. A million
/// such keys are wrong by 1e-4 together, as a log-sum-exp may be. Without one,
/// and with outputs of bf16, a hundred thousand may be wrong by 4e-4: a fifth
/// of what rounding an output adds. Caps of 30 and more have their smallest
/// scores left alone then, and otherwise those of 40.
static constexpr double kHiddenError = 1e-10, kHiddenErrorBF16 = 4e-9;
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

/// The least maximum of a row, as a score for `scale` > 0, with which weights
/// of scores below -bound are right to `error`, whether the polynomial caps
/// them or not. Nullopt if that is above 0: most rows would miss it.
static std::optional<double> leastMaximum(double scale, double cap,
                                          double error) {
  double bound = kTanhInSoftmax.bound, largest = 0;
  for (double x = bound; x < 20; x += 1.0 / 256)
    largest = std::max(largest, std::abs(std::exp(-cap * kTanhInSoftmax.at(x)) -
                                         std::exp(-cap * std::tanh(x))));
  // exp(capped - maximum) in error by `largest`, or as much as there is.
  double capped = std::log(largest) - std::log(error);
  if (capped > 0)
    return std::nullopt;
  return std::max(cap * std::atanh(std::max(capped / cap, -0.999)),
                  -bound * cap) /
         scale;
}

/// Whether no row's bits may depend on other rows.
static bool isBatchInvariant(Operation *op) {
  auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
  auto problem =
      kernel->getAttrOfType<DictionaryAttr>(KVBufferDialect::kProblemAttr);
  auto invariant =
      problem ? problem.getAs<BoolAttr>("batch_invariant") : BoolAttr();
  return invariant && invariant.getValue();
}

Value LaneLowering::reciprocal(Value x) {
  auto flags =
      arith::FastMathFlagsAttr::get(b.getContext(), arith::FastMathFlags::arcp);
  return arith::DivFOp::create(b, f32(1), x, flags);
}

Values LaneLowering::capAnywhere(SoftcapOp op, ArrayRef<Value> scores) {
  double scale = op.getScale().convertToFloat(),
         cap = op.getCap().convertToFloat();
  if (!machine.sharesReciprocals()) {
    Value inner = f32(scale / cap), outer = f32(cap);
    return mapElements(scores, [&](Value s, unsigned, int64_t) {
      return mulf(b, math::TanhOp::create(b, mulf(b, s, inner)), outer);
    });
  }
  // cap tanh x = cap - 2 cap / (exp(2 x) + 1), right to a few 1e-7 of the cap;
  // an instruction for tanh is off by 5e-4. Exponentials and reciprocals come
  // from the unit with the fewest lanes, so four scores share a reciprocal:
  // with r = 1 / (y z), 1 / y = r z and 1 / z = r y, where y and z are products
  // of two. Of more than 2^30 these might overflow; tanh is 1 long before. What
  // is no number stays so.
  constexpr double most = 30;
  Value inner = f32(2 * std::numbers::log2e * scale / cap), limit = f32(most),
        one = f32(1), outer = f32(cap), gain = f32(-2 * cap);
  Values sums;
  for (Value vector : scores)
    for (int64_t reg = 0, e = cast<VectorType>(vector.getType()).getDimSize(0);
         reg < e; ++reg) {
      Value x = mulf(b, element(vector, reg), inner);
      x = arith::MinimumFOp::create(b, x, limit);
      sums.push_back(addf(b, exp2(b, x), one));
    }
  // gain / (y z) of each pair of sums, and of one that is left alone.
  auto productAt = [&](size_t i) {
    return i + 1 < sums.size() ? mulf(b, sums[i], sums[i + 1]) : sums[i];
  };
  auto inverse = [&](Value x) { return mulf(b, reciprocal(x), gain); };
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
  size_t next = 0;
  return mapElements(scores,
                     [&](Value, unsigned, int64_t) { return capped[next++]; });
}

Value kvbuf::capFactor(ImplicitLocOpBuilder &b, ArrayRef<Value> coefficients,
                       Value score) {
  Value square = mulf(b, score, score), factor = coefficients.back();
  for (Value coefficient : llvm::reverse(coefficients.drop_back()))
    factor = fma(b, factor, square, coefficient);
  return factor;
}

Values LaneLowering::capNearZero(ArrayRef<double> coefficients,
                                 ArrayRef<Value> scores) {
  Values constants;
  for (double coefficient : coefficients)
    constants.push_back(f32(coefficient));
  return mapElements(scores, [&](Value s, unsigned, int64_t) {
    return mulf(b, s, capFactor(b, constants, s));
  });
}

Value LaneLowering::largestMagnitude(ArrayRef<Value> scores) {
  Values magnitudes;
  for (Value vector : scores)
    for (int64_t reg = 0, e = cast<VectorType>(vector.getType()).getDimSize(0);
         reg < e; ++reg)
      magnitudes.push_back(math::AbsFOp::create(b, element(vector, reg)));
  return fold(2, magnitudes, [&](Value x, Value y) -> Value {
    return arith::MaxNumFOp::create(b, x, y);
  });
}

Values LaneLowering::capByBranch(SoftcapOp op, const SoftcapNearZero &near,
                                 ArrayRef<Value> scores, Value largest) {
  SmallVector<Type> types;
  for (Value vector : scores)
    types.push_back(vector.getType());
  Value far = arith::CmpFOp::create(b, arith::CmpFPredicate::UGT, largest,
                                    f32(near.bound));
  auto choose =
      scf::IfOp::create(b, types, LaneAnyOp::create(b, far).getResult(),
                        /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(choose.thenBlock());
  auto farther = softcapNearZero(kTanhFarther, op.getScale().convertToFloat(),
                                 op.getCap().convertToFloat());
  bool more = farther && farther->bound > near.bound;
  scf::YieldOp::create(b, more ? capByBranch(op, *farther, scores, largest)
                               : capAnywhere(op, scores));
  b.setInsertionPointToEnd(choose.elseBlock());
  scf::YieldOp::create(b, capNearZero(near.coefficients, scores));
  ValueRange results = choose.getResults();
  return Values(results.begin(), results.end());
}

OnlineSoftmaxOp LaneLowering::softmaxThatCaps(SoftcapOp op) const {
  Value capped = op.getResult();
  auto softmax = capped.hasOneUse()
                     ? dyn_cast<OnlineSoftmaxOp>(*capped.getUsers().begin())
                     : OnlineSoftmaxOp();
  // A maximum of scores is that of capped ones if these rise with them.
  // One that is told a maximum is told that of capped scores.
  if (!softmax || softmax->getBlock() != op->getBlock() ||
      softmax.getRowMax() || accumulatorCols > kColumns ||
      op.getCap().convertToFloat() > kLargestCap ||
      !(op.getScale().convertToFloat() > 0) ||
      !(softmax.getScale().convertToFloat() > 0))
    return nullptr;
  return softmax;
}

void LaneLowering::leaveCapTo(OnlineSoftmaxOp softmax, SoftcapOp op,
                              const SoftcapNearZero &near,
                              const SoftcapNearZero &wider) {
  double scale = op.getScale().convertToFloat(),
         cap = op.getCap().convertToFloat(),
         unit = softmax.getScale().convertToFloat() * std::numbers::log2e;
  // A copy: new values move those that are kept.
  const Values scores = get(op.getScores());
  FragmentType type = op.getScores().getType();
  unsigned chains = foldChains(*this, type);
  std::optional<double> least = leastMaximum(
      scale, cap, showsSums(kernel) ? kHiddenError : kHiddenErrorBF16);
  SmallVector<Values> rows = valuesByRow(*this, type, scores);
  auto isOrdered = [&](arith::CmpFPredicate order, Value x, double bound) {
    return arith::CmpFOp::create(b, order, x, f32(bound)).getResult();
  };
  auto either = [&](Value x, Value y) -> Value {
    return x ? arith::OrIOp::create(b, x, y).getResult() : y;
  };
  // As integers, of which an instruction may take the largest of three.
  // Signed ones have numbers that are not negative in their order, above all
  // others, so that the row's largest score comes out if it is not negative. Of
  // unsigned ones negative numbers are larger than others, and the larger the
  // lower they are: the row's smallest score, if one is negative.
  auto bitsOf = [&](ArrayRef<Value> row) {
    Values bits;
    for (Value score : row)
      bits.push_back(arith::BitcastOp::create(b, b.getI32Type(), score));
    return bits;
  };
  auto lowest = [&](ArrayRef<Value> row) -> Value {
    Value low = fold(chains, bitsOf(row), [&](Value x, Value y) -> Value {
      return arith::MaxUIOp::create(b, x, y);
    });
    return arith::BitcastOp::create(b, b.getF32Type(), low);
  };
  Values tops, lows;
  Value outside;
  for (const Values &row : rows) {
    tops.push_back(largestOfBits(b, chains, row));
    Value top = arith::BitcastOp::create(b, b.getI32Type(), tops.back());
    // Negative ones, and what is no number, are above the bound, too.
    Value bound = arith::BitcastOp::create(b, b.getI32Type(), f32(near.bound));
    outside =
        either(outside,
               arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, top, bound));
    // What lies far below a row's maximum has no weight, capped or not, so that
    // the smallest score need not be known where the largest is not negative.
    if (least)
      continue;
    lows.push_back(lowest(row));
    outside = either(outside, isOrdered(arith::CmpFPredicate::ULT, lows.back(),
                                        -near.bound));
  }

  SmallVector<Type> types;
  for (Value value : scores)
    types.push_back(value.getType());
  types.append(tops.size() + near.coefficients.size(), b.getF32Type());
  // Scores, their maxima and the coefficients that they are capped with.
  auto yieldNear = [&](ArrayRef<Value> maxima) {
    Values results = scores;
    llvm::append_range(results, maxima);
    for (double coefficient : near.coefficients)
      results.push_back(f32(coefficient * unit));
    scf::YieldOp::create(b, results);
  };
  auto chooseBy = [&](Value far) {
    return scf::IfOp::create(b, types, LaneAnyOp::create(b, far).getResult(),
                             /*addThenBlock=*/true, /*addElseBlock=*/true);
  };
  auto choose = chooseBy(outside);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(choose.thenBlock());
    // Rows that are negative may be near zero all the same.
    Value negative;
    for (Value top : tops)
      negative =
          either(negative, isOrdered(arith::CmpFPredicate::ULT, top, 0.0));
    Values maxima(tops);
    SmallVector<Type> oneEach(tops.size(), b.getF32Type());
    auto exact = scf::IfOp::create(
        b, oneEach, LaneAnyOp::create(b, negative).getResult(),
        /*addThenBlock=*/true, /*addElseBlock=*/true);
    {
      OpBuilder::InsertionGuard inner(b);
      b.setInsertionPointToEnd(exact.elseBlock());
      scf::YieldOp::create(b, tops);
      b.setInsertionPointToEnd(exact.thenBlock());
      for (auto [index, row] : llvm::enumerate(rows))
        maxima[index] = fold(chains, row, [&](Value x, Value y) -> Value {
          return arith::MaxNumFOp::create(b, x, y);
        });
      scf::YieldOp::create(b, maxima);
    }
    maxima.assign(exact.getResults().begin(), exact.getResults().end());
    Value far;
    for (auto [index, max] : llvm::enumerate(maxima)) {
      Value low = least ? max : lows[index];
      far = either(far, isOrdered(arith::CmpFPredicate::UGT, max, near.bound));
      far = either(far, isOrdered(arith::CmpFPredicate::ULT, low,
                                  least.value_or(-near.bound)));
    }
    auto again = chooseBy(far);
    scf::YieldOp::create(b, again.getResults());
    // Capped here, with their maxima; the polynomial then only scales them.
    b.setInsertionPointToEnd(again.thenBlock());
    Values all = scores;
    auto vector = VectorType::get({int64_t(maxima.size())}, b.getF32Type());
    all.push_back(vector::FromElementsOp::create(b, vector, maxima));
    Values magnitudes;
    for (auto [index, row] : llvm::enumerate(rows)) {
      magnitudes.push_back(maxima[index]);
      Value low = least ? lowest(row) : lows[index];
      magnitudes.push_back(arith::NegFOp::create(b, low));
    }
    Value largest = fold(1, magnitudes, [&](Value x, Value y) -> Value {
      return arith::MaxNumFOp::create(b, x, y);
    });
    Values results = capByBranch(op, wider, all, largest);
    Value capped = results.pop_back_val();
    for (size_t row = 0; row < maxima.size(); ++row)
      results.push_back(element(capped, row));
    results.push_back(f32(unit));
    results.append(near.coefficients.size() - 1, f32(0));
    scf::YieldOp::create(b, results);
    b.setInsertionPointToEnd(again.elseBlock());
    yieldNear(maxima);

    b.setInsertionPointToEnd(choose.elseBlock());
    yieldNear(tops);
  }
  ValueRange results = choose.getResults();
  auto take = [&](size_t count) {
    ValueRange part = results.take_front(count);
    results = results.drop_front(count);
    return Values(part.begin(), part.end());
  };
  set(op.getResult(), take(scores.size()));
  CapInSoftmax &kept = softcaps.leave(op.getResult());
  kept.maxima = take(tops.size());
  kept.coefficients = take(near.coefficients.size());
}

void LaneLowering::lower(SoftcapOp op) {
  // A copy: new values move those that are kept.
  const Values scores = get(op.getScores());
  double scale = op.getScale().convertToFloat(),
         cap = op.getCap().convertToFloat();
  auto near = softcapNearZero(kTanhNearZero, scale, cap),
       inSoftmax = softcapNearZero(kTanhInSoftmax, scale, cap);
  if (!near || !inSoftmax || !machine.branchesBesideProducts() ||
      isBatchInvariant(op))
    return set(op.getResult(), capAnywhere(op, scores));
  if (OnlineSoftmaxOp softmax = softmaxThatCaps(op))
    return leaveCapTo(softmax, op, *inSoftmax, *near);
  set(op.getResult(), capByBranch(op, *near, scores, largestMagnitude(scores)));
}
