//===- VisibleLists.cpp - A kernel that lists visible blocks --------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A block of threads has a block of queries. 64 threads, one wave or two, ask
/// about a block of keys: a thread has some rows, and all keys, so that what
/// follows from its rows it computes once; or, where the region reads a tensor
/// by both, some keys and all rows, so that neighbours read neighbours. Which
/// waves see something and which hide something meets in LDS, in slots of two
/// rounds, so that there is one barrier a round. Thread 0 appends, in ascending
/// order.
///
//===----------------------------------------------------------------------===//

#include "VisibleLists.h"
#include "kvbuffer/Dialect/KVBuffer/IR/SizeNames.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

/// Threads that share a block of keys, and those that have a word of LDS: a
/// wave of 64 writes two words, which are the same.
static constexpr int64_t kSharing = 64, kAskingWave = 32;
/// Blocks of keys of a round.
static constexpr int64_t kRound = kListThreads / kSharing;
static_assert(kListWords == 2 * kListThreads / kAskingWave);
/// What a word says: that something is visible, and that something is hidden.
static constexpr int64_t kSees = 1, kHides = 2;

/// What follows from `seeds` in a region, at last or on the way.
static llvm::DenseSet<Value> followersIn(Region &region, ValueRange seeds) {
  llvm::DenseSet<Value> found(seeds.begin(), seeds.end());
  // What an op holds comes after it; its results follow from what it yields.
  for (Operation &op : region.front())
    op.walk<WalkOrder::PreOrder>([&](Operation *inner) {
      if (llvm::none_of(inner->getOperands(),
                        [&](Value value) { return found.contains(value); }))
        return;
      for (; inner != region.getParentOp(); inner = inner->getParentOp())
        found.insert(inner->result_begin(), inner->result_end());
    });
  return found;
}

namespace {

/// Builds the kernel.
class ListProgram {
public:
  ListProgram(ImplicitLocOpBuilder &b, VisibleLists lists,
              const VisibleListOperands &operands)
      : b(b), lists(lists), captures(operands.captures), q(operands.q),
        k(operands.k), outputs(operands.outputs), words(operands.words) {}

  void build();

private:
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value sub(Value x, Value y) { return arith::SubIOp::create(b, x, y); }
  Value mul(Value x, Value y) { return arith::MulIOp::create(b, x, y); }
  Value least(Value x, Value y) { return arith::MinSIOp::create(b, x, y); }
  Value largest(Value x, Value y) { return arith::MaxSIOp::create(b, x, y); }
  Value compare(arith::CmpIPredicate predicate, Value x, Value y) {
    return arith::CmpIOp::create(b, predicate, x, y);
  }
  Value word(int64_t value) {
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
  }

  /// Sets which rows and keys there are, and which blocks of keys the mask
  /// leaves to the block of queries.
  void findRange();
  /// Whether threads have rows of their own, and not keys.
  bool findOwners();
  /// What a thread's rows and keys of block `number` say, as a word that is the
  /// same in all of a wave.
  Value askBlock(Value number);
  /// Copies what does not depend on `others`, for rows or keys of a thread.
  IRMapping ofOwn(Value own);
  /// Whether the query sees the key, by what `values` has of its thread's.
  Value isVisible(IRMapping values, Value other);
  /// Whether an op needs `others`, for itself or for what it holds.
  bool needsOthers(Operation &op) {
    return op
        .walk([&](Operation *inner) {
          return llvm::any_of(
                     inner->getOperands(),
                     [&](Value value) { return others.contains(value); })
                     ? WalkResult::interrupt()
                     : WalkResult::advance();
        })
        .wasInterrupted();
  }
  void mapRow(IRMapping &values, Value row);
  /// Thread 0 writes a round's blocks behind those that are there; the numbers
  /// of both lists then, which it alone knows.
  SmallVector<Value> append(Value base, Value slot, ValueRange counts);
  void storeIf(Value condition, Value value, Value list, ArrayRef<Value> at);

  ImplicitLocOpBuilder &b;
  VisibleLists lists;
  IRMapping captures;
  Value q, k;
  ArrayRef<Value> outputs;
  Value words;
  /// The thread and whether it is the first, the block of queries, its head and
  /// its sequence.
  Value thread, isFirst, block, head, batch;
  Value keys, shift, firstRow, endRow, firstBlock, endBlock, endKey;
  bool ownsRows = true;
  /// What needs the rows or keys that are not a thread's own.
  llvm::DenseSet<Value> others;
};

} // namespace

