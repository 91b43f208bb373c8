//===- PartialLayouts.cpp - How partial results lie -------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block stores one partial result, in the layout of its product; the last one
// loads many, and little else is left to do then. So memory has the order in
// which the product's lanes store most at once, and what is joined has the
// layout in which lanes load most at once, whatever columns these are.
//
//===----------------------------------------------------------------------===//

#include "PartialLayouts.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

/// Words of 32 bits that a lane moves at once, at most.
static constexpr unsigned kWidestBits = 2;
/// Lanes of a row at least: each row's part of an access is as much as memory
/// gives at once, or more.
static constexpr int64_t kLeastLanes = 4;

SmallVector<int64_t> kvbuf::columnsInMemory(FragmentLayoutInterface layout,
                                            FragmentType acc) {
  if (layout.getColWarps() > 1)
    return {};
  LinearLayout atom = layout.getAtom();
  // The columns that a lane has, and those of the lanes beside it.
  SmallVector<int64_t> own, lanes;
  auto collect = [&](StringRef in, SmallVector<int64_t> &columns) {
    for (unsigned bit = 0; bit < atom.inLog2(in); ++bit) {
      int64_t row = atom.basis(in, bit, "row"),
              col = atom.basis(in, bit, "col");
      if (col && (row || !llvm::isPowerOf2_64(col)))
        return false;
      if (col)
        columns.push_back(col);
    }
    return true;
  };
  if (!collect("register", own) || !collect("lane", lanes))
    return {};
  // Atoms side by side are more columns of a lane.
  for (int64_t col = int64_t(1) << atom.outLog2("col");
       own.size() < kWidestBits && acc.getCols() % (2 * col) == 0; col *= 2)
    own.push_back(col);
  if (own.size() < kWidestBits || (own[0] == 1 && own[1] == 2))
    return {};
  SmallVector<int64_t> columns(ArrayRef(own).take_front(kWidestBits));
  llvm::append_range(columns, lanes);
  llvm::append_range(columns, ArrayRef(own).drop_front(kWidestBits));
  int64_t block = int64_t(1) << columns.size(), seen = 0;
  for (int64_t col : columns)
    seen |= col;
  if (seen != block - 1 || acc.getCols() % block)
    return {};
  return columns;
}

BlockedLayoutAttr kvbuf::joinedLayout(FragmentType acc, int64_t room,
                                      ArrayRef<int64_t> columns,
                                      int64_t waveSize) {
  constexpr int64_t width = int64_t(1) << kWidestBits;
  int64_t cols = acc.getCols(), block = int64_t(1) << columns.size();
  int64_t rows =
      std::min<int64_t>(llvm::PowerOf2Ceil(std::max<int64_t>(room, 1)),
                        std::max<int64_t>(waveSize / kLeastLanes, 1));
  // Lanes beyond a row's columns take more rows.
  int64_t lanes = waveSize / rows;
  while (lanes > 1 && cols % (width * lanes))
    lanes /= 2;
  rows = waveSize / lanes;
  if (acc.getRows() % rows || cols % (width * lanes) || cols % block)
    return {};
  return BlockedLayoutAttr::get(acc.getContext(), rows, lanes, width,
                                /*warps=*/1, columns);
}

BlockedLayoutAttr kvbuf::joinedLayoutOfWarps(FragmentType acc, int64_t warps,
                                             ArrayRef<int64_t> columns,
                                             int64_t waveSize) {
  constexpr int64_t width = int64_t(1) << kWidestBits;
  int64_t rows = acc.getRows() / warps, block = int64_t(1) << columns.size();
  if (rows < 1 || acc.getRows() % warps || !llvm::isPowerOf2_64(rows) ||
      waveSize % rows)
    return {};
  int64_t lanes = waveSize / rows, cols = acc.getCols();
  if (cols % (width * lanes) || cols % block || block > width * lanes)
    return {};
  return BlockedLayoutAttr::get(acc.getContext(), rows, lanes, width, warps,
                                columns);
}
