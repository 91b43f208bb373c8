//===- Variants.cpp - The kernels of attention that launches choose between -===
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention.h"
#include "CacheScales.h"
#include "ProblemLimits.h"
#include "Schedules/Tuning.h"
#include "VisibleWindows.h"
#include "WidenCaches.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/SizeExpressions.h"
#include "kvbuffer/Schedules/WideHeads.h"
#include "kvbuffer/Target/TargetInfo.h"

using namespace mlir;
using namespace kvbuf;

namespace {
/// Builds expressions over the sizes of a launch.
struct SizeBuilder : Builder {
  using Builder::Builder;
  Attribute expr(StringRef name, ArrayRef<Attribute> operands) {
    return SizeAttr::of(getContext(), name, operands);
  }
  Attribute number(int64_t value) { return getI64IntegerAttr(value); }
};
} // namespace

/// The condition on a launch (a size expression that is to be more than 0)
/// under which clusters of two blocks, each with `BM` of the query rows called
/// `rows` of heads of `headSize` elements, gain on a chip; `masked` where a
/// mask hides keys that other rows see, `sharing` the heads that share K and V.
/// `keys` is the number of keys, or what a table has room for, where the host
/// knows one; else null.
static Attribute launchIfClustersGain(MLIRContext *context,
                                      const TargetInfo &target, StringRef rows,
                                      Attribute keys, int64_t BM,
                                      int64_t headSize, bool masked,
                                      int64_t sharing, int64_t pageSize) {
  SizeBuilder b(context);
  auto tilesOf = [&](int64_t size) {
    return b.expr("ceildiv", {b.getStringAttr(rows), b.number(size)});
  };
  int64_t fewest =
      Tuning(target).fewestClusterTiles(headSize, masked, sharing, pageSize);
  Attribute tiles = tilesOf(BM);
  // What a pair waits for is a tile of keys, so that what counts under a mask
  // is how many its rows see: of k tiles of keys and q of rows k - q / 2 on
  // average, which is q / 2 where there are as many keys as rows.
  if (keys && (pageSize || masked)) {
    Attribute seen = b.expr(
        "product", {b.number(2), b.expr("ceildiv", {keys, b.number(BM)})});
    tiles =
        masked ? b.expr("sum", {seen, b.expr("product", {b.number(-1), tiles})})
               : seen;
  }
  Attribute enough = b.expr("sum", {tiles, b.number(1 - fewest)});
  if (TargetInfo::clustersOfHeads(sharing))
    return enough;
  // With t tiles in p pairs, n t - (n - 1) 2 p is t if t is even, else
  // t - n + 1.
  int64_t n = Tuning(target).clusterOddTiles;
  Attribute gain = b.expr(
      "sum", {b.expr("product", {b.number(n), tilesOf(BM)}),
              b.expr("product", {b.number(2 - 2 * n), tilesOf(2 * BM)})});
  return b.expr("min", {gain, enough});
}

/// The condition on a launch under which blocks of several warps, as many as a
/// device has multiprocessors, have each nearly a whole multiprocessor's share:
/// no more than a tenth of them is left over when each of the `heads` heads of
/// the sequences is split over as many. For `wide` heads, of which few small
/// blocks fit a multiprocessor, also where more heads than multiprocessors, a
/// block each, take turns of which no more than a tenth is left over (H200,
/// head size 256, 32 sequences: 475 us, 481 with small blocks).
static Attribute launchIfBlocksFill(MLIRContext *context, int64_t heads,
                                    bool wide) {
  SizeBuilder b(context);
  Attribute sms = b.getStringAttr(kMultiprocessorsSize);
  Attribute lines = b.expr(
      "max", {b.number(1), b.expr("product", {b.getStringAttr(kBatchSize),
                                              b.number(heads)})});
  Attribute filled = b.expr(
      "product", {b.number(10), lines, b.expr("floordiv", {sms, lines})});
  Attribute split = b.expr(
      "sum", {filled, b.expr("product", {b.number(-9), sms}), b.number(1)});
  if (!wide)
    return split;
  Attribute turns = b.expr("ceildiv", {lines, sms});
  Attribute whole = b.expr(
      "sum", {b.expr("product", {b.number(10), lines}),
              b.expr("product", {b.number(-9), sms, turns}), b.number(1)});
  return b.expr("max", {split, whole});
}

/// The condition on a launch that sequences have at most `rows` query rows, or
/// (`more`) that some have more.
static Attribute launchIfRows(MLIRContext *context, int64_t rows, bool more) {
  SizeBuilder b(context);
  Attribute longest = b.getStringAttr(kLongestQuerySize);
  if (more)
    return b.expr("sum", {longest, b.number(-rows)});
  return b.expr(
      "sum", {b.number(rows + 1), b.expr("product", {b.number(-1), longest})});
}

