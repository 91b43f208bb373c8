//===- MachineAMDCopies.cpp - Tiles into LDS on AMD's CDNA ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockSource.h"
#include "KVBufferToGPU/PackedRows.h"
#include "KVBufferToGPU/Staging.h"
#include "MachineAMD.h"
#include "RowSource.h"

using namespace mlir;
using namespace kvbuf;

CopyPlan::CopyPlan(const TargetInfo &target, KVBufferAttr params,
                   int64_t threads, int64_t width, int64_t firstBlock,
                   int64_t blocks)
    : width(width), blocks(blocks), firstBlock(firstBlock) {
  int64_t rowBytes =
      params.getBK() * params.getElementType().getIntOrFloatBitWidth() / 8;
  bytes = target.waveSize * width;
  rows = bytes / rowBytes;
  waves = threads / target.waveSize;
  unitRows = std::min(params.getWarpTileRows(), params.getBN());
  auto units = [&] { return params.getBN() / unitRows * blocks; };
  while (unitRows > rows && (units() % waves || unitRows > 2 * rows))
    unitRows /= 2;
  unitInstructions = unitRows / rows;
  rowGroups = params.getBN() / unitRows;
  steps = llvm::divideCeil(units(), waves);
  even = units() % waves == 0;
}

SmallVector<CopyPlan> kvbuf::planCopies(const TargetInfo &target,
                                        KVBufferAttr params, int64_t threads) {
  ArrayRef<unsigned> widths = target.asyncCopyBytes;
  int64_t widest = widths.back(),
          blocks = params.getSmemCols() / params.getBK();
  CopyPlan whole(target, params, threads, widest, 0, blocks);
  if (whole.even)
    return {whole};
  // Lanes whose places are no power of two apart are not told by bits, and
  // instructions of less than a row would begin within one.
  int64_t rowBytes = whole.bytes / whole.rows;
  auto fits = [&](int64_t width) {
    return width >= 4 && width < widest && llvm::isPowerOf2_64(width) &&
           target.waveSize * width >= rowBytes;
  };
  for (int64_t first = blocks - 1; first >= 0; --first) {
    CopyPlan front(target, params, threads, widest, 0, first);
    if (!front.even)
      continue;
    for (int64_t width : llvm::reverse(widths)) {
      if (!fits(width))
        continue;
      CopyPlan rest(target, params, threads, width, first, blocks - first);
      if (!rest.even)
        continue;
      if (first == 0)
        return {rest};
      return {front, rest};
    }
  }
  return {whole};
}

bool kvbuf::copiesBoxes(const TileLoad &load) {
  return !load.type().getPageSize() && !load.block && !mayBeginLater(load) &&
         load.params.getPolicy() == Policy::DoubleBuffered &&
         load.params.getColumnsOf(0) == load.params.getSmemCols();
}

void AMDMachine::emitBoxes(Lanes &lower, const TileLoad &load,
                           const TileView &tile, Value slot) {
  ImplicitLocOpBuilder &b = lower.b;
  SharedTile layout = sharedTile(load.params);
  int64_t warps = lower.threads() / lower.target.waveSize;
  BoxPlan plan(load.params, warps);
  RowSource source(lower, load, tile);
  Value rows = source.validRows(), wave = uniform(lower, lower.warp);
  for (int64_t step = 0; step < plan.steps; ++step) {
    Value block = arith::AddIOp::create(
        b, arith::MulIOp::create(b, wave, lower.i32(plan.blocks)).getResult(),
        lower.i32(step * warps * plan.blocks));
    Value asked = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, block,
                                        lower.i32(plan.all));
    Value base =
        arith::AddIOp::create(b, tile.base,
                              lower.toIndex(arith::MulIOp::create(
                                  b, block, lower.i32(layout.blockCols))));
    Value at = arith::AddIOp::create(
        b, slot,
        arith::MulIOp::create(b, block, lower.i32(layout.blockBytes())));
    BoxCopyOp::create(b, tile.data, base, tile.rowStride, rows, asked,
                      ldsBytes(lower), lower.toIndex(at), plan.blocks,
                      layout.rows, layout.blockCols);
  }
}

