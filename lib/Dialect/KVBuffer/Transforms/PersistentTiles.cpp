//===- PersistentTiles.cpp - Order tiles and loop over them -----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ChooseTarget.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/SizeExpressions.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Remarks.h"

namespace kvbuf {
#define GEN_PASS_DEF_PERSISTENTTILES
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-persistent-tiles"

namespace {

/// What the order of tiles is computed from.
struct TileGrid {
  /// Tiles of each head and heads of all sequences.
  Value rowTiles, heads;
  /// Heads of a sequence.
  int64_t headsOfSequence;
  /// Heads of a full group, and of all full groups; null where each head is a
  /// group.
  Value group, grouped;
};

/// Where a tile of queries is: what the block's ids say in a kernel of one tile
/// a block.
struct TileIndex {
  Value x, head, batch;
};

Value constantOf(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantIndexOp::create(b, value);
}

/// Sizes the groups: as many heads as `groupBytes` hold, `keyBytes` a key, in
/// multiples of those that share keys; what is left in the end, and
/// no less than `lastTiles` of one sequence, is the last group.
void groupHeads(ImplicitLocOpBuilder &b, TileGrid &grid, Value keys,
                int64_t keyBytes, int64_t groupBytes, int64_t sharing,
                int64_t lastTiles, Value tilesOfSequence) {
  auto c = [&](int64_t value) { return constantOf(b, value); };
  Value one = c(1);
  Value bytes = b.createOrFold<arith::MulIOp>(
      b.createOrFold<arith::MaxSIOp>(keys, one), c(keyBytes));
  Value fit = b.createOrFold<arith::DivUIOp>(c(groupBytes), bytes);
  grid.group = b.createOrFold<arith::MulIOp>(
      b.createOrFold<arith::MaxSIOp>(fit, one), c(sharing));
  Value last = b.createOrFold<arith::DivUIOp>(
      c(lastTiles), b.createOrFold<arith::MaxSIOp>(tilesOfSequence, one));
  Value before = b.createOrFold<arith::MaxSIOp>(
      b.createOrFold<arith::SubIOp>(grid.heads,
                                    b.createOrFold<arith::MaxSIOp>(last, one)),
      c(0));
  grid.grouped = b.createOrFold<arith::MulIOp>(
      b.createOrFold<arith::DivUIOp>(before, grid.group), grid.group);
}

/// The tile of number t. Groups of heads follow each other; in a group of G
/// heads from head h on, number i is tile i / G of head h + i % G. So the tiles
/// that run together read few heads' keys, and a kernel whose tiles shrink
/// with x starts with the longest of each group. Without groups, head by head.
TileIndex orderTiles(ImplicitLocOpBuilder &b, Value t, const TileGrid &grid) {
  TileIndex index;
  Value head;
  if (!grid.group) {
    head = b.createOrFold<arith::DivUIOp>(t, grid.rowTiles);
    index.x = b.createOrFold<arith::RemUIOp>(t, grid.rowTiles);
  } else {
    Value groupedTiles = arith::MulIOp::create(b, grid.grouped, grid.rowTiles);
    Value inGroups =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ult, t, groupedTiles);
    Value size = arith::SelectOp::create(
        b, inGroups, grid.group,
        arith::SubIOp::create(b, grid.heads, grid.grouped));
    Value first =
        arith::SelectOp::create(b, inGroups, constantOf(b, 0), groupedTiles);
    Value number = arith::SubIOp::create(b, t, first);
    Value tiles = arith::MulIOp::create(b, size, grid.rowTiles);
    Value group = arith::DivUIOp::create(b, number, tiles);
    Value inside = arith::RemUIOp::create(b, number, tiles);
    Value firstHead = arith::SelectOp::create(
        b, inGroups, arith::MulIOp::create(b, group, size).getResult(),
        grid.grouped);
    index.x = arith::DivUIOp::create(b, inside, size);
    head = arith::AddIOp::create(
        b, firstHead, arith::RemUIOp::create(b, inside, size).getResult());
  }
  Value n = constantOf(b, grid.headsOfSequence);
  index.batch = b.createOrFold<arith::DivUIOp>(head, n);
  index.head = b.createOrFold<arith::RemUIOp>(head, n);
  return index;
}

struct PersistentTilesPass
    : kvbuf::impl::PersistentTilesBase<PersistentTilesPass> {
  using Base::Base;

  /// The kernel's schedule, and the heads that numbers are of, each of which is
  /// `clusterHeads` of the grid's.
  ScheduleAttr schedule;
  int64_t heads;
  /// The chip, or where the module names none, one of which nothing is known
  /// but what holds of all.
  TargetInfo target;
  /// Whether tiles differ in length: a mask hides keys on the right.
  bool unequal;
  /// The arguments that are caches.
  SmallVector<TypedValue<CacheType>> caches;
  /// Whether x numbers the tiles of all sequences: the program finds its
  /// sequence by itself.
  bool findsTiles = false;
  /// The ops by which it does.
  SmallVector<FindTileOp> finds;
  /// Blocks that take a number together (kvbuf-pair-tiles): on neighbouring
  /// tiles of queries, or on heads that share a head of the cache.
  int64_t clusterTiles = 1, clusterHeads = 1;
  int64_t clusterBlocks() const { return clusterTiles * clusterHeads; }
  /// Rows that tiles are counted of, those of a sequence or of all, and
  /// sequences: expressions of the manifest.
  Attribute rowsOfGrid, sequencesOfGrid;

  /// Reads from the program what differs in length and what is shared.
  void readProgram() {
    gpu::GPUFuncOp kernel = getOperation();
    unequal = false;
    kernel.walk([&](KeyRangeOp op) { unequal |= op.getMask().boundsRight(); });
    finds.clear();
    kernel.walk([&](FindTileOp op) { finds.push_back(op); });
    findsTiles = !finds.empty();
    caches.clear();
    for (Value argument : kernel.getArguments())
      if (auto cache = dyn_cast<TypedValue<CacheType>>(argument))
        caches.push_back(cache);
    auto size = kernel.getKnownClusterSize();
    clusterTiles = size ? (*size)[0] : 1;
    clusterHeads = size ? (*size)[1] : 1;
  }

  /// Bytes of a token in all caches, in one of their heads.
  int64_t tokenBytes() const {
    int64_t bits = 0;
    for (TypedValue<CacheType> cache : caches)
      bits += cache.getType().getHeadSize() *
              cache.getType().getElementType().getIntOrFloatBitWidth();
    return llvm::divideCeil(bits, 8);
  }

  /// Heads of the tiles' numbers that share one of the caches' heads.
  int64_t sharingHeads() const {
    int64_t most = 1;
    for (TypedValue<CacheType> cache : caches)
      most = std::max(most, cache.getType().getHeads());
    return std::max<int64_t>(1, heads / most);
  }

  /// Reads `rowsOfGrid`, `sequencesOfGrid` and `heads` from the grid of the
  /// program of one tile a block; whether it is one.
  bool readGrid() {
    gpu::GPUFuncOp kernel = getOperation();
    auto listOf = [](Attribute expression, StringRef kind) -> ArrayAttr {
      auto dictionary = dyn_cast<DictionaryAttr>(expression);
      auto list = dictionary && dictionary.size() == 1
                      ? dictionary.getAs<ArrayAttr>(kind)
                      : ArrayAttr();
      return list && list.size() == 2 ? list : ArrayAttr();
    };
    auto grid = kernel->getAttrOfType<ArrayAttr>(KVBufferDialect::kGridAttr);
    rowsOfGrid = sequencesOfGrid = nullptr;
    if (!grid || grid.size() != 3)
      return false;
    auto number = dyn_cast<IntegerAttr>(grid[1]);
    if (!number || number.getInt() < 1 || number.getInt() % clusterHeads != 0)
      return false;
    heads = number.getInt() / clusterHeads;
    Attribute tiles = grid[0];
    sequencesOfGrid = grid[2];
    if (ArrayAttr cut = findsTiles ? listOf(tiles, "sum") : ArrayAttr()) {
      tiles = cut[0];
      sequencesOfGrid = cut[1];
    }
    if (ArrayAttr quotient = listOf(tiles, "ceildiv"))
      if (quotient[1] == Builder(kernel).getI64IntegerAttr(schedule.getBM()))
        rowsOfGrid = quotient[0];
    return bool(rowsOfGrid);
  }

  /// Says what the grid has to be.
  void refuseGrid() {
    std::string tiles =
        "{ceildiv = [rows, " + std::to_string(schedule.getBM()) + "]}";
    InFlightDiagnostic diag =
        getOperation().emitError()
        << "expected '" << KVBufferDialect::kGridAttr << "' = ["
        << (findsTiles ? "{sum = [" + tiles + ", sequences]}, heads, 1"
                       : tiles + ", heads, sequences")
        << "], the grid of one tile of BM rows a block, where heads is a "
           "number";
    if (clusterHeads > 1)
      diag << " that clusters of " << clusterHeads << " divide";
  }

  /// Replaces ids of blocks in `ops` by the index of a tile.
  static void replaceIds(ArrayRef<Operation *> ids, const TileIndex &index,
                         Value rowTiles) {
    for (Operation *op : ids) {
      Value value = rowTiles;
      if (auto id = dyn_cast<gpu::BlockIdOp>(op))
        value = id.getDimension() == gpu::Dimension::x   ? index.x
                : id.getDimension() == gpu::Dimension::y ? index.head
                                                         : index.batch;
      op->replaceAllUsesWith(ValueRange{value});
      op->erase();
    }
  }

  /// The program's uses of where its block is.
  SmallVector<Operation *> findIds() {
    SmallVector<Operation *> ids;
    getOperation().walk([&](Operation *op) {
      auto dim = dyn_cast<gpu::GridDimOp>(op);
      if (isa<gpu::BlockIdOp>(op) ||
          (dim && dim.getDimension() == gpu::Dimension::x))
        ids.push_back(op);
    });
    return ids;
  }

  /// Rows of what has a number: a tile, or the tiles of a cluster's blocks.
  int64_t tileRows() const { return schedule.getBM() * clusterTiles; }

  Value materialize(ImplicitLocOpBuilder &b, Attribute size) {
    return emitSizeExpression(b, b.getLoc(), size, [&](StringAttr name) {
      return LaunchSizeOp::create(b, name).getResult();
    });
  }

  /// Keys of a sequence, about: the most there is room for, or in ragged caches
  /// as many as queries.
  Value estimateKeys(ImplicitLocOpBuilder &b, Value rowTiles) {
    const auto *sized = llvm::find_if(caches, [](TypedValue<CacheType> cache) {
      return cache.getType().getKind() != CacheKind::Ragged;
    });
    if (sized != caches.end())
      return materialize(b, mostTokensOf(sized->getType(), *sized));
    return arith::MulIOp::create(b, rowTiles, constantOf(b, tileRows()));
  }

  /// Groups heads whose keys and values stay in L2 together; `tiles` are those
  /// of the longest sequence.
  void group(ImplicitLocOpBuilder &b, TileGrid &grid, Value tiles,
             int64_t lastTiles) {
    if (caches.empty()) {
      remark::missed(getOperation().getLoc(),
                     remark::RemarkOpts::name("tiles").category(DEBUG_TYPE))
          << "heads follow each other: no argument is a cache, so that nothing "
             "says what heads share";
      return;
    }
    groupHeads(b, grid, estimateKeys(b, tiles), tokenBytes(),
               target.sharedReadBytes, sharingHeads(), lastTiles, tiles);
  }

  /// Tiles of the longest sequence. Of a ragged batch the caller's word is good
  /// enough, as it decides over the order alone: of the size that is all rows
  /// of the grid where nobody says it. Without such a size, those of all rows.
  Value tilesOfSequence(ImplicitLocOpBuilder &b, Value rowTiles) {
    auto sizes = getOperation()->getAttrOfType<DictionaryAttr>(kSizesAttr);
    if (!findsTiles || !sizes)
      return rowTiles;
    const NamedAttribute *longest =
        llvm::find_if(sizes, [&](NamedAttribute size) {
          return size.getValue() == rowsOfGrid;
        });
    if (longest == sizes.end())
      return rowTiles;
    return arith::CeilDivUIOp::create(
        b, LaunchSizeOp::create(b, longest->getName()),
        constantOf(b, tileRows()));
  }

  /// One tile a block.
  void orderGrid() {
    if (!unequal)
      return;
    SmallVector<Operation *> ids = findIds();
    ImplicitLocOpBuilder b(getOperation().getLoc(), getOperation());
    b.setInsertionPointToStart(&getOperation().getBody().front());
    auto id = [&](gpu::Dimension d) -> Value {
      return gpu::BlockIdOp::create(b, d);
    };
    TileGrid grid;
    grid.headsOfSequence = heads;
    grid.rowTiles = gpu::GridDimOp::create(b, gpu::Dimension::x);
    Value batches = gpu::GridDimOp::create(b, gpu::Dimension::z);
    grid.heads = arith::MulIOp::create(b, batches, constantOf(b, heads));
    Value tiles = tilesOfSequence(b, grid.rowTiles);
    group(b, grid, tiles, target.lastTiles);
    Value row = arith::AddIOp::create(
        b,
        arith::MulIOp::create(b, id(gpu::Dimension::z), constantOf(b, heads))
            .getResult(),
        id(gpu::Dimension::y));
    Value linear = arith::AddIOp::create(
        b, arith::MulIOp::create(b, row, grid.rowTiles).getResult(),
        id(gpu::Dimension::x));
    replaceIds(ids, orderTiles(b, linear, grid), grid.rowTiles);
  }

  /// How many blocks to launch: one for each multiprocessor, which a block of
  /// producers and consumers fills, and no more than there are tiles; of
  /// clusters likewise.
  ArrayAttr launchGrid(Builder &b, Attribute rows, Attribute batch) {
    auto expr = [&](StringRef name, ArrayRef<Attribute> operands) -> Attribute {
      return b.getDictionaryAttr(
          b.getNamedAttr(name, b.getArrayAttr(operands)));
    };
    Attribute one = b.getI64IntegerAttr(1);
    Attribute rowTiles =
        expr("ceildiv", {rows, b.getI64IntegerAttr(tileRows())});
    Attribute tiles =
        findsTiles
            ? expr("product",
                   {expr("sum", {rowTiles, batch}), b.getI64IntegerAttr(heads)})
            : expr("product", {rowTiles, b.getI64IntegerAttr(heads), batch});
    Attribute resident = expr("product", {b.getStringAttr("sms"), one});
    int64_t cluster = clusterBlocks();
    if (cluster == 1)
      return b.getArrayAttr({expr("min", {resident, tiles}), one, one});
    Attribute size = b.getI64IntegerAttr(cluster);
    // As many whole clusters as there are multiprocessors for.
    Attribute spare =
        expr("sum", {b.getStringAttr("sms"), b.getI64IntegerAttr(1 - cluster)});
    resident = expr("ceildiv", {spare, size});
    return b.getArrayAttr(
        {expr("product", {expr("min", {resident, tiles}), size}), one, one});
  }

  /// Whether a value is the same for all tiles, and a copy of what computes it
  /// may stand before their loop.
  static bool isOfKernel(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op)
      return isa<gpu::GPUFuncOp>(value.getParentRegion()->getParentOp());
    return isMemoryEffectFree(op) && !op->getNumRegions() &&
           !isa<gpu::BlockIdOp>(op) &&
           llvm::all_of(op->getOperands(), isOfKernel);
  }
  static Value copy(ImplicitLocOpBuilder &b, Value value, IRMapping &map) {
    Operation *op = value.getDefiningOp();
    if (!op || map.contains(value))
      return map.lookupOrDefault(value);
    for (Value operand : op->getOperands())
      (void)copy(b, operand, map);
    b.clone(*op, map);
    return map.lookup(value);
  }

