//===- Latent.cpp - Schedules of latent attention -----------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rows of latent attention are wide: 512 columns of O for each query row, of
// which a lane holds 256 where a warp has 16 rows by itself. So the warps of a
// block share a tile of keys and its products: some warps have other rows, and
// those of the same rows have other columns (`warp_cols`), of the scores keys.
// What decides is how many rows a block has for a tile that it loads, and then
// how many bytes are on their way.
//
//===----------------------------------------------------------------------===//

#include "Proposals.h"
#include "kvbuffer/Schedules/LatentRoles.h"
#include "kvbuffer/Schedules/ScheduleLimits.h"
#include <numeric>

using namespace kvbuf;

/// The most rows of a tile: 64 of 512 columns fill half of a multiprocessor's
/// registers.
static constexpr int64_t kMostRows = 64;

/// The most warps of a block, and slots for tiles.
static constexpr int64_t kMostWarps = 8, kMostStages = 4;

/// The fewest heads of a part of which a tile of one query row is worth its
/// rows, if a sequence has several query rows.
static constexpr int64_t kFewestHeads = 33;

/// Fills in a schedule whose teams have scores and halves of O's columns, where
/// groups of warps multiply together; else returns false.
static bool chooseLatentRoles(const TargetInfo &target,
                              const ScheduleRequest &request,
                              ScheduleChoice &choice) {
  bool areBytes = request.multipliesBytes();
  if (!target.warpsPerMatrixGroup() || !request.movingTeam ||
      (areBytes && !target.turnsBytesForGroups()))
    return false;
  // A tile has the heads of a part, of one query row.
  int64_t parts = 1;
  while (request.sharing % parts || request.sharing / parts > kMostRows)
    ++parts;
  if (request.queries != 1 && request.sharing / parts < kFewestHeads)
    return false;
  // Packed rows, and those of bytes beside wider queries.
  bool widens = request.packed || request.widenedBytes;
  llvm::StringRef element = areBytes ? target.float8Formats.front() : "bf16";
  choice.mma = target.groupInstruction(element)->shape();
  choice.BM = choice.BN = choice.BK = 64;
  choice.warps = choice.producers = target.warpsPerMatrixGroup();
  // Who widens has bytes, elements and addresses; scores leave as many, with
  // fewer columns of queries (H200: 246 us where 32 registers take 266).
  choice.producerRegisters = widens ? 48 : 24;
  choice.consumerRegisters = 160;
  choice.qInRegs = !areBytes;
  if (areBytes) {
    // Half of a group turns values, a lane with three reads on their way beside
    // the one that it stores (H200, 128 heads, 64 sequences of 4096: 92.3 us,
    // 103.2 with 32 registers for one; with 48 it spills); those of a tile's
    // products are the teams' that add them.
    choice.wideners = choice.producers = target.warpsPerMatrixGroup() / 2;
    choice.widenerRegisters = choice.producerRegisters = 40;
    choice.consumerRegisters = 184;
    // Slots of rows go back as soon as they are turned and multiplied by
    // queries: scores may run ahead (H200, 128 heads, 64 sequences of 4096:
    // 103.5 us for 108.3).
    choice.overlap = true;
  }
  // Blocks of two parts of the heads widen half of each tile's rows, and store
  // them for both.
  constexpr int64_t cluster = 2;
  if (widens && request.queries == 1 && parts % cluster == 0 &&
      target.maxCluster >= cluster)
    choice.cluster = cluster;
  // Where one block has all heads, two that have a sequence to themselves join
  // its halves through shared memory (H200, 64 sequences of 4096, 64
  // heads: 83.5 and 84.1 us for 91.5, 16 heads 81.4 and 81.6 for 83.3; lengths
  // that differ 117.0 and 119.6 for 114.4 and 113.4).
  if (!widens && !areBytes && choice.equalShares && request.queries == 1 &&
      parts == 1 && LatentRoles::copiesBoxes(request.pageSize) &&
      target.maxCluster >= cluster)
    choice.cluster = cluster;
  TileOperands operands{.headSize = request.headSize,
                        .valueHeadSize = request.valueHeadSize,
                        .bytes = request.queryBytes,
                        .keyBytes = request.cacheBytes,
                        .valueBytes = request.cacheBytes,
                        .latent = true,
                        .packed = request.packed,
                        .widenedBytes = request.widenedBytes,
                        .widensAhead = request.widensAhead};
  // Scores that run ahead keep slots of keys for longer (H200, 64 sequences of
  // 4096: 151 us for 136, 64 heads 99 for 95, lengths that differ 173 for 156).
  // Bytes of packed rows that come ahead of slots take the room of a third one.
  for (choice.stages = widens ? 2 : 3; choice.stages > 1; --choice.stages)
    if (!ScheduleLimits(Schedule::of(choice), target, element)
             .whyNotFor(operands, /*spills=*/false))
      return true;
  return false;
}

