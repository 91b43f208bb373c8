//===- KernelSignature.h - What a kernel is launched with -------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_KERNELSIGNATURE_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_KERNELSIGNATURE_H

#include "Lanes.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/KernelArguments.h"
#include "llvm/ADT/StringMap.h"
#include <functional>
#include <optional>

namespace kvbuf {

/// The parameters that a kernel's arguments become, what the program knows by
/// them (tensors, sizes, tensor maps, a counter), and their lists in the
/// manifest.
class KernelSignature {
public:
  explicit KernelSignature(Lanes &lanes);

  /// Makes the function that takes the kernel's place, with its parameters, and
  /// sets the insertion point into it; errors at the kernel and its ops.
  mlir::LogicalResult expand();
  /// Writes the manifest and erases the kernel.
  void finish();

  /// What is known of a tensor or a cache: an argument, or one that the program
  /// makes of arguments, whose op says it here.
  TensorArg &tensor(mlir::Value value) { return tensors[value]; }
  /// Null for what is neither.
  const TensorArg *findTensor(mlir::Value value) const;
  /// Element offset of the matrix or element of a tensor at `indices`.
  mlir::Value offsetOf(mlir::Value tensor, mlir::OperandRange indices);

  /// A size of the launch, by its name in the manifest, as an index: a
  /// parameter, or the number that the types fix.
  mlir::Value launchSize(llvm::StringRef name);
  /// The size that an op asks for of its cache, as an index: its room, or the
  /// rows of ragged queries.
  mlir::Value roomOf(mlir::Value cache, mlir::Operation *op);
  /// The value of an expression over sizes, as an index.
  mlir::Value launchValue(mlir::Attribute expression) const;
  /// The parameter of a tensor map.
  mlir::Value tensorMap(const TensorMapRequest &request) const;
  /// The counter that the kernel takes tiles from, if it does.
  mlir::Value tileCounter() const { return counter; }

private:
  /// Whether every size that the program asks for has a name.
  mlir::LogicalResult checkSizes();
  /// After the tensors: what copy engines, shared counters and ops need.
  void collectNeeds();
  void needSize(llvm::StringRef name);
  void describeNeeds();

  /// Makes the function, without a body but for its end.
  void createFunction(llvm::ArrayRef<int32_t> block);
  /// Puts the parameters' values where the program finds them; those that
  /// describeNeeds adds begin at `next`.
  void bindParameters(unsigned next);
  /// The same of a tensor of an argument, the cache's index `index` if it is
  /// one.
  void bindTensor(TensorArg &known, const ArgumentTensor &tensor, size_t index);

  /// A tensor map's entry among the manifest's arguments.
  ArgumentAttr describeTensorMap(const TensorMapRequest &request);

  Lanes &lanes;
  mlir::gpu::GPUFuncOp lowered;
  /// The parameters of arguments, then what else the program needs.
  KernelParameters params;
  llvm::SmallVector<KernelArgument, 0> arguments;
  /// Sizes of the launch that ops ask for by name, and whether one takes tiles
  /// from a counter.
  llvm::SmallVector<llvm::StringRef> launchNames;
  bool counts = false;
  llvm::DenseMap<mlir::Value, TensorArg> tensors;
  /// Sizes of the launch, values of expressions over them, and tensor maps
  /// among the parameters.
  llvm::StringMap<mlir::Value> launchSizes;
  llvm::SmallVector<std::pair<mlir::Attribute, mlir::Value>> launchValues;
  llvm::SmallVector<std::pair<TensorMapRequest, mlir::Value>> tensorMaps;
  mlir::Value counter;
};

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_KERNELSIGNATURE_H