SmallVector<Attribute> VisibleLists::shape(bool isNumbers) {
  Builder b(op.getContext());
  auto number = [&](int64_t value) -> Attribute {
    return b.getI64IntegerAttr(value);
  };
  auto blocks = [&](StringRef size, int64_t each) -> Attribute {
    return SizeAttr::of(b.getContext(), "ceildiv",
                        {b.getStringAttr(size), number(each)});
  };
  MemRefType q = queries();
  SmallVector<Attribute> shape;
  if (batch().use_empty())
    shape.push_back(number(1));
  else if (q.isDynamicDim(0))
    shape.push_back(b.getStringAttr(kBatchSize));
  else
    shape.push_back(number(q.getDimSize(0)));
  shape.push_back(number(head().use_empty() ? 1 : op.getHeads()));
  shape.push_back(q.isDynamicDim(1)
                      ? blocks(kLongestQuerySize, rows)
                      : number(llvm::divideCeil(q.getDimSize(1), rows)));
  if (!isNumbers)
    shape.push_back(blocks(kKeysSize, keys));
  return shape;
}

void ListProgram::findRange() {
  thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
  isFirst = compare(arith::CmpIPredicate::eq, thread, constant(0));
  block = gpu::BlockIdOp::create(b, gpu::Dimension::x);
  head = gpu::BlockIdOp::create(b, gpu::Dimension::y);
  batch = gpu::BlockIdOp::create(b, gpu::Dimension::z);
  Value rows = memref::DimOp::create(b, q, 1);
  keys = CacheLengthOp::create(b, k, batch).getLength();
  shift = sub(keys, rows);
  firstRow = mul(block, constant(lists.rows));
  endRow = least(add(firstRow, constant(lists.rows)), rows);
  // What the mask hides of all rows is in no list.
  MaskAttr mask = lists.op.getMaskValue();
  Value zero = constant(0), wide = constant(lists.keys);
  firstBlock = zero;
  if (mask.boundsLeft()) {
    Value key = sub(add(firstRow, shift), constant(mask.getLeft()));
    firstBlock = arith::DivUIOp::create(b, largest(key, zero), wide);
  }
  Value end = keys;
  if (mask.boundsRight())
    end = largest(zero, least(keys, add(add(endRow, shift),
                                        constant(mask.rightReach()))));
  endBlock = arith::CeilDivUIOp::create(b, end, wide);
  endKey = least(keys, mul(endBlock, wide));
}

bool ListProgram::findOwners() {
  Region &region = lists.op.getVisible();
  llvm::DenseSet<Value> ofRow =
      followersIn(region, {lists.row(), lists.position()});
  llvm::DenseSet<Value> ofKey = followersIn(region, lists.key());
  auto contains = [](const llvm::DenseSet<Value> &set, ValueRange values) {
    return llvm::any_of(values,
                        [&](Value value) { return set.contains(value); });
  };
  bool readsByBoth = region
                         .walk([&](memref::LoadOp load) {
                           return contains(ofRow, load.getIndices()) &&
                                          contains(ofKey, load.getIndices())
                                      ? WalkResult::interrupt()
                                      : WalkResult::advance();
                         })
                         .wasInterrupted();
  others = readsByBoth ? ofRow : ofKey;
  return !readsByBoth;
}

void ListProgram::mapRow(IRMapping &values, Value row) {
  values.map(lists.row(), row);
  values.map(lists.position(), add(row, shift));
}

IRMapping ListProgram::ofOwn(Value own) {
  IRMapping values(captures);
  values.map(lists.batch(), batch);
  values.map(lists.head(), head);
  if (ownsRows)
    mapRow(values, own);
  else
    values.map(lists.key(), own);
  for (Operation &inner : lists.op.getVisible().front().without_terminator())
    if (!needsOthers(inner))
      b.clone(inner, values);
  return values;
}

Value ListProgram::isVisible(IRMapping values, Value other) {
  if (ownsRows)
    values.map(lists.key(), other);
  else
    mapRow(values, other);
  Block &region = lists.op.getVisible().front();
  for (Operation &inner : region.without_terminator())
    if (needsOthers(inner))
      b.clone(inner, values);
  Value visible =
      values.lookupOrDefault(cast<YieldOp>(region.getTerminator()).getValue());
  Value position = values.lookup(lists.position());
  MaskAttr mask = lists.op.getMaskValue();
  auto require = [&](arith::CmpIPredicate predicate, int64_t reach) {
    Value holds = compare(predicate, values.lookup(lists.key()),
                          add(position, constant(reach)));
    visible = arith::AndIOp::create(b, visible, holds);
  };
  if (mask.boundsRight())
    require(arith::CmpIPredicate::sle, mask.rightReach());
  if (mask.boundsLeft())
    require(arith::CmpIPredicate::sge, -mask.getLeft());
  return visible;
}

