//===- LaneShares.cpp - Shares of all sequences -----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block's share of the units of all items: as many as the others', one behind
// the other, or an item of its own, evened out with another block's.
//
//===----------------------------------------------------------------------===//

#include "LaneArithmetic.h"
#include "LaneRingTeams.h"
#include "LaneWork.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace kvbuf;

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
/// What the ops of shares have.
struct ShareOperands {
  Value worker, workers, items, least;
  /// Only of pairs.
  Value pause;
};

/// Finds a worker's share of all items' units: each lane of a wave looks at
/// some of the items. Most launches have no more than a wave's lanes look at
/// once: those are read once.
class WorkShare {
public:
  WorkShare(LaneContext &lower, Operation *op, const ShareOperands &operands)
      : lower(lower), b(lower.builder()), op(op), operands(operands),
        body(op->getRegion(0).front()), zero(lower.i32(0)),
        wave(lower.i32(lower.chip().waveSize)),
        atOnce(lower.i32(kItemsAtOnce * lower.chip().waveSize)),
        items(lower.toI32(lower.single(operands.items))),
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

  // Pairs.

  /// `yes` where a condition holds that is the same for all lanes: so many
  /// i32s, which are `no` elsewhere.
  Values ifAll(Value condition, const Values &no, function_ref<Values()> yes);
  Value compare(arith::CmpIPredicate how, Value x, Value y) {
    return arith::CmpIOp::create(b, how, x, y);
  }
  Value bit(bool value) {
    return arith::ConstantOp::create(b, b.getBoolAttr(value));
  }
  /// Sorts numbers of all lanes, the largest first, as many of each as it has
  /// items: those of a lane follow each other.
  Values sort(Values numbers);
  /// The last of the first `many` of them where the first is, and so on.
  Values reverse(const Values &numbers, Value many);
  /// What a share is where pairs of items even each other out, where they can;
  /// elsewhere `share`. `many`: the workers that units are dealt to.
  Values pairs(const Items &own, Value many, Values share);
  /// The same where each of these has at most one item, one of `own`.
  Values pairsOf(const Items &own, Value many, const Values &share);

  LaneContext &lower;
  ImplicitLocOpBuilder &b;
  Operation *op;
  ShareOperands operands;
  Block &body;
  Value zero, wave, atOnce, items, lastItem;
  /// The size of a share, and the worker's number.
  Value size, worker;
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
  b.setLoc(op->getLoc());
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
  Value all = lower.toI32(lower.single(operands.workers));
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
  size = larger(arith::CeilDivUIOp::create(b, total, workers),
                lower.toI32(lower.single(operands.least)));
  worker = lower.toI32(lower.single(operands.worker));
  Value begin = mul(b, worker, size);
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
  Values share{size, first, start, larger(reached, first)};
  if (operands.pause)
    return pairs(own, workers, share);
  return share;
}

//===----------------------------------------------------------------------===//
// Pairs
//===----------------------------------------------------------------------===//

Values WorkShare::ifAll(Value condition, const Values &no,
                        function_ref<Values()> yes) {
  SmallVector<Type> types(no.size(), b.getI32Type());
  auto branch = scf::IfOp::create(b, types, condition, /*addThenBlock=*/true,
                                  /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, yes());
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, no);
  return llvm::to_vector(ValueRange(branch.getResults()));
}

Values WorkShare::sort(Values numbers) {
  // A bitonic sort: in blocks of `block`, every other one of which is ordered
  // the other way round, of numbers that are `far` from each other the larger
  // one comes first.
  Value lane = lower.laneInWarp();
  auto isSet = [&](int64_t places) -> Value {
    if (places / kItemsAtOnce >= lower.chip().waveSize)
      return bit(false);
    return compare(
        arith::CmpIPredicate::ne,
        arith::AndIOp::create(b, lane, lower.i32(places / kItemsAtOnce)), zero);
  };
  auto differ = [&](Value x, Value y) -> Value {
    return arith::XOrIOp::create(b, x, y);
  };
  int64_t all = kItemsAtOnce * lower.chip().waveSize;
  for (int64_t block = 2; block <= all; block *= 2)
    for (int64_t far = block / 2; far > 0; far /= 2) {
      Values before = numbers;
      for (int64_t i = 0; i < kItemsAtOnce; ++i) {
        Value isOdd = block < kItemsAtOnce ? bit(i & block) : isSet(block);
        if (far < kItemsAtOnce) {
          int64_t other = i ^ far;
          // Whether a number gives its place to the other one.
          Value isLess =
              isBelow(before[std::min(i, other)], before[std::max(i, other)]);
          numbers[i] = choose(differ(isLess, isOdd), before[other], before[i]);
          continue;
        }
        Value other = fromLane(before[i], far / kItemsAtOnce);
        Value isLess = isBelow(before[i], other);
        Value keepsLess = differ(isSet(far), isOdd);
        numbers[i] = choose(differ(isLess, keepsLess), other, before[i]);
      }
    }
  return numbers;
}

