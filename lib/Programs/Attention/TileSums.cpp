//===- TileSums.cpp - What is summed up over tiles of keys ----------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The products of a tile of queries with tiles of keys, the softmax between
/// them, and the loops over tiles that sum them up.
///
//===----------------------------------------------------------------------===//

#include "TileProgramParts.h"
#include "VisibleBounds.h"

using namespace mlir;
using namespace kvbuf;

Value TileProgram::cacheTile(Value cache, Value start, int64_t rows,
                             Value column) {
  if (Value wide = widened.lookup(cache))
    cache = wide;
  auto type = cast<CacheType>(cache.getType());
  auto tile = TileType::get(b.getContext(), rows, type.getTileCols(),
                            type.getElementType(), smallPageOf(op, rows));
  return CacheTileOp::create(b, tile, cache, batch, kvHead, start, keyLo, keys,
                             /*pred=*/Value(), column);
}

Value TileProgram::stageBlock(Value tile, TypedValue<BufferType> buffer,
                              int64_t block) {
  Value token = DramLoadOp::create(b, tile, buffer, /*slot=*/Value(),
                                   /*pred=*/Value(), /*whole=*/false, block);
  return LdsStageOp::create(b, ValueRange{token}, IntegerAttr()).getStaged()[0];
}

/// The columns of a part that lie in a block of `cols` columns from `first` on.
static ScaledColumns within(const ScaledColumns &part, int64_t first,
                            int64_t cols) {
  int64_t from = std::max(part.first, first);
  return {from, std::min(part.end(), first + cols) - from, part.scales};
}

Value TileProgram::multiplyKeys(function_ref<Value(int64_t, int64_t)> queries,
                                Value cache, TypedValue<BufferType> buffer,
                                Value key, ArrayRef<ScaledColumns> groups,
                                Value begin, int64_t held) {
  KVBufferAttr params = buffer.getType().getParams();
  bool strips = std::holds_alternative<Strips>(schedule.getKeys());
  int64_t blocks = params.getFullKv() ? 1 : params.getNumRepeats();
  int64_t cols = params.getSmemCols();
  auto type =
      fragment(schedule.getBM(), schedule.getBN(), b.getF32Type(), Role::Acc);
  // The group's product so far; the scores of those before it.
  Value product = begin ? begin : fill(type, 0.0f), scores;
  Value tile = cacheTile(cache, key, schedule.getBN());
  for (int64_t block = 0; block < blocks; ++block) {
    // The reads of the strip before have to end; those of the tile before have
    // at the waits for V.
    if (strips && block > 0)
      MeetOp::create(b);
    Value staged = stageBlock(tile, buffer, block);
    int64_t first = block * cols;
    for (const ScaledColumns &group : groups) {
      ScaledColumns part = within(group, first, cols);
      if (part.cols <= 0)
        continue;
      if (!product)
        product = fill(type, 0.0f);
      auto multiply = [&](int64_t col, int64_t cols) {
        Value q = queries(col, cols);
        Value k = FragmentLoadOp::create(
            b, fragment(params.getBN(), cols, products, Role::B), staged, 0,
            col - first, contracts(b, Dimension::Cols));
        product = MmaOp::create(b, q, k, product, /*transpose_b=*/true,
                                /*column=*/0);
      };
      int64_t own = std::clamp<int64_t>(held - part.first, 0, part.cols);
      if (own)
        multiply(part.first, own);
      if (own < part.cols)
        multiply(part.first + own, part.cols - own);
      if (part.end() == group.end()) {
        scores = CacheScales(b, batch, kvHead)
                     .addScaled(scores, product, group.scales);
        product = nullptr;
      }
    }
  }
  return scores;
}

