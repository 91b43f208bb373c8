//===- Counting.cpp - Marks what AMD's counters count ---------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM's backend waits for a value from LDS before the first instruction that
// uses it. The same places are marked here: a slot holds the results of the
// LDS operations that write it, and of those whose slots are copied to it. A
// copy itself is no use, because values that meet in a block argument share
// registers. Where a slot may hold the result of several operations, all of
// them are taken to be waited for: too many waits make the checks miss a
// fault, too few would report one that is none.
//
//===----------------------------------------------------------------------===//

#include "Program.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <map>
#include <set>

using namespace kvbuf::emu;

// Whether lgkmcnt counts it.
static bool isLdsOp(Code op) {
  return op == Code::LoadShared || op == Code::StoreShared ||
         op == Code::AmdReadTr16 || op == Code::AmdLoadTr16 ||
         op == Code::AmdBpermute;
}

// Whether vmcnt counts it. Copies into LDS count themselves, when their number
// has been noted.
static bool isVectorMemoryOp(Code op) {
  switch (op) {
  case Code::LoadGlobal:
  case Code::StoreGlobal:
  case Code::LoadGeneric:
  case Code::StoreGeneric:
  case Code::AtomicGlobal:
  case Code::AmdBufferLoad:
  case Code::AmdBufferStore:
    return true;
  default:
    return false;
  }
}

static bool isCopy(Code op) { return op == Code::MovN || op == Code::Mov64; }

// Calls `f` for the slots that an instruction reads.
static void forEachSource(const Inst &inst, const std::vector<uint32_t> &lists,
                          llvm::function_ref<void(uint32_t)> f) {
  for (uint32_t slot : {inst.a, inst.b, inst.c})
    if (slot != noSlot)
      f(slot);
  bool stores = false;
  uint32_t first = 0;
  switch (inst.op) {
  case Code::StoreShared:
  case Code::StoreGlobal:
  case Code::StoreLocal:
  case Code::StoreGeneric:
  case Code::AmdBufferStore:
    stores = true;
    break;
  case Code::AmdMfma: // the results come first
    stores = true;
    first = (inst.imm >> 16) * (inst.imm >> 16) / 64;
    break;
  default:
    break;
  }
  for (uint32_t k = first; stores && k < inst.listSize; ++k)
    f(lists[inst.list + k]);
}

void kvbuf::emu::insertCounting(std::vector<std::vector<Inst>> &code,
                                std::vector<uint32_t> &lists) {
  // Which LDS operations (by statistic) a slot may hold the result of.
  std::map<uint32_t, std::set<uint32_t>> holders;
  std::vector<std::pair<uint32_t, uint32_t>> copies; // from, to
  for (const std::vector<Inst> &block : code)
    for (const Inst &inst : block) {
      if (isLdsOp(inst.op) && inst.op != Code::StoreShared) {
        if (inst.dst != noSlot)
          holders[inst.dst].insert(inst.stat);
        for (uint32_t k = 0; k < inst.listSize; ++k)
          holders[lists[inst.list + k]].insert(inst.stat);
      } else if (inst.op == Code::MovN) {
        for (int64_t k = 0; k < inst.imm; ++k)
          copies.push_back({static_cast<uint32_t>(inst.a + k),
                            static_cast<uint32_t>(inst.dst + k)});
      } else if (inst.op == Code::Mov64) {
        copies.push_back({inst.a, inst.dst});
      }
    }
  for (bool changed = !holders.empty(); changed;) {
    changed = false;
    for (auto [from, to] : copies) {
      auto it = holders.find(from);
      if (it == holders.end() || from == to)
        continue;
      std::set<uint32_t> values = it->second;
      std::set<uint32_t> &target = holders[to];
      size_t before = target.size();
      target.insert(values.begin(), values.end());
      changed |= target.size() != before;
    }
  }

  for (std::vector<Inst> &block : code) {
    std::vector<Inst> result;
    std::set<uint32_t> waited;
    for (size_t n = 0; n < block.size(); ++n) {
      const Inst &inst = block[n];
      std::set<uint32_t> uses;
      if (!isCopy(inst.op) && !holders.empty())
        forEachSource(inst, lists, [&](uint32_t slot) {
          auto it = holders.find(slot);
          if (it != holders.end())
            for (uint32_t stat : it->second)
              if (waited.insert(stat).second)
                uses.insert(stat);
        });
      if (!uses.empty()) {
        Inst &use = result.emplace_back();
        use.op = Code::AmdUse;
        use.origin = inst.origin;
        use.list = lists.size();
        use.listSize = uses.size();
        lists.insert(lists.end(), uses.begin(), uses.end());
      }
      if (isLdsOp(inst.op))
        waited.erase(inst.stat);
      result.push_back(inst);
      // 12 bytes are one operation of the machine, and two here.
      bool continued = inst.imm == 8 && n + 1 < block.size() &&
                       block[n + 1].op == inst.op && block[n + 1].imm == 4 &&
                       block[n + 1].origin == inst.origin;
      if (isVectorMemoryOp(inst.op) && !continued) {
        Inst &count = result.emplace_back();
        count.op = Code::AmdCountVm;
        count.origin = inst.origin;
      }
    }
    block = std::move(result);
  }
}
