//===- LanePartials.cpp - Partial results of a softmax ----------*- C++ -*-===//
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

#include "LanePartials.h"
#include "LaneArithmetic.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include <numbers>
#include <numeric>

using namespace mlir;
using namespace kvbuf;

/// Words of 32 bits that a lane moves at once, at most.
static constexpr int64_t kWidest = 4;
/// Rows that lie together: as many as lanes of a warp move at once.
static constexpr int64_t kRowsTogether = 8;

//===----------------------------------------------------------------------===//
// Rows in memory
//===----------------------------------------------------------------------===//

int64_t RowMemory::placeOf(int64_t col) const {
  int64_t block = int64_t(1) << columns.size(), place = col / block * block;
  for (auto [bit, column] : llvm::enumerate(columns))
    if (col & column)
      place |= int64_t(1) << bit;
  return place;
}

int64_t RowMemory::offsetOf(int64_t place) const {
  if (!together)
    return place;
  return place / block * (block * kRowsTogether) + place % block;
}

Value RowMemory::lineOf(LaneContext &lower, Value r) const {
  ImplicitLocOpBuilder &b = lower.builder();
  if (!together)
    return mul(b, lower.toIndex(r), lower.index(width));
  Value rows = lower.i32(kRowsTogether);
  Value first = mul(b, arith::DivUIOp::create(b, r, rows),
                    lower.i32(kRowsTogether * cols));
  return lower.toIndex(add(
      b, first, mul(b, arith::RemUIOp::create(b, r, rows), lower.i32(block))));
}

Value RowMemory::pairOf(LaneContext &lower, Value r) const {
  ImplicitLocOpBuilder &b = lower.builder();
  if (!together)
    return add(b, lineOf(lower, r), lower.index(cols));
  return add(b, mul(b, lower.toIndex(r), lower.index(2)),
             lower.index(room * cols));
}

llvm::Align RowMemory::alignment() const {
  return llvm::Align(
      4 * std::gcd(std::gcd(atOnce, together ? block : width), kWidest));
}

llvm::Align RowMemory::pairAlignment() const {
  return llvm::Align(
      4 * std::gcd(std::gcd(int64_t(2), together ? 2 : width), kWidest));
}

RowMemory::RowMemory(LaneContext &lower, FragmentType type,
                     const FragmentLayout &atom, ArrayRef<int64_t> columns,
                     int64_t room, int64_t width)
    : columns(columns), block(int64_t(1) << columns.size()), room(room),
      width(width), cols(type.getCols()),
      together(block >= 2 * kWidest && room % kRowsTogether == 0 &&
               cols % block == 0 && width >= cols + 2),
      parts(atom.rowParts().size()) {
  ImplicitLocOpBuilder &b = lower.builder();
  for (int64_t j = 0; j < atom.atomCols(type); ++j)
    for (int64_t reg = 0; reg < atom.registers(); ++reg)
      parts[atom.rowPart(reg)].push_back(
          {{{j, reg}}, placeOf(j * atom.cols + atom.colOffset(reg))});
  for (SmallVector<Words> &words : parts)
    llvm::sort(words,
               [](const Words &x, const Words &y) { return x.at < y.at; });
  SmallVector<int64_t> basis;
  for (unsigned bit = 0; bit < atom.layout.inLog2("lane"); ++bit)
    basis.push_back(placeOf(atom.layout.basis("lane", bit, "col")));
  // As many as stand side by side, for every lane and row.
  auto fits = [&](int64_t many) {
    for (const SmallVector<Words> &words : parts)
      for (auto [i, word] : llvm::enumerate(words))
        if (word.at % many != int64_t(i) % many ||
            word.at - words[i / many * many].at != int64_t(i) % many ||
            int64_t(words.size()) % many)
          return false;
    return llvm::all_of(basis, [&](int64_t at) { return at % many == 0; });
  };
  atOnce = kWidest;
  while (!fits(atOnce))
    atOnce /= 2;
  // Bits of places are bits of offsets.
  for (int64_t &place : basis)
    place = offsetOf(place);
  Value offset = emitLinear(b, lower.laneInWarp(), basis);
  if (atom.colWarps > 1)
    offset = add(
        b, offset,
        mul(b, lower.gridCol(atom), lower.i32(offsetOf(atom.warpCols(type)))));
  lane = lower.toIndex(offset);
}

