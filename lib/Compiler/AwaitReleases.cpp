//===- AwaitReleases.cpp - Waits for what a release writes back -----------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where dies have an L2 each, a release at a scope wider than a block writes
// this one's back (`buffer_wbl2`) and waits until that has happened, before the
// store or the atomic operation that others may see. LLVM 22's backend puts the
// wait there and takes it away again where nothing else is in flight, since it
// does not count the write-back (llvm-project PR 178316). A wait that the IR
// asks for stays. So each release becomes a fence, such a wait, and an
// operation that does not release.
//
//===----------------------------------------------------------------------===//

#include "AwaitReleases.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/MemoryModelRelaxationAnnotations.h"
#include "llvm/Support/AMDGPUAddrSpace.h"

using namespace llvm;

using Order = AtomicOrdering;

/// Whether lanes of other blocks take part in a scope. Those of one block share
/// an L2.
static bool isWiderThanBlock(SyncScope::ID scope, LLVMContext &context) {
  SmallVector<StringRef> names;
  context.getSyncScopeNames(names);
  StringRef name = names[scope];
  name.consume_back("-one-as");
  return !is_contained({"singlethread", "wavefront", "workgroup"}, name);
}

/// Whether memory at a pointer is a block's or a lane's own.
static bool isOfBlock(const Value *pointer) {
  unsigned space = pointer->getType()->getPointerAddressSpace();
  return space == AMDGPUAS::LOCAL_ADDRESS || space == AMDGPUAS::PRIVATE_ADDRESS;
}

/// Whether a fence says that it orders accesses of some address spaces alone,
/// and not of global memory.
static bool leavesGlobalMemory(const FenceInst &fence) {
  MMRAMetadata marks(fence);
  return any_of(ArrayRef<StringRef>{"amdgpu-synchronize-as", "amdgpu-as"},
                [&](StringRef prefix) {
                  return marks.hasTagWithPrefix(prefix) &&
                         !marks.hasTag(prefix, "global");
                });
}

/// Whether what follows a fence is the wait.
static bool isAwaited(const FenceInst &fence, uint32_t wait) {
  auto *call = dyn_cast<IntrinsicInst>(fence.getNextNode());
  if (!call || call->getIntrinsicID() != Intrinsic::amdgcn_s_waitcnt)
    return false;
  return cast<ConstantInt>(call->getArgOperand(0))->getZExtValue() == wait;
}

/// What an operation still has to order once a fence before it releases.
static Order withoutRelease(Order order) {
  return isAcquireOrStronger(order) ? Order::Acquire : Order::Monotonic;
}

/// Takes the release out of an atomic operation on global memory. Returns its
/// scope, or nothing where it does not release.
static std::optional<SyncScope::ID> takeRelease(Instruction &op) {
  if (auto *store = dyn_cast<StoreInst>(&op)) {
    if (!isReleaseOrStronger(store->getOrdering()) ||
        isOfBlock(store->getPointerOperand()))
      return std::nullopt;
    store->setOrdering(Order::Monotonic);
    return store->getSyncScopeID();
  }
  if (auto *change = dyn_cast<AtomicRMWInst>(&op)) {
    if (!isReleaseOrStronger(change->getOrdering()) ||
        isOfBlock(change->getPointerOperand()))
      return std::nullopt;
    change->setOrdering(withoutRelease(change->getOrdering()));
    return change->getSyncScopeID();
  }
  auto *exchange = dyn_cast<AtomicCmpXchgInst>(&op);
  if (!exchange || isOfBlock(exchange->getPointerOperand()) ||
      !isReleaseOrStronger(exchange->getMergedOrdering()))
    return std::nullopt;
  exchange->setSuccessOrdering(withoutRelease(exchange->getSuccessOrdering()));
  exchange->setFailureOrdering(withoutRelease(exchange->getFailureOrdering()));
  return exchange->getSyncScopeID();
}

void kvbuf::awaitReleases(Function &function, uint32_t wait) {
  LLVMContext &context = function.getContext();
  // A release before `op`.
  auto release = [&](Instruction &op, SyncScope::ID scope) {
    IRBuilder<> b(&op);
    FenceInst *fence = b.CreateFence(Order::Release, scope);
    fence->copyMetadata(op, LLVMContext::MD_mmra);
    b.CreateIntrinsic(Intrinsic::amdgcn_s_waitcnt, {b.getInt32(wait)});
  };
  for (Instruction &op : make_early_inc_range(instructions(function))) {
    std::optional<SyncScope::ID> scope = getAtomicSyncScopeID(&op);
    if (!scope || !isWiderThanBlock(*scope, context))
      continue;
    auto *fence = dyn_cast<FenceInst>(&op);
    if (!fence) {
      if (takeRelease(op))
        release(op, *scope);
      continue;
    }
    if (!isReleaseOrStronger(fence->getOrdering()) ||
        leavesGlobalMemory(*fence) ||
        (fence->getOrdering() == Order::Release && isAwaited(*fence, wait)))
      continue;
    release(op, *scope);
    if (isAcquireOrStronger(fence->getOrdering()))
      fence->setOrdering(Order::Acquire);
    else
      fence->eraseFromParent();
  }
}