/// Whether a schedule's parameters leave one of them to the compiler.
static bool leavesOpen(StringRef schedule, StringRef name) {
  SmallVector<StringRef> asked;
  schedule.split(asked, ',');
  return llvm::none_of(asked, [&](StringRef parameter) {
    return parameter.split('=').first.trim() == name;
  });
}

/// Threads of a kernel's blocks; 1 where nothing says how many.
static int64_t threadsOf(LLVM::LLVMFuncOp kernel) {
  LaunchAttr launch = LaunchAttr::of(kernel);
  return launch ? launch.getThreads() : 1;
}

/// Whether launches decide over the clusters of a problem's kernel: nobody has
/// asked for some or none, and types leave the number of query rows open.
static bool choosesByLaunch(AttentionOp problem, StringRef schedule) {
  return leavesOpen(schedule, "cluster") && !problem.getScheduleAttr() &&
         !problem.isRagged() &&
         cast<ShapedType>(problem.getQ().getType()).isDynamicDim(1);
}

namespace {
/// Collects the kernels, each with the condition on launches of the one before.
class AttentionVariants {
public:
  /// `given`: the problem as the caller has it, which is there as long as the
  /// kernels are made.
  AttentionVariants(AttentionOp problem, AttentionOp given,
                    const VariantQuery &query, ScheduleAttr chosen)
      : problem(problem), given(given), kernel(query.kernel),
        target(query.target), schedule(query.asked), runsAhead(query.runsAhead),
        chosen(chosen), b(problem.getContext()), entry(kernel.getName().str()) {
  }

  KernelVariants collect();

private:
  /// Whether nobody has asked for a schedule: who does gets its kernel.
  bool isDefault() { return !problem.getScheduleAttr() && schedule.empty(); }
  KernelAlternative &add(StringRef name, std::string when) {
    KernelAlternative &other = result.list.emplace_back();
    other.name = (entry + name).str();
    other.when = std::move(when);
    return other;
  }
  /// When clusters gain.
  Attribute clustersGain();
  int64_t widestHead();
  /// Whether rows may see more keys than one sum will do for.
  bool sumsMayBeLong();
  /// When blocks of several warps with keys of their own fill the device.
  Attribute blocksFill();
  /// The number of query rows that has a kernel of its own, whose blocks know
  /// it; 0: none.
  int64_t ownRows();
  /// Up to how many query rows have blocks of several warps; 0: none.
  int64_t fewestRows();
  void addSums();
  void addFewRows();
  void addSmallBlocks();
  void addWidened();
  void addFewSequences();
  void findCopied();

  AttentionOp problem, given;
  LLVM::LLVMFuncOp kernel;
  const TargetInfo &target;
  StringRef schedule;
  bool runsAhead;
  ScheduleAttr chosen;
  SizeBuilder b;
  std::string entry;
  std::optional<FewQueryRows> few;
  /// The condition of the last kernel so far, for the one after it.
  Attribute suits;
  KernelVariants result;
};
} // namespace

Attribute AttentionVariants::clustersGain() {
  MaskAttr mask = problem.getMaskValue();
  CacheType cache = problem.getK().getType();
  int64_t pageSize = cache.getRun();
  Attribute keys;
  if (pageSize || cache.getRows().endWithData())
    keys = mostTokensOf(cache);
  return launchIfClustersGain(
      b.getContext(), target, kLongestQuerySize, keys, chosen.getBM(),
      problem.getHeadSize(),
      /*masked=*/mask.boundsLeft() || mask.boundsRight(),
      problem.getHeads() / problem.getKVHeads(), pageSize);
}

bool AttentionVariants::sumsMayBeLong() {
  if (!target.sumKeys)
    return false;
  std::optional<int64_t> keys = mostKeysOfRows(problem);
  return !keys || *keys > target.mostSumKeys;
}

void AttentionVariants::addSums() {
  int64_t most = target.mostSumKeys;
  Attribute keys = mostTokensOf(problem.getK().getType());
  Attribute fits = b.expr(
      "sum", {b.number(most + 1), b.expr("product", {b.number(-1), keys})});
  KernelAlternative &sums =
      add("_of_many_keys",
          "which adds up sums over parts of the keys, and runs where a "
          "sequence may have more than " +
              std::to_string(most));
  sums.schedule = "sum_keys=" + std::to_string(target.sumKeys);
  sums.launchIf = suits ? b.expr("min", {suits, fits}) : fits;
  suits = b.expr("sum", {keys, b.number(-most)});
  if (few)
    suits = b.expr("min", {suits, launchIfRows(b.getContext(), few->most,
                                               /*more=*/true)});
}

