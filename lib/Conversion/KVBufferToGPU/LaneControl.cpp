//===- LaneControl.cpp - Loops and branches ---------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaneControl.h"

using namespace mlir;
using namespace kvbuf;

// In kernels with rings, indices pass through loops and branches as i32.

/// The types of a value's lanes there.
static void narrowTypes(LaneContext &lanes, Type type,
                        SmallVectorImpl<Type> &types) {
  ImplicitLocOpBuilder &b = lanes.builder();
  if (lanes.hasRings() && type.isIndex())
    types.push_back(b.getI32Type());
  else
    lanes.laneTypes(type, types);
}

/// Whether a loop's argument is a softmax's running sum that stays in LDS.
static bool staysInLds(LaneContext &lanes, scf::ForOp loop, unsigned index) {
  if (!lanes.ownSchedule().getSumsInLds())
    return false;
  Value arg = loop.getRegionIterArg(index);
  auto softmax =
      loop.getYieldedValues()[index].getDefiningOp<OnlineSoftmaxOp>();
  return softmax && softmax.getSum() == arg && arg.hasOneUse() &&
         softmax.getNewSum() == loop.getYieldedValues()[index] &&
         softmax->getParentOp() == loop;
}

/// Values on their way in.
static Values narrowed(LaneContext &lanes, Values values) {
  if (lanes.hasRings())
    for (Value &value : values)
      if (value.getType().isIndex())
        value = lanes.toI32(value);
  return values;
}

/// Values that come out.
static void setWidened(LaneContext &lanes, Value value, ValueRange from) {
  Values values(from.begin(), from.end());
  if (lanes.hasRings() && value.getType().isIndex())
    values = {lanes.toIndex(values.front())};
  lanes.setLanes(value, values);
}

LogicalResult kvbuf::lowerOp(LaneContext &lower, scf::ForOp op) {
  ImplicitLocOpBuilder &b = lower.builder();
  Values inits;
  SmallVector<unsigned> counts;
  for (auto [i, init] : llvm::enumerate(op.getInitArgs())) {
    if (staysInLds(lower, op, i)) {
      // Each thread reads and writes its own slot: no barrier is needed.
      lower.keepInLds(init, {op.getRegionIterArg(i), op.getResult(i)});
      counts.push_back(0);
      continue;
    }
    Values values = lower.lanesOf(init);
    llvm::append_range(inits, values);
    counts.push_back(values.size());
  }
  bool narrow = lower.hasRings();
  auto bound = [&](Value value) {
    return narrow ? lower.toI32(lower.single(value)) : lower.single(value);
  };
  auto loop = scf::ForOp::create(b, bound(op.getLowerBound()),
                                 bound(op.getUpperBound()), bound(op.getStep()),
                                 narrowed(lower, inits));
  loop.setUnsignedCmp(op.getUnsignedCmp());
  auto regroup = [&](ValueRange from, auto &&to) {
    unsigned next = 0;
    for (auto [i, count] : llvm::enumerate(counts)) {
      to(i, from.slice(next, count));
      next += count;
    }
  };
  {
    OpBuilder::InsertionGuard guard(b);
    if (!loop.getBody()->empty())
      loop.getBody()->getTerminator()->erase();
    b.setInsertionPointToEnd(loop.getBody());
    Value induction = loop.getInductionVar();
    lower.setLanes(op.getInductionVar(),
                   {narrow ? lower.toIndex(induction) : induction});
    regroup(loop.getRegionIterArgs(), [&](unsigned i, ValueRange v) {
      setWidened(lower, op.getRegionIterArg(i), v);
    });
    if (failed(lower.lowerBody(*op.getBody())))
      return failure();
    Values yields;
    for (auto [value, count] :
         llvm::zip_equal(op.getBody()->getTerminator()->getOperands(), counts))
      if (count)
        llvm::append_range(yields, lower.lanesOf(value));
    lower.endIteration(op);
    scf::YieldOp::create(b, narrowed(lower, yields));
  }
  regroup(loop.getResults(), [&](unsigned i, ValueRange v) {
    setWidened(lower, op.getResult(i), v);
  });
  return success();
}

