//===- Machine.cpp - Launches, blocks, scheduling -------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Async.h"

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

Run::Run(const Program &program, const Options &options,
         std::vector<Range> &ranges, MessageAt message)
    : program(program), options(options), ranges(ranges),
      message(std::move(message)), lanes(program.chip.lanes) {
  random = options.seed * 0x9E3779B97F4A7C15ull + 1;
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

void Run::prepare(const unsigned grid[3], const unsigned block[3],
                  unsigned dynamicShared,
                  const std::vector<const void *> &args) {
  std::copy(block, block + 3, blockSize);
  threads = block[0] * block[1] * block[2];
  warpsPerBlock = (threads + lanes - 1) / lanes;
  unsigned cluster = program.cluster, count = cluster * warpsPerBlock;
  warps.resize(count);
  barriers.resize(16 * cluster);
  size_t perWarp = static_cast<size_t>(program.numSlots) * lanes;
  regs.assign(perWarp * count + 64, 0);
  // Slots start on cache lines.
  uint32_t *first = regs.data();
  while (reinterpret_cast<uintptr_t>(first) % 64)
    ++first;
  hot.sharedBytes = program.staticShared + dynamicShared;
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
  stats.assign(program.numStats, {});
  rangeOf.assign(program.numStats, 0);
  blockRuns.assign(program.blocks.size(), 0);
  blockLanes.assign(program.blocks.size(), 0);

  // A kernel sees a parameter passed by value as memory that it may read.
  byValue.resize(args.size());
  for (const Parameter &p : program.parameters) {
    if (!p.byValue)
      continue;
    std::vector<ParameterBytes> &copy = byValue[p.index];
    copy.resize((p.bytes + 63) / 64);
    std::memcpy(copy.data(), args[p.index], p.bytes);
    uint64_t begin = reinterpret_cast<uint64_t>(copy.data());
    ranges.push_back({begin, begin + p.bytes, nullptr, true, false,
                      "parameter " + std::to_string(p.index)});
  }

  hot.insts = program.insts.data();
  hot.lists = program.lists.data();
  hot.blocks = program.blocks.data();
  hot.blockRuns = blockRuns.data();
  hot.blockLanes = blockLanes.data();
  hot.shared = shared.data();
  hot.checkShadow =
      options.races || options.uninitialized || options.landingChecks;
  hot.words = {wordClock.data(), wordWriter.data(), wordReadMax.data(),
               wordReads.data(), cells};
  hot.local = local.data();
  hot.ranges = ranges.data();
  hot.numRanges = ranges.size();
  hot.rangeOf = rangeOf.data();
  hot.stats = stats.data();
  hot.banks = options.banks ? options.banks : program.chip.banks;
  hot.stop = false;

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
        value = reinterpret_cast<uint64_t>(byValue[p.index].data());
      else
        std::memcpy(&value, static_cast<const char *>(args[p.index]) + p.offset,
                    p.bytes);
      fillSlot(w.regs, lanes, p.slot, p.bytes == 8 || p.byValue, value);
    }
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
    special(Special::NClusterX, grid[0] / cluster);
    special(Special::ClusterRank, w.rank);
    special(Special::SharedBytes, hot.sharedBytes);
    special(Special::DynamicSharedBytes, dynamicShared);
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

void Run::startBlock(uint64_t index, const unsigned grid[3],
                     const unsigned block[3]) {
  blockIndex[0] = index % grid[0];
  blockIndex[1] = index / grid[0] % grid[1];
  blockIndex[2] = index / grid[0] / grid[1];
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
    w.lastRead = 0;
    w.wait = WaitFor::Nothing;
    w.copySerial = 0;
    w.copies.clear();
    std::fill(w.committed, w.committed + maxLanes, 0);
    w.barrier = ~0u;
    w.ldsOps.clear();
    w.ldsIssued = 0;
    w.ldsLast.assign(program.chip.isAMD ? program.numStats : 0, 0);
    w.executed = 0;
    ++blockRuns[0];
    blockLanes[0] += alive;
    for (unsigned d = 0; d < 3; ++d)
      fillSlot(w.regs, lanes,
               program.specials[static_cast<unsigned>(Special::CtaX) + d],
               false, blockIndex[d] + (d ? 0 : w.rank));
    fillSlot(w.regs, lanes,
             program.specials[static_cast<unsigned>(Special::ClusterX)], false,
             blockIndex[0] / program.cluster);
    w.clusterArrived = w.clusterOwing = 0;
    updateKnown(w);
  }
  startAsync();
  for (BarrierState &b : barriers)
    b = BarrierState();
  ended = 0;
}

void Run::updateKnown(Warp &w) {
  w.known = clockLimit;
  for (const Warp &v : warps)
    if (v.id != w.id)
      w.known = std::min(w.known, w.seen[v.id]);
  for (uint64_t rest = agents; rest; rest &= rest - 1)
    w.known = std::min(w.known, w.seen[__builtin_ctzll(rest)]);
}

//===----------------------------------------------------------------------===//
// Execution
//===----------------------------------------------------------------------===//

