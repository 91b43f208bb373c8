//===- Teams.cpp - Warps that work in teams ---------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// KVBufferTeamOps.td: teams, queues and shelves.
//
//===----------------------------------------------------------------------===//

#include "Lds.h"
#include "OwnOps.h"
#include "kvbuffer/Dialect/KVBuffer/IR/TradedShelves.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::emu;
using namespace kvbuf::emu::tile;

namespace {
/// What fragments are, to keep.
using Matrices = SmallVector<std::shared_ptr<const Matrix>>;

/// A queue's entries, and how many of them each team has taken.
struct Queue {
  QueueOp op;
  std::vector<Matrices> entries;
  llvm::StringMap<int64_t> taken;
};
struct Queues : TileState {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Queues)
  llvm::DenseMap<Value, Queue> queues;
};

/// A slot of a shelf: what lies there, the op that has put it, and in which
/// team and division into teams. `seen`: the op that got it last, likewise.
struct Kept {
  Matrices values;
  struct By {
    Operation *op = nullptr;
    TeamOp team;
    int64_t copy = 0, division = -1;
  } put, seen;
};
struct Shelves : TileState {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Shelves)
  llvm::DenseMap<Value, std::vector<Kept>> shelves;
  /// How often the block has been divided into teams so far.
  int64_t division = 0;
};

/// What the values of queues and shelves stand for: their ops' states know
/// them by the values.
struct Named {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Named)
};
} // namespace

/// The team to execute next of those that are left: one that takes nothing from
/// others of them; null if there is none.
static TeamOp nextTeam(TeamsOp op, ArrayRef<TeamOp> left) {
  SmallVector<TeamChannelInterface> between = op.getChannels();
  for (TeamOp team : left) {
    bool waits = llvm::any_of(between, [&](TeamChannelInterface channel) {
      return llvm::is_contained(left, op.getTeam(channel.getFrom())) &&
             channel.getTaker(team.getSymName()) >= 0;
    });
    if (!waits)
      return team;
  }
  return {};
}

/// One team after the other, and one copy after the other: what they do at the
/// same time joins in queues and rings and, after they have ended, in memory,
/// so that each order gives the same.
LogicalResult tile::execute(TileContext &context, TeamsOp op) {
  SmallVector<TeamOp> left(op.getBody().getOps<TeamOp>());
  while (!left.empty()) {
    TeamOp next = nextTeam(op, left);
    if (!next)
      return context.errorAt(op)
             << "has teams that wait for each other, which cannot be "
                "executed one after the other";
    llvm::erase(left, next);
    for (int64_t i = 0; i < int64_t(next.getCopies()); ++i) {
      if (BlockArgument index = next.getIndex())
        context.setInteger(index, i);
      if (failed(context.runTeam(next, i)))
        return failure();
    }
  }
  for (QueueOp queue : op.getQueues()) {
    Queue &its = context.ofBlock<Queues>().queues[queue.getQueue()];
    for (Attribute name : queue.getTo()) {
      StringRef taker = cast<FlatSymbolRefAttr>(name).getValue();
      if (its.taken[taker] != int64_t(its.entries.size()))
        return context.errorAt(queue)
               << "has " << its.entries.size() << " entries, of which @"
               << taker << " takes " << its.taken[taker];
    }
    its.entries.clear();
    its.taken.clear();
  }
  ++context.ofBlock<Shelves>().division;
  // The block meets.
  context.meet();
  return success();
}

LogicalResult tile::execute(TileContext &context, QueueOp op) {
  context.ofBlock<Queues>().queues[op.getQueue()].op = op;
  context.setObject(op.getQueue(), Named{});
  return success();
}

LogicalResult tile::execute(TileContext &context, QueuePutOp op) {
  Queue &queue = context.ofBlock<Queues>().queues[op.getQueue()];
  int64_t number = context.integerOf(op.getNumber());
  if (number != int64_t(queue.entries.size()))
    return context.errorAt(op) << "puts entry " << number << "; expected entry "
                               << queue.entries.size() << ", the next one";
  queue.entries.push_back(llvm::map_to_vector(
      op.getValues(), [&](Value value) { return context.shareMatrix(value); }));
  return success();
}

