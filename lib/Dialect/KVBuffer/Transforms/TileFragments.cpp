//===- TileFragments.cpp - Cut products into steps of K ---------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProductGroups.h"
#include "kvbuffer/Dialect/KVBuffer/IR/FragmentSources.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ChooseTarget.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/VerifyElements.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace kvbuf {
#define GEN_PASS_DEF_TILEFRAGMENTS
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

namespace {

/// The part of a fragment at (row, col): loaded by itself where the fragment
/// comes from LDS, a view of registers otherwise.
Value part(OpBuilder &b, Location loc, Value source, int64_t row, int64_t col,
           int64_t rows, int64_t cols) {
  auto type = cast<FragmentType>(source.getType());
  FragmentType partType = type.withShape(rows, cols);
  auto load = source.getDefiningOp<FragmentLoadOp>();
  // Only in the load's own block: a fragment loaded outside of a loop stays in
  // registers on purpose. A ring's slot may be released after the load.
  if (load && load->getBlock() == b.getInsertionBlock() &&
      !slotOfView(load.getStaged()).getDefiningOp<RingWaitOp>()) {
    if (load.isCrossed())
      std::swap(row, col);
    return FragmentLoadOp::create(b, load.getLoc(), partType, load.getStaged(),
                                  load.getRow() + row, load.getCol() + col,
                                  load.getContractedAttr());
  }
  return FragmentSliceOp::create(b, loc, partType, source, row, col);
}

/// The elements that the instructions of one step contract, which share a read
/// of LDS: those of the layout that the product names, of the schedule's
/// instruction where it names none.
int64_t stepOf(MmaOp product, ScheduleAttr schedule,
               const std::optional<TargetInfo> &target) {
  if (auto layout = dyn_cast_or_null<MmaLayoutAttr>(
          product.getAcc().getType().getLayout()))
    return layout.getShape()[2] * layout.getGroup();
  const MatrixInstruction *mma =
      target ? target->instructionFor(
                   schedule.getMmaShape(productOf(product)),
                   elementName(product.getA().getType().getElementType()),
                   /*byGroups=*/false)
             : nullptr;
  if (!mma)
    return schedule.getMmaShape(productOf(product))[2];
  return mma->k * groupOfProduct(*target, *mma, product.getB(),
                                 product.getTransposeB(),
                                 product.getA().getType().getCols());
}

/// The columns of operand b that may be in registers at a time, where the
/// buffer that it comes from says so; else `step`.
int64_t chunkOf(MmaOp product, int64_t step) {
  auto load = product.getB().getDefiningOp<FragmentLoadOp>();
  if (!load || !product.getTransposeB())
    return step;
  KVBufferAttr params = load.getStaged().getType().getParams();
  return params.getRegChunkDepth() < params.getDepth()
             ? params.getRegChunkDepth()
             : step;
}

struct TileFragmentsPass : kvbuf::impl::TileFragmentsBase<TileFragmentsPass> {
  using Base::Base;

  void runOnOperation() override {
    // A kernel by lanes has no products of fragments.
    auto phase =
        getOperation()->getAttrOfType<PhaseAttr>(KVBufferDialect::kPhaseAttr);
    if (phase && phase.getValue() != Phase::Tile &&
        phase.getValue() != Phase::Scheduled)
      return;
    auto schedule = getOperation()->getAttrOfType<ScheduleAttr>(
        KVBufferDialect::kScheduleAttr);
    if (!schedule) {
      getOperation().emitError()
          << "has no '" << KVBufferDialect::kScheduleAttr << "'";
      return signalPassFailure();
    }
    std::optional<TargetInfo> target = targetOf(getOperation());
    SmallVector<MmaOp> products;
    getOperation().walk([&](MmaOp op) { products.push_back(op); });
    for (MmaOp op : products) {
      FragmentType a = op.getA().getType(), bType = op.getB().getType();
      int64_t step = stepOf(op, schedule, target);
      if (step < 1) {
        op.emitOpError() << "has no matrix instruction: neither its fragments' "
                            "layouts nor the schedule name one; expected "
                            "mma_shape in '"
                         << KVBufferDialect::kScheduleAttr
                         << "', as kvbuf-complete-program puts it in";
        return signalPassFailure();
      }
      if (a.getCols() <= step)
        continue;
      // Where halves of the block take turns, fragments are loaded in other
      // parts of an iteration than products.
      if (!op->getBlock()->getOps<MeetOp>().empty())
        continue;
      if (a.getCols() % step) {
        op.emitOpError() << "contracts " << a.getCols()
                         << " elements, which the matrix instruction's K = "
                         << step << " does not divide";
        return signalPassFailure();
      }
      int64_t chunk = chunkOf(op, step);
      if (chunk % step) {
        op.emitOpError() << "has operand b in registers by reg_chunk_depth = "
                         << chunk
                         << " columns, which the matrix instruction's K = "
                         << step << " does not divide";
        return signalPassFailure();
      }
      OpBuilder b(op);
      Value acc = op.getAcc();
      for (int64_t k = 0; k < a.getCols(); k += chunk) {
        int64_t size = std::min(chunk, a.getCols() - k);
        Value ak = part(b, op.getLoc(), op.getA(), 0, k, a.getRows(), size);
        Value bk =
            op.getTransposeB()
                ? part(b, op.getLoc(), op.getB(), 0, k, bType.getRows(), size)
                : part(b, op.getLoc(), op.getB(), k, 0, size, bType.getCols());
        acc = MmaOp::create(b, op.getLoc(), ak, bk, acc, op.getTransposeB(),
                            op.getColumn());
      }
      op.replaceAllUsesWith(acc);
      op.erase();
    }
    // The whole fragments' loads have no users now.
    SmallVector<FragmentLoadOp> loads;
    getOperation().walk([&](FragmentLoadOp op) { loads.push_back(op); });
    for (FragmentLoadOp op : loads)
      if (op->use_empty())
        op.erase();
  }
};
} // namespace
