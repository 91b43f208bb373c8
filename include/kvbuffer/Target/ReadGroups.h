//===- ReadGroups.h - Instructions that a read of LDS feeds -----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_TARGET_READGROUPS_H
#define KVBUFFER_TARGET_READGROUPS_H

#include "kvbuffer/Target/TargetInfo.h"

namespace kvbuf {

/// Bytes that a lane reads from LDS at once, at most.
inline constexpr int64_t kWidestRead = 16;

/// Instructions, along the contraction, whose operands a lane reads from LDS at
/// once, which gives it `elements`: more than of 16 bits where they are
/// narrower there and widened on their way. `MatrixInstruction::group` is the
/// number of those of 16-bit elements; it is the least that this gives. Their
/// elements of a row, as many as all of them contract, divide `columns`.
int64_t instructionsPerRead(const TargetInfo &target,
                            const MatrixInstruction &mma, int64_t elements,
                            int64_t columns);

/// Elements that a row of a block in LDS is a multiple of: those of an operand
/// of a product, or, where lanes have two pieces of a row that lie apart, half
/// of them.
int64_t contractedPerRow(const TargetInfo &target,
                         const MatrixInstruction &mma);

} // namespace kvbuf

#endif // KVBUFFER_TARGET_READGROUPS_H
