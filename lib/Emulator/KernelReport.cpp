//===- KernelReport.cpp - What a kernel did -------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelReport.h"

#include <map>

using namespace kvbuf::emu;
namespace json = llvm::json;

void Kernel::add(const Launch &run, double seconds) {
  const Program &p = program;
  KernelTotals &t = totals;
  ++t.launches;
  t.blocks += run.blocksExecuted;
  t.unwaited += run.unwaitedCopies;
  t.seconds += seconds;
  t.runs.resize(p.blocks.size());
  t.lanes.resize(p.blocks.size());
  t.stats.resize(p.numStats);
  for (size_t b = 0; b < p.blocks.size(); ++b) {
    t.runs[b] += run.blockRuns[b];
    t.lanes[b] += run.blockLanes[b];
  }
  for (size_t s = 0; s < p.numStats; ++s) {
    t.stats[s].accesses += run.stats[s].accesses;
    t.stats[s].bytes += run.stats[s].bytes;
    t.stats[s].cost += run.stats[s].cost;
    t.stats[s].ideal += run.stats[s].ideal;
    t.stats[s].passes += run.stats[s].passes;
    t.stats[s].idealPasses += run.stats[s].idealPasses;
  }
  llvm::append_range(t.findings, run.findings);
  if (run.trace)
    t.trace = run.trace->json(run.tracedBlock, run.warpsPerBlock);
}

static const char *spaceOf(Code op) {
  switch (op) {
  case Code::LoadShared:
  case Code::StoreShared:
  case Code::LdMatrix:
  case Code::StMatrix:
  case Code::AmdReadTr16:
  case Code::AmdLoadTr16:
    return "shared";
  case Code::LoadLocal:
  case Code::StoreLocal:
    return "local";
  default:
    return "global";
  }
}

static bool isStore(Code op) {
  return op == Code::StoreShared || op == Code::StMatrix ||
         op == Code::StoreGlobal || op == Code::StoreLocal ||
         op == Code::StoreGeneric || op == Code::BulkStore ||
         op == Code::AmdBufferStore;
}

/// How often each operation was executed, by warps and by lanes.
static json::Array countOperations(const Kernel &kernel) {
  const Program &p = kernel.program;
  struct Count {
    uint64_t warps = 0, lanes = 0;
    Class kind = Class::None;
  };
  std::map<uint32_t, Count> counts;
  for (size_t b = 0; b < p.blocks.size(); ++b)
    for (uint32_t i = p.blocks[b].begin; i < p.blocks[b].end; ++i) {
      const Inst &inst = p.insts[i];
      if (inst.cls == Class::None || !kernel.totals.runs[b])
        continue;
      Count &count = counts[inst.origin];
      count.warps += kernel.totals.runs[b];
      count.lanes += kernel.totals.lanes[b];
      count.kind = inst.cls;
    }
  json::Array list;
  for (const auto &[origin, count] : counts)
    list.push_back(json::Object{{"op", p.origins[origin].name},
                                {"location", p.origins[origin].location},
                                {"class", className(count.kind)},
                                {"warp", count.warps},
                                {"lane", count.lanes}});
  return list;
}

namespace {
/// What the memory operations of a kernel did.
struct MemoryTotals {
  json::Array lines;
  std::map<std::string, uint64_t> moved;
  uint64_t conflicts = 0, sectors = 0, idealSectors = 0;
};

/// By how much the count of a class of instructions differs from how often
/// instructions of the class were executed. Wraps around below zero.
struct ClassMove {
  uint64_t warps = 0, lanes = 0;
};
} // namespace

/// Where a generic address points is known when it is used: counts accesses to
/// shared and private memory as what they were.
static std::vector<ClassMove> moveGeneric(const Kernel &kernel) {
  const Program &p = kernel.program;
  std::vector<ClassMove> moves(numClasses);
  if (kernel.totals.stats.empty())
    return moves;
  auto add = [&](Class c, uint64_t warps, uint64_t lanes) {
    moves[static_cast<unsigned>(c)].warps += warps;
    moves[static_cast<unsigned>(c)].lanes += lanes;
  };
  for (size_t b = 0; b < p.blocks.size(); ++b)
    for (uint32_t k = p.blocks[b].begin; k < p.blocks[b].end; ++k) {
      const Inst &inst = p.insts[k];
      if (!isGenericAccess(inst.op) || !inst.imm)
        continue;
      add(inst.cls, -kernel.totals.runs[b], -kernel.totals.lanes[b]);
      auto count = [&](uint32_t which, Class c) {
        const MemStat &s = kernel.totals.stats[inst.stat + which];
        add(c, s.accesses, s.bytes / static_cast<uint64_t>(inst.imm));
      };
      bool store = isStore(inst.op);
      count(0, inst.cls);
      count(genericShared, store ? Class::SharedStore : Class::SharedLoad);
      count(genericLocal, Class::Local);
    }
  return moves;
}

