//===- TileScores.h - From products to what softmax sees --------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_PROGRAMS_ATTENTION_TILESCORES_H
#define KVBUFFER_LIB_PROGRAMS_ATTENTION_TILESCORES_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kvbuf {

/// Where a tile of scores stands in its problem.
struct ScoreTile {
  /// The sequence; the head and the query of the first row; the first key.
  mlir::Value batch, head, query, key;
  /// Queries and keys of the sequence.
  mlir::Value queries, keys;
  /// Rows of one query: row r is query r / `group`, head r % `group`.
  int64_t group = 1;
  /// Whether the end of the sequence may cut the tile, if it is at an edge or
  /// lists name it.
  bool mayBeCut = true;
  /// Whether any tile may be cut, and the end hides keys behind the functions.
  bool endApart = false;
  /// Whether a function of visibility hides keys of edge tiles alone.
  bool bounded = false;
  /// What the function of scores reads by its row and key, where a fragment has
  /// it, and the load that reads it; null: lanes read it.
  mlir::Value read = {};
  mlir::Operation *readBy = nullptr;
  /// Whether the product began with what the function of scores adds
  /// (`AddedScores`): scores are its results, but for a factor.
  bool begun = false;
  /// Whether it began with the mask (`BegunMask`), where that hides any.
  bool begunMask = false;
  /// The loop over tiles: what functions read for the sequence or the head
  /// alone stands before it. Null: where they are.
  mlir::Operation *loop = nullptr;
};

/// Which iterations of a loop over tiles of keys, from right to left, have
/// scores that the mask or the sequence's end may hide. The others need no
/// mask.
class EdgeTiles {
public:
  /// Of a loop whose iteration i has the tile before tile `end` - i, of
  /// `tileKeys` keys each; every row sees the keys from `fullLo`, null: the
  /// first, up to `fullHi`.
  EdgeTiles(mlir::ImplicitLocOpBuilder &b, mlir::Value fullLo,
            mlir::Value fullHi, mlir::Value end, mlir::Value tileKeys);
  /// Likewise; every row sees the keys of `range`, but for those from `fullHi`
  /// on.
  EdgeTiles(mlir::ImplicitLocOpBuilder &b, KeyRangeOp range, mlir::Value fullHi,
            mlir::Value end, mlir::Value tileKeys, MaskAttr mask)
      : EdgeTiles(b, mask.boundsLeft() ? range.getFullLo() : mlir::Value(),
                  fullHi, end, tileKeys) {}
  /// The iterations before `first`.
  explicit EdgeTiles(mlir::Value first) : right(first) {}

  /// The tile that the first iteration's is before; null where a list says
  /// which tiles there are.
  mlir::Value getEnd() const { return end; }

  /// The mask and the sequence's end hide keys of those at the right alone, and
  /// a function of visibility of those at the left, if there are such: neither
  /// is asked at the other's edge.
  void tellApart() { apart = left != nullptr; }

  /// What an iteration is, i1s.
  struct Kinds {
    /// Whether some keys may be hidden.
    mlir::Value isEdge;
    /// Whether the mask may hide some, and whether a function may; null: both
    /// may, where any does.
    mlir::Value ofMask, ofFunction;
  };
  Kinds kindsOf(mlir::ImplicitLocOpBuilder &b, mlir::Value i) const;

private:
  bool apart = false;
  /// Iterations before `right`, and from `left` on; null: none at the left.
  mlir::Value right, left;
  mlir::Value end;
};

/// Puts what the problem's functions read, and numbers that they compute, for
/// the sequence and the head alone before the loop over tiles, and notes it in
/// `hoisted`.
void hoistOfHead(mlir::ImplicitLocOpBuilder &b, AttentionOp op,
                 const mlir::IRMapping &args, const ScoreTile &tile,
                 mlir::IRMapping &hoisted);

/// The factor that the problem leaves to its softmax, which applies it behind
/// the maximum; that needs a positive one, and scores that nothing reads
/// before. 1 where `shapeScores` applies it.
double softmaxScaleOf(AttentionOp op);

/// Set where a function of the problem makes scores, which may be of any size.
mlir::UnitAttr unboundedScoresOf(AttentionOp op);

/// The scores of a tile as softmax sees them, from the product of Q and K that
/// iteration `i` computes: capped, multiplied where the softmax cannot, mapped
/// by the problem's own functions, and hidden by the mask. `args` maps the
/// problem's operands.
mlir::Value shapeScores(mlir::ImplicitLocOpBuilder &b, AttentionOp op,
                        const mlir::IRMapping &args, mlir::Value scores,
                        const ScoreTile &tile, const EdgeTiles &edges,
                        mlir::Value i);

} // namespace kvbuf

#endif // KVBUFFER_LIB_PROGRAMS_ATTENTION_TILESCORES_H
