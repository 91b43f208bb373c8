//===- MachineAMDCopies.cpp - Tiles into LDS on AMD's CDNA ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KVBufferToGPU/Pages.h"
#include "KVBufferToGPU/Staging.h"
#include "MachineAMD.h"
#include "mlir/Dialect/AMDGPU/IR/AMDGPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace kvbuf;

/// The type of a buffer's elements on their way through registers: LLVM has no
/// 8-bit floats.
static Type storedElement(KVBufferAttr params) {
  Type element = params.getElementType();
  return element.getIntOrFloatBitWidth() == 8
             ? Type(IntegerType::get(element.getContext(), 8))
             : element;
}

/// An offset past the end of every range (they are shorter than 2^31 bytes).
static constexpr int64_t kOutside = INT32_MIN;
/// A row past the end of every tile, and so are some that follow it.
static constexpr int64_t kNoRow = INT32_MAX / 2;

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

StagingPlan::StagingPlan(const TargetInfo &target, KVBufferAttr params,
                         int64_t threads, unsigned halfBit)
    : transposed(isTurnedInLds(target, params)), halfBit(halfBit),
      threads(threads) {
  int64_t elements = params.getSmemStageSize();
  int64_t perVector = params.getSimdWidth();
  if (transposed) {
    // 16 bytes of each of four keys, or 8 where that keeps more threads busy.
    width = elements / (4 * perVector) >= threads ? perVector : perVector / 2;
    pieces = elements / (4 * width);
  } else {
    width = perVector;
    pieces = elements / width;
    partBytes = params.getSwizzleOfBlocks().unit;
  }
  steps = llvm::divideCeil(pieces, threads);
}

/// Neighbouring lanes take so many neighbouring pieces of columns of `perKeys`,
/// a power of two up to 8; the next ones those of other keys.
static int64_t piecesTogether(int64_t perKeys) {
  return std::min<int64_t>(8, perKeys & -perKeys);
}

/// Whether all keys of some columns are dealt before other columns: where
/// pieces of columns are no power of two, lanes that are served together would
/// have columns that no bits of their numbers choose.
static bool dealsKeysFirst(int64_t perKeys) {
  return !llvm::isPowerOf2_64(perKeys);
}

LaneAccess StagingPlan::stores(KVBufferAttr params) const {
  // As `pieceAt` deals pieces.
  LaneAccess access;
  access.width = 4 * params.getElementType().getIntOrFloatBitWidth() / 8;
  int64_t perKeys = params.getSmemCols() / width, col = width;
  auto addCols = [&](int64_t count) {
    for (; count > 1; count /= 2, col *= 2)
      access.lanes.push_back({0, col});
  };
  auto addKeys = [&] {
    for (unsigned bit = 0; int64_t(4) << bit < params.getBN(); ++bit)
      if (bit != halfBit)
        access.lanes.push_back({4 << bit, 0});
  };
  int64_t together = piecesTogether(perKeys);
  addCols(together);
  access.lanes.push_back({4 << halfBit, 0});
  if (dealsKeysFirst(perKeys))
    addKeys();
  // Of columns that come last, a wave has whole powers of two.
  addCols(llvm::bit_floor(uint64_t(perKeys / together)));
  if (!dealsKeysFirst(perKeys))
    addKeys();
  return access;
}

PagesOfTile::PagesOfTile(const TargetInfo &target, DramLoadOp op,
                         int64_t warps) {
  rows = op.getTile().getType().getRows();
  page = op.getTile().getType().getPageSize();
  // Groups of rows follow each other, and are in no table.
  if (!page || !llvm::all_of(fragmentSources(op.getTile()), [](Value source) {
        return static_cast<bool>(source.getDefiningOp<CacheTileOp>());
      }))
    return;
  atRows = startsAtMultiple(op.getTile(), rows);
  count = aligned() ? rows / page : llvm::divideCeil(rows - 1, page) + 1;
  byLane = target.lanesLookUp(rows, page, warps);
  // Each takes scalar registers, of which a wave has a hundred.
  together = !byLane && count <= 8;
}

namespace {

/// The bits of `value` from bit `from` on, `count` of them, at bit 0.
Value bitsOf(Lanes &lower, Value value, unsigned from, int64_t size) {
  ImplicitLocOpBuilder &b = lower.b;
  if (from)
    value = arith::ShRUIOp::create(b, value, lower.i32(from));
  return arith::AndIOp::create(b, value, lower.i32(size - 1));
}

/// The elements of `data` from element `base` on. What stays the same through a
/// loop is one address then.
Value flatFrom(Lanes &lower, Value data, Value base) {
  ImplicitLocOpBuilder &b = lower.b;
  Value flat = lower.flat(data);
  auto known = cast<MemRefType>(flat.getType());
  auto layout = StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic,
                                       /*strides=*/{1});
  auto type = MemRefType::get(known.getShape(), known.getElementType(), layout,
                              known.getMemorySpace());
  // The length is of no consequence.
  return memref::ReinterpretCastOp::create(
      b, type, flat, base,
      ArrayRef<OpFoldResult>{lower.index(std::numeric_limits<int64_t>::max())},
      ArrayRef<OpFoldResult>{b.getIndexAttr(1)});
}

