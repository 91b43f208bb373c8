//===- LaneArithmetic.cpp - What softmaxes and caps compute -----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaneArithmetic.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <cmath>
#include <limits>
#include <numbers>

using namespace mlir;
using namespace kvbuf;

/// Registers beside accumulators and operands from which on a row is added up
/// in two chains, whose latencies overlap, and not in one. Measured on an H200,
/// head size 128: with 80 (BN = 128) two chains took 1 % fewer cycles a tile of
/// keys than one, with 44 (BN = 176) 3 % more.
static constexpr int64_t kTwoChainRegisters = 48;

Value kvbuf::fma(ImplicitLocOpBuilder &b, Value x, Value y, Value z) {
  return math::FmaOp::create(b, x, y, z);
}

Value kvbuf::exp2(ImplicitLocOpBuilder &b, Value value) {
  return math::Exp2Op::create(b, value);
}

Value RowExponents::offsetOf(ImplicitLocOpBuilder &b, Value max) const {
  return arith::MulFOp::create(b, max, negScale);
}

RowExponents kvbuf::exponentsOf(LaneContext &lanes, Value max,
                                const APFloat &scale, bool unbounded) {
  if (unbounded)
    return unboundedExponents(lanes, max, scale);
  ImplicitLocOpBuilder &b = lanes.builder();
  double base2 = scale.convertToFloat() * std::numbers::log2e;
  RowExponents row{lanes.f32(base2), lanes.f32(-base2), {}};
  Value none = arith::CmpFOp::create(
      b, arith::CmpFPredicate::OEQ, max,
      lanes.f32(-std::numeric_limits<double>::infinity()));
  // Rows without a key: -inf - -inf would be NaN.
  row.offset =
      arith::SelectOp::create(b, none, lanes.f32(0), row.offsetOf(b, max));
  return row;
}

RowExponents kvbuf::unboundedExponents(LaneContext &lanes, Value max,
                                       const APFloat &scale) {
  ImplicitLocOpBuilder &b = lanes.builder();
  // As f32 has it, and the largest product that counts as it is.
  float base2 = scale.convertToFloat() * std::numbers::log2e;
  float limit = std::nextafter(0x1p28f / base2, 0.0f);
  double power = std::exp2(std::floor(std::log2(base2)));
  // A row without a key: -inf - -inf would be NaN, as would be a product beyond
  // f32's range.
  Value finite = arith::MaxNumFOp::create(
      b, max,
      lanes.f32(std::numeric_limits<float>::lowest() / std::max(power, 1.0)));
  Value isFar =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OGE,
                            math::AbsFOp::create(b, finite), lanes.f32(limit));
  RowExponents row;
  row.scale =
      arith::SelectOp::create(b, isFar, lanes.f32(power), lanes.f32(base2));
  row.negScale = arith::NegFOp::create(b, row.scale);
  row.offset = row.offsetOf(b, finite);
  return row;
}

Value kvbuf::mostOfMaxima(LaneContext &lanes, const APFloat &scale,
                          bool unbounded) {
  double base2 = scale.convertToFloat() * std::numbers::log2e;
  // By the power of two below, products are exact.
  double factor = unbounded ? std::exp2(std::floor(std::log2(base2))) : base2;
  constexpr float kMost = std::numeric_limits<float>::max();
  return lanes.f32(factor > 1 ? std::nextafter(float(kMost / factor), 0.0f)
                              : kMost);
}

Value kvbuf::fold(unsigned count, ArrayRef<Value> values,
                  function_ref<Value(Value, Value)> fn) {
  Value chains[2];
  for (auto [i, value] : llvm::enumerate(values)) {
    Value &chain = chains[i % count];
    chain = chain ? fn(chain, value) : value;
  }
  return chains[1] ? fn(chains[0], chains[1]) : chains[0];
}

unsigned kvbuf::foldChains(LaneContext &lanes, FragmentType scores) {
  TeamOp team = lanes.ownTeam();
  int64_t registers = team ? int64_t(team.getRegisters()) : 0;
  if (!lanes.hasRings() || !registers)
    return 2;
  // A lane's output, scores and weights are what no compiler can save.
  const FragmentLayout &layout = lanes.layoutOf(scores);
  int64_t all = layout.rowWarps * layout.colWarps * lanes.chip().waveSize;
  int64_t elements =
      scores.getRows() * (lanes.accumulatorColumns() + scores.getCols()) +
      scores.getRows() * scores.getCols() / 2;
  return registers - elements / all < kTwoChainRegisters ? 1 : 2;
}

Value kvbuf::largestOfBits(ImplicitLocOpBuilder &b, unsigned chains,
                           ArrayRef<Value> values) {
  Values bits;
  for (Value value : values)
    bits.push_back(arith::BitcastOp::create(b, b.getI32Type(), value));
  Value top = fold(chains, bits, [&](Value x, Value y) -> Value {
    return arith::MaxSIOp::create(b, x, y);
  });
  return arith::BitcastOp::create(b, b.getF32Type(), top);
}

SmallVector<Values> kvbuf::valuesByRow(LaneContext &lanes, FragmentType type,
                                       ArrayRef<Value> vectors) {
  const FragmentLayout &atom = lanes.layoutOf(type);
  int64_t cols = atom.atomCols(type);
  unsigned parts = atom.rowParts().size();
  SmallVector<Values> rows(vectors.size() / cols * parts);
  for (auto [index, vector] : llvm::enumerate(vectors))
    for (int64_t reg = 0; reg < atom.registers(); ++reg)
      rows[index / cols * parts + atom.rowPart(reg)].push_back(
          lanes.element(vector, reg));
  return rows;
}

Value kvbuf::roundingOf(LaneContext &lanes, Value weight, Type operand) {
  ImplicitLocOpBuilder &b = lanes.builder();
  // Conversions come in pairs.
  auto wide = VectorType::get({2}, b.getF32Type());
  Value pair =
      vector::FromElementsOp::create(b, wide, ValueRange{weight, weight});
  Value rounded = lanes.roundOperand(pair, VectorType::get({2}, operand),
                                     /*isProbability=*/true);
  Value back =
      arith::ExtFOp::create(b, b.getF32Type(), lanes.element(rounded, 0));
  return arith::SubFOp::create(b, back, weight);
}
