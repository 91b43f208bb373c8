//===- LaneMap.cpp - Arithmetic by regions, element by element --*- C++ -*-===//
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

#include "LaneMap.h"
#include "LaneLowering.h"
#include "Pages.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace kvbuf;

namespace {

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
  Value firstRow;
  int64_t row;
  Value firstCol;
  int64_t col;
};

/// The integers that a value may be.
struct Range {
  int64_t least, most;
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

/// Rows, keys and sizes are less: differences and sums of them fit 32 bits, as
/// those of masks do.
constexpr int64_t kCoordinates = int64_t(1) << 29;
constexpr Range kAnyI32 = {-(int64_t(1) << 31), (int64_t(1) << 31) - 1};

/// An integer: a register of 32 bits (null: 0) and a number, with what their
/// sum may be. Neither the register nor the sum leaves 32 bits.
struct Term {
  Value base;
  int64_t offset = 0;
  Range range;

  Range ofBase() const { return range - Range{offset, offset}; }
};

/// A value of the region for the element at hand: a term, or what lanes
/// compute.
struct Known {
  std::optional<Term> term;
  Value value;
  /// Of a term as an f32: what is the same for many elements, and the number
  /// that tells them apart, whose sum the value is; null: no such sum.
  Value base = {};
  int64_t offset = 0;
};

class MapLowering {
public:
  MapLowering(LaneLowering &lower, MapOp op)
      : lower(lower), b(lower.b), op(op), body(op.getBody().front()) {
    findLevels();
    findReads();
  }

  /// The element of `inputs` at a place.
  FailureOr<Value> element(ArrayRef<Value> inputs, const Place &place);

  /// How many numbers are read that follow from no element, where a lane has so
  /// many elements, rows and columns of them.
  int64_t countReads(int64_t elements, int64_t rows, int64_t cols) const;
  /// Reads those of a place.
  LogicalResult read(const Place &place);
  /// Reads words that lie by columns two at a time, the lane's pairs of which
  /// begin at `columns` behind the place's; where rows of the tensor begin at
  /// odd words, one at a time.
  LogicalResult readPairs(const Place &place, ArrayRef<int64_t> columns);

private:
  void findLevels();
  /// Finds what is read, and what that needs, of no element.
  void findReads();
  void setPlace(const Place &place);
  /// The values of an op for the place at hand, which others may have, too.
  LogicalResult evaluateOnce(Operation &inner, const Place &place);
  LogicalResult evaluate(Operation &inner);
  /// What is known of an operand, from outside of the region too.
  Known lookup(Value value);
  std::optional<Term> termOf(Value value) { return lookup(value).term; }
  /// The value as ops have it.
  Value materialize(Value value);
  Value inRegister(const Term &term);

  /// Integers that are terms; nothing where an op has no term.
  std::optional<Term> makeTerm(Operation &inner);
  std::optional<Term> add(const Term &x, const Term &y);
  std::optional<Term> subtract(const Term &x, const Term &y);
  std::optional<Term> multiply(const Term &x, const Term &y);
  /// An op on two registers whose result is in `range`.
  template <typename OpTy>
  std::optional<Term> combine(const Term &x, const Term &y, Range range);
  /// A product with a sum of a number, and a half that becomes wider; false
  /// where an op is none.
  bool multiplySum(Operation &inner);
  bool widen(Operation &inner);
  /// A comparison of two terms.
  Value compare(arith::CmpIPredicate predicate, Term x, Term y);
  /// `wide` as far as a comparison with `other` can tell.
  Term narrowFor(const Term &wide, const Term &other);
  /// Binary ops on registers, each once.
  template <typename OpTy> Value once(Value x, Value y) {
    Value &made = pairs[{{OpTy::getOperationName(), x}, y}];
    if (!made)
      made = OpTy::create(b, x, y);
    return made;
  }

