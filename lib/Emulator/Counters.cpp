//===- Counters.cpp - What AMD's waits wait for ---------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two counters of CDNA matter here (CDNA3 ISA, "Manually inserted wait
// states"). vmcnt counts loads, stores and copies of vector memory, which
// complete in order: `Warp::committed` numbers them, and a copy into LDS lands
// when a wait allows fewer operations than are younger than it. lgkmcnt counts
// LDS operations, in order as well. Their values are there at once, for LLVM
// waits before the first use; but a barrier waits for none of them, so that
// one that is still on its way there counts as done after the barrier.
//
//===----------------------------------------------------------------------===//

#include "Launch.h"

#include "kvbuffer/Emulator/Emulator.h"

#include <algorithm>

using namespace kvbuf::emu;

void Run::vmCount(Warp &w) {
  for (unsigned l = 0; l < lanes; ++l)
    ++w.committed[l];
}

void Run::vmMark(Warp &w, const Inst &inst) {
  uint32_t now = w.committed[0];
  if (inst.imm < 0) {
    w.marks.push_back(now);
    return;
  }
  if (w.marks.size() <= static_cast<uint64_t>(inst.imm))
    return;
  // Older groups are over as well.
  w.marks.erase(w.marks.begin(), w.marks.end() - inst.imm - 1);
  asyncWait(w, inst, now - w.marks.front(), ~0ull);
  w.marks.erase(w.marks.begin());
}

void Run::ldsIssue(Warp &w, const Inst &inst, const uint32_t *address,
                   uint64_t mask, bool store) {
  w.ldsLast[inst.stat] = ++w.ldsIssued;
  if (!hot.checkShadow)
    return;
  // The counter has four bits, and the machine holds back what it cannot
  // count; with some slack, because an operation here may become several.
  constexpr size_t most = 64;
  if (w.ldsOps.size() == most)
    ldsRetire(w, w.ldsOps.front().number);
  LdsOp &op = w.ldsOps.emplace_back();
  op.inst = &inst - program.insts.data();
  op.bytes = inst.imm;
  op.mask = mask;
  op.number = w.ldsIssued;
  op.store = store;
  if (mask)
    std::copy_n(address, lanes, op.address);
}

void Run::ldsRetire(Warp &w, uint64_t number) {
  auto first =
      std::find_if(w.ldsOps.begin(), w.ldsOps.end(),
                   [&](const LdsOp &op) { return op.number > number; });
  w.ldsOps.erase(w.ldsOps.begin(), first);
}

void Run::ldsWait(Warp &w, uint32_t pending) {
  if (w.ldsIssued > pending)
    ldsRetire(w, w.ldsIssued - pending);
}

void Run::ldsUse(Warp &w, const Inst &inst) {
  uint64_t number = 0;
  for (uint32_t k = 0; k < inst.listSize; ++k)
    number = std::max(number, w.ldsLast[program.lists[inst.list + k]]);
  ldsRetire(w, number);
}

// The wave has just passed a barrier: what it had on its way takes place no
// earlier than now, as far as other waves can tell.
void Run::ldsCarryOver(Warp &w) {
  auto stamp = [&](Shadow &s, uint32_t cell, const LdsOp &op) {
    if (op.store) {
      if (s.writer[cell] == (op.inst << 6 | w.id) &&
          s.writeClock[cell] < clockLimit)
        s.writeClock[cell] = w.clock;
      return;
    }
    s.reads[w.id * static_cast<size_t>(s.cells) + cell] =
        static_cast<uint64_t>(w.clock) << 32 | op.inst;
    s.readMax[cell] = std::max(s.readMax[cell], w.clock);
  };
  for (const LdsOp &op : w.ldsOps) {
    if (op.mask)
      carriedOver.insert(op.inst);
    for (uint64_t rest = op.mask; rest; rest &= rest - 1) {
      uint32_t begin = op.address[__builtin_ctzll(rest)],
               end = begin + op.bytes;
      for (uint32_t word = begin / 4; 4 * word < end; ++word) {
        if (wordClock[word] != clockSplit) {
          stamp(hot.words, word, op);
          continue;
        }
        for (uint32_t b = std::max(begin, 4 * word),
                      stop = std::min(end, 4 * word + 4);
             b < stop; ++b)
          stamp(bytes, b, op);
      }
    }
  }
}

void Run::endOfWave(Warp &w) {
  for (const AsyncCopy &copy : w.copies) {
    unwaitedCopies += copy.mask != 0;
    // A wave's LDS goes to another block as soon as it has ended; CDNA's
    // hardware does not wait for copies that are on their way into it.
    if (copy.mask && program.chip.isAMD && options.landingChecks)
      fault(FaultKind::InFlight, w, program.insts[copy.inst], -1,
            "the wave ends while this copy into LDS may be on its way; it "
            "needs a wait for " +
                std::string(copy.byTensor ? "tensorcnt(0)" : "vmcnt(0)") +
                " before its end");
  }
  // Barriers of all threads wait for the surviving ones only (CDNA3 ISA,
  // S_BARRIER; CUDA's guide, "Synchronization Functions").
  endedWarps |= uint64_t(1) << w.id;
  for (unsigned k = 0; k < 16; ++k)
    if (BarrierState &b = barriers[16 * w.rank + k]; b.arrived && completes(b))
      release(b);
}
