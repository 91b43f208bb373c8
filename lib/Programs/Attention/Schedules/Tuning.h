//===- Tuning.h - Measured numbers that attention is scheduled by -*- C++
//-*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What was measured, and no data sheet has: from which sizes on one program of
/// attention gains over another. A chip's table (TargetInfo.h) has what a chip
/// can do; proposals, and the launches that choose among kernels, ask here.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_PROGRAMS_ATTENTION_SCHEDULES_TUNING_H
#define KVBUFFER_LIB_PROGRAMS_ATTENTION_SCHEDULES_TUNING_H

#include "kvbuffer/Target/TargetInfo.h"

namespace kvbuf {

/// The numbers for one chip.
struct Tuning {
  explicit Tuning(const TargetInfo &target);

  // Keys that are split over blocks.

  /// Blocks of split keys that a multiprocessor is given at a time: as many as
  /// have enough bytes in flight for the memory's speed.
  int64_t splitsPerMultiprocessor = 8;
  /// How many times as many where a tile has several pages: less of a block's
  /// time is for copies, and more blocks have as much on its way; and where
  /// these are pages of fewer than 16 tokens of a quantized cache, which have
  /// half the bytes.
  int64_t splitsOfSmallPages = 2, splitsOfSmallNarrowPages = 3;
  /// Keys that are worth a block of one warp: fewer take less time than the
  /// partial result of another block costs.
  int64_t leastSplitKeys = 128;
  /// What a block of one warp could read while it ends with one sequence and
  /// begins with the next, bytes: its arrival, then the look-up and the first
  /// copies of the next one's keys. Shares of unequal sequences count it from
  /// `pauseSequences` of them on: of few, blocks have a piece each, and short
  /// ones would come in more pieces than they are worth.
  int64_t pauseBytes = 0, pauseSequences = 16;
  /// Elements of a head up to which a multiprocessor holds so many blocks of
  /// one warp that any number of them fills it; of longer heads blocks of
  /// several warps are taken where these come in whole turns, too.
  int64_t narrowHeadSize = 128;
  /// Query rows, of all heads that share a head of the cache, up to which keys
  /// are split over blocks unless somebody asks for another schedule.
  int64_t splitKeysRows = 32;
  /// The same where a block's warps share tiles of keys, each with some of the
  /// rows; 0: they do not by default.
  int64_t sharedSplitRows = 0;
  /// The number of query rows of a sequence that has a kernel of its own where
  /// types leave it open and blocks have equal shares, whose joins then are of
  /// no more rows than there are; 0: none.
  int64_t ownKernelRows = 0;
  /// Query rows of all heads that share a head of the cache, that are columns
  /// of a product by blocks of so many warps, each with keys or a head of its
  /// own: what launches of so few rows take where types leave the rows open; 0:
  /// none. Heads lie side by side in pages of so many tokens and more.
  int64_t fewestFoldedRows = 0, fewestRowsWarps = 4, sideBySidePage = 16;

  // Clusters.

  /// Clusters of two blocks, which read keys for each other, gain by what they
  /// do not read twice, and lose where the last tile of an odd number has no
  /// partner, and where one of two masked tiles waits for keys that the other
  /// alone sees. The fewest tiles of a sequence with which they gain: at all,
  /// of an odd number, under a mask (with as many keys as rows), and there at
  /// more than 128 columns, where a tile of keys is more bytes. Blocks on heads
  /// that share K and V lose neither way.
  int64_t clusterTiles = 1, clusterOddTiles = 1, clusterMaskedTiles = 1,
          clusterMaskedWideTiles = 1;
  /// Over pages, whose producers wait for two blocks' slots before each looks
  /// pages up: twice the fewest tiles of keys that a row sees on average.
  int64_t clusterPagedTiles = 1;
  /// The same of blocks on heads that share K and V.
  int64_t clusterPagedHeadsTiles = 1;
  /// The same over pages of fewer than `manyPageRows` rows, where each block
  /// asks for half of very many boxes.
  int64_t clusterSmallPageTiles = 1, manyPageRows = 8;
  /// The same over pages of fewer rows than boxes are made of, which each block
  /// copies for itself: the other one's requests are for the same rows. So many
  /// rows such boxes have at least; 0: there are none.
  int64_t clusterCopiedTiles = 1, boxedPageRows = 0;
  /// The fewest tiles with which heads of `headSize` gain; `pageSize` 0: keys
  /// are in no pages.
  int64_t fewestClusterTiles(int64_t headSize, bool masked, int64_t sharing,
                             int64_t pageSize) const;

private:
  void measuredOnNVIDIA(const TargetInfo &target);
  void guessedForAMD(const TargetInfo &target);
};

} // namespace kvbuf

#endif // KVBUFFER_LIB_PROGRAMS_ATTENTION_SCHEDULES_TUNING_H
