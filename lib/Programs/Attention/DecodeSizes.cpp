//===- DecodeSizes.cpp - How work of few query rows is divided ------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DecodeSizes.h"
#include "Attention.h"
#include "ProblemLimits.h"
#include "Schedules/Tuning.h"
#include "TileProgram.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/SizeExpressions.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

DecodeSizes::DecodeSizes(AttentionOp op, const TargetInfo &target,
                         ScheduleAttr schedule, int64_t warps)
    : op(op), target(target), schedule(schedule), warps(warps),
      mask(op.getMaskValue()), headParts(headPartsOf(op, schedule.getBM())),
      group(op.getHeads() / op.getKVHeads() / headParts),
      lineHeads(op.getKVHeads() * headParts), tokens(knownRowsOf(op)) {
  // Where blocks have equal shares of all sequences, their warps have heads
  // side by side, and read the same pages at about the same time.
  if (schedule.getSplitKeys()->equalShares && lineHeads % warps == 0)
    heads = std::exchange(this->warps, 1);
  // Whatever number of query rows there is, a block has as many as a tile
  // holds of all heads that share a head of the cache.
  int64_t room = schedule.getBM() / group;
  oneTile = tokens >= 0 && tokens <= room;
  ownQueries = oneTile ? tokens : room;
  if (tokens >= 0) {
    slices = number(oneTile ? 1 : llvm::divideCeil(tokens, ownQueries));
    return;
  }
  Attribute longest = str(kLongestQuerySize);
  // Of more rows than these, a sequence is another kernel's.
  if (std::optional<SharedRows> rows = SharedRows::of(op))
    longest = expr("min", {longest, number(rows->upto)});
  slices =
      expr("max", {number(1), expr("ceildiv", {longest, number(ownQueries)})});
}

std::pair<Attribute, Attribute> DecodeSizes::ownRowsOf() const {
  std::optional<SharedRows> rows = SharedRows::of(op);
  if (!rows)
    return {};
  // As many as there may be, where no sequence has more.
  constexpr int64_t kAny = int64_t(1) << 30;
  auto times = [&](int64_t n, Attribute x) {
    return expr("product", {number(n), x});
  };
  // 1 where `x` is 1 or more, else 0.
  auto isPositive = [&](Attribute x) {
    return expr("max", {number(0), expr("min", {number(1), x})});
  };
  Attribute longest = str(kLongestQuerySize), over;
  Attribute alone =
      isPositive(expr("sum", {number(rows->shared + 1), times(-1, longest)}));
  Attribute shared = isPositive(expr("sum", {longest, number(-rows->shared)}));
  if (rows->over)
    over = times(rows->over, shared);
  return {over, expr("sum", {number(rows->upto), times(kAny, alone)})};
}

Attribute DecodeSizes::sequencesWithRest() const {
  std::optional<SharedRows> rows = SharedRows::of(op);
  if (!rows)
    return str(kBatchSize);
  // 1 where the kernel runs alone, else 0.
  Attribute left =
      expr("sum", {number(rows->shared + 1),
                   expr("product", {number(-1), str(kLongestQuerySize)})});
  Attribute alone = expr("max", {number(0), expr("min", {number(1), left})});
  return expr("product", {str(kBatchSize), alone});
}

Attribute DecodeSizes::str(StringRef text) const {
  return StringAttr::get(op->getContext(), text);
}

Attribute DecodeSizes::number(int64_t value) const {
  return Builder(op->getContext()).getI64IntegerAttr(value);
}

Attribute DecodeSizes::expr(StringRef name,
                            ArrayRef<Attribute> operands) const {
  return SizeAttr::of(op->getContext(), name, operands);
}

int64_t DecodeSizes::fewestLines() const {
  auto known = dyn_cast<IntegerAttr>(slices);
  return lineHeads / heads * (known ? known.getInt() : 1);
}

/// Tiles of teams that are one piece together: of two and three pieces one
/// block joins all, which takes longer than to compute them (H200, a list of
/// packed rows: 12.0 us for 128 keys, in pieces of two tiles 18.3 for 256, of
/// one 13.9).
static constexpr int64_t kTilesTogether = 3;

int64_t DecodeSizes::leastSplit() const {
  return warps > 1 ? warps * schedule.getBN() : Tuning(target).leastSplitKeys;
}

Attribute DecodeSizes::splitsOf() const {
  Attribute room = mostTokensOf(op.getK().getType());
  if (int64_t size = schedule.getSplitKeys()->size)
    return expr("max", {number(1), expr("ceildiv", {room, number(size)})});
  // As many as keep the device busy, as long as they are worth it.
  Attribute lines = op.isRagged() ? number(lineHeads) : linesOf();
  Attribute most = expr(
      "floordiv",
      {busyBlocks(),
       expr("max", {number(1), expr("product", {str(kBatchSize), lines})})});
  return expr("max", {number(1), expr("min", {worthOf(room), most})});
}

