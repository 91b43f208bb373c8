//===- LaneLowering.h - From tiles to lanes ---------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Rewrites a scheduled kernel into per-lane code. One block-level value
/// becomes several lane values:
///
/// | type | lane values |
/// |---|---|
/// | fragment a, b | words, `vector<w x T>`, atom by atom |
/// | fragment acc | one `vector<c x T>` an atom |
/// | fragment row | one f32 for each row that the lane holds |
/// | tile | see `TileValues` |
/// | buffer, staged | the byte offset in shared memory, i32 |
/// | token | the same, and the machine's own token |
/// | cache, tensor argument | see `TensorArg` |
/// | ring, mailbox | see `RingValues` |
/// | pending | as fragment acc |
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANELOWERING_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANELOWERING_H

#include "LaneLayouts.h"
#include "Machine.h"
#include "kvbuffer/Conversion/LaneLoweringInterface.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/StringMap.h"
#include <memory>

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
class LaneLowering : public LaneContext {
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

  // What an op's lowering is offered.

  mlir::ImplicitLocOpBuilder &builder() override { return b; }
  const TargetInfo &chip() const override { return target; }
  Values lanesOf(mlir::Value value) override;
  void setLanes(mlir::Value value, mlir::ValueRange lanes) override;
  Values mapElements(mlir::TypedValue<FragmentType> fragment,
                     llvm::function_ref<mlir::Value(mlir::Value element,
                                                    const LaneElement &at)>
                         fn) override;
  mlir::Value laneRow(FragmentType type) override;
  mlir::Value laneCol(FragmentType type) override;
  mlir::Value reduceRow(FragmentType type, mlir::Value value,
                        bool isMax) override;
  /// Which part of a fragment's rows this warp has, i32.
  mlir::Value rowPart(const FragmentLayout &layout);
  /// This warp's place along the columns of a layout's grid of warps, i32.
  mlir::Value gridCol(const FragmentLayout &layout);
  /// A column in a warp's part of a fragment as one of the fragment.
  mlir::Value addColPart(const FragmentLayout &layout, FragmentType type,
                         mlir::Value col);

  // For machines and emitters.

  mlir::ImplicitLocOpBuilder b;
  const TargetInfo &target;
  /// By which fragments are spread: the kernel's, or the team's own.
  ScheduleAttr schedule;
  /// Bytes that addresses and strides of 16-bit tensors are multiples of.
  const int64_t alignment;
  FragmentLayouts layouts;
  /// Thread in the block, lane in the warp, warp in the block; i32. Among
  /// producers, thread and warp count from the first producer; in a team, from
  /// its first warp.
  mlir::Value thread, lane, warp;
  /// Warps of the role whose code is being lowered; the block's outside.
  int64_t roleWarps = 0;
  /// The team whose code is being lowered, with what its warps know of it.
  struct Team {
    TeamOp op;
    /// The copy's number, i32.
    mlir::Value copy;
    /// The named barrier at which its warps meet, i32; null for one warp.
    mlir::Value barrier;
  };
  /// Null outside of teams, where all warps of the block work together.
  const Team *team = nullptr;

  mlir::Value index(int64_t value);
  mlir::Value i32(int64_t value);
  mlir::Value f32(double value);
  mlir::Value toI32(mlir::Value index);
  mlir::Value toIndex(mlir::Value i32);
  /// The lane value of a scalar of the tile program.
  mlir::Value lookupScalar(mlir::Value value) { return map[value].front(); }
  /// A tensor in DRAM as one line of elements.
  mlir::Value flat(mlir::Value data);
  /// Whether the rows of a tile of 16-bit elements begin at multiples of
  /// `bytes`; i1, the same for all threads.
  mlir::Value rowsAligned(const TileValues &tile, int64_t bytes);
  /// Shared memory as one line of elements of a type.
  mlir::Value shared(mlir::Type element);
  /// The offset of row `row` (an i32) of a tile of a tensor, in elements.
  mlir::Value rowLine(TileType type, const TileValues &tile, mlir::Value row);
  /// The tile that a buffer's slot is, in LDS.
  SharedTile sharedTile(KVBufferAttr params) const;
  /// Threads that copy a tile together, in kernels without roles.
  int64_t copyThreads() const { return schedule.getWarps() * target.waveSize; }
  /// Whether lanes have the pages of a cache's tile looked up before it is
  /// loaded (`TileValues::pages`).
  bool looksUpByLane(TileType type);
  /// What every slot's byte offset is a multiple of.
  int64_t slotAlignment(KVBufferAttr params) const;
  /// The shared memory block as an address, i32; for machines with roles.
  mlir::Value ldsAddress;
  /// Warps that multiply together, and their groups among the consumers.
  int64_t groupThreads() const {
    return int64_t(target.warpsPerMatrixGroup) * target.waveSize;
  }
  int64_t groups() const {
    return schedule.getWarps() / target.warpsPerMatrixGroup;
  }
  /// The lane's group, whether it is the group's first, and whether it arrives
  /// for the group at one of the cluster's blocks; consumers only.
  mlir::Value group, firstOfGroup, arrivesInCluster;
  /// Blocks of a cluster, and the number of this one in its own; null where
  /// that is 1.
  int64_t cluster() const { return clusterSize; }
  mlir::Value rank;
  /// Whether this is the one thread that acts for all the producers.
  mlir::Value firstOfProducers;
  /// Which producers have code: the most that a load takes.
  Movers movers = Movers::Lane;
  /// Whether an op is the producers', of whom perhaps one lane runs.
  static bool isOfProducers(mlir::Operation *op);
  /// Goes on where `condition` holds.
  void enter(mlir::Value condition);
  /// Numbers of the block's named barriers, as many as `count` in a row.
  int64_t namedBarriers(int64_t count = 1);
  /// The kernel parameter of a tensor map.
  mlir::Value tensorMap(const TensorMapRequest &request) const;
  /// What a tile's coordinates say of its edges; the rest is empty.
  TileCoordinates tileEdges(mlir::Value tile) const;
  /// Whether a load needs threads to copy: an engine's boxes may read rows that
  /// must read as zero.
  bool needsCopies(RingLoadOp op) const;
  /// Sets the insertion point before the consumers' code, for what all of
  /// it shares.
  void setInsertionPointToConsumersStart();

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
  void laneTypes(mlir::Type type, llvm::SmallVectorImpl<mlir::Type> &types);

