//===- ScheduleStructure.cpp - What parameters choose ---------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/IR/ScheduleStructure.h"

using namespace kvbuf;

Teams kvbuf::teamsOf(const ScheduleParameters &schedule) {
  if (schedule.producers)
    return Roles{schedule.producers, schedule.producerRegisters,
                 schedule.consumerRegisters, schedule.pingPong};
  if (schedule.pingPong)
    return Halves{};
  return OneTeam{};
}

Work kvbuf::workOf(const ScheduleParameters &schedule) {
  if (schedule.splitKeys)
    return SplitKeys{schedule.splitSize, schedule.equalShares};
  // Blocks whose warps are alike end with their tile.
  if (schedule.producers && schedule.tiles != TileOrder::Grid)
    return SeveralTiles{schedule.tiles, schedule.joinTiles, schedule.qStages,
                        schedule.cluster};
  return OneTile{schedule.xcds};
}

Ahead kvbuf::aheadOf(const ScheduleParameters &schedule) {
  if (schedule.overlapProducts)
    return Ahead::Softmax;
  return schedule.overlap ? Ahead::Scores : Ahead::Loads;
}

SlotContents kvbuf::slotContents(const ScheduleParameters &schedule,
                                 Path path) {
  if (path == Path::Streaming)
    return SlotContents::Strip;
  return schedule.fullKV ? SlotContents::Tile : SlotContents::Block;
}
