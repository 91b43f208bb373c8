//===- ScaledSlots.h - Slots that are multiplied where they lie -*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_SCALEDSLOTS_H
#define KVBUFFER_DIALECT_KVBUFFER_IR_SCALEDSLOTS_H

#include "llvm/ADT/StringRef.h"
#include <cmath>

namespace kvbuf {

/// On a `kvbuffer.lds_stage` of one load, and on the `kvbuffer.ring_wait` that
/// stands for it: elements of the slot, which are of bf16, are multiplied by
/// this power of two (f32) where they lie, as soon as they are there. Operand a
/// of products so takes a scale that each of their results would be multiplied
/// by. Each group of warps multiplies the rows that its own products read.
constexpr llvm::StringLiteral kScaledByAttr = "kvbuffer.scaled_by";

/// Whether elements of bf16 may be multiplied by a number: all but those below
/// 2^-66 are exact then.
inline bool scalesExactly(double by) {
  int exponent = 0;
  return std::frexp(by, &exponent) == 0.5 && exponent <= 1 && exponent > -60;
}

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_SCALEDSLOTS_H
