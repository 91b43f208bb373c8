//===- MapRegion.cpp - The region of a map, once an element -----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MapRegion.h"
#include "MapCoordinates.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace kvbuf;

void MapLowering::findLevels() {
  unsigned inputs = op.getInputs().size();
  auto levelOf = [&](Value value) -> unsigned {
    if (auto argument = dyn_cast<BlockArgument>(value);
        argument && argument.getOwner() == &body)
      return argument.getArgNumber() < inputs    ? PerElement
             : argument.getArgNumber() == inputs ? PerRow
                                                 : PerColumn;
    return levels.lookup(value.getDefiningOp());
  };
  for (Operation &inner : body) {
    unsigned level = Once;
    inner.walk([&](Operation *nested) {
      for (Value operand : nested->getOperands())
        level |= levelOf(operand);
    });
    levels[&inner] = level;
  }
}

void MapLowering::findReads() {
  for (Operation &inner : llvm::reverse(body)) {
    bool needed = llvm::any_of(inner.getUsers(), [&](Operation *user) {
      return reads.contains(body.findAncestorOpInBlock(*user));
    });
    if (levels.lookup(&inner) != PerElement &&
        (needed || isa<memref::LoadOp>(inner)))
      reads.insert(&inner);
  }
}

int64_t MapLowering::countReads(int64_t elements, int64_t rows,
                                int64_t cols) const {
  int64_t count = 0;
  for (Operation *inner : reads) {
    unsigned level = levels.lookup(inner);
    if (isa<memref::LoadOp>(inner))
      count += level == PerPlace    ? elements
               : level == PerColumn ? cols
               : level == PerRow    ? rows
                                    : 1;
  }
  return count;
}

Value MapLowering::inRegister(const Term &term) {
  if (!term.base)
    return lower.i32(term.offset);
  if (!term.offset)
    return term.base;
  Value &sum = sums[{term.base, term.offset}];
  if (!sum)
    sum = arith::AddIOp::create(b, term.base, lower.i32(term.offset),
                                arith::IntegerOverflowFlags::nsw);
  return sum;
}

MapLowering::Known MapLowering::lookup(Value value) {
  auto it = now.find(value);
  if (it != now.end())
    return it->second;
  auto [known, isNew] = outer.try_emplace(value);
  if (!isNew)
    return known->second;
  Known made;
  if (std::optional<int64_t> constant = getConstantIntValue(value);
      constant && !value.getType().isInteger(1)) {
    if (Range{*constant, *constant}.fits())
      made.term = Term{Value(), *constant, {*constant, *constant}};
  } else if (value.getType().isIndex()) {
    auto cast = value.getDefiningOp<arith::IndexCastOp>();
    if (cast && cast.getIn().getType().isInteger(32))
      if (Value word = lower.findSingle(cast.getIn()))
        made.term = Term{word, 0, Range::ofI32()};
    if (Value single = lower.findSingle(value);
        single && !made.term && isCoordinate(value))
      made.term =
          Term{lower.toI32(single), 0, {-kCoordinates, kCoordinates - 1}};
  } else if (value.getType().isInteger(32)) {
    if (Value single = lower.findSingle(value))
      made.term = Term{single, 0, Range::ofI32()};
  }
  return outer[value] = made;
}

Value MapLowering::materialize(Value value) {
  Known known = lookup(value);
  if (!known.term)
    return known.value ? known.value : lower.single(value);
  Type type = value.getType();
  const Term &term = *known.term;
  if (type.isInteger(32))
    return inRegister(term);
  if (!type.isIndex()) {
    if (!term.base)
      return arith::ConstantOp::create(b, b.getIntegerAttr(type, term.offset));
    return arith::ExtSIOp::create(b, type, inRegister(term));
  }
  // Numbers stay apart: addresses take them as they are.
  if (!term.base)
    return lower.index(term.offset);
  Value &wide = casts[{term.base, type}];
  if (!wide)
    wide = lower.toIndex(term.base);
  if (!term.offset)
    return wide;
  return arith::AddIOp::create(b, wide, lower.index(term.offset));
}

template <typename OpTy>
std::optional<MapLowering::Term>
MapLowering::combine(const Term &x, const Term &y, Range range) {
  if (!range.fits())
    return std::nullopt;
  return Term{once<OpTy>(inRegister(x), inRegister(y)), 0, range};
}

