//===- MBarriers.cpp - mbarriers: phases, arrivals, waits -----------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A phase completes when all arrivals and all announced bytes are there. Copies
// land as late as that allows: not before somebody asks for the phase. Whoever
// asks successfully knows what the arrivals released and what has landed.
//
//===----------------------------------------------------------------------===//

#include "Async.h"

#include "kvbuffer/Emulator/Emulator.h"

#include <algorithm>
#include <bit>

using namespace kvbuf::emu;

// The range of an mbarrier's counts, PTX ISA "Contents of the mbarrier object".
static constexpr int64_t maxCount = (1 << 20) - 1;

std::string AsyncState::describe(const MBarrier &b) const {
  std::string text = "phase " + std::to_string(b.phase) + ": " +
                     std::to_string(b.expected - b.pending) + " of " +
                     std::to_string(b.expected) + " arrivals";
  if (b.owedCount)
    text += ", " + std::to_string(b.owedCount) + " due from cp.async";
  if (b.bytes > 0 || b.inFlight)
    text += ", " + std::to_string(b.bytes) + " bytes awaited, " +
            std::to_string(b.inFlight) + " in flight";
  return text;
}

MBarrier *AsyncState::find(Run &run, Warp &w, const Inst &inst, unsigned lane,
                           uint32_t address, const char *verb) {
  auto it = mbarriers.find(address);
  if (it == mbarriers.end()) {
    run.fault(FaultKind::MBarrier, w, inst, lane,
              std::string(verb) + " " + run.sharedPlace(address) +
                  ", where there is no initialised mbarrier");
    return nullptr;
  }
  MBarrier &b = it->second;
  auto check = [&](uint32_t warp, uint32_t clock) {
    if (!run.options.races || !run.unordered(w, clock, warp))
      return;
    std::string text = std::string(verb) + " the mbarrier at " +
                       run.sharedPlace(address) +
                       " with no barrier after its initialisation by warp " +
                       std::to_string(warp);
    const Inst &init = run.program.insts[b.initInst];
    if (run.options.strict)
      run.fault(FaultKind::Race, w, inst, lane, text, "the initialisation",
                &init);
    else
      run.warning(FaultKind::Race, w, inst, lane, text, "the initialisation",
                  &init);
  };
  check(b.initWarp, b.initClock);
  for (auto [warp, clock] : b.alsoInit)
    check(warp, clock);
  return &b;
}

void Run::mbarrierInit(Warp &w, const Inst &inst, const uint32_t *address,
                       const uint32_t *count, uint64_t mask) {
  for (uint64_t rest = mask; rest; rest &= rest - 1) {
    unsigned l = __builtin_ctzll(rest);
    uint32_t at = address[l];
    if (!checkShared(w, inst, address, 8, 1ull << l, true))
      continue;
    auto old = async->mbarriers.find(at);
    if (old != async->mbarriers.end() && !options.strict &&
        old->second.mayInitAgain(w.id, w.clock, count[l])) {
      MBarrier &b = old->second;
      warning(FaultKind::MBarrier, w, inst, l,
              "initialises the mbarrier at " + sharedPlace(at) +
                  " again, for as many arrivals; PTX leaves that undefined",
              "its initialisation", &program.insts[b.initInst]);
      if (!b.isInitBy(w.id))
        b.alsoInit.push_back({w.id, w.clock});
      continue;
    }
    if (old != async->mbarriers.end()) {
      fault(FaultKind::MBarrier, w, inst, l,
            "initialises the mbarrier at " + sharedPlace(at) +
                ", which is in use (" + async->describe(old->second) + ")",
            "its initialisation", &program.insts[old->second.initInst]);
      continue;
    }
    if (count[l] < 1 || count[l] > maxCount) {
      fault(FaultKind::MBarrier, w, inst, l,
            "an mbarrier for " + std::to_string(count[l]) + " arrivals; 1 to " +
                std::to_string(maxCount) + " are possible");
      continue;
    }
    shadowWrite(w, inst, l, at, 8);
    wordClock[at / 4] = wordClock[at / 4 + 1] = clockMBarrier;
    MBarrier &b = async->mbarriers[at];
    b.address = at;
    b.initInst = &inst - program.insts.data();
    b.initWarp = w.id;
    b.initClock = w.clock;
    b.expected = b.pending = count[l];
    b.lastSeen.fill(-1);
  }
  ++async->epoch;
}

