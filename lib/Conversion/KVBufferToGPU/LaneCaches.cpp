//===- LaneCaches.cpp - Caches, their tiles and their keys ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaneCaches.h"
#include "LaneArithmetic.h"
#include "LaneLowering.h"
#include "Pages.h"
#include "Staging.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace kvbuf;

/// Entry `entry` of a table of integers, as an index. Entries are block
/// numbers: not negative.
static Value lookup(Lanes &lanes, Value table, Value entry) {
  return blockAt(lanes, table, entry);
}

/// Entry `entry` of lengths or offsets, which lie in device memory where nobody
/// has checked them: the nearest number from `least` to `most`.
static Value lookupWithin(Lanes &lanes, Value lengths, Value entry, Value least,
                          Value most) {
  ImplicitLocOpBuilder &b = lanes.b;
  Value word =
      memref::LoadOp::create(b, lanes.flat(lengths), ValueRange{entry});
  Value number = arith::IndexCastOp::create(b, b.getIndexType(), word);
  number = arith::MaxSIOp::create(b, number, least);
  return arith::MinSIOp::create(b, number, most);
}

LogicalResult kvbuf::lowerOp(LaneLowering &lower, MakeCacheOp op) {
  auto type = dyn_cast<CacheType>(op.getCache().getType());
  if (!type)
    return op.emitOpError() << "makes a cache of a kind whose tiles no program "
                               "reads; expected a !kvbuffer.cache, got "
                            << op.getCache().getType();
  SmallVector<Value> memrefs{op.getData()};
  llvm::append_range(memrefs, op.getIndices());
  for (Value memref : memrefs)
    if (!isa<MemRefType>(memref.getType()) || !isa<BlockArgument>(memref))
      return op.emitOpError()
             << "makes a cache of what is not a memref among the kernel's "
                "arguments, whose address tiles are read from";
  const TensorArg data = lower.signature.tensor(op.getData());
  SmallVector<TensorArg> indices;
  for (Value tensor : op.getIndices())
    indices.push_back(lower.signature.tensor(tensor));
  auto sizeOf = [&](Value memref, const TensorArg &tensor, unsigned d) {
    auto shape = cast<MemRefType>(memref.getType());
    return shape.isDynamicDim(d) ? tensor.sizes[d]
                                 : lower.index(shape.getDimSize(d));
  };
  TensorArg cache;
  cache.data = data.data;
  cache.strides = data.strides;
  switch (type.getKind()) {
  case CacheKind::Dense:
    cache.sizes = {Value(), sizeOf(op.getData(), data, 1)};
    break;
  case CacheKind::Ragged:
    cache.room = sizeOf(op.getData(), data, 0);
    cache.offsets = indices[0].data;
    break;
  case CacheKind::Continuous:
    cache.room = sizeOf(op.getData(), data, 1);
    cache.table = indices[0].data;
    cache.lengths = indices[1].data;
    break;
  case CacheKind::Paged:
    cache.room = sizeOf(op.getIndices()[0], indices[0], 1);
    cache.table = indices[0].data;
    cache.tableStride = indices[0].strides[0];
    cache.lengths = indices[1].data;
    break;
  }
  lower.signature.tensor(op.getCache()) = cache;
  lower.set(op.getCache(), {});
  return success();
}

void kvbuf::lowerOp(LaneLowering &lower, CacheNumKeysOp op) {
  ImplicitLocOpBuilder &b = lower.b;
  const TensorArg &cache = lower.signature.tensor(op.getCache());
  Value batch = lower.single(op.getBatch());
  Value keys;
  switch (op.getCache().getType().getKind()) {
  case CacheKind::Dense:
    keys = cache.sizes[1];
    break;
  case CacheKind::Ragged: {
    Value rows = lower.signature.roomOf(op.getCache(), op);
    Value first =
        lookupWithin(lower, cache.offsets, batch, lower.index(0), rows);
    Value next = lookupWithin(lower, cache.offsets,
                              add(b, batch, lower.index(1)), first, rows);
    keys = sub(b, next, first);
    break;
  }
  case CacheKind::Continuous:
  case CacheKind::Paged: {
    // No more keys than the slot, or the row of the page table, has room for.
    Value room = lower.signature.roomOf(op.getCache(), op);
    if (int64_t page = op.getCache().getType().getPageSize())
      room = mul(b, room, lower.index(page));
    Value length =
        lookupWithin(lower, cache.lengths, batch, lower.index(0), room);
    keys = arith::MinSIOp::create(
        b, add(b, length, lower.single(op.getNewTokens())), room);
    break;
  }
  }
  lower.set(op.getKeys(), {keys});
}

/// Whether lanes have the pages of a cache's tile looked up before it is loaded
/// (`TileValues::pages`).
static bool looksUpByLane(Lanes &lanes, TileType type) {
  return !lanes.machine.hasRings() &&
         lanes.target.lanesLookUp(type.getRows(), type.getPageSize(),
                                  lanes.schedule.getWarps());
}

