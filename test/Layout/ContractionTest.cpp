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
  // Swapped, S^T's keys lie across the lanes that P^T's queries lie across.
  // With each word transposed among the lanes S^T is P^T.
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

/// The same of gfx1250, by groups of 8 lanes: lane c of them receives what lane
/// i names as its element c (i = 0..7: rows).
std::string differsFromWideRead(const LinearLayout &fragment,
                                const LinearLayout &addresses) {
  for (int64_t lane = 0; lane < 32; ++lane)
    for (int64_t row = 0; row < 8; ++row) {
      int64_t inGroup = lane % 8;
      auto named = addresses.apply({{"lane", lane - inGroup + row}});
      auto got = fragment.apply({{"register", row}, {"lane", lane}});
      if (got[0] != named[0] || got[1] != named[1] + inGroup)
        return "row " + std::to_string(row) + " of lane " +
               std::to_string(lane);
    }
  return "";
}

void wideTransposedReads(Properties &properties) {
  // V as [key][depth]: operand A is V^T.
  LinearLayout v = turned(wmmaM16N16K32().a);
  using Bases = llvm::SmallVector<LinearLayout::Coord>;
  Bases registers, lanes;
  for (unsigned bit = 0; bit < 3; ++bit)
    registers.push_back(v.basis("register", bit));
  for (unsigned bit = 0; bit < 5; ++bit)
    lanes.push_back(v.basis("lane", bit));
  LinearLayout half({"register", "lane"}, {registers, lanes}, v.outDims());
  auto addresses = transposedRead128(half);
  properties.holds("ds_load_tr16_b128 of V for WMMA",
                   addresses ? differsFromWideRead(half, *addresses)
                             : "no such read");
  properties.catches("ds_load_tr16_b128: the addresses of plain reads",
                     differsFromWideRead(half, half.restrictIn({"lane"})));
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
    // Rows of 64 bytes: 8 keys x 64 bytes are 512 bytes in a row; 8 keys x 32
    // bytes have to change their halves by the third bit of the key.
    auto lost = [&](Swizzle swizzle) -> std::string {
      SharedTile tile{64, 32, 1, 2, swizzle};
      llvm::SmallVector<int64_t> bytes;
      for (int64_t lane = 0; lane < 64; ++lane) {
        auto at = addresses->apply({{"lane", lane}});
        bytes.push_back(tile.byteOffset(at[0], at[1]));
      }
      int64_t ideal;
      int64_t cycles = bankCycles(bytes, 8, 32, 64, ideal);
      return cycles == ideal ? "" : std::to_string(cycles);
    };
    properties.holds(name + ": no bank conflicts",
                     lost(side == 32 ? Swizzle{} : Swizzle{1, 1, 3}));
    if (side == 16)
      properties.catches(name + ": rows in their order", lost({}));
    properties.catches(name + ": the addresses of plain reads",
                       differsFromRead(half, half.restrictIn({"lane"})));
  }
}

/// The passes that accesses of a tile take more than they have to, where the
/// lanes that `lane` names are served together, 64 in all.
int64_t passesLost(const LinearLayout &layout, const LaneAccess &access,
                   unsigned banks, llvm::function_ref<int64_t(int64_t)> lane) {
  llvm::SmallVector<int64_t> bytes;
  for (int64_t i = 0; i < 64; ++i) {
    int64_t row = 0, col = 0;
    for (unsigned bit = 0; bit < 6; ++bit)
      if (lane(i) >> bit & 1) {
        row ^= access.lanes[bit][0];
        col ^= access.lanes[bit][1];
      }
    bytes.push_back(layout.apply({{"row", row}, {"col", col}}, "byte"));
  }
  int64_t ideal;
  return bankCycles(bytes, access.width, banks * 4 / access.width, banks,
                    ideal) -
         ideal;
}

/// A tile of V that an MFMA of `side` rows reads, eight keys a lane, in the
/// order of S^T's registers; stored by lanes that have four keys of `piece`
/// columns each, eight neighbours side by side; where pieces are no power of
/// two, fewer, and all keys of theirs before other columns.
struct TurnedCase {
  int64_t side, keys, depth, piece;
  unsigned elementBytes, banks;
};

