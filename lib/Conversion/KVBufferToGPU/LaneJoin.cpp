//===- LaneJoin.cpp - Joins of partial results ------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The lanes of a row look at the maxima and sums of some of the partial results
// each, and tell the others by what these are scaled: each weight is computed
// once a row.
//
//===----------------------------------------------------------------------===//

#include "LaneArithmetic.h"
#include "LanePartials.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include <numbers>

using namespace mlir;
using namespace kvbuf;

/// Partial results on their way to a lane at a time, at most.
static constexpr int64_t kMostAtOnce = 16;

/// Those that are, at least, where a lane has registers for fewer of all its
/// columns: it then joins some columns after others. One by one, each waits for
/// the one before it. (Not more: what is past the last one is read, too.)
static constexpr int64_t kFewestAtOnce = 2;

/// The most that a number of partial results can be, where the program says it.
static std::optional<int64_t> mostOf(Value count) {
  IntegerAttr known;
  if (matchPattern(count, m_Constant(&known)))
    return known.getInt();
  Value x, y;
  if (auto least = count.getDefiningOp<arith::MinUIOp>()) {
    x = least.getLhs();
    y = least.getRhs();
  } else if (auto least = count.getDefiningOp<arith::MinSIOp>()) {
    x = least.getLhs();
    y = least.getRhs();
  } else {
    return std::nullopt;
  }
  std::optional<int64_t> first = mostOf(x), second = mostOf(y);
  return first && second ? std::min(*first, *second) : first ? first : second;
}

/// Registers of a lane where a multiprocessor holds all blocks that its LDS has
/// room for.
static int64_t registersOf(const TargetInfo &target, int64_t ldsBytes,
                           int64_t threads) {
  int64_t blocks = ldsBytes ? target.ldsBytes / ldsBytes : 1;
  return std::min<int64_t>(target.registersPerLane,
                           target.registersPerBlock /
                               (std::max<int64_t>(blocks, 1) * threads));
}

namespace {
/// Lowers a join of partial results.
class PartialJoin {
public:
  PartialJoin(LaneContext &lower, PartialJoinOp op, RowMemory memory);

  void emit();

private:
  using State = SoftmaxState;

  /// Joins all partial results of the columns of `cols` atoms from `firstCol`
  /// on.
  State joinColumns();
  /// Joins the first of `left` partial results, `atOnce` at most, of which the
  /// first is at `base`, with what those before them have come to, if any.
  State joinNext(Value base, Value left, const State *before);
  /// Sets how many partial results are on their way at a time, of `cols` atoms.
  void chooseAtOnce();
  /// The lane's words of row part `i` that are of the columns being joined.
  SmallVector<Words> wordsOf(unsigned i);
  /// One row part: the factors of the lane's partial results and what the row
  /// comes to.
  struct Row {
    /// The maxima and sums that this lane looks at.
    Values tops, sums;
    /// The lane's words of each partial result, in the order of `memory`.
    SmallVector<Values> words;
  };
  Row load(unsigned i, Value base, Value left);
  bool isPastRow(unsigned i);

  LaneContext &lower;
  ImplicitLocOpBuilder &b;
  PartialJoinOp op;
  FragmentType type;
  const FragmentLayout &atom;
  RowMemory memory;
  int64_t room;
  /// Atoms side by side that are joined together, and the first of them.
  int64_t cols, firstCol = 0;
  unsigned rowParts;
  /// Rows of the lane.
  unsigned rows = 0;
  /// The most that there can be, where this is known.
  std::optional<int64_t> most;
  /// Partial results on their way at a time; lanes of a row that have some of
  /// their maxima, and those of each.
  int64_t atOnce, sharers, own;
  /// Rows on their way at a time.
  unsigned rowsAtOnce;
  /// The number of this lane among the sharers, and the first lane of its row.
  Value number, firstLane;
  Value in, row, validRows, lastRow, stride;
};
} // namespace

