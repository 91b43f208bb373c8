//===- LaneFit.cpp - Operands in a type of less range -----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// All rows that a warp holds get one power of two. A lane's part of an operand
/// need not be of the rows that its accumulators are of, so a power for each
/// row would have to change lanes; one for all is where it is needed.
///
//===----------------------------------------------------------------------===//

#include "LaneFit.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace kvbuf;

/// Bits of a bf16's exponent: below it lie 7 of the mantissa, and its bias is
/// that of f32.
static constexpr int64_t kMantissaBits = 7, kBias = 127;
/// One step of a bf16's exponent, as an integer.
static constexpr int64_t kStep = int64_t(1) << kMantissaBits;
/// The exponent that the largest element gets: f16 ends at 2^16, and sums of
/// products have all of f32's.
static constexpr int64_t kLargest = 14;
/// The largest exponent field of a factor whose inverse is no subnormal.
static constexpr int64_t kLargestField = 2 * kBias - 1;

/// Magnitudes of bf16 elements as the integers of their bits and one step more:
/// with that infinities and NaNs, whose exponents are the largest, are
/// negative, and do not count. The larger ones of these and of `largest`, if
/// not null.
static Value largerOf(ImplicitLocOpBuilder &b, Value word, Value largest) {
  auto bits = cast<VectorType>(word.getType()).clone(b.getI16Type());
  auto all = [&](int64_t value) {
    return arith::ConstantOp::create(
        b, bits,
        DenseElementsAttr::get(bits, b.getI16IntegerAttr(int16_t(value))));
  };
  Value x = arith::BitcastOp::create(b, bits, word);
  x = arith::AndIOp::create(b, x, all(0x7fff));
  x = arith::AddIOp::create(b, x, all(kStep));
  return largest ? arith::MaxSIOp::create(b, largest, x).getResult() : x;
}

namespace {
/// What elements are multiplied by, and rows of products.
struct Powers {
  Value multiplier, factor;
};
} // namespace

/// The powers of two for what a warp's lanes found by `largerOf`, with a scale
/// if it is not null.
static Powers powersFor(LaneContext &lanes, Value largest, Value scale) {
  ImplicitLocOpBuilder &b = lanes.builder();
  Value top = arith::ConstantIntOp::create(b, kStep, 16);
  int64_t count = cast<VectorType>(largest.getType()).getNumElements();
  for (int64_t i = 0; i < count; ++i)
    top = arith::MaxSIOp::create(b, top, lanes.element(largest, i));
  top = arith::ExtSIOp::create(b, b.getI32Type(), top);
  for (int64_t apart = 1; apart < lanes.chip().waveSize; apart *= 2) {
    auto shuffle = gpu::ShuffleOp::create(b, top, lanes.i32(apart),
                                          lanes.i32(lanes.chip().waveSize),
                                          gpu::ShuffleMode::XOR);
    top = arith::MaxSIOp::create(b, top, shuffle.getShuffleResult());
  }
  // Exponent fields: that of the largest, and those of the powers of two.
  Value field = arith::SubIOp::create(
      b, arith::ShRUIOp::create(b, top, lanes.i32(kMantissaBits)),
      lanes.i32(1));
  Value up = arith::MinSIOp::create(
      b, arith::SubIOp::create(b, lanes.i32(2 * kBias + kLargest), field),
      lanes.i32(kLargestField));
  Value down = arith::SubIOp::create(b, lanes.i32(2 * kBias), up);
  auto power = [&](Value exponent) -> Value {
    return arith::BitcastOp::create(
        b, b.getF32Type(), arith::ShLIOp::create(b, exponent, lanes.i32(23)));
  };
  Powers made{power(up), power(down)};
  if (!scale)
    return made;
  // Factors are positive, so that rows keep their order: the operand has the
  // scale's sign. Nor are they 0, which would make no number of what is hidden.
  made.multiplier = math::CopySignOp::create(b, made.multiplier, scale);
  made.factor =
      arith::MulFOp::create(b, made.factor, math::AbsFOp::create(b, scale));
  made.factor = arith::MaximumFOp::create(
      b, made.factor, lanes.f32(std::numeric_limits<float>::min()));
  return made;
}

