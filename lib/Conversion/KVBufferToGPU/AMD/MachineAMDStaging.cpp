//===- MachineAMDStaging.cpp - Tiles through registers on CDNA --*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockSource.h"
#include "KVBufferToGPU/Staging.h"
#include "MachineAMD.h"
#include "RowSource.h"
#include "mlir/Dialect/AMDGPU/IR/AMDGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace kvbuf;

/// The type of elements as LLVM has them: no 8-bit floats.
static Type storedElement(Type element) {
  return element.getIntOrFloatBitWidth() == 8
             ? Type(IntegerType::get(element.getContext(), 8))
             : element;
}

VectorType AMDMachine::vectorInRegisters(KVBufferAttr params,
                                         int64_t width) const {
  Type narrow = narrowElements.lookup(params);
  if (!narrow)
    return VectorType::get({width}, storedElement(params.getElementType()));
  // LLVM takes bytes that a loop carries apart at its end, for which they have
  // to be there: words it keeps, and halves of one.
  int64_t bits = width * narrow.getIntOrFloatBitWidth();
  MLIRContext *context = narrow.getContext();
  if (bits < 32)
    return VectorType::get({1}, IntegerType::get(context, bits));
  return VectorType::get({bits / 32}, IntegerType::get(context, 32));
}

/// A row past the end of every tile, and so are some that follow it.
static constexpr int64_t kNoRow = INT32_MAX / 2;

StagingPlan::StagingPlan(const TargetInfo &target, KVBufferAttr params,
                         int64_t threads, unsigned halfBit, unsigned loadedBits)
    : transposed(isTurnedInLds(target, params)), halfBit(halfBit),
      threads(threads) {
  int64_t elements = params.getSmemStageSize();
  int64_t perVector = params.getSimdWidth();
  if (transposed) {
    // 16 bytes of each of four keys, or 8 where that keeps more threads busy;
    // 4 (2 of what is widened) where all have one piece then, and half of them
    // would have twice as much, under a branch.
    width = elements / (4 * perVector) >= threads ? perVector : perVector / 2;
    if (elements / 4 == threads * (width / 2) && width / 2 * loadedBits >= 16)
      width /= 2;
    pieces = elements / (4 * width);
  } else {
    width = perVector;
    pieces = elements / width;
    partBytes = params.getSwizzleOfBlocks().unit;
  }
  steps = llvm::divideCeil(pieces, threads);
}

/// Neighbouring lanes take so many neighbouring pieces of columns of `perKeys`,
/// a power of two up to 8; the next ones those of other keys.
static int64_t piecesTogether(int64_t perKeys) {
  return std::min<int64_t>(8, perKeys & -perKeys);
}

/// Whether all keys of some columns are dealt before other columns: where
/// pieces of columns are no power of two, lanes that are served together would
/// have columns that no bits of their numbers choose.
static bool dealsKeysFirst(int64_t perKeys) {
  return !llvm::isPowerOf2_64(perKeys);
}

LaneAccess StagingPlan::stores(KVBufferAttr params) const {
  // As `pieceAt` deals pieces.
  LaneAccess access;
  access.width = 4 * params.getElementType().getIntOrFloatBitWidth() / 8;
  int64_t perKeys = params.getSmemCols() / width, col = width;
  auto addCols = [&](int64_t count) {
    for (; count > 1; count /= 2, col *= 2)
      access.lanes.push_back({0, col});
  };
  auto addKeys = [&] {
    for (unsigned bit = 0; int64_t(4) << bit < params.getBN(); ++bit)
      if (bit != halfBit)
        access.lanes.push_back({4 << bit, 0});
  };
  int64_t together = piecesTogether(perKeys);
  addCols(together);
  access.lanes.push_back({4 << halfBit, 0});
  if (dealsKeysFirst(perKeys))
    addKeys();
  // Of columns that come last, a wave has whole powers of two.
  addCols(llvm::bit_floor(uint64_t(perKeys / together)));
  if (!dealsKeysFirst(perKeys))
    addKeys();
  return access;
}

