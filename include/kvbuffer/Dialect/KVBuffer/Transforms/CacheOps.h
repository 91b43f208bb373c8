//===- CacheOps.h - Patterns for ops on caches ------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_CACHEOPS_H
#define KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_CACHEOPS_H

#include "mlir/IR/PatternMatch.h"

namespace kvbuf {

/// Adds the patterns of `kvbuf-expand-cache-ops`: ops on caches that
/// `kvbuffer.make_cache` made become ops of memref, vector, arith and scf. The
/// `make_cache` itself stays, without uses.
void populateExpandCacheOpsPatterns(mlir::RewritePatternSet &patterns);

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_CACHEOPS_H
