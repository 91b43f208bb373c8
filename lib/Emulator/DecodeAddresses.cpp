//===- DecodeAddresses.cpp - Addresses, by indices ------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"

using namespace mlir;
using namespace kvbuf::emu;

// Moves an address by the indices of a `getelementptr`: the part of it that is
// not constant, and by how much the constant part moves. Of a vector of
// addresses it is lane `lane` that moves.
LogicalResult Decoder::moveAddress(LLVM::GEPOp op, unsigned lane, Comp &base,
                                   uint64_t &offset) {
  Type type = op.getElemType();
  bool first = true;
  for (auto index : op.getIndices()) {
    uint64_t stride;
    if (first) {
      stride = sizeOf(type);
      first = false;
    } else if (auto record = dyn_cast<LLVM::LLVMStructType>(type)) {
      auto number = dyn_cast<IntegerAttr>(index);
      int64_t field = number ? number.getInt() : -1;
      if (field < 0 || field >= static_cast<int64_t>(record.getBody().size()))
        return unsupported(op, "a field that the struct does not have");
      uint64_t at = 0;
      for (int64_t i = 0; i <= field; ++i) {
        if (!record.isPacked())
          at = llvm::alignTo(at, alignOf(record.getBody()[i]));
        if (i < field)
          at += sizeOf(record.getBody()[i]);
      }
      offset += at;
      type = record.getBody()[field];
      continue;
    } else if (auto vector = dyn_cast<VectorType>(type)) {
      type = vector.getElementType();
      stride = sizeOf(type);
    } else if (auto array = dyn_cast<LLVM::LLVMArrayType>(type)) {
      type = array.getElementType();
      stride = sizeOf(type);
    } else {
      return unsupported(op, "an index into this type");
    }
    if (auto attr = dyn_cast<IntegerAttr>(index)) {
      offset += static_cast<uint64_t>(attr.getInt()) * stride;
      continue;
    }
    Value v = cast<Value>(index);
    if (!isa<IntegerType>(elementOf(v.getType())))
      return unsupported(op, "an index of type " + describe(v.getType()));
    bool isVector = isa<VectorType>(v.getType());
    Comps elements = isVector ? unpack(v) : Comps{getScalar(v)};
    if (broken || (isVector && lane >= elements.size()))
      return broken ? failure() : unsupported(op, "vectors of other lengths");
    Comp c = elements[isVector ? lane : 0];
    unsigned bits = bitsOf(elementOf(v.getType()));
    if (bits < 32)
      c = emitFree(Code::SExtBits, false, c, {}, {}, bits);
    if (!base.wide) {
      if (c.wide)
        c = emitFree(Code::Lo64, false, c);
      base = emit(Code::Gep32, false, base, c, {}, stride);
    } else {
      base = emit(c.wide ? Code::Gep64By64 : Code::Gep64By32, true, base, c, {},
                  stride);
    }
  }
  return broken ? failure() : success();
}

// Each lane of a vector of addresses moves for itself.
LogicalResult Decoder::decodeGepVector(LLVM::GEPOp op) {
  auto type = cast<VectorType>(op.getType());
  bool isVector = isa<VectorType>(op.getBase().getType());
  // A pointer into a buffer moves by its last part.
  unsigned n = bufferParts(type.getElementType());
  Comps bases =
      isVector || n ? get(op.getBase()) : Comps{getScalar(op.getBase())};
  if (n) {
    size_t all = static_cast<size_t>(type.getNumElements()) * n;
    if (bases.size() != (isVector ? all : n))
      return unsupported(op, "vectors of such addresses");
    if (!isVector)
      for (size_t i = n; i < all; ++i)
        bases.push_back(bases[i - n]);
    for (unsigned lane = 0; lane * n < all; ++lane) {
      Comp &last = bases[lane * n + n - 1];
      uint64_t offset = 0;
      if (failed(moveAddress(op, lane, last, offset)))
        return failure();
      if (offset)
        last = emit(Code::AddImm32, false, last, {}, {},
                    static_cast<int64_t>(offset));
    }
    set(op.getResult(), bases);
    return success();
  }
  Comps results = shape(type);
  if (results.empty() || (isVector && bases.size() != results.size()))
    return unsupported(op, "vectors of such addresses");
  for (auto [lane, result] : llvm::enumerate(results)) {
    result = bases[isVector ? lane : 0];
    uint64_t offset = 0;
    if (failed(moveAddress(op, lane, result, offset)))
      return failure();
    if (offset)
      result = emit(result.wide ? Code::AddImm64 : Code::AddImm32, result.wide,
                    result, {}, {}, static_cast<int64_t>(offset));
  }
  set(op.getResult(), results);
  return success();
}

LogicalResult Decoder::decodeGep(LLVM::GEPOp op) {
  if (isa<VectorType>(op.getType()))
    return decodeGepVector(op);
  // Addresses wrap around, as the machine's do.
  Comp base;
  uint64_t offset = 0;
  // A pointer into a buffer moves by its last part.
  Comps buffer = values.lookup(op.getBase());
  if (buffer.size() > 1)
    base = buffer.back();
  else
    std::tie(base, offset) = getAddress(op.getBase());
  if (failed(moveAddress(op, /*lane=*/0, base, offset)))
    return failure();
  if (buffer.size() > 1) {
    buffer.back() = offset ? emit(Code::AddImm32, false, base, {}, {},
                                  static_cast<int64_t>(offset))
                           : base;
    set(op.getResult(), buffer);
    return success();
  }
  set(op.getResult(), {base});
  if (offset)
    offsets[op.getResult()] = static_cast<int64_t>(offset);
  return success();
}
