//===- VisibleBounds.cpp - Ranges of keys by functions ----*- C++ -*- ===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VisibleBounds.h"
#include "RegionValues.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace kvbuf;

/// The arguments of a region of visibility; captures come behind them.
enum VisibleArgument : unsigned { kBatch, kHead, kRow, kPosition, kKey };

/// Sums of rows and such numbers fit 32 bits.
static constexpr int64_t kFarNumber = int64_t(1) << 30;

/// Whether a value is the same for all rows and keys, and can be computed
/// whether there are keys or not.
static bool isOfSequence(Value value) {
  value = stripCasts(value);
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getArgNumber() == kBatch ||
           argument.getArgNumber() == kHead;
  // Of what is a sequence and a head in one.
  Operation *op = value.getDefiningOp();
  if (isa<arith::DivUIOp, arith::RemUIOp>(op))
    return isOfSequence(op->getOperand(0)) &&
           getConstantIntValue(op->getOperand(1)).value_or(0) > 0;
  auto load = dyn_cast<memref::LoadOp>(op);
  // A tensor of keys may be empty: a number by itself says nothing of its size.
  return load && isa<BlockArgument>(load.getMemRef()) &&
         llvm::all_of(llvm::enumerate(load.getIndices()), [&](auto index) {
           return isOfSequence(index.value()) ||
                  (!load.getMemRefType().isDynamicDim(index.index()) &&
                   getConstantIntValue(index.value()));
         });
}

/// Whether a value is a row, its position, or what these are apart: the keys
/// before those of the queries.
static bool isPlace(Value value) {
  auto isArgument = [](Value value, unsigned number) {
    auto argument = dyn_cast<BlockArgument>(stripCasts(value));
    return argument && argument.getArgNumber() == number;
  };
  if (isArgument(value, kRow) || isArgument(value, kPosition))
    return true;
  auto sub = stripCasts(value).getDefiningOp<arith::SubIOp>();
  return sub && isArgument(sub.getLhs(), kPosition) &&
         isArgument(sub.getRhs(), kRow);
}

static bool growsWithRows(Value value);

/// A read of a tensor whose numbers rise along its last dimension, of numbers
/// of the sequence and the head; the last index may be anything. Null for
/// others.
static memref::LoadOp risingRead(Value value) {
  auto load = stripCasts(value).getDefiningOp<memref::LoadOp>();
  auto inside = load ? dyn_cast<BlockArgument>(load.getMemRef()) : nullptr;
  auto op = inside ? dyn_cast<AttentionOp>(inside.getOwner()->getParentOp())
                   : nullptr;
  if (!op || load.getIndices().empty() ||
      !llvm::all_of(load.getIndices().drop_back(), isOfSequence) ||
      !isa<IntegerType>(load.getType()))
    return nullptr;
  unsigned behind =
      inside.getOwner()->getNumArguments() - inside.getArgNumber();
  auto argument =
      dyn_cast<BlockArgument>(op.getCaptures().take_back(behind)[0]);
  auto func =
      argument
          ? dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp())
          : nullptr;
  return func && func.getArgAttr(argument.getArgNumber(), kRisingAttr)
             ? load
             : nullptr;
}

/// The same at a place that grows with the row, as what is read then does.
static memref::LoadOp risingReadOfRow(Value value) {
  memref::LoadOp load = risingRead(value);
  return load && growsWithRows(load.getIndices().back()) ? load : nullptr;
}

/// Whether a value grows with the row, or is the same for all rows; it follows
/// from no key.
static bool growsWithRows(Value value) {
  value = stripCasts(value);
  if (isOfSequence(value) || isPlace(value) || risingReadOfRow(value))
    return true;
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getArgNumber() == kRow ||
           argument.getArgNumber() == kPosition;
  auto isNear = [](Value number) {
    std::optional<int64_t> constant = getConstantIntValue(number);
    return constant && std::abs(*constant) < kFarNumber;
  };
  if (isNear(value))
    return true;
  Operation *op = value.getDefiningOp();
  if (isa<arith::MinSIOp, arith::MaxSIOp>(op))
    return growsWithRows(op->getOperand(0)) && growsWithRows(op->getOperand(1));
  // A row and a number: what is read may be of any size.
  auto isRow = [](Value row) {
    auto argument = dyn_cast<BlockArgument>(stripCasts(row));
    return argument && (argument.getArgNumber() == kRow ||
                        argument.getArgNumber() == kPosition);
  };
  if (isa<arith::AddIOp>(op))
    return (isRow(op->getOperand(0)) && isNear(op->getOperand(1))) ||
           (isNear(op->getOperand(0)) && isRow(op->getOperand(1)));
  return isa<arith::SubIOp>(op) && isRow(op->getOperand(0)) &&
         isNear(op->getOperand(1));
}

