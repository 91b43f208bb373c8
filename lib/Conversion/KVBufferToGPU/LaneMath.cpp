//===- LaneMath.cpp - Products, scores and softmax --------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaneMath.h"
#include "LaneArithmetic.h"
#include "LaneSoftcap.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Weights.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/VerifyElements.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <numbers>

using namespace mlir;
using namespace kvbuf;

static Value subf(ImplicitLocOpBuilder &b, Value x, Value y) {
  return arith::SubFOp::create(b, x, y);
}
static Value maxf(ImplicitLocOpBuilder &b, Value x, Value y) {
  return arith::MaxNumFOp::create(b, x, y);
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

void kvbuf::lowerOp(LaneContext &lanes, FragmentFillOp op) {
  ImplicitLocOpBuilder &b = lanes.builder();
  SmallVector<Type> types;
  lanes.laneTypes(op.getFragment().getType(), types);
  Values values;
  for (Type type : types) {
    Attribute value = b.getFloatAttr(getElementTypeOrSelf(type),
                                     op.getValue().convertToFloat());
    // LLVM has no 8-bit floats.
    if (getElementTypeOrSelf(type).getIntOrFloatBitWidth() == 8) {
      auto vector = cast<VectorType>(type);
      auto bytes = vector.clone(b.getI8Type());
      APInt bits = cast<FloatAttr>(value).getValue().bitcastToAPInt();
      values.push_back(arith::BitcastOp::create(
          b, vector,
          arith::ConstantOp::create(b, DenseElementsAttr::get(bytes, bits))));
      continue;
    }
    if (auto vector = dyn_cast<VectorType>(type))
      value = DenseElementsAttr::get(vector, value);
    values.push_back(
        arith::ConstantOp::create(b, type, cast<TypedAttr>(value)));
  }
  lanes.setLanes(op.getFragment(), values);
}

void kvbuf::lowerOp(LaneContext &lanes, FragmentSliceOp op) {
  FragmentType from = op.getSource().getType(), to = op.getFragment().getType();
  const FragmentLayout &atom = lanes.layoutOf(from);
  int64_t perAtom =
      from.getRole() == Role::Acc ? 1 : atom.registers() / atom.words;
  // Atoms are listed row by row of [m][k], [k][n] or [m][n]; rows of a turned b
  // are n.
  int64_t fromInner = atom.atomCols(from), toInner = atom.atomCols(to);
  int64_t toOuter = atom.atoms(to) / toInner;
  int64_t row = (atom.turned ? op.getCol() : op.getRow()) / atom.rows,
          col = (atom.turned ? op.getRow() : op.getCol()) / atom.cols;
  const Values source = lanes.lanesOf(op.getSource());
  Values values;
  for (int64_t i = 0; i < toOuter; ++i)
    for (int64_t j = 0; j < toInner; ++j)
      for (int64_t w = 0; w < perAtom; ++w)
        values.push_back(
            source[((row + i) * fromInner + col + j) * perAtom + w]);
  lanes.setLanes(op.getFragment(), values);
}

void kvbuf::lowerOp(LaneContext &lanes, MmaOp op) {
  ImplicitLocOpBuilder &b = lanes.builder();
  // Atoms: a is [m][k], acc [m][n]; b is listed [k][n], whichever way it lies
  // in LDS (see Machine::emitFragmentLoad).
  FragmentType aType = op.getA().getType(), bType = op.getB().getType(),
               accType = op.getAcc().getType();
  const FragmentLayout &aAtom = lanes.layoutOf(aType),
                       &bAtom = lanes.layoutOf(bType),
                       &accAtom = lanes.layoutOf(accType);
  auto product = cast<MmaLayoutAttr>(accType.getLayout());
  int64_t group = product.getGroup();
  int64_t aWords = aAtom.registers() / aAtom.words;
  int64_t bWords = bAtom.registers() / bAtom.words;
  int64_t ks = aAtom.atomCols(aType);
  // The product may be a part of the accumulator's columns.
  int64_t accNs = accAtom.atomCols(accType);
  int64_t column = op.getColumn() / accAtom.cols;
  int64_t ns = bAtom.atomCols(bType);
  int64_t ms = accAtom.atoms(accType) / accNs;
  Values acc = lanes.lanesOf(op.getAcc());
  const Values as = lanes.lanesOf(op.getA()), bs = lanes.lanesOf(op.getB());
  // The part of an atom's words that feeds instruction `g` of its group.
  auto part = [&](ArrayRef<Value> words, int64_t width, int64_t g) {
    if (group == 1)
      return Values(words.begin(), words.end());
    auto elements = llvm::to_vector(llvm::seq(g * width, (g + 1) * width));
    return Values(llvm::map_range(words, [&](Value word) -> Value {
      return vector::ShuffleOp::create(b, word, word, elements);
    }));
  };
  // A product waits for the one before it of the same accumulators. Of a group
  // that is larger than the instruction's own, others come in between.
  const MatrixInstruction *mma = lanes.chip().findMatrix(
      product.getShape(), elementName(aType.getElementType()));
  int64_t inTurn = mma ? std::min<int64_t>(group, mma->group) : group;
  for (int64_t k = 0; k < ks; ++k)
    for (int64_t first = 0; first < group; first += inTurn)
      for (int64_t n = 0; n < ns; ++n)
        for (int64_t m = 0; m < ms; ++m) {
          ArrayRef<Value> left =
              ArrayRef(as).slice((m * ks + k) * aWords, aWords);
          ArrayRef<Value> right =
              ArrayRef(bs).slice((k * ns + n) * bWords, bWords);
          int64_t leftWidth = aAtom.words / group,
                  rightWidth = bAtom.words / group;
          if (product.getSwapped()) {
            std::swap(left, right);
            std::swap(leftWidth, rightWidth);
          }
          Value &c = acc[m * accNs + column + n];
          for (int64_t g = first; g < first + inTurn; ++g)
            c = LaneMmaOp::create(b, c.getType(), c, part(left, leftWidth, g),
                                  part(right, rightWidth, g),
                                  product.getShape());
        }
  lanes.setLanes(op.getResult(), acc);
}

LogicalResult kvbuf::toOperand(LaneContext &lanes, Operation *op,
                               FragmentType from, FragmentType type,
                               ArrayRef<Value> acc, Values &words,
                               SmallVectorImpl<int64_t> *wordRows) {
  ImplicitLocOpBuilder &b = lanes.builder();
  const FragmentLayout &a = lanes.layoutOf(type), &c = lanes.layoutOf(from);
  // Each register of the operand must be a register of the same lane.
  bool sameLanes = a.layout.inLog2("lane") == c.layout.inLog2("lane");
  for (unsigned bit = 0; sameLanes && bit < a.layout.inLog2("lane"); ++bit)
    sameLanes = a.layout.basis("lane", bit) == c.layout.basis("lane", bit);
  int64_t accCols = c.atomCols(from), opCols = a.atomCols(type);
  int64_t rows = acc.size() / accCols * c.rows;
  SmallVector<int64_t> registers(c.rows * c.cols, -1);
  for (int64_t reg = 0; reg < c.registers(); ++reg) {
    auto at = c.layout.apply({{"register", reg}});
    registers[at[0] * c.cols + at[1]] = reg;
  }
  for (int64_t i = 0; sameLanes && i < rows / a.rows; ++i)
    for (int64_t j = 0; sameLanes && j < opCols; ++j) {
      Values elements;
      for (int64_t reg = 0; reg < a.registers(); ++reg) {
        auto at = a.layout.apply({{"register", reg}});
        int64_t row = i * a.rows + at[0], col = j * a.cols + at[1];
        int64_t held = registers[(row % c.rows) * c.cols + col % c.cols];
        if (held < 0) {
          sameLanes = false;
          break;
        }
        elements.push_back(
            lanes.element(acc[row / c.rows * accCols + col / c.cols], held));
        // A word's elements are contracted together: of one row.
        if (wordRows && reg % a.words == 0)
          wordRows->push_back(row / c.rows * int64_t(c.rowParts().size()) +
                              c.rowPart(held));
      }
      if (!sameLanes)
        break;
      auto wide = VectorType::get({a.words}, b.getF32Type());
      auto narrow = VectorType::get({a.words}, type.getElementType());
      for (int64_t w = 0; w < a.registers(); w += a.words)
        words.push_back(lanes.roundOperand(
            vector::FromElementsOp::create(
                b, wide, ArrayRef<Value>(elements).slice(w, a.words)),
            narrow, /*isProbability=*/
            isa<OnlineSoftmaxOp, SoftmaxTailOp, SoftmaxSettleOp>(op)));
    }
  if (!sameLanes)
    return op->emitOpError() << "the accumulators of this matrix instruction "
                                "are no operands of it "
                                "without an exchange between lanes";
  return success();
}

/// Operand b of accumulators that are one warp's: the elements of each word are
/// registers of the same lane.
static LogicalResult toOperandB(LaneContext &lanes, FragmentConvertOp op) {
  ImplicitLocOpBuilder &b = lanes.builder();
  FragmentType from = op.getSource().getType(), to = op.getFragment().getType();
  const FragmentLayout &atom = lanes.layoutOf(to), &c = lanes.layoutOf(from);
  // Atoms of b are [contracted][columns]; a turned fragment is [columns][...].
  LinearLayout own = atom.turned ? transposed(atom.layout) : atom.layout;
  bool sameLanes = own.inLog2("lane") == c.layout.inLog2("lane") &&
                   atom.rowWarps * c.rowWarps * c.colWarps == 1;
  for (unsigned bit = 0; sameLanes && bit < own.inLog2("lane"); ++bit)
    sameLanes = own.basis("lane", bit) == c.layout.basis("lane", bit);
  // Which register of an atom of accumulators an element is.
  SmallVector<int64_t> registers(c.rows * c.cols, -1);
  for (int64_t reg = 0; reg < c.registers(); ++reg) {
    auto at = c.layout.apply({{"register", reg}});
    registers[at[0] * c.cols + at[1]] = reg;
  }
  int64_t rows = to.getRows(), cols = to.getCols(), accCols = c.atomCols(from);
  if (atom.turned)
    std::swap(rows, cols);
  const Values acc = lanes.lanesOf(op.getSource());
  Type element = to.getElementType();
  Values words, elements;
  for (int64_t k = 0; sameLanes && k < rows; k += atom.rows)
    for (int64_t n = 0; sameLanes && n < cols; n += atom.cols)
      for (int64_t reg = 0; sameLanes && reg < atom.registers(); ++reg) {
        auto at = atom.layout.apply({{"register", reg}});
        int64_t row = k + at[0], col = n + at[1];
        if (atom.turned)
          std::swap(row, col);
        int64_t held = registers[row % c.rows * c.cols + col % c.cols];
        sameLanes = held >= 0;
        if (!sameLanes)
          break;
        elements.push_back(
            lanes.element(acc[row / c.rows * accCols + col / c.cols], held));
        if (int64_t(elements.size()) < atom.words)
          continue;
        auto narrow = VectorType::get({atom.words}, element);
        Value word = vector::FromElementsOp::create(
            b, narrow.clone(from.getElementType()), elements);
        if (from.getElementType() != element)
          word = lanes.roundOperand(word, narrow,
                                    /*isProbability=*/false);
        words.push_back(word);
        elements.clear();
      }
  if (!sameLanes)
    return op.emitOpError()
           << "makes operand b, " << to.getLayout()
           << ", of accumulators that lie otherwise, " << from.getLayout()
           << "; expected those of one warp, and a "
              "kvbuffer.exchange before";
  lanes.setLanes(op.getFragment(), words);
  return success();
}

LogicalResult kvbuf::lowerOp(LaneContext &lanes, FragmentConvertOp op) {
  ImplicitLocOpBuilder &b = lanes.builder();
  FragmentType from = op.getSource().getType(), to = op.getFragment().getType();
  if (to.getRole() == Role::B && from.getRole() == Role::Acc &&
      (from.getElementType().isF32() ||
       from.getElementType() == to.getElementType()))
    return toOperandB(lanes, op);
  if (to.getRole() == Role::A && from.getRole() == Role::Acc) {
    Values words;
    if (failed(toOperand(lanes, op, from, to, lanes.lanesOf(op.getSource()),
                         words)))
      return failure();
    lanes.setLanes(op.getFragment(), words);
    return success();
  }
  if (to.getRole() != from.getRole() || !from.getElementType().isF32())
    return op.emitOpError() << "cannot convert " << from << " to " << to;
  Values values;
  bool isByte = to.getElementType().getIntOrFloatBitWidth() == 8;
  for (Value vector : lanes.lanesOf(op.getSource())) {
    VectorType type =
        cast<VectorType>(vector.getType()).clone(to.getElementType());
    values.push_back(
        isByte ? lanes.roundOperand(vector, type, /*isProbability=*/false)
               : arith::TruncFOp::create(b, type, vector));
  }
  lanes.setLanes(op.getFragment(), values);
  return success();
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

void kvbuf::lowerOp(LaneContext &lanes, FragmentScaleOp op) {
  ImplicitLocOpBuilder &b = lanes.builder();
  Value factor = lanes.f32(op.getFactor().convertToFloat());
  lanes.setLanes(op.getResult(),
                 lanes.mapElements(lanes.lanesOf(op.getSource()),
                                   [&](Value s, unsigned, int64_t) {
                                     return mulf(b, s, factor);
                                   }));
}

/// Windows that reach further are compared in 64 bits first: their ends as
/// columns of a tile need not fit into 32. More than any tile is wide.
static constexpr int64_t kFarReach = int64_t(1) << 29;

/// Hides what lies past the last key behind a branch that a warp seldom takes.
/// Elements go into it one by one: of a vector that one side leaves as it is
/// LLVM makes a block that takes it apart there.
static void hideEnd(LaneContext &lanes, MaskOp op) {
  ImplicitLocOpBuilder &b = lanes.builder();
  FragmentType type = op.getScores().getType();
  const FragmentLayout &atom = lanes.layoutOf(type);
  int64_t cols = atom.atomCols(type);
  Value edge = lanes.toI32(arith::SubIOp::create(b, lanes.single(op.getKeys()),
                                                 lanes.single(op.getKey())));
  Value isCut =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, edge,
                            lanes.i32(static_cast<int32_t>(type.getCols())));
  const Values &scores = lanes.lanesOf(op.getScores());
  auto vectorType = cast<VectorType>(scores.front().getType());
  int64_t registers = vectorType.getNumElements();
  Values elements;
  for (Value vector : scores)
    for (int64_t reg = 0; reg < registers; ++reg)
      elements.push_back(lanes.element(vector, reg));
  SmallVector<Type> types(elements.size(), type.getElementType());
  // A question to all lanes, which agree, is one whose branch is seldom taken.
  auto branch = scf::IfOp::create(b, types, LaneAnyOp::create(b, isCut),
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, elements);
    b.setInsertionPointToStart(branch.thenBlock());
    Value end = arith::SubIOp::create(b, edge, lanes.laneCol(type));
    Value hidden = lanes.f32(-std::numeric_limits<double>::infinity());
    for (auto [i, score] : llvm::enumerate(elements)) {
      int64_t at =
          i / registers % cols * atom.cols + atom.colOffset(i % registers);
      Value keep = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, end,
                                         lanes.i32(at));
      score = arith::SelectOp::create(b, keep, score, hidden);
    }
    scf::YieldOp::create(b, elements);
  }
  Values vectors;
  for (size_t i = 0; i < scores.size(); ++i)
    vectors.push_back(vector::FromElementsOp::create(
        b, vectorType, branch.getResults().slice(i * registers, registers)));
  lanes.setLanes(op.getResult(), vectors);
}

