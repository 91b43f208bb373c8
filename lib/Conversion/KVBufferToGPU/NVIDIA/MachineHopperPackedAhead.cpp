//===- MachineHopperPackedAhead.cpp - Packed rows ahead of slots ----------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// All warps of a team fill each slot, and ask for the bytes of their rows
/// ahead of it, into memory of their own, from which they widen them: the next
/// tile's are on their way meanwhile, and a slot is filled in a fraction of the
/// time that one warp takes.
///
//===----------------------------------------------------------------------===//

#include "KVBufferToGPU/PackedRows.h"
#include "PackedFill.h"
#include "kvbuffer/Dialect/KVBuffer/IR/PackedRow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::hopper;

/// Vectors that are widened before the slot is empty; those that are widened
/// together, and those behind them that are read before these are stored: the
/// assembler moves no read before a store, and one after the other each vector
/// takes what a read and a chain of conversions take.
static constexpr int64_t kWidenedFirst = 4, kTogether = 4, kReadAhead = 4;

/// Columns of a block of a slot, of which a lane has a piece of each row; bytes
/// of rows that lie side by side in a warp's memory, and of a word of scales.
static constexpr int64_t kBlockCols = 64, kPiece = 8, kUnit = 64, kWord = 4;

void BoxMachine::PackedFill::divide(int64_t warps, Value bytes) {
  this->warps = warps;
  Value share = arith::RemUIOp::create(b, lower.warp, lower.i32(warps));
  this->bytes = add(bytes, mul(share, bytesOfWarp()));
  Value first = mul(share, rows());
  firstRow = firstRow ? add(firstRow, first) : first;
}

Value BoxMachine::PackedFill::ownKnown() {
  // Places beyond the steps know what others do.
  Value step =
      arith::AndIOp::create(b, place, lower.i32(rows() / kStepRows - 1));
  return add(mul(step, kStepRows), group);
}

Values BoxMachine::PackedFill::knownAhead(Value entry) {
  return known(nearestRow(lower, tile, add(firstRow, ownKnown())),
               /*scales=*/false, entry);
}

bool BoxMachine::PackedFill::isOfPieces() const {
  constexpr int64_t piece = 128;
  const RowSegment &segment = segments.front();
  return !isWidened() ||
         (segments.size() == 1 && part.getScale() && part.getScale().isF32() &&
          part.getGranularity() == piece && segment.inPart % piece == 0 &&
          segment.count % piece == 0 && !hasTail());
}

bool BoxMachine::PackedFill::hasTail() const {
  return llvm::any_of(segments, [&](const RowSegment &segment) {
    return segment.part.getScale() && segment.scalesAt() >= row.getBytes();
  });
}

Value BoxMachine::PackedFill::inUnit(int64_t step, bool odd) {
  Value own = group;
  if (odd)
    own = arith::XOrIOp::create(b, own, lower.i32(1));
  return mul(add(own, lower.i32(step * kStepRows)), kUnit);
}

Value BoxMachine::PackedFill::inUnits(int64_t step, int64_t unit) {
  // Half of a row's lanes have the first unit, half the second one.
  Value second = arith::ShRUIOp::create(b, place, lower.i32(2)), flip = second;
  if (unit % 2)
    flip = arith::XOrIOp::create(b, flip, lower.i32(1));
  Value own =
      add(arith::XOrIOp::create(b, group, flip), lower.i32(step * kStepRows));
  Value vector =
      arith::AndIOp::create(b, place, lower.i32(kUnit / kTensorAlignment - 1));
  return add(
      add(mul(second, rows() * kUnit), mul(own, kUnit)),
      add(mul(vector, kTensorAlignment), lower.i32(unit * rows() * kUnit)));
}

void BoxMachine::PackedFill::copyOne(Value to, Value from, int64_t size,
                                     Value there) {
  auto pointerTo = [&](Value address, NVVM::NVVMMemorySpace space) -> Value {
    return LLVM::IntToPtrOp::create(
        b, LLVM::LLVMPointerType::get(b.getContext(), unsigned(space)),
        address);
  };
  Value count =
      arith::SelectOp::create(b, there, lower.i32(size), lower.i32(0));
  NVVM::CpAsyncOp::create(
      b,
      pointerTo(arith::ExtUIOp::create(b, b.getI64Type(), to),
                NVVM::NVVMMemorySpace::Shared),
      pointerTo(from, NVVM::NVVMMemorySpace::Global), size,
      size == kTensorAlignment ? NVVM::LoadCacheModifierKind::CG
                               : NVVM::LoadCacheModifierKind::CA,
      count);
}

