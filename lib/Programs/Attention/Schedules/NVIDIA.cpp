//===- NVIDIA.cpp - Schedules of warps that do all the same ---------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Proposals.h"
#include "Tuning.h"
#include "kvbuffer/Schedules/ScheduleLimits.h"
#include <numeric>

using namespace kvbuf;

/// Shared memory that a block takes besides its tiles, bytes: the row sums of
/// 128 threads, and 1 KiB that the driver reserves.
static constexpr int64_t kSharedPerBlock = 3 * 1024;

/// Bytes of K and V that a block of split keys has on their way; the same where
/// each tile has its page looked up (two H200s, pages of 16: 97.0 and 95.9 % of
/// what copies alone read, 96.1 % with 16 KiB; without pages it is slower).
static constexpr int64_t kSplitInFlight = 16 * 1024, kPagesInFlight = 24 * 1024;

/// Pages of fewer tokens of quantized caches have fewer bytes on their way in
/// each block. Of all caches, rows of such pages are far apart in any order,
/// and warps with heads side by side gain nothing.
static constexpr int64_t kSmallPage = 16;

/// Bytes of an element of Q.
static constexpr int64_t kElementBytes = 2;

/// Warps of a block that have heads side by side.
static constexpr int64_t kHeadsOfBlock = 4;

/// Gives each warp of a block a head of the cache: what they read of a page
/// lies side by side, and one multiprocessor translates its address (H200,
/// copies without math from pages of 16: 98.4 % of copies in order, 97.9 by
/// blocks of one warp; docs/tuning.md). As many warps as there are blocks of
/// one come to a multiprocessor.
static void spreadHeads(const TargetInfo &target,
                        const ScheduleRequest &request,
                        ScheduleChoice &choice) {
  ScheduleChoice spread = choice;
  spread.warps = kHeadsOfBlock;
  // Few rows are a product's columns.
  if (int64_t columns = choice.mma[1]; request.foldedRows <= columns) {
    spread.BM = columns;
    spread.swapAB = true;
  }
  bool wholeTiles = request.pageSize % choice.BN == 0;
  int64_t warps = Tuning(target).splitsPerMultiprocessor *
                  (wholeTiles ? 1 : Tuning(target).splitsOfSmallPages);
  int64_t blocks = std::max<int64_t>(1, warps / kHeadsOfBlock);
  auto [depth, valueDepth] = kvbuf::detail::paddedHeadSizes(request, choice.BK);
  int64_t slots =
      choice.stages * request.cacheBytes * choice.BN * (depth + valueDepth);
  TileOperands operands{request.headSize, request.valueHeadSize, kElementBytes,
                        request.cacheBytes, request.cacheBytes};
  if (ScheduleLimits(Schedule::of(spread), target).sharedBytes(operands) >
          target.ldsBytes ||
      blocks * (kHeadsOfBlock * slots + kSharedPerBlock) > target.ldsBytes)
    return;
  choice = spread;
}

/// Four warps of a block share tiles of keys, of whose rows each has those of
/// one instruction or of two: then so many more rows read each key once. (H200,
/// 128 rows on 8192 keys: 380 us, by eight warps of 16 rows 425.)
static void shareSplitTiles(const TargetInfo &target,
                            const ScheduleRequest &request,
                            ScheduleChoice &choice) {
  choice.warps = 4;
  choice.BM = choice.warps * choice.mma[0];
  while (choice.BM <
         std::min(request.foldedRows, Tuning(target).sharedSplitRows))
    choice.BM *= 2;
  auto [depth, valueDepth] = kvbuf::detail::paddedHeadSizes(request, choice.BK);
  choice.BN = std::max(depth, valueDepth) <= 128 ? 64 : 32;
  // One look-up a tile where a page can hold one.
  if (request.pageSize >= 16)
    while (choice.BN > request.pageSize && choice.BN > 16)
      choice.BN /= 2;
  choice.stages = 2;
}

