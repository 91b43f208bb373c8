//===- LatentRoles.h - Teams of latent attention ----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// How a block of latent attention whose warps have roles divides a row of keys
/// and the chip's memory: what the program (DecodeRoles.cpp) is built of, and
/// what its schedule takes of a chip.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_SCHEDULES_LATENTROLES_H
#define KVBUFFER_SCHEDULES_LATENTROLES_H

#include "kvbuffer/Schedules/ScheduleLimits.h"
#include "llvm/Support/MathExtras.h"

namespace kvbuf {

/// The parts of a row of keys, each of which has slots of its own: the columns
/// of values of the one and the other team, and the rest. Sizes in columns.
struct LatentRoles {
  /// Columns of O in one product; ptxas wants what a product takes of the
  /// registers that all lanes start with (C7602), so that a team has several.
  static constexpr int64_t kProductCols = 128;
  /// The same of bytes, a tile's products of which lie beside the accumulators
  /// until they are added, two at a time.
  static constexpr int64_t kProductColsOfBytes = 32;
  /// Columns of queries that stay in registers, as far as values have them: so
  /// many leave 32 registers beside those and the scores, of 168 or 160.
  static constexpr int64_t kQueryCols = 384;
  /// The same beside two tiles of scores.
  static constexpr int64_t kQueryColsBesideTwo = 256;

  /// Whether a part of the next tile's scores is on its way beside the softmax
  /// of one.
  bool scoresAhead;
  /// Of values of one team; of a row beside values.
  int64_t half, rest;
  /// Of queries: those in registers.
  int64_t queries;
  /// Slots of the parts and of weights.
  int64_t leftSlots, rightSlots, restSlots, weightSlots;
  /// Parts of a tile's keys whose weights are passed on by themselves: the
  /// first team multiplies by one while the next one is computed.
  int64_t weightParts = 1;
  /// Bytes of a tile of packed rows that come ahead of its slots: those that
  /// one block widens, their scales, and entries of tables. 0: of each slot one
  /// warp has all.
  int64_t bytesAhead = 0;
  /// Whether products are of bytes: a team turns values into slots of their
  /// own, and rows have one slot for all of their columns.
  bool turns = false;
  /// Slots of such rows, and of either half of the values turned.
  int64_t rowSlots = 0, turnedSlots = 0;
  /// Columns of O in one product.
  int64_t productCols = kProductCols;
  /// Registers of a lane of the team that has scores.
  int64_t scoreRegisters;
  /// Lanes of a warp.
  int64_t waveSize;

  /// Whether tiles come in boxes, as queries do, and not row by row;
  /// `pageSize`: 0 without pages.
  static bool copiesBoxes(int64_t pageSize) {
    constexpr int64_t boxRows = 8;
    return pageSize % boxRows == 0;
  }

