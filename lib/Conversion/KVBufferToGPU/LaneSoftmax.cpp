//===- LaneSoftmax.cpp - The online softmax in two parts ------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaneSoftmax.h"
#include "LaneArithmetic.h"
#include "LaneMath.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"
#include <numbers>

using namespace mlir;
using namespace kvbuf;

/// How far scores may be above a row's maximum before it is raised, in base 2:
/// weights of up to 256.
static constexpr double kSlack = 8;

/// Folds values in one chain; the backend makes operations of three operands of
/// a chain of maxima.
static Value chain(ArrayRef<Value> values,
                   llvm::function_ref<Value(Value, Value)> fn) {
  Value result = values.front();
  for (Value value : values.drop_front())
    result = fn(result, value);
  return result;
}

void kvbuf::lowerOp(LaneContext &lanes, RaiseMaxOp op) {
  ImplicitLocOpBuilder &b = lanes.builder();
  double scale = op.getScale().convertToFloat() * std::numbers::log2e;
  // A copy: new values move those that are kept.
  Values max = lanes.lanesOf(op.getMax());
  auto larger = [&](Value x, Value y) -> Value {
    return arith::MaxNumFOp::create(b, x, y);
  };
  Value slack = lanes.f32(kSlack / scale);
  if (op.getExact())
    slack = arith::SelectOp::create(b, lanes.single(op.getExact()),
                                    lanes.f32(0), slack);
  // Each lane looks at its own scores; who raises asks the others of the row.
  Values own;
  Value needed;
  for (auto [row, values] : llvm::enumerate(valuesByRow(
           lanes, op.getScores().getType(), lanes.lanesOf(op.getScores())))) {
    own.push_back(chain(values, larger));
    Value limit = arith::AddFOp::create(b, max[row], slack);
    Value above =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, own.back(), limit);
    needed = needed ? arith::OrIOp::create(b, needed, above) : above;
  }
  Value any = LaneAnyOp::create(b, needed);
  SmallVector<Type> types(2 * max.size(), b.getF32Type());
  auto raise = scf::IfOp::create(b, types, any, /*addThenBlock=*/true,
                                 /*addElseBlock=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(raise.thenBlock());
    Value lowest = lanes.f32(-std::numeric_limits<double>::infinity());
    Values newMax, factors;
    for (auto [row, value] : llvm::enumerate(own)) {
      Value raised = lanes.reduceLanes(lanes.layoutOf(op.getScores().getType()),
                                       larger(max[row], value), /*isMax=*/true);
      // A row that has seen no key: -inf - -inf would be NaN.
      Value none =
          arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, raised, lowest);
      Value finite = arith::SelectOp::create(b, none, lanes.f32(0), raised);
      Value down = arith::SubFOp::create(b, max[row], finite);
      newMax.push_back(raised);
      factors.push_back(
          exp2(b, arith::MulFOp::create(b, down, lanes.f32(scale))));
    }
    llvm::append_range(newMax, factors);
    scf::YieldOp::create(b, newMax);
    b.setInsertionPointToEnd(raise.elseBlock());
    Values same(max);
    same.append(max.size(), lanes.f32(1));
    scf::YieldOp::create(b, same);
  }
  ValueRange results = raise.getResults();
  auto take = [&](ValueRange part) { return Values(part.begin(), part.end()); };
  lanes.setLanes(op.getNewMax(), take(results.take_front(max.size())));
  lanes.setLanes(op.getFactor(), take(results.drop_front(max.size())));
  lanes.setLanes(op.getRaised(), {any});
}

