//===- KVBufferTmaOps.cpp - Verifiers of tensor map makers ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Dialect/KVBuffer/IR/TmaTile.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

/// Bytes that rows of boxes, and what a map begins with, are multiples of, and
/// the most elements of a box along one dimension (CUDA driver API, "Tensor Map
/// Object Management").
static constexpr int64_t kUnitBytes = 16, kMostOfBox = 256;
/// Rows of one gathering copy (PTX ISA, "tile::gather4").
static constexpr int64_t kGathered = 4;

static int64_t bytesOf(Type element) {
  return element.isIntOrFloat() ? element.getIntOrFloatBitWidth() / 8 : 0;
}

/// Columns of a box: what the swizzle spans, or all the columns of a tile.
static int64_t boxColumns(int64_t columns, int64_t swizzle, Type element) {
  int64_t bytes = bytesOf(element);
  return swizzle && bytes ? swizzle / bytes : columns;
}

/// The columns that `create_tma_tile` and `create_ragged_tma_tile` are of.
template <typename OpTy> static int64_t tileColumns(OpTy op) {
  auto layout = cast<CacheLayout>(op.getCache().getType());
  if (std::optional<int64_t> columns = op.getBK())
    return *columns;
  int64_t box = boxColumns(1, op.getSwizzle(), layout.getElementType());
  return box > 0 ? llvm::alignTo(layout.getHeadSize(), box)
                 : layout.getHeadSize();
}

template <typename OpTy> static TmaTile tileOf(OpTy op) {
  auto layout = cast<CacheLayout>(op.getCache().getType());
  TmaTile tile;
  tile.cache = op.getCache();
  tile.element = layout.getElementType();
  tile.boxRows = op.getBN();
  tile.swizzle = op.getSwizzle();
  tile.boxCols = boxColumns(tileColumns(op), tile.swizzle, tile.element);
  tile.firstByte = layout.getHeadDimOffset() * bytesOf(tile.element);
  tile.columns = layout.getHeadSize();
  return tile;
}

std::optional<TmaTile> kvbuf::tmaTileOf(Operation *op) {
  Type bf16 = BFloat16Type::get(op->getContext());
  return TypeSwitch<Operation *, std::optional<TmaTile>>(op)
      .Case([](CreateTmaTileOp op) { return tileOf(op); })
      .Case([](CreateRaggedTmaTileOp op) {
        TmaTile tile = tileOf(op);
        tile.cutRows = op.getBN();
        return tile;
      })
      .Case([&](CreateRopeTmaTileOp op) {
        TmaTile tile;
        tile.cache = op.getCache();
        tile.element = bf16;
        tile.boxRows = op.getBN();
        tile.swizzle = op.getSwizzle();
        tile.boxCols = boxColumns(op.getBK(), tile.swizzle, bf16);
        tile.firstByte = op.getPaddedDepth();
        tile.columns = op.getBK();
        return tile;
      })
      .Case([&](CreateGather4TmaTileOp op) {
        auto layout = cast<CacheLayout>(op.getCache().getType());
        TmaTile tile;
        tile.cache = op.getCache();
        tile.element = op.getTmaDtype().value_or(layout.getElementType());
        tile.swizzle = op.getSwizzle();
        tile.boxCols =
            boxColumns(op.getTileWidth(), tile.swizzle, tile.element);
        tile.stride = op.getTileStride().value_or(0);
        tile.l2Promotion = op.getL2Promotion();
        tile.gathers = true;
        return tile;
      })
      .Case([&](CreateRopeGather4TmaTileOp op) {
        TmaTile tile;
        tile.cache = op.getCache();
        tile.element = bf16;
        tile.swizzle = op.getSwizzle();
        tile.boxCols = boxColumns(op.getTileWidth(), tile.swizzle, bf16);
        tile.firstByte = op.getPaddedDepth();
        tile.columns = op.getTileWidth();
        tile.l2Promotion = op.getL2Promotion();
        tile.gathers = true;
        return tile;
      })
      .Default([](Operation *) { return std::nullopt; });
}

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

