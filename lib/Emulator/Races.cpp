//===- Races.cpp - The shadow of shared memory ----------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The exact versions of the interpreter's quick tests. Cells cover a word
// each; a word that is accessed in parts gets a cell for each byte until it is
// written as a whole again.
//
//===----------------------------------------------------------------------===//

#include "Launch.h"

#include "kvbuffer/Emulator/Emulator.h"

#include <algorithm>
#include <bit>

using namespace kvbuf::emu;

static bool isAtomic(const Inst &inst) {
  return inst.op == Code::AtomicShared || inst.op == Code::AtomicGlobal ||
         (inst.order & atomicAccess);
}

/// The op that an instruction comes from, and its place: "'llvm.store' at
/// k.mlir:3:7".
static std::string opName(const Program &program, const Inst &inst) {
  const Origin &origin = program.origins[inst.origin];
  std::string text = "'" + origin.name + "'";
  return origin.location.empty() ? text : text + " at " + origin.location;
}

Shadow &Run::byteCells() {
  if (bytes.cells)
    return bytes;
  bytes.cells = hot.words.cells * 4;
  byteClock.assign(bytes.cells, clockUnwritten);
  byteWriter.assign(bytes.cells, 0);
  byteReadMax.assign(bytes.cells, 0);
  byteReads.assign(static_cast<size_t>(bytes.cells) * rows(), 0);
  byteLane.assign(bytes.cells, 0);
  byteLanes.assign(static_cast<size_t>(bytes.cells) * rows(), 0);
  bytes.writeClock = byteClock.data();
  bytes.writer = byteWriter.data();
  bytes.readMax = byteReadMax.data();
  bytes.reads = byteReads.data();
  bytes.writeLane = byteLane.data();
  bytes.readLanes = byteLanes.data();
  return bytes;
}

void Run::split(uint32_t word) {
  Shadow &s = byteCells();
  for (unsigned k = 0; k < 4; ++k) {
    uint32_t cell = 4 * word + k;
    s.writeClock[cell] = wordClock[word];
    s.writer[cell] = wordWriter[word];
    s.readMax[cell] = wordReadMax[word];
    s.writeLane[cell] = wordLane[word];
    for (size_t v = 0, n = rows(); v < n; ++v) {
      s.reads[v * s.cells + cell] = wordReads[v * hot.words.cells + word];
      s.readLanes[v * s.cells + cell] = wordLanes[v * hot.words.cells + word];
    }
  }
  wordClock[word] = clockSplit;
}

bool Run::unordered(const Warp &w, uint32_t clock, uint32_t other) const {
  return other != w.id && clock > w.seen[other];
}

// What would have ordered an access after an earlier operation.
const char *Run::missing(uint32_t inst) const {
  return carriedOver.count(inst)
             ? " with no lgkmcnt wait before the barrier that follows "
             : " with no barrier after ";
}

