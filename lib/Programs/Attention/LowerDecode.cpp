//===- LowerDecode.cpp - Programs of few query rows -------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where a sequence has few query rows, its keys are the work. The rows of a
// tile are then all query rows of all heads that share a head of the cache, so
// that each key is read once (as many rows as a tile holds: longer queries have
// several tiles), and the keys are dealt to blocks: those of each
// sequence to as many blocks, or as many tiles of all sequences, one after the
// other, to each block (`equal_shares`). The tiles of a piece are dealt to the
// block's warps, each of which has slots and a softmax of its own; they meet
// when all have come to their ends, and each joins some columns of what they
// have left in LDS. A block that has a piece of a sequence stores what its
// softmax has come to; the last block to arrive joins the pieces in their
// order, each warp some columns of them, so that bits repeat.
//
// Here the work is divided; DecodeKeys.cpp has the loop over keys, and
// DecodeJoin.cpp what becomes of its results.
//
//===----------------------------------------------------------------------===//

#include "LowerDecode.h"
#include "Attention.h"
#include "DecodeProgram.h"
#include "Schedules/Tuning.h"
#include "TileProgram.h"
#include "TileScores.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "kvbuffer/Schedules/LatentRoles.h"

using namespace mlir;
using namespace kvbuf;

/// Columns of an accumulator that a warp joins by itself, in multiples of
/// these: so many columns has a product of any chip.
static constexpr int64_t kSliceColumns = 32;

/// Columns of a slice of what teams store: of some rows of so many, each lane
/// of a team joins 16 bytes. Those of one of bytes' accumulators.
static constexpr int64_t kTeamColumns = 64,
                         kTeamColumnsOfBytes = LatentRoles::kProductColsOfBytes;

/// Parts of the columns that warps join side by side: as many as there are
/// warps, or as there are parts of whole products.
static int64_t colSlicesOf(int64_t depth, int64_t warps) {
  int64_t slices = 1;
  while (2 * slices <= warps && depth % (2 * slices * kSliceColumns) == 0)
    slices *= 2;
  return slices;
}

/// Whether elements are multiplied as bytes.
static bool isOfBytes(Type element) {
  return element.getIntOrFloatBitWidth() == 8;
}

DecodeProgram::DecodeProgram(ImplicitLocOpBuilder &b, AttentionOp op,
                             const TargetInfo &target, const IRMapping &args,
                             gpu::GPUFuncOp kernel, CacheAppendOp append,
                             int64_t warps)
    : DecodeSizes(op, target, *op.getSchedule(), warps),
      MappedProgramBuilder(b, args), kernel(kernel), append(append),
      element(op.getElementType()), weights(weightsOf(op)),
      depth(llvm::alignTo(op.getHeadSize(), schedule.getBK())),
      valueDepth(llvm::alignTo(op.getValueHeadSize(), schedule.getBK())),
      colSlices(schedule.getMovingTeam()
                    ? valueDepth / (isOfBytes(element) ? kTeamColumnsOfBytes
                                                       : kTeamColumns)
                    : colSlicesOf(valueDepth, this->warps)),
      sliceCols(valueDepth / colSlices),
      accType(
          fragment(schedule.getBM(), valueDepth, b.getF32Type(), Role::Acc)),
      sliceType(
          fragment(schedule.getBM(), sliceCols, b.getF32Type(), Role::Acc)),
      rowType(fragment(schedule.getBM(), 1, b.getF32Type(), Role::Row)) {
  softmaxScale = b.getF32FloatAttr(softmaxScaleOf(op));
  unbounded = unboundedScoresOf(op);
}

Value DecodeProgram::addArgument(StringRef name, StringRef access,
                                 MemRefType type, ArrayRef<Attribute> shape) {
  unsigned number = kernel.getNumArguments();
  NamedAttrList attrs;
  attrs.append(KVBufferDialect::kNameAttr, str(name));
  attrs.append(KVBufferDialect::kAccessAttr, str(access));
  attrs.append(KVBufferDialect::kShapeAttr, b.getArrayAttr(shape));
  (void)kernel.insertArgument(number, type, attrs.getDictionary(b.getContext()),
                              b.getLoc());
  return kernel.getArgument(number);
}

