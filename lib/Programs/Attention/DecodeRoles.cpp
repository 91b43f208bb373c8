//===- DecodeRoles.cpp - Latent attention by teams --------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where groups of warps multiply together, a block of latent attention has
// teams: one computes scores and weights, two have half of O's columns each,
// and one moves tiles. A row of keys has three parts, each with slots:
// the values of the one and of the other team, which read them as the second
// operand of their products out of the slot that scores were computed from, and
// the rest. Unless rows are packed the first two take turns in the slots of one
// ring. A slot is filled anew when all teams of its ring have given it
// back. Weights go through slots, too; by what rows are rescaled, through
// queues.
//
// The second team begins when the next tile's scores are nearly there, and so
// multiplies beside their softmax; the first one begins at once, so that its
// slots, of which the next scores need the first, are soon free. Or
// (`overlap`) both begin at once, and the matrix unit has a part of the next
// tile's scores beside the softmax. Where rows are packed, slots are filled
// slowly, and both begin at once, too, so that both halves' are soon free.
//
//===----------------------------------------------------------------------===//

#include "DecodeRoles.h"
#include "ProblemLimits.h"
#include "TileProgram.h"
#include "kvbuffer/Dialect/KVBuffer/IR/ReadOnce.h"
#include "kvbuffer/Dialect/KVBuffer/IR/SizeNames.h"
#include "kvbuffer/Dialect/KVBuffer/IR/TradedShelves.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/VerifyElements.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::role;

Value DecodeProgram::RolePiece::number(ImplicitLocOpBuilder &b, Value i,
                                       int64_t perPiece, int64_t before,
                                       int64_t perTile) const {
  auto constant = [&](int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  };
  Value number = arith::AddIOp::create(b, tilesBefore, i);
  if (perTile > 1)
    number = arith::MulIOp::create(b, number, constant(perTile));
  if (perPiece)
    number = arith::AddIOp::create(
        b, number,
        arith::MulIOp::create(b, piecesBefore, constant(perPiece)).getResult());
  if (before)
    number = arith::AddIOp::create(b, number, constant(before));
  return number;
}

Value DecodeProgram::RolePiece::filling(ImplicitLocOpBuilder &b,
                                        const RolePart &part, Value i) const {
  return number(b, i, part.before, part.before + part.place, part.turns);
}

Value DecodeProgram::RolePiece::ofQueries(ImplicitLocOpBuilder &b,
                                          const RolePart &part) const {
  return number(b, arith::ConstantIndexOp::create(b, 0), part.before,
                part.place, part.turns);
}

ArrayAttr kvbuf::symbolsOf(MLIRContext *context, ArrayRef<StringRef> names) {
  SmallVector<Attribute> list;
  for (StringRef name : names)
    list.push_back(FlatSymbolRefAttr::get(context, name));
  return ArrayAttr::get(context, list);
}

TypedValue<RingType>
DecodeProgram::makeRing(int64_t rows, int64_t cols, int64_t depthInMemory,
                        int64_t offset, int64_t slots, StringRef from,
                        ArrayRef<StringRef> to, Dimension order) {
  int64_t BK = std::min<int64_t>(schedule.getBK(), cols),
          bytes = element.getIntOrFloatBitWidth() / 8;
  // Rows of 128 bytes, where there are such.
  constexpr int64_t widest = 128;
  while (2 * BK * bytes <= widest && cols % (2 * BK) == 0)
    BK *= 2;
  Swizzle swizzle = target.swizzle(
      *target.instructionFor(schedule.getMmaShape(ProductKind::Scores),
                             elementName(element)),
      bytes * BK, bytes, /*transposed=*/true, /*direct=*/true);
  // What is turned lies as the matrix unit knows it.
  SmallVector<int64_t> places;
  if (order == Dimension::Rows)
    places = swizzleList(swizzle);
  auto params = KVBufferAttr::get(
      b.getContext(), kvbuf::Operand::Any, element, Policy::DoubleBuffered,
      /*mma_shape=*/ArrayRef<int64_t>(), places, rows,
      /*WN=*/rows, BK, /*num_threads=*/0, cols, /*kv_num_heads=*/1,
      /*full_kv=*/true, depthInMemory, offset, /*reg_chunk_depth=*/cols,
      /*smem_depth=*/cols, slots, /*warp_size=*/0, order, /*open=*/0);
  Value buffer = AllocOp::create(b, BufferType::get(b.getContext(), params));
  return RingOp::create(b, buffer, from, symbolsOf(b.getContext(), to),
                        /*shared=*/false)
      .getRing();
}

