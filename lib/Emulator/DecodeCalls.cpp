//===- DecodeCalls.cpp - Functions of the device libraries ----------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions without a body: messages, assertions, sizes. Their names are all
// that says what they do; DecodeLibrary.cpp has those of numbers.
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"
#include "HostMath.h"
#include "Print.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace kvbuf::emu;

bool Decoder::laneCall(StringRef name, ArrayRef<Comp> operands, Comps &results,
                       unsigned flags) {
  int number = findLaneFunction(name.data(), name.size());
  if (number < 0)
    return false;
  auto [outs, ins] = StringRef(laneFunctions()[number].signature).split('=');
  if (ins.size() != operands.size())
    return false;
  for (auto [letter, c] : llvm::zip_equal(ins, operands))
    if (c.wide != (letter == 'w'))
      return false;
  results.clear();
  for (char letter : outs)
    results.push_back(allocate(letter == 'w'));
  Comps all = results;
  llvm::append_range(all, operands);
  Inst &inst = emit(Code::LaneCall);
  inst.imm = number;
  inst.flags = flags;
  list(inst, all);
  return true;
}

Comp Decoder::laneCall(StringRef name, ArrayRef<Comp> operands,
                       unsigned flags) {
  Comps results;
  if (laneCall(name, operands, results, flags))
    return results.front();
  fail("the emulator lacks '" + name + "' for these types");
  return constant(0);
}

// Applies a function of numbers to each element. 16-bit floats are computed in
// fp32 and rounded once more.
bool Decoder::elementwise(Operation *op, StringRef name, unsigned flags) {
  if (op->getNumResults() != 1)
    return false;
  SmallVector<Comps> parts;
  for (Value v : op->getOperands())
    parts.push_back(unpackFloats(v));
  Type type = op->getResult(0).getType();
  Type element = elementOf(type);
  bool isDouble = element.isF64();
  // Names of fp32's functions end in f, as in C.
  std::string full = name.str();
  if (!isDouble)
    full += name.contains('.') ? "" : "f";
  size_t n = parts.empty() ? 0 : parts.front().size();
  Comps results;
  for (size_t i = 0; i < n; ++i) {
    SmallVector<Comp> operands;
    for (const Comps &p : parts) {
      // A scalar beside vectors (the exponent of powi).
      if (p.size() != n && p.size() != 1)
        return false;
      operands.push_back(p[p.size() == 1 ? 0 : i]);
    }
    Comps out;
    if (!laneCall(full, operands, out, flags))
      return false;
    results.push_back(out.front());
  }
  set(op->getResult(0), packFloats(results, type));
  return true;
}

/// Functions that do more than to result in numbers.
static constexpr StringRef hostCalls[] = {"vprintf",
                                          "printf",
                                          "__assertfail",
                                          "__ockl_printf_begin",
                                          "__ockl_fprintf_stdout_begin",
                                          "__ockl_fprintf_stderr_begin",
                                          "__ockl_printf_append_string_n",
                                          "__ockl_fprintf_append_string_n",
                                          "__ockl_printf_append_args",
                                          "__ockl_fprintf_append_args",
                                          "__ockl_get_local_size",
                                          "__ockl_get_num_groups",
                                          "__ockl_get_global_size",
                                          "__ockl_get_local_id",
                                          "__ockl_get_group_id",
                                          "__nvvm_reflect"};

std::vector<std::string> kvbuf::emu::libraryFunctions() {
  std::vector<std::string> names(std::begin(hostCalls), std::end(hostCalls));
  addNumberFunctions(names);
  return names;
}

