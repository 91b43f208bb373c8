//===- ContractionTest.cpp - P and V of the second product ----------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Properties.h"
#include "kvbuffer/Layout/Fragments.h"
#include "kvbuffer/Layout/Shared.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <set>

using namespace kvbuf;
using kvbuf::test::Properties;

namespace {
/// With swapped operands, P^T is operand B and S^T the accumulator: both as
/// [query][key], in P's own coordinates.
LinearLayout turned(const LinearLayout &layout) {
  return layout.renameOut("row", "tmp")
      .renameOut("col", "row")
      .renameOut("tmp", "col")
      .restrictOut({"row", "col"});
}

/// The definition: with the operand taken in the order that was found, every
/// lane's elements are accumulators of that same lane, for all keys that one
/// instruction contracts.
std::string needsExchange(const LinearLayout &operand,
                          const LinearLayout &accumulator) {
  int64_t lanes = int64_t(1) << operand.inLog2("lane");
  for (int64_t lane = 0; lane < lanes; ++lane) {
    // A key past one accumulator's is the next one's: same lanes, by its rule.
    std::set<std::pair<int64_t, int64_t>> own;
    int64_t cols = int64_t(1) << accumulator.outLog2("col");
    for (int64_t reg = 0; reg < int64_t(1) << accumulator.inLog2("register");
         ++reg) {
      auto at = accumulator.apply({{"register", reg}, {"lane", lane}});
      own.insert({at[0], at[1]});
    }
    for (int64_t reg = 0; reg < int64_t(1) << operand.inLog2("register");
         ++reg) {
      auto at = operand.apply({{"register", reg}, {"lane", lane}});
      if (!own.count({at[0], at[1] % cols}))
        return "lane " + std::to_string(lane) + " lacks key " +
               std::to_string(at[1]);
    }
  }
  return "";
}

void contraction(Properties &properties) {
  struct Shape {
    int64_t side, k;
    /// The column that stands at each position, bit by bit.
    llvm::SmallVector<int64_t> order;
  };
  // 32x32: C's registers are keys {0-3, 8-11, ..} + 4h, B's lanes hold 8 (4)
  // consecutive positions at 8h (4h). 16x16: keys 4g + {0-3} and 16 more, B's
  // at 8g (4g).
  for (const Shape &shape :
       {Shape{32, 8, {1, 2, 4}}, Shape{32, 16, {1, 2, 8, 4}},
        Shape{16, 16, {1, 2, 4, 8}}, Shape{16, 32, {1, 2, 16, 4, 8}}}) {
    MmaLayouts mma = *mfma16Bit(shape.side, shape.side, shape.k);
    LinearLayout p = turned(mma.b), s = turned(mma.c);
    std::string name = "mfma " + std::to_string(shape.side) + "x" +
                       std::to_string(shape.side) + "x" +
                       std::to_string(shape.k);
    auto order = contractionOrder(p, s);
    std::string failure = order ? "" : "no order";
    for (unsigned bit = 0; order && bit < shape.order.size(); ++bit)
      if (order->basis("col", bit, "col") != shape.order[bit])
        failure = order->str();
    properties.holds(name + ": the order in which P V contracts", failure);
    if (!order)
      continue;
    LinearLayout taken = reordered(p, "col", *order);
    properties.holds(name + ": P needs no exchange between lanes",
                     needsExchange(taken, s));
    // Both operands in one order: the product is the same sum.
    LinearLayout v = reordered(turned(mma.a), "row", *order);
    std::string apart;
    for (int64_t reg = 0; reg < shape.side * shape.k / 64; ++reg)
      for (int64_t group = 0; group < 64 / shape.side; ++group) {
        int64_t lane = group * shape.side;
        if (taken.apply({{"register", reg}, {"lane", lane}}, "col") !=
            v.apply({{"register", reg}, {"lane", lane}}, "row"))
          apart = "register " + std::to_string(reg) + " of lane " +
                  std::to_string(lane);
      }
    properties.holds(name + ": P and V contract the same keys", apart);
    if (!llvm::is_sorted(shape.order))
      properties.catches(name + ": P in its natural order",
                         needsExchange(p, s));
  }
  // mma.sync: the natural order.
  MmaLayouts mma = mmaSyncM16N8K16();
  auto order = contractionOrder(mma.a, mma.c);
  bool natural = order.has_value();
  for (unsigned bit = 0; natural && bit < 4; ++bit)
    natural = order->basis("col", bit, "col") == int64_t(1) << bit;
  properties.holds("mma.sync contracts P V in the natural order",
                   natural ? "" : "another order");
  // Swapped, S^T's keys lie across the lanes that P^T's queries lie across. With
  // each word transposed among the lanes S^T is P^T.
  LinearLayout p = turned(mma.b), s = turned(mma.c);
  properties.holds("swapped mma.sync has no order by itself",
                   contractionOrder(p, s) ? "an order" : "");
  auto words = transposedAmongLanes(s);
  std::string wrong = words ? "" : "no words";
  for (int64_t lane = 0; words && lane < 32; ++lane)
    for (int64_t reg = 0; reg < 4; ++reg) {
      int64_t g = lane / 4, t = lane % 4;
      int64_t from = 8 * t + 4 * (reg % 2) + g / 2;
      if (words->apply({{"register", reg}, {"lane", lane}}) !=
          s.apply({{"register", reg / 2 * 2 + g % 2}, {"lane", from}}))
        wrong = "register " + std::to_string(reg) + " of lane " +
                std::to_string(lane);
    }
  properties.holds("words transposed among lanes are what movmatrix gives",
                   wrong);
  properties.holds("swapped mma.sync: transposed words of S^T are P^T's",
                   words ? needsExchange(p, *words) : "no words");
  properties.holds("lanes of 64 have no such transposition",
                   transposedAmongLanes(mfma16Bit(32, 32, 16)->c) ? "one" : "");
  // Without swapped operands MFMA's accumulators hold a column of S in a lane,
  // which no order of keys makes a row of P.
  MmaLayouts mfma = *mfma16Bit(32, 32, 16);
  properties.holds("mfma without swapped operands has no order",
                   contractionOrder(mfma.a, mfma.c) ? "an order" : "");
}

/// Whether four elements that a lane gets of one row of 8-bit elements (two of
/// each of two rows, `across`) by an element of ldmatrix are its own in the
/// layout: lane 4 g + t has those at 4 t, or 2 g, in the registers `own`.
std::string notRead(const LinearLayout &fragment, llvm::StringRef out,
                    bool across) {
  for (int64_t lane = 0; lane < 32; ++lane)
    for (int64_t i = 0; i < (across ? 2 : 4); ++i) {
      int64_t reg = across ? 2 * i : i % 2 + 4 * (i / 2);
      int64_t want = across ? 2 * (lane / 4) + i : 4 * (lane % 4) + i;
      if (fragment.apply({{"register", reg}, {"lane", lane}}, out) != want)
        return "register " + std::to_string(reg) + " of lane " +
               std::to_string(lane);
    }
  return "";
}

void ownFirst(Properties &properties) {
  auto inOrder = [](const LinearLayout &fragment, llvm::StringRef out) {
    llvm::SmallVector<LinearLayout::Coord> images;
    for (int64_t element : ownElementsFirst(fragment, out))
      images.push_back({element});
    unsigned bits = images.size();
    return reordered(
        fragment, out,
        LinearLayout({"col"}, {images}, {LinearLayout::Dim{"col", bits}}));
  };
  // Swapped, K is [key][element] of operand A, V^T [element][key].
  LinearLayout a = mmaSyncM16N8K16().a;
  properties.holds("K of 8-bit elements: four of a row are a lane's own",
                   notRead(inOrder(a, "col"), "col", false));
  properties.catches("K in its natural order", notRead(a, "col", false));
  properties.holds("V of 8-bit elements: two of a row are a lane's own",
                   notRead(inOrder(a, "row"), "row", true));
  properties.catches("V in its natural order", notRead(a, "row", true));
  properties.holds("mfma has its own elements first",
                   ownElementsFirst(mfma16Bit(16, 16, 32)->a, "col").empty()
                       ? ""
                       : "another order");
}

/// The definition of the transposed read, by groups of 16 lanes: lane l
/// receives what lanes 4i + l / 4 mod 4 name as their element l mod 4 (i =
/// 0..3: rows).
std::string differsFromRead(const LinearLayout &fragment,
                            const LinearLayout &addresses) {
  for (int64_t lane = 0; lane < 64; ++lane)
    for (int64_t row = 0; row < 4; ++row) {
      int64_t inGroup = lane % 16;
      int64_t source = lane - inGroup + 4 * row + inGroup / 4;
      auto named = addresses.apply({{"lane", source}});
      auto got = fragment.apply({{"register", row}, {"lane", lane}});
      if (got[0] != named[0] || got[1] != named[1] + inGroup % 4)
        return "row " + std::to_string(row) + " of lane " +
               std::to_string(lane);
    }
  return "";
}

void transposedReads(Properties &properties) {
  for (auto [side, k] : {std::pair{32, 16}, std::pair{16, 32}}) {
    MmaLayouts mma = *mfma16Bit(side, side, k);
    auto order = contractionOrder(turned(mma.b), turned(mma.c));
    // V as [key][depth]: operand A is V^T.
    LinearLayout v = reordered(turned(mma.a), "row", *order);
    using Bases = llvm::SmallVector<LinearLayout::Coord>;
    Bases lanes;
    for (unsigned bit = 0; bit < 6; ++bit)
      lanes.push_back(v.basis("lane", bit));
    LinearLayout half(
        {"register", "lane"},
        {Bases{v.basis("register", 0), v.basis("register", 1)}, lanes},
        v.outDims());
    std::string name =
        "ds_read_b64_tr_b16 of V for " + std::to_string(side) + "-row MFMA";
    auto addresses = transposedRead16(half);
    properties.holds(name, addresses ? differsFromRead(half, *addresses)
                                     : "no such read");
    if (!addresses)
      continue;
    // Rows of 64 bytes, no swizzle: 8 keys x 64 bytes are 512 bytes in a row.
    SharedTile tile{64, 32, 1, 2, {}};
    llvm::SmallVector<int64_t> bytes;
    for (int64_t lane = 0; lane < 64; ++lane) {
      auto at = addresses->apply({{"lane", lane}});
      bytes.push_back(tile.byteOffset(at[0], at[1]));
    }
    int64_t ideal;
    int64_t cycles = bankCycles(bytes, 8, 32, 64, ideal);
    if (side == 32)
      properties.holds(name + ": no bank conflicts",
                       cycles == ideal ? "" : std::to_string(cycles));
    properties.catches(name + ": the addresses of plain reads",
                       differsFromRead(half, half.restrictIn({"lane"})));
  }
}

/// Every element once, whole words where a lane reads them.
void transposedTiles(Properties &properties) {
  for (int64_t keys : {32, 64, 128})
    for (int64_t depth : {32, 96, 128, 192, 256}) {
      TransposedTile tile{keys, depth, {0, 1, 3, 2}, 32};
      LinearLayout layout = tile.layout();
      std::string name = "V^T of " + std::to_string(keys) + " keys x " +
                         std::to_string(depth) + " depths";
      std::set<int64_t> seen;
      std::string failure;
      for (int64_t key = 0; key < keys; ++key)
        for (int64_t col = 0; col < depth; ++col) {
          int64_t byte = layout.apply({{"row", key}, {"col", col}}, "byte");
          if (!seen.insert(byte).second || byte < 0 || byte >= tile.bytes())
            failure = "element (" + std::to_string(key) + ", " +
                      std::to_string(col) + ")";
        }
      properties.holds(name + ": a permutation", failure);
      // A pair of 32x32x8 reads keys {0-3, 8-11} + 4h of one depth: 16 bytes.
      int64_t lost = 0, words = 0;
      for (int64_t first = 0; first < keys; first += 16)
        for (int64_t block = 0; block < depth; block += 32) {
          llvm::SmallVector<int64_t> bytes;
          for (int64_t lane = 0; lane < 64; ++lane) {
            int64_t key = first + 4 * (lane / 32), col = block + lane % 32;
            int64_t byte = layout.apply({{"row", key}, {"col", col}}, "byte");
            bytes.push_back(byte);
            for (int64_t i = 0; i < 8; ++i)
              words +=
                  layout.apply({{"row", key + i % 4 + i / 4 * 8}, {"col", col}},
                               "byte") != byte + 2 * i;
          }
          int64_t ideal;
          lost += bankCycles(bytes, 16, 8, 32, ideal) - ideal;
        }
      properties.holds(name + ": a lane's word is 16 bytes in a row",
                       words ? std::to_string(words) + " elements apart" : "");
      properties.holds(name + ": reads have no bank conflicts",
                       lost ? std::to_string(lost) + " cycles" : "");
    }
  // Writes: 32 lanes of 4 depths each, 8 bytes (4 keys) at a time.
  auto writeCycles = [](const LinearLayout &layout, int64_t &ideal) {
    llvm::SmallVector<int64_t> bytes;
    for (int64_t lane = 0; lane < 64; ++lane)
      bytes.push_back(layout.apply(
          {{"row", 4 * (lane / 32)}, {"col", 4 * (lane % 32)}}, "byte"));
    return bankCycles(bytes, 8, 16, 32, ideal);
  };
  TransposedTile tile{64, 128, {0, 1, 3, 2}, 32};
  int64_t ideal;
  int64_t cycles = writeCycles(tile.layout(), ideal);
  properties.holds("V^T: writes of 4 keys share banks by two at most",
                   cycles <= 2 * ideal ? "" : std::to_string(cycles));
  // Without the second XOR every fourth LDS row has the same place.
  llvm::SmallVector<llvm::SmallVector<LinearLayout::Coord>> bases(2);
  LinearLayout layout = tile.layout();
  for (unsigned bit = 0; bit < 6; ++bit)
    bases[0].push_back(layout.basis("row", bit));
  for (unsigned bit = 0; bit < 7; ++bit)
    bases[1].push_back(
        {(bit < 3 ? layout.basis("col", bit, "byte") : int64_t(128) << bit)});
  LinearLayout once({"row", "col"}, bases, layout.outDims());
  cycles = writeCycles(once, ideal);
  properties.catches("V^T: rows XORed once",
                     cycles <= 2 * ideal ? "" : std::to_string(cycles));
}
} // namespace

void kvbuf::test::contractionProperties(Properties &properties) {
  contraction(properties);
  ownFirst(properties);
  transposedReads(properties);
  transposedTiles(properties);
}
