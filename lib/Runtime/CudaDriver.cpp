//===- lib/Runtime/CudaDriver.cpp - NVIDIA GPUs -----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuDriver.h"
#include "kvbuffer/Runtime/Error.h"

#include <algorithm>
#include <cstdlib>

using namespace kvbuf;
using namespace kvbuf::rt;

namespace {

/// CUdevice_attribute and CUjit_option values in use.
enum : int {
  kMultiprocessorCount = 16,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedPerBlockOptin = 97,
  kJitErrorLogBuffer = 5,
  kJitErrorLogBytes = 6
};

/// What the compiler makes code for, newest first. PTX of an older generation
/// runs on every newer one, so a GPU that is missing here is served too.
constexpr int kTargets[] = {90, 89, 87, 86, 80};

/// A chip's compute capability from its name: "sm_90a" is 90 with the suffix
/// 'a' (runs on 9.0 alone), "sm_100f" has 'f' (its family alone).
struct SmName {
  int number = 0;
  char suffix = 0;
};

bool parseSm(const std::string &chip, SmName &sm) {
  if (chip.rfind("sm_", 0) != 0)
    return false;
  char *end = nullptr;
  sm.number = static_cast<int>(std::strtol(chip.c_str() + 3, &end, 10));
  sm.suffix = *end;
  return sm.number > 0 && (*end == 0 || end[1] == 0);
}

/// Enumerators of cuTensorMapEncodeTiled's arguments.
constexpr int kInterleaveNone = 0, kFillZero = 0;

/// CUtensorMapDataType.
int tensorMapType(DType type) {
  switch (type) {
  case DType::U8:
  case DType::F8E4M3FN:
  case DType::F8E5M2:
  case DType::F8E4M3FNUZ:
  case DType::F8E5M2FNUZ:
    return 0;
  case DType::I32:
    return 3;
  case DType::I64:
    return 5;
  case DType::F16:
    return 6;
  case DType::F32:
    return 7;
  case DType::BF16:
    return 9;
  }
  return 0;
}

/// CUtensorMapSwizzle of a span in bytes.
int tensorMapSwizzle(unsigned bytes) {
  return bytes == 128 ? 3 : bytes == 64 ? 2 : bytes == 32 ? 1 : 0;
}

/// CUtensorMapL2promotion of a size in bytes.
int tensorMapPromotion(unsigned bytes) {
  return bytes == 256 ? 3 : bytes == 128 ? 2 : bytes == 64 ? 1 : 0;
}

class CudaBackend : public GpuBackend {
public:
  explicit CudaBackend(unsigned ordinal)
      : lib({"libcuda.so.1", "libcuda.so"}, "NVIDIA GPU") {
    load();
    device = openDevice("NVIDIA", ordinal);
    int major = attribute(kComputeCapabilityMajor);
    capability = major * 10 + attribute(kComputeCapabilityMinor);
    sharedBytes = static_cast<unsigned>(attribute(kMaxSharedPerBlockOptin));
    multiprocessors = static_cast<unsigned>(attribute(kMultiprocessorCount));
    chip = "sm_" + std::to_string(capability);
    for (int target : kTargets)
      if (target <= capability) {
        compileFor = "sm_" + std::to_string(target);
        break;
      }
    // What belongs to this generation alone: warps that multiply in groups.
    if (capability == 90)
      compileFor += 'a';
    // The primary context is the one that the CUDA runtime, and with it
    // PyTorch, uses: memory and streams can be shared with those.
    check(primaryRetain(&context, device), "opening a context on the GPU");
  }
  ~CudaBackend() override {
    if (context)
      primaryRelease(device);
  }

  const char *kind() const override { return "cuda"; }
  bool isCurrent() const override {
    GpuDriver::Handle now = nullptr;
    return ctxGetCurrent && ctxGetCurrent(&now) == 0 && now == context;
  }
  bool enter() override {
    if (isCurrent())
      return false;
    check(ctxPush(context), "entering the context");
    return true;
  }
  void leave() override {
    GpuDriver::Handle old = nullptr;
    ctxPop(&old);
  }

