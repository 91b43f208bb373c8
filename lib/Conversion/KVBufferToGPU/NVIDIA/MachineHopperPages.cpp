//===- MachineHopperPages.cpp - Tiles over tiny pages on sm_90a -*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tiles over pages of which no box of the copy engine can be made: the lanes
/// of a warp copy them, 16 bytes each. What decides is how many instructions
/// that takes, since consumers share the scheduler (docs/tuning.md).
///
//===----------------------------------------------------------------------===//

#include "KVBufferToGPU/CachePlaces.h"
#include "KVBufferToGPU/PackedRows.h"
#include "KVBufferToGPU/Pages.h"
#include "MachineHopper.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::hopper;

Value hopper::nearestRow(Lanes &lower, const TileView &tile, Value row) {
  ImplicitLocOpBuilder &b = lower.b;
  Value last = arith::SubIOp::create(b, tile.hi, lower.i32(1));
  return arith::MaxSIOp::create(b, arith::MinSIOp::create(b, row, last),
                                tile.lo);
}

Values hopper::ifAnyRow(Lanes &lower, const TileView &tile, int64_t count,
                        function_ref<Values()> emit) {
  ImplicitLocOpBuilder &b = lower.b;
  SmallVector<Type> types(count, b.getI32Type());
  Value any =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, tile.lo, tile.hi);
  auto ifOp = scf::IfOp::create(b, types, any, /*addThenBlock=*/true,
                                /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  scf::YieldOp::create(b, emit());
  b.setInsertionPointToStart(ifOp.elseBlock());
  scf::YieldOp::create(b, Values(count, lower.i32(0)));
  return Values(ifOp.getResults());
}

/// Rows that a warp copies. Neighbouring lanes, a group, copy one row of an LDS
/// block, and the same columns of the blocks beside it; so a step copies as
/// many rows as there are groups. Each lane finds out where one row begins of
/// every 32: its group knows the rows that it copies in its next steps, and a
/// step asks a lane of the own group, whose place there is a number. Where a
/// page has an even number of rows, a group copies two of them after each other
/// and asks for the first one alone.
struct BoxMachine::RowCopies {
  Lanes &lower;
  ImplicitLocOpBuilder &b;
  KVBufferAttr params;
  /// Shared memory's address, i32.
  Value ldsAddress;
  SharedTile layout;
  int64_t lanes, perRow, rowsPerStep;
  /// The lane's place in its group, and the group, i32.
  Value place, group;
  /// Where the lane's part of a row lies in LDS.
  LinearAddress address;
  /// Rows of one page that a group copies after each other, and how many bytes
  /// they are apart, i64.
  int64_t together = 1;
  Value rowStride;
  /// Where lanes hold places in units, not halves of addresses: the address of
  /// the lane's part of place 0, and what is above the 32 bits of places, i64.
  struct Units {
    Value begin, upper;
  };
  std::optional<Units> inUnits;

  RowCopies(Lanes &lower, KVBufferAttr params, Value ldsAddress)
      : lower(lower), b(lower.b), params(params), ldsAddress(ldsAddress),
        layout(sharedTile(params)), lanes(lower.target.waveSize),
        perRow(rowBytes(params) / kTensorAlignment),
        rowsPerStep(lanes / perRow) {
    place = arith::AndIOp::create(b, lower.lane, lower.i32(perRow - 1));
    group =
        arith::ShRUIOp::create(b, lower.lane, lower.i32(llvm::Log2_64(perRow)));
  }

  Value i64(int64_t value) {
    return arith::ConstantIntOp::create(b, value, 64);
  }

  /// Goes on with two rows at a time.
  void joinRows(const TileView &tile) {
    together = 2;
    address.terms.back() = {group, images("row", together, rowsPerStep)};
    rowStride = arith::MulIOp::create(
        b,
        arith::IndexCastOp::create(b, b.getI64Type(), tile.rowStride)
            .getResult(),
        i64(layout.elementBytes));
  }

  /// Bytes in LDS that `count` numbers are apart, `step` of a dimension each.
  SmallVector<int64_t> images(StringRef dim, int64_t step, int64_t count) {
    SmallVector<int64_t> basis =
        imagesOf(layout, dim, llvm::Log2_64(step), llvm::Log2_64_Ceil(count));
    for (int64_t &image : basis)
      image *= layout.elementBytes;
    return basis;
  }

