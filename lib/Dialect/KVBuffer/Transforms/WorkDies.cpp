//===- WorkDies.cpp - Items of work on the dies of a chip -----------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AssignWork.h"

using namespace mlir;
using namespace kvbuf;

bool kvbuf::hasPlacesForDies(WorkItems &items) {
  if (items.strips())
    return items.size() > 2;
  bool shares = items.growing().has_value() || items.coordinate(0).isShared();
  return items.size() > 1 && shares;
}

/// Whether the number of places is known to be a multiple of `dies`.
static bool areEven(WorkItems &items, int64_t dies) {
  std::optional<std::array<unsigned, 2>> strips = items.strips();
  unsigned inner = items.growing().value_or(0);
  for (unsigned i = 0; i < items.size(); ++i) {
    bool ofPlace = strips ? llvm::is_contained(*strips, i) : i == inner;
    std::optional<int64_t> count = items.coordinate(i).getFixedCount();
    if (!ofPlace && count && *count % dies == 0)
      return true;
  }
  return false;
}

/// Divisions of sizes that a launch says take some 60 instructions each on the
/// chips that have dies: there is one, and where items grow another.
SmallVector<Value> kvbuf::itemOnDie(ImplicitLocOpBuilder &b, WorkItems &items,
                                    ArrayRef<Value> counts, Value id,
                                    int64_t dies) {
  WorkOrder order(b, items, counts);
  Value places = order.getPlaces(), ofPlace = order.getItems();
  auto c = [&](int64_t value) { return constantIndex(b, value); };
  auto add = [&](Value x, Value y) -> Value {
    return b.createOrFold<arith::AddIOp>(x, y);
  };
  auto sub = [&](Value x, Value y) -> Value {
    return b.createOrFold<arith::SubIOp>(x, y);
  };
  auto mul = [&](Value x, Value y) -> Value {
    return b.createOrFold<arith::MulIOp>(x, y);
  };
  auto select = [&](Value which, Value x, Value y) -> Value {
    return arith::SelectOp::create(b, which, x, y);
  };
  auto isFrom = [&](Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::uge, x, y);
  };

  Value die = arith::RemUIOp::create(b, id, c(dies));
  Value number = arith::DivUIOp::create(b, id, c(dies));
  Value each = b.createOrFold<arith::DivUIOp>(places, c(dies));
  // Of a run of places: number / size is the place, what remains the item; or,
  // where items of all these places come together, the other way round.
  Value size = ofPlace, first = mul(die, each), together;
  if (items.growing()) {
    int64_t atOnce = std::max<int64_t>(1, items.target.tilesAtOnce / dies);
    Value last = arith::DivUIOp::create(b, c(2 * atOnce), ofPlace);
    last = arith::MaxSIOp::create(b, last, c(1));
    last = arith::MinSIOp::create(b, last, each);
    Value before = sub(each, last), cut = mul(before, ofPlace);
    together = isFrom(number, cut);
    number = sub(number, select(together, cut, c(0)));
    size = select(together, last, ofPlace);
    first = add(first, select(together, before, c(0)));
  }
  if (!areEven(items, dies)) {
    Value inRuns = mul(each, c(dies)), whole = mul(inRuns, ofPlace);
    Value isLeft = isFrom(id, whole);
    number = select(isLeft, sub(id, whole), number);
    size = select(isLeft, sub(places, inRuns), size);
    first = select(isLeft, inRuns, first);
    together = together ? arith::OrIOp::create(b, together, isLeft).getResult()
                        : isLeft;
  }
  Value quotient = arith::DivUIOp::create(b, number, size);
  Value rest = arith::RemUIOp::create(b, number, size);
  if (!together)
    return order.itemOf(b, {rest, add(first, quotient)});
  return order.itemOf(b, {select(together, quotient, rest),
                          add(first, select(together, rest, quotient))});
}

/// As an integer of 32 bits, in which a division takes a fraction of what it
/// takes in 64.
static Value narrow(ImplicitLocOpBuilder &b, Value x) {
  return b.createOrFold<arith::IndexCastUIOp>(b.getI32Type(), x);
}

static Value wide(ImplicitLocOpBuilder &b, Value x) {
  return b.createOrFold<arith::IndexCastUIOp>(b.getIndexType(), x);
}

/// `x` divided by `y`, and what remains.
static std::pair<Value, Value> divide(ImplicitLocOpBuilder &b, Value x,
                                      Value y) {
  return {b.createOrFold<arith::DivUIOp>(x, y),
          b.createOrFold<arith::RemUIOp>(x, y)};
}

/// The same of numbers that have 32 bits.
static Value narrowInRuns(ImplicitLocOpBuilder &b, Value id, Value total,
                          int64_t dies) {
  Value n = arith::ConstantOp::create(b, b.getI32IntegerAttr(dies));
  auto [number, die] = divide(b, id, n);
  auto [each, more] = divide(b, total, n);
  Value first =
      arith::AddIOp::create(b, b.createOrFold<arith::MulIOp>(die, each),
                            arith::MinUIOp::create(b, die, more).getResult());
  return arith::AddIOp::create(b, first, number);
}

Value kvbuf::numberInRuns(ImplicitLocOpBuilder &b, Value id, Value total,
                          int64_t dies) {
  return wide(b, narrowInRuns(b, narrow(b, id), narrow(b, total), dies));
}

SmallVector<Value> kvbuf::itemInRuns(ImplicitLocOpBuilder &b,
                                     ArrayRef<Value> counts, Value id,
                                     int64_t dies) {
  SmallVector<Value> sizes, item;
  for (Value count : counts)
    sizes.push_back(narrow(b, count));
  Value total = sizes.back();
  for (Value size : llvm::reverse(ArrayRef(sizes).drop_back()))
    total = b.createOrFold<arith::MulIOp>(total, size);
  Value left = narrowInRuns(b, narrow(b, id), total, dies);
  for (Value size : ArrayRef(sizes).drop_back()) {
    auto [quotient, rest] = divide(b, left, size);
    item.push_back(wide(b, rest));
    left = quotient;
  }
  item.push_back(wide(b, left));
  return item;
}
