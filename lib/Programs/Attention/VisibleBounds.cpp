//===- VisibleBounds.cpp - Ranges of keys by functions ----*- C++ -*- ===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VisibleBounds.h"
#include "RegionValues.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace kvbuf;

/// The arguments of a region of visibility; captures come behind them.
enum VisibleArgument : unsigned { kBatch, kHead, kRow, kPosition, kKey };

/// Sums of rows and such numbers fit 32 bits.
static constexpr int64_t kFarNumber = int64_t(1) << 30;

/// Whether a value is the same for all rows and keys, and can be computed
/// whether there are keys or not.
static bool isOfSequence(Value value) {
  value = stripCasts(value);
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getArgNumber() == kBatch ||
           argument.getArgNumber() == kHead;
  // Of what is a sequence and a head in one.
  Operation *op = value.getDefiningOp();
  if (isa<arith::DivUIOp, arith::RemUIOp>(op))
    return isOfSequence(op->getOperand(0)) &&
           getConstantIntValue(op->getOperand(1)).value_or(0) > 0;
  auto load = dyn_cast<memref::LoadOp>(op);
  // A tensor of keys may be empty: a number by itself says nothing of its size.
  return load && isa<BlockArgument>(load.getMemRef()) &&
         llvm::all_of(llvm::enumerate(load.getIndices()), [&](auto index) {
           return isOfSequence(index.value()) ||
                  (!load.getMemRefType().isDynamicDim(index.index()) &&
                   getConstantIntValue(index.value()));
         });
}

/// Whether a value is a row, its position, or what these are apart: the keys
/// before those of the queries.
static bool isPlace(Value value) {
  auto isArgument = [](Value value, unsigned number) {
    auto argument = dyn_cast<BlockArgument>(stripCasts(value));
    return argument && argument.getArgNumber() == number;
  };
  if (isArgument(value, kRow) || isArgument(value, kPosition))
    return true;
  auto sub = stripCasts(value).getDefiningOp<arith::SubIOp>();
  return sub && isArgument(sub.getLhs(), kPosition) &&
         isArgument(sub.getRhs(), kRow);
}

/// Whether a value grows with the row, or is the same for all rows; it follows
/// from no key.
static bool growsWithRows(Value value) {
  value = stripCasts(value);
  if (isOfSequence(value) || isPlace(value))
    return true;
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getArgNumber() == kRow ||
           argument.getArgNumber() == kPosition;
  auto isNear = [](Value number) {
    std::optional<int64_t> constant = getConstantIntValue(number);
    return constant && std::abs(*constant) < kFarNumber;
  };
  if (isNear(value))
    return true;
  Operation *op = value.getDefiningOp();
  if (isa<arith::MinSIOp, arith::MaxSIOp>(op))
    return growsWithRows(op->getOperand(0)) && growsWithRows(op->getOperand(1));
  // A row and a number: what is read may be of any size.
  auto isRow = [](Value row) {
    auto argument = dyn_cast<BlockArgument>(stripCasts(row));
    return argument && (argument.getArgNumber() == kRow ||
                        argument.getArgNumber() == kPosition);
  };
  if (isa<arith::AddIOp>(op))
    return (isRow(op->getOperand(0)) && isNear(op->getOperand(1))) ||
           (isNear(op->getOperand(0)) && isRow(op->getOperand(1)));
  return isa<arith::SubIOp>(op) && isRow(op->getOperand(0)) &&
         isNear(op->getOperand(1));
}

namespace {
/// A comparison that shows the keys before a number plus `more`, or from it on;
/// of `beyond` not that one, or that one, too: the bound is the number and one.
struct KeyBound {
  Value number;
  int64_t more;
  bool isEnd, beyond;
};
} // namespace

