//===- RowSource.h - Rows of tiles as ranges of DRAM ------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_AMD_ROWSOURCE_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_AMD_ROWSOURCE_H

#include "KVBufferToGPU/Lanes.h"

namespace kvbuf {

/// A tile that is loaded into a buffer's slot, by whichever op.
struct TileLoad {
  TileLoad(DramLoadOp op)
      : tile(op.getTile()), params(op.getBuffer().getType().getParams()),
        pred(op.getPred()), whole(op.getWhole()), block(op.getBlock()),
        ahead(
            llvm::any_of(op.getToken().getUsers(), [&](mlir::Operation *user) {
              return user->hasTrait<mlir::OpTrait::IsTerminator>() &&
                     user->getBlock() == op->getBlock();
            })) {}
  TileLoad(RingLoadOp op)
      : tile(op.getTile()), params(op.getRing().getType().getParams()),
        whole(op.getWhole()) {}

  TileType type() const { return tile.getType(); }

  mlir::TypedValue<TileType> tile;
  KVBufferAttr params;
  /// Whether the load is done at all; null: it is.
  mlir::Value pred;
  /// Whether all of the tile's rows are valid.
  bool whole;
  /// The block of columns that it takes.
  int64_t block = 0;
  /// Whether it runs ahead in a loop over tiles: there are some where it runs,
  /// and so is the cache's first page.
  bool ahead = false;
};

/// How the rows of a load's tile lie in pages smaller than it.
struct PagesOfTile {
  /// Rows of the tile and of a page; no pages: 0.
  int64_t rows, page;
  /// Whether the tile is known to begin at a multiple of its rows.
  bool atRows = false;
  /// The most pages that its rows are in.
  int64_t count = 0;
  /// Whether they are looked up for all lanes together, who select among them;
  /// or by lanes before the tile is loaded (`TileView::pages`). Every lane
  /// loads then, and waits can count.
  bool together = false, byLane = false;
  /// Whether each page begins and ends within the tile.
  bool aligned() const { return atRows && rows % page == 0; }

  /// `warps` copy together.
  PagesOfTile(const TargetInfo &target, const TileLoad &load, int64_t warps);
};

/// Whether rows of a load's tile before its first valid one may exist.
bool mayBeginLater(const TileLoad &load);

/// A tile's rows, the columns of them that a buffer takes, as ranges of DRAM.
class RowSource {
public:
  RowSource(Lanes &lower, const TileLoad &load, const TileView &tile);

  /// Bytes from one row to the next.
  mlir::Value stride;
  /// Whether each row has to be looked up in a table of pages.
  bool paged() const { return tile.isPaged(); }

  /// The range of the rows [first, first + rows), all of one page if paged;
  /// those that are not valid are outside. `first` is the same in all lanes.
  /// Lane offsets count from row `first` and need `shift` added. `line`: the
  /// element offset of row `first`, where it is known already.
  mlir::Value range(mlir::Value first, int64_t rows, mlir::Value &shift,
                    mlir::Value line = {});

  /// The elements from a row of a page to one `rows` (i32) further on.
  mlir::Value rowsFurther(mlir::Value rows) {
    return mlir::arith::MulIOp::create(b, lower.toIndex(rows), tile.rowStride);
  }

  /// Whether each wave of the block looks up the pages of its own rows: of
  /// several waves each has rows of few of a tile's pages.
  bool looksUpOwn() const;

  /// The element offset of row `first` of rows [first, first + rows), all of
  /// one page, which is looked up here; it means nothing where none of them is
  /// valid. `first` is the same in all lanes.
  mlir::Value lineOfGroup(mlir::Value first, int64_t rows);

  /// Element offset of row `row` (an index) of the tile, by its page.
  /// `together`: the row is the same in all lanes.
  mlir::Value lineOf(mlir::Value row, bool together = false);

