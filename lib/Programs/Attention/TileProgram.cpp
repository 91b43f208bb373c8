//===- TileProgram.cpp - Programs of tiles of queries -----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileProgram.h"
#include "Attention.h"
#include "BlockLists.h"
#include "CacheScales.h"
#include "ProblemLimits.h"
#include "TileScores.h"
#include "TiledReads.h"
#include "VisibleBounds.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/SizeExpressions.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/VerifyElements.h"
#include "kvbuffer/Schedules/WideHeads.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

int64_t kvbuf::smallPageOf(AttentionOp op, int64_t rows) {
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
  if (isOfCache && element.getIntOrFloatBitWidth() == 8 &&
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
            (packed || target.canCopyDirectly(rows, rowBytes, smallPage)));
    if (suits.movesVectors())
      swizzle = swizzleList(suits);
  }
  // Rows of a cache may hold more than the operand.
  int64_t rowDepth = headSize, offset = 0, chunk = headSize;
  if (which == Operand::K || which == Operand::V) {
    CacheType cache = (which == Operand::K ? op.getK() : op.getV()).getType();
    rowDepth = cache.getTileCols();
    offset = cache.getHeadDimOffset();
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

namespace {

/// Builds the tile program of one problem.
class TileProgram {
public:
  TileProgram(ImplicitLocOpBuilder &b, AttentionOp op, const TargetInfo &target,
              const IRMapping &args)
      : b(b), op(op), target(target), args(args), schedule(*op.getSchedule()),
        element(op.getElementType()), products(element), weights(weightsOf(op)),
        values(valuesOf(op)), mask(op.getMaskValue()),
        depth(llvm::alignTo(op.getHeadSize(), schedule.getBK())),
        parts(WideHeads::of(schedule.getStructure(), op.getHeadSize(),
                            op.getValueHeadSize(), target)
                  .valueParts),
        valueDepth(
            llvm::alignTo(op.getValueHeadSize() / parts, schedule.getBK())) {}

  void build();

private:
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  FragmentType fragment(int64_t rows, int64_t cols, Type type, Role role) {
    return FragmentType::get(b.getContext(), rows, cols, type, role);
  }
  Value fill(FragmentType type, float value) {
    return FragmentFillOp::create(b, type, b.getF32FloatAttr(value));
  }
  /// The buffer of an operand with `rows` rows a slot.
  TypedValue<BufferType> alloc(Operand operand, int64_t rows, int64_t stages) {
    return allocOperand(b, op, target, operand, rows, stages);
  }
  /// The `rows` rows of a cache from key `start` on, and its columns from
  /// `column` on, if there is one.
  Value cacheTile(Value cache, Value start, int64_t rows, Value column = {});
  /// The scores of a tile of K at `key`, which comes through `buffer` as a
  /// whole or block by block; `queries` gives columns of Q, from one on so
  /// many.
  Value multiplyKeys(function_ref<Value(int64_t, int64_t)> queries, Value cache,
                     TypedValue<BufferType> buffer, Value key,
                     ArrayRef<ScaledColumns> groups);
  /// Columns of V and what they are multiplied by.
  struct Weighted {
    ScaledColumns part;
    SmallVector<Value, 2> weights;
  };
  /// Adds to `acc` the weighted tile of V at `key`, which comes likewise.
  Value multiplyValues(ArrayRef<Weighted> weighted, Value cache,
                       TypedValue<BufferType> buffer, Value key, Value acc);
  /// Accumulators of neighbouring columns, rescaled, and the products of the
  /// weights and such columns of a tile of values, which are added up apart:
  /// the next is in flight while one is added.
  SmallVector<Value> addValues(OnlineSoftmaxOp softmax, Value cache,
                               TypedValue<BufferType> buffer, Value key,
                               ValueRange accs);
  /// The same by strips of as many keys as a slot has rows.
  Value multiplyStrips(ArrayRef<Weighted> weighted, Value cache,
                       TypedValue<BufferType> buffer, Value key, Value acc);
  /// Loads a block of columns of a tile of a cache.
  Value stageBlock(Value tile, TypedValue<BufferType> buffer, int64_t block);
  Value operand(Value value) { return args.lookup(value); }
  /// The kernel's work: a tile of queries of a head and a sequence each.
  WorkItemOp createItem();
  /// The tiles of keys of a tile of queries: how many the loop over them has,
  /// where its iteration `i` stands (`keyOf`), and which of them are masked.
  struct KeyTiles {
    Value count;
    EdgeTiles edges;
    std::function<Value(Value)> keyOf;
    /// Whether lists say that it is wholly visible; null: there are none.
    std::function<Value(Value)> isWhole;
    /// Whether the end of the sequence may cut one, where the program has a
    /// loop for either case; null: it has one loop. `partly`: those that are
    /// masked where it does not.
    Value isCut, partly;
    /// Whether none but the first may be cut by the end of the sequence or the
    /// left side of a window.
    bool wholeAfterFirst;
  };
  /// Those of the range of keys that the rows see, from right to left.
  KeyTiles tilesOfRange();
  /// Those of the blocks that the problem's lists name.
  KeyTiles tilesOfLists();
  /// What a tile of queries is computed with, once it is begun.
  struct QueryTile {
    explicit QueryTile(KeyTiles tiles) : tiles(std::move(tiles)) {}

    KeyTiles tiles;
    /// Where its rows are in Q and O, and how many are left there.
    SmallVector<Value> at;
    Value left;
    /// Q in registers, or else in its slot.
    Value qf, qs;
    TypedValue<BufferType> kbuf, vbuf;
    /// A tensor that scores read by tiles.
    std::optional<TiledRead> read;
    memref::LoadOp readBy;
    FragmentType accType, scoreType, rowType, pType, sumType;
    /// Columns of an accumulator, and how many there are.
    int64_t accCols = 0, accParts = 1;
    /// Whether a tile's product is added to the accumulator when it is done.
    bool apart = false;
    /// K's scales, and what is left of them beside those that Q has taken.
    Value kScale, kFactor;
    /// What weights are multiplied by before they are rounded, and whether an
    /// op of its own does so.
    float gain = 1;
    bool scalesWeights = false;
    /// Whether the matrix unit adds weights up: the ones that it multiplies by,
    /// and the sum that the softmax begins with.
    bool sumsByUnit = false;
    Value ones, noSum;
    /// The accumulator, the maxima and the sums of weights to begin with, and
    /// the other accumulators.
    SmallVector<Value> init;
  };
  void computeTile();
  /// The load of what scores read by their rows and keys, if tiles of it come
  /// through LDS; else null.
  memref::LoadOp stagedRead() {
    bool stages = limitsOf(op, schedule.getStructure(), target).stagesReads();
    return stages ? tiledReadOf(op) : memref::LoadOp();
  }
  /// Whether a batch's sequences read the same tiles of it.
  bool sequencesShareReads() {
    memref::LoadOp read = stagedRead();
    return read && !op.isRagged() && readsSameForAll(read);
  }
  /// Loads the tile's queries, allocates buffers, and makes what the loop over
  /// keys begins with.
  QueryTile beginTile(KeyTiles tiles);
  void beginSums(QueryTile &tile);
  /// The iterations from `first` to `last`, from a state on. `mayBeCut`: of
  /// tiles that the end of the sequence may cut.
  scf::ForOp sumTiles(const QueryTile &tile, Value first, Value last,
                      ValueRange state, bool mayBeCut);
  /// One of them, in `loop`.
  void addTile(const QueryTile &tile, scf::ForOp loop, bool mayBeCut);
  /// The scores of one.
  Value scoresOf(const QueryTile &tile, scf::ForOp loop,
                 const TileTokens &tokens, bool mayBeCut);
  SmallVector<Value> sumAllTiles(const QueryTile &tile);
  /// Divides and stores what has been summed up.
  void finishTile(const QueryTile &tile, ArrayRef<Value> sums);
  TileType tileType(int64_t cols, Type type) {
    return TileType::get(b.getContext(), schedule.getBM(), cols, type,
                         group > 1 ? group : 0);
  }
  /// The sum of two accumulators.
  Value addUp(Value one, Value other);
  /// `count` tiles of keys in parts of the schedule's `sum_keys`, whose sums
  /// are added up. `init`: the accumulator, the maxima and the sums of weights
  /// to begin with, and, where accumulators have a part of the columns each,
  /// the others; `sumTiles` makes the loop over the tiles of a part, from
  /// such a state on. Returns the loop over the parts.
  scf::ForOp
  sumInParts(Value count, ValueRange init,
             function_ref<scf::ForOp(Value, Value, ValueRange)> sumTiles);

  ImplicitLocOpBuilder &b;
  AttentionOp op;
  const TargetInfo &target;
  const IRMapping &args;
  ScheduleAttr schedule;
  Type element;
  /// The type of the elements of Q and K in products.
  Type products;
  /// Those of P and V.
  Type weights, values;
  MaskAttr mask;
  /// The head size of Q and K, padded to whole LDS blocks; parts of the columns
  /// of V and O, of which a block has one, and the columns of that, padded.
  int64_t depth, parts, valueDepth;

  // Values of the kernel; `clusterRow` is the first row of all tiles that a
  // cluster's blocks take.
  // Where rows are those of `group` heads, `row` and `clusterRow` count them
  // all and `head` is the first of them; `query` is the row's place among
  // queries.
  Value batch, head, kvHead, row, clusterRow, queries, firstRow, keys, keyLo;
  /// The number of the block's part of the columns of V and O, and the first of
  /// them; null where there is one part.
  Value part, partColumn;
  Value query;
  int64_t group = 1;
  /// Constants.
  Value c0, c1;
};

} // namespace

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
                                Value key, ArrayRef<ScaledColumns> groups) {
  KVBufferAttr params = buffer.getType().getParams();
  bool strips = std::holds_alternative<Strips>(schedule.getKeys());
  int64_t blocks = params.getFullKv() ? 1 : params.getNumRepeats();
  int64_t cols = params.getSmemCols();
  auto type =
      fragment(schedule.getBM(), schedule.getBN(), b.getF32Type(), Role::Acc);
  // The group's product so far; the scores of those before it.
  Value product = fill(type, 0.0f), scores;
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
      Value q = queries(part.first, part.cols);
      Value k = FragmentLoadOp::create(
          b, fragment(params.getBN(), part.cols, products, Role::B), staged, 0,
          part.first - first, contracts(b, Dimension::Cols));
      product = MmaOp::create(b, q, k, product, /*transpose_b=*/true,
                              /*column=*/0);
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

Value TileProgram::cacheTile(Value cache, Value start, int64_t rows,
                             Value column) {
  auto type = cast<CacheType>(cache.getType());
  auto tile = TileType::get(b.getContext(), rows, type.getTileCols(),
                            type.getElementType(), smallPageOf(op, rows));
  return CacheTileOp::create(b, tile, cache, batch, kvHead, start, keyLo, keys,
                             /*pred=*/Value(), column);
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
      b.getF32FloatAttr(softmaxScaleOf(op)), /*masked=*/b.getUnitAttr(),
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

TileProgram::KeyTiles TileProgram::tilesOfRange() {
  int64_t BM = schedule.getBM(), BN = schedule.getBN();
  auto range = KeyRangeOp::create(b, group > 1 ? query : clusterRow, queries,
                                  keys, BM, mask, group);
  // Groups that pass over keys of their own would have parts of their own, and
  // take other numbers of turns.
  bool bounded = boundsKeys(op, group);
  range.setDescending(mask.boundsRight() && !schedule.getSumKeys() &&
                      !bounded && group == 1);
  keyLo = range.getLo();
  Value lo = keyLo;
  Value hi = range.getHi(), fullHi = range.getFullHi();
  Value fullLo = mask.boundsLeft() ? range.getFullLo() : Value();
  bool apart = false;
  if (bounded) {
    ScoreTile at{batch, head, query, Value(), queries, keys};
    VisibleBounds bounds = visibleBounds(b, op, args, at, BM / group, BN);
    hi = arith::MinSIOp::create(b, hi, bounds.hi);
    if (bounds.lo) {
      lo = arith::MaxSIOp::create(b, lo, bounds.lo);
      // Keys of others, which the function hides, come with the tile, whose
      // boxes are whole. What nobody sees may be anything, and rows of pages
      // that nobody sees may be gone.
      if (mask.boundsLeft() || op.getK().getType().getPageSize() ||
          op.getV().getType().getPageSize() || !startsAreOfRows(op))
        keyLo = lo;
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
  return {count,          edges,
          keyOf,
          /*isWhole=*/{},
          /*isCut=*/{},
          /*partly=*/{},  /*wholeAfterFirst=*/!fullLo};
}

TileProgram::KeyTiles TileProgram::tilesOfLists() {
  BlockLists lists(b, op, args, {batch, head, row, Value(), queries, keys},
                   schedule.getBN());
  // No window hides the first keys of a tile that is visited.
  keyLo = constant(0);
  return {lists.getCount(),
          EdgeTiles(lists.getMasked()),
          [=, this](Value i) { return lists.keyOf(b, i); },
          [=, this](Value i) { return lists.isWhole(b, i); },
          lists.getIsCut(),
          lists.getPartly(),
          /*wholeAfterFirst=*/false};
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
  Value qbuf = qFromDram ? Value() : alloc(Operand::Q, BM, 1);
  tile.kbuf = alloc(Operand::K, BN, schedule.getStages());
  // A strip of V is BK keys.
  tile.vbuf = alloc(Operand::V,
                    std::holds_alternative<Strips>(schedule.getValues())
                        ? schedule.getBK()
                        : BN,
                    schedule.getStages());
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
    tile.qs =
        LdsStageOp::create(b, ValueRange{qtoken}, IntegerAttr()).getStaged()[0];
  }
  FragmentType qType = fragment(BM, depth, element, Role::A);
  if (qFromDram)
    tile.qf = TileFragmentOp::create(b, qType, qtile);
  else if (schedule.getQInRegs())
    tile.qf = FragmentLoadOp::create(b, qType, tile.qs, 0, 0);
  beginSums(tile);
  return tile;
}

void TileProgram::beginSums(QueryTile &tile) {
  int64_t BM = schedule.getBM(), BN = schedule.getBN();
  // Where registers have no room for the product of a tile beside all of the
  // accumulators, these are parts of a few columns each.
  tile.apart = addsTilesApart(op, target);
  tile.accCols = limitsOf(op, schedule.getStructure(), target)
                     .columnsApart(operandsOf(op));
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
  tile.sumsByUnit = tile.apart && tile.accParts == 1 && team &&
                    team->widens.warps && tile.gain != 1 && !op.getLse() &&
                    !op.getSink() && !schedule.getSumKeys();
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
    if (!tile.qf)
      return FragmentLoadOp::create(b, type, tile.qs, 0, col);
    return cols == depth ? tile.qf
                         : FragmentSliceOp::create(b, type, tile.qf, 0, col);
  };
  Value s = multiplyKeys(queriesAt, k, tile.kbuf, tokens.first,
                         scales.groups(k, depth, tile.scoreType, tokens));
  if (tile.kFactor)
    s = RescaleOp::create(b, s, tile.kFactor);
  s = scales.multiplyByToken(scales.multiply(s, tile.kScale),
                             scales.ofTokens(k, tile.scoreType, tokens));
  ScoreTile at{batch, head, query, tokens.first, queries, keys, group};
  at.loop = loop;
  at.bounded = boundsKeys(op, group);
  at.mayBeCut = mayBeCut;
  if (tile.read) {
    at.read = tile.read->fragmentAt(b, tokens.first);
    at.readBy = tile.readBy;
  }
  if (tile.tiles.isWhole && mayBeCut)
    at.wholly = tile.tiles.isWhole(i);
  return shapeScores(b, op, args, s, at,
                     mayBeCut ? tile.tiles.edges : EdgeTiles(tile.tiles.partly),
                     i);
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
      b.getF32FloatAttr(softmaxScaleOf(op)),
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
        /*excess=*/Value(), sink, b.getF32FloatAttr(softmaxScaleOf(op)),
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