Value ListProgram::askBlock(Value number) {
  Value wide = constant(lists.keys), sharing = constant(kSharing);
  Value no = arith::ConstantOp::create(b, b.getBoolAttr(false));
  Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  Value firstKey = mul(number, wide), behind = add(firstKey, wide);
  Value lastKey = least(behind, endKey);
  Value lane = arith::RemUIOp::create(b, thread, sharing);
  Value begin = ownsRows ? firstRow : firstKey,
        end = ownsRows ? endRow : lastKey;
  // So many of a thread's at once; where there are fewer, the first counts
  // again, which changes nothing.
  int64_t together = std::clamp<int64_t>(
      llvm::divideCeil(ownsRows ? lists.rows : lists.keys, kSharing), 1, 4);
  auto byOwn = scf::ForOp::create(
      b, add(begin, lane), end, constant(kSharing * together),
      ValueRange{no, no}, [&](OpBuilder &, Location, Value own, ValueRange of) {
        SmallVector<IRMapping> values{ofOwn(own)};
        for (int64_t i = 1; i < together; ++i) {
          Value next = add(own, constant(i * kSharing));
          Value exists = compare(arith::CmpIPredicate::slt, next, end);
          values.push_back(
              ofOwn(arith::SelectOp::create(b, exists, next, own)));
        }
        auto byOther = scf::ForOp::create(
            b, ownsRows ? firstKey : firstRow, ownsRows ? lastKey : endRow,
            constant(1), of,
            [&](OpBuilder &, Location, Value other, ValueRange seen) {
              Value any = seen[0], hides = seen[1];
              for (const IRMapping &one : values) {
                Value visible = isVisible(one, other);
                any = arith::OrIOp::create(b, any, visible);
                Value hidden = arith::XOrIOp::create(b, visible, yes);
                hides = arith::OrIOp::create(b, hides, hidden);
              }
              scf::YieldOp::create(b, ValueRange{any, hides});
            });
        scf::YieldOp::create(b, byOther.getResults());
      });
  // A block that the last key cuts is not seen wholly.
  Value isCut = compare(arith::CmpIPredicate::sgt, behind, keys);
  Value hides = arith::OrIOp::create(b, byOwn.getResult(1), isCut);
  auto bit = [&](Value condition, int64_t value) -> Value {
    Value any = LaneAnyOp::create(b, condition);
    return arith::SelectOp::create(b, any, word(value), word(0));
  };
  Value sees = bit(byOwn.getResult(0), kSees);
  return arith::OrIOp::create(b, sees, bit(hides, kHides));
}

void ListProgram::storeIf(Value condition, Value value, Value list,
                          ArrayRef<Value> at) {
  auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  memref::StoreOp::create(b, value, list, at);
}

SmallVector<Value> ListProgram::append(Value base, Value slot,
                                       ValueRange counts) {
  auto branch = scf::IfOp::create(b, counts.getTypes(), isFirst,
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, counts);
  b.setInsertionPointToStart(branch.thenBlock());
  auto loop = scf::ForOp::create(
      b, constant(0), constant(kRound), constant(1), counts,
      [&](OpBuilder &, Location, Value i, ValueRange before) {
        // Two words of each block of keys.
        constexpr int64_t each = kSharing / kAskingWave;
        Value first = add(slot, mul(i, constant(each))), said;
        for (int64_t part = 0; part < each; ++part) {
          Value one = memref::LoadOp::create(
              b, words, ValueRange{add(first, constant(part))});
          said = said ? arith::OrIOp::create(b, said, one) : one;
        }
        Value number =
            arith::IndexCastOp::create(b, b.getI32Type(), add(base, i));
        SmallVector<Value> after;
        for (auto [list, value] :
             llvm::enumerate(ArrayRef<int64_t>{kSees | kHides, kSees})) {
          Value is = compare(arith::CmpIPredicate::eq, said, word(value));
          storeIf(is, number, outputs[2 * list + 1],
                  {batch, head, block, before[list]});
          Value more = add(before[list], constant(1));
          after.push_back(arith::SelectOp::create(b, is, more, before[list]));
        }
        scf::YieldOp::create(b, after);
      });
  scf::YieldOp::create(b, loop.getResults());
  return llvm::to_vector(ValueRange(branch.getResults()));
}

void ListProgram::build() {
  findRange();
  ownsRows = findOwners();
  Value zero = constant(0);
  Value group = arith::DivUIOp::create(b, thread, constant(kSharing));
  Value wave = arith::DivUIOp::create(b, thread, constant(kAskingWave));
  Value writes =
      compare(arith::CmpIPredicate::eq,
              arith::RemUIOp::create(b, thread, constant(kAskingWave)), zero);
  constexpr int64_t each = kListThreads / kAskingWave;
  auto rounds = scf::ForOp::create(
      b, firstBlock, endBlock, constant(kRound), ValueRange{zero, zero, zero},
      [&](OpBuilder &, Location, Value base, ValueRange state) {
        Value slot = state[2];
        Value said = askBlock(add(base, group));
        storeIf(writes, said, words, {add(slot, wave)});
        gpu::BarrierOp::create(b);
        SmallVector<Value> next = append(base, slot, state.take_front(2));
        next.push_back(sub(constant(each), slot));
        scf::YieldOp::create(b, next);
      });
  for (int64_t list : {0, 1})
    storeIf(
        isFirst,
        arith::IndexCastOp::create(b, b.getI32Type(), rounds.getResult(list)),
        outputs[2 * list], {batch, head, block});
}

void kvbuf::buildVisibleLists(ImplicitLocOpBuilder &b, VisibleLists lists,
                              const VisibleListOperands &operands) {
  ListProgram(b, lists, operands).build();
}
