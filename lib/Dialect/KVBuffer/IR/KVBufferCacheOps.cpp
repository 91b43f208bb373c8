//===- KVBufferCacheOps.cpp - Verifiers of ops on caches --------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Dialect/KVBuffer/IR/PackedRow.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

//===----------------------------------------------------------------------===//
// make_cache
//===----------------------------------------------------------------------===//

void MakeCacheOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getCache(), "cache");
}

/// "[?, 64, 8, 128]".
static std::string shapeText(ArrayRef<int64_t> shape) {
  std::string text = "[";
  for (auto [i, size] : llvm::enumerate(shape))
    text += (i ? ", " : "") +
            (ShapedType::isDynamic(size) ? "?" : std::to_string(size));
  return text + "]";
}

/// Whether a memref or tensor has this shape, as far as both sides fix it.
static bool hasShape(ShapedType type, ArrayRef<int64_t> shape) {
  return type.getRank() == int64_t(shape.size()) &&
         llvm::all_of(llvm::zip_equal(type.getShape(), shape), [](auto pair) {
           auto [a, b] = pair;
           return ShapedType::isDynamic(a) || ShapedType::isDynamic(b) ||
                  a == b;
         });
}

static bool hasContiguousRows(ShapedType type) {
  auto memref = dyn_cast<MemRefType>(type);
  SmallVector<int64_t> strides;
  int64_t offset;
  return !memref || (succeeded(memref.getStridesAndOffset(strides, offset)) &&
                     (strides.empty() || strides.back() == 1));
}

static SmallVector<int64_t> sizesOf(ArrayRef<CacheDim> dims) {
  return llvm::map_to_vector(dims,
                             [](const CacheDim &dim) { return dim.size; });
}

/// Whether the scales of a cache are by groups of a token's elements.
static bool scalesByToken(CacheLayout layout) {
  return layout.getScaleType() && layout.getGranularity() > 0;
}

/// The shape of a cache's scales.
static SmallVector<int64_t> scaleShape(CacheLayout layout) {
  if (layout.getGranularity() == kPerTensor)
    return {1};
  if (layout.getGranularity() == kPerHead)
    return {layout.getHeads()};
  SmallVector<int64_t> shape = sizesOf(layout.getLeadingDims());
  shape.append(
      {layout.getHeads(),
       llvm::divideCeilSigned(layout.getHeadSize(), layout.getGranularity())});
  return shape;
}

void MakeCacheOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  // Two caches of one tensor are two memories, where one of them is written.
  if (isOnTensors())
    effects.emplace_back(MemoryEffects::Allocate::get(),
                         cast<OpResult>(getCache()));
}

Speculation::Speculatability MakeCacheOp::getSpeculatability() {
  return isOnTensors() ? Speculation::NotSpeculatable
                       : Speculation::Speculatable;
}

LogicalResult MakeCacheOp::verify() {
  auto layout = cast<CacheLayout>(getCache().getType());
  auto data = cast<ShapedType>(getData().getType());
  SmallVector<int64_t> shape = sizesOf(layout.getLeadingDims());
  shape.append({layout.getHeads(), layout.getCacheDepth()});
  if (!hasShape(data, shape) || data.getElementType() != layout.getStoredType())
    return emitOpError() << "expected data of " << layout.getStoredType()
                         << " and shape " << shapeText(shape) << " for "
                         << getCache().getType() << ", got " << data;
  if (!hasContiguousRows(data))
    return emitOpError() << "expected the elements of a head side by side, a "
                            "last stride of 1, got "
                         << data;
  SmallVector<CacheTensor> tensors = layout.getIndexTensors();
  if (tensors.size() != getIndices().size()) {
    InFlightDiagnostic diag = emitOpError()
                              << "expected " << tensors.size() << " indices";
    if (!tensors.empty()) {
      diag << " (";
      llvm::interleaveComma(tensors, diag,
                            [&](const CacheTensor &t) { diag << t.name; });
      diag << ")";
    }
    return diag << " for " << getCache().getType() << ", got "
                << getIndices().size();
  }
  for (auto [tensor, value] : llvm::zip_equal(tensors, getIndices())) {
    auto type = cast<ShapedType>(value.getType());
    Type element = type.getElementType();
    if (!hasShape(type, sizesOf(tensor.dims)) ||
        !(element.isSignlessInteger(32) || element.isSignlessInteger(64)))
      return emitOpError() << "expected " << tensor.name
                           << " of i32 or i64 and shape "
                           << shapeText(sizesOf(tensor.dims)) << ", got "
                           << type;
  }
  if (bool(getScales()) != bool(layout.getScaleType()))
    return emitOpError() << "expected " << (getScales() ? "no " : "")
                         << "scales for " << getCache().getType();
  if (!getScales())
    return success();
  auto scales = cast<ShapedType>(getScales().getType());
  if (!hasShape(scales, scaleShape(layout)) ||
      scales.getElementType() != layout.getScaleType())
    return emitOpError() << "expected scales of " << layout.getScaleType()
                         << " and shape " << shapeText(scaleShape(layout))
                         << " for " << getCache().getType() << ", got "
                         << scales;
  return success();
}

