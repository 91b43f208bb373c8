//===- Alternatives.h - Kernels for any tensors -----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_PIPELINES_ALTERNATIVES_H
#define KVBUFFER_PIPELINES_ALTERNATIVES_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ProblemInterface.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace kvbuf {

struct TargetInfo;

/// Does the kernel take tensor maps, which not every tensor can be described
/// by?
bool takesTensorMaps(mlir::LLVM::LLVMFuncOp kernel);

/// The kernels that launches choose between besides `kernel`, at the target
/// stage, in the order in which they are tried: the problem's own, and one for
/// tensors that the last of them cannot take; and what is copied for them.
/// `problem` is what it was made of, if any, with `schedule` as the caller's
/// parameters; `runsAhead`: see VariantQuery.
KernelVariants alternativesOf(mlir::LLVM::LLVMFuncOp kernel,
                              ProblemInterface problem,
                              const TargetInfo &target,
                              llvm::StringRef schedule, bool runsAhead = false);

/// Moves everything of `other` into `code`; what has the same symbol and is the
/// same serves both, and what is not gets another symbol: `stem` is that of
/// `kernel`, which is in `other`, unless it is taken (a number follows then).
/// Both are at the target stage.
void moveKernel(mlir::gpu::GPUModuleOp code, mlir::gpu::GPUModuleOp other,
                mlir::LLVM::LLVMFuncOp kernel, llvm::StringRef stem);

/// Moves everything of `other` into `code`, and makes `other`'s kernel (its
/// only one) what runs instead of `kernel` where that cannot take a tensor or a
/// launch, under the name `stem` (a number follows if that is taken). Returns
/// it. Both are at the target stage.
mlir::LLVM::LLVMFuncOp addAlternative(mlir::gpu::GPUModuleOp code,
                                      mlir::LLVM::LLVMFuncOp kernel,
                                      mlir::gpu::GPUModuleOp other,
                                      mlir::LLVM::LLVMFuncOp alternative,
                                      llvm::StringRef stem);

/// Lets `kernel`, which has an alternative, run for launches alone that fulfil
/// a condition.
void setLaunchIf(mlir::LLVM::LLVMFuncOp kernel, mlir::Attribute condition);

/// Describes the tensors of a kernel, at the target stage, as another kernel of
/// the launch does that takes some of them, too.
void describeAlike(mlir::LLVM::LLVMFuncOp kernel, mlir::LLVM::LLVMFuncOp other);

/// Lets launches of `kernel` run another one ahead of it, of the same tensors.
void addAhead(mlir::LLVM::LLVMFuncOp kernel, llvm::StringRef other);

/// Lets launches of `kernel` run another one, too, right after it and ahead of
/// those that were added before, where all can take the tensors; else none.
void addBeside(mlir::LLVM::LLVMFuncOp kernel, llvm::StringRef other);

} // namespace kvbuf

#endif // KVBUFFER_PIPELINES_ALTERNATIVES_H
