//===- LdsOrder.cpp - What waves tell each other by words of LDS ----------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LdsOrder.h"
#include "Launch.h"
#include <algorithm>
#include <bit>

using namespace kvbuf::emu;

/// Whether an instruction may be an atomic operation on shared memory; one on
/// addresses of any memory is.
static bool isAtomicOnShared(const Inst &inst) {
  return inst.op == Code::AtomicShared || inst.op == Code::AtomicGlobal ||
         ((inst.order & atomicAccess) &&
          (inst.op == Code::LoadShared || inst.op == Code::StoreShared ||
           inst.op == Code::LoadGeneric || inst.op == Code::StoreGeneric));
}

void Run::startLdsOrder() {
  auto needs = [](const Inst &inst) {
    return isAtomicOnShared(inst) ||
           (inst.op == Code::ClusterArrive && inst.flags);
  };
  if (!ldsOrder &&
      std::none_of(program.insts.begin(), program.insts.end(), needs))
    return;
  ldsOrder = std::make_shared<LdsOrder>();
}

void Run::orderShared(Warp &w, const Inst &inst, const uint32_t *address,
                      uint64_t mask, bool reads, bool writes) {
  LdsOrder &order = *ldsOrder;
  LdsOrder::Own &own = order.own[w.id];
  bool wide = inst.scope >= Scope::Block, learns = false;
  for (uint64_t rest = mask; rest && wide; rest &= rest - 1) {
    uint32_t word = address[std::countr_zero(rest)] / 4;
    if (auto it = order.words.find(word); reads && it != order.words.end()) {
      if (inst.order & acquires) {
        it->second.teach(w);
        learns = true;
      } else {
        if (!own.read)
          own.read = std::make_unique<Knowledge>();
        own.read->join(it->second);
      }
    }
    if (!writes)
      continue;
    Knowledge &known = order.words[word];
    if (!reads)
      known = Knowledge();
    if (inst.order & releases) {
      known.join(w);
      known.seen[w.id] = std::max(known.seen[w.id], w.clock);
    } else if (own.released) {
      known.join(*own.released);
    }
  }
  if (learns)
    updateKnown(w);
  if (writes) {
    ++order.epoch;
    // What follows is not released by this operation.
    if (inst.order & releases)
      tick(w);
    return;
  }
  if (own.pollEpoch != order.epoch)
    own.polls = 0;
  own.pollEpoch = order.epoch;
  own.pollInst = &inst - program.insts.data();
  ++own.polls;
  w.wait = WaitFor::Lds;
}

void Run::fenceShared(Warp &w, const Inst &inst) {
  if (inst.scope < Scope::Block || (inst.order & writesBack))
    return;
  LdsOrder::Own &own = ldsOrder->own[w.id];
  if ((inst.order & acquires) && own.read) {
    own.read->teach(w);
    own.read = nullptr;
    updateKnown(w);
  }
  if (!(inst.order & releases))
    return;
  if (!own.released)
    own.released = std::make_unique<Knowledge>();
  *own.released = Knowledge();
  own.released->join(w);
  own.released->seen[w.id] = std::max(own.released->seen[w.id], w.clock);
  if (inst.scope >= Scope::Cluster)
    own.releasedToCluster = std::make_unique<Knowledge>(*own.released);
  // What follows is not released by this fence.
  tick(w);
}

bool Run::pollsInVain() const {
  // A poll counts as vain when it was the last thing a warp did, for the
  // thousandth time since a word changed.
  constexpr uint32_t inVain = 1000;
  bool any = false;
  for (const Warp &w : warps) {
    if (w.state == Stop::Exited || w.state == Stop::Blocked)
      continue;
    const LdsOrder::Own &own = ldsOrder->own[w.id];
    any = true;
    if (w.wait != WaitFor::Lds || own.polls < inVain ||
        own.pollEpoch != ldsOrder->epoch)
      return false;
  }
  return any;
}

void Run::pollDeadlock() {
  const Warp *first = nullptr;
  std::string polling, others;
  auto add = [](std::string &list, const Warp &w) {
    list += (list.empty() ? "" : ", ") + std::to_string(w.id);
  };
  for (const Warp &w : warps) {
    bool polls = w.state != Stop::Exited && w.state != Stop::Blocked;
    if (polls && !first)
      first = &w;
    if (polls)
      add(polling, w);
    else if (w.state == Stop::Blocked)
      add(others, w);
  }
  std::string text = "waits for shared memory to change, and nothing can go on "
                     "(polling: " +
                     polling;
  if (!others.empty())
    text += "; at a barrier: " + others;
  fault(FaultKind::Deadlock, *first,
        program.insts[ldsOrder->own[first->id].pollInst], -1, text + ")");
  hot.stop = true;
}