DecodeProgram::Tiles DecodeProgram::tilesOf(Value sequence) {
  Value zero = constant(0), bn = constant(schedule.getBN());
  Tiles tiles;
  if (op.isRagged()) {
    Value offsets = operand(op.getOffsets());
    Value all = memref::DimOp::create(b, operand(op.getQ()), 0);
    Value next = arith::AddIOp::create(b, sequence, constant(1));
    tiles.firstRow = loadOffset(b, offsets, sequence, zero, all);
    tiles.queries = arith::SubIOp::create(
        b, loadOffset(b, offsets, next, tiles.firstRow, all), tiles.firstRow);
    // Sequences that are another kernel's are like ones without a row.
    if (auto [over, upto] = ownRowsOf(); upto) {
      auto compare = [&](arith::CmpIPredicate how, Attribute rows) -> Value {
        return arith::CmpIOp::create(b, how, tiles.queries,
                                     LaunchValueOp::create(b, rows));
      };
      Value isOwn = compare(arith::CmpIPredicate::sle, upto);
      if (over)
        isOwn = arith::AndIOp::create(b, isOwn,
                                      compare(arith::CmpIPredicate::sgt, over));
      tiles.queries = arith::SelectOp::create(b, isOwn, tiles.queries, zero);
    }
  } else if (tokens >= 0) {
    tiles.queries = constant(tokens);
  } else {
    tiles.queries = memref::DimOp::create(b, operand(op.getQ()), 1);
  }
  tiles.keys =
      CacheNumKeysOp::create(b, operand(op.getK()), sequence,
                             lengthsCountNew(op) ? zero : tiles.queries);
  tiles.range = KeyRangeOp::create(
      b, firstQuery, tiles.queries, tiles.keys,
      oneTile ? schedule.getBM() : ownQueries * group, mask, group);
  tiles.begin = arith::DivUIOp::create(b, positive(tiles.range.getLo()), bn);
  tiles.end = arith::CeilDivUIOp::create(b, positive(tiles.range.getHi()), bn);
  tiles.count =
      positive(arith::SubIOp::create(b, tiles.end, tiles.begin).getResult());
  if (!oneTile)
    tiles.active = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt,
                                         tiles.queries, firstQuery);
  return tiles;
}

Value DecodeProgram::unitsOf(const Tiles &tiles, Value units, Value pause) {
  Value some = arith::MaxUIOp::create(b, units, constant(1));
  if (pause)
    some = arith::AddIOp::create(b, some, pause);
  if (!tiles.active)
    return some;
  return arith::SelectOp::create(b, tiles.active, some, constant(0));
}

void DecodeProgram::enter(Value sequence, const Tiles &tiles) {
  batch = sequence;
  queries = tiles.queries;
  firstRow = tiles.firstRow;
  if (oneTile) {
    rows = constant(group * tokens);
    return;
  }
  Value left = arith::SubIOp::create(b, queries, firstQuery);
  left = arith::MinSIOp::create(b, left, constant(ownQueries));
  rows = arith::MulIOp::create(b, left, constant(group));
}

WorkItemOp DecodeProgram::createItem() {
  auto coordinate = [&](Attribute extent, int64_t sharing = 1) -> Attribute {
    return CoordinateAttr::get(b.getContext(), extent, /*step=*/0,
                               /*sequences=*/Attribute(),
                               /*longest=*/Attribute(), /*growing=*/false,
                               sharing);
  };
  // Parts of a head of the cache read the same keys, which blocks of a cluster
  // load for each other.
  int64_t sharing =
      schedule.getStructure().cluster() > 1 && oneTile ? headParts : 1;
  // Blocks of neighbouring heads read neighbouring rows at the same time.
  SmallVector<Attribute> coordinates;
  if (pairsBlocks()) {
    // Partners stand along x. Of an odd number of blocks the last one has one
    // without work.
    kernel.setKnownClusterSizeAttr(b.getDenseI32ArrayAttr({2, 1, 1}));
    coordinates = {
        coordinate(expr(
            "product", {number(2), expr("ceildiv", {workersOf(), number(2)})})),
        coordinate(linesOfBlocks())};
  } else if (schedule.getSplitKeys()->equalShares) {
    coordinates = {coordinate(linesOfBlocks(), sharing),
                   coordinate(workersOf())};
  } else if (slicesBesideHeads()) {
    coordinates = {coordinate(linesOf(), sharing),
                   coordinate(splitsAndShare().first),
                   coordinate(str(kBatchSize))};
  } else {
    coordinates = {coordinate(number(lineHeads), sharing),
                   coordinate(timesSlices(splitsAndShare().first)),
                   coordinate(str(kBatchSize))};
  }
  return WorkItemOp::create(b, b.getArrayAttr(coordinates), Attribute());
}

