//===- FarTiles.h - Tiles far from the diagonal -----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A relative bias clamps the distance between a key and a row to those that it
/// has numbers for. All of a tile far enough from the diagonal has one number,
/// which is read once a tile, and not once a score.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_PROGRAMS_ATTENTION_FARTILES_H
#define KVBUFFER_LIB_PROGRAMS_ATTENTION_FARTILES_H

#include "TileScores.h"

namespace kvbuf {

/// A distance that a problem's function of scores clamps on both sides: of a
/// key and a row, or the row's position.
struct ClampedDistance {
  /// What is as the clamped distance: the outer one of the two ops.
  mlir::Operation *clamp;
  /// The key's distance from the row, or the row's from the key.
  bool fromRow;
  /// Of the row's position, or of the row.
  bool ofPosition;
  int64_t least, most;
};

/// The first such distance of a problem that a number is read by, of a tensor
/// that has one for each; nothing where there is none.
std::optional<ClampedDistance> clampedDistanceOf(AttentionOp op);

/// The ops of the function that follow from a clamped distance and what is the
/// same for all rows and keys, in their order.
llvm::SmallVector<mlir::Operation *>
followersOf(AttentionOp op, const ClampedDistance &distance);

/// Whether all of a tile of `rows` x `keys` scores has one clamped distance, an
/// i1; `known` gets the values of `followersOf` for the tile's first score,
/// which are those of all then. `args` maps the problem's operands.
mlir::Value isFar(mlir::ImplicitLocOpBuilder &b, AttentionOp op,
                  const ClampedDistance &distance, const mlir::IRMapping &args,
                  const ScoreTile &tile, int64_t rows, int64_t keys,
                  mlir::IRMapping &known);

/// The same of iteration `i` of a loop (`tile.loop`) whose iteration i has the
/// tile before tile `end` - i: it is before some iteration, or not before
/// another one. What is read for tiles at either end is read in front of the
/// loop. Null, and nothing known, where that may not be there: the loop may
/// have no tiles.
mlir::Value isFarAtEnds(mlir::ImplicitLocOpBuilder &b, AttentionOp op,
                        const ClampedDistance &distance,
                        const mlir::IRMapping &args, const ScoreTile &tile,
                        int64_t rows, int64_t keys, mlir::Value end,
                        mlir::Value i, mlir::IRMapping &known);

} // namespace kvbuf

#endif // KVBUFFER_LIB_PROGRAMS_ATTENTION_FARTILES_H
