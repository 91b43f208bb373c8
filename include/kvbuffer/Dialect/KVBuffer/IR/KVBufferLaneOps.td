//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The thread stage: what a lane does where upstream's dialects have no op for it,
// for any vendor.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERLANEOPS_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERLANEOPS_TD

include "kvbuffer/Dialect/KVBuffer/IR/KVBufferOpBase.td"

def KVBuffer_CounterAddOp : KVBuffer_OpOf<KVBuffer_Lanes, "counter_add", [
    MemoryEffects<[MemRead<KVBuffer_Lds>, MemWrite<KVBuffer_Lds>,
                   MemRead<KVBuffer_Async>]>]> {
  let summary = "Adds 1 to a counter in LDS, which goes round";
  let description = [{
    Atomically; after `last` it is 0. The result is the number before. The block's other waves that find the number
    (`kvbuffer.counter_read`) find what this one has read and written before, but for
    copies that are on their way.

    Example:

    ```mlir
    %before = kvbuffer.counter_add %words[%i] upto %last : memref<?xi32, #gpu.address_space<workgroup>>
    ```
  }];
  let arguments = (ins Arg<MemRefOf<[I32]>, "words of LDS">:$words,
                       Arg<Index, "the counter's word">:$index,
                       Arg<I32, "the number after which it is 0">:$last);
  let results = (outs Res<I32, "the number before">:$before);
  let assemblyFormat = [{
    $words `[` $index `]` `upto` $last attr-dict `:` type($words)
  }];
}

def KVBuffer_CounterReadOp : KVBuffer_OpOf<KVBuffer_Lanes, "counter_read", [
    MemoryEffects<[MemRead<KVBuffer_Lds>, MemWrite<KVBuffer_Lds>]>]> {
  let summary = "Reads a counter in LDS";
  let description = [{
    What follows comes after it, and after all that those have done before who have
    counted so far (`kvbuffer.counter_add`). A wave that finds too small a number
    sleeps for a moment before it asks again.

    Example:

    ```mlir
    %count = kvbuffer.counter_read %words[%i] : memref<?xi32, #gpu.address_space<workgroup>>
    ```
  }];
  let arguments = (ins Arg<MemRefOf<[I32]>, "words of LDS">:$words,
                       Arg<Index, "the counter's word">:$index);
  let results = (outs Res<I32, "its number">:$count);
  let assemblyFormat = "$words `[` $index `]` attr-dict `:` type($words)";
}

def KVBuffer_LaneAnyOp : KVBuffer_OpOf<KVBuffer_Lanes, "lane_any"> {
  let summary = "Whether a condition holds in any lane of the warp";
  let description = [{
    The same in all lanes. Seldom true: a branch on it is laid out that way.

    Example:

    ```mlir
    %any = kvbuffer.lane_any %mine
    ```
  }];
  let arguments = (ins Arg<I1, "the lane's own">:$condition);
  let results = (outs Res<I1, "whether it holds in any lane">:$any);
  let assemblyFormat = "$condition attr-dict";
}

def KVBuffer_LaneCountOp : KVBuffer_OpOf<KVBuffer_Lanes, "lane_count"> {
  let summary = "In how many lanes of the warp a condition holds";
  let description = [{
    The same in all lanes, all of which have to be there.

    Example:

    ```mlir
    %count = kvbuffer.lane_count %mine
    ```
  }];
  let arguments = (ins Arg<I1, "the lane's own">:$condition);
  let results = (outs Res<I32, "in how many lanes it holds">:$count);
  let assemblyFormat = "$condition attr-dict";
}

def KVBuffer_LaneVoteOp : KVBuffer_OpOf<KVBuffer_Lanes, "lane_vote"> {
  let summary = "In which lanes of a warp of 32 a condition holds";
  let description = [{
    Bit i is that of lane i. The same in all lanes, all of which have to be there.

    Example:

    ```mlir
    %bits = kvbuffer.lane_vote %mine
    ```
  }];
  let arguments = (ins Arg<I1, "the lane's own">:$condition);
  let results = (outs Res<I32, "those of all lanes">:$bits);
  let assemblyFormat = "$condition attr-dict";
}

