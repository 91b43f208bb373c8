//===- AMD.cpp - Schedules of waves that do all the same ------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Proposals.h"
#include "llvm/Support/MathExtras.h"

using namespace kvbuf;

/// Registers of a lane for addresses and what is on its way through the
/// softmax. Measured by compiling: schedules whose other needs come to 240 do
/// not spill, with 260 they do.
static constexpr int64_t kAddressRegisters = 16;

/// Rows of K or V that a wave brings through registers at once: where pages
/// hold as many, each wave looks up its own, and lanes' offsets stay as they
/// are.
static constexpr int64_t kRowsOfWave = 16;

/// Waves of a block, where the copies of a tile are dealt to so many.
static constexpr int64_t kMostWaves = 8;

namespace {
/// A schedule that is being chosen.
struct WaveSchedule {
  const TargetInfo &target;
  const ScheduleRequest &request;
  ScheduleChoice choice;
  /// Head sizes, padded, and the longer one.
  int64_t depth = 0, valueDepth = 0, widest = 0;
  /// Whether 64 columns divide these, and whether heads have padding.
  bool wholeRows, padded;
  /// The instructions for the problem's elements; the scaled one contracts 64
  /// elements of a row, and as many keys.
  llvm::ArrayRef<MatrixInstruction> known;
  bool scaled;
  MatrixInstruction mma;
  /// Whether two slots of K and V fit into LDS, and whether caches are widened
  /// on their way there.
  bool tilesFit = true, widens = false;

  WaveSchedule(const TargetInfo &target, const ScheduleRequest &request);

  /// The page size where a tile has several pages; else 0.
  int64_t smallPage() const {
    return request.pageSize % choice.BN ? request.pageSize : 0;
  }
  /// Pads heads to blocks of `BK` columns.
  void padHeads(int64_t BK);
  int64_t columnsOfRow(const MatrixInstruction &of) const;
  void splitKeys();
  void chooseTile();
  void chooseWaves();
  /// Registers of a lane for a tile of scores, and for these, the accumulators,
  /// Q and P.
  int64_t ofScores() const { return mma.n * choice.BN / target.waveSize; }
  int64_t kept() const {
    return ofScores() + (mma.n * valueDepth + mma.n * (depth + choice.BN) / 2) /
                            target.waveSize;
  }
  /// Whether each lane has as much as any of a tile's columns.
  bool dealsEvenly(int64_t columns) const {
    int64_t of16Bytes = choice.BN * columns / 8,
            lanes = kMostWaves * target.waveSize;
    return of16Bytes % lanes == 0 && llvm::isPowerOf2_64(of16Bytes);
  }
  bool haveTurns() const;
  bool chooseTurns();
  bool chooseTurnsOfFewerRows();
  void choosePaths();
  void takeTurns(bool turns);
};
} // namespace

WaveSchedule::WaveSchedule(const TargetInfo &target,
                           const ScheduleRequest &request)
    : target(target), request(request),
      known(request.multipliesBytes() ? target.float8Instructions
                                      : target.matrixInstructions) {
  padHeads(/*BK=*/32);
  wholeRows = depth % 64 == 0 && valueDepth % 64 == 0;
  padded = request.headSize % 64 || request.valueHeadSize % 64;
  scaled = known.size() > 2 && widest <= 192 && !padded && !request.splitKeys;
  mma = known[scaled ? 2 : widest > 192 ? 1 : 0];
  choice.mma = mma.shape();
  choice.swapAB = true;
  choice.qInRegs = true;
}

void WaveSchedule::padHeads(int64_t BK) {
  choice.BK = BK;
  std::tie(depth, valueDepth) = kvbuf::detail::paddedHeadSizes(request, BK);
  widest = std::max(depth, valueDepth);
}

/// Columns of LDS rows. Where no swizzle of one term suits a 16-row operand in
/// rows of 64 bytes, rows are twice as long, if that takes no more columns:
/// rows of pages of 8 are copied directly then. Lanes that load rows of small
/// pages have more of these to find, which few rows of queries leave time for,
/// but where heads have padding, whose masks take scalar registers (20 to 87
/// spilled over pages of 1).
int64_t WaveSchedule::columnsOfRow(const MatrixInstruction &of) const {
  if (scaled)
    return of.k;
  int64_t page = smallPage();
  bool longer = target.banks == 64 && of.m == 16 && wholeRows &&
                request.cacheBytes == 2 &&
                (target.canCopyDirectly(choice.BN, 2 * 64, page,
                                        request.splitKeys ? 1 : kMostWaves) ||
                 (request.splitKeys && !padded));
  // Of bytes, where rows of pages are copied directly then, and else not.
  bool narrow = request.splitKeys || !request.multipliesBytes();
  longer |= target.banks == 64 && wholeRows && narrow && !widens &&
            request.cacheBytes == 1 &&
            !target.canCopyDirectly(choice.BN, 32, page) &&
            target.canCopyDirectly(choice.BN, 64, page);
  return longer ? 64 : choice.BK;
}

