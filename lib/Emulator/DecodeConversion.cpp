//===- DecodeConversion.cpp - Casts of the LLVM dialect -----------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"

using namespace mlir;
using namespace kvbuf::emu;

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
  // As the operations mean it: a part of it, more than it.
  if ((isa<LLVM::TruncOp, LLVM::FPTruncOp>(op) && to >= from) ||
      (isa<LLVM::ZExtOp, LLVM::SExtOp, LLVM::FPExtOp>(op) && to <= from))
    return false;
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
    if (elementOf(type).isF16() || elementOf(type).isBF16())
      return false;
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
  if (isBools(op.getArg().getType()) != isBools(op.getType())) {
    bool packs = isBools(op.getArg().getType());
    // The first element is the lowest bit of a word.
    auto word =
        dyn_cast<IntegerType>(packs ? op.getType() : op.getArg().getType());
    if (!word || word.getWidth() > 32 || (packs ? source : target).size() > 32)
      return unsupported(op, "vectors of i1 as integers");
    if (packs) {
      Comp all = constant(0);
      for (auto [i, bit] : llvm::enumerate(source))
        all = emitFree(Code::Or32, false, all,
                       emitFree(Code::Shl32, false,
                                emitFree(Code::AndImm32, false, bit, {}, {}, 1),
                                constant(i)));
      set(op.getResult(), {all});
      return broken ? failure() : success();
    }
    for (auto [i, bit] : llvm::enumerate(target))
      bit = emitFree(Code::AndImm32, false,
                     emitFree(Code::LShr32, false, source[0], constant(i)), {},
                     {}, 1);
    set(op.getResult(), target);
    return broken ? failure() : success();
  }
  // Both sides as a stream of words.
  Comps words;
  if (target.empty())
    return unsupported(op, "this cast");
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
    for (size_t i = 0; i + 1 < words.size(); i += 2)
      pairs.push_back(emitFree(Code::Pack64, true, words[i], words[i + 1]));
    words = pairs;
  }
  if (words.size() != target.size())
    return unsupported(op, "this cast");
  set(op.getResult(), words);
  return success();
}

// "cvt.scalef32.pk.fp8.f32" (CDNA4): of numbers over a scale, of which the
// exponent counts, or times it.
LogicalResult Decoder::decodeScaledFloat8(Operation *op, bool pair, bool to8,
                                          unsigned flags, int64_t place) {
  OperandRange in = op->getOperands();
  if (!pair || place > 1)
    return unsupported(op, "other than pairs");
  auto shifted = [&](Code code, Comp x, int64_t bits) {
    return emitFree(code, false, x, constant(bits));
  };
  Comp scale = emitFree(Code::And32, false, getNarrow(in[to8 ? 3 : 1]),
                        constant(0x7F800000));
  int64_t begin = 16 * place;
  Comps results;
  if (!to8) {
    for (int64_t i = 0; i < 2; ++i) {
      Comp byte =
          emitFree(Code::And32, false,
                   shifted(Code::LShr32, getNarrow(in[0]), begin + 8 * i),
                   constant(0xFF));
      results.push_back(emit(Code::MulF32, false,
                             laneCall("f32.from.f8", {byte}, flags), scale));
    }
    // To f16 or bf16 they are rounded once, as f32 holds the product.
    set(op->getResult(0), packFloats(results, op->getResult(0).getType()));
    return success();
  }
  flags |= clampsFloat8 ? 4 : 0;
  Comp bytes[2];
  for (unsigned i = 0; i < 2; ++i)
    bytes[i] = laneCall(
        "f8.from.f32", {emit(Code::DivF32, false, getNarrow(in[1 + i]), scale)},
        flags);
  Comp both =
      emitFree(Code::Or32, false, bytes[0], shifted(Code::Shl32, bytes[1], 8));
  Comps old = get(in[0]);
  if (old.size() != 1 || old[0].wide)
    return unsupported(op, "this type");
  Comp kept = emitFree(Code::And32, false, old[0],
                       constant(begin ? 0xFFFF : 0xFFFF0000u));
  set(op->getResult(0),
      {emitFree(Code::Or32, false, kept, shifted(Code::Shl32, both, begin))});
  return success();
}