  /// Whether lanes have looked up the pages of the rows of their numbers, and
  /// ask each other where these begin.
  bool askLanes() const { return tile.map == RowMap::Lanes; }
  /// The element offset of such a row (an index) in `memoryOfAsked`; 0, where
  /// zeros lie, if it is not valid. Each lane makes that of the row of its
  /// number, once for all who ask. `mayHaveNone`: some who ask take zeros for
  /// what is not theirs, by an offset of 0.
  mlir::Value askLine(mlir::Value row, bool mayHaveNone);
  /// The memory, from column `col` (i32) on, that `askLine` counts from: no
  /// tile changes it.
  mlir::Value memoryOfAsked(mlir::Value col, bool mayHaveNone);
  /// Bytes of a row's columns that the buffer takes.
  int64_t columnBytes() const { return columns * elementBytes; }
  /// How many times a row's columns those are of which lanes ask for zeros:
  /// more where some have none of the tile's.
  int64_t zeroTimes = 1;

  /// The same of a lane's row (i32). Where it is not there none is looked up,
  /// and the offset means nothing.
  mlir::Value lineOfLane(mlir::Value row);

  /// Looks up the pages that rows of the tile may be in, the same for all lanes
  /// (scalar loads, for which no copy on its way has to land). `lineOf` then
  /// takes them by selection; it looks for itself where they are too many.
  void lookUpPages();

  /// Whether `lineOf` looks nothing up, so that it may be asked of rows that
  /// are not there.
  bool knowsPages() const {
    return tile.map == RowMap::Lanes || !pageLines.empty();
  }

  /// Whether rows `count` i to `count` i + `count` - 1 lie in one page, one
  /// after the other.
  bool keeps(int64_t count) const;

  /// Whether rows before the first valid one may exist, and rows past the last.
  bool beginsLater() const { return lo != nullptr; }

  /// How many rows are valid, of a tile whose first is; 0 where nothing is to
  /// be loaded. Perhaps more than the tile has.
  mlir::Value validRows();

  /// Whether a lane's row, one of the tile's, is valid.
  mlir::Value valid(mlir::Value row);
  /// Whether the kernel says that nobody stores to the tile's cache in a
  /// launch.
  bool isOnlyRead() const;

  /// `offset`, or a place outside of every range where column `col` (in bytes,
  /// plus `constant`) is past the buffer's. `bound`: a column that `col` +
  /// `constant` stays below.
  mlir::Value insideColumns(mlir::Value offset, mlir::Value col,
                            int64_t constant, int64_t bound);

  /// `offset`, or a place outside of every range. A lane's bound stays the same
  /// through a loop, in a vector register; a choice between offsets would take
  /// the mask of the lanes, two scalar registers.
  mlir::Value offsetIf(mlir::Value condition, mlir::Value offset);

private:
  /// A number (i32, not negative) times a stride, and `further` (i32, not
  /// negative; null: 0); indices. The halves are multiplied one by one: LLVM
  /// adds the high product to a register pair of which it leaves one undefined,
  /// perhaps the one that a look-up is to fill, and then waits for that.
  mlir::Value timesStride(mlir::Value number, mlir::Value stride,
                          mlir::Value further);
  /// Whether rows may be loaded whether they are there or not: some memory is.
  bool takesAny() const;

  /// Finds the element offset from `tile.base` of the row of each lane's
  /// number.
  void findOwnLine();
  mlir::Value ownInPage();
  mlir::Value zeros();
  /// The number `line` (an index) of the lane of a row's number (an index).
  mlir::Value ofLane(mlir::Value line, mlir::Value row, bool together);

  /// How many of some rows are valid, the first of them where rows before it
  /// may exist, and whether any is to be loaded.
  struct Extent {
    mlir::Value from, count, some;
  };
  Extent extentOf(mlir::Value first, int64_t rows);

  /// The element offset of row `row` (an index), whose page is looked up here.
  mlir::Value lookUp(mlir::Value row);

  mlir::Value sub(mlir::Value x, mlir::Value y);

  Lanes &lower;
  mlir::ImplicitLocOpBuilder &b;
  TileLoad load;
  const TileView &tile;
  PagesOfTile pages;
  int64_t elementBytes, columns;
  mlir::Value hi, lo, pred;
  /// The number of the tile's first page, and the element offset of each page
  /// of it.
  mlir::Value firstPage;
  Values pageLines;
  /// The element offset of the row of a lane's number, what is asked of it, and
  /// where zeros lie.
  mlir::Value ownLine, ownOrZeros, zeroLine;
};

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_AMD_ROWSOURCE_H
