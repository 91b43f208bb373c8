//===- LaneMath.h - Products, scores and softmax ----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEMATH_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEMATH_H

#include "Lanes.h"

namespace kvbuf {

class LaneLowering;

/// Accumulator elements as words of operand a; errors if lanes would have to
/// exchange data.
mlir::LogicalResult toOperand(Lanes &lanes, mlir::Operation *op,
                              FragmentType from, FragmentType type,
                              llvm::ArrayRef<mlir::Value> acc, Values &words);

/// Lowers an op; its model calls it (LaneModels.cpp).
void lowerOp(Lanes &lanes, FragmentFillOp op);
void lowerOp(Lanes &lanes, FragmentSliceOp op);
void lowerOp(Lanes &lanes, MmaOp op);
mlir::LogicalResult lowerOp(Lanes &lanes, FragmentConvertOp op);
void lowerOp(Lanes &lanes, FragmentScaleOp op);
void lowerOp(Lanes &lanes, MaskOp op);
void lowerOp(LaneLowering &lower, AnyNegativeOp op);
mlir::LogicalResult lowerOp(LaneLowering &lower, OnlineSoftmaxOp op);
void lowerOp(Lanes &lanes, RescaleOp op);
void lowerOp(Lanes &lanes, SoftmaxFinishOp op);

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEMATH_H
