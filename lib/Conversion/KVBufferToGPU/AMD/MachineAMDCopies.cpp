//===- MachineAMDCopies.cpp - Tiles into LDS on AMD's CDNA ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockSource.h"
#include "KVBufferToGPU/Staging.h"
#include "MachineAMD.h"
#include "RowSource.h"

using namespace mlir;
using namespace kvbuf;

CopyPlan::CopyPlan(const TargetInfo &target, KVBufferAttr params,
                   int64_t threads) {
  int64_t rowBytes =
      params.getBK() * params.getElementType().getIntOrFloatBitWidth() / 8;
  width = target.asyncCopyBytes.back();
  bytes = target.waveSize * width;
  rows = bytes / rowBytes;
  waves = threads / target.waveSize;
  blocks = params.getSmemCols() / params.getBK();
  unitRows = std::min(params.getWarpTileRows(), params.getBN());
  auto units = [&] { return params.getBN() / unitRows * blocks; };
  while (unitRows > rows && (units() % waves || unitRows > 2 * rows))
    unitRows /= 2;
  unitInstructions = unitRows / rows;
  rowGroups = params.getBN() / unitRows;
  steps = llvm::divideCeil(units(), waves);
  even = units() % waves == 0;
}

void AMDMachine::emitCopies(Lanes &lower, const TileLoad &load,
                            const TileValues &tile, Value slot) {
  ImplicitLocOpBuilder &b = lower.b;
  KVBufferAttr params = load.params;
  SharedTile layout = sharedTile(params);
  CopyPlan plan = copyPlan(lower, params);
  BlockSource places(layout);
  RowSource source(lower, load, tile);
  int64_t rowBytes = layout.blockCols * layout.elementBytes;
  unsigned laneShift = llvm::Log2_64(plan.width);
  unsigned laneBits = llvm::Log2_64(plan.bytes) - laneShift;
  unsigned groupShift = llvm::Log2_64(plan.unitRows * rowBytes);

  // The part of the unit's number that depends on the wave: its row group, and
  // the LDS block if there are more waves than row groups.
  int64_t wavesPerBlock = std::min(plan.waves, plan.rowGroups);
  int64_t blocksPerStep = plan.waves / wavesPerBlock;
  int64_t groupsPerStep = wavesPerBlock;
  Value group = bitsOf(lower, lower.warp, 0, wavesPerBlock);
  Value block =
      blocksPerStep > 1
          ? arith::ShRUIOp::create(b, lower.warp,
                                   lower.i32(llvm::Log2_64(wavesPerBlock)))
                .getResult()
          : Value();
  unsigned groupBits = llvm::Log2_64(wavesPerBlock);
  Value groupRow = emitLinear(b, group, places.rows(groupShift, groupBits));
  Value groupCol = emitLinear(b, group, places.cols(groupShift, groupBits));
  Value laneRow = emitLinear(b, lower.lane, places.rows(laneShift, laneBits));
  Value laneCol = emitLinear(b, lower.lane, places.cols(laneShift, laneBits));
  laneCol = arith::XOrIOp::create(b, laneCol, groupCol);
  Value blockCol =
      block ? arith::MulIOp::create(b, block, lower.i32(rowBytes)).getResult()
            : Value();
  Value to = arith::AddIOp::create(
      b, slot, arith::ShLIOp::create(b, group, lower.i32(groupShift)));
  if (block)
    to = arith::AddIOp::create(
        b, to, arith::MulIOp::create(b, block, lower.i32(layout.blockBytes())));

  // Offsets and ranges are shared by the instructions whose rows are the same.
  struct Rows {
    Value range, offset, col;
  };
  llvm::SmallDenseMap<int64_t, Rows> known;
  Value whole, wholeShift;
  if (!source.paged())
    whole = source.range(lower.i32(0), params.getBN(), wholeShift);
  else
    source.lookUpPages();
  auto rowsAt = [&](int64_t byte) -> Rows & {
    auto [it, isNew] = known.try_emplace(byte);
    Rows &rows = it->second;
    if (!isNew)
      return rows;
    Value first =
        arith::XOrIOp::create(b, groupRow, lower.i32(places.row(byte)));
    Value row = laneRow, shift = wholeShift;
    rows.range = whole;
    if (source.paged())
      rows.range = source.range(first, plan.rows, shift);
    else
      row = arith::XOrIOp::create(b, row, first);
    rows.col = arith::XOrIOp::create(b, laneCol, lower.i32(places.col(byte)));
    if (blockCol)
      rows.col = arith::AddIOp::create(b, rows.col, blockCol);
    rows.offset = arith::AddIOp::create(
        b, arith::MulIOp::create(b, row, source.stride), rows.col);
    if (shift)
      rows.offset = arith::AddIOp::create(b, rows.offset, shift);
    return rows;
  };

  Value lds = ldsBytes(lower);
  for (int64_t step = 0; step < plan.steps; ++step) {
    // Steps walk through the blocks' row groups first.
    int64_t stepsPerBlock = plan.rowGroups / groupsPerStep;
    int64_t stepGroup = step % stepsPerBlock * groupsPerStep;
    int64_t stepBlock = step / stepsPerBlock * blocksPerStep;
    OpBuilder::InsertionGuard guard(b);
    if ((step + 1) * plan.waves > plan.rowGroups * plan.blocks) {
      // Not every wave has a unit left.
      Value busy = arith::CmpIOp::create(
          b, arith::CmpIPredicate::ult, lower.warp,
          lower.i32(plan.rowGroups * plan.blocks - step * plan.waves));
      b.setInsertionPointToStart(
          scf::IfOp::create(b, busy, /*withElseRegion=*/false).thenBlock());
      known.clear();
    }
    for (int64_t i = 0; i < plan.unitInstructions; ++i) {
      int64_t byte = (stepGroup << groupShift) + i * plan.bytes;
      Rows &rows = rowsAt(byte);
      int64_t skip = stepBlock * rowBytes;
      Value offset = source.insideColumns(
          rows.offset, rows.col, skip, (stepBlock + blocksPerStep) * rowBytes);
      Value at = arith::AddIOp::create(
          b, to, lower.i32(stepBlock * layout.blockBytes() + byte));
      RangeCopyOp::create(b, rows.range, offset, lds, lower.toIndex(at),
                          plan.width, skip);
    }
  }
}

