//===- LaneDiagonals.cpp - Elements that distances alone tell apart -------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of R rows and W columns of a tile lane i has the diagonal whose column is
// i - (R - 1) behind its row. It stands for it at an element of that diagonal
// which is in the first row or in the first column: if any element of the
// diagonal is one of the problem's, that one is. Of what follows from the
// column alone lane i has what column i has.
//
//===----------------------------------------------------------------------===//

#include "LaneDiagonals.h"
#include "MapRegion.h"
#include "kvbuffer/Dialect/KVBuffer/IR/FragmentSources.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace kvbuf;

//===----------------------------------------------------------------------===//
// Which maps do
//===----------------------------------------------------------------------===//

namespace {
/// What a value of a region is: the same for all elements, the row or the
/// column and something that is the same, something that their difference
/// decides, or any other thing.
enum class Follows { Neither, Row, Column, Difference, Other };
} // namespace

/// What an op makes of values that are such.
static Follows resultOf(Operation &op, ArrayRef<Follows> operands) {
  auto is = [&](unsigned i, Follows what) { return operands[i] == what; };
  auto isPlace = [&](unsigned i) {
    return is(i, Follows::Row) || is(i, Follows::Column);
  };
  if (isa<arith::IndexCastOp>(op))
    return operands[0];
  if (isa<arith::AddIOp>(op))
    for (unsigned i : {0, 1})
      if (isPlace(i) && is(1 - i, Follows::Neither))
        return operands[i];
  if (isa<arith::SubIOp>(op) && isPlace(0)) {
    if (is(1, Follows::Neither))
      return operands[0];
    if (isPlace(1) && operands[0] != operands[1])
      return Follows::Difference;
  }
  if (op.getNumRegions() || !(isPure(&op) || isa<memref::LoadOp>(op)))
    return Follows::Other;
  Follows one = Follows::Neither;
  for (Follows operand : operands) {
    if (operand == Follows::Neither || operand == one)
      continue;
    bool told = operand == Follows::Difference || operand == Follows::Column;
    if (!told || one != Follows::Neither)
      return Follows::Other;
    one = operand;
  }
  return one;
}

/// What a map's elements are, where they follow from no input.
static Follows elementsOf(MapOp op) {
  Block &body = op.getBody().front();
  unsigned inputs = op.getInputs().size();
  llvm::DenseMap<Value, Follows> known;
  for (BlockArgument argument : body.getArguments())
    known[argument] = argument.getArgNumber() < inputs    ? Follows::Other
                      : argument.getArgNumber() == inputs ? Follows::Row
                                                          : Follows::Column;
  for (Operation &inner : body.without_terminator()) {
    SmallVector<Follows> operands;
    for (Value operand : inner.getOperands()) {
      auto it = known.find(operand);
      operands.push_back(it == known.end() ? Follows::Neither : it->second);
    }
    Follows result = resultOf(inner, operands);
    for (Value value : inner.getResults())
      known[value] = result;
  }
  auto it = known.find(cast<YieldOp>(body.getTerminator()).getValue());
  return it == known.end() ? Follows::Neither : it->second;
}

/// The numbers of a tensor that a map reads by its elements, where a wave has a
/// lane for each of them: it reads them once.
static SmallVector<memref::LoadOp> tablesOf(MapOp op, int64_t lanes) {
  SmallVector<memref::LoadOp> tables;
  for (auto load : op.getBody().front().getOps<memref::LoadOp>()) {
    MemRefType type = load.getMemRefType();
    Type element = type.getElementType();
    auto isOutside = [&](Value value) {
      return !op.getBody().isAncestor(value.getParentRegion());
    };
    if (type.getRank() && type.getShape().back() <= lanes &&
        !type.isDynamicDim(type.getRank() - 1) && element.isIntOrFloat() &&
        element.getIntOrFloatBitWidth() == 32 && isOutside(load.getMemref()) &&
        llvm::all_of(load.getIndices().drop_back(), isOutside))
      tables.push_back(load);
  }
  return tables;
}

//===----------------------------------------------------------------------===//
// Words of lanes
//===----------------------------------------------------------------------===//

