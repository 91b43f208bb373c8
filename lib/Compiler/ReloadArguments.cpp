//===- ReloadArguments.cpp - Arguments out of registers ---------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM loads all arguments of an AMD kernel at its start. What only comes after
// the loop over keys, or is computed from such arguments, is then held in
// scalar registers through that loop; a wave has 102 of them, and a kernel with
// two paged caches, a workspace and a loop over its work needs half as many
// again.
//
// The arguments stay where the launch has put them. So each region of the
// control flow that no large loop lies in loads what it needs of them once, and
// repeats cheap arithmetic on them. The address is handed through an empty
// assembly statement: without it the backend would take these loads for those
// at the start, or move them there.
//
// Likewise what is computed from the numbers of threads and blocks, and from
// others that lanes agree on: a comparison of lanes' numbers is a mask of two
// scalar registers, and each region makes its own from the number of its
// thread. Within a loop around the large one such numbers are handed through an
// empty statement, too: the backend would move what is computed from them to
// the front of the loop.
//
//===----------------------------------------------------------------------===//

#include "ReloadArguments.h"
#include "LoopRegions.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/ConstantRange.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/Module.h"

using namespace llvm;
using namespace kvbuf;

/// The longest chain of instructions that is repeated.
static constexpr unsigned kLongestChain = 6;

/// Whether an instruction may be repeated instead of kept.
static bool isCheap(const Instruction &op) {
  if (isa<MinMaxIntrinsic>(op))
    return !op.getType()->isVectorTy();
  switch (op.getOpcode()) {
  case Instruction::Add:
  case Instruction::Sub:
  case Instruction::Mul:
  case Instruction::Shl:
  case Instruction::LShr:
  case Instruction::AShr:
  case Instruction::And:
  case Instruction::Or:
  case Instruction::Xor:
  case Instruction::SExt:
  case Instruction::ZExt:
  case Instruction::Trunc:
  case Instruction::ICmp:
  case Instruction::Select:
  case Instruction::GetElementPtr:
  case Instruction::PtrToInt:
    return !op.getType()->isVectorTy();
  default:
    return false;
  }
}

/// Whether a value is a register that is cheaper to keep than what is computed
/// from it: what the hardware sets up, and numbers that lanes agree on. Lanes
/// differ in the number of their thread alone.
static bool isKept(const Value *value) {
  const auto *call = dyn_cast<IntrinsicInst>(value);
  if (!call)
    return false;
  switch (call->getIntrinsicID()) {
  case Intrinsic::amdgcn_workgroup_id_x:
  case Intrinsic::amdgcn_workgroup_id_y:
  case Intrinsic::amdgcn_workgroup_id_z:
  case Intrinsic::amdgcn_workitem_id_x:
    // From the first block on they are there for all of the kernel.
    return call->getParent()->isEntryBlock();
  case Intrinsic::amdgcn_readfirstlane:
    return call->getType()->isIntegerTy(32);
  default:
    return false;
  }
}
static bool isThread(const Value *value) {
  const auto *call = dyn_cast<IntrinsicInst>(value);
  return call && call->getIntrinsicID() == Intrinsic::amdgcn_workitem_id_x;
}

/// Whether all lanes have the same value, as far as its definition shows.
static bool isUniform(const Value *value, unsigned depth = 0) {
  if (isa<Constant, Argument>(value))
    return true;
  if (isKept(value))
    return !isThread(value);
  const auto *op = dyn_cast<Instruction>(value);
  return op && depth < kLongestChain &&
         (isCheap(*op) || op->getOpcode() == Instruction::UDiv) &&
         all_of(
             op->operands(),
             [&](const Value *operand) {
               return isUniform(operand, depth + 1);
             });
}

/// Whether an operand of what is repeated is better kept than repeated: the
/// half of a register pair that is its extension.
static bool isNarrow(const Instruction &op, const Value *operand) {
  return isa<SExtInst, ZExtInst>(op) && operand->getType()->isIntegerTy(32) &&
         isa<Instruction>(operand) && isUniform(operand);
}

