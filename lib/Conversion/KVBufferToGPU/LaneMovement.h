//===- LaneMovement.h - Tiles and loads -------------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEMOVEMENT_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEMOVEMENT_H

#include "Lanes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace kvbuf {

/// A tile as a buffer reads it: from the first column of a block that the
/// buffer takes.
TileView sourceOf(LaneContext &lanes, mlir::TypedValue<TileType> tile,
                  KVBufferAttr params, int64_t block = 0);

/// Lowers an op; its model calls it (LaneModels.cpp).
void lowerOp(LaneContext &lower, DramTileOp op);
void lowerOp(LaneContext &lanes, AllocOp op);
void lowerOp(LaneContext &lanes, DramLoadOp op);
mlir::LogicalResult lowerOp(LaneContext &lanes, LdsStageOp op);
mlir::LogicalResult lowerOp(LaneContext &lanes, FragmentLoadOp op);
void lowerOp(LaneContext &lanes, StagedViewOp op);
mlir::LogicalResult lowerOp(LaneContext &lanes, TileFragmentOp op);
mlir::LogicalResult lowerOp(LaneContext &lower, mlir::memref::LoadOp op);
mlir::LogicalResult lowerOp(LaneContext &lower, mlir::memref::DimOp op);

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEMOVEMENT_H