namespace {
/// A comparison that shows the keys before a number plus `more`, or from it on;
/// of `beyond` not that one, or that one, too: the bound is the number and one.
struct KeyBound {
  Value number;
  int64_t more;
  bool isEnd, beyond;
};
} // namespace

static std::optional<KeyBound> keyBoundOf(Value condition) {
  auto cmp = condition.getDefiningOp<arith::CmpIOp>();
  if (!cmp)
    return std::nullopt;
  auto isKey = [](Value value) {
    auto argument = dyn_cast<BlockArgument>(stripCasts(value));
    return argument && argument.getArgNumber() == kKey;
  };
  using P = arith::CmpIPredicate;
  P predicate = cmp.getPredicate();
  bool isLess = predicate == P::slt || predicate == P::sle,
       isMore = predicate == P::sgt || predicate == P::sge;
  if (!isLess && !isMore)
    return std::nullopt;
  // The key, or how far it is behind a place, which is compared with a number.
  auto boundBy = [&](Value key, Value number) -> std::optional<KeyBound> {
    if (isKey(key) && growsWithRows(number))
      return KeyBound{number, /*more=*/0, false, false};
    auto sub = stripCasts(key).getDefiningOp<arith::SubIOp>();
    std::optional<int64_t> more = getConstantIntValue(number);
    if (sub && isKey(sub.getLhs()) && isPlace(sub.getRhs()) && more &&
        std::abs(*more) < kFarNumber)
      return KeyBound{sub.getRhs(), *more, false, false};
    return std::nullopt;
  };
  bool isLeft = true;
  std::optional<KeyBound> bound = boundBy(cmp.getLhs(), cmp.getRhs());
  if (!bound) {
    isLeft = false;
    bound = boundBy(cmp.getRhs(), cmp.getLhs());
  }
  if (!bound)
    return std::nullopt;
  bool isStrict = predicate == P::slt || predicate == P::sgt;
  bound->isEnd = isLess == isLeft;
  bound->beyond = bound->isEnd != isStrict;
  return bound;
}

/// The reads, of the row and of the key, that a condition compares, if it shows
/// the keys whose number is the row's: where numbers rise, these lie side by
/// side.
static std::pair<memref::LoadOp, memref::LoadOp> equalsOf(Value condition) {
  auto cmp = condition.getDefiningOp<arith::CmpIOp>();
  if (!cmp || cmp.getPredicate() != arith::CmpIPredicate::eq)
    return {};
  auto isByKey = [](memref::LoadOp load) {
    auto key = dyn_cast<BlockArgument>(stripCasts(load.getIndices().back()));
    return key && key.getArgNumber() == kKey;
  };
  for (auto [own, other] : {std::pair(cmp.getLhs(), cmp.getRhs()),
                            std::pair(cmp.getRhs(), cmp.getLhs())}) {
    memref::LoadOp ofRow = risingReadOfRow(own), ofKey = risingRead(other);
    if (ofRow && ofKey && isByKey(ofKey) &&
        ofRow.getMemRef() == ofKey.getMemRef() &&
        llvm::equal(ofRow.getIndices().drop_back(),
                    ofKey.getIndices().drop_back()))
      return {ofRow, ofKey};
  }
  return {};
}

/// Whether a condition shows keys from a number on.
static bool hasStart(Value condition) {
  if (equalsOf(condition).first)
    return true;
  if (std::optional<KeyBound> bound = keyBoundOf(condition))
    return !bound->isEnd;
  auto both = condition.getDefiningOp<arith::AndIOp>();
  return both && (hasStart(both.getLhs()) || hasStart(both.getRhs()));
}