namespace {
class Reloader {
public:
  Reloader(Function &kernel, TargetMachine &machine)
      : kernel(kernel), regions(kernel) {
    findCommon(machine);
    // The layout of AMDGPU's kernel arguments: one after the other.
    const DataLayout &layout = kernel.getDataLayout();
    uint64_t at = 0;
    for (Argument &argument : kernel.args()) {
      Type *type = argument.getType();
      at = alignTo(at, layout.getABITypeAlign(type));
      uint64_t bytes = layout.getTypeAllocSize(type);
      // Others share a word, or lie elsewhere.
      if (bytes % 4 == 0 && !argument.hasByRefAttr() &&
          !argument.hasInRegAttr())
        offsets[&argument] = at;
      at += bytes;
    }
  }

  void run() {
    if (regions.large().empty())
      return;
    // Users before what they use, so that a chain is repeated as a whole.
    SmallVector<Instruction *> chain;
    for (BasicBlock *block : ReversePostOrderTraversal(&kernel))
      for (Instruction &op : *block)
        if (isCheap(op))
          chain.push_back(&op);
    for (Instruction *op : reverse(chain)) {
      if (op->use_empty())
        continue;
      move(op);
      if (op->use_empty()) {
        common.erase(op);
        op->eraseFromParent();
      }
    }
    for (Argument &argument : kernel.args())
      move(&argument);
  }

private:
  /// Notes what lanes have in common in the kernel as it is now, wherever it is
  /// used.
  void findCommon(TargetMachine &machine) {
    LanesInCommon lanes(kernel, machine);
    for (Instruction &op : instructions(kernel))
      if (!lanes.differ(&op) &&
          none_of(op.uses(), [&](const Use &use) { return lanes.differ(use); }))
        common.insert(&op);
  }

  BasicBlock *regionOf(BasicBlock *block) { return regions.regionOf(block); }
  Loop *largeLoopOf(BasicBlock *block) const {
    return regions.largeLoopOf(block);
  }
  /// Only there the backend has a place to move to what is repeated.
  bool isWithinLoop(BasicBlock *region) const {
    return regions.isWithinLoop(region);
  }

  /// Whether `value` is an argument, or cheap to compute from arguments, in a
  /// region that it is not from.
  bool isRepeatable(Value *value, BasicBlock *region, unsigned depth) {
    if (auto *argument = dyn_cast<Argument>(value))
      return offsets.contains(argument);
    auto *op = dyn_cast<Instruction>(value);
    if (!op || depth > kLongestChain || !isCheap(*op) ||
        largeLoopOf(op->getParent()) || regionOf(op->getParent()) == region)
      return false;
    return all_of(op->operands(), [&](Value *operand) {
      return isa<Constant>(operand) || isKept(operand) ||
             isInLargeLoops(operand) ||
             (isWithinLoop(region) && isNarrow(*op, operand)) ||
             isRepeatable(operand, region, depth + 1);
    });
  }

  /// Whether large loops use what lanes differ in: it is in a register there,
  /// and if it were another one elsewhere, LLVM would not see what both have in
  /// common.
  bool isInLargeLoops(Value *value) const {
    return isa<Instruction>(value) && !isUniform(value) && !isKept(value) &&
           !value->getType()->isIntegerTy(1) &&
           any_of(value->users(), [&](User *user) {
             return largeLoopOf(cast<Instruction>(user)->getParent());
           });
  }

  /// Lets the uses of `value` outside of its region and of large loops take it
  /// from their own. An argument is loaded before a large loop, too.
  void move(Value *value) {
    auto *op = dyn_cast<Instruction>(value);
    if (op && isInLargeLoops(op))
      return compareAnew(op);
    for (Use &use : make_early_inc_range(value->uses())) {
      BasicBlock *block = LoopRegions::blockOf(use);
      if (Loop *loop = largeLoopOf(block)) {
        block = loop->getLoopPreheader();
        if (op || !block)
          continue;
      }
      BasicBlock *region = regionOf(block);
      if (region != &kernel.getEntryBlock() &&
          isRepeatable(value, region, /*depth=*/0))
        use.set(repeat(value, region));
    }
  }

  /// Lets comparisons of what large loops use be made in their own regions.
  void compareAnew(Instruction *value) {
    for (Use &use : make_early_inc_range(value->uses())) {
      auto *user = dyn_cast<ICmpInst>(use.getUser());
      if (!user || largeLoopOf(user->getParent()))
        continue;
      BasicBlock *region = regionOf(user->getParent());
      if (isWithinLoop(region) && region != regionOf(value->getParent()))
        use.set(keptIn(value, region));
    }
  }

