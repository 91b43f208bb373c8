//===- AMD.cpp - AMD chips (CDNA) -------------------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Vendors.h"

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
