//===- NVIDIATeams.cpp - Schedules with a team that moves -------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The table of schedules for chips whose warps multiply in groups (sm_90a).
//
//===----------------------------------------------------------------------===//

#include "Proposals.h"
#include "Tuning.h"
#include "kvbuffer/Target/PageParts.h"
#include "llvm/Support/MathExtras.h"

using namespace kvbuf;

namespace {
/// Whether groups of a block take turns: always, or where the block is in no
/// cluster.
enum class Turns { None, Alone, Always };

/// One line of the table: serves head sizes up to `headSize`, of values up to
/// `valueHeadSize`, and at most `queries` query rows, where the types fix their
/// number.
struct Entry {
  int64_t headSize, valueHeadSize, queries;
  int64_t BM, BN, stages, warps;
  int64_t producerRegisters, consumerRegisters;
  bool qInRegs;
  Turns turns;
  bool stageOutput;
  TileOrder tiles;
};
} // namespace

static constexpr int64_t kAny = std::numeric_limits<int64_t>::max();

/// Clusters of two blocks halve what is read from L2. Where power limits the
/// clock that wins 1 to 6 % at more than 64 columns and 2 % at 64, but loses 1
/// to 4 % there under a mask (docs/tuning.md). How many tiles there are, only
/// types that fix the number of queries tell, or the launch.
static constexpr int64_t kClusterHeadSize = 64;

/// With a soft cap and without a mask the softmax limits the rate up to so many
/// columns, not power: blocks of their own are as fast or faster. At 128
/// columns clusters win 2 % where scores are far from the cap, and 4 % near it
/// (docs/tuning.md).
static constexpr int64_t kCappedHeadSize = 64;

static bool gainsByClusters(const TargetInfo &target,
                            const ScheduleRequest &request, int64_t BM) {
  if (request.blockRows)
    return false;
  if (request.capped && !request.masked && request.headSize <= kCappedHeadSize)
    return false;
  if (request.headSize < kClusterHeadSize ||
      (request.headSize == kClusterHeadSize && request.masked))
    return false;
  // Pages of one and two rows were not measured with as few columns.
  if (request.headSize == kClusterHeadSize && request.pageSize &&
      request.pageSize <= target.fewestPageRows)
    return false;
  if (request.queries < 0)
    return request.otherByLaunch;
  int64_t tiles = llvm::divideCeil(request.queries, BM);
  // All of them see as many keys. (Not measured where each block copies.)
  bool copied = request.pageSize && request.pageSize < target.fewestPageRows;
  // Heads that share K and V read the same rows at the same time as they are
  // (H200, 32 heads on 8, pages of one: 0.882 of the rate of contiguous keys,
  // in clusters 0.869).
  if (copied && TargetInfo::clustersOfHeads(request.sharing))
    return false;
  if (request.sharesTiles && !copied && request.headSize > kClusterHeadSize)
    return tiles % 2 == 0;
  return (tiles % 2 == 0 || tiles >= Tuning(target).clusterOddTiles ||
          TargetInfo::clustersOfHeads(request.sharing)) &&
         tiles >= Tuning(target).fewestClusterTiles(
                      request.headSize, request.masked, request.sharing,
                      request.pageSize);
}

/// The first line that serves a problem is taken. Measured on an H200, bf16, as
/// docs/performance.md lists: tiles from a counter were as good as one block a
/// tile or better everywhere. Up to 64 columns three groups hide each other's
/// softmax better than two (1.06 against 1.04 of cuDNN's rate, causal at 4096
/// rows), and better still where they take turns (1.15); they have no registers
/// for Q. At 128 columns, in blocks of their own (`Turns::Alone`), two groups
/// that take no turns may come to have their softmax at the same time, and stay
/// so where rows see many keys (512 rows over 8704 keys: 541 us, 492 with
/// turns); blocks of clusters do not. At 256 turns of single blocks win up to 2
/// % of the cycles under a mask, and lose 2 to 5 % to clusters, sustained. Two
/// slots of more than 80 keys do not fit beside Q there, nor does a buffer for
/// O, and consumers with fewer than 240 registers lose 5 % without turns. 192
/// with values of 128 has tiles of 128 keys, the largest ones that fit beside
/// Q; turns and clusters change up to 2 % there.
static constexpr Entry kTable[] = {
    {128, 128, 64, 64, 128, 2, 4, 40, 232, true, Turns::None, true,
     TileOrder::Dynamic},
    {256, 256, 64, 64, 96, 2, 4, 40, 232, false, Turns::None, false,
     TileOrder::Dynamic},
    {64, 64, kAny, 192, 128, 2, 12, 32, 160, false, Turns::Always, true,
     TileOrder::Dynamic},
    {128, 128, kAny, 128, 128, 2, 8, 40, 232, true, Turns::Alone, true,
     TileOrder::Dynamic},
    {192, 128, kAny, 128, 128, 2, 8, 40, 232, false, Turns::None, false,
     TileOrder::Dynamic},
    {192, 192, kAny, 128, 112, 2, 8, 40, 232, false, Turns::None, false,
     TileOrder::Dynamic},
    {256, 256, kAny, 128, 80, 2, 8, 24, 240, false, Turns::None, false,
     TileOrder::Dynamic},
    {512, 512, kAny, 128, 64, 1, 8, 40, 232, false, Turns::None, false,
     TileOrder::Dynamic},
};

