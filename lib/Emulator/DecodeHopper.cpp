//===- DecodeHopper.cpp - mbarriers, bulk copies, registers ---------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Async.h"
#include "Decoder.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;
using namespace kvbuf::emu;

// The offset in shared memory that a pointer of any space stands for. A block's
// shared memory has the same addresses in the cluster's.
Comp Decoder::sharedPointer(Value v) {
  Comp c = getScalar(v);
  return c.wide ? emitFree(Code::FromGeneric, false, c, {}, {}, 3) : c;
}

// What the lanes of a kernel have before any setmaxnreg: the register file
// divided by the threads that the launch bounds promise, in steps of 8.
LogicalResult Decoder::decodeEntryRegisters(Operation *op) {
  auto product = [&](StringRef name) -> int64_t {
    auto sizes = kernel->getAttrOfType<DenseI32ArrayAttr>(name);
    if (!sizes)
      return 0;
    int64_t n = 1;
    for (int32_t size : sizes.asArrayRef())
      n = size < 1 ? 0 : llvm::MulOverflow<int64_t>(n, size, n) ? INT64_MAX : n;
    return n;
  };
  auto integer = [&](StringRef name) -> int64_t {
    auto attr = kernel->getAttrOfType<IntegerAttr>(name);
    return attr ? attr.getValue().sextOrTrunc(64).getSExtValue() : 0;
  };
  using Names = NVVM::NVVMDialect;
  int64_t threads = std::max(product(Names::getMaxntidAttrName()),
                             product(Names::getReqntidAttrName()));
  if (threads <= 0)
    return op->emitOpError() << "has no effect in a kernel without '"
                             << Names::getMaxntidAttrName() << "' or '"
                             << Names::getReqntidAttrName()
                             << "': the registers at its entry are unknown";
  int64_t blocks = std::max<int64_t>(integer(Names::getMinctasmAttrName()), 1);
  // One after the other: their product may not be a number.
  int64_t registers = std::min<int64_t>(65536 / threads / blocks, 255);
  if (int64_t most = integer(Names::getMaxnregAttrName()); most > 0)
    registers = std::min(registers, most);
  if (registers < 8)
    return op->emitOpError()
           << "leaves no registers at the kernel's entry: '"
           << Names::getMaxntidAttrName() << "' or '"
           << Names::getReqntidAttrName() << "' promises " << threads
           << " threads, '" << Names::getMinctasmAttrName() << "' " << blocks
           << " blocks, of 65536 registers";
  program.entryRegisters = registers / 8 * 8;
  return success();
}

