//===- OverlapSoftmax.cpp - The next scores beside this softmax -----------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopParts.h"
#include "LostRequest.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace kvbuf {
#define GEN_PASS_DEF_OVERLAPSOFTMAX
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-overlap-softmax"

namespace {

/// Whether what is left of an iteration reads nothing of `slice` but `handed`
/// and what can be computed twice.
bool canTakeApart(scf::ForOp loop, const OpSlice &slice,
                  ArrayRef<Value> handed) {
  OpSlice twice;
  auto read = [&](Operation *op) {
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Operation *def = operand.getDefiningOp();
            def && slice.contains(def) && !llvm::is_contained(handed, operand))
          twice.insert(def);
    });
  };
  for (Operation &op : *loop.getBody())
    if (!slice.contains(&op))
      read(&op);
  for (unsigned i = 0; i < twice.size(); ++i) {
    if (!isMemoryEffectFree(twice[i]) || isa<MmaOp>(twice[i]))
      return false;
    read(twice[i]);
  }
  return true;
}

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

    ImplicitLocOpBuilder b(loop.getLoc(), loop);
    Value lb = loop.getLowerBound(), ub = loop.getUpperBound(),
          step = loop.getStep();
    Value any = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, lb, ub);
    auto guarded =
        scf::IfOp::create(b, loop.getResultTypes(), any,
                          /*addThenBlock=*/true, /*addElseBlock=*/true);
    b.setInsertionPointToStart(guarded.elseBlock());
    scf::YieldOp::create(b, loop.getInitArgs());

    /// Clones the part of an iteration that runs ahead.
    auto cloneAhead = [&](OpBuilder &builder, Value iv, Value carried) {
      IRMapping mapping;
      mapping.map(loop.getInductionVar(), iv);
      if (handed.carried)
        mapping.map(handed.carried, carried);
      for (Operation &op : *body)
        if (slice.contains(&op))
          builder.clone(op, mapping);
      return llvm::map_to_vector(
          handed.values, [&](Value value) { return mapping.lookup(value); });
    };
    /// Clones the rest of an iteration, given what was handed to it and carried
    /// values; returns what it yields.
    auto cloneRest = [&](OpBuilder &builder, Value iv, ValueRange given,
                         ValueRange carried) {
      IRMapping mapping;
      mapping.map(loop.getInductionVar(), iv);
      mapping.map(handed.values, given);
      auto next = carried.begin();
      for (Value arg : loop.getRegionIterArgs())
        if (arg != handed.carried)
          mapping.map(arg, *next++);
      llvm::SmallPtrSet<Operation *, 32> done;
      // Index arithmetic of the scores may serve the rest too.
      std::function<void(Operation *)> clone = [&](Operation *op) {
        if (!done.insert(op).second)
          return;
        op->walk([&](Operation *inner) {
          for (Value operand : inner->getOperands())
            if (Operation *def = operand.getDefiningOp())
              if (def->getBlock() == body && !mapping.contains(operand))
                clone(def);
        });
        builder.clone(*op, mapping);
      };
      for (Operation &op : body->without_terminator())
        if (!slice.contains(&op))
          clone(&op);
      SmallVector<Value> yields;
      for (Value value : body->getTerminator()->getOperands()) {
        if (Operation *def = value.getDefiningOp();
            def && def->getBlock() == body && !mapping.contains(value))
          clone(def);
        yields.push_back(mapping.lookupOrDefault(value));
      }
      return yields;
    };

    b.setInsertionPointToStart(guarded.thenBlock());
    Value last = arith::SubIOp::create(b, ub, step);
    SmallVector<Value> inits;
    Value first;
    for (auto [arg, init] :
         llvm::zip_equal(loop.getRegionIterArgs(), loop.getInitArgs()))
      if (arg == handed.carried)
        first = init;
      else
        inits.push_back(init);
    unsigned carriedCount = inits.size();
    llvm::append_range(inits, cloneAhead(b, lb, first));
    auto rotated = scf::ForOp::create(b, lb, last, step, inits);
    rotated->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
    {
      OpBuilder::InsertionGuard guard(b);
      if (!rotated.getBody()->empty())
        rotated.getBody()->getTerminator()->erase();
      b.setInsertionPointToEnd(rotated.getBody());
      Value iv = rotated.getInductionVar();
      ValueRange args = rotated.getRegionIterArgs();
      ValueRange given = args.drop_front(carriedCount);
      Value next = arith::AddIOp::create(b, iv, step);
      SmallVector<Value> ahead = cloneAhead(
          b, next, handed.carried ? given[handed.carriedFrom] : Value());
      compareThisIteration(rotated, next);
      SmallVector<Value> yields;
      for (auto [arg, value] : llvm::zip_equal(
               loop.getRegionIterArgs(),
               cloneRest(b, iv, given, args.take_front(carriedCount))))
        if (arg != handed.carried)
          yields.push_back(value);
      llvm::append_range(yields, ahead);
      scf::YieldOp::create(b, yields);
    }
    SmallVector<Value> results =
        cloneRest(b, last, rotated.getResults().drop_front(carriedCount),
                  rotated.getResults().take_front(carriedCount));
    scf::YieldOp::create(b, results);
    remark::passed(loop.getLoc(),
                   remark::RemarkOpts::name("overlap").category(DEBUG_TYPE))
        << "the scores of the next tile overlap the softmax of this one";
    loop.replaceAllUsesWith(guarded.getResults());
    loop.erase();
  }

  /// Comparisons of the next iteration's number with what the loop does not
  /// change become comparisons of this one's, so that the loop can still be
  /// split where they change.
  static void compareThisIteration(scf::ForOp loop, Value next) {
    for (Operation *user : llvm::make_early_inc_range(next.getUsers())) {
      auto compare = dyn_cast<arith::CmpIOp>(user);
      if (!compare || compare.getLhs() != next ||
          !loop.isDefinedOutsideOfLoop(compare.getRhs()))
        continue;
      OpBuilder b(loop);
      Value bound = arith::SubIOp::create(b, compare.getLoc(), compare.getRhs(),
                                          loop.getStep());
      compare->setOperands({loop.getInductionVar(), bound});
    }
  }

  void runOnOperation() override {
    auto schedule = getOperation()->getAttrOfType<ScheduleAttr>(
        KVBufferDialect::kScheduleAttr);
    if (!schedule || !schedule.getOverlap())
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
