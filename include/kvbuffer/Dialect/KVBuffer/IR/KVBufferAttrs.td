//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERATTRS_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERATTRS_TD

include "kvbuffer/Dialect/KVBuffer/IR/KVBufferAttrBase.td"
include "kvbuffer/Dialect/KVBuffer/IR/KVBufferLayouts.td"
include "kvbuffer/Dialect/KVBuffer/IR/KVBufferEnums.td"

def KVBuffer_ReductionAttr
    : EnumAttr<KVBuffer_Dialect, KVBuffer_Reduction, "reduction">;

def KVBuffer_DimensionAttr : EnumAttr<KVBuffer_Dialect, KVBuffer_Dimension,
                                      "dimension">;

def KVBuffer_PipelineAttr : KVBuffer_Attr<"Pipeline", "pipeline"> {
  let summary = "How a loop is made of what its ops say of when they run";
  let description = [{
    On a loop whose ops say when they run (`#kvbuffer.stage`): which of the
    iterations that overlap the new loop counts, and what becomes of the first and
    last ones.

    | | |
    |---|---|
    | `predicated` | the loop's own; what runs ahead of the last ones does so if there is such an iteration |
    | `turns` | the same, and one half of the block's warps goes through the loop one meeting later than the other (`kvbuffer.stagger`) |
    | `peeled_ahead` | of two, those of what runs ahead, from the second on: its first stands before the loop, the last of the rest behind it, both in a branch that is taken if there is an iteration |
    | `peeled_now` | of two, those of the rest, up to the last but one; likewise |

    Of `predicated` and `turns`, the first of what runs ahead stands in front of the
    loop, or, with `before_wait`, in front of the last wait there, too, which it need
    not be held up by: the wait moves behind it, or, where what is awaited is read
    before the loop, the loads move before the wait.

    Example:

    ```mlir
    #kvbuffer.pipeline<peeled_now>
    #kvbuffer.pipeline<predicated, before_wait>
    ```
  }];
  let parameters = (ins
    EnumParameter<KVBuffer_Pipeline>:$value,
    DefaultValuedParameter<"::kvbuf::PipelineStart", "::kvbuf::PipelineStart::AtLoop",
      "where the first of what runs ahead stands">:$start);
  let assemblyFormat = "`<` $value (`,` $start^)? `>`";
  let genVerifyDecl = 1;
}

def KVBuffer_PhaseAttr : KVBuffer_Attr<"Phase", "phase"> {
  let summary = "The phase contract of a kernel";
  let description = [{
    Which stage a kernel is in. The dialect verifies the contract on the
    `gpu.func` that carries it:

    | phase | what may appear |
    |---|---|
    | `tile` | block-level ops, with control flow of `scf`; no lane-level op (`gpu.thread_id`, `vector`, ...), no branch to a block |
    | `scheduled` | the same; every `kvbuffer.lds_stage` says how many younger loads may be in flight, every `kvbuffer.dram_load` which of several slots it fills |
    | `thread` | per-lane ops; no block-level op or type of this dialect |
    | `target` | `llvm` with one vendor's dialect, and structured ops that become inline assembly in the translation |

    Example:

    ```mlir
    #kvbuffer.phase<tile>
    ```
  }];
  let parameters = (ins EnumParameter<KVBuffer_Phase>:$value);
  let assemblyFormat = "`<` $value `>`";
}

include "kvbuffer/Dialect/KVBuffer/IR/KVBufferProblemAttrs.td"
include "kvbuffer/Dialect/KVBuffer/IR/KVBufferScheduleAttrs.td"
include "kvbuffer/Dialect/KVBuffer/IR/KVBufferLaunchAttrs.td"

def KVBuffer_StageAttr : KVBuffer_Attr<"Stage", "stage"> {
  let summary = "When an op of a loop runs that is being pipelined";
  let description = [{
    An op's `kvbuffer.stage`, while a pass overlaps the iterations of its loop:
    how many iterations `ahead` of its own it runs, for which iterations, and its
    place among the ops of an iteration of the new loop (`at`). Passes set it, and
    what makes the loop of it (`kvbuf-pipeline-loops`) removes it.

    | iterations | |
    |---|---|
    | `own` | the loop's: what runs ahead of the last ones is predicated |
    | `one_more` | one more than there are, as what stands after the loop goes on with it |
    | `all` | whatever there are: what stands after the loop goes on with all that ran ahead |

    Example:

    ```mlir
    #kvbuffer.stage<1 ahead, one_more>
    #kvbuffer.stage<1 ahead, own, at 3>
    ```
  }];
  let parameters = (ins
    AttrOrTypeParameter<"int64_t", "iterations">:$ahead,
    EnumParameter<KVBuffer_StageSpan>:$span,
    DefaultValuedParameter<"int64_t", "-1", "place in the new loop; -1: not known yet">:$at);
  let assemblyFormat = "`<` $ahead `ahead` `,` $span (`,` `at` $at^)? `>`";
  let genVerifyDecl = 1;
}

def KVBuffer_CoordinateAttr : KVBuffer_Attr<"Coordinate", "coordinate"> {
  let summary = "One coordinate of a kernel's items of work";
  let description = [{
    How many items there are along a coordinate of `kvbuffer.work_item`, and what
    whoever deals items to blocks has to know of them. The extent is an expression
    over the launch's sizes (`kvbuffer.launch_value`):

    | text | meaning |
    |---|---|
    | `<8>` | 8 items |
    | `<"rows" by 128>` | an item for each 128 rows; the last ones have fewer, or none |
    | `<"rows" by 128 over "batch">` | the numbers of `kvbuffer.find_tile`: as many items, and one more for each of the sequences that have the rows |
    | `<.. over "batch" longest "seq">` | the same; the longest sequence has about so many rows. It decides over the order alone |
    | `<.., growing>` | later items take longer, as under a causal mask |
    | `<.., sharing = 4>` | items 4i to 4i + 3 read the same of some tensor |
    | `<.., sharing = all>` | all items along the coordinate do |

    What is not said is not so, and costs speed at most: no order of items, and no
    number of them that a block has, changes the result.

    Example:

    ```mlir
    #kvbuffer.coordinate<"seq_q" by 128, growing, sharing = all>
    ```
  }];
  let parameters = (ins
    AttrOrTypeParameter<"::mlir::Attribute", "rows or items">:$extent,
    AttrOrTypeParameter<"int64_t", "rows of an item; 0: the extent counts items">:$step,
    OptionalParameter<"::mlir::Attribute", "sequences that have the rows">:$sequences,
    OptionalParameter<"::mlir::Attribute", "rows of the longest one">:$longest,
    AttrOrTypeParameter<"bool", "whether later items take longer">:$growing,
    AttrOrTypeParameter<"int64_t", "neighbours that read the same; 0: all">:$sharing);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Whether all items along the coordinate read the same of some tensor.
    bool isShared() const { return getSharing() == 0; }
    /// How many items there are, an expression over the launch's sizes; of rows,
    /// `together` neighbouring items count as one.
    ::mlir::Attribute getCount(int64_t together = 1) const;
    /// The number of items where no launch changes it.
    std::optional<int64_t> getFixedCount() const;
  }];
}

include "kvbuffer/Dialect/KVBuffer/IR/KVBufferBufferAttrs.td"

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERATTRS_TD
