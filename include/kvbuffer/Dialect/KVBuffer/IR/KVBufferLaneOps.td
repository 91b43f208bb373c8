//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The thread stage: what a lane does where upstream's dialects have no op for it,
// for any vendor. Copies by waves as wholes, which count what is in flight, are
// AMD's; LLVM 22's amdgpu dialect has the copy too, but neither the range's length
// nor the immediate offset can be said there.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERLANEOPS_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERLANEOPS_TD

include "kvbuffer/Dialect/KVBuffer/IR/KVBufferCacheOps.td"
include "kvbuffer/Dialect/KVBuffer/IR/KVBufferOpBase.td"

def KVBuffer_DramRangeOp : KVBuffer_Op<"dram_range", [KVBuffer_NamedResults, Pure]> {
  let summary = "A range of DRAM with a length";
  let description = [{
    `bytes` bytes of `data` from element `offset` on. Address and length are the
    same in all lanes of a wave. Reads past the end (offsets count as unsigned)
    give zero and touch no memory; a range of no bytes is never touched.

    Example:

    ```mlir
    %range = kvbuffer.dram_range %k[%base] bytes(%n) : memref<bf16>
    ```
  }];
  let arguments = (ins
      Arg<AnyMemRef, "the memory">:$data,
      Arg<Index, "the first element">:$offset,
      Arg<I32, "how many bytes there are; the same in all lanes">:$bytes);
  let results = (outs Res<KVBuffer_RangeType, "the range">:$range);
  let assemblyFormat = [{
    $data `[` $offset `]` `bytes` `(` $bytes `)` attr-dict `:` type($data)
  }];
}

