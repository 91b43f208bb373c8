//===- ChooseSchedule.cpp - Choose a schedule for attention ---------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention.h"
#include "CacheScales.h"
#include "ProblemLimits.h"
#include "ScheduleRepair.h"
#include "Schedules/Tuning.h"
#include "VisibleBounds.h"
#include "VisibleWindows.h"
#include "WidenCaches.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/VerifyElements.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-choose-schedule"

/// Splits of a problem whose bits must not depend on its batch, keys.
static constexpr int64_t kInvariantSplit = 1024;

/// Whether tiles of split keys may have more rows than a warp: each of a
/// block's warps has some.
static bool sharesSplitTiles(AttentionOp op, const TargetInfo &target) {
  return Tuning(target).sharedSplitRows > Tuning(target).splitKeysRows &&
         !op.isQuantized() && !op.getBatchInvariant() &&
         op.getElementType().getIntOrFloatBitWidth() == 16;
}

int64_t kvbuf::mostSplitQueries(AttentionOp op, const TargetInfo &target) {
  return sharesSplitTiles(op, target) ? kMostTreeQueries : kFewQueries;
}

/// The rows of a tile where keys are split: as many queries, each of all heads
/// that share a head of the cache, as there are, or may be few of, and as have
/// room on the chip; at least one.
static int64_t rowsOfTile(AttentionOp op, ScheduleRequest request,
                          const TargetInfo &target) {
  int64_t group = op.getHeads() / op.getKVHeads();
  // Where types leave the number of rows open, tiles are those of one warp.
  int64_t room = request.queries >= 0 && sharesSplitTiles(op, target)
                     ? Tuning(target).sharedSplitRows
                     : Tuning(target).splitKeysRows;
  int64_t most = std::max<int64_t>(1, room / group);
  int64_t queries = request.queries >= 0 ? request.queries : kFewQueries;
  request.splitKeys = true;
  for (queries = std::clamp<int64_t>(queries, 1, most);; queries /= 2) {
    request.foldedRows = queries * group;
    ScheduleChoice choice = kvbuf::chooseSchedule(target, request);
    if (queries == 1 ||
        limitsOf(op, Schedule::of(choice), target).hasRoom(operandsOf(op)))
      return request.foldedRows;
  }
}

/// What a schedule of a problem is chosen by.
static ScheduleRequest requestOf(AttentionOp op) {
  ScheduleRequest request;
  request.headSize = op.getHeadSize();
  request.valueHeadSize = op.getValueHeadSize();
  request.outBytes = op.getOutElementType().getIntOrFloatBitWidth() / 8;
  request.kvHeads = op.getKVHeads();
  MaskAttr mask = op.getMaskValue();
  request.masked = mask.boundsLeft() || mask.boundsRight();
  request.capped = op.getSoftcapValue() > 0;
  // Functions that bound keys leave a launch few tiles: turns lost 2 % there.
  request.ownScores = op.hasOwnScores() && !boundsKeys(op);
  // Of what lanes share out each holds a word.
  request.sharesWords = comparesTogether(op);
  request.hides =
      op.hasOwnScores() && op.getScore().empty() && !request.sharesWords;
  if (!request.sharesWords)
    request.readWords = wordsReadByKeys(op).value_or(0);
  request.lse = static_cast<bool>(op.getLse());
  request.window = mask.boundsLeft();
  if (!op.hasOwnScores())
    request.windowKeys = mostKeysOfRows(op).value_or(0);
  bool wide = readsWidened(op);
  request.pageSize = wide ? 0 : op.getK().getType().getPageSize();
  request.cutTiles = mask.boundsLeft() || op.isRagged() ||
                     (!wide && !op.getK().getType().getRows().endWithData());
  request.queries = knownRowsOf(op);
  request.knowsRows = request.queries >= 0;
  request.cacheBytes = operandsOf(op).keyBytes;
  request.tokenScales = isScaledByToken(op.getK().getType()) ||
                        isScaledByToken(op.getV().getType());
  request.queryBytes = op.getElementType().getIntOrFloatBitWidth() / 8;
  request.lengthsDiffer = !op.getK().getType().getRows().endWithData();
  request.latent = op.isLatent();
  TileOperands operands = operandsOf(op);
  request.packed = operands.packed;
  request.widenedBytes = operands.widenedBytes;
  request.widensAhead = operands.widensAhead;
  if (BlockMaskAttr blocks = op.getBlockMaskAttr())
    request.blockRows = blocks.getRows();
  return request;
}

