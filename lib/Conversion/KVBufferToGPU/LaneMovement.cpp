//===- LaneMovement.cpp - Caches, tiles and loads ---------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaneMovement.h"
#include "LaneLowering.h"
#include "Pages.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

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

static Value add(ImplicitLocOpBuilder &b, Value x, Value y) {
  return arith::AddIOp::create(b, x, y);
}
static Value sub(ImplicitLocOpBuilder &b, Value x, Value y) {
  return arith::SubIOp::create(b, x, y);
}
static Value mul(ImplicitLocOpBuilder &b, Value x, Value y) {
  return arith::MulIOp::create(b, x, y);
}

//===----------------------------------------------------------------------===//
// Caches and tiles
//===----------------------------------------------------------------------===//

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

/// A lane's words of a fragment that is read from a tensor have at most so many
/// columns.
static constexpr int64_t kWordColumns = 8;

/// Whether a tile may have fewer columns than its type says.
static bool mayCutColumns(DramTileOp op) {
  IntegerAttr cols;
  return op.isWindow() &&
         !(matchPattern(op.getValidCols(), m_Constant(&cols)) &&
           cols.getInt() >= op.getTile().getType().getCols());
}

/// The size of a dimension of an argument, as a number or the name that its
/// shape gives it; null where nothing says.
static Attribute sizeOf(gpu::GPUFuncOp kernel, Value tensor,
                        int64_t dimension) {
  auto argument = dyn_cast<BlockArgument>(tensor);
  auto type = dyn_cast<MemRefType>(tensor.getType());
  if (!argument || !type || dimension < 0 || dimension >= type.getRank())
    return nullptr;
  Builder b(type.getContext());
  if (!type.isDynamicDim(dimension))
    return b.getI64IntegerAttr(type.getDimSize(dimension));
  if (auto shape = kernel.getArgAttrOfType<ArrayAttr>(
          argument.getArgNumber(), KVBufferDialect::kShapeAttr))
    return shape[dimension];
  // By itself, its name is its own.
  return b.getArrayAttr({b.getI64IntegerAttr(argument.getArgNumber()),
                         b.getI64IntegerAttr(dimension)});
}

/// Whether a tile's `valid` rows or columns end where the tensor does, so that
/// what is not valid does not exist: `valid` is the size of dimension
/// `dimension`, by the names of shapes, less the tile's index there.
static bool endsWithTensor(DramTileOp op, Value valid, int64_t dimension) {
  auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
  Value size = valid, at = op.getIndices()[dimension];
  if (auto left = valid.getDefiningOp<arith::SubIOp>()) {
    if (left.getRhs() != at)
      return false;
    size = left.getLhs();
  } else if (!matchPattern(at, m_Zero())) {
    return false;
  }
  Attribute expected = sizeOf(kernel, op.getTensor(), dimension);
  Attribute given;
  Builder builder(op.getContext());
  IntegerAttr number;
  if (auto dim = size.getDefiningOp<memref::DimOp>()) {
    if (std::optional<int64_t> d = dim.getConstantIndex())
      given = sizeOf(kernel, dim.getSource(), *d);
  } else if (auto named = size.getDefiningOp<LaunchSizeOp>()) {
    given = named.getNameAttr();
  } else if (matchPattern(size, m_Constant(&number))) {
    given = builder.getI64IntegerAttr(number.getInt());
  }
  return given && given == expected;
}

