//===- CacheLayout.h - How a cache lies in memory ---------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the interface `CacheLayout` speaks of: the memrefs that a cache value
/// is made of, and the places of rows in them.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_CACHELAYOUT_H
#define KVBUFFER_DIALECT_KVBUFFER_IR_CACHELAYOUT_H

#include "mlir/IR/Builders.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <optional>

namespace kvbuf {

/// Granularities of quantization that are no number of elements.
inline constexpr int64_t kPerTensor = 0, kPerHead = -1;

/// What launches call sizes of caches with a table, unless an argument has
/// other names for them (`sizeOfCache`): slots or pages that the cache has,
/// rows of a slot, and entries of a sequence's row of a table of pages.
inline constexpr llvm::StringLiteral kBlocksSize = "num_blocks",
                                     kSlotRowsSize = "max_seq",
                                     kTableRowSize = "pages_per_seq";

/// A dimension of a tensor that belongs to a cache.
struct CacheDim {
  /// Its extent, or ShapedType::kDynamic.
  int64_t size;
  /// The size of the launch that a dynamic extent is, `plus` less.
  llvm::StringRef name;
  int64_t plus = 0;
};

/// A tensor of integers that says where rows are: a table, lengths, offsets.
struct CacheTensor {
  llvm::StringRef name;
  llvm::SmallVector<CacheDim, 2> dims;
};

/// What a cache value is made of (`kvbuffer.make_cache`).
struct CacheParts {
  /// Leading dimensions, heads, columns.
  mlir::Value data;
  /// In the order of CacheLayout::getIndexTensors.
  llvm::SmallVector<mlir::Value, 2> indices;
  /// Of shape [1] or [heads], or as the data with a column a group of elements;
  /// null without quantization.
  mlir::Value scales;
  /// Of the request, both null where the maker did not say.
  mlir::Value maxPrompt, maxContext;
};

/// How the rows of many tokens are found at once. The row of token t of
/// sequence s has these indices in the leading dimensions of the data:
///
///   [offsets[s] + t]        with `offsets`, of a kind without blocks
///   [table[s, t / r], t % r] with `table` and a run of r tokens
///   [table[s], t]            with `table`, where all rows of a sequence lie
///                            together
///   [s, t]                   with neither
///
/// and a sequence has as many tokens as `lengths` says for it, or as there is
/// room for. A kind of which this is not so has its rows `byPlace`.
struct CacheRows {
  /// Whether only `CacheLayout::emitPlace` knows where a row is. Tokens of a
  /// run have neighbouring rows all the same, and what a sequence has room for
  /// is what `emitRoom` says.
  bool byPlace = true;
  /// Which of the kind's index tensors is the table of blocks, has the tokens
  /// of each sequence, or the first row of each and the end of the last one.
  std::optional<unsigned> table, lengths, offsets;

  /// Rows of blocks that sequences have in their order.
  static CacheRows inOrder() { return {/*byPlace=*/false, {}, {}, {}}; }
  /// Rows of blocks that a table names.
  static CacheRows inTable(unsigned table, unsigned lengths) {
    return {/*byPlace=*/false, table, lengths, {}};
  }
  /// Rows of all sequences, one after the other.
  static CacheRows from(unsigned offsets) {
    return {/*byPlace=*/false, {}, {}, offsets};
  }

  /// Whether the tensor ends where a sequence does.
  bool endWithData() const {
    return !byPlace && !table && !offsets && !lengths;
  }
};

/// Where the row of a token is.
struct CachePlace {
  /// An index in each leading dimension; zeros where `valid` is false.
  llvm::SmallVector<mlir::Value, 2> lead;
  /// An i1; null where it was not asked for.
  mlir::Value valid;
};

} // namespace kvbuf

#include "kvbuffer/Dialect/KVBuffer/IR/CacheLayout.h.inc"

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_CACHELAYOUT_H
