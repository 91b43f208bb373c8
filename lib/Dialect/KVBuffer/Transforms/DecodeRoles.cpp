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
// and one moves tiles. A row of keys has three parts with slots of their own:
// the values of the one and of the other team, which read them as the second
// operand of their products out of the slot that scores were computed from, and
// the rest. A slot is filled anew when all who read it have given it back.
// Weights go through slots, too; by what rows are rescaled, through queues.
//
// The second team begins when the next tile's scores are nearly there, and so
// multiplies beside their softmax; the first one begins at once, so that its
// slots, of which the next scores need the first, are soon free.
//
//===----------------------------------------------------------------------===//

#include "DecodeProgram.h"
#include "ProblemLimits.h"
#include "TileProgram.h"
#include "TileScores.h"
#include "kvbuffer/Dialect/KVBuffer/IR/SizeNames.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/VerifyElements.h"
#include "kvbuffer/Target/LatentRoles.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace kvbuf;

/// The teams, as messages call them.
static constexpr llvm::StringLiteral kScores = "scores", kLeft = "left",
                                     kRight = "right", kLoad = "load";

namespace {
/// Some columns of a row of keys, with slots of their own.
struct Part {
  int64_t first, cols;
  TypedValue<RingType> ring;
  /// Fillings before the first tile: queries that pass through.
  int64_t before = 0;
};
} // namespace

/// What the teams of a block share.
struct DecodeProgram::Roles {
  LatentRoles sizes;
  SmallVector<Part, 3> parts;
  TypedValue<RingType> queries, weights;
  /// By what each half's rows are rescaled.
  Value factors[2];
  /// The tiles of this block, counted from the last one; whether it has any
  /// part of the sequence, and which.
  Value first, end, count, isMine;
  Piece piece;
  Tiles tiles;
};

static ArrayAttr symbols(MLIRContext *context, ArrayRef<StringRef> names) {
  SmallVector<Attribute> list;
  for (StringRef name : names)
    list.push_back(FlatSymbolRefAttr::get(context, name));
  return ArrayAttr::get(context, list);
}

TypedValue<RingType> DecodeProgram::makeRing(int64_t rows, int64_t cols,
                                             int64_t depthInMemory,
                                             int64_t offset, int64_t slots,
                                             StringRef from,
                                             ArrayRef<StringRef> to) {
  int64_t BK = schedule.getBK();
  Swizzle swizzle = target.swizzle(
      *target.instructionFor(schedule.getMmaShape(), elementName(element)),
      2 * BK, /*elementBytes=*/2, /*transposed=*/true,
      /*direct=*/true);
  auto params = KVBufferAttr::get(
      b.getContext(), kvbuf::Operand::Any, element, Policy::DoubleBuffered,
      /*mma_shape=*/ArrayRef<int64_t>(), swizzleList(swizzle), rows,
      /*WN=*/rows, BK, /*num_threads=*/0, cols, /*kv_num_heads=*/1,
      /*full_kv=*/true, depthInMemory, offset, /*reg_chunk_depth=*/cols,
      /*smem_depth=*/cols, slots, /*warp_size=*/0, Dimension::Rows,
      /*open=*/0);
  Value buffer = AllocOp::create(b, BufferType::get(b.getContext(), params));
  return RingOp::create(b, buffer, from, symbols(b.getContext(), to),
                        /*shared=*/false)
      .getRing();
}

void DecodeProgram::makeChannels(Roles &roles) {
  const LatentRoles &sizes = roles.sizes;
  CacheType cache = op.getK().getType();
  auto partOf = [&](int64_t first, int64_t cols, int64_t slots,
                    ArrayRef<StringRef> to) {
    Part part{first, cols,
              makeRing(schedule.getBN(), cols, cache.getCacheDepth(),
                       cache.getHeadDimOffset() + first, slots, kLoad, to)};
    part.before = first < sizes.queries;
    roles.parts.push_back(part);
  };
  roles.queries =
      makeRing(schedule.getBM(), depth - sizes.queries, op.getHeadSize(),
               sizes.queries, /*slots=*/1, kLoad, {kScores});
  partOf(0, sizes.half, sizes.leftSlots, {kScores, kLeft});
  partOf(sizes.half, sizes.half, sizes.rightSlots, {kScores, kRight});
  partOf(2 * sizes.half, sizes.rest, sizes.restSlots, {kScores});
  roles.weights = makeRing(schedule.getBM(), schedule.getBN(), schedule.getBN(),
                           0, sizes.weightSlots, kScores, {kLeft, kRight});
  auto type = QueueType::get(b.getContext(), {rowType});
  for (unsigned half : {0, 1})
    roles.factors[half] =
        QueueOp::create(b, type, /*slots=*/2, kScores,
                        symbols(b.getContext(), {half ? kRight : kLeft}));
}