void DecodeProgram::makeChannels(Roles &roles) {
  const LatentRoles &sizes = roles.sizes;
  if (sizes.turns)
    return makeChannelsOfBytes(roles);
  CacheType cache = op.getK().getType();
  auto partOf = [&](int64_t first, int64_t cols, int64_t slots,
                    ArrayRef<StringRef> to) {
    RolePart part{first, cols,
                  makeRing(schedule.getBN(), cols, cache.getTileCols(),
                           cache.getHeadDimOffset() + first, slots, kLoad, to)};
    part.before = roles.queriesBySlots && first < sizes.queries;
    roles.parts.push_back(part);
  };
  roles.queries =
      makeRing(schedule.getBM(), depth - sizes.queries, op.getHeadSize(),
               sizes.queries, /*slots=*/1, kLoad, {kScores});
  if (roles.sharesSlots) {
    // A slot that one half has given back early is the other's.
    partOf(0, sizes.half, sizes.leftSlots + sizes.rightSlots,
           {kScores, kLeft, kRight});
    roles.parts.push_back(roles.parts.front());
    for (int64_t place : {0, 1}) {
      RolePart &part = roles.parts[place];
      part.first = place * sizes.half;
      part.place = place;
      part.turns = 2;
      part.before = roles.queriesBySlots
                        ? llvm::divideCeil(sizes.queries, sizes.half)
                        : 0;
    }
  } else {
    // Warps that fill slots take turns by slots, and are better balanced with
    // the third one on the right.
    partOf(0, sizes.half, sizes.rightSlots, {kScores, kLeft});
    partOf(sizes.half, sizes.half, sizes.leftSlots, {kScores, kRight});
  }
  if (sizes.rest)
    partOf(2 * sizes.half, sizes.rest, sizes.restSlots, {kScores});
  int64_t keys = schedule.getBN() / sizes.weightParts;
  roles.weights =
      makeRing(schedule.getBM(), keys, keys, 0,
               sizes.weightSlots * sizes.weightParts, kScores, {kLeft, kRight});
  auto type = QueueType::get(b.getContext(), {rowType});
  for (unsigned half : {0, 1})
    roles.factors[half] =
        QueueOp::create(b, type, /*slots=*/2, kScores,
                        symbolsOf(b.getContext(), {half ? kRight : kLeft}));
}

Value kvbuf::columnsOf(ImplicitLocOpBuilder &b, Value staged, int64_t first,
                       int64_t cols) {
  int64_t rows = cast<StagedType>(staged.getType()).getRows();
  return partOf(b, staged, /*row=*/0, rows, first, cols);
}

Value kvbuf::partOf(ImplicitLocOpBuilder &b, Value staged, int64_t row,
                    int64_t rows, int64_t col, int64_t cols) {
  auto type = cast<StagedType>(staged.getType());
  if (rows == type.getRows() && cols == type.getCols())
    return staged;
  auto view = StagedType::get(b.getContext(), type.getParams(), rows, cols,
                              type.getRow() + row, type.getCol() + col);
  return StagedViewOp::create(b, view, staged, row, col);
}

Value DecodeProgram::takeQueries(const RolePart &part, const RolePiece &own,
                                 int64_t cols) {
  FragmentType type = fragment(schedule.getBM(), cols, element, Role::A);
  if (!part.hasQueries())
    return TileFragmentOp::create(b, type, queryTile(part.first, cols));
  Value number = own.ofQueries(b, part);
  Value staged = RingWaitOp::create(b, part.ring, number);
  Value q = FragmentLoadOp::create(
      b, type, staged, 0, 0,
      DimensionAttr::get(b.getContext(), Dimension::Cols));
  RingReleaseOp::create(b, part.ring, number);
  return q;
}

