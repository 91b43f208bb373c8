//===- include/kvbuffer/Runtime/Launch.h - Binding tensors to kernels *- C++
//-*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// From tensors and sizes to the argument words of each kernel launch. This is
// the only place that knows the rules tensors have to keep.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_RUNTIME_LAUNCH_H
#define KVBUFFER_RUNTIME_LAUNCH_H

#include "kvbuffer/Runtime/Manifest.h"

#include <string>
#include <vector>

namespace kvbuf::rt {

/// A tensor as the user has it.
struct TensorArg {
  std::string name;
  /// Address of the first element in the device's memory; may be 0 if there is
  /// no element.
  uint64_t address = 0;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  /// In elements, one per dimension; empty: row-major contiguous.
  std::vector<int64_t> strides;
};

/// A range of memory that a launch may touch. GPUs ignore it; the emulator
/// reports every access outside of all ranges.
struct BufferUse {
  std::string name;
  uint64_t address = 0;
  uint64_t bytes = 0;
  bool readable = false, writable = false, initialized = false;
};

/// One kernel with its grid and argument words.
struct KernelLaunch {
  std::string entry;
  std::array<unsigned, 3> grid = {1, 1, 1}, block = {1, 1, 1};
  unsigned dynamicSharedBytes = 0;
  /// Argument i is the first `argBytes[i]` bytes of `args[i]` (little endian).
  std::vector<uint64_t> args;
  std::vector<size_t> argBytes;
};

/// All launches of one run of an artifact, in order. A kernel whose grid is
/// empty is left out.
struct BoundLaunch {
  std::vector<KernelLaunch> kernels;
  std::vector<BufferUse> buffers;
};

/// Row-major strides of a shape, in elements.
std::vector<int64_t> contiguousStrides(const std::vector<int64_t> &shape);

/// Bytes from the first to past the last element; 0 if there is none.
uint64_t spanBytes(DType dtype, const std::vector<int64_t> &shape,
                   const std::vector<int64_t> &strides);

/// Completes `sizes` from the tensors' shapes. Throws Error that names the
/// tensor whose element type or shape does not fit the manifest.
void inferSizes(const Manifest &manifest, const std::vector<TensorArg> &tensors,
                Sizes &sizes);

/// Completes `sizes` from the tensors' shapes, checks every tensor (name,
/// element type, shape, innermost dimension contiguous, other strides what the
/// kernel takes, 16-byte alignment) and packs the arguments. Throws Error that
/// names the tensor and says what was expected.
BoundLaunch bindLaunch(const Manifest &manifest,
                       const std::vector<TensorArg> &tensors, Sizes &sizes);

} // namespace kvbuf::rt

#endif // KVBUFFER_RUNTIME_LAUNCH_H
