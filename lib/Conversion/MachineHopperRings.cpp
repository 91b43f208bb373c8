//===- MachineHopperRings.cpp - Rings and clusters on sm_90a ----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Kernel parameters, mbarriers and loads of HopperMachine.
///
//===----------------------------------------------------------------------===//

#include "MachineHopper.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::hopper;

Value hopper::pointer(LaneLowering &lower, Value offset, bool cluster) {
  ImplicitLocOpBuilder &b = lower.b;
  Value address = arith::AddIOp::create(b, lower.ldsAddress, offset);
  auto type = LLVM::LLVMPointerType::get(
      b.getContext(), unsigned(cluster ? NVVM::NVVMMemorySpace::SharedCluster
                                       : NVVM::NVVMMemorySpace::Shared));
  return LLVM::IntToPtrOp::create(b, type, address);
}

int64_t hopper::rowBytes(KVBufferAttr params) {
  return params.getBK() * params.getElementType().getIntOrFloatBitWidth() / 8;
}

int64_t hopper::blockBytes(KVBufferAttr params) {
  return params.getBN() * rowBytes(params);
}

LogicalResult hopper::checkSwizzle(Operation *op, KVBufferAttr params) {
  int64_t bytes = rowBytes(params);
  if (bytes != 32 && bytes != 64 && bytes != 128)
    return op->emitOpError()
           << "cannot move or multiply LDS blocks with rows of " << bytes
           << " bytes; expected BK to give 32, 64 or 128";
  // 128 bytes hold 8 vectors, whose index has 3 bits; bank conflicts of shorter
  // rows are solved by bits of later rows.
  int64_t bits = llvm::Log2_64(bytes / 16);
  SmallVector<int64_t> expected{bits, 0, 3};
  if (params.getSwizzle() == ArrayRef<int64_t>(expected))
    return success();
  InFlightDiagnostic diag =
      op->emitOpError() << "expected a buffer with swizzle = [" << bits
                        << ", 0, 3], which the copy engine uses for rows of "
                        << bytes << " bytes, got [";
  llvm::interleaveComma(params.getSwizzle(), diag);
  diag << "]";
  return diag;
}

//===----------------------------------------------------------------------===//
// Kernel parameters and barriers
//===----------------------------------------------------------------------===//

/// The tensor that a tile is a part of; null if no op says so.
static Value tensorOf(Value tile) {
  if (auto op = tile.getDefiningOp<DramTileOp>())
    return op.getTensor();
  if (auto op = tile.getDefiningOp<CacheTileOp>())
    return op.getCache();
  return nullptr;
}

/// Whether a cluster's blocks load a tile together.
static bool isShared(RingLoadOp op) {
  auto ring = op.getRing().getDefiningOp<RingOp>();
  return ring && ring.getShared();
}

/// Rows of a tile that one block loads.
static int64_t boxRows(LaneLowering &lower, RingLoadOp op) {
  int64_t rows = op.getRing().getType().getParams().getBN();
  return isShared(op) ? rows / lower.cluster() : rows;
}

std::optional<TensorMapRequest> HopperMachine::tensorMapFor(LaneLowering &lower,
                                                            Operation *op) {
  if (auto load = dyn_cast<RingLoadOp>(op)) {
    // Tiles over small pages are copied.
    if (load.getTile().getType().getPageSize())
      return std::nullopt;
    KVBufferAttr params = load.getRing().getType().getParams();
    if (Value tensor = tensorOf(load.getTile()))
      return TensorMapRequest{tensor, boxRows(lower, load), params.getBK(),
                              params.getHeadDimOffset(), params.getDepth()};
  }
  if (auto store = dyn_cast<FragmentStoreOp>(op))
    if (store.getVia())
      if (Value tensor = tensorOf(store.getTile()))
        return TensorMapRequest{
            tensor, kGroupRows, store.getVia().getType().getParams().getBK(), 0,
            store.getVia().getType().getParams().getDepth()};
  return std::nullopt;
}

Type HopperMachine::tensorMapType(MLIRContext *context) {
  return LLVM::LLVMPointerType::get(context);
}

void HopperMachine::emitRolesPrologue(LaneLowering &lower) {
  ImplicitLocOpBuilder &b = lower.b;
  Value address = memref::ExtractAlignedPointerAsIndexOp::create(
      b, lower.shared(b.getI8Type()));
  lower.ldsAddress = lower.toI32(address);
}

