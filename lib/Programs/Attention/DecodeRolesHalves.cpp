//===- DecodeRolesHalves.cpp - The teams of O's columns -------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What a team that has half of O's columns does with a piece of a sequence:
/// products of weights and values, and their end, which is stored, traded with
/// the other block of a pair, or joined with what others have stored.
///
//===----------------------------------------------------------------------===//

#include "DecodeRoles.h"
#include "TileProgram.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::role;

void DecodeProgram::computeHalf(const Roles &roles, const RolePiece &own,
                                unsigned half) {
  int64_t BM = schedule.getBM();
  bool late = roles.isLate(half);
  const RolePart &part = roles.parts[half];
  Value zero = constant(0), one = constant(1);
  auto take = [&](Value i, int64_t after) -> Value {
    return QueueTakeOp::create(b, roles.factors[half],
                               own.entry(b, late, i, after))
        .getResult(0);
  };
  // The factor of a tile comes with the next one's scores.
  if (late)
    take(zero, 0);
  // A slot of both halves both give back, whoever reads it.
  auto passBy = [&](const RolePart &other, Value number) {
    RingWaitOp::create(b, other.ring, number);
    RingReleaseOp::create(b, other.ring, number);
  };
  const RolePart &other = roles.parts[1 - half];
  bool shares = roles.sharesSlots;
  for (unsigned some : {0, 1})
    if (const RolePart &of = roles.parts[some];
        of.hasQueries() && (shares || some == half))
      passBy(of, own.ofQueries(b, of));
  constexpr int64_t cols = LatentRoles::kProductCols;
  int64_t many = part.cols / cols;
  SmallVector<Value> none(
      many, fill(fragment(BM, cols, b.getF32Type(), Role::Acc), 0.0f));
  auto loop = scf::ForOp::create(b, zero, own.count, one, none);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value i = loop.getInductionVar(), number = own.filling(b, part, i);
    if (shares && half == 1)
      passBy(other, own.filling(b, other, i));
    Value staged = RingWaitOp::create(b, part.ring, number);
    if (shares && half == 0)
      passBy(other, own.filling(b, other, i));
    Value factor = take(i, late);
    SmallVector<Value> scaled, products, results;
    for (Value acc : loop.getRegionIterArgs())
      scaled.push_back(RescaleOp::create(b, acc, factor));
    auto pending = PendingType::get(b.getContext(), BM, cols, b.getF32Type());
    products = scaled;
    SmallVector<Value> ofWeights;
    for (int64_t n = 0, parts = roles.sizes.weightParts; n < parts; ++n) {
      int64_t keys = schedule.getBN() / parts;
      ofWeights.push_back(own.number(b, i, 0, n, parts));
      Value p = RingWaitOp::create(b, roles.weights, ofWeights.back());
      for (int64_t k = 0; k < many; ++k)
        products[k] = MmaStartOp::create(
            b, pending, p, partOf(b, staged, n * keys, keys, k * cols, cols),
            products[k], /*transpose_b=*/false);
    }
    for (int64_t n = 0; n < many; ++n)
      results.push_back(MmaWaitOp::create(b, products[n], many - 1 - n));
    RingReleaseOp::create(b, part.ring, number);
    for (Value number : ofWeights)
      RingReleaseOp::create(b, roles.weights, number);
    scf::YieldOp::create(b, results);
  }
  Value max = take(own.count, late), sum = take(own.count, late + 1);
  storeHalf(roles, own, half, loop.getResults(), max, sum);
}

Value DecodeProgram::sliceOf(ValueRange accs, int64_t slice) {
  int64_t cols = cast<FragmentType>(accs.front().getType()).getCols(),
          col = slice * sliceCols;
  Value acc = accs[col / cols];
  if (cols > sliceCols)
    acc = FragmentSliceOp::create(b, sliceType, acc, /*row=*/0,
                                  /*col=*/col % cols);
  return acc;
}

void DecodeProgram::tradeHalf(const Roles &roles, ValueRange accs, Value max,
                              Value sum) {
  // The first block keeps the first slices, the other one the last ones: both
  // run the same code, which neither has run before.
  int64_t kept = ownSlices / 2;
  Value slot = constant(firstSlice / ownSlices);
  Value rank = arith::RemUIOp::create(b, block, constant(2));
  Value isFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, rank, constant(0));
  auto turned = scf::IfOp::create(b, SmallVector<Type>(ownSlices, sliceType),
                                  isFirst, /*withElseRegion=*/true);
  for (int64_t from : {int64_t(0), kept}) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(from ? turned.elseBlock() : turned.thenBlock());
    SmallVector<Value> slices;
    for (int64_t i = 0; i < ownSlices; ++i)
      slices.push_back(sliceOf(accs, (from + i) % ownSlices));
    scf::YieldOp::create(b, slices);
  }
  ValueRange own = turned.getResults();
  Value first = arith::SelectOp::create(b, isFirst, constant(firstSlice),
                                        constant(firstSlice + kept));
  SmallVector<Value> given(own.drop_front(kept));
  given.append({max, sum});
  ShelfPutOp::create(b, given, roles.traded, slot);
  // Each slice is got when it is joined: there are no registers for all.
  Value otherMax, otherSum;
  for (int64_t i = 0; i < kept; ++i) {
    ValueRange others = ShelfGetOp::create(b, roles.traded, slot).getValues();
    if (i == 0) {
      otherMax = others[kept];
      otherSum = others[kept + 1];
    }
    finish(merge({own[i], max, sum}, {others[i], otherMax, otherSum}),
           arith::AddIOp::create(b, first, constant(i)));
  }
}

