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
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kvbuf {

/// Zeros follow a sequence's keys up to a multiple of so many, which tiles of
/// keys divide. What is behind the last key in its tile is multiplied by
/// weights of 0, and so has to be a number.
inline constexpr int64_t kZerosBehind = 128;

/// Whether such a kernel can widen the caches of a problem: dense or paged ones
/// of 8-bit floats, without scales of tokens, of which every key before a
/// sequence's end may be read.
bool canWidenAhead(AttentionOp op);

/// A dense cache in memory of the launch, as a new argument `name` of the
/// kernel that is built: where another kernel has widened `cache`, whose value
/// in this kernel is `given`, to `element`. [sequence, key, head, column].
mlir::Value makeWidenedCache(mlir::ImplicitLocOpBuilder &b, CacheType cache,
                             mlir::Value given, llvm::StringRef name,
                             mlir::Type element);

/// A module at the thread stage with a kernel `name` that widens K and V of a
/// problem, whose first kernel, at the target stage, describes the tensors. It
/// writes `k.wide` and `v.wide` (`kWidenedAttr`); behind the last key of a
/// sequence zeros follow up to the end of the widest tile of keys.
mlir::OwningOpRef<mlir::ModuleOp> buildWidening(AttentionOp op,
                                                mlir::LLVM::LLVMFuncOp first,
                                                llvm::StringRef name);

} // namespace kvbuf

#endif // KVBUFFER_LIB_PROGRAMS_ATTENTION_WIDENCACHES_H
