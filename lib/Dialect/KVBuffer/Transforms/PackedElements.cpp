//===- PackedElements.cpp - Elements of packed rows, by lanes ---*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/Transforms/PackedElements.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace kvbuf;

Value kvbuf::widenPowers(ImplicitLocOpBuilder &b, Value codes) {
  auto type = cast<VectorType>(codes.getType());
  auto words = type.clone(b.getI32Type());
  auto splat = [&](int32_t value) -> Value {
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(words, b.getI32IntegerAttr(value)));
  };
  // 2^(code - 127): the exponent of an f32, but for 0, which is a number below
  // the normal ones, and 255, which is none.
  Value wide = arith::ExtUIOp::create(b, words, codes);
  auto is = [&](int32_t other) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, wide,
                                 splat(other));
  };
  Value bits = arith::ShLIOp::create(b, wide, splat(23));
  bits = arith::SelectOp::create(b, is(0), splat(0x00400000), bits);
  bits = arith::SelectOp::create(b, is(255), splat(0x7fc00000), bits);
  return arith::BitcastOp::create(b, type.clone(b.getF32Type()), bits);
}

static int64_t bytesOf(Type type) { return type.getIntOrFloatBitWidth() / 8; }

Value PackedElements::column(int64_t at) {
  if (at < row.getBytes())
    return constant(at);
  // The tail lies behind all rows of the row's block, which is one of the
  // tensor's bytes, not of its dimensions: pages may be single rows.
  auto strides = memref::ExtractStridedMetadataOp::create(b, data).getStrides();
  Value line = mul(head, strides[lead.size()]);
  for (auto [index, stride] : llvm::zip(lead, strides))
    line = add(line, mul(index, stride));
  Value block = constant(row.getTailStride()), bytes = constant(row.getBytes());
  Value begin = arith::RemUIOp::create(b, line, block);
  Value number = arith::DivUIOp::create(b, begin, bytes);
  Value tail =
      add(constant(row.getTailRows() * row.getBytes() + at - row.getBytes()),
          mul(number, constant(row.getTail())));
  return arith::SubIOp::create(b, tail, begin);
}

Value PackedElements::loadBytes(VectorType type, Value at,
                                std::optional<int64_t> alignment) {
  Type stored = cast<MemRefType>(data.getType()).getElementType(),
       word = b.getI8Type();
  SmallVector<Value> indices(lead);
  indices.append({head, at});
  int64_t bytes = type.getNumElements() * bytesOf(type.getElementType());
  auto raw = VectorType::get({bytes}, stored);
  Value loaded = vector::LoadOp::create(
      b, raw, data, indices,
      /*nontemporal=*/false, llvm::MaybeAlign(alignment.value_or(0)));
  if (type == raw)
    return loaded;
  if (stored != word)
    loaded = arith::BitcastOp::create(b, raw.clone(word), loaded);
  if (type.getElementType() == word)
    return loaded;
  if (type.getElementTypeBitWidth() == 8)
    return arith::BitcastOp::create(b, type, loaded);
  return vector::BitCastOp::create(b, type, loaded);
}

void PackedElements::storeBytes(Value vector, Value at,
                                std::optional<int64_t> alignment) {
  Type stored = cast<MemRefType>(data.getType()).getElementType(),
       word = b.getI8Type();
  auto type = cast<VectorType>(vector.getType());
  int64_t bytes = type.getNumElements() * bytesOf(type.getElementType());
  auto raw = VectorType::get({bytes}, stored);
  if (type != raw) {
    auto words = raw.clone(word);
    if (type.getElementTypeBitWidth() != 8)
      vector = vector::BitCastOp::create(b, words, vector);
    else if (type != words)
      vector = arith::BitcastOp::create(b, words, vector);
    if (stored != word)
      vector = arith::BitcastOp::create(b, raw, vector);
  }
  SmallVector<Value> indices(lead);
  indices.append({head, at});
  vector::StoreOp::create(b, vector, data, indices, /*nontemporal=*/false,
                          llvm::MaybeAlign(alignment.value_or(0)));
}

Value PackedElements::groupOf(RowPartAttr part, Value first) {
  Value group =
      b.createOrFold<arith::DivUIOp>(first, constant(part.getGranularity()));
  return add(column(part.getScaleAt()),
             mul(group, constant(bytesOf(part.getScale()))));
}

/// Where elements of a part are, behind the column of its first.
static int64_t stepOf(RowPartAttr part) { return bytesOf(part.getElement()); }

Value PackedElements::load(RowPartAttr part, Value first, VectorType type,
                           std::optional<int64_t> alignment) {
  return loadBytes(
      type, add(column(part.getAt()), mul(first, constant(stepOf(part)))),
      alignment);
}

void PackedElements::store(RowPartAttr part, Value first, Value elements,
                           std::optional<int64_t> alignment) {
  storeBytes(elements,
             add(column(part.getAt()), mul(first, constant(stepOf(part)))),
             alignment);
}

Value PackedElements::loadScales(RowPartAttr part, Value first,
                                 VectorType type) {
  return loadBytes(type, groupOf(part, first), std::nullopt);
}

void PackedElements::storeScales(RowPartAttr part, Value first, Value scales) {
  storeBytes(scales, groupOf(part, first), std::nullopt);
}

Value PackedElements::widened(RowPartAttr part, Value first, int64_t width,
                              std::optional<int64_t> alignment) {
  auto wide = VectorType::get({width}, b.getF32Type());
  Value x = load(part, first, wide.clone(part.getElement()), alignment);
  x = arith::ExtFOp::create(b, wide, x);
  Type scale = part.getScale();
  if (!scale)
    return x;
  int64_t group = part.getGranularity(),
          count = width > group ? width / group : 1;
  bool isPower = isa<Float8E8M0FNUType>(scale);
  Value scales = loadScales(
      part, first,
      VectorType::get({count}, isPower ? Type(b.getI8Type()) : scale));
  if (isPower)
    scales = widenPowers(b, scales);
  else if (!scale.isF32())
    scales = arith::ExtFOp::create(b, VectorType::get({count}, b.getF32Type()),
                                   scales);
  SmallVector<int64_t> which;
  for (int64_t i = 0; i < width; ++i)
    which.push_back(i * count / width);
  return arith::MulFOp::create(
      b, x, vector::ShuffleOp::create(b, scales, scales, which));
}
