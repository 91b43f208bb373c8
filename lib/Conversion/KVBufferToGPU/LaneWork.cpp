//===- LaneWork.cpp - Work that blocks share --------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What launches say, arrivals of blocks, and their shares of all sequences.
//
//===----------------------------------------------------------------------===//

#include "LaneWork.h"
#include "LaneArithmetic.h"
#include "LaneRingTeams.h"
#include "kvbuffer/Dialect/KVBuffer/IR/RelaxedAtomics.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace kvbuf;

void kvbuf::lowerOp(LaneContext &lower, LaunchValueOp op) {
  lower.setLanes(op.getValue(), {lower.launchValue(op.getExpression())});
}

//===----------------------------------------------------------------------===//
// Arrivals
//===----------------------------------------------------------------------===//

void kvbuf::lowerOp(LaneContext &lower, ArriveLastOp op) {
  ImplicitLocOpBuilder &b = lower.builder();
  Value counters = lower.flat(lower.tensorOf(op.getCounters()).data);
  Value at = lower.offsetOf(op.getCounters(), op.getIndices());
  Value others = arith::SubIOp::create(
      b, lower.toI32(lower.single(op.getCount())), lower.i32(1));
  // One thread arrives for the block, or for its team of one warp, once all
  // have stored, and what it has acquired is the others' after the next
  // barrier.
  lower.meetToRead();
  Value isOne = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                      lower.ownThread(), lower.i32(0));
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
    memref::StoreOp::create(b, lower.i32(0), counters, at);
    b.setInsertionPointToStart(arrive.elseBlock());
    scf::YieldOp::create(
        b, arith::ConstantOp::create(b, b.getBoolAttr(false)).getResult());
  }
  Value last = arrive.getResult(0);
  if (lower.ownThreads() == lower.chip().waveSize) {
    lower.meetToRead();
    lower.setLanes(op.getLast(), {LaneAnyOp::create(b, last)});
    return;
  }
  // Other warps are told through LDS.
  Value word = lower.index(lower.takeBesideBarriers(4) / 4),
        words = lower.shared(b.getI32Type());
  auto tell = scf::IfOp::create(b, isOne, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(tell.thenBlock());
    memref::StoreOp::create(b, arith::ExtUIOp::create(b, b.getI32Type(), last),
                            words, word);
  }
  lower.meetToRead();
  Value told = memref::LoadOp::create(b, words, word);
  told = lower.uniform(told);
  lower.setLanes(
      op.getLast(),
      {arith::CmpIOp::create(b, arith::CmpIPredicate::ne, told, lower.i32(0))});
}

/// How often a block looks whether the others have arrived: some 0.7 us each on
/// an H200. Blocks that end together do so within much less.
static constexpr int64_t kLooks = 64;

namespace {
/// Lowers an arrival after which all that are there divide what is left: blocks
/// that wait for each other, but not for long, by counters at which one thread
/// of a team looks.
///
/// The first counter has how many have arrived, and a bit that says whether
/// somebody has left without a share. Nobody leaves once all have arrived
/// (leaving compares and exchanges), so that all who are there see the same.
/// Where nobody has left, a block's shares follow from its number, and it needs
/// no other counter: to look at one takes as long as a share. Else blocks take
/// shares from the second counter, one after the other. The third one counts
/// who looks at the others no more; the last one sets all three back.
class AfterAll {
public:
  AfterAll(LaneContext &lower, AfterAllOp op);
  LogicalResult emit();

private:
  static constexpr int64_t kLeft = int64_t(1) << 30, kArrivals = kLeft - 1;
  /// In what a block is told: that shares are taken one by one.
  static constexpr int64_t kTaken = int64_t(1) << 30;

