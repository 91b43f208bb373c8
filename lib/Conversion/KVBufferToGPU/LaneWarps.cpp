//===- LaneWarps.cpp - Rows whose columns several warps share ---*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A layout with a grid of warps (`warps = [rows, columns]`) gives the columns
/// of a row to several of them. What one needs of the others goes through LDS:
/// everybody writes, all meet, everybody reads. Each op has LDS of its own, so
/// nothing is written there again before its readers are through but in a loop.
/// There all meet once more after they have read, unless something else in the
/// loop's body has them meet.
///
/// The lanes of the same number in warps of one row of the grid hold the same
/// rows. So a reduction needs no layout: a lane's values lie side by side,
/// those of a warp's lanes after each other, and no bank is met twice.
///
/// An exchange writes the fragment as it is, row by row. Rows begin 16 bytes
/// after a multiple of what they hold, so that those of a column do not all lie
/// in one bank.
///
//===----------------------------------------------------------------------===//

#include "LaneWarps.h"
#include "LaneArithmetic.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

/// The bytes that a lane moves at once, at most.
static constexpr int64_t kPieceBytes = 16;

/// Whether all warps that share a fragment's columns meet in the lowering of an
/// op, whatever the path to it.
static bool meets(Operation *op) {
  auto isShared = [](FragmentType type) {
    auto mma = dyn_cast_or_null<MmaLayoutAttr>(type.getLayout());
    return mma && mma.getWarpCols() > 1;
  };
  if (auto exchange = dyn_cast<ExchangeOp>(op))
    return isShared(exchange.getFragment().getType());
  if (auto reduce = dyn_cast<RowReduceOp>(op))
    return isShared(reduce.getSource().getType());
  return isa<LdsStageOp, MeetOp>(op);
}

