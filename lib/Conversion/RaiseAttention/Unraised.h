//===- Unraised.h - Why a softmax's product is no attention -----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_RAISEATTENTION_UNRAISED_H
#define KVBUFFER_LIB_CONVERSION_RAISEATTENTION_UNRAISED_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <optional>
#include <string>

namespace kvbuf::raise {

/// Whether `op` sums products over a dimension; of tensors.
bool isSumOfProducts(mlir::linalg::LinalgOp op);

/// Why a sum of products is not found to be the end of attention, if what it
/// multiplies comes from a softmax of another one by whatever ops; else
/// nothing.
std::optional<std::string> whyUnfollowed(mlir::linalg::LinalgOp product,
                                         bool sizesAgree);

} // namespace kvbuf::raise

#endif // KVBUFFER_LIB_CONVERSION_RAISEATTENTION_UNRAISED_H