static std::optional<KeyBound> keyBoundOf(Value condition) {
  auto cmp = condition.getDefiningOp<arith::CmpIOp>();
  if (!cmp)
    return std::nullopt;
  auto isKey = [](Value value) {
    auto argument = dyn_cast<BlockArgument>(stripCasts(value));
    return argument && argument.getArgNumber() == kKey;
  };
  using P = arith::CmpIPredicate;
  P predicate = cmp.getPredicate();
  bool isLess = predicate == P::slt || predicate == P::sle,
       isMore = predicate == P::sgt || predicate == P::sge;
  if (!isLess && !isMore)
    return std::nullopt;
  // The key, or how far it is behind a place, which is compared with a number.
  auto boundBy = [&](Value key, Value number) -> std::optional<KeyBound> {
    if (isKey(key) && growsWithRows(number))
      return KeyBound{number, /*more=*/0, false, false};
    auto sub = stripCasts(key).getDefiningOp<arith::SubIOp>();
    std::optional<int64_t> more = getConstantIntValue(number);
    if (sub && isKey(sub.getLhs()) && isPlace(sub.getRhs()) && more &&
        std::abs(*more) < kFarNumber)
      return KeyBound{sub.getRhs(), *more, false, false};
    return std::nullopt;
  };
  bool isLeft = true;
  std::optional<KeyBound> bound = boundBy(cmp.getLhs(), cmp.getRhs());
  if (!bound) {
    isLeft = false;
    bound = boundBy(cmp.getRhs(), cmp.getLhs());
  }
  if (!bound)
    return std::nullopt;
  bool isStrict = predicate == P::slt || predicate == P::sgt;
  bound->isEnd = isLess == isLeft;
  bound->beyond = bound->isEnd != isStrict;
  return bound;
}

/// Whether a condition shows keys from a number on.
static bool hasStart(Value condition) {
  if (std::optional<KeyBound> bound = keyBoundOf(condition))
    return !bound->isEnd;
  auto both = condition.getDefiningOp<arith::AndIOp>();
  return both && (hasStart(both.getLhs()) || hasStart(both.getRhs()));
}

/// Whether a condition says something of where keys are that are shown or
/// hidden; other conditions that it joins may say anything.
static bool isBounded(Value condition) {
  if (keyBoundOf(condition))
    return true;
  Operation *op = condition.getDefiningOp();
  if (!op || !isa<arith::AndIOp, arith::OrIOp>(op) ||
      (!isBounded(op->getOperand(0)) && !isBounded(op->getOperand(1))))
    return false;
  // What lies before an end or behind a start has a hole.
  return isa<arith::AndIOp>(op) ||
         (!hasStart(op->getOperand(0)) && !hasStart(op->getOperand(1)));
}

bool kvbuf::boundsKeys(AttentionOp op, int64_t group) {
  // Rows of several heads have bounds of their own where the head counts.
  return !op.getVisible().empty() && !op.getBlockMaskAttr() &&
         (group == 1 || op.getVisible().getArgument(kHead).use_empty()) &&
         isBounded(
             cast<YieldOp>(op.getVisible().front().getTerminator()).getValue());
}

/// `value`, of any integer type, as an index from -1 to `keys`: what is read
/// may be of any size, and indices may have 32 bits.
static Value withinKeys(ImplicitLocOpBuilder &b, Value value, Value keys) {
  Type type = value.getType();
  Value least = arith::ConstantIndexOp::create(b, -1), most = keys;
  if (type.isInteger(64)) {
    least = arith::ConstantIntOp::create(b, type, -1);
    most = arith::IndexCastOp::create(b, type, keys);
  } else if (!type.isIndex()) {
    value = arith::IndexCastOp::create(b, b.getIndexType(), value);
  }
  value = arith::MinSIOp::create(b, value, most);
  value = arith::MaxSIOp::create(b, value, least);
  if (type.isInteger(64))
    value = arith::IndexCastOp::create(b, b.getIndexType(), value);
  return value;
}

