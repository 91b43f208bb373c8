//===- Staging.cpp - Tiles on their way through registers -------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Staging.h"
#include "CachePlaces.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace kvbuf;

static Value either(LaneContext &lower, Value condition, Type type,
                    function_ref<Value()> there,
                    function_ref<Value()> otherwise) {
  ImplicitLocOpBuilder &b = lower.builder();
  auto ifOp = scf::IfOp::create(b, TypeRange{type}, condition,
                                /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  scf::YieldOp::create(b, there());
  b.setInsertionPointToStart(ifOp.elseBlock());
  scf::YieldOp::create(b, otherwise());
  return ifOp.getResult(0);
}

Value kvbuf::loadIf(LaneContext &lower, Value condition, Type type,
                    function_ref<Value()> there) {
  ImplicitLocOpBuilder &b = lower.builder();
  return either(lower, condition, type, there, [&]() -> Value {
    return arith::ConstantOp::create(b, type, b.getZeroAttr(type));
  });
}

Value kvbuf::loadWhole(LaneContext &lower, const TileView &tile,
                       VectorType type, Value at, int64_t alignment) {
  ImplicitLocOpBuilder &b = lower.builder();
  Value source = lower.flat(tile.data);
  // What LLVM has no type for is loaded as it is stored, and kept as bits.
  Type stored = cast<MemRefType>(source.getType()).getElementType();
  Value loaded =
      vector::LoadOp::create(b, type.clone(stored), source, ValueRange{at},
                             /*nontemporal=*/false, llvm::Align(alignment));
  if (loaded.getType() == type)
    return loaded;
  return arith::BitcastOp::create(b, type, loaded);
}

Value kvbuf::loadCut(LaneContext &lower, const TileView &tile, VectorType type,
                     Value at, Value ok, Value valid, int64_t alignment) {
  ImplicitLocOpBuilder &b = lower.builder();
  Type element = type.getElementType();
  int64_t count = type.getNumElements();
  Value source = lower.flat(tile.data);
  auto asBits = [&](Value x, Type as) -> Value {
    if (x.getType() == as)
      return x;
    return arith::BitcastOp::create(b, as, x);
  };
  auto has = [&](int64_t elements) -> Value {
    return arith::AndIOp::create(
        b, ok,
        arith::CmpIOp::create(b, arith::CmpIPredicate::sge, valid,
                              lower.i32(elements)));
  };
  return either(
      lower, has(count), type,
      [&]() -> Value { return loadWhole(lower, tile, type, at, alignment); },
      [&]() -> Value {
        Values elements;
        for (int64_t i = 0; i < count; ++i)
          elements.push_back(loadIf(lower, has(i + 1), element, [&]() -> Value {
            Value loaded = memref::LoadOp::create(
                b, source,
                ValueRange{arith::AddIOp::create(b, at, lower.index(i))});
            return asBits(loaded, element);
          }));
        return vector::FromElementsOp::create(b, type, elements);
      });
}

Value kvbuf::rowsAligned(LaneContext &lower, const TileView &tile,
                         int64_t bytes) {
  ImplicitLocOpBuilder &b = lower.builder();
  Type element = cast<MemRefType>(tile.data.getType()).getElementType();
  Value elements = arith::OrIOp::create(b, tile.base, tile.rowStride);
  if (tile.isPaged())
    elements = arith::OrIOp::create(b, elements, tile.pageStride);
  Value inBytes = arith::MulIOp::create(
      b, elements, lower.index(element.getIntOrFloatBitWidth() / 8));
  Value address = memref::ExtractAlignedPointerAsIndexOp::create(b, tile.data);
  Value low = arith::AndIOp::create(
      b, arith::OrIOp::create(b, inBytes, address), lower.index(bytes - 1));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, low,
                               lower.index(0));
}

Value kvbuf::zerosAt(LaneContext &lower, Value data, int64_t zeros) {
  std::string name = "kvbuf_zeros";
  if (zeros != kZeroBytes)
    name += "_" + std::to_string(zeros);
  ImplicitLocOpBuilder &b = lower.builder();
  auto dataType = cast<MemRefType>(data.getType());
  auto type =
      MemRefType::get({zeros}, b.getI8Type(), MemRefLayoutAttrInterface(),
                      dataType.getMemorySpace());
  Operation *module =
      SymbolTable::getNearestSymbolTable(b.getInsertionBlock()->getParentOp());
  if (!SymbolTable::lookupSymbolIn(module, b.getStringAttr(name))) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&module->getRegion(0).front());
    auto bytes = RankedTensorType::get({zeros}, b.getI8Type());
    memref::GlobalOp::create(
        b, name, b.getStringAttr("private"), type,
        DenseElementsAttr::get(bytes, b.getI8IntegerAttr(0)),
        /*constant=*/true, b.getI64IntegerAttr(kZeroBytes));
  }
  Value there = memref::GetGlobalOp::create(b, type, name);
  Value distance = arith::SubIOp::create(
      b, memref::ExtractAlignedPointerAsIndexOp::create(b, there).getResult(),
      memref::ExtractAlignedPointerAsIndexOp::create(b, data).getResult());
  int64_t bytes = dataType.getElementType().getIntOrFloatBitWidth() / 8;
  return arith::ShRSIOp::create(b, distance, lower.index(llvm::Log2_64(bytes)));
}