  // Kernel parameters (LaneArguments.cpp).
  mlir::LogicalResult expandArguments();
  void finishKernel();
  /// A tensor map's entry among the manifest's arguments.
  mlir::DictionaryAttr describeTensorMap(const TensorMapRequest &request);
  /// The size of the launch that an op asks for, by its name in the manifest:
  /// the room of a cache, the rows of ragged queries; empty if it needs none.
  llvm::StringRef sizeNeededBy(mlir::Operation *op);
  /// Its value: a parameter, or the number that the types fix.
  mlir::Value launchSize(llvm::StringRef name);

  // Movement (LaneMovement.cpp).
  mlir::Value lookup(mlir::Value table, mlir::Value entry);
  mlir::Value lookupWithin(mlir::Value lengths, mlir::Value entry,
                           mlir::Value least, mlir::Value most);
  /// A tile as a buffer reads it: from the first column of a block that the
  /// buffer takes.
  TileValues sourceOf(mlir::TypedValue<TileType> tile, KVBufferAttr params,
                      int64_t block = 0);
  mlir::LogicalResult lower(MakeCacheOp op);
  /// The size that an op asks for of its cache.
  mlir::Value roomOf(mlir::Value cache, mlir::Operation *op);
  void lower(CacheNumKeysOp op);
  void lower(CacheTileOp op);
  /// The numbers of the pages that a tile's rows lie in, by lanes
  /// (`TileValues::pages`).
  mlir::Value pagesOfRows(CacheTileOp op, const TileValues &tile,
                          mlir::Value tableBase);
  void lower(CacheScaleOp op);
  void lower(DramTileOp op);
  /// Whether a tile's `valid` rows or columns end where the tensor does, so
  /// that what is not valid does not exist: `valid` is the size of dimension
  /// `dimension`, by the names of shapes, less the tile's index there.
  bool endsWithTensor(DramTileOp op, mlir::Value valid,
                      int64_t dimension) const;
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
  /// Element offset of the matrix or element of a tensor at `indices`.
  mlir::Value offsetOf(mlir::Value tensor, mlir::OperandRange indices);
  /// Whether this lane is the first of those that share a row.
  mlir::Value firstOfRow(const FragmentLayout &layout);
  /// The value of an expression over sizes, by the parameter that has it.
  llvm::SmallVector<std::pair<mlir::Attribute, mlir::Value>> launchValues;

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
  /// Reserves LDS for the barriers of `stages` slots; `releases` arrivals
  /// empty one, `fills` fill it. Returns the byte offset.
  int64_t allocBarriers(int64_t stages, int64_t releases, int64_t fills = 1);
  /// The same for one barrier, and for room only.
  int64_t allocBarrier(int64_t arrivals);
  int64_t reserveBarriers(int64_t count);
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
  /// The index of the 32-bit word at byte `base` + `offset` of LDS.
  mlir::Value wordIndex(mlir::Value base, mlir::Value offset);
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
  /// Combines values with those of the lanes of the same number in the warps
  /// that share a layout's columns, in the order of the warps. `values`: f32,
  /// as many in each lane. All warps of the block, or of the team, get to `op`.
  Values reduceWarps(mlir::Operation *op, const FragmentLayout &layout,
                     llvm::ArrayRef<mlir::Value> values, bool isMax);
  /// Moves a fragment through LDS into another layout, also of other warps;
  /// `elements` and what it returns: a lane's elements, atom by atom. Nothing
  /// where operand b is transposed.
  std::optional<Values> exchangeByLds(mlir::Operation *op, FragmentType from,
                                      FragmentType to,
                                      llvm::ArrayRef<mlir::Value> elements);
  /// LDS of `bytes` bytes for the block, or for each copy of a team; its byte.
  mlir::Value scratch(int64_t bytes);
  /// Meets before LDS that was read is written again: the next time that a loop
  /// comes to `op`.
  void meetInLoops(mlir::Operation *op);
  /// The op of the tile program that is being lowered.
  mlir::Operation *current = nullptr;
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

