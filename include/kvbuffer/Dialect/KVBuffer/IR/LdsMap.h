//===- LdsMap.h - What lies where in a kernel's LDS -------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// From the thread stage on, LDS is bytes. What the buffers of the stages
/// before were is kept for messages and pictures.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_LDSMAP_H
#define KVBUFFER_DIALECT_KVBUFFER_IR_LDSMAP_H

#include "kvbuffer/Layout/Shared.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace kvbuf {

class LdsAttr;

/// On a kernel from the thread stage on: what lies in LDS; an array of
/// `LdsAttr`, one a buffer.
inline constexpr llvm::StringLiteral kLdsAttr = "kvbuffer.lds";

/// A buffer in LDS of which each element's place is known.
struct LdsBuffer {
  std::string name;
  /// Its first byte in the block's LDS, and the bytes of a slot.
  int64_t offset = 0, slots = 0, slotBytes = 0;
  int64_t elementBytes = 0;
  SharedTile tile;
  /// In place of `tile`: a tile that was transposed on its way.
  std::optional<TransposedTile> turned;

  int64_t rows() const { return turned ? turned->keys : tile.rows; }
  int64_t cols() const { return turned ? turned->depth : tile.cols(); }
  int64_t bytes() const { return slots * slotBytes; }
  /// Bytes that stay together: what a swizzle moves (without one, what an
  /// access moves at most), or, of a transposed tile, a lane's word of eight
  /// elements.
  int64_t unitBytes() const {
    return turned ? 8 * elementBytes : int64_t(tile.swizzle.unit);
  }
  /// The byte of an element in its slot.
  int64_t byteOf(int64_t row, int64_t col) const;

  struct Place {
    int64_t slot, row, col;
  };
  /// What lies at a byte of the block's LDS; nothing: not an element of this
  /// buffer.
  std::optional<Place> placeOf(int64_t byte) const;
};

/// The description of one buffer; nothing where it does not tell each element's
/// place, or where the numbers contradict each other: the attribute may be
/// anybody's.
std::optional<LdsBuffer> readLdsBuffer(LdsAttr entry);

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_LDSMAP_H
