//===- LowerDecode.h - Programs of few query rows ---------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_PROGRAMS_ATTENTION_LOWERDECODE_H
#define KVBUFFER_LIB_PROGRAMS_ATTENTION_LOWERDECODE_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kvbuf {

/// Builds the tile program of a problem whose schedule splits keys
/// (`split_keys`) at the insertion point, in `kernel`, which gets a workspace
/// and counters as further arguments. `args` maps the problem's operands, and
/// those of `append` (null: there is none), whose tokens the blocks store that
/// read them.
void buildDecode(mlir::ImplicitLocOpBuilder &b, AttentionOp op,
                 const TargetInfo &target, const mlir::IRMapping &args,
                 mlir::gpu::GPUFuncOp kernel, CacheAppendOp append);

/// Whether a kernel that splits keys can store the new tokens of `append`
/// besides; an error at it says what cannot be.
llvm::LogicalResult checkAppend(AttentionOp op, CacheAppendOp append,
                                const TargetInfo &target);

} // namespace kvbuf

#endif // KVBUFFER_LIB_PROGRAMS_ATTENTION_LOWERDECODE_H
