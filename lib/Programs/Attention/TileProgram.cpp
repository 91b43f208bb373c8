//===- TileProgram.cpp - Programs of tiles of queries -----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockLists.h"
#include "TileProgramParts.h"
#include "VisibleBounds.h"
#include "WidenCaches.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "kvbuffer/Dialect/KVBuffer/IR/ScaledSlots.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/SizeExpressions.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/VerifyElements.h"
#include "kvbuffer/Schedules/WideHeads.h"
#include "kvbuffer/Target/IssueModel.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

int64_t kvbuf::smallPageOf(AttentionOp op, int64_t rows) {
  if (readsWidened(op))
    return 0;
  int64_t page = op.getK().getType().getPageSize();
  return page % (rows ? rows : op.getSchedule()->getBN()) ? page : 0;
}

TypedValue<BufferType> kvbuf::allocOperand(ImplicitLocOpBuilder &b,
                                           AttentionOp op,
                                           const TargetInfo &target,
                                           Operand which, int64_t rows,
                                           int64_t stages) {
  ScheduleAttr schedule = *op.getSchedule();
  Type element = which == Operand::K   ? op.getK().getType().getElementType()
                 : which == Operand::V ? op.getV().getType().getElementType()
                 : which == Operand::O ? op.getOutElementType()
                                       : op.getElementType();
  bool ofValues = which == Operand::V || which == Operand::O;
  WideHeads wide = WideHeads::of(schedule.getStructure(), op.getHeadSize(),
                                 op.getValueHeadSize(), target);
  Movement movement = which == Operand::K   ? schedule.getKeys()
                      : which == Operand::V ? schedule.getValues()
                                            : WholeTiles{};
  // What is narrower than Q is widened on its way into a product, or into LDS.
  bool isOfCache = which == Operand::K || which == Operand::V;
  if (isOfCache && readsWidened(op))
    element = which == Operand::V ? valuesOf(op) : widenedKeysOf(op);
  else if (isOfCache && element.getIntOrFloatBitWidth() == 8 &&
           widensOnTheWay(schedule.getStructure(), op.isLatent(), target))
    element = which == Operand::V ? valuesOf(op)
              : fitsQueries(op, target) && schedule.getQInRegs()
                  ? Type(b.getF16Type())
                  : op.getElementType();
  int64_t headSize =
      ofValues ? op.getValueHeadSize() / wide.valueParts : op.getHeadSize();
  int64_t elementBytes = element.getIntOrFloatBitWidth() / 8;
  // A result may have wider elements than what is multiplied; rows of a block
  // are what a copy engine swizzles.
  constexpr int64_t widestRow = 128;
  int64_t BK = schedule.getBK();
  if (which == Operand::O)
    BK = std::min(BK, widestRow / elementBytes);
  int64_t rowBytes = BK * elementBytes;
  bool strips = std::holds_alternative<Strips>(movement);
  // Lanes widen packed rows on their way, wherever they come from.
  bool packed =
      which == Operand::K && static_cast<bool>(op.getK().getType().getRow());
  int64_t smallPage = which == Operand::Q ? 0 : smallPageOf(op, rows);
  // What the schedule says nothing of is for kvbuf-complete-program.
  int64_t open = KVBufferAttr::kOpenSwizzle | KVBufferAttr::kOpenOrder;
  Policy policy = Policy::DoubleBuffered;
  if (throughRegisters(movement))
    policy = Policy::RegisterStaged;
  else if (strips && target.canCopyDirectly(rows, rowBytes, smallPage))
    policy = Policy::Streaming;
  else if (!packed)
    open |= KVBufferAttr::kOpenPolicy;
  // Strips of V are rows.
  bool blocks = which == Operand::K && wide.keysByBlocks;
  bool byColumns = std::holds_alternative<ColumnBlocks>(movement) || blocks ||
                   (strips && which == Operand::K);
  // Of a tile's blocks each has as many slots as a whole tile would have.
  if (blocks)
    stages *= llvm::divideCeil(headSize, BK);
  SmallVector<int64_t> swizzle;
  // Of what is read both ways lanes read more as keys.
  if (which == Operand::K && op.isLatent()) {
    open &= ~(KVBufferAttr::kOpenSwizzle | KVBufferAttr::kOpenOrder);
    Swizzle suits = target.swizzle(
        *target.instructionFor(schedule.getMmaShape(ProductKind::Scores),
                               elementName(op.getElementType())),
        rowBytes, elementBytes, /*transposed=*/true,
        policy == Policy::DoubleBuffered &&
            (packed || target.canCopyDirectly(rows, rowBytes, smallPage,
                                              schedule.getWarps())));
    if (suits.movesVectors())
      swizzle = swizzleList(suits);
  }
  // Rows of a cache may hold more than the operand.
  int64_t rowDepth = headSize, offset = 0, chunk = headSize;
  if (which == Operand::K || which == Operand::V) {
    CacheType cache = (which == Operand::K ? op.getK() : op.getV()).getType();
    if (!readsWidened(op)) {
      rowDepth = cache.getTileCols();
      offset = cache.getHeadDimOffset();
    }
  }
  if (which == Operand::K && schedule.getRegChunkDepth())
    chunk = std::min(headSize, schedule.getRegChunkDepth());
  auto params = KVBufferAttr::get(
      b.getContext(), Operand::Any, element, policy,
      /*mma_shape=*/ArrayRef<int64_t>(), swizzle, rows, /*WN=*/rows, BK,
      /*num_threads=*/0, headSize, /*kv_num_heads=*/1,
      /*full_kv=*/!byColumns,
      /*cache_depth=*/rowDepth, /*head_dim_offset=*/offset,
      /*reg_chunk_depth=*/chunk,
      /*smem_depth=*/llvm::alignTo(headSize, BK), stages, /*warp_size=*/0,
      Dimension::Rows, open);
  return AllocOp::create(b, BufferType::get(b.getContext(), params),
                         stringifyOperand(which))
      .getBuffer();
}

