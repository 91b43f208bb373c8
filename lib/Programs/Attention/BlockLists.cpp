//===- BlockLists.cpp - Tiles of keys that lists name ----*- C++ -*- ===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockLists.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace kvbuf;

static Value listConstant(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantIndexOp::create(b, value);
}

/// Entries of a list, and blocks of a sequence, that are counted at most: twice
/// as many are an i32 yet. So many keys no memory holds.
static constexpr int64_t kMostBlocks = 1 << 30;

/// An index that is no larger than an i32, as one: of 64 bits not every chip's
/// scalar units tell which is less.
static Value narrow(ImplicitLocOpBuilder &b, Value index) {
  return arith::IndexCastOp::create(b, b.getI32Type(), index);
}

static Value widen(ImplicitLocOpBuilder &b, Value number) {
  return arith::IndexCastOp::create(b, b.getIndexType(), number);
}

/// An index as an i32, at most `kMostBlocks`.
static Value narrowAtMost(ImplicitLocOpBuilder &b, Value index) {
  return narrow(b,
                arith::MinSIOp::create(b, index, listConstant(b, kMostBlocks)));
}

/// `value`, at least 0 and at most `most`; both of i32.
static Value clamp(ImplicitLocOpBuilder &b, Value value, Value most) {
  Value least = arith::MinSIOp::create(b, value, most);
  return arith::MaxSIOp::create(
      b, least, arith::ConstantIntOp::create(b, 0, 32).getResult());
}

BlockLists::List BlockLists::makeList(ImplicitLocOpBuilder &b, Value counts,
                                      Value blocks) {
  Value number = memref::LoadOp::create(b, counts, place);
  return {blocks, clamp(b, number, room)};
}

BlockLists::BlockLists(ImplicitLocOpBuilder &b, AttentionOp op,
                       const IRMapping &args, const ScoreTile &at,
                       int64_t tileKeys)
    : tileKeys(tileKeys) {
  BlockMaskAttr mask = op.getBlockMaskAttr();
  blockKeys = mask.getKeys();
  SmallVector<Value> lists =
      llvm::map_to_vector(mask.getLists(), [&](int64_t i) {
        return args.lookup(op.getCaptures()[i]);
      });
  Value zero = listConstant(b, 0), one = listConstant(b, 1),
        wide = listConstant(b, blockKeys);
  // One sequence, or one head, may stand for all.
  Value block =
      arith::DivUIOp::create(b, at.query, listConstant(b, mask.getRows()));
  for (auto [dim, index] :
       llvm::enumerate(ArrayRef<Value>{at.batch, at.head, block})) {
    Value size = memref::DimOp::create(b, lists[0], dim);
    place.push_back(arith::MinSIOp::create(
        b, index, arith::SubIOp::create(b, size, one).getResult()));
  }
  // A sequence without keys has no blocks.
  Value blocks = arith::CeilDivUIOp::create(b, at.keys, wide);
  lastBlock = narrowAtMost(b, arith::SubIOp::create(b, blocks, one));
  Value none = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, blocks, zero);
  Value most = memref::DimOp::create(b, lists[1], 3);
  room = narrowAtMost(b, arith::SelectOp::create(b, none, zero, most));

  Value parts = listConstant(b, blockKeys / tileKeys);
  partial = makeList(b, lists[0], lists[1]);
  Value rest = arith::RemUIOp::create(b, at.keys, wide);
  isCut = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, rest, zero);
  partly = count = arith::MulIOp::create(b, widen(b, partial.count), parts);
  if (lists.size() == 2)
    return;
  whole = makeList(b, lists[2], lists[3]);
  Value all =
      arith::AddIOp::create(b, widen(b, partial.count), widen(b, whole.count));
  count = arith::MulIOp::create(b, all, parts);
}

Value BlockLists::keyOf(ImplicitLocOpBuilder &b, Value i) const {
  Value parts = listConstant(b, blockKeys / tileKeys);
  Value number = narrow(b, arith::DivUIOp::create(b, i, parts)),
        part = arith::RemUIOp::create(b, i, parts);
  auto blockOf = [&](const List &list, Value entry) -> Value {
    SmallVector<Value> at(place);
    at.push_back(widen(b, entry));
    return memref::LoadOp::create(b, list.blocks, at);
  };
  Value block;
  if (!whole.count) {
    block = blockOf(partial, number);
  } else {
    // Both lists have as much room: an entry of either can be read.
    Value last = arith::SubIOp::create(
        b, room, arith::ConstantIntOp::create(b, 1, 32).getResult());
    Value behind = arith::SubIOp::create(b, number, partial.count);
    Value isPartial = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                            number, partial.count);
    block = arith::SelectOp::create(b, isPartial,
                                    blockOf(partial, clamp(b, number, last)),
                                    blockOf(whole, clamp(b, behind, last)));
  }
  Value first = arith::MulIOp::create(b, widen(b, clamp(b, block, lastBlock)),
                                      listConstant(b, blockKeys));
  return arith::AddIOp::create(
      b, first,
      arith::MulIOp::create(b, part, listConstant(b, tileKeys)).getResult());
}
