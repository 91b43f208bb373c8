//===- ExecMemory.h - Loads, stores and copies ------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Members of Exec. Each access is first cleared as a whole by a few
// comparisons; only what they cannot clear goes to Run, lane by lane.
//
//===----------------------------------------------------------------------===//

#define KVBUF_EACH(mask)                                                       \
  for (uint64_t rest = (mask), l = 0;                                          \
       rest && (l = __builtin_ctzll(rest), true); rest &= rest - 1)

// Moves N bytes between memory and the lane's slots.
template <unsigned N, bool Store>
void moveLane(const Inst &i, unsigned l, uint8_t *p) {
  const uint32_t *slots = h.lists + i.list;
  if constexpr (N < 4) {
    if constexpr (Store) {
      std::memcpy(p, reg<uint32_t>(slots[0]) + l, N);
    } else {
      uint32_t v = 0;
      std::memcpy(&v, p, N);
      reg<uint32_t>(slots[0])[l] = v;
    }
  } else {
    if (N >= 8 && i.flags) {
      for (unsigned k = 0; k < N / 8; ++k) {
        if constexpr (Store)
          std::memcpy(p + 8 * k, reg<uint64_t>(slots[k]) + l, 8);
        else
          std::memcpy(reg<uint64_t>(slots[k]) + l, p + 8 * k, 8);
      }
      return;
    }
    for (unsigned k = 0; k < N / 4; ++k) {
      if constexpr (Store)
        std::memcpy(p + 4 * k, reg<uint32_t>(slots[k]) + l, 4);
      else
        std::memcpy(reg<uint32_t>(slots[k]) + l, p + 4 * k, 4);
    }
  }
}

// Whether memory holds what the lane stored: if not, another lane of the same
// instruction stored something else there.
template <unsigned N> bool holds(const Inst &i, unsigned l, const uint8_t *p) {
  const uint32_t *slots = h.lists + i.list;
  if (N >= 8 && i.flags) {
    for (unsigned k = 0; k < N / 8; ++k)
      if (std::memcmp(p + 8 * k, reg<uint64_t>(slots[k]) + l, 8))
        return false;
    return true;
  }
  constexpr unsigned size = N < 4 ? N : 4;
  for (unsigned k = 0; k < (N + 3) / 4; ++k)
    if (std::memcmp(p + 4 * k, reg<uint32_t>(slots[k]) + l, size))
      return false;
  return true;
}

// Where an access to shared or private memory counts.
uint32_t statOf(const Inst &i, uint32_t ofGeneric) {
  bool generic = i.op == Code::LoadGeneric || i.op == Code::StoreGeneric;
  return generic ? i.stat + ofGeneric : i.stat;
}

// The passes that the banks need for these addresses. Accesses of 16 bytes
// are served in quarters of 8 lanes, those of 8 bytes in halves.
void bankCost(const Inst &i, const uint32_t *address, uint64_t mask,
              unsigned bytes) {
  MemStat &s = h.stats[statOf(i, genericShared)];
  s.bytes += static_cast<uint64_t>(bytes) * __builtin_popcountll(mask);
  ++s.accesses;
  addPasses(address, mask, bytes, s.cost, s.ideal);
}

// Adds those passes to `cost`, and to `ideal` what they would be without
// conflicts.
void addPasses(const uint32_t *address, uint64_t mask, unsigned bytes,
               uint64_t &cost, uint64_t &ideal) {
  if constexpr (W == 64)
    if (bytes == 16)
      return addPassesOf16(address, mask, cost, ideal);
  addPhases(address, mask, bytes, cost, ideal);
}

// The same, with lanes that follow each other served together.
void addPhases(const uint32_t *address, uint64_t mask, unsigned bytes,
               uint64_t &cost, uint64_t &ideal) {
  unsigned unit = bytes < 4 ? 4 : bytes;
  unsigned units = h.banks * 4 / unit, shift = __builtin_ctz(unit);
  for (unsigned first = 0; first < W; first += units) {
    uint64_t phase = units >= 64 ? mask : mask >> first & ((1ull << units) - 1);
    if (!phase)
      continue;
    uint64_t seen = 0;
    uint32_t words[64];
    bool clean = true;
    KVBUF_EACH(phase) {
      uint32_t word = address[first + l] >> shift, u = word & (units - 1);
      if (seen >> u & 1)
        clean &= words[u] == word;
      else
        words[u] = word;
      seen |= 1ull << u;
    }
    ++ideal;
    cost += clean ? 1 : bankPasses(address + first, phase, shift, units);
  }
}

