//===- DecodeAmdMatrix.cpp - WMMA, and MFMA of all types ------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// "wmma.f32.16x16x16.f16" and "mfma.i32.16x16x16i8": the names say the types
// and the shape, the operands' sizes whose layout it is.
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSwitch.h"

#include <optional>

using namespace mlir;
using namespace kvbuf::emu;

static std::optional<Element> elementNamed(StringRef name) {
  return llvm::StringSwitch<std::optional<Element>>(name)
      .Case("f16", Element::F16)
      .Case("bf16", Element::BF16)
      .Case("xf32", Element::TF32)
      .Case("f32", Element::F32)
      .Case("f64", Element::F64)
      .Cases({"i8", "iu8"}, Element::S8)
      .Case("iu4", Element::S4)
      .Case("i32", Element::S32)
      .Case("fp8", Element::E4M3)
      .Case("bf8", Element::E5M2)
      .Default(std::nullopt);
}

// "<m>x<n>x<k>", after which the rest of the text begins.
static bool readShape(StringRef &text, WarpOp &w) {
  return !text.consumeInteger(10, w.m) && text.consume_front("x") &&
         !text.consumeInteger(10, w.n) && text.consume_front("x") &&
         !text.consumeInteger(10, w.k) && w.m == w.n &&
         (w.m == 4 || w.m == 16 || w.m == 32) && w.k >= 1 && w.k <= 128;
}

// The operands' registers; those of 64 bits become two, unless they hold fp64.
Comps Decoder::registersOf(Value v, bool isDouble) {
  Comps parts;
  for (Comp c : get(v)) {
    if (c.wide && !isDouble) {
      parts.push_back(emitFree(Code::Lo64, false, c));
      parts.push_back(emitFree(Code::Hi64, false, c));
    } else {
      parts.push_back(c);
    }
  }
  return parts;
}

LogicalResult Decoder::decodeAmdProduct(Operation *op, WarpOp w, Value a,
                                        Value b, Value c,
                                        ArrayRef<Value> scales) {
  bool isDouble = w.c == Element::F64;
  Comps result = allocate(op->getResult(0).getType()),
        as = registersOf(a, isDouble), bs = registersOf(b, isDouble),
        cs = registersOf(c, isDouble);
  w.wideA = w.wideC = isDouble;
  auto uniform = [&](const Comps &parts) {
    return llvm::all_of(parts, [&](Comp p) { return p.wide == isDouble; });
  };
  if (result.size() != cs.size() || !uniform(result) || !uniform(as) ||
      !uniform(bs) || !uniform(cs) || as.size() != bs.size())
    return unsupported(op, "operands of these types");
  w.numD = cs.size();
  w.numA = as.size();
  w.numB = bs.size();
  unsigned lanes = program.chip.lanes, word = isDouble ? 64 : 32,
           held = w.numA * word / bitsOf(w.a);
  if (w.kind == WarpOpKind::AmdWmma) {
    // gfx11 holds each operand twice and gives 16-bit results a word each.
    unsigned all = w.m * w.k;
    if (held * 16 == all)
      w.layout = AmdLayout::Gfx11;
    else if (held * 32 == all)
      w.layout = AmdLayout::Gfx12;
    else
      return unsupported(op, "operands of these types");
    bool halves = w.layout == AmdLayout::Gfx11 && bitsOf(w.c) == 16;
    if (w.numD != (halves ? 8 : bitsOf(w.c) / 4))
      return unsupported(op, "a result of this type");
  } else {
    w.layout = AmdLayout::Mfma;
    if (w.numD * lanes % (w.m * w.m))
      return unsupported(op, "a result of this type");
    w.blocks = w.numD * lanes / (w.m * w.m);
    if (!w.blocks || held * lanes != w.m * w.k * w.blocks)
      return unsupported(op, "operands of these types");
  }
  Comps parts = result;
  llvm::append_range(parts, as);
  llvm::append_range(parts, bs);
  llvm::append_range(parts, cs);
  for (Value scale : scales)
    parts.push_back(getNarrow(scale));
  emitWarpOp(w, parts);
  set(op->getResult(0), result);
  return success();
}

// <result>.<shape>.<a>[.<b>]
static std::optional<WarpOp> wmmaNamed(StringRef name) {
  WarpOp w{};
  w.kind = WarpOpKind::AmdWmma;
  auto [resultName, rest] = name.split('.');
  auto c = elementNamed(resultName);
  if (!c || !readShape(rest, w) || !rest.consume_front("."))
    return std::nullopt;
  auto [first, more] = rest.split('.');
  auto a = elementNamed(first), b = elementNamed(more.split('.').first);
  if (!a || name.contains("tied") || w.m != 16)
    return std::nullopt;
  w.c = *c;
  w.a = *a;
  w.b = (*a == Element::E4M3 || *a == Element::E5M2) && b ? *b : *a;
  return w;
}

bool kvbuf::emu::isAmdWmma(StringRef name) {
  return wmmaNamed(name).has_value();
}

