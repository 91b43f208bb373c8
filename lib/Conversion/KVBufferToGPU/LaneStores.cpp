//===- LaneStores.cpp - Results from registers to DRAM ----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where the lanes of a quad hold two columns of every eight, as in NVIDIA's
// accumulators, a lane could store no more than 4 bytes at once and a warp's
// store would fill half of each sector that it touches. The lanes of a row
// therefore transpose their words first, after which lane i of them holds all
// of the i-th vector of columns. The words of 2^s vectors take s steps, in
// which every lane swaps half of its words with the lane that differs in one
// bit.
//
//===----------------------------------------------------------------------===//

#include "LaneStores.h"
#include "CachePlaces.h"
#include "LaneArithmetic.h"
#include "Staging.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

static Value compare(ImplicitLocOpBuilder &b, arith::CmpIPredicate predicate,
                     Value x, Value y) {
  return arith::CmpIOp::create(b, predicate, x, y);
}

static void emitStore(LaneContext &lanes, FragmentStoreOp op,
                      const TileView &tile);
/// The same with stores of at most `bytes` bytes, which its rows begin at
/// multiples of; `checkCols`: element by element, those of valid columns.
static void emitStore(LaneContext &lanes, FragmentStoreOp op,
                      const TileView &tile, int64_t bytes,
                      bool checkCols = false);

LogicalResult kvbuf::lowerOp(LaneContext &lower, FragmentStoreOp op) {
  ImplicitLocOpBuilder &b = lower.builder();
  TileView tile = lower.tileOf(op.getTile());
  if (tile.map == RowMap::Places)
    return op.emitOpError() << "stores into a tile whose rows are found one by "
                               "one; expected a tile of kvbuffer.dram_tile";
  // An engine stores the rows of a group of warps.
  if (!op.getVia() || !lower.storesBoxes()) {
    emitStore(lower, op, tile);
    return success();
  }
  if (!tile.box.tensor)
    return op.emitOpError() << "expected a tile that kvbuffer.dram_tile makes";
  // An engine's box would write rows and columns that are not the tile's.
  TileType type = op.getTile().getType();
  Value whole;
  if (tile.edges.rowsBehind)
    whole = compare(b, arith::CmpIPredicate::sge, tile.hi,
                    lower.i32(type.getRows()));
  if (tile.edges.colsBehind) {
    Value cols = compare(b, arith::CmpIPredicate::sge, tile.cols,
                         lower.i32(type.getCols()));
    whole = whole ? arith::AndIOp::create(b, whole, cols) : cols;
  }
  if (!whole)
    return lower.storeBox(op, tile, lower.lanesOf(op.getFragment()),
                          lower.single(op.getVia()));
  auto ifWhole = scf::IfOp::create(b, whole, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifWhole.thenBlock());
  if (failed(lower.storeBox(op, tile, lower.lanesOf(op.getFragment()),
                            lower.single(op.getVia()))))
    return failure();
  b.setInsertionPointToStart(ifWhole.elseBlock());
  emitStore(lower, op, tile);
  return success();
}

namespace {
/// Neighbouring columns of one row in a lane's registers; `at`: the first one's
/// number at lane 0.
struct Piece {
  int64_t at;
  Value value;
};
} // namespace

/// Transposes words among lanes: of `words`, 2^s values of 32 bits of every
/// lane, lane i of the 2^s that differ in the s `bits` gets the i-th of each,
/// in the lanes' order. 2^(s-1) shuffles for each bit.
static void exchange(LaneContext &lower, MutableArrayRef<Value> words,
                     ArrayRef<unsigned> bits) {
  ImplicitLocOpBuilder &b = lower.builder();
  for (auto [step, bit] : llvm::enumerate(bits)) {
    Value mask = lower.i32(int64_t(1) << bit);
    Value upper = compare(b, arith::CmpIPredicate::ne,
                          arith::AndIOp::create(b, lower.laneInWarp(), mask),
                          lower.i32(0));
    for (size_t low = 0; low < words.size(); ++low) {
      size_t high = low | size_t(1) << step;
      if (high == low)
        continue;
      // Each lane keeps the word on its own side.
      Value given = arith::SelectOp::create(b, upper, words[low], words[high]);
      Value taken = gpu::ShuffleOp::create(b, given, mask,
                                           lower.i32(lower.chip().waveSize),
                                           gpu::ShuffleMode::XOR)
                        .getShuffleResult();
      words[low] = arith::SelectOp::create(b, upper, taken, words[low]);
      words[high] = arith::SelectOp::create(b, upper, words[high], taken);
    }
  }
}

