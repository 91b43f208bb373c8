//===- LaneMath.cpp - Products, scores and softmax --------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaneLowering.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Weights.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <numbers>

using namespace mlir;
using namespace kvbuf;

static Value mulf(ImplicitLocOpBuilder &b, Value x, Value y) {
  return arith::MulFOp::create(b, x, y);
}
static Value addf(ImplicitLocOpBuilder &b, Value x, Value y) {
  return arith::AddFOp::create(b, x, y);
}
static Value subf(ImplicitLocOpBuilder &b, Value x, Value y) {
  return arith::SubFOp::create(b, x, y);
}
static Value maxf(ImplicitLocOpBuilder &b, Value x, Value y) {
  return arith::MaxNumFOp::create(b, x, y);
}
static Value fma(ImplicitLocOpBuilder &b, Value x, Value y, Value z) {
  return math::FmaOp::create(b, x, y, z);
}

Value LaneLowering::exp2(Value value) { return math::Exp2Op::create(b, value); }

Value LaneLowering::fold(unsigned count, ArrayRef<Value> values,
                         function_ref<Value(Value, Value)> fn) {
  Value chains[2];
  for (auto [i, value] : llvm::enumerate(values)) {
    Value &chain = chains[i % count];
    chain = chain ? fn(chain, value) : value;
  }
  return chains[1] ? fn(chains[0], chains[1]) : chains[0];
}

unsigned LaneLowering::foldChains(FragmentType scores) {
  if (!machine.hasRoles() || !schedule.getConsumerRegisters())
    return 2;
  // A lane's output, scores and weights are what no compiler can save.
  const FragmentLayout &layout = layouts.of(scores);
  int64_t lanes = layout.rowWarps * layout.colWarps * target.waveSize;
  int64_t elements = scores.getRows() * (accumulatorCols + scores.getCols()) +
                     scores.getRows() * scores.getCols() / 2;
  return schedule.getConsumerRegisters() - elements / lanes <
                 target.twoChainRegisters
             ? 1
             : 2;
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

void LaneLowering::lower(FragmentFillOp op) {
  SmallVector<Type> types;
  laneTypes(op.getFragment().getType(), types);
  Values values;
  for (Type type : types) {
    Attribute value = b.getFloatAttr(getElementTypeOrSelf(type),
                                     op.getValue().convertToFloat());
    if (auto vector = dyn_cast<VectorType>(type))
      value = DenseElementsAttr::get(vector, value);
    values.push_back(
        arith::ConstantOp::create(b, type, cast<TypedAttr>(value)));
  }
  set(op.getFragment(), values);
}

void LaneLowering::lower(FragmentSliceOp op) {
  FragmentType from = op.getSource().getType(), to = op.getFragment().getType();
  const FragmentLayout &atom = layouts.of(from);
  int64_t perAtom =
      from.getRole() == Role::Acc ? 1 : atom.registers() / atom.words;
  // Atoms are listed row by row of [m][k], [k][n] or [m][n]; rows of a turned b
  // are n.
  int64_t fromInner = atom.atomCols(from), toInner = atom.atomCols(to);
  int64_t toOuter = atom.atoms(to) / toInner;
  int64_t row = (atom.turned ? op.getCol() : op.getRow()) / atom.rows,
          col = (atom.turned ? op.getRow() : op.getCol()) / atom.cols;
  Values values;
  for (int64_t i = 0; i < toOuter; ++i)
    for (int64_t j = 0; j < toInner; ++j)
      for (int64_t w = 0; w < perAtom; ++w)
        values.push_back(get(
            op.getSource())[((row + i) * fromInner + col + j) * perAtom + w]);
  set(op.getFragment(), values);
}

void LaneLowering::lower(MmaOp op) {
  // Atoms: a is [m][k], acc [m][n]; b is listed [k][n], whichever way it lies
  // in LDS (see Machine::emitFragmentLoad).
  FragmentType aType = op.getA().getType(), bType = op.getB().getType(),
               accType = op.getAcc().getType();
  const FragmentLayout &aAtom = layouts.of(aType), &bAtom = layouts.of(bType),
                       &accAtom = layouts.of(accType);
  auto product = cast<MmaLayoutAttr>(accType.getLayout());
  int64_t group = product.getGroup();
  int64_t aWords = aAtom.registers() / aAtom.words;
  int64_t bWords = bAtom.registers() / bAtom.words;
  int64_t ks = aAtom.atomCols(aType);
  // The product may be a part of the accumulator's columns.
  int64_t accNs = accAtom.atomCols(accType);
  int64_t first = op.getColumn() / accAtom.cols;
  int64_t ns = bAtom.atomCols(bType);
  int64_t ms = accAtom.atoms(accType) / accNs;
  Values acc = get(op.getAcc());
  ArrayRef<Value> a = get(op.getA()), bs = get(op.getB());
  // The part of an atom's words that feeds instruction `g` of its group.
  auto part = [&](ArrayRef<Value> words, int64_t width, int64_t g) {
    if (group == 1)
      return Values(words.begin(), words.end());
    auto elements = llvm::to_vector(llvm::seq(g * width, (g + 1) * width));
    return Values(llvm::map_range(words, [&](Value word) -> Value {
      return vector::ShuffleOp::create(b, word, word, elements);
    }));
  };
  for (int64_t k = 0; k < ks; ++k)
    for (int64_t n = 0; n < ns; ++n)
      for (int64_t m = 0; m < ms; ++m) {
        ArrayRef<Value> left = a.slice((m * ks + k) * aWords, aWords);
        ArrayRef<Value> right = bs.slice((k * ns + n) * bWords, bWords);
        int64_t leftWidth = aAtom.words / group,
                rightWidth = bAtom.words / group;
        if (product.getSwapped()) {
          std::swap(left, right);
          std::swap(leftWidth, rightWidth);
        }
        Value &c = acc[m * accNs + first + n];
        for (int64_t g = 0; g < group; ++g)
          c = LaneMmaOp::create(b, c.getType(), c, part(left, leftWidth, g),
                                part(right, rightWidth, g), product.getShape());
      }
  set(op.getResult(), acc);
}

LogicalResult LaneLowering::toOperand(Operation *op, FragmentType from,
                                      FragmentType type, ArrayRef<Value> acc,
                                      Values &words) {
  const FragmentLayout &a = layouts.of(type), &c = layouts.of(from);
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
            element(acc[row / c.rows * accCols + col / c.cols], held));
      }
      if (!sameLanes)
        break;
      auto wide = VectorType::get({a.words}, b.getF32Type());
      auto narrow = VectorType::get({a.words}, type.getElementType());
      for (int64_t w = 0; w < a.registers(); w += a.words)
        words.push_back(machine.roundOperand(
            *this,
            vector::FromElementsOp::create(
                b, wide, ArrayRef<Value>(elements).slice(w, a.words)),
            narrow, /*isProbability=*/isa<OnlineSoftmaxOp, SoftmaxTailOp>(op)));
    }
  if (!sameLanes)
    return op->emitOpError() << "the accumulators of this matrix instruction "
                                "are no operands of it "
                                "without an exchange between lanes";
  return success();
}

