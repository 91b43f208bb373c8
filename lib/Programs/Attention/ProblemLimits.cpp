//===- ProblemLimits.cpp - What a chip has for a problem ------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProblemLimits.h"
#include "AddedScores.h"
#include "CacheScales.h"
#include "TiledReads.h"
#include "VisibleBounds.h"
#include "WidenCaches.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "kvbuffer/Dialect/KVBuffer/IR/PackedRow.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/VerifyElements.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-choose-schedule"

/// Columns and bytes that lanes of teams fill slots of packed rows by.
static constexpr int64_t kBlockCols = 64, kVectorBytes = 16;

static int64_t bytesOf(Type element) {
  return element.getIntOrFloatBitWidth() / 8;
}

/// Whether one warp widens bytes of packed rows where they lie in the slot: in
/// pieces of 128, each with one scale that lies in the row.
static bool isWidenedInPlace(ArrayRef<RowSegment> columns, RowAttr row) {
  constexpr int64_t piece = 128;
  const RowSegment &segment = columns.front();
  RowPartAttr part = segment.part;
  return columns.size() == 1 && part.getScale() && part.getScale().isF32() &&
         part.getGranularity() % piece == 0 && segment.inPart % piece == 0 &&
         segment.count % piece == 0 && part.getScaleAt() < row.getBytes();
}

/// The columns of packed rows that slots of teams have: the halves of the
/// values, and the rest.
static SmallVector<SmallVector<RowSegment>> columnsOfTeams(AttentionOp op) {
  RowAttr row = rowOfTeams(op);
  int64_t half = op.getValueHeadSize() / 2;
  SmallVector<SmallVector<RowSegment>> list;
  for (int64_t first : {int64_t(0), half, 2 * half})
    if (int64_t upto = first < 2 * half ? first + half : op.getHeadSize();
        first < upto)
      list.push_back(segmentsOf(row, first, upto - first));
  return list;
}

RowAttr kvbuf::rowOfTeams(AttentionOp op) {
  CacheType cache = op.getKCacheType();
  Type element = cache.getElementType();
  if (cache.getRow())
    return cache.getRow();
  if (!op.isLatent() || isScaledByToken(cache) || bytesOf(element) != 1 ||
      bytesOf(op.getElementType()) == 1 || cache.getCacheDepth() % kVectorBytes)
    return {};
  auto part = RowPartAttr::get(op.getContext(), cache.getHeadSize(), element,
                               cache.getHeadDimOffset(), /*scale=*/Type(),
                               /*granularity=*/0, /*scale_at=*/0);
  return RowAttr::get(op.getContext(), cache.getCacheDepth(), part, /*tail=*/0,
                      /*tail_rows=*/0, /*tail_stride=*/0);
}

TileOperands kvbuf::operandsOf(AttentionOp op) {
  memref::LoadOp read = tiledReadOf(op);
  TileOperands operands{op.getHeadSize(),
                        op.getValueHeadSize(),
                        bytesOf(op.getElementType()),
                        bytesOf(op.getKCacheType().getElementType()),
                        bytesOf(op.getVCacheType().getElementType()),
                        op.isLatent(),
                        op.isRagged(),
                        op.getMaskValue().boundsLeft(),
                        read ? bytesOf(read.getMemRefType().getElementType())
                             : 0,
                        AddedScores::of(op, read).has_value(),
                        bool(op.getKCacheType().getRow())};
  if (readsWidened(op))
    operands.keyBytes = operands.valueBytes = operands.bytes;
  RowAttr row = rowOfTeams(op);
  if (!row)
    return operands;
  for (ArrayRef<RowSegment> columns : columnsOfTeams(op)) {
    if (isCopiedWhole(columns, op.getElementType()))
      continue;
    operands.widenedBytes += elementBytesOf(columns) + scaleBytesOf(columns);
    operands.widensAhead |= !isWidenedInPlace(columns, row);
  }
  return operands;
}

int64_t kvbuf::headPartsOf(AttentionOp op, int64_t rows) {
  int64_t group = op.getHeads() / op.getKVHeads();
  if (!op.isLatent())
    return 1;
  int64_t parts = 1;
  while (group % parts || group / parts > rows)
    ++parts;
  return parts;
}

/// Columns of O beyond which a block may have a part of them: rows of several
/// heads are no window of columns.
static constexpr int64_t kMostFoldedColumns = 256;

