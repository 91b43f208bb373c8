//===- LowerForChip.h - The target stage of the module's chip ---*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_PIPELINES_LOWERFORCHIP_H
#define KVBUFFER_LIB_PIPELINES_LOWERFORCHIP_H

#include "kvbuffer/Pipelines/Pipelines.h"

namespace kvbuf {

/// Makes the pass `kvbuf-lower-for-chip`, with the options that concern the
/// target stage.
std::unique_ptr<mlir::Pass> createLowerForChip(const LoweringOptions &options);

/// Registers it.
void registerLowerForChip();

} // namespace kvbuf

#endif // KVBUFFER_LIB_PIPELINES_LOWERFORCHIP_H
