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
//===----------------------------------------------------------------------===//

#include "LowerDecode.h"
#include "CacheScales.h"
#include "DecodeSizes.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Problems.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

/// Partial results on their way to a warp of the last block at a time: at least
/// and at most.
static constexpr int64_t kLoadedAtOnce = 4, kMostAtOnce = 16;
/// Columns of an accumulator that a warp joins by itself, in multiples of
/// these: so many columns has a product of any chip.
static constexpr int64_t kSliceColumns = 32;
/// Pieces that one block of a warp joins; where a sequence has more, several
/// blocks join so many each, side by side, and one joins what they come to.
static constexpr int64_t kJoinedByOne = 8;
/// What a block of one warp could read while it ends with one sequence and
/// begins with the next: its arrival, then the look-up and the first copies of
/// the next one's keys (H200, stamps in a ragged batch: 5.4 us for a piece, at
/// 8.3 GB/s of a block).
static constexpr int64_t kPauseBytes = 40 << 10;
/// Sequences from which on shares count pauses: of few, blocks have a piece
/// each, and short ones would come in more pieces than they are worth.
static constexpr int64_t kFewSequences = 16;

namespace {

/// What a softmax over some of the keys has come to.
struct State {
  Value acc, max, sum;
  SmallVector<Value> values() const { return {acc, max, sum}; }
  static State of(ValueRange values) {
    return {values[0], values[1], values[2]};
  }
};

class DecodeProgram : DecodeSizes {
public:
  DecodeProgram(ImplicitLocOpBuilder &b, AttentionOp op,
                const TargetInfo &target, const IRMapping &args,
                gpu::GPUFuncOp kernel, CacheAppendOp append, int64_t warps)
      : DecodeSizes(op, target, *op.getSchedule(), warps), b(b), args(args),
        kernel(kernel), append(append),
        joinedByOne(std::max(kJoinedByOne, kLoadedAtOnce * warps)),
        element(op.getElementType()), weights(weightsOf(op)),
        depth(llvm::alignTo(op.getHeadSize(), schedule.getBK())),
        colSlices(colSlicesOf(depth, warps)), sliceCols(depth / colSlices),
        accType(fragment(schedule.getBM(), depth, b.getF32Type(), Role::Acc)),
        sliceType(
            fragment(schedule.getBM(), sliceCols, b.getF32Type(), Role::Acc)),
        rowType(fragment(schedule.getBM(), 1, b.getF32Type(), Role::Row)) {
    double cap = op.getSoftcapValue(), scale = op.getScaleValue();
    // The softmax scales after the maximum; that needs a positive scale.
    bool inSoftmax = scale > 0 && cap == 0 && !op.hasOwnScores();
    softmaxScale = b.getF32FloatAttr(inSoftmax ? scale : 1.0);
  }

