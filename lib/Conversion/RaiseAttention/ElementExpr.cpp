//===- ElementExpr.cpp - What an element of a tensor is computed by -------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ElementExpr.h"
#include "Sizes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <cmath>

using namespace mlir;
using namespace kvbuf::raise;
using llvm::ArrayRef;

DictionaryAttr kvbuf::raise::getMeaning(Operation *op) {
  NamedAttrList attrs(op->getAttrDictionary());
  attrs.erase("fastmath");
  attrs.erase("overflowFlags");
  return attrs.getDictionary(op->getContext());
}

bool kvbuf::raise::isLowest(std::optional<double> value, Type type) {
  return value && *value <= (type.isF16() ? -65504.0 : -1e30);
}

//===----------------------------------------------------------------------===//
// Coordinates
//===----------------------------------------------------------------------===//

Digit ElementGraph::makeDigit(int64_t extent) {
  digits.push_back({extent, {}, 0, std::nullopt});
  return digits.size() - 1;
}

int64_t ElementGraph::getExtent(ArrayRef<Digit> coord) const {
  int64_t extent = 1;
  for (Digit digit : coord) {
    if (ShapedType::isDynamic(getExtent(digit)))
      return ShapedType::kDynamic;
    extent *= getExtent(digit);
  }
  return extent;
}

Coord ElementGraph::makeCoord(int64_t extent) {
  return extent == 1 ? Coord{} : Coord{makeDigit(extent)};
}

Coord ElementGraph::resolve(ArrayRef<Digit> coord) const {
  Coord result;
  for (Digit digit : coord)
    if (digits[digit].parts.empty())
      result.push_back(digit);
    else
      llvm::append_range(result, resolve(digits[digit].parts));
  return result;
}

std::optional<SmallVector<Coord>>
ElementGraph::splitCoord(Coord coord, ArrayRef<int64_t> shape) {
  coord = resolve(coord);
  SmallVector<Coord> result(shape.size());
  // From the right up to a dimension of unknown extent, which takes what the
  // dimensions to its left, from the left, do not.
  auto split = [&](Digit digit, int64_t major, int64_t minor) {
    Digit first = makeDigit(major), second = makeDigit(minor);
    digits[digit].parts = {first, second};
    return std::pair(first, second);
  };
  size_t dim = shape.size();
  for (; dim > 0 && !ShapedType::isDynamic(shape[dim - 1]); --dim) {
    int64_t need = shape[dim - 1];
    while (need > 1) {
      if (coord.empty())
        return std::nullopt;
      Digit last = coord.pop_back_val();
      int64_t extent = getExtent(last);
      if (ShapedType::isDynamic(extent) ||
          (extent > need && extent % need == 0)) {
        auto [major, minor] = split(
            last, ShapedType::isDynamic(extent) ? extent : extent / need, need);
        coord.push_back(major);
        last = minor;
        extent = need;
      }
      if (extent == 0 || need % extent != 0)
        return std::nullopt;
      result[dim - 1].insert(result[dim - 1].begin(), last);
      need /= extent;
    }
    if (need == 0)
      return std::nullopt;
  }
  if (dim == 0)
    return coord.empty() ? std::optional(result) : std::nullopt;
  size_t next = 0;
  for (size_t left = 0; left + 1 < dim; ++left) {
    if (ShapedType::isDynamic(shape[left]))
      return std::nullopt;
    int64_t need = shape[left];
    while (need > 1) {
      if (next == coord.size() ||
          ShapedType::isDynamic(getExtent(coord[next])) ||
          getExtent(coord[next]) == 0 || need % getExtent(coord[next]) != 0)
        return std::nullopt;
      need /= getExtent(coord[next]);
      result[left].push_back(coord[next++]);
    }
  }
  result[dim - 1].assign(coord.begin() + next, coord.end());
  return result;
}

//===----------------------------------------------------------------------===//
// Making expressions
//===----------------------------------------------------------------------===//

Expr *ElementGraph::make(Expr::Kind kind, Type type) {
  exprs.emplace_back();
  exprs.back().kind = kind;
  exprs.back().type = type;
  return &exprs.back();
}