std::pair<Attribute, Attribute> DecodeProgram::splitsAndShare() {
  Attribute splits = splitsOf(), share;
  // Where all sequences have as many tiles, and the host knows how many, it
  // divides them: two divisions before the first copy take a block as long as
  // a tile's math.
  if (Attribute tiles = tilesOnHost()) {
    auto part = [&](Attribute of) {
      return expr("max", {number(1), expr("ceildiv", {tiles, of})});
    };
    share = schedule.getSplitKeys()->size
                ? number(schedule.getSplitKeys()->size / schedule.getBN())
                : part(splits);
    splits = part(share);
  }
  return {splits, share};
}

void DecodeProgram::build() {
  item = createItem();
  bool pairs = pairsBlocks();
  kvHead = line = item.getResult(pairs ? 1 : 0);
  block = item.getResult(pairs ? 0 : 1);
  if (heads == 1)
    return buildHead();
  teams([&] { team("heads", heads, [&](Value copy) { buildHead(copy); }); });
}

void DecodeProgram::buildHead(Value copy) {
  firstQuery = constant(0);
  if (!oneTile) {
    Value count = tokens >= 0 ? constant(cast<IntegerAttr>(slices).getInt())
                              : LaunchValueOp::create(b, slices).getResult();
    // Tiles of the same keys side by side. Beside many sequences, which stand
    // along z, the heads alone are along x (kvbuf-assign-work), but where dies
    // have runs of items, which all stand along x.
    bool byHead = slicesBesideHeads();
    Value both = byHead ? line : block;
    slice = arith::RemUIOp::create(b, both, count);
    Value other = arith::DivUIOp::create(b, both, count);
    (byHead ? kvHead : block) = other;
    firstQuery = arith::MulIOp::create(b, slice, constant(ownQueries));
    if (copy)
      kvHead = headOf(kvHead, copy);
    if (!byHead || copy) {
      line = arith::MulIOp::create(b, kvHead, count);
      line = arith::AddIOp::create(b, line, slice);
    }
  }
  if (copy && oneTile)
    kvHead = line = headOf(kvHead, copy);
  // A number that passes know: queries of all heads end where their tensor
  // does, and boxes of more rows have zeros behind them.
  if (schedule.getMovingTeam() && oneTile && lineHeads == 1)
    kvHead = line = constant(0);
  head = arith::MulIOp::create(b, kvHead, constant(group));
  // What is a line by itself is a part of a head of the cache.
  if (headParts > 1)
    kvHead = arith::DivUIOp::create(b, kvHead, constant(headParts));
  if (schedule.getMovingTeam())
    return buildRoles();
  if (warps == 1) {
    allocBuffers();
  } else {
    auto shelf = [&](ArrayRef<Type> types, int64_t slots) -> Value {
      return ShelfOp::create(b, ShelfType::get(b.getContext(), types), slots);
    };
    accShelf = shelf({sliceType}, colSlices * warps);
    rowShelf = shelf({rowType, rowType}, warps);
  }
  if (schedule.getSplitKeys()->equalShares)
    buildShares();
  else
    buildSplits();
  // Only whoever asks for several warps has teams here, and takes the launch at
  // its word.
  if (op.isRagged() && warps == 1)
    computeRest();
}

