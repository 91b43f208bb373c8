//===- TmaTile.h - What a maker of tensor maps asks for ---------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The ops `kvbuffer.cache.create_*_tma_tile` (seed page KVCacheT) in one form,
/// for their verifiers and for whoever lowers them.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_TMATILE_H
#define KVBUFFER_DIALECT_KVBUFFER_IR_TMATILE_H

#include "mlir/IR/Operation.h"
#include <optional>

namespace kvbuf {

/// A map of the rows of a cache's data.
struct TmaTile {
  /// Of type `CacheLayout`.
  mlir::Value cache;
  /// The map's elements, which may be others than the cache's.
  mlir::Type element;
  /// Rows and columns of a box.
  int64_t boxRows = 1, boxCols = 0;
  /// Bytes from the beginning of a row (a head's, or of gathered rows the
  /// token's) to the map's column 0.
  int64_t firstByte = 0;
  /// Columns that the map covers; 0: as many as lie between two rows.
  int64_t columns = 0;
  /// Elements from one row to the next, checked at the launch; 0: any.
  int64_t stride = 0;
  /// Bytes that the swizzle spans, and that L2 fetches at a time; 0: none, and
  /// as the copy asks.
  int64_t swizzle = 0, l2Promotion = 128;
  /// Rows that a cut tile has at most; 0: the map is not of cut tiles.
  int64_t cutRows = 0;
  /// Whether copies gather rows: the map is a matrix of whole rows then.
  bool gathers = false;
};

/// What an op makes a tensor map of; nothing: it makes none.
std::optional<TmaTile> tmaTileOf(mlir::Operation *op);

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_TMATILE_H
