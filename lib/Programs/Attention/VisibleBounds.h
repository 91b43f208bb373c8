//===- VisibleBounds.h - Ranges of keys by functions ------*- C++ -*- ===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_PROGRAMS_ATTENTION_VISIBLEBOUNDS_H
#define KVBUFFER_LIB_PROGRAMS_ATTENTION_VISIBLEBOUNDS_H

#include "TileScores.h"

namespace kvbuf {

/// What a function of visibility says of the keys of a tile of queries: none of
/// its rows sees key `hi` or a later one, and all see the keys before `fullHi`,
/// but for those before `fullLo`; none sees a key before `lo`. Null: no bound
/// on the left.
struct VisibleBounds {
  mlir::Value lo, hi, fullLo, fullHi;
};

/// Whether a problem's function of visibility bounds the keys of a tile whose
/// rows are those of `group` heads: it compares the key, or how far it is
/// behind a row's place, with numbers that follow from the sequence and the
/// head, or from the row and grow with it (a prefix, a row's own place), and
/// joins such comparisons by `and`, and ends by `or`. What else it joins to
/// them may say anything: by `and` no key is sure to be shown, by `or` none to
/// be hidden.
bool boundsKeys(AttentionOp op, int64_t group = 1);

/// Whether such a function hides the first or the last keys of a sequence from
/// some rows: tiles of other rows then have other keys. One that joins
/// something else by `or` to the keys before a number, as a tree of draft
/// tokens does, hides none for certain.
bool boundsEnds(AttentionOp op);

/// Whether what such a function hides before a tile's first key are keys that
/// others may see, as those of other documents are: all starts are read from
/// tensors whose numbers rise, for the row. What lies before a number of the
/// sequence, as padding does, nobody sees, and it may hold anything.
bool startsAreOfRows(AttentionOp op);

/// The bounds of a tile of `rows` queries from `at.query` on, of a problem for
/// which there are some. `args` maps its operands. Starts that are looked for
/// are known to the tile of `tileKeys` keys that they lie in: they are its
/// first key or its second one, which stands for any behind the first.
VisibleBounds visibleBounds(mlir::ImplicitLocOpBuilder &b, AttentionOp op,
                            const mlir::IRMapping &args, const ScoreTile &at,
                            int64_t rows, int64_t tileKeys);

} // namespace kvbuf

#endif // KVBUFFER_LIB_PROGRAMS_ATTENTION_VISIBLEBOUNDS_H