/// A tile's rows, the columns of them that a buffer takes, as ranges of DRAM.
class RowSource {
public:
  RowSource(Lanes &lower, DramLoadOp op, const TileValues &tile)
      : lower(lower), b(lower.b), op(op), tile(tile),
        pages(lower.target, op, lower.schedule.getWarps()),
        elementBytes(
            op.getTile().getType().getElementType().getIntOrFloatBitWidth() /
            8),
        columns(
            op.getBuffer().getType().getParams().getColumnsOf(op.getBlock())) {
    stride = arith::MulIOp::create(b, lower.toI32(tile.rowStride),
                                   lower.i32(elementBytes));
    hi = tile.hi;
    if (op.getWhole())
      hi = lower.i32(op.getTile().getType().getRows());
    if (mayBeginLater())
      lo = tile.lo;
    if (op.getPred())
      pred = lower.single(op.getPred());
  }

  /// Bytes from one row to the next.
  Value stride;
  /// Whether each row has to be looked up in a table of pages.
  bool paged() const { return tile.isPaged(); }

  /// The range of the rows [first, first + rows), all of one page if paged;
  /// those that are not valid are outside. `first` is the same in all lanes.
  /// Lane offsets count from row `first` and need `shift` added.
  Value range(Value first, int64_t rows, Value &shift) {
    Value zero = lower.i32(0);
    Value from = lo ? sub(lo, first) : Value();
    if (from)
      from = arith::MaxSIOp::create(b, from, zero);
    Value upto = arith::MinSIOp::create(b, sub(hi, first), lower.i32(rows));
    Value count = from ? sub(upto, from) : upto;
    Value some =
        arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, count, zero);
    if (pred)
      some = arith::AndIOp::create(b, some, pred);
    Value length = arith::AddIOp::create(
        b, arith::MulIOp::create(b, sub(count, lower.i32(1)), stride),
        lower.i32(columns * elementBytes));
    length = arith::SelectOp::create(b, some, length, zero);
    Value base = tile.base;
    Value row = lower.toIndex(first);
    if (knowsPages()) {
      base = lineOf(row, /*together=*/true);
    } else if (paged()) {
      auto guarded = scf::IfOp::create(b, TypeRange{b.getIndexType()}, some,
                                       /*addThenBlock=*/true,
                                       /*addElseBlock=*/true);
      {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToStart(guarded.thenBlock());
        scf::YieldOp::create(b, lineOf(row));
        b.setInsertionPointToStart(guarded.elseBlock());
        scf::YieldOp::create(b, lower.index(0));
      }
      base = guarded.getResult(0);
    } else {
      base = arith::AddIOp::create(
          b, base, arith::MulIOp::create(b, row, tile.rowStride));
    }
    shift = Value();
    if (from) {
      // Row `from` becomes the range's first; offsets before it wrap
      // around to the end of the address space.
      base = arith::AddIOp::create(
          b, base,
          arith::MulIOp::create(b, lower.toIndex(from), tile.rowStride));
      shift = sub(zero, arith::MulIOp::create(b, from, stride));
    }
    return DramRangeOp::create(b, tile.data, base, length);
  }

  /// Element offset of row `row` (an index) of the tile, by its page.
  /// `together`: the row is the same in all lanes.
  Value lineOf(Value row, bool together = false) {
    // The lane of its number has looked up a row's page.
    if (tile.pages) {
      Value found;
      if (together)
        found = gpu::SubgroupBroadcastOp::create(
            b, b.getI32Type(), tile.pages, lower.toI32(row),
            gpu::BroadcastType::specific_lane);
      else
        found = gpu::ShuffleOp::create(b, tile.pages, lower.toI32(row),
                                       lower.i32(lower.target.waveSize),
                                       gpu::ShuffleMode::IDX)
                    .getShuffleResult();
      Value key = row;
      if (!pages.aligned())
        key = arith::AddIOp::create(b, tile.firstKey, row);
      Value inPage = pageOf(lower, key, pages.page).second;
      Value line = arith::AddIOp::create(
          b, tile.base, arith::MulIOp::create(b, inPage, tile.rowStride));
      return arith::AddIOp::create(b, line,
                                   timesStride(found, tile.pageStride));
    }
    // Groups of rows follow each other.
    if (!tile.table)
      return rowLine(lower, op.getTile().getType(), tile, lower.toI32(row));
    if (knowsPages()) {
      // The page's number among the tile's. Comparisons that no loop changes
      // would be kept as masks, two scalar registers each, by a backend that
      // has too few: lanes count many pages from the cache's first.
      Value own, inPage;
      if (pages.aligned() && (together || pages.count <= 2)) {
        std::tie(own, inPage) = pageOf(lower, row, pages.page);
        own = lower.toI32(own);
      } else {
        Value key = arith::AddIOp::create(b, tile.firstKey, row);
        std::tie(own, inPage) = pageOf(lower, key, pages.page);
        own = sub(lower.toI32(own), lower.toI32(firstPage));
      }
      Value line = pageLines.front();
      for (size_t i = 1; i < pageLines.size(); ++i)
        line = arith::SelectOp::create(
            b,
            arith::CmpIOp::create(b, arith::CmpIPredicate::eq, own,
                                  lower.i32(i)),
            pageLines[i], line);
      return arith::AddIOp::create(
          b, line,
          arith::MulIOp::create(b, inPage, tile.rowStride).getResult());
    }
    Value key = arith::AddIOp::create(b, tile.firstKey, row);
    auto [number, inPage] = pageOf(lower, key, pages.page);
    Value block = blockAt(lower, tile.table,
                          arith::AddIOp::create(b, tile.tableBase, number));
    Value line = arith::AddIOp::create(
        b, arith::MulIOp::create(b, block, tile.pageStride),
        arith::MulIOp::create(b, inPage, tile.rowStride));
    return arith::AddIOp::create(b, line, tile.base);
  }

  /// The same of a lane's row (i32). Where it is not there none is looked up,
  /// and the offset means nothing.
  Value lineOfLane(Value row) {
    if (!paged())
      return rowLine(lower, op.getTile().getType(), tile, row);
    // Lanes ask each other together.
    if (knowsPages())
      return lineOf(lower.toIndex(row));
    auto guarded = scf::IfOp::create(b, TypeRange{b.getIndexType()}, valid(row),
                                     /*addThenBlock=*/true,
                                     /*addElseBlock=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(guarded.thenBlock());
    scf::YieldOp::create(b, lineOf(lower.toIndex(row)));
    b.setInsertionPointToStart(guarded.elseBlock());
    scf::YieldOp::create(b, lower.index(0));
    return guarded.getResult(0);
  }

  /// Looks up the pages that rows of the tile may be in, the same for all lanes
  /// (scalar loads, for which no copy on its way has to land). `lineOf` then
  /// takes them by selection; it looks for itself where they are too many.
  void lookUpPages() {
    if (!tile.table || !pages.together)
      return;
    Value first = lo ? lo : lower.i32(0);
    Value last = sub(hi, lower.i32(1));
    Value some;
    // None is looked up for rows that are not there.
    bool clamps = !op.getWhole() || !pages.aligned();
    if (!op.getWhole())
      some = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, last, first);
    if (pred)
      some = some ? arith::AndIOp::create(b, some, pred).getResult() : pred;
    Value inFirst;
    std::tie(firstPage, inFirst) = pageOf(lower, tile.firstKey, pages.page);
    // Pages are counted from the tile's first one, in 32 bits: they are few.
    auto numberOf = [&](Value row) -> Value {
      if (!pages.aligned())
        row = arith::AddIOp::create(b, lower.toI32(inFirst), row);
      return arith::DivUIOp::create(b, row, lower.i32(pages.page));
    };
    // One address in the table that no tile changes.
    Value table = flatFrom(lower, tile.table, tile.tableBase);
    auto look = [&] {
      Value least, most;
      if (clamps) {
        least = numberOf(first);
        most = numberOf(last);
      }
      Values lines;
      for (int64_t i = 0; i < pages.count; ++i) {
        Value number = lower.i32(i);
        if (clamps) {
          number = arith::MaxUIOp::create(b, number, least);
          number = arith::MinUIOp::create(b, number, most);
        }
        Value entry =
            arith::AddIOp::create(b, firstPage, lower.toIndex(number));
        Value block = arith::IndexCastUIOp::create(
            b, b.getIndexType(),
            memref::LoadOp::create(b, table, ValueRange{entry}).getResult());
        lines.push_back(arith::AddIOp::create(
            b, tile.base,
            arith::MulIOp::create(b, block, tile.pageStride).getResult()));
      }
      return lines;
    };
    if (!some) {
      pageLines = look();
      return;
    }
    SmallVector<Type> types(pages.count, b.getIndexType());
    auto guarded = scf::IfOp::create(b, types, some, /*addThenBlock=*/true,
                                     /*addElseBlock=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(guarded.thenBlock());
    scf::YieldOp::create(b, look());
    b.setInsertionPointToStart(guarded.elseBlock());
    scf::YieldOp::create(b, Values(pages.count, lower.index(0)));
    pageLines.assign(guarded.getResults().begin(), guarded.getResults().end());
  }

  /// Whether `lineOf` looks nothing up, so that it may be asked of rows that
  /// are not there.
  bool knowsPages() const { return tile.pages || !pageLines.empty(); }

  /// Whether rows `count` i to `count` i + `count` - 1 lie in one page, one
  /// after the other.
  bool keeps(int64_t count) const {
    return knowsPages() && pages.atRows && pages.rows % count == 0 &&
           pages.page % count == 0;
  }

  /// Whether rows before the first valid one may exist, and rows past the last.
  bool beginsLater() const { return lo != nullptr; }

  /// Whether a lane's row, one of the tile's, is valid.
  Value valid(Value row) {
    if (op.getWhole())
      return pred ? pred : arith::ConstantIntOp::create(b, 1, 1).getResult();
    Value ok = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, row, hi);
    if (lo)
      ok = arith::AndIOp::create(
          b, ok, arith::CmpIOp::create(b, arith::CmpIPredicate::sge, row, lo));
    if (pred)
      ok = arith::AndIOp::create(b, ok, pred);
    return ok;
  }

  /// `offset`, or a place outside of every range where column `col` (in bytes,
  /// plus `constant`) is past the buffer's. `bound`: a column that `col` +
  /// `constant` stays below.
  Value insideColumns(Value offset, Value col, int64_t constant,
                      int64_t bound) {
    int64_t limit = columns * elementBytes;
    if (bound <= limit)
      return offset;
    Value inside = arith::CmpIOp::create(
        b, arith::CmpIPredicate::slt, col,
        lower.i32(std::max<int64_t>(0, limit - constant)));
    return offsetIf(inside, offset);
  }

  /// `offset`, or a place outside of every range. A lane's bound stays the same
  /// through a loop, in a vector register; a choice between offsets would take
  /// the mask of the lanes, two scalar registers.
  Value offsetIf(Value condition, Value offset) {
    Value bound = arith::SelectOp::create(b, condition, lower.i32(INT32_MAX),
                                          lower.i32(kOutside));
    return arith::MinSIOp::create(b, offset, bound);
  }

private:
  /// A number (i32, not negative) times a stride (an index). The halves are
  /// multiplied one by one: LLVM adds the high product to a register pair of
  /// which it leaves one undefined, perhaps the one that a look-up is to fill,
  /// and then waits for that.
  Value timesStride(Value number, Value stride) {
    Type i64 = b.getI64Type(), i32 = b.getI32Type();
    auto wide = [&](Value x) { return arith::ExtUIOp::create(b, i64, x); };
    Value whole = arith::IndexCastOp::create(b, i64, stride);
    Value half = arith::ConstantIntOp::create(b, 32, 64);
    Value low = arith::TruncIOp::create(b, i32, whole);
    Value high =
        arith::TruncIOp::create(b, i32, arith::ShRUIOp::create(b, whole, half));
    Value product = arith::MulIOp::create(b, wide(number), wide(low));
    Value above = arith::ShLIOp::create(
        b, wide(arith::MulIOp::create(b, number, high)), half);
    return lower.toIndex(arith::AddIOp::create(b, product, above));
  }

  Value sub(Value x, Value y) { return arith::SubIOp::create(b, x, y); }

  /// Whether rows before the first valid one may exist.
  bool mayBeginLater() {
    if (op.getWhole())
      return false;
    auto made = op.getTile().getDefiningOp<CacheTileOp>();
    if (!made)
      return !op.getTile().getDefiningOp<DramTileOp>();
    auto keys = made.getFrom().getDefiningOp<KeyRangeOp>();
    return !keys || made.getFrom() != keys.getLo() ||
           keys.getMask().boundsLeft();
  }

  Lanes &lower;
  ImplicitLocOpBuilder &b;
  DramLoadOp op;
  const TileValues &tile;
  PagesOfTile pages;
  int64_t elementBytes, columns;
  Value hi, lo, pred;
  /// The number of the tile's first page, and the element offset of each page
  /// of it.
  Value firstPage;
  Values pageLines;
};

/// Row and column (bytes) of a place in an LDS block, as functions of the bits
/// of the place's byte offset: the source of what lands there.
struct BlockSource {
  explicit BlockSource(const SharedTile &tile)
      : elementBytes(tile.elementBytes),
        elementShift(llvm::Log2_64(tile.elementBytes)) {
    // In elements, of which every place in the block holds one.
    LinearLayout block = tile.block();
    SmallVector<SmallVector<LinearLayout::Coord>> images(2);
    const StringRef dims[] = {"row", "col"};
    for (auto [i, dim] : llvm::enumerate(dims))
      for (unsigned bit = 0; bit < block.inLog2(dim); ++bit)
        images[i].push_back({block.basis(dim, bit, "byte") / elementBytes});
    places =
        *LinearLayout({"row", "col"}, images,
                      {LinearLayout::Dim{
                          "place", unsigned(llvm::Log2_64(tile.blockBytes() /
                                                          elementBytes))}})
             .inverse();
  }

  /// Images of `count` bits of the byte offset from bit `from` on.
  SmallVector<int64_t> rows(unsigned from, unsigned count) const {
    return images("row", from, count, 1);
  }
  SmallVector<int64_t> cols(unsigned from, unsigned count) const {
    return images("col", from, count, elementBytes);
  }
  int64_t row(int64_t byte) const {
    return places.apply({{"place", byte / elementBytes}}, "row");
  }
  int64_t col(int64_t byte) const {
    return places.apply({{"place", byte / elementBytes}}, "col") * elementBytes;
  }

private:
  SmallVector<int64_t> images(StringRef dim, unsigned from, unsigned count,
                              int64_t unit) const {
    SmallVector<int64_t> result;
    for (unsigned bit = 0; bit < count; ++bit)
      result.push_back(places.basis("place", from + bit - elementShift, dim) *
                       unit);
    return result;
  }
  LinearLayout places;
  int64_t elementBytes;
  unsigned elementShift;
};

} // namespace

//===----------------------------------------------------------------------===//
// Direct copies
//===----------------------------------------------------------------------===//

void AMDMachine::emitCopies(Lanes &lower, DramLoadOp op, const TileValues &tile,
                            Value slot) {
  ImplicitLocOpBuilder &b = lower.b;
  KVBufferAttr params = op.getBuffer().getType().getParams();
  SharedTile layout = sharedTile(params);
  CopyPlan plan = copyPlan(lower, params);
  BlockSource places(layout);
  RowSource source(lower, op, tile);
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

//===----------------------------------------------------------------------===//
// Through registers
//===----------------------------------------------------------------------===//

void AMDMachine::tokenTypes(Lanes &lower, KVBufferAttr params,
                            SmallVectorImpl<Type> &types) {
  if (!goesThroughRegisters(lower.target, params))
    return;
  StagingPlan plan = stagingPlan(lower, params);
  types.append(plan.steps * plan.vectors(),
               VectorType::get({plan.width}, storedElement(params)));
}

Values AMDMachine::emitLoad(Lanes &lower, DramLoadOp op, const TileValues &tile,
                            Value slot) {
  ImplicitLocOpBuilder &b = lower.b;
  KVBufferAttr params = op.getBuffer().getType().getParams();
  bool staged = goesThroughRegisters(lower.target, params);
  if (!tile.cols) {
    if (staged)
      return emitStagedLoads(lower, op, tile, /*checkCols=*/false);
    emitCopies(lower, op, tile, slot);
    return {};
  }
  // Most tiles have all their columns.
  SmallVector<Type> types;
  tokenTypes(lower, params, types);
  Value whole =
      arith::CmpIOp::create(b, arith::CmpIPredicate::sge, tile.cols,
                            lower.i32(op.getTile().getType().getCols()));
  auto ifWhole = scf::IfOp::create(b, types, whole, /*addThenBlock=*/true,
                                   /*addElseBlock=*/true);
  auto emitSide = [&](Block *side, bool cut) {
    OpBuilder::InsertionGuard guard(b);
    if (!side->empty())
      side->getTerminator()->erase();
    b.setInsertionPointToEnd(side);
    Values values;
    if (staged)
      values = emitStagedLoads(lower, op, tile, cut);
    else if (cut)
      emitCutCopies(lower, op, tile, slot);
    else
      emitCopies(lower, op, tile, slot);
    scf::YieldOp::create(b, values);
  };
  emitSide(ifWhole.thenBlock(), /*cut=*/false);
  emitSide(ifWhole.elseBlock(), /*cut=*/true);
  return Values(ifWhole.getResults());
}

