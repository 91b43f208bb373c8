//===- Schedule.h - What a schedule is --------------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What `ScheduleAttr` holds: a tile, and of each question that a schedule
/// answers (who works, on what, what runs ahead, how K and V are moved) one of
/// a few kinds, which has parameters of its own. Attributes are written so, too
/// (ScheduleText.cpp); options are a flat list (ScheduleParameters.h), in which
/// what no kind has is refused.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_SCHEDULE_H
#define KVBUFFER_DIALECT_KVBUFFER_IR_SCHEDULE_H

#include "kvbuffer/Dialect/KVBuffer/IR/ScheduleParameters.h"
#include <variant>

namespace kvbuf {

//===----------------------------------------------------------------------===//
// Teams
//===----------------------------------------------------------------------===//

/// Every warp loads, multiplies and computes.
struct OneTeam {
  bool operator==(const OneTeam &) const = default;
};

/// So does every warp, and halves of a block take turns at the matrix unit
/// (`ping_pong` without `producers`).
struct Halves {
  bool operator==(const Halves &) const = default;
};

/// A team of its own widens the elements of tiles that come narrower than
/// products take them (`wideners`).
struct WideningTeam {
  /// Its warps; 0: there is none.
  int64_t warps = 0;
  /// Registers of a lane of it; 0 for an equal share.
  int64_t registers = 0;
  bool operator==(const WideningTeam &) const = default;
};

/// A team of its own moves tiles (`producers`), the other warps multiply.
struct MovingTeam {
  /// Its warps.
  int64_t warps;
  /// Registers of a lane of it, and of one of the others; 0 for an equal share.
  int64_t registers, otherRegisters;
  /// Whether groups of the others take turns at the matrix unit (`ping_pong`).
  bool turns;
  /// Whether O goes through LDS (`stage_output`).
  bool stagesOutput;
  /// What stands between it and the others.
  WideningTeam widens = {};
  bool operator==(const MovingTeam &) const = default;
};

/// What the warps of a block are to each other.
using Teams = std::variant<OneTeam, Halves, MovingTeam>;

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

/// A block takes one tile of queries.
struct OneTile {
  /// Dies that items are dealt to (`xcds`).
  int64_t dies = 1;
  bool operator==(const OneTile &) const = default;
};

/// A block takes several tiles of queries, one after the other.
struct SeveralTiles {
  /// How it comes by them: not `grid`.
  TileOrder order;
  /// Blocks that load tiles of K and V for each other.
  int64_t cluster;
  bool operator==(const SeveralTiles &) const = default;
};

/// Blocks share the keys of a sequence, of few query rows.
struct SplitKeys {
  /// Keys of a split; 0 for a share that the launch chooses.
  int64_t size;
  /// Whether each block has as many tiles as the others, of any sequences.
  bool equalShares;
  /// Blocks that load tiles for each other.
  int64_t cluster = 1;
  /// Dies that items are dealt to (`xcds`).
  int64_t dies = 1;
  bool operator==(const SplitKeys &) const = default;
};

/// What a block does.
using Work = std::variant<OneTile, SeveralTiles, SplitKeys>;

//===----------------------------------------------------------------------===//
// What runs ahead
//===----------------------------------------------------------------------===//

/// Loads of the next tile of keys run beside a tile.
struct LoadsAhead {
  /// Whether the page of a tile is looked up before them (`look_ahead`).
  bool pages = false;
  bool operator==(const LoadsAhead &) const = default;
};

/// So do its scores (`overlap`).
struct ScoresAhead {
  bool operator==(const ScoresAhead &) const = default;
};

/// So do its scores and its softmax: the weights' product is late
/// (`overlap_products`).
struct SoftmaxAhead {
  bool operator==(const SoftmaxAhead &) const = default;
};

/// What of the next tile of keys runs beside a tile, if there are slots for it.
using Ahead = std::variant<LoadsAhead, ScoresAhead, SoftmaxAhead>;

//===----------------------------------------------------------------------===//
// Movement
//===----------------------------------------------------------------------===//

/// A slot of LDS holds a tile.
struct WholeTiles {
  /// Whether it comes there through registers, and not directly.
  bool throughRegisters = false;
  bool operator==(const WholeTiles &) const = default;
};

/// It holds a block of a tile's columns (`full_kv = false`).
struct ColumnBlocks {
  /// Whether it comes there through registers, and not directly.
  bool throughRegisters;
  bool operator==(const ColumnBlocks &) const = default;
};

/// The only slot there is holds a strip (`streaming`).
struct Strips {
  bool operator==(const Strips &) const = default;
};

/// How tiles of K or V come into LDS.
using Movement = std::variant<WholeTiles, ColumnBlocks, Strips>;

/// Whether tiles come into LDS through registers.
bool throughRegisters(const Movement &movement);

//===----------------------------------------------------------------------===//
// Schedule
//===----------------------------------------------------------------------===//

/// How a kernel is built: a tile, and a kind of each question.
struct Schedule : TileParameters {
  Teams teams;
  Work work;
  Ahead ahead;
  Movement keys, values;

