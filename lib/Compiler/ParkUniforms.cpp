//===- ParkUniforms.cpp - Scalars in vector registers ---------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A wave has 102 scalar registers, for all that its lanes have in common. What
// is computed before a large loop and used after it takes some of them through
// the loop, which may need all: the register allocator then spills. Vector
// registers are more, and a loop seldom needs all of them. So such a value is
// moved into one where it is made (each lane has it), and read back from the
// first lane where it is used. The moves stand outside of the large loops.
// Empty assembly statements keep the backend from looking through.
//
// A comparison of lanes' numbers is a mask of two scalar registers, which the
// backend makes once, before the outermost loop. It is made where it is used,
// or before the large loop that does not change it.
//
//===----------------------------------------------------------------------===//

#include "ParkUniforms.h"
#include "LoopRegions.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"

using namespace llvm;
using namespace kvbuf;

/// `value` in a vector register, of which the backend does not know what it is.
static Value *inVector(IRBuilder<> &b, Value *value) {
  auto *type = FunctionType::get(value->getType(), {value->getType()},
                                 /*isVarArg=*/false);
  return b.CreateCall(
      type, InlineAsm::get(type, "", "=v,0", /*hasSideEffects=*/true), {value});
}

namespace {
class Parking {
public:
  Parking(Function &kernel, TargetMachine &machine, size_t most,
          bool addressesBefore)
      : kernel(kernel), most(most), addressesBefore(addressesBefore),
        layout(kernel.getDataLayout()), regions(kernel),
        lanes(kernel, machine) {}

  bool run() {
    if (regions.large().empty())
      return false;
    bool changed = shareSegment();
    if (addressesBefore)
      changed |= addressBeforeLoops();
    changed |= compareNearUses();
    // What is parked is found first: the analysis is of the kernel as it is.
    SmallVector<std::pair<Instruction *, SmallVector<Use *>>> found;
    for (Instruction &op : instructions(kernel))
      if (SmallVector<Use *> uses = usesElsewhere(op); !uses.empty())
        found.push_back({&op, std::move(uses)});
    for (auto &[op, uses] : found) {
      if (parkedWords() >= most)
        break;
      for (Use *use : uses)
        use->set(inRegion(op, regionOf(*use)));
    }
    for (Instruction *op : compared) {
      IRBuilder<> b(op);
      for (Use &operand : op->operands())
        if (operand->getType()->isIntegerTy(32) && !isa<Constant>(operand))
          operand.set(inVector(b, operand));
    }
    return changed || !found.empty() || !compared.empty();
  }

private:
  BasicBlock *regionOf(const Use &use) {
    return regions.regionOf(LoopRegions::blockOf(use));
  }
  bool isUsedInLargeLoops(const Instruction &op) const {
    return any_of(op.uses(), [&](const Use &use) {
      return regions.largeLoopOf(LoopRegions::blockOf(use));
    });
  }

  /// The address of the arguments, from one place: the kernel's start.
  bool shareSegment() {
    Instruction *first = nullptr;
    SmallVector<Instruction *> others;
    for (Instruction &op : instructions(kernel))
      if (auto *call = dyn_cast<IntrinsicInst>(&op);
          call &&
          call->getIntrinsicID() == Intrinsic::amdgcn_kernarg_segment_ptr)
        (first ? (void)others.push_back(&op) : (void)(first = &op));
    if (!first)
      return false;
    first->moveBefore(kernel.getEntryBlock().getFirstInsertionPt());
    for (Instruction *other : others) {
      other->replaceAllUsesWith(first);
      other->eraseFromParent();
    }
    return !others.empty();
  }

  /// Addresses that a large loop leaves the same, and all lanes agree on, are
  /// computed before it, as the backend would: what they are computed of is
  /// then used outside of the loop alone.
  bool addressBeforeLoops() {
    bool changed = false;
    for (Loop *loop : regions.large()) {
      BasicBlock *before = loop->getLoopPreheader();
      if (!before)
        continue;
      for (BasicBlock *block : loop->blocks())
        for (Instruction &op : make_early_inc_range(*block))
          if (isa<GetElementPtrInst>(op) && !lanes.differ(&op))
            loop->makeLoopInvariant(&op, changed, before->getTerminator());
    }
    return changed;
  }

  /// What is in front of the large loop that compares the same numbers of lanes
  /// in every iteration, within a loop around it: the mask need not live
  /// longer. Null: `op` is none.
  BasicBlock *placeBefore(Instruction &op) {
    Loop *loop = regions.largeLoopOf(op.getParent());
    BasicBlock *before = loop ? loop->getLoopPreheader() : nullptr;
    return before && lanes.differ(&op) && loop->hasLoopInvariantOperands(&op) &&
                   regions.isWithinLoop(regions.regionOf(before))
               ? before
               : nullptr;
  }

