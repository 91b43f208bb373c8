//===- DecodeLibrary.cpp - Functions of numbers by their names ------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the names of libdevice (`__nv_fadd_rd`) and of ROCm's device libraries
// (`__ocml_exp_f32`) stand for: a function of the host (HostMath.h), or a few
// instructions.
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"
#include "HostMath.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace kvbuf::emu;

namespace {
/// A function of HostMath.h, and how it rounds.
struct HostFunction {
  std::string name;
  unsigned flags = 0;
  /// It subtracts its second operand.
  bool negates = false;
};
} // namespace

static bool isHostFunction(StringRef name) {
  return findLaneFunction(name.data(), name.size()) >= 0;
}

// "fadd_rn", "fmaf_ieee_rd", "float2ull_rz".
static std::optional<HostFunction> roundedFunction(StringRef name) {
  auto [base, mode] = name.rsplit('_');
  auto rounding = llvm::StringSwitch<std::optional<unsigned>>(mode)
                      .Case("rn", roundNearest)
                      .Case("rd", roundDown)
                      .Case("ru", roundUp)
                      .Case("rz", roundZero)
                      .Default(std::nullopt);
  if (!rounding)
    return std::nullopt;
  base.consume_back("_ieee");
  if (base == "fma" || base == "fmaf")
    return HostFunction{base == "fma" ? "fma.d" : "fma.f", *rounding};
  if (auto [from, to] = base.split('2'); !to.empty()) {
    auto letter = [](StringRef type) {
      return llvm::StringSwitch<StringRef>(type)
          .Case("float", "f")
          .Case("double", "d")
          .Case("int", "i")
          .Case("uint", "ui")
          .Cases({"ll", "ull"}, type)
          .Default("");
    };
    std::string full = (letter(from) + "2" + letter(to)).str();
    if (isHostFunction(full))
      return HostFunction{full, *rounding};
    return std::nullopt;
  }
  bool isDouble = base.consume_front("d");
  if (!isDouble && !base.consume_front("f"))
    return std::nullopt;
  if (!llvm::is_contained({"add", "sub", "mul", "div", "rcp", "sqrt", "rsqrt"},
                          base))
    return std::nullopt;
  bool negates = base == "sub";
  std::string full = (negates ? "add" : base).str() + (isDouble ? ".d" : ".f");
  return HostFunction{full, *rounding, negates};
}

static std::optional<HostFunction> hostFunction(StringRef name) {
  std::string full;
  if (name.consume_front("__nv_")) {
    if (std::optional<HostFunction> rounded = roundedFunction(name))
      return rounded;
    // The fast ones are as good or better here.
    name.consume_front("fast_");
    full = llvm::StringSwitch<StringRef>(name)
               .Case("isnand", "isnan")
               .Case("isinfd", "isinf")
               .Case("finitef", "isfinitef")
               .Case("isfinited", "isfinite")
               .Case("signbitd", "signbit")
               .Case("fdividef", "div.f")
               .Case("llrintf", "f2ll")
               .Case("llrint", "d2ll")
               .Case("scalbnf", "ldexpf")
               .Case("scalbn", "ldexp")
               .Case("norm3df", "hypot3f")
               .Case("norm3d", "hypot3")
               .Default(name.contains('.') ? "" : name)
               .str();
  } else if (name.consume_front("__ocml_")) {
    name.consume_front("native_");
    auto [base, type] = name.rsplit('_');
    base = llvm::StringSwitch<StringRef>(base)
               .Case("pown", "powi")
               .Case("powr", "pow")
               .Default(base);
    if (type == "f64" || type == "f32" || type == "f16")
      full = (base + (type == "f64" ? "" : "f")).str();
  }
  int number = findLaneFunction(full.data(), full.size());
  // Those of two results store one (storingFunction, twoFunctions).
  if (number < 0 || laneFunctions()[number].signature[1] != '=')
    return std::nullopt;
  return HostFunction{full};
}

namespace {
/// One instruction on its operands; of those of 64 bits the result may be the
/// lower half alone.
struct OneInstruction {
  Code code;
  bool wide = false, low = false;
};
} // namespace

