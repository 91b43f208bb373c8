//===- DecodeIntrinsics.cpp - NVVM's intrinsics that no operation has -----===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Called by name: most of them are arithmetic that rounds as its name says,
// "fma.rm.ftz.f" (LLVM, "NVPTX User Guide").
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"
#include "HostMath.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <optional>

using namespace mlir;
using namespace kvbuf::emu;

static std::optional<unsigned> rounding(StringRef word) {
  return llvm::StringSwitch<std::optional<unsigned>>(word)
      .Case("rn", roundNearest)
      .Case("rm", roundDown)
      .Case("rp", roundUp)
      .Case("rz", roundZero)
      .Case("approx", roundNearest)
      .Case("full", roundNearest)
      .Default(std::nullopt);
}

// "<what>.<rounding>[.ftz][.sat]" of fp32 and fp64.
bool Decoder::decodeRounded(LLVM::CallIntrinsicOp op, StringRef name) {
  SmallVector<StringRef> words;
  name.split(words, '.');
  StringRef what = words.front();
  static constexpr StringRef known[] = {"add",  "mul", "div",   "fma",
                                        "sqrt", "rcp", "rsqrt", "sin",
                                        "cos",  "ex2", "lg2"};
  if (!llvm::is_contained(known, what) || op->getNumResults() != 1)
    return false;
  unsigned flags = 0;
  for (StringRef word : llvm::drop_begin(words)) {
    if (auto mode = rounding(word))
      flags |= *mode;
    else if (word == "ftz")
      flags |= flushDenormals;
    else if (word == "sat")
      flags |= saturate;
    else if (word != "f" && word != "d" && word != "f32" && word != "f64")
      return false;
  }
  Type type = op->getResult(0).getType();
  if (!type.isF32() && !type.isF64())
    return false;
  SmallVector<Comp> operands;
  for (Value v : op.getArgs())
    operands.push_back(getScalar(v));
  Comps results;
  std::string full = (what + (type.isF64() ? ".d" : ".f")).str();
  if (!laneCall(full, operands, results, flags))
    return false;
  set(op->getResult(0), results);
  return true;
}

