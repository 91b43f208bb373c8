//===- MachineNVIDIANarrow.cpp - Fragments of 8-bit elements ----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operands of 16 bits from LDS that holds 8-bit elements. An element of
// ldmatrix is two of them, neighbours along a row. Read as it lies, a matrix
// gives a lane four neighbours of a row, two words of the operand; transposed,
// two of each of two rows, whose middle bytes then change places. Either way a
// lane has neighbours that the instruction's own layout puts 8 apart: the
// layouts of such products have another order (`#kvbuffer.mma`, order and
// columns).
//
//===----------------------------------------------------------------------===//

#include "PairReads.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

NVIDIAMachine::PairReads::PairReads(Lanes &lower, KVBufferAttr params,
                                    Value slot)
    : lower(lower), b(lower.b), params(params), layout(sharedTile(params)),
      block(layout.block()), shared(lower.shared(b.getF16Type())),
      start(arith::DivUIOp::create(b, slot, lower.i32(kUnit))) {}

Value NVIDIAMachine::PairReads::emit(
    ArrayRef<Matrix> together, const std::optional<LinearAddress::Term> &part,
    bool transposed) {
  // Lane l gives the address of row l % 8 of matrix l / 8.
  LinearAddress address;
  SmallVector<int64_t> basis;
  for (int64_t row = 1; row < 8; row *= 2)
    basis.push_back(image(row, 0));
  const Matrix &zero = together.front();
  for (size_t bit = 1; bit < together.size(); bit *= 2)
    basis.push_back(
        image(together[bit].row ^ zero.row, together[bit].col ^ zero.col));
  address.terms.push_back({lower.lane, basis});
  if (part)
    address.terms.push_back(*part);
  // Where a block begins is no XOR of bits if its rows are no power of two.
  int64_t before =
      llvm::isPowerOf2_64(layout.rows)
          ? 0
          : zero.col / layout.blockCols * layout.blockBytes() / kUnit;
  Value at =
      address.emit(b, start, slotAlignment(params) / kUnit,
                   layout.byteOffset(zero.row, zero.col) / kUnit - before);
  if (before)
    at = arith::AddIOp::create(b, at, lower.index(before));
  int64_t count = together.size();
  return nvgpu::LdMatrixOp::create(b,
                                   VectorType::get({count, 2}, b.getF16Type()),
                                   shared, ValueRange{at}, transposed, count);
}

Value NVIDIAMachine::PairReads::wordOf(Value pairs) {
  auto word = VectorType::get({1}, b.getI32Type());
  return vector::ExtractOp::create(b, vector::BitCastOp::create(b, word, pairs),
                                   ArrayRef<int64_t>{0});
}

/// Byte 0, 2, 1, 3 of a word.
static constexpr int64_t kSwapMiddleBytes = 0x3120;

namespace {
/// How an operand's registers and lanes lie in LDS.
struct Placement {
  const FragmentLayout &atom;

  int64_t row(StringRef in, unsigned bit) const {
    return atom.layout.basis(in, bit, atom.turned ? "col" : "row");
  }
  int64_t col(StringRef in, unsigned bit) const {
    return atom.layout.basis(in, bit, atom.turned ? "row" : "col");
  }
  unsigned registerBits() const { return atom.layout.inLog2("register"); }

  /// The register bit that chooses between the two words that a lane's four
  /// bytes become; 0: no ldmatrix reads this layout, as where a slot's columns
  /// are the instruction's, which has 8 of them.
  unsigned pairBit(bool transposed) const {
    auto is = [&](StringRef in, unsigned bit, int64_t r, int64_t c) {
      return row(in, bit) == r && col(in, bit) == c;
    };
    unsigned pair = 0;
    for (unsigned bit = 1; bit < registerBits(); ++bit)
      if (transposed ? is("register", bit, 0, 1) : is("register", bit, 0, 2))
        pair = bit;
    bool fits = transposed ? is("register", 0, 1, 0) : is("register", 0, 0, 1);
    for (unsigned bit = 0; bit < 5; ++bit) {
      int64_t low = transposed ? 2 : 4;
      if (bit < 2)
        fits &= transposed ? is("lane", bit, low << bit, 0)
                           : is("lane", bit, 0, low << bit);
      else
        fits &= transposed ? is("lane", bit, 0, 2 << (bit - 2))
                           : is("lane", bit, 1 << (bit - 2), 0);
    }
    return fits ? pair : 0;
  }
};
} // namespace

/// The matrices of an operand, each of which becomes two words, and the words'
/// numbers.
struct NVIDIAMachine::NarrowMatrices {
  SmallVector<Matrix> all;
  SmallVector<std::array<size_t, 2>> wordsOf;
  size_t words;

