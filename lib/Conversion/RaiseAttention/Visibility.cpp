//===- Visibility.cpp - Which keys a graph's masks leave visible ----------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Visibility.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace mlir;
using namespace kvbuf::raise;

namespace {

/// Most positions of a mask that are looked at one by one.
constexpr int64_t kMostPositions = 1 << 20;

/// a * i + b * j + c.
struct Linear {
  int64_t a = 0, b = 0, c = 0;
};

/// A number of the graph at fixed coordinates.
struct Number {
  bool isFloat = false;
  int64_t integer = 0;
  double real = 0;
  static Number of(int64_t value) { return {false, value, double(value)}; }
  static Number of(double value) { return {true, 0, value}; }
};

class BandFinder {
public:
  BandFinder(ElementGraph &graph, ArrayRef<Digit> i, ArrayRef<Digit> j)
      : graph(graph), i(graph.resolve(i)), j(graph.resolve(j)) {}

  std::optional<Band> byComparisons(Expr *e, bool visibleWhere);
  std::optional<Band> byPositions(const Hiding &hiding, std::string &why);

private:
  std::optional<Linear> linear(Expr *e);
  std::optional<Number> evaluate(Expr *e);
  std::optional<Number> evaluateOp(Expr *e);
  std::optional<Number> evaluateElement(Expr *e);

  ElementGraph &graph;
  Coord i, j;
  /// The position at hand.
  DenseMap<Digit, int64_t> at;
};

} // namespace

std::optional<Linear> BandFinder::linear(Expr *e) {
  e = graph.view(e);
  if (e->kind == Expr::Kind::Index) {
    Coord coord = graph.resolve(e->coords[0]);
    if (coord.empty())
      return Linear{};
    if (coord == i)
      return Linear{1, 0, 0};
    if (coord == j)
      return Linear{0, 1, 0};
    return std::nullopt;
  }
  if (e->kind == Expr::Kind::Constant) {
    if (auto number = dyn_cast<IntegerAttr>(e->constant))
      return Linear{0, 0, number.getValue().getSExtValue()};
    return std::nullopt;
  }
  if (e->kind != Expr::Kind::Op || e->operands.empty())
    return std::nullopt;
  auto wide = [](Type type) {
    return type.isIndex() || type.getIntOrFloatBitWidth() >= 32;
  };
  if (!e->type.isIntOrIndex() || !wide(e->type))
    return std::nullopt;
  std::optional<Linear> x = linear(e->operands[0]);
  if (!x)
    return std::nullopt;
  if (e->isOp("arith.index_cast") || e->isOp("arith.extsi") ||
      e->isOp("arith.trunci"))
    return x;
  if (e->operands.size() != 2)
    return std::nullopt;
  std::optional<Linear> y = linear(e->operands[1]);
  if (!y)
    return std::nullopt;
  if (e->isOp("arith.addi"))
    return Linear{x->a + y->a, x->b + y->b, x->c + y->c};
  if (e->isOp("arith.subi"))
    return Linear{x->a - y->a, x->b - y->b, x->c - y->c};
  if (e->isOp("arith.muli")) {
    if (x->a || x->b)
      std::swap(x, y);
    if (x->a || x->b)
      return std::nullopt;
    return Linear{x->c * y->a, x->c * y->b, x->c * y->c};
  }
  return std::nullopt;
}

static Band intersect(const Band &a, const Band &b) {
  Band result = a;
  if (b.lowest)
    result.lowest = std::max(*b.lowest, a.lowest.value_or(*b.lowest));
  if (b.highest)
    result.highest = std::min(*b.highest, a.highest.value_or(*b.highest));
  return result;
}

