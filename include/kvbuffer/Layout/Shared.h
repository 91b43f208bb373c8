//===- Shared.h - Layouts of tiles in shared memory (LDS) -------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A tile in LDS is *blocked*: `num_repeats` blocks of BN x BK elements,
/// each row-major and contiguous (seed page KVBuffer). Inside a block an XOR
/// swizzle spreads the rows over the banks. A tile whose depth is no power of
/// two has a block count that is none either; hence the outer repeat beside the
/// linear layout of one block.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LAYOUT_SHARED_H
#define KVBUFFER_LAYOUT_SHARED_H

#include "kvbuffer/Layout/LinearLayout.h"

namespace kvbuf {

/// What a swizzle adds to the index x of a vector, bit by bit:
/// ((x >> (base + shift)) & (2^bits - 1)) << base.
struct SwizzleTerm {
  unsigned bits = 0, base = 0, shift = 0;
  bool operator==(const SwizzleTerm &) const = default;
  int64_t operator()(int64_t x) const { return (x & looksAt()) >> shift; }
  /// The bits of an index that the term changes, and those that it looks at.
  int64_t changes() const { return ((int64_t(1) << bits) - 1) << base; }
  int64_t looksAt() const { return changes() << shift; }
};

/// x -> x XOR (((x >> (base + shift)) & (2^bits - 1)) << base), on the index of
/// a vector of `unit` bytes in its block (kv_buffer: Swizzle(bits, base,
/// shift), of 16-byte vectors). With a second term vectors move by the sum of
/// the two, so that several bits of a row may change the same bit of an index.
struct Swizzle {
  unsigned bits = 0, base = 0, shift = 0;
  /// Bytes that stay together: the widest access of one lane.
  unsigned unit = 16;
  /// The second term; of no bits: none.
  SwizzleTerm second = {};
  bool operator==(const Swizzle &) const = default;
  /// The term that `bits`, `base` and `shift` are.
  SwizzleTerm first() const { return {bits, base, shift}; }
  /// Whether any vector may have another place.
  bool movesVectors() const { return bits || second.bits; }
  /// Whether no bit that a term looks at is changed: done twice, the swizzle is
  /// undone then.
  bool isInvolution() const {
    return !((first().changes() | second.changes()) &
             (first().looksAt() | second.looksAt()));
  }
  /// The vector that is stored where vector `x` would be without the swizzle.
  int64_t operator()(int64_t x) const { return x ^ first()(x) ^ second(x); }
};

/// A tile of `rows` x (`repeats` * `blockCols`) elements in LDS.
struct SharedTile {
  /// Rows of a block (BN).
  int64_t rows = 0;
  /// Columns of a block (BK), a power of two.
  int64_t blockCols = 0;
  /// Blocks side by side (num_repeats); any number.
  int64_t repeats = 1;
  /// Bytes of an element.
  unsigned elementBytes = 2;
  /// Applied to the index of a vector within a block.
  Swizzle swizzle;

  /// Columns of the tile, bytes of a block, bytes of the tile.
  int64_t cols() const { return repeats * blockCols; }
  int64_t blockBytes() const { return rows * blockCols * elementBytes; }
  int64_t bytes() const { return repeats * blockBytes(); }
  /// The layout of one block: ("row", "col") to ("byte"). A swizzle looks at
  /// bits of the row and leaves them, so that a block whose rows are no power
  /// of two is the front part of one whose rows are.
  LinearLayout block() const;
  /// The byte offset of an element in the tile; what `block()` says of its
  /// block, after the whole blocks before it.
  int64_t byteOffset(int64_t row, int64_t col) const;
};

/// How the lanes of a wave of 64 access a tile in LDS: each `width` bytes, at
/// the element whose row and column are the XOR of those of its number's bits.
struct LaneAccess {
  unsigned width = 0;
  /// {row, col} of each bit of a lane's number, as far as they are known.
  llvm::SmallVector<LinearLayout::Coord> lanes;
};

/// A tile of `keys` x `depth` elements of 8 or 16 bits (a power of two x any
/// number) that was transposed on its way into LDS: one LDS row of `keys`
/// elements for each column of the tile. Inside of an LDS row, elements stand
/// in the order in which the second product contracts them, so that the eight
/// of a lane's word (an instruction group's) lie in a row.
struct TransposedTile {
  int64_t keys = 0, depth = 0;
  /// Position of each key bit in the LDS row: from `contractedOrder`.
  llvm::SmallVector<unsigned> keyBits;
  unsigned banks = 32;
  unsigned elementBytes = 2;
  /// What the places of columns with a bit set are XORed with, bytes, by the
  /// bit's number; absent: nothing. Whole words of lanes change places.
  llvm::SmallVector<int64_t> folds;

  /// Chooses `folds` with which none of these accesses has a bank conflict; if
  /// there are none, those of as many of the first ones as there are folds for.
  /// Returns how many. Of columns no more bits are folded than have to be.
  unsigned avoidConflicts(llvm::ArrayRef<LaneAccess> accesses);

  /// Bytes of the tile.
  int64_t bytes() const { return keys * depth * elementBytes; }
  /// ("row" of keys, "col") to "byte"; columns up to the next power of two.
  LinearLayout layout() const;
};

/// The lanes of a wave of 64 that LDS serves together in an access of `width`
/// bytes, as what their numbers differ by: a basis for each order in which the
/// hardware may serve them. Accesses of 16 bytes have two, that of the lanes'
/// numbers and the one that is reported of CDNA, {0-3, 12-15, 20-27} and so on.
llvm::SmallVector<llvm::SmallVector<unsigned>> lanesTogether(unsigned width,
                                                             unsigned banks);

/// The swizzle that makes reads of banks/4 consecutive rows x 16 bytes from a
/// multiple of banks/4 on (32 banks: 8 rows, an `ldmatrix` phase; 64 banks: 16
/// rows) and writes of whole 16-byte vectors free of bank conflicts on `banks`
/// banks of 4 bytes (a power of two, 4 and up), for blocks with rows of
/// `rowBytes` bytes (a power of two, 16 and up). With a `unit` of 8, the same
/// of twice as many rows x 8 bytes. A `ds_read_b128` of a 16-row MFMA fragment
/// on 64 banks needs the sum of (3, 0, 3) and (2, 0, 4) instead for 64-byte
/// rows: with (2, 0, 4) alone lanes {0-3, 12-15, 20-27}, which CDNA is reported
/// to serve together, share banks, with (3, 0, 3) alone those that follow each
/// other; 32-row fragments are ideal in either order.
Swizzle conflictFreeSwizzle(int64_t rowBytes, unsigned banks,
                            unsigned unit = 16);

/// The cycles that a wave's shared-memory access takes: `laneBytes` are the
/// lanes' byte addresses (negative: the lane is inactive), each accesses
/// `width` bytes; lanes are served in groups of `group` consecutive ones
/// (NVIDIA: 32, 16, 8 for 4-, 8- and 16-byte accesses). Hardware that groups
/// other lanes is modelled by permuting `laneBytes`. Equal words are broadcast.
/// Returns the sum over the groups of the most different words in one bank;
/// `ideal` is the same if each group's words were spread evenly over the banks.
int64_t bankCycles(llvm::ArrayRef<int64_t> laneBytes, unsigned width,
                   unsigned group, unsigned banks, int64_t &ideal);

} // namespace kvbuf

#endif // KVBUFFER_LAYOUT_SHARED_H
