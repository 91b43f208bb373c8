//===- Problems.h - What kernels call a problem's operands ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_PROBLEMS_H
#define KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_PROBLEMS_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Dialect/KVBuffer/IR/SizeNames.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ProblemInterface.h"

namespace kvbuf {

/// The operands of an append, which are a part of other problems, too. A
/// cache's own tensors have its name and theirs: "k.table"
/// (`CacheLayout::getIndexTensors`), "k.scales".
llvm::SmallVector<NamedOperand> namedOperands(CacheAppendOp op);

/// A copy of a problem on memrefs, with other operands; its regions read these.
mlir::Operation *cloneProblem(mlir::OpBuilder &b, mlir::Operation *problem,
                              mlir::ValueRange operands);

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_PROBLEMS_H