std::optional<Band> BandFinder::byComparisons(Expr *e, bool visibleWhere) {
  e = graph.view(e);
  if (std::optional<double> constant = graph.constantOf(e)) {
    if ((*constant != 0) == visibleWhere)
      return Band{};
    return std::nullopt;
  }
  auto both = [&](Expr *x, Expr *y) -> std::optional<Band> {
    std::optional<Band> a = byComparisons(x, visibleWhere);
    std::optional<Band> b = a ? byComparisons(y, visibleWhere) : std::nullopt;
    if (!b)
      return std::nullopt;
    return intersect(*a, *b);
  };
  if (e->isOp(visibleWhere ? "arith.andi" : "arith.ori"))
    return both(e->operands[0], e->operands[1]);
  if (e->isOp("arith.xori"))
    for (unsigned k : {0u, 1u})
      if (std::optional<double> flip = graph.constantOf(e->operands[k]))
        return byComparisons(e->operands[1 - k], visibleWhere != (*flip != 0));
  // select(c, x, false) is c and x, select(c, true, y) is c or y.
  if (e->isOp("arith.select")) {
    std::optional<double> yes = graph.constantOf(e->operands[1]);
    std::optional<double> no = graph.constantOf(e->operands[2]);
    if (visibleWhere && no && *no == 0)
      return both(e->operands[0], e->operands[1]);
    if (!visibleWhere && yes && *yes != 0)
      return both(e->operands[0], e->operands[2]);
    return std::nullopt;
  }
  if (!e->isOp("arith.cmpi"))
    return std::nullopt;
  auto predicate = static_cast<arith::CmpIPredicate>(
      cast<IntegerAttr>(e->attrs.get("predicate")).getInt());
  if (e->operands[0]->type.isInteger(1)) {
    // Comparisons of truth values: x == false is not x.
    for (unsigned k : {0u, 1u})
      if (std::optional<double> value = graph.constantOf(e->operands[k])) {
        if (predicate == arith::CmpIPredicate::eq)
          return byComparisons(e->operands[1 - k],
                               visibleWhere == (*value != 0));
        if (predicate == arith::CmpIPredicate::ne)
          return byComparisons(e->operands[1 - k],
                               visibleWhere != (*value != 0));
      }
    return std::nullopt;
  }
  std::optional<Linear> x = linear(e->operands[0]), y = linear(e->operands[1]);
  if (!x || !y)
    return std::nullopt;
  if (!visibleWhere)
    predicate = arith::invertPredicate(predicate);
  // Compared as unsigned, numbers that may be negative are large.
  auto isNatural = [](const Linear &l) {
    return l.a >= 0 && l.b >= 0 && l.c >= 0;
  };
  switch (predicate) {
  case arith::CmpIPredicate::ult:
  case arith::CmpIPredicate::ule:
  case arith::CmpIPredicate::ugt:
  case arith::CmpIPredicate::uge:
    if (!isNatural(*x) || !isNatural(*y))
      return std::nullopt;
    break;
  default:
    break;
  }
  Linear d{x->a - y->a, x->b - y->b, x->c - y->c};
  // b * (j - i) + c, compared with 0.
  if (d.a != -d.b || (d.b != 1 && d.b != -1))
    return std::nullopt;
  bool flipped = d.b < 0;
  int64_t at = flipped ? d.c : -d.c;
  Band band;
  auto less = [&](int64_t bound) { band.highest = bound; };
  auto greater = [&](int64_t bound) { band.lowest = bound; };
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    less(at);
    greater(at);
    return band;
  case arith::CmpIPredicate::slt:
  case arith::CmpIPredicate::ult:
    flipped ? greater(at + 1) : less(at - 1);
    return band;
  case arith::CmpIPredicate::sle:
  case arith::CmpIPredicate::ule:
    flipped ? greater(at) : less(at);
    return band;
  case arith::CmpIPredicate::sgt:
  case arith::CmpIPredicate::ugt:
    flipped ? less(at - 1) : greater(at + 1);
    return band;
  case arith::CmpIPredicate::sge:
  case arith::CmpIPredicate::uge:
    flipped ? less(at) : greater(at);
    return band;
  case arith::CmpIPredicate::ne:
    return std::nullopt;
  }
  llvm_unreachable("all predicates are handled");
}

//===----------------------------------------------------------------------===//
// Position by position
//===----------------------------------------------------------------------===//

std::optional<Number> BandFinder::evaluateElement(Expr *e) {
  DenseElementsAttr elements;
  auto type = dyn_cast<RankedTensorType>(e->value.getType());
  if (!type || !matchPattern(e->value, m_Constant(&elements)))
    return std::nullopt;
  int64_t flat = 0;
  for (auto [dim, coord] : llvm::enumerate(e->coords)) {
    int64_t index = 0;
    for (Digit digit : graph.resolve(coord)) {
      auto known = at.find(digit);
      if (known == at.end())
        return std::nullopt;
      index = index * graph.getExtent(digit) + known->second;
    }
    flat = flat * type.getDimSize(dim) + index;
  }
  if (auto values = elements.tryGetValues<APFloat>(); succeeded(values)) {
    APFloat value = (*values)[flat];
    bool lost;
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
    return Number::of(value.convertToDouble());
  }
  if (auto values = elements.tryGetValues<APInt>(); succeeded(values)) {
    APInt value = (*values)[flat];
    return Number::of(type.getElementType().isInteger(1)
                          ? int64_t(value.getZExtValue())
                          : value.getSExtValue());
  }
  return std::nullopt;
}

