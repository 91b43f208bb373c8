//===- MachineHopperPageBoxes.cpp - Small pages by boxes on sm_90a --------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tiles over pages of few rows as boxes of the copy engine, one of each page
/// and one of each row beside them. Where that takes too many, lanes copy
/// (MachineHopperPages.cpp), by places of rows where these fit 32 bits: what
/// that asks of the program is here, too.
///
//===----------------------------------------------------------------------===//

#include "KVBufferToGPU/CachePlaces.h"
#include "KVBufferToGPU/PackedRows.h"
#include "KVBufferToGPU/Pages.h"
#include "MachineHopper.h"
#include "kvbuffer/Target/PageParts.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::hopper;

/// Pages whose numbers a warp's lanes tell each other at once, at most.
static constexpr int64_t kBoxesAtOnce = 16;
/// Where boxes begin in shared memory, bytes (PTX ISA, "Tensor Copies").
static constexpr int64_t kBoxAlignment = 128;
/// Rows in a page are less.
static constexpr int64_t kPacked = 64;

std::optional<PageBoxes> BoxMachine::pageBoxes(Lanes &lower, RingLoadOp op) {
  int64_t page = op.getTile().getType().getPageSize();
  // Boxes of an odd number of rows, and of single rows, begin at any row.
  if (!lower.target.boxesPages(page) || boxRows(lower, op) ||
      hasPlaces(op.getTile()) || packedRowOf(op.getTile()) ||
      isInGroups(op.getTile()) ||
      rowBytes(op.getRing().getType().getParams()) % kBoxAlignment)
    return std::nullopt;
  int64_t rows = op.getRing().getType().getParams().getBN();
  PageParts made(rows, page, !startsAtMultiple(op.getTile(), page));
  PageBoxes boxes{page, made.whole, made.single,
                  warpsOfSlot(lower, op) * clusterParts(lower, op).rows};
  int64_t each = boxes.wholeOfPart() + boxes.singleOfPart();
  if (boxes.whole <= boxes.single || each > lower.target.waveSize)
    return std::nullopt;
  // Copies are faster than more boxes than two for three rows of two blocks of
  // columns, of which the blocks of a cluster ask for some each (H200,
  // docs/tuning.md); of more blocks, than one for four rows of a block.
  KVBufferAttr params = op.getRing().getType().getParams();
  ClusterParts shared = clusterParts(lower, op);
  int64_t columns = params.getSmemCols() / params.getBK(),
          asked = made.boxes() * columns / (shared.columns * shared.rows);
  if (asked > (columns <= 2 ? 2 * rows / 3 : columns * rows / 4))
    return std::nullopt;
  // Of one block of columns, a box for two rows is too many where a block asks
  // for all of them (not measured otherwise).
  if (!isShared(op) && 2 * asked >= columns * rows)
    return std::nullopt;
  return boxes;
}

Value BoxMachine::countedBy(Lanes &lower, RingLoadOp op) {
  auto tile = op.getTile().getDefiningOp<CacheTileOp>();
  if (!tile || !isa<BlockArgument>(tile.getCache()) || boxRows(lower, op) ||
      hasPlaces(op.getTile()) || packedRowOf(op.getTile()) ||
      isInGroups(op.getTile()) ||
      TileView::mapOf(lower, op.getTile()) != RowMap::Table ||
      (!op.getBegin() && pageBoxes(lower, op)))
    return {};
  return tile.getCache();
}

void BoxMachine::emitEnd(Lanes &lower) {
  NVIDIAMachine::emitEnd(lower);
  ImplicitLocOpBuilder &b = lower.b;
  // Whether places fit is asked once, in front of all tiles: in the loop a few
  // instructions for it, and the registers of code that is not for places, cost
  // what places gain (H200, docs/tuning.md).
  for (auto &[loop, ofCaches] : placesFit) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(loop);
    Value all, yes = arith::ConstantIntOp::create(b, 1, 1),
               no = arith::ConstantIntOp::create(b, 0, 1);
    IRMapping without;
    for (auto [cache, fits] : ofCaches) {
      all = all ? arith::AndIOp::create(b, all, fits).getResult() : fits;
      without.map(fits, no);
    }
    auto ifFit = scf::IfOp::create(b, loop->getResultTypes(), all,
                                   /*addThenBlock=*/true,
                                   /*addElseBlock=*/true);
    loop->replaceAllUsesWith(ifFit);
    b.setInsertionPointToStart(ifFit.elseBlock());
    Operation *other = b.clone(*loop, without);
    scf::YieldOp::create(b, other->getResults());
    b.setInsertionPointToStart(ifFit.thenBlock());
    auto yield = scf::YieldOp::create(b, loop->getResults());
    loop->moveBefore(yield);
    for (Value fits : llvm::make_second_range(ofCaches))
      fits.replaceUsesWithIf(yes, [&, loop = loop](OpOperand &use) {
        return loop->isProperAncestor(use.getOwner());
      });
  }
  placesFit.clear();
}

