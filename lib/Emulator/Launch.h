//===- Launch.h - What the blocks of a launch have in common ----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_LIB_EMULATOR_LAUNCH_H
#define KVBUF_LIB_EMULATOR_LAUNCH_H

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
  /// Makes the memory that no argument names.
  void prepareHidden();
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
  /// What the program's `hidden` slots point to.
  std::vector<ParameterBytes> hidden[numHidden];

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
  std::map<std::tuple<FaultKind, uint32_t, uint32_t>, size_t> known;
  /// Kinds and operations that have been warned of.
  std::set<std::pair<FaultKind, uint32_t>> warned;
};

} // namespace kvbuf::emu

#endif // KVBUF_LIB_EMULATOR_LAUNCH_H
