//===- RowSource.cpp - Rows of tiles as ranges of DRAM ----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowSource.h"
#include "KVBufferToGPU/CachePlaces.h"
#include "KVBufferToGPU/Pages.h"
#include "KVBufferToGPU/Staging.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace kvbuf;

/// An offset past the end of every range (they are shorter than 2^31 bytes).
static constexpr int64_t kOutside = INT32_MIN;
/// The most pages that are looked up for all lanes together: each takes scalar
/// registers, of which a wave has a hundred.
static constexpr int64_t kPagesInScalars = 8;

/// Lanes of a wave whose choices are the bits of one word.
static constexpr int64_t kLanesOfWord = 64;

PagesOfTile::PagesOfTile(const TargetInfo &target, const TileLoad &load,
                         int64_t warps) {
  rows = load.type().getRows();
  page = load.type().getPageSize();
  // Groups of rows follow each other, and are in no table; nor are those that
  // each is found by the cache's type.
  if (!page || hasPlaces(load.tile) ||
      !llvm::all_of(fragmentSources(load.tile), [](Value source) {
        return static_cast<bool>(source.getDefiningOp<CacheTileOp>());
      }))
    return;
  atRows = startsAtMultiple(load.tile, rows);
  count = aligned() ? rows / page : llvm::divideCeil(rows - 1, page) + 1;
  byLane = target.lanesLookUp(rows, page, warps);
  together = !byLane && count <= kPagesInScalars;
}

/// The elements of `data` from element `base` on. What stays the same through a
/// loop is one address then.
static Value flatFrom(Lanes &lower, Value data, Value base) {
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

RowSource::RowSource(Lanes &lower, const TileLoad &load, const TileView &tile)
    : lower(lower), b(lower.b), load(load), tile(tile),
      pages(lower.target, load, lower.schedule.getWarps()),
      elementBytes(load.type().getElementType().getIntOrFloatBitWidth() / 8),
      columns(load.params.getColumnsOf(load.block)) {
  stride = arith::MulIOp::create(b, lower.toI32(tile.rowStride),
                                 lower.i32(elementBytes));
  hi = tile.hi;
  if (load.whole)
    hi = lower.i32(load.type().getRows());
  if (mayBeginLater(load))
    lo = tile.lo;
  if (load.pred)
    pred = lower.single(load.pred);
}

RowSource::Extent RowSource::extentOf(Value first, int64_t rows) {
  Extent extent;
  Value zero = lower.i32(0);
  if (lo)
    extent.from = arith::MaxSIOp::create(b, sub(lo, first), zero);
  Value upto = arith::MinSIOp::create(b, sub(hi, first), lower.i32(rows));
  extent.count = extent.from ? sub(upto, extent.from) : upto;
  extent.some =
      arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, extent.count, zero);
  if (pred)
    extent.some = arith::AndIOp::create(b, extent.some, pred);
  return extent;
}