  Value compare(arith::CmpIPredicate how, Value x, Value y) {
    return arith::CmpIOp::create(b, how, x, y);
  }
  /// Adds 1 to a counter.
  LaneArriveOp arrive(Value counter) {
    return LaneArriveOp::create(b, b.getI32Type(), counters, counter);
  }
  /// Changes a counter atomically, in no order with anything else.
  Value change(arith::AtomicRMWKind kind, Value counter) {
    auto change = memref::AtomicRMWOp::create(b, kind, zero, counters, counter);
    change->setAttr(kRelaxedAttr, b.getUnitAttr());
    return change;
  }
  /// What the first counter has.
  Value look() { return change(arith::AtomicRMWKind::addi, arrived); }
  /// Sets a counter back at which nobody looks any more. Atomically: that
  /// orders it behind their looks, of which no more is known.
  void reset(Value counter) { change(arith::AtomicRMWKind::assign, counter); }
  /// `yes` where a condition holds, `no` elsewhere: so many i32s.
  SmallVector<Value> choose(Value condition, unsigned many,
                            function_ref<SmallVector<Value>()> yes,
                            function_ref<SmallVector<Value>()> no);
  /// What one thread computes, an i32, told to all of the team through LDS;
  /// `own` gets what else that thread has, an i32, and others 0.
  Value byOne(function_ref<Value(Value &own)> compute, Value *own = nullptr);
  /// A loop that carries some i32s.
  scf::WhileOp loop(ValueRange inits, function_ref<Value(ValueRange)> condition,
                    function_ref<SmallVector<Value>(ValueRange)> body);
  /// Looks, where the counter had `seen`, until all have arrived, but not for
  /// long: what it has.
  Value waitForAll(Value seen);
  Value bits(Value x, int64_t mask) {
    return arith::AndIOp::create(b, x, lower.i32(mask));
  }
  Value isSet(Value x, int64_t mask) {
    return compare(arith::CmpIPredicate::ne, bits(x, mask), zero);
  }
  Value haveAll(Value seen) {
    return compare(arith::CmpIPredicate::sge, bits(seen, kArrivals), count);
  }
  /// Leaves unless all have arrived meanwhile: what the counter had.
  Value leaveUnlessAll();
  /// Arrives: the block's first share, perhaps with `kTaken`; `own` gets the
  /// third counter before the block looked at the others no more, if it does
  /// so.
  Value enter(Value &own);

  LaneContext &lower;
  ImplicitLocOpBuilder &b;
  AfterAllOp op;
  Value counters, arrived, taken, left, count, shares, zero, one;
  Value isOne, word, words;
};
} // namespace

AfterAll::AfterAll(LaneContext &lower, AfterAllOp op)
    : lower(lower), b(lower.builder()), op(op),
      counters(lower.flat(lower.tensorOf(op.getCounters()).data)),
      arrived(lower.offsetOf(op.getCounters(), op.getIndices())),
      taken(add(b, arrived, lower.index(1))),
      left(add(b, arrived, lower.index(2))),
      count(lower.toI32(lower.single(op.getCount()))),
      shares(lower.toI32(lower.single(op.getShares()))), zero(lower.i32(0)),
      one(lower.i32(1)),
      isOne(compare(arith::CmpIPredicate::eq, lower.ownThread(), zero)),
      word(lower.index(lower.takeBesideBarriers(4) / 4)),
      words(lower.shared(b.getI32Type())) {}

SmallVector<Value> AfterAll::choose(Value condition, unsigned many,
                                    function_ref<SmallVector<Value>()> yes,
                                    function_ref<SmallVector<Value>()> no) {
  SmallVector<Type> types(many, b.getI32Type());
  auto branch = scf::IfOp::create(b, types, condition, /*addThenBlock=*/true,
                                  /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, yes());
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, no());
  return SmallVector<Value>(branch.getResults());
}

