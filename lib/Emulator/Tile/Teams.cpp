//===- Teams.cpp - Warps that work in teams ---------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The part of BlockRun that executes KVBufferTeamOps.td.
//
//===----------------------------------------------------------------------===//

#include "BlockRun.h"

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::emu;
using namespace kvbuf::emu::tile;

/// One team after the other, and one copy after the other: what they do at the
/// same time joins in queues and rings and, after they have ended, in memory,
/// so that each order gives the same.
LogicalResult BlockRun::runOp(TeamsOp op) {
  SmallVector<TeamOp> left(op.getBody().getOps<TeamOp>());
  while (!left.empty()) {
    TeamOp next = nextTeam(op, left);
    if (!next)
      return error(op) << "has teams that wait for each other, which cannot be "
                          "executed one after the other";
    llvm::erase(left, next);
    for (int64_t i = 0; i < int64_t(next.getCopies()); ++i) {
      Lds ofTeam;
      own = &ofTeam;
      team = next;
      copy = i;
      if (BlockArgument index = next.getIndex())
        set(index, i);
      if (failed(runBlock(next.getBody().front())) ||
          failed(finishProducts()) ||
          failed(
              ofTeam.finish([&](Operation *at) { return error(at); }, "team")))
        return failure();
    }
  }
  own = &lds;
  team = nullptr;
  for (QueueOp queue : op.getQueues()) {
    Queue &its = queues[queue.getQueue()];
    for (Attribute name : queue.getTo()) {
      StringRef taker = cast<FlatSymbolRefAttr>(name).getValue();
      if (its.taken[taker] != int64_t(its.entries.size()))
        return error(queue)
               << "has " << its.entries.size() << " entries, of which @"
               << taker << " takes " << its.taken[taker];
    }
    its.entries.clear();
    its.taken.clear();
  }
  ++division;
  // The block meets.
  lds.meet();
  ++report.barriers;
  return success();
}

TeamOp BlockRun::nextTeam(TeamsOp op, ArrayRef<TeamOp> left) {
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

LogicalResult BlockRun::runOp(QueueOp op) {
  queues[op.getQueue()].op = op;
  set(op.getQueue(), ChannelRef{});
  return success();
}

LogicalResult BlockRun::runOp(QueuePutOp op) {
  Queue &queue = queues[op.getQueue()];
  int64_t number = integer(op.getNumber());
  if (number != int64_t(queue.entries.size()))
    return error(op) << "puts entry " << number << "; expected entry "
                     << queue.entries.size() << ", the next one";
  queue.entries.push_back(llvm::map_to_vector(
      op.getValues(), [&](Value value) { return get<MatrixRef>(value); }));
  return success();
}

LogicalResult BlockRun::runOp(QueueTakeOp op) {
  Queue &queue = queues[op.getQueue()];
  int64_t number = integer(op.getNumber());
  int64_t &taken = queue.taken[TeamOp(team).getSymName()];
  if (number != taken)
    return error(op) << "takes entry " << number << "; expected entry " << taken
                     << ", the next one";
  if (taken == int64_t(queue.entries.size()))
    return error(op) << "takes entry " << number << ", but @"
                     << queue.op.getFrom() << " puts no more than "
                     << queue.entries.size();
  for (auto [value, matrix] :
       llvm::zip_equal(op.getValues(), queue.entries[taken]))
    set(value, matrix);
  ++taken;
  return success();
}

LogicalResult BlockRun::runOp(ShelfOp op) {
  shelves[op.getShelf()].resize(op.getSlots());
  set(op.getShelf(), ChannelRef{});
  return success();
}

FailureOr<BlockRun::Kept *> BlockRun::slotOf(Operation *op, Value shelf,
                                             Value slot, bool puts) {
  std::vector<Kept> &slots = shelves[shelf];
  int64_t number = integer(slot);
  if (number < 0 || number >= int64_t(slots.size())) {
    error(op) << "uses slot " << number << " of a shelf of " << slots.size();
    return failure();
  }
  Kept &kept = slots[number];
  auto isOther = [&](const Kept::By &by) {
    return by.division == division && (by.team != team || by.copy != copy);
  };
  for (auto [by, what] : {std::pair(kept.put, "puts"),
                          std::pair(puts ? kept.seen : Kept::By(), "gets")})
    if (isOther(by)) {
      InFlightDiagnostic diag = error(op) << "uses slot " << number
                                          << " of a shelf while team @"
                                          << by.team.getSymName();
      if (by.team.getCopies() > 1)
        diag << " " << by.copy;
      diag << " may use it: they work at the same time";
      diag.attachNote(by.op->getLoc()) << "the other team " << what << " here";
      return failure();
    }
  (puts ? kept.put : kept.seen) = {op, team, copy, division};
  return &kept;
}

LogicalResult BlockRun::runOp(ShelfPutOp op) {
  FailureOr<Kept *> kept = slotOf(op, op.getShelf(), op.getSlot(), true);
  if (failed(kept))
    return failure();
  (*kept)->values = llvm::map_to_vector(
      op.getValues(), [&](Value value) { return get<MatrixRef>(value); });
  return success();
}

LogicalResult BlockRun::runOp(ShelfGetOp op) {
  FailureOr<Kept *> kept = slotOf(op, op.getShelf(), op.getSlot(), false);
  if (failed(kept))
    return failure();
  if ((*kept)->values.empty())
    return error(op) << "gets what nobody has put";
  for (auto [value, matrix] : llvm::zip_equal(op.getValues(), (*kept)->values))
    set(value, matrix);
  return success();
}
