//===- IssueModel.cpp - How a chip issues and holds waves -----------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Target/IssueModel.h"
#include "kvbuffer/Target/TargetInfo.h"

using namespace kvbuf;

std::optional<WaveLimits> kvbuf::lookupWaveLimits(llvm::StringRef chip) {
  WaveLimits limits;
  if (chip == "gfx942") {
    limits.ldsBytes = 64 * 1024;
    limits.ldsGranule = 512;
    return limits;
  }
  if (chip == "gfx950") {
    limits.ldsBytes = 160 * 1024;
    limits.ldsGranule = 1280;
    return limits;
  }
  return std::nullopt;
}

std::optional<IssueModel> kvbuf::lookupIssueModel(llvm::StringRef chip) {
  IssueModel model;
  if (std::optional<TargetInfo> target = lookupTarget(chip)) {
    model.ldsBytes = target->banks * 4;
    model.pairsOfF32 = target->pairsOfF32;
  }
  if (chip == "gfx942")
    return model;
  if (chip == "gfx950") {
    // CDNA 4 white paper: twice the rate of transcendental functions.
    model.transcendental = 8;
    model.matrixMacs = 512;
    model.laterResults = 1;
    model.convertsPairs = true;
    return model;
  }
  return std::nullopt;
}

std::optional<MemoryModel> kvbuf::lookupMemoryModel(llvm::StringRef chip) {
  // AMD's data sheets of the Instinct MI300X and MI355X.
  if (chip == "gfx942")
    return MemoryModel{"MI300X", 5.3e12, 304, 2.1e9};
  if (chip == "gfx950")
    return MemoryModel{"MI355X", 8.0e12, 256, 2.4e9};
  return std::nullopt;
}
