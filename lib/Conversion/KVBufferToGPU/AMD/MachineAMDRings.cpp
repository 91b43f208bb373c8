//===- MachineAMDRings.cpp - Rings on AMD's CDNA ----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MachineAMDRings.h"
#include "KVBufferToGPU/LaneLowering.h"
#include "mlir/Dialect/AMDGPU/IR/AMDGPUDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

std::unique_ptr<Machine> kvbuf::createAMDRingMachine() {
  return std::make_unique<AMDRingMachine>();
}

/// The least time that a wave sleeps, in units of 64 cycles.
static constexpr int32_t kSleep = 1;

LogicalResult AMDRingMachine::prepare(Lanes &lower, gpu::GPUFuncOp kernel) {
  if (failed(AMDMachine::prepare(lower, kernel)))
    return failure();
  if (lower.cluster() > 1)
    return kernel.emitOpError()
           << "has rings and clusters of " << lower.cluster()
           << " blocks, which " << lower.target.chip
           << " does not have; expected no 'known_cluster_size'";
  WalkResult result = kernel.walk([&](Operation *op) -> WalkResult {
    // Items that a team takes for others, by numbers of its own.
    if (isa<MailboxOp, NextTileOp>(op))
      return op->emitOpError()
             << "has no per-lane form on " << lower.target.chip
             << ", whose teams have no barrier of their own";
    auto team = dyn_cast<TeamOp>(op);
    if (!team)
      return WalkResult::advance();
    if (team.getWarps() == 1)
      return WalkResult::advance();
    if (team.getCopies() > 1)
      return team.emitOpError()
             << "has " << int64_t(team.getCopies()) << " copies of "
             << int64_t(team.getWarps())
             << " warps, which would meet by one counter; expected one copy";
    teamCounters[team] = lower.lds.addBarrier(team.getWarps());
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  // A wave takes rows of one page, or group, at a time.
  result = kernel.walk([&](RingLoadOp op) -> WalkResult {
    KVBufferAttr params = op.getRing().getType().getParams();
    if (failed(layOutTurned(lower, op, params, scheduleOf(op, lower.schedule))))
      return WalkResult::interrupt();
    if (goesThroughRegisters(lower.target, params))
      return WalkResult::advance();
    SmallVector<CopyPlan> plans =
        planCopies(lower.target, params,
                   warpsOfSlot(lower, op) * int64_t(lower.target.waveSize));
    if (plans.empty())
      return refuseRows(op, lower.target, params);
    int64_t rows = plans.front().rows;
    int64_t page = op.getTile().getType().getPageSize();
    if (page % rows == 0)
      return WalkResult::advance();
    return op.emitOpError()
           << "copies " << rows
           << " rows at a time, of a tile that has no more than " << page
           << " one stride apart; expected a buffer with policy = "
              "register_staged";
  });
  return failure(result.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// Counters
//===----------------------------------------------------------------------===//

/// The index of a counter among the words of LDS; behind it stands its last
/// number.
static Value wordOf(Lanes &lower, Value barrier) {
  return lower.toIndex(arith::ShRUIOp::create(lower.b, barrier, lower.i32(2)));
}

static Value loadLast(Lanes &lower, Value words, Value word) {
  ImplicitLocOpBuilder &b = lower.b;
  return memref::LoadOp::create(
      b, words,
      ValueRange{arith::AddIOp::create(b, word, lower.index(1)).getResult()});
}

void AMDRingMachine::emitBarrierInit(Lanes &lower,
                                     ArrayRef<LdsBarrier> barriers) {
  ImplicitLocOpBuilder &b = lower.b;
  Value words = lower.shared(b.getI32Type());
  for (const LdsBarrier &barrier : barriers) {
    memref::StoreOp::create(b, lower.i32(0), words,
                            ValueRange{lower.index(barrier.offset / 4)});
    memref::StoreOp::create(b, lower.i32(2 * barrier.arrivals - 1), words,
                            ValueRange{lower.index(barrier.offset / 4 + 1)});
  }
}

void AMDRingMachine::emitPoll(Lanes &lower, Value barrier, Value parity) {
  ImplicitLocOpBuilder &b = lower.b;
  Value words = lower.shared(b.getI32Type()), word = wordOf(lower, barrier);
  // n = (2 n - 1) / 2 + 1.
  Value half =
      arith::ShRUIOp::create(b, loadLast(lower, words, word), lower.i32(1));
  auto loop = scf::WhileOp::create(b, TypeRange{}, ValueRange{});
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&loop.getBefore());
  Value count = CounterReadOp::create(b, b.getI32Type(), words, word);
  // The phase that is not over is the first one up to n arrivals.
  Value second =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, count, half);
  Value current = arith::ExtUIOp::create(b, b.getI32Type(), second);
  Value again =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, current, parity);
  scf::ConditionOp::create(b, lower.machine.uniform(lower, again),
                           ValueRange{});
  b.createBlock(&loop.getAfter());
  ROCDL::SSleepOp::create(b, kSleep);
  scf::YieldOp::create(b);
}

void AMDRingMachine::emitBarrierWait(Lanes &lower, Value barrier,
                                     Value parity) {
  emitPoll(lower, barrier, parity);
}

Value AMDRingMachine::emitCount(Lanes &lower, Value barrier, Value &last) {
  ImplicitLocOpBuilder &b = lower.b;
  Value words = lower.shared(b.getI32Type()), word = wordOf(lower, barrier);
  last = loadLast(lower, words, word);
  return CounterAddOp::create(b, b.getI32Type(), words, word, last);
}

void AMDRingMachine::emitBarrierArrive(Lanes &lower, Value barrier,
                                       Value predicate) {
  ImplicitLocOpBuilder &b = lower.b;
  OpBuilder::InsertionGuard guard(b);
  if (predicate)
    b.setInsertionPointToStart(
        scf::IfOp::create(b, predicate, /*withElseRegion=*/false).thenBlock());
  Value last;
  emitCount(lower, barrier, last);
}

void AMDRingMachine::emitBarrier(Lanes &lower) {
  if (!lower.team || lower.team->warps == 1)
    return AMDMachine::emitBarrier(lower);
  // One lane of each wave arrives, in a phase that the number before tells;
  // whoever completes it finds it over.
  ImplicitLocOpBuilder &b = lower.b;
  Value counter = lower.i32(teamCounters.lookup(lower.team->op));
  Value one = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lower.lane,
                                    lower.i32(0));
  auto arrival = scf::IfOp::create(b, TypeRange{b.getI32Type()}, one,
                                   /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(arrival.thenBlock());
    Value last, before = emitCount(lower, counter, last);
    Value half = arith::ShRUIOp::create(b, last, lower.i32(1));
    Value second =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, before, half);
    scf::YieldOp::create(
        b, arith::ExtUIOp::create(b, b.getI32Type(), second).getResult());
    b.setInsertionPointToStart(arrival.elseBlock());
    scf::YieldOp::create(b, lower.i32(0));
  }
  emitPoll(lower, counter, uniform(lower, arrival.getResult(0)));
}

