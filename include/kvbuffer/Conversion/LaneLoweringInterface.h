//===- LaneLoweringInterface.h - Ops that become lane code ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What an op of a tile program, the dialect's own or another's, implements to
/// become code for one lane, and what the lane level offers to it.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_CONVERSION_LANELOWERINGINTERFACE_H
#define KVBUFFER_CONVERSION_LANELOWERINGINTERFACE_H

#include "kvbuffer/Conversion/FragmentLayout.h"
#include "kvbuffer/Conversion/TileView.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Layout/Shared.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Support/TypeID.h"
#include <functional>
#include <memory>

namespace kvbuf {

/// The place of an element that a lane holds of a fragment. Row and column lack
/// what depends on the lane: `LaneContext::laneRow` and `laneCol`.
struct LaneElement {
  int64_t row, col;
  /// Which of the lane's row values (of a fragment of role `row`) belongs to
  /// it.
  int64_t rowValue;
};

/// A tensor of integers of a cache: a table, lengths, offsets.
struct IndexArg {
  /// As those of a tensor.
  mlir::Value data;
  llvm::SmallVector<mlir::Value> strides;
};

/// A tensor (or cache) among the kernel's parameters.
struct TensorArg {
  /// Rank-0 memref: the address of element 0.
  mlir::Value data;
  /// Strides in elements, as indices; the innermost is 1 and not passed.
  llvm::SmallVector<mlir::Value> strides;
  /// Sizes that the kernel needs, by dimension; null for the others.
  llvm::SmallVector<mlir::Value> sizes;
  /// Of caches: in the order of CacheLayout::getIndexTensors.
  llvm::SmallVector<IndexArg, 2> indices;
  /// Of a cache that the program makes of memrefs: the size that its kind names
  /// (`LaneContext::roomOf`), as an index. Null for arguments, whose room is
  /// the launch's size.
  mlir::Value room;
  /// Of quantized caches: scales, and their strides as above.
  mlir::Value scales;
  llvm::SmallVector<mlir::Value> scaleStrides;
};

class CachePlaces;

/// What ops of one kind have in common while a kernel is lowered: derive it
/// from this, with a type ID (`MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID`),
/// and ask for it by `LaneContext::ofKernel`.
class LaneState {
public:
  virtual ~LaneState() = default;
};

/// A kernel that is being lowered, as an op's own lowering sees it.
class LaneContext {
public:
  virtual ~LaneContext() = default;

  /// Builds lane code at the op's place, with the op's location.
  virtual mlir::ImplicitLocOpBuilder &builder() = 0;
  /// The chip that the kernel is for.
  virtual const TargetInfo &chip() const = 0;

  /// What a lane holds of a value: a scalar itself; of a fragment of role `acc`
  /// a vector for each atom, of role `a` or `b` its words, of role `row` a
  /// scalar for each row. Tensors, tiles and slots have forms of their own.
  virtual llvm::SmallVector<mlir::Value> lanesOf(mlir::Value value) = 0;
  /// Says it of a result, in the same form.
  virtual void setLanes(mlir::Value value, mlir::ValueRange lanes) = 0;
  /// The one value that a lane has of a scalar.
  mlir::Value single(mlir::Value value) { return lanesOf(value).front(); }
  /// The same, or null for a value that has not one.
  virtual mlir::Value findSingle(mlir::Value value) const = 0;
  /// The types of what a lane holds of a value of a type.
  virtual void laneTypes(mlir::Type type,
                         llvm::SmallVectorImpl<mlir::Type> &types) = 0;
  /// Where lanes hold the elements of fragments of a type.
  virtual const FragmentLayout &layoutOf(FragmentType type) = 0;

  /// Constants.
  virtual mlir::Value index(int64_t value) = 0;
  virtual mlir::Value i32(int64_t value) = 0;
  virtual mlir::Value f32(double value) = 0;
  /// An index in 32 bits, and back, by its sign.
  virtual mlir::Value toI32(mlir::Value index) = 0;
  virtual mlir::Value toIndex(mlir::Value i32) = 0;

