//===- DecodeRolesScores.cpp - The team that computes scores --------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the team of scores does with a piece of a sequence: products with the
/// queries, of this tile or, beside its softmax, of the next one; maxima and
/// sums; weights and factors, which it passes on to the teams of O's halves.
///
//===----------------------------------------------------------------------===//

#include "DecodeRoles.h"
#include "TileProgram.h"
#include "TileScores.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::role;

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
