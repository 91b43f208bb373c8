//===- BulkCopies.cpp - Boxes between global and shared memory ------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The copy engine: PTX ISA, "Data Movement and Conversion Instructions:
// cp.async.bulk". A box lies densely in shared memory, dimension 0 first; the
// swizzle exchanges 16-byte units by bits of the absolute shared address.
//
//===----------------------------------------------------------------------===//

#include "Async.h"

#include "kvbuffer/Emulator/Emulator.h"

#include <algorithm>
#include <cstring>

using namespace kvbuf::emu;
using kvbuf::rt::SoftwareTensorMap;

//===----------------------------------------------------------------------===//
// Boxes
//===----------------------------------------------------------------------===//

uint32_t AsyncState::rowBytes(const BulkCopy &copy) {
  return copy.map.rank ? copy.map.box[0] * copy.map.elementBytes : copy.bytes;
}

AsyncState::Piece AsyncState::rowOf(const BulkCopy &copy, uint32_t row) {
  const SoftwareTensorMap &m = copy.map;
  if (!m.rank)
    return {copy.global, 0, copy.bytes};
  uint64_t global = m.address;
  if (copy.gathers) {
    int64_t at = copy.at[1 + row];
    if (at < 0 || static_cast<uint64_t>(at) >= m.dims[1])
      return {0, 0, 0};
    global += at * m.strides[0];
  }
  for (unsigned d = 1; !copy.gathers && d < m.rank; ++d) {
    int64_t at = static_cast<int64_t>(copy.at[d]) + row % m.box[d];
    row /= m.box[d];
    if (at < 0 || static_cast<uint64_t>(at) >= m.dims[d])
      return {0, 0, 0};
    global += at * m.strides[d - 1];
  }
  int64_t first = copy.at[0], end = first + m.box[0],
          last = std::min<int64_t>(end, m.dims[0]),
          begin = std::max<int64_t>(first, 0);
  if (begin >= last)
    return {0, 0, 0};
  return {global + begin * m.elementBytes,
          static_cast<uint32_t>(begin - first) * m.elementBytes,
          static_cast<uint32_t>(last - begin) * m.elementBytes};
}

bool AsyncState::checkRow(Run &run, Warp &w, const Inst &inst, unsigned lane,
                          const Piece &piece, bool store) {
  const char *verb = store ? "writes " : "reads ";
  for (const Range &r : run.ranges) {
    if (piece.global < r.begin || piece.global >= r.end ||
        r.end - piece.global < piece.bytes)
      continue;
    if (!(store ? r.writable : r.readable)) {
      run.fault(FaultKind::Access, w, inst, lane,
                verb + run.globalPlace(piece.global, piece.bytes) +
                    ", which is " + (store ? "read-only" : "write-only"));
      return false;
    }
    if (store) {
      run.setWritten(r, piece.global, piece.bytes);
    } else if (run.options.uninitialized &&
               !run.isWritten(r, piece.global, piece.bytes)) {
      run.fault(FaultKind::Unwritten, w, inst, lane,
                "reads " + run.globalPlace(piece.global, piece.bytes) +
                    ", some of which nothing has written");
      return false;
    }
    return true;
  }
  run.fault(FaultKind::Bounds, w, inst, lane,
            std::string("out of bounds: ") + verb +
                run.globalPlace(piece.global, piece.bytes));
  return false;
}

