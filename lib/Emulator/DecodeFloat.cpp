//===- DecodeFloat.cpp - Floating point of the LLVM dialect -------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

#include <optional>

using namespace mlir;
using namespace kvbuf::emu;

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
  for (const Comps &comps : parts)
    if (!alike(comps, parts[0]))
      return failure();
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
  if (it == table.end()) {
    // What the host's library computes.
    static const llvm::StringMap<StringRef> rest = {
        {"llvm.intr.exp", "exp"},     {"llvm.intr.exp10", "exp10"},
        {"llvm.intr.log", "log"},     {"llvm.intr.log10", "log10"},
        {"llvm.intr.pow", "pow"},     {"llvm.intr.powi", "powi"},
        {"llvm.intr.sin", "sin"},     {"llvm.intr.cos", "cos"},
        {"llvm.intr.tan", "tan"},     {"llvm.intr.tanh", "tanh"},
        {"llvm.intr.sinh", "sinh"},   {"llvm.intr.cosh", "cosh"},
        {"llvm.intr.asin", "asin"},   {"llvm.intr.acos", "acos"},
        {"llvm.intr.atan", "atan"},   {"llvm.intr.atan2", "atan2"},
        {"llvm.intr.round", "round"}, {"llvm.intr.ldexp", "ldexp"},
    };
    auto known = rest.find(op->getName().getStringRef());
    return known != rest.end() && elementwise(op, known->second);
  }
  auto [op32, op64] = it->second;
  if (op32 == Code::FmaF32 &&
      bitsOf(elementOf(op->getResult(0).getType())) < 32) {
    // With one rounding, which fp32 does not give.
    Type type = op->getResult(0).getType();
    SmallVector<Comps> parts;
    for (Value v : op->getOperands())
      parts.push_back(unpack(v));
    Comps results;
    for (auto [x, y, z] : llvm::zip_equal(parts[0], parts[1], parts[2]))
      results.push_back(laneCall(
          elementOf(type).isF16() ? "fma.f16" : "fma.bf16", {x, y, z}));
    set(op->getResult(0), pack(results, type));
    return true;
  }
  return succeeded(floatOp(op, op32, op64, op->getOperands()));
}

// frexp and sincos: two results for each number.
bool Decoder::decodeTwoResults(Operation *op) {
  StringRef name = isa<LLVM::FractionExpOp>(op) ? "frexp"
                   : isa<LLVM::SincosOp>(op)    ? "sincos"
                                                : "";
  if (name.empty())
    return false;
  Type type = op->getOperand(0).getType();
  auto record = dyn_cast<LLVM::LLVMStructType>(op->getResult(0).getType());
  if (!record || record.getBody().size() != 2)
    return false;
  Comps firsts, seconds;
  for (Comp x : unpackFloats(op->getOperand(0))) {
    Comps results;
    if (!laneCall(x.wide ? name.str() : (name + "f").str(), {x}, results))
      return false;
    firsts.push_back(results[0]);
    seconds.push_back(results[1]);
  }
  Comps parts = packFloats(firsts, type);
  llvm::append_range(parts, isa<LLVM::SincosOp>(op)
                                ? packFloats(seconds, type)
                                : pack(seconds, record.getBody()[1]));
  set(op->getResult(0), parts);
  return true;
}

