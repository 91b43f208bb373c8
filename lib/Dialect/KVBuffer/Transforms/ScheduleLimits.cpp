//===- ScheduleLimits.cpp - What a chip has for a schedule
//----------------===////
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScheduleLimits.h"
#include "kvbuffer/Dialect/KVBuffer/IR/ScheduleStructure.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/VerifyElements.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-choose-schedule"

/// Shared memory for barriers and mailboxes, with the alignment of slots.
static constexpr int64_t kBarrierBytes = 1024;

std::pair<int64_t, int64_t>
kvbuf::paddedHeadSizes(AttentionOp op, const ScheduleParameters &s) {
  return {llvm::alignTo(op.getHeadSize(), s.BK),
          llvm::alignTo(op.getValueHeadSize(), s.BK)};
}

std::string kvbuf::headSizesText(AttentionOp op) {
  std::string text = std::to_string(op.getHeadSize());
  if (op.getValueHeadSize() != op.getHeadSize())
    text += ", " + std::to_string(op.getValueHeadSize()) + " of values,";
  return text;
}

namespace {
/// What a schedule with roles takes of a chip.
struct RoleNeeds {
  /// Shared memory of a block, bytes.
  int64_t sharedBytes;
  /// Registers of a consumer's lane, at least.
  int64_t consumerRegisters;
  /// Registers of all lanes, and of all lanes at the kernel's start: what roles
  /// can pass on to each other.
  int64_t blockRegisters, startRegisters;
};
} // namespace

static RoleNeeds roleNeeds(AttentionOp op, ScheduleAttr s, int64_t BN,
                           int64_t stages, const TargetInfo &target) {
  auto [depth, valueDepth] = paddedHeadSizes(op, s.getParameters());
  int64_t bytes = op.getElementType().getIntOrFloatBitWidth() / 8;
  RoleNeeds needs;
  needs.sharedBytes =
      bytes * (depth * s.getBM() * s.getQStages() +
               (s.getStageOutput() ? valueDepth * s.getBM() : 0) +
               (depth + valueDepth) * stages * BN) +
      kBarrierBytes;
  // O and S in fp32, P and, where it stays in registers, Q.
  int64_t lanes = target.waveSize;
  int64_t elements = 4 * (valueDepth + BN) + bytes * BN;
  if (s.getQInRegs())
    elements += bytes * depth;
  needs.consumerRegisters =
      s.getWM() * elements / (4 * lanes) + target.workingRegisters;
  int64_t share = llvm::alignDown(
      target.registersPerBlock / ((s.getWarps() + s.getProducers()) * lanes),
      target.registerStep);
  needs.startRegisters = lanes * (s.getWarps() + s.getProducers()) * share;
  auto registers = [&](int64_t asked) { return asked ? asked : share; };
  needs.blockRegisters =
      lanes * (s.getWarps() * registers(s.getConsumerRegisters()) +
               s.getProducers() * registers(s.getProducerRegisters()));
  return needs;
}

StringRef kvbuf::whyNotShared(AttentionOp op) {
  // A part of a tile is a box of its tensor; other tiles are copied by threads.
  if (op.getK().getType().getKind() != CacheKind::Dense || op.isRagged())
    return "only tiles of dense caches are boxes of their tensors";
  if (op.getMaskValue().boundsLeft())
    return "a window on the left cuts tiles, which threads then copy";
  return "";
}

