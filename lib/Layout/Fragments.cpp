//===- Fragments.cpp - Matrix-instruction operand layouts -----------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Layout/Fragments.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MathExtras.h"
#include <cassert>

using namespace kvbuf;

namespace {
/// 2^log2Size values of a hardware coordinate that walk along `out`.
LinearLayout along(llvm::StringRef in, llvm::StringRef out, unsigned log2Size) {
  return LinearLayout::identity(in, out, log2Size);
}

/// The layout with its dimensions in the order that Fragments.h promises.
LinearLayout ordered(const LinearLayout &layout) {
  return layout.restrictIn({"register", "lane"}).restrictOut({"row", "col"});
}

/// A matrix of 8 words of 32 bits by 8 over 32 lanes: every lane holds a word,
/// of 2^log2Word elements that are adjacent along `minor`; four lanes cover
/// `minor`, eight groups of four `major`.
LinearLayout quad(llvm::StringRef major, llvm::StringRef minor,
                  unsigned log2Word) {
  return along("register", minor, log2Word) * along("lane", minor, 2) *
         along("lane", major, 3);
}
LinearLayout quad8x8(llvm::StringRef major, llvm::StringRef minor) {
  return quad(major, minor, 1);
}

/// 2^log2Count of `mma.sync.m16n8k<k>`, side by side, whose words have
/// 2^log2Word elements of A and B.
MmaLayouts mmaSync(int64_t k, unsigned log2Word, unsigned log2Count = 0) {
  MmaLayouts layouts;
  layouts.m = 16;
  layouts.n = int64_t(8) << log2Count;
  layouts.k = k;
  // A: the second word is 8 rows below the first; the upper two repeat that
  // half of k to the right. B and C have two matrices, below each other.
  layouts.a =
      ordered(quad("row", "col", log2Word) * along("register", "row", 1) *
              along("register", "col", 1));
  layouts.b =
      ordered(quad("col", "row", log2Word) * along("register", "row", 1) *
              along("register", "col", log2Count));
  layouts.c = ordered(quad8x8("row", "col") * along("register", "row", 1) *
                      along("register", "col", log2Count));
  return layouts;
}
} // namespace

llvm::StringRef kvbuf::matrixUnitName(MatrixUnit unit) {
  switch (unit) {
  case MatrixUnit::MmaSync:
    return "mma_sync";
  case MatrixUnit::Wgmma:
    return "wgmma";
  case MatrixUnit::Mfma:
    return "mfma";
  case MatrixUnit::Wmma:
    return "wmma";
  }
  llvm_unreachable("all matrix units are named");
}

std::optional<MatrixUnit> kvbuf::matrixUnit(llvm::StringRef name) {
  for (MatrixUnit unit : {MatrixUnit::MmaSync, MatrixUnit::Wgmma,
                          MatrixUnit::Mfma, MatrixUnit::Wmma})
    if (name == matrixUnitName(unit))
      return unit;
  return std::nullopt;
}

int64_t kvbuf::warpsTogether(MatrixUnit unit) {
  return unit == MatrixUnit::Wgmma ? 4 : 1;
}

/// Elements of an operand in a lane that one read of LDS gives, at most: 16
/// bytes of 8-bit ones.
static constexpr int64_t mostInLane = 16;

static MmaLayouts mfmaLayouts(int64_t m, int64_t k);

/// Whether CDNA4 has a scaled MFMA of that shape, for operands of 8 bits and
/// fewer. A lane of A holds k/(64/m) elements of a row; in which order of k,
/// products do not show.
static bool isScaledMfma(int64_t m, int64_t n, int64_t k) {
  return n == m && ((m == 32 && k == 64) || (m == 16 && k == 128));
}

std::optional<MmaLayouts> kvbuf::matrixLayouts(MatrixUnit unit, int64_t m,
                                               int64_t n, int64_t k) {
  if (unit == MatrixUnit::Mfma) {
    // A group of any of the instructions of m x n is as one of that k.
    bool isGroup = (m == 32 || m == 16) && n == m && llvm::isPowerOf2_64(k) &&
                   m * k >= 4 * 64 && m * k <= mostInLane * 64;
    return isGroup || isScaledMfma(m, n, k) ? std::optional(mfmaLayouts(m, k))
                                            : std::nullopt;
  }
  // A warp's rows of `wgmma` lie as those of `mma.sync` do.
  if (unit == MatrixUnit::Wgmma)
    return m == 64 && n == 8 ? matrixLayouts(MatrixUnit::MmaSync, 16, n, k)
                             : std::nullopt;
  if (unit == MatrixUnit::Wmma)
    return m == 16 && n == 16 && k == 32 ? std::optional(wmmaM16N16K32())
                                         : std::nullopt;
  if (m == 16 && n == 8 && k == 16)
    return mmaSyncM16N8K16();
  if (m == 16 && n == 8 && k == 32)
    return mmaSyncM16N8K32();
  if (m == 16 && n == 16 && k == 32)
    return mmaSyncM16N16K32();
  return std::nullopt;
}