LogicalResult Decoder::decodeHopper(Operation *op, bool &known) {
  known = true;
  auto setResult = [&](Comp c) {
    if (op->getNumResults())
      set(op->getResult(0), {c});
  };
  auto optional = [&](Value v) { return v ? getNarrow(v) : Comp{}; };

  // mbarriers.
  if (auto x = dyn_cast<NVVM::MBarrierInitOp>(op)) {
    Comp address = sharedPointer(x.getAddr()), count = getNarrow(x.getCount()),
         predicate = optional(x.getPredicate());
    Inst &inst = emitAsync(Code::MBarrierInit);
    inst.a = address.slot;
    inst.b = count.slot;
    inst.c = predicate.slot;
    inst.align = 8;
    return success();
  }
  if (auto x = dyn_cast<NVVM::MBarrierInvalOp>(op)) {
    Comp address = sharedPointer(x.getAddr());
    emitAsync(Code::MBarrierInval).a = address.slot;
    return success();
  }
  auto arrive = [&](Value pointer, Value count, Value bytes, Value predicate,
                    unsigned flags) {
    Comp address = sharedPointer(pointer), n = optional(count),
         size = optional(bytes), p = optional(predicate), state;
    if (op->getNumResults())
      state = allocate(/*wide=*/true);
    Inst &inst = emitAsync(Code::MBarrierArrive);
    inst.a = address.slot;
    inst.dst = state.slot;
    inst.flags = flags;
    list(inst, {n, size, p});
    setResult(state);
    return success();
  };
  auto relaxed = [](auto x) { return x.getRelaxed() ? mbarrierRelaxed : 0; };
  if (auto x = dyn_cast<NVVM::MBarrierArriveOp>(op))
    return arrive(x.getAddr(), x.getCount(), {}, {},
                  mbarrierArrives | relaxed(x));
  if (auto x = dyn_cast<NVVM::MBarrierArriveDropOp>(op))
    return arrive(x.getAddr(), x.getCount(), {}, {},
                  mbarrierArrives | mbarrierDrops | relaxed(x));
  if (auto x = dyn_cast<NVVM::MBarrierArriveNocompleteOp>(op))
    return arrive(x.getAddr(), x.getCount(), {}, {},
                  mbarrierArrives | mbarrierNoComplete);
  if (auto x = dyn_cast<NVVM::MBarrierArriveDropNocompleteOp>(op))
    return arrive(x.getAddr(), x.getCount(), {}, {},
                  mbarrierArrives | mbarrierDrops | mbarrierNoComplete);
  if (auto x = dyn_cast<NVVM::MBarrierArriveExpectTxOp>(op))
    return arrive(x.getAddr(), {}, x.getTxcount(), x.getPredicate(),
                  mbarrierArrives | mbarrierExpects | relaxed(x));
  if (auto x = dyn_cast<NVVM::MBarrierArriveDropExpectTxOp>(op))
    return arrive(x.getAddr(), {}, x.getTxcount(), {},
                  mbarrierArrives | mbarrierExpects | mbarrierDrops |
                      relaxed(x));
  if (auto x = dyn_cast<NVVM::MBarrierExpectTxOp>(op))
    return arrive(x.getAddr(), {}, x.getTxcount(), {}, mbarrierExpects);
  if (auto x = dyn_cast<NVVM::MBarrierCompleteTxOp>(op))
    return arrive(x.getAddr(), {}, x.getTxcount(), {}, mbarrierCompletes);
  auto test = [&](Value pointer, Value phase, unsigned flags) {
    Comp address = sharedPointer(pointer), of = getScalar(phase), result;
    if (op->getNumResults())
      result = allocate(/*wide=*/false);
    Inst &inst = emitAsync(Code::MBarrierTest);
    inst.a = address.slot;
    inst.b = of.slot;
    inst.dst = result.slot;
    inst.flags = flags | (of.wide ? 0 : mbarrierParity);
    setResult(result);
    return success();
  };
  if (auto x = dyn_cast<NVVM::MBarrierTryWaitParityOp>(op))
    return test(x.getAddr(), x.getPhase(), mbarrierBlocks);
  if (auto x = dyn_cast<NVVM::MBarrierTestWaitOp>(op))
    return test(x.getAddr(), x.getStateOrPhase(), relaxed(x));
  if (auto x = dyn_cast<NVVM::MBarrierTryWaitOp>(op))
    return test(x.getAddr(), x.getStateOrPhase(), relaxed(x));
  if (auto x = dyn_cast<NVVM::CpAsyncMBarrierArriveOp>(op)) {
    Comp address = sharedPointer(x.getAddr());
    Inst &inst = emitAsync(Code::MBarrierOwe);
    inst.a = address.slot;
    inst.flags = x.getNoinc();
    return success();
  }

  // Fences.
  if (isa<NVVM::FenceMbarrierInitOp>(op)) {
    emitAsync(Code::ProxyFence);
    // Arrivals that are relaxed pass on what lies before such a fence.
    bool relaxed = op->getParentOfType<LLVM::LLVMFuncOp>()
                       .walk([](NVVM::ClusterArriveRelaxedOp) {
                         return WalkResult::interrupt();
                       })
                       .wasInterrupted();
    if (relaxed)
      emitFence(releases, Scope::Cluster);
    return success();
  }
  if (auto x = dyn_cast<NVVM::FenceProxyOp>(op)) {
    // The other kinds order nothing in shared memory.
    if (x.getKind() == NVVM::ProxyKind::async ||
        x.getKind() == NVVM::ProxyKind::async_shared)
      emitAsync(Code::ProxyFence).imm = 1;
    return success();
  }
  if (isa<NVVM::FenceProxyAcquireOp, NVVM::FenceProxyReleaseOp,
          NVVM::GriddepcontrolOp, NVVM::NanosleepOp,
          NVVM::CpAsyncBulkTensorPrefetchOp, NVVM::CpAsyncBulkPrefetchOp>(op))
    return success();

  // Bulk copies.
  auto bulk = [&](Code code, Value shared, Value global, Value mbarrier,
                  Value predicate, Value bytes, ValueRange coordinates,
                  Value multicast = {}, bool gathers = false) -> LogicalResult {
    Comp s = sharedPointer(shared), g = getWide(global),
         m = mbarrier ? sharedPointer(mbarrier) : Comp{};
    Comps parts = {optional(predicate), optional(bytes)};
    for (Value v : coordinates)
      parts.push_back(getNarrow(v));
    if (multicast)
      parts.push_back(getNarrow(multicast));
    if (coordinates.size() > 5 || (coordinates.empty() && !bytes))
      return unsupported(op, "this number of coordinates");
    Inst &inst = emitAsync(code);
    inst.flags = (multicast ? bulkToCluster : 0) | (gathers ? bulkGathers : 0);
    inst.a = s.slot;
    inst.b = g.slot;
    inst.c = m.slot;
    inst.imm = coordinates.size();
    inst.align = 16;
    inst.stat = program.numStats++;
    list(inst, parts);
    return success();
  };
  if (auto x = dyn_cast<NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp>(op)) {
    bool gathers = x.getMode() == NVVM::TMALoadMode::TILE_GATHER4;
    if ((x.getMode() != NVVM::TMALoadMode::TILE && !gathers) ||
        !x.getIm2colOffsets().empty())
      return unsupported(op, "modes other than tile and tile_gather4");
    if (gathers && !program.chip.gathersRows)
      return unsupported(op, program.chip.describe() + " does not have it");
    if (x.getCoordinates().empty() ||
        (gathers && x.getCoordinates().size() != 5))
      return unsupported(op, "this number of coordinates");
    return bulk(Code::BulkLoad, x.getDstMem(), x.getTmaDescriptor(),
                x.getMbar(), x.getPredicate(), {}, x.getCoordinates(),
                x.getMulticastMask(), gathers);
  }
  if (auto x = dyn_cast<NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp>(op)) {
    if (x.getMode() != NVVM::TMAStoreMode::TILE)
      return unsupported(op, "modes other than tile");
    if (x.getCoordinates().empty())
      return unsupported(op, "no coordinates");
    return bulk(Code::BulkStore, x.getSrcMem(), x.getTmaDescriptor(), {},
                x.getPredicate(), {}, x.getCoordinates());
  }
  if (auto x = dyn_cast<NVVM::CpAsyncBulkGlobalToSharedClusterOp>(op)) {
    if (x.getMulticastMask())
      return unsupported(op, "multicast");
    return bulk(Code::BulkLoad, x.getDstMem(), x.getSrcMem(), x.getMbar(), {},
                x.getSize(), {});
  }
  if (auto x = dyn_cast<NVVM::CpAsyncBulkSharedCTAToGlobalOp>(op)) {
    if (x.getByteMask())
      return unsupported(op, "a byte mask");
    return bulk(Code::BulkStore, x.getSrcMem(), x.getDstMem(), {}, {},
                x.getSize(), {});
  }
  if (isa<NVVM::CpAsyncBulkCommitGroupOp>(op)) {
    emitAsync(Code::BulkCommit);
    return success();
  }
  if (auto x = dyn_cast<NVVM::CpAsyncBulkWaitGroupOp>(op)) {
    Inst &inst = emitAsync(Code::BulkWait);
    inst.imm = pendingGroups(x.getGroup());
    inst.flags = bool(x.getRead());
    return success();
  }

  // Registers.
  if (auto x = dyn_cast<NVVM::SetMaxRegisterOp>(op)) {
    if (failed(needMatrixGroups(op)) || failed(decodeEntryRegisters(op)))
      return failure();
    Inst &inst = emitAsync(Code::SetMaxRegisters);
    inst.imm = x.getRegCount();
    inst.flags = x.getAction() == NVVM::SetMaxRegisterAction::increase;
    return success();
  }

  // Clusters.
  if (isa<NVVM::ClusterArriveOp>(op)) {
    emitAsync(Code::ClusterArrive);
    return success();
  }
  if (isa<NVVM::ClusterArriveRelaxedOp>(op)) {
    emitAsync(Code::ClusterArrive).flags = 1;
    return success();
  }
  if (isa<NVVM::ClusterWaitOp>(op)) {
    emitAsync(Code::ClusterWait);
    return success();
  }
  return decodeWgmma(op, known);
}
