//===- TileScores.cpp - From products to what softmax sees ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileScores.h"
#include "FarTiles.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <limits>

using namespace mlir;
using namespace kvbuf;

EdgeTiles::EdgeTiles(ImplicitLocOpBuilder &b, Value fullLo, Value fullHi,
                     Value end, Value tileKeys)
    : end(end) {
  Value zero = arith::ConstantIndexOp::create(b, 0);
  Value full = arith::MaxSIOp::create(b, fullHi, zero);
  Value fullEnd = arith::DivUIOp::create(b, full, tileKeys);
  right = arith::SubIOp::create(b, end, fullEnd);
  if (!fullLo)
    return;
  fullLo = arith::MaxSIOp::create(b, fullLo, zero);
  Value fullBegin = arith::CeilDivUIOp::create(b, fullLo, tileKeys);
  left = arith::SubIOp::create(b, end, fullBegin);
}

EdgeTiles::Kinds EdgeTiles::kindsOf(ImplicitLocOpBuilder &b, Value i) const {
  using Predicate = arith::CmpIPredicate;
  Value atRight = arith::CmpIOp::create(b, Predicate::slt, i, right);
  if (!left)
    return {atRight, Value(), Value()};
  Value atLeft = arith::CmpIOp::create(b, Predicate::sge, i, left);
  Value isEdge = arith::OrIOp::create(b, atRight, atLeft);
  return {isEdge, apart ? atRight : Value(), apart ? atLeft : Value()};
}

/// What `build` makes of the scores of a tile where `condition` holds (null:
/// always), and the scores elsewhere.
static Value onlyIf(ImplicitLocOpBuilder &b, Value condition, Value scores,
                    function_ref<Value()> build) {
  if (!condition)
    return build();
  auto branch = scf::IfOp::create(b, TypeRange{scores.getType()}, condition,
                                  /*addThenBlock=*/true,
                                  /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, scores);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, build());
  return branch.getResult(0);
}

/// Whether `op`, which reads a region's score, takes it times a scale without
/// an instruction more.
static bool foldsScale(Operation &op) {
  auto isScore = [](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && argument.getArgNumber() == 0;
  };
  if (auto sub = dyn_cast<arith::SubFOp>(op))
    return isScore(sub.getLhs());
  if (auto mul = dyn_cast<arith::MulFOp>(op))
    return isScore(mul.getLhs()) && matchPattern(mul.getRhs(), m_Constant());
  return isa<arith::AddFOp>(op);
}

/// Such an op, with the score times `scale`: a sum is rounded once, and factors
/// are multiplied.
static Value foldScale(ImplicitLocOpBuilder &b, Operation &op,
                       const IRMapping &values, double scale) {
  bool first = isa<BlockArgument>(op.getOperand(0)) &&
               cast<BlockArgument>(op.getOperand(0)).getArgNumber() == 0;
  Value score = values.lookup(op.getOperand(first ? 0 : 1)),
        other = values.lookupOrDefault(op.getOperand(first ? 1 : 0));
  if (isa<arith::MulFOp>(op)) {
    FloatAttr factor;
    matchPattern(op.getOperand(1), m_Constant(&factor));
    return arith::MulFOp::create(
        b, score,
        arith::ConstantOp::create(
            b, b.getF32FloatAttr(scale * factor.getValueAsDouble())));
  }
  // One instruction, which rounds once.
  auto fused = arith::FastMathFlagsAttr::get(b.getContext(),
                                             arith::FastMathFlags::contract);
  Value scaled = arith::MulFOp::create(
      b, score, arith::ConstantOp::create(b, b.getF32FloatAttr(scale)), fused);
  if (isa<arith::SubFOp>(op))
    return arith::SubFOp::create(b, scaled, other, fused);
  return arith::AddFOp::create(b, scaled, other, fused);
}

/// The op of a region that alone reads its score, where it does so once and
/// stands in the region's block; else null.
static Operation *readerOfScore(Region &region) {
  Value score = region.getArgument(0);
  if (!score.hasOneUse())
    return nullptr;
  Operation *reader = *score.getUsers().begin();
  return reader->getBlock() == &region.front() ? reader : nullptr;
}

