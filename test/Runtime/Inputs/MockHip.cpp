//===- test/Runtime/Inputs/MockHip.cpp - A stand-in for HIP -----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// A libamdhip64.so over MockCuda.cpp: HIP's functions are the driver's under
// other names. A code object is a text as there. $KVBUF_MOCK_CAPABILITY is the
// version of the instruction set times ten, 94 by default; 0: attributes are
// not to be had. One image is refused as HIP refuses those of another chip:
// "refused". Written after the public description of HIP, without its header.
//
//===----------------------------------------------------------------------===//

#define CUDA_EXPORT extern "C" __attribute__((visibility("hidden")))
#include "MockCuda.cpp"

#define HIP_EXPORT extern "C" __attribute__((visibility("default")))

HIP_EXPORT int hipInit(unsigned flags) { return cuInit(flags); }
HIP_EXPORT int hipGetDeviceCount(int *count) { return cuDeviceGetCount(count); }
HIP_EXPORT int hipDeviceGet(int *device, int ordinal) {
  return cuDeviceGet(device, ordinal);
}
HIP_EXPORT int hipDeviceGetName(char *name, int bytes, int) {
  std::snprintf(name, static_cast<size_t>(bytes), "Mock Instinct");
  return kSuccess;
}
HIP_EXPORT int hipDeviceGetAttribute(int *value, int which, int) {
  const char *text = std::getenv("KVBUF_MOCK_CAPABILITY");
  int version = text ? std::atoi(text) : 94;
  switch (version ? which : 0) {
  case 23:
    *value = version / 10;
    return kSuccess;
  case 61:
    *value = version % 10;
    return kSuccess;
  case 63: // multiprocessors
    *value = 304;
    return kSuccess;
  }
  return kInvalidValue;
}
HIP_EXPORT int hipGetDevice(int *device) { return cuDeviceGet(device, 0); }
HIP_EXPORT int hipSetDevice(int) { return kSuccess; }
HIP_EXPORT const char *hipGetErrorName(int) { return "hipMockError"; }
HIP_EXPORT const char *hipGetErrorString(int) { return "mock error"; }

HIP_EXPORT int hipMalloc(uint64_t *address, size_t bytes) {
  return cuMemAlloc_v2(address, bytes);
}
HIP_EXPORT int hipFree(uint64_t address) { return cuMemFree_v2(address); }
HIP_EXPORT int hipMemcpyHtoD(uint64_t to, const void *from, size_t bytes) {
  return cuMemcpyHtoD_v2(to, from, bytes);
}
HIP_EXPORT int hipMemcpyDtoH(void *to, uint64_t from, size_t bytes) {
  return cuMemcpyDtoH_v2(to, from, bytes);
}
HIP_EXPORT int hipMemsetD8(uint64_t address, unsigned char byte, size_t bytes) {
  return cuMemsetD8_v2(address, byte, bytes);
}
HIP_EXPORT int hipMemsetD32Async(uint64_t address, unsigned value, size_t count,
                                 void *stream) {
  return cuMemsetD32Async(address, value, count, stream);
}

HIP_EXPORT int hipModuleLoadData(void **module, const void *image) {
  if (std::strncmp(static_cast<const char *>(image), "refused", 7) == 0)
    return kInvalidImage;
  return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}
HIP_EXPORT int hipModuleUnload(void *module) { return cuModuleUnload(module); }
HIP_EXPORT int hipModuleGetFunction(void **function, void *module,
                                    const char *name) {
  return cuModuleGetFunction(function, module, name);
}
HIP_EXPORT int hipFuncGetAttribute(int *value, int attribute, void *function) {
  return cuFuncGetAttribute(value, attribute, function);
}
HIP_EXPORT int hipModuleLaunchKernel(void *function, unsigned gridX,
                                     unsigned gridY, unsigned gridZ,
                                     unsigned blockX, unsigned blockY,
                                     unsigned blockZ, unsigned sharedBytes,
                                     void *stream, void **args, void **extra) {
  return cuLaunchKernel(function, gridX, gridY, gridZ, blockX, blockY, blockZ,
                        sharedBytes, stream, args, extra);
}

HIP_EXPORT int hipEventCreateWithFlags(void **event, unsigned flags) {
  return cuEventCreate(event, flags);
}
HIP_EXPORT int hipEventDestroy(void *event) { return cuEventDestroy_v2(event); }
HIP_EXPORT int hipEventRecord(void *event, void *stream) {
  return cuEventRecord(event, stream);
}
HIP_EXPORT int hipEventSynchronize(void *event) {
  return cuEventSynchronize(event);
}
HIP_EXPORT int hipEventElapsedTime(float *milliseconds, void *start,
                                   void *end) {
  return cuEventElapsedTime(milliseconds, start, end);
}
HIP_EXPORT int hipDeviceSynchronize() { return cuCtxSynchronize(); }
