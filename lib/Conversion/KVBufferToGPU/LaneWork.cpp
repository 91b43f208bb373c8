//===- LaneWork.cpp - Work that blocks share --------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A running sum of weights is the sum of what the lanes of a row hold. A stored
// partial result has it as one number, and a loaded one gives it to the first
// of these lanes.
//
//===----------------------------------------------------------------------===//

#include "LaneLowering.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include <numbers>
#include <numeric>

using namespace mlir;
using namespace kvbuf;

static Value add(ImplicitLocOpBuilder &b, Value x, Value y) {
  return arith::AddIOp::create(b, x, y);
}
static Value mul(ImplicitLocOpBuilder &b, Value x, Value y) {
  return arith::MulIOp::create(b, x, y);
}

Value LaneLowering::offsetOf(Value tensor, OperandRange indices) {
  const TensorArg &argument = tensors[tensor];
  Value offset;
  for (auto [i, position] : llvm::enumerate(indices)) {
    Value term = single(position);
    if (i < argument.strides.size())
      term = mul(b, term, argument.strides[i]);
    offset = offset ? add(b, offset, term) : term;
  }
  return offset ? offset : index(0);
}

Value LaneLowering::firstOfRow(const FragmentLayout &layout) {
  int64_t others = 0;
  for (unsigned bit : layout.reductionBits())
    others |= int64_t(1) << bit;
  Value place = arith::AndIOp::create(b, lane, i32(others));
  // Of the warps that share a row's columns, the first one's.
  if (layout.colWarps > 1)
    place = arith::OrIOp::create(b, place, gridCol(layout));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, place, i32(0));
}

void LaneLowering::lower(LaunchValueOp op) {
  for (auto [expression, value] : launchValues)
    if (expression == op.getExpression())
      set(op.getValue(), {value});
}

//===----------------------------------------------------------------------===//
// Arrivals
//===----------------------------------------------------------------------===//

void LaneLowering::lower(ArriveLastOp op) {
  Value counters = flat(tensors[op.getCounters()].data);
  Value at = offsetOf(op.getCounters(), op.getIndices());
  Value others = arith::SubIOp::create(b, toI32(single(op.getCount())), i32(1));
  // One thread arrives for the block, once all have stored, and what it has
  // acquired is the others' after the next barrier.
  gpu::BarrierOp::create(b);
  Value isOne =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, thread, i32(0));
  auto arrive = scf::IfOp::create(b, TypeRange{b.getI1Type()}, isOne,
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(arrive.thenBlock());
    Value before = LaneArriveOp::create(b, b.getI32Type(), counters, at);
    Value isLast =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, before, others);
    auto reset = scf::IfOp::create(b, isLast, /*withElseRegion=*/false);
    scf::YieldOp::create(b, isLast);
    b.setInsertionPointToStart(reset.thenBlock());
    memref::StoreOp::create(b, i32(0), counters, at);
    b.setInsertionPointToStart(arrive.elseBlock());
    scf::YieldOp::create(
        b, arith::ConstantOp::create(b, b.getBoolAttr(false)).getResult());
  }
  Value last = arrive.getResult(0);
  if (blockThreads() == target.waveSize) {
    gpu::BarrierOp::create(b);
    set(op.getLast(), {LaneAnyOp::create(b, last)});
    return;
  }
  // Other warps are told through LDS.
  Value word = index(ldsBytes / 4), words = shared(b.getI32Type());
  ldsBytes += kBufferAlignment;
  auto tell = scf::IfOp::create(b, isOne, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(tell.thenBlock());
    memref::StoreOp::create(b, arith::ExtUIOp::create(b, b.getI32Type(), last),
                            words, word);
  }
  gpu::BarrierOp::create(b);
  Value told = memref::LoadOp::create(b, words, word);
  told = machine.uniform(*this, told);
  set(op.getLast(),
      {arith::CmpIOp::create(b, arith::CmpIPredicate::ne, told, i32(0))});
}

//===----------------------------------------------------------------------===//
// Shares
//===----------------------------------------------------------------------===//