  /// Of `count` rows, or as many times so many together, 32 at most, the one
  /// that this lane knows, i32.
  Value known(int64_t count) {
    Value row = arith::AddIOp::create(
        b, arith::MulIOp::create(b, place, lower.i32(rowsPerStep)).getResult(),
        group);
    if (count < lanes)
      row = arith::MinUIOp::create(b, row, lower.i32(count - 1));
    return row;
  }

  /// Bytes of elements, an index, as i64.
  Value bytesOf(Value elements) {
    return arith::MulIOp::create(
        b, arith::IndexCastOp::create(b, b.getI64Type(), elements).getResult(),
        i64(layout.elementBytes));
  }
  /// The address of element `line`, i64.
  Value addressOf(Value data, Value line) {
    Value begin = arith::IndexCastOp::create(
        b, b.getI64Type(),
        memref::ExtractAlignedPointerAsIndexOp::create(b, lower.flat(data)));
    return arith::AddIOp::create(b, begin, bytesOf(line));
  }
  /// The lower and upper half, i32, of an address.
  Values halves(Value address) {
    Type i32 = b.getI32Type();
    return {
        arith::TruncIOp::create(b, i32, address),
        arith::TruncIOp::create(
            b, i32, arith::ShRUIOp::create(b, address, i64(32)).getResult())};
  }
  /// Those of the address of element `line`.
  Values halves(Value data, Value line) {
    return halves(addressOf(data, line));
  }
  /// Those of what lies `inPage` elements behind the begin of a page, of which
  /// one multiplication is all that each row has of its own.
  Values halvesInPage(const TileView &tile, Value page, Value inPage) {
    Value number = arith::ExtUIOp::create(b, b.getI64Type(), page);
    Value at = arith::MulIOp::create(b, number, bytesOf(tile.pageStride));
    at = arith::AddIOp::create(b, at, addressOf(tile.data, tile.base));
    return halves(arith::AddIOp::create(b, at, bytesOf(inPage)));
  }