std::optional<FewQueryRows> kvbuf::fewQueryRows(AttentionOp op,
                                                const TargetInfo &target) {
  ScheduleRequest request = requestOf(op);
  int64_t group = op.getHeads() / op.getKVHeads();
  if (request.queries >= 0 || group > Tuning(target).splitKeysRows ||
      op.getBatchInvariant() || op.isLatent() || op.getBlockMaskAttr())
    return std::nullopt;
  request.splitKeys = true;
  request.foldedRows = rowsOfTile(op, request, target);
  ScheduleChoice choice = kvbuf::chooseSchedule(target, request);
  if (group > choice.BM ||
      !limitsOf(op, Schedule::of(choice), target).hasRoom(operandsOf(op)))
    return std::nullopt;
  return FewQueryRows{std::max(kFewQueries, choice.BM / group), choice.BM};
}

/// The schedule of tiles whose keys are not split: where a team moves them, for
/// the rows of all heads that share a head of the cache if these are few.
static ScheduleChoice chooseTiles(AttentionOp op, ScheduleRequest request,
                                  const TargetInfo &target) {
  if (request.splitKeys || request.queries < 1 || !request.movingTeam)
    return kvbuf::chooseSchedule(target, request);
  ScheduleRequest folded = request;
  folded.queries *= request.sharing;
  folded.sharesTiles = whyNotShared(op, target).empty();
  ScheduleChoice choice = kvbuf::chooseSchedule(target, folded);
  if (choice.producers == 0 || foldedHeadsOf(op, choice.BM) == 1)
    return kvbuf::chooseSchedule(target, request);
  // Rows of several heads are no box of O.
  choice.stageOutput = false;
  return choice;
}

bool kvbuf::splitsFewSequences(AttentionOp op, const TargetInfo &target) {
  ScheduleRequest request = requestOf(op);
  int64_t group = op.getHeads() / op.getKVHeads();
  // Only a kernel that splits keys stores new tokens before it reads them.
  if (appendOf(op) || request.queries <= kFewQueries ||
      request.queries > kMostTreeQueries ||
      request.queries * group <= Tuning(target).splitKeysRows ||
      op.isLatent() || op.getBlockMaskAttr() || !sharesSplitTiles(op, target) ||
      !kvbuf::chooseSchedule(target, request).producers)
    return false;
  return rowsOfTile(op, request, target) > Tuning(target).splitKeysRows;
}

/// The same where parameters are asked for.
static ScheduleRequest requestOf(AttentionOp op, const AskedSchedule &asked,
                                 const TargetInfo &target) {
  ScheduleRequest request = requestOf(op);
  const ScheduleParameters &values = asked.values();
  // Who asks for no producers means the schedule that has none. So does who
  // asks for warps that share columns, for another path (an engine fills slots
  // directly), or for an instruction that each warp executes for itself.
  bool alike = values.warpCols > 1 || values.kPath != Path::Direct ||
               values.vPath != Path::Direct ||
               llvm::any_of(kProducts, [&](ProductKind product) {
                 const MatrixInstruction *mma = target.findMatrix(
                     values.shapeOf(product), elementName(op.getElementType()));
                 return mma && !mma->isOfGroups();
               });
  request.movingTeam =
      (!asked.names("producers") && !alike) || values.producers > 0;
  // Who asks for producers all the same is told so.
  if (StringRef why = whyNotWidened(op);
      request.movingTeam && values.producers <= 0 && !why.empty()) {
    request.movingTeam = false;
    if (target.warpsPerMatrixGroup())
      remark::missed(op.getLoc(),
                     remark::RemarkOpts::name("roles").category(DEBUG_TYPE))
          << "no warp roles: " << why;
  }
  request.splitKeys = values.splitKeys || op.isLatent();
  request.sharing = op.getHeads() / op.getKVHeads();
  // Splits of a fixed size are what they are, whatever lengths are.
  request.lengthsDiffer &= !values.splitSize;
  request.sharesLoads = whyNotShared(op, target).empty();
  // Latent attention has no other kernels, however many rows there are.
  if (op.isLatent()) {
    // The teams' program has no loop over rows that the launch does not know.
    request.movingTeam &= !op.isRagged() && whyNotPackedByTeams(op).empty();
    request.lengthsDiffer &= !op.getBatchInvariant();
    request.foldedRows =
        request.sharing * std::max<int64_t>(request.queries, 1);
  } else if (request.splitKeys) {
    request.foldedRows = rowsOfTile(op, request, target);
    // Tiles that several warps have for themselves are for launches whose rows
    // these are enough for.
    if (request.queries < 0 && !op.isRagged() && values.warps > 1 &&
        asked.names("BM") && values.BM <= request.foldedRows) {
      request.foldedRows = values.BM;
      request.knowsRows = true;
    }
  }
  return request;
}

