//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fragments and values that change places among lanes.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERLAYOUTOPS_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERLAYOUTOPS_TD

include "kvbuffer/Dialect/KVBuffer/IR/KVBufferOpBase.td"

def KVBuffer_ExchangeOp : KVBuffer_OpOf<KVBuffer_Fragments, "exchange", [KVBuffer_NamedResults, Pure]> {
  let summary = "A fragment in another layout";
  let description = [{
    The same elements; lanes give each other what the result's layout wants where.
    `kvbuf-distribute-fragments` puts it where a product needs another layout than
    what it multiplies was made in.

    Example:

    ```mlir
    %pb = kvbuffer.exchange %p
      : !kvbuffer.fragment<8x64xbf16, a, #kvbuffer.mma<mma_sync, acc, shape = [16, 8, 16], warps = [1, 1], swapped = true>>
        -> !kvbuffer.fragment<8x64xbf16, a, #kvbuffer.mma<mma_sync, a, shape = [16, 8, 16], warps = [1, 1], swapped = true>>
    ```
  }];
  let arguments = (ins Arg<KVBuffer_FragmentType, "what is held now">:$source);
  let results = (outs Res<KVBuffer_FragmentType, "the same, held otherwise">:$fragment);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($fragment)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def KVBuffer_RowReduceOp
    : KVBuffer_OpOf<KVBuffer_Fragments, "row_reduce", [KVBuffer_NamedResults, Pure]> {
  let summary = "The sum or the maximum of each row";
  let description = [{
    One f32 for each row of the accumulators, of all its columns: also of those
    that other warps hold, which then meet here and hand each other what they have
    through LDS. `kvbuf-distribute-fragments` puts it before a softmax whose scores'
    columns several warps share.

    Example:

    ```mlir
    %largest = kvbuffer.row_reduce maximum %s
      : !kvbuffer.fragment<64x64xf32, acc> -> !kvbuffer.fragment<64x1xf32, row>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_ReductionAttr, "maximum or sum">:$kind,
      Arg<KVBuffer_FragmentType, "accumulators">:$source);
  let results = (outs Res<KVBuffer_FragmentType, "a value for each row">:$row);
  let assemblyFormat =
      "$kind $source attr-dict `:` type($source) `->` type($row)";
  let hasVerifier = 1;
}

def KVBuffer_WarpReduceOp
    : KVBuffer_OpOf<KVBuffer_Fragments, "warp_reduce", [KVBuffer_NamedResults, Pure,
                                  AllTypesMatch<["source", "row"]>]> {
  let summary = "Adds up a running sum's parts in the warps that share columns";
  let description = [{
    The running sum of an online softmax is kept in parts: each lane adds up the
    weights that it computes. What ends the softmax adds up the lanes of a warp;
    this adds up the warps before, where several share a row's columns, through
    LDS and in one order, so that all get the same bits. On whole tiles, where a
    row has one sum, it is that sum. Nothing but `kvbuffer.softmax_finish` and
    `kvbuffer.partial_store` may use the result, as more steps would count it
    once for each warp. `kvbuf-distribute-fragments` puts it where it is needed.

    Example:

    ```mlir
    %whole = kvbuffer.warp_reduce %l : !kvbuffer.fragment<64x1xf32, row>
    %o, %lse = kvbuffer.softmax_finish %a, %m, %whole {scale = 0.125 : f32}
      : !kvbuffer.fragment<64x128xf32, acc>, !kvbuffer.fragment<64x1xf32, row>
    ```
  }];
  let arguments = (ins Arg<KVBuffer_FragmentType, "a running sum">:$source);
  let results = (outs Res<KVBuffer_FragmentType, "of all the warps">:$row);
  let assemblyFormat = "$source attr-dict `:` type($source)";
  let hasVerifier = 1;
}

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERLAYOUTOPS_TD
