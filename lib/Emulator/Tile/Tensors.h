//===- Tensors.h - Tensors and tiles in DRAM --------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_EMULATOR_TILE_TENSORS_H
#define KVBUFFER_LIB_EMULATOR_TILE_TENSORS_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Emulator/TileExecutionInterface.h"
#include "kvbuffer/Emulator/TileInterpreter.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include <memory>
#include <string>
#include <vector>

namespace kvbuf::emu::tile {

using emu::Matrix;

/// Starts an error at the op that runs now; see BlockRun::error.
using ErrorFn = llvm::function_ref<mlir::InFlightDiagnostic()>;

/// The value nearest to `value` in a 16-bit float type, ties to even; `value`
/// itself for f32.
float roundTo(mlir::Type type, float value);

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

/// The tensors of a cache.
struct Cache {
  Cache(CacheLayout layout);

  CacheLayout layout;
  /// How rows are found; `code` emits it where only the type knows.
  CacheRows rows;
  Tensor *data = nullptr;
  /// In the order of CacheLayout::getIndexTensors.
  std::vector<Tensor *> indices;
  /// Null without quantization.
  Tensor *scales = nullptr;
  const Tensor &table() const { return *indices[*rows.table]; }
  const Tensor &lengths() const { return *indices[*rows.lengths]; }
  const Tensor &offsets() const { return *indices[*rows.offsets]; }

  /// Code that the type emits, of the data, the index tensors, a sequence and a
  /// token: the indices of the token's row in the leading dimensions, and
  /// whether it has one; the tokens of the sequence and its room. Null where
  /// `rows` says it all.
  std::unique_ptr<mlir::Block> place, size;
  /// What the blocks above yield.
  llvm::SmallVector<mlir::Value> placed, sizes;
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
  const Cache *cache = nullptr;
  int64_t batch = 0, head = 0, start = 0, from = 0, upto = 0;
};

/// The value of an expression over sizes (`kvbuffer.launch_value`).
mlir::FailureOr<int64_t> evaluateSize(mlir::Attribute size,
                                      const llvm::StringMap<int64_t> &sizes,
                                      ErrorFn error);

/// Keys of a sequence: `kvbuffer.cache.num_keys`.
mlir::FailureOr<int64_t> numKeys(const Cache &cache, int64_t batch,
                                 int64_t newTokens, ErrorFn error);

/// The indices of a token's row in the leading dimensions of a cache's data, of
/// a cache whose type says it.
mlir::FailureOr<llvm::SmallVector<int64_t>>
rowOf(const Cache &cache, int64_t batch, int64_t token, ErrorFn error);

/// The scale of an element of a token, whose row has these indices:
/// `kvbuffer.cache_scale`.
mlir::FailureOr<float> scaleOf(const Cache &cache, llvm::ArrayRef<int64_t> row,
                               int64_t head, int64_t headDim, ErrorFn error);

/// Where code that a cache's type emits places a token of a tile's sequence.
using RowFn = llvm::function_ref<mlir::FailureOr<llvm::SmallVector<int64_t>>(
    const Cache &cache, int64_t token)>;

/// Fills in `tile.rows` from the tile's cache fields; counts look-ups.
mlir::LogicalResult lookUpRows(Tile &tile, TileReport &report, RowFn rowByPlace,
                               ErrorFn error);

/// Reads `cols` columns of a tile's valid rows, from `firstCol` on; the rest of
/// `target` becomes zero.
void loadTile(const Tile &tile, Matrix &target, int64_t firstCol, int64_t cols);

/// Reads what a buffer takes of a tile into a slot.
inline void loadInto(KVBufferAttr params, const Tile &tile, Matrix &slot,
                     int64_t block = 0) {
  loadTile(tile, slot, params.getHeadDimOffset() + block * params.getBK(),
           params.getColumnsOf(block));
}

} // namespace kvbuf::emu::tile

#endif // KVBUFFER_LIB_EMULATOR_TILE_TENSORS_H
