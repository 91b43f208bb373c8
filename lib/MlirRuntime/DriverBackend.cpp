//===- DriverBackend.cpp - MLIR's GPU programs on CUDA and HIP ------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The two drivers have the same functions under different names; neither
// toolkit is needed, only the driver's library, which is opened at run time.
//
//===----------------------------------------------------------------------===//

#include "Backend.h"
#include "GpuDriver.h"

#include "kvbuffer/Runtime/Error.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

using namespace kvbuf;
using namespace kvbuf::mgpu;
using rt::DynamicLibrary;
using rt::Error;

namespace {

/// CUDA's enumerators in use.
enum : int {
  kJitOptimizationLevel = 7,
  kMaxDynamicShared = 8,
  kNonPortableCluster = 13,
  kClusterDimension = 4,
  kStreamNonBlocking = 1,
  kEventDisableTiming = 2,
  kAttachGlobal = 1,
  kPeerAccessEnabled = 704,
  // CUDA_ERROR_NOT_SUPPORTED, and hipErrorNotSupported.
  kNotSupported = 801,
  // hipMemcpyDefault: by the addresses.
  kCopyDefault = 4,
};

/// CUlaunchAttribute and CUlaunchConfig.
struct LaunchAttribute {
  int id;
  char pad[4];
  union {
    unsigned cluster[3];
    char bytes[64];
  };
};
struct LaunchConfig {
  unsigned grid[3], block[3], shared;
  Handle stream;
  LaunchAttribute *attributes;
  unsigned count;
};

class DriverBackend : public Backend {
public:
  DriverBackend(std::initializer_list<const char *> names, const char *what)
      : lib(names, what) {}

  /// Makes the device current while it lives.
  struct Scope {
    explicit Scope(DriverBackend &b) : b(b) { b.enter(); }
    ~Scope() { b.leave(); }
    DriverBackend &b;
  };

  void unloadModule(Handle module) override {
    // A program that was compiled ahead unloads its modules as it ends, after
    // the driver has: CUDA_ERROR_DEINITIALIZED, and HIP's of that number.
    constexpr int kDeinitialized = 4;
    if (int code = moduleUnload(module); code != kDeinitialized)
      check(code, "unloading a module");
  }
  Handle getFunction(Handle module, const char *name) override {
    Scope scope(*this);
    Handle function = nullptr;
    check(moduleGetFunction(&function, module, name),
          std::string("finding kernel '") + name + "'");
    return function;
  }

  Handle createStream() override {
    Scope scope(*this);
    Handle stream = nullptr;
    check(streamCreate(&stream, kStreamNonBlocking), "making a stream");
    return stream;
  }
  void destroyStream(Handle stream) override {
    Scope scope(*this);
    check(streamDestroy(stream), "ending a stream");
  }
  void synchronize(Handle stream) override {
    Scope scope(*this);
    check(streamSynchronize(stream), "waiting for a stream");
  }
  void waitEvent(Handle stream, Handle event) override {
    Scope scope(*this);
    check(streamWaitEvent(stream, event, 0), "waiting for an event");
  }
  Handle createEvent() override {
    Scope scope(*this);
    Handle event = nullptr;
    check(eventCreate(&event, kEventDisableTiming), "making an event");
    return event;
  }
  void destroyEvent(Handle event) override {
    Scope scope(*this);
    check(eventDestroy(event), "ending an event");
  }
  void synchronizeEvent(Handle event) override {
    Scope scope(*this);
    check(eventSynchronize(event), "waiting for an event");
  }
  void recordEvent(Handle event, Handle stream) override {
    Scope scope(*this);
    check(eventRecord(event, stream), "recording an event");
  }

