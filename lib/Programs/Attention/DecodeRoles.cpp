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
#include "TileScores.h"
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

DecodeProgram::Weighted
DecodeProgram::weigh(Value scores, Value max, Value sum, FragmentType type,
                     Value i, int64_t parts,
                     function_ref<void(const Weighted &, int64_t part)> then) {
  int64_t cols = type.getCols() / parts;
  auto sliceOf = [&](Value whole, FragmentType of, int64_t part) -> Value {
    if (parts == 1)
      return whole;
    auto slice =
        fragment(of.getRows(), cols, of.getElementType(), of.getRole());
    return FragmentSliceOp::create(b, slice, whole, /*row=*/0,
                                   /*col=*/part * cols);
  };
  // Maxima that stay behind by some powers of two cost nobody anything: most
  // tiles then have factors of 1, and no lane asks the others of its row. Rows
  // of a warp decide together. Scores of any size do not bear it.
  // Nor do weights of bytes, which maxima that stay behind would let exceed the
  // largest number.
  float gain = weightGain(weights);
  Weighted weighted;
  if (unbounded || op.getBatchInvariant() || gain != 1) {
    auto softmax = OnlineSoftmaxOp::create(
        b, type, rowType, rowType, rowType, scores, max, sum, softmaxScale,
        /*masked=*/b.getUnitAttr(), unbounded);
    if (gain != 1)
      softmax.setGainAttr(b.getF32FloatAttr(gain));
    for (int64_t part = 0; part < parts; ++part) {
      weighted = {sliceOf(softmax.getP(), type, part), softmax.getNewMax(),
                  softmax.getNewSum(), softmax.getRescale()};
      then(weighted, part);
    }
    return weighted;
  }
  // But for the first two tiles of a piece: the maximum of few scores says
  // little of those that follow, and the largest weights, of which few keys
  // have much, are 1 then and are not rounded. In 32 bits, which is what scalar
  // units compare.
  Value number = arith::IndexCastOp::create(b, b.getI32Type(), i);
  Value early = arith::CmpIOp::create(
      b, arith::CmpIPredicate::sle, number,
      arith::ConstantIntOp::create(b, /*value=*/1, /*width=*/32));
  auto raise = RaiseMaxOp::create(b, rowType, rowType, b.getI1Type(), scores,
                                  max, early, softmaxScale,
                                  /*exact_only=*/UnitAttr(),
                                  /*unbounded=*/UnitAttr());
  weighted.max = raise.getNewMax();
  weighted.factor = raise.getFactor();
  weighted.sum = CarryExcessOp::create(b, rowType, sum, raise.getFactor(),
                                       fill(rowType, 0.0f));
  // Who multiplies by a part begins while the next one is computed.
  FragmentType ofScores = cast<FragmentType>(scores.getType());
  auto ofPart = fragment(type.getRows(), cols, type.getElementType(), Role::A);
  for (int64_t part = 0; part < parts; ++part) {
    Value own = sliceOf(scores, ofScores, part);
    auto head = SoftmaxHeadOp::create(b, own.getType(), rowType, own,
                                      weighted.max, softmaxScale,
                                      TypeAttr::get(type.getElementType()),
                                      /*masked=*/b.getUnitAttr(),
                                      /*exponents_only=*/UnitAttr(),
                                      /*unbounded=*/UnitAttr());
    auto tail = SoftmaxTailOp::create(b, ofPart, rowType, head.getExponents(),
                                      weighted.sum, /*excess=*/Value(),
                                      /*rounded=*/UnitAttr());
    weighted.p = tail.getP();
    weighted.sum = tail.getNewSum();
    then(weighted, part);
  }
  return weighted;
}

