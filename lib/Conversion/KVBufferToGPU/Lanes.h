//===- Lanes.h - A kernel as lane code -----------------------------*- C++
//-*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the lowering of every op needs. One block-level value becomes several
/// lane values:
///
/// | type | lane values |
/// |---|---|
/// | fragment a, b | words, `vector<w x T>`, atom by atom |
/// | fragment acc | one `vector<c x T>` an atom |
/// | fragment row | one f32 for each row that the lane holds |
/// | tile | see `TileView` |
/// | buffer, staged | the byte offset in shared memory, i32 |
/// | token | the same, and the machine's own token |
/// | cache, tensor argument | see `TensorArg` |
/// | ring, mailbox | see `RingValues` |
/// | pending | as fragment acc |
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANES_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANES_H

#include "BarrierNumbers.h"
#include "LaneLayouts.h"
#include "LdsPlan.h"
#include "Machine.h"
#include "kvbuffer/Conversion/LaneLoweringInterface.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kvbuf {

/// The team whose code is being lowered, with what its warps know of it.
struct LaneTeam {
  TeamOp op;
  /// The copy's number, i32.
  mlir::Value copy;
  /// The named barrier at which its warps meet, i32; null for one warp, and
  /// where it is made on demand.
  mlir::Value barrier;
  /// Warps of a copy.
  int64_t warps = 1;
  /// Of the barriers that are made on demand, the first copy's.
  int64_t firstBarrier = 0;
};

/// A kernel that is being lowered: where its code goes, whose code it is, which
/// lane values its values have become, and what lies in LDS.
class Lanes : public LaneContext {
public:
  /// `alignment`: bytes that addresses and strides of 16-bit tensors are
  /// multiples of.
  Lanes(mlir::gpu::GPUFuncOp kernel, const TargetInfo &target,
        ScheduleAttr schedule, Machine &machine, int64_t alignment);

  // What ops of other dialects are offered, too.

