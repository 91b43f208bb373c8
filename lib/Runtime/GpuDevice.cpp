//===- lib/Runtime/GpuDevice.cpp - A GPU behind its driver ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuDriver.h"
#include "LaunchCounters.h"
#include "LaunchScratch.h"
#include "kvbuffer/Runtime/Error.h"

#include <algorithm>
#include <array>
#include <dlfcn.h>
#include <map>

using namespace kvbuf;
using namespace kvbuf::rt;

/// CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION.
static constexpr int kProgrammaticStreamSerialization = 6;

//===----------------------------------------------------------------------===//
// GpuBackend, DynamicLibrary
//===----------------------------------------------------------------------===//

void GpuBackend::check(int code, const std::string &doing) const {
  if (code == 0)
    return;
  std::string text = doing + ": " + errorText(code);
  // CUDA and HIP share this range for what a running kernel causes (illegal
  // address, misaligned access, trap, time-out); 701 is a bad launch request.
  if (code >= 700 && code <= 720 && code != 701)
    throw KernelFault("the kernel failed on the device: " + text);
  throw Error(text);
}

int GpuBackend::openDevice(const std::string &vendor, unsigned ordinal) {
  int count = 0;
  int code = driver.init(0);
  if (code == 0)
    code = driver.deviceGetCount(&count);
  if (code != 0 || count == 0)
    throw Error("no " + vendor + " GPU: " +
                (code ? errorText(code) : std::string("none is installed")));
  if (ordinal >= static_cast<unsigned>(count))
    throw Error("no " + vendor + " GPU number " + std::to_string(ordinal) +
                ": there are " + std::to_string(count));
  int device = 0;
  check(driver.deviceGet(&device, static_cast<int>(ordinal)),
        "opening the GPU");
  char name[256] = {};
  check(driver.deviceGetName(name, sizeof(name) - 1, device),
        "opening the GPU");
  deviceName = name;
  return device;
}

std::string GpuBackend::describeError(int code, const char *name,
                                      const char *text) {
  return std::string(text ? text : "unknown error") + " (" +
         (name ? name : std::to_string(code)) + ")";
}

void GpuBackend::encodeTensorMap(const BoundTensorMap &, void *) const {
  throw Error("the kernel takes tensor maps, which " + deviceName +
              " does not have");
}

DynamicLibrary::DynamicLibrary(std::initializer_list<const char *> names,
                               const char *what) {
  for (const char *candidate : names) {
    handle = dlopen(candidate, RTLD_NOW | RTLD_LOCAL);
    name = candidate;
    if (handle)
      return;
  }
  throw Error(std::string("no ") + what + ": " + *names.begin() +
              " cannot be opened");
}

void *DynamicLibrary::look(const char *symbol) const {
  return dlsym(handle, symbol);
}

void *DynamicLibrary::find(const char *symbol) const {
  void *address = look(symbol);
  if (!address)
    throw Error(name + " lacks the function " + symbol +
                "; a newer driver is needed");
  return address;
}

//===----------------------------------------------------------------------===//
// Device
//===----------------------------------------------------------------------===//