/// Whether a condition says something of where keys are that are shown or
/// hidden; other conditions that it joins may say anything.
static bool isBounded(Value condition) {
  if (keyBoundOf(condition) || equalsOf(condition).first)
    return true;
  Operation *op = condition.getDefiningOp();
  if (!op || !isa<arith::AndIOp, arith::OrIOp>(op) ||
      (!isBounded(op->getOperand(0)) && !isBounded(op->getOperand(1))))
    return false;
  // What lies before an end or behind a start has a hole.
  return isa<arith::AndIOp>(op) ||
         (!hasStart(op->getOperand(0)) && !hasStart(op->getOperand(1)));
}

bool kvbuf::boundsKeys(AttentionOp op, int64_t group) {
  // Rows of several heads have bounds of their own where the head counts.
  return !op.getVisible().empty() && !op.getBlockMaskAttr() &&
         (group == 1 || op.getVisible().getArgument(kHead).use_empty()) &&
         isBounded(
             cast<YieldOp>(op.getVisible().front().getTerminator()).getValue());
}

/// Whether the keys that a condition shows may end before the sequence does
/// (`endOfKeys`).
static bool hasEnd(Value condition) {
  if (std::optional<KeyBound> bound = keyBoundOf(condition))
    return bound->isEnd;
  if (equalsOf(condition).first)
    return true;
  if (!isBounded(condition))
    return false;
  Operation *op = condition.getDefiningOp();
  bool lhs = hasEnd(op->getOperand(0)), rhs = hasEnd(op->getOperand(1));
  return isa<arith::AndIOp>(op) ? lhs || rhs : lhs && rhs;
}

bool kvbuf::boundsEnds(AttentionOp op) {
  if (!boundsKeys(op))
    return false;
  Value condition =
      cast<YieldOp>(op.getVisible().front().getTerminator()).getValue();
  return hasStart(condition) || hasEnd(condition);
}

static bool startsAreOfRows(Value condition) {
  if (!hasStart(condition) || equalsOf(condition).first)
    return true;
  if (std::optional<KeyBound> bound = keyBoundOf(condition))
    return risingReadOfRow(bound->number) &&
           !isOfSequence(stripCasts(bound->number));
  Operation *op = condition.getDefiningOp();
  return startsAreOfRows(op->getOperand(0)) &&
         startsAreOfRows(op->getOperand(1));
}

bool kvbuf::startsAreOfRows(AttentionOp op) {
  return ::startsAreOfRows(
      cast<YieldOp>(op.getVisible().front().getTerminator()).getValue());
}

/// `value`, of any integer type, as an index from -1 to `keys`: what is read
/// may be of any size, and indices may have 32 bits.
static Value withinKeys(ImplicitLocOpBuilder &b, Value value, Value keys) {
  Type type = value.getType();
  Value least = arith::ConstantIndexOp::create(b, -1), most = keys;
  if (type.isInteger(64)) {
    least = arith::ConstantIntOp::create(b, type, -1);
    most = arith::IndexCastOp::create(b, type, keys);
  } else if (!type.isIndex()) {
    value = arith::IndexCastOp::create(b, b.getIndexType(), value);
  }
  value = arith::MinSIOp::create(b, value, most);
  value = arith::MaxSIOp::create(b, value, least);
  if (type.isInteger(64))
    value = arith::IndexCastOp::create(b, b.getIndexType(), value);
  return value;
}

/// What `build` makes, of some types, where there are keys, which tensors of
/// keys hold nothing without; else 0.
static SmallVector<Value> ifKeys(ImplicitLocOpBuilder &b, Value keys,
                                 TypeRange types,
                                 function_ref<SmallVector<Value>()> build) {
  Value zero = arith::ConstantIndexOp::create(b, 0);
  Value some = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, keys, zero);
  auto branch = scf::IfOp::create(b, types, some, /*addThenBlock=*/true,
                                  /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.elseBlock());
  SmallVector<Value> zeros;
  for (Type type : types)
    zeros.push_back(arith::ConstantOp::create(b, b.getZeroAttr(type)));
  scf::YieldOp::create(b, zeros);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, build());
  return branch.getResults();
}

/// An index of that kind.
static Value ifKeys(ImplicitLocOpBuilder &b, Value keys,
                    function_ref<Value()> build) {
  return ifKeys(b, keys, TypeRange{b.getIndexType()},
                [&] { return SmallVector<Value>{build()}; })
      .front();
}