  mlir::ImplicitLocOpBuilder &builder() override { return b; }
  const TargetInfo &chip() const override { return target; }
  Values lanesOf(mlir::Value value) override { return rowValues(value); }
  void setLanes(mlir::Value value, mlir::ValueRange lanes) override {
    set(value, Values(lanes));
  }
  void laneTypes(mlir::Type type,
                 llvm::SmallVectorImpl<mlir::Type> &types) override;
  const FragmentLayout &layoutOf(FragmentType type) override {
    return layouts.of(type);
  }
  mlir::Value index(int64_t value) override;
  mlir::Value i32(int64_t value) override;
  mlir::Value f32(double value) override;
  mlir::Value toI32(mlir::Value index) override;
  mlir::Value toIndex(mlir::Value i32) override;
  Values mapElements(mlir::TypedValue<FragmentType> fragment,
                     llvm::function_ref<mlir::Value(mlir::Value element,
                                                    const LaneElement &at)>
                         fn) override;
  Values mapElements(
      llvm::ArrayRef<mlir::Value> vectors,
      llvm::function_ref<mlir::Value(mlir::Value, unsigned atom, int64_t reg)>
          fn) override;
  mlir::Value element(mlir::Value vector, int64_t i) override;
  mlir::Value laneRow(FragmentType type) override;
  mlir::Value laneCol(FragmentType type) override;
  mlir::Value reduceRow(FragmentType type, mlir::Value value,
                        bool isMax) override;
  mlir::Value reduceLanes(const FragmentLayout &layout, mlir::Value value,
                          bool isMax) override;
  Values reduceWarps(FragmentType type, llvm::ArrayRef<mlir::Value> values,
                     bool isMax) override;
  mlir::Value roundOperand(mlir::Value vector, mlir::VectorType type,
                           bool isProbability) override {
    return machine.roundOperand(*this, vector, type, isProbability);
  }
  mlir::Value addElements(mlir::Value sum, mlir::Value vector) override {
    return machine.addElements(*this, sum, vector);
  }
  mlir::Value ratio(mlir::Value x, mlir::Value y) override {
    return machine.emitRatio(*this, x, y);
  }
  mlir::Value uniform(mlir::Value value) override {
    return machine.uniform(*this, value);
  }
  bool sharesReciprocals() override { return machine.sharesReciprocals(); }
  bool branchesBesideProducts() override {
    return machine.branchesBesideProducts();
  }
  mlir::FailureOr<mlir::Value> tileElement(mlir::TypedValue<TileType> tile,
                                           mlir::Value row,
                                           mlir::Value col) override;
  mlir::Value ownThread() override { return thread; }
  int64_t ownThreads() const override {
    return team ? threads() : blockThreads();
  }
  mlir::Value laneInWarp() override { return lane; }
  mlir::Value ownWarp() override { return warp; }
  TeamOp ownTeam() const override { return team ? team->op : TeamOp(); }
  ScheduleAttr ownSchedule() const override { return schedule; }
  mlir::Value copyOfTeam() const override {
    return team ? team->copy : mlir::Value();
  }
  ScheduleAttr scheduleOfBlock() const override { return blockSchedule; }
  int64_t cluster() const override;
  int64_t tensorAlignment() const override { return alignment; }
  /// Whether the kernel is for tensors that others do not take: rows at any
  /// addresses, any strides apart.
  bool takesAnyTensor() const;
  bool hasRings() const override { return machine.hasRings(); }
  int64_t accumulatorColumns() const override { return accumulatorCols; }
  mlir::FailureOr<mlir::Value>
  stagedElement(mlir::TypedValue<StagedType> staged, mlir::Value row,
                mlir::Value col) override;
  mlir::Value ldsElements(mlir::Type type, int64_t count) override;
  mlir::Value scratch(int64_t bytes) override;
  mlir::Value shared(mlir::Type element) override;
  int64_t takeLds(int64_t bytes) override { return lds.take(bytes); }
  int64_t ldsBytes() const override { return lds.bytes(); }
  void keepInLds(mlir::Value value, mlir::ValueRange others) override;
  void storeKept(mlir::Value value, llvm::ArrayRef<mlir::Value> rows) override;
  void meet() override { machine.emitMeet(*this); }
  void meetToRead() override;
  void meetBlock() override;
  void meetInWarp() override { phases().emitWarpMeet(*this); }
  void awaitLanding() override { machine.emitLanding(*this); }
  void giveBackLds(int64_t from) override { lds.giveBack(from); }
  void coverLds(int64_t upto) override { lds.cover(upto); }
  void describeLds(LdsAttr buffer) override { lds.describe(buffer); }
  int64_t takeNamedBarriers(int64_t count = 1) override {
    return barriers.take(count);
  }
  int64_t namedBarriersTaken() const override { return barriers.taken(); }
  void meetAt(mlir::Value id, int64_t threads, bool wait) override {
    machine.namedBarriers()->emitNamedBarrier(*this, id, threads, wait);
  }
  int64_t addPhaseBarriers(int64_t stages, int64_t releases,
                           int64_t fills = 1) override {
    return lds.addBarriers(stages, releases, fills);
  }
  int64_t takeBesideBarriers(int64_t bytes) override {
    return lds.takeBesideBarriers(bytes);
  }
  void awaitPhase(mlir::Value barrier, mlir::Value parity) override {
    phases().emitBarrierWait(*this, barrier, parity);
  }
  void arriveAt(mlir::Value barrier, mlir::Value predicate) override {
    phases().emitBarrierArrive(*this, barrier, predicate);
  }
  void expectBytes(mlir::Value barrier, int64_t bytes) override {
    phases().emitExpectBytes(*this, barrier, bytes);
  }
  void publish() override { phases().emitPublish(*this); }
  void arriveInCluster(mlir::Value barrier, mlir::Value rank,
                       mlir::Value predicate) override {
    phases().emitClusterArrive(*this, barrier, rank, predicate);
  }
  void storeInCluster(mlir::Value value, mlir::Value word, mlir::Value barrier,
                      mlir::Value rank) override {
    phases().emitClusterStore(*this, value, word, barrier, rank);
  }
  void enter(mlir::Value condition) override;
  std::optional<TransposedTile> turnedTile(KVBufferAttr params) override {
    return machine.turnedTile(*this, params);
  }
  Values startLoad(DramLoadOp op, const TileView &tile,
                   mlir::Value slot) override {
    return machine.emitLoad(*this, op, tile, slot);
  }
  void awaitLoads(LdsStageOp op, llvm::ArrayRef<Values> tokens) override {
    machine.emitStage(*this, op, tokens);
  }
  mlir::LogicalResult loadFragment(FragmentLoadOp op, mlir::Value slot,
                                   Values &words) override {
    return machine.emitFragmentLoad(*this, op, slot, words);
  }
  mlir::LogicalResult loadFragment(TileFragmentOp op, const TileView &tile,
                                   Values &words) override {
    return machine.emitTileFragment(*this, op, tile, words);
  }
  bool takesWarps(RingLoadOp op) override {
    return boxes().moversOf(*this, op) != Movers::Lane;
  }
  int64_t warpsOfSlot(RingLoadOp op) override {
    return boxes().warpsOfSlot(*this, op);
  }
  mlir::LogicalResult putFragment(RingPutOp op,
                                  llvm::ArrayRef<mlir::Value> words,
                                  mlir::Value slot) override;
  void awaitProducts(Values &values, int64_t younger) override {
    machine.asyncProducts()->emitMmaWait(*this, values, younger);
  }
  void endIteration(mlir::scf::ForOp loop) override {
    machine.emitLoopEnd(*this, loop);
  }
  mlir::Value flat(mlir::Value data) override;
  const CachePlaces &placesOfCache(mlir::Value cache) override {
    return *places[cache];
  }
  TileView tileOf(mlir::TypedValue<TileType> tile) override;
  void setTile(mlir::TypedValue<TileType> tile, const TileView &view) override;
  mlir::Value findSingle(mlir::Value value) const override;
  mlir::Value gridCol(const FragmentLayout &layout) override;
  mlir::Value addColPart(const FragmentLayout &layout, FragmentType type,
                         mlir::Value col) override;
  mlir::Value wordIndex(mlir::Value base, mlir::Value offset) override;
  mlir::Value firstOfRow(const FragmentLayout &layout) override;
  int64_t blockThreads() const override;