namespace {
/// "pk.fp8.f32", "f32.bf8", "scalef32.pk.f32.fp8".
struct Float8Form {
  bool scaled, pair;
  /// What it converts to, if that is the narrow one.
  StringRef to8, format;
};
} // namespace

static std::optional<Float8Form> float8Form(StringRef name) {
  Float8Form form;
  form.scaled = name.consume_front("scalef32.");
  form.pair = name.consume_front("pk.");
  auto [first, second] = name.split('.');
  form.to8 = second == "f32" && form.pair ? first : "";
  form.format = form.to8;
  // Scaled pairs become f32, bf16 or f16.
  if (form.to8.empty() && (first == "f32" || (form.scaled && form.pair)))
    form.format = second;
  if (form.format != "fp8" && form.format != "bf8")
    return std::nullopt;
  return form;
}

bool kvbuf::emu::isAmdFloat8(StringRef name) {
  std::optional<Float8Form> form = float8Form(name);
  return form && (form->pair || !form->scaled);
}

LogicalResult Decoder::decodeAmdFloat8(Operation *op, StringRef name,
                                       bool &known) {
  StringRef rest = name;
  rest.consume_front("cvt.");
  std::optional<Float8Form> form = float8Form(rest);
  known = form.has_value();
  if (!known)
    return success();
  auto [scaled, pair, to8, format] = *form;
  if (program.chip.float8 == Float8::None)
    return unsupported(op, "8-bit floats on " + program.chip.describe() +
                               ", whose format is not known");
  unsigned flags =
      (format == "bf8" ? 2 : 0) | (program.chip.float8 == Float8::FNUZ ? 1 : 0);
  auto shifted = [&](Code code, Comp x, int64_t bits) {
    return emitFree(code, false, x, constant(bits));
  };
  StringRef which = pair ? "wordSel" : "byteSel";
  if (scaled)
    which = to8.empty() ? "srcLoHiSel" : "dstLoHiSel";
  std::optional<int64_t> place =
      immediate(op, which, (to8.empty() ? 1 : 3) + scaled);
  if (!place || op->getNumOperands() < (to8.empty() ? 1u : 3u))
    return unsupported(op, "a place that is no constant");
  if (scaled)
    return decodeScaledFloat8(op, pair, !to8.empty(), flags,
                              *place & (pair ? 1 : 3));
  int64_t begin = *place % 4 * (pair ? 16 : 8) % 32;
  if (!to8.empty()) {
    // Two numbers, rounded, into one half of a word.
    flags |= clampsFloat8 ? 4 : 0;
    Comp low = laneCall("f8.from.f32", {getNarrow(op->getOperand(0))}, flags),
         high = laneCall("f8.from.f32", {getNarrow(op->getOperand(1))}, flags);
    Comp both = emitFree(Code::Or32, false, low, shifted(Code::Shl32, high, 8));
    Comp old = emitFree(Code::And32, false, getNarrow(op->getOperand(2)),
                        constant(begin ? 0xFFFF : 0xFFFF0000u));
    set(op->getResult(0),
        {emitFree(Code::Or32, false, old, shifted(Code::Shl32, both, begin))});
    return success();
  }
  Comps numbers;
  for (int64_t i = 0; i < (pair ? 2 : 1); ++i) {
    Comp byte = emitFree(
        Code::And32, false,
        shifted(Code::LShr32, getNarrow(op->getOperand(0)), begin + 8 * i),
        constant(0xFF));
    numbers.push_back(laneCall("f32.from.f8", {byte}, flags));
  }
  set(op->getResult(0), numbers);
  return success();
}