void DecodeProgram::joinParked(const Roles &roles, const Piece &piece,
                               ValueRange accs, Value max, Value sum) {
  // Where the others are parked, a lane has registers for two slices beside the
  // first one, and when that is joined for the rest.
  constexpr int64_t atOnce = 2;
  SmallVector<DecodeState> others;
  auto load = [&](int64_t upto) {
    while (int64_t(others.size()) < std::min(upto, ownSlices))
      others.push_back(
          loadStored(piece, constant(firstSlice + int64_t(others.size()))));
  };
  load(roles.parked ? atOnce : 1);
  Value slot = constant(firstSlice / ownSlices);
  for (int64_t i = 0; i < ownSlices; ++i) {
    Value acc = i > 0 && roles.parked
                    ? ShelfGetOp::create(b, roles.parked, slot).getResult(i - 1)
                    : sliceOf(accs, i);
    finish(mergeStored({acc, max, sum}, others[i]), constant(firstSlice + i));
    load(roles.parked ? ownSlices : i + 2);
  }
}

void DecodeProgram::storeHalf(const Roles &roles, const RolePiece &own,
                              unsigned half, ValueRange accs, Value max,
                              Value sum) {
  int64_t cols = cast<FragmentType>(accs.front().getType()).getCols();
  Value one = constant(1);
  Value alone =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, own.piece.count, one);
  Value place = arith::AddIOp::create(b, own.piece.base, own.piece.number);
  ownSlices = int64_t(accs.size()) * cols / sliceCols;
  firstSlice = half * ownSlices;
  auto forOwn = [&](function_ref<void(DecodeState, Value)> then) {
    for (int64_t slice = 0; slice < ownSlices; ++slice)
      then({sliceOf(accs, slice), max, sum}, constant(firstSlice + slice));
  };
  auto byMemory = [&] {
    auto stored = [&] {
      forOwn([&](DecodeState state, Value slice) {
        store(state, 0, place, slice);
      });
      join(own.piece);
    };
    // Beside a trade a lane has no registers for it (ptxas, 64 heads: 3476
    // bytes spilled for 704).
    if (!own.piece.isAwaited || own.isPair)
      return stored();
    // Of two pieces the first is its block's last, and most often the second
    // has long been stored, as its block had it first.
    auto park = [&] {
      if (!roles.parked)
        return;
      SmallVector<Value> slices;
      for (int64_t slice = 1; slice < ownSlices; ++slice)
        slices.push_back(sliceOf(accs, slice));
      ShelfPutOp::create(b, slices, roles.parked,
                         constant(firstSlice / ownSlices));
    };
    choose(
        arriveBehind(own.piece, park),
        [&] { joinParked(roles, own.piece, accs, max, sum); }, stored);
  };
  choose(
      alone,
      [&] {
        forOwn([&](DecodeState state, Value slice) { finish(state, slice); });
      },
      [&] {
        if (!own.isPair)
          return byMemory();
        choose(own.isPair, [&] { tradeHalf(roles, accs, max, sum); }, byMemory);
      });
}

Value DecodeProgram::isPair(const Shares &shares, const Piece &piece,
                            Value start, Value stop) {
  Value two = constant(2);
  auto equal = [&](Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, x, y);
  };
  auto both = [&](Value x, Value y) -> Value {
    return arith::AndIOp::create(b, x, y);
  };
  // The first of them has the sequence's first unit, which is its share's, and
  // the second one's share ends with the sequence. Both compute the same.
  Value first = arith::SubIOp::create(b, block, piece.number);
  Value from = arith::MulIOp::create(b, first, shares.size);
  Value upto = arith::AddIOp::create(
      b, from, arith::MulIOp::create(b, shares.size, two).getResult());
  Value isFirst =
      equal(arith::RemUIOp::create(b, first, two).getResult(), constant(0));
  Value isPair = both(both(equal(piece.count, two), isFirst),
                      both(equal(from, start), equal(upto, stop)));
  if (!shares.isPaired)
    return isPair;
  // Not where other blocks even each other out.
  return both(isPair, equal(shares.keep, constant(0)));
}