static const llvm::StringMap<OneInstruction> &oneInstructions() {
  static const llvm::StringMap<OneInstruction> table = {
      {"__nv_min", {Code::SMin32}},
      {"__nv_max", {Code::SMax32}},
      {"__nv_umin", {Code::UMin32}},
      {"__nv_umax", {Code::UMax32}},
      {"__nv_llmin", {Code::SMin64, true}},
      {"__nv_llmax", {Code::SMax64, true}},
      {"__nv_ullmin", {Code::UMin64, true}},
      {"__nv_ullmax", {Code::UMax64, true}},
      {"__nv_popc", {Code::Ctpop32}},
      {"__nv_popcll", {Code::Ctpop64, true, true}},
      {"__nv_clz", {Code::Ctlz32}},
      {"__nv_clzll", {Code::Ctlz64, true, true}},
      {"__nv_byte_perm", {Code::Prmt}},
      {"__nv_double2loint", {Code::Lo64}},
      {"__nv_double2hiint", {Code::Hi64}},
  };
  return table;
}

/// The same bits as another type.
static constexpr StringRef sameBits[] = {
    "__nv_float_as_int",  "__nv_float_as_uint",      "__nv_int_as_float",
    "__nv_uint_as_float", "__nv_double_as_longlong", "__nv_longlong_as_double"};

/// Two results through pointers.
static std::pair<StringRef, StringRef> twoFunctions(StringRef name) {
  using Two = std::pair<StringRef, StringRef>;
  return llvm::StringSwitch<Two>(name)
      .Cases({"__nv_sincosf", "__nv_fast_sincosf"}, Two{"sinf", "cosf"})
      .Case("__nv_sincos", Two{"sin", "cos"})
      .Case("__nv_sincospif", Two{"sinpif", "cospif"})
      .Case("__nv_sincospi", Two{"sinpi", "cospi"})
      .Default({});
}

/// A function of two results, of which the last goes to the address that is the
/// last operand: "modff" for "__nv_modff" and "__ocml_modf_f32". Empty:
/// another.
static std::string storingFunction(StringRef name) {
  static constexpr StringRef names[] = {"modf",   "modff",  "frexp",
                                        "frexpf", "remquo", "remquof"};
  if (name.consume_front("__nv_"))
    return llvm::is_contained(names, name) ? name.str() : "";
  if (!name.consume_front("__ocml_"))
    return "";
  auto [base, type] = name.rsplit('_');
  if (base != "sincos" && !llvm::is_contained(names, base))
    return "";
  return type == "f64" ? base.str() : type == "f32" ? (base + "f").str() : "";
}

static bool isLibraryFunction(StringRef name) {
  return !storingFunction(name).empty() || hostFunction(name) ||
         oneInstructions().contains(name) ||
         llvm::is_contained(sameBits, name) ||
         !twoFunctions(name).first.empty();
}

void kvbuf::emu::addNumberFunctions(std::vector<std::string> &names) {
  std::vector<std::string> candidates(std::begin(sameBits), std::end(sameBits));
  for (const auto &entry : oneInstructions())
    candidates.push_back(entry.getKey().str());
  for (StringRef name :
       {"sincosf",     "fast_sincosf", "sincos",        "sincospif",
        "sincospi",    "isnand",       "isinfd",        "finitef",
        "isfinited",   "signbitd",     "fast_fdividef", "llrintf",
        "llrint",      "scalbnf",      "scalbn",        "norm3df",
        "norm3d",      "fast_sinf",    "fast_cosf",     "fast_tanf",
        "fast_expf",   "fast_exp10f",  "fast_logf",     "fast_log2f",
        "fast_log10f", "fast_powf"})
    candidates.push_back("__nv_" + name.str());
  for (StringRef mode : {"_rn", "_rd", "_ru", "_rz"}) {
    for (StringRef base : {"add", "sub", "mul", "div", "rcp", "sqrt", "rsqrt"})
      for (StringRef type : {"f", "d"})
        candidates.push_back(("__nv_" + type + base + mode).str());
    for (StringRef base : {"fma", "fmaf", "fmaf_ieee"})
      candidates.push_back(("__nv_" + base + mode).str());
    StringRef types[] = {"float", "double", "int", "uint", "ll", "ull"};
    for (StringRef from : types)
      for (StringRef to : types)
        candidates.push_back(("__nv_" + from + "2" + to + mode).str());
  }
  for (unsigned k = 0; k < numLaneFunctions(); ++k) {
    StringRef name = laneFunctions()[k].name;
    // What only PTX and the decoder call has no name in a library.
    static constexpr StringRef internal[] = {"dot", "bswap", "tf32"};
    auto begins = [&](StringRef front) { return name.starts_with(front); };
    bool converts = name.contains('2') && !name.contains("exp2") &&
                    !name.contains("log2") && !name.contains("atan2") &&
                    !name.contains("mul24");
    if (name.contains('.') || converts || llvm::any_of(internal, begins))
      continue;
    candidates.push_back(("__nv_" + name).str());
    if (name.ends_with("f") && isHostFunction(name.drop_back()))
      for (StringRef type : {"_f32", "_f16"})
        candidates.push_back(("__ocml_" + name.drop_back() + type).str());
    else if (isHostFunction((name + "f").str()))
      candidates.push_back(("__ocml_" + name + "_f64").str());
  }
  for (StringRef base : {"pown", "powr"})
    for (StringRef type : {"_f64", "_f32", "_f16"})
      candidates.push_back(("__ocml_" + base + type).str());
  llvm::copy_if(candidates, std::back_inserter(names), isLibraryFunction);
}

