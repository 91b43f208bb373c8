//===- OverlapSoftmax.cpp - Scores of the next tile beside a softmax *- C++
//-*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopParts.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Remarks.h"

namespace kvbuf {
#define GEN_PASS_DEF_OVERLAPSOFTMAX
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-overlap-softmax"

namespace {

struct OverlapSoftmaxPass
    : kvbuf::impl::OverlapSoftmaxBase<OverlapSoftmaxPass> {
  using Base::Base;

  void rotate(scf::ForOp loop, OnlineSoftmaxOp softmax) {
    Block *body = loop.getBody();
    // What comes out of the matrix unit; a mask on it stays with the softmax,
    // so that the loop can be split where masks end.
    Value scores = softmax.getScores();
    if (auto branch = scores.getDefiningOp<scf::IfOp>())
      if (auto yield = branch.elseYield())
        scores = yield.getOperand(cast<OpResult>(scores).getResultNumber());
    OpSlice slice;
    if (!collectSlice(scores, loop, slice)) {
      remark::missed(loop.getLoc(),
                     remark::RemarkOpts::name("overlap").category(DEBUG_TYPE))
          << "not overlapped: the scores depend on what the loop carries";
      return;
    }

    // The next tile's load follows the scores of this one without a barrier.
    for (Operation *op : slice)
      if (auto load = dyn_cast<DramLoadOp>(op))
        if (load.getBuffer().getType().getParams().getStages() < 2) {
          remark::missed(
              loop.getLoc(),
              remark::RemarkOpts::name("overlap").category(DEBUG_TYPE))
              << "not overlapped: a buffer of one slot cannot be loaded while "
                 "it is read";
          return;
        }

    ImplicitLocOpBuilder b(loop.getLoc(), loop);
    Value lb = loop.getLowerBound(), ub = loop.getUpperBound(),
          step = loop.getStep();
    Value any = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, lb, ub);
    auto guarded =
        scf::IfOp::create(b, loop.getResultTypes(), any,
                          /*addThenBlock=*/true, /*addElseBlock=*/true);
    b.setInsertionPointToStart(guarded.elseBlock());
    scf::YieldOp::create(b, loop.getInitArgs());

    /// Clones the score part of an iteration.
    auto cloneScores = [&](OpBuilder &builder, Value iv) {
      IRMapping mapping;
      mapping.map(loop.getInductionVar(), iv);
      cloneSlice(builder, loop, slice, mapping);
      return mapping.lookup(scores);
    };
    /// Clones the rest of an iteration, given its scores and carried values;
    /// returns what it yields.
    auto cloneRest = [&](OpBuilder &builder, Value iv, Value given,
                         ValueRange carried) {
      IRMapping mapping;
      mapping.map(loop.getInductionVar(), iv);
      mapping.map(scores, given);
      mapping.map(loop.getRegionIterArgs(), carried);
      // Index arithmetic of the scores may serve the rest too.
      for (Operation &op : body->without_terminator())
        if (!slice.contains(&op))
          cloneWithOperands(builder, loop, &op, mapping);
      SmallVector<Value> yields;
      for (Value value : body->getTerminator()->getOperands())
        yields.push_back(mapping.lookupOrDefault(value));
      return yields;
    };

    b.setInsertionPointToStart(guarded.thenBlock());
    Value last = arith::SubIOp::create(b, ub, step);
    SmallVector<Value> inits(loop.getInitArgs());
    inits.push_back(cloneScores(b, lb));
    auto rotated = scf::ForOp::create(b, lb, last, step, inits);
    rotated->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
    {
      OpBuilder::InsertionGuard guard(b);
      if (!rotated.getBody()->empty())
        rotated.getBody()->getTerminator()->erase();
      b.setInsertionPointToEnd(rotated.getBody());
      Value iv = rotated.getInductionVar();
      Value next = arith::AddIOp::create(b, iv, step);
      Value nextScores = cloneScores(b, next);
      SmallVector<Value> yields =
          cloneRest(b, iv, rotated.getRegionIterArgs().back(),
                    rotated.getRegionIterArgs().drop_back());
      yields.push_back(nextScores);
      scf::YieldOp::create(b, yields);
    }
    SmallVector<Value> results = cloneRest(b, last, rotated.getResults().back(),
                                           rotated.getResults().drop_back());
    scf::YieldOp::create(b, results);
    remark::passed(loop.getLoc(),
                   remark::RemarkOpts::name("overlap").category(DEBUG_TYPE))
        << "the scores of the next tile overlap the softmax of this one";
    loop.replaceAllUsesWith(guarded.getResults());
    loop.erase();
  }

  void runOnOperation() override {
    auto schedule = getOperation()->getAttrOfType<ScheduleAttr>(
        KVBufferDialect::kScheduleAttr);
    if (!schedule || !schedule.getOverlap())
      return;
    SmallVector<std::pair<scf::ForOp, OnlineSoftmaxOp>> found;
    getOperation().walk([&](OnlineSoftmaxOp op) {
      if (auto loop = dyn_cast<scf::ForOp>(op->getParentOp()))
        found.push_back({loop, op});
    });
    for (auto [loop, softmax] : found)
      rotate(loop, softmax);
  }
};
} // namespace
