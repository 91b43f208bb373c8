//===- DecodeAggregate.cpp - Vectors, arrays and structs ----------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With constant indices these are nothing but lists of slots.
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"

#include <optional>

using namespace mlir;
using namespace kvbuf::emu;

static std::optional<int64_t> constantIndex(Value v) {
  auto op = v.getDefiningOp<LLVM::ConstantOp>();
  if (!op)
    return std::nullopt;
  if (auto attr = dyn_cast<IntegerAttr>(op.getValue()))
    if (attr.getValue().getSignificantBits() <= 64)
      return attr.getValue().getSExtValue();
  return std::nullopt;
}

static int64_t numElements(Type vector) {
  return cast<VectorType>(vector).getNumElements();
}

bool Decoder::decodeAggregate(Operation *op) {
  if (decodeBufferVector(op))
    return true;
  // First part and number of parts of what lies at a position.
  auto place = [&](Type type, ArrayRef<int64_t> position)
      -> std::optional<std::pair<size_t, size_t>> {
    size_t first = 0;
    for (int64_t i : position) {
      if (auto record = dyn_cast<LLVM::LLVMStructType>(type)) {
        if (i < 0 || i >= static_cast<int64_t>(record.getBody().size()))
          return std::nullopt;
        for (int64_t k = 0; k < i; ++k)
          first += shape(record.getBody()[k]).size();
        type = record.getBody()[i];
      } else if (auto array = dyn_cast<LLVM::LLVMArrayType>(type)) {
        if (i < 0 || static_cast<uint64_t>(i) >= array.getNumElements())
          return std::nullopt;
        type = array.getElementType();
        first += i * shape(type).size();
      } else {
        return std::nullopt;
      }
    }
    return std::make_pair(first, shape(type).size());
  };
  auto outside = [&] {
    fail("a position that its operand does not have");
    return true;
  };
  if (auto x = dyn_cast<LLVM::ExtractValueOp>(op)) {
    auto at = place(x.getContainer().getType(), x.getPosition());
    Comps all = get(x.getContainer());
    if (!at || at->first + at->second > all.size())
      return outside();
    set(x.getResult(), Comps(ArrayRef<Comp>(all).slice(at->first, at->second)));
    return true;
  }
  if (auto x = dyn_cast<LLVM::InsertValueOp>(op)) {
    auto at = place(x.getContainer().getType(), x.getPosition());
    Comps all = get(x.getContainer()), part = get(x.getValue());
    if (!at || at->first + at->second > all.size() || part.size() != at->second)
      return outside();
    std::copy(part.begin(), part.end(), all.begin() + at->first);
    set(x.getResult(), all);
    return true;
  }
  if (auto x = dyn_cast<LLVM::ExtractElementOp>(op)) {
    Type type = x.getVector().getType();
    unsigned bits = bitsOf(elementOf(type));
    if (auto index = constantIndex(x.getPosition())) {
      Comps words = get(x.getVector());
      unsigned per = bits == 8 || bits == 16 ? 32 / bits : 1;
      if (*index < 0 || *index >= numElements(type) ||
          *index / per >= static_cast<int64_t>(words.size()))
        return outside();
      Comp word = words[*index / per];
      if (per > 1)
        word = emit(bits == 16 ? Code::ExtractHalf : Code::ExtractByte, false,
                    word, {}, {}, bits * (*index % per));
      set(x.getResult(), {word});
      return true;
    }
    Comps elements = unpack(x.getVector());
    Comp index = getScalar(x.getPosition()), result = elements.front();
    for (size_t i = 1; i < elements.size(); ++i) {
      Comp hit = emit(index.wide ? Code::CmpEq64 : Code::CmpEq32, false, index,
                      constant(i, index.wide));
      result = emit(result.wide ? Code::Select64 : Code::Select32, result.wide,
                    hit, elements[i], result);
    }
    set(x.getResult(), {result});
    return true;
  }
  if (auto x = dyn_cast<LLVM::InsertElementOp>(op)) {
    Type type = x.getVector().getType();
    unsigned bits = bitsOf(elementOf(type));
    Comp value = getScalar(x.getValue());
    if (auto index = constantIndex(x.getPosition())) {
      Comps words = get(x.getVector());
      unsigned per = bits == 8 || bits == 16 ? 32 / bits : 1;
      if (*index < 0 || *index >= numElements(type) ||
          *index / per >= static_cast<int64_t>(words.size()))
        return outside();
      Comp &word = words[*index / per];
      word = per > 1 ? emit(bits == 16 ? Code::InsertHalf : Code::InsertByte,
                            false, word, value, {}, bits * (*index % per))
                     : value;
      set(x.getResult(), words);
      return true;
    }
    Comps elements = unpack(x.getVector());
    Comp index = getScalar(x.getPosition());
    for (auto [i, e] : llvm::enumerate(elements)) {
      Comp hit = emit(index.wide ? Code::CmpEq64 : Code::CmpEq32, false, index,
                      constant(i, index.wide));
      e = emit(e.wide ? Code::Select64 : Code::Select32, e.wide, hit, value, e);
    }
    set(x.getResult(), pack(elements, type));
    return true;
  }
  if (auto x = dyn_cast<LLVM::ShuffleVectorOp>(op)) {
    Type type = x.getType();
    for (int32_t from : x.getMask())
      if (from < -1 || from >= 2 * numElements(x.getV1().getType())) {
        fail("index " + Twine(from) + " into two vectors of " +
             Twine(numElements(x.getV1().getType())) + " elements");
        return true;
      }
    unsigned bits = bitsOf(elementOf(type));
    Comps words = get(x.getV1()), second = get(x.getV2());
    int64_t n = numElements(x.getV1().getType());
    unsigned per = bits == 8 || bits == 16 ? 32 / bits : 1;
    ArrayRef<int32_t> mask = x.getMask();
    // Whole words move for nothing; others are taken apart.
    Comps result;
    bool whole = per == 1 || (n % per == 0 && mask.size() % per == 0);
    for (size_t i = 0; whole && i < mask.size(); i += per) {
      int32_t from = mask[i];
      for (unsigned k = 1; k < per && whole; ++k)
        whole = from % per == 0 && mask[i + k] == from + static_cast<int>(k);
      if (whole)
        result.push_back(from < 0   ? constant(0, bits > 32)
                         : from < n ? words[from / per]
                                    : second[(from - n) / per]);
    }
    if (!whole) {
      Comps elements = unpack(x.getV1());
      llvm::append_range(elements, unpack(x.getV2()));
      Comps picked;
      for (int32_t from : mask)
        picked.push_back(from < 0 ? constant(0, bits > 32) : elements[from]);
      result = pack(picked, type);
    }
    set(x.getResult(), result);
    return true;
  }
  return decodeVectorParts(op);
}

