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

static uint64_t bitsOfAttr(Attribute attr) {
  if (auto i = dyn_cast<IntegerAttr>(attr))
    return i.getValue().getZExtValue();
  return cast<FloatAttr>(attr).getValue().bitcastToAPInt().getZExtValue();
}

LogicalResult Decoder::decodeConstant(LLVM::ConstantOp op) {
  Type type = op.getType();
  Attribute attr = op.getValue();
  if (isa<IntegerAttr, FloatAttr>(attr)) {
    unsigned bits = bitsOf(type);
    if (isa<VectorType>(type) || bits == 0)
      return unsupported(op, "this constant");
    uint64_t value = bitsOfAttr(attr);
    if (bits < 64)
      value &= (uint64_t(1) << bits) - 1;
    set(op.getResult(), {constant(value, bits > 32)});
    return success();
  }
  auto dense = dyn_cast<DenseElementsAttr>(attr);
  if (!dense)
    return unsupported(op, "this constant");
  // The elements in row-major order; arrays of vectors are filled in turn.
  std::vector<uint64_t> words;
  for (Attribute element : dense.getValues<Attribute>())
    words.push_back(bitsOfAttr(element));
  Type inner = type;
  while (auto array = dyn_cast<LLVM::LLVMArrayType>(inner))
    inner = array.getElementType();
  unsigned bits = bitsOf(elementOf(inner)), length = 1;
  if (auto vector = dyn_cast<VectorType>(inner))
    length = vector.getNumElements();
  if (bits == 0 || words.size() % length)
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
  // Leading and trailing zeros and funnel shifts depend on the width itself.
  bool exact = llvm::is_contained(
      {Code::Ctlz32, Code::Cttz32, Code::Fshl32, Code::Fshr32}, entry->op32);
  if (exact && bits != 32 && bits != 64)
    return false;
  // Words of packed elements need no unpacking for bitwise operations.
  bool bitwise =
      llvm::is_contained({Code::And32, Code::Or32, Code::Xor32}, entry->op32);
  SmallVector<Comps> operands;
  for (Value v : op->getOperands()) {
    Comps comps = bitwise ? get(v) : unpack(v);
    if (entry->isSigned && bits < 32 && !bitwise)
      for (Comp &c : comps)
        c = emitFree(Code::SExtBits, false, c, {}, {}, bits);
    operands.push_back(comps);
  }
  Comps results;
  for (size_t i = 0; i < operands[0].size(); ++i) {
    auto operand = [&](unsigned k) {
      return k < operands.size() ? operands[k][i] : Comp{};
    };
    Comp result = emit(wide ? entry->op64 : entry->op32, wide, operand(0),
                       operand(1), operand(2));
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
    Comp c = getScalar(op.getCondition());
    Comps a = get(op.getTrueValue()), b = get(op.getFalseValue()), results;
    for (auto [x, y] : llvm::zip_equal(a, b))
      results.push_back(
          emit(x.wide ? Code::Select64 : Code::Select32, x.wide, c, x, y));
    set(op.getResult(), results);
    return success();
  }
  Comps c = unpack(op.getCondition()), a = unpack(op.getTrueValue()),
        b = unpack(op.getFalseValue()), results;
  for (auto [k, x, y] : llvm::zip_equal(c, a, b))
    results.push_back(
        emit(x.wide ? Code::Select64 : Code::Select32, x.wide, k, x, y));
  set(op.getResult(), pack(results, type));
  return success();
}

//===----------------------------------------------------------------------===//
// Floating point
//===----------------------------------------------------------------------===//

// 16-bit types are computed in fp32 and rounded once more. For +, -, *, / and
// the square root that is exact, because fp32 has more than twice their
// precision; fused multiply-add is refused, for it is not.
LogicalResult Decoder::floatOp(Operation *op, Code op32, Code op64,
                               ValueRange operands) {
  Type type = op->getResult(0).getType();
  unsigned bits = bitsOf(elementOf(type));
  SmallVector<Comps> parts;
  for (Value v : operands)
    parts.push_back(unpackFloats(v));
  Comps results;
  for (size_t i = 0; i < parts[0].size(); ++i)
    results.push_back(emit(bits == 64 ? op64 : op32, bits == 64, parts[0][i],
                           parts.size() > 1 ? parts[1][i] : Comp{},
                           parts.size() > 2 ? parts[2][i] : Comp{}));
  set(op->getResult(0), packFloats(results, type));
  return success();
}

