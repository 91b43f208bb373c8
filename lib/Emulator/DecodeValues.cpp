//===- DecodeValues.cpp - How values of a type lie in slots ---------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Elements of 8 and 16 bits are packed four and two to a word, as they are in
// memory and in a GPU's registers, so that casts between such vectors and
// integers are free. Vectors of i1 take a word an element.
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf::emu;

Type kvbuf::emu::elementOf(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.getElementType();
  return type;
}

unsigned kvbuf::emu::bitsOf(Type type) {
  if (auto ptr = dyn_cast<LLVM::LLVMPointerType>(type))
    return isNarrowSpace(ptr.getAddressSpace()) ? 32 : 64;
  return type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 0;
}

// Whether elements of so many bits share words.
static bool isPacked(unsigned bits) { return bits == 8 || bits == 16; }

Comps Decoder::shape(Type type) {
  if (auto vector = dyn_cast<VectorType>(type)) {
    unsigned bits = bitsOf(vector.getElementType());
    if (vector.getRank() != 1 || vector.isScalable() || bits == 0 || bits > 64)
      return {};
    size_t n = vector.getNumElements();
    if (isPacked(bits))
      return Comps(llvm::divideCeil(n * bits, 32), Comp{});
    if (bits != 1 && bits != 32 && bits != 64)
      return {};
    return Comps(n, Comp{noSlot, bits == 64});
  }
  if (auto array = dyn_cast<LLVM::LLVMArrayType>(type)) {
    Comps element = shape(array.getElementType()), all;
    for (unsigned i = 0, n = array.getNumElements(); i < n; ++i)
      llvm::append_range(all, element);
    return all;
  }
  if (auto record = dyn_cast<LLVM::LLVMStructType>(type)) {
    Comps all;
    for (Type field : record.getBody()) {
      Comps part = shape(field);
      if (part.empty())
        return {};
      llvm::append_range(all, part);
    }
    return all;
  }
  // AMD's buffers: base, length in bytes, flags, and the place in the buffer
  // where the pointer has one.
  if (auto ptr = dyn_cast<LLVM::LLVMPointerType>(type);
      ptr && (ptr.getAddressSpace() == 7 || ptr.getAddressSpace() == 8)) {
    Comps buffer(ptr.getAddressSpace() == 7 ? 4 : 3, Comp{});
    buffer.front().wide = true;
    return buffer;
  }
  unsigned bits = bitsOf(type);
  if (bits == 0 || bits > 64)
    return {};
  return Comps(1, Comp{noSlot, bits > 32});
}

Comps Decoder::unpack(Value v) { return unpack(get(v), v.getType()); }

Comps Decoder::unpack(ArrayRef<Comp> comps, Type type) {
  unsigned bits = bitsOf(elementOf(type));
  auto vector = dyn_cast<VectorType>(type);
  if (!vector || !isPacked(bits))
    return Comps(comps);
  Comps elements;
  for (unsigned i = 0, n = vector.getNumElements(), per = 32 / bits; i < n; ++i)
    elements.push_back(
        emitFree(bits == 16 ? Code::ExtractHalf : Code::ExtractByte, false,
                 comps[i / per], {}, {}, bits * (i % per)));
  return elements;
}

Comps Decoder::pack(ArrayRef<Comp> elements, Type type) {
  unsigned bits = bitsOf(elementOf(type));
  if (!isa<VectorType>(type) || !isPacked(bits))
    return Comps(elements);
  Comps words;
  unsigned per = 32 / bits;
  for (size_t i = 0; i < elements.size(); i += per) {
    Comp word = elements[i];
    for (unsigned k = 1; k < per && i + k < elements.size(); ++k)
      word = bits == 16 ? emitFree(Code::PackHalf, false, word, elements[i + k])
                        : emitFree(Code::InsertByte, false, word,
                                   elements[i + k], {}, bits * k);
    words.push_back(word);
  }
  return words;
}

Comps Decoder::unpackFloats(Value v) {
  Comps elements = unpack(v);
  Type type = elementOf(v.getType());
  if (type.isF16() || type.isBF16())
    for (Comp &c : elements)
      c = emitFree(type.isF16() ? Code::F16ToF32 : Code::BF16ToF32, false, c);
  return elements;
}

Comps Decoder::packFloats(ArrayRef<Comp> elements, Type type) {
  Type element = elementOf(type);
  if (!element.isF16() && !element.isBF16())
    return Comps(elements);
  bool half = element.isF16();
  if (!isa<VectorType>(type))
    return {emit(half ? Code::F32ToF16 : Code::F32ToBF16, false, elements[0])};
  Comps words;
  for (size_t i = 0; i + 1 < elements.size(); i += 2)
    words.push_back(emit(half ? Code::PackF32ToF16 : Code::PackF32ToBF16, false,
                         elements[i], elements[i + 1]));
  if (elements.size() % 2)
    words.push_back(
        emit(half ? Code::F32ToF16 : Code::F32ToBF16, false, elements.back()));
  return words;
}

uint64_t Decoder::alignOf(Type type) {
  if (auto array = dyn_cast<LLVM::LLVMArrayType>(type))
    return alignOf(array.getElementType());
  if (auto record = dyn_cast<LLVM::LLVMStructType>(type)) {
    uint64_t align = 1;
    if (!record.isPacked())
      for (Type field : record.getBody())
        align = std::max(align, alignOf(field));
    return align;
  }
  if (auto vector = dyn_cast<VectorType>(type))
    return llvm::PowerOf2Ceil(llvm::divideCeil(
        vector.getNumElements() * bitsOf(vector.getElementType()), 8));
  return sizeOf(type);
}

uint64_t Decoder::sizeOf(Type type) {
  if (auto array = dyn_cast<LLVM::LLVMArrayType>(type))
    return array.getNumElements() * sizeOf(array.getElementType());
  if (auto record = dyn_cast<LLVM::LLVMStructType>(type)) {
    uint64_t size = 0;
    for (Type field : record.getBody()) {
      if (!record.isPacked())
        size = llvm::alignTo(size, alignOf(field));
      size += sizeOf(field);
    }
    return llvm::alignTo(size, alignOf(type));
  }
  if (isa<VectorType>(type))
    return alignOf(type);
  return llvm::PowerOf2Ceil(llvm::divideCeil(bitsOf(type), 8));
}
