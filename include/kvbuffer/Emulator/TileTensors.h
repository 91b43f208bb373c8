//===- TileTensors.h - Tensors and tiles of a kernel ------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What lies in DRAM, as ops that run on whole tiles see it
/// (`TileContext::tensorOf`, `tileOf`).
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_EMULATOR_TILETENSORS_H
#define KVBUFFER_EMULATOR_TILETENSORS_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Emulator/TileInterpreter.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kvbuf::emu::tile {

struct Cache;

/// Starts an error at the op that runs now; see `TileContext::errorAt`.
using ErrorFn = llvm::function_ref<mlir::InFlightDiagnostic()>;

/// A tensor that a kernel accesses: memory with a shape and strides, in
/// elements.
struct Tensor {
  std::string name;
  mlir::Type elementType;
  void *data = nullptr;
  llvm::SmallVector<int64_t> shape, strides;
  TileAccess access = TileAccess::Read;
  /// For outputs, per element offset: the store that wrote it, or null.
  std::vector<mlir::Operation *> writers;

  /// Bytes of an element.
  int64_t elementBytes() const {
    return elementType.getIntOrFloatBitWidth() / 8;
  }
  /// The element offset of an index; fails with an error if it lies outside of
  /// the shape.
  mlir::FailureOr<int64_t> offset(llvm::ArrayRef<int64_t> index,
                                  ErrorFn error) const;
  /// The number at an offset, exactly.
  float loadFloat(int64_t offset) const;
  int64_t loadInt(int64_t offset) const {
    return elementType.isInteger(64)
               ? static_cast<const int64_t *>(data)[offset]
               : static_cast<const int32_t *>(data)[offset];
  }
  /// Stores a number for `op`; fails with an error if the element is written
  /// already.
  mlir::LogicalResult storeFloat(int64_t offset, float value,
                                 mlir::Operation *op, ErrorFn error);
  /// The same for an integer of a workspace, which may be written again.
  void storeInt(int64_t offset, int32_t value, mlir::Operation *op);
  /// Fails with an error if the kernel may not read (write) it.
  mlir::LogicalResult checkReadable(ErrorFn error) const;
  /// Fails with an error if nothing has written an element of a workspace.
  mlir::LogicalResult checkWritten(int64_t offset, ErrorFn error) const;
  mlir::LogicalResult checkWritable(ErrorFn error) const;
};

/// A tile in DRAM: where each of its rows is.
struct Tile {
  /// Offset of a row that is not valid.
  static constexpr int64_t kInvalid = -1;

  TileType type;
  /// The op that made the tile.
  mlir::Operation *op = nullptr;
  /// Null where the op was predicated off.
  Tensor *tensor = nullptr;
  /// Element offset of each row, or kInvalid.
  std::vector<int64_t> rows;
  /// The first columns that are valid, where not all of the type's are.
  std::optional<int64_t> cols;
  int64_t validCols() const { return cols.value_or(type.getCols()); }

  /// Pages smaller than the tile are looked up by the load.
  std::shared_ptr<const Cache> cache;
  int64_t batch = 0, head = 0, start = 0, from = 0, upto = 0;
  /// The column that loads count columns from.
  int64_t col = 0;
};

} // namespace kvbuf::emu::tile

#endif // KVBUFFER_EMULATOR_TILETENSORS_H
