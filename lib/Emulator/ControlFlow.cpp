//===- ControlFlow.cpp - Where diverged lanes meet again ------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Program.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace kvbuf::emu;

// Immediate post-dominators by the iteration of Cooper, Harvey and Kennedy on
// the reversed graph, with one virtual exit (index n) after every block that
// leaves the kernel. Who traps, fails an assertion or comes to where no thread
// should (the default of a switch that names all cases) does not keep the
// others from meeting again.
void kvbuf::emu::computeJoins(Program &p) {
  const uint32_t n = p.blocks.size();
  std::vector<std::vector<uint32_t>> preds(n + 1), succs(n + 1);
  for (uint32_t b = 0; b < n; ++b) {
    CodeBlock &block = p.blocks[b];
    block.successors.clear();
    const Inst &last = p.insts[block.end - 1];
    if (last.op == Code::Jump)
      block.successors = {static_cast<uint32_t>(last.imm)};
    else if (last.op == Code::Branch)
      block.successors = {p.lists[last.list], p.lists[last.list + 1]};
    succs[b] = block.successors;
  }
  auto leaves = [&](uint32_t b) {
    const Inst &last = p.insts[p.blocks[b].end - 1];
    return succs[b].empty() && last.op == Code::Return && !last.flags;
  };
  bool any = false;
  for (uint32_t b = 0; b < n; ++b)
    any |= leaves(b);
  for (uint32_t b = 0; b < n; ++b)
    if (any ? leaves(b) : succs[b].empty())
      succs[b].push_back(n);
  for (uint32_t b = 0; b < n; ++b)
    for (uint32_t s : succs[b])
      preds[s].push_back(b);

  // Post-order of the reversed graph from the exit. Blocks that cannot reach
  // it (endless loops) get no number and join nowhere.
  std::vector<uint32_t> order, number(n + 1, noBlock);
  std::vector<std::pair<uint32_t, size_t>> stack{{n, 0}};
  std::vector<bool> seen(n + 1);
  seen[n] = true;
  while (!stack.empty()) {
    auto &[b, next] = stack.back();
    if (next < preds[b].size()) {
      uint32_t q = preds[b][next++];
      if (!seen[q]) {
        seen[q] = true;
        stack.push_back({q, 0});
      }
      continue;
    }
    number[b] = order.size();
    order.push_back(b);
    stack.pop_back();
  }

  std::vector<uint32_t> idom(n + 1, noBlock);
  idom[n] = n;
  auto meet = [&](uint32_t x, uint32_t y) {
    while (x != y) {
      while (number[x] < number[y])
        x = idom[x];
      while (number[y] < number[x])
        y = idom[y];
    }
    return x;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      if (*it == n)
        continue;
      uint32_t best = noBlock;
      for (uint32_t s : succs[*it])
        if (number[s] != noBlock && idom[s] != noBlock)
          best = best == noBlock ? s : meet(best, s);
      if (best != idom[*it]) {
        idom[*it] = best;
        changed = true;
      }
    }
  }
  for (uint32_t b = 0; b < n; ++b)
    p.blocks[b].join = idom[b] == n ? noBlock : idom[b];
}

bool Program::onlyReturns(uint32_t block) const {
  for (unsigned jumps = 0; jumps < 8; ++jumps) {
    const Inst &first = insts[blocks[block].begin];
    if (first.op != Code::Jump)
      return first.op == Code::Return && !first.flags;
    block = static_cast<uint32_t>(first.imm);
  }
  return false;
}

bool Program::endsBehind(const Inst &inst) const {
  // Past what orders memory alone. A block ends with a jump or a return.
  const Inst *behind = &inst + 1;
  while (behind->op == Code::Fence || behind->op == Code::AmdWait)
    ++behind;
  const Inst &next = *behind;
  if (next.op == Code::Jump)
    return onlyReturns(static_cast<uint32_t>(next.imm));
  return next.op == Code::Return && !next.flags;
}

/// What lanes, or threads of a block, do together.
static bool isTogether(const Inst &inst) {
  switch (inst.op) {
  case Code::Barrier:
  case Code::BarrierReduce:
  case Code::BarrierArrive:
  case Code::ClusterArrive:
  case Code::ClusterWait:
  case Code::Shuffle:
  case Code::Vote:
  case Code::WarpSync:
  case Code::Elect:
  case Code::WarpCall:
    return true;
  default:
    return false;
  }
}

// Backwards from the blocks with such an instruction.
static void findLoneEnds(Program &p) {
  std::vector<std::vector<uint32_t>> before(p.blocks.size());
  std::vector<uint32_t> work;
  for (auto [b, block] : llvm::enumerate(p.blocks)) {
    block.endsAlone = true;
    for (uint32_t i = block.begin; i < block.end && block.endsAlone; ++i)
      block.endsAlone = !isTogether(p.insts[i]);
    if (!block.endsAlone)
      work.push_back(b);
    for (uint32_t s : block.successors)
      before[s].push_back(b);
  }
  while (!work.empty()) {
    uint32_t b = work.back();
    work.pop_back();
    for (uint32_t q : before[b])
      if (p.blocks[q].endsAlone) {
        p.blocks[q].endsAlone = false;
        work.push_back(q);
      }
  }
}

void kvbuf::emu::orderSides(Program &p) {
  findLoneEnds(p);
  for (const CodeBlock &block : p.blocks) {
    Inst &last = p.insts[block.end - 1];
    if (last.op != Code::Branch)
      continue;
    const CodeBlock &yes = p.blocks[p.lists[last.list]],
                    &no = p.blocks[p.lists[last.list + 1]];
    last.flags = no.endsAlone && !yes.endsAlone;
  }
}