  void *allocate(uint64_t bytes, Handle stream, bool hostShared) override {
    Scope scope(*this);
    uint64_t address = 0;
    if (hostShared) {
      check(memAllocManaged(&address, bytes, kAttachGlobal),
            "allocating shared memory");
    } else if (bytes) {
      // In the order of the stream, where it has one: nothing waits, and the
      // stream can be captured. (Other GPUs do not see such memory.)
      int code = stream && memAllocAsync && memFreeAsync && !hasPeers
                     ? memAllocAsync(&address, bytes, stream)
                     : kNotSupported;
      if (code == 0)
        ofStreams.insert(address);
      else if (code == kNotSupported)
        code = memAlloc(&address, bytes);
      check(code, "allocating memory");
    }
    return reinterpret_cast<void *>(address);
  }
  void free(void *memory, Handle stream) override {
    Scope scope(*this);
    uint64_t address = reinterpret_cast<uint64_t>(memory);
    bool ofStream = ofStreams.erase(address);
    check(ofStream && stream ? memFreeAsync(address, stream) : memFree(address),
          "freeing memory");
  }
  void fill(void *to, uint32_t value, unsigned width, size_t count,
            Handle stream) override {
    Scope scope(*this);
    uint64_t address = reinterpret_cast<uint64_t>(to);
    check(width == 4
              ? memset32(address, value, count, stream)
              : memset16(address, static_cast<uint16_t>(value), count, stream),
          "filling memory");
  }
  void registerHost(void *address, uint64_t bytes) override {
    Scope scope(*this);
    check(hostRegister(address, bytes, 0), "registering memory");
  }
  void unregisterHost(void *address) override {
    Scope scope(*this);
    check(hostUnregister(address), "unregistering memory");
  }

protected:
  virtual void enter() {}
  virtual void leave() {}
  virtual std::string errorName(int code) const = 0;

  void check(int code, const std::string &doing) const {
    if (code != 0)
      throw Error(doing + " failed: " + errorName(code));
  }

  DynamicLibrary lib;
  int device = 0;
  /// What was allocated in the order of a stream.
  std::unordered_set<uint64_t> ofStreams;
  /// Whether a GPU may read another one's memory.
  bool hasPeers = false;

  int (*init)(unsigned) = nullptr;
  int (*deviceGetCount)(int *) = nullptr;
  int (*moduleLoadData)(Handle *, const void *) = nullptr;
  int (*moduleUnload)(Handle) = nullptr;
  int (*moduleGetFunction)(Handle *, Handle, const char *) = nullptr;
  int (*launchKernel)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned,
                      unsigned, unsigned, Handle, void **, void **) = nullptr;
  int (*streamCreate)(Handle *, unsigned) = nullptr;
  int (*streamDestroy)(Handle) = nullptr;
  int (*streamSynchronize)(Handle) = nullptr;
  int (*streamWaitEvent)(Handle, Handle, unsigned) = nullptr;
  int (*eventCreate)(Handle *, unsigned) = nullptr;
  int (*eventDestroy)(Handle) = nullptr;
  int (*eventSynchronize)(Handle) = nullptr;
  int (*eventRecord)(Handle, Handle) = nullptr;
  int (*memAlloc)(uint64_t *, size_t) = nullptr;
  int (*memAllocManaged)(uint64_t *, size_t, unsigned) = nullptr;
  int (*memFree)(uint64_t) = nullptr;
  /// Null where the driver is older than memory in the order of streams.
  int (*memAllocAsync)(uint64_t *, size_t, Handle) = nullptr;
  int (*memFreeAsync)(uint64_t, Handle) = nullptr;
  int (*memset32)(uint64_t, unsigned, size_t, Handle) = nullptr;
  int (*memset16)(uint64_t, unsigned short, size_t, Handle) = nullptr;
  int (*hostRegister)(void *, size_t, unsigned) = nullptr;
  int (*hostUnregister)(void *) = nullptr;
};

//===----------------------------------------------------------------------===//
// CUDA
//===----------------------------------------------------------------------===//

