//===- CountThreads.cpp - Threads' numbers behind large loops ---*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What stands behind a kernel's large loops uses rows, columns and addresses
// that are computed of the thread's number, constants and what all lanes have
// in common. The backend computes them once, before the first loop, and holds a
// vector register through it for each, or at least for the number itself. But a
// thread's number takes no vector register to begin with: the hardware counts
// the lanes below, and the wave is one that all lanes have in common. So each
// part behind the first large loop makes the number anew, from a mask that
// comes out of an empty assembly statement, which the backend cannot look
// through.
//
//===----------------------------------------------------------------------===//

#include "CountThreads.h"
#include "LoopRegions.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/Metadata.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace kvbuf;

static bool isThreadNumber(const Value *value) {
  const auto *call = dyn_cast<IntrinsicInst>(value);
  return call && call->getIntrinsicID() == Intrinsic::amdgcn_workitem_id_x;
}

/// Whether `value` is the number of the lane in its wave, as the hardware
/// counts it.
static bool isLaneNumber(const Value *value, unsigned waveSize) {
  auto counts = [](const Value *value, Intrinsic::ID id) {
    const auto *call = dyn_cast<IntrinsicInst>(value);
    const auto *mask = call && call->getIntrinsicID() == id
                           ? dyn_cast<ConstantInt>(call->getArgOperand(0))
                           : nullptr;
    return mask && mask->isMinusOne() ? call->getArgOperand(1) : nullptr;
  };
  if (waveSize > 32)
    value = counts(value, Intrinsic::amdgcn_mbcnt_hi);
  value = value ? counts(value, Intrinsic::amdgcn_mbcnt_lo) : nullptr;
  return value && match(value, PatternMatch::m_Zero());
}

/// Whether a kernel's blocks are whole waves along one dimension: a thread's
/// number is then its wave's first one's and its lane's.
static bool hasWholeWaves(const Function &kernel, unsigned waveSize) {
  const MDNode *size = kernel.getMetadata("reqd_work_group_size");
  if (!size || size->getNumOperands() != 3)
    return false;
  auto extent = [&](unsigned i) {
    return mdconst::extract<ConstantInt>(size->getOperand(i))->getZExtValue();
  };
  return extent(0) % waveSize == 0 && extent(1) == 1 && extent(2) == 1;
}

namespace {
class ThreadCount {
public:
  ThreadCount(Function &kernel, TargetMachine &machine, unsigned waveSize)
      : kernel(kernel), waveSize(waveSize), regions(kernel),
        lanes(kernel, machine) {}

  /// Makes numbers anew; whether there are some.
  bool run() {
    for (Instruction &op : kernel.getEntryBlock())
      if (isThreadNumber(&op) && !thread)
        thread = &op;
    if (!thread || regions.large().empty() || !hasWholeWaves(kernel, waveSize))
      return false;
    SmallVector<Instruction *> all;
    for (Instruction &op : instructions(kernel))
      if (isMade(&op))
        all.push_back(&op);
    SmallVector<std::pair<Use *, Instruction *>> uses;
    for (Instruction *op : all)
      for (Use &use : op->uses())
        if (!isMade(use.getUser()) || isa<PHINode>(use.getUser()))
          if (Instruction *at = placeFor(use)) {
            if (!isThere(op, at))
              at = laterPlaceFor(use);
            if (at)
              uses.push_back({&use, at});
          }
    for (auto [use, at] : uses)
      use->set(anew(use->get(), at));
    return !uses.empty();
  }

private:
  /// Whether `value` is the thread's or the lane's number, or computed of
  /// these, constants and what lanes have in common.
  bool isMade(const Value *value) {
    if (isThreadNumber(value) || isLaneNumber(value, waveSize))
      return true;
    const auto *op = dyn_cast<Instruction>(value);
    if (!op || !op->getType()->isIntegerTy() || op->getType()->isIntegerTy(1) ||
        !lanes.differ(op))
      return false;
    switch (op->getOpcode()) {
    case Instruction::Add:
    case Instruction::Sub:
    case Instruction::Mul:
    case Instruction::Shl:
    case Instruction::LShr:
    case Instruction::And:
    case Instruction::Or:
    case Instruction::Xor:
    case Instruction::SExt:
    case Instruction::ZExt:
    case Instruction::Trunc:
      break;
    default:
      return false;
    }
    if (auto it = isKnown.find(op); it != isKnown.end())
      return it->second;
    // What a large loop computes for all lanes is not there in front of it;
    // what lanes add to it is.
    const Loop *loop = regions.largeLoopOf(op->getParent());
    return isKnown[op] = none_of(op->operands(), [&](const Value *operand) {
             const auto *from = dyn_cast<Instruction>(operand);
             bool ofLoop = loop && from && loop->contains(from);
             return !isMade(operand) && (ofLoop || !isInCommon(operand));
           });
  }

  bool isInCommon(const Value *value) const {
    return isa<ConstantInt>(value) || !lanes.differ(value);
  }

