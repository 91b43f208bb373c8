//===- IntegerMaxima.cpp - Compare maxima as integers ---------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop that asks about the sign of its maxima, and one that need not ask any
// more. A branch in one loop would do as well, but keeps apart what stands on
// its two sides: the exponentials of a tile would wait for products that they
// do not need.
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/Transforms/ChooseTarget.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Remarks.h"

namespace kvbuf {
#define GEN_PASS_DEF_INTEGERMAXIMA
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-integer-maxima"

namespace {

/// Whether scores are what a function makes of them, on both sides of a branch
/// if there is one, or a product that begins with what a function adds.
bool isMapped(Value scores) {
  if (scores.getDefiningOp<MapOp>())
    return true;
  if (auto wait = scores.getDefiningOp<MmaWaitOp>()) {
    auto start = wait.getPending().getDefiningOp<MmaStartOp>();
    return start && start.getAcc() && isMapped(start.getAcc());
  }
  auto branch = scores.getDefiningOp<scf::IfOp>();
  unsigned i = branch ? cast<OpResult>(scores).getResultNumber() : 0;
  return branch && isMapped(branch.thenYield().getOperand(i)) &&
         isMapped(branch.elseYield().getOperand(i));
}

/// Whether scores are a product times a factor of each row, of which no mask
/// has hidden any.
bool isScaled(Value scores) {
  auto scaled = scores.getDefiningOp<RescaleOp>();
  return scaled && !scaled.getAcc().getDefiningOp<MaskOp>();
}

/// The only softmax of a loop's body, if it finds the maximum that the loop
/// carries among scores that are all there; else null.
OnlineSoftmaxOp findSoftmax(scf::ForOp loop) {
  auto all = loop.getBody()->getOps<OnlineSoftmaxOp>();
  if (!llvm::hasSingleElement(all))
    return nullptr;
  OnlineSoftmaxOp softmax = *all.begin();
  // Capped scores are looked at ahead of being capped. Functions may hide keys,
  // which the order of integers allows; loops over tiles that a mask cuts are
  // too short to be worth it.
  Operation *scores = softmax.getScores().getDefiningOp();
  if ((softmax.getMasked() && !isMapped(softmax.getScores()) &&
       !isScaled(softmax.getScores())) ||
      softmax.getRowMax() || softmax.getNotNegative() ||
      isa_and_nonnull<SoftcapOp>(scores))
    return nullptr;
  auto max = dyn_cast<BlockArgument>(softmax.getMax());
  if (!max || max.getOwner() != loop.getBody() ||
      max == loop.getInductionVar() ||
      loop.getTiedLoopYieldedValue(max)->get() != softmax.getNewMax())
    return nullptr;
  return softmax;
}

struct IntegerMaximaPass : kvbuf::impl::IntegerMaximaBase<IntegerMaximaPass> {
  using Base::Base;

  /// The first iteration, if there is one, and those up to the first that
  /// begins without a negative maximum; yields the number of that one, and what
  /// it starts with. Each asks beside its products, for the next one: to ask
  /// ahead of the first would hold up all of them.
  static scf::WhileOp whileNegative(IRRewriter &b, scf::ForOp loop,
                                    OnlineSoftmaxOp softmax) {
    Location loc = loop.getLoc();
    SmallVector<Value> inits{
        arith::ConstantOp::create(b, loc, b.getBoolAttr(true)),
        loop.getLowerBound()};
    llvm::append_range(inits, loop.getInitArgs());
    SmallVector<Type> types(ValueRange(inits).getTypes());
    SmallVector<Location> places(types.size(), loc);
    TypeRange handed = TypeRange(types).drop_front();
    auto first = scf::WhileOp::create(b, loc, handed, inits);
    OpBuilder::InsertionGuard guard(b);
    Block *before = b.createBlock(&first.getBefore(), {}, types, places);
    ValueRange values = before->getArguments();
    Value more = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                       values[1], loop.getUpperBound());
    scf::ConditionOp::create(b, loc,
                             arith::AndIOp::create(b, loc, more, values[0]),
                             values.drop_front());
    Block *after = b.createBlock(&first.getAfter(), {}, handed,
                                 ArrayRef<Location>(places).drop_front());
    IRMapping mapping;
    mapping.map(loop.getBody()->getArguments(), after->getArguments());
    Value some;
    for (Operation &op : loop.getBody()->without_terminator()) {
      b.clone(op, mapping);
      // All who multiply together get one answer.
      if (&op == softmax)
        some = AnyNegativeOp::create(b, loc, b.getI1Type(),
                                     mapping.lookup(softmax.getNewMax()));
    }
    SmallVector<Value> yields{
        some,
        arith::AddIOp::create(b, loc, after->getArgument(0), loop.getStep())};
    for (Value value : loop.getYieldedValues())
      yields.push_back(mapping.lookupOrDefault(value));
    scf::YieldOp::create(b, loc, yields);
    return first;
  }

  void runOnOperation() override {
    gpu::GPUFuncOp kernel = getOperation();
    std::optional<TargetInfo> target = targetOf(kernel);
    if (!target || !target->integerMaxima)
      return;
    // Elsewhere warps that share slots meet in such loops.
    SmallVector<scf::ForOp> loops;
    kernel.walk([&](TeamOp team) {
      team.getBody().walk([&](scf::ForOp loop) {
        if (!loop.getBody()->getOps<MmaStartOp>().empty() &&
            !loop->hasAttr(KVBufferDialect::kEdgeTilesAttr))
          loops.push_back(loop);
      });
    });
    IRRewriter b(&getContext());
    for (scf::ForOp loop : loops) {
      OnlineSoftmaxOp softmax = findSoftmax(loop);
      if (!softmax)
        continue;
      b.setInsertionPoint(loop);
      scf::WhileOp first = whileNegative(b, loop, softmax);
      b.modifyOpInPlace(loop, [&] {
        loop.getLowerBoundMutable().assign(first.getResult(0));
        loop.getInitArgsMutable().assign(first.getResults().drop_front());
        softmax.setNotNegative(true);
      });
      remark::passed(loop.getLoc(),
                     remark::RemarkOpts::name("maxima").category(DEBUG_TYPE))
          << "maxima are compared as integers once no row's is negative";
    }
  }
};
} // namespace
