//===- LowerDecode.h - Programs of few query rows ---------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_LOWERDECODE_H
#define KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_LOWERDECODE_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kvbuf {

/// The page size of a problem's caches if pages do not hold whole tiles of the
/// schedule, else 0.
int64_t smallPageOf(AttentionOp op);

/// Allocates the buffer of an operand with `rows` rows a slot.
mlir::TypedValue<BufferType> allocOperand(mlir::ImplicitLocOpBuilder &b,
                                          AttentionOp op,
                                          const TargetInfo &target,
                                          Operand operand, int64_t rows,
                                          int64_t stages);

/// Builds the tile program of a problem whose schedule splits keys
/// (`split_keys`) at the insertion point, in `kernel`, which gets a workspace
/// and counters as further arguments. `args` maps the problem's operands.
void buildDecode(mlir::ImplicitLocOpBuilder &b, AttentionOp op,
                 const TargetInfo &target, const mlir::IRMapping &args,
                 mlir::gpu::GPUFuncOp kernel);

} // namespace kvbuf

#endif // KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_LOWERDECODE_H