/// Whether an op of a region of the problem computes the same for all rows and
/// keys of a sequence's head, so that it may stand before the loop over tiles,
/// which may have none: what it reads is there in any case. `same`: the values
/// that are the same.
static bool isOfHead(Operation &op, const llvm::DenseSet<Value> &same) {
  if (op.getNumRegions() || !llvm::all_of(op.getOperands(), [&](Value value) {
        return same.contains(value);
      }))
    return false;
  // Indices outside of functions may have 32 bits.
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(op) &&
      op.getOperand(0).getType().isInteger(64))
    return false;
  auto load = dyn_cast<memref::LoadOp>(op);
  if (!load)
    return isPure(&op);
  // A tensor of keys may be empty: a number by itself says nothing of its size.
  return llvm::all_of(llvm::enumerate(load.getIndices()), [&](auto index) {
    return !load.getMemRefType().isDynamicDim(index.index()) ||
           !matchPattern(index.value(), m_Constant());
  });
}

// Such a load in the loop is all that scores wait for, behind the product of
// which they come. Integers that follow from one stay, where it is known how
// large they are.
void kvbuf::hoistOfHead(ImplicitLocOpBuilder &b, AttentionOp op,
                        const IRMapping &args, const ScoreTile &tile,
                        IRMapping &hoisted) {
  if (!tile.loop || tile.group > 1)
    return;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(tile.loop);
  for (Region *region : {&op.getScore(), &op.getVisible()}) {
    if (region->empty())
      continue;
    unsigned first = region == &op.getScore();
    IRMapping outside;
    llvm::DenseSet<Value> same;
    auto note = [&](Value inside, Value value) {
      same.insert(inside);
      outside.map(inside, value);
    };
    note(region->getArgument(first), tile.batch);
    note(region->getArgument(first + 1), tile.head);
    for (auto [inside, capture] : llvm::zip_equal(
             region->getArguments().take_back(op.getCaptures().size()),
             op.getCaptures()))
      note(inside, args.lookup(capture));
    for (Operation &inner : region->front().without_terminator()) {
      if (!isOfHead(inner, same))
        continue;
      Operation *copy = b.clone(inner, outside);
      same.insert_range(inner.getResults());
      bool isNumber =
          llvm::all_of(inner.getResultTypes(), llvm::IsaPred<FloatType>);
      if (isa<memref::LoadOp>(inner) || isNumber)
        hoisted.map(inner.getResults(), copy->getResults());
    }
  }
}

/// Whether the problem's functions read tensors at places that may follow from
/// the row or the key of an element; what is `hoisted` is read in front of the
/// loop. Where rows count as clamped distances alone, any will do, and rows of
/// a lane have some distances in common.
static bool readsByPlace(AttentionOp op, const ScoreTile &tile,
                         const IRMapping &hoisted) {
  SmallVector<Operation *> others{tile.readBy};
  if (std::optional<ClampedDistance> distance = clampedDistanceOf(op))
    llvm::append_range(others, followersOf(op, *distance));
  auto reads = [&](Region *region) {
    return region
        ->walk([&](memref::LoadOp load) {
          return llvm::is_contained(others, load) ||
                         hoisted.contains(load.getResult())
                     ? WalkResult::advance()
                     : WalkResult::interrupt();
        })
        .wasInterrupted();
  };
  return reads(&op.getScore()) || reads(&op.getVisible());
}

