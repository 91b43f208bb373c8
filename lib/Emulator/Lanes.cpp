//===- Lanes.cpp - The order of the lanes of a warp -----------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The lanes of an NVIDIA warp are threads that go on at their own pace, also
// where they execute the same code (CUDA C++ Programming Guide, "Independent
// Thread Scheduling"). What one of them writes another one may read after
//
//   * `bar.warp.sync`, or a barrier of the block or the cluster,
//   * a wait for an mbarrier,
//   * an atomic operation that acquires, or one and then a fence: these are
//     taken to learn all that the warp's other lanes have done, which may miss
//     a race and finds none that is not there,
//   * unless `strict` is set, whatever the whole warp executes together, such
//     as a shuffle: PTX promises no order of memory there, GPUs keep one.
//
// Waves of AMD's execute in step, and nothing here is asked of them.
//
//===----------------------------------------------------------------------===//

#include "Launch.h"

#include "kvbuffer/Emulator/Emulator.h"

#include <algorithm>
#include <bit>

using namespace kvbuf::emu;

void Run::meetLanes(Warp &w, uint64_t mask) {
  LaneOrder &order = w.lanes;
  if (w.touched <= order.known)
    return;
  if (!(w.live & ~mask)) {
    order.known = w.clock;
    order.apart = false;
  } else {
    uint32_t together = static_cast<uint32_t>(mask);
    if (!order.apart)
      std::fill(std::begin(order.with), std::end(order.with), 0);
    for (uint64_t rest = mask; rest; rest &= rest - 1)
      together |= order.with[std::countr_zero(rest)];
    for (uint64_t rest = mask; rest; rest &= rest - 1) {
      unsigned l = std::countr_zero(rest);
      order.with[l] = together;
      order.until[l] = w.clock;
    }
    order.apart = true;
  }
  tickApart(w);
  updateKnown(w);
}

void Run::teachLanes(Warp &w, uint64_t mask) {
  LaneOrder &order = w.lanes;
  if (w.touched <= order.known || !mask)
    return;
  if (!(w.live & ~mask))
    return meetLanes(w, mask);
  if (!order.apart)
    std::fill(std::begin(order.with), std::end(order.with), 0);
  for (uint64_t rest = mask; rest; rest &= rest - 1) {
    unsigned l = std::countr_zero(rest);
    order.with[l] = ~0u;
    order.until[l] = w.clock;
  }
  order.apart = true;
  tickApart(w);
}

//===----------------------------------------------------------------------===//
// What some lanes tell other warps
//===----------------------------------------------------------------------===//

// A lane that arrives at an mbarrier for its warp says that it has read a slot.
// Of the other lanes it can say so behind a `bar.warp.sync` alone.

void Run::tickApart(Warp &w) {
  if (w.clock != w.apartTo)
    w.apartFrom = w.clock;
  w.clock = w.apartTo = ++clockCounter;
}

void Run::releaseLanes(Warp &w, uint64_t mask) {
  if (!hot.laneOrder || !(w.live & ~mask)) {
    tick(w);
    return;
  }
  // Any other operation since may have told of all.
  uint32_t from = w.clock == w.apartTo ? w.apartFrom : w.clock;
  uint32_t lanes = static_cast<uint32_t>(mask | ~w.live);
  if (w.lanes.apart)
    for (uint64_t rest = mask; rest; rest &= rest - 1)
      lanes |= w.lanes.with[std::countr_zero(rest)];
  if (!w.releases.empty() && w.releases.back().clock >= from)
    lanes |= w.releases.back().lanes;
  w.releases.push_back({w.clock, std::max(from - 1, w.lanes.known), lanes});
  tickApart(w);
}

/// The arrival that is the newest thing that `w` knows of a warp, if that is
/// one of some lanes.
static const LaneRelease *releaseHeard(const Warp &w, const Warp &other) {
  uint32_t clock = w.seen[other.id];
  auto it = std::lower_bound(
      other.releases.begin(), other.releases.end(), clock,
      [](const LaneRelease &r, uint32_t c) { return r.clock < c; });
  return it != other.releases.end() && it->clock == clock ? &*it : nullptr;
}

uint32_t Run::heardOf(const Warp &w, uint32_t actor) const {
  uint32_t clock = w.seen[actor];
  if (!hot.laneOrder || actor >= maxWarps || warps[actor].releases.empty())
    return clock;
  const LaneRelease *release = releaseHeard(w, warps[actor]);
  return release ? release->floor : clock;
}

int Run::unreleasedLane(const Warp &w, uint32_t clock, uint32_t actor,
                        uint32_t lanes) const {
  if (!hot.laneOrder || actor >= maxWarps || actor == w.id ||
      warps[actor].releases.empty())
    return -1;
  const LaneRelease *release = releaseHeard(w, warps[actor]);
  if (!release || clock <= release->floor || clock > release->clock)
    return -1;
  lanes &= ~release->lanes;
  return lanes ? std::countr_zero(lanes) : -1;
}