  /// Units of `kTensorAlignment` bytes of elements, an index, as i64.
  Value unitsOf(Value elements) {
    return arith::ShRUIOp::create(b, bytesOf(elements),
                                  i64(llvm::Log2_64(kTensorAlignment)));
  }
  /// Goes on with places in units: they are counted from a tile's first row of
  /// page 0 on, whose address is the rest.
  void countUnits(const TileView &tile) {
    Value begin =
        arith::AddIOp::create(b, addressOf(tile.data, tile.base), placeBytes());
    // The upper half of a stride, which is 0 where places fit 32 bits. ptxas
    // does not know that: of 32 bits it makes a multiplication to 64 bits,
    // which costs more than the two additions that it makes of these (H200,
    // docs/tuning.md).
    Value upper = arith::AndIOp::create(b, unitsOf(tile.pageStride),
                                        i64(-(int64_t(1) << 32)));
    inUnits = {begin, upper};
  }
  /// The place of what lies `inPage` elements behind the begin of a page, i32.
  Value placeInPage(const TileView &tile, Value page, Value inPage) {
    Type i32 = b.getI32Type();
    Value stride = arith::TruncIOp::create(b, i32, unitsOf(tile.pageStride));
    return arith::AddIOp::create(
        b, arith::MulIOp::create(b, page, stride).getResult(),
        arith::TruncIOp::create(b, i32, unitsOf(inPage)).getResult());
  }
  /// Whether all places of a cache of `pages` pages, an index, fit 32 bits.
  Value placesFit(const TileView &tile, Value pages) {
    Value most = i64(int64_t(1) << 32);
    auto reach = [&](Value count, Value stride) -> Value {
      return arith::MulIOp::create(
          b, arith::SubIOp::create(b, count, i64(1)).getResult(), stride);
    };
    auto isLess = [&](Value units) -> Value {
      return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, units, most);
    };
    Value count = arith::IndexCastOp::create(b, b.getI64Type(), pages);
    Value stride = unitsOf(tile.pageStride);
    Value units = reach(count, stride);
    // The stride, too: of one page it is any number, and its upper half is in
    // places (`countUnits`).
    Value fits = arith::AndIOp::create(b, isLess(stride), isLess(units));
    int64_t rows = tile.type.getPageSize();
    if (rows == 1)
      return fits;
    Value ofRows = reach(i64(rows), unitsOf(tile.rowStride));
    fits = arith::AndIOp::create(b, fits, isLess(ofRows));
    return arith::AndIOp::create(
        b, fits, isLess(arith::AddIOp::create(b, units, ofRows)));
  }

  /// What lane `from` of the own group holds, as i64.
  Value ask(Value half, int64_t from) {
    Type i32 = b.getI32Type();
    int64_t segment = lanes - perRow;
    Value answer = NVVM::ShflOp::create(
        b, i32, lower.i32(-1), half, lower.i32(from),
        lower.i32(segment << 8 | (lanes - 1)),
        NVVM::ShflKindAttr::get(b.getContext(), NVVM::ShflKind::idx),
        UnitAttr());
    return arith::ExtUIOp::create(b, b.getI64Type(), answer);
  }

  /// Bytes of a row before the lane's part of it, i64.
  Value placeBytes() {
    return arith::ExtUIOp::create(
        b, b.getI64Type(),
        arith::MulIOp::create(b, place, lower.i32(kTensorAlignment))
            .getResult());
  }
  /// The address of the lane's part of a row, i64, as lane `from` holds it.
  Value askForRow(ArrayRef<Value> held, int64_t from) {
    if (!inUnits) {
      Value high = arith::ShLIOp::create(b, ask(held[1], from), i64(32));
      Value row = arith::OrIOp::create(b, high, ask(held[0], from));
      return arith::AddIOp::create(b, row, placeBytes());
    }
    Value units =
        arith::OrIOp::create(b, ask(held.front(), from), inUnits->upper);
    Value bytes =
        arith::ShLIOp::create(b, units, i64(llvm::Log2_64(kTensorAlignment)));
    return arith::AddIOp::create(b, bytes, inUnits->begin);
  }

  /// An address in LDS or in device memory as a pointer.
  Value pointerTo(Value address, int64_t byte, NVVM::NVVMMemorySpace space) {
    if (byte)
      address = arith::AddIOp::create(b, address, i64(byte));
    return LLVM::IntToPtrOp::create(
        b, LLVM::LLVMPointerType::get(b.getContext(), unsigned(space)),
        address);
  }

  /// Copies one row to where row `row` of the slot lies.
  void copyRow(Value slot, int64_t row, Value from, int64_t reach, Value there);
  /// Copies `count` rows, 32 at most, or as many times so many together, whose
  /// places or addresses the lanes hold, to where row `first` of the slot lies;
  /// `isThere` says whether the lane's row of a step, from this one on, is
  /// there, null: all are.
  void copy(Value slot, int64_t first, int64_t count, ArrayRef<Value> addresses,
            function_ref<Value(int64_t)> isThere);
};

void BoxMachine::RowCopies::copyRow(Value slot, int64_t row, Value from,
                                    int64_t reach, Value there) {
  // Columns that rows do not have are zeros, too.
  int64_t columns = params.getColumnsOf(/*block=*/0),
          width = kTensorAlignment / layout.elementBytes;
  auto bytesOf = [&](int64_t start) -> Value {
    Value ok = there;
    if (start + layout.blockCols > columns) {
      Value inside = arith::CmpIOp::create(
          b, arith::CmpIPredicate::slt, place,
          lower.i32(std::max<int64_t>(0, columns - start) / width));
      ok = ok ? arith::AndIOp::create(b, ok, inside).getResult() : inside;
    }
    if (!ok)
      return nullptr;
    return arith::SelectOp::create(b, ok, lower.i32(kTensorAlignment),
                                   lower.i32(0));
  };
  // Numbers that no lane's part reaches end up in the instruction.
  int64_t byte = layout.byteOffset(row, 0);
  Value to = arith::ExtUIOp::create(
      b, b.getI64Type(),
      arith::AddIOp::create(
          b, ldsAddress,
          lower.toI32(address.emit(b, slot, kSwizzleRows * rowBytes(params),
                                   byte & reach)))
          .getResult());
  for (int64_t block = 0; block < layout.repeats; ++block)
    NVVM::CpAsyncOp::create(
        b,
        pointerTo(to, (byte & ~reach) + block * blockBytes(params),
                  NVVM::NVVMMemorySpace::Shared),
        pointerTo(from, block * rowBytes(params),
                  NVVM::NVVMMemorySpace::Global),
        kTensorAlignment, NVVM::LoadCacheModifierKind::CG,
        bytesOf(block * layout.blockCols));
}

