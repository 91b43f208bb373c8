//===- LoopParts.cpp - Parts of a loop over tiles ---------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopParts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace kvbuf;

bool kvbuf::collectSlice(Value value, scf::ForOp loop, OpSlice &slice,
                         Value allowed) {
  if (auto arg = dyn_cast<BlockArgument>(value))
    return arg.getOwner() != loop.getBody() || arg == loop.getInductionVar() ||
           arg == allowed;
  Operation *op = loop.getBody()->findAncestorOpInBlock(*value.getDefiningOp());
  if (!op || slice.contains(op))
    return true;
  // What ops inside of its regions use counts too.
  bool independent = true;
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (operand.getParentRegion() == &loop.getRegion())
        independent &= collectSlice(operand, loop, slice, allowed);
  });
  slice.insert(op);
  return independent;
}

Operation *kvbuf::cloneWithOperands(OpBuilder &b, scf::ForOp loop,
                                    Operation *op, IRMapping &mapping) {
  // What ops inside of its regions use counts too.
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (Operation *def = operand.getDefiningOp())
        if (def->getBlock() == loop.getBody() && !mapping.contains(operand))
          cloneWithOperands(b, loop, def, mapping);
  });
  return b.clone(*op, mapping);
}

OffsetIndex kvbuf::stripOffset(Value index) {
  OffsetIndex result{index};
  while (true) {
    if (std::optional<int64_t> constant = getConstantIntValue(result.base))
      return {Value(), result.offset + *constant};
    if (auto add = result.base.getDefiningOp<arith::AddIOp>()) {
      Value left = add.getLhs(), right = add.getRhs();
      if (getConstantIntValue(left))
        std::swap(left, right);
      if (std::optional<int64_t> constant = getConstantIntValue(right)) {
        result = {left, result.offset + *constant};
        continue;
      }
    }
    if (auto sub = result.base.getDefiningOp<arith::SubIOp>())
      if (std::optional<int64_t> constant = getConstantIntValue(sub.getRhs())) {
        result = {sub.getLhs(), result.offset - *constant};
        continue;
      }
    return result;
  }
}

std::optional<OffsetIndex> kvbuf::slotNumber(DramLoadOp load) {
  int64_t count = load.getBuffer().getType().getParams().getStages();
  if (count == 1)
    return OffsetIndex{};
  if (!load.getSlot())
    return std::nullopt;
  if (std::optional<int64_t> constant = getConstantIntValue(load.getSlot()))
    return OffsetIndex{Value(), *constant};
  auto remainder = load.getSlot().getDefiningOp<arith::RemUIOp>();
  if (!remainder || getConstantIntValue(remainder.getRhs()) != count)
    return std::nullopt;
  return stripOffset(remainder.getLhs());
}

bool kvbuf::loadsInto(Operation *op, Value buffer) {
  return op
      ->walk([&](DramLoadOp load) {
        return load.getBuffer() == buffer ? WalkResult::interrupt()
                                          : WalkResult::advance();
      })
      .wasInterrupted();
}

bool kvbuf::fillsInTurn(DramLoadOp load, scf::ForOp loop) {
  if (!load.getSlot())
    return true;
  std::optional<OffsetIndex> number = slotNumber(load);
  return number && number->base == loop.getInductionVar();
}

std::optional<int64_t> kvbuf::fillingsSince(DramLoadOp before,
                                            DramLoadOp load) {
  auto loop = cast<scf::ForOp>(load->getParentOp());
  if (load.getSlot() && before.getSlot()) {
    std::optional<OffsetIndex> mine = slotNumber(load),
                               its = slotNumber(before);
    OffsetIndex first = stripOffset(loop.getLowerBound());
    if (!mine || !its || first.base != its->base)
      return std::nullopt;
    return first.offset + mine->offset - its->offset;
  }
  if (load.getSlot() || before.getSlot())
    return std::nullopt;
  // All loads in between run once, as the one before does.
  int64_t fillings = 1;
  for (Operation *at = loop; at->getBlock(); at = at->getParentOp()) {
    for (Operation *op = at->getPrevNode(); op; op = op->getPrevNode()) {
      if (op == before)
        return fillings;
      if (!loadsInto(op, load.getBuffer()))
        continue;
      if (!isa<DramLoadOp>(op))
        return std::nullopt;
      ++fillings;
    }
    if (!isa<scf::IfOp>(at->getParentOp()))
      return std::nullopt;
  }
  return std::nullopt;
}

