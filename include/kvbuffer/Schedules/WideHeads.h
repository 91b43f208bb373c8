//===- WideHeads.h - Columns of wide heads, divided -------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// How the columns of heads that are wider than a product are divided where a
/// team moves tiles for groups of warps: what the program (TileProgram.cpp) is
/// built of, and what its schedule takes of a chip.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_SCHEDULES_WIDEHEADS_H
#define KVBUFFER_SCHEDULES_WIDEHEADS_H

#include "kvbuffer/Dialect/KVBuffer/IR/Schedule.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "llvm/Support/MathExtras.h"

namespace kvbuf {

/// The columns of wide heads. A lane's registers hold the accumulators of as
/// many columns as a product has, so that the parts of more are different
/// blocks', each of which computes the scores of its rows. Rows of K beside
/// those of Q leave no room for a second slot: a slot then has a block of
/// columns, and is filled anew while the next ones are multiplied.
struct WideHeads {
  /// Parts of the columns of V and O.
  int64_t valueParts = 1;
  /// Whether slots of K have a block of columns.
  bool keysByBlocks = false;

  static WideHeads of(const Schedule &schedule, int64_t headSize,
                      int64_t valueHeadSize, const TargetInfo &target) {
    WideHeads wide;
    if (!schedule.movingTeam() || schedule.splitKeys() ||
        !target.warpsPerMatrixGroup())
      return wide;
    int64_t most = target.matrixGroupCols;
    wide.valueParts = llvm::divideCeil(valueHeadSize, most);
    wide.keysByBlocks = headSize > most;
    return wide;
  }
};

} // namespace kvbuf

#endif // KVBUFFER_SCHEDULES_WIDEHEADS_H