SmallVector<Words> RowMemory::of(int64_t first, unsigned part) const {
  SmallVector<Words> all;
  for (auto [i, word] : llvm::enumerate(parts[part])) {
    if (i % atOnce == 0)
      all.push_back({{}, offsetOf(word.at), word.registers.front().first});
    auto [vector, reg] = word.registers.front();
    all.back().registers.push_back({first + vector, reg});
  }
  return all;
}

//===----------------------------------------------------------------------===//
// Stores and loads
//===----------------------------------------------------------------------===//

bool kvbuf::isPast(Value valid, int64_t room, int64_t offset) {
  IntegerAttr rows;
  if (auto choice = valid.getDefiningOp<arith::SelectOp>())
    return isPast(choice.getTrueValue(), room, offset) &&
           isPast(choice.getFalseValue(), room, offset);
  return offset >= room ||
         (matchPattern(valid, m_Constant(&rows)) && offset >= rows.getInt());
}

LogicalResult kvbuf::lowerOp(LaneContext &lower, PartialStoreOp op) {
  ImplicitLocOpBuilder &b = lower.builder();
  FragmentType type = op.getAcc().getType();
  auto parts = cast<MemRefType>(op.getParts().getType());
  int64_t room = parts.getShape().end()[-2];
  const FragmentLayout &atom = lower.layoutOf(type);
  int64_t cols = atom.atomCols(type);
  const Values acc = lower.lanesOf(op.getAcc()),
               max = lower.lanesOf(op.getMax());
  Values sum;
  for (Value part : lower.lanesOf(op.getSum()))
    sum.push_back(lower.reduceLanes(atom, part, /*isMax=*/false));

  Value out = lower.flat(lower.tensorOf(op.getParts()).data);
  Value base = lower.offsetOf(op.getParts(), op.getIndices());
  Value rows = lower.toI32(arith::MinSIOp::create(
      b, lower.single(op.getValid()), lower.index(room)));
  Value row = lower.laneRow(type), isFirst = lower.firstOfRow(atom);
  FailureOr<RowMemory> memory = rowMemory(lower, op, atom);
  if (failed(memory))
    return failure();
  unsigned rowParts = atom.rowParts().size();
  bool oneWarp = atom.rowWarps == 1;
  for (auto [i, top] : llvm::enumerate(max)) {
    if (oneWarp &&
        isPast(op.getValid(), room, atom.rowOffset(i / rowParts, i % rowParts)))
      continue;
    Value r =
        add(b, row, lower.i32(atom.rowOffset(i / rowParts, i % rowParts)));
    auto valid = scf::IfOp::create(
        b, arith::CmpIOp::create(b, arith::CmpIPredicate::slt, r, rows),
        /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(valid.thenBlock());
    Value inPart = memory->lineOf(lower, r);
    Value from = add(b, base, add(b, inPart, memory->lane));
    auto many = VectorType::get({memory->atOnce}, b.getF32Type());
    for (const Words &words : memory->of(i / rowParts * cols, i % rowParts)) {
      Values values;
      for (auto [vector, reg] : words.registers)
        values.push_back(lower.element(acc[vector], reg));
      vector::StoreOp::create(
          b, vector::FromElementsOp::create(b, many, values), out,
          ValueRange{add(b, from, lower.index(words.at))},
          /*nontemporal=*/false, memory->alignment());
    }
    auto first = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
    b.setInsertionPointToStart(first.thenBlock());
    auto pair = VectorType::get({2}, b.getF32Type());
    vector::StoreOp::create(
        b, vector::FromElementsOp::create(b, pair, ValueRange{top, sum[i]}),
        out, ValueRange{add(b, base, memory->pairOf(lower, r))},
        /*nontemporal=*/false, memory->pairAlignment());
  }
  return success();
}

LogicalResult kvbuf::lowerOp(LaneContext &lower, PartialLoadOp op) {
  ImplicitLocOpBuilder &b = lower.builder();
  FragmentType type = op.getAcc().getType();
  auto parts = cast<MemRefType>(op.getParts().getType());
  int64_t room = parts.getShape().end()[-2];
  const FragmentLayout &atom = lower.layoutOf(type);
  int64_t cols = atom.atomCols(type);
  Value in = lower.flat(lower.tensorOf(op.getParts()).data);
  Value base = lower.offsetOf(op.getParts(), op.getIndices());
  Value rows = lower.toI32(arith::MinSIOp::create(
      b, lower.single(op.getValid()), lower.index(room)));
  // Rows that do not exist read those of the last one that does: no branch
  // keeps loads from being in flight together. Which rows a lane reads does not
  // depend on whether there are any.
  Value most = lower.single(op.getValid());
  if (auto choice = op.getValid().getDefiningOp<arith::SelectOp>())
    if (matchPattern(choice.getFalseValue(), m_Zero()))
      most = lower.single(choice.getTrueValue());
  Value lastRow =
      lower.toI32(arith::MinSIOp::create(b, most, lower.index(room)));
  lastRow = arith::MaxSIOp::create(
      b, arith::SubIOp::create(b, lastRow, lower.i32(1)).getResult(),
      lower.i32(0));
  Value row = lower.laneRow(type), isFirst = lower.firstOfRow(atom);
  FailureOr<RowMemory> memory = rowMemory(lower, op, atom);
  if (failed(memory))
    return failure();
  Value lowest = lower.f32(-std::numeric_limits<double>::infinity()),
        zero = lower.f32(0);
  unsigned rowParts = atom.rowParts().size();
  SmallVector<Type> types;
  lower.laneTypes(op.getMax().getType(), types);
  Values max, sum;
  int64_t vectors = types.size() / rowParts * cols;
  SmallVector<Values> elements(vectors, Values(atom.registers()));
  bool oneWarp = atom.rowWarps == 1;
  for (unsigned i = 0; i < types.size(); ++i) {
    if (oneWarp && isPast(op.getValid(), room,
                          atom.rowOffset(i / rowParts, i % rowParts))) {
      for (const Words &words : memory->of(i / rowParts * cols, i % rowParts))
        for (auto [vector, reg] : words.registers)
          elements[vector][reg] = zero;
      max.push_back(lowest);
      sum.push_back(zero);
      continue;
    }
    Value r =
        add(b, row, lower.i32(atom.rowOffset(i / rowParts, i % rowParts)));
    Value exists = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, r, rows);
    // The same for all partial results that are loaded side by side.
    Value read = arith::MinSIOp::create(b, r, lastRow);
    Value inPart = memory->lineOf(lower, read);
    Value from = add(b, base, add(b, inPart, memory->lane));
    auto many = VectorType::get({memory->atOnce}, b.getF32Type());
    for (const Words &words : memory->of(i / rowParts * cols, i % rowParts)) {
      Value loaded = vector::LoadOp::create(
          b, many, in, ValueRange{add(b, from, lower.index(words.at))},
          /*nontemporal=*/false, memory->alignment());
      // A merge multiplies it by 0, but the row that was read instead may be
      // infinite.
      loaded = arith::SelectOp::create(
          b, exists, loaded, vector::BroadcastOp::create(b, many, zero));
      for (auto [n, place] : llvm::enumerate(words.registers))
        elements[place.first][place.second] =
            vector::ExtractOp::create(b, loaded, ArrayRef<int64_t>{int64_t(n)});
    }
    Value pair = vector::LoadOp::create(
        b, VectorType::get({2}, b.getF32Type()), in,
        ValueRange{add(b, base, memory->pairOf(lower, read))},
        /*nontemporal=*/false, memory->pairAlignment());
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
  lower.setLanes(op.getAcc(), acc);
  lower.setLanes(op.getMax(), max);
  lower.setLanes(op.getSum(), sum);
  return success();
}

//===----------------------------------------------------------------------===//
// Merges
//===----------------------------------------------------------------------===//

/// Joins some states, in their order; `scale` and `unbounded` as in
/// `kvbuffer.softmax_merge`. One without an accumulator has one of 0, and is
/// not the first.
static SoftmaxState merge(LaneContext &lanes, FragmentType type,
                          ArrayRef<SoftmaxState> states, const APFloat &scale,
                          bool unbounded) {
  ImplicitLocOpBuilder &b = lanes.builder();
  // What each state's rows are multiplied by.
  SmallVector<Values> factors(states.size());
  SoftmaxState joined;
  for (unsigned r = 0; r < states.front().max.size(); ++r) {
    Value max = states.front().max[r];
    for (const SoftmaxState &state : states.drop_front())
      max = arith::MaxNumFOp::create(b, max, state.max[r]);
    RowExponents row = exponentsOf(lanes, max, scale, unbounded);
    Value sum;
    for (auto [state, own] : llvm::zip_equal(states, factors)) {
      Value before = row.offsetOf(b, state.max[r]);
      own.push_back(exp2(b, arith::SubFOp::create(b, row.offset, before)));
      if (sum)
        sum = math::FmaOp::create(b, state.sum[r], own[r], sum);
      else
        sum = arith::MulFOp::create(b, state.sum[r], own[r]);
    }
    joined.max.push_back(max);
    joined.sum.push_back(sum);
  }
  const FragmentLayout &atom = lanes.layoutOf(type);
  int64_t cols = atom.atomCols(type);
  unsigned parts = atom.rowParts().size();
  joined.acc = lanes.mapElements(
      states.front().acc,
      [&](Value value, unsigned index, int64_t reg) -> Value {
        int64_t r = index / cols * parts + atom.rowPart(reg);
        Value total = arith::MulFOp::create(b, value, factors.front()[r]);
        for (auto [state, own] :
             llvm::drop_begin(llvm::zip_equal(states, factors)))
          if (!state.acc.empty())
            total = math::FmaOp::create(b, lanes.element(state.acc[index], reg),
                                        own[r], total);
        return total;
      });
  return joined;
}

/// Joins two states as a join of partial results does that are stored one
/// behind the other (LaneJoin.cpp), with its bits: there a lane of a row has
/// the sum of the one, and another lane that of the other.
static SoftmaxState mergeAsStored(LaneContext &lanes, FragmentType type,
                                  const SoftmaxState &first,
                                  const SoftmaxState &second,
                                  const APFloat &scale, bool unbounded) {
  ImplicitLocOpBuilder &b = lanes.builder();
  const FragmentLayout &atom = lanes.layoutOf(type);
  Value isFirst = lanes.firstOfRow(atom), zero = lanes.f32(0);
  SoftmaxState joined;
  Values factors[2];
  for (unsigned r = 0; r < first.max.size(); ++r) {
    Value max = arith::MaxNumFOp::create(b, first.max[r], second.max[r]);
    RowExponents row = exponentsOf(lanes, max, scale, unbounded);
    Value sum;
    for (auto [state, own] :
         {std::pair(&first, &factors[0]), std::pair(&second, &factors[1])}) {
      Value before = row.offsetOf(b, state->max[r]);
      own->push_back(exp2(b, arith::SubFOp::create(b, row.offset, before)));
      Value whole = lanes.reduceLanes(atom, state->sum[r], /*isMax=*/false);
      whole = arith::MulFOp::create(b, whole, own->back());
      sum = sum ? arith::AddFOp::create(b, sum, whole).getResult() : whole;
    }
    joined.max.push_back(max);
    joined.sum.push_back(arith::SelectOp::create(b, isFirst, sum, zero));
  }
  int64_t cols = atom.atomCols(type);
  unsigned parts = atom.rowParts().size();
  joined.acc = lanes.mapElements(
      first.acc, [&](Value value, unsigned index, int64_t reg) -> Value {
        int64_t r = index / cols * parts + atom.rowPart(reg);
        value = math::FmaOp::create(b, value, factors[0][r], zero);
        return math::FmaOp::create(b, lanes.element(second.acc[index], reg),
                                   factors[1][r], value);
      });
  return joined;
}

/// The merge that takes all that another one comes to, and nothing else does.
static SoftmaxMergeOp takerOf(SoftmaxMergeOp op) {
  if (op.getAsStored())
    return {};
  SoftmaxMergeOp taker;
  for (Value result : op->getResults()) {
    if (!result.hasOneUse())
      return {};
    auto user = dyn_cast<SoftmaxMergeOp>(*result.user_begin());
    if (!user || (taker && user != taker) || user.getAsStored() ||
        user->getBlock() != op->getBlock() ||
        user.getScale() != op.getScale() ||
        user.getUnbounded() != op.getUnbounded())
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

static void setState(LaneContext &lanes, SoftmaxMergeOp op,
                     const SoftmaxState &state) {
  lanes.setLanes(op.getNewAcc(), state.acc);
  lanes.setLanes(op.getNewMax(), state.max);
  lanes.setLanes(op.getNewSum(), state.sum);
}

void kvbuf::lowerOp(LaneContext &lanes, SoftmaxMergeOp op) {
  if (op.getAsStored())
    return setState(
        lanes, op,
        mergeAsStored(lanes, op.getAcc().getType(),
                      {lanes.lanesOf(op.getAcc()), lanes.lanesOf(op.getMax()),
                       lanes.lanesOf(op.getSum())},
                      {lanes.lanesOf(op.getOtherAcc()),
                       lanes.lanesOf(op.getOtherMax()),
                       lanes.lanesOf(op.getOtherSum())},
                      op.getScale(), op.getUnbounded()));
  // A tree of merges is one: each row's maximum is known before the first
  // weight is computed, so that each partial result is scaled once. As long as
  // registers hold all of them.
  SoftmaxMergeOp root = rootOf(op);
  SmallVector<std::pair<SoftmaxMergeOp, bool>> leaves;
  leavesOf(root, leaves);
  FragmentType type = op.getAcc().getType();
  const FragmentLayout &atom = lanes.layoutOf(type);
  int64_t registers = atom.atoms(type) * atom.registers();
  bool together = int64_t(leaves.size()) * registers <=
                  int64_t(lanes.chip().registersPerLane) * 5 / 8;
  if (!together)
    leaves = {{op, false}, {op, true}};
  else if (root != op)
    return;
  SmallVector<SoftmaxState> states;
  for (auto [merge, isOther] : leaves)
    if (isOther)
      states.push_back({lanes.lanesOf(merge.getOtherAcc()),
                        lanes.lanesOf(merge.getOtherMax()),
                        lanes.lanesOf(merge.getOtherSum())});
    else
      states.push_back({lanes.lanesOf(merge.getAcc()),
                        lanes.lanesOf(merge.getMax()),
                        lanes.lanesOf(merge.getSum())});
  setState(lanes, op,
           merge(lanes, type, states, op.getScale(), op.getUnbounded()));
}

void kvbuf::lowerOp(LaneContext &lower, SoftmaxSinkOp op) {
  ImplicitLocOpBuilder &b = lower.builder();
  SoftmaxState own{lower.lanesOf(op.getAcc()), lower.lanesOf(op.getMax()),
                   lower.lanesOf(op.getSum())};
  Value scores = lower.flat(lower.tensorOf(op.getSinks()).data);
  Value base = lower.offsetOf(op.getSinks(), op.getIndices());
  FragmentType type = op.getMax().getType();
  const FragmentLayout &layout = lower.layoutOf(type);
  Value row = lower.laneRow(type), isFirst = lower.firstOfRow(layout),
        zero = lower.f32(0);
  // Maxima are of scores before they are scaled.
  Value unscaled = lower.f32(1 / op.getScale().convertToFloat());
  Value most = mostOfMaxima(lower, op.getScale(), op.getUnbounded());
  Values infinite;
  unsigned parts = layout.rowParts().size();
  SoftmaxState sink;
  for (unsigned r = 0; r < own.max.size(); ++r) {
    Value at = add(b, row, lower.i32(layout.rowOffset(r / parts, r % parts)));
    at = arith::RemUIOp::create(b, at, lower.i32(op.getGroup()));
    Value score = memref::LoadOp::create(
        b, scores, ValueRange{add(b, base, lower.toIndex(at))});
    Value max = arith::MulFOp::create(b, score, unscaled);
    infinite.push_back(
        arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, max, most));
    sink.max.push_back(arith::SelectOp::create(b, infinite.back(), most, max));
    sink.sum.push_back(arith::SelectOp::create(b, isFirst, lower.f32(1), zero));
  }
  SoftmaxState joined = merge(lower, op.getAcc().getType(), {own, sink},
                              op.getScale(), op.getUnbounded());
  lower.ofKernel<InfiniteSinks>().set(op.getNewMax(), infinite);
  lower.setLanes(op.getNewAcc(), joined.acc);
  lower.setLanes(op.getNewMax(), joined.max);
  lower.setLanes(op.getNewSum(), joined.sum);
}
