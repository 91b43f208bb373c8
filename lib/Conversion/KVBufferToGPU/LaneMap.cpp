//===- LaneMap.cpp - Arithmetic by regions, element by element --*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which elements lanes have of a map's inputs, and when what is read for them
// is read. What an element becomes: MapRegion.h.
//
//===----------------------------------------------------------------------===//

#include "LaneMap.h"
#include "LaneDiagonals.h"
#include "MapRegion.h"
#include "Pages.h"
#include "kvbuffer/Dialect/KVBuffer/IR/WordsOfColumns.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace kvbuf;

/// Numbers that are read ahead of the product of which the elements come have a
/// register each; a schedule has room for so many (repairForReads).
static constexpr int64_t kMostAhead = 40;

/// Whether all that a map needs but its elements is there before `source`.
static bool isThereBefore(MapOp op, Operation *source) {
  bool isThere = true;
  auto require = [&](Value value) {
    Operation *def = value ? value.getDefiningOp() : nullptr;
    if (def && def->getBlock() == source->getBlock())
      isThere &= def->isBeforeInBlock(source);
  };
  require(op.getRow());
  require(op.getCol());
  op.getBody().walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (!op.getBody().isAncestor(operand.getParentRegion()))
        require(operand);
  });
  return isThere;
}

/// The op before which a map may read what follows from no element: that which
/// waits for the product whose elements it takes. Null where there is none, or
/// where what the map needs comes behind it.
static Operation *beforeProduct(LaneContext &lower, MapOp op) {
  auto source = op.getInputs()[0].getDefiningOp<MmaWaitOp>();
  const Values &lanes = lower.lanesOf(op.getInputs()[0]);
  Operation *wait = lanes.empty() ? nullptr : lanes[0].getDefiningOp();
  if (!source || !wait ||
      wait->getBlock() != lower.builder().getInsertionBlock())
    return nullptr;
  return isThereBefore(op, source) ? wait : nullptr;
}

/// The first instruction of the product whose accumulators a map takes; null
/// where it takes none of its block, or where what it needs comes behind.
static Operation *inFrontOfProduct(LaneContext &lower, MapOp op) {
  auto source = op.getInputs()[0].getDefiningOp<MmaOp>();
  if (!source || !isThereBefore(op, source))
    return nullptr;
  Block *block = lower.builder().getInsertionBlock();
  Operation *first = nullptr;
  for (Value value : lower.lanesOf(op.getInputs()[0])) {
    auto product = value.getDefiningOp<LaneMmaOp>();
    while (product && product->getBlock() == block) {
      if (!first || product->isBeforeInBlock(first))
        first = product;
      product = product.getC().getDefiningOp<LaneMmaOp>();
    }
  }
  return first;
}

namespace {
/// Where a lane has the elements of an input that the result's registers stand
/// for.
class InputElements {
public:
  InputElements(LaneContext &lower, Value input);
  /// Whether it has a value for each row.
  bool isOfRows() const { return ofRows; }
  /// The value of row `number` of a lane's.
  Value ofRow(int64_t number) const { return words[number]; }
  /// The element at a row and a column, less what depends on the lane.
  Value at(LaneContext &lower, std::pair<int64_t, int64_t> place) const {
    auto [word, element] = places.lookup(place);
    return lower.element(words[word], element);
  }
  /// Whether lanes hold of the input what they hold of an accumulator in
  /// another layout.
  bool liesAs(const FragmentLayout &other, FragmentType type) const;

private:
  const FragmentLayout &layout;
  Values words;
  bool ofRows;
  llvm::DenseMap<std::pair<int64_t, int64_t>, std::pair<int64_t, int64_t>>
      places;
};
} // namespace