void HopperMachine::emitBarrierInit(LaneLowering &lower,
                                    ArrayRef<LdsBarrier> barriers) {
  ImplicitLocOpBuilder &b = lower.b;
  for (const LdsBarrier &barrier : barriers)
    NVVM::MBarrierInitOp::create(b, pointer(lower, lower.i32(barrier.offset)),
                                 lower.i32(barrier.arrivals), Value());
  NVVM::FenceMbarrierInitOp::create(b);
}

Value HopperMachine::emitElect(LaneLowering &lower) {
  // Behind it the assembler knows that one lane runs, and keeps the coordinates
  // of boxes in uniform registers without asking whether lanes agree.
  return NVVM::ElectSyncOp::create(lower.b, lower.b.getI1Type(), Value());
}

void HopperMachine::emitBarrierWait(LaneLowering &lower, Value barrier,
                                    Value parity) {
  // How long one try may sleep, ns; the op tries again.
  constexpr int64_t ticks = 10'000'000;
  NVVM::MBarrierTryWaitParityOp::create(lower.b, pointer(lower, barrier),
                                        parity, lower.i32(ticks));
}

Value HopperMachine::uniform(LaneLowering &lower, Value value) {
  // The first lane's: ptxas then knows that the lanes agree.
  return gpu::ShuffleOp::create(lower.b, value, lower.i32(0),
                                lower.i32(lower.target.waveSize),
                                gpu::ShuffleMode::IDX)
      .getShuffleResult();
}

void HopperMachine::emitBarrierArrive(LaneLowering &lower, Value barrier,
                                      Value predicate) {
  ImplicitLocOpBuilder &b = lower.b;
  // An arrival that expects no bytes: the form that takes a predicate, where a
  // branch would part the code that the assembler schedules.
  NVVM::MBarrierArriveExpectTxOp::create(
      b, TypeRange(), pointer(lower, barrier), lower.i32(0),
      NVVM::MemScopeKind::CTA, /*relaxed=*/false, predicate);
}

void HopperMachine::emitClusterArrive(LaneLowering &lower, Value barrier,
                                      Value rank, Value predicate) {
  ClusterArriveOp::create(lower.b, pointer(lower, barrier), rank, predicate);
}

void HopperMachine::emitExpectBytes(LaneLowering &lower, Value barrier,
                                    int64_t bytes) {
  NVVM::MBarrierArriveExpectTxOp::create(
      lower.b, TypeRange(), pointer(lower, barrier), lower.i32(bytes),
      NVVM::MemScopeKind::CTA, /*relaxed=*/false, Value());
}

void HopperMachine::emitClusterStore(LaneLowering &lower, Value value,
                                     Value word, Value barrier, Value rank) {
  ClusterStoreOp::create(lower.b, value, pointer(lower, word),
                         pointer(lower, barrier), rank);
}

void HopperMachine::emitClusterMeet(LaneLowering &lower) {
  NVVM::ClusterArriveOp::create(lower.b, UnitAttr());
  NVVM::ClusterWaitOp::create(lower.b, UnitAttr());
}

void HopperMachine::emitSetRegisters(LaneLowering &lower, int64_t count,
                                     int64_t before) {
  NVVM::SetMaxRegisterOp::create(lower.b, count,
                                 count > before
                                     ? NVVM::SetMaxRegisterAction::increase
                                     : NVVM::SetMaxRegisterAction::decrease);
}

void HopperMachine::emitNamedBarrier(LaneLowering &lower, Value id,
                                     int64_t threads, bool wait) {
  ImplicitLocOpBuilder &b = lower.b;
  Value count = lower.i32(threads);
  if (wait)
    NVVM::BarrierOp::create(b, TypeRange(), id, count,
                            NVVM::BarrierReductionAttr(), Value());
  else
    NVVM::BarrierArriveOp::create(b, id, count);
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

void HopperMachine::emitBoxes(LaneLowering &lower, RingLoadOp op,
                              const TileCoordinates &at, Value slot,
                              Value full) {
  ImplicitLocOpBuilder &b = lower.b;
  KVBufferAttr params = op.getRing().getType().getParams();
  // Bytes outside of the tensor are filled in and count; so do those that other
  // blocks of the cluster send.
  emitExpectBytes(lower, full, params.getStageBytes());
  int64_t rows = boxRows(lower, op);
  Value map = lower.tensorMap({at.tensor, rows, params.getBK(),
                               params.getHeadDimOffset(), params.getDepth()});
  Value barrier = pointer(lower, full), mask;
  Values rest = at.position;
  if (isShared(op)) {
    // This block's rows, to the same place in every block.
    Value first = arith::MulIOp::create(b, lower.rank, lower.i32(rows));
    rest.front() = arith::AddIOp::create(b, rest.front(), first);
    slot = arith::AddIOp::create(
        b, slot, arith::MulIOp::create(b, first, lower.i32(rowBytes(params))));
    mask = arith::ConstantIntOp::create(b, (1 << lower.cluster()) - 1, 16);
  }
  int64_t blocks = params.getSmemCols() / params.getBK();
  for (int64_t block = 0; block < blocks; ++block) {
    Value to =
        arith::AddIOp::create(b, slot, lower.i32(block * blockBytes(params)));
    Values position{lower.i32(block * params.getBK())};
    llvm::append_range(position, rest);
    NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
        b, pointer(lower, to, /*cluster=*/bool(mask)), map, position, barrier,
        /*im2colOffsets=*/ValueRange(), mask,
        /*l2CacheHint=*/Value(), NVVM::TMALoadMode::TILE,
        /*isCTAOnly=*/!mask,
        /*group=*/NVVM::CTAGroupKindAttr(), /*predicate=*/Value());
  }
}