std::optional<MapLowering::Term> MapLowering::add(const Term &x,
                                                  const Term &y) {
  Term sum{x.base ? x.base : y.base, x.offset + y.offset, x.range + y.range};
  if (!sum.range.fits() || !sum.ofBase().fits())
    return std::nullopt;
  if (x.base && y.base)
    sum.base = once<arith::AddIOp>(x.base, y.base);
  return sum;
}

std::optional<MapLowering::Term> MapLowering::subtract(const Term &x,
                                                       const Term &y) {
  Term difference{x.base, x.offset - y.offset, x.range - y.range};
  if (!difference.range.fits() || !difference.ofBase().fits())
    return std::nullopt;
  if (y.base)
    difference.base =
        once<arith::SubIOp>(x.base ? x.base : lower.i32(0), y.base);
  return difference;
}

std::optional<MapLowering::Term> MapLowering::multiply(const Term &x,
                                                       const Term &y) {
  if (x.base && y.base) {
    auto [a, c] = std::pair(x.range, y.range);
    auto [least, most] = std::minmax({a.least * c.least, a.least * c.most,
                                      a.most * c.least, a.most * c.most});
    return combine<arith::MulIOp>(x, y, {least, most});
  }
  const Term &term = x.base ? x : y;
  int64_t factor = x.base ? y.offset : x.offset;
  Range range{term.range.least * factor, term.range.most * factor};
  if (factor < 0)
    std::swap(range.least, range.most);
  Term product{term.base, term.offset * factor, range};
  if (!range.fits() || !product.ofBase().fits())
    return std::nullopt;
  if (term.base)
    product.base = once<arith::MulIOp>(term.base, lower.i32(factor));
  return product;
}

std::optional<MapLowering::Term> MapLowering::makeTerm(Operation &inner) {
  if (inner.getNumResults() != 1 || inner.getNumRegions())
    return std::nullopt;
  Type type = inner.getResult(0).getType();
  if (!type.isIndex() && !type.isInteger(32) && !type.isInteger(64))
    return std::nullopt;
  if (auto constant = dyn_cast<arith::ConstantOp>(inner)) {
    int64_t value = cast<IntegerAttr>(constant.getValue()).getInt();
    return Range{value, value}.fits()
               ? std::optional(Term{Value(), value, {value, value}})
               : std::nullopt;
  }
  SmallVector<Term> terms;
  for (Value operand : inner.getOperands()) {
    if (operand.getType().isInteger(1))
      continue;
    std::optional<Term> term = termOf(operand);
    if (!term)
      return std::nullopt;
    terms.push_back(*term);
  }
  if (terms.size() == 1) {
    // Terms fit 32 bits, so that no cast between integers of so many changes
    // one.
    if (isa<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(inner))
      return terms[0];
    return std::nullopt;
  }
  if (terms.size() != 2)
    return std::nullopt;
  const Term &x = terms[0], &y = terms[1];
  Range a = x.range, c = y.range;
  if (isa<arith::AddIOp>(inner))
    return add(x, y);
  if (isa<arith::SubIOp>(inner))
    return subtract(x, y);
  if (isa<arith::MulIOp>(inner))
    return multiply(x, y);
  if (isa<arith::MinSIOp>(inner))
    return combine<arith::MinSIOp>(
        x, y, {std::min(a.least, c.least), std::min(a.most, c.most)});
  if (isa<arith::MaxSIOp>(inner))
    return combine<arith::MaxSIOp>(
        x, y, {std::max(a.least, c.least), std::max(a.most, c.most)});
  if (a.least < 0 || c.least < 1)
    return std::nullopt;
  if (isa<arith::DivUIOp, arith::DivSIOp>(inner))
    return combine<arith::DivUIOp>(x, y, {0, a.most});
  if (isa<arith::RemUIOp, arith::RemSIOp>(inner))
    return combine<arith::RemUIOp>(x, y, {0, c.most - 1});
  return std::nullopt;
}

