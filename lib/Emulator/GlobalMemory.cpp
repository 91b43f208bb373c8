//===- GlobalMemory.cpp - The order of accesses to global memory ----------===//
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
#include <set>

using namespace kvbuf::emu;

/// A write that is on its way: nothing comes after it yet.
static constexpr uint32_t clockPending = ~0u;

/// Numbers of events end here; above them are numbers of records.
static constexpr uint32_t recordBit = 1u << 31;

/// Events that are kept: what comes after them is not noted, so that races are
/// missed, and none is found that is not there.
static constexpr size_t maxEvents = 1 << 27;

/// The block of what many have published.
static constexpr uint32_t noBlockAtAll = ~0u;

//===----------------------------------------------------------------------===//
// The shadow
//===----------------------------------------------------------------------===//

// A word's `write` is the event of the last plain write, or names a record.
// Of its readers two are kept that nothing orders: the latest ones.
struct GlobalMemory::Page {
  static constexpr uint32_t words = 1024;
  uint32_t write[words] = {};
  uint8_t writeLane[words] = {};
  /// Two for each word, and behind all of them the lanes of each.
  std::unique_ptr<uint32_t[]> reads;

  uint32_t *readsOf(uint32_t index) {
    if (!reads)
      reads = std::make_unique<uint32_t[]>(4 * words);
    return reads.get() + 2 * index;
  }
};

/// A variable that is accessed atomically.
struct GlobalMemory::Atomic {
  /// The last atomic write, and the last reads.
  uint32_t write = 0, reads[2] = {};
  Scope writeScope = Scope::System;
  /// Block and warp of those who have read what the last write left.
  std::set<std::pair<uint32_t, uint32_t>> observers;
  std::vector<Published> published;
  /// What all of those published that release to the device, together: a word
  /// that a whole grid counts in has as many as there are blocks.
  KnownPtr wide;

  bool isObserver(uint32_t block, uint32_t warp) const {
    return observers.contains({block, warp});
  }
};

/// A word that is accessed in parts or atomically: what a page has for a word,
/// for each of its bytes.
struct GlobalMemory::Record {
  uint32_t write[4], reads[4][2], readLanes[4][2];
  uint8_t writeLane[4];
  std::shared_ptr<Atomic> atomic;
};

/// An access on its way through the shadow.
struct GlobalMemory::Access {
  Run &run;
  Warp &w;
  View view;
  const Inst &inst;
  bool store;
  int lane = -1;
  uint32_t event = 0;
  /// An event that is known to be ordered before this access.
  uint32_t ordered = 0;
  Shadow *shadow = nullptr;
  /// Where the lane's part of it begins.
  uint64_t begin = 0;
  /// For messages; 0: as the instruction says.
  uint32_t bytes = 0;
  /// Atomic operations are not compared with others at the same variable here.
  bool atomic = false;
};

GlobalMemory::GlobalMemory() { events.push_back({}); }
GlobalMemory::~GlobalMemory() = default;

uint32_t GlobalMemory::reserve(size_t count) {
  size_t first = blocks.size();
  blocks.resize(first + count);
  return first;
}

void GlobalMemory::enter(const Run &run) {
  blocks[run.serial] = {&run.launch, run.blockName(0)};
}

void GlobalMemory::watch(Range &range) {
  if (range.begin == range.end)
    return;
  Shadow &s = shadows.emplace_back();
  s.begin = range.begin & ~3ull;
  s.end = range.end;
  s.pages.resize((s.end - s.begin) / (4 * Page::words) + 1);
  range.watched = true;
}

uint32_t GlobalMemory::newEvent(const Access &a) {
  uint32_t who =
      static_cast<uint32_t>(&a.inst - a.run.program.insts.data()) << 6 | a.w.id;
  // A loop between two synchronisations needs no new ones.
  uint32_t &last = a.w.lastEvents[(who >> 6) % std::size(a.w.lastEvents)];
  const Event &e = events[last];
  if (last && e.who == who && e.clock == a.view.clock &&
      e.block == a.run.serial)
    return last;
  if (events.size() >= maxEvents)
    return last = 0;
  events.push_back({a.run.serial, a.view.clock, who});
  return last = events.size() - 1;
}

