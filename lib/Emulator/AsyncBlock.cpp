//===- AsyncBlock.cpp - A block with asynchronous work: order, ends -------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Agents, the shadow as the asynchronous proxy sees it, warps that wait or
// poll, registers, and what has to be finished when a block ends.
//
//===----------------------------------------------------------------------===//

#include "Async.h"
#include "Journal.h"

#include "kvbuffer/Emulator/Emulator.h"

#include <algorithm>

using namespace kvbuf::emu;

Run::~Run() = default;

//===----------------------------------------------------------------------===//
// Knowledge
//===----------------------------------------------------------------------===//

template <typename Source> void Knowledge::join(const Source &source) {
  for (unsigned v = 0; v < maxActors; ++v) {
    seen[v] = std::max(seen[v], source.seen[v]);
    fenced[v] = std::max(fenced[v], source.fenced[v]);
  }
  others = Known::join(others, source.others);
}
template void Knowledge::join(const Warp &);
template void Knowledge::join(const Knowledge &);

void Knowledge::teach(Warp &w) const {
  for (unsigned v = 0; v < maxActors; ++v) {
    w.seen[v] = std::max(w.seen[v], seen[v]);
    w.fenced[v] = std::max(w.fenced[v], fenced[v]);
  }
  w.others = Known::join(w.others, others);
}

uint32_t AsyncState::newAgent(Run &run, std::string name, bool generic) {
  uint32_t actor = maxWarps + __builtin_popcountll(run.agents);
  if (actor >= maxActors)
    return maxActors - 1;
  agentNames[actor] = std::move(name);
  run.agents |= 1ull << actor;
  if (generic)
    genericActors |= 1ull << actor;
  for (Warp &w : run.warps)
    run.updateKnown(w);
  return actor;
}

std::string Run::actorName(uint32_t actor) const {
  if (actor >= maxWarps)
    return async->agentNames[actor];
  std::string name = "warp " + std::to_string(actor % warpsPerBlock);
  if (launch.cluster > 1)
    name += " of the cluster's block " + std::to_string(actor / warpsPerBlock);
  return name;
}

unsigned Run::rows() const {
  return warps.size() + (program.async ? maxActors - maxWarps : 0);
}

bool Run::unfenced(const Warp &w, uint32_t clock, uint32_t other) const {
  return (other < maxWarps || (async->genericActors >> other & 1)) &&
         clock > w.fenced[other];
}

// fence.proxy.async: the generic accesses that the warp knows of come before
// the asynchronous ones of whoever learns what it knows.
void Run::proxyFence(Warp &w, const Inst &inst) {
  for (auto &[address, b] : async->mbarriers)
    b.fenced |= b.initWarp == w.id || b.initClock <= w.seen[b.initWarp];
  if (!inst.imm)
    return; // for the initialisation of mbarriers only
  for (unsigned v = 0; v < maxActors; ++v)
    w.fenced[v] = std::max(w.fenced[v], w.seen[v]);
  w.fenced[w.id] = w.clock;
  tickApart(w);
}

//===----------------------------------------------------------------------===//
// The asynchronous proxy's accesses
//===----------------------------------------------------------------------===//

bool AsyncState::quiet(const Run &run, const Warp &w, uint32_t word,
                       uint32_t count, bool fresh) {
  const uint32_t *clock = run.wordClock.data() + word,
                 *writer = run.wordWriter.data() + word;
  // Neighbours mostly have one writer.
  uint32_t before = maxActors, limit = 0;
  for (uint32_t k = 0; k < count; ++k) {
    uint32_t by = writer[k] & 63;
    if (by != before) {
      before = by;
      limit = by == w.id ? clockLimit - 1 : run.heardOf(w, by);
      if (run.unfenced(w, clockLimit, by))
        limit = std::min(limit, w.fenced[by]);
    }
    if (clock[k] > limit && !(fresh && clock[k] == clockUnwritten))
      return false;
  }
  return true;
}