MapLowering::Term MapLowering::narrowFor(const Term &wide, const Term &other) {
  Range range{other.range.least - 1, other.range.most + 1};
  if (!range.fits() ||
      (wide.range.least >= range.least && wide.range.most <= range.most))
    return wide;
  Value value = once<arith::MaxSIOp>(inRegister(wide), lower.i32(range.least));
  value = once<arith::MinSIOp>(value, lower.i32(range.most));
  return {value, 0, range};
}

Value MapLowering::compare(arith::CmpIPredicate predicate, Term x, Term y) {
  // What is the same for many elements is subtracted once, and moves to the
  // other side as the number that tells the elements apart.
  if (x.base && y.base && (x.offset || y.offset)) {
    Term left = x, right = y;
    if (!subtract(x, y))
      (x.offset ? right : left) = x.offset ? narrowFor(y, x) : narrowFor(x, y);
    if (std::optional<Term> difference = subtract(left, right)) {
      x = {difference->base, 0, difference->ofBase()};
      y = {Value(), -difference->offset, {}};
    }
  }
  if (!y.base && x.base && x.offset &&
      Range{y.offset - x.offset, y.offset - x.offset}.fits()) {
    y.offset -= x.offset;
    x.offset = 0;
  }
  if (!x.base && y.base && y.offset &&
      Range{x.offset - y.offset, x.offset - y.offset}.fits()) {
    x.offset -= y.offset;
    y.offset = 0;
  }
  return arith::CmpIOp::create(b, predicate, inRegister(x), inRegister(y));
}

/// The comparison of two terms as numbers with a sign; nothing where it is
/// none.
static std::optional<arith::CmpIPredicate>
signedPredicate(arith::CmpIPredicate predicate, const MapLowering::Term &x,
                const MapLowering::Term &y) {
  using P = arith::CmpIPredicate;
  if (llvm::is_contained({P::eq, P::ne, P::slt, P::sle, P::sgt, P::sge},
                         predicate))
    return predicate;
  if (x.range.least < 0 || y.range.least < 0)
    return std::nullopt;
  switch (predicate) {
  case P::ult:
    return P::slt;
  case P::ule:
    return P::sle;
  case P::ugt:
    return P::sgt;
  default:
    return P::sge;
  }
}

bool MapLowering::multiplySum(Operation &inner) {
  if (!isa<arith::MulFOp>(inner))
    return false;
  Value sum = inner.getOperand(0), factor = inner.getOperand(1);
  if (!lookup(sum).base)
    std::swap(sum, factor);
  Known known = lookup(sum);
  if (!known.base)
    return false;
  // One instruction for an element, where the sum would be one more.
  Value by = materialize(factor);
  now[inner.getResult(0)] = {
      std::nullopt, math::FmaOp::create(b, lower.f32(known.offset), by,
                                        once<arith::MulFOp>(known.base, by))};
  return true;
}

bool MapLowering::widen(Operation &inner) {
  auto extend = dyn_cast<arith::ExtFOp>(inner);
  if (!extend || !extend.getIn().getType().isBF16() ||
      !extend.getType().isF32())
    return false;
  // The upper half of the wide number. (NVIDIA's conversion is one of the slow
  // instructions, as exponentials are.)
  Value narrow = materialize(extend.getIn()), bits;
  auto part = narrow.getDefiningOp<vector::ExtractOp>();
  if (part && part.getSourceVectorType().getNumElements() == 2 &&
      part.getStaticPosition().size() == 1 && !part.hasDynamicPosition()) {
    // Of a word of two, one instruction each.
    Value &word = words[part.getSource()];
    if (!word)
      word = vector::ExtractOp::create(
          b,
          vector::BitCastOp::create(b, VectorType::get(1, b.getI32Type()),
                                    part.getSource()),
          ArrayRef<int64_t>{0});
    bits = part.getStaticPosition()[0]
               ? arith::AndIOp::create(b, word, lower.i32(-65536)).getResult()
               : arith::ShLIOp::create(b, word, lower.i32(16)).getResult();
  } else {
    Value half = arith::BitcastOp::create(b, b.getI16Type(), narrow);
    Value word = arith::ExtUIOp::create(b, b.getI32Type(), half);
    bits = arith::ShLIOp::create(b, word, lower.i32(16));
  }
  now[extend.getResult()] = {std::nullopt,
                             arith::BitcastOp::create(b, b.getF32Type(), bits)};
  return true;
}

