//===- ScheduleLimits.cpp - What a schedule takes of a chip ---------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Schedules/ScheduleLimits.h"
#include "kvbuffer/Schedules/LatentRoles.h"
#include "kvbuffer/Schedules/WideHeads.h"
#include "kvbuffer/Target/ReadGroups.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MathExtras.h"
#include <utility>

using namespace kvbuf;
using llvm::Twine;

using Reason = std::optional<std::string>;

/// Shared memory for barriers and mailboxes, with the alignment of slots.
static constexpr int64_t kBarrierBytes = 1024;

/// Registers of a lane for addresses, maxima, sums and what is on its way
/// through an exponential, beside accumulators and operands, where a team moves
/// tiles. Measured by compiling for sm_90a: with 240 a lane, schedules with 208
/// for accumulators and operands compile without spills, with 216 they do not.
static constexpr int64_t kWorkingRegisters = 28;
/// The same where products are of bytes, whose weights take few: with 232 a
/// lane, 208 for accumulators and operands compile without spills.
static constexpr int64_t kWorkingRegistersOfBytes = 24;

static std::string shapeText(const MatrixShape &shape) {
  return (Twine(shape[0]) + "x" + Twine(shape[1]) + "x" + Twine(shape[2]))
      .str();
}

static std::string shapeText(const MatrixInstruction &mma) {
  return shapeText(mma.shape());
}

/// "mma_shape = 16x8x16" or "values = mfma 32x32x16".
static std::string namedText(const Schedule &schedule, ProductKind product,
                             MatrixUnit unit, const MatrixShape &shape) {
  std::string named =
      schedule.own(product).isNamed() ? matrixUnitName(unit).str() + " " : "";
  return schedule.instructionName(product).str() + " = " + named +
         shapeText(shape);
}

static std::string namedText(const Schedule &schedule, ProductKind product) {
  return namedText(schedule, product, schedule.own(product).unit,
                   schedule.shapeOf(product));
}

const MatrixInstruction *
ScheduleLimits::instruction(ProductKind product) const {
  return target.findMatrix(schedule.shapeOf(product), elementOf(product));
}

std::pair<int64_t, int64_t>
ScheduleLimits::paddedSizes(const TileOperands &operands) const {
  int64_t parts =
      WideHeads::of(schedule, operands.headSize, operands.valueHeadSize, target)
          .valueParts;
  return {llvm::alignTo(operands.headSize, schedule.BK),
          llvm::alignTo(llvm::divideCeil(operands.valueHeadSize, parts),
                        schedule.BK)};
}

int64_t ScheduleLimits::threads() const {
  return schedule.blockWarps() * int64_t(target.waveSize);
}

int64_t ScheduleLimits::equalShare() const {
  return llvm::alignDown(target.registersPerBlock / threads(),
                         target.registerStep);
}

int64_t ScheduleLimits::otherRegisters(const MovingTeam &mover) const {
  return mover.otherRegisters ? mover.otherRegisters : equalShare();
}

//===----------------------------------------------------------------------===//
// The chip
//===----------------------------------------------------------------------===//

/// What does not fit teams whose warps multiply each by itself.
static Reason whyNotWithoutGroups(const Schedule &schedule,
                                  const MovingTeam &mover,
                                  const TargetInfo &target) {
  if (mover.turns)
    return "ping_pong does not go with producers on " + target.chip +
           ", whose warps do not multiply in groups, which take turns; "
           "expected ping_pong = false";
  unsigned group = target.warpsPerRegisterGroup;
  std::string given = group ? "registers to whole groups of " +
                                  std::to_string(group) + " warps alone"
                            : "none anew";
  for (auto [name, registers, warps] :
       {std::tuple<const char *, int64_t, int64_t>{
            "consumer_registers", mover.otherRegisters, schedule.warps},
        {"producer_registers", mover.registers, mover.warps},
        {"widener_registers", mover.widens.registers, mover.widens.warps}})
    if (registers && (!group || warps % group))
      return (Twine(name) + " = " + Twine(registers) + " does not fit " +
              target.chip + ", which hands out " + given + "; expected " +
              name + " = 0")
          .str();
  return std::nullopt;
}

Reason ScheduleLimits::whyNoMovingTeam(int64_t producers,
                                       const TargetInfo &target) {
  if (!producers || target.hasMovingTeams())
    return std::nullopt;
  return ("producers = " + Twine(producers) + " does not fit " + target.chip +
          ", which has no barriers in shared memory that copies complete; "
          "expected producers = 0")
      .str();
}

