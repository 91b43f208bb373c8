//===- LaneSoftcapInSoftmax.cpp - Caps in a softmax -----------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Scores that a softmax caps on its way to exponents: in branches of the warp,
/// by the shortest polynomial that reaches as far as the scores do.
///
//===----------------------------------------------------------------------===//

#include "LaneArithmetic.h"
#include "LaneSoftcap.h"
#include <limits>
#include <numbers>

using namespace mlir;
using namespace kvbuf;

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
