//===- TileView.cpp - A tile in DRAM, for lanes and engines ---------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Conversion/TileView.h"
#include "CachePlaces.h"
#include "PackedRows.h"
#include "kvbuffer/Dialect/KVBuffer/IR/FragmentSources.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace kvbuf;

//===----------------------------------------------------------------------===//
// What the program says
//===----------------------------------------------------------------------===//

bool kvbuf::mayCutColumns(DramTileOp op) {
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

TileEdges TileView::edgesOf(Value tile) {
  TileEdges edges;
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
    // A range that nothing bounds on the left starts at key 0.
    auto range = op.getFrom().getDefiningOp<KeyRangeOp>();
    edges.rowsBefore =
        !matchPattern(op.getFrom(), m_Zero()) &&
        !(range && range.getLo() == op.getFrom() && !range.mayBeginLater());
    edges.rowsBehind = !op.getLayout().getRows().endWithData();
    edges.rowDimension = op.getLayout().getLeadingDims().size() - 1;
  } else if (ownTile(tile)) {
    edges.rowsBehind = true;
  }
  return edges;
}

bool kvbuf::needsCopies(RingLoadOp op) {
  TileEdges edges = TileView::edgesOf(op.getTile());
  return edges.colsBehind ||
         (!op.getWhole() && (edges.rowsBefore || edges.rowsBehind));
}

bool kvbuf::listsKeys(Value tile) {
  return cast<TileType>(tile.getType()).getPageSize() == 1 && packedRowOf(tile);
}

RowMap TileView::mapOf(LaneContext &lanes, TypedValue<TileType> tile) {
  TileType type = tile.getType();
  if (!type.getPageSize())
    return RowMap::Strided;
  Value source = fragmentSources(tile).front();
  if (auto made = source.getDefiningOp<DramTileOp>())
    return made.getNumbers() ? RowMap::Table : RowMap::Groups;
  auto made = source.getDefiningOp<CacheTileOp>();
  if (ownTile(source) || (made && made.getLayout().getRows().byPlace))
    return RowMap::Places;
  // Who widens packed rows looks pages up by row, and so do kernels for rows at
  // any addresses.
  bool byLane = !lanes.hasRings() && !packedRowOf(tile) &&
                lanes.tensorAlignment() >= kTensorAlignment &&
                lanes.chip().lanesLookUp(type.getRows(), type.getPageSize(),
                                         lanes.ownSchedule().getWarps());
  return byLane ? RowMap::Lanes : RowMap::Table;
}

//===----------------------------------------------------------------------===//
// Lane values
//===----------------------------------------------------------------------===//

Values TileView::pack() const {
  Values values{data, base, rowStride, lo, hi};
  if (map == RowMap::Table)
    values.append(lastPage ? Values{table, tableBase, lastPage}
                           : Values{table, tableBase});
  else if (map == RowMap::Lanes)
    values.push_back(pages);
  else if (map == RowMap::Places)
    values.push_back(batch);
  if (isPaged())
    values.append({firstKey, pageStride});
  if (cols)
    values.push_back(cols);
  return values;
}

