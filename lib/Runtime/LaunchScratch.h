//===- lib/Runtime/LaunchScratch.h - Memory of launches ---------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_RUNTIME_LAUNCHSCRATCH_H
#define KVBUFFER_LIB_RUNTIME_LAUNCHSCRATCH_H

#include "GraphLeases.h"

#include <list>
#include <vector>

namespace kvbuf::rt {

/// The stream of a launch, and the graph that it is captured into.
struct StreamUse {
  /// Numbers that no other stream, and no other capture, has had; the second is
  /// 0 outside of captures.
  uint64_t stream = 0, capture = 0;
  /// Null outside of captures.
  void *graph = nullptr;
};

/// Throws Error where the driver cannot tell.
StreamUse useOf(GpuBackend &gpu, void *stream);

/// Device memory for the workspaces and counters of a module's launches.
///
/// Launches that follow each other, on one stream or on one stream within one
/// capture, use the same memory: what one leaves in a workspace the next does
/// not read, and counters it leaves at zero. They are cleared once, on the
/// stream, before the first of these launches; in a graph at each replay.
/// Memory grows with what launches ask for. That of a capture belongs to the
/// graph for as long as it lives (as with LaunchCounters, two instances of one
/// graph must not run at the same time).
class LaunchScratch {
public:
  explicit LaunchScratch(GpuBackend &gpu);
  ~LaunchScratch();
  LaunchScratch(const LaunchScratch &) = delete;
  LaunchScratch &operator=(const LaunchScratch &) = delete;

  /// Where the scratch memory of the next launch on `stream` is: `counterBytes`
  /// bytes of zeros, then `bytes` others, from a multiple of 256 on. Calls must
  /// not overlap.
  uint64_t next(void *stream, uint64_t counterBytes, uint64_t bytes);

  /// Whether a graph that uses some of this memory is still alive.
  bool heldByGraphs() const { return leases.heldByGraphs(); }

  /// What every part begins at a multiple of, bytes.
  static constexpr uint64_t kAlign = 256;

private:
  struct Chunk {
    uint64_t address = 0, bytes = 0;
  };
  /// A stream's chunk: counters first.
  struct Group {
    uint64_t stream = 0, capture = 0;
    Chunk chunk;
    uint64_t counterBytes = 0;
  };

  Chunk take(uint64_t bytes);

  GpuBackend &gpu;
  GraphLeases<Chunk> leases;
  /// All that was allocated.
  std::vector<uint64_t> allocated;
  /// The last used first.
  std::list<Group> groups;
};

} // namespace kvbuf::rt

#endif // KVBUFFER_LIB_RUNTIME_LAUNCHSCRATCH_H
