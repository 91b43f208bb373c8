//===- FarTiles.cpp - Tiles far from the diagonal -------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FarTiles.h"
#include "RegionValues.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace kvbuf;

namespace {
/// The arguments of a region of scores that follow the score.
struct FunctionArguments {
  enum : unsigned { Batch = 1, Head, Row, Position, Key };
};
} // namespace

/// Distances and what they are clamped to are less.
static constexpr int64_t kFarDistance = int64_t(1) << 29;

/// The number of the argument that a value is, behind casts.
static std::optional<unsigned> argumentOf(Value value) {
  auto argument = dyn_cast<BlockArgument>(stripCasts(value));
  return argument ? std::optional(argument.getArgNumber()) : std::nullopt;
}

/// The operand of an op beside which the other one is a number.
template <typename OpTy>
static Value besideNumber(Value value, int64_t &number) {
  auto op = stripCasts(value).getDefiningOp<OpTy>();
  if (!op)
    return nullptr;
  for (auto [operand, other] : {std::pair(op.getLhs(), op.getRhs()),
                                std::pair(op.getRhs(), op.getLhs())})
    if (std::optional<int64_t> constant = getConstantIntValue(other);
        constant && std::abs(*constant) < kFarDistance) {
      number = *constant;
      return operand;
    }
  return nullptr;
}

static std::optional<ClampedDistance> matchClamp(Operation *op) {
  ClampedDistance found{op, false, false, 0, 0};
  if (op->getNumResults() != 1)
    return std::nullopt;
  Value result = op->getResult(0), inner;
  if (isa<arith::MinSIOp>(op) &&
      (inner = besideNumber<arith::MinSIOp>(result, found.most)))
    inner = besideNumber<arith::MaxSIOp>(inner, found.least);
  else if (isa<arith::MaxSIOp>(op) &&
           (inner = besideNumber<arith::MaxSIOp>(result, found.least)))
    inner = besideNumber<arith::MinSIOp>(inner, found.most);
  auto sub = inner ? stripCasts(inner).getDefiningOp<arith::SubIOp>() : nullptr;
  if (!sub || found.least > found.most)
    return std::nullopt;
  std::optional<unsigned> lhs = argumentOf(sub.getLhs()),
                          rhs = argumentOf(sub.getRhs());
  auto isRow = [](std::optional<unsigned> number) {
    return number == FunctionArguments::Row ||
           number == FunctionArguments::Position;
  };
  found.fromRow = lhs == FunctionArguments::Key && isRow(rhs);
  if (!found.fromRow && !(rhs == FunctionArguments::Key && isRow(lhs)))
    return std::nullopt;
  found.ofPosition = (found.fromRow ? rhs : lhs) == FunctionArguments::Position;
  return found;
}

SmallVector<Operation *> kvbuf::followersOf(AttentionOp op,
                                            const ClampedDistance &distance) {
  Block &body = op.getScore().front();
  llvm::DenseSet<Value> same, following;
  unsigned captures = op.getCaptures().size();
  same.insert_range(body.getArguments().take_back(captures));
  same.insert(body.getArgument(FunctionArguments::Batch));
  same.insert(body.getArgument(FunctionArguments::Head));
  following.insert(distance.clamp->getResult(0));
  SmallVector<Operation *> followers;
  for (Operation &inner : body.without_terminator()) {
    auto any = [&](const llvm::DenseSet<Value> &set) {
      return llvm::any_of(inner.getOperands(),
                          [&](Value value) { return set.contains(value); });
    };
    if (&inner == distance.clamp || inner.getNumRegions() ||
        !(isPure(&inner) || isa<memref::LoadOp>(inner)) ||
        !llvm::all_of(inner.getOperands(), [&](Value value) {
          return same.contains(value) || following.contains(value);
        }))
      continue;
    if (any(following)) {
      following.insert_range(inner.getResults());
      followers.push_back(&inner);
    } else {
      same.insert_range(inner.getResults());
    }
  }
  return followers;
}

/// A number that follows from a clamped distance, where that is `clamped`, and
/// from constants; nothing where it follows from something else.
static std::optional<int64_t> numberAt(Value value, Operation *clamp,
                                       int64_t clamped) {
  value = stripCasts(value);
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return constant;
  Operation *def = value.getDefiningOp();
  if (def == clamp)
    return clamped;
  if (!isa_and_nonnull<arith::AddIOp, arith::SubIOp, arith::MaxSIOp,
                       arith::MinSIOp>(def))
    return std::nullopt;
  std::optional<int64_t> lhs = numberAt(def->getOperand(0), clamp, clamped),
                         rhs = numberAt(def->getOperand(1), clamp, clamped);
  if (!lhs || !rhs)
    return std::nullopt;
  if (isa<arith::AddIOp>(def))
    return *lhs + *rhs;
  if (isa<arith::SubIOp>(def))
    return *lhs - *rhs;
  return isa<arith::MaxSIOp>(def) ? std::max(*lhs, *rhs) : std::min(*lhs, *rhs);
}

/// Whether a tensor has, as far as is known, an element for each distance: what
/// is clamped to numbers that no two keys are apart may have none.
static bool hasAll(memref::LoadOp load, const ClampedDistance &distance) {
  for (auto [index, size] :
       llvm::zip_equal(load.getIndices(), load.getMemRefType().getShape()))
    for (int64_t end : {distance.least, distance.most})
      if (std::optional<int64_t> at = numberAt(index, distance.clamp, end);
          at && (*at < 0 || (!ShapedType::isDynamic(size) && *at >= size)))
        return false;
  return true;
}

