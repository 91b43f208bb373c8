//===- DecodeLLVM.cpp - Arithmetic of the LLVM dialect --------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

#include <optional>

using namespace mlir;
using namespace kvbuf::emu;

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

LogicalResult Decoder::decodeConstant(LLVM::ConstantOp op) {
  Type type = op.getType();
  Attribute attr = op.getValue();
  auto bitsOfInt = [](const APInt &value) {
    return value.zextOrTrunc(64).getZExtValue();
  };
  if (isa<IntegerAttr, FloatAttr>(attr)) {
    unsigned bits = bitsOf(type);
    auto number = dyn_cast<FloatAttr>(attr);
    APInt value = number ? number.getValue().bitcastToAPInt()
                         : cast<IntegerAttr>(attr).getValue();
    if (!type.isIntOrFloat() || bits == 0 ||
        (number && value.getBitWidth() != bits))
      return unsupported(op, "this constant");
    uint64_t word = bitsOfInt(value);
    if (bits < 64)
      word &= (uint64_t(1) << bits) - 1;
    set(op.getResult(), {constant(word, bits > 32)});
    return success();
  }
  auto dense = dyn_cast<DenseElementsAttr>(attr);
  if (!dense || !dense.getElementType().isIntOrFloat() ||
      static_cast<uint64_t>(dense.getNumElements()) > 4 * options.maxValue)
    return unsupported(op, "this constant");
  // The elements in row-major order; arrays of vectors are filled in turn.
  std::vector<uint64_t> words;
  if (isa<IntegerType>(dense.getElementType()))
    for (const APInt &element : dense.getValues<APInt>())
      words.push_back(bitsOfInt(element));
  else
    for (const APFloat &element : dense.getValues<APFloat>())
      words.push_back(bitsOfInt(element.bitcastToAPInt()));
  Type inner = type;
  while (auto array = dyn_cast<LLVM::LLVMArrayType>(inner))
    inner = array.getElementType();
  unsigned bits = bitsOf(elementOf(inner)), length = 1;
  if (auto vector = dyn_cast<VectorType>(inner))
    length = vector.getNumElements();
  if (bits == 0 || length == 0 || words.size() % length ||
      (isa<FloatType>(dense.getElementType()) &&
       dense.getElementType().getIntOrFloatBitWidth() != bits))
    return unsupported(op, "this constant");
  uint64_t mask = bits < 64 ? (uint64_t(1) << bits) - 1 : ~uint64_t(0);
  unsigned per = bits == 8 || bits == 16 ? 32 / bits : 1;
  Comps comps;
  for (size_t first = 0; first < words.size(); first += length)
    for (unsigned i = 0; i < length; i += per) {
      uint64_t word = 0;
      for (unsigned k = 0; k < per && i + k < length; ++k)
        word |= (words[first + i + k] & mask) << (bits * k);
      comps.push_back(constant(word, bits > 32));
    }
  set(op.getResult(), comps);
  return success();
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

namespace {
struct IntegerOp {
  Code op32, op64;
  bool isSigned; // narrow operands are sign-extended first
  bool clean;    // the result needs no masking for narrow types
};
} // namespace

static std::optional<IntegerOp> integerOp(StringRef name) {
#define ENTRY(Name, Emu, Signed, Clean)                                        \
  {                                                                            \
    Name, { Code::Emu##32, Code::Emu##64, Signed, Clean }                      \
  }
  static const llvm::StringMap<IntegerOp> table = {
      ENTRY("llvm.add", Add, false, false),
      ENTRY("llvm.sub", Sub, false, false),
      ENTRY("llvm.mul", Mul, false, false),
      ENTRY("llvm.sdiv", SDiv, true, false),
      ENTRY("llvm.udiv", UDiv, false, true),
      ENTRY("llvm.srem", SRem, true, false),
      ENTRY("llvm.urem", URem, false, true),
      ENTRY("llvm.and", And, false, true),
      ENTRY("llvm.or", Or, false, true),
      ENTRY("llvm.xor", Xor, false, true),
      ENTRY("llvm.shl", Shl, false, false),
      ENTRY("llvm.lshr", LShr, false, true),
      ENTRY("llvm.ashr", AShr, true, false),
      ENTRY("llvm.intr.umin", UMin, false, true),
      ENTRY("llvm.intr.umax", UMax, false, true),
      // And a subtraction: the larger one less the second is a - b, or 0.
      ENTRY("llvm.intr.usub.sat", UMax, false, true),
      ENTRY("llvm.intr.smin", SMin, true, false),
      ENTRY("llvm.intr.smax", SMax, true, false),
      ENTRY("llvm.intr.abs", Abs, true, false),
      ENTRY("llvm.intr.ctpop", Ctpop, false, true),
      ENTRY("llvm.intr.ctlz", Ctlz, false, true),
      ENTRY("llvm.intr.cttz", Cttz, false, true),
      ENTRY("llvm.intr.fshl", Fshl, false, true),
      ENTRY("llvm.intr.fshr", Fshr, false, true),
  };
#undef ENTRY
  auto it = table.find(name);
  if (it == table.end())
    return std::nullopt;
  return it->second;
}

bool Decoder::decodeInteger(Operation *op) {
  std::optional<IntegerOp> entry = integerOp(op->getName().getStringRef());
  if (!entry)
    return false;
  Type type = op->getResult(0).getType();
  unsigned bits = bitsOf(elementOf(type));
  bool wide = bits > 32;
  // Leading and trailing zeros (DecodeBits.cpp has those of other widths) and
  // funnel shifts depend on the width itself.
  bool exact = llvm::is_contained(
      {Code::Ctlz32, Code::Cttz32, Code::Fshl32, Code::Fshr32}, entry->op32);
  if (exact && bits != 32 && bits != 64)
    return false;
  // Words of packed elements need no unpacking for bitwise operations.
  bool bitwise =
      llvm::is_contained({Code::And32, Code::Or32, Code::Xor32}, entry->op32);
  bool saturates = op->getName().getStringRef() == "llvm.intr.usub.sat";
  SmallVector<Comps> operands;
  for (Value v : op->getOperands()) {
    Comps comps = bitwise ? get(v) : unpack(v);
    if (entry->isSigned && bits < 32 && !bitwise)
      for (Comp &c : comps)
        c = emitFree(Code::SExtBits, false, c, {}, {}, bits);
    operands.push_back(comps);
  }
  Comps results;
  for (const Comps &comps : operands)
    if (comps.size() != operands[0].size())
      return false;
  for (size_t i = 0; i < operands[0].size(); ++i) {
    auto operand = [&](unsigned k) {
      return k < operands.size() ? operands[k][i] : Comp{};
    };
    Comp result = emit(wide ? entry->op64 : entry->op32, wide, operand(0),
                       operand(1), operand(2));
    if (saturates)
      result = emit(wide ? Code::Sub64 : Code::Sub32, wide, result, operand(1));
    if (!entry->clean && bits < 32)
      result = emitFree(Code::AndImm32, false, result, {}, {},
                        (int64_t(1) << bits) - 1);
    results.push_back(result);
  }
  set(op->getResult(0), bitwise ? results : pack(results, type));
  return true;
}

LogicalResult Decoder::decodeICmp(LLVM::ICmpOp op) {
  using P = LLVM::ICmpPredicate;
  P p = op.getPredicate();
  Value lhs = op.getLhs(), rhs = op.getRhs();
  // Greater is less with the operands exchanged.
  if (p == P::sgt || p == P::sge || p == P::ugt || p == P::uge) {
    std::swap(lhs, rhs);
    p = p == P::sgt   ? P::slt
        : p == P::sge ? P::sle
        : p == P::ugt ? P::ult
                      : P::ule;
  }
  unsigned bits = bitsOf(elementOf(lhs.getType()));
  bool wide = bits > 32;
  Code code = p == P::eq    ? (wide ? Code::CmpEq64 : Code::CmpEq32)
              : p == P::ne  ? (wide ? Code::CmpNe64 : Code::CmpNe32)
              : p == P::slt ? (wide ? Code::CmpSlt64 : Code::CmpSlt32)
              : p == P::sle ? (wide ? Code::CmpSle64 : Code::CmpSle32)
              : p == P::ult ? (wide ? Code::CmpUlt64 : Code::CmpUlt32)
                            : (wide ? Code::CmpUle64 : Code::CmpUle32);
  Comps a = unpack(lhs), b = unpack(rhs), results;
  bool extend = bits < 32 && (p == P::slt || p == P::sle);
  if (!alike(a, b))
    return failure();
  for (auto [x, y] : llvm::zip_equal(a, b)) {
    if (extend) {
      x = emitFree(Code::SExtBits, false, x, {}, {}, bits);
      y = emitFree(Code::SExtBits, false, y, {}, {}, bits);
    }
    results.push_back(emit(code, false, x, y));
  }
  set(op.getResult(), results);
  return success();
}

LogicalResult Decoder::decodeSelect(LLVM::SelectOp op) {
  Type type = op.getType();
  if (!isa<VectorType>(op.getCondition().getType())) {
    Comp c = getNarrow(op.getCondition());
    Comps a = get(op.getTrueValue()), b = get(op.getFalseValue()), results;
    if (!alike(a, b))
      return failure();
    for (auto [x, y] : llvm::zip_equal(a, b))
      results.push_back(
          emit(x.wide ? Code::Select64 : Code::Select32, x.wide, c, x, y));
    set(op.getResult(), results);
    return success();
  }
  Comps c = unpack(op.getCondition()), a = unpack(op.getTrueValue()),
        b = unpack(op.getFalseValue()), results;
  if (!alike(a, b) || !alike(c, a))
    return failure();
  for (auto [k, x, y] : llvm::zip_equal(c, a, b))
    results.push_back(
        emit(x.wide ? Code::Select64 : Code::Select32, x.wide, k, x, y));
  set(op.getResult(), pack(results, type));
  return success();
}

//===----------------------------------------------------------------------===//
// All operations
//===----------------------------------------------------------------------===//

LogicalResult Decoder::decodeLLVM(Operation *op, bool &known) {
  known = true;
  if (auto x = dyn_cast<LLVM::ConstantOp>(op))
    return decodeConstant(x);
  if (isa<LLVM::UndefOp, LLVM::PoisonOp, LLVM::ZeroOp>(op)) {
    Comps comps = shape(op->getResult(0).getType());
    for (Comp &c : comps)
      c = constant(0, c.wide);
    set(op->getResult(0), comps);
    return success();
  }
  if (auto x = dyn_cast<LLVM::ICmpOp>(op))
    return decodeICmp(x);
  if (auto x = dyn_cast<LLVM::FCmpOp>(op))
    return decodeFCmp(x);
  if (auto x = dyn_cast<LLVM::SelectOp>(op))
    return decodeSelect(x);
  if (auto x = dyn_cast<LLVM::BitcastOp>(op))
    return decodeBitcast(x);
  if (decodeFenceOp(op))
    return success();
  if (auto x = dyn_cast<LLVM::CallIntrinsicOp>(op))
    return decodeIntrinsicCall(x);
  if (auto x = dyn_cast<LLVM::InlineAsmOp>(op))
    return decodeAsm(x);
  if (auto x = dyn_cast<LLVM::AtomicRMWOp>(op))
    return decodeAtomic(x);
  if (auto x = dyn_cast<LLVM::AtomicCmpXchgOp>(op))
    return decodeCompareExchange(x);
  if (auto x = dyn_cast<LLVM::FenceOp>(op))
    return decodeFence(x);
  if (auto x = dyn_cast<LLVM::FreezeOp>(op)) {
    set(x.getResult(), get(x.getVal()));
    return success();
  }
  // What only informs the optimizer or the debugger.
  if (isa<LLVM::AssumeOp, LLVM::LifetimeStartOp, LLVM::LifetimeEndOp,
          LLVM::DbgValueOp, LLVM::DbgDeclareOp, LLVM::DbgLabelOp,
          LLVM::NoAliasScopeDeclOp, LLVM::InvariantEndOp, LLVM::VarAnnotation,
          LLVM::Prefetch, LLVM::DebugTrap, LLVM::StackRestoreOp>(op))
    return success();
  if (isa<LLVM::InvariantStartOp, LLVM::StackSaveOp, LLVM::IsConstantOp>(op)) {
    Comps comps = shape(op->getResult(0).getType());
    for (Comp &c : comps)
      c = constant(0, c.wide);
    set(op->getResult(0), comps);
    return success();
  }
  if (isa<LLVM::ExpectOp, LLVM::ExpectWithProbabilityOp, LLVM::SSACopyOp,
          LLVM::LaunderInvariantGroupOp, LLVM::StripInvariantGroupOp>(op)) {
    set(op->getResult(0), get(op->getOperand(0)));
    return success();
  }
  if (isa<LLVM::Trap, LLVM::UBSanTrap>(op)) {
    emit(Code::Trap);
    // The threads end here, whatever follows in the text.
    current = newBlock();
    return success();
  }
  known = decodeInteger(op) || decodeBits(op) || decodeFloat(op) ||
          decodeConversion(op) || decodeReduction(op) || decodeAggregate(op) ||
          decodeTwoResults(op) || decodeFloatClass(op);
  return success();
}

Class kvbuf::emu::defaultClass(Code op) {
  switch (op) {
  case Code::MovN:
  case Code::Mov64:
  case Code::ToGeneric:
  case Code::FromGeneric:
    return Class::None;
  case Code::LoadShared:
    return Class::SharedLoad;
  case Code::StoreShared:
    return Class::SharedStore;
  case Code::LoadGlobal:
  case Code::LoadGeneric:
    return Class::GlobalLoad;
  case Code::StoreGlobal:
  case Code::StoreGeneric:
    return Class::GlobalStore;
  case Code::AmdBufferLoad:
    return Class::GlobalLoad;
  case Code::AmdBufferStore:
    return Class::GlobalStore;
  case Code::AmdReadTr16:
  case Code::AmdLoadTr16:
    return Class::MatrixLoad;
  case Code::AmdMfma:
    return Class::Matrix;
  case Code::AmdCountVm:
  case Code::AmdUse:
    return Class::None;
  case Code::AmdBufferLoadLds:
  case Code::AmdGlobalLoadLds:
  case Code::AmdTensorLoad:
  case Code::AmdTensorWait:
  case Code::AmdWait:
    return Class::AsyncCopy;
  case Code::AmdLaneMap:
  case Code::AmdReadLane:
  case Code::AmdBpermute:
  case Code::AmdSwap:
  case Code::AmdBallot:
    return Class::Shuffle;
  case Code::AmdDot2F16:
  case Code::AmdDot2BF16:
    return Class::Float;
  case Code::AmdPackF16Rtz:
    return Class::Convert;
  case Code::LoadLocal:
  case Code::StoreLocal:
    return Class::Local;
  case Code::CpAsync:
  case Code::CpAsyncCommit:
  case Code::CpAsyncWait:
    return Class::AsyncCopy;
  case Code::LdMatrix:
    return Class::MatrixLoad;
  case Code::StMatrix:
    return Class::SharedStore;
  case Code::MmaSync:
    return Class::Matrix;
  case Code::Shuffle:
  case Code::LaneTranspose:
  case Code::Vote:
  case Code::Elect:
    return Class::Shuffle;
  case Code::Barrier:
  case Code::BarrierArrive:
  case Code::BarrierReduce:
  case Code::WarpSync:
    return Class::Barrier;
  case Code::Fence:
    return Class::None;
  case Code::AtomicGlobal:
  case Code::AtomicShared:
    return Class::GlobalStore;
  case Code::MBarrierInit:
  case Code::MBarrierInval:
  case Code::MBarrierArrive:
  case Code::MBarrierTest:
  case Code::MBarrierOwe:
  case Code::ClusterArrive:
  case Code::ClusterWait:
  case Code::ProxyFence:
  case Code::SetMaxRegisters:
    return Class::Barrier;
  case Code::ClusterStore:
  case Code::ClusterCopy:
  case Code::BulkLoad:
  case Code::BulkStore:
  case Code::BulkCommit:
  case Code::BulkWait:
    return Class::AsyncCopy;
  case Code::Wgmma:
  case Code::WgmmaFence:
  case Code::WgmmaCommit:
  case Code::WgmmaWait:
    return Class::Matrix;
  case Code::WgmmaCheck:
    return Class::None;
  case Code::Jump:
  case Code::Branch:
  case Code::Return:
  case Code::Trap:
    return Class::Branch;
  case Code::Exp2F32:
  case Code::Exp2F64:
  case Code::Log2F32:
  case Code::Log2F64:
  case Code::Exp2FtzF32:
  case Code::Log2FtzF32:
  case Code::RcpF32:
  case Code::RcpFtzF32:
  case Code::RsqrtF32:
  case Code::TanhF32:
  case Code::SqrtF32:
  case Code::SqrtF64:
    return Class::Transcendental;
  default:
    if (op >= Code::F32ToF16 && op <= Code::F64ToU64)
      return Class::Convert;
    if (op >= Code::AddF32 && op <= Code::CmpUneF64)
      return Class::Float;
    return Class::Integer;
  }
}
