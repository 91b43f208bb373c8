//===- AddedScores.cpp - Biases that products begin with ------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AddedScores.h"
#include "FarTiles.h"
#include "RegionValues.h"
#include "TiledReads.h"
#include "kvbuffer/Dialect/KVBuffer/IR/FiniteProduct.h"
#include "kvbuffer/Dialect/KVBuffer/IR/ScaledSlots.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <cmath>
#include <numbers>

using namespace mlir;
using namespace kvbuf;

/// A constant factor of a product, or of a quotient's inverse.
static std::optional<double> constantFactor(Value value) {
  FloatAttr number;
  if (!matchPattern(value, m_Constant(&number)))
    return std::nullopt;
  return number.getValueAsDouble();
}

/// Whether a value can be computed ahead of the scores, by ops that may stand
/// anywhere: of tensors it reads `staged` alone, or by the sequence and the
/// head. Notes in `reads` whether it reads that.
static bool isAhead(Value value, memref::LoadOp staged, bool &reads) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return true;
  if (op == staged) {
    reads = true;
    return true;
  }
  if (op->getNumRegions())
    return false;
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return llvm::all_of(load.getIndices(), isOfHeadAlone);
  return isPure(op) && llvm::all_of(op->getOperands(), [&](Value operand) {
           return isAhead(operand, staged, reads);
         });
}

/// Whether a number is a normal one of f32, and its inverse is.
static bool isModerate(double number) {
  return std::isnormal(float(number)) && std::isnormal(float(1 / number));
}

/// Whether a softmax may multiply scores by a number however low they are: in
/// base 2 it takes the power of two below instead where they are very low, by
/// which the lowest one stays in f32's range if it is 1 at most.
static bool keepsLowest(double factor) {
  return factor * std::numbers::log2e < 2;
}

/// Whether a number is the same for all rows and keys of a sequence's head.
static bool isOfHead(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return isOfHeadAlone(value);
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return llvm::all_of(load.getIndices(), isOfHeadAlone);
  return !op->getNumRegions() && isPure(op) &&
         llvm::all_of(op->getOperands(), isOfHead);
}

/// Which operand of a product is the same for a head; nothing where none is, or
/// a value is no product.
static std::optional<unsigned> factorOfHead(Value value) {
  auto product = value.getDefiningOp<arith::MulFOp>();
  for (unsigned i : {0, 1})
    if (product && isOfHead(product->getOperand(i)))
      return i;
  return std::nullopt;
}

/// What follows from a clamped distance and from what is the same for a head,
/// where that reads tables of no more than `mostNumbers` numbers a head.
static llvm::DenseSet<Value> findReadByDistance(AttentionOp op,
                                                int64_t mostNumbers) {
  std::optional<ClampedDistance> distance = clampedDistanceOf(op);
  if (!distance)
    return {};
  llvm::DenseSet<Value> found;
  for (Operation *follower : followersOf(op, *distance)) {
    found.insert_range(follower->getResults());
    auto load = dyn_cast<memref::LoadOp>(follower);
    if (!load)
      continue;
    MemRefType type = load.getMemRefType();
    if (!type.getElementType().isF32() || !type.getRank() ||
        type.isDynamicDim(type.getRank() - 1) ||
        type.getShape().back() > mostNumbers ||
        !llvm::all_of(load.getIndices().drop_back(), isOfHeadAlone))
      return {};
  }
  return found;
}

std::optional<AddedScores> AddedScores::of(AttentionOp op,
                                           memref::LoadOp staged,
                                           bool scalesQueries, bool byPlaces,
                                           int64_t mostNumbers) {
  // Very low numbers over the scale are the lowest one: no weight minds that,
  // but a log-sum-exp of nothing else does, and a sink beside them.
  if (op.getScore().empty() || !(staged || byPlaces) || op.getLse() ||
      op.getSink())
    return std::nullopt;
  // Products of other elements are scaled before a function sees them.
  constexpr unsigned bits = 16;
  Type element = op.getElementType();
  if (op.getSoftcapValue() != 0 || element.getIntOrFloatBitWidth() != bits ||
      op.getK().getType().getElementType() != element)
    return std::nullopt;
  Block &body = op.getScore().front();
  Value score = body.getArgument(0);
  llvm::SetVector<Operation *> ofScore;
  getForwardSlice(score, &ofScore);
  auto depends = [&](Value value) {
    return value == score ||
           (value.getDefiningOp() && ofScore.contains(value.getDefiningOp()));
  };
  AddedScores sum;
  bool reads = false;
  llvm::DenseSet<Value> readByDistance;
  if (byPlaces && !staged)
    readByDistance = findReadByDistance(op, mostNumbers);
  Value value = cast<YieldOp>(body.getTerminator()).getValue();
  while (value != score) {
    Operation *inner = value.getDefiningOp();
    if (!inner || inner->getNumOperands() != 2)
      return std::nullopt;
    unsigned own = depends(inner->getOperand(0)) ? 0 : 1;
    Value other = inner->getOperand(1 - own);
    value = inner->getOperand(own);
    if (!depends(value) || depends(other))
      return std::nullopt;
    std::optional<double> constant = constantFactor(other);
    if (isa<arith::AddFOp>(inner) || (isa<arith::SubFOp>(inner) && own == 0)) {
      if (!readByDistance.contains(other) && !isAhead(other, staged, reads))
        return std::nullopt;
      double sign = isa<arith::AddFOp>(inner) ? 1 : -1;
      sum.addends.push_back({other, sign * sum.factor});
    } else if (isa<arith::MulFOp>(inner) && constant) {
      sum.factor *= *constant;
    } else if (isa<arith::DivFOp>(inner) && own == 0 && constant) {
      sum.factor /= *constant;
    } else {
      return std::nullopt;
    }
  }
  sum.factor *= op.getScaleValue();
  bool moderate =
      sum.factor > 0 && isModerate(sum.factor) && keepsLowest(sum.factor);
  for (const Addend &addend : sum.addends)
    moderate &= isModerate(addend.weight);
  if (!staged && (sum.addends.size() != 1 ||
                  !(readByDistance.contains(sum.addends.front().value) ||
                    factorOfHead(sum.addends.front().value))))
    return std::nullopt;
  if (reads != bool(staged) || !moderate ||
      !isModerate(sum.addends.front().weight / sum.factor))
    return std::nullopt;
  // s q k + b, for (q k + b / s) s: nothing multiplies b.
  double weight = sum.addends.front().weight;
  if (scalesQueries && element.isBF16() && keepsLowest(weight) &&
      scalesExactly(sum.factor / weight)) {
    sum.queryScale = sum.factor / weight;
    sum.factor = weight;
  }
  return sum;
}