/// A view of some columns of a slot; the slot where they are all.
static Value columnsOf(ImplicitLocOpBuilder &b, Value staged, int64_t first,
                       int64_t cols) {
  auto type = cast<StagedType>(staged.getType());
  if (first == 0 && cols == type.getCols())
    return staged;
  auto view = StagedType::get(b.getContext(), type.getParams(), type.getRows(),
                              cols, type.getRow(), type.getCol() + first);
  return StagedViewOp::create(b, view, staged, 0, first);
}

void DecodeProgram::computeScores(const Roles &roles) {
  int64_t BM = schedule.getBM(), BN = schedule.getBN();
  FragmentType pType = fragment(BM, BN, weights, Role::A);
  auto pending = PendingType::get(b.getContext(), BM, BN, b.getF32Type());
  Value zero = constant(0), one = constant(1), bn = constant(BN);
  // Columns of one product, by where queries are.
  struct Columns {
    const Part *part;
    int64_t first, cols;
    Value q;
  };
  SmallVector<Columns> columns;
  Value rest = RingWaitOp::create(b, roles.queries, zero);
  for (const Part &part : roles.parts) {
    int64_t end = part.first + part.cols;
    int64_t inRegisters = std::clamp(roles.sizes.queries, part.first, end);
    if (inRegisters > part.first) {
      int64_t cols = inRegisters - part.first;
      Value staged = RingWaitOp::create(b, part.ring, zero);
      Value q = FragmentLoadOp::create(
          b, fragment(BM, cols, element, Role::A), staged, 0, 0,
          DimensionAttr::get(b.getContext(), Dimension::Cols));
      RingReleaseOp::create(b, part.ring, zero);
      columns.push_back({&part, part.first, cols, q});
    }
    if (end > inRegisters)
      columns.push_back({&part, inRegisters, end - inRegisters, Value()});
  }
  EdgeTiles edges(b, roles.tiles.range, roles.end, bn, mask);
  Value low = fill(rowType, -std::numeric_limits<float>::infinity()),
        nothing = fill(rowType, 0.0f), same = fill(rowType, 1.0f);
  auto loop = scf::ForOp::create(b, zero, roles.count, one,
                                 ValueRange{low, nothing, same});
  if (!mask.boundsLeft())
    loop->setAttr(KVBufferDialect::kWholeAfterFirstAttr, b.getUnitAttr());
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value i = loop.getInductionVar();
    Value key = keyOf(roles, i);
    SmallVector<Value> products;
    SmallVector<std::pair<const Part *, Value>> read;
    Value staged;
    for (const Columns &own : columns) {
      const Part &part = *own.part;
      if (read.empty() || read.back().first != &part) {
        Value number = numberOf(part.before, i);
        staged = RingWaitOp::create(b, part.ring, number);
        read.push_back({&part, number});
      }
      Value q =
          own.q ? own.q
                : columnsOf(b, rest, own.first - roles.sizes.queries, own.cols);
      Value k = columnsOf(b, staged, own.first - part.first, own.cols);
      products.push_back(MmaStartOp::create(
          b, pending, q, k, products.empty() ? Value() : products.back(),
          /*transpose_b=*/true));
    }
    // The second half's product runs beside this tile's softmax.
    MmaWaitOp::create(b, products[products.size() - 2], /*younger=*/1);
    QueuePutOp::create(b, ValueRange{loop.getRegionIterArg(2)},
                       roles.factors[1], i);
    Value s = MmaWaitOp::create(b, products.back(), /*younger=*/0);
    for (auto [part, number] : read)
      RingReleaseOp::create(b, part->ring, number);
    s = shapeScores(
        b, op, args, s,
        {batch, head, firstQuery, key, queries, roles.tiles.keys, group}, edges,
        i);
    auto softmax = OnlineSoftmaxOp::create(
        b, pType, rowType, rowType, rowType, s, loop.getRegionIterArg(0),
        loop.getRegionIterArg(1), softmaxScale, /*masked=*/b.getUnitAttr(),
        unbounded);
    // The first half rescales while weights are on their way.
    QueuePutOp::create(b, ValueRange{softmax.getRescale()}, roles.factors[0],
                       i);
    RingPutOp::create(b, softmax.getP(), roles.weights, i,
                      /*transpose=*/false);
    scf::YieldOp::create(b, ValueRange{softmax.getNewMax(), softmax.getNewSum(),
                                       softmax.getRescale()});
  }
  RingReleaseOp::create(b, roles.queries, zero);
  QueuePutOp::create(b, ValueRange{loop.getResult(2)}, roles.factors[1],
                     roles.count);
  for (unsigned half : {0, 1})
    for (unsigned which : {0, 1})
      QueuePutOp::create(b, ValueRange{loop.getResult(which)},
                         roles.factors[half],
                         numberOf(half + which, roles.count));
}

