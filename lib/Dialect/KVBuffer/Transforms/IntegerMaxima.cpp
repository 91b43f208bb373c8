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

/// A softmax of a loop, and the number of the carried value that is its
/// maximum.
struct Carried {
  OnlineSoftmaxOp softmax;
  unsigned index;
};

/// The only softmax of a loop's body, if it finds the maximum that the loop
/// carries among scores that are all there.
std::optional<Carried> findCarried(scf::ForOp loop) {
  auto all = loop.getBody()->getOps<OnlineSoftmaxOp>();
  if (!llvm::hasSingleElement(all))
    return std::nullopt;
  OnlineSoftmaxOp softmax = *all.begin();
  // Capped scores are looked at ahead of being capped.
  if (softmax.getMasked() || softmax.getRowMax() || softmax.getNotNegative() ||
      softmax.getScores().getDefiningOp<SoftcapOp>())
    return std::nullopt;
  auto max = dyn_cast<BlockArgument>(softmax.getMax());
  if (!max || max.getOwner() != loop.getBody() ||
      max == loop.getInductionVar() ||
      loop.getTiedLoopYieldedValue(max)->get() != softmax.getNewMax())
    return std::nullopt;
  return Carried{softmax,
                 max.getArgNumber() - unsigned(loop.getNumInductionVars())};
}

struct IntegerMaximaPass : kvbuf::impl::IntegerMaximaBase<IntegerMaximaPass> {
  using Base::Base;

  /// The iterations up to the first that finds no negative maximum; yields the
  /// number of that one, and what it starts with.
  static scf::WhileOp whileNegative(IRRewriter &b, scf::ForOp loop,
                                    unsigned index) {
    Location loc = loop.getLoc();
    SmallVector<Value> inits{loop.getLowerBound()};
    llvm::append_range(inits, loop.getInitArgs());
    SmallVector<Type> types(ValueRange(inits).getTypes());
    SmallVector<Location> places(types.size(), loc);
    auto first = scf::WhileOp::create(b, loc, types, inits);
    OpBuilder::InsertionGuard guard(b);
    Block *before = b.createBlock(&first.getBefore(), {}, types, places);
    ValueRange values = before->getArguments();
    // The same for all who multiply together, so all of them ask.
    Value some =
        AnyNegativeOp::create(b, loc, b.getI1Type(), values[1 + index]);
    Value more = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                       values[0], loop.getUpperBound());
    scf::ConditionOp::create(b, loc, arith::AndIOp::create(b, loc, more, some),
                             values);
    Block *after = b.createBlock(&first.getAfter(), {}, types, places);
    IRMapping mapping;
    mapping.map(loop.getBody()->getArguments(), after->getArguments());
    for (Operation &op : loop.getBody()->without_terminator())
      b.clone(op, mapping);
    SmallVector<Value> yields{
        arith::AddIOp::create(b, loc, after->getArgument(0), loop.getStep())};
    for (Value value : loop.getYieldedValues())
      yields.push_back(mapping.lookupOrDefault(value));
    scf::YieldOp::create(b, loc, yields);
    return first;
  }

  void runOnOperation() override {
    gpu::GPUFuncOp kernel = getOperation();
    auto module = kernel->getParentOfType<ModuleOp>();
    auto chip =
        module ? module->getAttrOfType<StringAttr>(KVBufferDialect::kTargetAttr)
               : StringAttr();
    std::optional<TargetInfo> target =
        chip ? lookupTarget(chip.getValue()) : std::nullopt;
    if (!target || !target->integerMaxima)
      return;
    // Elsewhere warps that share slots meet in such loops.
    SmallVector<scf::ForOp> loops;
    kernel.walk([&](WarpRolesOp roles) {
      roles.getConsumers().walk([&](scf::ForOp loop) {
        if (!loop.getBody()->getOps<MmaStartOp>().empty())
          loops.push_back(loop);
      });
    });
    IRRewriter b(&getContext());
    for (scf::ForOp loop : loops) {
      std::optional<Carried> found = findCarried(loop);
      if (!found)
        continue;
      b.setInsertionPoint(loop);
      scf::WhileOp first = whileNegative(b, loop, found->index);
      b.modifyOpInPlace(loop, [&] {
        loop.getLowerBoundMutable().assign(first.getResult(0));
        loop.getInitArgsMutable().assign(first.getResults().drop_front());
        found->softmax.setNotNegative(true);
      });
      remark::passed(loop.getLoc(),
                     remark::RemarkOpts::name("maxima").category(DEBUG_TYPE))
          << "maxima are compared as integers once no row's is negative";
    }
  }
};
} // namespace