bool GlobalMemory::ordered(const Access &a, uint32_t event) const {
  const Event &e = events[event];
  uint32_t warp = e.who & 63;
  if (e.clock == clockPending)
    return false;
  if (e.block == a.run.serial)
    return warp == a.w.id || e.clock <= a.view.seen[warp];
  return a.view.others && a.view.others->clock(e.block, warp) >= e.clock;
}

GlobalMemory::Record &GlobalMemory::recordOf(uint32_t &word, Page &page,
                                             uint32_t index) {
  if (word & recordBit)
    return *records[word & ~recordBit];
  records.push_back(std::make_unique<Record>());
  Record &r = *records.back();
  for (unsigned b = 0; b < 4; ++b) {
    r.write[b] = word;
    r.writeLane[b] = page.writeLane[index];
    for (unsigned k = 0; k < 2; ++k) {
      const uint32_t *read = page.reads ? page.readsOf(index) + k : nullptr;
      r.reads[b][k] = read ? *read : 0;
      r.readLanes[b][k] = read ? read[2 * Page::words] : 0;
    }
  }
  word = recordBit | (records.size() - 1);
  return r;
}

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

void GlobalMemory::against(Access &a, uint64_t address, uint32_t event,
                           const char *what) {
  Run &run = a.run;
  const Event &e = events[event];
  const BlockInfo &info = blocks[e.block];
  const Program &program = info.launch->program;
  const Inst &other = program.insts[e.who >> 6];
  bool ownBlock = e.block == run.serial;
  std::string by = std::string("the ") + what + " by warp " +
                   std::to_string((e.who & 63) % info.launch->warpsPerBlock) +
                   " of " + (ownBlock ? "the same block" : info.name);
  std::string why;
  auto releases = [&](const Published &p) {
    return p.known->clock(e.block, e.who & 63) >= e.clock;
  };
  auto hasRead = [&](const Warp &w) {
    return w.order &&
           std::any_of(w.order->read.begin(), w.order->read.end(), releases);
  };
  if (e.clock == clockPending)
    why = ", which is on its way: no 'nvvm.cp.async.bulk.wait_group' for more "
          "than its source";
  else if (ownBlock)
    why = " with no barrier after ";
  else if (std::any_of(run.warps.begin(), run.warps.end(), hasRead))
    why = " with no acquire: what this block has read atomically releases ";
  else
    why = ": nothing that this warp has acquired releases ";
  std::string text = std::string("global-memory race: ") +
                     (a.store ? "write of " : "read of ") +
                     run.globalPlace(address, a.bytes ? a.bytes : a.inst.imm);
  text += e.clock == clockPending ? " unordered with " + by + why : why + by;
  bool isWrite = event >= replayed && what[0] == 'w';
  run.storeRace(a.store && what[0] == 'w' && e.clock != clockPending &&
                    storesSame(a, isWrite),
                a.w, a.inst, a.lane, text,
                by + ", '" + program.origins[other.origin].name + "'", &other,
                &program);
}

void GlobalMemory::againstAtomic(Access &a, uint64_t address,
                                 const Atomic &atomic) {
  auto check = [&](uint32_t event, const char *what) {
    if (event && !ordered(a, event))
      against(a, address, event, what);
  };
  // Who has read a value comes after those who wrote it, as far as this
  // variable is concerned.
  if (!atomic.isObserver(a.run.serial, a.w.id))
    check(atomic.write, "atomic write");
  if (a.store)
    for (uint32_t read : atomic.reads)
      check(read, "atomic read");
}

//===----------------------------------------------------------------------===//
// Plain accesses
//===----------------------------------------------------------------------===//

const Inst &GlobalMemory::instOf(uint32_t event) const {
  const Event &e = events[event];
  return blocks[e.block].launch->program.insts[e.who >> 6];
}

