//===- PartialLayouts.h - How partial results lie ---------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_PARTIALLAYOUTS_H
#define KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_PARTIALLAYOUTS_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"

namespace kvbuf {

/// The order of columns in memory in which the lanes that hold accumulators of
/// f32 in a layout store 16 bytes of a row at once, those of neighbouring lanes
/// side by side: the column at each bit of a place. Empty where this is the
/// natural order, or no order does it.
llvm::SmallVector<int64_t> columnsInMemory(FragmentLayoutInterface layout,
                                           FragmentType acc);

/// The layout of what is joined of partial results of `room` rows whose columns
/// lie in memory in an order: a lane has 16 bytes side by side, of as few rows
/// as can be, and the lanes of a wave are no more than the rows need. Null
/// where the fragment has too few rows for a wave.
BlockedLayoutAttr joinedLayout(FragmentType acc, int64_t room,
                               llvm::ArrayRef<int64_t> columns,
                               int64_t waveSize);

/// That of some of their rows, which `warps` warps join: each has as many of
/// them as the others, and all of their columns. Null where these are too few.
BlockedLayoutAttr joinedLayoutOfWarps(FragmentType acc, int64_t warps,
                                      llvm::ArrayRef<int64_t> columns,
                                      int64_t waveSize);

} // namespace kvbuf

#endif // KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_PARTIALLAYOUTS_H