InputElements::InputElements(LaneContext &lower, Value input)
    : layout(lower.layoutOf(cast<FragmentType>(input.getType()))),
      words(lower.lanesOf(input)),
      ofRows(cast<FragmentType>(input.getType()).getRole() == Role::Row) {
  auto type = cast<FragmentType>(input.getType());
  if (ofRows)
    return;
  // Accumulators are kept by atoms, operands by words.
  int64_t registers = layout.registers(),
          inWord = type.getRole() == Role::Acc ? registers : layout.words;
  for (int64_t atom = 0, e = layout.atoms(type); atom < e; ++atom)
    for (int64_t reg = 0; reg < registers; ++reg) {
      int64_t cols = layout.atomCols(type), number = atom * registers + reg;
      places[{layout.rowOffset(atom / cols, layout.rowPart(reg)),
              atom % cols * layout.cols + layout.colOffset(reg)}] = {
          number / inWord, number % inWord};
    }
}

bool InputElements::liesAs(const FragmentLayout &other,
                           FragmentType type) const {
  for (unsigned bit = 0; bit < other.layout.inLog2("lane"); ++bit)
    for (StringRef out : {"row", "col"})
      if (layout.layout.basis("lane", bit, out) !=
          other.layout.basis("lane", bit, out))
        return false;
  if (layout.rowWarps != other.rowWarps || layout.colWarps != other.colWarps)
    return false;
  int64_t cols = other.atomCols(type);
  for (int64_t atom = 0, e = other.atoms(type); atom < e; ++atom)
    for (int64_t reg = 0; reg < other.registers(); ++reg)
      if (!places.contains({other.rowOffset(atom / cols, other.rowPart(reg)),
                            atom % cols * other.cols + other.colOffset(reg)}))
        return false;
  return true;
}

/// Of how many of a tile's columns a lane finds something out where a warp's
/// lanes share them out.
static int64_t wordsOfLane(LaneContext &lower, FragmentType type) {
  return llvm::divideCeil(type.getCols(), lower.chip().waveSize);
}

/// Whether the lanes of a warp have the same columns, more of them than each
/// would have to find something out about if they shared them out, and a lane's
/// first column and the offsets of its others have no bit in common.
static bool shareColumns(LaneContext &lower, const FragmentLayout &atom,
                         FragmentType type, int64_t columns) {
  int64_t lanes = lower.chip().waveSize, cols = type.getCols();
  int64_t reach = 0, within = 0;
  for (unsigned bit = 0; bit < atom.layout.inLog2("lane"); ++bit)
    reach |= atom.layout.basis("lane", bit, "col");
  for (int64_t reg = 0; reg < atom.registers(); ++reg)
    within |= atom.colOffset(reg);
  return atom.colWarps == 1 && (cols % lanes == 0 || lanes % cols == 0) &&
         lanes % atom.cols == 0 && (reach | within) < atom.cols &&
         !(reach & within) && columns > wordsOfLane(lower, type);
}

namespace {
/// Lowers one map: what its elements are made of, and where what is read for
/// them is read.
class MapOfLanes {
public:
  MapOfLanes(LaneContext &lower, MapOp op)
      : lower(lower), b(lower.builder()), op(op),
        type(op.getResult().getType()), atom(lower.layoutOf(type)),
        cols(atom.atomCols(type)), atoms(atom.atoms(type)),
        registers(atom.registers()), behind(b.saveInsertionPoint()) {}

  LogicalResult emit();

private:
  using Element =
      function_ref<FailureOr<Value>(ArrayRef<Value>, MapLowering::Place)>;

