//===- GFX1250.cpp - Schedules of waves of 32 lanes -----------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Proposals.h"

using namespace kvbuf;

/// Waves of 32 queries, two of the instruction's columns, so that each fragment
/// of K and V is read for two products; 64 keys a tile. What the engine copies
/// has no swizzle: in rows of 32 bytes eight rows are all banks once. What it
/// cannot copy goes through registers, into rows of 128 bytes, whose 16 rows a
/// swizzle spreads over all banks: tiles of several pages, of bytes, whose
/// first rows may be hidden, or with columns that fill no row.
ScheduleChoice kvbuf::detail::scheduleGFX1250(const TargetInfo &target,
                                              const ScheduleRequest &request) {
  ScheduleChoice choice;
  const MatrixInstruction &mma = target.matrixInstructions.front();
  choice.mma = mma.shape();
  choice.swapAB = true;
  choice.qInRegs = true;
  bool wholeRows =
      request.headSize % 64 == 0 && request.valueHeadSize % 64 == 0;
  choice.BK = wholeRows ? 64 : 32;
  choice.kPath = choice.vPath = Path::Registers;
  if (request.splitKeys) {
    choice.splitKeys = true;
    choice.xcds = target.dies;
    choice.equalShares = request.lengthsDiffer;
    choice.lookAhead = request.pageSize > 0;
    choice.BM = request.foldedRows > 16 ? 32 : 16;
    choice.BN = 32;
    choice.warps = 1;
    return choice;
  }
  choice.warps = 4;
  choice.BM = choice.warps * 2 * mma.n;
  choice.BN = 64;
  choice.xcds = target.dies;
  constexpr int64_t columns = 16;
  bool boxes = request.pageSize % choice.BN == 0 && request.cacheBytes == 2 &&
               !request.window && request.headSize % mma.k == 0 &&
               request.valueHeadSize % columns == 0;
  if (boxes) {
    choice.kPath = choice.vPath = Path::Direct;
    choice.BK = columns;
    choice.lazyRescale = true;
  }
  choice.lookAhead = target.lanesLookUp(
      choice.BN, request.pageSize % choice.BN ? request.pageSize : 0,
      choice.warps);
  return choice;
}
