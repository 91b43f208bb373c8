//===- LaneCaches.h - Caches, their tiles and their keys --------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANECACHES_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANECACHES_H

#include "Lanes.h"

namespace kvbuf {

/// Lowers an op; its model calls it (LaneModels.cpp).
mlir::LogicalResult lowerOp(LaneContext &lower, MakeCacheOp op);
void lowerOp(LaneContext &lower, CacheNumKeysOp op);
mlir::LogicalResult lowerOp(LaneContext &lower, CacheTileOp op);
void lowerOp(LaneContext &lower, CacheScaleOp op);
void lowerOp(LaneContext &lower, KeyRangeOp op);

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANECACHES_H