/// The problem's own functions of the scores of a tile, times `scale` before;
/// `hoisted` has what is computed already.
/// `isEdge`: the tile may have keys beyond the last one, and, where lists say
/// which tiles are visible, hidden ones; others of these are cut, too.
static Value mapOwnScores(ImplicitLocOpBuilder &b, AttentionOp op,
                          const IRMapping &args, Value scores,
                          const ScoreTile &tile, const IRMapping &hoisted,
                          double scale, bool isEdge) {
  bool listed = static_cast<bool>(op.getBlockMaskAttr());
  bool hides =
      !op.getVisible().empty() && (isEdge || !(listed || tile.bounded));
  bool maps = !op.getScore().empty() && !tile.begun;
  if (!maps && !hides && scale == 1.0)
    return scores;
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, value);
  };
  // Rows of several heads are counted from the tile's first one.
  bool folded = tile.group > 1;
  SmallVector<Value> inputs{scores};
  bool takesRead = tile.read && maps;
  if (takesRead)
    inputs.push_back(tile.read);
  auto map = MapOp::create(b, scores.getType(), inputs,
                           folded ? constant(0) : tile.query, tile.key);
  OpBuilder::InsertionGuard guard(b);
  Block *body = &map.getBody().emplaceBlock();
  Location loc = b.getLoc();
  Value score = body->addArgument(b.getF32Type(), loc), read;
  if (takesRead)
    read = body->addArgument(tile.readBy->getResult(0).getType(), loc);
  Value ownRow = body->addArgument(b.getIndexType(), loc);
  Value ownKey = body->addArgument(b.getIndexType(), loc);
  b.setInsertionPointToStart(body);
  Value head = tile.head;
  if (folded) {
    Value group = constant(tile.group);
    Value inGroup = arith::RemUIOp::create(b, ownRow, group);
    Value query = arith::DivUIOp::create(b, ownRow, group);
    head = arith::AddIOp::create(b, head, inGroup);
    ownRow = arith::AddIOp::create(b, tile.query, query);
  }
  // A tile may go beyond the last row and key; the program's tensors, if it
  // reads any, do not.
  bool readsAny = readsByPlace(op, tile, hoisted);
  Value zero = constant(0), one = constant(1);
  auto within = [&](Value index, Value count) {
    Value last = arith::SubIOp::create(b, count, one);
    return arith::MaxSIOp::create(b, arith::MinSIOp::create(b, index, last),
                                  zero);
  };
  if (readsAny)
    ownRow = within(ownRow, tile.queries);
  if (readsAny && (isEdge || listed) && tile.mayBeCut)
    ownKey = within(ownKey, tile.keys);
  Value shift = arith::SubIOp::create(b, tile.keys, tile.queries);
  Value position = arith::AddIOp::create(b, ownRow, shift);
  auto scaled = [&](Value value) -> Value {
    if (scale == 1.0)
      return value;
    return arith::MulFOp::create(
        b, value, arith::ConstantOp::create(b, b.getF32FloatAttr(scale)));
  };
  auto inlined = [&](Region &region, ArrayRef<Value> first) {
    IRMapping values(hoisted);
    SmallVector<Value> arguments(first);
    arguments.append({tile.batch, head, ownRow, position, ownKey});
    for (Value capture : op.getCaptures())
      arguments.push_back(args.lookup(capture));
    values.map(region.getArguments(), arguments);
    if (read)
      values.map(tile.readBy->getResult(0), read);
    Operation *reader =
        scale != 1.0 && !first.empty() ? readerOfScore(region) : nullptr;
    if (!first.empty() && !(reader && foldsScale(*reader)))
      values.map(region.getArgument(0), scaled(first[0]));
    for (Operation &inner : region.front().without_terminator())
      if (&inner == tile.readBy ||
          (inner.getNumResults() && hoisted.contains(inner.getResult(0))))
        continue;
      else if (&inner == reader && foldsScale(inner))
        values.map(inner.getResult(0), foldScale(b, inner, values, scale));
      else
        b.clone(inner, values);
    return values.lookupOrDefault(
        cast<YieldOp>(region.front().getTerminator()).getValue());
  };
  if (!maps)
    score = scaled(score);
  else
    score = inlined(op.getScore(), {score});
  if (hides) {
    Value visible = inlined(op.getVisible(), {});
    Value hidden = arith::ConstantOp::create(
        b, b.getF32FloatAttr(-std::numeric_limits<float>::infinity()));
    score = arith::SelectOp::create(b, visible, score, hidden);
  }
  YieldOp::create(b, score);
  return map.getResult();
}

/// Whether the mask hides some keys of a tile from some rows, an i1; null: it
/// has no rule.
static Value crossesMask(ImplicitLocOpBuilder &b, MaskAttr mask,
                         FragmentType type, const ScoreTile &tile) {
  using Predicate = arith::CmpIPredicate;
  auto plus = [&](Value value, int64_t more) -> Value {
    return arith::AddIOp::create(b, value,
                                 arith::ConstantIndexOp::create(b, more));
  };
  Value shift = arith::SubIOp::create(b, tile.keys, tile.queries);
  Value position = arith::AddIOp::create(b, tile.query, shift);
  Value crosses;
  auto note = [&](Predicate predicate, Value key, Value bound) {
    Value beyond = arith::CmpIOp::create(b, predicate, key, bound);
    crosses = crosses ? arith::OrIOp::create(b, crosses, beyond) : beyond;
  };
  if (mask.boundsRight())
    note(Predicate::sgt, plus(tile.key, type.getCols() - 1),
         plus(position, mask.rightReach()));
  if (mask.boundsLeft())
    note(Predicate::slt, tile.key,
         plus(position, type.getRows() - 1 - mask.getLeft()));
  return crosses;
}