/// What one warp asks for of a tile over pages of few rows: its pages, and the
/// rows beside them.
struct BoxMachine::PartBoxes {
  BoxMachine &machine;
  LaneLowering &lower;
  ImplicitLocOpBuilder &b;
  RingLoadOp op;
  const PageBoxes &boxes;
  const TileView &tile;
  KVBufferAttr params;
  ClusterParts parts;
  /// The warps of the block, and the boxes of the part.
  int64_t warps, pages, singles;
  Value firstKey, pageRows;
  /// This warp's part of the rows, of those that a block's warps and blocks of
  /// the cluster have.
  Value share;
  /// The first row of the part's pages; the row whose page the lane looks up,
  /// and, of rows beside pages, that and its place in its page.
  Value firstRow, row, beside;
  /// Blocks of columns that this block asks for, the first of their columns,
  /// and the blocks of the cluster that get them; null: this one.
  int64_t columns;
  Value firstColumn, mask;

  PartBoxes(BoxMachine &machine, LaneLowering &lower, RingLoadOp op,
            const PageBoxes &boxes, const TileView &tile);

  Value plus(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value times(Value x, int64_t y) {
    return arith::MulIOp::create(b, x, lower.i32(y));
  }
  /// Whether number `i` of a part's `each` is one of `count` that there are;
  /// null if it always is.
  Value isThere(int64_t i, int64_t each, int64_t count);
  /// What the lanes from `first` on hold. A shuffle takes the whole warp, boxes
  /// one lane of it.
  Values ofLanes(Value value, int64_t first, int64_t count);
  void findRows();
  /// Finds this block's columns; returns where they lie of those of `slot`.
  Value findColumns(Value slot);
  /// Asks for the boxes of `rows` rows, from `inPage` of `block` on.
  void ask(int64_t rows, Value to, int64_t byte, Value inPage, Value block,
           Value full, Value there);
  /// Asks for the pages, whose blocks the lanes hold, and for the rows beside.
  void askForPages(Value blocks, Value slot, Value full);
  void askForRows(Value blocks, Value slot, Value full);
};

BoxMachine::PartBoxes::PartBoxes(BoxMachine &machine, LaneLowering &lower,
                                 RingLoadOp op, const PageBoxes &boxes,
                                 const TileView &tile)
    : machine(machine), lower(lower), b(lower.b), op(op), boxes(boxes),
      tile(tile), params(op.getRing().getType().getParams()),
      parts(clusterParts(lower, op)), warps(machine.warpsOfSlot(lower, op)),
      pages(boxes.wholeOfPart()), singles(boxes.singleOfPart()),
      firstKey(lower.toI32(tile.firstKey)), pageRows(lower.i32(boxes.rows)),
      share(lower.i32(0)),
      columns(params.getSmemCols() / params.getBK() / parts.columns),
      firstColumn(tile.box.column) {
  if (warps > 1)
    share = arith::RemUIOp::create(b, lower.warp, lower.i32(warps));
  if (parts.rows > 1)
    share = plus(share, times(arith::DivUIOp::create(b, lower.rings.rank,
                                                     lower.i32(parts.columns)),
                              warps));
}

Value BoxMachine::PartBoxes::isThere(int64_t i, int64_t each, int64_t count) {
  if (i + (boxes.parts - 1) * each < count)
    return nullptr;
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ult,
                               plus(times(share, each), lower.i32(i)),
                               lower.i32(count));
}

Values BoxMachine::PartBoxes::ofLanes(Value value, int64_t first,
                                      int64_t count) {
  Values result;
  for (int64_t i = first; i < first + count; ++i)
    result.push_back(ofLane(lower, value, lower.i32(i)));
  return result;
}

