//===- FragmentSources.cpp - Where a fragment comes from ------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/IR/FragmentSources.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace kvbuf;

namespace {

/// Values to look at, each once; those that a verifier finds missing are left
/// out.
struct Worklist {
  llvm::SmallSetVector<Value, 8> values;

  /// The operand `index` of `op`.
  void addOperand(Operation *op, unsigned index) {
    if (op && index < op->getNumOperands())
      values.insert(op->getOperand(index));
  }
  /// What the region's last op hands on as operand `index`.
  void addYielded(Region &region, unsigned index) {
    if (!region.empty() && !region.front().empty())
      addOperand(&region.front().back(), index);
  }
};

} // namespace

/// Adds what `value` comes from; false if it is a source itself.
static bool addPredecessors(Value value, Worklist &list) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    unsigned number = argument.getArgNumber();
    Operation *parent = argument.getOwner()->getParentOp();
    if (auto loop = dyn_cast_or_null<scf::ForOp>(parent)) {
      unsigned induction = loop.getNumInductionVars();
      if (number < induction)
        return false;
      list.addOperand(loop, loop.getNumControlOperands() + number - induction);
      list.addYielded(loop.getRegion(), number - induction);
      return true;
    }
    if (auto loop = dyn_cast_or_null<scf::WhileOp>(parent)) {
      if (argument.getOwner()->getParent() == &loop.getBefore()) {
        list.addOperand(loop, number);
        list.addYielded(loop.getAfter(), number);
      } else {
        // After the condition itself.
        list.addYielded(loop.getBefore(), number + 1);
      }
      return true;
    }
    return false;
  }
  unsigned number = cast<OpResult>(value).getResultNumber();
  Operation *op = value.getDefiningOp();
  if (auto slice = dyn_cast<FragmentSliceOp>(op)) {
    list.values.insert(slice.getSource());
    return true;
  }
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    list.values.insert(select.getTrueValue());
    list.values.insert(select.getFalseValue());
    return true;
  }
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    list.addYielded(branch.getThenRegion(), number);
    list.addYielded(branch.getElseRegion(), number);
    return true;
  }
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    list.addOperand(loop, loop.getNumControlOperands() + number);
    list.addYielded(loop.getRegion(), number);
    return true;
  }
  if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    list.addYielded(loop.getBefore(), number + 1);
    return true;
  }
  return false;
}

SmallVector<Value> kvbuf::fragmentSources(Value fragment) {
  Worklist list;
  list.values.insert(fragment);
  SmallVector<Value> sources;
  // The list grows while it is walked.
  for (unsigned i = 0; i < list.values.size(); ++i)
    if (Value value = list.values[i]; !addPredecessors(value, list))
      sources.push_back(value);
  return sources;
}

Value kvbuf::slotOfView(Value staged) {
  while (isa_and_nonnull<StagedViewOp, StagedFitOp>(staged.getDefiningOp()))
    staged = staged.getDefiningOp()->getOperand(0);
  return staged;
}

bool kvbuf::isTurned(Value fragment) {
  if (cast<FragmentType>(fragment.getType()).getRole() != Role::B)
    return false;
  return llvm::any_of(fragmentSources(fragment), [](Value source) {
    auto load = source.getDefiningOp<FragmentLoadOp>();
    return load && !load.contractsRows();
  });
}

bool kvbuf::beginsProduct(MapOp map) {
  Value value = map.getResult();
  while (value.hasOneUse()) {
    OpOperand &use = *value.use_begin();
    if (auto product = dyn_cast<MmaOp>(use.getOwner()))
      return product.getAcc() == value;
    auto branch = dyn_cast<scf::IfOp>(use.getOwner()->getParentOp());
    if (!isa<scf::YieldOp>(use.getOwner()) || !branch)
      return false;
    value = branch.getResult(use.getOperandNumber());
  }
  return false;
}
