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

/// `value`, at least 0 and at most `most`.
static Value clampIndex(ImplicitLocOpBuilder &b, Value value, Value most) {
  Value least = arith::MinSIOp::create(b, value, most);
  return arith::MaxSIOp::create(b, least, listConstant(b, 0));
}

/// A number of a list, as an index.
static Value loadEntry(ImplicitLocOpBuilder &b, Value list,
                       ArrayRef<Value> place) {
  Value number = memref::LoadOp::create(b, list, place);
  return arith::IndexCastOp::create(b, b.getIndexType(), number);
}

BlockLists::List BlockLists::makeList(ImplicitLocOpBuilder &b, Value counts,
                                      Value blocks) {
  Value number = loadEntry(b, counts, place);
  return {blocks, clampIndex(b, number, room)};
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
  lastBlock = arith::SubIOp::create(b, blocks, one);
  Value none = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, blocks, zero);
  Value most = memref::DimOp::create(b, lists[1], 3);
  room = arith::SelectOp::create(b, none, zero, most);

  Value parts = listConstant(b, blockKeys / tileKeys);
  partial = makeList(b, lists[0], lists[1]);
  Value rest = arith::RemUIOp::create(b, at.keys, wide);
  isCut = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, rest, zero);
  partly = count = arith::MulIOp::create(b, partial.count, parts);
  if (lists.size() == 2)
    return;
  whole = makeList(b, lists[2], lists[3]);
  Value all = arith::AddIOp::create(b, partial.count, whole.count);
  count = arith::MulIOp::create(b, all, parts);
}

Value BlockLists::keyOf(ImplicitLocOpBuilder &b, Value i) const {
  Value parts = listConstant(b, blockKeys / tileKeys);
  Value number = arith::DivUIOp::create(b, i, parts),
        part = arith::RemUIOp::create(b, i, parts);
  auto blockOf = [&](const List &list, Value entry) {
    SmallVector<Value> at(place);
    at.push_back(entry);
    return loadEntry(b, list.blocks, at);
  };
  Value block;
  if (!whole.count) {
    block = blockOf(partial, number);
  } else {
    // Both lists have as much room: an entry of either can be read.
    Value last = arith::SubIOp::create(b, room, listConstant(b, 1));
    Value behind = arith::SubIOp::create(b, number, partial.count);
    Value isPartial = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                            number, partial.count);
    block = arith::SelectOp::create(
        b, isPartial, blockOf(partial, clampIndex(b, number, last)),
        blockOf(whole, clampIndex(b, behind, last)));
  }
  Value first = arith::MulIOp::create(b, clampIndex(b, block, lastBlock),
                                      listConstant(b, blockKeys));
  return arith::AddIOp::create(
      b, first,
      arith::MulIOp::create(b, part, listConstant(b, tileKeys)).getResult());
}
