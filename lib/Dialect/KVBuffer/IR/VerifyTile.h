//===- VerifyTile.h - What loads of tiles verify alike ----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_DIALECT_KVBUFFER_IR_VERIFYTILE_H
#define KVBUFFER_LIB_DIALECT_KVBUFFER_IR_VERIFYTILE_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"

namespace kvbuf {

/// The most elements along one side of a tile, slots of a buffer, warps, ...:
/// far more than a chip holds, and few enough that products of them, which
/// limits are compared with, do not overflow.
inline constexpr int64_t kMostElements = int64_t(1) << 16;

/// Whether a type is an 8-bit float.
bool isFloat8(mlir::Type type);

/// Whether rows can come in groups of so many. An error at `op` if not.
mlir::LogicalResult verifyGroup(mlir::Operation *op, int64_t group);

/// Whether a tile fits a slot of a buffer: its rows and elements are the
/// buffer's, its columns those of the cache's rows, of which the buffer takes
/// `depth`. An error at `op` if not.
mlir::LogicalResult verifyTileFits(mlir::Operation *op, TileType tile,
                                   KVBufferAttr params);

/// Whether the layouts of a product's fragments, where any has one, are those
/// of one matrix instruction's operands, both contracted in one order. An error
/// at `op` if not.
mlir::LogicalResult verifyProductLayouts(mlir::Operation *op,
                                         FragmentLayoutInterface a,
                                         FragmentLayoutInterface b,
                                         FragmentLayoutInterface acc,
                                         bool transposeB);

/// Whether what joins teams names at least one that takes, and none twice. An
/// error at it if not.
mlir::LogicalResult verifyTeamNames(TeamChannelInterface channel);

/// Whether a list has each power of two below 2^n once, n its length: an order
/// of the bits of a position.
bool isOrderOfBits(llvm::ArrayRef<int64_t> list);

} // namespace kvbuf

#endif // KVBUFFER_LIB_DIALECT_KVBUFFER_IR_VERIFYTILE_H
