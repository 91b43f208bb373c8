//===- CheckKernel.h - Kernels of a stage against the chip ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the conversions ask before they lower a kernel, which may have been
/// edited by hand: whether the chip has what it names. Each says at the op what
/// the chip lacks, and what it has.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_COMMON_CHECKKERNEL_H
#define KVBUFFER_LIB_CONVERSION_COMMON_CHECKKERNEL_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Target/TargetInfo.h"
#include <optional>

namespace kvbuf {

/// A kernel of the tile or the scheduled stage: whether its schedule fits the
/// chip (`ScheduleLimits`), and the elements of its fragments.
mlir::LogicalResult checkSchedule(mlir::gpu::GPUFuncOp kernel,
                                  ScheduleAttr schedule,
                                  const TargetInfo &target);

/// That kernel, once its fragments have layouts: that these are code for the
/// chip and divide the fragments, and that its buffers and their elements are
/// those that the schedule and the chip have room for.
mlir::LogicalResult checkTiles(mlir::gpu::GPUFuncOp kernel,
                               ScheduleAttr schedule, const TargetInfo &target);

/// The kernels of a module at the thread stage: their matrix instructions,
/// copies into LDS and transposed reads of it.
mlir::LogicalResult checkLanes(mlir::gpu::GPUModuleOp module,
                               const TargetInfo &target);

/// A buffer that the schedule's warps fill and read, made by `op`, which
/// messages are at; of `checkTiles`.
mlir::LogicalResult checkBuffer(mlir::Operation *op, KVBufferAttr params,
                                ScheduleAttr schedule,
                                const TargetInfo &target);

/// A buffer whose elements are turned is for chips whose lanes do that; where a
/// copy engine fills rings, it knows no registers; of `checkTiles`.
mlir::LogicalResult checkPolicy(mlir::Operation *op, KVBufferAttr params,
                                const TargetInfo &target);

/// The instruction that a kernel's schedule names for products of a kind, which
/// `checkSchedule` has found.
const MatrixInstruction &instructionOf(mlir::Operation *op,
                                       ScheduleAttr schedule,
                                       const TargetInfo &target,
                                       ProductKind kind);

/// Whose warps and rows an op has, for a message: "a team that has", or a
/// kernel.
llvm::StringRef placeOf(mlir::Operation *op);

/// An instruction's shape (m, n, k) for a message.
std::string shapeOf(llvm::ArrayRef<int64_t> shape);

/// An op by which a kernel needs a chip that fills rings and hands out
/// registers anew; null if it runs on every chip.
mlir::Operation *findRings(mlir::gpu::GPUFuncOp kernel);

/// A copy of `bytes` a lane from DRAM into LDS; no number: it is not constant.
mlir::LogicalResult checkLdsCopy(mlir::Operation *op,
                                 std::optional<int64_t> bytes,
                                 const TargetInfo &target);

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_COMMON_CHECKKERNEL_H