std::pair<Value, Value> BoxMachine::PackedFill::addressOf(Value low,
                                                          Value high) {
  Type i64 = b.getI64Type();
  Value absent;
  if (tile.lastPage) {
    absent = arith::AndIOp::create(b, low, lower.i32(kAbsent));
    low = arith::XOrIOp::create(b, low, absent);
  }
  Value wide = arith::ExtUIOp::create(b, i64, high);
  wide =
      arith::ShLIOp::create(b, wide, arith::ConstantIntOp::create(b, 32, 64));
  return {arith::OrIOp::create(b, wide, arith::ExtUIOp::create(b, i64, low)),
          absent};
}

void BoxMachine::PackedFill::copyScales(ArrayRef<Value> known) {
  Value own = ownKnown();
  auto [from, absent] = addressOf(known[0], known[1]);
  int64_t ofRow = scaleBytesOf(segments), begin = segments.front().at();
  Value to =
      add(add(ldsAddress, bytes),
          add(mul(own, ofRow), lower.i32(rows() * elementBytesOf(segments))));
  OpBuilder::InsertionGuard guard(b);
  auto mine = scf::IfOp::create(
      b,
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult, place,
                            lower.i32(rows() / kStepRows)),
      /*withElseRegion=*/false);
  b.setInsertionPointToStart(mine.thenBlock());
  Value there = isThere(add(firstRow, own), absent), ofTail;
  if (hasTail())
    ofTail = arith::AddIOp::create(
        b, from, arith::ExtUIOp::create(b, b.getI64Type(), known[2]));
  int64_t place = 0;
  for (const RowSegment &segment : segments) {
    if (!segment.part.getScale())
      continue;
    int64_t at = segment.scalesAt();
    bool isApart = at >= row.getBytes();
    for (int64_t word = 0; word < segment.scaleBytes(); word += kWord)
      copyOne(add(to, lower.i32(place + word)),
              arith::AddIOp::create(
                  b, isApart ? ofTail : from,
                  arith::ConstantIntOp::create(
                      b, at + word - (isApart ? row.getBytes() : begin), 64)),
              kWord, there);
    place += segment.scaleBytes();
  }
}

void BoxMachine::PackedFill::copyAhead(ArrayRef<Value> known) {
  if (isOfPieces())
    return copyPieces(known);
  Type i64 = b.getI64Type();
  auto c64 = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, value, 64);
  };
  Value start = add(ldsAddress, bytes);
  Value placeBytes =
      arith::ExtUIOp::create(b, i64, mul(place, kTensorAlignment));
  if (scaleBytesOf(segments))
    copyScales(known);
  for (int64_t step = 0; step < rows() / kStepRows; ++step) {
    Value row = add(firstRow, add(lower.i32(step * kStepRows), group));
    Value high = ask(known[1], lower.i32(step));
    auto [from, absent] = addressOf(ask(known[0], lower.i32(step)), high);
    from = arith::AddIOp::create(b, from, placeBytes);
    Value there = isThere(row, absent);
    auto at = [&](int64_t byte) -> Value {
      return arith::AddIOp::create(b, from, c64(byte));
    };
    int64_t unit = 0;
    for (const RowSegment &segment : segments)
      for (int64_t end = unit + segment.bytes() / kUnit, first = unit;
           unit < end; unit += std::min<int64_t>(2, end - unit)) {
        int64_t byte =
            segment.at() - segments.front().at() + (unit - first) * kUnit;
        OpBuilder::InsertionGuard guard(b);
        // A last unit by itself half of the lanes have.
        if (unit + 1 == end)
          b.setInsertionPointToStart(
              scf::IfOp::create(
                  b,
                  arith::CmpIOp::create(b, arith::CmpIPredicate::ult, place,
                                        lower.i32(kUnit / kTensorAlignment)),
                  /*withElseRegion=*/false)
                  .thenBlock());
        copyOne(add(start, inUnits(step, unit)), at(byte), kTensorAlignment,
                there);
      }
  }
}