void Run::mbarrierInval(Warp &w, const Inst &inst, const uint32_t *address,
                        uint64_t mask) {
  for (uint64_t rest = mask; rest; rest &= rest - 1) {
    unsigned l = __builtin_ctzll(rest);
    MBarrier *b = async->find(*this, w, inst, l, address[l], "invalidates");
    if (!b)
      continue;
    if (b->inFlight || b->owedCount || b->pending != b->expected)
      fault(FaultKind::MBarrier, w, inst, l,
            "invalidates the mbarrier at " + sharedPlace(b->address) +
                " within a phase (" + async->describe(*b) + ")",
            "its initialisation", &program.insts[b->initInst]);
    uint32_t me =
        static_cast<uint32_t>(&inst - program.insts.data()) << 6 | w.id;
    for (uint32_t word = b->address / 4, end = word + 2; word < end; ++word) {
      wordClock[word] = w.clock;
      wordWriter[word] = me;
    }
    async->mbarriers.erase(b->address);
  }
  ++async->epoch;
}

//===----------------------------------------------------------------------===//
// Phases
//===----------------------------------------------------------------------===//

bool AsyncState::completes(const MBarrier &b) const {
  return b.pending == b.owedCount && b.bytes == b.inFlight;
}

void AsyncState::complete(Run &run, MBarrier &b) {
  if (run.trace)
    run.trace->complete(b.address);
  ++b.phase;
  b.pending = b.expected;
  b.before.join(b.now);
  b.now = Knowledge();
  ++epoch;
}

void AsyncState::settle(Run &run, MBarrier &b) {
  uint32_t clock = ++run.clockCounter;
  for (BulkCopy &copy : b.copies) {
    moveIn(run, copy);
    if (run.trace)
      run.trace->copied(copy.warp, run.program.insts[copy.inst], copy.issued,
                        copy.bytes);
    for (uint32_t at = 0; at < copy.bytes; at += 4)
      landWord(run, (copy.shared + at) / 4, copy.inst, b.copyAgent, clock);
  }
  if (!b.copies.empty())
    b.now.seen[b.copyAgent] = clock;
  for (const OwedArrival &owed : b.owed) {
    Warp &w = run.warps[owed.warp];
    for (AsyncCopy &copy : w.copies) {
      uint64_t due = copy.mask & owed.lanes;
      if (copy.serial >= owed.beforeSerial || !due)
        continue;
      run.land(w, copy, due);
      if (run.trace)
        run.trace->copied(w.id, run.program.insts[copy.inst], copy.issued,
                          copy.bytes *
                              static_cast<uint64_t>(std::popcount(due)));
      copy.mask &= ~due;
      // A lane's arrival awaits all its copies so far, also those that an
      // earlier arrival elsewhere awaits. They count as that mbarrier's: who
      // waits for it alone knows of them, too.
      const MBarrier *first = &b;
      auto before = owed.beforeSerial;
      for (const auto &[address, other] : mbarriers)
        for (const OwedArrival &o : other.owed)
          if (o.warp == owed.warp && (o.lanes & due) &&
              o.beforeSerial > copy.serial && o.beforeSerial < before) {
            first = &other;
            before = o.beforeSerial;
          }
      b.now.seen[first->cpAsyncAgent] = clock;
      for (; due; due &= due - 1) {
        unsigned l = __builtin_ctzll(due);
        for (uint32_t at = 0; at < copy.bytes; at += 4) {
          uint32_t word = (copy.dst[l] + at) / 4;
          if (run.wordClock[word] != clockInFlight ||
              run.wordWriter[word] != (copy.inst << 6 | w.id))
            continue;
          run.wordClock[word] = clock;
          run.wordWriter[word] = copy.inst << 6 | first->cpAsyncAgent;
        }
      }
    }
    std::erase_if(w.copies, [](const AsyncCopy &c) { return !c.mask; });
  }
  if (!b.owed.empty())
    b.now.seen[b.cpAsyncAgent] = clock;
  b.copies.clear();
  b.owed.clear();
  b.bytes = b.inFlight = 0;
  b.owedCount = 0;
  complete(run, b);
}