void Run::cellRead(Shadow &s, Warp &w, const Inst &inst, unsigned lane,
                   uint32_t cell, uint32_t address) {
  uint32_t clock = s.writeClock[cell], writer = s.writer[cell];
  const Inst *other = &program.insts[writer >> 6];
  auto by = [&] { return actorName(writer & 63); };
  if (clock == clockUnwritten) {
    if (options.uninitialized && !isCounted(FaultKind::Unwritten, inst))
      fault(FaultKind::Unwritten, w, inst, lane,
            "reads " + sharedPlace(address) + ", which nothing has written");
  } else if (clock == clockInFlight) {
    if (options.landingChecks && !isCounted(FaultKind::InFlight, inst, other))
      fault(FaultKind::InFlight, w, inst, lane,
            "reads " + sharedPlace(address) +
                ": read of bytes an asynchronous copy still owes",
            "the copy, by " + by(), other);
  } else if (clock == clockMBarrier) {
    fault(FaultKind::MBarrier, w, inst, lane,
          "reads " + sharedPlace(address) + ", a part of an mbarrier in use",
          "its initialisation", other);
  } else if (isAtomic(inst) && isAtomic(*other)) {
    // One comes after the other.
  } else if (options.races && clock > w.known &&
             unordered(w, clock, writer & 63)) {
    if (!isCounted(FaultKind::Race, inst, other))
      fault(FaultKind::Race, w, inst, lane,
            "shared-memory race: read of " + sharedPlace(address) +
                missing(writer >> 6) + "the write by " + by() + ", " +
                opName(program, *other),
            "the write by " + by() + ", '" +
                program.origins[other->origin].name + "'",
            other);
  } else if (int l = options.races && clock > w.known
                         ? unreleasedLane(w, clock, writer & 63,
                                          1u << (s.writeLane[cell] & 31))
                         : -1;
             l >= 0) {
    releaseRace(w, inst, lane, "read of " + sharedPlace(address), "write",
                writer & 63, l, *other);
  } else if (hot.laneOrder && (writer & 63) == w.id) {
    int by = unorderedLane(w.lanes, lane, 1u << s.writeLane[cell], clock);
    if (by >= 0)
      laneRace(w, inst, lane, /*store=*/false, sharedPlace(address), "write",
               by, *other);
  }
  size_t at = w.id * static_cast<size_t>(s.cells) + cell;
  uint32_t bit = 1u << (lane & 31);
  s.readLanes[at] = s.reads[at] >> 32 == w.clock ? s.readLanes[at] | bit : bit;
  s.reads[at] =
      static_cast<uint64_t>(w.clock) << 32 | (&inst - program.insts.data());
  s.readMax[cell] = std::max(s.readMax[cell], w.clock);
}

// A write to what lanes of the own warp have accessed. Lanes that store with
// the same instruction are compared by what they store.
void Run::writeAfterLanes(const Shadow &s, Warp &w, const Inst &inst,
                          unsigned lane, uint32_t cell, uint32_t address) {
  uint32_t clock = s.writeClock[cell], writer = s.writer[cell];
  uint64_t read = s.reads[w.id * static_cast<size_t>(s.cells) + cell];
  const Inst &wrote = program.insts[writer >> 6],
             &reader = program.insts[static_cast<uint32_t>(read)];
  if (hot.storesSame)
    return;
  int by = -1;
  if ((writer & 63) == w.id && clock < clockLimit && &wrote != &inst &&
      !(isAtomic(inst) && isAtomic(wrote)))
    by = unorderedLane(w.lanes, lane, 1u << s.writeLane[cell], clock);
  if (by >= 0)
    laneRace(w, inst, lane, /*store=*/true, sharedPlace(address), "write", by,
             wrote);
  if (isAtomic(inst) && isAtomic(reader))
    return;
  uint32_t lanes = s.readLanes[w.id * static_cast<size_t>(s.cells) + cell];
  by = unorderedLane(w.lanes, lane, lanes, read >> 32);
  if (by >= 0)
    laneRace(w, inst, lane, /*store=*/true, sharedPlace(address), "read", by,
             reader);
}

