//===- FinishKernel.h - What LLVM is told of an AMD kernel ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOROCDL_FINISHKERNEL_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOROCDL_FINISHKERNEL_H

#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace kvbuf {

/// The address space of LDS in LLVM's AMDGPU backend.
inline constexpr unsigned kLds = 3;
/// The symbol of a module's LDS.
inline constexpr llvm::StringLiteral kLdsName = "kvbuf_lds";

/// Ends the conversion of a kernel: which of its memory operations are apart,
/// which branches are rare, how many waves share a SIMD, and its phase.
void finishKernel(mlir::LLVM::LLVMFuncOp func, const TargetInfo &target);

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOROCDL_FINISHKERNEL_H