void kvbuf::lowerOp(LaneContext &lanes, MaskOp op) {
  if (op.getSeldom())
    return hideEnd(lanes, op);
  ImplicitLocOpBuilder &b = lanes.builder();
  FragmentType type = op.getScores().getType();
  const FragmentLayout &atom = lanes.layoutOf(type);
  int64_t cols = atom.atomCols(type);
  unsigned parts = atom.rowParts().size();
  int64_t rows = lanes.lanesOf(op.getScores()).size() / cols * parts;
  MaskAttr mask = op.getMask();
  Value row = lanes.single(op.getRow()), key = lanes.single(op.getKey()),
        keys = lanes.single(op.getKeys());
  Value shift = arith::SubIOp::create(b, keys, lanes.single(op.getQueries()));
  // Per row, the columns of the tile that this lane keeps: those whose constant
  // part is in [low, high). One comparison of a register with a constant a
  // score.
  Value col = lanes.laneCol(type), laneRows = lanes.laneRow(type);
  Value edge = lanes.toI32(arith::SubIOp::create(b, keys, key));
  // The position of row 0 as a column of this tile.
  Value start =
      arith::SubIOp::create(b, arith::AddIOp::create(b, row, shift), key);
  Value origin = lanes.toI32(start);
  // Rows of one query stand at one position; else a lane's rows are constants
  // apart.
  int64_t group = op.getGroup();
  Value position = group > 1
                       ? origin
                       : arith::AddIOp::create(b, origin, laneRows).getResult();
  // The column that lies `reach` from the position of each of this lane's rows.
  auto columnsAt = [&](int64_t reach) {
    Value first = position;
    bool far = std::abs(reach) > kFarReach;
    if (far) {
      Value bounded = arith::AddIOp::create(b, start, lanes.index(reach));
      bounded = arith::MinSIOp::create(b, bounded, lanes.index(kFarReach));
      bounded = arith::MaxSIOp::create(b, bounded, lanes.index(-kFarReach));
      first = lanes.toI32(bounded);
      if (group == 1)
        first = arith::AddIOp::create(b, first, laneRows);
    }
    Values columns;
    for (int64_t r = 0; r < rows; ++r) {
      Value offset = lanes.i32(atom.rowOffset(r / parts, r % parts));
      if (group > 1)
        offset = arith::DivUIOp::create(
            b, arith::AddIOp::create(b, laneRows, offset).getResult(),
            lanes.i32(group));
      Value at = arith::AddIOp::create(b, first, offset);
      columns.push_back(far ? at
                            : arith::AddIOp::create(b, at, lanes.i32(reach)));
    }
    return columns;
  };
  Values ends, begins;
  if (mask.boundsRight())
    ends = columnsAt(mask.rightReach() + 1);
  if (mask.boundsLeft())
    begins = columnsAt(-mask.getLeft());
  Values high(rows), low(rows);
  for (int64_t r = 0; r < rows; ++r) {
    Value limit = edge;
    if (mask.boundsRight())
      limit = arith::MinSIOp::create(b, edge, ends[r]);
    high[r] = arith::SubIOp::create(b, limit, col);
    if (mask.boundsLeft())
      low[r] = arith::SubIOp::create(b, begins[r], col);
  }
  Value hidden = lanes.f32(-std::numeric_limits<double>::infinity());
  lanes.setLanes(
      op.getResult(),
      lanes.mapElements(
          lanes.lanesOf(op.getScores()),
          [&](Value s, unsigned index, int64_t reg) {
            int64_t r = index / cols * parts + atom.rowPart(reg);
            int64_t at = index % cols * atom.cols + atom.colOffset(reg);
            Value keep = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt,
                                               high[r], lanes.i32(at));
            if (low[r])
              keep = arith::AndIOp::create(
                  b, keep,
                  arith::CmpIOp::create(b, arith::CmpIPredicate::sle, low[r],
                                        lanes.i32(at)));
            return arith::SelectOp::create(b, keep, s, hidden).getResult();
          }));
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