int64_t StagingPlan::rowsOfWave(KVBufferAttr params, int64_t waveSize) const {
  unsigned laneBits = llvm::Log2_64(waveSize);
  int64_t rows = 0;
  if (transposed) {
    LaneAccess access = stores(params);
    if (access.lanes.size() < laneBits)
      return 0;
    rows = 3;
    for (unsigned bit = 0; bit < laneBits; ++bit)
      rows |= access.lanes[bit][0];
  } else {
    SharedTile layout = sharedTile(params);
    int64_t pieceBytes = width * layout.elementBytes;
    if (layout.blockBytes() / pieceBytes % waveSize)
      return 0;
    for (int64_t image :
         BlockSource(layout).rows(llvm::Log2_64(pieceBytes), laneBits))
      rows |= image;
  }
  return llvm::PowerOf2Ceil(rows + 1);
}

void AMDMachine::tokenTypes(Lanes &lower, KVBufferAttr params,
                            SmallVectorImpl<Type> &types) {
  if (!goesThroughRegisters(lower.target, params))
    return;
  StagingPlan plan = stagingPlan(lower, params);
  types.append(plan.steps * plan.vectors(),
               vectorInRegisters(params, plan.width));
}

/// Key (or row) and column of a thread's piece at step `step`, in elements, and
/// its number. `halves`: what the places of a vector's halves are XORed with,
/// bytes; null where halves stand in their order.
namespace {
struct Piece {
  Value row, col, number, halves;
};
} // namespace

static Piece pieceAt(Lanes &lower, KVBufferAttr params, const StagingPlan &plan,
                     Value number) {
  ImplicitLocOpBuilder &b = lower.b;
  if (plan.transposed) {
    // Neighbouring lanes take neighbouring columns. Eight of them fill the same
    // halves of all words of an LDS row; the next eight take the keys of the
    // other halves, so that sixteen lanes write to all banks.
    int64_t perKeys = params.getSmemCols() / plan.width;
    int64_t together = piecesTogether(perKeys);
    unsigned lowBits = llvm::Log2_64(together), halfBit = plan.halfBit;
    Value low = bitsOf(lower, number, 0, together);
    Value half = bitsOf(lower, number, lowBits, 2);
    Value rest = arith::ShRUIOp::create(b, number, lower.i32(lowBits + 1));
    Value keys, others;
    if (dealsKeysFirst(perKeys)) {
      int64_t count = params.getBN() / 8;
      keys = bitsOf(lower, rest, 0, count);
      others = arith::ShRUIOp::create(b, rest, lower.i32(llvm::Log2_64(count)));
    } else {
      Value count = lower.i32(perKeys / together);
      keys = arith::DivUIOp::create(b, rest, count);
      others = arith::RemUIOp::create(b, rest, count);
    }
    Value cols = arith::AddIOp::create(
        b, arith::MulIOp::create(b, others, lower.i32(together)).getResult(),
        low);
    Value above = arith::ShRUIOp::create(b, keys, lower.i32(halfBit));
    above = arith::ShLIOp::create(b, above, lower.i32(halfBit + 1));
    keys = arith::OrIOp::create(b, above,
                                bitsOf(lower, keys, 0, int64_t(1) << halfBit));
    keys = arith::OrIOp::create(
        b, keys, arith::ShLIOp::create(b, half, lower.i32(halfBit)));
    return {arith::MulIOp::create(b, keys, lower.i32(4)),
            arith::MulIOp::create(b, cols, lower.i32(plan.width)), number,
            Value()};
  }
  SharedTile layout = sharedTile(params);
  BlockSource places(layout);
  int64_t pieceBytes = plan.width * layout.elementBytes;
  int64_t perBlock = layout.blockBytes() / pieceBytes;
  unsigned bits = llvm::Log2_64_Ceil(perBlock);
  Value inBlock, block;
  if (llvm::isPowerOf2_64(perBlock)) {
    inBlock = bitsOf(lower, number, 0, perBlock);
    block = arith::ShRUIOp::create(b, number, lower.i32(bits));
  } else {
    inBlock = arith::RemUIOp::create(b, number, lower.i32(perBlock));
    block = arith::DivUIOp::create(b, number, lower.i32(perBlock));
  }
  unsigned shift = llvm::Log2_64(pieceBytes);
  Value row = emitLinear(b, inBlock, places.rows(shift, bits));
  SmallVector<int64_t> cols = places.cols(shift, bits);
  for (int64_t &image : cols)
    image /= layout.elementBytes;
  Value col = arith::AddIOp::create(
      b, emitLinear(b, inBlock, cols),
      arith::MulIOp::create(b, block, lower.i32(layout.blockCols)));
  if (plan.partBytes == pieceBytes)
    return {row, col, number, Value()};
  // The halves of a vector change places with each other, and with those of
  // other vectors as these do.
  int64_t half = plan.partBytes / layout.elementBytes;
  Value second = arith::AndIOp::create(b, col, lower.i32(half));
  col = arith::XOrIOp::create(b, col, second);
  Value halves =
      arith::MulIOp::create(b, second, lower.i32(layout.elementBytes));
  return {row, col, number, halves};
}

