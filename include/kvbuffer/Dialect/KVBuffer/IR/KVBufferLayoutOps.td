//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fragments and values that change places among lanes. Included by
// KVBufferOps.td.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERLAYOUTOPS_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERLAYOUTOPS_TD

def KVBuffer_ExchangeOp : KVBuffer_Op<"exchange", [KVBuffer_NamedResults, Pure]> {
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

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERLAYOUTOPS_TD
