//===- PtxText.cpp - Instructions in the text of assembly
//--------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PtxText.h"

using namespace llvm;
using namespace kvbuf::emu;

bool PtxParser::operand(PtxOperand &o, unsigned depth) {
  skipSpace();
  if (depth > 4 || rest.empty())
    return false;
  if (rest.consume_front("$")) {
    o.kind = PtxOperand::Number;
    return !rest.consumeInteger(10, o.number) && second(o, depth);
  }
  char open = rest.front();
  if (open == '[' || open == '{') {
    rest = rest.drop_front();
    o.kind = open == '[' ? PtxOperand::Memory : PtxOperand::List;
    return operands(o.parts, open == '[' ? ']' : '}', depth + 1);
  }
  o.word = word();
  return !o.word.empty() && second(o, depth);
}

// "d|p": what is given in two registers.
bool PtxParser::second(PtxOperand &o, unsigned depth) {
  skipSpace();
  if (!rest.consume_front("|"))
    return true;
  PtxOperand pair;
  pair.kind = PtxOperand::List;
  pair.parts = {o, PtxOperand()};
  o = pair;
  return operand(o.parts[1], depth + 1);
}

bool PtxParser::operands(std::vector<PtxOperand> &list, char end,
                         unsigned depth) {
  skipSpace();
  if (!rest.empty() && rest.front() == end) {
    rest = rest.drop_front();
    return true;
  }
  while (true) {
    if (list.size() > 512 || !operand(list.emplace_back(), depth))
      return false;
    skipSpace();
    if (end == ']' && rest.consume_front("+")) {
      skipSpace();
      if (word().getAsInteger(0, list.back().offset))
        return false;
      skipSpace();
    }
    if (rest.consume_front(","))
      continue;
    if (rest.empty() || rest.front() != end)
      return false;
    rest = rest.drop_front();
    return true;
  }
}

bool PtxParser::run(SmallVectorImpl<PtxInstruction> &instructions) {
  while (true) {
    skipSpace();
    if (rest.empty())
      return true;
    if (rest.consume_front("{") || rest.consume_front("}"))
      continue;
    // A remark.
    if (rest.starts_with("//")) {
      rest = rest.drop_until([](char c) { return c == '\n'; });
      continue;
    }
    // A declaration, of which the names say enough.
    if (rest.starts_with(".reg")) {
      size_t end = rest.find(';');
      if (end == StringRef::npos)
        return false;
      rest = rest.drop_front(end + 1);
      continue;
    }
    PtxInstruction inst;
    if (rest.consume_front("@")) {
      PtxOperand p;
      inst.negated = rest.consume_front("!");
      if (!operand(p, 0) ||
          (p.kind != PtxOperand::Number && p.kind != PtxOperand::Word))
        return false;
      if (p.kind == PtxOperand::Number)
        inst.predicate = p.number;
      else
        inst.predicateName = p.word;
      skipSpace();
    }
    inst.opcode = word();
    if (inst.opcode.empty())
      return false;
    // A label.
    if (inst.opcode.ends_with(":"))
      continue;
    if (!operands(inst.operands, ';', 0))
      return false;
    if (instructions.size() >= 64)
      return false;
    instructions.push_back(std::move(inst));
  }
}