void BoxMachine::RowCopies::copy(Value slot, int64_t first, int64_t count,
                                 ArrayRef<Value> addresses,
                                 function_ref<Value(int64_t)> isThere) {
  int64_t reach = 0;
  for (const LinearAddress::Term &term : address.terms)
    for (int64_t image : term.basis)
      reach |= image;
  int64_t rowsAtOnce = together * rowsPerStep;
  for (int64_t row = 0, step = 0; row < count; row += rowsAtOnce, ++step) {
    OpBuilder::InsertionGuard guard(b);
    Value from = askForRow(addresses, step);
    if (row + rowsAtOnce > count)
      lower.enter(arith::CmpIOp::create(b, arith::CmpIPredicate::slt, group,
                                        lower.i32((count - row) / together)));
    Value there = isThere ? isThere(row) : Value();
    for (int64_t i = 0; i < together; ++i) {
      if (i)
        from = arith::AddIOp::create(b, from, rowStride);
      copyRow(slot, first + row + i, from, reach, there);
    }
  }
}

int64_t BoxMachine::warpsOfSlot(Lanes &lower, RingLoadOp op) {
  if (op.isAhead())
    return int64_t(op->getParentOfType<TeamOp>().getWarps());
  if (boxRows(lower, op) || hasPlaces(op.getTile()) ||
      packedRowOf(op.getTile()) || isInGroups(op.getTile()))
    return 1;
  // One warp takes too long for a tile of 128 rows of 256 bytes (H200,
  // docs/tuning.md).
  constexpr int64_t warps = 2;
  int64_t rows = op.getRing().getType().getParams().getBN();
  auto team = op->getParentOfType<TeamOp>();
  bool divides = rows % (warps * kSwizzleRows) == 0 && team &&
                 team.getWarps() % warps == 0;
  return divides ? warps : 1;
}

/// What the lanes of one warp copy of a tile over pages of few rows.
struct BoxMachine::SmallPages {
  BoxMachine &machine;
  Lanes &lower;
  ImplicitLocOpBuilder &b;
  RingLoadOp op;
  const TileView &tile;
  KVBufferAttr params;
  RowCopies copies;
  /// Rows of this warp, the first of them where it is not the tile's, and
  /// where they lie.
  int64_t rows;
  Value firstRow, slot;
  /// The cache that says how many pages there are, and their number, an index;
  /// null where none does.
  Value cache, pages;

  SmallPages(BoxMachine &machine, Lanes &lower, RingLoadOp op,
             const TileView &tile, Value slot);

  /// A row of this warp among those of the tile.
  Value inTile(Value row) {
    return firstRow ? arith::AddIOp::create(b, row, firstRow).getResult() : row;
  }
  /// Copies a tile whose rows are all there, once the slot is empty.
  void copyWhole(Value empty, Value emptyParity, bool byPlaces = false);
  /// The same, by places of rows if they fit 32 bits.
  void copyByPlaces(Value empty, Value emptyParity);
  /// The same for one that is cut.
  void copyCut(Value empty, Value emptyParity);
  /// Waits for the copies, and arrives.
  void arrive(Value full);
  /// Whether places of rows fit 32 bits.
  Value placesFit();
  /// Whether all rows of the tile are there.
  Value isWhole();
};