Value AfterAll::byOne(function_ref<Value(Value &own)> compute, Value *own) {
  SmallVector<Value> kept = choose(
      isOne, 1,
      [&]() -> SmallVector<Value> {
        Value more = zero;
        memref::StoreOp::create(b, compute(more), words, word);
        return {more};
      },
      [&]() -> SmallVector<Value> { return {zero}; });
  if (own)
    *own = kept.front();
  lower.meetToRead();
  Value told = memref::LoadOp::create(b, words, word);
  // Before the next is told, all have read this.
  lower.meetToRead();
  return lower.uniform(told);
}

scf::WhileOp AfterAll::loop(ValueRange inits,
                            function_ref<Value(ValueRange)> condition,
                            function_ref<SmallVector<Value>(ValueRange)> body) {
  SmallVector<Type> types(inits.size(), b.getI32Type());
  SmallVector<Location> locations(inits.size(), b.getLoc());
  auto loop = scf::WhileOp::create(b, types, inits);
  OpBuilder::InsertionGuard guard(b);
  Block *before = b.createBlock(&loop.getBefore(), {}, types, locations);
  scf::ConditionOp::create(b, condition(before->getArguments()),
                           before->getArguments());
  Block *after = b.createBlock(&loop.getAfter(), {}, types, locations);
  scf::YieldOp::create(b, body(after->getArguments()));
  return loop;
}

Value AfterAll::waitForAll(Value seen) {
  Value most = lower.i32(kLooks);
  // Who has no time has looked often enough.
  Value looked =
      arith::SelectOp::create(b, lower.single(op.getPatient()), zero, most);
  auto wait = loop(
      {seen, looked},
      [&](ValueRange now) -> Value {
        return arith::AndIOp::create(
            b,
            compare(arith::CmpIPredicate::slt, bits(now[0], kArrivals), count),
            compare(arith::CmpIPredicate::slt, now[1], most));
      },
      [&](ValueRange now) -> SmallVector<Value> {
        Value seen = look();
        return {seen, add(b, now[1], one)};
      });
  return wait.getResult(0);
}

Value AfterAll::leaveUnlessAll() {
  auto leave = memref::GenericAtomicRMWOp::create(b, counters, arrived);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(leave.getBody());
  Value had = leave.getCurrentValue();
  Value marked = arith::OrIOp::create(b, had, lower.i32(kLeft));
  memref::AtomicYieldOp::create(
      b, arith::SelectOp::create(b, haveAll(had), had, marked).getResult());
  return leave.getResult();
}

Value AfterAll::enter(Value &own) {
  // An arrival releases what the block has stored.
  Value before = arrive(arrived);
  Value seen = waitForAll(add(b, before, one));
  // Who has waited for long enough leaves, but for all that have come.
  seen = choose(
             haveAll(seen), 1, [&]() -> SmallVector<Value> { return {seen}; },
             [&]() -> SmallVector<Value> { return {leaveUnlessAll()}; })
             .front();
  Value all = haveAll(seen);
  Value number =
      arith::SelectOp::create(b, all, bits(before, kArrivals), shares);
  Value oneByOne = arith::AndIOp::create(b, all, isSet(seen, kLeft));
  SmallVector<Value> told = choose(
      oneByOne, 2,
      [&]() -> SmallVector<Value> {
        Value share = arrive(taken);
        return {arith::OrIOp::create(b, share, lower.i32(kTaken)), zero};
      },
      [&]() -> SmallVector<Value> {
        // Acquires what the others have stored, and says that the block looks
        // no more: what the counter had is there behind its shares.
        LaneArriveOp arrival = arrive(left);
        arrival.setEarly(true);
        return {number, arrival};
      });
  own = told[1];
  return told[0];
}

