//===- WgmmaToInlineAsm.h - wgmma on the way out of MLIR --------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_COMPILER_WGMMATOINLINEASM_H
#define KVBUFFER_LIB_COMPILER_WGMMATOINLINEASM_H

#include "mlir/IR/Operation.h"

namespace kvbuf {

/// Replaces `kvbuffer.wgmma` and `kvbuffer.wgmma_wait` below `root` by
/// `llvm.inline_asm`. `root` is at the target stage.
void lowerWgmmaToInlineAsm(mlir::Operation *root);

} // namespace kvbuf

#endif // KVBUFFER_LIB_COMPILER_WGMMATOINLINEASM_H
