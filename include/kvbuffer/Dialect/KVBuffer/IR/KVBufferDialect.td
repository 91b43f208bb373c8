//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERDIALECT_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERDIALECT_TD

include "mlir/IR/OpBase.td"

def KVBuffer_Dialect : Dialect {
  let name = "kvbuffer";
  let cppNamespace = "::kvbuf";
  let summary = "The movement of a key/value cache through the memory hierarchy";
  let description = [{
    Attention reads a key/value cache that is larger than any on-chip memory.
    This dialect says its movement, DRAM to shared memory (LDS) to registers to
    matrix unit, once for every cache layout, buffer policy and vendor.

    **What goes here?** What attention kernels share above the lane: caches,
    tiles in DRAM, buffers in LDS, fragments in registers, and the operations
    between them. Nothing of it names a vendor; only target descriptions know
    chips.

    **Design guidelines.** Block-level values: an op acts on a whole tile and
    all the threads of a block take part. Asynchrony is visible: a load yields a
    token, and data can be read only behind the `kvbuffer.lds_stage` of that
    token. Sizes that shape code (`BM`, `BN`, `BK`, stages) are attributes;
    sizes of the problem are run-time values.

    **Documentation guidelines.** Every op states its meaning in words, its
    effects, and an example that a test parses.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"
  ];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    /// On a `gpu.func`: which stage it is in; a `PhaseAttr`.
    static constexpr ::llvm::StringLiteral kPhaseAttr = "kvbuffer.phase";
    /// On a `gpu.func`: how it is built; a `ScheduleAttr`.
    static constexpr ::llvm::StringLiteral kScheduleAttr = "kvbuffer.schedule";
    /// On a module: the chip that the schedule was chosen for; a string.
    static constexpr ::llvm::StringLiteral kTargetAttr = "kvbuffer.target";
    /// On an `scf.for` over tiles: only the tiles of its first iteration can
    /// have invalid rows; a unit attribute.
    static constexpr ::llvm::StringLiteral kWholeAfterFirstAttr =
        "kvbuffer.whole_after_first";
    /// On a `gpu.func`: the problem that it solves, for the manifest; a
    /// dictionary.
    static constexpr ::llvm::StringLiteral kProblemAttr = "kvbuffer.problem";
    /// On a `gpu.func` whose blocks loop over tiles: how many blocks to launch;
    /// an array of three expressions of the manifest.
    static constexpr ::llvm::StringLiteral kGridAttr = "kvbuffer.grid";
    /// On a kernel from the thread stage on: `block`, `grid`,
    /// `dynamic_shared_bytes` and `args` of the manifest; a dictionary.
    static constexpr ::llvm::StringLiteral kKernelAttr = "kvbuffer.kernel";
    /// On a kernel from the thread stage on: the tensors that the parameters
    /// refer to, for the manifest; an array of dictionaries.
    static constexpr ::llvm::StringLiteral kTensorsAttr = "kvbuffer.tensors";

    void registerAttributes();
    void registerTypes();
  }];
}

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERDIALECT_TD