void WaveSchedule::splitKeys() {
  const MatrixInstruction &small = known[1];
  choice.mma = small.shape();
  choice.splitKeys = true;
  choice.xcds = target.dies;
  choice.equalShares = request.lengthsDiffer;
  choice.lookAhead = request.pageSize > 0;
  choice.BM = request.foldedRows > 16 ? 32 : 16;
  choice.BN = 32;
  choice.BK = columnsOfRow(small);
  choice.warps = 1;
  // No transposed read takes bytes: V is turned on its way into LDS.
  if (!target.readsTransposed || request.cacheBytes == 1)
    choice.vPath = Path::Registers;
}

/// 64 keys a tile, 32 where two slots of K and V would not fit, and blocks of
/// those where they do not either.
void WaveSchedule::chooseTile() {
  // A tile's fragments are in registers as a whole while waves take turns. So
  // are the scales of a tile's tokens, and what is widened by them: of 64 keys
  // 32 to 381 registers were spilled (head size 128), of 32 none but 17 on
  // gfx942, with scales for each 32 elements. The scaled instruction takes 64
  // keys, and what is multiplied as it is spills none.
  choice.BN = widest > 192 || (request.tokenScales && !scaled) ? 32 : 64;
  auto lds = [&] {
    return 2 * choice.stages * choice.BN * (depth + valueDepth);
  };
  while (lds() > target.ldsBytes && choice.BN > 32)
    choice.BN /= 2;
  tilesFit = lds() <= target.ldsBytes;
  if (!tilesFit)
    return padHeads(/*BK=*/64);
  // Caches of narrower elements than Q's are widened on their way into LDS.
  widens = request.cacheBytes == 1 && !request.multipliesBytes();
  choice.BK = columnsOfRow(mma);
}

/// As many waves as share the copies of a tile evenly.
void WaveSchedule::chooseWaves() {
  auto copies = [&](int64_t cols) {
    return choice.BN * (tilesFit ? cols : choice.BK) * 2 /
           (int64_t(target.waveSize) * target.asyncCopyBytes.back());
  };
  // What the widest instructions leave over eight waves copy by narrower ones.
  auto dealt = [&](int64_t cols) {
    constexpr int64_t narrower = 4;
    bool rest =
        tilesFit && request.cacheBytes == 2 &&
        choice.BN * choice.BK * 2 % (kMostWaves * target.waveSize * narrower) ==
            0;
    return rest || widens || copies(cols) % kMostWaves == 0;
  };
  choice.warps =
      dealt(depth) && dealt(valueDepth) ? kMostWaves : kMostWaves / 2;
}

/// Whether registers suffice for the fragments of a tile, which are there as a
/// whole, and two tiles of scores, while waves take turns. Where a tile has
/// several pages, what goes through registers has an address for each row of
/// pages that are no multiple of a wave's, and scalars for those of pages that
/// are copied by narrow instructions. Where each lane has looked up a page,
/// narrow copies have addresses of their own (192 columns spilled 8 registers),
/// and a tile's pieces have one for each lane: those that some lanes have not
/// need some to choose by. What functions read for each score is there when
/// the scores of the tile before are none any more.
bool WaveSchedule::haveTurns() const {
  int64_t fragments = choice.BN * widest / 2 / target.waveSize;
  int64_t page = smallPage();
  bool byWave = page % kRowsOfWave == 0 && (widens || target.readsTransposed);
  // A tile of two pages has few scalars for them; masks of windows need these,
  // and addresses (up to 8 vector registers and 5 scalars spilled at 168).
  bool fewPages = page && page % kRowsOfWave == 0 && choice.BN % page == 0 &&
                  choice.BN == 2 * kRowsOfWave && !request.window;
  bool rowsApart = page && !byWave && !fewPages;
  bool staged =
      !target.readsTransposed || widens ||
      !target.canCopyDirectly(choice.BN, 2 * choice.BK, page, choice.warps);
  bool byLane = target.lanesLookUp(choice.BN, page, choice.warps);
  bool uneven = byLane && !(dealsEvenly(depth) && dealsEvenly(valueDepth));
  // Masks of windows need scalars beside those (1 to 5 spilled over pages of
  // 7).
  if (byLane && staged && (uneven || padded) && request.window &&
      !llvm::isPowerOf2_64(page))
    return false;
  // Who compares what is read has words of lanes' own beside it.
  bool compares = request.hides && request.readWords;
  bool more = rowsApart || request.hides || request.readWords;
  int64_t addresses =
      kAddressRegisters * ((more && staged) || uneven || compares ? 2 : 1);
  // Beside V's registers a wave's question about a tile has some (2 spilled on
  // gfx942, head size 128, 64 keys).
  constexpr int64_t ofQuestion = 8;
  if (request.sharesWords && staged)
    addresses += ofQuestion;
  // Who widens has bytes on their way beside a wave's own pages. Masks of
  // windows, pages that are no power of two and V's registers each take some
  // more: with two of these 2 to 23 scalars were spilled, or 3 and 4 vector
  // registers (head size 128, 64 keys).
  constexpr int mostNeeds = 1;
  if (widens && page && byWave &&
      int(request.window) + int(!llvm::isPowerOf2_64(page)) +
              int(!target.readsTransposed) >
          mostNeeds)
    addresses += ofQuestion;
  return tilesFit && choice.warps == kMostWaves &&
         (request.cacheBytes == 2 || (widens && !request.tokenScales)) &&
         std::max<int64_t>(request.readWords, 1) * ofScores() + kept() +
                 fragments + addresses <=
             target.registersPerLane;
}

