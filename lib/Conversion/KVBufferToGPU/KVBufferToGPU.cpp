//===- KVBufferToGPU.cpp - Lower tile programs to per-lane code -*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/CheckKernel.h"
#include "LaneLowering.h"
#include "kvbuffer/Conversion/Passes.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ChooseTarget.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/DistributeFragments.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/PassNumbers.h"
#include "mlir/Dialect/AMDGPU/IR/AMDGPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

namespace kvbuf {
#define GEN_PASS_DEF_CONVERTKVBUFFERTOGPU
#include "kvbuffer/Conversion/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

namespace {
struct ConvertKVBufferToGPUPass
    : kvbuf::impl::ConvertKVBufferToGPUBase<ConvertKVBufferToGPUPass> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registerLaneLoweringModels(registry);
  }

  void runOnOperation() override {
    std::optional<TargetInfo> target = targetOf(getOperation());
    SmallVector<gpu::GPUFuncOp> kernels;
    for (auto kernel : getOperation().getOps<gpu::GPUFuncOp>()) {
      auto phase =
          kernel->getAttrOfType<PhaseAttr>(KVBufferDialect::kPhaseAttr);
      if (!phase && failed(checkNoTiles(kernel)))
        return signalPassFailure();
      if (phase && (phase.getValue() == Phase::Scheduled ||
                    phase.getValue() == Phase::Tile))
        kernels.push_back(kernel);
    }
    for (gpu::GPUFuncOp kernel : kernels) {
      auto schedule =
          kernel->getAttrOfType<ScheduleAttr>(KVBufferDialect::kScheduleAttr);
      if (!target || !schedule) {
        kernel.emitOpError()
            << "needs a '" << KVBufferDialect::kScheduleAttr << "' and a '"
            << KVBufferDialect::kTargetAttr << "' on the module";
        return signalPassFailure();
      }
      if (failed(checkSchedule(kernel, schedule, *target)) ||
          failed(distributeFragments(kernel, schedule, *target)) ||
          failed(checkTiles(kernel, schedule, *target)))
        return signalPassFailure();
      bool rings = findRings(kernel) != nullptr;
      if (failed(checkAlignment(kernel, rings)))
        return signalPassFailure();
      std::unique_ptr<Machine> machine = createMachine(*target, rings);
      LaneLowering lowering(kernel, *target, schedule, *machine, alignment);
      if (failed(lowering.run()))
        return signalPassFailure();
    }
  }

private:
  /// A function that no phase makes a kernel is left alone; tiles in it would
  /// stay tiles.
  static LogicalResult checkNoTiles(gpu::GPUFuncOp function) {
    WalkResult result = function.walk([&](Operation *op) -> WalkResult {
      auto isTile = [](Type type) {
        return isa<CacheLayout, TileType, BufferType, TokenType, StagedType,
                   FragmentType, RingType, MailboxType, PendingType, QueueType,
                   ShelfType>(type);
      };
      // Ops on caches by lanes are for kvbuf-expand-cache-ops.
      if (op->hasTrait<OnCaches>() ||
          (!llvm::any_of(op->getOperandTypes(), isTile) &&
           !llvm::any_of(op->getResultTypes(), isTile)))
        return WalkResult::advance();
      InFlightDiagnostic diag =
          op->emitOpError()
          << "is in a function without '" << KVBufferDialect::kPhaseAttr
          << "', which is not lowered; expected #kvbuffer.phase<tile> or "
             "#kvbuffer.phase<scheduled> on it";
      diag.attachNote(function.getLoc()) << "the function is here";
      return diag;
    });
    return failure(result.wasInterrupted());
  }

  /// Whether kernels of this kind can assume no more than `alignment`.
  LogicalResult checkAlignment(gpu::GPUFuncOp kernel, bool rings) {
    int64_t bytes = alignment;
    if (failed(kvbuf::checkAlignment(kernel, bytes)))
      return failure();
    if (bytes == kTensorAlignment)
      return success();
    if (rings)
      return kernel.emitOpError()
             << "is to be lowered with alignment = " << bytes
             << ", but has rings, whose copy engine needs 16 bytes; "
                "expected a schedule with producers = 0";
    return success();
  }
};
} // namespace
