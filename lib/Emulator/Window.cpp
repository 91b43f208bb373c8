//===- Window.cpp - The blocks that run at once ---------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Window.h"
#include "Async.h"
#include "Journal.h"

#include "kvbuffer/Emulator/Emulator.h"

#include <algorithm>
#include <numeric>

using namespace kvbuf::emu;

/// Host memory that blocks in execution take, bytes, unless they wait for
/// others: what the host's caches and small machines can bear.
static constexpr size_t kWindowBytes = 128 << 20;
/// And how many blocks. More of them find nothing that another order of so many
/// does not find.
static constexpr size_t kWindowBlocks = 8;
/// Blocks of which one takes the other's place within a round.
static constexpr size_t kMostInRow = 4;

Window::Window(const Options &options, std::vector<Range> &ranges)
    : options(options), workers(options.jobs),
      random(options.seed * 0x9E3779B97F4A7C15ull + 1) {
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
  hostBytes = std::max<size_t>(
      hostBytes,
      launch.hostBytes(static_cast<uint64_t>(launch.program.staticShared) +
                       launch.size.dynamicShared));
  wanted = options.window
               ? options.window
               : std::clamp<size_t>(kWindowBytes / hostBytes, 2, kWindowBlocks);
}

/// The next cluster of a grid.
uint64_t Window::take(Grid &grid) {
  ++grid.started;
  if (!grid.deferred.empty()) {
    uint64_t cluster = grid.deferred.front();
    grid.deferred.pop_front();
    return cluster;
  }
  // Without overflow, for grids of any size.
  return static_cast<uint64_t>(
      (grid.first + static_cast<unsigned __int128>(grid.step) * grid.taken++) %
      grid.clusters);
}

/// Lets a block or a cluster begin. False: there are no more, or no place for
/// them.
bool Window::admit() {
  std::vector<Grid *> waiting;
  for (Grid &grid : grids)
    if (grid.started < grid.clusters &&
        grid.resident * grid.launch->cluster < grid.launch->capacity)
      waiting.push_back(&grid);
  if (waiting.empty() ||
      (!resident.empty() &&
       (resident.size() + 1) * hostBytes > options.maxMemory))
    return false;
  Grid &grid = *waiting[next() % waiting.size()];
  Resident &r = resident.emplace_back();
  r.grid = &grid;
  r.clusters.push_back(take(grid));
  if (!grid.idle.empty()) {
    r.run = std::move(grid.idle.back());
    grid.idle.pop_back();
  }
  ++grid.resident;
  return true;
}

/// Fills up to so many places, and lets more blocks follow those that begin.
void Window::admitMore(size_t places) {
  size_t first = resident.size();
  while (resident.size() < places && admit())
    ;
  for (size_t row = 1; row < inRow; ++row)
    for (size_t k = first; k < resident.size(); ++k)
      if (Grid &grid = *resident[k].grid; grid.started < grid.clusters)
        resident[k].clusters.push_back(take(grid));
  for (size_t k = first; k < resident.size(); ++k)
    resident[k].serial = memory.reserve(resident[k].clusters.size());
}

bool Window::isIdle(const Resident &r) const {
  return r.started && (round < r.rests || r.run->waits());
}

bool Window::wake() {
  bool any = false;
  for (Resident &r : resident) {
    // Who has asked since anything changed would ask in vain.
    any |= round < r.rests && !r.run->waits();
    r.rests = 0;
  }
  return any;
}

/// Those that take part in the next round, in the order in which they settle.
std::vector<size_t> Window::choose() {
  std::vector<size_t> chosen;
  ++round;
  auto waits = [&](const Resident &r) { return isIdle(r); };
  bool all = std::all_of(resident.begin(), resident.end(), waits);
  for (size_t k = 0; k < resident.size(); ++k) {
    // What nothing has changed for would ask in vain.
    if (!all && waits(resident[k]))
      continue;
    // Those that have to do with each other get on at different paces.
    if (resident[k].told && next() % 4 == 0)
      continue;
    chosen.push_back(k);
  }
  if (chosen.empty())
    for (size_t k = 0; k < resident.size(); ++k)
      if (all || !waits(resident[k]))
        chosen.push_back(k);
  for (size_t k = chosen.size(); k > 1; --k)
    std::swap(chosen[k - 1], chosen[next() % k]);
  return chosen;
}

/// On any thread: executes what a block does for itself. `apart`: others do the
/// same meanwhile.
void Window::stretch(Resident &r, bool apart) {
  if (!r.run)
    r.run = std::make_unique<Run>(*r.grid->launch, *this);
  Run &run = *r.run;
  if (r.started) {
    run.setApart(apart);
    r.goesOn = run.turn();
    r.ended = !r.goesOn;
    return;
  }
  r.started = true;
  for (r.ended = 0;; ++r.ended) {
    run.start(r.clusters.front(), r.serial++);
    r.clusters.pop_front();
    run.setApart(apart);
    r.goesOn = run.turn();
    if (r.goesOn || run.hot.stop || r.clusters.empty())
      break;
    run.keepJournal();
  }
  r.ended += !r.goesOn;
}

