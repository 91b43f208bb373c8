//===- Fragments.h - Ops on fragments, on whole tiles -----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Ops that need nothing of a block but what the tile interpreter offers to
/// everybody's ops.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_EMULATOR_TILE_FRAGMENTS_H
#define KVBUFFER_LIB_EMULATOR_TILE_FRAGMENTS_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Emulator/TileExecutionInterface.h"

namespace kvbuf::emu::tile {

/// Ops from fragments to one fragment, without a state.
mlir::LogicalResult executeFragmentOp(TileContext &context,
                                      mlir::Operation *op);

mlir::LogicalResult execute(TileContext &context, MmaOp op);
mlir::LogicalResult execute(TileContext &context, FragmentFitOp op);
mlir::LogicalResult execute(TileContext &context, TileFragmentOp op);

// The softmax (Softmax.cpp).
mlir::LogicalResult execute(TileContext &context, AnyNegativeOp op);
mlir::LogicalResult execute(TileContext &context, OnlineSoftmaxOp op);
mlir::LogicalResult execute(TileContext &context, RaiseMaxOp op);
mlir::LogicalResult execute(TileContext &context, ApplyRaiseOp op);
mlir::LogicalResult execute(TileContext &context, SoftmaxHeadOp op);
mlir::LogicalResult execute(TileContext &context, SoftmaxTailOp op);
mlir::LogicalResult execute(TileContext &context, CarryExcessOp op);
mlir::LogicalResult execute(TileContext &context, SoftmaxFinishOp op);
mlir::LogicalResult execute(TileContext &context, SoftmaxMergeOp op);

} // namespace kvbuf::emu::tile

#endif // KVBUFFER_LIB_EMULATOR_TILE_FRAGMENTS_H
