//===- SumsInLoops.cpp - Sums with constants, where they are used ---------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each copy of a tile into LDS has a place that is the wave's first one plus a
// constant. The instruction takes it in a register that a move has to fill, and
// an addition fills it as well. LLVM takes the additions out of the loop, 72 of
// gfx942's narrow copies of a latent tile, and has no registers for them. Of a
// number that an empty assembly statement gives anew in each iteration they
// stay.
//
//===----------------------------------------------------------------------===//

#include "SumsInLoops.h"
#include "LoopRegions.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"

using namespace llvm;

/// Sums of a block from which on they are too many to be held.
static constexpr size_t kManySums = 16;

bool kvbuf::addWhereUsed(Function &kernel, TargetMachine &machine) {
  if (kernel.getCallingConv() != CallingConv::AMDGPU_KERNEL)
    return false;
  LanesInCommon lanes(kernel, machine);
  bool changed = false;
  for (BasicBlock &block : kernel) {
    MapVector<Value *, SmallVector<Instruction *>> sums;
    for (Instruction &op : block)
      if (op.getOpcode() == Instruction::Add && op.getType()->isIntegerTy(32) &&
          isa<ConstantInt>(op.getOperand(1)) &&
          !isa<Constant>(op.getOperand(0)) && !lanes.differ(op.getOperand(0)))
        sums[op.getOperand(0)].push_back(&op);
    for (auto &[number, of] : sums) {
      if (of.size() < kManySums)
        continue;
      auto *type =
          FunctionType::get(number->getType(), {number->getType()}, false);
      // With effects, so that it stays in a loop.
      Value *anew = IRBuilder<>(of.front())
                        .CreateCall(type,
                                    InlineAsm::get(type, "", "=s,0",
                                                   /*hasSideEffects=*/true),
                                    {number});
      for (Instruction *sum : of)
        sum->setOperand(0, anew);
      changed = true;
    }
  }
  return changed;
}