PartialJoin::PartialJoin(LaneContext &lower, PartialJoinOp op, RowMemory memory)
    : lower(lower), b(lower.builder()), op(op), type(op.getAcc().getType()),
      atom(lower.layoutOf(type)), memory(std::move(memory)),
      cols(atom.atomCols(type)), rowParts(atom.rowParts().size()) {
  auto parts = cast<MemRefType>(op.getParts().getType());
  room = parts.getShape().end()[-2];
  SmallVector<Type> types;
  lower.laneTypes(op.getMax().getType(), types);
  rows = types.size();
  most = mostOf(op.getCount());
  chooseAtOnce();
  // Words that move together are of one part.
  int64_t together = std::max<int64_t>(
      1, (int64_t(1) << op.getColumns().value_or(ArrayRef<int64_t>()).size()) /
             atom.cols);
  if (atOnce < kFewestAtOnce && (!most || *most > atOnce))
    while (atOnce < kFewestAtOnce && cols % (2 * together) == 0) {
      cols /= 2;
      chooseAtOnce();
    }
  ArrayRef<unsigned> bits = atom.reductionBits();
  sharers = std::min(int64_t(1) << bits.size(), atOnce);
  own = llvm::divideCeil(atOnce, sharers);
  SmallVector<int64_t> basis(atom.layout.inLog2("lane"), 0);
  int64_t lanesOfRow = 0;
  for (auto [i, bit] : llvm::enumerate(bits)) {
    basis[bit] = int64_t(1) << i;
    lanesOfRow |= int64_t(1) << bit;
  }
  number = emitLinear(b, lower.laneInWarp(), basis);
  firstLane = arith::AndIOp::create(
      b, lower.laneInWarp(),
      lower.i32((lower.chip().waveSize - 1) & ~lanesOfRow));
  in = lower.flat(lower.tensorOf(op.getParts()).data);
  Value valid =
      arith::MinSIOp::create(b, lower.single(op.getValid()), lower.index(room));
  validRows = lower.toI32(valid);
  row = lower.laneRow(type);
  if (op.getFrom())
    row = add(b, row, lower.toI32(lower.single(op.getFrom())));
  // Rows that do not exist read those of the last one that does: no branch
  // keeps loads from being in flight together.
  lastRow = arith::SubIOp::create(b, validRows, lower.i32(1));
  lastRow = arith::MaxSIOp::create(b, lastRow, lower.i32(0));
  Value place =
      lower.tensorOf(op.getParts()).strides[op.getIndices().size() - 1];
  stride = mul(b, place, lower.index(op.getStep()));
}

void PartialJoin::chooseAtOnce() {
  // As many as half of the registers hold that a lane has where all blocks run
  // for which there is LDS. Keys in pages of one token need that many: with
  // eight partial results at a time, 194 registers, their blocks came in two
  // turns (docs/decode.md).
  int64_t registers = 0;
  for (unsigned i = 0; i < rows; ++i)
    if (!isPastRow(i))
      registers += cols * atom.registers() / rowParts;
  int64_t free =
      registersOf(lower.chip(), lower.ldsBytes(), lower.blockThreads());
  int64_t fit = llvm::divideCeil(free, 2) / std::max<int64_t>(registers, 1);
  atOnce = std::clamp<int64_t>(llvm::bit_floor(uint64_t(fit)), 1, kMostAtOnce);
  if (most)
    atOnce = std::min<int64_t>(atOnce,
                               llvm::PowerOf2Ceil(std::max<int64_t>(*most, 1)));
  // What others have joined is of an unknown number, often a few more: one
  // sequence has nine times eight pieces on an H200, and a second time takes
  // as long as the first. Where LDS leaves a lane all registers that it can
  // have, nothing else needs them then. (Not where waits count loads: gfx942
  // spilled two scalars for their places.)
  else if (!lower.chip().waitsByOperand &&
           free == lower.chip().registersPerLane)
    atOnce = std::clamp<int64_t>(
        2 * free / (3 * std::max<int64_t>(registers, 1)), atOnce, kMostAtOnce);
  // Accumulators stay from one time to the next; half of the rest holds what is
  // on its way.
  int64_t ofRow = std::max<int64_t>(1, atOnce * registers / std::max(rows, 1u));
  free = int64_t(lower.chip().registersPerLane) - registers;
  rowsAtOnce = std::clamp<int64_t>(free / (2 * ofRow), 1, std::max(rows, 1u));
}

SmallVector<Words> PartialJoin::wordsOf(unsigned i) {
  // Counted from the first vector of those joined.
  SmallVector<Words> words =
      memory.of(int64_t(i / rowParts) * cols - firstCol, i % rowParts);
  llvm::erase_if(words, [&](const Words &some) {
    return some.atom < firstCol || some.atom >= firstCol + cols;
  });
  return words;
}

bool PartialJoin::isPastRow(unsigned i) {
  return atom.rowWarps == 1 && !op.getFrom() &&
         isPast(op.getValid(), room,
                atom.rowOffset(i / rowParts, i % rowParts));
}