// The largest number of different words in one bank.
unsigned bankPasses(const uint32_t *address, uint64_t mask, unsigned shift,
                    unsigned units) {
  uint32_t distinct[64];
  unsigned n = 0, most = 0;
  uint8_t perUnit[64] = {};
  KVBUF_EACH(mask) {
    uint32_t word = address[l] >> shift;
    bool found = false;
    for (unsigned k = 0; k < n && !found; ++k)
      found = distinct[k] == word;
    if (found)
      continue;
    distinct[n++] = word;
    unsigned count = ++perUnit[word & (units - 1)];
    most = count > most ? count : most;
  }
  return most;
}

// 32-byte sectors that an access touches, and those its bytes would fill.
void sectorCost(const Inst &i, const uint64_t *address, uint64_t mask,
                unsigned bytes) {
  uint64_t sectors[W], top = 0;
  unsigned n = 0;
  KVBUF_EACH(mask) {
    uint64_t s = address[l] >> 5;
    if (n && s == sectors[n - 1])
      continue;
    if (s > top) {
      top = s;
    } else {
      bool found = false;
      for (unsigned k = 0; k < n && !found; ++k)
        found = sectors[k] == s;
      if (found)
        continue;
    }
    sectors[n++] = s;
  }
  uint64_t moved = static_cast<uint64_t>(bytes) * __builtin_popcountll(mask);
  MemStat &s = h.stats[i.stat];
  ++s.accesses;
  s.bytes += moved;
  s.cost += n;
  s.ideal += (moved + 31) / 32;
}

// Clears and stamps the shadow of whole words that a lane reads.
bool shadowReadFast(const Inst &i, unsigned lane, uint32_t address,
                    unsigned count) {
  uint32_t w0 = address >> 2;
  const uint32_t *clock = h.words.writeClock + w0;
  uint64_t *reads =
      h.words.reads + static_cast<size_t>(w.id) * h.words.cells + w0;
  uint32_t *latest = h.words.readMax + w0;
  uint64_t stamp = static_cast<uint64_t>(w.clock) << 32 | (&i - h.insts);
  uint32_t known = w.known, now = w.clock;
  bool bad = false;
  if (h.laneOrder) {
    uint32_t *lanes =
        h.words.readLanes + static_cast<size_t>(w.id) * h.words.cells + w0;
    uint32_t bit = 1u << (lane & 31);
    for (unsigned k = 0; k < count; ++k)
      lanes[k] = reads[k] >> 32 == now ? lanes[k] | bit : bit;
  }
  for (unsigned k = 0; k < count; ++k) {
    bad |= clock[k] > known;
    reads[k] = stamp;
    latest[k] = latest[k] > now ? latest[k] : now;
  }
  return !bad;
}

bool shadowWriteFast(const Inst &i, unsigned lane, uint32_t address,
                     unsigned count) {
  uint32_t w0 = address >> 2;
  uint32_t *clock = h.words.writeClock + w0, *writer = h.words.writer + w0;
  const uint32_t *latest = h.words.readMax + w0;
  uint32_t known = w.known,
           me = static_cast<uint32_t>(&i - h.insts) << 6 | w.id;
  bool bad = false;
  for (unsigned k = 0; k < count; ++k)
    bad |=
        (clock[k] > known && clock[k] != clockUnwritten) || latest[k] > known;
  if (bad)
    return false;
  for (unsigned k = 0; k < count; ++k) {
    clock[k] = w.clock;
    writer[k] = me;
    h.words.writeLane[w0 + k] = lane;
  }
  return true;
}