/// The schedule of a problem for which nobody has asked for one, if it has so
/// few query rows that its keys are split over blocks; a remark says why.
static std::optional<ScheduleChoice> chooseSplitKeys(AttentionOp op,
                                                     ScheduleRequest request,
                                                     const TargetInfo &target) {
  int64_t group = op.getHeads() / op.getKVHeads();
  if (request.queries < 1 || group > Tuning(target).splitKeysRows ||
      op.getBlockMaskAttr() ||
      (request.queries > mostSplitQueries(op, target) &&
       request.queries * group > Tuning(target).splitKeysRows))
    return std::nullopt;
  request.splitKeys = true;
  // A sequence's splits must not depend on the others.
  request.lengthsDiffer &= !op.getBatchInvariant();
  request.foldedRows = rowsOfTile(op, request, target);
  // More queries in tiles of a warp's rows would read keys again and again.
  if (request.queries > kFewQueries &&
      request.queries * group > Tuning(target).splitKeysRows &&
      request.foldedRows <= Tuning(target).splitKeysRows)
    return std::nullopt;
  ScheduleChoice choice = kvbuf::chooseSchedule(target, request);
  if (op.getBatchInvariant())
    choice.splitSize = kInvariantSplit;
  std::string rows = std::to_string(request.foldedRows);
  auto doesNotFit = [&](int64_t needs, StringRef what, int64_t has) {
    if (needs <= has)
      return false;
    remark::missed(op.getLoc(),
                   remark::RemarkOpts::name("split_keys").category(DEBUG_TYPE))
        << "keys are not split over blocks: " << rows
        << " query rows of a head size of " << headSizesText(op) << " need "
        << std::to_string(needs) << " " << what.str() << ", " << target.chip
        << " has " << std::to_string(has);
    return true;
  };
  ScheduleLimits limits = limitsOf(op, Schedule::of(choice), target);
  TileOperands operands = operandsOf(op);
  if (doesNotFit(limits.registers(operands), "registers in a lane",
                 target.registersPerLane) ||
      doesNotFit(limits.sharedBytes(operands), "bytes of shared memory",
                 target.ldsBytes))
    return std::nullopt;
  remark::passed(op.getLoc(),
                 remark::RemarkOpts::name("split_keys").category(DEBUG_TYPE))
      << "keys are split over blocks: the heads that share a head of the cache "
         "have "
      << rows << " query rows";
  return choice;
}

bool kvbuf::splitsKeysByDefault(AttentionOp op, const TargetInfo &target) {
  if (op.isOnTensors() || op.isLatent())
    return op.isLatent();
  FailureOr<AskedSchedule> nothing = AskedSchedule::parse("", op.getLoc());
  return succeeded(nothing) &&
         chooseSplitKeys(op, requestOf(op, *nothing, target), target);
}

bool kvbuf::multipliesWidened(AttentionOp op, const TargetInfo &target) {
  FailureOr<AskedSchedule> nothing = AskedSchedule::parse("", op.getLoc());
  if (failed(nothing))
    return false;
  auto wide = cast<AttentionOp>(OpBuilder(op).clone(*op));
  wide->setAttr(kWidenedAttr, UnitAttr::get(op.getContext()));
  wide.removeScheduleAttr();
  ScheduleChoice choice =
      chooseTiles(wide, requestOf(wide, *nothing, target), target);
  repairSchedule(wide, *nothing, target, choice);
  bool fits = holdsWidenedQueries(wide, choice.qInRegs) &&
              kZerosBehind % choice.BN == 0;
  wide.erase();
  return fits;
}