  /// The schedule that a list of parameters stands for. What a kind does not
  /// have is not in it: `whyNone` finds that.
  static Schedule of(const ScheduleParameters &list);
  /// The list that stands for it.
  ScheduleParameters list() const;
  bool operator==(const Schedule &) const = default;

  /// One kind of each question; null where the schedule has another.
  const MovingTeam *movingTeam() const {
    return std::get_if<MovingTeam>(&teams);
  }
  const SeveralTiles *severalTiles() const {
    return std::get_if<SeveralTiles>(&work);
  }
  const SplitKeys *splitKeys() const { return std::get_if<SplitKeys>(&work); }

  /// Whether halves of a block take turns.
  bool hasHalves() const { return std::holds_alternative<Halves>(teams); }
  /// Blocks that work on neighbouring tiles at the same time; 1: no cluster.
  int64_t cluster() const {
    if (const SplitKeys *split = splitKeys())
      return split->cluster;
    return severalTiles() ? severalTiles()->cluster : 1;
  }
  /// Dies of the chip that items are dealt to; 1: they are not.
  int64_t dies() const {
    if (const SplitKeys *split = splitKeys())
      return split->dies;
    const auto *one = std::get_if<OneTile>(&work);
    return one ? one->dies : 1;
  }
  /// Whether the rows of latent attention are dealt to teams: beside the one
  /// that moves, one of `warps` warps has scores, and two half of O's columns
  /// each.
  bool dividesColumns() const { return movingTeam() && splitKeys(); }
  /// Warps of a block.
  int64_t blockWarps() const {
    const MovingTeam *mover = movingTeam();
    return (dividesColumns() ? 3 : 1) * warps +
           (mover ? mover->warps + mover->widens.warps : 0);
  }
  /// Parts that the warps cut the rows of accumulators into, and the rows of
  /// one (of all, where the number of warps is open).
  int64_t warpRows() const { return warps / warpCols; }
  /// The most rows that a warp has of a tile of split keys: of more, with their
  /// accumulators, no chip's lanes hold the columns of a usual head.
  static constexpr int64_t kMostRowsOfWarp = 32;
  /// Whether each warp has all rows, and tiles of split keys of its own: where
  /// warps share columns (`warp_cols`), or more rows than one of them holds,
  /// they share tiles.
  bool warpsByThemselves() const {
    return splitKeys() && warpCols == 1 &&
           (warps == 1 || BM <= kMostRowsOfWarp);
  }
  /// The rows of the block's BM that one warp has. All of them where warps are
  /// not chosen yet, or are fewer than share columns, which no schedule that
  /// was verified has.
  int64_t rowsOfWarp() const { return warpRows() ? BM / warpRows() : BM; }
};

/// For the uniquing of attributes.
inline llvm::hash_code hash_value(const Schedule &schedule) {
  return hash_value(schedule.list());
}

/// Why a list of parameters is no schedule: a size that cannot be, a parameter
/// that means nothing beside the others, or leaves nothing to do for another,
/// and what to write instead, for a message ("xcds = 2 does not go with ...");
/// nothing if it is one.
std::optional<std::string> whyNone(const ScheduleParameters &list);

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_SCHEDULE_H
