//===- lib/Runtime/LaunchCounters.cpp - Counters of launches ----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaunchCounters.h"
#include "AllowDuringCapture.h"
#include "LaunchScratch.h"
#include "kvbuffer/Runtime/Error.h"

#include <algorithm>

using namespace kvbuf;
using namespace kvbuf::rt;

namespace {

/// Launches that one clearing serves.
constexpr uint64_t kLaunches = 64;
/// Groups that are allocated at a time.
constexpr uint64_t kGroups = 32;
/// Streams that are remembered, so that a program which makes streams without
/// end does not take memory without end. The one that is forgotten had no
/// launch for as long as all others had one, so its last one is taken to be
/// over.
constexpr size_t kStreams = 1024;
/// Captures that are remembered. One that is forgotten while it goes on gets
/// another group.
constexpr size_t kCaptures = 16;

/// CUuserObject_flags and CUuserObjectRetain_flags; HIP's are the same.
constexpr unsigned kNoDestructorSync = 1, kMoveReference = 1;

} // namespace

/// What a graph holds: a group, until the graph and all that were made of it
/// are destroyed and have run to their end.
struct LaunchCounters::Lease {
  std::shared_ptr<Pool> pool;
  uint64_t address;

  static void end(void *lease) {
    std::unique_ptr<Lease> self(static_cast<Lease *>(lease));
    std::lock_guard<std::mutex> lock(self->pool->mutex);
    self->pool->free.push_back(self->address);
    --self->pool->held;
  }
};

LaunchCounters::LaunchCounters(GpuBackend &gpu, unsigned counters)
    : gpu(gpu), launchBytes(counters * kSpacing),
      groupBytes(kLaunches * launchBytes), pool(std::make_shared<Pool>()) {
  const GpuDriver &driver = gpu.driver;
  if (!driver.streamGetCaptureInfo || !driver.userObjectCreate ||
      !driver.graphRetainUserObject)
    throw Error("the kernel takes tiles from a counter, and this driver lacks "
                "the functions that tell which graph a launch becomes part of; "
                "a newer driver is needed");
  grow();
}

LaunchCounters::~LaunchCounters() {
  for (uint64_t chunk : chunks)
    gpu.driver.memFree(chunk);
}

bool LaunchCounters::heldByGraphs() const {
  std::lock_guard<std::mutex> lock(pool->mutex);
  return pool->held > 0;
}

void LaunchCounters::grow() {
  AllowDuringCapture allow(gpu.driver);
  uint64_t chunk = 0;
  gpu.check(gpu.driver.memAlloc(&chunk, kGroups * groupBytes),
            "allocating the kernels' counters");
  chunks.push_back(chunk);
  std::lock_guard<std::mutex> lock(pool->mutex);
  for (uint64_t i = kGroups; i-- > 0;)
    pool->free.push_back(chunk + i * groupBytes);
}

uint64_t LaunchCounters::take() {
  auto pop = [&]() -> uint64_t {
    std::lock_guard<std::mutex> lock(pool->mutex);
    if (pool->free.empty())
      return 0;
    uint64_t address = pool->free.back();
    pool->free.pop_back();
    return address;
  };
  uint64_t address = pop();
  if (address == 0) {
    grow();
    address = pop();
  }
  return address;
}

void LaunchCounters::giveTo(void *graph, uint64_t address) {
  auto lease = std::make_unique<Lease>(Lease{pool, address});
  void *object = nullptr;
  const char *doing = "giving the kernels' counters to a graph";
  gpu.check(gpu.driver.userObjectCreate(&object, lease.get(), Lease::end, 1,
                                        kNoDestructorSync),
            doing);
  {
    std::lock_guard<std::mutex> lock(pool->mutex);
    ++pool->held;
  }
  lease.release();
  gpu.check(gpu.driver.graphRetainUserObject(graph, object, 1, kMoveReference),
            doing);
}

LaunchCounters::Group &LaunchCounters::find(uint64_t stream, uint64_t capture,
                                            void *graph) {
  std::list<Group> &groups = graph ? captures : streams;
  auto it = std::find_if(groups.begin(), groups.end(), [&](const Group &g) {
    return g.stream == stream && g.capture == capture;
  });
  if (it != groups.end()) {
    groups.splice(groups.begin(), groups, it);
    return groups.front();
  }
  Group group{stream, capture};
  // Only a group outside of captures can go to another stream; a graph keeps
  // its own.
  if (graph) {
    if (groups.size() == kCaptures)
      groups.pop_back();
  } else if (groups.size() < kStreams) {
    group.address = take();
  } else {
    group.address = groups.back().address;
    groups.pop_back();
  }
  group.used = kLaunches;
  groups.push_front(group);
  return groups.front();
}

uint64_t LaunchCounters::next(void *stream) {
  StreamUse use = useOf(gpu, stream);
  Group &group = find(use.stream, use.capture, use.graph);
  if (group.used == kLaunches) {
    if (use.graph) {
      group.address = take();
      giveTo(use.graph, group.address);
    }
    gpu.check(
        gpu.driver.memset32Async(group.address, 0, groupBytes / 4, stream),
        "clearing the kernels' counters");
    group.used = 0;
  }
  return group.address + group.used++ * launchBytes;
}
