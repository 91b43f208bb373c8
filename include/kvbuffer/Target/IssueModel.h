//===- IssueModel.h - How a chip issues and holds waves ---------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Figures of a chip for the report of its code and for the scheduling of it:
/// how many waves a SIMD holds, and in how many cycles it issues what.
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

/// Cycles that instructions of one wave take to issue, for the report's
/// estimate
/// (`modelStages`) and for `kvbuf-schedule-groups`.
struct IssueModel {
  /// A vector instruction: 64 lanes on a SIMD of 16.
  unsigned vector = 4;
  /// exp, log, rcp, rsq, sqrt, sin, cos: a quarter of the rate, half of it on
  /// chips with a doubled transcendental unit.
  unsigned transcendental = 16;
  /// v_pk_*_f32: a pass, as any. Data sheets give MI300X 163.4 TFLOP/s of f32,
  /// 256 operations a cycle and unit, which four SIMDs of 16 lanes have of
  /// pairs in one pass each; an MI300A was measured at 113.2 of 122.6 (Chips
  /// and Cheese, "Sizing up MI300A's GPU"); LLVM's scheduling model (GFX940)
  /// has one, too. Not beside an MFMA (llvm-project PR 157968, which takes
  /// pairs apart there).
  unsigned packed = 4;
  /// Whether there are any (`TargetInfo::pairsOfF32`).
  bool pairsOfF32 = true;
  /// Vector registers that an instruction can name.
  unsigned namedRegisters = 256;
  /// Scalar registers, of a wave, that it can name (CDNA 3 and CDNA 4 ISA,
  /// "SGPRs").
  unsigned namedScalars = 102;
  /// Of an MFMA's cycles, those in which nothing else of the SIMD's vector unit
  /// issues.
  unsigned matrixIssue = 8;
  /// Multiplications of 16-bit operands in one cycle of the matrix unit. An
  /// MFMA of m x n x k takes m*n*k / this many (CDNA 3 and CDNA 4 ISA, "passes"
  /// of 4 cycles).
  unsigned matrixMacs = 256;
  /// Cycles of s_nop more than on the chips before it until the result of an
  /// MFMA of more than two passes may be used.
  unsigned laterResults = 0;
  /// Whether one instruction converts a pair of fp32 to bf16 or f16.
  bool convertsPairs = false;
  /// Bytes that LDS moves in a cycle for the waves of a unit: one width of its
  /// banks, as the emulator counts passes.
  unsigned ldsBytes = 128;
};

/// How fast the memory of the largest device with a chip is, and how many bytes
/// have to be on their way for that.
struct MemoryModel {
  /// "MI300X".
  llvm::StringRef device;
  double bytesPerSecond = 0;
  /// Compute units, and their clock in Hz: data sheets of the devices.
  unsigned units = 1;
  double clock = 0;
  /// Seconds from a load to its data, with all of the device loading. An
  /// assumption, which the report states: nothing was measured on such a
  /// device, and an H200 at its memory's speed takes 1 to 2 us (docs/tuning.md,
  /// bytes in flight).
  double latency = 1e-6;

  /// Bytes that each unit must have on their way: Little's law.
  double bytesInFlight() const { return bytesPerSecond * latency / units; }
  /// Bytes that a unit gets in a cycle.
  double bytesPerCycle() const { return bytesPerSecond / units / clock; }
};

/// Null for chips without a model.
std::optional<WaveLimits> lookupWaveLimits(llvm::StringRef chip);
std::optional<IssueModel> lookupIssueModel(llvm::StringRef chip);
std::optional<MemoryModel> lookupMemoryModel(llvm::StringRef chip);

} // namespace kvbuf

#endif // KVBUFFER_TARGET_ISSUEMODEL_H