/// Checks the part of a schedule that clusters of blocks add.
static LogicalResult checkCluster(AttentionOp op, ScheduleAttr s,
                                  const TargetInfo &target) {
  int64_t cluster = s.getCluster();
  if (cluster == 1)
    return success();
  if (cluster > target.maxCluster || !llvm::isPowerOf2_64(cluster))
    return op.emitOpError() << "cluster = " << cluster
                            << " is not supported; expected a power of two up "
                               "to "
                            << target.maxCluster;
  if (StringRef why = whyNotShared(op); !why.empty())
    return op.emitOpError()
           << "cluster = " << s.getCluster() << " does not fit: " << why
           << "; expected cluster = 1";
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

LogicalResult kvbuf::checkChipHasRoles(AttentionOp op, int64_t producers,
                                       const TargetInfo &target) {
  if (!producers || target.warpsPerMatrixGroup)
    return success();
  return op.emitOpError()
         << "producers = " << producers << " does not fit " << target.chip
         << ", which has no products on operands in shared memory; expected "
            "producers = 0";
}

/// Checks a schedule whose warps have roles; names the limit that it breaks and
/// what would fit.
static LogicalResult checkRoles(AttentionOp op, ScheduleAttr s,
                                const TargetInfo &target) {
  int64_t group = target.warpsPerMatrixGroup;
  if (failed(checkChipHasRoles(op, s.getProducers(), target)))
    return failure();
  for (auto [name, warps] :
       {std::pair<StringRef, int64_t>{"warps", s.getWarps()},
        {"producers", s.getProducers()}})
    if (warps % group)
      return op.emitOpError()
             << name << " = " << warps << " is no whole number of groups of "
             << group << "; " << name << " = " << llvm::alignTo(warps, group)
             << " would fit";
  int64_t rows = s.getWarps() / group * target.matrixGroupRows;
  if (s.getBM() != rows)
    return op.emitOpError()
           << "BM = " << s.getBM() << " is not " << target.matrixGroupRows
           << " rows for each of " << s.getWarps() / group << " groups of "
           << group << " warps; BM = " << rows << " would fit";
  if (s.getBN() > target.matrixGroupCols)
    return op.emitOpError()
           << "BN = " << s.getBN() << " is more than the "
           << target.matrixGroupCols
           << " columns of a product; BN = " << target.matrixGroupCols
           << " would fit";
  for (int64_t size : {op.getHeadSize(), op.getValueHeadSize()})
    if (size % s.getMmaK() || size > target.matrixGroupCols)
      return op.emitOpError()
             << "producers need a head size of at most "
             << target.matrixGroupCols << " and a multiple of " << s.getMmaK()
             << ", got " << size << "; expected producers = 0";
  if (s.getStageOutput() &&
      op.getOutElementType().getIntOrFloatBitWidth() != 16)
    return op.emitOpError()
           << "stage_output = true moves elements of 16 bits through shared "
              "memory, and out is of "
           << op.getOutElementType() << "; expected stage_output = false";
  if (s.getBK() % s.getMmaK() || s.getBK() > 64)
    return op.emitOpError() << "BK = " << s.getBK()
                            << " does not fit the copies of producers; "
                               "expected 16, 32 or 64";
  if (s.getPingPong() && s.getWarps() < 2 * group)
    return op.emitOpError()
           << "ping_pong needs two groups of " << group
           << " warps, which take turns; warps = " << 2 * group << " would fit";
  if (failed(checkCluster(op, s, target)))
    return failure();
  int64_t threads = (s.getWarps() + s.getProducers()) * target.waveSize;
  if (threads > target.maxThreads) {
    InFlightDiagnostic diag = op.emitOpError()
                              << "a schedule of " << threads
                              << " threads does not fit " << target.chip
                              << ", which has at most " << target.maxThreads
                              << " in a block";
    if (int64_t left = target.maxThreads / target.waveSize - s.getProducers();
        left >= group)
      diag << "; warps = " << llvm::alignDown(left, group) << " would fit";
    return diag;
  }

  RoleNeeds needs = roleNeeds(op, s, s.getBN(), s.getStages(), target);
  if (needs.blockRegisters > needs.startRegisters) {
    int64_t left = needs.startRegisters - s.getProducers() *
                                              s.getProducerRegisters() *
                                              target.waveSize;
    int64_t most = llvm::alignDown(std::max<int64_t>(0, left) /
                                       (s.getWarps() * target.waveSize),
                                   target.registerStep);
    InFlightDiagnostic diag = op.emitOpError()
                              << "the roles take " << needs.blockRegisters
                              << " registers, " << target.chip << " gives "
                              << needs.startRegisters << " to a block of "
                              << threads << " threads";
    if (most >= needs.consumerRegisters)
      diag << "; consumer_registers = " << most << " would fit";
    return diag;
  }
  int64_t registers = s.getConsumerRegisters()
                          ? s.getConsumerRegisters()
                          : llvm::alignDown(target.registersPerBlock / threads,
                                            target.registerStep);
  auto fits = [&](const RoleNeeds &n) {
    return n.consumerRegisters <= registers && n.sharedBytes <= target.ldsBytes;
  };
  if (fits(needs))
    return success();
  InFlightDiagnostic diag = op.emitOpError();
  if (needs.sharedBytes > target.ldsBytes)
    diag << "the schedule needs " << needs.sharedBytes
         << " bytes of shared memory, " << target.chip << " has "
         << target.ldsBytes << " for a block";
  else
    diag << "a consumer's lane needs at least " << needs.consumerRegisters
         << " registers, the schedule gives it " << registers;
  for (int64_t BN = llvm::alignDown(s.getBN() - 1, 16); BN > 0; BN -= 16)
    if (fits(roleNeeds(op, s, BN, s.getStages(), target)))
      return diag << "; BN = " << BN << " would fit";
  for (int64_t stages = s.getStages() - 1; stages > 0; --stages)
    if (fits(roleNeeds(op, s, s.getBN(), stages, target)))
      return diag << "; stages = " << stages << " would fit";
  return diag << "; no BN would fit";
}

/// Checks a schedule that splits keys.
static LogicalResult checkSplitKeys(AttentionOp op, ScheduleAttr s) {
  if (!s.getSplitKeys())
    return success();
  int64_t group = op.getHeads() / op.getKVHeads();
  if (group > s.getBM())
    return op.emitOpError()
           << "split_keys = true needs a query row of each of the " << group
           << " heads that share a head of the cache in one tile; BM = "
           << s.getBM() << " has no room for them";
  if (aheadOf(s.getParameters()) != Ahead::Loads || s.getLazyRescale() ||
      s.getSumsInLds() || s.getXcds() > 1 || !s.getFullKV() ||
      s.getRegChunkDepth() || s.getWarpCols() > 1)
    return op.emitOpError() << "split_keys = true is for warps that work by "
                               "themselves, and goes "
                               "with none of overlap, overlap_products, "
                               "lazy_rescale, sums_in_lds, xcds, warp_cols, "
                               "reg_chunk_depth and full_kv = false";
  return success();
}

/// Bytes of an element of a cache in LDS.
static int64_t elementBytesOf(CacheType cache) {
  return cache.getElementType().getIntOrFloatBitWidth() / 8;
}

bool kvbuf::readsQueriesFromLds(AttentionOp op, const ScheduleParameters &s,
                                const TargetInfo &target) {
  if (!s.equalShares || s.warps > 1)
    return false;
  // Accumulators of 32 bits, queries of 16.
  auto [depth, valueDepth] = paddedHeadSizes(op, s);
  int64_t words = s.BM * valueDepth + s.BM * depth / 2;
  return 4 * words / target.waveSize > 3 * int64_t(target.registersPerLane);
}

int64_t kvbuf::splitKeysBytes(AttentionOp op, const ScheduleParameters &s,
                              const TargetInfo &target) {
  auto [depth, valueDepth] = paddedHeadSizes(op, s);
  int64_t tiles = (elementBytesOf(op.getKCacheType()) * depth +
                   elementBytesOf(op.getVCacheType()) * valueDepth) *
                  s.stages * s.BN;
  if (readsQueriesFromLds(op, s, target))
    tiles += 2 * depth * s.BM;
  return s.warps == 1 ? tiles : s.warps * (tiles + 4 * (valueDepth + 2) * s.BM);
}

int64_t kvbuf::registersFor(AttentionOp op, const ScheduleParameters &s,
                            const TargetInfo &target) {
  int64_t depth = paddedHeadSizes(op, s).second;
  // Where keys are split, each warp has all rows.
  int64_t rows = s.splitKeys ? s.BM : s.BM / s.warps;
  int64_t tilesOfScores = aheadOf(s) == Ahead::Scores ? 2 : 1;
  // A warp holds P of all the columns, of its own of the rest.
  return (rows * depth + tilesOfScores * rows * s.BN +
          rows * s.warpCols * s.BN / 2) /
         target.waveSize;
}

/// Whether K's fragments are in registers by parts.
static bool isChunked(AttentionOp op, ScheduleAttr schedule) {
  int64_t chunk = schedule.getRegChunkDepth();
  return chunk > 0 && chunk < op.getHeadSize();
}

/// Checks that kernels of a schedule can read quantized caches, if they have
/// to.
static LogicalResult checkQuantized(AttentionOp op, ScheduleAttr schedule,
                                    const TargetInfo &target) {
  if (!op.isQuantized())
    return success();
  // Elements are widened on their way into registers.
  if (schedule.getProducers())
    return op.emitOpError()
           << "has quantized caches, whose elements products cannot read from "
              "shared memory; expected producers = 0, or caches of "
           << op.getElementType();
  if (schedule.getWarpCols() > 1)
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
    int64_t group = cache.getGranularity();
    if (group > 0 && cache.getHeadSize() != group)
      return op.emitOpError()
             << "has scales for groups of " << group << " elements of " << name
             << ", which no kernel reads yet; expected granularity = tensor, "
                "head or "
             << cache.getHeadSize();
  }
  return success();
}

