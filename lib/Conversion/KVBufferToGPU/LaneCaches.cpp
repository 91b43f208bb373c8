//===- LaneCaches.cpp - Caches, their tiles and their keys ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaneCaches.h"
#include "CachePlaces.h"
#include "LaneArithmetic.h"
#include "PackedRows.h"
#include "Pages.h"
#include "Staging.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace kvbuf;

/// Entry `entry` of a table of integers, as an index. Entries are block
/// numbers: not negative.
static Value lookup(LaneContext &lanes, Value table, Value entry) {
  return blockAt(lanes, table, entry);
}

/// Entry `entry` of lengths or offsets, which lie in device memory where nobody
/// has checked them: the nearest number from `least` to `most`.
static Value lookupWithin(LaneContext &lanes, Value lengths, Value entry,
                          Value least, Value most) {
  ImplicitLocOpBuilder &b = lanes.builder();
  Value word =
      memref::LoadOp::create(b, lanes.flat(lengths), ValueRange{entry});
  if (word.getType().isInteger(32) && matchPattern(least, m_Zero())) {
    // No number of 32 bits is above the largest one, whatever `most` is: half
    // as many instructions, as many teams wait for them before their first
    // tile.
    Value largest = lanes.index(std::numeric_limits<int32_t>::max());
    Value bound = lanes.toI32(arith::MinSIOp::create(b, most, largest));
    word = arith::MaxSIOp::create(b, word, lanes.i32(0));
    return lanes.toIndex(arith::MinSIOp::create(b, word, bound));
  }
  Value number = arith::IndexCastOp::create(b, b.getIndexType(), word);
  number = arith::MaxSIOp::create(b, number, least);
  return arith::MinSIOp::create(b, number, most);
}

LogicalResult kvbuf::lowerOp(LaneContext &lower, MakeCacheOp op) {
  auto layout = cast<CacheLayout>(op.getCache().getType());
  CacheRows rows = layout.getRows();
  SmallVector<Value> memrefs{op.getData()};
  llvm::append_range(memrefs, op.getIndices());
  if (op.getScales())
    memrefs.push_back(op.getScales());
  for (Value memref : memrefs)
    if (!isa<MemRefType>(memref.getType()) || !isa<BlockArgument>(memref))
      return op.emitOpError()
             << "makes a cache of what is not a memref among the kernel's "
                "arguments, whose address tiles are read from";
  auto sizeOf = [&](Value memref, unsigned d) {
    auto shape = cast<MemRefType>(memref.getType());
    return shape.isDynamicDim(d) ? lower.tensorOf(memref).sizes[d]
                                 : lower.index(shape.getDimSize(d));
  };
  const TensorArg data = lower.tensorOf(op.getData());
  TensorArg cache;
  cache.data = data.data;
  cache.strides = data.strides;
  for (Value tensor : op.getIndices()) {
    const TensorArg &index = lower.tensorOf(tensor);
    cache.indices.push_back({index.data, index.strides});
  }
  if (op.getScales()) {
    const TensorArg &scales = lower.tensorOf(op.getScales());
    cache.scales = scales.data;
    cache.scaleStrides = scales.strides;
  }
  unsigned rowDimension = layout.getLeadingDims().size() - 1;
  if (rows.byPlace) {
    // `findPlaces` has seen it.
  } else if (rows.endWithData()) {
    cache.sizes.resize(rowDimension + 1);
    cache.sizes[rowDimension] = sizeOf(op.getData(), rowDimension);
  } else if (rows.table && layout.getRun()) {
    cache.room = sizeOf(op.getIndices()[*rows.table], 1);
  } else {
    cache.room = sizeOf(op.getData(), rowDimension);
  }
  lower.tensorOf(op.getCache()) = cache;
  lower.setLanes(op.getCache(), ValueRange());
  return success();
}

