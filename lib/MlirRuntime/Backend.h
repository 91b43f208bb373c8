//===- Backend.h - What runs the programs of MLIR's runners -----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Code that MLIR's `gpu-to-llvm` makes calls functions `mgpu...`. They stand on
// one of three machines: the emulator, CUDA, HIP.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_LIB_MLIRRUNTIME_BACKEND_H
#define KVBUF_LIB_MLIRRUNTIME_BACKEND_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace kvbuf::mgpu {

/// Modules, functions, streams, events: whatever the machine makes of them.
using Handle = void *;

/// The size of a launch. A cluster of zeros: as the kernel says.
struct Dimensions {
  uint64_t grid[3], block[3], cluster[3];
  uint32_t dynamicShared;
};

/// A tensor map as cuTensorMapEncodeTiled takes it: dimension 0 is the
/// contiguous one, strides in bytes from dimension 1 on; the enumerations are
/// CUDA's.
struct TensorMapRequest {
  int dataType;
  uint32_t rank;
  void *address;
  const uint64_t *dims, *strides;
  const uint32_t *box, *elementStrides;
  int interleave, swizzle, l2Promotion, fill;
};

/// A machine. Every function throws rt::Error when it cannot do what it is
/// asked to.
class Backend {
public:
  virtual ~Backend() = default;

  virtual void setDevice(int ordinal) = 0;

  /// `bytes` may be 0: not known. `optLevel` is of use to a JIT.
  virtual Handle loadModule(const void *data, size_t bytes, int optLevel) = 0;
  virtual void unloadModule(Handle module) = 0;
  virtual Handle getFunction(Handle module, const char *name) = 0;
  /// `params` points at the arguments; `count` may be 0: not known.
  virtual void launch(Handle function, const Dimensions &size, Handle stream,
                      void **params, void **extra, size_t count) = 0;

  virtual Handle createStream() = 0;
  virtual void destroyStream(Handle stream) = 0;
  virtual void synchronize(Handle stream) = 0;
  virtual void waitEvent(Handle stream, Handle event) = 0;
  virtual Handle createEvent() = 0;
  virtual void destroyEvent(Handle event) = 0;
  virtual void synchronizeEvent(Handle event) = 0;
  virtual void recordEvent(Handle event, Handle stream) = 0;

  virtual void *allocate(uint64_t bytes, Handle stream, bool hostShared) = 0;
  virtual void free(void *address, Handle stream) = 0;
  virtual void copy(void *to, const void *from, size_t bytes,
                    Handle stream) = 0;
  /// `width` is 2 or 4: bytes of an element.
  virtual void fill(void *to, uint32_t value, unsigned width, size_t count,
                    Handle stream) = 0;
  virtual void registerHost(void *address, uint64_t bytes) = 0;
  virtual void unregisterHost(void *address) = 0;
  /// Where the device sees registered memory.
  virtual void *deviceAddress(void *address) = 0;
  virtual void enablePeerAccess(int from, int to) = 0;

  /// Writes 128 bytes.
  virtual void encodeTensorMap(const TensorMapRequest &request, void *map) = 0;
};

std::unique_ptr<Backend> makeEmulatorBackend();
/// These throw rt::Error where there is no such device.
std::unique_ptr<Backend> makeCudaBackend();
std::unique_ptr<Backend> makeHipBackend();

/// Says it on stderr.
void warn(const std::string &text);

} // namespace kvbuf::mgpu

#endif // KVBUF_LIB_MLIRRUNTIME_BACKEND_H
