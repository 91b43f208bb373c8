//===- VectorFactors.cpp - Factors of many constants ------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A function of scores may multiply a number of the head by each key's place in
// its tile. What all lanes have LLVM keeps in a scalar register, and a
// multiply-add takes either that or a constant: each constant is moved into a
// register first, in the loop where there are too few. Of a number in a vector
// register it takes the constant at once. LLVM does not see through an empty
// assembly statement that the lanes' numbers are one.
//
//===----------------------------------------------------------------------===//

#include "VectorFactors.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

/// Constants from which on a number's register pays.
static constexpr unsigned kMany = 8;

/// The operand that a multiply-add of f32 multiplies a constant by; null if it
/// multiplies none.
static Use *factorOfConstant(Instruction &op) {
  auto *fma = dyn_cast<IntrinsicInst>(&op);
  if (!fma || !fma->getType()->isFloatTy() ||
      (fma->getIntrinsicID() != Intrinsic::fma &&
       fma->getIntrinsicID() != Intrinsic::fmuladd))
    return nullptr;
  bool first = isa<ConstantFP>(fma->getArgOperand(0)),
       second = isa<ConstantFP>(fma->getArgOperand(1));
  return first == second ? nullptr : &fma->getArgOperandUse(first ? 1 : 0);
}

void kvbuf::holdFactorsByLane(Function &kernel) {
  if (kernel.getCallingConv() != CallingConv::AMDGPU_KERNEL)
    return;
  DominatorTree tree(kernel);
  LoopInfo loops(tree);
  MapVector<Value *, SmallVector<Use *>> uses;
  for (Instruction &op : instructions(kernel)) {
    Use *factor = factorOfConstant(op);
    auto *made = factor ? dyn_cast<Instruction>(*factor) : nullptr;
    Loop *loop = loops.getLoopFor(op.getParent());
    if (made && loop && !loops.getLoopFor(made->getParent()))
      uses[made].push_back(factor);
  }
  for (auto &[factor, of] : uses) {
    SmallPtrSet<Value *, 32> constants;
    for (Use *use : of)
      for (Value *operand : cast<CallBase>(use->getUser())->args())
        if (isa<ConstantFP>(operand))
          constants.insert(operand);
    std::optional<BasicBlock::iterator> behind =
        cast<Instruction>(factor)->getInsertionPointAfterDef();
    if (constants.size() < kMany || !behind)
      continue;
    IRBuilder<> b((*behind)->getParent(), *behind);
    Type *type = factor->getType();
    Value *held =
        b.CreateCall(FunctionType::get(type, {type}, false),
                     InlineAsm::get(FunctionType::get(type, {type}, false), "",
                                    "=v,0", /*hasSideEffects=*/false),
                     {factor});
    for (Use *use : of)
      use->set(held);
  }
}