  /// `pair`: the register bit that chooses between the words.
  NarrowMatrices(FragmentLoadOp op, const FragmentLayout &atom, unsigned pair);
};

NVIDIAMachine::NarrowMatrices::NarrowMatrices(FragmentLoadOp op,
                                              const FragmentLayout &atom,
                                              unsigned pair) {
  FragmentType type = op.getFragment().getType();
  Placement placement{atom};
  bool turned = atom.turned;
  int64_t atomRows = atom.fragmentRows(), atomCols = atom.fragmentCols();
  int64_t gridRows = atom.warpRows(type) / atomRows,
          gridCols = atom.warpCols(type) / atomCols;
  int64_t outer = turned ? gridCols : gridRows,
          inner = turned ? gridRows : gridCols;
  unsigned upper = placement.registerBits() - 1, other = 1u << (pair - 1);
  for (int64_t i = 0; i < outer; ++i)
    for (int64_t j = 0; j < inner; ++j) {
      size_t first = (i * inner + j) << upper;
      for (unsigned word = 0; word < 1u << upper; ++word) {
        if (word & other)
          continue;
        Matrix matrix{op.getSlotRow() + (turned ? j : i) * atomRows,
                      op.getSlotCol() + (turned ? i : j) * atomCols};
        wordsOf.push_back({first + word, first + (word | other)});
        for (unsigned bit = 0; bit < upper; ++bit)
          if (word >> bit & 1) {
            matrix.row += placement.row("register", bit + 1);
            matrix.col += placement.col("register", bit + 1);
          }
        all.push_back(matrix);
      }
    }
  words = size_t(outer * inner) << upper;
}

LogicalResult NVIDIAMachine::emitNarrowFragmentLoad(Lanes &lower,
                                                    FragmentLoadOp op,
                                                    Value slot, Values &words) {
  ImplicitLocOpBuilder &b = lower.b;
  KVBufferAttr params = op.getStaged().getType().getParams();
  FragmentType type = op.getFragment().getType();
  Type narrow = params.getElementType(), wide = type.getElementType();
  const FragmentLayout &atom = lower.layouts.of(type);
  Placement placement{atom};
  bool transposed = placement.row("register", 0) == 1;
  unsigned pair = placement.pairBit(transposed);
  auto mma = dyn_cast<MmaLayoutAttr>(type.getLayout());
  if (!pair || !mma || mma.getWarpCols() > 1)
    return emitNarrowFragment(lower, op, slot, words);

  NarrowMatrices matrices(op, atom, pair);
  words.assign(matrices.words, Value());
  PairReads reads(lower, params, slot);
  auto bytes = VectorType::get({4}, b.getI8Type());
  const auto *wordsOf = matrices.wordsOf.begin();
  for (ArrayRef<Matrix> all = matrices.all; !all.empty();) {
    int64_t count = matricesAtOnce(all, reads.layout.blockCols);
    std::optional<LinearAddress::Term> part;
    if (type.getRole() == Role::A) {
      // Each warp has its own rows.
      SmallVector<int64_t> warps;
      for (int64_t bit = 1; bit < atom.rowWarps; bit *= 2)
        warps.push_back(reads.image(atom.warpRows(type) * bit, 0));
      part = LinearAddress::Term{lower.warp, warps};
    }
    Value read = reads.emit(all.take_front(count), part, transposed);
    for (int64_t w = 0; w < count; ++w, ++wordsOf) {
      Value loaded = vector::ExtractOp::create(b, read, ArrayRef<int64_t>{w});
      if (transposed) {
        Value joined = reads.wordOf(loaded);
        joined = NVVM::PermuteOp::create(b, b.getI32Type(), joined, joined,
                                         lower.i32(kSwapMiddleBytes),
                                         NVVM::PermuteMode::DEFAULT);
        loaded = vector::FromElementsOp::create(
            b, VectorType::get({1}, b.getI32Type()), ValueRange{joined});
      }
      Value narrowed = arith::BitcastOp::create(
          b, bytes.clone(narrow), vector::BitCastOp::create(b, bytes, loaded));
      Value widened =
          arith::ExtFOp::create(b, bytes.clone(wide), narrowed).getOut();
      for (int64_t half = 0; half < 2; ++half)
        words[(*wordsOf)[half]] = vector::ShuffleOp::create(
            b, widened, widened, ArrayRef<int64_t>{2 * half, 2 * half + 1});
    }
    all = all.drop_front(count);
  }
  return success();
}