LogicalResult HopperMachine::emitRingLoad(LaneLowering &lower, RingLoadOp op,
                                          const TileValues &tile,
                                          const TileCoordinates &at, Value slot,
                                          Value full, Value empty,
                                          Value emptyParity) {
  ImplicitLocOpBuilder &b = lower.b;
  KVBufferAttr params = op.getRing().getType().getParams();
  TileType type = op.getTile().getType();
  if (failed(checkSwizzle(op, params)))
    return failure();
  if (isShared(op) && params.getBN() % (kSwizzleRows * lower.cluster()))
    return op.emitOpError()
           << "cannot divide " << params.getBN() << " rows among "
           << lower.cluster() << " blocks; expected a multiple of "
           << kSwizzleRows * lower.cluster();
  if (params.getBN() > 256)
    return op.emitOpError() << "loads " << params.getBN()
                            << " rows, the copy engine at most 256";

  // One thread waits for slots, whoever fills them: the others may be many
  // fillings behind, where a parity no longer tells which phase it means.
  auto byFirst = [&](function_ref<void()> emit) {
    OpBuilder::InsertionGuard guard(b);
    if (!lower.singleProducer)
      b.setInsertionPointToStart(
          scf::IfOp::create(b, lower.firstOfProducers, /*withElseRegion=*/false)
              .thenBlock());
    emitBarrierWait(lower, empty, emptyParity);
    emit();
  };
  auto boxes = [&] { byFirst([&] { emitBoxes(lower, op, at, slot, full); }); };
  auto copies = [&] {
    int64_t threads = lower.schedule.getProducers() * lower.target.waveSize;
    auto meetProducers = [&] {
      emitNamedBarrier(lower, lower.i32(once(lower, copyBarrier, 1)), threads,
                       /*wait=*/true);
    };
    byFirst([] {});
    meetProducers();
    emitCopies(lower, {type, params, threads}, tile, slot,
               /*checkRows=*/!op.getWhole());
    NVVM::CpAsyncCommitGroupOp::create(b);
    NVVM::CpAsyncWaitGroupOp::create(b, 0);
    // Each thread makes its own writes visible to the matrix unit; then all of
    // them have.
    NVVM::FenceProxyOp::create(
        b, NVVM::ProxyKind::async_shared,
        NVVM::SharedSpaceAttr::get(b.getContext(),
                                   NVVM::SharedSpace::shared_cta));
    meetProducers();
    emitBarrierArrive(lower, full, lower.firstOfProducers);
  };

  if (type.getPageSize()) {
    copies();
    return success();
  }
  if (!lower.needsCopies(op)) {
    boxes();
    return success();
  }
  Value whole;
  auto require = [&](Value condition) {
    whole = whole ? arith::AndIOp::create(b, whole, condition) : condition;
  };
  if (at.rowsBefore)
    require(arith::CmpIOp::create(b, arith::CmpIPredicate::sle, tile.lo,
                                  lower.i32(0)));
  if (at.rowsBehind)
    require(arith::CmpIOp::create(b, arith::CmpIPredicate::sge, tile.hi,
                                  lower.i32(type.getRows())));
  auto ifWhole = scf::IfOp::create(b, whole, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifWhole.thenBlock());
  boxes();
  b.setInsertionPointToStart(ifWhole.elseBlock());
  copies();
  return success();
}
