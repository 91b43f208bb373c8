//===- LaneRings.h - What teams pass by barriers ----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANERINGS_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANERINGS_H

#include "Lanes.h"

namespace kvbuf {

/// Whether an op of rings and their teams stands where it can be lowered.
mlir::LogicalResult checkRings(LaneContext &lower, mlir::Operation *op);
/// An error for an op that copies by all threads, beside rings.
mlir::LogicalResult checkNoRings(LaneContext &lower, mlir::Operation *op);

/// Lowers an op; its model calls it (LaneModels.cpp).
mlir::LogicalResult lowerOp(LaneContext &lower, RingOp op);
mlir::LogicalResult lowerOp(LaneContext &lower, RingLoadOp op);
mlir::LogicalResult lowerOp(LaneContext &lower, RingPutOp op);
mlir::LogicalResult lowerOp(LaneContext &lower, RingWaitOp op);
void lowerOp(LaneContext &lower, RingReleaseOp op);
void lowerOp(LaneContext &lower, MailboxOp op);
void lowerOp(LaneContext &lower, MailboxPostOp op);
void lowerOp(LaneContext &lower, MailboxTakeOp op);
void lowerOp(LaneContext &lower, NextTileOp op);
mlir::LogicalResult lowerOp(LaneContext &lower, MmaStartOp op);
void lowerOp(LaneContext &lower, MmaWaitOp op);
void lowerOp(LaneContext &lower, TurnWaitOp op);
void lowerOp(LaneContext &lower, TurnPassOp op);

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANERINGS_H