DimensionAttr kvbuf::contracts(OpBuilder &b, Dimension dimension) {
  return DimensionAttr::get(b.getContext(), dimension);
}

Value kvbuf::loadOffset(ImplicitLocOpBuilder &b, Value offsets, Value i,
                        Value least, Value most) {
  Value row = memref::LoadOp::create(b, offsets, ValueRange{i});
  // Wide entries are compared as they are: indices may have 32 bits.
  Type type = row.getType();
  if (type.isInteger(64)) {
    least = arith::IndexCastOp::create(b, type, least);
    most = arith::IndexCastOp::create(b, type, most);
  } else {
    row = arith::IndexCastOp::create(b, b.getIndexType(), row);
  }
  row = arith::MaxSIOp::create(b, row, least);
  row = arith::MinSIOp::create(b, row, most);
  if (type.isInteger(64))
    row = arith::IndexCastOp::create(b, b.getIndexType(), row);
  return row;
}

Value kvbuf::roundOutput(ImplicitLocOpBuilder &b, Value acc, Type element) {
  auto type = cast<FragmentType>(acc.getType());
  if (type.getElementType() == element)
    return acc;
  auto rounded = FragmentType::get(b.getContext(), type.getRows(),
                                   type.getCols(), element, type.getRole());
  return FragmentConvertOp::create(b, rounded, acc);
}

