//===- NVIDIA.cpp - NVIDIA chips --------------------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Vendors.h"
#include "kvbuffer/Target/ScheduleLimits.h"
#include "llvm/ADT/StringSwitch.h"
#include <numeric>

using namespace kvbuf;

/// Shared memory that one block may use, bytes: CUDA C++ Programming Guide,
/// "Technical Specifications per Compute Capability".
static int64_t sharedBytes(llvm::StringRef chip) {
  return llvm::StringSwitch<int64_t>(chip)
      .Cases({"sm_80", "sm_87"}, 163 * 1024)
      .Cases({"sm_86", "sm_89"}, 99 * 1024)
      .Cases({"sm_90", "sm_90a", "sm_100a"}, 227 * 1024)
      .Default(0);
}

/// Multiprocessors of the largest device: the whitepapers of A100, A40, Jetson
/// AGX Orin, L40S, H200 and B200.
static unsigned multiprocessors(llvm::StringRef chip) {
  return llvm::StringSwitch<unsigned>(chip)
      .Case("sm_80", 108)
      .Case("sm_86", 84)
      .Case("sm_87", 16)
      .Case("sm_89", 142)
      .Case("sm_100a", 148)
      .Default(132);
}

std::optional<TargetInfo> detail::lookupNVIDIA(llvm::StringRef chip) {
  int64_t lds = sharedBytes(chip);
  if (!lds)
    return std::nullopt;
  TargetInfo target;
  target.chip = chip.str();
  target.vendor = Vendor::NVIDIA;
  target.waveSize = 32;
  target.banks = 32;
  target.ldsBytes = lds;
  target.multiprocessors = multiprocessors(chip);
  // With 16 KiB on their way for each, the 64 KiB that an H200's
  // multiprocessor needs; more make all wait for each other.
  target.splitsPerMultiprocessor = 4;
  // An H200 (docs/decode.md): pages of one token, 4278 GB/s against 3931 with
  // as many blocks as for contiguous keys; of quantized ones, 91 % of what
  // copies alone read against 83.5 with twice as many.
  target.splitsOfSmallPages = 2;
  target.splitsOfSmallNarrowPages = 3;
  // An H200, one sequence of 8192 keys in a graph: 16.1 us, with 256 keys 17.0.
  target.leastSplitKeys = 128;
  // An H200, stamps in a ragged batch: 5.4 us for a piece, at 8.3 GB/s of a
  // block.
  target.pauseBytes = 40 << 10;
  // An H200, 32 sequences of heads of 256: 475 us by blocks of four warps, 481
  // by those of one.
  target.narrowHeadSize = 128;
  // The same table as for shared memory.
  if (chip == "sm_86" || chip == "sm_87" || chip == "sm_89")
    target.residentThreads = 1536;
  target.sharedSplitRows = 128;
  target.registersPerLane = 255;
  target.asyncCopyBytes = {4, 8, 16};
  target.copiesUnaligned = true;
  target.looksUpByLane = true;
  target.triple = "nvptx64-nvidia-cuda";
  // Copies of tensor boxes into the own block's shared memory alone need
  // PTX 8.6, and products of 8-bit floats 8.4; the rest is in 8.0.
  target.features = chip == "sm_90a" || chip == "sm_100a" ? "+ptx87"
                    : chip == "sm_89" || chip == "sm_90"  ? "+ptx84"
                                                          : "+ptx80";
  target.dataLayout =
      "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64";
  target.functionAttributes = {
      {"denormal-fp-math-f32", "preserve-sign,preserve-sign"}};
  target.loopStrengthReduction = false;
  target.matrixInstructions = {
      {MatrixUnit::MmaSync, 16, 8, 16, /*wordElements=*/2}};
  // PTX ISA, "movmatrix": since sm_75.
  target.transposesAmongLanes = true;
  // PTX ISA, "bar": barriers 0 to 15.
  target.namedBarriers = 16;
  // PTX ISA, "mma.sync": .e4m3 and .e5m2 need sm_89 and PTX 8.4. An H200 keeps
  // some 14 bits of their sums: a term 2^-13 of the sum vanishes.
  if (chip == "sm_89" || chip.starts_with("sm_90")) {
    target.float8Formats = {"f8E4M3FN", "f8E5M2"};
    // First two side by side (`mmaSyncM16N16K32`): of V, transposed reads give
    // a lane pairs of columns.
    target.float8Instructions = {
        {MatrixUnit::MmaSync, 16, 16, 32, /*wordElements=*/4},
        {MatrixUnit::MmaSync, 16, 8, 32, /*wordElements=*/4}};
    target.float8SumBits = 14;
  }
  // PTX ISA, "cp.async.bulk.tensor": since sm_90; "tile::gather4" since sm_100.
  // Of sm_100a there is no more here: products are the portable ones.
  target.gathersRows = chip == "sm_100a";
  target.copiesBoxes = target.gathersRows || chip.starts_with("sm_90");
  // An H200's matrix unit aligns a sum and its sixteen products at the largest
  // exponent with 25 bits below, and cuts off there and at the end
  // (docs/hopper.md): 131072 keys lose a quarter of what rounding to bf16 does.
  if (chip.starts_with("sm_90")) {
    target.sumKeys = 32768;
    target.mostSumKeys = 131072;
  }
  // ".shared::cta" as what it copies to: since PTX 8.6.
  target.copiesBoxesIntoBlock = target.copiesBoxes && chip != "sm_90";
  // PTX ISA, "mbarrier.try_wait": since sm_90.
  target.phaseBarriers = target.copiesBoxes;
  // PTX ISA, "setmaxnreg": of sm_90a and sm_100a, not of sm_90.
  if (chip == "sm_90a" || chip == "sm_100a")
    target.warpsPerRegisterGroup = 4;
  // PTX ISA, "wgmma": of sm_90a, not of sm_90.
  if (chip == "sm_90a") {
    target.matrixInstructions.push_back(
        {MatrixUnit::Wgmma, 64, 8, 16, /*wordElements=*/2});
    target.float8Instructions.push_back(
        {MatrixUnit::Wgmma, 64, 8, 32, /*wordElements=*/4});
    // CUDA Programming Guide, "Thread Block Clusters": 8 are portable. A
    // swizzled tile repeats after 8 rows.
    target.maxCluster = target.clusterPartRows = 8;
    // Measured on an H200.
    // The engine takes a box of 128 bytes a row every 7 to 8 cycles, whatever
    // its rows, and each costs producers some six instructions: of one or two
    // rows both are more than copies take (H200, docs/tuning.md).
    target.fewestPageRows = 3;
    target.clusterTiles = 8;
    target.clusterOddTiles = 63;
    target.clusterMaskedTiles = 32;
    target.clusterMaskedWideTiles = 32;
    // 16 tiles on average lose up to 1 % with pages of 16 and less, 66 gain 3
    // to 4 % with all (docs/performance.md).
    target.clusterPagedTiles = 64;
    target.predicatesRescale = true;
    // SASS: VIMNMX3, FMNMX.
    target.integerMaxima = true;
    target.branchedRescaleAccumulators = 128;
  }
  return target;
}

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
  int64_t warps = target.splitsPerMultiprocessor *
                  (wholeTiles ? 1 : target.splitsOfSmallPages);
  int64_t blocks = std::max<int64_t>(1, warps / kHeadsOfBlock);
  auto [depth, valueDepth] = detail::paddedHeadSizes(request, choice.BK);
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

