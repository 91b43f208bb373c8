//===- Trace.cpp - What one block does, in order --------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Trace.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <tuple>

using namespace kvbuf::emu;
namespace json = llvm::json;

/// More events than these nobody looks at.
static constexpr size_t maxEvents = 20000;
/// Copies and products that follow each other within so many instructions are
/// one event.
static constexpr uint64_t nearby = 32;
/// Bytes of a unit of shared memory: the smallest vectors that swizzles move.
static constexpr uint32_t unitBytes = 8;

Trace::Trace(const Program &program, unsigned count)
    : program(program), warps(count) {
  for (uint32_t i = 0; i < program.insts.size(); ++i) {
    const Inst &inst = program.insts[i];
    bool isAsync = inst.op == Code::Wgmma || inst.op == Code::WgmmaFence ||
                   inst.op == Code::WgmmaCommit || inst.op == Code::WgmmaWait ||
                   inst.op == Code::WgmmaCheck;
    if (inst.cls == Class::Matrix && !isAsync)
      multiplies.push_back(i);
  }
}

uint32_t Trace::indexOf(const Inst &inst) const {
  return static_cast<uint32_t>(&inst - program.insts.data());
}

uint64_t Trace::time(const Warp &w, const Inst &inst) const {
  const WarpState &s = warps[w.id];
  int64_t at = s.base + static_cast<int64_t>(indexOf(inst)) -
               program.blocks[s.block].begin;
  return static_cast<uint64_t>(std::max<int64_t>(at, 0));
}

void Trace::add(Kind kind, uint32_t warp, uint32_t origin, uint64_t begin,
                uint64_t end, uint64_t bytes) {
  if (events.size() >= maxEvents) {
    truncated = true;
    return;
  }
  events.push_back(
      {kind, warp, origin, begin, std::max(begin, end), 1, bytes, begin});
}

void Trace::products(const Warp &w, uint32_t end) {
  WarpState &s = warps[w.id];
  for (auto it = std::lower_bound(multiplies.begin(), multiplies.end(), s.next);
       it != multiplies.end() && *it < end; ++it) {
    const Inst &inst = program.insts[*it];
    uint64_t at = time(w, inst);
    if (s.lastProduct < events.size()) {
      Event &last = events[s.lastProduct];
      if (at >= last.end && at - last.end <= nearby) {
        last.end = at + 1;
        ++last.count;
        continue;
      }
    }
    s.lastProduct = events.size();
    add(Kind::Product, w.id, inst.origin, at, at + 1);
  }
  s.next = std::max(s.next, end);
}

void Trace::enter(const Warp &w, uint32_t block) {
  WarpState &s = warps[w.id];
  // What a warp has executed counts whole blocks, but for the kernel's first.
  bool isFirst = !s.started;
  s.started = true;
  if (!isFirst)
    products(w, program.blocks[s.block].end);
  s.block = block;
  s.next = program.blocks[block].begin;
  s.base = isFirst ? 0
                   : s.delay + static_cast<int64_t>(w.executed) +
                         program.blocks[0].end - program.blocks[0].begin;
}

