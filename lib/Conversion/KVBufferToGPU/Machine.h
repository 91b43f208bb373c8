//===- Machine.h - What machines do differently -----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Machines by what they are capable of. What only some machines can do is an
/// interface of its own, which a machine has as a whole or not at all: no
/// function stands for "cannot".
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_MACHINE_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_MACHINE_H

#include "kvbuffer/Conversion/LaneLoweringInterface.h"
#include "kvbuffer/Layout/Shared.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/ADT/SmallVector.h"
#include <memory>
#include <optional>

namespace kvbuf {

/// Buffers begin at multiples of this many bytes, so that swizzles see a tile
/// that starts at bank 0.
constexpr int64_t kBufferAlignment = 1024;

/// The widest copies and stores of a lane move this many bytes: kernels assume
/// that rows of 16-bit tensors begin at multiples of it, unless they are made
/// for less. The runtime checks it of every launch (lib/Runtime/Launch.cpp).
constexpr int64_t kTensorAlignment = 16;

/// Slots in LDS and the barriers of each: *full*, then *empty*.
struct RingValues {
  /// Byte offsets of slot 0 and of slot 0's full barrier; i32.
  mlir::Value slots, barriers;
  int64_t stages;
};

/// Bytes of a barrier in LDS.
constexpr int64_t kBarrierBytes = 8;

/// A barrier in LDS: its byte offset and the arrivals that complete it.
struct LdsBarrier {
  int64_t offset, arrivals;
};

/// How a copy engine reaches a tensor: one kernel parameter each.
struct TensorMapRequest {
  /// The kernel's argument, and the dimension that rows of a box run along.
  mlir::Value tensor;
  int64_t rowDimension;
  /// Rows and columns of a box.
  int64_t boxRows, boxCols;
  /// The part of the rows that boxes are boxes of; a box's column 0 is its
  /// first.
  int64_t firstCol, cols;
  bool operator==(const TensorMapRequest &) const = default;
};

/// Whether the elements of a column lie side by side in a buffer's slots,
/// turned on their way there: as the program says, and where products contract
/// rows of the slots and LDS cannot be read transposed, unless elements are
/// widened one by one.
bool isTurnedInLds(const TargetInfo &target, KVBufferAttr params);

/// Whether a buffer's tiles come into LDS through registers: those that are
/// register staged, and strips that are turned on their way.
bool goesThroughRegisters(const TargetInfo &target, KVBufferAttr params);

/// What a load's tiles need of the team that moves, each more than what comes
/// before it: one lane that asks a copy engine; one warp, another one for each
/// slot, that also looks up pages and copies what no engine can.
enum class Movers { Lane, Warp };

/// The tile that a buffer's slot is, in LDS.
SharedTile sharedTile(KVBufferAttr params);

/// What every slot's byte offset is a multiple of.
int64_t slotAlignment(KVBufferAttr params);

class Lanes;
class LaneLowering;

//===----------------------------------------------------------------------===//
// Capabilities
//===----------------------------------------------------------------------===//

/// How tiles come from DRAM into LDS, and where warps meet.
class Copies {
public:
  virtual ~Copies() = default;
  /// The memory space of tensors in DRAM; null for the default one.
  virtual mlir::Attribute dramSpace(mlir::MLIRContext *context) { return {}; }
  /// The largest stride, in elements, of a tile of `rows` rows; 0 for any.
  virtual int64_t maxRowStride(int64_t rows, int64_t elementBytes) const {
    return 0;
  }
  /// The types of a load's own token, lane values beside the slot's offset.
  virtual void tokenTypes(Lanes &lower, KVBufferAttr params,
                          llvm::SmallVectorImpl<mlir::Type> &types) = 0;
  /// How a tile lies in LDS that is transposed on its way there; nothing: as
  /// `sharedTile` says.
  virtual std::optional<TransposedTile> turnedTile(Lanes &lower,
                                                   KVBufferAttr params) {
    return std::nullopt;
  }
  /// Starts copying a tile into LDS at byte `slot`; returns the token.
  virtual Values emitLoad(Lanes &lower, DramLoadOp op, const TileView &tile,
                          mlir::Value slot) = 0;
  /// Waits for the loads of an op's tokens and meets the block. `tokens` are
  /// the lane values of its operands, the slot's offset first.
  virtual void emitStage(Lanes &lower, LdsStageOp op,
                         llvm::ArrayRef<Values> tokens) = 0;
  /// Meets the other warps of the block, or of the team; waits for no memory
  /// operation.
  virtual void emitMeet(Lanes &lower);
  /// What stands at the end of a loop's iteration, before its values are handed
  /// to the next one; nothing by default.
  virtual void emitLoopEnd(Lanes &, mlir::scf::ForOp) {}
  /// Waits until all copies that the thread has started are in LDS, also those
  /// that nobody reads: the bytes are to have another use.
  virtual void emitLanding(Lanes &lower) = 0;
};

/// How fragments come into registers.
class Fragments {
public:
  virtual ~Fragments() = default;
  /// Loads a fragment from LDS at byte `slot`.
  virtual mlir::LogicalResult emitFragmentLoad(Lanes &lower, FragmentLoadOp op,
                                               mlir::Value slot,
                                               Values &words) = 0;
  /// Loads a fragment from DRAM; by default says at the op that the chip does
  /// not.
  virtual mlir::LogicalResult emitTileFragment(Lanes &lower, TileFragmentOp op,
                                               const TileView &tile,
                                               Values &words);
};

/// What numbers cost, and how they are rounded.
class Numerics {
public:
  virtual ~Numerics() = default;
  /// A value that is the same in all lanes of a wave, known to be so.
  virtual mlir::Value uniform(Lanes &lower, mlir::Value value) { return value; }
  /// Rounds a vector of f32 to an operand's elements; `isProbability`: each is
  /// finite and not negative.
  virtual mlir::Value roundOperand(Lanes &lower, mlir::Value value,
                                   mlir::VectorType type, bool isProbability);
  /// Adds the elements of a vector of an operand's elements to an f32, each in
  /// f32.
  virtual mlir::Value addElements(Lanes &lower, mlir::Value sum,
                                  mlir::Value vector);
  /// Whether code that is to run beside products may branch.
  virtual bool branchesBesideProducts() const { return true; }
  /// Whether two reciprocals cost more than one and three products, and the
  /// smaller of two numbers is one instruction.
  virtual bool sharesReciprocals() const { return false; }
  /// x / y.
  virtual mlir::Value emitRatio(Lanes &lower, mlir::Value x, mlir::Value y);
};

/// Barriers of a block at which some of its warps meet.
class NamedBarriers {
public:
  virtual ~NamedBarriers() = default;
  /// Meets `threads` threads at the block's barrier `id`; or only arrives.
  virtual void emitNamedBarrier(Lanes &lower, mlir::Value id, int64_t threads,
                                bool wait) = 0;
};

/// Barriers in LDS that count arrivals and bytes, by phases; offsets are bytes
/// in LDS, i32. Blocks of a cluster reach each other's.
class PhaseBarriers {
public:
  virtual ~PhaseBarriers() = default;
  /// One thread's initialization of all barriers, and what makes it visible to
  /// copy engines. The block meets afterwards.
  virtual void emitBarrierInit(Lanes &lower,
                               llvm::ArrayRef<LdsBarrier> barriers) = 0;
  /// Waits for the phase of this parity to complete.
  virtual void emitBarrierWait(Lanes &lower, mlir::Value barrier,
                               mlir::Value parity) = 0;
  /// Arrives where `predicate` holds; every lane that gets here, without one.
  virtual void emitBarrierArrive(Lanes &lower, mlir::Value barrier,
                                 mlir::Value predicate) = 0;
  /// Where `predicate` holds, arrives at the barrier at this place in block
  /// `rank` of the cluster.
  virtual void emitClusterArrive(Lanes &lower, mlir::Value barrier,
                                 mlir::Value rank, mlir::Value predicate) = 0;
  /// Meets the lanes of a warp: what they have read or written comes before
  /// what one of them does next.
  virtual void emitWarpMeet(Lanes &lower) = 0;
  /// Makes what this thread has written to LDS visible to copy engines and
  /// matrix units that read it themselves.
  virtual void emitPublish(Lanes &lower) = 0;
  /// Arrives, and lets the barrier await `bytes` bytes.
  virtual void emitExpectBytes(Lanes &lower, mlir::Value barrier,
                               int64_t bytes) = 0;
  /// Sends a word of 4 bytes, or four of them, to place `word` of LDS in block
  /// `rank` of the cluster, where they count as bytes at `barrier`.
  virtual void emitClusterStore(Lanes &lower, mlir::Value value,
                                mlir::Value word, mlir::Value barrier,
                                mlir::Value rank) = 0;
  /// Begins to meet all threads of the cluster, once barriers are made ready:
  /// nothing else that was done before is told to other blocks.
  virtual void emitClusterEnter(Lanes &lower) = 0;
  /// Waits until all threads of the cluster have begun to meet: their blocks'
  /// barriers are ready.
  virtual void emitClusterMeet(Lanes &lower) = 0;
};

/// Copies of boxes of tensors by an engine, into slots.
class BoxCopies {
public:
  virtual ~BoxCopies() = default;
  /// Whether this is the one lane of its warp that was elected to ask for
  /// boxes; the whole warp asks.
  virtual mlir::Value emitElect(Lanes &lower) = 0;
  /// The tensor maps that an op of the kernel needs.
  virtual llvm::SmallVector<TensorMapRequest>
  tensorMapsFor(Lanes &lower, mlir::Operation *op) = 0;
  /// The cache of a load for which the program has to know how many pages or
  /// slots it has; null: none.
  virtual mlir::Value countedBy(Lanes &lower, RingLoadOp op) { return {}; }
  /// The type of a tensor map's parameter.
  virtual mlir::Type tensorMapType(mlir::MLIRContext *context) = 0;
  /// Who moves a load's tiles.
  virtual Movers moversOf(Lanes &lower, RingLoadOp op) = 0;
  /// Warps that fill a slot together, each its share of the rows, where a load
  /// takes warps; each arrives once. Divides the warps of the team.
  virtual int64_t warpsOfSlot(Lanes &lower, RingLoadOp op) = 0;
  /// Waits for `empty` to complete the phase of parity `emptyParity`, then
  /// fills the slot; `full` completes when the data is there.
  virtual mlir::LogicalResult emitRingLoad(LaneLowering &lower, RingLoadOp op,
                                           const TileView &tile,
                                           mlir::Value slot, mlir::Value full,
                                           mlir::Value empty,
                                           mlir::Value emptyParity) = 0;
};

/// Stores of boxes by an engine: a group of warps puts its rows of a fragment
/// into LDS, from where they are copied.
class BoxStores {
public:
  virtual ~BoxStores() = default;
  /// Stores the fragment of `values` through LDS at byte `buffer`.
  virtual mlir::LogicalResult
  emitStoreVia(LaneLowering &lower, FragmentStoreOp op, const TileView &tile,
               llvm::ArrayRef<mlir::Value> values, mlir::Value buffer) = 0;
};

/// Stores of matrices: 8 rows of 16 bytes, of which a lane has a word.
class MatrixStores {
public:
  virtual ~MatrixStores() = default;
  /// Stores four matrices. `words` are a lane's of each: word lane % 4 of row
  /// lane / 4. `row` (index) is the byte in LDS where row lane % 8 of matrix
  /// lane / 8 begins.
  virtual void emitMatrixStores(Lanes &lower, llvm::ArrayRef<mlir::Value> words,
                                mlir::Value row) = 0;
};

/// Products that go on while the warps that asked for them do something else.
class AsyncProducts {
public:
  virtual ~AsyncProducts() = default;
  /// Starts a product; `a` are words or the slot's offset.
  virtual mlir::LogicalResult emitMmaStart(LaneLowering &lower, MmaStartOp op,
                                           llvm::ArrayRef<mlir::Value> a,
                                           mlir::Value b,
                                           llvm::ArrayRef<mlir::Value> acc,
                                           Values &results) = 0;
  /// Waits until at most `younger` products are in flight.
  virtual void emitMmaWait(Lanes &lower, Values &values, int64_t younger) = 0;
  /// Multiplies those rows of an awaited slot that the group's products read;
  /// an error where groups have not all of them.
  virtual mlir::LogicalResult emitScale(LaneLowering &lower, RingWaitOp op,
                                        mlir::Value slot, float by) = 0;
  /// Lets group `group` (i32) of warps begin later than the one before it, by a
  /// part of what a tile takes: groups that begin together wait for the unit
  /// together.
  virtual void emitStagger(Lanes &lower, mlir::Value group) = 0;
};

/// Registers that teams pass to each other.
class TeamRegisters {
public:
  virtual ~TeamRegisters() = default;
  /// Changes the registers of a lane from `before` to `count`.
  virtual void emitSetRegisters(Lanes &lower, int64_t count,
                                int64_t before) = 0;
};

//===----------------------------------------------------------------------===//
// Machine
//===----------------------------------------------------------------------===//

/// What below the tile stage differs between machines in more than layouts: the
/// capabilities that every kernel needs, and those that a machine may offer.
class Machine : public Copies, public Fragments, public Numerics {
public:
  /// Looks at the whole kernel before its first op is lowered.
  virtual mlir::LogicalResult prepare(Lanes &lower,
                                      mlir::gpu::GPUFuncOp kernel) {
    return mlir::success();
  }
  /// Computes what the whole kernel shares, at its start.
  virtual void emitPrologue(Lanes &lower) {}
  /// What a team that rings join, and that does not move, does last; the
  /// machine forgets what it knows of the team.
  virtual void emitTeamEnd(LaneLowering &lower) {}
  /// Called after the kernel's last op.
  virtual void emitEnd(Lanes &lower) {}
  /// Null on a machine whose blocks have one barrier.
  virtual NamedBarriers *namedBarriers() { return nullptr; }
  /// Null on a machine for kernels without rings, both or none.
  virtual PhaseBarriers *phaseBarriers() { return nullptr; }
  virtual BoxCopies *boxCopies() { return nullptr; }
  /// Null where each warp stores and multiplies by itself, and waits.
  virtual BoxStores *boxStores() { return nullptr; }
  virtual AsyncProducts *asyncProducts() { return nullptr; }
  /// Null where each lane stores its own words.
  virtual MatrixStores *matrixStores() { return nullptr; }
  /// Null where lanes keep the registers that they begin with.
  virtual TeamRegisters *teamRegisters() { return nullptr; }
  bool hasRings() { return phaseBarriers() != nullptr; }
};

/// NVIDIA, sm_80 and later: cp.async, ldmatrix.
std::unique_ptr<Machine> createNVIDIAMachine();
/// NVIDIA, sm_90 and later, for kernels with rings: TMA and mbarriers, products
/// and stores of the machine before. `registers`: whether lanes get others.
std::unique_ptr<Machine> createBoxMachine(bool registers);
/// NVIDIA, sm_90a, for kernels with rings: that, and wgmma.
std::unique_ptr<Machine> createHopperMachine();
/// AMD, CDNA3 and later: copies of waves into LDS, counted waits.
std::unique_ptr<Machine> createAMDMachine();
/// The same for kernels with rings: counters in LDS.
std::unique_ptr<Machine> createAMDRingMachine();
/// Loads a fragment whose elements are wider than those of its slot, at byte
/// `slot`, or lie in an order that the machine has no instruction for, by
/// ordinary reads of LDS.
mlir::LogicalResult emitNarrowFragment(Lanes &lower, FragmentLoadOp op,
                                       mlir::Value slot, Values &words);
/// Stores a fragment, of lane values `words`, into LDS at byte `slot`, as its
/// ring's buffer lies there, by ordinary stores.
mlir::LogicalResult emitFragmentPut(Lanes &lower, RingPutOp op,
                                    llvm::ArrayRef<mlir::Value> words,
                                    mlir::Value slot);
/// Whether lanes of a warp's upper half have the words of each pair of columns
/// exchanged: those of an operand b of bytes that they put turned, as rows of
/// matrices. Else they would store columns that are 8 apart, whose rows in LDS
/// have the same banks.
bool exchangesPairs(Lanes &lower, FragmentLoadOp load);
/// The machine of a target, for kernels with rings or without.
std::unique_ptr<Machine> createMachine(const TargetInfo &target, bool rings);

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_MACHINE_H
