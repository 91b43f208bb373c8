//===- MapRegion.h - The region of a map, once an element -------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A lane holds elements of a few rows and of many columns. What follows from
/// the row alone it computes once a row, what follows from the column once a
/// column, and the rest once an element. A column is a register, the same for
/// all of a lane's elements, and a number that the compiler knows; so is what
/// sums and differences make of it. Two such integers are compared by one
/// instruction, of a register and a number.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_MAPREGION_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_MAPREGION_H

#include "Lanes.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace kvbuf {

/// Lowers a map's region for the elements that a lane has.
class MapLowering {
public:
  /// What a value of the region follows from; bits, of which an element of the
  /// inputs has all.
  enum Level : unsigned {
    Once = 0,
    PerRow = 1,
    PerColumn = 2,
    PerPlace = 3,
    PerElement = 7
  };

  /// The row and the column of an element, registers (null: not read) and
  /// numbers.
  struct Place {
    mlir::Value firstRow;
    int64_t row;
    mlir::Value firstCol;
    int64_t col;
  };

  /// The integers that a value may be.
  struct Range {
    int64_t least, most;
    /// All of 32 bits.
    static Range ofI32() {
      return {-(int64_t(1) << 31), (int64_t(1) << 31) - 1};
    }
    bool fits(int64_t bound = int64_t(1) << 31) const {
      return least >= -bound && most < bound;
    }
    Range operator+(Range other) const {
      return {least + other.least, most + other.most};
    }
    Range operator-(Range other) const {
      return {least - other.most, most - other.least};
    }
  };

  /// Rows, keys and sizes are less: differences and sums of them fit 32 bits,
  /// as those of masks do.
  static constexpr int64_t kCoordinates = int64_t(1) << 29;

  /// An integer: a register of 32 bits (null: 0) and a number, with what their
  /// sum may be. Neither the register nor the sum leaves 32 bits.
  struct Term {
    mlir::Value base;
    int64_t offset = 0;
    Range range;

    Range ofBase() const { return range - Range{offset, offset}; }
  };

  /// A value of the region for the element at hand: a term, or what lanes
  /// compute.
  struct Known {
    std::optional<Term> term;
    mlir::Value value;
    /// Of a term as an f32: what is the same for many elements, and the number
    /// that tells them apart, whose sum the value is; null: no such sum.
    mlir::Value base = {};
    int64_t offset = 0;
  };

  MapLowering(LaneContext &lower, MapOp op)
      : lower(lower), b(lower.builder()), op(op), body(op.getBody().front()) {
    findLevels();
    findReads();
  }

  /// The element of `inputs` at a place.
  mlir::FailureOr<mlir::Value> element(llvm::ArrayRef<mlir::Value> inputs,
                                       const Place &place);

  /// How many numbers are read that follow from no element, where a lane has so
  /// many elements, rows and columns of them.
  int64_t countReads(int64_t elements, int64_t rows, int64_t cols) const;
  /// Lanes of a warp that vote about a column each.
  static constexpr int64_t kVoters = 32;

  /// Finds what is true or false of a column alone, and follows from what is
  /// read there. Lanes that have many columns, and all the same ones, then find
  /// it out together (`vote`).
  bool findVotes();
  /// Each lane finds it out for one of `kVoters` columns, `words` times:
  /// `place` is the lane's, `ownCol` (i32) that of its first element.
  mlir::LogicalResult vote(const Place &place, int64_t words,
                           mlir::Value ownCol);
  /// Finds what is read by columns alone, and compared alone
  /// (`comparedWordsOf`), where that tells which elements stay and which become
  /// a constant. Columns of a tile are often all of one document.
  bool findCompared();
  /// Reads what is compared at the columns that the lane looks at: one of as
  /// many as a warp has lanes, `words` times, from `place` on.
  mlir::LogicalResult readCompared(const Place &place, int64_t words);
  /// Reads it at the tile's first column; `asking` has the lane whose column
  /// that is send it.
  mlir::LogicalResult readFirst(const Place &first, bool asking);
  /// Whether the one is not the other (i1).
  mlir::Value differs();
  /// Has other lanes' words of `map`, which has looked at them, where it would
  /// read them; `ownCol` (i32) is the column of the lane's first element.
  void askLanes(const MapLowering &map, mlir::Value ownCol) {
    wordsOfLanes = map.wordsOfLanes;
    firstOwnCol = ownCol;
  }
  /// Has what `map` knows of rows, which is there wherever this is asked.
  void shareRows(const MapLowering &map);
  /// Has each lane read the number of its place in the last dimension of what
  /// `load` reads, in front of the loop where that is there, and ask for those
  /// that elements are of. The dimension has no more than a wave has lanes.
  mlir::LogicalResult readTable(mlir::memref::LoadOp load);
  /// Whether an element at a place becomes a constant (i1).
  mlir::FailureOr<mlir::Value> isHidden(const Place &place);
  /// That constant.
  mlir::Value constant();
  /// What it is where it stays.
  mlir::FailureOr<mlir::Value> shown(llvm::ArrayRef<mlir::Value> inputs,
                                     const Place &place);
  /// Finds a difference of the row and the column that is clamped to numbers,
  /// as distances are, where elements follow from neither but by it.
  bool findClamped();
  /// The difference at `places`, as a register and the least and the most that
  /// is added to it there. Fails where it is no such sum.
  mlir::FailureOr<Term> differenceAt(llvm::ArrayRef<Place> places);
  /// The numbers that it is clamped to.
  Range limits() const { return clampedTo; }
  /// Takes `value` for what it is clamped to, at all places.
  void fix(mlir::Value value) { fixed = value; }
  /// Reads those of a place.
  mlir::LogicalResult read(const Place &place);
  /// Reads words that lie by columns two at a time, the lane's pairs of which
  /// begin at `columns` behind the place's, in its rows `rows` behind it where
  /// each has its own; where rows of the tensor begin at odd words, one at a
  /// time.
  mlir::LogicalResult readPairs(const Place &place,
                                llvm::ArrayRef<int64_t> rows,
                                llvm::ArrayRef<int64_t> columns);

private:
  /// All but the op `but`, for an element.
  mlir::LogicalResult evaluateAll(llvm::ArrayRef<mlir::Value> inputs,
                                  const Place &place,
                                  mlir::Operation *but = nullptr);
  void findLevels();
  /// Finds what is read, and what that needs, of no element.
  void findReads();
  void setPlace(const Place &place);
  /// The values of an op for the place at hand, which others may have, too.
  mlir::LogicalResult evaluateOnce(mlir::Operation &inner, const Place &place);
  mlir::LogicalResult evaluate(mlir::Operation &inner);
  /// What is known of an operand, from outside of the region too.
  Known lookup(mlir::Value value);
  std::optional<Term> termOf(mlir::Value value) { return lookup(value).term; }
  /// The value as ops have it.
  mlir::Value materialize(mlir::Value value);
  mlir::Value inRegister(const Term &term);

