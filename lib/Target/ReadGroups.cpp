//===- ReadGroups.cpp - Instructions that a read of LDS feeds -------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Target/ReadGroups.h"

using namespace kvbuf;

int64_t kvbuf::instructionsPerRead(const TargetInfo &target,
                                   const MatrixInstruction &mma,
                                   int64_t elements, int64_t columns) {
  // Registers of `mma.sync` are read by an instruction of their own.
  if (mma.unit != MatrixUnit::Mfma)
    return mma.group;
  int64_t group = elements / int64_t(mma.wordElements);
  while (group > mma.group && columns % (mma.k * group))
    group /= 2;
  return std::max<int64_t>(group, mma.group);
}

int64_t kvbuf::contractedPerRow(const TargetInfo &target,
                                const MatrixInstruction &mma) {
  int64_t contracted = mma.k * mma.group;
  return target.matrixUnit() == MatrixUnit::Wmma ? contracted / 2 : contracted;
}