WorkItemOp TileProgram::createItem() {
  auto q = cast<MemRefType>(op.getQ().getType());
  auto number = [&](int64_t value) -> Attribute {
    return b.getI64IntegerAttr(value);
  };
  auto size = [&](unsigned dim, StringRef name) -> Attribute {
    return q.isDynamicDim(dim) ? b.getStringAttr(name)
                               : number(q.getDimSize(dim));
  };
  auto expr = [&](StringRef name, ArrayRef<Attribute> operands) -> Attribute {
    return SizeAttr::of(b.getContext(), name, operands);
  };
  auto coordinate = [&](Attribute extent, int64_t step, bool growing,
                        int64_t sharing, Attribute sequences = {},
                        Attribute longest = {}) {
    return CoordinateAttr::get(b.getContext(), extent, step, sequences, longest,
                               growing, sharing);
  };
  // The rows that shapes tell: how long a sequence of a ragged batch is, only
  // the device knows. Each may have a tile that is cut. The tiles of a head
  // read the same keys, and later rows see more of them.
  constexpr int64_t all = 0;
  int64_t BM = schedule.getBM();
  bool growing = mask.boundsRight() || boundsKeys(op), ragged = op.isRagged();
  Attribute longest =
      ragged ? b.getStringAttr(kLongestQuerySize) : size(1, kLongestQuerySize);
  SmallVector<Attribute> coordinates{
      ragged ? coordinate(size(0, kAllQueriesSize), BM, growing, all,
                          b.getStringAttr(kBatchSize), longest)
      : group > 1
          ? coordinate(number(group * q.getDimSize(1)), BM, growing, all)
          : coordinate(longest, BM, growing, all),
      coordinate(number(op.getHeads() / group * parts), 0, false,
                 op.getHeads() / op.getKVHeads() / group)};
  if (!ragged)
    coordinates.push_back(coordinate(size(0, kBatchSize), 0, false, 1));
  // Sequences that read one tile of a tensor of rows and keys follow each
  // other: such a tile is larger than those of keys and values.
  if (sequencesShareReads())
    std::swap(coordinates[1], coordinates[2]);

  // Keys of a sequence, about: the most there is room for, or in ragged caches
  // as many as queries.
  int64_t bits = 0;
  Attribute most;
  for (Value cache : {op.getKeys(), op.getValues()}) {
    auto type = cast<CacheType>(cache.getType());
    int64_t cols = cache == op.getValues() ? type.getHeadSize() / parts
                                           : type.getHeadSize();
    bits += cols * type.getElementType().getIntOrFloatBitWidth();
    if (!most && !type.getRows().offsets)
      most = mostTokensOf(type, operand(cache));
  }
  if (!most)
    most =
        expr("product", {expr("ceildiv", {longest, number(BM)}), number(BM)});
  Attribute reads = expr("product", {expr("max", {most, number(1)}),
                                     number(llvm::divideCeil(bits, 8))});
  return WorkItemOp::create(b, b.getArrayAttr(coordinates), reads);
}