void BoxMachine::PackedFill::copyPieces(ArrayRef<Value> known) {
  Type i64 = b.getI64Type();
  bool widened = isWidened();
  Value start = add(ldsAddress, widened ? bytes : slot);
  Value placeBytes =
      arith::ExtUIOp::create(b, i64, mul(place, kTensorAlignment));
  if (widened)
    copyScales(known);
  for (int64_t step = 0; step < rows() / kStepRows; ++step) {
    Value own = add(lower.i32(step * kStepRows), group);
    Value high = ask(known[1], lower.i32(step));
    auto [from, absent] = addressOf(ask(known[0], lower.i32(step)), high);
    from = arith::AddIOp::create(b, from, placeBytes);
    Value there = isThere(add(firstRow, own), absent);
    // What is not widened goes to its place: a row among all of the slot.
    Value to = add(start, widened ? inCopy(own, place)
                                  : inBlock(add(firstRow, own), place));
    int64_t count = widened ? chunks() : params.getSmemCols() / kBlockCols,
            apart = widened ? rows() * 128 : blockBytes(params);
    for (int64_t block = 0; block < count; ++block)
      copyOne(add(to, lower.i32(block * apart)),
              arith::AddIOp::create(
                  b, from, arith::ConstantIntOp::create(b, block * 128, 64)),
              kTensorAlignment, there);
  }
}

int64_t BoxMachine::PackedFill::entryBytes() const {
  return cast<MemRefType>(tile.table.getType()).getElementTypeBitWidth() / 8;
}

void BoxMachine::PackedFill::askEntry(int64_t next, Value fill) {
  Type i64 = b.getI64Type();
  // What the table says of any key will do for a row that is not there, of
  // which nothing is read.
  Value key = add(add(lower.toI32(tile.firstKey), lower.i32(next)),
                  add(firstRow, ownKnown()));
  Value last = add(lower.toI32(tile.firstKey), add(tile.hi, lower.i32(-1)));
  key = arith::MaxSIOp::create(b, arith::MinSIOp::create(b, key, last),
                               lower.i32(0));
  Value number =
      arith::DivUIOp::create(b, key, lower.i32(tile.type.getPageSize()));
  Value entry = arith::AddIOp::create(
      b, tile.tableBase,
      arith::IndexCastUIOp::create(b, b.getIndexType(), number));
  int64_t size = entryBytes();
  Value table =
      arith::IndexCastOp::create(b, i64,
                                 memref::ExtractAlignedPointerAsIndexOp::create(
                                     b, lower.flat(tile.table)));
  Value from = arith::AddIOp::create(
      b, table,
      arith::MulIOp::create(
          b, arith::IndexCastOp::create(b, i64, entry).getResult(),
          arith::ConstantIntOp::create(b, size, 64).getResult()));
  Value odd = arith::AndIOp::create(b, add(fill, lower.i32(1)), lower.i32(1));
  Value to = add(add(ldsAddress, entries), mul(odd, stepOfEntries));
  Value any =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, tile.lo, tile.hi);
  auto pointerTo = [&](Value address, NVVM::NVVMMemorySpace space) -> Value {
    return LLVM::IntToPtrOp::create(
        b, LLVM::LLVMPointerType::get(b.getContext(), unsigned(space)),
        address);
  };
  NVVM::CpAsyncOp::create(
      b,
      pointerTo(arith::ExtUIOp::create(b, i64, to),
                NVVM::NVVMMemorySpace::Shared),
      pointerTo(from, NVVM::NVVMMemorySpace::Global), size,
      NVVM::LoadCacheModifierKind::CA,
      arith::SelectOp::create(b, any, lower.i32(size), lower.i32(0)));
}

