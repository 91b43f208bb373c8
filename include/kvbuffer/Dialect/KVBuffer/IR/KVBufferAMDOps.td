//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The thread stage of AMD's chips: ranges of DRAM, copies by waves as wholes, which
// count what is in flight, reads of LDS that turn what they read, and sums of pairs.
// LLVM 22's amdgpu dialect has the copy too, but neither the range's length nor the immediate
// offset can be said there.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERAMDOPS_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERAMDOPS_TD

include "kvbuffer/Dialect/KVBuffer/IR/KVBufferOpBase.td"

def KVBuffer_DramRangeOp : KVBuffer_OpOf<KVBuffer_AMD, "dram_range", [KVBuffer_NamedResults, Pure]> {
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

def KVBuffer_RangeLoadOp : KVBuffer_OpOf<KVBuffer_AMD, "range_load", [MemoryEffects<[MemRead]>]> {
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

def KVBuffer_RangeCopyOp : KVBuffer_OpOf<KVBuffer_AMD, "range_copy", [
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

def KVBuffer_LaneCopyOp : KVBuffer_OpOf<KVBuffer_AMD, "lane_copy", [
    MemoryEffects<[MemRead, MemWrite<KVBuffer_Lds>, MemWrite<KVBuffer_Async>]>]> {
  let summary = "Copies a vector a lane from memory into LDS";
  let description = [{
    Asynchronous. Lane l copies the `bytes` bytes that lie `skip` bytes behind
    element `offset` of `data`, its own `offset`, to byte `at` + l * `bytes` of
    `lds`; `at` is the same in all lanes. One instruction of the wave, as a
    `kvbuffer.range_copy`, but that each lane reads from wherever it likes.

    Example:

    ```mlir
    kvbuffer.lane_copy %k[%offset] to %lds[%at] {bytes = 16 : i64, skip = 64 : i64}
      : memref<bf16>, memref<?xi8, #gpu.address_space<workgroup>>
    ```
  }];
  let arguments = (ins
      Arg<AnyMemRef, "the memory">:$data,
      Arg<Index, "the lane's element in it">:$offset,
      Arg<AnyMemRef, "the memory of the block">:$lds,
      Arg<Index, "the byte of lane 0 in it; the same in all lanes">:$at,
      Arg<I64Attr, "of the vector of a lane">:$bytes,
      Arg<DefaultValuedAttr<I64Attr, "0">, "bytes added to every address">:$skip);
  let assemblyFormat = [{
    $data `[` $offset `]` `to` $lds `[` $at `]` attr-dict `:` type($data) `,` type($lds)
  }];
}

def KVBuffer_BoxCopyOp : KVBuffer_OpOf<KVBuffer_AMD, "box_copy", [
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

def KVBuffer_TurnedReadOp : KVBuffer_OpOf<KVBuffer_AMD, "turned_read", [MemoryEffects<[MemRead<KVBuffer_Lds>]>]> {
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

def KVBuffer_PairSumOp : KVBuffer_OpOf<KVBuffer_AMD, "pair_sum", [
    Pure, AllTypesMatch<["sum", "result"]>]> {
  let summary = "Adds two elements of 16 bits to an f32";
  let description = [{
    sum + pair[0] + pair[1], in f32 and in this order: a product with ones
    (`v_dot2_f32_bf16`, `v_dot2_f32_f16`). Of a sum below the normal numbers of f32
    the chip makes 0; elements below those of f16 are as they are.

    Example:

    ```mlir
    %l1 = kvbuffer.pair_sum %l, %pair : vector<2xbf16>
    ```
  }];
  let arguments = (ins
      Arg<F32, "what there is already">:$sum,
      Arg<VectorOfLengthAndType<[2], [BF16, F16]>, "what is added">:$pair);
  let results = (outs Res<F32, "all three">:$result);
  let assemblyFormat = "$sum `,` $pair attr-dict `:` type($pair)";
}

def KVBuffer_WaveBarrierOp : KVBuffer_OpOf<KVBuffer_AMD, "wave_barrier", [
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

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERAMDOPS_TD
