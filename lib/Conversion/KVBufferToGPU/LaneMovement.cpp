//===- LaneMovement.cpp - Tiles and loads -----------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaneMovement.h"
#include "CachePlaces.h"
#include "LaneArithmetic.h"
#include "PackedRows.h"
#include "kvbuffer/Dialect/KVBuffer/IR/ScaledSlots.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// A lane's words of a fragment that is read from a tensor have at most so many
/// columns.
static constexpr int64_t kWordColumns = 8;

void kvbuf::lowerOp(LaneContext &lower, DramTileOp op) {
  ImplicitLocOpBuilder &b = lower.builder();
  const TensorArg &tensor = lower.tensorOf(op.getTensor());
  TileView tile;
  tile.type = op.getTile().getType();
  tile.map = TileView::mapOf(lower, op.getTile());
  tile.edges = TileView::edgesOf(op.getTile());
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
    tile.table = lower.tensorOf(op.getNumbers()).data;
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
  tile.box.tensor = op.getTensor();
  auto place = [&](int64_t dimension) {
    tile.box.position.push_back(
        lower.toI32(lower.single(op.getIndices()[dimension])));
  };
  place(rowDimension);
  int64_t last = tensor.strides.size();
  for (int64_t dimension = last - 1; dimension >= 0; --dimension)
    if (dimension != rowDimension)
      place(dimension);
  if (op.isWindow())
    tile.box.column = lower.toI32(lower.single(op.getIndices()[last]));
  lower.setTile(op.getTile(), tile);
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

/// Notes what lies at `offset`, for messages.
static void describeLds(LaneContext &lanes, AllocOp op, int64_t offset) {
  KVBufferAttr params = op.getBuffer().getType().getParams();
  ImplicitLocOpBuilder &b = lanes.builder();
  NamedAttrList list;
  auto add = [&](StringRef name, int64_t value) {
    list.append(name, b.getI64IntegerAttr(value));
  };
  StringRef label = labelOf(op.getBuffer());
  list.append("name", b.getStringAttr(label.empty() ? "buffer" : label));
  add("offset", offset);
  add("slots", params.getStages());
  add("slot_bytes", params.getStageBytes());
  SharedTile tile = sharedTile(params);
  add("element_bytes", tile.elementBytes);
  if (std::optional<TransposedTile> turned = lanes.turnedTile(params)) {
    add("keys", turned->keys);
    add("depth", turned->depth);
    add("banks", turned->banks);
    SmallVector<int64_t> bits(turned->keyBits.begin(), turned->keyBits.end());
    list.append("key_bits", b.getDenseI64ArrayAttr(bits));
    if (llvm::any_of(turned->folds, [](int64_t fold) { return fold; }))
      list.append("folds", b.getDenseI64ArrayAttr(turned->folds));
  } else {
    add("rows", tile.rows);
    add("row_bytes", tile.blockCols * tile.elementBytes);
    add("cols", tile.blockCols);
    if (const Swizzle &s = tile.swizzle; s.movesVectors())
      list.append("swizzle", b.getDenseI64ArrayAttr(swizzleList(s)));
  }
  lanes.describeLds(
      LdsAttr::get(b.getContext(), list.getDictionary(b.getContext())));
}

void kvbuf::lowerOp(LaneContext &lanes, AllocOp op) {
  ImplicitLocOpBuilder &b = lanes.builder();
  KVBufferAttr params = op.getBuffer().getType().getParams();
  int64_t bytes = llvm::alignTo(params.getBytes(), kBufferAlignment);
  // Without a place of its own (kvbuf-allocate-lds), after all the others.
  int64_t offset = op.getOffset() ? int64_t(*op.getOffset()) : lanes.ldsBytes();
  Value first = lanes.i32(offset);
  // Each copy of a team has a buffer of its own.
  int64_t copies = lanes.ownTeam() ? int64_t(lanes.ownTeam().getCopies()) : 1;
  if (copies > 1)
    first = arith::AddIOp::create(
        b, first,
        arith::MulIOp::create(b, lanes.copyOfTeam(), lanes.i32(bytes)));
  lanes.setLanes(op.getBuffer(), {first});
  for (int64_t i = 0; i < copies; ++i)
    describeLds(lanes, op, offset + i * bytes);
  if (!op.getOffset())
    lanes.takeLds(copies * bytes);
}

TileView kvbuf::sourceOf(LaneContext &lanes, TypedValue<TileType> tile,
                         KVBufferAttr params, int64_t block) {
  ImplicitLocOpBuilder &b = lanes.builder();
  TileView source = lanes.tileOf(tile);
  // Of packed rows whoever widens them counts columns.
  if (packedRowOf(tile))
    return source;
  if (int64_t first = params.getHeadDimOffset() + block * params.getBK())
    source.base = add(b, source.base, lanes.index(first));
  return source;
}

void kvbuf::lowerOp(LaneContext &lanes, DramLoadOp op) {
  ImplicitLocOpBuilder &b = lanes.builder();
  KVBufferAttr params = op.getBuffer().getType().getParams();
  Value slot = lanes.single(op.getBuffer());
  if (op.getSlot() && params.getStages() > 1)
    slot = arith::AddIOp::create(
        b, slot,
        arith::MulIOp::create(b, lanes.toI32(lanes.single(op.getSlot())),
                              lanes.i32(params.getStageBytes())));
  TileView tile = sourceOf(lanes, op.getTile(), params, op.getBlock());
  Values token = lanes.startLoad(op, tile, slot);
  token.insert(token.begin(), slot);
  lanes.setLanes(op.getToken(), token);
}

LogicalResult kvbuf::lowerOp(LaneContext &lanes, LdsStageOp op) {
  if (op->hasAttr(kScaledByAttr))
    return op.emitOpError() << "has " << kScaledByAttr
                            << ", which slots of rings alone may have here";
  SmallVector<Values> tokens;
  for (Value token : op.getTokens())
    tokens.push_back(lanes.lanesOf(token));
  lanes.awaitLoads(op, tokens);
  for (auto [token, staged] : llvm::zip_equal(op.getTokens(), op.getStaged()))
    lanes.setLanes(staged, {lanes.lanesOf(token)[0]});
  return success();
}

LogicalResult kvbuf::lowerOp(LaneContext &lanes, FragmentLoadOp op) {
  Values words;
  if (failed(lanes.loadFragment(op, lanes.single(op.getStaged()), words)))
    return failure();
  lanes.setLanes(op.getFragment(), words);
  return success();
}

void kvbuf::lowerOp(LaneContext &lanes, StagedViewOp op) {
  // The view's place is in its type.
  lanes.setLanes(op.getView(), lanes.lanesOf(op.getSource()));
}

LogicalResult kvbuf::lowerOp(LaneContext &lanes, TileFragmentOp op) {
  TileView tile = lanes.tileOf(op.getTile());
  if (ownTile(op.getTile()))
    return op.emitOpError() << "expected a tile of kvbuffer.dram_tile without "
                               "gather; others go through LDS by "
                               "kvbuffer.dram_load";
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
  if (failed(lanes.loadFragment(op, tile, words)))
    return failure();
  lanes.setLanes(op.getFragment(), words);
  return success();
}

//===----------------------------------------------------------------------===//
// Tensors read by scalar code
//===----------------------------------------------------------------------===//

LogicalResult kvbuf::lowerOp(LaneContext &lower, memref::LoadOp op) {
  ImplicitLocOpBuilder &b = lower.builder();
  const TensorArg *tensor = lower.findTensor(op.getMemref());
  if (!tensor)
    return op.emitOpError() << "reads a tensor that is not an argument";
  Value at = lower.index(0);
  for (auto [i, position] : llvm::enumerate(op.getIndices())) {
    Value term = lower.single(position);
    if (i < tensor->strides.size())
      term = mul(b, term, tensor->strides[i]);
    at = add(b, at, term);
  }
  lower.setLanes(
      op.getResult(),
      {memref::LoadOp::create(b, lower.flat(tensor->data), ValueRange{at})});
  return success();
}

LogicalResult kvbuf::lowerOp(LaneContext &lower, memref::DimOp op) {
  const TensorArg *tensor = lower.findTensor(op.getSource());
  std::optional<int64_t> dim = op.getConstantIndex();
  auto type = dyn_cast<MemRefType>(op.getSource().getType());
  if (!tensor || !dim || !type || *dim >= type.getRank())
    return op.emitOpError() << "asks for a size that is not a kernel "
                               "parameter; expected a constant dimension of an "
                               "argument of the kernel";
  if (!type.isDynamicDim(*dim)) {
    lower.setLanes(op.getResult(), {lower.index(type.getDimSize(*dim))});
    return success();
  }
  lower.setLanes(op.getResult(), {tensor->sizes[*dim]});
  return success();
}
