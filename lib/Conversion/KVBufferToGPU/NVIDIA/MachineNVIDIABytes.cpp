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

#include "PairReads.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

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

/// The matrices of an operand b whose words lanes have in pairs, two matrices
/// for each, and the words' numbers.
struct NVIDIAMachine::ByteMatrices {
  SmallVector<Matrix> all;
  SmallVector<std::array<size_t, 2>> wordsOf;
  size_t words;

  /// `pair`: the register bit that chooses between the words.
  ByteMatrices(FragmentLoadOp op, const FragmentLayout &atom, unsigned pair);
};

NVIDIAMachine::ByteMatrices::ByteMatrices(FragmentLoadOp op,
                                          const FragmentLayout &atom,
                                          unsigned pair) {
  FragmentType type = op.getFragment().getType();
  unsigned upper = atom.layout.inLog2("register") - kLog2WordBytes,
           other = 1u << (pair - kLog2WordBytes);
  int64_t gridRows = atom.warpRows(type) / atom.fragmentRows(),
          gridCols = atom.warpCols(type) / atom.fragmentCols();
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
  words = size_t(gridRows * gridCols) << upper;
}

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

  ByteMatrices matrices(op, atom, pair);
  words.assign(matrices.words, Value());
  PairReads reads(lower, params, slot);
  const SharedTile &layout = reads.layout;
  // What of a warp's place is within a block is a term; blocks are added up.
  SmallVector<int64_t> parts;
  if (shares) {
    unsigned bits = llvm::Log2_64(atom.gridCols);
    while (parts.size() < bits && own << parts.size() < layout.blockCols)
      parts.push_back(reads.image(0, own << parts.size()));
    if (unsigned inside = parts.size(); inside < bits)
      reads.start = arith::AddIOp::create(
          b, reads.start,
          arith::MulIOp::create(
              b,
              arith::ShRUIOp::create(b, lower.gridCol(atom), lower.i32(inside)),
              lower.i32((own << inside) / layout.blockCols *
                        layout.blockBytes() / PairReads::kUnit)));
  }
  Values loaded;
  for (ArrayRef<Matrix> all = matrices.all; !all.empty();) {
    int64_t count = matricesAtOnce(all, layout.blockCols);
    std::optional<LinearAddress::Term> part;
    if (!parts.empty())
      part = LinearAddress::Term{lower.gridCol(atom), parts};
    Value read = reads.emit(all.take_front(count), part, /*transposed=*/true);
    for (int64_t w = 0; w < count; ++w)
      loaded.push_back(reads.wordOf(
          vector::ExtractOp::create(b, read, ArrayRef<int64_t>{w})));
    all = all.drop_front(count);
  }
  Value even = lower.i32(kEvenBytes), odd = lower.i32(kOddBytes);
  if (exchangesPairs(lower, op)) {
    Value upper = arith::CmpIOp::create(b, arith::CmpIPredicate::uge,
                                        lower.laneInWarp(), lower.i32(16));
    Value first = arith::SelectOp::create(b, upper, odd, even);
    odd = arith::SelectOp::create(b, upper, even, odd);
    even = first;
  }
  auto bytes = VectorType::get({4}, b.getI8Type()),
       single = VectorType::get({1}, b.getI32Type());
  for (auto [i, numbers] : llvm::enumerate(matrices.wordsOf))
    for (auto [number, selector] :
         {std::pair(numbers[0], even), {numbers[1], odd}}) {
      Value word = NVVM::PermuteOp::create(b, b.getI32Type(), loaded[2 * i],
                                           loaded[2 * i + 1], selector,
                                           NVVM::PermuteMode::DEFAULT);
      word = vector::FromElementsOp::create(b, single, ValueRange{word});
      words[number] =
          arith::BitcastOp::create(b, bytes.clone(type.getElementType()),
                                   vector::BitCastOp::create(b, bytes, word));
    }
  return success();
}
