//===- Rings.h - Rings and mailboxes between teams --------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_EMULATOR_TILE_RINGS_H
#define KVBUFFER_LIB_EMULATOR_TILE_RINGS_H

#include "Tensors.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace kvbuf::emu::tile {

/// The rings and mailboxes of one block. What a team that fills them does
/// depends on nothing that the teams do which take, except for when it happens.
/// So teams that fill run first, to the end, and what they fill is recorded;
/// then those run that take, and a filling is there for each of them as soon as
/// it has released the slots that this filling and all of the same team before
/// it need: the order of events on a device that moves everything at once. A
/// team that would wait for ever for itself is an error at once. That teams
/// would wait for each other is found at the end, when what they did is done
/// again in any order that slots allow.
class Rings : public TileState {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Rings)

  /// A new ring or mailbox (`RingOp`, `MailboxOp`); returns its number.
  unsigned add(TeamChannelInterface op, int64_t slots);

  /// The op that makes a ring or mailbox.
  TeamChannelInterface channel(unsigned number) const {
    return channels[number].op;
  }

  /// Fills number `fill` with a tile's data or with a number. Checks that
  /// fillings come in order.
  mlir::LogicalResult fill(mlir::Operation *op, unsigned channel, int64_t fill,
                           Matrix data, int64_t number, ErrorFn error);
  /// Waits for a filling, in the taker of that number.
  mlir::LogicalResult wait(mlir::Operation *op, unsigned channel, int64_t fill,
                           unsigned taker, ErrorFn error);
  /// The data of a filling that was awaited and is not released.
  mlir::FailureOr<const Matrix *> read(unsigned channel, int64_t fill,
                                       unsigned taker, ErrorFn error);
  /// The same, to change it in place: by the only team that takes it.
  mlir::FailureOr<Matrix *> rewrite(unsigned channel, int64_t fill,
                                    unsigned taker, ErrorFn error);
  /// The number in a mailbox, after `wait`.
  int64_t number(unsigned channel, int64_t fill) const {
    return channels[channel].fillings[fill].number;
  }
  /// The number in a mailbox, for the team that has posted it.
  mlir::FailureOr<int64_t> posted(unsigned channel, int64_t fill,
                                  ErrorFn error) const;
  /// Gives a slot back. Checks that it was awaited.
  mlir::LogicalResult release(mlir::Operation *op, unsigned channel,
                              int64_t fill, unsigned taker, ErrorFn error);
  /// Checks that every filling was awaited and released by all that take, and
  /// that no team waits for ever for another one.
  mlir::LogicalResult finish(TileContext &context,
                             llvm::StringRef owner) override;
  /// "filling 3 of the k ring".
  std::string name(unsigned channel, int64_t fill) const;

private:
  /// What a team that takes has done with a filling.
  struct Taken {
    bool awaited = false;
    mlir::Operation *released = nullptr;
  };
  struct Filling {
    mlir::Operation *op = nullptr;
    Matrix data;
    int64_t number = 0;
    /// Its place among all that its team fills.
    size_t position = 0;
    /// In the order in which the channel names them.
    llvm::SmallVector<Taken> by;
  };
  struct Channel {
    TeamChannelInterface op;
    int64_t slots = 0;
    std::vector<Filling> fillings;
  };
  /// All fillings of a team in their order.
  struct Order {
    std::vector<std::pair<unsigned, int64_t>> fillings;
    /// For each team that takes: those before have found the slots empty that
    /// it takes.
    llvm::StringMap<size_t> issued;
  };

  /// What a team does with a filling: makes it, waits for it or releases it.
  enum class Act { Fill, Wait, Release };
  struct Event {
    Act act;
    mlir::Operation *op;
    unsigned channel;
    int64_t fill;
    unsigned taker;
  };
  /// Fillings made and released so far, by channel, while events are repeated.
  struct Progress;

  /// Whether a team can go on with an event.
  bool isPossible(const Event &event, const Progress &done) const;
  /// Does what all teams did once more, as they wait for each other.
  mlir::LogicalResult repeat(TileContext &context);

  std::vector<Channel> channels;
  llvm::StringMap<Order> orders;
  /// Of each team, in its order.
  llvm::MapVector<mlir::StringRef, std::vector<Event>> events;
};

} // namespace kvbuf::emu::tile

#endif // KVBUFFER_LIB_EMULATOR_TILE_RINGS_H
