//===- Slices.cpp - Elements of slices and concatenations -------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A coordinate in a slice is one in what it is cut from, at a distance: a
/// digit that runs through a part of a dimension. What is put together of parts
/// has elements of the part that such a digit stays in.
///
//===----------------------------------------------------------------------===//

#include "ElementExpr.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace kvbuf::raise;

Coord ElementGraph::shifted(ArrayRef<Digit> coord, int64_t distance) {
  Coord whole = resolve(coord);
  if (whole.size() != 1)
    return {};
  Digit digit = whole.front(), base = digit;
  int64_t begin = distance + digits[digit].begin;
  if (std::optional<Digit> known = digits[digit].base)
    base = *known;
  if (begin == 0)
    return {base};
  auto [it, isNew] = shiftedDigits.try_emplace({base, begin}, Digit());
  if (isNew) {
    it->second = makeDigit(getExtent(base));
    digits[it->second].base = base;
    digits[it->second].begin = begin;
  }
  return {it->second};
}

Coord ElementGraph::makeFixed(int64_t number) {
  if (number == 0)
    return {};
  auto [it, isNew] = fixedDigits.try_emplace(number, Digit());
  if (isNew) {
    it->second = makeDigit(1);
    digits[it->second].begin = number;
  }
  return {it->second};
}

bool ElementGraph::isShifted(ArrayRef<Digit> coord) const {
  return llvm::any_of(resolve(coord),
                      [&](Digit digit) { return digits[digit].begin != 0; });
}

bool ElementGraph::fills(ArrayRef<Digit> coord, int64_t size) const {
  return !isShifted(coord) &&
         (ShapedType::isDynamic(size) ||
          ShapedType::isDynamic(getExtent(coord)) || getExtent(coord) == size);
}

std::optional<Coord> ElementGraph::inPart(ArrayRef<Digit> coord, int64_t offset,
                                          int64_t size, bool &isOutside) {
  Coord whole = resolve(coord);
  int64_t extent = getExtent(whole);
  if (ShapedType::isDynamic(extent))
    return std::nullopt;
  int64_t begin = whole.size() == 1 ? digits[whole.front()].begin : 0;
  isOutside = begin + extent <= offset || begin >= offset + size;
  if (isOutside || begin < offset || begin + extent > offset + size)
    return std::nullopt;
  // One element has no digit.
  if (size == 1)
    return Coord{};
  if (offset == 0)
    return whole;
  if (whole.size() == 1 && !digits[whole.front()].base && begin != 0)
    return makeFixed(begin - offset);
  Coord moved = shifted(whole, -offset);
  return moved.empty() ? std::nullopt : std::optional(moved);
}

Expr *ElementGraph::defineSlice(Expr *e, tensor::ExtractSliceOp op) {
  RankedTensorType from = op.getSourceType();
  if (from.getRank() != op.getType().getRank() || !op.hasUnitStride() ||
      ShapedType::isDynamicShape(op.getStaticOffsets()))
    return nullptr;
  SmallVector<Coord> coords;
  for (auto [dim, coord] : llvm::enumerate(e->coords)) {
    int64_t offset = op.getStaticOffset(dim), whole = from.getDimSize(dim);
    if (offset == 0 && (whole != 1 || op.getType().getDimSize(dim) == 1)) {
      coords.push_back(coord);
      continue;
    }
    if (op.getType().isDynamicDim(dim))
      return nullptr;
    bool isOne = op.getType().getDimSize(dim) == 1;
    coords.push_back(isOne ? makeFixed(offset) : shifted(coord, offset));
    if (coords.back().empty())
      return nullptr;
  }
  return element(op.getSource(), coords);
}

Expr *ElementGraph::defineInsertion(Expr *e, tensor::InsertSliceOp op) {
  RankedTensorType part = op.getSourceType();
  if (part.getRank() != op.getType().getRank() || !op.hasUnitStride() ||
      ShapedType::isDynamicShape(op.getStaticOffsets()) ||
      ShapedType::isDynamicShape(op.getStaticSizes()))
    return nullptr;
  SmallVector<Coord> coords;
  bool isUnknown = false;
  for (auto [dim, coord] : llvm::enumerate(e->coords)) {
    // Nothing lies beside a part that has all of a dimension.
    if (op.getStaticOffset(dim) == 0 &&
        op.getStaticSize(dim) == op.getType().getDimSize(dim)) {
      coords.push_back(coord);
      continue;
    }
    bool isOutside = false;
    std::optional<Coord> inside = inPart(coord, op.getStaticOffset(dim),
                                         op.getStaticSize(dim), isOutside);
    if (isOutside)
      return element(op.getDest(), e->coords);
    isUnknown |= !inside;
    coords.push_back(inside.value_or(Coord()));
  }
  return isUnknown ? nullptr : element(op.getSource(), coords);
}

Expr *ElementGraph::defineConcat(Expr *e, tensor::ConcatOp op) {
  int64_t dim = op.getDim(), offset = 0;
  for (Value part : op.getInputs()) {
    int64_t size = cast<RankedTensorType>(part.getType()).getDimSize(dim);
    if (ShapedType::isDynamic(size))
      return nullptr;
    bool isOutside = false;
    std::optional<Coord> inside =
        inPart(e->coords[dim], offset, size, isOutside);
    if (inside) {
      SmallVector<Coord> coords(e->coords.begin(), e->coords.end());
      coords[dim] = *inside;
      return element(part, coords);
    }
    if (!isOutside)
      return nullptr;
    offset += size;
  }
  return nullptr;
}
