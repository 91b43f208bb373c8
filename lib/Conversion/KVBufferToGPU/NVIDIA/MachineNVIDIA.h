//===- MachineNVIDIA.h - Movement on NVIDIA, sm_80 and later ----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The machine that later NVIDIA machines derive from: copies of 16 bytes a
/// lane, and fragments by ldmatrix.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_NVIDIA_MACHINENVIDIA_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_NVIDIA_MACHINENVIDIA_H

#include "KVBufferToGPU/Lanes.h"

namespace kvbuf {

/// sm_80 and later.
class NVIDIAMachine : public Machine, public NamedBarriers {
public:
  NamedBarriers *namedBarriers() override { return this; }
  bool sharesReciprocals() const override { return true; }
  mlir::LogicalResult prepare(Lanes &lower,
                              mlir::gpu::GPUFuncOp kernel) override;
  void tokenTypes(Lanes &lower, KVBufferAttr params,
                  llvm::SmallVectorImpl<mlir::Type> &types) override;
  Values emitLoad(Lanes &lower, DramLoadOp op, const TileView &tile,
                  mlir::Value slot) override;
  void emitStage(Lanes &lower, LdsStageOp op,
                 llvm::ArrayRef<Values> tokens) override;
  void emitMeet(Lanes &lower) override;
  void emitLanding(Lanes &lower) override;
  void emitNamedBarrier(Lanes &lower, mlir::Value id, int64_t threads,
                        bool wait) override;
  mlir::LogicalResult emitFragmentLoad(Lanes &lower, FragmentLoadOp op,
                                       mlir::Value slot,
                                       Values &words) override;
  mlir::LogicalResult emitTileFragment(Lanes &lower, TileFragmentOp op,
                                       const TileView &tile,
                                       Values &words) override;

protected:
  /// A tile to copy into LDS at byte `slot`, by `threads` threads of which
  /// `lower.thread` is one.
  struct Copy {
    TileType type;
    KVBufferAttr params;
    int64_t threads;
    /// Of a buffer that is filled block by block: which one.
    int64_t block = 0;
    /// Bytes that a lane copies at a time: 16, 8 or 4.
    int64_t bytes = kTensorAlignment;
    /// Steps of rows whose copies stand beside each other, the rest is a loop;
    /// 0: all of them.
    int64_t stepsAtOnce = 0;
    /// Not null: only rows `group` (i32) * `groupRows` to the next multiple.
    mlir::Value group = nullptr;
    int64_t groupRows = 0;
    /// Whether not every column is valid (`TileView::cols`).
    bool checkCols = false;
    /// The element that row `row` (i32) of a tile over small pages begins with;
    /// null: each row is looked up.
    llvm::function_ref<mlir::Value(mlir::Value row)> lineOf = {};
    /// Not empty: the page (i32) of the lane's row in each step; the same value
    /// where `alignedPages` says that steps lie in pages one after the other.
    llvm::ArrayRef<mlir::Value> pages = {};
    bool alignedPages = false;
    /// Whether each step takes whole pages, from the first row of one on.
    bool wholePages = false;
    /// Threads that copy a row of an LDS block together, and the rows that
    /// all of them copy in one step.
    int64_t perRow(const SharedTile &layout) const;
    int64_t rowsPerStep(const SharedTile &layout) const;
  };
  /// A copy by a lane, and the steps of a tile's, by vectors and by words
  /// (MachineNVIDIACopies.cpp).
  struct LaneCopy;
  struct CopySteps;
  struct WordSteps;
  /// Asks LLVM not to unroll a loop.
  static void keepLoop(mlir::scf::ForOp loop);
  /// Starts a tile's copies. `checkRows`: not every row is valid.
  void emitCopies(Lanes &lower, const Copy &copy, const TileView &tile,
                  mlir::Value slot, bool checkRows);
  /// The same, `copy.bytes` (8 or 4) at a time and in a loop of little code,
  /// for tiles whose rows do not begin at multiples of 16 bytes: `async` copies
  /// where they begin at multiples of these, else by loads of elements, which
  /// the threads wait for, and stores.
  void emitWordCopies(Lanes &lower, const Copy &copy, const TileView &tile,
                      mlir::Value slot, bool async);
  /// A matrix of 8 rows that ldmatrix reads: its first row and column in the
  /// slot.
  struct Matrix {
    int64_t row, col;
  };
  /// The reads of a fragment by ldmatrix (MachineNVIDIAMatrices.cpp).
  struct MatrixReads;
  /// Reads of a slot of bytes by ldmatrix, an element of which is two of them
  /// (PairReads.h), with the matrices that there are of such a fragment.
  struct PairReads;
  struct ByteMatrices;
  struct NarrowMatrices;
  /// How many matrices from the first one on an instruction loads, 4, 2 or 1:
  /// they lie in one block of `blockCols` columns, and their places differ by
  /// bits of their own.
  static int64_t matricesAtOnce(llvm::ArrayRef<Matrix> matrices,
                                int64_t blockCols);
  /// Loads a fragment whose elements are wider than the slot's.
  mlir::LogicalResult emitNarrowFragmentLoad(Lanes &lower, FragmentLoadOp op,
                                             mlir::Value slot, Values &words);
  /// Loads a fragment of 8-bit elements whose slot's rows are contracted, by
  /// transposed reads of pairs (MachineNVIDIABytes.cpp).
  mlir::LogicalResult emitByteFragmentLoad(Lanes &lower, FragmentLoadOp op,
                                           mlir::Value slot, Values &words);
  /// A load's copies, of the kind that the tile's rows allow.
  void emitTileCopies(Lanes &lower, DramLoadOp op, const Copy &whole,
                      const TileView &tile, mlir::Value slot);

  // Through registers (MachineNVIDIAStaging.cpp).

  /// The copies whose vectors a lane loads and stores instead.
  static Copy stagedCopy(Lanes &lower, KVBufferAttr params);
  /// The types of the vectors that a lane holds of a tile.
  static void stagedTypes(Lanes &lower, KVBufferAttr params,
                          llvm::SmallVectorImpl<mlir::Type> &types);
  /// Loads them; what is not valid is zero.
  static Values emitStagedLoads(Lanes &lower, DramLoadOp op,
                                const TileView &tile);
  /// Stores them in the slot at byte `slot`.
  static void emitStagedStores(Lanes &lower, KVBufferAttr params,
                               mlir::Value slot,
                               llvm::ArrayRef<mlir::Value> vectors);
  /// Whether the kernel has asynchronous copies, whose groups waits count.
  /// Loads through registers are groups without a copy then, as `younger`
  /// counts all loads.
  bool hasAsyncCopies = true;

  /// Gets the pages of each step of a copy from the lanes that have them.
  /// `aligned`: the tile starts where a page does.
  static Values pagesOfSteps(Lanes &lower, Copy &copy, const TileView &tile,
                             bool aligned);
  /// The index, in elements, of (row, col) of a tile in LDS whose slot starts
  /// at element `first`, moved by the terms of `address`.
  static mlir::Value emitAddress(Lanes &lower, const LinearAddress &address,
                                 mlir::Value first, KVBufferAttr params,
                                 int64_t row, int64_t col);
  /// The images under a tile's layout of an element coordinate's bits, in
  /// elements; `log2Step` is the coordinate's distance of one.
  static llvm::SmallVector<int64_t> imagesOf(const SharedTile &tile,
                                             llvm::StringRef dim,
                                             unsigned log2Step, unsigned bits);
};

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_NVIDIA_MACHINENVIDIA_H
