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

#include "BarrierNumbers.h"
#include "KernelSignature.h"
#include "LaneRoles.h"
#include "Lanes.h"

namespace kvbuf {

/// cap * tanh(s * scale / cap) / s as a polynomial of s^2, for s of magnitudes
/// up to the bound.
struct SoftcapNearZero {
  double bound;
  /// Lowest power first.
  llvm::SmallVector<double> coefficients;
};

class PartialJoin;

/// Lowers one kernel.
class LaneLowering : public Lanes {
public:
  /// `alignment`: bytes that addresses and strides of 16-bit tensors are
  /// multiples of.
  LaneLowering(mlir::gpu::GPUFuncOp kernel, const TargetInfo &target,
               ScheduleAttr schedule, Machine &machine,
               int64_t alignment = kTensorAlignment);

  /// Replaces the kernel; errors are reported at the op that causes them.
  mlir::LogicalResult run();

  /// Lowers an op of our own: what its model calls (LaneModels.cpp).
  template <typename OpTy> mlir::LogicalResult lowerOwn(OpTy op) {
    if constexpr (std::is_void_v<decltype(lower(op))>) {
      lower(op);
      return mlir::success();
    } else {
      return lower(op);
    }
  }
  /// Whether an op of roles stands where it can be lowered.
  mlir::LogicalResult checkRoles(mlir::Operation *op);
  /// An error for an op that takes all the threads of the block, of which roles
  /// have a part.
  mlir::LogicalResult checkNoRoles(mlir::Operation *op);

  KernelSignature signature;
  BarrierNumbers barriers;
  LaneRoles roles;
  /// Where each tile lies in its tensor.
  llvm::DenseMap<mlir::Value, TileCoordinates> coordinates;

private:
  mlir::LogicalResult lowerBlock(mlir::Block &block);
  mlir::LogicalResult lowerOp(mlir::Operation *op);
  mlir::LogicalResult lower(mlir::scf::ForOp op);
  mlir::LogicalResult lower(mlir::scf::IfOp op);
  mlir::LogicalResult lower(mlir::scf::WhileOp op);
  /// Arithmetic on indices, done in 32 bits.
  void lowerNarrow(mlir::Operation *op);
  /// In kernels with roles, indices pass through loops and branches as i32: the
  /// types of a value's lanes there, values on their way in, and those that
  /// come out.
  void narrowTypes(mlir::Type type, llvm::SmallVectorImpl<mlir::Type> &types);
  Values narrowed(Values values);
  void setWidened(mlir::Value value, mlir::ValueRange lanes);

  // Movement (LaneMovement.cpp).
  mlir::Value lookup(mlir::Value table, mlir::Value entry);
  mlir::Value lookupWithin(mlir::Value lengths, mlir::Value entry,
                           mlir::Value least, mlir::Value most);
  /// A tile as a buffer reads it: from the first column of a block that the
  /// buffer takes.
  TileValues sourceOf(mlir::TypedValue<TileType> tile, KVBufferAttr params,
                      int64_t block = 0);
  mlir::LogicalResult lower(MakeCacheOp op);
  void lower(CacheNumKeysOp op);
  void lower(CacheTileOp op);
  /// Whether lanes have the pages of a cache's tile looked up before it is
  /// loaded (`TileValues::pages`).
  bool looksUpByLane(TileType type);
  /// The numbers of the pages that a tile's rows lie in, by lanes
  /// (`TileValues::pages`).
  mlir::Value pagesOfRows(CacheTileOp op, const TileValues &tile,
                          mlir::Value tableBase);
  void lower(CacheScaleOp op);
  void lower(DramTileOp op);
  void lower(KeyRangeOp op);
  void lower(AllocOp op);
  void describeLds(KVBufferAttr params, int64_t offset);
  void lower(DramLoadOp op);
  void lower(LdsStageOp op);
  mlir::LogicalResult lower(FragmentLoadOp op);
  void lower(StagedViewOp op);
  mlir::LogicalResult lower(FragmentStoreOp op);
  void emitStore(FragmentStoreOp op, const TileValues &tile);
  /// The same with stores of at most `bytes` bytes, which its rows begin at
  /// multiples of; `checkCols`: element by element, those of valid columns.
  void emitStore(FragmentStoreOp op, const TileValues &tile, int64_t bytes,
                 bool checkCols = false);
  mlir::LogicalResult lower(TileFragmentOp op);
  void lower(RowStoreOp op);
  mlir::LogicalResult lower(mlir::memref::LoadOp op);
  mlir::LogicalResult lower(mlir::memref::DimOp op);

