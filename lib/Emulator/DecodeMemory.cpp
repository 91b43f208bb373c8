//===- DecodeMemory.cpp - Loads, stores and places of memory --------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"
#include "Spaces.h"

#include "kvbuffer/Emulator/Import.h"

#include "llvm/Support/MathExtras.h"

#include <cstdint>
#include <numeric>
#include <tuple>

using namespace mlir;
using namespace kvbuf::emu;

LogicalResult Decoder::decodeAccess(Operation *op, Value pointer, Type type,
                                    uint64_t alignment, Comps &data, bool store,
                                    int64_t more) {
  auto [base, offset] = getAddress(pointer);
  return decodeAccess(
      op, cast<LLVM::LLVMPointerType>(pointer.getType()).getAddressSpace(),
      {base, static_cast<int64_t>(static_cast<uint64_t>(offset) +
                                  static_cast<uint64_t>(more))},
      type, alignment, data, store);
}

// Elements of one bit lie in memory side by side, the first one lowest.
LogicalResult Decoder::decodeBitVector(Operation *op, unsigned space,
                                       std::pair<Comp, int64_t> place,
                                       VectorType type, uint64_t alignment,
                                       Comps &data, bool store) {
  unsigned n = type.getNumElements(), bytes = llvm::divideCeil(n, 8);
  if (data.size() != n)
    return unsupported(op, "this type in memory");
  auto byteType = VectorType::get(bytes, IntegerType::get(op->getContext(), 8));
  Comps packed = allocate(byteType);
  if (packed.empty())
    return unsupported(op, "this type in memory");
  if (!store) {
    if (failed(
            decodeAccess(op, space, place, byteType, alignment, packed, store)))
      return failure();
    for (auto [i, bit] : llvm::enumerate(data))
      moves(bit, emitFree(Code::AndImm32, false,
                          emitFree(Code::LShr32, false, packed[i / 32],
                                   constant(i % 32)),
                          {}, {}, 1));
    return success();
  }
  for (unsigned word = 0; word < packed.size(); ++word) {
    Comp all = constant(0);
    for (unsigned i = 32 * word; i < std::min(n, 32 * word + 32); ++i)
      all =
          emitFree(Code::Or32, false, all,
                   emitFree(Code::Shl32, false,
                            emitFree(Code::AndImm32, false, data[i], {}, {}, 1),
                            constant(i % 32)));
    packed[word] = all;
  }
  return decodeAccess(op, space, place, byteType, alignment, packed, store);
}

