//===- TiledReads.h - Tensors that scores read by rows and keys -*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A bias that a function of scores reads at the row and the key lies as tiles
/// of scores do. Where a team moves tiles, it comes through LDS as they come:
/// lanes that read a tensor for themselves take a line of it for each row and
/// 16 or 32 bits.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_PROGRAMS_ATTENTION_TILEDREADS_H
#define KVBUFFER_LIB_PROGRAMS_ATTENTION_TILEDREADS_H

#include "TileScores.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace kvbuf {

/// The load of a problem's function of scores that reads a tensor of 16 bits or
/// of f32 by its row and key, [.., rows, keys], at places of the sequence and
/// the head; the first one. Null: there is none.
mlir::memref::LoadOp tiledReadOf(AttentionOp op);

/// Whether a value of a function of scores follows from the sequence and the
/// head alone, by ops that can stand anywhere.
bool isOfHeadAlone(mlir::Value value);

/// Whether such a load reads the same for all sequences of a batch.
bool readsSameForAll(mlir::memref::LoadOp load);

/// Tiles of what such a load reads, on their way through a buffer.
class TiledRead {
public:
  /// Of `load`, in tiles of `rows` rows from `at.query` on and `keys` keys.
  /// `args` maps the problem's operands.
  TiledRead(mlir::ImplicitLocOpBuilder &b, AttentionOp op,
            mlir::memref::LoadOp load, const mlir::IRMapping &args,
            const ScoreTile &at, int64_t rows, int64_t keys,
            const TargetInfo &target);

  /// The tile from key `key` on, as an operand that lies as scores do.
  mlir::Value fragmentAt(mlir::ImplicitLocOpBuilder &b, mlir::Value key) const;

private:
  mlir::Value tensor, row, validRows;
  /// Where the tile lies in the dimensions before rows and keys.
  llvm::SmallVector<mlir::Value> outer;
  mlir::TypedValue<BufferType> buffer;
  int64_t rows, keys;
};

} // namespace kvbuf

#endif // KVBUFFER_LIB_PROGRAMS_ATTENTION_TILEDREADS_H
