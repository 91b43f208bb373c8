//===- ScheduleLimits.h - What a schedule takes of a chip -------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The one place that computes what a schedule takes of a chip: threads,
/// registers, shared memory. kvbuf-choose-schedule asks for a problem's tiles;
/// the checks of kernels, which may be hand-written, for what holds whatever a
/// kernel computes. What a list of parameters may say whatever the chip is, is
/// in ScheduleRules.cpp.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_SCHEDULES_SCHEDULELIMITS_H
#define KVBUFFER_SCHEDULES_SCHEDULELIMITS_H

#include "kvbuffer/Dialect/KVBuffer/IR/Schedule.h"
#include "kvbuffer/Target/TargetInfo.h"

namespace kvbuf {

/// What the tiles of a problem are of.
struct TileOperands {
  /// Elements of a head of Q and K, and of V and O.
  int64_t headSize, valueHeadSize;
  /// Bytes of an element of Q, and of K and V in LDS.
  int64_t bytes, keyBytes, valueBytes;
  /// Whether values are columns of the slots that keys are in.
  bool latent = false;
  /// Whether query rows are ragged: where keys are split, a loop of its own has
  /// those that the launch does not know of.
  bool ragged = false;
  /// Whether a mask hides keys on the left, too: where keys are split, a loop
  /// of its own has the tiles of that edge.
  bool window = false;
  /// Bytes of an element of a tensor that a function of scores reads by its row
  /// and key; 0: of none.
  int64_t readBytes = 0;
  /// Whether products begin with it: nothing has registers beside scores.
  bool beginsWithRead = false;
  /// Whether rows of the cache are packed (`#kvbuffer.row`).
  bool packed = false;
  /// Bytes of a row that a team of latent attention widens, packed or of
  /// narrower elements than Q's, whose scales are words beside them, and
  /// whether one warp that has no memory beside slots cannot widen them.
  int64_t widenedBytes = 0;
  bool widensAhead = false;

  /// Whether lanes of such a team fill slots with what rows are widened to.
  bool teamWidens() const { return packed || widenedBytes; }
};

/// Whether lanes that bring tiles of K and V through registers (`k_path =
/// registers`, `v_path = registers`), of narrower elements than Q's, widen them
/// there, so that LDS holds what is multiplied: once a block, where each wave
/// would widen all of a tile that it reads. Where each wave has tiles of its
/// own, or a slot is of keys and of values, elements stay as they are.
bool widensOnTheWay(const Schedule &schedule, bool latent,
                    const TargetInfo &target);

/// What a schedule takes of a chip, and why the chip does not have it. A reason
/// is the rest of a message at the problem or the kernel, and names the limit.
class ScheduleLimits {
public:
  /// Slots of tiles of such a tensor.
  static constexpr int64_t kScoreStages = 2;
  /// Columns that a tile of words of such a tensor has beside those of scores:
  /// rows that lanes read together then begin in banks of their own.
  static constexpr int64_t kReadPadding = 8;

  /// `element`: the type, by its name in MLIR, of the operands whose
  /// instruction the schedule names; `ofValues`: of those of the products that
  /// contract rows, where it is another.
  ScheduleLimits(const Schedule &schedule, const TargetInfo &target,
                 llvm::StringRef element = "bf16",
                 llvm::StringRef ofValues = "")
      : schedule(schedule), target(target), element(element),
        elementOfValues(ofValues.empty() ? element : ofValues) {}

  /// Why the chip has no kernel of the schedule, whatever it computes: its
  /// instruction, teams, rows of a warp, threads, and registers of teams.
  /// `operands`: what it computes, if it is known; a remedy suits them then.
  std::optional<std::string>
  whyNotOnChip(const TileOperands *operands = nullptr) const;
  /// Why such a kernel has no room for tiles of `operands`, on a chip that has
  /// it otherwise. `spills`: some more registers than a lane has are no reason,
  /// for the assembler keeps them in memory.
  std::optional<std::string> whyNotFor(const TileOperands &operands,
                                       bool spills) const;

  /// Why no team can only move tiles; nothing if one can, or `producers` is 0.
  static std::optional<std::string> whyNoMovingTeam(int64_t producers,
                                                    const TargetInfo &target);

