//===- LaneStores.h - Results from registers to DRAM ------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANESTORES_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANESTORES_H

#include "Lanes.h"

namespace kvbuf {

/// Lowers an op; its model calls it (LaneModels.cpp).
mlir::LogicalResult lowerOp(LaneContext &lower, FragmentStoreOp op);
void lowerOp(LaneContext &lower, RowStoreOp op);

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANESTORES_H
