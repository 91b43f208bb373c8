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

def KVBuffer_FragmentFillOp : KVBuffer_Op<"fragment_fill", [KVBuffer_NamedResults, Pure]> {
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

def KVBuffer_FragmentSliceOp : KVBuffer_Op<"fragment_slice", [KVBuffer_NamedResults, Pure]> {
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

def KVBuffer_MmaOp : KVBuffer_Op<"mma", [KVBuffer_NamedResults,
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

def KVBuffer_FragmentConvertOp : KVBuffer_Op<"fragment_convert", [KVBuffer_NamedResults, Pure]> {
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

def KVBuffer_SoftcapOp : KVBuffer_Op<"softcap", [KVBuffer_NamedResults,
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

def KVBuffer_FragmentScaleOp : KVBuffer_Op<"fragment_scale", [KVBuffer_NamedResults,
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

def KVBuffer_MaskOp : KVBuffer_Op<"mask", [KVBuffer_NamedResults,
    Pure, AllTypesMatch<["scores", "result"]>]> {
  let summary = "Hides keys: their scores become -inf";
  let description = [{
    The scores of query rows `row` and on (of `queries`) with keys `key` and on
    (of `keys`). Hidden are the keys past `keys` and those that `mask` hides.
    With `group`, every `group` rows are one query (see `kvbuffer.dram_tile`).

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
      Arg<DefaultValuedAttr<I64Attr, "1">, "rows that are one query">:$group);
  let results = (outs Res<KVBuffer_FragmentType, "scores, -inf where hidden">:$result);
  let assemblyFormat = [{
    $scores `rows` `(` $row `,` $queries `)` `keys` `(` $key `,` $keys `)`
    attr-dict `:` type($scores)
  }];
  let hasVerifier = 1;
}

def KVBuffer_OnlineSoftmaxOp
    : KVBuffer_Op<"online_softmax",
                  [Pure,
                   AllTypesMatch<["max", "newMax", "sum", "newSum", "rescale"]>,
                   OptionalTypesMatchWith<"row_max and max have the same type",
                                          "max", "row_max", "$_self">]> {
  let summary = "One step of the online softmax";
  let description = [{
    m' = max(m, rowmax s); p = exp(scale * (s - m')); rescale = exp(scale * (m -
    m')); l' = l * rescale + rowsum p. In base 2 with one fused multiply-add per
    score; `rescale` is exactly 1 where m' = m. `masked` says that scores may be
    -inf: a row whose maximum is -inf gives p = 0. Without it every score is finite;
    it is dropped where the scores come straight from the matrix unit. P has the
    type of the operand that it becomes. `row_max` is rowmax s, where it is known:
    where several warps share the scores' columns, it has to be
    (`kvbuffer.row_reduce`). `not_negative` says that no row's m has its sign bit
    set, which makes m' the largest of s and m as integers, too: floating-point
    numbers that are not negative have the order of their bits, and negative ones
    are negative integers (`kvbuf-integer-maxima`).

    p is multiplied by `gain`, a power of two that is 1 where nothing else is said,
    so that an operand of few exponents has small weights, too; l' is the sum
    without it.

    Base 2 rounds scale * m', and past some 4e9 by more than an exponent bears.
    `unbounded` says that scores may be of any size, like those that a function has
    made (f32's lowest number for keys to be ignored): a row whose scale * m' is
    that large has powers of another base, where nothing is rounded; scores that
    differ at all are so far apart there that their weights are 1 and 0 in either.
    All ops of one softmax have `unbounded`, or none. For a scale of 1 or less
    every finite score will do.

    Example:

    ```mlir
    %p, %m1, %l1, %r = kvbuffer.online_softmax %s, %m, %l {scale = 0.125 : f32, masked}
      : !kvbuffer.fragment<128x64xf32, acc>, !kvbuffer.fragment<128x1xf32, row>
        -> !kvbuffer.fragment<128x64xbf16, a>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_FragmentType, "accumulators: a row a query, a column a key">:$scores,
      Arg<KVBuffer_FragmentType, "each row's largest score so far">:$max,
      Arg<KVBuffer_FragmentType, "each row's sum of weights so far">:$sum,
      Arg<F32Attr, "what scores are multiplied by">:$scale,
      Arg<UnitAttr, "scores may be -inf">:$masked,
      Arg<Optional<KVBuffer_FragmentType>,
          "the largest score of each row">:$row_max,
      Arg<UnitAttr, "no row's maximum has its sign bit set">:$not_negative,
      Arg<UnitAttr, "scores may be of any size">:$unbounded,
      Arg<OptionalAttr<F32Attr>, "what weights are multiplied by">:$gain);
  let results = (outs
      Res<KVBuffer_FragmentType, "weights, in the type of the operand that they become">:$p,
      Res<KVBuffer_FragmentType, "each row's largest score, these included">:$newMax,
      Res<KVBuffer_FragmentType, "each row's sum, these weights included">:$newSum,
      Res<KVBuffer_FragmentType, "what accumulated rows are multiplied by">:$rescale);
  let builders = [
      // Of a step that finds the largest scores itself.
      OpBuilder<(ins "::mlir::Type":$p, "::mlir::Type":$newMax,
                    "::mlir::Type":$newSum, "::mlir::Type":$rescale,
                    "::mlir::Value":$scores, "::mlir::Value":$max,
                    "::mlir::Value":$sum, "::mlir::FloatAttr":$scale,
                    "::mlir::UnitAttr":$masked, "::mlir::UnitAttr":$unbounded),
                [{
      build($_builder, $_state, p, newMax, newSum, rescale, scores, max, sum,
            scale, masked, /*row_max=*/::mlir::Value(),
            /*not_negative=*/::mlir::UnitAttr(), unbounded,
            /*gain=*/::mlir::FloatAttr());
    }]>];
  let extraClassDeclaration = [{
    /// What weights are multiplied by.
    float gainOfWeights() {
      return getGain() ? getGain()->convertToFloat() : 1.0f;
    }
  }];
  let assemblyFormat = [{
    $scores `,` $max `,` $sum (`row_max` `(` $row_max^ `)`)? attr-dict
    `:` type($scores) `,` type($max) `->` type($p)
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def KVBuffer_RescaleOp : KVBuffer_Op<"rescale", [KVBuffer_NamedResults,
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

def KVBuffer_SoftmaxFinishOp : KVBuffer_Op<"softmax_finish", [
    Pure, AttrSizedOperandSegments, AllTypesMatch<["acc", "result"]>,
    AllTypesMatch<["max", "sum", "lse"]>,
    OptionalTypesMatchWith<"excess and max have the same type", "max", "excess",
                           "$_self">]> {
  let summary = "Normalizes an attention accumulator";
  let description = [{
    O = acc / l and LSE = scale * m + ln l; rows without a key give 0 and -inf.
    With `sink`, exp(sink) joins the denominator. With `excess`, which is what
    rounding has added to the weights (`kvbuffer.carry_excess`), O = acc / (l +
    excess); the LSE knows nothing of it. `unbounded` is that of
    `kvbuffer.online_softmax`.

    Example:

    ```mlir
    %o, %lse = kvbuffer.softmax_finish %a, %m, %l {scale = 0.125 : f32}
      : !kvbuffer.fragment<128x128xf32, acc>, !kvbuffer.fragment<128x1xf32, row>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_FragmentType, "the weighted sum of values">:$acc,
      Arg<KVBuffer_FragmentType, "each row's largest score">:$max,
      Arg<KVBuffer_FragmentType, "each row's sum of weights">:$sum,
      Arg<Optional<KVBuffer_FragmentType>, "what rounding has added to the weights">:$excess,
      Arg<Optional<F32>, "a score that joins the denominator">:$sink,
      Arg<F32Attr, "what scores are multiplied by">:$scale,
      Arg<UnitAttr, "scores may be of any size (`kvbuffer.online_softmax`)">:$unbounded);
  let results = (outs
      Res<KVBuffer_FragmentType, "the normalized output">:$result,
      Res<KVBuffer_FragmentType, "each row's log-sum-exp">:$lse);
  let assemblyFormat = [{
    $acc `,` $max `,` $sum (`excess` `(` $excess^ `)`)?
    (`sink` `(` $sink^ `)`)? attr-dict `:` type($acc) `,` type($max)
  }];
  let hasVerifier = 1;
}

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERFRAGMENTOPS_TD