/// Adds up the pieces of each MLIR operation, by where they were executed.
static MemoryTotals countMemory(const Kernel &kernel) {
  const Program &p = kernel.program;
  const KernelTotals &t = kernel.totals;
  MemoryTotals all;
  std::map<std::pair<uint32_t, std::string>, MemStat> lines;
  auto add = [&](const Inst &inst, uint32_t which, const std::string &space) {
    const MemStat &s = t.stats[inst.stat + which];
    if (!s.accesses)
      return;
    MemStat &line = lines[{inst.origin, space}];
    line.accesses += s.accesses;
    line.bytes += s.bytes;
    line.cost += s.cost;
    line.ideal += s.ideal;
    line.passes += s.passes;
    line.idealPasses += s.idealPasses;
    all.conflicts += s.passes - s.idealPasses;
    all.moved[space + (isStore(inst.op) ? "_written" : "_read")] += s.bytes;
    if (inst.op == Code::CpAsync || inst.op == Code::BulkLoad ||
        inst.op == Code::AmdBufferLoadLds ||
        inst.op == Code::AmdGlobalLoadLds || inst.op == Code::AmdTensorLoad)
      all.moved["shared_written"] += s.bytes;
    if (space == "shared")
      all.conflicts += s.cost - s.ideal;
    if (space == "global") {
      all.sectors += s.cost;
      all.idealSectors += s.ideal;
    }
  };
  for (const Inst &inst : p.insts) {
    bool hasStat =
        (inst.imm || inst.op == Code::BulkLoad || inst.op == Code::BulkStore) &&
        inst.cls != Class::None && inst.align;
    if (!(hasStat || inst.op == Code::LdMatrix || inst.op == Code::StMatrix) ||
        t.stats.empty())
      continue;
    add(inst, 0, spaceOf(inst.op));
    if (isGenericAccess(inst.op)) {
      add(inst, genericShared, "shared");
      add(inst, genericLocal, "local");
    }
  }
  for (const auto &[key, s] : lines) {
    const auto &[origin, space] = key;
    json::Object o{{"op", p.origins[origin].name},
                   {"location", p.origins[origin].location},
                   {"space", space},
                   {"accesses", s.accesses},
                   {"bytes", s.bytes}};
    if (space == "shared") {
      o["passes"] = s.cost;
      o["ideal_passes"] = s.ideal;
      o["bank_conflicts"] = s.cost - s.ideal;
    } else if (space == "global") {
      o["sectors"] = s.cost;
      o["ideal_sectors"] = s.ideal;
      if (s.idealPasses) {
        o["passes"] = s.passes;
        o["ideal_passes"] = s.idealPasses;
        o["bank_conflicts"] = s.passes - s.idealPasses;
      }
    }
    all.lines.push_back(std::move(o));
  }
  return all;
}

json::Object Kernel::report() const {
  const Program &p = program;
  const KernelTotals &t = totals;
  json::Object classes, bytes;
  uint64_t laneInstructions = 0, warpInstructions = 0;
  double products = 0;
  for (size_t b = 0; b < t.runs.size(); ++b)
    products += static_cast<double>(t.runs[b]) * p.blocks[b].products;
  std::vector<ClassMove> moves = moveGeneric(*this);
  for (unsigned c = 1; c < numClasses; ++c) {
    uint64_t warps = moves[c].warps, lanes = moves[c].lanes;
    for (size_t b = 0; b < t.runs.size(); ++b) {
      warps += t.runs[b] * p.blocks[b].classCount[c];
      lanes += t.lanes[b] * p.blocks[b].classCount[c];
    }
    warpInstructions += warps;
    laneInstructions += lanes;
    if (warps)
      classes[className(static_cast<Class>(c))] =
          json::Object{{"warp", warps}, {"lane", lanes}};
  }
  MemoryTotals memory = countMemory(*this);
  for (const auto &[name, n] : memory.moved)
    bytes[name] = n;
  json::Array errors;
  for (const Finding &f : t.findings)
    errors.push_back(json::Object{{"kind", faultName(f.kind)},
                                  {"op", f.op},
                                  {"location", f.location},
                                  {"text", f.text},
                                  {"count", f.count}});
  json::Object all{{"entry", p.name},
                   {"launches", t.launches},
                   {"blocks", t.blocks},
                   {"instructions", std::move(classes)},
                   {"warp_instructions", warpInstructions},
                   {"lane_instructions", laneInstructions},
                   {"matrix_products", products},
                   {"bytes", std::move(bytes)},
                   {"bank_conflicts", memory.conflicts},
                   {"sectors", memory.sectors},
                   {"ideal_sectors", memory.idealSectors},
                   {"unwaited_async_copies", t.unwaited},
                   {"memory", std::move(memory.lines)},
                   {"errors", std::move(errors)},
                   {"seconds", t.seconds}};
  if (t.trace.kind() != json::Value::Null) {
    all["operations"] = countOperations(*this);
    all["trace"] = t.trace;
  }
  return all;
}
