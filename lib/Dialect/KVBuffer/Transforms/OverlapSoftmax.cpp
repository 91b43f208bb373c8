//===- OverlapSoftmax.cpp - The next scores beside this softmax -----------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopParts.h"
#include "LostRequest.h"
#include "PipelineLoop.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "mlir/IR/Remarks.h"

namespace kvbuf {
#define GEN_PASS_DEF_OVERLAPSOFTMAX
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-overlap-softmax"

namespace {

/// What one iteration hands to the next.
struct Handed {
  /// Computed an iteration ahead.
  SmallVector<Value> values;
  /// The carried value that they may depend on, and its index among `values` in
  /// the iteration before; null if there is none.
  Value carried;
  unsigned carriedFrom = 0;
};

struct OverlapSoftmaxPass
    : kvbuf::impl::OverlapSoftmaxBase<OverlapSoftmaxPass> {
  using Base::Base;

  void rotate(scf::ForOp loop, const Handed &handed) {
    Block *body = loop.getBody();
    OpSlice slice;
    for (Value value : handed.values)
      if (!collectSlice(value, loop, slice, handed.carried)) {
        warnLost(loop, DEBUG_TYPE, "overlap",
                 "not overlapped: the scores depend on what the loop carries");
        return;
      }

    // A value that only the part ahead reads is carried as what it hands over.
    if (handed.carried &&
        llvm::any_of(handed.carried.getUsers(), [&](Operation *user) {
          return !slice.contains(body->findAncestorOpInBlock(*user));
        })) {
      warnLost(loop, DEBUG_TYPE, "overlap",
               "not overlapped: the maximum is read by more than the scores");
      return;
    }

    // A value of two iterations before would have to be carried twice.
    if (llvm::any_of(loop.getYieldedValues(), [&](Value value) {
          return value.getParentBlock() != body || isa<BlockArgument>(value);
        })) {
      warnLost(loop, DEBUG_TYPE, "overlap",
               "not overlapped: the loop carries a value that no op of its own "
               "computes");
      return;
    }

    if (!canTakeApart(loop, slice, handed.values)) {
      warnLost(loop, DEBUG_TYPE, "overlap",
               "not overlapped: more than the scores is read of what would run "
               "ahead");
      return;
    }

    // The next tile's load follows the scores of this one without a barrier.
    for (Operation *op : slice)
      if (auto load = dyn_cast<DramLoadOp>(op))
        if (load.getBuffer().getType().getParams().getStages() < 2) {
          warnLost(
              loop, DEBUG_TYPE, "overlap",
              "not overlapped: a buffer of one slot cannot be loaded while "
              "it is read");
          return;
        }

    IRRewriter rewriter(&getContext());
    PipelineOrder order;
    for (Operation &op : body->without_terminator())
      if (slice.contains(&op))
        order.push_back({&op, 0});
    placeRest(rewriter, loop, slice, handed.values, order);
    Location loc = loop.getLoc();
    annotate(loop, order, Pipeline::PeeledNow);
    if (annotateOnly)
      return;
    if (failed(pipelineLoop(rewriter, loop, "of which scores run ahead")))
      return signalPassFailure();
    remark::passed(loc,
                   remark::RemarkOpts::name("overlap").category(DEBUG_TYPE))
        << "the scores of the next tile overlap the softmax of this one";
  }

  void runOnOperation() override {
    auto schedule = getOperation()->getAttrOfType<ScheduleAttr>(
        KVBufferDialect::kScheduleAttr);
    if (!schedule || !std::holds_alternative<ScoresAhead>(schedule.getAhead()))
      return;
    // Teams of latent rows are built with scores that run ahead.
    if (schedule.getStructure().dividesColumns())
      return;
    SmallVector<std::pair<scf::ForOp, Handed>> found;
    getOperation().walk([&](Operation *op) {
      auto loop = dyn_cast_or_null<scf::ForOp>(op->getParentOp());
      if (!loop)
        return;
      if (auto softmax = dyn_cast<OnlineSoftmaxOp>(op)) {
        // What comes out of the matrix unit; a mask on it stays with the
        // softmax, so that the loop can be split where masks end.
        Value scores = softmax.getScores();
        if (auto branch = scores.getDefiningOp<scf::IfOp>())
          if (auto yield = branch.elseYield())
            scores = yield.getOperand(cast<OpResult>(scores).getResultNumber());
        found.push_back({loop, {{scores}, Value()}});
      }
      // A softmax in two parts: all of its head is computed ahead.
      if (auto head = dyn_cast<SoftmaxHeadOp>(op))
        if (auto raise = head.getMax().getDefiningOp<RaiseMaxOp>())
          found.push_back(
              {loop,
               {{raise.getNewMax(), raise.getFactor(), raise.getRaised(),
                 head.getExponents(), head.getExcess()},
                isa<BlockArgument>(raise.getMax()) ? raise.getMax()
                                                   : Value()}});
    });
    if (found.empty())
      warnLost(getOperation(), DEBUG_TYPE, "overlap",
               "not overlapped: no loop has a softmax that can be rotated");
    for (const auto &[loop, handed] : found)
      rotate(loop, handed);
  }
};
} // namespace
