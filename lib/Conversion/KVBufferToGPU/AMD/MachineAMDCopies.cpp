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
  // Units are told by bits: of blocks whose rows are no power of two, whole
  // ones divide the rows.
  int64_t lowest = params.getBN() & -params.getBN();
  unitRows = std::min<int64_t>(
      llvm::bit_floor(uint64_t(params.getWarpTileRows())), lowest);
  auto deal = [&] {
    rowGroups = params.getBN() / unitRows;
    wavesPerBlock = std::min(waves, rowGroups & -rowGroups);
    blocksPerStep = waves / wavesPerBlock;
    steps = stepsPerBlock() * llvm::divideCeil(blocks, blocksPerStep);
    even = blocks % blocksPerStep == 0;
  };
  deal();
  while (unitRows > rows && (!even || unitRows > 2 * rows)) {
    unitRows /= 2;
    deal();
  }
  unitInstructions = unitRows / rows;
}

SmallVector<CopyPlan> kvbuf::planCopies(const TargetInfo &target,
                                        KVBufferAttr params, int64_t threads) {
  ArrayRef<unsigned> widths = target.asyncCopyBytes;
  int64_t blocks = params.getSmemCols() / params.getBK();
  int64_t rowBytes =
      params.getBK() * params.getElementType().getIntOrFloatBitWidth() / 8;
  // Lanes whose places are no power of two apart are not told by bits,
  // instructions of less than a row would begin within one, and those of rows
  // that do not divide a block's would end in the next one.
  auto fits = [&](int64_t width) {
    int64_t rows = target.waveSize * width / rowBytes;
    return width >= 4 && llvm::isPowerOf2_64(width) && rows > 0 &&
           params.getBN() % rows == 0;
  };
  SmallVector<int64_t> usable(llvm::make_filter_range(widths, fits));
  if (usable.empty())
    return {};
  int64_t widest = usable.back();
  CopyPlan whole(target, params, threads, widest, 0, blocks);
  if (whole.even)
    return {whole};
  for (int64_t first = blocks - 1; first >= 0; --first) {
    CopyPlan front(target, params, threads, widest, 0, first);
    if (!front.even)
      continue;
    for (int64_t width : llvm::drop_begin(llvm::reverse(usable))) {
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
                           const TileView &tile, Value slot, bool asks) {
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
    Value asked =
        asks ? arith::CmpIOp::create(b, arith::CmpIPredicate::slt, block,
                                     lower.i32(plan.all))
                   .getResult()
             : arith::ConstantIntOp::create(b, b.getI1Type(), 0).getResult();
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

namespace {
/// The copies of a part of a tile: which unit a wave takes at each step, and
/// where the rows of its instructions come from.
struct UnitCopies {
  Lanes &lower;
  ImplicitLocOpBuilder &b;
  KVBufferAttr params;
  const CopyPlan &plan;
  CopySource &from;
  RowSource &source;
  SharedTile layout;
  BlockSource places;
  int64_t rowBytes;
  unsigned groupShift;
  /// Rows whose page is found once.
  int64_t together;
  /// Rows of a unit that lie in one page.
  int64_t ofPage;

  /// The part of the unit's number that depends on the wave: its row group, and
  /// the LDS block if there are more waves than row groups; null: there are
  /// not.
  Value group, block;
  /// Their rows and columns, the lane's, and where they go.
  SmallVector<int64_t> groupRows;
  Value groupRow, laneRow, laneCol, blockCol, to;

  /// Offsets and ranges are shared by the instructions whose rows are the same.
  struct Rows {
    Value range, offset, col;
    /// Where the lane's row is, where each has its own page.
    Value line;
  };
  llvm::SmallDenseMap<int64_t, Rows> known;
  llvm::SmallDenseMap<int64_t, std::pair<Value, Value>> ranges;
  /// The first rows of a unit's pages, and where they are.
  llvm::SmallDenseMap<int64_t, std::pair<Value, Value>> lines;

  UnitCopies(Lanes &lower, KVBufferAttr params, const CopyPlan &plan,
             CopySource &from);
  /// Finds the wave's and the lane's part of sources, and of the slot.
  void findParts(Value slot);
  /// Has the source of the tile, which its parts share, found once.
  void findSource();
  /// Where row `first` of the bytes from `begin` on is, by the line of its
  /// page; null where a wave does not look up pages of its own.
  Value lineOf(Value first, int64_t begin);
  /// The rows of the instruction whose bytes of a block begin at `byte`.
  Rows &rowsAt(int64_t byte);
  /// Goes on in the waves that have a unit at a step.
  void enter(int64_t step);
  /// Whether an instruction's lanes copy rows of several pages, each from where
  /// the lane of its number knows that it is.
  bool byLane() const { return source.askLanes() && !source.keeps(plan.rows); }
  /// Whether a tile's rows in LDS have columns that are not the head's.
  bool cutsColumns() const {
    return source.columnBytes() < params.getSmemCols() * layout.elementBytes;
  }
  /// Copies an instruction's vectors, of bytes `skip` of rows on, to byte `at`.
  void copyByLane(Value lds, Value at, const Rows &rows, int64_t skip);
  /// Copies the unit of a step.
  void copy(Value lds, int64_t step);
};
} // namespace

UnitCopies::UnitCopies(Lanes &lower, KVBufferAttr params, const CopyPlan &plan,
                       CopySource &from)
    : lower(lower), b(lower.b), params(params), plan(plan), from(from),
      source(from.rows), layout(sharedTile(params)), places(layout),
      rowBytes(layout.blockCols * layout.elementBytes),
      groupShift(llvm::Log2_64(plan.unitRows * rowBytes)), together(plan.rows),
      ofPage(plan.unitRows) {
  // Narrow instructions of a unit have rows of one page, which is found once.
  if (source.paged() && plan.width < lower.target.asyncCopyBytes.back())
    for (int64_t rows = plan.unitRows; rows > together; rows /= 2)
      if (source.keeps(rows))
        together = rows;
  while (ofPage > together && !source.keeps(ofPage))
    ofPage /= 2;
}

void UnitCopies::findParts(Value slot) {
  unsigned laneShift = llvm::Log2_64(plan.width);
  unsigned laneBits = llvm::Log2_64(plan.bytes) - laneShift;
  group = bitsOf(lower, lower.warp, 0, plan.wavesPerBlock);
  if (plan.blocksPerStep > 1)
    block = arith::ShRUIOp::create(
        b, lower.warp, lower.i32(llvm::Log2_64(plan.wavesPerBlock)));
  unsigned groupBits = llvm::Log2_64(plan.wavesPerBlock);
  groupRows = places.rows(groupShift, groupBits);
  groupRow = emitLinear(b, group, groupRows);
  Value groupCol = emitLinear(b, group, places.cols(groupShift, groupBits));
  laneRow = emitLinear(b, lower.lane, places.rows(laneShift, laneBits));
  laneCol = emitLinear(b, lower.lane, places.cols(laneShift, laneBits));
  laneCol = arith::XOrIOp::create(b, laneCol, groupCol);
  if (block)
    blockCol = arith::MulIOp::create(b, block, lower.i32(rowBytes));
  to = arith::AddIOp::create(
      b, slot, arith::ShLIOp::create(b, group, lower.i32(groupShift)));
  if (block)
    to = arith::AddIOp::create(
        b, to, arith::MulIOp::create(b, block, lower.i32(layout.blockBytes())));
}

void UnitCopies::findSource() {
  if (from.known)
    return;
  from.known = true;
  if (source.paged())
    source.lookUpPages();
  else
    from.range = source.range(lower.i32(0), params.getBN(), from.shift);
}

Value UnitCopies::lineOf(Value first, int64_t begin) {
  if (!source.looksUpOwn() || ofPage <= together)
    return Value();
  int64_t page = begin / (ofPage * rowBytes) * (ofPage * rowBytes);
  auto [at, isFirst] = lines.try_emplace(page);
  if (isFirst) {
    at->second.first = arith::AndIOp::create(b, first, lower.i32(-ofPage));
    at->second.second = source.lineOfGroup(at->second.first, ofPage);
  }
  Value further = arith::SubIOp::create(b, first, at->second.first);
  return arith::AddIOp::create(b, at->second.second,
                               source.rowsFurther(further));
}

UnitCopies::Rows &UnitCopies::rowsAt(int64_t byte) {
  auto [it, isNew] = known.try_emplace(byte);
  Rows &rows = it->second;
  if (!isNew)
    return rows;
  int64_t begin = byte / (together * rowBytes) * (together * rowBytes);
  Value first =
      arith::XOrIOp::create(b, groupRow, lower.i32(places.row(begin)));
  Value row = laneRow, shift = from.shift;
  rows.range = from.range;
  rows.col = arith::XOrIOp::create(b, laneCol, lower.i32(places.col(byte)));
  if (blockCol)
    rows.col = arith::AddIOp::create(b, rows.col, blockCol);
  if (byLane()) {
    row = arith::XOrIOp::create(b, row, first);
    rows.line = source.askLine(lower.toIndex(row), cutsColumns());
    return rows;
  }
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
      at->second.first = source.range(first, together, at->second.second,
                                      lineOf(first, begin));
    std::tie(rows.range, shift) = at->second;
    if (byte != begin)
      row = arith::XOrIOp::create(b, row, lower.i32(places.row(byte - begin)));
  } else {
    row = arith::XOrIOp::create(b, row, first);
  }
  rows.offset = arith::AddIOp::create(
      b, arith::MulIOp::create(b, row, source.stride), rows.col);
  if (shift)
    rows.offset = arith::AddIOp::create(b, rows.offset, shift);
  return rows;
}

void UnitCopies::enter(int64_t step) {
  int64_t left = plan.blocks - step / plan.stepsPerBlock() * plan.blocksPerStep;
  if (left >= plan.blocksPerStep)
    return;
  // Not every wave has a unit left.
  Value busy = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, lower.warp,
                                     lower.i32(left * plan.wavesPerBlock));
  b.setInsertionPointToStart(
      scf::IfOp::create(b, busy, /*withElseRegion=*/false).thenBlock());
  known.clear();
  ranges.clear();
  lines.clear();
}

void UnitCopies::copyByLane(Value lds, Value at, const Rows &rows,
                            int64_t skip) {
  Value line = rows.line;
  if (cutsColumns()) {
    int64_t limit = std::max<int64_t>(0, source.columnBytes() - skip);
    Value inside = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, rows.col,
                                         lower.i32(limit));
    line = arith::SelectOp::create(b, inside, line, lower.index(0));
  }
  Value col = arith::ShRUIOp::create(
      b, rows.col, lower.i32(llvm::Log2_64(layout.elementBytes)));
  LaneCopyOp::create(b, source.memoryOfAsked(col, cutsColumns()), line, lds,
                     lower.toIndex(at), plan.width, skip);
}

