//===- Manifest.h - Writes an artifact's manifest ---------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_COMPILER_MANIFEST_H
#define KVBUFFER_LIB_COMPILER_MANIFEST_H

#include "kvbuffer/Compiler/Compiler.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace kvbuf {

/// What the attributes of a kernel at the target stage say of its resources:
/// threads of a block and dynamic shared memory.
KernelResources resourcesOf(mlir::LLVM::LLVMFuncOp kernel);

/// The manifest of an artifact of one function with these kernels, in launch
/// order; their `kvbuffer.kernel`, `kvbuffer.tensors` and `kvbuffer.problem`
/// attributes become JSON as they stand, so that kvbuffer/Runtime/Manifest.h
/// describes both forms. Without `machineCode` the manifest says so.
/// A kernel that another names in `instead` shares the
/// other's problem. `resources` has one entry a kernel. Emits a diagnostic if
/// an attribute is missing or has no JSON form.
llvm::FailureOr<std::string>
writeManifest(llvm::ArrayRef<mlir::LLVM::LLVMFuncOp> kernels,
              llvm::ArrayRef<KernelResources> resources,
              const TargetInfo &target, llvm::StringRef name, bool machineCode);

} // namespace kvbuf

#endif // KVBUFFER_LIB_COMPILER_MANIFEST_H