LogicalResult LaneLowering::lower(ShareWorkOp op) {
  if (machine.hasRoles())
    return op.emitOpError() << "has no per-lane form beside "
                               "kvbuffer.warp_roles: the lanes of a warp look "
                               "at the items together";
  Block &body = op.getBody().front();
  Value zero = i32(0), wave = i32(target.waveSize);
  Value items = toI32(single(op.getItems()));
  Value lastItem = arith::SubIOp::create(b, items, i32(1));
  auto isBelow = [&](Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, x, y);
  };
  auto choose = [&](Value condition, Value x, Value y) -> Value {
    return arith::SelectOp::create(b, condition, x, y);
  };
  auto larger = [&](Value x, Value y) -> Value {
    return arith::MaxSIOp::create(b, x, y);
  };
  auto fromLane = [&](Value value, int64_t bit) -> Value {
    return gpu::ShuffleOp::create(b, value, i32(bit), wave,
                                  gpu::ShuffleMode::XOR)
        .getShuffleResult();
  };
  auto ofLanes = [&](Value value, function_ref<Value(Value, Value)> join) {
    for (int64_t bit = 1; bit < target.waveSize; bit *= 2)
      value = join(value, fromLane(value, bit));
    return machine.uniform(*this, value);
  };
  auto sum = [&](Value x, Value y) { return add(b, x, y); };
  // The lane's item of those from `from` on, whether there is one, its units.
  LogicalResult lowered = success();
  auto unitsFrom = [&](Value from) {
    Value item = add(b, from, lane);
    Value exists = isBelow(item, items);
    // No branch: lanes without an item look at the last one.
    set(body.getArgument(0),
        {toIndex(arith::MinSIOp::create(b, item, lastItem))});
    if (failed(lowerBlock(body)))
      lowered = failure();
    if (failed(lowered))
      return std::pair(exists, zero);
    b.setLoc(op.getLoc());
    Value units = toI32(single(cast<YieldOp>(body.getTerminator()).getValue()));
    return std::pair(exists, choose(exists, larger(units, zero), zero));
  };
  // A loop over the items, as many at a time as a wave has lanes.
  auto forItems = [&](Values inits,
                      function_ref<Values(Value, ValueRange)> iteration) {
    auto loop = scf::ForOp::create(b, zero, items, wave, inits);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Values next = iteration(loop.getInductionVar(), loop.getRegionIterArgs());
    scf::YieldOp::create(b, next);
    return loop.getResults();
  };

  Value mine = forItems({zero}, [&](Value from, ValueRange sofar) -> Values {
    return {add(b, sofar[0], unitsFrom(from).second)};
  })[0];
  if (failed(lowered))
    return failure();
  Value total = ofLanes(mine, sum);
  Value size = larger(
      arith::CeilDivUIOp::create(b, total, toI32(single(op.getWorkers()))),
      toI32(single(op.getLeast())));
  Value begin = mul(b, toI32(single(op.getWorker())), size);
  Value end = arith::MinSIOp::create(b, add(b, begin, size), total);
  // Of the items that a lane has looked at: those that end by `begin`, where
  // the last of these ends, and those that start before `end`.
  ValueRange found = forItems(
      {zero, zero, zero, zero}, [&](Value from, ValueRange sofar) -> Values {
        auto [exists, units] = unitsFrom(from);
        // Units of the lanes before this one, and of all.
        Value before = zero, all = units;
        for (int64_t bit = 1; bit < target.waveSize; bit *= 2) {
          Value others = fromLane(all, bit);
          Value isAfter = arith::CmpIOp::create(
              b, arith::CmpIPredicate::ne,
              arith::AndIOp::create(b, lane, i32(bit)), zero);
          before = add(b, before, choose(isAfter, others, zero));
          all = add(b, all, others);
        }
        Value starts = add(b, sofar[0], before), ends = add(b, starts, units);
        Value isPast = arith::AndIOp::create(
            b, exists,
            arith::CmpIOp::create(b, arith::CmpIPredicate::sle, ends, begin));
        Value isReached =
            arith::AndIOp::create(b, exists, isBelow(starts, end));
        Value one = i32(1);
        return {add(b, sofar[0], all),
                add(b, sofar[1], choose(isPast, one, zero)),
                choose(isPast, larger(sofar[2], ends), sofar[2]),
                add(b, sofar[3], choose(isReached, one, zero))};
      });
  Value first = ofLanes(found[1], sum), start = ofLanes(found[2], larger),
        reached = ofLanes(found[3], sum);
  set(op.getSize(), {toIndex(size)});
  set(op.getFirst(), {toIndex(first)});
  set(op.getStart(), {toIndex(start)});
  set(op.getEnd(), {toIndex(larger(reached, first))});
  return success();
}

