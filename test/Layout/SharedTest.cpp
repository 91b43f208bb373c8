//===- SharedTest.cpp - Blocked tiles, swizzles and bank conflicts --------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Layout/Shared.h"
#include "Properties.h"
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

using namespace kvbuf;
using kvbuf::test::Properties;

namespace {
using Addresses = std::vector<int64_t>;

std::string describe(const SharedTile &tile) {
  return std::to_string(tile.rows) + " x " + std::to_string(tile.repeats) +
         " * " + std::to_string(tile.blockCols) + ", swizzle (" +
         std::to_string(tile.swizzle.bits) + ", " +
         std::to_string(tile.swizzle.base) + ", " +
         std::to_string(tile.swizzle.shift) + ") and (" +
         std::to_string(tile.swizzle.second.bits) + ", " +
         std::to_string(tile.swizzle.second.base) + ", " +
         std::to_string(tile.swizzle.second.shift) + ")";
}

/// The definition of a tile's physical offset, in elements: blocks one after
/// the other, each row-major.
std::string isBlocked(const SharedTile &tile) {
  for (int64_t row = 0; row < tile.rows; ++row)
    for (int64_t col = 0; col < tile.cols(); ++col) {
      int64_t elements = col / tile.blockCols * tile.rows * tile.blockCols +
                         row * tile.blockCols + col % tile.blockCols;
      if (tile.byteOffset(row, col) != elements * tile.elementBytes)
        return describe(tile) + ": (" + std::to_string(row) + ", " +
               std::to_string(col) + ")";
    }
  return "";
}

/// A swizzled tile holds each element once, keeps blocks and the swizzle's
/// vectors together, and its `block()` says the same.
std::string isPermutation(const SharedTile &tile) {
  LinearLayout block = tile.block();
  if (!block.isInjective())
    return describe(tile) + ": its block is not injective";
  std::set<int64_t> offsets;
  for (int64_t row = 0; row < tile.rows; ++row)
    for (int64_t col = 0; col < tile.cols(); ++col) {
      int64_t offset = tile.byteOffset(row, col);
      offsets.insert(offset);
      int64_t start = col / tile.blockCols * tile.blockBytes();
      int64_t unit = tile.swizzle.unit;
      int64_t inVector = col * tile.elementBytes % unit;
      if (offset < 0 || offset % tile.elementBytes != 0 ||
          offset / tile.blockBytes() != col / tile.blockCols ||
          offset % unit != inVector)
        return describe(tile) + ": (" + std::to_string(row) + ", " +
               std::to_string(col) + ") is at " + std::to_string(offset);
      if (block.apply({{"row", row}, {"col", col % tile.blockCols}}, "byte") !=
          offset - start)
        return describe(tile) + ": block() differs";
    }
  if (static_cast<int64_t>(offsets.size()) != tile.rows * tile.cols())
    return describe(tile) + ": two elements share an offset";
  if (*offsets.rbegin() != tile.bytes() - tile.elementBytes)
    return describe(tile) + ": not dense";
  return "";
}

void tiles(Properties &properties) {
  std::string formula, permutation;
  struct Shape {
    int64_t rows, blockCols, repeats;
    unsigned elementBytes;
  };
  for (auto [rows, blockCols, repeats, elementBytes] :
       {Shape{64, 64, 2, 2}, Shape{64, 16, 5, 2}, Shape{128, 32, 3, 2},
        Shape{64, 64, 9, 2}, Shape{32, 64, 9, 1}, Shape{128, 128, 1, 2},
        Shape{16, 32, 4, 4}}) {
    SharedTile tile{rows, blockCols, repeats, elementBytes, {}};
    formula += isBlocked(tile);
    permutation += isPermutation(tile);
    for (unsigned banks : {32u, 64u}) {
      tile.swizzle = conflictFreeSwizzle(blockCols * elementBytes, banks);
      permutation += isPermutation(tile);
    }
    tile.swizzle = {3, 0, 4};
    permutation += isPermutation(tile);
    tile.swizzle = {3, 0, 3, 16, {2, 0, 4}};
    permutation += isPermutation(tile);
    tile.swizzle = {2, 0, 4, 16, {1, 1, 3}};
    permutation += isPermutation(tile);
    tile.swizzle = conflictFreeSwizzle(blockCols * elementBytes, 32, 8);
    permutation += isPermutation(tile);
  }
  properties.holds("an unswizzled tile is blocks of rows", formula);
  properties.holds("a swizzled tile is a permutation of vectors in a block",
                   permutation);

  SharedTile swizzled{64, 64, 2, 2, {3, 0, 3}};
  properties.catches("a swizzled tile is not blocks of rows",
                     isBlocked(swizzled));

  std::string involution, others;
  for (Swizzle swizzle :
       {Swizzle{3, 0, 4}, Swizzle{3, 0, 3}, Swizzle{2, 0, 2}, Swizzle{2, 1, 3},
        Swizzle{2, 0, 4, 16, {1, 1, 3}}, Swizzle{1, 0, 1, 16, {1, 0, 2}},
        // Bits that are changed themselves: by the term, by the other one.
        Swizzle{3, 0, 2}, Swizzle{1, 0, 1, 16, {1, 1, 1}},
        Swizzle{1, 1, 1, 16, {1, 0, 1}}}) {
    bool undone = true;
    for (int64_t x = 0; x < 4096; ++x)
      undone &= swizzle(swizzle(x)) == x;
    if (undone != swizzle.isInvolution())
      involution += describe({1, 1, 1, 1, swizzle});
  }
  properties.holds("a swizzle that changes no bit that it looks at is undone "
                   "by itself, and no other is",
                   involution);

  // By the definition, in rows of four vectors: what the terms say, added bit
  // by bit.
  std::string sum;
  Swizzle two{2, 0, 4, 16, {1, 1, 3}};
  for (int64_t row = 0; row < 64; ++row)
    for (int64_t vector = 0; vector < 4; ++vector) {
      int64_t low = row >> 2 & 1, high = row >> 3 & 1;
      int64_t moved = vector ^ low ^ 2 * (high ^ low);
      if (two(row * 4 + vector) != row * 4 + moved)
        sum += " row " + std::to_string(row);
    }
  properties.holds("the terms of a swizzle are added", sum);
}

/// Bank cycles written from the definition, slowly.
int64_t slowCycles(const Addresses &lanes, unsigned width, unsigned group,
                   unsigned banks) {
  int64_t cycles = 0;
  for (size_t begin = 0; begin < lanes.size(); begin += group) {
    std::map<int64_t, std::set<int64_t>> byBank;
    size_t most = 0;
    for (size_t i = begin; i < std::min(lanes.size(), begin + group); ++i)
      for (int64_t byte = 0; lanes[i] >= 0 && byte < width; ++byte) {
        int64_t word = (lanes[i] + byte) / 4;
        byBank[word % banks].insert(word);
        most = std::max(most, byBank[word % banks].size());
      }
    cycles += static_cast<int64_t>(most);
  }
  return cycles;
}

void counting(Properties &properties) {
  std::string failure;
  std::mt19937 random(5);
  for (unsigned width : {1u, 2u, 4u, 8u, 16u})
    for (unsigned banks : {32u, 64u})
      for (unsigned group : {8u, 16u, 32u})
        for (int round = 0; round < 20; ++round) {
          Addresses lanes;
          for (int lane = 0; lane < 64; ++lane)
            lanes.push_back(
                random() % 8 == 0 ? -1 : int64_t(random() % 256) * width);
          int64_t ideal;
          int64_t got = bankCycles(lanes, width, group, banks, ideal);
          if (got != slowCycles(lanes, width, group, banks) || ideal > got)
            failure = "width " + std::to_string(width) + ", banks " +
                      std::to_string(banks) + ", group " +
                      std::to_string(group);
        }
  properties.holds("bank cycles agree with their definition", failure);

  auto cycles = [](int64_t stride, unsigned width, unsigned group) {
    Addresses lanes;
    for (int64_t lane = 0; lane < 32; ++lane)
      lanes.push_back(lane * stride);
    int64_t ideal;
    int64_t got = bankCycles(lanes, width, group, 32, ideal);
    return std::pair(got, ideal);
  };
  using Pair = std::pair<int64_t, int64_t>;
  bool known = cycles(4, 4, 32) == Pair(1, 1) &&    // One word a bank.
               cycles(0, 4, 32) == Pair(1, 1) &&    // A broadcast.
               cycles(128, 4, 32) == Pair(32, 1) && // All in one bank.
               cycles(8, 4, 32) == Pair(2, 1) &&    // Every other bank.
               cycles(8, 8, 16) == Pair(2, 2) &&    // Two half-warps.
               cycles(16, 16, 8) == Pair(4, 4);     // Four quarters.
  properties.holds("known access patterns take known cycles",
                   known ? "" : "another number");
}

/// The largest (cycles - ideal) over all groups of `lanes` lanes that read one
/// vector of `width` bytes each of consecutive rows, for every aligned group of
/// rows and every vector of a row; negative if an ideal is not one cycle.
int64_t worstColumnRead(const SharedTile &tile, unsigned lanes, unsigned banks,
                        unsigned width = 16) {
  int64_t worst = 0, perVector = width / tile.elementBytes;
  for (int64_t first = 0; first < tile.rows; first += lanes)
    for (int64_t col = 0; col < tile.cols(); col += perVector) {
      Addresses addresses;
      for (unsigned lane = 0; lane < lanes; ++lane)
        addresses.push_back(tile.byteOffset(first + lane, col));
      int64_t ideal;
      int64_t cycles = bankCycles(addresses, width, lanes, banks, ideal);
      if (ideal != 1)
        return -1;
      worst = std::max(worst, cycles - ideal);
    }
  return worst;
}

/// The same for lanes that walk the vectors of a row, then the next row.
int64_t worstRowWrite(const SharedTile &tile, unsigned lanes, unsigned banks) {
  int64_t worst = 0, perVector = 16 / tile.elementBytes;
  int64_t inRow = tile.blockCols / perVector;
  for (int64_t first = 0; first < tile.rows * inRow; first += lanes) {
    Addresses addresses;
    for (unsigned lane = 0; lane < lanes; ++lane)
      addresses.push_back(tile.byteOffset((first + lane) / inRow,
                                          (first + lane) % inRow * perVector));
    int64_t ideal;
    int64_t cycles = bankCycles(addresses, 16, lanes, banks, ideal);
    if (ideal != 1)
      return -1;
    worst = std::max(worst, cycles - ideal);
  }
  return worst;
}

void conflicts(Properties &properties) {
  for (unsigned banks : {32u, 64u})
    for (int64_t rowBytes : {16, 32, 64, 128, 256, 512}) {
      // As many lanes as move all banks once.
      unsigned lanes = banks / 4;
      SharedTile tile{64, rowBytes / 2, 1, 2, {}};
      std::string name = std::to_string(rowBytes) + "-byte rows, " +
                         std::to_string(banks) + " banks: ";
      // Without a swizzle, 16-byte vectors `rowBytes` apart meet again after
      // all banks; as many as there are lanes share them.
      int64_t conflict = std::min<int64_t>(lanes, rowBytes / 16) - 1;
      properties.holds(name + "conflicts without a swizzle",
                       worstColumnRead(tile, lanes, banks) == conflict
                           ? ""
                           : "another number of cycles");
      tile.swizzle = conflictFreeSwizzle(rowBytes, banks);
      int64_t read = worstColumnRead(tile, lanes, banks);
      int64_t write = worstRowWrite(tile, lanes, banks);
      properties.holds(name + "reads of a column of vectors are ideal",
                       read == 0 ? "" : std::to_string(read));
      properties.holds(name + "writes of whole rows are ideal",
                       write == 0 ? "" : std::to_string(write));
    }

  // Half a vector of each of twice as many rows: whole vectors change places in
  // vain.
  for (int64_t rowBytes : {16, 32, 64, 128, 256}) {
    SharedTile tile{64, rowBytes, 1, 1, conflictFreeSwizzle(rowBytes, 32)};
    std::string name =
        std::to_string(rowBytes) + "-byte rows, 8 bytes a lane: ";
    properties.holds(name + "16-byte vectors keep halves together",
                     worstColumnRead(tile, 16, 32, 8) == 1
                         ? ""
                         : "another number of cycles");
    tile.swizzle = conflictFreeSwizzle(rowBytes, 32, 8);
    int64_t read = worstColumnRead(tile, 16, 32, 8);
    properties.holds(name + "reads of a column of halves are ideal",
                     read == 0 ? "" : std::to_string(read));
  }

  // A swizzle of the wrong distance is seen: the XORed row bits choose banks
  // already.
  SharedTile wrong{64, 32, 1, 2, {2, 0, 2}};
  properties.catches("a swizzle that takes the wrong row bits",
                     worstColumnRead(wrong, 8, 32) == 0 ? "" : "conflicts");
}

/// `ds_read_b128` of one K fragment: lane = row mod `side`, then the vector in
/// the row; `first` is the vector of lane 0. Lanes in the order served.
Addresses fragmentRead(const SharedTile &tile, int64_t side, int64_t first,
                       bool interleaved) {
  // The order in which CDNA is reported to serve 32 lanes of a b128 access.
  static const int order[] = {0,  1,  2,  3,  12, 13, 14, 15, 20, 21, 22,
                              23, 24, 25, 26, 27, 4,  5,  6,  7,  8,  9,
                              10, 11, 16, 17, 18, 19, 28, 29, 30, 31};
  Addresses addresses;
  for (int64_t i = 0; i < 64; ++i) {
    int64_t lane = interleaved ? i / 32 * 32 + order[i % 32] : i;
    addresses.push_back(
        tile.byteOffset(lane % side, (first + lane / side) * 8));
  }
  return addresses;
}

/// The cycles beyond the ideal of all reads of a tile's fragments; negative if
/// the ideal is not that of 1 KiB moved at `banks` * 4 bytes a cycle.
int64_t lostCycles(const SharedTile &tile, int64_t side, unsigned banks,
                   bool interleaved) {
  int64_t lost = 0, inRow = tile.blockCols * tile.elementBytes / 16;
  for (int64_t first = 0; first < inRow; first += 64 / side) {
    int64_t ideal;
    lost += bankCycles(fragmentRead(tile, side, first, interleaved), 16,
                       banks / 4, banks, ideal) -
            ideal;
    if (ideal != 1024 / (banks * 4))
      return -1;
  }
  return lost;
}

void amdFragments(Properties &properties) {
  struct Case {
    int64_t side;
    unsigned banks;
    Swizzle swizzle;
    /// Whether each order of service is free of conflicts.
    bool consecutive, interleaved;
  };
  // 64-byte rows (BK = 32); the seeds' swizzles and ours. On 64 banks no
  // swizzle of one term suits 16-row fragments in both orders; the seeds'
  // (3, 0, 3) suits the order that CDNA is reported to use.
  for (auto [side, banks, swizzle, consecutive, interleaved] :
       {Case{32, 64, {3, 0, 4}, true, true},
        Case{32, 64, conflictFreeSwizzle(64, 64), true, true},
        Case{16, 64, {3, 0, 3}, false, true},
        Case{16, 64, conflictFreeSwizzle(64, 64), true, false},
        Case{16, 64, {3, 0, 3, 16, {2, 0, 4}}, true, true},
        Case{32, 64, {3, 0, 3, 16, {2, 0, 4}}, true, true},
        Case{16, 64, {2, 0, 4, 16, {1, 1, 3}}, true, true},
        // Bit 2 of a row moves vectors by 1, bit 3 by 3.
        Case{16, 64, {2, 0, 4, 16, {1, 0, 5}}, true, false},
        Case{32, 32, conflictFreeSwizzle(64, 32), true, true},
        Case{16, 32, conflictFreeSwizzle(64, 32), true, true},
        Case{32, 64, {}, false, false}, Case{16, 64, {}, false, false},
        Case{32, 32, {}, false, false}, Case{16, 32, {}, false, false}}) {
    SharedTile tile{32, 32, 1, 2, swizzle};
    for (bool order : {false, true}) {
      int64_t lost = lostCycles(tile, side, banks, order);
      std::string name = "ds_read_b128 of K for " + std::to_string(side) +
                         "-row MFMA, " + std::to_string(banks) + " banks, " +
                         (order ? "interleaved" : "consecutive") + ", " +
                         describe(tile);
      std::string failure =
          lost == 0 ? "" : std::to_string(lost) + " cycles lost";
      if (order ? interleaved : consecutive)
        properties.holds(name, failure);
      else
        properties.catches(name, failure);
    }
  }

  // "No swizzle of one term": all that keep vectors in a tile of 32 rows.
  std::string found;
  for (unsigned bits = 0; bits <= 7; ++bits)
    for (unsigned base = 0; base + bits <= 7; ++base)
      for (unsigned shift = 1; base + shift < 7; ++shift) {
        SharedTile tile{32, 32, 1, 2, {bits, base, shift}};
        if (lostCycles(tile, 16, 64, false) == 0 &&
            lostCycles(tile, 16, 64, true) == 0)
          found += " " + describe(tile);
      }
  properties.holds("no swizzle of one term suits 16-row fragments of 64-byte "
                   "rows in both orders on 64 banks",
                   found);
}
} // namespace

void kvbuf::test::sharedProperties(Properties &properties) {
  tiles(properties);
  counting(properties);
  conflicts(properties);
  amdFragments(properties);
}
