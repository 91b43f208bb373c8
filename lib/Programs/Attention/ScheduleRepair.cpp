//===- ScheduleRepair.cpp - What gives way to what is asked ---------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScheduleRepair.h"
#include "AddedScores.h"
#include "CacheScales.h"
#include "FarTiles.h"
#include "ProblemLimits.h"
#include "TiledReads.h"
#include "VisibleBounds.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "kvbuffer/Dialect/KVBuffer/IR/WordsOfColumns.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/VerifyElements.h"
#include "kvbuffer/Schedules/ScheduleLimits.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace kvbuf;

/// Nothing but loads runs ahead, and nobody takes turns.
static void runNothingAhead(ScheduleParameters &choice) {
  choice.pingPong = choice.overlap = false;
}

/// Nor is a maximum raised late. Turns need a lazy softmax, and nothing but
/// turns loads ahead for a softmax that runs ahead: who refuses the one does
/// not want the rest.
static void rescaleAtOnce(ScheduleParameters &choice) {
  runNothingAhead(choice);
  choice.lazyRescale = false;
}

/// Whether O has no more bits than a weight as it is multiplied, so that its
/// own rounding hides what a lazy softmax costs: that rounds the largest weight
/// of a row, too, which is 1 in another one.
static bool hidesLazyRounding(AttentionOp op) {
  auto bitsOf = [](Type type) {
    return APFloat::semanticsPrecision(
        cast<FloatType>(type).getFloatSemantics());
  };
  return bitsOf(op.getOutElementType()) <= bitsOf(weightsOf(op));
}

/// What a problem's functions read tensors by.
enum class ReadsBy { Nothing, Keys, RowsAndKeys };

/// Whether all that follows from a load, up to what follows from rows, too, or
/// leaves the region, is true or false: the lanes of a warp then find it out
/// together, and have no register for each key.
static bool isVotedOn(Operation *load,
                      const llvm::SetVector<Operation *> &ofRow) {
  llvm::SetVector<Operation *> slice;
  getForwardSlice(load, &slice);
  slice.insert(load);
  return llvm::all_of(slice, [&](Operation *some) {
    return ofRow.contains(some) || some->hasTrait<OpTrait::IsTerminator>() ||
           llvm::all_of(some->getUsers(), [&](Operation *user) {
             return !(ofRow.contains(user) ||
                      user->hasTrait<OpTrait::IsTerminator>()) ||
                    (some->getNumResults() == 1 &&
                     some->getResult(0).getType().isInteger(1));
           });
  });
}

/// `others`: loads that do not count; `votes`: whether those do not that are
/// voted on.
static ReadsBy readsBy(AttentionOp op, ArrayRef<Operation *> others,
                       bool votes) {
  ReadsBy most = ReadsBy::Nothing;
  for (Region *region : {&op.getVisible(), &op.getScore()}) {
    if (region->empty())
      continue;
    // Behind the sequence and the head, in a score's region behind the score.
    unsigned row = region == &op.getScore() ? 3 : 2;
    llvm::SetVector<Operation *> ofRow, ofKey;
    getForwardSlice(region->getArgument(row), &ofRow);
    getForwardSlice(region->getArgument(row + 1), &ofRow);
    getForwardSlice(region->getArgument(row + 2), &ofKey);
    for (Operation *reader : ofKey)
      if (isa<memref::LoadOp>(reader) && !llvm::is_contained(others, reader) &&
          !(votes && !ofRow.contains(reader) && isVotedOn(reader, ofRow)))
        most = std::max(most, ofRow.contains(reader) ? ReadsBy::RowsAndKeys
                                                     : ReadsBy::Keys);
  }
  return most;
}

std::optional<int64_t> kvbuf::wordsReadByKeys(AttentionOp op) {
  int64_t words = 0;
  for (Region *region : {&op.getVisible(), &op.getScore()}) {
    if (region->empty())
      continue;
    // Behind the score, if there is one, the sequence, the head, the row and
    // its position.
    bool ofScores = region == &op.getScore();
    llvm::SetVector<Operation *> ofKey, ofScore;
    getForwardSlice(region->getArgument(ofScores + 4), &ofKey);
    if (ofScores)
      getForwardSlice(region->getArgument(0), &ofScore);
    for (Operation *reader : ofKey) {
      if (!isa<memref::LoadOp>(reader))
        continue;
      llvm::SetVector<Operation *> needs;
      BackwardSliceOptions options;
      options.omitBlockArguments = true;
      if (failed(getBackwardSlice(reader, &needs, options)))
        return std::nullopt;
      Type type = reader->getResult(0).getType();
      if (reader->getBlock() != &region->front() || ofScore.contains(reader) ||
          !(type.isF32() || type.isInteger(32)) ||
          !llvm::all_of(needs, [](Operation *need) {
            return !need->getNumRegions() && isPure(need);
          }))
        return std::nullopt;
      ++words;
    }
  }
  return words;
}