//===----------------------------------------------------------------------===//
// cache_tensor
//===----------------------------------------------------------------------===//

LogicalResult CacheTensorOp::verify() {
  auto make = getCache().getDefiningOp<MakeCacheOp>();
  // (Bufferization replaces the cache first.)
  Value part = !make         ? Value()
               : getScales() ? make.getScales()
                             : make.getData();
  if (part && isa<MemRefType>(part.getType()))
    part = nullptr;
  if (part && part == getInto())
    return success();
  InFlightDiagnostic diag =
      emitOpError() << "expected a cache that a kvbuffer.make_cache of this "
                       "function makes of 'into' as "
                    << (getScales() ? "scales" : "data");
  if (make)
    diag.attachNote(make.getLoc()) << "the cache is made here";
  return diag;
}

//===----------------------------------------------------------------------===//
// Elements and scales
//===----------------------------------------------------------------------===//

template <typename Op> static LogicalResult verifyAlignment(Op op) {
  std::optional<int64_t> bytes = op.getAlignment();
  if (bytes && (*bytes <= 0 || !llvm::isPowerOf2_64(*bytes)))
    return op.emitOpError() << "expected an alignment that is a power of two, "
                               "got "
                            << *bytes;
  return success();
}

/// What has one type of elements, side by side, is no view of packed rows.
static LogicalResult refusePacked(Operation *op, CacheLayout layout) {
  if (!packedRowOf(layout))
    return success();
  return op->emitOpError() << "is of a cache with packed rows, which no view "
                              "shows; expected one of elements, got "
                           << Type(layout);
}

/// A vector of a static number of elements, which one head has.
static LogicalResult verifyWidth(Operation *op, Type vector,
                                 CacheLayout layout) {
  auto type = cast<VectorType>(vector);
  if (type.isScalable())
    return op->emitOpError()
           << "expected a vector of a fixed number of elements, got " << type;
  int64_t width = type.getNumElements();
  if (width <= layout.getHeadSize())
    return success();
  return op->emitOpError() << "expected at most head_size = "
                           << layout.getHeadSize() << " elements, got "
                           << width;
}

/// The part of a packed row that an op names by number; null with an error.
static RowPartAttr namedPart(Operation *op, RowAttr row,
                             std::optional<int64_t> part) {
  int64_t count = row.getParts().size();
  if (part && *part >= 0 && *part < count)
    return row.getParts()[*part];
  InFlightDiagnostic error = op->emitOpError()
                             << "is of packed rows; expected part = 0 to "
                             << count - 1;
  if (part)
    error << ", got " << *part;
  return {};
}

/// A number of a part belongs to packed rows alone.
static LogicalResult refusePart(Operation *op, std::optional<int64_t> part,
                                CacheLayout layout) {
  if (!part)
    return success();
  return op->emitOpError() << "has a part, which packed rows have, got "
                           << Type(layout);
}

/// Whether vectors of so many elements lie within a part, and within the groups
/// of its scales or over whole ones.
static LogicalResult verifyWithin(Operation *op, RowPartAttr part,
                                  int64_t width) {
  int64_t group = part.getScale() ? part.getGranularity() : width;
  if (part.getCount() % width == 0 &&
      (width % group == 0 || group % width == 0))
    return success();
  return op->emitOpError()
         << "has vectors of " << width
         << " elements; expected a number that divides those of each part that "
            "it is of, and that divides those of a scale or is a multiple, got "
         << part;
}

