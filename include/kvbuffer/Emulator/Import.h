//===- Import.h - Kernels from elsewhere ------------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What other compilers leave in a `gpu.object` becomes a module that the
// emulator executes: LLVM bitcode through MLIR's import of LLVM IR, with the
// operations of NVVM in place of intrinsics and inline assembly.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_EMULATOR_IMPORT_H
#define KVBUFFER_EMULATOR_IMPORT_H

#include "kvbuffer/Emulator/Emulator.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/OwningOpRef.h"

namespace kvbuf::emu {

/// Marks a module of another compiler: where its variables lie in shared memory
/// is not for it to say.
inline constexpr llvm::StringLiteral kForeignAttr = "emulator.foreign";

/// The dialects of modules that the emulator executes, and the import of LLVM
/// IR into them.
void registerImport(mlir::DialectRegistry &registry);

/// What kind of code some bytes are: "LLVM bitcode", "PTX", "an ELF file" (a
/// cubin or a code object), "a fat binary", "MLIR bytecode", or "text".
llvm::StringRef describeCode(llvm::StringRef bytes);

/// Reads LLVM bitcode (or LLVM IR as text), and marks its kernels. Errors go to
/// the context's diagnostics. The module is not verified.
mlir::OwningOpRef<mlir::ModuleOp> importLLVM(mlir::MLIRContext &context,
                                             llvm::StringRef bytes,
                                             llvm::StringRef name);

/// Replaces calls of NVVM's intrinsics, and PTX in inline assembly, by the
/// operations of the NVVM dialect that stand for them, so that messages have
/// their names. What has no operation stays as it is.
void raiseIntrinsics(mlir::ModuleOp module);

} // namespace kvbuf::emu

#endif // KVBUFFER_EMULATOR_IMPORT_H
