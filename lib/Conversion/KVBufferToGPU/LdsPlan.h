//===- LdsPlan.h - What lies in a kernel's LDS -----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LDSPLAN_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LDSPLAN_H

#include "Machine.h"
#include "llvm/ADT/DenseMap.h"

namespace kvbuf {

/// The LDS of a block, as it is handed out while the kernel is lowered: buffers
/// that have their places, then whatever ops ask for, one after the other. No
/// code is made here; offsets are bytes.
class LdsPlan {
public:
  /// What the block takes so far.
  int64_t bytes() const { return end; }
  /// Hands out `count` bytes after all others; where they begin is a multiple
  /// of `kBufferAlignment` if all ends before are.
  int64_t take(int64_t count);
  /// Leaves all that lies below `offset` to those who have placed it there.
  void cover(int64_t offset) { end = std::max(end, offset); }
  /// Gives back what was handed out from `offset` on.
  void giveBack(int64_t offset) { end = offset; }

  /// Adds a buffer's entry to what messages say of LDS (`kLdsAttr`).
  void describe(LdsAttr buffer) { buffers.push_back(buffer); }
  /// The entries of all buffers.
  llvm::ArrayRef<mlir::Attribute> described() const { return buffers; }

  /// Room for one barrier, which so many arrivals complete; its offset.
  int64_t addBarrier(int64_t arrivals);
  /// Room for the barriers of `stages` slots, *full* and then *empty*:
  /// `releases` arrivals empty one, `fills` fill it. The offset of the first.
  int64_t addBarriers(int64_t stages, int64_t releases, int64_t fills = 1);
  /// Room for numbers that go with barriers: beside them, if there is some
  /// left, else of its own.
  int64_t takeBesideBarriers(int64_t count);
  /// All barriers, for their initialization.
  llvm::ArrayRef<LdsBarrier> barriers() const { return allBarriers; }

  /// Says that a value's rows lie in LDS from `offset` on, one slot a thread.
  void placeRows(mlir::Value value, int64_t offset) { rows[value] = offset; }
  /// Where they begin; nothing for what lanes hold in registers.
  std::optional<int64_t> rowsOf(mlir::Value value) const;

private:
  /// Room for so many barriers.
  int64_t reserveBarriers(int64_t count);

  int64_t end = 0;
  llvm::SmallVector<mlir::Attribute> buffers;
  llvm::SmallVector<LdsBarrier> allBarriers;
  /// What is left of the bytes that barriers are cut from.
  int64_t barrierNext = 0, barrierEnd = 0;
  llvm::DenseMap<mlir::Value, int64_t> rows;
};

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LDSPLAN_H
