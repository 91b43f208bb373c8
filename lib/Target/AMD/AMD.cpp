//===- AMD.cpp - AMD chips (CDNA) -------------------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Vendors.h"
#include <tuple>

using namespace kvbuf;

/// What LLVM's attributor would infer; see LLVM's AMDGPUUsage, "LLVM IR
/// Attributes". An input without an intrinsic is asked for through the implicit
/// arguments only.
static constexpr KernelInput kKernelInputs[] = {
    {"llvm.amdgcn.workitem.id.y", "amdgpu-no-workitem-id-y"},
    {"llvm.amdgcn.workitem.id.z", "amdgpu-no-workitem-id-z"},
    {"llvm.amdgcn.workgroup.id.y", "amdgpu-no-workgroup-id-y"},
    {"llvm.amdgcn.workgroup.id.z", "amdgpu-no-workgroup-id-z"},
    {"llvm.amdgcn.implicitarg.ptr", "amdgpu-no-implicitarg-ptr"},
    {"llvm.amdgcn.implicitarg.ptr", "amdgpu-no-heap-ptr"},
    {"llvm.amdgcn.implicitarg.ptr", "amdgpu-no-hostcall-ptr"},
    {"llvm.amdgcn.implicitarg.ptr", "amdgpu-no-multigrid-sync-arg"},
    {"llvm.amdgcn.implicitarg.ptr", "amdgpu-no-default-queue"},
    {"llvm.amdgcn.implicitarg.ptr", "amdgpu-no-completion-action"},
    {"llvm.amdgcn.dispatch.ptr", "amdgpu-no-dispatch-ptr"},
    {"llvm.amdgcn.dispatch.id", "amdgpu-no-dispatch-id"},
    {"llvm.amdgcn.queue.ptr", "amdgpu-no-queue-ptr"},
    {"llvm.amdgcn.lds.kernel.id", "amdgpu-no-lds-kernel-id"},
};

/// As few pages are looked up by scalar loads, for all lanes of a wave at once,
/// when the tile is loaded; lanes select among them. Measured by compiling:
/// eight scalars of K and V each make kernels spill up to 29 scalar registers
/// (head sizes 64 and 256), and their selection takes more instructions than
/// look-ups by lanes do. Of four pages rows are copied directly where the chip
/// can.
static constexpr int64_t kFewPages = 4;

std::optional<TargetInfo> detail::lookupAMD(llvm::StringRef chip) {
  // As rocminfo prints it, "gfx942:sramecc+:xnack-": code that asks for neither
  // setting runs with each.
  chip = chip.split(':').first;
  if (chip == "gfx1250") {
    TargetInfo target = describeGFX1250();
    target.kernelInputs = kKernelInputs;
    return target;
  }
  bool cdna3 = chip == "gfx942", cdna4 = chip == "gfx950";
  if (!cdna3 && !cdna4)
    return std::nullopt;
  TargetInfo target;
  target.chip = chip.str();
  target.vendor = Vendor::AMD;
  target.waveSize = 64;
  target.banks = cdna4 ? 64 : 32;
  target.ldsBytes = (cdna4 ? 160 : 64) * 1024;
  target.ldsRowBytes = 64;
  // Compute units of MI300X and MI355X, each of 4 SIMDs with 8 waves.
  target.multiprocessors = cdna4 ? 256 : 304;
  target.residentThreads = 4 * 8 * 64;
  // XCDs of both, each with an L2 of 4 MB (data sheets); workgroups go to them
  // in turn (AMD's "MI300X workload optimization", Optimize GPU cache usage).
  target.dies = 8;
  target.tilesAtOnce = target.multiprocessors;
  target.registersPerLane = 256;
  // Four SIMDs with 512 for each of 64 lanes.
  target.registersPerBlock = 4 * 512 * 64;
  target.asyncCopyBytes = cdna4 ? llvm::SmallVector<unsigned>{1, 2, 4, 12, 16}
                                : llvm::SmallVector<unsigned>{1, 2, 4};
  target.triple = "amdgcn-amd-amdhsa";
  // CDNA4 may compute V_PK_{ADD,MUL,FMA}_F32 from what else was in a register
  // while a wave of the same unit multiplies matrices (docs/targets/amd.md,
  // pairs of f32): LLVM is to select none.
  target.pairsOfF32 = cdna3;
  if (!target.pairsOfF32)
    target.features = "-packed-fp32-ops";
  // - LLVM gives every MFMA an accumulator in AccVGPRs as soon as a kernel may
  //   have one, and copies scores and outputs from and to them around each
  //   softmax. Kernels of two waves a SIMD get along with the 256 ArchVGPRs.
  // - IEEE mode canonicalises the operands of every maximum.
  // - An exponential that must keep denormals takes five instructions.
  target.functionAttributes = {
      {"amdgpu-agpr-alloc", "0"},
      {"amdgpu-ieee", "false"},
      {"denormal-fp-math-f32", "preserve-sign,preserve-sign"}};
  target.kernelInputs = kKernelInputs;
  // A 16-byte read holds the operands of two of CDNA3's instructions.
  if (cdna4)
    target.matrixInstructions = {{MatrixUnit::Mfma, 32, 32, 16, 8, 1},
                                 {MatrixUnit::Mfma, 16, 16, 32, 8, 1}};
  else
    target.matrixInstructions = {{MatrixUnit::Mfma, 32, 32, 8, 4, 2},
                                 {MatrixUnit::Mfma, 16, 16, 16, 4, 2}};
  // CDNA3 ISA, "FP8 and BF8": biased by 8 and 16, without infinities; CDNA4
  // ISA: the Open Compute Project's. Instructions of 16-bit operands with as
  // many elements in a lane have the same lane maps.
  target.float8Formats =
      cdna4 ? decltype(target.float8Formats){"f8E4M3FN", "f8E5M2"}
            : decltype(target.float8Formats){"f8E4M3FNUZ", "f8E5M2FNUZ"};
  target.widensToBF16 = true;
  target.packsHalves = true;
  // V_DOT2_F32_F16 and V_DOT2_F32_BF16 with ones. Both chips take f16 below the
  // normal ones as they are (llvm-project PR 205101, tried on hardware).
  target.pairSums.push_back("f16");
  if (cdna4)
    target.pairSums.push_back("bf16");
  target.float8Instructions = {{MatrixUnit::Mfma, 32, 32, 16, 8, 1},
                               {MatrixUnit::Mfma, 16, 16, 32, 8, 1}};
  // CDNA4 ISA, "V_MFMA_SCALE_F32_32X32X64_F8F6F4": twice as fast.
  if (cdna4)
    target.float8Instructions.append({{MatrixUnit::Mfma, 32, 32, 64, 32, 1},
                                      {MatrixUnit::Mfma, 16, 16, 128, 32, 1}});
  target.copyEngines = {CopyEngine::Waves};
  target.slotSignal = SlotSignal::PolledCounters;
  target.looksUpByLane = true;
  target.fewPages = kFewPages;
  target.waitsByOperand = true;
  target.fragmentsFromDram = true;
  target.readsTransposed = cdna4;
  target.roundsToBf16 = cdna4;
  // Counted by compiling: two to three vector instructions fewer an MFMA in
  // loops of few rows. On CDNA3 masked tiles of many rows spilled for it.
  target.branchedRescaleAccumulators = cdna4 ? 32 : 0;
  // Raw, 32-bit elements: 7 << 12 | 4 << 15 (CDNA3 ISA, "Buffer Resource
  // Descriptor").
  target.rangeFlags = 0x27000;
  // The grid's size is a hidden kernel argument.
  target.readsGridSize = false;
  // vmcnt(0), nothing of the other counters. (CDNA3 ISA, "S_WAITCNT"; LLVM's
  // AMDGPUUsage, "Memory Model GFX942".)
  target.writeBackWait = 0x0f70;
  return target;
}