LogicalResult Decoder::decodeNumberCall(LLVM::CallOp op, StringRef name,
                                        bool &known) {
  known = isLibraryFunction(name);
  if (!known)
    return success();
  auto notThese = [&](const Twine &what) {
    return unsupported(op, "'" + name + "' of " + what);
  };
  Comps operands;
  auto [first, second] = twoFunctions(name);
  std::string storing = storingFunction(name);
  for (Value v : op->getOperands()) {
    if ((!first.empty() || !storing.empty()) &&
        isa<LLVM::LLVMPointerType>(v.getType()))
      continue;
    Comps parts = unpackFloats(v);
    if (parts.size() != 1)
      return notThese("vectors");
    operands.push_back(parts.front());
  }
  if (!first.empty()) {
    if (op->getNumOperands() != 3 || operands.size() != 1 ||
        op->getNumResults())
      return notThese("these types");
    for (unsigned k = 0; k < 2; ++k) {
      Comps data;
      if (!laneCall(k ? second : first, operands, data))
        return notThese("these types");
      if (failed(decodeAccess(op, op->getOperand(1 + k),
                              op->getOperand(0).getType(),
                              operands[0].wide ? 8 : 4, data, /*store=*/true)))
        return failure();
    }
    return success();
  }
  if (op->getNumResults() != 1)
    return notThese("these types");
  Type type = op->getResult(0).getType();
  if (!storing.empty()) {
    Value pointer = op->getOperands().back();
    Comps results;
    if (op->getNumOperands() != operands.size() + 1 ||
        !isa<LLVM::LLVMPointerType>(pointer.getType()) ||
        !laneCall(storing, operands, results))
      return notThese("these types");
    Comps stored = {results.back()};
    bool isNumber = name.contains("modf") || name.contains("sincos");
    set(op->getResult(0), {results.front()});
    return decodeAccess(op, pointer,
                        isNumber ? type : IntegerType::get(op.getContext(), 32),
                        stored[0].wide ? 8 : 4, stored, /*store=*/true);
  }
  if (llvm::is_contained(sameBits, name)) {
    if (operands.size() != 1 || operands[0].wide != (bitsOf(type) == 64))
      return notThese("these types");
    set(op->getResult(0), operands);
    return success();
  }
  if (auto it = oneInstructions().find(name); it != oneInstructions().end()) {
    const OneInstruction &one = it->second;
    bool halves = one.code == Code::Lo64 || one.code == Code::Hi64;
    if (operands.empty() || operands.size() > 3 ||
        llvm::any_of(operands,
                     [&](Comp c) { return c.wide != (one.wide || halves); }))
      return notThese("these types");
    operands.resize(3);
    Comp made = emit(one.code, one.wide, operands[0], operands[1], operands[2]);
    if (one.low)
      made = emitFree(Code::Lo64, false, made);
    set(op->getResult(0), {made});
    return success();
  }
  std::optional<HostFunction> host = hostFunction(name);
  if (host->negates && operands.size() == 2)
    operands[1] = emitFree(operands[1].wide ? Code::NegF64 : Code::NegF32,
                           operands[1].wide, operands[1]);
  Comps results;
  if (!laneCall(host->name, operands, results, host->flags))
    return notThese("these types");
  set(op->getResult(0), packFloats(results, type));
  return success();
}