Value TileProgram::multiplyValues(ArrayRef<Weighted> weighted, Value cache,
                                  TypedValue<BufferType> buffer, Value key,
                                  Value acc) {
  if (std::holds_alternative<Strips>(schedule.getValues()))
    return multiplyStrips(weighted, cache, buffer, key, acc);
  KVBufferAttr params = buffer.getType().getParams();
  int64_t blocks = params.getFullKv() ? 1 : params.getNumRepeats();
  int64_t cols = params.getSmemCols();
  Value tile = cacheTile(cache, key, schedule.getBN(), partColumn);
  for (int64_t block = 0; block < blocks; ++block) {
    Value staged = stageBlock(tile, buffer, block);
    int64_t first = block * cols;
    for (auto &[group, ps] : weighted) {
      ScaledColumns part = within(group, first, cols);
      if (part.cols <= 0)
        continue;
      Value v = FragmentLoadOp::create(
          b, fragment(params.getBN(), part.cols, values, Role::B), staged, 0,
          part.first - first, contracts(b, Dimension::Rows));
      for (Value p : ps)
        acc = MmaOp::create(b, p, v, acc, /*transpose_b=*/false, part.first);
    }
  }
  return acc;
}

SmallVector<Value> TileProgram::addValues(OnlineSoftmaxOp softmax, Value cache,
                                          TypedValue<BufferType> buffer,
                                          Value key, ValueRange accs) {
  auto type = cast<FragmentType>(accs.front().getType());
  int64_t rows = buffer.getType().getParams().getBN(), cols = type.getCols();
  Value staged = stageBlock(cacheTile(cache, key, schedule.getBN()), buffer,
                            /*block=*/0);
  auto multiply = [&](int64_t first) -> Value {
    Value v =
        FragmentLoadOp::create(b, fragment(rows, cols, values, Role::B), staged,
                               0, first, contracts(b, Dimension::Rows));
    return MmaOp::create(b, softmax.getP(), v, fill(type, 0.0f),
                         /*transpose_b=*/false, /*column=*/0);
  };
  SmallVector<Value> sums;
  Value product = multiply(0);
  for (auto [i, acc] : llvm::enumerate(accs)) {
    int64_t next = i + 1;
    Value after = next < int64_t(accs.size()) ? multiply(next * cols) : Value();
    sums.push_back(
        RescaleOp::create(b, type, acc, softmax.getRescale(), product));
    product = after;
  }
  return sums;
}

Value TileProgram::multiplyStrips(ArrayRef<Weighted> weighted, Value cache,
                                  TypedValue<BufferType> buffer, Value key,
                                  Value acc) {
  int64_t rows = buffer.getType().getParams().getBN();
  for (int64_t first = 0; first < schedule.getBN(); first += rows) {
    if (first > 0)
      MeetOp::create(b);
    Value at = arith::AddIOp::create(b, key, constant(first));
    Value staged = stageBlock(cacheTile(cache, at, rows), buffer, /*block=*/0);
    for (auto &[part, ps] : weighted)
      for (Value ofStrip : ps) {
        if (rows < schedule.getBN())
          ofStrip = FragmentSliceOp::create(
              b, fragment(schedule.getBM(), rows, weights, Role::A), ofStrip, 0,
              first);
        Value strip = FragmentLoadOp::create(
            b, fragment(rows, part.cols, values, Role::B), staged, 0,
            part.first, contracts(b, Dimension::Rows));
        acc = MmaOp::create(b, ofStrip, strip, acc, /*transpose_b=*/false,
                            /*column=*/part.first);
      }
  }
  return acc;
}

Value TileProgram::addUp(Value one, Value other) {
  auto sum = MapOp::create(b, one.getType(), ValueRange{one, other},
                           /*row=*/Value(), /*col=*/Value());
  OpBuilder::InsertionGuard guard(b);
  Block *body = &sum.getBody().emplaceBlock();
  for (Type type : {Type(b.getF32Type()), Type(b.getF32Type()),
                    Type(b.getIndexType()), Type(b.getIndexType())})
    body->addArgument(type, b.getLoc());
  b.setInsertionPointToStart(body);
  YieldOp::create(
      b, arith::AddFOp::create(b, body->getArgument(0), body->getArgument(1))
             .getResult());
  return sum.getResult();
}