LogicalResult AfterAll::emit() {
  // All have stored.
  lower.meetToRead();
  Value ended;
  Value told = byOne([&](Value &own) { return enter(own); }, &ended);
  Value first = bits(told, kTaken - 1), oneByOne = isSet(told, kTaken);
  LogicalResult lowered = success();
  loop(
      first,
      [&](ValueRange now) {
        return compare(arith::CmpIPredicate::slt, now[0], shares);
      },
      [&](ValueRange now) -> SmallVector<Value> {
        Block &body = op.getBody().front();
        lower.setLanes(body.getArgument(0), {lower.toIndex(now[0])});
        lowered = lower.lowerBody(body);
        b.setLoc(op.getLoc());
        return choose(
            oneByOne, 1,
            [&]() -> SmallVector<Value> {
              return {byOne([&](Value &) -> Value { return arrive(taken); })};
            },
            [&]() -> SmallVector<Value> { return {add(b, now[0], count)}; });
      });
  if (failed(lowered))
    return failure();
  auto leave = scf::IfOp::create(b, isOne, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(leave.thenBlock());
  Value before =
      choose(
          oneByOne, 1, [&]() -> SmallVector<Value> { return {arrive(left)}; },
          [&]() -> SmallVector<Value> { return {ended}; })
          .front();
  Value isLast = compare(arith::CmpIPredicate::eq, add(b, before, one), count);
  auto last = scf::IfOp::create(b, isLast, /*withElseRegion=*/false);
  b.setInsertionPointToStart(last.thenBlock());
  for (Value counter : {arrived, taken, left})
    reset(counter);
  return success();
}

LogicalResult kvbuf::lowerOp(LaneContext &lower, AfterAllOp op) {
  return AfterAll(lower, op).emit();
}

//===----------------------------------------------------------------------===//
// Shares
//===----------------------------------------------------------------------===//

/// Items that a lane looks at together: what is read for one does not wait for
/// what is read for another.
static constexpr int64_t kItemsAtOnce = 4;

/// Whether a size is 0 or more whatever the launch is: those that expressions
/// are made of are.
static bool isNotNegative(Attribute size) {
  if (auto number = dyn_cast<IntegerAttr>(size))
    return number.getInt() >= 0;
  auto made = dyn_cast<SizeAttr>(size);
  return !made || llvm::all_of(made.getOperands(), isNotNegative);
}

/// Whether an item has a unit or more, whatever number `units` is made for. As
/// the sum of all units fits 31 bits, no addition goes round.
static bool hasUnits(Value units) {
  auto isNotNegativeValue = [](Value x) {
    if (auto size = x.getDefiningOp<LaunchValueOp>())
      return isNotNegative(size.getExpression());
    return x.getDefiningOp<LaunchSizeOp>() || matchPattern(x, m_Zero()) ||
           hasUnits(x);
  };
  Operation *op = units.getDefiningOp();
  APInt number;
  if (matchPattern(units, m_ConstantInt(&number)))
    return number.isStrictlyPositive();
  if (isa_and_nonnull<arith::MaxUIOp, arith::MaxSIOp>(op))
    return llvm::any_of(op->getOperands(), hasUnits);
  if (!isa_and_nonnull<arith::AddIOp>(op))
    return false;
  return llvm::any_of(op->getOperands(), hasUnits) &&
         llvm::all_of(op->getOperands(), isNotNegativeValue);
}

namespace {
/// Finds a worker's share of all items' units: each lane of a wave looks at
/// some of the items. Most launches have no more than a wave's lanes look at
/// once: those are read once.
class WorkShare {
public:
  WorkShare(LaneContext &lower, ShareWorkOp op)
      : lower(lower), b(lower.builder()), op(op), body(op.getBody().front()),
        zero(lower.i32(0)), wave(lower.i32(lower.chip().waveSize)),
        atOnce(lower.i32(kItemsAtOnce * lower.chip().waveSize)),
        items(lower.toI32(lower.single(op.getItems()))),
        lastItem(arith::SubIOp::create(b, items, lower.i32(1))) {}
  /// What a share is: its size, and what the op says besides.
  FailureOr<Values> emit();

private:
  /// Items of a lane: whether there is one, its units.
  using Items = SmallVector<std::pair<Value, Value>, kItemsAtOnce>;

  Value isBelow(Value x, Value y) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, x, y);
  }
  Value choose(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, condition, x, y);
  }
  Value larger(Value x, Value y) { return arith::MaxSIOp::create(b, x, y); }
  /// What the lane has whose number differs in a bit.
  Value fromLane(Value value, int64_t bit) {
    return gpu::ShuffleOp::create(b, value, lower.i32(bit), wave,
                                  gpu::ShuffleMode::XOR)
        .getShuffleResult();
  }
  /// All lanes' values as one.
  Value ofLanes(Value value, function_ref<Value(Value, Value)> join);
  Value sumOfLanes(Value value) {
    return ofLanes(value, [&](Value x, Value y) { return add(b, x, y); });
  }
  /// The region for an item: its units.
  std::pair<Value, Value> unitsOf(Value item);
  /// The lane's items of those from `from` on: they follow each other.
  Items unitsFrom(Value from);
  Value sumOf(const Items &all);
  /// How many of the lane's items have units.
  Value countOf(const Items &all);
  /// The workers that units are dealt to, `items` of which have some.
  Value workersFor(Value items);
  /// A loop over the items behind the first ones, as many at a time as a wave's
  /// lanes look at.
  ValueRange forOthers(Values inits,
                       function_ref<Values(Value, ValueRange)> iteration);
  /// Units of the lanes before this one, and of all.
  std::pair<Value, Value> sumsOf(const Items &own);
  /// Units of all items, and how many have some, of which the first ones have
  /// `units` and `some`.
  std::pair<Value, Value> withOthers(Value units, Value some);
  /// Of the lane's items, the first of which starts at unit `starts`, `sofar`
  /// those that it has looked at before: those that end by `begin`, where the
  /// last of these ends, and those that start before `end`.
  Values find(const Items &own, Value starts, ValueRange sofar, Value begin,
              Value end);

  LaneContext &lower;
  ImplicitLocOpBuilder &b;
  ShareWorkOp op;
  Block &body;
  Value zero, wave, atOnce, items, lastItem;
  /// Whether the region was lowered.
  LogicalResult lowered = success();
};
} // namespace

