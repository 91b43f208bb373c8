//===- Async.h - mbarriers, bulk copies, asynchronous products --*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// State of a block that only kernels for Hopper have. PTX ISA, chapters
// "mbarrier", "Asynchronous operations" and "Asynchronous Warpgroup Level
// Matrix Instructions".
//
// Agents (see Machine.h) write and read shared memory in the background:
//   * one for each mbarrier: the bulk copies that complete on it,
//   * another one for each mbarrier: the cp.async that it waits for,
//   * one for each warpgroup: the operands that its wgmma read,
//   * one for each warp: what its bulk stores read.
// An agent's clock is what waiting for it teaches.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_LIB_EMULATOR_ASYNC_H
#define KVBUF_LIB_EMULATOR_ASYNC_H

#include "GlobalMemory.h"
#include "Launch.h"
#include "MatrixJob.h"

#include "kvbuffer/Runtime/TensorMap.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <vector>

namespace kvbuf::emu {

/// Flags of the instructions on mbarriers.
enum MBarrierFlags : uint8_t {
  mbarrierArrives = 1,
  mbarrierDrops = 2,
  mbarrierNoComplete = 4,
  mbarrierRelaxed = 8,
  mbarrierExpects = 16,
  mbarrierCompletes = 32,
  mbarrierBlocks = 64,  // tests: wait until the phase is complete
  mbarrierParity = 128, // tests: for a parity, not for a state
};

/// Flags of BulkLoad.
enum BulkFlags : uint8_t {
  bulkToCluster = 1, // into each block of the cluster that a word names
  bulkGathers = 2,   // a column and four rows: PTX ISA, "tile::gather4"
};

constexpr unsigned warpsPerGroup = 4;
constexpr unsigned maxGroups = maxWarps / warpsPerGroup;

/// What somebody knows of everybody's clocks.
struct Knowledge {
  uint32_t seen[maxActors] = {}, fenced[maxActors] = {};
  /// Of other blocks' clocks.
  KnownPtr others;

  /// `Source` is a warp, or knowledge.
  template <typename Source> void join(const Source &source);
  /// A warp learns it.
  void teach(Warp &w) const;
};

/// A box on its way, or `bytes` in a row if the map's rank is 0.
struct BulkCopy {
  uint32_t inst, warp;
  rt::SoftwareTensorMap map;
  uint64_t global; // of a copy in a row
  /// Words that a thread sends; no copy of memory.
  bool isWords = false;
  std::array<uint32_t, 4> words = {};
  /// Bytes of another block's memory, as they were when the copy began.
  std::vector<uint8_t> data = {};
  std::array<int32_t, rt::SoftwareTensorMap::maxRank> at;
  /// `at` is a column and four rows of a matrix, not the beginning of a box.
  bool gathers = false;
  uint32_t shared, bytes;
  uint64_t issued = 0; // see Trace.h
  /// The bytes have been moved.
  bool read = false;
  /// Stores: the lane and its group, and when the source is read.
  unsigned lane = 0;
  uint32_t group = 0, clock = 0;
  /// Stores: what global memory's shadow knows them by; 0: nothing.
  uint32_t event = 0;
};

/// cp.async of some lanes whose arrival an mbarrier awaits.
struct OwedArrival {
  uint32_t warp;
  uint64_t lanes;
  uint32_t beforeSerial;
};

struct MBarrier {
  uint32_t address;
  uint32_t initInst, initWarp, initClock;
  /// Warps that have initialised it after that, the same way, and when.
  std::vector<std::pair<uint32_t, uint32_t>> alsoInit;
  bool fenced = false; // visible to the copy engine
  uint32_t expected, pending;
  uint64_t phase = 0; // completed phases
  /// Transactions announced and not done; what copies in flight will do.
  int64_t bytes = 0, inFlight = 0;
  uint32_t owedCount = 0;
  std::vector<BulkCopy> copies;
  std::vector<OwedArrival> owed;
  /// Actors of its copies; 0 until they are needed.
  uint32_t copyAgent = 0, cpAsyncAgent = 0;
  /// What the arrivals of this phase, and of the phases before it, release.
  Knowledge now, before;
  /// The phase whose completion each warp saw last.
  std::array<int64_t, maxWarps> lastSeen;
  uint32_t lastArrival = 0; // instruction

