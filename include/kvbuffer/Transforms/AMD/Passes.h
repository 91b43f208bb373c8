//===- Passes.h - Passes on AMD's target stage ------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What follows `convert-kvbuffer-to-rocdl`: passes on functions of `llvm` and
/// `rocdl` ops that know how AMD's chips issue instructions.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_TRANSFORMS_AMD_PASSES_H
#define KVBUFFER_TRANSFORMS_AMD_PASSES_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Pass/Pass.h"

namespace kvbuf {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "kvbuffer/Transforms/AMD/Passes.h.inc"

} // namespace kvbuf

#endif // KVBUFFER_TRANSFORMS_AMD_PASSES_H