void DecodeProgram::computeRest() {
  if (!schedule.getSplitKeys()->equalShares)
    return choose(
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, block, constant(0)),
        [&] { computeRestOf(item.getResult(2)); });
  Value workers = LaunchValueOp::create(b, workersOf());
  Attribute sequences = sequencesWithRest();
  Value rest = isa<StringAttr>(sequences)
                   ? LaunchSizeOp::create(b, kBatchSize).getResult()
                   : LaunchValueOp::create(b, sequences).getResult();
  auto loop = scf::ForOp::create(b, block, rest, workers);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  computeRestOf(loop.getInductionVar());
}

void DecodeProgram::computeRestOf(Value sequence) {
  Value count = LaunchValueOp::create(b, slices), own = constant(ownQueries);
  Value number = arith::AddIOp::create(b, slice, count);
  Value ends =
      arith::CeilDivUIOp::create(b, positive(tilesOf(sequence).queries), own);
  auto loop = scf::ForOp::create(b, number, ends, count);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  // All have read the slots that the tile before filled.
  MeetOp::create(b);
  firstQuery = arith::MulIOp::create(b, loop.getInductionVar(), own);
  Tiles tiles = tilesOf(sequence);
  enter(sequence, tiles);
  Value end = arith::AddIOp::create(b, tiles.begin, tiles.count);
  computePiece(tiles, tiles.begin, end,
               {/*number=*/constant(0), /*count=*/constant(1),
                /*base=*/constant(0)});
}

void DecodeProgram::buildSplits() {
  auto [splits, share] = splitsAndShare();
  addScratch(expr("product", {str(kBatchSize), splits}));
  Value split = block;
  Value sequence = item.getResult(2);
  Tiles tiles = tilesOf(sequence);
  Value splitCount = LaunchValueOp::create(b, splits);
  // Computes tiles [split * share, (split + 1) * share), a piece of `used`.
  auto compute = [&](Value share, Value used) {
    enter(sequence, tiles);
    Value first = arith::AddIOp::create(
        b, tiles.begin, arith::MulIOp::create(b, split, share).getResult());
    Value last = arith::MinUIOp::create(
        b, arith::AddIOp::create(b, first, share).getResult(), tiles.end);
    last = arith::MaxUIOp::create(b, last, first);
    Value base = arith::MulIOp::create(b, batch, splitCount);
    computePiece(tiles, first, last, {split, used, base});
  };
  if (share)
    return compute(LaunchValueOp::create(b, share), splitCount);
  divideSplits(tiles, split, splitCount, compute);
}

std::pair<Value, Value> DecodeProgram::shareOfSplits(const Tiles &tiles,
                                                     Value splitCount) {
  Value share;
  if (int64_t size = schedule.getSplitKeys()->size)
    share = constant(size / schedule.getBN());
  else
    share = arith::MaxUIOp::create(
        b, arith::CeilDivUIOp::create(b, tiles.count, splitCount), constant(1));
  // A sequence without a key has one split without a tile.
  return {share,
          unitsOf(tiles, arith::CeilDivUIOp::create(b, tiles.count, share))};
}

void DecodeProgram::divideSplits(
    const Tiles &tiles, Value split, Value splitCount,
    function_ref<void(Value share, Value used)> compute) {
  auto [share, used] = shareOfSplits(tiles, splitCount);
  Value mine = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, split, used);
  auto ifMine = scf::IfOp::create(b, mine, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifMine.thenBlock());
  compute(share, used);
}

/// Teams that begin a sequence have nothing to multiply for about 10 us (H200:
/// queries, the first tile, the last product and the output).
static constexpr int64_t kTilesOfTeams = 4;

Value DecodeProgram::pauseInTiles() {
  int64_t bytes = 0;
  SmallVector<CacheType, 2> caches{op.getK().getType()};
  if (!op.isLatent())
    caches.push_back(op.getV().getType());
  for (CacheType cache : caches)
    bytes += schedule.getBN() *
             (cache.getRow()
                  ? cache.getRow().getBytes()
                  : cache.getCacheDepth() *
                        cache.getElementType().getIntOrFloatBitWidth() / 8);
  int64_t tiles = llvm::bit_floor(
      uint64_t(std::max(bytes, warps * Tuning(target).pauseBytes) / bytes));
  if (schedule.getMovingTeam())
    tiles = kTilesOfTeams;
  Attribute many =
      expr("min", {number(1),
                   expr("floordiv", {str(kBatchSize),
                                     number(Tuning(target).pauseSequences)})});
  return LaunchValueOp::create(b, expr("product", {number(tiles), many}));
}