LogicalResult LaneLowering::lower(FragmentConvertOp op) {
  FragmentType from = op.getSource().getType(), to = op.getFragment().getType();
  if (to.getRole() == Role::A && from.getRole() == Role::Acc) {
    Values words;
    if (failed(toOperand(op, from, to, get(op.getSource()), words)))
      return failure();
    set(op.getFragment(), words);
    return success();
  }
  if (to.getRole() != from.getRole() || !from.getElementType().isF32())
    return op.emitOpError() << "cannot convert " << from << " to " << to;
  Values values;
  for (Value vector : get(op.getSource()))
    values.push_back(arith::TruncFOp::create(
        b, cast<VectorType>(vector.getType()).clone(to.getElementType()),
        vector));
  set(op.getFragment(), values);
  return success();
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

void LaneLowering::lower(FragmentScaleOp op) {
  Value factor = f32(op.getFactor().convertToFloat());
  set(op.getResult(),
      mapElements(get(op.getSource()), [&](Value s, unsigned, int64_t) {
        return mulf(b, s, factor);
      }));
}

/// Windows that reach further are compared in 64 bits first: their ends as
/// columns of a tile need not fit into 32. More than any tile is wide.
static constexpr int64_t kFarReach = int64_t(1) << 29;

void LaneLowering::lower(MaskOp op) {
  FragmentType type = op.getScores().getType();
  const FragmentLayout &atom = layouts.of(type);
  int64_t cols = atom.atomCols(type);
  unsigned parts = atom.rowParts().size();
  int64_t rows = get(op.getScores()).size() / cols * parts;
  MaskAttr mask = op.getMask();
  Value row = single(op.getRow()), key = single(op.getKey()),
        keys = single(op.getKeys());
  Value shift = arith::SubIOp::create(b, keys, single(op.getQueries()));
  // Per row, the columns of the tile that this lane keeps: those whose constant
  // part is in [low, high). One comparison of a register with a constant a
  // score.
  Value col = laneCol(type), laneRows = laneRow(type);
  Value edge = toI32(arith::SubIOp::create(b, keys, key));
  // The position of row 0 as a column of this tile.
  Value start =
      arith::SubIOp::create(b, arith::AddIOp::create(b, row, shift), key);
  Value origin = toI32(start);
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
      Value bounded = arith::AddIOp::create(b, start, index(reach));
      bounded = arith::MinSIOp::create(b, bounded, index(kFarReach));
      bounded = arith::MaxSIOp::create(b, bounded, index(-kFarReach));
      first = toI32(bounded);
      if (group == 1)
        first = arith::AddIOp::create(b, first, laneRows);
    }
    Values columns;
    for (int64_t r = 0; r < rows; ++r) {
      Value offset = i32(atom.rowOffset(r / parts, r % parts));
      if (group > 1)
        offset = arith::DivUIOp::create(
            b, arith::AddIOp::create(b, laneRows, offset).getResult(),
            i32(group));
      Value at = arith::AddIOp::create(b, first, offset);
      columns.push_back(far ? at : arith::AddIOp::create(b, at, i32(reach)));
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
  Value hidden = f32(-std::numeric_limits<double>::infinity());
  set(op.getResult(),
      mapElements(
          get(op.getScores()), [&](Value s, unsigned index, int64_t reg) {
            int64_t r = index / cols * parts + atom.rowPart(reg);
            int64_t at = index % cols * atom.cols + atom.colOffset(reg);
            Value keep = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt,
                                               high[r], i32(at));
            if (low[r])
              keep = arith::AndIOp::create(
                  b, keep,
                  arith::CmpIOp::create(b, arith::CmpIPredicate::sle, low[r],
                                        i32(at)));
            return arith::SelectOp::create(b, keep, s, hidden).getResult();
          }));
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

Value LaneLowering::largestOfBits(unsigned chains, ArrayRef<Value> values) {
  Values bits;
  for (Value value : values)
    bits.push_back(arith::BitcastOp::create(b, b.getI32Type(), value));
  Value top = fold(chains, bits, [&](Value x, Value y) -> Value {
    return arith::MaxSIOp::create(b, x, y);
  });
  return arith::BitcastOp::create(b, b.getF32Type(), top);
}

void LaneLowering::lower(AnyNegativeOp op) {
  Value all;
  for (Value row : get(op.getRows())) {
    Value bits = arith::BitcastOp::create(b, b.getI32Type(), row);
    all = all ? arith::OrIOp::create(b, all, bits).getResult() : bits;
  }
  Value negative =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, all, i32(0));
  if (!roles.signBarriers)
    roles.signBarriers = barriers.take(roles.groups);
  Value id = arith::AddIOp::create(b, roles.group, i32(roles.signBarriers));
  Value any = BarrierAnyOp::create(b, b.getI1Type(), negative, id,
                                   b.getI64IntegerAttr(roles.groupThreads));
  // Said to be the same for all lanes, so that loops after a branch on it keep
  // their numbers in the scalar unit.
  any = machine.uniform(
      *this, arith::ExtUIOp::create(b, b.getI32Type(), any).getResult());
  set(op.getAny(),
      {arith::CmpIOp::create(b, arith::CmpIPredicate::ne, any, i32(0))});
}

