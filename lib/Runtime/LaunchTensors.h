//===- lib/Runtime/LaunchTensors.h - Tensors of a launch --------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_RUNTIME_LAUNCHTENSORS_H
#define KVBUFFER_LIB_RUNTIME_LAUNCHTENSORS_H

#include "kvbuffer/Runtime/Launch.h"
#include <map>
#include <string>
#include <vector>

namespace kvbuf::rt {

/// A tensor with its strides, and which it is of those given.
struct BoundTensor : TensorArg {
  int number = 0;
  /// Which of the launch's scratch memory it is instead; -1: none.
  int scratch = -1;
};
using BoundTensors = std::map<std::string, BoundTensor>;

/// "tensor 'q' starts at address 0x7f001002".
std::string startsAt(const TensorArg &arg);

/// The tensors with their strides, by name, checked against what the manifest
/// says of each; sets the ranges of memory that the launch may touch. Throws an
/// Error that names the tensor.
BoundTensors bindTensors(const Manifest &manifest,
                         const std::vector<TensorArg> &tensors,
                         BoundLaunch &launch);

} // namespace kvbuf::rt

#endif // KVBUFFER_LIB_RUNTIME_LAUNCHTENSORS_H