/// A vector of a cache's own elements.
static LogicalResult verifyStored(Operation *op, Type vector,
                                  CacheLayout layout,
                                  std::optional<int64_t> number) {
  Type element = cast<VectorType>(vector).getElementType();
  if (failed(verifyWidth(op, vector, layout)))
    return failure();
  RowPartAttr part;
  if (RowAttr row = packedRowOf(layout)) {
    part = namedPart(op, row, number);
    if (!part || failed(verifyWithin(
                     op, part, cast<VectorType>(vector).getNumElements())))
      return failure();
  } else if (failed(refusePart(op, number, layout))) {
    return failure();
  }
  Type stored = part ? part.getElement() : layout.getElementType();
  if (element != stored)
    return op->emitOpError()
           << "expected the " << (part ? "part" : "cache") << "'s elements, "
           << stored << ", got " << element;
  return success();
}

LogicalResult CacheLoadOp::verify() {
  auto layout = cast<CacheLayout>(getCache().getType());
  if (failed(verifyWidth(*this, getResult().getType(), layout)) ||
      failed(verifyAlignment(*this)))
    return failure();
  if (!isa<FloatType>(layout.getElementType()))
    return emitOpError() << "expected a cache of floats, got "
                         << getCache().getType();
  int64_t width = getResult().getType().getNumElements(),
          group = layout.getGranularity();
  if (RowAttr row = packedRowOf(layout))
    for (RowPartAttr part : row.getParts())
      if (failed(verifyWithin(*this, part, width)))
        return failure();
  if (scalesByToken(layout) && width % group && group % width)
    return emitOpError() << "loads " << width << " elements with scales for "
                         << group
                         << " each; expected one number to divide the other";
  return success();
}

LogicalResult CacheStoreOp::verify() {
  if (failed(verifyStored(*this, getValue().getType(),
                          cast<CacheLayout>(getCache().getType()), getPart())))
    return failure();
  return verifyAlignment(*this);
}

LogicalResult LoadQuantizedOp::verify() {
  if (failed(verifyStored(*this, getResult().getType(),
                          cast<CacheLayout>(getCache().getType()), getPart())))
    return failure();
  return verifyAlignment(*this);
}

static LogicalResult verifyScales(Operation *op, Type type,
                                  std::optional<int64_t> number) {
  auto layout =
      cast<CacheLayout>(op->getNumResults() ? op->getOperand(0).getType()
                                            : op->getOperand(1).getType());
  Type scale = layout.getScaleType();
  int64_t most = scale && scalesByToken(layout) ? scaleShape(layout).back() : 1;
  if (RowAttr row = packedRowOf(layout)) {
    RowPartAttr part = namedPart(op, row, number);
    if (!part)
      return failure();
    scale = part.getScale();
    if (scale)
      most = llvm::divideCeilSigned(part.getCount(), part.getGranularity());
  } else if (failed(refusePart(op, number, layout))) {
    return failure();
  }
  if (!scale)
    return op->emitOpError()
           << "expected a cache " << (number ? "whose part has" : "with")
           << " scales, got " << Type(layout);
  auto vector = cast<VectorType>(type);
  if (vector.getElementType() != scale || vector.isScalable())
    return op->emitOpError() << "expected a fixed number of scales of " << scale
                             << ", got " << vector;
  if (vector.getNumElements() > most)
    return op->emitOpError()
           << "expected at most " << most << " scales of a token's head, got "
           << vector.getNumElements();
  return success();
}

LogicalResult LoadScaleOp::verify() {
  return verifyScales(*this, getResult().getType(), getPart());
}