/// Key (or row) and column of a thread's piece at step `step`, in elements, and
/// its number. `halves`: what the places of a vector's halves are XORed with,
/// bytes; null where halves stand in their order.
namespace {
struct Piece {
  Value row, col, number, halves;
};
} // namespace

static Piece pieceAt(Lanes &lower, KVBufferAttr params, const StagingPlan &plan,
                     Value number) {
  ImplicitLocOpBuilder &b = lower.b;
  if (plan.transposed) {
    // Neighbouring lanes take neighbouring columns. Eight of them fill the same
    // halves of all words of an LDS row; the next eight take the keys of the
    // other halves, so that sixteen lanes write to all banks.
    int64_t perKeys = params.getSmemCols() / plan.width;
    int64_t together = piecesTogether(perKeys);
    unsigned lowBits = llvm::Log2_64(together), halfBit = plan.halfBit;
    Value low = bitsOf(lower, number, 0, together);
    Value half = bitsOf(lower, number, lowBits, 2);
    Value rest = arith::ShRUIOp::create(b, number, lower.i32(lowBits + 1));
    Value keys, others;
    if (dealsKeysFirst(perKeys)) {
      int64_t count = params.getBN() / 8;
      keys = bitsOf(lower, rest, 0, count);
      others = arith::ShRUIOp::create(b, rest, lower.i32(llvm::Log2_64(count)));
    } else {
      Value count = lower.i32(perKeys / together);
      keys = arith::DivUIOp::create(b, rest, count);
      others = arith::RemUIOp::create(b, rest, count);
    }
    Value cols = arith::AddIOp::create(
        b, arith::MulIOp::create(b, others, lower.i32(together)).getResult(),
        low);
    Value above = arith::ShRUIOp::create(b, keys, lower.i32(halfBit));
    above = arith::ShLIOp::create(b, above, lower.i32(halfBit + 1));
    keys = arith::OrIOp::create(b, above,
                                bitsOf(lower, keys, 0, int64_t(1) << halfBit));
    keys = arith::OrIOp::create(
        b, keys, arith::ShLIOp::create(b, half, lower.i32(halfBit)));
    return {arith::MulIOp::create(b, keys, lower.i32(4)),
            arith::MulIOp::create(b, cols, lower.i32(plan.width)), number,
            Value()};
  }
  SharedTile layout = sharedTile(params);
  BlockSource places(layout);
  int64_t pieceBytes = plan.width * layout.elementBytes;
  int64_t perBlock = layout.blockBytes() / pieceBytes;
  unsigned bits = llvm::Log2_64(perBlock);
  Value inBlock = bitsOf(lower, number, 0, perBlock);
  Value block = arith::ShRUIOp::create(b, number, lower.i32(bits));
  unsigned shift = llvm::Log2_64(pieceBytes);
  Value row = emitLinear(b, inBlock, places.rows(shift, bits));
  SmallVector<int64_t> cols = places.cols(shift, bits);
  for (int64_t &image : cols)
    image /= layout.elementBytes;
  Value col = arith::AddIOp::create(
      b, emitLinear(b, inBlock, cols),
      arith::MulIOp::create(b, block, lower.i32(layout.blockCols)));
  if (plan.partBytes == pieceBytes)
    return {row, col, number, Value()};
  // The halves of a vector change places with each other, and with those of
  // other vectors as these do.
  int64_t half = plan.partBytes / layout.elementBytes;
  Value second = arith::AndIOp::create(b, col, lower.i32(half));
  col = arith::XOrIOp::create(b, col, second);
  Value halves =
      arith::MulIOp::create(b, second, lower.i32(layout.elementBytes));
  return {row, col, number, halves};
}

