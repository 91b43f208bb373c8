//===- test/Runtime/Inputs/EmulatedHip.cpp - HIP, emulated ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// A libamdhip64.so whose devices are the emulator: what a program does through
// HIP's driver functions is done, at once and checked. Code objects are looked
// up, not decoded (RecordingCompiler.cpp): the emulator runs the module that
// they were made of. $KVBUF_STANDIN_CHIP is what the devices are (gfx942),
// $KVBUF_STANDIN_DEVICES how many there are (1). Each has memory of its own:
// kernels reach that of their device alone, and bytes that nobody wrote count
// as such. Streams are captured into graphs. A launch that the emulator finds a
// fault in prints it and fails, as do all calls of that device after it. Times
// mean nothing: a launch takes 50 milliseconds. Written after the public
// description of HIP, without its header.
//
//===----------------------------------------------------------------------===//

#include "kvbuffer-c/Emulator.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#define HIP_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

enum {
  kSuccess = 0,
  kInvalidValue = 1,
  kNoBinary = 209,
  kNotFound = 500,
  kLaunchFailure = 719,
  kCaptureUnsupported = 900
};

unsigned number(const char *variable, unsigned otherwise) {
  const char *text = std::getenv(variable);
  return text ? static_cast<unsigned>(std::atoi(text)) : otherwise;
}
std::string chipName() {
  const char *text = std::getenv("KVBUF_STANDIN_CHIP");
  return text ? text : "gfx942";
}

/// The functions of the compiler's library that are called here.
struct Library {
  Library() {
    const char *folder = std::getenv("KVBUF_LIB_DIR");
    void *handle = dlopen(
        (std::string(folder ? folder : ".") + "/libKVBufferC.so").c_str(),
        RTLD_NOW);
    auto get = [&](auto &function, const char *name) {
      void *symbol = handle ? dlsym(handle, name) : nullptr;
      if (!symbol) {
        std::fprintf(stderr, "stand-in: no %s in $KVBUF_LIB_DIR\n", name);
        std::abort();
      }
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
    };
    get(module, "standinModule");
    get(create, "kvbufEmulatorCreate");
    get(track, "kvbufEmulatorRegisterTracked");
    get(clear, "kvbufEmulatorClearBuffers");
    get(parameters, "kvbufEmulatorParameters");
    get(launch, "kvbufEmulatorLaunch");
    get(destroy, "kvbufEmulatorDestroy");
  }
  int (*module)(const void *, const char **, size_t *, const char **);
  decltype(&kvbufEmulatorCreate) create;
  decltype(&kvbufEmulatorRegisterTracked) track;
  decltype(&kvbufEmulatorClearBuffers) clear;
  decltype(&kvbufEmulatorParameters) parameters;
  decltype(&kvbufEmulatorLaunch) launch;
  decltype(&kvbufEmulatorDestroy) destroy;
};
const Library &library() {
  static const Library lib;
  return lib;
}

struct Block {
  int device;
  size_t bytes;
  /// Which bytes were written.
  std::vector<uint8_t> written;
};
std::map<uint64_t, Block> blocks;
/// Devices whose last launch failed.
std::map<int, bool> failed;
thread_local int current = 0;
/// So far, of all devices.
unsigned long long launches = 0;

/// The block that holds these bytes, and its address; null if none does.
std::pair<const uint64_t, Block> *blockOf(uint64_t address, size_t bytes) {
  auto it = blocks.upper_bound(address);
  if (it == blocks.begin() ||
      address + bytes > std::prev(it)->first + std::prev(it)->second.bytes)
    return nullptr;
  return &*std::prev(it);
}
int write(uint64_t to, size_t bytes, const std::function<void(char *)> &how) {
  auto *block = blockOf(to, bytes);
  if (!block)
    return kInvalidValue;
  how(reinterpret_cast<char *>(to));
  std::memset(block->second.written.data() + (to - block->first), 1, bytes);
  return kSuccess;
}

struct Module {
  kvbufEmulator *emulator;
  int device;
  /// Functions that were asked for; addresses stay.
  std::map<std::string, std::pair<Module *, std::string>> functions;
};

struct Graph {
  unsigned long long number;
  std::vector<std::function<int()>> steps;
  std::vector<std::pair<void (*)(void *), void *>> objects;
};
std::map<void *, Graph *> captures;
thread_local int captureMode = 0;

/// What may wait for the device is refused while any stream is captured.
bool refused() { return !captures.empty() && captureMode != 2; }
/// Does it, or records it where the stream is captured.
int onStream(void *stream, std::function<int()> step) {
  auto it = captures.find(stream);
  if (it == captures.end())
    return step();
  it->second->steps.push_back(std::move(step));
  return kSuccess;
}

void say(int, const char *text, void *) {
  std::fprintf(stderr, "stand-in: %s\n", text);
}

} // namespace