template <unsigned N, bool Store>
void sharedMove(const Inst &i, const uint32_t *address, uint64_t mask) {
  KVBUF_EACH(mask) {
    uint32_t at = address[l];
    if (h.checkShadow) {
      bool fine = false;
      if constexpr (N >= 4)
        fine = Store ? shadowWriteFast(i, l, at, N / 4)
                     : shadowReadFast(i, l, at, N / 4);
      if (!fine) {
        if constexpr (Store) {
          h.storesSame = holds<N>(i, l, h.shared + at);
          r.shadowWrite(w, i, l, at, N);
          h.storesSame = false;
        } else {
          r.shadowRead(w, i, l, at, N);
        }
      }
    }
    moveLane<N, Store>(i, l, h.shared + at);
  }
  if constexpr (Store)
    KVBUF_EACH(mask)
  if (!holds<N>(i, l, h.shared + address[l]))
    return r.storeConflict(w, i, l, address[l], "shared");
}

// The lanes whose addresses are aligned and in range.
uint64_t clearShared(const Inst &i, uint32_t *address, const uint32_t *base,
                     uint64_t mask, unsigned bytes, bool store) {
  w.lastRead = w.touched = w.clock;
  uint32_t bad = 0, offset = static_cast<uint32_t>(i.offset);
  uint32_t limit = h.sharedBytes >= bytes ? h.sharedBytes - bytes : 0;
  for (unsigned l = 0; l < W; ++l) {
    uint32_t on = -static_cast<uint32_t>(mask >> l & 1);
    address[l] = base[l] + offset;
    bad |= on & ((address[l] & (i.align - 1)) |
                 (address[l] - h.sharedBegin > limit ? 1u : 0u));
  }
  if (bad || h.sharedBytes < bytes)
    mask = r.checkShared(w, i, address, bytes, mask, store);
  return mask;
}

void zero(const Inst &i, uint64_t lanes) {
  for (unsigned k = 0; k < i.listSize; ++k)
    KVBUF_EACH(lanes) {
      if (i.imm >= 8 && i.flags)
        reg<uint64_t>(h.lists[i.list + k])[l] = 0;
      else
        reg<uint32_t>(h.lists[i.list + k])[l] = 0;
    }
}

#define KVBUF_BY_SIZE(Move, Args)                                              \
  switch (i.imm * 2 + store) {                                                 \
  case 2:                                                                      \
    Move<1, false> Args;                                                       \
    break;                                                                     \
  case 3:                                                                      \
    Move<1, true> Args;                                                        \
    break;                                                                     \
  case 4:                                                                      \
    Move<2, false> Args;                                                       \
    break;                                                                     \
  case 5:                                                                      \
    Move<2, true> Args;                                                        \
    break;                                                                     \
  case 8:                                                                      \
    Move<4, false> Args;                                                       \
    break;                                                                     \
  case 9:                                                                      \
    Move<4, true> Args;                                                        \
    break;                                                                     \
  case 16:                                                                     \
    Move<8, false> Args;                                                       \
    break;                                                                     \
  case 17:                                                                     \
    Move<8, true> Args;                                                        \
    break;                                                                     \
  case 32:                                                                     \
    Move<16, false> Args;                                                      \
    break;                                                                     \
  case 33:                                                                     \
    Move<16, true> Args;                                                       \
    break;                                                                     \
  }

void sharedAccess(const Inst &i, const uint32_t *base, uint64_t active,
                  bool store) {
  uint32_t address[W];
  uint64_t mask = clearShared(i, address, base, active, i.imm, store);
  if (mask != active && !store)
    zero(i, active & ~mask);
  if (!mask)
    return;
  unsigned width = i.align < i.imm ? i.align : i.imm;
  bankCost(i, address, mask, width);
  if (h.tracing)
    r.traceShared(w, i, address, static_cast<uint32_t>(i.imm), mask, store);
  if (h.isAMD)
    r.ldsIssue(w, i, address, mask, store);
  KVBUF_BY_SIZE(sharedMove, (i, address, mask))
  if (i.order & atomicAccess) {
    if (h.laneOrder)
      r.observe(w, i, mask, !store);
    r.orderShared(w, i, address, mask, !store, store);
  }
}

// Finds the range that all lanes fall into; null: lane by lane.
const Range *oneRange(const Inst &i, const uint64_t *address, uint64_t mask,
                      unsigned bytes, unsigned align, bool store) {
  uint64_t lo = ~0ull, hi = 0, all = 0;
  for (unsigned l = 0; l < W; ++l) {
    bool on = mask >> l & 1;
    uint64_t a = address[l];
    lo = on && a < lo ? a : lo;
    hi = on && a > hi ? a : hi;
    all |= on ? a : 0;
  }
  if (all & (align - 1))
    return nullptr;
  uint32_t &last = h.rangeOf[i.stat];
  for (uint32_t k = 0; k <= h.numRanges; ++k) {
    uint32_t index = k == 0 ? last : k - 1;
    if (index >= h.numRanges)
      continue;
    const Range &range = h.ranges[index];
    if (lo < range.begin || hi >= range.end || range.end - hi < bytes)
      continue;
    last = index;
    return (store ? range.writable : range.readable) ? &range : nullptr;
  }
  return nullptr;
}

