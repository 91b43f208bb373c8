//===- MachineAMDFragments.cpp - Fragments on AMD's CDNA --------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operands out of LDS, and out of tiles in DRAM. A read from a slot is three
// questions, `SlotReads`: where an element of the fragment lies, which reads of
// LDS give a lane its words, and where each lane and warp begins.
//
//===----------------------------------------------------------------------===//

#include "KVBufferToGPU/Staging.h"
#include "MachineAMD.h"
#include "mlir/Dialect/AMDGPU/IR/AMDGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

/// Vectors of one length, one after the other.
static Value joinVectors(ImplicitLocOpBuilder &b, ArrayRef<Value> parts) {
  Value joined = parts.front();
  int64_t size = cast<VectorType>(joined.getType()).getNumElements();
  for (size_t i = 1; i < parts.size(); ++i)
    joined = vector::ShuffleOp::create(
        b, joined, parts[i],
        llvm::to_vector(llvm::seq<int64_t>(0, size * (i + 1))));
  return joined;
}

/// Whether a read of a staged slot contracts columns.
static bool readsColumns(Value staged) {
  return llvm::any_of(staged.getUsers(), [](Operation *user) {
    if (auto view = dyn_cast<StagedViewOp>(user))
      return readsColumns(view.getResult());
    if (auto fit = dyn_cast<StagedFitOp>(user))
      return readsColumns(fit.getFitted());
    auto load = dyn_cast<FragmentLoadOp>(user);
    return load && !load.contractsRows();
  });
}

/// Whether another read of the same slot, of another team's, too, contracts
/// columns.
static bool readsColumnsToo(FragmentLoadOp op) {
  Value staged = op.getStaged();
  while (isa_and_nonnull<StagedViewOp, StagedFitOp>(staged.getDefiningOp()))
    staged = staged.getDefiningOp()->getOperand(0);
  auto wait = staged.getDefiningOp<RingWaitOp>();
  if (!wait)
    return readsColumns(staged);
  return llvm::any_of(wait.getRing().getUsers(), [](Operation *user) {
    auto other = dyn_cast<RingWaitOp>(user);
    return other && readsColumns(other.getStaged());
  });
}

LinearLayout AMDMachine::layoutInSlot(Lanes &lower, FragmentType type) {
  const LinearLayout &layout = lower.layouts.of(type).layout;
  return type.getRole() == Role::A ? transposed(layout) : layout;
}

namespace {
/// How a fragment's words are read from a slot.
struct SlotReads {
  Lanes &lower;
  ImplicitLocOpBuilder &b;
  FragmentLoadOp op;
  KVBufferAttr params;
  FragmentType type;
  const FragmentLayout &atom;
  SharedTile tile;
  /// The slot's layout where it is turned on its way into LDS.
  std::optional<LinearLayout> transposed;
  Type element, stored;
  int64_t elementBytes;
  /// Whether the operand is a; whether the slot's rows are contracted; whether
  /// it is a and they are.
  bool isA, byRows, crossed;
  /// The instruction's layout, for reads that transpose, and whether it is the
  /// wide one.
  std::optional<LinearLayout> reads;
  bool wide;
  /// Elements of a word that are read at once.
  int64_t piece = 0;
  /// The lane's part of an address, and the bytes of the LDS blocks before the
  /// warp's, where there are such.
  LinearAddress address;
  Value blocks;

  SlotReads(Lanes &lower, FragmentLoadOp op,
            std::optional<LinearLayout> transposed)
      : lower(lower), b(lower.b), op(op),
        params(op.getStaged().getType().getParams()),
        type(op.getFragment().getType()), atom(lower.layouts.of(type)),
        tile(sharedTile(params)), transposed(std::move(transposed)),
        element(type.getElementType()), stored(params.getElementType()),
        elementBytes(stored.getIntOrFloatBitWidth() / 8),
        isA(type.getRole() == Role::A), byRows(op.contractsRows()),
        crossed(op.isCrossed()),
        wide(lower.target.matrixUnit() == MatrixUnit::Wmma) {}

  bool isTurned() const { return transposed.has_value(); }
  bool widens() const { return element != stored; }