SmallVector<DecodeProgram::RoleColumns>
DecodeProgram::columnsOfScores(const Roles &roles, const RolePiece &own) {
  SmallVector<RoleColumns> columns;
  // Slots that are given back late come last, and those that are filled late:
  // for others, too (H200, 128 heads: 189.8 us for 192.6, 64 heads 118.9 for
  // 118.0).
  SmallVector<const RolePart *, 3> parts(
      llvm::make_pointer_range(ArrayRef(roles.parts)));
  bool forOthers =
      roles.sizes.bytesAhead && schedule.getStructure().cluster() > 1;
  if (parts.size() > 2 && (roles.sharesSlots || forOthers))
    std::swap(parts[1], parts[2]);
  for (const RolePart *some : parts) {
    const RolePart &part = *some;
    int64_t end = part.first + part.cols;
    int64_t inRegisters = std::clamp(roles.sizes.queries, part.first, end);
    if (inRegisters > part.first) {
      int64_t cols = inRegisters - part.first;
      columns.push_back(
          {&part, part.first, cols, takeQueries(part, own, cols)});
    }
    if (end > inRegisters)
      columns.push_back({&part, inRegisters, end - inRegisters, Value()});
  }
  return columns;
}

void DecodeProgram::startScores(const Roles &roles, const RolePiece &own,
                                ArrayRef<RoleColumns> columns, Value queries,
                                Value i, RoleProducts &flight) {
  auto pending = PendingType::get(b.getContext(), schedule.getBM(),
                                  schedule.getBN(), b.getF32Type());
  for (const RoleColumns &some : columns) {
    const RolePart &part = *some.part;
    if (flight.read.empty() || flight.read.back().first != &part) {
      Value number = own.filling(b, part, i);
      flight.staged = RingWaitOp::create(b, part.ring, number);
      flight.read.push_back({&part, number});
    }
    Value q = some.q;
    if (!q)
      q = columnsOf(b, queries, some.first - roles.sizes.queries, some.cols);
    Value k = columnsOf(b, flight.staged, some.first - part.first, some.cols);
    flight.products.push_back(MmaStartOp::create(
        b, pending, q, k,
        flight.products.empty() ? Value() : flight.products.back(),
        /*transpose_b=*/true));
  }
}

Value DecodeProgram::awaitScores(const RoleProducts &flight) {
  Value s = MmaWaitOp::create(b, flight.products.back(), /*younger=*/0);
  for (auto [part, number] : flight.read)
    RingReleaseOp::create(b, part->ring, number);
  return s;
}

DecodeProgram::Weighted
DecodeProgram::passWeights(const Roles &roles, const RolePiece &own, Value s,
                           Value max, Value sum, const EdgeTiles &edges,
                           Value i, Value key) {
  s = scales().multiply(s, scale);
  s = shapeScores(
      b, op, args, s,
      {batch, head, firstQuery, key, queries, own.tiles.keys, group}, edges, i);
  int64_t parts = roles.sizes.weightParts;
  // Known before the first put: the next one's slot is awaited behind it.
  SmallVector<Value> numbers;
  for (int64_t part = 0; part < parts; ++part)
    numbers.push_back(own.number(b, i, 0, part, parts));
  auto pass = [&](const Weighted &some, int64_t part) {
    if (roles.sizes.turns) {
      QueuePutOp::create(b, ValueRange{some.p, some.factor}, roles.weighted,
                         numbers[part]);
      return;
    }
    // A half rescales while weights are on their way.
    for (unsigned half : {0, 1})
      if (!part && !roles.isLate(half))
        QueuePutOp::create(b, ValueRange{some.factor}, roles.factors[half],
                           own.entry(b, /*late=*/false, i));
    RingPutOp::create(b, some.p, roles.weights, numbers[part],
                      /*transpose=*/false);
  };
  return weigh(s, max, sum,
               fragment(schedule.getBM(), schedule.getBN(), weights, Role::A),
               i, parts, pass);
}

