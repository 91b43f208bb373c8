//===- MachineAMDRings.h - Rings on AMD's CDNA ------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// There are no barriers by phases. In place of one stand two words of LDS: how
/// many have arrived, and the last number before it is 0 again, 2 n - 1 where n
/// arrivals complete a phase. The first phase is over from n arrivals on, the
/// second one when the number is less again: waves poll, and sleep in between.
///
/// Slots are filled by all waves of the team that moves, as any tile is
/// (MachineAMD.h); each waits for its copies and arrives once.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_AMD_MACHINEAMDRINGS_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_AMD_MACHINEAMDRINGS_H

#include "MachineAMD.h"

namespace kvbuf {

class AMDRingMachine : public AMDMachine,
                       public PhaseBarriers,
                       public BoxCopies {
public:
  PhaseBarriers *phaseBarriers() override { return this; }
  BoxCopies *boxCopies() override { return this; }
  mlir::LogicalResult prepare(Lanes &lower,
                              mlir::gpu::GPUFuncOp kernel) override;

  // Counters.
  void emitBarrierInit(Lanes &lower,
                       llvm::ArrayRef<LdsBarrier> barriers) override;
  void emitBarrierWait(Lanes &lower, mlir::Value barrier,
                       mlir::Value parity) override;
  void emitBarrierArrive(Lanes &lower, mlir::Value barrier,
                         mlir::Value predicate) override;
  /// The lanes of a wave are in step.
  void emitWarpMeet(Lanes &lower) override {}
  /// Nothing but lanes reads LDS.
  void emitPublish(Lanes &lower) override {}

  // There are no clusters, and no engine that counts bytes.
  void emitClusterArrive(Lanes &lower, mlir::Value barrier, mlir::Value rank,
                         mlir::Value predicate) override;
  void emitExpectBytes(Lanes &lower, mlir::Value barrier,
                       int64_t bytes) override;
  void emitClusterStore(Lanes &lower, mlir::Value value, mlir::Value word,
                        mlir::Value barrier, mlir::Value rank) override;
  void emitClusterEnter(Lanes &lower) override;
  void emitClusterMeet(Lanes &lower) override;

  // Waves that move.
  mlir::Value emitElect(Lanes &lower) override;
  llvm::SmallVector<TensorMapRequest>
  tensorMapsFor(Lanes &lower, mlir::Operation *op) override {
    return {};
  }
  mlir::Type tensorMapType(mlir::MLIRContext *context) override;
  Movers moversOf(Lanes &lower, RingLoadOp op) override { return Movers::Warp; }
  /// All of the team.
  int64_t warpsOfSlot(Lanes &lower, RingLoadOp op) override;
  mlir::LogicalResult emitRingLoad(LaneLowering &lower, RingLoadOp op,
                                   const TileView &tile, mlir::Value slot,
                                   mlir::Value full, mlir::Value empty,
                                   mlir::Value emptyParity) override;

private:
  /// The block's barrier, or the counter of a team of several waves.
  void emitBarrier(Lanes &lower) override;
  /// Adds to a counter; returns the number before, and in `last` its last one.
  mlir::Value emitCount(Lanes &lower, mlir::Value barrier, mlir::Value &last);
  /// Polls a counter until its phase of this parity is over.
  void emitPoll(Lanes &lower, mlir::Value barrier, mlir::Value parity);

  /// The counters of teams of several waves, by their ops.
  llvm::DenseMap<mlir::Operation *, int64_t> teamCounters;
};

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_AMD_MACHINEAMDRINGS_H