LogicalResult MapLowering::evaluate(Operation &inner) {
  b.setLoc(inner.getLoc());
  if (std::optional<Term> term = makeTerm(inner)) {
    now[inner.getResult(0)] = {term, Value()};
    return success();
  }
  if (auto cmp = dyn_cast<arith::CmpIOp>(inner)) {
    std::optional<Term> x = termOf(cmp.getLhs()), y = termOf(cmp.getRhs());
    if (x && y)
      if (auto predicate = signedPredicate(cmp.getPredicate(), *x, *y)) {
        now[cmp.getResult()] = {std::nullopt, compare(*predicate, *x, *y)};
        return success();
      }
  }
  if (auto convert = dyn_cast<arith::SIToFPOp>(inner);
      convert && convert.getType().isF32())
    if (std::optional<Term> x = termOf(convert.getIn());
        x && x->base && x->offset) {
      // Exact for distances below 2^24; rounded twice beyond.
      Value &base = casts[{x->base, convert.getType()}];
      if (!base)
        base = arith::SIToFPOp::create(b, convert.getType(), x->base);
      now[convert.getResult()] = {
          std::nullopt, arith::AddFOp::create(b, base, lower.f32(x->offset)),
          base, x->offset};
      return success();
    }
  if (multiplySum(inner) || widen(inner))
    return success();
  inner.walk([&](Operation *nested) {
    for (Value operand : nested->getOperands())
      if (now.contains(operand))
        lower.setLanes(operand, {materialize(operand)});
  });
  if (failed(lower.lowerInner(&inner)))
    return failure();
  for (Value result : inner.getResults()) {
    Value value = lower.single(result);
    Known known{std::nullopt, value};
    if (value.getType().isInteger(32))
      known.term = Term{value, 0, Range::ofI32()};
    now[result] = known;
  }
  return success();
}

void MapLowering::setPlace(const Place &place) {
  auto coordinate = [&](BlockArgument argument, Value first, int64_t offset,
                        int64_t least) {
    if (first)
      now[argument] = {
          Term{first, offset, {least + offset, kCoordinates - 1 + offset}},
          Value()};
  };
  // Rows and keys are not negative, but for those of no tensor.
  unsigned inputs = op.getInputs().size();
  coordinate(body.getArgument(inputs), place.firstRow, place.row, 0);
  coordinate(body.getArgument(inputs + 1), place.firstCol, place.col, 0);
}

LogicalResult MapLowering::evaluateOnce(Operation &inner, const Place &place) {
  unsigned level = levels.lookup(&inner);
  std::pair<int64_t, int64_t> at{level & PerRow ? place.row : 0,
                                 level & PerColumn ? place.col : 0};
  auto [it, isNew] = kept.try_emplace({&inner, at});
  if (!isNew) {
    for (auto [result, known] : llvm::zip(inner.getResults(), it->second))
      now[result] = known;
    return success();
  }
  if (fixed && &inner == clamp) {
    now[inner.getResult(0)] = {Term{fixed, 0, clampedTo}, Value()};
  } else if (auto words = wordsOfLanes.find(&inner);
             firstOwnCol && words != wordsOfLanes.end()) {
    int64_t lanes = lower.chip().waveSize;
    Value source =
        arith::AddIOp::create(b, firstOwnCol, lower.i32(place.col % lanes));
    Value word =
        gpu::ShuffleOp::create(b, words->second[place.col / lanes], source,
                               lower.i32(lanes), gpu::ShuffleMode::IDX)
            .getShuffleResult();
    now[inner.getResult(0)] = {Term{word, 0, Range::ofI32()}, Value()};
  } else if (Value table = tables.lookup(&inner)) {
    Value index = cast<memref::LoadOp>(inner).getIndices().back();
    std::optional<Term> term = termOf(index);
    Value from = term ? inRegister(*term) : lower.toI32(materialize(index));
    Value word =
        gpu::ShuffleOp::create(b, table, from, lower.i32(lower.chip().waveSize),
                               gpu::ShuffleMode::IDX)
            .getShuffleResult();
    now[inner.getResult(0)] = {std::nullopt, word};
    if (word.getType().isInteger(32))
      now[inner.getResult(0)].term = Term{word, 0, Range::ofI32()};
  } else if (failed(evaluate(inner))) {
    return failure();
  }
  SmallVector<Known, 1> values;
  for (Value result : inner.getResults())
    values.push_back(now[result]);
  kept[{&inner, at}] = values;
  return success();
}