void Run::cellWrite(Shadow &s, Warp &w, const Inst &inst, unsigned lane,
                    uint32_t cell, uint32_t address, bool async) {
  uint32_t clock = s.writeClock[cell], writer = s.writer[cell];
  const Inst *other = &program.insts[writer >> 6];
  auto by = [&] { return actorName(writer & 63); };
  if (clock == clockInFlight) {
    if (options.landingChecks && !isCounted(FaultKind::InFlight, inst, other))
      fault(FaultKind::InFlight, w, inst, lane,
            "writes " + sharedPlace(address) +
                ": write of bytes an asynchronous copy still owes",
            "the copy, by " + by(), other);
  } else if (clock == clockMBarrier) {
    fault(FaultKind::MBarrier, w, inst, lane,
          "writes " + sharedPlace(address) + ", a part of an mbarrier in use",
          "its initialisation", other);
  } else if (options.races && clock != clockUnwritten && clock > w.known &&
             unordered(w, clock, writer & 63) &&
             !(isAtomic(inst) && isAtomic(*other))) {
    storeRace(hot.storesSame, w, inst, lane,
              "shared-memory race: write of " + sharedPlace(address) +
                  missing(writer >> 6) + "the write by " + by() + ", " +
                  opName(program, *other),
              "the write by " + by() + ", '" +
                  program.origins[other->origin].name + "'",
              other);
  } else if (int l = options.races && clock != clockUnwritten &&
                             clock > w.known && clock < clockLimit
                         ? unreleasedLane(w, clock, writer & 63,
                                          1u << (s.writeLane[cell] & 31))
                         : -1;
             l >= 0 && !(isAtomic(inst) && isAtomic(*other))) {
    releaseRace(w, inst, lane, "write of " + sharedPlace(address), "write",
                writer & 63, l, *other);
  } else if (hot.laneOrder) {
    writeAfterLanes(s, w, inst, lane, cell, address);
  }
  auto against = [&](uint32_t actor) {
    size_t at = row(actor) * static_cast<size_t>(s.cells) + cell;
    uint64_t read = s.reads[at];
    const Inst *reader = &program.insts[static_cast<uint32_t>(read)];
    if (isAtomic(inst) && isAtomic(*reader))
      return;
    if (int l = unreleasedLane(w, read >> 32, actor, s.readLanes[at]); l >= 0)
      return releaseRace(w, inst, lane, "write of " + sharedPlace(address),
                         "read", actor, l, *reader);
    if (!unordered(w, read >> 32, actor))
      return;
    std::string name = actorName(actor);
    storeRace(/*same=*/false, w, inst, lane,
              "shared-memory race: write of " + sharedPlace(address) +
                  (actor < maxWarps ? missing(static_cast<uint32_t>(read))
                                    : " with no wait after ") +
                  "the read by " + name + ", " + opName(program, *reader),
              "the read by " + name + ", '" +
                  program.origins[reader->origin].name + "'",
              reader);
  };
  if (options.races && s.readMax[cell] > w.known) {
    for (const Warp &v : warps)
      against(v.id);
    for (uint64_t rest = agents; rest; rest &= rest - 1)
      against(__builtin_ctzll(rest));
  }
  s.writeLane[cell] = lane;
  s.writeClock[cell] = async ? clockInFlight : w.clock;
  s.writer[cell] =
      static_cast<uint32_t>(&inst - program.insts.data()) << 6 | w.id;
}

void Run::shadowRead(Warp &w, const Inst &inst, unsigned lane, uint32_t address,
                     uint32_t size) {
  for (uint32_t at = address, end = address + size; at < end;) {
    uint32_t word = at / 4, stop = std::min(end, 4 * word + 4);
    bool whole = at % 4 == 0 && stop - at == 4;
    if (wordClock[word] != clockSplit && whole) {
      cellRead(hot.words, w, inst, lane, word, at);
    } else {
      if (wordClock[word] != clockSplit)
        split(word);
      for (uint32_t b = at; b < stop; ++b)
        cellRead(bytes, w, inst, lane, b, b);
    }
    at = stop;
  }
}

void Run::shadowWrite(Warp &w, const Inst &inst, unsigned lane,
                      uint32_t address, uint32_t size) {
  for (uint32_t at = address, end = address + size; at < end;) {
    uint32_t word = at / 4, stop = std::min(end, 4 * word + 4);
    bool whole = at % 4 == 0 && stop - at == 4;
    if (wordClock[word] != clockSplit && whole) {
      cellWrite(hot.words, w, inst, lane, word, at, false);
    } else {
      if (wordClock[word] != clockSplit)
        split(word);
      for (uint32_t b = at; b < stop; ++b)
        cellWrite(bytes, w, inst, lane, b, b, false);
      if (whole) {
        // One state again. Reads of the bytes are ordered before this write
        // or reported, so that the word may forget them.
        wordClock[word] = byteClock[at];
        wordWriter[word] = byteWriter[at];
        wordLane[word] = byteLane[at];
      }
    }
    at = stop;
  }
}

//===----------------------------------------------------------------------===//
// Asynchronous copies
//===----------------------------------------------------------------------===//