Value DecodeProgram::firstMax() {
  constexpr float lowest = -std::numeric_limits<float>::infinity();
  int64_t rowsThere = group * tokens;
  if (!oneTile || headParts != 1 || tokens <= 0 ||
      rowsThere >= schedule.getBM())
    return fill(rowType, lowest);
  // The other rows' weights are 0 beside such a maximum, which is less work for
  // the matrix unit than 1: it takes less power.
  constexpr float beyondAll = 1e30f;
  auto type =
      fragment(schedule.getBM(), schedule.getBN(), b.getF32Type(), Role::Acc);
  auto map =
      MapOp::create(b, type, ValueRange{fill(type, lowest)}, Value(), Value());
  {
    OpBuilder::InsertionGuard guard(b);
    Type index = b.getIndexType();
    Location loc = b.getLoc();
    Block *body = b.createBlock(
        &map.getBody(), {}, {b.getF32Type(), index, index}, {loc, loc, loc});
    Value isThere =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ult,
                              body->getArgument(1), constant(rowsThere));
    Value beyond =
        arith::ConstantOp::create(b, b.getF32FloatAttr(beyondAll)).getResult();
    YieldOp::create(
        b, arith::SelectOp::create(b, isThere, body->getArgument(0), beyond)
               .getResult());
  }
  return RowReduceOp::create(b, rowType, Reduction::Maximum, map);
}

scf::ForOp DecodeProgram::scoreLoop(Value count, Value other) {
  Value low = firstMax(), nothing = fill(rowType, 0.0f), zero = constant(0),
        one = constant(1);
  auto loop =
      scf::ForOp::create(b, zero, count, one, ValueRange{low, nothing, other});
  if (!mask.boundsLeft())
    loop->setAttr(KVBufferDialect::kWholeAfterFirstAttr, b.getUnitAttr());
  return loop;
}

std::pair<Value, Value> DecodeProgram::scoreTiles(const Roles &roles,
                                                  const RolePiece &own,
                                                  ArrayRef<RoleColumns> columns,
                                                  Value rest,
                                                  const EdgeTiles &edges) {
  scf::ForOp loop = scoreLoop(own.count, fill(rowType, 1.0f));
  // The factor of the tile before, when scores are nearly there.
  auto putLate = [&](Value factor, Value i) {
    if (!roles.isLate(1))
      return;
    QueuePutOp::create(b, ValueRange{factor}, roles.factors[1],
                       own.entry(b, /*late=*/true, i));
  };
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value i = loop.getInductionVar();
    Value key = keyOf(own, i);
    RoleProducts flight;
    startScores(roles, own, columns, rest, i, flight);
    // The second half's product runs beside this tile's softmax.
    if (!roles.sizes.turns) {
      MmaWaitOp::create(b, flight.products[flight.products.size() - 2],
                        /*younger=*/1);
      putLate(loop.getRegionIterArg(2), i);
    }
    Weighted weighted =
        passWeights(roles, own, awaitScores(flight), loop.getRegionIterArg(0),
                    loop.getRegionIterArg(1), edges, i, key);
    scf::YieldOp::create(
        b, ValueRange{weighted.max, weighted.sum, weighted.factor});
  }
  RingReleaseOp::create(b, roles.queries, own.piecesBefore);
  if (!roles.sizes.turns)
    putLate(loop.getResult(2), own.count);
  return {loop.getResult(0), loop.getResult(1)};
}

