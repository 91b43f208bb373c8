//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The thread stage of machines whose waves copy from DRAM into LDS as wholes
// and count what is in flight. LLVM 22's amdgpu dialect has the copy too, but
// neither the range's length nor the immediate offset can be said there.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERLANEOPS_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERLANEOPS_TD

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
  let arguments = (ins AnyMemRef:$data, Index:$offset, I32:$bytes);
  let results = (outs KVBuffer_RangeType:$range);
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
  let arguments = (ins KVBuffer_RangeType:$range, I32:$offset);
  let results = (outs AnyVectorOfNonZeroRank:$result);
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
  let arguments = (ins KVBuffer_RangeType:$range, I32:$offset, AnyMemRef:$lds,
                       Index:$at, I64Attr:$bytes,
                       DefaultValuedAttr<I64Attr, "0">:$skip);
  let assemblyFormat = [{
    $range `[` $offset `]` `to` $lds `[` $at `]` attr-dict `:` type($lds)
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

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERLANEOPS_TD
