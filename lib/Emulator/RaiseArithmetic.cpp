//===- RaiseArithmetic.cpp - Arithmetic written as PTX --------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Straight lines of integer arithmetic with carries, comparisons with a choice,
// and rounded differences (PTX ISA, "Integer Arithmetic Instructions" and on):
// what libdevice's functions hold as inline assembly, for wide products and for
// f64. They become operations of the LLVM dialect.
//
//===----------------------------------------------------------------------===//

#include "PtxText.h"
#include "RaisePtx.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace kvbuf::emu;

std::optional<LLVM::FCmpPredicate>
kvbuf::emu::ptxFloatPredicate(StringRef name) {
  using P = LLVM::FCmpPredicate;
  return llvm::StringSwitch<std::optional<P>>(name)
      .Case("eq", P::oeq)
      .Case("ne", P::one)
      .Case("lt", P::olt)
      .Case("le", P::ole)
      .Case("gt", P::ogt)
      .Case("ge", P::oge)
      .Case("equ", P::ueq)
      .Case("neu", P::une)
      .Case("ltu", P::ult)
      .Case("leu", P::ule)
      .Case("gtu", P::ugt)
      .Case("geu", P::uge)
      .Case("num", P::ord)
      .Case("nan", P::uno)
      .Default(std::nullopt);
}

namespace {

class ArithmeticRaiser {
public:
  ArithmeticRaiser(LLVM::InlineAsmOp op, ArrayRef<Value> numbered)
      : op(op), loc(op.getLoc()), b(op), numbered(numbered) {}

  Operation *run(ArrayRef<PtxInstruction> instructions);

private:
  bool raise(const PtxInstruction &inst);
  bool raiseMove(const std::vector<PtxOperand> &o);
  bool raiseInteger(StringRef opcode, const std::vector<PtxOperand> &o);
  bool raiseCompare(StringRef opcode, const std::vector<PtxOperand> &o);
  bool raiseFloat(StringRef opcode, const std::vector<PtxOperand> &o);

  /// The value of an operand; null if it has none, or one of another type.
  Value get(const PtxOperand &o, Type type) {
    Value v;
    int64_t n;
    if (o.kind == PtxOperand::Number)
      v = o.number < numbered.size() ? numbered[o.number] : Value();
    else if (o.kind == PtxOperand::Word && !o.word.getAsInteger(0, n) &&
             isa<IntegerType>(type))
      v = number(type, n);
    else if (o.kind == PtxOperand::Word)
      v = names.lookup(o.word);
    return v && v.getType() == type ? v : Value();
  }
  bool set(const PtxOperand &o, Value v) {
    if (o.kind == PtxOperand::Word)
      names[o.word] = v;
    else if (o.kind == PtxOperand::Number && o.number < numbered.size())
      numbered[o.number] = v;
    else
      return false;
    return true;
  }
  Value number(Type type, int64_t n) {
    return LLVM::ConstantOp::create(b, loc, type, b.getIntegerAttr(type, n));
  }
  Value wide(Value v) {
    return LLVM::ZExtOp::create(b, loc, b.getI64Type(), v);
  }
  Value low(Value v) {
    return LLVM::TruncOp::create(b, loc, b.getI32Type(), v);
  }
  Value upper(Value v) {
    return LLVM::LShrOp::create(b, loc, v, number(b.getI64Type(), 32));
  }
  Value intrinsic(const Twine &name, ArrayRef<Value> operands) {
    return LLVM::CallIntrinsicOp::create(b, loc, operands[0].getType(),
                                         b.getStringAttr(name), operands)
        .getResult(0);
  }

  LLVM::InlineAsmOp op;
  Location loc;
  OpBuilder b;
  /// Outputs, null until they are set, and inputs: "$3".
  SmallVector<Value> numbered;
  llvm::StringMap<Value> names;
  /// The condition code's carry or borrow, an i1.
  Value carry;
};

} // namespace

bool ArithmeticRaiser::raiseMove(const std::vector<PtxOperand> &o) {
  Type i32 = b.getI32Type(), i64 = b.getI64Type();
  if (o.size() != 2)
    return false;
  if (o[0].kind == PtxOperand::List) {
    Value v = get(o[1], i64);
    return v && o[0].parts.size() == 2 && set(o[0].parts[0], low(v)) &&
           set(o[0].parts[1], low(upper(v)));
  }
  if (o[1].kind != PtxOperand::List || o[1].parts.size() != 2)
    return false;
  Value x = get(o[1].parts[0], i32), y = get(o[1].parts[1], i32);
  if (!x || !y)
    return false;
  Value high = LLVM::ShlOp::create(b, loc, wide(y), number(i64, 32));
  return set(o[0], LLVM::OrOp::create(b, loc, wide(x), high));
}