  static LatentRoles of(const Schedule &schedule, const TileOperands &operands,
                        const TargetInfo &target) {
    LatentRoles roles;
    int64_t values = operands.valueHeadSize;
    roles.waveSize = int64_t(target.waveSize);
    roles.half = values / 2;
    roles.rest = operands.headSize - values;
    roles.scoresAhead = std::holds_alternative<ScoresAhead>(schedule.ahead);
    // Scores need the first half first, and the second team begins later.
    roles.leftSlots = schedule.stages;
    roles.rightSlots = std::max<int64_t>(schedule.stages - 1, 2);
    roles.restSlots = roles.weightSlots = 1;
    const MovingTeam &mover = *schedule.movingTeam();
    int64_t lanes = schedule.blockWarps() * int64_t(target.waveSize);
    int64_t start =
        llvm::alignDown(target.registersPerBlock / lanes, target.registerStep);
    int64_t left = schedule.blockWarps() * start -
                   2 * schedule.warps * mover.otherRegisters -
                   mover.warps * mover.registers -
                   mover.widens.warps * mover.widens.registers;
    roles.scoreRegisters = std::min<int64_t>(
        llvm::alignDown(left / schedule.warps, target.registerStep),
        llvm::alignDown(target.registersPerLane + 1, target.registerStep));
    if (operands.bytes == 1) {
      constexpr int64_t slots = 2, most = 3;
      roles.turns = true;
      roles.rowSlots = schedule.stages;
      roles.turnedSlots = most;
      roles.weightSlots = slots;
      roles.productCols = kProductColsOfBytes;
      roles.queries = 0;
      if (roles.bytes(schedule) > target.ldsBytes)
        roles.turnedSlots = slots;
      return roles;
    }
    // What scores and 32 registers beside leave, in columns of whole blocks.
    constexpr int64_t block = 64, columnsOfRegister = 4;
    int64_t room = std::max<int64_t>(roles.scoreRegisters - 64, 0);
    // One at least stays in shared memory, in which queries have a slot.
    roles.queries =
        schedule.qInRegs
            ? std::min(
                  {values, operands.headSize - block,
                   roles.scoresAhead ? kQueryColsBesideTwo : kQueryCols,
                   int64_t(llvm::alignDown(columnsOfRegister * room, block))})
            : 0;
    // The rest has two slots then, as one of them is filled without bytes
    // ahead.
    if (operands.teamWidens() && !roles.scoresAhead) {
      roles.restSlots = 2;
      // And what tables say of two tiles' rows: each lane's, once more for
      // slots that blocks share.
      constexpr int64_t ofEntry = 8, tiles = 2;
      int64_t entries = tiles * ofEntry * mover.warps * roles.waveSize;
      roles.bytesAhead =
          schedule.BN / schedule.cluster() * operands.widenedBytes +
          std::min<int64_t>(schedule.cluster(), 2) * entries;
      if (roles.bytes(schedule) > target.ldsBytes)
        roles.bytesAhead = 0;
    }
    // Where the halves leave room; scores that run ahead leave more queries in
    // shared memory.
    for (int64_t *slots : {&roles.restSlots, &roles.weightSlots})
      if (!roles.scoresAhead) {
        *slots = 2;
        if (roles.bytes(schedule) > target.ldsBytes)
          *slots = 1;
      }
    // Packed rows wait for who widens them, and lose what a second part costs
    // (H200, 64 heads, 128 lists of 2048, sustained: 115.6 us for 105.2).
    constexpr int64_t contracted = 16;
    if (!roles.scoresAhead && !roles.bytesAhead &&
        schedule.BN % (2 * contracted) == 0)
      roles.weightParts = 2;
    return roles;
  }

  /// Bytes of shared memory: slots of elements of 16 bits, queries that are not
  /// in registers, and what the teams say of rows, two entries to each.
  int64_t bytes(const Schedule &schedule) const {
    if (turns)
      return bytesOfBytes(schedule);
    int64_t columns = half * (leftSlots + rightSlots) + rest * restSlots;
    int64_t own = 2 * half + rest - queries;
    constexpr int64_t kEntries = 4, kBarriers = 1024;
    return bytesAhead +
           2 * (columns * schedule.BN + own * schedule.BM +
                weightSlots * schedule.BM * schedule.BN) +
           kEntries * schedule.warps * waveSize * 8 + kBarriers;
  }

private:
  /// The same where elements are bytes: slots of rows, and of values turned,
  /// queries, weights with what rows are rescaled by, and what a piece ends
  /// with.
  int64_t bytesOfBytes(const Schedule &schedule) const {
    constexpr int64_t kRowBytes = 8, kBarriers = 1024;
    int64_t ofRows = kRowBytes * schedule.warps * waveSize;
    int64_t columns = 2 * half + rest;
    return rowSlots * columns * schedule.BN +
           turnedSlots * 2 * half * schedule.BN + columns * schedule.BM +
           weightSlots * (schedule.BM * schedule.BN + ofRows) + 2 * ofRows +
           kBarriers;
  }
};

} // namespace kvbuf

#endif // KVBUFFER_SCHEDULES_LATENTROLES_H
