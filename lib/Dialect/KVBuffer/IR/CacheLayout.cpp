//===- CacheLayout.cpp - The kinds of cache in memory -----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// `CacheLayout` of the kinds that `!kvbuffer.cache` names. What tables,
/// lengths and offsets hold is clamped to what the tensors have; a look-up that
/// might lie outside of a table is not made.
///
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Dialect/KVBuffer/IR/PackedRow.h"
#include "kvbuffer/Dialect/KVBuffer/IR/SizeNames.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace kvbuf;

#include "kvbuffer/Dialect/KVBuffer/IR/CacheLayout.cpp.inc"

namespace {
/// Emits numbers of type `index`.
struct Emitter : ImplicitLocOpBuilder {
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(*this, value);
  }
  Value add(Value x, Value y) { return arith::AddIOp::create(*this, x, y); }
  Value sub(Value x, Value y) { return arith::SubIOp::create(*this, x, y); }
  Value mul(Value x, Value y) { return arith::MulIOp::create(*this, x, y); }
  Value dim(Value memref, int64_t d) {
    return memref::DimOp::create(*this, memref, d);
  }
  /// An entry of a tensor of integers; its extension keeps signs.
  Value entry(Value memref, ValueRange at) {
    Value word = memref::LoadOp::create(*this, memref, at);
    return word.getType().isIndex()
               ? word
               : arith::IndexCastOp::create(*this, getIndexType(), word)
                     .getResult();
  }
  /// The number from `least` to `most` that is nearest to `x`.
  Value clamp(Value x, Value least, Value most) {
    x = arith::MaxSIOp::create(*this, x, least);
    return arith::MinSIOp::create(*this, x, most);
  }
  /// Whether 0 <= x < count; counts are not negative.
  Value isBelow(Value x, Value count) {
    return arith::CmpIOp::create(*this, arith::CmpIPredicate::ult, x, count);
  }
  /// What `make` yields where `condition` holds, else 0; `condition` null: as
  /// if it held.
  Value onlyIf(Value condition, function_ref<Value()> make) {
    if (!condition)
      return make();
    auto ifOp = scf::IfOp::create(*this, TypeRange{getIndexType()}, condition,
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
    OpBuilder::InsertionGuard guard(*this);
    setInsertionPointToStart(ifOp.thenBlock());
    scf::YieldOp::create(*this, make());
    setInsertionPointToStart(ifOp.elseBlock());
    scf::YieldOp::create(*this, constant(0));
    return ifOp.getResult(0);
  }
  Value selectOrZero(Value condition, Value x) {
    return condition ? arith::SelectOp::create(*this, condition, x, constant(0))
                           .getResult()
                     : x;
  }
};
} // namespace

SmallVector<CacheDim> CacheType::getLeadingDims() const {
  constexpr int64_t dynamic = ShapedType::kDynamic;
  switch (getKind()) {
  case CacheKind::Dense:
    return {{dynamic, kBatchSize}, {dynamic, kKeysSize}};
  case CacheKind::Ragged:
    return {{dynamic, kAllKeysSize}};
  case CacheKind::Continuous:
    return {{dynamic, kBlocksSize}, {dynamic, kSlotRowsSize}};
  case CacheKind::Paged:
    return {{dynamic, kBlocksSize}, {getPageSize(), ""}};
  }
  llvm_unreachable("unknown kind of cache");
}

SmallVector<CacheTensor> CacheType::getIndexTensors() const {
  constexpr int64_t dynamic = ShapedType::kDynamic;
  switch (getKind()) {
  case CacheKind::Dense:
    return {};
  case CacheKind::Ragged:
    return {{"offsets", {{dynamic, kBatchSize, /*plus=*/1}}}};
  case CacheKind::Continuous:
    return {{"table", {{dynamic, kBatchSize}}},
            {"lengths", {{dynamic, kBatchSize}}}};
  case CacheKind::Paged:
    return {{"table", {{dynamic, kBatchSize}, {dynamic, kTableRowSize}}},
            {"lengths", {{dynamic, kBatchSize}}}};
  }
  llvm_unreachable("unknown kind of cache");
}

CacheRows CacheType::getRows() const {
  switch (getKind()) {
  case CacheKind::Dense:
    return CacheRows::inOrder();
  case CacheKind::Ragged:
    return CacheRows::from(/*offsets=*/0);
  case CacheKind::Continuous:
  case CacheKind::Paged:
    return CacheRows::inTable(/*table=*/0, /*lengths=*/1);
  }
  llvm_unreachable("unknown kind of cache");
}

Value CacheType::emitBatch(OpBuilder &builder, Location loc,
                           const CacheParts &parts) const {
  Emitter b(loc, builder);
  switch (getKind()) {
  case CacheKind::Dense:
    return b.dim(parts.data, 0);
  case CacheKind::Ragged:
    return b.sub(b.dim(parts.indices[0], 0), b.constant(1));
  case CacheKind::Continuous:
  case CacheKind::Paged:
    return b.dim(parts.indices[1], 0);
  }
  llvm_unreachable("unknown kind of cache");
}

/// The first row of a sequence of a ragged cache, and the row after its last.
static std::pair<Value, Value> rowsOf(Emitter &b, const CacheParts &parts,
                                      Value batch) {
  Value rows = b.dim(parts.data, 0);
  Value first = b.clamp(b.entry(parts.indices[0], batch), b.constant(0), rows);
  Value next = b.add(batch, b.constant(1));
  return {first, b.clamp(b.entry(parts.indices[0], next), first, rows)};
}

