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

/// Neighbouring columns of a tile of packed rows that come from one part.
struct RowSegment {
  RowPartAttr part;
  /// The first one's place in the part and among the tile's columns.
  int64_t inPart, inTile, count;

  /// Bytes of an element, and the row's byte with the first one.
  int64_t width() const;
  int64_t at() const { return part.getAt() + inPart * width(); }
  int64_t bytes() const { return count * width(); }
  /// Whether elements lie in the row as a slot of `element` has them.
  bool isCopied(mlir::Type element) const;
  /// Of scales: the row's byte with the first one, and how many bytes words of
  /// 32 bits bring.
  int64_t scalesAt() const;
  int64_t scaleBytes() const;
};

/// Those of `count` columns from `first` on, as far as the row has them.
llvm::SmallVector<RowSegment> segmentsOf(RowAttr row, int64_t first,
                                         int64_t count);

/// Whether all columns come from one part whose elements a slot of `element`
/// has as they are.
bool isCopiedWhole(llvm::ArrayRef<RowSegment> segments, mlir::Type element);

/// Bytes of a row that are widened: elements, and words with their scales.
int64_t elementBytesOf(llvm::ArrayRef<RowSegment> segments);
int64_t scaleBytesOf(llvm::ArrayRef<RowSegment> segments);

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_PACKEDROW_H