  /// Whether a warp has initialised it.
  bool isInitBy(uint32_t warp) const {
    return initWarp == warp ||
           std::any_of(alsoInit.begin(), alsoInit.end(),
                       [&](const auto &i) { return i.first == warp; });
  }
  /// Whether one more initialisation by a warp, at this time of its own,
  /// changes nothing, or would not if it had come before the first use.
  bool mayInitAgain(uint32_t warp, uint32_t clock, uint32_t count) const {
    bool untouched = phase == 0 && pending == expected && bytes == 0 &&
                     inFlight == 0 && owedCount == 0;
    // Its lanes do it one after the other, at one time.
    bool isFirst =
        !isInitBy(warp) ||
        (initWarp == warp ? initClock == clock
                          : alsoInit.back() == std::pair(warp, clock));
    return count == expected && (untouched || isFirst);
  }
};

/// A job with its storage.
struct MatrixRecord {
  MatrixJob job;
  uint32_t serial;
  uint64_t place; // in its warpgroup's sequence
  uint32_t group; // how many groups were committed before its own
  bool committed, retired = false;
  bool taken = false; // its result has been used or handed out
  std::vector<uint32_t> registers;
  std::vector<uint64_t> descriptors;
  uint32_t clock;
  uint64_t issued = 0; // see Trace.h
};

/// What one warp has in flight.
struct WarpAsync {
  std::deque<MatrixRecord> records;
  uint32_t nextSerial = 1;
  uint32_t groupsCommitted = 0;
  bool needFence = true;
  /// Places in the sequences of its warpgroup (see GroupStep).
  uint64_t matrixSteps = 0, registerSteps = 0;
  std::vector<BulkCopy> stores;
  uint32_t bulkCommitted[maxLanes] = {};
  /// Stores that may not have arrived in global memory.
  struct Written {
    uint32_t lane, group, event;
  };
  std::vector<Written> written;
  uint32_t storeAgent = 0;
  uint32_t registers = 0;
  /// Tests that failed since anything happened in the block.
  uint32_t spins = 0;
  uint64_t spinEpoch = 0;
  uint32_t waitInst = 0;
};

/// One instruction that all warps of a warpgroup have to execute alike.
struct GroupStep {
  uint32_t inst;
  uint32_t clock;
  uint64_t warps; // that were here
  std::vector<uint64_t> descriptors;
  bool stamped = false;
};

struct GroupSequence {
  uint64_t first = 0; // number of the front one
  std::deque<GroupStep> steps;
};

struct AsyncState {
  std::map<uint32_t, MBarrier> mbarriers;
  std::vector<WarpAsync> warps;
  GroupSequence matrix[maxGroups], registers[maxGroups];
  uint32_t matrixAgent[maxGroups] = {};
  /// Clocks of the agents' last reads.
  uint32_t lastRead[maxActors] = {};
  /// Of each block.
  std::vector<uint32_t> freeRegisters;
  /// What the arrivals at the cluster's barrier release: of this phase, and of
  /// the phases before it.
  Knowledge clusterNow, clusterBefore;
  /// The last accesses of warps to other blocks' shared memory, and what the
  /// warps of each block knew when they ended.
  struct BlockEnd {
    uint32_t reached[maxWarps] = {}, reachedBy[maxWarps] = {};
    Knowledge known;
    unsigned warpsEnded = 0;
  };
  std::vector<BlockEnd> ends;
  /// Counts everything that may let a waiting warp go on.
  uint64_t epoch = 0;
  /// Actors of the generic proxy, one bit each.
  uint64_t genericActors = 0;
  std::string agentNames[maxActors];

