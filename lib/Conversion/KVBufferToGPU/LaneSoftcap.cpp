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
#include <limits>
#include <numbers>

using namespace mlir;
using namespace kvbuf;

/// Caps that a softmax takes, at most: of larger ones the weight of the largest
/// score is so far from 1 that rounding it shows.
static constexpr double kLargestCap = 256;
/// Columns of the accumulator up to which the softmax caps: a product of more
/// takes so long beside a softmax that capping before it is hidden, too (H200,
/// docs/tuning.md).
static constexpr int64_t kColumns = 128;

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

Values kvbuf::capElements(LaneContext &lower, ArrayRef<Value> scores,
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

Value kvbuf::capFactor(ImplicitLocOpBuilder &b, ArrayRef<Value> coefficients,
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
    bool shows = showsSums(op->getParentOfType<gpu::GPUFuncOp>());
    tiers = softcapTiers(scale, cap, shows, lower.accumulatorColumns());
    if (!tiers.empty() && mayCap(lower, op, softmax)) {
      lower.ofKernel<SoftcapsInSoftmax>().leave(op.getResult()) = {op, tiers};
      return lower.setLanes(op.getResult(), scores);
    }
    // The shortest takes half the instructions, where nothing shows its error.
    if (!tiers.empty() && tiers.front().bound < near->bound && !shows)
      reach.insert(reach.begin(), tiers.front());
  }
  auto farther = softcapNearZero(tanhFarther(), scale, cap);
  if (farther && farther->bound > near->bound)
    reach.push_back(*farther);
  lower.setLanes(op.getResult(), capByBranch(lower, op, reach, scores,
                                             largestMagnitude(lower, scores)));
}
