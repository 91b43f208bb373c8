//===- BlockSource.h - What a place in LDS holds ----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_AMD_BLOCKSOURCE_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_AMD_BLOCKSOURCE_H

#include "KVBufferToGPU/Lanes.h"
#include "llvm/Support/MathExtras.h"

namespace kvbuf {

/// The bits of `value` from bit `from` on, `size` (a power of two) being what
/// they are smaller than, at bit 0.
inline mlir::Value bitsOf(Lanes &lower, mlir::Value value, unsigned from,
                          int64_t size) {
  mlir::ImplicitLocOpBuilder &b = lower.b;
  if (from)
    value = mlir::arith::ShRUIOp::create(b, value, lower.i32(from));
  return mlir::arith::AndIOp::create(b, value, lower.i32(size - 1));
}

/// Row and column (bytes) of a place in an LDS block, as functions of the bits
/// of the place's byte offset: the source of what lands there. A block whose
/// rows are no power of two is the front of one whose rows are.
struct BlockSource {
  explicit BlockSource(const SharedTile &tile)
      : elementBytes(tile.elementBytes),
        elementShift(llvm::Log2_64(tile.elementBytes)) {
    // In elements, of which every place in the block holds one.
    LinearLayout block = tile.block();
    llvm::SmallVector<llvm::SmallVector<LinearLayout::Coord>> images(2);
    const llvm::StringRef dims[] = {"row", "col"};
    for (auto [i, dim] : llvm::enumerate(dims))
      for (unsigned bit = 0; bit < block.inLog2(dim); ++bit)
        images[i].push_back({block.basis(dim, bit, "byte") / elementBytes});
    places =
        *LinearLayout(
             {"row", "col"}, images,
             {LinearLayout::Dim{"place", llvm::Log2_64_Ceil(tile.blockBytes() /
                                                            elementBytes)}})
             .inverse();
  }

  /// Images of `count` bits of the byte offset from bit `from` on.
  llvm::SmallVector<int64_t> rows(unsigned from, unsigned count) const {
    return images("row", from, count, 1);
  }
  llvm::SmallVector<int64_t> cols(unsigned from, unsigned count) const {
    return images("col", from, count, elementBytes);
  }
  int64_t row(int64_t byte) const {
    return places.apply({{"place", byte / elementBytes}}, "row");
  }
  int64_t col(int64_t byte) const {
    return places.apply({{"place", byte / elementBytes}}, "col") * elementBytes;
  }

private:
  llvm::SmallVector<int64_t> images(llvm::StringRef dim, unsigned from,
                                    unsigned count, int64_t unit) const {
    llvm::SmallVector<int64_t> result;
    for (unsigned bit = 0; bit < count; ++bit)
      result.push_back(places.basis("place", from + bit - elementShift, dim) *
                       unit);
    return result;
  }
  LinearLayout places;
  int64_t elementBytes;
  unsigned elementShift;
};

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_AMD_BLOCKSOURCE_H