scf::ForOp TileProgram::sumInParts(
    Value count, ValueRange init,
    function_ref<scf::ForOp(Value, Value, ValueRange)> sumTiles) {
  Value zero = constant(0), one = constant(1);
  Value part =
      constant(std::max<int64_t>(schedule.getSumKeys() / schedule.getBN(), 1));
  auto parts = scf::ForOp::create(
      b, zero, arith::CeilDivUIOp::create(b, count, part), one, init);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(parts.getBody());
  Value max = parts.getRegionIterArg(1);
  Value first = arith::MulIOp::create(b, parts.getInductionVar(), part);
  Value last = arith::MinSIOp::create(
      b, arith::AddIOp::create(b, first, part).getResult(), count);
  SmallVector<Value> state(parts.getRegionIterArgs());
  auto isSum = [](size_t i) { return i != 1 && i != 2; };
  for (auto [i, value] : llvm::enumerate(state))
    if (isSum(i))
      value = fill(cast<FragmentType>(value.getType()), 0.0f);
  scf::ForOp loop = sumTiles(first, last, state);

  // What goes from one maximum to the next is what a softmax gives for a tile
  // whose scores are the next one.
  FragmentType rowType = cast<FragmentType>(max.getType());
  FragmentType tileType =
      fragment(schedule.getBM(), schedule.getBN(), b.getF32Type(), Role::Acc);
  Value tile = RescaleOp::create(b, fill(tileType, 1.0f), loop.getResult(1));
  auto softmax = OnlineSoftmaxOp::create(
      b, tileType, rowType, rowType, rowType, tile, max, fill(rowType, 0.0f),
      b.getF32FloatAttr(softmaxScale()), /*masked=*/b.getUnitAttr(),
      unboundedScoresOf(op));
  SmallVector<Value> results(loop.getResults());
  for (auto [i, value] : llvm::enumerate(results)) {
    if (!isSum(i))
      continue;
    Value rescaled =
        RescaleOp::create(b, parts.getRegionIterArg(i), softmax.getRescale());
    value = addUp(rescaled, value);
  }
  scf::YieldOp::create(b, results);
  return parts;
}

void TileProgram::beginSums(QueryTile &tile) {
  int64_t BM = schedule.getBM(), BN = schedule.getBN();
  // Where registers have no room for the product of a tile beside all of the
  // accumulators, these are parts of a few columns each.
  tile.apart = addsTilesApart(op, target);
  ScheduleLimits limits = limitsOf(op, schedule.getStructure(), target);
  tile.accCols = limits.columnsApart(operandsOf(op));
  tile.accParts = valueDepth / tile.accCols;
  tile.accType = fragment(BM, tile.accCols, b.getF32Type(), Role::Acc);
  tile.scoreType = fragment(BM, BN, b.getF32Type(), Role::Acc);
  tile.rowType = fragment(BM, 1, b.getF32Type(), Role::Row);
  tile.pType = fragment(BM, BN, weights, Role::A);
  // One after the other: which is made first is not the compiler's to choose.
  tile.init = {fill(tile.accType, 0.0f)};
  tile.init.push_back(
      fill(tile.rowType, -std::numeric_limits<float>::infinity()));
  tile.init.push_back(fill(tile.rowType, 0.0f));
  tile.init.append(tile.accParts - 1, tile.init.front());
  CacheScales scales(b, batch, kvHead);
  tile.kScale = scales.ofHead(operand(op.getK()));
  tile.kFactor = scales.fit(op, target, tile.qf, tile.rowType, tile.kScale);
  if (tile.kFactor)
    products = b.getF16Type();
  // Weights that are multiplied by something before they are rounded.
  tile.gain = weightGain(weights);
  const MovingTeam *team = schedule.getMovingTeam();
  tile.scalesWeights =
      isScaledByToken(op.getV().getType()) || (tile.gain != 1 && !team);
  // Weights of bytes are added up as they were rounded, by the matrix unit,
  // where nothing but the output needs their sum: additions are an eighth of
  // what groups execute otherwise. Each of 8 columns of ones has an eighth.
  constexpr int64_t sumCols = 8;
  // Each of the warps that put them has 16 rows of ones.
  constexpr int64_t rowsOfWarp = 16;
  int64_t ones = team ? BN * rowsOfWarp * team->widens.warps : 0;
  bool hasRoom =
      limits.sharedBytes(operandsOf(op)) + ones <= int64_t(target.ldsBytes);
  tile.sumsByUnit = tile.apart && ones && hasRoom && tile.gain != 1 &&
                    !op.getLse() && !op.getSink() && !schedule.getSumKeys();
  tile.sumType = fragment(BM, sumCols, b.getF32Type(), Role::Acc);
  tile.noSum = tile.init[2];
  if (tile.sumsByUnit) {
    tile.ones = fill(fragment(sumCols, BN, weights, Role::B), 1.0f / sumCols);
    tile.init[2] = fill(tile.sumType, 0.0f);
  }
}

