//===- test/Runtime/Inputs/MockCuda.cpp - A stand-in for libcuda *- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// A libcuda.so.1 whose device memory is host memory and whose kernels do
// nothing but say, on standard error, what they were launched with. A "PTX" or
// "cubin" image is a line "entry letters" for each kernel, one letter for each
// parameter: m (tensor map), w (8 bytes), i (4 bytes), c (a counter's address);
// M and W are m and w whose addresses are told.
// "us 120" among them: launches take 120 microseconds, not 250. A kernel leaves
// its counter as one does that took tiles from it. The compute capability is
// $KVBUF_MOCK_CAPABILITY, or 90. Streams are captured into graphs, which tests
// replay step by step (mockReplay), several beside each other. Written after
// the public description of the driver API, without its header.
//
//===----------------------------------------------------------------------===//

#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#ifndef CUDA_EXPORT
#define CUDA_EXPORT extern "C" __attribute__((visibility("default")))
#endif

namespace {

enum {
  kSuccess = 0,
  kInvalidValue = 1,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNotFound = 500,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901
};

struct Function {
  std::string name, parameters;
  /// How long a launch takes.
  float microseconds = 250;
};
/// Of the last launch.
float lastMicroseconds;
using MockModule = std::map<std::string, Function>;

/// What cuTensorMapEncodeTiled was told.
struct EncodedMap {
  int type, rank, interleave, swizzle, promotion, fill;
  uint64_t dims[5], strides[4];
  uint8_t box[5], reserved[19];
  uint64_t address;
};
static_assert(sizeof(EncodedMap) == 128);

void printMap(const EncodedMap &map) {
  std::fprintf(stderr, "  map type=%d swizzle=%d promotion=%d dims=", map.type,
               map.swizzle, map.promotion);
  for (int d = 0; d < map.rank; ++d)
    std::fprintf(stderr, "%s%llu", d ? "," : "",
                 static_cast<unsigned long long>(map.dims[d]));
  std::fprintf(stderr, " strides=");
  for (int d = 0; d + 1 < map.rank; ++d)
    std::fprintf(stderr, "%s%llu", d ? "," : "",
                 static_cast<unsigned long long>(map.strides[d]));
  std::fprintf(stderr, " box=");
  for (int d = 0; d < map.rank; ++d)
    std::fprintf(stderr, "%s%u", d ? "," : "", map.box[d] + 1u);
  std::fprintf(stderr, "\n");
}

/// What a stream is captured into: steps to replay, and what it holds.
struct Graph {
  unsigned long long number;
  std::vector<std::function<void()>> steps;
  std::vector<std::pair<void (*)(void *), void *>> objects;
  bool broken = false;
};
/// The streams that are captured now.
std::map<void *, Graph *> captures;
/// The thread's stack of contexts.
thread_local std::vector<void *> contexts;
/// CUstreamCaptureMode of the thread: 0 (global) or 2 (relaxed).
thread_local int captureMode = 0;

/// Does it, or records it where the stream is captured.
int onStream(void *stream, std::function<void()> step) {
  if (auto it = captures.find(stream); it != captures.end())
    it->second->steps.push_back(std::move(step));
  else
    step();
  return kSuccess;
}
/// What may wait for the device is refused while any stream is captured.
bool refused() { return !captures.empty() && captureMode != 2; }

} // namespace