void kvbuf::lowerOp(LaneContext &lower, AnyNegativeOp op) {
  ImplicitLocOpBuilder &b = lower.builder();
  Value all;
  for (Value row : lower.lanesOf(op.getRows())) {
    Value bits = arith::BitcastOp::create(b, b.getI32Type(), row);
    all = all ? arith::OrIOp::create(b, all, bits).getResult() : bits;
  }
  Value negative =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, all, lower.i32(0));
  lower.setLanes(op.getAny(), lower.anyOfGroup(negative));
}

namespace {
/// What a softmax makes of scores.
struct SoftmaxValues {
  /// Accumulators, not yet operands: what a product in flight reads must not be
  /// defined in a branch.
  Values weights, max, sum, rescale;
};
} // namespace

/// The product of scores with a positive factor of each row that a softmax is
/// of; null if it is of others. The softmax takes the scores as they are: the
/// factor belongs to the one that it multiplies them by anyway.
static RescaleOp productWithFit(OnlineSoftmaxOp op) {
  auto product = op.getScores().getDefiningOp<RescaleOp>();
  if (!product || product.getAddend() || op.getRowMax() || op.getUnbounded() ||
      !isa_and_nonnull<FragmentFitOp, StagedFitOp>(
          product.getFactor().getDefiningOp()))
    return nullptr;
  return product;
}

