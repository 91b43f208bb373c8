//===- DecodeROCDL.cpp - Operations of the ROCDL dialect ------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The dialect has an operation for most of LLVM's intrinsics for AMD's GPUs,
// under the same name; the others are called by `llvm.call_intrinsic`. Both
// are decoded here by that name.
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "llvm/ADT/StringSwitch.h"

#include <optional>

using namespace mlir;
using namespace kvbuf::emu;

// More operations than a counter holds: no wait.
constexpr int64_t noWait = int64_t(1) << 30;

static std::optional<Special> amdRegister(StringRef name) {
  return llvm::StringSwitch<std::optional<Special>>(name)
      .Case("workitem.id.x", Special::TidX)
      .Case("workitem.id.y", Special::TidY)
      .Case("workitem.id.z", Special::TidZ)
      .Case("workgroup.id.x", Special::CtaX)
      .Case("workgroup.id.y", Special::CtaY)
      .Case("workgroup.id.z", Special::CtaZ)
      .Case("workgroup.dim.x", Special::NTidX)
      .Case("workgroup.dim.y", Special::NTidY)
      .Case("workgroup.dim.z", Special::NTidZ)
      .Case("grid.dim.x", Special::NCtaX)
      .Case("grid.dim.y", Special::NCtaY)
      .Case("grid.dim.z", Special::NCtaZ)
      .Default(std::nullopt);
}

