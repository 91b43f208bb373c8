//===- Bounds.cpp - Between which numbers an expression stays ---*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bounds.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace mlir;
using namespace kvbuf::raise;

/// Integers up to here are exact as double.
static constexpr double kMostExact = 9007199254740992.0;
/// Most elements of a constant that are looked at.
static constexpr int64_t kMostElements = 1 << 20;

/// What a type holds; nothing for floats, which may be infinite.
static std::optional<Bounds> boundsOf(Type type) {
  if (type.isInteger(1))
    return Bounds{0, 1};
  if (type.isIndex())
    return Bounds{-std::ldexp(1.0, 63), std::ldexp(1.0, 63)};
  if (!isa<IntegerType>(type))
    return std::nullopt;
  double half = std::ldexp(1.0, int(type.getIntOrFloatBitWidth()) - 1);
  return Bounds{-half, half - 1};
}

/// `bounds` of a number of `type`, which may be any where integers wrap, and
/// floats are none.
static std::optional<Bounds> within(Type type, Bounds bounds) {
  if (isa<FloatType>(type)) {
    if (std::isfinite(bounds.lo) && std::isfinite(bounds.hi))
      return bounds;
    return std::nullopt;
  }
  std::optional<Bounds> all = boundsOf(type);
  bool fits = all && bounds.lo >= std::max(all->lo, -kMostExact) &&
              bounds.hi <= std::min(all->hi, kMostExact);
  return fits ? std::optional(bounds) : all;
}

void BoundsFinder::fix(ArrayRef<Digit> coord, int64_t value) {
  for (Digit digit : llvm::reverse(graph.resolve(coord))) {
    int64_t extent = graph.getExtent(digit);
    bool isKnown = !ShapedType::isDynamic(extent);
    fixed[digit] = isKnown ? value % extent : value;
    value = isKnown ? value / extent : 0;
  }
}

std::optional<Bounds> BoundsFinder::findIndex(ArrayRef<Digit> coord) {
  Bounds result{0, 0};
  for (Digit digit : graph.resolve(coord)) {
    int64_t extent = graph.getExtent(digit);
    auto known = fixed.find(digit);
    if (ShapedType::isDynamic(extent)) {
      // What stands to its left counts by an unknown extent.
      if (result.hi != 0)
        return Bounds{0, kMostExact};
      result = known != fixed.end()
                   ? Bounds{double(known->second), double(known->second)}
                   : Bounds{0, kMostExact};
      continue;
    }
    Bounds own = known != fixed.end()
                     ? Bounds{double(known->second), double(known->second)}
                     : Bounds{0, double(std::max<int64_t>(extent - 1, 0))};
    result = {result.lo * extent + own.lo, result.hi * extent + own.hi};
  }
  return result;
}

std::optional<Bounds> BoundsFinder::findElement(Expr *e) {
  DenseElementsAttr elements;
  if (!matchPattern(e->value, m_Constant(&elements)) ||
      elements.getNumElements() > kMostElements || elements.empty())
    return boundsOf(e->type);
  std::optional<Bounds> result;
  auto add = [&](double value) {
    if (!result)
      result = Bounds{value, value};
    result->lo = std::min(result->lo, value);
    result->hi = std::max(result->hi, value);
  };
  if (auto values = elements.tryGetValues<APFloat>(); succeeded(values)) {
    for (APFloat value : *values) {
      bool lost;
      value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
      if (!value.isFinite())
        return std::nullopt;
      add(value.convertToDouble());
    }
    return result;
  }
  if (auto values = elements.tryGetValues<APInt>(); succeeded(values)) {
    for (const APInt &value : *values)
      add(e->type.isInteger(1) ? double(value.getZExtValue())
                               : double(value.getSExtValue()));
    return within(e->type, *result);
  }
  return boundsOf(e->type);
}

std::optional<Bounds> BoundsFinder::find(Expr *e) {
  e = graph.view(e);
  switch (e->kind) {
  case Expr::Kind::Constant:
    if (std::optional<double> value = graph.constantOf(e))
      return within(e->type, Bounds{*value, *value});
    return boundsOf(e->type);
  case Expr::Kind::Index:
    return findIndex(e->coords[0]);
  case Expr::Kind::Element:
    return findElement(e);
  case Expr::Kind::Op:
    return findOp(e);
  default:
    return boundsOf(e->type);
  }
}