DecodeProgram::Shares DecodeProgram::divideShares() {
  Attribute workers = workersOf();
  // Blocks of several warps are told apart by nothing else from those of which
  // any number may wait.
  if (SharedRows::of(op) || heads > 1)
    kernel->setAttr(kResidentBlocksAttr, number(residentBlocks()));
  // Each sequence and each block begins at most one piece.
  addScratch(expr("sum", {str(kBatchSize), workers}));
  Shares shares;
  // A block of several short sequences has less to read than one of a part of a
  // long one.
  shares.pause = pauseInTiles();
  Value many = LaunchValueOp::create(b, workers),
        sequences = LaunchSizeOp::create(b, kBatchSize),
        least = constant(std::max<int64_t>(1, leastSplit() / schedule.getBN()));
  // Teams lose the more by a piece, and by a join at the end. Of more blocks a
  // sequence than two a pair has fewer sequences, and lanes no registers left
  // (H200, 128 heads: with two query rows, 64 x 4096, 237.7 us for 248.7, with
  // 8 bytes spilled for 732).
  constexpr int64_t mostLines = 2;
  if (schedule.getMovingTeam() && fewestLines() <= mostLines)
    dealUnits(shares, SharePairsOp::create(b, block, many, sequences, least,
                                           constant(kTilesOfTeams)));
  else
    dealUnits(shares, ShareWorkOp::create(b, block, many, sequences, least));
  return shares;
}

template <typename OpT>
void DecodeProgram::dealUnits(Shares &shares, OpT share) {
  {
    OpBuilder::InsertionGuard guard(b);
    Block *body =
        b.createBlock(&share.getBody(), {}, {b.getIndexType()}, {b.getLoc()});
    Tiles tiles = tilesOf(body->getArgument(0));
    YieldOp::create(b, unitsOf(tiles, tiles.count, shares.pause));
  }
  shares.size = share.getSize();
  shares.first = share.getFirst();
  shares.start = share.getStart();
  shares.end = share.getEnd();
  shares.from = arith::MulIOp::create(b, block, shares.size);
  shares.upto = arith::AddIOp::create(b, shares.from, shares.size);
  if constexpr (std::is_same_v<OpT, SharePairsOp>) {
    shares.other = share.getOther();
    shares.keep = share.getKeep();
    shares.isPaired = arith::CmpIOp::create(b, arith::CmpIPredicate::ne,
                                            shares.keep, constant(0));
    // Who has the rest of another one's sequence has its own to the end.
    Value none = constant(SharePairsOp::kNone);
    shares.hasRest =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ne, shares.other, none);
    Value upto = arith::SelectOp::create(b, shares.hasRest, none, shares.keep);
    shares.upto =
        arith::SelectOp::create(b, shares.isPaired, upto, shares.upto);
  }
}

std::pair<Value, Value> DecodeProgram::sequenceOf(const Shares &shares,
                                                  Value number, Value start) {
  if (!shares.isPaired)
    return {number, start};
  Value isRest = arith::AndIOp::create(
      b, shares.hasRest,
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, number, shares.first)
          .getResult());
  Value paired = arith::SelectOp::create(b, isRest, shares.other, block);
  return {arith::SelectOp::create(b, shares.isPaired, paired, number),
          arith::SelectOp::create(b, shares.isPaired, constant(0), start)};
}

DecodeProgram::Piece DecodeProgram::pairedPiece(const Shares &shares,
                                                const Piece &piece,
                                                Value units) {
  Value one = constant(1);
  Value isOwn =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, batch, block);
  Value isAll =
      arith::CmpIOp::create(b, arith::CmpIPredicate::uge, shares.upto, units);
  Value isAlone = arith::AndIOp::create(b, isOwn, isAll),
        isAwaited = arith::XOrIOp::create(b, isOwn, isAlone);
  // Each sequence has at most two pieces, and a block of its own.
  auto choose = [&](Value paired, Value other) -> Value {
    return arith::SelectOp::create(b, shares.isPaired, paired, other);
  };
  return {
      choose(arith::SelectOp::create(b, isOwn, constant(0), one), piece.number),
      choose(arith::SelectOp::create(b, isAlone, one, constant(2)),
             piece.count),
      choose(arith::AddIOp::create(b, batch, batch), piece.base),
      choose(isAwaited, piece.isAwaited)};
}