LogicalResult Decoder::decodeAccess(Operation *op, unsigned space,
                                    std::pair<Comp, int64_t> place, Type type,
                                    uint64_t alignment, Comps &data,
                                    bool store) {
  auto [base, offset] = place;
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
  // Structs and arrays, part by part.
  if (isa<LLVM::LLVMStructType, LLVM::LLVMArrayType>(type)) {
    size_t next = 0;
    uint64_t at = 0;
    auto part = [&, base = base, offset = offset](Type field, uint64_t at) {
      size_t n = shape(field).size();
      if (!n || next + n > data.size())
        return failure();
      Comps some(ArrayRef<Comp>(data).slice(next, n));
      if (failed(decodeAccess(
              op, space,
              {base, static_cast<int64_t>(static_cast<uint64_t>(offset) + at)},
              field, std::gcd(alignment, alignOf(field)), some, store)))
        return failure();
      llvm::copy(some, data.begin() + next);
      next += n;
      return success();
    };
    if (auto record = dyn_cast<LLVM::LLVMStructType>(type)) {
      for (Type field : record.getBody()) {
        if (!record.isPacked())
          at = llvm::alignTo(at, alignOf(field));
        if (failed(part(field, at)))
          return broken ? failure() : unsupported(op, "this type in memory");
        at += sizeOf(field);
      }
      return success();
    }
    auto array = cast<LLVM::LLVMArrayType>(type);
    for (uint64_t i = 0; i < array.getNumElements(); ++i)
      if (failed(
              part(array.getElementType(), i * sizeOf(array.getElementType()))))
        return broken ? failure() : unsupported(op, "this type in memory");
    return success();
  }
  unsigned bits = bitsOf(elementOf(type));
  auto vector = dyn_cast<VectorType>(type);
  alignment = aligned(alignment);
  if (vector && bits == 1)
    return decodeBitVector(op, space, place, vector, alignment, data, store);
  if (bits == 0 || (bits % 8 && (vector || bits != 1)))
    return unsupported(op, "this type in memory");
  uint64_t bytes = vector ? vector.getNumElements() * bits / 8 : (bits + 7) / 8;
  auto access = [&, base = base, offset = offset](uint64_t at, uint64_t piece,
                                                  ArrayRef<Comp> parts) {
    Inst &inst = emit(code);
    inst.a = base.slot;
    inst.imm = piece;
    inst.offset = static_cast<int64_t>(static_cast<uint64_t>(offset) + at);
    inst.align = std::gcd(alignment, at ? at : alignment);
    inst.flags = parts.front().wide;
    inst.stat = program.numStats;
    program.numStats += statsOf(code);
    list(inst, parts);
  };
  size_t next = 0;
  for (uint64_t at = 0; at < bytes;) {
    if (next >= data.size())
      return unsupported(op, "this type in memory");
    if (bytes - at == 3) {
      // Three bytes of one word: two, and the one above them.
      Comp sixteen = constant(16);
      if (store) {
        access(at, 2, data[next]);
        access(at + 2, 1, emitFree(Code::LShr32, false, data[next], sixteen));
        return success();
      }
      Comp low = allocate(false), high = allocate(false);
      access(at, 2, low);
      access(at + 2, 1, high);
      data[next] = emitFree(Code::Or32, false, low,
                            emitFree(Code::Shl32, false, high, sixteen));
      return success();
    }
    // At most 16 bytes an instruction, as the machines do it.
    uint64_t piece = std::min<uint64_t>(16, llvm::bit_floor(bytes - at));
    size_t parts = 0;
    for (uint64_t covered = 0; covered < piece; ++parts) {
      if (next + parts >= data.size())
        return unsupported(op, "this type in memory");
      covered += data[next + parts].wide ? 8 : 4;
    }
    access(at, piece, ArrayRef<Comp>(data).slice(next, parts));
    next += parts;
    at += piece;
  }
  return success();
}

/// More than any machine has; what the chip has is compared at the launch.
static constexpr uint64_t maxStaticShared = 1 << 24;

