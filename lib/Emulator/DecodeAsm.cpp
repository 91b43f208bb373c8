//===- DecodeAsm.cpp - Inline assembly without instructions, atomics ------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An empty template whose outputs are tied to inputs only pins values to where
// they are: LLVM moves nothing across it.
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"
#include "RaisePtx.h"

#include <algorithm>
#include <optional>

using namespace mlir;
using namespace kvbuf::emu;

LogicalResult Decoder::decodeAsm(LLVM::InlineAsmOp op) {
  StringRef text = op.getAsmString().trim();
  if (op.getNumResults() == 0 && decodeFenceText(text))
    return success();
  if (program.chip.isAMD && op.getNumResults() == 1 &&
      op.getNumOperands() == 1 &&
      (text == "v_mov_b32 $0, $1" || text == "v_mov_b32_e32 $0, $1")) {
    Comps moved = get(op->getOperand(0));
    if (moved.size() != 1 || moved.front().wide ||
        shape(op->getResult(0).getType()).size() != 1)
      return unsupported(op, "these types");
    set(op->getResult(0), moved);
    return success();
  }
  if (!text.empty() && (text.contains('\n') ||
                        !(text.starts_with(";") || text.starts_with("//")))) {
    std::string shown = text.take_front(80).str();
    std::replace_if(
        shown.begin(), shown.end(), [](char c) { return c < ' '; }, ' ');
    shown = "the template '" + shown + (text.size() > 80 ? "...'" : "'");
    StringRef statement = unknownStatement(text);
    if (!statement.empty() && !program.chip.isAMD)
      shown = "the statement '" + statement.str() + "' of " + shown;
    return unsupported(op, shown);
  }
  SmallVector<StringRef> constraints;
  op.getConstraints().split(constraints, ',', -1, /*KeepEmpty=*/false);
  size_t outputs = 0, inputs = 0;
  SmallVector<Comps> tied;
  for (StringRef c : constraints) {
    if (c.starts_with("~"))
      continue;
    if (c.consume_front("=")) {
      ++outputs;
      tied.emplace_back();
      continue;
    }
    unsigned output;
    if (inputs >= op.getOperands().size())
      return unsupported(op, "these constraints");
    Value v = op.getOperands()[inputs++];
    if (!c.getAsInteger(10, output) && output < outputs)
      tied[output] = get(v);
  }
  Comps results;
  for (const Comps &comps : tied) {
    if (comps.empty())
      return unsupported(op, "an output that is tied to no input");
    llvm::append_range(results, comps);
  }
  if (op.getNumResults() == 0)
    return success();
  if (results.size() != shape(op->getResult(0).getType()).size())
    return unsupported(op, "these constraints");
  set(op->getResult(0), results);
  return success();
}

static std::optional<AtomicKind> atomicKind(LLVM::AtomicBinOp op) {
  switch (op) {
  case LLVM::AtomicBinOp::xchg:
    return AtomicKind::Exchange;
  case LLVM::AtomicBinOp::add:
    return AtomicKind::Add;
  case LLVM::AtomicBinOp::sub:
    return AtomicKind::Sub;
  case LLVM::AtomicBinOp::_and:
    return AtomicKind::And;
  case LLVM::AtomicBinOp::_or:
    return AtomicKind::Or;
  case LLVM::AtomicBinOp::_xor:
    return AtomicKind::Xor;
  case LLVM::AtomicBinOp::max:
    return AtomicKind::SMax;
  case LLVM::AtomicBinOp::min:
    return AtomicKind::SMin;
  case LLVM::AtomicBinOp::umax:
    return AtomicKind::UMax;
  case LLVM::AtomicBinOp::umin:
    return AtomicKind::UMin;
  case LLVM::AtomicBinOp::uinc_wrap:
    return AtomicKind::Wrap;
  case LLVM::AtomicBinOp::udec_wrap:
    return AtomicKind::WrapDown;
  case LLVM::AtomicBinOp::usub_cond:
    return AtomicKind::SubIf;
  case LLVM::AtomicBinOp::usub_sat:
    return AtomicKind::SubSaturating;
  case LLVM::AtomicBinOp::nand:
    return AtomicKind::Nand;
  case LLVM::AtomicBinOp::fadd:
    return AtomicKind::FAdd;
  case LLVM::AtomicBinOp::fsub:
    return AtomicKind::FSub;
  case LLVM::AtomicBinOp::fmax:
    return AtomicKind::FMax;
  case LLVM::AtomicBinOp::fmin:
    return AtomicKind::FMin;
  case LLVM::AtomicBinOp::fmaximum:
    return AtomicKind::FMaximum;
  case LLVM::AtomicBinOp::fminimum:
    return AtomicKind::FMinimum;
  default:
    return std::nullopt;
  }
}

LogicalResult Decoder::decodeAtomic(LLVM::AtomicRMWOp op) {
  auto pointer = dyn_cast<LLVM::LLVMPointerType>(op.getPtr().getType());
  if (!pointer)
    return unsupported(op, "vectors of addresses");
  unsigned space = pointer.getAddressSpace();
  std::optional<AtomicKind> kind = atomicKind(op.getBinOp());
  Type type = op.getType(), element = elementOf(type);
  // Vectors of 16-bit floats lie in one word or two.
  Comps parts = shape(type);
  unsigned bits = bitsOf(element);
  if (auto vector = dyn_cast<VectorType>(type))
    bits *= vector.getNumElements();
  bool isFloat = isa<FloatType>(element),
       fits = parts.size() == 1 &&
              (bits == 8 || bits == 16 || bits == 32 || bits == 64) &&
              (!isa<VectorType>(type) || bitsOf(element) == 16);
  if (kind && *kind >= AtomicKind::FAdd)
    fits &= isFloat;
  else if (kind != AtomicKind::Exchange)
    fits &= isa<IntegerType>(type);
  if ((space != 0 && space != 1 && space != 3) || !kind || !fits)
    return unsupported(op, "'" + stringifyAtomicBinOp(op.getBinOp()) + "' of " +
                               describe(type));
  uint8_t order;
  Scope scope;
  if (failed(decodeOrder(op, op.getOrdering(), op.getSyncscope(),
                         /*isVolatile=*/false, /*isInvariant=*/false, order,
                         scope)))
    return failure();
  Comp operand = getScalar(op.getVal()), result = allocate(bits == 64);
  auto [base, offset] = getAddress(op.getPtr());
  Inst &inst = emit(space == 3 ? Code::AtomicShared : Code::AtomicGlobal);
  inst.dst = result.slot;
  inst.a = base.slot;
  inst.b = operand.slot;
  inst.offset = offset;
  inst.imm = bits / 8;
  inst.align = bits / 8;
  inst.flags = static_cast<uint8_t>(*kind) | (*kind < AtomicKind::FAdd ? 0
                                              : element.isF16()  ? atomicF16
                                              : element.isBF16() ? atomicBF16
                                                                 : 0);
  inst.order = order;
  inst.scope = scope;
  inst.stat = program.numStats++;
  set(op.getRes(), {result});
  return success();
}