LogicalResult tile::execute(TileContext &context, QueueTakeOp op) {
  Queue &queue = context.ofBlock<Queues>().queues[op.getQueue()];
  int64_t number = context.integerOf(op.getNumber());
  int64_t &taken = queue.taken[context.place().teamName];
  if (number != taken)
    return context.errorAt(op)
           << "takes entry " << number << "; expected entry " << taken
           << ", the next one";
  if (taken == int64_t(queue.entries.size()))
    return context.errorAt(op)
           << "takes entry " << number << ", but @" << queue.op.getFrom()
           << " puts no more than " << queue.entries.size();
  for (auto [value, matrix] :
       llvm::zip_equal(op.getValues(), queue.entries[taken]))
    context.setMatrix(value, matrix);
  ++taken;
  return success();
}

LogicalResult tile::execute(TileContext &context, ShelfOp op) {
  context.ofBlock<Shelves>().shelves[op.getShelf()].resize(op.getSlots());
  context.setObject(op.getShelf(), Named{});
  return success();
}

/// The slot of a shelf that an op uses, if there is one and no other team that
/// works at the same time has put into it, or, for a put, got from it.
static FailureOr<Kept *> slotOf(TileContext &context, Operation *op,
                                Value shelf, Value slot, bool puts) {
  Shelves &all = context.ofBlock<Shelves>();
  std::vector<Kept> &slots = all.shelves[shelf];
  int64_t number = context.integerOf(slot);
  if (number < 0 || number >= int64_t(slots.size())) {
    context.errorAt(op) << "uses slot " << number << " of a shelf of "
                        << slots.size();
    return failure();
  }
  Kept &kept = slots[number];
  TilePlace place = context.place();
  Kept::By me{op, cast_if_present<TeamOp>(place.team), place.copy,
              all.division};
  auto isOther = [&](const Kept::By &by) {
    return by.division == me.division &&
           (by.team != me.team || by.copy != me.copy);
  };
  for (auto [by, what] : {std::pair(kept.put, "puts"),
                          std::pair(puts ? kept.seen : Kept::By(), "gets")})
    if (isOther(by)) {
      InFlightDiagnostic diag = context.errorAt(op)
                                << "uses slot " << number
                                << " of a shelf while team @"
                                << by.team.getSymName();
      if (by.team.getCopies() > 1)
        diag << " " << by.copy;
      diag << " may use it: they work at the same time";
      diag.attachNote(by.op->getLoc()) << "the other team " << what << " here";
      return failure();
    }
  (puts ? kept.put : kept.seen) = me;
  return &kept;
}

LogicalResult tile::execute(TileContext &context, ShelfPutOp op) {
  if (auto shelf = op.getShelf().getDefiningOp<ShelfOp>();
      shelf && shelf->hasAttr(kTradedAttr))
    return context.errorAt(op)
           << "trades with another block, and blocks run one after the other "
              "here; kvbuf-run --device=emulator runs those of a cluster "
              "together";
  FailureOr<Kept *> kept =
      slotOf(context, op, op.getShelf(), op.getSlot(), true);
  if (failed(kept))
    return failure();
  (*kept)->values = llvm::map_to_vector(
      op.getValues(), [&](Value value) { return context.shareMatrix(value); });
  return success();
}

LogicalResult tile::execute(TileContext &context, ShelfGetOp op) {
  FailureOr<Kept *> kept =
      slotOf(context, op, op.getShelf(), op.getSlot(), false);
  if (failed(kept))
    return failure();
  if ((*kept)->values.empty())
    return context.errorAt(op) << "gets what nobody has put";
  for (auto [value, matrix] : llvm::zip_equal(op.getValues(), (*kept)->values))
    context.setMatrix(value, matrix);
  return success();
}
