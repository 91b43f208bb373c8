//===- Launch.cpp - Launches and the blocks that run at once --------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Launch.h"
#include "Async.h"

#include "kvbuffer/Emulator/Emulator.h"

#include <algorithm>
#include <cstring>
#include <numeric>

using namespace kvbuf::emu;

static std::string number(uint64_t n) { return std::to_string(n); }

//===----------------------------------------------------------------------===//
// One launch
//===----------------------------------------------------------------------===//

Launch::Launch(const Program &program, const Options &options,
               std::vector<Range> &ranges, MessageAt message,
               const LaunchSize &size, std::vector<const void *> args)
    : program(program), options(options), ranges(ranges),
      message(std::move(message)), size(size), args(std::move(args)) {
  unsigned lanes = program.chip.lanes;
  threads = size.block[0] * size.block[1] * size.block[2];
  warpsPerBlock = (threads + lanes - 1) / lanes;
  if (!this->size.cluster[0])
    std::copy(program.cluster, program.cluster + 3, this->size.cluster);
  stats.assign(program.numStats, {});
  rangeOf.assign(program.numStats, 0);
  blockRuns.assign(program.blocks.size(), 0);
  blockLanes.assign(program.blocks.size(), 0);
}

/// Blocks of a grid. No launch comes to its end with more.
static constexpr uint64_t maxGrid = uint64_t(1) << 48;

uint64_t Launch::hostBytes(uint64_t sharedBytes) const {
  uint64_t allShared = (cluster - 1) * uint64_t(clusterSpan) + sharedBytes,
           count = uint64_t(cluster) * warpsPerBlock,
           rows = count + (program.async ? maxActors - maxWarps : 0),
           aLane = program.numSlots * uint64_t(4) + program.localBytes;
  // The shadow has two clocks and a writer for each word, and its readers.
  return aLane * program.chip.lanes * count + allShared +
         allShared / 4 * (12 + 8 * rows);
}

bool Launch::prepare() {
  auto usage = [&](const std::string &text) {
    message(Severity::Error, program.origins[0].location, text);
    return false;
  };
  const Chip &chip = program.chip;
  total = 1;
  for (unsigned d = 0; d < 3; ++d) {
    if (!size.grid[d] || !size.block[d])
      return usage("a grid and a block need at least one element in each "
                   "dimension");
    if (total > maxGrid / size.grid[d])
      return usage("a grid of more than 2^48 blocks");
    total *= size.grid[d];
  }
  uint64_t perBlock =
      static_cast<uint64_t>(size.block[0]) * size.block[1] * size.block[2];
  if (perBlock > chip.maxThreads)
    return usage("a block of " + number(perBlock) +
                 " threads; the machine takes " + number(chip.maxThreads));
  uint64_t blocks = 1;
  for (unsigned d = 0; d < 3; ++d) {
    if (program.clusterIsFixed && size.cluster[d] != program.cluster[d])
      return usage("a launch with other clusters than the kernel's");
    blocks = std::min<uint64_t>(blocks * std::max(size.cluster[d], 1u), 1024);
    size.cluster[d] = std::max(size.cluster[d], 1u);
  }
  cluster = static_cast<uint32_t>(blocks);
  uint64_t sharedBytes =
      static_cast<uint64_t>(program.staticShared) + size.dynamicShared;
  unsigned maxShared = options.maxShared ? options.maxShared : chip.maxShared;
  if (sharedBytes > maxShared)
    return usage("a block needs " + number(sharedBytes) +
                 " bytes of shared memory; the machine has " +
                 number(maxShared));
  if (cluster > 1) {
    std::string of = "clusters of " + number(cluster);
    for (unsigned d = 0; d < 3; ++d)
      if (size.grid[d] % size.cluster[d])
        return usage("a grid of " + number(size.grid[d]) + " blocks along " +
                     "xyz"[d] + " is no whole number of " + of);
    if (warpsPerBlock * cluster > maxWarps ||
        (program.usesGroups && warpsPerBlock % warpsPerGroup) ||
        sharedBytes > clusterSpan)
      return usage("blocks of " + number(warpsPerBlock) + " warps and " +
                   number(sharedBytes) + " bytes do not go into " + of +
                   "; the emulator takes whole warpgroups, " +
                   number(maxWarps) + " warps in all and " +
                   number(clusterSpan) + " bytes a block");
  }
  if (uint64_t bytes = hostBytes(sharedBytes); bytes > options.maxMemory)
    return usage("a block needs " + number(bytes) +
                 " bytes of host memory for its registers, private and shared "
                 "memory; at most " +
                 number(options.maxMemory) + " are possible ('max_memory')");
  if (options.maxBlocks)
    total = std::min<uint64_t>(total, options.maxBlocks);
  // The blocks of a cluster run together, as one with all their warps.
  total = (total + cluster - 1) / cluster * cluster;

  // Registers may allow fewer, but how many they allow is the assembler's.
  uint64_t byThreads = chip.residentThreads / (warpsPerBlock * chip.lanes),
           byShared = maxShared / std::max<uint64_t>(sharedBytes, 1),
           most = std::max<uint64_t>(std::min(byThreads, byShared), 1);
  capacity = std::max(chip.multiprocessors * std::min<uint64_t>(most, 32),
                      uint64_t(cluster)) /
             cluster * cluster;

  // A kernel sees a parameter passed by value as memory that it may read.
  byValue.resize(args.size());
  for (const Parameter &p : program.parameters) {
    if (!p.byValue)
      continue;
    std::vector<ParameterBytes> &copy = byValue[p.index];
    copy.resize((p.bytes + 63) / 64);
    std::memcpy(copy.data(), args[p.index], p.bytes);
    uint64_t begin = reinterpret_cast<uint64_t>(copy.data());
    ranges.push_back({begin, begin + p.bytes, nullptr, true, false,
                      "parameter " + number(p.index)});
  }
  return true;
}

