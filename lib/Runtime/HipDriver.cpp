//===- lib/Runtime/HipDriver.cpp - AMD GPUs ---------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuDriver.h"
#include "kvbuffer/Runtime/Error.h"

using namespace kvbuf;
using namespace kvbuf::rt;

namespace {

/// hipDeviceAttribute_t, as HIP 5 and later number it.
constexpr int kMultiprocessorCount = 63;

class HipBackend : public GpuBackend {
public:
  explicit HipBackend(unsigned ordinal)
      : lib({"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6",
             "libamdhip64.so.5"},
            "AMD GPU"),
        ordinal(static_cast<int>(ordinal)) {
    load();
    int device = openDevice("AMD", ordinal), units = 0;
    if (deviceGetAttribute(&units, kMultiprocessorCount, device) == 0)
      multiprocessors = static_cast<unsigned>(units);
  }

  const char *kind() const override { return "hip"; }
  void enter() override {
    getDevice(&previous);
    check(setDevice(ordinal), "selecting the GPU");
  }
  void leave() override { setDevice(previous); }

  std::string errorText(int code) const override {
    return describeError(code, getErrorName(code), getErrorString(code));
  }

  std::string whyNot(const TargetSpec &target,
                     const Artifact &artifact) const override {
    // The chip's name hides in a struct whose layout changes with the version;
    // a code object for another chip is refused when it is loaded.
    if (target.vendor != "amd")
      return "the artifact is for " + target.chip + ", this GPU is " +
             deviceName;
    return artifact.find("hsaco") ? "" : "the artifact has no 'hsaco' section";
  }

  GpuDriver::Handle loadModule(const Artifact &artifact) override {
    GpuDriver::Handle module = nullptr;
    check(moduleLoadData(&module, artifact.find("hsaco")->data()),
          "loading the artifact's code object");
    return module;
  }

  // Chips with more refuse or accept at launch; the compiler knows better.
  unsigned maxSharedBytes() const override { return 160 * 1024; }

private:
  void load() {
    lib.get(driver.init, "hipInit");
    lib.get(driver.deviceGetCount, "hipGetDeviceCount");
    lib.get(driver.deviceGet, "hipDeviceGet");
    lib.get(driver.deviceGetName, "hipDeviceGetName");
    lib.get(deviceGetAttribute, "hipDeviceGetAttribute");
    lib.get(getDevice, "hipGetDevice");
    lib.get(setDevice, "hipSetDevice");
    lib.get(getErrorName, "hipGetErrorName");
    lib.get(getErrorString, "hipGetErrorString");
    lib.get(moduleLoadData, "hipModuleLoadData");
    lib.get(driver.memAlloc, "hipMalloc");
    lib.get(driver.memFree, "hipFree");
    lib.get(driver.copyToDevice, "hipMemcpyHtoD");
    lib.get(driver.copyToHost, "hipMemcpyDtoH");
    lib.get(driver.memset8, "hipMemsetD8");
    lib.get(driver.moduleUnload, "hipModuleUnload");
    lib.get(driver.moduleGetFunction, "hipModuleGetFunction");
    lib.get(driver.funcGetAttribute, "hipFuncGetAttribute");
    lib.get(driver.launchKernel, "hipModuleLaunchKernel");
    lib.get(driver.eventCreate, "hipEventCreateWithFlags");
    lib.get(driver.eventDestroy, "hipEventDestroy");
    lib.get(driver.eventRecord, "hipEventRecord");
    lib.get(driver.eventSynchronize, "hipEventSynchronize");
    lib.get(driver.eventElapsed, "hipEventElapsedTime");
    lib.get(driver.synchronize, "hipDeviceSynchronize");
    lib.get(driver.memset32Async, "hipMemsetD32Async");
    lib.getIfThere(driver.streamGetId, "hipStreamGetId");
    lib.getIfThere(driver.streamGetCaptureInfo, "hipStreamGetCaptureInfo_v2");
    lib.getIfThere(driver.exchangeCaptureMode,
                   "hipThreadExchangeStreamCaptureMode");
    lib.getIfThere(driver.userObjectCreate, "hipUserObjectCreate");
    lib.getIfThere(driver.graphRetainUserObject, "hipGraphRetainUserObject");
    // LDS beyond the default needs no request on AMD.
    driver.funcSetAttribute = [](GpuDriver::Handle, int, int) { return 0; };
  }

  DynamicLibrary lib;
  int (*deviceGetAttribute)(int *, int, int) = nullptr;
  int (*getDevice)(int *) = nullptr;
  int (*setDevice)(int) = nullptr;
  const char *(*getErrorName)(int) = nullptr;
  const char *(*getErrorString)(int) = nullptr;
  int (*moduleLoadData)(GpuDriver::Handle *, const void *) = nullptr;

  int ordinal = 0, previous = 0;
};

} // namespace

std::unique_ptr<Device> rt::openHipDevice(unsigned ordinal) {
  return makeGpuDevice(std::make_unique<HipBackend>(ordinal));
}