namespace {

/// Function attributes, with the same numbers in CUDA and HIP.
enum FunctionAttribute {
  kStaticSharedBytes = 1,
  kLocalBytes = 3,
  kRegisters = 4,
  kMaxDynamicSharedBytes = 8
};

/// Makes the device current for a scope, and what was current before after it.
class Current {
public:
  explicit Current(GpuBackend &backend)
      : backend(backend), entered(backend.enter()) {}
  ~Current() {
    if (entered)
      backend.leave();
  }
  Current(const Current &) = delete;
  Current &operator=(const Current &) = delete;

private:
  GpuBackend &backend;
  bool entered;
};

/// 64 bytes of zeros in device memory: what stands for a tensor without
/// elements in a tensor map.
class Zeros {
public:
  Zeros(GpuBackend &gpu, const Manifest &manifest) : gpu(gpu) {
    bool used = false;
    for (const KernelSpec &k : manifest.kernels)
      used |= k.takesTensorMaps();
    if (!used)
      return;
    // Ahead, since launches may be captured into graphs.
    gpu.check(gpu.driver.memAlloc(&address, kBytes), "allocating zeros");
    gpu.check(gpu.driver.memset8(address, 0, kBytes), "clearing zeros");
    gpu.check(gpu.driver.synchronize(), "clearing zeros");
  }
  ~Zeros() {
    if (address)
      gpu.driver.memFree(address);
  }
  uint64_t get() const { return address; }

private:
  static constexpr uint64_t kBytes = 64;
  GpuBackend &gpu;
  uint64_t address = 0;
};

/// A tensor map in the driver's form.
struct alignas(64) EncodedMap {
  uint8_t bytes[128];
};

class GpuModule;

/// Everything that a launch takes and its addresses do not change: arguments
/// lie where the driver reads them, maps are encoded. A launch puts addresses
/// into their places.
class GpuLaunch : public PreparedLaunch {
public:
  /// `addresses`: those at which `bound` is; null: they never change.
  GpuLaunch(GpuModule &module, const BoundLaunch &bound,
            const uint64_t *addresses);
  void launch(const uint64_t *addresses, void *stream) override;

private:
  /// Which word of the arguments is the address of which tensor, counter or
  /// scratch memory.
  struct Place {
    LaunchArg::Kind kind;
    size_t word;
    uint64_t from;
  };
  /// A map that follows its tensor, or scratch memory, `offset` bytes from
  /// where that begins. `isEncoded`: it has been at some address.
  struct MovingMap {
    size_t encoded;
    BoundTensorMap map;
    uint64_t offset;
    bool isEncoded = true;
  };
  struct Kernel {
    std::string entry;
    GpuDriver::Handle function;
    std::array<unsigned, 3> grid, block;
    unsigned sharedBytes;
    /// Whether it may begin before the launch ahead of it has ended.
    bool dependent;
    std::vector<void *> args;
    std::vector<Place> places;
    std::vector<MovingMap> maps;
  };

  void encode(const BoundTensorMap &map, uint64_t address, EncodedMap &out);
  void move(MovingMap &map, uint64_t address);
  /// Puts a kernel on a stream; the driver's result.
  int launchOne(Kernel &k, void *stream);

  GpuModule &module;
  std::vector<Kernel> kernels;
  // Of all kernels; arguments point into both.
  std::vector<uint64_t> words;
  std::vector<EncodedMap> encoded;
  /// Where each part of the scratch memory is, from its begin; empty: none.
  std::vector<uint64_t> scratchOffsets;
  uint64_t scratchCounterBytes = 0, scratchBytes = 0;
};

class GpuModule : public Module {
public:
  GpuModule(GpuBackend &gpu, const Artifact &artifact, const Manifest &manifest)
      : gpu(gpu) {
    Current current(gpu);
    module = gpu.loadModule(artifact);
    try {
      for (const KernelSpec &k : manifest.kernels)
        loadKernel(k);
      zeros = std::make_unique<Zeros>(gpu, manifest);
      if (manifest.counters > 0)
        counters = std::make_unique<LaunchCounters>(gpu, manifest.counters);
      if (!manifest.scratch.empty())
        scratch = std::make_unique<LaunchScratch>(gpu);
    } catch (...) {
      gpu.driver.moduleUnload(module);
      throw;
    }
  }
  ~GpuModule() override {
    // A graph that launches the kernels may outlive this module, and the driver
    // says that it is gone where nothing can be unloaded: the code stays.
    if ((counters && counters->heldByGraphs()) ||
        (scratch && scratch->heldByGraphs())) {
      (void)counters.release();
      (void)scratch.release();
      (void)zeros.release();
      return;
    }
    Current current(gpu);
    counters.reset();
    scratch.reset();
    zeros.reset();
    gpu.driver.moduleUnload(module);
  }

