//===- Lower.cpp - Upstream dialects to the target stage ------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emulate.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

bool kvbuf::emulate::needsLowering(ModuleOp module) {
  bool found = false;
  module.walk([&](gpu::GPUFuncOp) { found = true; });
  return found;
}

OwningOpRef<ModuleOp> kvbuf::emulate::lowerToTarget(ModuleOp module,
                                                    StringRef chip) {
  bool isAMD = chip.starts_with("gfx");
  // As MLIR's `gpu-lower-to-nvvm-pipeline` does it, without what is for the
  // host; and the like for AMD, which has no such pipeline.
  std::string common = "convert-linalg-to-loops,lower-affine,"
                       "convert-vector-to-scf,convert-scf-to-cf,";
  std::string nvvm =
      "convert-nvgpu-to-nvvm,gpu.module(convert-gpu-to-nvvm{"
      "index-bitwidth=64},expand-strided-metadata,"
      "lower-affine,convert-vector-to-llvm,"
      "convert-arith-to-llvm,convert-index-to-llvm,canonicalize,cse,"
      "reconcile-unrealized-casts)";
  std::string rocdl =
      "gpu.module(convert-amdgpu-to-rocdl{chipset=" + chip.str() +
      "},expand-strided-metadata,lower-affine,"
      "convert-gpu-to-rocdl{index-bitwidth=0 runtime=HIP "
      "chipset=" +
      chip.str() +
      "},convert-vector-to-llvm,convert-index-to-llvm,"
      "canonicalize,cse,reconcile-unrealized-casts)";
  auto pipeline = parsePassPipeline("builtin.module(" + common +
                                    (isAMD ? rocdl : nvvm) + ")");
  if (failed(pipeline))
    return nullptr;
  PassManager manager(module.getContext());
  static_cast<OpPassManager &>(manager) = std::move(*pipeline);
  OwningOpRef<ModuleOp> result = module.clone();
  if (failed(manager.run(*result)))
    return nullptr;
  return result;
}
