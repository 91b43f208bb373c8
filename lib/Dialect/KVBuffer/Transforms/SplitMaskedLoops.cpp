//===- SplitMaskedLoops.cpp - Split loops at branches on the iteration *- C++
//-*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Remarks.h"

namespace kvbuf {
#define GEN_PASS_DEF_SPLITMASKEDLOOPS
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-split-masked-loops"

namespace {

/// A condition of the form `iv < below or iv >= from`; either may be absent.
struct EdgeCondition {
  Value below, from;
  /// The parts themselves, which branches inside may ask for again.
  Value isBelow, isFrom;
};

/// Matches a condition on a loop's induction variable.
std::optional<EdgeCondition> matchEdge(scf::ForOp loop, Value condition) {
  // Each part must begin where the one before it ends.
  if (getConstantIntValue(loop.getStep()) != 1)
    return std::nullopt;
  EdgeCondition edge;
  SmallVector<Value> parts{condition};
  if (auto orOp = condition.getDefiningOp<arith::OrIOp>())
    parts = {orOp.getLhs(), orOp.getRhs()};
  for (Value part : parts) {
    auto cmp = part.getDefiningOp<arith::CmpIOp>();
    if (!cmp || cmp.getLhs() != loop.getInductionVar() ||
        !loop.isDefinedOutsideOfLoop(cmp.getRhs()))
      return std::nullopt;
    if (cmp.getPredicate() == arith::CmpIPredicate::slt && !edge.below)
      edge.below = cmp.getRhs(), edge.isBelow = part;
    else if (cmp.getPredicate() == arith::CmpIPredicate::sge && !edge.from)
      edge.from = cmp.getRhs(), edge.isFrom = part;
    else
      return std::nullopt;
  }
  return edge;
}

struct SplitMaskedLoopsPass
    : kvbuf::impl::SplitMaskedLoopsBase<SplitMaskedLoopsPass> {
  using Base::Base;

  /// Replaces the branch in a copy of the loop by one of its sides.
  static void resolve(IRRewriter &rewriter, scf::IfOp branch, bool side) {
    Block *block = side ? branch.thenBlock() : branch.elseBlock();
    Operation *yield = block->getTerminator();
    SmallVector<Value> results(yield->getOperands());
    rewriter.eraseOp(yield);
    rewriter.inlineBlockBefore(block, branch);
    rewriter.replaceOp(branch, results);
  }

  /// Takes a side of the branches of a copy of the loop that ask for one part
  /// of the condition. Returns whether there are any.
  static bool resolveInside(IRRewriter &rewriter, scf::ForOp copy, Value part,
                            bool side) {
    SmallVector<scf::IfOp> branches;
    for (Operation *user : part.getUsers())
      if (auto inside = dyn_cast<scf::IfOp>(user);
          inside && inside->getBlock() == copy.getBody() &&
          !inside.getElseRegion().empty())
        branches.push_back(inside);
    for (scf::IfOp inside : branches)
      resolve(rewriter, inside, side);
    return !branches.empty();
  }

  /// Splits a loop; returns the part whose iterations are at no edge.
  scf::ForOp split(scf::ForOp loop, scf::IfOp branch, EdgeCondition edge) {
    IRRewriter rewriter(&getContext());
    Location loc = loop.getLoc();
    rewriter.setInsertionPoint(loop);
    Value lb = loop.getLowerBound(), ub = loop.getUpperBound();
    auto clamp = [&](Value v, Value low) -> Value {
      Value up = arith::MaxSIOp::create(rewriter, loc, v, low);
      return arith::MinSIOp::create(rewriter, loc, up, ub);
    };
    Value first = edge.below ? clamp(edge.below, lb) : lb;
    Value last = edge.from ? clamp(edge.from, first) : ub;

    struct Part {
      Value from, to;
      bool side, isLast;
    };
    SmallVector<Part> parts;
    if (edge.below)
      parts.push_back({lb, first, true, false});
    parts.push_back({first, last, false, false});
    if (edge.from)
      parts.push_back({last, ub, true, true});

    SmallVector<Value> values(loop.getInitArgs());
    scf::ForOp inner;
    for (const Part &part : parts) {
      IRMapping mapping;
      auto copy = cast<scf::ForOp>(rewriter.clone(*loop, mapping));
      copy.getLowerBoundMutable().assign(part.from);
      copy.getUpperBoundMutable().assign(part.to);
      copy.getInitArgsMutable().assign(values);
      auto own = cast<scf::IfOp>(mapping.lookup(branch.getOperation()));
      OpBuilder::InsertionGuard guard(rewriter);
      Value condition = own.getCondition();
      resolve(rewriter, own, part.side);
      // Others on the whole condition have the same side.
      resolveInside(rewriter, copy, condition, part.side);
      // The first part may reach into what the last one is of, but not the
      // other way round.
      auto inCopy = [&](Value value) { return mapping.lookupOrNull(value); };
      Value isBelow = edge.below ? inCopy(edge.isBelow) : Value(),
            isFrom = edge.from ? inCopy(edge.isFrom) : Value();
      bool one = false;
      if (part.side && isBelow)
        one |= resolveInside(rewriter, copy, isBelow, !part.isLast);
      if (part.isLast && isFrom)
        one |= resolveInside(rewriter, copy, isFrom, true);
      // Too short to be worth loops of their own.
      if (one && part.isLast)
        copy->setAttr(KVBufferDialect::kEdgeTilesAttr, rewriter.getUnitAttr());
      values.assign(copy.getResults().begin(), copy.getResults().end());
      if (!part.side)
        inner = copy;
    }
    remark::passed(loc, remark::RemarkOpts::name("split").category(DEBUG_TYPE))
        << "split into " << std::to_string(parts.size())
        << " loops, one without masks";
    rewriter.replaceOp(loop, values);
    return inner;
  }

  /// The first branch of a loop's body on the iteration.
  static scf::IfOp findBranch(scf::ForOp loop,
                              std::optional<EdgeCondition> &edge) {
    for (auto branch : loop.getBody()->getOps<scf::IfOp>())
      if (!branch.getElseRegion().empty())
        if ((edge = matchEdge(loop, branch.getCondition())))
          return branch;
    return nullptr;
  }

  void runOnOperation() override {
    auto schedule = getOperation()->getAttrOfType<ScheduleAttr>(
        KVBufferDialect::kScheduleAttr);
    if (schedule && !schedule.getSplitMasks())
      return;
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    // What an edge's side has taken, the other may divide again, by branches
    // that stood in there.
    std::optional<EdgeCondition> edge;
    for (scf::ForOp loop : loops)
      while (scf::IfOp branch = loop ? findBranch(loop, edge) : nullptr)
        loop = split(loop, branch, *edge);
  }
};
} // namespace
