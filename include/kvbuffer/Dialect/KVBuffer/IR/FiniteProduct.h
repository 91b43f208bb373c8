//===- FiniteProduct.h - Products that stay finite --------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_FINITEPRODUCT_H
#define KVBUFFER_DIALECT_KVBUFFER_IR_FINITEPRODUCT_H

#include "llvm/ADT/StringRef.h"

namespace kvbuf {

/// On an `arith.mulf` of f32, by a constant: the product of a finite number is
/// finite, f32's largest where it would be beyond that. Products are cut off,
/// towards zero, where a chip has such an instruction.
constexpr llvm::StringLiteral kFiniteProductAttr = "kvbuffer.finite_product";

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_FINITEPRODUCT_H
