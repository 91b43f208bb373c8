//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_TARGET_AMD_PASSES_TD
#define KVBUFFER_TARGET_AMD_PASSES_TD

include "mlir/Pass/PassBase.td"

def ScheduleGroups : Pass<"kvbuf-schedule-groups", "::mlir::LLVM::LLVMFuncOp"> {
  let summary = "Interleave matrix instructions with the others of their stage";
  let description = [{
    On AMD: derives `rocdl.sched.group.barrier` patterns for each piece of code
    between barriers, from the vector instructions that its ops become and from
    what they wait for, so that each MFMA has an even share of them in its shadow.
    Very many, which take far more cycles than MFMAs leave them, have no pattern.
    Scheduling fences keep stages apart. Needs the chip's issue model; does
    nothing without one.
  }];
  let dependentDialects = ["::mlir::ROCDL::ROCDLDialect"];
}

def BalanceProducts
    : Pass<"kvbuf-balance-products", "::mlir::LLVM::LLVMFuncOp"> {
  let summary = "Deal matrix instructions to both sides of a branch in a stage";
  let description = [{
    On AMD: in loops, moves MFMAs of a stage from in front of a branch, whose sides
    meet right behind it, to behind it, or from there to the front, where this
    leaves fewer cycles of vector instructions without an MFMA beside them.
  }];
}

def PairArithmetic
    : Pass<"kvbuf-pair-arithmetic", "::mlir::LLVM::LLVMFuncOp"> {
  let summary = "Compute f32 of two registers by one instruction";
  let description = [{
    On AMD: in loops, makes sums, products and multiply-adds of f32 that do the
    same to registers that follow each other ops on vectors of two, for which
    the chip has instructions that take the time of one. No MFMA runs beside
    these: there are as many as a stage's vector instructions take longer than
    its MFMAs hide, and none where all registers are live: a pair needs some
    that follow each other. Bits of results stay. Needs the chip's issue model; does
    nothing where that has no such instructions.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def GuardSinking : Pass<"kvbuf-guard-sinking", "::mlir::LLVM::LLVMFuncOp"> {
  let summary = "Keep vector instructions in the stage of their MFMAs";
  let description = [{
    On AMD: in loops, holds each value that is computed beside MFMAs and used in
    another block by an empty assembly statement at the end of its stage. LLVM
    would sink its computation below the branch, where no MFMA hides it.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def SetPriority : Pass<"kvbuf-set-priority", "::mlir::LLVM::LLVMFuncOp"> {
  let summary = "Raise the priority of waves in stages with MFMAs";
  let description = [{
    On AMD: `rocdl.s.setprio` 1 after the barrier before a stage with MFMAs in a
    loop, and 0 before the barrier after it.
  }];
  let dependentDialects = ["::mlir::ROCDL::ROCDLDialect"];
}

#endif // KVBUFFER_TARGET_AMD_PASSES_TD
