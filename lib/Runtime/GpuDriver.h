//===- lib/Runtime/GpuDriver.h - CUDA's and HIP's driver functions *- C++
//-*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// CUDA's driver and HIP have the same functions under different names, so one
// table of pointers serves both and one device class (GpuDevice.cpp) is
// written against it. Declared here by hand: neither toolkit is needed.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_RUNTIME_GPUDRIVER_H
#define KVBUFFER_LIB_RUNTIME_GPUDRIVER_H

#include "kvbuffer/Runtime/Artifact.h"
#include "kvbuffer/Runtime/Device.h"
#include "kvbuffer/Runtime/Manifest.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace kvbuf::rt {

/// Why no GPU runs an artifact that has no code for its driver.
inline constexpr const char kNoMachineCode[] =
    "the artifact holds no machine code for it (--code=none leaves it out): "
    "the emulator alone runs this one";

/// CUlaunchAttribute.
struct GpuLaunchAttribute {
  int id;
  char pad[4];
  union {
    int value;
    char bytes[64];
  };
};
/// CUlaunchConfig.
struct GpuLaunchConfig {
  unsigned grid[3], block[3], sharedBytes;
  void *stream;
  GpuLaunchAttribute *attributes;
  unsigned count;
};

/// The driver functions in use. Handles are opaque pointers; addresses are 64
/// bits; the result is 0 for success.
struct GpuDriver {
  using Handle = void *;

  int (*init)(unsigned flags);
  int (*deviceGetCount)(int *count);
  int (*deviceGet)(int *device, int ordinal);
  int (*deviceGetName)(char *name, int bytes, int device);
  int (*memAlloc)(uint64_t *address, size_t bytes);
  int (*memFree)(uint64_t address);
  int (*copyToDevice)(uint64_t to, const void *from, size_t bytes);
  int (*copyToHost)(void *to, uint64_t from, size_t bytes);
  int (*memset8)(uint64_t address, unsigned char byte, size_t bytes);
  int (*moduleLoad)(Handle *module, const void *image, unsigned options,
                    int *names, void **values);
  int (*moduleUnload)(Handle module);
  int (*moduleGetFunction)(Handle *function, Handle module, const char *name);
  int (*funcGetAttribute)(int *value, int attribute, Handle function);
  int (*funcSetAttribute)(Handle function, int attribute, int value);
  int (*launchKernel)(Handle function, unsigned gridX, unsigned gridY,
                      unsigned gridZ, unsigned blockX, unsigned blockY,
                      unsigned blockZ, unsigned sharedBytes, Handle stream,
                      void **args, void **extra);
  int (*eventCreate)(Handle *event, unsigned flags);
  int (*eventDestroy)(Handle event);
  int (*eventRecord)(Handle event, Handle stream);
  int (*eventSynchronize)(Handle event);
  int (*eventElapsed)(float *milliseconds, Handle start, Handle end);
  int (*synchronize)();
  /// On a stream, in its order; `count` words of 32 bits.
  int (*memset32Async)(uint64_t address, unsigned value, size_t count,
                       Handle stream);

  // Null where the driver lacks them.
  /// A launch with attributes.
  int (*launchKernelEx)(const GpuLaunchConfig *config, Handle function,
                        void **args, void **extra);
  /// A number that no other stream of the process has had.
  int (*streamGetId)(Handle stream, unsigned long long *id);
  /// `status` 1: the stream is captured into `graph`, which is unfinished;
  /// `capture` tells captures from each other. The last two may be null.
  int (*streamGetCaptureInfo)(Handle stream, int *status,
                              unsigned long long *capture, Handle *graph,
                              const Handle **dependencies, size_t *count);
  /// Puts the thread's capture mode into `mode` and takes it from there.
  int (*exchangeCaptureMode)(int *mode);
  /// An object with `references`; `destroy` is called with `pointer` once the
  /// last one is gone, and may call no function of the driver's.
  int (*userObjectCreate)(Handle *object, void *pointer,
                          void (*destroy)(void *), unsigned references,
                          unsigned flags);
  int (*graphRetainUserObject)(Handle graph, Handle object, unsigned count,
                               unsigned flags);
};

/// What differs between the vendors. An instance stands for one opened device.
class GpuBackend {
public:
  virtual ~GpuBackend() = default;
  /// "cuda" or "hip".
  virtual const char *kind() const = 0;
  /// Whether the device is current on this thread.
  virtual bool isCurrent() const = 0;
  /// Makes the device current on this thread until `leave`, which is due where
  /// this returns true: elsewhere the device was current already.
  [[nodiscard]] virtual bool enter() = 0;
  virtual void leave() = 0;
  /// Text for an error code.
  virtual std::string errorText(int code) const = 0;
  /// Empty if code for the target can run here, else the reason.
  virtual std::string whyNot(const TargetSpec &target,
                             const Artifact &artifact) const = 0;
  /// Loads the artifact's code, the best section first.
  virtual GpuDriver::Handle loadModule(const Artifact &artifact) = 0;
  /// Most dynamic shared memory a block may ask for, in bytes.
  virtual unsigned maxSharedBytes() const = 0;
  /// Writes the 128 bytes of a tensor map to `out`, which is 64-byte aligned.
  virtual void encodeTensorMap(const BoundTensorMap &map, void *out) const;
  /// Makes a tensor map that was written so one of another address; false where
  /// the driver cannot, and nothing is changed.
  virtual bool moveTensorMap(uint64_t address, void *map) const {
    return false;
  }

  GpuDriver driver = {};
  /// `chip` is what the GPU is, `compileFor` what to compile for on it; either
  /// may be empty.
  std::string deviceName, chip, compileFor;
  /// 0: unknown.
  unsigned multiprocessors = 0;

  /// Throws if `code` is an error: KernelFault for those a kernel causes.
  void check(int code, const std::string &doing) const;

protected:
  /// Initialises the driver and returns the handle of device number `ordinal`,
  /// whose name becomes `deviceName`. Throws Error where there is none;
  /// `vendor` is for the message.
  int openDevice(const std::string &vendor, unsigned ordinal);
  /// "an illegal address (CUDA_ERROR_ILLEGAL_ADDRESS)" of what a driver says of
  /// an error code; either text may be null.
  static std::string describeError(int code, const char *name,
                                   const char *text);
};

/// The device class over a backend.
std::unique_ptr<Device> makeGpuDevice(std::unique_ptr<GpuBackend> backend);

/// A library opened with dlopen; `get` throws Error when a symbol is missing.
class DynamicLibrary {
public:
  /// Opens the first of the names that exists; throws Error "no `what`: ...".
  DynamicLibrary(std::initializer_list<const char *> names, const char *what);

  template <typename Function>
  void get(Function &function, const char *symbol) const {
    function = reinterpret_cast<Function>(find(symbol));
  }
  /// Likewise, but null when the symbol is missing.
  template <typename Function>
  void getIfThere(Function &function, const char *symbol) const {
    function = reinterpret_cast<Function>(look(symbol));
  }

private:
  void *find(const char *symbol) const;
  void *look(const char *symbol) const;
  void *handle = nullptr;
  std::string name;
};

} // namespace kvbuf::rt

#endif // KVBUFFER_LIB_RUNTIME_GPUDRIVER_H
