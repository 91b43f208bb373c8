//===- MachineHopper.h - Rings on NVIDIA, sm_90 and later -------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tiles move by the tensor copy engine (TMA), those over small pages by boxes
/// of a page each, or, where no box fits, by lanes (MachineHopperPages.cpp);
/// slots change hands through mbarriers (MachineHopperRings.cpp). That is all
/// of a machine whose products are the portable ones; on sm_90a they are wgmma
/// (MachineHopper.cpp). PTX ISA: "cp.async.bulk.tensor", "mbarrier",
/// "Asynchronous warpgroup level matrix instructions", "setmaxnreg".
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_NVIDIA_MACHINEHOPPER_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_NVIDIA_MACHINEHOPPER_H

#include "KVBufferToGPU/LaneLowering.h"
#include "MachineNVIDIA.h"
#include "llvm/ADT/DenseMap.h"

namespace kvbuf::hopper {

/// Rows of a that a warpgroup multiplies: m of every wgmma.
constexpr int64_t kGroupRows = 64;
/// Rows after which a swizzled tile repeats.
constexpr int64_t kSwizzleRows = 8;

/// Bytes of a row of one LDS block: what the swizzle spans.
int64_t rowBytes(KVBufferAttr params);
/// Bytes of one LDS block of BN x BK elements.
int64_t blockBytes(KVBufferAttr params);
/// Whether a buffer's swizzle is the one that the copy engine and the matrix
/// unit know for rows of this width: 16-byte vectors XOR the row's number in
/// what repeats every 8 rows, of which rows shorter than 128 bytes fill a part.
mlir::LogicalResult checkSwizzle(mlir::Operation *op, KVBufferAttr params);

/// The tensor that a tile is a part of; null if no op says so.
mlir::Value tensorOf(mlir::Value tile);
/// Whether a cluster's blocks load a tile together.
bool isShared(RingLoadOp op);
/// How a cluster's blocks divide a tile: `columns` of them its blocks of
/// columns, as many as possible because a box is then of more rows, and `rows`
/// of them the rows of each.
struct ClusterParts {
  int64_t columns, rows;
};
ClusterParts clusterParts(Lanes &lower, RingLoadOp op);

/// Rows of a box of a load: those of a tile that one block loads, or of a tile
/// over small pages so many as lie in one page wherever the tile begins. 0 if a
/// swizzled tile is not made of so few rows, or is not known to start at a
/// multiple of them.
int64_t boxRows(Lanes &lower, RingLoadOp op);

/// What boxes of `rows` rows of a load are taken from: the columns that its
/// slot has, or all of which it has a block, or all of which it has those from
/// one on that the program knows at run time.
TensorMapRequest boxesOf(RingLoadOp op, int64_t rows);
/// The first of the slot's columns there.
int64_t columnInBoxes(RingLoadOp op);

/// How a tile over pages of a few rows, which `boxRows` has no box for, is made
/// of boxes: one of each page that lies in it, and boxes of one row for the
/// rows of the two pages that its ends divide. Where pages divide tiles that
/// are known to start with one there are none of those; else there are always
/// as many, since tiles begin anywhere in a page. The engine swizzles by the
/// address, so that a box may begin at any row of a swizzled tile.
struct PageBoxes {
  /// Rows of a page, pages, and rows beside them.
  int64_t rows, whole, single;
  /// Parts, of a warp each, and what one asks for at most.
  int64_t parts;
  int64_t wholeOfPart() const { return llvm::divideCeil(whole, parts); }
  int64_t singleOfPart() const { return llvm::divideCeil(single, parts); }
};
/// Makes what this thread has written to LDS visible to the matrix unit.
void fenceWrites(Lanes &lower);
/// A row (i32) of a tile, or else the valid row that is nearest, if there is
/// one.
mlir::Value nearestRow(Lanes &lower, const TileView &tile, mlir::Value row);
/// The value that lane `lane` (i32) of the warp holds.
mlir::Value ofLane(Lanes &lower, mlir::Value value, mlir::Value lane);
/// What `emit` returns, i32 values, if a tile has a valid row; else zeros.
Values ifAnyRow(Lanes &lower, const TileView &tile, int64_t count,
                llvm::function_ref<Values()> emit);

/// Rings on chips whose warps multiply by themselves, sm_90 and sm_100a.
class BoxMachine : public NVIDIAMachine,
                   public PhaseBarriers,
                   public BoxCopies,
                   public TeamRegisters {
public:
  explicit BoxMachine(bool registers) : movesRegisters(registers) {}
  PhaseBarriers *phaseBarriers() override { return this; }
  BoxCopies *boxCopies() override { return this; }
  TeamRegisters *teamRegisters() override {
    return movesRegisters ? this : nullptr;
  }
  llvm::SmallVector<TensorMapRequest>
  tensorMapsFor(Lanes &lower, mlir::Operation *op) override;
  mlir::Value countedBy(Lanes &lower, RingLoadOp op) override;
  mlir::Type tensorMapType(mlir::MLIRContext *context) override;
  Movers moversOf(Lanes &lower, RingLoadOp op) override;
  int64_t warpsOfSlot(Lanes &lower, RingLoadOp op) override;
  void emitPrologue(Lanes &lower) override;
  /// Divides loops by whether places fit (`SmallPages`).
  void emitEnd(Lanes &lower) override;
  void emitBarrierInit(Lanes &lower,
                       llvm::ArrayRef<LdsBarrier> barriers) override;
  mlir::Value uniform(Lanes &lower, mlir::Value value) override;
  mlir::Value emitElect(Lanes &lower) override;
  void emitBarrierWait(Lanes &lower, mlir::Value barrier,
                       mlir::Value parity) override;
  void emitBarrierArrive(Lanes &lower, mlir::Value barrier,
                         mlir::Value predicate) override;
  void emitClusterArrive(Lanes &lower, mlir::Value barrier, mlir::Value rank,
                         mlir::Value predicate) override;
  void emitWarpMeet(Lanes &lower) override;
  void emitPublish(Lanes &lower) override;
  void emitExpectBytes(Lanes &lower, mlir::Value barrier,
                       int64_t bytes) override;
  void emitClusterStore(Lanes &lower, mlir::Value value, mlir::Value word,
                        mlir::Value barrier, mlir::Value rank) override;
  void emitClusterEnter(Lanes &lower) override;
  void emitClusterMeet(Lanes &lower) override;
  void emitSetRegisters(Lanes &lower, int64_t count, int64_t before) override;
  mlir::LogicalResult emitRingLoad(LaneLowering &lower, RingLoadOp op,
                                   const TileView &tile, mlir::Value slot,
                                   mlir::Value full, mlir::Value empty,
                                   mlir::Value emptyParity) override;

protected:
  /// A pointer into shared memory; with `cluster` one that may lead to any
  /// block of the cluster, of which the own block's shared memory is a part.
  mlir::Value pointer(Lanes &lower, mlir::Value offset,
                      bool cluster = false) const;
  /// Shared memory's address, i32.
  mlir::Value ldsAddress;

private:
  /// Asks for one box, to `to` (a byte offset in LDS), whose bytes count at
  /// `barrier` (a pointer); in all blocks that `mask` names, null for this one.
  /// `there`: whether to, null: always; with a mask only. `hint`: how long the
  /// L2 is to keep it, null: as it does.
  void emitBox(Lanes &lower, mlir::Value map, mlir::ValueRange position,
               mlir::Value to, mlir::Value barrier, mlir::Value mask = nullptr,
               mlir::Value there = nullptr, mlir::Value hint = nullptr);
  /// The pages of a tile over small pages: lane j holds the block of the rows
  /// from j times those of a box on. Where those are not valid, the block of
  /// the valid row that is nearest.
  mlir::Value emitBlocksOfBoxes(Lanes &lower, RingLoadOp op,
                                const TileView &tile);
  /// Asks for a tile's boxes; `blocks` is what emitBlocksOfBoxes returns, or
  /// null.
  void emitBoxes(LaneLowering &lower, RingLoadOp op, const TileView &tile,
                 mlir::Value slot, mlir::Value full, mlir::Value blocks);
  /// Rows of a box of a tile of which not all rows are valid; 0 where such
  /// tiles are copied by a warp.
  int64_t cutRows(Lanes &lower, RingLoadOp op);
  /// Asks for a tile whose last rows may not be valid in boxes of `cutRows`
  /// rows: those of valid rows, and zeros, which lie outside of the tensor, for
  /// others. The box that the end cuts a warp copies.
  void emitCutTile(LaneLowering &lower, RingLoadOp op, const TileView &tile,
                   mlir::Value slot, mlir::Value full);
  /// One warp copies a tile of which not all rows are valid, and waits for it.
  void emitWarpCopies(Lanes &lower, RingLoadOp op, const TileView &tile,
                      mlir::Value slot, mlir::Value full, mlir::Value blocks);
  /// Loads a tile over pages of few rows: as boxes (`pageBoxes`), or the lanes
  /// of `warpsOfSlot` warps copy it, wait for their copies and arrive.
  void emitSmallPages(LaneLowering &lower, RingLoadOp op, const TileView &tile,
                      mlir::Value slot, mlir::Value full, mlir::Value empty,
                      mlir::Value emptyParity);
  /// One warp fills a slot with columns of packed rows, and arrives.
  void emitPackedRows(LaneLowering &lower, RingLoadOp op, const TileView &tile,
                      mlir::Value slot, mlir::Value full, mlir::Value empty,
                      mlir::Value emptyParity);
  struct PackedFill;
  /// Asks for the bytes of such columns ahead of the slot, or fills it with
  /// them: this warp's rows.
  void emitPackedAhead(LaneLowering &lower, RingLoadOp op, PackedFill &fill,
                       mlir::Value full, mlir::Value empty,
                       mlir::Value emptyParity);
  /// Finds memory for entries of the table, and says whether this load asks for
  /// them, and no other one that has the same rows.
  bool placeEntries(LaneLowering &lower, RingLoadOp op, PackedFill &fill);
  /// What a warp does for its part of such a tile.
  struct RowCopies;
  struct PartBoxes;
  struct SmallPages;
  /// Nothing where copies by lanes are faster.
  std::optional<PageBoxes> pageBoxes(Lanes &lower, RingLoadOp op);
  /// Asks for the boxes of a tile whose rows are all there, once its slot is
  /// empty.
  void emitPageBoxes(LaneLowering &lower, RingLoadOp op, const PageBoxes &boxes,
                     const TileView &tile, mlir::Value slot, mlir::Value full,
                     mlir::Value empty, mlir::Value emptyParity);

  const bool movesRegisters;
  /// Whether places of rows fit 32 bits, of caches whose tiles an outermost
  /// loop loads.
  llvm::MapVector<mlir::Operation *, llvm::MapVector<mlir::Value, mlir::Value>>
      placesFit;
  /// Where bytes of packed rows lie that come ahead of a ring's slots.
  llvm::DenseMap<mlir::Value, int64_t> bytesAhead;
  /// Where entries of tables lie that loads of a ring ask for ahead.
  llvm::DenseMap<mlir::Value, int64_t> entriesAhead;
  /// The barrier of a load that ends with the next one, and how many have begun
  /// behind it; null: none does.
  struct {
    mlir::Value barrier;
    int64_t younger = 0;
  } postponed;
};

/// See the file's comment.
class HopperMachine : public BoxMachine,
                      public BoxStores,
                      public MatrixStores,
                      public AsyncProducts {
public:
  HopperMachine() : BoxMachine(/*registers=*/true) {}
  BoxStores *boxStores() override { return this; }
  MatrixStores *matrixStores() override { return this; }
  AsyncProducts *asyncProducts() override { return this; }
  void emitMatrixStores(Lanes &lower, llvm::ArrayRef<mlir::Value> words,
                        mlir::Value row) override;
  mlir::Value emitRatio(Lanes &lower, mlir::Value x, mlir::Value y) override;
  llvm::SmallVector<TensorMapRequest>
  tensorMapsFor(Lanes &lower, mlir::Operation *op) override;
  mlir::LogicalResult emitMmaStart(LaneLowering &lower, MmaStartOp op,
                                   llvm::ArrayRef<mlir::Value> a,
                                   mlir::Value slot,
                                   llvm::ArrayRef<mlir::Value> acc,
                                   Values &results) override;
  void emitMmaWait(Lanes &lower, Values &values, int64_t younger) override;
  mlir::LogicalResult emitScale(LaneLowering &lower, RingWaitOp op,
                                mlir::Value slot, float by) override;
  void emitStagger(Lanes &lower, mlir::Value group) override;
  /// Bytes that a product contracts by rows of a slot lie by its columns, put
  /// there by a team.
  std::optional<TransposedTile> turnedTile(Lanes &lower,
                                           KVBufferAttr params) override;
  mlir::LogicalResult emitStoreVia(LaneLowering &lower, FragmentStoreOp op,
                                   const TileView &tile,
                                   llvm::ArrayRef<mlir::Value> values,
                                   mlir::Value buffer) override;
  void emitTeamEnd(LaneLowering &lower) override;

private:
  /// The barriers of a team, made at their first use.
  static int64_t once(LaneLowering &lower, int64_t &first, int64_t count) {
    if (!first)
      first = lower.barriers.take(count);
    return first;
  }
  mlir::Value descriptor(LaneLowering &lower, mlir::Value offset,
                         int64_t leadingBytes, int64_t strideBytes,
                         int64_t swizzleBytes);
  void waitForStores(LaneLowering &lower);

  /// Descriptors of byte 0 of LDS, by their constant part.
  llvm::DenseMap<int64_t, mlir::Value> origins;
  int64_t storeBarriers = 0, scaleBarriers = 0;
  bool storesInFlight = false;
};

} // namespace kvbuf::hopper

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_NVIDIA_MACHINEHOPPER_H
