//===- GlobalMemory.h - The order of accesses to global memory --*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Blocks run in no order, so that what one writes and another reads or writes
// is a race unless something orders the two: a release and an acquire through
// an atomic variable, with scopes that include the other side (PTX ISA, "Memory
// Consistency Model"; LLVM's AMDGPU backend, "Memory Model"). Memory that
// kernels may write has a *shadow* that notes who accessed each word last. What
// they may only read has none and costs nothing.
//
// A warp's clock (Machine.h) dates its accesses here as well. What a warp knows
// of the warps of its own block is in `Warp::seen`; what it knows of other
// blocks is a `Known`, which most warps never have.
//
//   * A release publishes what the warp knows at an atomic variable: by the
//     order of the atomic operation itself, or by a fence before it.
//   * An atomic read-modify-write keeps what was published there before, an
//     atomic store replaces it.
//   * Who reads the variable atomically learns what was published: at once if
//     the operation acquires, else at the next fence that does.
//
// As in shared memory the lanes of a warp of AMD's count as one thread, and
// those of NVIDIA's are ordered by what Lanes.cpp says.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_LIB_EMULATOR_GLOBALMEMORY_H
#define KVBUF_LIB_EMULATOR_GLOBALMEMORY_H

#include "Machine.h"

namespace kvbuf::emu {

/// What is known of blocks: for each of some, the clock of each of its warps.
/// It is shared and never changes.
class Known {
public:
  using Clocks = std::vector<uint32_t>;

  /// The clock of a warp of a block, 0 if nothing is known.
  uint32_t clock(uint32_t block, uint32_t warp) const;
  /// Those of all warps of a block; null: nothing is known.
  const Clocks *clocksOf(uint32_t block) const;
  /// `a` and `b`, either of which may be null, together.
  static KnownPtr join(const KnownPtr &a, const KnownPtr &b);
  /// The same with a block's clocks.
  static KnownPtr with(const KnownPtr &known, uint32_t block, Clocks clocks);

  /// Whether all that `other` has is in this.
  bool holds(const Known &other) const;

  /// Whether `other` has learnt this, which a warp of a block published: its
  /// own clock then is in it.
  bool isPartOf(const Known &other, uint32_t block, uint32_t warp) const;

private:
  struct Entry {
    uint32_t block;
    std::shared_ptr<const Clocks> clocks;
  };
  /// By block.
  std::vector<Entry> entries;
};

/// What a release published, and who can learn it.
struct Published {
  KnownPtr known;
  /// The block that released it, and its place in the cluster.
  uint32_t block, rank;
  Scope scope;
  /// The warp.
  uint32_t warp = 0;
};

/// What a warp has to do with synchronisation; only of those that do any.
struct WarpOrder {
  /// What the last release fence of at least a scope published.
  KnownPtr released[numScopes];
  /// What atomic operations that do not acquire have read: the next fence may
  /// acquire it.
  std::vector<Published> read;
  /// Between `buffer_wbl2` and the wait for it: what that wait releases.
  KnownPtr writtenBack;
  Scope writeBackScope = Scope::Lane;
};

/// What a warp knows when it accesses memory: its clock, those that it knows of
/// the warps of its block, and what it knows of other blocks.
struct View {
  uint32_t clock;
  const uint32_t *seen;
  const Known *others;
  const LaneOrder *lanes;

  static View of(const Warp &w) {
    return {w.clock, w.seen, w.others.get(), &w.lanes};
  }
};

/// Memory that kernels may write, during one or several launches at once.
class GlobalMemory {
public:
  GlobalMemory();
  ~GlobalMemory();

  /// Numbers for the events of blocks that are to run: the first one.
  uint32_t reserve(size_t count);
  /// What a block did apart from others is to be told, and its stores are in
  /// memory already.
  void beginReplay(Run &run);
  /// It begins to run, on any thread.
  void enter(const Run &run);
  bool watching() const { return !shadows.empty(); }
  /// Takes a range of memory under watch.
  void watch(Range &range);

  /// A plain access by the lanes of `mask` to `bytes` each, which are in
  /// bounds.
  void access(Run &run, Warp &w, const View &view, const Inst &inst,
              const uint64_t *address, uint32_t bytes, uint64_t mask,
              bool store);
  /// An atomic access by a lane, its orders and scope those of `inst`.
  void atomic(Run &run, Warp &w, const Inst &inst, unsigned lane,
              uint64_t address, uint32_t bytes, bool reads, bool writes);
  void fence(Run &run, Warp &w, uint8_t order, Scope scope);
  /// AMD's `buffer_wbl2`: what it writes back is released when a wait for it is
  /// over (`Run::writtenBack`).
  void writeBack(Run &run, Warp &w, Scope scope);
  /// A bulk copy: an event for one that stores, bytes of it, its completion by
  /// a clock.
  uint32_t beginStore(Run &run, Warp &w, const Inst &inst);
  void bulk(Run &run, Warp &w, const View &view, const Inst &inst,
            unsigned lane, uint64_t address, uint32_t bytes, bool store,
            uint32_t event);
  void endStore(uint32_t event, uint32_t clock) {
    if (event)
      events[event].clock = clock;
  }

private:
  /// Accesses by one warp with one instruction at one of its clocks. Number 0
  /// stands for none.
  struct Event {
    uint32_t block, clock, who; // instruction * 64 + warp
  };
  /// The block of an event, which may have ended.
  struct BlockInfo {
    Launch *launch;
    std::string name;
  };
  struct Atomic;
  struct Record;
  struct Page;
  struct Shadow {
    uint64_t begin, end;
    std::vector<std::unique_ptr<Page>> pages;
  };
  struct Access;

  uint32_t newEvent(const Access &a);
  bool ordered(const Access &a, uint32_t event) const;
  KnownPtr publish(Run &run, Warp &w);
  void learn(Run &run, Warp &w, const Published &p);
  static bool covers(Scope scope, const Run &run, const Warp &w,
                     const Published &p);
  void touch(Access &a, uint64_t address, uint32_t bytes);
  /// What is noted for a word, or for a byte of it.
  struct Cell {
    uint32_t &write;
    uint8_t &writeLane;
    uint32_t *reads, *readLanes; // two of each
  };
  void cell(Access &a, uint64_t address, Cell c);
  void againstLanes(Access &a, uint64_t address, uint32_t event,
                    const char *what, uint32_t lanes);
  bool storesSame(const Access &a, bool isOwnWrite) const;
  void against(Access &a, uint64_t address, uint32_t event, const char *what);
  void againstAtomic(Access &a, uint64_t address, const Atomic &atomic);
  Record &recordOf(uint32_t &word, Page &page, uint32_t index);
  Atomic &atomicAt(uint64_t address, uint32_t bytes);
  void compareAtomic(Access &a, uint64_t address, uint32_t bytes);
  static WarpOrder &orderOf(Warp &w);
  const Inst &instOf(uint32_t event) const;

  /// The first event of the stretch that a journal replays.
  uint32_t replayed = 0;
  std::vector<Event> events;
  std::vector<BlockInfo> blocks;
  std::vector<Shadow> shadows;
  std::vector<std::unique_ptr<Record>> records;
};

} // namespace kvbuf::emu

#endif // KVBUF_LIB_EMULATOR_GLOBALMEMORY_H
