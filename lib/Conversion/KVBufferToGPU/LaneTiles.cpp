//===- LaneTiles.cpp - Tiles of ragged batches by their numbers -*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaneTiles.h"
#include "LaneArithmetic.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace kvbuf;

void kvbuf::lowerOp(LaneContext &lower, LaunchSizeOp op) {
  lower.setLanes(op.getSize(), {lower.launchSize(op.getName())});
}

/// Entry `i` of the offsets of a ragged batch of `most` rows: the nearest
/// number from `least` to `most`. All are 32-bit integers.
static Value emitOffset(LaneContext &lower, const TensorArg &offsets, Value i,
                        Value least, Value most) {
  ImplicitLocOpBuilder &b = lower.builder();
  Value row = memref::LoadOp::create(b, lower.flat(offsets.data),
                                     ValueRange{lower.toIndex(i)});
  bool wide = !row.getType().isInteger(32);
  if (wide) {
    least = arith::ExtSIOp::create(b, row.getType(), least);
    most = arith::ExtSIOp::create(b, row.getType(), most);
  }
  row = arith::MaxSIOp::create(b, row, least);
  row = arith::MinSIOp::create(b, row, most);
  return wide ? arith::TruncIOp::create(b, b.getI32Type(), row).getResult()
              : row;
}

LogicalResult kvbuf::lowerOp(LaneContext &lower, FindTileOp op) {
  ImplicitLocOpBuilder &b = lower.builder();
  const TensorArg *tensor = lower.findTensor(op.getOffsets());
  if (!tensor)
    return op.emitOpError() << "reads offsets that are not an argument";
  Value number = lower.toI32(lower.single(op.getNumber())), one = lower.i32(1),
        bm = lower.i32(op.getBM());
  Value rows = lower.toI32(lower.single(op.getRows()));
  auto offset = [&](Value i, Value least) {
    return emitOffset(lower, *tensor, i, least, rows);
  };
  Value numbers, place;
  if (op.getNumbers()) {
    numbers = lower.flat(lower.tensorOf(op.getNumbers()).data);
    place = lower.offsetOf(op.getNumbers(), op.getODSOperands(5));
  }
  auto firstNumber = [&](Value sequence) -> Value {
    if (numbers)
      return memref::LoadOp::create(
          b, numbers, ValueRange{add(b, place, lower.toIndex(sequence))});
    return arith::AddIOp::create(
        b,
        arith::DivUIOp::create(b, offset(sequence, lower.i32(0)), bm)
            .getResult(),
        sequence);
  };
  Value sequences = lower.toI32(lower.single(op.getSequences()));
  auto notAbove = [&](Value sequence) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::sle,
                                 firstNumber(sequence), number);
  };
  // The sequence is one of those from `low` to `high`, excluded. The lanes of a
  // warp look at one each, evenly apart; where one lane runs, it halves them.
  bool alone = lower.isAlone();
  Type type = b.getI32Type();
  SmallVector<Type> types{type, type};
  SmallVector<Location> locs(2, op.getLoc());
  auto loop =
      scf::WhileOp::create(b, types, ValueRange{lower.i32(0), sequences});
  {
    OpBuilder::InsertionGuard guard(b);
    Block *before = b.createBlock(&loop.getBefore(), {}, types, locs);
    Value size = arith::SubIOp::create(b, before->getArgument(1),
                                       before->getArgument(0));
    Value more = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, size, one);
    scf::ConditionOp::create(b, more, before->getArguments());
    Block *after = b.createBlock(&loop.getAfter(), {}, types, locs);
    Value low = after->getArgument(0), high = after->getArgument(1);
    if (alone) {
      Value middle = arith::ShRUIOp::create(
          b, arith::AddIOp::create(b, low, high).getResult(), one);
      Value isAfter = notAbove(middle);
      scf::YieldOp::create(
          b, ValueRange{arith::SelectOp::create(b, isAfter, middle, low),
                        arith::SelectOp::create(b, isAfter, high, middle)});
    } else {
      Value step = arith::CeilDivUIOp::create(
          b, arith::SubIOp::create(b, high, low).getResult(),
          lower.i32(lower.chip().waveSize));
      Value mine = arith::AddIOp::create(
          b, low,
          arith::MulIOp::create(b, lower.laneInWarp(), step).getResult());
      Value last = arith::SubIOp::create(b, high, one);
      Value inside =
          arith::CmpIOp::create(b, arith::CmpIPredicate::sle, mine, last);
      Value found = arith::AndIOp::create(
          b, inside, notAbove(arith::MinSIOp::create(b, mine, last)));
      // The first one counts whatever its offset is.
      Value past = arith::SubIOp::create(
          b,
          arith::MaxSIOp::create(
              b, LaneCountOp::create(b, b.getI32Type(), found).getResult(), one)
              .getResult(),
          one);
      Value from = arith::AddIOp::create(
          b, low, arith::MulIOp::create(b, past, step).getResult());
      scf::YieldOp::create(
          b,
          ValueRange{from, arith::MinSIOp::create(
                               b, arith::AddIOp::create(b, from, step), high)});
    }
  }
  Value sequence = loop.getResult(0);
  Value tile = arith::SubIOp::create(b, number, firstNumber(sequence));
  if (op.getFromEnd()) {
    Value start = offset(sequence, lower.i32(0));
    Value end = offset(arith::AddIOp::create(b, sequence, one), start);
    Value length = arith::SubIOp::create(b, end, start);
    Value last = arith::SubIOp::create(
        b, arith::CeilDivUIOp::create(b, length, bm).getResult(), one);
    Value isTile =
        arith::CmpIOp::create(b, arith::CmpIPredicate::sle, tile, last);
    tile = arith::SelectOp::create(
        b, isTile, arith::SubIOp::create(b, last, tile).getResult(), tile);
  }
  lower.setLanes(op.getSequence(), {lower.toIndex(sequence)});
  lower.setLanes(op.getTile(), {lower.toIndex(tile)});
  return success();
}