  /// Where what `use` takes is made anew: in front of the large loop that it is
  /// in, or in its block; null in front of the first large loop, and there.
  Instruction *placeFor(const Use &use) {
    BasicBlock *block = LoopRegions::blockOf(use);
    if (Loop *loop = regions.largeLoopOf(block)) {
      block = loop->getLoopPreheader();
      if (!block || isInFront(block))
        return nullptr;
      return block->getTerminator();
    }
    if (isInFront(block))
      return nullptr;
    if (isa<PHINode>(use.getUser()))
      return block->getTerminator();
    return &*block->getFirstInsertionPt();
  }
  /// Where it is made anew if what it is made of is not there yet at its place:
  /// in front of the user; null in a large loop, which would do it each time.
  Instruction *laterPlaceFor(const Use &use) {
    auto *user = cast<Instruction>(use.getUser());
    bool inLoop = regions.largeLoopOf(LoopRegions::blockOf(use));
    return inLoop || isa<PHINode>(user) ? nullptr : user;
  }
  bool isInFront(BasicBlock *block) {
    return regions.regionOf(block) == &kernel.getEntryBlock();
  }

  /// Whether all that lanes have in common, and a value is made of, is computed
  /// before `at`: not so what a loop counts, or what stands in the same block.
  bool isThere(Value *value, Instruction *at) {
    if (!isMade(value))
      return regions.tree.dominates(value, at);
    if (isThreadNumber(value) || isLaneNumber(value, waveSize))
      return true;
    auto [known, isNew] = there.try_emplace({value, at}, true);
    if (!isNew)
      return known->second;
    bool all =
        all_of(cast<Instruction>(value)->operands(),
               [&](const Use &operand) { return isThere(operand.get(), at); });
    return there[{value, at}] = all;
  }

  /// Makes a value anew at a place.
  Value *anew(Value *value, Instruction *at) {
    if (isa<Constant>(value) || !isMade(value))
      return value;
    Value *&known = made[{value, at}];
    if (known)
      return known;
    if (isLaneNumber(value, waveSize))
      return known = laneAt(at);
    if (isThreadNumber(value))
      return known = threadAt(at);
    Instruction *op = cast<Instruction>(value)->clone();
    for (Use &operand : op->operands())
      operand.set(anew(operand, at));
    op->insertBefore(at->getIterator());
    return made[{value, at}] = op;
  }

  /// The lane's number in its wave, made where an instruction is.
  Value *laneAt(Instruction *at) {
    Value *&lane = laneNumbers[at];
    if (lane)
      return lane;
    IRBuilder<> b(at);
    auto *type = FunctionType::get(b.getInt32Ty(), {b.getInt32Ty()},
                                   /*isVarArg=*/false);
    Value *mask = b.CreateCall(
        type, InlineAsm::get(type, "", "=s,0", /*hasSideEffects=*/true),
        {b.getInt32(-1)});
    lane = b.CreateIntrinsic(Intrinsic::amdgcn_mbcnt_lo, ArrayRef<Type *>(),
                             {mask, b.getInt32(0)});
    if (waveSize > 32)
      lane = b.CreateIntrinsic(Intrinsic::amdgcn_mbcnt_hi, ArrayRef<Type *>(),
                               {mask, lane});
    // That lanes are few makes products of theirs cheap.
    return lane = b.CreateAnd(lane, waveSize - 1);
  }

  /// The thread's number in its block, likewise.
  Value *threadAt(Instruction *at) {
    Value *lane = laneAt(at);
    IRBuilder<> b(at);
    Value *first = b.CreateShl(waveNumber(), Log2_32(waveSize));
    return b.CreateOr(first, lane);
  }

  /// The number of the wave, that of the kernel if it has one.
  Value *waveNumber() {
    if (wave)
      return wave;
    auto isWave = [&](Instruction &op) {
      auto *first = dyn_cast<IntrinsicInst>(&op);
      if (!first || first->getIntrinsicID() != Intrinsic::amdgcn_readfirstlane)
        return false;
      auto *shift = dyn_cast<BinaryOperator>(first->getArgOperand(0));
      auto *count =
          shift ? dyn_cast<ConstantInt>(shift->getOperand(1)) : nullptr;
      if (!count || shift->getOpcode() != Instruction::LShr ||
          count->getZExtValue() != Log2_32(waveSize))
        return false;
      Value *from = shift->getOperand(0);
      while (isa<SExtInst, ZExtInst, TruncInst>(from))
        from = cast<Instruction>(from)->getOperand(0);
      return from == thread;
    };
    BasicBlock &entry = kernel.getEntryBlock();
    if (auto it = find_if(entry, isWave); it != entry.end())
      return wave = &*it;
    IRBuilder<> b(thread->getNextNode());
    return wave = b.CreateIntrinsic(Intrinsic::amdgcn_readfirstlane,
                                    {b.getInt32Ty()},
                                    {b.CreateLShr(thread, Log2_32(waveSize))});
  }

  Function &kernel;
  unsigned waveSize;
  LoopRegions regions;
  LanesInCommon lanes;
  Instruction *thread = nullptr;
  Value *wave = nullptr;
  DenseMap<const Value *, bool> isKnown;
  DenseMap<Instruction *, Value *> laneNumbers;
  DenseMap<std::pair<Value *, Instruction *>, Value *> made;
  DenseMap<std::pair<Value *, Instruction *>, bool> there;
};
} // namespace

bool kvbuf::countThreadsAnew(Function &kernel, TargetMachine &machine,
                             unsigned waveSize) {
  return kernel.getCallingConv() == CallingConv::AMDGPU_KERNEL &&
         ThreadCount(kernel, machine, waveSize).run();
}
