//===- SumsOfLanes.cpp - Sums of lanes' numbers with a loop's ---*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where a tile begins in a page is the same for all lanes, and scalar units
// find it out: a remainder, times a constant. A lane adds it to what its own
// row is. LLVM's reduction of strength multiplies the remainder out and finds a
// number that grows by the same in each iteration; it takes the lane's part to
// that one, so that two vector instructions an iteration stand for one. Of a
// product that comes out of an empty assembly statement it sees nothing that
// grows.
//
//===----------------------------------------------------------------------===//

#include "SumsOfLanes.h"
#include "LoopRegions.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

bool kvbuf::addProductsByScalars(Function &kernel, TargetMachine &machine) {
  if (kernel.getCallingConv() != CallingConv::AMDGPU_KERNEL)
    return false;
  LoopRegions regions(kernel);
  if (regions.large().empty())
    return false;
  LanesInCommon lanes(kernel, machine);
  SmallVector<Use *> products;
  for (Loop *loop : regions.large())
    for (BasicBlock *block : loop->blocks())
      for (Instruction &op : *block) {
        if (op.getOpcode() != Instruction::Add ||
            !op.getType()->isIntegerTy(32) || !lanes.differ(&op))
          continue;
        for (Use &use : op.operands()) {
          Value *other = op.getOperand(1 - use.getOperandNo());
          auto *product = dyn_cast<Instruction>(use);
          if (product && loop->contains(product) &&
              match(product, m_Mul(m_Value(), m_ConstantInt())) &&
              !lanes.differ(product) && loop->isLoopInvariant(other))
            products.push_back(&use);
        }
      }
  for (Use *use : products) {
    Type *type = use->get()->getType();
    auto *form = FunctionType::get(type, {type}, /*isVarArg=*/false);
    IRBuilder<> b(cast<Instruction>(use->getUser()));
    use->set(b.CreateCall(
        form, InlineAsm::get(form, "", "=s,0", /*hasSideEffects=*/false),
        {use->get()}));
  }
  return !products.empty();
}
