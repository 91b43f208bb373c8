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
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include <optional>

namespace kvbuf {

struct TargetInfo;

/// Does the kernel take tensor maps, which not every tensor can be described
/// by?
bool takesTensorMaps(mlir::LLVM::LLVMFuncOp kernel);

/// A kernel that a problem gets besides its first one, and how it is lowered.
struct KernelAlternative {
  /// Its name, by what it is for or what the kernel before it needs:
  /// `<entry>_of_few_rows`, `<entry>_of_fewer_rows`,
  /// `<entry>_without_clusters`,
  /// `<entry>_of_small_blocks`, `<entry>_without_maps` or `<entry>_unaligned`.
  std::string name;
  /// If set: parameters of the schedule instead of the caller's, and the
  /// problem's own schedule does not count.
  std::optional<std::string> schedule;
  /// Bytes that addresses and strides of 16-bit tensors are multiples of.
  int64_t alignment = 16;
  /// The condition (the field `launch_if`) on launches of the kernel before it;
  /// null where what that one can take decides alone.
  mlir::Attribute launchIf;
  /// If set: launches run it beside the first kernel, too, and this is what it
  /// takes there (`kSharedRowsAttr`).
  mlir::Attribute sharedRows;
  /// For a remark: "which runs ...".
  std::string when;
};

/// The kernels that launches choose between besides `kernel`, at the target
/// stage, in the order in which they are tried. `problem` is what it was made
/// of (null where that is no attention), with `schedule` as the caller's
/// parameters.
llvm::SmallVector<KernelAlternative>
alternativesOf(mlir::LLVM::LLVMFuncOp kernel, AttentionOp problem,
               const TargetInfo &target, llvm::StringRef schedule);

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

/// Lets launches of `kernel` run another one, too, right after it and ahead of
/// those that were added before, where all can take the tensors; else none.
void addBeside(mlir::LLVM::LLVMFuncOp kernel, llvm::StringRef other);

/// Makes `problem`, which is to become an alternative, what that computes.
void prepareAlternative(AttentionOp problem,
                        const KernelAlternative &alternative);

} // namespace kvbuf

#endif // KVBUFFER_PIPELINES_ALTERNATIVES_H