//===----------------------------------------------------------------------===//
// Partial results
//===----------------------------------------------------------------------===//

namespace {
/// Words of a row that a lane moves at once: registers of vectors, and where
/// they lie in the row's memory less what depends on the lane.
struct Words {
  SmallVector<std::pair<int64_t, int64_t>> registers;
  int64_t at;
};
/// How the lanes that share a row keep it in memory.
struct RowMemory {
  /// What depends on the lane.
  Value lane;
  /// Words that are moved at once.
  int64_t atOnce;
  /// Those of the row's part `part`, the first atom of which is vector `first`.
  SmallVector<Words> of(const FragmentLayout &atom, int64_t first, int64_t cols,
                        unsigned part) const;
  /// Lanes of a row where each has `atOnce` words side by side, whatever
  /// columns they are of; 0 where columns lie in their own order.
  int64_t lanes;
};
} // namespace

/// Words of 32 bits that a lane moves at once, at most.
static constexpr int64_t kWidest = 4;

SmallVector<Words> RowMemory::of(const FragmentLayout &atom, int64_t first,
                                 int64_t cols, unsigned part) const {
  SmallVector<Words> all;
  for (int64_t j = 0; j < cols; ++j)
    for (int64_t reg = 0; reg < atom.registers(); ++reg) {
      if (atom.rowPart(reg) != part)
        continue;
      if (all.empty() || int64_t(all.back().registers.size()) == atOnce) {
        int64_t place = lanes ? int64_t(all.size()) * atOnce * lanes
                              : j * atom.cols + atom.colOffset(reg);
        all.push_back({{}, place});
      }
      all.back().registers.push_back({first + j, reg});
    }
  return all;
}

/// Who stores a partial result and who loads it hold it alike: where a lane has
/// few neighbouring columns, its words lie side by side all the same, those of
/// neighbouring lanes after them, so that each access is 16 bytes of a lane and
/// all lanes of a row together read one piece of it.
static RowMemory rowMemory(LaneLowering &lower, FragmentType type,
                           const FragmentLayout &atom, int64_t cols) {
  ImplicitLocOpBuilder &b = lower.b;
  int64_t run = atom.columnRun(), lanes = int64_t(1)
                                          << atom.reductionBits().size();
  int64_t words = cols * atom.registers() / int64_t(atom.rowParts().size());
  if (run >= kWidest || words % kWidest || words * lanes != type.getCols())
    return {lower.toIndex(lower.laneCol(type)), run, 0};
  SmallVector<int64_t> basis(atom.layout.inLog2("lane"), 0);
  for (auto [i, bit] : llvm::enumerate(atom.reductionBits()))
    basis[bit] = kWidest << i;
  return {lower.toIndex(emitLinear(b, lower.lane, basis)), kWidest, lanes};
}

/// Whether a row part that begins at row `offset` has no valid row in any lane,
/// where the program says how many there are.
static bool isPast(Value valid, int64_t offset) {
  IntegerAttr rows;
  if (auto choice = valid.getDefiningOp<arith::SelectOp>())
    return isPast(choice.getTrueValue(), offset) &&
           isPast(choice.getFalseValue(), offset);
  return matchPattern(valid, m_Constant(&rows)) && offset >= rows.getInt();
}

/// What runs of columns are aligned to in a tensor of rows of `width`.
static llvm::Align alignOf(int64_t run, int64_t width) {
  return llvm::Align(4 * std::gcd(std::gcd(run, width), int64_t(4)));
}