BoxMachine::SmallPages::SmallPages(BoxMachine &machine, Lanes &lower,
                                   RingLoadOp op, const TileView &tile,
                                   Value slot)
    : machine(machine), lower(lower), b(lower.b), op(op), tile(tile),
      params(op.getRing().getType().getParams()),
      copies(lower, params, machine.ldsAddress), slot(slot) {
  const SharedTile &layout = copies.layout;
  copies.address.terms.push_back(
      {copies.place,
       copies.images("col", kTensorAlignment / layout.elementBytes,
                     copies.perRow)});
  copies.address.terms.push_back(
      {copies.group, copies.images("row", 1, copies.rowsPerStep)});
  // This warp's rows of the tile; a swizzle repeats before they begin.
  int64_t warps = machine.warpsOfSlot(lower, op);
  rows = layout.rows / warps;
  if (warps == 1)
    return;
  Value share = arith::RemUIOp::create(b, lower.warp, lower.i32(warps));
  firstRow = arith::MulIOp::create(b, share, lower.i32(rows));
  this->slot = arith::AddIOp::create(
      b, slot,
      arith::MulIOp::create(b, firstRow, lower.i32(rowBytes(params)))
          .getResult());
}

void BoxMachine::SmallPages::copyWhole(Value empty, Value emptyParity,
                                       bool byPlaces) {
  // Look-ups are on their way while the warp waits for the slot. What does not
  // need their answers stands before the wait, and the rest after it: with more
  // of it before, the warp's registers do not suffice at first, and ptxas then
  // schedules the whole kernel in another way, the consumers' loop, too
  // (docs/tuning.md).
  struct Some {
    int64_t first, count;
    Value inPage, block;
  };
  SmallVector<Some> all;
  int64_t page = op.getTile().getType().getPageSize();
  RowCopies copies = this->copies;
  // An even row and the next one are of one page.
  if (page % 2 == 0 && startsAtMultiple(op.getTile(), 2) &&
      rows % (2 * copies.rowsPerStep) == 0)
    copies.joinRows(tile);
  int64_t atOnce = copies.together * copies.lanes;
  for (int64_t first = 0; first < rows; first += atOnce) {
    int64_t count = std::min(atOnce, rows - first);
    Value row = copies.known(count / copies.together);
    if (copies.together > 1)
      row = arith::MulIOp::create(b, row, lower.i32(copies.together));
    row = inTile(row);
    // Where pages divide what is looked up at once the next ones' numbers lie
    // a constant further on.
    bool apart = atOnce % page == 0;
    if (first && !apart)
      row = arith::AddIOp::create(b, row, lower.i32(first));
    Value block = tile.lookUpPage(lower, row, apart ? first / page : 0);
    Value inPage = arith::IndexCastUIOp::create(b, b.getIndexType(),
                                                tile.rowInPage(lower, row));
    all.push_back({first, count,
                   arith::MulIOp::create(b, inPage, tile.rowStride), block});
  }
  machine.emitBarrierWait(lower, empty, emptyParity);
  if (byPlaces)
    copies.countUnits(tile);
  SmallVector<Values> addresses;
  for (const Some &some : all)
    addresses.push_back(
        byPlaces ? Values{copies.placeInPage(tile, some.block, some.inPage)}
                 : copies.halvesInPage(tile, some.block, some.inPage));
  for (auto [some, address] : llvm::zip_equal(all, addresses))
    copies.copy(slot, some.first, some.count, address, nullptr);
}

void BoxMachine::SmallPages::copyByPlaces(Value empty, Value emptyParity) {
  auto ifFit = scf::IfOp::create(b, placesFit(), /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifFit.thenBlock());
  copyWhole(empty, emptyParity, /*byPlaces=*/true);
  b.setInsertionPointToStart(ifFit.elseBlock());
  copyWhole(empty, emptyParity, /*byPlaces=*/false);
}

void BoxMachine::SmallPages::copyCut(Value empty, Value emptyParity) {
  // A loop of little code. Rows that are not there are zeros: copies of no
  // bytes.
  machine.emitBarrierWait(lower, empty, emptyParity);
  int64_t count = std::min(copies.lanes, rows & -rows);
  auto loop = scf::ForOp::create(b, lower.i32(0), lower.i32(rows / count),
                                 lower.i32(1));
  keepLoop(loop);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value first =
      arith::MulIOp::create(b, loop.getInductionVar(), lower.i32(count));
  Value to = arith::AddIOp::create(
      b, slot,
      arith::MulIOp::create(b, first, lower.i32(rowBytes(params))).getResult());
  Values halves = ifAnyRow(lower, tile, 2, [&]() -> Values {
    Value row = arith::AddIOp::create(b, copies.known(count), first);
    row = nearestRow(lower, tile, inTile(row));
    return copies.halves(
        tile.data, tile.lineInPage(lower, row, tile.lookUpPage(lower, row)));
  });
  Value row = inTile(arith::AddIOp::create(b, first, copies.group));
  Value toEnd = arith::SubIOp::create(b, tile.hi, row), toBegin;
  if (!matchPattern(tile.lo, m_Zero()))
    toBegin = arith::SubIOp::create(b, tile.lo, row);
  copies.copy(to, 0, count, halves, [&](int64_t step) -> Value {
    Value ok = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, toEnd,
                                     lower.i32(step));
    if (toBegin)
      ok = arith::AndIOp::create(
          b, ok,
          arith::CmpIOp::create(b, arith::CmpIPredicate::sle, toBegin,
                                lower.i32(step))
              .getResult());
    return ok;
  });
}