  LogicalResult findInputs();
  MapLowering::Place placeOf(int64_t index, int64_t reg) const {
    return {firstRow, atom.rowOffset(index / cols, atom.rowPart(reg)), firstCol,
            index % cols * atom.cols + atom.colOffset(reg)};
  }
  /// The first column of the tile, for a row.
  MapLowering::Place firstOf(int64_t row) {
    Value first =
        op.getCol() ? lower.toI32(lower.single(op.getCol())) : lower.i32(0);
    return {firstRow, row, first, 0};
  }
  /// A column of the tile for each lane; several lanes may have one.
  Value ownColumn() {
    Value mine = lower.laneInWarp();
    if (type.getCols() < lower.chip().waveSize)
      mine = arith::AndIOp::create(b, mine, lower.i32(type.getCols() - 1));
    if (!op.getCol())
      return mine;
    return arith::AddIOp::create(b, lower.toI32(lower.single(op.getCol())),
                                 mine);
  }
  /// Finds where the lane's elements begin.
  void findFirst();
  LogicalResult vote(MapLowering &map);
  /// Reads words of columns in pairs.
  LogicalResult readPairs(MapLowering &map);
  /// Results of which each is what `make` makes of it.
  FailureOr<Values> each(Element make);
  /// By branches of the warp: what is compared is often the same for all of a
  /// tile's columns. Then elements of a row stay, or become a constant, all of
  /// them, and where those of all rows stay nothing is done.
  LogicalResult emitByComparisons(MapLowering &map, Operation *wait);
  /// The same where the product is there at once: what is compared is read in
  /// front of it, where it stands in the same block, and all else behind it.
  LogicalResult emitByQuestion(MapLowering &map);
  /// Whether the element of any row at the tile's first column becomes a
  /// constant, or `differ` (i1).
  FailureOr<Value> findHidden(MapLowering &map, Value differ);
  /// By a branch of the warp: distances that are clamped are all clamped to the
  /// same number where the warp's rows are far from the tile's columns.
  LogicalResult emitByDistance(MapLowering &map, Operation *wait);
  scf::IfOp branch(Value condition) {
    SmallVector<Type> types(
        atoms, VectorType::get({registers}, type.getElementType()));
    return scf::IfOp::create(b, types, condition, /*addThenBlock=*/true,
                             /*addElseBlock=*/true);
  }
  /// Yields from a block of a branch what `make` makes of each element.
  LogicalResult yield(Block *block, Element make) {
    b.setInsertionPointToEnd(block);
    FailureOr<Values> results = each(make);
    if (succeeded(results))
      scf::YieldOp::create(b, *results);
    return LogicalResult(results);
  }

  LaneContext &lower;
  ImplicitLocOpBuilder &b;
  MapOp op;
  FragmentType type;
  const FragmentLayout &atom;
  int64_t cols, atoms, registers;
  OpBuilder::InsertPoint behind;
  SmallVector<InputElements> inputs;
  llvm::SmallSet<int64_t, 8> rows;
  llvm::DenseSet<int64_t> columns;
  Value firstRow, firstCol;
  /// By the row, whether its element at the first column becomes a constant.
  llvm::MapVector<int64_t, Value> hidden;
};
} // namespace

LogicalResult MapOfLanes::findInputs() {
  for (Value input : op.getInputs()) {
    inputs.emplace_back(lower, input);
    // Where values of rows lie, fragments' layouts agree on before.
    if (!inputs.back().isOfRows() && !inputs.back().liesAs(atom, type))
      return op.emitOpError()
             << "has an input in the layout "
             << cast<FragmentType>(input.getType()).getLayout()
             << " of which lanes hold other elements than of the result in "
                "the layout "
             << type.getLayout();
  }
  return success();
}

void MapOfLanes::findFirst() {
  Block &body = op.getBody().front();
  // Coordinates fit 32 bits, as the problem's sizes do.
  auto base = [&](BlockArgument argument, Value inLane, Value first) -> Value {
    if (argument.use_empty())
      return {};
    if (!first)
      return inLane;
    return arith::AddIOp::create(b, lower.toI32(lower.single(first)), inLane);
  };
  firstRow =
      base(body.getArgument(inputs.size()), lower.laneRow(type), op.getRow());
  firstCol = base(body.getArgument(inputs.size() + 1), lower.laneCol(type),
                  op.getCol());
}