HIP_EXPORT int hipInit(unsigned) { return kSuccess; }
HIP_EXPORT int hipGetDeviceCount(int *count) {
  *count = static_cast<int>(number("KVBUF_STANDIN_DEVICES", 1));
  return kSuccess;
}
HIP_EXPORT int hipDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return kSuccess;
}
HIP_EXPORT int hipDeviceGetName(char *name, int bytes, int) {
  std::snprintf(name, static_cast<size_t>(bytes), "Emulated Instinct");
  return kSuccess;
}
HIP_EXPORT int hipDeviceGetAttribute(int *value, int which, int) {
  std::string chip = chipName();
  if (which == 23 || which == 61) // gfx942: 9.4
    *value = chip[which == 23 ? 3 : 4] - '0';
  else if (which == 63)
    *value = 4;
  else
    return kInvalidValue;
  return kSuccess;
}
HIP_EXPORT int hipGetDevice(int *device) {
  *device = current;
  return kSuccess;
}
HIP_EXPORT int hipSetDevice(int device) {
  current = device;
  return kSuccess;
}
HIP_EXPORT const char *hipGetErrorName(int code) {
  return code == kLaunchFailure ? "hipErrorLaunchFailure"
         : code == kNoBinary    ? "hipErrorNoBinaryForGpu"
                                : "hipErrorInvalidValue";
}
HIP_EXPORT const char *hipGetErrorString(int code) {
  return code == kLaunchFailure ? "unspecified launch failure"
         : code == kNoBinary    ? "no kernel image is available for execution "
                                  "on the device"
                                : "invalid argument";
}

HIP_EXPORT int hipMalloc(uint64_t *address, size_t bytes) {
  if (refused())
    return kCaptureUnsupported;
  void *p = nullptr;
  if (posix_memalign(&p, 256, bytes ? bytes : 1))
    return kInvalidValue;
  std::memset(p, 0xCD, bytes);
  *address = reinterpret_cast<uint64_t>(p);
  blocks[*address] = {current, bytes, std::vector<uint8_t>(bytes)};
  return kSuccess;
}
HIP_EXPORT int hipFree(uint64_t address) {
  if (address && !blocks.erase(address))
    return kInvalidValue;
  std::free(reinterpret_cast<void *>(address));
  return kSuccess;
}
HIP_EXPORT int hipMemcpyHtoD(uint64_t to, const void *from, size_t bytes) {
  return write(to, bytes, [&](char *p) { std::memcpy(p, from, bytes); });
}
HIP_EXPORT int hipMemcpyDtoH(void *to, uint64_t from, size_t bytes) {
  if (!blockOf(from, bytes))
    return kInvalidValue;
  std::memcpy(to, reinterpret_cast<const void *>(from), bytes);
  return failed[current] ? kLaunchFailure : kSuccess;
}
HIP_EXPORT int hipMemsetD8(uint64_t to, unsigned char byte, size_t bytes) {
  return refused()
             ? kCaptureUnsupported
             : write(to, bytes, [&](char *p) { std::memset(p, byte, bytes); });
}
HIP_EXPORT int hipMemsetD32Async(uint64_t to, unsigned value, size_t count,
                                 void *stream) {
  return onStream(stream, [=] {
    return write(to, count * 4, [&](char *p) {
      for (size_t i = 0; i < count; ++i)
        std::memcpy(p + 4 * i, &value, 4);
    });
  });
}

HIP_EXPORT int hipModuleLoadData(void **module, const void *image) {
  const char *mlir = nullptr, *chip = nullptr;
  size_t bytes = 0;
  if (!library().module(image, &mlir, &bytes, &chip)) {
    std::fprintf(stderr, "stand-in: nobody recorded this code object\n");
    return kNoBinary;
  }
  if (chip != chipName())
    return kNoBinary;
  kvbufEmulator *emulator =
      library().create(mlir, bytes, "code object", nullptr, say, nullptr);
  if (!emulator)
    return kNoBinary;
  *module = new Module{emulator, current, {}};
  return kSuccess;
}
HIP_EXPORT int hipModuleUnload(void *module) {
  auto *m = static_cast<Module *>(module);
  library().destroy(m->emulator);
  delete m;
  return kSuccess;
}
HIP_EXPORT int hipModuleGetFunction(void **function, void *module,
                                    const char *name) {
  auto *m = static_cast<Module *>(module);
  const uint32_t *bytes = nullptr;
  unsigned count = 0;
  if (library().parameters(m->emulator, name, &bytes, &count) != 0)
    return kNotFound;
  *function = &(m->functions[name] = {m, name});
  return kSuccess;
}
HIP_EXPORT int hipFuncGetAttribute(int *value, int, void *) {
  *value = 0;
  return kSuccess;
}