//===----------------------------------------------------------------------===//
// The window
//===----------------------------------------------------------------------===//

/// Host memory that blocks in execution take, bytes, unless they wait for
/// others: what the host's caches and small machines can bear.
static constexpr size_t kWindowBytes = 128 << 20;
/// And how many blocks. More of them find nothing that another order of so many
/// does not find.
static constexpr size_t kWindowBlocks = 8;

Window::Window(const Options &options, std::vector<Range> &ranges)
    : options(options), random(options.seed * 0x9E3779B97F4A7C15ull + 1) {
  for (Range &range : ranges) {
    range.watched = false;
    if (options.races && range.writable)
      memory.watch(range);
  }
}

Window::~Window() = default;

uint64_t Window::next() {
  random ^= random >> 12;
  random ^= random << 25;
  random ^= random >> 27;
  return random * 0x2545F4914F6CDD1Dull;
}

void Window::add(Launch &launch) {
  Grid &grid = grids.emplace_back();
  grid.launch = &launch;
  grid.clusters = launch.total / launch.cluster;
  // Every cluster once, in an order that has no beginning or end of its own.
  grid.first = next() % grid.clusters;
  do
    grid.step = 1 + next() % grid.clusters;
  while (std::gcd(grid.step, grid.clusters) != 1);
}

/// Starts a block or a cluster. False: there are no more, or no place for them.
bool Window::admit() {
  std::vector<Grid *> waiting;
  for (Grid &grid : grids)
    if (grid.started < grid.clusters &&
        grid.resident * grid.launch->cluster < grid.launch->capacity)
      waiting.push_back(&grid);
  if (waiting.empty() ||
      (!resident.empty() &&
       (resident.size() + 1) * resident.front()->hostBytes() >
           options.maxMemory))
    return false;
  Grid &grid = *waiting[next() % waiting.size()];
  Launch &launch = *grid.launch;
  std::unique_ptr<Run> run;
  if (grid.idle.empty()) {
    run = std::make_unique<Run>(launch, *this);
    size_t many = std::max<size_t>(kWindowBytes / run->hostBytes(), 2);
    wanted = options.window ? options.window : std::min(many, kWindowBlocks);
  } else {
    run = std::move(grid.idle.back());
    grid.idle.pop_back();
  }
  // Without overflow, for grids of any size.
  uint64_t cluster = static_cast<uint64_t>(
      (grid.first + static_cast<unsigned __int128>(grid.step) * grid.started) %
      grid.clusters);
  run->start(cluster);
  ++grid.started;
  ++grid.resident;
  resident.push_back(std::move(run));
  return true;
}

void Window::retire(size_t index) {
  std::unique_ptr<Run> run = std::move(resident[index]);
  resident.erase(resident.begin() + index);
  ++epoch;
  for (Grid &grid : grids)
    if (grid.launch == &run->launch) {
      --grid.resident;
      grid.idle.push_back(std::move(run));
      return;
    }
}

void Window::execute(const std::function<void(uint64_t, uint64_t)> &progress) {
  uint64_t done = 0, total = 0;
  for (const Grid &grid : grids)
    total += grid.launch->total;
  // So many accesses in vain are taken for a proof that nothing will come.
  constexpr uint64_t inVain = 20000;
  for (wanted = 1;;) {
    // A block that has nothing to do with others mostly ends in its first turn,
    // and the next one finds its memory in the host's caches.
    size_t more = together ? wanted : resident.size() + next() % 2;
    while (resident.size() < std::clamp<size_t>(more, 1, wanted) && admit())
      ;
    if (resident.empty())
      return;
    size_t index = next() % resident.size();
    Run &run = *resident[index];
    bool goesOn = run.turn();
    if (run.hot.stop)
      return;
    together |= run.hot.giveWay;
    if (!goesOn) {
      done += run.launch.cluster;
      retire(index);
      if (progress)
        progress(done, total);
      continue;
    }
    if (!run.waits() || !std::all_of(resident.begin(), resident.end(),
                                     [](const auto &r) { return r->waits(); }))
      continue;
    if (admit())
      continue;
    uint64_t polls = 0;
    for (const auto &r : resident)
      polls += r->polling()->polls;
    if (polls > inVain)
      return deadlock();
  }
}

/// All blocks wait for something that no block will do.
void Window::deadlock() {
  Run &first = *resident.front();
  uint64_t started = 0, all = 0, capacity = 0;
  for (const Grid &grid : grids) {
    started += grid.started * grid.launch->cluster;
    all += grid.launch->total;
    capacity += grid.launch->capacity;
  }
  std::string text = "waits for global memory to change, and nothing can go on";
  if (started < all)
    text += ": " + number(all - started) + " of " + number(all) +
            " blocks cannot start before others end; the chip holds " +
            number(capacity) + " at once";
  const Warp &w = *first.polling();
  first.fault(FaultKind::Deadlock, w, first.launch.program.insts[w.pollInst],
              -1, text);
  // Those who wait elsewhere, once for each place.
  std::set<std::pair<const Program *, uint32_t>> places = {
      {&first.launch.program, w.pollInst}};
  for (const auto &r : resident) {
    const Warp &v = *r->polling();
    const Program &p = r->launch.program;
    if (!places.insert({&p, v.pollInst}).second)
      continue;
    const Origin &o = p.origins[p.insts[v.pollInst].origin];
    r->launch.message(Severity::Note, o.location,
                      "'" + o.name + "': " + r->blockName(v.rank) +
                          " waits here");
  }
}