/// What the problem does not go with.
static void repairForProblem(AttentionOp op, ScheduleParameters &choice) {
  // Where all warps are alike, lists of blocks run one tile after the other,
  // and so do functions, unless halves take turns. What scores read for each
  // key would be awaited with all loads of tiles there, unless it is asked for
  // before.
  bool takesTurns = choice.pingPong &&
                    (op.getScore().empty() || wordsReadByKeys(op).has_value());
  bool listed = static_cast<bool>(op.getBlockMaskAttr());
  if (!choice.producers && (listed || op.hasOwnScores()) && !takesTurns)
    rescaleAtOnce(choice);
  if (choice.lazyRescale && !hidesLazyRounding(op))
    rescaleAtOnce(choice);
  // Blocks of a cluster read the same keys.
  if (op.getBlockMaskAttr() || boundsEnds(op))
    choice.cluster = 1;
  // Weights that scales of tokens multiply are another product's. The scales of
  // a tile's keys take registers, too.
  constexpr int64_t keysWithScales = 64;
  if (choice.producers && isScaledByToken(op.getV().getType()))
    choice.overlapProducts = false;
  if (choice.wideners && (isScaledByToken(op.getK().getType()) ||
                          isScaledByToken(op.getV().getType())))
    choice.BN = std::min(choice.BN, keysWithScales);
  if (!op.getBatchInvariant())
    return;
  if (choice.lazyRescale)
    rescaleAtOnce(choice);
  // Whether there are clusters depends on how many rows there are, and that
  // they keep a row's bits is not shown.
  choice.cluster = 1;
}

/// How tiles come into shared memory.
static void repairMovement(const AskedSchedule &asked,
                           ScheduleParameters &choice) {
  const ScheduleParameters &values = asked.values();
  // Strips have one slot, and nothing that runs ahead.
  if (values.kPath == Path::Streaming || values.vPath == Path::Streaming) {
    choice.stages = 1;
    choice.fullKV = true;
    runNothingAhead(choice);
    choice.overlapProducts = false;
    // Strips of V divide a tile.
    choice.BK = std::gcd(choice.BK, asked.names("BN") ? values.BN : choice.BN);
  }
  // What runs ahead, and turns, need whole tiles.
  if (values.pingPong || values.overlap)
    choice.fullKV = true;
}

/// What runs ahead of a tile, and who takes turns.
static void repairOverlap(const AskedSchedule &asked, const TargetInfo &target,
                          ScheduleParameters &choice) {
  const ScheduleParameters &values = asked.values();
  bool eager =
      values.sumsInLds || values.overlapProducts || values.warpCols > 1;
  if (choice.lazyRescale &&
      (asked.refuses("lazy_rescale", values.lazyRescale) ||
       (eager && !asked.names("lazy_rescale"))))
    rescaleAtOnce(choice);
  // Turns need whole tiles in LDS and whole fragments in registers.
  bool chunks = values.regChunkDepth > 0 || !values.fullKV;
  if (chunks && !asked.names("ping_pong"))
    choice.pingPong = false;
  // Who asks for turns gets what they need.
  if (values.pingPong && !choice.producers && values.producers <= 0)
    choice.overlap = choice.lazyRescale = true;
  // One slot holds nothing that runs ahead; one group, or an odd number of
  // warps, has nobody to take turns with.
  bool oneSlot = asked.names("stages") && values.stages < 2;
  if (asked.names("warps") &&
      (choice.producers ? values.warps < 2 * target.warpsPerMatrixGroup()
                        : values.warps % 2))
    choice.pingPong = false;
  if (!choice.producers &&
      (oneSlot || asked.refuses("overlap", values.overlap)))
    choice.pingPong = false;
  if (oneSlot || values.overlapProducts ||
      (choice.lazyRescale && ((chunks && !values.pingPong) ||
                              asked.refuses("ping_pong", values.pingPong))))
    choice.overlap = false;
  // With a team that moves, scores run ahead of split keys alone.
  if (choice.producers && asked.refuses("split_keys", values.splitKeys))
    choice.overlap = false;
  // Pages are looked up ahead of loads that nothing else runs ahead of.
  if (values.lookAhead && !asked.names("ping_pong"))
    choice.pingPong = false;
  if (values.lookAhead && !asked.names("overlap"))
    choice.overlap = choice.pingPong;
  if (oneSlot || !values.fullKV || values.pingPong || values.overlap ||
      values.overlapProducts)
    choice.lookAhead = false;
}

