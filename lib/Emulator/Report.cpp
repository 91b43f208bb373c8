//===- Report.cpp - Faults in words, and slow address checks --------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Journal.h"
#include "Launch.h"

#include "kvbuffer/Dialect/KVBuffer/IR/LdsMap.h"
#include "kvbuffer/Emulator/Emulator.h"

#include "llvm/Demangle/Demangle.h"

#include <cstdio>

using namespace kvbuf::emu;

const char *kvbuf::emu::className(Class c) {
  static const char *const names[numClasses] = {
      "none",         "integer",     "float",        "transcendental",
      "convert",      "matrix",      "matrix_load",  "shared_load",
      "shared_store", "global_load", "global_store", "local",
      "async_copy",   "barrier",     "shuffle",      "branch"};
  return names[static_cast<unsigned>(c)];
}

const char *kvbuf::emu::faultName(FaultKind kind) {
  static const char *const names[] = {
      "race",       "store-conflict", "unwritten", "in-flight",   "bounds",
      "misaligned", "access",         "barrier",   "deadlock",    "divergence",
      "trap",       "proxy",          "mbarrier",  "accumulator", "descriptor",
      "registers",  "limit"};
  return names[static_cast<unsigned>(kind)];
}

static std::string hex(uint64_t x) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%llx",
                static_cast<unsigned long long>(x));
  return text;
}

std::string Run::who(const Warp &w, int lane) const {
  std::string text;
  unsigned number = w.id - w.rank * warpsPerBlock;
  if (lane >= 0)
    text = "thread " + std::to_string(number * lanes + lane) + " (lane " +
           std::to_string(lane) + " of warp " + std::to_string(number) + ", ";
  else
    text = "warp " + std::to_string(number) + " (";
  return text + blockName(w.rank) + ")";
}

void Run::blockPosition(uint32_t rank, unsigned at[3]) const {
  const unsigned *cluster = launch.size.cluster;
  at[0] = blockIndex[0] + rank % cluster[0];
  at[1] = blockIndex[1] + rank / cluster[0] % cluster[1];
  at[2] = blockIndex[2] + rank / cluster[0] / cluster[1];
}

std::string Run::blockName(uint32_t rank) const {
  unsigned at[3];
  blockPosition(rank, at);
  return "block " + std::to_string(at[0]) + "," + std::to_string(at[1]) + "," +
         std::to_string(at[2]) +
         (launch.ordinal ? " of launch " + std::to_string(launch.ordinal) : "");
}

std::string Run::sharedPlace(uint32_t address) const {
  uint32_t begin = blockBegin(address);
  address -= begin;
  std::string text = "shared byte " + hex(address);
  for (const Program::SharedVar &v : program.sharedVars)
    if (address >= v.offset && address - v.offset < v.bytes)
      text += " (byte " + std::to_string(address - v.offset) + " of '" +
              llvm::demangle(v.name) + "')";
  // Buffers that are never in use at the same time may share bytes.
  for (const auto &buffer : program.ldsBuffers)
    if (std::optional<kvbuf::LdsBuffer::Place> place = buffer->placeOf(address))
      text += " (row " + std::to_string(place->row) + ", column " +
              std::to_string(place->col) + ", of slot " +
              std::to_string(place->slot) + " of '" + buffer->name + "')";
  if (launch.cluster > 1)
    text += " of the cluster's block " + std::to_string(begin / clusterSpan);
  return text;
}

std::string Run::globalPlace(uint64_t address, uint32_t size) const {
  // The nearest range that the access touches, or that lies before it.
  const Range *near = nullptr;
  for (const Range &r : ranges) {
    if (address < r.end && address + size > r.begin)
      near = &r;
    else if (!near && address >= r.end && address - r.end < (1u << 30))
      near = &r;
    else if (near && address >= r.end && r.end > near->end &&
             address >= near->end)
      near = &r;
  }
  std::string bytes = std::to_string(size) + " bytes at ";
  if (!near) {
    for (const Range &r : ranges)
      if (address < r.begin && r.begin - address < (1u << 20))
        return bytes + std::to_string(r.begin - address) +
               " bytes before buffer '" + r.name + "'";
    return bytes + hex(address) + ", in no buffer";
  }
  return bytes + "offset " + std::to_string(address - near->begin) +
         " of buffer '" + near->name + "' (" +
         std::to_string(near->end - near->begin) + " bytes)";
}