void TileProgram::build() {
  if (readsWidened(op)) {
    Value k = operand(op.getK()), v = operand(op.getV());
    widened[k] =
        makeWidenedCache(b, op.getKCacheType(), k, "k.wide", widenedKeysOf(op));
    widened[v] =
        makeWidenedCache(b, op.getVCacheType(), v, "v.wide", valuesOf(op));
  }
  if (schedule.getMovingTeam())
    group = foldedHeadsOf(op, schedule.getBM());
  WorkItemOp item = createItem();
  Value tileIndex = item.getResult(0);
  unsigned headAt = sequencesShareReads() ? 2 : 1;
  head = item.getResult(headAt);
  // Heads that share a head of the cache lie side by side, for each part.
  if (parts > 1) {
    Value sharing = constant(op.getHeads() / op.getKVHeads());
    Value line = arith::DivUIOp::create(b, head, sharing);
    part = arith::RemUIOp::create(b, line, constant(parts));
    partColumn = arith::MulIOp::create(b, part, constant(valueDepth));
    head = arith::AddIOp::create(
        b,
        arith::MulIOp::create(
            b, arith::DivUIOp::create(b, line, constant(parts)).getResult(),
            sharing)
            .getResult(),
        arith::RemUIOp::create(b, head, sharing).getResult());
  }
  // Sequences of so few rows are another kernel's.
  std::optional<SharedRows> shares = SharedRows::of(op);
  int64_t leastRows = shares ? shares->over : 0;
  if (op.isRagged()) {
    // The numbers of tiles go over all sequences.
    Value offsets = operand(op.getOffsets());
    Value rows = memref::DimOp::create(b, operand(op.getQ()), 0);
    auto find = FindTileOp::create(b, tileIndex, offsets,
                                   LaunchSizeOp::create(b, kBatchSize), rows,
                                   schedule.getBM(), leastRows,
                                   /*fromEnd=*/false);
    batch = find.getSequence();
    tileIndex = find.getTile();
    firstRow = loadOffset(b, offsets, batch, constant(0), rows);
    Value next = arith::AddIOp::create(b, batch, constant(1));
    queries = arith::SubIOp::create(
        b, loadOffset(b, offsets, next, firstRow, rows), firstRow);
  } else {
    batch = item.getResult(3 - headAt);
  }
  auto rowsOfItem = ItemRowsOp::create(b, tileIndex, schedule.getBM());
  clusterRow = rowsOfItem.getFirst();
  row = rowsOfItem.getRow();
  query = row;
  if (group > 1) {
    kvHead = head;
    head = arith::MulIOp::create(b, kvHead, constant(group));
    query = arith::DivUIOp::create(b, row, constant(group));
  } else {
    kvHead = arith::DivUIOp::create(b, head,
                                    constant(op.getHeads() / op.getKVHeads()));
  }
  if (!op.isRagged())
    queries = memref::DimOp::create(b, operand(op.getQ()), 1);
  Value own = queries;
  if (group > 1)
    own = arith::MulIOp::create(b, own, constant(group));
  if (leastRows) {
    Value isLong = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, queries,
                                         constant(leastRows));
    own = arith::SelectOp::create(b, isLong, queries, constant(0));
  }
  Value active =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, clusterRow, own);
  auto ifOp = scf::IfOp::create(b, active, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  computeTile();
}

TileProgram::KeyTiles TileProgram::tilesOfRange() {
  int64_t BM = schedule.getBM(), BN = schedule.getBN();
  bool bounded = boundsKeys(op, group);
  VisibleBounds bounds;
  if (bounded)
    bounds =
        visibleBounds(b, op, args, {batch, head, query, Value(), queries, keys},
                      BM / group, BN);
  // Blocks of a cluster have one range.
  Value first = clusterRow;
  if (group > 1)
    first = arith::DivUIOp::create(b, clusterRow, constant(group));
  auto range =
      KeyRangeOp::create(b, first, queries, keys, BM, mask, group, bounds.lo);
  // Groups that pass over keys of their own would have parts of their own, and
  // take other numbers of turns. A function's ends are those of all rows.
  range.setDescending(mask.boundsRight() && !schedule.getSumKeys() &&
                      (!bounded || bounds.hi == keys) && group == 1);
  // Keys of others, which the function hides, come with the tile, whose boxes
  // are whole. What nobody sees may be anything, and rows of pages that nobody
  // sees may be gone.
  Value lo = range.getLo();
  bool whole = bounds.lo && !mask.boundsLeft() &&
               !op.getK().getType().getPageSize() &&
               !op.getV().getType().getPageSize() && startsAreOfRows(op);
  keyLo = whole ? constant(0) : lo;
  Value hi = range.getHi(), fullHi = range.getFullHi();
  Value fullLo = mask.boundsLeft() ? range.getFullLo() : Value();
  bool apart = false;
  if (bounded) {
    hi = arith::MinSIOp::create(b, hi, bounds.hi);
    if (bounds.lo) {
      fullLo = arith::MaxSIOp::create(b, range.getFullLo(), bounds.fullLo);
      // A function that shows all keys from one on hides none at the other end.
      apart = !mask.boundsLeft() && bounds.fullHi == keys &&
              op.getScore().empty() &&
              (op.getSoftcapValue() > 0 ||
               softmaxScaleOf(op) == op.getScaleValue());
    }
    hi = arith::MaxSIOp::create(b, hi, lo);
    fullHi = arith::MinSIOp::create(b, fullHi, bounds.fullHi);
  }
  Value zero = constant(0), one = constant(1), bn = constant(BN);
  auto positive = [&](Value n) -> Value {
    return arith::MaxSIOp::create(b, n, zero);
  };
  Value end = arith::CeilDivUIOp::create(b, positive(hi), bn);
  Value begin = arith::DivUIOp::create(b, positive(lo), bn);
  Value count = arith::SubIOp::create(b, end, begin);
  EdgeTiles edges(b, fullLo, fullHi, end, bn);
  if (apart)
    edges.tellApart();
  auto keyOf = [=, this](Value i) -> Value {
    Value last = arith::SubIOp::create(b, end, one);
    Value back = arith::SubIOp::create(b, last, i);
    return arith::MulIOp::create(b, back, bn);
  };
  // From right to left the end of the sequence cuts the first tile only; a
  // window may cut the last one too.
  return {count, edges, keyOf,
          /*isCut=*/{},
          /*wholeAfterFirst=*/!fullLo};
}

