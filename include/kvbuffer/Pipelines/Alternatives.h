//===- Alternatives.h - Kernels for any tensors -----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_PIPELINES_ALTERNATIVES_H
#define KVBUFFER_PIPELINES_ALTERNATIVES_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace kvbuf {

struct TargetInfo;

/// Does the kernel take tensor maps, which not every tensor can be described
/// by?
bool takesTensorMaps(mlir::LLVM::LLVMFuncOp kernel);

/// What a kernel is called that runs instead of `kernel` for tensors which that
/// cannot take, by what it needs: `<entry>_without_maps` or
/// `<entry>_unaligned`.
std::string alternativeName(mlir::LLVM::LLVMFuncOp kernel);

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

/// The condition on a launch (the field `launch_if` of its kernel, a size
/// expression that is to be more than 0) under which clusters of two blocks,
/// each with `BM` of the query rows called `rows`, gain on a chip; `masked`
/// where a mask hides keys that other rows see.
mlir::Attribute launchIfClustersGain(mlir::MLIRContext *context,
                                     const TargetInfo &target,
                                     llvm::StringRef rows, int64_t BM,
                                     bool masked);

/// Lets `kernel`, which has an alternative, run for launches alone that fulfil
/// a condition.
void setLaunchIf(mlir::LLVM::LLVMFuncOp kernel, mlir::Attribute condition);

} // namespace kvbuf

#endif // KVBUFFER_PIPELINES_ALTERNATIVES_H
