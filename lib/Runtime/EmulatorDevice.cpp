//===- lib/Runtime/EmulatorDevice.cpp - The emulator as a device *- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Runtime/CompilerLibrary.h"
#include "kvbuffer/Runtime/Device.h"
#include "kvbuffer/Runtime/Error.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <sys/mman.h>

using nlohmann::json;
using namespace kvbuf;
using namespace kvbuf::rt;

namespace {

class EmulatorModule : public Module {
public:
  EmulatorModule(const DeviceOptions &options, std::string mlir,
                 const Manifest &manifest)
      : options(options), mlir(std::move(mlir)), name(manifest.name),
        counters(manifest.counters) {
    create(); // reports what the emulator does not support at load time
  }
  ~EmulatorModule() override { destroy(); }

  void launch(const BoundLaunch &launch, void *) override {
    // A fresh emulator each time: what was written, and what is registered,
    // belongs to one launch.
    if (used) {
      destroy();
      create();
    }
    used = true;
    for (const BufferUse &use : launch.buffers)
      add(use);
    // As on a GPU, counters are zero before each launch, whatever the one
    // before left there.
    std::fill(counters.begin(), counters.end(), Line{});
    for (size_t i = 0; i < counters.size(); ++i)
      add({"counter " + std::to_string(i),
           reinterpret_cast<uint64_t>(&counters[i]), sizeof(uint32_t), true,
           true, true});
    bool takesMaps = std::any_of(
        launch.kernels.begin(), launch.kernels.end(),
        [](const KernelLaunch &k) { return !k.tensorMaps.empty(); });
    if (takesMaps)
      add({"zeros", reinterpret_cast<uint64_t>(&zeros), sizeof(zeros), true,
           false, true});
    // As on a GPU, nothing is known of workspaces.
    scratch.clear();
    for (const ScratchUse &use : launch.scratch) {
      scratch.emplace_back(use.bytes / sizeof(Line) + 1,
                           use.counter ? Line{} : poison());
      add({use.name, reinterpret_cast<uint64_t>(scratch.back().data()),
           use.bytes, true, true, use.counter});
    }
    for (auto first = launch.kernels.begin(), end = launch.kernels.end();
         first != end;) {
      auto last = std::find_if(first + 1, end,
                               [](const KernelLaunch &k) { return !k.beside; });
      launchTogether(&*first, last - first);
      first = last;
    }
    for (size_t i = 0; i < launch.scratch.size(); ++i)
      if (launch.scratch[i].counter)
        checkCounters(launch.scratch[i], scratch[i]);
  }

  std::string report() const override {
    char *text = lib.emulatorReport(emulator);
    std::string out = text ? text : "";
    lib.free(text);
    return out;
  }

private:
  /// A counter's word on a line of its own, or a line of scratch memory.
  struct alignas(64) Line {
    uint32_t words[16] = {};
  };

  /// A launch that leaves a counter other than it was would let the next one
  /// count from there.
  void checkCounters(const ScratchUse &use, const std::vector<Line> &lines) {
    for (size_t i = 0; i < use.bytes / sizeof(uint32_t); ++i)
      if (uint32_t word = lines[i / 16].words[i % 16])
        throw KernelFault("the launch leaves element " + std::to_string(i) +
                          " of the counters '" + use.name + "' at " +
                          std::to_string(word) +
                          "; expected 0, as it was when it started");
  }

  static Line poison() {
    Line line;
    std::fill(std::begin(line.words), std::end(line.words), ~0u);
    return line;
  }

  void add(const BufferUse &use) {
    if (lib.emulatorRegisterBuffer(
            emulator, use.name.c_str(), reinterpret_cast<void *>(use.address),
            use.bytes, use.readable, use.writable, use.initialized))
      fail("the emulator refuses the buffer '" + use.name + "'");
  }

  /// The values of a kernel's arguments, and where each lies.
  struct Arguments {
    std::vector<SoftwareTensorMap> maps;
    std::vector<uint64_t> words;
    std::vector<const void *> args;
    std::vector<size_t> bytes;
  };

