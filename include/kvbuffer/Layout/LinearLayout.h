//===- LinearLayout.h - Maps that are linear over bits ----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// One algebra for fragments, swizzled LDS tiles, DMA units and lane maps.
///
/// A *linear layout* maps hardware coordinates (register, lane, warp, stage) to
/// tensor coordinates (row, column) or to bytes. Every input dimension has
/// 2^k values; the map is linear over bits: the image of a coordinate is the
/// XOR of the images of its set bits, the *bases*. A swizzle, which XORs
/// address bits, is therefore as plain a layout as a row-major tile.
///
/// The model is the public description of linear layouts (the paper "Linear
/// Layouts: Robust Code Generation of Efficient Tensor Computation Using F2",
/// and the prose of Triton's LinearLayout.h).
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LAYOUT_LINEARLAYOUT_H
#define KVBUFFER_LAYOUT_LINEARLAYOUT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace kvbuf {

/// A linear map over bits between named dimensions, see the file comment.
class LinearLayout {
public:
  /// A named dimension with 2^log2Size values.
  struct Dim {
    std::string name;
    unsigned log2Size = 0;
    bool operator==(const Dim &) const = default;
    int64_t size() const { return int64_t(1) << log2Size; }
  };
  /// One coordinate per output dimension, in the order of `outDims()`.
  using Coord = llvm::SmallVector<int64_t, 2>;
  /// A coordinate by name.
  using Named = std::pair<llvm::StringRef, int64_t>;

  /// The layout without dimensions: the unit of the product.
  LinearLayout() = default;

  /// From bases: `bases[i][b]` is the image of bit `b` of input dimension `i`.
  /// The output dimensions' sizes are given, so that a layout may cover only
  /// part of its codomain.
  LinearLayout(llvm::ArrayRef<std::string> inNames,
               llvm::ArrayRef<llvm::SmallVector<Coord>> bases,
               llvm::ArrayRef<Dim> outDims);

  /// `in` (2^log2Size values) to `out`, each value to itself.
  static LinearLayout identity(llvm::StringRef in, llvm::StringRef out,
                               unsigned log2Size);
  /// `in` (2^log2Size values) all to 0 of `out`, which has one value: a
  /// broadcast.
  static LinearLayout zeros(llvm::StringRef in, llvm::StringRef out,
                            unsigned log2Size);

  /// The input (output) dimensions, in the order in which they were given.
  llvm::ArrayRef<Dim> inDims() const { return ins; }
  llvm::ArrayRef<Dim> outDims() const { return outs; }
  /// Whether there is an input (output) dimension of that name.
  bool hasInDim(llvm::StringRef name) const;
  bool hasOutDim(llvm::StringRef name) const;
  /// log2 of an input (output) dimension's size; 0 for an absent one.
  unsigned inLog2(llvm::StringRef name) const;
  unsigned outLog2(llvm::StringRef name) const;
  /// log2 of the number of inputs (of output coordinates), all dimensions
  /// together.
  unsigned totalInLog2() const;
  unsigned totalOutLog2() const;

  /// The image of bit `bit` of input dimension `in`, all coordinates.
  const Coord &basis(llvm::StringRef in, unsigned bit) const;
  /// The coordinate `out` of that image; 0 if `out` is absent.
  int64_t basis(llvm::StringRef in, unsigned bit, llvm::StringRef out) const;

  /// The image of a point; input dimensions not named count as 0.
  Coord apply(llvm::ArrayRef<Named> point) const;
  /// The coordinate `out` of that image.
  int64_t apply(llvm::ArrayRef<Named> point, llvm::StringRef out) const;

  /// Product: the bits of `inner` below those of `outer` in every dimension
  /// that both have; dimensions of one alone are kept. `inner * outer`.
  LinearLayout operator*(const LinearLayout &outer) const;

  /// First this, then `next`: `next`'s input dimensions must be this layout's
  /// output dimensions, by name in any order, and no smaller.
  LinearLayout compose(const LinearLayout &next) const;

  /// Whether different inputs have different images.
  bool isInjective() const;
  /// Whether every output coordinate is an image.
  bool isSurjective() const;
  /// The inverse of a bijective layout; none otherwise.
  std::optional<LinearLayout> inverse() const;
  /// log2 of the largest n such that the n values of `in` from any multiple of
  /// n on are mapped to n consecutive values of `out`, aligned to n, all other
  /// output coordinates equal: the width of a vector access along `in`.
  unsigned contiguousLog2(llvm::StringRef in, llvm::StringRef out) const;

  /// The layout with only the named input (output) dimensions, in the order
  /// named; the other inputs are fixed at 0, the other outputs dropped.
  LinearLayout restrictIn(llvm::ArrayRef<llvm::StringRef> names) const;
  LinearLayout restrictOut(llvm::ArrayRef<llvm::StringRef> names) const;
  /// The same map with dimensions renamed.
  LinearLayout renameIn(llvm::StringRef from, llvm::StringRef to) const;
  LinearLayout renameOut(llvm::StringRef from, llvm::StringRef to) const;
  /// The same map with the input bits of dimension `in` reordered: new bit `i`
  /// is old bit `order[i]`.
  LinearLayout permuteInBits(llvm::StringRef in,
                             llvm::ArrayRef<unsigned> order) const;

  bool operator==(const LinearLayout &) const = default;

  /// A table of the bases, one line per input bit.
  std::string str() const;

private:
  llvm::SmallVector<Dim> ins;
  llvm::SmallVector<Dim> outs;
  /// table[i][b] for input dimension i, bit b.
  llvm::SmallVector<llvm::SmallVector<Coord>> table;
};

} // namespace kvbuf

#endif // KVBUFFER_LAYOUT_LINEARLAYOUT_H