static SoftmaxValues softmax(LaneContext &lower, OnlineSoftmaxOp op,
                             ArrayRef<Value> scores) {
  ImplicitLocOpBuilder &b = lower.builder();
  FragmentType type = op.getScores().getType();
  const FragmentLayout &atom = lower.layoutOf(type);
  int64_t cols = atom.atomCols(type);
  unsigned parts = atom.rowParts().size();
  // A copy: new values move those that are kept.
  const Values max = lower.lanesOf(op.getMax());
  int64_t rows = max.size();
  Value scale = lower.f32(op.getScale().convertToFloat() * std::numbers::log2e);
  Value negScale =
      lower.f32(-op.getScale().convertToFloat() * std::numbers::log2e);
  Value lowest = lower.f32(-std::numeric_limits<double>::infinity()),
        zero = lower.f32(0);

  unsigned chains = foldChains(lower, type);
  const CapInSoftmax *capped =
      lower.ofKernel<SoftcapsInSoftmax>().find(op.getScores());
  Values unscaled, factor;
  if (RescaleOp product = capped ? RescaleOp() : productWithFit(op)) {
    scores = unscaled = lower.lanesOf(product.getAcc());
    factor = lower.lanesOf(product.getFactor());
  }

  // Scores by row.
  SmallVector<Values> byRow(rows);
  for (auto [index, vector] : llvm::enumerate(scores))
    for (int64_t reg = 0; reg < atom.registers(); ++reg)
      byRow[index / cols * parts + atom.rowPart(reg)].push_back(
          lower.element(vector, reg));

  auto larger = [&](Value x, Value y) { return maxf(b, x, y); };
  auto sumOf = [&](Value x, Value y) { return addf(b, x, y); };
  // Exponents of scores that are still to be capped.
  Values exponents;

  Values newMax(rows), newSum(rows), rescale(rows), offset(rows);
  Values largest;
  if (op.getRowMax())
    largest = lower.lanesOf(op.getRowMax());
  if (capped) {
    CappedExponents made = capInSoftmax(lower, *capped, op, scores, max);
    exponents = made.exponents;
    newMax = made.max;
  }
  for (int64_t r = 0; r < rows && !capped; ++r) {
    if (!largest.empty()) {
      newMax[r] = maxf(b, max[r], largest[r]);
      continue;
    }
    // Beside a maximum that is not negative scores that are do not count, so
    // that 0 stands for it where scores have another factor.
    bool areBits = op.getNotNegative() && lower.chip().integerMaxima;
    Values candidates;
    if (factor.empty() || areBits)
      candidates.push_back(factor.empty() ? max[r] : zero);
    llvm::append_range(candidates, byRow[r]);
    Value top = areBits ? largestOfBits(b, chains, candidates)
                        : fold(chains, candidates, larger);
    newMax[r] = lower.reduceLanes(atom, top, /*isMax=*/true);
    if (!factor.empty())
      newMax[r] = maxf(b, max[r], mulf(b, newMax[r], factor[r]));
  }
  // Capped scores are small.
  bool unbounded = op.getUnbounded() && !capped;
  Values scales(rows, scale);
  for (int64_t r = 0; r < rows && !factor.empty(); ++r)
    scales[r] = mulf(b, scale, factor[r]);
  for (int64_t r = 0; r < rows; ++r) {
    if (unbounded) {
      RowExponents row = unboundedExponents(lower, newMax[r], op.getScale());
      scales[r] = row.scale;
      offset[r] = row.offset;
      rescale[r] = exp2(b, subf(b, offset[r], row.offsetOf(b, max[r])));
      continue;
    }
    offset[r] = mulf(b, newMax[r], negScale);
    // What the step before has computed: loops carry it (kvbuf-carry-values).
    Value before = mulf(b, max[r], negScale);
    if (op.getMasked()) {
      // A row that has seen no key: -inf - -inf would be NaN.
      Value none = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ,
                                         newMax[r], lowest);
      offset[r] = arith::SelectOp::create(b, none, zero, offset[r]);
    }
    // Of offsets as they were rounded: so it is exactly 1 where the maximum
    // stays, and no weight is counted under two offsets.
    rescale[r] = exp2(b, subf(b, offset[r], before));
  }
  // A power of two for all weights of a row is a number beside its exponent.
  float gain = op.gainOfWeights();
  Values exponentOf(offset);
  if (gain != 1 && !capped)
    for (Value &x : exponentOf)
      x = addf(b, x, lower.f32(std::log2(gain)));
  SmallVector<Values> probabilities(rows);
  Values p = lower.mapElements(
      capped ? exponents : scores, [&](Value s, unsigned index, int64_t reg) {
        int64_t r = index / cols * parts + atom.rowPart(reg);
        if (capped && gain != 1)
          s = addf(b, s, lower.f32(std::log2(gain)));
        Value value = exp2(b, capped ? s : fma(b, s, scales[r], exponentOf[r]));
        probabilities[r].push_back(value);
        return value;
      });
  // The sum stays this lane's part of it until the end; adding the old sum last
  // keeps it off the critical path.
  Values sum = lower.lanesOf(op.getSum());
  for (int64_t r = 0; r < rows; ++r) {
    Value total = fold(chains, probabilities[r], sumOf);
    if (gain != 1)
      total = mulf(b, total, lower.f32(1 / gain));
    newSum[r] = fma(b, sum[r], rescale[r], total);
  }
  return {p, newMax, newSum, rescale};
}

