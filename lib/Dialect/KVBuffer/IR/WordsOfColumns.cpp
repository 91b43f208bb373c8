//===- WordsOfColumns.cpp - What regions read by columns alone ------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/IR/WordsOfColumns.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace kvbuf;

/// Whether all that is asked of an integer is whether it is equal to another.
static bool isComparedAlone(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    using Predicate = arith::CmpIPredicate;
    if (auto compare = dyn_cast<arith::CmpIOp>(user))
      return compare.getPredicate() == Predicate::eq ||
             compare.getPredicate() == Predicate::ne;
    return isa<arith::IndexCastOp, arith::ExtSIOp, arith::ExtUIOp>(user) &&
           isComparedAlone(user->getResult(0));
  });
}

SmallVector<memref::LoadOp>
kvbuf::comparedWordsOf(Value column,
                       function_ref<bool(Operation *)> isOfColumnAlone) {
  SmallVector<memref::LoadOp> loads;
  llvm::SetVector<Operation *> followers(column.getUsers().begin(),
                                         column.getUsers().end());
  for (size_t i = 0; i < followers.size(); ++i) {
    Operation *op = followers[i];
    if (op->getBlock() != column.getParentBlock() || op->getNumRegions() ||
        op->getNumResults() != 1 || !isOfColumnAlone(op))
      return {};
    if (auto load = dyn_cast<memref::LoadOp>(op)) {
      if (!load.getType().isInteger() || !isComparedAlone(load.getResult()))
        return {};
      loads.push_back(load);
      continue;
    }
    // On the way to a load are places alone.
    if (!isPure(op) || !op->getResult(0).getType().isIntOrIndex() ||
        op->getResult(0).getType().isInteger(1))
      return {};
    followers.insert(op->user_begin(), op->user_end());
  }
  return loads;
}

/// Whether a value of a map's region follows from a coordinate.
static bool followsFrom(Value value, BlockArgument coordinate) {
  llvm::SmallPtrSet<Operation *, 8> followers;
  for (Operation &inner : coordinate.getOwner()->without_terminator()) {
    auto follows = [&](Value operand) {
      return operand == coordinate ||
             followers.contains(operand.getDefiningOp());
    };
    bool isOne = inner
                     .walk([&](Operation *nested) {
                       return llvm::any_of(nested->getOperands(), follows)
                                  ? WalkResult::interrupt()
                                  : WalkResult::advance();
                     })
                     .wasInterrupted();
    if (isOne)
      followers.insert(&inner);
  }
  return value == coordinate || followers.contains(value.getDefiningOp());
}

bool kvbuf::hidesByWords(MapOp map) {
  Block &body = map.getBody().front();
  unsigned inputs = map.getInputs().size();
  llvm::SetVector<Operation *> ofElements, ofOthers;
  for (BlockArgument input : body.getArguments().take_front(inputs))
    getForwardSlice(input, &ofElements);
  for (BlockArgument other : body.getArguments().take_front(inputs + 1))
    getForwardSlice(other, &ofOthers);
  auto select = cast<YieldOp>(body.getTerminator())
                    .getValue()
                    .getDefiningOp<arith::SelectOp>();
  Operation *condition = select && select->getBlock() == &body
                             ? select.getCondition().getDefiningOp()
                             : nullptr;
  return condition && !ofElements.contains(condition) &&
         matchPattern(select.getFalseValue(), m_Constant()) &&
         !followsFrom(select.getTrueValue(), body.getArgument(inputs + 1)) &&
         !comparedWordsOf(body.getArgument(inputs + 1), [&](Operation *inner) {
            return !ofOthers.contains(inner);
          }).empty();
}
