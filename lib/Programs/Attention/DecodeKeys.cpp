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

/// What the loop over keys of one block or warp has beside its tiles.
struct DecodeProgram::KeyLoop {
  DecodeProgram &program;
  ImplicitLocOpBuilder &b;
  AttentionOp op;
  const Tiles &tiles;
  int64_t BM, BN;
  FragmentType scoreType, pType, qType;
  /// The rows of queries: a fragment, or what lies in LDS.
  Value q, qStaged;
  /// What scores are multiplied by, all of them and those of 16 bits.
  Value kScale, kFactor;
  /// The type of what scores are products of.
  Type products;
  /// Whether a function of visibility is bounded.
  bool bounded;

  KeyLoop(DecodeProgram &program, const Tiles &tiles);
  /// The tiles that have a mask, of those that end at `end`.
  EdgeTiles findEdges(Value end, Value bn, Value &fullLo);
  /// Rows of a tile in LDS as operand b.
  Value fragmentOf(Value staged, const ScaledColumns &part, Type as,
                   Dimension contracted) {
    return FragmentLoadOp::create(
        b, program.fragment(BN, part.cols, as, Role::B), staged, 0, part.first,
        contracts(b, contracted));
  }
  Value queriesOf(const ScaledColumns &part);
  /// The scores of a tile whose keys lie in LDS, as they are multiplied.
  Value multiply(Value kStaged, ArrayRef<ScaledColumns> groups);
  /// Goes on with tile `i`, whose first key is `key`.
  DecodeState readTile(const DecodeState &state, Value key, Value i,
                       const EdgeTiles &edges);
};

DecodeProgram::KeyLoop::KeyLoop(DecodeProgram &program, const Tiles &tiles)
    : program(program), b(program.b), op(program.op), tiles(tiles),
      BM(program.schedule.getBM()), BN(program.schedule.getBN()) {
  scoreType = program.fragment(BM, BN, b.getF32Type(), Role::Acc);
  pType = program.fragment(BM, BN, program.weights, Role::A);
  qType = program.fragment(BM, program.depth, program.element, Role::A);
  Value qTile = program.rowsOf(program.operand(op.getQ()));
  if (program.qbuf) {
    Value token =
        DramLoadOp::create(b, qTile, program.qbuf, /*slot=*/Value(),
                           /*pred=*/Value(), /*whole=*/false, /*block=*/0);
    qStaged =
        LdsStageOp::create(b, ValueRange{token}, IntegerAttr()).getStaged()[0];
  } else {
    q = TileFragmentOp::create(b, qType, qTile);
  }
  kScale = program.scales().ofHead(program.operand(op.getK()));
  kFactor = program.scales().fit(op, program.target, qStaged ? qStaged : q,
                                 program.rowType, kScale);
  products = kFactor ? b.getF16Type() : program.element;
  bounded = boundsKeys(op, program.group);
}

EdgeTiles DecodeProgram::KeyLoop::findEdges(Value end, Value bn,
                                            Value &fullLo) {
  KeyRangeOp range = tiles.range;
  Value fullHi = range.getFullHi();
  fullLo = program.mask.boundsLeft() ? range.getFullLo() : Value();
  // Tiles that a function of visibility shows to all rows have no mask, either.
  if (bounded) {
    VisibleBounds bounds =
        visibleBounds(b, op, program.args,
                      {program.batch, program.head, program.firstQuery, Value(),
                       program.queries, tiles.keys},
                      program.ownQueries, /*tileKeys=*/1);
    fullHi = arith::MinSIOp::create(b, fullHi, bounds.fullHi);
    if (bounds.fullLo)
      fullLo = arith::MaxSIOp::create(b, range.getFullLo(), bounds.fullLo);
  }
  return EdgeTiles(b, fullLo, fullHi, end, bn);
}

Value DecodeProgram::KeyLoop::queriesOf(const ScaledColumns &part) {
  if (qStaged)
    return FragmentLoadOp::create(
        b, program.fragment(BM, part.cols, products, Role::A), qStaged, 0,
        part.first);
  if (part.cols == program.depth)
    return q;
  return FragmentSliceOp::create(
      b, program.fragment(BM, part.cols, products, Role::A), q, 0, part.first);
}

