//===- Wrappers.cpp - The functions that MLIR's runners call --------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Their names and arguments are those that `gpu-to-llvm`, `gpu.binary` and
// `convert-nvgpu-to-nvvm` of LLVM 22 call; their meaning is that of MLIR's
// wrappers for CUDA and ROCm. A failure is told on stderr and the program goes
// on, as it does there; what the emulator's detectors find ends the program.
//
//===----------------------------------------------------------------------===//

#include "Backend.h"

#include "kvbuffer/Runtime/Error.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <string_view>
#include <vector>

using namespace kvbuf;
using namespace kvbuf::mgpu;

#define KVBUF_MGPU extern "C" __attribute__((visibility("default")))

void kvbuf::mgpu::warn(const std::string &text) {
  std::fprintf(stderr, "kvbuf: %s\n", text.c_str());
}

/// Ends the program where it can have no device. Its destructors would unload
/// modules, from which a device is asked for again.
[[noreturn]] static void endWithoutDevice(const std::string &why) {
  warn("error: " + why);
  std::fflush(nullptr);
  std::_Exit(1);
}

static std::unique_ptr<Backend> makeBackend() {
  const char *chosen = std::getenv("KVBUF_DEVICE");
  std::string_view device = chosen ? chosen : "";
  if (device == "emulator")
    return makeEmulatorBackend();
  if (device == "cuda" || device == "hip") {
    // Named, and not there: nothing else will do.
    try {
      return device == "cuda" ? makeCudaBackend() : makeHipBackend();
    } catch (const rt::Error &e) {
      endWithoutDevice(std::string("KVBUF_DEVICE=") + chosen + ": " + e.what());
    }
  }
  if (!device.empty())
    endWithoutDevice("KVBUF_DEVICE is '" + std::string(device) +
                     "'; expected cuda, hip or emulator");
  try {
    return makeCudaBackend();
  } catch (const rt::Error &) {
  }
  try {
    return makeHipBackend();
  } catch (const rt::Error &) {
  }
  return makeEmulatorBackend();
}

static Backend &backend() {
  // Never destroyed: destructors of the program may still call it.
  static Backend *const machine = makeBackend().release();
  return *machine;
}

/// Does something on the machine, one thread at a time, and tells what goes
/// wrong.
template <typename F> static auto guarded(const char *what, F &&body) {
  using R = decltype(body(backend()));
  static std::recursive_mutex mutex;
  std::lock_guard lock(mutex);
  try {
    return body(backend());
  } catch (const std::exception &e) {
    warn(std::string("error: ") + what + ": " + e.what());
    return R();
  }
}

//===----------------------------------------------------------------------===//
// Modules and launches
//===----------------------------------------------------------------------===//

KVBUF_MGPU Handle mgpuModuleLoad(void *data, size_t bytes) {
  return guarded("mgpuModuleLoad",
                 [&](Backend &b) { return b.loadModule(data, bytes, -1); });
}

// MLIR hands over a terminated text here, with or without its size.
KVBUF_MGPU Handle mgpuModuleLoadJIT(void *data, int optLevel) {
  return guarded("mgpuModuleLoadJIT",
                 [&](Backend &b) { return b.loadModule(data, 0, optLevel); });
}

KVBUF_MGPU void mgpuModuleUnload(Handle module) {
  guarded("mgpuModuleUnload", [&](Backend &b) { b.unloadModule(module); });
}

KVBUF_MGPU Handle mgpuModuleGetFunction(Handle module, const char *name) {
  return guarded("mgpuModuleGetFunction",
                 [&](Backend &b) { return b.getFunction(module, name); });
}

KVBUF_MGPU void mgpuLaunchKernel(Handle function, intptr_t gridX,
                                 intptr_t gridY, intptr_t gridZ,
                                 intptr_t blockX, intptr_t blockY,
                                 intptr_t blockZ, int32_t smem, Handle stream,
                                 void **params, void **extra,
                                 size_t paramsCount) {
  auto n = [](intptr_t x) { return static_cast<uint64_t>(x); };
  Dimensions size = {{n(gridX), n(gridY), n(gridZ)},
                     {n(blockX), n(blockY), n(blockZ)},
                     {0, 0, 0},
                     static_cast<uint32_t>(smem)};
  guarded("mgpuLaunchKernel", [&](Backend &b) {
    b.launch(function, size, stream, params, extra, paramsCount);
  });
}

