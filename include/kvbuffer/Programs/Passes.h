//===- Passes.h - Passes on problems of one kind ----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_PROGRAMS_PASSES_H
#define KVBUFFER_PROGRAMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace kvbuf {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "kvbuffer/Programs/Passes.h.inc"

} // namespace kvbuf

#endif // KVBUFFER_PROGRAMS_PASSES_H
