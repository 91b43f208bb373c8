//===- ExternalTools.h - ptxas and ld.lld -----------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The programs that make binaries: NVIDIA's assembler, where there is one, and
/// LLVM's linker.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_COMPILER_EXTERNALTOOLS_H
#define KVBUFFER_COMPILER_EXTERNALTOOLS_H

#include "kvbuffer/Compiler/Compiler.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/StringMap.h"
#include <string>

namespace kvbuf {

/// The path of ptxas: `wanted` if it is not empty, else see
/// CompileOptions::ptxas. Empty if there is none.
std::string findPtxas(llvm::StringRef wanted);
/// Whether `wanted`, or else the environment, says that there is to be none.
bool isPtxasOff(llvm::StringRef wanted);
/// The path of LLVM's linker: `wanted` if it is not empty, else see
/// CompileOptions::linker. Empty if there is none.
std::string findLinker(llvm::StringRef wanted);

/// Disassembles a cubin by nvdisasm or cuobjdump: the one that $KVBUF_NVDISASM
/// names ("none": neither), else of the PATH, $CUDA_HOME/bin or
/// /usr/local/cuda/bin. Returns why there is no text, or nothing.
std::string disassembleCubin(llvm::StringRef cubin, std::string &text);

/// What a binary's maker says of its kernels, by their names.
using ResourceReport = llvm::StringMap<KernelResources>;

/// Reads the messages of `ptxas -v`. Lines with a number C75xx, which say that
/// the assembler gave up speed, are added to `warnings` without their prefix.
ResourceReport parsePtxasLog(llvm::StringRef log,
                             llvm::SmallVectorImpl<std::string> &warnings);

/// Assembles PTX for `chip`. Emits a diagnostic at `loc` on failure, and one
/// warning for each loss of speed that ptxas reports.
llvm::FailureOr<std::string>
assemblePtx(llvm::StringRef ptx, llvm::StringRef chip, llvm::StringRef ptxas,
            mlir::Location loc, ResourceReport &report);

/// Links an AMD object file to a code object (HSACO). Emits a diagnostic at
/// `loc` on failure.
llvm::FailureOr<std::string>
linkHsaco(llvm::StringRef object, llvm::StringRef linker, mlir::Location loc);

/// Reads what a code object's metadata says of its kernels; empty if it has
/// none.
ResourceReport readHsacoReport(llvm::StringRef hsaco);

} // namespace kvbuf

#endif // KVBUFFER_COMPILER_EXTERNALTOOLS_H