/// The keys of a sequence of a cache whose type alone knows them.
static Value keysByPlace(LaneContext &lower, CacheNumKeysOp op) {
  ImplicitLocOpBuilder &b = lower.builder();
  const CachePlaces &cache = lower.placesOfCache(op.getCache());
  Value batch = lower.single(op.getBatch());
  Value length = cache.layout.emitLength(b, b.getLoc(), cache.parts, batch);
  Value room = cache.layout.emitRoom(b, b.getLoc(), cache.parts, batch);
  return arith::MinSIOp::create(
      b, add(b, length, lower.single(op.getNewTokens())), room);
}

void kvbuf::lowerOp(LaneContext &lower, CacheNumKeysOp op) {
  ImplicitLocOpBuilder &b = lower.builder();
  CacheLayout layout = op.getLayout();
  CacheRows rows = layout.getRows();
  if (rows.byPlace) {
    lower.setLanes(op.getKeys(), {keysByPlace(lower, op)});
    return;
  }
  const TensorArg &cache = lower.tensorOf(op.getCache());
  Value batch = lower.single(op.getBatch());
  Value keys;
  if (rows.endWithData()) {
    keys = cache.sizes[layout.getLeadingDims().size() - 1];
  } else if (rows.offsets) {
    Value offsets = cache.indices[*rows.offsets].data;
    Value all = lower.roomOf(op.getCache(), op);
    Value first = lookupWithin(lower, offsets, batch, lower.index(0), all);
    Value next =
        lookupWithin(lower, offsets, add(b, batch, lower.index(1)), first, all);
    keys = sub(b, next, first);
  } else {
    // No more keys than the slot, or the row of the page table, has room for.
    Value room = lower.roomOf(op.getCache(), op);
    if (int64_t page = layout.getRun())
      room = mul(b, room, lower.index(page));
    keys = room;
    if (rows.lengths) {
      keys = lookupWithin(lower, cache.indices[*rows.lengths].data, batch,
                          lower.index(0), room);
      if (!matchPattern(op.getNewTokens(), m_Zero()))
        keys = arith::MinSIOp::create(
            b, add(b, keys, lower.single(op.getNewTokens())), room);
    }
  }
  lower.setLanes(op.getKeys(), {keys});
}

/// The table of the blocks of a tile's cache.
static const IndexArg &tableOf(LaneContext &lower, CacheTileOp op) {
  return lower.tensorOf(op.getCache()).indices[*op.getLayout().getRows().table];
}

/// Which page of a tile's, counted from `from` (null: the first one), the row
/// of a lane's number lies in, times `factor`, where the tile begins with row
/// `inFirst` of a page (null: the first one). It is less than 0 in front of
/// `from`. Scalars find out which lanes' rows are a page further on for it, and
/// what lanes choose between stays the same from tile to tile.
static Value pageOfOwnRow(LaneContext &lower, int64_t page, Value inFirst,
                          Value from, int64_t factor) {
  ImplicitLocOpBuilder &b = lower.builder();
  auto times = [&](Value pages) -> Value {
    return arith::MulIOp::create(b, pages, lower.i32(factor));
  };
  // Beside a window's masks there are no scalars for it (4 spilled on gfx942,
  // head size 128 over pages of 3): lanes' parts and the tile's, in pages times
  // 2^16, are added. The factor is rounded up, by less than a page, of rows of
  // which there are few.
  if (inFirst && from) {
    constexpr int64_t kShift = 16;
    int64_t perRow = llvm::divideCeil(int64_t(1) << kShift, page);
    auto parts = [&](Value rows) -> Value {
      return arith::MulIOp::create(b, rows, lower.i32(perRow));
    };
    Value ofTile = arith::SubIOp::create(
        b, parts(inFirst),
        arith::ShLIOp::create(b, from, lower.i32(kShift)).getResult());
    Value sum = arith::AddIOp::create(b, parts(lower.laneInWarp()), ofTile);
    return times(arith::ShRSIOp::create(b, sum, lower.i32(kShift)));
  }
  Value number = arith::DivUIOp::create(b, lower.laneInWarp(), lower.i32(page));
  Value own = times(number);
  if (inFirst)
    own = arith::SelectOp::create(
        b, isPageFurther(lower, inFirst, page),
        arith::AddIOp::create(b, own, lower.i32(factor)), own);
  return from ? arith::SubIOp::create(b, own, times(from)).getResult() : own;
}