int64_t kvbuf::foldedHeadsOf(AttentionOp op, int64_t rows) {
  auto q = cast<MemRefType>(op.getQ().getType());
  int64_t group = op.getHeads() / op.getKVHeads();
  if (op.isRagged() || q.isDynamicDim(1) || op.isLatent() ||
      op.getBatchInvariant() || op.isQuantized() ||
      bytesOf(op.getElementType()) != 2 || op.getSink() ||
      op.getBlockMaskAttr() || tiledReadOf(op) || rows % group ||
      op.getValueHeadSize() > kMostFoldedColumns ||
      q.getDimSize(1) > kMostTreeQueries)
    return 1;
  // Tiles of all heads, and of each by itself.
  int64_t queries = q.getDimSize(1);
  int64_t together = llvm::divideCeil(queries * group, rows);
  int64_t apart = group * llvm::divideCeil(queries, rows);
  return together < apart ? group : 1;
}

ScheduleLimits kvbuf::limitsOf(AttentionOp op, const Schedule &schedule,
                               const TargetInfo &target) {
  std::string element = elementName(op.getElementType());
  return ScheduleLimits(
      schedule, target,
      target.matrixInstructionsFor(element).empty() ? "bf16" : element);
}

std::optional<int64_t> kvbuf::mostKeysOfRows(AttentionOp op) {
  MaskAttr mask = op.getMaskValue();
  if (!mask.boundsLeft() || !mask.boundsRight() || op.getBlockMaskAttr())
    return std::nullopt;
  // Each is up to 2^62.
  uint64_t keys = uint64_t(mask.getLeft()) + mask.rightReach() + 1;
  return std::min<uint64_t>(keys, std::numeric_limits<int64_t>::max());
}

std::string kvbuf::headSizesText(AttentionOp op) {
  std::string text = std::to_string(op.getHeadSize());
  if (op.getValueHeadSize() != op.getHeadSize())
    text += ", " + std::to_string(op.getValueHeadSize()) + " of values,";
  return text;
}

StringRef kvbuf::whyNotShared(AttentionOp op, const TargetInfo &target) {
  if (op.getBlockMaskAttr())
    return "lists of blocks name other keys for each tile of queries";
  if (boundsEnds(op))
    return "a function of visibility shows other keys to each tile of queries";
  // Who widens packed rows stores some for all blocks.
  if (rowOfTeams(op))
    return "";
  // A part of a tile is a box of its tensor; other tiles are copied by threads.
  CacheType cache = op.getK().getType();
  bool isPaged = cache.getRun() != 0 && !readsWidened(op);
  if ((!isPaged && !cache.getRows().endWithData() && !readsWidened(op)) ||
      op.isRagged())
    return "only tiles of dense caches and of pages are boxes of their tensors";
  // Of pages of fewer rows than boxes are made of, the blocks of a cluster copy
  // the same rows at the same time, each for itself.
  if (isPaged && !target.boxesPages(cache.getPageSize()) &&
      cache.getPageSize() >= target.fewestPageRows)
    return "threads copy tiles over pages of numbers of rows that do not "
           "divide";
  if (op.getMaskValue().boundsLeft())
    return "a window on the left cuts tiles, which threads then copy";
  return "";
}

/// Checks the part of a schedule that clusters of blocks add.
static LogicalResult checkCluster(AttentionOp op, ScheduleAttr s,
                                  const TargetInfo &target) {
  int64_t cluster = s.getStructure().cluster();
  if (cluster == 1)
    return success();
  if (cluster > target.maxCluster || !llvm::isPowerOf2_64(cluster))
    return op.emitOpError() << "cluster = " << cluster
                            << " is not supported; expected a power of two up "
                               "to "
                            << target.maxCluster;
  if (StringRef why = whyNotShared(op, target); !why.empty())
    return op.emitOpError()
           << "cluster = " << s.getStructure().cluster()
           << " does not fit: " << why << "; expected cluster = 1";
  // Blocks of a cluster take blocks of columns, and then parts of their rows.
  int64_t parts = 1;
  for (int64_t size : {op.getHeadSize(), op.getValueHeadSize()}) {
    int64_t columns = llvm::divideCeil(size, s.getBK());
    parts = std::lcm(parts, cluster / std::gcd(cluster, columns));
  }
  int64_t rows = parts * target.clusterPartRows;
  if (s.getBN() % rows)
    return op.emitOpError()
           << "cluster = " << cluster << " does not fit BN = " << s.getBN()
           << ": " << parts << " blocks divide the rows of a tile of keys into "
           << "parts of whole " << target.clusterPartRows << "; BN = "
           << std::max<int64_t>(llvm::alignDown(s.getBN(), rows), rows)
           << " would fit";
  return success();
}

