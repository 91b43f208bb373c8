//===- LaneModels.cpp - How the dialect's own ops become lane code --------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaneLowering.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace kvbuf;

#include "kvbuffer/Conversion/LaneLoweringInterface.cpp.inc"

namespace {

/// What an op of our own needs of the kernel's warps.
enum class Warps {
  Any,
  /// Those of a role, or of the whole division into roles.
  Roles,
  /// All of the block, of which roles have a part.
  Block
};

/// The lowering of an op of our own is a member of LaneLowering: it shares what
/// the kernel has been found to be.
template <typename OpTy, Warps warps>
struct LaneModel
    : LaneLoweringInterface::ExternalModel<LaneModel<OpTy, warps>, OpTy> {
  LogicalResult lowerToLanes(Operation *op, LaneContext &context) const {
    auto &lowering = static_cast<LaneLowering &>(context);
    if (warps == Warps::Roles && failed(lowering.checkRoles(op)))
      return failure();
    if (warps == Warps::Block && failed(lowering.checkNoRoles(op)))
      return failure();
    return lowering.lowerOwn(cast<OpTy>(op));
  }
};

template <Warps warps, typename... Ops> void attach(MLIRContext *context) {
  (Ops::template attachInterface<LaneModel<Ops, warps>>(*context), ...);
}

} // namespace

void kvbuf::registerLaneLoweringModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, KVBufferDialect *) {
    // What moves.
    attach<Warps::Any, MakeCacheOp, CacheNumKeysOp, CacheTileOp, CacheScaleOp, DramTileOp,
           KeyRangeOp, AllocOp, StagedViewOp, FragmentLoadOp, TileFragmentOp,
           FragmentStoreOp, RowStoreOp>(context);
    attach<Warps::Block, DramLoadOp, LdsStageOp, AppendTokensOp>(context);
    // Fragments.
    attach<Warps::Any, FragmentFillOp, FragmentSliceOp, FragmentConvertOp,
           FragmentFitOp,
           ExchangeOp, RowReduceOp, WarpReduceOp, MmaOp, MapOp, SoftcapOp,
           FragmentScaleOp, MaskOp, RescaleOp>(context);
    // The softmax.
    attach<Warps::Roles, AnyNegativeOp>(context);
    attach<Warps::Any, OnlineSoftmaxOp, RaiseMaxOp, ApplyRaiseOp, SoftmaxHeadOp,
           SoftmaxTailOp, CarryExcessOp, SoftmaxFinishOp, SoftmaxMergeOp,
           SoftmaxSinkOp>(context);
    // Work that blocks share.
    attach<Warps::Any, LaunchSizeOp, LaunchValueOp, FindTileOp, NumberTilesOp,
           ArriveLastOp, ShareWorkOp, PartialStoreOp, PartialLoadOp, PartialJoinOp>(context);
    // Warps that do different things.
    attach<Warps::Any, MeetOp, StaggerOp, TeamsOp, QueueOp, QueuePutOp,
           QueueTakeOp, ShelfOp, ShelfPutOp, ShelfGetOp>(context);
    attach<Warps::Roles, WarpRolesOp, RingOp, RingLoadOp, RingWaitOp,
           RingReleaseOp, MailboxOp, MailboxPostOp, MailboxTakeOp, NextTileOp,
           MmaStartOp, MmaWaitOp, TurnWaitOp, TurnPassOp>(context);
  });
  registry.addExtension(+[](MLIRContext *context, scf::SCFDialect *) {
    attach<Warps::Any, scf::ForOp, scf::IfOp, scf::WhileOp>(context);
  });
  registry.addExtension(+[](MLIRContext *context, memref::MemRefDialect *) {
    attach<Warps::Any, memref::LoadOp, memref::DimOp>(context);
  });
}
