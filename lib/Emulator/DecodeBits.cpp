//===- DecodeBits.cpp - Integer functions that depend on the width --------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reversals, counts of zeros, and sums, differences and products that overflow
// or saturate, of integers of any width up to 64 bits. Elements narrower than a
// word lie in its low bits, with zeros above.
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"

#include <functional>

using namespace mlir;
using namespace kvbuf::emu;

/// Code for elements of one width.
struct Decoder::Bits {
  Decoder &d;
  unsigned bits;
  bool wide = bits > 32;
  /// Bits of the word that holds an element.
  unsigned word = wide ? 64 : 32;

  Comp emit(Code op32, Code op64, Comp a, Comp b) {
    return d.emit(wide ? op64 : op32, wide, a, b);
  }
  Comp test(Code op32, Code op64, Comp a, Comp b) {
    return d.emit(wide ? op64 : op32, false, a, b);
  }
  Comp number(uint64_t value) { return d.constant(value, wide); }
  Comp amount(unsigned value) { return d.constant(value, wide); }
  uint64_t mask() {
    return bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1;
  }
  Comp cut(Comp x) {
    return bits == word ? x : emit(Code::And32, Code::And64, x, number(mask()));
  }
  /// With copies of the sign above an element.
  Comp extended(Comp x) {
    if (bits == word)
      return x;
    Comp n = amount(word - bits);
    return emit(Code::AShr32, Code::AShr64,
                emit(Code::Shl32, Code::Shl64, x, n), n);
  }
  Comp call(StringRef narrow, StringRef wideName, ArrayRef<Comp> operands) {
    return d.laneCall(wide ? wideName : narrow, operands);
  }
  Comp down(Comp x) {
    return bits == word
               ? x
               : emit(Code::LShr32, Code::LShr64, x, amount(word - bits));
  }
  Comp choose(Comp c, Comp x, Comp y) {
    return d.emit(wide ? Code::Select64 : Code::Select32, wide, c, x, y);
  }
  Comp isNegative(Comp x) {
    return test(Code::CmpSlt32, Code::CmpSlt64, x, number(0));
  }
  Comp bitXor(Comp x, Comp y) { return emit(Code::Xor32, Code::Xor64, x, y); }
  Comp bitAnd(Comp x, Comp y) { return emit(Code::And32, Code::And64, x, y); }

  struct Result {
    Comp value, overflows;
  };
  enum Kind { Add, Sub, Mul };

  /// The low bits of an operation's result, and whether those are not all.
  Result compute(Kind kind, bool isSigned, Comp a, Comp b) {
    if (isSigned) {
      a = extended(a);
      b = extended(b);
    }
    Comp r = kind == Add   ? emit(Code::Add32, Code::Add64, a, b)
             : kind == Sub ? emit(Code::Sub32, Code::Sub64, a, b)
                           : emit(Code::Mul32, Code::Mul64, a, b);
    // A narrow result fits into the word, unless it is a product.
    if (bits < word && (kind != Mul || 2 * bits <= word)) {
      Comp low = isSigned ? extended(r) : cut(r);
      return {cut(r), test(Code::CmpNe32, Code::CmpNe64, low, r)};
    }
    switch (kind) {
    case Add:
      if (!isSigned)
        return {r, test(Code::CmpUlt32, Code::CmpUlt64, r, a)};
      return {r, isNegative(bitAnd(bitXor(a, r), bitXor(b, r)))};
    case Sub:
      if (!isSigned)
        return {r, test(Code::CmpUlt32, Code::CmpUlt64, a, b)};
      return {r, isNegative(bitAnd(bitXor(a, b), bitXor(a, r)))};
    case Mul:
      Comp high = isSigned ? call("mulhi", "mul64hi", {a, b})
                           : call("umulhi", "umul64hi", {a, b});
      Comp expected =
          isSigned ? emit(Code::AShr32, Code::AShr64, r, amount(word - 1))
                   : number(0);
      Comp more = test(Code::CmpNe32, Code::CmpNe64, high, expected);
      if (bits == word)
        return {r, more};
      Comp low = isSigned ? extended(r) : cut(r);
      return {cut(r), d.emit(Code::Or32, false, more,
                             test(Code::CmpNe32, Code::CmpNe64, low, r))};
    }
    llvm_unreachable("an unknown operation");
  }