CUDA_EXPORT int cuStreamBeginCapture_v2(void *stream, int) {
  static unsigned long long number;
  captures[stream] = new Graph{++number, {}, {}, false};
  return kSuccess;
}
CUDA_EXPORT int cuStreamEndCapture(void *stream, void **graph) {
  *graph = captures.at(stream);
  captures.erase(stream);
  return static_cast<Graph *>(*graph)->broken ? kCaptureInvalidated : kSuccess;
}
CUDA_EXPORT int cuStreamGetCaptureInfo_v2(void *stream, int *status,
                                          unsigned long long *number,
                                          void **graph, const void **,
                                          size_t *) {
  auto it = captures.find(stream);
  *status = it != captures.end();
  if (*status) {
    *number = it->second->number;
    *graph = it->second;
  }
  return kSuccess;
}
/// As CUDA 13: not while the stream is captured, which ends the capture.
CUDA_EXPORT int cuStreamGetId(void *stream, unsigned long long *number) {
  if (auto it = captures.find(stream); it != captures.end()) {
    it->second->broken = true;
    return kCaptureUnsupported;
  }
  *number = reinterpret_cast<uintptr_t>(stream);
  return kSuccess;
}
CUDA_EXPORT int cuThreadExchangeStreamCaptureMode(int *mode) {
  std::swap(*mode, captureMode);
  return kSuccess;
}
CUDA_EXPORT int cuUserObjectCreate(void **object, void *pointer,
                                   void (*destroy)(void *), unsigned,
                                   unsigned) {
  *object = new std::pair<void (*)(void *), void *>(destroy, pointer);
  return kSuccess;
}
CUDA_EXPORT int cuGraphRetainUserObject(void *graph, void *object, unsigned,
                                        unsigned) {
  auto *o = static_cast<std::pair<void (*)(void *), void *> *>(object);
  static_cast<Graph *>(graph)->objects.push_back(*o);
  delete o;
  return kSuccess;
}
CUDA_EXPORT int cuGraphDestroy(void *graph) {
  auto *g = static_cast<Graph *>(graph);
  for (auto [destroy, pointer] : g->objects)
    destroy(pointer);
  delete g;
  return kSuccess;
}
/// Replays graphs at once: a step of each in turn.
CUDA_EXPORT void mockReplay(void **graphs, unsigned count) {
  bool more = true;
  for (size_t step = 0; more; ++step) {
    more = false;
    for (unsigned i = 0; i < count; ++i) {
      auto &steps = static_cast<Graph *>(graphs[i])->steps;
      if (step < steps.size()) {
        steps[step]();
        more = true;
      }
    }
  }
}

CUDA_EXPORT int cuInit(unsigned) { return kSuccess; }
CUDA_EXPORT int cuDeviceGetCount(int *count) {
  *count = 1;
  return kSuccess;
}
CUDA_EXPORT int cuDeviceGet(int *device, int) {
  *device = 0;
  return kSuccess;
}
CUDA_EXPORT int cuDeviceGetName(char *name, int bytes, int) {
  std::snprintf(name, static_cast<size_t>(bytes), "Mock GPU");
  return kSuccess;
}
CUDA_EXPORT int cuDeviceGetAttribute(int *value, int which, int) {
  const char *text = std::getenv("KVBUF_MOCK_CAPABILITY");
  int capability = text ? std::atoi(text) : 90;
  switch (which) {
  case 16: // multiprocessors
    *value = 132;
    return kSuccess;
  case 75:
    *value = capability / 10;
    return kSuccess;
  case 76:
    *value = capability % 10;
    return kSuccess;
  case 97: // shared memory of a block, opted in
    *value = 227 * 1024;
    return kSuccess;
  }
  return kInvalidValue;
}
CUDA_EXPORT int cuDevicePrimaryCtxRetain(void **context, int) {
  static int primary;
  *context = &primary;
  return kSuccess;
}
CUDA_EXPORT int cuDevicePrimaryCtxRelease_v2(int) { return kSuccess; }
CUDA_EXPORT int cuCtxPushCurrent_v2(void *context) {
  contexts.push_back(context);
  return kSuccess;
}
CUDA_EXPORT int cuCtxPopCurrent_v2(void **context) {
  *context = contexts.back();
  contexts.pop_back();
  return kSuccess;
}
CUDA_EXPORT int cuCtxGetCurrent(void **context) {
  *context = contexts.empty() ? nullptr : contexts.back();
  return kSuccess;
}
CUDA_EXPORT int cuCtxSynchronize() {
  return captures.empty() ? kSuccess : kCaptureUnsupported;
}
CUDA_EXPORT int cuGetErrorName(int, const char **name) {
  *name = "MOCK_ERROR";
  return kSuccess;
}
CUDA_EXPORT int cuGetErrorString(int, const char **text) {
  *text = "mock error";
  return kSuccess;
}

