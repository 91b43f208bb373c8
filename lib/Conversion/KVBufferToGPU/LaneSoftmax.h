//===- LaneSoftmax.h - The online softmax in two parts ----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANESOFTMAX_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANESOFTMAX_H

#include "Lanes.h"

namespace kvbuf {

/// Lowers an op; its model calls it (LaneModels.cpp).
void lowerOp(LaneContext &lanes, RaiseMaxOp op);
void lowerOp(LaneContext &lanes, ApplyRaiseOp op);
void lowerOp(LaneContext &lanes, SoftmaxHeadOp op);
mlir::LogicalResult lowerOp(LaneContext &lanes, SoftmaxTailOp op);
mlir::LogicalResult lowerOp(LaneContext &lanes, SoftmaxSettleOp op);
void lowerOp(LaneContext &lanes, CarryExcessOp op);
void lowerOp(LaneContext &lanes, MeetOp op);
void lowerOp(LaneContext &lanes, StaggerOp op);

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANESOFTMAX_H