Values WorkShare::reverse(const Values &numbers, Value many) {
  Value last = arith::SubIOp::create(b, many, lower.i32(1));
  Value at = lower.i32(kItemsAtOnce);
  Value rest = arith::RemUIOp::create(b, last, at);
  Value lane = arith::SubIOp::create(
      b, arith::DivUIOp::create(b, last, at).getResult(), lower.laneInWarp());
  // Place p's is `last` - p: of the lane that has that one, and of the one
  // before it.
  Values others;
  for (int64_t i = 0; i < kItemsAtOnce; ++i) {
    Value isBefore = isBelow(rest, lower.i32(i));
    Value from =
        arith::SubIOp::create(b, lane, choose(isBefore, lower.i32(1), zero));
    from = arith::AndIOp::create(b, from, lower.i32(lower.chip().waveSize - 1));
    others.push_back(
        gpu::ShuffleOp::create(b, numbers[i], from, wave, gpu::ShuffleMode::IDX)
            .getShuffleResult());
  }
  Values reversed;
  for (int64_t i = 0; i < kItemsAtOnce; ++i) {
    Value own = others[(kItemsAtOnce - i) % kItemsAtOnce];
    for (int64_t r = 1; r < kItemsAtOnce; ++r)
      own = choose(compare(arith::CmpIPredicate::eq, rest, lower.i32(r)),
                   others[(r + kItemsAtOnce - i) % kItemsAtOnce], own);
    reversed.push_back(own);
  }
  return reversed;
}

Values WorkShare::pairsOf(const Items &own, Value many, const Values &share) {
  // A number for each item: the more units, the larger, and of as many the
  // first one's is larger.
  constexpr int64_t bits = llvm::ConstantLog2<SharePairsOp::kMostWorkers>();
  Value most = lower.i32(SharePairsOp::kMostUnits), one = lower.i32(1);
  Value low = lower.i32(SharePairsOp::kMostWorkers - 1),
        shift = lower.i32(bits);
  auto least = [&](Value x, Value y) -> Value {
    return arith::MinSIOp::create(b, x, y);
  };
  auto unitsOf = [&](Value number) -> Value {
    return arith::ShRUIOp::create(b, number, shift);
  };
  auto itemOf = [&](Value number) -> Value {
    return arith::SubIOp::create(
        b, low, arith::AndIOp::create(b, number, low).getResult());
  };
  Value first = mul(b, lower.laneInWarp(), lower.i32(kItemsAtOnce));
  Values numbers;
  for (auto [i, item] : llvm::enumerate(own)) {
    Value units = arith::ShLIOp::create(b, least(item.second, most), shift);
    Value behind = arith::SubIOp::create(b, low, add(b, first, lower.i32(i)));
    numbers.push_back(choose(item.first,
                             arith::OrIOp::create(b, units, behind).getResult(),
                             lower.i32(-1)));
  }
  numbers = sort(numbers);
  Values others = reverse(numbers, many);
  // The worker's own item and the one that it is paired with, and whether there
  // is a pair of too many units.
  Value pause = least(lower.toI32(lower.single(operands.pause)), most);
  Value bound = add(b, least(size, most), pause);
  bound = add(b, bound, bound);
  Value self = zero, other = zero, tooMany;
  for (int64_t i = 0; i < kItemsAtOnce; ++i) {
    Value exists = compare(arith::CmpIPredicate::sge, numbers[i], zero);
    Value isOwn = arith::AndIOp::create(
        b, exists,
        compare(arith::CmpIPredicate::eq, itemOf(numbers[i]), worker));
    self = choose(isOwn, numbers[i], self);
    other = choose(isOwn, others[i], other);
    Value isTooMany = arith::AndIOp::create(
        b, exists,
        isBelow(bound, add(b, unitsOf(numbers[i]), unitsOf(others[i]))));
    tooMany = i ? arith::OrIOp::create(b, tooMany, isTooMany) : isTooMany;
  }
  tooMany = LaneAnyOp::create(b, tooMany);
  self = sumOfLanes(self);
  other = sumOfLanes(other);
  Value isLarger = isBelow(other, self), exists = isBelow(worker, many);
  Value large = unitsOf(larger(self, other)),
        small = unitsOf(least(self, other));
  Value isCut = arith::AndIOp::create(
      b, exists,
      isBelow(add(b, pause, pause), arith::SubIOp::create(b, large, small)));
  // Who joins both has a little less.
  Value half =
      arith::ShRUIOp::create(b, add(b, add(b, large, small), one), one);
  half = arith::SubIOp::create(
      b, half, arith::ShRUIOp::create(b, pause, lower.i32(2)).getResult());
  Value none = lower.i32(SharePairsOp::kNone);
  Value takesRest = choose(isLarger, zero, choose(isCut, one, zero));
  Value hasOwn = arith::AndIOp::create(
      b, exists, compare(arith::CmpIPredicate::ne, unitsOf(self), zero));
  Values paired{size,
                worker,
                zero,
                add(b, worker, add(b, takesRest, choose(hasOwn, one, zero))),
                choose(compare(arith::CmpIPredicate::ne, takesRest, zero),
                       itemOf(other), none),
                choose(isCut, half, none)};
  for (size_t i = 0; i < paired.size(); ++i)
    paired[i] = choose(tooMany, share[i], paired[i]);
  return paired;
}