/// An element's byte as the index of the element: a number of whole ones, so
/// that LLVM need not clear the bits below when it makes it a byte again.
static Value elementAt(Lanes &lower, Value byte, int64_t bytes) {
  return lower.toIndex(arith::ShRUIOp::create(
      lower.b, byte, lower.i32(llvm::Log2_64(bytes)), /*isExact=*/true));
}

/// Stores a thread's piece, whose elements stand side by side in LDS but for
/// its halves.
static void storePiece(Lanes &lower, KVBufferAttr params,
                       const StagingPlan &plan, Value lds, Value slot,
                       const Piece &piece, Value vector) {
  ImplicitLocOpBuilder &b = lower.b;
  int64_t bytes = params.getElementType().getIntOrFloatBitWidth() / 8;
  Value first = arith::AddIOp::create(
      b, slot,
      arith::MulIOp::create(b, piece.number, lower.i32(plan.width * bytes)));
  int64_t part = plan.partBytes / bytes;
  for (int64_t at = 0; at < plan.width; at += part) {
    Value byte = first, stored = vector;
    if (piece.halves) {
      byte = arith::AddIOp::create(
          b, first,
          arith::XOrIOp::create(b, piece.halves, lower.i32(at * bytes))
              .getResult());
      stored = vector::ShuffleOp::create(
          b, vector, vector,
          llvm::to_vector(llvm::seq<int64_t>(at, at + part)));
    }
    vector::StoreOp::create(b, stored, lds,
                            ValueRange{elementAt(lower, byte, bytes)},
                            /*nontemporal=*/false, llvm::Align(plan.partBytes));
  }
}

static Piece pieceOf(Lanes &lower, KVBufferAttr params, const StagingPlan &plan,
                     int64_t step) {
  ImplicitLocOpBuilder &b = lower.b;
  return pieceAt(
      lower, params, plan,
      arith::AddIOp::create(b, lower.thread, lower.i32(step * plan.threads)));
}

/// What addresses of `bytes` bytes that are loaded at once are multiples of.
static int64_t bytesTogether(Lanes &lower, int64_t bytes) {
  return std::min(bytes, lower.alignment);
}

void AMDMachine::emitCutCopies(Lanes &lower, const TileLoad &load,
                               const TileView &tile, Value slot) {
  ImplicitLocOpBuilder &b = lower.b;
  KVBufferAttr params = load.params;
  // Pieces are vectors of the slot: the tile is not turned.
  StagingPlan plan = stagingPlan(lower, params);
  RowSource source(lower, load, tile);
  Type element = storedElement(params.getElementType());
  auto type = VectorType::get({plan.width}, element);
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  Value lds = lower.shared(element);
  if (source.paged())
    source.lookUpPages();
  OpBuilder::InsertionGuard guard(b);
  auto loop = scf::ForOp::create(b, lower.thread, lower.i32(plan.pieces),
                                 lower.i32(plan.threads));
  b.setInsertionPointToStart(loop.getBody());
  Piece piece = pieceAt(lower, params, plan, loop.getInductionVar());
  Value at = arith::AddIOp::create(b, source.lineOfLane(piece.row),
                                   lower.toIndex(piece.col));
  int64_t columns = params.getColumnsOf(load.block);
  Value ok = source.valid(piece.row);
  Value vector;
  if (tile.cols) {
    Value end = arith::MinSIOp::create(b, tile.cols, lower.i32(columns));
    vector = loadCut(lower, tile, type, at, ok,
                     arith::SubIOp::create(b, end, piece.col),
                     bytesTogether(lower, plan.width * bytes));
  } else {
    if (columns < params.getSmemCols())
      ok = arith::AndIOp::create(
          b, ok,
          arith::CmpIOp::create(b, arith::CmpIPredicate::slt, piece.col,
                                lower.i32(columns)));
    vector = loadIf(lower, ok, type, [&] {
      return loadWhole(lower, tile, type, at,
                       bytesTogether(lower, plan.width * bytes));
    });
  }
  storePiece(lower, params, plan, lds, slot, piece, vector);
  b.setInsertionPointAfter(loop);
  // Waits count instructions of other loads: these are done.
  amdgpu::MemoryCounterWaitOp::create(b, b.getI32IntegerAttr(0), IntegerAttr(),
                                      IntegerAttr(), IntegerAttr(),
                                      IntegerAttr());
}