bool Run::execute(const unsigned grid[3], const unsigned block[3],
                  unsigned dynamicShared, const std::vector<const void *> &args,
                  const std::function<void(uint64_t, uint64_t)> &progress) {
  auto usage = [&](const std::string &text) {
    message(Severity::Error, program.origins[0].location, text);
    return false;
  };
  uint64_t total = 1;
  for (unsigned d = 0; d < 3; ++d) {
    if (!grid[d] || !block[d])
      return usage("a grid and a block need at least one element in each "
                   "dimension");
    total *= grid[d];
  }
  uint64_t size = static_cast<uint64_t>(block[0]) * block[1] * block[2];
  if (size > program.chip.maxThreads)
    return usage("a block of " + std::to_string(size) +
                 " threads; the machine takes " +
                 std::to_string(program.chip.maxThreads));
  uint64_t sharedBytes =
      static_cast<uint64_t>(program.staticShared) + dynamicShared;
  unsigned maxShared =
      options.maxShared ? options.maxShared : program.chip.maxShared;
  if (sharedBytes > maxShared)
    return usage("a block needs " + std::to_string(sharedBytes) +
                 " bytes of shared memory; the machine has " +
                 std::to_string(maxShared));
  if (program.cluster > 1) {
    std::string of = "clusters of " + std::to_string(program.cluster);
    uint64_t count = (size + lanes - 1) / lanes;
    if (grid[0] % program.cluster)
      return usage("a grid of " + std::to_string(grid[0]) +
                   " blocks along x is no whole number of " + of);
    if (count * program.cluster > maxWarps || count % warpsPerGroup ||
        sharedBytes > clusterSpan)
      return usage("blocks of " + std::to_string(count) + " warps and " +
                   std::to_string(sharedBytes) + " bytes do not go into " + of +
                   "; the emulator takes whole warpgroups, " +
                   std::to_string(maxWarps) + " warps in all and " +
                   std::to_string(clusterSpan) + " bytes a block");
  }
  size_t ownRanges = ranges.size();
  prepare(grid, block, dynamicShared, args);
  if (options.maxBlocks)
    total = std::min<uint64_t>(total, options.maxBlocks);
  // The blocks of a cluster run together, as one with all their warps.
  total = (total + program.cluster - 1) / program.cluster * program.cluster;
  for (uint64_t b = 0; b < total && !hot.stop; b += program.cluster) {
    startBlock(b, grid, block);
    runBlock();
    blocksExecuted += program.cluster;
    if (progress)
      progress(b + program.cluster, total);
  }
  ranges.resize(ownRanges);
  return true;
}

// Warps take turns in an order that the seed decides. Nothing that the
// detectors find depends on it; what a wrong kernel computes may.
void Run::runBlock() {
  RunWarpFn run = selectInterpreter(options.portable, lanes);
  for (;;) {
    Warp *ready[maxWarps];
    unsigned count = 0, waiting = 0;
    for (Warp &w : warps) {
      if (w.state == Stop::Blocked && mayGoOn(w))
        w.state = Stop::Yield;
      if (w.state == Stop::Yield)
        ready[count++] = &w;
      waiting += w.state == Stop::Blocked;
    }
    if (!count || (async && spinning())) {
      if (waiting || count)
        async ? asyncDeadlock() : deadlock();
      break;
    }
    Warp &w = *ready[count == 1 ? 0 : next() % count];
    hot.quantum = 64 + next() % 4096;
    hot.sharedBegin = w.rank * clusterSpan;
    w.wait = WaitFor::Nothing;
    Stop stop = run(*this, w);
    if (stop == Stop::Abort)
      return;
    // A barrier may have woken it already.
    if (stop == Stop::Blocked && w.barrier == ~0u && w.wait == WaitFor::Nothing)
      stop = Stop::Yield;
    w.state = stop;
    if (stop == Stop::Exited) {
      endOfWave(w);
      exitAsync(w);
    }
    if (options.landing == Landing::Random)
      landRandom();
  }
  endAsync();
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

bool Run::barrier(Warp &w, const Inst &inst, const uint32_t *id,
                  const uint32_t *count, bool arriveOnly) {
  unsigned lane = __builtin_ctzll(w.mask);
  if (w.mask != w.live) {
    fault(FaultKind::Divergence, w, inst, -1,
          "divergent barrier: " + std::to_string(__builtin_popcountll(w.mask)) +
              " of the warp's " + std::to_string(__builtin_popcountll(w.live)) +
              " lanes execute it");
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
  for (unsigned v = 0; v < maxActors; ++v) {
    b.seen[v] = std::max(b.seen[v], w.seen[v]);
    b.fenced[v] = std::max(b.fenced[v], w.fenced[v]);
  }
  b.seen[w.id] = std::max(b.seen[w.id], w.clock);
  if (arriveOnly) {
    // What follows is not ordered by this barrier.
    w.clock = ++clockCounter;
  } else {
    b.waiting |= 1ull << w.id;
    w.barrier = which;
    w.barrierInst = index;
    w.state = Stop::Blocked;
  }
  if (b.arrived + ended < b.expected)
    return arriveOnly;
  release(b);
  return true;
}

// Lets the warps go on that wait at a barrier.
void Run::release(BarrierState &b) {
  for (Warp &v : warps) {
    if (!(b.waiting >> v.id & 1))
      continue;
    for (unsigned k = 0; k < maxActors; ++k) {
      v.seen[k] = std::max(v.seen[k], b.seen[k]);
      v.fenced[k] = std::max(v.fenced[k], b.fenced[k]);
    }
    v.barrier = ~0u;
    v.state = Stop::Yield;
  }
  ++clockCounter;
  for (Warp &v : warps)
    if (b.waiting >> v.id & 1) {
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