TileView TileView::unpack(LaneContext &lanes, TypedValue<TileType> tile,
                          ValueRange values) {
  TileView view;
  view.type = tile.getType();
  view.map = mapOf(lanes, tile);
  view.edges = edgesOf(tile);
  auto next = [&] {
    Value value = values.front();
    values = values.drop_front();
    return value;
  };
  view.data = next();
  view.base = next();
  view.rowStride = next();
  view.lo = next();
  view.hi = next();
  if (view.map == RowMap::Table) {
    view.table = next();
    view.tableBase = next();
    if (listsKeys(tile))
      view.lastPage = next();
  } else if (view.map == RowMap::Lanes) {
    view.pages = next();
  } else if (view.map == RowMap::Places) {
    view.batch = next();
  }
  if (view.isPaged()) {
    view.firstKey = next();
    view.pageStride = next();
  }
  // A window.
  if (!values.empty())
    view.cols = next();
  return view;
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

Value TileView::entryOf(LaneContext &lanes, Value row, int64_t ahead) const {
  ImplicitLocOpBuilder &b = lanes.builder();
  // Keys fit 32 bits.
  Value key = arith::AddIOp::create(b, lanes.toI32(firstKey), row);
  Value number = arith::DivUIOp::create(b, key, lanes.i32(type.getPageSize()));
  Value entry = arith::AddIOp::create(
      b, tableBase, arith::IndexCastUIOp::create(b, b.getIndexType(), number));
  if (ahead)
    entry = arith::AddIOp::create(b, entry, lanes.index(ahead));
  return memref::LoadOp::create(b, lanes.flat(table), ValueRange{entry});
}

Value TileView::lookUpPage(LaneContext &lanes, Value row, int64_t ahead) const {
  ImplicitLocOpBuilder &b = lanes.builder();
  Value page = entryOf(lanes, row, ahead);
  // Tables may be of 64-bit integers; block numbers fit 32 bits.
  if (!page.getType().isInteger(32))
    page = arith::TruncIOp::create(b, b.getI32Type(), page);
  // -1 is the greatest number.
  return lastPage ? arith::MinUIOp::create(b, page, lastPage) : page;
}

Value TileView::isListed(LaneContext &lanes, Value row) const {
  ImplicitLocOpBuilder &b = lanes.builder();
  Value page = entryOf(lanes, row, /*ahead=*/0), last = lastPage;
  if (page.getType() != last.getType())
    last = arith::ExtUIOp::create(b, page.getType(), last);
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ule, page, last);
}

Value TileView::pageOfLane(LaneContext &lanes, Value row) const {
  return gpu::ShuffleOp::create(lanes.builder(), pages, row,
                                lanes.i32(lanes.chip().waveSize),
                                gpu::ShuffleMode::IDX)
      .getShuffleResult();
}

Value TileView::rowInPage(LaneContext &lanes, Value row) const {
  ImplicitLocOpBuilder &b = lanes.builder();
  Value key = arith::AddIOp::create(b, lanes.toI32(firstKey), row);
  return arith::RemUIOp::create(b, key, lanes.i32(type.getPageSize()));
}

Value TileView::lineInPage(LaneContext &lanes, Value row, Value page) const {
  ImplicitLocOpBuilder &b = lanes.builder();
  Value inPage =
      arith::IndexCastUIOp::create(b, b.getIndexType(), rowInPage(lanes, row));
  Value number = arith::IndexCastUIOp::create(b, b.getIndexType(), page);
  Value line =
      arith::AddIOp::create(b, arith::MulIOp::create(b, number, pageStride),
                            arith::MulIOp::create(b, inPage, rowStride));
  return arith::AddIOp::create(b, line, base);
}

Value TileView::lineOf(LaneContext &lanes, Value row, Value exists) const {
  ImplicitLocOpBuilder &b = lanes.builder();
  auto times = [&](Value count, Value stride) -> Value {
    return arith::MulIOp::create(b, lanes.toIndex(count), stride);
  };
  switch (map) {
  case RowMap::Strided:
    return arith::AddIOp::create(b, base, times(row, rowStride));
  case RowMap::Places:
    return places->lineOf(lanes, *this, row);
  case RowMap::Lanes:
    return lineInPage(lanes, row, pageOfLane(lanes, row));
  case RowMap::Groups: {
    Value group = lanes.i32(type.getPageSize());
    Value line = arith::AddIOp::create(
        b, base, times(arith::DivUIOp::create(b, row, group), pageStride));
    return arith::AddIOp::create(
        b, line, times(arith::RemUIOp::create(b, row, group), rowStride));
  }
  case RowMap::Table:
    break;
  }
  if (!exists)
    return lineInPage(lanes, row, lookUpPage(lanes, row));
  // No look-up for a row that is not there.
  auto guarded =
      scf::IfOp::create(b, TypeRange{b.getI32Type()}, exists, true, true);
  {
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToStart(guarded.thenBlock());
    scf::YieldOp::create(b, lookUpPage(lanes, row));
    b.setInsertionPointToStart(guarded.elseBlock());
    scf::YieldOp::create(b, lanes.i32(0));
  }
  return lineInPage(lanes, row, guarded.getResult(0));
}