HIP_EXPORT int hipModuleLaunchKernel(void *function, unsigned gridX,
                                     unsigned gridY, unsigned gridZ,
                                     unsigned blockX, unsigned blockY,
                                     unsigned blockZ, unsigned sharedBytes,
                                     void *stream, void **args, void **) {
  auto *f = static_cast<std::pair<Module *, std::string> *>(function);
  if (f->first->device != current)
    return kInvalidValue;
  const uint32_t *sizes = nullptr;
  unsigned count = 0;
  library().parameters(f->first->emulator, f->second.c_str(), &sizes, &count);
  // As the driver does, now: the values.
  std::vector<std::string> values;
  std::vector<size_t> bytes(sizes, sizes + count);
  for (unsigned i = 0; i < count; ++i)
    values.emplace_back(static_cast<const char *>(args[i]), sizes[i]);
  return onStream(stream, [=, device = current] {
    ++launches;
    const Library &lib = library();
    kvbufEmulator *emulator = f->first->emulator;
    lib.clear(emulator);
    for (auto &[address, block] : blocks)
      if (block.device == device && block.bytes)
        lib.track(emulator, "device memory", reinterpret_cast<void *>(address),
                  block.bytes, 1, 1, block.written.data());
    std::vector<const void *> pointers;
    for (const std::string &value : values)
      pointers.push_back(value.data());
    unsigned grid[] = {gridX, gridY, gridZ}, group[] = {blockX, blockY, blockZ};
    if (lib.launch(emulator, f->second.c_str(), grid, group, sharedBytes,
                   pointers.data(), bytes.data(), count, nullptr, nullptr))
      failed[device] = true;
    return failed[device] ? kLaunchFailure : kSuccess;
  });
}
HIP_EXPORT int hipDeviceSynchronize() {
  return refused()         ? kCaptureUnsupported
         : failed[current] ? kLaunchFailure
                           : kSuccess;
}

/// An event is the number of launches before it.
HIP_EXPORT int hipEventCreateWithFlags(void **event, unsigned) {
  *event = new unsigned long long(launches);
  return kSuccess;
}
HIP_EXPORT int hipEventDestroy(void *event) {
  delete static_cast<unsigned long long *>(event);
  return kSuccess;
}
HIP_EXPORT int hipEventRecord(void *event, void *) {
  *static_cast<unsigned long long *>(event) = launches;
  return kSuccess;
}
HIP_EXPORT int hipEventSynchronize(void *) { return hipDeviceSynchronize(); }
HIP_EXPORT int hipEventElapsedTime(float *milliseconds, void *start,
                                   void *end) {
  *milliseconds =
      50.0f * static_cast<float>(*static_cast<unsigned long long *>(end) -
                                 *static_cast<unsigned long long *>(start));
  return kSuccess;
}

//===----------------------------------------------------------------------===//
// Streams and graphs
//===----------------------------------------------------------------------===//

HIP_EXPORT int hipStreamBeginCapture(void *stream, int) {
  static unsigned long long last;
  captures[stream] = new Graph{++last, {}, {}};
  return kSuccess;
}
HIP_EXPORT int hipStreamEndCapture(void *stream, void **graph) {
  *graph = captures.at(stream);
  captures.erase(stream);
  return kSuccess;
}
HIP_EXPORT int hipStreamGetCaptureInfo_v2(void *stream, int *status,
                                          unsigned long long *capture,
                                          void **graph, const void **,
                                          size_t *) {
  auto it = captures.find(stream);
  *status = it != captures.end();
  if (*status) {
    *capture = it->second->number;
    if (graph)
      *graph = it->second;
  }
  return kSuccess;
}
HIP_EXPORT int hipThreadExchangeStreamCaptureMode(int *mode) {
  std::swap(*mode, captureMode);
  return kSuccess;
}
HIP_EXPORT int hipUserObjectCreate(void **object, void *pointer,
                                   void (*destroy)(void *), unsigned,
                                   unsigned) {
  *object = new std::pair<void (*)(void *), void *>(destroy, pointer);
  return kSuccess;
}
HIP_EXPORT int hipGraphRetainUserObject(void *graph, void *object, unsigned,
                                        unsigned) {
  std::unique_ptr<std::pair<void (*)(void *), void *>> o(
      static_cast<std::pair<void (*)(void *), void *> *>(object));
  static_cast<Graph *>(graph)->objects.push_back(*o);
  return kSuccess;
}
/// A graph is its own executable one.
HIP_EXPORT int hipGraphLaunch(void *graph, void *) {
  int status = kSuccess;
  for (const auto &step : static_cast<Graph *>(graph)->steps)
    if (status == kSuccess)
      status = step();
  return status;
}
HIP_EXPORT int hipGraphDestroy(void *graph) {
  auto *g = static_cast<Graph *>(graph);
  for (auto [destroy, pointer] : g->objects)
    destroy(pointer);
  delete g;
  return kSuccess;
}