DecodeProgram::OwnTiles DecodeProgram::ownTilesOf(const Shares &shares,
                                                  const Tiles &tiles,
                                                  Value start, Value units,
                                                  Value stop) {
  Value one = constant(1);
  // Each piece has its part of the tiles. Equal pieces have equal parts, so the
  // pause costs nothing where no block has two.
  auto tileAt = [&](Value unit) -> Value {
    Value own = arith::SubIOp::create(b, unit, start);
    Value part = arith::MulIOp::create(b, own, tiles.count);
    return arith::AddIOp::create(
        b, tiles.begin, arith::DivUIOp::create(b, part, units).getResult());
  };
  Value from = shares.from;
  if (shares.isPaired) {
    Value isOwn =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, batch, block);
    Value paired = arith::SelectOp::create(b, isOwn, constant(0), shares.keep);
    from = arith::SelectOp::create(b, shares.isPaired, paired, from);
  }
  Value first = tileAt(arith::MaxUIOp::create(b, from, start));
  Value last = tileAt(arith::MinUIOp::create(b, shares.upto, stop));
  // The blocks that have its first and its last unit.
  Value firstWorker = arith::DivUIOp::create(b, start, shares.size);
  Value lastWorker = arith::DivUIOp::create(
      b, arith::SubIOp::create(b, stop, one).getResult(), shares.size);
  Value count = arith::AddIOp::create(
      b, arith::SubIOp::create(b, lastWorker, firstWorker).getResult(), one);
  Value number = arith::SubIOp::create(b, block, firstWorker);
  Value base = arith::AddIOp::create(b, firstWorker, batch);
  Piece piece{number, count, base};
  if (shares.isPaired) {
    // The second of two pieces is its block's first one: where that block has
    // more to do, it has ended before the first does.
    auto is = [&](arith::CmpIPredicate how, Value x, Value y) -> Value {
      return arith::CmpIOp::create(b, how, x, y);
    };
    Value share = arith::AddIOp::create(b, shares.upto, shares.size);
    Value isOfTwo = arith::AndIOp::create(
        b, is(arith::CmpIPredicate::eq, number, constant(0)),
        is(arith::CmpIPredicate::eq, count, constant(2)));
    piece.isAwaited = arith::AndIOp::create(
        b, isOfTwo, is(arith::CmpIPredicate::ult, stop, share));
    piece = pairedPiece(shares, piece, units);
  }
  return {first, last, piece};
}

void DecodeProgram::buildShares() {
  Shares shares = divideShares();
  auto loop = scf::ForOp::create(b, shares.first, shares.end, constant(1),
                                 ValueRange{shares.start});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  // All have read the slots that the piece before filled. (Teams meet.)
  if (warps == 1)
    MeetOp::create(b);
  // Units [start, stop) are this sequence's; tiles [first, last) of its own are
  // this block's.
  Value start = loop.getRegionIterArg(0);
  Tiles tiles = tilesOf(loop.getInductionVar());
  Value units = unitsOf(tiles, tiles.count, shares.pause);
  Value stop = arith::AddIOp::create(b, start, units);
  b.setInsertionPointToEnd(loop.getBody());
  scf::YieldOp::create(b, ValueRange{stop});
  b.setInsertionPoint(loop.getBody()->getTerminator());
  // Sequences without a row for this tile lie between those with some.
  if (tiles.active) {
    auto ifActive =
        scf::IfOp::create(b, tiles.active, /*withElseRegion=*/false);
    b.setInsertionPointToStart(ifActive.thenBlock());
  }
  enter(loop.getInductionVar(), tiles);
  OwnTiles own = ownTilesOf(shares, tiles, start, units, stop);
  computePiece(tiles, own.first, own.last, own.piece);
}