/// The bound of a comparison for the row that `known` has, up to `keys`.
static Value boundOf(ImplicitLocOpBuilder &b, const KeyBound &bound, Value keys,
                     IRMapping &known) {
  Value value = copyValue(b, bound.number, known);
  if (bound.more) {
    if (!value.getType().isIndex())
      value = arith::IndexCastOp::create(b, b.getIndexType(), value);
    value = arith::AddIOp::create(
        b, value, arith::ConstantIndexOp::create(b, bound.more).getResult());
  }
  value = withinKeys(b, value, keys);
  if (bound.beyond)
    value = arith::AddIOp::create(
        b, value, arith::ConstantIndexOp::create(b, 1).getResult());
  return value;
}

/// Where the keys end that a condition shows to the row that `known` has;
/// `open` for conditions that do not say.
static Value endOfKeys(ImplicitLocOpBuilder &b, Value condition, Value keys,
                       Value open, IRMapping &known) {
  if (std::optional<KeyBound> bound = keyBoundOf(condition))
    return bound->isEnd ? boundOf(b, *bound, keys, known) : keys;
  if (!isBounded(condition))
    return open;
  Operation *op = condition.getDefiningOp();
  Value lhs = endOfKeys(b, op->getOperand(0), keys, open, known),
        rhs = endOfKeys(b, op->getOperand(1), keys, open, known);
  if (isa<arith::AndIOp>(op))
    return arith::MinSIOp::create(b, lhs, rhs);
  return arith::MaxSIOp::create(b, lhs, rhs);
}

/// Where they begin; null: nothing says so.
static Value startOfKeys(ImplicitLocOpBuilder &b, Value condition, Value keys,
                         IRMapping &known) {
  if (!isBounded(condition) || !hasStart(condition))
    return {};
  if (std::optional<KeyBound> bound = keyBoundOf(condition))
    return arith::MinSIOp::create(b, boundOf(b, *bound, keys, known), keys);
  Operation *op = condition.getDefiningOp();
  Value lhs = startOfKeys(b, op->getOperand(0), keys, known),
        rhs = startOfKeys(b, op->getOperand(1), keys, known);
  return lhs && rhs ? arith::MaxSIOp::create(b, lhs, rhs) : lhs ? lhs : rhs;
}

VisibleBounds kvbuf::visibleBounds(ImplicitLocOpBuilder &b, AttentionOp op,
                                   const IRMapping &args, const ScoreTile &at,
                                   int64_t rows) {
  Region &region = op.getVisible();
  Value condition = cast<YieldOp>(region.front().getTerminator()).getValue();
  Value shift = arith::SubIOp::create(b, at.keys, at.queries);
  auto mapOf = [&](Value row) {
    IRMapping known;
    known.map(region.getArgument(kBatch), at.batch);
    known.map(region.getArgument(kHead), at.head);
    known.map(region.getArgument(kRow), row);
    known.map(region.getArgument(kPosition),
              arith::AddIOp::create(b, row, shift).getResult());
    for (auto [inside, capture] : llvm::zip_equal(
             region.getArguments().take_back(op.getCaptures().size()),
             op.getCaptures()))
      known.map(inside, args.lookup(capture));
    return known;
  };
  // Ends and starts grow with the row.
  Value last = arith::AddIOp::create(
      b, at.query, arith::ConstantIndexOp::create(b, rows - 1).getResult());
  Value final = arith::SubIOp::create(
      b, at.queries, arith::ConstantIndexOp::create(b, 1).getResult());
  IRMapping ofLast = mapOf(arith::MinSIOp::create(b, last, final));
  VisibleBounds bounds;
  bounds.hi = endOfKeys(b, condition, at.keys, /*open=*/at.keys, ofLast);
  bounds.fullLo = startOfKeys(b, condition, at.keys, ofLast);
  IRMapping ofFirst = mapOf(at.query);
  Value none = arith::ConstantIndexOp::create(b, 0);
  bounds.fullHi = endOfKeys(b, condition, at.keys, /*open=*/none, ofFirst);
  bounds.lo = startOfKeys(b, condition, at.keys, ofFirst);
  return bounds;
}
