//===- CachePlaces.cpp - Caches of kinds of their own -----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CachePlaces.h"
#include "LaneLowering.h"
#include "kvbuffer/Dialect/KVBuffer/IR/FragmentSources.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace kvbuf;

Values CachePlaces::leadOf(LaneContext &lower, Value batch, Value token,
                           bool checked) const {
  ImplicitLocOpBuilder &b = lower.builder();
  CachePlace place =
      layout.emitPlace(b, b.getLoc(), parts, batch, token, checked);
  return Values(ArrayRef<Value>(place.lead));
}

Value CachePlaces::offsetOf(LaneContext &lower, ArrayRef<Value> lead) const {
  ImplicitLocOpBuilder &b = lower.builder();
  Value offset;
  for (auto [index, stride] : llvm::zip(lead, strides)) {
    Value term = arith::MulIOp::create(b, index, stride);
    offset = offset ? arith::AddIOp::create(b, offset, term).getResult() : term;
  }
  return offset;
}

Value OwnPlaces::lineOf(LaneContext &lower, const TileView &tile,
                        Value row) const {
  ImplicitLocOpBuilder &b = lower.builder();
  Value line = tile.base;
  for (auto [index, stride] : llvm::zip(place(b, lower.toIndex(row)), strides))
    line =
        arith::AddIOp::create(b, line, arith::MulIOp::create(b, index, stride));
  return line;
}

void LaneLowering::setTileRows(TypedValue<TileType> tile, Value tensor,
                               Value rows, RowPlace place) {
  const TensorArg argument = signature.tensor(tensor);
  TileView view;
  view.type = tile.getType();
  view.map = RowMap::Places;
  view.edges = TileView::edgesOf(tile);
  view.data = argument.data;
  view.base = view.firstKey = view.batch = index(0);
  const Values &strides = argument.strides;
  view.rowStride = strides.back();
  view.pageStride = strides.front();
  for (Value other : ArrayRef(strides).drop_front())
    view.pageStride = arith::OrIOp::create(b, view.pageStride, other);
  view.lo = i32(0);
  view.hi =
      toI32(arith::MinSIOp::create(b, rows, index(tile.getType().getRows())));
  auto own = std::make_shared<OwnPlaces>(strides, std::move(place));
  view.places = own.get();
  ownPlaces[tile] = std::move(own);
  setTile(tile, view);
}

Value LaneLowering::memrefOf(Value tensor) {
  const TensorArg argument = signature.tensor(tensor);
  return viewOf(b, argument.data, cast<MemRefType>(tensor.getType()).getShape(),
                argument.sizes, argument.strides);
}

Value CachePlaces::lineOf(LaneContext &lower, const TileView &tile,
                          Value row) const {
  ImplicitLocOpBuilder &b = lower.builder();
  Value token = arith::AddIOp::create(b, tile.firstKey, lower.toIndex(row));
  // Also asked of rows that are not there: what is read to place them is to
  // exist.
  Values lead = leadOf(lower, tile.batch, token, /*checked=*/true);
  return arith::AddIOp::create(b, tile.base, offsetOf(lower, lead));
}

Value kvbuf::viewOf(ImplicitLocOpBuilder &b, Value data,
                    ArrayRef<int64_t> shape, ArrayRef<Value> sizes,
                    ArrayRef<Value> strides) {
  SmallVector<OpFoldResult> extents, steps;
  SmallVector<int64_t> layout(shape.size(), ShapedType::kDynamic);
  layout.back() = 1;
  for (auto [d, size] : llvm::enumerate(shape)) {
    if (!ShapedType::isDynamic(size))
      extents.push_back(b.getIndexAttr(size));
    else if (d < sizes.size() && sizes[d])
      extents.push_back(sizes[d]);
    else
      extents.push_back(
          arith::ConstantIndexOp::create(b, std::numeric_limits<int32_t>::max())
              .getResult());
    if (d + 1 < shape.size())
      steps.push_back(strides[d]);
  }
  steps.push_back(b.getIndexAttr(1));
  auto source = cast<MemRefType>(data.getType());
  auto type = MemRefType::get(shape, source.getElementType(),
                              StridedLayoutAttr::get(b.getContext(), 0, layout),
                              source.getMemorySpace());
  return memref::ReinterpretCastOp::create(b, type, data, b.getIndexAttr(0),
                                           extents, steps);
}