/// The numbers of the pages that a tile's rows lie in, by lanes
/// (`TileValues::pages`).
static Value pagesOfRows(LaneLowering &lower, CacheTileOp op,
                         const TileValues &tile, Value tableBase) {
  ImplicitLocOpBuilder &b = lower.b;
  int64_t page = op.getTile().getType().getPageSize();
  auto numberOf = [&](Value row) {
    return pageOf(lower, add(b, tile.firstKey, lower.toIndex(row)), page).first;
  };
  Value number = numberOf(lower.lane);
  // No look-up of a page of which no row is there. A row before those that
  // are there may be its page's first, whose number others ask for.
  Value exists =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, lower.lane, tile.hi);
  if (!matchPattern(tile.lo, m_Zero()))
    exists = arith::AndIOp::create(
        b, exists,
        arith::CmpIOp::create(b, arith::CmpIPredicate::uge, number,
                              numberOf(tile.lo)));
  if (op.getPred())
    exists = arith::AndIOp::create(b, exists, lower.single(op.getPred()));
  Value table = lower.signature.tensor(op.getCache()).table;
  Value entry = add(b, tableBase, number);
  // Where waits count loads, every lane makes this one.
  if (lower.target.copiesByWave) {
    entry = arith::SelectOp::create(b, exists, entry, zerosAt(lower, table));
    return lower.toI32(lookup(lower, table, entry));
  }
  return loadIf(lower, exists, b.getI32Type(),
                [&] { return lower.toI32(lookup(lower, table, entry)); });
}