LogicalResult kvbuf::checkLatent(AttentionOp op, ScheduleAttr schedule) {
  if (!op.isLatent() || schedule.getSplitKeys())
    return success();
  return op.emitOpError()
         << "has values that are a part of its keys, in tiles that both "
            "products read; expected split_keys = true";
}

/// Why teams do not fill slots of `element` with columns of a packed row; empty
/// where they do.
static StringRef whyNotByTeams(const RowSegment &segment, RowAttr row,
                               Type element) {
  RowPartAttr part = segment.part;
  if (segment.count % kBlockCols || segment.inPart % kBlockCols ||
      segment.at() % kVectorBytes)
    return "teams fill slots by 64 columns that are of one part and begin at a "
           "multiple of 16 bytes";
  if (segment.isCopied(element))
    return "";
  if (segment.width() != 1)
    return "teams widen elements of 8 bits, and copy those of q's type";
  Type scale = part.getScale();
  if (!scale)
    return "";
  // A lane has eight elements, and words of 32 bits bring scales.
  constexpr int64_t own = 8, word = 4;
  int64_t group = part.getGranularity();
  if (!(scale.isF32() || isa<Float8E8M0FNUType>(scale)) || group % own ||
      (group % kBlockCols && kBlockCols % group))
    return "teams widen by scales in f32 or powers of two, of 8, 16, 32 "
           "elements or a multiple of 64";
  int64_t first = segment.scalesAt(), end = first + segment.scaleBytes(),
          room = first < row.getBytes() ? row.getBytes()
                                        : row.getBytes() + row.getTail();
  if (first % word || end > room ||
      (first >= row.getBytes() && row.getTail() % word))
    return "teams read scales by words of 32 bits, which these are not";
  return "";
}

StringRef kvbuf::whyNotPackedByTeams(AttentionOp op) {
  RowAttr row = rowOfTeams(op);
  if (!row)
    return "";
  for (ArrayRef<RowSegment> columns : columnsOfTeams(op))
    for (const RowSegment &segment : columns)
      if (StringRef why = whyNotByTeams(segment, row, op.getElementType());
          !why.empty())
        return why;
  return "";
}

/// Checks what a schedule may ask of rows that lanes widen on their way.
static LogicalResult checkPacked(AttentionOp op, ScheduleAttr s) {
  CacheType cache = op.getK().getType();
  StringRef name, expected;
  const auto *loads = std::get_if<LoadsAhead>(&s.getAhead());
  StringRef why = s.getMovingTeam() ? whyNotPackedByTeams(op) : "";
  if (!why.empty())
    return op.emitOpError()
           << "has " << (cache.getRow() ? "packed rows" : "rows of bytes")
           << ", and " << why << "; expected producers = 0";
  if (!cache.getRow())
    return success();
  if (s.getKeys() != Movement(WholeTiles{}))
    name = "k_path", expected = "k_path = direct and full_kv = true";
  else if (loads && loads->pages)
    name = "look_ahead", expected = "look_ahead = false";
  else
    return success();
  return op.emitOpError()
         << "has packed rows, which all lanes of a block widen "
            "on their way into slots; expected "
         << expected << ", not another " << name;
}