// "madc.hi.cc.u32": what, with the carry or not, which half of a product,
// whether the carry is set.
bool ArithmeticRaiser::raiseInteger(StringRef opcode,
                                    const std::vector<PtxOperand> &o) {
  if (!opcode.consume_back(".u32"))
    return false;
  bool sets = opcode.consume_back(".cc"), high = opcode.consume_back(".hi"),
       half = high || opcode.consume_back(".lo");
  bool product = opcode == "mul" || opcode == "mad" || opcode == "madc",
       takes = opcode == "madc" || opcode == "addc" || opcode == "subc",
       minus = opcode == "sub" || opcode == "subc";
  if (product != half ||
      !(product || minus || opcode == "add" || opcode == "addc") ||
      o.size() != (product && opcode != "mul" ? 4u : 3u) || (takes && !carry))
    return false;
  Type i32 = b.getI32Type();
  Value x = get(o[1], i32), y = get(o[2], i32);
  if (!x || !y)
    return false;
  if (product) {
    Value p = LLVM::MulOp::create(b, loc, wide(x), wide(y));
    x = high ? low(upper(p)) : low(p);
    if (opcode == "mul")
      return set(o[0], x);
    y = get(o[3], i32);
    if (!y)
      return false;
  }
  // In 64 bits bit 32 is the carry, or the borrow.
  Value r = minus ? Value(LLVM::SubOp::create(b, loc, wide(x), wide(y)))
                  : Value(LLVM::AddOp::create(b, loc, wide(x), wide(y)));
  if (takes)
    r = minus ? Value(LLVM::SubOp::create(b, loc, r, wide(carry)))
              : Value(LLVM::AddOp::create(b, loc, r, wide(carry)));
  if (sets)
    carry = LLVM::TruncOp::create(b, loc, b.getI1Type(), upper(r));
  return set(o[0], low(r));
}

bool ArithmeticRaiser::raiseCompare(StringRef opcode,
                                    const std::vector<PtxOperand> &o) {
  SmallVector<StringRef> words;
  opcode.split(words, '.');
  std::optional<LLVM::FCmpPredicate> predicate =
      ptxFloatPredicate(words.size() == 3 ? words[1] : StringRef());
  if (!predicate || o.size() != 3 || (words[2] != "f32" && words[2] != "f64"))
    return false;
  Type type = words[2] == "f32" ? Type(b.getF32Type()) : Type(b.getF64Type());
  Value x = get(o[1], type), y = get(o[2], type);
  return x && y &&
         set(o[0], LLVM::FCmpOp::create(b, loc, b.getI1Type(), *predicate, x, y,
                                        LLVM::FastmathFlags::none));
}

bool ArithmeticRaiser::raiseFloat(StringRef opcode,
                                  const std::vector<PtxOperand> &o) {
  bool isDouble = opcode.consume_back(".f64");
  if (!isDouble && !opcode.consume_back(".f32"))
    return false;
  Type type = isDouble ? Type(b.getF64Type()) : Type(b.getF32Type());
  StringRef suffix = isDouble ? ".d" : ".f";
  if (opcode == "selp") {
    if (o.size() != 4)
      return false;
    Value x = get(o[1], type), y = get(o[2], type),
          p = get(o[3], b.getI1Type());
    return x && y && p && set(o[0], LLVM::SelectOp::create(b, loc, p, x, y));
  }
  if (opcode == "rsqrt.approx.ftz" && o.size() == 2) {
    Value x = get(o[1], type);
    return x && set(o[0], intrinsic("llvm.nvvm." + opcode + suffix, {x}));
  }
  // "sub.rz.ftz": the sum with the other sign.
  if (!opcode.consume_front("sub.") || o.size() != 3)
    return false;
  Value x = get(o[1], type), y = get(o[2], type);
  if (!x || !y)
    return false;
  Value minus = LLVM::FNegOp::create(b, loc, y);
  return set(o[0], intrinsic("llvm.nvvm.add." + opcode + suffix, {x, minus}));
}

bool ArithmeticRaiser::raise(const PtxInstruction &inst) {
  if (inst.predicate || !inst.predicateName.empty())
    return false;
  const std::vector<PtxOperand> &o = inst.operands;
  if (inst.opcode == "mov.b64")
    return raiseMove(o);
  if (inst.opcode.starts_with("setp."))
    return raiseCompare(inst.opcode, o);
  if (inst.opcode == "bfind.shiftamt.u32" && o.size() == 2) {
    Type i32 = b.getI32Type();
    Value x = get(o[1], i32);
    if (!x)
      return false;
    Value zeros = LLVM::CountLeadingZerosOp::create(b, loc, i32, x,
                                                    /*is_zero_poison=*/false);
    Value none = LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::eq, x,
                                      number(i32, 0));
    return set(o[0],
               LLVM::SelectOp::create(b, loc, none, number(i32, -1), zeros));
  }
  return raiseInteger(inst.opcode, o) || raiseFloat(inst.opcode, o);
}

Operation *ArithmeticRaiser::run(ArrayRef<PtxInstruction> instructions) {
  if (op.getNumResults() != 1)
    return nullptr;
  for (const PtxInstruction &inst : instructions)
    if (!raise(inst))
      return nullptr;
  Type type = op->getResult(0).getType();
  auto record = dyn_cast<LLVM::LLVMStructType>(type);
  if (!record)
    return !numbered.empty() && numbered[0] && numbered[0].getType() == type
               ? numbered[0].getDefiningOp()
               : nullptr;
  Value result = LLVM::PoisonOp::create(b, loc, type);
  for (auto [i, part] : llvm::enumerate(record.getBody())) {
    if (i >= numbered.size() || !numbered[i] || numbered[i].getType() != part)
      return nullptr;
    result = LLVM::InsertValueOp::create(b, loc, result, numbered[i],
                                         ArrayRef<int64_t>{int64_t(i)});
  }
  return result.getDefiningOp();
}

Operation *kvbuf::emu::raiseArithmetic(LLVM::InlineAsmOp op,
                                       ArrayRef<PtxInstruction> instructions,
                                       ArrayRef<Value> numbered) {
  return ArithmeticRaiser(op, numbered).run(instructions);
}