Value WorkShare::ofLanes(Value value, function_ref<Value(Value, Value)> join) {
  for (int64_t bit = 1; bit < lower.chip().waveSize; bit *= 2)
    value = join(value, fromLane(value, bit));
  return lower.uniform(value);
}

std::pair<Value, Value> WorkShare::unitsOf(Value item) {
  Value exists = isBelow(item, items);
  // No branch: lanes without an item look at the last one.
  lower.setLanes(body.getArgument(0),
                 {lower.toIndex(arith::MinSIOp::create(b, item, lastItem))});
  if (failed(lower.lowerBody(body)))
    lowered = failure();
  if (failed(lowered))
    return {exists, zero};
  b.setLoc(op.getLoc());
  Value units =
      lower.toI32(lower.single(cast<YieldOp>(body.getTerminator()).getValue()));
  return {exists, choose(exists, larger(units, zero), zero)};
}

WorkShare::Items WorkShare::unitsFrom(Value from) {
  Value first =
      add(b, from, mul(b, lower.laneInWarp(), lower.i32(kItemsAtOnce)));
  Items all;
  for (int64_t i = 0; i < kItemsAtOnce; ++i)
    all.push_back(unitsOf(add(b, first, lower.i32(i))));
  return all;
}

Value WorkShare::sumOf(const Items &all) {
  Value units = all.front().second;
  for (const auto &[exists, more] : llvm::drop_begin(all))
    units = add(b, units, more);
  return units;
}

Value WorkShare::countOf(const Items &all) {
  Value count = zero, one = lower.i32(1);
  for (const auto &[exists, units] : all)
    count = add(
        b, count,
        choose(arith::CmpIOp::create(b, arith::CmpIPredicate::ne, units, zero),
               one, zero));
  return count;
}