  /// Calls `fn` for each element that a lane holds of a fragment of role `acc`,
  /// with its value and place, and returns what a lane holds of the fragment of
  /// the same type whose elements `fn` yields.
  virtual llvm::SmallVector<mlir::Value>
  mapElements(mlir::TypedValue<FragmentType> fragment,
              llvm::function_ref<mlir::Value(mlir::Value element,
                                             const LaneElement &at)>
                  fn) = 0;
  /// The same of some vectors, whose elements `fn` gets by the number of their
  /// vector and their place in it.
  virtual llvm::SmallVector<mlir::Value>
  mapElements(llvm::ArrayRef<mlir::Value> vectors,
              llvm::function_ref<mlir::Value(mlir::Value element, unsigned atom,
                                             int64_t reg)>
                  fn) = 0;
  /// Element `i` of a vector.
  virtual mlir::Value element(mlir::Value vector, int64_t i) = 0;
  /// The lane-dependent part of an element's row and column; i32.
  virtual mlir::Value laneRow(FragmentType type) = 0;
  virtual mlir::Value laneCol(FragmentType type) = 0;
  /// Whether this lane is the first of those that share a row.
  virtual mlir::Value firstOfRow(const FragmentLayout &layout) = 0;
  /// This warp's place along the columns of a layout's grid of warps, i32.
  virtual mlir::Value gridCol(const FragmentLayout &layout) = 0;
  /// A column in a warp's part of a fragment as one of the fragment.
  virtual mlir::Value addColPart(const FragmentLayout &layout,
                                 FragmentType type, mlir::Value col) = 0;
  /// The sum or the maximum of the values that lanes have for a row of a
  /// fragment of this type; all lanes that share the row have it then.
  virtual mlir::Value reduceRow(FragmentType type, mlir::Value value,
                                bool isMax) = 0;
  /// The same of the lanes of a warp alone, and of several rows' values of the
  /// warps that share the columns of fragments of this type.
  virtual mlir::Value reduceLanes(const FragmentLayout &layout,
                                  mlir::Value value, bool isMax) = 0;
  virtual llvm::SmallVector<mlir::Value>
  reduceWarps(FragmentType type, llvm::ArrayRef<mlir::Value> values,
              bool isMax) = 0;
  /// A vector of f32 as one of an operand's elements; a probability is in
  /// [0, 1]. The quotient of two f32, the second one not 0, as fast as the chip
  /// has it.
  virtual mlir::Value roundOperand(mlir::Value vector, mlir::VectorType type,
                                   bool isProbability) = 0;
  virtual mlir::Value ratio(mlir::Value x, mlir::Value y) = 0;
  /// `sum`, an f32, and the elements of a vector of an operand's elements,
  /// added up in f32.
  virtual mlir::Value addElements(mlir::Value sum, mlir::Value vector) = 0;
  /// A value that is the same in all lanes of a warp, known to be so.
  virtual mlir::Value uniform(mlir::Value value) = 0;
  /// Whether two reciprocals cost more than one and three products, and the
  /// smaller of two numbers is one instruction.
  virtual bool sharesReciprocals() = 0;
  /// Whether code that is to run beside products may branch.
  virtual bool branchesBesideProducts() = 0;

  /// The element at (row, col), i32, of a tile in DRAM; any lane may ask for
  /// any, and gets zero where the tile has none. Fails, with an error at the
  /// op, for elements below 16 bits, and for tiles whose pages lanes have
  /// looked up for a load.
  virtual mlir::FailureOr<mlir::Value>
  tileElement(mlir::TypedValue<TileType> tile, mlir::Value row,
              mlir::Value col) = 0;

