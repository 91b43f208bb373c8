//===- BegunMask.cpp - Masks that products begin with ---------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BegunMask.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <limits>

using namespace mlir;
using namespace kvbuf;

std::optional<BegunMask> BegunMask::of(AttentionOp op) {
  constexpr unsigned bits = 16;
  Type element = op.getElementType();
  // Scales of keys may be 0, and a cap makes a finite score. Times a negative
  // scale what is hidden would be the largest score, times 0 none.
  if (op.getScaleValue() < 0x1p-120 || op.getBlockMaskAttr() ||
      !op.getVisible().empty() || op.getSoftcapValue() != 0 ||
      element.getIntOrFloatBitWidth() != bits ||
      op.getK().getType().getElementType() != element)
    return std::nullopt;
  MaskAttr mask = op.getMaskValue();
  // No row's own position is beyond the last key.
  bool ofDistance = mask.boundsRight() && mask.rightReach() <= 0,
       ofEnd = !mask.boundsRight() && !mask.boundsLeft();
  if (!ofDistance && !ofEnd)
    return std::nullopt;
  return BegunMask(mask);
}

Value BegunMask::isHidden(ImplicitLocOpBuilder &b, const ScoreTile &at,
                          Value position, Value key) const {
  using Predicate = arith::CmpIPredicate;
  if (!isOfDistance())
    return arith::CmpIOp::create(b, Predicate::sge, key, at.keys);
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, value);
  };
  Value distance = arith::SubIOp::create(b, key, position);
  Value hidden = arith::CmpIOp::create(b, Predicate::sgt, distance,
                                       number(mask.rightReach()));
  if (!mask.boundsLeft())
    return hidden;
  Value before = arith::CmpIOp::create(b, Predicate::slt, distance,
                                       number(-mask.getLeft()));
  return arith::OrIOp::create(b, hidden, before);
}

Value BegunMask::hidden(ImplicitLocOpBuilder &b) const {
  return arith::ConstantOp::create(
      b, b.getF32FloatAttr(-std::numeric_limits<float>::infinity()));
}

Value BegunMask::begin(ImplicitLocOpBuilder &b, const ScoreTile &at,
                       FragmentType type) const {
  FloatAttr none = b.getF32FloatAttr(0);
  Value nothing = FragmentFillOp::create(b, type, none);
  auto map = MapOp::create(b, type, ValueRange{nothing}, at.query, at.key);
  OpBuilder::InsertionGuard guard(b);
  Block *body = &map.getBody().emplaceBlock();
  for (Type argument :
       {Type(b.getF32Type()), Type(b.getIndexType()), Type(b.getIndexType())})
    body->addArgument(argument, b.getLoc());
  b.setInsertionPointToStart(body);
  Value shift = arith::SubIOp::create(b, at.keys, at.queries);
  Value position = arith::AddIOp::create(b, body->getArgument(1), shift);
  Value visible = arith::ConstantOp::create(b, none);
  YieldOp::create(b, arith::SelectOp::create(
                         b, isHidden(b, at, position, body->getArgument(2)),
                         hidden(b), visible)
                         .getResult());
  return map.getResult();
}
