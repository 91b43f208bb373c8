//===- OwnOps.h - Our own ops, on whole tiles -------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// How the dialect's own ops are executed (`TileModels.cpp`), with nothing but
/// what the tile interpreter offers to everybody's ops.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_EMULATOR_TILE_OWNOPS_H
#define KVBUFFER_LIB_EMULATOR_TILE_OWNOPS_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Emulator/TileExecutionInterface.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace kvbuf::emu::tile {

// Fragments (Fragments.cpp).

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
mlir::LogicalResult execute(TileContext &context, SoftmaxSettleOp op);
mlir::LogicalResult execute(TileContext &context, CarryExcessOp op);
mlir::LogicalResult execute(TileContext &context, SoftmaxFinishOp op);
mlir::LogicalResult execute(TileContext &context, SoftmaxMergeOp op);

// Tensors, caches and tiles in DRAM (Dram.cpp).
mlir::LogicalResult execute(TileContext &context, mlir::memref::DimOp op);
mlir::LogicalResult execute(TileContext &context, mlir::memref::LoadOp op);
mlir::LogicalResult execute(TileContext &context, MakeCacheOp op);
mlir::LogicalResult execute(TileContext &context, CacheNumKeysOp op);
mlir::LogicalResult execute(TileContext &context, CacheTileOp op);
mlir::LogicalResult execute(TileContext &context, CacheScaleOp op);
mlir::LogicalResult execute(TileContext &context, DramTileOp op);
mlir::LogicalResult execute(TileContext &context, KeyRangeOp op);
mlir::LogicalResult execute(TileContext &context, FragmentStoreOp op);
mlir::LogicalResult execute(TileContext &context, RowStoreOp op);

// New tokens that the block reads (Append.cpp).
mlir::LogicalResult execute(TileContext &context, AppendTokensOp op);

// Slots (LdsOps.cpp).
mlir::LogicalResult execute(TileContext &context, AllocOp op);
mlir::LogicalResult execute(TileContext &context, StagedViewOp op);
mlir::LogicalResult execute(TileContext &context, StagedFitOp op);
mlir::LogicalResult execute(TileContext &context, MeetOp op);
mlir::LogicalResult execute(TileContext &context, StaggerOp op);
mlir::LogicalResult execute(TileContext &context, DramLoadOp op);
mlir::LogicalResult execute(TileContext &context, LdsStageOp op);
mlir::LogicalResult execute(TileContext &context, FragmentLoadOp op);

// Arithmetic by regions (Map.cpp).
mlir::LogicalResult execute(TileContext &context, MapOp op);

// Items of work, and work that blocks share (Work.cpp).
mlir::LogicalResult execute(TileContext &context, WorkItemOp op);
mlir::LogicalResult execute(TileContext &context, ItemRowsOp op);
mlir::LogicalResult execute(TileContext &context, LaunchValueOp op);
mlir::LogicalResult execute(TileContext &context, ArriveLastOp op);
mlir::LogicalResult execute(TileContext &context, AfterAllOp op);
mlir::LogicalResult execute(TileContext &context, ShareWorkOp op);
mlir::LogicalResult execute(TileContext &context, SharePairsOp op);
mlir::LogicalResult execute(TileContext &context, PartialStoreOp op);
mlir::LogicalResult execute(TileContext &context, PartialLoadOp op);
mlir::LogicalResult execute(TileContext &context, PartialJoinOp op);
mlir::LogicalResult execute(TileContext &context, SoftmaxSinkOp op);

// Rings, products in flight and numbers of tiles (RingOps.cpp).
mlir::LogicalResult execute(TileContext &context, RingOp op);
mlir::LogicalResult execute(TileContext &context, RingLoadOp op);
mlir::LogicalResult execute(TileContext &context, RingPutOp op);
mlir::LogicalResult execute(TileContext &context, RingWaitOp op);
mlir::LogicalResult execute(TileContext &context, RingReleaseOp op);
mlir::LogicalResult execute(TileContext &context, MailboxOp op);
mlir::LogicalResult execute(TileContext &context, MailboxPostOp op);
mlir::LogicalResult execute(TileContext &context, MailboxTakeOp op);
mlir::LogicalResult execute(TileContext &context, NextTileOp op);
mlir::LogicalResult execute(TileContext &context, LaunchSizeOp op);
mlir::LogicalResult execute(TileContext &context, FindTileOp op);
mlir::LogicalResult execute(TileContext &context, NumberTilesOp op);
mlir::LogicalResult execute(TileContext &context, MmaStartOp op);
mlir::LogicalResult execute(TileContext &context, MmaWaitOp op);
mlir::LogicalResult execute(TileContext &context, TurnWaitOp op);
mlir::LogicalResult execute(TileContext &context, TurnPassOp op);

// Teams (Teams.cpp).
mlir::LogicalResult execute(TileContext &context, TeamsOp op);
mlir::LogicalResult execute(TileContext &context, QueueOp op);
mlir::LogicalResult execute(TileContext &context, QueuePutOp op);
mlir::LogicalResult execute(TileContext &context, QueueTakeOp op);
mlir::LogicalResult execute(TileContext &context, ShelfOp op);
mlir::LogicalResult execute(TileContext &context, ShelfPutOp op);
mlir::LogicalResult execute(TileContext &context, ShelfGetOp op);

} // namespace kvbuf::emu::tile

#endif // KVBUFFER_LIB_EMULATOR_TILE_OWNOPS_H
