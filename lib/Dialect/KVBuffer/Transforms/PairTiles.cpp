//===- PairTiles.cpp - Tiles that a cluster's blocks take together --------===//
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
    if (pairHeads(kernel, schedule.getCluster()))
      return;
    pairRows(kernel, schedule);
  }

  /// Gives the blocks of a cluster heads that share a head of the cache, where
  /// the program says so: it divides the number of its head by how many do, a
  /// multiple of the cluster's blocks. They see the same keys whatever the
  /// mask, and a sequence's last tile has a partner. Returns whether it did.
  static bool pairHeads(gpu::GPUFuncOp kernel, int64_t cluster) {
    SmallVector<gpu::BlockIdOp> ids;
    SmallVector<arith::DivUIOp> shared;
    kernel.walk([&](gpu::BlockIdOp id) {
      if (id.getDimension() != gpu::Dimension::y)
        return;
      ids.push_back(id);
      for (Operation *user : id->getUsers())
        if (auto division = dyn_cast<arith::DivUIOp>(user);
            division && division.getLhs() == id.getResult())
          if (auto heads = getConstantIntValue(division.getRhs());
              heads && *heads > 0 && *heads % cluster == 0)
            shared.push_back(division);
    });
    if (shared.empty())
      return false;

    // The id numbers clusters now. Their blocks' heads share a head of the
    // cache, so which one is known without the block's rank.
    for (arith::DivUIOp division : shared) {
      OpBuilder b(division);
      int64_t clusters = *getConstantIntValue(division.getRhs()) / cluster;
      division.getRhsMutable().assign(
          arith::ConstantIndexOp::create(b, division.getLoc(), clusters));
    }
    for (gpu::BlockIdOp id : ids) {
      ImplicitLocOpBuilder b(id.getLoc(), id->getBlock(),
                             std::next(id->getIterator()));
      Value first = arith::MulIOp::create(
          b, id.getResult(), arith::ConstantIndexOp::create(b, cluster));
      Value rank = gpu::ClusterBlockIdOp::create(b, gpu::Dimension::y);
      Value own = arith::AddIOp::create(b, first, rank);
      id.getResult().replaceUsesWithIf(own, [&](OpOperand &use) {
        Operation *user = use.getOwner();
        return user != first.getDefiningOp() &&
               !llvm::is_contained(shared, user);
      });
    }
    finish(kernel, {1, int32_t(cluster), 1},
           " blocks take heads that share a head of the cache");
    return true;
  }

  /// What the kernel's blocks are, and the remark.
  static void finish(gpu::GPUFuncOp kernel, ArrayRef<int32_t> size,
                     StringRef what) {
    kernel.setKnownClusterSizeAttr(
        DenseI32ArrayAttr::get(kernel.getContext(), size));
    remark::passed(kernel.getLoc(),
                   remark::RemarkOpts::name("cluster").category(DEBUG_TYPE))
        << "clusters of " << std::to_string(size[0] * size[1]) << what.str();
  }

  /// Gives the blocks of a cluster neighbouring tiles of queries.
  void pairRows(gpu::GPUFuncOp kernel, ScheduleAttr schedule) {
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
    finish(kernel, {int32_t(cluster), 1, 1}, " blocks take neighbouring tiles");
  }
};
} // namespace
