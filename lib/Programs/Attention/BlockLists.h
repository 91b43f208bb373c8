//===- BlockLists.h - Tiles of keys that lists name ------*- C++ -*- ===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_PROGRAMS_ATTENTION_BLOCKLISTS_H
#define KVBUFFER_LIB_PROGRAMS_ATTENTION_BLOCKLISTS_H

#include "TileScores.h"

namespace kvbuf {

/// The tiles of keys of a tile of queries, of a problem with a block mask:
/// those of the blocks that are partly visible, and then of those that are
/// wholly so.
class BlockLists {
public:
  /// Of the block of queries that the row `at.query` is in. `tileKeys` divides
  /// the blocks of keys; `args` maps the problem's operands.
  BlockLists(mlir::ImplicitLocOpBuilder &b, AttentionOp op,
             const mlir::IRMapping &args, const ScoreTile &at,
             int64_t tileKeys);

  /// How many tiles there are.
  mlir::Value getCount() const { return count; }
  /// The first so many of them are partly visible.
  mlir::Value getPartly() const { return partly; }
  /// Whether the end of the sequence cuts a block, an i1.
  mlir::Value getIsCut() const { return isCut; }
  /// The first key of tile `i`.
  mlir::Value keyOf(mlir::ImplicitLocOpBuilder &b, mlir::Value i) const;

private:
  /// A list of blocks, and its place for the block of queries.
  struct List {
    mlir::Value blocks;
    /// How many there are, an i32; null: no such list.
    mlir::Value count;
  };
  /// The list that the captures `counts` and `blocks` are.
  List makeList(mlir::ImplicitLocOpBuilder &b, mlir::Value counts,
                mlir::Value blocks);

  int64_t tileKeys, blockKeys;
  List partial, whole;
  /// Where the block of queries stands in each list.
  llvm::SmallVector<mlir::Value> place;
  /// The last block of keys of the sequence, an i32.
  mlir::Value lastBlock;
  /// The most entries of a list that may be read, an i32.
  mlir::Value room;
  /// Tiles, and those of partly visible blocks.
  mlir::Value count, partly, isCut;
};

} // namespace kvbuf

#endif // KVBUFFER_LIB_PROGRAMS_ATTENTION_BLOCKLISTS_H