  std::string errorText(int code) const override {
    const char *name = nullptr, *text = nullptr;
    getErrorName(code, &name);
    getErrorString(code, &text);
    return describeError(code, name, text);
  }

  std::string whyNot(const TargetSpec &target,
                     const Artifact &artifact) const override {
    std::string made = "the artifact is for " + target.chip + ", this GPU is " +
                       deviceName + " (" + chip + ")";
    SmName sm;
    if (target.vendor != "nvidia" || !parseSm(target.chip, sm))
      return made;
    if (!artifact.find("ptx") && !artifact.find("cubin"))
      return kNoMachineCode;
    bool fits = sm.suffix == 'a'   ? capability == sm.number
                : sm.suffix == 'f' ? capability / 10 == sm.number / 10 &&
                                         capability >= sm.number
                                   : capability >= sm.number;
    return fits ? "" : made;
  }

  GpuDriver::Handle loadModule(const Artifact &artifact) override {
    GpuDriver::Handle module = nullptr;
    const std::string *ptx = artifact.find("ptx");
    if (const std::string *cubin = artifact.find("cubin")) {
      int code = driver.moduleLoad(&module, cubin->data(), 0, nullptr, nullptr);
      if (code == 0)
        return module;
      // A cubin runs on its own generation alone; PTX on later ones too.
      if (!ptx)
        check(code, "loading the artifact's cubin");
    }
    char log[8192] = {};
    int names[] = {kJitErrorLogBuffer, kJitErrorLogBytes};
    void *values[] = {log, reinterpret_cast<void *>(sizeof(log) - 1)};
    int code = driver.moduleLoad(&module, ptx->c_str(), 2, names, values);
    if (code != 0)
      throw Error("the driver does not accept the artifact's PTX: " +
                  errorText(code) + (*log ? "\n" + std::string(log) : ""));
    return module;
  }

  unsigned maxSharedBytes() const override { return sharedBytes; }

  void encodeTensorMap(const BoundTensorMap &bound, void *out) const override {
    const SoftwareTensorMap &map = bound.map;
    if (!encodeTiled)
      throw Error("the kernel takes tensor maps, and this driver lacks the "
                  "function cuTensorMapEncodeTiled; CUDA 12 brought it");
    // cuuint64_t and cuuint32_t are these types; unit element strides.
    uint64_t dims[SoftwareTensorMap::maxRank];
    uint64_t strides[SoftwareTensorMap::maxRank - 1];
    uint32_t box[SoftwareTensorMap::maxRank];
    constexpr uint32_t ones[SoftwareTensorMap::maxRank] = {1, 1, 1, 1, 1};
    std::copy(std::begin(map.dims), std::end(map.dims), dims);
    std::copy(std::begin(map.strides), std::end(map.strides), strides);
    std::copy(std::begin(map.box), std::end(map.box), box);
    check(encodeTiled(out, tensorMapType(bound.dtype), map.rank, map.address,
                      dims, strides, box, ones, kInterleaveNone,
                      tensorMapSwizzle(map.swizzle),
                      tensorMapPromotion(bound.l2Promotion), kFillZero),
          "describing tensor '" + bound.tensor + "' to the copy engine");
  }

  bool moveTensorMap(uint64_t address, void *map) const override {
    return replaceAddress && replaceAddress(map, address) == 0;
  }

private:
  int attribute(int which) {
    int value = 0;
    check(deviceGetAttribute(&value, which, device), "opening the GPU");
    return value;
  }

