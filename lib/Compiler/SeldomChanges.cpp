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
// least finite number, times the scale. LLVM does so after the blocks have met,
// every time. Here the loop carries the product beside the maximum, and who
// raises the one makes the other.
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

/// Whether an instruction computes of `value`, constants and nothing else, and
/// may stand anywhere.
static bool isOfConstants(const Instruction &op, const Value *value) {
  bool pure = isa<BinaryOperator>(op) && op.getType()->isFloatingPointTy();
  if (auto *call = dyn_cast<IntrinsicInst>(&op))
    pure = call->getIntrinsicID() == Intrinsic::maxnum ||
           call->getIntrinsicID() == Intrinsic::minnum;
  if (!pure)
    return false;
  auto operands = isa<CallBase>(op) ? cast<CallBase>(op).args() : op.operands();
  return all_of(operands, [&](const Use &use) {
    return use == value || isa<Constant>(use);
  });
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

  /// The results to carry: the last ones of what follows from the number.
  SmallVector<Instruction *> results() const {
    SmallVector<Instruction *> found;
    for (PHINode *phi : has)
      for (User *user : phi->users()) {
        auto *last = cast<Instruction>(user);
        if (!isWanted(*last, phi))
          continue;
        while (last->hasOneUse()) {
          auto *next = cast<Instruction>(*last->user_begin());
          if (!isWanted(*next, last))
            break;
          last = next;
        }
        if (!is_contained(found, last))
          found.push_back(last);
      }
    return found;
  }

  /// Has the loop carry `result`.
  void carry(Instruction *result) {
    // From a phi down to the result.
    SmallVector<Instruction *> chain;
    PHINode *from = nullptr;
    for (Value *at = result; !from;) {
      auto *op = cast<Instruction>(at);
      chain.insert(chain.begin(), op);
      for (Use &use : op->operands())
        if (auto *before = dyn_cast<Instruction>(use)) {
          at = before;
          if (auto *phi = dyn_cast<PHINode>(before); phi && has.contains(phi))
            from = phi;
          break;
        }
    }
    made.clear();
    Value *carried = beside(from, chain);
    result->replaceAllUsesWith(carried);
    for (Instruction *op : reverse(chain))
      op->eraseFromParent();
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

  bool isWanted(const Instruction &op, const Value *of) const {
    return loop.contains(&op) && isOfConstants(op, of) &&
           !isRare(const_cast<BasicBlock *>(op.getParent()));
  }

  /// What follows from `value`, of ops as in a chain, at the end of a block.
  static Value *computeAt(Value *value, ArrayRef<Instruction *> chain,
                          BasicBlock *block) {
    const Value *of = nullptr;
    for (Instruction *op : chain) {
      Instruction *copy = op->clone();
      for (Use &use : copy->operands())
        if (!isa<Constant>(use) && (!of || use == of))
          use.set(value);
      copy->insertBefore(block->getTerminator()->getIterator());
      of = op;
      value = copy;
    }
    return value;
  }

  /// The phi of what follows from a phi of the number.
  Value *beside(PHINode *phi, ArrayRef<Instruction *> chain) {
    if (PHINode *known = made.lookup(phi))
      return known;
    PHINode *twin =
        PHINode::Create(chain.back()->getType(), phi->getNumIncomingValues(),
                        "", phi->getIterator());
    made[phi] = twin;
    for (auto [incoming, block] :
         zip_equal(phi->incoming_values(), phi->blocks())) {
      // A branch may come from a block twice, and brings one value.
      if (int known = twin->getBasicBlockIndex(block); known >= 0) {
        twin->addIncoming(twin->getIncomingValue(known), block);
        continue;
      }
      auto *before = dyn_cast<PHINode>(incoming);
      bool inside = loop.contains(block);
      twin->addIncoming(inside && before && has.contains(before)
                            ? beside(before, chain)
                            : computeAt(incoming, chain, block),
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
      for (Instruction *result : carrier.results()) {
        carrier.carry(result);
        changed = true;
      }
    }
  }
  return changed;
}
