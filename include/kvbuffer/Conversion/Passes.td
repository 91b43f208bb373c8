//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_CONVERSION_PASSES_TD
#define KVBUFFER_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertKVBufferToGPU
    : Pass<"convert-kvbuffer-to-gpu", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Lower tile programs to per-lane code";
  let description = [{
    Scheduled to thread. A fragment becomes the vectors that the matrix
    instruction's layouts give to a lane, a cache or tensor its pointer, strides
    and sizes as kernel parameters, a buffer a range of dynamic shared memory.
    Every address and every lane exchange is read off a linear layout; the
    target's description says which layouts, and which instructions move data.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::nvgpu::NVGPUDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"];
}

def ConvertKVBufferToNVVM
    : Pass<"convert-kvbuffer-to-nvvm", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Lower per-lane code to llvm and nvvm";
  let description = [{
    Thread to target on NVIDIA: upstream's conversions of gpu, nvgpu, vector,
    memref, arith and math in one step, with patterns of ours for
    `kvbuffer.lane_mma` and for base-2 exponentials and logarithms, which
    upstream lowers to calls of a library that is not there.
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect"];
}

def VerifyTarget : Pass<"kvbuf-verify-target", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Check that the chip can run what the target stage asks for";
  let description = [{
    Compares the kernels of a module at the target stage with the description of
    the chip that `kvbuffer.target` names: instructions that the chip lacks,
    widths of copies into LDS, shared memory, threads of a block. A backend would
    end compilation on some of these, and make code that cannot be launched of
    others. Changes nothing.
  }];
}

#endif // KVBUFFER_CONVERSION_PASSES_TD