Reason ScheduleLimits::whyNotTeams(const MovingTeam &mover) const {
  if (Reason why = whyNoMovingTeam(mover.warps, target))
    return why;
  int64_t group = target.warpsPerMatrixGroup();
  if (!group)
    return whyNotWithoutGroups(schedule, mover, target);
  // Teams of as many registers may be a group together.
  bool joined = mover.widens.warps && mover.widens.warps < group &&
                mover.widens.registers == mover.registers &&
                (mover.widens.warps + mover.warps) % group == 0;
  for (auto [name, warps] :
       {std::pair<const char *, int64_t>{"warps", schedule.warps},
        {"producers", joined ? group : mover.warps},
        {"wideners", joined ? group : mover.widens.warps}})
    if (warps % group)
      return (Twine(name) + " = " + Twine(warps) +
              " is no whole number of groups of " + Twine(group) + "; " + name +
              " = " + Twine(int64_t(llvm::alignTo(warps, group))) +
              " would fit")
          .str();
  int64_t groups = schedule.warps / group;
  int64_t rows = groups * target.matrixGroupRows;
  if (schedule.BM != rows)
    return ("BM = " + Twine(schedule.BM) + " is not " +
            Twine(target.matrixGroupRows) + " rows for each of " +
            Twine(groups) + " groups of " + Twine(group) +
            " warps; BM = " + Twine(rows) + " would fit")
        .str();
  if (mover.turns && groups < 2)
    return ("ping_pong needs two groups of " + Twine(group) +
            " warps, which take turns; warps = " + Twine(2 * group) +
            " would fit")
        .str();
  return std::nullopt;
}

Reason ScheduleLimits::whyNotRegistersOf(const MovingTeam &mover,
                                         const TileOperands *operands) const {
  // What teams can pass on to each other is what all lanes start with.
  int64_t lanes = target.waveSize, share = equalShare();
  int64_t start = threads() * share;
  auto given = [&](int64_t asked) { return asked ? asked : share; };
  // What the halves leave is the scores' team's.
  if (schedule.dividesColumns())
    return std::nullopt;
  int64_t taken = lanes * (schedule.warps * given(mover.otherRegisters) +
                           mover.warps * given(mover.registers) +
                           mover.widens.warps * given(mover.widens.registers));
  if (taken <= start)
    return std::nullopt;
  int64_t left = start - (mover.warps * mover.registers +
                          mover.widens.warps * mover.widens.registers) *
                             lanes;
  int64_t most =
      llvm::alignDown(std::max<int64_t>(0, left) / (schedule.warps * lanes),
                      target.registerStep);
  std::string text = ("the roles take " + Twine(taken) + " registers, " +
                      target.chip + " gives " + Twine(start) +
                      " to a block of " + Twine(threads()) + " threads")
                         .str();
  if (operands ? most >= registers(*operands) : most > 0)
    text += ("; consumer_registers = " + Twine(most) + " would fit").str();
  return text;
}

Reason ScheduleLimits::whyNoInstruction(ProductKind product) const {
  const MatrixInstruction *mma = instruction(product);
  const ProductInstruction &own = schedule.own(product);
  if (mma && (!own.isNamed() || own.unit == mma->unit))
    return std::nullopt;
  llvm::StringRef element = elementOf(product);
  std::string text = target.chip + " has no matrix instruction";
  if (own.isNamed())
    text += " " + matrixUnitName(own.unit).str();
  text += " of shape " + shapeText(schedule.shapeOf(product)) +
          (element == "bf16" ? "" : " for " + element.str()) + "; it has ";
  llvm::ListSeparator comma;
  for (const MatrixInstruction &other : target.matrixInstructionsFor(element))
    text += llvm::StringRef(comma).str() +
            (own.isNamed() ? matrixUnitName(other.unit).str() + " " : "") +
            shapeText(other);
  return text;
}

/// The rows of an instruction's results that lanes and registers hold, by bits
/// of their numbers.
static llvm::SmallVector<int64_t> rowsOfResults(const TargetInfo &target,
                                                const MatrixInstruction &mma,
                                                bool swapped) {
  LinearLayout result = target.layouts(mma).c;
  llvm::SmallVector<int64_t> rows;
  for (llvm::StringRef in : {"lane", "register"})
    for (unsigned bit = 0; bit < result.inLog2(in); ++bit)
      rows.push_back(result.basis(in, bit, swapped ? "col" : "row"));
  return rows;
}

