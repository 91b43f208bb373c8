//===- LaneLayouts.cpp - Which lane holds what ------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaneLayouts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

FragmentLayout::FragmentLayout(FragmentLayoutInterface attribute)
    : rowWarps(attribute.getRowWarps()), colWarps(attribute.getColWarps()),
      words(attribute.getWordElements()) {
  if (auto mma = dyn_cast<MmaLayoutAttr>(attribute)) {
    turned = mma.getTransposeB();
    layout = mma.getProductAtom();
    gridRows = mma.getWarpRows();
    gridCols = mma.getWarpCols();
    byGridCols = mma.getOperand() == Role::B;
  } else {
    layout = attribute.getAtom();
    gridRows = rowWarps;
    gridCols = colWarps;
  }
  rows = int64_t(1) << layout.outLog2("row");
  cols = int64_t(1) << layout.outLog2("col");
  for (int64_t reg = 0; reg < registers(); ++reg) {
    int64_t row = layout.apply({{"register", reg}}, "row");
    if (!llvm::is_contained(rowOffsets, row))
      rowOffsets.push_back(row);
  }
  llvm::sort(rowOffsets);
  for (unsigned bit = 0; bit < layout.inLog2("lane"); ++bit)
    if (layout.basis("lane", bit, "row") == 0)
      reduceBits.push_back(bit);
}

int64_t FragmentLayout::atoms(FragmentType type) const {
  return llvm::divideCeil(warpRows(type) * warpCols(type), rows * cols);
}

int64_t FragmentLayout::atomCols(FragmentType type) const {
  return turned ? warpRows(type) / cols : warpCols(type) / cols;
}

unsigned FragmentLayout::rowPart(int64_t reg) const {
  int64_t row = layout.apply({{"register", reg}}, "row");
  return llvm::find(rowOffsets, row) - rowOffsets.begin();
}

const FragmentLayout &FragmentLayouts::of(FragmentType type) {
  FragmentLayoutInterface attribute = type.getLayout();
  if (auto slice = dyn_cast<SliceLayoutAttr>(attribute))
    attribute = slice.getParent();
  std::unique_ptr<FragmentLayout> &layout = known[attribute];
  if (!layout)
    layout = std::make_unique<FragmentLayout>(attribute);
  return *layout;
}

int64_t FragmentLayout::columnRun() const {
  unsigned bit = 0;
  while (bit < layout.inLog2("register") &&
         layout.basis("register", bit, "col") == int64_t(1) << bit &&
         layout.basis("register", bit, "row") == 0)
    ++bit;
  return int64_t(1) << bit;
}

SmallVector<unsigned> FragmentLayout::vectorLanes(int64_t bits,
                                                  int64_t width) const {
  constexpr int64_t kWordBits = 32;
  int64_t run = columnRun();
  if (run * bits != kWordBits)
    return {};
  SmallVector<unsigned> lanes;
  for (int64_t col = run; col < width; col *= 2) {
    auto bit = llvm::find_if(reduceBits, [&](unsigned bit) {
      return layout.basis("lane", bit, "col") == col;
    });
    if (bit == reduceBits.end())
      return {};
    lanes.push_back(*bit);
  }
  // The other lane bits choose rows only, the other registers rows or whole
  // vectors.
  for (unsigned bit = 0; bit < layout.inLog2("lane"); ++bit)
    if (!llvm::is_contained(lanes, bit) &&
        layout.basis("lane", bit, "col") != 0)
      return {};
  for (unsigned bit = llvm::Log2_64(run); bit < layout.inLog2("register");
       ++bit) {
    int64_t col = layout.basis("register", bit, "col");
    if (col % width != 0 ||
        (col != 0 && layout.basis("register", bit, "row") != 0))
      return {};
  }
  return lanes;
}

static Value constI32(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantIntOp::create(b, value, 32);
}

Value kvbuf::emitLinear(ImplicitLocOpBuilder &b, Value x,
                        ArrayRef<int64_t> basis) {
  // Shift distance (left positive) to the mask of input bits that move by it.
  llvm::MapVector<int, int64_t> groups;
  for (auto [bit, image] : llvm::enumerate(basis))
    for (int out = 0; out < 31; ++out)
      if (image >> out & 1)
        groups[out - int(bit)] |= int64_t(1) << bit;
  Value result;
  for (auto [shift, mask] : groups) {
    Value part = arith::AndIOp::create(b, x, constI32(b, mask));
    if (shift > 0)
      part = arith::ShLIOp::create(b, part, constI32(b, shift));
    else if (shift < 0)
      part = arith::ShRUIOp::create(b, part, constI32(b, -shift));
    result = result ? arith::XOrIOp::create(b, result, part) : part;
  }
  return result ? result : constI32(b, 0);
}

Value LinearAddress::emit(ImplicitLocOpBuilder &b, Value base, int64_t align,
                          int64_t constant) const {
  int64_t reach = 0;
  Value linear;
  for (const Term &term : terms) {
    for (int64_t image : term.basis)
      reach |= image;
    Value part = emitLinear(b, term.value, term.basis);
    linear = linear ? arith::XOrIOp::create(b, linear, part) : part;
  }
  int64_t inside = constant & reach, outside = constant & ~reach;
  // Below the base's alignment the sum has the terms' own bits.
  bool behind = inside < align;
  if (inside && !behind)
    linear = arith::XOrIOp::create(b, linear, constI32(b, inside));
  Value sum = linear ? arith::AddIOp::create(b, base, linear) : base;
  if (inside && behind)
    sum = arith::XOrIOp::create(b, sum, constI32(b, inside));
  Value index = arith::IndexCastOp::create(b, b.getIndexType(), sum);
  if (outside)
    index = arith::AddIOp::create(b, index,
                                  arith::ConstantIndexOp::create(b, outside));
  return index;
}