/// Checks what a schedule that splits keys has to have room for.
static LogicalResult checkSplitKeys(AttentionOp op, ScheduleAttr s) {
  if (failed(checkLatent(op, s)))
    return failure();
  if (op.isLatent() && s.getValues() != Movement(WholeTiles{}))
    return op.emitOpError()
           << "has values that are a part of its keys, and come where these "
              "do; expected v_path = direct";
  if (s.getSplitKeys() && s.getMovingTeam() && !op.isLatent())
    return op.emitOpError()
           << "split_keys = true with producers is for values that are a part "
              "of keys (one cache that is k and v); expected producers = 0";
  if (s.getSplitKeys() && s.getWarpCols() > 1 && !op.isLatent())
    return op.emitOpError()
           << "split_keys = true with warp_cols = " << s.getWarpCols()
           << ", whose warps share tiles of keys, is for values that are a "
              "part of keys (one cache that is k and v); expected warp_cols = "
              "1";
  int64_t group = op.getHeads() / op.getKVHeads();
  if (!s.getSplitKeys() || group / headPartsOf(op, s.getBM()) <= s.getBM())
    return success();
  return op.emitOpError()
         << "split_keys = true needs a query row of each of the " << group
         << " heads that share a head of the cache in one tile; BM = "
         << s.getBM() << " has no room for them";
}

/// Checks that tiles are parts of the blocks that a problem's lists name.
static LogicalResult checkBlocks(AttentionOp op, ScheduleAttr s) {
  BlockMaskAttr blocks = op.getBlockMaskAttr();
  if (!blocks)
    return success();
  if (s.getSplitKeys())
    return op.emitOpError() << "has a block_mask, whose lists are of tiles of "
                               "queries that visit "
                               "all of their keys; expected split_keys = false";
  if (blocks.getRows() % s.getBM() || blocks.getKeys() % s.getBN())
    return op.emitOpError()
           << "has a block_mask with blocks of " << blocks.getRows()
           << " rows and " << blocks.getKeys()
           << " keys; expected BM and BN that divide them, got BM = "
           << s.getBM() << ", BN = " << s.getBN();
  return success();
}

StringRef kvbuf::whyNotWidened(AttentionOp op) {
  if (isScaledByGroup(op.getK().getType()) ||
      isScaledByGroup(op.getV().getType()))
    return "scales for groups of columns, whose products no team widens for";
  return "";
}

/// Checks that kernels of a schedule can read quantized caches, if they have
/// to.
static LogicalResult checkQuantized(AttentionOp op, ScheduleAttr schedule,
                                    const TargetInfo &target) {
  const MovingTeam *mover = schedule.getMovingTeam();
  int64_t wideners = mover ? mover->widens.warps : 0;
  bool bytes = bytesOf(op.getElementType()) == 1;
  if (wideners && !bytes && (!op.isQuantized() || readsWidened(op)))
    return op.emitOpError()
           << "has nothing to widen for wideners = " << wideners
           << ": its caches are of " << op.getElementType()
           << "; expected wideners = 0";
  if ((!op.isQuantized() || readsWidened(op)) && !bytes)
    return success();
  bool byMover = rowOfTeams(op) != nullptr;
  if (wideners && byMover)
    return op.emitOpError()
           << "has rows that are keys and values, which the warps that move "
              "them widen; expected wideners = 0";
  // Elements are widened by a team on their way, or on theirs into registers.
  if (mover && !wideners && bytes)
    return op.emitOpError()
           << "multiplies " << op.getElementType()
           << ", of which warp groups read V turned; expected wideners > 0, "
              "which turn it, or producers = 0";
  if (mover && !wideners && !byMover)
    return op.emitOpError()
           << "has quantized caches, whose elements products cannot read from "
              "shared memory; expected wideners > 0, producers = 0, or caches "
              "of "
           << op.getElementType();
  if (StringRef why = whyNotWidened(op); mover && !why.empty())
    return op.emitOpError() << "has " << why << "; expected producers = 0";
  if (op.isLatent() && isScaledByToken(op.getK().getType()))
    return op.emitOpError()
           << "has rows that are keys and values with scales of tokens, by "
              "which weights that warps share would be multiplied; expected "
              "granularity = tensor or head";
  if (schedule.getWarpCols() > 1 && !op.isLatent())
    return op.emitOpError()
           << "has quantized caches, and warp_cols = " << schedule.getWarpCols()
           << ", whose warps share the columns of rows; "
              "expected warp_cols = 1";
  CacheType values = op.getV().getType();
  if (schedule.getLazyRescale() && values.getScaleType() &&
      values.getGranularity() > 0)
    return op.emitOpError()
           << "has a scale for each token of v, which multiplies weights "
              "before "
              "they are rounded, and lazy_rescale rounds them first; expected "
              "lazy_rescale = false";
  for (auto [name, cache] : {std::pair("k", op.getK().getType()),
                             std::pair("v", op.getV().getType())}) {
    // 16 bytes of a row are copied at a time.
    constexpr int64_t kRowUnit = 16;
    for (auto [what, size] :
         {std::pair<StringRef, int64_t>{"head_size", cache.getHeadSize()},
          {"cache_depth", cache.getCacheDepth()},
          {"head_dim_offset", cache.getHeadDimOffset()}})
      if (size % kRowUnit)
        return op.emitOpError()
               << "has " << what << " = " << size << " of " << name
               << " with elements of a byte; expected a multiple of "
               << kRowUnit;
    bool isK = name == StringRef("k");
    const MatrixInstruction *mma = target.instructionFor(
        schedule.getMmaShape(isK ? ProductKind::Scores : ProductKind::Values),
        elementName(op.getElementType()));
    if (!mma || !isScaledByGroup(cache))
      continue;
    // A group of K's elements, and one of V's columns, has products of its own.
    int64_t group = cache.getGranularity();
    int64_t unit = isK                    ? mma->k * mma->group
                   : schedule.getSwapAB() ? mma->m
                                          : mma->n;
    if (group % unit)
      return op.emitOpError()
             << "has scales for groups of " << group << " elements of " << name
             << ", and a product on " << target.chip
             << (isK ? " contracts " : " takes ") << unit
             << (isK ? " of them" : " of its columns")
             << " at a time; expected granularity = tensor, head, "
             << cache.getHeadSize() << " or a multiple of " << unit;
  }
  return success();
}