Value TileProgram::scoresOf(const QueryTile &tile, scf::ForOp loop,
                            const TileTokens &tokens, bool mayBeCut) {
  Value k = operand(op.getK()), i = loop.getInductionVar();
  CacheScales scales(b, batch, kvHead);
  auto queriesAt = [&](int64_t col, int64_t cols) -> Value {
    FragmentType type = fragment(schedule.getBM(), cols, products, Role::A);
    if (tile.qHeld && col < tile.heldCols)
      return tile.qHeld;
    if (!tile.qf)
      return FragmentLoadOp::create(b, type, tile.qs, 0, col);
    return cols == depth ? tile.qf
                         : FragmentSliceOp::create(b, type, tile.qf, 0, col);
  };
  ScoreTile at{batch, head, query, tokens.first, queries, keys, group};
  at.loop = loop;
  at.bounded = boundsKeys(op, group);
  at.mayBeCut = mayBeCut;
  at.endApart = tile.tiles.endApart;
  // Tiles of keys come before what scores read beside them, unless products
  // wait for that.
  auto read = [&] {
    if (!tile.read)
      return;
    at.read = tile.read->fragmentAt(b, tokens.first);
    at.readBy = tile.readBy;
  };
  std::optional<AddedScores> added = addedScores();
  std::optional<BegunMask> mask = begunMask();
  if (added)
    read();
  auto beginWith = [&](const BegunMask *mask) -> Value {
    if (added)
      return added->begin(b, op, args, at, tile.scoreType, mask);
    return mask ? mask->begin(b, at, tile.scoreType)
                : fill(tile.scoreType, 0.0f);
  };
  Value begin;
  if (mask) {
    auto branch = scf::IfOp::create(b, TypeRange{tile.scoreType},
                                    tile.tiles.edges.kindsOf(b, i).isEdge,
                                    /*addThenBlock=*/true,
                                    /*addElseBlock=*/true);
    for (Block *side : {branch.thenBlock(), branch.elseBlock()}) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(side);
      scf::YieldOp::create(
          b, beginWith(side == branch.thenBlock() ? &*mask : nullptr));
    }
    begin = branch.getResult(0);
  } else if (added) {
    begin = beginWith(nullptr);
  }
  at.begun = added.has_value();
  at.begunMask = mask.has_value();
  Value s = multiplyKeys(queriesAt, k, tile.kbuf, tokens.first,
                         scales.groups(k, depth, tile.scoreType, tokens), begin,
                         tile.heldCols);
  if (tile.kFactor)
    s = RescaleOp::create(b, s, tile.kFactor);
  s = scales.multiplyByToken(scales.multiply(s, tile.kScale),
                             scales.ofTokens(k, tile.scoreType, tokens));
  if (!at.begun)
    read();
  return shapeScores(b, op, args, s, at, tile.tiles.edges, i);
}

