//===- ProductGroups.h - Products whose operands are read together -*- C++ -*-//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_PRODUCTGROUPS_H
#define KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_PRODUCTGROUPS_H

#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/IR/Value.h"

namespace kvbuf {

/// Whether a product's operand b comes from elements that are narrower in LDS
/// than in registers, from one source at least.
bool isNarrowInLds(mlir::Value b);

/// The instructions along the contraction whose operands are laid out as one
/// instruction's, in a product by `b` that contracts `contracted` elements: of
/// narrower elements in LDS, along whose rows it goes (`transposeB`), a lane
/// reads those of more instructions at once. `b` may be null.
int64_t groupOfProduct(const TargetInfo &target, const MatrixInstruction &mma,
                       mlir::Value b, bool transposeB, int64_t contracted);

} // namespace kvbuf

#endif // KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_PRODUCTGROUPS_H
