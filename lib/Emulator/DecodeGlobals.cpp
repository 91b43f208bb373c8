//===- DecodeGlobals.cpp - Variables in global and constant memory --------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A variable gets its place when the first kernel that names it is decoded.
// What it holds at first is an attribute, or a region of a few operations.
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"

#include <cstring>
#include <functional>

using namespace mlir;
using namespace kvbuf::emu;

/// All variables of a module together.
static constexpr uint64_t maxVariableBytes = uint64_t(1) << 28;

namespace {

/// Writes initial values into a variable's bytes.
class Initializer {
public:
  using Measure = std::function<uint64_t(Type)>;
  using Find = std::function<std::optional<uint64_t>(LLVM::AddressOfOp)>;
  Initializer(Measure sizeOf, Measure alignOf, Find addressOf)
      : sizeOf(std::move(sizeOf)), alignOf(std::move(alignOf)),
        addressOf(std::move(addressOf)) {}

  /// False: what it does not know.
  bool write(Attribute value, Type type, MutableArrayRef<uint8_t> to);
  bool write(Value value, MutableArrayRef<uint8_t> to);

private:
  bool number(uint64_t x, Type type, MutableArrayRef<uint8_t> to) {
    uint64_t n = sizeOf(type);
    if (n > 8 || n > to.size())
      return false;
    std::memcpy(to.data(), &x, n);
    return true;
  }
  /// An address that is constant.
  std::optional<uint64_t> pointer(Value value);
  /// Where a position lies, in bytes, and what is there.
  bool place(Type &type, ArrayRef<int64_t> position, uint64_t &at);

  Measure sizeOf, alignOf;
  Find addressOf;
};

} // namespace

static uint64_t bitsOfNumber(const APInt &value) {
  return value.zextOrTrunc(64).getZExtValue();
}

bool Initializer::write(Attribute value, Type type,
                        MutableArrayRef<uint8_t> to) {
  if (auto text = dyn_cast<StringAttr>(value)) {
    if (text.size() > to.size())
      return false;
    std::memcpy(to.data(), text.data(), text.size());
    return true;
  }
  if (isa<LLVM::ZeroAttr>(value))
    return true;
  if (auto x = dyn_cast<IntegerAttr>(value))
    return number(bitsOfNumber(x.getValue()), type, to);
  if (auto x = dyn_cast<FloatAttr>(value))
    return number(bitsOfNumber(x.getValue().bitcastToAPInt()), type, to);
  auto dense = dyn_cast<DenseElementsAttr>(value);
  if (!dense || !dense.getElementType().isIntOrFloat())
    return false;
  unsigned bits = dense.getElementType().getIntOrFloatBitWidth();
  uint64_t bytes = (bits + 7) / 8,
           count = static_cast<uint64_t>(dense.getNumElements());
  if ((bits % 8 && bits != 1) || bytes > 8 ||
      (count > to.size() / bytes && !(bits == 1 && isa<VectorType>(type))))
    return false;
  if (bits == 1 && isa<VectorType>(type)) {
    // A vector's bits lie side by side, the first one lowest.
    for (auto [i, x] : llvm::enumerate(dense.getValues<APInt>()))
      if (x.isOne() && i / 8 < to.size())
        to[i / 8] |= static_cast<uint8_t>(1u << (i % 8));
    return true;
  }
  uint64_t at = 0;
  auto put = [&](const APInt &x) {
    uint64_t word = bitsOfNumber(x);
    std::memcpy(to.data() + at, &word, bytes);
    at += bytes;
  };
  if (isa<IntegerType>(dense.getElementType()))
    for (const APInt &x : dense.getValues<APInt>())
      put(x);
  else
    for (const APFloat &x : dense.getValues<APFloat>())
      put(x.bitcastToAPInt());
  return true;
}

bool Initializer::place(Type &type, ArrayRef<int64_t> position, uint64_t &at) {
  for (int64_t i : position) {
    if (auto record = dyn_cast<LLVM::LLVMStructType>(type)) {
      if (i < 0 || i >= static_cast<int64_t>(record.getBody().size()))
        return false;
      uint64_t offset = 0;
      for (int64_t k = 0; k <= i; ++k) {
        if (!record.isPacked())
          offset = llvm::alignTo(offset, alignOf(record.getBody()[k]));
        if (k < i)
          offset += sizeOf(record.getBody()[k]);
      }
      at += offset;
      type = record.getBody()[i];
    } else if (auto array = dyn_cast<LLVM::LLVMArrayType>(type)) {
      if (i < 0 || static_cast<uint64_t>(i) >= array.getNumElements())
        return false;
      type = array.getElementType();
      at += i * sizeOf(type);
    } else {
      return false;
    }
  }
  return true;
}

std::optional<uint64_t> Initializer::pointer(Value value) {
  if (auto x = value.getDefiningOp<LLVM::AddressOfOp>())
    return addressOf(x);
  if (auto x = value.getDefiningOp<LLVM::AddrSpaceCastOp>()) {
    // An address in global or constant memory is a generic one, too.
    for (Type type : {x.getArg().getType(), x.getType()}) {
      auto to = dyn_cast<LLVM::LLVMPointerType>(type);
      if (!to || (to.getAddressSpace() > 1 && to.getAddressSpace() != 4))
        return std::nullopt;
    }
    return pointer(x.getArg());
  }
  auto x = value.getDefiningOp<LLVM::GEPOp>();
  std::optional<uint64_t> base = x ? pointer(x.getBase()) : std::nullopt;
  if (!base)
    return std::nullopt;
  SmallVector<int64_t> indices;
  for (auto index : x.getIndices()) {
    std::optional<int64_t> at;
    if (auto attr = dyn_cast<IntegerAttr>(index))
      at = attr.getInt();
    else
      at = constantOf(cast<Value>(index));
    if (!at)
      return std::nullopt;
    indices.push_back(*at);
  }
  Type type = x.getElemType();
  uint64_t at = static_cast<uint64_t>(indices.front()) * sizeOf(type);
  if (!place(type, ArrayRef(indices).drop_front(), at))
    return std::nullopt;
  return *base + at;
}