  /// Threads of a block.
  int64_t threads() const;
  /// Bytes of LDS that a block needs for its tiles and for what its warps leave
  /// each other.
  int64_t sharedBytes(const TileOperands &operands) const;
  /// Registers of a lane that multiplies for accumulators and P, which no
  /// compiler can save; two tiles of scores where they overlap.
  int64_t registers(const TileOperands &operands) const;
  /// Columns of a product of weights and values that come out of the matrix
  /// unit at a time: all, or, where such products are added to the accumulators
  /// apart and registers do not hold both, a part of them.
  int64_t columnsApart(const TileOperands &operands) const;
  /// How many of Q's columns, up to half of them, registers have room for
  /// beside its slot, in blocks of BK, where tiles have so few keys that
  /// products of scores read no less of Q from LDS than of K. 0: none, or that
  /// wins nothing.
  int64_t heldQueryColumns(const TileOperands &operands) const;
  /// Slots of Q: a second one where teams multiply bytes that stay in LDS, if
  /// there is room. Loads are in order: with one, keys of the next tile would
  /// wait until the last group has multiplied this one.
  int64_t querySlots(const TileOperands &operands) const;
  /// Slots of K and V as they are loaded: `stages`, or, where a team widens
  /// them into as many, those that LDS has room for beside, one at least. A
  /// slot of bytes is free before what became of it is multiplied.
  int64_t loadedSlots(const TileOperands &operands) const;
  /// Whether tiles of split keys are within the shared memory of a block and
  /// the registers of a lane.
  bool hasRoom(const TileOperands &operands) const {
    return registers(operands) <= int64_t(target.registersPerLane) &&
           sharedBytes(operands) <= target.ldsBytes;
  }
  /// Whether a block of few query rows has them in LDS and reads them for each
  /// tile of keys: accumulators, queries and a place among sequences of any
  /// lengths would take more registers than a lane has.
  bool readsQueriesFromLds(const TileOperands &operands) const;
  /// Whether tiles of a tensor that a function of scores reads by its row and
  /// key come through LDS as those of keys do: a team moves them, and others
  /// multiply in groups. Beside a team that widens there is no room for them.
  bool stagesReads() const;

private:
  /// Whether the product of a tile is added to those before it by vector
  /// instructions.
  bool addsApart(const TileOperands &operands) const;
  /// Registers of a lane of teams, beside products of so many columns at a time
  /// where these are added apart.
  int64_t registersBeside(const TileOperands &operands, int64_t columns) const;
  /// Head sizes of Q and K, and of V and O, padded to whole LDS blocks.
  std::pair<int64_t, int64_t> paddedSizes(const TileOperands &operands) const;
  const MatrixInstruction *instruction(ProductKind product) const;
  llvm::StringRef elementOf(ProductKind product) const {
    return product == ProductKind::Scores ? element : elementOfValues;
  }
  /// Why the chip lacks the instruction that the schedule names for a product.
  std::optional<std::string> whyNoInstruction(ProductKind product) const;
  /// Why results of one instruction are no operands of the other, or their rows
  /// lie apart: with instructions of their own for scores and values.
  std::optional<std::string> whyNotTogether() const;
  std::optional<std::string> whyNotTeams(const MovingTeam &mover) const;
  std::optional<std::string>
  whyNotRegistersOf(const MovingTeam &mover,
                    const TileOperands *operands) const;
  std::optional<std::string> whyNotTeamsFor(const MovingTeam &mover,
                                            const TileOperands &operands) const;
  /// Why there is no room for the teams of latent attention.
  std::optional<std::string> whyNotRoles(const TileOperands &operands) const;
  std::optional<std::string> whyNotDivided(const TileOperands &operands) const;
  /// Registers of a lane where all have as many.
  int64_t equalShare() const;
  /// Registers of a lane that multiplies.
  int64_t otherRegisters(const MovingTeam &mover) const;
  /// `loaded`: slots of what is widened, as it is loaded.
  int64_t teamsBytes(const MovingTeam &mover, const TileOperands &operands,
                     int64_t loaded) const;
  int64_t splitKeysBytes(const TileOperands &operands) const;
  int64_t aloneBytes(const TileOperands &operands) const;
  /// An f32 for each row that a lane has, of all threads.
  int64_t rowValueBytes() const;
  /// What warps that share the columns of rows leave each other (see
  /// LaneWarps.cpp): P, whose rows begin at other banks, and the values of so
  /// many reductions of rows.
  int64_t bytesBetweenWarps(const TileOperands &operands,
                            int64_t reductions) const;

  Schedule schedule;
  const TargetInfo &target;
  std::string element, elementOfValues;
};

} // namespace kvbuf

#endif // KVBUFFER_SCHEDULES_SCHEDULELIMITS_H