LogicalResult Decoder::decodeAddressOf(LLVM::AddressOfOp op) {
  if (auto f = SymbolTable::lookupNearestSymbolFrom<LLVM::LLVMFuncOp>(
          op, op.getGlobalNameAttr())) {
    set(op.getResult(), {constant(functionAddress(f), true)});
    return success();
  }
  auto global = SymbolTable::lookupNearestSymbolFrom<LLVM::GlobalOp>(
      op, op.getGlobalNameAttr());
  if (!global)
    return unsupported(op, "'" + op.getGlobalName() + "' is no variable");
  unsigned space = global.getAddrSpace();
  if (space == 0 || space == 1 || space == 4)
    return decodeGlobal(op, global);
  if (space != 3)
    return unsupported(op, "'" + op.getGlobalName() + "' in address space " +
                               Twine(space));
  auto [it, inserted] = sharedAddress.try_emplace(global.getOperation());
  if (inserted) {
    uint64_t bytes = sizeOf(global.getType());
    uint64_t align = aligned(global.getAlignment().value_or(
        std::max<uint64_t>(16, alignOf(global.getType()))));
    // Where variables of other compilers' modules lie is their assembler's
    // choice. Large ones lie well here: at what copies and swizzles ask for.
    auto module = kernel->getParentOfType<ModuleOp>();
    if (module && module->hasAttr(kForeignAttr) && bytes)
      align = std::max(align, std::min<uint64_t>(llvm::bit_floor(bytes), 1024));
    if (llvm::alignTo(program.staticShared, align) + bytes > maxStaticShared)
      fail("the variables in shared memory take more than " +
           Twine(maxStaticShared) + " bytes");
    if (broken)
      return failure();
    if (bytes == 0) {
      // Dynamic shared memory: placed when all static variables are known.
      Comp slot = allocate(false);
      program.constants.push_back({slot.slot, false, 0, /*inShared=*/true});
      dynamicSharedSlots.push_back(slot.slot);
      // A variable of no size in this module, as MLIR writes it, is where
      // static memory begins on a GPU, of which the driver has taken the first
      // 1024 bytes.
      if (global.getLinkage() != LLVM::Linkage::External)
        align = std::max<uint64_t>(align, 1024);
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
  unsigned space = cast<LLVM::LLVMPointerType>(op.getType()).getAddressSpace();
  if (space != 0 && space != 5)
    return unsupported(op, "in address space " + Twine(space));
  Type type = op.getElemType();
  uint64_t align = aligned(std::max<uint64_t>(op.getAlignment().value_or(0),
                                              alignOf(type))),
           address = llvm::alignTo(program.localBytes, align),
           end = llvm::SaturatingMultiplyAdd(count.getValue().getLimitedValue(),
                                             sizeOf(type), address);
  if (end > options.maxPrivate || end > UINT32_MAX)
    return unsupported(op, "more than " + Twine(options.maxPrivate) +
                               " bytes of private memory a lane "
                               "('max_private')");
  if (broken)
    return failure();
  program.localBytes = end;
  if (space == 5)
    set(op.getResult(), {constant(address)});
  else
    set(op.getResult(), {constant(localWindow | address, true)});
  return success();
}

namespace {
/// A load or a store of the elements whose bit is set.
struct MaskedAccess {
  Value pointer, mask;
  /// What is stored, or what the elements are that are not loaded; null: those
  /// are undefined.
  Value data;
  /// What a load results in; null: a store.
  Value result;
  uint64_t align = 0;
  /// One address for each element.
  bool scattered = false;
  /// The elements whose bit is set follow each other in memory.
  bool dense = false;
};
} // namespace

static uint64_t alignOfArgument(ArrayAttr attributes, unsigned argument) {
  auto of = attributes && argument < attributes.size()
                ? dyn_cast<DictionaryAttr>(attributes[argument])
                : DictionaryAttr();
  auto align = of ? of.getAs<IntegerAttr>("llvm.align") : IntegerAttr();
  return align ? align.getInt() : 1;
}

static std::optional<MaskedAccess> maskedAccess(Operation *op) {
  if (auto x = dyn_cast<LLVM::MaskedLoadOp>(op))
    return MaskedAccess{x.getData(), x.getMask(), x.getPassThru(), x.getRes(),
                        x.getAlignment()};
  if (auto x = dyn_cast<LLVM::MaskedStoreOp>(op))
    return MaskedAccess{x.getData(), x.getMask(), x.getValue(), Value(),
                        x.getAlignment()};
  if (auto x = dyn_cast<LLVM::masked_gather>(op))
    return MaskedAccess{x.getPtrs(),
                        x.getMask(),
                        x.getPassThru().empty() ? Value()
                                                : x.getPassThru().front(),
                        x.getRes(),
                        x.getAlignment(),
                        /*scattered=*/true};
  if (auto x = dyn_cast<LLVM::masked_scatter>(op))
    return MaskedAccess{x.getPtrs(), x.getMask(),      x.getValue(),
                        Value(),     x.getAlignment(), /*scattered=*/true};
  if (auto x = dyn_cast<LLVM::masked_expandload>(op))
    return MaskedAccess{x.getPtr(),
                        x.getMask(),
                        x.getPassthru(),
                        x.getRes(),
                        alignOfArgument(x.getArgAttrsAttr(), 0),
                        /*scattered=*/false,
                        /*dense=*/true};
  if (auto x = dyn_cast<LLVM::masked_compressstore>(op))
    return MaskedAccess{x.getPtr(),
                        x.getMask(),
                        x.getValue(),
                        Value(),
                        alignOfArgument(x.getArgAttrsAttr(), 1),
                        /*scattered=*/false,
                        /*dense=*/true};
  return std::nullopt;
}

// A branch around each element.
LogicalResult Decoder::decodeMasked(Operation *op, bool &known) {
  std::optional<MaskedAccess> access = maskedAccess(op);
  known = access.has_value();
  if (!known)
    return success();
  bool load = access->result != Value();
  Type type = load ? access->result.getType() : access->data.getType(),
       element = elementOf(type);
  auto pointer =
      dyn_cast<LLVM::LLVMPointerType>(elementOf(access->pointer.getType()));
  if (!pointer)
    return unsupported(op, "such addresses");
  Comps bits = unpack(access->mask), values;
  if (access->data)
    values = unpack(access->data);
  else
    values.assign(bits.size(), constant(0, bitsOf(element) == 64));
  if (!alike(bits, values))
    return failure();
  Comps addresses, buffer;
  std::pair<Comp, int64_t> place;
  // AMD's buffers: a description and an offset.
  bool inBuffer = program.chip.isAMD && pointer.getAddressSpace() == 7;
  unsigned parts = inBuffer ? bufferParts(pointer) : 1;
  if (access->scattered) {
    addresses = get(access->pointer);
    if (addresses.size() != bits.size() * parts)
      return unsupported(op, "such addresses");
  } else if (inBuffer) {
    buffer = get(access->pointer);
    place = {buffer.back(), 0};
  } else {
    place = getAddress(access->pointer);
  }
  uint64_t size = sizeOf(element),
           align = std::gcd<uint64_t>(access->align, size);
  Comps results;
  for (size_t i = 0; i < bits.size(); ++i) {
    Comps data = {values[i]};
    if (load) {
      data = {allocate(values[i].wide)};
      moves(data, {values[i]});
    }
    if (access->scattered) {
      place = {addresses[i * parts + parts - 1], 0};
      if (inBuffer)
        buffer = Comps(ArrayRef<Comp>(addresses).slice(i * parts, parts));
    }
    uint32_t yes = newBlock(), next = newBlock();
    Inst &branch = emit(Code::Branch);
    branch.a = bits[i].slot;
    list(branch, {Comp{yes}, Comp{next}});
    current = yes;
    if (failed(inBuffer
                   ? decodeBufferAccess(op, buffer, place.first, constant(0),
                                        place.second, element, data, !load)
                   : decodeAccess(op, pointer.getAddressSpace(), place, element,
                                  align, data, !load)))
      return failure();
    Inst &jump = emit(Code::Jump);
    jump.cls = Class::None;
    jump.imm = next;
    current = next;
    results.push_back(data.front());
    if (access->dense)
      place.first = emit(place.first.wide ? Code::Gep64By32 : Code::Gep32,
                         place.first.wide, place.first, bits[i], {}, size);
    else if (!access->scattered)
      place.second += size;
  }
  if (load)
    set(access->result, pack(results, type));
  return success();
}

/// What a copy of constant size may take in single accesses.
static constexpr uint64_t maxCopyBytes = 4096;

// memcpy, memmove and memset of a constant size.
LogicalResult Decoder::decodeCopy(Operation *op, bool &known) {
  bool fills = isa<LLVM::MemsetOp, LLVM::MemsetInlineOp>(op);
  bool isInline = isa<LLVM::MemcpyInlineOp, LLVM::MemsetInlineOp>(op);
  known = fills || isInline || isa<LLVM::MemcpyOp, LLVM::MemmoveOp>(op);
  if (!known)
    return success();
  auto number = op->getAttrOfType<IntegerAttr>("len");
  if (!isInline)
    if (auto length = op->getOperand(2).getDefiningOp<LLVM::ConstantOp>())
      number = dyn_cast<IntegerAttr>(length.getValue());
  uint64_t bytes = number ? number.getValue().getLimitedValue() : ~uint64_t(0);
  if (bytes > maxCopyBytes)
    return unsupported(op, "more than " + Twine(maxCopyBytes) +
                               " bytes, or a size that is no constant");
  Type type = IntegerType::get(op->getContext(), 8);
  Value to = op->getOperand(0);
  // All is read before anything is written, as memmove wants it.
  SmallVector<Comp> data;
  for (uint64_t at = 0; at < bytes; ++at) {
    if (fills) {
      data.push_back(getNarrow(op->getOperand(1)));
      continue;
    }
    Comps one = {allocate(false)};
    if (failed(decodeAccess(op, op->getOperand(1), type, 1, one,
                            /*store=*/false, at)))
      return failure();
    data.push_back(one.front());
  }
  for (uint64_t at = 0; at < bytes; ++at) {
    Comps one = {data[at]};
    if (failed(decodeAccess(op, to, type, 1, one, /*store=*/true, at)))
      return failure();
  }
  return success();
}

LogicalResult Decoder::decodeMemory(Operation *op, bool &known) {
  if (failed(decodeMasked(op, known)))
    return failure();
  if (known)
    return success();
  if (failed(decodeCopy(op, known)))
    return failure();
  if (known)
    return success();
  known = true;
  if (auto gep = dyn_cast<LLVM::GEPOp>(op))
    return decodeGep(gep);
  if (auto load = dyn_cast<LLVM::LoadOp>(op)) {
    Type type = load.getType();
    Comps data = allocate(type);
    if (data.empty())
      return unsupported(op, "this type in memory");
    uint8_t order;
    Scope scope;
    size_t first = code[current].size();
    // AMD's scalar cache serves what is in constant memory.
    bool constant = mlir::cast<LLVM::LLVMPointerType>(load.getAddr().getType())
                        .getAddressSpace() == 4;
    if (failed(decodeOrder(op, load.getOrdering(), load.getSyncscope(),
                           load.getVolatile_(), load.getInvariant() || constant,
                           order, scope)) ||
        failed(decodeAccess(op, load.getAddr(), type,
                            load.getAlignment().value_or(alignOf(type)), data,
                            /*store=*/false)))
      return failure();
    // PTX says that a plain load is a race there; nothing follows from an old
    // value but another turn, and MLIR's own lowering relies on that.
    if (!order && isFirstGuess(load))
      order = atomicAccess;
    for (Inst &inst : llvm::drop_begin(code[current], first)) {
      inst.order = order;
      inst.scope = scope;
    }
    if (bitsOf(type) == 1)
      data[0] = emitFree(Code::AndImm32, false, data[0], {}, {}, 1);
    set(load.getResult(), data);
    return success();
  }
  if (auto store = dyn_cast<LLVM::StoreOp>(op)) {
    Type type = store.getValue().getType();
    Comps data = get(store.getValue());
    uint8_t order;
    Scope scope;
    size_t first = code[current].size();
    if (failed(decodeOrder(op, store.getOrdering(), store.getSyncscope(),
                           store.getVolatile_(), /*isInvariant=*/false, order,
                           scope)) ||
        failed(decodeAccess(op, store.getAddr(), type,
                            store.getAlignment().value_or(alignOf(type)), data,
                            /*store=*/true)))
      return failure();
    for (Inst &inst : llvm::drop_begin(code[current], first)) {
      inst.order = order;
      inst.scope = scope;
    }
    return success();
  }
  if (auto address = dyn_cast<LLVM::AddressOfOp>(op))
    return decodeAddressOf(address);
  if (auto alloca = dyn_cast<LLVM::AllocaOp>(op))
    return decodeAlloca(alloca);
  if (auto cast = dyn_cast<LLVM::PtrToIntOp>(op)) {
    Comp c = getScalar(cast.getArg());
    unsigned bits = bitsOf(cast.getType());
    if (isa<VectorType>(cast.getType()))
      return unsupported(op, "vectors of addresses");
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
    auto source = dyn_cast<LLVM::LLVMPointerType>(cast.getArg().getType()),
         target = dyn_cast<LLVM::LLVMPointerType>(cast.getType());
    if (!source || !target)
      return unsupported(op, "vectors of addresses");
    unsigned from = source.getAddressSpace(), to = target.getAddressSpace();
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
