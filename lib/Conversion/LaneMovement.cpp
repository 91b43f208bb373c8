//===- LaneMovement.cpp - Caches, tiles, loads and stores -------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaneLowering.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

/// Entry `entry` of a table of 32-bit integers, as an index. Entries are block
/// numbers and lengths: not negative.
Value LaneLowering::lookup(Value table, Value entry) {
  Value word = memref::LoadOp::create(b, flat(table), ValueRange{entry});
  return arith::IndexCastUIOp::create(b, b.getIndexType(), word);
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
static Value compare(ImplicitLocOpBuilder &b, arith::CmpIPredicate predicate,
                     Value x, Value y) {
  return arith::CmpIOp::create(b, predicate, x, y);
}

//===----------------------------------------------------------------------===//
// Caches and tiles
//===----------------------------------------------------------------------===//

void LaneLowering::lower(CacheNumKeysOp op) {
  const TensorArg &cache = tensors[op.getCache()];
  Value batch = single(op.getBatch());
  Value keys;
  switch (op.getCache().getType().getKind()) {
  case CacheKind::Dense:
    keys = cache.sizes[1];
    break;
  case CacheKind::Ragged: {
    Value next = lookup(cache.offsets, add(b, batch, index(1)));
    keys = sub(b, next, lookup(cache.offsets, batch));
    break;
  }
  case CacheKind::Continuous:
  case CacheKind::Paged:
    keys = add(b, lookup(cache.lengths, batch), single(op.getNewTokens()));
    break;
  }
  set(op.getKeys(), {keys});
}

TileCoordinates LaneLowering::tileEdges(Value tile) const {
  TileCoordinates edges;
  if (auto op = tile.getDefiningOp<DramTileOp>()) {
    // With a batch dimension the tensor ends where the valid rows do.
    edges.rowsBehind = op.getIndices().size() < 3;
  } else if (auto op = tile.getDefiningOp<CacheTileOp>()) {
    // A range whose mask has no left side starts at key 0.
    auto range = op.getFrom().getDefiningOp<KeyRangeOp>();
    edges.rowsBefore = !matchPattern(op.getFrom(), m_Zero()) &&
                       !(range && range.getLo() == op.getFrom() &&
                         !range.getMask().boundsLeft());
    edges.rowsBehind = op.getCache().getType().getKind() != CacheKind::Dense;
  }
  return edges;
}

void LaneLowering::lower(CacheTileOp op) {
  CacheType type = op.getCache().getType();
  const TensorArg &cache = tensors[op.getCache()];
  Value batch = single(op.getBatch()), head = single(op.getHead()),
        start = single(op.getStart());
  int64_t rows = op.getTile().getType().getRows();

  TileValues tile;
  tile.data = cache.data;
  // Rows outside of [lo, hi) are not touched; both fit 32 bits once clamped.
  tile.lo = toI32(
      arith::MaxSIOp::create(b, sub(b, single(op.getFrom()), start), index(0)));
  tile.hi = toI32(arith::MinSIOp::create(b, sub(b, single(op.getUpto()), start),
                                         index(rows)));

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
  TileCoordinates at = tileEdges(op.getTile());
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
    Value row = add(b, lookup(cache.offsets, batch), start);
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
    if (op.getTile().getType().getPageSize()) {
      // Each row finds its own page when it is loaded.
      tile.base = mul(b, head, s[2]);
      tile.table = cache.table;
      tile.tableBase = tableBase;
      tile.firstKey = start;
      tile.pageStride = s[0];
      break;
    }
    Value number = arith::ShRUIOp::create(b, start, index(llvm::Log2_64(page)));
    Value offset = arith::AndIOp::create(b, start, index(page - 1));
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

void LaneLowering::lower(DramTileOp op) {
  const TensorArg &tensor = tensors[op.getTensor()];
  TileValues tile;
  tile.data = tensor.data;
  unsigned rank = op.getIndices().size() + 1;
  // Rows are the third dimension from the right: [.., rows, heads, head_size].
  tile.rowStride = tensor.strides[rank - 3];
  for (auto [i, position] : llvm::enumerate(op.getIndices())) {
    Value term = mul(b, single(position), tensor.strides[i]);
    tile.base = tile.base ? add(b, tile.base, term) : term;
  }
  tile.lo = i32(0);
  tile.hi = toI32(arith::MinSIOp::create(
      b, single(op.getValid()), index(op.getTile().getType().getRows())));
  set(op.getTile(), tile.pack());
  // [batch,] rows, heads, columns to rows, heads [, batch].
  TileCoordinates at = tileEdges(op.getTile());
  at.tensor = op.getTensor();
  for (unsigned i : {rank - 3, rank - 2})
    at.position.push_back(toI32(single(op.getIndices()[i])));
  if (rank > 3)
    at.position.push_back(toI32(single(op.getIndices()[0])));
  coordinates[op.getTile()] = at;
}

void LaneLowering::lower(KeyRangeOp op) {
  Value row = single(op.getRow()), queries = single(op.getQueries()),
        keys = single(op.getKeys());
  MaskAttr mask = op.getMask();
  Value zero = index(0);
  Value lo = zero, hi = keys, fullLo = zero, fullHi = keys;
  // Query row i stands at key position i + shift.
  Value shift = sub(b, keys, queries);
  Value end =
      arith::MinSIOp::create(b, add(b, row, index(op.getBM())), queries);
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
  set(op.getLo(), {lo});
  set(op.getHi(), {hi});
  set(op.getFullLo(), {fullLo});
  set(op.getFullHi(), {fullHi});
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

void LaneLowering::lower(AllocOp op) {
  set(op.getBuffer(), {i32(ldsBytes)});
  ldsBytes += llvm::alignTo(op.getBuffer().getType().getParams().getBytes(),
                            kBufferAlignment);
}

void LaneLowering::lower(DramLoadOp op) {
  KVBufferAttr params = op.getBuffer().getType().getParams();
  Value slot = single(op.getBuffer());
  if (params.getStages() > 1)
    slot = arith::AddIOp::create(
        b, slot,
        arith::MulIOp::create(b, toI32(single(op.getSlot())),
                              i32(params.getStageBytes())));
  TileValues tile =
      TileValues::unpack(op.getTile().getType(), get(op.getTile()));
  // The buffer takes a part of each row: of a cache whose rows hold more.
  if (int64_t first = params.getHeadDimOffset())
    tile.base = add(b, tile.base, index(first));
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

LogicalResult LaneLowering::lower(TileFragmentOp op) {
  Values words;
  if (failed(machine.emitTileFragment(
          *this, op,
          TileValues::unpack(op.getTile().getType(), get(op.getTile())),
          words)))
    return failure();
  set(op.getFragment(), words);
  return success();
}

//===----------------------------------------------------------------------===//
// Stores
//===----------------------------------------------------------------------===//

Value LaneLowering::laneRow() {
  // Warps are stacked along rows; a lane's part is read off the layout.
  SmallVector<int64_t> basis;
  const LinearLayout &layout = layouts.atom(Role::Acc).layout;
  for (unsigned bit = 0; bit < layout.inLog2("lane"); ++bit)
    basis.push_back(layout.basis("lane", bit, "row"));
  Value inWarp = emitLinear(b, lane, basis);
  return arith::AddIOp::create(
      b, inWarp, arith::MulIOp::create(b, warp, i32(schedule.getWM())));
}

Value LaneLowering::laneCol() {
  SmallVector<int64_t> basis;
  const LinearLayout &layout = layouts.atom(Role::Acc).layout;
  for (unsigned bit = 0; bit < layout.inLog2("lane"); ++bit)
    basis.push_back(layout.basis("lane", bit, "col"));
  return emitLinear(b, lane, basis);
}

int64_t LaneLowering::rowOffset(int64_t atomRow, unsigned part) const {
  return atomRow * layouts.atom(Role::Acc).rows + layouts.rowParts()[part];
}

LogicalResult LaneLowering::lower(FragmentStoreOp op) {
  TileValues tile =
      TileValues::unpack(op.getTile().getType(), get(op.getTile()));
  if (!op.getVia() || !op->getParentOfType<WarpRolesOp>()) {
    emitStore(op, tile);
    return success();
  }
  auto at = coordinates.find(op.getTile());
  if (at == coordinates.end())
    return op.emitOpError() << "expected a tile that kvbuffer.dram_tile makes";
  if (!at->second.rowsBehind)
    return machine.emitStoreVia(*this, op, at->second, get(op.getFragment()),
                                single(op.getVia()));
  // An engine's box would write rows that are not the tile's.
  Value whole = compare(b, arith::CmpIPredicate::sge, tile.hi,
                        i32(op.getTile().getType().getRows()));
  auto ifWhole = scf::IfOp::create(b, whole, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifWhole.thenBlock());
  if (failed(machine.emitStoreVia(*this, op, at->second, get(op.getFragment()),
                                  single(op.getVia()))))
    return failure();
  b.setInsertionPointToStart(ifWhole.elseBlock());
  emitStore(op, tile);
  return success();
}

void LaneLowering::emitStore(FragmentStoreOp op, const TileValues &tile) {
  FragmentType type = op.getFragment().getType();
  const FragmentLayouts::Atom &atom = layouts.atom(type.getRole());
  const Values &vectors = get(op.getFragment());
  int64_t atomCols = type.getCols() / atom.cols;
  int64_t atomRows = vectors.size() / atomCols;
  int64_t cols = op.getTile().getType().getCols();
  Value out = flat(tile.data);
  Value row = laneRow(), col = laneCol();

  // Runs of registers with consecutive columns go out in one store.
  int64_t run = 1;
  while (run * 2 <= atom.registers() &&
         atom.layout.basis("register", llvm::Log2_64(run), "col") == run &&
         atom.layout.basis("register", llvm::Log2_64(run), "row") == 0)
    run *= 2;
  for (int64_t i = 0; i < atomRows; ++i)
    for (auto [part, partRow] : llvm::enumerate(layouts.rowParts())) {
      Value r = arith::AddIOp::create(b, row, i32(rowOffset(i, part)));
      Value valid = compare(b, arith::CmpIPredicate::slt, r, tile.hi);
      auto guarded = scf::IfOp::create(b, valid, /*withElseRegion=*/false);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(guarded.thenBlock());
      Value line = add(b, tile.base, mul(b, toIndex(r), tile.rowStride));
      line = add(b, line, toIndex(col));
      for (int64_t j = 0; j < atomCols; ++j)
        for (int64_t reg = 0; reg < atom.registers(); reg += run) {
          if (layouts.rowPart(reg) != part)
            continue;
          int64_t at =
              j * atom.cols + atom.layout.apply({{"register", reg}}, "col");
          Value whole = vectors[i * atomCols + j];
          auto elements = llvm::to_vector(llvm::seq(reg, reg + run));
          Value piece = vector::ShuffleOp::create(b, whole, whole, elements);
          auto store = [&] {
            // Rows and strides are multiples of 16 bytes; see the manifest.
            vector::StoreOp::create(
                b, piece, out, ValueRange{add(b, line, index(at))},
                /*nontemporal=*/false,
                llvm::Align(run *
                            type.getElementType().getIntOrFloatBitWidth() / 8));
          };
          // Columns of an atom that the tile may not have.
          if ((j + 1) * atom.cols <= cols) {
            store();
            continue;
          }
          Value c = arith::AddIOp::create(b, col, i32(at));
          auto inside = scf::IfOp::create(
              b, compare(b, arith::CmpIPredicate::slt, c, i32(cols)),
              /*withElseRegion=*/false);
          OpBuilder::InsertionGuard inner(b);
          b.setInsertionPointToStart(inside.thenBlock());
          store();
        }
    }
}

void LaneLowering::lower(RowStoreOp op) {
  const TensorArg &tensor = tensors[op.getTensor()];
  Value base;
  for (auto [i, position] : llvm::enumerate(op.getIndices())) {
    Value term = single(position);
    if (i < tensor.strides.size())
      term = mul(b, term, tensor.strides[i]);
    base = base ? add(b, base, term) : term;
  }
  Value valid = toI32(arith::MinSIOp::create(
      b, single(op.getValid()), index(op.getFragment().getType().getRows())));
  // The lanes that share a row hold the same value: the first of them stores.
  int64_t others = 0;
  for (unsigned bit : layouts.reductionBits())
    others |= int64_t(1) << bit;
  Value first = compare(b, arith::CmpIPredicate::eq,
                        arith::AndIOp::create(b, lane, i32(others)), i32(0));
  Value row = laneRow();
  Value out = flat(tensor.data);
  unsigned parts = layouts.rowParts().size();
  for (auto [i, value] : llvm::enumerate(get(op.getFragment()))) {
    Value r =
        arith::AddIOp::create(b, row, i32(rowOffset(i / parts, i % parts)));
    Value store = arith::AndIOp::create(
        b, first, compare(b, arith::CmpIPredicate::slt, r, valid));
    auto guarded = scf::IfOp::create(b, store, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(guarded.thenBlock());
    memref::StoreOp::create(b, value, out,
                            ValueRange{add(b, base, toIndex(r))});
  }
}

//===----------------------------------------------------------------------===//
// Tensors read by scalar code
//===----------------------------------------------------------------------===//

LogicalResult LaneLowering::lower(memref::LoadOp op) {
  auto it = tensors.find(op.getMemref());
  if (it == tensors.end())
    return op.emitOpError() << "reads a tensor that is not an argument";
  const TensorArg &tensor = it->second;
  Value at = index(0);
  for (auto [i, position] : llvm::enumerate(op.getIndices())) {
    Value term = single(position);
    if (i < tensor.strides.size())
      term = mul(b, term, tensor.strides[i]);
    at = add(b, at, term);
  }
  set(op.getResult(),
      {memref::LoadOp::create(b, flat(tensor.data), ValueRange{at})});
  return success();
}

LogicalResult LaneLowering::lower(memref::DimOp op) {
  auto it = tensors.find(op.getSource());
  std::optional<int64_t> dim = op.getConstantIndex();
  if (it == tensors.end() || !dim || *dim >= int64_t(it->second.sizes.size()) ||
      !it->second.sizes[*dim])
    return op.emitOpError() << "asks for a size that is not a kernel "
                               "parameter; expected the rows "
                               "of dense queries";
  set(op.getResult(), {it->second.sizes[*dim]});
  return success();
}