class CudaBackend final : public DriverBackend {
public:
  CudaBackend() : DriverBackend({"libcuda.so.1", "libcuda.so"}, "NVIDIA GPU") {
    lib.get(init, "cuInit");
    lib.get(deviceGetCount, "cuDeviceGetCount");
    lib.get(getErrorName, "cuGetErrorName");
    lib.get(deviceGet, "cuDeviceGet");
    lib.get(primaryRetain, "cuDevicePrimaryCtxRetain");
    lib.get(ctxPush, "cuCtxPushCurrent_v2");
    lib.get(ctxPop, "cuCtxPopCurrent_v2");
    lib.get(ctxEnablePeer, "cuCtxEnablePeerAccess");
    lib.get(moduleLoadData, "cuModuleLoadData");
    lib.get(moduleLoadDataEx, "cuModuleLoadDataEx");
    lib.get(moduleUnload, "cuModuleUnload");
    lib.get(moduleGetFunction, "cuModuleGetFunction");
    lib.get(funcSetAttribute, "cuFuncSetAttribute");
    lib.get(launchKernel, "cuLaunchKernel");
    lib.getIfThere(launchKernelEx, "cuLaunchKernelEx");
    lib.get(streamCreate, "cuStreamCreate");
    lib.get(streamDestroy, "cuStreamDestroy_v2");
    lib.get(streamSynchronize, "cuStreamSynchronize");
    lib.get(streamWaitEvent, "cuStreamWaitEvent");
    lib.get(eventCreate, "cuEventCreate");
    lib.get(eventDestroy, "cuEventDestroy_v2");
    lib.get(eventSynchronize, "cuEventSynchronize");
    lib.get(eventRecord, "cuEventRecord");
    lib.get(memAlloc, "cuMemAlloc_v2");
    lib.get(memAllocManaged, "cuMemAllocManaged");
    lib.get(memFree, "cuMemFree_v2");
    lib.getIfThere(memAllocAsync, "cuMemAllocAsync");
    lib.getIfThere(memFreeAsync, "cuMemFreeAsync");
    lib.get(memcpyAsync, "cuMemcpyAsync");
    lib.get(memset32, "cuMemsetD32Async");
    lib.get(memset16, "cuMemsetD16Async");
    lib.get(hostRegister, "cuMemHostRegister_v2");
    lib.get(hostUnregister, "cuMemHostUnregister");
    lib.get(hostDevicePointer, "cuMemHostGetDevicePointer_v2");
    lib.getIfThere(encodeTiled, "cuTensorMapEncodeTiled");
    int count = 0;
    check(init(0), "opening the driver");
    check(deviceGetCount(&count), "counting the GPUs");
    if (!count)
      throw Error("there is no NVIDIA GPU");
  }

  void setDevice(int ordinal) override {
    context(ordinal); // fails where there is none
    device = ordinal;
  }

  Handle loadModule(const void *data, size_t bytes, int optLevel) override {
    std::string_view start(static_cast<const char *>(data),
                           std::min<size_t>(bytes, 4));
    if (start == "BC\xC0\xDE" || start == "ML\xEFR")
      throw Error("the kernels are no code for a GPU, but bitcode; "
                  "KVBUF_DEVICE=emulator executes that");
    Scope scope(*this);
    Handle module = nullptr;
    if (optLevel >= 0) {
      int name = kJitOptimizationLevel;
      void *value = reinterpret_cast<void *>(static_cast<intptr_t>(optLevel));
      check(moduleLoadDataEx(&module, data, 1, &name, &value),
            "compiling a module");
      return module;
    }
    check(moduleLoadData(&module, data), "loading a module");
    return module;
  }

  void launch(Handle function, const Dimensions &size, Handle stream,
              void **params, void **extra, size_t) override {
    Scope scope(*this);
    if (size.dynamicShared)
      check(funcSetAttribute(function, kMaxDynamicShared,
                             static_cast<int>(size.dynamicShared)),
            "asking for " + std::to_string(size.dynamicShared) +
                " bytes of shared memory");
    auto n = [](uint64_t x) { return static_cast<unsigned>(x); };
    if (!size.cluster[0]) {
      check(launchKernel(function, n(size.grid[0]), n(size.grid[1]),
                         n(size.grid[2]), n(size.block[0]), n(size.block[1]),
                         n(size.block[2]), size.dynamicShared, stream, params,
                         extra),
            "a launch");
      return;
    }
    if (!launchKernelEx)
      throw Error("this driver launches no clusters");
    // The largest cluster that every GPU takes.
    if (size.cluster[0] * size.cluster[1] * size.cluster[2] > 8)
      check(funcSetAttribute(function, kNonPortableCluster, 1),
            "asking for a cluster of more than 8 blocks");
    LaunchAttribute attribute = {};
    attribute.id = kClusterDimension;
    LaunchConfig config = {};
    for (unsigned d = 0; d < 3; ++d) {
      attribute.cluster[d] = n(size.cluster[d]);
      config.grid[d] = n(size.grid[d]);
      config.block[d] = n(size.block[d]);
    }
    config.shared = size.dynamicShared;
    config.stream = stream;
    config.attributes = &attribute;
    config.count = 1;
    check(launchKernelEx(&config, function, params, extra), "a launch");
  }