void LaneLowering::lower(PartialStoreOp op) {
  FragmentType type = op.getAcc().getType();
  auto parts = cast<MemRefType>(op.getParts().getType());
  int64_t width = parts.getShape().back(), room = parts.getShape().end()[-2];
  const FragmentLayout &atom = layouts.of(type);
  int64_t cols = atom.atomCols(type);
  const Values acc = get(op.getAcc()), max = get(op.getMax());
  Values sum;
  for (Value part : rowValues(op.getSum()))
    sum.push_back(reduceLanes(atom, part, /*isMax=*/false));

  Value out = flat(tensors[op.getParts()].data);
  Value base = offsetOf(op.getParts(), op.getIndices());
  Value rows =
      toI32(arith::MinSIOp::create(b, single(op.getValid()), index(room)));
  Value row = laneRow(type), isFirst = firstOfRow(atom);
  RowMemory memory = rowMemory(*this, type, atom, cols);
  unsigned rowParts = atom.rowParts().size();
  bool oneWarp = atom.rowWarps == 1;
  for (auto [i, top] : llvm::enumerate(max)) {
    if (oneWarp &&
        isPast(op.getValid(), atom.rowOffset(i / rowParts, i % rowParts)))
      continue;
    Value r = add(b, row, i32(atom.rowOffset(i / rowParts, i % rowParts)));
    auto valid = scf::IfOp::create(
        b, arith::CmpIOp::create(b, arith::CmpIPredicate::slt, r, rows),
        /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(valid.thenBlock());
    Value inPart = mul(b, toIndex(r), index(width));
    Value line = add(b, base, inPart);
    Value from = add(b, base, add(b, inPart, memory.lane));
    auto many = VectorType::get({memory.atOnce}, b.getF32Type());
    for (const Words &words :
         memory.of(atom, i / rowParts * cols, cols, i % rowParts)) {
      Values values;
      for (auto [vector, reg] : words.registers)
        values.push_back(element(acc[vector], reg));
      vector::StoreOp::create(
          b, vector::FromElementsOp::create(b, many, values), out,
          ValueRange{add(b, from, index(words.at))},
          /*nontemporal=*/false, alignOf(memory.atOnce, width));
    }
    auto first = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
    b.setInsertionPointToStart(first.thenBlock());
    auto pair = VectorType::get({2}, b.getF32Type());
    vector::StoreOp::create(
        b, vector::FromElementsOp::create(b, pair, ValueRange{top, sum[i]}),
        out, ValueRange{add(b, line, index(type.getCols()))},
        /*nontemporal=*/false, alignOf(2, width));
  }
}

void LaneLowering::lower(PartialLoadOp op) {
  FragmentType type = op.getAcc().getType();
  auto parts = cast<MemRefType>(op.getParts().getType());
  int64_t width = parts.getShape().back(), room = parts.getShape().end()[-2];
  const FragmentLayout &atom = layouts.of(type);
  int64_t cols = atom.atomCols(type);
  Value in = flat(tensors[op.getParts()].data);
  Value base = offsetOf(op.getParts(), op.getIndices());
  Value rows =
      toI32(arith::MinSIOp::create(b, single(op.getValid()), index(room)));
  // Rows that do not exist read those of the last one that does: no branch
  // keeps loads from being in flight together. Which rows a lane reads does not
  // depend on whether there are any.
  Value most = single(op.getValid());
  if (auto choice = op.getValid().getDefiningOp<arith::SelectOp>())
    if (matchPattern(choice.getFalseValue(), m_Zero()))
      most = single(choice.getTrueValue());
  Value lastRow = toI32(arith::MinSIOp::create(b, most, index(room)));
  lastRow = arith::MaxSIOp::create(
      b, arith::SubIOp::create(b, lastRow, i32(1)).getResult(), i32(0));
  Value row = laneRow(type), isFirst = firstOfRow(atom);
  RowMemory memory = rowMemory(*this, type, atom, cols);
  Value lowest = f32(-std::numeric_limits<double>::infinity()), zero = f32(0);
  unsigned rowParts = atom.rowParts().size();
  SmallVector<Type> types;
  laneTypes(op.getMax().getType(), types);
  Values max, sum;
  int64_t vectors = types.size() / rowParts * cols;
  SmallVector<Values> elements(vectors, Values(atom.registers()));
  bool oneWarp = atom.rowWarps == 1;
  for (unsigned i = 0; i < types.size(); ++i) {
    if (oneWarp &&
        isPast(op.getValid(), atom.rowOffset(i / rowParts, i % rowParts))) {
      for (const Words &words :
           memory.of(atom, i / rowParts * cols, cols, i % rowParts))
        for (auto [vector, reg] : words.registers)
          elements[vector][reg] = zero;
      max.push_back(lowest);
      sum.push_back(zero);
      continue;
    }
    Value r = add(b, row, i32(atom.rowOffset(i / rowParts, i % rowParts)));
    Value exists = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, r, rows);
    // The same for all partial results that are loaded side by side.
    Value inPart =
        mul(b, toIndex(arith::MinSIOp::create(b, r, lastRow)), index(width));
    Value line = add(b, base, inPart);
    Value from = add(b, base, add(b, inPart, memory.lane));
    auto many = VectorType::get({memory.atOnce}, b.getF32Type());
    for (const Words &words :
         memory.of(atom, i / rowParts * cols, cols, i % rowParts)) {
      Value loaded = vector::LoadOp::create(
          b, many, in, ValueRange{add(b, from, index(words.at))},
          /*nontemporal=*/false, alignOf(memory.atOnce, width));
      for (auto [n, place] : llvm::enumerate(words.registers))
        elements[place.first][place.second] =
            vector::ExtractOp::create(b, loaded, ArrayRef<int64_t>{int64_t(n)});
    }
    Value pair =
        vector::LoadOp::create(b, VectorType::get({2}, b.getF32Type()), in,
                               ValueRange{add(b, line, index(type.getCols()))},
                               /*nontemporal=*/false, alignOf(2, width));
    max.push_back(arith::SelectOp::create(
        b, exists, vector::ExtractOp::create(b, pair, ArrayRef<int64_t>{0}),
        lowest));
    Value isOwn = arith::AndIOp::create(b, exists, isFirst);
    sum.push_back(arith::SelectOp::create(
        b, isOwn, vector::ExtractOp::create(b, pair, ArrayRef<int64_t>{1}),
        zero));
  }
  Values acc;
  auto vector = VectorType::get({atom.registers()}, b.getF32Type());
  for (Values &values : elements)
    acc.push_back(vector::FromElementsOp::create(b, vector, values));
  set(op.getAcc(), acc);
  set(op.getMax(), max);
  set(op.getSum(), sum);
}

