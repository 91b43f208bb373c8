//===- RaiseStatementsNumbers.cpp - Conversions and arithmetic in PTX -----===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA, "Data Movement and Conversion Instructions: cvt", "Floating Point
// Instructions", "Half Precision Floating-Point Instructions", and the integer
// instructions that take more than an operation of LLVM.
//
//===----------------------------------------------------------------------===//

#include "RaisePtx.h"
#include "RaiseStatements.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace kvbuf::emu;

namespace {
/// The words of an opcode: what it does, how, and the types at its end.
struct NumberWords {
  StringRef rounding = "rn";
  bool flushes = false, saturates = false, isFinite = false, relu = false,
       propagates = false, approximate = false;
  /// Rounds to an integer: "rni".
  bool toInteger = false;
};
} // namespace

/// False: a word that is not known.
static bool readWord(StringRef word, NumberWords &w) {
  if (word == "rn" || word == "rz" || word == "rm" || word == "rp" ||
      word == "rna") {
    w.rounding = word;
  } else if (word == "rni" || word == "rzi" || word == "rmi" || word == "rpi") {
    w.rounding = word.drop_back();
    w.toInteger = true;
  } else if (word == "ftz") {
    w.flushes = true;
  } else if (word == "sat") {
    w.saturates = true;
  } else if (word == "satfinite") {
    w.isFinite = true;
  } else if (word == "relu") {
    w.relu = true;
  } else if (word == "NaN") {
    w.propagates = true;
  } else if (word == "approx" || word == "full") {
    w.approximate = true;
  } else {
    return false;
  }
  return true;
}

Type StatementRaiser::floatOf(StringRef name) {
  Type half = b.getF16Type(), brain = b.getBF16Type();
  return llvm::StringSwitch<Type>(name)
      .Case("f16", half)
      .Case("bf16", brain)
      .Case("f16x2", VectorType::get({2}, half))
      .Case("bf16x2", VectorType::get({2}, brain))
      .Case("f32", b.getF32Type())
      .Case("f64", b.getF64Type())
      .Default(Type());
}

