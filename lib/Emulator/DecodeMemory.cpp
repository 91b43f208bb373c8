//===- DecodeMemory.cpp - Addresses, loads and stores ---------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"
#include "Spaces.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace kvbuf::emu;

LogicalResult Decoder::decodeGep(LLVM::GEPOp op) {
  if (isa<VectorType>(op.getType()))
    return unsupported(op, "vectors of addresses");
  auto [base, offset] = getAddress(op.getBase());
  // A pointer into a buffer moves by its last part.
  Comps buffer = values.lookup(op.getBase());
  if (buffer.size() > 1)
    base = buffer.back();
  Type type = op.getElemType();
  bool first = true;
  for (auto index : op.getIndices()) {
    uint64_t stride;
    if (first) {
      stride = sizeOf(type);
      first = false;
    } else if (auto record = dyn_cast<LLVM::LLVMStructType>(type)) {
      int64_t field = cast<IntegerAttr>(index).getInt();
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
      offset += attr.getInt() * static_cast<int64_t>(stride);
      continue;
    }
    Value v = cast<Value>(index);
    Comp c = getScalar(v);
    unsigned bits = bitsOf(v.getType());
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
  if (buffer.size() > 1) {
    buffer.back() =
        offset ? emit(Code::AddImm32, false, base, {}, {}, offset) : base;
    set(op.getResult(), buffer);
    return success();
  }
  set(op.getResult(), {base});
  if (offset)
    offsets[op.getResult()] = offset;
  return success();
}

LogicalResult Decoder::decodeAccess(Operation *op, Value pointer, Type type,
                                    uint64_t alignment, Comps &data,
                                    bool store) {
  unsigned space =
      cast<LLVM::LLVMPointerType>(pointer.getType()).getAddressSpace();
  Code code;
  switch (space) {
  case 0:
    code = store ? Code::StoreGeneric : Code::LoadGeneric;
    break;
  case 1:
  case 4:
    code = store ? Code::StoreGlobal : Code::LoadGlobal;
    break;
  case 3:
    code = store ? Code::StoreShared : Code::LoadShared;
    break;
  case 5:
    code = store ? Code::StoreLocal : Code::LoadLocal;
    break;
  default:
    return unsupported(op, "address space " + Twine(space));
  }
  if (isa<LLVM::LLVMStructType, LLVM::LLVMArrayType>(type))
    return unsupported(op, "whole structs and arrays in memory");
  unsigned bits = bitsOf(elementOf(type));
  auto vector = dyn_cast<VectorType>(type);
  if (bits % 8 && (vector || bits != 1))
    return unsupported(op, "this type in memory");
  uint64_t bytes = vector ? vector.getNumElements() * bits / 8 : (bits + 7) / 8;
  if (bytes % 4 == 3)
    return unsupported(op, "this type in memory");

  auto [base, offset] = getAddress(pointer);
  size_t next = 0;
  for (uint64_t at = 0; at < bytes;) {
    // At most 16 bytes an instruction, as the machines do it.
    uint64_t piece = std::min<uint64_t>(16, llvm::bit_floor(bytes - at));
    size_t parts = 0;
    for (uint64_t covered = 0; covered < piece; ++parts)
      covered += data[next + parts].wide ? 8 : 4;
    Inst &inst = emit(code);
    inst.a = base.slot;
    inst.imm = piece;
    inst.offset = offset + at;
    inst.align = std::gcd(alignment, at ? at : alignment);
    inst.flags = data[next].wide;
    inst.stat = program.numStats++;
    list(inst, ArrayRef<Comp>(data).slice(next, parts));
    next += parts;
    at += piece;
  }
  return success();
}

LogicalResult Decoder::decodeAddressOf(LLVM::AddressOfOp op) {
  auto global = SymbolTable::lookupNearestSymbolFrom<LLVM::GlobalOp>(
      op, op.getGlobalNameAttr());
  if (!global)
    return unsupported(op, "'" + op.getGlobalName() + "' is no variable");
  if (global.getAddrSpace() != 3)
    return unsupported(op, "'" + op.getGlobalName() +
                               "' is not in shared memory; the emulator has "
                               "no other variables");
  auto [it, inserted] = sharedAddress.try_emplace(global.getOperation());
  if (inserted) {
    uint64_t bytes = sizeOf(global.getType());
    uint64_t align = global.getAlignment().value_or(
        std::max<uint64_t>(16, alignOf(global.getType())));
    if (bytes == 0) {
      // Dynamic shared memory: placed when all static variables are known.
      Comp slot = allocate(false);
      program.constants.push_back({slot.slot, false, 0, /*inShared=*/true});
      dynamicSharedSlots.push_back(slot.slot);
      dynamicSharedAlign = std::max<uint32_t>(dynamicSharedAlign, align);
      it->second = slot;
    } else {
      program.staticShared = llvm::alignTo(program.staticShared, align);
      program.sharedVars.push_back({program.staticShared,
                                    static_cast<uint32_t>(bytes),
                                    op.getGlobalName().str()});
      it->second = allocate(false);
      program.constants.push_back({it->second.slot, false, program.staticShared,
                                   /*inShared=*/true});
      program.staticShared += bytes;
    }
  }
  set(op.getResult(), {it->second});
  return success();
}

LogicalResult Decoder::decodeAlloca(LLVM::AllocaOp op) {
  auto size = op.getArraySize().getDefiningOp<LLVM::ConstantOp>();
  auto count = size ? dyn_cast<IntegerAttr>(size.getValue()) : IntegerAttr();
  if (!count)
    return unsupported(op, "its size must be constant");
  Type type = op.getElemType();
  uint64_t align =
      std::max<uint64_t>(op.getAlignment().value_or(0), alignOf(type));
  program.localBytes =
      llvm::alignTo(program.localBytes, std::max<uint64_t>(align, 1));
  uint64_t address = program.localBytes;
  program.localBytes += sizeOf(type) * count.getInt();
  if (program.localBytes > 1u << 20)
    return unsupported(op, "more than 1 MiB of private memory a lane");
  if (cast<LLVM::LLVMPointerType>(op.getType()).getAddressSpace() == 5)
    set(op.getResult(), {constant(address)});
  else
    set(op.getResult(), {constant(localWindow | address, true)});
  return success();
}

LogicalResult Decoder::decodeMemory(Operation *op, bool &known) {
  if (auto gep = dyn_cast<LLVM::GEPOp>(op))
    return decodeGep(gep);
  if (auto load = dyn_cast<LLVM::LoadOp>(op)) {
    Type type = load.getType();
    Comps data = allocate(type);
    if (failed(decodeAccess(op, load.getAddr(), type,
                            load.getAlignment().value_or(alignOf(type)), data,
                            /*store=*/false)))
      return failure();
    if (bitsOf(type) == 1)
      data[0] = emitFree(Code::AndImm32, false, data[0], {}, {}, 1);
    set(load.getResult(), data);
    return success();
  }
  if (auto store = dyn_cast<LLVM::StoreOp>(op)) {
    Type type = store.getValue().getType();
    Comps data = get(store.getValue());
    return decodeAccess(op, store.getAddr(), type,
                        store.getAlignment().value_or(alignOf(type)), data,
                        /*store=*/true);
  }
  if (auto address = dyn_cast<LLVM::AddressOfOp>(op))
    return decodeAddressOf(address);
  if (auto alloca = dyn_cast<LLVM::AllocaOp>(op))
    return decodeAlloca(alloca);
  if (auto cast = dyn_cast<LLVM::PtrToIntOp>(op)) {
    Comp c = getScalar(cast.getArg());
    unsigned bits = bitsOf(cast.getType());
    if (bits == 64 && !c.wide)
      c = emitFree(Code::ZExt64, true, c);
    else if (bits == 32 && c.wide)
      c = emitFree(Code::Lo64, false, c);
    else if (bits != 32 && bits != 64)
      return unsupported(op, "an address in fewer than 32 bits");
    set(cast.getResult(), {c});
    return success();
  }
  if (auto cast = dyn_cast<LLVM::IntToPtrOp>(op)) {
    Comp c = getScalar(cast.getArg());
    bool wide = bitsOf(cast.getType()) == 64;
    if (wide && !c.wide)
      c = emitFree(Code::ZExt64, true, c);
    else if (!wide && c.wide)
      c = emitFree(Code::Lo64, false, c);
    set(cast.getResult(), {c});
    return success();
  }
  if (auto cast = dyn_cast<LLVM::AddrSpaceCastOp>(op)) {
    auto from = mlir::cast<LLVM::LLVMPointerType>(cast.getArg().getType())
                    .getAddressSpace();
    auto to =
        mlir::cast<LLVM::LLVMPointerType>(cast.getType()).getAddressSpace();
    auto isGlobal = [](unsigned s) { return s == 1 || s == 4; };
    Comp c = getScalar(cast.getArg());
    if ((from == 3 && to == 7) || (from == 7 && to == 3)) {
      // A block's shared memory is a part of the cluster's.
    } else if (isNarrowSpace(from) && to == 0)
      c = emit(Code::ToGeneric, true, c, {}, {}, from == 7 ? 3 : from);
    else if (from == 0 && isNarrowSpace(to))
      c = emit(Code::FromGeneric, false, c, {}, {}, to);
    else if (!(from == 0 || isGlobal(from)) || !(to == 0 || isGlobal(to)))
      return unsupported(op, "from address space " + Twine(from) + " to " +
                                 Twine(to));
    set(cast.getResult(), {c});
    return success();
  }
  known = false;
  return success();
}
