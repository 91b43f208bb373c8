//===- CopyKernels.h - Kernels that copy tensors of launches ----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_PIPELINES_COPYKERNELS_H
#define KVBUFFER_PIPELINES_COPYKERNELS_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace kvbuf {

/// The tensors of `kernel`, at the target stage, that kernels for copies can
/// copy, of those that `names` lists: of 16-bit elements, in two or three
/// dimensions and a fixed number of heads and columns.
llvm::SmallVector<TensorAttr> copiedTensors(mlir::LLVM::LLVMFuncOp kernel,
                                            llvm::ArrayRef<std::string> names);

/// A module at the thread stage with a kernel for each tensor that copies it
/// into memory of the launch, contiguous, where it is read, and out of it where
/// it is written: `<stem>_copies_<tensor>`, in the tensors' order.
mlir::OwningOpRef<mlir::ModuleOp>
buildCopyKernels(mlir::Location loc, llvm::StringRef stem,
                 llvm::ArrayRef<TensorAttr> tensors);

/// Says of such a kernel, at the target stage, what it copies, and describes
/// the tensor as all other kernels of the launch do.
void markCopyKernel(mlir::LLVM::LLVMFuncOp copy, TensorAttr tensor);

/// Lets launches of `kernel` that fulfil a condition copy tensors that it
/// cannot take.
void setCopiesIf(mlir::LLVM::LLVMFuncOp kernel, mlir::Attribute condition);

} // namespace kvbuf

#endif // KVBUFFER_PIPELINES_COPYKERNELS_H