Value DecodeProgram::queryTile(int64_t first, int64_t cols) {
  // One query row of the heads: rows of the tile are heads.
  auto q = cast<MemRefType>(op.getQ().getType());
  int64_t rank = q.getRank();
  SmallVector<Value> at = rowsAt();
  at.push_back(constant(first));
  auto tile = TileType::get(b.getContext(), schedule.getBM(), cols, element,
                            /*page_size=*/0);
  return DramTileOp::create(b, tile, operand(op.getQ()), at, rows,
                            constant(cols), b.getI64IntegerAttr(rank - 2));
}

void DecodeProgram::moveTiles(const Roles &roles, const RolePiece &own) {
  Value zero = constant(0), one = constant(1);
  Value tile = queryTile(0, op.getHeadSize());
  bool whole = oneTile && group * tokens == schedule.getBM();
  RingLoadOp::create(b, tile, roles.queries, own.piecesBefore, whole);
  for (const RolePart &part : roles.parts)
    if (part.hasQueries())
      RingLoadOp::create(b, tile, part.ring, own.ofQueries(b, part), whole,
                         part.firstInRing());
  CacheType cache = op.getK().getType();
  KeyRangeOp range = own.tiles.range;
  auto type = TileType::get(b.getContext(), schedule.getBN(),
                            cache.getTileCols(), element, smallPageOf(op));
  auto tileAt = [&](Value i, Value keys) -> Value {
    return CacheTileOp::create(b, type, operand(op.getK()), batch, kvHead,
                               keyOf(own, i), range.getLo(), keys,
                               /*pred=*/Value());
  };
  // One block has all queries of a head of the cache: nobody else reads a row.
  // (H200, 64 heads: 83.0 us for 85.2; of 128 heads another block does.)
  bool once = oneTile && headParts == 1 && !cache.getRow() &&
              LatentRoles::copiesBoxes(cache.getPageSize());
  auto load = [&](const RolePart &part, Value tile, Value i) {
    auto op = RingLoadOp::create(b, tile, part.ring, own.filling(b, part, i),
                                 /*whole=*/false, part.firstInRing());
    if (once)
      op->setAttr(kReadOnceAttr, b.getUnitAttr());
    return op;
  };
  SmallVector<const RolePart *, 3> parts(
      llvm::make_pointer_range(ArrayRef(roles.parts)));
  // A slot of the rest is free as soon as scores have read it: a warp that
  // fills slots of packed rows, one after the other, does not let it wait
  // behind a half (H200, 128 rows of 2048 keys, 64 heads: 130 us, 148 behind).
  if (cache.getRow() && roles.sizes.rest && roles.sizes.restSlots > 1)
    std::rotate(parts.begin(), parts.end() - 1, parts.end());
  if (roles.sizes.bytesAhead)
    return widenTiles(own, parts, tileAt, load);
  auto loop = scf::ForOp::create(b, zero, own.count, one);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value i = loop.getInductionVar();
  Value keyTile = tileAt(i, own.tiles.keys);
  // Rows of bytes are two parts, not three.
  if (cache.getRow() || roles.sizes.turns ||
      LatentRoles::copiesBoxes(cache.getPageSize())) {
    for (const RolePart *part : parts)
      load(*part, keyTile, i);
    return;
  }
  // Lanes copy rows: all warps fill each slot, and wait for its rows when those
  // of the next one have been asked for. No slot waits for one behind it.
  auto end = [&](const RolePart &part, Value of, int64_t younger) {
    load(part, tileAt(of, own.tiles.keys), of).setYounger(younger);
  };
  const RolePart &left = *parts[0], &right = *parts[1], &rest = *parts[2];
  load(left, keyTile, i).setBegin(true);
  choose(arith::CmpIOp::create(b, arith::CmpIPredicate::ne, i, zero),
         [&] { end(right, arith::SubIOp::create(b, i, one), 1); });
  load(rest, keyTile, i).setBegin(true);
  end(left, i, 1);
  load(right, keyTile, i).setBegin(true);
  end(rest, i, 1);
  b.setInsertionPointAfter(loop);
  choose(arith::CmpIOp::create(b, arith::CmpIPredicate::ne, own.count, zero),
         [&] { end(right, arith::SubIOp::create(b, own.count, one), 0); });
}