namespace {
/// Reads what a tensor of numbers that rise has at the last key of tiles of
/// `size` keys.
class TileEnds {
public:
  /// `last`: no later key is read.
  TileEnds(ImplicitLocOpBuilder &b, memref::LoadOp ofKey, Value last,
           IRMapping &known, int64_t size)
      : b(b), tensor(known.lookup(ofKey.getMemRef())), last(last), size(size) {
    for (Value index : ofKey.getIndices().drop_back())
      at.push_back(copyValue(b, index, known));
    at.push_back(last);
  }
  Value read(Value tile) {
    if (size > 1) {
      tile = arith::MulIOp::create(b, tile, number(size));
      tile = arith::AddIOp::create(b, tile, number(size - 1));
    }
    at.back() = arith::MinSIOp::create(b, tile, last);
    return memref::LoadOp::create(b, tensor, at);
  }
  /// The number of the last key before the `count` tiles before `tile`, or that
  /// of the first key.
  Value readBefore(Value tile, int64_t count) {
    Value end = arith::MulIOp::create(b, tile, number(size));
    end = arith::SubIOp::create(b, end, number(count * size + 1));
    at.back() = arith::MaxSIOp::create(b, end, number(0));
    return memref::LoadOp::create(b, tensor, at);
  }
  /// The number of the first key.
  Value readFirst() {
    at.back() = number(0);
    return memref::LoadOp::create(b, tensor, at);
  }
  Value number(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }

  ImplicitLocOpBuilder &b;

private:
  Value tensor, last;
  SmallVector<Value> at;
  int64_t size;
};

/// Numbers that a step of a search reads at once: all take the time of one. The
/// first step reads those of fewer tiles before a tile's first row, as many as
/// a team that moves tiles has registers for (15 left 28 bytes in memory at 256
/// columns), and those of some tiles from that row on.
constexpr int64_t kReads = 15, kNearReads = 7, kNextTiles = 4;
} // namespace

/// The first of the tiles from `lo` to `hi` whose last key's number is not
/// below `least`, or (`beyond`) is above it; `hi` if there is none.
static Value findTile(TileEnds &ends, Value least, bool beyond, Value lo,
                      Value hi) {
  ImplicitLocOpBuilder &b = ends.b;
  constexpr int64_t parts = kReads + 1;
  Type index = b.getIndexType();
  auto loop =
      scf::WhileOp::create(b, TypeRange{index, index}, ValueRange{lo, hi});
  OpBuilder::InsertionGuard guard(b);
  Block *before = b.createBlock(&loop.getBefore(), {}, {index, index},
                                {b.getLoc(), b.getLoc()});
  Value more =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                            before->getArgument(0), before->getArgument(1));
  scf::ConditionOp::create(b, more, before->getArguments());
  Block *body = b.createBlock(&loop.getAfter(), {}, {index, index},
                              {b.getLoc(), b.getLoc()});
  Value from = body->getArgument(0), upto = body->getArgument(1);
  Value width = arith::SubIOp::create(b, upto, from);
  Value step = arith::CeilDivUIOp::create(b, width, ends.number(parts));
  Value last = arith::SubIOp::create(b, upto, ends.number(1));
  // Parts end before the number that is looked for, or behind it from one on.
  Value end = arith::SubIOp::create(b, from, ends.number(1)),
        count = ends.number(0);
  for (int64_t part = 1; part < parts; ++part) {
    end = arith::AddIOp::create(b, end, step);
    Value read = ends.read(arith::MinSIOp::create(b, end, last));
    Value isBefore = arith::CmpIOp::create(
        b, beyond ? arith::CmpIPredicate::sle : arith::CmpIPredicate::slt, read,
        least);
    count = arith::SelectOp::create(b, isBefore, ends.number(part), count);
  }
  Value next = arith::MinSIOp::create(
      b, upto,
      arith::AddIOp::create(b, from,
                            arith::MulIOp::create(b, count, step).getResult())
          .getResult());
  // The number that ends the part after those before is none of them, but
  // behind all of them nobody has asked.
  Value all = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, count,
                                    ends.number(parts - 1));
  Value stop = arith::AddIOp::create(
      b, next, arith::SubIOp::create(b, step, ends.number(1)).getResult());
  stop = arith::SelectOp::create(b, all, upto,
                                 arith::MinSIOp::create(b, upto, stop));
  scf::YieldOp::create(b, ValueRange{next, stop});
  b.setInsertionPointAfter(loop);
  return loop.getResult(0);
}

