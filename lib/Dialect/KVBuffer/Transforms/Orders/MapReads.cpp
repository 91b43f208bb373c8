//===- MapReads.cpp - What maps read, apart from them ---------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A function of scores that reads a tensor for each key awaits what it reads
// where scores become weights. Asked for before, it is on its way while other
// things are done. What is read of an element is an element of an accumulator
// then, whose words are numbers of 32 bits, of whatever type.
//
//===----------------------------------------------------------------------===//

#include "MapReads.h"
#include "kvbuffer/Dialect/KVBuffer/IR/FragmentSources.h"
#include "kvbuffer/Dialect/KVBuffer/IR/WordsOfColumns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace kvbuf;

namespace {
/// The reads of one loop's maps.
class MapReads {
public:
  MapReads(RewriterBase &rewriter, scf::ForOp loop)
      : rewriter(rewriter), loop(loop) {}

  SmallVector<Operation *> separate();

private:
  /// Whether a place follows from the row and the column of an element, and
  /// from what index arithmetic of the loop's body knows; `ofColumn` becomes
  /// true where it does from the column.
  bool isPlace(MapOp map, Value value, bool &ofColumn) const;
  /// Whether something outside of a map is there before anything is read.
  bool isEarly(Value value) const;
  SmallVector<memref::LoadOp> loadsOf(MapOp map) const;
  /// The types of what a block's maps read, in order; nothing where the sides
  /// of a branch read differently shaped tiles.
  std::optional<SmallVector<Type>> typesOf(Block &block) const;
  std::optional<SmallVector<Type>> typesOf(Operation &op) const;
  /// Reads at the insertion point what the maps in there read.
  void read(Operation &op, SmallVectorImpl<Value> &values);
  Value read(MapOp map, memref::LoadOp load);
  /// Gives the maps in there what was read, from the first of `values` on.
  void take(Operation &op, ArrayRef<Value> &values);

  RewriterBase &rewriter;
  mutable scf::ForOp loop;
};
} // namespace

/// What a map reads as elements of, in its result's shape.
static FragmentType wordsOf(MapOp map) {
  FragmentType type = map.getResult().getType();
  return FragmentType::get(map.getContext(), type.getRows(), type.getCols(),
                           Float32Type::get(map.getContext()),
                           kvbuf::Role::Acc);
}

bool MapReads::isEarly(Value value) const {
  Operation *def = value.getDefiningOp();
  Block *block = def ? def->getBlock() : nullptr;
  if (loop.isDefinedOutsideOfLoop(value))
    return true;
  if (!def)
    return cast<BlockArgument>(value).getOwner() == loop.getBody() &&
           value.getType().isIntOrIndex();
  return block == loop.getBody() &&
         isa<arith::ArithDialect>(def->getDialect()) &&
         llvm::all_of(def->getOperands(),
                      [&](Value operand) { return isEarly(operand); });
}

bool MapReads::isPlace(MapOp map, Value value, bool &ofColumn) const {
  if (!map.getBody().isAncestor(value.getParentRegion()))
    return isEarly(value);
  unsigned inputs = map.getInputs().size();
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    ofColumn |= argument.getArgNumber() > inputs;
    return argument.getArgNumber() >= inputs;
  }
  Operation *def = value.getDefiningOp();
  return !def->getNumRegions() && isPure(def) &&
         llvm::all_of(def->getOperands(), [&](Value operand) {
           return isPlace(map, operand, ofColumn);
         });
}

SmallVector<memref::LoadOp> MapReads::loadsOf(MapOp map) const {
  SmallVector<memref::LoadOp> loads;
  auto isThere = [&](Value coordinate) {
    return !coordinate || isEarly(coordinate);
  };
  // Lanes share out what is compared alone: each reads one word of it. What
  // products begin with would have to be there before them.
  if (!isThere(map.getRow()) || !isThere(map.getCol()) || hidesByWords(map) ||
      beginsProduct(map))
    return loads;
  for (auto load : map.getBody().getOps<memref::LoadOp>()) {
    Type type = load.getType();
    bool ofColumn = false;
    if ((type.isF32() || type.isInteger(32)) &&
        llvm::all_of(
            load->getOperands(),
            [&](Value operand) { return isPlace(map, operand, ofColumn); }) &&
        ofColumn)
      loads.push_back(load);
  }
  return loads;
}

std::optional<SmallVector<Type>> MapReads::typesOf(Operation &op) const {
  if (auto map = dyn_cast<MapOp>(op))
    return SmallVector<Type>(loadsOf(map).size(), wordsOf(map));
  auto branch = dyn_cast<scf::IfOp>(op);
  if (!branch || !branch.elseBlock() || !isEarly(branch.getCondition()))
    return SmallVector<Type>();
  std::optional<SmallVector<Type>> one = typesOf(*branch.thenBlock()),
                                   other = typesOf(*branch.elseBlock());
  if (!one || !other)
    return std::nullopt;
  if (one->size() < other->size())
    std::swap(one, other);
  if (ArrayRef<Type>(*one).take_front(other->size()) != ArrayRef<Type>(*other))
    return std::nullopt;
  return one;
}

