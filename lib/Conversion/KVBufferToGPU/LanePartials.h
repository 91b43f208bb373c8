//===- LanePartials.h - Partial results in memory ---------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEPARTIALS_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEPARTIALS_H

#include "Lanes.h"

namespace kvbuf {

/// The lane values of a softmax over some of the keys.
struct SoftmaxState {
  Values acc, max, sum;
};

/// Words of a row that a lane moves at once: registers of vectors, and where
/// they lie in the row's memory less what depends on the lane.
struct Words {
  llvm::SmallVector<std::pair<int64_t, int64_t>> registers;
  int64_t at;
  /// The first of their atoms.
  int64_t atom = 0;
};

/// How lanes access the rows of a partial result. Where columns have an order
/// of their own, so have rows, if there is room for a multiple of eight: the
/// blocks of columns of eight rows lie side by side, before those of the next
/// columns, and what a warp moves at once is one piece of memory. (Rows one
/// after the other take half a sector more at each end of a piece.)
class RowMemory {
public:
  /// `columns`: the column at each bit of a place in a row; `room`, `width`:
  /// the memory's rows and words of each, as its type says them.
  RowMemory(LaneContext &lower, FragmentType type, const FragmentLayout &atom,
            llvm::ArrayRef<int64_t> columns, int64_t room, int64_t width);

  /// Where words of row `r`, i32, begin, and where its maximum and sum lie.
  mlir::Value lineOf(LaneContext &lower, mlir::Value r) const;
  mlir::Value pairOf(LaneContext &lower, mlir::Value r) const;
  /// What words, and a maximum and a sum, are aligned to.
  llvm::Align alignment() const;
  llvm::Align pairAlignment() const;

  /// What depends on the lane.
  mlir::Value lane;
  /// Words that are moved at once.
  int64_t atOnce;
  /// Those of row part `part`, where the first atom is vector `first`.
  llvm::SmallVector<Words> of(int64_t first, unsigned part) const;

private:
  int64_t placeOf(int64_t col) const;
  /// Where a place of a row is from the row's first one on.
  int64_t offsetOf(int64_t place) const;

  llvm::ArrayRef<int64_t> columns;
  /// Places of a block of columns; the memory's rows, words of each, columns.
  int64_t block, room, width, cols;
  /// Whether rows lie together.
  bool together;
  /// The words of each row part, one by one, by place: of vectors from 0 on.
  llvm::SmallVector<llvm::SmallVector<Words>> parts;
};

/// Whether a row part that begins at row `offset` has no valid row in any lane:
/// the memory has no room for it, or the program says how many there are.
bool isPast(mlir::Value valid, int64_t room, int64_t offset);

/// How lanes access what an op stores or loads; an error at the op if its order
/// of columns does not fit.
template <typename OpTy>
mlir::FailureOr<RowMemory> rowMemory(LaneContext &lower, OpTy op,
                                     const FragmentLayout &atom) {
  FragmentType type = op.getAcc().getType();
  llvm::ArrayRef<int64_t> columns =
      op.getColumns().value_or(llvm::ArrayRef<int64_t>());
  int64_t block = int64_t(1) << columns.size(), own = atom.warpCols(type);
  if (own % block)
    return op.emitOpError()
           << "has columns in an order of " << block << " of them; a warp has "
           << own << ", expected a multiple";
  llvm::ArrayRef<int64_t> shape =
      mlir::cast<mlir::MemRefType>(op.getParts().getType()).getShape();
  return RowMemory(lower, type, atom, columns, shape.end()[-2], shape.back());
}

/// Lowers an op; its model calls it (LaneModels.cpp).
mlir::LogicalResult lowerOp(LaneContext &lower, PartialStoreOp op);
mlir::LogicalResult lowerOp(LaneContext &lower, PartialLoadOp op);
void lowerOp(LaneContext &lanes, SoftmaxMergeOp op);
void lowerOp(LaneContext &lower, SoftmaxSinkOp op);
mlir::LogicalResult lowerOp(LaneContext &lower, PartialJoinOp op);

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEPARTIALS_H