  /// Where the element at (row, col) of the fragment lies in the slot, if the
  /// fragment began at (row0, col0) of it: rows that are not contracted are the
  /// columns of operand b, and rows that are contracted the columns of operand
  /// a.
  int64_t byteAt(int64_t row, int64_t col, int64_t row0, int64_t col0) const {
    if (isA == byRows)
      std::swap(row, col);
    row += row0;
    col += col0;
    return isTurned() ? transposed->apply({{"row", row}, {"col", col}}, "byte")
                      : tile.byteOffset(row, col);
  }
  int64_t byteOf(int64_t row, int64_t col) {
    return byteAt(row, col, op.getSlotRow(), op.getSlotCol());
  }
  /// The image of a coordinate's bit; layouts of LDS are linear in an atom.
  int64_t image(int64_t row, int64_t col) const {
    return byteAt(row, col, 0, 0);
  }
  int64_t imageOf(StringRef in, unsigned bit) const {
    return image(atom.layout.basis(in, bit, "row"),
                 atom.layout.basis(in, bit, "col"));
  }

  /// Chooses `reads` and `piece`; false: no read of LDS gives such words.
  bool chooseReads();
  /// Says that there is none.
  LogicalResult refuse();
  /// Finds `address` and `blocks`.
  LogicalResult findPlaces();
  /// Where the slot's columns begin that each warp has of the product.
  LogicalResult findColumns();
  /// What lies at `byte`, by one read.
  Value emitRead(Value lds, Value slot, int64_t byte);
  void emit(Value lds, Value slot, Values &words);
};
} // namespace

bool SlotReads::chooseReads() {
  // Elements that a transposed read gives a lane.
  const unsigned readBits = wide ? 3 : 2;
  bool transposes = byRows && !isTurned();
  if (transposes && atom.layout.inLog2("register") >= readBits) {
    LinearLayout layout = AMDMachine::layoutInSlot(lower, type);
    SmallVector<LinearLayout::Coord> registers, lanes;
    for (unsigned bit = 0; bit < readBits; ++bit)
      registers.push_back(layout.basis("register", bit));
    for (unsigned bit = 0; bit < layout.inLog2("lane"); ++bit)
      lanes.push_back(layout.basis("lane", bit));
    LinearLayout piece({"register", "lane"}, {registers, lanes},
                       layout.outDims());
    reads = wide ? transposedRead128(piece) : transposedRead16(piece);
  }
  // A lane's word is read in pieces: those of a transposed read, else what the
  // slot's layout keeps together.
  int64_t together =
      isTurned() ? AMDMachine::turnedReadBytes(atom.registers() * elementBytes)
                 : std::min<int64_t>(tile.swizzle.unit, kWidestRead);
  piece = std::min<int64_t>(atom.registers(), reads ? int64_t(1) << readBits
                                                    : together / elementBytes);
  if (transposes)
    return reads.has_value();
  for (unsigned bit = 0; int64_t(1) << bit < piece; ++bit)
    if (imageOf("register", bit) != elementBytes << bit)
      return false;
  return true;
}

LogicalResult SlotReads::refuse() {
  InFlightDiagnostic diag = op.emitOpError()
                            << "no read of LDS loads this operand's layout on "
                            << lower.target.chip << ", " << type.getLayout();
  // Words of a row are read whole; only columns can be read in any order.
  if (auto mma = dyn_cast<MmaLayoutAttr>(type.getLayout());
      mma && !isA && !byRows && !mma.getOrder().empty())
    diag << "; expected contracted(rows), as its product's other operand "
            "comes from accumulators";
  return diag;
}

LogicalResult SlotReads::findColumns() {
  // Each warp has columns of the product of its own, which rows that are not
  // contracted are; of operand a that lies turned, rows, which are columns of
  // the slot.
  int64_t cols = byRows && !isA ? atom.warpCols(type) : atom.warpRows(type);
  int64_t parted = isA ? atom.rowWarps : atom.gridCols;
  if (!llvm::isPowerOf2_64(cols) && (isTurned() || !byRows))
    return op.emitOpError()
           << "has " << cols << " columns of the product for "
           << "each of " << parted << " warps; expected a power of two";
  unsigned bits = llvm::Log2_64(parted), inside = 0;
  SmallVector<int64_t> parts;
  for (; inside < bits &&
         (isTurned() || !byRows || cols << inside < tile.blockCols);
       ++inside)
    parts.push_back(isA ? image(cols << inside, 0) : image(0, cols << inside));
  Value part = isA ? lower.rowPart(atom) : lower.gridCol(atom);
  if (inside)
    address.terms.push_back({part, parts});
  if (inside < bits)
    blocks = arith::MulIOp::create(
        b, arith::ShRUIOp::create(b, part, lower.i32(inside)),
        lower.i32((cols << inside) / tile.blockCols * tile.blockBytes()));
  return success();
}