/// Stores a thread's piece, whose elements stand side by side in LDS but for
/// its halves.
static void storePiece(Lanes &lower, KVBufferAttr params,
                       const StagingPlan &plan, Value lds, Value slot,
                       const Piece &piece, Value vector) {
  ImplicitLocOpBuilder &b = lower.b;
  int64_t bytes = params.getElementType().getIntOrFloatBitWidth() / 8;
  Value first = arith::AddIOp::create(
      b, slot,
      arith::MulIOp::create(b, piece.number, lower.i32(plan.width * bytes)));
  int64_t part = plan.partBytes / bytes;
  for (int64_t at = 0; at < plan.width; at += part) {
    Value byte = first, stored = vector;
    if (piece.halves) {
      byte = arith::AddIOp::create(
          b, first,
          arith::XOrIOp::create(b, piece.halves, lower.i32(at * bytes))
              .getResult());
      stored = vector::ShuffleOp::create(
          b, vector, vector,
          llvm::to_vector(llvm::seq<int64_t>(at, at + part)));
    }
    Value element =
        arith::ShRUIOp::create(b, byte, lower.i32(llvm::Log2_64(bytes)));
    vector::StoreOp::create(b, stored, lds, ValueRange{lower.toIndex(element)},
                            /*nontemporal=*/false, llvm::Align(plan.partBytes));
  }
}

