//===- DependentLaunches.h - Launches that overlap --------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTONVVM_DEPENDENTLAUNCHES_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTONVVM_DEPENDENTLAUNCHES_H

#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace kvbuf {

/// Lets a kernel of blocks of several warps that count each other in
/// (`kvbuffer.lane_arrive`) begin before the launch before it has ended, and
/// lets the one after it begin once all of its blocks run. It waits for the
/// launches before it ahead of the first access to memory. Kernels without
/// arrivals, those that arrive in a loop and leave no place on a multiprocessor
/// of `target` for as many blocks again as `kResidentBlocksAttr` says, and
/// those that order launches themselves stay as they are. Of two kernels that
/// share launches (`kSharedRowsAttr`) the second may begin once all blocks of
/// the first run, and ends after it; what it takes of shared memory keeps as
/// many blocks to a multiprocessor as `kResidentBlocksAttr` says.
void overlapLaunches(mlir::gpu::GPUFuncOp kernel, const TargetInfo &target);

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTONVVM_DEPENDENTLAUNCHES_H
