//===- Attention.h - The programs of attention ------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_PROGRAMS_ATTENTION_ATTENTION_H
#define KVBUFFER_LIB_PROGRAMS_ATTENTION_ATTENTION_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ProblemInterface.h"

namespace kvbuf {

/// See ProblemInterface::getVariants.
KernelVariants attentionVariants(AttentionOp problem,
                                 const VariantQuery &query);

} // namespace kvbuf

#endif // KVBUFFER_LIB_PROGRAMS_ATTENTION_ATTENTION_H