CacheParts kvbuf::partsOf(LaneContext &lower, Value cache) {
  ImplicitLocOpBuilder &b = lower.builder();
  auto layout = cast<CacheLayout>(cache.getType());
  const TensorArg &tensor = lower.tensorOf(cache);
  // The shape and the sizes of dimensions.
  auto sizesOf = [&](ArrayRef<CacheDim> dims, SmallVector<int64_t> &shape) {
    Values sizes;
    for (const CacheDim &dim : dims) {
      shape.push_back(dim.size);
      Value size;
      if (ShapedType::isDynamic(dim.size))
        size = lower.launchSize(sizeOfCache(cache, dim.name));
      if (size && dim.plus)
        size = arith::AddIOp::create(b, size, lower.index(dim.plus));
      sizes.push_back(size);
    }
    return sizes;
  };
  CacheParts parts;
  SmallVector<int64_t> leading;
  Values sizes = sizesOf(layout.getLeadingDims(), leading);
  SmallVector<int64_t> shape(leading);
  shape.append({layout.getHeads(), layout.getCacheDepth()});
  parts.data = viewOf(b, tensor.data, shape, sizes, tensor.strides);
  for (auto [of, index] :
       llvm::zip_equal(layout.getIndexTensors(), tensor.indices)) {
    SmallVector<int64_t> shape;
    Values sizes = sizesOf(of.dims, shape);
    parts.indices.push_back(viewOf(b, index.data, shape, sizes, index.strides));
  }
  if (!layout.getScaleType())
    return parts;
  int64_t group = layout.getGranularity();
  SmallVector<int64_t> of{group == kPerTensor ? 1 : layout.getHeads()};
  if (group > 0) {
    of.insert(of.begin(), leading.begin(), leading.end());
    of.push_back(llvm::divideCeil(layout.getHeadSize(), group));
  }
  parts.scales = viewOf(b, tensor.scales, of, {}, tensor.scaleStrides);
  return parts;
}

void kvbuf::findPlaces(LaneLowering &lower) {
  auto isByPlace = [](Value cache) {
    auto layout = dyn_cast<CacheLayout>(cache.getType());
    return layout && layout.getRows().byPlace;
  };
  auto add = [&](Value cache, CacheParts parts, const Values &strides) {
    lower.places[cache] = std::make_shared<CachePlaces>(
        cast<CacheLayout>(cache.getType()), std::move(parts), strides);
  };
  for (Value argument : lower.kernel.getArguments())
    if (isByPlace(argument))
      add(argument, partsOf(lower, argument),
          lower.signature.tensor(argument).strides);
  // Of arguments, too, wherever it is made.
  auto view = [&](Value memref) -> Value {
    const TensorArg *tensor = lower.signature.findTensor(memref);
    return tensor ? viewOf(lower.b, tensor->data,
                           cast<MemRefType>(memref.getType()).getShape(),
                           tensor->sizes, tensor->strides)
                  : Value();
  };
  lower.kernel.walk([&](MakeCacheOp op) {
    const TensorArg *data = lower.signature.findTensor(op.getData());
    if (!data || !isByPlace(op.getCache()))
      return;
    CacheParts parts;
    parts.data = view(op.getData());
    for (Value index : op.getIndices())
      parts.indices.push_back(view(index));
    add(op.getCache(), std::move(parts), data->strides);
  });
}

Operation *kvbuf::ownTile(Value tile) {
  Operation *op = tile.getDefiningOp();
  return op && !isa_and_nonnull<KVBufferDialect>(op->getDialect()) ? op
                                                                   : nullptr;
}

bool kvbuf::hasPlaces(Value tile) {
  return llvm::any_of(fragmentSources(tile), [](Value source) {
    auto made = source.getDefiningOp<CacheTileOp>();
    return ownTile(source) || (made && made.getLayout().getRows().byPlace);
  });
}

const RowPlaces *Lanes::placesOf(Value tile) {
  Value source = fragmentSources(tile).front();
  if (ownTile(source))
    return ownPlaces.lookup(source).get();
  auto made = source.getDefiningOp<CacheTileOp>();
  return places.lookup(made.getCache()).get();
}

LogicalResult kvbuf::checkPlaces(gpu::GPUFuncOp kernel) {
  WalkResult result = kernel.walk([](Operation *op) -> WalkResult {
    Value tile;
    if (auto load = dyn_cast<DramLoadOp>(op))
      tile = load.getTile();
    else if (auto load = dyn_cast<RingLoadOp>(op))
      tile = load.getTile();
    if (!tile || !hasPlaces(tile))
      return WalkResult::advance();
    Value known;
    for (Value source : fragmentSources(tile)) {
      auto made = source.getDefiningOp<CacheTileOp>();
      // The tile of an op is as a cache of its own.
      Value its = ownTile(source) ? source : made ? made.getCache() : Value();
      if (ownTile(source) && !cast<TileType>(source.getType()).getPageSize())
        return source.getDefiningOp()->emitOpError()
               << "makes a tile whose rows it finds one by one; expected "
                  "page_size = 1 on the tile";
      if (!its || (known && its != known)) {
        InFlightDiagnostic diag =
            op->emitOpError() << "loads a tile of a cache whose type finds "
                                 "each row, or another tile; expected tiles "
                                 "of one cache";
        diag.attachNote(source.getLoc()) << "the other tile is here";
        return diag;
      }
      known = its;
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}