  void launch(const BoundLaunch &launch, void *stream) override {
    GpuLaunch(*this, launch, nullptr).launch(nullptr, stream);
  }
  std::unique_ptr<PreparedLaunch> prepare(const BoundLaunch &launch,
                                          const uint64_t *addresses) override {
    return std::make_unique<GpuLaunch>(*this, launch, addresses);
  }
  bool isCurrent() const override { return gpu.isCurrent(); }

  std::string describe() const override { return description; }

private:
  friend class GpuLaunch;

  void loadKernel(const KernelSpec &k) {
    GpuDriver::Handle function = nullptr;
    gpu.check(gpu.driver.moduleGetFunction(&function, module, k.entry.c_str()),
              "looking for kernel '" + k.entry + "' in the artifact's code");
    auto attribute = [&](int which) {
      int value = 0;
      gpu.check(gpu.driver.funcGetAttribute(&value, which, function),
                "reading attributes of '" + k.entry + "'");
      return value;
    };
    int fixed = attribute(kStaticSharedBytes);
    if (k.dynamicSharedBytes + static_cast<unsigned>(fixed) >
        gpu.maxSharedBytes())
      throw Error("kernel '" + k.entry + "' needs " +
                  std::to_string(k.dynamicSharedBytes + fixed) +
                  " bytes of shared memory; a block has at most " +
                  std::to_string(gpu.maxSharedBytes()) + " on " +
                  gpu.deviceName);
    if (k.dynamicSharedBytes > 0)
      gpu.check(
          gpu.driver.funcSetAttribute(function, kMaxDynamicSharedBytes,
                                      static_cast<int>(k.dynamicSharedBytes)),
          "asking for " + std::to_string(k.dynamicSharedBytes) +
              " bytes of shared memory for '" + k.entry + "'");
    functions[k.entry] = function;
    description += (description.empty() ? "" : "; ") + k.entry + ": " +
                   std::to_string(attribute(kRegisters)) + " registers, " +
                   std::to_string(attribute(kLocalBytes)) +
                   " bytes of local memory, " +
                   std::to_string(k.dynamicSharedBytes + fixed) +
                   " bytes of shared memory";
  }

