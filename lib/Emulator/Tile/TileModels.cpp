//===- TileModels.cpp - How the dialect's own ops are executed ------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OwnOps.h"

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::emu;
using namespace kvbuf::emu::tile;

#include "kvbuffer/Emulator/TileExecutionInterface.cpp.inc"

namespace {

/// The execution of an op of our own, which needs what is offered to
/// everybody's ops alone.
template <typename OpTy>
struct ContextModel
    : TileExecutionInterface::ExternalModel<ContextModel<OpTy>, OpTy> {
  LogicalResult executeTile(Operation *op, TileContext &context) const {
    return execute(context, cast<OpTy>(op));
  }
};

/// Of those: ops from fragments to one fragment, without a state.
template <typename OpTy>
struct FragmentModel
    : TileExecutionInterface::ExternalModel<FragmentModel<OpTy>, OpTy> {
  LogicalResult executeTile(Operation *op, TileContext &context) const {
    return executeFragmentOp(context, op);
  }
};

template <template <typename> typename Model, typename... Ops>
void attach(MLIRContext *context) {
  (Ops::template attachInterface<Model<Ops>>(*context), ...);
}

} // namespace

void emu::registerTileExecutionModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, KVBufferDialect *) {
    attach<ContextModel, MakeCacheOp, CacheNumKeysOp, CacheTileOp, CacheScaleOp,
           DramTileOp, KeyRangeOp, FragmentStoreOp, RowStoreOp, AllocOp,
           StagedViewOp, StagedFitOp, DramLoadOp, LdsStageOp, FragmentLoadOp,
           MapOp, SoftmaxSinkOp>(context);
    attach<ContextModel, TileFragmentOp, MmaOp, FragmentFitOp, OnlineSoftmaxOp,
           AnyNegativeOp, RaiseMaxOp, ApplyRaiseOp, SoftmaxHeadOp,
           SoftmaxTailOp, SoftmaxSettleOp, CarryExcessOp, SoftmaxFinishOp,
           SoftmaxMergeOp>(context);
    attach<ContextModel, LaunchValueOp, LaunchSizeOp, FindTileOp, NumberTilesOp,
           NextTileOp, AppendTokensOp, ArriveLastOp, AfterAllOp, ShareWorkOp,
           SharePairsOp, WorkItemOp, ItemRowsOp, PartialStoreOp, PartialLoadOp,
           PartialJoinOp>(context);
    attach<ContextModel, MeetOp, StaggerOp, RingOp, RingLoadOp, RingPutOp,
           RingWaitOp, RingReleaseOp, MailboxOp, MailboxPostOp, MailboxTakeOp,
           MmaStartOp, MmaWaitOp, TurnWaitOp, TurnPassOp, TeamsOp, QueueOp,
           QueuePutOp, QueueTakeOp, ShelfOp, ShelfPutOp, ShelfGetOp>(context);
    attach<FragmentModel, FragmentFillOp, FragmentSliceOp, FragmentConvertOp,
           ExchangeOp, RowReduceOp, WarpReduceOp, SoftcapOp, FragmentScaleOp,
           MaskOp, RescaleOp>(context);
  });
  registry.addExtension(+[](MLIRContext *context, memref::MemRefDialect *) {
    attach<ContextModel, memref::DimOp, memref::LoadOp>(context);
  });
}