// Fills in `copy` and checks all that can be checked where it is issued.
bool AsyncState::fill(Run &run, Warp &w, const Inst &inst, unsigned lane,
                      uint64_t address, const int32_t *at, uint32_t bytes,
                      uint32_t shared, BulkCopy &copy, bool count) {
  copy.inst = &inst - run.program.insts.data();
  copy.warp = w.id;
  copy.lane = lane;
  copy.shared = shared;
  if (run.trace)
    copy.issued = run.trace->time(w, inst);
  copy.map = {};
  copy.at = {};
  copy.gathers = inst.op == Code::BulkLoad && inst.flags & bulkGathers;
  unsigned coordinates = inst.imm, rank = copy.gathers ? 2 : coordinates;
  bool store = inst.op == Code::BulkStore, watching = run.hot.watching;
  if (watching && store)
    copy.event = run.beginStore(w, inst);
  if (rank) {
    bool found = false;
    for (const Range &r : run.ranges)
      if (address >= r.begin && address < r.end &&
          r.end - address >= sizeof(SoftwareTensorMap))
        found = true;
    auto bad = [&](const std::string &why) {
      run.fault(FaultKind::Descriptor, w, inst, lane, "tensor map: " + why);
      return false;
    };
    if (!found)
      return bad("no 128 bytes of memory at its address");
    if (address % 64)
      return bad("its address is no multiple of 64");
    run.readGlobal(&copy.map, address, sizeof(copy.map));
    if (std::string why = rt::whyInvalid(copy.map); !why.empty())
      return bad(why);
    if (copy.map.rank != rank)
      return bad(
          "it has " + std::to_string(copy.map.rank) + " dimensions, and " +
          (copy.gathers ? "rows of a matrix are gathered"
                        : std::to_string(rank) + " coordinates are given"));
    if (copy.gathers && copy.map.box[1] != 1)
      return bad("its boxes have " + std::to_string(copy.map.box[1]) +
                 " rows; rows are gathered in boxes of one");
    uint64_t all = copy.map.elementBytes;
    for (unsigned d = 0; d < rank; ++d)
      all *= copy.map.box[d];
    for (unsigned d = 0; d < coordinates; ++d)
      copy.at[d] = at[d];
    if (copy.gathers)
      all *= coordinates - 1;
    if (all > run.hot.sharedBytes) {
      run.fault(FaultKind::Bounds, w, inst, lane,
                "out of bounds: a box of " + std::to_string(all) +
                    " bytes; the block has " +
                    std::to_string(run.hot.sharedBytes));
      return false;
    }
    copy.bytes = static_cast<uint32_t>(all);
  } else {
    copy.global = address;
    copy.bytes = bytes;
    if (bytes % 16 || address % 16) {
      run.fault(FaultKind::Misaligned, w, inst, lane,
                "misaligned: " + std::to_string(bytes) +
                    " bytes at global address " + std::to_string(address) +
                    "; both need to be multiples of 16");
      return false;
    }
  }
  // Boxes need 128 bytes, copies in a row 16.
  unsigned align = rank ? 128 : 16;
  if (shared % align) {
    run.fault(FaultKind::Misaligned, w, inst, lane,
              "misaligned: " + run.sharedPlace(shared) +
                  " needs an alignment of " + std::to_string(align));
    return false;
  }
  // A swizzle moves units within spans, of which a narrow row fills a part.
  uint64_t end =
      static_cast<uint64_t>(shared - run.blockBegin(shared)) + copy.bytes;
  if (uint32_t span = copy.map.swizzle)
    end = (end + span - 1) / span * span;
  if (end > run.hot.sharedBytes) {
    run.fault(FaultKind::Bounds, w, inst, lane,
              "out of bounds: a box of " + std::to_string(copy.bytes) +
                  " bytes at " + run.sharedPlace(shared) + "; the block has " +
                  std::to_string(run.hot.sharedBytes));
    return false;
  }
  uint32_t row = rowBytes(copy);
  // What several blocks receive is read once.
  MemStat unused, &s = count ? run.hot.stats[inst.stat] : unused;
  ++s.accesses;
  for (uint32_t r = 0; row && r < copy.bytes / row; ++r) {
    Piece piece = rowOf(copy, r);
    if (!piece.bytes)
      continue;
    if (!checkRow(run, w, inst, lane, piece, store))
      return false;
    if (watching)
      run.orderBulk(w, inst, lane, piece.global, piece.bytes, store,
                    copy.event);
    s.bytes += piece.bytes;
    s.cost += (piece.global + piece.bytes + 31) / 32 - piece.global / 32;
    s.ideal += (piece.bytes + 31) / 32;
  }
  return true;
}