int64_t kvbuf::wordElements(MatrixUnit unit, int64_t m, int64_t k) {
  switch (unit) {
  case MatrixUnit::MmaSync:
  case MatrixUnit::Wgmma:
    // A's 16 rows are four registers in each of 32 lanes.
    return k / 8;
  case MatrixUnit::Mfma:
    return m * k / 64;
  case MatrixUnit::Wmma:
    return m * k / 32;
  }
  llvm_unreachable("a unit without words");
}

MmaLayouts kvbuf::wmmaM16N16K32() {
  MmaLayouts layouts;
  layouts.m = 16;
  layouts.n = 16;
  layouts.k = 32;
  // Vectors of 16 bytes; the halves of the wave take turns along k.
  auto operand = [](llvm::StringRef side, llvm::StringRef k) {
    return ordered(along("register", k, 3) * along("lane", side, 4) *
                   along("lane", k, 1) * along("register", k, 1));
  };
  layouts.a = operand("row", "col");
  layouts.b = operand("col", "row");
  layouts.c = ordered(along("register", "row", 3) * along("lane", "col", 4) *
                      along("lane", "row", 1));
  return layouts;
}

MmaLayouts kvbuf::mmaSyncM16N8K16() { return mmaSync(16, 1); }

MmaLayouts kvbuf::mmaSyncM16N8K32() { return mmaSync(32, 2); }

MmaLayouts kvbuf::mmaSyncM16N16K32() { return mmaSync(32, 2, 1); }

std::optional<MmaLayouts> kvbuf::mfma16Bit(int64_t m, int64_t n, int64_t k) {
  bool known = (m == 32 && n == 32 && (k == 8 || k == 16)) ||
               (m == 16 && n == 16 && (k == 16 || k == 32));
  return known ? std::optional(mfmaLayouts(m, k)) : std::nullopt;
}

/// The layouts of an MFMA of shape m x m x k, or of a group of them.
static MmaLayouts mfmaLayouts(int64_t m, int64_t k) {
  // 64 lanes are m rows (columns, for B) times `groups` groups along k.
  const unsigned log2Lanes = 6;
  unsigned side = llvm::Log2_64(m);
  unsigned groups = log2Lanes - side;
  unsigned perLane = llvm::Log2_64(k) - groups;

  MmaLayouts layouts;
  layouts.m = m;
  layouts.n = m;
  layouts.k = k;
  layouts.a =
      ordered(along("register", "col", perLane) * along("lane", "row", side) *
              along("lane", "col", groups));
  layouts.b =
      ordered(along("register", "row", perLane) * along("lane", "col", side) *
              along("lane", "row", groups));
  // C: a lane has one column; four registers walk down four rows, the lane
  // groups follow, then the remaining registers.
  layouts.c = ordered(along("register", "row", 2) * along("lane", "col", side) *
                      along("lane", "row", groups) *
                      along("register", "row", side - 2 - groups));
  return layouts;
}

LinearLayout kvbuf::transposed(const LinearLayout &fragment) {
  return fragment.renameOut("row", "tmp")
      .renameOut("col", "row")
      .renameOut("tmp", "col")
      .restrictOut({"row", "col"});
}

std::optional<LinearLayout>
kvbuf::contractionOrder(const LinearLayout &operand,
                        const LinearLayout &accumulator) {
  unsigned bits = operand.outLog2("col");
  // Position of an operand's column bit -> column that stands there.
  llvm::SmallVector<int64_t> order(bits, 0);
  int64_t taken = 0;
  auto place = [&](int64_t position, int64_t column) {
    if (!llvm::isPowerOf2_64(position) || !llvm::isPowerOf2_64(column) ||
        column >= int64_t(1) << bits || (taken & column) ||
        order[llvm::Log2_64(position)])
      return false;
    order[llvm::Log2_64(position)] = column;
    taken |= column;
    return true;
  };
  if (operand.inLog2("lane") != accumulator.inLog2("lane"))
    return std::nullopt;
  for (unsigned bit = 0; bit < operand.inLog2("lane"); ++bit) {
    if (operand.basis("lane", bit, "row") !=
        accumulator.basis("lane", bit, "row"))
      return std::nullopt;
    int64_t position = operand.basis("lane", bit, "col"),
            column = accumulator.basis("lane", bit, "col");
    if ((position || column) && !place(position, column))
      return std::nullopt;
  }
  // What a lane holds itself may come in any order: ascending.
  int64_t next = 1;
  for (unsigned bit = 0; bit < operand.inLog2("register"); ++bit) {
    int64_t position = operand.basis("register", bit, "col");
    if (!position)
      continue;
    while (taken & next)
      next *= 2;
    if (!place(position, next))
      return std::nullopt;
  }
  llvm::SmallVector<LinearLayout::Coord> images;
  for (int64_t column : order)
    images.push_back({column});
  return LinearLayout({"col"}, {images}, {LinearLayout::Dim{"col", bits}});
}

