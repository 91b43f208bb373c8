//===- Launch.cpp - What the blocks of a launch have in common ------------===//
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
    return usage("a block of " + std::to_string(perBlock) +
                 " threads; the machine takes " +
                 std::to_string(chip.maxThreads));
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
    return usage("a block needs " + std::to_string(sharedBytes) +
                 " bytes of shared memory; the machine has " +
                 std::to_string(maxShared));
  if (cluster > 1) {
    std::string of = "clusters of " + std::to_string(cluster);
    for (unsigned d = 0; d < 3; ++d)
      if (size.grid[d] % size.cluster[d])
        return usage("a grid of " + std::to_string(size.grid[d]) +
                     " blocks along " + "xyz"[d] + " is no whole number of " +
                     of);
    if (warpsPerBlock * cluster > maxWarps ||
        (program.usesGroups && warpsPerBlock % warpsPerGroup) ||
        sharedBytes > clusterSpan)
      return usage("blocks of " + std::to_string(warpsPerBlock) +
                   " warps and " + std::to_string(sharedBytes) +
                   " bytes do not go into " + of +
                   "; the emulator takes whole warpgroups, " +
                   std::to_string(maxWarps) + " warps in all and " +
                   std::to_string(clusterSpan) + " bytes a block");
  }
  if (uint64_t bytes = hostBytes(sharedBytes); bytes > options.maxMemory)
    return usage("a block needs " + std::to_string(bytes) +
                 " bytes of host memory for its registers, private and shared "
                 "memory; at most " +
                 std::to_string(options.maxMemory) +
                 " are possible ('max_memory')");
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
                      "parameter " + std::to_string(p.index)});
  }
  prepareHidden();
  return true;
}

// LLVM, "User Guide for AMDGPU Backend": hidden kernel arguments of code
// objects V5, and the packet of the HSA queue.
void Launch::prepareHidden() {
  static constexpr const char *names[numHidden] = {
      "implicit arguments", "dispatch packet", "workspace of the grid"};
  for (unsigned k = 0; k < numHidden; ++k) {
    if (program.hidden[k] == noSlot)
      continue;
    std::vector<ParameterBytes> &memory = hidden[k];
    memory.assign(4, {});
    uint8_t *bytes = memory.front().bytes;
    auto put = [&](size_t at, auto value) {
      std::memcpy(bytes + at, &value, sizeof(value));
    };
    bool barrier = k == static_cast<unsigned>(Hidden::GridBarrier);
    for (unsigned d = 0; d < 3 && !barrier; ++d) {
      auto threads = static_cast<uint16_t>(size.block[d]);
      if (k == static_cast<unsigned>(Hidden::Arguments)) {
        put(4 * d, size.grid[d]);
        put(12 + 2 * d, threads); // of whole blocks; there are no others
      } else {
        put(4 + 2 * d, threads);
        put(12 + 4 * d, size.grid[d] * size.block[d]);
      }
    }
    uint16_t dimensions = size.grid[2] * size.block[2] > 1   ? 3
                          : size.grid[1] * size.block[1] > 1 ? 2
                                                             : 1;
    if (k == static_cast<unsigned>(Hidden::Arguments))
      put(64, dimensions);
    else if (!barrier)
      put(2, dimensions);
    uint64_t begin = reinterpret_cast<uint64_t>(bytes);
    ranges.push_back({begin, begin + 256, nullptr, true, barrier, names[k]});
  }
}
