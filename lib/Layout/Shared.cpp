//===- Shared.cpp - Layouts of tiles in shared memory (LDS) ---------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Layout/Shared.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cassert>

using namespace kvbuf;

/// The byte offset of an element in its block.
static int64_t offsetInBlock(const SharedTile &tile, int64_t row, int64_t col) {
  int64_t linear = (row * tile.blockCols + col) * tile.elementBytes;
  int64_t unit = tile.swizzle.unit;
  return tile.swizzle(linear / unit) * unit + linear % unit;
}

LinearLayout SharedTile::block() const {
  assert(llvm::isPowerOf2_64(blockCols) && llvm::isPowerOf2_32(elementBytes) &&
         "a row is 2^a x 2^b");
  // A shift of 0 would clear bits instead of moving vectors.
  assert((swizzle.bits == 0 || swizzle.shift > 0) &&
         (swizzle.second.bits == 0 || swizzle.second.shift > 0) &&
         "not a permutation");
  llvm::SmallVector<LinearLayout::Coord> rowBases, colBases;
  for (int64_t row = 1; row < rows; row *= 2)
    rowBases.push_back({offsetInBlock(*this, row, 0)});
  for (int64_t col = 1; col < blockCols; col *= 2)
    colBases.push_back({offsetInBlock(*this, 0, col)});
  return LinearLayout(
      {"row", "col"}, {rowBases, colBases},
      {LinearLayout::Dim{"byte", llvm::Log2_64_Ceil(blockBytes())}});
}

int64_t SharedTile::byteOffset(int64_t row, int64_t col) const {
  assert(row >= 0 && row < rows && col >= 0 && col < cols() &&
         "outside the tile");
  return col / blockCols * blockBytes() +
         offsetInBlock(*this, row, col % blockCols);
}

LinearLayout TransposedTile::layout() const {
  assert(llvm::isPowerOf2_64(keys) && "a power of two of keys");
  int64_t rowBytes = keys * elementBytes;
  llvm::SmallVector<LinearLayout::Coord> rows, cols;
  for (unsigned bit = 0; bit < llvm::Log2_64(keys); ++bit) {
    unsigned position = bit < keyBits.size() ? keyBits[bit] : bit;
    rows.push_back({int64_t(elementBytes) << position});
  }
  unsigned bits = llvm::Log2_64_Ceil(depth);
  for (unsigned bit = 0; bit < bits; ++bit)
    cols.push_back({rowBytes << bit | (bit < folds.size() ? folds[bit] : 0)});
  return LinearLayout(
      {"row", "col"}, {rows, cols},
      {LinearLayout::Dim{"byte", unsigned(llvm::Log2_64(rowBytes)) + bits}});
}

Swizzle kvbuf::conflictFreeSwizzle(int64_t rowBytes, unsigned banks,
                                   unsigned unit) {
  assert(llvm::isPowerOf2_64(rowBytes) && rowBytes >= unit &&
         llvm::isPowerOf2_32(banks) && banks >= 4 &&
         llvm::isPowerOf2_32(unit) && unit >= 4 && "powers of two only");
  // log2 of the vectors in a row, and in all banks together.
  unsigned inRow = llvm::Log2_64(rowBytes / unit);
  unsigned inBanks = llvm::Log2_32(banks * 4 / unit);
  // The low bits of a vector's index choose its banks. In a column of vectors
  // those of them that count columns are equal; the lowest row bits that do
  // not choose banks take their place. Long rows: the lowest of all row bits.
  return {std::min(inRow, inBanks), 0, std::max(inRow, inBanks), unit};
}

int64_t kvbuf::bankCycles(llvm::ArrayRef<int64_t> laneBytes, unsigned width,
                          unsigned group, unsigned banks, int64_t &ideal) {
  assert(width > 0 && group > 0 && banks > 0 && "sizes are positive");
  struct Word {
    int64_t index;
    int next; // In the same bank, or -1.
  };
  llvm::SmallVector<Word, 64> words;
  llvm::SmallVector<int, 64> first(banks), count(banks);

  int64_t cycles = 0;
  ideal = 0;
  for (size_t begin = 0; begin < laneBytes.size(); begin += group) {
    words.clear();
    std::fill(first.begin(), first.end(), -1);
    std::fill(count.begin(), count.end(), 0);
    int most = 0;
    for (int64_t address : laneBytes.slice(
             begin, std::min<size_t>(group, laneBytes.size() - begin))) {
      if (address < 0)
        continue;
      for (int64_t index = address / 4, last = (address + width - 1) / 4;
           index <= last; ++index) {
        unsigned bank = static_cast<unsigned>(index % banks);
        int known = first[bank];
        while (known >= 0 && words[known].index != index)
          known = words[known].next;
        if (known >= 0)
          continue;
        words.push_back({index, first[bank]});
        first[bank] = static_cast<int>(words.size()) - 1;
        most = std::max(most, ++count[bank]);
      }
    }
    cycles += most;
    ideal += llvm::divideCeil(words.size(), banks);
  }
  return cycles;
}