LogicalResult SlotReads::findPlaces() {
  SmallVector<int64_t> lanes;
  for (unsigned bit = 0; bit < atom.layout.inLog2("lane"); ++bit)
    lanes.push_back(!reads ? imageOf("lane", bit)
                    : isA  ? image(reads->basis("lane", bit, "col"),
                                   reads->basis("lane", bit, "row"))
                           : image(reads->basis("lane", bit, "row"),
                                   reads->basis("lane", bit, "col")));
  address.terms.push_back({lower.lane, lanes});
  if (crossed ? atom.rowWarps > 1 : atom.sharesCols() && !isA)
    return findColumns();
  if (isA && !crossed) {
    SmallVector<int64_t> warps;
    unsigned bits = llvm::Log2_64_Ceil(atom.rowWarps);
    for (unsigned bit = 0; bit < bits; ++bit)
      warps.push_back(image(atom.warpRows(type) << bit, 0));
    address.terms.push_back({lower.rowPart(atom), warps});
  }
  return success();
}

Value SlotReads::emitRead(Value lds, Value slot, int64_t byte) {
  Value at = address.emit(b, slot, slotAlignment(params), byte);
  if (blocks)
    at = arith::AddIOp::create(b, at, lower.toIndex(blocks));
  if (reads && wide)
    return TurnedReadOp::create(b, VectorType::get({piece}, element), lds, at);
  if (reads)
    return amdgpu::TransposeLoadOp::create(b, VectorType::get({piece}, element),
                                           lds, ValueRange{at});
  return vector::LoadOp::create(
      b, VectorType::get({piece * elementBytes}, b.getI8Type()), lds,
      ValueRange{at}, /*nontemporal=*/false, llvm::Align(piece * elementBytes));
}

void SlotReads::emit(Value lds, Value slot, Values &words) {
  auto word = VectorType::get({atom.registers()}, element);
  // Words are listed [m][k] for a and [k][n] for b.
  int64_t rows = atom.warpRows(type), cols = atom.warpCols(type);
  if (!isA && !byRows)
    std::swap(rows, cols);
  for (int64_t r = 0; r < rows; r += atom.rows)
    for (int64_t c = 0; c < cols; c += atom.cols) {
      // The registers of a piece differ in their low bits.
      SmallVector<Value> parts;
      for (int64_t part = 0; part < atom.registers(); part += piece) {
        auto offset = atom.layout.apply({{"register", part}});
        parts.push_back(
            emitRead(lds, slot, byteOf(r + offset[0], c + offset[1])));
      }
      Value joined = joinVectors(b, parts);
      if (widens())
        joined = arith::ExtFOp::create(
            b, word,
            arith::BitcastOp::create(b, word.clone(stored), joined)
                .getResult());
      else if (!reads && elementBytes == 1)
        joined = arith::BitcastOp::create(b, word, joined);
      else if (!reads)
        joined = vector::BitCastOp::create(b, word, joined);
      words.push_back(joined);
    }
}

