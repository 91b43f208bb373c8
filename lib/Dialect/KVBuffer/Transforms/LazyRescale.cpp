//===- LazyRescale.cpp - Rescale only where maxima have grown by much -----===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Remarks.h"

namespace kvbuf {
#define GEN_PASS_DEF_LAZYRESCALE
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-lazy-rescale"

namespace {
struct LazyRescalePass : kvbuf::impl::LazyRescaleBase<LazyRescalePass> {
  using Base::Base;

  void runOnOperation() override {
    auto schedule = getOperation()->getAttrOfType<ScheduleAttr>(
        KVBufferDialect::kScheduleAttr);
    if (!schedule || !schedule.getLazyRescale())
      return;
    SmallVector<OnlineSoftmaxOp> found;
    getOperation().walk([&](OnlineSoftmaxOp op) { found.push_back(op); });
    for (OnlineSoftmaxOp op : found)
      rewrite(op);
  }

  void rewrite(OnlineSoftmaxOp op) {
    RescaleOp rescale;
    if (op.getRescale().hasOneUse())
      rescale = dyn_cast<RescaleOp>(*op.getRescale().user_begin());
    bool movable = rescale && rescale->getBlock() == op->getBlock();
    if (movable)
      if (Operation *def = rescale.getAcc().getDefiningOp())
        movable = def->getBlock() != op->getBlock() || def->isBeforeInBlock(op);
    if (!movable) {
      remark::missed(op.getLoc(),
                     remark::RemarkOpts::name("lazy").category(DEBUG_TYPE))
          << "rescaled every time: the factor is not of one accumulator that "
             "is there before the softmax";
      return;
    }
    OpBuilder b(op);
    // A log-sum-exp is of the weights as they are, not as the operand rounds
    // them: the sum that it comes of must not be corrected.
    Type operand = op.getP().getType().getElementType();
    getOperation().walk([&](RowStoreOp) { operand = b.getF32Type(); });
    Location loc = op.getLoc();
    Type row = op.getMax().getType();
    auto raise =
        RaiseMaxOp::create(b, loc, row, row, b.getI1Type(), op.getScores(),
                           op.getMax(), op.getScaleAttr());
    auto head = SoftmaxHeadOp::create(b, loc, op.getScores().getType(), row,
                                      op.getScores(), raise.getNewMax(),
                                      op.getScaleAttr(), TypeAttr::get(operand),
                                      op.getMaskedAttr());
    auto apply = ApplyRaiseOp::create(b, loc, rescale.getAcc().getType(), row,
                                      raise.getRaised(), raise.getFactor(),
                                      rescale.getAcc(), op.getSum());
    auto tail = SoftmaxTailOp::create(b, loc, op.getP().getType(), row,
                                      head.getExponents(), head.getExcess(),
                                      apply.getNewSum());
    rescale.replaceAllUsesWith(apply.getNewAcc());
    rescale.erase();
    op.getP().replaceAllUsesWith(tail.getP());
    op.getNewMax().replaceAllUsesWith(raise.getNewMax());
    op.getNewSum().replaceAllUsesWith(tail.getNewSum());
    op.erase();
    remark::passed(raise.getLoc(),
                   remark::RemarkOpts::name("lazy").category(DEBUG_TYPE))
        << "accumulators are rescaled where a maximum has grown by more than "
           "8 in base 2";
  }
};
} // namespace
