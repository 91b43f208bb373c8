//===- EmulatorBackend.cpp - MLIR's GPU programs on the emulator ----------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Device memory is host memory of which this file knows what has been written.
// Launches wait until the host asks for anything else, and run at the same time
// if they are on different streams: they may wait for each other. Everything
// else that goes to a stream is done at once: the order in which the host asks
// for it is one that streams and events allow.
//
//===----------------------------------------------------------------------===//

#include "Backend.h"

#include "kvbuffer/Runtime/CompilerLibrary.h"
#include "kvbuffer/Runtime/Error.h"
#include "kvbuffer/Runtime/TensorMap.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <unistd.h>
#include <vector>

using nlohmann::json;
using namespace kvbuf;
using namespace kvbuf::mgpu;
using rt::Error;

namespace {

/// What KVBUF_EMULATOR_OPTIONS says; the rest of it is the emulator's.
struct Settings {
  /// Programs of nvgpu initialise mbarriers with no fence.
  std::string emulator = R"({"strict": false})";
  /// Where the report goes: a file, "-" (stderr) or nowhere.
  std::string report;
  bool goOn = false;
};

struct Module {
  kvbufEmulator *emulator = nullptr;
  std::string name;
  /// Its functions' handles.
  std::map<std::string, std::unique_ptr<struct Function>> functions;
};

struct Function {
  Module *module;
  std::string name;
};

/// A launch that the host has asked for.
struct Pending {
  Function *function;
  Handle stream;
  Dimensions size;
  /// Their values are the caller's no longer than the call.
  std::vector<std::vector<uint8_t>> args;
};

/// Memory that kernels may access.
struct Memory {
  uint64_t bytes;
  std::string name;
  bool isHost;
  /// Of device memory: a flag a byte, and the memory itself.
  std::vector<uint8_t> written;
  void *base = nullptr;
};

class EmulatorBackend final : public Backend {
public:
  EmulatorBackend();

  void setDevice(int ordinal) override {
    if (ordinal != 0)
      throw Error("device " + std::to_string(ordinal) +
                  "; the emulator is device 0");
  }

  Handle loadModule(const void *data, size_t bytes, int optLevel) override;
  void unloadModule(Handle module) override;
  Handle getFunction(Handle module, const char *name) override;
  void launch(Handle function, const Dimensions &size, Handle stream,
              void **params, void **extra, size_t count) override;

  Handle createStream() override { return new char; }
  void destroyStream(Handle stream) override {
    flush();
    delete static_cast<char *>(stream);
  }
  void synchronize(Handle) override { flush(); }
  void waitEvent(Handle, Handle) override { flush(); }
  Handle createEvent() override { return new char; }
  void destroyEvent(Handle event) override {
    delete static_cast<char *>(event);
  }
  void synchronizeEvent(Handle) override { flush(); }
  void recordEvent(Handle, Handle) override { flush(); }

  void *allocate(uint64_t bytes, Handle stream, bool hostShared) override;
  void free(void *address, Handle stream) override;
  void copy(void *to, const void *from, size_t bytes, Handle stream) override;
  void fill(void *to, uint32_t value, unsigned width, size_t count,
            Handle stream) override;
  void registerHost(void *address, uint64_t bytes) override;
  void unregisterHost(void *address) override;
  void *deviceAddress(void *address) override { return address; }
  void enablePeerAccess(int, int) override {}
  void encodeTensorMap(const TensorMapRequest &request, void *map) override;

  /// Executes the launches that the host has asked for.
  void flush();
  void writeReport();

private:
  Memory *find(const void *address, uint64_t bytes, uint64_t &begin);
  static void receive(int severity, const char *text, void *user);
  [[noreturn]] void end();
  bool isLost(const char *what) {
    if (lost)
      warn(std::string("error: ") + what +
           " is not done: an assertion of a kernel failed before");
    return lost;
  }

  const rt::CompilerLibrary *lib = nullptr;
  Settings settings;
  std::map<uint64_t, Memory> memory; // by address
  /// Of one module, each on a stream of its own.
  std::vector<Pending> pending;
  std::vector<std::unique_ptr<Module>> modules;
  unsigned allocations = 0, registrations = 0;
  json reports = json::array();
  /// A kernel's assertion failed: as on a GPU, nothing works any more.
  bool lost = false;
};

EmulatorBackend *reporting = nullptr;

} // namespace

