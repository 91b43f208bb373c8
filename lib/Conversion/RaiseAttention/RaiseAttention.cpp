//===- RaiseAttention.cpp - Make attention of graphs of linalg --*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds what MatchAttention.h describes, and has AttentionBuilder.h build the
// op from it.
//
//===----------------------------------------------------------------------===//

#include "AttentionBuilder.h"
#include "Sizes.h"
#include "Unraised.h"
#include "kvbuffer/Conversion/Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#define DEBUG_TYPE "kvbuf-raise-attention"

namespace kvbuf {
#define GEN_PASS_DEF_RAISEATTENTION
#include "kvbuffer/Conversion/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::raise;

namespace {

struct RaiseAttentionPass
    : kvbuf::impl::RaiseAttentionBase<RaiseAttentionPass> {
  using Base::Base;

  Type roundTo;

  LogicalResult initialize(MLIRContext *context) override {
    FailureOr<Type> type = parseRound(context, round);
    if (failed(type))
      return failure();
    roundTo = *type;
    return success();
  }

  /// Why the products of weights and values stay.
  using Reasons = llvm::MapVector<Operation *, std::string>;

  /// Raises the last graph that is attention.
  bool raiseOne(Reasons &reasons) {
    SmallVector<Value> roots;
    getOperation()->walk([&](Operation *op) {
      if (!isa<AttentionOp>(op))
        for (Value result : op->getResults())
          if (isa<RankedTensorType>(result.getType()))
            roots.push_back(result);
    });
    reasons.clear();
    for (Value root : llvm::reverse(roots)) {
      AttentionMatcher matcher(root, roundTo, rowsSeeKeys, sizesAgree);
      Outcome outcome = matcher.match();
      if (outcome == Outcome::Refused)
        reasons.insert({matcher.anchor, matcher.why});
      if (outcome != Outcome::Found)
        continue;
      Location loc = matcher.anchor->getLoc();
      if (caches)
        matcher.matchCaches();
      Value raised =
          AttentionBuilder(matcher, root.getDefiningOp()).build().out;
      std::string what = "attention is kvbuffer.attention now";
      if (matcher.rowsMaySeeNoKey)
        what += "; its window is a change of scores, as other masks or biases "
                "may leave a row no key: rows-see-keys says that they do not";
      remark::passed(loc,
                     remark::RemarkOpts::name("raised").category(DEBUG_TYPE))
          << what;
      root.replaceAllUsesWith(raised);
      eraseUnused(root.getDefiningOp());
      eraseForSizes();
      return true;
    }
    return false;
  }

  static void eraseUnused(Operation *op) {
    SmallVector<Operation *> worklist{op};
    llvm::SmallPtrSet<Operation *, 8> erased;
    while (!worklist.empty()) {
      Operation *next = worklist.pop_back_val();
      if (erased.contains(next) || !isOpTriviallyDead(next))
        continue;
      SmallVector<Operation *> definitions;
      next->walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          if (Operation *def = operand.getDefiningOp();
              def && !next->isAncestor(def))
            definitions.push_back(def);
      });
      erased.insert(next);
      next->erase();
      llvm::append_range(worklist, definitions);
    }
  }

  /// What is left of raised graphs for the sizes of its results alone goes.
  void eraseForSizes() {
    forwardSizes(getOperation());
    SmallVector<Operation *> ops;
    getOperation()->walk<WalkOrder::PreOrder>([&](Operation *op) {
      bool isDead =
          llvm::any_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>) &&
          isOpTriviallyDead(op);
      if (isDead)
        ops.push_back(op);
      return isDead ? WalkResult::skip() : WalkResult::advance();
    });
    llvm::for_each(ops, eraseUnused);
  }

  void runOnOperation() override {
    Reasons reasons;
    while (raiseOne(reasons))
      ;
    // What the matcher does not take for weights, by what it comes from.
    getOperation()->walk([&](linalg::LinalgOp op) {
      if (!reasons.contains(op) && isSumOfProducts(op))
        if (std::optional<std::string> why = whyUnfollowed(op, sizesAgree))
          reasons.insert({op, *why});
    });
    for (auto &[op, why] : reasons)
      remark::missed(op->getLoc(),
                     remark::RemarkOpts::name("raised").category(DEBUG_TYPE))
          << "not raised: " << why;
  }
};

} // namespace
