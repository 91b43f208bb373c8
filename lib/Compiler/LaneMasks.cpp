//===- LaneMasks.cpp - Bits of the lanes' numbers --------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What lanes choose by is a mask of two scalar registers. Where scalars can
// find out all lanes' choices, as which rows of a tile lie in the next page,
// they make a word of 64 bits, and each lane takes the bit of its number. Of
// the shift, the bit and the comparison LLVM makes vector instructions; the
// word is the mask already.
//
//===----------------------------------------------------------------------===//

#include "LaneMasks.h"
#include "LoopRegions.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/Metadata.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

/// Lanes whose bits a word of 64 has.
static constexpr int64_t kLanes = 64;

/// Whether a value is the lane's number: the thread's, but for the wave's.
static bool isLane(Value *value) {
  // Narrower numbers have not all lanes'.
  auto skip = [](Value *&at) {
    while (isa<ZExtInst, SExtInst, TruncInst>(at) &&
           isUIntN(at->getType()->getIntegerBitWidth(), kLanes - 1) &&
           isUIntN(cast<CastInst>(at)->getSrcTy()->getIntegerBitWidth(),
                   kLanes - 1))
      at = cast<CastInst>(at)->getOperand(0);
  };
  skip(value);
  Value *thread;
  if (!match(value, m_And(m_Value(thread), m_SpecificInt(kLanes - 1))))
    return false;
  skip(thread);
  return match(thread, m_Intrinsic<Intrinsic::amdgcn_workitem_id_x>());
}

/// Whether a kernel's blocks are rows of threads, by what it says of them.
static bool hasFlatBlocks(const Function &kernel) {
  MDNode *size = kernel.getMetadata("reqd_work_group_size");
  return size && all_of(drop_begin(size->operands()), [](const Metadata *part) {
           return mdconst::extract<ConstantInt>(part)->isOne();
         });
}

void kvbuf::takeBitsByLane(Function &kernel, TargetMachine &machine,
                           int64_t waveSize) {
  if (kernel.getCallingConv() != CallingConv::AMDGPU_KERNEL ||
      waveSize != kLanes || !hasFlatBlocks(kernel))
    return;
  // The bits, and what shifts them down.
  SmallVector<std::pair<Instruction *, Instruction *>> bits;
  for (Instruction &op : instructions(kernel)) {
    Value *word, *by;
    if (op.getType()->isIntegerTy(1) &&
        match(&op, m_Trunc(m_LShr(m_Value(word), m_Value(by)))) &&
        word->getType()->isIntegerTy(kLanes) && isLane(by))
      if (auto *shift = dyn_cast<Instruction>(op.getOperand(0)))
        bits.emplace_back(&op, shift);
  }
  if (bits.empty())
    return;
  // Lanes that leave a loop at different times have different words behind it:
  // what they have in common is asked where it is shifted, and taken there.
  LanesInCommon lanes(kernel, machine);
  llvm::erase_if(bits, [&](auto &bit) {
    return lanes.differ(bit.second->getOperandUse(0));
  });
  for (auto [op, shift] : bits) {
    IRBuilder<> b(shift);
    Value *word = shift->getOperand(0);
    op->replaceAllUsesWith(b.CreateIntrinsic(Intrinsic::amdgcn_inverse_ballot,
                                             {word->getType()}, {word}));
    op->eraseFromParent();
  }
}