Value WorkShare::workersFor(Value items) {
  Value all = lower.toI32(lower.single(op.getWorkers()));
  auto times = [&](int32_t n, Value x) { return mul(b, x, lower.i32(n)); };
  auto upTo = [&](Value x, Value y) -> Value {
    return arith::CeilDivUIOp::create(b, x, y);
  };
  items = larger(items, lower.i32(1));
  Value each = arith::DivUIOp::create(b, all, items), whole = upTo(items, all);
  Value even = larger(mul(b, items, each), upTo(items, whole));
  // The more items a worker has, the less it costs to begin one more.
  Value ten = times(10, whole);
  Value nine = arith::SubIOp::create(b, ten, lower.i32(1));
  return choose(isBelow(mul(b, even, ten), mul(b, all, nine)), all, even);
}

ValueRange
WorkShare::forOthers(Values inits,
                     function_ref<Values(Value, ValueRange)> iteration) {
  auto loop = scf::ForOp::create(b, atOnce, items, atOnce, inits);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Values next = iteration(loop.getInductionVar(), loop.getRegionIterArgs());
  scf::YieldOp::create(b, next);
  return loop.getResults();
}

std::pair<Value, Value> WorkShare::sumsOf(const Items &own) {
  Value before = zero, all = sumOf(own);
  for (int64_t bit = 1; bit < lower.chip().waveSize; bit *= 2) {
    Value others = fromLane(all, bit);
    Value isAfter = arith::CmpIOp::create(
        b, arith::CmpIPredicate::ne,
        arith::AndIOp::create(b, lower.laneInWarp(), lower.i32(bit)), zero);
    before = add(b, before, choose(isAfter, others, zero));
    all = add(b, all, others);
  }
  return {before, all};
}

std::pair<Value, Value> WorkShare::withOthers(Value units, Value some) {
  SmallVector<Type> types(2, b.getI32Type());
  auto branch = scf::IfOp::create(b, types, isBelow(atOnce, items),
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, ValueRange{units, some});
  b.setInsertionPointToStart(branch.thenBlock());
  ValueRange others =
      forOthers({zero, zero}, [&](Value from, ValueRange sofar) -> Values {
        Items own = unitsFrom(from);
        return {add(b, sofar[0], sumOf(own)), add(b, sofar[1], countOf(own))};
      });
  scf::YieldOp::create(b, ValueRange{add(b, units, sumOfLanes(others[0])),
                                     add(b, some, sumOfLanes(others[1]))});
  return {branch.getResult(0), branch.getResult(1)};
}

Values WorkShare::find(const Items &own, Value starts, ValueRange sofar,
                       Value begin, Value end) {
  Value past = sofar[0], lastEnd = sofar[1], reached = sofar[2],
        one = lower.i32(1);
  for (auto [exists, units] : own) {
    Value ends = add(b, starts, units);
    Value isPast = arith::AndIOp::create(
        b, exists,
        arith::CmpIOp::create(b, arith::CmpIPredicate::sle, ends, begin));
    Value isReached = arith::AndIOp::create(b, exists, isBelow(starts, end));
    past = add(b, past, choose(isPast, one, zero));
    lastEnd = choose(isPast, larger(lastEnd, ends), lastEnd);
    reached = add(b, reached, choose(isReached, one, zero));
    starts = ends;
  }
  return {past, lastEnd, reached};
}

