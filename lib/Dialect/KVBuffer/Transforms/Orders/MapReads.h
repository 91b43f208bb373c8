//===- MapReads.h - What maps read, apart from them -------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_ORDERS_MAPREADS_H
#define KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_ORDERS_MAPREADS_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"

namespace kvbuf {

/// Takes what the maps of a loop's body read from tensors for each column out
/// of them, also where maps stand in branches: it becomes maps that only read,
/// in branches on the same conditions, whose results the maps get as inputs.
/// They need nothing but numbers that index arithmetic makes, so that they may
/// stand anywhere behind that. Returns the new ops of the body in their order.
llvm::SmallVector<mlir::Operation *> separateReads(mlir::RewriterBase &rewriter,
                                                   mlir::scf::ForOp loop);

} // namespace kvbuf

#endif // KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_ORDERS_MAPREADS_H
