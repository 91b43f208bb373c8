//===- MachineAMD.h - Movement on AMD's CDNA --------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// How tiles come into LDS and fragments out of it on CDNA3 and CDNA4.
///
/// A tile is a range of DRAM (a buffer descriptor): its length cuts the rows
/// that are not there, so that they read as zero. Lanes address it by 32-bit
/// byte offsets; the range's own base has 64 bits. Two ways lead into LDS:
///
/// * *direct*: an instruction of a wave copies `width` bytes a lane to
///   consecutive bytes of LDS, so the swizzle is applied to the source. A wave
///   takes *units* of 32 rows x BK columns (seed page KVBuffer), fewer rows
///   where that deals them evenly; each is two instructions.
/// * *register staged*: lanes load vectors, which the token carries to the
///   `lds_stage` that writes them. What is contracted by rows goes this way
///   where LDS cannot be read transposed, and rows of pages that an
///   instruction would straddle.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_AMD_MACHINEAMD_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_AMD_MACHINEAMD_H

#include "RowSource.h"
#include "kvbuffer/Target/ReadGroups.h"

namespace kvbuf {

/// How a direct copy of a tile, or of some of its LDS blocks, is dealt to the
/// waves.
struct CopyPlan {
  /// Bytes a lane and instruction; bytes and rows of one instruction.
  int64_t width, bytes, rows;
  /// Rows and instructions of a unit; row groups of a block; LDS blocks, and
  /// the first one.
  int64_t unitRows, unitInstructions, rowGroups, blocks, firstBlock;
  /// Waves, and units that a wave takes at most. At each step `wavesPerBlock`
  /// waves, a power of two, have row groups side by side of a block, and the
  /// next ones those of the next of `blocksPerStep` blocks; steps walk through
  /// a block's row groups first.
  int64_t waves, steps, wavesPerBlock, blocksPerStep;
  /// Whether every wave has a unit at every step.
  bool even;

  /// `threads` copy `blocks` LDS blocks together, by instructions of `width`
  /// bytes a lane.
  CopyPlan(const TargetInfo &target, KVBufferAttr params, int64_t threads,
           int64_t width, int64_t firstBlock, int64_t blocks);
  int64_t stepsPerBlock() const { return rowGroups / wavesPerBlock; }
};

/// Where the parts of a copy come from.
struct CopySource {
  RowSource &rows;
  /// The descriptor of all rows, and how many bytes further they are, where
  /// they have one; made, or pages looked up, by the first part.
  mlir::Value range, shift;
  bool known = false;
};

/// How boxes of a tile are dealt to the waves of a block (`kvbuffer.box_copy`):
/// wave w has the blocks of columns from (s * warps + w) * blocks on at step s.
struct BoxPlan {
  int64_t blocks, steps, all;
  BoxPlan(KVBufferAttr params, int64_t warps)
      : all(params.getSmemCols() / params.getBK()) {
    blocks = all % warps == 0 ? all / warps : 1;
    steps = llvm::divideCeil(all, blocks * warps);
  }
};

/// Whether an engine copies all of a load's tile: its rows are one stride apart
/// from the first on, and its columns fill the slot.
bool copiesBoxes(const TileLoad &load);

/// The parts of a tile's copy by `threads`: what divides evenly among waves by
/// the widest instructions, and the rest by narrower ones, if that does then.
/// None: no instruction has rows that divide a block's.
llvm::SmallVector<CopyPlan> planCopies(const TargetInfo &target,
                                       KVBufferAttr params, int64_t threads);

/// How a register-staged tile is dealt to the threads: thread t takes piece
/// s * threads + t at step s. A piece is a vector of `width` elements of the
/// slot, 16 bytes, or, if `transposed`, four keys x `width` columns.
struct StagingPlan {
  bool transposed;
  int64_t width = 0;
  /// If not transposed: the bytes of a vector that the slot's layout keeps
  /// together, all or half.
  int64_t partBytes = 0;
  /// If transposed: the bit of the number of four keys that says in which half
  /// of a lane's word they stand.
  unsigned halfBit = 0;
  int64_t threads, pieces, steps;
  /// Vectors that a lane holds for one piece.
  int64_t vectors() const { return transposed ? 4 : 1; }
  /// A power of two such that the lanes of a wave have rows of one and the same
  /// group of so many, at each step; 0 where that is not known.
  int64_t rowsOfWave(KVBufferAttr params, int64_t waveSize) const;
  /// If transposed: how the lanes of a wave store four keys of a column.
  LaneAccess stores(KVBufferAttr params) const;

  /// `threads` copy together; `halfBit` as above; an element has `loadedBits`
  /// in DRAM.
  StagingPlan(const TargetInfo &target, KVBufferAttr params, int64_t threads,
              unsigned halfBit, unsigned loadedBits);
};

class AMDMachine : public Machine {
public:
  mlir::LogicalResult prepare(Lanes &lower,
                              mlir::gpu::GPUFuncOp kernel) override;
  mlir::Attribute dramSpace(mlir::MLIRContext *context) override;
  /// Lanes reach a tile's rows by offsets of 31 bits.
  int64_t maxRowStride(int64_t rows, int64_t elementBytes) const override {
    return INT32_MAX / (rows * elementBytes);
  }
  mlir::Value uniform(Lanes &lower, mlir::Value value) override;
  void tokenTypes(Lanes &lower, KVBufferAttr params,
                  llvm::SmallVectorImpl<mlir::Type> &types) override;
  Values emitLoad(Lanes &lower, DramLoadOp op, const TileView &tile,
                  mlir::Value slot) override;
  void emitStage(Lanes &lower, LdsStageOp op,
                 llvm::ArrayRef<Values> tokens) override;
  void emitMeet(Lanes &lower) override;
  void emitLoopEnd(Lanes &lower, mlir::scf::ForOp loop) override;
  void emitLanding(Lanes &lower) override;
  mlir::LogicalResult emitFragmentLoad(Lanes &lower, FragmentLoadOp op,
                                       mlir::Value slot,
                                       Values &words) override;
  mlir::LogicalResult emitTileFragment(Lanes &lower, TileFragmentOp op,
                                       const TileView &tile,
                                       Values &words) override;
  mlir::Value roundOperand(Lanes &lower, mlir::Value value,
                           mlir::VectorType type, bool isProbability) override;
  mlir::Value addElements(Lanes &lower, mlir::Value sum,
                          mlir::Value vector) override;
  /// LLVM's scheduler places vector instructions beside MFMAs of their own
  /// block.
  bool branchesBesideProducts() const override { return false; }
  void emitEnd(Lanes &lower) override;