LogicalResult MapLowering::readTable(memref::LoadOp load) {
  OpBuilder::InsertionGuard guard(b);
  b.setLoc(load.getLoc());
  auto loop = b.getInsertionBlock()->getParent()->getParentOfType<scf::ForOp>();
  auto isThere = [&](Value value) {
    return llvm::all_of(lower.lanesOf(value), [&](Value lane) {
      return loop.isDefinedOutsideOfLoop(lane);
    });
  };
  if (loop && isThere(load.getMemref()) &&
      llvm::all_of(load.getIndices().drop_back(), isThere))
    b.setInsertionPoint(loop);
  int64_t last = load.getMemRefType().getShape().back() - 1;
  Value own = arith::MinSIOp::create(b, lower.laneInWarp(), lower.i32(last));
  lower.setLanes(load.getIndices().back(), {lower.toIndex(own)});
  if (failed(lower.lowerInner(load)))
    return failure();
  tables[load] = lower.single(load.getResult());
  return success();
}

/// Whether a load reads words of 32 bits by the column, which its other places
/// do not follow from.
static bool readsByColumn(memref::LoadOp load, Value column,
                          function_ref<bool(Value)> isOfRow) {
  Value last = load.getIndices().empty() ? Value() : load.getIndices().back();
  while (last && last != column) {
    auto cast = last.getDefiningOp<arith::IndexCastOp>();
    last = cast ? cast.getIn() : Value();
  }
  return last && load.getType().isIntOrFloat() &&
         load.getType().getIntOrFloatBitWidth() == 32 &&
         llvm::all_of(load.getIndices().drop_back(), isOfRow);
}

/// Reads the pairs of words `columns` behind each of `rows`: by one load each,
/// or by two.
static void yieldPairs(ImplicitLocOpBuilder &b, Value flat,
                       ArrayRef<Value> rows, Type type,
                       ArrayRef<int64_t> columns, bool byPairs) {
  Values values;
  for (Value row : rows) {
    auto from = [&](int64_t col) -> Value {
      return arith::AddIOp::create(b, row,
                                   arith::ConstantIndexOp::create(b, col));
    };
    for (int64_t col : columns) {
      Value pair;
      if (byPairs)
        pair = vector::LoadOp::create(b, VectorType::get(2, type), flat,
                                      ValueRange{from(col)},
                                      /*nontemporal=*/false, llvm::Align(8));
      for (int64_t i : {0, 1})
        values.push_back(
            pair ? vector::ExtractOp::create(b, pair, ArrayRef<int64_t>{i})
                       .getResult()
                 : memref::LoadOp::create(b, flat, ValueRange{from(col + i)})
                       .getResult());
    }
  }
  scf::YieldOp::create(b, values);
}

/// Asks for what lanes read of the tile before this one, to which a loop from
/// the last keys to the first comes next: the lines of `cols` words before
/// those at `at`. Only where rows have numbers of their own are these from
/// memory.
static void prefetchNext(ImplicitLocOpBuilder &b, Value flat, Value at,
                         int64_t cols) {
  constexpr int64_t line = 128 / 4;
  for (int64_t col = cols; col > 0; col -= line) {
    Value next =
        arith::SubIOp::create(b, at, arith::ConstantIndexOp::create(b, col));
    next = arith::MaxSIOp::create(
        b, next, arith::ConstantIndexOp::create(b, 0).getResult());
    memref::PrefetchOp::create(b, flat, ValueRange{next}, /*isWrite=*/false,
                               /*localityHint=*/2, /*isDataCache=*/true);
  }
}

