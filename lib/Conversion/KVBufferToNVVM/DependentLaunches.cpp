//===- DependentLaunches.cpp - Launches that overlap ------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel whose blocks join their results leaves most of the device idle while
// the last of them do so. The next launch of such a kernel may be put on the
// device meanwhile: it waits by itself for the launches before it, ahead of the
// first access to memory that they might write or read.
//
//===----------------------------------------------------------------------===//

#include "DependentLaunches.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;
using Kind = NVVM::GridDepActionKind;

/// Whether control comes back to a block that it has left.
static bool isInLoop(Block *block) {
  SmallVector<Block *> open(block->getSuccessors());
  llvm::SmallPtrSet<Block *, 16> seen;
  while (!open.empty()) {
    Block *next = open.pop_back_val();
    if (next == block)
      return true;
    if (seen.insert(next).second)
      llvm::append_range(open, next->getSuccessors());
  }
  return false;
}

/// Whether an op may touch memory that other launches see: all that is not
/// known to be the block's own.
static bool touchesGlobalMemory(Operation *op) {
  if (isMemoryEffectFree(op) || op->hasTrait<OpTrait::IsTerminator>())
    return false;
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  if (!effects)
    return true;
  SmallVector<MemoryEffects::EffectInstance> list;
  effects.getEffects(list);
  return llvm::any_of(list, [](const MemoryEffects::EffectInstance &effect) {
    Value value = effect.getValue();
    auto type = value ? dyn_cast<MemRefType>(value.getType()) : MemRefType();
    return !type || !gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(type);
  });
}

/// Lets the kernel wait ahead of the first access to global memory, and on each
/// way through it: a launch that ended without waiting would let the one after
/// it begin while the one before still runs. Then the next launch may begin.
static void waitBeforeMemory(gpu::GPUFuncOp kernel) {
  DominanceInfo dominance(kernel);
  Operation *first = nullptr;
  Block *common = nullptr;
  kernel.walk([&](Operation *op) {
    if (op == kernel || !touchesGlobalMemory(op))
      return;
    // Regions of an op are entered through it.
    while (op->getParentOp() != kernel)
      op = op->getParentOp();
    Block *block = op->getBlock();
    common =
        common ? dominance.findNearestCommonDominator(common, block) : block;
  });
  Region &body = kernel.getBody();
  if (!common)
    common = &body.front();
  // Once is enough.
  while (isInLoop(common))
    common = dominance.getNode(common)->getIDom()->getBlock();
  for (Operation &op : *common) {
    bool touches = false;
    op.walk([&](Operation *inner) { touches |= touchesGlobalMemory(inner); });
    if ((first = &op, touches))
      break;
  }
  OpBuilder b(first);
  NVVM::GriddepcontrolOp::create(b, kernel.getLoc(), Kind::wait);
  // The next launch may be put beside this one as soon as it runs: each
  // multiprocessor that has a block gets one more, which waits.
  NVVM::GriddepcontrolOp::create(b, kernel.getLoc(), Kind::launch_dependents);
  for (Block &block : body) {
    Operation *end = block.getTerminator();
    if (end->getNumSuccessors() || dominance.dominates(common, &block))
      continue;
    b.setInsertionPoint(end);
    NVVM::GriddepcontrolOp::create(b, kernel.getLoc(), Kind::wait);
  }
}

/// Shared memory that the driver takes for each block, bytes (CUDA C++
/// Programming Guide, compute capabilities 8.x and 9.0: 1 KB of what a
/// multiprocessor has, so that a block's most is less by as much).
static constexpr int64_t kDriverBytes = 1024;

/// Lets a multiprocessor hold no more blocks than the kernel has for it. Blocks
/// that begin while the kernel before runs come where that ends first, as many
/// as have room; the rest of the device then waits for those (H200, 2048 query
/// rows beside 255 sequences of one: 586 us, 565 where each multiprocessor gets
/// its four, 563 in two launches).
static void spreadBlocks(gpu::GPUFuncOp kernel, const TargetInfo &target) {
  auto blocks = kernel->getAttrOfType<IntegerAttr>(kResidentBlocksAttr);
  LaunchAttr launch = LaunchAttr::of(kernel);
  if (!blocks || !launch)
    return;
  int64_t all = target.ldsBytes + kDriverBytes;
  int64_t fewest =
      llvm::alignTo(all / (blocks.getInt() + 1) - kDriverBytes + 1, 128);
  if (fewest <= launch.getDynamicSharedBytes() ||
      blocks.getInt() * (fewest + kDriverBytes) > all)
    return;
  kernel->setAttr(KVBufferDialect::kKernelAttr,
                  launch.with("dynamic_shared_bytes",
                              Builder(kernel).getI64IntegerAttr(fewest)));
}