/// The scores of a tile that lists show, `partly`: not all rows see all of it.
/// The mask is asked where its edge is, of such tiles alone, and the end of the
/// sequence where it is.
static Value maskListed(ImplicitLocOpBuilder &b, AttentionOp op, Value scores,
                        const ScoreTile &tile, bool partly) {
  auto type = cast<FragmentType>(scores.getType());
  MaskAttr mask =
      partly ? op.getMaskValue() : MaskAttr::get(b.getContext(), false, -1, -1);
  auto masked = [&] {
    return MaskOp::create(b, scores, tile.query, tile.queries, tile.key,
                          tile.keys, mask, tile.group);
  };
  Value asked = crossesMask(b, mask, type, tile);
  // Halves that take turns have no branches between their products.
  if (tile.endApart) {
    MaskOp atEnd = masked();
    atEnd.setSeldom(!asked);
    return atEnd;
  }
  if (tile.mayBeCut) {
    Value end = arith::AddIOp::create(
        b, tile.key,
        arith::ConstantIndexOp::create(b, type.getCols()).getResult());
    Value isCut =
        arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, end, tile.keys);
    asked = asked ? arith::OrIOp::create(b, asked, isCut) : isCut;
  }
  if (!asked)
    return scores;
  return onlyIf(b, asked, scores, [&]() -> Value { return masked(); });
}

double kvbuf::softmaxScaleOf(AttentionOp op) {
  double scale = op.getScaleValue();
  // Sinks are divided by the softmax's.
  bool inSoftmax =
      scale >= 0x1p-120 && op.getSoftcapValue() == 0 && op.getScore().empty();
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
  bool listed = static_cast<bool>(op.getBlockMaskAttr());
  bool own = op.hasOwnScores();
  if (cap > 0)
    scores = SoftcapOp::create(b, scores, b.getF32FloatAttr(scale),
                               b.getF32FloatAttr(cap));
  else if (softmaxScaleOf(op) != scale && !own)
    scores = FragmentScaleOp::create(b, scores, b.getF32FloatAttr(scale));
  // What is left of the scale to the functions.
  double rest =
      cap > 0 || tile.begun || softmaxScaleOf(op) == scale ? 1.0 : scale;
  IRMapping hoisted;
  hoistOfHead(b, op, args, tile, hoisted);
  auto shaped = [&](bool isEdge) {
    return own ? mapOwnScores(b, op, args, scores, tile, hoisted, rest, isEdge)
               : scores;
  };

  // Nothing tells tiles at an edge from others.
  if (tile.begunMask && (tile.begun || !own))
    return scores;

  // Where a team moves tiles, a branch costs less than what it spares. What is
  // read for a tile is on its way while its product is. Where halves take
  // turns, such tiles have loops of their own.
  auto type = cast<FragmentType>(scores.getType());
  std::optional<ClampedDistance> distance;
  bool teams = static_cast<bool>(op.getSchedule()->getMovingTeam());
  if ((teams || op.getSchedule()->hasHalves()) && tile.group == 1 &&
      !tile.begun)
    distance = clampedDistanceOf(op);
  IRMapping ofTile(hoisted);
  Value far;
  if (distance && teams)
    far = isFar(b, op, *distance, args, tile, type.getRows(), type.getCols(),
                ofTile);
  else if (distance && tile.loop && edges.getEnd())
    far = isFarAtEnds(b, op, *distance, args, tile, type.getRows(),
                      type.getCols(), edges.getEnd(), i, ofTile);

  EdgeTiles::Kinds kinds = edges.kindsOf(b, i);
  auto masked = scf::IfOp::create(b, TypeRange{scores.getType()}, kinds.isEdge,
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
  if (own || listed)
    masked->setAttr(KVBufferDialect::kEdgeTilesAttr, b.getUnitAttr());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(masked.thenBlock());
  Value hidden = onlyIf(b, kinds.ofFunction, scores,
                        [&] { return shaped(/*isEdge=*/true); });
  if (listed)
    hidden = maskListed(b, op, hidden, tile, /*partly=*/true);
  else if (!tile.begunMask)
    hidden = onlyIf(b, kinds.ofMask, hidden, [&]() -> Value {
      return MaskOp::create(b, hidden, tile.query, tile.queries, tile.key,
                            tile.keys, op.getMaskValue(), tile.group);
    });
  scf::YieldOp::create(b, hidden);
  b.setInsertionPointToStart(masked.elseBlock());
  auto ended = [&](Value whole) {
    return listed ? maskListed(b, op, whole, tile, /*partly=*/false) : whole;
  };
  if (!far) {
    scf::YieldOp::create(b, ended(shaped(/*isEdge=*/false)));
    return masked.getResult(0);
  }
  auto branch = scf::IfOp::create(b, TypeRange{type}, far,
                                  /*addThenBlock=*/true,
                                  /*addElseBlock=*/true);
  scf::YieldOp::create(b, ended(branch.getResult(0)));
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, mapOwnScores(b, op, args, scores, tile, ofTile, rest,
                                       /*isEdge=*/false));
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, shaped(/*isEdge=*/false));
  return masked.getResult(0);
}