TileProgram::KeyTiles TileProgram::tilesOfLists() {
  BlockLists lists(b, op, args, {batch, head, row, Value(), queries, keys},
                   schedule.getBN());
  // No window hides the first keys of a tile that is visited.
  keyLo = constant(0);
  // What takes turns is one loop, of all tiles, which asks for the end by
  // itself.
  bool turns = schedule.hasHalves();
  return {lists.getCount(),
          EdgeTiles(lists.getPartly()),
          [=, this](Value i) { return lists.keyOf(b, i); },
          turns ? Value() : lists.getIsCut(),
          /*wholeAfterFirst=*/false,
          /*endApart=*/turns};
}

bool TileProgram::holdsQueries() {
  // Words that products begin with take LDS's rate, too (docs/scores.md). Tiles
  // of lists as narrow won nothing.
  constexpr int64_t wordBytes = 4;
  TileOperands operands = operandsOf(op);
  return operands.readBytes == wordBytes && operands.beginsWithRead;
}

TileProgram::QueryTile TileProgram::beginTile(KeyTiles tiles) {
  int64_t BM = schedule.getBM(), BN = schedule.getBN();
  QueryTile tile(std::move(tiles));
  Value all = queries;
  if (group > 1)
    all = arith::MulIOp::create(b, queries, constant(group));
  tile.left = arith::SubIOp::create(b, all, row);
  tile.at = {query, head};
  if (op.isRagged())
    tile.at[0] = arith::AddIOp::create(b, firstRow, row);
  else
    tile.at.insert(tile.at.begin(), batch);

  bool qFromDram = schedule.getQInRegs() && target.fragmentsFromDram;
  ScheduleLimits limits = limitsOf(op, schedule.getStructure(), target);
  Value qbuf = qFromDram
                   ? Value()
                   : alloc(Operand::Q, BM, limits.querySlots(operandsOf(op)));
  int64_t slots = limits.loadedSlots(operandsOf(op));
  tile.kbuf = alloc(Operand::K, BN, slots);
  // A strip of V is BK keys.
  tile.vbuf = alloc(Operand::V,
                    std::holds_alternative<Strips>(schedule.getValues())
                        ? schedule.getBK()
                        : BN,
                    slots);
  tile.readBy = stagedRead();
  if (tile.readBy)
    tile.read.emplace(b, op, tile.readBy, args,
                      ScoreTile{batch, head, row, Value(), queries, keys}, BM,
                      BN, target);
  Value qtile = DramTileOp::create(b, tileType(op.getHeadSize(), element),
                                   operand(op.getQ()), tile.at, tile.left,
                                   /*validCols=*/Value(), IntegerAttr(), group);
  if (!qFromDram) {
    Value qtoken =
        DramLoadOp::create(b, qtile, qbuf, /*slot=*/Value(), /*pred=*/Value(),
                           /*whole=*/false);
    auto stage = LdsStageOp::create(b, ValueRange{qtoken}, IntegerAttr());
    tile.qs = stage.getStaged()[0];
    std::optional<AddedScores> added = addedScores();
    if (added && added->getQueryScale() != 1)
      stage->setAttr(kScaledByAttr, b.getF32FloatAttr(added->getQueryScale()));
  }
  FragmentType qType = fragment(BM, depth, element, Role::A);
  if (qFromDram)
    tile.qf = TileFragmentOp::create(b, qType, qtile);
  else if (schedule.getQInRegs())
    tile.qf = FragmentLoadOp::create(b, qType, tile.qs, 0, 0);
  else if (holdsQueries())
    tile.heldCols = limits.heldQueryColumns(operandsOf(op));
  if (tile.heldCols)
    tile.qHeld = FragmentLoadOp::create(
        b, fragment(BM, tile.heldCols, element, Role::A), tile.qs, 0, 0);
  beginSums(tile);
  return tile;
}

