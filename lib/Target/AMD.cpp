//===- AMD.cpp - AMD chips (CDNA) -------------------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Vendors.h"

using namespace kvbuf;

std::optional<TargetInfo> detail::lookupAMD(llvm::StringRef chip) {
  bool cdna3 = chip == "gfx942", cdna4 = chip == "gfx950";
  if (!cdna3 && !cdna4)
    return std::nullopt;
  TargetInfo target;
  target.chip = chip.str();
  target.vendor = Vendor::AMD;
  target.waveSize = 64;
  target.banks = cdna4 ? 64 : 32;
  target.ldsBytes = (cdna4 ? 160 : 64) * 1024;
  target.registersPerLane = 256;
  // Four SIMDs with 512 for each of 64 lanes.
  target.registersPerBlock = 4 * 512 * 64;
  target.asyncCopyBytes = cdna4 ? llvm::SmallVector<unsigned>{1, 2, 4, 12, 16}
                                : llvm::SmallVector<unsigned>{1, 2, 4};
  target.triple = "amdgcn-amd-amdhsa";
  if (cdna4)
    target.matrixInstructions = {{32, 32, 16, 8}, {16, 16, 32, 8}};
  else
    target.matrixInstructions = {{32, 32, 8, 4}, {16, 16, 16, 4}};
  return target;
}

/// Block tiles of the seeds' prefill kernel: BM 128, BN 64, BK 32, four waves
/// of 32 rows.
ScheduleChoice detail::scheduleAMD(const TargetInfo &target,
                                   const ScheduleRequest &request) {
  ScheduleChoice choice;
  const MatrixInstruction &mma = target.matrixInstructions.front();
  choice.mma[0] = mma.m;
  choice.mma[1] = mma.n;
  choice.mma[2] = mma.k;
  choice.swapAB = true;
  choice.BM = 128;
  choice.BN = 64;
  choice.BK = request.headSize % 32 == 0 ? 32 : 16;
  return choice;
}