LogicalResult Decoder::decodeAmdWmma(Operation *op, StringRef name) {
  auto refuse = [&](const Twine &why) { return unsupported(op, why); };
  std::optional<WarpOp> named = wmmaNamed(name);
  if (!named)
    return refuse("'" + name + "'");
  if (program.chip.lanes != 32)
    return refuse("waves of 64 lanes");
  WarpOp w = *named;
  SmallVector<Value> operands(op->getOperands());
  auto attribute = [&](StringRef key) -> std::optional<bool> {
    if (auto attr = op->getAttrOfType<IntegerAttr>(key))
      return !attr.getValue().isZero();
    return std::nullopt;
  };
  if (isInteger(w.a)) {
    // sign of A, A, sign of B, B, C, clamp: operands, or attributes.
    std::optional<int64_t> signA, signB, clamp;
    if (operands.size() == 6) {
      signA = constantOf(operands[0]);
      signB = constantOf(operands[2]);
      clamp = constantOf(operands[5]);
      operands = {operands[1], operands[3], operands[4]};
    } else if (operands.size() == 3) {
      signA = attribute("signA").value_or(false);
      signB = attribute("signB").value_or(false);
      clamp = attribute("clamp").value_or(false);
    }
    if (!signA || !signB || !clamp)
      return refuse("signs that are no constants");
    auto signedAs = [](Element e, bool sign) {
      return sign ? e : e == Element::S8 ? Element::U8 : Element::U4;
    };
    w.b = signedAs(w.a, *signB & 1);
    w.a = signedAs(w.a, *signA & 1);
    w.c = Element::S32;
    w.saturates = *clamp & 1;
  } else if (operands.size() == 4) {
    auto high = constantOf(operands[3]);
    if (!high)
      return refuse("a half that is no constant");
    w.high = *high & 1;
    operands.pop_back();
  } else {
    w.high = attribute("opsel").value_or(false);
  }
  if (operands.size() != 3)
    return refuse("this number of operands");
  return decodeAmdProduct(op, w, operands[0], operands[1], operands[2]);
}

/// "scale.f32.16x16x128.f8f6f4"; as an intrinsic's, with the types of A and B,
/// which are 32 bytes where an element has 8 bits.
static bool scaledMfma(StringRef name, WarpOp &w) {
  return name.consume_front("scale.f32.") && readShape(name, w) &&
         name.consume_front(".f8f6f4") &&
         (name.empty() || name == ".v8i32.v8i32");
}

/// "f32.16x16x4f16", of one type of elements.
static std::optional<WarpOp> mfmaNamed(StringRef name) {
  WarpOp w{};
  w.kind = WarpOpKind::AmdMfmaAny;
  auto [resultName, rest] = name.split('.');
  auto c = elementNamed(resultName);
  if (!c || !readShape(rest, w))
    return std::nullopt;
  rest.consume_front(".");
  rest.consume_back(".1k");
  auto a = elementNamed(rest);
  // bf16 without "1k" has fewer elements, and 4x4 fp64 another layout.
  if (!a ||
      (*a == Element::BF16 && !name.ends_with(".1k") &&
       !name.contains(".bf16")) ||
      (*c == Element::F64 && w.m != 16))
    return std::nullopt;
  w.a = w.b = *a;
  w.c = *c;
  return w;
}

bool kvbuf::emu::isAmdMfma(StringRef name) {
  WarpOp w{};
  if (scaledMfma(name, w) || mfmaNamed(name))
    return true;
  // Two of the 8-bit floats.
  auto isByte = [](StringRef text) { return text == "fp8" || text == "bf8"; };
  return name.consume_front("f32.") && readShape(name, w) &&
         name.consume_front(".") && isByte(name.split('.').first) &&
         isByte(name.split('.').second);
}

LogicalResult Decoder::decodeAnyMfma(Operation *op, StringRef name) {
  auto refuse = [&] { return unsupported(op, "'mfma." + name + "'"); };
  WarpOp w{};
  w.kind = WarpOpKind::AmdMfmaAny;
  if (name.starts_with("scale.f32.")) {
    // A, B, C, the formats of A and B, and of each the byte of a word of
    // scales; formats 0 and 1 are fp8 and bf8.
    if (!scaledMfma(name, w) || program.chip.float8 != Float8::OCP ||
        op->getNumOperands() != 9)
      return refuse();
    auto formatAt = [&](unsigned i) -> std::optional<Element> {
      std::optional<int64_t> format = constantOf(op->getOperand(i));
      if (format != 0 && format != 1)
        return std::nullopt;
      return *format ? Element::E5M2 : Element::E4M3;
    };
    // Of A and B: which byte of the words that follow.
    auto byteAt = [&](unsigned i) -> std::optional<int64_t> {
      std::optional<int64_t> byte = constantOf(op->getOperand(i));
      return byte && *byte >= 0 && *byte < 4 ? byte : std::nullopt;
    };
    std::optional<Element> left = formatAt(3), right = formatAt(4);
    if (!left || !right)
      return unsupported(op, "formats other than fp8 and bf8");
    std::optional<int64_t> byteA = byteAt(5), byteB = byteAt(7);
    if (!byteA || !byteB)
      return unsupported(op, "a byte of scales that is no constant");
    w.a = *left;
    w.b = *right;
    w.c = Element::F32;
    SmallVector<Value> scales;
    auto isOne = [&](unsigned i) {
      return constantOf(op->getOperand(i)) == 0x7F7F7F7F;
    };
    if (!isOne(6) || !isOne(8)) {
      w.detail = mfmaScaled | *byteA << 1 | *byteB << 3;
      scales = {op->getOperand(6), op->getOperand(8)};
    }
    return decodeAmdProduct(op, w, op->getOperand(0), op->getOperand(1),
                            op->getOperand(2), scales);
  }
  std::optional<WarpOp> named = mfmaNamed(name);
  if (!named || program.chip.lanes != 64 || op->getNumOperands() < 3)
    return refuse();
  for (Value v : op->getOperands().drop_front(3))
    if (constantOf(v) != 0)
      return unsupported(op, "broadcasts and other modifiers");
  for (StringRef key : {"cbsz", "abid", "blgp"})
    if (auto attr = op->getAttrOfType<IntegerAttr>(key);
        attr && !attr.getValue().isZero())
      return unsupported(op, "broadcasts and other modifiers");
  return decodeAmdProduct(op, *named, op->getOperand(0), op->getOperand(1),
                          op->getOperand(2));
}