LogicalResult AMDMachine::emitFragmentLoad(Lanes &lower, FragmentLoadOp op,
                                           Value slot, Values &words) {
  KVBufferAttr params = op.getStaged().getType().getParams();
  bool byRows = op.contractsRows();
  bool turned = isTurnedInLds(lower.target, params);
  if (op.getFragment().getType().getRole() == Role::Acc)
    return emitNarrowFragment(lower, op, slot, words);
  if (params.getElementType().getIntOrFloatBitWidth() == 8 && byRows && !turned)
    return emitNarrowFragment(lower, op, slot, words);
  if (turned && !byRows)
    return op.emitOpError()
           << "contracts columns of a slot whose columns lie side by side; "
              "expected a buffer with order = rows";
  // A slot that is both operands (latent attention) lies as the one does that
  // is read most; a buffer of values alone is turned on its way into LDS.
  if (byRows && !turned && !lower.target.readsTransposed) {
    if (op.getContracted() == Dimension::Rows && readsColumnsToo(op))
      return emitNarrowFragment(lower, op, slot, words);
    return op.emitOpError()
           << "contracts rows of a slot whose rows lie side by side, which "
           << lower.target.chip
           << " cannot read; expected a buffer with policy = register_staged, "
              "order = cols";
  }
  std::optional<LinearLayout> transposed;
  if (turned)
    transposed = transposedTile(lower, params).layout();
  SlotReads reads(lower, op, std::move(transposed));
  bool fits = reads.chooseReads();
  // Columns of a in an order of their own, as beside accumulators, too.
  if ((reads.widens() || reads.isA) && !fits && !turned)
    return emitNarrowFragment(lower, op, slot, words);
  if (!fits || reads.atom.words != reads.atom.registers())
    return reads.refuse();
  if (failed(reads.findPlaces()))
    return failure();

  // No more of the operand than a chunk is in registers: its reads wait for the
  // products of the chunk before.
  if (params.getRegChunkDepth() < params.getDepth() && op.getSlotCol() > 0) {
    using Allow = amdgpu::sched_barrier_opt_enum;
    amdgpu::SchedBarrierOp::create(
        lower.b, Allow::non_mem_non_sideffect | Allow::valu | Allow::salu |
                     Allow::all_vmem | Allow::vmem_read | Allow::vmem_write |
                     Allow::ds_write | Allow::transcendental);
  }
  reads.emit(ldsBytes(lower), slot, words);
  return success();
}

namespace {
/// The rows of a tile in DRAM that lanes read fragments of: a range of memory,
/// or, where kernels take any tensor, an address for each.
struct TileRows {
  Lanes &lower;
  ImplicitLocOpBuilder &b;
  const TileView &tile;
  TileType type;
  int64_t bytes;
  Value stride, groupStride, range;

  TileRows(Lanes &lower, TileType type, const TileView &tile);
  /// Bytes from row 0 to row `row`.
  Value offsetOf(Value row);
  /// `width` elements of row `row` from `col` (bytes, the lane's) and element
  /// `first` on; zeros where the row is not valid, or a lane's `col` is not
  /// less than `limit`, if any.
  Value read(Value row, Value line, Value col, int64_t first, int64_t width,
             std::optional<int64_t> limit);
  /// What `read` takes of a row, the same for all of its columns.
  Value lineOf(Value row, Value col);
};
} // namespace

TileRows::TileRows(Lanes &lower, TileType type, const TileView &tile)
    : lower(lower), b(lower.b), tile(tile), type(type),
      bytes(type.getElementType().getIntOrFloatBitWidth() / 8) {
  if (lower.takesAnyTensor())
    return;
  stride =
      arith::MulIOp::create(b, lower.toI32(tile.rowStride), lower.i32(bytes));
  // The valid rows are [0, hi): the range ends after the last of them.
  Value zero = lower.i32(0);
  Value some =
      arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, tile.hi, zero);
  Value last = offsetOf(arith::SubIOp::create(b, tile.hi, lower.i32(1)));
  Value length = arith::SelectOp::create(
      b, some,
      arith::AddIOp::create(b, last, lower.i32(type.getCols() * bytes)), zero);
  range = DramRangeOp::create(b, tile.data, tile.base, length);
}

Value TileRows::offsetOf(Value row) {
  int64_t group = type.getPageSize();
  if (!group)
    return arith::MulIOp::create(b, row, stride);
  if (!groupStride)
    groupStride = arith::MulIOp::create(b, lower.toI32(tile.pageStride),
                                        lower.i32(bytes));
  Value of = arith::MulIOp::create(
      b, arith::DivUIOp::create(b, row, lower.i32(group)).getResult(),
      groupStride);
  Value inside = arith::MulIOp::create(
      b, arith::RemUIOp::create(b, row, lower.i32(group)).getResult(), stride);
  return arith::AddIOp::create(b, of, inside);
}

