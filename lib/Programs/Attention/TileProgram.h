//===- TileProgram.h - Programs of tiles of queries -------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The tile program of a problem whose blocks take tiles of query rows each,
/// and what it shares with those of few rows (LowerDecode.h).
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_PROGRAMS_ATTENTION_TILEPROGRAM_H
#define KVBUFFER_LIB_PROGRAMS_ATTENTION_TILEPROGRAM_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kvbuf {

/// The page size of a problem's caches if pages do not hold whole tiles of the
/// schedule, or of `rows` rows, else 0.
int64_t smallPageOf(AttentionOp op, int64_t rows = 0);

/// Allocates the buffer of an operand with `rows` rows a slot: what the problem
/// and its schedule say of it, the rest is open.
mlir::TypedValue<BufferType> allocOperand(mlir::ImplicitLocOpBuilder &b,
                                          AttentionOp op,
                                          const TargetInfo &target,
                                          Operand operand, int64_t rows,
                                          int64_t stages);

/// What the read of a slot says that its product contracts.
DimensionAttr contracts(mlir::OpBuilder &b, Dimension dimension);

/// What accumulators come to as elements of the output.
mlir::Value roundOutput(mlir::ImplicitLocOpBuilder &b, mlir::Value acc,
                        mlir::Type element);

/// Entry `i` of offsets, a memref of integers that nobody has checked: the
/// nearest row from `least` to `most`.
mlir::Value loadOffset(mlir::ImplicitLocOpBuilder &b, mlir::Value offsets,
                       mlir::Value i, mlir::Value least, mlir::Value most);

/// Builds the tile program of a problem whose schedule does not split keys at
/// the insertion point, in a kernel. `args` maps the problem's operands.
void buildTiles(mlir::ImplicitLocOpBuilder &b, AttentionOp op,
                const TargetInfo &target, const mlir::IRMapping &args);

} // namespace kvbuf

#endif // KVBUFFER_LIB_PROGRAMS_ATTENTION_TILEPROGRAM_H