  void build();

private:
  /// Parts of the columns that warps join side by side: as many as there are
  /// warps, or as there are parts of whole products.
  static int64_t colSlicesOf(int64_t depth, int64_t warps) {
    int64_t slices = 1;
    while (2 * slices <= warps && depth % (2 * slices * kSliceColumns) == 0)
      slices *= 2;
    return slices;
  }
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  FragmentType fragment(int64_t rows, int64_t cols, Type type, Role role) {
    return FragmentType::get(b.getContext(), rows, cols, type, role);
  }
  Value fill(FragmentType type, float value) {
    return FragmentFillOp::create(b, type, b.getF32FloatAttr(value));
  }
  Value operand(Value value) { return args.lookup(value); }
  Value optional(Value value) { return value ? operand(value) : Value(); }
  /// Stores the new tokens that the tiles [first, last) hold.
  void appendTokens(Value first, Value last);
  /// Adds an argument that the runtime provides.
  Value addArgument(StringRef name, StringRef access, MemRefType type,
                    ArrayRef<Attribute> shape);
  /// Slots for tiles of keys, of a block of one warp or of a team of one.
  void allocBuffers();
  /// Adds the memory of `places` pieces a head.
  void addScratch(Attribute places);
  State empty(FragmentType accType) {
    return {fill(accType, 0.0f),
            fill(rowType, -std::numeric_limits<float>::infinity()),
            fill(rowType, 0.0f)};
  }
  TileType rowsType(int64_t cols) {
    return TileType::get(b.getContext(), schedule.getBM(), cols, element,
                         group > 1 ? group : 0);
  }
  /// The rows of a tensor [batch, tokens, heads, head_size].
  Value rowsOf(Value tensor) {
    return DramTileOp::create(b, rowsType(op.getHeadSize()), tensor, rowsAt(),
                              rows, /*valid_cols=*/Value(),
                              /*row_dim=*/IntegerAttr(), group);
  }
  /// Where the tile's first row is in a tensor of query rows.
  SmallVector<Value> rowsAt() {
    SmallVector<Value> at{rowInTensor(), head};
    if (!op.isRagged())
      at.insert(at.begin(), batch);
    return at;
  }
  /// Where the tile's first query is in Q and in the output.
  Value rowInTensor() {
    if (!op.isRagged())
      return firstQuery;
    return arith::AddIOp::create(b, firstRow, firstQuery);
  }
  /// A slice of their columns; all of them where there is one slice.
  Value rowsOf(Value tensor, Value slice);
  /// The tiles of keys that some row of sequence `sequence` sees.
  struct Tiles {
    Value keys, begin, end, count;
    KeyRangeOp range;
    /// Queries of the sequence, and the row that its first one is in where they
    /// are ragged; whether this block's tile has rows of it, null if it must.
    Value queries, firstRow, active;
  };
  Tiles tilesOf(Value sequence);
  /// Work for a sequence, in tiles: rows that see no key are written, too.
  Value unitsOf(const Tiles &tiles, Value units, Value pause = {}) {
    Value some = arith::MaxUIOp::create(b, units, constant(1));
    if (pause)
      some = arith::AddIOp::create(b, some, pause);
    if (!tiles.active)
      return some;
    return arith::SelectOp::create(b, tiles.active, some, constant(0));
  }
  /// What follows is about this sequence.
  void enter(Value sequence, const Tiles &tiles);
  /// The tiles that a block could read between two sequences. A power of 2, so
  /// that where blocks have half, a quarter, .. of sequences of 2^n tiles, they
  /// still do. More than is lost would cost as much as less.
  Value pauseInTiles() {
    CacheType cache = op.getK().getType();
    int64_t bytes = 2 * schedule.getBN() * cache.getCacheDepth() *
                    cache.getElementType().getIntOrFloatBitWidth() / 8;
    int64_t tiles =
        llvm::bit_floor(uint64_t(std::max(bytes, warps * kPauseBytes) / bytes));
    Attribute many =
        expr("min", {number(1),
                     expr("floordiv", {str("batch"), number(kFewSequences)})});
    return LaunchValueOp::create(b, expr("product", {number(tiles), many}));
  }
  Value positive(Value n) { return arith::MaxSIOp::create(b, n, constant(0)); }
  /// Each block has a split of one sequence.
  void buildSplits();
  /// Divides a sequence's tiles in the kernel; `compute` is what a block with a
  /// split that exists does.
  void divideSplits(const Tiles &tiles, Value split, Value splitCount,
                    function_ref<void(Value share, Value used)> compute);
  /// Each block has a share of all sequences.
  void buildShares();
  /// Ragged queries: rows past those that the launch says a sequence has at
  /// most
  /// (`seq_q`), which the device alone knows better. One block computes a tile
  /// of them over all of its keys: slow, but no row is left out.
  void computeRest();
  void computeRestOf(Value sequence);
  /// A block's piece of a sequence: `number` of `count`, whose first is at
  /// place `base` of the memory for partial results.
  struct Piece {
    Value number, count, base;
  };
  /// Computes the tiles [first, last), one piece of sequence `batch`.
  void computePiece(const Tiles &tiles, Value first, Value last,
                    const Piece &piece);
  /// The scales of the block's head of the cache.
  CacheScales scales() { return {b, batch, kvHead}; }
  /// Lets each warp compute a part of a softmax; `then` is what a warp does
  /// with a slice of what the parts come to.
  void inWarps(StringRef name, function_ref<State(Value warp)> compute,
               function_ref<void(State, Value slice)> then);
  /// Teams side by side.
  void teams(function_ref<void()> build);
  /// `copies` teams of a warp each; `build` gets a copy's number.
  void team(const Twine &name, int64_t copies, function_ref<void(Value)> build);
  /// A warp for each slice; the others wait.
  void forSlices(const Twine &name, function_ref<void(Value slice)> build);
  /// The loop over the tiles [first, end) of keys: every tile of number `warp`,
  /// counted from the last one, of each `warps`.
  State readKeys(Value first, Value end, const Tiles &tiles, Value warp);
  /// Where the slice of a partial result lies.
  SmallVector<Value> placeOf(int64_t level, Value place, Value slice) {
    if (warps == 1)
      return {constant(level), line, place};
    return {constant(level), line, slice, place};
  }
  /// Stores the state of a piece, or a slice of it.
  void store(const State &state, int64_t level, Value place, Value slice) {
    PartialStoreOp::create(b, state.acc, state.max, state.sum, parts,
                           placeOf(level, place, slice), rows);
  }
  /// Joins all pieces where this block, whose own is stored, is the last.
  void join(const Piece &piece);
  /// Joins the `count` partial results of a level, each `step` places after the
  /// one before it; `then` is what a warp does with a slice of what they come
  /// to.
  void joinAll(const Twine &name, int64_t level, Value place, Value count,
               int64_t step, function_ref<void(State, Value slice)> then);
  /// The same for one slice.
  State joinFrom(int64_t level, Value place, Value count, int64_t step,
                 Value slice);
  /// Joins the parts of a softmax.
  State merge(const State &state, const State &other) {
    return State::of(SoftmaxMergeOp::create(b, state.acc, state.max, state.sum,
                                            other.acc, other.max, other.sum,
                                            softmaxScale)
                         .getResults());
  }
  /// Joins parts, neighbours first: one after the other, each would wait for
  /// the one before it.
  State mergeAll(SmallVector<State> parts) {
    for (; parts.size() > 1; parts.resize((parts.size() + 1) / 2))
      for (size_t i = 0; i < parts.size(); i += 2)
        parts[i / 2] =
            i + 1 < parts.size() ? merge(parts[i], parts[i + 1]) : parts[i];
    return parts.front();
  }
  /// Slices of parts of a softmax that a lane has registers for at a time, 1 or
  /// more.
  int64_t partsAtOnce() const {
    int64_t registers = schedule.getBM() * sliceCols / target.waveSize;
    return std::max<int64_t>(1, llvm::divideCeil(target.registersPerLane, 2) /
                                    registers);
  }
  /// Partial results that are loaded before the first is joined.
  int64_t loadedAtOnce() const {
    return warps == 1 ? kLoadedAtOnce
                      : std::clamp(partsAtOnce(), kLoadedAtOnce, kMostAtOnce);
  }
  /// What only the block that arrives last at a place does.
  void ifLast(int64_t level, Value place, Value count,
              function_ref<void()> build);
  /// `yes` where `condition` holds, `no` elsewhere.
  void choose(Value condition, function_ref<void()> yes,
              function_ref<void()> no = {});
  void finish(State state, Value slice);