bool Initializer::write(Value value, MutableArrayRef<uint8_t> to) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (isa<LLVM::UndefOp, LLVM::PoisonOp, LLVM::ZeroOp>(op))
    return true;
  if (auto x = dyn_cast<LLVM::ConstantOp>(op))
    return write(x.getValue(), x.getType(), to);
  if (isa<LLVM::AddressOfOp, LLVM::AddrSpaceCastOp, LLVM::GEPOp>(op)) {
    std::optional<uint64_t> address = pointer(value);
    return address && number(*address, value.getType(), to);
  }
  // A chain of insertions, from its beginning.
  SmallVector<LLVM::InsertValueOp> chain;
  while (auto x = value.getDefiningOp<LLVM::InsertValueOp>()) {
    chain.push_back(x);
    value = x.getContainer();
  }
  if (chain.empty() || !write(value, to))
    return false;
  for (LLVM::InsertValueOp x : llvm::reverse(chain)) {
    uint64_t at = 0;
    Type type = x.getContainer().getType();
    if (!place(type, x.getPosition(), at) || at > to.size() ||
        sizeOf(type) > to.size() - at || x.getValue() == x.getResult() ||
        !write(x.getValue(), to.slice(at, sizeOf(type))))
      return false;
  }
  return true;
}

std::optional<uint64_t> Decoder::placeVariable(Operation *op,
                                               LLVM::GlobalOp global) {
  auto it = variables.find(global.getOperation());
  auto refuse = [&](const Twine &why) {
    variables.erase(global.getOperation());
    (void)unsupported(op, why);
    return std::nullopt;
  };
  if (it != variables.end())
    return reinterpret_cast<uint64_t>(it->second.begin);
  uint64_t bytes = sizeOf(global.getType()), all = bytes;
  for (const auto &[other, v] : variables)
    all += v.bytes;
  if (all > maxVariableBytes)
    return refuse("the module's variables take more than " +
                  Twine(maxVariableBytes) + " bytes");
  if (broken)
    return std::nullopt;
  Variable variable;
  variable.name = global.getSymName().str();
  variable.isConstant = global.getConstant();
  variable.bytes = bytes;
  constexpr uint64_t align = 256;
  variable.storage.assign(bytes + align, 0);
  variable.begin = reinterpret_cast<uint8_t *>(llvm::alignTo(
      reinterpret_cast<uint64_t>(variable.storage.data()), align));
  // Moving a vector leaves its bytes where they are.
  uint8_t *begin = variable.begin;
  // Variables may point to each other: it has its place before its value.
  variables.insert({global.getOperation(), std::move(variable)});
  Initializer init(
      [&](Type t) { return sizeOf(t); }, [&](Type t) { return alignOf(t); },
      [&](LLVM::AddressOfOp to) -> std::optional<uint64_t> {
        Operation *symbol =
            SymbolTable::lookupNearestSymbolFrom(to, to.getGlobalNameAttr());
        if (auto f = dyn_cast_or_null<LLVM::LLVMFuncOp>(symbol))
          return functionAddress(f);
        auto other = dyn_cast_or_null<LLVM::GlobalOp>(symbol);
        unsigned space = other ? other.getAddrSpace() : ~0u;
        if (space > 1 && space != 4)
          return std::nullopt;
        return placeVariable(op, other);
      });
  MutableArrayRef<uint8_t> to(begin, bytes);
  bool good = true, isSet = false;
  if (Attribute value = global.getValueOrNull()) {
    good = init.write(value, global.getType(), to);
    isSet = true;
  } else if (Block *block = global.getInitializerBlock()) {
    auto ret = dyn_cast<LLVM::ReturnOp>(block->getTerminator());
    good =
        ret && ret.getNumOperands() == 1 && init.write(ret.getOperand(0), to);
    Operation *made = good ? ret.getOperand(0).getDefiningOp() : nullptr;
    isSet = !isa_and_nonnull<LLVM::UndefOp, LLVM::PoisonOp>(made);
  } else if (global.getLinkage() == LLVM::Linkage::External ||
             global.getLinkage() == LLVM::Linkage::ExternWeak) {
    return refuse("'" + global.getSymName() +
                  "' is no variable of this module");
  }
  if (!good) {
    if (!broken)
      return refuse("the initial value of '" + global.getSymName() + "'");
    variables.erase(global.getOperation());
    return std::nullopt;
  }
  variables.find(global.getOperation())->second.isInitialized = isSet;
  return reinterpret_cast<uint64_t>(begin);
}

LogicalResult Decoder::decodeGlobal(LLVM::AddressOfOp op,
                                    LLVM::GlobalOp global) {
  std::optional<uint64_t> address = placeVariable(op, global);
  if (!address)
    return failure();
  set(op.getResult(), {constant(*address, true)});
  return success();
}
