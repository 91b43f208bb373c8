//===- BegunMask.h - Masks that products begin with -------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A score that begins with -inf is -inf, whatever is added to it: a product of
/// a tile at an edge that begins so where keys are hidden needs no mask behind
/// it, which is two instructions a score. What hides them is the same along a
/// diagonal, or for a key, so that lanes find it out once for each.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_PROGRAMS_ATTENTION_BEGUNMASK_H
#define KVBUFFER_LIB_PROGRAMS_ATTENTION_BEGUNMASK_H

#include "TileScores.h"

namespace kvbuf {

/// What hides keys of a problem, as one comparison with each end of what a row
/// sees.
class BegunMask {
public:
  /// The problem's; nullopt where a key's distance from the row and the end of
  /// the sequence both hide some that the other shows, where lists or functions
  /// hide some, or where scores are more than products of elements of 16 bits
  /// times a positive scale.
  static std::optional<BegunMask> of(AttentionOp op);

  /// Whether the distance hides keys; else the end of the sequence does.
  bool isOfDistance() const { return mask.boundsRight(); }

  /// Whether a key is hidden from a row at a position, an i1.
  mlir::Value isHidden(mlir::ImplicitLocOpBuilder &b, const ScoreTile &at,
                       mlir::Value position, mlir::Value key) const;

  /// What a score begins with that is.
  mlir::Value hidden(mlir::ImplicitLocOpBuilder &b) const;

  /// What the product of the tile `at` begins with, if with nothing else.
  mlir::Value begin(mlir::ImplicitLocOpBuilder &b, const ScoreTile &at,
                    FragmentType type) const;

private:
  explicit BegunMask(MaskAttr mask) : mask(mask) {}

  MaskAttr mask;
};

} // namespace kvbuf

#endif // KVBUFFER_LIB_PROGRAMS_ATTENTION_BEGUNMASK_H
