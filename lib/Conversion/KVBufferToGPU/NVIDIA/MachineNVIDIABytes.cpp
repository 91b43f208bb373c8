//===- MachineNVIDIABytes.cpp - V of 8-bit elements -------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A product of 8-bit floats wants four keys of a column in a word, and a row of
// a slot is a key. A transposed `ldmatrix` takes units of two bytes: of 8 rows
// it gives a lane two rows' pair of columns. Two such words, of the rows 0 to 7
// and 8 to 15 of 16, are turned into two of four rows each: one of the pair's
// first column, one of its second. That is the order in which accumulators of
// scores hold keys, and a lane's columns are pairs (`mmaSyncM16N16K32`).
//
//===----------------------------------------------------------------------===//

#include "../Lanes.h"
#include "MachineNVIDIA.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

/// Bytes of an element of ldmatrix.
static constexpr int64_t kPairBytes = 2;
/// Bytes 0 and 2 of two words, and bytes 1 and 3.
static constexpr int64_t kEvenBytes = 0x6420, kOddBytes = 0x7531;
/// The register bits of the four elements of a word.
static constexpr unsigned kLog2WordBytes = 2;

namespace {
/// Which register bit of an operand b, [contracted][columns], chooses between
/// the columns of a pair; 0 where the layout is not the one of such reads.
unsigned findPairBit(const FragmentLayout &atom) {
  auto is = [&](StringRef in, unsigned bit, int64_t row, int64_t col) {
    return atom.layout.basis(in, bit, "row") == row &&
           atom.layout.basis(in, bit, "col") == col;
  };
  if (atom.turned || atom.layout.inLog2("lane") != 5)
    return 0;
  bool fits = is("register", 0, 1, 0) && is("register", 1, 8, 0);
  for (unsigned bit = 0; bit < 5; ++bit)
    fits &= bit < 2 ? is("lane", bit, 2 << bit, 0)
                    : is("lane", bit, 0, 2 << (bit - 2));
  unsigned pair = 0;
  for (unsigned bit = kLog2WordBytes; bit < atom.layout.inLog2("register");
       ++bit)
    if (is("register", bit, 0, 1))
      pair = bit;
  return fits ? pair : 0;
}
} // namespace