LogicalResult kvbuf::lowerOp(LaneContext &lower, OnlineSoftmaxOp op) {
  // A copy: new values move those that are kept.
  const Values scores = lower.lanesOf(op.getScores());
  SoftmaxValues made = softmax(lower, op, scores);
  lower.storeKept(op.getSum(), made.sum);
  // What nothing multiplies has no layout to be in.
  if (op.getP().getType().getRole() == Role::Acc) {
    lower.setLanes(op.getP(), made.weights);
  } else if (!op.getP().use_empty()) {
    Values words;
    if (failed(toOperand(lower, op, op.getScores().getType(),
                         op.getP().getType(), made.weights, words)))
      return failure();
    lower.setLanes(op.getP(), words);
  }
  lower.setLanes(op.getNewMax(), made.max);
  lower.setLanes(op.getNewSum(), made.sum);
  lower.setLanes(op.getRescale(), made.rescale);
  return success();
}

void kvbuf::lowerOp(LaneContext &lanes, RescaleOp op) {
  ImplicitLocOpBuilder &b = lanes.builder();
  FragmentType type = op.getAcc().getType();
  const FragmentLayout &atom = lanes.layoutOf(type);
  int64_t cols = atom.atomCols(type);
  unsigned parts = atom.rowParts().size();
  // Copies: new values move those that are kept.
  const Values factor = lanes.lanesOf(op.getFactor()),
               acc = lanes.lanesOf(op.getAcc());
  if (op.getAddend()) {
    const Values addend = lanes.lanesOf(op.getAddend());
    return lanes.setLanes(
        op.getResult(),
        lanes.mapElements(acc, [&](Value x, unsigned index, int64_t reg) {
          int64_t row = index / cols * parts + atom.rowPart(reg);
          return fma(b, x, factor[row], lanes.element(addend[index], reg));
        }));
  }
  bool branches = lanes.chip().branchedRescaleAccumulators &&
                  int64_t(acc.size()) * atom.registers() >=
                      lanes.chip().branchedRescaleAccumulators;
  // Who waits for another team's factors has nothing in flight that a branch
  // would hold up.
  branches |= bool(op.getFactor().getDefiningOp<QueueTakeOp>());
  // A factor is exactly 1 where the maximum stays, so nothing changes.
  Values changes;
  if (lanes.chip().predicatesRescale || branches)
    for (Value f : factor)
      changes.push_back(
          arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, f, lanes.f32(1)));
  auto multiply = [&] {
    return lanes.mapElements(acc, [&](Value x, unsigned index, int64_t reg) {
      int64_t row = index / cols * parts + atom.rowPart(reg);
      Value product = mulf(b, x, factor[row]);
      // One predicated multiplication: assemblers fold the two.
      if (lanes.chip().predicatesRescale)
        product = arith::SelectOp::create(b, changes[row], product, x);
      return product;
    });
  };
  if (!branches)
    return lanes.setLanes(op.getResult(), multiply());
  Value any = changes.front();
  for (Value change : llvm::drop_begin(changes))
    any = arith::OrIOp::create(b, any, change);
  auto apply = scf::IfOp::create(b, ValueRange(acc).getTypes(),
                                 LaneAnyOp::create(b, any),
                                 /*addThenBlock=*/true, /*addElseBlock=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(apply.thenBlock());
    scf::YieldOp::create(b, multiply());
    b.setInsertionPointToEnd(apply.elseBlock());
    scf::YieldOp::create(b, acc);
  }
  lanes.setLanes(op.getResult(),
                 Values(apply->result_begin(), apply->result_end()));
}

/// What rounding adds to the weight of a row's largest score: 2 to the power of
/// what the product of `max` and `scale`, in base 2, loses by its own rounding.
static Value largestExcess(LaneContext &lanes, SoftmaxFinishOp op, Value max,
                           Value scale, Type operand) {
  ImplicitLocOpBuilder &b = lanes.builder();
  if (op.getUnbounded()) {
    RowExponents row = unboundedExponents(lanes, max, op.getScale());
    Value lost = fma(b, max, row.scale, row.offset);
    return roundingOf(lanes, exp2(b, lost), operand);
  }
  // A row without a key: -inf - -inf would be NaN.
  Value none = arith::CmpFOp::create(
      b, arith::CmpFPredicate::OEQ, max,
      lanes.f32(-std::numeric_limits<double>::infinity()));
  max = arith::SelectOp::create(b, none, lanes.f32(0), max);
  Value offset = arith::NegFOp::create(b, mulf(b, max, scale));
  return roundingOf(lanes, exp2(b, fma(b, max, scale, offset)), operand);
}

namespace {
/// A row at the end of its softmax.
struct FinishedRow {
  /// The largest score, the sink's too: of an unbounded softmax as it is, of
  /// another one times the scale in base 2.
  Value top;
  /// The sum of all weights, and what those of keys are multiplied by so that
  /// they are of that maximum.
  Value sum, factor;
};
} // namespace

/// A sink as a score that is compared with maxima, and whether it counts as
/// infinite; null where there is none.
struct FinishSink {
  Value score, isAll;
};

/// The sink of an op: as those of keys are before they are scaled where the
/// softmax is `unbounded`, else in base 2.
static FinishSink sinkOf(LaneContext &lanes, SoftmaxFinishOp op) {
  if (!op.getSink())
    return {};
  ImplicitLocOpBuilder &b = lanes.builder();
  bool unbounded = op.getUnbounded();
  Value factor = unbounded ? lanes.f32(1 / op.getScale().convertToFloat())
                           : lanes.f32(std::numbers::log2e);
  Value score = mulf(b, lanes.single(op.getSink()), factor);
  Value most = unbounded ? mostOfMaxima(lanes, op.getScale(), unbounded)
                         : lanes.f32(std::numeric_limits<float>::max());
  Value isAll =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, score, most);
  return {arith::SelectOp::create(b, isAll, most, score), isAll};
}

/// The row of a softmax that is `unbounded`, from its maximum and sum; `sink`
/// may be null.
static FinishedRow finishUnbounded(LaneContext &lanes, SoftmaxFinishOp op,
                                   Value max, Value sum, Value sink,
                                   Value one) {
  ImplicitLocOpBuilder &b = lanes.builder();
  if (!sink)
    return {max, sum, one};
  Value joint = maxf(b, max, sink);
  RowExponents row = unboundedExponents(lanes, joint, op.getScale());
  auto weightOf = [&](Value score) {
    return exp2(b, subf(b, row.offset, row.offsetOf(b, score)));
  };
  Value factor = weightOf(max);
  return {joint, fma(b, sum, factor, weightOf(sink)), factor};
}

/// The log-sum-exp of a row, unless its sum is 0.
static Value logSumExp(LaneContext &lanes, SoftmaxFinishOp op,
                       const FinishedRow &finished, Value ln2) {
  ImplicitLocOpBuilder &b = lanes.builder();
  auto [top, sum, factor] = finished;
  Value logarithm = math::Log2Op::create(b, sum);
  if (!op.getUnbounded())
    return mulf(b, addf(b, top, logarithm), ln2);
  // Not in base 2, where f32's lowest number is -inf. Sums have what the
  // maximum's product has lost.
  RowExponents row = unboundedExponents(lanes, top, op.getScale());
  Value lost = fma(b, top, row.scale, row.offset);
  return fma(b, top, lanes.f32(op.getScale().convertToFloat()),
             mulf(b, subf(b, logarithm, lost), ln2));
}

/// The row of another softmax; `scale` is in base 2, and so is `sink`, which
/// may be null.
static FinishedRow finishRow(LaneContext &lanes, Value max, Value sum,
                             Value scale, Value sink, Value one) {
  ImplicitLocOpBuilder &b = lanes.builder();
  Value lowest = lanes.f32(-std::numeric_limits<double>::infinity()),
        zero = lanes.f32(0), factor = one;
  // Base-2 logarithm of the largest term; -inf for a row without a key.
  Value top = mulf(b, max, scale);
  if (sink) {
    Value joint = maxf(b, top, sink);
    Value none =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, joint, lowest);
    joint = arith::SelectOp::create(b, none, zero, joint);
    factor = exp2(b, subf(b, top, joint));
    sum = fma(b, sum, factor, exp2(b, subf(b, sink, joint)));
    top = joint;
  }
  return {top, sum, factor};
}

void kvbuf::lowerOp(LaneContext &lanes, SoftmaxFinishOp op) {
  ImplicitLocOpBuilder &b = lanes.builder();
  FragmentType type = op.getAcc().getType();
  const FragmentLayout &atom = lanes.layoutOf(type);
  int64_t cols = atom.atomCols(type);
  unsigned parts = atom.rowParts().size();
  Value scale = lanes.f32(op.getScale().convertToFloat() * std::numbers::log2e);
  Value ln2 = lanes.f32(std::numbers::ln2), zero = lanes.f32(0),
        one = lanes.f32(1);
  Value lowest = lanes.f32(-std::numeric_limits<double>::infinity());
  auto [sink, sinkIsAll] = sinkOf(lanes, op);
  // Rows that have such a sink already.
  ArrayRef<Value> rowsOfSinks = lanes.ofKernel<InfiniteSinks>().of(op.getMax());
  Values inverse, lse, excess;
  if (op.getExcess())
    excess = lanes.lanesOf(op.getExcess());
  Type weights = findWeightType(op.getMax());
  for (auto [row, m, l] : llvm::enumerate(lanes.lanesOf(op.getMax()),
                                          lanes.lanesOf(op.getSum()))) {
    // What a reduction has made is of the whole row.
    bool isWhole = op.getSum().getDefiningOp<RowReduceOp>() != nullptr;
    Value keys = isWhole ? l : lanes.reduceLanes(atom, l, /*isMax=*/false);
    FinishedRow finished = op.getUnbounded()
                               ? finishUnbounded(lanes, op, m, keys, sink, one)
                               : finishRow(lanes, m, keys, scale, sink, one);
    auto [top, sum, factor] = finished;
    Value empty =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, sum, zero);
    // The output is of weights as they were rounded, the LSE of the weights.
    Value divisor = sum;
    if (!excess.empty())
      divisor = fma(b, lanes.reduceLanes(atom, excess[row], /*isMax=*/false),
                    factor, sum);
    else if (weights)
      divisor =
          fma(b, largestExcess(lanes, op, m, scale, weights), factor, sum);
    Value ratio = lanes.ratio(factor, divisor);
    inverse.push_back(arith::SelectOp::create(b, empty, zero, ratio));
    Value logarithm = logSumExp(lanes, op, finished, ln2);
    if (Value isAll = rowsOfSinks.empty() ? sinkIsAll : rowsOfSinks[row])
      logarithm = arith::SelectOp::create(
          b, isAll, lanes.f32(std::numeric_limits<double>::infinity()),
          logarithm);
    lse.push_back(arith::SelectOp::create(b, empty, lowest, logarithm));
  }
  lanes.setLanes(
      op.getResult(),
      lanes.mapElements(lanes.lanesOf(op.getAcc()), [&](Value x, unsigned index,
                                                        int64_t reg) {
        return mulf(b, x, inverse[index / cols * parts + atom.rowPart(reg)]);
      }));
  lanes.setLanes(op.getLse(), lse);
}