namespace {
/// How lanes have shared out the diagonals of a fragment: those of one row of
/// atoms and `group` columns of atoms are a word. Or its columns: one row of
/// them is enough, whose diagonals they are.
struct Diagonals {
  int64_t rows, cols, group;
  bool ofColumns;

  Diagonals(const FragmentLayout &atom, int64_t lanes, bool ofColumns)
      : rows(ofColumns ? 1 : atom.rows), cols(atom.cols),
        group((lanes + 1 - rows) / cols), ofColumns(ofColumns) {}
  int64_t groups(int64_t atomCols) const {
    return llvm::divideCeil(atomCols, group);
  }
  /// How many words a lane has of a fragment of so many rows and columns of
  /// atoms.
  int64_t words(int64_t atomRows, int64_t atomCols) const {
    return (ofColumns ? 1 : atomRows) * groups(atomCols);
  }
};

/// Words that wait for the map that takes them.
class LeftDiagonals : public LaneState {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LeftDiagonals)
  llvm::DenseMap<Value, SmallVector<Value>> words;
};
} // namespace

/// The part of a row or a column, by name, in an atom that depends on the lane.
static Value inAtom(LaneContext &lower, const FragmentLayout &atom,
                    StringRef out, int64_t *most = nullptr) {
  SmallVector<int64_t> basis;
  int64_t reach = 0;
  for (unsigned bit = 0; bit < atom.layout.inLog2("lane"); ++bit) {
    basis.push_back(atom.layout.basis("lane", bit, out));
    reach |= basis.back();
  }
  if (most)
    *most = reach;
  return emitLinear(lower.builder(), lower.laneInWarp(), basis);
}

/// What lanes have of a map's diagonals or columns, one word after the other;
/// of `tables` lanes have numbers, for which they ask each other.
static FailureOr<SmallVector<Value>>
makeWords(LaneContext &lower, MapOp op, const Diagonals &shares,
          ArrayRef<memref::LoadOp> tables) {
  FragmentType type = op.getResult().getType();
  const FragmentLayout &atom = lower.layoutOf(type);
  int64_t atomCols = atom.atomCols(type),
          atomRows = atom.atoms(type) / atomCols;
  ImplicitLocOpBuilder &b = lower.builder();
  auto origin = [&](Value first, Value inLane) -> Value {
    return first ? arith::AddIOp::create(b, lower.toI32(lower.single(first)),
                                         inLane)
                       .getResult()
                 : inLane;
  };
  // Which diagonal, less that of the last row and the first column.
  Value last = lower.i32(shares.rows - 1), zero = lower.i32(0);
  Value behind = arith::SubIOp::create(b, lower.laneInWarp(), last);
  Value row = arith::MaxSIOp::create(
      b, arith::SubIOp::create(b, zero, behind).getResult(), zero);
  Value col = arith::MaxSIOp::create(b, behind, zero);
  // Rows are the warp's; no warp has columns of its own.
  Value firstRow = arith::AddIOp::create(
      b,
      arith::SubIOp::create(b, lower.laneRow(type), inAtom(lower, atom, "row")),
      row);
  firstRow = origin(op.getRow(), firstRow);
  MapLowering map(lower, op);
  for (memref::LoadOp load : tables)
    if (failed(map.readTable(load)))
      return failure();
  SmallVector<Value> none(op.getInputs().size(), lower.f32(0)), words;
  int64_t width = shares.group * shares.cols, cols = atomCols * shares.cols;
  // Lanes past the last diagonal have that one.
  llvm::SmallDenseMap<int64_t, Value> firstCols;
  for (int64_t i = 0; i < (shares.ofColumns ? 1 : atomRows); ++i)
    for (int64_t from = 0; from < cols; from += width) {
      int64_t own = std::min(width, cols - from);
      Value &firstCol = firstCols[own];
      if (!firstCol)
        firstCol = origin(
            op.getCol(),
            arith::MinSIOp::create(b, col, lower.i32(own - 1)).getResult());
      FailureOr<Value> word =
          map.element(none, {firstRow, i * shares.rows, firstCol, from});
      if (failed(word))
        return failure();
      words.push_back(*word);
    }
  return words;
}

