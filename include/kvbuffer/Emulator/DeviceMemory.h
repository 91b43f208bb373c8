//===- DeviceMemory.h - A launch's memory, as devices lay it out *- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Allocates tensors for the emulator as a device would: each begins at a
/// multiple of 256 bytes, so that what an access costs does not follow from
/// the host's heap, and lies apart from others, so that a wild access does not
/// meet one by chance.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_EMULATOR_DEVICEMEMORY_H
#define KVBUFFER_EMULATOR_DEVICEMEMORY_H

#include <cstddef>
#include <new>
#include <vector>

namespace kvbuf::emu {

/// An allocator of the standard library.
template <typename T> struct DeviceAllocator {
  using value_type = T;

  /// Bytes that CUDA and HIP align allocations to, and that lie between two.
  static constexpr std::align_val_t kAlignment{256};
  static constexpr size_t kApart = 16384;

  DeviceAllocator() = default;
  template <typename U> DeviceAllocator(const DeviceAllocator<U> &) {}

  T *allocate(size_t count) {
    return static_cast<T *>(
        ::operator new(count * sizeof(T) + kApart, kAlignment));
  }
  void deallocate(T *memory, size_t) { ::operator delete(memory, kAlignment); }

  bool operator==(const DeviceAllocator &) const = default;
};

/// Bytes of a tensor.
using DeviceBytes = std::vector<char, DeviceAllocator<char>>;

} // namespace kvbuf::emu

#endif // KVBUFFER_EMULATOR_DEVICEMEMORY_H
