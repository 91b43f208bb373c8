//===- GFX1250.cpp - AMD's gfx1250 ----------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Facts are LLVM's: its features of the chip, its limits, and what MLIR's
// amdgpu dialect lowers to for it. What a data sheet would say is not known.
//
//===----------------------------------------------------------------------===//

#include "Vendors.h"

using namespace kvbuf;

TargetInfo detail::describeGFX1250() {
  TargetInfo target;
  target.chip = "gfx1250";
  target.vendor = Vendor::AMD;
  target.waveSize = 32;
  target.banks = 64;
  target.ldsBytes = 320 * 1024;
  target.ldsRowBytes = 128;
  // Four SIMDs of 16 waves. How many units a device has is not known: as many
  // as an MI355X.
  target.multiprocessors = target.tilesAtOnce = 256;
  target.residentThreads = 4 * 16 * 32;
  // Of 1024 for each of 32 lanes two waves a SIMD have half each. Four SIMDs.
  target.registersPerLane = 512;
  target.registersPerBlock = 4 * 1024 * 32;
  target.triple = "amdgcn-amd-amdhsa";
  // An exponential that must keep denormals takes five instructions.
  target.functionAttributes = {
      {"denormal-fp-math-f32", "preserve-sign,preserve-sign"}};
  target.matrixInstructions = {{MatrixUnit::Wmma, 16, 16, 32, 16, 1}};
  // The Open Compute Project's.
  target.float8Formats = {"f8E4M3FN", "f8E5M2"};
  target.widensToBF16 = true;
  target.packsHalves = true;
  target.copyEngines = {CopyEngine::Waves, CopyEngine::WaveBoxes};
  target.looksUpByLane = true;
  target.fewPages = 4;
  target.waitsByOperand = true;
  target.fragmentsFromDram = true;
  target.readsTransposed = true;
  target.roundsToBf16 = true;
  target.branchedRescaleAccumulators = 32;
  // A raw buffer compares offsets with the number of its bytes where all flags
  // are 0 (MLIR's lowering of amdgpu.fat_raw_buffer_cast).
  target.rangeFlags = 0;
  // The grid's size is a hidden kernel argument.
  target.readsGridSize = false;
  return target;
}