std::optional<ClampedDistance> kvbuf::clampedDistanceOf(AttentionOp op) {
  if (op.getScore().empty())
    return std::nullopt;
  for (Operation &inner : op.getScore().front())
    if (std::optional<ClampedDistance> found = matchClamp(&inner)) {
      auto loads = llvm::to_vector(llvm::make_filter_range(
          followersOf(op, *found), llvm::IsaPred<memref::LoadOp>));
      if (!loads.empty() && llvm::all_of(loads, [&](Operation *load) {
            return hasAll(cast<memref::LoadOp>(load), *found);
          }))
        return found;
    }
  return std::nullopt;
}

/// Gives `known` the values of the ops that follow from a clamped distance
/// where it is `clamped`, an index.
static void computeFollowers(ImplicitLocOpBuilder &b, AttentionOp op,
                             const ClampedDistance &distance,
                             const IRMapping &args, const ScoreTile &tile,
                             Value clamped, IRMapping &known) {
  Value result = distance.clamp->getResult(0);
  if (result.getType() != clamped.getType())
    clamped = arith::IndexCastOp::create(b, result.getType(), clamped);
  Region &region = op.getScore();
  IRMapping values(known);
  values.map(result, clamped);
  values.map(region.getArgument(FunctionArguments::Batch), tile.batch);
  values.map(region.getArgument(FunctionArguments::Head), tile.head);
  for (auto [inside, capture] :
       llvm::zip_equal(region.getArguments().take_back(op.getCaptures().size()),
                       op.getCaptures()))
    values.map(inside, args.lookup(capture));
  for (Operation *follower : followersOf(op, distance)) {
    for (Value value : follower->getResults())
      copyValue(b, value, values);
    for (Value value : follower->getResults())
      known.map(value, values.lookup(value));
  }
}

/// The row of a tile that distances are from.
static Value rowOf(ImplicitLocOpBuilder &b, const ClampedDistance &distance,
                   const ScoreTile &tile) {
  if (!distance.ofPosition)
    return tile.query;
  Value shift = arith::SubIOp::create(b, tile.keys, tile.queries);
  return arith::AddIOp::create(b, tile.query, shift);
}

Value kvbuf::isFar(ImplicitLocOpBuilder &b, AttentionOp op,
                   const ClampedDistance &distance, const IRMapping &args,
                   const ScoreTile &tile, int64_t rows, int64_t keys,
                   IRMapping &known) {
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, value);
  };
  Value row = rowOf(b, distance, tile);
  // Of the first row and key; others are so much nearer and farther.
  Value first = distance.fromRow ? arith::SubIOp::create(b, tile.key, row)
                                 : arith::SubIOp::create(b, row, tile.key);
  int64_t below = (distance.fromRow ? rows : keys) - 1,
          above = (distance.fromRow ? keys : rows) - 1;
  using Predicate = arith::CmpIPredicate;
  Value isBehind = arith::CmpIOp::create(b, Predicate::sge, first,
                                         number(distance.most + below));
  Value isBefore = arith::CmpIOp::create(b, Predicate::sle, first,
                                         number(distance.least - above));
  Value far = arith::OrIOp::create(b, isBehind, isBefore);

  Value clamped = arith::MaxSIOp::create(b, first, number(distance.least));
  clamped = arith::MinSIOp::create(b, clamped, number(distance.most));
  computeFollowers(b, op, distance, args, tile, clamped, known);
  return far;
}

Value kvbuf::isFarAtEnds(ImplicitLocOpBuilder &b, AttentionOp op,
                         const ClampedDistance &distance, const IRMapping &args,
                         const ScoreTile &tile, int64_t rows, int64_t keys,
                         Value end, Value i, IRMapping &known) {
  SmallVector<Operation *> followers = followersOf(op, distance);
  if (llvm::any_of(followers, [](Operation *follower) {
        auto load = dyn_cast<memref::LoadOp>(follower);
        return load && !load.getMemRefType().hasStaticShape();
      }))
    return {};
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, value);
  };
  IRMapping atRight(known), atLeft(known);
  Value right, left;
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(tile.loop);
    Value row = rowOf(b, distance, tile);
    // Tiles before which `behind` keys from the first row on, or fewer, are.
    auto tilesBefore = [&](int64_t behind) -> Value {
      Value last = arith::AddIOp::create(b, row, number(behind));
      last = arith::MaxSIOp::create(b, last, number(0));
      return arith::DivUIOp::create(b, last, number(keys));
    };
    int64_t most = distance.fromRow ? distance.most : -distance.least,
            least = distance.fromRow ? distance.least : -distance.most;
    // From this tile on the last row is far from the first key, and up to that
    // one the first row from the last key.
    right =
        arith::SubIOp::create(b, end, tilesBefore(most + rows - 1 + keys - 1));
    left = arith::SubIOp::create(b, end, tilesBefore(least + 1));
    computeFollowers(b, op, distance, args, tile,
                     number(distance.fromRow ? distance.most : distance.least),
                     atRight);
    computeFollowers(b, op, distance, args, tile,
                     number(distance.fromRow ? distance.least : distance.most),
                     atLeft);
  }
  using Predicate = arith::CmpIPredicate;
  Value isRight = arith::CmpIOp::create(b, Predicate::slt, i, right);
  Value isLeft = arith::CmpIOp::create(b, Predicate::sge, i, left);
  for (Operation *follower : followers)
    for (Value value : follower->getResults())
      known.map(value,
                arith::SelectOp::create(b, isRight, atRight.lookup(value),
                                        atLeft.lookup(value))
                    .getResult());
  return arith::OrIOp::create(b, isRight, isLeft);
}