LogicalResult kvbuf::checkFits(AttentionOp op, ScheduleAttr schedule,
                               const TargetInfo &target, bool isDefault) {
  if (failed(verifyElements(op, op.getElementType(), target)) ||
      failed(checkQuantized(op, schedule, target)))
    return failure();
  const MatrixInstruction *mma = target.findMatrix(schedule.getMmaShape());
  if (!mma) {
    InFlightDiagnostic diag = op.emitOpError()
                              << target.chip << " has no matrix instruction of "
                              << "shape " << schedule.getMmaM() << "x"
                              << schedule.getMmaN() << "x" << schedule.getMmaK()
                              << "; it has ";
    llvm::interleaveComma(target.matrixInstructions, diag,
                          [&](const MatrixInstruction &m) {
                            diag << m.m << "x" << m.n << "x" << m.k;
                          });
    return diag;
  }
  bool swapped = schedule.getSwapAB();
  if (!target.feedsItself(*mma, swapped))
    return op.emitOpError()
           << "swap_a_b = " << (swapped ? "true" : "false") << " does not fit "
           << target.chip
           << ": scores of its matrix instructions lie across other lanes than "
              "operands; expected swap_a_b = "
           << (swapped ? "false" : "true");
  if (schedule.getVPath() == Path::Streaming &&
      schedule.getBN() % schedule.getBK())
    return op.emitOpError()
           << "v_path = streaming has strips of BK = " << schedule.getBK()
           << " keys, which do not divide BN = " << schedule.getBN()
           << "; expected a multiple of BK";
  if (failed(checkSplitKeys(op, schedule)))
    return failure();
  CacheKind kind = op.getK().getType().getKind();
  if (schedule.getLookAhead() && kind != CacheKind::Paged)
    return op.emitOpError()
           << "look_ahead = true looks up pages, which "
           << stringifyCacheKind(kind)
           << " caches do not have; expected look_ahead = false";
  Teams teams = teamsOf(schedule.getParameters());
  if (std::holds_alternative<Roles>(teams))
    return checkRoles(op, schedule, target);
  // Where each wave counts its own copies, halves of a block can take turns
  // (kvbuf-ping-pong).
  if (std::holds_alternative<Halves>(teams) && !target.copiesByWave)
    return op.emitOpError() << "ping_pong needs warps with roles; expected "
                               "producers > 0";
  if (op.getHeads() % schedule.getXcds())
    return op.emitOpError()
           << "xcds = " << schedule.getXcds() << " does not divide the "
           << op.getHeads() << " heads, which are dealt to the dies; xcds = "
           << std::gcd(op.getHeads(), schedule.getXcds()) << " would fit";
  auto [depth, valueDepth] = paddedHeadSizes(op, schedule.getParameters());
  // Rows of S are BM, its columns BN; with swapped operands they change places.
  int64_t rowUnit = schedule.getSwapAB() ? mma->n : mma->m;
  int64_t colUnit = schedule.getSwapAB() ? mma->m : mma->n;
  auto divides = [&](int64_t unit, int64_t size,
                     const Twine &what) -> LogicalResult {
    if (size % unit == 0)
      return success();
    return op.emitOpError() << "no " << mma->m << "x" << mma->n << "x" << mma->k
                            << " instruction divides " << what << " = " << size
                            << "; expected a multiple of " << unit;
  };
  int64_t warpCols = schedule.getWarpCols();
  auto shareOf = [&](StringRef what) {
    return warpCols == 1
               ? what.str()
               : (what + ", of which each of warp_cols = " + Twine(warpCols) +
                  " warps has a part,")
                     .str();
  };
  int64_t rowsOfWarp =
      schedule.getSplitKeys() ? schedule.getBM() : schedule.getWM();
  if (failed(divides(rowUnit, rowsOfWarp,
                     warpCols == 1 ? "the rows of a warp, BM / warps"
                                   : "the rows of a warp, BM / warps * "
                                     "warp_cols")) ||
      failed(divides(colUnit * warpCols, schedule.getBN(), shareOf("BN"))) ||
      failed(divides(mma->k * mma->group, schedule.getBN(), "BN")) ||
      failed(divides(colUnit * warpCols, valueDepth,
                     shareOf("the padded head size"))) ||
      failed(divides(mma->k * mma->group, schedule.getBK(), "BK")) ||
      failed(divides(mma->k * mma->group, schedule.getRegChunkDepth(),
                     "reg_chunk_depth")))
    return failure();
  if (schedule.getRegChunkDepth() > depth)
    return op.emitOpError()
           << "reg_chunk_depth = " << schedule.getRegChunkDepth()
           << " is more than the padded head size " << depth;
  if (!schedule.getFullKV()) {
    // Blocks of a tile take turns in the slots, which their waits keep apart.
    if (schedule.getStages() < 2)
      return op.emitOpError() << "full_kv = false needs stages of at least 2: "
                                 "the next block is loaded while one is read";
  }
  if (isChunked(op, schedule) && std::holds_alternative<Halves>(teams))
    return op.emitOpError()
           << "reg_chunk_depth = " << schedule.getRegChunkDepth()
           << " does not go with ping_pong, whose fragments of K are in "
              "registers as a whole; expected ping_pong = false";
  int64_t threads = schedule.getWarps() * target.waveSize;
  if (threads > target.maxThreads)
    return op.emitOpError()
           << "a schedule of " << threads << " threads does not fit "
           << target.chip << ", which has at most " << target.maxThreads
           << " in a block";
  int64_t elementBytes = op.getElementType().getIntOrFloatBitWidth() / 8;
  bool qInLds = !(schedule.getQInRegs() && target.fragmentsFromDram);
  // K's strips are columns of a tile, as blocks are; V's are rows.
  auto slotElements = [&](Path path, int64_t cols, bool stripsAreRows) {
    switch (slotContents(schedule.getParameters(), path)) {
    case SlotContents::Tile:
      return schedule.getBN() * cols;
    case SlotContents::Block:
      return schedule.getBN() * schedule.getBK();
    case SlotContents::Strip:
      return schedule.getBK() * (stripsAreRows ? cols : schedule.getBN());
    }
    llvm_unreachable("covered switch");
  };
  int64_t slotOfK =
      slotElements(schedule.getKPath(), depth, /*stripsAreRows=*/false);
  int64_t slotOfV =
      slotElements(schedule.getVPath(), valueDepth, /*stripsAreRows=*/true);
  int64_t lds =
      (qInLds ? elementBytes * depth * schedule.getBM() : 0) +
      schedule.getStages() * (elementBytesOf(op.getKCacheType()) * slotOfK +
                              elementBytesOf(op.getVCacheType()) * slotOfV);
  if (schedule.getSplitKeys())
    lds = splitKeysBytes(op, schedule.getParameters(), target);
  // One f32 for each row that a lane has, of all threads.
  MmaLayouts layouts = target.layouts(*mma);
  int64_t rowValues =
      4 * schedule.getWarps() * target.waveSize * schedule.getWM() / rowUnit;
  for (unsigned bit = 0; bit < layouts.c.inLog2("register"); ++bit)
    if (layouts.c.basis("register", bit, swapped ? "col" : "row"))
      rowValues *= 2;
  if (schedule.getSumsInLds())
    lds += rowValues;
  // P, whose rows begin at other banks, maxima and sums: see LaneWarps.cpp.
  if (warpCols > 1)
    lds += schedule.getBM() * (elementBytes * schedule.getBN() + 16) +
           2 * rowValues;
  if (lds > target.ldsBytes)
    return op.emitOpError()
           << "the schedule needs " << lds << " bytes of shared memory, "
           << target.chip << " has " << target.ldsBytes << " for a block";
  if (schedule.getVPath() == Path::Direct && !target.readsTransposed)
    return op.emitOpError()
           << "v_path = direct does not fit " << target.chip
           << ", which cannot read LDS transposed: V is transposed on its way "
              "through registers; expected v_path = registers";
  int64_t registers = registersFor(op, schedule.getParameters(), target);
  if (isDefault && registers > target.registersPerLane &&
      registers <= int64_t(target.registersPerLane) * 5 / 4) {
    remark::missed(op.getLoc(),
                   remark::RemarkOpts::name("registers").category(DEBUG_TYPE))
        << "head size " << headSizesText(op) << " needs "
        << std::to_string(registers) << " registers in a lane, " << target.chip
        << " has " << std::to_string(target.registersPerLane)
        << ": the rest is kept in memory, which is slow";
    return success();
  }
  if (registers > target.registersPerLane)
    return op.emitOpError() << "the schedule needs at least " << registers
                            << " registers in a lane, " << target.chip
                            << " has " << target.registersPerLane;
  int64_t share = target.registersPerBlock / threads;
  if (registers > share)
    return op.emitOpError()
           << "the schedule needs at least " << registers
           << " registers in a lane, " << target.chip << " has " << share
           << " for each of " << threads << " threads";
  return success();
}
