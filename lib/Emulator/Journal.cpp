//===- Journal.cpp - What a block does apart from the others --------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Journal.h"
#include "Async.h"
#include "Window.h"

#include "kvbuffer/Emulator/Emulator.h"

#include <algorithm>
#include <cstring>

using namespace kvbuf::emu;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static size_t hashOf(uint64_t begin) {
  return (begin >> 8) * 0x9E3779B97F4A7C15ull >> 20;
}

Journal::Piece *Journal::find(uint64_t begin) {
  if (begin == lastBegin)
    return &pieces[lastPiece];
  if (pieces.empty())
    return nullptr;
  for (size_t at = hashOf(begin);; ++at) {
    uint32_t number = table[at & (table.size() - 1)];
    if (!number)
      return nullptr;
    if (pieces[number - 1].begin != begin)
      continue;
    lastBegin = begin;
    lastPiece = number - 1;
    return &pieces[lastPiece];
  }
}

Journal::Piece &Journal::pieceAt(uint64_t begin) {
  if (Piece *piece = find(begin))
    return *piece;
  auto enter = [&](uint32_t number) {
    size_t at = hashOf(pieces[number].begin);
    while (table[at & (table.size() - 1)])
      ++at;
    table[at & (table.size() - 1)] = number + 1;
  };
  lastBegin = begin;
  lastPiece = pieces.size();
  Piece &piece = pieces.emplace_back();
  piece.begin = begin;
  std::memset(piece.state, 0, sizeof(piece.state));
  if (2 * pieces.size() <= table.size()) {
    enter(lastPiece);
    return piece;
  }
  table.assign(std::max<size_t>(4 * table.size(), 64), 0);
  for (uint32_t k = 0; k < pieces.size(); ++k)
    enter(k);
  return piece;
}

void Journal::read(void *to, uint64_t address, uint64_t bytes) {
  uint8_t *d = static_cast<uint8_t *>(to);
  while (bytes) {
    uint32_t at = address % Piece::bytes;
    uint64_t n = std::min<uint64_t>(bytes, Piece::bytes - at);
    std::memcpy(d, reinterpret_cast<const uint8_t *>(address), n);
    if (const Piece *piece = find(address - at))
      for (uint32_t k = 0; k < n; ++k)
        if (piece->state[at + k] & hasData)
          d[k] = piece->data[at + k];
    d += n;
    address += n;
    bytes -= n;
  }
}

void Journal::write(uint64_t address, const void *from, uint64_t bytes) {
  const uint8_t *s = static_cast<const uint8_t *>(from);
  while (bytes) {
    uint32_t at = address % Piece::bytes;
    uint64_t n = std::min<uint64_t>(bytes, Piece::bytes - at);
    Piece &piece = pieceAt(address - at);
    for (uint32_t k = at; k < at + n; ++k) {
      bool differs = (piece.state[k] & hasData) && piece.data[k] != s[k - at];
      piece.state[k] |= hasData | written | (differs ? rewritten : 0);
    }
    std::memcpy(piece.data + at, s, n);
    s += n;
    address += n;
    bytes -= n;
  }
}

void Journal::willWrite(uint64_t address, uint64_t bytes) {
  for (uint64_t end = address + bytes; address < end; ++address)
    pieceAt(address / Piece::bytes * Piece::bytes)
        .state[address % Piece::bytes] |= written;
}

bool Journal::isWritten(const uint8_t *flags, uint64_t address,
                        uint64_t bytes) {
  for (uint64_t k = 0; k < bytes; ++k) {
    if (flags[k])
      continue;
    uint64_t at = (address + k) % Piece::bytes;
    const Piece *piece = find(address + k - at);
    if (!piece || !piece->state[at])
      return false;
  }
  return true;
}

