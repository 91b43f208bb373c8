//===- RelaxedAtomics.h - Atomic operations without order -------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The name of an attribute that the thread stage and its conversions share.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_RELAXEDATOMICS_H
#define KVBUFFER_DIALECT_KVBUFFER_IR_RELAXEDATOMICS_H

#include "llvm/ADT/StringRef.h"

namespace kvbuf {

/// On a `memref.atomic_rmw` of global memory that orders nothing, at the scope
/// of the device: fences beside it do. Upstream's own lowering has the order
/// and the scope of the system, which on NVIDIA's chips are two fences of
/// LLVM's backend around each.
inline constexpr llvm::StringLiteral kRelaxedAttr = "kvbuffer.relaxed";

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_RELAXEDATOMICS_H
