//===- Alternatives.h - Kernels for any tensors -----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_COMPILER_ALTERNATIVES_H
#define KVBUFFER_LIB_COMPILER_ALTERNATIVES_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace kvbuf {

/// Does the kernel take tensor maps, which not every tensor can be described
/// by?
bool takesTensorMaps(mlir::LLVM::LLVMFuncOp kernel);

/// What a kernel is called that runs instead of `kernel`, by what `kernel`
/// needs: `<entry>_without_maps` or `<entry>_unaligned`.
std::string alternativeName(mlir::LLVM::LLVMFuncOp kernel);

/// Moves everything of `other` into `code`, and makes `other`'s kernel (its
/// only one) what runs instead of `kernel` where `kernel` cannot take a tensor,
/// under its `alternativeName` (a number follows if that is taken). Returns it.
/// Both are at the target stage.
mlir::LLVM::LLVMFuncOp addAlternative(mlir::gpu::GPUModuleOp code,
                                      mlir::LLVM::LLVMFuncOp kernel,
                                      mlir::gpu::GPUModuleOp other,
                                      mlir::LLVM::LLVMFuncOp alternative);

} // namespace kvbuf

#endif // KVBUFFER_LIB_COMPILER_ALTERNATIVES_H