void TileProgram::addTile(const QueryTile &tile, scf::ForOp loop,
                          bool mayBeCut) {
  Value v = operand(op.getV());
  Value acc = loop.getRegionIterArg(0), m = loop.getRegionIterArg(1),
        l = loop.getRegionIterArg(2);
  Value key = tile.tiles.keyOf(loop.getInductionVar());
  TileTokens tokens{key, keyLo, keys};
  Value s = scoresOf(tile, loop, tokens, mayBeCut);
  auto softmax = OnlineSoftmaxOp::create(
      b, tile.scalesWeights ? tile.scoreType : tile.pType, tile.rowType,
      tile.rowType, tile.rowType, s, m, tile.sumsByUnit ? tile.noSum : l,
      b.getF32FloatAttr(softmaxScale()),
      /*masked=*/b.getUnitAttr(), unboundedScoresOf(op));
  if (tile.gain != 1 && !tile.scalesWeights)
    softmax.setGainAttr(b.getF32FloatAttr(tile.gain));
  Value scaled =
      tile.apart ? acc : RescaleOp::create(b, acc, softmax.getRescale());

  CacheScales scales(b, batch, kvHead);
  SmallVector<Weighted> weighted;
  Value vScales = scales.ofTokens(v, tile.scoreType, tokens);
  for (const ScaledColumns &part :
       scales.groups(v, valueDepth, tile.scoreType, tokens))
    weighted.push_back(
        {part, scales.weights(softmax.getP(), vScales ? vScales : part.scales,
                              tile.pType, op)});
  SmallVector<Value> accs{acc};
  llvm::append_range(accs, loop.getRegionIterArgs().drop_front(3));
  if (tile.accParts > 1) {
    accs = addValues(softmax, v, tile.vbuf, key, accs);
  } else {
    accs[0] = multiplyValues(weighted, v, tile.vbuf, key,
                             tile.apart ? fill(tile.accType, 0.0f) : scaled);
    if (tile.apart)
      accs[0] = RescaleOp::create(b, tile.accType, scaled, softmax.getRescale(),
                                  accs[0]);
  }
  Value newSum = softmax.getNewSum();
  if (tile.sumsByUnit) {
    Value sum =
        MmaOp::create(b, softmax.getP(), tile.ones, fill(tile.sumType, 0.0f),
                      /*transpose_b=*/true);
    newSum = RescaleOp::create(b, tile.sumType, l, softmax.getRescale(), sum);
  }
  SmallVector<Value> yielded{accs[0], softmax.getNewMax(), newSum};
  llvm::append_range(yielded, ArrayRef(accs).drop_front());
  scf::YieldOp::create(b, yielded);
}

scf::ForOp TileProgram::sumTiles(const QueryTile &tile, Value first, Value last,
                                 ValueRange state, bool mayBeCut) {
  auto loop = scf::ForOp::create(b, first, last, c1, state);
  if (tile.tiles.wholeAfterFirst)
    loop->setAttr(KVBufferDialect::kWholeAfterFirstAttr, b.getUnitAttr());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  addTile(tile, loop, mayBeCut);
  return loop;
}

SmallVector<Value> TileProgram::sumAllTiles(const QueryTile &tile) {
  const KeyTiles &tiles = tile.tiles;
  auto sumAll = [&](bool mayBeCut) {
    auto sum = [&](Value first, Value last, ValueRange state) {
      return sumTiles(tile, first, last, state, mayBeCut);
    };
    return schedule.getSumKeys() ? sumInParts(tiles.count, tile.init, sum)
                                 : sum(c0, tiles.count, tile.init);
  };
  if (!tiles.isCut)
    return sumAll(/*mayBeCut=*/true).getResults();
  // Few sequences have a block that is cut, and to look for it in each costs as
  // much as a function of visibility.
  auto branch = scf::IfOp::create(b, ValueRange(tile.init).getTypes(),
                                  tiles.isCut, /*addThenBlock=*/true,
                                  /*addElseBlock=*/true);
  for (Block *side : {branch.thenBlock(), branch.elseBlock()}) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(side);
    scf::ForOp loop = sumAll(/*mayBeCut=*/side == branch.thenBlock());
    scf::YieldOp::create(b, loop.getResults());
  }
  return branch.getResults();
}
