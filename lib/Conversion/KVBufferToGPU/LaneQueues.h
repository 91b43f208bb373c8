//===- LaneQueues.h - What queues and shelves of teams take -----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEQUEUES_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEQUEUES_H

#include "Lanes.h"
#include "llvm/ADT/DenseMap.h"

namespace kvbuf {

/// Where entries of fragments lie in LDS.
struct LaneEntries {
  /// Entries that there is room for.
  int64_t slots = 0;
  /// Threads of each team, and words that a lane has in an entry.
  int64_t threads = 0, words = 0;
  /// Byte in LDS of slot 0.
  int64_t offset = 0;
  /// Of a shelf whose slots are another block's: the byte in LDS of its first
  /// barrier, *full* of slot 0.
  std::optional<int64_t> trade;
  /// Of a shelf over the buffers: the byte in LDS of the barrier at which its
  /// teams say that they have done with these.
  std::optional<int64_t> parked;
  /// Bytes of a slot.
  int64_t bytes() const { return 4 * words * threads; }
};

/// Those of a queue, and how its teams meet.
struct LaneQueue : LaneEntries {
  /// Teams that take.
  int64_t takers = 0;
  /// Its first named barrier: two a slot, *full* and *empty*, for the first
  /// team that takes, then for the next; 0: all meet at the block's.
  int64_t barriers = 0;
  /// Where they meet by phases: the byte in LDS of its first barrier, *full* of
  /// slot 0; behind those of all slots stand the *empty* ones.
  std::optional<int64_t> phases;
};

/// The queues and shelves of a kernel's teams.
struct LaneQueues : LaneState {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LaneQueues)

  /// By the value of their op.
  llvm::DenseMap<mlir::Value, LaneQueue> queues;
  llvm::DenseMap<mlir::Value, LaneEntries> shelves;
};

/// Arrives and waits of a team at its queues' barriers before its code, and
/// after it.
void openQueues(LaneContext &lower, TeamsOp teams, TeamOp team);
void closeQueues(LaneContext &lower, TeamsOp teams, TeamOp team);

/// Lowers an op; its model calls it (LaneModels.cpp).
mlir::LogicalResult lowerOp(LaneContext &lower, QueueOp op);
void lowerOp(LaneContext &lower, QueuePutOp op);
void lowerOp(LaneContext &lower, QueueTakeOp op);
mlir::LogicalResult lowerOp(LaneContext &lower, ShelfOp op);
void lowerOp(LaneContext &lower, ShelfPutOp op);
void lowerOp(LaneContext &lower, ShelfGetOp op);

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEQUEUES_H
