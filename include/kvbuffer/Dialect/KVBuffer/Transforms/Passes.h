//===- Passes.h - Passes on the kvbuffer dialect ----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_PASSES_H
#define KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_PASSES_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Target/DefaultChips.h"
#include "mlir/Pass/Pass.h"

namespace kvbuf {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_PASSES_H