// The same as globalMove while other blocks run: memory is the journal's.
template <unsigned N, bool Store>
void apartMove(const Inst &i, const uint64_t *address, uint64_t mask,
               const Range *range) {
  alignas(16) uint8_t data[16];
  KVBUF_EACH(mask) {
    if constexpr (Store) {
      moveLane<N, true>(i, l, data);
      r.writeGlobal(address[l], data, N);
    } else {
      if (range && !r.isWritten(*range, address[l], N))
        r.readUnwritten(w, i, l, address[l]);
      r.readGlobal(data, address[l], N);
      moveLane<N, false>(i, l, data);
    }
  }
  if constexpr (Store)
    KVBUF_EACH(mask) {
      r.readGlobal(data, address[l], N);
      if (!holds<N>(i, l, data))
        return r.storeConflict(w, i, l, address[l], "global");
    }
}

template <unsigned N, bool Store>
void globalMove(const Inst &i, const uint64_t *address, uint64_t mask,
                const Range *range) {
  // What nobody writes is what it is.
  if (h.apart && (!range || range->writable))
    return apartMove<N, Store>(i, address, mask, range);
  KVBUF_EACH(mask) {
    uint8_t *p = reinterpret_cast<uint8_t *>(address[l]);
    if (range && range->written) {
      uint8_t *flags = range->written + (address[l] - range->begin);
      if constexpr (Store) {
        std::memset(flags, 1, N);
      } else {
        bool all = true;
        for (unsigned k = 0; k < N; ++k)
          all &= flags[k];
        if (!all)
          r.readUnwritten(w, i, l, address[l]);
      }
    }
    moveLane<N, Store>(i, l, p);
  }
  // Of atomic stores one comes after the other.
  if (Store && !(i.order & atomicAccess))
    KVBUF_EACH(mask)
  if (!holds<N>(i, l, reinterpret_cast<const uint8_t *>(address[l])))
    return r.storeConflict(w, i, l, address[l], "global");
}

void globalAccess(const Inst &i, const uint64_t *base, uint64_t active,
                  bool store) {
  uint64_t address[W], mask = active;
  for (unsigned l = 0; l < W; ++l)
    address[l] = base[l] + static_cast<uint64_t>(i.offset);
  const Range *range = oneRange(i, address, mask, i.imm, i.align, store);
  if (!range)
    mask = r.checkGlobal(w, i, address, i.imm, mask, store);
  if (mask != active && !store)
    zero(i, active & ~mask);
  if (!mask)
    return;
  sectorCost(i, address, mask, i.imm);
  *h.changes += store;
  if (range ? range->watched : h.watching)
    r.orderGlobal(w, i, address, static_cast<uint32_t>(i.imm), mask, store);
  KVBUF_BY_SIZE(globalMove, (i, address, mask, range))
  if (i.order & atomicAccess) {
    if (h.laneOrder)
      r.observe(w, i, mask, !store);
    r.communicate(w, i, store);
  }
}

template <unsigned N, bool Store>
void localMove(const Inst &i, const uint32_t *address, uint64_t mask) {
  uint8_t *base = h.local + static_cast<size_t>(w.id) * W * h.localBytes;
  KVBUF_EACH(mask)
  moveLane<N, Store>(i, l, base + l * h.localBytes + address[l]);
}

void localAccess(const Inst &i, const uint32_t *base, uint64_t active,
                 bool store) {
  uint32_t address[W];
  bool bad = false;
  for (unsigned l = 0; l < W; ++l) {
    address[l] = base[l] + static_cast<uint32_t>(i.offset);
    bad |= (active >> l & 1) &&
           (address[l] + static_cast<uint64_t>(i.imm) > h.localBytes ||
            address[l] & (i.align - 1));
  }
  uint64_t mask = active;
  if (bad)
    mask = r.checkLocal(w, i, address, i.imm, mask, store);
  if (mask != active && !store)
    zero(i, active & ~mask);
  MemStat &s = h.stats[statOf(i, genericLocal)];
  ++s.accesses;
  s.bytes += i.imm * __builtin_popcountll(mask);
  KVBUF_BY_SIZE(localMove, (i, address, mask))
}

