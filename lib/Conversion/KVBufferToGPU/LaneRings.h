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

class LaneLowering;

/// Whether an op of rings and their teams stands where it can be lowered.
mlir::LogicalResult checkRings(LaneContext &lower, mlir::Operation *op);
/// An error for an op that copies by all threads, beside rings.
mlir::LogicalResult checkNoRings(LaneContext &lower, mlir::Operation *op);

/// Lowers an op; its model calls it (LaneModels.cpp).
mlir::LogicalResult lowerOp(LaneLowering &lower, RingOp op);
mlir::LogicalResult lowerOp(LaneLowering &lower, RingLoadOp op);
mlir::LogicalResult lowerOp(LaneLowering &lower, RingPutOp op);
void lowerOp(Lanes &lower, RingWaitOp op);
void lowerOp(LaneLowering &lower, RingReleaseOp op);
void lowerOp(Lanes &lower, MailboxOp op);
void lowerOp(LaneLowering &lower, MailboxPostOp op);
void lowerOp(LaneLowering &lower, MailboxTakeOp op);
void lowerOp(LaneLowering &lower, NextTileOp op);
mlir::LogicalResult lowerOp(LaneLowering &lower, MmaStartOp op);
void lowerOp(Lanes &lower, MmaWaitOp op);
void lowerOp(LaneLowering &lower, TurnWaitOp op);
void lowerOp(LaneLowering &lower, TurnPassOp op);

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANERINGS_H