void UnitCopies::copy(Value lds, int64_t step) {
  // Steps walk through the blocks' row groups first.
  int64_t stepGroup = step % plan.stepsPerBlock() * plan.wavesPerBlock;
  int64_t stepBlock =
      plan.firstBlock + step / plan.stepsPerBlock() * plan.blocksPerStep;
  OpBuilder::InsertionGuard guard(b);
  enter(step);
  for (int64_t i = 0; i < plan.unitInstructions; ++i) {
    int64_t byte = (stepGroup << groupShift) + i * plan.bytes;
    Rows &rows = rowsAt(byte);
    int64_t skip = stepBlock * rowBytes;
    Value at = arith::AddIOp::create(
        b, to, lower.i32(stepBlock * layout.blockBytes() + byte));
    if (rows.line) {
      copyByLane(lds, at, rows, skip);
      continue;
    }
    Value offset =
        source.insideColumns(rows.offset, rows.col, skip,
                             (stepBlock + plan.blocksPerStep) * rowBytes);
    RangeCopyOp::create(b, rows.range, offset, lds, lower.toIndex(at),
                        plan.width, skip);
  }
}

void AMDMachine::emitCopies(Lanes &lower, KVBufferAttr params,
                            const CopyPlan &plan, CopySource &from,
                            Value slot) {
  UnitCopies copies(lower, params, plan, from);
  copies.findParts(slot);
  copies.findSource();
  Value lds = ldsBytes(lower);
  for (int64_t step = 0; step < plan.steps; ++step)
    copies.copy(lds, step);
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
  if (lower.takesAnyTensor()) {
    if (staged)
      return emitStagedLoads(lower, load, tile, /*checkCols=*/true);
    emitCutCopies(lower, load, tile, slot);
    return {};
  }
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
    if (staged) {
      values = emitStagedLoads(lower, load, tile, cut);
    } else if (cut) {
      // Waits count as many boxes of every tile.
      if (lower.target.has(CopyEngine::WaveBoxes) && copiesBoxes(load))
        emitBoxes(lower, load, tile, slot, /*asks=*/false);
      emitCutCopies(lower, load, tile, slot);
    } else {
      emitCopies(lower, load, tile, slot);
    }
    scf::YieldOp::create(b, values);
  };
  emitSide(ifWhole.thenBlock(), /*cut=*/false);
  emitSide(ifWhole.elseBlock(), /*cut=*/true);
  return Values(ifWhole.getResults());
}
