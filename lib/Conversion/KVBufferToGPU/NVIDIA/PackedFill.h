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
#include "kvbuffer/Dialect/KVBuffer/IR/PackedRow.h"
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
  /// The slot's columns; of where one warp has all of them one alone, of which
  /// the part is, and the first column's place in it.
  llvm::SmallVector<RowSegment> segments;
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
  int64_t bytesOfWarp() const {
    return rows() * (elementBytesOf(segments) + scaleBytesOf(segments));
  }
  /// Of this warp's rows the one that the lane knows; i32.
  mlir::Value ownKnown();
  /// The same of the row that the lane knows, without scales, and how many
  /// words that is.
  int64_t words() const { return 2 + (isWidened() && hasTail()); }
  Values knownAhead(mlir::Value entry);
  /// Asks for the bytes of this warp's rows, and for their scales.
  void copyAhead(llvm::ArrayRef<mlir::Value> known);
  /// Widens them; before `wait`, what registers bear.
  void widenAhead(llvm::function_ref<void()> wait);
  /// Whether columns are pieces of 128 with an f32 scale each, or copied: their
  /// code has fewer addresses (H200, 64 heads: 95.7 us for 102.3).
  bool isOfPieces() const;
  void copyPieces(llvm::ArrayRef<mlir::Value> known);
  /// Bytes of a block of such a piece, and their scale.
  std::pair<mlir::Value, mlir::Value> readPiece(int64_t step, int64_t chunk,
                                                int64_t side);
  /// Elements of a block of 64 columns and a step's rows, eight of which each
  /// lane has: where the block is among the slot's, and in its segment, of
  /// which the first unit of bytes and the first byte of scales are.
  struct Piece {
    int64_t step, block, inSegment, unit, scales;
    const RowSegment *segment;
    /// This lane's bytes, their scale, and what they come to.
    mlir::Value data, scale, wide;
  };
  llvm::SmallVector<Piece> piecesOf() const;
  void read(Piece &piece);
  void widen(Piece &piece);
  /// The scale of a piece's elements, of which scales lie from byte `at` on.
  mlir::Value scaleOf(const Piece &piece, mlir::Value at);
  /// Asks for the scales of the row that this lane knows.
  void copyScales(llvm::ArrayRef<mlir::Value> known);
  /// A copy ahead of slots; `there`: whether the bytes are read, zeros if not.
  void copyOne(mlir::Value to, mlir::Value from, int64_t size,
               mlir::Value there);
  /// An address of 64 bits of its halves, and whether the row is absent, if the
  /// lowest bit may say so.
  std::pair<mlir::Value, mlir::Value> addressOf(mlir::Value low,
                                                mlir::Value high);
  /// Elements of 16 bits to the own and the others' slots.
  void storeWide(mlir::Value x, mlir::Value at);
  /// Batches of rows that this block has, and bytes of what others send.
  int64_t batches() const { return params.getBN() / blocks / kBatchRows; }
  int64_t bytesOfOthers() const {
    return params.getStageBytes() / blocks * (blocks - 1);
  }
  bool isWidened() const {
    return !isCopiedWhole(segments, params.getElementType());
  }
  /// Whether scales lie apart from the row: a lane then knows how far behind
  /// the row's first byte its tail is.
  bool hasTail() const;
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
  /// Byte in a warp's memory of a row's unit of 64 bytes: units of the rows lie
  /// side by side, of odd ones the rows change places in pairs, so that two
  /// units of a row lie in different banks.
  mlir::Value inUnit(int64_t step, bool odd);
  /// The same for lanes that have 16 bytes of two units from `unit` on.
  mlir::Value inUnits(int64_t step, int64_t unit);
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