  /// Bytes that a lane reads at once of the `bytes` that it has of a turned
  /// tile, whose words of 8 bytes move: as many as an instruction takes, or, of
  /// more, such words.
  static int64_t turnedReadBytes(int64_t bytes) {
    return bytes > kWidestRead ? 8 : bytes;
  }
  /// How a fragment lies in a slot whose rows are contracted: operand a's
  /// columns are rows there.
  static LinearLayout layoutInSlot(Lanes &lower, FragmentType type);

protected:
  /// The barrier of the block; nothing in a team, which is one wave.
  virtual void emitBarrier(Lanes &lower);
  /// Loads a tile into LDS at byte `slot`; returns what goes through registers.
  Values emitTileLoad(Lanes &lower, const TileLoad &load, const TileView &tile,
                      mlir::Value slot);
  /// Lays out a tile that is turned on its way for the warps of `schedule`,
  /// which load it by `load`.
  mlir::LogicalResult layOutTurned(Lanes &lower, mlir::Operation *load,
                                   KVBufferAttr params, ScheduleAttr schedule);
  /// Says that no instruction copies a part of such rows (`planCopies`).
  static mlir::LogicalResult refuseRows(mlir::Operation *load,
                                        const TargetInfo &target,
                                        KVBufferAttr params);
  /// Stores it there.
  void emitStagedStores(Lanes &lower, KVBufferAttr params, mlir::Value slot,
                        llvm::ArrayRef<mlir::Value> vectors);

private:
  /// Bytes of LDS from byte 0 on.
  mlir::Value ldsBytes(Lanes &lower);
  /// The layout of a tile that is turned on its way into LDS (`isTurnedInLds`):
  /// in the order in which it is read, its columns folded so that neither the
  /// stores of the kernel's load nor the reads share banks.
  TransposedTile transposedTile(Lanes &lower, KVBufferAttr params);
  TransposedTile foldedTile(Lanes &lower, KVBufferAttr params,
                            ScheduleAttr schedule);
  /// The same without folds.
  TransposedTile unfoldedTile(Lanes &lower, KVBufferAttr params);
  std::optional<TransposedTile> turnedTile(Lanes &lower,
                                           KVBufferAttr params) override;
  /// The plans of the warps of `schedule`, by default the one that is being
  /// lowered.
  llvm::SmallVector<CopyPlan> copyPlans(Lanes &lower, KVBufferAttr params,
                                        ScheduleAttr schedule = {});
  StagingPlan stagingPlan(Lanes &lower, KVBufferAttr params,
                          ScheduleAttr schedule = {});

  // Copies (MachineAMDCopies.cpp, MachineAMDStaging.cpp).
  void emitCopies(Lanes &lower, const TileLoad &load, const TileView &tile,
                  mlir::Value slot);
  /// The same by an engine; or, where nothing is asked of it, instructions that
  /// it counts as it does those.
  void emitBoxes(Lanes &lower, const TileLoad &load, const TileView &tile,
                 mlir::Value slot, bool asks = true);
  /// The same by one part of the plan.
  void emitCopies(Lanes &lower, KVBufferAttr params, const CopyPlan &plan,
                  CopySource &from, mlir::Value slot);
  /// The same for a tile some of whose columns are not valid, or that begins at
  /// any address: no instruction copies a part of a vector, so that lanes load
  /// and store. Waits for it.
  void emitCutCopies(Lanes &lower, const TileLoad &load, const TileView &tile,
                     mlir::Value slot);
  /// The type of `width` of a buffer's elements on their way through registers:
  /// LLVM has no 8-bit floats.
  mlir::VectorType vectorInRegisters(KVBufferAttr params, int64_t width) const;
  struct StagedLoads;
  /// `checkCols`: some of the tile's columns are not valid, or its rows are no
  /// range of memory.
  Values emitStagedLoads(Lanes &lower, const TileLoad &load,
                         const TileView &tile, bool checkCols);

  /// Loads in flight that any younger load of this kernel is at least, in
  /// instructions of a wave.
  int64_t instructionsPerLoad = 0;
  /// The elements of tiles that are loaded into buffers of these parameters,
  /// where they are widened on their way.
  llvm::DenseMap<KVBufferAttr, mlir::Type> narrowElements;
  /// A fragment that is read from buffers of these parameters.
  llvm::DenseMap<KVBufferAttr, FragmentType> readers;
  /// The layouts of the kernel's tiles that are turned on their way into LDS.
  llvm::DenseMap<KVBufferAttr, TransposedTile> turnedTiles;
};

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_AMD_MACHINEAMD_H
