//===- Folds.cpp - Transposed tiles without bank conflicts ----------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lanes that are served together share no bank if what their numbers differ by
// has images that are independent, as far as these bits choose banks. Of a
// column's bits that do not choose banks by themselves, each may also change
// some that do; which ones is a search over the bits, from the lowest on.
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Layout/Shared.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cassert>
#include <optional>

using namespace kvbuf;

/// Elements of a lane's word, which stay together.
static constexpr int64_t kWordElements = 8;
/// Folds that are looked at before a search is given up.
static constexpr unsigned kMostTries = 100000;

llvm::SmallVector<llvm::SmallVector<unsigned>>
kvbuf::lanesTogether(unsigned width, unsigned banks) {
  assert(llvm::isPowerOf2_32(width) && llvm::isPowerOf2_32(banks) &&
         banks * 4 >= width && "powers of two only");
  unsigned bits = llvm::Log2_32(banks * 4 / width);
  llvm::SmallVector<unsigned> inOrder, reported = {1, 2};
  for (unsigned bit = 0; bit < std::min(bits, 6u); ++bit)
    inOrder.push_back(1u << bit);
  if (width != 16 || bits < 3 || bits > 4)
    return {inOrder};
  // Eight lanes are one half of the sixteen, in which lane bits 2 and 3 differ
  // where bit 4 is set.
  if (bits == 3)
    reported.push_back(4 | 8);
  else
    reported.append({4 | 16, 8 | 16});
  return {inOrder, reported};
}

namespace {
/// The search for the folds of a tile's columns.
class FoldSearch {
public:
  FoldSearch(const TransposedTile &tile, llvm::ArrayRef<LaneAccess> accesses)
      : tile(tile), rowBytes(tile.keys * tile.elementBytes),
        window(tile.banks * 4), colBits(llvm::Log2_64_Ceil(tile.depth)) {
    this->tile.folds.assign(colBits, 0);
    // Few bits first, low ones before high ones. What is accessed at once
    // stays together, too.
    int64_t unit = kWordElements * tile.elementBytes;
    for (const LaneAccess &access : accesses)
      unit = std::max<int64_t>(unit, access.width);
    candidates.push_back(0);
    for (int64_t bit = unit; bit < window; bit *= 2)
      candidates.push_back(bit);
    for (int64_t high = 2 * unit; high < window; high *= 2)
      for (int64_t low = unit; low < high; low *= 2)
        candidates.push_back(high | low);
    for (const LaneAccess &access : accesses)
      for (llvm::ArrayRef<unsigned> lanes :
           lanesTogether(access.width, tile.banks)) {
        Together together{access.width, {}};
        for (unsigned lane : lanes) {
          LinearLayout::Coord at = {0, 0};
          bool known = true;
          for (unsigned bit = 0; lane >> bit; ++bit)
            if (lane >> bit & 1) {
              known &= bit < access.lanes.size();
              for (unsigned i = 0; known && i < 2; ++i)
                at[i] ^= access.lanes[bit][i];
            }
          // Lanes of elements that the tile lacks access nothing.
          if (known && at[0] < tile.keys && at[1] < int64_t(1) << colBits)
            together.differences.push_back(at);
        }
        all.push_back(together);
      }
  }

  std::optional<llvm::SmallVector<int64_t>> run() {
    if (!choose(0))
      return std::nullopt;
    return tile.folds;
  }

private:
  /// Elements that lanes which are served together differ by.
  struct Together {
    int64_t width;
    llvm::SmallVector<LinearLayout::Coord> differences;
  };

  /// Whether those that lie in columns whose first `bits` bits alone are set
  /// choose different banks.
  bool isFree(const Together &together, unsigned bits,
              const LinearLayout &layout) const {
    llvm::SmallVector<int64_t> basis;
    for (const LinearLayout::Coord &at : together.differences) {
      if (at[1] >> bits)
        continue;
      int64_t byte = layout.apply({{"row", at[0]}, {"col", at[1]}}, "byte");
      int64_t bank = byte & (window - 1) & -together.width;
      for (int64_t known : basis)
        bank = std::min(bank, bank ^ known);
      if (!bank)
        return false;
      basis.push_back(bank);
    }
    return true;
  }

  bool choose(unsigned bit) {
    if (++tries > kMostTries)
      return false;
    LinearLayout layout = tile.layout();
    for (const Together &together : all)
      if (!isFree(together, bit, layout))
        return false;
    if (bit == colBits)
      return true;
    for (int64_t fold : candidates) {
      // A bit that chooses a bank does so alone.
      if (fold && rowBytes << bit < window)
        break;
      tile.folds[bit] = fold;
      if (choose(bit + 1))
        return true;
    }
    tile.folds[bit] = 0;
    return false;
  }

  TransposedTile tile;
  int64_t rowBytes, window;
  unsigned colBits, tries = 0;
  llvm::SmallVector<int64_t> candidates;
  llvm::SmallVector<Together> all;
};
} // namespace

unsigned TransposedTile::avoidConflicts(llvm::ArrayRef<LaneAccess> accesses) {
  for (size_t count = accesses.size(); count > 0; --count)
    if (auto found = FoldSearch(*this, accesses.take_front(count)).run()) {
      folds = *found;
      return count;
    }
  folds.clear();
  return 0;
}