LogicalResult Decoder::decodeNvvmIntrinsic(LLVM::CallIntrinsicOp op,
                                           bool &known) {
  known = true;
  StringRef full = op.getIntrin(), name = full;
  if (!name.consume_front("llvm.nvvm.")) {
    known = false;
    return success();
  }
  auto result = [&](Comp c) {
    set(op->getResult(0), {c});
    return success();
  };
  auto operand = [&](unsigned i) { return getScalar(op.getArgs()[i]); };
  auto call = [&](StringRef function, StringRef signature,
                  unsigned flags = 0) -> LogicalResult {
    if (!fits(op, full, signature))
      return failure();
    SmallVector<Comp> operands;
    for (Value v : op.getArgs())
      operands.push_back(getScalar(v));
    return result(laneCall(function, operands, flags));
  };
  // Overloaded intrinsics carry their pointers' spaces at the end.
  for (auto [front, back] = name.rsplit('.');
       back.size() > 1 && back.size() < 4 && back[0] == 'p' &&
       llvm::isDigit(back[1]);
       std::tie(front, back) = name.rsplit('.'))
    name = front;
  if (decodeRounded(op, name))
    return success();
  if (name.starts_with("wgmma."))
    return decodeWgmma(op, known);
  if (name.starts_with("mma.") || name.starts_with("wmma."))
    return decodeMatrixIntrinsic(op, name, known);
  if (name.starts_with("redux.sync.")) {
    auto kind = llvm::StringSwitch<std::optional<Redux>>(name.drop_front(11))
                    .Case("add", Redux::Add)
                    .Case("and", Redux::And)
                    .Case("or", Redux::Or)
                    .Case("xor", Redux::Xor)
                    .Case("min", Redux::SMin)
                    .Case("max", Redux::SMax)
                    .Case("umin", Redux::UMin)
                    .Case("umax", Redux::UMax)
                    .Case("fmin", Redux::FMin)
                    .Case("fmax", Redux::FMax)
                    .Default(std::nullopt);
    if (kind && fits(op, full, "w=wi"))
      return decodeRedux(op, *kind, op.getArgs()[0], op.getArgs()[1]);
    return kind ? failure() : unsupported(op, "intrinsic '" + full + "'");
  }
  if (name.starts_with("match.any.sync") || name.starts_with("match.all.sync"))
    return fits(op, full, "v=is")
               ? decodeMatch(op, name.starts_with("match.all"), op.getArgs()[1],
                             op.getArgs()[0])
               : failure();
  if (name.consume_front("barrier.cta.red.")) {
    auto [what, form] = name.split('.');
    auto kind = llvm::StringSwitch<Reduction>(what)
                    .Case("popc", Reduction::Count)
                    .Case("and", Reduction::All)
                    .Case("or", Reduction::Any)
                    .Default(Reduction::None);
    form.consume_front("aligned.");
    bool counts = form == "count";
    if (kind == Reduction::None || (!counts && form != "all"))
      return unsupported(op, "intrinsic '" + full + "'");
    std::string signature = kind == Reduction::Count ? "i=i" : "b=i";
    signature += counts ? "ib" : "b";
    if (!fits(op, full, signature))
      return failure();
    OperandRange args = op.getArgs();
    uint32_t id = getNarrow(args[0]).slot,
             threads = counts ? getNarrow(args[1]).slot : noSlot;
    return result(reduceAtBarrier(id, threads, getNarrow(args.back()), kind));
  }
  if (name == "activemask") {
    if (!fits(op, full, "i="))
      return failure();
    WarpOp w{};
    w.kind = WarpOpKind::ActiveMask;
    Comp mask = allocate(false);
    emitWarpOp(w, {mask});
    return result(mask);
  }
  struct Simple {
    StringRef function, signature;
    unsigned flags = 0;
  };
  auto simple =
      llvm::StringSwitch<std::optional<Simple>>(name)
          .Case("saturate.f", Simple{"saturatef", "f=f"})
          .Case("saturate.ftz.f", Simple{"saturatef", "f=f"})
          .Case("saturate.d", Simple{"saturate", "s=s"})
          .Cases({"ceil.f", "ceil.ftz.f"}, Simple{"ceilf", "f=f"})
          .Case("ceil.d", Simple{"ceil", "s=s"})
          .Cases({"floor.f", "floor.ftz.f"}, Simple{"floorf", "f=f"})
          .Case("floor.d", Simple{"floor", "s=s"})
          .Cases({"trunc.f", "trunc.ftz.f"}, Simple{"truncf", "f=f"})
          .Case("trunc.d", Simple{"trunc", "s=s"})
          .Cases({"round.f", "round.ftz.f"}, Simple{"rintf", "f=f"})
          .Case("round.d", Simple{"rint", "s=s"})
          .Cases({"fabs.f", "fabs.f32"}, Simple{"fabs.f", "f=f"})
          .Cases({"fabs.ftz.f", "fabs.ftz.f32", "fabs.ftz"},
                 Simple{"fabs.f", "f=f", flushDenormals})
          .Cases({"fabs.d", "fabs.f64"}, Simple{"fabs.d", "s=s"})
          .Cases({"fmax.f", "fmax.ftz.f"}, Simple{"fmaxf", "f=ff"})
          .Cases({"fmin.f", "fmin.ftz.f"}, Simple{"fminf", "f=ff"})
          .Case("fmax.d", Simple{"fmax", "s=ss"})
          .Case("fmin.d", Simple{"fmin", "s=ss"})
          .Case("mulhi.i", Simple{"mulhi", "i=ii"})
          .Case("mulhi.ui", Simple{"umulhi", "i=ii"})
          .Case("mulhi.ll", Simple{"mul64hi", "s=ss"})
          .Case("mulhi.ull", Simple{"umul64hi", "s=ss"})
          .Case("mul24.i", Simple{"mul24", "i=ii"})
          .Case("mul24.ui", Simple{"umul24", "i=ii"})
          .Case("fma.rn.f16", Simple{"fma.f16", "w=www"})
          .Case("fma.rn.bf16", Simple{"fma.bf16", "w=www"})
          .Cases({"f2h.rn", "f2h.rn.ftz"}, Simple{"f16.from.f32", "w=f"})
          .Case("idp4a.s.s", Simple{"dot4", "i=iii", 3})
          .Case("idp4a.s.u", Simple{"dot4", "i=iii", 1})
          .Case("idp4a.u.s", Simple{"dot4", "i=iii", 2})
          .Case("idp4a.u.u", Simple{"dot4", "i=iii", 0})
          .Case("f2tf32.rna", Simple{"tf32", "i=f", 4})
          .Case("f2tf32.rn", Simple{"tf32", "i=f", roundNearest})
          .Case("f2tf32.rz", Simple{"tf32", "i=f", roundZero})
          .Default(std::nullopt);
  if (simple)
    return call(simple->function, simple->signature, simple->flags);
  // Conversions: "f2i.rz[.ftz]", "i2d.rn".
  SmallVector<StringRef> words;
  name.split(words, '.');
  static constexpr StringRef conversions[] = {
      "f2i",  "f2ui", "f2ll",  "f2ull", "d2i",  "d2ui", "d2ll",  "d2ull", "i2f",
      "ui2f", "ll2f", "ull2f", "i2d",   "ui2d", "ll2d", "ull2d", "d2f"};
  if (words.size() >= 2 && llvm::is_contained(conversions, words[0]))
    if (auto mode = rounding(words[1])) {
      bool flush = words.size() > 2 && words[2] == "ftz";
      return call(words[0], "s=s", *mode | (flush ? flushDenormals : 0));
    }
  if (name == "d2i.lo" || name == "d2i.hi") {
    if (!fits(op, full, "i=s"))
      return failure();
    return result(emit(name == "d2i.lo" ? Code::Lo64 : Code::Hi64, false,
                       getWide(op.getArgs()[0])));
  }
  if (name == "lohi.i2d") {
    if (!fits(op, full, "s=ii"))
      return failure();
    return result(emit(Code::Pack64, true, operand(0), operand(1)));
  }
  if (name == "nanosleep" || name.starts_with("prefetch") ||
      name == "griddepcontrol.wait" ||
      name == "griddepcontrol.launch.dependents")
    return success();
  known = false;
  return success();
}