  // New tokens that the block reads (LaneAppend.cpp).
  mlir::LogicalResult lower(AppendTokensOp op);
  /// A cache among the arguments as ops on caches by lanes take it.
  mlir::Value cacheByLanes(mlir::Value argument);

  // Work that blocks share (LaneWork.cpp), and what it comes to
  // (LanePartials.cpp, LaneJoin.cpp).
  void lower(LaunchValueOp op);
  void lower(ArriveLastOp op);
  mlir::LogicalResult lower(ShareWorkOp op);
  mlir::LogicalResult lower(PartialStoreOp op);
  mlir::LogicalResult lower(PartialLoadOp op);
  mlir::LogicalResult lower(PartialJoinOp op);
  void lower(SoftmaxMergeOp op);
  void lower(SoftmaxSinkOp op);
  friend class PartialJoin;
  /// The lane values of a softmax over some of the keys.
  struct SoftmaxState {
    Values acc, max, sum;
  };
  /// Joins some of them, in their order; `scale` as in
  /// `kvbuffer.softmax_merge`. One without an accumulator has one of 0, and is
  /// not the first.
  SoftmaxState merge(FragmentType type, llvm::ArrayRef<SoftmaxState> states,
                     const llvm::APFloat &scale);

  // Warp roles (LaneRoles.cpp).
  mlir::LogicalResult lower(WarpRolesOp op);
  void lower(RingOp op);
  mlir::LogicalResult lower(RingLoadOp op);
  void lower(RingWaitOp op);
  void lower(RingReleaseOp op);
  void lower(MailboxOp op);
  void lower(MailboxPostOp op);
  void lower(MailboxTakeOp op);
  void lower(NextTileOp op);
  void lower(LaunchSizeOp op);
  mlir::LogicalResult lower(FindTileOp op);
  mlir::LogicalResult lower(NumberTilesOp op);
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
  /// Ends a role: says so to all blocks of the cluster. Consumers wait until
  /// everybody has, as their block's LDS must outlive what others do there.
  void leaveCluster(bool producers);
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
  /// Where entries of fragments lie in LDS.
  struct Entries {
    int64_t slots = 0;
    /// Threads of each team, and words that a lane has in an entry.
    int64_t threads = 0, words = 0;
    /// Byte in LDS of slot 0.
    int64_t offset = 0;
    /// Bytes of a slot.
    int64_t bytes() const;
  };
  /// Those of a queue, and how its teams meet.
  struct Queue : Entries {
    int64_t takers = 0;
    /// Its first named barrier: two a slot, *full* and *empty*, for the first
    /// team that takes, then for the next; 0: all meet at the block's.
    int64_t barriers = 0;
  };
  llvm::DenseMap<mlir::Value, Queue> queues;
  llvm::DenseMap<mlir::Value, Entries> shelves;
  /// Lays out entries of fragments of `types`, spread as team `like` spreads
  /// them, from the first free byte of LDS on; errors at `op`.
  mlir::LogicalResult layOut(mlir::Operation *op, Entries &entries,
                             llvm::ArrayRef<mlir::Type> types, TeamOp like);
  /// Stores a lane's values of fragments; loads them as words, and sets the
  /// fragments to them.
  void storeEntry(const Entries &entries, mlir::Value slot,
                  mlir::ValueRange fragments);
  Values loadEntry(const Entries &entries, mlir::Value slot);
  void setEntry(mlir::ValueRange fragments, llvm::ArrayRef<mlir::Value> words);
  /// The slot of entry `number`, i32.
  mlir::Value slotOf(const Queue &queue, mlir::Value number);
  /// Arrives at a slot's barrier, or waits there.
  void meetAt(const Queue &queue, int64_t taker, mlir::Value slot, bool full,
              bool wait);
  /// Meets the whole block from within a team.
  void meetAtEntry();
  /// Which of the teams that take this is; -1 if it does not.
  static int64_t takerOf(QueueOp op, TeamOp team);

  // Soft caps (LaneSoftcap.cpp).
  void lower(SoftcapOp op);

  // Mathematics (LaneMath.cpp).
  void lower(FragmentFillOp op);
  void lower(FragmentSliceOp op);
  void lower(MmaOp op);
  mlir::LogicalResult lower(FragmentConvertOp op);
  void lower(FragmentFitOp op);
  mlir::LogicalResult lower(ExchangeOp op);