std::pair<Value, Value>
DecodeProgram::scoreTilesAhead(const Roles &roles, const RolePiece &own,
                               ArrayRef<RoleColumns> columns, Value rest,
                               const EdgeTiles &edges) {
  Value zero = constant(0), one = constant(1);
  Value some =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ne, own.count, zero);
  Value last = arith::SubIOp::create(
      b, arith::MaxUIOp::create(b, own.count, one).getResult(), one);
  // `yes` where there is a tile, else the values `no`.
  auto ifSome = [&](ValueRange no, function_ref<SmallVector<Value>()> yes) {
    auto branch = scf::IfOp::create(b, no.getTypes(), some,
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(b, yes());
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, no);
    return branch.getResults();
  };
  FragmentType type =
      fragment(schedule.getBM(), schedule.getBN(), b.getF32Type(), Role::Acc);
  Value first = ifSome(fill(type, 0.0f), [&]() -> SmallVector<Value> {
    RoleProducts flight;
    startScores(roles, own, columns, rest, zero, flight);
    return {awaitScores(flight)};
  })[0];
  scf::ForOp loop = scoreLoop(last, first);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value i = loop.getInductionVar();
    Value next = arith::AddIOp::create(b, i, one);
    // The parts with fewer slots come behind the softmax: their slots are free
    // sooner.
    RoleProducts flight;
    size_t ahead = roles.sizes.turns ? columns.size() : 1;
    startScores(roles, own, columns.take_front(ahead), rest, next, flight);
    Weighted weighted = passWeights(
        roles, own, loop.getRegionIterArg(2), loop.getRegionIterArg(0),
        loop.getRegionIterArg(1), edges, i, keyOf(own, i));
    startScores(roles, own, columns.drop_front(ahead), rest, next, flight);
    scf::YieldOp::create(
        b, ValueRange{weighted.max, weighted.sum, awaitScores(flight)});
  }
  // The next piece's queries come beside the last tile's weights.
  RingReleaseOp::create(b, roles.queries, own.piecesBefore);
  ValueRange sums = loop.getResults().take_front(2);
  sums = ifSome(sums, [&]() -> SmallVector<Value> {
    Weighted weighted = passWeights(roles, own, loop.getResult(2), sums[0],
                                    sums[1], edges, last, keyOf(own, last));
    return {weighted.max, weighted.sum};
  });
  return {sums[0], sums[1]};
}

void DecodeProgram::computeScores(const Roles &roles, const RolePiece &own) {
  // Groups' scales elements have when they are multiplied.
  scale = scales().ofHead(operand(op.getK()));
  Value rest = RingWaitOp::create(b, roles.queries, own.piecesBefore);
  SmallVector<RoleColumns> columns = columnsOfScores(roles, own);
  EdgeTiles edges(b, own.tiles.range, KeyRangeOp(own.tiles.range).getFullHi(),
                  own.end, constant(schedule.getBN()), mask);
  auto [max, sum] = roles.sizes.scoresAhead
                        ? scoreTilesAhead(roles, own, columns, rest, edges)
                        : scoreTiles(roles, own, columns, rest, edges);
  if (roles.sizes.turns) {
    QueuePutOp::create(b, ValueRange{max, sum}, roles.ends, own.piecesBefore);
    return;
  }
  for (unsigned half : {0, 1}) {
    bool late = roles.isLate(half);
    for (int64_t which : {0, 1})
      QueuePutOp::create(b, ValueRange{which ? sum : max}, roles.factors[half],
                         own.entry(b, late, own.count, late + which));
  }
}