/// Elements of bf16 times a number, as f16.
static Value fitted(ImplicitLocOpBuilder &b, Value word, Value multiplier) {
  auto type = cast<VectorType>(word.getType());
  int64_t count = type.getNumElements();
  assert(count % 2 == 0 && "operands have words of pairs");
  // The upper halves of wide numbers: a word's lower element is shifted there,
  // its upper one is. (NVIDIA's conversion is one of the slow instructions.)
  auto words = VectorType::get({count / 2}, b.getI32Type());
  auto wide = words.clone(b.getF32Type());
  auto all = [&](uint32_t value) {
    return arith::ConstantOp::create(
        b, words,
        DenseElementsAttr::get(words, b.getI32IntegerAttr(int32_t(value))));
  };
  Value pairs = vector::BitCastOp::create(b, words, word);
  Value factors = vector::BroadcastOp::create(b, wide, multiplier);
  auto times = [&](Value bits) {
    return arith::MulFOp::create(b, arith::BitcastOp::create(b, wide, bits),
                                 factors);
  };
  Value lower = times(arith::ShLIOp::create(b, pairs, all(16))),
        upper = times(arith::AndIOp::create(b, pairs, all(0xffff0000)));
  Value both = vector::InterleaveOp::create(b, lower, upper);
  return arith::TruncFOp::create(b, type.clone(b.getF16Type()), both);
}

/// Gives each row of a product one factor, which all lanes of a warp have.
static void setFactor(LaneContext &lanes, Value rows, Value factor) {
  ImplicitLocOpBuilder &b = lanes.builder();
  factor = arith::BitcastOp::create(
      b, b.getF32Type(),
      lanes.uniform(arith::BitcastOp::create(b, b.getI32Type(), factor)));
  SmallVector<Type> types;
  lanes.laneTypes(rows.getType(), types);
  lanes.setLanes(rows, Values(types.size(), factor));
}

void kvbuf::lowerOp(LaneContext &lanes, FragmentFitOp op) {
  ImplicitLocOpBuilder &b = lanes.builder();
  const Values &words = lanes.lanesOf(op.getSource());
  Value largest;
  for (Value word : words)
    largest = largerOf(b, word, largest);
  Powers powers = powersFor(
      lanes, largest, op.getScale() ? lanes.single(op.getScale()) : Value());
  Values made;
  for (Value word : words)
    made.push_back(fitted(b, word, powers.multiplier));
  lanes.setLanes(op.getFragment(), made);
  setFactor(lanes, op.getFactor(), powers.factor);
}

void kvbuf::lowerOp(LaneContext &lanes, StagedFitOp op) {
  ImplicitLocOpBuilder &b = lanes.builder();
  // Whole vectors, as they lie: each warp looks at all of them, and each lane
  // converts its own.
  constexpr int64_t bytes = 16, elements = 8;
  int64_t count = op.getSource().getType().getParams().getStageBytes() / bytes;
  Value slot = lanes.single(op.getSource());
  Value first = lanes.toIndex(arith::DivUIOp::create(b, slot, lanes.i32(2)));
  auto place = [&](Value vector) -> Value {
    return arith::AddIOp::create(
        b, first,
        arith::MulIOp::create(b, vector, lanes.index(elements)).getResult());
  };
  auto vector = VectorType::get({elements}, b.getBF16Type());
  auto bits = vector.clone(b.getI16Type());
  auto load = [&](Value at) -> Value {
    return vector::LoadOp::create(b, vector, lanes.shared(b.getBF16Type()),
                                  ValueRange{at}, /*nontemporal=*/false,
                                  llvm::Align(bytes));
  };
  Value none = arith::ConstantOp::create(
      b, bits, DenseElementsAttr::get(bits, b.getI16IntegerAttr(kStep)));
  auto look = scf::ForOp::create(
      b, lanes.toIndex(lanes.laneInWarp()), lanes.index(count),
      lanes.index(lanes.chip().waveSize), ValueRange{none});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(look.getBody());
    Value word = load(place(look.getInductionVar()));
    scf::YieldOp::create(b,
                         largerOf(b, word, look.getRegionIterArgs().front()));
  }
  Powers powers =
      powersFor(lanes, look.getResult(0),
                op.getScale() ? lanes.single(op.getScale()) : Value());
  lanes.meet();
  auto convert =
      scf::ForOp::create(b, lanes.toIndex(lanes.ownThread()),
                         lanes.index(count), lanes.index(lanes.ownThreads()));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(convert.getBody());
    Value at = place(convert.getInductionVar());
    vector::StoreOp::create(b, fitted(b, load(at), powers.multiplier),
                            lanes.shared(b.getF16Type()), ValueRange{at},
                            /*nontemporal=*/false, llvm::Align(bytes));
  }
  lanes.meet();
  lanes.setLanes(op.getFitted(), {slot});
  setFactor(lanes, op.getFactor(), powers.factor);
}
