//===- LaneLowering.h - From tiles to lanes ---------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Rewrites a scheduled kernel into per-lane code.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANELOWERING_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANELOWERING_H

#include "KernelSignature.h"
#include "LaneQueues.h"
#include "LaneRoles.h"
#include "LaneSoftcap.h"
#include "Lanes.h"

namespace kvbuf {

/// Lowers one kernel: asks each op for its code, and holds what is found out
/// about the kernel on the way, a part for each thing.
class LaneLowering : public Lanes {
public:
  /// See `Lanes`.
  LaneLowering(mlir::gpu::GPUFuncOp kernel, const TargetInfo &target,
               ScheduleAttr schedule, Machine &machine, int64_t alignment);

  /// Replaces the kernel; errors are reported at the op that causes them.
  mlir::LogicalResult run();

  /// Lowers the ops of a block but its terminator, whose operands then have
  /// their lanes.
  mlir::LogicalResult lowerBlock(mlir::Block &block);
  /// Whether an op of rings and their teams stands where it can be lowered.
  mlir::LogicalResult checkRoles(mlir::Operation *op);
  /// An error for an op that copies by all threads, beside rings.
  mlir::LogicalResult checkNoRoles(mlir::Operation *op);

  /// What the kernel is launched with, and what it knows by that.
  KernelSignature signature;
  /// Of a kernel with rings: their teams, slots and clusters.
  LaneRoles roles;
  /// What the queues and shelves of teams take.
  LaneQueues queues;
  /// Scores that softmaxes are to cap.
  SoftcapsInSoftmax softcaps;
  /// Where each tile lies in its tensor.
  llvm::DenseMap<mlir::Value, TileCoordinates> coordinates;

  // Ops whose lowering is a member.

  // Teams that rings join (LaneRoles.cpp).
  /// What comes before such teams: their rings' barriers.
  mlir::LogicalResult startRings(TeamsOp op);
  /// One of them, but for its place among the warps.
  mlir::LogicalResult lowerRingTeam(TeamOp op, int64_t firstWarp);
  /// Begins a team that moves: perhaps one lane of it goes on.
  mlir::LogicalResult beginMover(TeamOp op);
  /// Begins a team whose warps may multiply in groups.
  mlir::LogicalResult beginGroups(TeamOp op, int64_t firstWarp);
  /// The registers that each lane has when the kernel starts.
  int64_t registerShare() const;
  /// Whether the block has the registers that teams ask for, and what follows
  /// can do without them.
  mlir::LogicalResult checkRegisters(TeamsOp op);
  /// Which of a team that moves have code, and how many threads these are.
  Movers moversOf(TeamOp op);
  int64_t moverThreads(TeamOp op);
  /// Whether a slot is empty after as many releases as its teams have groups.
  mlir::LogicalResult checkReleases(TeamChannelInterface channel,
                                    int64_t releases);
  mlir::LogicalResult lower(RingOp op);
  mlir::LogicalResult lower(RingLoadOp op);
  void lower(RingWaitOp op);
  void lower(RingReleaseOp op);
  mlir::LogicalResult lower(MailboxOp op);
  void lower(MailboxPostOp op);
  void lower(MailboxTakeOp op);
  void lower(NextTileOp op);
  mlir::LogicalResult lower(MmaStartOp op);
  void lower(MmaWaitOp op);
  void lower(TurnWaitOp op);
  void lower(TurnPassOp op);
  /// The slot of a filling and the parity of the slot's phases; i32.
  struct Filling {
    mlir::Value slot, parity;
  };
  Filling filling(mlir::Value fill, int64_t stages);
  /// The byte offset of a slot's full or empty barrier.
  mlir::Value fullBarrier(const RingValues &ring, const Filling &at);
  mlir::Value emptyBarrier(const RingValues &ring, const Filling &at);
  RingValues ringValues(mlir::Value ring, int64_t stages);
  RingValues mailboxValues(mlir::Value box);
  /// Every lane that gets here arrives at the barrier at this place in each
  /// block of the cluster.
  void emitClusterArrivals(mlir::Value barrier);
  /// Ends a team: says so to all blocks of the cluster. One that does not move
  /// waits until everybody has, as the block's LDS must outlive what others do
  /// there.
  void leaveCluster(bool moves);
  /// One lane of a warp releases for each block of the cluster where `shared`,
  /// else one for the own.
  void emitRelease(mlir::Value barrier, bool byWarps, bool shared);

