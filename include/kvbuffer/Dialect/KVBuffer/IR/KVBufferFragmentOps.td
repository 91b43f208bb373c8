//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fragments: what products take and give, and what is done with scores between
// two products.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERFRAGMENTOPS_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERFRAGMENTOPS_TD

include "kvbuffer/Dialect/KVBuffer/IR/KVBufferOpBase.td"

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

def KVBuffer_FragmentFillOp : KVBuffer_OpOf<KVBuffer_Fragments, "fragment_fill", [KVBuffer_NamedResults, Pure]> {
  let summary = "A fragment of one value";
  let description = [{
    Example:

    ```mlir
    %zero = kvbuffer.fragment_fill 0.000000e+00 : !kvbuffer.fragment<128x64xf32, acc>
    ```
  }];
  let arguments = (ins Arg<F32Attr, "of every element">:$value);
  let results = (outs Res<KVBuffer_FragmentType, "the fragment">:$fragment);
  let assemblyFormat = "$value attr-dict `:` type($fragment)";
}

def KVBuffer_FragmentSliceOp : KVBuffer_OpOf<KVBuffer_Fragments, "fragment_slice", [KVBuffer_NamedResults, Pure]> {
  let summary = "A part of a fragment (seed mma_tile_at)";
  let description = [{
    The part of the result's size at (`row`, `col`). No data moves.

    Example:

    ```mlir
    %p0 = kvbuffer.fragment_slice %p [0, 16]
      : !kvbuffer.fragment<128x64xbf16, a> -> !kvbuffer.fragment<128x16xbf16, a>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_FragmentType, "the whole">:$source,
      Arg<I64Attr, "the first row">:$row,
      Arg<I64Attr, "the first column">:$col);
  let results = (outs Res<KVBuffer_FragmentType, "the part">:$fragment);
  let assemblyFormat = [{
    $source `[` $row `,` $col `]` attr-dict `:` type($source) `->` type($fragment)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def KVBuffer_MmaOp : KVBuffer_OpOf<KVBuffer_Fragments, "mma", [KVBuffer_NamedResults,
    Pure, AllTypesMatch<["acc", "result"]>]> {
  let summary = "Multiplies fragments: acc + a * b (seed KVMmaOp.mma)";
  let description = [{
    `transpose_b`: b's rows are the result's columns, so the product is a * b^T;
    otherwise b's rows are contracted. The product is added to the
    accumulator's columns from `column` on; the others stay. Whether the machine
    computes the transposed product is the schedule's `swap_a_b`.

    Example:

    ```mlir
    %s = kvbuffer.mma %q, %k, %zero {transpose_b}
      : !kvbuffer.fragment<128x16xbf16, a>, !kvbuffer.fragment<64x16xbf16, b>,
        !kvbuffer.fragment<128x64xf32, acc>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_FragmentType, "rows of the product">:$a,
      Arg<KVBuffer_FragmentType, "columns of the product">:$b,
      Arg<KVBuffer_FragmentType, "what the product is added to">:$acc,
      Arg<UnitAttr, "b's rows are the product's columns">:$transpose_b,
      Arg<DefaultValuedAttr<I64Attr, "0">, "the accumulator's first column">:$column);
  let results = (outs Res<KVBuffer_FragmentType, "acc + a * b">:$result);
  let assemblyFormat = [{
    $a `,` $b `,` $acc attr-dict `:` type($a) `,` type($b) `,` type($acc)
  }];
  let hasVerifier = 1;
}

def KVBuffer_FragmentConvertOp : KVBuffer_OpOf<KVBuffer_Fragments, "fragment_convert", [KVBuffer_NamedResults, Pure]> {
  let summary = "Rounds a fragment to another element type or role";
  let description = [{
    To the nearest, ties to even. An accumulator becomes an `a` operand without
    any lane shuffle where the layouts allow it, which the lowering checks, and a
    `b` operand, of one warp, of the same rows and columns.

    Example:

    ```mlir
    %o16 = kvbuffer.fragment_convert %o
      : !kvbuffer.fragment<128x128xf32, acc> -> !kvbuffer.fragment<128x128xbf16, acc>
    ```
  }];
  let arguments = (ins Arg<KVBuffer_FragmentType, "what is rounded">:$source);
  let results = (outs
      Res<KVBuffer_FragmentType, "the same values in another type or role">:$fragment);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($fragment)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Scores and softmax
//===----------------------------------------------------------------------===//

def KVBuffer_SoftcapOp : KVBuffer_OpOf<KVBuffer_Fragments, "softcap", [KVBuffer_NamedResults,
    Elementwise, Pure, AllTypesMatch<["scores", "result"]>]> {
  let summary = "cap * tanh(scale * s / cap)";
  let description = [{
    Example:

    ```mlir
    %c = kvbuffer.softcap %s {scale = 0.125 : f32, cap = 50.0 : f32}
      : !kvbuffer.fragment<128x64xf32, acc>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_FragmentType, "accumulators: a row a query, a column a key">:$scores,
      Arg<F32Attr, "what scores are multiplied by">:$scale,
      Arg<F32Attr, "what no score exceeds">:$cap);
  let results = (outs Res<KVBuffer_FragmentType, "capped scores">:$result);
  let assemblyFormat = "$scores attr-dict `:` type($scores)";
  let hasVerifier = 1;
}

def KVBuffer_FragmentScaleOp : KVBuffer_OpOf<KVBuffer_Fragments, "fragment_scale", [KVBuffer_NamedResults,
    Elementwise, Pure, AllTypesMatch<["source", "result"]>]> {
  let summary = "Multiplies a fragment by a number";
  let description = [{
    For scales that the softmax cannot take, because it finds the maximum before
    it scales: those that are not positive.

    Example:

    ```mlir
    %c = kvbuffer.fragment_scale %s {factor = -0.125 : f32}
      : !kvbuffer.fragment<128x64xf32, acc>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_FragmentType, "a fragment">:$source,
      Arg<F32Attr, "the number">:$factor);
  let results = (outs Res<KVBuffer_FragmentType, "the product">:$result);
  let assemblyFormat = "$source attr-dict `:` type($source)";
  let hasVerifier = 1;
}

def KVBuffer_MaskOp : KVBuffer_OpOf<KVBuffer_Fragments, "mask", [KVBuffer_NamedResults,
    Pure, AllTypesMatch<["scores", "result"]>]> {
  let summary = "Hides keys: their scores become -inf";
  let description = [{
    The scores of query rows `row` and on (of `queries`) with keys `key` and on
    (of `keys`). Hidden are the keys past `keys` and those that `mask` hides.
    With `group`, every `group` rows are one query (see `kvbuffer.dram_tile`).
    `seldom` says that few tiles have keys past `keys`: a warp asks for that first,
    and leaves the scores of the others as they are. The mask hides none then.

    Example:

    ```mlir
    %h = kvbuffer.mask %s rows(%row, %queries) keys(%key, %keys)
      {mask = #kvbuffer.mask<causal = true>} : !kvbuffer.fragment<128x64xf32, acc>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_FragmentType, "accumulators: a row a query, a column a key">:$scores,
      Arg<Index, "the first query">:$row,
      Arg<Index, "queries of the sequence">:$queries,
      Arg<Index, "the first key">:$key,
      Arg<Index, "keys of the sequence">:$keys,
      Arg<KVBuffer_MaskAttr, "which keys a query sees">:$mask,
      Arg<DefaultValuedAttr<I64Attr, "1">, "rows that are one query">:$group,
      Arg<UnitAttr, "few tiles have keys past the last one">:$seldom);
  let results = (outs Res<KVBuffer_FragmentType, "scores, -inf where hidden">:$result);
  let assemblyFormat = [{
    $scores `rows` `(` $row `,` $queries `)` `keys` `(` $key `,` $keys `)`
    attr-dict `:` type($scores)
  }];
  let hasVerifier = 1;
}

def KVBuffer_RescaleOp : KVBuffer_OpOf<KVBuffer_Fragments, "rescale", [KVBuffer_NamedResults,
    Pure, AllTypesMatch<["acc", "result"]>,
    OptionalTypesMatchWith<"addend and acc have the same type", "acc", "addend",
                           "$_self">]> {
  let summary = "Multiplies each row of an accumulator by a value";
  let description = [{
    With `plus` an accumulator is added to the product, which is not rounded
    before.

    Example:

    ```mlir
    %a1 = kvbuffer.rescale %a, %r
      : !kvbuffer.fragment<128x128xf32, acc>, !kvbuffer.fragment<128x1xf32, row>
    %a2 = kvbuffer.rescale %a, %r plus %t
      : !kvbuffer.fragment<128x128xf32, acc>, !kvbuffer.fragment<128x1xf32, row>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_FragmentType, "an accumulator">:$acc,
      Arg<KVBuffer_FragmentType, "a value for each row">:$factor,
      Arg<Optional<KVBuffer_FragmentType>, "what is added">:$addend);
  let results = (outs Res<KVBuffer_FragmentType, "the product">:$result);
  let builders = [
      OpBuilder<(ins "::mlir::Value":$acc, "::mlir::Value":$factor), [{
      build($_builder, $_state, acc.getType(), acc, factor, ::mlir::Value());
    }]>];
  let assemblyFormat = [{
    $acc `,` $factor (`plus` $addend^)? attr-dict `:` type($acc) `,`
    type($factor)
  }];
  let hasVerifier = 1;
}

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERFRAGMENTOPS_TD
