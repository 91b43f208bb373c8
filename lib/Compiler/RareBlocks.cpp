//===- RareBlocks.cpp - What rare blocks compute ----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lanes that exchange values compute each other's numbers from their own, which
// takes no register to begin with: the hardware counts the lanes below. LLVM
// moves all of this out of the loop, also from blocks that are seldom executed,
// and then holds a register through the loop for each exchange. So such a block
// counts by a mask that comes out of an empty assembly statement.
//
//===----------------------------------------------------------------------===//

#include "RareBlocks.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/ProfDataUtils.h"

using namespace llvm;

/// A block is rare if the other side of its branch weighs so many times more.
static constexpr uint64_t kRare = 100;

bool kvbuf::isRareBlock(const BasicBlock &block) {
  const BasicBlock *before = block.getSinglePredecessor();
  auto *branch =
      before ? dyn_cast<BranchInst>(before->getTerminator()) : nullptr;
  uint64_t taken, other;
  if (!branch || !branch->isConditional() ||
      !extractBranchWeights(*branch, taken, other))
    return false;
  if (branch->getSuccessor(0) != &block)
    std::swap(taken, other);
  return taken * kRare <= other;
}

void kvbuf::keepRareBlocksApart(Function &kernel) {
  if (kernel.getCallingConv() != CallingConv::AMDGPU_KERNEL)
    return;
  DominatorTree tree(kernel);
  LoopInfo loops(tree);
  for (BasicBlock &block : kernel) {
    if (!loops.getLoopFor(&block) || !isRareBlock(block))
      continue;
    for (Instruction &op : block) {
      auto *count = dyn_cast<IntrinsicInst>(&op);
      if (!count || count->getIntrinsicID() != Intrinsic::amdgcn_mbcnt_lo ||
          !isa<Constant>(count->getArgOperand(0)))
        continue;
      IRBuilder<> b(count);
      Value *mask = count->getArgOperand(0);
      auto *type = FunctionType::get(mask->getType(), {mask->getType()}, false);
      count->setArgOperand(0,
                           b.CreateCall(type,
                                        InlineAsm::get(type, "", "=s,0",
                                                       /*hasSideEffects=*/true),
                                        {mask}));
    }
  }
}
