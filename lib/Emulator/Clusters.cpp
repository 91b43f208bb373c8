//===- Clusters.cpp - Blocks that reach into each other's memory ----------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A cluster runs as one block with the warps of all its blocks, which share a
// line of shared memory: block r's begins at r * clusterSpan, and the addresses
// that a block uses for its own are those of the cluster. So clocks order the
// accesses of all of them, whoever's memory they are to. What is a block's own
// (named barriers, registers to pass on) is kept for each.
//
// A block must not end before the others' accesses to its memory, in an order
// that somebody waited for: PTX ISA, "barrier.cluster", and "Distributed Shared
// Memory" in the CUDA C++ Programming Guide.
//
//===----------------------------------------------------------------------===//

#include "Async.h"
#include "LdsOrder.h"

#include "kvbuffer/Emulator/Emulator.h"

using namespace kvbuf::emu;

//===----------------------------------------------------------------------===//
// The barrier of all threads
//===----------------------------------------------------------------------===//

void Run::clusterArrive(Warp &w, const Inst &inst) {
  AsyncState &a = *async;
  if (w.clusterOwing & w.mask) {
    fault(FaultKind::Barrier, w, inst, -1,
          "arrives at the cluster's barrier again without having waited");
    return;
  }
  w.clusterArrived |= w.mask;
  w.clusterOwing |= w.mask;
  if (!inst.flags) {
    a.clusterNow.join(w);
    a.clusterNow.seen[w.id] = w.clock;
  } else if (ldsOrder && ldsOrder->own[w.id].releasedToCluster) {
    // Relaxed: what a fence before it has released.
    a.clusterNow.join(*ldsOrder->own[w.id].releasedToCluster);
  }
  // What follows is not released by this arrival.
  w.clock = ++clockCounter;
  completeCluster();
}

bool Run::clusterWait(Warp &w, const Inst &inst) {
  if (w.mask & ~w.clusterOwing) {
    fault(FaultKind::Barrier, w, inst, -1,
          "waits at the cluster's barrier without having arrived");
    return true;
  }
  if (w.clusterArrived & w.mask) {
    block(w, inst, WaitFor::Cluster);
    return false;
  }
  w.clusterOwing &= ~w.mask;
  async->clusterBefore.teach(w);
  if (hot.laneOrder)
    meetLanes(w, w.mask);
  w.clock = ++clockCounter;
  updateKnown(w);
  return true;
}

/// Completes the phase if all threads have arrived that have not ended.
void Run::completeCluster() {
  AsyncState &a = *async;
  ++a.epoch;
  bool any = false;
  for (const Warp &w : warps) {
    if (w.state != Stop::Exited && (w.live & ~w.clusterArrived))
      return;
    any |= w.clusterArrived != 0;
  }
  if (!any)
    return;
  for (Warp &w : warps)
    w.clusterArrived = 0;
  a.clusterBefore.join(a.clusterNow);
  a.clusterNow = Knowledge();
}

//===----------------------------------------------------------------------===//
// Other blocks' memory
//===----------------------------------------------------------------------===//

bool Run::reach(Warp &w, const Inst &inst, unsigned lane, uint32_t address,
                uint32_t rank, uint32_t &there) {
  if (rank >= launch.cluster) {
    fault(FaultKind::Bounds, w, inst, lane,
          "reaches into block " + std::to_string(rank) + " of a cluster of " +
              std::to_string(launch.cluster));
    return false;
  }
  if (blockBegin(address) != hot.sharedBegin) {
    fault(FaultKind::Bounds, w, inst, lane,
          sharedPlace(address) + " is not this block's own");
    return false;
  }
  there = address - hot.sharedBegin + rank * clusterSpan;
  if (rank == w.rank)
    return true;
  AsyncState::BlockEnd &end = async->ends[rank];
  if (end.warpsEnded == warpsPerBlock) {
    fault(FaultKind::Race, w, inst, lane,
          "reaches into the shared memory of the cluster's block " +
              std::to_string(rank) + ", which has ended");
    return false;
  }
  end.reached[w.id] = w.clock;
  end.reachedBy[w.id] = &inst - program.insts.data();
  return true;
}

void Run::bulkMulticast(Warp &w, const Inst &inst, unsigned lane, uint32_t dst,
                        uint64_t source, uint32_t mbarrier,
                        const int32_t *coordinates, uint32_t bytes,
                        uint32_t blocks) {
  bool first = true;
  for (uint32_t rank = 0; blocks >> rank; ++rank) {
    uint32_t to, barrier;
    if (!(blocks >> rank & 1) || !reach(w, inst, lane, dst, rank, to) ||
        !reach(w, inst, lane, mbarrier, rank, barrier))
      continue;
    bulkLoad(w, inst, lane, to, source, barrier, coordinates, bytes, first);
    first = false;
  }
}