Value BoxMachine::PackedFill::entryOf(Value fill) {
  Value odd = arith::AndIOp::create(b, fill, lower.i32(1));
  Value at = add(entries, mul(odd, stepOfEntries));
  int64_t size = entryBytes();
  Type type = b.getIntegerType(8 * size);
  Value shared = lower.shared(type);
  return memref::LoadOp::create(b, shared,
                                ValueRange{lower.toIndex(arith::ShRUIOp::create(
                                    b, at, lower.i32(llvm::Log2_64(size))))});
}

void BoxMachine::PackedFill::storeWide(Value x, Value at) {
  for (int64_t other = 1; other < blocks && !sends; ++other)
    lower.phases().emitClusterStore(
        lower,
        vector::BitCastOp::create(b, VectorType::get({4}, b.getI32Type()), x),
        at, full, arith::XOrIOp::create(b, lower.rings.rank, lower.i32(other)));
  at = arith::ShRUIOp::create(b, at, lower.i32(1));
  vector::StoreOp::create(b, x, lower.shared(params.getElementType()),
                          ValueRange{lower.toIndex(at)},
                          /*nontemporal=*/false, llvm::Align(kTensorAlignment));
}

SmallVector<BoxMachine::PackedFill::Piece>
BoxMachine::PackedFill::piecesOf() const {
  SmallVector<Piece> all;
  for (int64_t step = 0; step < rows() / kStepRows; ++step) {
    int64_t unit = 0, scales = 0, block = 0;
    for (const RowSegment &segment : segments) {
      for (int64_t i = 0; i < segment.count / kBlockCols; ++i)
        all.push_back({step,
                       block++,
                       i,
                       unit + i * segment.width(),
                       scales,
                       &segment,
                       {},
                       {},
                       {}});
      unit += segment.bytes() / kUnit;
      scales += segment.scaleBytes();
    }
  }
  return all;
}

Value BoxMachine::PackedFill::scaleOf(const Piece &piece, Value at) {
  RowPartAttr part = piece.segment->part;
  int64_t group = part.getGranularity(),
          size = part.getScale().getIntOrFloatBitWidth() / 8;
  // The block's first group among the segment's, and the lane's in it. Groups
  // need not begin with the segment.
  int64_t inPart = piece.segment->inPart,
          number =
              (inPart + piece.inSegment * kBlockCols) / group - inPart / group;
  at = add(at, lower.i32(number * size));
  if (group < kBlockCols)
    at = add(at, mul(arith::ShRUIOp::create(
                         b, place, lower.i32(llvm::Log2_64(group / kPiece))),
                     size));
  Type stored = b.getIntegerType(8 * size);
  Value word =
      memref::LoadOp::create(b, lower.shared(stored),
                             ValueRange{lower.toIndex(arith::ShRUIOp::create(
                                 b, at, lower.i32(llvm::Log2_64(size))))});
  if (part.getScale().isF32())
    return arith::BitcastOp::create(b, b.getF32Type(), word);
  return powerOfTwo(b, arith::ExtUIOp::create(b, b.getI32Type(), word));
}

void BoxMachine::PackedFill::read(Piece &piece) {
  if (piece.data)
    return;
  if (isOfPieces()) {
    std::tie(piece.data, piece.scale) =
        readPiece(piece.step, piece.block / 2, piece.block % 2);
    return;
  }
  const RowSegment &segment = *piece.segment;
  if (segment.part.getScale()) {
    Value own = add(lower.i32(piece.step * kStepRows), group);
    piece.scale = scaleOf(
        piece,
        add(add(bytes, mul(own, scaleBytesOf(segments))),
            lower.i32(rows() * elementBytesOf(segments) + piece.scales)));
  }
  int64_t size = kPiece * segment.width();
  Value at =
      size == kPiece
          ? add(add(inUnit(piece.step, piece.unit % 2), mul(place, kPiece)),
                lower.i32(piece.unit * rows() * kUnit))
          : inUnits(piece.step, piece.unit);
  piece.data = vector::LoadOp::create(b, VectorType::get({size}, b.getI8Type()),
                                      lower.shared(b.getI8Type()),
                                      ValueRange{lower.toIndex(add(bytes, at))},
                                      /*nontemporal=*/false, llvm::Align(size));
}