void DecodeProgram::computeHalf(const Roles &roles, unsigned half) {
  int64_t BM = schedule.getBM();
  const Part &part = roles.parts[half];
  Value zero = constant(0), one = constant(1);
  auto take = [&](Value number) -> Value {
    return QueueTakeOp::create(b, roles.factors[half], number).getResult(0);
  };
  // The factor of a tile comes with the next one's scores.
  if (half == 1)
    take(zero);
  if (part.before) {
    RingWaitOp::create(b, part.ring, zero);
    RingReleaseOp::create(b, part.ring, zero);
  }
  int64_t slices = part.cols / sliceCols;
  SmallVector<Value> none(slices, fill(sliceType, 0.0f));
  auto loop = scf::ForOp::create(b, zero, roles.count, one, none);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value i = loop.getInductionVar(), number = numberOf(part.before, i);
    Value staged = RingWaitOp::create(b, part.ring, number);
    Value factor = take(numberOf(half, i));
    SmallVector<Value> scaled, results;
    for (Value acc : loop.getRegionIterArgs())
      scaled.push_back(RescaleOp::create(b, acc, factor));
    Value p = RingWaitOp::create(b, roles.weights, i);
    auto pending =
        PendingType::get(b.getContext(), BM, sliceCols, b.getF32Type());
    SmallVector<Value> products;
    for (int64_t slice = 0; slice < slices; ++slice)
      products.push_back(MmaStartOp::create(
          b, pending, p, columnsOf(b, staged, slice * sliceCols, sliceCols),
          scaled[slice], /*transpose_b=*/false));
    for (int64_t slice = 0; slice < slices; ++slice)
      results.push_back(
          MmaWaitOp::create(b, products[slice], slices - 1 - slice));
    RingReleaseOp::create(b, part.ring, number);
    RingReleaseOp::create(b, roles.weights, i);
    scf::YieldOp::create(b, results);
  }
  Value max = take(numberOf(half, roles.count));
  Value sum = take(numberOf(half + 1, roles.count));
  Value alone = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                      roles.piece.count, one);
  Value place = arith::AddIOp::create(b, roles.piece.base, roles.piece.number);
  firstSlice = half * slices;
  ownSlices = slices;
  auto forOwn = [&](function_ref<void(DecodeState, Value)> then) {
    for (int64_t slice = 0; slice < slices; ++slice)
      then({loop.getResult(slice), max, sum}, constant(firstSlice + slice));
  };
  choose(
      alone,
      [&] {
        forOwn([&](DecodeState own, Value slice) { finish(own, slice); });
      },
      [&] {
        forOwn(
            [&](DecodeState own, Value slice) { store(own, 0, place, slice); });
        join(roles.piece);
      });
}