/// Checks that a team can turn values for warp groups: keys of a tile lie in a
/// row that a swizzle spans, and its warps share the columns by instructions.
static LogicalResult checkTurned(AttentionOp op, ScheduleAttr schedule,
                                 const MovingTeam &mover) {
  int64_t BN = schedule.getBN(), columns = op.getValueHeadSize();
  if (BN != 32 && BN != 64 && BN != 128)
    return op.emitOpError() << "turns tiles of BN = " << BN
                            << " keys for warp groups; expected BN = 32, 64 or "
                               "128";
  // Columns of a warp: instructions side by side, and a power of two.
  constexpr int64_t unit = 16;
  int64_t wideners = mover.widens.warps;
  if (!wideners ||
      (columns % (unit * wideners) == 0 && llvm::isPowerOf2_64(columns)))
    return success();
  return op.emitOpError() << "has values of " << columns << " columns, which "
                          << wideners
                          << " wideners turn; expected a power of two of "
                          << unit * wideners << " and more";
}

/// Checks what products of 8-bit floats ask of a problem and its schedule, and
/// that others ask for nothing that is theirs.
static LogicalResult checkFloat8(AttentionOp op, ScheduleAttr schedule,
                                 const TargetInfo &target) {
  bool isFast = schedule.getAccumulate() == Accumulation::Fast;
  std::string element = elementName(op.getElementType());
  if (bytesOf(op.getElementType()) != 1) {
    if (isFast)
      return op.emitOpError()
             << "accumulate = fast is for products of 8-bit floats, and those "
                "of "
             << element << " are added up by the matrix unit; expected "
             << "accumulate = two_level";
    return success();
  }
  if (isFast && !target.float8SumBits)
    return op.emitOpError()
           << "accumulate = fast leaves nothing out on " << target.chip
           << ", whose matrix unit adds 8-bit products up in f32; expected "
              "accumulate = two_level";
  if (schedule.getMovingTeam() && !target.turnsBytesForGroups())
    return op.emitOpError() << "multiplies " << element
                            << ", which no groups of warps multiply on "
                            << target.chip << "; expected producers = 0";
  if (const MovingTeam *mover = schedule.getMovingTeam())
    if (failed(checkTurned(op, schedule, *mover)))
      return failure();
  if (schedule.getLazyRescale())
    return op.emitOpError()
           << "multiplies weights of " << elementName(weightsOf(op))
           << ", which lazy_rescale would let exceed the largest number; "
              "expected lazy_rescale = false";
  if (schedule.getWarpCols() > 1)
    return op.emitOpError()
           << "multiplies " << element
           << ", and warp_cols = " << schedule.getWarpCols()
           << ", whose warps hand each other weights of 16 bits; expected "
              "warp_cols = 1";
  if (isScaledByToken(op.getV().getType()))
    return op.emitOpError()
           << "has a scale for each token of v, which would multiply weights "
              "of "
           << elementName(weightsOf(op))
           << ", whose range is too small for them; expected granularity = "
              "tensor or head of v";
  return success();
}