  void copy(void *to, const void *from, size_t bytes, Handle stream) override {
    Scope scope(*this);
    check(memcpyAsync(reinterpret_cast<uint64_t>(to),
                      reinterpret_cast<uint64_t>(from), bytes, stream),
          "copying memory");
  }

  void *deviceAddress(void *address) override {
    Scope scope(*this);
    uint64_t there = 0;
    check(hostDevicePointer(&there, address, 0), "finding registered memory");
    return reinterpret_cast<void *>(there);
  }

  void enablePeerAccess(int from, int to) override {
    Handle other = context(to), old = nullptr;
    check(ctxPush(context(from)), "entering the context");
    int code = ctxEnablePeer(other, 0);
    ctxPop(&old);
    if (code != kPeerAccessEnabled)
      check(code, "enabling access to a peer");
    hasPeers = true;
  }

  void encodeTensorMap(const TensorMapRequest &r, void *map) override {
    if (!encodeTiled)
      throw Error("this driver lacks cuTensorMapEncodeTiled; CUDA 12 brought "
                  "it");
    Scope scope(*this);
    check(encodeTiled(map, r.dataType, r.rank,
                      reinterpret_cast<uint64_t>(r.address), r.dims, r.strides,
                      r.box, r.elementStrides, r.interleave, r.swizzle,
                      r.l2Promotion, r.fill),
          "making a tensor map");
  }

private:
  void enter() override {
    check(ctxPush(context(device)), "entering the context");
  }
  void leave() override {
    Handle old = nullptr;
    ctxPop(&old);
  }
  std::string errorName(int code) const override {
    const char *name = nullptr;
    getErrorName(code, &name);
    return name ? name : "error " + std::to_string(code);
  }
  /// The primary context of a device.
  Handle context(int ordinal) {
    constexpr int most = 64;
    if (ordinal < 0 || ordinal >= most)
      throw Error("there is no device " + std::to_string(ordinal));
    if (!contexts[ordinal]) {
      int which = 0;
      check(deviceGet(&which, ordinal),
            "opening device " + std::to_string(ordinal));
      check(primaryRetain(&contexts[ordinal], which), "opening a context");
    }
    return contexts[ordinal];
  }

  Handle contexts[64] = {};
  int (*getErrorName)(int, const char **) = nullptr;
  int (*deviceGet)(int *, int) = nullptr;
  int (*primaryRetain)(Handle *, int) = nullptr;
  int (*ctxPush)(Handle) = nullptr;
  int (*ctxPop)(Handle *) = nullptr;
  int (*ctxEnablePeer)(Handle, unsigned) = nullptr;
  int (*moduleLoadDataEx)(Handle *, const void *, unsigned, int *,
                          void **) = nullptr;
  int (*funcSetAttribute)(Handle, int, int) = nullptr;
  int (*launchKernelEx)(const LaunchConfig *, Handle, void **,
                        void **) = nullptr;
  int (*memcpyAsync)(uint64_t, uint64_t, size_t, Handle) = nullptr;
  int (*hostDevicePointer)(uint64_t *, void *, unsigned) = nullptr;
  int (*encodeTiled)(void *, int, uint32_t, uint64_t, const uint64_t *,
                     const uint64_t *, const uint32_t *, const uint32_t *, int,
                     int, int, int) = nullptr;
};

//===----------------------------------------------------------------------===//
// HIP
//===----------------------------------------------------------------------===//