void BoxMachine::SmallPages::arrive(Value full) {
  // A fence here costs the consumers nothing; theirs, after each wait, cost 6
  // to 9 % of a launch (H200, docs/tuning.md).
  NVVM::CpAsyncCommitGroupOp::create(b);
  NVVM::CpAsyncWaitGroupOp::create(b, 0);
  // Each lane makes its own writes visible; then all of them have.
  fenceWrites(lower);
  NVVM::SyncWarpOp::create(b, lower.i32(-1));
  machine.emitBarrierArrive(lower, full,
                            arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                                  lower.lane, lower.i32(0)));
}

Value BoxMachine::SmallPages::placesFit() {
  Operation *outermost = nullptr;
  for (Operation *parent = b.getInsertionBlock()->getParentOp();
       !isa<FunctionOpInterface>(parent); parent = parent->getParentOp())
    if (isa<LoopLikeOpInterface>(parent))
      outermost = parent;
  if (!outermost)
    return copies.placesFit(tile, pages);
  Value &fits = machine.placesFit[outermost][cache];
  if (!fits) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(outermost);
    fits = copies.placesFit(tile, pages);
  }
  return fits;
}

Value BoxMachine::SmallPages::isWhole() {
  Value whole = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, tile.hi,
                                      lower.i32(copies.layout.rows));
  if (!matchPattern(tile.lo, m_Zero()))
    whole = arith::AndIOp::create(
        b, whole,
        arith::CmpIOp::create(b, arith::CmpIPredicate::sle, tile.lo,
                              lower.i32(0))
            .getResult());
  return whole;
}

void BoxMachine::emitSmallPages(LaneLowering &lower, RingLoadOp op,
                                const TileView &tile, Value slot, Value full,
                                Value empty, Value emptyParity) {
  ImplicitLocOpBuilder &b = lower.b;
  SmallPages pages(*this, lower, op, tile, slot);
  pages.cache = countedBy(lower, op);
  if (pages.cache)
    pages.pages = lower.launchSize(sizeOfCache(pages.cache, kBlocksSize));
  if (op.ends()) {
    // Each lane makes its own writes visible; then all of them have.
    NVVM::CpAsyncWaitGroupOp::create(b, int64_t(op.getYounger()));
    fenceWrites(lower);
    NVVM::SyncWarpOp::create(b, lower.i32(-1));
    emitBarrierArrive(lower, full,
                      arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                            lower.lane, lower.i32(0)));
    return;
  }
  std::optional<PageBoxes> boxes;
  if (!op.getBegin())
    boxes = pageBoxes(lower, op);
  auto loadWhole = [&] {
    if (boxes)
      emitPageBoxes(lower, op, *boxes, tile, slot, full, empty, emptyParity);
    else if (pages.cache)
      pages.copyByPlaces(empty, emptyParity);
    else
      pages.copyWhole(empty, emptyParity);
  };
  if (op.getWhole()) {
    loadWhole();
  } else {
    auto ifWhole =
        scf::IfOp::create(b, pages.isWhole(), /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifWhole.thenBlock());
    loadWhole();
    b.setInsertionPointToStart(ifWhole.elseBlock());
    pages.copyCut(empty, emptyParity);
    if (boxes)
      pages.arrive(full);
  }
  if (op.getBegin()) {
    NVVM::CpAsyncCommitGroupOp::create(b);
    return;
  }
  // Boxes arrive by themselves.
  if (!boxes)
    pages.arrive(full);
}
