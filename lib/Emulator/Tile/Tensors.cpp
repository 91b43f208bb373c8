//===- Tensors.cpp - Tensors and tiles in DRAM ------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tensors.h"
#include "kvbuffer/Dialect/KVBuffer/IR/PackedRow.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <cstring>

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::emu;
using namespace kvbuf::emu::tile;

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

/// The bits of the nearest bf16; a NaN keeps its sign and is quiet.
static uint16_t encodeBF16(float value) {
  uint32_t bits = llvm::bit_cast<uint32_t>(value);
  if (value != value)
    return (bits >> 16) | 0x40;
  return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

static float decodeBF16(uint16_t bits) {
  return llvm::bit_cast<float>(uint32_t(bits) << 16);
}

static uint8_t encodeFloat8(Type type, float value);
static float decodeFloat8(Type type, uint8_t code);

float tile::roundTo(Type type, float value) {
  if (type.isBF16())
    return decodeBF16(encodeBF16(value));
  if (type.isF16())
    return static_cast<float>(static_cast<_Float16>(value));
  if (type.getIntOrFloatBitWidth() == 8)
    return decodeFloat8(type, encodeFloat8(type, value));
  return value;
}

/// The bits of the nearest 8-bit float that there is, the largest for what
/// exceeds it.
static uint8_t encodeFloat8(Type type, float value) {
  const llvm::fltSemantics &semantics =
      cast<FloatType>(type).getFloatSemantics();
  float largest = llvm::APFloat::getLargest(semantics).convertToFloat();
  llvm::APFloat number(
      value != value ? value : std::fmin(std::fmax(value, -largest), largest));
  bool losesInfo;
  number.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return number.bitcastToAPInt().getZExtValue();
}

static float decodeFloat8(Type type, uint8_t code) {
  return llvm::APFloat(cast<FloatType>(type).getFloatSemantics(),
                       llvm::APInt(8, code))
      .convertToFloat();
}

float Tensor::loadFloat(int64_t offset) const {
  if (elementType.isBF16())
    return decodeBF16(static_cast<const uint16_t *>(data)[offset]);
  if (elementType.isF16())
    return static_cast<const _Float16 *>(data)[offset];
  if (elementBytes() == 1)
    return decodeFloat8(elementType,
                        static_cast<const uint8_t *>(data)[offset]);
  return static_cast<const float *>(data)[offset];
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

FailureOr<int64_t> Tensor::offset(ArrayRef<int64_t> index,
                                  ErrorFn error) const {
  int64_t result = 0;
  for (auto [i, size, stride] : llvm::zip_equal(index, shape, strides)) {
    if (i < 0 || i >= size) {
      InFlightDiagnostic diag = error() << "accesses " << name << "[";
      llvm::interleaveComma(index, diag);
      diag << "], outside of its shape [";
      llvm::interleaveComma(shape, diag);
      diag << "]";
      return failure();
    }
    result += i * stride;
  }
  return result;
}

LogicalResult Tensor::checkReadable(ErrorFn error) const {
  if (access != TileAccess::Write)
    return success();
  return error() << "reads the output " << name
                 << ", which nothing has written";
}

LogicalResult Tensor::checkWritable(ErrorFn error) const {
  if (access == TileAccess::Write || access == TileAccess::ReadWrite ||
      access == TileAccess::Workspace)
    return success();
  return error() << (access == TileAccess::Counter ? "writes the counter "
                                                   : "writes the input ")
                 << name;
}

LogicalResult Tensor::checkWritten(int64_t offset, ErrorFn error) const {
  if (access != TileAccess::Workspace ||
      (size_t(offset) < writers.size() && writers[offset]))
    return success();
  return error() << "reads an element of the workspace " << name
                 << " that nothing has written";
}

LogicalResult Tensor::storeFloat(int64_t offset, float value, Operation *op,
                                 ErrorFn error) {
  if (writers.size() <= size_t(offset))
    writers.resize(offset + 1);
  if (Operation *other = writers[offset];
      other && access != TileAccess::Workspace) {
    InFlightDiagnostic diag = error()
                              << "writes an element of " << name
                              << " that another block or store has written";
    if (other != op)
      diag.attachNote(other->getLoc()) << "the other store is here";
    return diag;
  }
  writers[offset] = op;
  if (elementType.isBF16())
    static_cast<uint16_t *>(data)[offset] = encodeBF16(value);
  else if (elementType.isF16())
    static_cast<_Float16 *>(data)[offset] = static_cast<_Float16>(value);
  else if (elementBytes() == 1)
    static_cast<uint8_t *>(data)[offset] = encodeFloat8(elementType, value);
  else
    static_cast<float *>(data)[offset] = value;
  return success();
}

void Tensor::storeInt(int64_t offset, int32_t value, Operation *op) {
  if (writers.size() <= size_t(offset))
    writers.resize(offset + 1);
  writers[offset] = op;
  static_cast<int32_t *>(data)[offset] = value;
}

FailureOr<int64_t> tile::evaluateSize(Attribute size,
                                      const llvm::StringMap<int64_t> &sizes,
                                      ErrorFn error) {
  SizeExpr::Fault fault;
  std::optional<int64_t> value = SizeAttr::getExpr(size).evaluate(
      [&](const std::string &name) {
        auto it = sizes.find(name);
        return it == sizes.end() ? std::nullopt : std::optional(it->second);
      },
      fault);
  if (value)
    return *value;
  if (!fault.missing.empty())
    error() << "asks for the size \"" << fault.missing
            << "\", which is not bound";
  else
    error() << "cannot compute its " << fault.message;
  return failure();
}

//===----------------------------------------------------------------------===//
// Caches
//===----------------------------------------------------------------------===//

/// Entry `index` of a tensor of integers.
static FailureOr<int64_t> entry(const Tensor &tensor, ArrayRef<int64_t> index,
                                ErrorFn error) {
  FailureOr<int64_t> offset = tensor.offset(index, error);
  if (failed(offset))
    return failure();
  return tensor.loadInt(*offset);
}

/// Entry `index` of lengths or offsets, which nobody has checked: the nearest
/// number from `least` to `most`.
static FailureOr<int64_t> entryWithin(const Tensor &tensor, int64_t index,
                                      int64_t least, int64_t most,
                                      ErrorFn error) {
  FailureOr<int64_t> number = entry(tensor, {index}, error);
  if (failed(number))
    return failure();
  return std::min(std::max(*number, least), most);
}

Cache::Cache(CacheLayout layout) : layout(layout), rows(layout.getRows()) {
  if (!rows.byPlace)
    return;
  MLIRContext *context = layout.getContext();
  OpBuilder b(context);
  Location loc = b.getUnknownLoc();
  auto memref = [&](ArrayRef<CacheDim> dims, Type element,
                    ArrayRef<int64_t> more = {}) {
    SmallVector<int64_t> shape;
    for (const CacheDim &dim : dims)
      shape.push_back(dim.size);
    llvm::append_range(shape, more);
    SmallVector<int64_t> strides(shape.size(), ShapedType::kDynamic);
    strides.back() = 1;
    return MemRefType::get(shape, element,
                           StridedLayoutAttr::get(context, 0, strides));
  };
  auto begin = [&](std::unique_ptr<Block> &block) {
    block = std::make_unique<Block>();
    CacheParts parts;
    parts.data = block->addArgument(
        memref(layout.getLeadingDims(), layout.getStoredType(),
               {layout.getHeads(), layout.getCacheDepth()}),
        loc);
    for (const CacheTensor &tensor : layout.getIndexTensors())
      parts.indices.push_back(
          block->addArgument(memref(tensor.dims, b.getI32Type()), loc));
    block->addArguments({b.getIndexType(), b.getIndexType()}, {loc, loc});
    b.setInsertionPointToStart(block.get());
    return parts;
  };
  CacheParts parts = begin(place);
  unsigned sequence = 1 + parts.indices.size();
  CachePlace found =
      layout.emitPlace(b, loc, parts, place->getArgument(sequence),
                       place->getArgument(sequence + 1),
                       /*checked=*/true);
  placed.append(found.lead.begin(), found.lead.end());
  placed.push_back(found.valid);
  parts = begin(size);
  Value batch = size->getArgument(sequence);
  sizes = {layout.emitLength(b, loc, parts, batch),
           layout.emitRoom(b, loc, parts, batch)};
}

FailureOr<int64_t> tile::numKeys(const Cache &cache, int64_t batch,
                                 int64_t newTokens, ErrorFn error) {
  int64_t rows = cache.data->shape[cache.layout.getLeadingDims().size() - 1];
  if (cache.rows.offsets) {
    FailureOr<int64_t> first =
        entryWithin(cache.offsets(), batch, 0, rows, error);
    if (failed(first))
      return failure();
    FailureOr<int64_t> next =
        entryWithin(cache.offsets(), batch + 1, *first, rows, error);
    if (failed(next))
      return failure();
    return *next - *first;
  }
  int64_t run = cache.layout.getRun(),
          room = run && cache.rows.table ? cache.table().shape[1] * run : rows;
  if (!cache.rows.lengths)
    return room;
  FailureOr<int64_t> length =
      entryWithin(cache.lengths(), batch, 0, room, error);
  if (failed(length))
    return failure();
  return std::min(*length + newTokens, room);
}

FailureOr<SmallVector<int64_t>> tile::rowOf(const Cache &cache, int64_t batch,
                                            int64_t token, ErrorFn error) {
  if (cache.rows.offsets) {
    FailureOr<int64_t> first =
        entryWithin(cache.offsets(), batch, 0, cache.data->shape[0], error);
    if (failed(first))
      return failure();
    return SmallVector<int64_t>{*first + token};
  }
  if (!cache.rows.table)
    return SmallVector<int64_t>{batch, token};
  SmallVector<int64_t> at{batch};
  if (int64_t run = cache.layout.getRun()) {
    at.push_back(token / run);
    token %= run;
  }
  FailureOr<int64_t> block = entry(cache.table(), at, error);
  if (failed(block))
    return failure();
  return SmallVector<int64_t>{*block, token};
}

FailureOr<float> tile::scaleOf(const Cache &cache, ArrayRef<int64_t> row,
                               int64_t head, int64_t headDim, ErrorFn error) {
  int64_t group = cache.layout.getGranularity();
  SmallVector<int64_t> index;
  if (group == kPerTensor) {
    index = {0};
  } else if (group == kPerHead) {
    index = {head};
  } else {
    llvm::append_range(index, row);
    index.append({head, headDim / group});
  }
  FailureOr<int64_t> offset = cache.scales->offset(index, error);
  if (failed(offset))
    return failure();
  return cache.scales->loadFloat(*offset);
}

LogicalResult tile::lookUpRows(Tile &tile, TileReport &report, RowFn rowByPlace,
                               ErrorFn error) {
  const Cache &cache = *tile.cache;
  int64_t count = tile.type.getRows();
  int64_t first = std::max(tile.start, tile.from);
  int64_t last = std::min(tile.start + count, tile.upto);
  tile.rows.assign(count, Tile::kInvalid);
  if (first >= last)
    return success();
  auto block = [&](SmallVector<int64_t> index) -> FailureOr<int64_t> {
    FailureOr<int64_t> id = entry(cache.table(), index, error);
    ++report.lookups;
    if (failed(id))
      return failure();
    if (*id < 0 || *id >= cache.data->shape[0]) {
      InFlightDiagnostic diag = error()
                                << "looks up " << cache.table().name << "[";
      llvm::interleaveComma(index, diag);
      diag << "] = " << *id << ", expected 0 to " << cache.data->shape[0] - 1;
      return failure();
    }
    return *id;
  };

  int64_t run = cache.rows.table ? cache.layout.getRun() : 0;
  int64_t slot = tile.batch, page = -1, base = 0;
  if (cache.rows.offsets) {
    // All keys lie within the tensor wherever the cache's offsets say that they
    // begin.
    int64_t end = std::max<int64_t>(cache.data->shape[0] - tile.upto, 0);
    FailureOr<int64_t> offset =
        entryWithin(cache.offsets(), tile.batch, 0, end, error);
    if (failed(offset))
      return failure();
    base = *offset;
  } else if (cache.rows.table && !run) {
    FailureOr<int64_t> id = block({tile.batch});
    if (failed(id))
      return failure();
    slot = *id;
  }
  for (int64_t key = first; key < last; ++key) {
    int64_t row = base + key;
    if (run) {
      if (key / run != page) {
        page = key / run;
        FailureOr<int64_t> id = block({tile.batch, page});
        if (failed(id))
          return failure();
        slot = *id;
      }
      row = key % run;
    }
    SmallVector<int64_t> index{row};
    if (cache.rows.byPlace) {
      FailureOr<SmallVector<int64_t>> placed = rowByPlace(cache, key);
      if (failed(placed))
        return failure();
      index = std::move(*placed);
    } else if (!cache.rows.offsets) {
      index.insert(index.begin(), slot);
    }
    index.append({tile.head, 0});
    FailureOr<int64_t> offset = cache.data->offset(index, error);
    if (failed(offset))
      return failure();
    tile.rows[key - tile.start] = *offset;
  }
  return success();
}

/// The number that `bytes` are an element of this type of.
static float numberAt(Type type, const uint8_t *bytes) {
  if (isa<Float8E8M0FNUType>(type))
    return *bytes == 255 ? NAN : std::ldexp(1.0f, *bytes - 127);
  if (type.getIntOrFloatBitWidth() == 8)
    return decodeFloat8(type, *bytes);
  if (type.isF32()) {
    float number;
    std::memcpy(&number, bytes, sizeof(number));
    return number;
  }
  uint16_t word;
  std::memcpy(&word, bytes, sizeof(word));
  return type.isBF16() ? decodeBF16(word)
                       : float(llvm::bit_cast<_Float16>(word));
}

/// Element `col` of a packed row that begins at byte `line`, widened to `wide`.
static float packedElement(RowAttr row, Type wide, const uint8_t *data,
                           int64_t line, int64_t col) {
  auto bytesAt = [&](int64_t at) {
    if (at < row.getBytes())
      return data + line + at;
    int64_t stride = row.getTailStride(), inBlock = line % stride;
    return data + line - inBlock + row.getTailRows() * row.getBytes() +
           inBlock / row.getBytes() * row.getTail() + at - row.getBytes();
  };
  for (RowPartAttr part : row.getParts()) {
    if (col >= part.getCount()) {
      col -= part.getCount();
      continue;
    }
    Type type = part.getElement(), scale = part.getScale();
    int64_t width = type.getIntOrFloatBitWidth() / 8;
    float x = numberAt(type, bytesAt(part.getAt() + col * width));
    if (scale) {
      int64_t scaleWidth = scale.getIntOrFloatBitWidth() / 8;
      x *= numberAt(scale, bytesAt(part.getScaleAt() +
                                   col / part.getGranularity() * scaleWidth));
    }
    return roundTo(wide, x);
  }
  llvm_unreachable("parts have all elements");
}

void tile::loadTile(const Tile &tile, Matrix &target, int64_t firstCol,
                    int64_t cols) {
  std::fill(target.data.begin(), target.data.end(), 0.0f);
  firstCol += tile.col;
  if (RowAttr row =
          tile.cache ? packedRowOf(Type(tile.cache->layout)) : RowAttr()) {
    auto *data = static_cast<const uint8_t *>(tile.tensor->data);
    for (int64_t r = 0; r < tile.type.getRows(); ++r)
      if (tile.rows[r] != Tile::kInvalid)
        for (int64_t c = 0; c < std::min(cols, tile.validCols() - firstCol);
             ++c)
          target.at(r, c) = packedElement(row, tile.type.getElementType(), data,
                                          tile.rows[r], firstCol + c);
    return;
  }
  for (int64_t r = 0; r < tile.type.getRows(); ++r)
    if (tile.rows[r] != Tile::kInvalid)
      for (int64_t c = 0; c < std::min(cols, tile.validCols() - firstCol); ++c)
        target.at(r, c) = tile.tensor->loadFloat(tile.rows[r] + firstCol + c);
}