/// The line for a problem whose rows see a window of keys alone: three groups,
/// with tiles of 64 keys, and at more than 64 columns of 80 where windows are
/// wide. Tiles are few, and both ends of a window cut some. Of the time of
/// tiles of 128 keys (112 at 64 columns) that is 0.77 to 0.83 of windows of 128
/// keys at 64 columns, 0.93 to 0.99 of 500 to 4000 keys over every cache and
/// with a cap, 0.96 to 1.00 of 4000 to 16384 (H200, 16 heads, 4096 rows x 4 and
/// 16384, sustained; docs/scores.md). Over pages of 1 to 4, which lanes copy,
/// it is 0.99 to 1.02 at more than 64 columns.
static Entry ofWindow(const ScheduleRequest &request, Entry entry) {
  constexpr int64_t narrow = 64, columns = 128, wide = 1500, smallPage = 8;
  if (!request.windowKeys || request.blockRows || entry.queries != kAny ||
      entry.headSize > columns || entry.valueHeadSize > columns)
    return entry;
  bool isWide = request.windowKeys >= wide;
  if (entry.headSize <= narrow) {
    entry.BN = isWide ? 96 : 64;
    return entry;
  }
  if (request.pageSize && request.pageSize < smallPage)
    return entry;
  entry.BM = 192;
  entry.BN = isWide ? 80 : 64;
  entry.warps = 12;
  entry.qInRegs = false;
  entry.turns = Turns::Always;
  return entry;
}

/// Keys of a tile over pages of a few rows that the copy engine loads one by
/// one, where pages do not divide `BN`: up to two steps of the product of P and
/// V more, for the fewest boxes a key. Measured with rows of two blocks of
/// columns (docs/tuning.md); a soft cap has no registers for it.
static int64_t keysOfFewBoxes(const TargetInfo &target,
                              const ScheduleRequest &request, int64_t BN,
                              int64_t BK) {
  constexpr int64_t step = 16, steps = 2, blocks = 2;
  int64_t page = request.pageSize;
  if (request.capped || !page || page >= target.clusterPartRows ||
      !target.boxesPages(page) || BN % page == 0 ||
      request.headSize > blocks * BK || request.valueHeadSize > blocks * BK)
    return BN;
  int64_t best = BN;
  for (int64_t keys = BN + step; keys <= BN + steps * step; keys += step)
    if (PageParts(keys, page).boxes() * best <
        PageParts(best, page).boxes() * keys)
      best = keys;
  return best;
}

/// Teams of quantized caches: two groups of consumers, and warps that widen and
/// such that move tiles. Head sizes up to `size`; the most keys of a tile whose
/// scores leave consumers room, and whose slots fit beside Q. Widening takes
/// LDS's time, too: Q in registers leaves it some. Groups that take turns gain
/// 1.5 % there, sustained, and 9 % at 128 columns and 5 % at 64 without a pause
/// (H200, 4096 new rows x 4 over pages of 16, causal); others were not
/// measured.
namespace {
struct WideningEntry {
  int64_t size, BN, wideners;
  int64_t producerRegisters, widenerRegisters, consumerRegisters;
  bool qInRegs, stageOutput, clusters;
};
} // namespace

static constexpr WideningEntry kWideningTable[] = {
    {64, 128, 4, 56, 56, 200, true, true, false},
    {128, 96, 4, 56, 56, 200, true, true, false},
    {192, 64, 4, 56, 56, 200, false, false, false}};

