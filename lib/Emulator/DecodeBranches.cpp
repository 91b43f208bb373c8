//===- DecodeBranches.cpp - Branches, and the moves along them ------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"

using namespace mlir;
using namespace kvbuf::emu;

// A parallel assignment, as a sequence. Destinations are distinct; a source
// may be another one's destination.
void Decoder::moves(ArrayRef<Comp> dst, ArrayRef<Comp> src) {
  SmallVector<std::pair<Comp, Comp>> pending;
  llvm::DenseMap<uint32_t, unsigned> readers;
  if (!alike(dst, src))
    return;
  for (auto [d, s] : llvm::zip_equal(dst, src))
    if (d.slot != s.slot) {
      pending.push_back({d, s});
      ++readers[s.slot];
    }
  auto copy = [&](Comp d, Comp s) {
    std::vector<Inst> &block = code[current];
    if (!d.wide && !block.empty() && block.back().op == Code::MovN &&
        block.back().dst + block.back().imm == d.slot &&
        block.back().a + block.back().imm == s.slot) {
      ++block.back().imm;
      return;
    }
    Inst &inst = emit(d.wide ? Code::Mov64 : Code::MovN);
    inst.cls = Class::None;
    inst.dst = d.slot;
    inst.a = s.slot;
    inst.imm = 1;
  };
  while (!pending.empty()) {
    bool progress = false;
    for (size_t i = 0; i < pending.size();) {
      auto [d, s] = pending[i];
      if (readers.lookup(d.slot)) {
        ++i;
        continue;
      }
      copy(d, s);
      --readers[s.slot];
      pending.erase(pending.begin() + i);
      progress = true;
    }
    if (progress)
      continue;
    // Only cycles are left: free one destination.
    Comp s = pending.front().second;
    Comp saved = allocate(s.wide);
    copy(saved, s);
    for (auto &move : pending)
      if (move.second.slot == s.slot)
        move.second = saved;
    readers[saved.slot] = readers[s.slot];
    readers[s.slot] = 0;
  }
}

uint32_t Decoder::edge(Block *dest, ValueRange operands) {
  uint32_t target = blockIds[dest];
  if (operands.empty())
    return target;
  uint32_t saved = current;
  current = newBlock();
  uint32_t block = current;
  Comps dst, src;
  if (dest->getNumArguments() != operands.size()) {
    fail("other operands than its successor's arguments");
    return target;
  }
  for (auto [arg, v] : llvm::zip_equal(dest->getArguments(), operands)) {
    llvm::append_range(dst, values.lookup(arg));
    llvm::append_range(src, get(v));
  }
  moves(dst, src);
  Inst &jump = emit(Code::Jump);
  jump.cls = Class::None;
  jump.imm = target;
  current = saved;
  return block;
}

LogicalResult Decoder::decodeTerminator(Operation *op, uint32_t continuation,
                                        SmallVectorImpl<Comps> *results,
                                        bool singleReturn) {
  auto jump = [&](uint32_t target) {
    Inst &inst = emit(Code::Jump);
    inst.cls = Class::None;
    inst.imm = target;
  };
  auto branch = [&](Comp condition, uint32_t yes, uint32_t no) {
    Inst &inst = emit(Code::Branch);
    inst.a = condition.slot;
    list(inst, {Comp{yes}, Comp{no}});
  };
  if (auto br = dyn_cast<LLVM::BrOp>(op)) {
    jump(edge(br.getDest(), br.getDestOperands()));
    return success();
  }
  if (auto br = dyn_cast<LLVM::CondBrOp>(op)) {
    Comp condition = getNarrow(br.getCondition());
    uint32_t yes = edge(br.getTrueDest(), br.getTrueDestOperands());
    uint32_t no = edge(br.getFalseDest(), br.getFalseDestOperands());
    branch(condition, yes, no);
    return success();
  }
  if (auto sw = dyn_cast<LLVM::SwitchOp>(op)) {
    Comp value = getScalar(sw.getValue());
    if (auto cases = sw.getCaseValues();
        cases &&
        static_cast<size_t>(cases->size()) != sw.getCaseDestinations().size())
      return unsupported(op, "other numbers of cases and destinations");
    uint32_t otherwise =
        edge(sw.getDefaultDestination(), sw.getDefaultOperands());
    if (auto cases = sw.getCaseValues())
      for (auto [i, v] : llvm::enumerate(cases->getValues<APInt>())) {
        uint32_t hit = edge(sw.getCaseDestinations()[i], sw.getCaseOperands(i));
        Comp equal = emit(value.wide ? Code::CmpEq64 : Code::CmpEq32, false,
                          value, constant(v.getZExtValue(), value.wide));
        uint32_t next = newBlock();
        branch(equal, hit, next);
        current = next;
      }
    jump(otherwise);
    return success();
  }
  if (auto ret = dyn_cast<LLVM::ReturnOp>(op)) {
    if (continuation == noBlock) {
      emit(Code::Return);
      return success();
    }
    if (ret.getNumOperands() != results->size())
      return unsupported(op, "other results than its function's");
    for (auto [i, v] : llvm::enumerate(ret.getOperands())) {
      if (singleReturn)
        (*results)[i] = get(v);
      else
        moves((*results)[i], get(v));
    }
    jump(continuation);
    return success();
  }
  if (isa<LLVM::UnreachableOp>(op)) {
    emit(Code::Trap);
    return success();
  }
  return unsupported(op);
}