PartialJoin::Row PartialJoin::load(unsigned i, Value base, Value left) {
  Row loaded;
  Value r = add(b, row, lower.i32(atom.rowOffset(i / rowParts, i % rowParts)));
  Value isRow =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, r, validRows);
  r = arith::MinSIOp::create(b, r, lastRow);
  Value last = arith::SubIOp::create(b, left, lower.i32(1));
  // Those past the last one are read as the last one, which is there, and do
  // not count: no branch keeps loads from being in flight together.
  auto offsetOf = [&](Value n) {
    return mul(b, lower.toIndex(arith::MinUIOp::create(b, n, last)), stride);
  };
  Value lowest = lower.f32(-std::numeric_limits<double>::infinity()),
        zero = lower.f32(0);
  Value pairs = add(b, base, memory.pairOf(lower, r));
  auto pairType = VectorType::get({2}, b.getF32Type());
  for (int64_t t = 0; t < own; ++t) {
    Value n = add(b, number, lower.i32(t * sharers));
    Value pair = vector::LoadOp::create(
        b, pairType, in, ValueRange{add(b, pairs, offsetOf(n))},
        /*nontemporal=*/false, memory.pairAlignment());
    Value exists = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, n, left);
    exists = arith::AndIOp::create(b, exists, isRow);
    // Those behind the last one that is joined at this time.
    if ((t + 1) * sharers > atOnce)
      exists = arith::AndIOp::create(
          b, exists,
          arith::CmpIOp::create(b, arith::CmpIPredicate::ult, n,
                                lower.i32(atOnce)));
    // A row may have more lanes than there are partial results.
    if (sharers < int64_t(1) << atom.reductionBits().size())
      exists = arith::AndIOp::create(
          b, exists,
          arith::CmpIOp::create(b, arith::CmpIPredicate::ult, number,
                                lower.i32(sharers)));
    auto part = [&](int64_t which) -> Value {
      return vector::ExtractOp::create(b, pair, ArrayRef<int64_t>{which});
    };
    loaded.tops.push_back(arith::SelectOp::create(b, exists, part(0), lowest));
    // Of the warps that share a row's columns, the first one has its sum.
    if (atom.colWarps > 1)
      exists = arith::AndIOp::create(
          b, exists,
          arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                lower.gridCol(atom), lower.i32(0)));
    loaded.sums.push_back(arith::SelectOp::create(b, exists, part(1), zero));
  }
  Value from = add(b, base, add(b, memory.lineOf(lower, r), memory.lane));
  auto many = VectorType::get({memory.atOnce}, b.getF32Type());
  SmallVector<Words> ofRow = wordsOf(i);
  for (int64_t p = 0; p < atOnce; ++p) {
    Value at = p == 0 ? from : add(b, from, offsetOf(lower.i32(p)));
    Values &words = loaded.words.emplace_back();
    for (const Words &next : ofRow)
      words.push_back(vector::LoadOp::create(
          b, many, in, ValueRange{add(b, at, lower.index(next.at))},
          /*nontemporal=*/false, memory.alignment()));
  }
  return loaded;
}

PartialJoin::State PartialJoin::joinNext(Value base, Value left,
                                         const State *before) {
  Value lowest = lower.f32(-std::numeric_limits<double>::infinity()),
        zero = lower.f32(0);
  // All are on their way before the first is looked at, as far as there are
  // registers for them beside what they come to.
  SmallVector<Row> loaded(rows);
  auto loadFrom = [&](unsigned first) {
    for (unsigned i = first; i < std::min(first + rowsAtOnce, rows); ++i)
      if (!isPastRow(i))
        loaded[i] = load(i, base, left);
  };

  State joined;
  SmallVector<Values> elements(rows / rowParts * cols,
                               Values(atom.registers(), zero));
  Value nothing = vector::BroadcastOp::create(
      b, VectorType::get({memory.atOnce}, b.getF32Type()), zero);
  auto exp2Of = [&](const RowExponents &row, Value top) {
    return exp2(b, arith::SubFOp::create(b, row.offset, row.offsetOf(b, top)));
  };
  for (unsigned i = 0; i < rows; ++i) {
    if (i % rowsAtOnce == 0)
      loadFrom(i);
    Row &own = loaded[i];
    if (own.tops.empty()) {
      joined.max.push_back(lowest);
      joined.sum.push_back(zero);
      continue;
    }
    Value top = own.tops.front();
    for (Value other : ArrayRef(own.tops).drop_front())
      top = arith::MaxNumFOp::create(b, top, other);
    top = lower.reduceLanes(atom, top, /*isMax=*/true);
    if (before)
      top = arith::MaxNumFOp::create(b, top, before->max[i]);
    RowExponents row =
        exponentsOf(lower, top, op.getScale(), op.getUnbounded());
    Value sum, kept;
    if (before) {
      kept = exp2Of(row, before->max[i]);
      sum = arith::MulFOp::create(b, before->sum[i], kept);
    }
    Values factors;
    for (auto [ownTop, ownSum] : llvm::zip_equal(own.tops, own.sums)) {
      Value factor = exp2Of(row, ownTop);
      factors.push_back(factor);
      if (sum)
        sum = math::FmaOp::create(b, ownSum, factor, sum);
      else
        sum = arith::MulFOp::create(b, ownSum, factor);
    }
    joined.max.push_back(top);
    joined.sum.push_back(sum);

    SmallVector<Words> ofRow = wordsOf(i);
    auto accOf = [&](std::pair<int64_t, int64_t> place) -> Value & {
      return elements[place.first][place.second];
    };
    for (const Words &words : ofRow)
      for (auto place : words.registers)
        accOf(place) =
            before
                ? arith::MulFOp::create(
                      b, lower.element(before->acc[place.first], place.second),
                      kept)
                      .getResult()
                : Value();
    ArrayRef<unsigned> bits = atom.reductionBits();
    for (int64_t p = 0; p < atOnce; ++p) {
      Value factor = factors[p / sharers];
      Value exists;
      if (p > 0)
        exists = arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, left,
                                       lower.i32(p));
      if (!bits.empty()) {
        // The lane that has looked at it says by what it is scaled.
        int64_t from = 0;
        for (auto [k, bit] : llvm::enumerate(bits))
          if (p % sharers >> k & 1)
            from |= int64_t(1) << bit;
        Value source = arith::OrIOp::create(b, firstLane, lower.i32(from));
        factor = gpu::ShuffleOp::create(b, factor, source,
                                        lower.i32(lower.chip().waveSize),
                                        gpu::ShuffleMode::IDX)
                     .getShuffleResult();
      }
      for (auto [words, value] : llvm::zip_equal(ofRow, own.words[p])) {
        // Its weight is 0, but what is read again may be infinite.
        if (exists)
          value = arith::SelectOp::create(b, exists, value, nothing);
        for (auto [n, place] : llvm::enumerate(words.registers)) {
          Value word = vector::ExtractOp::create(b, value,
                                                 ArrayRef<int64_t>{int64_t(n)});
          Value &total = accOf(place);
          if (total)
            total = math::FmaOp::create(b, word, factor, total);
          else
            total = arith::MulFOp::create(b, word, factor);
        }
      }
    }
  }
  auto vector = VectorType::get({atom.registers()}, b.getF32Type());
  for (Values &values : elements)
    joined.acc.push_back(vector::FromElementsOp::create(b, vector, values));
  return joined;
}