std::optional<int64_t> kvbuf::emu::immediate(Operation *op, StringRef attribute,
                                             unsigned operand) {
  if (auto attr = op->getAttrOfType<IntegerAttr>(attribute))
    return attr.getValue().zextOrTrunc(64).getZExtValue();
  APInt value;
  if (operand < op->getNumOperands() &&
      matchPattern(op->getOperand(operand), m_ConstantInt(&value)))
    return value.zextOrTrunc(64).getZExtValue();
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

LogicalResult
Decoder::decodeLaneMap(Operation *op, Value old, Value source, bool zero,
                       llvm::function_ref<uint32_t(uint32_t)> map) {
  uint32_t table = program.lists.size();
  for (uint32_t l = 0; l < 64; ++l)
    program.lists.push_back(map(l));
  auto move = [&](Comp kept, Comp from) {
    Comp c = emit(Code::AmdLaneMap, false, from, kept);
    Inst &inst = code[current].back();
    inst.list = table;
    inst.listSize = 64;
    inst.flags = zero;
    return c;
  };
  Comps from = get(source), kept = old ? get(old) : from, result;
  for (auto [k, s] : llvm::zip_equal(kept, from)) {
    if (!s.wide) {
      result.push_back(move(k, s));
      continue;
    }
    Comp lo =
        move(emitFree(Code::Lo64, false, k), emitFree(Code::Lo64, false, s));
    Comp hi =
        move(emitFree(Code::Hi64, false, k), emitFree(Code::Hi64, false, s));
    result.push_back(emitFree(Code::Pack64, true, lo, hi));
  }
  set(op->getResult(0), result);
  return success();
}

// The lane that a lane reads under a DPP control (CDNA3 ISA, "DPP_CTRL
// enumerants"); nothing where there is none.
static std::optional<uint32_t> dppSource(uint32_t control, uint32_t lane) {
  uint32_t row = lane & 0x30, place = lane & 15, n = control & 15;
  if (control <= 0xFF)
    return (lane & ~3u) | (control >> (2 * (lane & 3)) & 3);
  switch (control & 0x1F0) {
  case 0x100: // row_shl
    return place + n <= 15 ? std::optional(lane + n) : std::nullopt;
  case 0x110: // row_shr
    return place >= n ? std::optional(lane - n) : std::nullopt;
  case 0x120: // row_ror
    return row | ((place - n) & 15);
  case 0x150: // row_newbcast, row_share
    return row | n;
  case 0x160: // row_xmask (RDNA)
    return row | (place ^ n);
  default:
    break;
  }
  switch (control) {
  case 0x130: // wave_shl:1
    return lane < 63 ? std::optional(lane + 1) : std::nullopt;
  case 0x134: // wave_rol:1
    return (lane + 1) & 63;
  case 0x138: // wave_shr:1
    return lane ? std::optional(lane - 1) : std::nullopt;
  case 0x13C: // wave_ror:1
    return (lane - 1) & 63;
  case 0x140: // row_mirror
    return row | (15 - place);
  case 0x141: // row_half_mirror
    return (lane & ~7u) | (7 - (lane & 7));
  case 0x142: // row_bcast:15
    return lane > 15 ? std::optional(row - 1) : std::nullopt;
  case 0x143: // row_bcast:31
    return lane > 31 ? std::optional(31u) : std::nullopt;
  default:
    return std::nullopt;
  }
}

static bool isDppControl(uint32_t control) {
  if (control <= 0xFF || (control >= 0x150 && control <= 0x16F))
    return true;
  if (control >= 0x101 && control <= 0x12F)
    return control & 15;
  return llvm::is_contained(
      {0x130u, 0x134u, 0x138u, 0x13Cu, 0x140u, 0x141u, 0x142u, 0x143u},
      control);
}

LogicalResult Decoder::decodeDPP(Operation *op, Value old, Value source,
                                 uint32_t control, uint32_t rows,
                                 uint32_t banks, bool zero) {
  if (!isDppControl(control))
    return unsupported(op, "DPP control " + Twine(control));
  return decodeLaneMap(op, old, source, zero, [&](uint32_t lane) -> uint32_t {
    if (!(rows >> (lane >> 4) & 1) || !(banks >> (lane >> 2 & 3) & 1))
      return keepLane;
    return dppSource(control, lane).value_or(zero ? zeroLane : keepLane);
  });
}

// RDNA3 ISA, V_PERMLANE16_B32 and V_PERMLANEX16_B32: the lane of the own row of
// 16, or of the other one of two, that four bits for each lane name.
LogicalResult Decoder::decodePermLane16(Operation *op, bool other) {
  std::optional<int64_t> low = immediate(op, "", 2),
                         high = immediate(op, "", 3),
                         bound = immediate(op, "", 5);
  if (!low || !high || !bound)
    return unsupported(op, "other than constant lanes");
  uint64_t lanes = static_cast<uint32_t>(*low) | static_cast<uint64_t>(*high)
                                                     << 32;
  return decodeLaneMap(op, op->getOperand(0), op->getOperand(1), *bound != 0,
                       [&](uint32_t lane) -> uint32_t {
                         uint32_t row = (lane & ~15u) ^ (other ? 16 : 0);
                         return row | (lanes >> (4 * (lane & 15)) & 15);
                       });
}

LogicalResult Decoder::decodeSwizzle(Operation *op) {
  std::optional<int64_t> offset = immediate(op, "", 1);
  if (!offset || *offset < 0 || *offset >= 0xC000)
    return unsupported(op, "other than a constant pattern of masks or quads");
  return decodeLaneMap(op, Value(), op->getOperand(0), /*zero=*/true,
                       [&](uint32_t lane) -> uint32_t {
                         uint32_t o = *offset;
                         if (o & 0x8000)
                           return (lane & ~3u) | (o >> (2 * (lane & 3)) & 3);
                         return (lane & 32) |
                                ((((lane & 31) & o) | (o >> 5 & 31)) ^
                                 (o >> 10 & 31));
                       });
}

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

LogicalResult Decoder::decodeMfma(Operation *op, StringRef shape) {
  struct Form {
    int64_t m, k;
    uint8_t elements;
  };
  auto float8 = [](bool leftBF8, bool rightBF8) -> uint8_t {
    return mfmaFloat8 | (leftBF8 ? mfmaLeftBF8 : 0) |
           (rightBF8 ? mfmaRightBF8 : 0);
  };
  auto form = llvm::StringSwitch<std::optional<Form>>(shape)
                  .Case("f32.32x32x8f16", Form{32, 8, 0})
                  .Case("f32.16x16x16f16", Form{16, 16, 0})
                  .Case("f32.32x32x8bf16.1k", Form{32, 8, mfmaBF16})
                  .Case("f32.16x16x16bf16.1k", Form{16, 16, mfmaBF16})
                  .Case("f32.32x32x16.f16", Form{32, 16, 0})
                  .Case("f32.16x16x32.f16", Form{16, 32, 0})
                  .Case("f32.32x32x16.bf16", Form{32, 16, mfmaBF16})
                  .Case("f32.16x16x32.bf16", Form{16, 32, mfmaBF16})
                  .Case("f32.32x32x16.fp8.fp8", Form{32, 16, float8(0, 0)})
                  .Case("f32.32x32x16.fp8.bf8", Form{32, 16, float8(0, 1)})
                  .Case("f32.32x32x16.bf8.fp8", Form{32, 16, float8(1, 0)})
                  .Case("f32.32x32x16.bf8.bf8", Form{32, 16, float8(1, 1)})
                  .Case("f32.16x16x32.fp8.fp8", Form{16, 32, float8(0, 0)})
                  .Case("f32.16x16x32.fp8.bf8", Form{16, 32, float8(0, 1)})
                  .Case("f32.16x16x32.bf8.fp8", Form{16, 32, float8(1, 0)})
                  .Case("f32.16x16x32.bf8.bf8", Form{16, 32, float8(1, 1)})
                  .Default(std::nullopt);
  if (!form)
    return decodeAnyMfma(op, shape);
  if (program.chip.lanes != 64)
    return unsupported(op, "waves of 32 lanes");
  auto [m, k, elements] = *form;
  bool is8Bit = elements & mfmaFloat8;
  const auto &shapes = program.chip.matrixShapes;
  auto covers = [&, m = m, k = k](const std::vector<int64_t> &s) {
    return s[0] == m && s[1] == m && s[2] >= k;
  };
  if (is8Bit && program.chip.float8 == Float8::None)
    return unsupported(op, "8-bit floats on " + program.chip.describe() +
                               ", whose format is not known");
  if (!is8Bit && !shapes.empty() && llvm::none_of(shapes, covers))
    return unsupported(op, program.chip.describe() + " has no MFMA of shape " +
                               Twine(m) + "x" + Twine(m) + "x" + Twine(k));
  for (unsigned i = 3; i < op->getNumOperands(); ++i)
    if (immediate(op, "", i) != 0)
      return unsupported(op, "broadcasts and other modifiers");
  Comps parts = allocate(op->getResult(0).getType()), result = parts;
  for (unsigned i = 0; i < 3; ++i)
    for (Comp part : get(op->getOperand(i))) {
      // Operands of 8-bit floats are numbers of 64 bits.
      if (part.wide) {
        parts.push_back(emitFree(Code::Lo64, false, part));
        part = emitFree(Code::Hi64, false, part);
      }
      parts.push_back(part);
    }
  // C and D, then a half or a quarter of a word an element of A and B.
  int64_t perWord = is8Bit ? 4 : 2;
  if (parts.size() !=
          static_cast<size_t>(2 * (m * m / 64) + 2 * m * k / 64 / perWord) ||
      result.size() != static_cast<size_t>(m * m / 64))
    return unsupported(op, "operands of these types");
  if (llvm::any_of(result, [](Comp c) { return c.wide; }))
    return unsupported(op, "results of this type");
  Inst &inst = emit(Code::AmdMfma);
  inst.imm = m << 16 | k;
  inst.flags = elements;
  if (program.chip.float8 == Float8::FNUZ)
    inst.flags |= mfmaFNUZ;
  list(inst, parts);
  set(op->getResult(0), result);
  return success();
}

//===----------------------------------------------------------------------===//
// All operations
//===----------------------------------------------------------------------===//

// What the intrinsic of a name takes and gives (see Decoder::fits). Those of
// the dialect's operations are the same, where attributes stand for constants.
static StringRef signatureOf(StringRef name) {
  if (amdRegister(name))
    return "s=";
  if (name.starts_with("mfma."))
    return "v=vvv*";
  return llvm::StringSwitch<StringRef>(name)
      .Case("wavefrontsize", "i=")
      .Cases({"s.barrier", "barrier"}, "=")
      .Case("readfirstlane", "x=x")
      .Case("readlane", "x=xi")
      .Cases({"ds.bpermute", "ds.permute"}, "w=iw")
      .Case("ds.swizzle", "w=wi")
      .Case("update.dpp", "x=xx*")
      .Case("mov.dpp", "x=x*")
      .Cases({"permlane16", "permlanex16"}, "x=xxii*")
      .Cases({"permlane16.swap", "permlane32.swap"}, "v=ww*")
      .Case("ballot", "s=b")
      .Cases({"mbcnt.lo", "mbcnt.hi"}, "i=ii")
      .Case("perm", "i=iii")
      .Cases({"fdot2", "fdot2.f32.bf16"}, "f=wwf*")
      .Case("cvt.pkrtz", "w=ff")
      .Default("");
}

// "AMD Instinct CDNA4 ISA", "MODE register": bits 0-3 round, 4-7 keep
// denormals, 8 clamps quietly, 23 lets conversions overflow to the largest
// number.
LogicalResult Decoder::decodeSetRegister(Operation *op) {
  std::optional<int64_t> place = immediate(op, "", 0),
                         value = immediate(op, "", 1);
  if (!place || !value)
    return unsupported(op, "a value that is no constant");
  int64_t number = *place & 63, begin = *place >> 6 & 31,
          bits = (*place >> 11 & 31) + 1;
  // To the nearest, with denormals, is how everything here is computed.
  if (number == 1 && begin + bits <= 8) {
    int64_t field = 0xF0 >> begin & ((int64_t(1) << bits) - 1);
    if (*value == field)
      return success();
  }
  if (number == 1 && begin == 23 && bits == 1) {
    clampsFloat8 = *value & 1;
    return success();
  }
  return unsupported(op, "bits " + Twine(begin) + " to " +
                             Twine(begin + bits - 1) + " of register " +
                             Twine(number));
}

LogicalResult Decoder::decodeAmdgcn(Operation *op, StringRef name,
                                    bool &known) {
  known = true;
  if (StringRef signature = signatureOf(name);
      !signature.empty() && !fits(op, name, signature))
    return failure();
  auto wait = [&](int64_t vector, int64_t lds) {
    Inst &inst = emit(Code::AmdWait);
    inst.imm = vector;
    inst.offset = lds;
  };
  auto operand = [&](unsigned i) { return getNarrow(op->getOperand(i)); };
  auto result = [&](Comp c) {
    set(op->getResult(0), {c});
    return success();
  };
  if (std::optional<Special> special = amdRegister(name)) {
    Comp c{program.specials[static_cast<unsigned>(*special)]};
    if (bitsOf(op->getResult(0).getType()) == 64)
      c = emitFree(Code::ZExt64, true, c);
    return result(c);
  }
  if (name == "permlane16" || name == "permlanex16")
    return decodePermLane16(op, name == "permlanex16");
  if (name == "wavefrontsize")
    return result(constant(program.chip.lanes));
  if (name == "implicitarg.ptr")
    return result(hidden(Hidden::Arguments));
  if (name == "dispatch.ptr")
    return result(hidden(Hidden::Packet));
  if (name == "s.setreg")
    return decodeSetRegister(op);

  // What only guides the scheduler.
  if (llvm::is_contained({"sched.barrier", "sched.group.barrier", "iglp.opt",
                          "s.setprio", "s.nop", "s.sleep", "wave.barrier"},
                         name))
    return success();

  if (name.starts_with("cvt.")) {
    if (failed(decodeAmdFloat8(op, name, known)))
      return failure();
    if (known)
      return success();
    known = true;
  }

  // Waits and barriers.
  if (name == "s.waitcnt") {
    std::optional<int64_t> bits = immediate(op, "bitfield", 0);
    if (!bits)
      return unsupported(op, "a bit field that is no constant");
    // gfx9: vmcnt in bits 0-3 and 14-15, lgkmcnt in bits 8-11; all ones do
    // not wait.
    int64_t vector = (*bits & 15) | (*bits >> 14 & 3) << 4,
            lds = *bits >> 8 & 15;
    wait(vector == 63 ? noWait : vector, lds == 15 ? noWait : lds);
    return success();
  }
  // Groups of copies (LLVM 23): a mark ends one.
  if (name == "asyncmark" || name == "wait.asyncmark") {
    std::optional<int64_t> n = name == "asyncmark" ? -1 : immediate(op, "", 0);
    if (!n || (name != "asyncmark" && *n < 0))
      return unsupported(op, "a number that is no constant");
    emit(Code::AmdMark).imm = *n;
    return success();
  }
  // gfx12 has a barrier in two halves, and counters of their own.
  if (name == "s.barrier.signal")
    return success();
  if (name == "s.barrier.wait") {
    emit(Code::Barrier);
    return success();
  }
  if (name.starts_with("s.wait.")) {
    std::optional<int64_t> n = immediate(op, "count", 0);
    if (!n || *n < 0)
      return unsupported(op, "a count that is no constant");
    bool lds = name == "s.wait.dscnt", both = name.contains(".dscnt");
    if (name == "s.wait.asynccnt" || (both && !lds))
      return unsupported(op);
    if (name == "s.wait.tensorcnt") {
      emit(Code::AmdTensorWait).imm = *n;
      return success();
    }
    wait(lds ? noWait : *n, lds ? *n : noWait);
    return success();
  }
  if (name == "s.barrier") {
    emit(Code::Barrier);
    return success();
  }
  // With a fence on each side, for which LLVM waits for everything.
  if (name == "barrier") {
    wait(0, 0);
    emit(Code::Barrier);
    return success();
  }

  // Lanes.
  if (name == "readfirstlane" || name == "readlane") {
    Comp lane = name == "readlane" ? operand(1) : Comp{};
    Comps results;
    for (Comp c : get(op->getOperand(0))) {
      results.push_back(emit(Code::AmdReadLane, c.wide, c, lane));
      code[current].back().flags = c.wide;
    }
    set(op->getResult(0), results);
    return success();
  }
  if (name == "ds.bpermute" || name == "ds.permute") {
    Comp c = emit(Code::AmdBpermute, false, operand(0), operand(1));
    code[current].back().flags = name == "ds.permute";
    code[current].back().stat = program.numStats++;
    return result(c);
  }
  if (name == "ds.swizzle")
    return decodeSwizzle(op);
  if (name == "update.dpp" || name == "mov.dpp") {
    bool update = name == "update.dpp";
    unsigned first = update ? 2 : 1;
    auto control = immediate(op, "dppCtrl", first),
         rows = immediate(op, "rowMask", first + 1),
         banks = immediate(op, "bankMask", first + 2),
         zero = immediate(op, "boundCtrl", first + 3);
    if (!control || !rows || !banks || !zero)
      return unsupported(op, "controls that are no constants");
    return decodeDPP(op, update ? op->getOperand(0) : Value(),
                     op->getOperand(first - 1), *control, *rows, *banks, *zero);
  }
  if (name == "permlane16.swap" || name == "permlane32.swap") {
    if (!program.chip.hasTransposeReads || program.chip.lanes != 64)
      return unsupported(op,
                         program.chip.describe() + " has no swaps of lanes");
    Comp a = operand(0), b = operand(1);
    Comps results = allocate(op->getResult(0).getType());
    if (results.size() != 2)
      return unsupported(op, "this result type");
    Inst &inst = emit(Code::AmdSwap);
    inst.a = a.slot;
    inst.b = b.slot;
    inst.imm = name == "permlane16.swap" ? 16 : 32;
    list(inst, results);
    set(op->getResult(0), results);
    return success();
  }
  if (name == "ballot") {
    Comp c = emit(Code::AmdBallot, true, operand(0));
    return result(bitsOf(op->getResult(0).getType()) == 64
                      ? c
                      : emitFree(Code::Lo64, false, c));
  }
  if (name == "mbcnt.lo" || name == "mbcnt.hi")
    return result(emit(name == "mbcnt.lo" ? Code::AmdMbcntLo : Code::AmdMbcntHi,
                       false, operand(0), operand(1)));

  // Arithmetic.
  if (name == "perm")
    return result(
        emit(Code::AmdPerm, false, operand(0), operand(1), operand(2)));
  if (name == "fdot2" || name == "fdot2.f32.bf16") {
    if (immediate(op, "", 3) != 0)
      return unsupported(op, "clamped results");
    return result(emit(name == "fdot2" ? Code::AmdDot2F16 : Code::AmdDot2BF16,
                       false, operand(0), operand(1), operand(2)));
  }
  if (name == "cvt.pkrtz")
    return result(emit(Code::AmdPackF16Rtz, false, operand(0), operand(1)));
  auto math = llvm::StringSwitch<std::optional<Code>>(name)
                  .Case("exp2", Code::Exp2FtzF32)
                  .Case("log", Code::Log2FtzF32)
                  .Case("rcp", Code::RcpFtzF32)
                  .Case("rsq", Code::RsqrtF32)
                  .Case("sqrt", Code::SqrtF32)
                  .Default(std::nullopt);
  // Of other types they are not known.
  auto isF32 = [&] {
    return llvm::all_of(op->getResultTypes(), [](Type t) { return t.isF32(); });
  };
  if (math && isF32())
    return fits(op, name, "f=f") ? result(emit(*math, false, operand(0)))
                                 : failure();
  if (name == "fmed3" && isF32()) {
    if (!fits(op, name, "f=fff"))
      return failure();
    Comp a = operand(0), b = operand(1), c = operand(2);
    Comp low = emitFree(Code::MinNumF32, false, a, b),
         high = emitFree(Code::MaxNumF32, false, a, b);
    high = emitFree(Code::MinNumF32, false, high, c);
    return result(emit(Code::MaxNumF32, false, low, high));
  }
  if (name.consume_front("mfma."))
    return decodeMfma(op, name);
  if (name.consume_front("wmma."))
    return decodeAmdWmma(op, name);
  known = false;
  return success();
}

LogicalResult Decoder::decodeROCDL(Operation *op, bool &known) {
  known = true;
  if (isa<NVVM::NVVMDialect>(op->getDialect()))
    return unsupported(op, "in a kernel for AMD's GPUs");
  if (isa<gpu::BarrierOp>(op))
    return decodeAmdgcn(op, "barrier", known);
  if (auto fence = dyn_cast<LLVM::FenceOp>(op)) {
    // LLVM waits for all of a wave's memory operations, copies into LDS
    // among them, unless the fence is for the wave alone.
    StringRef scope = fence.getSyncscope().value_or("");
    if (scope != "singlethread" && scope != "wavefront") {
      Inst &inst = emit(Code::AmdWait);
      inst.imm = inst.offset = 0;
    }
    return decodeFence(fence);
  }
  if (auto call = dyn_cast<LLVM::CallIntrinsicOp>(op)) {
    StringRef name = call.getIntrin();
    if (name.consume_front("llvm.amdgcn.")) {
      if (failed(decodeAmdgcn(op, name, known)))
        return failure();
      // Overloaded intrinsics carry their types at the end.
      for (auto [front, back] = name.rsplit('.'); !known && !back.empty();
           std::tie(front, back) = front.rsplit('.'))
        if (failed(decodeAmdgcn(op, front, known)))
          return failure();
      if (!known)
        return unsupported(op, "intrinsic '" + call.getIntrin() + "'");
      return success();
    }
  }
  if (failed(decodeBuffers(op, known)))
    return failure();
  if (known)
    return success();
  if (!isa<ROCDL::ROCDLDialect>(op->getDialect()))
    return success();
  std::string name = op->getName().stripDialect().str();
  for (StringRef prefix : {"ds_bpermute", "ds_swizzle"})
    if (name == prefix)
      name[2] = '.';
  if (failed(decodeAmdgcn(op, name, known)))
    return failure();
  return known ? success() : unsupported(op);
}
