//===- MapCoordinates.cpp - Which indices are coordinates -------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MapCoordinates.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace kvbuf;

namespace {
/// On which sides a number is known not to go beyond what coordinates are.
struct Bounded {
  bool below, above;
  bool both() const { return below && above; }
};
} // namespace

/// A number that a coordinate may be multiplied by: of rows in a tile, say.
static constexpr int64_t kMostOfTile = 1024;
/// Chains that are longer are not followed.
static constexpr unsigned kDeepest = 16;

static Bounded boundsOf(Value value, unsigned depth) {
  constexpr Bounded none{false, false}, all{true, true};
  if (std::optional<int64_t> number = getConstantIntValue(value)) {
    constexpr int64_t most = int64_t(1) << 29;
    return {*number >= -most, *number < most};
  }
  if (value.getType().isInteger() &&
      value.getType().getIntOrFloatBitWidth() < 32)
    return all;
  Operation *op = value.getDefiningOp();
  // Parameters, places of blocks, and what counts iterations.
  if (!op)
    return value.getType().isIndex() ? all : none;
  if (isa<memref::LoadOp>(op) || depth == kDeepest)
    return none;
  auto of = [&](unsigned operand) {
    return boundsOf(op->getOperand(operand), depth + 1);
  };
  if (isa<arith::IndexCastOp, arith::ExtSIOp>(op))
    return of(0);
  if (isa<arith::AddIOp>(op)) {
    Bounded x = of(0), y = of(1);
    return {x.below && y.below, x.above && y.above};
  }
  if (isa<arith::SubIOp>(op)) {
    Bounded x = of(0), y = of(1);
    return {x.below && y.above, x.above && y.below};
  }
  if (isa<arith::MinSIOp>(op)) {
    Bounded x = of(0), y = of(1);
    return {x.below && y.below, x.above || y.above};
  }
  if (isa<arith::MaxSIOp>(op)) {
    Bounded x = of(0), y = of(1);
    return {x.below || y.below, x.above && y.above};
  }
  if (isa<arith::SelectOp>(op)) {
    Bounded x = of(1), y = of(2);
    return {x.below && y.below, x.above && y.above};
  }
  if (isa<arith::MulIOp>(op)) {
    std::optional<int64_t> factor = getConstantIntValue(op->getOperand(1));
    return factor && *factor >= 0 && *factor <= kMostOfTile ? of(0) : none;
  }
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::CeilDivSIOp,
          arith::CeilDivUIOp, arith::FloorDivSIOp>(op))
    return of(0).both() ? all : none;
  if (isa<arith::RemSIOp, arith::RemUIOp>(op))
    return of(1).both() ? all : none;
  // Sizes, places, items of work: what ops say of coordinates is one.
  return isa<arith::ArithDialect>(op->getDialect()) ||
                 !value.getType().isIndex()
             ? none
             : all;
}

bool kvbuf::isCoordinate(Value value) { return boundsOf(value, 0).both(); }