// Compares with what lanes of the own warp have done.
void GlobalMemory::againstLanes(Access &a, uint64_t address, uint32_t event,
                                const char *what, uint32_t lanes) {
  const Event &e = events[event];
  if (!a.run.hot.laneOrder || a.lane < 0 || event == a.event ||
      e.block != a.run.serial || (e.who & 63) != a.w.id ||
      e.clock == clockPending)
    return;
  int by = a.run.unorderedLane(*a.view.lanes, a.lane, lanes, e.clock);
  if (by < 0 || (a.store && storesSame(a, /*isOwnWrite=*/false)))
    return;
  a.run.laneRace(a.w, a.inst, a.lane, a.store,
                 a.run.globalPlace(address, a.bytes ? a.bytes : a.inst.imm),
                 what, by, instOf(event));
}

bool GlobalMemory::storesSame(const Access &a, bool isOwnWrite) const {
  if (a.atomic || a.bytes || a.lane < 0)
    return false;
  return a.run.storesSame(a.w, a.inst, a.lane, a.begin, a.inst.imm, isOwnWrite);
}

void GlobalMemory::beginReplay(Run &run) {
  replayed = events.size();
  for (Warp &w : run.warps)
    std::fill(std::begin(w.lastEvents), std::end(w.lastEvents), 0);
}

void GlobalMemory::cell(Access &a, uint64_t address, Cell c) {
  uint32_t &write = c.write, *reads = c.reads;
  if (write && write != a.ordered) {
    if (!ordered(a, write))
      against(a, address, write, "write");
    else
      a.ordered = write;
  }
  if (write)
    againstLanes(a, address, write, "write", 1u << c.writeLane);
  auto stale = [&](uint32_t event, const char *text) {
    const Program &other = blocks[events[event].block].launch->program;
    a.run.fault(FaultKind::Race, a.w, a.inst, a.lane,
                text + a.run.globalPlace(address, a.inst.imm), "the other one",
                &instOf(event), &other);
  };
  if (!a.store) {
    if (write && (a.inst.order & invariantAccess))
      stale(write, "invariant load of memory that the kernel writes: the cache "
                   "that serves it sees no write; ");
    uint32_t lane = 1u << (a.lane & 31);
    for (unsigned k = 0; k < 2; ++k)
      if (reads[k] == a.event) {
        c.readLanes[k] |= lane;
        return;
      }
    bool first = !reads[0] || ordered(a, reads[0]);
    bool second = !reads[1] || ordered(a, reads[1]);
    if (first && second)
      reads[1] = 0;
    else if (!first && !second) {
      reads[1] = reads[0];
      c.readLanes[1] = c.readLanes[0];
    }
    unsigned at = first || !second ? 0 : 1;
    reads[at] = a.event;
    c.readLanes[at] = lane;
    return;
  }
  for (unsigned k = 0; k < 2; ++k) {
    uint32_t read = reads[k];
    if (!read)
      continue;
    againstLanes(a, address, read, "read", c.readLanes[k]);
    if (!ordered(a, read))
      against(a, address, read, "read");
    else if (instOf(read).order & invariantAccess)
      stale(read, "writes memory of which there is an invariant load: the "
                  "cache that serves it sees no write; ");
    reads[k] = 0;
  }
  write = a.event;
  c.writeLane = a.lane & 31;
}

void GlobalMemory::touch(Access &a, uint64_t address, uint32_t bytes) {
  if (!a.shadow || address < a.shadow->begin || address >= a.shadow->end) {
    a.shadow = nullptr;
    for (Shadow &s : shadows)
      if (address >= s.begin && address < s.end)
        a.shadow = &s;
    if (!a.shadow)
      return; // read-only
  }
  if (!a.event)
    a.event = newEvent(a);
  for (uint64_t at = address, end = address + bytes; at < end;) {
    uint64_t word = at / 4 - a.shadow->begin / 4;
    std::unique_ptr<Page> &page = a.shadow->pages[word / Page::words];
    if (!page)
      page = std::make_unique<Page>();
    uint32_t index = word % Page::words;
    uint64_t stop = std::min<uint64_t>(end, (at & ~3ull) + 4);
    uint32_t &write = page->write[index];
    if (stop - at == 4 && !(write & recordBit)) {
      // Mostly outputs, which nothing reads.
      uint8_t &lane = page->writeLane[index];
      if (a.store && !write && !page->reads) {
        write = a.event;
        lane = a.lane & 31;
      } else {
        uint32_t *reads = page->readsOf(index);
        cell(a, at, {write, lane, reads, reads + 2 * Page::words});
      }
    } else {
      Record &r = recordOf(write, *page, index);
      if (r.atomic && !a.atomic)
        againstAtomic(a, at, *r.atomic);
      for (uint64_t b = at; b < stop; ++b)
        cell(a, b,
             {r.write[b & 3], r.writeLane[b & 3], r.reads[b & 3],
              r.readLanes[b & 3]});
      if (r.atomic && a.store && !a.atomic)
        r.atomic->published.clear(), r.atomic->wide.reset();
    }
    at = stop;
  }
}