  /// The thread among those that work together, of the block or of the team
  /// whose code is lowered (i32), and how many there are. All of them run an
  /// op.
  virtual mlir::Value ownThread() = 0;
  virtual int64_t ownThreads() const = 0;
  /// The lane in its warp, and the warp among those that work together; i32.
  virtual mlir::Value laneInWarp() = 0;
  virtual mlir::Value ownWarp() = 0;
  /// Threads of the block, of all its teams.
  virtual int64_t blockThreads() const = 0;
  /// The team whose code is lowered; null outside of teams, and for one that
  /// all warps of the block are in. The number of its copy, i32.
  virtual TeamOp ownTeam() const = 0;
  virtual mlir::Value copyOfTeam() const = 0;
  /// The schedule by which fragments are spread: the kernel's, or the team's.
  virtual ScheduleAttr ownSchedule() const = 0;
  /// The kernel's, also in a team.
  virtual ScheduleAttr scheduleOfBlock() const = 0;
  /// Blocks of a cluster.
  virtual int64_t cluster() const = 0;
  /// Whether one lane runs here, alone of its warp.
  virtual bool isAlone() const = 0;
  /// Whether the kernel has rings; whether the code is of a team that they
  /// join, and that does not fill them.
  virtual bool hasRings() const = 0;
  virtual bool takesFromRings() const = 0;
  /// Of such a team: which group of warps this one is in, among how many
  /// groups that share the rows; null elsewhere.
  virtual mlir::Value groupOfWarps() const = 0;
  virtual int64_t groupsOfWarps() const = 0;
  /// Whether a condition holds for any thread of that group, whose warps meet.
  virtual mlir::Value anyOfGroup(mlir::Value condition) = 0;
  /// Columns of the accumulator that a softmax ends, in kernels with rings;
  /// else 0.
  virtual int64_t accumulatorColumns() const = 0;
  /// The element at (row, col), i32, of what a slot of LDS holds, as it is
  /// stored; any thread may ask for any. Fails, with an error at the op, for
  /// slots whose elements the chip has turned, and for elements below 16 bits.
  virtual mlir::FailureOr<mlir::Value>
  stagedElement(mlir::TypedValue<StagedType> staged, mlir::Value row,
                mlir::Value col) = 0;
  /// LDS of its own for an op, `count` elements of a type in a memref of rank
  /// 1: the block's, or of the copy of the team. What they hold at first is
  /// not known; in a loop, what the op's last run has left.
  virtual mlir::Value ldsElements(mlir::Type type, int64_t count) = 0;
  /// The same as a line of elements of any type, of which those of the op begin
  /// at a byte (i32): LDS of `bytes` bytes of its own, and all of LDS.
  virtual mlir::Value scratch(int64_t bytes) = 0;
  virtual mlir::Value shared(mlir::Type element) = 0;
  /// The index of the word of 32 bits at byte `base` + `offset` (i32) of LDS.
  virtual mlir::Value wordIndex(mlir::Value base, mlir::Value offset) = 0;
  /// LDS of the block, also in a team: the number of the first byte. What the
  /// block takes so far.
  virtual int64_t takeLds(int64_t bytes) = 0;
  virtual int64_t ldsBytes() const = 0;
  /// Gives back what was taken from a byte on, and leaves what lies below one
  /// to those who have placed it there.
  virtual void giveBackLds(int64_t from) = 0;
  virtual void coverLds(int64_t upto) = 0;
  /// Adds a buffer's entry to what messages say of LDS.
  virtual void describeLds(LdsAttr buffer) = 0;
  /// Values of rows that stay in LDS, one place a thread: lets those of
  /// `value`, and of `others` that stand for the same rows, lie there. And new
  /// ones in the place of those of a value, where these lie there.
  virtual void keepInLds(mlir::Value value, mlir::ValueRange others) = 0;
  virtual void storeKept(mlir::Value value,
                         llvm::ArrayRef<mlir::Value> rows) = 0;
  /// Those threads meet: what one has written to LDS before, all see.
  virtual void meet() = 0;
  /// The same, also of what has been written to DRAM.
  virtual void meetToRead() = 0;
  /// All threads of the block meet, also from within a team.
  virtual void meetBlock() = 0;
  /// The lanes of a warp meet: what they have read or written comes before what
  /// one of them does next.
  virtual void meetInWarp() = 0;
  /// Waits until all copies that the thread has started are in LDS.
  virtual void awaitLanding() = 0;

  // Named barriers, of chips that have several (`TargetInfo::namedBarriers`).

  /// The number of the first of `count` barriers that nobody has, and how many
  /// are taken, with the block's own: who takes them checks it.
  virtual int64_t takeNamedBarriers(int64_t count = 1) = 0;
  virtual int64_t namedBarriersTaken() const = 0;
  /// `threads` threads meet at barrier `id`, i32; who does not wait arrives.
  virtual void meetAt(mlir::Value id, int64_t threads, bool wait) = 0;

  // Barriers in LDS that count arrivals and bytes, by phases, of kernels with
  // rings; a barrier is its byte in LDS, i32.

