//===- PackedRows.cpp - Rows of parts of several types ----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PackedRows.h"
#include "LaneArithmetic.h"
#include "Staging.h"
#include "kvbuffer/Dialect/KVBuffer/IR/FragmentSources.h"
#include "kvbuffer/Dialect/KVBuffer/IR/PackedRow.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

/// Elements that a lane widens at a time: 16 bytes of a slot.
static constexpr int64_t kElements = 8;

RowAttr kvbuf::packedRowOf(Value tile) {
  auto made = fragmentSources(tile).front().getDefiningOp<CacheTileOp>();
  return made ? packedRowOf(made.getCache().getType()) : RowAttr();
}

Value kvbuf::widenElements(ImplicitLocOpBuilder &b, Value vector) {
  auto type = cast<VectorType>(vector.getType());
  if (type.getElementTypeBitWidth() == 8)
    vector = arith::ExtFOp::create(b, type.clone(b.getF16Type()), vector);
  return arith::ExtFOp::create(b, type.clone(b.getF32Type()), vector);
}

Value kvbuf::placeInRow(Lanes &lower, RowAttr row, Value line, int64_t at) {
  ImplicitLocOpBuilder &b = lower.b;
  if (at < row.getBytes())
    return add(b, line, lower.index(at));
  // Behind the rows of its block.
  Value stride = lower.index(row.getTailStride());
  Value block = arith::DivUIOp::create(b, line, stride);
  Value inBlock = arith::DivUIOp::create(
      b, arith::RemUIOp::create(b, line, stride).getResult(),
      lower.index(row.getBytes()));
  Value tails = add(
      b, mul(b, block, stride),
      lower.index(row.getTailRows() * row.getBytes() + at - row.getBytes()));
  return add(b, tails, mul(b, inBlock, lower.index(row.getTail())));
}

Value kvbuf::powerOfTwo(ImplicitLocOpBuilder &b, Value code) {
  // The exponent of an f32, but for 0, which is a number below the normal ones,
  // and 255, which is none.
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, value, 32);
  };
  auto is = [&](int64_t other) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, code,
                                 constant(other));
  };
  Value bits = arith::ShLIOp::create(b, code, constant(23));
  bits = arith::SelectOp::create(b, is(0), constant(0x00400000), bits);
  bits = arith::SelectOp::create(b, is(255), constant(0x7fc00000), bits);
  return arith::BitcastOp::create(b, b.getF32Type(), bits);
}

