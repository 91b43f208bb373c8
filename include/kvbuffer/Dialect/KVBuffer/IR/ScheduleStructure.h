//===- ScheduleStructure.h - What parameters choose --*- C++ -* -----------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Users write a schedule as a list of parameters. Together they choose one of
/// a few kinds of teams, of ways to share the work and of what runs ahead; each
/// kind has parameters of its own. Passes and checks ask for the kind, so that
/// no two of them read a combination of parameters in two ways.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_SCHEDULESTRUCTURE_H
#define KVBUFFER_DIALECT_KVBUFFER_IR_SCHEDULESTRUCTURE_H

#include "kvbuffer/Dialect/KVBuffer/IR/ScheduleParameters.h"
#include <variant>

namespace kvbuf {

/// Every warp loads, multiplies and computes.
struct OneTeam {};

/// So does every warp, and halves of a block take turns at the matrix unit
/// (`ping_pong` without `producers`).
struct Halves {};

/// Some warps load tiles, the others multiply.
struct Roles {
  /// Warps that load.
  int64_t producers;
  /// Registers of a lane of both; 0 for an equal share.
  int64_t producerRegisters, consumerRegisters;
  /// Whether groups of consumers take turns at the matrix unit.
  bool turns;
};

/// What the warps of a block are to each other.
using Teams = std::variant<OneTeam, Halves, Roles>;
Teams teamsOf(const ScheduleParameters &schedule);

/// A block takes one tile of queries.
struct OneTile {
  /// Dies that heads are dealt to.
  int64_t xcds;
};

/// A block takes several tiles of queries, one after the other.
struct SeveralTiles {
  /// How it comes by them: not `grid`.
  TileOrder order;
  /// Whether a tile starts beside the last product of the one before.
  bool joined;
  /// LDS slots of Q.
  int64_t qStages;
  /// Blocks that load tiles of K and V for each other.
  int64_t cluster;
};

/// Blocks share the keys of a sequence, of few query rows.
struct SplitKeys {
  /// Keys of a split; 0 for a share that the launch chooses.
  int64_t size;
  /// Whether each block has as many tiles as the others, of any sequences.
  bool equalShares;
};

/// What a block does.
using Work = std::variant<OneTile, SeveralTiles, SplitKeys>;
Work workOf(const ScheduleParameters &schedule);

/// What of the next tile of keys runs beside a tile, if there are slots for it.
enum class Ahead {
  /// Its loads.
  Loads,
  /// Its scores, too (`overlap`).
  Scores,
  /// Its scores and its softmax: the weights' product is late
  /// (`overlap_products`).
  Softmax
};
Ahead aheadOf(const ScheduleParameters &schedule);

/// What a slot of LDS holds of a tile of K or V.
enum class SlotContents {
  /// All of it.
  Tile,
  /// A block of columns (`full_kv = false`).
  Block,
  /// A strip, in the only slot there is (`streaming`).
  Strip
};
/// The same of a way into LDS: `k_path` or `v_path` of the schedule.
SlotContents slotContents(const ScheduleParameters &schedule, Path path);

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_SCHEDULESTRUCTURE_H