  // Teams (LaneTeams.cpp).
  mlir::LogicalResult lower(TeamsOp op);
  mlir::LogicalResult lowerTeam(TeamOp op, int64_t firstWarp);
  /// Arrives and waits of a team at its queues' barriers before its code, and
  /// after it.
  void openQueues(TeamsOp teams, TeamOp team);
  void closeQueues(TeamsOp teams, TeamOp team);

  // Queues and shelves of teams (LaneQueues.cpp).
  mlir::LogicalResult lower(QueueOp op);
  void lower(QueuePutOp op);
  void lower(QueueTakeOp op);
  mlir::LogicalResult lower(ShelfOp op);
  void lower(ShelfPutOp op);
  void lower(ShelfGetOp op);
  /// Lays out entries of fragments of `types`, spread as team `like` spreads
  /// them, from the first free byte of LDS on; errors at `op`.
  mlir::LogicalResult layOut(mlir::Operation *op, LaneEntries &entries,
                             llvm::ArrayRef<mlir::Type> types, TeamOp like);
  /// Stores a lane's values of fragments; loads them as words, and sets the
  /// fragments to them.
  void storeEntry(const LaneEntries &entries, mlir::Value slot,
                  mlir::ValueRange fragments);
  Values loadEntry(const LaneEntries &entries, mlir::Value slot);
  void setEntry(mlir::ValueRange fragments, llvm::ArrayRef<mlir::Value> words);
  /// The slot of entry `number`, i32.
  mlir::Value slotOf(const LaneQueue &queue, mlir::Value number);
  /// Arrives at a slot's barrier, or waits there.
  void meetAt(const LaneQueue &queue, int64_t taker, mlir::Value slot,
              bool full, bool wait);
  /// Meets the whole block from within a team.
  void meetAtEntry();

  // Soft caps (LaneSoftcap.cpp).
  void lower(SoftcapOp op);

  /// 1 / x by the approximate instruction.
  mlir::Value reciprocal(mlir::Value x);
  /// Scores, as a soft cap of any size makes them.
  Values capAnywhere(SoftcapOp op, mlir::ArrayRef<mlir::Value> scores);
  /// outer + gain / (exp(2 s inner) + 1) of each: with a gain of -2 cap and the
  /// cap that is capped.
  Values capElements(mlir::ArrayRef<mlir::Value> scores, double inner,
                     mlir::Value gain, mlir::Value outer);
  /// Capped by a polynomial, for scores near zero; its coefficients, lowest
  /// power first.
  Values capNearZero(mlir::ArrayRef<double> coefficients,
                     mlir::ArrayRef<mlir::Value> scores);
  /// The lane's largest score by magnitude.
  mlir::Value largestMagnitude(mlir::ArrayRef<mlir::Value> scores);
  /// The softmax that alone takes what the op caps, and may cap it by itself;
  /// null if there is none.
  OnlineSoftmaxOp softmaxThatCaps(SoftcapOp op) const;
  /// Caps scores, of which none of the lane is farther from zero than
  /// `largest`, by `near` or as those of any size: a branch of the warp.
  Values capByBranch(SoftcapOp op, const SoftcapNearZero &near,
                     mlir::ArrayRef<mlir::Value> scores, mlir::Value largest);
  /// Exponents of scores whose cap is left to a softmax, by branches of the
  /// warp: by the shortest polynomial that reaches as far as the lane's scores,
  /// else by exponentials and reciprocals. `max`: the rows' old maxima.
  CappedExponents capInSoftmax(const CapInSoftmax &left,
                               OnlineSoftmaxOp softmax,
                               mlir::ArrayRef<mlir::Value> scores,
                               mlir::ArrayRef<mlir::Value> max);

private:
  mlir::LogicalResult lowerOp(mlir::Operation *op);
};

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANELOWERING_H