  /// An operand of `op`, which is repeated in a region.
  Value *operandIn(const Instruction &op, Value *operand, BasicBlock *region) {
    if (isInLargeLoops(operand))
      return isa<ICmpInst>(op) ? keptIn(operand, region) : operand;
    if (isKept(operand) || !isRepeatable(operand, region, /*depth=*/0))
      return keptIn(operand, region);
    return repeat(operand, region);
  }

  /// `value`, which is repeatable, in a region.
  Value *repeat(Value *value, BasicBlock *region) {
    Value *&known = repeated[{value, region}];
    if (known)
      return known;
    if (auto *argument = dyn_cast<Argument>(value))
      return known = load(argument, region);
    auto *op = cast<Instruction>(value)->clone();
    // What it is computed from is in the region's first block, too.
    Instruction *last = nullptr;
    for (Use &operand : op->operands()) {
      if (isa<Constant>(operand))
        continue;
      operand.set(operandIn(*op, operand, region));
      auto *def = cast<Instruction>(operand);
      if (def->getParent() == region && (!last || last->comesBefore(def)))
        last = def;
    }
    if (last)
      op->insertAfter(last);
    else
      op->insertBefore(region->getFirstInsertionPt());
    return repeated[{value, region}] = op;
  }

  /// `value` in a region, of which the backend does not know that it is the
  /// same elsewhere.
  Instruction *ownCopy(Value *value, StringRef constraints, IRBuilder<> &b) {
    auto *type = FunctionType::get(value->getType(), {value->getType()},
                                   /*isVarArg=*/false);
    return b.CreateCall(
        type, InlineAsm::get(type, "", constraints, /*hasSideEffects=*/true),
        {value});
  }

  /// What is kept, in a region.
  Value *keptIn(Value *value, BasicBlock *region) {
    if (!isWithinLoop(region))
      return value;
    Value *&known = repeated[{value, region}];
    if (!known) {
      IRBuilder<> b(region, region->getFirstInsertionPt());
      auto *call = dyn_cast<CallBase>(value);
      known = ownCopy(value, isUniform(value) ? "=s,0" : "=v,0", b);
      // A branch that depends on what lanes have in common stays one that all
      // of them take. Where the backend computes it, only the backend knows.
      Type *type = value->getType();
      if (!isUniform(value) && common.contains(value) &&
          (type->isIntegerTy(32) || type->isIntegerTy(64)))
        known =
            b.CreateIntrinsic(Intrinsic::amdgcn_readfirstlane, {type}, {known});
      // Products of small numbers are cheap, if they are known to be small.
      if (auto range = call ? call->getRange() : std::nullopt)
        known = b.CreateAnd(
            known, NextPowerOf2(range->getUnsignedMax().getZExtValue()) - 1);
    }
    return known;
  }

  Value *load(Argument *argument, BasicBlock *region) {
    IRBuilder<> b(region, region->getFirstInsertionPt());
    Instruction *&base = bases[region];
    if (!base) {
      Value *segment = b.CreateIntrinsic(Intrinsic::amdgcn_kernarg_segment_ptr,
                                         ArrayRef<Value *>());
      base = ownCopy(segment, "=s,0", b);
    }
    b.SetInsertPoint(base->getNextNode());
    uint64_t offset = offsets.lookup(argument);
    LoadInst *loaded = b.CreateAlignedLoad(
        argument->getType(),
        b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), base, offset),
        commonAlignment(Align(16), offset), argument->getName());
    loaded->setMetadata(LLVMContext::MD_invariant_load,
                        MDNode::get(b.getContext(), {}));
    return loaded;
  }

  Function &kernel;
  LoopRegions regions;
  DenseSet<const Value *> common;
  DenseMap<Argument *, uint64_t> offsets;
  DenseMap<BasicBlock *, Instruction *> bases;
  DenseMap<std::pair<Value *, BasicBlock *>, Value *> repeated;
};
} // namespace

void kvbuf::reloadArguments(Function &kernel, TargetMachine &machine) {
  if (kernel.getCallingConv() == CallingConv::AMDGPU_KERNEL)
    Reloader(kernel, machine).run();
}
