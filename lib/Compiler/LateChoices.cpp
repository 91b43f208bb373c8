//===- LateChoices.cpp - Conditions of choices, made late -----------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A function that hides scores compares numbers of rows and keys that are there
// before the scores are. LLVM's scheduler makes all comparisons of a tile while
// the matrix unit is at work, and then has no registers for what is true of
// which lane. Here an operand of each goes through an empty assembly statement
// that takes the score, too. Each choice has comparisons of its own then.
//
//===----------------------------------------------------------------------===//

#include "LateChoices.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"

using namespace llvm;

/// Choices of a block from which on answers are too many to be held.
static constexpr unsigned kManyChoices = 16;

/// How many answers one choice may follow from.
static constexpr unsigned kDeepest = 8;

namespace {
/// The condition of a choice, made anew in front of it.
class LateCondition {
public:
  LateCondition(SelectInst &choice, Value *number)
      : choice(choice), number(number), b(&choice) {}

  /// `condition` of comparisons that wait for the number chosen; itself where
  /// it is of none.
  Value *make(Value *condition, unsigned depth = 0);

private:
  /// `value`, there once the number is.
  Value *behindNumber(Value *value);

  SelectInst &choice;
  Value *number;
  IRBuilder<> b;
};
} // namespace

Value *LateCondition::behindNumber(Value *value) {
  auto *type = FunctionType::get(value->getType(),
                                 {value->getType(), number->getType()}, false);
  return b.CreateCall(
      type, InlineAsm::get(type, "", "=v,0,v", /*hasSideEffects=*/false),
      {value, number});
}

Value *LateCondition::make(Value *condition, unsigned depth) {
  auto *made = dyn_cast<Instruction>(condition);
  if (!made || made->getParent() != choice.getParent() || depth == kDeepest)
    return condition;
  if (auto *compare = dyn_cast<ICmpInst>(made)) {
    Value *x = compare->getOperand(0), *y = compare->getOperand(1);
    if (!x->getType()->isIntegerTy(32))
      return condition;
    Value *&operand = isa<Constant>(x) ? y : x;
    operand = behindNumber(operand);
    return b.CreateICmp(compare->getPredicate(), x, y);
  }
  if (auto *logic = dyn_cast<BinaryOperator>(made);
      logic && logic->getType()->isIntegerTy(1)) {
    Value *x = make(logic->getOperand(0), depth + 1),
          *y = make(logic->getOperand(1), depth + 1);
    if (x == logic->getOperand(0) && y == logic->getOperand(1))
      return condition;
    return b.CreateBinOp(logic->getOpcode(), x, y);
  }
  return condition;
}

/// The number that a choice takes, or a constant in its place; null where it is
/// another choice.
static Value *numberOf(SelectInst &choice) {
  Value *x = choice.getTrueValue(), *y = choice.getFalseValue();
  if (!choice.getType()->isFloatTy() || isa<Constant>(x) == isa<Constant>(y))
    return nullptr;
  return isa<Constant>(x) ? y : x;
}

bool kvbuf::compareLate(Function &kernel, bool inLoops) {
  if (kernel.getCallingConv() != CallingConv::AMDGPU_KERNEL)
    return false;
  DominatorTree tree(kernel);
  LoopInfo loops(tree);
  bool changed = false;
  for (BasicBlock &block : kernel) {
    if (!inLoops && loops.getLoopFor(&block))
      continue;
    SmallVector<SelectInst *> choices;
    for (Instruction &op : block)
      if (auto *choice = dyn_cast<SelectInst>(&op); choice && numberOf(*choice))
        choices.push_back(choice);
    if (choices.size() < kManyChoices)
      continue;
    for (SelectInst *choice : choices) {
      Value *late = LateCondition(*choice, numberOf(*choice))
                        .make(choice->getCondition());
      changed |= late != choice->getCondition();
      choice->setCondition(late);
    }
  }
  return changed;
}