Expr *ElementGraph::makeOp(StringRef name, Type type,
                           ArrayRef<Expr *> operands) {
  Expr *e = make(Expr::Kind::Op, type);
  e->name = OperationName(name, context);
  e->attrs = DictionaryAttr::get(context);
  e->operands.assign(operands.begin(), operands.end());
  return e;
}

Expr *ElementGraph::makeUnknown(Type type, Operation *op,
                                ArrayRef<std::optional<Coord>> loops) {
  Expr *e = make(Expr::Kind::Unknown, type);
  e->op = op;
  for (const std::optional<Coord> &coord : loops)
    if (coord)
      e->coords.push_back(*coord);
  return e;
}

Expr *ElementGraph::makeConstant(TypedAttr value) {
  Expr *e = make(Expr::Kind::Constant, value.getType());
  e->constant = value;
  return e;
}

Expr *ElementGraph::element(Value tensor, ArrayRef<Coord> coords) {
  Expr *e = make(Expr::Kind::Element, getElementTypeOrSelf(tensor.getType()));
  e->value = tensor;
  e->coords.assign(coords.begin(), coords.end());
  // Another tensor's type may tell what one has left open.
  if (auto type = dyn_cast<RankedTensorType>(tensor.getType()))
    for (auto [dim, coord] : llvm::enumerate(e->coords))
      if (coord = resolve(coord);
          coord.size() == 1 && ShapedType::isDynamic(getExtent(coord[0])) &&
          !type.isDynamicDim(dim) && type.getDimSize(dim) > 1)
        digits[coord[0]].extent = type.getDimSize(dim);
  return e;
}

Expr *ElementGraph::scalar(Value value) {
  Attribute constant;
  if (matchPattern(value, m_Constant(&constant)))
    if (auto typed = dyn_cast<TypedAttr>(constant);
        typed && isa<FloatAttr, IntegerAttr>(typed))
      return makeConstant(typed);
  // Scalars are computed by pure ops; the numbers among them count.
  if (Operation *op = value.getDefiningOp();
      op && isMemoryEffectFree(op) && !op->getNumRegions() &&
      op->getNumResults() == 1 && op->getNumOperands() > 0 &&
      isa<arith::ArithDialect, math::MathDialect>(op->getDialect())) {
    SmallVector<Expr *> operands;
    for (Value operand : op->getOperands())
      operands.push_back(scalar(operand));
    return makeOpLike(op, operands);
  }
  return opaque(value);
}

Expr *ElementGraph::opaque(Value value) {
  Expr *e = make(Expr::Kind::Scalar, value.getType());
  e->value = value;
  return e;
}

Expr *ElementGraph::index(ArrayRef<Digit> coord) {
  Expr *e = make(Expr::Kind::Index, IndexType::get(context));
  e->coords.push_back(Coord(coord.begin(), coord.end()));
  return e;
}

Expr *ElementGraph::makeOpLike(Operation *op, ArrayRef<Expr *> operands) {
  Expr *e = makeOp(op->getName().getStringRef(), op->getResult(0).getType(),
                   operands);
  e->attrs = getMeaning(op);
  return e;
}

Expr *ElementGraph::compare(arith::CmpIPredicate predicate, Expr *a, Expr *b) {
  Builder builder(context);
  Expr *e = makeOp("arith.cmpi", builder.getI1Type(), {a, b});
  e->attrs = builder.getDictionaryAttr(builder.getNamedAttr(
      "predicate", builder.getI64IntegerAttr(static_cast<int64_t>(predicate))));
  return e;
}

//===----------------------------------------------------------------------===//
// Reading expressions
//===----------------------------------------------------------------------===//

Expr *ElementGraph::view(Expr *e) {
  while (true) {
    if (e->kind == Expr::Kind::Element) {
      Expr *definition = define(e);
      if (!definition)
        return e;
      e = definition;
      continue;
    }
    if (e->isOp("arith.extf") || e->isOp("arith.truncf")) {
      Type type = e->type;
      if (type.getIntOrFloatBitWidth() < 16)
        return e;
      e = e->operands[0];
      continue;
    }
    // A maximum with the lowest number is none.
    if (e->isOp("arith.maximumf") || e->isOp("arith.maxnumf")) {
      bool skipped = false;
      for (unsigned i : {0u, 1u})
        if (isLowest(constantOf(e->operands[i]), e->type)) {
          e = e->operands[1 - i];
          skipped = true;
          break;
        }
      if (skipped)
        continue;
    }
    return e;
  }
}