// Of a number's bits, taken as unsigned, each class is an interval.
bool Decoder::decodeFloatClass(Operation *op) {
  auto test = dyn_cast<LLVM::IsFPClass>(op);
  if (!test)
    return false;
  Type type = test.getIn().getType();
  auto number = dyn_cast<FloatType>(elementOf(type));
  if (!number || number.getWidth() > 64)
    return false;
  bool wide = number.getWidth() > 32;
  uint64_t sign = uint64_t(1) << (number.getWidth() - 1);
  uint64_t normal = uint64_t(1) << (number.getFPMantissaWidth() - 1);
  uint64_t infinity = sign - normal, quiet = infinity | normal >> 1;
  // From 0 upwards; the numbers are LLVM's bits, with and without a sign.
  struct Class {
    unsigned positive, negative;
    uint64_t first;
  } classes[] = {{6, 5, 0},
                 {7, 4, 1},
                 {8, 3, normal},
                 {9, 2, infinity},
                 {0, 0, infinity + 1},
                 {1, 1, quiet}};
  Comps results;
  for (Comp x : unpack(test.getIn())) {
    Comp any = constant(0);
    for (bool negative : {false, true})
      for (auto [k, c] : llvm::enumerate(classes)) {
        if (!(test.getBit() >> (negative ? c.negative : c.positive) & 1))
          continue;
        uint64_t end = k + 1 < std::size(classes) ? classes[k + 1].first : sign;
        Comp distance = emit(wide ? Code::Sub64 : Code::Sub32, wide, x,
                             constant(c.first | (negative ? sign : 0), wide));
        Comp within = emit(wide ? Code::CmpUlt64 : Code::CmpUlt32, false,
                           distance, constant(end - c.first, wide));
        any = emit(Code::Or32, false, any, within);
      }
    results.push_back(any);
  }
  set(test.getResult(), results);
  return true;
}

// Reductions of vectors, in the order of the elements.
bool Decoder::decodeReduction(Operation *op) {
  StringRef name = op->getName().getStringRef();
  if (!name.consume_front("llvm.intr.vector.reduce."))
    return false;
  using Pair = std::pair<Code, Code>;
  auto code = llvm::StringSwitch<std::optional<Pair>>(name)
                  .Case("add", Pair{Code::Add32, Code::Add64})
                  .Case("mul", Pair{Code::Mul32, Code::Mul64})
                  .Case("smax", Pair{Code::SMax32, Code::SMax64})
                  .Case("smin", Pair{Code::SMin32, Code::SMin64})
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
  for (Value v : op->getOperands()) {
    if (elementOf(v.getType()) != type)
      return false;
    llvm::append_range(elements, unpack(v));
  }
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
  if (!alike(a, b))
    return failure();
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
  struct Function {
    Code code;
    const char *signature;
  };
  auto of1 = [](Code code) { return Function{code, "f=f"}; };
  auto of2 = [](Code code) { return Function{code, "f=ff"}; };
  auto function =
      llvm::StringSwitch<std::optional<Function>>(base)
          .Case("llvm.nvvm.ex2.approx.ftz", of1(Code::Exp2FtzF32))
          .Case("llvm.nvvm.ex2.approx", of1(Code::Exp2F32))
          .Case("llvm.nvvm.lg2.approx.ftz", of1(Code::Log2FtzF32))
          .Case("llvm.nvvm.lg2.approx", of1(Code::Log2F32))
          .Case("llvm.nvvm.rcp.approx.ftz", of1(Code::RcpFtzF32))
          .Cases({"llvm.nvvm.rcp.approx", "llvm.nvvm.rcp.rn"},
                 of1(Code::RcpF32))
          .Cases({"llvm.nvvm.rsqrt.approx", "llvm.nvvm.rsqrt.approx.ftz"},
                 of1(Code::RsqrtF32))
          .Cases({"llvm.nvvm.sqrt.approx", "llvm.nvvm.sqrt.rn"},
                 of1(Code::SqrtF32))
          .Case("llvm.nvvm.tanh.approx", of1(Code::TanhF32))
          .Case("llvm.nvvm.fma.rn", Function{Code::FmaF32, "f=fff"})
          .Case("llvm.nvvm.add.rn", of2(Code::AddF32))
          .Case("llvm.nvvm.mul.rn", of2(Code::MulF32))
          .Case("llvm.nvvm.div.rn", of2(Code::DivF32))
          .Case("llvm.nvvm.fmax", of2(Code::MaxNumF32))
          .Case("llvm.nvvm.fmin", of2(Code::MinNumF32))
          .Case("llvm.nvvm.fabs", of1(Code::FabsF32))
          .Default(std::nullopt);
  if (!function) {
    bool known = false;
    if (!program.chip.isAMD && failed(decodeNvvmIntrinsic(op, known)))
      return failure();
    return known ? success() : unsupported(op, "intrinsic '" + name + "'");
  }
  if (!fits(op, name, function->signature))
    return failure();
  return floatOp(op, function->code, function->code, op.getArgs());
}