  ImplicitLocOpBuilder &b;
  const IRMapping &args;
  gpu::GPUFuncOp kernel;
  /// New tokens that the blocks store; null where there are none.
  CacheAppendOp append;
  /// The pieces that a block joins.
  int64_t joinedByOne;
  Type element;
  /// The type of the elements of P and V.
  Type weights;
  /// Head size, padded to whole LDS blocks.
  int64_t depth;
  /// Parts of the columns that warps join side by side; columns of one.
  int64_t colSlices, sliceCols;
  FragmentType accType, sliceType, rowType;
  FloatAttr softmaxScale;

  // Values of the kernel: the sequence, its queries, and the row of its first
  // one where they are ragged; the cache's head and the first query head of it;
  // the tile's first query, its rows, and the number of head and tile together.
  Value batch, queries, firstRow, kvHead, head, firstQuery, rows, line;
  /// That of the block among those of a head and tile; of the tile.
  Value block, slice;
  /// Buffers of a block of one warp, one for all pieces.
  TypedValue<BufferType> kbuf, vbuf;
  /// Where warps leave their accumulators, slice by slice, and the maxima and
  /// sums of their rows; null in blocks of one.
  Value accShelf, rowShelf;
  /// Partial results and counters: level (pieces, what blocks have joined of
  /// them), head and tile, place; for partial results of blocks of several
  /// warps the slice of columns comes before the place.
  Value parts, arrived;
};

} // namespace

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