LogicalResult kvbuf::lowerOp(LaneContext &lower, NumberTilesOp op) {
  ImplicitLocOpBuilder &b = lower.builder();
  const TensorArg *tensor = lower.findTensor(op.getOffsets());
  if (!tensor)
    return op.emitOpError() << "reads offsets that are not an argument";
  Value zero = lower.i32(0), one = lower.i32(1),
        wave = lower.i32(lower.chip().waveSize);
  Value sequences = lower.toI32(lower.single(op.getSequences()));
  Value numbers = lower.flat(lower.tensorOf(op.getNumbers()).data);
  Value place = lower.offsetOf(op.getNumbers(), op.getODSOperands(4));
  Value most = lower.toI32(lower.single(op.getRows()));
  // Every warp looks at all sequences, each lane at some neighbouring ones: the
  // lanes' loads are in flight together, and those of a lane's next sequences
  // are of the same lines.
  Value each = arith::CeilDivUIOp::create(b, sequences, wave);
  Value from = arith::MinSIOp::create(
      b, arith::MulIOp::create(b, lower.laneInWarp(), each).getResult(),
      sequences);
  Value upto = arith::MinSIOp::create(
      b, arith::AddIOp::create(b, from, each).getResult(), sequences);
  auto tilesOf = [&](Value sequence) -> Value {
    Value next = arith::AddIOp::create(b, sequence, one);
    Value start = emitOffset(lower, *tensor, sequence, zero, most);
    Value end = emitOffset(lower, *tensor, next, start, most);
    Value rows = arith::SubIOp::create(b, end, start);
    Value tiles = arith::CeilDivUIOp::create(b, rows, lower.i32(op.getBM()));
    if (!op.getOver())
      return tiles;
    Value isLong = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, rows,
                                         lower.i32(op.getOver()));
    return arith::SelectOp::create(b, isLong, tiles, zero);
  };
  // Calls `visit` with each of the lane's sequences and the tiles before it.
  auto forOwn = [&](Value before, function_ref<void(Value, Value)> visit) {
    auto loop = scf::ForOp::create(b, from, upto, one, ValueRange{before});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value sofar = loop.getRegionIterArg(0);
    visit(loop.getInductionVar(), sofar);
    Value next =
        arith::AddIOp::create(b, sofar, tilesOf(loop.getInductionVar()));
    scf::YieldOp::create(b, next);
    return loop.getResult(0);
  };
  Value own = forOwn(zero, [](Value, Value) {});
  // Tiles of the lanes before this one, and of all.
  Value before = zero, all = own;
  for (int64_t bit = 1; bit < lower.chip().waveSize; bit *= 2) {
    Value others = gpu::ShuffleOp::create(b, all, lower.i32(bit), wave,
                                          gpu::ShuffleMode::XOR)
                       .getShuffleResult();
    Value isAfter = arith::CmpIOp::create(
        b, arith::CmpIPredicate::ne,
        arith::AndIOp::create(b, lower.laneInWarp(), lower.i32(bit))
            .getResult(),
        zero);
    before = arith::AddIOp::create(
        b, before,
        arith::SelectOp::create(b, isAfter, others, zero).getResult());
    all = arith::AddIOp::create(b, all, others);
  }
  Value isFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lower.ownWarp(), zero);
  auto write = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(write.thenBlock());
    (void)forOwn(before, [&](Value sequence, Value sofar) {
      memref::StoreOp::create(
          b, sofar, numbers,
          ValueRange{add(b, place, lower.toIndex(sequence))});
    });
  }
  gpu::BarrierOp::create(b);
  lower.setLanes(op.getTiles(), {lower.toIndex(lower.uniform(all))});
  return success();
}