/// Lets what a block has done in its stretch become true. False: the launch
/// ends.
bool Window::settle(Resident &r) {
  Run &run = *r.run;
  run.commit();
  if (run.hot.stop)
    return false;
  r.told = run.hot.giveWay || run.isHeld();
  // Others may have to end before this one does.
  r.grid->started -= r.clusters.size();
  for (uint64_t cluster : r.clusters)
    r.grid->deferred.push_back(cluster);
  r.clusters.clear();
  if (r.goesOn && run.isHeld()) {
    r.goesOn = run.executeHeld();
    r.ended += !r.goesOn;
  }
  // A few polls in vain are what most waits take.
  constexpr uint32_t few = 4, most = 10;
  r.inVain = r.goesOn && run.onlyPolls() ? r.inVain + 1 : 0;
  r.rests =
      r.inVain > few ? round + (1ull << std::min(r.inVain - few, most)) : 0;
  return !run.hot.stop;
}

void Window::retire(Resident &r) {
  epoch += r.ended;
  --r.grid->resident;
  r.grid->idle.push_back(std::move(r.run));
}

void Window::execute(const std::function<void(uint64_t, uint64_t)> &progress) {
  uint64_t done = 0, total = 0;
  for (const Grid &grid : grids)
    total += grid.launch->total;
  // So many accesses in vain are taken for a proof that nothing will come.
  constexpr uint64_t inVain = 20000;
  // Lanes give way to others of their warp before that, and so often in vain.
  constexpr uint64_t patience = 16, mostYields = 1000;
  uint64_t yields = 0, yieldEpoch = 0;
  bool goesOn = true;
  // A small launch is over before it has filled many blocks' memory.
  for (size_t target = 2; goesOn; target = std::min(2 * target, wanted)) {
    admitMore(std::clamp<size_t>(target, 1, wanted));
    if (resident.empty())
      break;
    std::vector<size_t> chosen = choose();
    bool apart = chosen.size() > 1;
    workers.run(chosen.size(),
                [&](size_t k) { stretch(resident[chosen[k]], apart); });
    bool alone = true;
    for (size_t k : chosen) {
      Resident &r = resident[k];
      goesOn = settle(r);
      alone &= !r.told && !r.goesOn;
      if (!goesOn)
        break;
      done += r.ended * r.grid->launch->cluster;
      if (r.goesOn)
        continue;
      retire(r);
      if (progress)
        progress(done, total);
    }
    if (!goesOn)
      break;
    std::erase_if(resident, [](const Resident &r) { return !r.goesOn; });
    // Those that have nothing to do with others need no such company.
    inRow = alone ? std::min(2 * inRow, kMostInRow) : 1;
    if (resident.empty() ||
        !std::all_of(resident.begin(), resident.end(),
                     [&](const Resident &r) { return isIdle(r); }))
      continue;
    // By a part of those that wait: they ask again after each of these steps.
    size_t before = resident.size();
    admitMore(before + std::max(kWindowBlocks, before / 2));
    if (resident.size() > before || wake())
      continue;
    uint64_t polls = 0;
    for (const Resident &r : resident)
      polls += r.run->polling()->polls;
    if (yieldEpoch != epoch)
      yields = 0;
    yieldEpoch = epoch;
    if (polls > patience && yields < mostYields) {
      bool yielded = false;
      for (const Resident &r : resident)
        yielded |= r.run->yieldLanes();
      yields += yielded;
      if (yielded)
        continue;
    }
    if (polls > inVain) {
      deadlock();
      break;
    }
  }
  collect();
}

/// Adds up what each of those that executed blocks has counted.
void Window::collect() {
  for (Grid &grid : grids) {
    grid.launch->blocksExecuted = grid.started * grid.launch->cluster;
    for (const auto &run : grid.idle)
      run->collect();
  }
  for (const Resident &r : resident) {
    r.grid->launch->blocksExecuted -=
        r.clusters.size() * r.grid->launch->cluster;
    if (r.run)
      r.run->collect();
  }
}

/// All blocks wait for something that no block will do.
void Window::deadlock() {
  Run &first = *resident.front().run;
  uint64_t started = 0, all = 0, capacity = 0;
  for (const Grid &grid : grids) {
    started += grid.started * grid.launch->cluster;
    all += grid.launch->total;
    capacity += grid.launch->capacity;
  }
  std::string text = "waits for global memory to change, and nothing can go on";
  if (started < all)
    text += ": " + std::to_string(all - started) + " of " +
            std::to_string(all) +
            " blocks cannot start before others end; the chip holds " +
            std::to_string(capacity) + " at once";
  const Warp &w = *first.polling();
  if (first.hot.isAMD && w.mask != w.live)
    text += "; the wave's other lanes wait for those that poll: they execute "
            "in step";
  first.fault(FaultKind::Deadlock, w, first.launch.program.insts[w.pollInst],
              -1, text);
  // Those who wait elsewhere, once for each place.
  std::set<std::pair<const Program *, uint32_t>> places = {
      {&first.launch.program, w.pollInst}};
  for (const Resident &r : resident) {
    const Warp &v = *r.run->polling();
    const Program &p = r.run->launch.program;
    if (!places.insert({&p, v.pollInst}).second)
      continue;
    const Origin &o = p.origins[p.insts[v.pollInst].origin];
    r.run->launch.message(Severity::Note, o.location,
                          "'" + o.name + "': " + r.run->blockName(v.rank) +
                              " waits here");
  }
}