FailureOr<Values> WorkShare::emit() {
  Items own = unitsFrom(zero);
  if (failed(lowered))
    return failure();
  // Where all items have units, workers are known while these are read.
  Value workers;
  if (hasUnits(cast<YieldOp>(body.getTerminator()).getValue()))
    workers = workersFor(items);
  auto [before, sum] = sumsOf(own);
  auto [total, some] =
      withOthers(lower.uniform(sum), workers ? zero : sumOfLanes(countOf(own)));
  if (!workers)
    workers = workersFor(some);
  Value size = larger(arith::CeilDivUIOp::create(b, total, workers),
                      lower.toI32(lower.single(op.getLeast())));
  Value begin = mul(b, lower.toI32(lower.single(op.getWorker())), size);
  Value end = arith::MinSIOp::create(b, add(b, begin, size), total);
  Values found = find(own, before, {zero, zero, zero}, begin, end);
  found.push_back(sum);
  found = llvm::to_vector(
      forOthers(found, [&](Value from, ValueRange sofar) -> Values {
        Items others = unitsFrom(from);
        auto [before, sum] = sumsOf(others);
        Values next = find(others, add(b, sofar[3], before),
                           sofar.take_front(3), begin, end);
        next.push_back(add(b, sofar[3], sum));
        return next;
      }));
  Value first = sumOfLanes(found[0]),
        start =
            ofLanes(found[1], [&](Value x, Value y) { return larger(x, y); }),
        reached = sumOfLanes(found[2]);
  return Values{size, first, start, larger(reached, first)};
}

/// What one warp of a block finds, told to all through LDS: beside each other
/// many would take as long again as they wait for memory, and one that no other
/// does makes barriers ready meanwhile.
static FailureOr<Values> shareOfBlock(LaneContext &lower, ShareWorkOp op) {
  ImplicitLocOpBuilder &b = lower.builder();
  Type i32 = b.getI32Type();
  int64_t wave = lower.chip().waveSize, count = op->getNumResults();
  // The words have their place beside barriers once these have theirs, behind
  // all buffers.
  Value words = lower.shared(i32);
  auto from = arith::ConstantIndexOp::create(b, 0);
  ringsOf(lower).placesOfWords.push_back({from, count});
  auto place = [&](int64_t i) { return add(b, from, lower.index(i)); };
  Value isLast =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lower.ownWarp(),
                            lower.i32(lower.blockThreads() / wave - 1));
  auto find = scf::IfOp::create(b, isLast, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(find.thenBlock());
    FailureOr<Values> share = WorkShare(lower, op).emit();
    if (failed(share))
      return failure();
    auto tell = scf::IfOp::create(
        b,
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lower.laneInWarp(),
                              lower.i32(0)),
        /*withElseRegion=*/false);
    b.setInsertionPointToStart(tell.thenBlock());
    for (auto [i, value] : llvm::enumerate(*share))
      memref::StoreOp::create(b, value, words, ValueRange{place(i)});
  }
  ringsOf(lower).whileReady = find;
  lower.meetBlock();
  Values told;
  for (int64_t i = 0; i < count; ++i) {
    Value word = memref::LoadOp::create(b, words, ValueRange{place(i)});
    told.push_back(lower.uniform(word));
  }
  return told;
}

/// Whether teams begin behind an op: who starts them gives the words of
/// `shareOfBlock` their place, and may make barriers ready beside it.
static bool isAheadOfTeams(Operation *op) {
  if (!isa<gpu::GPUFuncOp>(op->getParentOp()))
    return false;
  for (Operation *next = op->getNextNode(); next; next = next->getNextNode())
    if (isa<TeamsOp>(next))
      return true;
  return false;
}

LogicalResult kvbuf::lowerOp(LaneContext &lower, ShareWorkOp op) {
  if (lower.hasRings() && op->getParentOfType<TeamOp>())
    return op.emitOpError() << "has no per-lane form in a team beside "
                               "kvbuffer.ring: the lanes of a warp look at the "
                               "items together; expected it before the teams";
  bool byOne = lower.hasRings() && isAheadOfTeams(op) &&
               lower.blockThreads() > lower.chip().waveSize;
  FailureOr<Values> share =
      byOne ? shareOfBlock(lower, op) : WorkShare(lower, op).emit();
  if (failed(share))
    return failure();
  for (auto [result, value] : llvm::zip_equal(op->getResults(), *share))
    lower.setLanes(result, {lower.toIndex(value)});
  return success();
}
