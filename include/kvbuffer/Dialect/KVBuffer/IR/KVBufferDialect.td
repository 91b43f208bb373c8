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
    between them. None of these names a vendor; only target descriptions know
    chips. What a lane or one vendor's unit does, and upstream's dialects have no
    op for, is here as well, from the thread stage on.

    **Groups.** Each op is of one group, which its description names
    (`KVBufferOpBase.td`): a chapter of this reference, and a level by which phases
    know what may stand in a kernel. Problems have a level of their own; tiles,
    fragments, softmax, teams, rings and work are of tiles; caches lane by lane,
    lanes, and the lanes of either vendor's chips are of lanes.

    **Design guidelines.** Block-level values: an op acts on a whole tile and
    all the threads of a block take part, or of a team of its warps
    (`kvbuffer.teams`). Asynchrony is visible: a load yields a
    token, and data can be read only after the `kvbuffer.lds_stage` of that
    token. Sizes that shape code (`BM`, `BN`, `BK`, stages) are attributes;
    sizes of the problem are run-time values.

    **Documentation guidelines.** Every op states its meaning in words, its
    effects, and an example that a test parses.

    **Attributes on kernels and modules.** Tools set and read these; a kernel
    written by hand at a stage must carry what its row says. What is none of an
    op's own attributes and has no dialect's prefix is an error on every op of
    the dialect, and so are unknown names and keys with this dialect's prefix.

    | attribute | on | value | needed |
    |---|---|---|---|
    | `kvbuffer.target` | module | the chip's name, a string | from the tile stage on |
    | `kvbuffer.phase` | kernel | `#kvbuffer.phase<...>` | always: without it no pass takes the function for a kernel |
    | `kvbuffer.schedule` | kernel | `#kvbuffer.schedule<...>` | tile and scheduled stages |
    | `known_block_size` | `gpu.func` | threads of a block | tile and scheduled stages: warps times lanes of a wave; of all teams, once they are assigned |
    | `kvbuffer.name` | argument of a kernel | the tensor's name, for callers; the problem's `tensors` say which part it plays where that has another name | tile and scheduled stages |
    | `kvbuffer.access` | argument of a kernel | `"read"`, `"write"`, `"read_write"`, `"workspace"` or `"counter"` | where what the ops do does not tell: for workspaces and counters |
    | `kvbuffer.shape` | argument of a kernel that is a memref | sizes: a name, an integer or a `#kvbuffer.size` for each dimension | for names of one's own; else `<name>.<dimension>` |
    | `kvbuffer.index` | argument that is a cache | `i32` or `i64`: the elements of its tables, lengths and offsets | never: `i32` |
    | `kvbuffer.rising` | argument that functions of a problem read | unit: its integers never fall along the last dimension, the caller's word, by which such functions bound keys | never |
    | `kvbuffer.lengths` | `kvbuffer.attention` | `"cached"` or `"all"`: whether lengths count the new tokens | never: `"cached"` |
    | `kvbuffer.shared_rows` | `kvbuffer.attention`, kernel | `array<i64: over, upto, shared>`: which sequences it computes of a launch that runs several kernels, by their query rows | never |
    | `kvbuffer.known_rows` | `kvbuffer.attention` | an integer: the query rows of a sequence in all launches, where the type of dense queries leaves their number open | never |
    | `kvbuffer.widened` | `kvbuffer.attention` | unit: its kernel reads 8-bit caches as another kernel of the launch has widened them; of programs that are compiled, only the compiler says so | never |
    | `kvbuffer.resident_blocks` | kernel | an integer: the blocks that a multiprocessor is to have at most, which takes shared memory | never |
    | `kvbuffer.problem` | kernel | a `#kvbuffer.problem` | for tools that check results, and for what knows attention alone |
    | `kvbuffer.grid` | kernel | three sizes: an integer, a name or a `#kvbuffer.size` | tile and scheduled stages, in kernels without `kvbuffer.work_item`, from which `kvbuf-assign-work` makes it; becomes a part of `kvbuffer.kernel` |
    | `kvbuffer.sizes` | kernel | a dictionary: sizes that no argument's shape names, and what they are where the caller does not say | where there are such; becomes `defaults` of `kvbuffer.kernel` |
    | `kvbuffer.sizes` | argument of a kernel that is a cache | a dictionary from what its type calls its sizes to names of its own | where caches of one kernel differ in them |
    | `kvbuffer.kernel` | kernel | a `#kvbuffer.launch` | thread and target stages |
    | `kvbuffer.tensors` | kernel | an array of `#kvbuffer.tensor` | thread and target stages |
    | `kvbuffer.lds` | kernel | an array of `#kvbuffer.lds`, which bytes of LDS are which buffer's; the thread stage sets it, messages read it | never |
    | `kvbuffer.stream` | argument of a function | unit: launches that stand for the function's problems go to this stream, an `!llvm.ptr` (`kvbuf-outline-kernels`) | never |
    | `kvbuffer.finite_product` | an `arith.mulf` of f32 by a constant | unit: the product of a finite number is finite, f32's largest where it would be beyond that | never |
    | `kvbuffer.relaxed` | a `memref.atomic_rmw` of global memory | unit: it orders nothing, at the scope of the device | never |
    | `kvbuffer.scaled_by` | a `kvbuffer.lds_stage` of one load, a `kvbuffer.ring_wait` | a power of two of f32, from 2^-60 to 1: elements of the slot, of bf16, are multiplied by it where they lie, as soon as they are there | never |
    | `kvbuffer.parked` | a `kvbuffer.shelf` | unit: its slots lie over the kernel's buffers; each is one team's, which puts once in a launch and then gets, all of the shelf's teams or none, and with their puts they say that no buffer is read or filled any more | never |
    | `kvbuffer.traded` | a `kvbuffer.shelf` of a kernel whose blocks are clusters of two | unit: what a team puts into a slot lies in the other block, over its buffers, and what it gets from the slot the same team has put there; both blocks put once and then get, or neither does | never |
    | `kvbuffer.read_once` | a `kvbuffer.ring_load` | unit: no other block reads the tile, and this one not again, so that caches may give it up first | never |
    | `kvbuffer.edge_tiles` | an `scf.if` over a tile's scores | unit: of tiles that need no mask both sides make the same | never |
    | `kvbuffer.pipeline` | a loop | a `#kvbuffer.pipeline`: what the stages of its ops mean; with them | never |
    | `kvbuffer.stage` | an op of a loop | a `#kvbuffer.stage`: when it runs, while passes pipeline the loop; they remove it | never |
    | `kvbuffer.group` | the op that ends a group of copies | unit: nothing reads it | never |
    | `kvbuffer.whole_after_first` | loop | unit: only the tiles of the first iteration can have invalid rows | never |

    Launches and tensors are the manifest's entries, which
    `include/kvbuffer/Runtime/Manifest.h` describes.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
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
    /// On an `scf.if` over the scores of a tile: of tiles that need no mask
    /// both sides make the same; a unit attribute.
    static constexpr ::llvm::StringLiteral kEdgeTilesAttr =
        "kvbuffer.edge_tiles";
    /// On an op of a loop while its iterations are made to overlap: how far
    /// ahead it runs, and for which of them; a `StageAttr`, which the pass that
    /// makes the loop removes.
    static constexpr ::llvm::StringLiteral kStageAttr = "kvbuffer.stage";
    /// On an `scf.for` whose ops have such stages: how its iterations are made
    /// to overlap; a `PipelineAttr`, which goes with them.
    static constexpr ::llvm::StringLiteral kPipelineAttr = "kvbuffer.pipeline";
    /// On the op that ends a group of copies, whose text would go on without
    /// an attribute; a unit attribute that nothing reads.
    static constexpr ::llvm::StringLiteral kGroupAttr = "kvbuffer.group";
    /// On an argument of a `gpu.func`: the name of its tensor or cache, in the
    /// manifest and for callers; a string.
    static constexpr ::llvm::StringLiteral kNameAttr = "kvbuffer.name";
    /// On such an argument: what the kernel does with it, "read", "write" or
    /// "read_write"; or "workspace" or "counter", which the runtime
    /// provides: memory for one launch, and words that are 0 when it starts
    /// and that it has to leave so. A string. Without it, what the program's
    /// ops do.
    static constexpr ::llvm::StringLiteral kAccessAttr = "kvbuffer.access";
    /// On an argument that is a memref: each dimension's size, as the manifest
    /// states it; an array of names (strings), numbers, and expressions
    /// (`SizeAttr`). Dimensions of one name have one size, in all tensors.
    /// Without it, a dynamic dimension `d` of tensor `x` has the name "x.d".
    static constexpr ::llvm::StringLiteral kShapeAttr = "kvbuffer.shape";
    /// On a `gpu.func`: the problem that it solves, for the manifest; a
    /// `ProblemAttr`.
    static constexpr ::llvm::StringLiteral kProblemAttr = "kvbuffer.problem";
    /// On a `gpu.func` without a `kvbuffer.work_item`: how many blocks to launch;
    /// an array of three expressions of the manifest.
    static constexpr ::llvm::StringLiteral kGridAttr = "kvbuffer.grid";
    /// On a kernel from the thread stage on: how it is launched; a
    /// `LaunchAttr`.
    static constexpr ::llvm::StringLiteral kKernelAttr = "kvbuffer.kernel";
    /// On a kernel from the thread stage on: the tensors that the parameters
    /// refer to, for the manifest; an array of `TensorAttr`.
    static constexpr ::llvm::StringLiteral kTensorsAttr = "kvbuffer.tensors";

    /// On a function's argument, an `!llvm.ptr`: the stream of the launches that
    /// its problems become; a unit attribute.
    static constexpr ::llvm::StringLiteral kStreamAttr = "kvbuffer.stream";

    void registerAttributes();
    void registerTypes();
  }];
}

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERDIALECT_TD