ScheduleChoice kvbuf::detail::scheduleLatent(const TargetInfo &target,
                                             const ScheduleRequest &request) {
  llvm::StringRef element = "bf16";
  if (request.multipliesBytes() && !target.float8Formats.empty())
    element = target.float8Formats.front();
  llvm::ArrayRef known = target.matrixInstructionsFor(element);
  // Of several instructions the one of fewest rows.
  const MatrixInstruction &mma = *llvm::min_element(
      known, [](const MatrixInstruction &x, const MatrixInstruction &y) {
        return x.m < y.m;
      });
  ScheduleChoice choice;
  choice.mma = mma.shape();
  choice.swapAB = !target.feedsItself(mma, /*swapped=*/false);
  choice.splitKeys = true;
  // Lists of keys, which pages of one token are, are as long as each other: a
  // block that has parts of two sequences stores and joins one more (H200, 64
  // heads, 128 lists of 2048: 118.0 us for 115.4; 16 lists, 128 heads 42.2 for
  // 39.9).
  choice.equalShares =
      request.lengthsDiffer && !(request.packed && request.pageSize == 1);
  ScheduleChoice roles = choice;
  if (chooseLatentRoles(target, request, roles))
    return roles;
  choice.xcds = target.dies;
  int64_t rows = choice.swapAB ? mma.n : mma.m;
  TileOperands operands{request.headSize,    request.valueHeadSize,
                        request.queryBytes,  request.cacheBytes,
                        request.cacheBytes,  true,
                        request.queries < 0, request.window};
  // LDS rows of 128 bytes where the head sizes, and the columns of values that
  // a warp has, allow it.
  auto chooseBlocks = [&] {
    int64_t least = mma.k * mma.group;
    auto fits = [&](int64_t BK) {
      int64_t own = llvm::alignTo(request.valueHeadSize, BK) / choice.warpCols;
      return llvm::isPowerOf2_64(own) || own % BK == 0;
    };
    choice.BK = 64;
    int64_t common = std::gcd(request.headSize, request.valueHeadSize);
    while (choice.BK / 2 >= least && (common % choice.BK || !fits(choice.BK)))
      choice.BK /= 2;
    return fits(choice.BK);
  };
  auto fits = [&] {
    return !ScheduleLimits(Schedule::of(choice), target, element)
                .whyNotFor(operands, /*spills=*/false);
  };
  // As many rows as there are; where there is no room, fewer. One slot has
  // nothing on its way while it is read: only if two do not fit beside any
  // rows. Warps that share columns each have whole products of a tile's keys;
  // they share none only where values have no columns that suit, or weights are
  // of 8 bits, which they do not hand each other.
  int64_t most =
      std::min<int64_t>(kMostRows, llvm::alignTo(request.foldedRows, rows));
  auto choose = [&](int64_t stages, bool sharesCols) {
    for (int64_t BM = llvm::PowerOf2Ceil(most); BM >= rows; BM /= 2)
      for (int64_t BN : {64, 32})
        for (int64_t warpRows = BM / rows; warpRows > 0; warpRows /= 2)
          for (int64_t warpCols = sharesCols ? kMostWarps / warpRows : 1;
               warpCols > int64_t(sharesCols); warpCols /= 2) {
            choice.BM = BM;
            choice.BN = BN;
            choice.warps = warpRows * warpCols;
            choice.warpCols = warpCols;
            choice.stages = stages;
            if (!chooseBlocks() || !fits())
              continue;
            while (stages > 1 && choice.stages < kMostStages) {
              ++choice.stages;
              if (fits())
                continue;
              --choice.stages;
              break;
            }
            choice.lookAhead =
                request.pageSize > 0 && stages > 1 && !request.packed;
            return true;
          }
    return false;
  };
  for (bool sharesCols : {true, false})
    for (int64_t stages : {2, 1})
      if (!(sharesCols && request.multipliesBytes()) &&
          choose(stages, sharesCols))
        return choice;
  // Who checks says what does not fit.
  return choice;
}