void Run::asyncIssue(Warp &w, const Inst &inst, const uint32_t *dst,
                     const uint64_t *src, const uint32_t *srcBytes,
                     uint64_t mask) {
  if (tooMany(w, inst, w.copies.size(), "copies of a warp"))
    return;
  AsyncCopy &copy = w.copies.emplace_back();
  copy.inst = &inst - program.insts.data();
  copy.bytes = inst.imm;
  copy.mask = mask;
  copy.landed = false;
  copy.serial = w.copySerial++;
  if (trace) {
    copy.issued = trace->time(w, inst);
    traceShared(w, inst, dst, copy.bytes, mask, /*store=*/true);
  }
  uint32_t me = copy.inst << 6 | w.id, known = w.known;
  for (uint64_t rest = mask; rest; rest &= rest - 1) {
    unsigned l = __builtin_ctzll(rest);
    copy.dst[l] = dst[l];
    copy.src[l] = src[l];
    copy.srcBytes[l] = srcBytes[l];
    copy.group[l] = w.committed[l];
    if (!hot.checkShadow)
      continue;
    for (uint32_t word = dst[l] / 4, end = word + copy.bytes / 4; word < end;
         ++word) {
      uint32_t clock = wordClock[word];
      if ((clock <= known || clock == clockUnwritten) &&
          wordReadMax[word] <= known) {
        wordClock[word] = clockInFlight;
        wordWriter[word] = me;
        wordLane[word] = l;
        continue;
      }
      if (clock == clockSplit) {
        for (unsigned k = 0; k < 4; ++k)
          cellWrite(bytes, w, inst, l, 4 * word + k, 4 * word + k, true);
        wordClock[word] = clockInFlight;
        wordWriter[word] = me;
        wordLane[word] = l;
        continue;
      }
      cellWrite(hot.words, w, inst, l, word, 4 * word, true);
    }
  }
  if (options.landing == Landing::Eager)
    land(w, copy, mask);
}

void Run::asyncCommit(Warp &w) {
  for (uint64_t rest = w.mask; rest; rest &= rest - 1)
    ++w.committed[__builtin_ctzll(rest)];
}

// Moves the bytes of some lanes.
void Run::land(Warp &w, AsyncCopy &copy, uint64_t which) {
  if (copy.landed)
    return;
  for (uint64_t rest = which; rest; rest &= rest - 1) {
    unsigned l = __builtin_ctzll(rest);
    uint8_t *d = shared.data() + copy.dst[l];
    readGlobal(d, copy.src[l], copy.srcBytes[l]);
    std::fill(d + copy.srcBytes[l], d + copy.bytes, 0);
  }
  if (which == copy.mask)
    copy.landed = true;
}

void Run::asyncWait(Warp &w, const Inst &inst, uint32_t pending, uint64_t lanes,
                    bool ofTensors) {
  bool finished = false;
  if (trace) {
    trace->wait(w, inst);
    trace->moment(w, inst);
  }
  for (AsyncCopy &copy : w.copies) {
    if (copy.byTensor != ofTensors)
      continue;
    uint64_t due = 0;
    for (uint64_t rest = copy.mask & lanes; rest; rest &= rest - 1) {
      unsigned l = __builtin_ctzll(rest);
      // The lane's newest `pending` groups may stay in flight; a copy that is
      // in no group yet is not waited for.
      if (copy.group[l] + pending < (ofTensors ? w.tensors : w.committed[l]))
        due |= 1ull << l;
    }
    if (!due)
      continue;
    land(w, copy, due);
    if (trace)
      trace->copied(w.id, program.insts[copy.inst], copy.issued,
                    copy.bytes * static_cast<uint64_t>(std::popcount(due)));
    copy.mask &= ~due;
    finished |= !copy.mask;
    if (!hot.checkShadow)
      continue;
    // From here on it is a write of this warp.
    w.touched = w.clock;
    uint32_t me = copy.inst << 6 | w.id;
    for (uint64_t rest = due; rest; rest &= rest - 1) {
      unsigned l = __builtin_ctzll(rest);
      for (uint32_t word = copy.dst[l] / 4, end = word + copy.bytes / 4;
           word < end; ++word)
        if (wordClock[word] == clockInFlight && wordWriter[word] == me)
          wordClock[word] = w.clock;
    }
  }
  if (finished)
    std::erase_if(w.copies, [](const AsyncCopy &c) { return !c.mask; });
}

// Lets some copy of some warp arrive, as hardware might.
void Run::landRandom() {
  for (Warp &w : warps)
    for (AsyncCopy &copy : w.copies)
      if (!copy.landed && next() % 4 == 0)
        land(w, copy, copy.mask);
  landRandomBulk();
}