TileCoordinates kvbuf::tileEdges(Value tile) {
  TileCoordinates edges;
  if (auto op = tile.getDefiningOp<DramTileOp>()) {
    edges.rowDimension = op.getRowDimension();
    if (op.getNumbers()) {
      // No box of the tensor has them.
      edges.rowsBehind = true;
      edges.colsBehind = mayCutColumns(op);
    } else if (op.isWindow()) {
      edges.rowsBehind = !endsWithTensor(op, op.getValid(), edges.rowDimension);
      edges.colsBehind =
          !endsWithTensor(op, op.getValidCols(), op.getIndices().size() - 1);
    } else {
      // With a batch dimension the tensor ends where the valid rows do.
      edges.rowsBehind = op.getIndices().size() < 3;
    }
  } else if (auto op = tile.getDefiningOp<CacheTileOp>()) {
    // A range whose mask has no left side starts at key 0.
    auto range = op.getFrom().getDefiningOp<KeyRangeOp>();
    edges.rowsBefore = !matchPattern(op.getFrom(), m_Zero()) &&
                       !(range && range.getLo() == op.getFrom() &&
                         !range.getMask().boundsLeft());
    edges.rowsBehind = op.getCache().getType().getKind() != CacheKind::Dense;
    edges.rowDimension =
        op.getCache().getType().getKind() == CacheKind::Ragged ? 0 : 1;
  }
  return edges;
}

bool kvbuf::needsCopies(RingLoadOp op) {
  TileCoordinates edges = tileEdges(op.getTile());
  return edges.colsBehind ||
         (!op.getWhole() && (edges.rowsBefore || edges.rowsBehind));
}

