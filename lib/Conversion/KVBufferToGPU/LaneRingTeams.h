//===- LaneRingTeams.h - What a kernel with rings keeps ---------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANERINGTEAMS_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANERINGTEAMS_H

#include "Machine.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace kvbuf {

/// What is known of the teams of a kernel with rings while it is lowered.
struct LaneRingTeams : LaneState {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LaneRingTeams)

  // The team that multiplies.

  /// Threads that multiply together, and how many such groups the team has; 0
  /// where each warp multiplies by itself.
  int64_t groupThreads = 0;
  int64_t groups = 0;
  /// The lane's group, whether it is the group's first, and whether it arrives
  /// for the group at one of the cluster's blocks; null without groups.
  mlir::Value group, firstOfGroup, arrivesInCluster;
  /// The first op of their code, before which goes what all of it shares.
  mlir::Operation *teamStart = nullptr;
  /// First of the groups' barriers for turns; 0 before there are any.
  int64_t turnBarriers = 0;
  /// The same for where groups ask whether a value is negative.
  int64_t signBarriers = 0;

  // The team that moves.

  /// Which of its warps have code: the most that a load takes.
  Movers movers = Movers::Lane;
  /// Whether this is the one thread that acts for all of them.
  mlir::Value firstOfTeam;
  /// Whether the code that is being lowered is that of one lane.
  bool alone = false;
  /// Where its warps share a tile's number, and their barrier for it.
  std::optional<int64_t> numberWord;
  int64_t numberBarrier = 0;

  // Rings.

  /// The number of each ring's slot 0 among the slots of all rings, and how
  /// many there are so far.
  llvm::DenseMap<mlir::Value, int64_t> firstSlots;
  int64_t nextSlot = 0;
  /// How many barriers in LDS have been made ready.
  size_t readyBarriers = 0;
  /// What some warp does meanwhile, that all others wait for; null: nothing.
  mlir::Operation *whileReady = nullptr;
  /// Where in LDS, in words, so many words each lie beside the barriers, in
  /// place of these constants.
  llvm::SmallVector<std::pair<mlir::arith::ConstantIndexOp, int64_t>>
      placesOfWords;
  /// Rings whose slots each warp releases, not one thread for its group.
  llvm::DenseSet<mlir::Value> releasedByWarps;

  // Clusters.

  /// The number of this block in its own; null where it is alone.
  mlir::Value rank;
  /// The barrier of a cluster's end.
  int64_t endBarrier = 0;
};

/// Those of the kernel that is being lowered.
inline LaneRingTeams &ringsOf(LaneContext &lower) {
  return lower.ofKernel<LaneRingTeams>();
}

/// What comes before teams that rings join: their rings' barriers.
mlir::LogicalResult startRings(LaneLowering &lower, TeamsOp op);
/// Lowers one of them, but for its place among the warps.
mlir::LogicalResult lowerRingTeam(LaneLowering &lower, TeamOp op);
/// The registers that each lane has when the kernel starts.
int64_t registerShare(const Lanes &lower);
/// Whether a team has a part of a group of warps that gets registers together,
/// as do the teams of the others: all take as many, at one instruction.
bool partOfRegisterGroup(TeamOp op, int64_t group);
/// The first of `together` warps, of `all` of a team, that fill the slot of
/// this number among all rings' of a kernel.
inline int64_t fillerOf(int64_t slot, int64_t all, int64_t together) {
  return together < all ? slot % (all / together) * together : 0;
}
/// How many warps of a team that moves have code: from the first one to the
/// last one that fills a slot. A team may have more, as groups of warps get
/// registers together.
int64_t moverWarps(LaneContext &lower, TeamOp op);
/// How many threads of a team that moves have code.
int64_t moverThreads(LaneContext &lower, TeamOp op);
/// Lanes that get here arrive at the barrier at this place in each block of the
/// cluster: those for which `arrives` holds (null: all).
void emitClusterArrivals(LaneContext &lower, mlir::Value barrier,
                         mlir::Value arrives = {});

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANERINGTEAMS_H
