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

/// hipDeviceAttribute_t, as HIP 5 and later number it. The compute capability
/// is the version of the instruction set: 9.4 is gfx942.
enum : int {
  kComputeCapabilityMajor = 23,
  kComputeCapabilityMinor = 61,
  kMultiprocessorCount = 63
};

/// What the compiler makes code for, by its version.
struct Chip {
  int major, minor;
  const char *name;
};
constexpr Chip kChips[] = {
    {9, 4, "gfx942"}, {9, 5, "gfx950"}, {12, 5, "gfx1250"}};

/// The device that was current on this thread before `enter`.
thread_local int previous = 0;

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
    int major = 0, minor = 0;
    if (deviceGetAttribute(&major, kComputeCapabilityMajor, device) != 0 ||
        deviceGetAttribute(&minor, kComputeCapabilityMinor, device) != 0)
      return;
    chip = "version " + std::to_string(major) + "." + std::to_string(minor);
    for (const Chip &known : kChips)
      if (known.major == major && known.minor == minor)
        chip = compileFor = known.name;
  }

  const char *kind() const override { return "hip"; }
  bool isCurrent() const override {
    int now = 0;
    return getDevice(&now) == 0 && now == ordinal;
  }
  bool enter() override {
    int now = 0;
    if (getDevice(&now) == 0 && now == static_cast<int>(ordinal))
      return false;
    previous = now;
    check(setDevice(ordinal), "selecting the GPU");
    return true;
  }
  void leave() override { setDevice(previous); }

  std::string errorText(int code) const override {
    return describeError(code, getErrorName(code), getErrorString(code));
  }

  std::string whyNot(const TargetSpec &target,
                     const Artifact &artifact) const override {
    // A driver that does not tell the version refuses code for another chip
    // when it is loaded.
    if (target.vendor != "amd" || (!chip.empty() && target.chip != compileFor))
      return "the artifact is for " + target.chip + ", this GPU is " +
             deviceName + (chip.empty() ? "" : " (" + chip + ")");
    return artifact.find("hsaco") ? "" : kNoMachineCode;
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

  int ordinal = 0;
};

} // namespace

std::unique_ptr<Device> rt::openHipDevice(unsigned ordinal) {
  return makeGpuDevice(std::make_unique<HipBackend>(ordinal));
}
