//===- PackedFill.h - Slots of packed rows on sm_90a ------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What a warp does to fill a slot with columns of rows that are packed.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_NVIDIA_PACKEDFILL_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_NVIDIA_PACKEDFILL_H

#include "MachineHopper.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace kvbuf::hopper {

/// Lanes of a row, each with 16 bytes of a block of 128; rows of a step, and
/// those that the lanes of a warp know one each of.
inline constexpr int64_t kRowLanes = 8, kStepRows = 4, kBatchRows = 32;
/// The bit of an address of 16 bytes that says that a row does not exist.
inline constexpr int64_t kAbsent = 1;

/// Fills a slot.
struct BoxMachine::PackedFill {
  LaneLowering &lower;
  mlir::ImplicitLocOpBuilder &b;
  const TileView &tile;
  KVBufferAttr params;
  RowAttr row;
  /// The slot, and shared memory's address; i32.
  mlir::Value slot, ldsAddress;
  /// The part that all columns are of, and the first one's place in it.
  RowPartAttr part;
  int64_t first = 0;
  /// The lane's place in its row, and the row in its step; i32.
  mlir::Value place, group;
  /// Blocks of the cluster that fill the slot for each other, the first of this
  /// one's rows (i32), and the barrier that counts what comes from others.
  int64_t blocks = 1;
  mlir::Value firstRow, full;
  /// Warps that fill the slot together, where bytes come ahead of it, and where
  /// this one's lie; i32.
  int64_t warps = 1;
  mlir::Value bytes;
  /// Where this lane's entries of the table are that were asked for ahead, of
  /// even and, `stepOfEntries` further on, of odd fillings; i32. Null: nothing
  /// was.
  mlir::Value entries;
  int64_t stepOfEntries = 0;
  /// Whether the copy engine sends what a warp has widened to other blocks,
  /// once all of it is there; else lanes store each vector there, too.
  bool sends = false;

  PackedFill(LaneLowering &lower, const TileView &tile, KVBufferAttr params,
             RowAttr row, mlir::Value slot, mlir::Value ldsAddress);
  /// Divides the rows among the blocks of a cluster.
  void share(mlir::Value full);
  /// Divides the block's rows among warps, whose bytes lie from byte `bytes`
  /// on.
  void divide(int64_t warps, mlir::Value bytes);
  /// Rows of a warp, and the bytes that they and their scales take.
  int64_t rows() const { return params.getBN() / blocks / warps; }
  int64_t bytesOfWarp() const { return rows() * chunks() * (128 + 4); }
  /// Of this warp's rows the one that the lane knows; i32.
  mlir::Value ownKnown();
  /// Asks for the bytes of this warp's rows, and for their scales.
  void copyAhead(llvm::ArrayRef<mlir::Value> known);
  /// Widens them; before `wait`, what registers bear.
  void widenAhead(llvm::function_ref<void()> wait);
  /// This lane's bytes of one block of a step, and their scale.
  std::pair<mlir::Value, mlir::Value> readPiece(int64_t step, int64_t chunk,
                                                int64_t side);
  /// Their elements, times the scale.
  mlir::Value widenPiece(mlir::Value data, mlir::Value scale);
  /// Elements of 16 bits to the own and the others' slots.
  void storeWide(mlir::Value x, mlir::Value at);
  /// Batches of rows that this block has, and bytes of what others send.
  int64_t batches() const { return params.getBN() / blocks / kBatchRows; }
  int64_t bytesOfOthers() const {
    return params.getStageBytes() / blocks * (blocks - 1);
  }
  bool isWidened() const { return bool(part.getScale()); }
  /// Pieces of 128 columns that are widened.
  int64_t chunks() const { return params.getSmemCols() / 128; }

  mlir::Value add(mlir::Value x, mlir::Value y) {
    return mlir::arith::AddIOp::create(b, x, y);
  }
  mlir::Value mul(mlir::Value x, int64_t y) {
    return mlir::arith::MulIOp::create(b, x, lower.i32(y));
  }
  /// What lane `from` (i32) of the own group holds.
  mlir::Value ask(mlir::Value word, mlir::Value from);
  /// What a lane knows of a row: the address of its bytes in two halves, and
  /// the scale of each chunk. Of a row that a list does not have the lowest bit
  /// of the address is set, and scales are 0.
  /// `entry`: what the table says of the row; null: it is looked up.
  Values known(mlir::Value row, bool scales = true, mlir::Value entry = {});
  /// Bytes of an entry of the table.
  int64_t entryBytes() const;
  /// Asks for the entry of the row `next` rows behind the one that the lane
  /// knows, for filling `fill` (i32).
  void askEntry(int64_t next, mlir::Value fill);
  /// What `askEntry` has brought for a filling.
  mlir::Value entryOf(mlir::Value fill);
  /// The row of a step, and the byte of the lane's place in it within a block.
  mlir::Value rowOf(int64_t batch, mlir::Value step) {
    mlir::Value row =
        add(add(mul(step, kStepRows), group), lower.i32(batch * kBatchRows));
    return firstRow ? add(row, firstRow) : row;
  }
  /// Whether a row is one of the tile's (i1); `absent`, unless null: not 0
  /// where a list does not have it.
  mlir::Value isThere(mlir::Value row, mlir::Value absent);
  mlir::Value inBlock(mlir::Value row, mlir::Value vector);
  /// The same of bytes that are copied: 8 bytes of each lane of four rows lie
  /// in all banks.
  mlir::Value inCopy(mlir::Value row, mlir::Value vector);
  void copy(int64_t batch, llvm::ArrayRef<mlir::Value> known);
  /// Widens the rows of a step, of which the lane's is row `row` of those at
  /// byte `begin` in a slot's blocks.
  void widenStep(llvm::ArrayRef<mlir::Value> known, mlir::Value step,
                 mlir::Value row, mlir::Value begin);
  /// Sends this warp's rows of the slot to the other blocks' slots.
  void send();
  /// Says at a barrier (a pointer) that this warp has filled its part.
  void arrive(mlir::Value barrier);
  /// The loop over a batch's steps.
  mlir::scf::ForOp widen(int64_t batch, llvm::ArrayRef<mlir::Value> known);
};

} // namespace kvbuf::hopper

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_NVIDIA_PACKEDFILL_H
