//===- TileModels.cpp - How the dialect's own ops are executed ------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockRun.h"
#include "Fragments.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::emu;
using namespace kvbuf::emu::tile;

#include "kvbuffer/Emulator/TileExecutionInterface.cpp.inc"

namespace {

/// The execution of an op that is a member of BlockRun: it makes what others
/// are offered, tiles, slots, rings, teams and work, or runs a region.
template <typename OpTy>
struct TileModel
    : TileExecutionInterface::ExternalModel<TileModel<OpTy>, OpTy> {
  LogicalResult executeTile(Operation *op, TileContext &context) const {
    return static_cast<BlockRun &>(context).runOwn(cast<OpTy>(op));
  }
};

/// That of one which needs what is offered to everybody's ops alone.
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
    attach<TileModel, MakeCacheOp, CacheNumKeysOp, CacheTileOp, CacheScaleOp,
           DramTileOp, KeyRangeOp, FragmentStoreOp, RowStoreOp, AllocOp,
           StagedViewOp, DramLoadOp, LdsStageOp, FragmentLoadOp, MapOp,
           SoftmaxSinkOp>(context);
    attach<ContextModel, TileFragmentOp, MmaOp, FragmentFitOp, OnlineSoftmaxOp,
           AnyNegativeOp, RaiseMaxOp, ApplyRaiseOp, SoftmaxHeadOp,
           SoftmaxTailOp, CarryExcessOp, SoftmaxFinishOp, SoftmaxMergeOp>(
        context);
    attach<TileModel, LaunchValueOp, LaunchSizeOp, FindTileOp, NumberTilesOp,
           NextTileOp, AppendTokensOp, ArriveLastOp, AfterAllOp, ShareWorkOp,
           WorkItemOp, ItemRowsOp, PartialStoreOp, PartialLoadOp,
           PartialJoinOp>(context);
    attach<TileModel, MeetOp, StaggerOp, RingOp, RingLoadOp, RingPutOp,
           RingWaitOp, RingReleaseOp, MailboxOp, MailboxPostOp, MailboxTakeOp,
           MmaStartOp, MmaWaitOp, TurnWaitOp, TurnPassOp, TeamsOp, QueueOp,
           QueuePutOp, QueueTakeOp, ShelfOp, ShelfPutOp, ShelfGetOp>(context);
    attach<FragmentModel, FragmentFillOp, FragmentSliceOp, FragmentConvertOp,
           ExchangeOp, RowReduceOp, WarpReduceOp, SoftcapOp, FragmentScaleOp,
           MaskOp, RescaleOp>(context);
  });
  registry.addExtension(+[](MLIRContext *context, memref::MemRefDialect *) {
    attach<TileModel, memref::DimOp, memref::LoadOp>(context);
  });
}
