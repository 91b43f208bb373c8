//===- Tuning.cpp - Measured numbers that attention is scheduled by
//------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tuning.h"
#include "kvbuffer/Target/DevicePeaks.h"

using namespace kvbuf;

/// An H200 unless said otherwise; chips before it and after it take the same.
void Tuning::measuredOnNVIDIA(const TargetInfo &target) {
  // With 16 KiB on their way for each, the 64 KiB that an H200's
  // multiprocessor needs; more make all wait for each other.
  splitsPerMultiprocessor = 4;
  // Pages of one token (docs/decode.md), 4278 GB/s against 3931 with as many
  // blocks as for contiguous keys; of quantized ones, 91 % of what copies alone
  // read against 83.5 with twice as many.
  splitsOfSmallPages = 2;
  splitsOfSmallNarrowPages = 3;
  // One sequence of 8192 keys in a graph: 16.1 us, with 256 keys 17.0.
  leastSplitKeys = 128;
  // Stamps in a ragged batch: 5.4 us for a piece, at 8.3 GB/s of a block.
  pauseBytes = 40 << 10;
  // 32 sequences of heads of 256: 475 us by blocks of four warps, 481 by those
  // of one.
  narrowHeadSize = 128;
  sharedSplitRows = 128;
  // One row of 131072 keys in a problem of open rows: 124.0 us, 133.0 by blocks
  // of one warp; of 8192 keys 16.1 and 23.5.
  fewestFoldedRows = 8;
  // One row over pages of 16 in a problem of open rows, of 131072 keys 130.5 us
  // where the kernel knows that it is one, 133.4 where there may be two; of
  // 8192 keys 18.5 and 20.7.
  ownKernelRows = 1;
  if (target.maxCluster == 1)
    return;
  clusterTiles = 8;
  clusterOddTiles = 63;
  clusterMaskedTiles = 32;
  clusterMaskedWideTiles = 32;
  // 16 tiles on average lose up to 1 % with pages of 16 and less, 66 gain 3 to
  // 4 % with all (docs/performance.md).
  clusterPagedTiles = 64;
  // 16 tiles on average, sustained: pages of 3, 5 and 7 0.92, 0.94 and 0.93 of
  // the rate of contiguous keys, 0.89, 0.91 and 0.89 without clusters.
  clusterSmallPageTiles = 32;
  // Pages of 1, 66 tiles on average, sustained: 0.917 of the rate of contiguous
  // keys, 0.879 without clusters; 16 tiles 0.897 and 0.899.
  clusterCopiedTiles = 64;
  boxedPageRows = target.fewestPageRows;
  // The same, 32 heads on 8, pages of 16 and 64: sustained 1.06, in cycles 1.04
  // of blocks of their own.
  clusterPagedHeadsTiles = 32;
}

/// Nothing of this was measured: it is what an H200 wants, but for the pause,
/// which is five times to memory and back, of a microsecond each, as the report
/// assumes too, at a block's share of the data sheets' 5.3 and 8 TB/s: 2.2 and
/// 3.9 GB/s.
void Tuning::guessedForAMD(const TargetInfo &target) {
  llvm::ArrayRef<DevicePeak> devices = devicePeaks(target.chip);
  bool slower = !devices.empty() && devices.front().memoryBytes < 7e12;
  pauseBytes = slower ? 11 << 10 : 20 << 10;
}

Tuning::Tuning(const TargetInfo &target) {
  if (target.vendor == Vendor::NVIDIA)
    measuredOnNVIDIA(target);
  else
    guessedForAMD(target);
}

int64_t Tuning::fewestClusterTiles(int64_t headSize, bool masked,
                                   int64_t sharing, int64_t pageSize) const {
  if (pageSize && pageSize < boxedPageRows)
    return clusterCopiedTiles;
  if (pageSize && pageSize < manyPageRows)
    return clusterSmallPageTiles;
  if (pageSize)
    return TargetInfo::clustersOfHeads(sharing) ? clusterPagedHeadsTiles
                                                : clusterPagedTiles;
  if (!masked || TargetInfo::clustersOfHeads(sharing))
    return clusterTiles;
  return headSize > 128 ? clusterMaskedWideTiles : clusterMaskedTiles;
}
