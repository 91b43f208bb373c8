//===- SeldomChanges.cpp - What follows from numbers that seldom change ---===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A lazy softmax raises a row's maximum in a block that is seldom executed, and
// each iteration makes of it what exponents are counted from: not below the
// least finite number, times the scale, which of scores of any size is another
// one where the maximum is large. LLVM does so after the blocks have met, every
// time. Here the loop carries the results beside the maximum, and who raises
// the one makes the others.
//
//===----------------------------------------------------------------------===//

#include "SeldomChanges.h"
#include "LoopRegions.h"
#include "RareBlocks.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;
using namespace kvbuf;

/// The most basic blocks of a loop that carries something. In one of more
/// LLVM's scheduler no longer found the order of products and vector
/// instructions that is asked for: lists of blocks at head size 128 on gfx950,
/// 37 blocks, had MFMAs in 79 % of the issue cycles for 93.
static constexpr size_t kMostBlocks = 32;

/// Whether an instruction computes, or compares, floating-point numbers and may
/// stand anywhere.
static bool isPure(const Instruction &op) {
  if (auto *call = dyn_cast<IntrinsicInst>(&op))
    return is_contained({Intrinsic::maxnum, Intrinsic::minnum, Intrinsic::fabs},
                        call->getIntrinsicID());
  return isa<FCmpInst>(op) ||
         (isa<BinaryOperator, UnaryOperator, SelectInst>(op) &&
          op.getType()->isFloatingPointTy());
}

/// Whether an instruction costs nothing: its users take signs as they want.
static bool isFree(const Instruction &op) {
  auto *call = dyn_cast<IntrinsicInst>(&op);
  return isa<UnaryOperator>(op) ||
         (call && call->getIntrinsicID() == Intrinsic::fabs);
}

static iterator_range<Use *> operandsOf(Instruction &op) {
  return isa<CallBase>(op) ? cast<CallBase>(op).args() : op.operands();
}

namespace {
/// What follows from a number that a loop carries.
class Carrier {
public:
  Carrier(LoopRegions &regions, Loop &loop, PHINode &number)
      : regions(regions), loop(loop), number(number),
        latch(loop.getLoopLatch()) {}

  /// Whether only rare blocks change the number. Finds the phis that have it.
  bool isSeldomChanged() {
    Value *next = number.getIncomingValueForBlock(latch);
    has.insert(&number);
    return next != &number && !loop.isLoopInvariant(next) && follows(next);
  }

  /// Has the loop carry the last ones of what follows from each phi. Returns
  /// whether there are any.
  bool carryAll() {
    bool changed = false;
    // Twins are no more of the number.
    for (PHINode *phi : to_vector(has)) {
      SmallSetVector<Instruction *, 8> all = followersOf(phi);
      for (Instruction *result : all) {
        if (!isLast(*result, all))
          continue;
        made.clear();
        // Who follows, too, is computed of what there was.
        result->replaceUsesWithIf(beside(phi, *phi, *result), [&](Use &use) {
          return !all.contains(cast<Instruction>(use.getUser()));
        });
        changed = true;
      }
      // Users first.
      for (Instruction *op : reverse(all))
        if (op->use_empty())
          op->eraseFromParent();
    }
    return changed;
  }

private:
  bool isRare(BasicBlock *block) const {
    for (auto *node = regions.tree.getNode(block);
         node && node->getBlock() != loop.getHeader(); node = node->getIDom())
      if (isRareBlock(*node->getBlock()))
        return true;
    return false;
  }

  /// Whether a value of the loop is the number, but where rare blocks are
  /// passed.
  bool follows(Value *value) {
    auto *phi = dyn_cast<PHINode>(value);
    if (!phi || !loop.contains(phi) ||
        (phi != &number && phi->getParent() == loop.getHeader()))
      return false;
    if (!has.insert(phi))
      return true;
    for (auto [incoming, block] :
         zip_equal(phi->incoming_values(), phi->blocks()))
      if (!follows(incoming) && !isRare(block))
        return false;
    return true;
  }

