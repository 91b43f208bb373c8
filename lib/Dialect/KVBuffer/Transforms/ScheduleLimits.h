//===- ScheduleLimits.h - What a chip has for a schedule --*- C++ -*
//------===////
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What schedules of attention take of a chip (shared memory, registers,
/// threads), and the checks of that. What a schedule may say whatever the chip
/// and the problem are is in ScheduleRules.cpp.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_SCHEDULELIMITS_H
#define KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_SCHEDULELIMITS_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Target/TargetInfo.h"

namespace kvbuf {

/// Head sizes of Q and K, and of V and O, padded to whole LDS blocks.
std::pair<int64_t, int64_t> paddedHeadSizes(AttentionOp op,
                                            const ScheduleParameters &s);

/// The head sizes for messages: "192, 128 of values,"; "128" if there is one.
std::string headSizesText(AttentionOp op);

/// Why the blocks of a cluster could not load tiles of K and V for each other;
/// empty if they can.
llvm::StringRef whyNotShared(AttentionOp op);

/// Checks that the warps of a chip can have roles, if any are asked for.
llvm::LogicalResult checkChipHasRoles(AttentionOp op, int64_t producers,
                                      const TargetInfo &target);

/// Bytes of LDS that a block of split keys needs for its tiles and for what its
/// warps leave each other.
int64_t splitKeysBytes(AttentionOp op, const ScheduleParameters &s,
                       const TargetInfo &target);

/// Whether a block of few query rows has them in LDS and reads them for each
/// tile of keys: accumulators, queries and a place among sequences of any
/// lengths would take more registers than a lane has.
bool readsQueriesFromLds(AttentionOp op, const ScheduleParameters &s,
                         const TargetInfo &target);

/// Registers of a lane for accumulators and P, which no compiler can save;
/// two tiles of scores where they overlap.
int64_t registersFor(AttentionOp op, const ScheduleParameters &s,
                     const TargetInfo &target);

/// Checks that a schedule can be built on a chip; says at the op what does not
/// fit and what the limit is. `isDefault`: nobody asked for any of it; then it
/// may need more registers than a lane has, which the assembler keeps in
/// memory.
llvm::LogicalResult checkFits(AttentionOp op, ScheduleAttr schedule,
                              const TargetInfo &target, bool isDefault);

} // namespace kvbuf

#endif // KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_SCHEDULELIMITS_H