void DecodeProgram::computeHalf(const Roles &roles, const RolePiece &own,
                                unsigned half) {
  int64_t BM = schedule.getBM();
  bool late = roles.isLate(half);
  const RolePart &part = roles.parts[half];
  Value zero = constant(0), one = constant(1);
  auto take = [&](Value i, int64_t after) -> Value {
    return QueueTakeOp::create(b, roles.factors[half],
                               own.entry(b, late, i, after))
        .getResult(0);
  };
  // The factor of a tile comes with the next one's scores.
  if (late)
    take(zero, 0);
  // A slot of both halves both give back, whoever reads it.
  auto passBy = [&](const RolePart &other, Value number) {
    RingWaitOp::create(b, other.ring, number);
    RingReleaseOp::create(b, other.ring, number);
  };
  const RolePart &other = roles.parts[1 - half];
  bool shares = roles.sharesSlots;
  for (unsigned some : {0, 1})
    if (const RolePart &of = roles.parts[some];
        of.hasQueries() && (shares || some == half))
      passBy(of, own.ofQueries(b, of));
  constexpr int64_t cols = LatentRoles::kProductCols;
  int64_t many = part.cols / cols;
  SmallVector<Value> none(
      many, fill(fragment(BM, cols, b.getF32Type(), Role::Acc), 0.0f));
  auto loop = scf::ForOp::create(b, zero, own.count, one, none);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value i = loop.getInductionVar(), number = own.filling(b, part, i);
    if (shares && half == 1)
      passBy(other, own.filling(b, other, i));
    Value staged = RingWaitOp::create(b, part.ring, number);
    if (shares && half == 0)
      passBy(other, own.filling(b, other, i));
    Value factor = take(i, late);
    SmallVector<Value> scaled, products, results;
    for (Value acc : loop.getRegionIterArgs())
      scaled.push_back(RescaleOp::create(b, acc, factor));
    auto pending = PendingType::get(b.getContext(), BM, cols, b.getF32Type());
    products = scaled;
    SmallVector<Value> ofWeights;
    for (int64_t n = 0, parts = roles.sizes.weightParts; n < parts; ++n) {
      int64_t keys = schedule.getBN() / parts;
      ofWeights.push_back(own.number(b, i, 0, n, parts));
      Value p = RingWaitOp::create(b, roles.weights, ofWeights.back());
      for (int64_t k = 0; k < many; ++k)
        products[k] = MmaStartOp::create(
            b, pending, p, partOf(b, staged, n * keys, keys, k * cols, cols),
            products[k], /*transpose_b=*/false);
    }
    for (int64_t n = 0; n < many; ++n)
      results.push_back(MmaWaitOp::create(b, products[n], many - 1 - n));
    RingReleaseOp::create(b, part.ring, number);
    for (Value number : ofWeights)
      RingReleaseOp::create(b, roles.weights, number);
    scf::YieldOp::create(b, results);
  }
  Value max = take(own.count, late), sum = take(own.count, late + 1);
  storeHalf(roles, own, half, loop.getResults(), max, sum);
}

Value DecodeProgram::sliceOf(ValueRange accs, int64_t slice) {
  int64_t cols = cast<FragmentType>(accs.front().getType()).getCols(),
          col = slice * sliceCols;
  Value acc = accs[col / cols];
  if (cols > sliceCols)
    acc = FragmentSliceOp::create(b, sliceType, acc, /*row=*/0,
                                  /*col=*/col % cols);
  return acc;
}

void DecodeProgram::tradeHalf(const Roles &roles, ValueRange accs, Value max,
                              Value sum) {
  // The first block keeps the first slices, the other one the last ones: both
  // run the same code, which neither has run before.
  int64_t kept = ownSlices / 2;
  Value slot = constant(firstSlice / ownSlices);
  Value rank = arith::RemUIOp::create(b, block, constant(2));
  Value isFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, rank, constant(0));
  auto turned = scf::IfOp::create(b, SmallVector<Type>(ownSlices, sliceType),
                                  isFirst, /*withElseRegion=*/true);
  for (int64_t from : {int64_t(0), kept}) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(from ? turned.elseBlock() : turned.thenBlock());
    SmallVector<Value> slices;
    for (int64_t i = 0; i < ownSlices; ++i)
      slices.push_back(sliceOf(accs, (from + i) % ownSlices));
    scf::YieldOp::create(b, slices);
  }
  ValueRange own = turned.getResults();
  Value first = arith::SelectOp::create(b, isFirst, constant(firstSlice),
                                        constant(firstSlice + kept));
  SmallVector<Value> given(own.drop_front(kept));
  given.append({max, sum});
  ShelfPutOp::create(b, given, roles.traded, slot);
  // Each slice is got when it is joined: there are no registers for all.
  Value otherMax, otherSum;
  for (int64_t i = 0; i < kept; ++i) {
    ValueRange others = ShelfGetOp::create(b, roles.traded, slot).getValues();
    if (i == 0) {
      otherMax = others[kept];
      otherSum = others[kept + 1];
    }
    finish(merge({own[i], max, sum}, {others[i], otherMax, otherSum}),
           arith::AddIOp::create(b, first, constant(i)));
  }
}

