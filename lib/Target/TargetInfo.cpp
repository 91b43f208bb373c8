//===- TargetInfo.cpp - What the lowering asks of a chip --------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Target/TargetInfo.h"
#include "Vendors.h"

using namespace kvbuf;

llvm::StringRef kvbuf::vendorName(Vendor vendor) {
  return vendor == Vendor::NVIDIA ? "nvidia" : "amd";
}

const MatrixInstruction *
TargetInfo::findMatrix(llvm::ArrayRef<int64_t> shape) const {
  for (const MatrixInstruction &mma : matrixInstructions)
    if (shape == llvm::ArrayRef<int64_t>{mma.m, mma.n, mma.k})
      return &mma;
  return nullptr;
}

std::optional<std::string> TargetInfo::whyNot(llvm::StringRef op) const {
  return vendor == Vendor::AMD ? detail::whyNotAMD(*this, op) : std::nullopt;
}

MmaLayouts TargetInfo::layouts(const MatrixInstruction &mma) const {
  if (vendor == Vendor::NVIDIA)
    return mmaSyncM16N8K16();
  return *mfma16Bit(mma.m, mma.n, mma.k * mma.group);
}

Swizzle TargetInfo::swizzle(const MatrixInstruction &mma, int64_t rowBytes,
                            bool transposed) const {
  return vendor == Vendor::NVIDIA
             ? conflictFreeSwizzle(rowBytes, banks)
             : detail::swizzleAMD(*this, mma, rowBytes, transposed);
}

bool TargetInfo::canCopyDirectly(int64_t rows, int64_t rowBytes,
                                 int64_t pageSize) const {
  if (!copiesByWave)
    return true;
  // One instruction fills whole rows of one block, from one page.
  int64_t bytes = waveSize * asyncCopyBytes.back();
  return rows * rowBytes % bytes == 0 && bytes >= rowBytes &&
         (!pageSize || pageSize * rowBytes >= bytes);
}

ScheduleChoice
TargetInfo::chooseSchedule(const ScheduleRequest &request) const {
  return vendor == Vendor::NVIDIA ? detail::scheduleNVIDIA(*this, request)
                                  : detail::scheduleAMD(*this, request);
}

std::optional<TargetInfo> kvbuf::lookupTarget(llvm::StringRef chip) {
  if (std::optional<TargetInfo> target = detail::lookupNVIDIA(chip))
    return target;
  return detail::lookupAMD(chip);
}

llvm::ArrayRef<llvm::StringRef> kvbuf::knownTargets() {
  static const llvm::StringRef names[] = {"gfx942", "gfx950", "sm_80",
                                          "sm_86",  "sm_87",  "sm_89",
                                          "sm_90",  "sm_90a"};
  return names;
}