std::optional<Bounds> BoundsFinder::findComparison(Expr *e, Bounds x,
                                                   Bounds y) {
  const Bounds yes{1, 1}, no{0, 0}, any{0, 1};
  // Whether always, never, or sometimes.
  auto less = [&](Bounds a, Bounds b) {
    return a.hi < b.lo ? yes : a.lo >= b.hi ? no : any;
  };
  auto lessOrEqual = [&](Bounds a, Bounds b) {
    return a.hi <= b.lo ? yes : a.lo > b.hi ? no : any;
  };
  auto equal = [&](Bounds a, Bounds b) {
    return a.isOne() && b.isOne() && a.lo == b.lo ? yes
           : a.hi < b.lo || b.hi < a.lo           ? no
                                                  : any;
  };
  auto negated = [](Bounds b) { return Bounds{1 - b.hi, 1 - b.lo}; };
  int64_t number = cast<IntegerAttr>(e->attrs.get("predicate")).getInt();
  if (e->isOp("arith.cmpi")) {
    auto predicate = static_cast<arith::CmpIPredicate>(number);
    // Compared as unsigned, numbers less than 0 are large: 0 is the least.
    bool isUnsigned = predicate >= arith::CmpIPredicate::ult;
    if (isUnsigned && (x.lo < 0 || y.lo < 0)) {
      bool least = predicate == arith::CmpIPredicate::ule && x.hi == 0;
      bool most = predicate == arith::CmpIPredicate::uge && y.hi == 0;
      return (least && x.lo == 0) || (most && y.lo == 0) ? yes : any;
    }
    switch (predicate) {
    case arith::CmpIPredicate::eq:
      return equal(x, y);
    case arith::CmpIPredicate::ne:
      return negated(equal(x, y));
    case arith::CmpIPredicate::slt:
    case arith::CmpIPredicate::ult:
      return less(x, y);
    case arith::CmpIPredicate::sle:
    case arith::CmpIPredicate::ule:
      return lessOrEqual(x, y);
    case arith::CmpIPredicate::sgt:
    case arith::CmpIPredicate::ugt:
      return less(y, x);
    case arith::CmpIPredicate::sge:
    case arith::CmpIPredicate::uge:
      return lessOrEqual(y, x);
    }
  }
  // Both are numbers, so that order does not matter.
  switch (static_cast<arith::CmpFPredicate>(number)) {
  case arith::CmpFPredicate::OLT:
  case arith::CmpFPredicate::ULT:
    return less(x, y);
  case arith::CmpFPredicate::OLE:
  case arith::CmpFPredicate::ULE:
    return lessOrEqual(x, y);
  case arith::CmpFPredicate::OGT:
  case arith::CmpFPredicate::UGT:
    return less(y, x);
  case arith::CmpFPredicate::OGE:
  case arith::CmpFPredicate::UGE:
    return lessOrEqual(y, x);
  case arith::CmpFPredicate::OEQ:
  case arith::CmpFPredicate::UEQ:
    return equal(x, y);
  case arith::CmpFPredicate::ONE:
  case arith::CmpFPredicate::UNE:
    return negated(equal(x, y));
  default:
    return any;
  }
}

std::optional<Bounds> BoundsFinder::findOp(Expr *e) {
  std::optional<Bounds> unknown = boundsOf(e->type);
  if (e->isOp("arith.select")) {
    std::optional<Bounds> c = find(e->operands[0]);
    if (c && c->isOne())
      return find(e->operands[c->lo != 0 ? 1 : 2]);
    std::optional<Bounds> x = find(e->operands[1]), y = find(e->operands[2]);
    if (!x || !y)
      return unknown;
    return Bounds{std::min(x->lo, y->lo), std::max(x->hi, y->hi)};
  }
  SmallVector<Bounds, 2> x;
  for (Expr *operand : e->operands) {
    std::optional<Bounds> bounds = find(operand);
    if (!bounds)
      return unknown;
    x.push_back(*bounds);
  }
  auto result = [&](double lo, double hi) {
    return within(e->type, Bounds{lo, hi});
  };
  auto isOp = [&](std::initializer_list<StringRef> names) {
    return e->name && llvm::is_contained(names, e->name->getStringRef());
  };
  if (x.size() == 1) {
    bool isTruth = e->operands[0]->type.isInteger(1);
    if (isOp({"arith.index_cast", "arith.extsi", "arith.trunci",
              "arith.sitofp"}) &&
        !isTruth)
      return result(x[0].lo, x[0].hi);
    if (isOp({"arith.extui", "arith.uitofp", "arith.index_castui"}) &&
        x[0].lo >= 0)
      return result(x[0].lo, x[0].hi);
    if (isOp({"arith.negf"}))
      return result(-x[0].hi, -x[0].lo);
    if (isOp({"math.absf", "math.absi"})) {
      double most = std::max(std::fabs(x[0].lo), std::fabs(x[0].hi));
      bool crosses = x[0].lo < 0 && x[0].hi > 0;
      double least = std::min(std::fabs(x[0].lo), std::fabs(x[0].hi));
      return result(crosses ? 0 : least, most);
    }
    return unknown;
  }
  if (x.size() != 2)
    return unknown;
  Bounds a = x[0], b = x[1];
  if (isOp({"arith.cmpi", "arith.cmpf"}))
    return findComparison(e, a, b);
  if (e->type.isInteger(1)) {
    if (isOp({"arith.andi", "arith.muli"}))
      return Bounds{a.lo * b.lo, a.hi * b.hi};
    if (isOp({"arith.ori"}))
      return Bounds{std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
    if (isOp({"arith.xori"}) && a.isOne() && b.isOne())
      return Bounds{double(a.lo != b.lo), double(a.lo != b.lo)};
    return unknown;
  }
  if (isOp({"arith.addi", "arith.addf"}))
    return result(a.lo + b.lo, a.hi + b.hi);
  if (isOp({"arith.subi", "arith.subf"}))
    return result(a.lo - b.hi, a.hi - b.lo);
  if (isOp({"arith.muli", "arith.mulf"})) {
    auto [least, most] =
        std::minmax({a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi});
    return result(least, most);
  }
  if (isOp({"arith.divf"}) && b.isOne() && b.lo != 0)
    return result(std::min(a.lo / b.lo, a.hi / b.lo),
                  std::max(a.lo / b.lo, a.hi / b.lo));
  if (isOp({"arith.maxsi", "arith.maximumf", "arith.maxnumf"}))
    return result(std::max(a.lo, b.lo), std::max(a.hi, b.hi));
  if (isOp({"arith.minsi", "arith.minimumf", "arith.minnumf"}))
    return result(std::min(a.lo, b.lo), std::min(a.hi, b.hi));
  return unknown;
}