LaneLowering::SoftmaxValues LaneLowering::softmax(OnlineSoftmaxOp op,
                                                  ArrayRef<Value> scores) {
  FragmentType type = op.getScores().getType();
  const FragmentLayout &atom = layouts.of(type);
  int64_t cols = atom.atomCols(type);
  unsigned parts = atom.rowParts().size();
  // A copy: new values move those that are kept.
  const Values max = get(op.getMax());
  int64_t rows = max.size();
  Value scale = f32(op.getScale().convertToFloat() * std::numbers::log2e);
  Value negScale = f32(-op.getScale().convertToFloat() * std::numbers::log2e);
  Value lowest = f32(-std::numeric_limits<double>::infinity()), zero = f32(0);

  unsigned chains = foldChains(type);

  // Scores by row.
  SmallVector<Values> byRow(rows);
  for (auto [index, vector] : llvm::enumerate(scores))
    for (int64_t reg = 0; reg < atom.registers(); ++reg)
      byRow[index / cols * parts + atom.rowPart(reg)].push_back(
          element(vector, reg));

  auto larger = [&](Value x, Value y) { return maxf(b, x, y); };
  auto sumOf = [&](Value x, Value y) { return addf(b, x, y); };
  // Scores that are still to be capped: a factor of each, in base 2.
  auto cap = capsInSoftmax.find(op.getScores());
  const CapInSoftmax *capped =
      cap == capsInSoftmax.end() ? nullptr : &cap->second;

  Values newMax(rows), newSum(rows), rescale(rows), offset(rows);
  Values largest;
  if (op.getRowMax())
    largest = get(op.getRowMax());
  for (int64_t r = 0; r < rows; ++r) {
    if (!largest.empty()) {
      newMax[r] = maxf(b, max[r], largest[r]);
      continue;
    }
    if (capped) {
      Value top = reduceLanes(atom, capped->maxima[r], /*isMax=*/true);
      top = mulf(b, top, capFactor(capped->coefficients, top));
      double unit = op.getScale().convertToFloat() * std::numbers::log2e;
      newMax[r] = maxf(b, max[r], mulf(b, top, f32(1 / unit)));
      continue;
    }
    Values candidates{max[r]};
    llvm::append_range(candidates, byRow[r]);
    if (op.getNotNegative() && target.integerMaxima) {
      newMax[r] = reduceLanes(atom, largestOfBits(chains, candidates),
                              /*isMax=*/true);
      continue;
    }
    newMax[r] = reduceLanes(atom, fold(chains, candidates, larger),
                            /*isMax=*/true);
  }
  for (int64_t r = 0; r < rows; ++r) {
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
    rescale[r] = exp2(subf(b, offset[r], before));
  }
  SmallVector<Values> probabilities(rows);
  Values p = mapElements(scores, [&](Value s, unsigned index, int64_t reg) {
    int64_t r = index / cols * parts + atom.rowPart(reg);
    Value factor = capped ? capFactor(capped->coefficients, s) : scale;
    Value value = exp2(fma(b, s, factor, offset[r]));
    probabilities[r].push_back(value);
    return value;
  });
  // The sum stays this lane's part of it until the end; adding the old sum last
  // keeps it off the critical path.
  Values sum = rowValues(op.getSum());
  for (int64_t r = 0; r < rows; ++r)
    newSum[r] =
        fma(b, sum[r], rescale[r], fold(chains, probabilities[r], sumOf));
  return {p, newMax, newSum, rescale};
}

