//===- LaneFit.h - Operands in a type of less range -------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEFIT_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEFIT_H

#include "Lanes.h"

namespace kvbuf {

/// Lowers an op; its model calls it (LaneModels.cpp).
void lowerOp(LaneContext &lanes, FragmentFitOp op);
void lowerOp(LaneContext &lanes, StagedFitOp op);

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEFIT_H