// A generic address is in shared or private memory if it lies in their
// windows, and global otherwise.
void genericAccess(const Inst &i, bool store) {
  const uint64_t *base = reg<uint64_t>(i.a);
  uint64_t top = 0;
  for (unsigned l = 0; l < W; ++l)
    top |= base[l];
  if (!(top >> 63))
    return globalAccess(i, base, w.mask, store);
  uint32_t narrow[W];
  uint64_t inShared = 0, inLocal = 0;
  for (unsigned l = 0; l < W; ++l) {
    narrow[l] = static_cast<uint32_t>(base[l]);
    uint64_t window = base[l] & windowMask, on = w.mask & 1ull << l;
    inShared |= window == sharedWindow ? on : 0;
    inLocal |= window == localWindow ? on : 0;
  }
  if (inShared)
    sharedAccess(i, narrow, inShared, store);
  if (inLocal)
    localAccess(i, narrow, inLocal, store);
  if (uint64_t rest = w.mask & ~inShared & ~inLocal)
    globalAccess(i, base, rest, store);
}

void cpAsync(const Inst &i) {
  uint32_t dst[W], size[W];
  uint64_t src[W], reading = 0;
  const uint64_t *from = reg<uint64_t>(i.b);
  const uint32_t *asked = i.c == noSlot ? nullptr : reg<uint32_t>(i.c);
  for (unsigned l = 0; l < W; ++l) {
    src[l] = from[l];
    uint32_t n = asked ? asked[l] : static_cast<uint32_t>(i.imm);
    size[l] = n < i.imm ? n : static_cast<uint32_t>(i.imm);
    reading |= static_cast<uint64_t>(size[l] != 0) << l;
  }
  uint64_t mask = clearShared(i, dst, reg<uint32_t>(i.a), w.mask, i.imm, true);
  // A copy of nothing needs an aligned address, too, wherever that is.
  // An instruction is reported once: better where it reads something.
  uint64_t crooked = 0;
  KVBUF_EACH(mask)
  crooked |= static_cast<uint64_t>((src[l] & (i.align - 1)) != 0) << l;
  if (crooked) {
    if (!(crooked & reading))
      r.checkGlobal(w, i, src, 0, crooked, false);
    mask &= ~crooked | reading;
  }
  issueCopy(i, dst, src, size, mask, reading);
}

// Starts a copy by the lanes of `mask`, of which those that are not `reading`
// write zeros only.
void issueCopy(const Inst &i, const uint32_t *dst, const uint64_t *src,
               const uint32_t *size, uint64_t mask, uint64_t reading) {
  // Lanes that read nothing may point anywhere; lanes that read a part are
  // looked at one by one.
  uint64_t readers = mask & reading;
  bool whole = true;
  KVBUF_EACH(readers) whole &= size[l] == i.imm;
  if (readers) {
    const Range *range =
        whole ? oneRange(i, src, readers, i.imm, i.align, false) : nullptr;
    if (!range || range->written) {
      uint64_t good = 0;
      KVBUF_EACH(readers)
      good |= r.checkGlobal(w, i, src, size[l], 1ull << l, false);
      mask &= ~readers | good;
    }
    if (mask & readers) {
      sectorCost(i, src, mask & readers, i.imm);
      if (range && range->watched)
        r.orderGlobal(w, i, src, static_cast<uint32_t>(i.imm), mask & readers,
                      /*store=*/false);
      else if (!range && h.watching)
        KVBUF_EACH(mask & readers)
      r.orderGlobal(w, i, src, size[l], 1ull << l, /*store=*/false);
    }
  }
  if (!mask)
    return;
  // Lanes that read nothing still write zeros.
  MemStat &s = h.stats[i.stat];
  s.accesses += !(mask & readers);
  addPasses(dst, mask, static_cast<unsigned>(i.imm), s.passes, s.idealPasses);
  r.asyncIssue(w, i, dst, src, size, mask);
}
