//===- Weights.h - The weights of a softmax ---------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_WEIGHTS_H
#define KVBUFFER_DIALECT_KVBUFFER_IR_WEIGHTS_H

#include "mlir/IR/Types.h"
#include "mlir/IR/Value.h"

namespace kvbuf {

/// The element type to which the weights that belong to `max` were rounded, if
/// `max` is known to be the largest score of each row: it comes from steps of
/// `kvbuffer.online_softmax` alone, through loops, branches and the fills that
/// they start from. Null otherwise.
///
/// The weight of that score would be 1, but in base 2 and fused with the scale
/// it is exp2(fma(m, scale, -(m * scale))): 2 to the power of what the product
/// loses by its rounding. An operand of 11 bits rounds it to another number
/// where the product is above some 4096. In rows that one key decides, that
/// changes O, unless it is divided by a sum that has the weight as it was
/// rounded.
mlir::Type findWeightType(mlir::Value max);

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_WEIGHTS_H