bool Decoder::decodeFloat(Operation *op) {
  using Pair = std::pair<Code, Code>;
#define FP(Name)                                                               \
  Pair { Code::Name##F32, Code::Name##F64 }
  static const llvm::StringMap<Pair> table = {
      {"llvm.fadd", FP(Add)},
      {"llvm.fsub", FP(Sub)},
      {"llvm.fmul", FP(Mul)},
      {"llvm.fdiv", FP(Div)},
      {"llvm.frem", FP(Rem)},
      {"llvm.fneg", FP(Neg)},
      {"llvm.intr.fabs", FP(Fabs)},
      {"llvm.intr.copysign", FP(CopySign)},
      {"llvm.intr.fma", FP(Fma)},
      {"llvm.intr.fmuladd", FP(Fma)},
      {"llvm.intr.maxnum", FP(MaxNum)},
      {"llvm.intr.minnum", FP(MinNum)},
      {"llvm.intr.maximum", FP(Maximum)},
      {"llvm.intr.minimum", FP(Minimum)},
      {"llvm.intr.sqrt", FP(Sqrt)},
      {"llvm.intr.floor", FP(Floor)},
      {"llvm.intr.ceil", FP(Ceil)},
      {"llvm.intr.rint", FP(RoundEven)},
      {"llvm.intr.roundeven", FP(RoundEven)},
      {"llvm.intr.nearbyint", FP(RoundEven)},
      {"llvm.intr.trunc", FP(TruncTo)},
      {"llvm.intr.exp2", FP(Exp2)},
      {"llvm.intr.log2", FP(Log2)},
  };
#undef FP
  auto it = table.find(op->getName().getStringRef());
  if (it == table.end())
    return false;
  auto [op32, op64] = it->second;
  if (op32 == Code::FmaF32 &&
      bitsOf(elementOf(op->getResult(0).getType())) < 32)
    return false;
  return succeeded(floatOp(op, op32, op64, op->getOperands()));
}

// Reductions of vectors, in the order of the elements.
bool Decoder::decodeReduction(Operation *op) {
  StringRef name = op->getName().getStringRef();
  if (!name.consume_front("llvm.intr.vector.reduce."))
    return false;
  using Pair = std::pair<Code, Code>;
  auto code = llvm::StringSwitch<std::optional<Pair>>(name)
                  .Case("add", Pair{Code::Add32, Code::Add64})
                  .Case("and", Pair{Code::And32, Code::And64})
                  .Case("or", Pair{Code::Or32, Code::Or64})
                  .Case("xor", Pair{Code::Xor32, Code::Xor64})
                  .Case("umax", Pair{Code::UMax32, Code::UMax64})
                  .Case("umin", Pair{Code::UMin32, Code::UMin64})
                  .Case("fadd", Pair{Code::AddF32, Code::AddF64})
                  .Case("fmul", Pair{Code::MulF32, Code::MulF64})
                  .Case("fmax", Pair{Code::MaxNumF32, Code::MaxNumF64})
                  .Case("fmin", Pair{Code::MinNumF32, Code::MinNumF64})
                  .Case("fmaximum", Pair{Code::MaximumF32, Code::MaximumF64})
                  .Case("fminimum", Pair{Code::MinimumF32, Code::MinimumF64})
                  .Default(std::nullopt);
  Type type = op->getResult(0).getType();
  unsigned bits = bitsOf(type);
  // Narrow sums would need rounding or cutting at every step.
  if (!code || bits < 32)
    return false;
  Comps elements;
  for (Value v : op->getOperands())
    llvm::append_range(elements, unpack(v));
  Comp sum = elements.front();
  for (Comp c : ArrayRef<Comp>(elements).drop_front())
    sum = emit(sum.wide ? code->second : code->first, sum.wide, sum, c);
  set(op->getResult(0), {sum});
  return true;
}

LogicalResult Decoder::decodeFCmp(LLVM::FCmpOp op) {
  using P = LLVM::FCmpPredicate;
  P p = op.getPredicate();
  Value lhs = op.getLhs(), rhs = op.getRhs();
  if (p == P::ogt || p == P::oge || p == P::ugt || p == P::uge) {
    std::swap(lhs, rhs);
    p = p == P::ogt   ? P::olt
        : p == P::oge ? P::ole
        : p == P::ugt ? P::ult
                      : P::ule;
  }
  Comps a = unpackFloats(lhs), b = unpackFloats(rhs), results;
  bool wide = a.front().wide;
  auto pick = [&](Code narrow, Code full) { return wide ? full : narrow; };
#define FP(Name) pick(Code::Cmp##Name##F32, Code::Cmp##Name##F64)
  Code code;
  switch (p) {
  case P::_false:
  case P::_true:
    set(op.getResult(), Comps(a.size(), constant(p == P::_true)));
    return success();
  case P::oeq:
    code = FP(Oeq);
    break;
  case P::olt:
    code = FP(Olt);
    break;
  case P::ole:
    code = FP(Ole);
    break;
  case P::one:
    code = FP(One);
    break;
  case P::ord:
    code = FP(Ord);
    break;
  case P::uno:
    code = FP(Uno);
    break;
  case P::ueq:
    code = FP(Ueq);
    break;
  case P::ult:
    code = FP(Ult);
    break;
  case P::ule:
    code = FP(Ule);
    break;
  case P::une:
    code = FP(Une);
    break;
  default:
    return unsupported(op);
  }
#undef FP
  for (auto [x, y] : llvm::zip_equal(a, b))
    results.push_back(emit(code, false, x, y));
  set(op.getResult(), results);
  return success();
}

// Intrinsics called by name. LLVM has changed the spelling of the type suffix
// over time, so it is cut off.
LogicalResult Decoder::decodeIntrinsicCall(LLVM::CallIntrinsicOp op) {
  StringRef name = op.getIntrin();
  StringRef base = name;
  for (StringRef suffix : {".f32", ".f"})
    if (base.consume_back(suffix))
      break;
  std::optional<Code> code =
      llvm::StringSwitch<std::optional<Code>>(base)
          .Case("llvm.nvvm.ex2.approx.ftz", Code::Exp2FtzF32)
          .Case("llvm.nvvm.ex2.approx", Code::Exp2F32)
          .Case("llvm.nvvm.lg2.approx.ftz", Code::Log2FtzF32)
          .Case("llvm.nvvm.lg2.approx", Code::Log2F32)
          .Case("llvm.nvvm.rcp.approx.ftz", Code::RcpFtzF32)
          .Cases({"llvm.nvvm.rcp.approx", "llvm.nvvm.rcp.rn"}, Code::RcpF32)
          .Cases({"llvm.nvvm.rsqrt.approx", "llvm.nvvm.rsqrt.approx.ftz"},
                 Code::RsqrtF32)
          .Cases({"llvm.nvvm.sqrt.approx", "llvm.nvvm.sqrt.rn"}, Code::SqrtF32)
          .Case("llvm.nvvm.tanh.approx", Code::TanhF32)
          .Case("llvm.nvvm.fma.rn", Code::FmaF32)
          .Case("llvm.nvvm.add.rn", Code::AddF32)
          .Case("llvm.nvvm.mul.rn", Code::MulF32)
          .Case("llvm.nvvm.div.rn", Code::DivF32)
          .Case("llvm.nvvm.fmax", Code::MaxNumF32)
          .Case("llvm.nvvm.fmin", Code::MinNumF32)
          .Case("llvm.nvvm.fabs", Code::FabsF32)
          .Default(std::nullopt);
  if (!code || op.getNumResults() != 1 || !op.getResult(0).getType().isF32())
    return unsupported(op, "intrinsic '" + name + "'");
  return floatOp(op, *code, *code, op.getArgs());
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

static Code toInteger(bool fromWide, bool toWide, bool isSigned) {
  if (fromWide)
    return toWide ? (isSigned ? Code::F64ToS64 : Code::F64ToU64)
                  : (isSigned ? Code::F64ToS32 : Code::F64ToU32);
  return toWide ? (isSigned ? Code::F32ToS64 : Code::F32ToU64)
                : (isSigned ? Code::F32ToS32 : Code::F32ToU32);
}

static Code toFloat(bool fromWide, bool toWide, bool isSigned) {
  if (fromWide)
    return toWide ? (isSigned ? Code::S64ToF64 : Code::U64ToF64)
                  : (isSigned ? Code::S64ToF32 : Code::U64ToF32);
  return toWide ? (isSigned ? Code::S32ToF64 : Code::U32ToF64)
                : (isSigned ? Code::S32ToF32 : Code::U32ToF32);
}

bool Decoder::decodeConversion(Operation *op) {
  if (op->getNumOperands() != 1 || op->getNumResults() != 1)
    return false;
  Value source = op->getOperand(0), result = op->getResult(0);
  Type type = result.getType();
  unsigned from = bitsOf(elementOf(source.getType())),
           to = bitsOf(elementOf(type));
  auto each = [&](Comps parts, llvm::function_ref<Comp(Comp)> f) {
    for (Comp &c : parts)
      c = f(c);
    return parts;
  };
  auto narrow = [&](Comp c) {
    if (c.wide)
      c = emit(Code::Lo64, false, c);
    if (to < 32)
      c = emit(Code::AndImm32, false, c, {}, {}, (int64_t(1) << to) - 1);
    return c;
  };
  if (isa<LLVM::TruncOp>(op)) {
    set(result, pack(each(unpack(source),
                          [&](Comp c) { return to > 32 ? c : narrow(c); }),
                     type));
    return true;
  }
  if (isa<LLVM::ZExtOp>(op)) {
    set(result,
        pack(each(unpack(source),
                  [&](Comp c) {
                    return to > 32 && !c.wide ? emit(Code::ZExt64, true, c) : c;
                  }),
             type));
    return true;
  }
  if (isa<LLVM::SExtOp>(op)) {
    set(result, pack(each(unpack(source),
                          [&](Comp c) {
                            if (from < 32)
                              c = emit(Code::SExtBits, false, c, {}, {}, from);
                            if (to > 32 && !c.wide)
                              c = emit(Code::SExt64, true, c);
                            if (to < 32)
                              c = emit(Code::AndImm32, false, c, {}, {},
                                       (int64_t(1) << to) - 1);
                            return c;
                          }),
                     type));
    return true;
  }
  if (isa<LLVM::FPExtOp>(op)) {
    Comps parts = unpackFloats(source);
    // Counted here: what unpacking made is the conversion itself.
    set(result, each(parts, [&](Comp c) {
          return to == 64 && !c.wide ? emit(Code::F32ToF64, true, c) : c;
        }));
    return true;
  }
  if (isa<LLVM::FPTruncOp>(op)) {
    if (from == 64 && to < 32)
      return false;
    set(result, packFloats(each(unpackFloats(source),
                                [&](Comp c) {
                                  return c.wide ? emit(Code::F64ToF32, false, c)
                                                : c;
                                }),
                           type));
    return true;
  }
  if (isa<LLVM::SIToFPOp, LLVM::UIToFPOp>(op)) {
    bool isSigned = isa<LLVM::SIToFPOp>(op);
    set(result,
        packFloats(each(unpack(source),
                        [&](Comp c) {
                          if (isSigned && from < 32)
                            c = emitFree(Code::SExtBits, false, c, {}, {},
                                         from);
                          return emit(toFloat(from > 32, to == 64, isSigned),
                                      to == 64, c);
                        }),
                   type));
    return true;
  }
  if (isa<LLVM::FPToSIOp, LLVM::FPToUIOp>(op)) {
    bool isSigned = isa<LLVM::FPToSIOp>(op);
    set(result, pack(each(unpackFloats(source),
                          [&](Comp c) {
                            c = emit(toInteger(c.wide, to > 32, isSigned),
                                     to > 32, c);
                            return to < 32 ? narrow(c) : c;
                          }),
                     type));
    return true;
  }
  return false;
}

LogicalResult Decoder::decodeBitcast(LLVM::BitcastOp op) {
  Comps source = get(op.getArg()), target = shape(op.getType());
  auto isBools = [](Type t) {
    return isa<VectorType>(t) && bitsOf(elementOf(t)) == 1;
  };
  if (isBools(op.getArg().getType()) != isBools(op.getType()))
    return unsupported(op, "vectors of i1 as integers");
  // Both sides as a stream of words.
  Comps words;
  bool toWide = target.front().wide;
  for (Comp c : source) {
    if (c.wide && !toWide) {
      words.push_back(emitFree(Code::Lo64, false, c));
      words.push_back(emitFree(Code::Hi64, false, c));
    } else {
      words.push_back(c);
    }
  }
  if (toWide && !words.front().wide) {
    if (words.size() % 2)
      return unsupported(op, "this cast");
    Comps pairs;
    for (size_t i = 0; i < words.size(); i += 2)
      pairs.push_back(emitFree(Code::Pack64, true, words[i], words[i + 1]));
    words = pairs;
  }
  if (words.size() != target.size())
    return unsupported(op, "this cast");
  set(op.getResult(), words);
  return success();
}

//===----------------------------------------------------------------------===//
// Vectors and structs: nothing but lists of slots, where indices are constant
//===----------------------------------------------------------------------===//

static std::optional<int64_t> constantIndex(Value v) {
  auto op = v.getDefiningOp<LLVM::ConstantOp>();
  if (!op)
    return std::nullopt;
  if (auto attr = dyn_cast<IntegerAttr>(op.getValue()))
    return attr.getValue().getSExtValue();
  return std::nullopt;
}

bool Decoder::decodeAggregate(Operation *op) {
  auto place = [&](Type type, ArrayRef<int64_t> position) {
    size_t first = 0;
    for (int64_t i : position) {
      if (auto record = dyn_cast<LLVM::LLVMStructType>(type)) {
        for (int64_t k = 0; k < i; ++k)
          first += shape(record.getBody()[k]).size();
        type = record.getBody()[i];
      } else {
        type = cast<LLVM::LLVMArrayType>(type).getElementType();
        first += i * shape(type).size();
      }
    }
    return std::make_pair(first, shape(type).size());
  };
  if (auto x = dyn_cast<LLVM::ExtractValueOp>(op)) {
    auto [first, n] = place(x.getContainer().getType(), x.getPosition());
    set(x.getResult(),
        Comps(ArrayRef<Comp>(values[x.getContainer()]).slice(first, n)));
    return true;
  }
  if (auto x = dyn_cast<LLVM::InsertValueOp>(op)) {
    auto [first, n] = place(x.getContainer().getType(), x.getPosition());
    Comps all = values[x.getContainer()], part = get(x.getValue());
    std::copy(part.begin(), part.end(), all.begin() + first);
    set(x.getResult(), all);
    return true;
  }
  if (auto x = dyn_cast<LLVM::ExtractElementOp>(op)) {
    Type type = x.getVector().getType();
    unsigned bits = bitsOf(elementOf(type));
    if (auto index = constantIndex(x.getPosition())) {
      Comps words = get(x.getVector());
      unsigned per = bits == 8 || bits == 16 ? 32 / bits : 1;
      if (*index < 0 || *index / per >= static_cast<int64_t>(words.size()))
        return false;
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
      if (*index < 0 || *index / per >= static_cast<int64_t>(words.size()))
        return false;
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
    unsigned bits = bitsOf(elementOf(type));
    Comps words = get(x.getV1()), second = get(x.getV2());
    int64_t n = cast<VectorType>(x.getV1().getType()).getNumElements();
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
        picked.push_back(from < 0 ? constant(0) : elements[from]);
      result = pack(picked, type);
    }
    set(x.getResult(), result);
    return true;
  }
  return false;
}

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
  if (auto x = dyn_cast<LLVM::CallIntrinsicOp>(op))
    return decodeIntrinsicCall(x);
  if (auto x = dyn_cast<LLVM::FreezeOp>(op)) {
    set(x.getResult(), get(x.getVal()));
    return success();
  }
  // What only informs the optimizer or the debugger.
  if (isa<LLVM::AssumeOp, LLVM::FenceOp, LLVM::LifetimeStartOp,
          LLVM::LifetimeEndOp, LLVM::DbgValueOp, LLVM::DbgDeclareOp>(op))
    return success();
  known = decodeInteger(op) || decodeFloat(op) || decodeConversion(op) ||
          decodeReduction(op) || decodeAggregate(op);
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
  case Code::Vote:
  case Code::Elect:
    return Class::Shuffle;
  case Code::Barrier:
  case Code::BarrierArrive:
  case Code::WarpSync:
    return Class::Barrier;
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