void AsyncState::readWord(Run &run, Warp &w, const Inst &inst, uint32_t word,
                          uint32_t actor, uint32_t clock, bool stamp) {
  auto cell = [&](Shadow &s, uint32_t c, uint32_t address) {
    uint32_t written = s.writeClock[c], writer = s.writer[c] & 63;
    if (written >= clockLimit ||
        (run.options.races &&
         (run.unordered(w, written, writer) ||
          run.unreleasedLane(w, written, writer, 1u << (s.writeLane[c] & 31)) >=
              0))) {
      run.cellRead(s, w, inst, -1, c, address);
    } else if (run.options.races && run.unfenced(w, written, writer)) {
      const Inst &other = run.program.insts[s.writer[c] >> 6];
      run.fault(FaultKind::Proxy, w, inst, -1,
                "the asynchronous proxy reads " + run.sharedPlace(address) +
                    " with no 'nvvm.fence.proxy' after the generic write by " +
                    run.actorName(writer),
                "the write by " + run.actorName(writer), &other);
    }
    if (!stamp)
      return;
    lastRead[actor] = std::max(lastRead[actor], clock);
    s.reads[run.row(actor) * s.cells + c] =
        static_cast<uint64_t>(clock) << 32 | (&inst - run.program.insts.data());
    s.readMax[c] = std::max(s.readMax[c], clock);
  };
  if (run.wordClock[word] != clockSplit)
    return cell(run.hot.words, word, 4 * word);
  for (unsigned k = 0; k < 4; ++k)
    cell(run.bytes, 4 * word + k, 4 * word + k);
}

void AsyncState::writeWord(Run &run, Warp &w, const Inst &inst, uint32_t word,
                           uint32_t actor) {
  auto cell = [&](Shadow &s, uint32_t c, uint32_t address) {
    uint32_t written = s.writeClock[c], writer = s.writer[c] & 63;
    bool fresh = written == clockUnwritten;
    if (!fresh && written < clockLimit && run.options.races &&
        !run.unordered(w, written, writer) &&
        run.unfenced(w, written, writer)) {
      const Inst &other = run.program.insts[s.writer[c] >> 6];
      run.fault(FaultKind::Proxy, w, inst, -1,
                "the asynchronous proxy writes " + run.sharedPlace(address) +
                    " with no 'nvvm.fence.proxy' after the generic write by " +
                    run.actorName(writer),
                "the write by " + run.actorName(writer), &other);
    }
    run.cellWrite(s, w, inst, -1, c, address, /*async=*/true);
  };
  if (run.wordClock[word] != clockSplit) {
    cell(run.hot.words, word, 4 * word);
  } else {
    for (unsigned k = 0; k < 4; ++k)
      cell(run.bytes, 4 * word + k, 4 * word + k);
  }
  run.wordClock[word] = clockInFlight;
  run.wordWriter[word] =
      static_cast<uint32_t>(&inst - run.program.insts.data()) << 6 | actor;
}

/// Compares a write of the asynchronous proxy with what lanes have read by
/// plain loads. An arrival at an mbarrier comes after the reads, but says
/// nothing of them to the other proxy: on an H200 boxes overtook loads of lanes
/// that had arrived behind them. Of ldmatrix, and of barriers that a block's
/// warps meet at, nothing of the kind has been seen, and other projects'
/// kernels rest on them.
void AsyncState::againstReads(Run &run, Warp &w, const Inst &inst,
                              uint32_t first, uint32_t count) {
  for (const Warp &v : run.warps) {
    uint32_t known = v.id == w.id ? clockLimit - 1 : w.seen[v.id];
    uint32_t done = std::max(w.fenced[v.id], v.loaded);
    if (v.lastRead <= done)
      continue;
    const uint64_t *reads =
        run.hot.words.reads + run.row(v.id) * run.hot.words.cells + first;
    for (uint32_t k = 0; k < count; ++k) {
      uint32_t clock = reads[k] >> 32;
      if (clock <= done || clock > known)
        continue;
      const Inst &other = run.program.insts[static_cast<uint32_t>(reads[k])];
      if (other.op != Code::LoadShared && other.op != Code::LoadGeneric)
        continue;
      run.fault(FaultKind::Proxy, w, inst, -1,
                "the asynchronous proxy writes " +
                    run.sharedPlace(4 * (first + k)) +
                    " with no 'nvvm.fence.proxy' after the generic read by " +
                    run.actorName(v.id),
                "the read by " + run.actorName(v.id), &other);
      return;
    }
  }
}