/// Where the first of the tiles up to `tile` lies whose last key's number is
/// not below `least`: from a tile to another one. Most begin not far from the
/// row: the nearest tiles are asked one by one, then some three times as far.
/// The first key answers for tiles that there are not: all are after it.
static std::pair<Value, Value> nearTiles(TileEnds &ends, Value least,
                                         Value tile) {
  ImplicitLocOpBuilder &b = ends.b;
  constexpr int64_t near = 5;
  Value zero = ends.number(0), lo = zero, hi = tile;
  SmallVector<std::pair<Value, Value>> probes;
  for (int64_t i = 1, distance = 0; i <= kNearReads; ++i) {
    distance = i <= near ? i : 3 * distance;
    Value at = arith::SubIOp::create(b, tile, ends.number(distance));
    Value isBefore =
        arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                              ends.readBefore(tile, distance - 1), least);
    hi = arith::SelectOp::create(b, isBefore, hi, at);
    probes.push_back({isBefore, at});
  }
  for (auto [isBefore, at] : llvm::reverse(probes)) {
    Value next = arith::AddIOp::create(b, at, ends.number(1));
    lo = arith::SelectOp::create(b, isBefore, next, lo);
  }
  return {arith::MaxSIOp::create(b, lo, zero),
          arith::MaxSIOp::create(b, hi, zero)};
}

/// The same of the tiles from `tile` up to `last`, of which the first `count`
/// are asked.
static std::pair<Value, Value>
nextTiles(TileEnds &ends, Value least, Value tile, Value last, int64_t count) {
  ImplicitLocOpBuilder &b = ends.b;
  Value lo = tile, hi = last;
  using P = arith::CmpIPredicate;
  for (int64_t i = 0; i < count; ++i) {
    Value at = arith::AddIOp::create(b, tile, ends.number(i));
    Value isBefore = arith::AndIOp::create(
        b, arith::CmpIOp::create(b, P::slt, at, last).getResult(),
        arith::CmpIOp::create(b, P::slt, ends.read(at), least).getResult());
    Value next = arith::AddIOp::create(b, at, ends.number(1));
    lo = arith::SelectOp::create(b, isBefore, next, lo);
    // Behind them nobody has asked.
    if (i + 1 == count)
      hi = arith::SelectOp::create(b, isBefore, last, lo);
  }
  return {lo, hi};
}

namespace {
/// A row's number among those that rise, and the place where it is read, up to
/// the number of keys.
struct RowNumber {
  Value own, at;
};

/// What is known of a tile's first and last rows where bounds are asked for,
/// and where the keys begin that conditions show to them: these are looked for
/// at once.
struct TileRows {
  IRMapping first, last;
  int64_t rows;
  llvm::DenseMap<Value, std::pair<Value, Value>> starts;
};
} // namespace

/// The number of the row that `known` has; where there are keys.
static RowNumber numberOf(ImplicitLocOpBuilder &b, memref::LoadOp ofRow,
                          Value keys, IRMapping &known) {
  Value own = copyValue(b, ofRow.getResult(), known);
  Value at = copyValue(b, ofRow.getIndices().back(), known);
  return {own, arith::MinSIOp::create(b, at, keys)};
}

/// Where the keys end whose number is that of the row that `known` has.
static Value endOfEqual(ImplicitLocOpBuilder &b, Value condition, Value keys,
                        const IRMapping &known) {
  auto [ofRow, ofKey] = equalsOf(condition);
  memref::LoadOp row = ofRow, key = ofKey;
  return ifKeys(b, keys, [&]() -> Value {
    // What is copied here is not there behind.
    IRMapping inside(known);
    RowNumber number = numberOf(b, row, keys, inside);
    Value last = arith::SubIOp::create(
        b, keys, arith::ConstantIndexOp::create(b, 1).getResult());
    TileEnds ends(b, key, last, inside, /*size=*/1);
    return findTile(ends, number.own, /*beyond=*/true, number.at, keys);
  });
}

