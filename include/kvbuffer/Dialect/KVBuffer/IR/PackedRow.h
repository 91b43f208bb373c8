//===- PackedRow.h - Rows of parts of several types -------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_PACKEDROW_H
#define KVBUFFER_DIALECT_KVBUFFER_IR_PACKEDROW_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"

namespace kvbuf {

/// How the rows of a cache of this type are packed; null where elements lie as
/// they are, and for types that are no caches.
RowAttr packedRowOf(mlir::Type cache);

/// The part of a packed row that has element `element`, and its place in it.
std::pair<RowPartAttr, int64_t> partOf(RowAttr row, int64_t element);

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_PACKEDROW_H