Value TileRows::lineOf(Value row, Value col) {
  if (!range) {
    // In elements, of the tensor.
    Value element = arith::ShRUIOp::create(
        b, col, lower.i32(llvm::Log2_64(bytes)), /*isExact=*/true);
    return arith::AddIOp::create(b, tile.lineOf(lower, row),
                                 lower.toIndex(element));
  }
  Value line = arith::AddIOp::create(b, offsetOf(row), col);
  // Of two strides the larger may be the inner one: where a row lies does not
  // say whether it is valid.
  if (type.getPageSize())
    line = arith::SelectOp::create(
        b, arith::CmpIOp::create(b, arith::CmpIPredicate::slt, row, tile.hi),
        line, lower.i32(INT32_MIN));
  return line;
}

Value TileRows::read(Value row, Value line, Value col, int64_t first,
                     int64_t width, std::optional<int64_t> limit) {
  auto vector = VectorType::get({width}, type.getElementType());
  Value inside;
  if (limit)
    inside = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, col,
                                   lower.i32(*limit));
  if (!range) {
    Value ok =
        arith::CmpIOp::create(b, arith::CmpIPredicate::slt, row, tile.hi);
    if (inside)
      ok = arith::AndIOp::create(b, ok, inside);
    return loadIf(lower, ok, vector, [&] {
      return loadWhole(lower, tile, vector,
                       arith::AddIOp::create(b, line, lower.index(first)),
                       std::min(width * bytes, lower.alignment));
    });
  }
  Value at = arith::AddIOp::create(b, line, lower.i32(first * bytes));
  // Columns past the tile's: out of the range.
  if (inside)
    at = arith::SelectOp::create(b, inside, at, lower.i32(INT32_MIN));
  return RangeLoadOp::create(b, vector, range, at);
}

LogicalResult AMDMachine::emitTileFragment(Lanes &lower, TileFragmentOp op,
                                           const TileView &tile,
                                           Values &words) {
  ImplicitLocOpBuilder &b = lower.b;
  FragmentType type = op.getFragment().getType();
  int64_t bytes = type.getElementType().getIntOrFloatBitWidth() / 8;
  int64_t columns = op.getTile().getType().getCols();
  const FragmentLayout &atom = lower.layouts.of(type);
  // A word in pieces that a lane loads at once, beside each other in a row.
  int64_t width = std::min<int64_t>(atom.registers(), kWidestRead / bytes);
  for (unsigned bit = 0; int64_t(1) << bit < width; ++bit)
    if (atom.layout.basis("register", bit, "col") != 1 << bit)
      return op.emitOpError()
             << "a lane's words are no pieces of rows on " << lower.target.chip;
  TileRows rows(lower, op.getTile().getType(), tile);

  SmallVector<int64_t> rowBits, colBits;
  for (unsigned bit = 0; bit < atom.layout.inLog2("lane"); ++bit) {
    rowBits.push_back(atom.layout.basis("lane", bit, "row"));
    colBits.push_back(atom.layout.basis("lane", bit, "col") * bytes);
  }
  Value row = arith::AddIOp::create(
      b, emitLinear(b, lower.lane, rowBits),
      arith::MulIOp::create(b, lower.rowPart(atom),
                            lower.i32(atom.warpRows(type))));
  Value col = emitLinear(b, lower.lane, colBits);
  for (int64_t r = 0; r < atom.warpRows(type); r += atom.rows) {
    Value at = arith::AddIOp::create(b, row, lower.i32(r));
    Value line = rows.lineOf(at, col);
    for (int64_t c = 0; c < type.getCols(); c += atom.cols) {
      SmallVector<Value> parts;
      for (int64_t reg = 0; reg < atom.registers(); reg += width) {
        int64_t first = c + atom.layout.apply({{"register", reg}}, "col");
        std::optional<int64_t> limit;
        if (c + atom.cols > columns)
          limit = std::max<int64_t>(0, columns - first) * bytes;
        parts.push_back(rows.read(at, line, col, first, width, limit));
      }
      words.push_back(joinVectors(b, parts));
    }
  }
  return success();
}