Value RowSource::lineOfGroup(Value first, int64_t rows) {
  Value some = extentOf(first, rows).some;
  auto guarded =
      scf::IfOp::create(b, TypeRange{b.getIndexType()}, some,
                        /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(guarded.thenBlock());
  Value row = lower.toIndex(first);
  scf::YieldOp::create(b,
                       tile.map == RowMap::Table ? lookUp(row) : lineOf(row));
  b.setInsertionPointToStart(guarded.elseBlock());
  scf::YieldOp::create(b, lower.index(0));
  return guarded.getResult(0);
}

Value RowSource::range(Value first, int64_t rows, Value &shift, Value line) {
  Extent extent = extentOf(first, rows);
  Value zero = lower.i32(0);
  Value length = arith::AddIOp::create(
      b, arith::MulIOp::create(b, sub(extent.count, lower.i32(1)), stride),
      lower.i32(columns * elementBytes));
  length = arith::SelectOp::create(b, extent.some, length, zero);
  Value base = line;
  Value row = lower.toIndex(first);
  if (!base && paged() && (!knowsPages() || looksUpOwn()))
    base = lineOfGroup(first, rows);
  else if (!base && paged())
    base = lineOf(row, /*together=*/true);
  else if (!base)
    base = arith::AddIOp::create(b, tile.base,
                                 arith::MulIOp::create(b, row, tile.rowStride));
  shift = Value();
  if (extent.from) {
    // Row `from` becomes the range's first; offsets before it wrap
    // around to the end of the address space.
    base = arith::AddIOp::create(
        b, base,
        arith::MulIOp::create(b, lower.toIndex(extent.from), tile.rowStride));
    shift = sub(zero, arith::MulIOp::create(b, extent.from, stride));
  }
  return DramRangeOp::create(b, tile.data, base, length);
}

bool RowSource::looksUpOwn() const {
  return pages.together && pages.aligned() && lower.schedule.getWarps() > 1;
}

Value RowSource::ofLane(Value line, Value row, bool together) {
  Type i64 = b.getI64Type(), i32 = b.getI32Type();
  Value lane = lower.toI32(row), waveSize = lower.i32(lower.target.waveSize);
  auto ask = [&](Value word) -> Value {
    if (together)
      return gpu::SubgroupBroadcastOp::create(
          b, i32, word, lane, gpu::BroadcastType::specific_lane);
    return gpu::ShuffleOp::create(b, word, lane, waveSize,
                                  gpu::ShuffleMode::IDX)
        .getShuffleResult();
  };
  // As two words: LLVM takes shifts and sums of these apart.
  auto pair = VectorType::get({1}, i64);
  auto words = VectorType::get({2}, i32);
  Value both = vector::BitCastOp::create(
      b, words,
      vector::FromElementsOp::create(
          b, pair, arith::IndexCastOp::create(b, i64, line).getResult()));
  Values asked;
  for (int64_t word : {0, 1})
    asked.push_back(ask(vector::ExtractOp::create(b, both, word)));
  Value whole = vector::BitCastOp::create(
      b, pair, vector::FromElementsOp::create(b, words, asked));
  return lower.toIndex(vector::ExtractOp::create(b, whole, 0));
}

/// Where the row of a lane's number begins in its page, in elements: below
/// 2^31, as all that a tile's rows lie within.
Value RowSource::ownInPage() {
  Value page = lower.i32(pages.page), rowStride = lower.toI32(tile.rowStride);
  auto times = [&](Value rows) -> Value {
    return arith::MulIOp::create(b, rows, rowStride);
  };
  Value own = times(arith::RemUIOp::create(b, lower.lane, page));
  if (pages.aligned())
    return own;
  Value first = lower.toI32(pageOf(lower, tile.firstKey, pages.page).second);
  // Beside a window's masks there are no scalars for it.
  if (lower.target.waveSize == kLanesOfWord && !lo) {
    own = arith::SelectOp::create(b, isPageFurther(lower, first, pages.page),
                                  sub(own, times(page)), own);
    return arith::AddIOp::create(b, own, times(first));
  }
  // Both are less than a page, and their sum less than two: one more page than
  // there is would be a number below zero, the greater one without a sign.
  own = arith::AddIOp::create(b, own, times(first));
  return arith::MinUIOp::create(b, own, sub(own, times(page)));
}

void RowSource::findOwnLine() {
  ownLine = timesStride(tile.pages, tile.pageStride,
                        pages.page > 1 ? ownInPage() : Value());
}

Value RowSource::zeros() {
  if (!zeroLine)
    zeroLine = zerosAt(lower, tile.data,
                       zeroTimes * load.params.getSmemCols() * elementBytes);
  return zeroLine;
}

Value RowSource::askLine(Value row, bool mayHaveNone) {
  if (takesAny() && !mayHaveNone) {
    if (!ownLine)
      findOwnLine();
    return ofLane(ownLine, row, /*together=*/false);
  }
  if (!ownOrZeros) {
    Value own = arith::AddIOp::create(b, ownLine, sub(tile.base, zeros()));
    ownOrZeros =
        arith::SelectOp::create(b, valid(lower.lane), own, lower.index(0));
  }
  return ofLane(ownOrZeros, row, /*together=*/false);
}

Value RowSource::memoryOfAsked(Value col, bool mayHaveNone) {
  Value base = takesAny() && !mayHaveNone ? tile.base : zeros();
  return flatFrom(lower, tile.data,
                  arith::AddIOp::create(b, base, lower.toIndex(col)));
}

Value RowSource::lineOf(Value row, bool together) {
  if (tile.map == RowMap::Lanes && !ownLine)
    findOwnLine();
  if (tile.map == RowMap::Lanes)
    return arith::AddIOp::create(b, tile.base, ofLane(ownLine, row, together));
  // Groups of rows follow each other.
  if (tile.map != RowMap::Table)
    return tile.lineOf(lower, lower.toI32(row));
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
          arith::CmpIOp::create(b, arith::CmpIPredicate::eq, own, lower.i32(i)),
          pageLines[i], line);
    return arith::AddIOp::create(
        b, line, arith::MulIOp::create(b, inPage, tile.rowStride).getResult());
  }
  return lookUp(row);
}

Value RowSource::lookUp(Value row) {
  Value key = arith::AddIOp::create(b, tile.firstKey, row);
  auto [number, inPage] = pageOf(lower, key, pages.page);
  Value block = blockAt(lower, tile.table,
                        arith::AddIOp::create(b, tile.tableBase, number));
  Value line =
      arith::AddIOp::create(b, arith::MulIOp::create(b, block, tile.pageStride),
                            arith::MulIOp::create(b, inPage, tile.rowStride));
  return arith::AddIOp::create(b, line, tile.base);
}

