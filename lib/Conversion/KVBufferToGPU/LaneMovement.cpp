//===- LaneMovement.cpp - Caches, tiles and loads ---------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

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
Value LaneLowering::lookup(Value table, Value entry) {
  return blockAt(*this, table, entry);
}

/// Entry `entry` of lengths or offsets, which lie in device memory where nobody
/// has checked them: the nearest number from `least` to `most`.
Value LaneLowering::lookupWithin(Value lengths, Value entry, Value least,
                                 Value most) {
  Value word = memref::LoadOp::create(b, flat(lengths), ValueRange{entry});
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

LogicalResult LaneLowering::lower(MakeCacheOp op) {
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
  const TensorArg data = signature.tensor(op.getData());
  SmallVector<TensorArg> indices;
  for (Value tensor : op.getIndices())
    indices.push_back(signature.tensor(tensor));
  auto sizeOf = [&](Value memref, const TensorArg &tensor, unsigned d) {
    auto shape = cast<MemRefType>(memref.getType());
    return shape.isDynamicDim(d) ? tensor.sizes[d] : index(shape.getDimSize(d));
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
  signature.tensor(op.getCache()) = cache;
  set(op.getCache(), {});
  return success();
}

void LaneLowering::lower(CacheNumKeysOp op) {
  const TensorArg &cache = signature.tensor(op.getCache());
  Value batch = single(op.getBatch());
  Value keys;
  switch (op.getCache().getType().getKind()) {
  case CacheKind::Dense:
    keys = cache.sizes[1];
    break;
  case CacheKind::Ragged: {
    Value rows = signature.roomOf(op.getCache(), op);
    Value first = lookupWithin(cache.offsets, batch, index(0), rows);
    Value next =
        lookupWithin(cache.offsets, add(b, batch, index(1)), first, rows);
    keys = sub(b, next, first);
    break;
  }
  case CacheKind::Continuous:
  case CacheKind::Paged: {
    // No more keys than the slot, or the row of the page table, has room for.
    Value room = signature.roomOf(op.getCache(), op);
    if (int64_t page = op.getCache().getType().getPageSize())
      room = mul(b, room, index(page));
    Value length = lookupWithin(cache.lengths, batch, index(0), room);
    keys = arith::MinSIOp::create(b, add(b, length, single(op.getNewTokens())),
                                  room);
    break;
  }
  }
  set(op.getKeys(), {keys});
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

bool LaneLowering::looksUpByLane(TileType type) {
  return type.getPageSize() && !machine.hasRoles() &&
         type.getRows() <= target.lanesThatLookUp(schedule.getWarps());
}

Value LaneLowering::pagesOfRows(CacheTileOp op, const TileValues &tile,
                                Value tableBase) {
  int64_t page = op.getTile().getType().getPageSize();
  auto numberOf = [&](Value row) {
    return pageOf(*this, add(b, tile.firstKey, toIndex(row)), page).first;
  };
  Value number = numberOf(lane);
  // No look-up of a page of which no row is there. A row before those that
  // are there may be its page's first, whose number others ask for.
  Value exists =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, lane, tile.hi);
  if (!matchPattern(tile.lo, m_Zero()))
    exists = arith::AndIOp::create(
        b, exists,
        arith::CmpIOp::create(b, arith::CmpIPredicate::uge, number,
                              numberOf(tile.lo)));
  if (op.getPred())
    exists = arith::AndIOp::create(b, exists, single(op.getPred()));
  auto found = scf::IfOp::create(b, TypeRange{b.getI32Type()}, exists,
                                 /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(found.thenBlock());
  Value table = signature.tensor(op.getCache()).table;
  scf::YieldOp::create(b, toI32(lookup(table, add(b, tableBase, number))));
  b.setInsertionPointToStart(found.elseBlock());
  scf::YieldOp::create(b, i32(0));
  return found.getResult(0);
}

void LaneLowering::lower(CacheTileOp op) {
  CacheType type = op.getCache().getType();
  const TensorArg &cache = signature.tensor(op.getCache());
  Value batch = single(op.getBatch()), head = single(op.getHead()),
        start = single(op.getStart());
  int64_t rows = op.getTile().getType().getRows();

  TileValues tile;
  tile.data = cache.data;
  // Rows outside of [lo, hi) are not touched. Keys fit 32 bits; producers have
  // no registers to spare for more.
  TileCoordinates at = tileEdges(op.getTile());
  auto fromStart = [&](Value key) {
    return sub(b, toI32(single(key)), toI32(start));
  };
  tile.lo = i32(0);
  if (at.rowsBefore)
    tile.lo = arith::MaxSIOp::create(b, fromStart(op.getFrom()), i32(0));
  tile.hi = arith::MinSIOp::create(b, fromStart(op.getUpto()), i32(rows));

  // A look-up that the program must not make where nothing is loaded.
  auto guardedLookup = [&](Value table, Value entry) -> Value {
    if (!op.getPred())
      return lookup(table, entry);
    auto ifOp = scf::IfOp::create(b, TypeRange{b.getIndexType()},
                                  single(op.getPred()), /*addThenBlock=*/true,
                                  /*addElseBlock=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifOp.thenBlock());
    scf::YieldOp::create(b, lookup(table, entry));
    b.setInsertionPointToStart(ifOp.elseBlock());
    scf::YieldOp::create(b, index(0));
    return ifOp.getResult(0);
  };

  ArrayRef<Value> s = cache.strides;
  at.tensor = op.getCache();
  auto place = [&](std::initializer_list<Value> position) {
    for (Value index : position)
      at.position.push_back(toI32(index));
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
    Value last =
        sub(b, signature.roomOf(op.getCache(), op), single(op.getUpto()));
    last = arith::MaxSIOp::create(b, last, index(0));
    Value row =
        add(b, lookupWithin(cache.offsets, batch, index(0), last), start);
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
      place({index(0), head, index(0)});
      tile.base = mul(b, head, s[2]);
      tile.firstKey = start;
      tile.pageStride = s[0];
      if (looksUpByLane(small)) {
        tile.pages = pagesOfRows(op, tile, tableBase);
        break;
      }
      // Each row, or box of rows, finds its own page when it is loaded.
      tile.table = cache.table;
      tile.tableBase = tableBase;
      break;
    }
    auto [number, offset] = pageOf(*this, start, page);
    Value block = guardedLookup(cache.table, add(b, tableBase, number));
    place({offset, head, block});
    tile.base = add(b, add(b, mul(b, block, s[0]), mul(b, head, s[2])),
                    mul(b, offset, s[1]));
    break;
  }
  }
  set(op.getTile(), tile.pack());
  coordinates[op.getTile()] = at;
}

void LaneLowering::lower(CacheScaleOp op) {
  CacheType type = op.getCache().getType();
  const TensorArg &cache = signature.tensor(op.getCache());
  Value head = single(op.getHead()), at;
  if (type.getGranularity() == kPerTensor) {
    at = index(0);
  } else if (type.getGranularity() == kPerHead) {
    at = head;
  } else {
    Value batch = single(op.getBatch()), token = single(op.getToken());
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
          lookupWithin(cache.offsets, batch, index(0),
                       signature.launchSize(sizeOfCache(
                           op.getCache(), type.getLeadingDims().back().name)));
      at = mul(b, add(b, first, token), s[0]);
      break;
    }
    case CacheKind::Continuous:
      at = from(lookup(cache.table, batch), token);
      break;
    case CacheKind::Paged: {
      auto [number, offset] = pageOf(*this, token, type.getPageSize());
      Value entry = add(b, mul(b, batch, cache.tableStride), number);
      at = from(lookup(cache.table, entry), offset);
      break;
    }
    }
    at = add(b, at, mul(b, head, s.back()));
    if (type.getGranularity() < type.getHeadSize())
      at = add(b, at,
               arith::DivUIOp::create(b, single(op.getHeadDim()),
                                      index(type.getGranularity())));
  }
  Value scale = memref::LoadOp::create(b, flat(cache.scales), ValueRange{at});
  if (!scale.getType().isF32())
    scale = arith::ExtFOp::create(b, b.getF32Type(), scale);
  set(op.getScale(), {scale});
}

void LaneLowering::lower(DramTileOp op) {
  const TensorArg &tensor = signature.tensor(op.getTensor());
  TileValues tile;
  tile.data = tensor.data;
  int64_t rowDimension = op.getRowDimension();
  tile.rowStride = tensor.strides[rowDimension];
  if (op.getGroup() > 1) {
    // Rows of a group lie one head apart.
    tile.pageStride = tile.rowStride;
    tile.rowStride = tensor.strides[rowDimension + 1];
    tile.firstKey = index(0);
  }
  if (op.getNumbers()) {
    // Pages of one row, which a table names.
    tile.pageStride = tile.rowStride;
    tile.table = signature.tensor(op.getNumbers()).data;
    tile.tableBase = single(op.getFirst());
    tile.firstKey = index(0);
  }
  for (auto [i, position] : llvm::enumerate(op.getIndices())) {
    // Columns lie side by side.
    Value term = single(position);
    if (i < tensor.strides.size())
      term = mul(b, term, tensor.strides[i]);
    tile.base = tile.base ? add(b, tile.base, term) : term;
  }
  tile.lo = i32(0);
  tile.hi = toI32(arith::MinSIOp::create(
      b, single(op.getValid()), index(op.getTile().getType().getRows())));
  if (op.isWindow())
    tile.cols = toI32(arith::MinSIOp::create(
        b, single(op.getValidCols()), index(op.getTile().getType().getCols())));
  set(op.getTile(), tile.pack());
  TileCoordinates at = tileEdges(op.getTile());
  at.tensor = op.getTensor();
  auto place = [&](int64_t dimension) {
    at.position.push_back(toI32(single(op.getIndices()[dimension])));
  };
  place(rowDimension);
  int64_t last = tensor.strides.size();
  for (int64_t dimension = last - 1; dimension >= 0; --dimension)
    if (dimension != rowDimension)
      place(dimension);
  if (op.isWindow())
    at.column = toI32(single(op.getIndices()[last]));
  coordinates[op.getTile()] = at;
}

void LaneLowering::lower(KeyRangeOp op) {
  Value row = single(op.getRow()), queries = single(op.getQueries()),
        keys = single(op.getKeys());
  MaskAttr mask = op.getMask();
  Value zero = index(0);
  int64_t rows = op.getQueriesOfRows();
  // Groups of warps own neighbouring rows where each warp has those of one
  // instruction.
  bool own = op.getPerGroup() && roles.group && int64_t(op.getGroup()) == 1 &&
             rows == schedule.getMmaShape()[0] * schedule.getWarps();
  if (own) {
    rows /= roles.groups;
    row = add(b, row, mul(b, toIndex(roles.group), index(rows)));
  }
  Value lo = zero, hi = keys, fullLo = zero, fullHi = keys;
  // Query row i stands at key position i + shift.
  Value shift = sub(b, keys, queries);
  Value end = arith::MinSIOp::create(b, add(b, row, index(rows)), queries);
  Value first = add(b, row, shift);
  Value last = add(b, sub(b, end, index(1)), shift);
  if (mask.boundsRight()) {
    Value reach = index(mask.rightReach() + 1);
    hi = arith::MinSIOp::create(b, keys, add(b, last, reach));
    fullHi = arith::MinSIOp::create(b, keys, add(b, first, reach));
  }
  if (mask.boundsLeft()) {
    Value left = index(mask.getLeft());
    lo = arith::MaxSIOp::create(b, zero, sub(b, first, left));
    fullLo = arith::MaxSIOp::create(b, zero, sub(b, last, left));
  }
  // A group may own no row of the last tile of queries.
  if (own) {
    Value any =
        arith::CmpIOp::create(b, arith::CmpIPredicate::slt, row, queries);
    hi = arith::SelectOp::create(b, any, hi, zero);
  }
  set(op.getLo(), {lo});
  set(op.getHi(), {hi});
  set(op.getFullLo(), {fullLo});
  set(op.getFullHi(), {fullHi});
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

/// Notes what lies at `offset`, for messages.
void LaneLowering::describeLds(KVBufferAttr params, int64_t offset) {
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
          machine.turnedTile(*this, params)) {
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
  lds.describe(list.getDictionary(b.getContext()));
}

void LaneLowering::lower(AllocOp op) {
  KVBufferAttr params = op.getBuffer().getType().getParams();
  int64_t bytes = llvm::alignTo(params.getBytes(), kBufferAlignment);
  // Without a place of its own (kvbuf-allocate-lds), after all the others.
  int64_t offset = op.getOffset() ? int64_t(*op.getOffset()) : lds.bytes();
  Value first = i32(offset);
  // Each copy of a team has a buffer of its own.
  int64_t copies = team ? int64_t(TeamOp(team->op).getCopies()) : 1;
  if (copies > 1)
    first = arith::AddIOp::create(
        b, first, arith::MulIOp::create(b, team->copy, i32(bytes)));
  set(op.getBuffer(), {first});
  for (int64_t i = 0; i < copies; ++i)
    describeLds(params, offset + i * bytes);
  if (!op.getOffset())
    lds.take(copies * bytes);
}

TileValues LaneLowering::sourceOf(TypedValue<TileType> tile,
                                  KVBufferAttr params, int64_t block) {
  TileValues source = TileValues::unpack(tile.getType(), get(tile));
  if (int64_t first = params.getHeadDimOffset() + block * params.getBK())
    source.base = add(b, source.base, index(first));
  return source;
}

void LaneLowering::lower(DramLoadOp op) {
  KVBufferAttr params = op.getBuffer().getType().getParams();
  Value slot = single(op.getBuffer());
  if (params.getStages() > 1)
    slot = arith::AddIOp::create(
        b, slot,
        arith::MulIOp::create(b, toI32(single(op.getSlot())),
                              i32(params.getStageBytes())));
  TileValues tile = sourceOf(op.getTile(), params, op.getBlock());
  Values token = machine.emitLoad(*this, op, tile, slot);
  token.insert(token.begin(), slot);
  set(op.getToken(), token);
}

void LaneLowering::lower(LdsStageOp op) {
  SmallVector<Values> tokens;
  for (Value token : op.getTokens())
    tokens.push_back(get(token));
  machine.emitStage(*this, op, tokens);
  for (auto [token, staged] : llvm::zip_equal(op.getTokens(), op.getStaged()))
    set(staged, {get(token)[0]});
}

LogicalResult LaneLowering::lower(FragmentLoadOp op) {
  Values words;
  if (failed(
          machine.emitFragmentLoad(*this, op, single(op.getStaged()), words)))
    return failure();
  set(op.getFragment(), words);
  return success();
}

void LaneLowering::lower(StagedViewOp op) {
  // The view's place is in its type.
  set(op.getView(), {single(op.getSource())});
}

LogicalResult LaneLowering::lower(TileFragmentOp op) {
  TileValues tile =
      TileValues::unpack(op.getTile().getType(), get(op.getTile()));
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
  if (failed(machine.emitTileFragment(*this, op, tile, words)))
    return failure();
  set(op.getFragment(), words);
  return success();
}

//===----------------------------------------------------------------------===//
// Tensors read by scalar code
//===----------------------------------------------------------------------===//

LogicalResult LaneLowering::lower(memref::LoadOp op) {
  const TensorArg *tensor = signature.findTensor(op.getMemref());
  if (!tensor)
    return op.emitOpError() << "reads a tensor that is not an argument";
  Value at = index(0);
  for (auto [i, position] : llvm::enumerate(op.getIndices())) {
    Value term = single(position);
    if (i < tensor->strides.size())
      term = mul(b, term, tensor->strides[i]);
    at = add(b, at, term);
  }
  set(op.getResult(),
      {memref::LoadOp::create(b, flat(tensor->data), ValueRange{at})});
  return success();
}

void LaneLowering::lower(LaunchSizeOp op) {
  set(op.getSize(), {signature.launchSize(op.getName())});
}

/// Entry `i` of the offsets of a ragged batch of `most` rows: the nearest
/// number from `least` to `most`. All are 32-bit integers.
static Value emitOffset(LaneLowering &lower, const TensorArg &offsets, Value i,
                        Value least, Value most) {
  ImplicitLocOpBuilder &b = lower.b;
  Value row = memref::LoadOp::create(b, lower.flat(offsets.data),
                                     ValueRange{lower.toIndex(i)});
  bool wide = !row.getType().isInteger(32);
  if (wide) {
    least = arith::ExtSIOp::create(b, row.getType(), least);
    most = arith::ExtSIOp::create(b, row.getType(), most);
  }
  row = arith::MaxSIOp::create(b, row, least);
  row = arith::MinSIOp::create(b, row, most);
  return wide ? arith::TruncIOp::create(b, b.getI32Type(), row).getResult()
              : row;
}

LogicalResult LaneLowering::lower(FindTileOp op) {
  const TensorArg *tensor = signature.findTensor(op.getOffsets());
  if (!tensor)
    return op.emitOpError() << "reads offsets that are not an argument";
  Value number = toI32(single(op.getNumber())), one = i32(1),
        bm = i32(op.getBM());
  Value rows = toI32(single(op.getRows()));
  auto offset = [&](Value i, Value least) {
    return emitOffset(*this, *tensor, i, least, rows);
  };
  Value numbers, place;
  if (op.getNumbers()) {
    numbers = flat(signature.tensor(op.getNumbers()).data);
    place = signature.offsetOf(op.getNumbers(), op.getODSOperands(5));
  }
  auto firstNumber = [&](Value sequence) -> Value {
    if (numbers)
      return memref::LoadOp::create(
          b, numbers, ValueRange{add(b, place, toIndex(sequence))});
    return arith::AddIOp::create(
        b, arith::DivUIOp::create(b, offset(sequence, i32(0)), bm).getResult(),
        sequence);
  };
  Value sequences = toI32(single(op.getSequences()));
  auto notAbove = [&](Value sequence) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::sle,
                                 firstNumber(sequence), number);
  };
  // The sequence is one of those from `low` to `high`, excluded. The lanes of a
  // warp look at one each, evenly apart; where one lane runs, it halves them.
  bool alone = roles.movers == Movers::Lane && isOfProducers(op);
  Type type = b.getI32Type();
  SmallVector<Type> types{type, type};
  SmallVector<Location> locs(2, op.getLoc());
  auto loop = scf::WhileOp::create(b, types, ValueRange{i32(0), sequences});
  {
    OpBuilder::InsertionGuard guard(b);
    Block *before = b.createBlock(&loop.getBefore(), {}, types, locs);
    Value size = arith::SubIOp::create(b, before->getArgument(1),
                                       before->getArgument(0));
    Value more = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, size, one);
    scf::ConditionOp::create(b, more, before->getArguments());
    Block *after = b.createBlock(&loop.getAfter(), {}, types, locs);
    Value low = after->getArgument(0), high = after->getArgument(1);
    if (alone) {
      Value middle = arith::ShRUIOp::create(
          b, arith::AddIOp::create(b, low, high).getResult(), one);
      Value isAfter = notAbove(middle);
      scf::YieldOp::create(
          b, ValueRange{arith::SelectOp::create(b, isAfter, middle, low),
                        arith::SelectOp::create(b, isAfter, high, middle)});
    } else {
      Value step = arith::CeilDivUIOp::create(
          b, arith::SubIOp::create(b, high, low).getResult(),
          i32(target.waveSize));
      Value mine = arith::AddIOp::create(
          b, low, arith::MulIOp::create(b, lane, step).getResult());
      Value last = arith::SubIOp::create(b, high, one);
      Value inside =
          arith::CmpIOp::create(b, arith::CmpIPredicate::sle, mine, last);
      Value found = arith::AndIOp::create(
          b, inside, notAbove(arith::MinSIOp::create(b, mine, last)));
      // The first one counts whatever its offset is.
      Value past = arith::SubIOp::create(
          b,
          arith::MaxSIOp::create(
              b, LaneCountOp::create(b, b.getI32Type(), found).getResult(), one)
              .getResult(),
          one);
      Value from = arith::AddIOp::create(
          b, low, arith::MulIOp::create(b, past, step).getResult());
      scf::YieldOp::create(
          b,
          ValueRange{from, arith::MinSIOp::create(
                               b, arith::AddIOp::create(b, from, step), high)});
    }
  }
  Value sequence = loop.getResult(0);
  Value tile = arith::SubIOp::create(b, number, firstNumber(sequence));
  if (op.getFromEnd()) {
    Value start = offset(sequence, i32(0));
    Value end = offset(arith::AddIOp::create(b, sequence, one), start);
    Value length = arith::SubIOp::create(b, end, start);
    Value last = arith::SubIOp::create(
        b, arith::CeilDivUIOp::create(b, length, bm).getResult(), one);
    Value isTile =
        arith::CmpIOp::create(b, arith::CmpIPredicate::sle, tile, last);
    tile = arith::SelectOp::create(
        b, isTile, arith::SubIOp::create(b, last, tile).getResult(), tile);
  }
  set(op.getSequence(), {toIndex(sequence)});
  set(op.getTile(), {toIndex(tile)});
  return success();
}

LogicalResult LaneLowering::lower(NumberTilesOp op) {
  const TensorArg *tensor = signature.findTensor(op.getOffsets());
  if (!tensor)
    return op.emitOpError() << "reads offsets that are not an argument";
  Value zero = i32(0), one = i32(1), wave = i32(target.waveSize);
  Value sequences = toI32(single(op.getSequences()));
  Value numbers = flat(signature.tensor(op.getNumbers()).data);
  Value place = signature.offsetOf(op.getNumbers(), op.getODSOperands(4));
  Value most = toI32(single(op.getRows()));
  // Every warp looks at all sequences, each lane at some neighbouring ones: the
  // lanes' loads are in flight together, and those of a lane's next sequences
  // are of the same lines.
  Value each = arith::CeilDivUIOp::create(b, sequences, wave);
  Value from = arith::MinSIOp::create(
      b, arith::MulIOp::create(b, lane, each).getResult(), sequences);
  Value upto = arith::MinSIOp::create(
      b, arith::AddIOp::create(b, from, each).getResult(), sequences);
  auto tilesOf = [&](Value sequence) -> Value {
    Value next = arith::AddIOp::create(b, sequence, one);
    Value start = emitOffset(*this, *tensor, sequence, zero, most);
    Value end = emitOffset(*this, *tensor, next, start, most);
    Value rows = arith::SubIOp::create(b, end, start);
    Value tiles = arith::CeilDivUIOp::create(b, rows, i32(op.getBM()));
    if (!op.getOver())
      return tiles;
    Value isLong = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, rows,
                                         i32(op.getOver()));
    return arith::SelectOp::create(b, isLong, tiles, zero);
  };
  // Calls `visit` with each of the lane's sequences and the tiles before it.
  auto forOwn = [&](Value before, function_ref<void(Value, Value)> visit) {
    auto loop = scf::ForOp::create(b, from, upto, one, ValueRange{before});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value sofar = loop.getRegionIterArg(0);
    visit(loop.getInductionVar(), sofar);
    Value next =
        arith::AddIOp::create(b, sofar, tilesOf(loop.getInductionVar()));
    scf::YieldOp::create(b, next);
    return loop.getResult(0);
  };
  Value own = forOwn(zero, [](Value, Value) {});
  // Tiles of the lanes before this one, and of all.
  Value before = zero, all = own;
  for (int64_t bit = 1; bit < target.waveSize; bit *= 2) {
    Value others =
        gpu::ShuffleOp::create(b, all, i32(bit), wave, gpu::ShuffleMode::XOR)
            .getShuffleResult();
    Value isAfter = arith::CmpIOp::create(
        b, arith::CmpIPredicate::ne,
        arith::AndIOp::create(b, lane, i32(bit)).getResult(), zero);
    before = arith::AddIOp::create(
        b, before,
        arith::SelectOp::create(b, isAfter, others, zero).getResult());
    all = arith::AddIOp::create(b, all, others);
  }
  Value isFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, warp, zero);
  auto write = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(write.thenBlock());
    (void)forOwn(before, [&](Value sequence, Value sofar) {
      memref::StoreOp::create(b, sofar, numbers,
                              ValueRange{add(b, place, toIndex(sequence))});
    });
  }
  gpu::BarrierOp::create(b);
  set(op.getTiles(), {toIndex(machine.uniform(*this, all))});
  return success();
}

LogicalResult LaneLowering::lower(memref::DimOp op) {
  const TensorArg *tensor = signature.findTensor(op.getSource());
  std::optional<int64_t> dim = op.getConstantIndex();
  auto type = dyn_cast<MemRefType>(op.getSource().getType());
  if (!tensor || !dim || !type || *dim >= type.getRank())
    return op.emitOpError() << "asks for a size that is not a kernel "
                               "parameter; expected a constant dimension of an "
                               "argument of the kernel";
  if (!type.isDynamicDim(*dim)) {
    set(op.getResult(), {index(type.getDimSize(*dim))});
    return success();
  }
  set(op.getResult(), {tensor->sizes[*dim]});
  return success();
}
