//===- LaneControl.h - Loops and branches -----------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANECONTROL_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANECONTROL_H

#include "Lanes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace kvbuf {

/// Lowers an op; its model calls it (LaneModels.cpp).
mlir::LogicalResult lowerOp(LaneContext &lower, mlir::scf::ForOp op);
mlir::LogicalResult lowerOp(LaneContext &lower, mlir::scf::IfOp op);
mlir::LogicalResult lowerOp(LaneContext &lower, mlir::scf::WhileOp op);

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANECONTROL_H
