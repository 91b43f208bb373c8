//===- TileScores.cpp - From products to what softmax sees ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileScores.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <limits>

using namespace mlir;
using namespace kvbuf;

EdgeTiles::EdgeTiles(ImplicitLocOpBuilder &b, KeyRangeOp range, Value end,
                     Value tileKeys, MaskAttr mask) {
  Value zero = arith::ConstantIndexOp::create(b, 0);
  Value fullHi = arith::MaxSIOp::create(b, range.getFullHi(), zero);
  Value fullEnd = arith::DivUIOp::create(b, fullHi, tileKeys);
  right = arith::SubIOp::create(b, end, fullEnd);
  if (!mask.boundsLeft())
    return;
  Value fullLo = arith::MaxSIOp::create(b, range.getFullLo(), zero);
  Value fullBegin = arith::CeilDivUIOp::create(b, fullLo, tileKeys);
  left = arith::SubIOp::create(b, end, fullBegin);
}

Value EdgeTiles::contain(ImplicitLocOpBuilder &b, Value i) const {
  using Predicate = arith::CmpIPredicate;
  Value atRight = arith::CmpIOp::create(b, Predicate::slt, i, right);
  if (!left)
    return atRight;
  Value atLeft = arith::CmpIOp::create(b, Predicate::sge, i, left);
  return arith::OrIOp::create(b, atRight, atLeft);
}

/// The problem's own functions of the scores of a tile, times `scale` before.
static Value mapOwnScores(ImplicitLocOpBuilder &b, AttentionOp op,
                          const IRMapping &args, Value scores,
                          const ScoreTile &tile, double scale) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, value);
  };
  // Rows of several heads are counted from the tile's first one.
  bool folded = tile.group > 1;
  auto map = MapOp::create(b, scores.getType(), ValueRange{scores},
                           folded ? constant(0) : tile.query, tile.key);
  OpBuilder::InsertionGuard guard(b);
  Block *body = &map.getBody().emplaceBlock();
  Location loc = b.getLoc();
  Value score = body->addArgument(b.getF32Type(), loc);
  Value ownRow = body->addArgument(b.getIndexType(), loc);
  Value ownKey = body->addArgument(b.getIndexType(), loc);
  b.setInsertionPointToStart(body);
  if (scale != 1.0)
    score = arith::MulFOp::create(
        b, score, arith::ConstantOp::create(b, b.getF32FloatAttr(scale)));
  Value head = tile.head;
  if (folded) {
    Value group = constant(tile.group);
    Value inGroup = arith::RemUIOp::create(b, ownRow, group);
    Value query = arith::DivUIOp::create(b, ownRow, group);
    head = arith::AddIOp::create(b, head, inGroup);
    ownRow = arith::AddIOp::create(b, tile.query, query);
  }
  // A tile may go beyond the last row and key; the program's tensors do not.
  Value zero = constant(0), one = constant(1);
  auto within = [&](Value index, Value count) {
    Value last = arith::SubIOp::create(b, count, one);
    return arith::MaxSIOp::create(b, arith::MinSIOp::create(b, index, last),
                                  zero);
  };
  ownRow = within(ownRow, tile.queries);
  ownKey = within(ownKey, tile.keys);
  Value shift = arith::SubIOp::create(b, tile.keys, tile.queries);
  Value position = arith::AddIOp::create(b, ownRow, shift);
  auto inlined = [&](Region &region, ArrayRef<Value> first) {
    IRMapping values;
    SmallVector<Value> arguments(first);
    arguments.append({tile.batch, head, ownRow, position, ownKey});
    for (Value capture : op.getCaptures())
      arguments.push_back(args.lookup(capture));
    values.map(region.getArguments(), arguments);
    for (Operation &inner : region.front().without_terminator())
      b.clone(inner, values);
    return values.lookupOrDefault(
        cast<YieldOp>(region.front().getTerminator()).getValue());
  };
  if (!op.getScore().empty())
    score = inlined(op.getScore(), {score});
  if (!op.getVisible().empty()) {
    Value visible = inlined(op.getVisible(), {});
    Value hidden = arith::ConstantOp::create(
        b, b.getF32FloatAttr(-std::numeric_limits<float>::infinity()));
    score = arith::SelectOp::create(b, visible, score, hidden);
  }
  YieldOp::create(b, score);
  return map.getResult();
}

double kvbuf::softmaxScaleOf(AttentionOp op) {
  double scale = op.getScaleValue();
  bool inSoftmax = scale > 0 && op.getSoftcapValue() == 0 && !op.hasOwnScores();
  return inSoftmax ? scale : 1.0;
}

UnitAttr kvbuf::unboundedScoresOf(AttentionOp op) {
  return op.getScore().empty() ? UnitAttr() : UnitAttr::get(op.getContext());
}

Value kvbuf::shapeScores(ImplicitLocOpBuilder &b, AttentionOp op,
                         const IRMapping &args, Value scores,
                         const ScoreTile &tile, const EdgeTiles &edges,
                         Value i) {
  double scale = op.getScaleValue(), cap = op.getSoftcapValue();
  bool own = op.hasOwnScores();
  if (cap > 0)
    scores = SoftcapOp::create(b, scores, b.getF32FloatAttr(scale),
                               b.getF32FloatAttr(cap));
  else if (scale <= 0 && !own)
    scores = FragmentScaleOp::create(b, scores, b.getF32FloatAttr(scale));
  if (own)
    scores = mapOwnScores(b, op, args, scores, tile, cap > 0 ? 1.0 : scale);

  auto masked =
      scf::IfOp::create(b, TypeRange{scores.getType()}, edges.contain(b, i),
                        /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(masked.thenBlock());
  Value hidden = MaskOp::create(b, scores, tile.query, tile.queries, tile.key,
                                tile.keys, op.getMaskValue(), tile.group);
  scf::YieldOp::create(b, hidden);
  b.setInsertionPointToStart(masked.elseBlock());
  scf::YieldOp::create(b, scores);
  return masked.getResult(0);
}
