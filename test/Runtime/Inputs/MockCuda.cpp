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
// parameter: m (tensor map), w (8 bytes), i (4 bytes), c (a counter's address).
// "us 120" among them: launches take 120 microseconds, not 250. The compute
// capability is $KVBUF_MOCK_CAPABILITY, or 90. Written after the public
// description of the driver API, without its header.
//
//===----------------------------------------------------------------------===//

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <string>

#define CUDA_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

enum { kSuccess = 0, kInvalidValue = 1, kInvalidImage = 200, kNotFound = 500 };

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
  uint8_t box[5], reserved[27];
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

} // namespace

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
CUDA_EXPORT int cuCtxPushCurrent_v2(void *) { return kSuccess; }
CUDA_EXPORT int cuCtxPopCurrent_v2(void **context) {
  *context = nullptr;
  return kSuccess;
}
CUDA_EXPORT int cuCtxSynchronize() { return kSuccess; }
CUDA_EXPORT int cuGetErrorName(int, const char **name) {
  *name = "MOCK_ERROR";
  return kSuccess;
}
CUDA_EXPORT int cuGetErrorString(int, const char **text) {
  *text = "mock error";
  return kSuccess;
}

CUDA_EXPORT int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
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
  std::memset(reinterpret_cast<void *>(address), byte, bytes);
  return kSuccess;
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
                               unsigned, unsigned sharedBytes, void *,
                               void **args, void **) {
  const Function &f = *static_cast<Function *>(function);
  lastMicroseconds = f.microseconds;
  std::fprintf(stderr, "launch %s grid=%u,%u,%u block=%u shared=%u\n",
               f.name.c_str(), gridX, gridY, gridZ, blockX, sharedBytes);
  for (size_t i = 0; i < f.parameters.size(); ++i) {
    uint64_t word = 0;
    if (f.parameters[i] == 'm') {
      EncodedMap map;
      std::memcpy(&map, args[i], sizeof(map));
      printMap(map);
      continue;
    }
    std::memcpy(&word, args[i], f.parameters[i] == 'i' ? 4 : 8);
    if (f.parameters[i] == 'i')
      std::fprintf(stderr, "  size %u\n", static_cast<unsigned>(word));
    if (f.parameters[i] == 'c')
      std::fprintf(stderr, "  counter %u at 0x%llx\n",
                   *reinterpret_cast<const uint32_t *>(word),
                   static_cast<unsigned long long>(word));
  }
  return kSuccess;
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
CUDA_EXPORT int
cuTensorMapEncodeTiled(void *out, int type, uint32_t rank, void *address,
                       const uint64_t *dims, const uint64_t *strides,
                       const uint32_t *box, const uint32_t *elementStrides,
                       int interleave, int swizzle, int promotion, int fill) {
  std::fprintf(stderr, "encode\n");
  bool good = reinterpret_cast<uint64_t>(out) % 64 == 0 && rank >= 1 &&
              rank <= 5 && address &&
              reinterpret_cast<uint64_t>(address) % 16 == 0 &&
              interleave == 0 && fill == 0;
  EncodedMap map = {type,       static_cast<int>(rank),
                    interleave, swizzle,
                    promotion,  fill,
                    {},         {},
                    {},         {}};
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