/// Where those begin, known to the tile of `tileKeys` keys, of a tile's first
/// row and its last one: there where the first row's do, if both have one
/// number, or else behind the first row. What is read first does not wait for
/// each other: rows' numbers, those of the tiles before the first row and
/// between the rows.
static std::pair<Value, Value> startsOfEqual(ImplicitLocOpBuilder &b,
                                             Value condition, Value keys,
                                             TileRows &rows, int64_t tileKeys) {
  auto [ofRow, ofKey] = equalsOf(condition);
  memref::LoadOp row = ofRow, key = ofKey;
  Type own = row.getType(), index = b.getIndexType(), bit = b.getI1Type();
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, value);
  };
  Value size = number(tileKeys);
  SmallVector<Value> read =
      ifKeys(b, keys, {own, own, bit, index, index, index, index}, [&] {
        IRMapping first(rows.first), last(rows.last);
        RowNumber a = numberOf(b, row, keys, first),
                  z = numberOf(b, row, keys, last);
        TileEnds ends(b, key, arith::SubIOp::create(b, keys, number(1)), first,
                      tileKeys);
        // Keys that begin with the row's number begin with a tile.
        Value isAll = arith::CmpIOp::create(b, arith::CmpIPredicate::sge,
                                            ends.readFirst(), a.own);
        // All tiles before that of the place are whole.
        Value tile = arith::DivUIOp::create(b, a.at, size),
              upto = arith::DivUIOp::create(b, z.at, size);
        auto [lo, hi] = nearTiles(ends, a.own, tile);
        auto [nextLo, nextHi] = nextTiles(
            ends, z.own, tile, upto,
            std::min(kNextTiles,
                     llvm::divideCeilSigned(rows.rows - 1, tileKeys) + 1));
        return SmallVector<Value>{a.own, z.own, isAll, lo, hi, nextLo, nextHi};
      });
  // Without keys there is nothing to look for.
  IRMapping first(rows.first);
  TileEnds ends(b, key, arith::SubIOp::create(b, keys, number(1)), first,
                tileKeys);
  auto find = [&](Value own, Value lo, Value hi) -> Value {
    Value tile = findTile(ends, own, /*beyond=*/false, lo, hi);
    return arith::MulIOp::create(b, tile, size);
  };
  // Any key of the tile may be the first; not all are sure to be seen.
  auto within = [&](Value tile) -> Value {
    return arith::AddIOp::create(b, tile, number(tileKeys > 1 ? 1 : 0));
  };
  Value start = find(read[0], read[3], read[4]),
        startsWithin =
            arith::SelectOp::create(b, read[2], number(0), within(start));
  Value same =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, read[0], read[1]);
  Value next = within(find(read[1], read[5], read[6]));
  return {arith::SelectOp::create(b, read[2], number(0), start),
          arith::SelectOp::create(b, same, startsWithin, next)};
}

/// What a value is before it is made an index, whose bits may be fewer, or is
/// widened: `withinKeys` bounds it as it was read.
static Value beforeWidening(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::ExtSIOp>(op) &&
        !(isa<arith::IndexCastOp>(op) && value.getType().isIndex()))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// The bound of a comparison for the row that `known` has, up to `keys`.
static Value boundOf(ImplicitLocOpBuilder &b, const KeyBound &bound, Value keys,
                     IRMapping &known, bool inside = false) {
  if (risingReadOfRow(bound.number) &&
      !isOfSequence(stripCasts(bound.number)) && !inside)
    return ifKeys(b, keys, [&] {
      IRMapping there(known);
      return boundOf(b, bound, keys, there, /*inside=*/true);
    });
  Value value = copyValue(b, beforeWidening(bound.number), known);
  if (bound.more) {
    if (!value.getType().isIndex())
      value = arith::IndexCastOp::create(b, b.getIndexType(), value);
    value = arith::AddIOp::create(
        b, value, arith::ConstantIndexOp::create(b, bound.more).getResult());
  }
  value = withinKeys(b, value, keys);
  if (bound.beyond)
    value = arith::AddIOp::create(
        b, value, arith::ConstantIndexOp::create(b, 1).getResult());
  return value;
}

/// Whether an index is a row's position, or a later one.
static bool isFromPosition(Value index) {
  index = stripCasts(index);
  if (auto argument = dyn_cast<BlockArgument>(index))
    return argument.getArgNumber() == kPosition;
  auto max = index.getDefiningOp<arith::MaxSIOp>();
  return max && (isFromPosition(max.getLhs()) || isFromPosition(max.getRhs()));
}