bool Run::tooMany(Warp &w, const Inst &inst, size_t count, const char *what) {
  if (count < maxInFlight)
    return false;
  fault(FaultKind::Limit, w, inst, -1,
        "more than " + std::to_string(maxInFlight) + " " + what +
            " that nothing has waited for");
  return hot.stop = true;
}

void Run::faultText(FaultKind kind, const Warp &w, const Inst &inst, int lane,
                    const char *text) {
  fault(kind, w, inst, lane, text);
}

bool Run::isCounted(FaultKind kind, const Inst &inst, const Inst *other,
                    uint64_t count) {
  if (hot.apart)
    return journal->isCounted(/*isWarning=*/false, kind, inst, other);
  auto it = launch.known.find({kind, inst.origin, other ? other->origin : ~0u});
  if (it == launch.known.end())
    return false;
  launch.findings[it->second].count += count;
  return true;
}

void Run::fault(FaultKind kind, const Warp &w, const Inst &inst, int lane,
                const std::string &text, const std::string &note,
                const Inst *other, const Program *of, uint64_t count) {
  std::vector<Finding> &findings = launch.findings;
  std::tuple<FaultKind, uint32_t, uint32_t> key = {kind, inst.origin,
                                                   other ? other->origin : ~0u};
  if (hot.apart) {
    bool isNew = journal->fault(/*isWarning=*/false, kind, w, inst, lane, text,
                                note, other, of);
    // Whether there are too many is known when all is.
    if (isNew && !launch.known.count(key) &&
        findings.size() + ++newFaults >= options.maxErrors)
      hot.giveWay = true;
    return;
  }
  if (isCounted(kind, inst, other, count))
    return;
  launch.known[key] = findings.size();
  const Origin &origin = program.origins[inst.origin];
  findings.push_back({kind, origin.name, origin.location, text, count});
  message(Severity::Error, origin.location,
          "'" + origin.name + "' by " + who(w, lane) + ": " + text);
  describe(origin);
  if (other) {
    const Origin &o = (of ? of : &program)->origins[other->origin];
    message(Severity::Note, o.location, "'" + o.name + "': " + note);
    describe(o);
  }
  if (findings.size() >= options.maxErrors && !hot.stop) {
    message(Severity::Note, origin.location,
            std::to_string(findings.size()) +
                " different errors; the launch stops here");
    hot.stop = true;
  }
}

void Run::describe(const Origin &origin) {
  if (!origin.text.empty())
    message(Severity::Note, origin.location, origin.text);
}

void Run::leavesOut(const Warp &w, const Inst &inst) {
  const char *text = "the member mask leaves out lanes that execute it";
  if (options.strict)
    fault(FaultKind::Divergence, w, inst, -1, text);
  else
    warning(FaultKind::Divergence, w, inst, -1, text);
}

// The machine gives 0 (CDNA 3 ISA, "DS_BPERMUTE_B32"); HIP leaves it open.
void Run::readsNobody(const Warp &w, const Inst &inst, int lane) {
  const char *text = "reads from a lane that does not take part: it gets 0, "
                     "which HIP does not promise";
  if (options.strict)
    fault(FaultKind::Divergence, w, inst, lane, text);
  else
    warning(FaultKind::Divergence, w, inst, lane, text);
}

void Run::warning(FaultKind kind, const Warp &w, const Inst &inst, int lane,
                  const std::string &text, const std::string &note,
                  const Inst *other) {
  if (hot.apart) {
    if (!launch.warned.count({kind, inst.origin}))
      journal->fault(/*isWarning=*/true, kind, w, inst, lane, text, note, other,
                     nullptr);
    return;
  }
  if (!launch.warned.insert({kind, inst.origin}).second)
    return;
  const Origin &origin = program.origins[inst.origin];
  message(Severity::Warning, origin.location,
          "'" + origin.name + "' by " + who(w, lane) + ": " + text);
  describe(origin);
  if (!other)
    return;
  const Origin &o = program.origins[other->origin];
  message(Severity::Note, o.location, "'" + o.name + "': " + note);
  describe(o);
}