LogicalResult MapLowering::readPairs(const Place &place, ArrayRef<int64_t> rows,
                                     ArrayRef<int64_t> columns) {
  Value column = body.getArgument(op.getInputs().size() + 1);
  auto levelOf = [&](Value value) -> unsigned {
    auto argument = dyn_cast<BlockArgument>(value);
    if (argument && argument.getOwner() == &body)
      return argument == column                                 ? PerColumn
             : argument.getArgNumber() == op.getInputs().size() ? PerRow
                                                                : PerElement;
    Operation *def = value.getDefiningOp();
    return def ? levels.lookup(def) : unsigned(Once);
  };
  auto isOfRow = [&](Value value) { return (levelOf(value) & ~PerRow) == 0; };
  for (auto load : body.getOps<memref::LoadOp>()) {
    const TensorArg *tensor = lower.findTensor(load.getMemref());
    if (!tensor || !reads.contains(load) ||
        !readsByColumn(load, column, isOfRow))
      continue;
    bool once = levels.lookup(load) == PerColumn;
    Value flat = lower.flat(tensor->data), isEven;
    SmallVector<Value> starts;
    ArrayRef<int64_t> own = once ? rows.take_front() : rows;
    for (int64_t row : own) {
      Place here = place;
      here.row = row;
      setPlace(here);
      // What it needs, for the lane's first column.
      for (Operation &inner : body.without_terminator()) {
        if (&inner == load)
          break;
        if (reads.contains(&inner) && failed(evaluateOnce(inner, here)))
          return failure();
      }
      b.setLoc(load.getLoc());
      Value at = lower.index(0);
      for (auto [i, index] : llvm::enumerate(load.getIndices())) {
        Value term = materialize(index);
        if (i < tensor->strides.size())
          term = arith::MulIOp::create(b, term, tensor->strides[i]);
        at = arith::AddIOp::create(b, at, term);
      }
      Value address = arith::AddIOp::create(
          b, memref::ExtractAlignedPointerAsIndexOp::create(b, flat),
          arith::MulIOp::create(b, at, lower.index(4)).getResult());
      Value rest = arith::AndIOp::create(b, address, lower.index(7));
      isEven =
          isEven ? arith::OrIOp::create(b, isEven, rest).getResult() : rest;
      starts.push_back(at);
      if (!once)
        prefetchNext(b, flat, at, op.getResult().getType().getCols());
    }
    isEven = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, isEven,
                                   lower.index(0));
    SmallVector<Type> types(2 * own.size() * columns.size(), load.getType());
    auto branch = scf::IfOp::create(b, types, isEven, /*addThenBlock=*/true,
                                    /*addElseBlock=*/true);
    for (bool byPairs : {true, false}) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(byPairs ? branch.thenBlock()
                                         : branch.elseBlock());
      yieldPairs(b, flat, starts, load.getType(), columns, byPairs);
    }
    for (auto [i, value] : llvm::enumerate(branch.getResults())) {
      Known known{std::nullopt, value};
      if (value.getType().isInteger(32))
        known.term = Term{value, 0, Range::ofI32()};
      int64_t pair = i / 2, col = columns[pair % columns.size()] + i % 2;
      kept[{load.getOperation(),
            {once ? 0 : own[pair / columns.size()], col}}] = {known};
    }
  }
  return success();
}

LogicalResult MapLowering::read(const Place &place) {
  setPlace(place);
  for (Operation &inner : body.without_terminator())
    if (reads.contains(&inner) && failed(evaluateOnce(inner, place)))
      return failure();
  return success();
}

LogicalResult MapLowering::evaluateAll(ArrayRef<Value> inputs,
                                       const Place &place, Operation *but) {
  for (auto [argument, input] : llvm::zip(body.getArguments(), inputs))
    now[argument] = {std::nullopt, input};
  setPlace(place);
  for (Operation &inner : body.without_terminator()) {
    if (ofVotes.contains(&inner) || &inner == but)
      continue;
    if (voted.contains(&inner)) {
      Value bit = arith::AndIOp::create(
          b, votes[&inner][place.col / kVoters],
          lower.i32(int32_t(uint32_t(1) << place.col % kVoters)));
      now[inner.getResult(0)] = {
          std::nullopt, arith::CmpIOp::create(b, arith::CmpIPredicate::ne, bit,
                                              lower.i32(0))};
      continue;
    }
    if (failed(levels.lookup(&inner) == PerElement
                   ? evaluate(inner)
                   : evaluateOnce(inner, place)))
      return failure();
  }
  return success();
}

FailureOr<Value> MapLowering::element(ArrayRef<Value> inputs,
                                      const Place &place) {
  if (failed(evaluateAll(inputs, place)))
    return failure();
  return materialize(cast<YieldOp>(body.getTerminator()).getValue());
}
