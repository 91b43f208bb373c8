//===- LaneDiagonals.h - Elements that distances tell apart -----*- C++ -*-===//
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
/// to each other where elements are needed. So it is with what a product begins
/// with, and there with what follows from the column alone, too.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEDIAGONALS_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEDIAGONALS_H

#include "Lanes.h"

namespace kvbuf {

/// Where a map's elements follow from no input, and from their row and column
/// by the difference of the two alone, has lanes share out what it reads or
/// computes, a word a lane for each group of columns, and leaves it to the map
/// that takes its result to hand them over. Of a map
/// that a product begins with, and that reads nothing but tables of which a
/// wave has a lane for each number, lanes hand them over here, also where
/// elements follow from the column alone. False, and nothing is done, of other
/// maps, and where that takes no fewer words than there are elements.
mlir::FailureOr<bool> shareDiagonals(LaneContext &lower, MapOp op);

/// Hands over, here, what has been left to the map `op`.
void takeDiagonals(LaneContext &lower, MapOp op);

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEDIAGONALS_H