Value CacheType::emitRoom(OpBuilder &builder, Location loc,
                          const CacheParts &parts, Value batch) const {
  Emitter b(loc, builder);
  switch (getKind()) {
  case CacheKind::Dense:
  case CacheKind::Continuous:
    return b.dim(parts.data, 1);
  case CacheKind::Ragged: {
    auto [first, next] = rowsOf(b, parts, batch);
    return b.sub(next, first);
  }
  case CacheKind::Paged:
    return b.mul(b.dim(parts.indices[0], 1), b.constant(getPageSize()));
  }
  llvm_unreachable("unknown kind of cache");
}

Value CacheType::emitLength(OpBuilder &builder, Location loc,
                            const CacheParts &parts, Value batch) const {
  Value room = emitRoom(builder, loc, parts, batch);
  if (!hasTable())
    return room;
  Emitter b(loc, builder);
  return b.clamp(b.entry(parts.indices[1], batch), b.constant(0), room);
}

CachePlace CacheType::emitPlace(OpBuilder &builder, Location loc,
                                const CacheParts &parts, Value batch,
                                Value token, bool checked) const {
  Emitter b(loc, builder);
  Value fits;
  if (checked && getKind() != CacheKind::Ragged)
    fits = b.isBelow(token, emitRoom(b, loc, parts, batch));
  switch (getKind()) {
  case CacheKind::Dense:
    return {{batch, b.selectOrZero(fits, token)}, fits};
  case CacheKind::Ragged: {
    auto [first, next] = rowsOf(b, parts, batch);
    if (checked)
      fits = b.isBelow(token, b.sub(next, first));
    return {{b.selectOrZero(fits, b.add(first, token))}, fits};
  }
  case CacheKind::Continuous:
  case CacheKind::Paged:
    break;
  }
  SmallVector<Value> entry{batch};
  Value row = token;
  if (getKind() == CacheKind::Paged) {
    // Tokens fit 32 bits, in which a division takes two instructions.
    Value narrow = arith::IndexCastOp::create(b, b.getI32Type(), token);
    Value size = arith::ConstantOp::create(
        b, b.getI32IntegerAttr(int32_t(getPageSize())));
    Value page = arith::DivUIOp::create(b, narrow, size);
    row = arith::RemUIOp::create(b, narrow, size);
    entry.push_back(arith::IndexCastUIOp::create(b, b.getIndexType(), page));
    row = arith::IndexCastUIOp::create(b, b.getIndexType(), row);
  }
  Value block =
      b.onlyIf(fits, [&] { return b.entry(parts.indices[0], entry); });
  if (checked) {
    fits =
        arith::AndIOp::create(b, fits, b.isBelow(block, b.dim(parts.data, 0)));
    block = b.selectOrZero(fits, block);
    row = b.selectOrZero(fits, row);
  }
  return {{block, row}, fits};
}

std::pair<RowPartAttr, int64_t> kvbuf::partOf(RowAttr row, int64_t element) {
  RowPartAttr part;
  for (RowPartAttr some : row.getParts()) {
    part = some;
    if (element < some.getCount())
      break;
    element -= some.getCount();
  }
  return {part, element};
}

int64_t RowSegment::width() const {
  return part.getElement().getIntOrFloatBitWidth() / 8;
}

bool RowSegment::isCopied(Type element) const {
  return !part.getScale() && part.getElement() == element;
}

int64_t RowSegment::scalesAt() const {
  return part.getScaleAt() + inPart / part.getGranularity() *
                                 part.getScale().getIntOrFloatBitWidth() / 8;
}

int64_t RowSegment::scaleBytes() const {
  if (!part.getScale())
    return 0;
  constexpr int64_t word = 4;
  // The first group may begin ahead of the segment, the last one end behind it.
  int64_t group = part.getGranularity(),
          groups = (inPart + count - 1) / group - inPart / group + 1;
  return llvm::alignTo(groups * part.getScale().getIntOrFloatBitWidth() / 8,
                       word);
}

SmallVector<RowSegment> kvbuf::segmentsOf(RowAttr row, int64_t first,
                                          int64_t count) {
  SmallVector<RowSegment> list;
  int64_t begin = 0, end = first + count;
  for (RowPartAttr part : row.getParts()) {
    int64_t from = std::max(begin, first),
            upto = std::min(begin + part.getCount(), end);
    if (from < upto)
      list.push_back({part, from - begin, from - first, upto - from});
    begin += part.getCount();
  }
  return list;
}

bool kvbuf::isCopiedWhole(ArrayRef<RowSegment> segments, Type element) {
  return segments.size() == 1 && segments.front().isCopied(element);
}

int64_t kvbuf::elementBytesOf(ArrayRef<RowSegment> segments) {
  int64_t bytes = 0;
  for (const RowSegment &segment : segments)
    bytes += segment.bytes();
  return bytes;
}

int64_t kvbuf::scaleBytesOf(ArrayRef<RowSegment> segments) {
  int64_t bytes = 0;
  for (const RowSegment &segment : segments)
    bytes += segment.scaleBytes();
  return bytes;
}

RowAttr kvbuf::packedRowOf(Type cache) {
  auto type = dyn_cast<CacheType>(cache);
  return type ? type.getRow() : RowAttr();
}