/// Checks what tiles of a problem have to be for the kinds of its schedule.
static LogicalResult checkKinds(AttentionOp op, ScheduleAttr schedule) {
  CacheType cache = op.getK().getType();
  const auto *loads = std::get_if<LoadsAhead>(&schedule.getAhead());
  if (loads && loads->pages && !cache.getRun())
    return op.emitOpError()
           << "look_ahead = true looks up pages, which "
           << stringifyCacheKind(cache.getKind())
           << " caches do not have; expected look_ahead = false";
  const MovingTeam *mover = schedule.getMovingTeam();
  if (mover && mover->stagesOutput && bytesOf(op.getOutElementType()) != 2)
    return op.emitOpError()
           << "stage_output = true moves elements of 16 bits through shared "
              "memory, and out is of "
           << op.getOutElementType() << "; expected stage_output = false";
  return success();
}

/// Checks that what a problem says to be widened can be, and is read.
static LogicalResult checkWidened(AttentionOp op, ScheduleAttr schedule) {
  if (!readsWidened(op))
    return success();
  if (!canWidenAhead(op))
    return op.emitOpError()
           << "has the attribute '" << kWidenedAttr
           << "', but no kernel widens its caches ahead; expected 16-bit "
              "queries over dense or paged caches of whole rows of 8-bit "
              "floats, without scales of tokens, and no bound of the keys but "
              "the mask's right one";
  if (schedule.getSplitKeys())
    return op.emitOpError()
           << "has the attribute '" << kWidenedAttr
           << "', which kernels that split keys do not read; expected "
              "split_keys = false";
  if (!holdsWidenedQueries(op, schedule.getQInRegs()))
    return op.emitOpError()
           << "has the attribute '" << kWidenedAttr << "', whose keys are of "
           << widenedKeysOf(op)
           << ", which queries are fit to in registers; expected q_in_regs = "
              "true";
  if (kZerosBehind % schedule.getBN())
    return op.emitOpError()
           << "has the attribute '" << kWidenedAttr
           << "', and zeros follow its keys up to a multiple of "
           << kZerosBehind << "; expected a BN that divides it, got "
           << schedule.getBN();
  return success();
}

LogicalResult kvbuf::checkFits(AttentionOp op, ScheduleAttr schedule,
                               const TargetInfo &target, bool isDefault) {
  if (failed(checkWidened(op, schedule)) ||
      failed(verifyElements(op, op.getElementType(), target)) ||
      failed(checkFloat8(op, schedule, target)) ||
      failed(checkQuantized(op, schedule, target)))
    return failure();
  TileOperands operands = operandsOf(op);
  ScheduleLimits limits = limitsOf(op, schedule.getStructure(), target);
  if (std::optional<std::string> why = limits.whyNotOnChip(&operands))
    return op.emitOpError() << *why;
  if (failed(checkPacked(op, schedule)) ||
      failed(checkSplitKeys(op, schedule)) ||
      failed(checkBlocks(op, schedule)) || failed(checkKinds(op, schedule)) ||
      failed(checkCluster(op, schedule, target)))
    return failure();
  if (std::optional<std::string> why = limits.whyNotFor(operands, isDefault))
    return op.emitOpError() << *why;
  const MovingTeam *mover = schedule.getMovingTeam();
  if (int64_t columns = limits.columnsApart(operands);
      mover && mover->stagesOutput && bytesOf(op.getElementType()) == 1 &&
      columns < op.getValueHeadSize())
    return op.emitOpError()
           << "stage_output = true moves whole rows through shared memory, and "
              "products have "
           << columns << " columns at a time; expected stage_output = false";
  int64_t registers = limits.registers(operands);
  if (!schedule.getMovingTeam() && registers > target.registersPerLane)
    remark::missed(op.getLoc(),
                   remark::RemarkOpts::name("registers").category(DEBUG_TYPE))
        << "head size " << headSizesText(op) << " needs "
        << std::to_string(registers) << " registers in a lane, " << target.chip
        << " has " << std::to_string(target.registersPerLane)
        << ": the rest is kept in memory, which is slow";
  return success();
}
