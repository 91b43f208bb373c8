//===- DecodeKeys.cpp - The loop over keys of few query rows ----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a block of few query rows, or each of its warps, does with its tiles of
// keys.
//
//===----------------------------------------------------------------------===//

#include "DecodeProgram.h"
#include "ProblemLimits.h"
#include "TileProgram.h"
#include "TileScores.h"
#include "VisibleBounds.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace kvbuf;

void DecodeProgram::allocBuffers() {
  kbuf = allocOperand(b, op, target, Operand::K, schedule.getBN(),
                      schedule.getStages());
  if (!op.isLatent())
    vbuf = allocOperand(b, op, target, Operand::V, schedule.getBN(),
                        schedule.getStages());
  if (limitsOf(op, schedule.getStructure(), target)
          .readsQueriesFromLds(operandsOf(op)))
    qbuf = allocOperand(b, op, target, Operand::Q, schedule.getBM(),
                        /*stages=*/1);
}

void DecodeProgram::appendTokens(Value first, Value last) {
  Value bn = constant(schedule.getBN());
  Value from = arith::MulIOp::create(b, first, bn);
  Value upto = arith::MulIOp::create(b, last, bn);
  Value cached = CacheNumKeysOp::create(b, operand(op.getK()), batch,
                                        /*new_tokens=*/constant(0));
  // Most pieces have none of them.
  choose(arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, upto, cached),
         [&] {
           AppendTokensOp::create(
               b, batch, kvHead, from, upto, operand(append.getK()),
               operand(op.getK()), operand(append.getV()), operand(op.getV()),
               optional(append.getCos()), optional(append.getSin()),
               append.getInterleaved());
         });
}

Value DecodeProgram::stageTile(Value cache, TypedValue<BufferType> buffer,
                               Value key, const Tiles &tiles) {
  auto type = cast<CacheType>(cache.getType());
  KeyRangeOp range = tiles.range;
  auto tile = CacheTileOp::create(
      b,
      TileType::get(b.getContext(), schedule.getBN(), type.getTileCols(),
                    type.getElementType(), smallPageOf(op)),
      cache, batch, kvHead, key, range.getLo(), tiles.keys, /*pred=*/Value());
  Value token =
      DramLoadOp::create(b, tile, buffer, /*slot=*/Value(), /*pred=*/Value(),
                         /*whole=*/false, /*block=*/0);
  return LdsStageOp::create(b, ValueRange{token}, IntegerAttr()).getStaged()[0];
}

