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

namespace kvbuf {

/// An operand of a problem, and the name that it has in the kernel and in the
/// manifest. Those that a problem lacks have null values.
struct NamedOperand {
  mlir::Value value;
  llvm::StringRef name;
};

/// The operands of a problem. A cache's own tensors have its name and theirs:
/// "k.table" (`CacheLayout::getIndexTensors`), "k.scales".
llvm::SmallVector<NamedOperand> namedOperands(AttentionOp op);
llvm::SmallVector<NamedOperand> namedOperands(CacheAppendOp op);

/// A copy of a problem on memrefs, with other operands; its regions read these.
mlir::Operation *cloneProblem(mlir::OpBuilder &b, mlir::Operation *problem,
                              mlir::ValueRange operands);

struct TargetInfo;

/// The most query rows of a sequence for which a launch does better with a
/// kernel that splits keys over blocks, where the problem's types leave the
/// number of rows open; none where no such kernel fits the chip, and where a
/// row's bits must not depend on how many there are. The problem is on memrefs.
std::optional<int64_t> fewQueryRows(AttentionOp op, const TargetInfo &target);

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_PROBLEMS_H