Value StatementRaiser::call(const Twine &name, ValueRange operands,
                            Type result) {
  return LLVM::CallIntrinsicOp::create(b, loc, result, b.getStringAttr(name),
                                       operands)
      .getResult(0);
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

// A number of 32 bits as one of 16, rounded to the nearest or towards zero.
static Value narrowed(OpBuilder &b, Location loc, Value x, Type type,
                      bool towardsZero) {
  Value y = LLVM::FPTruncOp::create(b, loc, type, x);
  if (!towardsZero)
    return y;
  // What has become larger is the next one after it.
  auto magnitude = [&](Value v) -> Value {
    return LLVM::FAbsOp::create(b, loc, v);
  };
  Value larger = LLVM::FCmpOp::create(
      b, loc, LLVM::FCmpPredicate::ogt,
      magnitude(LLVM::FPExtOp::create(b, loc, x.getType(), y)), magnitude(x));
  Type word = b.getIntegerType(16);
  Value bits = LLVM::BitcastOp::create(b, loc, word, y);
  bits = LLVM::SubOp::create(b, loc, bits,
                             LLVM::ZExtOp::create(b, loc, word, larger));
  return LLVM::BitcastOp::create(b, loc, type, bits);
}

// Two numbers into one register: "cvt.rn.f16x2.f32 d, high, low".
bool StatementRaiser::raisePair(StringRef to, StringRef from,
                                StringRef rounding, bool finite, bool relu,
                                const std::vector<PtxOperand> &o) {
  auto at = [&](unsigned i) { return number(b.getI32Type(), i); };
  MLIRContext *context = op.getContext();
  Type byte8 = to == "e4m3x2" || from == "e4m3x2"
                   ? Type(Float8E4M3FNType::get(context))
                   : Type(Float8E5M2Type::get(context));
  if (from == "e4m3x2" || from == "e5m2x2") {
    // Two of 8 bits into two of 16.
    Value x = o.size() == 2 ? get(o[1], integer(16)) : Value();
    if (!x || to != "f16x2" || rounding != "rn")
      return false;
    x = convert(x, VectorType::get({2}, integer(8)));
    return set(o[0], NVVM::ConvertF8x2ToF16x2Op::create(
                         b, loc, VectorType::get({2}, b.getF16Type()), x, relu,
                         byte8));
  }
  bool isByte = to == "e4m3x2" || to == "e5m2x2";
  Value high, low;
  if (from == "f32" && o.size() == 3) {
    high = get(o[1], b.getF32Type());
    low = get(o[2], b.getF32Type());
  } else if (isByte && from == "f16x2" && o.size() == 2) {
    Value both = get(o[1], floatOf("f16x2"));
    for (unsigned i = 0; both && i < 2; ++i)
      (i ? high : low) = LLVM::FPExtOp::create(
          b, loc, b.getF32Type(),
          LLVM::ExtractElementOp::create(b, loc, both, at(i)));
  }
  if (!high || !low)
    return false;
  if (isByte)
    return finite && rounding == "rn" && !relu &&
           set(o[0],
               NVVM::ConvertF32x2ToF8x2Op::create(
                   b, loc, integer(16), high, low, NVVM::FPRoundingMode::RN,
                   NVVM::SaturationMode::SATFINITE, relu, byte8));
  auto pair = dyn_cast_or_null<VectorType>(floatOf(to));
  if (!pair || finite || (rounding != "rn" && rounding != "rz"))
    return false;
  Value result = LLVM::PoisonOp::create(b, loc, pair);
  for (unsigned i = 0; i < 2; ++i) {
    Value x = i ? high : low;
    if (relu) {
      Value zero = LLVM::ZeroOp::create(b, loc, x.getType());
      x = LLVM::MaximumOp::create(b, loc, x, zero);
    }
    result = LLVM::InsertElementOp::create(
        b, loc, result,
        narrowed(b, loc, x, pair.getElementType(), rounding == "rz"), at(i));
  }
  return set(o[0], result);
}

Value StatementRaiser::roundedToInteger(Value x, StringRef rounding) {
  if (rounding == "rz")
    return LLVM::FTruncOp::create(b, loc, x);
  if (rounding == "rm")
    return LLVM::FFloorOp::create(b, loc, x);
  if (rounding == "rp")
    return LLVM::FCeilOp::create(b, loc, x);
  return LLVM::RoundEvenOp::create(b, loc, x);
}

// "cvt.rn.satfinite.e4m3x2.f32", "cvt.rzi.s32.f32", "cvt.u64.u32".
bool StatementRaiser::raiseConvert(StringRef opcode,
                                   const std::vector<PtxOperand> &o) {
  SmallVector<StringRef> words;
  opcode.split(words, '.');
  if (words.size() < 2)
    return false;
  StringRef to = words[words.size() - 2], from = words.back();
  NumberWords w;
  for (StringRef word : ArrayRef(words).drop_back(2))
    if (!readWord(word, w))
      return false;
  if (to.ends_with("x2") || from.ends_with("x2"))
    return raisePair(to, from, w.rounding, w.isFinite, w.relu, o);
  if (o.size() != 2 || w.relu || (w.isFinite && to != "tf32"))
    return false;
  if (to == "tf32" && from == "f32") {
    Value x = get(o[1], b.getF32Type());
    return x &&
           set(o[0], call("llvm.nvvm.f2tf32." + w.rounding, x, b.getI32Type()));
  }
  Type toFloat = floatOf(to), fromFloat = floatOf(from);
  auto toInt = parseType(to), fromInt = parseType(from);
  if (!(toFloat || toInt) || !(fromFloat || fromInt))
    return false;
  Value v = get(o[1], fromFloat ? fromFloat : integer(fromInt->bits));
  if (!v)
    return false;
  bool isSigned = fromInt && fromInt->kind == 's';
  if (!toFloat && !fromFloat) {
    if (w.saturates)
      return false;
    if (isSigned && toInt->bits > fromInt->bits)
      return set(o[0], LLVM::SExtOp::create(b, loc, integer(toInt->bits), v));
    return set(o[0], convert(v, integer(toInt->bits)));
  }
  if (toFloat && !fromFloat)
    return w.rounding == "rn" && !w.saturates &&
           set(o[0], isSigned
                         ? Value(LLVM::SIToFPOp::create(b, loc, toFloat, v))
                         : Value(LLVM::UIToFPOp::create(b, loc, toFloat, v)));
  if (!toFloat) {
    // What is too large becomes the largest number, as in PTX.
    if (v.getType().getIntOrFloatBitWidth() == 16)
      v = LLVM::FPExtOp::create(b, loc, b.getF32Type(), v);
    bool isDouble = v.getType().isF64(), wide = toInt->bits == 64;
    if (toInt->bits < 32 || !w.toInteger)
      return false;
    std::string name = isDouble ? "d2" : "f2";
    name += toInt->kind == 's' ? (wide ? "ll" : "i") : (wide ? "ull" : "ui");
    return set(o[0], call("llvm.nvvm." + name + "." + w.rounding, v,
                          integer(toInt->bits)));
  }
  unsigned has = fromFloat.getIntOrFloatBitWidth(),
           wants = toFloat.getIntOrFloatBitWidth();
  if (w.toInteger)
    v = roundedToInteger(v, w.rounding);
  else if (w.rounding != "rn" && !(w.rounding == "rz" && has == 32))
    return false;
  if (wants > has)
    v = LLVM::FPExtOp::create(b, loc, toFloat, v);
  else if (wants == 16 && has == 32)
    v = narrowed(b, loc, v, toFloat, w.rounding == "rz" && !w.toInteger);
  else if (wants < has)
    v = LLVM::FPTruncOp::create(b, loc, toFloat, v);
  else if (fromFloat != toFloat)
    return false;
  if (w.saturates && wants < 32)
    return false;
  if (w.saturates)
    v = call(wants == 64 ? "llvm.nvvm.saturate.d" : "llvm.nvvm.saturate.f", v,
             toFloat);
  return set(o[0], v);
}

//===----------------------------------------------------------------------===//
// Arithmetic of floats
//===----------------------------------------------------------------------===//

// fp32 and fp64 have intrinsics that round as their names say.
Value StatementRaiser::roundedCall(StringRef what, StringRef how, bool flushes,
                                   bool saturates, ArrayRef<Value> x) {
  std::string name = ("llvm.nvvm." + what + "." + how).str();
  if (flushes)
    name += ".ftz";
  if (saturates)
    name += ".sat";
  return call(name + (x[0].getType().isF64() ? ".d" : ".f"), x, x[0].getType());
}

bool StatementRaiser::raiseFloat(StringRef opcode,
                                 const std::vector<PtxOperand> &o) {
  SmallVector<StringRef> words;
  opcode.split(words, '.');
  Type type = floatOf(words.back());
  if (!type || words.size() < 2 || o.size() < 2)
    return false;
  StringRef what = words.front();
  SmallVector<Value> x;
  for (const PtxOperand &part : llvm::drop_begin(o)) {
    bool isPredicate = what == "selp" && x.size() == 2;
    x.push_back(get(part, isPredicate ? Type(b.getI1Type()) : type));
    if (!x.back())
      return false;
  }
  if (what == "setp") {
    auto predicate = ptxFloatPredicate(words[1]);
    bool plain = words.size() == 3 || (words.size() == 4 && words[2] == "ftz");
    return predicate && plain && x.size() == 2 && !isa<VectorType>(type) &&
           set(o[0], LLVM::FCmpOp::create(b, loc, *predicate, x[0], x[1]));
  }
  // 1 where it holds.
  if (what == "set" && words.size() == 4 && words[2] == words[3] &&
      x.size() == 2) {
    auto predicate = ptxFloatPredicate(words[1]);
    if (!predicate)
      return false;
    Type bit = b.getI1Type();
    if (auto vector = dyn_cast<VectorType>(type))
      bit = vector.clone(bit);
    Value holds = LLVM::FCmpOp::create(b, loc, bit, *predicate, x[0], x[1],
                                       LLVM::FastmathFlags::none);
    return set(o[0], LLVM::UIToFPOp::create(b, loc, type, holds));
  }
  if (what == "selp")
    return x.size() == 3 &&
           set(o[0], LLVM::SelectOp::create(b, loc, x[2], x[0], x[1]));
  NumberWords w;
  for (StringRef word : ArrayRef(words).drop_front().drop_back())
    if (!readWord(word, w))
      return false;
  bool wide = type.isF32() || type.isF64();
  auto count = [&](size_t n) { return x.size() == n; };
  if (w.isFinite || w.toInteger || (w.relu && wide))
    return false;
  // The dialect's own operations, of any type.
  Value r;
  if (what == "neg" && count(1)) {
    r = LLVM::FNegOp::create(b, loc, x[0]);
  } else if (what == "abs" && count(1)) {
    r = LLVM::FAbsOp::create(b, loc, x[0]);
  } else if ((what == "max" || what == "min") && count(2)) {
    bool larger = what == "max";
    r = w.propagates ? larger
                           ? Value(LLVM::MaximumOp::create(b, loc, x[0], x[1]))
                           : Value(LLVM::MinimumOp::create(b, loc, x[0], x[1]))
        : larger     ? Value(LLVM::MaxNumOp::create(b, loc, x[0], x[1]))
                     : Value(LLVM::MinNumOp::create(b, loc, x[0], x[1]));
  } else if (what == "copysign" && count(2)) {
    r = LLVM::CopySignOp::create(b, loc, x[1], x[0]);
  } else if (what == "tanh" && count(1)) {
    r = LLVM::TanhOp::create(b, loc, x[0]);
  } else if (wide) {
    if (what == "sub" && count(2)) {
      what = "add";
      x[1] = LLVM::FNegOp::create(b, loc, x[1]);
    }
    StringRef how = w.approximate ? StringRef("approx") : w.rounding;
    static constexpr StringRef one[] = {"sqrt", "rcp", "rsqrt", "sin",
                                        "cos",  "ex2", "lg2"},
                               two[] = {"add", "mul", "div"};
    bool fits = llvm::is_contained(one, what)   ? count(1)
                : llvm::is_contained(two, what) ? count(2)
                                                : what == "fma" && count(3);
    return fits && w.rounding != "rna" &&
           set(o[0], roundedCall(what, how, w.flushes, w.saturates, x));
  } else if (w.rounding != "rn") {
    return false;
  } else if (what == "add" && count(2)) {
    r = LLVM::FAddOp::create(b, loc, x[0], x[1]);
  } else if (what == "sub" && count(2)) {
    r = LLVM::FSubOp::create(b, loc, x[0], x[1]);
  } else if (what == "mul" && count(2)) {
    r = LLVM::FMulOp::create(b, loc, x[0], x[1]);
  } else if (what == "fma" && count(3)) {
    r = LLVM::FMAOp::create(b, loc, x[0], x[1], x[2]);
  } else if (what == "ex2" && count(1)) {
    r = LLVM::Exp2Op::create(b, loc, x[0]);
  }
  if (!r || w.saturates)
    return false;
  if (w.relu)
    r = LLVM::MaxNumOp::create(b, loc, r, LLVM::ZeroOp::create(b, loc, type));
  return set(o[0], r);
}

//===----------------------------------------------------------------------===//
// Arithmetic of integers
//===----------------------------------------------------------------------===//

// "lop3.b32 d, a, b, c, 0xE8": bit 4 a + 2 b + c of the number.
static Value chosenBits(OpBuilder &b, Location loc, ArrayRef<Value> x,
                        int64_t table) {
  Type word = b.getI32Type();
  auto number = [&](int64_t n) -> Value {
    return LLVM::ConstantOp::create(b, loc, word, b.getIntegerAttr(word, n));
  };
  Value result = number(0), ones = number(-1);
  for (unsigned row = 0; row < 8; ++row) {
    if (!(table >> row & 1))
      continue;
    Value all = ones;
    for (unsigned k = 0; k < 3; ++k) {
      Value v = x[k];
      if (!(row >> (2 - k) & 1))
        v = LLVM::XOrOp::create(b, loc, v, ones);
      all = LLVM::AndOp::create(b, loc, all, v);
    }
    result = LLVM::OrOp::create(b, loc, result, all);
  }
  return result;
}

// Instructions of words: shf, lop3, prmt, bfe, bfi.
bool StatementRaiser::raiseBits(StringRef opcode,
                                const std::vector<PtxOperand> &o) {
  Type word = b.getI32Type();
  auto [first, others] = opcode.split('.');
  if (!llvm::is_contained({"lop3", "prmt", "shf", "bfe", "bfi"}, first))
    return false;
  SmallVector<Value> x;
  for (const PtxOperand &part : llvm::drop_begin(o)) {
    x.push_back(get(part, word));
    if (!x.back())
      return false;
  }
  auto min = [&](Value v, int64_t most) -> Value {
    return LLVM::UMinOp::create(b, loc, v, number(word, most));
  };
  if (opcode == "lop3.b32" && x.size() == 4) {
    auto table = constant(o[4]);
    return table && set(o[0], chosenBits(b, loc, x, *table));
  }
  if (opcode == "prmt.b32" && x.size() == 3)
    return set(o[0], make("nvvm.prmt", x,
                          attr("mode", NVVM::PermuteModeAttr::get(
                                           op.getContext(),
                                           NVVM::PermuteMode::DEFAULT)),
                          word)
                         ->getResult(0));
  StringRef rest = opcode;
  if (rest.consume_front("shf.") && rest.consume_back(".b32") &&
      x.size() == 3) {
    // Of the 64 bits of the second and the first word, one half.
    auto [side, kind] = rest.split('.');
    bool left = side == "l";
    if ((!left && side != "r") || (kind != "wrap" && kind != "clamp"))
      return false;
    Value by = kind == "clamp"
                   ? min(x[2], 32)
                   : Value(LLVM::AndOp::create(b, loc, x[2], number(word, 31)));
    Type both = integer(64);
    Value high = LLVM::ShlOp::create(b, loc, convert(x[1], both),
                                     number(both, 32)),
          all = LLVM::OrOp::create(b, loc, high, convert(x[0], both)),
          wide = convert(by, both);
    Value shifted = left ? Value(LLVM::LShrOp::create(
                               b, loc, LLVM::ShlOp::create(b, loc, all, wide),
                               number(both, 32)))
                         : Value(LLVM::LShrOp::create(b, loc, all, wide));
    return set(o[0], convert(shifted, word));
  }
  // Fields: the place and the length are the lowest bytes.
  auto byteOf = [&](Value v) -> Value {
    return LLVM::AndOp::create(b, loc, v, number(word, 255));
  };
  Type both = integer(64);
  auto onesOf = [&](Value length) -> Value {
    Value one = number(both, 1);
    Value power =
        LLVM::ShlOp::create(b, loc, one, convert(min(length, 32), both));
    return LLVM::SubOp::create(b, loc, power, one);
  };
  if (opcode == "bfe.u32" && x.size() == 3) {
    Value at = convert(min(byteOf(x[1]), 63), both),
          all = LLVM::LShrOp::create(b, loc, convert(x[0], both), at);
    return set(
        o[0],
        convert(LLVM::AndOp::create(b, loc, all, onesOf(byteOf(x[2]))), word));
  }
  if (opcode == "bfi.b32" && x.size() == 4) {
    Value at = convert(min(byteOf(x[2]), 32), both);
    Value mask = LLVM::ShlOp::create(b, loc, onesOf(byteOf(x[3])), at),
          put = LLVM::ShlOp::create(b, loc, convert(x[0], both), at);
    put = LLVM::AndOp::create(b, loc, put, mask);
    Value kept = LLVM::AndOp::create(
        b, loc, convert(x[1], both),
        LLVM::XOrOp::create(b, loc, mask, number(both, -1)));
    return set(o[0], convert(LLVM::OrOp::create(b, loc, put, kept), word));
  }
  return false;
}

bool StatementRaiser::raiseCounts(StringRef head, const PtxType &type,
                                  const std::vector<PtxOperand> &o) {
  Type of = integer(type.bits), word = b.getI32Type();
  Value x = o.size() == 2 ? get(o[1], of) : Value();
  if (!x)
    return false;
  Value r;
  if (head == "popc")
    r = LLVM::CtPopOp::create(b, loc, x);
  else if (head == "clz")
    r = LLVM::CountLeadingZerosOp::create(b, loc, of, x, false);
  else if (head == "brev")
    return set(o[0], LLVM::BitReverseOp::create(b, loc, x));
  else if (head == "neg")
    return set(o[0], LLVM::SubOp::create(b, loc, number(of, 0), x));
  else if (head == "abs")
    return set(o[0], LLVM::AbsOp::create(b, loc, of, x, false));
  else if (head == "not")
    return set(o[0], LLVM::XOrOp::create(b, loc, x, number(of, -1)));
  return r && set(o[0], convert(r, word));
}

// "mad.wide.u32", "mul.hi.s32": the product in twice the width.
bool StatementRaiser::raiseWideProduct(StringRef head, const PtxType &type,
                                       const std::vector<PtxOperand> &o) {
  bool adds = head.consume_front("mad.");
  if ((!adds && !head.consume_front("mul.")) || o.size() != 3u + adds)
    return false;
  Type of = integer(type.bits);
  Value x = get(o[1], of), y = get(o[2], of);
  if (!x || !y)
    return false;
  bool isSigned = type.kind == 's', high = head == "hi";
  Value r;
  if (head == "lo") {
    r = LLVM::MulOp::create(b, loc, x, y);
  } else if ((head == "wide" || high) && type.bits <= 32) {
    Type twice = integer(2 * type.bits);
    auto extend = [&](Value v) -> Value {
      return isSigned ? Value(LLVM::SExtOp::create(b, loc, twice, v))
                      : Value(LLVM::ZExtOp::create(b, loc, twice, v));
    };
    r = LLVM::MulOp::create(b, loc, extend(x), extend(y));
    if (high)
      r = convert(LLVM::LShrOp::create(b, loc, r, number(twice, type.bits)),
                  of);
  } else if (high) {
    r = call(isSigned ? "llvm.nvvm.mulhi.ll" : "llvm.nvvm.mulhi.ull", {x, y},
             of);
  } else {
    return false;
  }
  if (adds) {
    Value z = get(o[3], r.getType());
    if (!z)
      return false;
    r = LLVM::AddOp::create(b, loc, r, z);
  }
  return set(o[0], r);
}
