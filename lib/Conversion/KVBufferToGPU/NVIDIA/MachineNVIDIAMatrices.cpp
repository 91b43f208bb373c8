//===- MachineNVIDIAMatrices.cpp - Fragments by ldmatrix -------*- C++ -*-===//
//-*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A word of an operand holds two neighbours of a row of a slot, or of a column:
// ldmatrix reads matrices of 8 rows as they lie, or transposed. A read is three
// questions, `MatrixReads`: which form fits, which matrices there are, and
// where the lanes and warps find their rows.
//
//===----------------------------------------------------------------------===//

#include "KVBufferToGPU/Staging.h"
#include "MachineNVIDIA.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

/// Adds the columns of a slot that are a warp's, `cols` for each of `warps`, to
/// an address, as far as they are places in a block; returns the elements of
/// the blocks before them, or null. `part` is the warp's number among them.
static Value emitColPart(Lanes &lower, Value part, int64_t cols, int64_t warps,
                         const SharedTile &tile, LinearAddress &address) {
  ImplicitLocOpBuilder &b = lower.b;
  unsigned bits = llvm::Log2_64(warps), inside = 0;
  SmallVector<int64_t> images;
  LinearLayout block = tile.block();
  for (; inside < bits && cols << inside < tile.blockCols; ++inside)
    images.push_back(
        block.apply({{"row", 0}, {"col", cols << inside}}, "byte") /
        tile.elementBytes);
  if (inside)
    address.terms.push_back({part, images});
  if (inside == bits)
    return {};
  int64_t step =
      (cols << inside) / tile.blockCols * tile.blockBytes() / tile.elementBytes;
  Value number = arith::ShRUIOp::create(b, part, lower.i32(inside));
  return arith::MulIOp::create(b, number, lower.i32(step));
}

int64_t NVIDIAMachine::matricesAtOnce(ArrayRef<Matrix> all, int64_t blockCols) {
  const Matrix &zero = all.front();
  auto inOne = [&](int64_t count) {
    if (all.size() < size_t(count))
      return false;
    for (int64_t w = 0; w < count; ++w) {
      int64_t row = 0, col = 0;
      for (int64_t bit = 1; bit < count; bit *= 2)
        if (w & bit) {
          row ^= all[bit].row ^ zero.row;
          col ^= all[bit].col ^ zero.col;
        }
      if (all[w].row != (zero.row ^ row) || all[w].col != (zero.col ^ col) ||
          all[w].col / blockCols != zero.col / blockCols)
        return false;
    }
    return true;
  };
  return inOne(4) ? 4 : inOne(2) ? 2 : 1;
}

/// Reads of a fragment's matrices from a slot.
struct NVIDIAMachine::MatrixReads {
  Lanes &lower;
  ImplicitLocOpBuilder &b;
  FragmentLoadOp op;
  KVBufferAttr params;
  FragmentType type;
  SharedTile layout;
  const FragmentLayout &atom;
  /// Whether operand a's rows are columns of the slot, whose rows are
  /// contracted.
  bool crossed;
  /// Whether the slot's rows are the result's columns: operand b,
  /// [contracted][columns], is transposed in LDS; so is such an operand a.
  bool turned;
  /// Whether a word holds two neighbours of a column.
  bool transposed;
  /// Elements of a word of 32 bits.
  int64_t inWord;

  MatrixReads(Lanes &lower, FragmentLoadOp op)
      : lower(lower), b(lower.b), op(op),
        params(op.getStaged().getType().getParams()),
        type(op.getFragment().getType()), layout(sharedTile(params)),
        atom(lower.layouts.of(type)), crossed(op.isCrossed()),
        turned(atom.turned || crossed), transposed(rowOf("register", 0) == 1),
        inWord(4 / layout.elementBytes) {}

  /// How an operand's register and lane bits lie in LDS.
  int64_t rowOf(StringRef in, unsigned bit) const {
    return atom.layout.basis(in, bit, turned ? "col" : "row");
  }
  int64_t colOf(StringRef in, unsigned bit) const {
    return atom.layout.basis(in, bit, turned ? "row" : "col");
  }
  unsigned wordBits() const { return llvm::Log2_64(inWord); }

  /// Whether ldmatrix gives lanes these words.
  bool fits() const;
  /// The matrices, by the order of their words: a is [m][k]; b is [k][n]. Those
  /// of one atom are by its upper register bits; an atom of two matrices shares
  /// an instruction with its neighbour along the result's columns.
  SmallVector<Matrix> matrices();
  /// Where lanes and warps find the rows of matrices that are read together;
  /// `blocks`: the elements of blocks of columns before the warp's, or null.
  LinearAddress addressOf(ArrayRef<Matrix> together, Value &blocks) const;
};

bool NVIDIAMachine::MatrixReads::fits() const {
  // ldmatrix transposes pairs of 16 bits.
  if (transposed && inWord != 2)
    return false;
  auto along = [&](StringRef in, unsigned bit) {
    return transposed ? rowOf(in, bit) : colOf(in, bit);
  };
  auto across = [&](StringRef in, unsigned bit) {
    return transposed ? colOf(in, bit) : rowOf(in, bit);
  };
  bool ok = true;
  for (unsigned bit = 0; bit < wordBits(); ++bit)
    ok &= along("register", bit) == 1 << bit && across("register", bit) == 0;
  for (unsigned bit = 0; bit < 5; ++bit)
    ok &=
        bit < 2
            ? along("lane", bit) == inWord << bit && across("lane", bit) == 0
            : across("lane", bit) == 1 << (bit - 2) && along("lane", bit) == 0;
  return ok;
}