void kvbuf::lowerOp(LaneContext &lanes, ApplyRaiseOp op) {
  ImplicitLocOpBuilder &b = lanes.builder();
  Values acc = lanes.lanesOf(op.getAcc()),
         factors = lanes.lanesOf(op.getFactor());
  Values sum = lanes.lanesOf(op.getSum()), before(acc);
  llvm::append_range(before, sum);
  SmallVector<Type> types;
  for (Value value : before)
    types.push_back(value.getType());
  auto apply = scf::IfOp::create(b, types, lanes.single(op.getRaised()),
                                 /*addThenBlock=*/true, /*addElseBlock=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(apply.thenBlock());
    FragmentType type = op.getAcc().getType();
    const FragmentLayout &atom = lanes.layoutOf(type);
    int64_t cols = atom.atomCols(type);
    unsigned parts = atom.rowParts().size();
    Values results =
        lanes.mapElements(acc, [&](Value x, unsigned index, int64_t reg) {
          Value factor = factors[index / cols * parts + atom.rowPart(reg)];
          return arith::MulFOp::create(b, x, factor).getResult();
        });
    for (auto [value, factor] : llvm::zip_equal(sum, factors))
      results.push_back(arith::MulFOp::create(b, value, factor));
    scf::YieldOp::create(b, results);
    b.setInsertionPointToEnd(apply.elseBlock());
    scf::YieldOp::create(b, before);
  }
  ValueRange results = apply.getResults();
  auto take = [&](ValueRange part) { return Values(part.begin(), part.end()); };
  lanes.setLanes(op.getNewAcc(), take(results.take_front(acc.size())));
  lanes.setLanes(op.getNewSum(), take(results.drop_front(acc.size())));
}

/// Whether the head of a softmax makes a lane's element a weight: the elements
/// of the first half of each row's accumulators.
static bool isHead(int64_t column, int64_t columns) {
  return 2 * column < columns;
}

void kvbuf::lowerOp(LaneContext &lanes, SoftmaxHeadOp op) {
  ImplicitLocOpBuilder &b = lanes.builder();
  FragmentType type = op.getScores().getType();
  const FragmentLayout &atom = lanes.layoutOf(type);
  int64_t cols = atom.atomCols(type);
  unsigned parts = atom.rowParts().size();
  double scale = op.getScale().convertToFloat() * std::numbers::log2e;
  Value lowest = lanes.f32(-std::numeric_limits<double>::infinity());
  Values offset;
  for (Value max : lanes.lanesOf(op.getMax())) {
    if (op.getMasked()) {
      Value none =
          arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, max, lowest);
      max = arith::SelectOp::create(b, none, lanes.f32(0), max);
    }
    offset.push_back(arith::MulFOp::create(b, max, lanes.f32(-scale)));
  }
  // What rounding adds to the lane's largest weight; its score was found for
  // the maximum already.
  Values excess;
  for (auto [row, values] : llvm::enumerate(valuesByRow(
           lanes, op.getScores().getType(), lanes.lanesOf(op.getScores())))) {
    Value own = chain(values, [&](Value x, Value y) -> Value {
      return arith::MaxNumFOp::create(b, x, y);
    });
    Value weight =
        exp2(b, math::FmaOp::create(b, own, lanes.f32(scale), offset[row]));
    excess.push_back(roundingOf(lanes, weight, op.getOperand()));
  }
  lanes.setLanes(op.getExcess(), excess);
  lanes.setLanes(
      op.getExponents(),
      lanes.mapElements(
          lanes.lanesOf(op.getScores()),
          [&](Value s, unsigned index, int64_t reg) -> Value {
            int64_t row = index / cols * parts + atom.rowPart(reg);
            Value x = math::FmaOp::create(b, s, lanes.f32(scale), offset[row]);
            return isHead(index % cols * atom.cols, type.getCols()) ? exp2(b, x)
                                                                    : x;
          }));
}

LogicalResult kvbuf::lowerOp(LaneContext &lanes, SoftmaxTailOp op) {
  ImplicitLocOpBuilder &b = lanes.builder();
  FragmentType type = op.getExponents().getType();
  const FragmentLayout &atom = lanes.layoutOf(type);
  int64_t cols = atom.atomCols(type);
  Values p = lanes.mapElements(
      lanes.lanesOf(op.getExponents()),
      [&](Value x, unsigned index, int64_t) -> Value {
        return isHead(index % cols * atom.cols, type.getCols()) ? x
                                                                : exp2(b, x);
      });
  // The sum stays this lane's part of it until the end.
  Values sum = lanes.lanesOf(op.getSum()), excess;
  if (op.getExcess())
    excess = lanes.lanesOf(op.getExcess());
  for (auto [row, values] : llvm::enumerate(valuesByRow(lanes, type, p))) {
    values.insert(values.begin(), sum[row]);
    if (!excess.empty())
      values.push_back(excess[row]);
    sum[row] = chain(values, [&](Value x, Value y) -> Value {
      return arith::AddFOp::create(b, x, y);
    });
  }
  // What nothing multiplies has no layout to be in.
  if (!op.getP().use_empty()) {
    Values words;
    if (failed(toOperand(lanes, op, type, op.getP().getType(), p, words)))
      return failure();
    lanes.setLanes(op.getP(), words);
  }
  lanes.setLanes(op.getNewSum(), sum);
  return success();
}

void kvbuf::lowerOp(LaneContext &lanes, CarryExcessOp op) {
  ImplicitLocOpBuilder &b = lanes.builder();
  Values carried;
  for (auto [value, factor, excess] : llvm::zip_equal(
           lanes.lanesOf(op.getCarried()), lanes.lanesOf(op.getFactor()),
           lanes.lanesOf(op.getExcess())))
    carried.push_back(math::FmaOp::create(b, value, factor, excess));
  lanes.setLanes(op.getNewCarried(), carried);
}

void kvbuf::lowerOp(LaneContext &lanes, MeetOp) { lanes.meet(); }

void kvbuf::lowerOp(LaneContext &lanes, StaggerOp op) {
  ImplicitLocOpBuilder &b = lanes.builder();
  // All lanes of a warp agree on it.
  Value upper =
      arith::CmpIOp::create(b, arith::CmpIPredicate::uge, lanes.ownWarp(),
                            lanes.i32(lanes.ownSchedule().getWarps() / 2));
  if (op.getEnd())
    upper = arith::XOrIOp::create(
        b, upper, arith::ConstantOp::create(b, b.getBoolAttr(true)));
  auto extra = scf::IfOp::create(b, upper, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(extra.thenBlock());
  lanes.meet();
}