void AsyncState::moveIn(Run &run, BulkCopy &copy) {
  if (copy.read)
    return;
  copy.read = true;
  if (!copy.data.empty()) {
    std::memcpy(run.shared.data() + copy.shared, copy.data.data(), copy.bytes);
    return;
  }
  if (copy.isWords) {
    std::memcpy(run.shared.data() + copy.shared, copy.words.data(), copy.bytes);
    return;
  }
  uint32_t row = rowBytes(copy);
  uint8_t buffer[2048];
  for (uint32_t r = 0; row && r < copy.bytes / row; ++r) {
    Piece piece = rowOf(copy, r);
    uint32_t to = copy.shared + r * row;
    if (!copy.map.rank) {
      run.readGlobal(run.shared.data() + to, piece.global, row);
      continue;
    }
    std::memset(buffer, 0, row);
    if (piece.bytes)
      run.readGlobal(buffer + piece.offset, piece.global, piece.bytes);
    uint32_t span = copy.map.swizzle ? copy.map.swizzle : 16;
    for (uint32_t b = 0; b < row; b += 16)
      std::memcpy(run.shared.data() + swizzled(to + b, span), buffer + b, 16);
  }
}

void AsyncState::moveOut(Run &run, const BulkCopy &copy) {
  uint32_t row = rowBytes(copy);
  uint8_t buffer[2048];
  for (uint32_t r = 0; row && r < copy.bytes / row; ++r) {
    Piece piece = rowOf(copy, r);
    uint32_t from = copy.shared + r * row;
    if (!copy.map.rank) {
      run.writeGlobal(piece.global, run.shared.data() + from, row);
      continue;
    }
    uint32_t span = copy.map.swizzle ? copy.map.swizzle : 16;
    for (uint32_t b = 0; b < row; b += 16)
      std::memcpy(buffer + b, run.shared.data() + swizzled(from + b, span), 16);
    if (piece.bytes)
      run.writeGlobal(piece.global, buffer + piece.offset, piece.bytes);
  }
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

void Run::bulkLoad(Warp &w, const Inst &inst, unsigned lane, uint32_t dst,
                   uint64_t source, uint32_t mbarrier,
                   const int32_t *coordinates, uint32_t size, bool count) {
  MBarrier *b =
      async->find(*this, w, inst, lane, mbarrier, "copies in the name of");
  BulkCopy copy;
  if (!b || !async->fill(*this, w, inst, lane, source, coordinates, size, dst,
                         copy, count))
    return;
  if (!b->fenced) {
    std::string text =
        "the copy engine may not see the mbarrier at " +
        sharedPlace(b->address) +
        ": no 'nvvm.fence.mbarrier.init' after its initialisation";
    const Inst &init = program.insts[b->initInst];
    if (options.strict)
      fault(FaultKind::Proxy, w, inst, lane, text, "the initialisation", &init);
    else
      warning(FaultKind::Proxy, w, inst, lane, text, "the initialisation",
              &init);
    b->fenced = true;
  }
  async->send(*this, w, inst, *b, copy);
}

uint32_t AsyncState::copyAgentOf(Run &run, MBarrier &b) {
  if (!b.copyAgent)
    b.copyAgent = newAgent(run,
                           "the copy engine, for the mbarrier at " +
                               run.sharedPlace(b.address),
                           /*generic=*/false);
  return b.copyAgent;
}

void AsyncState::send(Run &run, Warp &w, const Inst &inst, MBarrier &target,
                      BulkCopy &copy) {
  MBarrier *b = &target;
  if (run.tooMany(w, inst, b->copies.size(), "copies for one mbarrier"))
    return;
  if (b->pending == 0 && b->inFlight + copy.bytes > b->bytes) {
    run.fault(FaultKind::MBarrier, w, inst, copy.lane,
              "copies " + std::to_string(copy.bytes) +
                  " bytes for the mbarrier at " + run.sharedPlace(b->address) +
                  ", more than it awaits (" + describe(*b) + ")",
              "its last arrival", &run.program.insts[b->lastArrival]);
    return;
  }
  uint32_t agent = copyAgentOf(run, *b);
  if (run.hot.checkShadow)
    writeWords(run, w, inst, copy.shared / 4, copy.bytes / 4, agent);
  b->inFlight += copy.bytes;
  if (run.trace)
    run.trace->touch(w.id, inst, copy.shared, copy.bytes, /*store=*/true);
  b->copies.push_back(copy);
  if (run.options.landing == Landing::Eager)
    moveIn(run, b->copies.back());
  ++epoch;
  if (run.options.landing == Landing::Eager && completes(*b))
    settle(run, *b);
}

//===----------------------------------------------------------------------===//
// Stores
//===----------------------------------------------------------------------===//

void Run::bulkStore(Warp &w, const Inst &inst, unsigned lane, uint32_t src,
                    uint64_t target, const int32_t *coordinates,
                    uint32_t size) {
  BulkCopy copy;
  if (!async->fill(*this, w, inst, lane, target, coordinates, size, src, copy))
    return;
  WarpAsync &a = *w.async;
  if (tooMany(w, inst, a.stores.size(), "bulk stores of a warp"))
    return;
  if (!a.storeAgent)
    a.storeAgent = async->newAgent(
        *this, "the copy engine, for warp " + std::to_string(w.id),
        /*generic=*/false);
  copy.group = a.bulkCommitted[lane];
  copy.clock = ++clockCounter;
  if (trace)
    trace->touch(w.id, inst, copy.shared, copy.bytes, /*store=*/false);
  if (hot.checkShadow)
    for (uint32_t at = 0; at < copy.bytes && !hot.stop; at += 4)
      async->readWord(*this, w, inst, (copy.shared + at) / 4, a.storeAgent,
                      copy.clock, /*stamp=*/true);
  a.stores.push_back(copy);
  if (copy.event)
    a.written.push_back({lane, copy.group, copy.event});
  if (options.landing == Landing::Eager)
    async->landStore(*this, a.stores.back());
}

void AsyncState::landStore(Run &run, BulkCopy &copy) {
  if (copy.read)
    return;
  moveOut(run, copy);
  ++*run.hot.changes;
  copy.read = true;
}

void Run::bulkCommit(Warp &w) {
  for (uint64_t rest = w.mask; rest; rest &= rest - 1)
    ++w.async->bulkCommitted[__builtin_ctzll(rest)];
}

// With `read` (flags = 1) the sources may be written again; else the data has
// arrived in global memory as well.
void Run::bulkWait(Warp &w, const Inst &inst) {
  WarpAsync &a = *w.async;
  uint32_t pending = inst.imm;
  bool any = false;
  if (!inst.flags)
    std::erase_if(a.written, [&](const WarpAsync::Written &s) {
      if (!(w.mask >> s.lane & 1) ||
          s.group + pending >= a.bulkCommitted[s.lane])
        return false;
      endStore(w, s.event);
      return true;
    });
  for (BulkCopy &copy : a.stores) {
    if (!(w.mask >> copy.lane & 1) ||
        copy.group + pending >= a.bulkCommitted[copy.lane])
      continue;
    async->landStore(*this, copy);
    w.seen[a.storeAgent] = std::max(w.seen[a.storeAgent], copy.clock);
    copy.bytes = 0;
    any = true;
  }
  if (!any)
    return;
  std::erase_if(a.stores, [](const BulkCopy &c) { return !c.bytes; });
  updateKnown(w);
}
