//===- Sizes.h - Which dimensions have the same size ------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_RAISEATTENTION_SIZES_H
#define KVBUFFER_LIB_CONVERSION_RAISEATTENTION_SIZES_H

#include "mlir/IR/Operation.h"
#include "mlir/IR/Value.h"

namespace kvbuf::raise {

/// The size of a dimension: a number, the size of a dimension of a tensor that
/// nothing says more of, or a number at run time (`dim` is -1).
struct Size {
  int64_t number = 0;
  mlir::Value of;
  int64_t dim = -1;

  bool operator==(const Size &other) const {
    return of == other.of && dim == other.dim && number == other.number;
  }
};

/// What the size of a tensor's dimension comes from.
Size sizeOf(mlir::Value tensor, int64_t dim);
/// What a number comes from, of the type `index` or an integer, that is a size.
Size sizeOf(mlir::Value number);

/// Takes sizes of results from where they come from, so that what computes the
/// results alone may go.
void forwardSizes(mlir::Operation *root);

} // namespace kvbuf::raise

#endif // KVBUFFER_LIB_CONVERSION_RAISEATTENTION_SIZES_H
