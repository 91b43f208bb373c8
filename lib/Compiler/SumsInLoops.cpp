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
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;

/// The number, as an empty assembly statement in front of `op` gives it anew.
static Value *giveAnew(Value *number, Instruction *op, StringRef constraints) {
  auto *type = FunctionType::get(number->getType(), {number->getType()}, false);
  // With effects, so that it stays in a loop.
  return IRBuilder<>(op).CreateCall(
      type, InlineAsm::get(type, "", constraints, /*hasSideEffects=*/true),
      {number});
}

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
      Value *anew = giveAnew(number, of.front(), "=s,0");
      for (Instruction *sum : of)
        sum->setOperand(0, anew);
      changed = true;
    }
  }
  return changed;
}

bool kvbuf::addAtExchanges(Function &kernel) {
  using namespace PatternMatch;
  if (kernel.getCallingConv() != CallingConv::AMDGPU_KERNEL)
    return false;
  bool changed = false;
  for (BasicBlock &block : kernel) {
    // Exchanges by the lane that a constant is added to.
    MapVector<Value *, SmallVector<std::pair<IntrinsicInst *, uint64_t>>> from;
    for (Instruction &op : block) {
      auto *exchange = dyn_cast<IntrinsicInst>(&op);
      if (!exchange ||
          exchange->getIntrinsicID() != Intrinsic::amdgcn_ds_bpermute)
        continue;
      Value *lane;
      uint64_t more = 0;
      if (!match(exchange->getArgOperand(0),
                 m_Shl(m_Value(lane), m_SpecificInt(2))))
        continue;
      Value *base = lane;
      if (match(lane, m_NSWAdd(m_Value(base), m_ConstantInt(more))) ||
          !isa<Constant>(lane))
        from[more ? base : lane].emplace_back(exchange, more);
    }
    for (auto &[lane, exchanges] : from) {
      if (exchanges.size() < kManySums)
        continue;
      IRBuilder<> first(exchanges.front().first);
      Value *place =
          giveAnew(first.CreateShl(lane, 2), exchanges.front().first, "=v,0");
      for (auto [exchange, more] : exchanges)
        exchange->setArgOperand(
            0, IRBuilder<>(exchange).CreateAdd(
                   place,
                   ConstantInt::get(place->getType(), uint32_t(more << 2))));
      changed = true;
    }
  }
  return changed;
}