LogicalResult MapOfLanes::vote(MapLowering &map) {
  return map.vote({firstRow, 0, ownColumn(), 0},
                  type.getCols() / MapLowering::kVoters, lower.laneCol(type));
}

LogicalResult MapOfLanes::readPairs(MapLowering &map) {
  SmallVector<int64_t> pairs, ofRows(rows.begin(), rows.end());
  llvm::sort(ofRows);
  for (int64_t column : columns)
    if (column % 2 == 0 && columns.contains(column + 1))
      pairs.push_back(column);
  llvm::sort(pairs);
  // A lane's columns are pairs, each from an even one on.
  if (2 * pairs.size() != columns.size() || atom.columnRun() < 2 || !firstCol ||
      !op.getCol() || !isMultipleOf(op.getCol(), 2))
    return success();
  return map.readPairs(placeOf(0, 0), ofRows, pairs);
}

FailureOr<Values> MapOfLanes::each(Element make) {
  int64_t rowParts = atom.rowParts().size();
  Values results;
  for (int64_t index = 0; index < atoms; ++index) {
    Values elements;
    for (int64_t reg = 0; reg < registers; ++reg) {
      SmallVector<Value> of;
      MapLowering::Place place = placeOf(index, reg);
      for (const InputElements &input : inputs)
        of.push_back(
            input.isOfRows()
                ? input.ofRow(index / cols * rowParts + atom.rowPart(reg))
                : input.at(lower, {place.row, place.col}));
      FailureOr<Value> element = make(of, place);
      if (failed(element))
        return failure();
      elements.push_back(*element);
    }
    b.setLoc(op.getLoc());
    auto wideType =
        VectorType::get({int64_t(elements.size())}, type.getElementType());
    results.push_back(vector::FromElementsOp::create(b, wideType, elements));
  }
  return results;
}

FailureOr<Value> MapOfLanes::findHidden(MapLowering &map, Value differ) {
  Value changes = differ;
  for (int64_t row : rows) {
    FailureOr<Value> isHidden = map.isHidden(firstOf(row));
    if (failed(isHidden))
      return failure();
    hidden[row] = *isHidden;
    changes = arith::OrIOp::create(b, changes, *isHidden);
  }
  return changes;
}

LogicalResult MapOfLanes::emitByComparisons(MapLowering &map, Operation *wait) {
  b.setInsertionPoint(wait);
  findFirst();
  if (failed(map.readFirst(firstOf(0), /*asking=*/false)) ||
      failed(map.readCompared({firstRow, 0, ownColumn(), 0},
                              wordsOfLane(lower, type))))
    return failure();
  Value differ = map.differs();
  FailureOr<Value> changes = findHidden(map, differ);
  if (failed(changes))
    return failure();
  Value ownCol = lower.laneCol(type);
  Value anyDiffers = LaneAnyOp::create(b, differ),
        anyChanges = LaneAnyOp::create(b, *changes);
  b.restoreInsertionPoint(behind);
  auto outer = branch(anyChanges);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(outer.thenBlock());
  auto inner = branch(anyDiffers);
  scf::YieldOp::create(b, inner.getResults());
  // What is computed in one branch is not there in others.
  MapLowering apart(lower, op), same(lower, op);
  same.findCompared();
  apart.askLanes(map, ownCol);
  if (failed(yield(inner.thenBlock(),
                   [&](ArrayRef<Value> of, MapLowering::Place place) {
                     return apart.element(of, place);
                   })) ||
      failed(yield(inner.elseBlock(),
                   [&](ArrayRef<Value> of, MapLowering::Place place) {
                     return map.element(of, firstOf(place.row));
                   })) ||
      failed(yield(outer.elseBlock(),
                   [&](ArrayRef<Value> of, MapLowering::Place place) {
                     return same.shown(of, firstOf(place.row));
                   })))
    return failure();
  lower.setLanes(op.getResult(), outer.getResults());
  return success();
}