/// The loads of a tile that goes through registers.
struct AMDMachine::StagedLoads {
  AMDMachine &machine;
  Lanes &lower;
  ImplicitLocOpBuilder &b;
  const TileLoad &load;
  const TileView &tile;
  KVBufferAttr params;
  StagingPlan plan;
  RowSource source;
  /// The type of elements in memory, their bytes, and elements of a vector.
  Type element;
  int64_t bytes, width;
  /// A vector in registers, as it is loaded, and the same without 8-bit floats.
  VectorType type, loadedType, bitsType;
  /// Whether some of the tile's columns are not valid, or its rows are no
  /// range.
  bool checkCols;
  /// Where the rows are one range of memory, or each wave's are: that, and what
  /// its offsets need added.
  Value range, shift;
  /// Rows of one page that all lanes of a wave have, and whether they are a
  /// range of their own, whose offsets no tile changes.
  int64_t ofWave = 0;
  bool byWave = false;
  /// Whether every lane loads, so that waits can count the loads: zeros, which
  /// lie there, for a row that is not there.
  bool counted = false;
  Value zeros;
  /// Whether the piece that is being loaded is one of the tile's, and of the
  /// buffer's columns, null: it is; its row, or else one that no tile has; and
  /// where its last page's first row begins.
  Value exists, boundedRow, line;
  /// What has been loaded.
  Values vectors;

  StagedLoads(AMDMachine &machine, Lanes &lower, const TileLoad &load,
              const TileView &tile, StagingPlan plan, VectorType type,
              bool checkCols)
      : machine(machine), lower(lower), b(lower.b), load(load), tile(tile),
        params(load.params), plan(plan), source(lower, load, tile),
        element(load.type().getElementType()),
        bytes(element.getIntOrFloatBitWidth() / 8), width(plan.width),
        type(type), loadedType(VectorType::get({width}, element)),
        bitsType(loadedType.clone(storedElement(element))),
        checkCols(checkCols) {}

  /// Finds out how rows are loaded.
  void begin();
  /// Loads a thread's piece at a step.
  void loadPiece(int64_t step);
  /// Finds out which rows and columns of a piece there are.
  void checkPiece(const Piece &piece, int64_t step);
  Value inRegisters(Value vector);
  /// A vector of a row by the range of memory.
  Value fromRange(const Piece &piece, Value row);
  /// One of which some columns may not be there, or at any address.
  Value fromCutRow(const Piece &piece, Value row);
  /// One of a row that the lane of its number knows.
  Value fromLane(const Piece &piece, Value row);
  /// One of a row that is looked up; vector `key` of its piece.
  Value fromRow(const Piece &piece, int64_t key, Value row);
};

Value AMDMachine::StagedLoads::inRegisters(Value vector) {
  if (vector.getType() == loadedType && loadedType != bitsType)
    vector = arith::BitcastOp::create(b, bitsType, vector);
  return vector.getType() == type
             ? vector
             : vector::BitCastOp::create(b, type, vector).getResult();
}

void AMDMachine::StagedLoads::begin() {
  if (source.paged())
    source.lookUpPages();
  // Each lane asks for itself what there is.
  if (checkCols)
    return;
  if (!source.paged())
    range = source.range(lower.i32(0), params.getBN(), shift);
  ofWave = plan.rowsOfWave(params, lower.target.waveSize);
  source.zeroTimes = llvm::divideCeil(plan.steps * plan.threads, plan.pieces);
  byWave = !range && ofWave && source.keeps(ofWave);
  counted = range || source.knowsPages();
  if (!counted)
    return;
  if (!range && !byWave && !source.askLanes())
    zeros = zerosAt(lower, tile.data);
  // Waits count on these loads being younger than the copies before them: the
  // backend must not turn them round.
  using Allow = amdgpu::sched_barrier_opt_enum;
  amdgpu::SchedBarrierOp::create(
      b, Allow::non_mem_non_sideffect | Allow::valu | Allow::salu |
             Allow::mfma_wmma | Allow::all_ds | Allow::ds_read |
             Allow::ds_write | Allow::transcendental);
}