Value DecodeProgram::KeyLoop::multiply(Value kStaged,
                                       ArrayRef<ScaledColumns> groups) {
  Value s;
  for (const ScaledColumns &part : groups) {
    Value k = fragmentOf(kStaged, part, products, Dimension::Cols);
    Value ofPart = queriesOf(part);
    Value product = MmaOp::create(b, ofPart, k, program.fill(scoreType, 0.0f),
                                  /*transpose_b=*/true, /*column=*/0);
    s = program.scales().addScaled(s, product, part.scales);
  }
  return kFactor ? Value(RescaleOp::create(b, s, kFactor)) : s;
}

DecodeState DecodeProgram::KeyLoop::readTile(const DecodeState &state,
                                             Value key, Value i,
                                             const EdgeTiles &edges) {
  CacheScales scales = program.scales();
  Value kCache = program.operand(op.getK()),
        vCache = program.operand(op.getV());
  // Both are asked for before the product of the scores, which hides their
  // latency: a look-up of a page and one of a scale, one after the other (H200,
  // e4m3, pages of 16, 64 sequences of 8192 keys: 323 us, and 507 where each
  // was asked for at its use).
  TileTokens tokens{key, KeyRangeOp(tiles.range).getLo(), tiles.keys};
  Value kScales = scales.ofTokens(kCache, scoreType, tokens);
  Value vScales = scales.ofTokens(vCache, scoreType, tokens);
  auto kGroups = scales.groups(kCache, program.depth, scoreType, tokens);
  auto vGroups = scales.groups(vCache, program.valueDepth, scoreType, tokens);
  // A slot that is both operands has been read as the second when this tile
  // fills it: nothing else lets all meet where it is the only one.
  if (op.isLatent() && program.schedule.getStages() == 1)
    MeetOp::create(b);
  Value kStaged = program.stageTile(kCache, program.kbuf, key, tiles);
  Value s = multiply(kStaged, kGroups);
  s = scales.multiplyByToken(scales.multiply(s, kScale), kScales);
  ScoreTile at{program.batch,   program.head, program.firstQuery, key,
               program.queries, tiles.keys,   program.group};
  at.bounded = bounded;
  s = shapeScores(b, op, program.args, s, at, edges, i);
  bool scalesWeights =
      isScaledByToken(op.getV().getType()) || weightGain(program.weights) != 1;
  bool apart = addsTilesApart(op, program.target);
  FragmentType rowType = program.rowType;
  auto softmax = OnlineSoftmaxOp::create(
      b, scalesWeights ? scoreType : pType, rowType, rowType, rowType, s,
      state.max, state.sum, program.softmaxScale,
      /*masked=*/b.getUnitAttr(), program.unbounded);
  Value scaled = RescaleOp::create(b, state.acc, softmax.getRescale());
  // Values that are columns of the keys are where those are: in their slot,
  // which is not filled anew before both products have read it.
  Value vStaged = op.isLatent()
                      ? kStaged
                      : program.stageTile(vCache, program.vbuf, key, tiles),
        acc = apart ? program.fill(program.accType, 0.0f) : scaled;
  for (const ScaledColumns &part : vGroups) {
    Value v = fragmentOf(vStaged, part, valuesOf(op), Dimension::Rows);
    for (Value p : scales.weights(softmax.getP(),
                                  vScales ? vScales : part.scales, pType, op))
      acc = MmaOp::create(b, p, v, acc, /*transpose_b=*/false,
                          /*column=*/part.first);
  }
  if (apart)
    acc = scales.add(scaled, acc);
  return {acc, softmax.getNewMax(), softmax.getNewSum()};
}

DecodeState DecodeProgram::readKeys(Value first, Value end, const Tiles &tiles,
                                    Value warp) {
  if (warps > 1)
    allocBuffers();
  Value zero = constant(0), one = constant(1), bn = constant(schedule.getBN());
  KeyLoop keys(*this, tiles);
  Value fullLo;
  EdgeTiles edges = keys.findEdges(end, bn, fullLo);
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
  Value back = arith::SubIOp::create(
      b, arith::SubIOp::create(b, end, one).getResult(), i);
  Value key = arith::MulIOp::create(b, back, bn);
  DecodeState next =
      keys.readTile(DecodeState::of(loop.getRegionIterArgs()), key, i, edges);
  scf::YieldOp::create(b, ValueRange{next.acc, next.max, next.sum});
  return DecodeState::of(loop.getResults());
}
