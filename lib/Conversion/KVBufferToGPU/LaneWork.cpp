//===- LaneWork.cpp - Work that blocks share --------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What launches say, and arrivals of blocks. (Their shares of all sequences:
// LaneShares.cpp.)
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

/// What a counter has, looked at atomically, in no order with anything else.
static Value lookAt(LaneContext &lower, Value counters, Value at) {
  ImplicitLocOpBuilder &b = lower.builder();
  auto look = memref::AtomicRMWOp::create(b, arith::AtomicRMWKind::addi,
                                          lower.i32(0), counters, at);
  look->setAttr(kRelaxedAttr, b.getUnitAttr());
  return look;
}

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
    // A look has no order; nor does anybody wait for an arrival behind it,
    // which acquires what the others have stored.
    Value before =
        op.getIfLast()
            ? lookAt(lower, counters, at)
            : LaneArriveOp::create(b, b.getI32Type(), counters, at).getBefore();
    Value isLast =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, before, others);
    auto reset = scf::IfOp::create(b, isLast, /*withElseRegion=*/false);
    scf::YieldOp::create(b, isLast);
    b.setInsertionPointToStart(reset.thenBlock());
    if (op.getIfLast())
      LaneArriveOp::create(b, b.getI32Type(), counters, at).setEarly(true);
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
