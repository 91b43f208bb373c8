//===- lib/Runtime/LaunchScratch.cpp - Memory of launches -------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaunchScratch.h"
#include "AllowDuringCapture.h"
#include "kvbuffer/Runtime/Error.h"

#include <algorithm>

using namespace kvbuf;
using namespace kvbuf::rt;

/// Streams and captures that are remembered; see LaunchCounters.
static constexpr size_t kGroups = 1024;
/// Stands for the default stream; no stream has this number.
static constexpr uint64_t kDefaultStream = ~uint64_t(0);
/// The least that is allocated at a time.
static constexpr uint64_t kLeast = 1 << 20;
/// CUstreamCaptureStatus; HIP's is the same.
static constexpr int kCaptureActive = 1;

StreamUse rt::useOf(GpuBackend &gpu, void *stream) {
  int status = 0;
  unsigned long long capture = 0, number = 0;
  StreamUse use;
  if (!stream) {
    // The default stream is never captured or destroyed, nor is its handle
    // another stream's. Each question to the driver is a part of a microsecond.
    use.stream = kDefaultStream;
    return use;
  }
  gpu.check(gpu.driver.streamGetCaptureInfo(stream, &status, &capture,
                                            &use.graph, nullptr, nullptr),
            "asking whether the stream is captured");
  if (status == kCaptureActive) {
    use.stream = reinterpret_cast<uintptr_t>(stream);
    use.capture = capture;
    return use;
  }
  use.graph = nullptr;
  // The driver gives the handle of a destroyed stream to another one, and one
  // handle stands for each thread's own default stream; numbers are unique.
  // Asking for one is not allowed in a capture.
  AllowDuringCapture allow(gpu.driver);
  if (!gpu.driver.streamGetId || gpu.driver.streamGetId(stream, &number) != 0)
    number = reinterpret_cast<uintptr_t>(stream);
  use.stream = number;
  return use;
}

LaunchScratch::LaunchScratch(GpuBackend &gpu) : gpu(gpu) {
  const GpuDriver &driver = gpu.driver;
  if (!driver.streamGetCaptureInfo || !driver.userObjectCreate ||
      !driver.graphRetainUserObject)
    throw Error("the kernel needs memory of its own, and this driver lacks the "
                "functions that tell which graph a launch becomes part of; a "
                "newer driver is needed");
}

LaunchScratch::~LaunchScratch() {
  for (uint64_t address : allocated)
    gpu.driver.memFree(address);
}

LaunchScratch::Chunk LaunchScratch::take(uint64_t bytes) {
  Chunk chunk = leases.withFree([&](std::vector<Chunk> &free) {
    auto it = std::find_if(free.begin(), free.end(), [&](const Chunk &chunk) {
      return chunk.bytes >= bytes;
    });
    if (it == free.end())
      return Chunk();
    Chunk chunk = *it;
    free.erase(it);
    return chunk;
  });
  if (chunk.address)
    return chunk;
  AllowDuringCapture allow(gpu.driver);
  chunk.bytes = kLeast;
  while (chunk.bytes < bytes)
    chunk.bytes *= 2;
  gpu.check(gpu.driver.memAlloc(&chunk.address, chunk.bytes),
            "allocating " + std::to_string(chunk.bytes) +
                " bytes for the kernels' workspaces");
  allocated.push_back(chunk.address);
  return chunk;
}

uint64_t LaunchScratch::next(void *stream, uint64_t counterBytes,
                             uint64_t bytes) {
  StreamUse use = useOf(gpu, stream);
  auto it = std::find_if(groups.begin(), groups.end(), [&](const Group &g) {
    return g.stream == use.stream && g.capture == use.capture;
  });
  if (it == groups.end()) {
    // The last launch of the one that is forgotten is taken to be over: all
    // others have had one since. Graphs hold what is theirs.
    if (groups.size() == kGroups) {
      if (!groups.back().capture && groups.back().chunk.address)
        leases.withFree([&](std::vector<Chunk> &free) {
          free.push_back(groups.back().chunk);
        });
      groups.pop_back();
    }
    groups.push_front({use.stream, use.capture, {}, 0});
  } else {
    groups.splice(groups.begin(), groups, it);
  }
  Group &group = groups.front();
  if (counterBytes <= group.counterBytes &&
      bytes <= group.chunk.bytes - group.counterBytes && group.chunk.address)
    return group.chunk.address + group.counterBytes - counterBytes;
  // What it had may be in use by launches before this one: it is freed with the
  // module. Sizes grow in powers of two, so that is less than what is in use.
  group.counterBytes = std::max(kAlign, group.counterBytes);
  while (group.counterBytes < counterBytes)
    group.counterBytes *= 2;
  group.chunk = take(group.counterBytes + bytes);
  if (use.graph)
    leases.giveTo(gpu, use.graph, group.chunk,
                  "giving the kernels' workspaces to a graph");
  gpu.check(gpu.driver.memset32Async(group.chunk.address, 0,
                                     group.counterBytes / 4, stream),
            "clearing the kernels' counters");
  return group.chunk.address + group.counterBytes - counterBytes;
}