void AsyncState::writeWords(Run &run, Warp &w, const Inst &inst, uint32_t first,
                            uint32_t count, uint32_t actor) {
  // A block's store into another one's memory is no engine's copy.
  if (run.options.races && inst.op != Code::ClusterStore)
    againstReads(run, w, inst, first, count);
  // Mostly nothing there is newer than what the warp knows. Who has read
  // nothing since need not be asked.
  bool quick = quiet(run, w, first, count, /*fresh=*/true);
  auto ask = [&](uint32_t other, uint32_t last) {
    uint32_t heard = run.heardOf(w, other);
    if (!quick || other == w.id || last <= heard)
      return;
    const uint64_t *reads =
        run.hot.words.reads + run.row(other) * run.hot.words.cells + first;
    uint64_t limit = (static_cast<uint64_t>(heard) << 32) + ~0u;
    bool late = false;
    for (uint32_t k = 0; k < count; ++k)
      late |= reads[k] > limit;
    quick = !late;
  };
  for (const Warp &v : run.warps)
    ask(v.id, v.lastRead);
  for (uint64_t rest = run.agents; rest; rest &= rest - 1)
    ask(__builtin_ctzll(rest), lastRead[__builtin_ctzll(rest)]);
  if (!quick) {
    for (uint32_t k = 0; k < count && !run.hot.stop; ++k)
      writeWord(run, w, inst, first + k, actor);
    return;
  }
  uint32_t me =
      static_cast<uint32_t>(&inst - run.program.insts.data()) << 6 | actor;
  std::fill_n(run.wordClock.begin() + first, count, clockInFlight);
  std::fill_n(run.wordWriter.begin() + first, count, me);
}

void AsyncState::landWord(Run &run, uint32_t word, uint32_t inst,
                          uint32_t actor, uint32_t clock) {
  if (run.wordClock[word] == clockInFlight &&
      run.wordWriter[word] == (inst << 6 | actor))
    run.wordClock[word] = clock;
}

//===----------------------------------------------------------------------===//
// Warpgroups
//===----------------------------------------------------------------------===//

GroupStep *AsyncState::step(Run &run, Warp &w, const Inst &inst,
                            GroupSequence &sequence, uint64_t &place) {
  uint32_t index = &inst - run.program.insts.data();
  uint64_t all = ((1ull << warpsPerGroup) - 1)
                 << w.id / warpsPerGroup * warpsPerGroup;
  while (!sequence.steps.empty() && sequence.steps.front().warps == all) {
    sequence.steps.pop_front();
    ++sequence.first;
  }
  if (run.tooMany(w, inst, sequence.steps.size(),
                  "instructions of a warpgroup that not all of its warps "
                  "execute, or products"))
    return nullptr;
  uint64_t number = place++ - sequence.first;
  if (number == sequence.steps.size())
    sequence.steps.push_back({index, 0, 0, {}, false});
  GroupStep &step = sequence.steps[number];
  if (step.inst != index) {
    run.fault(FaultKind::Divergence, w, inst, -1,
              "the warps of a warpgroup do not execute the same instruction",
              "another warp of it is here", &run.program.insts[step.inst]);
    run.hot.stop = true;
    return nullptr;
  }
  step.warps |= 1ull << w.id;
  ++epoch;
  return &step;
}

uint64_t AsyncState::arrived(const GroupSequence &sequence, uint64_t place) {
  return place < sequence.first ? ~0ull
                                : sequence.steps[place - sequence.first].warps;
}

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