// Vectors of numbers in order, bits of the first lanes, parts of vectors.
bool Decoder::decodeVectorParts(Operation *op) {
  if (!isa<LLVM::StepVectorOp, LLVM::GetActiveLaneMaskOp, LLVM::vector_extract,
           LLVM::vector_insert>(op))
    return false;
  auto type = dyn_cast<VectorType>(op->getResult(0).getType());
  if (!type || type.isScalable())
    return false;
  Comps elements;
  size_t count = type.getNumElements();
  if (isa<LLVM::StepVectorOp>(op)) {
    for (size_t i = 0; i < count; ++i)
      elements.push_back(constant(i, bitsOf(elementOf(type)) > 32));
  } else if (isa<LLVM::GetActiveLaneMaskOp>(op)) {
    // Without overflow: those are active that are fewer than what is left.
    Comp base = getScalar(op->getOperand(0)),
         end = getScalar(op->getOperand(1));
    if (!alike({base}, {end}))
      return true;
    bool wide = base.wide;
    Comp some = emit(wide ? Code::CmpUlt64 : Code::CmpUlt32, false, base, end),
         left = emit(wide ? Code::Sub64 : Code::Sub32, wide, end, base);
    left = emit(wide ? Code::Select64 : Code::Select32, wide, some, left,
                constant(0, wide));
    for (size_t i = 0; i < count; ++i)
      elements.push_back(emit(wide ? Code::CmpUlt64 : Code::CmpUlt32, false,
                              constant(i, wide), left));
  } else if (auto x = dyn_cast<LLVM::vector_extract>(op)) {
    Comps all = unpack(x.getSrcvec());
    if (x.getPos() > all.size() || count > all.size() - x.getPos())
      return false;
    elements.assign(all.begin() + x.getPos(), all.begin() + x.getPos() + count);
  } else if (auto x = dyn_cast<LLVM::vector_insert>(op)) {
    elements = unpack(x.getDstvec());
    Comps part = unpack(x.getSrcvec());
    if (x.getPos() > elements.size() ||
        part.size() > elements.size() - x.getPos())
      return false;
    llvm::copy(part, elements.begin() + x.getPos());
  }
  set(op->getResult(0), pack(elements, type));
  return true;
}
