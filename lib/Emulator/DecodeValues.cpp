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

#include <algorithm>

using namespace mlir;
using namespace kvbuf::emu;

/// What is larger than this does not lie in anybody's memory.
static constexpr uint64_t maxBytes = uint64_t(1) << 40;

Type kvbuf::emu::elementOf(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.getElementType();
  return type;
}

// Integers that fill no register and no pair of them would need masks that the
// machine has not.
unsigned kvbuf::emu::bitsOf(Type type) {
  if (auto ptr = dyn_cast<LLVM::LLVMPointerType>(type))
    return isNarrowSpace(ptr.getAddressSpace()) ? 32 : 64;
  if (auto integer = dyn_cast<IntegerType>(type)) {
    unsigned bits = integer.getWidth();
    return bits <= 32 || bits == 64 ? bits : 0;
  }
  return type.isF16() || type.isBF16() ? 16
         : type.isF32()                ? 32
         : type.isF64()                ? 64
                                       : 0;
}

// Whether elements of so many bits share words.
static bool isPacked(unsigned bits) { return bits == 8 || bits == 16; }

// AMD's buffers: base, length in bytes, flags, and the place in the buffer
// where the pointer has one.
unsigned Decoder::bufferParts(Type type) {
  auto ptr = dyn_cast<LLVM::LLVMPointerType>(type);
  if (!ptr || !program.chip.isAMD)
    return 0;
  return ptr.getAddressSpace() == 7 ? 4 : ptr.getAddressSpace() == 8 ? 3 : 0;
}

/// Types within types beyond which nobody goes on purpose.
static constexpr unsigned maxTypeDepth = 64;

TypeInfo Decoder::infoOf(Type type, unsigned depth) {
  if (depth > maxTypeDepth)
    return {};
  if (auto it = types.find(type); it != types.end())
    return it->second;
  TypeInfo info;
  unsigned bits = bitsOf(elementOf(type));
  if (auto vector = dyn_cast<VectorType>(type)) {
    bool isList = vector.getRank() == 1 && !vector.isScalable() && bits;
    if (unsigned n = bufferParts(vector.getElementType())) {
      // No memory holds them.
      info.slots = isList ? vector.getNumElements() * uint64_t(n + 1) : 0;
    } else if (isList) {
      uint64_t n = vector.getNumElements(),
               all = llvm::SaturatingMultiply<uint64_t>(n, bits);
      info.slots = isPacked(bits)            ? llvm::divideCeil(all, 32)
                   : bits == 1 || bits == 32 ? n
                   : bits == 64              ? 2 * n
                                             : 0;
      info.size = info.align =
          llvm::PowerOf2Ceil(std::min(llvm::divideCeil(all, 8), maxBytes));
    }
  } else if (auto array = dyn_cast<LLVM::LLVMArrayType>(type)) {
    TypeInfo element = infoOf(array.getElementType(), depth + 1);
    uint64_t n = array.getNumElements();
    info.slots = llvm::SaturatingMultiply(n, element.slots);
    info.size = llvm::SaturatingMultiply(n, element.size);
    info.align = element.align;
    info.nodes += element.nodes;
  } else if (auto record = dyn_cast<LLVM::LLVMStructType>(type)) {
    bool packed = record.isPacked(), inSlots = true, inMemory = true;
    info.align = 1;
    for (Type field : record.getBody()) {
      TypeInfo part = infoOf(field, depth + 1);
      inSlots &= part.slots != 0;
      inMemory &= part.align != 0 && info.size <= maxBytes;
      if (!packed && inMemory) {
        info.size = llvm::alignTo(info.size, part.align);
        info.align = std::max(info.align, part.align);
      }
      info.slots = llvm::SaturatingAdd(info.slots, part.slots);
      info.size = llvm::SaturatingAdd(info.size, part.size);
      info.nodes = llvm::SaturatingAdd(info.nodes, part.nodes);
    }
    if (!inSlots)
      info.slots = 0;
    if (!inMemory || info.size > maxBytes)
      info.size = info.align = 0;
    else
      info.size = llvm::alignTo(info.size, info.align);
  } else if (bits) {
    info.slots = bufferParts(type);
    if (info.slots)
      ++info.slots; // the base is wide
    else
      info.slots = bits > 32 ? 2 : 1;
    info.size = info.align = llvm::PowerOf2Ceil(llvm::divideCeil(bits, 8));
  }
  if (info.size > maxBytes)
    info.size = info.align = 0;
  types[type] = info;
  return info;
}

Comps Decoder::shape(Type type) {
  uint64_t slots = infoOf(type).slots;
  if (slots == 0 || slots > options.maxValue)
    return {};
  if (auto vector = dyn_cast<VectorType>(type)) {
    if (bufferParts(vector.getElementType())) {
      Comps element = shape(vector.getElementType()), all;
      for (int64_t i = 0; i < vector.getNumElements(); ++i)
        llvm::append_range(all, element);
      return all;
    }
    bool wide = bitsOf(vector.getElementType()) == 64;
    return Comps(wide ? slots / 2 : slots, Comp{noSlot, wide});
  }
  if (auto array = dyn_cast<LLVM::LLVMArrayType>(type)) {
    Comps element = shape(array.getElementType()), all;
    for (uint64_t i = 0, n = array.getNumElements(); i < n; ++i)
      llvm::append_range(all, element);
    return all;
  }
  if (auto record = dyn_cast<LLVM::LLVMStructType>(type)) {
    Comps all;
    for (Type field : record.getBody())
      llvm::append_range(all, shape(field));
    return all;
  }
  if (unsigned n = bufferParts(type)) {
    Comps buffer(n, Comp{});
    buffer.front().wide = true;
    return buffer;
  }
  return Comps(1, Comp{noSlot, bitsOf(type) > 32});
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
  auto vector = dyn_cast<VectorType>(type);
  if (static_cast<uint64_t>(vector ? vector.getNumElements() : 1) !=
      elements.size())
    fail(Twine(elements.size()) + " elements for " + describe(type));
  if (!vector || !isPacked(bits))
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
  auto vector = dyn_cast<VectorType>(type);
  if (static_cast<uint64_t>(vector ? vector.getNumElements() : 1) !=
      elements.size())
    fail(Twine(elements.size()) + " elements for " + describe(type));
  if (!vector)
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

// Of a type that has none, 1: nothing is divided by zero before the error ends
// it.
uint64_t Decoder::alignOf(Type type) {
  TypeInfo info = infoOf(type);
  if (info.align == 0)
    fail(describe(type) + " has no size in memory");
  return std::max<uint64_t>(info.align, 1);
}

uint64_t Decoder::sizeOf(Type type) {
  TypeInfo info = infoOf(type);
  if (info.align == 0)
    fail(describe(type) + " has no size in memory");
  return info.size;
}
