//===- Launch.h - Launches and the blocks that run at once ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A machine holds many blocks at once, starts them in any order, and lets each
// of them go on as it likes. So does the emulator: a *window* of blocks runs
// interleaved, by turns that the seed decides, and blocks that wait for others
// let those run. Few blocks are enough for that; where all of them wait, more
// are started, up to as many as the chip could hold.
//
// The clusters of a grid are started in a seeded order too: with few of them in
// the window, any of them may nevertheless be the last one.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_LIB_EMULATOR_LAUNCH_H
#define KVBUF_LIB_EMULATOR_LAUNCH_H

#include "GlobalMemory.h"
#include "Machine.h"
#include "Print.h"
#include "Trace.h"

#include <set>

namespace kvbuf::emu {

/// The size of a launch.
struct LaunchSize {
  unsigned grid[3], block[3], dynamicShared;
  /// Blocks of a cluster; zeros: as the kernel says.
  unsigned cluster[3] = {0, 0, 0};
};

/// One launch of a kernel: what its blocks have in common.
class Launch {
public:
  Launch(const Program &program, const Options &options,
         std::vector<Range> &ranges, MessageAt message, const LaunchSize &size,
         std::vector<const void *> args);

  /// Checks the sizes and registers what is passed by value. False: usage error
  /// (a message was sent).
  bool prepare();
  /// Host memory that a block, or a cluster, takes while it runs, in bytes.
  uint64_t hostBytes(uint64_t sharedBytes) const;

  const Program &program;
  const Options &options;
  std::vector<Range> &ranges;
  MessageAt message;
  LaunchSize size;
  std::vector<const void *> args;
  /// Of several launches at once, from 1 on; 0: the only one.
  unsigned ordinal = 0;
  /// Of a block.
  unsigned threads, warpsPerBlock;
  /// Blocks of a cluster.
  uint32_t cluster = 1;
  /// Blocks that will be executed, whole clusters.
  uint64_t total = 0;
  /// The blocks of this launch that the chip can hold at once, whole clusters.
  uint64_t capacity = 0;
  /// Copies of the parameters passed by value.
  struct alignas(64) ParameterBytes {
    uint8_t bytes[64];
  };
  std::vector<std::vector<ParameterBytes>> byValue;

  // Results.
  std::vector<uint64_t> blockRuns, blockLanes;
  std::vector<MemStat> stats;
  std::vector<Finding> findings;
  uint64_t unwaitedCopies = 0;
  uint64_t blocksExecuted = 0;
  /// Of the block that the options name; null: none was wanted, or it has not
  /// run.
  std::unique_ptr<Trace> trace;
  std::string tracedBlock;
  /// Somebody asked the launch to end.
  bool interrupted = false;
  /// An assertion of the kernel's own failed.
  bool asserted = false;
  /// HIP's messages that lanes are about to make, by block and lane.
  std::map<std::pair<const Run *, uint32_t>, OcklMessage> messages;

  // Bookkeeping that blocks share.
  std::vector<uint32_t> rangeOf;
  std::map<std::tuple<FaultKind, uint32_t, uint32_t>, size_t> known;
  /// Kinds and operations that have been warned of.
  std::set<std::pair<FaultKind, uint32_t>> warned;
  /// LDS operations that some wave had on their way at a barrier.
  std::set<uint32_t> carriedOver;
};

/// The blocks that run at once, of one launch or of several.
class Window {
public:
  Window(const Options &options, std::vector<Range> &ranges);
  ~Window();

  /// Takes part in what `execute` does. The launch has been prepared.
  void add(Launch &launch);
  /// Executes all blocks of all launches.
  void execute(const std::function<void(uint64_t, uint64_t)> &progress);

  /// Counts what others may wait for: changes of global memory, and the ends of
  /// blocks.
  uint64_t epoch = 0;
  /// Who accessed what kernels may write.
  GlobalMemory memory;

private:
  struct Grid {
    Launch *launch;
    /// Clusters that have been started, of how many.
    uint64_t started = 0, clusters = 0;
    /// The order in which they start: multiples of `step` from `first` on.
    uint64_t first = 0, step = 1;
    uint64_t resident = 0;
    /// Blocks that have ended, to be used again.
    std::vector<std::unique_ptr<Run>> idle;
  };

  bool admit();
  void retire(size_t index);
  void deadlock();
  uint64_t next();

  const Options &options;
  std::vector<Grid> grids;
  std::vector<std::unique_ptr<Run>> resident;
  /// Blocks that may run at once before others have to wait for them.
  size_t wanted = 0;
  /// Some block has told others something.
  bool together = false;
  uint64_t random;
};

} // namespace kvbuf::emu

#endif // KVBUF_LIB_EMULATOR_LAUNCH_H