/// The warps of a block share tiles of keys, of whose rows each has those of
/// one instruction: then so many more rows read each key once.
static void shareSplitTiles(const TargetInfo &target,
                            const ScheduleRequest &request,
                            ScheduleChoice &choice) {
  constexpr int64_t fewestWarps = 4;
  const int64_t rows = choice.mma[0];
  choice.warps = fewestWarps;
  while (choice.warps * rows <
         std::min(request.foldedRows, target.sharedSplitRows))
    choice.warps *= 2;
  choice.BM = choice.warps * rows;
  auto [depth, valueDepth] = detail::paddedHeadSizes(request, choice.BK);
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
  auto [depth, valueDepth] = detail::paddedHeadSizes(request, choice.BK);
  int64_t widest = std::max(depth, valueDepth);
  if (request.foldedRows > target.splitKeysRows) {
    shareSplitTiles(target, request, choice);
    return;
  }
  // Where types leave rows open, kernels of few rows share a launch with that
  // of many, and tiles have as many rows as fit.
  bool hasHeads = choice.equalShares && request.queries >= 0 &&
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
    int64_t BN = widest <= 64 ? 32 : 16;
    chooseTiles(BN, /*longWay=*/request.pageSize % BN == 0);
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
  auto [depth, valueDepth] = detail::paddedHeadSizes(request, choice.BK);
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
  auto [depth, valueDepth] = detail::paddedHeadSizes(request, choice.BK);
  int64_t widest = std::max(depth, valueDepth);
  choice.warps = widest <= 128 ? 8 : 4;
  choice.BM = 16 * choice.warps;
  choice.BN = widest <= 128 ? 64 : 32;
}

/// Tile sizes follow the published table for sm_8x kernels (FlashAttention-2,
/// `tile_size_fwd_sm8x`: d64 128x112, d128 128x64, d256 128x64, 4 warps), to
/// powers of two; two slots need one wait and one barrier an iteration.
ScheduleChoice detail::scheduleNVIDIA(const TargetInfo &target,
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
  auto [depth, valueDepth] = detail::paddedHeadSizes(request, choice.BK);
  int64_t widest = std::max(depth, valueDepth);
  choice.BM = 128;
  choice.BN = 64;
  choice.warps = 4;
  if (widest > 128) {
    // 16 rows a warp: 32 would need 2 * 256 accumulator registers.
    choice.BM = 64;
    choice.BN = widest > 256 ? 16 : 32;
  }
  // Q, and two slots for each of K and V.
  auto bytes = [&, depth = depth, valueDepth = valueDepth] {
    return 2 * (depth * choice.BM +
                (depth + valueDepth) * choice.stages * choice.BN);
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