  /// A new agent's number. Where there are no more, the last is shared: fewer
  /// races are found then, and none that is not there.
  uint32_t newAgent(Run &run, std::string name, bool generic);
  /// The actor of what is copied in the name of an mbarrier.
  uint32_t copyAgentOf(Run &run, MBarrier &b);

  /// The mbarrier at an address; null and a fault if there is none that `w` may
  /// use.
  MBarrier *find(Run &run, Warp &w, const Inst &inst, unsigned lane,
                 uint32_t address, const char *verb);
  std::string describe(const MBarrier &b) const;
  /// Whether the phase completes once everything in flight has landed.
  bool completes(const MBarrier &b) const;
  /// Lands what is in flight for the phase and completes it if that does it.
  void settle(Run &run, MBarrier &b);
  void complete(Run &run, MBarrier &b);
  /// Reports a phase that completes while unannounced copies are in flight.
  void surplus(Run &run, Warp &w, const Inst &inst, MBarrier &b);

  /// Moves a copy's bytes, if that has not been done.
  void moveIn(Run &run, BulkCopy &copy);
  void moveOut(Run &run, const BulkCopy &copy);
  /// The bytes in global memory that row `row` of a box has, and where in the
  /// row they begin.
  struct Piece {
    uint64_t global;
    uint32_t offset, bytes;
  };
  static Piece rowOf(const BulkCopy &copy, uint32_t row);
  static uint32_t rowBytes(const BulkCopy &copy);
  /// Checks that global memory may be accessed; reports once.
  bool checkRow(Run &run, Warp &w, const Inst &inst, unsigned lane,
                const Piece &piece, bool store);
  bool fill(Run &run, Warp &w, const Inst &inst, unsigned lane,
            uint64_t mapAddress, const int32_t *at, uint32_t bytes,
            uint32_t shared, BulkCopy &copy, bool count = true);
  /// Takes a copy on its way to an mbarrier.
  void send(Run &run, Warp &w, const Inst &inst, MBarrier &b, BulkCopy &copy);

  /// Checks a word that the asynchronous proxy reads, and notes the read.
  void readWord(Run &run, Warp &w, const Inst &inst, uint32_t word,
                uint32_t actor, uint32_t clock, bool stamp);
  /// Whether what was written into some words is ordered before what the
  /// asynchronous proxy does for `w`, at a glance; `fresh`: they need not have
  /// been written.
  static bool quiet(const Run &run, const Warp &w, uint32_t word,
                    uint32_t count, bool fresh);
  /// Checks that what lanes have read of words that will be written comes
  /// before.
  static void againstReads(Run &run, Warp &w, const Inst &inst, uint32_t first,
                           uint32_t count);
  /// Words that will be written in the background.
  void writeWords(Run &run, Warp &w, const Inst &inst, uint32_t first,
                  uint32_t count, uint32_t actor);
  void writeWord(Run &run, Warp &w, const Inst &inst, uint32_t word,
                 uint32_t actor);
  /// It has been written at that clock.
  void landWord(Run &run, uint32_t word, uint32_t inst, uint32_t actor,
                uint32_t clock);
  /// Compares a warp's instruction with those of its warpgroup; null after a
  /// fault.
  GroupStep *step(Run &run, Warp &w, const Inst &inst, GroupSequence &sequence,
                  uint64_t &place);
  /// Which warps have executed the instruction at a place; all ones when it is
  /// long past.
  static uint64_t arrived(const GroupSequence &sequence, uint64_t place);
  /// The product of which a word is a result's token; null if of none.
  MatrixRecord *record(WarpAsync &a, uint32_t word);
  void checkOperands(Run &run, Warp &w, const Inst &inst, MatrixRecord &record,
                     GroupStep &step);
  void landStore(Run &run, BulkCopy &copy);
};

} // namespace kvbuf::emu

#endif // KVBUF_LIB_EMULATOR_ASYNC_H