LogicalResult MapOfLanes::emitByQuestion(MapLowering &map) {
  if (Operation *first = inFrontOfProduct(lower, op))
    b.setInsertionPoint(first);
  findFirst();
  if (failed(map.readCompared({firstRow, 0, ownColumn(), 0},
                              wordsOfLane(lower, type))))
    return failure();
  // Whoever compares waits for what was read.
  b.restoreInsertionPoint(behind);
  if (failed(map.readFirst(firstOf(0), /*asking=*/true)))
    return failure();
  Value differ = map.differs();
  FailureOr<Value> changes = findHidden(map, differ);
  if (failed(changes))
    return failure();
  FailureOr<Values> shown =
      each([&](ArrayRef<Value> of, MapLowering::Place place) {
        return map.shown(of, firstOf(place.row));
      });
  if (failed(shown))
    return failure();
  // One by one, in front of the branch: one side leaves them as they are, and
  // LLVM would make a block of what takes vectors apart there.
  Values elements;
  for (Value vector : *shown)
    for (int64_t reg = 0; reg < registers; ++reg)
      elements.push_back(lower.element(vector, reg));
  Value constant = map.constant(), none = arith::ConstantIntOp::create(b, 0, 1),
        ownCol = lower.laneCol(type);
  SmallVector<Type> types(elements.size(), type.getElementType());
  auto branchTo = [&](Value condition) {
    auto made = scf::IfOp::create(b, types, condition, /*addThenBlock=*/true,
                                  /*addElseBlock=*/true);
    b.setInsertionPointToStart(made.elseBlock());
    scf::YieldOp::create(b, elements);
    b.setInsertionPointToStart(made.thenBlock());
    return made;
  };
  auto placeOfElement = [&](int64_t i) {
    return placeOf(i / registers, i % registers);
  };
  auto outer = branchTo(LaneAnyOp::create(b, *changes));
  Value anyDiffers = LaneAnyOp::create(b, differ);
  auto inner = branchTo(anyDiffers);
  // What is computed in a branch is not there in others.
  MapLowering apart(lower, op);
  apart.findCompared();
  apart.askLanes(map, ownCol);
  apart.shareRows(map);
  Values results;
  for (auto [i, x] : llvm::enumerate(elements)) {
    FailureOr<Value> isHidden = apart.isHidden(placeOfElement(i));
    if (failed(isHidden))
      return failure();
    results.push_back(arith::SelectOp::create(b, *isHidden, constant, x));
  }
  scf::YieldOp::create(b, results);
  // Where columns are alike, rows decide. By a choice between sides of a branch
  // LLVM would hold the elements of both.
  b.setInsertionPointAfter(inner);
  for (auto &[row, isHidden] : hidden)
    isHidden = arith::SelectOp::create(b, anyDiffers, none, isHidden);
  results.clear();
  for (auto [i, x] : llvm::enumerate(inner.getResults()))
    results.push_back(
        arith::SelectOp::create(b, hidden[placeOfElement(i).row], constant, x));
  scf::YieldOp::create(b, results);
  b.setInsertionPointAfter(outer);
  Values vectors;
  auto wideType = VectorType::get({registers}, type.getElementType());
  for (int64_t index = 0; index < atoms; ++index)
    vectors.push_back(vector::FromElementsOp::create(
        b, wideType, outer.getResults().slice(index * registers, registers)));
  lower.setLanes(op.getResult(), vectors);
  return success();
}