class HipBackend final : public DriverBackend {
public:
  HipBackend()
      : DriverBackend({"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6",
                       "libamdhip64.so.5"},
                      "AMD GPU") {
    lib.get(init, "hipInit");
    lib.get(deviceGetCount, "hipGetDeviceCount");
    lib.get(getErrorName, "hipGetErrorName");
    lib.get(hipSetDevice, "hipSetDevice");
    lib.get(moduleLoadData, "hipModuleLoadData");
    lib.get(moduleUnload, "hipModuleUnload");
    lib.get(moduleGetFunction, "hipModuleGetFunction");
    lib.get(launchKernel, "hipModuleLaunchKernel");
    lib.get(streamCreate, "hipStreamCreateWithFlags");
    lib.get(streamDestroy, "hipStreamDestroy");
    lib.get(streamSynchronize, "hipStreamSynchronize");
    lib.get(streamWaitEvent, "hipStreamWaitEvent");
    lib.get(eventCreate, "hipEventCreateWithFlags");
    lib.get(eventDestroy, "hipEventDestroy");
    lib.get(eventSynchronize, "hipEventSynchronize");
    lib.get(eventRecord, "hipEventRecord");
    lib.get(memAlloc, "hipMalloc");
    lib.get(memAllocManaged, "hipMallocManaged");
    lib.get(memFree, "hipFree");
    lib.getIfThere(memAllocAsync, "hipMallocAsync");
    lib.getIfThere(memFreeAsync, "hipFreeAsync");
    lib.get(memcpyAsync, "hipMemcpyAsync");
    lib.get(memset32, "hipMemsetD32Async");
    lib.get(memset16, "hipMemsetD16Async");
    lib.get(hostRegister, "hipHostRegister");
    lib.get(hostUnregister, "hipHostUnregister");
    lib.get(hostDevicePointer, "hipHostGetDevicePointer");
    lib.get(enablePeer, "hipDeviceEnablePeerAccess");
    int count = 0;
    check(init(0), "opening the driver");
    check(deviceGetCount(&count), "counting the GPUs");
    if (!count)
      throw Error("there is no AMD GPU");
  }

  void setDevice(int ordinal) override {
    check(hipSetDevice(ordinal), "selecting device " + std::to_string(ordinal));
    device = ordinal;
  }

  Handle loadModule(const void *data, size_t bytes, int) override {
    std::string_view start(static_cast<const char *>(data),
                           std::min<size_t>(bytes, 4));
    if (start == "BC\xC0\xDE" || start == "ML\xEFR")
      throw Error("the kernels are no code for a GPU, but bitcode; "
                  "KVBUF_DEVICE=emulator executes that");
    Scope scope(*this);
    Handle module = nullptr;
    check(moduleLoadData(&module, data), "loading a module");
    return module;
  }

  void launch(Handle function, const Dimensions &size, Handle stream,
              void **params, void **extra, size_t) override {
    if (size.cluster[0])
      throw Error("clusters are NVIDIA's");
    Scope scope(*this);
    auto n = [](uint64_t x) { return static_cast<unsigned>(x); };
    check(launchKernel(function, n(size.grid[0]), n(size.grid[1]),
                       n(size.grid[2]), n(size.block[0]), n(size.block[1]),
                       n(size.block[2]), size.dynamicShared, stream, params,
                       extra),
          "a launch");
  }

  void copy(void *to, const void *from, size_t bytes, Handle stream) override {
    Scope scope(*this);
    check(memcpyAsync(to, from, bytes, kCopyDefault, stream), "copying memory");
  }
  void *deviceAddress(void *address) override {
    Scope scope(*this);
    void *there = nullptr;
    check(hostDevicePointer(&there, address, 0), "finding registered memory");
    return there;
  }
  void enablePeerAccess(int from, int to) override {
    check(hipSetDevice(from), "selecting the GPU");
    int code = enablePeer(to, 0);
    hipSetDevice(device);
    if (code != kPeerAccessEnabled)
      check(code, "enabling access to a peer");
    hasPeers = true;
  }
  void encodeTensorMap(const TensorMapRequest &, void *) override {
    throw Error("tensor maps are NVIDIA's");
  }

private:
  void enter() override { check(hipSetDevice(device), "selecting the GPU"); }
  std::string errorName(int code) const override {
    const char *name = getErrorName(code);
    return name ? name : "error " + std::to_string(code);
  }

  const char *(*getErrorName)(int) = nullptr;
  int (*hipSetDevice)(int) = nullptr;
  int (*memcpyAsync)(void *, const void *, size_t, int, Handle) = nullptr;
  int (*hostDevicePointer)(void **, void *, unsigned) = nullptr;
  int (*enablePeer)(int, unsigned) = nullptr;
};

} // namespace

std::unique_ptr<Backend> kvbuf::mgpu::makeCudaBackend() {
  return std::make_unique<CudaBackend>();
}
std::unique_ptr<Backend> kvbuf::mgpu::makeHipBackend() {
  return std::make_unique<HipBackend>();
}