  void fill(Arguments &to, const KernelLaunch &k) {
    for (const BoundTensorMap &bound : k.tensorMaps) {
      to.maps.push_back(bound.map);
      if (bound.map.address == 0)
        to.maps.back().address = reinterpret_cast<uint64_t>(&zeros);
      else if (bound.scratch >= 0)
        to.maps.back().address +=
            reinterpret_cast<uint64_t>(scratch[bound.scratch].data()) -
            BoundTensorMap::kScratchBase;
    }
    to.words.reserve(k.args.size());
    for (const LaunchArg &arg : k.args) {
      to.bytes.push_back(arg.bytes);
      if (arg.kind == LaunchArg::Kind::TensorMap) {
        to.args.push_back(&to.maps[arg.word]);
        continue;
      }
      uint64_t word = arg.word;
      if (arg.kind == LaunchArg::Kind::Counter)
        word = reinterpret_cast<uint64_t>(&counters[arg.word]);
      else if (arg.kind == LaunchArg::Kind::Scratch)
        word = reinterpret_cast<uint64_t>(scratch[arg.word].data());
      to.words.push_back(word);
      to.args.push_back(&to.words.back());
    }
  }

  /// Runs kernels beside each other, on every chip, whether or not its driver
  /// would: what one of them writes is no other's, and where it is, that is a
  /// race.
  void launchTogether(const KernelLaunch *kernels, size_t count) {
    std::vector<Arguments> arguments(count);
    std::vector<kvbufEmulatorRequest> requests(count);
    std::string names;
    for (size_t i = 0; i < count; ++i) {
      const KernelLaunch &k = kernels[i];
      Arguments &own = arguments[i];
      fill(own, k);
      kvbufEmulatorRequest &r = requests[i];
      r.entry = k.entry.c_str();
      std::copy(k.grid.begin(), k.grid.end(), r.grid);
      std::copy(k.block.begin(), k.block.end(), r.block);
      r.dynamic_shared_bytes = k.dynamicSharedBytes;
      r.args = own.args.data();
      r.arg_bytes = own.bytes.data();
      r.arg_count = static_cast<unsigned>(own.args.size());
      names += (i ? "' or '" : "kernel '") + k.entry;
    }
    names += "'";
    lastError.clear();
    int status = lib.emulatorLaunchTogether(
        emulator, requests.data(), static_cast<unsigned>(count),
        options.progress ? progressCallback : nullptr, this);
    if (status == 3)
      throw Interrupted("interrupted in " + names);
    if (status == 1)
      throw KernelFault("the emulator found a fault in " + names + because());
    if (status != 0)
      fail("the emulator cannot run " + names);
  }

  static void messageCallback(int severity, const char *message, void *user) {
    auto &self = *static_cast<EmulatorModule *>(user);
    if (severity == static_cast<int>(Severity::Error) && self.lastError.empty())
      self.lastError = message;
    if (self.options.message)
      self.options.message(static_cast<Severity>(severity), message);
  }
  static void progressCallback(uint64_t done, uint64_t total, void *user) {
    static_cast<EmulatorModule *>(user)->options.progress(done, total);
  }

  /// The first error message, unless a handler has it already.
  std::string because() const {
    return lastError.empty() || options.message ? "" : ": " + lastError;
  }

  [[noreturn]] void fail(const std::string &what) const {
    if (options.message && !lastError.empty())
      throw ReportedError(what);
    throw Error(what + because());
  }

  void create() {
    lastError.clear();
    emulator =
        lib.emulatorCreate(mlir.data(), mlir.size(), name.c_str(),
                           options.emulator.c_str(), messageCallback, this);
    used = false;
    if (!emulator)
      fail("the emulator cannot load '" + name + "'");
    lib.emulatorWatch(emulator, options.interrupt.get());
  }
  void destroy() {
    if (emulator)
      lib.emulatorDestroy(emulator);
    emulator = nullptr;
  }

