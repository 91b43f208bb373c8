//===- include/kvbuffer/Runtime/Device.h - Where kernels run ----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// A device is a GPU behind its driver library, opened at run time, or the
// emulator of the compiler library, opened likewise: nothing here links
// against either. All functions throw Error, or KernelFault when a kernel
// misbehaved.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_RUNTIME_DEVICE_H
#define KVBUFFER_RUNTIME_DEVICE_H

#include "kvbuffer/Runtime/Artifact.h"
#include "kvbuffer/Runtime/Launch.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kvbuf::rt {

/// Severities of messages, as in the C API of the compiler library.
enum class Severity { Note = 0, Remark = 1, Warning = 2, Error = 3 };

/// Receives a message with its location prefix.
using MessageHandler = std::function<void(Severity, const std::string &)>;
/// Receives progress of long work.
using ProgressHandler = std::function<void(uint64_t done, uint64_t total)>;

/// How to open a device.
struct DeviceOptions {
  /// The emulator's options as a JSON object ("{}": its defaults). Beside
  /// those, "check_lengths": false launches as a GPU does, which cannot tell
  /// what lengths say, and "multiprocessors" is how many launches are told
  /// that there are.
  std::string emulator = "{}";
  /// A launch on the emulator throws Interrupted soon after it is no longer 0.
  /// Null: none does.
  std::shared_ptr<const int> interrupt;
  MessageHandler message;
  ProgressHandler progress;
};

/// A launch that is made again and again at other addresses: what they do not
/// change is done once. Belongs to a module, which must outlive it; the two are
/// used by one thread at a time.
class PreparedLaunch {
public:
  virtual ~PreparedLaunch() = default;
  /// As Module::launch, with the tensors at `addresses`, counted as
  /// LaunchArg::tensor counts them; each is aligned to
  /// TensorMapRecipe::kAlignment as the one that was bound, and null only where
  /// that was.
  virtual void launch(const uint64_t *addresses, void *stream) = 0;
};

/// Loaded kernels of one artifact. Must not outlive its device. Not safe for
/// use from several threads at once; modules of one device are, beside each
/// other.
class Module {
public:
  virtual ~Module() = default;
  /// Enqueues all kernels on `stream` (the driver's handle; null: the default
  /// stream). The emulator runs them before it returns and throws KernelFault
  /// if a detector fired. Counters are a stream's own: launches on one stream
  /// follow each other, and those on several do not meet.
  virtual void launch(const BoundLaunch &launch, void *stream = nullptr) = 0;
  /// The same launch for other addresses; `addresses` are those that it is
  /// bound to, or null, for a launch at those alone. Null on the emulator,
  /// whose launches take their memory's ranges.
  virtual std::unique_ptr<PreparedLaunch> prepare(const BoundLaunch &launch,
                                                  const uint64_t *addresses) {
    (void)launch, (void)addresses;
    return nullptr;
  }
  /// Whether the calling thread works on this module's device, so that what it
  /// allocates is there.
  virtual bool isCurrent() const { return true; }
  /// What the emulator counted in the last launch, as JSON; else empty.
  virtual std::string report() const { return ""; }
  /// One line on the loaded code ("128 registers, 0 bytes spilled"), or empty.
  virtual std::string describe() const { return ""; }
};

/// A device. Modules may be loaded and `synchronize` called from several
/// threads at once; memory is for one thread at a time.
class Device {
public:
  virtual ~Device() = default;
  /// "cuda", "hip" or "emulator".
  virtual std::string kind() const = 0;
  /// For people: "NVIDIA H200 (sm_90)".
  virtual std::string description() const = 0;
  /// What to compile for: "sm_90a"; empty if the device cannot tell, or if no
  /// target fits what it tells.
  virtual std::string chip() const = 0;
  /// What the device tells of its chip: "sm_90", "version 9.4"; empty if
  /// nothing.
  virtual std::string toldChip() const { return ""; }
  /// Multiprocessors (NVIDIA: SMs, AMD: CUs); 0 if the device cannot tell.
  virtual unsigned multiprocessors() const = 0;
  /// Device memory is host memory: host addresses can be passed as they are.
  virtual bool isHost() const = 0;
  /// Lengths and offsets are to be checked before a launch. On a GPU they lie
  /// where only the kernel reads them.
  virtual bool checksLengths() const { return false; }
  /// Empty if code for `target` can run here, else the reason why not.
  virtual std::string whyNot(const TargetSpec &target,
                             const Artifact &artifact) const = 0;

  /// At least 256-byte aligned; never null, not even for 0 bytes.
  virtual uint64_t allocate(uint64_t bytes) = 0;
  /// Gives back what `allocate` returned.
  virtual void free(uint64_t address) = 0;
  /// Copies from the host, copies to the host, sets every byte: in order with
  /// launches on the default stream. Throw Error where the driver refuses.
  virtual void upload(uint64_t to, const void *from, uint64_t bytes) = 0;
  virtual void download(void *to, uint64_t from, uint64_t bytes) = 0;
  virtual void fill(uint64_t address, uint8_t byte, uint64_t bytes) = 0;

  /// Loads the artifact's code, the section that fits this device best; throws
  /// Error if there is none, or if the driver does not accept it.
  virtual std::unique_ptr<Module> load(const Artifact &artifact,
                                       const Manifest &manifest) = 0;
  /// Waits for all work; throws KernelFault if a kernel failed.
  virtual void synchronize() = 0;
  /// Seconds that each of `runs` consecutive launches took, by the device's
  /// own events where it has them.
  virtual std::vector<double> time(Module &module, const BoundLaunch &launch,
                                   unsigned runs) = 0;
};

/// Opens "cuda", "cuda:1", "hip" or "emulator"; throws Error with the reason.
std::unique_ptr<Device> openDevice(const std::string &name,
                                   const DeviceOptions &options);

/// Opens a GPU if there is one that `artifact` fits (null: one that code can be
/// compiled for), else the emulator. `why` says what was chosen and why.
std::unique_ptr<Device> openAutoDevice(const Artifact *artifact,
                                       const Manifest *manifest,
                                       const DeviceOptions &options,
                                       std::string &why);

/// The three openers behind openDevice.
std::unique_ptr<Device> openCudaDevice(unsigned ordinal);
std::unique_ptr<Device> openHipDevice(unsigned ordinal);
std::unique_ptr<Device> openEmulatorDevice(const DeviceOptions &options);

} // namespace kvbuf::rt

#endif // KVBUFFER_RUNTIME_DEVICE_H
