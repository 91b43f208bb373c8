//===- Barriers.cpp - Barriers of a block, and deadlocks ------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Journal.h"
#include "Window.h"

#include "kvbuffer/Emulator/Emulator.h"

#include <algorithm>

using namespace kvbuf::emu;

static Reduction reductionOf(const Inst &inst) {
  return inst.op == Code::BarrierReduce ? static_cast<Reduction>(inst.flags)
                                        : Reduction::None;
}

/// The warps of its block that have ended, if the barrier does not wait for
/// them: CUDA's "waits until all non-exited threads in the block", and CDNA's
/// for the surviving waves. What MLIR writes for NVIDIA ends together.
uint64_t Run::endedOf(const BarrierState &b) const {
  if (b.counted || (options.strict && !program.chip.isAMD))
    return 0;
  uint64_t block = (&b - barriers.data()) / 16;
  uint64_t all = (uint64_t(1) << warpsPerBlock) - 1;
  return endedWarps & all << block * warpsPerBlock & ~b.participants;
}

/// Barriers and member masks mean the threads that have not exited (PTX ISA,
/// "barrier{.cta}", "exit"; CUDA's guide on __syncthreads and on functions with
/// a mask). A lane that returns early waits here where all lanes return. What
/// MLIR writes for NVIDIA keeps its warps together.
uint64_t Run::goneOf(const Warp &w, bool alone) const {
  if (options.strict)
    return 0;
  uint64_t seen = w.mask, gone = 0;
  for (uint32_t d = w.depth; d--;) {
    const Frame &f = w.frames[d];
    if (alone ? program.blocks[f.block].endsAlone
              : program.onlyReturns(f.block))
      gone |= f.mask & w.live & ~seen;
    seen |= f.mask;
  }
  return gone;
}

bool Run::completes(const BarrierState &b) const {
  return b.arrived + __builtin_popcountll(endedOf(b)) >= b.expected;
}

bool Run::barrier(Warp &w, const Inst &inst, const uint32_t *id,
                  const uint32_t *count, bool arriveOnly) {
  unsigned lane = __builtin_ctzll(w.mask);
  if (w.mask != w.live && w.lanesYielded) {
    fault(FaultKind::Deadlock, w, program.insts[w.pollInst], -1,
          "waits for global memory to change, and nothing can go on: other "
          "lanes of the warp wait at a barrier",
          "they wait here", &inst);
    hot.stop = true;
    return false;
  }
  // Whoever lets some lanes skip a barrier behind which the others do nothing
  // has not let these return early.
  bool isLast = w.mask != w.live && program.endsBehind(inst);
  if (isLast || (w.mask | goneOf(w)) != w.live) {
    // Machines forgive lanes that are to end with no other barrier.
    bool ends = !isLast && (w.mask | goneOf(w, /*alone=*/true)) == w.live;
    std::string text =
        "divergent barrier: " + std::to_string(__builtin_popcountll(w.mask)) +
        " of the warp's " + std::to_string(__builtin_popcountll(w.live)) +
        " lanes execute it";
    if (ends)
      warning(FaultKind::Divergence, w, inst, -1,
              text + ", and the others end without it");
    else
      fault(FaultKind::Divergence, w, inst, -1, text);
    if (!ends)
      return true;
  }
  uint32_t which = id ? id[lane] : 0;
  uint32_t expected = count ? count[lane] : threads;
  for (uint64_t rest = w.mask; rest; rest &= rest - 1) {
    unsigned l = __builtin_ctzll(rest);
    if ((id && id[l] != which) || (count && count[l] != expected)) {
      fault(FaultKind::Barrier, w, inst, l,
            "the lanes of a warp name different barriers or counts");
      return true;
    }
  }
  if (which >= 16) {
    fault(FaultKind::Barrier, w, inst, -1,
          "barrier " + std::to_string(which) + "; there are 16");
    return true;
  }
  if (count &&
      (expected == 0 || expected % lanes || expected > lanes * maxWarps)) {
    fault(FaultKind::Barrier, w, inst, -1,
          std::to_string(expected) + " threads is no multiple of a warp");
    return true;
  }
  BarrierState &b = barriers[16 * w.rank + which];
  uint32_t index = &inst - program.insts.data();
  // Threads count by whole warps, as the machine does it.
  expected = (expected + lanes - 1) / lanes;
  if (!b.arrived) {
    b.expected = expected;
    b.counted = count;
    b.inst = index;
  } else if (b.expected != expected) {
    fault(FaultKind::Barrier, w, inst, -1,
          "barrier " + std::to_string(which) + " for " +
              std::to_string(expected * lanes) + " threads meets one for " +
              std::to_string(b.expected * lanes),
          "the other one", &program.insts[b.inst]);
  }
  if (b.participants >> w.id & 1)
    fault(FaultKind::Barrier, w, inst, -1,
          "the warp arrives twice at barrier " + std::to_string(which) +
              " before it completes",
          "the barrier began here", &program.insts[b.inst]);
  ++b.arrived;
  b.participants |= 1ull << w.id;
  // Reductions are not to be mixed with others, nor with barriers that reduce
  // nothing, at one active barrier (PTX ISA, "barrier{.cta}").
  Reduction kind = reductionOf(inst);
  if (kind != reductionOf(program.insts[b.inst]))
    fault(FaultKind::Barrier, w, inst, -1,
          "barrier " + std::to_string(which) +
              " reduces something else, or nothing, elsewhere",
          "the other one", &program.insts[b.inst]);
  if (kind != Reduction::None) {
    const uint32_t *mine = w.regs + static_cast<size_t>(inst.c) * lanes;
    for (uint64_t rest = w.mask; rest; rest &= rest - 1) {
      ++b.asked;
      b.yes += mine[__builtin_ctzll(rest)] & 1;
    }
  }
  if (trace)
    trace->arriveAtBarrier(&b - barriers.data(), w, inst);
  for (unsigned v = 0; v < maxActors; ++v) {
    b.seen[v] = std::max(b.seen[v], w.seen[v]);
    b.fenced[v] = std::max(b.fenced[v], w.fenced[v]);
  }
  b.seen[w.id] = std::max(b.seen[w.id], w.clock);
  if (w.others)
    b.others = Known::join(b.others, w.others);
  if (arriveOnly) {
    // What follows is not ordered by this barrier.
    w.clock = ++clockCounter;
  } else {
    b.waiting |= 1ull << w.id;
    w.barrier = which;
    w.barrierInst = index;
    w.state = Stop::Blocked;
  }
  if (!completes(b))
    return arriveOnly;
  release(b);
  return true;
}

