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

std::optional<LdsBuffer> kvbuf::readLdsBuffer(Attribute entry) {
  auto attr = dyn_cast_or_null<DictionaryAttr>(entry);
  auto label = attr ? attr.getAs<StringAttr>("name") : StringAttr();
  if (!label)
    return std::nullopt;
  auto asNumber = [](Attribute value) -> int64_t {
    auto number = dyn_cast_or_null<IntegerAttr>(value);
    return number ? number.getValue().trySExtValue().value_or(-1) : -1;
  };
  auto number = [&](StringRef key) { return asNumber(attr.get(key)); };
  LdsBuffer buffer;
  buffer.name = label.str();
  buffer.offset = number("offset");
  buffer.slots = number("slots");
  buffer.slotBytes = number("slot_bytes");
  buffer.elementBytes = number("element_bytes");
  auto fits = [](int64_t x) { return x > 0 && x <= kMostBytes; };
  if (buffer.offset < 0 || buffer.offset > kMostBytes || !fits(buffer.slots) ||
      !fits(buffer.slotBytes) || buffer.slots > kMostBytes / buffer.slotBytes ||
      buffer.elementBytes < 1 || buffer.elementBytes > 16 ||
      !llvm::isPowerOf2_64(buffer.elementBytes))
    return std::nullopt;
  if (attr.get("keys")) {
    TransposedTile tile;
    tile.keys = number("keys");
    tile.depth = number("depth");
    tile.banks = number("banks");
    tile.elementBytes = buffer.elementBytes;
    auto bits = attr.getAs<ArrayAttr>("key_bits");
    if (!bits || buffer.elementBytes > 2 || !fits(tile.keys) || tile.keys < 8 ||
        !llvm::isPowerOf2_64(tile.keys) || !fits(tile.depth) ||
        tile.keys > buffer.slotBytes / buffer.elementBytes / tile.depth ||
        (tile.banks != 32 && tile.banks != 64) ||
        bits.size() > llvm::Log2_64(tile.keys))
      return std::nullopt;
    for (Attribute bit : bits) {
      int64_t position = asNumber(bit);
      if (position < 0 || position >= int64_t(bits.size()))
        return std::nullopt;
      tile.keyBits.push_back(position);
    }
    if (auto folds = attr.getAs<ArrayAttr>("folds")) {
      if (folds.size() > llvm::Log2_64_Ceil(tile.depth))
        return std::nullopt;
      // Columns change places with those of fewer bits alone, by whole words.
      for (auto [bit, fold] : llvm::enumerate(folds)) {
        int64_t by = asNumber(fold);
        if (by < 0 || by >= tile.keys * tile.elementBytes << bit ||
            by % (8 * tile.elementBytes))
          return std::nullopt;
        tile.folds.push_back(by);
      }
    }
    buffer.turned = tile;
    return buffer;
  }
  int64_t cols = number("cols"), rows = number("rows");
  if (!fits(rows) || !fits(cols) || !llvm::isPowerOf2_64(cols) ||
      rows > buffer.slotBytes / cols / buffer.elementBytes)
    return std::nullopt;
  buffer.tile.rows = rows;
  buffer.tile.blockCols = cols;
  buffer.tile.elementBytes = buffer.elementBytes;
  buffer.tile.repeats = buffer.slotBytes / buffer.tile.blockBytes();
  if (auto swizzle = attr.getAs<ArrayAttr>("swizzle")) {
    SmallVector<int64_t> list;
    for (Attribute value : swizzle) {
      list.push_back(asNumber(value));
      if (list.back() < 0 || list.back() > 16)
        return std::nullopt;
    }
    std::optional<Swizzle> read = readSwizzle(list);
    if (!read || list.empty() || (read->unit != 8 && read->unit != 16) ||
        cols * buffer.elementBytes < read->unit)
      return std::nullopt;
    // It takes from bits that it does not change.
    if (!read->isInvolution())
      return std::nullopt;
    buffer.tile.swizzle = *read;
  }
  return buffer;
}