/// Meets before LDS that was read is written again: the next time that a loop
/// comes to `op`.
static void meetInLoops(LaneContext &lanes, Operation *op) {
  auto isLoop = [](Operation *parent) {
    return isa<LoopLikeOpInterface>(parent);
  };
  Operation *parent = op->getParentOp();
  // What else meets in every iteration comes between this one's reads and the
  // next one's writes.
  if (isLoop(parent) && llvm::any_of(*op->getBlock(), [&](Operation &other) {
        return &other != op && meets(&other);
      }))
    return;
  while (parent && !isLoop(parent) && !isa<gpu::GPUFuncOp>(parent))
    parent = parent->getParentOp();
  if (parent && isLoop(parent))
    lanes.meet();
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

Values kvbuf::reduceWarps(Lanes &lanes, Operation *op,
                          const FragmentLayout &layout, ArrayRef<Value> values,
                          bool isMax) {
  ImplicitLocOpBuilder &b = lanes.b;
  constexpr int64_t kBytes = 4;
  int64_t wave = lanes.target.waveSize, threads = lanes.threads();
  Value base = lanes.scratch(kBytes * threads * values.size());
  Value lds = lanes.shared(b.getF32Type());
  // Pieces of a lane's values that move together: the first one and how many.
  SmallVector<std::pair<int64_t, int64_t>> pieces;
  for (int64_t first = 0, end = values.size(); first < end;) {
    int64_t count =
        llvm::bit_floor(uint64_t(std::min(kPieceBytes / kBytes, end - first)));
    pieces.push_back({first, count});
    first += count;
  }
  auto place = [&](Value ofThread, std::pair<int64_t, int64_t> piece) {
    auto [first, count] = piece;
    Value at = arith::AddIOp::create(
        b, arith::MulIOp::create(b, ofThread, lanes.i32(kBytes * count)),
        lanes.i32(kBytes * first * threads));
    return lanes.wordIndex(base, at);
  };
  auto typeOf = [&](int64_t count) {
    return VectorType::get({count}, b.getF32Type());
  };
  for (auto piece : pieces) {
    auto [first, count] = piece;
    Value vector = vector::FromElementsOp::create(b, typeOf(count),
                                                  values.slice(first, count));
    vector::StoreOp::create(b, vector, lds,
                            ValueRange{place(lanes.thread, piece)},
                            /*nontemporal=*/false, llvm::Align(kBytes * count));
  }
  lanes.machine.emitMeet(lanes);
  Values results(values.size());
  Value first = arith::AddIOp::create(
      b, lanes.lane,
      arith::MulIOp::create(b, lanes.rowPart(layout), lanes.i32(wave)));
  for (int64_t col = 0; col < layout.gridCols; ++col) {
    Value other = arith::AddIOp::create(
        b, first, lanes.i32(col * layout.gridRows * wave));
    for (auto piece : pieces) {
      auto [start, count] = piece;
      Value vector = vector::LoadOp::create(
          b, typeOf(count), lds, ValueRange{place(other, piece)},
          /*nontemporal=*/false, llvm::Align(kBytes * count));
      for (int64_t i = 0; i < count; ++i) {
        Value value = lanes.element(vector, i), &result = results[start + i];
        if (!result)
          result = value;
        else if (isMax)
          result = arith::MaxNumFOp::create(b, result, value);
        else
          result = arith::AddFOp::create(b, result, value);
      }
    }
  }
  meetInLoops(lanes, op);
  return results;
}

void kvbuf::lowerOp(LaneContext &lanes, RowReduceOp op) {
  ImplicitLocOpBuilder &b = lanes.builder();
  FragmentType type = op.getSource().getType();
  const FragmentLayout &layout = lanes.layoutOf(type);
  bool isMax = op.getKind() == Reduction::Maximum;
  Values rows;
  for (const Values &elements :
       valuesByRow(lanes, type, lanes.lanesOf(op.getSource()))) {
    Value row = elements.front();
    for (Value element : ArrayRef(elements).drop_front())
      row = isMax ? arith::MaxNumFOp::create(b, row, element).getResult()
                  : arith::AddFOp::create(b, row, element).getResult();
    rows.push_back(lanes.reduceLanes(layout, row, isMax));
  }
  lanes.setLanes(op.getRow(), lanes.reduceWarps(type, rows, isMax));
}

void kvbuf::lowerOp(LaneContext &lanes, WarpReduceOp op) {
  Values parts = lanes.lanesOf(op.getSource());
  FragmentType type = op.getSource().getType();
  lanes.setLanes(op.getRow(), lanes.reduceWarps(type, parts, /*isMax=*/false));
}

//===----------------------------------------------------------------------===//
// Exchanges
//===----------------------------------------------------------------------===//

std::optional<Values> kvbuf::exchangeByLds(LaneContext &lanes, Operation *op,
                                           FragmentType from, FragmentType to,
                                           ArrayRef<Value> elements) {
  ImplicitLocOpBuilder &b = lanes.builder();
  const FragmentLayout &source = lanes.layoutOf(from),
                       &result = lanes.layoutOf(to);
  if (source.turned || result.turned)
    return std::nullopt;
  Type element = from.getElementType();
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  int64_t pitch = from.getCols() + kPieceBytes / bytes;
  Value base = arith::DivUIOp::create(
      b, lanes.scratch(from.getRows() * pitch * bytes), lanes.i32(bytes));
  Value lds = lanes.shared(element);

  // Calls `access(place in LDS, first of a lane's elements)` for each run of
  // elements that are neighbours in a row.
  auto forEachRun = [&](FragmentType type, const FragmentLayout &layout,
                        function_ref<void(Value, int64_t, int64_t)> access) {
    int64_t run = std::min(layout.columnRun(), kPieceBytes / bytes);
    int64_t cols = layout.atomCols(type);
    // The lane's own part of each place.
    Value line = arith::MulIOp::create(b, lanes.laneRow(type), lanes.i32(pitch))
                     .getResult();
    Value own = arith::AddIOp::create(
        b, base,
        arith::AddIOp::create(b, line, lanes.laneCol(type)).getResult());
    for (int64_t atom = 0; atom < layout.atoms(type); ++atom)
      for (int64_t reg = 0; reg < layout.registers(); reg += run) {
        int64_t row = layout.rowOffset(atom / cols, layout.rowPart(reg)),
                col = atom % cols * layout.cols + layout.colOffset(reg);
        access(lanes.toIndex(
                   arith::AddIOp::create(b, own, lanes.i32(row * pitch + col))),
               atom * layout.registers() + reg, run);
      }
  };
  auto typeOf = [&](int64_t count) {
    return VectorType::get({count}, element);
  };
  forEachRun(from, source, [&](Value at, int64_t first, int64_t run) {
    vector::StoreOp::create(b,
                            vector::FromElementsOp::create(
                                b, typeOf(run), elements.slice(first, run)),
                            lds, ValueRange{at}, /*nontemporal=*/false,
                            llvm::Align(bytes * run));
  });
  lanes.meet();
  Values moved(result.atoms(to) * result.registers());
  forEachRun(to, result, [&](Value at, int64_t first, int64_t run) {
    Value piece =
        vector::LoadOp::create(b, typeOf(run), lds, ValueRange{at},
                               /*nontemporal=*/false, llvm::Align(bytes * run));
    for (int64_t i = 0; i < run; ++i)
      moved[first + i] = lanes.element(piece, i);
  });
  meetInLoops(lanes, op);
  return moved;
}
