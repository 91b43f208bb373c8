//===- Machine.cpp - Blocks and the turns of their warps ------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Async.h"
#include "Journal.h"
#include "Window.h"

#include "kvbuffer/Emulator/Emulator.h"

#include <algorithm>
#include <cstring>

using namespace kvbuf::emu;

namespace kvbuf::emu {
namespace base {
Stop runWarp32(Run &, Warp &);
Stop runWarp64(Run &, Warp &);
} // namespace base
#ifdef KVBUF_EMU_HAVE_V3
namespace v3 {
Stop runWarp32(Run &, Warp &);
Stop runWarp64(Run &, Warp &);
} // namespace v3
#endif
} // namespace kvbuf::emu

RunWarpFn kvbuf::emu::selectInterpreter(bool portable, unsigned lanes) {
#ifdef KVBUF_EMU_HAVE_V3
  if (!portable && __builtin_cpu_supports("avx2") &&
      __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
    return lanes == 64 ? v3::runWarp64 : v3::runWarp32;
#endif
  return lanes == 64 ? base::runWarp64 : base::runWarp32;
}

// xorshift64*: small, and the same on every host.
uint64_t Run::next() {
  random ^= random >> 12;
  random ^= random << 25;
  random ^= random >> 27;
  return random * 0x2545F4914F6CDD1Dull;
}

void Run::push(Warp &w, Frame frame) {
  if (w.depth == w.frameStore.size()) {
    w.frameStore.resize(w.depth + 16);
    w.frames = w.frameStore.data();
  }
  w.frames[w.depth++] = frame;
}

//===----------------------------------------------------------------------===//
// Set-up
//===----------------------------------------------------------------------===//

static void fillSlot(uint32_t *regs, unsigned lanes, uint32_t slot, bool wide,
                     uint64_t value) {
  uint32_t *d = regs + static_cast<size_t>(slot) * lanes;
  for (unsigned l = 0; l < lanes; ++l) {
    if (wide)
      std::memcpy(d + 2 * l, &value, 8);
    else
      d[l] = static_cast<uint32_t>(value);
  }
}

Run::Run(Launch &launch, Window &window)
    : launch(launch), program(launch.program), window(window),
      options(launch.options), ranges(launch.ranges), message(launch.message),
      lanes(program.chip.lanes), threads(launch.threads),
      warpsPerBlock(launch.warpsPerBlock), clusterSize(launch.cluster),
      interpret(selectInterpreter(options.portable, lanes)) {
  const unsigned *grid = launch.size.grid, *block = launch.size.block;
  unsigned cluster = clusterSize, count = cluster * warpsPerBlock;
  warps.resize(count);
  barriers.resize(16 * cluster);
  size_t perWarp = static_cast<size_t>(program.numSlots) * lanes;
  regs.assign(perWarp * count + 64, 0);
  // Slots start on cache lines.
  uint32_t *first = regs.data();
  while (reinterpret_cast<uintptr_t>(first) % 64)
    ++first;
  hot.sharedBytes = program.staticShared + launch.size.dynamicShared;
  // A little more, so that the fast paths may look at an inactive lane's word.
  uint32_t allShared = (cluster - 1) * clusterSpan + hot.sharedBytes;
  shared.assign(allShared + 64, 0);
  hot.localBytes = program.localBytes;
  local.assign(static_cast<size_t>(program.localBytes) * lanes * count, 0);
  uint32_t cells = (allShared + 3) / 4 + 16;
  wordClock.assign(cells, clockUnwritten);
  wordWriter.assign(cells, 0);
  wordReadMax.assign(cells, 0);
  wordReads.assign(static_cast<size_t>(cells) * rows(), 0);
  wordLane.assign(cells, 0);
  wordLanes.assign(static_cast<size_t>(cells) * rows(), 0);

  hot.insts = program.insts.data();
  hot.lists = program.lists.data();
  hot.blocks = program.blocks.data();
  blockRuns.assign(program.blocks.size(), 0);
  blockLanes.assign(program.blocks.size(), 0);
  stats.assign(program.numStats, {});
  rangeOf.assign(program.numStats, 0);
  hot.blockRuns = blockRuns.data();
  hot.blockLanes = blockLanes.data();
  hot.shared = shared.data();
  hot.checkShadow =
      options.races || options.uninitialized || options.landingChecks;
  hot.cutSums = options.cutSums;
  hot.words = {wordClock.data(),
               wordWriter.data(),
               wordReadMax.data(),
               wordReads.data(),
               wordLane.data(),
               wordLanes.data(),
               cells};
  hot.local = local.data();
  hot.ranges = ranges.data();
  hot.numRanges = ranges.size();
  hot.rangeOf = rangeOf.data();
  hot.stats = stats.data();
  hot.changes = &changes;
  hot.watching = window.memory.watching();
  hot.isAMD = program.chip.isAMD;
  hot.laneOrder = options.races && options.lanes && !hot.isAMD;
  hot.forgiving = hot.laneOrder && !options.strict;
  hot.banks = options.banks ? options.banks : program.chip.banks;

  for (unsigned i = 0; i < count; ++i) {
    Warp &w = warps[i];
    w = Warp{};
    w.id = i;
    w.rank = i / warpsPerBlock;
    unsigned number = i % warpsPerBlock;
    w.regs = first + perWarp * i;
    for (const Constant &c : program.constants)
      fillSlot(w.regs, lanes, c.slot, c.wide,
               c.value + (c.inShared ? w.rank * clusterSpan : 0));
    for (const Parameter &p : program.parameters) {
      uint64_t value = 0;
      if (p.byValue)
        value = reinterpret_cast<uint64_t>(launch.byValue[p.index].data());
      else
        std::memcpy(&value,
                    static_cast<const char *>(launch.args[p.index]) + p.offset,
                    p.bytes);
      fillSlot(w.regs, lanes, p.slot, p.bytes == 8 || p.byValue, value);
    }
    for (unsigned k = 0; k < numHidden; ++k)
      if (program.hidden[k] != noSlot)
        fillSlot(w.regs, lanes, program.hidden[k], true,
                 reinterpret_cast<uint64_t>(launch.hidden[k].data()));
    auto special = [&](Special s, uint32_t value) {
      fillSlot(w.regs, lanes, program.specials[static_cast<unsigned>(s)], false,
               value);
    };
    special(Special::NTidX, block[0]);
    special(Special::NTidY, block[1]);
    special(Special::NTidZ, block[2]);
    special(Special::NCtaX, grid[0]);
    special(Special::NCtaY, grid[1]);
    special(Special::NCtaZ, grid[2]);
    special(Special::WarpId, number);
    special(Special::NWarps, warpsPerBlock);
    special(Special::ClusterRank, w.rank);
    special(Special::ClusterSize, launch.cluster);
    unsigned inCluster[3];
    blockPosition(w.rank, inCluster); // of the one at 0, 0, 0
    for (unsigned d = 0; d < 3; ++d) {
      auto along = [&](Special s) {
        return static_cast<Special>(static_cast<unsigned>(s) + d);
      };
      special(along(Special::NClusterX), grid[d] / launch.size.cluster[d]);
      special(along(Special::ClusterNCtaX), launch.size.cluster[d]);
      special(along(Special::ClusterCtaX), inCluster[d]);
    }
    special(Special::SharedBytes, hot.sharedBytes);
    special(Special::DynamicSharedBytes, launch.size.dynamicShared);
    for (unsigned l = 0; l < lanes; ++l) {
      auto lane = [&](Special s, uint32_t value) {
        w.regs[static_cast<size_t>(program.specials[static_cast<unsigned>(s)]) *
                   lanes +
               l] = value;
      };
      unsigned t = number * lanes + l;
      uint32_t bit = 1u << (l & 31);
      lane(Special::TidX, t % block[0]);
      lane(Special::TidY, t / block[0] % block[1]);
      lane(Special::TidZ, t / block[0] / block[1]);
      lane(Special::LaneId, l);
      lane(Special::LaneMaskEq, bit);
      lane(Special::LaneMaskLt, bit - 1);
      lane(Special::LaneMaskLe, bit | (bit - 1));
      lane(Special::LaneMaskGt, ~(bit | (bit - 1)));
      lane(Special::LaneMaskGe, ~(bit - 1));
    }
  }
}

void Run::start(uint64_t index, uint32_t number) {
  serial = number;
  const unsigned *grid = launch.size.grid;
  // The order of its warps is its own, whenever and beside whomever it runs.
  random = (options.seed * 0x9E3779B97F4A7C15ull + 1) ^
           (index + 1) * 0xD1B54A32D192ED03ull;
  random = random ? random : 1;
  const unsigned *cluster = launch.size.cluster;
  unsigned clusterAt[3];
  for (uint64_t d = 0, rest = index; d < 3; ++d) {
    unsigned n = grid[d] / cluster[d];
    clusterAt[d] = rest % n;
    rest /= n;
    blockIndex[d] = clusterAt[d] * cluster[d];
  }
  bool isTraced = options.trace && index == options.traceBlock && !launch.trace;
  if (isTraced) {
    launch.trace = std::make_unique<Trace>(program, warps.size());
    launch.tracedBlock = blockName(0);
  }
  trace = isTraced ? launch.trace.get() : nullptr;
  hot.tracing = isTraced;
  std::fill(wordClock.begin(), wordClock.end(), clockUnwritten);
  // Everything that earlier blocks did is ordered before this one.
  uint32_t past = clockCounter++;
  for (Warp &w : warps) {
    unsigned first = w.id % warpsPerBlock * lanes;
    unsigned alive = std::min(lanes, threads - first);
    w.full = lanes == 64 ? ~0ull : (1ull << lanes) - 1;
    w.live = alive == 64 ? ~0ull : (1ull << alive) - 1;
    w.mask = w.live;
    w.state = Stop::Yield;
    w.block = 0;
    w.pc = program.blocks[0].begin;
    w.join = noBlock;
    w.depth = 0;
    w.clock = clockCounter;
    std::fill(w.seen, w.seen + maxActors, past);
    std::fill(w.fenced, w.fenced + maxActors, past);
    w.lastRead = w.loaded = w.touched = w.observing = 0;
    w.yieldLanes = w.lanesYielded = false;
    w.lanes = LaneOrder();
    w.lanes.known = past;
    w.releases.clear();
    w.apartFrom = w.apartTo = past;
    w.wait = WaitFor::Nothing;
    w.polls = 0;
    w.pollEpoch = ~0ull;
    w.copySerial = 0;
    w.copies.clear();
    w.marks.clear();
    std::fill(w.committed, w.committed + maxLanes, 0);
    w.tensors = 0;
    w.barrier = ~0u;
    w.ldsOps.clear();
    w.ldsIssued = 0;
    w.ldsLast.assign(program.chip.isAMD ? program.numStats : 0, 0);
    w.executed = 0;
    if (trace)
      trace->enter(w, 0);
    ++hot.blockRuns[0];
    hot.blockLanes[0] += alive;
    unsigned at[3];
    blockPosition(w.rank, at);
    for (unsigned d = 0; d < 3; ++d) {
      auto fill = [&](Special s, unsigned value) {
        fillSlot(w.regs, lanes, program.specials[static_cast<unsigned>(s) + d],
                 false, value);
      };
      fill(Special::CtaX, at[d]);
      fill(Special::ClusterX, clusterAt[d]);
    }
    w.clusterArrived = w.clusterOwing = 0;
    w.others = nullptr;
    w.order = nullptr;
    std::fill(std::begin(w.lastEvents), std::end(w.lastEvents), 0);
    updateKnown(w);
  }
  window.memory.enter(*this);
  storeEvents.assign(1, 0);
  carriedOver.clear();
  startAsync();
  startLdsOrder();
  for (BarrierState &b : barriers)
    b = BarrierState();
  endedWarps = 0;
}

void Run::updateKnown(Warp &w) {
  w.known = hot.laneOrder ? w.lanes.known : clockLimit;
  for (const Warp &v : warps)
    if (v.id != w.id)
      w.known = std::min(w.known, heardOf(w, v.id));
  for (uint64_t rest = agents; rest; rest &= rest - 1)
    w.known = std::min(w.known, w.seen[__builtin_ctzll(rest)]);
}

//===----------------------------------------------------------------------===//
// Execution
//===----------------------------------------------------------------------===//

bool Run::goesOn(Warp &w) {
  if (options.interrupt &&
      __atomic_load_n(options.interrupt, __ATOMIC_RELAXED)) {
    interrupted = hot.stop = true;
    return false;
  }
  if (w.executed <= options.maxInstructions)
    return true;
  fault(FaultKind::Limit, w, program.insts[w.pc], -1,
        "the warp has executed more than " +
            std::to_string(options.maxInstructions) +
            " instructions in this block ('max_instructions'); it may never "
            "end");
  hot.stop = true;
  return false;
}

// Warps take turns in an order that the seed decides. Nothing that the
// detectors find depends on it; what a wrong kernel computes may.
bool Run::turn() {
  hot.giveWay = false;
  newFaults = 0;
  // So many instructions, if nothing makes the block give way before.
  for (int64_t left = (1 << 20) + next() % (1 << 20);
       left > 0 && !hot.giveWay;) {
    Warp *ready[maxWarps];
    unsigned count = 0, waiting = 0;
    for (Warp &w : warps) {
      if (w.state == Stop::Blocked && mayGoOn(w))
        w.state = Stop::Yield;
      if (w.state == Stop::Yield)
        ready[count++] = &w;
      waiting += w.state == Stop::Blocked;
    }
    if (count && ldsOrder && pollsInVain()) {
      pollDeadlock();
      endAsync();
      return false;
    }
    if (!count || (async && spinning())) {
      if (waiting || count)
        async ? asyncDeadlock() : deadlock();
      endAsync();
      return false;
    }
    Warp &w = *ready[count == 1 ? 0 : next() % count];
    uint64_t before = w.executed;
    if (!step(w))
      return false;
    left -= w.executed - before + 16;
    if (hot.held) {
      heldWarp = &w;
      return true;
    }
    if (options.landing == Landing::Random)
      landRandom();
  }
  return true;
}

bool Run::step(Warp &w) {
  hot.quantum = 64 + next() % 4096;
  hot.sharedBegin = w.rank * clusterSpan;
  hot.held = false;
  w.wait = WaitFor::Nothing;
  Stop stop = interpret(*this, w);
  if (stop == Stop::Abort || (stop != Stop::Exited && !goesOn(w)))
    return false;
  // A barrier may have woken it already.
  if (stop == Stop::Blocked && w.barrier == ~0u && w.wait == WaitFor::Nothing)
    stop = Stop::Yield;
  w.state = stop;
  if (stop == Stop::Exited) {
    endOfWave(w);
    exitAsync(w);
  }
  return true;
}

bool Run::executeHeld() {
  Warp &w = *heldWarp;
  heldWarp = nullptr;
  hot.giveWay = false;
  bool goesOn = step(w);
  window.epoch += changes;
  changes = 0;
  if (options.landing == Landing::Random)
    landRandom();
  return goesOn;
}

//===----------------------------------------------------------------------===//
// Waiting for other blocks
//===----------------------------------------------------------------------===//

void Run::communicate(Warp &w, const Inst &inst, bool changed) {
  window.epoch += changes;
  changes = 0;
  if (changed) {
    ++window.epoch;
    hot.giveWay |= next() % 2;
    return;
  }
  if (w.pollEpoch != window.epoch) {
    w.pollEpoch = window.epoch;
    w.polls = 0;
  }
  w.pollInst = &inst - program.insts.data();
  if (++w.polls == 1 && next() % 2)
    return;
  w.wait = WaitFor::Global;
  hot.giveWay = true;
}

const Warp *Run::polling() const {
  for (const Warp &w : warps)
    if (w.state == Stop::Yield && w.wait == WaitFor::Global)
      return &w;
  return nullptr;
}

bool Run::onlyPolls() const {
  for (const Warp &w : warps)
    if (w.state == Stop::Yield && w.wait != WaitFor::Global &&
        w.wait != WaitFor::MBarrier)
      return false;
  return polling();
}

bool Run::waits() const {
  // What was read twice since the last change may be asked for in vain.
  constexpr uint32_t inVain = 2;
  for (const Warp &w : warps) {
    if (w.state != Stop::Yield)
      continue;
    bool polls = w.wait == WaitFor::Global && w.polls >= inVain &&
                 w.pollEpoch == window.epoch;
    bool waits = w.wait == WaitFor::MBarrier && waitsInVain(w, inVain);
    if (!polls && !waits)
      return false;
  }
  return polling();
}
