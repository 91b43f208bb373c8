//===- Fragments.cpp - Matrix-instruction operand layouts -----------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Layout/Fragments.h"
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

/// An 8x8 matrix over 32 lanes: every lane holds two elements that are adjacent
/// along `minor`, four lanes cover `minor`, eight groups of four `major`.
LinearLayout quad8x8(llvm::StringRef major, llvm::StringRef minor) {
  return along("register", minor, 1) * along("lane", minor, 2) *
         along("lane", major, 3);
}
} // namespace

MmaLayouts kvbuf::mmaSyncM16N8K16() {
  MmaLayouts layouts;
  layouts.m = 16;
  layouts.n = 8;
  layouts.k = 16;
  // A: registers 2, 3 are 8 rows below 0, 1; registers 4 to 7 repeat that
  // 8 columns to the right. B and C have two 8x8 matrices, below each other.
  layouts.a = ordered(quad8x8("row", "col") * along("register", "row", 1) *
                      along("register", "col", 1));
  layouts.b = ordered(quad8x8("col", "row") * along("register", "row", 1));
  layouts.c = ordered(quad8x8("row", "col") * along("register", "row", 1));
  return layouts;
}

std::optional<MmaLayouts> kvbuf::mfma16Bit(int64_t m, int64_t n, int64_t k) {
  bool known = (m == 32 && n == 32 && (k == 8 || k == 16)) ||
               (m == 16 && n == 16 && (k == 16 || k == 32));
  if (!known)
    return std::nullopt;

  // 64 lanes are m rows (columns, for B) times `groups` groups along k.
  const unsigned log2Lanes = 6;
  unsigned side = llvm::Log2_64(m);
  unsigned groups = log2Lanes - side;
  unsigned perLane = llvm::Log2_64(k) - groups;

  MmaLayouts layouts;
  layouts.m = m;
  layouts.n = n;
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

LinearLayout kvbuf::ldmatrixFragment(unsigned log2Count, bool transposed) {
  assert(log2Count <= 2 && "ldmatrix loads 1, 2 or 4 matrices");
  LinearLayout matrix =
      transposed ? quad8x8("col", "row") : quad8x8("row", "col");
  return ordered(matrix * along("register", "row", log2Count));
}