void turnedTile(Properties &properties, const TurnedCase &of) {
  MmaLayouts mma = *mfma16Bit(of.side, of.side, 512 / of.side);
  LinearLayout order = *contractionOrder(turned(mma.b), turned(mma.c));
  LinearLayout v = reordered(turned(mma.a), "row", order);
  TransposedTile tile;
  tile.keys = of.keys;
  tile.depth = of.depth;
  tile.elementBytes = of.elementBytes;
  tile.banks = of.banks;
  // A lane's keys first, then those of the lanes beside it.
  tile.keyBits.assign(v.outLog2("row"), 0);
  LaneAccess reads{8 * of.elementBytes, {}}, stores{4 * of.elementBytes, {}};
  unsigned next = 0;
  for (llvm::StringRef in : {"register", "lane"})
    for (unsigned bit = 0; bit < v.inLog2(in); ++bit)
      if (int64_t key = v.basis(in, bit, "row"))
        tile.keyBits[llvm::Log2_64(key)] = next++;
  for (unsigned bit = 0; bit < 6; ++bit)
    reads.lanes.push_back(v.basis("lane", bit));
  int64_t half = 1 << (llvm::find(tile.keyBits, 2u) - tile.keyBits.begin());
  int64_t pieces = of.depth / of.piece, col = of.piece;
  int64_t together = std::min<int64_t>(8, pieces & -pieces);
  bool keysFirst = !llvm::isPowerOf2_64(pieces);
  auto addKeys = [&] {
    for (int64_t key = 4; key < of.keys; key *= 2)
      if (key != half)
        stores.lanes.push_back({key, 0});
  };
  for (; col < together * of.piece; col *= 2)
    stores.lanes.push_back({0, col});
  stores.lanes.push_back({half, 0});
  if (keysFirst)
    addKeys();
  for (; 2 * col <= of.depth; col *= 2)
    stores.lanes.push_back({0, col});
  if (!keysFirst)
    addKeys();
  std::string name = "V^T of " + std::to_string(of.keys) + " keys x " +
                     std::to_string(of.depth) + " depths, " +
                     std::to_string(8 * of.elementBytes) + " bits, " +
                     std::to_string(of.side) + " rows, " +
                     std::to_string(of.banks) + " banks";
  LinearLayout plain = tile.layout();
  unsigned avoided = tile.avoidConflicts({reads, stores});
  properties.holds(name + ": there are folds for reads and stores",
                   avoided == 2 ? "" : std::to_string(avoided));
  LinearLayout layout = tile.layout();
  std::set<int64_t> seen;
  std::string failure;
  for (int64_t key = 0; key < of.keys; ++key)
    for (int64_t c = 0; c < of.depth; ++c) {
      int64_t byte = layout.apply({{"row", key}, {"col", c}}, "byte");
      if (!seen.insert(byte).second || byte < 0 || byte >= tile.bytes())
        failure =
            "element (" + std::to_string(key) + ", " + std::to_string(c) + ")";
    }
  properties.holds(name + ": a permutation", failure);
  failure.clear();
  for (int64_t lane = 0; lane < 64; ++lane) {
    auto byteOf = [&](int64_t reg) {
      auto at = v.apply({{"register", reg}, {"lane", lane}});
      return layout.apply({{"row", at[0]}, {"col", at[1]}}, "byte");
    };
    for (int64_t reg = 0; reg < 8; ++reg)
      if (byteOf(reg) != byteOf(0) + reg * of.elementBytes)
        failure = "lane " + std::to_string(lane);
  }
  properties.holds(name + ": a lane's word lies together", failure);
  // Lanes in their order, and those that CDNA is reported to serve together.
  constexpr int64_t reported[] = {0,  1,  2,  3,  12, 13, 14, 15, 20, 21, 22,
                                  23, 24, 25, 26, 27, 4,  5,  6,  7,  8,  9,
                                  10, 11, 16, 17, 18, 19, 28, 29, 30, 31};
  auto inOrder = [](int64_t lane) { return lane; };
  auto asReported = [&](int64_t lane) {
    return (lane & 32) | reported[lane & 31];
  };
  auto lost = [&](const LinearLayout &layout) {
    int64_t passes = passesLost(layout, reads, of.banks, inOrder) +
                     passesLost(layout, stores, of.banks, inOrder);
    if (reads.width == 16)
      passes += passesLost(layout, reads, of.banks, asReported);
    return passes ? std::to_string(passes) + " passes" : "";
  };
  properties.holds(name + ": no bank conflicts", lost(layout));
  properties.catches(name + ": without folds", lost(plain));
}

void transposedTiles(Properties &properties) {
  for (TurnedCase of :
       {TurnedCase{32, 64, 64, 4, 2, 32},   TurnedCase{32, 64, 128, 4, 2, 32},
        TurnedCase{32, 64, 128, 8, 2, 32},  TurnedCase{16, 32, 64, 8, 2, 32},
        TurnedCase{16, 32, 128, 8, 2, 32},  TurnedCase{16, 32, 256, 8, 2, 32},
        TurnedCase{16, 32, 64, 8, 1, 32},   TurnedCase{16, 32, 128, 16, 1, 32},
        TurnedCase{16, 32, 256, 16, 1, 32}, TurnedCase{16, 32, 64, 8, 1, 64},
        TurnedCase{16, 32, 128, 16, 1, 64}, TurnedCase{16, 32, 256, 16, 1, 64},
        TurnedCase{32, 64, 128, 8, 1, 32},  TurnedCase{32, 64, 128, 8, 1, 64},
        TurnedCase{16, 32, 96, 8, 2, 32},   TurnedCase{16, 32, 224, 8, 2, 32},
        TurnedCase{16, 32, 96, 8, 1, 32},   TurnedCase{16, 32, 96, 8, 1, 64},
        TurnedCase{16, 32, 192, 16, 1, 32}, TurnedCase{16, 32, 192, 16, 1, 64},
        TurnedCase{16, 32, 224, 16, 1, 32}, TurnedCase{16, 32, 224, 16, 1, 64}})
    turnedTile(properties, of);
  // Stores of columns that all choose one bank by themselves, more than there
  // are banks: reads alone have folds.
  TransposedTile tile;
  tile.keys = 32;
  tile.depth = 64;
  tile.keyBits = {0, 1, 2, 3, 4};
  LaneAccess reads{16, {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {8, 0}, {16, 0}}};
  LaneAccess stores{8, {{4, 0}, {4, 0}, {8, 0}, {16, 0}}};
  unsigned avoided = tile.avoidConflicts({reads, stores});
  properties.holds("V^T: stores that share banks whatever the folds",
                   avoided == 1 ? "" : std::to_string(avoided));
}
} // namespace

void kvbuf::test::contractionProperties(Properties &properties) {
  contraction(properties);
  ownFirst(properties);
  wideTransposedReads(properties);
  transposedReads(properties);
  transposedTiles(properties);
}
