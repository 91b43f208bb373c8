//===- IssueModel.h - How a chip issues and holds waves ---------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Figures of a chip that only a report of its code asks for: how many waves a
/// SIMD holds, and in how many cycles it issues what. Passes do not use them.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_TARGET_ISSUEMODEL_H
#define KVBUFFER_TARGET_ISSUEMODEL_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>

namespace kvbuf {

/// What waves share, and in which portions it is handed out. Source: LLVM's
/// AMDGPUUsage, "Kernel Descriptor" (register granules), and
/// AMDGPUBaseInfo (waves, LDS).
struct WaveLimits {
  unsigned simdsPerUnit = 4;
  unsigned wavesPerSimd = 8;
  /// Vector registers of a SIMD for each lane: a wave's ArchVGPRs and AccVGPRs.
  unsigned vectorRegisters = 512, vectorGranule = 8;
  unsigned scalarRegisters = 800, scalarGranule = 16;
  /// LDS of a compute unit and its granule, bytes.
  int64_t ldsBytes = 0, ldsGranule = 512;
};

/// Cycles that instructions of one wave take to issue, for the estimate of
/// `modelLoop`.
struct IssueModel {
  /// A vector instruction: 64 lanes on a SIMD of 16.
  unsigned vector = 4;
  /// exp, log, rcp, rsq, sqrt, sin, cos: a quarter of the rate, half of it on
  /// chips with a doubled transcendental unit.
  unsigned transcendental = 16;
  /// v_pk_*_f32: two passes.
  unsigned packed = 8;
  /// Of an MFMA's cycles, those in which nothing else of the SIMD's vector unit
  /// issues.
  unsigned matrixIssue = 8;
};

/// Null for chips without a model.
std::optional<WaveLimits> lookupWaveLimits(llvm::StringRef chip);
std::optional<IssueModel> lookupIssueModel(llvm::StringRef chip);

} // namespace kvbuf

#endif // KVBUFFER_TARGET_ISSUEMODEL_H