CUDA_EXPORT int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  if (refused())
    return kCaptureUnsupported;
  void *p = nullptr;
  if (posix_memalign(&p, 256, bytes))
    return kInvalidValue;
  // As on a GPU: whatever was there.
  std::memset(p, 0xCD, bytes);
  *address = reinterpret_cast<uint64_t>(p);
  return kSuccess;
}
CUDA_EXPORT int cuMemFree_v2(uint64_t address) {
  std::free(reinterpret_cast<void *>(address));
  return kSuccess;
}
CUDA_EXPORT int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) {
  std::memcpy(reinterpret_cast<void *>(to), from, bytes);
  return kSuccess;
}
CUDA_EXPORT int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
  std::memcpy(to, reinterpret_cast<const void *>(from), bytes);
  return kSuccess;
}
CUDA_EXPORT int cuMemsetD8_v2(uint64_t address, unsigned char byte,
                              size_t bytes) {
  if (!captures.empty())
    return kCaptureUnsupported;
  std::memset(reinterpret_cast<void *>(address), byte, bytes);
  return kSuccess;
}
CUDA_EXPORT int cuMemsetD32Async(uint64_t address, unsigned value, size_t count,
                                 void *stream) {
  return onStream(stream, [=] {
    std::fprintf(stderr, "set %zu words at 0x%llx to %u\n", count,
                 static_cast<unsigned long long>(address), value);
    for (size_t i = 0; i < count; ++i)
      reinterpret_cast<uint32_t *>(address)[i] = value;
  });
}

CUDA_EXPORT int cuModuleLoadDataEx(void **module, const void *image, unsigned,
                                   int *, void **) {
  auto *m = new MockModule;
  std::istringstream lines(static_cast<const char *>(image));
  std::string name, parameters;
  while (lines >> name >> parameters)
    (*m)[name] = {name, parameters};
  if (auto time = m->find("us"); time != m->end())
    for (auto &[key, function] : *m)
      function.microseconds = std::stof(time->second.parameters);
  if (m->empty()) {
    delete m;
    return kInvalidImage;
  }
  std::fprintf(stderr, "load %s\n", static_cast<const char *>(image));
  *module = m;
  return kSuccess;
}
CUDA_EXPORT int cuModuleUnload(void *module) {
  delete static_cast<MockModule *>(module);
  return kSuccess;
}
CUDA_EXPORT int cuModuleGetFunction(void **function, void *module,
                                    const char *name) {
  auto &m = *static_cast<MockModule *>(module);
  auto it = m.find(name);
  if (it == m.end())
    return kNotFound;
  *function = &it->second;
  return kSuccess;
}
CUDA_EXPORT int cuFuncGetAttribute(int *value, int attribute, void *) {
  *value = attribute == 4 ? 168 : 0; // registers
  return kSuccess;
}
CUDA_EXPORT int cuFuncSetAttribute(void *function, int attribute, int value) {
  std::fprintf(stderr, "attribute %d of %s = %d\n", attribute,
               static_cast<Function *>(function)->name.c_str(), value);
  return kSuccess;
}