LogicalResult kvbuf::lowerOp(LaneLowering &lower, CacheTileOp op) {
  ImplicitLocOpBuilder &b = lower.b;
  CacheType type = op.getCache().getType();
  const TensorArg &cache = lower.signature.tensor(op.getCache());
  Value batch = lower.single(op.getBatch()), head = lower.single(op.getHead()),
        start = lower.single(op.getStart());
  int64_t rows = op.getTile().getType().getRows();

  TileValues tile;
  tile.data = cache.data;
  // Rows outside of [lo, hi) are not touched. Keys fit 32 bits; producers have
  // no registers to spare for more.
  TileCoordinates at = tileEdges(op.getTile());
  auto fromStart = [&](Value key) {
    return sub(b, lower.toI32(lower.single(key)), lower.toI32(start));
  };
  tile.lo = lower.i32(0);
  if (at.rowsBefore)
    tile.lo = arith::MaxSIOp::create(b, fromStart(op.getFrom()), lower.i32(0));
  tile.hi = arith::MinSIOp::create(b, fromStart(op.getUpto()), lower.i32(rows));

  // A look-up that the program must not make where nothing is loaded.
  auto guardedLookup = [&](Value table, Value entry) -> Value {
    if (!op.getPred())
      return lookup(lower, table, entry);
    auto ifOp =
        scf::IfOp::create(b, TypeRange{b.getIndexType()},
                          lower.single(op.getPred()), /*addThenBlock=*/true,
                          /*addElseBlock=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifOp.thenBlock());
    scf::YieldOp::create(b, lookup(lower, table, entry));
    b.setInsertionPointToStart(ifOp.elseBlock());
    scf::YieldOp::create(b, lower.index(0));
    return ifOp.getResult(0);
  };

  ArrayRef<Value> s = cache.strides;
  at.tensor = op.getCache();
  auto place = [&](std::initializer_list<Value> position) {
    for (Value index : position)
      at.position.push_back(lower.toI32(index));
  };
  switch (type.getKind()) {
  case CacheKind::Dense:
    place({start, head, batch});
    tile.rowStride = s[1];
    tile.base = add(b, add(b, mul(b, batch, s[0]), mul(b, head, s[2])),
                    mul(b, start, s[1]));
    break;
  case CacheKind::Ragged: {
    tile.rowStride = s[0];
    // A cache's offsets may differ from those that the keys were counted from:
    // all keys lie within the tensor wherever they say that the sequence
    // begins.
    Value last = sub(b, lower.signature.roomOf(op.getCache(), op),
                     lower.single(op.getUpto()));
    last = arith::MaxSIOp::create(b, last, lower.index(0));
    Value row =
        add(b, lookupWithin(lower, cache.offsets, batch, lower.index(0), last),
            start);
    place({row, head});
    tile.base = add(b, mul(b, head, s[1]), mul(b, row, s[0]));
    break;
  }
  case CacheKind::Continuous: {
    tile.rowStride = s[1];
    Value block = guardedLookup(cache.table, batch);
    place({start, head, block});
    tile.base = add(b, add(b, mul(b, block, s[0]), mul(b, head, s[2])),
                    mul(b, start, s[1]));
    break;
  }
  case CacheKind::Paged: {
    tile.rowStride = s[1];
    int64_t page = type.getPageSize();
    Value tableBase = mul(b, batch, cache.tableStride);
    if (TileType small = op.getTile().getType(); small.getPageSize()) {
      place({lower.index(0), head, lower.index(0)});
      tile.base = mul(b, head, s[2]);
      tile.firstKey = start;
      tile.pageStride = s[0];
      if (looksUpByLane(lower, small)) {
        tile.pages = pagesOfRows(lower, op, tile, tableBase);
        break;
      }
      // Each row, or box of rows, finds its own page when it is loaded.
      tile.table = cache.table;
      tile.tableBase = tableBase;
      break;
    }
    // One page is looked up, and all rows are taken to lie in it.
    if (!isMultipleOf(op.getStart(), rows))
      return op.emitOpError()
             << "starts at a key that is not known to be a multiple of the "
                "tile's "
             << rows
             << " rows, so that the tile may lie in two pages; expected a "
                "multiple of a constant, or page_size = "
             << page << " on the tile";
    auto [number, offset] = pageOf(lower, start, page);
    Value block = guardedLookup(cache.table, add(b, tableBase, number));
    place({offset, head, block});
    tile.base = add(b, add(b, mul(b, block, s[0]), mul(b, head, s[2])),
                    mul(b, offset, s[1]));
    break;
  }
  }
  lower.set(op.getTile(), tile.pack());
  lower.coordinates[op.getTile()] = at;
  return success();
}

void kvbuf::lowerOp(LaneLowering &lower, CacheScaleOp op) {
  ImplicitLocOpBuilder &b = lower.b;
  CacheType type = op.getCache().getType();
  const TensorArg &cache = lower.signature.tensor(op.getCache());
  Value head = lower.single(op.getHead()), at;
  if (type.getGranularity() == kPerTensor) {
    at = lower.index(0);
  } else if (type.getGranularity() == kPerHead) {
    at = head;
  } else {
    Value batch = lower.single(op.getBatch()),
          token = lower.single(op.getToken());
    ArrayRef<Value> s = cache.scaleStrides;
    auto from = [&](Value block, Value row) {
      return add(b, mul(b, block, s[0]), mul(b, row, s[1]));
    };
    switch (type.getKind()) {
    case CacheKind::Dense:
      at = from(batch, token);
      break;
    case CacheKind::Ragged: {
      Value first =
          lookupWithin(lower, cache.offsets, batch, lower.index(0),
                       lower.signature.launchSize(sizeOfCache(
                           op.getCache(), type.getLeadingDims().back().name)));
      at = mul(b, add(b, first, token), s[0]);
      break;
    }
    case CacheKind::Continuous:
      at = from(lookup(lower, cache.table, batch), token);
      break;
    case CacheKind::Paged: {
      auto [number, offset] = pageOf(lower, token, type.getPageSize());
      Value entry = add(b, mul(b, batch, cache.tableStride), number);
      at = from(lookup(lower, cache.table, entry), offset);
      break;
    }
    }
    at = add(b, at, mul(b, head, s.back()));
    if (type.getGranularity() < type.getHeadSize())
      at = add(b, at,
               arith::DivUIOp::create(b, lower.single(op.getHeadDim()),
                                      lower.index(type.getGranularity())));
  }
  Value scale =
      memref::LoadOp::create(b, lower.flat(cache.scales), ValueRange{at});
  if (!scale.getType().isF32())
    scale = arith::ExtFOp::create(b, b.getF32Type(), scale);
  lower.set(op.getScale(), {scale});
}

void kvbuf::lowerOp(LaneLowering &lower, KeyRangeOp op) {
  ImplicitLocOpBuilder &b = lower.b;
  Value row = lower.single(op.getRow()),
        queries = lower.single(op.getQueries()),
        keys = lower.single(op.getKeys());
  MaskAttr mask = op.getMask();
  Value zero = lower.index(0);
  int64_t rows = op.getQueriesOfRows();
  // Groups of warps own neighbouring rows where each warp has those of one
  // instruction.
  bool own =
      op.getPerGroup() && lower.rings.group && int64_t(op.getGroup()) == 1 &&
      rows == lower.schedule.getMmaShape()[0] * lower.schedule.getWarps();
  if (own) {
    rows /= lower.rings.groups;
    row = add(b, row,
              mul(b, lower.toIndex(lower.rings.group), lower.index(rows)));
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
  // A group may own no row of the last tile of queries.
  if (own) {
    Value any =
        arith::CmpIOp::create(b, arith::CmpIPredicate::slt, row, queries);
    hi = arith::SelectOp::create(b, any, hi, zero);
  }
  lower.set(op.getLo(), {lo});
  lower.set(op.getHi(), {hi});
  lower.set(op.getFullLo(), {fullLo});
  lower.set(op.getFullHi(), {fullHi});
}
