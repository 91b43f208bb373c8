//===- Staging.h - Tiles on their way through registers ---------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What machines share where lanes access a tile's vectors themselves.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_STAGING_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_STAGING_H

#include "Lanes.h"

namespace kvbuf {

/// The vector at element `at` (an index) of a tile's data, of which the first
/// `valid` (i32, perhaps less than 0) elements exist, and none unless `ok`; the
/// others are zero. `at` is a multiple of `alignment` bytes.
mlir::Value loadCut(LaneContext &lower, const TileView &tile,
                    mlir::VectorType type, mlir::Value at, mlir::Value ok,
                    mlir::Value valid, int64_t alignment);

/// The same of a vector all of whose elements exist.
mlir::Value loadWhole(LaneContext &lower, const TileView &tile,
                      mlir::VectorType type, mlir::Value at, int64_t alignment);

/// The value of `there` where `condition` holds, else zero.
mlir::Value loadIf(LaneContext &lower, mlir::Value condition, mlir::Type type,
                   llvm::function_ref<mlir::Value()> there);

/// The bytes of the widest vector that a lane loads.
constexpr int64_t kZeroBytes = 16;
/// The index, counted from `data` in its elements, at which so many bytes of
/// zeros lie: a constant of the module, for lanes that must load and have
/// nothing to.
mlir::Value zerosAt(LaneContext &lower, mlir::Value data,
                    int64_t zeros = kZeroBytes);

/// Whether the rows of a tile of 16-bit elements begin at multiples of `bytes`;
/// i1, the same for all threads.
mlir::Value rowsAligned(LaneContext &lower, const TileView &tile,
                        int64_t bytes);
} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_STAGING_H