  GpuBackend &gpu;
  std::unique_ptr<Zeros> zeros;
  std::unique_ptr<LaunchCounters> counters;
  std::unique_ptr<LaunchScratch> scratch;
  GpuDriver::Handle module = nullptr;
  std::map<std::string, GpuDriver::Handle> functions;
  std::string description;
};

GpuLaunch::GpuLaunch(GpuModule &module, const BoundLaunch &bound,
                     const uint64_t *addresses)
    : module(module) {
  using Kind = LaunchArg::Kind;
  // Tensor maps are described in a context, and zeros are its memory.
  Current current(module.gpu);
  size_t wordCount = 0, mapCount = 0;
  for (const KernelLaunch &k : bound.kernels) {
    wordCount += k.args.size();
    mapCount += k.tensorMaps.size();
  }
  words.reserve(wordCount);
  encoded.resize(mapCount);
  if (!bound.kernels.empty()) {
    auto rounded = [](uint64_t bytes) {
      constexpr uint64_t align = LaunchScratch::kAlign;
      return (bytes + align - 1) / align * align;
    };
    // Counters come first.
    for (const ScratchUse &use : bound.scratch)
      scratchCounterBytes += use.counter ? rounded(use.bytes) : 0;
    uint64_t counter = 0;
    for (const ScratchUse &use : bound.scratch) {
      scratchOffsets.push_back(
          use.counter ? counter : scratchCounterBytes + scratchBytes);
      (use.counter ? counter : scratchBytes) += rounded(use.bytes);
    }
  }
  size_t map = 0;
  for (const KernelLaunch &k : bound.kernels) {
    Kernel &kernel = kernels.emplace_back();
    kernel.entry = k.entry;
    kernel.function = module.functions.at(k.entry);
    kernel.grid = k.grid;
    kernel.block = k.block;
    kernel.sharedBytes = k.dynamicSharedBytes;
    kernel.dependent = k.dependent;
    for (const LaunchArg &arg : k.args) {
      if (arg.kind == Kind::TensorMap) {
        kernel.args.push_back(&encoded[map + arg.word]);
        continue;
      }
      words.push_back(arg.word);
      kernel.args.push_back(&words.back());
      if (arg.kind != Kind::Word)
        kernel.places.push_back({arg.kind, words.size() - 1, arg.word});
      else if (arg.tensor >= 0 && addresses)
        kernel.places.push_back(
            {arg.kind, words.size() - 1, static_cast<uint64_t>(arg.tensor)});
    }
    for (const BoundTensorMap &tensorMap : k.tensorMaps) {
      bool empty = tensorMap.map.address == 0;
      if (!empty && tensorMap.scratch >= 0) {
        kernel.maps.push_back(
            {map++, tensorMap,
             tensorMap.map.address - BoundTensorMap::kScratchBase,
             /*isEncoded=*/false});
        continue;
      }
      encode(tensorMap, empty ? module.zeros->get() : tensorMap.map.address,
             encoded[map]);
      if (!empty && addresses)
        kernel.maps.push_back(
            {map, tensorMap,
             tensorMap.map.address - addresses[tensorMap.number]});
      ++map;
    }
  }
}

void GpuLaunch::encode(const BoundTensorMap &map, uint64_t address,
                       EncodedMap &out) {
  BoundTensorMap there = map;
  there.map.address = address;
  module.gpu.encodeTensorMap(there, &out);
}

/// Putting an address into a map that is there takes a tenth of an encoding's
/// time.
void GpuLaunch::move(MovingMap &map, uint64_t address) {
  if (!map.isEncoded ||
      !module.gpu.moveTensorMap(address, &encoded[map.encoded]))
    encode(map.map, address, encoded[map.encoded]);
  map.isEncoded = true;
  map.map.map.address = address;
}

void GpuLaunch::launch(const uint64_t *addresses, void *stream) {
  GpuBackend &gpu = module.gpu;
  Current current(gpu);
  uint64_t scratch = 0, counted = 0;
  if (!scratchOffsets.empty())
    scratch = module.scratch->next(stream, scratchCounterBytes, scratchBytes);
  for (Kernel &k : kernels) {
    for (MovingMap &map : k.maps) {
      int own = map.map.scratch;
      uint64_t now = map.offset + (own >= 0 ? scratch + scratchOffsets[own]
                                            : addresses[map.map.number]);
      if (now != map.map.map.address)
        move(map, now);
    }
    for (const Place &place : k.places) {
      uint64_t &word = words[place.word];
      if (place.kind == LaunchArg::Kind::Word) {
        word = addresses[place.from];
      } else if (place.kind == LaunchArg::Kind::Scratch) {
        word = scratch + scratchOffsets[place.from];
      } else {
        if (!counted)
          counted = module.counters->next(stream);
        word = counted + place.from * LaunchCounters::kSpacing;
      }
    }
    // The text is made where it is needed: a launch takes microseconds.
    if (int code = launchOne(k, stream))
      gpu.check(code, "launching '" + k.entry + "'");
  }
}

int GpuLaunch::launchOne(Kernel &k, void *stream) {
  const GpuDriver &driver = module.gpu.driver;
  if (!k.dependent || !driver.launchKernelEx)
    return driver.launchKernel(k.function, k.grid[0], k.grid[1], k.grid[2],
                               k.block[0], k.block[1], k.block[2],
                               k.sharedBytes, stream, k.args.data(), nullptr);
  GpuLaunchAttribute early = {};
  early.id = kProgrammaticStreamSerialization;
  early.value = 1;
  GpuLaunchConfig config = {};
  std::copy(k.grid.begin(), k.grid.end(), config.grid);
  std::copy(k.block.begin(), k.block.end(), config.block);
  config.sharedBytes = k.sharedBytes;
  config.stream = stream;
  config.attributes = &early;
  config.count = 1;
  return driver.launchKernelEx(&config, k.function, k.args.data(), nullptr);
}

/// Events of one timing; destroyed whatever happens.
class Events {
public:
  Events(GpuBackend &gpu, size_t count) : gpu(gpu) {
    for (size_t i = 0; i < count; ++i) {
      GpuDriver::Handle event = nullptr;
      gpu.check(gpu.driver.eventCreate(&event, 0), "creating an event");
      events.push_back(event);
    }
  }
  ~Events() {
    for (GpuDriver::Handle event : events)
      gpu.driver.eventDestroy(event);
  }
  GpuDriver::Handle operator[](size_t i) const { return events[i]; }

private:
  GpuBackend &gpu;
  std::vector<GpuDriver::Handle> events;
};

class GpuDevice : public Device {
public:
  explicit GpuDevice(std::unique_ptr<GpuBackend> backend)
      : backend(std::move(backend)), gpu(*this->backend) {}