/// What holds for every map; `columns`: those of a tile, in as many boxes as it
/// takes.
static LogicalResult verifyMap(Operation *op, int64_t columns) {
  TmaTile tile = *tmaTileOf(op);
  int64_t bytes = bytesOf(tile.element);
  if (!isa<LLVM::LLVMPointerType>(op->getResult(0).getType()))
    return op->emitOpError() << "makes a map at an address; expected the type "
                                "!llvm.ptr, got "
                             << op->getResult(0).getType();
  if (!bytes || bytes > 8)
    return op->emitOpError()
           << "expected elements of 1 to 8 bytes, got " << tile.element;
  if (!llvm::is_contained({0, 32, 64, 128}, tile.swizzle))
    return op->emitOpError()
           << "expected a swizzle of 0, 32, 64 or 128 bytes, got "
           << tile.swizzle;
  if (!llvm::is_contained({0, 64, 128, 256}, tile.l2Promotion))
    return op->emitOpError()
           << "expected an l2_promotion of 0, 64, 128 or 256 bytes, got "
           << tile.l2Promotion;
  if (columns <= 0)
    return op->emitOpError() << "expected at least one column, got " << columns;
  if (tile.boxCols > kMostOfBox || tile.boxCols * bytes % kUnitBytes)
    return op->emitOpError()
           << "has boxes of " << tile.boxCols << " columns, "
           << tile.boxCols * bytes
           << " bytes; expected a multiple of 16 bytes and at most 256 "
              "columns, or a swizzle, whose span is a box";
  if (tile.boxRows < 1 || tile.boxRows > kMostOfBox)
    return op->emitOpError()
           << "expected BN from 1 to 256, rows of a box, got " << tile.boxRows;
  if (tile.firstByte % kUnitBytes)
    return op->emitOpError()
           << "begins at byte " << tile.firstByte
           << " of a row; expected a multiple of 16, as maps do";
  return success();
}

/// Rows of 8-bit elements that end in elements of bf16.
static LogicalResult verifyRope(Operation *op, int64_t content, int64_t rope) {
  auto layout = cast<CacheLayout>(op->getOperand(0).getType());
  if (bytesOf(layout.getElementType()) != 1)
    return op->emitOpError()
           << "expected a cache of 8-bit elements, whose rows end in bf16, got "
           << layout.getElementType();
  if (content < 0 || content + 2 * rope > layout.getCacheDepth())
    return op->emitOpError()
           << "is of bytes " << content << " to " << content + 2 * rope
           << " of a row; expected a cache_depth of at least as many, got "
           << layout.getCacheDepth();
  return success();
}

static LogicalResult verifyHeight(Operation *op, int64_t rows) {
  if (rows > 0 && rows % kGathered == 0)
    return success();
  return op->emitOpError()
         << "expected a tile_height that is a multiple of 4, got " << rows;
}

LogicalResult CreateTmaTileOp::verify() {
  return verifyMap(*this, tileColumns(*this));
}

LogicalResult CreateRaggedTmaTileOp::verify() {
  return verifyMap(*this, tileColumns(*this));
}

LogicalResult CreateRopeTmaTileOp::verify() {
  if (failed(verifyRope(*this, getPaddedDepth(), getBK())))
    return failure();
  return verifyMap(*this, getBK());
}

LogicalResult CreateGather4TmaTileOp::verify() {
  if (failed(verifyHeight(*this, getTileHeight())))
    return failure();
  if (std::optional<int64_t> stride = getTileStride();
      stride && *stride < int64_t(getTileWidth()))
    return emitOpError() << "expected a tile_stride of at least tile_width = "
                         << getTileWidth() << ", got " << *stride;
  return verifyMap(*this, getTileWidth());
}

LogicalResult CreateRopeGather4TmaTileOp::verify() {
  if (failed(verifyHeight(*this, getTileHeight())) ||
      failed(verifyRope(*this, getPaddedDepth(), getTileWidth())))
    return failure();
  return verifyMap(*this, getTileWidth());
}