LogicalResult NVIDIAMachine::emitByteFragmentLoad(Lanes &lower,
                                                  FragmentLoadOp op, Value slot,
                                                  Values &words) {
  ImplicitLocOpBuilder &b = lower.b;
  KVBufferAttr params = op.getStaged().getType().getParams();
  FragmentType type = op.getFragment().getType();
  const FragmentLayout &atom = lower.layouts.of(type);
  unsigned pair = findPairBit(atom);
  auto mma = dyn_cast<MmaLayoutAttr>(type.getLayout());
  // Columns that warps share are a power of two for each.
  bool shares = atom.sharesCols();
  int64_t own = atom.warpCols(type);
  if (!pair || type.getRole() != Role::B || !mma ||
      (shares && !llvm::isPowerOf2_64(own)))
    return emitNarrowFragment(lower, op, slot, words);

  SharedTile layout = sharedTile(params);
  unsigned upper = atom.layout.inLog2("register") - kLog2WordBytes,
           other = 1u << (pair - kLog2WordBytes);
  int64_t gridRows = atom.warpRows(type) / atom.fragmentRows(),
          gridCols = atom.warpCols(type) / atom.fragmentCols();
  // Two matrices for each two words of the operand, by the words' numbers.
  SmallVector<Matrix> all;
  SmallVector<std::array<size_t, 2>> wordsOf;
  for (int64_t i = 0; i < gridRows; ++i)
    for (int64_t j = 0; j < gridCols; ++j) {
      size_t first = (i * gridCols + j) << upper;
      for (unsigned word = 0; word < 1u << upper; ++word) {
        if (word & other)
          continue;
        Matrix matrix{op.getSlotRow() + i * atom.fragmentRows(),
                      op.getSlotCol() + j * atom.fragmentCols()};
        for (unsigned bit = 0; bit < upper; ++bit)
          if (word >> bit & 1) {
            matrix.row +=
                atom.layout.basis("register", bit + kLog2WordBytes, "row");
            matrix.col +=
                atom.layout.basis("register", bit + kLog2WordBytes, "col");
          }
        wordsOf.push_back({first + word, first + (word | other)});
        all.push_back(matrix);
        all.push_back({matrix.row + 8, matrix.col});
      }
    }
  words.assign(size_t(gridRows * gridCols) << upper, Value());

  // Places count the elements of ldmatrix; a slot's rows and blocks are whole
  // ones.
  LinearLayout block = layout.block();
  auto image = [&](int64_t row, int64_t col) {
    return block.apply({{"row", row}, {"col", col}}, "byte") / kPairBytes;
  };
  Type unit = b.getF16Type();
  Value shared = lower.shared(unit);
  Value start = arith::DivUIOp::create(b, slot, lower.i32(kPairBytes));
  // What of a warp's place is within a block is a term; blocks are added up.
  SmallVector<int64_t> parts;
  if (shares) {
    unsigned bits = llvm::Log2_64(atom.gridCols);
    while (parts.size() < bits && own << parts.size() < layout.blockCols)
      parts.push_back(image(0, own << parts.size()));
    if (unsigned inside = parts.size(); inside < bits)
      start = arith::AddIOp::create(
          b, start,
          arith::MulIOp::create(
              b,
              arith::ShRUIOp::create(b, lower.gridCol(atom), lower.i32(inside)),
              lower.i32((own << inside) / layout.blockCols *
                        layout.blockBytes() / kPairBytes)));
  }
  int64_t align = slotAlignment(params) / kPairBytes;
  auto single = VectorType::get({1}, b.getI32Type());
  auto wordOf = [&](Value pairs) -> Value {
    return vector::ExtractOp::create(
        b, vector::BitCastOp::create(b, single, pairs), ArrayRef<int64_t>{0});
  };
  Values loaded;
  for (size_t i = 0; i < all.size();) {
    const Matrix &zero = all[i];
    int64_t count =
        matricesAtOnce(ArrayRef(all).drop_front(i), layout.blockCols);
    // Lane l gives the address of row l % 8 of matrix l / 8.
    LinearAddress address;
    SmallVector<int64_t> basis;
    for (int64_t row = 1; row < 8; row *= 2)
      basis.push_back(image(row, 0));
    for (int64_t bit = 1; bit < count; bit *= 2)
      basis.push_back(
          image(all[i + bit].row ^ zero.row, all[i + bit].col ^ zero.col));
    address.terms.push_back({lower.lane, basis});
    if (!parts.empty())
      address.terms.push_back({lower.gridCol(atom), parts});
    // Where a block begins is no XOR of bits if its rows are no power of two.
    int64_t before =
        llvm::isPowerOf2_64(layout.rows)
            ? 0
            : zero.col / layout.blockCols * layout.blockBytes() / kPairBytes;
    Value at = address.emit(b, start, align,
                            layout.byteOffset(zero.row, zero.col) / kPairBytes -
                                before);
    if (before)
      at = arith::AddIOp::create(b, at, lower.index(before));
    Value matrices = nvgpu::LdMatrixOp::create(
        b, VectorType::get({count, 2}, unit), shared, ValueRange{at},
        /*transpose=*/true, count);
    for (int64_t w = 0; w < count; ++w)
      loaded.push_back(
          wordOf(vector::ExtractOp::create(b, matrices, ArrayRef<int64_t>{w})));
    i += count;
  }
  auto bytes = VectorType::get({4}, b.getI8Type());
  for (auto [i, numbers] : llvm::enumerate(wordsOf))
    for (auto [number, selector] :
         {std::pair(numbers[0], kEvenBytes), {numbers[1], kOddBytes}}) {
      Value word = NVVM::PermuteOp::create(
          b, b.getI32Type(), loaded[2 * i], loaded[2 * i + 1],
          lower.i32(selector), NVVM::PermuteMode::DEFAULT);
      word = vector::FromElementsOp::create(b, single, ValueRange{word});
      words[number] =
          arith::BitcastOp::create(b, bytes.clone(type.getElementType()),
                                   vector::BitCastOp::create(b, bytes, word));
    }
  return success();
}