bool kvbuf::isNextFilling(DramLoadOp load, DramLoadOp after, scf::ForOp loop) {
  if (load.getSlot() && after.getSlot())
    return isNextIteration(load.getSlot(), after.getSlot(), loop);
  if (load.getSlot() || after.getSlot())
    return false;
  for (Operation *op = loop->getNextNode(); op != after; op = op->getNextNode())
    if (loadsInto(op, load.getBuffer()))
      return false;
  return true;
}

bool kvbuf::isNextIteration(Value inside, Value outside, scf::ForOp loop) {
  if (inside == loop.getInductionVar())
    return outside == loop.getUpperBound();
  if (loop.isDefinedOutsideOfLoop(inside))
    return inside == outside;
  auto from = dyn_cast<OpResult>(inside), to = dyn_cast<OpResult>(outside);
  // What the loop carries is another value in the next iteration.
  if (!from || !to || from.getResultNumber() != to.getResultNumber())
    return false;
  Operation *a = from.getOwner(), *b = to.getOwner();
  return a->getBlock() == loop.getBody() && a->getName() == b->getName() &&
         a->getResultTypes() == b->getResultTypes() &&
         a->getAttrDictionary() == b->getAttrDictionary() &&
         !a->getNumRegions() && !b->getNumRegions() &&
         a->getNumOperands() == b->getNumOperands() &&
         llvm::all_of(llvm::zip_equal(a->getOperands(), b->getOperands()),
                      [&](auto operands) {
                        auto [x, y] = operands;
                        return isNextIteration(x, y, loop);
                      });
}

static bool followsFrom(Value value, Operation *op,
                        llvm::DenseSet<Value> &seen) {
  if (!seen.insert(value).second)
    return false;
  auto any = [&](ValueRange values) {
    return llvm::any_of(
        values, [&](Value other) { return followsFrom(other, op, seen); });
  };
  auto anyYielded = [&](Region &region, unsigned i) {
    return !region.empty() &&
           any(region.front().getTerminator()->getOperand(i));
  };
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    unsigned i = argument.getArgNumber();
    Operation *parent = argument.getOwner()->getParentOp();
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      return i == 0 ? any({loop.getLowerBound(), loop.getUpperBound()})
                    : any(loop.getInitArgs()[i - 1]) ||
                          anyYielded(loop.getRegion(), i - 1);
    if (auto loop = dyn_cast<scf::WhileOp>(parent))
      return argument.getOwner() == loop.getBeforeBody()
                 ? any(loop.getInits()[i]) || anyYielded(loop.getAfter(), i)
                 : any(loop.getConditionOp().getArgs()[i]);
    return false;
  }
  Operation *def = value.getDefiningOp();
  unsigned i = cast<OpResult>(value).getResultNumber();
  if (def == op)
    return true;
  if (auto branch = dyn_cast<scf::IfOp>(def))
    return anyYielded(branch.getThenRegion(), i) ||
           anyYielded(branch.getElseRegion(), i);
  if (auto loop = dyn_cast<scf::ForOp>(def))
    return any(loop.getInitArgs()[i]) || anyYielded(loop.getRegion(), i);
  if (auto loop = dyn_cast<scf::WhileOp>(def))
    return any(loop.getConditionOp().getArgs()[i]);
  return any(def->getOperands());
}

bool kvbuf::followsFrom(Value value, Operation *op) {
  llvm::DenseSet<Value> seen;
  return ::followsFrom(value, op, seen);
}

bool kvbuf::isOfRange(Value value, MaskOp mask) {
  bool found = false;
  mask->getParentOfType<FunctionOpInterface>()->walk([&](KeyRangeOp range) {
    found |= range.getMask() == mask.getMask() &&
             range.getKeys() == mask.getKeys() &&
             range.getQueries() == mask.getQueries() &&
             range.getGroup() == mask.getGroup() && followsFrom(value, range);
  });
  return found;
}