LogicalResult LaneLowering::lower(OnlineSoftmaxOp op) {
  // A copy: new values move those that are kept.
  const Values scores = get(op.getScores());
  SoftmaxValues made = softmax(op, scores);
  if (std::optional<int64_t> offset = lds.rowsOf(op.getSum()))
    storeRows(made.sum, *offset);
  // What nothing multiplies has no layout to be in.
  if (op.getP().getType().getRole() == Role::Acc) {
    set(op.getP(), made.weights);
  } else if (!op.getP().use_empty()) {
    Values words;
    if (failed(toOperand(op, op.getScores().getType(), op.getP().getType(),
                         made.weights, words)))
      return failure();
    set(op.getP(), words);
  }
  set(op.getNewMax(), made.max);
  set(op.getNewSum(), made.sum);
  set(op.getRescale(), made.rescale);
  return success();
}

void LaneLowering::lower(RescaleOp op) {
  FragmentType type = op.getAcc().getType();
  const FragmentLayout &atom = layouts.of(type);
  int64_t cols = atom.atomCols(type);
  unsigned parts = atom.rowParts().size();
  // Copies: new values move those that are kept.
  const Values factor = get(op.getFactor()), acc = get(op.getAcc());
  bool branches = target.branchedRescaleAccumulators &&
                  int64_t(acc.size()) * atom.registers() >=
                      target.branchedRescaleAccumulators;
  // A factor is exactly 1 where the maximum stays, so nothing changes.
  Values changes;
  if (target.predicatesRescale || branches)
    for (Value f : factor)
      changes.push_back(
          arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, f, f32(1)));
  auto multiply = [&] {
    return mapElements(acc, [&](Value x, unsigned index, int64_t reg) {
      int64_t row = index / cols * parts + atom.rowPart(reg);
      Value product = mulf(b, x, factor[row]);
      // One predicated multiplication: assemblers fold the two.
      if (target.predicatesRescale)
        product = arith::SelectOp::create(b, changes[row], product, x);
      return product;
    });
  };
  if (!branches)
    return set(op.getResult(), multiply());
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
  set(op.getResult(), Values(apply->result_begin(), apply->result_end()));
}

