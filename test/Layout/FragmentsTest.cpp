//===- FragmentsTest.cpp - Fragments against the vendors' definitions -----===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Layout/Fragments.h"
#include "Properties.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include <set>
#include <utility>

using namespace kvbuf;
using kvbuf::test::Properties;

namespace {
using Place = std::pair<int64_t, int64_t>;

/// Compares a fragment of `registers` x `lanes` with a formula for the row and
/// column of an element; returns the first difference.
std::string differs(const LinearLayout &layout, int64_t registers,
                    int64_t lanes,
                    llvm::function_ref<Place(int64_t, int64_t)> place) {
  if (layout.inDims().size() != 2 ||
      int64_t(1) << layout.inLog2("register") != registers ||
      int64_t(1) << layout.inLog2("lane") != lanes)
    return "another number of registers or lanes: " + layout.str();
  for (int64_t reg = 0; reg < registers; ++reg)
    for (int64_t lane = 0; lane < lanes; ++lane) {
      LinearLayout::Coord got =
          layout.apply({{"register", reg}, {"lane", lane}});
      auto [row, col] = place(reg, lane);
      if (got[0] != row || got[1] != col)
        return "register " + std::to_string(reg) + " of lane " +
               std::to_string(lane) + " is (" + std::to_string(got[0]) + ", " +
               std::to_string(got[1]) + "), not (" + std::to_string(row) +
               ", " + std::to_string(col) + ")";
    }
  return "";
}

/// The formulas of the PTX ISA, "Matrix Fragments for mma.m16n8k16 with
/// floating point type", .f16/.bf16.
void mmaSync(Properties &properties) {
  MmaLayouts mma = mmaSyncM16N8K16();
  auto a = [](int64_t i, int64_t lane) -> Place {
    int64_t groupId = lane >> 2, threadInGroup = lane % 4;
    bool upper = (0 <= i && i < 2) || (4 <= i && i < 6);
    return {upper ? groupId : groupId + 8,
            threadInGroup * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
  };
  auto b = [](int64_t i, int64_t lane) -> Place {
    return {(lane % 4) * 2 + (i & 1) + (i >= 2 ? 8 : 0), lane >> 2};
  };
  auto c = [](int64_t i, int64_t lane) -> Place {
    return {i < 2 ? lane >> 2 : (lane >> 2) + 8, (lane % 4) * 2 + (i & 1)};
  };
  properties.holds("mma.sync m16n8k16: A", differs(mma.a, 8, 32, a));
  properties.holds("mma.sync m16n8k16: B", differs(mma.b, 4, 32, b));
  properties.holds("mma.sync m16n8k16: C", differs(mma.c, 4, 32, c));
  properties.catches(
      "A with registers 2 and 4 exchanged",
      differs(mma.a.permuteInBits("register", {0, 2, 1}), 8, 32, a));
  properties.holds("mma.sync m16n8k16: fragments are bijective",
                   mma.a.inverse() && mma.b.inverse() && mma.c.inverse()
                       ? ""
                       : "no inverse");

  // PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16": warp w of the
  // group has rows 16 w and on of A and D; columns of D repeat every 8.
  std::optional<MmaLayouts> group = matrixLayouts(MatrixUnit::Wgmma, 64, 8, 16);
  properties.holds("wgmma m64n8k16: A of a warp",
                   group ? differs(group->a, 8, 32, a) : "none");
  properties.holds("wgmma m64n8k16: D of a warp",
                   group ? differs(group->c, 4, 32, c) : "none");
  properties.holds("wgmma has 64 rows and the least columns",
                   matrixLayouts(MatrixUnit::Wgmma, 16, 8, 16) ||
                           matrixLayouts(MatrixUnit::Wgmma, 64, 16, 16) ||
                           matrixLayouts(MatrixUnit::Wgmma, 64, 8, 8)
                       ? "known"
                       : "");

  // P's accumulators of two adjacent n-tiles are A of the next product, no
  // shuffle: the fact that attention kernels build on.
  LinearLayout two = mma.c * LinearLayout::identity("register", "col", 1);
  properties.holds("two accumulators side by side are one A operand",
                   two == mma.a ? "" : two.str());
}

/// gfx1250's WMMA: registers of two elements, four registers for the lower 16
/// of k and four for the upper ones; of each, lanes from 16 on have the
/// upper 8. A register of C is a row, of lanes from 16 on 8 rows further down.
void wmma(Properties &properties) {
  MmaLayouts mma = wmmaM16N16K32();
  auto depth = [](int64_t i, int64_t lane) {
    int64_t word = i / 2, upper = word / 4;
    return 16 * upper + 8 * (lane / 16) + 2 * (word % 4) + i % 2;
  };
  auto a = [&](int64_t i, int64_t lane) -> Place {
    return {lane % 16, depth(i, lane)};
  };
  auto b = [&](int64_t i, int64_t lane) -> Place {
    return {depth(i, lane), lane % 16};
  };
  auto c = [](int64_t i, int64_t lane) -> Place {
    return {8 * (lane / 16) + i, lane % 16};
  };
  properties.holds("wmma 16x16x32: A", differs(mma.a, 16, 32, a));
  properties.holds("wmma 16x16x32: B", differs(mma.b, 16, 32, b));
  properties.holds("wmma 16x16x32: C", differs(mma.c, 8, 32, c));
  properties.catches(
      "A whose lanes have 16 k in a row",
      differs(mma.a, 16, 32, [](int64_t i, int64_t lane) -> Place {
        return {lane % 16, 16 * (lane / 16) + i};
      }));
  // Two products below each other are B of the next one, in its own order.
  LinearLayout two = mma.c * LinearLayout::identity("register", "row", 1);
  properties.holds("two accumulators below each other are one B operand",
                   two == mma.b ? "" : two.str());
}

/// The formulas of the PTX ISA, "Matrix Fragments for mma.m16n8k32", .e4m3 and
/// .e5m2; and of two instructions side by side.
void mmaSyncBytes(Properties &properties) {
  auto a = [](int64_t i, int64_t lane) -> Place {
    int64_t groupId = lane >> 2, threadInGroup = lane % 4;
    bool upper = (0 <= i && i < 4) || (8 <= i && i < 12);
    return {upper ? groupId : groupId + 8,
            threadInGroup * 4 + (i & 3) + (i >= 8 ? 16 : 0)};
  };
  auto b = [](int64_t i, int64_t lane) -> Place {
    return {(lane % 4) * 4 + (i & 3) + (i >= 4 ? 16 : 0), lane >> 2};
  };
  auto c = [](int64_t i, int64_t lane) -> Place {
    return {i < 2 ? lane >> 2 : (lane >> 2) + 8, (lane % 4) * 2 + (i & 1)};
  };
  MmaLayouts mma = mmaSyncM16N8K32(), two = mmaSyncM16N16K32();
  properties.holds("mma.sync m16n8k32: A", differs(mma.a, 16, 32, a));
  properties.holds("mma.sync m16n8k32: B", differs(mma.b, 8, 32, b));
  properties.holds("mma.sync m16n8k32: C", differs(mma.c, 4, 32, c));
  properties.catches("B of 16-bit elements as that of 8-bit ones",
                     differs(mmaSyncM16N8K16().b, 8, 32, b));
  auto beside = [](auto place, int64_t registers) {
    return [=](int64_t i, int64_t lane) -> Place {
      auto [row, col] = place(i % registers, lane);
      return {row, col + 8 * (i / registers)};
    };
  };
  properties.holds("two of them: A", differs(two.a, 16, 32, a));
  properties.holds("two of them: B", differs(two.b, 16, 32, beside(b, 8)));
  properties.holds("two of them: C", differs(two.c, 8, 32, beside(c, 4)));

  // Accumulators of four adjacent tiles become A in the order in which a word
  // has two neighbours of each of two tiles.
  std::optional<LinearLayout> order = contractionOrder(mma.a, mma.c);
  std::string found = order ? "" : "none";
  for (unsigned bit = 0; order && bit < 5; ++bit)
    found += std::to_string(order->basis("col", bit, "col")) + " ";
  properties.holds("weights of 8 bits need no exchange",
                   found == "1 8 2 4 16 " ? "" : found);
}

/// The PTX ISA, "ldmatrix": thread T holds row T/4, elements 2*(T%4) and the
/// next of matrix j in its register j; `.trans` exchanges row and column.
void ldmatrix(Properties &properties) {
  for (unsigned log2Count : {0u, 1u, 2u}) {
    auto plain = [](int64_t reg, int64_t lane) -> Place {
      return {reg / 2 * 8 + lane / 4, lane % 4 * 2 + reg % 2};
    };
    auto transposed = [](int64_t reg, int64_t lane) -> Place {
      return {reg / 2 * 8 + lane % 4 * 2 + reg % 2, lane / 4};
    };
    int64_t registers = int64_t(2) << log2Count;
    std::string name = "ldmatrix.x" + std::to_string(1 << log2Count);
    properties.holds(name, differs(ldmatrixFragment(log2Count, false),
                                   registers, 32, plain));
    properties.holds(name + ".trans", differs(ldmatrixFragment(log2Count, true),
                                              registers, 32, transposed));
    properties.catches(
        name + " without .trans",
        differs(ldmatrixFragment(log2Count, false), registers, 32, transposed));
  }

  // What loads of a tile give, by composition, is what mma.sync takes.
  MmaLayouts mma = mmaSyncM16N8K16();
  using Coord = LinearLayout::Coord;
  // A: the matrices are the tile's quadrants, the left two first.
  LinearLayout quadrants(
      {"row", "col"},
      {{{1, 0}, {2, 0}, {4, 0}, {8, 0}, {0, 8}}, {{0, 1}, {0, 2}, {0, 4}}},
      {LinearLayout::Dim{"row", 4}, LinearLayout::Dim{"col", 4}});
  properties.holds("ldmatrix.x4 of a 16x16 tile's quadrants gives A",
                   ldmatrixFragment(2, false).compose(quadrants) == mma.a
                       ? ""
                       : "another layout");
  // V, stored key by key: 16 keys x 8 depths, transposed on the way.
  properties.holds("ldmatrix.x2.trans of V gives B",
                   ldmatrixFragment(1, true) == mma.b ? "" : "another layout");
  // K, stored key by key, is B's transpose: the matrices are its two halves.
  LinearLayout halves(
      {"row", "col"},
      {{Coord{0, 1}, Coord{0, 2}, Coord{0, 4}, Coord{8, 0}},
       {Coord{1, 0}, Coord{2, 0}, Coord{4, 0}}},
      {LinearLayout::Dim{"row", 4}, LinearLayout::Dim{"col", 3}});
  properties.holds("ldmatrix.x2 of K's halves gives B",
                   ldmatrixFragment(1, false).compose(halves) == mma.b
                       ? ""
                       : "another layout");
}

/// The lane maps of the instructions' definition.
void mfma(Properties &properties) {
  struct Shape {
    int64_t side, k;
  };
  for (auto [side, k] :
       {Shape{32, 8}, Shape{16, 16}, Shape{32, 16}, Shape{16, 32}}) {
    std::optional<MmaLayouts> layouts = mfma16Bit(side, side, k);
    std::string name = "mfma " + std::to_string(side) + "x" +
                       std::to_string(side) + "x" + std::to_string(k);
    if (!layouts) {
      properties.holds(name, "unknown");
      continue;
    }
    int64_t perLane = side * k / 64;
    auto a = [&](int64_t e, int64_t lane) -> Place {
      return {lane % side, lane / side * perLane + e};
    };
    auto b = [&](int64_t e, int64_t lane) -> Place {
      return {lane / side * perLane + e, lane % side};
    };
    auto c = [&](int64_t p, int64_t lane) -> Place {
      static const int64_t rows32[] = {0,  1,  2,  3,  8,  9,  10, 11,
                                       16, 17, 18, 19, 24, 25, 26, 27};
      int64_t row =
          side == 32 ? rows32[p] + (lane >= 32 ? 4 : 0) : 4 * (lane / 16) + p;
      return {row, lane % side};
    };
    int64_t accumulators = side * side / 64;
    properties.holds(name + ": A", differs(layouts->a, perLane, 64, a));
    properties.holds(name + ": B", differs(layouts->b, perLane, 64, b));
    properties.holds(name + ": C", differs(layouts->c, accumulators, 64, c));
    properties.catches(name + ": B for A", differs(layouts->b, perLane, 64, a));
    properties.holds(name + ": fragments are bijective",
                     layouts->a.inverse() && layouts->b.inverse() &&
                             layouts->c.inverse()
                         ? ""
                         : "no inverse");
  }
  // A group is laid out as one instruction: a lane has as many elements side by
  // side as all of them, up to 16.
  for (auto [side, k] : {std::pair{32, 32}, std::pair{16, 64}}) {
    std::optional<MmaLayouts> group =
        matrixLayouts(MatrixUnit::Mfma, side, side, k);
    std::string name = "group of " + std::to_string(side) + "x" +
                       std::to_string(side) + " with k = " + std::to_string(k);
    if (!group) {
      properties.holds(name, "refused");
      continue;
    }
    auto a = [side = side](int64_t p, int64_t lane) -> Place {
      return {lane % side, 16 * (lane / side) + p};
    };
    properties.holds(name, differs(group->a, 16, 64, a));
  }
  // CDNA4's scaled instructions take 32 elements of a lane.
  for (auto [side, k] : {std::pair{32, 64}, std::pair{16, 128}}) {
    std::optional<MmaLayouts> scaled =
        matrixLayouts(MatrixUnit::Mfma, side, side, k);
    auto a = [side = side](int64_t p, int64_t lane) -> Place {
      return {lane % side, 32 * (lane / side) + p};
    };
    std::string name = "scaled " + std::to_string(side) + "x" +
                       std::to_string(side) + "x" + std::to_string(k);
    properties.holds(name, scaled ? differs(scaled->a, 32, 64, a) : "refused");
  }
  properties.holds("larger groups are refused",
                   matrixLayouts(MatrixUnit::Mfma, 32, 32, 128) ||
                           matrixLayouts(MatrixUnit::Mfma, 16, 16, 256) ||
                           matrixLayouts(MatrixUnit::Mfma, 32, 32, 24) ||
                           matrixLayouts(MatrixUnit::Mfma, 32, 16, 16)
                       ? "not refused"
                       : "");
  properties.holds("other MFMA shapes are refused",
                   mfma16Bit(32, 32, 32) || mfma16Bit(16, 32, 16) ||
                           mfma16Bit(4, 4, 4)
                       ? "not refused"
                       : "");
}

/// Compares a layout with a table of AMD's matrix calculator, whose cell (row,
/// col) reads `vREG{LANE}` and, for operands packed into 32 bits,
/// `.[HIGH:LOW]`; `bits` is an element's width.
std::string differsFromTable(const LinearLayout &layout,
                             const std::string &path, int64_t bits) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return "cannot read " + path + ": " + buffer.getError().message();
  llvm::SmallVector<llvm::StringRef> lines;
  (*buffer)->getBuffer().split(lines, '\n', -1, /*KeepEmpty=*/false);
  std::set<std::pair<int64_t, int64_t>> seen;
  for (llvm::StringRef line : lines) {
    llvm::SmallVector<llvm::StringRef> cells;
    line.trim().split(cells, ',');
    int64_t row;
    if (cells.size() < 2 || cells[0].getAsInteger(10, row))
      continue; // A heading.
    for (size_t col = 0; col + 1 < cells.size(); ++col) {
      llvm::StringRef cell = cells[col + 1];
      int64_t reg = 0, lane = 0, high = 0, low = 0;
      bool ok = cell.consume_front("v") && !cell.consumeInteger(10, reg) &&
                cell.consume_front("{") && !cell.consumeInteger(10, lane) &&
                cell.consume_front("}");
      if (ok && cell.consume_front(".["))
        ok = !cell.consumeInteger(10, high) && cell.consume_front(":") &&
             !cell.consumeInteger(10, low) && cell.consume_front("]");
      if (!ok || !cell.empty())
        return "cannot read the cell '" + cells[col + 1].str() + "'";
      int64_t element = reg * (32 / bits) + low / bits;
      if (element >= int64_t(1) << layout.inLog2("register") ||
          lane >= int64_t(1) << layout.inLog2("lane"))
        return "no register for the cell " + cells[col + 1].str();
      LinearLayout::Coord got =
          layout.apply({{"register", element}, {"lane", lane}});
      if (got[0] != row || got[1] != static_cast<int64_t>(col))
        return cells[col + 1].str() + " is (" + std::to_string(got[0]) + ", " +
               std::to_string(got[1]) + "), not (" + std::to_string(row) +
               ", " + std::to_string(col) + ")";
      seen.insert({element, lane});
    }
  }
  if (seen.size() != size_t(1) << layout.totalInLog2())
    return "the table does not say where every element is";
  return "";
}

void mfmaTables(Properties &properties, const std::string &folder) {
  if (auto found =
          llvm::MemoryBuffer::getFile(folder + "/v_mfma_f32_32x32x8_f16.A.csv");
      !found) {
    properties.skip("MFMA layouts against AMD's matrix calculator",
                    "no tables in '" + folder +
                        "' (KVBUF_MFMA_TABLES names the folder)");
    return;
  }
  // The fp8 instructions hold as many elements in a lane as the 16-bit ones
  // of twice the registers, by the same rule.
  struct Table {
    const char *name;
    int64_t side, k, bits;
  };
  for (const Table &table :
       {Table{"32x32x8_f16", 32, 8, 16}, Table{"32x32x8_bf16", 32, 8, 16},
        Table{"16x16x16_f16", 16, 16, 16}, Table{"16x16x16_bf16", 16, 16, 16},
        Table{"32x32x16_fp8_fp8", 32, 16, 8},
        Table{"16x16x32_fp8_fp8", 16, 32, 8}}) {
    std::string path = folder + "/v_mfma_f32_" + table.name;
    MmaLayouts layouts = *mfma16Bit(table.side, table.side, table.k);
    std::string name = std::string("AMD's table of ") + table.name;
    properties.holds(name + ": A",
                     differsFromTable(layouts.a, path + ".A.csv", table.bits));
    properties.holds(name + ": B",
                     differsFromTable(layouts.b, path + ".B.csv", table.bits));
    properties.holds(name + ": D",
                     differsFromTable(layouts.c, path + ".D.csv", 32));
    properties.catches(
        name + ": A's table for B",
        differsFromTable(layouts.b, path + ".A.csv", table.bits));
  }
}
} // namespace

void kvbuf::test::fragmentProperties(Properties &properties,
                                     const std::string &tables) {
  wmma(properties);
  mmaSync(properties);
  mmaSyncBytes(properties);
  ldmatrix(properties);
  mfma(properties);
  mfmaTables(properties, tables);
}