/// At 65 to 128 columns tiles of as many keys as without widening, in registers
/// that others do not need: of four warps that widen a part of a tile at a time
/// and a lane that asks for boxes; or, where a warp looks up pages, of two
/// warps that widen and two that move, which are one group. Clusters gain 2 to
/// 4 %, sustained (docs/hopper.md); there look-ups of whole pages leave
/// registers to four warps that widen, which gain as much again; with scales
/// of tokens they would spill 164 bytes (test/Kernels/roles-ptxas.test).
static constexpr WideningEntry kOfWholeTiles = {128, 128,  4,    32,  32,
                                                224, true, true, true},
                               kOfPages = {128, 128,  2,    56,  56,
                                           224, true, true, true},
                               kOfSharedPages = {128, 128,  4,    40,  24,
                                                 224, true, true, true};

bool kvbuf::detail::chooseWideningTeam(const TargetInfo &target,
                                       const ScheduleRequest &request,
                                       ScheduleChoice &choice) {
  if (!target.warpsPerMatrixGroup())
    return false;
  int64_t widest = std::max(request.headSize, request.valueHeadSize);
  const auto *entry = llvm::find_if(
      kWideningTable, [&](const auto &entry) { return widest <= entry.size; });
  if (entry == std::end(kWideningTable)) {
    choice.note = "head size " + std::to_string(widest) + " is more than " +
                  std::to_string(std::end(kWideningTable)[-1].size) +
                  ", whose products take more registers than lanes of four "
                  "groups start with";
    return false;
  }
  // Lanes that copy small pages themselves are four warps'.
  constexpr int64_t pageOfBoxes = 16, tile = 128;
  if (widest > 64 && widest <= kOfPages.size) {
    if (!request.cutTiles)
      entry = &kOfWholeTiles;
    else if (request.sharesLoads && !request.tokenScales &&
             request.pageSize >= pageOfBoxes &&
             llvm::isPowerOf2_64(request.pageSize) &&
             gainsByClusters(target, request, tile))
      entry = &kOfSharedPages;
    else if (!request.pageSize || request.pageSize >= pageOfBoxes)
      entry = &kOfPages;
  }
  auto dividesPages = [&](int64_t BN) {
    int64_t page = request.pageSize;
    return !llvm::isPowerOf2_64(page) || BN % page == 0 || page % BN == 0;
  };
  // 16 bytes of a row are copied at a time, and rows of a block have 32.
  constexpr int64_t columns = 32;
  for (int64_t size : {request.headSize, request.valueHeadSize})
    if (size % columns) {
      choice.note = "head size " + std::to_string(size) +
                    " of elements of a byte is not a multiple of " +
                    std::to_string(columns);
      return false;
    }
  choice.BK = std::min<int64_t>(choice.BK, 64);
  choice.mma = target.groupInstruction("bf16")->shape();
  choice.warps = 2 * target.warpsPerMatrixGroup();
  choice.BM = tile;
  choice.BN = entry->BN;
  choice.wideners = entry->wideners;
  choice.producers =
      llvm::alignTo(entry->wideners + 1, target.warpsPerMatrixGroup()) -
      entry->wideners;
  // Whole pages, or pages of whole tiles.
  const int64_t step = 8 * choice.wideners;
  while (choice.BN > step && !dividesPages(choice.BN))
    choice.BN -= step;
  choice.producerRegisters = entry->producerRegisters;
  choice.widenerRegisters = entry->widenerRegisters;
  choice.consumerRegisters = entry->consumerRegisters;
  choice.overlapProducts = true;
  choice.pingPong = entry->qInRegs && !request.capped;
  if (entry->clusters && gainsByClusters(target, request, choice.BM))
    choice.cluster = 2;
  choice.qInRegs = entry->qInRegs;
  choice.stageOutput = entry->stageOutput && request.outBytes == 2;
  choice.tiles = TileOrder::Dynamic;
  return true;
}

namespace {
/// Teams of products of bytes: groups of consumers, warps that turn V and such
/// that move tiles. Head sizes up to `size`, the same of values.
struct TurningEntry {
  int64_t size, BN, warps, stages;
  int64_t otherRegisters, consumerRegisters;
  bool qInRegs, stageOutput, overlapProducts;
};
} // namespace