void DecodeProgram::choose(Value condition, function_ref<void()> yes,
                           function_ref<void()> no) {
  auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/bool(no));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  yes();
  if (!no)
    return;
  b.setInsertionPointToStart(branch.elseBlock());
  no();
}

void DecodeProgram::computePiece(const Tiles &tiles, Value first, Value last,
                                 const Piece &piece) {
  if (append)
    appendTokens(first, last);
  Value alone = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, piece.count,
                                      constant(1));
  inWarps(
      "keys", [&](Value warp) { return readKeys(first, last, tiles, warp); },
      [&](DecodeState own, Value slice) {
        choose(
            alone, [&] { finish(own, slice); },
            [&] {
              store(own, 0, arith::AddIOp::create(b, piece.base, piece.number),
                    slice);
            });
      });
  choose(arith::CmpIOp::create(b, arith::CmpIPredicate::ne, piece.count,
                               constant(1)),
         [&] { join(piece); });
}

void kvbuf::buildDecode(ImplicitLocOpBuilder &b, AttentionOp op,
                        const TargetInfo &target, const IRMapping &args,
                        gpu::GPUFuncOp kernel, CacheAppendOp append) {
  // Where each warp works by itself, what follows knows the schedule of one.
  Schedule own = op.getSchedule()->getStructure();
  bool shares = !own.warpsByThemselves() || own.movingTeam();
  int64_t warps = shares ? 1 : std::exchange(own.warps, 1);
  auto schedule = ScheduleAttr::get(b.getContext(), own);
  op.setScheduleAttr(schedule);
  kernel->setAttr(KVBufferDialect::kScheduleAttr, schedule);
  DecodeProgram(b, op, target, args, kernel, append, warps).build();
}

CacheAppendOp kvbuf::appendOf(AttentionOp op) {
  for (Operation &other : *op->getBlock()) {
    if (&other == op)
      break;
    if (auto append = dyn_cast<CacheAppendOp>(other))
      return append;
  }
  return nullptr;
}

LogicalResult kvbuf::checkAppend(AttentionOp op, CacheAppendOp append,
                                 const TargetInfo &target) {
  auto fail = [&](const Twine &why) {
    InFlightDiagnostic diag = append.emitOpError()
                              << "cannot be a part of the attention after it: "
                              << why;
    diag.attachNote(op.getLoc()) << "the attention is here";
    return diag;
  };
  if (op.isLatent())
    return fail("its values are a part of its keys, of which no kernel stores "
                "tokens that it reads; expected a kernel of its own for the "
                "append, before");
  if (append.getKCache() != op.getK() || !append.getV() ||
      append.getVCache() != op.getV())
    return fail("expected new keys and values for the caches that it reads");
  if (append.getOffsets() || append.getAt() || append.getRopeAt())
    return fail("expected tokens that follow those of each sequence, without "
                "offsets and positions");
  if (!op.getK().getType().hasTable() || lengthsCountNew(op))
    return fail("expected continuous or paged caches, with lengths that do not "
                "count the new tokens");
  if (!op.getSchedule()->getSplitKeys())
    return fail("keys are not split over blocks; expected queries that have no "
                "more rows than fit a tile, and say so in their type (on " +
                Twine(target.chip) + " at most " +
                Twine(mostSplitQueries(op, target)) +
                ", or times the heads that share a head of the cache at most " +
                Twine(Tuning(target).splitKeysRows) + ")");
  Schedule own = op.getSchedule()->getStructure();
  int64_t warps = std::exchange(own.warps, 1);
  DecodeSizes sizes(op, target, ScheduleAttr::get(op.getContext(), own), warps);
  if (!sizes.oneTile)
    return fail(
        "the query rows of a sequence take several tiles, each of which "
        "would store the tokens; expected as many rows as fit one, and "
        "a type that says how many there are");
  auto tokens = cast<ShapedType>(append.getK().getType());
  if (!tokens.isDynamicDim(1) && tokens.getDimSize(1) != sizes.tokens)
    return fail("it has " + Twine(tokens.getDimSize(1)) +
                " tokens of each sequence; expected a token for each of its " +
                Twine(sizes.tokens) + " query rows");
  return success();
}
