//===- CachePlaces.h - Caches of kinds of their own -------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Caches as the code that their types emit (`CacheLayout`) takes them, and
/// rows of tiles that are found by such code alone (`CacheRows::byPlace`).
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_CACHEPLACES_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_CACHEPLACES_H

#include "Lanes.h"

namespace kvbuf {

class LaneLowering;

/// Where the rows of a tile are, which are found one by one.
class RowPlaces {
public:
  virtual ~RowPlaces() = default;
  /// The offset of row `row` (an i32) of a tile, in elements.
  virtual mlir::Value lineOf(LaneContext &lower, const TileView &tile,
                             mlir::Value row) const = 0;
};

/// Those of a tile that an op of another dialect makes
/// (`LaneContext::setTileRows`).
class OwnPlaces : public RowPlaces {
public:
  OwnPlaces(Values strides, LaneContext::RowPlace place)
      : strides(std::move(strides)), place(std::move(place)) {}
  mlir::Value lineOf(LaneContext &lower, const TileView &tile,
                     mlir::Value row) const override;

private:
  /// Of all dimensions but the last.
  const Values strides;
  const LaneContext::RowPlace place;
};

/// A cache whose type alone knows where rows are.
class CachePlaces : public RowPlaces {
public:
  CachePlaces(CacheLayout layout, CacheParts parts, Values strides)
      : layout(layout), parts(std::move(parts)), strides(std::move(strides)) {}

  /// The indices of a token's row in the leading dimensions, zeros where it has
  /// none; `checked` false: it has one.
  Values leadOf(LaneContext &lower, mlir::Value batch, mlir::Value token,
                bool checked) const;
  /// How many elements of a head's first row such indices lie behind.
  mlir::Value offsetOf(LaneContext &lower,
                       llvm::ArrayRef<mlir::Value> lead) const;
  mlir::Value lineOf(LaneContext &lower, const TileView &tile,
                     mlir::Value row) const override;

  const CacheLayout layout;
  const CacheParts parts;
  /// Of the data: of its leading dimensions, then of its heads.
  const Values strides;
};

/// A memref over the memory of `data` (of rank 0), whose sizes are static in
/// `shape` or those of `sizes` (null: any), and whose strides are `strides` and
/// 1.
mlir::Value viewOf(mlir::ImplicitLocOpBuilder &b, mlir::Value data,
                   llvm::ArrayRef<int64_t> shape,
                   llvm::ArrayRef<mlir::Value> sizes,
                   llvm::ArrayRef<mlir::Value> strides);

/// The memrefs of a cache among the kernel's arguments. A size that nothing
/// needs is any number.
CacheParts partsOf(LaneContext &lower, mlir::Value cache);

/// Makes `CachePlaces` of caches that need them: of the kernel's arguments, and
/// of those that it makes of them.
void findPlaces(LaneLowering &lower);

/// The op of another dialect that makes a tile, or null.
mlir::Operation *ownTile(mlir::Value tile);

/// Whether the type of a cache that a tile may be of alone knows where rows
/// are, or an op of another dialect that makes it does.
bool hasPlaces(mlir::Value tile);

/// Whether all tiles that are loaded row by row are each of one cache, or of
/// one op.
mlir::LogicalResult checkPlaces(mlir::gpu::GPUFuncOp kernel);

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_CACHEPLACES_H
