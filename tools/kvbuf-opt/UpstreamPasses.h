//===- UpstreamPasses.h - MLIR's passes that kvbuf-opt offers ---*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_TOOLS_KVBUF_OPT_UPSTREAMPASSES_H
#define KVBUFFER_TOOLS_KVBUF_OPT_UPSTREAMPASSES_H

#include "mlir/IR/DialectRegistry.h"

namespace kvbuf {

/// Registers the passes of MLIR that are of use on kernels and on the host's
/// half of programs with them: the general transformations, those of the
/// dialects that these pass through, and the conversions between these.
void registerUpstreamPasses();

/// Registers what `one-shot-bufferize` asks the dialects of tensor programs
/// for.
void registerUpstreamBufferization(mlir::DialectRegistry &registry);

} // namespace kvbuf

#endif // KVBUFFER_TOOLS_KVBUF_OPT_UPSTREAMPASSES_H
