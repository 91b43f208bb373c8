//===- DecodeBuffers.cpp - AMD's buffers and copies into LDS --------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A buffer (ptr<8>) is its base, its length in bytes and its flags, of which
// only the length matters here; a pointer into a buffer (ptr<7>) has a place
// in it as well.
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"

#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"

#include <algorithm>
#include <optional>

using namespace mlir;
using namespace kvbuf::emu;

static unsigned spaceOf(Type type) {
  auto ptr = dyn_cast<LLVM::LLVMPointerType>(type);
  return ptr ? ptr.getAddressSpace() : ~0u;
}

LogicalResult Decoder::decodeBufferAccess(Operation *op, Comps rsrc,
                                          Comp offset, Comp waveOffset,
                                          int64_t constant, Type type,
                                          Comps &data, bool store) {
  if (rsrc.size() < 3)
    return unsupported(op, "other than a buffer");
  unsigned bits = bitsOf(elementOf(type));
  auto vector = dyn_cast<VectorType>(type);
  if (bits == 0 || bits % 8 || isa<LLVM::LLVMPointerType>(elementOf(type)))
    return unsupported(op, "this type in memory");
  uint64_t bytes = vector ? vector.getNumElements() * bits / 8 : bits / 8;
  if ((bytes > 4 && bytes % 4) || bytes == 3)
    return unsupported(op, "this type in memory");
  size_t next = 0;
  for (uint64_t at = 0; at < bytes;) {
    uint64_t piece = std::min<uint64_t>(16, llvm::bit_floor(bytes - at));
    size_t parts = 0;
    for (uint64_t covered = 0; covered < piece; ++parts) {
      if (next + parts >= data.size())
        return unsupported(op, "this type in memory");
      covered += data[next + parts].wide ? 8 : 4;
    }
    Comps slots(ArrayRef<Comp>(data).slice(next, parts));
    slots.push_back(rsrc[1]);
    Inst &inst = emit(store ? Code::AmdBufferStore : Code::AmdBufferLoad);
    inst.a = rsrc[0].slot;
    inst.b = offset.slot;
    inst.c = waveOffset.slot;
    inst.imm = piece;
    inst.offset = constant + static_cast<int64_t>(at);
    inst.align = std::min<uint64_t>(piece, 4);
    inst.flags = data[next].wide;
    inst.stat = program.numStats++;
    list(inst, slots);
    inst.listSize = parts; // the length comes behind the data
    next += parts;
    at += piece;
  }
  return success();
}

LogicalResult Decoder::decodeLdsCopy(Operation *op, Value lds, Comps source,
                                     Comp offset, Comp waveOffset, int64_t size,
                                     int64_t constant) {
  const std::vector<unsigned> &widths = program.chip.ldsCopyBytes;
  if (!widths.empty() &&
      !llvm::is_contained(widths, static_cast<unsigned>(size)))
    return unsupported(op, program.chip.describe() + " copies no " +
                               Twine(size) + " bytes a lane into LDS");
  if (size != 4 && size != 12 && size != 16)
    return unsupported(op, "copies of other than 4, 12 or 16 bytes a lane");
  if (constant < 0 || constant > 4095)
    return unsupported(op, "an offset of " + Twine(constant) +
                               ", which is not between 0 and 4095");
  Comp to = getNarrow(lds);
  bool global = source.size() == 1;
  if (global ? !source[0].wide : source.size() < 3 || offset.slot == noSlot)
    return unsupported(op, "from this address");
  Inst &inst = emit(global ? Code::AmdGlobalLoadLds : Code::AmdBufferLoadLds);
  inst.a = to.slot;
  inst.b = global ? source[0].slot : offset.slot;
  inst.c = waveOffset.slot;
  inst.imm = size;
  inst.offset = constant;
  inst.align = 4;
  inst.stat = program.numStats++;
  if (!global)
    list(inst, {source[0], source[1]});
  return success();
}

std::optional<int64_t> kvbuf::emu::constantOf(Value v) {
  APInt value;
  if (!matchPattern(v, m_ConstantInt(&value)))
    return std::nullopt;
  return value.sextOrTrunc(64).getSExtValue();
}