// setmaxnreg: PTX ISA, "Miscellaneous Instructions". The block owns what all
// its lanes have at entry; who decreases gives to whoever increases.
bool Run::setMaxRegisters(Warp &w, const Inst &inst) {
  WarpAsync &a = *w.async;
  uint32_t wanted = inst.imm;
  bool increase = inst.flags;
  if (w.mask != w.live) {
    faultText(FaultKind::Divergence, w, inst, -1,
              "executed by a part of the warp, but it needs all lanes");
    return true;
  }
  if (increase ? wanted < a.registers : wanted > a.registers) {
    fault(FaultKind::Registers, w, inst, -1,
          std::string(increase ? "increases to " : "decreases to ") +
              std::to_string(wanted) + " registers, but the lane has " +
              std::to_string(a.registers));
  } else if (increase) {
    uint32_t more = (wanted - a.registers) * lanes;
    if (more > async->freeRegisters[w.rank]) {
      block(w, inst, WaitFor::Registers);
      return false;
    }
    async->freeRegisters[w.rank] -= more;
  } else {
    async->freeRegisters[w.rank] += (a.registers - wanted) * lanes;
  }
  a.registers = wanted;
  ++async->epoch;
  return async->step(*this, w, inst, async->registers[w.id / warpsPerGroup],
                     a.registerSteps) != nullptr ||
         hot.stop;
}

//===----------------------------------------------------------------------===//
// Waiting
//===----------------------------------------------------------------------===//

void Run::block(Warp &w, const Inst &inst, WaitFor what) {
  WarpAsync &a = *w.async;
  if (a.spinEpoch != async->epoch)
    a.spins = 0;
  a.spinEpoch = async->epoch;
  ++a.spins;
  a.waitInst = &inst - program.insts.data();
  w.wait = what;
}

// Whether it is worth while to let a blocked warp look again.
bool Run::mayGoOn(Warp &w) {
  return w.wait != WaitFor::Nothing && w.async->spinEpoch != async->epoch;
}

bool Run::waitsInVain(const Warp &w, uint32_t times) const {
  return w.async->spins >= times && w.async->spinEpoch == async->epoch;
}

// Whether every warp waits or polls in vain. A poll counts as vain when it was
// the last thing a warp did, for the thousandth time since anything happened.
bool Run::spinning() {
  bool any = false;
  for (const Warp &w : warps) {
    if (w.state == Stop::Exited || w.state == Stop::Blocked)
      continue;
    any = true;
    // Global memory is what other blocks may change.
    if (w.wait == WaitFor::Nothing || w.wait == WaitFor::Global ||
        !waitsInVain(w, 1000))
      return false;
  }
  return any;
}

void Run::asyncDeadlock() {
  struct Waiting {
    const Warp *warp;
    uint32_t inst;
    std::string what;
  };
  std::vector<Waiting> all;
  std::string exited;
  for (const Warp &w : warps) {
    if (w.state == Stop::Exited) {
      exited += (exited.empty() ? "" : ", ") + std::to_string(w.id);
      continue;
    }
    Waiting &x = all.emplace_back(Waiting{&w, w.async->waitInst, ""});
    const Inst &inst = program.insts[x.inst];
    unsigned lane = __builtin_ctzll(w.mask);
    if (w.wait == WaitFor::MBarrier) {
      uint32_t address =
          w.regs[static_cast<size_t>(inst.a) * lanes + lane] + inst.offset;
      auto it = async->mbarriers.find(address);
      x.what = "waits for ";
      if (inst.flags & mbarrierParity)
        x.what +=
            "parity " +
            std::to_string(w.regs[static_cast<size_t>(inst.b) * lanes + lane]) +
            " of ";
      x.what += "the mbarrier at " + sharedPlace(address);
      if (it != async->mbarriers.end())
        x.what += " (" + async->describe(it->second) + ")";
    } else if (w.wait == WaitFor::Registers) {
      x.what = "waits for " +
               std::to_string((inst.imm - w.async->registers) * lanes) +
               " registers, of which " +
               std::to_string(async->freeRegisters[w.rank]) + " are free";
    } else if (w.wait == WaitFor::Cluster) {
      unsigned arrived = 0, alive = 0;
      for (const Warp &v : warps)
        if (v.state != Stop::Exited) {
          arrived += __builtin_popcountll(v.clusterArrived & v.live);
          alive += __builtin_popcountll(v.live);
        }
      x.what = "waits at the cluster's barrier, where " +
               std::to_string(arrived) + " of " + std::to_string(alive) +
               " threads have arrived";
    } else if (w.wait == WaitFor::Product) {
      x.what = "waits for a product that not all warps of warpgroup " +
               std::to_string(w.id / warpsPerGroup) + " execute";
    } else {
      x.inst = w.barrierInst;
      const BarrierState &b = barriers[16 * w.rank + w.barrier];
      x.what = "waits at barrier " + std::to_string(w.barrier) + " (" +
               std::to_string(b.arrived) + " of " + std::to_string(b.expected) +
               " warps arrived)";
    }
  }
  if (all.empty())
    return;
  fault(FaultKind::Deadlock, *all[0].warp, program.insts[all[0].inst], -1,
        all[0].what + ", and nothing can go on" +
            (exited.empty() ? "" : "; ended warps: " + exited));
  // Warps that wait at the same place for the same thing are listed once.
  for (size_t i = 1; i < all.size(); ++i) {
    bool known = false;
    for (size_t k = 0; k < i && !known; ++k)
      known = all[k].inst == all[i].inst && all[k].what == all[i].what;
    if (known)
      continue;
    const Origin &o = program.origins[program.insts[all[i].inst].origin];
    message(Severity::Note, o.location,
            "'" + o.name + "': warp " + std::to_string(all[i].warp->id) + " " +
                all[i].what);
  }
  hot.stop = true;
}