LogicalResult kvbuf::chooseSchedule(AttentionOp op,
                                    const ScheduleQuery &query) {
  const TargetInfo &target = query.target;
  MLIRContext *context = op.getContext();
  // Before anything depends on it.
  sayByAttributes(op);
  ScheduleAttr attr = op.getScheduleAttr();
  bool isDefault = !attr && query.asked.empty();
  if (!attr) {
    FailureOr<AskedSchedule> parsed =
        AskedSchedule::parse(query.asked, op.getLoc());
    if (failed(parsed))
      return failure();
    const AskedSchedule &asked = *parsed;
    ScheduleRequest request = requestOf(op, asked, target);
    request.otherByLaunch = query.otherByLaunch;
    std::optional<ScheduleChoice> split;
    if (isDefault && !op.isLatent() && !splitsFewSequences(op, target))
      split = chooseSplitKeys(op, request, target);
    ScheduleChoice choice = split ? *split : chooseTiles(op, request, target);
    if (op.isLatent() && op.getBatchInvariant())
      choice.splitSize = kInvariantSplit;
    // What scales of tokens do to scores stands between the two products, which
    // are not in flight together then.
    if (choice.wideners && (isScaledByToken(op.getK().getType()) ||
                            isScaledByToken(op.getV().getType())))
      choice.pingPong = false;
    repairSchedule(op, asked, target, choice);
    if (!choice.note.empty())
      remark::missed(op.getLoc(),
                     remark::RemarkOpts::name("roles").category(DEBUG_TYPE))
          << "no warp roles: " << choice.note;
    asked.applyTo(choice);
    if (std::optional<std::string> why =
            ScheduleLimits::whyNoMovingTeam(choice.producers, target))
      return op.emitOpError() << *why;
    if (StringRef why = whyNotShared(op, target);
        choice.cluster > 1 && choice.producers && !why.empty()) {
      if (asked.names("cluster"))
        op.emitWarning() << "no clusters: " << why;
      remark::missed(op.getLoc(),
                     remark::RemarkOpts::name("cluster").category(DEBUG_TYPE))
          << "no clusters: " << why;
      choice.cluster = 1;
    }
    if (choice.isOpen())
      return op.emitOpError()
             << "mma_shape must be three positive sizes M, N, K";
    if (std::optional<std::string> why = whyNone(choice))
      return op.emitOpError() << *why;
    attr = ScheduleAttr::get(context, Schedule::of(choice));
  } else if (!query.asked.empty()) {
    op.emitOpError() << "has a schedule already; the option schedule='"
                     << query.asked << "' cannot replace parts of it";
    return failure();
  }
  if (op.getBatchInvariant() && attr.getLazyRescale()) {
    op.emitOpError() << "is batch_invariant, but its schedule has "
                        "lazy_rescale = true, which rescales the rows of a "
                        "wave together; expected lazy_rescale = false";
    return failure();
  }
  // Who asks for alike warps and nothing else, as for tensors that no engine
  // copies, gets what the chip's table has for them.
  bool ofTable = isDefault || StringRef(query.asked).trim() == "producers=0";
  if (failed(checkFits(op, attr, target, ofTable)))
    return failure();
  op.setScheduleAttr(attr);
  // Other kernels take the short sequences of a launch that has long ones,
  // too.
  if (query.otherByLaunch && isDefault && op.isRagged() && !attr.getSplitKeys())
    if (std::optional<FewQueryRows> few = fewQueryRows(op, target))
      op->setAttr(kSharedRowsAttr,
                  SharedRows{few->most, -1, few->most}.attribute(context));
  std::string text;
  llvm::raw_string_ostream(text) << attr;
  remark::passed(op.getLoc(),
                 remark::RemarkOpts::name("schedule").category(DEBUG_TYPE))
      << "chose " << text << " for " << target.chip;
  return success();
}
