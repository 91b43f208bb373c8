//===- KernelArguments.h - What a kernel's arguments become -----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What a kernel's arguments become, of tiles and by lanes: which tensors a
/// launch is given, and by which parameters the kernel knows of them. What the
/// kernel makes of the parameters is its lowering's: addresses and strides of
/// tiles (`KernelSignature`), memrefs and caches of lanes
/// (`kvbuf-expand-arguments`).
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_KERNELARGUMENTS_H
#define KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_KERNELARGUMENTS_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <functional>
#include <optional>

namespace kvbuf {

/// The name of an argument's tensor.
llvm::StringRef nameOf(mlir::gpu::GPUFuncOp kernel, unsigned argument);

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

/// What lowerings say of their kernels.
struct ParameterRules {
  /// Whether the kernel is written by lanes, which index memrefs: they need all
  /// sizes, and strides where types leave them open. Tiles need all strides,
  /// and the sizes that ops ask for.
  bool byLanes;
  /// Bytes that addresses and strides of 16-bit tensors are multiples of.
  int64_t alignment;
  /// The memory space of addresses.
  mlir::Attribute space;
  /// Of tiles: rows of a cache's tile, and the largest stride that rows of so
  /// many rows of so many bytes an element may have, 0 for any.
  int64_t cacheRows = 0;
  std::function<int64_t(int64_t rows, int64_t elementBytes)> maxRowStride = {};
};

/// A parameter that says something of a tensor.
struct TensorParameter {
  enum Role { Address, Stride, Size } role;
  /// The dimension that a stride or a size is of.
  int64_t dim;
  /// Its place among the kernel's parameters.
  unsigned number;
};

/// A tensor that an argument stands for, or that is a part of it.
struct ArgumentTensor : KernelTensor {
  /// What it is to a cache: its data, one of the indices that find its rows, or
  /// scales. Memrefs are data.
  enum Part { Data, Index, Scales } part = Data;
  TensorAccess access = TensorAccess::Read;
  /// What lanes index.
  mlir::MemRefType type;
  llvm::SmallVector<TensorParameter> parameters;
};

/// An argument, by its tensors: the data, then the indices and the scales.
struct KernelArgument {
  unsigned number;
  mlir::Value value;
  /// Null for memrefs.
  CacheLayout cache;
  llvm::SmallVector<ArgumentTensor, 0> tensors;
};

/// The parameters that take the place of a kernel's arguments, in order, with
/// the manifest's lists of them and of the tensors.
class KernelParameters {
public:
  KernelParameters(mlir::gpu::GPUFuncOp kernel, const ParameterRules &rules)
      : kernel(kernel), rules(rules) {}

  /// Checks names and types of all arguments, and notes which sizes types fix.
  mlir::LogicalResult check();
  /// Adds the parameters of an argument.
  mlir::FailureOr<KernelArgument> add(unsigned argument);
  /// Adds another parameter; its place.
  unsigned add(mlir::Type type, ArgumentAttr description);
  /// The parameter of a size of the launch, one for each name; nothing where
  /// types fix the size.
  std::optional<unsigned> addSize(mlir::StringAttr name);

  llvm::ArrayRef<mlir::Type> getTypes() const { return types; }
  llvm::ArrayRef<mlir::Attribute> getDescriptions() const {
    return descriptions;
  }
  /// The manifest's tensors; sizes that types fix are numbers.
  llvm::SmallVector<mlir::Attribute> getTensors() const;
  /// Sizes that types fix, by their names. They are numbers wherever they are
  /// asked for.
  const llvm::StringMap<int64_t> &getFixedSizes() const { return fixedSizes; }

private:
  mlir::LogicalResult checkType(unsigned argument);
  mlir::LogicalResult noteFixedSizes(unsigned argument);
  mlir::FailureOr<KernelArgument> tensorsOfArgument(unsigned argument);
  void addAddress(ArgumentTensor &tensor, std::optional<int64_t> alignment);
  void addStride(ArgumentTensor &tensor, int64_t dim, int64_t limit);
  void addStrides(const KernelArgument &argument, ArgumentTensor &tensor);
  mlir::LogicalResult addNeededSizes(const KernelArgument &argument,
                                     ArgumentTensor &data);
  void addAllSizes(ArgumentTensor &tensor);
  /// The alignment of a tensor's own, if it differs from the kernel's.
  std::optional<int64_t> alignmentOf(const KernelArgument &argument,
                                     const ArgumentTensor &tensor) const;

  mlir::gpu::GPUFuncOp kernel;
  ParameterRules rules;
  llvm::SmallVector<mlir::Type> types;
  llvm::SmallVector<mlir::Attribute> descriptions, tensors;
  llvm::StringMap<int64_t> fixedSizes;
  llvm::StringMap<unsigned> sizes;
};

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