void BoxMachine::PartBoxes::findRows() {
  // Rows of the tile that lie in the page before the first whole one. The rows
  // beside pages are these, and then those after the last one.
  firstRow = times(times(share, pages), boxes.rows);
  Value box =
      arith::MinUIOp::create(b, lower.lane, lower.i32(pages + singles - 1));
  row = times(box, boxes.rows);
  if (!boxes.single) {
    row = plus(row, firstRow);
    return;
  }
  Value inPage = arith::RemUIOp::create(b, firstKey, pageRows);
  Value head = arith::RemUIOp::create(
      b, arith::SubIOp::create(b, pageRows, inPage).getResult(), pageRows);
  firstRow = plus(firstRow, head);
  Value number = plus(arith::SubIOp::create(b, box, lower.i32(pages)),
                      times(share, singles));
  Value isHead =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult, number, head);
  Value single = arith::SelectOp::create(
      b, isHead, number, plus(number, lower.i32(boxes.whole * boxes.rows)));
  Value isPage = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, box,
                                       lower.i32(pages));
  row = arith::SelectOp::create(b, isPage, plus(row, firstRow), single);
  beside = plus(times(row, kPacked),
                arith::RemUIOp::create(b, plus(firstKey, row), pageRows));
}

Value BoxMachine::PartBoxes::findColumns(Value slot) {
  // A box of each block of columns; the blocks of a cluster ask for some each,
  // for all of them.
  if (!isShared(op))
    return slot;
  Value part =
      arith::RemUIOp::create(b, lower.rings.rank, lower.i32(parts.columns));
  Value column = times(part, columns * params.getBK());
  firstColumn = firstColumn ? plus(firstColumn, column) : column;
  slot = plus(slot, times(part, columns * blockBytes(params)));
  mask = arith::ConstantIntOp::create(b, (1 << lower.cluster()) - 1, 16);
  return slot;
}

void BoxMachine::PartBoxes::ask(int64_t rows, Value to, int64_t byte,
                                Value inPage, Value block, Value full,
                                Value there) {
  OpBuilder::InsertionGuard guard(b);
  // The op for one block has no predicate.
  if (there && !mask)
    lower.enter(there);
  Value map = lower.signature.tensorMap(boxesOf(op, rows));
  for (int64_t column = 0; column < columns; ++column) {
    Value first = lower.i32(columnInBoxes(op) + column * params.getBK());
    if (firstColumn)
      first = plus(firstColumn, first);
    Values position{first};
    llvm::append_range(position, tile.box.position);
    position[1] = inPage;
    position.back() = block;
    Value place = plus(to, lower.i32(byte + column * blockBytes(params)));
    machine.emitBox(lower, map, position, place, machine.pointer(lower, full),
                    mask, mask ? there : Value());
  }
}

void BoxMachine::PartBoxes::askForPages(Value blocks, Value slot, Value full) {
  Value to = plus(slot, times(firstRow, rowBytes(params)));
  // A few at a time, as producers have no registers for more.
  for (int64_t first = 0; first < pages; first += kBoxesAtOnce) {
    int64_t count = std::min(kBoxesAtOnce, pages - first);
    Values pageOf = ofLanes(blocks, first, count);
    OpBuilder::InsertionGuard guard(b);
    lower.enter(machine.emitElect(lower));
    for (int64_t i = first; i < first + count; ++i)
      ask(boxes.rows, to, i * boxes.rows * rowBytes(params), lower.i32(0),
          pageOf[i - first], full, isThere(i, pages, boxes.whole));
  }
}

void BoxMachine::PartBoxes::askForRows(Value blocks, Value slot, Value full) {
  if (!singles)
    return;
  Values pageOf = ofLanes(blocks, pages, singles);
  Values rowOf = ofLanes(beside, pages, singles);
  OpBuilder::InsertionGuard guard(b);
  lower.enter(machine.emitElect(lower));
  for (int64_t i = 0; i < singles; ++i) {
    Value row = arith::DivUIOp::create(b, rowOf[i], lower.i32(kPacked));
    Value inPage = arith::RemUIOp::create(b, rowOf[i], lower.i32(kPacked));
    ask(1, plus(slot, times(row, rowBytes(params))), 0, inPage, pageOf[i], full,
        isThere(i, singles, boxes.single));
  }
}

void BoxMachine::emitPageBoxes(LaneLowering &lower, RingLoadOp op,
                               const PageBoxes &boxes, const TileView &tile,
                               Value slot, Value full, Value empty,
                               Value emptyParity) {
  PartBoxes part(*this, lower, op, boxes, tile);
  part.findRows();
  // Look-ups are on their way while the warp waits for the slot.
  Value blocks = tile.lookUpPage(lower, part.row);
  emitBarrierWait(lower, empty, emptyParity);

  // Together a block's warps expect what all parts of all blocks bring.
  {
    OpBuilder::InsertionGuard guard(lower.b);
    lower.enter(emitElect(lower));
    emitExpectBytes(lower, full, part.params.getStageBytes() / part.warps);
  }
  slot = part.findColumns(slot);
  part.askForPages(blocks, slot, full);
  part.askForRows(blocks, slot, full);
}
