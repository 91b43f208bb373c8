//===- FragmentLayout.h - Which lane holds what -----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_CONVERSION_FRAGMENTLAYOUT_H
#define KVBUFFER_CONVERSION_FRAGMENTLAYOUT_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"

namespace kvbuf {

/// What the lane level asks of one layout (`FragmentLayoutInterface`).
///
/// A warp's part of a fragment is a grid of *atoms*, listed row by row in the
/// product's coordinates ([m][k], [k][n], [m][n]); an atom's elements in a lane
/// are its registers.
class FragmentLayout {
public:
  explicit FragmentLayout(FragmentLayoutInterface attribute);

  /// One atom: ("register", "lane") -> ("row", "col"), in coordinates of the
  /// product: a is [rows of S][K], b is [K][columns], accumulators and what has
  /// their layout [rows][columns].
  LinearLayout layout;
  /// The atom's extents in those coordinates.
  int64_t rows, cols;
  /// Whether the fragment's rows are the atom's columns (`transpose_b`).
  bool turned = false;
  /// Parts that the warps cut the fragment's rows and columns into.
  int64_t rowWarps, colWarps;
  /// The grid of warps over the products' results that the layout is of: warp w
  /// has part w mod `gridRows` of their rows and part w / `gridRows` of their
  /// columns. An operand is cut along one of the two.
  int64_t gridRows = 1, gridCols = 1;
  /// Whether parts of the fragment are chosen by a warp's place along the
  /// grid's columns, as those of operand b are.
  bool byGridCols = false;
  /// Elements in one word of an operand: the unit in which a lane's values of
  /// roles a and b are kept; the words of a group of instructions are one.
  int64_t words;

  /// Whether several warps share the columns of the products' results.
  bool sharesCols() const { return gridCols > 1; }
  int64_t registers() const { return int64_t(1) << layout.inLog2("register"); }
  /// The atom's extents as the fragment lies.
  int64_t fragmentRows() const { return turned ? cols : rows; }
  int64_t fragmentCols() const { return turned ? rows : cols; }
  /// Rows and columns that one warp holds of a fragment.
  int64_t warpRows(FragmentType type) const {
    return type.getRows() / rowWarps;
  }
  int64_t warpCols(FragmentType type) const {
    return type.getCols() / colWarps;
  }
  /// The atoms of a fragment that a warp holds, and those in a row of its grid
  /// in the product's coordinates.
  int64_t atoms(FragmentType type) const;
  int64_t atomCols(FragmentType type) const;

  /// Registers of one atom, grouped by row: the row inside of the atom that the
  /// registers with equal row part have at lane 0, ascending.
  llvm::ArrayRef<int64_t> rowParts() const { return rowOffsets; }
  /// The index into `rowParts` of a register.
  unsigned rowPart(int64_t reg) const;
  /// The row in a warp's part of row part `part` of atom row `atomRow`, less
  /// what depends on the lane.
  int64_t rowOffset(int64_t atomRow, unsigned part) const {
    return atomRow * rows + rowOffsets[part];
  }
  /// The column of a register in the atom, less what depends on the lane.
  int64_t colOffset(int64_t reg) const {
    return layout.apply({{"register", reg}}, "col");
  }
  /// Values that a lane holds of a fragment with one value for each row.
  int64_t rowValues(FragmentType type) const {
    return warpRows(type) / rows * rowOffsets.size();
  }
  /// Lane bits that lanes with the same row differ in.
  llvm::ArrayRef<unsigned> reductionBits() const { return reduceBits; }
  /// The elements, a power of two, that a lane holds in a row of registers and
  /// of columns.
  int64_t columnRun() const;
  /// The lane bits, ascending by column, whose 2^s lanes share every `width`
  /// columns of a row, one 32-bit word of `bits`-bit elements each and nothing
  /// else: after a transposition of words among them, a lane holds all of a
  /// vector. Empty where the layout is another: a run that is no word, lanes
  /// that hold more or fewer of the columns.
  llvm::SmallVector<unsigned> vectorLanes(int64_t bits, int64_t width) const;

private:
  llvm::SmallVector<int64_t> rowOffsets;
  llvm::SmallVector<unsigned> reduceBits;
};

} // namespace kvbuf

#endif // KVBUFFER_CONVERSION_FRAGMENTLAYOUT_H