void GlobalMemory::access(Run &run, Warp &w, const View &view, const Inst &inst,
                          const uint64_t *address, uint32_t bytes,
                          uint64_t mask, bool store) {
  Access a{run, w, view, inst, store};
  for (uint64_t rest = mask; rest; rest &= rest - 1) {
    a.lane = __builtin_ctzll(rest);
    a.begin = address[a.lane];
    touch(a, a.begin, bytes);
  }
}

//===----------------------------------------------------------------------===//
// Bulk copies
//===----------------------------------------------------------------------===//

uint32_t GlobalMemory::beginStore(Run &run, Warp &w, const Inst &inst) {
  if (events.size() >= maxEvents)
    return 0;
  events.push_back(
      {run.serial, clockPending,
       static_cast<uint32_t>(&inst - run.program.insts.data()) << 6 | w.id});
  return events.size() - 1;
}

void GlobalMemory::bulk(Run &run, Warp &w, const View &view, const Inst &inst,
                        unsigned lane, uint64_t address, uint32_t bytes,
                        bool store, uint32_t event) {
  Access a{run, w, view, inst, store};
  a.lane = lane;
  a.event = event;
  a.bytes = bytes;
  touch(a, address, bytes);
}

//===----------------------------------------------------------------------===//
// Synchronisation
//===----------------------------------------------------------------------===//

bool GlobalMemory::covers(Scope scope, const Run &run, const Warp &w,
                          const Published &p) {
  if (scope >= Scope::Device)
    return true;
  if (p.block != run.serial)
    return false;
  return scope == Scope::Cluster || (scope == Scope::Block && p.rank == w.rank);
}

KnownPtr GlobalMemory::publish(Run &run, Warp &w) {
  Known::Clocks clocks(w.seen, w.seen + maxWarps);
  clocks[w.id] = w.clock;
  return Known::with(w.others, run.serial, std::move(clocks));
}

void GlobalMemory::learn(Run &run, Warp &w, const Published &p) {
  if (w.others == p.known)
    return;
  w.others = Known::join(w.others, p.known);
  const Known::Clocks *own = p.known->clocksOf(run.serial);
  bool newer = false;
  for (unsigned v = 0; own && v < maxWarps; ++v) {
    newer |= (*own)[v] > w.seen[v];
    w.seen[v] = std::max(w.seen[v], (*own)[v]);
  }
  if (newer)
    run.updateKnown(w);
}

void GlobalMemory::fence(Run &run, Warp &w, uint8_t order, Scope scope) {
  WarpOrder &own = orderOf(w);
  if (order & acquires)
    std::erase_if(own.read, [&](const Published &p) {
      if (!covers(std::min(scope, p.scope), run, w, p))
        return false;
      learn(run, w, p);
      return true;
    });
  if (!(order & releases))
    return;
  KnownPtr known = publish(run, w);
  for (unsigned s = 0; s <= static_cast<unsigned>(scope); ++s)
    own.released[s] = known;
  // What follows is not released by this fence.
  run.tick(w);
}