  /// Integers that are terms; nothing where an op has no term.
  std::optional<Term> makeTerm(mlir::Operation &inner);
  std::optional<Term> add(const Term &x, const Term &y);
  std::optional<Term> subtract(const Term &x, const Term &y);
  std::optional<Term> multiply(const Term &x, const Term &y);
  /// An op on two registers whose result is in `range`.
  template <typename OpTy>
  std::optional<Term> combine(const Term &x, const Term &y, Range range);
  /// A product with a sum of a number, and a half that becomes wider; false
  /// where an op is none.
  bool multiplySum(mlir::Operation &inner);
  bool widen(mlir::Operation &inner);
  /// A comparison of two terms.
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, Term x, Term y);
  /// `wide` as far as a comparison with `other` can tell.
  Term narrowFor(const Term &wide, const Term &other);
  /// Binary ops on registers, each once.
  template <typename OpTy> mlir::Value once(mlir::Value x, mlir::Value y) {
    mlir::Value &made = pairs[{{OpTy::getOperationName(), x}, y}];
    if (!made)
      made = OpTy::create(b, x, y);
    return made;
  }

  LaneContext &lower;
  mlir::ImplicitLocOpBuilder &b;
  MapOp op;
  mlir::Block &body;
  llvm::DenseMap<mlir::Operation *, unsigned> levels;
  llvm::SmallPtrSet<mlir::Operation *, 8> reads;
  /// What lanes vote about, what only that needs, that with all that it needs,
  /// and the votes: bits from that of the lane's first column on.
  llvm::SmallPtrSet<mlir::Operation *, 2> voted;
  llvm::SmallPtrSet<mlir::Operation *, 8> ofVotes, beforeVotes;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Value, 2>> votes;
  /// What is compared, and the choice that follows from it.
  llvm::SmallVector<mlir::memref::LoadOp, 1> compared;
  mlir::arith::SelectOp choice;
  /// What lanes have read of it, at their own columns and at the first one.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Value, 4>> own;
  llvm::DenseMap<mlir::Operation *, mlir::Value> atFirst;
  /// Of 32 bits, what others may ask for, and which columns they ask for.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Value, 4>>
      wordsOfLanes;
  mlir::Value firstOwnCol;
  /// Of what is read, the number that a lane has of it.
  llvm::DenseMap<mlir::Operation *, mlir::Value> tables;
  /// The difference that is clamped, the op that does so, and what it gives.
  mlir::Value difference, fixed;
  mlir::Operation *clamp = nullptr;
  Range clampedTo{0, 0};
  /// Values of the element at hand, and those that others will have, too.
  llvm::DenseMap<mlir::Value, Known> now;
  llvm::DenseMap<std::pair<mlir::Operation *, std::pair<int64_t, int64_t>>,
                 llvm::SmallVector<Known, 1>>
      kept;
  /// Values from outside of the region.
  llvm::DenseMap<mlir::Value, Known> outer;
  llvm::DenseMap<
      std::pair<std::pair<llvm::StringRef, mlir::Value>, mlir::Value>,
      mlir::Value>
      pairs;
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, mlir::Value> sums;
  llvm::DenseMap<std::pair<mlir::Value, mlir::Type>, mlir::Value> casts;
  /// Words of two halves, as integers.
  llvm::DenseMap<mlir::Value, mlir::Value> words;
};

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_MAPREGION_H