/// Up to 128 columns three groups of one tile at a time hide each other's
/// softmax better than two whose softmax overlaps with products of their own
/// (docs/caches.md). At 256 registers hold the scores or the products of a few
/// columns of two groups; turns won nothing there. The rate of two groups rises
/// by 2 % with the most registers that consumers can have, which leaves warps
/// that turn 24.
static constexpr TurningEntry kTurningTable[] = {
    {64, 128, 12, 2, 32, 160, false, true, false},
    {128, 128, 12, 3, 32, 160, false, false, false},
    {256, 128, 8, 2, 24, 240, false, false, false}};

bool kvbuf::detail::chooseTurningTeam(const TargetInfo &target,
                                      const ScheduleRequest &request,
                                      ScheduleChoice &choice) {
  if (!target.turnsBytesForGroups())
    return false;
  int64_t widest = std::max(request.headSize, request.valueHeadSize);
  const auto *entry = llvm::find_if(
      kTurningTable, [&](const auto &entry) { return widest <= entry.size; });
  if (entry == std::end(kTurningTable)) {
    choice.note = "head size " + std::to_string(widest) + " is more than " +
                  std::to_string(std::end(kTurningTable)[-1].size) +
                  ", whose sums of tiles fill a lane's registers";
    return false;
  }
  // Warps that turn share the columns by instructions.
  constexpr int64_t turners = 2, columns = 16 * turners;
  for (int64_t size : {request.headSize, request.valueHeadSize})
    if (size % columns ||
        (size == request.valueHeadSize && !llvm::isPowerOf2_64(size))) {
      choice.note = "head size " + std::to_string(size) +
                    " of elements of a byte is not a power of two from " +
                    std::to_string(columns) + " on";
      return false;
    }
  choice.mma = target.groupInstruction(target.float8Formats.front())->shape();
  choice.warps = entry->warps;
  choice.BM = entry->warps / target.warpsPerMatrixGroup() *
              int64_t(target.matrixGroupRows);
  choice.BN = entry->BN;
  choice.stages = entry->stages;
  choice.producerRegisters = entry->otherRegisters;
  choice.consumerRegisters = entry->consumerRegisters;
  choice.overlapProducts = entry->overlapProducts;
  bool stageOutput = entry->stageOutput;
  // Three groups were not measured where pages are looked up, or tiles copied,
  // and their rows do not divide blocks of 128 that lists name.
  if (request.cutTiles || request.blockRows % choice.BM) {
    constexpr int64_t groups = 2, overlapping = 128, slots = 2;
    constexpr int64_t producers = 24, consumers = 240;
    choice.stages = slots;
    choice.warps = groups * target.warpsPerMatrixGroup();
    choice.BM = groups * int64_t(target.matrixGroupRows);
    choice.overlapProducts = stageOutput = widest <= overlapping;
    choice.producerRegisters = producers;
    choice.consumerRegisters = consumers;
  }
  // Who looks up pages, or copies tiles, needs more registers.
  if (request.cutTiles) {
    constexpr int64_t keys = 64, producers = 56, consumers = 224;
    choice.BN = std::min(choice.BN, keys);
    choice.producerRegisters = producers;
    choice.consumerRegisters = consumers;
  }
  choice.widenerRegisters = choice.producerRegisters;
  // Whole pages, or pages of whole tiles.
  while (choice.BN > 32 && llvm::isPowerOf2_64(request.pageSize) &&
         choice.BN % request.pageSize && request.pageSize % choice.BN)
    choice.BN /= 2;
  choice.wideners = turners;
  choice.producers = target.warpsPerMatrixGroup() - turners;
  choice.qInRegs = entry->qInRegs;
  choice.stageOutput = stageOutput && request.outBytes == 2;
  choice.tiles = TileOrder::Dynamic;
  return true;
}