GlobalMemory::Atomic &GlobalMemory::atomicAt(uint64_t address, uint32_t bytes) {
  // The variable at an address that is watched; words of one of 8 bytes share
  // it.
  std::shared_ptr<Atomic> found;
  for (unsigned pass = 0; pass < 2; ++pass) {
    if (pass && !found)
      found = std::make_shared<Atomic>();
    for (uint64_t at = address & ~3ull; at < address + bytes; at += 4)
      for (Shadow &s : shadows) {
        if (at < s.begin || at >= s.end)
          continue;
        uint64_t word = at / 4 - s.begin / 4;
        std::unique_ptr<Page> &page = s.pages[word / Page::words];
        if (!page)
          page = std::make_unique<Page>();
        uint32_t index = word % Page::words;
        Record &r = recordOf(page->write[index], *page, index);
        if (!found)
          found = r.atomic;
        if (pass && !r.atomic)
          r.atomic = found;
      }
  }
  return *found;
}

void GlobalMemory::atomic(Run &run, Warp &w, const Inst &inst, unsigned lane,
                          uint64_t address, uint32_t bytes, bool reads,
                          bool writes) {
  auto isWatched = [&](const Shadow &s) {
    return address >= s.begin && address < s.end;
  };
  if (std::none_of(shadows.begin(), shadows.end(), isWatched))
    return; // read-only
  // Against plain accesses it is one of those.
  Access a{run, w, View::of(w), inst, writes};
  a.lane = lane;
  a.atomic = true;
  Atomic &at = atomicAt(address, bytes);
  compareAtomic(a, address, bytes);

  // Two atomic operations are no race if each takes part in the other's scope.
  if (at.write && !ordered(a, at.write) && !at.isObserver(run.serial, w.id)) {
    const Event &e = events[at.write];
    unsigned perBlock = blocks[e.block].launch->warpsPerBlock;
    Published other{nullptr, e.block, (e.who & 63) / perBlock, at.writeScope};
    if (!covers(std::min(inst.scope, at.writeScope), run, w, other))
      against(a, address, at.write, "atomic write of too narrow a scope");
  }
  bool acquiresNow = reads && (inst.order & acquires);
  if (reads && !at.published.empty()) {
    bool isWide = inst.scope >= Scope::Device && at.wide;
    if (isWide && acquiresNow) {
      learn(run, w, {at.wide, noBlockAtAll, 0, Scope::Device});
    } else if (isWide) {
      std::vector<Published> &read = orderOf(w).read;
      std::erase_if(read, [&](const Published &r) {
        return r.block == noBlockAtAll && at.wide->holds(*r.known);
      });
      read.push_back({at.wide, noBlockAtAll, 0, Scope::Device});
    }
    for (const Published &p : at.published) {
      // Fences of the block may ask for what the block itself released.
      if (isWide && p.scope >= Scope::Device && p.block != run.serial)
        continue;
      Scope scope = std::min(p.scope, inst.scope);
      if (!covers(scope, run, w, p))
        continue;
      if (acquiresNow) {
        learn(run, w, p);
        continue;
      }
      std::vector<Published> &read = orderOf(w).read;
      auto isThis = [&](const Published &r) { return r.known == p.known; };
      if (std::none_of(read.begin(), read.end(), isThis))
        read.push_back({p.known, p.block, p.rank, scope});
    }
  }
  a.view = View::of(w); // with what it has just learnt
  if (!writes) {
    at.observers.insert({run.serial, w.id});
    unsigned k = at.reads[0] && !ordered(a, at.reads[0]);
    at.reads[k] = a.event;
    return;
  }
  at.write = a.event;
  at.writeScope = inst.scope;
  at.observers.clear();
  if (reads)
    at.observers.insert({run.serial, w.id});
  else
    at.published.clear(), at.wide.reset();
  auto add = [&](const KnownPtr &known, Scope scope) {
    // What it releases now contains what it released before.
    // What it acquired before is part of what it releases.
    std::erase_if(at.published, [&](const Published &p) {
      return p.scope <= scope && p.known->isPartOf(*known, p.block, p.warp);
    });
    at.published.push_back({known, run.serial, w.rank, scope, w.id});
    if (scope >= Scope::Device)
      at.wide = Known::join(at.wide, known);
  };
  if (inst.order & releases) {
    add(publish(run, w), inst.scope);
    return;
  }
  if (!w.order)
    return;
  for (unsigned s = static_cast<unsigned>(Scope::Block);
       s <= static_cast<unsigned>(inst.scope); ++s)
    if (const KnownPtr &known = w.order->released[s])
      if (s == static_cast<unsigned>(inst.scope) ||
          known != w.order->released[s + 1])
        add(known, static_cast<Scope>(s));
}