namespace {
/// Columns of a slot that come from one part of a row, or from none: zeros.
struct Segment {
  RowPartAttr part;
  /// The first one's place in the part and in the slot.
  int64_t inPart, inSlot, count;
};

/// Fills a slot with the columns of one segment after the other.
class PackedLoad {
public:
  PackedLoad(Lanes &lower, const TileView &tile, RowAttr row,
             KVBufferAttr params, Value slot);
  void emit(FillingLanes lanes);

private:
  SmallVector<Segment> segments() const;
  void emitVector(const Segment &segment, Value number);
  Value placeOf(Value line, int64_t at) {
    return placeInRow(lower, row, line, at);
  }
  /// `count` bytes at an index as a vector of `type`.
  Value loadAs(VectorType type, Value at);
  Value scaleAt(RowPartAttr part, Value line, Value group);
  void store(Value row, Value col, Value vector);
  Value add(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value mul(Value x, Value y) { return arith::MulIOp::create(b, x, y); }

  Lanes &lower;
  ImplicitLocOpBuilder &b;
  const TileView &tile;
  RowAttr row;
  KVBufferAttr params;
  Value slot;
  SharedTile layout;
  SmallVector<int64_t> rowImages, colImages;
};
} // namespace

PackedLoad::PackedLoad(Lanes &lower, const TileView &tile, RowAttr row,
                       KVBufferAttr params, Value slot)
    : lower(lower), b(lower.b), tile(tile), row(row), params(params),
      slot(slot), layout(sharedTile(params)) {
  LinearLayout block = layout.block();
  for (unsigned bit = 0; bit < block.inLog2("row"); ++bit)
    rowImages.push_back(block.basis("row", bit, "byte"));
  for (unsigned bit = 0; bit < block.inLog2("col"); ++bit)
    colImages.push_back(block.basis("col", bit, "byte"));
}

SmallVector<Segment> PackedLoad::segments() const {
  SmallVector<Segment> list;
  for (const RowSegment &some :
       segmentsOf(row, params.getHeadDimOffset(), params.getDepth()))
    list.push_back({some.part, some.inPart, some.inTile, some.count});
  if (int64_t behind = params.getSmemCols() - params.getDepth(); behind > 0)
    list.push_back({RowPartAttr(), 0, params.getDepth(), behind});
  return list;
}

Value PackedLoad::loadAs(VectorType wanted, Value at) {
  int64_t bytes = wanted.getNumElements() * wanted.getElementTypeBitWidth() / 8;
  Value source = lower.flat(tile.data);
  // What LLVM has no type for is loaded as it is stored, and kept as bits.
  Type stored = cast<MemRefType>(source.getType()).getElementType();
  Value loaded = vector::LoadOp::create(
      b, VectorType::get({bytes}, stored), source, ValueRange{at},
      /*nontemporal=*/false, llvm::Align(std::min(bytes, lower.alignment)));
  Type word = b.getI8Type();
  if (stored != word)
    loaded =
        arith::BitcastOp::create(b, VectorType::get({bytes}, word), loaded);
  if (wanted.getElementTypeBitWidth() == 8)
    return arith::BitcastOp::create(b, wanted, loaded);
  return vector::BitCastOp::create(b, wanted, loaded);
}

Value PackedLoad::scaleAt(RowPartAttr part, Value line, Value group) {
  Type scale = part.getScale();
  int64_t bytes = scale.getIntOrFloatBitWidth() / 8;
  Value at = add(placeOf(line, part.getScaleAt()),
                 mul(lower.toIndex(group), lower.index(bytes)));
  bool isPower = isa<Float8E8M0FNUType>(scale);
  auto loadedType = VectorType::get({1}, isPower ? Type(b.getI8Type()) : scale);
  Value number = vector::ExtractOp::create(b, loadAs(loadedType, at),
                                           ArrayRef<int64_t>{0});
  if (!isPower) {
    if (!scale.isF32())
      number = arith::ExtFOp::create(b, b.getF32Type(), number);
    return number;
  }
  return powerOfTwo(b, arith::ExtUIOp::create(b, b.getI32Type(), number));
}

void PackedLoad::store(Value row, Value col, Value vector) {
  unsigned blockBits = llvm::Log2_64(layout.blockCols);
  Value block = arith::ShRUIOp::create(b, col, lower.i32(blockBits));
  Value inBlock =
      arith::AndIOp::create(b, col, lower.i32(layout.blockCols - 1));
  Value first = add(slot, mul(block, lower.i32(layout.blockBytes())));
  Value place = arith::XOrIOp::create(b, emitLinear(b, row, rowImages),
                                      emitLinear(b, inBlock, colImages));
  // What a swizzle keeps together.
  int64_t unit =
      std::min<int64_t>(layout.swizzle.unit / layout.elementBytes, kElements);
  Value shared = lower.shared(params.getElementType());
  for (int64_t i = 0; i < kElements; i += unit) {
    int64_t image = layout.byteOffset(0, i);
    Value byte = add(first, arith::XOrIOp::create(b, place, lower.i32(image)));
    Value element = arith::ShRUIOp::create(
        b, byte, lower.i32(llvm::Log2_64(layout.elementBytes)));
    Value part = vector;
    if (unit < kElements)
      part = vector::ShuffleOp::create(
          b, vector, vector, llvm::to_vector(llvm::seq<int64_t>(i, i + unit)));
    vector::StoreOp::create(b, part, shared, ValueRange{lower.toIndex(element)},
                            /*nontemporal=*/false,
                            llvm::Align(unit * layout.elementBytes));
  }
}

void PackedLoad::emitVector(const Segment &segment, Value number) {
  int64_t perRow = segment.count / kElements;
  Value r = arith::DivUIOp::create(b, number, lower.i32(perRow));
  Value vector = arith::RemUIOp::create(b, number, lower.i32(perRow));
  Value col = mul(vector, lower.i32(kElements));
  auto wide = VectorType::get({kElements}, params.getElementType());
  Value toCol = add(col, lower.i32(segment.inSlot));
  RowPartAttr part = segment.part;
  if (!part) {
    store(r, toCol, arith::ConstantOp::create(b, wide, b.getZeroAttr(wide)));
    return;
  }
  Value ok = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, r, tile.hi);
  if (!matchPattern(tile.lo, m_Zero()))
    ok = arith::AndIOp::create(
        b, ok, arith::CmpIOp::create(b, arith::CmpIPredicate::sge, r, tile.lo));
  if (tile.lastPage)
    ok = loadIf(lower, ok, b.getI1Type(),
                [&] { return tile.isListed(lower, r); });
  Value elements = loadIf(lower, ok, wide, [&]() -> Value {
    Value line = tile.lineOf(lower, r),
          inPart = add(col, lower.i32(segment.inPart));
    int64_t bytes = part.getElement().getIntOrFloatBitWidth() / 8;
    Value x = loadAs(VectorType::get({kElements}, part.getElement()),
                     add(placeOf(line, part.getAt()),
                         mul(lower.toIndex(inPart), lower.index(bytes))));
    if (part.getElement() == params.getElementType() && !part.getScale())
      return x;
    auto f32 = VectorType::get({kElements}, b.getF32Type());
    x = widenElements(b, x);
    if (part.getScale()) {
      Value group =
          arith::DivUIOp::create(b, inPart, lower.i32(part.getGranularity()));
      x = arith::MulFOp::create(
          b, x,
          vector::BroadcastOp::create(b, f32, scaleAt(part, line, group)));
    }
    return arith::TruncFOp::create(b, wide, x);
  });
  store(r, toCol, elements);
}

void PackedLoad::emit(FillingLanes lanes) {
  for (const Segment &segment : segments()) {
    OpBuilder::InsertionGuard guard(b);
    int64_t vectors = layout.rows * (segment.count / kElements);
    auto loop = scf::ForOp::create(b, lanes.number, lower.i32(vectors),
                                   lower.i32(lanes.count));
    b.setInsertionPointToStart(loop.getBody());
    emitVector(segment, loop.getInductionVar());
  }
}

void kvbuf::emitPackedLoad(Lanes &lower, TypedValue<TileType> tile,
                           const TileView &values, KVBufferAttr params,
                           Value slot, Value pred, FillingLanes lanes) {
  ImplicitLocOpBuilder &b = lower.b;
  OpBuilder::InsertionGuard guard(b);
  if (pred)
    b.setInsertionPointToStart(
        scf::IfOp::create(b, pred, /*withElseRegion=*/false).thenBlock());
  PackedLoad(lower, values, packedRowOf(tile), params, slot).emit(lanes);
}