LogicalResult StoreScaleOp::verify() {
  return verifyScales(*this, getValue().getType(), getPart());
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

/// A view of a tile: rows at a stride of the cache's, elements side by side.
static LogicalResult verifyTileView(Operation *op, Type type, Type element,
                                    int64_t mostCols, CacheLayout layout) {
  if (failed(refusePacked(op, layout)))
    return failure();
  auto view = cast<MemRefType>(type);
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  bool good = view.getRank() == 2 && view.hasStaticShape() &&
              view.getNumElements() > 0 && view.getElementType() == element &&
              succeeded(view.getStridesAndOffset(strides, offset)) &&
              ShapedType::isDynamic(offset) && strides.back() == 1 &&
              ShapedType::isDynamic(strides.front());
  if (!good)
    return op->emitOpError() << "expected a result memref<ROWSxCOLSx" << element
                             << ", strided<[?, 1], offset: ?>>, got " << type;
  int64_t rows = view.getDimSize(0), cols = view.getDimSize(1);
  if (cols > mostCols)
    return op->emitOpError()
           << "expected at most " << mostCols << " columns, got " << cols;
  if (int64_t run = layout.getRun(); run && run % rows)
    return op->emitOpError() << "expected rows that divide page_size = " << run
                             << ", got " << rows;
  return success();
}

LogicalResult BlockPagedPtrOp::verify() {
  auto layout = cast<CacheLayout>(getCache().getType());
  return verifyTileView(*this, getTile().getType(), layout.getElementType(),
                        layout.getHeadSize(), layout);
}

LogicalResult ScalesBlockPagedPtrOp::verify() {
  auto layout = cast<CacheLayout>(getCache().getType());
  if (!scalesByToken(layout))
    return emitOpError() << "expected a cache with scales by groups of "
                            "elements, got "
                         << getCache().getType();
  return verifyTileView(*this, getTile().getType(), layout.getScaleType(),
                        scaleShape(layout).back(), layout);
}

LogicalResult ScalesRawPtrOp::verify() {
  auto layout = cast<CacheLayout>(getCache().getType());
  if (!layout.getScaleType())
    return emitOpError() << "expected a cache with scales, got "
                         << getCache().getType();
  auto expected = MemRefType::get(
      {}, layout.getScaleType(),
      StridedLayoutAttr::get(getContext(), ShapedType::kDynamic, {}));
  if (getScales().getType() != expected)
    return emitOpError() << "expected a result " << expected << ", got "
                         << getScales().getType();
  return success();
}

//===----------------------------------------------------------------------===//
// cache_append
//===----------------------------------------------------------------------===//

/// New tokens and the cache they go to.
static LogicalResult verifyAppend(Operation *op, StringRef name, Value tokens,
                                  Value cache, bool isRagged) {
  auto type = cast<ShapedType>(tokens.getType());
  CacheLayout layout = cacheLayoutOf(cache.getType());
  if (!layout)
    return op->emitOpError()
           << "expected the cache of " << name
           << " to be a cache, or a tensor [batch, rows, heads, head_size] of "
              "floats with static heads and head_size, got "
           << cache.getType();
  int64_t rank = isRagged ? 3 : 4;
  if (type.getRank() != rank)
    return op->emitOpError()
           << "expected " << name << " of rank " << rank
           << (isRagged ? " ([rows, heads, head_size]) with offsets"
                        : " ([batch, rows, heads, head_size]) without "
                          "offsets")
           << ", got " << type;
  if (type.getShape().take_back(2) !=
          ArrayRef<int64_t>{layout.getHeads(), layout.getHeadSize()} ||
      !hasContiguousRows(type))
    return op->emitOpError()
           << "expected " << name << " with " << layout.getHeads()
           << " heads of " << layout.getHeadSize()
           << " elements side by side, as its cache has, got " << type;
  Type element = type.getElementType(), stored = layout.getElementType();
  if (!isa<Float16Type, BFloat16Type, Float32Type>(element))
    return op->emitOpError()
           << "expected " << name << " of bf16, f16 or f32, got " << element;
  bool isFloat8 = isa<FloatType>(stored) && stored.getIntOrFloatBitWidth() == 8;
  if (!isa<Float16Type, BFloat16Type, Float32Type>(stored) && !isFloat8)
    return op->emitOpError() << "expected a cache of bf16, f16, f32 or 8-bit "
                                "floats for "
                             << name << ", got " << stored;
  return success();
}

/// Angles of the rotation of heads of `headSize` elements.
static LogicalResult verifyRope(Operation *op, Value cosines, Value sines,
                                int64_t headSize, bool isInterleaved) {
  if (!cosines) {
    if (isInterleaved)
      return op->emitOpError("is interleaved, which belongs to rope(cos, sin)");
    return success();
  }
  auto cos = cast<ShapedType>(cosines.getType()),
       sin = cast<ShapedType>(sines.getType());
  int64_t pairs = cos.getDimSize(1);
  if (cos.getElementType() != sin.getElementType() ||
      sin.getDimSize(1) != pairs || ShapedType::isDynamic(pairs) ||
      !hasContiguousRows(cos) || !hasContiguousRows(sin))
    return op->emitOpError()
           << "expected cosines and sines of one type and one "
              "static number of columns, got "
           << cos << " and " << sin;
  if (pairs < 1 || 2 * pairs > headSize)
    return op->emitOpError() << "expected tables of 1 to " << headSize / 2
                             << " columns, half the elements that are rotated, "
                                "got "
                             << pairs;
  return success();
}

LogicalResult CacheAppendOp::verify() {
  for (Value cache : {Value(getKCache()), Value(getVCache())})
    if (CacheType type =
            cache ? dyn_cast<CacheType>(cache.getType()) : CacheType();
        type && type.getRow() && type.getScaleType())
      return emitOpError() << "stores packed rows with a scale beside them; "
                              "expected scales of the row's parts alone";
  for (Value operand : getOperands())
    if (Type type = operand.getType();
        isa<ShapedType>(type) && isa<TensorType>(type) != isOnTensors())
      return emitOpError() << "expected all operands but caches to be "
                           << (isOnTensors() ? "tensors" : "memrefs")
                           << ", as k is, got " << type;
  if (getVCache() && isa<TensorType>(getVCache().getType()) != isIntoTensors())
    return emitOpError() << "expected caches of keys and values to be both "
                            "tensors or both caches, got "
                         << getKCache().getType() << " and "
                         << getVCache().getType();
  if (failed(verifyAppend(*this, "k", getK(), getKCache(), bool(getOffsets()))))
    return failure();
  if (getV() &&
      failed(verifyAppend(*this, "v", getV(), getVCache(), bool(getOffsets()))))
    return failure();
  if (getV() && cast<ShapedType>(getV().getType()).getRank() !=
                    cast<ShapedType>(getK().getType()).getRank())
    return emitOpError("expected k and v of one rank");
  CacheLayout layout = getKLayout();
  if (getV())
    if (int64_t heads = cacheLayoutOf(getVCache().getType()).getHeads();
        heads != layout.getHeads())
      return emitOpError() << "expected caches with as many heads, got "
                           << layout.getHeads() << " of k and " << heads
                           << " of v";
  bool hasLengths =
      llvm::any_of(layout.getIndexTensors(), [](const CacheTensor &tensor) {
        return tensor.name == "lengths";
      });
  if (!getAt() && !hasLengths)
    return emitOpError() << "expected at(...), the positions of first tokens: "
                         << getKCache().getType() << " has no lengths";
  if (getRopeAt() && !getCos())
    return emitOpError("has rope_at(...), which belongs to rope(cos, sin)");
  return verifyRope(*this, getCos(), getSin(), layout.getHeadSize(),
                    getInterleaved());
}

LogicalResult AppendTokensOp::verify() {
  if (bool(getV()) != bool(getVCache()) || bool(getCos()) != bool(getSin()))
    return emitOpError("expected v with a cache of its own, and both cosines "
                       "and sines");
  CacheType cache = getKCache().getType();
  for (CacheType type :
       {cache, getV() ? getVCache().getType() : CacheType(cache)})
    if (!type.hasTable())
      return emitOpError() << "expected continuous or paged caches, whose "
                              "lengths say where new tokens go, got "
                           << type;
  if (getV() && getVCache().getType().getHeads() != cache.getHeads())
    return emitOpError() << "expected caches with as many heads, got " << cache
                         << " and " << getVCache().getType();
  if (failed(verifyAppend(*this, "k", getK(), getKCache(),
                          /*isRagged=*/false)) ||
      (getV() && failed(verifyAppend(*this, "v", getV(), getVCache(),
                                     /*isRagged=*/false))))
    return failure();
  return verifyRope(*this, getCos(), getSin(), cache.getHeadSize(),
                    getInterleaved());
}
