//===- WidenCaches.h - Caches widened ahead of a kernel ---------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Many rows of queries read each tile of keys again and again, and blocks that
/// widen tiles of bytes do so each time. A kernel ahead of theirs does it once.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_PROGRAMS_ATTENTION_WIDENCACHES_H
#define KVBUFFER_LIB_PROGRAMS_ATTENTION_WIDENCACHES_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace kvbuf {

/// Whether such a kernel can widen the caches of a problem: dense or paged ones
/// of 8-bit floats, without scales of tokens, of which every key before a
/// sequence's end may be read.
bool canWidenAhead(AttentionOp op);

/// A module at the thread stage with a kernel `name` that widens K and V of a
/// problem, whose first kernel, at the target stage, describes the tensors. It
/// writes `k.wide` and `v.wide` (`kWidenedAttr`); behind the last key of a
/// sequence zeros follow up to the end of the widest tile of keys.
mlir::OwningOpRef<mlir::ModuleOp> buildWidening(AttentionOp op,
                                                mlir::LLVM::LLVMFuncOp first,
                                                llvm::StringRef name);

} // namespace kvbuf

#endif // KVBUFFER_LIB_PROGRAMS_ATTENTION_WIDENCACHES_H
