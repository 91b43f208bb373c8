//===- TargetModule.h - From kernels to sections ----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernels of a module at the target stage, and what an artifact holds of
// them: bytecode for the emulator, and a chip's assembly and machine code.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_COMPILER_TARGETMODULE_H
#define KVBUFFER_LIB_COMPILER_TARGETMODULE_H

#include "kvbuffer/Compiler/Compiler.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace kvbuf {

/// A module at the target stage, taken apart.
struct TargetModule {
  mlir::gpu::GPUModuleOp code;
  llvm::SmallVector<mlir::LLVM::LLVMFuncOp> kernels;
};

/// Tells who watches, if anybody does, that the step `name` begins; an empty
/// name ends the last one.
void step(const CompileOptions &options, llvm::StringRef name);

/// Finds the kernels of a module at the target stage. An error stands at the
/// module, or at a kernel that would not be compiled.
llvm::FailureOr<TargetModule> findKernels(mlir::ModuleOp module);

/// The kernels at the target stage as bytecode, for the emulator. Whatever else
/// the module holds stays out: the emulator knows few dialects.
std::string writeBytecodeString(mlir::ModuleOp module, TargetModule &found);

/// Appends the binaries for `target` to `artifact`, and adds what their makers
/// say of registers, spills and shared memory to `resources`, one a kernel.
llvm::LogicalResult addCode(Artifact &artifact, TargetModule &found,
                            const TargetInfo &target,
                            const CompileOptions &options,
                            llvm::MutableArrayRef<KernelResources> resources);

} // namespace kvbuf

#endif // KVBUFFER_LIB_COMPILER_TARGETMODULE_H