std::optional<double> ElementGraph::constantOf(Expr *e) {
  e = view(e);
  if (e->kind == Expr::Kind::Constant) {
    if (auto number = dyn_cast<FloatAttr>(e->constant))
      return number.getValueAsDouble();
    auto number = cast<IntegerAttr>(e->constant);
    return number.getType().isInteger(1)
               ? double(number.getValue().getZExtValue())
               : double(number.getValue().getSExtValue());
  }
  if (e->kind != Expr::Kind::Op || e->operands.empty() ||
      e->operands.size() > 2)
    return std::nullopt;
  SmallVector<double, 2> x;
  for (Expr *operand : e->operands) {
    std::optional<double> value = constantOf(operand);
    if (!value)
      return std::nullopt;
    x.push_back(*value);
  }
  if (x.size() == 1) {
    if (e->isOp("arith.negf"))
      return -x[0];
    if (e->isOp("math.sqrt"))
      return std::sqrt(x[0]);
    if (e->isOp("math.rsqrt"))
      return 1.0 / std::sqrt(x[0]);
    if (e->isOp("arith.sitofp") || e->isOp("arith.index_cast"))
      return x[0];
    return std::nullopt;
  }
  if (e->isOp("arith.mulf"))
    return x[0] * x[1];
  if (e->isOp("arith.divf"))
    return x[0] / x[1];
  if (e->isOp("arith.addf"))
    return x[0] + x[1];
  if (e->isOp("arith.subf"))
    return x[0] - x[1];
  return std::nullopt;
}

bool ElementGraph::equal(Expr *a, Expr *b) {
  auto sameCoords = [&](ArrayRef<Coord> x, ArrayRef<Coord> y) {
    return llvm::equal(x, y, [&](const Coord &c, const Coord &d) {
      return resolve(c) == resolve(d);
    });
  };
  if (a == b)
    return true;
  if (a->kind == Expr::Kind::Element && b->kind == Expr::Kind::Element &&
      a->value == b->value && sameCoords(a->coords, b->coords))
    return true;
  a = view(a);
  b = view(b);
  if (a == b)
    return true;
  if (a->kind != b->kind)
    return false;
  switch (a->kind) {
  case Expr::Kind::Element:
  case Expr::Kind::Index:
    return a->value == b->value && sameCoords(a->coords, b->coords);
  case Expr::Kind::Constant:
    return constantOf(a) == constantOf(b);
  case Expr::Kind::Scalar:
    return a->value == b->value;
  case Expr::Kind::Unknown:
    return false;
  case Expr::Kind::Op: {
    if (*a->name != *b->name || a->attrs != b->attrs ||
        a->operands.size() != b->operands.size())
      return false;
    if (llvm::equal(a->operands, b->operands,
                    [&](Expr *x, Expr *y) { return equal(x, y); }))
      return true;
    return a->operands.size() == 2 &&
           a->name->hasTrait<OpTrait::IsCommutative>() &&
           equal(a->operands[0], b->operands[1]) &&
           equal(a->operands[1], b->operands[0]);
  }
  case Expr::Kind::Reduction: {
    if (a->combiner != b->combiner ||
        getReducedExtents(a) != getReducedExtents(b))
      return false;
    SmallVector<Coord> at = makeReducedCoords(a);
    return equal(body(a, at), body(b, at));
  }
  }
  llvm_unreachable("all kinds of expressions are compared");
}

void ElementGraph::collectDigits(Expr *e,
                                 llvm::SmallSetVector<Digit, 8> &result) {
  e = view(e);
  if (e->kind == Expr::Kind::Reduction) {
    SmallVector<Coord> at = makeReducedCoords(e);
    collectDigits(body(e, at), result);
    for (Coord &coord : at)
      for (Digit digit : resolve(coord))
        result.remove(digit);
    return;
  }
  for (Coord &coord : e->coords)
    for (Digit digit : resolve(coord))
      result.insert(digit);
  for (Expr *operand : e->operands)
    collectDigits(operand, result);
}