// A warp that goes on learns what the barrier's predicates have come to.
void Run::tell(Warp &w, const BarrierState &b) {
  const Inst &inst = program.insts[w.barrierInst];
  uint32_t result = 0;
  switch (reductionOf(inst)) {
  case Reduction::None:
    return;
  case Reduction::Count:
    result = b.yes;
    break;
  case Reduction::All:
    result = b.yes == b.asked;
    break;
  case Reduction::Any:
    result = b.yes != 0;
    break;
  }
  uint32_t *d = w.regs + static_cast<size_t>(inst.dst) * lanes;
  for (uint64_t rest = w.mask; rest; rest &= rest - 1)
    d[__builtin_ctzll(rest)] = result;
}

// Lets the warps go on that wait at a barrier.
void Run::release(BarrierState &b) {
  if (trace)
    trace->release(&b - barriers.data(), b.waiting);
  // What warps did before they ended has happened.
  if (uint64_t gone = options.strict ? 0 : endedOf(b))
    for (const Warp &v : warps)
      if (gone >> v.id & 1) {
        for (unsigned k = 0; k < maxActors; ++k)
          b.seen[k] = std::max(b.seen[k], v.seen[k]);
        b.seen[v.id] = std::max(b.seen[v.id], v.clock);
      }
  for (Warp &v : warps) {
    if (!(b.waiting >> v.id & 1))
      continue;
    for (unsigned k = 0; k < maxActors; ++k) {
      v.seen[k] = std::max(v.seen[k], b.seen[k]);
      v.fenced[k] = std::max(v.fenced[k], b.fenced[k]);
    }
    v.others = Known::join(v.others, b.others);
    tell(v, b);
    v.barrier = ~0u;
    v.state = Stop::Yield;
  }
  ++clockCounter;
  for (Warp &v : warps)
    if (b.waiting >> v.id & 1) {
      v.lanes.known = v.clock;
      v.lanes.apart = false;
      v.clock = clockCounter;
      updateKnown(v);
      if (!v.ldsOps.empty())
        ldsCarryOver(v);
    }
  b = BarrierState();
  if (async)
    ++async->epoch;
}

// Nothing can run any more, but some warps wait.
void Run::deadlock() {
  const Warp *first = nullptr;
  std::string waiting, exited;
  const Inst *other = nullptr;
  for (const Warp &w : warps) {
    std::string id = std::to_string(w.id);
    if (w.state == Stop::Exited) {
      exited += (exited.empty() ? "" : ", ") + id;
      continue;
    }
    if (!first)
      first = &w;
    else if (w.barrier != first->barrier || w.barrierInst != first->barrierInst)
      other = &program.insts[w.barrierInst];
    waiting += (waiting.empty() ? "" : ", ") + id + " at barrier " +
               std::to_string(w.barrier);
  }
  const BarrierState &b = barriers[first->barrier];
  std::string text = "barrier " + std::to_string(first->barrier) +
                     " never completes: " + std::to_string(b.arrived) + " of " +
                     std::to_string(b.expected) +
                     " warps arrived (waiting: " + waiting;
  if (!exited.empty())
    text += "; ended: " + exited;
  fault(FaultKind::Deadlock, *first, program.insts[first->barrierInst], -1,
        text + ")", "others wait here", other);
  hot.stop = true;
}
