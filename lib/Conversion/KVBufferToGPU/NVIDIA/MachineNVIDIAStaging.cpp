//===- MachineNVIDIAStaging.cpp - Tiles through registers -------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Register-staged tiles of NVIDIAMachine: each lane loads the vectors of a
/// slot that it would copy, the token carries them, and the wait for it stores
/// them. The loads are ordinary ones, so that a lane waits for them where it
/// stores.
///
//===----------------------------------------------------------------------===//

#include "KVBufferToGPU/Staging.h"
#include "MachineNVIDIA.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

LogicalResult NVIDIAMachine::prepare(Lanes &lower, gpu::GPUFuncOp kernel) {
  hasAsyncCopies = false;
  kernel.walk([&](DramLoadOp op) {
    hasAsyncCopies |= !goesThroughRegisters(
        lower.target, op.getBuffer().getType().getParams());
  });
  return success();
}

NVIDIAMachine::Copy NVIDIAMachine::stagedCopy(Lanes &lower,
                                              KVBufferAttr params) {
  Copy copy{TileType(), params, lower.threads()};
  return copy;
}

void NVIDIAMachine::stagedTypes(Lanes &lower, KVBufferAttr params,
                                SmallVectorImpl<Type> &types) {
  SharedTile layout = sharedTile(params);
  int64_t steps = layout.rows / stagedCopy(lower, params).rowsPerStep(layout);
  types.append(
      steps * layout.repeats,
      VectorType::get({params.getSimdWidth()}, params.getElementType()));
}

/// The first vector of a lane, by its number among those that copy: `col`
/// counts vectors.
static std::pair<Value, Value> firstVector(Lanes &lower, int64_t perRow) {
  ImplicitLocOpBuilder &b = lower.b;
  Value col = arith::AndIOp::create(b, lower.thread, lower.i32(perRow - 1));
  Value row =
      arith::ShRUIOp::create(b, lower.thread, lower.i32(llvm::Log2_64(perRow)));
  return {row, col};
}

/// Whether a lane has vectors, where there are more threads than a step has;
/// null: each has.
static Value isBusy(Lanes &lower, int64_t busy, int64_t threads) {
  if (busy >= threads)
    return Value();
  return arith::CmpIOp::create(lower.b, arith::CmpIPredicate::ult, lower.thread,
                               lower.i32(busy));
}

Values NVIDIAMachine::emitStagedLoads(Lanes &lower, DramLoadOp op,
                                      const TileView &tile) {
  ImplicitLocOpBuilder &b = lower.b;
  KVBufferAttr params = op.getBuffer().getType().getParams();
  SharedTile layout = sharedTile(params);
  Copy copy = stagedCopy(lower, params);
  int64_t perRow = copy.perRow(layout), perStep = copy.rowsPerStep(layout);
  int64_t width = params.getSimdWidth();
  int64_t columns = params.getColumnsOf(op.getBlock());
  auto type = VectorType::get({width}, params.getElementType());
  // LLVM takes vectors apart where rows do not begin at their multiples.
  int64_t alignment = std::min<int64_t>(kTensorAlignment, lower.alignment);
  auto [row, col] = firstVector(lower, perRow);
  Value laneCol = arith::MulIOp::create(b, col, lower.i32(width));
  Value laneCols = lower.toIndex(laneCol), source = lower.flat(tile.data);

  Value always = isBusy(lower, perStep * perRow, copy.threads);
  auto both = [&](Value x, Value y) -> Value {
    return !x ? y : !y ? x : arith::AndIOp::create(b, x, y).getResult();
  };
  auto isLess = [&](Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, x, y);
  };
  if (op.getPred())
    always = both(always, lower.single(op.getPred()));
  Values vectors;
  for (int64_t step = 0; step < layout.rows; step += perStep) {
    Value r = arith::AddIOp::create(b, row, lower.i32(step));
    Value rowOk = always;
    if (!op.getWhole()) {
      rowOk = both(rowOk, isLess(r, tile.hi));
      if (!matchPattern(tile.lo, m_Zero()))
        rowOk = both(rowOk, arith::CmpIOp::create(b, arith::CmpIPredicate::sge,
                                                  r, tile.lo));
    }
    Value line =
        tile.isPaged()
            ? tile.lineOf(lower, r, rowOk)
            : Value(arith::AddIOp::create(
                  b, arith::MulIOp::create(b, lower.toIndex(r), tile.rowStride),
                  tile.base));
    line = arith::AddIOp::create(b, line, laneCols);
    for (int64_t block = 0; block < layout.repeats; ++block) {
      int64_t start = block * layout.blockCols;
      Value ok = rowOk;
      // Columns past the buffer's are zero.
      if (start + layout.blockCols > columns)
        ok = both(ok, isLess(laneCol,
                             lower.i32(std::max<int64_t>(0, columns - start))));
      Value at = arith::AddIOp::create(b, line, lower.index(start));
      if (tile.cols) {
        Value first = arith::AddIOp::create(b, laneCol, lower.i32(start));
        Value end = arith::MinSIOp::create(b, tile.cols, lower.i32(columns));
        if (!ok)
          ok = arith::ConstantIntOp::create(b, 1, 1);
        vectors.push_back(loadCut(lower, tile, type, at, ok,
                                  arith::SubIOp::create(b, end, first),
                                  alignment));
        continue;
      }
      auto load = [&]() -> Value {
        return vector::LoadOp::create(b, type, source, ValueRange{at},
                                      /*nontemporal=*/false,
                                      llvm::Align(alignment));
      };
      vectors.push_back(ok ? loadIf(lower, ok, type, load) : load());
    }
  }
  return vectors;
}

void NVIDIAMachine::emitStagedStores(Lanes &lower, KVBufferAttr params,
                                     Value slot, ArrayRef<Value> vectors) {
  ImplicitLocOpBuilder &b = lower.b;
  SharedTile layout = sharedTile(params);
  Copy copy = stagedCopy(lower, params);
  int64_t perRow = copy.perRow(layout), perStep = copy.rowsPerStep(layout);
  auto [row, col] = firstVector(lower, perRow);
  LinearAddress address;
  address.terms.push_back(
      {col, imagesOf(layout, "col", llvm::Log2_64(params.getSimdWidth()),
                     llvm::Log2_64(perRow))});
  address.terms.push_back(
      {row, imagesOf(layout, "row", 0, llvm::Log2_64(perStep))});
  Value first = arith::DivUIOp::create(b, slot, lower.i32(layout.elementBytes));
  Value shared = lower.shared(params.getElementType());
  OpBuilder::InsertionGuard guard(b);
  if (Value busy = isBusy(lower, perStep * perRow, copy.threads))
    b.setInsertionPointToStart(
        scf::IfOp::create(b, busy, /*withElseRegion=*/false).thenBlock());
  for (int64_t step = 0; step < layout.rows; step += perStep)
    for (int64_t block = 0; block < layout.repeats; ++block) {
      Value to = emitAddress(lower, address, first, params, step,
                             block * layout.blockCols);
      vector::StoreOp::create(b, vectors.front(), shared, ValueRange{to},
                              /*nontemporal=*/false,
                              llvm::Align(kTensorAlignment));
      vectors = vectors.drop_front();
    }
}