void AsyncState::surplus(Run &run, Warp &w, const Inst &inst, MBarrier &b) {
  run.fault(FaultKind::MBarrier, w, inst, -1,
            "the mbarrier at " + run.sharedPlace(b.address) + " awaits " +
                std::to_string(b.bytes) + " bytes, but copies of " +
                std::to_string(b.inFlight) + " are in flight (phase " +
                std::to_string(b.phase) + ")",
            "a copy", &run.program.insts[b.copies.back().inst]);
  // Goes on as if they had been announced.
  b.bytes = b.inFlight;
}

void Run::mbarrierArrive(Warp &w, const Inst &inst, const uint32_t *address,
                         const uint32_t *count, const uint32_t *bytes,
                         uint64_t *state, uint64_t mask) {
  MBarrier *last = nullptr;
  for (uint64_t rest = mask; rest && !hot.stop; rest &= rest - 1) {
    unsigned l = __builtin_ctzll(rest);
    MBarrier *b = async->find(*this, w, inst, l, address[l], "arrives at");
    if (!b)
      continue;
    if (state)
      state[l] = b->phase;
    if (inst.flags & mbarrierExpects) {
      if (bytes[l] > maxCount)
        fault(FaultKind::MBarrier, w, inst, l,
              "expects " + std::to_string(bytes[l]) + " bytes; at most " +
                  std::to_string(maxCount) + " are possible");
      b->bytes += bytes[l];
    }
    if (inst.flags & mbarrierCompletes)
      b->bytes -= bytes[l];
    if (inst.flags & mbarrierArrives) {
      uint32_t n = count ? count[l] : 1;
      if (n < 1 || n > b->pending - b->owedCount) {
        fault(FaultKind::MBarrier, w, inst, l,
              "arrives " + std::to_string(n) + " times at the mbarrier at " +
                  sharedPlace(b->address) + ", more than it awaits (" +
                  async->describe(*b) + ")",
              "the arrival before", &program.insts[b->lastArrival]);
        continue;
      }
      if ((inst.flags & mbarrierNoComplete) && n == b->pending)
        fault(FaultKind::MBarrier, w, inst, l,
              "must not complete the phase of the mbarrier at " +
                  sharedPlace(b->address) + ", but is its last arrival");
      b->pending -= n;
      if (trace)
        trace->arrive(b->address, w, inst);
      if (inst.flags & mbarrierDrops)
        b->expected -= n;
      b->lastArrival = &inst - program.insts.data();
      if (!(inst.flags & mbarrierRelaxed) && b != last) {
        b->now.join(w);
        b->now.seen[w.id] = w.clock;
      }
      last = b;
    }
    if (b->pending == 0 && b->inFlight > b->bytes)
      async->surplus(*this, w, inst, *b);
    if (b->pending == 0 && b->bytes == 0 && b->inFlight == 0) {
      async->complete(*this, *b);
      last = nullptr;
    }
  }
  ++async->epoch;
  // What follows is not released by this arrival.
  if (inst.flags & mbarrierArrives)
    releaseLanes(w, mask);
}