  // Warps that share the columns of a fragment's rows (LaneWarps.cpp).
  void lower(RowReduceOp op);
  void lower(WarpReduceOp op);
  mlir::LogicalResult lower(MapOp op);
  void lower(FragmentScaleOp op);
  void lower(MaskOp op);
  mlir::LogicalResult lower(OnlineSoftmaxOp op);
  void lower(AnyNegativeOp op);
  /// The largest of numbers by their bits as signed integers, of which machines
  /// may take three at a time: so also as numbers, unless all are negative.
  mlir::Value largestOfBits(unsigned chains,
                            mlir::ArrayRef<mlir::Value> values);
  void lower(RescaleOp op);
  void lower(SoftmaxFinishOp op);

  // The softmax in two parts, and turns (LaneSoftmax.cpp).
  void lower(RaiseMaxOp op);
  void lower(ApplyRaiseOp op);
  void lower(SoftmaxHeadOp op);
  void lower(CarryExcessOp op);
  mlir::LogicalResult lower(SoftmaxTailOp op);
  void lower(MeetOp op);
  void lower(StaggerOp op);
  /// The lane's elements of an accumulator of this type, by row.
  llvm::SmallVector<Values> valuesByRow(FragmentType type,
                                        llvm::ArrayRef<mlir::Value> vectors);

  /// Folds values with one or two chains: two overlap latencies, one saves
  /// registers.
  static mlir::Value
  fold(unsigned count, llvm::ArrayRef<mlir::Value> values,
       llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> fn);
  /// Chains in which a row's elements are added up or compared.
  unsigned foldChains(FragmentType scores);
  mlir::Value exp2(mlir::Value value);
  /// 1 / x by the approximate instruction.
  mlir::Value reciprocal(mlir::Value x);
  /// Scores, as a soft cap of any size makes them.
  Values capAnywhere(SoftcapOp op, mlir::ArrayRef<mlir::Value> scores);
  /// The same by a polynomial, for scores near zero; its coefficients, lowest
  /// power first.
  Values capNearZero(mlir::ArrayRef<double> coefficients,
                     mlir::ArrayRef<mlir::Value> scores);
  /// The lane's largest score by magnitude.
  mlir::Value largestMagnitude(mlir::ArrayRef<mlir::Value> scores);
  /// By what a score is multiplied to be capped: a polynomial of its square, of
  /// these coefficients, lowest power first.
  mlir::Value capFactor(mlir::ArrayRef<mlir::Value> coefficients,
                        mlir::Value score);
  /// The softmax that alone takes what the op caps, and may cap it by itself;
  /// null if there is none.
  OnlineSoftmaxOp softmaxThatCaps(SoftcapOp op) const;
  /// Caps scores, of which none of the lane is farther from zero than
  /// `largest`, by `near` or as those of any size: a branch of the warp.
  Values capByBranch(SoftcapOp op, const SoftcapNearZero &near,
                     mlir::ArrayRef<mlir::Value> scores, mlir::Value largest);
  /// Leaves scores that `near` can cap to the softmax, for which that is part
  /// of the exponent; a branch of the warp caps others, by `wider` or as those
  /// of any size. So most tiles pass an empty branch.
  void leaveCapTo(OnlineSoftmaxOp softmax, SoftcapOp op,
                  const SoftcapNearZero &near, const SoftcapNearZero &wider);
  /// Of scores that are still to be capped: the largest of each of a lane's
  /// rows, and the coefficients of `capFactor`, which here gives what their
  /// exponents are in base 2.
  struct CapInSoftmax {
    Values maxima, coefficients;
  };
  llvm::DenseMap<mlir::Value, CapInSoftmax> capsInSoftmax;
  /// What a softmax makes of scores.
  struct SoftmaxValues {
    /// Accumulators, not yet operands: what a product in flight reads must not
    /// be defined in a branch.
    Values weights, max, sum, rescale;
  };
  SoftmaxValues softmax(OnlineSoftmaxOp op, mlir::ArrayRef<mlir::Value> scores);
  /// What rounding to an operand's element type adds to a weight, an f32.
  mlir::Value roundingOf(mlir::Value weight, mlir::Type operand);
  /// What rounding adds to the weight of a row's largest score: 2 to the power
  /// of what the product of `max` and `scale`, in base 2, loses by its own
  /// rounding.
  mlir::Value largestExcess(mlir::Value max, mlir::Value scale,
                            mlir::Type operand);
  /// Accumulator elements as words of operand a; errors if lanes would have to
  /// exchange data.
  mlir::LogicalResult toOperand(mlir::Operation *op, FragmentType from,
                                FragmentType type,
                                llvm::ArrayRef<mlir::Value> acc, Values &words);

  /// Whether a loop's argument is a softmax's running sum that stays in LDS.
  bool staysInLds(mlir::scf::ForOp loop, unsigned index);
};

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANELOWERING_H