/// One warp a block, which needs no barrier but its own; 16 KiB of K and V on
/// their way while as much is read, so that a few blocks fill a
/// multiprocessor's share of the memory's speed.
static void splitKeysNVIDIA(const TargetInfo &target,
                            const ScheduleRequest &request,
                            ScheduleChoice &choice) {
  choice.splitKeys = true;
  choice.equalShares = request.lengthsDiffer;
  choice.lookAhead = request.pageSize > 0;
  choice.warps = 1;
  // Queries are rows of an instruction, of which two cover all that there are;
  // with its operands swapped, columns.
  const int64_t rows = choice.mma[0], columns = choice.mma[1];
  choice.BM = request.foldedRows > rows ? 2 * rows : rows;
  auto [depth, valueDepth] = kvbuf::detail::paddedHeadSizes(request, choice.BK);
  int64_t widest = std::max(depth, valueDepth);
  if (request.foldedRows > Tuning(target).splitKeysRows) {
    shareSplitTiles(target, request, choice);
    return;
  }
  // Where types leave rows open, kernels of few rows share a launch with that
  // of many, and tiles have as many rows as fit.
  bool hasHeads = choice.equalShares && request.knowsRows &&
                  request.pageSize >= kSmallPage &&
                  request.kvHeads % kHeadsOfBlock == 0 &&
                  request.foldedRows <= rows;
  if (request.multipliesBytes()) {
    // Accumulators of keys that are rows of the instruction are no operands of
    // 8 bits.
    choice.BN = 32;
    return;
  }
  if (request.cacheBytes == 1) {
    // Lanes read pairs of 8-bit elements as rows of the instruction: keys, so
    // that queries are its columns.
    choice.swapAB = true;
    if (request.foldedRows <= columns)
      choice.BM = columns;
    choice.BN = widest <= 128 ? 32 : 16;
    // Where a page holds whole tiles, each look-up of one takes time that more
    // bytes on their way bridge (H200, pages of 64: 95.9 % of what copies alone
    // read against 94.6 %); rows of small pages are looked up by more blocks
    // with less each (pages of one token: 91.1 % against 83.5 %).
    bool wholeTiles = request.pageSize && request.pageSize % choice.BN == 0;
    int64_t inFlight = wholeTiles ? kPagesInFlight : kSplitInFlight;
    if (request.pageSize && request.pageSize < kSmallPage)
      inFlight /= 2;
    int64_t tileBytes = choice.BN * (depth + valueDepth);
    choice.stages = std::max<int64_t>(2, 1 + inFlight / tileBytes);
    // Beside queries in LDS, fewer slots make room for more blocks, whose
    // conversions hide each other's waits (H200, eight rows over pages of 16:
    // 328 us, 446 with three slots).
    if (choice.equalShares && request.foldedRows > rows)
      choice.stages = 2;
    if (hasHeads)
      spreadHeads(target, request, choice);
    return;
  }
  // An instruction's rows of accumulators would fill a lane's registers.
  if (widest > 256 && request.foldedRows <= columns) {
    choice.BM = columns;
    choice.swapAB = true;
  }
  int64_t tileBytes;
  auto chooseTiles = [&](int64_t BN, bool longWay) {
    choice.BN = BN;
    tileBytes = 2 * BN * (depth + valueDepth);
    int64_t inFlight = longWay ? kPagesInFlight : kSplitInFlight;
    choice.stages = std::max<int64_t>(2, 1 + inFlight / tileBytes);
  };
  if (hasHeads) {
    // Three slots of 128 elements are as fast as four, and leave a block of the
    // next launch room to wait (H200, 131072 keys in a graph: 128.9 us, 129.7
    // without; another card 127.1 and 128.2). Not so of tiles of 32 keys where
    // types say how many rows there are; with room for a second row, three are
    // faster there, too (8192 keys in a graph: 10.5 us, 11.4 with more).
    int64_t BN = widest <= 64 ? 32 : 16;
    chooseTiles(BN, /*longWay=*/widest <= 64 && request.pageSize % BN == 0 &&
                        request.queries >= 0);
    spreadHeads(target, request, choice);
    if (choice.warps > 1)
      return;
  }
  // Look-ups of whole tiles need pages that hold them.
  chooseTiles(widest <= 64 && request.pageSize % 32 != 16 ? 32 : 16,
              /*longWay=*/request.pageSize % 32 == 16);
  // Where a launch has so few sequences that each is split over many blocks, it
  // takes larger ones (kvbuf::launchIfBlocksFill): fewer partial results go
  // through memory (H200, one sequence of 8192 keys after a flush: 16.5 us,
  // 19.7 with blocks of one warp). Few rows are a product's columns.
  ScheduleChoice larger = choice;
  larger.warps = 4;
  larger.BM = columns;
  larger.swapAB = true;
  TileOperands operands{request.headSize, request.valueHeadSize, kElementBytes,
                        request.cacheBytes, request.cacheBytes};
  if (request.otherByLaunch && !choice.equalShares &&
      request.foldedRows <= columns &&
      ScheduleLimits(Schedule::of(larger), target).sharedBytes(operands) +
              kSharedPerBlock <=
          target.ldsBytes)
    choice = larger;
}

/// Lanes read pairs of 8-bit elements as rows of the instruction: keys, and
/// columns of V. Each warp widens all of a tile for its own queries, which are
/// therefore as many as its registers hold.
static void quantizedNVIDIA(const ScheduleRequest &request,
                            ScheduleChoice &choice) {
  auto [depth, valueDepth] = kvbuf::detail::paddedHeadSizes(request, choice.BK);
  int64_t widest = std::max(depth, valueDepth);
  choice.swapAB = true;
  choice.warps = 4;
  choice.BM = widest <= 128 ? 128 : widest <= 256 ? 64 : 32;
  choice.BN = widest <= 64 ? 64 : 32;
  if (request.pageSize == 16)
    choice.BN = 32;
}

