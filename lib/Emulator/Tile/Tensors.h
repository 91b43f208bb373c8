//===- Tensors.h - Tensors and tiles in DRAM --------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_EMULATOR_TILE_TENSORS_H
#define KVBUFFER_LIB_EMULATOR_TILE_TENSORS_H

#include "kvbuffer/Emulator/TileExecutionInterface.h"
#include "mlir/Support/TypeID.h"
#include "llvm/ADT/StringMap.h"
#include <memory>

namespace kvbuf::emu::tile {

using emu::Matrix;

/// The value nearest to `value` in a 16-bit float type, ties to even; `value`
/// itself for f32.
float roundTo(mlir::Type type, float value);

/// The tensors of a cache.
struct Cache {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Cache)

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