Values AMDMachine::emitLoad(Lanes &lower, DramLoadOp op, const TileValues &tile,
                            Value slot) {
  return emitTileLoad(lower, op, tile, slot);
}

Values AMDMachine::emitTileLoad(Lanes &lower, const TileLoad &load,
                                const TileValues &tile, Value slot) {
  ImplicitLocOpBuilder &b = lower.b;
  KVBufferAttr params = load.params;
  bool staged = goesThroughRegisters(lower.target, params);
  if (!tile.cols) {
    if (staged)
      return emitStagedLoads(lower, load, tile, /*checkCols=*/false);
    emitCopies(lower, load, tile, slot);
    return {};
  }
  // Most tiles have all their columns.
  SmallVector<Type> types;
  tokenTypes(lower, params, types);
  Value whole = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, tile.cols,
                                      lower.i32(load.type().getCols()));
  auto ifWhole = scf::IfOp::create(b, types, whole, /*addThenBlock=*/true,
                                   /*addElseBlock=*/true);
  auto emitSide = [&](Block *side, bool cut) {
    OpBuilder::InsertionGuard guard(b);
    if (!side->empty())
      side->getTerminator()->erase();
    b.setInsertionPointToEnd(side);
    Values values;
    if (staged)
      values = emitStagedLoads(lower, load, tile, cut);
    else if (cut)
      emitCutCopies(lower, load, tile, slot);
    else
      emitCopies(lower, load, tile, slot);
    scf::YieldOp::create(b, values);
  };
  emitSide(ifWhole.thenBlock(), /*cut=*/false);
  emitSide(ifWhole.elseBlock(), /*cut=*/true);
  return Values(ifWhole.getResults());
}