static Piece pieceOf(Lanes &lower, KVBufferAttr params, const StagingPlan &plan,
                     int64_t step) {
  ImplicitLocOpBuilder &b = lower.b;
  return pieceAt(
      lower, params, plan,
      arith::AddIOp::create(b, lower.thread, lower.i32(step * plan.threads)));
}

void AMDMachine::emitCutCopies(Lanes &lower, DramLoadOp op,
                               const TileValues &tile, Value slot) {
  ImplicitLocOpBuilder &b = lower.b;
  KVBufferAttr params = op.getBuffer().getType().getParams();
  // Pieces are vectors of the slot: the tile is not turned.
  StagingPlan plan = stagingPlan(lower, params);
  RowSource source(lower, op, tile);
  auto type = VectorType::get({plan.width}, params.getElementType());
  int64_t bytes = params.getElementType().getIntOrFloatBitWidth() / 8;
  Value lds = lower.shared(params.getElementType());
  OpBuilder::InsertionGuard guard(b);
  auto loop = scf::ForOp::create(b, lower.thread, lower.i32(plan.pieces),
                                 lower.i32(plan.threads));
  b.setInsertionPointToStart(loop.getBody());
  Piece piece = pieceAt(lower, params, plan, loop.getInductionVar());
  Value at = arith::AddIOp::create(b, source.lineOfLane(piece.row),
                                   lower.toIndex(piece.col));
  Value columns = arith::MinSIOp::create(
      b, tile.cols, lower.i32(params.getColumnsOf(op.getBlock())));
  Value vector =
      loadCut(lower, tile, type, at, source.valid(piece.row),
              arith::SubIOp::create(b, columns, piece.col), plan.width * bytes);
  storePiece(lower, params, plan, lds, slot, piece, vector);
  b.setInsertionPointAfter(loop);
  // Waits count instructions of other loads: these are done.
  amdgpu::MemoryCounterWaitOp::create(b, b.getI32IntegerAttr(0), IntegerAttr(),
                                      IntegerAttr(), IntegerAttr(),
                                      IntegerAttr());
}