std::optional<Number> BandFinder::evaluate(Expr *e) {
  e = graph.view(e);
  switch (e->kind) {
  case Expr::Kind::Constant:
    if (auto number = dyn_cast<FloatAttr>(e->constant))
      return Number::of(number.getValueAsDouble());
    return Number::of(int64_t(*graph.constantOf(e)));
  case Expr::Kind::Index: {
    int64_t index = 0;
    for (Digit digit : graph.resolve(e->coords[0])) {
      auto known = at.find(digit);
      if (known == at.end())
        return std::nullopt;
      index = index * graph.getExtent(digit) + known->second;
    }
    return Number::of(index);
  }
  case Expr::Kind::Element:
    return evaluateElement(e);
  case Expr::Kind::Op:
    return evaluateOp(e);
  default:
    return std::nullopt;
  }
}

std::optional<Number> BandFinder::evaluateOp(Expr *e) {
  SmallVector<Number, 3> x;
  if (e->isOp("arith.select")) {
    std::optional<Number> c = evaluate(e->operands[0]);
    return c ? evaluate(e->operands[c->integer ? 1 : 2]) : std::nullopt;
  }
  for (Expr *operand : e->operands) {
    std::optional<Number> value = evaluate(operand);
    if (!value)
      return std::nullopt;
    x.push_back(*value);
  }
  // Integers that wrap are no positions: narrow ones are left alone.
  auto isWide = [](Type type) {
    return type.isIndex() ||
           (isa<IntegerType>(type) && type.getIntOrFloatBitWidth() >= 32);
  };
  bool bits = e->type.isInteger(1);
  if (x.size() == 1) {
    if (e->isOp("arith.negf"))
      return Number::of(-x[0].real);
    if (isWide(e->type) &&
        (e->isOp("arith.index_cast") || e->isOp("arith.extsi") ||
         e->isOp("arith.trunci"))) {
      // A truth value extended with its sign is -1.
      bool sign = e->isOp("arith.extsi") && e->operands[0]->type.isInteger(1);
      return Number::of(sign ? -x[0].integer : x[0].integer);
    }
    if (e->isOp("arith.extui") && x[0].integer >= 0)
      return x[0];
    if (e->isOp("arith.trunci") && bits)
      return Number::of(x[0].integer & 1);
    if (e->isOp("arith.sitofp") && !e->operands[0]->type.isInteger(1))
      return Number::of(double(x[0].integer));
    if (e->isOp("arith.uitofp") && x[0].integer >= 0)
      return Number::of(double(x[0].integer));
    if (e->isOp("math.absf"))
      return Number::of(std::fabs(x[0].real));
    if (e->isOp("math.absi") && isWide(e->type))
      return Number::of(std::abs(x[0].integer));
    return std::nullopt;
  }
  if (x.size() != 2)
    return std::nullopt;
  int64_t p = x[0].integer, q = x[1].integer;
  double r = x[0].real, s = x[1].real;
  if (e->isOp("arith.addf"))
    return Number::of(r + s);
  if (e->isOp("arith.subf"))
    return Number::of(r - s);
  if (e->isOp("arith.mulf"))
    return Number::of(r * s);
  if (e->isOp("arith.divf"))
    return Number::of(r / s);
  if (e->isOp("arith.maximumf"))
    return Number::of(std::max(r, s));
  if (e->isOp("arith.minimumf"))
    return Number::of(std::min(r, s));
  if (bits || isWide(e->type)) {
    if (e->isOp("arith.andi"))
      return Number::of(p & q);
    if (e->isOp("arith.ori"))
      return Number::of(p | q);
    if (e->isOp("arith.xori"))
      return Number::of(p ^ q);
  }
  if (isWide(e->type)) {
    if (e->isOp("arith.addi"))
      return Number::of(p + q);
    if (e->isOp("arith.subi"))
      return Number::of(p - q);
    if (e->isOp("arith.muli"))
      return Number::of(p * q);
    if (e->isOp("arith.maxsi"))
      return Number::of(std::max(p, q));
    if (e->isOp("arith.minsi"))
      return Number::of(std::min(p, q));
    if (e->isOp("arith.divsi") && q > 0)
      return Number::of(p / q);
    if (e->isOp("arith.remsi") && q > 0)
      return Number::of(p % q);
    if (e->isOp("arith.floordivsi") && q > 0)
      return Number::of(p >= 0 ? p / q : -((-p + q - 1) / q));
  }
  auto predicateAttr = e->attrs.getAs<IntegerAttr>("predicate");
  if (e->isOp("arith.cmpi") && predicateAttr) {
    auto predicate = static_cast<arith::CmpIPredicate>(predicateAttr.getInt());
    bool isUnsigned = predicate >= arith::CmpIPredicate::ult;
    if (isUnsigned && (p < 0 || q < 0))
      return std::nullopt;
    return Number::of(int64_t(arith::applyCmpPredicate(
        predicate, APInt(64, p, true), APInt(64, q, true))));
  }
  if (e->isOp("arith.cmpf") && predicateAttr)
    return Number::of(int64_t(arith::applyCmpPredicate(
        static_cast<arith::CmpFPredicate>(predicateAttr.getInt()), APFloat(r),
        APFloat(s))));
  return std::nullopt;
}

