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
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

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

FailureOr<scf::ForOp> kvbuf::pipelinePeeled(IRRewriter &rewriter,
                                            scf::ForOp loop,
                                            const PipelineOrder &order,
                                            StringRef what) {
  Location loc = loop.getLoc();
  DictionaryAttr attributes = loop->getDiscardableAttrDictionary();
  rewriter.setInsertionPoint(loop);
  Value any = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::slt,
                                    loop.getLowerBound(), loop.getUpperBound());
  auto guarded =
      scf::IfOp::create(rewriter, loc, loop.getResultTypes(), any,
                        /*addThenBlock=*/true, /*addElseBlock=*/true);
  rewriter.setInsertionPointToStart(guarded.elseBlock());
  scf::YieldOp::create(rewriter, loc, loop.getInitArgs());
  rewriter.replaceAllUsesWith(loop.getResults(), guarded.getResults());
  rewriter.setInsertionPointToStart(guarded.thenBlock());
  Value end = arith::SubIOp::create(rewriter, loc, loop.getUpperBound(),
                                    loop.getStep());
  auto yield = scf::YieldOp::create(rewriter, loc, loop.getResults());
  rewriter.moveOpBefore(loop, yield);

  scf::PipeliningOption options;
  options.supportDynamicLoops = true;
  options.peelEpilogue = true;
  // There is an iteration for all that stands before the loop and after it.
  options.predicateFn = [](RewriterBase &, Operation *op, Value) { return op; };
  options.getScheduleFn = [&](scf::ForOp, PipelineOrder &schedule) {
    schedule = order;
  };
  llvm::DenseSet<Operation *> clones;
  options.annotateFn = [&](Operation *op, scf::PipeliningOption::PipelinerPart,
                           unsigned) { clones.insert(op); };
  rewriter.setInsertionPoint(loop);
  bool modified = false;
  FailureOr<scf::ForOp> result =
      scf::pipelineForLoop(rewriter, loop, options, &modified);
  if (failed(result))
    return emitError(loc) << "cannot pipeline the loop " << what;
  (*result)->setDiscardableAttrs(attributes);
  result->setUpperBound(end);
  // The pipeliner does not know of the guard: it asks whether there is an
  // iteration, and after the loop which one was the last.
  for (Operation &op : llvm::make_early_inc_range(*guarded.thenBlock())) {
    if (clones.contains(&op))
      continue;
    if (auto select = dyn_cast<arith::SelectOp>(op)) {
      rewriter.replaceOp(select, select.getTrueValue());
    } else if (auto number = dyn_cast<arith::MaxSIOp>(op)) {
      // lb + step * n: of a step of 1, the number that the loop ends before.
      if (isConstantIntValue(result->getStep(), 1))
        for (Operation *steps : number->getUsers())
          for (Operation *last : llvm::make_early_inc_range(steps->getUsers()))
            if (isa<arith::MulIOp>(steps) && isa<arith::AddIOp>(last))
              rewriter.replaceAllUsesWith(last->getResults(), end);
      rewriter.replaceOp(number, number.getRhs());
    }
  }
  // Passes look for indices as programs have them.
  SmallVector<Operation *> scalars;
  guarded.getThenRegion().walk([&](Operation *op) {
    if (isa_and_nonnull<arith::ArithDialect>(op->getDialect()))
      scalars.push_back(op);
  });
  RewritePatternSet patterns(loc.getContext());
  arith::AddIOp::getCanonicalizationPatterns(patterns, loc.getContext());
  arith::SubIOp::getCanonicalizationPatterns(patterns, loc.getContext());
  GreedyRewriteConfig config;
  config.setStrictness(GreedyRewriteStrictness::ExistingAndNewOps);
  (void)applyOpPatternsGreedily(scalars, std::move(patterns), config);
  return result;
}

void kvbuf::forgetMarks(scf::ForOp loop) {
  loop->getBlock()->walk([](Operation *op) {
    op->removeAttr(kEveryTile);
    op->removeAttr(kOneMore);
  });
}
