//===- Accesses.h - What ops on slots and tiles share -----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What values of buffers, loads and rings stand for while a block is executed,
/// and how ops of several files get at what is behind them.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_EMULATOR_TILE_ACCESSES_H
#define KVBUFFER_LIB_EMULATOR_TILE_ACCESSES_H

#include "Lds.h"
#include "Rings.h"

namespace kvbuf::emu::tile {

/// An LDS buffer, by its number among those of the block or of the team.
struct BufferRef {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(BufferRef)
  unsigned number;
};
/// A load that a token or a staged value stands for.
struct LoadRef {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LoadRef)
  unsigned number;
  Lds *lds;
};
/// A ring or mailbox.
struct ChannelRef {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ChannelRef)
  unsigned number;
};
/// A filling of one, with the place of the team that waits for it.
struct FillRef {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FillRef)
  unsigned channel;
  int64_t fill;
  unsigned taker;
  bool operator==(const FillRef &) const = default;
};

/// Whether an op with this predicate runs.
inline bool isEnabled(TileContext &context, mlir::Value pred) {
  return !pred || context.integerOf(pred) != 0;
}

/// Looks up the rows of a tile of a cache (Dram.cpp).
mlir::LogicalResult findRows(TileContext &context, mlir::Operation *op,
                             Tile &tile);
/// The tile of which a load is to move `cols` columns, its rows looked up and
/// checked; counts the load (Dram.cpp).
mlir::FailureOr<Tile> resolve(TileContext &context, mlir::Operation *op,
                              mlir::Value tile, int64_t cols, bool whole);
/// Multiplies a slot that `op` awaits as it says (`kScaledByAttr`; LdsOps.cpp).
mlir::LogicalResult scaleSlot(TileContext &context, mlir::Operation *op,
                              mlir::FailureOr<Matrix *> slot);
/// The slot that a staged value stands for, which `op` reads (LdsOps.cpp).
mlir::FailureOr<const Matrix *> slotBy(TileContext &context,
                                       mlir::Operation *op, mlir::Value staged);

} // namespace kvbuf::emu::tile

#endif // KVBUFFER_LIB_EMULATOR_TILE_ACCESSES_H