LogicalResult kvbuf::lowerOp(LaneContext &lower, scf::IfOp op) {
  ImplicitLocOpBuilder &b = lower.builder();
  SmallVector<Type> types;
  SmallVector<unsigned> counts;
  for (Type type : op.getResultTypes()) {
    unsigned before = types.size();
    narrowTypes(lower, type, types);
    counts.push_back(types.size() - before);
  }
  bool hasElse = !op.getElseRegion().empty();
  auto ifOp =
      scf::IfOp::create(b, types, lower.single(op.getCondition()),
                        /*addThenBlock=*/true, /*addElseBlock=*/hasElse);
  auto lowerSide = [&](Block *from, Block *to) {
    OpBuilder::InsertionGuard guard(b);
    if (!to->empty())
      to->getTerminator()->erase();
    b.setInsertionPointToEnd(to);
    if (failed(lower.lowerBody(*from)))
      return failure();
    Values yields;
    for (Value value : from->getTerminator()->getOperands())
      llvm::append_range(yields, lower.lanesOf(value));
    scf::YieldOp::create(b, narrowed(lower, yields));
    return success();
  };
  if (failed(lowerSide(op.thenBlock(), ifOp.thenBlock())))
    return failure();
  if (hasElse && failed(lowerSide(op.elseBlock(), ifOp.elseBlock())))
    return failure();
  unsigned next = 0;
  for (auto [result, count] : llvm::zip_equal(op.getResults(), counts)) {
    setWidened(lower, result, ifOp.getResults().slice(next, count));
    next += count;
  }
  return success();
}

LogicalResult kvbuf::lowerOp(LaneContext &lower, scf::WhileOp op) {
  ImplicitLocOpBuilder &b = lower.builder();
  // Lane values of a list of the loop's values, and back.
  auto typesOf = [&](TypeRange from, SmallVectorImpl<Type> &types,
                     SmallVectorImpl<unsigned> &counts) {
    for (Type type : from) {
      unsigned before = types.size();
      narrowTypes(lower, type, types);
      counts.push_back(types.size() - before);
    }
  };
  auto regroup = [&](ValueRange values, ArrayRef<unsigned> counts,
                     ValueRange to) {
    unsigned next = 0;
    for (auto [value, count] : llvm::zip_equal(to, counts)) {
      auto part = values.slice(next, count);
      // Loops of consumers are the same for all lanes: said so, numbers stay in
      // the scalar unit.
      if (count == 1 && part[0].getType().isInteger(32) &&
          lower.takesFromRings())
        setWidened(lower, value, lower.uniform(part[0]));
      else
        setWidened(lower, value, part);
      next += count;
    }
  };
  auto flatten = [&](ValueRange values) {
    Values flat;
    for (Value value : values)
      llvm::append_range(flat, lower.lanesOf(value));
    return narrowed(lower, flat);
  };
  SmallVector<Type> beforeTypes, afterTypes;
  SmallVector<unsigned> beforeCounts, afterCounts;
  typesOf(op.getInits().getTypes(), beforeTypes, beforeCounts);
  typesOf(op.getResultTypes(), afterTypes, afterCounts);
  auto loop = scf::WhileOp::create(b, afterTypes, flatten(op.getInits()));
  {
    OpBuilder::InsertionGuard guard(b);
    Location loc = op.getLoc();
    Block *before =
        b.createBlock(&loop.getBefore(), {}, beforeTypes,
                      SmallVector<Location>(beforeTypes.size(), loc));
    regroup(before->getArguments(), beforeCounts, op.getBeforeArguments());
    if (failed(lower.lowerBody(*op.getBeforeBody())))
      return failure();
    scf::ConditionOp condition = op.getConditionOp();
    scf::ConditionOp::create(b, lower.single(condition.getCondition()),
                             flatten(condition.getArgs()));
    Block *after = b.createBlock(&loop.getAfter(), {}, afterTypes,
                                 SmallVector<Location>(afterTypes.size(), loc));
    regroup(after->getArguments(), afterCounts, op.getAfterArguments());
    if (failed(lower.lowerBody(*op.getAfterBody())))
      return failure();
    scf::YieldOp::create(b, flatten(op.getYieldOp().getOperands()));
  }
  regroup(loop.getResults(), afterCounts, op.getResults());
  return success();
}