void AMDMachine::StagedLoads::checkPiece(const Piece &piece, int64_t step) {
  exists = nullptr;
  bool all = (step + 1) * plan.threads <= plan.pieces;
  if (!all)
    exists = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, piece.number,
                                   lower.i32(plan.pieces));
  int64_t columns = params.getColumnsOf(load.block);
  if (columns < params.getSmemCols()) {
    Value inside = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                         piece.col, lower.i32(columns));
    exists = exists ? arith::AndIOp::create(b, exists, inside) : inside;
  }
  boundedRow = piece.row;
  if (exists)
    boundedRow =
        arith::SelectOp::create(b, exists, piece.row, lower.i32(kNoRow));
}

Value AMDMachine::StagedLoads::fromRange(const Piece &piece, Value row) {
  Value offset = arith::AddIOp::create(
      b, arith::MulIOp::create(b, row, source.stride),
      arith::MulIOp::create(b, piece.col, lower.i32(bytes)));
  if (shift)
    offset = arith::AddIOp::create(b, offset, shift);
  if (exists)
    offset = source.offsetIf(exists, offset);
  return RangeLoadOp::create(b, type, range, offset);
}

Value AMDMachine::StagedLoads::fromCutRow(const Piece &piece, Value row) {
  Value ok = source.valid(row);
  if (exists)
    ok = arith::AndIOp::create(b, ok, exists);
  Value at = arith::AddIOp::create(b, source.lineOfLane(row),
                                   lower.toIndex(piece.col));
  int64_t alignment = bytesTogether(lower, width * bytes);
  if (!tile.cols)
    return inRegisters(loadIf(lower, ok, bitsType, [&] {
      return loadWhole(lower, tile, bitsType, at, alignment);
    }));
  return inRegisters(loadCut(lower, tile, bitsType, at, ok,
                             arith::SubIOp::create(b, tile.cols, piece.col),
                             alignment));
}

Value AMDMachine::StagedLoads::fromLane(const Piece &piece, Value row) {
  // The same for all of a lane's pieces, which ask for one row's place once.
  bool mayHaveNone = plan.steps * plan.threads != plan.pieces ||
                     params.getColumnsOf(load.block) < params.getSmemCols();
  Value from = source.askLine(lower.toIndex(row), mayHaveNone);
  if (exists)
    from = arith::SelectOp::create(b, exists, from, lower.index(0));
  return inRegisters(vector::LoadOp::create(
      b, loadedType, source.memoryOfAsked(piece.col, mayHaveNone),
      ValueRange{from},
      /*nontemporal=*/false, llvm::Align(width * bytes)));
}

Value AMDMachine::StagedLoads::fromRow(const Piece &piece, int64_t key,
                                       Value row) {
  if (source.askLanes())
    return fromLane(piece, row);
  // Beside a window, what is not there has a row that no tile has: a lane's
  // bound stays in a vector register. Without one there are registers for
  // masks.
  bool bounded = exists && source.beginsLater();
  Value ok = source.valid(
      bounded ? arith::AddIOp::create(b, boundedRow, lower.i32(key)).getResult()
              : row);
  if (exists && !bounded)
    ok = arith::AndIOp::create(b, ok, exists);
  // Of a piece of four keys all may have one page, or each two.
  int64_t ofOnePage = !plan.transposed  ? 1
                      : source.keeps(4) ? 4
                      : source.keeps(2) ? 2
                                        : 1;
  auto load = [&](bool everywhere) -> Value {
    Value from;
    if (int64_t inPage = key % ofOnePage)
      from = arith::AddIOp::create(
          b, line,
          arith::MulIOp::create(b, lower.index(inPage), tile.rowStride)
              .getResult());
    else
      from = line = source.lineOf(lower.toIndex(row));
    Value at = arith::AddIOp::create(b, from, lower.toIndex(piece.col));
    if (everywhere)
      at = arith::SelectOp::create(b, ok, at, zeros);
    return inRegisters(vector::LoadOp::create(
        b, loadedType, lower.flat(tile.data), ValueRange{at},
        /*nontemporal=*/false, llvm::Align(width * bytes)));
  };
  // Where each row finds its own page, none is looked up for a row that is not
  // there.
  return counted ? load(/*everywhere=*/true) : loadIf(lower, ok, type, [&] {
    return load(/*everywhere=*/false);
  });
}