void DecodeProgram::addScratch(Attribute places) {
  // A row's maximum and sum after it; 16 bytes keep rows aligned.
  int64_t width = sliceCols + 4, room = group * ownQueries;
  constexpr int64_t any = ShapedType::kDynamic;
  int64_t lines = oneTile ? op.getKVHeads() : any;
  SmallVector<int64_t> sizes = {2, lines, any, room, width};
  SmallVector<Attribute> shape = {number(2), linesOf(), places, number(room),
                                  number(width)};
  // Who joins slices goes from place to place.
  if (warps > 1) {
    sizes.insert(sizes.begin() + 2, colSlices);
    shape.insert(shape.begin() + 2, number(colSlices));
  }
  // Kernels of one artifact that split differently have memory of their own.
  StringRef of = warps > 1 ? "team_" : "";
  parts = addArgument((of + "parts").str(), "workspace",
                      MemRefType::get(sizes, b.getF32Type()), shape);
  arrived = addArgument((of + "arrived").str(), "counter",
                        MemRefType::get({2, lines, any}, b.getI32Type()),
                        {number(2), linesOf(), places});
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

void DecodeProgram::allocBuffers() {
  kbuf = allocOperand(b, op, target, Operand::K, schedule.getBN(),
                      schedule.getStages());
  vbuf = allocOperand(b, op, target, Operand::V, schedule.getBN(),
                      schedule.getStages());
}

void DecodeProgram::build() {
  kvHead = line = gpu::BlockIdOp::create(b, gpu::Dimension::x);
  block = gpu::BlockIdOp::create(b, gpu::Dimension::y);
  firstQuery = constant(0);
  if (!oneTile) {
    Value count = tokens >= 0 ? constant(cast<IntegerAttr>(slices).getInt())
                              : LaunchValueOp::create(b, slices).getResult();
    // Tiles of the same keys side by side. Beside many sequences, which stand
    // along z, the heads alone are along x (kvbuf-fold-grid).
    bool byHead = schedule.getEqualShares();
    Value both = byHead ? line : block;
    slice = arith::RemUIOp::create(b, both, count);
    Value other = arith::DivUIOp::create(b, both, count);
    (byHead ? kvHead : block) = other;
    firstQuery = arith::MulIOp::create(b, slice, constant(ownQueries));
    if (!byHead) {
      line = arith::MulIOp::create(b, kvHead, count);
      line = arith::AddIOp::create(b, line, slice);
    }
  }
  head = arith::MulIOp::create(b, kvHead, constant(group));
  if (warps == 1) {
    allocBuffers();
  } else {
    auto shelf = [&](ArrayRef<Type> types, int64_t slots) -> Value {
      return ShelfOp::create(b, ShelfType::get(b.getContext(), types), slots);
    };
    accShelf = shelf({sliceType}, colSlices * warps);
    rowShelf = shelf({rowType, rowType}, warps);
  }
  if (schedule.getEqualShares())
    buildShares();
  else
    buildSplits();
  // Only whoever asks for several warps has teams here, and takes the launch at
  // its word.
  if (op.isRagged() && warps == 1)
    computeRest();
}

void DecodeProgram::computeRest() {
  if (!schedule.getEqualShares())
    return choose(
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, block, constant(0)),
        [&] { computeRestOf(gpu::BlockIdOp::create(b, gpu::Dimension::z)); });
  Value workers = LaunchValueOp::create(b, workersOf());
  auto loop =
      scf::ForOp::create(b, block, LaunchSizeOp::create(b, "batch"), workers);
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
  Attribute splits = splitsOf(), share;
  // Where all sequences have as many tiles, and the host knows how many, it
  // divides them: two divisions before the first copy take a block as long as
  // a tile's math.
  if (Attribute tiles = tilesOnHost()) {
    auto part = [&](Attribute of) {
      return expr("max", {number(1), expr("ceildiv", {tiles, of})});
    };
    share = schedule.getSplitSize()
                ? number(schedule.getSplitSize() / schedule.getBN())
                : part(splits);
    splits = part(share);
  }
  // Blocks of neighbouring heads read neighbouring rows at the same time.
  kernel->setAttr(KVBufferDialect::kGridAttr,
                  b.getArrayAttr({number(op.getKVHeads()), timesSlices(splits),
                                  str("batch")}));
  addScratch(expr("product", {str("batch"), splits}));
  Value split = block;
  Value sequence = gpu::BlockIdOp::create(b, gpu::Dimension::z);
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

void DecodeProgram::divideSplits(
    const Tiles &tiles, Value split, Value splitCount,
    function_ref<void(Value share, Value used)> compute) {
  Value one = constant(1), share;
  if (int64_t size = schedule.getSplitSize())
    share = constant(size / schedule.getBN());
  else
    share = arith::MaxUIOp::create(
        b, arith::CeilDivUIOp::create(b, tiles.count, splitCount), one);
  // A sequence without a key has one split without a tile.
  Value used =
      unitsOf(tiles, arith::CeilDivUIOp::create(b, tiles.count, share));
  Value mine = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, split, used);
  auto ifMine = scf::IfOp::create(b, mine, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifMine.thenBlock());
  compute(share, used);
}

