//===- Codegen.h - From the target stage to code ----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The translation out of MLIR, and LLVM's backends.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_COMPILER_CODEGEN_H
#define KVBUFFER_COMPILER_CODEGEN_H

#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/LogicalResult.h"
#include <memory>
#include <string>

namespace kvbuf {

/// What a backend writes.
enum class CodeKind { Assembly, Object };

/// Translates a `gpu.module` at the target stage into LLVM IR for `target`;
/// null, with a diagnostic, if that fails. The `gpu.module` is not changed.
/// Functions get the target's attributes unless they say otherwise; among them
/// that fp32 denormals are flushed: the exponentials of the softmax then need
/// no range scaling.
std::unique_ptr<llvm::Module> translateToLLVM(mlir::gpu::GPUModuleOp module,
                                              const TargetInfo &target,
                                              llvm::LLVMContext &context);

/// Runs the backend: PTX or AMD assembly as text, or an AMD object file. A
/// fatal error of the backend becomes a diagnostic at `loc`.
llvm::FailureOr<std::string> generateCode(llvm::Module &module,
                                          const TargetInfo &target,
                                          CodeKind kind, mlir::Location loc);

} // namespace kvbuf

#endif // KVBUFFER_COMPILER_CODEGEN_H