std::optional<LinearLayout>
kvbuf::transposedAmongLanes(const LinearLayout &fragment) {
  if (fragment.inLog2("register") < 1 || fragment.inLog2("lane") != 5)
    return std::nullopt;
  // The matrix's columns are the word's elements and the lower two lane bits,
  // its rows the upper three: they change places.
  llvm::SmallVector<LinearLayout::Coord> registers{fragment.basis("lane", 2)},
      lanes{fragment.basis("lane", 3), fragment.basis("lane", 4),
            fragment.basis("register", 0), fragment.basis("lane", 0),
            fragment.basis("lane", 1)};
  for (unsigned bit = 1; bit < fragment.inLog2("register"); ++bit)
    registers.push_back(fragment.basis("register", bit));
  return LinearLayout({"register", "lane"}, {registers, lanes},
                      fragment.outDims());
}

LinearLayout kvbuf::reordered(const LinearLayout &operand, llvm::StringRef out,
                              const LinearLayout &order) {
  llvm::StringRef other = out == "row" ? "col" : "row";
  LinearLayout keep =
      LinearLayout::identity(other, other, operand.outLog2(other));
  LinearLayout turn = order.renameIn("col", "tmp")
                          .renameOut("col", "tmp")
                          .renameIn("tmp", out)
                          .renameOut("tmp", out);
  return operand.compose(keep * turn).restrictOut({"row", "col"});
}

llvm::SmallVector<int64_t> kvbuf::ownElementsFirst(const LinearLayout &fragment,
                                                   llvm::StringRef out) {
  unsigned bits = fragment.outLog2(out);
  llvm::SmallVector<int64_t> order(bits, 0);
  int64_t next = 1;
  bool natural = true;
  for (llvm::StringRef in : {"register", "lane"})
    for (unsigned bit = 0; bit < fragment.inLog2(in); ++bit) {
      int64_t position = fragment.basis(in, bit, out);
      if (!llvm::isPowerOf2_64(position))
        continue;
      order[llvm::Log2_64(position)] = next;
      natural &= position == next;
      next *= 2;
    }
  if (natural)
    order.clear();
  return order;
}

std::optional<LinearLayout>
kvbuf::transposedRead16(const LinearLayout &fragment) {
  auto is = [&](llvm::StringRef in, unsigned bit, int64_t row, int64_t col) {
    return fragment.basis(in, bit, "row") == row &&
           fragment.basis(in, bit, "col") == col;
  };
  if (fragment.inLog2("register") != 2 || fragment.inLog2("lane") < 4 ||
      !is("register", 0, 1, 0) || !is("register", 1, 2, 0))
    return std::nullopt;
  for (unsigned bit = 0; bit < 4; ++bit)
    if (!is("lane", bit, 0, int64_t(1) << bit))
      return std::nullopt;
  llvm::SmallVector<LinearLayout::Coord> lanes{{0, 4}, {0, 8}, {1, 0}, {2, 0}};
  for (unsigned bit = 4; bit < fragment.inLog2("lane"); ++bit)
    lanes.push_back({fragment.basis("lane", bit, "row"),
                     fragment.basis("lane", bit, "col")});
  return LinearLayout({"lane"}, {lanes}, fragment.outDims());
}

std::optional<LinearLayout>
kvbuf::transposedRead128(const LinearLayout &fragment) {
  constexpr unsigned bits = 3;
  if (fragment.inLog2("register") != bits || fragment.inLog2("lane") < bits)
    return std::nullopt;
  llvm::SmallVector<LinearLayout::Coord> lanes;
  for (unsigned bit = 0; bit < bits; ++bit) {
    LinearLayout::Coord row = {int64_t(1) << bit, 0},
                        col = {0, int64_t(1) << bit};
    if (fragment.basis("register", bit) != row ||
        fragment.basis("lane", bit) != col)
      return std::nullopt;
    lanes.push_back(row);
  }
  for (unsigned bit = bits; bit < fragment.inLog2("lane"); ++bit)
    lanes.push_back(fragment.basis("lane", bit));
  return LinearLayout({"lane"}, {lanes}, fragment.outDims());
}

LinearLayout kvbuf::ldmatrixFragment(unsigned log2Count, bool transposed) {
  assert(log2Count <= 2 && "ldmatrix loads 1, 2 or 4 matrices");
  LinearLayout matrix =
      transposed ? quad8x8("col", "row") : quad8x8("row", "col");
  return ordered(matrix * along("register", "row", log2Count));
}