Reason ScheduleLimits::whyNotTogether() const {
  const MatrixInstruction &scores = *instruction(ProductKind::Scores),
                          &values = *instruction(ProductKind::Values);
  if (&scores == &values)
    return std::nullopt;
  std::string both = namedText(schedule, ProductKind::Scores) + " and " +
                     namedText(schedule, ProductKind::Values);
  if (rowsOfResults(target, scores, schedule.swapAB) !=
      rowsOfResults(target, values, schedule.swapAB))
    return both + " do not go together on " + target.chip +
           ": the rows of their results, which share maxima and sums, lie in "
           "other lanes or registers; expected instructions whose results lie "
           "alike";
  if (target.feeds(scores, values, schedule.swapAB))
    return std::nullopt;
  return both + " do not go together on " + target.chip +
         " with swap_a_b = " + (schedule.swapAB ? "true" : "false") +
         ": results of the one lie across other lanes than operands of the "
         "other";
}

Reason ScheduleLimits::whyNotOnChip(const TileOperands *operands) const {
  for (ProductKind product : kProducts)
    if (Reason why = whyNoInstruction(product))
      return why;
  const MatrixInstruction *mma = instruction(ProductKind::Scores),
                          *values = instruction(ProductKind::Values);
  // What two instructions are to each other depends on what a kernel computes.
  if (mma == values && !target.feedsItself(*mma, schedule.swapAB)) {
    const char *is = schedule.swapAB ? "true" : "false";
    const char *expected = schedule.swapAB ? "false" : "true";
    return (Twine("swap_a_b = ") + is + " does not fit " + target.chip +
            ": results of its matrix instructions lie across other lanes than "
            "operands; expected swap_a_b = " +
            expected)
        .str();
  }
  const MovingTeam *mover = schedule.movingTeam();
  // Of the other warps' team each multiplies by what a group of them reads.
  for (ProductKind product : kProducts)
    if (const MatrixInstruction *ofGroups =
            target.groupInstruction(elementOf(product));
        mover && ofGroups && !instruction(product)->isOfGroups())
      return namedText(schedule, product) +
             ", by which each warp multiplies for itself, does not go with "
             "producers on " +
             target.chip + "; expected " +
             namedText(schedule, product, ofGroups->unit, ofGroups->shape());
  if (mover)
    if (Reason why = whyNotTeams(*mover))
      return why;
  // Where each wave counts its own copies, halves of a block can take turns
  // (`turns` of kvbuf-run-ahead).
  if (schedule.hasHalves() && !target.has(CopyEngine::Waves))
    return "ping_pong needs warps with roles; expected producers > 0";
  int64_t rows =
      schedule.warpsByThemselves() ? schedule.BM : schedule.rowsOfWarp();
  for (const MatrixInstruction *one : {mma, values}) {
    int64_t rowUnit = schedule.swapAB ? one->n : one->rowsOfWarp();
    if (rows % rowUnit)
      return ("no " + shapeText(*one) +
              " instruction divides the rows of a warp, BM / warps" +
              (schedule.warpCols == 1 ? "" : " * warp_cols") + " = " +
              Twine(rows) + "; expected a multiple of " + Twine(rowUnit))
          .str();
  }
  if (threads() > int64_t(target.maxThreads)) {
    std::string text =
        ("a schedule of " + Twine(threads()) + " threads does not fit " +
         target.chip + ", which has at most " + Twine(target.maxThreads) +
         " in a block")
            .str();
    int64_t group = std::max(target.warpsPerMatrixGroup(), 1u);
    if (int64_t left =
            mover ? target.maxThreads / target.waveSize - mover->warps : 0;
        mover && left >= group)
      text += ("; warps = " + Twine(int64_t(llvm::alignDown(left, group))) +
               " would fit")
                  .str();
    return text;
  }
  return mover ? whyNotRegistersOf(*mover, operands) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

bool ScheduleLimits::stagesReads() const {
  const MovingTeam *mover = schedule.movingTeam();
  return mover && !mover->widens.warps && target.warpsPerMatrixGroup() &&
         !schedule.splitKeys() && !schedule.dividesColumns();
}

int64_t ScheduleLimits::teamsBytes(const MovingTeam &mover,
                                   const TileOperands &operands,
                                   int64_t loaded) const {
  auto [depth, valueDepth] = paddedSizes(operands);
  int64_t output = mover.stagesOutput ? valueDepth * schedule.BM : 0;
  // What is widened, or turned, has slots of its own.
  auto slotBytes = [&](int64_t narrow, int64_t cols, bool turns) {
    bool again = mover.widens.warps && (narrow < operands.bytes || turns);
    int64_t slots = again ? loaded : schedule.stages;
    return (narrow * slots + (again ? operands.bytes * schedule.stages : 0)) *
           cols * schedule.BN;
  };
  // What is staged has 16 bits.
  constexpr int64_t outputBytes = 2;
  constexpr int64_t wordBytes = 4;
  int64_t reads = stagesReads() ? operands.readBytes * kScoreStages : 0;
  int64_t padding = operands.readBytes == wordBytes ? kReadPadding : 0;
  return reads * schedule.BM * (schedule.BN + padding) +
         operands.bytes * depth * schedule.BM + outputBytes * output +
         slotBytes(operands.keyBytes, depth, false) +
         slotBytes(operands.valueBytes, valueDepth, operands.bytes == 1) +
         kBarrierBytes;
}

int64_t ScheduleLimits::loadedSlots(const TileOperands &operands) const {
  const MovingTeam *mover = schedule.movingTeam();
  int64_t slots = schedule.stages;
  if (!mover || !mover->widens.warps || operands.bytes == 1)
    return slots;
  while (slots > 1 &&
         teamsBytes(*mover, operands, slots) > int64_t(target.ldsBytes))
    --slots;
  return slots;
}

int64_t ScheduleLimits::heldQueryColumns(const TileOperands &operands) const {
  // At 128 columns it won nothing (docs/scores.md). Keys of heads wider than
  // products come in blocks of columns, each a product of its own.
  constexpr int64_t halfBytes = 2, narrow = 128;
  const MovingTeam *mover = schedule.movingTeam();
  auto [depth, valueDepth] = paddedSizes(operands);
  if (!mover || mover->widens.warps || schedule.splitKeys() ||
      schedule.dividesColumns() || schedule.qInRegs || schedule.sumKeys ||
      operands.bytes != halfBytes || operands.keyBytes != halfBytes ||
      schedule.BN > int64_t(target.matrixGroupRows) || depth <= narrow ||
      depth > int64_t(target.matrixGroupCols))
    return 0;
  int64_t block = schedule.rowsOfWarp() * operands.bytes * schedule.BK /
                  (4 * int64_t(target.waveSize));
  int64_t left = otherRegisters(*mover) - registers(operands);
  return schedule.BK *
         std::clamp<int64_t>(left / block, 0, depth / 2 / schedule.BK);
}

int64_t ScheduleLimits::querySlots(const TileOperands &operands) const {
  const MovingTeam *mover = schedule.movingTeam();
  if (!mover || operands.bytes > 1 || schedule.qInRegs ||
      schedule.dividesColumns())
    return 1;
  // Beside what is counted there are columns of ones.
  constexpr int64_t rowsOfOnes = 16;
  int64_t bytes = teamsBytes(*mover, operands, schedule.stages) +
                  paddedSizes(operands).first * schedule.BM +
                  rowsOfOnes * mover->widens.warps * schedule.BN;
  return bytes <= int64_t(target.ldsBytes) ? 2 : 1;
}

bool ScheduleLimits::readsQueriesFromLds(const TileOperands &operands) const {
  const SplitKeys *split = schedule.splitKeys();
  if (!split)
    return false;
  if (schedule.warpsByThemselves() &&
      (!split->equalShares || schedule.warps > 1))
    return false;
  // Accumulators of 32 bits, queries of 16.
  auto [depth, valueDepth] = paddedSizes(operands);
  int64_t words =
      schedule.rowsOfWarp() * (valueDepth / schedule.warpCols + depth / 2);
  return 4 * words / target.waveSize > 3 * int64_t(target.registersPerLane);
}

int64_t ScheduleLimits::splitKeysBytes(const TileOperands &operands) const {
  auto [depth, valueDepth] = paddedSizes(operands);
  int64_t ofValues = operands.latent ? 0 : operands.valueBytes * valueDepth;
  int64_t tiles =
      (operands.keyBytes * depth + ofValues) * schedule.stages * schedule.BN;
  if (!schedule.warpsByThemselves()) {
    int64_t queries =
        readsQueriesFromLds(operands) ? 2 * depth * schedule.BM : 0;
    // Nothing lies between warps that have rows of their own.
    if (schedule.warpCols == 1)
      return tiles + queries;
    // Each has memory of its own, in whole KiB: P and the maxima of tiles with
    // a mask on the one and the other side and without one; the sums where a
    // piece ends, whole or stored, and where pieces are joined, stored again or
    // joined again; who arrives, at two levels. Rows that the launch does not
    // know of have tiles, and an end, of their own.
    constexpr int64_t kUnit = 1024, kArrivals = 2;
    int64_t loops = (operands.window ? 3 : 2) * (operands.ragged ? 2 : 1);
    int64_t reductions = loops + (operands.ragged ? 6 : 5);
    return tiles + queries + kArrivals * kUnit +
           loops * llvm::alignTo(bytesBetweenWarps(operands, 0), kUnit) +
           reductions * llvm::alignTo(rowValueBytes(), kUnit);
  }
  // Warps leave accumulators, maxima and sums to each other, or have heads of
  // their own and each what a block of one has.
  Schedule own = schedule;
  int64_t warps = std::exchange(own.warps, 1);
  int64_t others = warps == 1 ? 0 : 4 * (valueDepth + 2) * schedule.BM;
  if (ScheduleLimits(own, target, element, elementOfValues)
          .readsQueriesFromLds(operands))
    others = std::max(others, 2 * depth * schedule.BM);
  return warps * (tiles + others);
}

int64_t ScheduleLimits::rowValueBytes() const {
  // Rows of values lie as those of scores do. (A schedule without an
  // instruction of the chip is refused for that.)
  const MatrixInstruction *mma = instruction(ProductKind::Scores);
  if (!mma)
    return 0;
  MmaLayouts layouts = target.layouts(*mma);
  int64_t rowUnit = schedule.swapAB ? mma->n : mma->rowsOfWarp();
  int64_t bytes = 4 * threads() * schedule.rowsOfWarp() / rowUnit;
  for (unsigned bit = 0; bit < layouts.c.inLog2("register"); ++bit)
    if (layouts.c.basis("register", bit, schedule.swapAB ? "col" : "row"))
      bytes *= 2;
  return bytes;
}

int64_t ScheduleLimits::bytesBetweenWarps(const TileOperands &operands,
                                          int64_t reductions) const {
  return schedule.BM * (operands.bytes * schedule.BN + 16) +
         reductions * rowValueBytes();
}

bool kvbuf::widensOnTheWay(const Schedule &schedule, bool latent,
                           const TargetInfo &target) {
  return throughRegisters(schedule.keys) && throughRegisters(schedule.values) &&
         !latent && !schedule.splitKeys() && !schedule.movingTeam() &&
         target.has(CopyEngine::Waves);
}

int64_t ScheduleLimits::aloneBytes(const TileOperands &operands) const {
  auto [depth, valueDepth] = paddedSizes(operands);
  // K's strips are columns of a tile, as blocks are; V's are rows.
  auto slotElements = [&](const Movement &movement, int64_t cols,
                          bool stripsAreRows) {
    if (std::holds_alternative<WholeTiles>(movement))
      return schedule.BN * cols;
    if (std::holds_alternative<ColumnBlocks>(movement))
      return schedule.BN * schedule.BK;
    return schedule.BK * (stripsAreRows ? cols : schedule.BN);
  };
  int64_t slotOfK = slotElements(schedule.keys, depth, /*stripsAreRows=*/false);
  int64_t slotOfV =
      slotElements(schedule.values, valueDepth, /*stripsAreRows=*/true);
  bool widens = widensOnTheWay(schedule, operands.latent, target);
  int64_t keyBytes = widens ? operands.bytes : operands.keyBytes,
          valueBytes = widens ? operands.bytes : operands.valueBytes;
  bool qInLds = !(schedule.qInRegs && target.fragmentsFromDram);
  int64_t bytes = (qInLds ? operands.bytes * depth * schedule.BM : 0) +
                  schedule.stages * (keyBytes * slotOfK + valueBytes * slotOfV);
  if (schedule.sumsInLds)
    bytes += rowValueBytes();
  if (schedule.warpCols > 1)
    bytes += bytesBetweenWarps(operands, /*reductions=*/2);
  return bytes;
}

int64_t ScheduleLimits::sharedBytes(const TileOperands &operands) const {
  if (schedule.dividesColumns())
    return LatentRoles::of(schedule, operands, target).bytes(schedule);
  if (const MovingTeam *mover = schedule.movingTeam())
    return teamsBytes(*mover, operands, loadedSlots(operands));
  return schedule.splitKeys() ? splitKeysBytes(operands) : aloneBytes(operands);
}

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

bool ScheduleLimits::addsApart(const TileOperands &operands) const {
  return operands.bytes == 1 && target.float8SumBits &&
         schedule.accumulate == Accumulation::TwoLevel;
}

int64_t ScheduleLimits::columnsApart(const TileOperands &operands) const {
  // Of 16 rows a warp 32 columns of accumulators are 16 registers a lane. With
  // parts of 64 columns, too, two of which are 64, the assembler spills.
  constexpr int64_t part = 32;
  int64_t columns = paddedSizes(operands).second;
  const MovingTeam *mover = schedule.movingTeam();
  return mover && addsApart(operands) && columns % part == 0 &&
                 registersBeside(operands, columns) > otherRegisters(*mover)
             ? part
             : columns;
}

int64_t ScheduleLimits::registersBeside(const TileOperands &operands,
                                        int64_t columns) const {
  auto [depth, valueDepth] = paddedSizes(operands);
  // O and S in fp32, P and, where it stays in registers, Q; of bytes the
  // product of a tile, which is added to O, too.
  int64_t scores = 4 * schedule.BN, weights = operands.bytes * schedule.BN;
  bool isApart = addsApart(operands);
  bool overlaps = std::holds_alternative<SoftmaxAhead>(schedule.ahead);
  // Of parts two are in flight, or all beside the next tile's softmax.
  int64_t inFlight = overlaps ? valueDepth : std::min(valueDepth, 2 * columns);
  int64_t apart = isApart ? 4 * inFlight : 0;
  int64_t elements = 4 * valueDepth + (overlaps || !isApart
                                           ? scores + weights + apart
                                           : std::max(scores, weights + apart));
  if (schedule.qInRegs)
    elements += operands.bytes * depth;
  if (stagesReads() && !operands.beginsWithRead)
    elements += operands.readBytes * schedule.BN;
  return schedule.rowsOfWarp() * elements / (4 * int64_t(target.waveSize)) +
         (operands.bytes == 1 ? kWorkingRegistersOfBytes : kWorkingRegisters);
}

int64_t ScheduleLimits::registers(const TileOperands &operands) const {
  auto [depth, valueDepth] = paddedSizes(operands);
  if (schedule.movingTeam())
    return registersBeside(operands, columnsApart(operands));
  int64_t rows =
      schedule.warpsByThemselves() ? schedule.BM : schedule.BM / schedule.warps;
  int64_t tilesOfScores =
      std::holds_alternative<ScoresAhead>(schedule.ahead) ? 2 : 1;
  // A warp holds P of all the columns, of its own of the rest.
  return (rows * valueDepth + tilesOfScores * rows * schedule.BN +
          rows * schedule.warpCols * schedule.BN / 2) /
         target.waveSize;
}

//===----------------------------------------------------------------------===//
// A problem's tiles
//===----------------------------------------------------------------------===//

Reason ScheduleLimits::whyNotRoles(const TileOperands &operands) const {
  constexpr int64_t products = 2 * LatentRoles::kProductCols;
  int64_t values = operands.valueHeadSize, rest = operands.headSize - values;
  if (schedule.BK != 64 || schedule.BN != 64 ||
      schedule.BM != int64_t(target.matrixGroupRows))
    return ("producers with split_keys need BM = " +
            Twine(target.matrixGroupRows) +
            ", BN = 64 and BK = 64; expected producers = 0")
        .str();
  // Who turns values of bytes is beside them.
  bool areBytes = operands.bytes == 1 && schedule.movingTeam()->widens.warps;
  // Slots of packed rows have values alone where these are all columns.
  if (!operands.latent || values % products ||
      rest < int64_t(!operands.teamWidens()) || rest % schedule.BK ||
      !(operands.bytes == 2 || areBytes) ||
      (operands.keyBytes != operands.bytes && !operands.teamWidens()))
    return ("producers with split_keys need rows of 16 bits, or rows of bytes "
            "and, beside queries of bytes, wideners, values of a multiple of " +
            Twine(products) + " columns and " + Twine(schedule.BK) +
            " or a multiple beside them, got " + Twine(operands.headSize) +
            " and " + Twine(values) + "; expected producers = 0")
        .str();
  LatentRoles roles = LatentRoles::of(schedule, operands, target);
  if (int64_t bytes = roles.bytes(schedule); bytes > target.ldsBytes)
    return ("the schedule needs " + Twine(bytes) + " bytes of shared memory, " +
            target.chip + " has " + Twine(target.ldsBytes) +
            " for a block; expected fewer stages")
        .str();
  if (operands.widensAhead && !roles.bytesAhead)
    return "producers have no room beside slots for bytes of packed rows that "
           "are not widened where they lie; expected fewer stages, overlap = "
           "false, or producers = 0";
  // Accumulators and operands in registers leave 32 for the rest; of bytes
  // some of these are two products of a few columns.
  int64_t lanes = schedule.warps * int64_t(target.waveSize);
  constexpr int64_t kBeside = 32;
  int64_t scores = (roles.scoresAhead ? 2 : 1) * schedule.BN;
  int64_t ofScores =
      schedule.BM * (scores + roles.queries / 2) / lanes + kBeside;
  int64_t ofHalves = schedule.BM * roles.half / lanes + kBeside;
  if (areBytes)
    ofHalves +=
        schedule.BM * (roles.productCols + schedule.BN / sizeof(float)) / lanes;
  for (auto [what, needs, has] :
       {std::tuple<const char *, int64_t, int64_t>{
            "the team of the scores", ofScores, roles.scoreRegisters},
        {"a team of half of the values", ofHalves,
         schedule.movingTeam()->otherRegisters}})
    if (needs > has)
      return (Twine("a lane of ") + what + " needs " + Twine(needs) +
              " registers, the schedule gives it " + Twine(has))
          .str();
  return std::nullopt;
}

Reason ScheduleLimits::whyNotTeamsFor(const MovingTeam &mover,
                                      const TileOperands &operands) const {
  if (schedule.dividesColumns())
    return whyNotRoles(operands);
  if (schedule.BN > int64_t(target.matrixGroupCols))
    return ("BN = " + Twine(schedule.BN) + " is more than the " +
            Twine(target.matrixGroupCols) + " columns of a product; BN = " +
            Twine(target.matrixGroupCols) + " would fit")
        .str();
  constexpr int64_t widestRow = 128;
  int64_t ofScores = schedule.shapeOf(ProductKind::Scores)[2],
          ofValues = schedule.shapeOf(ProductKind::Values)[2];
  // Columns of wider heads are divided, if their elements have 16 bits.
  constexpr int64_t widestHead = 512;
  bool divides = target.warpsPerMatrixGroup() && operands.bytes == 2 &&
                 operands.keyBytes == 2 && operands.valueBytes == 2;
  int64_t most = divides ? widestHead : int64_t(target.matrixGroupCols);
  for (auto [size, unit] : {std::pair(operands.headSize, ofScores),
                            std::pair(operands.valueHeadSize, ofValues)})
    if (size % unit || size > most)
      return ("producers need a head size of at most " + Twine(most) +
              " and a multiple of " + Twine(unit) + ", got " + Twine(size) +
              "; expected producers = 0")
          .str();
  if (int64_t parts = WideHeads::of(schedule, operands.headSize,
                                    operands.valueHeadSize, target)
                          .valueParts,
      unit = parts * schedule.BK;
      parts > 1 && operands.valueHeadSize % unit)
    return ("producers divide values of " + Twine(operands.valueHeadSize) +
            " columns into " + Twine(parts) +
            " parts of whole blocks; expected a multiple of " + Twine(unit) +
            ", or producers = 0")
        .str();
  if (schedule.BK % ofScores || schedule.BK % ofValues ||
      schedule.BK * operands.bytes > widestRow)
    return ("BK = " + Twine(schedule.BK) +
            " does not fit the copies of producers; expected " +
            (operands.bytes == 1 ? "32, 64 or 128" : "16, 32 or 64"))
        .str();
  // The assembler wants what one product takes beside its accumulators of the
  // registers that all lanes start with (ptxas, C7602), whatever they get
  // later.
  constexpr int64_t kBesideProduct = 30;
  int64_t started = equalShare(),
          accumulators =
              schedule.rowsOfWarp() *
              std::max<int64_t>(schedule.BN, columnsApart(operands)) /
              target.waveSize;
  if (target.warpsPerMatrixGroup() && accumulators + kBesideProduct > started)
    return ("a product of " + Twine(accumulators) +
            " accumulators a lane needs " +
            Twine(accumulators + kBesideProduct) + " registers, and lanes of " +
            Twine(threads()) + " threads start with " + Twine(started) +
            " on " + target.chip + "; expected fewer warps")
        .str();
  // A swizzle repeats after 8 rows.
  if (int64_t unit = 8 * mover.widens.warps;
      unit && operands.bytes > 1 && schedule.BN % unit)
    return ("BN = " + Twine(schedule.BN) +
            " is not 8 rows or more for each of " + Twine(mover.widens.warps) +
            " wideners; expected a multiple of " + Twine(unit))
        .str();
  int64_t own = otherRegisters(mover);
  auto fits = [&](int64_t BN, int64_t stages) {
    Schedule other = schedule;
    other.BN = BN;
    other.stages = stages;
    ScheduleLimits limits(other, target, element, elementOfValues);
    return limits.registers(operands) <= own &&
           limits.sharedBytes(operands) <= target.ldsBytes;
  };
  if (fits(schedule.BN, schedule.stages))
    return std::nullopt;
  std::string text;
  if (int64_t bytes = sharedBytes(operands); bytes > target.ldsBytes)
    text = ("the schedule needs " + Twine(bytes) + " bytes of shared memory, " +
            target.chip + " has " + Twine(target.ldsBytes) + " for a block")
               .str();
  else
    text = ("a consumer's lane needs at least " + Twine(registers(operands)) +
            " registers, the schedule gives it " + Twine(own))
               .str();
  for (int64_t BN = llvm::alignDown(schedule.BN - 1, 16); BN > 0; BN -= 16)
    if (fits(BN, schedule.stages))
      return text + ("; BN = " + Twine(BN) + " would fit").str();
  for (int64_t stages = schedule.stages - 1; stages > 0; --stages)
    if (fits(schedule.BN, stages))
      return text + ("; stages = " + Twine(stages) + " would fit").str();
  return text + "; no BN would fit";
}

Reason ScheduleLimits::whyNotDivided(const TileOperands &operands) const {
  const MatrixInstruction &ofScores = *instruction(ProductKind::Scores),
                          &ofValues = *instruction(ProductKind::Values);
  auto [depth, valueDepth] = paddedSizes(operands);
  // Rows of S are BM, its columns BN; with swapped operands they change places.
  int64_t warpCols = schedule.warpCols;
  auto columns = [&](const MatrixInstruction &mma) {
    return (schedule.swapAB ? mma.m : mma.n) * warpCols;
  };
  auto contracted = [](const MatrixInstruction &mma) {
    return mma.k * mma.group;
  };
  std::string share;
  if (warpCols > 1)
    share = (", of which each of warp_cols = " + Twine(warpCols) +
             " warps has a part,")
                .str();
  struct Size {
    const MatrixInstruction &mma;
    int64_t unit, size;
    std::string what;
  };
  const Size sizes[] = {
      {ofScores, columns(ofScores), schedule.BN, "BN" + share},
      {ofValues, contracted(ofValues), schedule.BN, "BN"},
      {ofValues, columns(ofValues), valueDepth, "the padded head size" + share},
      {ofScores, contractedPerRow(target, ofScores), schedule.BK, "BK"},
      {ofValues, contractedPerRow(target, ofValues), schedule.BK, "BK"},
      {ofScores, contracted(ofScores), depth, "the padded head size"},
      {ofScores, contracted(ofScores), schedule.regChunkDepth,
       "reg_chunk_depth"},
  };
  for (const Size &size : sizes)
    if (size.size % size.unit)
      return ("no " + shapeText(size.mma) + " instruction divides " +
              size.what + " = " + Twine(size.size) +
              "; expected a multiple of " + Twine(size.unit))
          .str();
  if (schedule.regChunkDepth > depth)
    return ("reg_chunk_depth = " + Twine(schedule.regChunkDepth) +
            " is more than the padded head size " + Twine(depth))
        .str();
  if (schedule.regChunkDepth > 0 && schedule.hasHalves() &&
      schedule.regChunkDepth < operands.headSize)
    return ("reg_chunk_depth = " + Twine(schedule.regChunkDepth) +
            " does not go with ping_pong, whose fragments of K are in "
            "registers as a whole; expected ping_pong = false")
        .str();
  return std::nullopt;
}

Reason ScheduleLimits::whyNotFor(const TileOperands &operands,
                                 bool spills) const {
  if (const MovingTeam *mover = schedule.movingTeam()) {
    if (Reason why = whyNotTogether())
      return why;
    return whyNotTeamsFor(*mover, operands);
  }
  for (ProductKind product : kProducts)
    if (instruction(product)->isOfGroups())
      return namedText(schedule, product) +
             ", which groups of warps execute on what others load, does not go "
             "with producers = 0; expected " +
             TargetInfo::shapesOf(target.warpInstructions(elementOf(product)));
  if (Reason why = whyNotTogether())
    return why;
  if (Reason why = whyNotDivided(operands))
    return why;
  if (int64_t bytes = sharedBytes(operands); bytes > target.ldsBytes)
    return ("the schedule needs " + Twine(bytes) + " bytes of shared memory, " +
            target.chip + " has " + Twine(target.ldsBytes) + " for a block")
        .str();
  if (!target.readsTransposed && !operands.latent &&
      !throughRegisters(schedule.values) &&
      !std::holds_alternative<Strips>(schedule.values))
    return "v_path = direct does not fit " + target.chip +
           ", which cannot read LDS transposed: V is transposed on its way "
           "through registers; expected v_path = registers";
  int64_t needs = registers(operands), most = target.registersPerLane;
  if (spills && needs > most && needs <= most * 5 / 4)
    return std::nullopt;
  std::string text = ("the schedule needs at least " + Twine(needs) +
                      " registers in a lane, " + target.chip + " has ")
                         .str();
  if (needs > most)
    return text + std::to_string(most);
  int64_t share = target.registersPerBlock / threads();
  if (needs > share)
    return text +
           (Twine(share) + " for each of " + Twine(threads()) + " threads")
               .str();
  return std::nullopt;
}