  /// What is computed of a phi, constants and nothing else, in an order in
  /// which operands come first.
  SmallSetVector<Instruction *, 8> followersOf(PHINode *phi) const {
    SmallSetVector<Instruction *, 8> all;
    auto isKnown = [&](Value *operand) {
      auto *op = dyn_cast<Instruction>(operand);
      return operand == phi || isa<Constant>(operand) ||
             (op && all.contains(op));
    };
    SmallVector<Instruction *> next{phi};
    while (!next.empty())
      for (User *user : next.pop_back_val()->users())
        if (auto *op = dyn_cast<Instruction>(user);
            op && !all.contains(op) && loop.contains(op) && isPure(*op) &&
            all_of(operandsOf(*op), isKnown) && !isRare(op->getParent())) {
          all.insert(op);
          next.push_back(op);
        }
    // A comparison is no number to carry: it is made anew where anything else
    // looks at it, and what it compares is carried.
    while (true) {
      auto *compared = find_if(all, [&](Instruction *op) {
        return !op->getType()->isFloatingPointTy() && isUsedBeside(*op, all);
      });
      if (compared == all.end())
        return all;
      all.remove(*compared);
      // Nor does what follows from it.
      while (all.remove_if(
          [&](Instruction *op) { return !all_of(operandsOf(*op), isKnown); }))
        ;
    }
  }

  static bool isUsedBeside(Instruction &op,
                           const SmallSetVector<Instruction *, 8> &all) {
    return any_of(op.users(), [&](User *user) {
      return !all.contains(cast<Instruction>(user));
    });
  }

  /// Whether a number is to be carried: something else wants it, and it takes
  /// an instruction.
  static bool isLast(Instruction &op,
                     const SmallSetVector<Instruction *, 8> &all) {
    Value *made = &op;
    while (auto *at = dyn_cast<Instruction>(made)) {
      if (!isFree(*at))
        break;
      made = at->getOperand(0);
    }
    return !isa<PHINode>(made) && isUsedBeside(op, all);
  }

  /// What `result`, which follows from `phi`, is of `value`, at the end of a
  /// block.
  static Value *computeAt(Value *value, PHINode &phi, Instruction &result,
                          BasicBlock *block) {
    SmallDenseMap<Value *, Value *> copies{{&phi, value}};
    auto copy = [&](auto &self, Value *of) -> Value * {
      if (isa<Constant>(of))
        return of;
      if (Value *known = copies.lookup(of))
        return known;
      auto *made = cast<Instruction>(of)->clone();
      for (Use &use : operandsOf(*made))
        use.set(self(self, use.get()));
      made->insertBefore(block->getTerminator()->getIterator());
      return copies[of] = made;
    };
    return copy(copy, &result);
  }

  /// The phi of `result`, which follows from `phi`, beside another phi `at` of
  /// the number.
  Value *beside(PHINode *at, PHINode &phi, Instruction &result) {
    if (PHINode *known = made.lookup(at))
      return known;
    PHINode *twin = PHINode::Create(
        result.getType(), at->getNumIncomingValues(), "", at->getIterator());
    made[at] = twin;
    for (auto [incoming, block] :
         zip_equal(at->incoming_values(), at->blocks())) {
      // A branch may come from a block twice, and brings one value.
      if (int known = twin->getBasicBlockIndex(block); known >= 0) {
        twin->addIncoming(twin->getIncomingValue(known), block);
        continue;
      }
      auto *before = dyn_cast<PHINode>(incoming);
      bool inside = loop.contains(block);
      twin->addIncoming(inside && before && has.contains(before)
                            ? beside(before, phi, result)
                            : computeAt(incoming, phi, result, block),
                        block);
    }
    return twin;
  }

  LoopRegions &regions;
  Loop &loop;
  PHINode &number;
  BasicBlock *latch;
  SmallSetVector<PHINode *, 4> has;
  SmallDenseMap<PHINode *, PHINode *> made;
};
} // namespace

bool kvbuf::carrySeldomChanges(Function &kernel) {
  if (kernel.getCallingConv() != CallingConv::AMDGPU_KERNEL)
    return false;
  LoopRegions regions(kernel);
  bool changed = false;
  for (Loop *loop : regions.large()) {
    if (!loop->getLoopLatch() || !loop->getLoopPreheader() ||
        loop->getNumBlocks() > kMostBlocks)
      continue;
    SmallVector<PHINode *> numbers;
    for (PHINode &phi : loop->getHeader()->phis())
      if (phi.getType()->isFloatTy())
        numbers.push_back(&phi);
    for (PHINode *number : numbers) {
      Carrier carrier(regions, *loop, *number);
      if (!carrier.isSeldomChanged())
        continue;
      changed |= carrier.carryAll();
    }
  }
  return changed;
}
