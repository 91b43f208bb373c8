//===- TeamWriter.h - One team's version of a tile program ------*- C++ -*-===//
//
// TeamPart of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_TEAMWRITER_H
#define KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_TEAMWRITER_H

#include "FillCounts.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kvbuf {

/// What joins the teams: a buffer's ring, or the mailbox of the numbers that
/// only producers may take.
struct TeamChannel {
  /// The ring's buffer; null for the mailbox.
  AllocOp buffer;
  /// The ring or the mailbox.
  mlir::Value value;
  /// Where the ring's slots hold elements that a team has widened or turned:
  /// the ring of what producers load; else null.
  mlir::Value narrow;
};

/// An operand of groups' products that is one value: a slot that a team puts
/// once.
struct TeamConstant {
  FragmentFillOp fill;
  mlir::Value ring;
};

/// Fillings of a tile: slots of a buffer without `full_kv` have a block of its
/// columns each.
int64_t fillsOfTile(AllocOp buffer);

/// What a team does with tiles.
enum class TeamPart { Multiplies, Moves, Widens };

/// Writes one team's version of a tile program. All teams number the fillings
/// of each channel by the same rules, so that they agree.
class TeamWriter {
public:
  TeamWriter(mlir::ImplicitLocOpBuilder &b,
             llvm::ArrayRef<TeamChannel> channels,
             llvm::ArrayRef<TeamConstant> constants, TeamPart part,
             ScheduleAttr schedule, int64_t groups, int64_t waveSize)
      : b(b), channels(channels), constants(constants),
        isProducer(part == TeamPart::Moves),
        isConsumer(part == TeamPart::Multiplies), schedule(schedule),
        groups(groups), waveSize(waveSize),
        count(
            channels.size(),
            [this](mlir::Operation *op) { return countedChannelOf(op); },
            constant(0)) {}

  /// Writes an op with all that is in it.
  llvm::LogicalResult writeOp(mlir::Operation *op);
  /// Consumers: releases every slot after its last read.
  void release();
  /// At a team's start: puts the slots of constant operands, or awaits them.
  void putConstants();

private:
  mlir::Value constant(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(b, value);
  }
  mlir::Value add(mlir::Value lhs, mlir::Value rhs) {
    return b.createOrFold<mlir::arith::AddIOp>(lhs, rhs);
  }
  mlir::Value sub(mlir::Value lhs, mlir::Value rhs) {
    return b.createOrFold<mlir::arith::SubIOp>(lhs, rhs);
  }
  /// The number of the channel that an op fills, or nothing.
  std::optional<unsigned> channelOf(mlir::Operation *op) const;
  /// That of which an op fills the last slot of a tile: counts are of tiles, so
  /// that each block of columns has slots that do not change from tile to tile.
  std::optional<unsigned> countedChannelOf(mlir::Operation *op) const;
  /// The number of the filling that is a block of columns of a buffer's tile.
  mlir::Value fillOf(AllocOp buffer, mlir::Value tile, int64_t block);

  /// Whether this team has values of a type.
  bool has(mlir::Type type) {
    return !mlir::isa<StagedType, TokenType>(type) &&
           (isConsumer || !mlir::isa<FragmentType>(type));
  }
  llvm::SmallVector<unsigned> kept(mlir::TypeRange types) {
    llvm::SmallVector<unsigned> result;
    for (auto [i, type] : llvm::enumerate(types))
      if (has(type))
        result.push_back(i);
    return result;
  }
  template <typename Range>
  llvm::SmallVector<mlir::Value> mapped(Range values,
                                        llvm::ArrayRef<unsigned> which) {
    return llvm::map_to_vector(
        which, [&](unsigned i) { return map.lookupOrDefault(values[i]); });
  }

  /// Writes the ops of `body` but for its terminator.
  llvm::LogicalResult write(mlir::Block &body);
  llvm::LogicalResult writeFor(mlir::scf::ForOp op);
  llvm::LogicalResult writeIf(mlir::scf::IfOp op);
  llvm::LogicalResult writeWhile(mlir::scf::WhileOp op);
  void placeRelease(mlir::Block &block, mlir::Value staged, mlir::Value ring,
                    mlir::Value fill);
  /// Whether the producers, too, read a number from the mailbox: it is not
  /// theirs alone.
  bool takesPosted(mlir::Operation *op);
  /// Hands a filling on with wider elements, or turned, if the channel's are.
  void widen(const TeamChannel &channel, mlir::Value fill);
  /// Asks for a number and posts it.
  void post(NextTileOp op);
  /// Takes number `number` out of the mailbox.
  void take(NextTileOp op, mlir::Value number);
  /// The channels that tiles of a range of keys fill; nothing if one is filled
  /// by other tiles, too, so that its fillings are not those of the range.
  std::optional<llvm::SmallVector<unsigned>> channelsOf(KeyRangeOp op) const;
  /// Consumers: narrows a descending range of keys, whose tiles fill `keys`, to
  /// what the executing group sees, and passes over the tiles before it.
  void trim(KeyRangeOp op, llvm::ArrayRef<unsigned> keys);
  /// The first row of the block, where a range of keys is that of its rows or
  /// of all its cluster's, as kvbuf-assign-work leaves them: the cluster's
  /// first row and a number times BM. Null: not known.
  mlir::Value rowOfBlock(KeyRangeOp op) const;
  /// Whether a group of consumers may see fewer tiles of a descending range of
  /// keys than the last one. Where tiles of queries are whole tiles of keys the
  /// groups of the last tile's rows see the same, but for lengths that differ
  /// by a part of a tile; looking would cost each tile 1.3 to 1.6 % of a causal
  /// launch of 4096 rows (docs/tuning.md).
  bool groupsDiffer(KeyRangeOp op) const;

  mlir::ImplicitLocOpBuilder &b;
  llvm::ArrayRef<TeamChannel> channels;
  llvm::ArrayRef<TeamConstant> constants;
  bool isProducer, isConsumer;
  ScheduleAttr schedule;
  /// Groups of consumers, each with as many of a tile's rows.
  int64_t groups;
  /// Lanes of a warp.
  int64_t waveSize;
  mlir::IRMapping map;
  /// Tiles, or numbers of them, that have filled each channel so far.
  FillCounts count;
  /// The filling that a token of the tile program stands for.
  llvm::DenseMap<mlir::Value, std::pair<unsigned, mlir::Value>> tokens;
  llvm::SmallVector<RingWaitOp> waits;
  /// Slots of constant operands, where this team has awaited them.
  llvm::DenseMap<mlir::Operation *, mlir::Value> constantSlots;
  /// What has been posted and is still to be taken by the producers.
  llvm::DenseMap<mlir::Operation *, mlir::Value> posted;
};

} // namespace kvbuf

#endif // KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_TEAMWRITER_H
