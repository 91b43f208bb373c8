//===- DecodeSizes.h - How work of few query rows is divided ----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_PROGRAMS_ATTENTION_DECODESIZES_H
#define KVBUFFER_LIB_PROGRAMS_ATTENTION_DECODESIZES_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Target/TargetInfo.h"

namespace kvbuf {

/// How a problem whose keys are split is divided among blocks, as expressions
/// over the sizes of a launch, which the host computes.
class DecodeSizes {
public:
  /// `schedule`: that of one warp, or of all that share a tile; `warps`: such
  /// parts of a block, each with tiles of its own.
  DecodeSizes(AttentionOp op, const TargetInfo &target, ScheduleAttr schedule,
              int64_t warps);

  /// Splits of a sequence's keys.
  mlir::Attribute splitsOf() const;
  /// The tiles of keys that some row of a sequence sees; null where the host
  /// does not know them.
  mlir::Attribute tilesOnHost() const;
  /// Blocks of a head that have equal shares.
  mlir::Attribute workersOf() const;
  /// Whether neighbouring blocks are a cluster, whose two have a sequence
  /// together where each has half of it.
  bool pairsBlocks() const;
  /// Tiles of the query rows of a sequence times heads of the cache, or times
  /// another count.
  mlir::Attribute linesOf() const { return timesSlices(number(lineHeads)); }
  /// Those that blocks have, where the warps of one have several heads.
  mlir::Attribute linesOfBlocks() const {
    return timesSlices(number(lineHeads / heads));
  }
  /// Whether tiles of a sequence's query rows are counted with heads, not with
  /// parts of the keys: so that those of the same keys follow each other where
  /// blocks have equal shares, or dies have runs of items.
  bool slicesBesideHeads() const {
    return schedule.getSplitKeys()->equalShares ||
           schedule.getStructure().dies() > 1;
  }
  mlir::Attribute timesSlices(mlir::Attribute count) const {
    return oneTile ? count : expr("product", {count, slices});
  }
  /// The query rows of the sequences that this kernel computes
  /// (`kSharedRowsAttr`): more than the first (null: 0), up to the second; both
  /// null where it computes all.
  std::pair<mlir::Attribute, mlir::Attribute> ownRowsOf() const;
  /// The fewest keys of a block.
  int64_t leastSplit() const;
  /// The splits that `room` keys are worth; 0 or 1: none.
  mlir::Attribute worthOf(mlir::Attribute room) const;

  mlir::Attribute str(llvm::StringRef text) const;
  mlir::Attribute number(int64_t value) const;
  mlir::Attribute expr(llvm::StringRef name,
                       llvm::ArrayRef<mlir::Attribute> operands) const;

  mutable AttentionOp op;
  const TargetInfo &target;
  ScheduleAttr schedule;
  int64_t warps;
  /// Heads of the cache that a block's warps have side by side, one each.
  int64_t heads = 1;
  MaskAttr mask;
  /// Parts of the query heads of a head of the cache, of which a tile has one;
  /// heads of a part; such parts of all heads.
  int64_t headParts, group, lineHeads;
  /// Query rows of a sequence, -1 where types leave them open; those of a
  /// block's tile, at most.
  int64_t tokens, ownQueries;
  /// Whether a tile has all query rows of a sequence; else how many tiles these
  /// take at most, an expression over sizes.
  bool oneTile;
  mlir::Attribute slices;

  /// Sequences that may have rows beyond those that the launch says: none where
  /// other kernels take the longer ones.
  mlir::Attribute sequencesWithRest() const;

  /// Blocks that a multiprocessor has at the same time.
  int64_t residentBlocks() const;
  /// As many lines (`linesOf`) as there are in any launch.
  int64_t fewestLines() const;

private:
  /// Those of all multiprocessors.
  mlir::Attribute busyBlocks() const;
};

} // namespace kvbuf

#endif // KVBUFFER_LIB_PROGRAMS_ATTENTION_DECODESIZES_H