bool TileProgram::hasRoomToBegin() {
  // Of two tiles of scores, the operands of one product, Q and the output; of V
  // on its way; and what addresses have, twice where V goes through registers,
  // and over pages, and once more where lanes look these up.
  constexpr int64_t ofAddresses = 16;
  int64_t warps = schedule.getWarps(), rows = schedule.getBM() / warps,
          BN = schedule.getBN(), lanes = target.waveSize;
  int64_t registers = (2 * rows * BN + std::max(depth, valueDepth) * BN / 2 +
                       rows * (valueDepth + depth / 2)) /
                      lanes;
  if (!target.readsTransposed)
    registers += valueDepth * BN / 2 / (warps * lanes);
  bool moreAddresses =
      !target.readsTransposed || op.getK().getType().getPageSize();
  int64_t times = 1 + (moreAddresses ? 1 : 0) + (smallPageOf(op, BN) ? 1 : 0);
  return registers + ofAddresses * times <= target.registersPerLane;
}

// Behind the product it is one more instruction a score, and its softmax one
// more, which run beside the matrix unit. In front of it lanes hand over what
// distances tell apart, and the other half of the waves multiplies.
bool TileProgram::beginsByPlaces() {
  std::optional<IssueModel> model = lookupIssueModel(target.chip);
  if (!schedule.hasHalves() || !model)
    return false;
  // With more cycles of the matrix unit for a score of a lane products hide
  // what is added behind them (gfx942, 256 columns: 86 % for 85).
  constexpr int64_t mostCycles = 96;
  return target.waveSize * (op.getHeadSize() + op.getValueHeadSize()) <=
             mostCycles * model->matrixMacs &&
         hasRoomToBegin();
}

// A word of a diagonal is nine instructions in front of the product. Where a
// lane has few scores for each, and products hide what is added behind them,
// that is no gain (gfx942, 128 columns and 32 keys: 90 % for 92 and 93).
int64_t TileProgram::numbersOfTables() {
  constexpr int64_t mostCycles = 63;
  std::optional<IssueModel> model = lookupIssueModel(target.chip);
  return model &&
                 target.waveSize * (op.getHeadSize() + op.getValueHeadSize()) <=
                     mostCycles * model->matrixMacs
             ? target.waveSize
             : 0;
}

// Where halves of a block take turns, lanes hand what they begin with to each
// other while the other half multiplies. A mask behind the product is two
// instructions a score more beside the second one, which has the head of a
// softmax to hide.
std::optional<BegunMask> TileProgram::begunMask() {
  bool takesTurns = schedule.hasHalves() && lookupIssueModel(target.chip);
  if (!takesTurns || group != 1 || !hasRoomToBegin())
    return std::nullopt;
  // Both sides of a window take scalars that places of small pages need, which
  // would spill (head size 128 over pages of 7 on gfx950: 10 more, 9
  // registers).
  if (op.getMaskValue().boundsLeft() && smallPageOf(op, schedule.getBN()))
    return std::nullopt;
  std::optional<BegunMask> mask = BegunMask::of(op);
  // What functions add in between may be anything where keys are hidden.
  if (mask && !op.getScore().empty() &&
      !(addedScores() && mask->isOfDistance()))
    return std::nullopt;
  return mask;
}

