//===- VisibleLists.h - A kernel that lists visible blocks ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_PROGRAMS_ATTENTION_VISIBLELISTS_H
#define KVBUFFER_LIB_PROGRAMS_ATTENTION_VISIBLELISTS_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kvbuf {

/// The problem, and what its lists depend on.
struct VisibleLists {
  AttentionOp op;
  mlir::func::FuncOp func;
  int64_t rows, keys;

  mlir::BlockArgument batch() { return op.getVisible().getArgument(0); }
  mlir::BlockArgument head() { return op.getVisible().getArgument(1); }
  mlir::BlockArgument row() { return op.getVisible().getArgument(2); }
  mlir::BlockArgument position() { return op.getVisible().getArgument(3); }
  mlir::BlockArgument key() { return op.getVisible().getArgument(4); }
  /// The region's argument for a capture.
  mlir::BlockArgument inside(unsigned capture) {
    return op.getVisible().getArgument(5 + capture);
  }
  mlir::MemRefType queries() {
    return llvm::cast<mlir::MemRefType>(op.getQ().getType());
  }

  /// The sizes of a list: sequences and heads where the region tells them
  /// apart, else one, and blocks.
  llvm::SmallVector<mlir::Attribute> shape(bool isNumbers);
};

/// Threads of a block of the kernel, and the words of LDS that they have.
inline constexpr int64_t kListThreads = 512, kListWords = 32;

/// What the kernel is given: its arguments for Q, for K and for the lists, the
/// words, and what the region reads captures by.
struct VisibleListOperands {
  mlir::Value q, k;
  llvm::ArrayRef<mlir::Value> outputs;
  mlir::Value words;
  mlir::IRMapping captures;
};

/// Builds the body of the kernel where `b` stands.
void buildVisibleLists(mlir::ImplicitLocOpBuilder &b, VisibleLists lists,
                       const VisibleListOperands &operands);

} // namespace kvbuf

#endif // KVBUFFER_LIB_PROGRAMS_ATTENTION_VISIBLELISTS_H