Value LaneLowering::roundingOf(Value weight, Type operand) {
  // Conversions come in pairs.
  auto wide = VectorType::get({2}, b.getF32Type());
  Value pair =
      vector::FromElementsOp::create(b, wide, ValueRange{weight, weight});
  Value rounded =
      machine.roundOperand(*this, pair, VectorType::get({2}, operand),
                           /*isProbability=*/true);
  Value back = arith::ExtFOp::create(b, b.getF32Type(), element(rounded, 0));
  return subf(b, back, weight);
}

Value LaneLowering::largestExcess(Value max, Value scale, Type operand) {
  // A row without a key: -inf - -inf would be NaN.
  Value none =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, max,
                            f32(-std::numeric_limits<double>::infinity()));
  max = arith::SelectOp::create(b, none, f32(0), max);
  Value offset = arith::NegFOp::create(b, mulf(b, max, scale));
  return roundingOf(exp2(fma(b, max, scale, offset)), operand);
}

void LaneLowering::lower(SoftmaxFinishOp op) {
  FragmentType type = op.getAcc().getType();
  const FragmentLayout &atom = layouts.of(type);
  int64_t cols = atom.atomCols(type);
  unsigned parts = atom.rowParts().size();
  Value scale = f32(op.getScale().convertToFloat() * std::numbers::log2e);
  Value ln2 = f32(std::numbers::ln2), zero = f32(0), one = f32(1);
  Value lowest = f32(-std::numeric_limits<double>::infinity());
  Value sink;
  if (op.getSink())
    sink = mulf(b, single(op.getSink()), f32(std::numbers::log2e));
  Values inverse, lse, excess;
  if (op.getExcess())
    excess = get(op.getExcess());
  Type weights = findWeightType(op.getMax());
  for (auto [row, m, l] :
       llvm::enumerate(get(op.getMax()), rowValues(op.getSum()))) {
    Value sum = reduceLanes(atom, l, /*isMax=*/false);
    // Base-2 logarithm of the largest term; -inf for a row without a key.
    Value top = mulf(b, m, scale);
    Value factor = one;
    if (sink) {
      Value joint = maxf(b, top, sink);
      Value none =
          arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, joint, lowest);
      joint = arith::SelectOp::create(b, none, zero, joint);
      factor = exp2(arith::SubFOp::create(b, top, joint));
      sum = fma(b, sum, factor, exp2(arith::SubFOp::create(b, sink, joint)));
      top = joint;
    }
    Value empty =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, sum, zero);
    // The output is of weights as they were rounded, the LSE of the weights.
    Value divisor = sum;
    if (!excess.empty())
      divisor =
          fma(b, reduceLanes(atom, excess[row], /*isMax=*/false), factor, sum);
    else if (weights)
      divisor = fma(b, largestExcess(m, scale, weights), factor, sum);
    Value ratio = machine.emitRatio(*this, factor, divisor);
    inverse.push_back(arith::SelectOp::create(b, empty, zero, ratio));
    Value logarithm = addf(b, top, math::Log2Op::create(b, sum));
    lse.push_back(
        arith::SelectOp::create(b, empty, lowest, mulf(b, logarithm, ln2)));
  }
  set(op.getResult(),
      mapElements(get(op.getAcc()), [&](Value x, unsigned index, int64_t reg) {
        return mulf(b, x, inverse[index / cols * parts + atom.rowPart(reg)]);
      }));
  set(op.getLse(), lse);
}