void DecodeProgram::widenTiles(
    const RolePiece &own, ArrayRef<const RolePart *> parts,
    function_ref<Value(Value i, Value keys)> tileAt,
    function_ref<RingLoadOp(const RolePart &part, Value tile, Value i)> load) {
  // Bytes of the next tile are on their way while those of one are widened, and
  // what the table says of the one behind that.
  Value zero = constant(0), one = constant(1);
  auto begin = [&](const RolePart &part, Value tile, Value i, bool asked) {
    RingLoadOp begun = load(part, tile, i);
    begun.setBegin(true);
    begun.setNextRows(-schedule.getBN());
    begun.setAsked(asked);
  };
  choose(arith::CmpIOp::create(b, arith::CmpIPredicate::ne, own.count, zero),
         [&] {
           Value tile = tileAt(zero, own.tiles.keys);
           for (const RolePart *part : parts)
             begin(*part, tile, zero, /*asked=*/false);
         });
  auto loop = scf::ForOp::create(b, zero, own.count, one);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value i = loop.getInductionVar();
  Value tile = tileAt(i, own.tiles.keys);
  // Behind the last tile stands one without rows.
  Value next = arith::AddIOp::create(b, i, one);
  Value last = arith::SubIOp::create(b, own.count, one);
  Value isTile =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ule, next, last);
  Value nextTile =
      tileAt(arith::MinUIOp::create(b, next, last),
             arith::SelectOp::create(b, isTile, own.tiles.keys, zero));
  // What is copied as it is ends with the first half: one fence serves both.
  int64_t begun = 0, count = parts.size(), from = 0;
  for (int64_t until : {count - 1, count}) {
    for (int64_t k = from; k < until; ++k)
      load(*parts[k], tile, i).setYounger(count - 1 - k + begun);
    for (; from < until; ++from, ++begun)
      begin(*parts[from], nextTile, next, /*asked=*/true);
  }
}

Value DecodeProgram::keyOf(const RolePiece &own, Value i) {
  Value back = arith::SubIOp::create(
      b, arith::SubIOp::create(b, own.end, constant(1)).getResult(), i);
  return arith::MulIOp::create(b, back, constant(schedule.getBN()));
}

DecodeProgram::RolePiece DecodeProgram::splitOfRoles() {
  auto [splits, share] = splitsAndShare();
  addScratch(expr("product", {str(kBatchSize), splits}));
  Value split = block, sequence = item.getResult(2);
  RolePiece own;
  own.tiles = tilesOf(sequence);
  Value splitCount = LaunchValueOp::create(b, splits), size, used;
  if (share) {
    size = LaunchValueOp::create(b, share);
    used = splitCount;
  } else {
    std::tie(size, used) = shareOfSplits(own.tiles, splitCount);
  }
  enter(sequence, own.tiles);
  Value first = arith::AddIOp::create(
      b, own.tiles.begin, arith::MulIOp::create(b, split, size).getResult());
  Value last = arith::MinUIOp::create(
      b, arith::AddIOp::create(b, first, size).getResult(), own.tiles.end);
  own.end = arith::MaxUIOp::create(b, last, first);
  own.count = arith::SubIOp::create(b, own.end, first);
  own.isMine = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, split, used);
  own.piece = {split, used,
               arith::MulIOp::create(b, batch, splitCount).getResult()};
  own.tilesBefore = own.piecesBefore = constant(0);
  return own;
}

void DecodeProgram::forEachPiece(const Roles &roles,
                                 function_ref<void(const RolePiece &)> build) {
  const Shares &shares = roles.shares;
  Value zero = constant(0), one = constant(1);
  auto loop = scf::ForOp::create(b, shares.first, shares.end, one,
                                 ValueRange{shares.start, zero, zero});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  auto [sequence, start] =
      sequenceOf(shares, loop.getInductionVar(), loop.getRegionIterArg(0));
  RolePiece own;
  own.tiles = tilesOf(sequence);
  own.tilesBefore = loop.getRegionIterArg(1);
  own.piecesBefore = loop.getRegionIterArg(2);
  Value units = unitsOf(own.tiles, own.tiles.count, shares.pause);
  Value stop = arith::AddIOp::create(b, start, units);
  enter(sequence, own.tiles);
  // Sequences without a row for this tile lie between those with some.
  auto ofActive = [&](function_ref<SmallVector<Value>()> values,
                      function_ref<SmallVector<Value>()> others) {
    Value active = own.tiles.active;
    if (!active)
      return values();
    SmallVector<Type> types(2, b.getIndexType());
    auto branch = scf::IfOp::create(b, types, active, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(b, values());
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, others());
    return SmallVector<Value>(branch.getResults());
  };
  SmallVector<Value> counted = ofActive(
      [&]() -> SmallVector<Value> {
        OwnTiles tiles = ownTilesOf(shares, own.tiles, start, units, stop);
        own.end = tiles.last;
        own.count = arith::SubIOp::create(b, tiles.last, tiles.first);
        own.piece = tiles.piece;
        Value next = arith::AddIOp::create(b, loop.getInductionVar(), one);
        own.piece.last = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                               next, shares.end);
        if (roles.traded)
          own.isPair = isPair(shares, own.piece, start, stop);
        build(own);
        return {arith::AddIOp::create(b, own.tilesBefore, own.count),
                arith::AddIOp::create(b, own.piecesBefore, one)};
      },
      [&]() -> SmallVector<Value> {
        return {own.tilesBefore, own.piecesBefore};
      });
  scf::YieldOp::create(b, ValueRange{stop, counted[0], counted[1]});
}