void Run::clusterStore(Warp &w, const Inst &inst, unsigned lane,
                       uint32_t address, const std::array<uint32_t, 4> &words,
                       uint32_t mbarrier, uint32_t rank) {
  uint32_t to, barrier, bytes = 4 * uint32_t(inst.imm);
  uint32_t addresses[maxLanes] = {};
  addresses[lane] = address;
  if (!checkShared(w, inst, addresses, bytes, 1ull << lane, true) ||
      !reach(w, inst, lane, address, rank, to) ||
      !reach(w, inst, lane, mbarrier, rank, barrier))
    return;
  MBarrier *b =
      async->find(*this, w, inst, lane, barrier, "stores in the name of");
  if (!b)
    return;
  BulkCopy copy;
  copy.inst = &inst - program.insts.data();
  copy.warp = w.id;
  copy.lane = lane;
  copy.map = {};
  copy.at = {};
  copy.global = 0;
  copy.shared = to;
  copy.bytes = bytes;
  copy.isWords = true;
  copy.words = words;
  MemStat &s = hot.stats[inst.stat];
  ++s.accesses;
  s.bytes += bytes;
  async->send(*this, w, inst, *b, copy);
}

void Run::clusterCopy(Warp &w, const Inst &inst, unsigned lane,
                      uint32_t address, uint32_t bytes, uint32_t mbarrier,
                      uint32_t rank) {
  if (bytes % 16 || address % 16) {
    fault(FaultKind::Misaligned, w, inst, lane,
          "misaligned: " + std::to_string(bytes) + " bytes at " +
              sharedPlace(address) + "; both need to be multiples of 16");
    return;
  }
  uint32_t to, barrier;
  if (!reach(w, inst, lane, address, rank, to) ||
      !reach(w, inst, lane, mbarrier, rank, barrier))
    return;
  if (uint64_t(address - hot.sharedBegin) + bytes > hot.sharedBytes) {
    fault(FaultKind::Bounds, w, inst, lane,
          "out of bounds: " + std::to_string(bytes) + " bytes at " +
              sharedPlace(address) + "; the block has " +
              std::to_string(hot.sharedBytes));
    return;
  }
  MBarrier *b =
      async->find(*this, w, inst, lane, barrier, "copies in the name of");
  if (!b)
    return;
  BulkCopy copy;
  copy.inst = &inst - program.insts.data();
  copy.warp = w.id;
  copy.lane = lane;
  copy.map = {};
  copy.at = {};
  copy.global = 0;
  copy.shared = to;
  copy.bytes = bytes;
  // Read at once: who writes there later has waited for the mbarrier's phase,
  // or is told from the stamps that the copies leave.
  copy.data.assign(shared.begin() + address, shared.begin() + address + bytes);
  MemStat &s = hot.stats[inst.stat];
  ++s.accesses;
  s.bytes += bytes;
  uint32_t agent = async->copyAgentOf(*this, *b);
  if (hot.checkShadow)
    for (uint32_t at = 0; at < bytes && !hot.stop; at += 4)
      async->readWord(*this, w, inst, (address + at) / 4, agent, ++clockCounter,
                      /*stamp=*/true);
  async->send(*this, w, inst, *b, copy);
}

//===----------------------------------------------------------------------===//
// Ends
//===----------------------------------------------------------------------===//

/// A warp ends; if it is its block's last one, nothing may be on its way to
/// that block's memory.
void Run::endOfBlock(Warp &w) {
  AsyncState &a = *async;
  AsyncState::BlockEnd &end = a.ends[w.rank];
  w.state = Stop::Exited;
  end.known.join(w);
  completeCluster();
  if (++end.warpsEnded < warpsPerBlock)
    return;
  for (const Warp &v : warps)
    if (v.rank != w.rank && end.reached[v.id] > end.known.seen[v.id])
      fault(FaultKind::Race, v, program.insts[end.reachedBy[v.id]], -1,
            "reaches into the shared memory of the cluster's block " +
                std::to_string(w.rank) +
                ", which may have ended: nothing that its warps waited for "
                "comes after it");
  for (const auto &[address, b] : a.mbarriers)
    if (blockBegin(address) == w.rank * clusterSpan)
      for (const BulkCopy &copy : b.copies)
        fault(FaultKind::InFlight, warps[copy.warp], program.insts[copy.inst],
              copy.lane,
              "still in flight when the block ends that it writes to: nothing "
              "waited for the mbarrier at " +
                  sharedPlace(address) + " (" + a.describe(b) + ")");
}
