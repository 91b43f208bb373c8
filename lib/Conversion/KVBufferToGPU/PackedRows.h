//===- PackedRows.h - Rows of parts of several types ------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tiles of caches whose rows are packed (`#kvbuffer.row`): lanes load bytes,
/// widen elements, multiply them by their scales and store them into slots of
/// 16-bit elements, where they lie as those of any tile.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_PACKEDROWS_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_PACKEDROWS_H

#include "Lanes.h"

namespace kvbuf {

/// How the rows of a tile are packed; null where elements lie as they are.
RowAttr packedRowOf(mlir::Value tile);

/// Lanes that fill a slot together: a number from 0 on (i32), and how many.
struct FillingLanes {
  mlir::Value number;
  int64_t count;
};

/// The vector of a row's elements as f32. Halves have all 8-bit floats, and
/// chips that have an instruction for these make halves of them.
mlir::Value widenElements(mlir::ImplicitLocOpBuilder &b, mlir::Value vector);

/// Where byte `at` is of a packed row that begins at `line` (index): in the
/// row, or in its tail.
mlir::Value placeInRow(Lanes &lower, RowAttr row, mlir::Value line, int64_t at);

/// 2^(code - 127) as f32, of a code (i32) of E8M0.
mlir::Value powerOfTwo(mlir::ImplicitLocOpBuilder &b, mlir::Value code);

/// Fills the slot at byte `slot` with the columns of `params` of a tile of
/// packed rows. The stores are done when the op after it begins, for the lane
/// that made them. `pred`: whether it is done at all; null: it is.
void emitPackedLoad(Lanes &lower, mlir::TypedValue<TileType> tile,
                    const TileView &values, KVBufferAttr params,
                    mlir::Value slot, mlir::Value pred, FillingLanes lanes);

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_PACKEDROWS_H
