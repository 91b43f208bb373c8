//===- SlotReuse.h - Loads into what is still read --------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_SLOTREUSE_H
#define KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_SLOTREUSE_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"

namespace kvbuf {

/// Checks that all warps meet between a read of a buffer of one slot and a load
/// into it that comes next, in the same block or an iteration later: others may
/// read yet what the load overwrites. `loads` are those into the buffer. What
/// is read of a tile that a loop or branch hands on is not looked at.
llvm::LogicalResult checkReuseOfSlot(llvm::ArrayRef<DramLoadOp> loads);

} // namespace kvbuf

#endif // KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_SLOTREUSE_H