void DecodeProgram::buildRoles() {
  Roles roles;
  roles.sizes =
      LatentRoles::of(schedule.getStructure(), operandsOf(op), target);
  bool packed = static_cast<bool>(op.getK().getType().getRow());
  roles.queriesBySlots =
      LatentRoles::copiesBoxes(op.getK().getType().getPageSize()) && !packed &&
      !roles.sizes.turns;
  roles.sharesSlots = !packed && !roles.sizes.turns;
  bool equalShares = schedule.getSplitKeys()->equalShares;
  RolePiece split;
  if (equalShares)
    roles.shares = divideShares();
  else
    split = splitOfRoles();
  makeChannels(roles);
  if (pairsBlocks()) {
    // Both halves trade a half of their slices, and maxima and sums.
    SmallVector<Type> types(colSlices / 4, sliceType);
    types.append({rowType, rowType});
    auto shelf =
        ShelfOp::create(b, ShelfType::get(b.getContext(), types), /*slots=*/2);
    // Also by warps without a row: for values that some do not get the
    // assembler spills (H200, 16 heads: 1128 bytes a thread for 64).
    shelf->setAttr(kTradedAttr, b.getUnitAttr());
    roles.traded = shelf;
  } else if (equalShares && roles.shares.isPaired && colSlices > 2 &&
             roles.sharesSlots) {
    // What a block widens for another one the copy engine may still read.
    SmallVector<Type> types(colSlices / 2 - 1, sliceType);
    auto shelf =
        ShelfOp::create(b, ShelfType::get(b.getContext(), types), /*slots=*/2);
    shelf->setAttr(kParkedAttr, b.getUnitAttr());
    roles.parked = shelf;
  }
  int32_t threads = schedule.getStructure().blockWarps() * target.waveSize;
  kernel.setKnownBlockSizeAttr(b.getDenseI32ArrayAttr({threads, 1, 1}));
  const MovingTeam &mover = *schedule.getMovingTeam();
  teams([&] {
    auto member = [&](StringRef name, int64_t warps, int64_t registers,
                      function_ref<void(const RolePiece &)> build) {
      OpBuilder::InsertionGuard guard(b);
      auto team =
          TeamOp::create(b, name, warps, /*copies=*/1, /*BM=*/0, registers);
      b.createBlock(&team.getBody());
      if (equalShares)
        forEachPiece(roles, build);
      else
        choose(split.isMine, [&] { build(split); });
    };
    int64_t warpsOfTeam = schedule.getWarps();
    member(kScores, warpsOfTeam, roles.sizes.scoreRegisters,
           [&](const RolePiece &own) { computeScores(roles, own); });
    for (unsigned half : {0, 1})
      member(half ? kRight : kLeft, warpsOfTeam, mover.otherRegisters,
             [&](const RolePiece &own) {
               if (roles.sizes.turns)
                 computeHalfOfBytes(roles, own, half);
               else
                 computeHalf(roles, own, half);
             });
    if (roles.sizes.turns)
      member(kTurn, mover.widens.warps, mover.widens.registers,
             [&](const RolePiece &own) { turnTiles(roles, own); });
    member(kLoad, mover.warps, mover.registers,
           [&](const RolePiece &own) { moveTiles(roles, own); });
  });
}