  /// Whether one numbering serves all that looks for tiles.
  bool canNumberTiles() {
    return llvm::all_of(finds, [&](FindTileOp op) {
      FindTileOp first = finds.front();
      return !op.getNumbers() && op.getOffsets() == first.getOffsets() &&
             op.getBM() == first.getBM() && op.getOver() == first.getOver() &&
             isOfKernel(op.getOffsets()) && isOfKernel(op.getSequences()) &&
             isOfKernel(op.getRows());
    });
  }

  /// Numbers the tiles of a ragged batch in each of `blocks` blocks, and lets
  /// the program find its tile by these numbers. Returns how many there are.
  Value numberTiles(ImplicitLocOpBuilder &b, Attribute blocks) {
    gpu::GPUFuncOp kernel = getOperation();
    constexpr int64_t any = ShapedType::kDynamic;
    NamedAttrList attrs;
    attrs.append(KVBufferDialect::kNameAttr, b.getStringAttr("tile_numbers"));
    attrs.append(KVBufferDialect::kAccessAttr, b.getStringAttr("workspace"));
    attrs.append(KVBufferDialect::kShapeAttr,
                 b.getArrayAttr({blocks, sequencesOfGrid}));
    unsigned number = kernel.getNumArguments();
    (void)kernel.insertArgument(
        number, MemRefType::get({any, any}, b.getI32Type()),
        attrs.getDictionary(b.getContext()), kernel.getLoc());
    Value numbers = kernel.getArgument(number);
    Value block = gpu::BlockIdOp::create(b, gpu::Dimension::x);
    FindTileOp find = finds.front();
    IRMapping map;
    Value offsets = copy(b, find.getOffsets(), map);
    Value sequences = copy(b, find.getSequences(), map);
    Value rows = copy(b, find.getRows(), map);
    for (FindTileOp op : finds) {
      op.getNumbersMutable().assign(numbers);
      op.getBlockMutable().assign(block);
    }
    return NumberTilesOp::create(b, offsets, sequences, rows, numbers, block,
                                 find.getBM(), find.getOver());
  }

