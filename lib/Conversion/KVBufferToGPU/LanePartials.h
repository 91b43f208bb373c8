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

class LaneLowering;

/// The lane values of a softmax over some of the keys.
struct SoftmaxState {
  Values acc, max, sum;
};

/// Words of a row that a lane moves at once: registers of vectors, and where
/// they lie in the row's memory less what depends on the lane.
struct Words {
  llvm::SmallVector<std::pair<int64_t, int64_t>> registers;
  int64_t at;
};

/// How lanes access the rows of a partial result.
class RowMemory {
public:
  /// `columns`: the column at each bit of a place in a row.
  RowMemory(Lanes &lower, FragmentType type, const FragmentLayout &atom,
            llvm::ArrayRef<int64_t> columns);

  /// What depends on the lane.
  mlir::Value lane;
  /// Words that are moved at once.
  int64_t atOnce;
  /// Those of row part `part`, where the first atom is vector `first`.
  llvm::SmallVector<Words> of(int64_t first, unsigned part) const;

private:
  int64_t placeOf(int64_t col) const;

  llvm::ArrayRef<int64_t> columns;
  /// The words of each row part, one by one, by place: of vectors from 0 on.
  llvm::SmallVector<llvm::SmallVector<Words>> parts;
};

/// Whether a row part that begins at row `offset` has no valid row in any lane:
/// the memory has no room for it, or the program says how many there are.
bool isPast(mlir::Value valid, int64_t room, int64_t offset);

/// What runs of columns are aligned to in a tensor of rows of `width`.
llvm::Align alignOf(int64_t run, int64_t width);

/// How lanes access what an op stores or loads; an error at the op if its order
/// of columns does not fit.
template <typename OpTy>
mlir::FailureOr<RowMemory> rowMemory(Lanes &lower, OpTy op,
                                     const FragmentLayout &atom) {
  FragmentType type = op.getAcc().getType();
  llvm::ArrayRef<int64_t> columns =
      op.getColumns().value_or(llvm::ArrayRef<int64_t>());
  int64_t block = int64_t(1) << columns.size(), own = atom.warpCols(type);
  if (own % block)
    return op.emitOpError()
           << "has columns in an order of " << block << " of them; a warp has "
           << own << ", expected a multiple";
  return RowMemory(lower, type, atom, columns);
}

/// Lowers an op; its model calls it (LaneModels.cpp).
mlir::LogicalResult lowerOp(LaneLowering &lower, PartialStoreOp op);
mlir::LogicalResult lowerOp(LaneLowering &lower, PartialLoadOp op);
void lowerOp(Lanes &lanes, SoftmaxMergeOp op);
void lowerOp(LaneLowering &lower, SoftmaxSinkOp op);
mlir::LogicalResult lowerOp(LaneLowering &lower, PartialJoinOp op);

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEPARTIALS_H