void AttentionVariants::addFewRows() {
  MLIRContext *context = b.getContext();
  auto addSplit = [&](StringRef name, const Twine &parameters, int64_t over,
                      int64_t most) {
    KernelAlternative &split =
        add(name, "which splits keys over blocks and runs for up to " +
                      std::to_string(most) + " query rows of a sequence");
    split.schedule = parameters.str();
    split.launchIf = suits;
    if (problem.isRagged()) {
      split.sharedRows = SharedRows{over, most, few->most}.attribute(context);
      split.when += ", and beside more for the sequences of " +
                    std::to_string(over + 1) + " to " + std::to_string(most);
    }
    suits = launchIfRows(context, most, /*more=*/false);
  };
  int64_t known = ownRows();
  if (known > 0) {
    KernelAlternative &own =
        add("_of_one_row",
            "which splits keys over blocks and runs for one query row of a "
            "sequence");
    own.schedule = "split_keys=true";
    own.knownRows = known;
    own.launchIf = suits;
    // Without a row there is none to read.
    suits = b.expr("min", {b.getStringAttr(kLongestQuerySize),
                           launchIfRows(context, known, /*more=*/false)});
  }
  // As where types know the rows.
  if (int64_t fewest = fewestRows(); fewest > known) {
    bool always = !problem.getK().getType().getRows().endWithData();
    addSplit("_of_fewest_rows",
             "split_keys=true,swap_a_b=true,warps=" +
                 Twine(Tuning(target).fewestRowsWarps) +
                 ",BM=" + Twine(Tuning(target).fewestFoldedRows),
             0, fewest);
    if (!always) {
      suits = b.expr("min", {suits, blocksFill()});
      result.list.back().when += ", where sequences are few";
    }
  }
  // Half of a large tile is faster where it is enough.
  int64_t half = few->tile / 2;
  int64_t fewer = half / (problem.getHeads() / problem.getKVHeads());
  if (few->tile < Tuning(target).splitKeysRows)
    fewer = 0;
  addSplit("_of_few_rows", "split_keys=true", fewer, few->most);
  if (fewer > 0) {
    suits = b.expr("min", {suits, launchIfRows(context, fewer, /*more=*/true)});
    addSplit("_of_fewer_rows", "split_keys=true,BM=" + Twine(half), 0, fewer);
  }
}

int64_t AttentionVariants::widestHead() {
  return std::max(problem.getHeadSize(), problem.getValueHeadSize());
}

Attribute AttentionVariants::blocksFill() {
  return launchIfBlocksFill(b.getContext(), problem.getKVHeads(),
                            /*wide=*/widestHead() >
                                Tuning(target).narrowHeadSize);
}

int64_t AttentionVariants::ownRows() {
  // Where the host knows the keys of all sequences, one row is about as fast by
  // blocks with room for two (docs/decode.md).
  return problem.isRagged() || problem.getK().getType().getRows().endWithData()
             ? 0
             : Tuning(target).ownKernelRows;
}

int64_t AttentionVariants::fewestRows() {
  // A row's bits would follow from the number of sequences; and slots of wide
  // heads may have no room.
  CacheType cache = problem.getK().getType();
  const Tuning tuning(target);
  if (problem.isRagged() || problem.isQuantized() ||
      problem.getBatchInvariant() || widestHead() > tuning.narrowHeadSize)
    return 0;
  // Rows are columns of a product of 16 bits; those of 8 bits are its rows.
  constexpr unsigned bits = 16;
  if (problem.getElementType().getIntOrFloatBitWidth() != bits)
    return 0;
  // Where blocks have equal shares of all sequences their warps have heads side
  // by side.
  if (!cache.getRows().endWithData() &&
      (cache.getRun() < tuning.sideBySidePage ||
       problem.getKVHeads() % tuning.fewestRowsWarps))
    return 0;
  return std::min(few->most, tuning.fewestFoldedRows /
                                 (problem.getHeads() / problem.getKVHeads()));
}

void AttentionVariants::addSmallBlocks() {
  KernelAlternative &small =
      add("_of_small_blocks",
          "which runs where blocks of several warps would leave "
          "multiprocessors idle");
  small.launchIf = blocksFill();
}

