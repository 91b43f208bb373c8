//===- LaneWork.h - Work that blocks share ----------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEWORK_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEWORK_H

#include "Lanes.h"

namespace kvbuf {

class LaneLowering;

/// The threads of the team, or outside of teams of the block.
int64_t threadsTogether(const Lanes &lanes);
/// Makes them meet, so that each reads what the others have stored.
void meetToRead(Lanes &lanes);

/// Lowers an op; its model calls it (LaneModels.cpp).
void lowerOp(LaneLowering &lower, LaunchValueOp op);
void lowerOp(LaneLowering &lower, ArriveLastOp op);
mlir::LogicalResult lowerOp(LaneLowering &lower, AfterAllOp op);
mlir::LogicalResult lowerOp(LaneLowering &lower, ShareWorkOp op);

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEWORK_H