  /// Lets a cluster's blocks take the tiles of a number in turn. Under a mask
  /// the last tile has keys that no other sees: who has it is late, and would
  /// be for good, where the others wait for it, if it had the last one each
  /// time. In `tile` lie about as many rounds of all clusters as this one has
  /// taken numbers.
  void rotateRanks(Block &body, Value tile) {
    SmallVector<gpu::ClusterBlockIdOp> ranks;
    body.walk([&](gpu::ClusterBlockIdOp id) {
      if (id.getDimension() == gpu::Dimension::x)
        ranks.push_back(id);
    });
    for (gpu::ClusterBlockIdOp rank : ranks) {
      ImplicitLocOpBuilder b(rank.getLoc(), rank->getNextNode());
      Value clusters = gpu::ClusterDimOp::create(b, gpu::Dimension::x);
      Value round = arith::DivUIOp::create(b, tile, clusters);
      Value sum = arith::AddIOp::create(b, rank.getResult(), round);
      Value turned =
          arith::RemUIOp::create(b, sum, constantOf(b, clusterTiles));
      rank.getResult().replaceAllUsesExcept(turned, sum.getDefiningOp());
    }
  }

  void loopOverTiles() {
    gpu::GPUFuncOp kernel = getOperation();
    SmallVector<Operation *> ids = findIds();
    Block &body = kernel.getBody().front();
    ImplicitLocOpBuilder b(kernel.getLoc(), kernel);

    // The program of one tile, to become the loop's body.
    Operation *end = body.getTerminator();
    Block *program = body.splitBlock(body.begin());
    end->moveBefore(&body, body.end());
    b.setInsertionPoint(end);

    Attribute rows = rowsOfGrid, batch = sequencesOfGrid;
    ArrayAttr blocks = launchGrid(b, rows, batch);
    kernel->setAttr(KVBufferDialect::kGridAttr, blocks);
    TileGrid grid;
    grid.headsOfSequence = heads;
    Value sequences = constantOf(b, 1);
    if (findsTiles && canNumberTiles()) {
      grid.rowTiles = numberTiles(b, blocks[0]);
    } else {
      grid.rowTiles = b.createOrFold<arith::CeilDivUIOp>(
          materialize(b, rows), constantOf(b, tileRows()));
      sequences = materialize(b, batch);
      if (findsTiles)
        grid.rowTiles = arith::AddIOp::create(
            b, grid.rowTiles, std::exchange(sequences, constantOf(b, 1)));
    }
    grid.heads = b.createOrFold<arith::MulIOp>(sequences, constantOf(b, heads));
    if (unequal) {
      Value tiles = tilesOfSequence(b, grid.rowTiles);
      group(b, grid, tiles, target.lastTiles / clusterBlocks());
    }
    Value total = b.createOrFold<arith::MulIOp>(grid.rowTiles, grid.heads);

    auto fill = [&](Block *target, Value tile) {
      b.setInsertionPointToStart(target);
      TileIndex index = orderTiles(b, tile, grid);
      target->getOperations().splice(b.getInsertionPoint(),
                                     program->getOperations());
      replaceIds(ids, index, grid.rowTiles);
      if (unequal && clusterTiles > 1)
        rotateRanks(*target, tile);
    };
    if (schedule.getTiles() == TileOrder::Static) {
      // The blocks of a cluster take the same numbers.
      bool clusters = clusterBlocks() > 1;
      auto x = gpu::Dimension::x;
      Value first = clusters ? gpu::ClusterIdOp::create(b, x).getResult()
                             : gpu::BlockIdOp::create(b, x).getResult();
      Value blocks = clusters ? gpu::ClusterDimOp::create(b, x).getResult()
                              : gpu::GridDimOp::create(b, x).getResult();
      auto loop = scf::ForOp::create(b, first, total, blocks);
      fill(loop.getBody(), loop.getInductionVar());
    } else {
      // The next number is asked for after the tile's last load: who takes it
      // earlier holds it while others have nothing left, and the loads in
      // flight hide how late a counter answers that all blocks share. Tiles
      // that are joined need it while the tile before is computed.
      Type type = b.getIndexType();
      Value first = NextTileOp::create(b, type, total);
      auto loop = scf::WhileOp::create(b, TypeRange{type}, ValueRange{first});
      Block *before =
          b.createBlock(&loop.getBefore(), {}, {type}, {kernel.getLoc()});
      Value tile = before->getArgument(0);
      Value more =
          arith::CmpIOp::create(b, arith::CmpIPredicate::slt, tile, total);
      scf::ConditionOp::create(b, more, tile);
      Block *after =
          b.createBlock(&loop.getAfter(), {}, {type}, {kernel.getLoc()});
      Value next = NextTileOp::create(b, type, total);
      scf::YieldOp::create(b, next);
      fill(after, after->getArgument(0));
      if (schedule.getJoinTiles())
        next.getDefiningOp()->moveBefore(after, after->begin());
    }
    program->erase();
    // The grid has one dimension, and clusters are neighbours in it.
    if (clusterHeads > 1) {
      kernel.setKnownClusterSizeAttr(
          b.getDenseI32ArrayAttr({int32_t(clusterBlocks()), 1, 1}));
      kernel.walk([](gpu::ClusterBlockIdOp id) {
        if (id.getDimension() == gpu::Dimension::y)
          id.setDimension(gpu::Dimension::x);
      });
    }
    // Buffers live as long as the block.
    SmallVector<AllocOp> allocs;
    kernel.walk([&](AllocOp op) { allocs.push_back(op); });
    for (AllocOp op : llvm::reverse(allocs))
      op->moveBefore(&body, body.begin());
    remark::passed(kernel.getLoc(),
                   remark::RemarkOpts::name("tiles").category(DEBUG_TYPE))
        << "blocks take tiles "
        << (schedule.getTiles() == TileOrder::Static ? "in turn"
                                                     : "from a counter");
  }

  void runOnOperation() override {
    schedule = getOperation()->getAttrOfType<ScheduleAttr>(
        KVBufferDialect::kScheduleAttr);
    // Kernels without producers keep the order in which they were measured.
    if (!schedule || !schedule.getProducers())
      return;
    // The order of tiles of a program of the tile stage is its own.
    if (schedule.getTiles() == TileOrder::Grid &&
        !getOperation()->hasAttr(KVBufferDialect::kProblemAttr))
      return;
    target = targetOf(getOperation()).value_or(TargetInfo());
    readProgram();
    bool known = readGrid();
    if (schedule.getTiles() == TileOrder::Grid) {
      // Another grid's ids mean something else.
      if (known)
        orderGrid();
      return;
    }
    if (!known) {
      refuseGrid();
      return signalPassFailure();
    }
    loopOverTiles();
  }
};
} // namespace