CUDA_EXPORT int cuLaunchKernel(void *function, unsigned gridX, unsigned gridY,
                               unsigned gridZ, unsigned blockX, unsigned,
                               unsigned, unsigned sharedBytes, void *stream,
                               void **args, void **) {
  const Function &f = *static_cast<Function *>(function);
  lastMicroseconds = f.microseconds;
  // As the driver does, now: the values.
  std::vector<EncodedMap> maps;
  std::vector<uint64_t> words;
  for (size_t i = 0; i < f.parameters.size(); ++i) {
    if (std::tolower(f.parameters[i]) == 'm')
      std::memcpy(&maps.emplace_back(), args[i], sizeof(EncodedMap));
    else
      std::memcpy(&words.emplace_back(), args[i],
                  f.parameters[i] == 'i' ? 4 : 8);
  }
  return onStream(stream, [=] {
    std::fprintf(stderr, "launch %s grid=%u,%u,%u block=%u shared=%u\n",
                 f.name.c_str(), gridX, gridY, gridZ, blockX, sharedBytes);
    size_t map = 0, word = 0;
    for (char kind : f.parameters) {
      if (std::tolower(kind) == 'm') {
        if (kind == 'M')
          std::fprintf(stderr, "  map at 0x%llx\n",
                       static_cast<unsigned long long>(maps[map].address));
        printMap(maps[map++]);
        continue;
      }
      uint64_t value = words[word++];
      if (kind == 'W')
        std::fprintf(stderr, "  word 0x%llx\n",
                     static_cast<unsigned long long>(value));
      if (kind == 'i')
        std::fprintf(stderr, "  size %u\n", static_cast<unsigned>(value));
      if (kind == 'c') {
        auto *counter = reinterpret_cast<uint32_t *>(value);
        std::fprintf(stderr, "  counter %u at 0x%llx\n", *counter,
                     static_cast<unsigned long long>(value));
        *counter += 7;
      }
    }
  });
}

namespace {
struct LaunchAttribute {
  int id;
  char pad[4];
  union {
    int value;
    char bytes[64];
  };
};
struct LaunchConfig {
  unsigned grid[3], block[3], shared;
  void *stream;
  LaunchAttribute *attributes;
  unsigned count;
};
} // namespace

CUDA_EXPORT int cuLaunchKernelEx(const LaunchConfig *config, void *function,
                                 void **args, void **extra) {
  for (unsigned i = 0; i < config->count; ++i)
    std::fprintf(stderr, "attribute %d of a launch = %d\n",
                 config->attributes[i].id, config->attributes[i].value);
  return cuLaunchKernel(function, config->grid[0], config->grid[1],
                        config->grid[2], config->block[0], config->block[1],
                        config->block[2], config->shared, config->stream, args,
                        extra);
}

CUDA_EXPORT int cuEventCreate(void **event, unsigned) {
  static int any;
  *event = &any;
  return kSuccess;
}
CUDA_EXPORT int cuEventDestroy_v2(void *) { return kSuccess; }
CUDA_EXPORT int cuEventRecord(void *, void *) { return kSuccess; }
CUDA_EXPORT int cuEventSynchronize(void *) { return kSuccess; }
CUDA_EXPORT int cuEventElapsedTime(float *milliseconds, void *, void *) {
  *milliseconds = lastMicroseconds / 1000;
  return kSuccess;
}