Attribute DecodeSizes::worthOf(Attribute room) const {
  // Beside a sink it may be that blocks do not join together.
  if (!schedule.getMovingTeam() || op.getSink())
    return expr("ceildiv", {room, number(leastSplit())});
  // The more blocks join, the sooner: more tiles are a piece each.
  Attribute tiles = expr("ceildiv", {room, number(schedule.getBN())});
  Attribute more = expr("sum", {tiles, number(-kTilesTogether)});
  more = expr("max", {number(0), expr("min", {number(1), more})});
  return expr("product", {tiles, more});
}

Attribute DecodeSizes::tilesOnHost() const {
  // A mask's right side hides no key from the last row, which a tile of all
  // rows has.
  if (!oneTile || !op.getK().getType().getRows().endWithData() ||
      mask.boundsLeft())
    return nullptr;
  return expr("ceildiv",
              {mostTokensOf(op.getK().getType()), number(schedule.getBN())});
}

int64_t DecodeSizes::residentBlocks() const {
  int64_t page = smallPageOf(op);
  int64_t more = page == 0 ? 1
                 : op.isQuantized() && page < 16
                     ? Tuning(target).splitsOfSmallNarrowPages
                     : Tuning(target).splitsOfSmallPages;
  int64_t blocks = Tuning(target).splitsPerMultiprocessor * more /
                   (warps * heads * schedule.getWarps());
  // Those for which there is no room would come in a second turn (H200, 32 rows
  // of heads of 128 over pages of one token, eight blocks where six have room:
  // 71 % of what copies alone read, against 80 with queries in registers).
  ScheduleLimits limits = limitsOf(op, schedule.getStructure(), target);
  // Of blocks whose warps share a tile two hide each other's waits.
  constexpr int64_t ofShared = 2;
  if (!schedule.getStructure().warpsByThemselves() &&
      schedule.getWarpCols() == 1)
    blocks = ofShared;
  if (TileOperands operands = operandsOf(op);
      limits.readsQueriesFromLds(operands) || schedule.getWarps() > 1) {
    constexpr int64_t ofDriver = 1024;
    int64_t bytes = heads * limits.sharedBytes(operands);
    blocks = std::min(blocks, target.ldsBytes / (bytes + ofDriver));
  }
  return std::max<int64_t>(1, blocks);
}

Attribute DecodeSizes::busyBlocks() const {
  return expr("product", {str(kMultiprocessorsSize), number(residentBlocks())});
}

bool DecodeSizes::pairsBlocks() const {
  const SplitKeys *split = schedule.getSplitKeys();
  CacheType cache = op.getK().getType();
  // Rows of bytes, and what widens them, leave no slots that could be traded
  // through.
  return split && split->equalShares && split->cluster == 2 && oneTile &&
         lineHeads == 1 && schedule.getMovingTeam() && op.isLatent() &&
         !cache.getRow() &&
         cache.getElementType().getIntOrFloatBitWidth() == 16;
}

Attribute DecodeSizes::workersOf() const {
  Attribute one = number(1), batch = expr("max", {one, str(kBatchSize)});
  Attribute most = expr(
      "max", {one, expr("floordiv", {busyBlocks(), number(fewestLines())})});
  // With a whole number of blocks a sequence, those of sequences of one length
  // begin and end with them: then no piece is left over that others join. As
  // long as no more than a tenth of the blocks is missing.
  // With more sequences than blocks, each has a whole number of them instead,
  // as long as the blocks that are missing would have no more than a tenth of a
  // sequence of each (H200, 64 heads, 4096 lists of 2048, 132 blocks for 128:
  // 2186 us for 2226).
  Attribute whole = expr("ceildiv", {batch, most});
  Attribute even =
      expr("max", {expr("product", {batch, expr("floordiv", {most, batch})}),
                   expr("ceildiv", {batch, whole})});
  Attribute missing = expr("sum", {most, expr("product", {number(-1), even})});
  auto times = [&](int64_t n, Attribute x) {
    return expr("product", {number(n), x});
  };
  Attribute fewest =
      expr("product", {most, expr("sum", {times(10, whole), number(-1)})});
  Attribute tooMany =
      expr("max",
           {number(0),
            expr("sum", {fewest, expr("product", {times(-10, whole), even})})});
  return expr("sum",
              {even, expr("product", {missing, expr("min", {one, tooMany})})});
}