LogicalResult Decoder::decodeExternalCall(LLVM::CallOp op, StringRef name,
                                          bool &known) {
  known = llvm::is_contained(hostCalls, name);
  if (!known)
    return decodeNumberCall(op, name, known);
  auto signature = [&](StringRef text) { return fits(op, name, text); };
  auto print = [&](PrintKind kind, ArrayRef<Comp> parts, bool wideResult,
                   int64_t imm = 0) {
    Comp dst;
    if (op->getNumResults())
      dst = allocate(wideResult);
    Inst &inst = emit(Code::Print);
    inst.flags = static_cast<uint8_t>(kind);
    inst.dst = dst.slot;
    inst.imm = imm;
    list(inst, parts);
    if (op->getNumResults())
      set(op->getResult(0), {dst});
    return success();
  };
  // A generic address of anything.
  auto address = [&](Value v) {
    Comp c = getScalar(v);
    auto pointer = dyn_cast<LLVM::LLVMPointerType>(v.getType());
    if (c.wide || !pointer)
      return c.wide ? c : emitFree(Code::ZExt64, true, c);
    unsigned space = pointer.getAddressSpace() == 5 ? 5 : 3;
    return emitFree(Code::ToGeneric, true, c, {}, {}, space);
  };
  if (name == "vprintf") {
    if (!signature("i=ss"))
      return failure();
    return print(PrintKind::Vprintf,
                 {address(op->getOperand(0)), address(op->getOperand(1))},
                 false);
  }
  if (name == "printf" && op->getNumOperands() >= 1 &&
      op->getNumOperands() <= 60) {
    Comps parts = {address(op->getOperand(0))};
    int64_t wide = 1;
    for (Value v : llvm::drop_begin(op->getOperands())) {
      Comp c =
          isa<LLVM::LLVMPointerType>(v.getType()) ? address(v) : getScalar(v);
      wide |= int64_t(c.wide) << parts.size();
      parts.push_back(c);
    }
    return print(PrintKind::Printf, parts, false, wide);
  }
  if (name == "__assertfail") {
    if (!signature("=sswss"))
      return failure();
    Comps parts = {address(op->getOperand(0)), address(op->getOperand(1)),
                   getNarrow(op->getOperand(2)), address(op->getOperand(3))};
    (void)print(PrintKind::AssertFail, parts, false);
    // The threads end here, whatever follows in the text, and not as those do
    // that return (computeJoins).
    emit(Code::Return).flags = 1;
    current = newBlock();
    return success();
  }
  if (name == "__ockl_printf_begin" || name == "__ockl_fprintf_stdout_begin" ||
      name == "__ockl_fprintf_stderr_begin")
    return print(PrintKind::OcklBegin, {}, true, name.contains("stderr"));
  if (name == "__ockl_printf_append_string_n" ||
      name == "__ockl_fprintf_append_string_n") {
    if (!signature("s=ssss"))
      return failure();
    return print(PrintKind::OcklString,
                 {address(op->getOperand(1)), getWide(op->getOperand(2)),
                  getNarrow(op->getOperand(3))},
                 true);
  }
  if (name == "__ockl_printf_append_args" ||
      name == "__ockl_fprintf_append_args") {
    if (!signature("s=swssssssss"))
      return failure();
    APInt n;
    if (!matchPattern(op->getOperand(1), m_ConstantInt(&n)) || n.ugt(7))
      return unsupported(op, "a number of arguments that is no constant up to "
                             "7");
    Comps parts = {getNarrow(op->getOperand(9))};
    for (unsigned k = 0; k < n.getZExtValue(); ++k)
      parts.push_back(getWide(op->getOperand(2 + k)));
    return print(PrintKind::OcklNumbers, parts, true);
  }
  // The size of a block, of the grid (threads), or how many blocks there are.
  auto size = [&](Special first, bool threads) -> LogicalResult {
    APInt d;
    if (!signature("s=w") ||
        !matchPattern(op->getOperand(0), m_ConstantInt(&d)) || d.ugt(2))
      return unsupported(op, "a dimension that is no constant from 0 to 2");
    auto special = [&](Special s) {
      return Comp{
          program.specials[static_cast<unsigned>(s) + d.getZExtValue()]};
    };
    Comp c = special(first);
    if (threads)
      c = emit(Code::Mul32, false, c, special(Special::NCtaX));
    if (bitsOf(op->getResult(0).getType()) == 64)
      c = emitFree(Code::ZExt64, true, c);
    set(op->getResult(0), {c});
    return success();
  };
  if (name == "__ockl_get_local_size")
    return size(Special::NTidX, false);
  if (name == "__ockl_get_num_groups")
    return size(Special::NCtaX, false);
  if (name == "__ockl_get_global_size")
    return size(Special::NTidX, true);
  if (name == "__ockl_get_local_id")
    return size(Special::TidX, false);
  if (name == "__ockl_get_group_id")
    return size(Special::CtaX, false);
  if (name == "__nvvm_reflect") {
    // Of "__CUDA_FTZ" and "__CUDA_ARCH": nothing is flushed.
    set(op->getResult(0), {constant(0)});
    return success();
  }
  known = false;
  return success();
}