void BoxMachine::PackedFill::widen(Piece &piece) {
  read(piece);
  if (piece.wide)
    return;
  RowPartAttr part = piece.segment->part;
  auto wide = VectorType::get({kPiece}, params.getElementType());
  if (piece.segment->isCopied(params.getElementType())) {
    piece.wide = vector::BitCastOp::create(b, wide, piece.data);
    return;
  }
  Value x = widenElements(
      b, arith::BitcastOp::create(
             b, VectorType::get({kPiece}, part.getElement()), piece.data));
  if (piece.scale)
    x = arith::MulFOp::create(
        b, x,
        vector::BroadcastOp::create(
            b, VectorType::get({kPiece}, b.getF32Type()), piece.scale));
  piece.wide = arith::TruncFOp::create(b, wide, x);
}

std::pair<Value, Value>
BoxMachine::PackedFill::readPiece(int64_t step, int64_t chunk, int64_t side) {
  constexpr int64_t piece = 8;
  Value own = add(lower.i32(step * kStepRows), group);
  Value ofScale = add(add(bytes, mul(own, 4 * chunks())),
                      lower.i32(rows() * chunks() * 128 + chunk * 4));
  Value scale = memref::LoadOp::create(
      b, lower.shared(b.getF32Type()),
      ValueRange{
          lower.toIndex(arith::ShRUIOp::create(b, ofScale, lower.i32(2)))});
  Value odd = arith::AndIOp::create(b, place, lower.i32(1));
  Value vector = add(arith::ShRUIOp::create(b, place, lower.i32(1)),
                     lower.i32(side * kRowLanes / 2));
  Value at = add(add(bytes, inCopy(own, vector)),
                 add(mul(odd, piece), lower.i32(chunk * rows() * 128)));
  Value data = vector::LoadOp::create(
      b, VectorType::get({piece}, b.getI8Type()), lower.shared(b.getI8Type()),
      ValueRange{lower.toIndex(at)},
      /*nontemporal=*/false, llvm::Align(piece));
  return {data, scale};
}

void BoxMachine::PackedFill::send() {
  auto pointerTo = [&](Value offset) -> Value {
    return LLVM::IntToPtrOp::create(
        b,
        LLVM::LLVMPointerType::get(b.getContext(),
                                   unsigned(NVVM::NVVMMemorySpace::Shared)),
        add(ldsAddress, offset));
  };
  // Rows of a block of columns lie together. Nobody fills the slot anew before
  // the others have read what they get.
  Value from = add(slot, mul(firstRow, rowBytes(params)));
  Value elected = NVVM::ElectSyncOp::create(b, b.getI1Type(), Value());
  for (int64_t other = 1; other < blocks; ++other)
    for (int64_t block = 0; block < params.getSmemCols() / params.getBK();
         ++block)
      ClusterCopyOp::create(
          b, lower.i32(rows() * rowBytes(params)),
          pointerTo(add(from, lower.i32(block * blockBytes(params)))),
          pointerTo(full),
          arith::XOrIOp::create(b, lower.rings.rank, lower.i32(other)),
          elected);
}

void BoxMachine::PackedFill::widenAhead(function_ref<void()> wait) {
  SmallVector<Piece> all = piecesOf();
  int64_t count = all.size();
  for (int64_t i = 0; i < std::min(kWidenedFirst, count); ++i)
    widen(all[i]);
  wait();
  for (int64_t i = 0; i < count; i += kTogether) {
    int64_t end = std::min(i + kTogether, count);
    for (int64_t k = i; k < std::min(end + kReadAhead, count); ++k)
      read(all[k]);
    for (int64_t k = i; k < end; ++k)
      widen(all[k]);
    for (int64_t k = i; k < end; ++k) {
      Value own = add(lower.i32(all[k].step * kStepRows), group);
      Value to = add(slot, inBlock(add(firstRow, own), place));
      storeWide(all[k].wide,
                add(to, lower.i32(all[k].block * blockBytes(params))));
    }
  }
}

/// Whether a load that runs ahead stands before this one in its block.
static bool followsAnother(RingLoadOp op) {
  for (Operation *before = op->getPrevNode(); before;
       before = before->getPrevNode())
    if (auto load = dyn_cast<RingLoadOp>(before); load && load.isAhead())
      return true;
  return false;
}