def KVBuffer_BarrierAnyOp : KVBuffer_OpOf<KVBuffer_Lanes, "barrier_any"> {
  let summary = "Whether a condition holds in any thread that meets here";
  let description = [{
    Meets `threads` threads, whole warps, at the block's barrier `id`. The same in
    all of them. LLVM 22's `nvvm.barrier` takes a number or a reduction, not both.

    Example:

    ```mlir
    %any = kvbuffer.barrier_any %mine at %id {threads = 128 : i64}
    ```
  }];
  let arguments = (ins
      Arg<I1, "the thread's own">:$condition,
      Arg<I32, "the block's barrier">:$id,
      Arg<I64Attr, "how many threads meet">:$threads);
  let results = (outs Res<I1, "whether it holds in any thread">:$any);
  let assemblyFormat = "$condition `at` $id attr-dict";
}

def KVBuffer_LaneMmaOp : KVBuffer_OpOf<KVBuffer_Lanes, "lane_mma", [
    Pure, AttrSizedOperandSegments, AllTypesMatch<["c", "result"]>]> {
  let summary = "A lane's part of one matrix instruction";
  let description = [{
    d = a * b + c for one instruction of `shape` M, N, K. a and b are the words,
    in register order, that the instruction's layouts give to a lane; c is the
    lane's accumulators. Elements of a and b are of one type, or both 8-bit
    floats, where the chip has such instructions. The vendor-neutral form in which
    the thread stage names the matrix unit: `nvgpu.mma.sync` of LLVM 22 accepts
    bf16 but cannot lower it.

    Example:

    ```mlir
    %d = kvbuffer.lane_mma
      a(%a0, %a1, %a2, %a3 : vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>)
      b(%b0, %b1 : vector<2xbf16>, vector<2xbf16>)
      c(%c : vector<4xf32>) {shape = array<i64: 16, 8, 16>}
    ```
  }];
  // c first: the inferred result type reads it at a fixed position.
  let arguments = (ins
      Arg<AnyVectorOfNonZeroRank, "the lane's accumulators">:$c,
      Arg<Variadic<AnyVectorOfNonZeroRank>, "words of operand a, in register order">:$a,
      Arg<Variadic<AnyVectorOfNonZeroRank>, "words of operand b, in register order">:$b,
      Arg<DenseI64ArrayAttr, "M, N and K of the instruction">:$shape);
  let results = (outs Res<AnyVectorOfNonZeroRank, "accumulators with the product added">:$result);
  let assemblyFormat = [{
    `a` `(` $a `:` type($a) `)` `b` `(` $b `:` type($b) `)`
    `c` `(` $c `:` type($c) `)` attr-dict
  }];
  let hasVerifier = 1;
}

def KVBuffer_LaneArriveOp : KVBuffer_OpOf<KVBuffer_Lanes, "lane_arrive", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Adds 1 to a counter that all blocks see";
  let description = [{
    Atomically; the result is the number before. At the scope of the device it
    releases what the thread knows to be written, and acquires what earlier
    arrivals have released; `early`, it releases nothing, and acquires before it
    adds what those have released whose numbers the thread has read: nothing waits
    for what the thread has stored, nor behind it for its own number. `relaxed`, it orders nothing: the number alone is
    what is wanted. The vendor-neutral form of the thread stage:
    `memref.atomic_rmw` can name neither a scope nor an order.

    Example:

    ```mlir
    %before = kvbuffer.lane_arrive %counters[%i] : memref<?xi32>
    ```
  }];
  let arguments = (ins
      Arg<MemRefOf<[I32]>, "the counters">:$counters,
      Arg<Variadic<Index>, "which of them">:$indices,
      Arg<UnitAttr, "the addition orders nothing">:$relaxed,
      Arg<UnitAttr, "what it orders comes before the addition">:$early);
  let results = (outs Res<I32, "the number before">:$before);
  let assemblyFormat = [{
    $counters `[` $indices `]` (`relaxed` $relaxed^)? (`early` $early^)?
    attr-dict `:` type($counters)
  }];
}

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERLANEOPS_TD
