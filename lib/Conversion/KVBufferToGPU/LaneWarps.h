//===- LaneWarps.h - Rows whose columns several warps share -----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEWARPS_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEWARPS_H

#include "Lanes.h"

namespace kvbuf {

/// Combines values with those of the lanes of the same number in the warps that
/// share a layout's columns, in the order of the warps. `values`: f32, as many
/// in each lane. All warps of the block, or of the team, get to `op`.
Values reduceWarps(Lanes &lanes, mlir::Operation *op,
                   const FragmentLayout &layout,
                   llvm::ArrayRef<mlir::Value> values, bool isMax);

/// Moves a fragment through LDS into another layout, also of other warps;
/// `elements` and what it returns: a lane's elements, atom by atom. Nothing
/// where operand b is transposed.
std::optional<Values> exchangeByLds(LaneContext &lanes, mlir::Operation *op,
                                    FragmentType from, FragmentType to,
                                    llvm::ArrayRef<mlir::Value> elements);

/// Lowers an op; its model calls it (LaneModels.cpp).
void lowerOp(LaneContext &lanes, RowReduceOp op);
void lowerOp(LaneContext &lanes, WarpReduceOp op);

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEWARPS_H