  const CompilerLibrary &lib = compilerLibrary();
  DeviceOptions options;
  std::string mlir, name, lastError;
  std::vector<Line> counters;
  std::vector<std::vector<Line>> scratch;
  /// Stands for a tensor without elements.
  alignas(64) const uint8_t zeros[64] = {};
  kvbufEmulator *emulator = nullptr;
  bool used = false;
};

class EmulatorDevice : public Device {
public:
  explicit EmulatorDevice(const DeviceOptions &given) : options(given) {
    compilerLibrary();
    // Two options are the runtime's; what is wrong with the text the emulator
    // says.
    json all = json::parse(options.emulator, nullptr, /*throw=*/false);
    if (!all.is_object())
      return;
    if (auto check = all.find("check_lengths"); check != all.end()) {
      if (!check->is_boolean())
        throw Error("emulator options: expected true or false for "
                    "'check_lengths'");
      lengthsChecked = check->get<bool>();
      all.erase(check);
    }
    if (auto own = all.find("multiprocessors"); own != all.end()) {
      constexpr int64_t most = 1 << 16;
      if (!own->is_number_integer() || own->get<int64_t>() < 1 ||
          own->get<int64_t>() > most)
        throw Error("emulator options: expected 1 to 65536 for "
                    "'multiprocessors'");
      ownMultiprocessors = own->get<unsigned>();
      all.erase(own);
    }
    options.emulator = all.dump();
  }
  ~EmulatorDevice() override {
    for (auto [address, bytes] : blocks)
      munmap(reinterpret_cast<void *>(address), bytes);
  }

  std::string kind() const override { return "emulator"; }
  std::string description() const override { return "emulator"; }
  std::string chip() const override { return ""; }
  unsigned multiprocessors() const override { return ownMultiprocessors; }
  bool isHost() const override { return true; }
  bool checksLengths() const override { return lengthsChecked; }
  std::string whyNot(const TargetSpec &,
                     const Artifact &artifact) const override {
    return artifact.find("mlir") ? ""
                                 : "the artifact has no 'mlir' section, which "
                                   "the emulator runs";
  }

  uint64_t allocate(uint64_t bytes) override {
    // Mapped without reserve, so that a huge and sparse tensor costs only the
    // pages that are touched.
    bytes = std::max<uint64_t>(bytes, 1);
    void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
      throw Error("cannot allocate " + std::to_string(bytes) +
                  " bytes of host memory");
    blocks[reinterpret_cast<uint64_t>(p)] = bytes;
    return reinterpret_cast<uint64_t>(p);
  }
  void free(uint64_t address) override {
    auto it = blocks.find(address);
    if (it == blocks.end())
      return;
    munmap(reinterpret_cast<void *>(address), it->second);
    blocks.erase(it);
  }
  void upload(uint64_t to, const void *from, uint64_t bytes) override {
    std::memcpy(reinterpret_cast<void *>(to), from, bytes);
  }
  void download(void *to, uint64_t from, uint64_t bytes) override {
    std::memcpy(to, reinterpret_cast<const void *>(from), bytes);
  }
  void fill(uint64_t address, uint8_t byte, uint64_t bytes) override {
    std::memset(reinterpret_cast<void *>(address), byte, bytes);
  }

  std::unique_ptr<Module> load(const Artifact &artifact,
                               const Manifest &manifest) override {
    std::string reason = whyNot(manifest.target, artifact);
    if (!reason.empty())
      throw Error(reason);
    return std::make_unique<EmulatorModule>(options, *artifact.find("mlir"),
                                            manifest);
  }
  void synchronize() override {}

  std::vector<double> time(Module &module, const BoundLaunch &launch,
                           unsigned runs) override {
    std::vector<double> seconds;
    for (unsigned i = 0; i < runs; ++i) {
      auto start = std::chrono::steady_clock::now();
      module.launch(launch);
      seconds.push_back(std::chrono::duration<double>(
                            std::chrono::steady_clock::now() - start)
                            .count());
    }
    return seconds;
  }

private:
  DeviceOptions options;
  bool lengthsChecked = true;
  /// Few, so that small grids are larger than the device already.
  unsigned ownMultiprocessors = 4;
  std::map<uint64_t, uint64_t> blocks;
};

} // namespace

std::unique_ptr<Device> rt::openEmulatorDevice(const DeviceOptions &options) {
  return std::make_unique<EmulatorDevice>(options);
}