void TileProgram::finishTile(const QueryTile &tile, ArrayRef<Value> sums) {
  Value sink;
  if (op.getSink())
    sink = memref::LoadOp::create(b, operand(op.getSink()), ValueRange{head});
  Value sum = sums[2];
  if (tile.sumsByUnit)
    sum = RowReduceOp::create(b, tile.rowType, Reduction::Sum, sum);
  Type outElement = op.getOutElementType();
  CacheScales scales(b, batch, kvHead);
  Value lse;
  auto finish = [&](Value acc) -> Value {
    auto finished = SoftmaxFinishOp::create(
        b, tile.accType, tile.rowType, acc, sums[1], sum,
        /*excess=*/Value(), sink, b.getF32FloatAttr(softmaxScale()),
        unboundedScoresOf(op));
    lse = finished.getLse();
    return roundOutput(b,
                       scales.finish(finished.getResult(), operand(op.getV()),
                                     op, tile.sumsByUnit),
                       outElement);
  };
  Value out = finish(sums[0]);
  SmallVector<Value> at = tile.at;
  if (tile.accParts > 1) {
    // Columns from one on, of rows that lie along the dimension before heads.
    at.push_back(Value());
    for (int64_t part = 0; part < tile.accParts; ++part) {
      at.back() = constant(part * tile.accCols);
      Value columns = DramTileOp::create(b, tileType(tile.accCols, outElement),
                                         operand(op.getOut()), at, tile.left,
                                         constant(tile.accCols),
                                         b.getI64IntegerAttr(at.size() - 3));
      FragmentStoreOp::create(b, part ? finish(sums[2 + part]) : out, columns,
                              /*via=*/Value());
    }
    at.pop_back();
  } else {
    // A part's columns are a window of all.
    if (part)
      at.push_back(partColumn);
    Value otile = DramTileOp::create(
        b, tileType(op.getValueHeadSize() / parts, outElement),
        operand(op.getOut()), at, tile.left,
        part ? constant(valueDepth) : Value(),
        part ? b.getI64IntegerAttr(at.size() - 3) : IntegerAttr(), group);
    if (part)
      at.pop_back();
    Value obuf;
    // Rows of several heads are no box of O.
    if (const MovingTeam *mover = schedule.getMovingTeam();
        mover && mover->stagesOutput && group == 1)
      obuf = alloc(Operand::O, schedule.getBM(), 1);
    FragmentStoreOp::create(b, out, otile, obuf);
  }
  if (op.getLse()) {
    SmallVector<Value> lseAt{head, at.end()[-2]};
    if (!op.isRagged())
      lseAt.insert(lseAt.begin(), batch);
    // All parts have the same.
    OpBuilder::InsertionGuard guard(b);
    if (part) {
      Value isFirst =
          arith::CmpIOp::create(b, arith::CmpIPredicate::eq, part, constant(0));
      auto branch = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
      b.setInsertionPointToStart(branch.thenBlock());
    }
    RowStoreOp::create(b, lse, operand(op.getLse()), lseAt, tile.left, group);
  }
}

void TileProgram::computeTile() {
  keys = CacheNumKeysOp::create(b, operand(op.getK()), batch,
                                lengthsCountNew(op) ? constant(0) : queries);
  c0 = constant(0);
  c1 = constant(1);
  QueryTile tile =
      beginTile(op.getBlockMaskAttr() ? tilesOfLists() : tilesOfRange());
  finishTile(tile, sumAllTiles(tile));
}

void kvbuf::buildTiles(ImplicitLocOpBuilder &b, AttentionOp op,
                       const TargetInfo &target, const IRMapping &args) {
  TileProgram(b, op, target, args).build();
}