void Run::observe(Warp &w, const Inst &inst, uint64_t mask, bool reads) {
  uint32_t lanes = static_cast<uint32_t>(mask);
  if (reads)
    w.observing |= lanes;
  if (inst.order & acquires)
    teachLanes(w, w.observing & lanes);
}

int Run::unorderedLane(const LaneOrder &order, unsigned lane, uint32_t lanes,
                       uint32_t clock) const {
  if (clock <= order.known)
    return -1;
  for (uint32_t rest = lanes; rest; rest &= rest - 1) {
    unsigned other = std::countr_zero(rest);
    if (!order.ordered(lane, other, clock))
      return static_cast<int>(other);
  }
  return -1;
}

void Run::laneRace(Warp &w, const Inst &inst, unsigned lane, bool store,
                   const std::string &place, const char *what, unsigned other,
                   const Inst &earlier) {
  const Origin &origin = program.origins[earlier.origin];
  std::string by = std::string("the ") + what + " by lane " +
                   std::to_string(other) + " of the same warp";
  std::string op = "'" + origin.name + "'";
  fault(FaultKind::Race, w, inst, static_cast<int>(lane),
        "race between lanes of a warp: " +
            std::string(store ? "write of " : "read of ") + place +
            " with no 'nvvm.bar.warp.sync' after " + by + ", " + op +
            (origin.location.empty() ? "" : " at " + origin.location),
        by + ", " + op, &earlier);
}

void Run::releaseRace(Warp &w, const Inst &inst, unsigned lane,
                      const std::string &access, const char *what,
                      uint32_t actor, unsigned by, const Inst &earlier) {
  const Origin &origin = program.origins[earlier.origin];
  std::string text = std::string("the ") + what + " by lane " +
                     std::to_string(by) + " of " + actorName(actor) + ", '" +
                     origin.name + "'";
  fault(FaultKind::Race, w, inst, static_cast<int>(lane),
        "shared-memory race: " + access + " after " + text +
            (origin.location.empty() ? "" : " at " + origin.location) +
            ", for which another lane arrived with no 'nvvm.bar.warp.sync'",
        text, &earlier);
}

void Run::storeRace(bool same, Warp &w, const Inst &inst, int lane,
                    const std::string &text, const std::string &note,
                    const Inst *other, const Program *of) {
  if (!same || options.strict)
    return fault(FaultKind::Race, w, inst, lane, text, note, other, of);
  // A kernel of another launch has no place among this one's.
  warning(FaultKind::Race, w, inst, lane,
          text + "; it stores what is there already", note,
          of && of != &program ? nullptr : other);
}

//===----------------------------------------------------------------------===//
// Progress
//===----------------------------------------------------------------------===//

// The interpreter runs one side of a branch after the other, and lanes that
// have arrived where they meet wait there. Where the others poll for what those
// do next, as with a lock that a lane releases behind the loop in which it took
// it, they go on without them, up to the next place to meet.

bool Run::yieldLanes() {
  if (hot.isAMD)
    return false;
  bool any = false;
  for (Warp &w : warps) {
    if (w.state != Stop::Yield || w.wait != WaitFor::Global)
      continue;
    uint64_t others = 0;
    for (uint32_t k = 0; k < w.depth; ++k)
      others |= w.frames[k].mask & w.live & ~w.mask;
    w.yieldLanes = others != 0;
    any |= w.yieldLanes;
  }
  return any;
}

void Run::exchangeLanes(Warp &w, uint32_t block) {
  w.yieldLanes = false;
  while (w.depth) {
    Frame f = w.frames[--w.depth];
    f.mask &= w.live;
    if (f.join == w.join && f.block != w.join) {
      if (!f.mask)
        continue;
      // Those that take the same way to the same place have their turns in a
      // circle.
      uint32_t first = w.depth;
      while (first && w.frames[first - 1].join == w.join &&
             w.frames[first - 1].block != w.join)
        --first;
      ++w.depth;
      std::copy_backward(w.frames + first, w.frames + w.depth - 1,
                         w.frames + w.depth);
      w.frames[first] = {block, w.join, w.mask};
      w.mask = f.mask;
      w.block = f.block;
      w.lanesYielded = true;
      return;
    }
    // Who waits at the meeting point goes on to the one behind it.
    uint64_t waiting = f.mask & ~w.mask;
    w.join = f.join;
    if (!waiting)
      continue;
    push(w, {block, w.join, w.mask});
    w.mask = waiting;
    w.block = f.block;
    w.lanesYielded = true;
    return;
  }
  w.block = block;
}