/// Where the keys end that a condition shows to the row that `known` has;
/// `open` for conditions that do not say. `causal`: a mask hides those behind
/// the row's position, as which those of a later number lie where numbers rise.
static Value endOfKeys(ImplicitLocOpBuilder &b, Value condition, Value keys,
                       Value open, bool causal, IRMapping &known) {
  if (std::optional<KeyBound> bound = keyBoundOf(condition))
    return bound->isEnd ? boundOf(b, *bound, keys, known) : keys;
  if (!isBounded(condition))
    return open;
  if (memref::LoadOp ofRow = equalsOf(condition).first)
    return causal && isFromPosition(ofRow.getIndices().back())
               ? keys
               : endOfEqual(b, condition, keys, known);
  Operation *op = condition.getDefiningOp();
  Value lhs = endOfKeys(b, op->getOperand(0), keys, open, causal, known),
        rhs = endOfKeys(b, op->getOperand(1), keys, open, causal, known);
  if (isa<arith::AndIOp>(op))
    return arith::MinSIOp::create(b, lhs, rhs);
  return arith::MaxSIOp::create(b, lhs, rhs);
}

/// Where they begin for the tile's first row or its last one; null: nothing
/// says so.
static Value startOfKeys(ImplicitLocOpBuilder &b, Value condition, Value keys,
                         TileRows &rows, bool isFirst, int64_t tileKeys) {
  if (!isBounded(condition) || !hasStart(condition))
    return {};
  if (std::optional<KeyBound> bound = keyBoundOf(condition))
    return arith::MinSIOp::create(
        b, boundOf(b, *bound, keys, isFirst ? rows.first : rows.last), keys);
  if (equalsOf(condition).first) {
    if (!rows.starts.contains(condition))
      rows.starts[condition] =
          startsOfEqual(b, condition, keys, rows, tileKeys);
    auto [first, last] = rows.starts.lookup(condition);
    return isFirst ? first : last;
  }
  Operation *op = condition.getDefiningOp();
  Value lhs = startOfKeys(b, op->getOperand(0), keys, rows, isFirst, tileKeys),
        rhs = startOfKeys(b, op->getOperand(1), keys, rows, isFirst, tileKeys);
  return lhs && rhs ? arith::MaxSIOp::create(b, lhs, rhs) : lhs ? lhs : rhs;
}

VisibleBounds kvbuf::visibleBounds(ImplicitLocOpBuilder &b, AttentionOp op,
                                   const IRMapping &args, const ScoreTile &at,
                                   int64_t rows, int64_t tileKeys) {
  Region &region = op.getVisible();
  Value condition = cast<YieldOp>(region.front().getTerminator()).getValue();
  Value shift = arith::SubIOp::create(b, at.keys, at.queries);
  auto mapOf = [&](Value row) {
    IRMapping known;
    known.map(region.getArgument(kBatch), at.batch);
    known.map(region.getArgument(kHead), at.head);
    known.map(region.getArgument(kRow), row);
    known.map(region.getArgument(kPosition),
              arith::AddIOp::create(b, row, shift).getResult());
    for (auto [inside, capture] : llvm::zip_equal(
             region.getArguments().take_back(op.getCaptures().size()),
             op.getCaptures()))
      known.map(inside, args.lookup(capture));
    return known;
  };
  // Ends and starts grow with the row.
  Value last = arith::AddIOp::create(
      b, at.query, arith::ConstantIndexOp::create(b, rows - 1).getResult());
  Value final = arith::SubIOp::create(
      b, at.queries, arith::ConstantIndexOp::create(b, 1).getResult());
  IRMapping ofLast = mapOf(arith::MinSIOp::create(b, last, final));
  VisibleBounds bounds;
  MaskAttr mask = op.getMaskValue();
  bool causal = mask.boundsRight() && mask.rightReach() <= 0;
  bounds.hi =
      endOfKeys(b, condition, at.keys, /*open=*/at.keys, causal, ofLast);
  TileRows all;
  all.first = mapOf(at.query);
  all.last = ofLast;
  all.rows = rows;
  Value none = arith::ConstantIndexOp::create(b, 0);
  bounds.fullHi =
      endOfKeys(b, condition, at.keys, /*open=*/none, causal, all.first);
  bounds.lo =
      startOfKeys(b, condition, at.keys, all, /*isFirst=*/true, tileKeys);
  bounds.fullLo =
      startOfKeys(b, condition, at.keys, all, /*isFirst=*/false, tileKeys);
  return bounds;
}