void AttentionVariants::addFewSequences() {
  // The tiles of a sequence; at least three of four multiprocessors have one in
  // each turn.
  int64_t BM = chosen.getBM(), heads = problem.getHeads(),
          queries = cast<ShapedType>(problem.getQ().getType()).getDimSize(1),
          folded = foldedHeadsOf(problem, BM);
  int64_t parts = WideHeads::of(chosen.getStructure(), problem.getHeadSize(),
                                problem.getValueHeadSize(), target)
                      .valueParts;
  int64_t tiles =
      parts * heads / folded * llvm::divideCeil(queries * folded, BM);
  Attribute sms = b.getStringAttr(kMultiprocessorsSize);
  Attribute all =
      b.expr("product", {b.getStringAttr(kBatchSize), b.number(tiles)});
  Attribute turns = b.expr("ceildiv", {all, sms});
  Attribute fill = b.expr("sum", {b.expr("product", {b.number(4), all}),
                                  b.expr("product", {b.number(-3), sms, turns}),
                                  b.number(1)});
  // Sums of very many keys come in parts where keys are split.
  Attribute fits = b.expr(
      "sum", {b.number(target.mostSumKeys + 1),
              b.expr("product",
                     {b.number(-1), mostTokensOf(problem.getK().getType())})});
  KernelAlternative &few =
      add("_of_few_sequences",
          "which splits keys over blocks and runs where sequences are few");
  few.schedule = "split_keys=true";
  few.launchIf = sumsMayBeLong() ? b.expr("min", {fill, fits}) : fill;
}

/// Query rows that see a key, of all heads that share it, from which on it pays
/// to widen K and V ahead, and bytes of memory that this takes at most.
/// Measured were 8192 rows (H200, 32 heads on 8 of 128 over pages of 16,
/// sustained, of the rate with a team that widens: 1.08) and a stand-in, whose
/// attention is 4 % faster: 1024 rows 0.90, 2048 1.04, 8192 1.12.
static constexpr int64_t kRowsOfWidened = 4096, kMostWidened = int64_t(1) << 30;

void AttentionVariants::addWidened() {
  const MovingTeam *mover = chosen.getMovingTeam();
  if (!runsAhead || !isDefault() || !mover || !mover->widens.warps ||
      !chosen.getQInRegs() || chosen.getSplitKeys() || appendOf(problem) ||
      !canWidenAhead(problem) || !multipliesWidened(problem, target))
    return;
  constexpr int64_t halfBytes = 2;
  Attribute keys = mostTokensOf(problem.getK().getType());
  int64_t sharing = problem.getHeads() / problem.getKVHeads();
  int64_t bytes = halfBytes * problem.getKVHeads() *
                  (problem.getHeadSize() + problem.getValueHeadSize());
  // Of r rows and k keys under a causal mask a key is seen by r (1 - r / 2 k).
  Attribute rows = b.getStringAttr(kLongestQuerySize);
  bool masked = problem.getMaskValue().boundsRight();
  Attribute seen = b.expr("product", {b.number(2), keys});
  if (masked)
    seen = b.expr("sum", {seen, b.expr("product", {b.number(-1), rows})});
  Attribute many =
      b.expr("sum", {b.expr("product", {b.number(sharing), rows, seen}),
                     b.expr("product", {b.number(-2 * kRowsOfWidened), keys}),
                     b.number(1)});
  Attribute fits =
      b.expr("sum", {b.number(kMostWidened + 1),
                     b.expr("product", {b.number(-bytes),
                                        b.getStringAttr(kBatchSize), keys})});
  Attribute pays = b.expr("min", {many, fits});
  if (choosesByLaunch(problem, schedule))
    pays = b.expr("min", {pays, launchIfClustersGain(
                                    b.getContext(), target, kLongestQuerySize,
                                    keys, chosen.getBM(), problem.getHeadSize(),
                                    masked, sharing,
                                    /*pageSize=*/0)});
  if (sumsMayBeLong())
    pays = b.expr(
        "min",
        {pays, b.expr("sum", {b.number(target.mostSumKeys + 1),
                              b.expr("product", {b.number(-1), keys})})});
  Attribute doesNot =
      b.expr("sum", {b.number(1), b.expr("product", {b.number(-1), pays})});
  KernelAlternative wide;
  wide.name = entry + "_of_widened";
  wide.when =
      "which reads K and V as a kernel ahead of it widens them, and runs "
      "for many query rows";
  Attribute &before =
      result.list.empty() ? result.launchIf : result.list.front().launchIf;
  wide.launchIf = before ? b.expr("min", {before, doesNot}) : doesNot;
  before = pays;
  wide.ahead = [problem = given, kernel = kernel](StringRef name) {
    return buildWidening(problem, kernel, name);
  };
  result.list.insert(result.list.begin(), wide);
}