void Journal::commitMemory(Run &run) {
  const Range *range = nullptr;
  auto holds = [&](uint64_t address) {
    return range && address >= range->begin && address < range->end;
  };
  for (Piece &piece : pieces)
    for (uint32_t k = 0; k < Piece::bytes;) {
      uint8_t state = piece.state[k];
      uint32_t end = k + 1;
      while (end < Piece::bytes && piece.state[end] == state)
        ++end;
      uint64_t address = piece.begin + k, stop = piece.begin + end;
      if (state & hasData)
        for (uint32_t b = k; b < end; ++b)
          if (piece.data[b] !=
              *reinterpret_cast<const uint8_t *>(piece.begin + b))
            piece.state[b] |= changed;
      if (state & hasData)
        std::memcpy(reinterpret_cast<uint8_t *>(address), piece.data + k,
                    end - k);
      // Buffers may be neighbours.
      while (state && address < stop) {
        if (!holds(address))
          for (const Range &r : run.ranges)
            if (address >= r.begin && address < r.end)
              range = &r;
        uint64_t n = std::min(stop, range->end) - address;
        if (range->written)
          std::memset(range->written + (address - range->begin), 1, n);
        address += n;
      }
      k = end;
    }
}

void Journal::forgetMemory() {
  if (!pieces.empty())
    std::fill(table.begin(), table.end(), 0);
  pieces.clear();
  lastBegin = ~0ull;
}