/// Whether lanes have the pages of a cache's tile looked up before it is loaded
/// (`TileValues::pages`).
static bool looksUpByLane(Lanes &lanes, TileType type) {
  return type.getPageSize() && !lanes.machine.hasRings() &&
         type.getRows() <=
             lanes.target.lanesThatLookUp(lanes.schedule.getWarps());
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
  auto found = scf::IfOp::create(b, TypeRange{b.getI32Type()}, exists,
                                 /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(found.thenBlock());
  Value table = lower.signature.tensor(op.getCache()).table;
  scf::YieldOp::create(
      b, lower.toI32(lookup(lower, table, add(b, tableBase, number))));
  b.setInsertionPointToStart(found.elseBlock());
  scf::YieldOp::create(b, lower.i32(0));
  return found.getResult(0);
}

void kvbuf::lowerOp(LaneLowering &lower, CacheTileOp op) {
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

void kvbuf::lowerOp(LaneLowering &lower, DramTileOp op) {
  ImplicitLocOpBuilder &b = lower.b;
  const TensorArg &tensor = lower.signature.tensor(op.getTensor());
  TileValues tile;
  tile.data = tensor.data;
  int64_t rowDimension = op.getRowDimension();
  tile.rowStride = tensor.strides[rowDimension];
  if (op.getGroup() > 1) {
    // Rows of a group lie one head apart.
    tile.pageStride = tile.rowStride;
    tile.rowStride = tensor.strides[rowDimension + 1];
    tile.firstKey = lower.index(0);
  }
  if (op.getNumbers()) {
    // Pages of one row, which a table names.
    tile.pageStride = tile.rowStride;
    tile.table = lower.signature.tensor(op.getNumbers()).data;
    tile.tableBase = lower.single(op.getFirst());
    tile.firstKey = lower.index(0);
  }
  for (auto [i, position] : llvm::enumerate(op.getIndices())) {
    // Columns lie side by side.
    Value term = lower.single(position);
    if (i < tensor.strides.size())
      term = mul(b, term, tensor.strides[i]);
    tile.base = tile.base ? add(b, tile.base, term) : term;
  }
  tile.lo = lower.i32(0);
  tile.hi = lower.toI32(
      arith::MinSIOp::create(b, lower.single(op.getValid()),
                             lower.index(op.getTile().getType().getRows())));
  if (op.isWindow())
    tile.cols = lower.toI32(
        arith::MinSIOp::create(b, lower.single(op.getValidCols()),
                               lower.index(op.getTile().getType().getCols())));
  lower.set(op.getTile(), tile.pack());
  TileCoordinates at = tileEdges(op.getTile());
  at.tensor = op.getTensor();
  auto place = [&](int64_t dimension) {
    at.position.push_back(
        lower.toI32(lower.single(op.getIndices()[dimension])));
  };
  place(rowDimension);
  int64_t last = tensor.strides.size();
  for (int64_t dimension = last - 1; dimension >= 0; --dimension)
    if (dimension != rowDimension)
      place(dimension);
  if (op.isWindow())
    at.column = lower.toI32(lower.single(op.getIndices()[last]));
  lower.coordinates[op.getTile()] = at;
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

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

/// Notes what lies at `offset`, for messages.
static void describeLds(Lanes &lanes, KVBufferAttr params, int64_t offset) {
  ImplicitLocOpBuilder &b = lanes.b;
  NamedAttrList list;
  auto add = [&](StringRef name, int64_t value) {
    list.append(name, b.getI64IntegerAttr(value));
  };
  list.append("name", b.getStringAttr(params.isNeutral() ? "buffer"
                                                         : params.getLabel()));
  add("offset", offset);
  add("slots", params.getStages());
  add("slot_bytes", params.getStageBytes());
  SharedTile tile = sharedTile(params);
  add("element_bytes", tile.elementBytes);
  if (std::optional<TransposedTile> turned =
          lanes.machine.turnedTile(lanes, params)) {
    add("keys", turned->keys);
    add("depth", turned->depth);
    add("banks", turned->banks);
    SmallVector<int64_t> bits(turned->keyBits.begin(), turned->keyBits.end());
    list.append("key_bits", b.getI64ArrayAttr(bits));
    if (llvm::any_of(turned->folds, [](int64_t fold) { return fold; }))
      list.append("folds", b.getI64ArrayAttr(turned->folds));
  } else {
    add("rows", tile.rows);
    add("row_bytes", tile.blockCols * tile.elementBytes);
    add("cols", tile.blockCols);
    if (const Swizzle &s = tile.swizzle; s.bits)
      list.append("swizzle", b.getI64ArrayAttr({s.bits, s.base, s.shift}));
  }
  lanes.lds.describe(list.getDictionary(b.getContext()));
}

void kvbuf::lowerOp(Lanes &lanes, AllocOp op) {
  ImplicitLocOpBuilder &b = lanes.b;
  KVBufferAttr params = op.getBuffer().getType().getParams();
  int64_t bytes = llvm::alignTo(params.getBytes(), kBufferAlignment);
  // Without a place of its own (kvbuf-allocate-lds), after all the others.
  int64_t offset =
      op.getOffset() ? int64_t(*op.getOffset()) : lanes.lds.bytes();
  Value first = lanes.i32(offset);
  // Each copy of a team has a buffer of its own.
  int64_t copies = lanes.team ? int64_t(TeamOp(lanes.team->op).getCopies()) : 1;
  if (copies > 1)
    first = arith::AddIOp::create(
        b, first, arith::MulIOp::create(b, lanes.team->copy, lanes.i32(bytes)));
  lanes.set(op.getBuffer(), {first});
  for (int64_t i = 0; i < copies; ++i)
    describeLds(lanes, params, offset + i * bytes);
  if (!op.getOffset())
    lanes.lds.take(copies * bytes);
}

TileValues kvbuf::sourceOf(Lanes &lanes, TypedValue<TileType> tile,
                           KVBufferAttr params, int64_t block) {
  ImplicitLocOpBuilder &b = lanes.b;
  TileValues source = TileValues::unpack(tile.getType(), lanes.get(tile));
  if (int64_t first = params.getHeadDimOffset() + block * params.getBK())
    source.base = add(b, source.base, lanes.index(first));
  return source;
}

void kvbuf::lowerOp(Lanes &lanes, DramLoadOp op) {
  ImplicitLocOpBuilder &b = lanes.b;
  KVBufferAttr params = op.getBuffer().getType().getParams();
  Value slot = lanes.single(op.getBuffer());
  if (op.getSlot() && params.getStages() > 1)
    slot = arith::AddIOp::create(
        b, slot,
        arith::MulIOp::create(b, lanes.toI32(lanes.single(op.getSlot())),
                              lanes.i32(params.getStageBytes())));
  TileValues tile = sourceOf(lanes, op.getTile(), params, op.getBlock());
  Values token = lanes.machine.emitLoad(lanes, op, tile, slot);
  token.insert(token.begin(), slot);
  lanes.set(op.getToken(), token);
}

void kvbuf::lowerOp(Lanes &lanes, LdsStageOp op) {
  SmallVector<Values> tokens;
  for (Value token : op.getTokens())
    tokens.push_back(lanes.get(token));
  lanes.machine.emitStage(lanes, op, tokens);
  for (auto [token, staged] : llvm::zip_equal(op.getTokens(), op.getStaged()))
    lanes.set(staged, {lanes.get(token)[0]});
}

LogicalResult kvbuf::lowerOp(Lanes &lanes, FragmentLoadOp op) {
  Values words;
  if (failed(lanes.machine.emitFragmentLoad(
          lanes, op, lanes.single(op.getStaged()), words)))
    return failure();
  lanes.set(op.getFragment(), words);
  return success();
}

void kvbuf::lowerOp(Lanes &lanes, StagedViewOp op) {
  // The view's place is in its type.
  lanes.set(op.getView(), {lanes.single(op.getSource())});
}

LogicalResult kvbuf::lowerOp(Lanes &lanes, TileFragmentOp op) {
  TileValues tile =
      TileValues::unpack(op.getTile().getType(), lanes.get(op.getTile()));
  // A lane's words are whole, or past the tile's columns.
  int64_t cols = op.getTile().getType().getCols();
  auto made = op.getTile().getDefiningOp<DramTileOp>();
  if (made ? mayCutColumns(made) : bool(tile.cols))
    return op.emitOpError()
           << "reads a window whose columns may be cut; expected " << cols
           << " valid columns, a constant; others go through LDS by "
              "kvbuffer.dram_load";
  if (cols % kWordColumns)
    return op.emitOpError()
           << "reads " << cols << " columns; expected a multiple of "
           << kWordColumns;
  Values words;
  if (failed(lanes.machine.emitTileFragment(lanes, op, tile, words)))
    return failure();
  lanes.set(op.getFragment(), words);
  return success();
}

//===----------------------------------------------------------------------===//
// Tensors read by scalar code
//===----------------------------------------------------------------------===//

LogicalResult kvbuf::lowerOp(LaneLowering &lower, memref::LoadOp op) {
  ImplicitLocOpBuilder &b = lower.b;
  const TensorArg *tensor = lower.signature.findTensor(op.getMemref());
  if (!tensor)
    return op.emitOpError() << "reads a tensor that is not an argument";
  Value at = lower.index(0);
  for (auto [i, position] : llvm::enumerate(op.getIndices())) {
    Value term = lower.single(position);
    if (i < tensor->strides.size())
      term = mul(b, term, tensor->strides[i]);
    at = add(b, at, term);
  }
  lower.set(op.getResult(), {memref::LoadOp::create(b, lower.flat(tensor->data),
                                                    ValueRange{at})});
  return success();
}

LogicalResult kvbuf::lowerOp(LaneLowering &lower, memref::DimOp op) {
  const TensorArg *tensor = lower.signature.findTensor(op.getSource());
  std::optional<int64_t> dim = op.getConstantIndex();
  auto type = dyn_cast<MemRefType>(op.getSource().getType());
  if (!tensor || !dim || !type || *dim >= type.getRank())
    return op.emitOpError() << "asks for a size that is not a kernel "
                               "parameter; expected a constant dimension of an "
                               "argument of the kernel";
  if (!type.isDynamicDim(*dim)) {
    lower.set(op.getResult(), {lower.index(type.getDimSize(*dim))});
    return success();
  }
  lower.set(op.getResult(), {tensor->sizes[*dim]});
  return success();
}