#ifndef KVBUF_NO_TENSOR_MAPS
CUDA_EXPORT int cuTensorMapReplaceAddress(void *out, uint64_t address) {
  // $KVBUF_MOCK_OLD: a driver without the function, as far as it matters.
  if (std::getenv("KVBUF_MOCK_OLD") || address % 16 || !address)
    return kInvalidValue;
  std::fprintf(stderr, "move\n");
  static_cast<EncodedMap *>(out)->address = address;
  return kSuccess;
}
CUDA_EXPORT int
cuTensorMapEncodeTiled(void *out, int type, uint32_t rank, void *address,
                       const uint64_t *dims, const uint64_t *strides,
                       const uint32_t *box, const uint32_t *elementStrides,
                       int interleave, int swizzle, int promotion, int fill) {
  std::fprintf(stderr, "encode\n");
  // The driver describes a tensor for a context's device alone.
  if (contexts.empty())
    return kInvalidContext;
  bool good = reinterpret_cast<uint64_t>(out) % 64 == 0 && rank >= 1 &&
              rank <= 5 && address &&
              reinterpret_cast<uint64_t>(address) % 16 == 0 &&
              interleave == 0 && fill == 0;
  EncodedMap map = {type,
                    static_cast<int>(rank),
                    interleave,
                    swizzle,
                    promotion,
                    fill,
                    {},
                    {},
                    {},
                    {},
                    reinterpret_cast<uint64_t>(address)};
  for (uint32_t d = 0; good && d < rank; ++d) {
    good = dims[d] >= 1 && box[d] >= 1 && box[d] <= 256 &&
           elementStrides[d] == 1 &&
           (d == 0 || (strides[d - 1] % 16 == 0 && strides[d - 1] > 0 &&
                       strides[d - 1] >> 40 == 0));
    map.dims[d] = dims[d];
    map.box[d] = static_cast<uint8_t>(box[d] - 1);
    if (d > 0)
      map.strides[d - 1] = strides[d - 1];
  }
  if (!good)
    return kInvalidValue;
  std::memcpy(out, &map, sizeof(map));
  return kSuccess;
}
#endif

//===----------------------------------------------------------------------===//
// What MLIR's programs call besides (lib/MlirRuntime)
//===----------------------------------------------------------------------===//

CUDA_EXPORT int cuModuleLoadData(void **module, const void *image) {
  return refused() ? kCaptureUnsupported
                   : cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}
CUDA_EXPORT int cuCtxEnablePeerAccess(void *, unsigned) { return kSuccess; }
CUDA_EXPORT int cuStreamCreate(void **stream, unsigned) {
  *stream = new char;
  return kSuccess;
}
CUDA_EXPORT int cuStreamDestroy_v2(void *stream) {
  delete static_cast<char *>(stream);
  return kSuccess;
}
CUDA_EXPORT int cuStreamSynchronize(void *) {
  return refused() ? kCaptureUnsupported : kSuccess;
}
CUDA_EXPORT int cuStreamWaitEvent(void *, void *, unsigned) { return kSuccess; }
CUDA_EXPORT void mockSay() { std::fprintf(stderr, "captured\n"); }
/// In a capture the graph has the memory, at this address.
CUDA_EXPORT int cuMemAllocAsync(uint64_t *address, size_t bytes, void *stream) {
  *address = reinterpret_cast<uint64_t>(std::calloc(bytes, 1));
  return onStream(stream, [=] {
    std::fprintf(stderr, "allocate %zu bytes on the stream\n", bytes);
  });
}
CUDA_EXPORT int cuMemFreeAsync(uint64_t address, void *stream) {
  return onStream(stream, [=] {
    std::fprintf(stderr, "free on the stream\n");
    std::free(reinterpret_cast<void *>(address));
  });
}
CUDA_EXPORT int cuMemAllocManaged(uint64_t *address, size_t bytes, unsigned) {
  return cuMemAlloc_v2(address, bytes);
}
CUDA_EXPORT int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes,
                              void *stream) {
  return onStream(stream, [=] {
    std::memmove(reinterpret_cast<void *>(to),
                 reinterpret_cast<const void *>(from), bytes);
  });
}
CUDA_EXPORT int cuMemsetD16Async(uint64_t address, unsigned short value,
                                 size_t count, void *stream) {
  return onStream(stream, [=] {
    for (size_t i = 0; i < count; ++i)
      reinterpret_cast<uint16_t *>(address)[i] = value;
  });
}
CUDA_EXPORT int cuMemHostRegister_v2(void *, size_t, unsigned) {
  return refused() ? kCaptureUnsupported : kSuccess;
}
CUDA_EXPORT int cuMemHostUnregister(void *) {
  return refused() ? kCaptureUnsupported : kSuccess;
}
CUDA_EXPORT int cuMemHostGetDevicePointer_v2(uint64_t *there, void *address,
                                             unsigned) {
  *there = reinterpret_cast<uint64_t>(address);
  return kSuccess;
}