  /// Room for those of `stages` slots, *full* and then *empty*, in front of the
  /// teams that use them: `releases` arrivals empty one, `fills` fill it. The
  /// byte of the first. And room for numbers beside them.
  virtual int64_t addPhaseBarriers(int64_t stages, int64_t releases,
                                   int64_t fills = 1) = 0;
  virtual int64_t takeBesideBarriers(int64_t bytes) = 0;
  /// Waits for the phase of this parity to complete.
  virtual void awaitPhase(mlir::Value barrier, mlir::Value parity) = 0;
  /// Arrives where `predicate` holds; every lane that gets here, without one.
  virtual void arriveAt(mlir::Value barrier, mlir::Value predicate) = 0;
  /// Arrives, and lets the barrier await `bytes` bytes.
  virtual void expectBytes(mlir::Value barrier, int64_t bytes) = 0;
  /// Makes what this thread has written to LDS visible to engines and matrix
  /// units that read it themselves.
  virtual void publish() = 0;
  /// The same in block `rank` of the cluster: an arrival, and a word, or four,
  /// for byte `word` of its LDS, which count as bytes at `barrier`.
  virtual void arriveInCluster(mlir::Value barrier, mlir::Value rank,
                               mlir::Value predicate) = 0;
  virtual void storeInCluster(mlir::Value value, mlir::Value word,
                              mlir::Value barrier, mlir::Value rank) = 0;

  /// Lowers the ops of a region, whose arguments have been set, but its
  /// terminator, whose operands then have their lanes.
  virtual llvm::LogicalResult lowerBody(mlir::Block &body) = 0;
  /// Lowers one op of a region. Its arithmetic on indices is done as it is
  /// written, not in 32 bits where these are enough for tiles.
  virtual llvm::LogicalResult lowerInner(mlir::Operation *op) = 0;
  /// Lowers the code of a team, whose first warp is the block's of this number:
  /// until its end, what is said here of threads, warps, schedule and LDS is
  /// the team's. Before: what comes in front of all teams of an op, and the
  /// registers that the warps which run here get for a team.
  virtual llvm::LogicalResult lowerTeam(TeamOp team, int64_t firstWarp) = 0;
  virtual llvm::LogicalResult startTeams(TeamsOp teams) = 0;
  virtual void takeRegisters(TeamOp team) = 0;
  /// What stands at the end of a loop's iteration, before its values are handed
  /// to the next one.
  virtual void endIteration(mlir::scf::ForOp loop) = 0;
  /// What ops of one kind have in common: made when it is asked for first.
  template <typename T> T &ofKernel() {
    std::unique_ptr<LaneState> &state = anyState(mlir::TypeID::get<T>());
    if (!state)
      state = std::make_unique<T>();
    return static_cast<T &>(*state);
  }

  /// What is known of a tensor or a cache, an argument or one that the program
  /// makes of arguments, whose op says it here; null for what is neither.
  virtual TensorArg &tensorOf(mlir::Value tensor) = 0;
  virtual const TensorArg *findTensor(mlir::Value value) const = 0;
  /// Of a cache whose type alone knows where rows are (`CacheRows::byPlace`).
  virtual const CachePlaces &placesOfCache(mlir::Value cache) = 0;
  /// The data of a tensor as one line of elements, and where in it the matrix
  /// or element at `indices` begins.
  virtual mlir::Value flat(mlir::Value data) = 0;
  virtual mlir::Value offsetOf(mlir::Value tensor,
                               mlir::OperandRange indices) = 0;
  /// A size of the launch, by its name in the manifest, the value of an
  /// expression over sizes, and the size that an op asks for of its cache (its
  /// room, or the rows of ragged queries); indices.
  virtual mlir::Value launchSize(llvm::StringRef name) = 0;
  virtual mlir::Value launchValue(mlir::Attribute expression) const = 0;
  virtual mlir::Value roomOf(mlir::Value cache, mlir::Operation *op) = 0;
  /// The counter that the kernel takes tiles from, and bytes that addresses and
  /// strides of 16-bit tensors are multiples of.
  virtual mlir::Value tileCounter() const = 0;
  virtual int64_t tensorAlignment() const = 0;
  /// How the rows of a tile are found, which are valid and where it ends.
  virtual TileView tileOf(mlir::TypedValue<TileType> tile) = 0;
  virtual void setTile(mlir::TypedValue<TileType> tile,
                       const TileView &view) = 0;