DecodeState DecodeProgram::readKeys(Value first, Value end, const Tiles &tiles,
                                    Value warp) {
  if (warps > 1)
    allocBuffers();
  KeyRangeOp range = tiles.range;
  Value keys = tiles.keys;
  int64_t BM = schedule.getBM(), BN = schedule.getBN();
  Value zero = constant(0), one = constant(1), bn = constant(BN);
  FragmentType scoreType = fragment(BM, BN, b.getF32Type(), Role::Acc);
  FragmentType pType = fragment(BM, BN, weights, Role::A);
  FragmentType qType = fragment(BM, depth, element, Role::A);
  Value qTile = rowsOf(operand(op.getQ())), q, qStaged;
  if (qbuf) {
    Value token = DramLoadOp::create(b, qTile, qbuf, /*slot=*/Value(),
                                     /*pred=*/Value(), /*whole=*/false,
                                     /*block=*/0);
    qStaged =
        LdsStageOp::create(b, ValueRange{token}, IntegerAttr()).getStaged()[0];
  } else {
    q = TileFragmentOp::create(b, qType, qTile);
  }
  Value kScale = scales().ofHead(operand(op.getK()));
  Value kFactor = scales().fit(op, target, q, rowType, kScale);
  Type products = kFactor ? b.getF16Type() : element;

  Value fullLo = mask.boundsLeft() ? range.getFullLo() : Value(),
        fullHi = range.getFullHi();
  // Tiles that a function of visibility shows to all rows have no mask, either.
  bool bounded = boundsKeys(op, group);
  if (bounded) {
    VisibleBounds bounds = visibleBounds(
        b, op, args, {batch, head, firstQuery, Value(), queries, keys},
        ownQueries);
    fullHi = arith::MinSIOp::create(b, fullHi, bounds.fullHi);
    if (bounds.fullLo)
      fullLo = arith::MaxSIOp::create(b, range.getFullLo(), bounds.fullLo);
  }
  EdgeTiles edges(b, fullLo, fullHi, end, bn);
  Value count = arith::SubIOp::create(b, end, first), many = constant(warps);
  if (warps > 1)
    count = arith::CeilDivUIOp::create(
        b, positive(arith::SubIOp::create(b, count, warp)), many);
  auto loop = scf::ForOp::create(b, zero, count, one, empty(accType).values());
  // From right to left the end of the sequence cuts the first tile only; a
  // window may cut the last one too.
  if (!fullLo)
    loop->setAttr(KVBufferDialect::kWholeAfterFirstAttr, b.getUnitAttr());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value iteration = loop.getInductionVar(), i = iteration;
  if (warps > 1)
    i = arith::AddIOp::create(
        b, arith::MulIOp::create(b, iteration, many).getResult(), warp);
  DecodeState state = DecodeState::of(loop.getRegionIterArgs());
  Value back = arith::SubIOp::create(
      b, arith::SubIOp::create(b, end, one).getResult(), i);
  Value key = arith::MulIOp::create(b, back, bn);
  auto fragmentOf = [&](Value staged, const ScaledColumns &part, Type as,
                        DimensionAttr contracted = {}) -> Value {
    return FragmentLoadOp::create(b, fragment(BN, part.cols, as, Role::B),
                                  staged, 0, part.first, contracted);
  };
  auto queriesOf = [&](const ScaledColumns &part) -> Value {
    if (qStaged)
      return FragmentLoadOp::create(
          b, fragment(BM, part.cols, element, Role::A), qStaged, 0, part.first);
    if (part.cols == depth)
      return q;
    return FragmentSliceOp::create(
        b, fragment(BM, part.cols, products, Role::A), q, 0, part.first);
  };

  // Both are asked for before the product of the scores, which hides their
  // latency: a look-up of a page and one of a scale, one after the other (H200,
  // e4m3, pages of 16, 64 sequences of 8192 keys: 323 us, and 507 where each
  // was asked for at its use).
  TileTokens tokens{key, range.getLo(), keys};
  Value kScales = scales().ofTokens(operand(op.getK()), scoreType, tokens);
  Value vScales = scales().ofTokens(operand(op.getV()), scoreType, tokens);
  auto kGroups = scales().groups(operand(op.getK()), depth, scoreType, tokens);
  auto vGroups =
      scales().groups(operand(op.getV()), valueDepth, scoreType, tokens);
  // A slot that is both operands has been read as the second when this tile
  // fills it: nothing else lets all meet where it is the only one.
  if (op.isLatent() && schedule.getStages() == 1)
    MeetOp::create(b);
  Value kStaged = stageTile(operand(op.getK()), kbuf, key, tiles), s;
  for (const ScaledColumns &part : kGroups) {
    Value k = fragmentOf(kStaged, part, products);
    Value ofPart = queriesOf(part);
    Value product = MmaOp::create(b, ofPart, k, fill(scoreType, 0.0f),
                                  /*transpose_b=*/true, /*column=*/0);
    s = scales().addScaled(s, product, part.scales);
  }
  if (kFactor)
    s = RescaleOp::create(b, s, kFactor);
  s = scales().multiplyByToken(scales().multiply(s, kScale), kScales);
  ScoreTile at{batch, head, firstQuery, key, queries, keys, group};
  at.bounded = bounded;
  s = shapeScores(b, op, args, s, at, edges, i);
  bool scalesWeights =
      isScaledByToken(op.getV().getType()) || weightGain(weights) != 1;
  bool apart = addsTilesApart(op, target);
  auto softmax = OnlineSoftmaxOp::create(b, scalesWeights ? scoreType : pType,
                                         rowType, rowType, rowType, s,
                                         state.max, state.sum, softmaxScale,
                                         /*masked=*/b.getUnitAttr(), unbounded);
  Value scaled = RescaleOp::create(b, state.acc, softmax.getRescale());
  // Values that are columns of the keys are where those are: in their slot,
  // which is not filled anew before both products have read it.
  Value vStaged = op.isLatent()
                      ? kStaged
                      : stageTile(operand(op.getV()), vbuf, key, tiles),
        acc = apart ? fill(accType, 0.0f) : scaled;
  DimensionAttr contracted;
  if (op.isLatent())
    contracted = DimensionAttr::get(b.getContext(), Dimension::Rows);
  for (const ScaledColumns &part : vGroups) {
    Value v = fragmentOf(vStaged, part, valuesOf(op), contracted);
    for (Value p : scales().weights(softmax.getP(),
                                    vScales ? vScales : part.scales, pType, op))
      acc = MmaOp::create(b, p, v, acc, /*transpose_b=*/false,
                          /*column=*/part.first);
  }
  if (apart)
    acc = scales().add(scaled, acc);
  scf::YieldOp::create(
      b, ValueRange{acc, softmax.getNewMax(), softmax.getNewSum()});
  return DecodeState::of(loop.getResults());
}