/// The numbers of the pages that a tile's rows lie in, by lanes, as a range of
/// the table: zero where there is no row. Every lane looks up, so that waits
/// can count, and none needs bounds or a choice of addresses of its own.
static Value pagesByRange(LaneContext &lower, CacheTileOp op,
                          const TileView &tile, Value tableBase) {
  ImplicitLocOpBuilder &b = lower.builder();
  int64_t page = op.getTile().getType().getPageSize();
  auto [firstPage, inFirst] = pageOf(lower, tile.firstKey, page);
  // Pages are counted from the tile's first one, in 32 bits: they are few.
  bool aligned = isMultipleOf(op.getStart(), page);
  auto numberOf = [&](Value row) -> Value {
    if (!aligned)
      row = arith::AddIOp::create(b, lower.toI32(inFirst), row);
    return arith::DivUIOp::create(b, row, lower.i32(page));
  };
  Value zero = lower.i32(0), one = lower.i32(1), base = firstPage;
  Value count = arith::AddIOp::create(
      b, numberOf(arith::SubIOp::create(b, tile.hi, one)), one);
  // A row before those that are there may be its page's first, whose number
  // others ask for.
  Value from;
  if (!matchPattern(tile.lo, m_Zero())) {
    from = numberOf(tile.lo);
    count = arith::SubIOp::create(b, count, from);
    base = add(b, base, lower.toIndex(from));
  }
  Value some =
      arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, tile.hi, tile.lo);
  if (op.getPred())
    some = arith::AndIOp::create(b, some, lower.single(op.getPred()));
  // Of entries of 64 bits the lower half: block numbers fit 32.
  Value table = tableOf(lower, op).data;
  int64_t bytes =
      cast<MemRefType>(table.getType()).getElementTypeBitWidth() / 8;
  auto inBytes = [&](Value entries) -> Value {
    return arith::MulIOp::create(b, entries, lower.i32(bytes));
  };
  Value own = pageOfOwnRow(
      lower, page, aligned ? Value() : lower.toI32(inFirst), from, bytes);
  Value range = DramRangeOp::create(
      b, table, add(b, tableBase, base),
      arith::SelectOp::create(b, some, inBytes(count), zero));
  Value loaded =
      RangeLoadOp::create(b, VectorType::get({1}, b.getI32Type()), range, own);
  return vector::ExtractOp::create(b, loaded, 0);
}

/// The numbers of the pages that a tile's rows lie in, by lanes
/// (`TileView::pages`).
static Value pagesOfRows(LaneContext &lower, CacheTileOp op,
                         const TileView &tile, Value tableBase) {
  if (lower.chip().has(CopyEngine::Waves))
    return pagesByRange(lower, op, tile, tableBase);
  ImplicitLocOpBuilder &b = lower.builder();
  int64_t page = op.getTile().getType().getPageSize();
  auto numberOf = [&](Value row) {
    return pageOf(lower, add(b, tile.firstKey, lower.toIndex(row)), page).first;
  };
  Value number = numberOf(lower.laneInWarp());
  // No look-up of a page of which no row is there. A row before those that
  // are there may be its page's first, whose number others ask for.
  Value exists = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                       lower.laneInWarp(), tile.hi);
  if (!matchPattern(tile.lo, m_Zero()))
    exists = arith::AndIOp::create(
        b, exists,
        arith::CmpIOp::create(b, arith::CmpIPredicate::uge, number,
                              numberOf(tile.lo)));
  if (op.getPred())
    exists = arith::AndIOp::create(b, exists, lower.single(op.getPred()));
  Value table = tableOf(lower, op).data;
  Value entry = add(b, tableBase, number);
  return loadIf(lower, exists, b.getI32Type(),
                [&] { return lower.toI32(lookup(lower, table, entry)); });
}