  Comp saturated(Kind kind, bool isSigned, Comp a, Comp b) {
    Result r = compute(kind, isSigned, a, b);
    uint64_t most = mask() >> (isSigned ? 1 : 0);
    Comp limit = number(isSigned || kind == Add ? most : 0);
    if (isSigned)
      limit = choose(isNegative(extended(a)), number(most + 1), limit);
    return choose(r.overflows, limit, r.value);
  }
};

bool Decoder::decodeBits(Operation *op) {
  if (op->getNumResults() != 1 || op->getNumOperands() < 1)
    return false;
  Type type = op->getOperand(0).getType();
  if (!isa<IntegerType>(elementOf(type)))
    return false;
  unsigned bits = bitsOf(elementOf(type));
  if (bits == 0 || bits > 64)
    return false;
  Bits b{*this, bits};
  auto each = [&](std::function<Comp(Comp, Comp)> make) {
    Comps x = unpack(op->getOperand(0)), y = x, results;
    if (op->getNumOperands() > 1)
      y = unpack(op->getOperand(1));
    if (!alike(x, y))
      return false;
    for (auto [p, q] : llvm::zip_equal(x, y))
      results.push_back(make(p, q));
    set(op->getResult(0), pack(results, type));
    return true;
  };
  if (isa<LLVM::BitReverseOp>(op))
    return each(
        [&](Comp x, Comp) { return b.down(b.call("brev", "brevll", {x})); });
  if (isa<LLVM::ByteSwapOp>(op))
    return each(
        [&](Comp x, Comp) { return b.down(b.call("bswap", "bswapll", {x})); });
  if (bits != b.word && isa<LLVM::CountLeadingZerosOp>(op)) {
    Comps x = unpack(op->getOperand(0)), results;
    for (Comp c : x)
      results.push_back(
          b.emit(Code::Sub32, Code::Sub64,
                 emit(b.wide ? Code::Ctlz64 : Code::Ctlz32, b.wide, c),
                 b.number(b.word - bits)));
    set(op->getResult(0), pack(results, type));
    return true;
  }
  if (bits != b.word && isa<LLVM::CountTrailingZerosOp>(op)) {
    Comps x = unpack(op->getOperand(0)), results;
    for (Comp c : x)
      results.push_back(emit(
          b.wide ? Code::Cttz64 : Code::Cttz32, b.wide,
          b.emit(Code::Or32, Code::Or64, c, b.number(uint64_t(1) << bits))));
    set(op->getResult(0), pack(results, type));
    return true;
  }
  if (isa<LLVM::SAddSat>(op))
    return each(
        [&](Comp x, Comp y) { return b.saturated(Bits::Add, true, x, y); });
  if (isa<LLVM::UAddSat>(op))
    return each(
        [&](Comp x, Comp y) { return b.saturated(Bits::Add, false, x, y); });
  if (isa<LLVM::SSubSat>(op))
    return each(
        [&](Comp x, Comp y) { return b.saturated(Bits::Sub, true, x, y); });

  struct Overflow {
    Bits::Kind kind;
    bool isSigned;
  };
  std::optional<Overflow> overflow;
  if (isa<LLVM::SAddWithOverflowOp>(op))
    overflow = {Bits::Add, true};
  else if (isa<LLVM::UAddWithOverflowOp>(op))
    overflow = {Bits::Add, false};
  else if (isa<LLVM::SSubWithOverflowOp>(op))
    overflow = {Bits::Sub, true};
  else if (isa<LLVM::USubWithOverflowOp>(op))
    overflow = {Bits::Sub, false};
  else if (isa<LLVM::SMulWithOverflowOp>(op))
    overflow = {Bits::Mul, true};
  else if (isa<LLVM::UMulWithOverflowOp>(op))
    overflow = {Bits::Mul, false};
  if (!overflow)
    return false;
  auto record = dyn_cast<LLVM::LLVMStructType>(op->getResult(0).getType());
  Comps x = unpack(op->getOperand(0)), y = unpack(op->getOperand(1)), values,
        flags;
  if (!record || record.getBody().size() != 2 || !alike(x, y))
    return false;
  for (auto [p, q] : llvm::zip_equal(x, y)) {
    Bits::Result r = b.compute(overflow->kind, overflow->isSigned, p, q);
    values.push_back(r.value);
    flags.push_back(r.overflows);
  }
  Comps parts = pack(values, record.getBody()[0]);
  llvm::append_range(parts, pack(flags, record.getBody()[1]));
  set(op->getResult(0), parts);
  return true;
}
