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

/// Lowers an op; its model calls it (LaneModels.cpp).
void lowerOp(LaneContext &lower, LaunchValueOp op);
void lowerOp(LaneContext &lower, ArriveLastOp op);
mlir::LogicalResult lowerOp(LaneContext &lower, AfterAllOp op);
mlir::LogicalResult lowerOp(LaneContext &lower, ShareWorkOp op);
mlir::LogicalResult lowerOp(LaneContext &lower, SharePairsOp op);

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEWORK_H