void DecodeProgram::joinParked(const Roles &roles, const Piece &piece,
                               ValueRange accs, Value max, Value sum) {
  // Where the others are parked, a lane has registers for two slices beside the
  // first one, and when that is joined for the rest.
  constexpr int64_t atOnce = 2;
  SmallVector<DecodeState> others;
  auto load = [&](int64_t upto) {
    while (int64_t(others.size()) < std::min(upto, ownSlices))
      others.push_back(
          loadStored(piece, constant(firstSlice + int64_t(others.size()))));
  };
  load(roles.parked ? atOnce : 1);
  Value slot = constant(firstSlice / ownSlices);
  for (int64_t i = 0; i < ownSlices; ++i) {
    Value acc = i > 0 && roles.parked
                    ? ShelfGetOp::create(b, roles.parked, slot).getResult(i - 1)
                    : sliceOf(accs, i);
    finish(mergeStored({acc, max, sum}, others[i]), constant(firstSlice + i));
    load(roles.parked ? ownSlices : i + 2);
  }
}

void DecodeProgram::storeHalf(const Roles &roles, const RolePiece &own,
                              unsigned half, ValueRange accs, Value max,
                              Value sum) {
  int64_t cols = cast<FragmentType>(accs.front().getType()).getCols();
  Value one = constant(1);
  Value alone =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, own.piece.count, one);
  Value place = arith::AddIOp::create(b, own.piece.base, own.piece.number);
  ownSlices = int64_t(accs.size()) * cols / sliceCols;
  firstSlice = half * ownSlices;
  auto forOwn = [&](function_ref<void(DecodeState, Value)> then) {
    for (int64_t slice = 0; slice < ownSlices; ++slice)
      then({sliceOf(accs, slice), max, sum}, constant(firstSlice + slice));
  };
  auto byMemory = [&] {
    auto stored = [&] {
      forOwn([&](DecodeState state, Value slice) {
        store(state, 0, place, slice);
      });
      join(own.piece);
    };
    // Beside a trade a lane has no registers for it (ptxas, 64 heads: 3476
    // bytes spilled for 704).
    if (!own.piece.isAwaited || own.isPair)
      return stored();
    // Of two pieces the first is its block's last, and most often the second
    // has long been stored, as its block had it first.
    auto park = [&] {
      if (!roles.parked)
        return;
      SmallVector<Value> slices;
      for (int64_t slice = 1; slice < ownSlices; ++slice)
        slices.push_back(sliceOf(accs, slice));
      ShelfPutOp::create(b, slices, roles.parked,
                         constant(firstSlice / ownSlices));
    };
    choose(
        arriveBehind(own.piece, park),
        [&] { joinParked(roles, own.piece, accs, max, sum); }, stored);
  };
  choose(
      alone,
      [&] {
        forOwn([&](DecodeState state, Value slice) { finish(state, slice); });
      },
      [&] {
        if (!own.isPair)
          return byMemory();
        choose(own.isPair, [&] { tradeHalf(roles, accs, max, sum); }, byMemory);
      });
}

Value DecodeProgram::isPair(const Shares &shares, const Piece &piece,
                            Value start, Value stop) {
  Value two = constant(2);
  auto equal = [&](Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, x, y);
  };
  auto both = [&](Value x, Value y) -> Value {
    return arith::AndIOp::create(b, x, y);
  };
  // The first of them has the sequence's first unit, which is its share's, and
  // the second one's share ends with the sequence. Both compute the same.
  Value first = arith::SubIOp::create(b, block, piece.number);
  Value from = arith::MulIOp::create(b, first, shares.size);
  Value upto = arith::AddIOp::create(
      b, from, arith::MulIOp::create(b, shares.size, two).getResult());
  Value isFirst =
      equal(arith::RemUIOp::create(b, first, two).getResult(), constant(0));
  Value isPair = both(both(equal(piece.count, two), isFirst),
                      both(equal(from, start), equal(upto, stop)));
  if (!shares.isPaired)
    return isPair;
  // Not where other blocks even each other out.
  return both(isPair, equal(shares.keep, constant(0)));
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
