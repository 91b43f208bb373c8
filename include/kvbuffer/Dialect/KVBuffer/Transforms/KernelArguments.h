//===- KernelArguments.h - What a kernel's arguments become -----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What kernels of tiles and kernels by lanes have in common where parameters
/// take the place of their arguments: names and shapes of tensors, those that a
/// cache consists of, and the description of the launch.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_KERNELARGUMENTS_H
#define KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_KERNELARGUMENTS_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <optional>

namespace kvbuf {

/// The name of an argument's tensor.
llvm::StringRef nameOf(mlir::gpu::GPUFuncOp kernel, unsigned argument);

/// Checks that an argument has a name, none of `names`; adds it.
mlir::LogicalResult checkArgumentName(mlir::gpu::GPUFuncOp kernel,
                                      unsigned argument,
                                      llvm::StringSet<> &names);

/// The sizes of a memref's dimensions, as the manifest states them: names,
/// numbers or expressions.
mlir::FailureOr<llvm::SmallVector<mlir::Attribute>>
shapeOf(mlir::gpu::GPUFuncOp kernel, unsigned argument);

/// A tensor that a launch is given.
struct KernelTensor {
  std::string name;
  mlir::Type element;
  /// The sizes of its dimensions, as types have them and as the manifest states
  /// them.
  llvm::SmallVector<int64_t> sizes;
  llvm::SmallVector<mlir::Attribute> shape;

  TensorAttr describe(TensorAccess access, bool holdsRows = false) const;
};

/// The tensors that a cache consists of.
struct KernelCache {
  KernelTensor data;
  /// Tables, lengths, offsets, as `CacheLayout` names them.
  llvm::SmallVector<KernelTensor> indices;
  std::optional<KernelTensor> scales;
};

/// Those of an argument that is a cache.
KernelCache tensorsOf(mlir::gpu::GPUFuncOp kernel, unsigned argument,
                      CacheLayout layout);

/// What a launch is made of besides the grid.
struct LaunchParts {
  /// Bytes that addresses and strides of 16-bit tensors are multiples of.
  int64_t alignment;
  llvm::ArrayRef<mlir::Attribute> args, tensors;
  llvm::ArrayRef<int64_t> block;
  int64_t dynamicSharedBytes = 0;
};

/// Describes the launch of a kernel that has parameters: `kvbuffer.kernel` and
/// `kvbuffer.tensors`, with its grid and its sizes' defaults, whose attributes
/// it loses. Sizes that types fix are numbers.
void describeLaunch(mlir::gpu::GPUFuncOp kernel, const LaunchParts &parts,
                    const llvm::StringMap<int64_t> &fixedSizes);

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_KERNELARGUMENTS_H