EmulatorBackend::EmulatorBackend() : lib(&rt::compilerLibrary()) {
  const char *text = std::getenv("KVBUF_EMULATOR_OPTIONS");
  if (text && *text) {
    json options = json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!options.is_object()) {
      warn("error: KVBUF_EMULATOR_OPTIONS is no JSON object, such as "
           "{\"landing\": \"random\", \"seed\": 7, \"report\": \"-\"}");
      std::exit(1);
    }
    if (auto it = options.find("report"); it != options.end()) {
      settings.report = it->is_string() ? it->get<std::string>() : "-";
      options.erase("report");
    }
    if (auto it = options.find("on_fault"); it != options.end()) {
      if (*it != "exit" && *it != "continue") {
        warn("error: KVBUF_EMULATOR_OPTIONS: 'on_fault' is exit or continue");
        std::exit(1);
      }
      settings.goOn = *it == "continue";
      options.erase("on_fault");
    }
    if (!options.contains("strict"))
      options["strict"] = false;
    settings.emulator = options.dump();
  }
  reporting = this;
  std::atexit([] {
    reporting->flush();
    reporting->writeReport();
  });
}

void EmulatorBackend::receive(int severity, const char *text, void *user) {
  static_cast<void>(severity);
  static_cast<void>(user);
  std::fprintf(stderr, "%s\n", text);
}

// A detector has found a fault: nothing that the program computes from here on
// can be trusted.
void EmulatorBackend::end() {
  std::cout.flush();
  std::fflush(nullptr);
  writeReport();
  _exit(1);
}

void EmulatorBackend::writeReport() {
  if (settings.report.empty())
    return;
  for (const auto &module : modules)
    if (module->emulator) {
      char *text = lib->emulatorReport(module->emulator);
      json one = json::parse(text ? text : "", nullptr, false);
      lib->free(text);
      one["module"] = module->name;
      reports.push_back(std::move(one));
    }
  std::string text = json{{"modules", reports}}.dump(2) + "\n";
  if (settings.report == "-") {
    std::fputs(text.c_str(), stderr);
  } else if (std::ofstream file(settings.report); !(file << text)) {
    warn("error: cannot write the report to '" + settings.report + "'");
  }
  settings.report.clear();
}

//===----------------------------------------------------------------------===//
// Modules and launches
//===----------------------------------------------------------------------===//

Handle EmulatorBackend::loadModule(const void *data, size_t bytes, int) {
  auto module = std::make_unique<Module>();
  module->name = "module " + std::to_string(modules.size());
  if (!bytes)
    bytes = std::strlen(static_cast<const char *>(data));
  module->emulator =
      lib->emulatorCreate(data, bytes, module->name.c_str(),
                          settings.emulator.c_str(), receive, this);
  // Without its kernels the program can only go wrong.
  if (!module->emulator)
    end();
  modules.push_back(std::move(module));
  return modules.back().get();
}

void EmulatorBackend::unloadModule(Handle handle) {
  flush();
  for (const auto &module : modules)
    if (module.get() == handle && module->emulator) {
      if (!settings.report.empty()) {
        char *text = lib->emulatorReport(module->emulator);
        json one = json::parse(text ? text : "", nullptr, false);
        lib->free(text);
        one["module"] = module->name;
        reports.push_back(std::move(one));
      }
      lib->emulatorDestroy(module->emulator);
      module->emulator = nullptr;
      return;
    }
  throw Error("not a loaded module");
}

Handle EmulatorBackend::getFunction(Handle handle, const char *name) {
  for (const auto &module : modules) {
    if (module.get() != handle || !module->emulator)
      continue;
    const uint32_t *bytes;
    unsigned count;
    if (lib->emulatorParameters(module->emulator, name, &bytes, &count) != 0) {
      warn("error: " + module->name + " has no kernel '" + name + "'");
      end();
    }
    std::unique_ptr<Function> &f = module->functions[name];
    if (!f)
      f = std::make_unique<Function>(Function{module.get(), name});
    return f.get();
  }
  throw Error("not a loaded module");
}

void EmulatorBackend::launch(Handle handle, const Dimensions &size,
                             Handle stream, void **params, void **extra,
                             size_t count) {
  if (!handle)
    throw Error("no function");
  if (extra && *extra)
    throw Error("arguments by 'extra' are not supported");
  Function &f = *static_cast<Function *>(handle);
  const uint32_t *bytes;
  unsigned takes;
  if (!f.module->emulator ||
      lib->emulatorParameters(f.module->emulator, f.name.c_str(), &bytes,
                              &takes) != 0)
    throw Error("kernel '" + f.name + "' of a module that is not loaded");
  if (count && count != takes)
    throw Error("kernel '" + f.name + "' takes " + std::to_string(takes) +
                " arguments, not " + std::to_string(count));
  for (unsigned d = 0; d < 3; ++d)
    if (size.grid[d] > UINT32_MAX || size.block[d] > UINT32_MAX ||
        size.cluster[d] > UINT32_MAX)
      throw Error("kernel '" + f.name + "': a size of more than 2^32");
  // Launches of one stream follow each other, and those of the default stream
  // follow all others.
  bool after =
      !stream ||
      std::any_of(pending.begin(), pending.end(), [&](const Pending &p) {
        return !p.stream || p.stream == stream ||
               p.function->module != f.module;
      });
  if (after)
    flush();
  if (isLost("a launch"))
    return;
  Pending launch = {&f, stream, size, {}};
  for (unsigned i = 0; i < takes; ++i) {
    const uint8_t *value = static_cast<const uint8_t *>(params[i]);
    launch.args.emplace_back(value, value + bytes[i]);
  }
  pending.push_back(std::move(launch));
}