bool Journal::isOneValue(uint64_t address, uint64_t bytes, bool before) {
  for (uint64_t end = address + bytes; address < end; ++address) {
    uint64_t at = address % Piece::bytes;
    const Piece *piece = find(address - at);
    if (!piece || !(piece->state[at] & hasData) ||
        piece->state[at] & (before ? rewritten | changed : rewritten))
      return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

Journal::Entry &Journal::add(Run &run, What what, Warp &w, const Inst &inst) {
  // What the warp knows changes where it meets others.
  size_t count = run.warps.size();
  uint32_t &last = lastView[w.id];
  if (!last || views[last - 1].clock != w.clock ||
      views[last - 1].others != w.others ||
      std::memcmp(&seen[views[last - 1].seen], w.seen, 4 * count)) {
    views.push_back({w.clock, w.others, seen.size(), w.lanes});
    seen.insert(seen.end(), w.seen, w.seen + count);
    last = views.size();
  }
  Entry &e = entries.emplace_back();
  e.what = what;
  e.warp = w.id;
  e.inst = &inst;
  e.view = last - 1;
  return e;
}

// The addresses of neighbouring lanes mostly follow each other.
static constexpr uint32_t isRow = 1;

void Journal::access(Run &run, Warp &w, const Inst &inst,
                     const uint64_t *address, uint32_t bytes, uint64_t mask,
                     bool store) {
  Entry &e = add(run, What::Access, w, inst);
  e.store = store;
  e.bytes = bytes;
  e.mask = mask;
  e.first = addresses.size();
  unsigned first = __builtin_ctzll(mask);
  bool row = true;
  for (uint64_t rest = mask; rest; rest &= rest - 1) {
    unsigned l = __builtin_ctzll(rest);
    row &= address[l] == address[first] + uint64_t(l - first) * bytes;
  }
  e.copy = row ? isRow : 0;
  if (row) {
    addresses.push_back(address[first]);
    return;
  }
  for (uint64_t rest = mask; rest; rest &= rest - 1)
    addresses.push_back(address[__builtin_ctzll(rest)]);
}

void Journal::beginStore(Run &run, Warp &w, const Inst &inst, uint32_t copy) {
  add(run, What::BeginStore, w, inst).copy = copy;
}

void Journal::bulk(Run &run, Warp &w, const Inst &inst, unsigned lane,
                   uint64_t address, uint32_t bytes, bool store,
                   uint32_t copy) {
  Entry &e = add(run, What::Bulk, w, inst);
  e.lane = lane;
  e.store = store;
  e.bytes = bytes;
  e.copy = copy;
  e.first = addresses.size();
  addresses.push_back(address);
}

void Journal::endStore(Run &run, Warp &w, uint32_t copy) {
  add(run, What::EndStore, w, run.program.insts[0]).copy = copy;
}

bool Journal::isCounted(bool isWarning, FaultKind kind, const Inst &inst,
                        const Inst *other) {
  auto it =
      known.find({isWarning, kind, inst.origin, other ? other->origin : ~0u});
  if (it == known.end())
    return false;
  ++reports[it->second].count;
  return true;
}

bool Journal::fault(bool isWarning, FaultKind kind, const Warp &w,
                    const Inst &inst, int lane, const std::string &text,
                    const std::string &note, const Inst *other,
                    const Program *of) {
  if (isCounted(isWarning, kind, inst, other))
    return false;
  known[{isWarning, kind, inst.origin, other ? other->origin : ~0u}] =
      reports.size();
  Entry &e = entries.emplace_back();
  e.what = What::Report;
  e.warp = w.id;
  e.inst = &inst;
  e.first = reports.size();
  reports.push_back({isWarning, kind, lane, text, note, other, of, 1});
  return true;
}

//===----------------------------------------------------------------------===//
// The end of the stretch
//===----------------------------------------------------------------------===//

void Journal::replay(Run &run) {
  GlobalMemory &memory = run.window.memory;
  memory.beginReplay(run);
  run.replaying = this;
  for (const Entry &e : entries) {
    Warp &w = run.warps[e.warp];
    if (e.what == What::Report) {
      const Report &r = reports[e.first];
      if (r.isWarning)
        run.warning(r.kind, w, *e.inst, r.lane, r.text, r.note, r.other);
      else
        run.fault(r.kind, w, *e.inst, r.lane, r.text, r.note, r.other, r.of,
                  r.count);
      if (run.hot.stop)
        return;
      continue;
    }
    const Kept &kept = views[e.view];
    View view{kept.clock, &seen[kept.seen], kept.others.get(), &kept.lanes};
    switch (e.what) {
    case What::Access: {
      uint64_t address[maxLanes];
      const uint64_t *next = &addresses[e.first];
      unsigned first = __builtin_ctzll(e.mask);
      for (uint64_t rest = e.mask; rest; rest &= rest - 1) {
        unsigned l = __builtin_ctzll(rest);
        address[l] =
            e.copy == isRow ? *next + uint64_t(l - first) * e.bytes : *next++;
      }
      memory.access(run, w, view, *e.inst, address, e.bytes, e.mask, e.store);
      break;
    }
    case What::BeginStore:
      run.storeEvents[e.copy] = memory.beginStore(run, w, *e.inst);
      break;
    case What::Bulk:
      memory.bulk(run, w, view, *e.inst, e.lane, addresses[e.first], e.bytes,
                  e.store, run.storeEvents[e.copy]);
      break;
    case What::EndStore:
      memory.endStore(run.storeEvents[e.copy], kept.clock);
      break;
    case What::Report:
      break;
    }
    if (run.hot.stop)
      return;
  }
}

void Journal::commit(Run &run) {
  commitMemory(run);
  replay(run);
  run.replaying = nullptr;
  forgetMemory();
  entries.clear();
  addresses.clear();
  views.clear();
  seen.clear();
  std::fill(std::begin(lastView), std::end(lastView), 0);
  reports.clear();
  known.clear();
}

//===----------------------------------------------------------------------===//
// Run's part
//===----------------------------------------------------------------------===//

void Run::setApart(bool apart) {
  hot.apart = hot.hold = apart;
  if (!apart || journal)
    return;
  if (spareJournals.empty()) {
    journal = std::make_unique<Journal>();
    return;
  }
  journal = std::move(spareJournals.back());
  spareJournals.pop_back();
}

void Run::keepJournal() {
  if (!hot.apart)
    return;
  Ended &e = ended.emplace_back();
  e.journal = std::move(journal);
  e.serial = serial;
  std::copy_n(blockIndex, 3, e.blockIndex);
  e.storeEvents = std::move(storeEvents);
}

void Run::commit() {
  window.epoch += changes;
  changes = 0;
  launch.interrupted |= interrupted;
  if (!hot.apart)
    return;
  hot.apart = hot.hold = false;
  // Some faults end the launch, once they have been said.
  bool stop = hot.stop;
  hot.stop = false;
  for (Ended &e : ended) {
    // It is that block once more.
    auto exchange = [&] {
      std::swap(serial, e.serial);
      std::swap(blockIndex, e.blockIndex);
      std::swap(storeEvents, e.storeEvents);
    };
    exchange();
    if (!hot.stop)
      e.journal->commit(*this);
    exchange();
    spareJournals.push_back(std::move(e.journal));
  }
  ended.clear();
  if (!hot.stop)
    journal->commit(*this);
  hot.stop |= stop;
}

void Run::collect() {
  for (size_t k = 0; k < blockRuns.size(); ++k) {
    launch.blockRuns[k] += blockRuns[k];
    launch.blockLanes[k] += blockLanes[k];
  }
  for (size_t k = 0; k < stats.size(); ++k) {
    MemStat &s = launch.stats[k];
    s.accesses += stats[k].accesses;
    s.bytes += stats[k].bytes;
    s.cost += stats[k].cost;
    s.ideal += stats[k].ideal;
    s.passes += stats[k].passes;
    s.idealPasses += stats[k].idealPasses;
  }
  launch.unwaitedCopies += unwaitedCopies;
}

void Run::readGlobal(void *to, uint64_t address, uint64_t bytes) {
  if (hot.apart)
    return journal->read(to, address, bytes);
  std::memcpy(to, reinterpret_cast<const uint8_t *>(address), bytes);
}

void Run::writeGlobal(uint64_t address, const void *from, uint64_t bytes) {
  if (hot.apart)
    return journal->write(address, from, bytes);
  std::memcpy(reinterpret_cast<uint8_t *>(address), from, bytes);
}

bool Run::isWritten(const Range &range, uint64_t address, uint64_t bytes) {
  if (!range.written)
    return true;
  const uint8_t *flags = range.written + (address - range.begin);
  if (hot.apart)
    return journal->isWritten(flags, address, bytes);
  return !std::memchr(flags, 0, bytes);
}

void Run::setWritten(const Range &range, uint64_t address, uint64_t bytes) {
  if (!range.written)
    return;
  if (hot.apart)
    journal->willWrite(address, bytes);
  else
    std::memset(range.written + (address - range.begin), 1, bytes);
}

uint32_t Run::beginStore(Warp &w, const Inst &inst) {
  uint32_t copy = storeEvents.size();
  storeEvents.push_back(0);
  if (hot.apart)
    journal->beginStore(*this, w, inst, copy);
  else
    storeEvents[copy] = window.memory.beginStore(*this, w, inst);
  return copy;
}

void Run::orderBulk(Warp &w, const Inst &inst, unsigned lane, uint64_t address,
                    uint32_t bytes, bool store, uint32_t copy) {
  if (hot.apart)
    journal->bulk(*this, w, inst, lane, address, bytes, store, copy);
  else
    window.memory.bulk(*this, w, View::of(w), inst, lane, address, bytes, store,
                       storeEvents[copy]);
}

void Run::endStore(Warp &w, uint32_t copy) {
  if (hot.apart)
    journal->endStore(*this, w, copy);
  else
    window.memory.endStore(storeEvents[copy], w.clock);
}

bool Run::storesSame(Warp &w, const Inst &inst, unsigned lane, uint64_t address,
                     uint32_t size, bool isOwnWrite) {
  if (inst.op != Code::StoreGlobal && inst.op != Code::StoreGeneric)
    return false;
  if (replaying)
    return replaying->isOneValue(address, size, /*before=*/!isOwnWrite);
  // What the lane stores is in its registers still.
  const uint32_t *slots = &program.lists[inst.list];
  unsigned piece = std::min<unsigned>(inst.flags ? 8 : 4, inst.imm);
  for (unsigned k = 0; k * piece < inst.imm; ++k) {
    const uint32_t *slot = w.regs + static_cast<size_t>(slots[k]) * lanes;
    if (std::memcmp(reinterpret_cast<const uint8_t *>(address) + k * piece,
                    slot + (piece == 8 ? 2 * lane : lane), piece))
      return false;
  }
  return true;
}