  /// Builds where a row of a tile lies: an index for each dimension of its
  /// tensor but the last, which its columns run along from 0 on.
  using RowPlace = std::function<llvm::SmallVector<mlir::Value>(
      mlir::ImplicitLocOpBuilder &b, mlir::Value row)>;
  /// Says of a tile in DRAM, of a type with `page_size = 1`, that it is of rows
  /// of `tensor`, a memref among the kernel's arguments. The first `rows` of
  /// them (an index) are valid. `place` is called where the tile is loaded
  /// (`kvbuffer.dram_load`), after the op, with the number of a row, an index,
  /// also of one that is not valid: what is read to place that has to exist,
  /// and where it lies does not matter.
  virtual void setTileRows(mlir::TypedValue<TileType> tile, mlir::Value tensor,
                           mlir::Value rows, RowPlace place) = 0;
  /// The tensor that an argument of the kernel is, as a memref that code may
  /// read.
  virtual mlir::Value memrefOf(mlir::Value tensor) = 0;

  // What the chip's machine does for ops of `kvbuffer`.

  /// Goes on where `condition` holds.
  virtual void enter(mlir::Value condition) = 0;
  /// How a tile lies in LDS that is transposed on its way there; nothing: as it
  /// is.
  virtual std::optional<TransposedTile> turnedTile(KVBufferAttr params) = 0;
  /// Starts copying a tile into LDS at byte `slot`; the token.
  virtual llvm::SmallVector<mlir::Value>
  startLoad(DramLoadOp op, const TileView &tile, mlir::Value slot) = 0;
  /// Waits for loads by the lanes of their tokens, and meets.
  virtual void
  awaitLoads(LdsStageOp op,
             llvm::ArrayRef<llvm::SmallVector<mlir::Value>> tokens) = 0;
  /// The words of a fragment, of LDS at byte `slot` and of a tile in DRAM.
  virtual llvm::LogicalResult
  loadFragment(FragmentLoadOp op, mlir::Value slot,
               llvm::SmallVector<mlir::Value> &words) = 0;
  virtual llvm::LogicalResult
  loadFragment(TileFragmentOp op, const TileView &tile,
               llvm::SmallVector<mlir::Value> &words) = 0;
  /// Whether an engine stores the rows of this group of warps, and how: through
  /// LDS at byte `buffer`.
  virtual bool storesBoxes() const = 0;
  virtual llvm::LogicalResult storeBox(FragmentStoreOp op, const TileView &tile,
                                       llvm::ArrayRef<mlir::Value> values,
                                       mlir::Value buffer) = 0;
  /// Whether warps move a load's tiles, not one lane, and how many fill a slot
  /// together.
  virtual bool takesWarps(RingLoadOp op) = 0;
  virtual int64_t warpsOfSlot(RingLoadOp op) = 0;
  /// Waits for `empty` to complete the phase of this parity, then fills the
  /// slot; `full` completes when the data is there.
  virtual llvm::LogicalResult fillSlot(RingLoadOp op, const TileView &tile,
                                       mlir::Value slot, mlir::Value full,
                                       mlir::Value empty,
                                       mlir::Value emptyParity) = 0;
  /// Puts a lane's words of a fragment into a slot.
  virtual llvm::LogicalResult putFragment(RingPutOp op,
                                          llvm::ArrayRef<mlir::Value> words,
                                          mlir::Value slot) = 0;
  /// Starts a product; `a` are words or the slot's byte. Waits until at most
  /// `younger` products are in flight.
  virtual llvm::LogicalResult
  startProduct(MmaStartOp op, llvm::ArrayRef<mlir::Value> a, mlir::Value b,
               llvm::ArrayRef<mlir::Value> acc,
               llvm::SmallVector<mlir::Value> &results) = 0;
  virtual void awaitProducts(llvm::SmallVector<mlir::Value> &values,
                             int64_t younger) = 0;
  /// Multiplies an awaited slot, operand a of products, where it lies.
  virtual llvm::LogicalResult scaleOperand(RingWaitOp op, mlir::Value slot,
                                           float by) = 0;

protected:
  virtual std::unique_ptr<LaneState> &anyState(mlir::TypeID type) = 0;
};

/// Gives the ops of `kvbuffer`, `scf` and `memref` that kernels consist of
/// their lowering. `convert-kvbuffer-to-gpu` does it for its context.
void registerLaneLoweringModels(mlir::DialectRegistry &registry);

} // namespace kvbuf

#include "kvbuffer/Conversion/LaneLoweringInterface.h.inc"

#endif // KVBUFFER_CONVERSION_LANELOWERINGINTERFACE_H
