//===- CompareBySign.cpp - Order of 64-bit numbers --------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// CDNA's scalar units tell which of two 32-bit numbers is less, but not of two
// 64-bit ones, so that LLVM has the vector unit compare what all lanes agree
// on: a move and a comparison, in a loop whose vector instructions are counted.
// Here they subtract, and look at the difference's sign. What counts by ones
// meets its end, and is compared with that: scalar units tell whether 64-bit
// numbers are equal.
//
//===----------------------------------------------------------------------===//

#include "CompareBySign.h"
#include "LoopRegions.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

/// Whether `compare` says that a loop goes on whose number grows by one from
/// below the end: then the end comes before anything beyond.
static bool meetsItsEnd(ICmpInst *compare, Loop *loop) {
  BasicBlock *before = loop->getLoopPreheader();
  BasicBlock *guard = before ? before->getSinglePredecessor() : nullptr;
  Value *number = nullptr, *end = compare->getOperand(1);
  auto goesOn = [](BasicBlock *from, BasicBlock *to) -> BranchInst * {
    auto *branch = from ? dyn_cast<BranchInst>(from->getTerminator()) : nullptr;
    return branch && branch->isConditional() && branch->getSuccessor(0) == to
               ? branch
               : nullptr;
  };
  BranchInst *branch = goesOn(guard, before),
             *again = goesOn(loop->getLoopLatch(), loop->getHeader());
  if (!branch || !again || again->getCondition() != compare ||
      compare->getPredicate() != CmpInst::ICMP_SLT ||
      !match(compare->getOperand(0), m_Add(m_Value(number), m_One())))
    return false;
  auto *phi = dyn_cast<PHINode>(number);
  if (!phi || phi->getParent() != loop->getHeader() ||
      phi->getNumIncomingValues() != 2 ||
      phi->getIncomingValueForBlock(loop->getLoopLatch()) !=
          compare->getOperand(0))
    return false;
  Value *begin = phi->getIncomingValueForBlock(before);
  return match(
      branch->getCondition(),
      m_c_SpecificICmp(CmpInst::ICMP_SLT, m_Specific(begin), m_Specific(end)));
}

static void lookAtSign(ICmpInst *compare) {
  IRBuilder<> b(compare);
  auto upper = [&](Value *x) {
    return b.CreateTrunc(b.CreateLShr(x, 32), b.getInt32Ty());
  };
  // x < y, or what is not y < x.
  Value *x = compare->getOperand(0), *y = compare->getOperand(1);
  CmpInst::Predicate order = compare->getPredicate();
  if (order == CmpInst::ICMP_SGT || order == CmpInst::ICMP_SLE)
    std::swap(x, y);
  // The difference overflows where signs differ and its own is not x's: then
  // its sign is wrong.
  Value *difference = upper(b.CreateSub(x, y)), *high = upper(x);
  Value *overflows =
      b.CreateAnd(b.CreateXor(high, upper(y)), b.CreateXor(high, difference));
  Value *sign = b.CreateXor(difference, overflows);
  bool less = order == CmpInst::ICMP_SLT || order == CmpInst::ICMP_SGT;
  compare->replaceAllUsesWith(b.CreateICmp(
      less ? CmpInst::ICMP_SLT : CmpInst::ICMP_SGE, sign, b.getInt32(0)));
  compare->eraseFromParent();
}

bool kvbuf::compareBySign(Function &kernel, TargetMachine &machine) {
  if (kernel.getCallingConv() != CallingConv::AMDGPU_KERNEL)
    return false;
  LoopRegions regions(kernel);
  if (regions.large().empty())
    return false;
  LanesInCommon common(kernel, machine);
  SmallVector<ICmpInst *> found;
  for (Instruction &op : instructions(kernel)) {
    auto *compare = dyn_cast<ICmpInst>(&op);
    if (compare && compare->isSigned() &&
        compare->getOperand(0)->getType()->isIntegerTy(64) &&
        regions.largeLoopOf(compare->getParent()) && !common.differ(compare))
      found.push_back(compare);
  }
  for (ICmpInst *compare : found)
    if (meetsItsEnd(compare, regions.largeLoopOf(compare->getParent())))
      compare->setPredicate(CmpInst::ICMP_NE);
    else
      lookAtSign(compare);
  return !found.empty();
}
