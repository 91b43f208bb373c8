//===- PairTiles.cpp - Neighbouring tiles for a cluster -------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Remarks.h"

namespace kvbuf {
#define GEN_PASS_DEF_PAIRTILES
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-pair-tiles"

namespace {

struct PairTilesPass : kvbuf::impl::PairTilesBase<PairTilesPass> {
  using Base::Base;

  void runOnOperation() override {
    gpu::GPUFuncOp kernel = getOperation();
    auto schedule =
        kernel->getAttrOfType<ScheduleAttr>(KVBufferDialect::kScheduleAttr);
    if (!schedule || schedule.getCluster() == 1)
      return;
    int64_t cluster = schedule.getCluster(), BM = schedule.getBM();

    // The tile's first row: its number times BM.
    SmallVector<KeyRangeOp> ranges;
    kernel.walk([&](KeyRangeOp op) { ranges.push_back(op); });
    arith::MulIOp row;
    for (KeyRangeOp range : ranges) {
      auto product = range.getRow().getDefiningOp<arith::MulIOp>();
      if (!product || getConstantIntValue(product.getRhs()) != BM ||
          (row && product != row)) {
        range.emitOpError() << "expected the first row to be a number of tiles "
                               "times BM = "
                            << BM << ", as kvbuf-lower-attention leaves it";
        return signalPassFailure();
      }
      row = product;
    }
    if (!row)
      return;

    ImplicitLocOpBuilder b(row.getLoc(), row);
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(b, value);
    };
    Value first =
        arith::MulIOp::create(b, row.getLhs(), constant(BM * cluster));
    Value rank = gpu::ClusterBlockIdOp::create(b, gpu::Dimension::x);
    Value own = arith::AddIOp::create(
        b, first, arith::MulIOp::create(b, rank, constant(BM)).getResult());

    // What decides over loads speaks of all the cluster's rows.
    row.getResult().replaceUsesWithIf(first, [](OpOperand &use) {
      Operation *user = use.getOwner();
      if (isa<KeyRangeOp>(user))
        return true;
      return isa<arith::CmpIOp>(user) &&
             llvm::any_of(user->getUsers(), llvm::IsaPred<scf::IfOp>);
    });
    row.getResult().replaceAllUsesWith(own);
    row.erase();
    for (KeyRangeOp range : ranges)
      range.setBM(BM * cluster);
    // Numbers over a ragged batch are of all the cluster's rows, too.
    kernel.walk([&](FindTileOp op) { op.setBM(op.getBM() * cluster); });
    kernel.setKnownClusterSizeAttr(
        b.getDenseI32ArrayAttr({int32_t(cluster), 1, 1}));
    remark::passed(kernel.getLoc(),
                   remark::RemarkOpts::name("cluster").category(DEBUG_TYPE))
        << "clusters of " << std::to_string(cluster)
        << " blocks take neighbouring tiles";
  }
};
} // namespace