void DecodeProgram::moveTiles(const Roles &roles) {
  Value zero = constant(0), one = constant(1);
  // One query row of the heads: rows of the tile are heads.
  auto q = cast<MemRefType>(op.getQ().getType());
  int64_t rank = q.getRank();
  SmallVector<Value> at = rowsAt();
  at.push_back(zero);
  auto tile = TileType::get(b.getContext(), schedule.getBM(), op.getHeadSize(),
                            element, /*page_size=*/0);
  Value queryTile = DramTileOp::create(b, tile, operand(op.getQ()), at, rows,
                                       constant(op.getHeadSize()),
                                       b.getI64IntegerAttr(rank - 2));
  RingLoadOp::create(b, queryTile, roles.queries, zero);
  for (const Part &part : roles.parts)
    if (part.before)
      RingLoadOp::create(b, queryTile, part.ring, zero);
  auto loop = scf::ForOp::create(b, zero, roles.count, one);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value i = loop.getInductionVar();
  CacheType cache = op.getK().getType();
  KeyRangeOp range = roles.tiles.range;
  auto type = TileType::get(b.getContext(), schedule.getBN(),
                            cache.getCacheDepth(), element, smallPageOf(op));
  Value keyTile =
      CacheTileOp::create(b, type, operand(op.getK()), batch, kvHead,
                          keyOf(roles, i), range.getLo(), roles.tiles.keys,
                          /*pred=*/Value());
  for (const Part &part : roles.parts)
    RingLoadOp::create(b, keyTile, part.ring, numberOf(part.before, i));
}

Value DecodeProgram::numberOf(int64_t before, Value i) {
  if (before == 0)
    return i;
  return arith::AddIOp::create(b, i, constant(before));
}

Value DecodeProgram::keyOf(const Roles &roles, Value i) {
  Value back = arith::SubIOp::create(
      b, arith::SubIOp::create(b, roles.end, constant(1)).getResult(), i);
  return arith::MulIOp::create(b, back, constant(schedule.getBN()));
}

void DecodeProgram::buildRoles() {
  Roles roles;
  roles.sizes =
      LatentRoles::of(schedule.getStructure(), operandsOf(op), target);
  auto [splits, share] = splitsAndShare();
  addScratch(expr("product", {str(kBatchSize), splits}));
  Value split = block, sequence = item.getResult(2);
  roles.tiles = tilesOf(sequence);
  Value splitCount = LaunchValueOp::create(b, splits), own, used;
  if (share) {
    own = LaunchValueOp::create(b, share);
    used = splitCount;
  } else {
    std::tie(own, used) = shareOfSplits(roles.tiles, splitCount);
  }
  enter(sequence, roles.tiles);
  roles.first = arith::AddIOp::create(
      b, roles.tiles.begin, arith::MulIOp::create(b, split, own).getResult());
  Value last = arith::MinUIOp::create(
      b, arith::AddIOp::create(b, roles.first, own).getResult(),
      roles.tiles.end);
  roles.end = arith::MaxUIOp::create(b, last, roles.first);
  roles.count = arith::SubIOp::create(b, roles.end, roles.first);
  roles.isMine =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult, split, used);
  roles.piece = {split, used,
                 arith::MulIOp::create(b, batch, splitCount).getResult()};
  makeChannels(roles);
  int32_t threads = schedule.getStructure().blockWarps() * target.waveSize;
  kernel.setKnownBlockSizeAttr(b.getDenseI32ArrayAttr({threads, 1, 1}));
  const MovingTeam &mover = *schedule.getMovingTeam();
  teams([&] {
    auto member = [&](StringRef name, int64_t warps, int64_t registers,
                      function_ref<void()> build) {
      OpBuilder::InsertionGuard guard(b);
      auto team =
          TeamOp::create(b, name, warps, /*copies=*/1, /*BM=*/0, registers);
      b.createBlock(&team.getBody());
      choose(roles.isMine, build);
    };
    int64_t warpsOfTeam = schedule.getWarps();
    member(kScores, warpsOfTeam, roles.sizes.scoreRegisters,
           [&] { computeScores(roles); });
    member(kLeft, warpsOfTeam, mover.otherRegisters,
           [&] { computeHalf(roles, 0); });
    member(kRight, warpsOfTeam, mover.otherRegisters,
           [&] { computeHalf(roles, 1); });
    member(kLoad, mover.warps, mover.registers, [&] { moveTiles(roles); });
  });
}
