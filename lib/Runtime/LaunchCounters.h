//===- lib/Runtime/LaunchCounters.h - Counters of launches ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_RUNTIME_LAUNCHCOUNTERS_H
#define KVBUFFER_LIB_RUNTIME_LAUNCHCOUNTERS_H

#include "GraphLeases.h"

#include <list>
#include <vector>

namespace kvbuf::rt {

/// Device memory for the counters of a module's launches. Every launch gets
/// counters that are zero when it starts, whatever ran, or was killed, before
/// it, and that no other launch in flight uses.
///
/// Counters come in groups for a number of launches that follow each other: on
/// one stream, or on one stream within one capture. A clearing of the whole
/// group, on the same stream, comes before the first of them, so it costs one
/// launch in many. A stream outside of captures uses its group again and again;
/// the group of a capture belongs to the graph for as long as that lives, so
/// each replay clears it and uses it again.
///
/// What CUDA and HIP let a program do beyond that is out of reach: two
/// instances of one captured graph, or a child graph that stands in two places,
/// share counters and must not run at the same time.
class LaunchCounters {
public:
  /// `counters` words for each launch. Allocates for a number of streams ahead.
  /// Throws Error where the driver cannot tell captures.
  LaunchCounters(GpuBackend &gpu, unsigned counters);
  ~LaunchCounters();
  LaunchCounters(const LaunchCounters &) = delete;
  LaunchCounters &operator=(const LaunchCounters &) = delete;

  /// Where the counters of the next launch on `stream` are: `counters` words,
  /// kSpacing bytes apart. Puts their clearing on the stream where it is due,
  /// so the launch has to be the next thing that is put there. Calls must not
  /// overlap.
  uint64_t next(void *stream);

  /// Whether a graph that was captured from launches with these counters is
  /// still alive.
  bool heldByGraphs() const { return leases.heldByGraphs(); }

  /// Counters do not share a sector of memory.
  static constexpr uint64_t kSpacing = 64;

private:
  /// A group in use.
  struct Group {
    /// The stream's number, and the capture's, 0 outside of captures.
    uint64_t stream, capture;
    uint64_t address = 0;
    /// Launches since it was cleared.
    uint64_t used = 0;
  };

  Group &find(uint64_t stream, uint64_t capture, void *graph);
  uint64_t take();
  void grow();

  GpuBackend &gpu;
  /// Of the counters of one launch, and of a group.
  uint64_t launchBytes, groupBytes;
  /// Of groups, by their addresses.
  GraphLeases<uint64_t> leases;
  std::vector<uint64_t> chunks;
  /// The last used first.
  std::list<Group> streams, captures;
};

} // namespace kvbuf::rt

#endif // KVBUFFER_LIB_RUNTIME_LAUNCHCOUNTERS_H
