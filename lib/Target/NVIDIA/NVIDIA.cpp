//===- NVIDIA.cpp - NVIDIA chips --------------------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Vendors.h"
#include "llvm/ADT/StringSwitch.h"

using namespace kvbuf;

/// Shared memory that one block may use, bytes: CUDA C++ Programming Guide,
/// "Technical Specifications per Compute Capability".
static int64_t sharedBytes(llvm::StringRef chip) {
  return llvm::StringSwitch<int64_t>(chip)
      .Cases({"sm_80", "sm_87"}, 163 * 1024)
      .Cases({"sm_86", "sm_89"}, 99 * 1024)
      .Cases({"sm_90", "sm_90a", "sm_100a"}, 227 * 1024)
      .Default(0);
}

/// Multiprocessors of the largest device: the whitepapers of A100, A40, Jetson
/// AGX Orin, L40S, H200 and B200.
static unsigned multiprocessors(llvm::StringRef chip) {
  return llvm::StringSwitch<unsigned>(chip)
      .Case("sm_80", 108)
      .Case("sm_86", 84)
      .Case("sm_87", 16)
      .Case("sm_89", 142)
      .Case("sm_100a", 148)
      .Default(132);
}

std::optional<TargetInfo> detail::lookupNVIDIA(llvm::StringRef chip) {
  int64_t lds = sharedBytes(chip);
  if (!lds)
    return std::nullopt;
  TargetInfo target;
  target.chip = chip.str();
  target.vendor = Vendor::NVIDIA;
  target.waveSize = 32;
  target.banks = 32;
  target.ldsBytes = lds;
  target.multiprocessors = multiprocessors(chip);
  // The same table as for shared memory.
  if (chip == "sm_86" || chip == "sm_87" || chip == "sm_89")
    target.residentThreads = 1536;
  target.registersPerLane = 255;
  target.asyncCopyBytes = {4, 8, 16};
  target.looksUpByLane = true;
  target.triple = "nvptx64-nvidia-cuda";
  // Copies of tensor boxes into the own block's shared memory alone need
  // PTX 8.6, and products of 8-bit floats 8.4; the rest is in 8.0.
  target.features = chip == "sm_90a" || chip == "sm_100a" ? "+ptx87"
                    : chip == "sm_89" || chip == "sm_90"  ? "+ptx84"
                                                          : "+ptx80";
  target.dataLayout =
      "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64";
  target.functionAttributes = {
      {"denormal-fp-math-f32", "preserve-sign,preserve-sign"}};
  target.loopStrengthReduction = false;
  target.matrixInstructions = {
      {MatrixUnit::MmaSync, 16, 8, 16, /*wordElements=*/2}};
  // PTX ISA, "movmatrix": since sm_75.
  target.transposesAmongLanes = true;
  // PTX ISA, "bar": barriers 0 to 15.
  target.namedBarriers = 16;
  // PTX ISA, "mma.sync": .e4m3 and .e5m2 need sm_89 and PTX 8.4. An H200 keeps
  // some 14 bits of their sums: a term 2^-13 of the sum vanishes.
  if (chip == "sm_89" || chip.starts_with("sm_90")) {
    target.float8Formats = {"f8E4M3FN", "f8E5M2"};
    // First two side by side (`mmaSyncM16N16K32`): of V, transposed reads give
    // a lane pairs of columns.
    target.float8Instructions = {
        {MatrixUnit::MmaSync, 16, 16, 32, /*wordElements=*/4},
        {MatrixUnit::MmaSync, 16, 8, 32, /*wordElements=*/4}};
    target.float8SumBits = 14;
  }
  // PTX ISA, "cp.async.bulk.tensor": since sm_90; "tile::gather4" since sm_100.
  // Of sm_100a there is no more here: products are the portable ones.
  target.copyEngines = {CopyEngine::Lanes};
  if (chip == "sm_100a" || chip.starts_with("sm_90"))
    target.copyEngines.push_back(CopyEngine::Boxes);
  if (chip == "sm_100a")
    target.copyEngines.push_back(CopyEngine::Rows);
  // An H200's matrix unit aligns a sum and its sixteen products at the largest
  // exponent with 25 bits below, and cuts off there and at the end
  // (docs/hopper.md): 131072 keys lose a quarter of what rounding to bf16 does.
  if (chip.starts_with("sm_90")) {
    target.sumKeys = 32768;
    target.mostSumKeys = 131072;
  }
  // ".shared::cta" as what it copies to: since PTX 8.6.
  target.copiesBoxesIntoBlock =
      target.has(CopyEngine::Boxes) && chip != "sm_90";
  // PTX ISA, "mbarrier.try_wait": since sm_90.
  if (target.has(CopyEngine::Boxes))
    target.slotSignal = SlotSignal::PhaseBarriers;
  // PTX ISA, "setmaxnreg": of sm_90a and sm_100a, not of sm_90.
  if (chip == "sm_90a" || chip == "sm_100a")
    target.warpsPerRegisterGroup = 4;
  // PTX ISA, "wgmma": of sm_90a, not of sm_90.
  if (chip == "sm_90a") {
    target.matrixInstructions.push_back(
        {MatrixUnit::Wgmma, 64, 8, 16, /*wordElements=*/2});
    target.float8Instructions.push_back(
        {MatrixUnit::Wgmma, 64, 8, 32, /*wordElements=*/4});
    // CUDA Programming Guide, "Thread Block Clusters": 8 are portable. A
    // swizzled tile repeats after 8 rows.
    target.maxCluster = target.clusterPartRows = 8;
    // Measured on an H200.
    // The engine takes a box of 128 bytes a row every 7 to 8 cycles, whatever
    // its rows, and each costs producers some six instructions: of one row both
    // are more than copies take, of two only the blocks of a cluster ask for
    // few enough each (H200, docs/tuning.md).
    target.fewestPageRows = 2;
    target.predicatesRescale = true;
    // SASS: VIMNMX3, FMNMX.
    target.integerMaxima = true;
    target.branchedRescaleAccumulators = 128;
  }
  return target;
}