LogicalResult Decoder::decodeBuffers(Operation *op, bool &known) {
  known = true;
  if (auto x = dyn_cast<ROCDL::MakeBufferRsrcOp>(op)) {
    if (constantOf(x.getStride()) != 0)
      return unsupported(op, "a stride other than the constant 0");
    unsigned space = spaceOf(x.getBase().getType());
    if (space != 0 && space != 1 && space != 4)
      return unsupported(op, "a base in address space " + Twine(space));
    Comp length = emit(Code::Lo64, false, getWide(x.getNumRecords()));
    Comps buffer = {getWide(x.getBase()), length, getNarrow(x.getFlags())};
    if (spaceOf(x.getType()) == 7)
      buffer.push_back(constant(0));
    else if (spaceOf(x.getType()) != 8)
      return unsupported(op, "this type of buffer");
    set(x.getRes(), buffer);
    return success();
  }
  if (auto x = dyn_cast<ROCDL::RawPtrBufferLoadOp>(op)) {
    Type type = x.getType();
    Comps data = allocate(type);
    if (sizeOf(type) > 16)
      return unsupported(op, "more than 16 bytes a lane");
    if (failed(decodeBufferAccess(op, get(x.getRsrc()),
                                  getNarrow(x.getOffset()),
                                  getNarrow(x.getSoffset()), 0, type, data,
                                  /*store=*/false)))
      return failure();
    set(x.getRes(), data);
    return success();
  }
  if (auto x = dyn_cast<ROCDL::RawPtrBufferStoreOp>(op)) {
    Type type = x.getVdata().getType();
    if (sizeOf(type) > 16)
      return unsupported(op, "more than 16 bytes a lane");
    Comps data = get(x.getVdata());
    return decodeBufferAccess(op, get(x.getRsrc()), getNarrow(x.getOffset()),
                              getNarrow(x.getSoffset()), 0, type, data,
                              /*store=*/true);
  }
  if (auto x = dyn_cast<ROCDL::RawPtrBufferLoadLdsOp>(op)) {
    std::optional<int64_t> size = constantOf(x.getSize()),
                           offset = constantOf(x.getOffset());
    if (!size || !offset)
      return unsupported(op, "a size or offset that is no constant");
    return decodeLdsCopy(op, x.getLdsPtr(), get(x.getRsrc()),
                         getNarrow(x.getVoffset()), getNarrow(x.getSoffset()),
                         *size, *offset);
  }
  if (auto x = dyn_cast<ROCDL::GlobalLoadLDSOp>(op))
    return decodeLdsCopy(op, x.getLdsPtr(), get(x.getGlobalPtr()), {}, {},
                         x.getSize(), x.getOffset());
  if (auto x = dyn_cast<ROCDL::LoadToLDSOp>(op)) {
    Comps source = get(x.getGlobalPtr());
    unsigned space = spaceOf(x.getGlobalPtr().getType());
    if (space != 1 && space != 7)
      return unsupported(op, "from address space " + Twine(space));
    return decodeLdsCopy(
        op, x.getLdsPtr(), source, space == 7 ? source.back() : Comp{},
        space == 7 ? constant(0) : Comp{}, x.getSize(), x.getOffset());
  }
  if (isa<ROCDL::ds_read_tr16_b64, ROCDL::ds_read_tr8_b64>(op)) {
    bool isByte = isa<ROCDL::ds_read_tr8_b64>(op);
    if (!program.chip.hasTransposeReads || program.chip.lanes == 32)
      return unsupported(
          op, program.chip.describe() + " has no transposed LDS reads" +
                  (program.chip.hasTransposeReads ? " of 8 bytes" : ""));
    Type type = op->getResult(0).getType();
    Comps result = allocate(type);
    // Bytes lie in words or by themselves.
    bool fits = isByte || bitsOf(elementOf(type)) == 16;
    if (result.size() != 2 || result.front().wide || !fits)
      return unsupported(op, isByte ? "results other than two words"
                                    : "results other than four elements of 16 "
                                      "bits");
    auto [base, offset] = getAddress(op->getOperand(0));
    if (base.wide)
      return unsupported(op, "an address outside of LDS");
    Inst &inst = emit(Code::AmdReadTr16);
    inst.a = base.slot;
    inst.offset = offset;
    inst.imm = 8;
    inst.align = 8;
    inst.flags = isByte;
    inst.stat = program.numStats++;
    list(inst, result);
    set(op->getResult(0), result);
    return success();
  }
  if (auto x = dyn_cast<ROCDL::DsLoadTr16_B128>(op))
    return decodeTurnedRead(op, x.getPtr());
  if (auto x = dyn_cast<ROCDL::TensorLoadToLDSOp>(op)) {
    if (program.chip.ldsCopyBytes.size() || program.chip.lanes != 32)
      return unsupported(op, program.chip.describe() + " has no tensor copies");
    Comps words;
    for (Value group : op->getOperands())
      llvm::append_range(words, get(group));
    if (words.size() != tensorWords ||
        llvm::any_of(words, [](Comp word) { return word.wide; }))
      return unsupported(op, "a descriptor of this size");
    Inst &inst = emit(Code::AmdTensorLoad);
    // The bytes of each piece that the engine moves; see Exec::tensorLoad.
    inst.imm = inst.align = 16;
    inst.stat = program.numStats++;
    list(inst, words);
    return success();
  }
  return decodeFatPointer(op, known);
}

