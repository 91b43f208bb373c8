//===- LaneModels.cpp - How the dialect's own ops become lane code --------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaneAppend.h"
#include "LaneCaches.h"
#include "LaneControl.h"
#include "LaneExchange.h"
#include "LaneFit.h"
#include "LaneMap.h"
#include "LaneMath.h"
#include "LaneMovement.h"
#include "LanePartials.h"
#include "LaneQueues.h"
#include "LaneRings.h"
#include "LaneSoftmax.h"
#include "LaneStores.h"
#include "LaneTeams.h"
#include "LaneTiles.h"
#include "LaneWarps.h"
#include "LaneWork.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace kvbuf;

#include "kvbuffer/Conversion/LaneLoweringInterface.cpp.inc"

namespace {

/// What an op of our own needs of the kernel's warps.
enum class Warps {
  Any,
  /// Those of a team that rings join, or what joins it.
  Rings,
  /// All that copy by themselves, without rings.
  Copies
};

/// The lowering of an op of our own, with what everybody's ops are offered.
template <typename OpTy, Warps warps>
struct LaneModel
    : LaneLoweringInterface::ExternalModel<LaneModel<OpTy, warps>, OpTy> {
  LogicalResult lowerToLanes(Operation *op, LaneContext &context) const {
    if (warps == Warps::Rings && failed(checkRings(context, op)))
      return failure();
    if (warps == Warps::Copies && failed(checkNoRings(context, op)))
      return failure();
    if constexpr (std::is_void_v<decltype(lowerOp(context, cast<OpTy>(op)))>) {
      lowerOp(context, cast<OpTy>(op));
      return success();
    } else {
      return lowerOp(context, cast<OpTy>(op));
    }
  }
};

template <Warps warps, typename... Ops> void attach(MLIRContext *context) {
  (Ops::template attachInterface<LaneModel<Ops, warps>>(*context), ...);
}

} // namespace

void kvbuf::registerLaneLoweringModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, KVBufferDialect *) {
    // What moves.
    attach<Warps::Any, MakeCacheOp, CacheNumKeysOp, CacheTileOp, CacheScaleOp,
           DramTileOp, KeyRangeOp, AllocOp, StagedViewOp, FragmentLoadOp,
           TileFragmentOp, FragmentStoreOp, RowStoreOp>(context);
    attach<Warps::Copies, DramLoadOp, LdsStageOp, AppendTokensOp>(context);
    // Fragments.
    attach<Warps::Any, FragmentFillOp, FragmentSliceOp, FragmentConvertOp,
           FragmentFitOp, StagedFitOp, ExchangeOp, RowReduceOp, WarpReduceOp,
           MmaOp, MapOp, SoftcapOp, FragmentScaleOp, MaskOp, RescaleOp>(
        context);
    // The softmax.
    attach<Warps::Rings, AnyNegativeOp>(context);
    attach<Warps::Any, OnlineSoftmaxOp, RaiseMaxOp, ApplyRaiseOp, SoftmaxHeadOp,
           SoftmaxTailOp, SoftmaxSettleOp, CarryExcessOp, SoftmaxFinishOp,
           SoftmaxMergeOp, SoftmaxSinkOp>(context);
    // Work that blocks share.
    attach<Warps::Any, LaunchSizeOp, LaunchValueOp, FindTileOp, NumberTilesOp,
           ArriveLastOp, AfterAllOp, ShareWorkOp, SharePairsOp, PartialStoreOp,
           PartialLoadOp, PartialJoinOp>(context);
    // Warps that do different things.
    attach<Warps::Any, MeetOp, StaggerOp, TeamsOp, QueueOp, QueuePutOp,
           QueueTakeOp, ShelfOp, ShelfPutOp, ShelfGetOp>(context);
    attach<Warps::Rings, RingOp, RingLoadOp, RingPutOp, RingWaitOp,
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