Value RowSource::lineOfLane(Value row) {
  if (!paged())
    return tile.lineOf(lower, row);
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

void RowSource::lookUpPages() {
  if (tile.map == RowMap::Lanes)
    return findOwnLine();
  if (tile.map != RowMap::Table || !pages.together)
    return;
  Value first = lo ? lo : lower.i32(0);
  Value last = sub(hi, lower.i32(1));
  Value some;
  // None is looked up for rows that are not there.
  bool clamps = !load.whole || !pages.aligned();
  if (!load.whole)
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
      Value entry = arith::AddIOp::create(b, firstPage, lower.toIndex(number));
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

bool RowSource::keeps(int64_t count) const {
  return knowsPages() && pages.atRows && pages.rows % count == 0 &&
         pages.page % count == 0;
}

bool RowSource::isOnlyRead() const {
  return llvm::all_of(fragmentSources(load.tile), [&](Value source) {
    auto made = source.getDefiningOp<CacheTileOp>();
    auto cache = made ? dyn_cast<BlockArgument>(made.getCache()) : nullptr;
    if (!cache || cache.getOwner() != &lower.kernel.getBody().front())
      return false;
    auto access = lower.kernel.getArgAttrOfType<StringAttr>(
        cache.getArgNumber(), KVBufferDialect::kAccessAttr);
    return access && access.getValue() == "read";
  });
}

bool RowSource::takesAny() const {
  // Nobody reads what is loaded of tiles past the last; but where the kernel
  // appends, another block may store the rows that are read then.
  return load.whole && load.ahead && paged() && knowsPages() && isOnlyRead();
}

Value RowSource::valid(Value row) {
  if (takesAny())
    return arith::ConstantIntOp::create(b, 1, 1).getResult();
  if (load.whole)
    return pred ? pred : arith::ConstantIntOp::create(b, 1, 1).getResult();
  Value ok = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, row, hi);
  if (lo)
    ok = arith::AndIOp::create(
        b, ok, arith::CmpIOp::create(b, arith::CmpIPredicate::sge, row, lo));
  if (pred)
    ok = arith::AndIOp::create(b, ok, pred);
  return ok;
}

Value RowSource::insideColumns(Value offset, Value col, int64_t constant,
                               int64_t bound) {
  int64_t limit = columns * elementBytes;
  if (bound <= limit)
    return offset;
  Value inside =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, col,
                            lower.i32(std::max<int64_t>(0, limit - constant)));
  return offsetIf(inside, offset);
}

Value RowSource::offsetIf(Value condition, Value offset) {
  Value bound = arith::SelectOp::create(b, condition, lower.i32(INT32_MAX),
                                        lower.i32(kOutside));
  return arith::MinSIOp::create(b, offset, bound);
}

Value RowSource::timesStride(Value number, Value stride, Value further) {
  Type i64 = b.getI64Type(), i32 = b.getI32Type();
  auto wide = [&](Value x) -> Value {
    return arith::ExtUIOp::create(b, i64, x);
  };
  Value whole = arith::IndexCastOp::create(b, i64, stride);
  Value half = arith::ConstantIntOp::create(b, 32, 64);
  Value low = arith::TruncIOp::create(b, i32, whole);
  Value high =
      arith::TruncIOp::create(b, i32, arith::ShRUIOp::create(b, whole, half));
  Value product = arith::MulIOp::create(b, wide(number), wide(low));
  if (further)
    product = arith::AddIOp::create(b, product, wide(further));
  // Where the upper half is not zero there are fewer pages, and it is less,
  // than 2^24: an address has 57 bits. An instruction multiplies such numbers
  // and adds the product to the upper word.
  Value narrow = lower.i32((1 << 24) - 1);
  Value above = arith::MulIOp::create(
      b, arith::AndIOp::create(b, number, narrow).getResult(),
      arith::AndIOp::create(b, high, narrow).getResult());
  auto pair = VectorType::get({1}, i64);
  auto words = VectorType::get({2}, i32);
  Value both = vector::BitCastOp::create(
      b, words, vector::FromElementsOp::create(b, pair, product));
  Value upper = vector::ExtractOp::create(b, both, 1);
  upper = arith::AddIOp::create(b, above, upper);
  both = vector::InsertOp::create(b, upper, both, 1);
  Value sum = vector::BitCastOp::create(b, pair, both);
  return lower.toIndex(vector::ExtractOp::create(b, sum, 0));
}

Value RowSource::sub(Value x, Value y) {
  return arith::SubIOp::create(b, x, y);
}

Value RowSource::validRows() {
  Value zero = lower.i32(0), rows = arith::MaxSIOp::create(b, hi, zero);
  if (pred)
    rows = arith::SelectOp::create(b, pred, rows, zero);
  return rows;
}

bool kvbuf::mayBeginLater(const TileLoad &load) {
  if (load.whole)
    return false;
  auto made = load.tile.getDefiningOp<CacheTileOp>();
  if (!made)
    return !load.tile.getDefiningOp<DramTileOp>();
  auto keys = made.getFrom().getDefiningOp<KeyRangeOp>();
  return !keys || made.getFrom() != keys.getLo() || keys.mayBeginLater();
}