  std::string kind() const override { return gpu.kind(); }
  std::string description() const override {
    return gpu.deviceName + (gpu.chip.empty() ? "" : " (" + gpu.chip + ")");
  }
  std::string chip() const override { return gpu.compileFor; }
  std::string toldChip() const override { return gpu.chip; }
  unsigned multiprocessors() const override { return gpu.multiprocessors; }
  bool isHost() const override { return false; }
  std::string whyNot(const TargetSpec &target,
                     const Artifact &artifact) const override {
    return gpu.whyNot(target, artifact);
  }

  uint64_t allocate(uint64_t bytes) override {
    Current current(gpu);
    uint64_t address = 0;
    gpu.check(gpu.driver.memAlloc(&address, std::max<uint64_t>(bytes, 1)),
              "allocating " + std::to_string(bytes) +
                  " bytes of device memory");
    return address;
  }
  void free(uint64_t address) override {
    Current current(gpu);
    gpu.driver.memFree(address);
  }
  void upload(uint64_t to, const void *from, uint64_t bytes) override {
    if (bytes == 0)
      return;
    Current current(gpu);
    gpu.check(gpu.driver.copyToDevice(to, from, bytes),
              "copying to the device");
  }
  void download(void *to, uint64_t from, uint64_t bytes) override {
    if (bytes == 0)
      return;
    Current current(gpu);
    gpu.check(gpu.driver.copyToHost(to, from, bytes),
              "copying from the device");
  }
  void fill(uint64_t address, uint8_t byte, uint64_t bytes) override {
    if (bytes == 0)
      return;
    Current current(gpu);
    gpu.check(gpu.driver.memset8(address, byte, bytes),
              "filling device memory");
  }

  std::unique_ptr<Module> load(const Artifact &artifact,
                               const Manifest &manifest) override {
    std::string reason = gpu.whyNot(manifest.target, artifact);
    if (!reason.empty())
      throw Error(reason);
    return std::make_unique<GpuModule>(gpu, artifact, manifest);
  }

  void synchronize() override {
    Current current(gpu);
    gpu.check(gpu.driver.synchronize(), "waiting for the device");
  }

  std::vector<double> time(Module &module, const BoundLaunch &launch,
                           unsigned runs) override {
    Current current(gpu);
    Events events(gpu, runs + 1);
    gpu.check(gpu.driver.eventRecord(events[0], nullptr), "recording an event");
    std::unique_ptr<PreparedLaunch> prepared = module.prepare(launch, nullptr);
    for (unsigned i = 0; i < runs; ++i) {
      prepared->launch(nullptr, nullptr);
      gpu.check(gpu.driver.eventRecord(events[i + 1], nullptr),
                "recording an event");
    }
    gpu.check(gpu.driver.eventSynchronize(events[runs]),
              "waiting for the device");
    std::vector<double> seconds;
    for (unsigned i = 0; i < runs; ++i) {
      float ms = 0;
      gpu.check(gpu.driver.eventElapsed(&ms, events[i], events[i + 1]),
                "reading an event");
      seconds.push_back(ms * 1e-3);
    }
    return seconds;
  }

private:
  std::unique_ptr<GpuBackend> backend;
  GpuBackend &gpu;
};

} // namespace

std::unique_ptr<Device> rt::makeGpuDevice(std::unique_ptr<GpuBackend> backend) {
  return std::make_unique<GpuDevice>(std::move(backend));
}
