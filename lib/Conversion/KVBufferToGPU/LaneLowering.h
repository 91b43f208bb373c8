//===- LaneLowering.h - From tiles to lanes ---------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Rewrites a scheduled kernel into per-lane code.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANELOWERING_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANELOWERING_H

#include "KernelSignature.h"
#include "LaneQueues.h"
#include "LaneRingTeams.h"
#include "Lanes.h"

namespace kvbuf {

/// Lowers one kernel: asks each op for its code, and holds what is found out
/// about the kernel on the way, a part for each thing.
class LaneLowering : public Lanes {
public:
  /// See `Lanes`.
  LaneLowering(mlir::gpu::GPUFuncOp kernel, const TargetInfo &target,
               ScheduleAttr schedule, Machine &machine, int64_t alignment);

  /// Replaces the kernel; errors are reported at the op that causes them.
  mlir::LogicalResult run();

  /// Lowers the ops of a block but its terminator, whose operands then have
  /// their lanes.
  mlir::LogicalResult lowerBlock(mlir::Block &block);
  /// Lowers one op, whose operands have their lanes.
  mlir::LogicalResult lowerOp(mlir::Operation *op);

  void setTileRows(mlir::TypedValue<TileType> tile, mlir::Value tensor,
                   mlir::Value rows, RowPlace place) override;
  mlir::Value memrefOf(mlir::Value tensor) override;
  mlir::LogicalResult lowerBody(mlir::Block &body) override {
    return lowerBlock(body);
  }
  mlir::LogicalResult lowerInner(mlir::Operation *op) override;
  mlir::LogicalResult lowerTeam(TeamOp team, int64_t firstWarp) override;
  mlir::LogicalResult startTeams(TeamsOp teams) override {
    return machine.hasRings() ? startRings(*this, teams) : mlir::success();
  }
  void takeRegisters(TeamOp team) override;
  bool isAlone() const override { return rings.alone; }
  bool takesFromRings() const override { return bool(rings.teamStart); }
  mlir::Value groupOfWarps() const override { return rings.group; }
  int64_t groupsOfWarps() const override { return rings.groups; }
  mlir::Value anyOfGroup(mlir::Value condition) override;
  mlir::Value tileCounter() const override { return signature.tileCounter(); }
  bool storesBoxes() const override {
    return machine.boxStores() && team && rings.group;
  }
  mlir::LogicalResult storeBox(FragmentStoreOp op, const TileView &tile,
                               llvm::ArrayRef<mlir::Value> values,
                               mlir::Value buffer) override {
    return machine.boxStores()->emitStoreVia(*this, op, tile, values, buffer);
  }
  mlir::LogicalResult fillSlot(RingLoadOp op, const TileView &tile,
                               mlir::Value slot, mlir::Value full,
                               mlir::Value empty,
                               mlir::Value emptyParity) override {
    return boxes().emitRingLoad(*this, op, tile, slot, full, empty,
                                emptyParity);
  }
  mlir::LogicalResult startProduct(MmaStartOp op, llvm::ArrayRef<mlir::Value> a,
                                   mlir::Value b,
                                   llvm::ArrayRef<mlir::Value> acc,
                                   Values &results) override {
    return machine.asyncProducts()->emitMmaStart(*this, op, a, b, acc, results);
  }
  mlir::LogicalResult scaleOperand(RingWaitOp op, mlir::Value slot,
                                   float by) override {
    if (!machine.asyncProducts())
      return op.emitOpError() << "multiplies a slot; " << target.chip
                              << " has no products that read it by themselves";
    return machine.asyncProducts()->emitScale(*this, op, slot, by);
  }
  TensorArg &tensorOf(mlir::Value tensor) override {
    return signature.tensor(tensor);
  }
  const TensorArg *findTensor(mlir::Value value) const override {
    return signature.findTensor(value);
  }
  mlir::Value offsetOf(mlir::Value tensor,
                       mlir::OperandRange indices) override {
    return signature.offsetOf(tensor, indices);
  }
  mlir::Value launchSize(llvm::StringRef name) override {
    return signature.launchSize(name);
  }
  mlir::Value launchValue(mlir::Attribute expression) const override {
    return signature.launchValue(expression);
  }
  mlir::Value roomOf(mlir::Value cache, mlir::Operation *op) override {
    return signature.roomOf(cache, op);
  }

  /// What the kernel is launched with, and what it knows by that.
  KernelSignature signature;
  /// Of a kernel with rings: their teams, slots and clusters.
  LaneRingTeams &rings;
  /// Whether arithmetic on indices may be done in 32 bits: that of tiles, not
  /// that of a problem's own functions, which may be of any size.
  bool narrowsIndices = true;
};

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANELOWERING_H