void AMDMachine::StagedLoads::loadPiece(int64_t step) {
  Piece piece = pieceOf(lower, params, plan, step);
  Value pieceRow = piece.row;
  if (byWave) {
    Value first = machine.uniform(
        lower,
        arith::AndIOp::create(b, piece.row, lower.i32(-ofWave)).getResult());
    range = source.range(first, ofWave, shift);
    pieceRow = arith::AndIOp::create(b, piece.row, lower.i32(ofWave - 1));
  }
  checkPiece(piece, step);
  for (int64_t key = 0; key < plan.vectors(); ++key) {
    Value row = arith::AddIOp::create(b, pieceRow, lower.i32(key));
    vectors.push_back(range       ? fromRange(piece, row)
                      : checkCols ? fromCutRow(piece, row)
                                  : fromRow(piece, key, row));
  }
}

/// Keeps loads in front of here. (LLVM sinks them all the same: `finishKernel`
/// holds it back where loads may not pass and stores may.)
static void keepInFront(ImplicitLocOpBuilder &b) {
  using Allow = amdgpu::sched_barrier_opt_enum;
  amdgpu::SchedBarrierOp::create(
      b, Allow::non_mem_non_sideffect | Allow::valu | Allow::salu |
             Allow::mfma_wmma | Allow::vmem_write | Allow::all_ds |
             Allow::ds_read | Allow::ds_write | Allow::transcendental);
}

Values AMDMachine::emitStagedLoads(Lanes &lower, const TileLoad &load,
                                   const TileView &tile, bool checkCols) {
  StagingPlan plan = stagingPlan(lower, load.params);
  StagedLoads loads(*this, lower, load, tile, plan,
                    vectorInRegisters(load.params, plan.width), checkCols);
  loads.begin();
  for (int64_t step = 0; step < plan.steps; ++step)
    loads.loadPiece(step);
  // Stores of what some lanes have none of stand in blocks of their own, behind
  // which LLVM would move loads for whoever uses them last: this tile's, or the
  // other operand's, whose lanes look up pages, too.
  bool severalWaves = plan.threads > lower.target.waveSize;
  if (loads.counted && severalWaves &&
      (plan.steps * plan.threads != plan.pieces || loads.source.askLanes()))
    keepInFront(lower.b);
  return loads.vectors;
}

/// Four rows as columns: for each element of a row a vector of the four.
static Values turnRows(ImplicitLocOpBuilder &b, ArrayRef<Value> rows) {
  auto type = cast<VectorType>(rows.front().getType());
  int64_t width = type.getNumElements();
  auto shuffle = [&](Value x, Value y, ArrayRef<int64_t> which) -> Value {
    return vector::ShuffleOp::create(b, x, y, which);
  };
  Values columns;
  if (type.getElementTypeBitWidth() == 8 && width % 4 == 0) {
    // Pairs of columns of two rows each make a word, as does a column of two
    // such pairs: an instruction takes bytes of two words.
    for (int64_t j = 0; j < width; j += 2) {
      SmallVector<int64_t> pair{j, width + j, j + 1, width + j + 1};
      Value front = shuffle(rows[0], rows[1], pair),
            back = shuffle(rows[2], rows[3], pair);
      columns.push_back(shuffle(front, back, {0, 1, 4, 5}));
      columns.push_back(shuffle(front, back, {2, 3, 6, 7}));
    }
    return columns;
  }
  for (int64_t j = 0; j < width; ++j)
    columns.push_back(shuffle(shuffle(rows[0], rows[1], {j, width + j}),
                              shuffle(rows[2], rows[3], {j, width + j}),
                              {0, 1, 2, 3}));
  return columns;
}