//===----------------------------------------------------------------------===//
// Beginnings and ends
//===----------------------------------------------------------------------===//

void Run::startAsync() {
  if (!program.async)
    return;
  agents = 0;
  async = std::make_unique<AsyncState>();
  async->warps.resize(warps.size());
  async->freeRegisters.assign(launch.cluster, 0);
  async->ends.assign(launch.cluster, {});
  for (Warp &w : warps) {
    w.async = &async->warps[w.id];
    w.async->registers = program.entryRegisters;
  }
}

void Run::exitAsync(Warp &w) {
  if (!async)
    return;
  ++async->epoch;
  WarpAsync &a = *w.async;
  for (MatrixRecord &r : a.records) {
    const Inst &inst = program.insts[r.job.inst];
    if (!r.retired)
      fault(FaultKind::Accumulator, w, inst, -1,
            "still in flight when the warp ends");
    else if (!r.taken && (r.job.flags & wgmmaGroup))
      fault(FaultKind::Accumulator, w, inst, -1,
            "no wait took its result: its registers may be overwritten while "
            "it runs");
  }
  for (const BulkCopy &copy : a.stores)
    fault(FaultKind::InFlight, w, program.insts[copy.inst], copy.lane,
          "may still read shared memory when the warp ends: no "
          "'nvvm.cp.async.bulk.wait_group' after it");
  if (launch.cluster > 1)
    endOfBlock(w);
}

void Run::endAsync() {
  if (!async || hot.stop)
    return;
  for (const auto &[address, b] : async->mbarriers)
    for (const BulkCopy &copy : b.copies)
      fault(FaultKind::InFlight, warps[copy.warp], program.insts[copy.inst],
            copy.lane,
            "still in flight when the block ends: nothing waited for the "
            "mbarrier at " +
                sharedPlace(address) + " (" + async->describe(b) + ")");
  for (unsigned g = 0; g < maxGroups; ++g)
    for (const GroupSequence *s : {&async->matrix[g], &async->registers[g]})
      for (const GroupStep &step : s->steps) {
        unsigned first = g * warpsPerGroup;
        uint64_t all = ((1ull << warpsPerGroup) - 1) << first;
        if (step.warps == all)
          continue;
        fault(FaultKind::Divergence, warps[first], program.insts[step.inst], -1,
              "executed by " +
                  std::to_string(__builtin_popcountll(step.warps)) +
                  " of the " + std::to_string(warpsPerGroup) +
                  " warps of warpgroup " + std::to_string(g));
      }
}

void Run::landRandomBulk() {
  if (!async)
    return;
  for (auto &[address, b] : async->mbarriers) {
    for (BulkCopy &copy : b.copies)
      if (next() % 4 == 0)
        async->moveIn(*this, copy);
    if ((!b.copies.empty() || b.owedCount) && async->completes(b) &&
        next() % 4 == 0)
      async->settle(*this, b);
  }
  for (WarpAsync &a : async->warps)
    for (BulkCopy &copy : a.stores)
      if (next() % 4 == 0)
        async->landStore(*this, copy);
}