  void load() {
    lib.get(driver.init, "cuInit");
    lib.get(driver.deviceGetCount, "cuDeviceGetCount");
    lib.get(driver.deviceGet, "cuDeviceGet");
    lib.get(driver.deviceGetName, "cuDeviceGetName");
    lib.get(deviceGetAttribute, "cuDeviceGetAttribute");
    lib.get(primaryRetain, "cuDevicePrimaryCtxRetain");
    lib.get(primaryRelease, "cuDevicePrimaryCtxRelease_v2");
    lib.get(ctxPush, "cuCtxPushCurrent_v2");
    lib.get(ctxPop, "cuCtxPopCurrent_v2");
    lib.getIfThere(ctxGetCurrent, "cuCtxGetCurrent");
    lib.get(getErrorName, "cuGetErrorName");
    lib.get(getErrorString, "cuGetErrorString");
    lib.get(driver.memAlloc, "cuMemAlloc_v2");
    lib.get(driver.memFree, "cuMemFree_v2");
    lib.get(driver.copyToDevice, "cuMemcpyHtoD_v2");
    lib.get(driver.copyToHost, "cuMemcpyDtoH_v2");
    lib.get(driver.memset8, "cuMemsetD8_v2");
    lib.get(driver.moduleLoad, "cuModuleLoadDataEx");
    lib.get(driver.moduleUnload, "cuModuleUnload");
    lib.get(driver.moduleGetFunction, "cuModuleGetFunction");
    lib.get(driver.funcGetAttribute, "cuFuncGetAttribute");
    lib.get(driver.funcSetAttribute, "cuFuncSetAttribute");
    lib.get(driver.launchKernel, "cuLaunchKernel");
    lib.get(driver.eventCreate, "cuEventCreate");
    lib.get(driver.eventDestroy, "cuEventDestroy_v2");
    lib.get(driver.eventRecord, "cuEventRecord");
    lib.get(driver.eventSynchronize, "cuEventSynchronize");
    lib.get(driver.eventElapsed, "cuEventElapsedTime");
    lib.get(driver.synchronize, "cuCtxSynchronize");
    lib.get(driver.memset32Async, "cuMemsetD32Async");
    lib.getIfThere(driver.launchKernelEx, "cuLaunchKernelEx");
    lib.getIfThere(driver.streamGetId, "cuStreamGetId");
    lib.getIfThere(driver.streamGetCaptureInfo, "cuStreamGetCaptureInfo_v2");
    lib.getIfThere(driver.exchangeCaptureMode,
                   "cuThreadExchangeStreamCaptureMode");
    lib.getIfThere(driver.userObjectCreate, "cuUserObjectCreate");
    lib.getIfThere(driver.graphRetainUserObject, "cuGraphRetainUserObject");
    lib.getIfThere(encodeTiled, "cuTensorMapEncodeTiled");
    lib.getIfThere(replaceAddress, "cuTensorMapReplaceAddress");
  }

  DynamicLibrary lib;
  int (*deviceGetAttribute)(int *, int, int) = nullptr;
  int (*primaryRetain)(GpuDriver::Handle *, int) = nullptr;
  int (*primaryRelease)(int) = nullptr;
  int (*ctxPush)(GpuDriver::Handle) = nullptr;
  int (*ctxPop)(GpuDriver::Handle *) = nullptr;
  int (*ctxGetCurrent)(GpuDriver::Handle *) = nullptr;
  int (*getErrorName)(int, const char **) = nullptr;
  int (*getErrorString)(int, const char **) = nullptr;
  // Null before CUDA 12.
  int (*replaceAddress)(void *map, uint64_t address) = nullptr;
  int (*encodeTiled)(void *map, int dataType, uint32_t rank, uint64_t address,
                     const uint64_t *dims, const uint64_t *strides,
                     const uint32_t *box, const uint32_t *elementStrides,
                     int interleave, int swizzle, int l2Promotion,
                     int fill) = nullptr;

  int device = 0, capability = 0;
  unsigned sharedBytes = 0;
  GpuDriver::Handle context = nullptr;
};

} // namespace

std::unique_ptr<Device> rt::openCudaDevice(unsigned ordinal) {
  return makeGpuDevice(std::make_unique<CudaBackend>(ordinal));
}
