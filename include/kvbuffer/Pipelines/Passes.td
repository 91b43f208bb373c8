//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_PIPELINES_PASSES_TD
#define KVBUFFER_PIPELINES_PASSES_TD

include "mlir/Pass/PassBase.td"

def OutlineKernels : Pass<"kvbuf-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "Make a kernel of each problem and launch it in its place";
  let description = [{
    Each `kvbuffer.attention` and `kvbuffer.cache_append` on memrefs, wherever it
    stands in a function, becomes a kernel of one `gpu.module`, lowered to the
    dialect of the chip's vendor, and a `gpu.launch_func`. Problems that differ in
    nothing but the values of their operands share a kernel. Caches have to be
    made in the function by `kvbuffer.make_cache`, whose memrefs the launch takes.
    Where an argument of the function, an `!llvm.ptr`, has `kvbuffer.stream`,
    everything goes to that stream, and nothing waits.

    What an artifact's manifest states the host computes here from the memrefs'
    sizes and strides, in `arith`, `memref`, `scf` and `gpu`: the grid, shared
    memory, workspaces and zeroed counters (`gpu.alloc`, `gpu.memset`), and which
    of the problem's kernels suits the tensors' addresses and strides and the
    launch's size. Tensor maps
    are made by a call of `mgpuTensorMapEncodeTiled`, which MLIR's CUDA runtime
    has, too. Launches are synchronous; `gpu-async-region` makes them
    asynchronous, which launches that allocate need.

    Nothing of the dialect is left then: `gpu-to-llvm`, `gpu-module-to-binary` and
    pipelines that contain them do the rest.
  }];
  let options = [
    Option<"chip", "chip", "std::string", /*default=*/"",
           "Chip to make kernels for; by default the one that the module names, "
           "else sm_80">,
    Option<"schedule", "schedule", "std::string", /*default=*/"",
           "Parameters of schedules to replace, e.g. 'BM=64,warps=2'">,
    Option<"targets", "targets", "bool", /*default=*/"true",
           "Put #nvvm.target or #rocdl.target on the gpu.module; false where a "
           "pipeline attaches its own">,
    Option<"alternatives", "alternatives", "bool", /*default=*/"true",
           "Make further kernels for tensors whose addresses or strides the first "
           "cannot take, and for launches that it does not suit; false: such "
           "tensors end the program">,
    Option<"checks", "checks", "bool", /*default=*/"true",
           "Check at run time (cf.assert) that sizes agree and that the kernel "
           "can take them">,
    Option<"registerHost", "register-host", "bool", /*default=*/"false",
           "Operands lie in the host's memory: register it for the time of each "
           "launch (gpu.host_register)">,
    Option<"multiprocessors", "multiprocessors", "int64_t", /*default=*/"0",
           "Multiprocessors of the device, for persistent grids; 0: those of the "
           "largest device with the chip">];
  let dependentDialects = [
    "::kvbuf::KVBufferDialect", "::mlir::cf::ControlFlowDialect",
    "::mlir::func::FuncDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::ROCDL::ROCDLDialect"];
}

#endif // KVBUFFER_PIPELINES_PASSES_TD