/// Checks that a tile, whose rows are taken to lie in one page, starts where
/// that is so.
static LogicalResult checkInOnePage(CacheTileOp op) {
  int64_t rows = op.getTile().getType().getRows();
  if (isMultipleOf(op.getStart(), rows))
    return success();
  return op.emitOpError()
         << "starts at a key that is not known to be a multiple of the tile's "
         << rows
         << " rows, so that the tile may lie in two pages; expected a multiple "
            "of a constant, or page_size = "
         << op.getLayout().getRun() << " on the tile";
}

/// Entry `entry` of the table of a tile's cache, which the program must not
/// look up where nothing is loaded.
static Value guardedLookup(LaneContext &lower, CacheTileOp op, Value entry) {
  ImplicitLocOpBuilder &b = lower.builder();
  Value table = tableOf(lower, op).data;
  if (!op.getPred())
    return lookup(lower, table, entry);
  auto ifOp = scf::IfOp::create(b, TypeRange{b.getIndexType()},
                                lower.single(op.getPred()),
                                /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  scf::YieldOp::create(b, lookup(lower, table, entry));
  b.setInsertionPointToStart(ifOp.elseBlock());
  scf::YieldOp::create(b, lower.index(0));
  return ifOp.getResult(0);
}

/// Places a tile of a cache whose type alone knows where rows are: as a whole
/// where they lie together, else each row when it is loaded.
static LogicalResult placeTile(LaneContext &lower, CacheTileOp op,
                               TileView &tile) {
  ImplicitLocOpBuilder &b = lower.builder();
  const CachePlaces &cache = lower.placesOfCache(op.getCache());
  Value batch = lower.single(op.getBatch()), head = lower.single(op.getHead()),
        start = lower.single(op.getStart());
  size_t leading = cache.layout.getLeadingDims().size();
  Value ofHead = mul(b, head, cache.strides[leading]);
  tile.rowStride = cache.strides[leading - 1];
  if (op.getTile().getType().getPageSize()) {
    tile.base = ofHead;
    tile.batch = batch;
    tile.places = &cache;
    tile.firstKey = start;
    tile.pageStride = cache.strides.front();
    for (Value other : ArrayRef(cache.strides).take_front(leading - 1))
      if (other != tile.pageStride)
        tile.pageStride = arith::OrIOp::create(b, tile.pageStride, other);
    return success();
  }
  if (cache.layout.getRun() && failed(checkInOnePage(op)))
    return failure();
  Values lead = cache.leadOf(lower, batch, start, /*checked=*/true);
  tile.box.position = {lower.toI32(lead.back()), lower.toI32(head)};
  for (Value other : llvm::reverse(ArrayRef(lead).drop_back()))
    tile.box.position.push_back(lower.toI32(other));
  tile.base = add(b, ofHead, cache.offsetOf(lower, lead));
  return success();
}

/// Places a tile of a cache whose type says where rows are (`CacheRows`).
static LogicalResult findTile(LaneContext &lower, CacheTileOp op,
                              TileView &tile) {
  ImplicitLocOpBuilder &b = lower.builder();
  CacheLayout layout = op.getLayout();
  CacheRows found = layout.getRows();
  const TensorArg &cache = lower.tensorOf(op.getCache());
  Value batch = lower.single(op.getBatch()), head = lower.single(op.getHead()),
        start = lower.single(op.getStart());
  ArrayRef<Value> s = cache.strides;
  auto place = [&](std::initializer_list<Value> position) {
    for (Value index : position)
      tile.box.position.push_back(lower.toI32(index));
  };
  if (found.offsets) {
    tile.rowStride = s[0];
    // A cache's offsets may differ from those that the keys were counted from:
    // all keys lie within the tensor wherever they say that the sequence
    // begins.
    Value last =
        sub(b, lower.roomOf(op.getCache(), op), lower.single(op.getUpto()));
    last = arith::MaxSIOp::create(b, last, lower.index(0));
    Value row = add(b,
                    lookupWithin(lower, cache.indices[*found.offsets].data,
                                 batch, lower.index(0), last),
                    start);
    place({row, head});
    tile.base = add(b, mul(b, head, s[1]), mul(b, row, s[0]));
    return success();
  }
  tile.rowStride = s[1];
  Value row = start, block = batch, entry = batch;
  if (int64_t page = layout.getRun(); page && found.table) {
    Value tableBase = mul(b, batch, tableOf(lower, op).strides[0]);
    if (TileType small = op.getTile().getType(); small.getPageSize()) {
      place({lower.index(0), head, lower.index(0)});
      tile.base = mul(b, head, s[2]);
      tile.firstKey = start;
      tile.pageStride = s[0];
      if (tile.map == RowMap::Lanes) {
        tile.pages = pagesOfRows(lower, op, tile, tableBase);
        return success();
      }
      // Each row, or box of rows, finds its own page when it is loaded.
      tile.table = tableOf(lower, op).data;
      tile.tableBase = tableBase;
      if (listsKeys(op.getTile())) {
        Value pages = lower.launchSize(sizeOfCache(op.getCache(), kBlocksSize));
        tile.lastPage = lower.toI32(sub(b, pages, lower.index(1)));
      }
      return success();
    }
    // One page is looked up, and all rows are taken to lie in it.
    if (failed(checkInOnePage(op)))
      return failure();
    Value number;
    std::tie(number, row) = pageOf(lower, start, page);
    entry = add(b, tableBase, number);
  }
  if (found.table)
    block = guardedLookup(lower, op, entry);
  place({row, head, block});
  tile.base = add(b, add(b, mul(b, block, s[0]), mul(b, head, s[2])),
                  mul(b, row, s[1]));
  return success();
}

LogicalResult kvbuf::lowerOp(LaneContext &lower, CacheTileOp op) {
  ImplicitLocOpBuilder &b = lower.builder();
  Value start = lower.single(op.getStart());
  int64_t rows = op.getTile().getType().getRows();

  TileView tile;
  tile.type = op.getTile().getType();
  tile.map = TileView::mapOf(lower, op.getTile());
  tile.edges = TileView::edgesOf(op.getTile());
  tile.data = lower.tensorOf(op.getCache()).data;
  // Rows outside of [lo, hi) are not touched. Keys fit 32 bits; producers have
  // no registers to spare for more.
  auto fromStart = [&](Value key) {
    return sub(b, lower.toI32(lower.single(key)), lower.toI32(start));
  };
  tile.lo = lower.i32(0);
  if (tile.edges.rowsBefore)
    tile.lo = arith::MaxSIOp::create(b, fromStart(op.getFrom()), lower.i32(0));
  tile.hi = arith::MinSIOp::create(b, fromStart(op.getUpto()), lower.i32(rows));
  tile.box.tensor = op.getCache();
  bool byPlace = op.getLayout().getRows().byPlace;
  if (failed(byPlace ? placeTile(lower, op, tile) : findTile(lower, op, tile)))
    return failure();
  if (op.getCol()) {
    Value col = lower.single(op.getCol());
    tile.base = add(b, tile.base, col);
    tile.box.column = lower.toI32(col);
  }
  lower.setTile(op.getTile(), tile);
  return success();
}

/// Where the scale of a token of a cache with scales by tokens lies, but for
/// the head's: an index of elements.
static Value scaleOfToken(LaneContext &lower, CacheScaleOp op) {
  ImplicitLocOpBuilder &b = lower.builder();
  CacheLayout layout = op.getLayout();
  CacheRows rows = layout.getRows();
  const TensorArg &cache = lower.tensorOf(op.getCache());
  Value batch = lower.single(op.getBatch()),
        token = lower.single(op.getToken());
  ArrayRef<Value> s = cache.scaleStrides;
  if (rows.byPlace) {
    Value at;
    Values lead = lower.placesOfCache(op.getCache())
                      .leadOf(lower, batch, token,
                              /*checked=*/false);
    for (auto [index, stride] : llvm::zip(lead, s))
      at = at ? add(b, at, mul(b, index, stride)) : mul(b, index, stride);
    return at;
  }
  if (rows.offsets) {
    Value first = lookupWithin(
        lower, cache.indices[*rows.offsets].data, batch, lower.index(0),
        lower.launchSize(
            sizeOfCache(op.getCache(), layout.getLeadingDims().back().name)));
    return mul(b, add(b, first, token), s[0]);
  }
  Value block = batch, row = token;
  if (rows.table) {
    const IndexArg &table = cache.indices[*rows.table];
    Value entry = batch;
    if (int64_t page = layout.getRun()) {
      Value number;
      std::tie(number, row) = pageOf(lower, token, page);
      entry = add(b, mul(b, batch, table.strides[0]), number);
    }
    block = lookup(lower, table.data, entry);
  }
  return add(b, mul(b, block, s[0]), mul(b, row, s[1]));
}

void kvbuf::lowerOp(LaneContext &lower, CacheScaleOp op) {
  ImplicitLocOpBuilder &b = lower.builder();
  CacheLayout type = op.getLayout();
  const TensorArg &cache = lower.tensorOf(op.getCache());
  Value head = lower.single(op.getHead()), at;
  if (type.getGranularity() == kPerTensor) {
    at = lower.index(0);
  } else if (type.getGranularity() == kPerHead) {
    at = head;
  } else {
    at = scaleOfToken(lower, op);
    at = add(b, at, mul(b, head, cache.scaleStrides.back()));
    if (type.getGranularity() < type.getHeadSize())
      at = add(b, at,
               arith::DivUIOp::create(b, lower.single(op.getHeadDim()),
                                      lower.index(type.getGranularity())));
  }
  Value scale =
      memref::LoadOp::create(b, lower.flat(cache.scales), ValueRange{at});
  if (!scale.getType().isF32())
    scale = arith::ExtFOp::create(b, b.getF32Type(), scale);
  lower.setLanes(op.getScale(), {scale});
}

void kvbuf::lowerOp(LaneContext &lower, KeyRangeOp op) {
  ImplicitLocOpBuilder &b = lower.builder();
  Value row = lower.single(op.getRow()),
        queries = lower.single(op.getQueries()),
        keys = lower.single(op.getKeys());
  MaskAttr mask = op.getMask();
  Value zero = lower.index(0);
  int64_t rows = op.getQueriesOfRows();
  // Groups of warps own neighbouring rows where each warp has those of one
  // instruction.
  bool own = op.getPerGroup() && lower.groupOfWarps() &&
             int64_t(op.getGroup()) == 1 &&
             rows == lower.chip().groupInstruction("bf16")->rowsOfWarp() *
                         lower.ownSchedule().getWarps();
  if (own) {
    rows /= lower.groupsOfWarps();
    row = add(b, row,
              mul(b, lower.toIndex(lower.groupOfWarps()), lower.index(rows)));
  }
  Value lo = zero, hi = keys, fullLo = zero, fullHi = keys;
  // Query row i stands at key position i + shift.
  Value shift = sub(b, keys, queries);
  Value end =
      arith::MinSIOp::create(b, add(b, row, lower.index(rows)), queries);
  Value first = add(b, row, shift);
  Value last = add(b, sub(b, end, lower.index(1)), shift);
  if (mask.boundsRight()) {
    Value reach = lower.index(mask.rightReach() + 1);
    hi = arith::MinSIOp::create(b, keys, add(b, last, reach));
    fullHi = arith::MinSIOp::create(b, keys, add(b, first, reach));
  }
  if (mask.boundsLeft()) {
    Value left = lower.index(mask.getLeft());
    lo = arith::MaxSIOp::create(b, zero, sub(b, first, left));
    fullLo = arith::MaxSIOp::create(b, zero, sub(b, last, left));
  }
  if (op.getFrom())
    lo = arith::MaxSIOp::create(b, lo, lower.single(op.getFrom()));
  // A group may own no row of the last tile of queries.
  if (own) {
    Value any =
        arith::CmpIOp::create(b, arith::CmpIPredicate::slt, row, queries);
    hi = arith::SelectOp::create(b, any, hi, zero);
  }
  lower.setLanes(op.getLo(), {lo});
  lower.setLanes(op.getHi(), {hi});
  lower.setLanes(op.getFullLo(), {fullLo});
  lower.setLanes(op.getFullHi(), {fullHi});
}