def KVBuffer_RangeLoadOp : KVBuffer_Op<"range_load", [MemoryEffects<[MemRead]>]> {
  let summary = "Loads a lane's vector from a range";
  let description = [{
    The vector at byte `offset` of the range, each lane its own; zero past the
    end.

    Example:

    ```mlir
    %x = kvbuffer.range_load %range[%offset] : vector<8xbf16>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_RangeType, "what is read">:$range,
      Arg<I32, "the lane's byte in the range">:$offset);
  let results = (outs Res<AnyVectorOfNonZeroRank, "the vector there; zero past the end">:$result);
  let assemblyFormat = "$range `[` $offset `]` attr-dict `:` type($result)";
}

def KVBuffer_RangeCopyOp : KVBuffer_Op<"range_copy", [
    MemoryEffects<[MemRead, MemWrite<KVBuffer_Lds>, MemWrite<KVBuffer_Async>]>]> {
  let summary = "Copies a vector a lane from a range into LDS";
  let description = [{
    Asynchronous. Lane l copies `bytes` bytes from byte `offset` + `skip` of the
    range, its own `offset`, to byte `at` + l * `bytes` of `lds`; `at` is the
    same in all lanes. Past the end of the range it writes zero. One instruction
    of the wave: it counts in the wave's number of loads in flight whether or not
    anything is in range.

    Example:

    ```mlir
    kvbuffer.range_copy %range[%offset] to %lds[%at] {bytes = 16 : i64, skip = 64 : i64}
      : memref<?xi8, #gpu.address_space<workgroup>>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_RangeType, "what is read">:$range,
      Arg<I32, "the lane's byte in the range">:$offset,
      Arg<AnyMemRef, "the memory of the block">:$lds,
      Arg<Index, "the byte of lane 0 in it; the same in all lanes">:$at,
      Arg<I64Attr, "of the vector of a lane">:$bytes,
      Arg<DefaultValuedAttr<I64Attr, "0">, "bytes added to every offset">:$skip);
  let assemblyFormat = [{
    $range `[` $offset `]` `to` $lds `[` $at `]` attr-dict `:` type($lds)
  }];
}

def KVBuffer_BoxCopyOp : KVBuffer_Op<"box_copy", [
    MemoryEffects<[MemRead, MemWrite<KVBuffer_Lds>, MemWrite<KVBuffer_Async>]>]> {
  let summary = "Asks an engine to copy rows of a tensor into LDS";
  let description = [{
    Asynchronous. Of `blocks` blocks of columns of the tile of `data` that begins at
    element `base` and whose rows are `stride` elements apart, the engine copies
    `rows` rows of `columns` elements each to byte `at` of `lds`, one after the
    other, block after block; rows from `valid` on are zero there. All operands are
    the same in all lanes. Where `asked` is false nothing is copied. One instruction
    of the wave in either case, counted by a counter of the engine's own
    (`amdgpu.memory_counter_wait tensor`).

    Example:

    ```mlir
    kvbuffer.box_copy %k[%base] stride(%stride) valid(%rows) if %asked to %lds[%at]
      {blocks = 2 : i64, rows = 64 : i64, columns = 16 : i64}
      : memref<bf16>, memref<?xi8, #gpu.address_space<workgroup>>
    ```
  }];
  let arguments = (ins
      Arg<AnyMemRef, "the memory that is read">:$data,
      Arg<Index, "the tile's first element">:$base,
      Arg<Index, "elements from one row to the next">:$stride,
      Arg<I32, "how many rows there are, not less than 0">:$valid,
      Arg<I1, "whether anything is copied">:$asked,
      Arg<AnyMemRef, "the memory of the block">:$lds,
      Arg<Index, "the first byte in it">:$at,
      Arg<I64Attr, "of columns">:$blocks,
      Arg<I64Attr, "of each block">:$rows,
      Arg<I64Attr, "of a block, elements">:$columns);
  let assemblyFormat = [{
    $data `[` $base `]` `stride` `(` $stride `)` `valid` `(` $valid `)` `if` $asked
    `to` $lds `[` $at `]` attr-dict `:` type($data) `,` type($lds)
  }];
}

def KVBuffer_TurnedReadOp : KVBuffer_Op<"turned_read", [MemoryEffects<[MemRead<KVBuffer_Lds>]>]> {
  let summary = "Reads matrices of LDS transposed, 16 bytes a lane";
  let description = [{
    Each eight lanes read a matrix of 8 x 8 elements of 16 bits: lane r of them the
    row r, 16 bytes at byte `at` of `lds`, and lane c gets column c, from row 0 on.
    (`amdgpu.transpose_load` of LLVM 22 has 4 elements of 16 bits alone.)

    Example:

    ```mlir
    %column = kvbuffer.turned_read %lds[%at]
      : memref<?xi8, #gpu.address_space<workgroup>> -> vector<8xbf16>
    ```
  }];
  let arguments = (ins
      Arg<AnyMemRef, "the memory of the block">:$lds,
      Arg<Index, "the byte of the lane's row in it">:$at);
  let results = (outs Res<AnyVectorOfNonZeroRank, "the lane's column">:$column);
  let assemblyFormat = [{
    $lds `[` $at `]` attr-dict `:` type($lds) `->` type($column)
  }];
}

def KVBuffer_WaveBarrierOp : KVBuffer_Op<"wave_barrier", [
    MemoryEffects<[MemRead<KVBuffer_Async>, MemWrite<KVBuffer_Async>,
                   MemRead<KVBuffer_Lds>, MemWrite<KVBuffer_Lds>]>]> {
  let summary = "Meets the block's other waves and waits for nothing else";
  let description = [{
    Unlike `gpu.barrier` it drains no memory operation: what the other waves are
    to see was waited for before it, and copies for later tiles stay in
    flight.

    Example:

    ```mlir
    kvbuffer.wave_barrier
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def KVBuffer_CounterAddOp : KVBuffer_Op<"counter_add", [
    KVBuffer_LaneLevel,
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

def KVBuffer_CounterReadOp : KVBuffer_Op<"counter_read", [
    KVBuffer_LaneLevel,
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

def KVBuffer_LaneAnyOp : KVBuffer_Op<"lane_any"> {
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

def KVBuffer_LaneCountOp : KVBuffer_Op<"lane_count"> {
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

def KVBuffer_BarrierAnyOp : KVBuffer_Op<"barrier_any"> {
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

def KVBuffer_LaneTransposeOp : KVBuffer_Op<"lane_transpose"> {
  let summary = "Transposes an 8x8 matrix that a warp's lanes hold";
  let description = [{
    The 32 lanes of a warp hold an 8x8 matrix of 16-bit elements, two in a word:
    lane 4 g + t has the elements 2 t (the low half) and 2 t + 1 of row g. Each
    lane gets the word of the transposed matrix in its place: the elements 2 t and
    2 t + 1 of column g. All lanes of the warp take part (PTX ISA, "movmatrix").

    Example:

    ```mlir
    %turned = kvbuffer.lane_transpose %word
    ```
  }];
  let arguments = (ins Arg<I32, "the lane's word of the matrix">:$word);
  let results = (outs Res<I32, "the lane's word of the transposed one">:$turned);
  let assemblyFormat = "$word attr-dict";
}

def KVBuffer_LaneMmaOp : KVBuffer_Op<"lane_mma", [
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

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERLANEOPS_TD
