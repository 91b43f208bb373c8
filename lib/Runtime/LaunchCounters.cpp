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

} // namespace

LaunchCounters::LaunchCounters(GpuBackend &gpu, unsigned counters)
    : gpu(gpu), launchBytes(counters * kSpacing),
      groupBytes(kLaunches * launchBytes) {
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

void LaunchCounters::grow() {
  AllowDuringCapture allow(gpu.driver);
  uint64_t chunk = 0;
  gpu.check(gpu.driver.memAlloc(&chunk, kGroups * groupBytes),
            "allocating the kernels' counters");
  chunks.push_back(chunk);
  leases.withFree([&](std::vector<uint64_t> &free) {
    for (uint64_t i = kGroups; i-- > 0;)
      free.push_back(chunk + i * groupBytes);
  });
}

uint64_t LaunchCounters::take() {
  auto pop = [](std::vector<uint64_t> &free) -> uint64_t {
    if (free.empty())
      return 0;
    uint64_t address = free.back();
    free.pop_back();
    return address;
  };
  uint64_t address = leases.withFree(pop);
  if (address == 0) {
    grow();
    address = leases.withFree(pop);
  }
  return address;
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
      leases.giveTo(gpu, use.graph, group.address,
                    "giving the kernels' counters to a graph");
    }
    gpu.check(
        gpu.driver.memset32Async(group.address, 0, groupBytes / 4, stream),
        "clearing the kernels' counters");
    group.used = 0;
  }
  return group.address + group.used++ * launchBytes;
}