//===----------------------------------------------------------------------===//
// Addresses, lane by lane
//===----------------------------------------------------------------------===//

uint64_t Run::checkShared(Warp &w, const Inst &inst, const uint32_t *address,
                          uint32_t size, uint64_t mask, bool store) {
  uint64_t good = 0;
  const char *verb = store ? "writes " : "reads ";
  for (uint64_t rest = mask; rest; rest &= rest - 1) {
    unsigned l = __builtin_ctzll(rest);
    if (static_cast<uint64_t>(address[l] - hot.sharedBegin) + size >
        hot.sharedBytes)
      fault(FaultKind::Bounds, w, inst, l,
            std::string("out of bounds: ") + verb + std::to_string(size) +
                " bytes at shared byte " + hex(address[l]) +
                "; the block has " + std::to_string(hot.sharedBytes));
    else if (address[l] & (inst.align - 1))
      fault(FaultKind::Misaligned, w, inst, l,
            std::string("misaligned: ") + verb + std::to_string(size) +
                " bytes at " + sharedPlace(address[l]) +
                ", which needs an alignment of " + std::to_string(inst.align));
    else
      good |= 1ull << l;
  }
  return good;
}

uint64_t Run::checkLocal(Warp &w, const Inst &inst, const uint32_t *address,
                         uint32_t size, uint64_t mask, bool store) {
  uint64_t good = 0;
  for (uint64_t rest = mask; rest; rest &= rest - 1) {
    unsigned l = __builtin_ctzll(rest);
    if (static_cast<uint64_t>(address[l]) + size > hot.localBytes ||
        address[l] & (inst.align - 1))
      fault(FaultKind::Bounds, w, inst, l,
            std::string("out of bounds or misaligned: ") +
                (store ? "writes " : "reads ") + std::to_string(size) +
                " bytes at private byte " + hex(address[l]));
    else
      good |= 1ull << l;
  }
  return good;
}

uint64_t Run::checkGlobal(Warp &w, const Inst &inst, const uint64_t *address,
                          uint32_t size, uint64_t mask, bool store) {
  uint64_t good = 0;
  const char *verb = store ? "writes " : "reads ";
  for (uint64_t rest = mask; rest; rest &= rest - 1) {
    unsigned l = __builtin_ctzll(rest);
    uint64_t a = address[l];
    if (a & (inst.align - 1)) {
      fault(FaultKind::Misaligned, w, inst, l,
            std::string("misaligned: ") + verb + globalPlace(a, size) +
                ", which needs an alignment of " + std::to_string(inst.align));
      continue;
    }
    const Range *range = nullptr;
    for (const Range &r : ranges)
      if (a >= r.begin && a < r.end && r.end - a >= size)
        range = &r;
    if (!range) {
      fault(FaultKind::Bounds, w, inst, l,
            std::string("out of bounds: ") + verb + globalPlace(a, size));
      continue;
    }
    if (!(store ? range->writable : range->readable)) {
      fault(FaultKind::Access, w, inst, l,
            std::string(verb) + globalPlace(a, size) + ", which is " +
                (store ? "read-only" : "write-only"));
      continue;
    }
    good |= 1ull << l;
    if (!range->written)
      continue;
    if (store)
      setWritten(*range, a, size);
    else if (!isWritten(*range, a, size))
      readUnwritten(w, inst, l, a);
  }
  return good;
}

void Run::readUnwritten(Warp &w, const Inst &inst, unsigned lane,
                        uint64_t address) {
  if (options.uninitialized)
    fault(FaultKind::Unwritten, w, inst, lane,
          "reads " + globalPlace(address, inst.imm) +
              ", which nothing has written");
}

void Run::storeConflict(Warp &w, const Inst &inst, unsigned lane,
                        uint64_t address, const char *space) {
  if (options.races)
    fault(FaultKind::StoreConflict, w, inst, lane,
          std::string("another lane of the same instruction stores a "
                      "different value to the same place, ") +
              (space[0] == 's' ? sharedPlace(static_cast<uint32_t>(address))
                               : globalPlace(address, inst.imm)));
}
