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

/// Accumulator elements as words of operand a; errors if lanes would have to
/// exchange data. `rows`: which of the lane's rows each word is of.
mlir::LogicalResult toOperand(LaneContext &lanes, mlir::Operation *op,
                              FragmentType from, FragmentType type,
                              llvm::ArrayRef<mlir::Value> acc, Values &words,
                              llvm::SmallVectorImpl<int64_t> *rows = nullptr);

/// Lowers an op; its model calls it (LaneModels.cpp).
void lowerOp(LaneContext &lanes, FragmentFillOp op);
void lowerOp(LaneContext &lanes, FragmentSliceOp op);
void lowerOp(LaneContext &lanes, MmaOp op);
mlir::LogicalResult lowerOp(LaneContext &lanes, FragmentConvertOp op);
void lowerOp(LaneContext &lanes, FragmentScaleOp op);
void lowerOp(LaneContext &lanes, MaskOp op);
void lowerOp(LaneContext &lower, AnyNegativeOp op);
mlir::LogicalResult lowerOp(LaneContext &lower, OnlineSoftmaxOp op);
void lowerOp(LaneContext &lanes, RescaleOp op);
void lowerOp(LaneContext &lanes, SoftmaxFinishOp op);

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEMATH_H
