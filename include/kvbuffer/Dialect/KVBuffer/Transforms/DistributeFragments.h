//===- DistributeFragments.h - Layouts of a kernel's fragments --*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_DISTRIBUTEFRAGMENTS_H
#define KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_DISTRIBUTEFRAGMENTS_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Target/TargetInfo.h"

namespace kvbuf {

/// Gives every fragment of a kernel that has no layout one (the pass
/// `kvbuf-distribute-fragments`); a kernel whose fragments all have one stays
/// as it is. Where no layouts fit together it says so at the op.
llvm::LogicalResult distributeFragments(mlir::gpu::GPUFuncOp kernel,
                                        ScheduleAttr schedule,
                                        const TargetInfo &target);

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_DISTRIBUTEFRAGMENTS_H