/// Hands words to the lanes that have elements of their diagonals or columns.
static void handOver(LaneContext &lower, Value fragment, ArrayRef<Value> words,
                     const Diagonals &shares) {
  ImplicitLocOpBuilder &b = lower.builder();
  auto type = cast<FragmentType>(fragment.getType());
  const FragmentLayout &atom = lower.layoutOf(type);
  int64_t lanes = lower.chip().waveSize, atomCols = atom.atomCols(type);
  int64_t mostRow = 0;
  Value inRow = inAtom(lower, atom, "row", &mostRow),
        inCol = inAtom(lower, atom, "col");
  // What a number is added to is not negative.
  Value base = inCol;
  if (!shares.ofColumns)
    base = arith::AddIOp::create(
        b, inCol,
        arith::SubIOp::create(b, lower.i32(mostRow), inRow).getResult(),
        arith::IntegerOverflowFlags::nsw);
  SmallVector<Value> vectors;
  llvm::DenseMap<std::pair<Value, int64_t>, Value> made;
  for (int64_t index = 0; index < atom.atoms(type); ++index) {
    int64_t inGroup = index % atomCols % shares.group,
            atomRow = shares.ofColumns ? 0 : index / atomCols;
    Value word = words[atomRow * shares.groups(atomCols) +
                       index % atomCols / shares.group];
    SmallVector<Value> elements;
    for (int64_t reg = 0; reg < atom.registers(); ++reg) {
      int64_t number = inGroup * shares.cols + atom.colOffset(reg);
      if (!shares.ofColumns)
        number +=
            shares.rows - 1 - mostRow - atom.rowOffset(0, atom.rowPart(reg));
      Value &element = made[{word, number}];
      if (!element)
        element = gpu::ShuffleOp::create(
                      b, word,
                      arith::AddIOp::create(b, base, lower.i32(number),
                                            arith::IntegerOverflowFlags::nsw),
                      lower.i32(lanes), gpu::ShuffleMode::IDX)
                      .getShuffleResult();
      elements.push_back(element);
    }
    vectors.push_back(vector::FromElementsOp::create(
        b, VectorType::get({atom.registers()}, type.getElementType()),
        elements));
  }
  lower.setLanes(fragment, vectors);
}

FailureOr<bool> kvbuf::shareDiagonals(LaneContext &lower, MapOp op) {
  Follows elements = elementsOf(op);
  bool ofColumns = elements == Follows::Column;
  if (!ofColumns && elements != Follows::Difference)
    return false;
  // What is read lands while other things are done, and goes to a map; what is
  // computed is there at once.
  auto *user = op.getResult().hasOneUse() ? *op->user_begin() : nullptr;
  bool isLeft = !ofColumns && isa_and_nonnull<MapOp>(user) &&
                user->getBlock() == op->getBlock();
  SmallVector<memref::LoadOp> tables;
  if (!isLeft) {
    auto loads = op.getBody().front().getOps<memref::LoadOp>();
    tables = tablesOf(op, lower.chip().waveSize);
    if (!beginsProduct(op) || tables.size() != size_t(llvm::range_size(loads)))
      return false;
  }
  FragmentType type = op.getResult().getType();
  const FragmentLayout &atom = lower.layoutOf(type);
  int64_t atoms = atom.atoms(type), atomCols = atom.atomCols(type);
  Diagonals shares(atom, lower.chip().waveSize, ofColumns);
  if (type.getElementType().getIntOrFloatBitWidth() != 32 || shares.group < 1 ||
      atom.colWarps != 1 || atom.turned ||
      shares.words(atoms / atomCols, atomCols) >= atoms * atom.registers())
    return false;
  FailureOr<SmallVector<Value>> words = makeWords(lower, op, shares, tables);
  if (failed(words))
    return failure();
  if (isLeft)
    lower.ofKernel<LeftDiagonals>().words[op.getResult()] = *words;
  else
    handOver(lower, op.getResult(), *words, shares);
  return true;
}

void kvbuf::takeDiagonals(LaneContext &lower, MapOp op) {
  auto &left = lower.ofKernel<LeftDiagonals>().words;
  for (Value input : op.getInputs())
    if (auto it = left.find(input); it != left.end()) {
      const FragmentLayout &atom =
          lower.layoutOf(cast<FragmentType>(input.getType()));
      handOver(lower, input, it->second,
               Diagonals(atom, lower.chip().waveSize, /*ofColumns=*/false));
      left.erase(it);
    }
}
