//===- PipelineLoop.cpp - Loops whose iterations overlap --------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PipelineLoop.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/SCF/Transforms/Transforms.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace kvbuf;

/// Marks loads that run ahead, while a loop is pipelined.
static constexpr StringLiteral kAhead = "kvbuffer.ahead";

/// Gives an op that runs ahead the predicate of its iteration; null for what
/// cannot be predicated.
static Operation *predicate(RewriterBase &rewriter, Operation *op, Value pred) {
  if (op->hasAttr(kEveryTile) || isa<LdsStageOp>(op))
    return op;
  auto compare = pred.getDefiningOp<arith::CmpIOp>();
  if (isa<DramLoadOp, CacheTileOp>(op) && op->hasAttr(kOneMore) && compare) {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointAfter(compare);
    pred =
        arith::CmpIOp::create(rewriter, op->getLoc(), arith::CmpIPredicate::sle,
                              compare.getLhs(), compare.getRhs());
  }
  auto assign = [&](auto one) -> Operation * {
    if (!one.getPred())
      rewriter.modifyOpInPlace(one, [&] { one.getPredMutable().assign(pred); });
    return one;
  };
  if (auto load = dyn_cast<DramLoadOp>(op))
    return assign(load);
  if (auto tile = dyn_cast<CacheTileOp>(op))
    return assign(tile);
  return isMemoryEffectFree(op) ? op : nullptr;
}

FailureOr<scf::ForOp> kvbuf::pipelineLoop(IRRewriter &rewriter, scf::ForOp loop,
                                          const PipelineOrder &order,
                                          StringRef what) {
  Location loc = loop.getLoc();
  bool wholeAfterFirst = loop->hasAttr(KVBufferDialect::kWholeAfterFirstAttr);
  unsigned now = 0;
  for (auto [op, stage] : order)
    now = std::max(now, stage);
  for (auto [op, stage] : order)
    if (isa<DramLoadOp>(op) && stage < now)
      op->setAttr(kAhead, rewriter.getUnitAttr());

  scf::PipeliningOption options;
  options.supportDynamicLoops = true;
  options.peelEpilogue = false;
  options.predicateFn = predicate;
  options.getScheduleFn = [&](scf::ForOp, PipelineOrder &schedule) {
    schedule = order;
  };
  rewriter.setInsertionPoint(loop);
  bool modified = false;
  FailureOr<scf::ForOp> result =
      scf::pipelineForLoop(rewriter, loop, options, &modified);
  if (failed(result))
    return emitError(loc) << "cannot pipeline the loop " << what;
  if (wholeAfterFirst)
    for (auto load : result->getBody()->getOps<DramLoadOp>())
      if (load->hasAttr(kAhead))
        load.setWhole(true);
  (*result)->getBlock()->walk([](Operation *op) { op->removeAttr(kAhead); });
  return result;
}

void kvbuf::forgetMarks(scf::ForOp loop) {
  loop->getBlock()->walk([](Operation *op) {
    op->removeAttr(kEveryTile);
    op->removeAttr(kOneMore);
  });
}
