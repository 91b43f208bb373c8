//===- LaneDiagonals.h - Reads that distances alone tell apart --*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What a map reads by how far the column is behind the row, as relative biases
/// do, is the same along a diagonal. A tile has many more elements than
/// diagonals: each lane of a wave reads the word of one, and lanes hand words
/// to each other where elements are needed.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEDIAGONALS_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEDIAGONALS_H

#include "Lanes.h"

namespace kvbuf {

/// Whether a map's elements follow from no input, and from their row and column
/// by the difference of the two alone; what follows from neither may be in
/// them, too.
bool followsFromDifference(MapOp op);

/// Reads what such a map does, a word a lane for each group of columns, and
/// leaves it to the map that takes its result to hand them over; false, and
/// nothing is done, where that takes no fewer reads, or where the result goes
/// elsewhere.
mlir::FailureOr<bool> readDiagonals(LaneContext &lower, MapOp op);

/// Hands over, here, what has been left to the map `op`.
void takeDiagonals(LaneContext &lower, MapOp op);

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEDIAGONALS_H