/// Whether LDS has room for as many blocks again as run on a multiprocessor,
/// and for no more: those of the next launch wait beside them, and none has two
/// of them for one elsewhere. (H200, 131072 keys in a graph: 128.9 us, 129.7
/// without; with room for the blocks that run alone 129.5.)
static bool hasWaitingPlaces(gpu::GPUFuncOp kernel, const TargetInfo &target) {
  auto blocks = kernel->getAttrOfType<IntegerAttr>(kResidentBlocksAttr);
  LaunchAttr launch = LaunchAttr::of(kernel);
  return blocks && launch &&
         (target.ldsBytes + kDriverBytes) /
                 (launch.getDynamicSharedBytes() + kDriverBytes) ==
             2 * blocks.getInt();
}

/// Kernels that share a launch write rows of their own and read nothing of each
/// other's: each may begin as soon as all blocks of the one before it run.
/// Those after the first, whichever that is, end after the one before, so that
/// launches after them need not look at all: one block waits. The others give
/// their places to the next kernel.
static void shareLaunch(gpu::GPUFuncOp kernel, const TargetInfo &target) {
  Region &body = kernel.getBody();
  ImplicitLocOpBuilder b(kernel.getLoc(), kernel.getContext());
  b.setInsertionPointToStart(&body.front());
  NVVM::GriddepcontrolOp::create(b, Kind::launch_dependents);
  auto schedule =
      kernel->getAttrOfType<ScheduleAttr>(KVBufferDialect::kScheduleAttr);
  if (schedule && schedule.getSplitKeys())
    spreadBlocks(kernel, target);
  Value place;
  for (auto dimension :
       {gpu::Dimension::x, gpu::Dimension::y, gpu::Dimension::z}) {
    Value id = gpu::BlockIdOp::create(b, dimension);
    place = place ? arith::OrIOp::create(b, place, id).getResult() : id;
  }
  Value waits = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, place,
                                      arith::ConstantIndexOp::create(b, 0));
  for (Block &block : llvm::make_early_inc_range(body)) {
    Operation *end = block.getTerminator();
    if (end->getNumSuccessors())
      continue;
    Block *last = block.splitBlock(end);
    Block *wait = b.createBlock(last);
    NVVM::GriddepcontrolOp::create(b, Kind::wait);
    cf::BranchOp::create(b, last);
    b.setInsertionPointToEnd(&block);
    cf::CondBranchOp::create(b, waits, wait, ValueRange(), last, ValueRange());
  }
}

void kvbuf::overlapLaunches(gpu::GPUFuncOp kernel, const TargetInfo &target) {
  SmallVector<LaneArriveOp> arrivals;
  bool isOrdered = false;
  kernel.walk([&](Operation *op) {
    // Who takes a number joins nothing.
    if (auto arrival = dyn_cast<LaneArriveOp>(op);
        arrival && !arrival.getRelaxed())
      arrivals.push_back(arrival);
    isOrdered |= isa<NVVM::GriddepcontrolOp>(op);
  });
  if (!isOrdered && kernel->hasAttr(kSharedRowsAttr))
    return shareLaunch(kernel, target);
  // Who says when launches begin is left alone. Blocks that arrive again and
  // again are as many as keep the device busy: each needs a place for one that
  // waits. Those of one warp are many to a multiprocessor, and waiting ones
  // would take places, not the same number everywhere (H200, one sequence of
  // 131072 keys: 167.6 us, 129.8 without).
  std::optional<ArrayRef<int32_t>> block = kernel.getKnownBlockSize();
  if (isOrdered || arrivals.empty() || !block || block->front() <= kWarpSize ||
      (!hasWaitingPlaces(kernel, target) &&
       llvm::any_of(arrivals,
                    [](LaneArriveOp op) { return isInLoop(op->getBlock()); })))
    return;
  waitBeforeMemory(kernel);
}