LaneLowering::SoftmaxState LaneLowering::merge(FragmentType type,
                                               ArrayRef<SoftmaxState> states,
                                               const APFloat &scale) {
  Value negScale = f32(-scale.convertToFloat() * std::numbers::log2e);
  Value lowest = f32(-std::numeric_limits<double>::infinity()), zero = f32(0);
  // What each state's rows are multiplied by.
  SmallVector<Values> factors(states.size());
  SoftmaxState joined;
  for (unsigned r = 0; r < states.front().max.size(); ++r) {
    Value max = states.front().max[r];
    for (const SoftmaxState &state : states.drop_front())
      max = arith::MaxNumFOp::create(b, max, state.max[r]);
    Value none =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, max, lowest);
    Value offset = arith::MulFOp::create(b, max, negScale);
    // Rows without a key: -inf - -inf would be NaN.
    offset = arith::SelectOp::create(b, none, zero, offset);
    Value sum;
    for (auto [state, own] : llvm::zip_equal(states, factors)) {
      Value before = arith::MulFOp::create(b, state.max[r], negScale);
      own.push_back(exp2(arith::SubFOp::create(b, offset, before)));
      if (sum)
        sum = math::FmaOp::create(b, state.sum[r], own[r], sum);
      else
        sum = arith::MulFOp::create(b, state.sum[r], own[r]);
    }
    joined.max.push_back(max);
    joined.sum.push_back(sum);
  }
  const FragmentLayout &atom = layouts.of(type);
  int64_t cols = atom.atomCols(type);
  unsigned parts = atom.rowParts().size();
  joined.acc = mapElements(
      states.front().acc,
      [&](Value value, unsigned index, int64_t reg) -> Value {
        int64_t r = index / cols * parts + atom.rowPart(reg);
        Value total = arith::MulFOp::create(b, value, factors.front()[r]);
        for (auto [state, own] :
             llvm::drop_begin(llvm::zip_equal(states, factors)))
          if (!state.acc.empty())
            total = math::FmaOp::create(b, element(state.acc[index], reg),
                                        own[r], total);
        return total;
      });
  return joined;
}