KVBUF_MGPU void mgpuLaunchClusterKernel(Handle function, intptr_t clusterX,
                                        intptr_t clusterY, intptr_t clusterZ,
                                        intptr_t gridX, intptr_t gridY,
                                        intptr_t gridZ, intptr_t blockX,
                                        intptr_t blockY, intptr_t blockZ,
                                        int32_t smem, Handle stream,
                                        void **params, void **extra) {
  auto n = [](intptr_t x) { return static_cast<uint64_t>(x); };
  Dimensions size = {{n(gridX), n(gridY), n(gridZ)},
                     {n(blockX), n(blockY), n(blockZ)},
                     {n(clusterX), n(clusterY), n(clusterZ)},
                     static_cast<uint32_t>(smem)};
  guarded("mgpuLaunchClusterKernel", [&](Backend &b) {
    b.launch(function, size, stream, params, extra, 0);
  });
}

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

KVBUF_MGPU Handle mgpuStreamCreate() {
  return guarded("mgpuStreamCreate",
                 [](Backend &b) { return b.createStream(); });
}
KVBUF_MGPU void mgpuStreamDestroy(Handle stream) {
  guarded("mgpuStreamDestroy", [&](Backend &b) { b.destroyStream(stream); });
}
KVBUF_MGPU void mgpuStreamSynchronize(Handle stream) {
  guarded("mgpuStreamSynchronize", [&](Backend &b) { b.synchronize(stream); });
}
KVBUF_MGPU void mgpuStreamWaitEvent(Handle stream, Handle event) {
  guarded("mgpuStreamWaitEvent",
          [&](Backend &b) { b.waitEvent(stream, event); });
}
KVBUF_MGPU Handle mgpuEventCreate() {
  return guarded("mgpuEventCreate", [](Backend &b) { return b.createEvent(); });
}
KVBUF_MGPU void mgpuEventDestroy(Handle event) {
  guarded("mgpuEventDestroy", [&](Backend &b) { b.destroyEvent(event); });
}
KVBUF_MGPU void mgpuEventSynchronize(Handle event) {
  guarded("mgpuEventSynchronize",
          [&](Backend &b) { b.synchronizeEvent(event); });
}
KVBUF_MGPU void mgpuEventRecord(Handle event, Handle stream) {
  guarded("mgpuEventRecord", [&](Backend &b) { b.recordEvent(event, stream); });
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

KVBUF_MGPU void *mgpuMemAlloc(uint64_t bytes, Handle stream, bool hostShared) {
  return guarded("mgpuMemAlloc", [&](Backend &b) {
    return b.allocate(bytes, stream, hostShared);
  });
}
KVBUF_MGPU void mgpuMemFree(void *address, Handle stream) {
  guarded("mgpuMemFree", [&](Backend &b) { b.free(address, stream); });
}
KVBUF_MGPU void mgpuMemcpy(void *to, void *from, size_t bytes, Handle stream) {
  guarded("mgpuMemcpy", [&](Backend &b) { b.copy(to, from, bytes, stream); });
}
KVBUF_MGPU void mgpuMemset32(void *to, unsigned value, size_t count,
                             Handle stream) {
  guarded("mgpuMemset32",
          [&](Backend &b) { b.fill(to, value, 4, count, stream); });
}
KVBUF_MGPU void mgpuMemset16(void *to, unsigned short value, size_t count,
                             Handle stream) {
  guarded("mgpuMemset16",
          [&](Backend &b) { b.fill(to, value, 2, count, stream); });
}

KVBUF_MGPU void mgpuMemHostRegister(void *address, uint64_t bytes) {
  guarded("mgpuMemHostRegister",
          [&](Backend &b) { b.registerHost(address, bytes); });
}
KVBUF_MGPU void mgpuMemHostUnregister(void *address) {
  guarded("mgpuMemHostUnregister",
          [&](Backend &b) { b.unregisterHost(address); });
}

namespace {
/// A ranked memref as LLVM code passes it: `sizes` is followed by as many
/// strides.
struct Descriptor {
  char *allocated, *aligned;
  int64_t offset;
  int64_t sizes[];
};
/// A memref of one dimension.
struct Memref1d {
  void *allocated, *aligned;
  int64_t offset, size, stride;
};
} // namespace

/// Elements from the first to the last one of a memref.
static uint64_t spanOf(int64_t rank, const Descriptor &d) {
  uint64_t last = 0;
  for (int64_t i = 0; i < rank; ++i) {
    if (d.sizes[i] <= 0)
      return 0;
    last += static_cast<uint64_t>(d.sizes[i] - 1) *
            static_cast<uint64_t>(d.sizes[rank + i]);
  }
  return last + 1;
}

KVBUF_MGPU void mgpuMemHostRegisterMemRef(int64_t rank, Descriptor *d,
                                          int64_t elementBytes) {
  mgpuMemHostRegister(d->aligned + d->offset * elementBytes,
                      spanOf(rank, *d) * elementBytes);
}
KVBUF_MGPU void mgpuMemHostUnregisterMemRef(int64_t, Descriptor *d,
                                            int64_t elementBytes) {
  mgpuMemHostUnregister(d->aligned + d->offset * elementBytes);
}

static Memref1d deviceMemref(void *aligned, int64_t offset, int64_t size,
                             int64_t stride) {
  void *there = guarded("mgpuMemGetDeviceMemRef1d",
                        [&](Backend &b) { return b.deviceAddress(aligned); });
  return {there, there, offset, size, stride};
}
KVBUF_MGPU Memref1d mgpuMemGetDeviceMemRef1dFloat(float *, float *aligned,
                                                  int64_t offset, int64_t size,
                                                  int64_t stride) {
  return deviceMemref(aligned, offset, size, stride);
}
KVBUF_MGPU Memref1d mgpuMemGetDeviceMemRef1dInt32(int32_t *, int32_t *aligned,
                                                  int64_t offset, int64_t size,
                                                  int64_t stride) {
  return deviceMemref(aligned, offset, size, stride);
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

KVBUF_MGPU void mgpuSetDefaultDevice(int32_t device) {
  guarded("mgpuSetDefaultDevice", [&](Backend &b) { b.setDevice(device); });
}
KVBUF_MGPU void mgpuEnablePeerAccess(int32_t from, int32_t to) {
  guarded("mgpuEnablePeerAccess",
          [&](Backend &b) { b.enablePeerAccess(from, to); });
}

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

KVBUF_MGPU void
mgpuTensorMapEncodeTiled(void *tensorMap, int dataType, uint32_t rank,
                         void *address, const uint64_t *dims,
                         const uint64_t *strides, const uint32_t *box,
                         const uint32_t *elementStrides, int interleave,
                         int swizzle, int l2Promotion, int fill) {
  guarded("mgpuTensorMapEncodeTiled", [&](Backend &b) {
    b.encodeTensorMap({dataType, rank, address, dims, strides, box,
                       elementStrides, interleave, swizzle, l2Promotion, fill},
                      tensorMap);
  });
}

/// Bytes of an element of CUtensorMapDataType; 0: no such type.
static uint64_t elementBytes(int64_t type) {
  static constexpr uint8_t bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  return type >= 0 && type < 13 ? bytes[type] : 0;
}

/// Makes the tensor map of a memref, whose last dimension is the contiguous
/// one, in device memory. The map lives as long as the program.
KVBUF_MGPU void *mgpuTensorMapEncodeTiledMemref(
    int64_t rank, Descriptor *d, int64_t dataType, int64_t interleave,
    int64_t swizzle, int64_t l2Promotion, int64_t fill, int64_t *box) {
  return guarded("mgpuTensorMapEncodeTiledMemref", [&](Backend &b) -> void * {
    uint64_t bytes = elementBytes(dataType);
    if (!bytes)
      throw rt::Error("no element type has number " + std::to_string(dataType));
    if (rank < 1 || rank > 5)
      throw rt::Error("a memref of rank " + std::to_string(rank) +
                      "; 1 to 5 are possible");
    uint64_t dims[5], strides[5] = {};
    uint32_t boxes[5];
    constexpr uint32_t ones[5] = {1, 1, 1, 1, 1};
    for (int64_t i = 0; i < rank; ++i) {
      int64_t from = rank - 1 - i;
      dims[i] = static_cast<uint64_t>(d->sizes[from]);
      boxes[i] = static_cast<uint32_t>(box[from]);
      uint64_t stride = static_cast<uint64_t>(d->sizes[rank + from]);
      if (i == 0 && stride != 1)
        throw rt::Error("the memref's last dimension has stride " +
                        std::to_string(stride) + "; a tensor map needs 1");
      if (i)
        strides[i - 1] = stride * bytes;
    }
    alignas(64) char map[128];
    b.encodeTensorMap({static_cast<int>(dataType), static_cast<uint32_t>(rank),
                       d->aligned + d->offset * static_cast<int64_t>(bytes),
                       dims, strides, boxes, ones, static_cast<int>(interleave),
                       static_cast<int>(swizzle), static_cast<int>(l2Promotion),
                       static_cast<int>(fill)},
                      map);
    void *there = b.allocate(sizeof(map), nullptr, false);
    b.copy(there, map, sizeof(map), nullptr);
    return there;
  });
}
