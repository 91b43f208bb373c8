//===- LdsMap.cpp - What lies where in a kernel's LDS ---------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/IR/LdsMap.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

/// No chip has more LDS in a block, by far.
static constexpr int64_t kMostBytes = int64_t(1) << 30;

static bool fits(int64_t x) { return x > 0 && x <= kMostBytes; }

int64_t LdsBuffer::byteOf(int64_t row, int64_t col) const {
  if (!turned)
    return tile.byteOffset(row, col);
  return turned->layout().apply({{"row", row}, {"col", col}}, "byte");
}

std::optional<LdsBuffer::Place> LdsBuffer::placeOf(int64_t byte) const {
  if (byte < offset || byte >= offset + bytes())
    return std::nullopt;
  int64_t slot = (byte - offset) / slotBytes, at = (byte - offset) % slotBytes;
  if (turned) {
    LinearLayout layout = turned->layout();
    for (int64_t row = 0; row < turned->keys; ++row)
      for (int64_t col = 0; col < turned->depth; ++col)
        if (int64_t first = layout.apply({{"row", row}, {"col", col}}, "byte");
            at >= first && at < first + elementBytes)
          return Place{slot, row, col};
    return std::nullopt;
  }
  if (at >= tile.bytes())
    return std::nullopt;
  // A swizzle changes bits of a vector's number by bits above them, which it
  // leaves (`readLdsBuffer`): done twice, it is undone.
  int64_t block = at / tile.blockBytes(), inBlock = at % tile.blockBytes();
  int64_t unit = tile.swizzle.unit;
  int64_t element =
      (tile.swizzle(inBlock / unit) * unit + inBlock % unit) / elementBytes;
  return Place{slot, element / tile.blockCols,
               block * tile.blockCols + element % tile.blockCols};
}

/// The part of a description that says how a transposed tile lies; nothing
/// where its numbers contradict each other.
static std::optional<TransposedTile> readTransposed(LdsAttr attr,
                                                    const LdsBuffer &buffer) {
  auto number = [&](StringRef key) { return attr.getNumber(key).value_or(-1); };
  TransposedTile tile;
  tile.keys = number("keys");
  tile.depth = number("depth");
  tile.banks = number("banks");
  tile.elementBytes = buffer.elementBytes;
  std::optional<ArrayRef<int64_t>> bits = attr.getNumbers("key_bits");
  if (!bits || buffer.elementBytes > 2 || !fits(tile.keys) || tile.keys < 8 ||
      !llvm::isPowerOf2_64(tile.keys) || !fits(tile.depth) ||
      tile.keys > buffer.slotBytes / buffer.elementBytes / tile.depth ||
      (tile.banks != 32 && tile.banks != 64) ||
      bits->size() > llvm::Log2_64(tile.keys))
    return std::nullopt;
  for (int64_t position : *bits) {
    if (position < 0 || position >= int64_t(bits->size()))
      return std::nullopt;
    tile.keyBits.push_back(position);
  }
  ArrayRef<int64_t> folds =
      attr.getNumbers("folds").value_or(ArrayRef<int64_t>());
  if (folds.size() > llvm::Log2_64_Ceil(tile.depth))
    return std::nullopt;
  // Columns change places with those of fewer bits alone, by whole words.
  for (auto [bit, by] : llvm::enumerate(folds)) {
    if (by < 0 || by >= tile.keys * tile.elementBytes << bit ||
        by % (8 * tile.elementBytes))
      return std::nullopt;
    tile.folds.push_back(by);
  }
  return tile;
}

/// The same of a tile whose rows stay together.
static std::optional<SharedTile> readShared(LdsAttr attr,
                                            const LdsBuffer &buffer) {
  int64_t cols = attr.getNumber("cols").value_or(-1);
  int64_t rows = attr.getNumber("rows").value_or(-1);
  if (!fits(rows) || !fits(cols) || !llvm::isPowerOf2_64(cols) ||
      rows > buffer.slotBytes / cols / buffer.elementBytes)
    return std::nullopt;
  SharedTile tile;
  tile.rows = rows;
  tile.blockCols = cols;
  tile.elementBytes = buffer.elementBytes;
  tile.repeats = buffer.slotBytes / tile.blockBytes();
  std::optional<ArrayRef<int64_t>> list = attr.getNumbers("swizzle");
  if (!list)
    return tile;
  if (llvm::any_of(*list, [](int64_t x) { return x < 0 || x > 16; }))
    return std::nullopt;
  std::optional<Swizzle> swizzle = readSwizzle(*list);
  if (!swizzle || list->empty() ||
      (swizzle->unit != 8 && swizzle->unit != 16) ||
      cols * buffer.elementBytes < swizzle->unit)
    return std::nullopt;
  // It takes from bits that it does not change.
  if (!swizzle->isInvolution())
    return std::nullopt;
  tile.swizzle = *swizzle;
  return tile;
}

std::optional<LdsBuffer> kvbuf::readLdsBuffer(LdsAttr attr) {
  auto number = [&](StringRef key) { return attr.getNumber(key).value_or(-1); };
  LdsBuffer buffer;
  buffer.name = attr.getName().str();
  buffer.offset = number("offset");
  buffer.slots = number("slots");
  buffer.slotBytes = number("slot_bytes");
  buffer.elementBytes = number("element_bytes");
  if (buffer.offset < 0 || buffer.offset > kMostBytes || !fits(buffer.slots) ||
      !fits(buffer.slotBytes) || buffer.slots > kMostBytes / buffer.slotBytes ||
      buffer.elementBytes < 1 || buffer.elementBytes > 16 ||
      !llvm::isPowerOf2_64(buffer.elementBytes))
    return std::nullopt;
  if (attr.getNumber("keys")) {
    buffer.turned = readTransposed(attr, buffer);
    return buffer.turned ? std::optional(buffer) : std::nullopt;
  }
  std::optional<SharedTile> tile = readShared(attr, buffer);
  if (!tile)
    return std::nullopt;
  buffer.tile = *tile;
  return buffer;
}