/// The merge that takes all that another one comes to, and nothing else does.
static SoftmaxMergeOp takerOf(SoftmaxMergeOp op) {
  SoftmaxMergeOp taker;
  for (Value result : op->getResults()) {
    if (!result.hasOneUse())
      return {};
    auto user = dyn_cast<SoftmaxMergeOp>(*result.user_begin());
    if (!user || (taker && user != taker) ||
        user->getBlock() != op->getBlock() || user.getScale() != op.getScale())
      return {};
    taker = user;
  }
  bool isOwn = taker.getAcc() == op.getNewAcc();
  bool isWhole = isOwn ? taker.getMax() == op.getNewMax() &&
                             taker.getSum() == op.getNewSum()
                       : taker.getOtherAcc() == op.getNewAcc() &&
                             taker.getOtherMax() == op.getNewMax() &&
                             taker.getOtherSum() == op.getNewSum();
  return isWhole ? taker : SoftmaxMergeOp();
}

/// The merge at the root of a tree of them, whose others nothing else uses.
static SoftmaxMergeOp rootOf(SoftmaxMergeOp op) {
  while (SoftmaxMergeOp taker = takerOf(op))
    op = taker;
  return op;
}

/// What the tree of merges under `root` joins: for each, the op and whether it
/// is what the op joins another with.
static void leavesOf(SoftmaxMergeOp root,
                     SmallVector<std::pair<SoftmaxMergeOp, bool>> &leaves) {
  for (bool isOther : {false, true}) {
    Value acc = isOther ? root.getOtherAcc() : root.getAcc();
    auto inner = acc.getDefiningOp<SoftmaxMergeOp>();
    if (inner && takerOf(inner) == root)
      leavesOf(inner, leaves);
    else
      leaves.push_back({root, isOther});
  }
}

void LaneLowering::lower(SoftmaxMergeOp op) {
  // A tree of merges is one: each row's maximum is known before the first
  // weight is computed, so that each partial result is scaled once. As long as
  // registers hold all of them.
  SoftmaxMergeOp root = rootOf(op);
  SmallVector<std::pair<SoftmaxMergeOp, bool>> leaves;
  leavesOf(root, leaves);
  FragmentType type = op.getAcc().getType();
  const FragmentLayout &atom = layouts.of(type);
  int64_t registers = atom.atoms(type) * atom.registers();
  bool together = int64_t(leaves.size()) * registers <=
                  int64_t(target.registersPerLane) * 5 / 8;
  if (!together)
    leaves = {{op, false}, {op, true}};
  else if (root != op)
    return;
  SmallVector<SoftmaxState> states;
  for (auto [merge, isOther] : leaves)
    if (isOther)
      states.push_back({get(merge.getOtherAcc()), get(merge.getOtherMax()),
                        rowValues(merge.getOtherSum())});
    else
      states.push_back({get(merge.getAcc()), get(merge.getMax()),
                        rowValues(merge.getSum())});
  SoftmaxState joined = merge(type, states, op.getScale());
  set(op.getNewAcc(), joined.acc);
  set(op.getNewMax(), joined.max);
  set(op.getNewSum(), joined.sum);
}

void LaneLowering::lower(SoftmaxSinkOp op) {
  SoftmaxState own{get(op.getAcc()), get(op.getMax()), rowValues(op.getSum())};
  Value scores = flat(tensors[op.getSinks()].data);
  Value base = offsetOf(op.getSinks(), op.getIndices());
  FragmentType type = op.getMax().getType();
  const FragmentLayout &layout = layouts.of(type);
  Value row = laneRow(type), isFirst = firstOfRow(layout), zero = f32(0);
  // Maxima are of scores before they are scaled.
  Value unscaled = f32(1 / op.getScale().convertToFloat());
  unsigned parts = layout.rowParts().size();
  SoftmaxState sink;
  for (unsigned r = 0; r < own.max.size(); ++r) {
    Value at = add(b, row, i32(layout.rowOffset(r / parts, r % parts)));
    at = arith::RemUIOp::create(b, at, i32(op.getGroup()));
    Value score = memref::LoadOp::create(b, scores,
                                         ValueRange{add(b, base, toIndex(at))});
    sink.max.push_back(arith::MulFOp::create(b, score, unscaled));
    sink.sum.push_back(arith::SelectOp::create(b, isFirst, f32(1), zero));
  }
  SoftmaxState joined =
      merge(op.getAcc().getType(), {own, sink}, op.getScale());
  set(op.getNewAcc(), joined.acc);
  set(op.getNewMax(), joined.max);
  set(op.getNewSum(), joined.sum);
}