void AMDMachine::emitCopies(Lanes &lower, const TileLoad &load,
                            const TileView &tile, Value slot) {
  if (lower.target.has(CopyEngine::WaveBoxes)) {
    if (copiesBoxes(load))
      emitBoxes(lower, load, tile, slot);
    else
      emitCutCopies(lower, load, tile, slot);
    return;
  }
  RowSource source(lower, load, tile);
  CopySource from{source, {}, {}, false};
  for (const CopyPlan &plan : copyPlans(lower, load.params))
    emitCopies(lower, load.params, plan, from, slot);
}

void AMDMachine::emitCopies(Lanes &lower, KVBufferAttr params,
                            const CopyPlan &plan, CopySource &from,
                            Value slot) {
  RowSource &source = from.rows;
  ImplicitLocOpBuilder &b = lower.b;
  SharedTile layout = sharedTile(params);
  BlockSource places(layout);
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
  SmallVector<int64_t> groupRows = places.rows(groupShift, groupBits);
  Value groupRow = emitLinear(b, group, groupRows);
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
  if (!from.known) {
    from.known = true;
    if (source.paged())
      source.lookUpPages();
    else
      from.range = source.range(lower.i32(0), params.getBN(), from.shift);
  }
  // Narrow instructions of a unit have rows of one page, which is found once.
  int64_t together = plan.rows;
  if (source.paged() && plan.width < lower.target.asyncCopyBytes.back() &&
      source.keeps(plan.unitRows))
    together = plan.unitRows;
  llvm::SmallDenseMap<int64_t, std::pair<Value, Value>> ranges;
  auto rowsAt = [&](int64_t byte) -> Rows & {
    auto [it, isNew] = known.try_emplace(byte);
    Rows &rows = it->second;
    if (!isNew)
      return rows;
    int64_t begin = byte / (together * rowBytes) * (together * rowBytes);
    Value first =
        arith::XOrIOp::create(b, groupRow, lower.i32(places.row(begin)));
    Value row = laneRow, shift = from.shift;
    rows.range = from.range;
    if (source.paged()) {
      // A swizzle may put a group's rows in another order by the group's
      // number.
      int64_t inGroup = together - 1;
      auto mixes = [&](int64_t image) { return image & inGroup; };
      if (llvm::any_of(groupRows, mixes) || mixes(places.row(begin))) {
        row = arith::XOrIOp::create(
            b, row, arith::AndIOp::create(b, first, lower.i32(inGroup)));
        first = arith::AndIOp::create(b, first, lower.i32(~inGroup));
      }
      auto [at, isFirst] = ranges.try_emplace(begin);
      if (isFirst)
        at->second.first = source.range(first, together, at->second.second);
      std::tie(rows.range, shift) = at->second;
      if (byte != begin)
        row =
            arith::XOrIOp::create(b, row, lower.i32(places.row(byte - begin)));
    } else {
      row = arith::XOrIOp::create(b, row, first);
    }
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
    int64_t stepBlock = plan.firstBlock + step / stepsPerBlock * blocksPerStep;
    OpBuilder::InsertionGuard guard(b);
    if ((step + 1) * plan.waves > plan.rowGroups * plan.blocks) {
      // Not every wave has a unit left.
      Value busy = arith::CmpIOp::create(
          b, arith::CmpIPredicate::ult, lower.warp,
          lower.i32(plan.rowGroups * plan.blocks - step * plan.waves));
      b.setInsertionPointToStart(
          scf::IfOp::create(b, busy, /*withElseRegion=*/false).thenBlock());
      known.clear();
      ranges.clear();
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

Values AMDMachine::emitLoad(Lanes &lower, DramLoadOp op, const TileView &tile,
                            Value slot) {
  if (!packedRowOf(op.getTile()))
    return emitTileLoad(lower, op, tile, slot);
  emitPackedLoad(lower, op.getTile(), tile,
                 op.getBuffer().getType().getParams(), slot,
                 op.getPred() ? lower.single(op.getPred()) : Value(),
                 {lower.thread, lower.threads()});
  return {};
}

Values AMDMachine::emitTileLoad(Lanes &lower, const TileLoad &load,
                                const TileView &tile, Value slot) {
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