LogicalResult MapOfLanes::emitByDistance(MapLowering &map, Operation *wait) {
  b.setInsertionPoint(wait);
  findFirst();
  SmallVector<MapLowering::Place> places;
  for (int64_t index = 0; index < atoms; ++index)
    for (int64_t reg = 0; reg < registers; ++reg)
      places.push_back(placeOf(index, reg));
  FailureOr<MapLowering::Term> difference = map.differenceAt(places);
  if (failed(difference))
    return failure();
  auto [least, most] = map.limits();
  using Predicate = arith::CmpIPredicate;
  auto isOn = [&](Predicate predicate, int64_t bound) {
    return arith::CmpIOp::create(b, predicate, difference->base,
                                 lower.i32(bound));
  };
  Value isBehind = isOn(Predicate::sge, most - difference->range.least);
  Value isBefore = isOn(Predicate::sle, least - difference->range.most);
  Value isFar = arith::OrIOp::create(b, isBehind, isBefore);
  Value anyNear = LaneAnyOp::create(
      b, arith::XOrIOp::create(
             b, isFar,
             arith::ConstantOp::create(b, b.getBoolAttr(true)).getResult()));
  MapLowering far(lower, op), near(lower, op);
  far.findClamped();
  far.fix(
      arith::SelectOp::create(b, isBehind, lower.i32(most), lower.i32(least)));
  if (failed(far.read(places.front())))
    return failure();
  b.restoreInsertionPoint(behind);
  auto outer = branch(anyNear);
  OpBuilder::InsertionGuard guard(b);
  if (failed(yield(outer.thenBlock(),
                   [&](ArrayRef<Value> of, MapLowering::Place place) {
                     return near.element(of, place);
                   })) ||
      failed(
          yield(outer.elseBlock(), [&](ArrayRef<Value> of, MapLowering::Place) {
            return far.element(of, places.front());
          })))
    return failure();
  lower.setLanes(op.getResult(), outer.getResults());
  return success();
}

/// The region's body, once for each element that the lane holds.
LogicalResult MapOfLanes::emit() {
  if (failed(findInputs()))
    return failure();
  MapLowering map(lower, op);
  for (int64_t index = 0; index < atoms; ++index)
    for (int64_t reg = 0; reg < registers; ++reg) {
      rows.insert(placeOf(index, reg).row);
      columns.insert(placeOf(index, reg).col);
    }
  bool meet = shareColumns(lower, atom, type, columns.size());
  if (meet && map.findCompared()) {
    if (Operation *wait = beforeProduct(lower, op))
      return emitByComparisons(map, wait);
    // Halves of a block that take turns multiply at once. What stays does so as
    // it is at the first column.
    if (lower.ownSchedule().hasHalves() && hidesByWords(op))
      return emitByQuestion(map);
  }
  // A branch for near tiles has what blocks are far from already: in one more
  // registers move, which costs more than it spares where most tiles are far.
  if (Operation *wait = beforeProduct(lower, op);
      wait && map.findClamped() && succeeded(emitByDistance(map, wait)))
    return success();
  b.restoreInsertionPoint(behind);
  bool votes =
      meet && lower.chip().waveSize == MapLowering::kVoters && map.findVotes();
  int64_t reads =
      map.countReads(atoms * registers, rows.size(), columns.size());
  bool readsAhead = reads && reads <= kMostAhead;
  Operation *wait = readsAhead || votes ? beforeProduct(lower, op) : nullptr;
  if (wait)
    b.setInsertionPoint(wait);
  findFirst();
  if (votes && failed(vote(map)))
    return failure();
  if (wait && readsAhead) {
    if (failed(readPairs(map)))
      return failure();
    for (int64_t index = 0; index < atoms; ++index)
      for (int64_t reg = 0; reg < registers; ++reg)
        if (failed(map.read(placeOf(index, reg))))
          return failure();
  }
  b.restoreInsertionPoint(behind);
  FailureOr<Values> results =
      each([&](ArrayRef<Value> of, MapLowering::Place place) {
        return map.element(of, place);
      });
  if (failed(results))
    return failure();
  lower.setLanes(op.getResult(), *results);
  return success();
}

LogicalResult kvbuf::lowerOp(LaneContext &lower, MapOp op) {
  FailureOr<bool> shared = shareDiagonals(lower, op);
  if (failed(shared) || *shared)
    return LogicalResult(shared);
  takeDiagonals(lower, op);
  return MapOfLanes(lower, op).emit();
}