void EmulatorBackend::flush() {
  if (pending.empty())
    return;
  std::vector<Pending> launches = std::move(pending);
  pending.clear();
  kvbufEmulator *emulator = launches.front().function->module->emulator;
  lib->emulatorClearBuffers(emulator);
  for (auto &[address, m] : memory)
    lib->emulatorRegisterTracked(emulator, m.name.c_str(),
                                 reinterpret_cast<void *>(address), m.bytes, 1,
                                 1, m.isHost ? nullptr : m.written.data());
  std::vector<std::vector<const void *>> values;
  std::vector<std::vector<size_t>> sizes;
  for (const Pending &p : launches) {
    auto &value = values.emplace_back();
    auto &size = sizes.emplace_back();
    for (const std::vector<uint8_t> &arg : p.args) {
      value.push_back(arg.data());
      size.push_back(arg.size());
    }
  }
  std::vector<kvbufEmulatorRequest> requests;
  for (size_t i = 0; i < launches.size(); ++i) {
    const Pending &p = launches[i];
    kvbufEmulatorRequest &r = requests.emplace_back();
    r.entry = p.function->name.c_str();
    for (unsigned d = 0; d < 3; ++d) {
      r.grid[d] = static_cast<unsigned>(p.size.grid[d]);
      r.block[d] = static_cast<unsigned>(p.size.block[d]);
      r.cluster[d] = static_cast<unsigned>(p.size.cluster[d]);
    }
    r.dynamic_shared_bytes = p.size.dynamicShared;
    r.args = values[i].data();
    r.arg_bytes = sizes[i].data();
    r.arg_count = static_cast<unsigned>(values[i].size());
  }
  // The host's own output comes first.
  std::cout.flush();
  std::fflush(stdout);
  int result = lib->emulatorLaunchTogether(
      emulator, requests.data(), static_cast<unsigned>(requests.size()),
      nullptr, nullptr);
  if (result == 4) {
    lost = true;
    std::string names;
    for (const Pending &p : launches)
      names += (names.empty() ? "kernel '" : "' or '") + p.function->name;
    warn("error: " + names + "' ended by a failed assertion");
    return;
  }
  if (result && !settings.goOn)
    end();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// No device has more.
static constexpr uint64_t kMostBytes = uint64_t(1) << 36;

void *EmulatorBackend::allocate(uint64_t bytes, Handle, bool hostShared) {
  if (bytes > kMostBytes)
    throw Error(std::to_string(bytes) + " bytes; at most " +
                std::to_string(kMostBytes) + " are possible");
  // What nothing has written is no number that anybody expects.
  uint64_t all = std::max<uint64_t>(bytes, 1);
  constexpr uint64_t align = 256;
  void *base = std::aligned_alloc(align, (all + align - 1) / align * align);
  if (!base)
    throw Error("no memory for " + std::to_string(bytes) + " bytes");
  std::memset(base, 0xA5, all);
  Memory m;
  m.bytes = all;
  m.base = base;
  m.isHost = hostShared;
  m.name = "allocation " + std::to_string(++allocations) + " (" +
           std::to_string(bytes) + " bytes)";
  if (!hostShared)
    m.written.assign(all, 0);
  memory[reinterpret_cast<uint64_t>(base)] = std::move(m);
  return base;
}

void EmulatorBackend::free(void *address, Handle) {
  flush();
  if (!address)
    return;
  auto it = memory.find(reinterpret_cast<uint64_t>(address));
  if (it == memory.end() || !it->second.base)
    throw Error("no allocation begins at this address");
  std::free(it->second.base);
  memory.erase(it);
}

/// The memory that holds some bytes, and where it begins; null: none does.
Memory *EmulatorBackend::find(const void *address, uint64_t bytes,
                              uint64_t &begin) {
  uint64_t at = reinterpret_cast<uint64_t>(address);
  auto it = memory.upper_bound(at);
  if (it == memory.begin())
    return nullptr;
  --it;
  begin = it->first;
  if (at - begin >= it->second.bytes)
    return nullptr;
  if (it->second.bytes - (at - begin) < bytes)
    throw Error("out of bounds: " + std::to_string(bytes) + " bytes at byte " +
                std::to_string(at - begin) + " of " + it->second.name);
  return &it->second;
}

void EmulatorBackend::copy(void *to, const void *from, size_t bytes, Handle) {
  flush();
  if (isLost("a copy") || !bytes)
    return;
  uint64_t begin, source;
  Memory *target = find(to, bytes, begin), *origin = find(from, bytes, source);
  if (target && !target->isHost) {
    uint8_t *flags =
        target->written.data() + (reinterpret_cast<uint64_t>(to) - begin);
    if (origin && !origin->isHost)
      std::memmove(flags,
                   origin->written.data() +
                       (reinterpret_cast<uint64_t>(from) - source),
                   bytes);
    else
      std::memset(flags, 1, bytes);
  }
  std::memmove(to, from, bytes);
}

void EmulatorBackend::fill(void *to, uint32_t value, unsigned width,
                           size_t count, Handle) {
  flush();
  if (isLost("a fill") || !count)
    return;
  uint64_t begin;
  Memory *target = find(to, count * width, begin);
  if (!target)
    throw Error("the address is not that of device memory");
  if (!target->isHost)
    std::memset(target->written.data() +
                    (reinterpret_cast<uint64_t>(to) - begin),
                1, count * width);
  for (size_t i = 0; i < count; ++i)
    std::memcpy(static_cast<char *>(to) + i * width, &value, width);
}

void EmulatorBackend::registerHost(void *address, uint64_t bytes) {
  flush();
  uint64_t begin = reinterpret_cast<uint64_t>(address), end = begin + bytes;
  if (!bytes)
    return;
  // What overlaps becomes one: a part may be registered beside the whole.
  for (auto it = memory.begin(); it != memory.end();) {
    uint64_t otherEnd = it->first + it->second.bytes;
    if (it->first >= end || otherEnd <= begin) {
      ++it;
      continue;
    }
    if (it->second.base)
      throw Error("the memory is the device's");
    begin = std::min(begin, it->first);
    end = std::max(end, otherEnd);
    it = memory.erase(it);
  }
  Memory m;
  m.bytes = end - begin;
  m.isHost = true;
  m.name = "registered memory " + std::to_string(++registrations) + " (" +
           std::to_string(m.bytes) + " bytes)";
  memory[begin] = std::move(m);
}

void EmulatorBackend::unregisterHost(void *address) {
  flush();
  auto it = memory.find(reinterpret_cast<uint64_t>(address));
  if (it == memory.end() || it->second.base)
    throw Error("no registered memory begins at this address");
  memory.erase(it);
}

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

void EmulatorBackend::encodeTensorMap(const TensorMapRequest &r, void *out) {
  static constexpr uint8_t bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  if (r.dataType < 0 || r.dataType >= 13)
    throw Error("no element type has number " + std::to_string(r.dataType));
  if (r.interleave)
    throw Error("interleaved tensors are not supported by the emulator");
  if (r.swizzle < 0 || r.swizzle > 3)
    throw Error("no swizzle has number " + std::to_string(r.swizzle));
  if (r.fill)
    throw Error("out-of-bounds elements that read as NaN are not supported by "
                "the emulator");
  if (r.rank < 1 || r.rank > rt::SoftwareTensorMap::maxRank)
    throw Error(std::to_string(r.rank) + " dimensions; 1 to 5 are possible");
  rt::SoftwareTensorMap map = {};
  map.magic = rt::SoftwareTensorMap::expectedMagic;
  map.elementBytes = bytes[r.dataType];
  map.rank = static_cast<uint8_t>(r.rank);
  static constexpr uint8_t spans[] = {0, 32, 64, 128};
  map.swizzle = spans[r.swizzle];
  map.address = reinterpret_cast<uint64_t>(r.address);
  for (uint32_t d = 0; d < r.rank; ++d) {
    if (r.elementStrides && r.elementStrides[d] != 1)
      throw Error("element strides other than 1 are not supported by the "
                  "emulator");
    map.dims[d] = r.dims[d];
    map.box[d] = r.box[d];
    if (d)
      map.strides[d - 1] = r.strides[d - 1];
  }
  if (std::string why = rt::whyInvalid(map); !why.empty())
    throw Error("the driver would make no such tensor map: " + why);
  std::memcpy(out, &map, sizeof(map));
}

std::unique_ptr<Backend> kvbuf::mgpu::makeEmulatorBackend() {
  try {
    return std::make_unique<EmulatorBackend>();
  } catch (const Error &e) {
    warn(std::string("error: no GPU, and no emulator: ") + e.what());
    std::exit(1);
  }
}