/// Query rows, times the heads that share a head of the cache, from which on it
/// pays to copy K and V. Copies read and write 8 bytes for each column of a
/// key, and so many rows take 4 operations each of them: on an H200 (3.5 TB/s,
/// 600 TFLOP/s) R rows take R / 343 of the copies' time, and kernels for any
/// tensors take three to eleven times as long (256 rows on 4096 keys: 458 us
/// for 61).
static constexpr int64_t kRowsOfCopies = 256;

void AttentionVariants::findCopied() {
  // What rows of a cache belong to nobody costs as much as the others.
  SmallVector<StringRef> roles{"q"};
  if (!problem.getK().getType().hasTable())
    roles.append({"k", "v"});
  // Rows between ragged sequences are not written.
  if (!problem.isRagged())
    roles.push_back("o");
  auto names = ProblemAttr::of(kernel).getField<DictionaryAttr>("tensors");
  for (StringRef role : roles) {
    auto name = names ? names.getAs<StringAttr>(role) : nullptr;
    result.copied.push_back(name ? name.getValue().str() : role.str());
  }
  Attribute rows = b.getStringAttr(kLongestQuerySize);
  if (int64_t sharing = problem.getHeads() / problem.getKVHeads(); sharing > 1)
    rows = b.expr("product", {b.number(sharing), rows});
  result.copiesPay = b.expr("sum", {rows, b.number(1 - kRowsOfCopies)});
}

KernelVariants AttentionVariants::collect() {
  bool clusters = chosen.getStructure().cluster() > 1 &&
                  !chosen.getSplitKeys() && choosesByLaunch(problem, schedule);
  if (clusters)
    suits = clustersGain();
  if (!chosen.getSplitKeys() && isDefault())
    few = fewQueryRows(problem, target);
  if (few) {
    // That clusters gain on long contexts says nothing of rows.
    Attribute more = launchIfRows(b.getContext(), few->most, /*more=*/true);
    suits = suits ? b.expr("min", {more, suits}) : more;
  }
  bool fewSequences = isDefault() && chosen.getMovingTeam() &&
                      !chosen.getSplitKeys() &&
                      splitsFewSequences(problem, target);
  if (fewSequences)
    addFewSequences();
  // The kernels of a mixed batch know each other's rows; and a row's bits would
  // follow from the room that others have.
  if (sumsMayBeLong() && !fewSequences && chosen.getMovingTeam() &&
      !chosen.getSplitKeys() && !problem.isRagged() &&
      !problem.getBatchInvariant() && isDefault())
    addSums();
  if (few)
    addFewRows();
  if (clusters)
    add("_without_clusters", "which runs where clusters lose more by few query "
                             "rows than they gain")
        .launchIf = std::exchange(suits, Attribute());
  // Warps that have heads side by side are what as many blocks would be. Where
  // the launch chose by the number of sequences, a row's bits would follow from
  // it.
  if (chosen.getSplitKeys() && !chosen.getSplitKeys()->equalShares &&
      chosen.getStructure().warpsByThemselves() && !chosen.getMovingTeam() &&
      !problem.getBatchInvariant() && !problem.getScheduleAttr() &&
      leavesOpen(schedule, "warps") &&
      threadsOf(kernel) > int64_t(target.waveSize))
    addSmallBlocks();
  result.launchIf = suits;
  addWidened();
  // Of others no kernel stores tokens besides.
  result.complete = static_cast<bool>(appendOf(problem));
  // A name that no tensor's shape has any more has no value at a launch.
  llvm::StringMap<int64_t> fixed = fixedSizesOf(kernel);
  for (KernelAlternative &other : result.list)
    if (other.launchIf)
      other.launchIf = fixSizes(other.launchIf, fixed);
  if (result.launchIf)
    result.launchIf = fixSizes(result.launchIf, fixed);
  if (!result.complete)
    findCopied();
  if (result.copiesPay)
    result.copiesPay = fixSizes(result.copiesPay, fixed);
  return std::move(result);
}

KernelVariants kvbuf::attentionVariants(AttentionOp problem,
                                        const VariantQuery &query) {
  auto chosen =
      query.kernel->getAttrOfType<ScheduleAttr>(KVBufferDialect::kScheduleAttr);
  // As the schedule was chosen for.
  auto said = cast<AttentionOp>(OpBuilder(problem).clone(*problem));
  sayByAttributes(said);
  KernelVariants variants =
      AttentionVariants(said, problem, query, chosen).collect();
  said.erase();
  return variants;
}