  // The kernel.

  /// Builds lane code at the place, and with the location, of the op that is
  /// being lowered.
  mlir::ImplicitLocOpBuilder b;
  /// The chip, and what it does in ways of its own.
  const TargetInfo &target;
  Machine &machine;
  /// The kernel as it was: its ops are lowered, not changed.
  mlir::gpu::GPUFuncOp kernel;
  /// Bytes that addresses and strides of 16-bit tensors are multiples of.
  const int64_t alignment;
  /// The kernel's schedule, and the block's warps of all teams; also in a
  /// team.
  const ScheduleAttr blockSchedule;
  const int64_t blockWarps;
  /// Columns of the accumulator that a softmax ends, in kernels with rings;
  /// else 0.
  int64_t accumulatorCols = 0;
  /// What lies in the block's LDS.
  LdsPlan lds;
  /// Which named barriers are taken.
  BarrierNumbers barriers;

  // Whose code is being lowered.

  /// By which fragments are spread: the kernel's, or the team's own.
  ScheduleAttr schedule;
  /// The layouts of fragments' types.
  FragmentLayouts layouts;
  /// Thread in the block, lane in the warp, warp in the block; i32. In a team,
  /// thread and warp count from its first warp.
  mlir::Value thread, lane, warp;
  /// How many threads of a team, or of a kernel without rings, there are.
  int64_t threads() const { return schedule.getWarps() * target.waveSize; }
  /// The thread in the block, also in a team; i32.
  mlir::Value blockThread;
  /// Null outside of teams, where all warps of the block work together.
  LaneTeam *team = nullptr;
  /// The team's barrier, i32; null where one warp needs none.
  mlir::Value teamBarrier();
  /// What kernels with rings have of the machine.
  PhaseBarriers &phases() const { return *machine.phaseBarriers(); }
  BoxCopies &boxes() const { return *machine.boxCopies(); }

  // Values.

  /// What a lane holds of a value; of one whose rows lie in LDS, nothing.
  const Values &get(mlir::Value value) { return map[value]; }
  /// Says it.
  void set(mlir::Value value, Values lanes) { map[value] = std::move(lanes); }
  /// Of a tile whose rows are found one by one (`RowMap::Places`): by whom.
  const RowPlaces *placesOf(mlir::Value tile);
  /// The lane value of a scalar of the tile program.
  mlir::Value single(mlir::Value value) { return map[value].front(); }
  /// What a lane holds of a value, loaded here where its rows live in LDS
  /// (schedule `sums_in_lds`).
  Values rowValues(mlir::Value value);
  /// Stores row values into the slots at `offset` bytes, one a thread.
  void storeRows(llvm::ArrayRef<mlir::Value> rows, int64_t offset);

  // Where a lane's elements lie.

  /// Which part of a fragment's rows this warp has, i32.
  mlir::Value rowPart(const FragmentLayout &layout);

  /// Caches whose types alone know where rows are.
  llvm::DenseMap<mlir::Value, std::shared_ptr<const CachePlaces>> places;
  /// Tiles that ops of other dialects make.
  llvm::DenseMap<mlir::Value, std::shared_ptr<const RowPlaces>> ownPlaces;

protected:
  std::unique_ptr<LaneState> &anyState(mlir::TypeID type) override {
    return states[type];
  }

  /// The op of the tile program that is being lowered.
  mlir::Operation *current = nullptr;

private:
  /// The address of the lane's slot, as an index of f32 elements.
  mlir::Value rowSlot(int64_t offset, int64_t rows);

  llvm::DenseMap<mlir::Value, Values> map;
  llvm::DenseMap<mlir::TypeID, std::unique_ptr<LaneState>> states;
  /// Tiles that are known as a whole, by the ops that have made them; others
  /// have come through loops and branches as lane values.
  llvm::DenseMap<mlir::Value, TileView> tiles;
};

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANES_H