/// Whether waves take turns, with half as many keys where all of them need too
/// many registers.
bool WaveSchedule::chooseTurns() {
  if (haveTurns())
    return true;
  // (Where V's rows of several pages go through registers, LLVM has them loaded
  // much later, and awaited with all.)
  int64_t half = choice.BN / 2;
  bool together = request.pageSize % half == 0 ||
                  (request.pageSize && request.pageSize % kRowsOfWave == 0) ||
                  target.lanesLookUp(half, request.pageSize, choice.warps) ||
                  (target.readsTransposed &&
                   target.canCopyDirectly(half, 2 * choice.BK, request.pageSize,
                                          choice.warps));
  if (!together || !tilesFit || half < 32 ||
      (request.cacheBytes != 2 && (!widens || request.tokenScales)))
    return false;
  choice.BN = half;
  if (haveTurns())
    return true;
  choice.BN *= 2;
  return false;
}

/// Whether waves take turns with half as many queries each, where lanes look up
/// pages, or functions read for each key, and those of 32 queries leave no
/// registers: there turns gain more than LDS is read for (192 columns: 90 % for
/// 68 on gfx950, 78 for 72 on gfx942, with a relative bias 81 for 60).
bool WaveSchedule::chooseTurnsOfFewerRows() {
  if (request.cacheBytes != 2 || mma.shape() != known[0].shape() ||
      !(request.readWords ||
        target.lanesLookUp(choice.BN, request.pageSize, choice.warps)))
    return false;
  WaveSchedule before = *this;
  mma = known[1];
  choice.mma = mma.shape();
  chooseTile();
  chooseWaves();
  if (chooseTurns())
    return true;
  mma = before.mma;
  choice = before.choice;
  return false;
}

/// Where tiles do not fit into LDS, or the compiler has no registers to read
/// them ahead, they come block by block; three ahead if it has.
void WaveSchedule::choosePaths() {
  bool few = kept() + 4 * kAddressRegisters > target.registersPerLane;
  choice.fullKV = tilesFit && !few;
  if (!tilesFit && !few)
    choice.stages = 4;
  choice.BM = choice.warps * mma.n;
  if (!target.readsTransposed)
    choice.vPath = Path::Registers;
  // Where lanes of several rows each have a place of their own for V's, they
  // have it for K's: narrow copies would need one for each.
  if (choice.fullKV && choice.vPath == Path::Registers &&
      target.lanesLookUp(choice.BN, smallPage(), choice.warps))
    choice.kPath = Path::Registers;
  widens &= choice.fullKV;
  if (widens)
    choice.kPath = choice.vPath = Path::Registers;
}

void WaveSchedule::takeTurns(bool turns) {
  bool lanesLookUp = target.lanesLookUp(choice.BN, smallPage(), choice.warps);
  // What is multiplied as it is, and what has scales that are read in the loop,
  // takes no turns.
  if (request.cacheBytes == 1 && (!widens || request.tokenScales)) {
    choice.vPath = Path::Registers;
    choice.fullKV = true;
    choice.stages = 2;
    choice.lookAhead = lanesLookUp;
    if (lanesLookUp)
      choice.kPath = Path::Registers;
    return;
  }
  // With a register-staged V, turns leave no registers for both a log-sum-exp
  // and a soft cap.
  if (request.lse && request.capped && choice.vPath == Path::Registers)
    turns = false;
  // Two waves a SIMD that take turns fill the matrix unit.
  choice.overlap = choice.pingPong = turns;
  choice.lookAhead = lanesLookUp && choice.fullKV && !turns;
  // (Of copies by lanes where nothing else runs ahead LLVM awaits all.)
  if (choice.lookAhead)
    choice.kPath = choice.vPath = Path::Registers;
  choice.lazyRescale = tilesFit && choice.warps == kMostWaves;
}

/// Waves of 32 queries (16 where the accumulators of 32 would leave no
/// registers). LDS rows of 64 bytes as in the seeds, whose 32-row operands are
/// read without bank conflicts by one address each. Measured by compiling for
/// gfx950 and gfx942, head sizes 192 to 512: no register spills but one at 192
/// on gfx942.
ScheduleChoice kvbuf::detail::scheduleAMD(const TargetInfo &target,
                                          const ScheduleRequest &request) {
  if (target.matrixUnit() == MatrixUnit::Wmma)
    return scheduleGFX1250(target, request);
  WaveSchedule schedule(target, request);
  if (request.splitKeys) {
    schedule.splitKeys();
    return schedule.choice;
  }
  schedule.choice.xcds = target.dies;
  schedule.chooseTile();
  schedule.chooseWaves();
  bool turns = schedule.chooseTurns() || schedule.chooseTurnsOfFewerRows();
  schedule.choosePaths();
  schedule.takeTurns(turns);
  return schedule.choice;
}