/// Multiplies by a number; what says "hidden" by the lowest one does so still.
static Value timesFinite(ImplicitLocOpBuilder &b, Value value, double by) {
  Value product = arith::MulFOp::create(
      b, value, arith::ConstantOp::create(b, b.getF32FloatAttr(by)));
  product.getDefiningOp()->setAttr(kFiniteProductAttr, b.getUnitAttr());
  return product;
}

/// Whether a number is far from the lowest one: made of integers and of such
/// constants.
static bool isFarFromLowest(Value value) {
  constexpr double most = 0x1p96;
  if (std::optional<double> constant = constantFactor(value))
    return std::abs(*constant) <= most;
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::SIToFPOp, arith::UIToFPOp>(op))
    return true;
  if (auto choice = dyn_cast_or_null<arith::SelectOp>(op))
    return isFarFromLowest(choice.getTrueValue()) &&
           isFarFromLowest(choice.getFalseValue());
  return isa_and_nonnull<arith::NegFOp, math::AbsFOp, arith::AddFOp,
                         arith::SubFOp, arith::MinimumFOp, arith::MaximumFOp,
                         arith::MinNumFOp, arith::MaxNumFOp>(op) &&
         llvm::all_of(op->getOperands(), isFarFromLowest);
}

Value AddedScores::multiplied(ImplicitLocOpBuilder &b, Value value,
                              IRMapping &known, double by) const {
  std::optional<unsigned> factor = factorOfHead(value);
  Operation *product = value.getDefiningOp();
  // What a tensor has may be the lowest number, which is finite still.
  if (factor && isFarFromLowest(product->getOperand(1 - *factor))) {
    Value other = copyValue(b, product->getOperand(1 - *factor), known),
          same = copyValue(b, product->getOperand(*factor), known);
    return arith::MulFOp::create(b, other, timesFinite(b, same, by));
  }
  return timesFinite(b, copyValue(b, value, known), by);
}

Value AddedScores::begin(ImplicitLocOpBuilder &b, AttentionOp op,
                         const IRMapping &args, const ScoreTile &at,
                         FragmentType type, const BegunMask *mask) const {
  IRMapping known;
  hoistOfHead(b, op, args, at, known);
  // Who reads operands as lanes hold accumulators is told by the first input,
  // which nothing reads.
  SmallVector<Value> inputs;
  if (at.read)
    inputs.push_back(at.read);
  if (!at.read || at.read.getType() != type)
    inputs.insert(inputs.begin(),
                  FragmentFillOp::create(b, type, b.getF32FloatAttr(0)));
  auto map = MapOp::create(b, type, inputs, at.query, at.key);
  OpBuilder::InsertionGuard guard(b);
  Block *body = &map.getBody().emplaceBlock();
  auto add = [&](Type argument) -> Value {
    return body->addArgument(argument, b.getLoc());
  };
  Value read = inputs.size() > 1 || !at.read ? add(b.getF32Type()) : Value();
  if (at.read)
    read = add(at.readBy->getResult(0).getType());
  Value row = add(b.getIndexType()), key = add(b.getIndexType());
  b.setInsertionPointToStart(body);
  Value shift = arith::SubIOp::create(b, at.keys, at.queries);
  Value position = arith::AddIOp::create(b, row, shift);
  // Nothing that is added follows from the score.
  SmallVector<Value> arguments{read, at.batch, at.head, row, position, key};
  for (Value capture : op.getCaptures())
    arguments.push_back(args.lookup(capture));
  known.map(op.getScore().getArguments(), arguments);
  if (at.read)
    known.map(at.readBy->getResult(0), read);
  auto times = [&](Value value, double by) -> Value {
    return arith::MulFOp::create(
        b, value, arith::ConstantOp::create(b, b.getF32FloatAttr(by)));
  };
  auto yield = [&](Value value) {
    if (mask)
      value = arith::SelectOp::create(b, mask->isHidden(b, at, position, key),
                                      mask->hidden(b), value);
    YieldOp::create(b, value);
    return map.getResult();
  };
  Value sum;
  double weight = addends.front().weight;
  if (addends.size() == 1 && weight != factor)
    return yield(multiplied(b, addends.front().value, known, weight / factor));
  for (const Addend &addend : addends) {
    Value value = copyValue(b, addend.value, known);
    double own = addend.weight / weight;
    if (std::abs(own) != 1)
      value = times(value, std::abs(own));
    if (!sum)
      sum = value;
    else if (own > 0)
      sum = arith::AddFOp::create(b, sum, value);
    else
      sum = arith::SubFOp::create(b, sum, value);
  }
  if (weight != factor)
    sum = timesFinite(b, sum, weight / factor);
  return yield(sum);
}