LogicalResult Decoder::decodeTurnedRead(Operation *op, Value pointer) {
  if (!program.chip.hasTransposeReads || program.chip.lanes != 32)
    return unsupported(op, program.chip.describe() +
                               " has no transposed LDS reads of 16 bytes");
  Comps result = allocate(op->getResult(0).getType());
  if (result.size() != 4 || result.front().wide)
    return unsupported(op, "results other than eight elements of 16 bits");
  auto [base, offset] = getAddress(pointer);
  if (base.wide)
    return unsupported(op, "an address outside of LDS");
  Inst &inst = emit(Code::AmdLoadTr16);
  inst.a = base.slot;
  inst.offset = offset;
  inst.imm = inst.align = 16;
  inst.stat = program.numStats++;
  list(inst, result);
  set(op->getResult(0), result);
  return success();
}

LogicalResult Decoder::decodeFatPointer(Operation *op, bool &known) {
  if (auto x = dyn_cast<LLVM::LoadOp>(op);
      x && spaceOf(x.getAddr().getType()) == 7) {
    Comps buffer = get(x.getAddr()), data = allocate(x.getType());
    if (failed(decodeBufferAccess(op, buffer, buffer.back(), constant(0), 0,
                                  x.getType(), data, /*store=*/false)))
      return failure();
    set(x.getResult(), data);
    return success();
  }
  if (auto x = dyn_cast<LLVM::StoreOp>(op);
      x && spaceOf(x.getAddr().getType()) == 7) {
    Comps buffer = get(x.getAddr()), data = get(x.getValue());
    return decodeBufferAccess(op, buffer, buffer.back(), constant(0), 0,
                              x.getValue().getType(), data, /*store=*/true);
  }
  if (auto x = dyn_cast<LLVM::AddrSpaceCastOp>(op);
      x && spaceOf(x.getArg().getType()) == 8 && spaceOf(x.getType()) == 7) {
    Comps buffer = get(x.getArg());
    buffer.push_back(constant(0));
    set(x.getRes(), buffer);
    return success();
  }
  known = false;
  return success();
}

bool Decoder::decodeBufferVector(Operation *op) {
  auto vector = op->getNumOperands()
                    ? dyn_cast<VectorType>(op->getOperand(0).getType())
                    : VectorType();
  unsigned n = vector ? bufferParts(vector.getElementType()) : 0;
  if (!n)
    return false;
  int64_t count = vector.getNumElements();
  // Those that a position names, if it is one that is known.
  auto element = [&](Value position) -> std::optional<int64_t> {
    std::optional<int64_t> at = constantOf(position);
    if (!at || *at < 0 || *at >= count) {
      fail("a position among pointers into buffers that is no constant, or "
           "that the vector does not have");
      return std::nullopt;
    }
    return *at * n;
  };
  Comps all = get(op->getOperand(0));
  if (auto x = dyn_cast<LLVM::ExtractElementOp>(op)) {
    if (auto at = element(x.getPosition()))
      set(x.getResult(), Comps(ArrayRef<Comp>(all).slice(*at, n)));
    return true;
  }
  if (auto x = dyn_cast<LLVM::InsertElementOp>(op)) {
    Comps value = get(x.getValue());
    auto at = element(x.getPosition());
    if (!at || value.size() != n)
      return at.has_value() ? (fail("other than such a pointer"), true) : true;
    llvm::copy(value, all.begin() + *at);
    set(x.getResult(), all);
    return true;
  }
  if (auto x = dyn_cast<LLVM::ShuffleVectorOp>(op)) {
    llvm::append_range(all, get(x.getV2()));
    Comps picked;
    for (int32_t from : x.getMask()) {
      if (from >= 2 * count) {
        fail("an index that the two vectors do not have");
        return true;
      }
      llvm::append_range(
          picked, ArrayRef<Comp>(all).slice(std::max(from, 0) * size_t(n), n));
    }
    set(x.getResult(), picked);
    return true;
  }
  return false;
}
