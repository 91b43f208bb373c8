//===- NarrowFragments.cpp - Fragments by ordinary reads of LDS -----------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operands of 16 bits from LDS that holds 8-bit elements, or 16-bit ones in an
// order that no instruction for fragments reads, by ordinary reads: of the
// elements of a lane that lie side by side, several at once, of others one by
// one. Whatever the layout, and slow where rows are contracted.
//
//===----------------------------------------------------------------------===//

#include "Lanes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

LogicalResult kvbuf::emitNarrowFragment(Lanes &lower, FragmentLoadOp op,
                                        Value slot, Values &words) {
  ImplicitLocOpBuilder &b = lower.b;
  KVBufferAttr params = op.getStaged().getType().getParams();
  FragmentType type = op.getFragment().getType();
  Type narrow = params.getElementType(), wide = type.getElementType();
  bool widens = narrow != wide;
  if (isTurnedInLds(lower.target, params))
    return op.emitOpError() << (widens ? "widens " : "reads ") << narrow
                            << " of a slot whose columns lie side by side; "
                               "expected a buffer with order = rows";
  if (auto mma = dyn_cast<MmaLayoutAttr>(type.getLayout());
      mma && mma.getWarpCols() > 1)
    return op.emitOpError()
           << (widens ? "widens " : "reads ") << narrow
           << (widens ? " in " : " out of their order in ") << mma.getWarpCols()
           << " warps that share the columns of rows; "
              "expected warp_cols = 1";
  SharedTile tile = sharedTile(params);
  const FragmentLayout &atom = lower.layouts.of(type);
  LinearLayout block = tile.block();
  // Places of elements of the fragment, in the product's coordinates.
  auto inSlot = [&](int64_t row, int64_t col) {
    return atom.turned ? std::pair(col, row) : std::pair(row, col);
  };
  auto image = [&](int64_t row, int64_t col) {
    auto [r, c] = inSlot(row, col);
    return block.apply({{"row", r}, {"col", c}}, "byte");
  };
  auto imageOf = [&](StringRef in, unsigned bit) {
    return image(atom.layout.basis(in, bit, "row"),
                 atom.layout.basis(in, bit, "col"));
  };

  LinearAddress address;
  SmallVector<int64_t> lanes, warps;
  for (unsigned bit = 0; bit < atom.layout.inLog2("lane"); ++bit)
    lanes.push_back(imageOf("lane", bit));
  address.terms.push_back({lower.lane, lanes});
  if (type.getRole() == Role::A) {
    for (int64_t bit = 1; bit < atom.rowWarps; bit *= 2)
      warps.push_back(image(atom.warpRows(type) * bit, 0));
    address.terms.push_back({lower.warp, warps});
  }
  // Registers that lie side by side, in what the swizzle keeps together.
  unsigned runBits = 0;
  while (runBits < atom.layout.inLog2("register") &&
         imageOf("register", runBits) == tile.elementBytes << runBits &&
         tile.elementBytes << runBits < tile.swizzle.unit)
    ++runBits;
  int64_t run = int64_t(1) << runBits;

  // LLVM has no 8-bit floats.
  Type stored = widens ? Type(b.getI8Type()) : narrow;
  int64_t bytes = tile.elementBytes;
  Value shared = lower.shared(stored);
  Value first = slot;
  if (bytes > 1)
    first = arith::DivUIOp::create(b, slot, lower.i32(bytes));
  int64_t align = slotAlignment(params) / bytes;
  for (auto &[value, images] : address.terms)
    for (int64_t &image : images)
      image /= bytes;
  auto runType = VectorType::get({run}, stored);
  int64_t rows = atom.warpRows(type), cols = atom.warpCols(type);
  if (atom.turned)
    std::swap(rows, cols);
  for (int64_t r = 0; r < rows; r += atom.rows)
    for (int64_t c = 0; c < cols; c += atom.cols) {
      Values elements;
      for (int64_t reg = 0; reg < atom.registers(); reg += run) {
        auto at = atom.layout.apply({{"register", reg}});
        auto [row, col] = inSlot(r + at[0], c + at[1]);
        row += op.getSlotRow();
        col += op.getSlotCol();
        // Where a block begins is no XOR of bits if its rows are no power of
        // two.
        int64_t before = llvm::isPowerOf2_64(tile.rows)
                             ? 0
                             : col / tile.blockCols * tile.blockBytes();
        before /= bytes;
        Value place = address.emit(b, first, align,
                                   tile.byteOffset(row, col) / bytes - before);
        if (before)
          place = arith::AddIOp::create(b, place, lower.index(before));
        Value loaded = vector::LoadOp::create(
            b, runType, shared, ValueRange{place},
            /*nontemporal=*/false, llvm::Align(run * bytes));
        for (int64_t i = 0; i < run; ++i)
          elements.push_back(
              vector::ExtractOp::create(b, loaded, ArrayRef<int64_t>{i}));
      }
      auto all = VectorType::get({atom.registers()}, stored);
      Value widened = vector::FromElementsOp::create(b, all, elements);
      if (widens)
        widened = arith::ExtFOp::create(
            b, all.clone(wide),
            arith::BitcastOp::create(b, all.clone(narrow), widened)
                .getResult());
      if (atom.words == atom.registers()) {
        words.push_back(widened);
        continue;
      }
      for (int64_t reg = 0; reg < atom.registers(); reg += atom.words)
        words.push_back(vector::ShuffleOp::create(
            b, widened, widened,
            llvm::to_vector(llvm::seq(reg, reg + atom.words))));
    }
  return success();
}