Values AMDMachine::emitStagedLoads(Lanes &lower, DramLoadOp op,
                                   const TileValues &tile, bool checkCols) {
  ImplicitLocOpBuilder &b = lower.b;
  KVBufferAttr params = op.getBuffer().getType().getParams();
  StagingPlan plan = stagingPlan(lower, params);
  RowSource source(lower, op, tile);
  int64_t bytes = params.getElementType().getIntOrFloatBitWidth() / 8;
  int64_t width = plan.width;
  auto type = VectorType::get({width}, storedElement(params));
  Value range, shift;
  if (!checkCols) {
    if (source.paged())
      source.lookUpPages();
    else
      range = source.range(lower.i32(0), params.getBN(), shift);
  }
  // Of pages that are known every lane loads, so that waits can count: zeros
  // for a row that is not there.
  bool counted = range || source.knowsPages();
  Value zeros;
  if (counted && !range)
    zeros = zerosAt(lower, tile.data);
  if (counted) {
    // Waits count on these loads being younger than the copies before
    // them: the backend must not turn them round.
    using Allow = amdgpu::sched_barrier_opt_enum;
    amdgpu::SchedBarrierOp::create(
        b, Allow::non_mem_non_sideffect | Allow::valu | Allow::salu |
               Allow::mfma_wmma | Allow::all_ds | Allow::ds_read |
               Allow::ds_write | Allow::transcendental);
  }
  Values vectors;
  for (int64_t step = 0; step < plan.steps; ++step) {
    Piece piece = pieceOf(lower, params, plan, step);
    bool all = (step + 1) * plan.threads <= plan.pieces;
    Value exists;
    if (!all)
      exists = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, piece.number,
                                     lower.i32(plan.pieces));
    int64_t columns = params.getColumnsOf(op.getBlock());
    if (columns < params.getSmemCols()) {
      Value inside = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                           piece.col, lower.i32(columns));
      exists = exists ? arith::AndIOp::create(b, exists, inside) : inside;
    }
    Value boundedRow = piece.row;
    if (exists)
      boundedRow =
          arith::SelectOp::create(b, exists, piece.row, lower.i32(kNoRow));
    // Of a piece of four keys all may have one page, or each two.
    int64_t ofOnePage = !plan.transposed  ? 1
                        : source.keeps(4) ? 4
                        : source.keeps(2) ? 2
                                          : 1;
    Value piecesLine;
    for (int64_t key = 0; key < plan.vectors(); ++key) {
      Value row = arith::AddIOp::create(b, piece.row, lower.i32(key));
      if (range) {
        Value offset = arith::AddIOp::create(
            b, arith::MulIOp::create(b, row, source.stride),
            arith::MulIOp::create(b, piece.col, lower.i32(bytes)));
        if (shift)
          offset = arith::AddIOp::create(b, offset, shift);
        if (exists)
          offset = source.offsetIf(exists, offset);
        vectors.push_back(RangeLoadOp::create(b, type, range, offset));
        continue;
      }
      if (checkCols) {
        Value ok = source.valid(row);
        if (exists)
          ok = arith::AndIOp::create(b, ok, exists);
        Value at = arith::AddIOp::create(b, source.lineOfLane(row),
                                         lower.toIndex(piece.col));
        vectors.push_back(loadCut(
            lower, tile, type, at, ok,
            arith::SubIOp::create(b, tile.cols, piece.col), width * bytes));
        continue;
      }
      // Beside a window, what is not there has a row that no tile has, for the
      // same reason. Without one there are registers for masks.
      bool bounded = exists && source.beginsLater();
      Value ok = source.valid(
          bounded
              ? arith::AddIOp::create(b, boundedRow, lower.i32(key)).getResult()
              : row);
      if (exists && !bounded)
        ok = arith::AndIOp::create(b, ok, exists);
      auto load = [&](bool everywhere) -> Value {
        Value line;
        if (int64_t inPage = key % ofOnePage)
          line = arith::AddIOp::create(
              b, piecesLine,
              arith::MulIOp::create(b, lower.index(inPage), tile.rowStride)
                  .getResult());
        else
          line = piecesLine = source.lineOf(lower.toIndex(row));
        Value at = arith::AddIOp::create(b, line, lower.toIndex(piece.col));
        if (everywhere)
          at = arith::SelectOp::create(b, ok, at, zeros);
        Value loaded = vector::LoadOp::create(
            b, type.clone(params.getElementType()), lower.flat(tile.data),
            ValueRange{at}, /*nontemporal=*/false, llvm::Align(width * bytes));
        if (loaded.getType() != type)
          loaded = arith::BitcastOp::create(b, type, loaded);
        return loaded;
      };
      // Where each row finds its own page, none is looked up for a row that is
      // not there.
      vectors.push_back(counted ? load(/*everywhere=*/true)
                                : loadIf(lower, ok, type, [&] {
                                    return load(/*everywhere=*/false);
                                  }));
    }
  }
  return vectors;
}