void Trace::putForward(uint32_t warp, int64_t by) {
  warps[warp].base += by;
  warps[warp].delay += by;
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

void Trace::arriveAtBarrier(uint32_t barrier, const Warp &w, const Inst &inst) {
  products(w, indexOf(inst));
  uint64_t at = time(w, inst);
  waiting[w.id] = {at, inst.origin};
  uint64_t &last = barrierTime[barrier];
  last = std::max(last, at);
}

void Trace::release(uint32_t barrier, uint64_t mask) {
  uint64_t last = barrierTime[barrier];
  barrierTime.erase(barrier);
  for (uint32_t v = 0; v < warps.size(); ++v) {
    auto arrival = waiting.find(v);
    if (!(mask >> v & 1) || arrival == waiting.end())
      continue;
    uint64_t begin = arrival->second.time;
    last = std::max(last, begin);
    add(Kind::Barrier, v, arrival->second.origin, begin, last);
    putForward(v, static_cast<int64_t>(last - begin));
    waiting.erase(arrival);
  }
}

void Trace::arrive(uint32_t mbarrier, const Warp &w, const Inst &inst) {
  uint64_t &last = phaseTime[mbarrier];
  last = std::max(last, time(w, inst));
}

void Trace::complete(uint32_t mbarrier) {
  phases[mbarrier].push_back(phaseTime[mbarrier]);
  phaseTime[mbarrier] = 0;
}

void Trace::test(const Warp &w, const Inst &inst, uint32_t mbarrier,
                 uint64_t phase, bool done) {
  products(w, indexOf(inst));
  WarpState &s = warps[w.id];
  int64_t at = static_cast<int64_t>(time(w, inst));
  if (s.since < 0)
    s.since = at;
  if (!done)
    return;
  const std::vector<uint64_t> &times = phases[mbarrier];
  int64_t end = phase < times.size() ? static_cast<int64_t>(times[phase]) : 0;
  end = std::max(end, s.since);
  // Asking again and again takes no time here.
  putForward(w.id, end - at);
  add(Kind::Wait, w.id, inst.origin, static_cast<uint64_t>(s.since),
      static_cast<uint64_t>(end));
  s.since = -1;
}

void Trace::wait(const Warp &w, const Inst &inst) {
  products(w, indexOf(inst));
  add(Kind::Wait, w.id, inst.origin, time(w, inst), time(w, inst));
}

//===----------------------------------------------------------------------===//
// Copies, products, bytes
//===----------------------------------------------------------------------===//

void Trace::copied(uint32_t warp, const Inst &inst, uint64_t issued,
                   uint64_t bytes) {
  uint64_t end = std::max(now, issued);
  if (!events.empty()) {
    Event &last = events.back();
    if (last.kind == Kind::Copy && last.warp == warp && last.end == end &&
        issued >= last.lastBegin && issued - last.lastBegin <= nearby) {
      last.lastBegin = issued;
      ++last.count;
      last.bytes += bytes;
      return;
    }
  }
  add(Kind::Copy, warp, inst.origin, issued, end, bytes);
}

void Trace::multiplied(const Warp &w, const Inst &product, uint64_t issued,
                       const Inst &wait) {
  uint64_t end = time(w, wait);
  if (!events.empty()) {
    Event &last = events.back();
    if (last.kind == Kind::Product && last.warp == w.id && last.end == end) {
      ++last.count;
      return;
    }
  }
  add(Kind::Product, w.id, product.origin, issued, end);
}

void Trace::touch(uint32_t warp, const Inst &inst, uint32_t address,
                  uint32_t bytes, bool store) {
  // The blocks of a cluster do the same in their own memory.
  if (address >= clusterSpan)
    return;
  auto &byWarp = units[{inst.origin, store}];
  byWarp.resize(std::max<size_t>(byWarp.size(), warp + 1));
  std::vector<bool> &bits = byWarp[warp];
  uint32_t first = address / unitBytes,
           last = (address + std::max(bytes, 1u) - 1) / unitBytes;
  if (bits.size() <= last)
    bits.resize(last + 1);
  for (uint32_t u = first; u <= last; ++u)
    bits[u] = true;
}

void Run::traceEnter(const Warp &w, uint32_t block) { trace->enter(w, block); }

void Run::traceShared(const Warp &w, const Inst &inst, const uint32_t *address,
                      uint32_t count, uint64_t mask, bool store) {
  for (uint64_t rest = mask; rest; rest &= rest - 1)
    trace->touch(w.id, inst, address[__builtin_ctzll(rest)], count, store);
}

json::Value Trace::json(const std::string &name, unsigned warpsPerBlock) {
  static const char *const kinds[] = {"copy", "product", "wait", "barrier"};
  json::Array ops, all, shared;
  std::map<uint32_t, int64_t> numbers;
  auto numberOf = [&](uint32_t origin) {
    auto [it, isNew] = numbers.try_emplace(origin, ops.size());
    if (isNew)
      ops.push_back(
          json::Object{{"op", program.origins[origin].name},
                       {"location", program.origins[origin].location}});
    return it->second;
  };
  llvm::sort(events, [](const Event &a, const Event &b) {
    return std::tie(a.begin, a.warp, a.kind, a.end, a.origin) <
           std::tie(b.begin, b.warp, b.kind, b.end, b.origin);
  });
  uint64_t length = 0;
  for (const Event &e : events) {
    length = std::max(length, e.end);
    json::Object event{{"kind", kinds[static_cast<unsigned>(e.kind)]},
                       {"warp", e.warp},
                       {"op", numberOf(e.origin)},
                       {"begin", e.begin},
                       {"end", e.end},
                       {"count", e.count}};
    if (e.bytes)
      event["bytes"] = e.bytes;
    all.push_back(std::move(event));
  }
  for (const auto &[key, byWarp] : units)
    for (size_t v = 0; v < byWarp.size(); ++v) {
      const std::vector<bool> &bits = byWarp[v];
      json::Array ranges;
      for (size_t u = 0; u < bits.size(); ++u) {
        if (!bits[u])
          continue;
        size_t end = u;
        while (end + 1 < bits.size() && bits[end + 1])
          ++end;
        ranges.push_back(static_cast<int64_t>(u));
        ranges.push_back(static_cast<int64_t>(end));
        u = end;
      }
      if (!ranges.empty())
        shared.push_back(json::Object{{"op", numberOf(key.first)},
                                      {"store", key.second},
                                      {"warp", static_cast<int64_t>(v)},
                                      {"units", std::move(ranges)}});
    }
  return json::Object{{"block", name},
                      {"warps", static_cast<int64_t>(warps.size())},
                      {"warps_per_block", warpsPerBlock},
                      {"length", length},
                      {"truncated", truncated},
                      {"unit_bytes", unitBytes},
                      {"ops", std::move(ops)},
                      {"events", std::move(all)},
                      {"shared", std::move(shared)}};
}