/// Transposed reads (ds_read_b64_tr_b16) of half a wave cover 4 rows x 64 bytes
/// of an operand of 32 columns, 8 rows x 32 bytes of one of 16: such pieces of
/// rows change places. Of a 16-row operand in rows of 64 bytes no swizzle of
/// one term suits both orders in which CDNA4 may serve lanes of 16 bytes each:
/// (3, 0, 3) is for the one that is reported (seed KVBuffer; kv_buffer 1.6).
/// With (2, 0, 4) added to it bit 2 of a row moves vectors by 3 and bit 3 by 2,
/// which suits both. (2, 0, 4) and (1, 1, 3) would, too, and would leave rows
/// where they are, as V's: masks of rows, shared by the two, would stay in
/// scalar registers (head size 208 over pages of 1: 67 spilled for 2). Lanes
/// read 8 bytes of 8-bit elements for as many instructions as 16 of others:
/// those that are served together would all take the same halves of 16-byte
/// vectors. So halves change places, where no copy into LDS is wider.
Swizzle detail::swizzleAMD(const TargetInfo &target,
                           const MatrixInstruction &mma, int64_t rowBytes,
                           int64_t elementBytes, bool transposed, bool direct) {
  // Rows that transposed reads of 16 bytes take together are as K's.
  if (target.matrixUnit() == MatrixUnit::Wmma)
    return direct && target.has(CopyEngine::WaveBoxes)
               ? Swizzle()
               : conflictFreeSwizzle(rowBytes, target.banks);
  if (!transposed) {
    if (!target.readsTransposed)
      return {};
    unsigned piece = mma.m == 16 ? 1 : 2;
    Swizzle vectors = conflictFreeSwizzle(rowBytes, target.banks);
    if (vectors.bits <= piece)
      return {};
    return {vectors.bits - piece, piece, vectors.shift - piece};
  }
  if (target.banks == 64 && mma.m == 16 && rowBytes == 64)
    return {3, 0, 3, 16, {2, 0, 4}};
  unsigned read = mma.wordElements * mma.group * elementBytes;
  bool readsMore = !direct && rowBytes * mma.m / target.waveSize > read;
  bool halves = read == 8 && target.asyncCopyBytes.back() <= read && !readsMore;
  return conflictFreeSwizzle(rowBytes, target.banks, halves ? read : 16);
}