/// The consecutive columns that a lane holds once the lanes that differ in
/// `bits` have exchanged `pieces`, one word each and as many as the lanes.
static Value joinPieces(LaneContext &lower, ArrayRef<Piece> pieces,
                        ArrayRef<unsigned> bits) {
  ImplicitLocOpBuilder &b = lower.builder();
  auto word = VectorType::get({1}, b.getI32Type());
  Values words;
  for (const Piece &piece : pieces)
    words.push_back(vector::ExtractOp::create(
        b, vector::BitCastOp::create(b, word, piece.value),
        ArrayRef<int64_t>{0}));
  exchange(lower, words, bits);
  int64_t count = words.size();
  Value joined = vector::FromElementsOp::create(
      b, VectorType::get({count}, b.getI32Type()), words);
  auto piece = cast<VectorType>(pieces.front().value.getType());
  return vector::BitCastOp::create(
      b,
      VectorType::get({count * piece.getNumElements()}, piece.getElementType()),
      joined);
}

static void emitStore(LaneContext &lanes, FragmentStoreOp op,
                      const TileView &tile) {
  ImplicitLocOpBuilder &b = lanes.builder();
  if (tile.cols) {
    // Where columns are cut, each element is looked at.
    TileType type = op.getTile().getType();
    auto whole =
        scf::IfOp::create(b,
                          compare(b, arith::CmpIPredicate::sge, tile.cols,
                                  lanes.i32(type.getCols())),
                          /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(whole.thenBlock());
    TileView rest = tile;
    rest.cols = Value();
    emitStore(lanes, op, rest);
    b.setInsertionPointToStart(whole.elseBlock());
    emitStore(lanes, op, tile,
              type.getElementType().getIntOrFloatBitWidth() / 8,
              /*checkCols=*/true);
    return;
  }
  if (lanes.tensorAlignment() >= kTensorAlignment)
    return emitStore(lanes, op, tile, kTensorAlignment);
  auto aligned =
      scf::IfOp::create(b, rowsAligned(lanes, tile, kTensorAlignment),
                        /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(aligned.thenBlock());
  emitStore(lanes, op, tile, kTensorAlignment);
  b.setInsertionPointToStart(aligned.elseBlock());
  emitStore(lanes, op, tile, lanes.tensorAlignment());
}

namespace {
/// Stores a fragment into a tile: runs of registers with consecutive columns go
/// out in one store, after an exchange where the layout allows one and no
/// vector is cut off.
class FragmentStores {
public:
  FragmentStores(LaneContext &lanes, FragmentStoreOp op, const TileView &tile,
                 int64_t bytes, bool checkCols);
  void emit();

private:
  /// The runs of a row, by their columns.
  SmallVector<Piece> piecesOf(int64_t atomRow, size_t part);
  /// Whether warps that share the columns may hold columns of a piece that the
  /// tile does not have, for fragments are as wide as instructions need.
  bool mayLeave(const Piece &piece) {
    return lastFrom + (piece.at / atom.cols + 1) * atom.cols > cols;
  }
  /// The first column of a lane after an exchange among the first bits: each of
  /// them chooses between vectors now, no longer between parts of one.
  Value laneColumn(size_t steps);
  /// Where the lane's columns of a row begin.
  Value lineFrom(Value r, Value col) {
    return add(b, tile.lineOf(lanes, r), lanes.toIndex(col));
  }
  void store(Value value, Value from, int64_t at);
  /// Goes on where column `at` of the lane's is valid, or at least the tile's.
  void enterIfColumn(Value col, int64_t at, bool valid) {
    Value c = arith::AddIOp::create(b, col, lanes.i32(at));
    lanes.enter(compare(b, arith::CmpIPredicate::slt, c,
                        valid ? tile.cols : lanes.i32(cols)));
  }
  /// Stores vectors that lanes put together; leaves the other pieces.
  void storeJoined(ArrayRef<Piece> &left, Value r, Value valid);
  /// Stores pieces one by one.
  void storeSingle(ArrayRef<Piece> left, Value r);

  LaneContext &lanes;
  ImplicitLocOpBuilder &b;
  const TileView &tile;
  FragmentType type;
  const FragmentLayout &atom;
  const Values vectors;
  int64_t bytes;
  bool checkCols;
  int64_t cols, bits, atomCols, lastFrom, run, width;
  Value out;
  SmallVector<unsigned> ofRow;
};
} // namespace

FragmentStores::FragmentStores(LaneContext &lanes, FragmentStoreOp op,
                               const TileView &tile, int64_t bytes,
                               bool checkCols)
    : lanes(lanes), b(lanes.builder()), tile(tile),
      type(op.getFragment().getType()), atom(lanes.layoutOf(type)),
      vectors(lanes.lanesOf(op.getFragment())), bytes(bytes),
      checkCols(checkCols), cols(op.getTile().getType().getCols()),
      bits(type.getElementType().getIntOrFloatBitWidth()),
      atomCols(atom.atomCols(type)),
      lastFrom((atom.colWarps - 1) * atom.warpCols(type)),
      run(atom.columnRun()), width(kTensorAlignment * 8 / bits) {
  if (bytes >= kTensorAlignment && cols % width == 0)
    ofRow = atom.vectorLanes(bits, width);
}

SmallVector<Piece> FragmentStores::piecesOf(int64_t atomRow, size_t part) {
  SmallVector<Piece> pieces;
  for (int64_t j = 0; j < atomCols; ++j)
    for (int64_t reg = 0; reg < atom.registers(); reg += run) {
      int64_t at = j * atom.cols + atom.colOffset(reg);
      if (atom.rowPart(reg) != int64_t(part) || at >= cols)
        continue;
      Value whole = vectors[atomRow * atomCols + j];
      auto elements = llvm::to_vector(llvm::seq(reg, reg + run));
      pieces.push_back(
          {at, vector::ShuffleOp::create(b, whole, whole, elements)});
    }
  llvm::sort(pieces,
             [](const Piece &x, const Piece &y) { return x.at < y.at; });
  return pieces;
}

Value FragmentStores::laneColumn(size_t steps) {
  SmallVector<int64_t> basis;
  for (unsigned bit = 0; bit < atom.layout.inLog2("lane"); ++bit)
    basis.push_back(atom.layout.basis("lane", bit, "col"));
  for (auto [step, bit] : llvm::enumerate(ArrayRef(ofRow).take_front(steps)))
    basis[bit] = width << step;
  return lanes.addColPart(atom, type, emitLinear(b, lanes.laneInWarp(), basis));
}

void FragmentStores::store(Value value, Value from, int64_t at) {
  int64_t count = cast<VectorType>(value.getType()).getNumElements();
  // Elements lie at multiples of their own size.
  int64_t step = std::clamp<int64_t>(bytes * 8 / bits, 1, count);
  for (int64_t first = 0; first < count; first += step) {
    Value part = value;
    if (step < count)
      part = vector::ShuffleOp::create(
          b, value, value, llvm::to_vector(llvm::seq(first, first + step)));
    vector::StoreOp::create(
        b, part, out, ValueRange{add(b, from, lanes.index(at + first))},
        /*nontemporal=*/false, llvm::Align(step * bits / 8));
  }
}

void FragmentStores::storeJoined(ArrayRef<Piece> &left, Value r, Value valid) {
  // As many at a time as there are lanes, half as many of what is left, and so
  // on. Lanes whose row is not valid exchange, too. Each store follows its own
  // exchange: fewer words wait in registers.
  for (size_t steps = ofRow.size(); steps > 0; --steps) {
    size_t group = size_t(1) << steps;
    if (left.size() < group)
      continue;
    Value col = laneColumn(steps), from = lineFrom(r, col);
    for (; left.size() >= group; left = left.drop_front(group)) {
      Value joined = joinPieces(lanes, left.take_front(group),
                                ArrayRef(ofRow).take_front(steps));
      OpBuilder::InsertionGuard inner(b);
      lanes.enter(valid);
      // A vector is all of the tile or none: its width divides the columns.
      if (lastFrom && mayLeave(left[group - 1]))
        enterIfColumn(col, left.front().at, /*valid=*/false);
      store(joined, from, left.front().at);
    }
  }
}

void FragmentStores::storeSingle(ArrayRef<Piece> left, Value r) {
  Value col = laneColumn(0);
  Value from = lineFrom(r, col);
  for (const Piece &piece : left) {
    OpBuilder::InsertionGuard inner(b);
    if (checkCols) {
      Value whole = piece.value;
      for (int64_t i = 0; i < run; ++i) {
        OpBuilder::InsertionGuard one(b);
        enterIfColumn(col, piece.at + i, /*valid=*/true);
        store(vector::ShuffleOp::create(b, whole, whole, ArrayRef<int64_t>{i}),
              from, piece.at + i);
      }
      continue;
    }
    // Columns of an atom that the tile may not have.
    if ((ofRow.empty() || lastFrom) && mayLeave(piece))
      enterIfColumn(col, piece.at, /*valid=*/false);
    store(piece.value, from, piece.at);
  }
}

void FragmentStores::emit() {
  out = lanes.flat(tile.data);
  Value row = lanes.laneRow(type);
  // Of warps that hold the same columns, the first one stores.
  Value isFirst;
  if (atom.sharesCols() && atom.colWarps == 1)
    isFirst =
        compare(b, arith::CmpIPredicate::eq, lanes.gridCol(atom), lanes.i32(0));
  for (int64_t i = 0, e = vectors.size() / atomCols; i < e; ++i)
    for (auto [part, partRow] : llvm::enumerate(atom.rowParts())) {
      SmallVector<Piece> pieces = piecesOf(i, part);
      Value r =
          arith::AddIOp::create(b, row, lanes.i32(atom.rowOffset(i, part)));
      Value valid = compare(b, arith::CmpIPredicate::slt, r, tile.hi);
      if (isFirst)
        valid = arith::AndIOp::create(b, valid, isFirst);
      OpBuilder::InsertionGuard guard(b);
      ArrayRef<Piece> left = pieces;
      storeJoined(left, r, valid);
      if (left.empty())
        continue;
      lanes.enter(valid);
      storeSingle(left, r);
    }
}

static void emitStore(LaneContext &lanes, FragmentStoreOp op,
                      const TileView &tile, int64_t bytes, bool checkCols) {
  FragmentStores(lanes, op, tile, bytes, checkCols).emit();
}

void kvbuf::lowerOp(LaneContext &lower, RowStoreOp op) {
  ImplicitLocOpBuilder &b = lower.builder();
  const TensorArg &tensor = lower.tensorOf(op.getTensor());
  Value base = lower.offsetOf(op.getTensor(), op.getIndices());
  Value valid = lower.toI32(arith::MinSIOp::create(
      b, lower.single(op.getValid()),
      lower.index(op.getFragment().getType().getRows())));
  FragmentType type = op.getFragment().getType();
  const FragmentLayout &layout = lower.layoutOf(type);
  // The lanes that share a row hold the same value: the first of them stores.
  Value first = lower.firstOfRow(layout);
  Value row = lower.laneRow(type);
  Value out = lower.flat(tensor.data);
  unsigned parts = layout.rowParts().size();
  for (auto [i, value] : llvm::enumerate(lower.lanesOf(op.getFragment()))) {
    Value r = arith::AddIOp::create(
        b, row, lower.i32(layout.rowOffset(i / parts, i % parts)));
    Value store = arith::AndIOp::create(
        b, first, compare(b, arith::CmpIPredicate::slt, r, valid));
    auto guarded = scf::IfOp::create(b, store, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(guarded.thenBlock());
    Value at = lower.toIndex(r);
    if (op.getGroup() > 1) {
      Value group = lower.i32(op.getGroup());
      at = add(b, lower.toIndex(arith::DivUIOp::create(b, r, group)),
               mul(b, lower.toIndex(arith::RemUIOp::create(b, r, group)),
                   tensor.strides.back()));
    }
    memref::StoreOp::create(b, value, out, ValueRange{add(b, base, at)});
  }
}