Values WorkShare::pairs(const Items &own, Value many, Values share) {
  share.append({zero, zero});
  auto both = [&](Value x, Value y) -> Value {
    return arith::AndIOp::create(b, x, y);
  };
  Value isOne = both(compare(arith::CmpIPredicate::sge, many, items),
                     isBelow(many, add(b, items, items)));
  isOne = both(isOne, compare(arith::CmpIPredicate::sle, many,
                              lower.i32(SharePairsOp::kMostWorkers)));
  return ifAll(isOne, share, [&] {
    // A worker without an item has one of no units.
    Items all = own;
    Value first = mul(b, lower.laneInWarp(), lower.i32(kItemsAtOnce)), differs;
    for (auto [i, item] : llvm::enumerate(all)) {
      item.first = isBelow(add(b, first, lower.i32(i)), many);
      Value isOther = both(
          item.first, compare(arith::CmpIPredicate::ne, item.second, size));
      differs = i ? arith::OrIOp::create(b, differs, isOther) : isOther;
    }
    return ifAll(LaneAnyOp::create(b, differs), share,
                 [&] { return pairsOf(all, many, share); });
  });
}

//===----------------------------------------------------------------------===//
// The ops
//===----------------------------------------------------------------------===//

/// What one warp of a block finds, told to all through LDS: beside each other
/// many would take as long again as they wait for memory, and one that no other
/// does makes barriers ready meanwhile.
static FailureOr<Values> shareOfBlock(LaneContext &lower, Operation *op,
                                      const ShareOperands &operands) {
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
    FailureOr<Values> share = WorkShare(lower, op, operands).emit();
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

static LogicalResult lowerShare(LaneContext &lower, Operation *op,
                                const ShareOperands &operands) {
  if (lower.hasRings() && op->getParentOfType<TeamOp>())
    return op->emitOpError() << "has no per-lane form in a team beside "
                                "kvbuffer.ring: the lanes of a warp look at "
                                "the items together; expected it before the "
                                "teams";
  bool byOne = lower.hasRings() && isAheadOfTeams(op) &&
               lower.blockThreads() > lower.chip().waveSize;
  FailureOr<Values> share = byOne ? shareOfBlock(lower, op, operands)
                                  : WorkShare(lower, op, operands).emit();
  if (failed(share))
    return failure();
  for (auto [result, value] : llvm::zip_equal(op->getResults(), *share))
    lower.setLanes(result, {lower.toIndex(value)});
  return success();
}

LogicalResult kvbuf::lowerOp(LaneContext &lower, ShareWorkOp op) {
  return lowerShare(lower, op,
                    {op.getWorker(), op.getWorkers(), op.getItems(),
                     op.getLeast(), /*pause=*/Value()});
}

LogicalResult kvbuf::lowerOp(LaneContext &lower, SharePairsOp op) {
  return lowerShare(lower, op,
                    {op.getWorker(), op.getWorkers(), op.getItems(),
                     op.getLeast(), op.getPause()});
}