// cp.async.mbarrier.arrive: an arrival when this lane's copies are there. With
// `noinc` it is one of those that the mbarrier awaits, else one more.
void Run::mbarrierOwe(Warp &w, const Inst &inst, const uint32_t *address,
                      uint64_t mask) {
  for (uint64_t rest = mask; rest; rest &= rest - 1) {
    unsigned l = __builtin_ctzll(rest);
    MBarrier *b = async->find(*this, w, inst, l, address[l], "arrives at");
    if (!b)
      continue;
    if (tooMany(w, inst, b->owed.size(), "arrivals of copies at one mbarrier"))
      return;
    if (!inst.flags)
      ++b->pending;
    if (b->owedCount == b->pending) {
      fault(FaultKind::MBarrier, w, inst, l,
            "arrives 1 times at the mbarrier at " + sharedPlace(b->address) +
                ", more than it awaits (" + async->describe(*b) + ")",
            "the arrival before", &program.insts[b->lastArrival]);
      continue;
    }
    ++b->owedCount;
    if (trace)
      trace->arrive(b->address, w, inst);
    b->lastArrival = &inst - program.insts.data();
    if (!b->cpAsyncAgent)
      b->cpAsyncAgent = async->newAgent(
          *this, "cp.async for the mbarrier at " + sharedPlace(b->address),
          /*generic=*/true);
    if (!b->owed.empty() && b->owed.back().warp == w.id &&
        b->owed.back().beforeSerial == w.copySerial)
      b->owed.back().lanes |= 1ull << l;
    else
      b->owed.push_back({w.id, 1ull << l, w.copySerial});
    if (options.landing == Landing::Eager && async->completes(*b))
      async->settle(*this, *b);
  }
  ++async->epoch;
}

//===----------------------------------------------------------------------===//
// Waits
//===----------------------------------------------------------------------===//

uint64_t Run::mbarrierTest(Warp &w, const Inst &inst, const uint32_t *address,
                           const uint32_t *phase, const uint64_t *state,
                           uint64_t mask) {
  uint64_t result = 0;
  int before = -1;
  for (uint64_t rest = mask; rest; rest &= rest - 1) {
    unsigned l = __builtin_ctzll(rest);
    // Mostly all lanes ask the same.
    if (before >= 0 && address[l] == address[before] &&
        (phase ? phase[l] == phase[before] : state[l] == state[before])) {
      result |= (result >> before & 1) << l;
      continue;
    }
    before = l;
    // Another warp may be about to initialise it.
    if (!options.strict && !async->mbarriers.count(address[l]))
      continue;
    MBarrier *b = async->find(*this, w, inst, l, address[l], "waits for");
    if (!b) {
      // Nothing could ever end this wait.
      hot.stop |= (inst.flags & mbarrierBlocks) != 0;
      continue;
    }
    if (phase && phase[l] > 1)
      fault(FaultKind::MBarrier, w, inst, l,
            "waits for parity " + std::to_string(phase[l]) + "; it is 0 or 1");
    auto complete = [&] {
      return phase ? (b->phase & 1) != (phase[l] & 1) : b->phase > state[l];
    };
    if (trace)
      trace->moment(w, inst);
    if (!complete() && async->completes(*b))
      async->settle(*this, *b);
    if (trace && l == static_cast<unsigned>(__builtin_ctzll(mask)))
      trace->test(w, inst, b->address, b->phase - 1, complete());
    int64_t &last = b->lastSeen[w.id];
    if (!complete()) {
      // The phase after the one seen last has this parity. If it is over and
      // the next one too, then the wait cannot tell and has missed it.
      if (phase && ((last + 1) & 1) == (phase[l] & 1) &&
          static_cast<int64_t>(b->phase) >= last + 3) {
        fault(FaultKind::MBarrier, w, inst, l,
              "waits for phase " + std::to_string(last + 1) +
                  " of the mbarrier at " + sharedPlace(b->address) +
                  ", but phase " + std::to_string(b->phase - 1) +
                  " has completed already: the parity does not tell them "
                  "apart",
              "its last arrival", &program.insts[b->lastArrival]);
        last = b->phase - 1;
      }
      continue;
    }
    result |= 1ull << l;
    last = b->phase - 1;
    if (!(inst.flags & mbarrierRelaxed))
      b->before.teach(w);
  }
  if (result)
    updateKnown(w);
  if (hot.laneOrder && !(inst.flags & mbarrierRelaxed))
    teachLanes(w, result);
  return result;
}