/// The same of bytes, `width` a row, in words or in half of one, that `widen`
/// makes wide by words of four: pairs of columns of two rows each are such
/// words, and what they become lies as columns have it.
static Values turnAndWiden(ImplicitLocOpBuilder &b, ArrayRef<Value> rows,
                           int64_t width, function_ref<Value(Value)> widen) {
  auto bytesOf = [&](Value words, int64_t count) -> Value {
    return vector::BitCastOp::create(b, VectorType::get({count}, b.getI8Type()),
                                     words);
  };
  // Columns j and j + 1 of two rows.
  auto pairOf = [&](Value row, Value next, int64_t j) -> Value {
    SmallVector<int64_t> pair{j, width + j, j + 1, width + j + 1};
    if (width >= 4)
      return vector::ShuffleOp::create(b, bytesOf(row, width),
                                       bytesOf(next, width), pair);
    // Bytes of two halves are taken from the word that these make: LLVM takes
    // an instruction apart for registers whose upper halves it does not know.
    Value both = bytesOf(
        vector::ShuffleOp::create(b, row, next, ArrayRef<int64_t>{0, 1}), 4);
    return vector::ShuffleOp::create(b, both, both, pair);
  };
  Values columns;
  for (int64_t j = 0; j < width; j += 2) {
    Value front = widen(pairOf(rows[0], rows[1], j)),
          back = widen(pairOf(rows[2], rows[3], j));
    for (int64_t column : {0, 2})
      columns.push_back(vector::ShuffleOp::create(
          b, front, back,
          ArrayRef<int64_t>{column, column + 1, column + 4, column + 5}));
  }
  return columns;
}

void AMDMachine::emitStagedStores(Lanes &lower, KVBufferAttr params, Value slot,
                                  ArrayRef<Value> loaded) {
  ImplicitLocOpBuilder &b = lower.b;
  StagingPlan plan = stagingPlan(lower, params);
  Value lds = lower.shared(storedElement(params.getElementType()));
  Values vectors(loaded.begin(), loaded.end());
  Type narrow = narrowElements.lookup(params);
  auto widen = [&](Value vector) -> Value {
    auto type = cast<VectorType>(vector.getType());
    return arith::ExtFOp::create(
        b, type.clone(params.getElementType()),
        arith::BitcastOp::create(b, type.clone(narrow), vector).getResult());
  };
  if (narrow && !plan.transposed)
    for (Value &vector : vectors)
      vector = widen(vector::BitCastOp::create(
          b, VectorType::get({plan.width}, b.getI8Type()), vector));
  int64_t bytes = params.getElementType().getIntOrFloatBitWidth() / 8;
  std::optional<LinearLayout> layout;
  SmallVector<int64_t> keyImages, colImages;
  if (plan.transposed) {
    layout = transposedTile(lower, params).layout();
    for (unsigned bit = 0; bit < layout->inLog2("row"); ++bit)
      keyImages.push_back(layout->basis("row", bit, "byte"));
    for (unsigned bit = 0; bit < layout->inLog2("col"); ++bit)
      colImages.push_back(layout->basis("col", bit, "byte"));
  }
  for (int64_t step = 0; step < plan.steps; ++step) {
    Piece piece = pieceOf(lower, params, plan, step);
    OpBuilder::InsertionGuard guard(b);
    if ((step + 1) * plan.threads > plan.pieces) {
      Value exists = arith::CmpIOp::create(
          b, arith::CmpIPredicate::ult, piece.number, lower.i32(plan.pieces));
      b.setInsertionPointToStart(
          scf::IfOp::create(b, exists, /*withElseRegion=*/false).thenBlock());
    }
    if (!plan.transposed) {
      storePiece(lower, params, plan, lds, slot, piece, vectors[step]);
      continue;
    }
    // Four keys of each column: column j of the four loaded rows.
    Value place = arith::XOrIOp::create(b, emitLinear(b, piece.row, keyImages),
                                        emitLinear(b, piece.col, colImages));
    ArrayRef<Value> rows = ArrayRef<Value>(vectors).slice(step * 4, 4);
    Value first = arith::AddIOp::create(b, slot, place);
    Values columns =
        narrow ? turnAndWiden(b, rows, plan.width, widen) : turnRows(b, rows);
    for (auto [j, keys] : llvm::enumerate(columns)) {
      int64_t image = layout->apply({{"col", j}}, "byte");
      // A slot begins at a multiple of what tells a piece's columns apart: one
      // address of a lane for all of them lives through a loop over slots.
      Value byte;
      if (image < slotAlignment(params))
        byte = arith::XOrIOp::create(b, first, lower.i32(image));
      else
        byte = arith::AddIOp::create(
            b, slot, arith::XOrIOp::create(b, place, lower.i32(image)));
      vector::StoreOp::create(b, keys, lds,
                              ValueRange{elementAt(lower, byte, bytes)},
                              /*nontemporal=*/false, llvm::Align(4 * bytes));
    }
  }
}