//===----------------------------------------------------------------------===//
// Nothing of this: see checkScheduled
//===----------------------------------------------------------------------===//

void AMDRingMachine::emitClusterArrive(Lanes &, Value, Value, Value) {
  llvm_unreachable("the chip has no clusters");
}

void AMDRingMachine::emitExpectBytes(Lanes &, Value, int64_t) {
  llvm_unreachable("the chip has no clusters");
}

void AMDRingMachine::emitClusterStore(Lanes &, Value, Value, Value, Value) {
  llvm_unreachable("the chip has no clusters");
}

void AMDRingMachine::emitClusterEnter(Lanes &) {
  llvm_unreachable("the chip has no clusters");
}

void AMDRingMachine::emitClusterMeet(Lanes &) {
  llvm_unreachable("the chip has no clusters");
}

Value AMDRingMachine::emitElect(Lanes &) {
  llvm_unreachable("waves move tiles as wholes");
}

Type AMDRingMachine::tensorMapType(MLIRContext *) {
  llvm_unreachable("no load asks for a map");
}

//===----------------------------------------------------------------------===//
// Filling
//===----------------------------------------------------------------------===//

int64_t AMDRingMachine::warpsOfSlot(Lanes &lower, RingLoadOp op) {
  return op->getParentOfType<TeamOp>().getWarps();
}

LogicalResult AMDRingMachine::emitRingLoad(LaneLowering &lower, RingLoadOp op,
                                           const TileView &tile, Value slot,
                                           Value full, Value empty,
                                           Value emptyParity) {
  ImplicitLocOpBuilder &b = lower.b;
  KVBufferAttr params = op.getRing().getType().getParams();
  bool staged = goesThroughRegisters(lower.target, params);
  // What goes through registers is on its way while the wave waits for the
  // slot.
  Values vectors;
  if (staged)
    vectors = emitTileLoad(lower, op, tile, slot);
  emitPoll(lower, empty, emptyParity);
  if (staged)
    emitStagedStores(lower, params, slot, vectors);
  else
    emitTileLoad(lower, op, tile, slot);
  // Copies are in LDS before anybody is told.
  amdgpu::MemoryCounterWaitOp::create(b, b.getI32IntegerAttr(0), IntegerAttr(),
                                      b.getI32IntegerAttr(0), IntegerAttr(),
                                      IntegerAttr());
  Value one = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lower.lane,
                                    lower.i32(0));
  emitBarrierArrive(lower, full, one);
  return success();
}
