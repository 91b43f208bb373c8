//===- TileView.h - A tile in DRAM, for lanes and engines -------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// All that is known of a tile in DRAM, whoever made it: how its rows are
/// found, which of them are valid, where its edges are, and which boxes of its
/// tensor it is. What a tile's op says is asked here, and nowhere else.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_CONVERSION_TILEVIEW_H
#define KVBUFFER_CONVERSION_TILEVIEW_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "llvm/ADT/SmallVector.h"

namespace kvbuf {

using Values = llvm::SmallVector<mlir::Value>;

class LaneContext;
class RowPlaces;

/// How the rows of a tile are found.
enum class RowMap {
  /// One stride apart.
  Strided,
  /// Pages follow each other, `pageStride` apart: groups of rows (`dram_tile`).
  Groups,
  /// A table names pages: of a small-page cache, or rows that are gathered.
  Table,
  /// Lanes have looked the pages up already.
  Lanes,
  /// By code that the cache's type emits, or the tile's own op, row by row.
  Places
};

/// Where a tile ends in its tensor, by what its op says.
struct TileEdges {
  /// The dimension that its rows run along; its columns run along the last.
  int64_t rowDimension = 0;
  /// Whether rows before (after) the tile's valid ones, or columns after them,
  /// may exist in the tensor, so that reading them is not the same as reading
  /// zeros.
  bool rowsBefore = false, rowsBehind = false, colsBehind = false;
};

/// Where a tile lies in its tensor, for engines that copy boxes of tensors.
struct TileBox {
  /// The kernel's argument; null of a tile that is not known to be one op's.
  mlir::Value tensor;
  /// The first row, then the indices of the other dimensions from the innermost
  /// on (head, and where the tensor has one, batch or block); i32.
  Values position;
  /// The first column, i32; null for 0.
  mlir::Value column;
};

/// A tile in DRAM.
class TileView {
public:
  TileType type;
  RowMap map = RowMap::Strided;
  TileEdges edges;
  TileBox box;

  /// Address of the tensor, element offset of row 0 column 0, row stride. Of
  /// `RowMap::Places` the offset is the head's.
  mlir::Value data, base, rowStride;
  /// Rows [lo, hi) are valid, i32.
  mlir::Value lo, hi;
  /// Columns [0, cols) are valid, i32 and less than 1 for none; null where all
  /// the tile's are.
  mlir::Value cols;
  /// Of all maps with pages: the key of row 0 and the stride of pages; of
  /// `RowMap::Places` a multiple of what all strides but that of rows are.
  mlir::Value firstKey, pageStride;
  /// Of `RowMap::Table`: the table and the index of the sequence's first entry.
  mlir::Value table, tableBase;
  /// Of a table that lists keys (`listsKeys`): the cache's last page, i32.
  mlir::Value lastPage;
  /// Of `RowMap::Lanes`: lane i has the number (i32) of the page that row i
  /// lies in, or 0 where no row of that page is valid.
  mlir::Value pages;
  /// Of `RowMap::Places`: the sequence, and who finds rows.
  mlir::Value batch;
  const RowPlaces *places = nullptr;

  /// The map of a tile, wherever it comes from.
  static RowMap mapOf(LaneContext &lanes, mlir::TypedValue<TileType> tile);
  /// Where a tile ends, and the dimension of its rows: of one that an op makes.
  static TileEdges edgesOf(mlir::Value tile);

  /// The lane values of a tile, and the tile that they are of, but for
  /// `places`.
  Values pack() const;
  static TileView unpack(LaneContext &lanes, mlir::TypedValue<TileType> tile,
                         mlir::ValueRange values);

  /// Whether rows are more than one stride apart.
  bool isPaged() const { return map != RowMap::Strided; }

  /// The element offset of row `row` (i32). Of a table no page is looked up
  /// unless `exists` (null: it does).
  mlir::Value lineOf(LaneContext &lanes, mlir::Value row,
                     mlir::Value exists = {}) const;
  /// Of a table: the number (i32) of the page that row `row` (i32) lies in, or
  /// of the page `ahead` entries further on.
  mlir::Value lookUpPage(LaneContext &lanes, mlir::Value row,
                         int64_t ahead = 0) const;
  /// The same as the table has it.
  mlir::Value entryOf(LaneContext &lanes, mlir::Value row, int64_t ahead) const;
  /// Of a table that lists keys: whether the page of row `row` (i32) exists.
  mlir::Value isListed(LaneContext &lanes, mlir::Value row) const;
  /// The number of its page that a lane has looked up.
  mlir::Value pageOfLane(LaneContext &lanes, mlir::Value row) const;
  /// The row in its page of row `row`; i32.
  mlir::Value rowInPage(LaneContext &lanes, mlir::Value row) const;
  /// The element offset of row `row`, which lies in page `page`; i32.
  mlir::Value lineInPage(LaneContext &lanes, mlir::Value row,
                         mlir::Value page) const;
};

/// Whether a table of pages of one token may have entries that no page is:
/// those of packed rows are lists of keys, of which the problem hides some.
/// Their rows are zeros (`isListed`): weights of 0 times what may be NaN in any
/// other row would be NaN.
bool listsKeys(mlir::Value tile);

/// Whether a load needs threads to copy: an engine's boxes may read rows that
/// must read as zero.
bool needsCopies(RingLoadOp op);

/// Whether a tile may have fewer columns than its type says.
bool mayCutColumns(DramTileOp op);

} // namespace kvbuf

#endif // KVBUFFER_CONVERSION_TILEVIEW_H