std::optional<SmallVector<Type>> MapReads::typesOf(Block &block) const {
  SmallVector<Type> types;
  for (Operation &op : block.without_terminator()) {
    std::optional<SmallVector<Type>> more = typesOf(op);
    if (!more)
      return std::nullopt;
    llvm::append_range(types, *more);
  }
  return types;
}

Value MapReads::read(MapOp map, memref::LoadOp load) {
  Location loc = load.getLoc();
  FragmentType type = wordsOf(map);
  Value nothing =
      FragmentFillOp::create(rewriter, loc, type, rewriter.getF32FloatAttr(0));
  auto reads = MapOp::create(rewriter, loc, type, ValueRange{nothing},
                             map.getRow(), map.getCol());
  OpBuilder::InsertionGuard guard(rewriter);
  Type index = rewriter.getIndexType();
  Block *body = rewriter.createBlock(
      &reads.getBody(), {}, TypeRange{rewriter.getF32Type(), index, index},
      {loc, loc, loc});
  IRMapping values;
  Block &old = map.getBody().front();
  unsigned inputs = map.getInputs().size();
  for (unsigned i : {0, 1})
    values.map(old.getArgument(inputs + i), body->getArgument(1 + i));
  // In their order; what the load does not need is taken away later.
  for (Operation &inner : old) {
    if (&inner == load)
      break;
    bool ofColumn = false;
    if (llvm::all_of(inner.getResults(), [&](Value result) {
          return isPlace(map, result, ofColumn);
        }))
      rewriter.clone(inner, values);
  }
  Value word = rewriter.clone(*load, values)->getResult(0);
  if (!word.getType().isF32())
    word = arith::BitcastOp::create(rewriter, loc, rewriter.getF32Type(), word);
  YieldOp::create(rewriter, loc, word);
  return reads.getResult();
}

void MapReads::read(Operation &op, SmallVectorImpl<Value> &values) {
  if (auto map = dyn_cast<MapOp>(op)) {
    for (memref::LoadOp load : loadsOf(map))
      values.push_back(read(map, load));
    return;
  }
  SmallVector<Type> types = *typesOf(op);
  if (types.empty())
    return;
  auto branch = cast<scf::IfOp>(op);
  auto reads =
      scf::IfOp::create(rewriter, op.getLoc(), types, branch.getCondition(),
                        /*addThenBlock=*/true, /*addElseBlock=*/true);
  for (auto [from, to] : {std::pair(branch.thenBlock(), reads.thenBlock()),
                          std::pair(branch.elseBlock(), reads.elseBlock())}) {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToEnd(to);
    SmallVector<Value> own;
    for (Operation &inner : from->without_terminator())
      read(inner, own);
    for (Type type : ArrayRef(types).drop_front(own.size()))
      own.push_back(FragmentFillOp::create(rewriter, op.getLoc(), type,
                                           rewriter.getF32FloatAttr(0)));
    scf::YieldOp::create(rewriter, op.getLoc(), own);
  }
  llvm::append_range(values, reads.getResults());
}

void MapReads::take(Operation &op, ArrayRef<Value> &values) {
  if (auto map = dyn_cast<MapOp>(op)) {
    for (memref::LoadOp load : loadsOf(map)) {
      Value value = values.consume_front();
      unsigned inputs = map.getInputs().size();
      map.getInputsMutable().append(value);
      Value word = map.getBody().front().insertArgument(
          inputs, rewriter.getF32Type(), load.getLoc());
      rewriter.setInsertionPoint(load);
      if (word.getType() != load.getType())
        word = arith::BitcastOp::create(rewriter, load.getLoc(), load.getType(),
                                        word);
      rewriter.replaceOp(load, word);
    }
    return;
  }
  size_t count = typesOf(op)->size();
  if (!count)
    return;
  auto branch = cast<scf::IfOp>(op);
  for (Block *block : {branch.thenBlock(), branch.elseBlock()}) {
    ArrayRef<Value> own = values.take_front(count);
    for (Operation &inner : block->without_terminator())
      take(inner, own);
  }
  values = values.drop_front(count);
}

SmallVector<Operation *> MapReads::separate() {
  SmallVector<Operation *> readers, made;
  for (Operation &op : loop.getBody()->without_terminator())
    if (auto types = typesOf(op); types && !types->empty())
      readers.push_back(&op);
  for (Operation *op : readers) {
    Operation *before = op->getPrevNode();
    rewriter.setInsertionPoint(op);
    SmallVector<Value> values;
    read(*op, values);
    for (Operation *at = before ? before->getNextNode()
                                : &loop.getBody()->front();
         at != op; at = at->getNextNode())
      made.push_back(at);
    ArrayRef<Value> left = values;
    take(*op, left);
  }
  return made;
}

SmallVector<Operation *> kvbuf::separateReads(RewriterBase &rewriter,
                                              scf::ForOp loop) {
  return MapReads(rewriter, loop).separate();
}