void PartialJoin::emit() {
  int64_t all = atom.atomCols(type);
  size_t grid = rows / rowParts;
  State joined;
  joined.acc.resize(grid * all);
  for (firstCol = 0; firstCol < all; firstCol += cols) {
    State some = joinColumns();
    for (size_t row = 0; row < grid; ++row)
      llvm::copy(ArrayRef(some.acc).slice(row * cols, cols),
                 joined.acc.begin() + row * all + firstCol);
    joined.max = some.max;
    joined.sum = some.sum;
  }
  lower.setLanes(op.getAcc(), joined.acc);
  lower.setLanes(op.getMax(), joined.max);
  lower.setLanes(op.getSum(), joined.sum);
}

PartialJoin::State PartialJoin::joinColumns() {
  Value base = lower.offsetOf(op.getParts(), op.getIndices());
  Value count = lower.single(op.getCount());
  State joined;
  if (most && *most <= atOnce) {
    joined = joinNext(base, lower.toI32(count), nullptr);
  } else {
    // What one iteration hands to the next: accumulators, maxima, sums.
    Value zero = lower.f32(0);
    auto vector = VectorType::get({atom.registers()}, b.getF32Type());
    size_t vectors = rows / rowParts * cols;
    Values inits(vectors, vector::BroadcastOp::create(b, vector, zero));
    inits.append(rows, lower.f32(-std::numeric_limits<double>::infinity()));
    inits.append(rows, zero);
    auto stateOf = [&](ValueRange values) {
      auto part = [&](size_t first, size_t many) {
        return llvm::to_vector<8>(values.slice(first, many));
      };
      State state;
      state.acc.append(part(0, vectors));
      state.max.append(part(vectors, rows));
      state.sum.append(part(vectors + rows, rows));
      return state;
    };
    auto loop = scf::ForOp::create(b, lower.index(0), count,
                                   lower.index(atOnce), inits);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      Value first = loop.getInductionVar();
      State before = stateOf(loop.getRegionIterArgs());
      Value left = lower.toI32(arith::SubIOp::create(b, count, first));
      State next = joinNext(add(b, base, mul(b, first, stride)), left, &before);
      Values values = next.acc;
      values.append(next.max);
      values.append(next.sum);
      scf::YieldOp::create(b, values);
    }
    joined = stateOf(loop.getResults());
  }
  return joined;
}

LogicalResult kvbuf::lowerOp(LaneContext &lower, PartialJoinOp op) {
  FailureOr<RowMemory> memory =
      rowMemory(lower, op, lower.layoutOf(op.getAcc().getType()));
  if (failed(memory))
    return failure();
  PartialJoin(lower, op, std::move(*memory)).emit();
  return success();
}