/// A load before this one in its block that asks the table about the same rows
/// for the same filling of its ring; null: there is none.
static RingLoadOp asksAlike(RingLoadOp op) {
  for (Operation *before = op->getPrevNode(); before;
       before = before->getPrevNode())
    if (auto load = dyn_cast<RingLoadOp>(before);
        load && load.getNextRows() == op.getNextRows() &&
        load.getTile() == op.getTile() && load.getFill() == op.getFill() &&
        isShared(load) == isShared(op))
      return load;
  return {};
}

bool BoxMachine::placeEntries(LaneLowering &lower, RingLoadOp op,
                              PackedFill &fill) {
  int64_t size = fill.entryBytes(), lanes = lower.target.waveSize;
  RingLoadOp alike = asksAlike(op);
  auto [own, isNew] = entriesAhead.try_emplace(op.getRing());
  int64_t other = alike ? entriesAhead.lookup(alike.getRing()) : -1;
  if (isNew)
    own->second = alike ? other : lower.takeLds(2 * fill.warps * lanes * size);
  fill.stepOfEntries = fill.warps * lanes * size;
  Value share =
      arith::RemUIOp::create(lower.b, lower.warp, lower.i32(fill.warps));
  Value thread = fill.add(fill.mul(share, lanes), lower.lane);
  fill.entries = fill.add(lower.i32(own->second), fill.mul(thread, size));
  return own->second != other;
}

void BoxMachine::emitPackedAhead(LaneLowering &lower, RingLoadOp op,
                                 PackedFill &fill, Value full, Value empty,
                                 Value emptyParity) {
  ImplicitLocOpBuilder &b = lower.b;
  int64_t warps = warpsOfSlot(lower, op), bytes = 0;
  fill.warps = warps;
  if (fill.isWidened()) {
    auto [own, isNew] = bytesAhead.try_emplace(op.getRing());
    if (isNew)
      own->second = lower.takeLds(warps * fill.bytesOfWarp());
    bytes = own->second;
  }
  fill.divide(warps, lower.i32(bytes));
  fill.sends = fill.blocks > 1 && fill.isWidened();
  if (op.getBegin()) {
    // What was begun for a tile behind the last one, of the same filling, may
    // be on its way.
    if (!followsAnother(op))
      NVVM::CpAsyncWaitGroupOp::create(b, 0);
    int64_t next = op.getNextRows();
    bool asked = op.getAsked(), asks = false;
    Value number = lower.toI32(lower.single(op.getFill()));
    // Of rows that no table places nothing is asked.
    if ((next || asked) && fill.tile.map == RowMap::Table)
      asks = placeEntries(lower, op, fill) && next;
    Values known = ifAnyRow(lower, fill.tile, fill.words(), [&]() -> Values {
      return fill.knownAhead(asked && fill.entries ? fill.entryOf(number)
                                                   : Value());
    });
    if (asks)
      fill.askEntry(next, number);
    // What is not widened goes to its place.
    if (!fill.isWidened())
      emitBarrierWait(lower, empty, emptyParity);
    fill.copyAhead(known);
    NVVM::CpAsyncCommitGroupOp::create(b);
    return;
  }
  // One fence serves what two loads have filled.
  auto next = dyn_cast_or_null<RingLoadOp>(op->getNextNode());
  if (!fill.isWidened() && !postponed.barrier && next && next.ends() &&
      packedRowOf(next.getTile()) && warpsOfSlot(lower, next) == warps) {
    postponed = {full, int64_t(op.getYounger())};
    return;
  }
  int64_t younger = op.getYounger();
  if (postponed.barrier)
    younger = std::min(younger, postponed.younger);
  NVVM::CpAsyncWaitGroupOp::create(b, younger);
  if (fill.isWidened()) {
    // Each lane has waited for its own.
    NVVM::SyncWarpOp::create(b, lower.i32(-1));
    fill.widenAhead([&] { emitBarrierWait(lower, empty, emptyParity); });
  }
  fill.arrive(pointer(lower, full));
  if (postponed.barrier)
    emitBarrierArrive(lower, postponed.barrier,
                      arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                            lower.lane, lower.i32(0)));
  postponed = {};
}