void DecodeProgram::buildShares() {
  Attribute workers = workersOf();
  kernel->setAttr(KVBufferDialect::kGridAttr,
                  b.getArrayAttr({linesOf(), workers, number(1)}));
  // Each sequence and each block begins at most one piece.
  addScratch(expr("sum", {str("batch"), workers}));
  Value worker = block;
  Value one = constant(1);
  // A block of several short sequences has less to read than one of a part of a
  // long one.
  Value pause = pauseInTiles();
  auto share = ShareWorkOp::create(
      b, worker, LaunchValueOp::create(b, workers),
      LaunchSizeOp::create(b, "batch"),
      constant(std::max<int64_t>(1, leastSplit() / schedule.getBN())));
  {
    OpBuilder::InsertionGuard guard(b);
    Block *body =
        b.createBlock(&share.getBody(), {}, {b.getIndexType()}, {b.getLoc()});
    Tiles tiles = tilesOf(body->getArgument(0));
    YieldOp::create(b, unitsOf(tiles, tiles.count, pause));
  }
  Value size = share.getSize();
  Value from = arith::MulIOp::create(b, worker, size);
  Value upto = arith::AddIOp::create(b, from, size);
  auto loop = scf::ForOp::create(b, share.getFirst(), share.getEnd(), one,
                                 ValueRange{share.getStart()});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  // All have read the slots that the piece before filled. (Teams meet.)
  if (warps == 1)
    MeetOp::create(b);
  // Units [start, stop) are this sequence's; tiles [first, last) of its own are
  // this block's.
  Value start = loop.getRegionIterArg(0);
  Tiles tiles = tilesOf(loop.getInductionVar());
  Value units = unitsOf(tiles, tiles.count, pause);
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
  // Each piece has its part of the tiles. Equal pieces have equal parts, so the
  // pause costs nothing where no block has two.
  auto tileAt = [&](Value unit) -> Value {
    Value own = arith::SubIOp::create(b, unit, start);
    Value part = arith::MulIOp::create(b, own, tiles.count);
    return arith::AddIOp::create(
        b, tiles.begin, arith::DivUIOp::create(b, part, units).getResult());
  };
  Value first = tileAt(arith::MaxUIOp::create(b, from, start));
  Value last = tileAt(arith::MinUIOp::create(b, upto, stop));
  // The blocks that have its first and its last unit.
  Value firstWorker = arith::DivUIOp::create(b, start, size);
  Value lastWorker = arith::DivUIOp::create(
      b, arith::SubIOp::create(b, stop, one).getResult(), size);
  Value count = arith::AddIOp::create(
      b, arith::SubIOp::create(b, lastWorker, firstWorker).getResult(), one);
  Value number = arith::SubIOp::create(b, worker, firstWorker);
  Value base = arith::AddIOp::create(b, firstWorker, batch);
  computePiece(tiles, first, last, {number, count, base});
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

void DecodeProgram::teams(function_ref<void()> build) {
  OpBuilder::InsertionGuard guard(b);
  auto teams = TeamsOp::create(b);
  b.createBlock(&teams.getBody());
  build();
}

void DecodeProgram::team(const Twine &name, int64_t copies,
                         function_ref<void(Value)> build) {
  OpBuilder::InsertionGuard guard(b);
  auto team = TeamOp::create(b, b.getStringAttr(name).getValue(),
                             /*warps=*/1, copies);
  b.createBlock(&team.getBody(), {}, {b.getIndexType()}, {b.getLoc()});
  build(team.getIndex());
}

void DecodeProgram::forSlices(const Twine &name,
                              function_ref<void(Value slice)> build) {
  teams([&] {
    team(name, colSlices, build);
    if (colSlices < warps)
      team(name + "_idle", warps - colSlices,
           [&](Value) { MeetOp::create(b); });
  });
}

void DecodeProgram::inWarps(StringRef name,
                            function_ref<State(Value warp)> compute,
                            function_ref<void(State, Value slice)> then) {
  if (warps == 1)
    return then(compute(constant(0)), Value());
  // Slices of one number lie side by side.
  auto slotOf = [&](Value slice, Value warp) -> Value {
    return arith::AddIOp::create(
        b, arith::MulIOp::create(b, slice, constant(warps)).getResult(), warp);
  };
  teams([&] {
    team(name, warps, [&](Value warp) {
      State own = compute(warp);
      for (int64_t i = 0; i < colSlices; ++i) {
        Value slice = FragmentSliceOp::create(b, sliceType, own.acc, /*row=*/0,
                                              /*col=*/i * sliceCols);
        ShelfPutOp::create(b, ValueRange{slice}, accShelf,
                           slotOf(constant(i), warp));
      }
      ShelfPutOp::create(b, ValueRange{own.max, own.sum}, rowShelf, warp);
    });
  });
  forSlices(name + "_joined", [&](Value slice) {
    SmallVector<State> joined;
    for (int64_t from = 0; from < warps; from += partsAtOnce()) {
      SmallVector<State> parts;
      for (int64_t i = from; i < std::min(warps, from + partsAtOnce()); ++i) {
        Value warp = constant(i);
        auto acc = ShelfGetOp::create(b, accShelf, slotOf(slice, warp));
        auto row = ShelfGetOp::create(b, rowShelf, warp);
        parts.push_back({acc.getResult(0), row.getResult(0), row.getResult(1)});
      }
      joined.push_back(mergeAll(parts));
      joined = {mergeAll(joined)};
    }
    then(joined.front(), slice);
  });
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

void DecodeProgram::computePiece(const Tiles &tiles, Value first, Value last,
                                 const Piece &piece) {
  if (append)
    appendTokens(first, last);
  Value alone = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, piece.count,
                                      constant(1));
  inWarps(
      "keys", [&](Value warp) { return readKeys(first, last, tiles, warp); },
      [&](State own, Value slice) {
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

State DecodeProgram::readKeys(Value first, Value end, const Tiles &tiles,
                              Value warp) {
  if (warps > 1)
    allocBuffers();
  KeyRangeOp range = tiles.range;
  Value keys = tiles.keys;
  int64_t BM = schedule.getBM(), BN = schedule.getBN();
  int64_t stages = schedule.getStages();
  Value zero = constant(0), one = constant(1), bn = constant(BN);
  FragmentType scoreType = fragment(BM, BN, b.getF32Type(), Role::Acc);
  FragmentType pType = fragment(BM, BN, weights, Role::A);
  FragmentType qType = fragment(BM, depth, element, Role::A);
  Value q = TileFragmentOp::create(b, qType, rowsOf(operand(op.getQ())));
  Value kScale = scales().ofHead(operand(op.getK()));

  // Iterations that need a mask: before `edgeRight`, and from `edgeLeft` on.
  Value fullEnd = arith::DivUIOp::create(
      b, arith::MaxSIOp::create(b, range.getFullHi(), zero).getResult(), bn);
  Value edgeRight = arith::SubIOp::create(b, end, fullEnd), edgeLeft;
  if (mask.boundsLeft()) {
    Value fullBegin = arith::CeilDivUIOp::create(
        b, arith::MaxSIOp::create(b, range.getFullLo(), zero).getResult(), bn);
    edgeLeft = arith::SubIOp::create(b, end, fullBegin);
  }
  Value count = arith::SubIOp::create(b, end, first), many = constant(warps);
  if (warps > 1)
    count = arith::CeilDivUIOp::create(
        b, positive(arith::SubIOp::create(b, count, warp)), many);
  auto loop = scf::ForOp::create(b, zero, count, one, empty(accType).values());
  // From right to left the end of the sequence cuts the first tile only; a
  // window may cut the last one too.
  if (!mask.boundsLeft())
    loop->setAttr(KVBufferDialect::kWholeAfterFirstAttr, b.getUnitAttr());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value iteration = loop.getInductionVar(), i = iteration;
  if (warps > 1)
    i = arith::AddIOp::create(
        b, arith::MulIOp::create(b, iteration, many).getResult(), warp);
  State state = State::of(loop.getRegionIterArgs());
  Value back = arith::SubIOp::create(
      b, arith::SubIOp::create(b, end, one).getResult(), i);
  Value key = arith::MulIOp::create(b, back, bn);
  Value slot = zero;
  if (stages > 1)
    slot = arith::RemUIOp::create(b, iteration, constant(stages));
  auto load = [&](Value cache, TypedValue<BufferType> buffer,
                  Type as) -> Value {
    auto type = cast<CacheType>(cache.getType());
    auto tile = CacheTileOp::create(
        b,
        TileType::get(b.getContext(), BN, type.getCacheDepth(),
                      type.getElementType(), smallPageOf(op)),
        cache, batch, kvHead, key, range.getLo(), keys, /*pred=*/Value());
    Value token = DramLoadOp::create(b, tile, buffer, slot, Value(),
                                     /*whole=*/false, /*block=*/0);
    Value staged =
        LdsStageOp::create(b, ValueRange{token}, IntegerAttr()).getStaged()[0];
    return FragmentLoadOp::create(b, fragment(BN, depth, as, Role::B), staged,
                                  0, 0);
  };

  // Both are asked for before the product of the scores, which hides their
  // latency: a look-up of a page and one of a scale, one after the other (H200,
  // e4m3, pages of 16, 64 sequences of 8192 keys: 323 us, and 507 where each was
  // asked for at its use).
  TileTokens tokens{key, range.getLo(), keys};
  Value kScales = scales().ofTokens(operand(op.getK()), scoreType, tokens);
  Value vScales = scales().ofTokens(operand(op.getV()), scoreType, tokens);
  Value k = load(operand(op.getK()), kbuf, element);
  Value s = MmaOp::create(b, q, k, fill(scoreType, 0.0f),
                          /*transpose_b=*/true, /*column=*/0);
  s = scales().multiplyByToken(scales().multiply(s, kScale), kScales);
  double scale = op.getScaleValue(), cap = op.getSoftcapValue();
  if (cap > 0)
    s = SoftcapOp::create(b, s, b.getF32FloatAttr(scale),
                          b.getF32FloatAttr(cap));
  else if (scale <= 0 && !op.hasOwnScores())
    s = FragmentScaleOp::create(b, s, b.getF32FloatAttr(scale));
  if (op.hasOwnScores())
    s = mapOwnScores(b, op, args, s,
                     {batch, head, firstQuery, key, queries, keys, group},
                     cap > 0 ? 1.0 : scale);
  Value edge =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, i, edgeRight);
  if (edgeLeft)
    edge = arith::OrIOp::create(
        b, edge,
        arith::CmpIOp::create(b, arith::CmpIPredicate::sge, i, edgeLeft));
  auto masked = scf::IfOp::create(b, TypeRange{scoreType}, edge,
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
  {
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToStart(masked.thenBlock());
    Value hidden =
        MaskOp::create(b, s, firstQuery, queries, key, keys, mask, group);
    scf::YieldOp::create(b, hidden);
    b.setInsertionPointToStart(masked.elseBlock());
    scf::YieldOp::create(b, s);
  }
  bool scalesWeights = isScaledByToken(op.getV().getType());
  auto softmax = OnlineSoftmaxOp::create(
      b, scalesWeights ? scoreType : pType, rowType, rowType, rowType,
      masked.getResult(0), state.max, state.sum, softmaxScale,
      /*masked=*/b.getUnitAttr());
  Value scaled = RescaleOp::create(b, state.acc, softmax.getRescale());
  Value v = load(operand(op.getV()), vbuf, weights);
  Value p = scales().weights(softmax.getP(), vScales, pType);
  Value acc = MmaOp::create(b, p, v, scaled,
                            /*transpose_b=*/false, /*column=*/0);
  scf::YieldOp::create(
      b, ValueRange{acc, softmax.getNewMax(), softmax.getNewSum()});
  return State::of(loop.getResults());
}

void DecodeProgram::joinAll(const Twine &name, int64_t level, Value place,
                            Value count, int64_t step,
                            function_ref<void(State, Value slice)> then) {
  if (warps == 1)
    return then(joinFrom(level, place, count, step, Value()), Value());
  forSlices(name, [&](Value slice) {
    then(joinFrom(level, place, count, step, slice), slice);
  });
}

State DecodeProgram::joinFrom(int64_t level, Value place, Value count,
                              int64_t step, Value slice) {
  // Several are loaded before the first is merged: one after the other, each
  // would take the memory's latency.
  int64_t many = loadedAtOnce();
  auto loop = scf::ForOp::create(b, constant(0), count, constant(many),
                                 empty(sliceType).values());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value first = loop.getInductionVar();
  State before = State::of(loop.getRegionIterArgs());
  Value end = arith::SubIOp::create(b, count, constant(1));
  // The next ones, merged with what those before them have come to. Where not
  // all exist, those past the end are the last one again, of no row.
  auto joinNext = [&](bool allExist) {
    SmallVector<State> loaded;
    for (int64_t n = 0; n < many; ++n) {
      Value number = arith::AddIOp::create(b, first, constant(n)), valid = rows;
      if (!allExist) {
        Value exists =
            arith::CmpIOp::create(b, arith::CmpIPredicate::ult, number, count);
        valid = arith::SelectOp::create(b, exists, rows, constant(0));
        number = arith::MinUIOp::create(b, number, end);
      }
      Value at = arith::AddIOp::create(
          b, place,
          arith::MulIOp::create(b, number, constant(step)).getResult());
      auto part = PartialLoadOp::create(b, sliceType, rowType, rowType, parts,
                                        placeOf(level, at, slice), valid);
      loaded.push_back(State::of(part.getResults()));
    }
    if (colSlices > 1)
      return merge(before, mergeAll(loaded));
    // One after the other, in the order in which they come: pairs of them,
    // merged first, would all take registers at once, and the assembler would
    // load some later (H200, one sequence of 8192 keys: 15.4 us in a graph, not
    // 13.5).
    State joined = before;
    for (const State &part : loaded)
      joined = merge(joined, part);
    return joined;
  };
  if (warps == 1) {
    scf::YieldOp::create(b, joinNext(/*allExist=*/false).values());
    return State::of(loop.getResults());
  }
  // Where all exist, their addresses are one and offsets.
  Value after = arith::AddIOp::create(b, first, constant(many));
  Value whole =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ule, after, count);
  auto branch =
      scf::IfOp::create(b, ValueRange(before.values()).getTypes(), whole,
                        /*addThenBlock=*/true, /*addElseBlock=*/true);
  for (bool allExist : {true, false}) {
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToStart(allExist ? branch.thenBlock()
                                        : branch.elseBlock());
    scf::YieldOp::create(b, joinNext(allExist).values());
  }
  scf::YieldOp::create(b, branch.getResults());
  return State::of(loop.getResults());
}

void DecodeProgram::ifLast(int64_t level, Value place, Value count,
                           function_ref<void()> build) {
  choose(ArriveLastOp::create(b, arrived,
                              ValueRange{constant(level), line, place}, count),
         build);
}

void DecodeProgram::join(const Piece &piece) {
  // The pieces that are joined together with this one.
  Value many = constant(joinedByOne);
  Value first = arith::MulIOp::create(
      b, arith::DivUIOp::create(b, piece.number, many).getResult(), many);
  Value members = arith::MinUIOp::create(
      b, many, arith::SubIOp::create(b, piece.count, first).getResult());
  Value place = arith::AddIOp::create(b, piece.base, first);
  Value few =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ule, piece.count, many);
  Value more =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, piece.count, many);
  ifLast(0, place, members, [&] {
    joinAll("pieces", 0, place, members, /*step=*/1,
            [&](State state, Value slice) {
              choose(
                  few, [&] { finish(state, slice); },
                  [&] { store(state, 1, place, slice); });
            });
    choose(more, [&] {
      Value joiners = arith::CeilDivUIOp::create(b, piece.count, many);
      ifLast(1, piece.base, joiners, [&] {
        joinAll("joined", 1, piece.base, joiners, joinedByOne,
                [&](State state, Value slice) { finish(state, slice); });
      });
    });
  });
}

Value DecodeProgram::rowsOf(Value tensor, Value slice) {
  if (colSlices == 1)
    return rowsOf(tensor);
  Value cols = constant(sliceCols);
  Value first = arith::MulIOp::create(b, slice, cols);
  // The last slice may be padding, in part or all of it.
  Value valid = cols;
  if (depth != op.getHeadSize())
    valid = arith::SubIOp::create(b, constant(op.getHeadSize()), first);
  SmallVector<Value> at = rowsAt();
  at.push_back(first);
  int64_t rowDim = op.isRagged() ? 0 : 1;
  return DramTileOp::create(b, rowsType(sliceCols), tensor, at, rows, valid,
                            b.getI64IntegerAttr(rowDim), group);
}

void DecodeProgram::finish(State state, Value slice) {
  if (op.getSink())
    state =
        State::of(SoftmaxSinkOp::create(b, state.acc, state.max, state.sum,
                                        operand(op.getSink()), ValueRange{head},
                                        softmaxScale.getValue(), group)
                      .getResults());
  auto done = SoftmaxFinishOp::create(b, sliceType, rowType, state.acc,
                                      state.max, state.sum, /*excess=*/Value(),
                                      /*sink=*/Value(), softmaxScale);
  Value result = scales().finish(done.getResult(), operand(op.getV()));
  Value out = FragmentConvertOp::create(
      b, fragment(schedule.getBM(), sliceCols, element, Role::Acc), result);
  FragmentStoreOp::create(b, out, rowsOf(operand(op.getOut()), slice),
                          /*via=*/Value());
  if (!op.getLse())
    return;
  auto storeLse = [&] {
    SmallVector<Value> lseAt{head, rowInTensor()};
    if (!op.isRagged())
      lseAt.insert(lseAt.begin(), batch);
    RowStoreOp::create(b, done.getLse(), operand(op.getLse()), lseAt, rows,
                       group);
  };
  // Each slice has it.
  if (colSlices == 1)
    return storeLse();
  choose(arith::CmpIOp::create(b, arith::CmpIPredicate::eq, slice, constant(0)),
         storeLse);
}

void kvbuf::buildDecode(ImplicitLocOpBuilder &b, AttentionOp op,
                        const TargetInfo &target, const IRMapping &args,
                        gpu::GPUFuncOp kernel, CacheAppendOp append) {
  // Each warp works by itself: what follows knows the schedule of one.
  ScheduleParameters own = op.getSchedule()->getParameters();
  int64_t warps = std::exchange(own.warps, 1);
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
  if (append.getKCache() != op.getK() || !append.getV() ||
      append.getVCache() != op.getV())
    return fail("expected new keys and values for the caches that it reads");
  if (append.getOffsets() || append.getAt())
    return fail("expected tokens that follow those of each sequence, without "
                "offsets and positions");
  if (!op.getK().getType().hasTable() || lengthsCountNew(op))
    return fail("expected continuous or paged caches, with lengths that do not "
                "count the new tokens");
  if (!op.getSchedule()->getSplitKeys())
    return fail(
        "keys are not split over blocks; expected queries that have no "
        "more rows than fit a tile, and say so in their type (at most 8, "
        "times the heads that share a head of the cache at most 32)");
  ScheduleParameters own = op.getSchedule()->getParameters();
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