/// Where keys are split, larger tiles have more bytes on their way: what the
/// chip would have had on its way by more of them, or by a block's other warps,
/// gives way where it leaves no room for tiles that are asked for.
static void repairSplitKeys(AttentionOp op, const AskedSchedule &asked,
                            const TargetInfo &target,
                            ScheduleParameters &choice) {
  TileOperands operands = operandsOf(op);
  auto all = [&] {
    ScheduleParameters parameters = choice;
    asked.applyTo(parameters);
    return parameters;
  };
  auto fits = [&] {
    return limitsOf(op, Schedule::of(all()), target).sharedBytes(operands) <=
           target.ldsBytes;
  };
  // What is no size at all is refused later.
  if (!all().splitKeys || all().BK < 1)
    return;
  // Warps that share tiles are no copies of them.
  if (!asked.names("warps") && Schedule::of(all()).warpsByThemselves() &&
      !fits())
    choice.warps = 1;
  while (!asked.names("stages") && choice.stages > 2 && !fits())
    --choice.stages;
}

bool kvbuf::comparesTogether(AttentionOp op) {
  if (op.getVisible().empty())
    return false;
  constexpr unsigned row = 2, position = 3, key = 4;
  if (!op.getScore().empty() && !op.getScore().getArgument(key + 1).use_empty())
    return false;
  llvm::SetVector<Operation *> ofRow;
  getForwardSlice(op.getVisible().getArgument(row), &ofRow);
  getForwardSlice(op.getVisible().getArgument(position), &ofRow);
  return !comparedWordsOf(
              op.getVisible().getArgument(key),
              [&](Operation *inner) { return !ofRow.contains(inner); })
              .empty();
}

/// Whether lanes hold none of it: a warp compares it for a tile's keys
/// together. Tiles have whole words of a warp's keys.
static bool comparesByWarps(AttentionOp op, const TargetInfo &target,
                            const ScheduleChoice &choice) {
  return !choice.splitKeys && target.waveSize == 32 &&
         choice.BN % target.waveSize == 0 && comparesTogether(op);
}

/// Whether products begin with biases of 16 bits that lanes multiply, as no
/// factor of Q spares them that.
static bool multipliesBegun(AttentionOp op, memref::LoadOp staged) {
  constexpr int64_t halfBytes = 2;
  std::optional<AddedScores> added =
      AddedScores::of(op, staged, /*scalesQueries=*/true, /*byPlaces=*/false);
  return added && added->getQueryScale() == 1 &&
         operandsOf(op).readBytes == halfBytes;
}

/// What such functions read comes ahead of its use, beside a tile of scores: Q
/// gives way to it, and then keys of a tile do, of which there are few where
/// each score has numbers of its own. (ptxas counts: with fewer registers left
/// it keeps some values in memory.)
static void repairForReads(AttentionOp op, const AskedSchedule &asked,
                           const TargetInfo &target, ScheduleChoice &choice) {
  constexpr int64_t ofKeys = 24, step = 16, fewest = 4 * step;
  if (!choice.producers)
    return;
  memref::LoadOp staged = tiledReadOf(op);
  if (staged && !limitsOf(op, Schedule::of(choice), target).stagesReads())
    staged = nullptr;
  // Products that begin with what is read are as fast with Q in LDS, or faster,
  // though registers have room for it. Others have no room: Q gives way there.
  // In clusters groups whose biases take LDS's time, and a multiplication each,
  // are 1 % faster with Q in registers, and without turns (docs/scores.md).
  bool holdsQ = staged && choice.cluster > 1 && choice.qInRegs &&
                !op.getK().getType().getPageSize() &&
                multipliesBegun(op, staged);
  if (holdsQ && !asked.names("ping_pong"))
    choice.pingPong = false;
  if (staged && !holdsQ && !asked.names("q_in_regs"))
    choice.qInRegs = false;
  // Tiles that read a number for each score where most read one are few.
  SmallVector<Operation *> others;
  if (std::optional<ClampedDistance> distance = clampedDistanceOf(op))
    others = followersOf(op, *distance);
  others.push_back(staged);
  bool votes = choice.splitKeys && target.waveSize == 32;
  ReadsBy reads = readsBy(op, others, votes);
  if (!staged && reads == ReadsBy::Keys && comparesByWarps(op, target, choice))
    return;
  if (!staged && reads == ReadsBy::Nothing)
    return;
  TileOperands operands = operandsOf(op);
  int64_t page = readsWidened(op) ? 0 : op.getK().getType().getPageSize();
  bool ofScores = reads == ReadsBy::RowsAndKeys;
  // Tiles go with pages as they are, or consist of fewer whole pages.
  bool shrinks = !asked.names("BN") && (!page || staged);
  auto goesWithPages = [&] {
    return !llvm::isPowerOf2_64(page) || choice.BN % page == 0 ||
           page % choice.BN == 0;
  };
  if (ofScores && shrinks && !page)
    choice.BN = std::min(choice.BN, fewest);
  auto fitsBeside = [&](int64_t values) {
    return limitsOf(op, Schedule::of(choice), target).registers(operands) +
               values <=
           choice.consumerRegisters;
  };
  auto fits = [&] {
    // A warp of a group has 16 rows.
    return fitsBeside(ofScores ? choice.BN * step / target.waveSize
                      : reads == ReadsBy::Keys ? ofKeys
                                               : 0);
  };
  auto hasMemory = [&] {
    return limitsOf(op, Schedule::of(choice), target).sharedBytes(operands) <=
           target.ldsBytes;
  };
  // A tile more is on its way where one of O would be written from.
  if (staged && !hasMemory() && !asked.names("stage_output"))
    choice.stageOutput = false;
  if (!fits() && !asked.names("q_in_regs"))
    choice.qInRegs = false;
  // Where it then lies teams of split keys have slots.
  while (choice.splitKeys && choice.stages > 2 && !asked.names("stages") &&
         !hasMemory())
    --choice.stages;
  // Fewer than that only where nothing else leaves room for the tiles.
  auto isTooLarge = [&] {
    if (staged && !hasMemory())
      return choice.BN > step;
    return choice.BN > fewest && !(goesWithPages() && fits());
  };
  while (shrinks && isTooLarge())
    choice.BN -= step;
  // Wide heads leave tiles of a tensor less room, and scores fewer registers
  // than they take even with nothing beside them. (Teams of split keys have
  // tiles of one size.)
  while (!choice.splitKeys && !asked.names("BN") && choice.BN > step &&
         !(goesWithPages() && fitsBeside(0) && (!staged || hasMemory())))
    choice.BN -= step;
}