  LaneLowering &lower;
  ImplicitLocOpBuilder &b;
  MapOp op;
  Block &body;
  llvm::DenseMap<Operation *, unsigned> levels;
  llvm::SmallPtrSet<Operation *, 8> reads;
  /// Values of the element at hand, and those that others will have, too.
  llvm::DenseMap<Value, Known> now;
  llvm::DenseMap<std::pair<Operation *, std::pair<int64_t, int64_t>>,
                 SmallVector<Known, 1>>
      kept;
  /// Values from outside of the region.
  llvm::DenseMap<Value, Known> outer;
  llvm::DenseMap<std::pair<std::pair<StringRef, Value>, Value>, Value> pairs;
  llvm::DenseMap<std::pair<Value, int64_t>, Value> sums;
  llvm::DenseMap<std::pair<Value, Type>, Value> casts;
  /// Words of two halves, as integers.
  llvm::DenseMap<Value, Value> words;
};

} // namespace

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

Known MapLowering::lookup(Value value) {
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
    if (Value single = lower.findSingle(value))
      made.term =
          Term{lower.toI32(single), 0, {-kCoordinates, kCoordinates - 1}};
  } else if (value.getType().isInteger(32)) {
    if (Value single = lower.findSingle(value))
      made.term = Term{single, 0, kAnyI32};
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
std::optional<Term> MapLowering::combine(const Term &x, const Term &y,
                                         Range range) {
  if (!range.fits())
    return std::nullopt;
  return Term{once<OpTy>(inRegister(x), inRegister(y)), 0, range};
}

std::optional<Term> MapLowering::add(const Term &x, const Term &y) {
  Term sum{x.base ? x.base : y.base, x.offset + y.offset, x.range + y.range};
  if (!sum.range.fits() || !sum.ofBase().fits())
    return std::nullopt;
  if (x.base && y.base)
    sum.base = once<arith::AddIOp>(x.base, y.base);
  return sum;
}

std::optional<Term> MapLowering::subtract(const Term &x, const Term &y) {
  Term difference{x.base, x.offset - y.offset, x.range - y.range};
  if (!difference.range.fits() || !difference.ofBase().fits())
    return std::nullopt;
  if (y.base)
    difference.base =
        once<arith::SubIOp>(x.base ? x.base : lower.i32(0), y.base);
  return difference;
}

std::optional<Term> MapLowering::multiply(const Term &x, const Term &y) {
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

std::optional<Term> MapLowering::makeTerm(Operation &inner) {
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

Term MapLowering::narrowFor(const Term &wide, const Term &other) {
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
signedPredicate(arith::CmpIPredicate predicate, const Term &x, const Term &y) {
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
        lower.set(operand, {materialize(operand)});
  });
  if (failed(lower.lowerOp(&inner)))
    return failure();
  for (Value result : inner.getResults()) {
    Value value = lower.single(result);
    Known known{std::nullopt, value};
    if (value.getType().isInteger(32))
      known.term = Term{value, 0, kAnyI32};
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
  if (failed(evaluate(inner)))
    return failure();
  SmallVector<Known, 1> values;
  for (Value result : inner.getResults())
    values.push_back(now[result]);
  kept[{&inner, at}] = values;
  return success();
}

/// Whether a load reads words of 32 bits by the column, whose other places are
/// the same for all elements.
static bool readsByColumn(memref::LoadOp load, Value column,
                          function_ref<bool(Value)> isOnce) {
  Value last = load.getIndices().empty() ? Value() : load.getIndices().back();
  while (last && last != column) {
    auto cast = last.getDefiningOp<arith::IndexCastOp>();
    last = cast ? cast.getIn() : Value();
  }
  return last && load.getType().isIntOrFloat() &&
         load.getType().getIntOrFloatBitWidth() == 32 &&
         llvm::all_of(load.getIndices().drop_back(), isOnce);
}

/// Reads the pairs of words `columns` behind `at`: by one load each, or by two.
static void yieldPairs(ImplicitLocOpBuilder &b, Value flat, Value at, Type type,
                       ArrayRef<int64_t> columns, bool byPairs) {
  Values values;
  auto from = [&](int64_t col) -> Value {
    return arith::AddIOp::create(b, at, arith::ConstantIndexOp::create(b, col));
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
  scf::YieldOp::create(b, values);
}

LogicalResult MapLowering::readPairs(const Place &place,
                                     ArrayRef<int64_t> columns) {
  Value column = body.getArgument(op.getInputs().size() + 1);
  auto isOnce = [&](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    Operation *def = value.getDefiningOp();
    return !(argument && argument.getOwner() == &body) &&
           !(def && levels.lookup(def) != Once);
  };
  for (auto load : body.getOps<memref::LoadOp>()) {
    const TensorArg *tensor = lower.signature.findTensor(load.getMemref());
    if (!tensor || !reads.contains(load) ||
        !readsByColumn(load, column, isOnce))
      continue;
    setPlace(place);
    // What it needs, for the lane's first column.
    for (Operation &inner : body.without_terminator()) {
      if (&inner == load)
        break;
      if (reads.contains(&inner) && failed(evaluateOnce(inner, place)))
        return failure();
    }
    b.setLoc(load.getLoc());
    Value at = lower.index(0), flat = lower.flat(tensor->data);
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
    Value isEven = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, rest,
                                         lower.index(0));
    SmallVector<Type> types(2 * columns.size(), load.getType());
    auto branch = scf::IfOp::create(b, types, isEven, /*addThenBlock=*/true,
                                    /*addElseBlock=*/true);
    for (bool byPairs : {true, false}) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(byPairs ? branch.thenBlock()
                                         : branch.elseBlock());
      yieldPairs(b, flat, at, load.getType(), columns, byPairs);
    }
    for (auto [i, value] : llvm::enumerate(branch.getResults())) {
      Known known{std::nullopt, value};
      if (value.getType().isInteger(32))
        known.term = Term{value, 0, kAnyI32};
      std::pair<int64_t, int64_t> where{0, columns[i / 2] + i % 2};
      kept[{load.getOperation(), where}] = {known};
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

FailureOr<Value> MapLowering::element(ArrayRef<Value> inputs,
                                      const Place &place) {
  for (auto [argument, input] : llvm::zip(body.getArguments(), inputs))
    now[argument] = {std::nullopt, input};
  setPlace(place);
  for (Operation &inner : body.without_terminator())
    if (failed(levels.lookup(&inner) == PerElement
                   ? evaluate(inner)
                   : evaluateOnce(inner, place)))
      return failure();
  return materialize(cast<YieldOp>(body.getTerminator()).getValue());
}

/// Numbers that are read ahead of the product of which the elements come have a
/// register each; a schedule has room for so many (repairForReads).
static constexpr int64_t kMostAhead = 40;

/// The op before which a map may read what follows from no element: that which
/// waits for the product whose elements it takes. Null where there is none, or
/// where what the map needs comes behind it.
static Operation *beforeProduct(LaneLowering &lower, MapOp op) {
  auto source = op.getInputs()[0].getDefiningOp<MmaWaitOp>();
  const Values &lanes = lower.get(op.getInputs()[0]);
  Operation *wait = lanes.empty() ? nullptr : lanes[0].getDefiningOp();
  if (!source || !wait || wait->getBlock() != lower.b.getInsertionBlock())
    return nullptr;
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
  return isThere ? wait : nullptr;
}

namespace {
/// Where a lane has the elements of an input that the result's registers stand
/// for.
class InputElements {
public:
  InputElements(LaneLowering &lower, Value input);
  /// Whether it has a value for each row.
  bool isOfRows() const { return ofRows; }
  /// The value of row `number` of a lane's.
  Value ofRow(int64_t number) const { return words[number]; }
  /// The element at a row and a column, less what depends on the lane.
  Value at(LaneLowering &lower, std::pair<int64_t, int64_t> place) const {
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

InputElements::InputElements(LaneLowering &lower, Value input)
    : layout(lower.layouts.of(cast<FragmentType>(input.getType()))),
      words(lower.get(input)),
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

/// The region's body, once for each element that the lane holds.
LogicalResult kvbuf::lowerOp(LaneLowering &lower, MapOp op) {
  ImplicitLocOpBuilder &b = lower.b;
  FragmentType type = op.getResult().getType();
  const FragmentLayout &atom = lower.layouts.of(type);
  int64_t cols = atom.atomCols(type);
  SmallVector<InputElements> inputs;
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
  Block &body = op.getBody().front();
  // Coordinates fit 32 bits, as the problem's sizes do.
  auto base = [&](BlockArgument argument, Value inLane, Value first) -> Value {
    if (argument.use_empty())
      return {};
    if (!first)
      return inLane;
    return arith::AddIOp::create(b, lower.toI32(lower.single(first)), inLane);
  };
  llvm::SaveAndRestore<bool> wide(lower.narrowsIndices, false);
  MapLowering map(lower, op);
  int64_t atoms = atom.atoms(type), registers = atom.registers();
  int64_t rowParts = atom.rowParts().size();
  llvm::SmallSet<int64_t, 8> rows;
  llvm::DenseSet<int64_t> columns;
  auto placeOf = [&](int64_t index, int64_t reg) -> Place {
    return {Value(), atom.rowOffset(index / cols, atom.rowPart(reg)), Value(),
            index % cols * atom.cols + atom.colOffset(reg)};
  };
  for (int64_t index = 0; index < atoms; ++index)
    for (int64_t reg = 0; reg < registers; ++reg) {
      rows.insert(placeOf(index, reg).row);
      columns.insert(placeOf(index, reg).col);
    }
  OpBuilder::InsertPoint behind = b.saveInsertionPoint();
  int64_t reads =
      map.countReads(atoms * registers, rows.size(), columns.size());
  Operation *wait =
      reads && reads <= kMostAhead ? beforeProduct(lower, op) : nullptr;
  if (wait)
    b.setInsertionPoint(wait);
  Value firstRow = base(body.getArgument(inputs.size()), lower.laneRow(type),
                        op.getRow()),
        firstCol = base(body.getArgument(inputs.size() + 1),
                        lower.laneCol(type), op.getCol());
  auto at = [&](int64_t index, int64_t reg) {
    Place place = placeOf(index, reg);
    place.firstRow = firstRow;
    place.firstCol = firstCol;
    return place;
  };
  SmallVector<int64_t> pairs;
  for (int64_t column : columns)
    if (column % 2 == 0 && columns.contains(column + 1))
      pairs.push_back(column);
  llvm::sort(pairs);
  // A lane's columns are pairs, each from an even one on.
  if (wait && 2 * pairs.size() == columns.size() && atom.columnRun() >= 2 &&
      firstCol && op.getCol() && isMultipleOf(op.getCol(), 2) &&
      failed(map.readPairs(at(0, 0), pairs)))
    return failure();
  if (wait)
    for (int64_t index = 0; index < atoms; ++index)
      for (int64_t reg = 0; reg < registers; ++reg)
        if (failed(map.read(at(index, reg))))
          return failure();
  b.restoreInsertionPoint(behind);
  Values results;
  for (int64_t index = 0; index < atoms; ++index) {
    Values elements;
    for (int64_t reg = 0; reg < registers; ++reg) {
      SmallVector<Value> of;
      Place place = at(index, reg);
      for (const InputElements &input : inputs)
        of.push_back(
            input.isOfRows()
                ? input.ofRow(index / cols * rowParts + atom.rowPart(reg))
                : input.at(lower, {place.row, place.col}));
      FailureOr<Value> element = map.element(of, place);
      if (failed(element))
        return failure();
      elements.push_back(*element);
    }
    b.setLoc(op.getLoc());
    auto wideType =
        VectorType::get({int64_t(elements.size())}, type.getElementType());
    results.push_back(vector::FromElementsOp::create(b, wideType, elements));
  }
  lower.set(op.getResult(), results);
  return success();
}
