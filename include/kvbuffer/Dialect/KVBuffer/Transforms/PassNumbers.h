//===- PassNumbers.h - What numbers passes take as options ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_PASSNUMBERS_H
#define KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_PASSNUMBERS_H

#include "mlir/IR/Operation.h"

namespace kvbuf {

/// Reports at `op` that a pass's option `name` is to be from `least` to `most`,
/// unless `value` is.
mlir::LogicalResult checkPassNumber(mlir::Operation *op, llvm::StringRef name,
                                    int64_t value, int64_t least, int64_t most);

/// Reports at `op` that a pass's option `alignment` is to be 2, 4, 8 or 16,
/// unless `bytes` are.
mlir::LogicalResult checkAlignment(mlir::Operation *op, int64_t bytes);

/// Whether kernels can rest on addresses that are multiples of so many bytes.
bool isAlignment(int64_t bytes);

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_PASSNUMBERS_H