  /// Applies `fn` to each element (a register of an atom) of each vector.
  Values mapElements(
      llvm::ArrayRef<mlir::Value> vectors,
      llvm::function_ref<mlir::Value(mlir::Value, unsigned atom, int64_t reg)>
          fn);
  mlir::Value element(mlir::Value vector, int64_t i);
  mlir::Value reduceLanes(const FragmentLayout &layout, mlir::Value value,
                          bool isMax);
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

  const Values &get(mlir::Value value) { return map[value]; }

  // Row values that live in LDS, one slot a thread (schedule `sums_in_lds`).

  /// Whether a loop's argument is a softmax's running sum that stays in LDS.
  bool staysInLds(mlir::scf::ForOp loop, unsigned index);
  /// The lane's row values, loaded here where they live in LDS.
  Values rowValues(mlir::Value value);
  /// Stores row values into the slot at `offset` bytes.
  void storeRows(llvm::ArrayRef<mlir::Value> rows, int64_t offset);
  /// The address of the lane's slot, as an index of f32 elements.
  mlir::Value rowSlot(int64_t offset, int64_t rows);
  /// Values in LDS: byte offset of the first thread's slot.
  llvm::DenseMap<mlir::Value, int64_t> inLds;

  mlir::Value single(mlir::Value value) { return map[value].front(); }
  void set(mlir::Value value, Values values) { map[value] = std::move(values); }

  mlir::gpu::GPUFuncOp kernel, lowered;
  /// The kernel's schedule, the block's warps (of all its teams; without
  /// producers) and the thread in the block, also in a team.
  const ScheduleAttr blockSchedule;
  int64_t blockWarps;
  mlir::Value blockThread;
  Machine &machine;
  /// What kernels with roles need of it.
  WarpRoles &warpRoles() { return *machine.roles(); }
  llvm::DenseMap<mlir::Value, Values> map;
  llvm::DenseMap<mlir::Value, TensorArg> tensors;
  llvm::SmallVector<mlir::Attribute> parameters, tensorList, ldsList;
  llvm::SmallVector<mlir::Type> parameterTypes;
  /// Sizes of the manifest that the tensors' types fix.
  llvm::StringMap<int64_t> fixedSizes;
  int64_t ldsBytes = 0;
  /// Columns of the accumulator that a softmax ends, in kernels with roles.
  int64_t accumulatorCols = 0;
  /// Where each tile lies in its tensor.
  llvm::DenseMap<mlir::Value, TileCoordinates> coordinates;
  /// Tensor maps among the parameters.
  llvm::SmallVector<std::pair<TensorMapRequest, mlir::Value>> tensorMaps;
  /// Sizes of the launch among the parameters.
  llvm::StringMap<mlir::Value> launchSizes;
  /// The counter among the parameters, if the kernel takes tiles from one.
  mlir::Value counter;
  /// All barriers in LDS, and the rest of the block that they are cut from.
  llvm::SmallVector<LdsBarrier> ldsBarriers;
  int64_t barrierNext = 0, barrierEnd = 0;
  /// The next free named barrier; 0 is the block's.
  int64_t nextNamedBarrier = 1;
  int64_t clusterSize = 1;
  /// The barrier of a cluster's end.
  int64_t endBarrier = 0;
  /// First of the groups' barriers for turns; 0 before there are any.
  int64_t turnBarriers = 0;
  /// The same for where groups ask whether a value is negative.
  int64_t signBarriers = 0;
  /// The block's threads, and whether one producer thread does all the work.
  int64_t blockThreads() const {
    int64_t producers = machine.hasRoles() ? blockSchedule.getProducers() : 0;
    return (blockWarps + producers) * target.waveSize;
  }
  /// The first op of the consumers' code.
  mlir::Operation *consumersStart = nullptr;
  /// The number of each ring's slot 0 among the slots of all rings, and how
  /// many there are so far.
  llvm::DenseMap<mlir::Value, int64_t> firstSlots;
  int64_t nextSlot = 0;
  /// Rings whose slots each warp releases, not one thread for its group.
  llvm::DenseSet<mlir::Value> releasedByWarps;
  /// Where the producers share a tile's number, and their barrier for it.
  std::optional<int64_t> numberWord;
  int64_t producerBarrier = 0;
};

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANELOWERING_H