void AMDMachine::emitStagedStores(Lanes &lower, KVBufferAttr params, Value slot,
                                  ArrayRef<Value> vectors) {
  ImplicitLocOpBuilder &b = lower.b;
  StagingPlan plan = stagingPlan(lower, params);
  Value lds = lower.shared(storedElement(params));
  int64_t bytes = params.getElementType().getIntOrFloatBitWidth() / 8;
  // `byte` as an index of elements.
  auto elementAt = [&](Value byte) {
    return lower.toIndex(
        arith::ShRUIOp::create(b, byte, lower.i32(llvm::Log2_64(bytes))));
  };
  std::optional<LinearLayout> layout;
  SmallVector<int64_t> keyImages, colImages;
  if (plan.transposed) {
    layout = transposedTile(lower, params).layout();
    for (unsigned bit = 0; bit < layout->inLog2("row"); ++bit)
      keyImages.push_back(layout->basis("row", bit, "byte"));
    for (unsigned bit = 0; bit < layout->inLog2("col"); ++bit)
      colImages.push_back(layout->basis("col", bit, "byte"));
  }
  for (int64_t step = 0; step < plan.steps; ++step) {
    Piece piece = pieceOf(lower, params, plan, step);
    OpBuilder::InsertionGuard guard(b);
    if ((step + 1) * plan.threads > plan.pieces) {
      Value exists = arith::CmpIOp::create(
          b, arith::CmpIPredicate::ult, piece.number, lower.i32(plan.pieces));
      b.setInsertionPointToStart(
          scf::IfOp::create(b, exists, /*withElseRegion=*/false).thenBlock());
    }
    if (!plan.transposed) {
      storePiece(lower, params, plan, lds, slot, piece, vectors[step]);
      continue;
    }
    // Four keys of each column: column j of the four loaded rows.
    Value place = arith::XOrIOp::create(b, emitLinear(b, piece.row, keyImages),
                                        emitLinear(b, piece.col, colImages));
    ArrayRef<Value> rows = vectors.slice(step * 4, 4);
    Value first = arith::AddIOp::create(b, slot, place);
    for (int64_t j = 0; j < plan.width; ++j) {
      Value low = vector::ShuffleOp::create(
          b, rows[0], rows[1], ArrayRef<int64_t>{j, plan.width + j});
      Value high = vector::ShuffleOp::create(
          b, rows[2], rows[3], ArrayRef<int64_t>{j, plan.width + j});
      Value keys = vector::ShuffleOp::create(b, low, high,
                                             ArrayRef<int64_t>{0, 1, 2, 3});
      int64_t image = layout->apply({{"col", j}}, "byte");
      // A slot begins at a multiple of what tells a piece's columns apart: one
      // address of a lane for all of them lives through a loop over slots.
      Value byte;
      if (image < slotAlignment(params))
        byte = arith::XOrIOp::create(b, first, lower.i32(image));
      else
        byte = arith::AddIOp::create(
            b, slot, arith::XOrIOp::create(b, place, lower.i32(image)));
      vector::StoreOp::create(b, keys, lds, ValueRange{elementAt(byte)},
                              /*nontemporal=*/false, llvm::Align(4 * bytes));
    }
  }
}