std::optional<Band> BandFinder::byPositions(const Hiding &hiding,
                                            std::string &why) {
  llvm::SmallSetVector<Digit, 8> used;
  graph.collectDigits(hiding.expr, used);
  for (Digit digit : used)
    if (!llvm::is_contained(i, digit) && !llvm::is_contained(j, digit)) {
      why = "the mask depends on more than the query and the key";
      return std::nullopt;
    }
  int64_t rows = graph.getExtent(i), keys = graph.getExtent(j);
  if (ShapedType::isDynamic(rows) || ShapedType::isDynamic(keys) ||
      rows * keys > kMostPositions) {
    why = "the mask is no comparison of the query's and the key's index, and "
          "there are too many positions, or unknown numbers, to look at each";
    return std::nullopt;
  }
  auto setCoord = [&](ArrayRef<Digit> coord, int64_t value) {
    for (Digit digit : llvm::reverse(coord)) {
      at[digit] = value % graph.getExtent(digit);
      value /= graph.getExtent(digit);
    }
  };
  std::vector<bool> visible(rows * keys);
  std::optional<int64_t> lowest, highest;
  bool infinite = true;
  double hidden = -std::numeric_limits<double>::infinity();
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t key = 0; key < keys; ++key) {
      setCoord(i, row);
      setCoord(j, key);
      std::optional<Number> value = evaluate(hiding.expr);
      if (!value) {
        why = "the mask's values are not known here";
        return std::nullopt;
      }
      bool seen;
      if (hiding.form == Hiding::Form::Added) {
        double added = value->real * hiding.value;
        if (added != 0 && !(added <= kHidden)) {
          why = "what is added to the scores is not 0 or at most -10000";
          return std::nullopt;
        }
        seen = added == 0;
        infinite &= seen || std::isinf(added);
        hidden = seen ? hidden : std::max(hidden, added);
      } else {
        seen =
            (value->integer != 0) == (hiding.form == Hiding::Form::WhereFalse);
        infinite &= seen || std::isinf(hiding.value);
        hidden = seen ? hidden : std::max(hidden, hiding.value);
      }
      visible[row * keys + key] = seen;
      if (!seen)
        continue;
      lowest = std::min(key - row, lowest.value_or(key - row));
      highest = std::max(key - row, highest.value_or(key - row));
    }
  if (!lowest) {
    why = "the mask hides every key";
    return std::nullopt;
  }
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t key = 0; key < keys; ++key)
      if (visible[row * keys + key] !=
          (key - row >= *lowest && key - row <= *highest)) {
        why = "the visible keys are no window around the query";
        return std::nullopt;
      }
  return Band{lowest, highest, infinite, hidden};
}

Hiding kvbuf::raise::asSelection(ElementGraph &graph, const Hiding &hiding) {
  if (hiding.form != Hiding::Form::Added)
    return hiding;
  Expr *added = graph.view(hiding.expr);
  if (!added->isOp("arith.select"))
    return hiding;
  for (bool where : {true, false}) {
    std::optional<double> here =
        graph.constantOf(added->operands[where ? 1 : 2]);
    std::optional<double> there =
        graph.constantOf(added->operands[where ? 2 : 1]);
    if (here && there && *here * hiding.value == 0 &&
        *there * hiding.value <= kHidden)
      return {where ? Hiding::Form::WhereFalse : Hiding::Form::WhereTrue,
              added->operands[0], *there * hiding.value};
  }
  return hiding;
}

std::optional<Band> kvbuf::raise::findBand(ElementGraph &graph,
                                           const Hiding &hiding,
                                           ArrayRef<Digit> i, ArrayRef<Digit> j,
                                           std::string &why) {
  BandFinder finder(graph, i, j);
  Hiding selected = asSelection(graph, hiding);
  if (selected.form != Hiding::Form::Added)
    if (std::optional<Band> band = finder.byComparisons(
            selected.expr, selected.form == Hiding::Form::WhereFalse)) {
      // Without a limit nothing is hidden.
      if (band->lowest || band->highest) {
        band->infinite = std::isinf(selected.value);
        band->hidden = selected.value;
      }
      return band;
    }
  return finder.byPositions(hiding, why);
}