  /// Comparisons move to the regions that use them, so that what is compared is
  /// parked, not the result; those of lanes that every iteration of a loop
  /// around a large one makes are noted.
  bool compareNearUses() {
    bool changed = false;
    for (Instruction &op : make_early_inc_range(instructions(kernel))) {
      if (!isa<ICmpInst>(op) || !op.getType()->isIntegerTy(1))
        continue;
      if (BasicBlock *before = placeBefore(op)) {
        op.moveBefore(before->getTerminator()->getIterator());
        compared.push_back(&op);
        continue;
      }
      if (regions.largeLoopOf(op.getParent()) || isUsedInLargeLoops(op))
        continue;
      if (lanes.differ(&op)) {
        if (regions.isWithinLoop(regions.regionOf(op.getParent())))
          compared.push_back(&op);
        continue;
      }
      DenseMap<BasicBlock *, Instruction *> copies;
      for (Use &use : make_early_inc_range(op.uses())) {
        BasicBlock *region = regionOf(use);
        if (region == regions.regionOf(op.getParent()))
          continue;
        Instruction *&copy = copies[region];
        if (!copy) {
          copy = op.clone();
          copy->insertBefore(region->getFirstInsertionPt());
          changed = true;
        }
        use.set(copy);
      }
    }
    return changed;
  }

  /// Uses of what may be parked behind large loops, or in another region of a
  /// loop around them; empty if it may not.
  SmallVector<Use *> usesElsewhere(Instruction &op) {
    Type *type = op.getType();
    bool fits =
        (type->isIntegerTy() || type->isPointerTy()) &&
        is_contained({32u, 64u},
                     unsigned(layout.getTypeSizeInBits(type).getFixedValue()));
    if (!fits || isa<AllocaInst>(op) || lanes.differ(&op) ||
        regions.largeLoopOf(op.getParent()) || isUsedInLargeLoops(op))
      return {};
    SmallVector<Use *> uses;
    BasicBlock *own = regions.regionOf(op.getParent());
    for (Use &use : op.uses()) {
      if (lanes.differ(use))
        return {};
      if (regionOf(use) != own)
        uses.push_back(&use);
    }
    return uses;
  }

  /// Vector registers that are taken.
  size_t parkedWords() const {
    size_t count = 0;
    for (auto &[op, parts] : words)
      count += parts.size();
    return count;
  }

  /// What is parked of `op`, in words of 32 bits.
  ArrayRef<Value *> parked(Instruction *op) {
    auto [it, isNew] = words.try_emplace(op);
    if (!isNew)
      return it->second;
    IRBuilder<> b(op->getParent(), op->isTerminator() || isa<PHINode>(op)
                                       ? op->getParent()->getFirstInsertionPt()
                                       : std::next(op->getIterator()));
    Value *value = op;
    if (op->getType()->isPointerTy())
      value = b.CreatePtrToInt(op, layout.getIntPtrType(op->getType()));
    SmallVector<Value *> parts;
    unsigned bits = value->getType()->getIntegerBitWidth();
    for (unsigned at = 0; at < bits; at += 32)
      parts.push_back(
          inVector(b, b.CreateTrunc(b.CreateLShr(value, at), b.getInt32Ty())));
    return words[op] = std::move(parts);
  }

  /// `op` in a region: from the first lane's registers.
  Value *inRegion(Instruction *op, BasicBlock *region) {
    Value *&known = read[{op, region}];
    if (known)
      return known;
    // Half of a pair is enough of what extends it.
    if (isa<SExtInst, ZExtInst>(op) &&
        op->getOperand(0)->getType()->isIntegerTy(32) &&
        isa<Instruction>(op->getOperand(0)) &&
        !lanes.differ(op->getOperand(0))) {
      auto *half = cast<Instruction>(
          inRegion(cast<Instruction>(op->getOperand(0)), region));
      Instruction *wide = op->clone();
      wide->setOperand(0, half);
      wide->insertAfter(half);
      return read[{op, region}] = wide;
    }
    IRBuilder<> b(region, region->getFirstInsertionPt());
    Value *value = nullptr;
    Type *type = op->getType()->isPointerTy()
                     ? layout.getIntPtrType(op->getType())
                     : op->getType();
    for (auto [i, word] : enumerate(parked(op))) {
      Value *part = b.CreateIntrinsic(Intrinsic::amdgcn_readfirstlane,
                                      {b.getInt32Ty()}, {word});
      part = b.CreateShl(b.CreateZExt(part, type), 32 * i);
      value = value ? b.CreateOr(value, part) : part;
    }
    if (op->getType()->isPointerTy())
      value = b.CreateIntToPtr(value, op->getType());
    return read[{op, region}] = value;
  }

  Function &kernel;
  size_t most;
  bool addressesBefore;
  const DataLayout &layout;
  LoopRegions regions;
  LanesInCommon lanes;
  SmallVector<Instruction *> compared;
  DenseMap<Instruction *, SmallVector<Value *>> words;
  DenseMap<std::pair<Instruction *, BasicBlock *>, Value *> read;
};
} // namespace

bool kvbuf::parkUniforms(Function &kernel, TargetMachine &machine, size_t most,
                         bool addressesBefore) {
  return kernel.getCallingConv() == CallingConv::AMDGPU_KERNEL &&
         Parking(kernel, machine, most, addressesBefore).run();
}
