//===- OwnLanes.cpp - What lanes compute around large loops -----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel's large loops, and what stands behind them, compute addresses, rows
// and columns of the same numbers of lanes. The backend computes what they have
// in common once, before the first loop, and then holds a vector register
// through it for each; where there are too few it spills them. So each part but
// the first has the number by an empty assembly statement, which the backend
// cannot look through: right before it is used, or before the loop.
//
//===----------------------------------------------------------------------===//

#include "OwnLanes.h"
#include "LoopRegions.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include <tuple>

using namespace llvm;
using namespace kvbuf;

bool kvbuf::computeOwnLanes(Function &kernel, TargetMachine &machine,
                            bool inLoops) {
  if (kernel.getCallingConv() != CallingConv::AMDGPU_KERNEL)
    return false;
  LoopRegions regions(kernel);
  LanesInCommon lanes(kernel, machine);
  // What is computed of a number that lanes differ in, and a constant.
  using Expression = std::tuple<unsigned, Value *, Value *>;
  MapVector<Expression, SmallVector<Instruction *>> same;
  for (BasicBlock *block : ReversePostOrderTraversal<Function *>(&kernel))
    for (Instruction &op : *block)
      if (isa<BinaryOperator>(op) && op.getType()->isIntegerTy(32) &&
          isa<Instruction>(op.getOperand(0)) &&
          isa<Constant>(op.getOperand(1)) && lanes.differ(op.getOperand(0)))
        same[{op.getOpcode(), op.getOperand(0), op.getOperand(1)}].push_back(
            &op);

  auto partOf = [&](Instruction *op) -> const void * {
    BasicBlock *block = op->getParent();
    if (Loop *loop = regions.largeLoopOf(block))
      return loop;
    return regions.regionOf(block);
  };
  bool changed = false;
  DenseMap<std::pair<Value *, BasicBlock *>, Value *> copies;
  for (auto &[expression, ops] : same) {
    const void *first = partOf(ops.front());
    for (Instruction *op : ops) {
      Instruction *at = op;
      if (Loop *loop = regions.largeLoopOf(op->getParent())) {
        BasicBlock *before = inLoops ? loop->getLoopPreheader() : nullptr;
        at = before ? before->getTerminator() : nullptr;
      }
      if (!at || partOf(op) == first)
        continue;
      Value *number = op->getOperand(0);
      Value *&copy = copies[{number, at->getParent()}];
      if (!copy) {
        auto *type = FunctionType::get(number->getType(), {number->getType()},
                                       /*isVarArg=*/false);
        copy = IRBuilder<>(at).CreateCall(
            type, InlineAsm::get(type, "", "=v,0", /*hasSideEffects=*/true),
            {number});
      }
      op->setOperand(0, copy);
      changed = true;
    }
  }
  return changed;
}
