//===- Passes.h - Passes that run whole pipelines ---------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_PIPELINES_PASSES_H
#define KVBUFFER_PIPELINES_PASSES_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/Pass.h"

namespace kvbuf {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "kvbuffer/Pipelines/Passes.h.inc"

} // namespace kvbuf

#endif // KVBUFFER_PIPELINES_PASSES_H