SmallVector<NVIDIAMachine::Matrix> NVIDIAMachine::MatrixReads::matrices() {
  int64_t atomRows = atom.fragmentRows(), atomCols = atom.fragmentCols();
  int64_t gridRows = atom.warpRows(type) / atomRows,
          gridCols = atom.warpCols(type) / atomCols;
  unsigned upper = atom.layout.inLog2("register") - wordBits();
  SmallVector<Matrix> all;
  int64_t outer = atom.turned ? gridCols : gridRows,
          inner = atom.turned ? gridRows : gridCols;
  for (int64_t i = 0; i < outer; ++i)
    for (int64_t j = 0; j < inner; ++j) {
      int64_t row0 = (atom.turned ? j : i) * atomRows,
              col0 = (atom.turned ? i : j) * atomCols;
      if (crossed)
        std::swap(row0, col0);
      row0 += op.getSlotRow();
      col0 += op.getSlotCol();
      for (unsigned word = 0; word < 1u << upper; ++word) {
        Matrix matrix{row0, col0};
        for (unsigned bit = 0; bit < upper; ++bit)
          if (word >> bit & 1) {
            matrix.row += rowOf("register", bit + wordBits());
            matrix.col += colOf("register", bit + wordBits());
          }
        all.push_back(matrix);
      }
    }
  return all;
}

LinearAddress NVIDIAMachine::MatrixReads::addressOf(ArrayRef<Matrix> together,
                                                    Value &blocks) const {
  // Lane l gives the address of row l % 8 of matrix l / 8.
  LinearAddress address;
  SmallVector<int64_t> basis = imagesOf(layout, "row", 0, 3);
  LinearLayout block = layout.block();
  auto image = [&](int64_t row, int64_t col) {
    return block.apply({{"row", row}, {"col", col}}, "byte") /
           layout.elementBytes;
  };
  const Matrix &zero = together.front();
  for (size_t bit = 1; bit < together.size(); bit *= 2)
    basis.push_back(
        image(together[bit].row ^ zero.row, together[bit].col ^ zero.col));
  address.terms.push_back({lower.lane, basis});
  if (crossed) {
    // Each warp has its own columns of the slot.
    if (atom.rowWarps > 1)
      blocks = emitColPart(lower, lower.rowPart(atom), atom.warpRows(type),
                           atom.rowWarps, layout, address);
  } else if (atom.sharesCols()) {
    if (atom.rowWarps > 1)
      address.terms.push_back(
          {lower.rowPart(atom),
           imagesOf(layout, "row", llvm::Log2_64(atom.warpRows(type)),
                    llvm::Log2_64(atom.rowWarps))});
    if (atom.colWarps > 1)
      blocks = emitColPart(lower, lower.gridCol(atom), atom.warpCols(type),
                           atom.colWarps, layout, address);
  } else if (type.getRole() == Role::A) {
    // Each warp has its own rows.
    address.terms.push_back(
        {lower.warp, imagesOf(layout, "row", llvm::Log2_64(atom.warpRows(type)),
                              llvm::Log2_64_Ceil(atom.rowWarps))});
  }
  return address;
}

LogicalResult NVIDIAMachine::emitFragmentLoad(Lanes &lower, FragmentLoadOp op,
                                              Value slot, Values &words) {
  ImplicitLocOpBuilder &b = lower.b;
  KVBufferAttr params = op.getStaged().getType().getParams();
  Type element = op.getFragment().getType().getElementType();
  if (element != params.getElementType())
    return op.isCrossed() ? emitNarrowFragment(lower, op, slot, words)
                          : emitNarrowFragmentLoad(lower, op, slot, words);
  if (op.getFragment().getType().getRole() == Role::Acc)
    return emitNarrowFragment(lower, op, slot, words);
  MatrixReads reads(lower, op);
  const SharedTile &layout = reads.layout;
  bool fits = reads.fits();
  if (!fits && layout.elementBytes == 1 && !reads.crossed)
    return emitByteFragmentLoad(lower, op, slot, words);
  // What is contracted in an order of its own, as beside elements that are
  // widened, no form of ldmatrix reads.
  if (!fits)
    return emitNarrowFragment(lower, op, slot, words);

  // Words are words: 8-bit elements come as integers.
  int64_t inWord = reads.inWord;
  Type stored = inWord == 2 ? element : Type(b.getI8Type());
  Value shared = lower.shared(stored);
  Value first = arith::DivUIOp::create(b, slot, lower.i32(layout.elementBytes));
  SmallVector<Matrix> matrices = reads.matrices();
  for (ArrayRef<Matrix> all = matrices; !all.empty();) {
    int64_t count = matricesAtOnce(all, layout.blockCols);
    Value blocks;
    LinearAddress address = reads.addressOf(all.take_front(count), blocks);
    Value where = emitAddress(lower, address, first, params, all.front().row,
                              all.front().col);
    if (blocks)
      where = arith::AddIOp::create(b, where, lower.toIndex(blocks));
    auto loaded = VectorType::get({count, inWord}, stored);
    Value matrix = nvgpu::LdMatrixOp::create(
        b, loaded, shared, ValueRange{where}, reads.transposed, count);
    for (int64_t w = 0; w < count; ++w) {
      Value word = vector::ExtractOp::create(b, matrix, ArrayRef<int64_t>{w});
      if (stored != element)
        word = arith::BitcastOp::create(b, VectorType::get({inWord}, element),
                                        word);
      words.push_back(word);
    }
    all = all.drop_front(count);
  }
  return success();
}