bool kvbuf::detail::chooseMovingTeam(const TargetInfo &target,
                                     const ScheduleRequest &request,
                                     ScheduleChoice &choice) {
  if (!target.warpsPerMatrixGroup())
    return false;
  for (int64_t size : {request.headSize, request.valueHeadSize})
    if (size % choice.mma[2]) {
      choice.note = "head size " + std::to_string(size) +
                    " is not a multiple of " + std::to_string(choice.mma[2]);
      return false;
    }
  // Parts of the columns of wide values are whole blocks.
  int64_t BK = choice.BK;
  int64_t parts =
      llvm::divideCeil(request.valueHeadSize, int64_t(target.matrixGroupCols));
  while (BK > choice.mma[2] && parts > 1 &&
         request.valueHeadSize % (parts * BK))
    BK /= 2;
  if (parts > 1 && request.valueHeadSize % (parts * BK)) {
    choice.note = "head size " + std::to_string(request.valueHeadSize) +
                  " is not a multiple of " + std::to_string(parts * BK) + ", " +
                  std::to_string(parts) + " parts of whole blocks";
    return false;
  }
  for (const Entry &line : kTable) {
    Entry entry = ofWindow(request, line);
    // Blocks of an odd number of the smallest tiles take the lines that have
    // them.
    bool odd = request.blockRows % (2 * entry.BM);
    if (request.headSize > entry.headSize ||
        request.valueHeadSize > entry.valueHeadSize ||
        request.blockRows % entry.BM ||
        (entry.queries != kAny && !odd &&
         (request.queries < 0 || request.queries > entry.queries)))
      continue;
    choice.mma = target.groupInstruction("bf16")->shape();
    choice.BM = entry.BM;
    choice.BN = entry.BN;
    choice.BK = BK;
    // Tiles of whole pages, or pages of whole tiles; rows of pages of another
    // number of tokens are found one by one.
    while (llvm::isPowerOf2_64(request.pageSize) &&
           choice.BN % request.pageSize && request.pageSize % choice.BN)
      choice.BN -= 16;
    choice.stages = entry.stages;
    choice.warps = entry.warps;
    choice.producers = target.warpsPerMatrixGroup();
    choice.producerRegisters = entry.producerRegisters;
    choice.consumerRegisters = entry.consumerRegisters;
    // Producers that look up pages or copy tiles need more registers. Three
    // groups of consumers leave room for them where a tile has fewer keys.
    constexpr int64_t producers = 56, consumers = 224;
    constexpr int64_t ofThree = 152, keysOfThree = 112;
    bool room = (choice.producers * producers + choice.warps * consumers) *
                    target.waveSize <=
                target.registersPerBlock;
    if (request.cutTiles) {
      choice.producerRegisters = producers;
      choice.consumerRegisters = room ? consumers : ofThree;
      if (!room)
        choice.BN = std::min(choice.BN, keysOfThree);
    }
    choice.overlapProducts = true;
    choice.qInRegs = entry.qInRegs;
    // Only Q leaves registers for the scores of more keys. Not measured with
    // few rows.
    int64_t keys = keysOfFewBoxes(target, request, choice.BN, choice.BK);
    bool wider = entry.qInRegs && entry.queries == kAny && keys > choice.BN;
    if (wider) {
      choice.BN = keys;
      choice.qInRegs = false;
    }
    // What is staged has 16 bits.
    choice.stageOutput = entry.stageOutput && request.outBytes == 2;
    choice.tiles = entry.tiles;
    // What functions of scores add to a softmax, only turns hide: clusters
    // without them lose 2 to 9 %, and win 2 to 5 % with them where there is no
    // mask (docs/scores.md). Under a mask that was not measured.
    bool needsTurns = request.ownScores && entry.turns == Turns::Alone;
    if (!(needsTurns && request.masked) &&
        gainsByClusters(target, request, entry.BM))
      choice.cluster = 2;
    // With a cap turns cost 1 to 2 %, or registers under a mask; with wider
    // tiles up to 1 %, and win nothing where rows see many keys. Clusters of
    // few long tiles gain by them, too (H200, 64 tokens of a tree of 32 heads
    // on 8 over 8192 keys, 32 sequences, sustained: 491 us, without turns 515,
    // without clusters 542).
    // Over pages of one and two rows they win 1 to 3 % (docs/tuning.md).
    bool alone =
        choice.cluster == 1 || request.sharesTiles || request.ownScores ||
        (request.pageSize && request.pageSize <= target.fewestPageRows);
    choice.pingPong =
        entry.turns == Turns::Always ||
        (entry.turns == Turns::Alone && alone && !request.capped && !wider);
    return true;
  }
  if (request.blockRows % std::begin(kTable)->BM) {
    choice.note = "blocks of " + std::to_string(request.blockRows) +
                  " rows are no whole tiles of " +
                  std::to_string(std::begin(kTable)->BM);
    return false;
  }
  choice.note =
      "head size " +
      std::to_string(std::max(request.headSize, request.valueHeadSize)) +
      " is more than " + std::to_string(std::end(kTable)[-1].headSize) +
      ", whose rows of Q and K fill shared memory";
  return false;
}