/// Tiles divide the blocks that a problem's lists name, and no other block of a
/// launch has the same ones.
static void repairForBlocks(AttentionOp op, const AskedSchedule &asked,
                            ScheduleChoice &choice) {
  BlockMaskAttr blocks = op.getBlockMaskAttr();
  if (!blocks)
    return;
  constexpr int64_t step = 16;
  while (!asked.names("BN") && choice.BN > step && blocks.getKeys() % choice.BN)
    choice.BN = llvm::alignDown(choice.BN - 1, step);
  // A warp keeps its rows.
  int64_t rows = std::gcd(choice.BM, blocks.getRows());
  int64_t ofWarp = choice.BM / std::max<int64_t>(choice.warps, 1);
  if (asked.names("BM") || asked.names("warps") || choice.producers ||
      rows == choice.BM || rows % ofWarp)
    return;
  choice.BM = rows;
  choice.warps = rows / ofWarp;
}

/// Gives the schedule of warps that are all alike room for a team that moves,
/// where somebody asks for one that the chip's table does not have: what such
/// warps alone have is then as if nobody had said it.
static void repairTeams(AttentionOp op, const AskedSchedule &asked,
                        const TargetInfo &target, ScheduleParameters &choice) {
  if (asked.values().producers <= 0 || !target.hasMovingTeams())
    return;
  // Such a team moves tiles for groups of warps, where a chip has them.
  if (target.warpsPerMatrixGroup()) {
    if (const MatrixInstruction *mma =
            target.groupInstruction(elementName(op.getElementType())))
      choice.mma = mma->shape();
    return;
  }
#define KVBUF_SCHEDULE_PARAMETER(TYPE, FIELD, NAME, DEFAULT, PRESENCE, SCOPE)  \
  if (ParameterScope::SCOPE == ParameterScope::AlikeWarps &&                   \
      !asked.names(NAME))                                                      \
    choice.FIELD = DEFAULT;
#include "kvbuffer/Dialect/KVBuffer/IR/ScheduleParameters.def"
}

void kvbuf::repairSchedule(AttentionOp op, const AskedSchedule &asked,
                           const TargetInfo &target, ScheduleChoice &choice) {
  repairTeams(op, asked, target, choice);
  if (asked.names("wideners") && !asked.values().wideners)
    choice.widenerRegisters = 0;
  repairForProblem(op, choice);
  repairMovement(asked, choice);
  repairOverlap(asked, target, choice);
  repairSplitKeys(op, asked, target, choice);
  repairForReads(op, asked, target, choice);
  repairForBlocks(op, asked, choice);
  // Clusters take several tiles, one after the other: who wants it otherwise
  // does not want them.
  const ScheduleParameters &values = asked.values();
  if (asked.names("tiles") && values.tiles == TileOrder::Grid)
    choice.cluster = 1;
  // Of latent rows that come as they are, those of equal shares take them, too.
  if (CacheType cache = op.getK().getType();
      op.isLatent() && !cache.getRow() &&
      cache.getElementType().getIntOrFloatBitWidth() == 16 &&
      asked.names("equal_shares") && !values.equalShares)
    choice.cluster = 1;
}