WarpOrder &GlobalMemory::orderOf(Warp &w) {
  if (!w.order)
    w.order = std::make_shared<WarpOrder>();
  return *w.order;
}

/// Compares an atomic operation with the plain accesses before it.
void GlobalMemory::compareAtomic(Access &a, uint64_t address, uint32_t bytes) {
  a.event = newEvent(a);
  for (uint64_t at = address; at < address + bytes; ++at)
    for (Shadow &s : shadows) {
      if (at < s.begin || at >= s.end)
        continue;
      uint64_t word = at / 4 - s.begin / 4;
      Page &page = *s.pages[word / Page::words];
      Record &r = *records[page.write[word % Page::words] & ~recordBit];
      uint32_t write = r.write[at & 3];
      if (write && !ordered(a, write))
        against(a, address, write, "write");
      else if (write)
        againstLanes(a, address, write, "write", 1u << r.writeLane[at & 3]);
      if (!a.store)
        continue;
      for (unsigned k = 0; k < 2; ++k) {
        uint32_t read = r.reads[at & 3][k];
        if (read && !ordered(a, read))
          against(a, address, read, "read");
        else if (read)
          againstLanes(a, address, read, "read", r.readLanes[at & 3][k]);
      }
    }
}

//===----------------------------------------------------------------------===//
// What the interpreter calls
//===----------------------------------------------------------------------===//

void Run::tick(Warp &w) { w.clock = ++clockCounter; }

void Run::orderGlobal(Warp &w, const Inst &inst, const uint64_t *address,
                      uint32_t bytes, uint64_t mask, bool store) {
  w.touched = w.clock;
  if (inst.order & atomicAccess) {
    orderAtomic(w, inst, address, mask, !store, store);
    return;
  }
  if (!hot.watching)
    return;
  if (hot.apart)
    journal->access(*this, w, inst, address, bytes, mask, store);
  else
    window.memory.access(*this, w, View::of(w), inst, address, bytes, mask,
                         store);
}

void Run::orderAtomic(Warp &w, const Inst &inst, const uint64_t *address,
                      uint64_t mask, bool reads, bool writes) {
  if (!hot.watching)
    return;
  w.touched = w.clock;
  for (uint64_t rest = mask; rest; rest &= rest - 1) {
    unsigned l = __builtin_ctzll(rest);
    window.memory.atomic(*this, w, inst, l, address[l], inst.imm, reads,
                         writes);
  }
  // What follows is not released by this operation.
  if (writes && (inst.order & releases))
    tick(w);
}

void Run::fence(Warp &w, const Inst &inst) {
  hot.giveWay |= next() % 2;
  if (hot.laneOrder)
    observe(w, inst, w.mask, /*reads=*/false);
  if (ldsOrder)
    fenceShared(w, inst);
  if (!hot.watching)
    return;
  GlobalMemory &memory = window.memory;
  if (!(inst.order & writesBack)) {
    memory.fence(*this, w, inst.order, inst.scope);
    return;
  }
  memory.writeBack(*this, w, inst.scope);
}

void GlobalMemory::writeBack(Run &run, Warp &w, Scope scope) {
  WarpOrder &order = orderOf(w);
  order.writtenBack = publish(run, w);
  order.writeBackScope = scope;
  run.tick(w);
}

void Run::writtenBack(Warp &w) {
  if (!w.order || !w.order->writtenBack)
    return;
  for (unsigned s = 0; s <= static_cast<unsigned>(w.order->writeBackScope); ++s)
    w.order->released[s] = w.order->writtenBack;
  w.order->writtenBack = nullptr;
}