/// Products of 8-bit floats: two levels of accumulators leave room for 16 rows
/// a warp; twice as many warps have as many rows. Nothing of this was measured.
static void float8NVIDIA(const TargetInfo &target,
                         const ScheduleRequest &request,
                         ScheduleChoice &choice) {
  auto [depth, valueDepth] = kvbuf::detail::paddedHeadSizes(request, choice.BK);
  int64_t widest = std::max(depth, valueDepth);
  choice.warps = widest <= 128 ? 8 : 4;
  choice.BM = 16 * choice.warps;
  choice.BN = widest <= 128 ? 64 : 32;
}

/// Tile sizes follow the published table for sm_8x kernels (FlashAttention-2,
/// `tile_size_fwd_sm8x`: d64 128x112, d128 128x64, d256 128x64, 4 warps), to
/// powers of two; two slots need one wait and one barrier an iteration.
ScheduleChoice kvbuf::detail::scheduleNVIDIA(const TargetInfo &target,
                                             const ScheduleRequest &request) {
  ScheduleChoice choice;
  choice.mma = {16, 8, 16};
  if (request.multipliesBytes() && !target.float8Instructions.empty()) {
    const MatrixInstruction &mma = target.float8Instructions.front();
    choice.mma = mma.shape();
  }
  // Columns of an LDS block: rows of 128 bytes where the head sizes allow it.
  int64_t common = std::gcd(request.headSize, request.valueHeadSize);
  choice.BK = common % 64 == 0 ? 64 : common % 32 == 0 ? 32 : 16;
  if (request.cacheBytes == 1 && common % 128 == 0)
    choice.BK = 128;
  // An instruction contracts 32 elements of a row of 32 at least.
  if (request.multipliesBytes())
    choice.BK = std::max<int64_t>(choice.BK, choice.mma[2]);
  if (request.splitKeys) {
    splitKeysNVIDIA(target, request, choice);
    return choice;
  }
  if (request.multipliesBytes()) {
    if (request.movingTeam && chooseTurningTeam(target, request, choice))
      return choice;
    float8NVIDIA(target, request, choice);
    return choice;
  }
  if (request.cacheBytes == 1) {
    if (request.movingTeam && chooseWideningTeam(target, request, choice))
      return choice;
    quantizedNVIDIA(request, choice);
    return choice;
  }
  if (request.movingTeam && chooseMovingTeam(target, request, choice))
    return choice;
  auto [depth, valueDepth] = kvbuf::detail::paddedHeadSizes(request, choice.BK);
  int64_t widest = std::max(depth, valueDepth);
  choice.BM = 128;
  choice.BN = 64;
  choice.warps = 4;
  if (widest > 128) {
    // 16 rows a warp: 32 would need 2 * 256 accumulator registers.
    choice.BM = 64;
    choice.BN = widest > 256 ? 16 : 32;
  }
  // Of as many columns two warps have half of them each: the accumulators of
  // all leave a lane no registers (H200, 512 columns, 16384 rows: 127 TFLOP/s,
  // with halves 215, and 222 where products overlap).
  constexpr int64_t columnsOfWarp = 384;
  int64_t half = valueDepth / 2;
  if (widest > columnsOfWarp && half <= columnsOfWarp &&
      (llvm::isPowerOf2_64(half) || half % choice.BK == 0)) {
    choice.warps = 8;
    choice.warpCols = 2;
    choice.BN = 32;
    choice.overlapProducts = !request.ownScores && !request.capped;
  }
  // Q, and two slots for each of K and V; P, maxima and sums of warps that
  // share columns.
  auto bytes = [&, depth = depth, valueDepth = valueDepth] {
    int64_t between =
        choice.warpCols > 1 ? choice.BM * (2 * choice.BN + 80) : 0;
    return 2 * (depth * choice.BM +
                (depth + valueDepth) * choice.stages * choice.BN) +
           between;
  };
  if (widest == 128) {
    // Accumulators take 192 of 255 registers: tiles of 64 keys spill
    // unless the row sums are in LDS and masks are a branch. Two blocks
    // share a multiprocessor, one's softmax beside the other's products; where
    // LDS does not hold two of 64 keys, 32 keys a tile do.
    if (2 * (bytes() + kSharedPerBlock) <= target.ldsBytes) {
      choice.splitMasks = false;
      choice.sumsInLds = true;
    } else {
      choice.BN = 32;
    }
  }
  if (widest == 64)
    choice.qInRegs = true;
  while (bytes() > target.ldsBytes && choice.BN > 16)
    choice.BN /= 2;
  // Where even the smallest tiles of keys do not fit beside Q, fewer queries.
  while (bytes() > target.ldsBytes && choice.BM > 16 && choice.warps > 1) {
    choice.BM /= 2;
    choice.warps /= 2;
  }
  // One look-up a tile where a page can hold one.
  if (request.pageSize >= 16)
    while (choice.BN > request.pageSize && choice.BN > 32)
      choice.BN /= 2;
  return choice;
}
