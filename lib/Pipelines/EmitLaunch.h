//===- EmitLaunch.h - Launches in upstream dialects -------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The host's side of a kernel: what the runtime library does for an artifact
/// (lib/Runtime/Launch.cpp), as IR. Both read one description of the kernel,
/// the attributes that the manifest is written from.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_PIPELINES_EMITLAUNCH_H
#define KVBUFFER_LIB_PIPELINES_EMITLAUNCH_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace kvbuf {

/// A kernel that can be launched.
struct LaunchableKernel {
  /// Its symbol, from the module of the host's code on.
  mlir::SymbolRefAttr symbol;
  /// `kvbuffer.kernel` and `kvbuffer.tensors` (KVBufferDialect.td).
  LaunchAttr launch;
  mlir::ArrayAttr tensors;
  /// Blocks of a cluster.
  int64_t cluster = 1;
  /// Which of the problem's kernels are launched with it; none is where one of
  /// them cannot take the tensors.
  llvm::SmallVector<size_t> beside;
};

/// How launches are emitted.
struct LaunchOptions {
  /// Multiprocessors of the device, which persistent grids are made for.
  int64_t multiprocessors = 1;
  /// Whether what the kernel cannot take ends the program, with a message.
  bool checks = true;
  /// Whether tensors lie in the host's memory, which is registered for the time
  /// of the launch.
  bool registerHost = false;
  /// The stream, an `!llvm.ptr`, that everything goes to, in order and without
  /// a wait; null: launches are synchronous.
  mlir::Value stream;
};

/// Emits the launch of one problem's kernels at an insertion point.
class LaunchEmitter {
public:
  LaunchEmitter(mlir::ImplicitLocOpBuilder &b, mlir::Operation *problem,
                const LaunchOptions &options)
      : b(b), problem(problem), options(options) {}

  /// Names a tensor of the problem: a memref.
  void addTensor(llvm::StringRef name, mlir::Value memref);
  /// Names a size that no tensor tells.
  void addSize(llvm::StringRef name, mlir::Value value) { sizes[name] = value; }

  /// Launches `kernels.front()`, or, where it cannot take a tensor, the next.
  llvm::LogicalResult emit(llvm::ArrayRef<LaunchableKernel> kernels);

private:
  /// A memref, taken apart; indices.
  struct Tensor {
    mlir::Value memref;
    /// Of the first element, bytes.
    mlir::Value address;
    llvm::SmallVector<mlir::Value> sizes, strides;
    int64_t elementBytes = 1;
  };

  mlir::Value index(int64_t value);
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  mlir::Value less(mlir::Value x, mlir::Value y);
  mlir::Value equal(mlir::Value x, mlir::Value y);
  mlir::Value both(mlir::Value x, mlir::Value y);
  mlir::Value select(mlir::Value c, mlir::Value x, mlir::Value y);
  mlir::Value pointer(mlir::Value address);
  /// What an asynchronous op on the stream depends on, and its result's type;
  /// none and null without a stream.
  llvm::SmallVector<mlir::Value> dependencies();
  mlir::Type tokenType();
  /// Ends the program with a message where `condition` does not hold.
  void check(mlir::Value condition, const llvm::Twine &message);

  /// Binds the names of sizes that tensors' shapes tell.
  llvm::LogicalResult bindSizes(mlir::ArrayAttr tensors);
  mlir::FailureOr<mlir::Value> size(mlir::Attribute expression);
  /// Whether no size of a tensor is zero.
  mlir::Value isNotEmpty(const Tensor &tensor);
  /// Whether the kernel's copies can take the tensors' addresses and strides;
  /// null if they take any.
  mlir::Value emitAligned(const LaunchableKernel &kernel);
  /// Whether a stride of a tensor is `limit` at most, if it moves anything.
  mlir::Value isWithin(const Tensor &tensor, int64_t dim, int64_t limit);
  /// Whether the tensors' rows are as near to each other as the kernel wants
  /// them; null if it takes any.
  mlir::Value emitNear(const LaunchableKernel &kernel);
  /// Whether maps can describe the tensors; null if the kernel takes none.
  mlir::Value emitMappable(const LaunchableKernel &kernel);
  mlir::Value emitTensorMap(ArgumentAttr map);
  /// Memory of `bytes` for the launch, with words of 32 bits that are zero if
  /// `zeroed`: its address.
  mlir::Value emitScratch(mlir::Value bytes, bool zeroed);
  /// The tensors that the launch provides for itself.
  llvm::LogicalResult emitScratchTensors(const LaunchableKernel &kernel);
  mlir::FailureOr<mlir::Value> emitArgument(ArgumentAttr argument);
  llvm::LogicalResult emitOne(const LaunchableKernel &kernel);
  llvm::LogicalResult emitFrom(llvm::ArrayRef<LaunchableKernel> kernels);

  mlir::ImplicitLocOpBuilder &b;
  mlir::Operation *problem;
  const LaunchOptions &options;
  llvm::MapVector<mlir::StringAttr, Tensor> tensors;
  llvm::StringMap<mlir::Value> sizes;
  /// What the launch at hand allocates, and the tensors that it is.
  llvm::SmallVector<mlir::Value> scratch;
  llvm::DenseMap<mlir::StringAttr, Tensor> scratchTensors;
};

} // namespace kvbuf

#endif // KVBUFFER_LIB_PIPELINES_EMITLAUNCH_H
