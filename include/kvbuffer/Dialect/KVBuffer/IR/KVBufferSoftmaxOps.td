//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The softmax: of scores tile by tile, what several come to, and the parts that it is
// cut into where it runs beside both products.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERSOFTMAXOPS_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERSOFTMAXOPS_TD

include "kvbuffer/Dialect/KVBuffer/IR/KVBufferOpBase.td"

//===----------------------------------------------------------------------===//
// The online softmax
//===----------------------------------------------------------------------===//

def KVBuffer_OnlineSoftmaxOp
    : KVBuffer_OpOf<KVBuffer_Softmax, "online_softmax",
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

def KVBuffer_SoftmaxFinishOp : KVBuffer_OpOf<KVBuffer_Softmax, "softmax_finish", [
    Pure, AttrSizedOperandSegments, AllTypesMatch<["acc", "result"]>,
    AllTypesMatch<["max", "sum", "lse"]>,
    OptionalTypesMatchWith<"excess and max have the same type", "max", "excess",
                           "$_self">]> {
  let summary = "Normalizes an attention accumulator";
  let description = [{
    O = acc / l and LSE = scale * m + ln l; rows without a key give 0 and -inf.
    With `sink`, exp(sink) joins the denominator; an infinite one makes O = 0 and
    LSE infinite. With `excess`, which is what
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

def KVBuffer_SoftmaxMergeOp : KVBuffer_OpOf<KVBuffer_Softmax, "softmax_merge", [Pure,
    AllTypesMatch<["acc", "otherAcc", "newAcc"]>,
    AllTypesMatch<["max", "sum", "otherMax", "otherSum", "newMax", "newSum"]>]> {
  let summary = "Joins the softmaxes over two sets of keys";
  let description = [{
    m' = max(m, n); acc' = acc * exp(scale * (m - m')) + other * exp(scale * (n -
    m')), and the sums alike. What a partial result without a key contributes
    (maximum -inf, sum 0) is exactly nothing. The order of two partial results
    does not matter, that of three does, by rounding. Merges of merges that nothing
    else uses are one by lanes, as far as registers hold all that is merged: each
    partial result is scaled once, by the largest maximum. `unbounded` is that of
    `kvbuffer.online_softmax`. With `as_stored` the bits are those that
    `kvbuffer.partial_join` has of both, stored one behind the other: lanes add up
    what they have of a row's sum first.

    Example:

    ```mlir
    %a, %m, %l = kvbuffer.softmax_merge %a0, %m0, %l0 with %a1, %m1, %l1 {scale = 0.125 : f32}
      : !kvbuffer.fragment<16x128xf32, acc>, !kvbuffer.fragment<16x1xf32, row>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_FragmentType, "the weighted sum of values over the first keys">:$acc,
      Arg<KVBuffer_FragmentType, "each row's maximum over these">:$max,
      Arg<KVBuffer_FragmentType, "each row's sum over these">:$sum,
      Arg<KVBuffer_FragmentType, "the weighted sum of values over the other keys">:$otherAcc,
      Arg<KVBuffer_FragmentType, "each row's maximum over those">:$otherMax,
      Arg<KVBuffer_FragmentType, "each row's sum over those">:$otherSum,
      Arg<F32Attr, "what scores are multiplied by">:$scale,
      Arg<UnitAttr, "scores may be of any size (`kvbuffer.online_softmax`)">:$unbounded,
      Arg<UnitAttr, "bits are those of a `kvbuffer.partial_join`">:$as_stored);
  let results = (outs
      Res<KVBuffer_FragmentType, "the weighted sum of values over both">:$newAcc,
      Res<KVBuffer_FragmentType, "each row's maximum over both">:$newMax,
      Res<KVBuffer_FragmentType, "each row's sum over both">:$newSum);
  let assemblyFormat = [{
    $acc `,` $max `,` $sum `with` $otherAcc `,` $otherMax `,` $otherSum attr-dict
    `:` type($acc) `,` type($max)
  }];
  let hasVerifier = 1;
}

def KVBuffer_SoftmaxSinkOp : KVBuffer_OpOf<KVBuffer_Softmax, "softmax_sink", [
    MemoryEffects<[MemRead]>, AllTypesMatch<["acc", "newAcc"]>,
    AllTypesMatch<["max", "sum", "newMax", "newSum"]>]> {
  let summary = "Joins a key whose score each row reads and whose value is 0";
  let description = [{
    The score of row r, scaled already, is the element of `sinks` at `indices`
    with r % `group` added to the last of them; so it adds exp(score) to the
    row's sum. -inf adds nothing; inf, or a score that becomes it where it is
    divided by the scale, makes the row one of the largest maximum, for which
    `kvbuffer.softmax_finish` gives 0 and inf. `unbounded` is that of
    `kvbuffer.online_softmax`.

    Example:

    ```mlir
    %a, %m, %l = kvbuffer.softmax_sink %a0, %m0, %l0 scores(%sink[%head]) {scale = 0.125 : f32, group = 4 : i64}
      : !kvbuffer.fragment<16x128xf32, acc>, !kvbuffer.fragment<16x1xf32, row>, memref<32xf32>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_FragmentType, "the weighted sum of values">:$acc,
      Arg<KVBuffer_FragmentType, "each row's largest score so far">:$max,
      Arg<KVBuffer_FragmentType, "each row's sum of weights so far">:$sum,
      Arg<MemRefOf<[F32]>, "scores, scaled">:$sinks,
      Arg<Variadic<Index>, "that of row 0">:$indices,
      Arg<F32Attr, "what scores are multiplied by">:$scale,
      Arg<DefaultValuedAttr<I64Attr, "1">, "rows whose scores lie side by side">:$group,
      Arg<UnitAttr, "scores may be of any size (`kvbuffer.online_softmax`)">:$unbounded);
  let results = (outs
      Res<KVBuffer_FragmentType, "the same, relative to the new maxima">:$newAcc,
      Res<KVBuffer_FragmentType, "each row's maximum, the sink included">:$newMax,
      Res<KVBuffer_FragmentType, "each row's sum, the sink included">:$newSum);
  let assemblyFormat = [{
    $acc `,` $max `,` $sum `scores` `(` $sinks `[` $indices `]` `)` attr-dict
    `:` type($acc) `,` type($max) `,` type($sinks)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// The same in two parts
//===----------------------------------------------------------------------===//

def KVBuffer_RaiseMaxOp : KVBuffer_OpOf<KVBuffer_Softmax, "raise_max", [
    Pure, AllTypesMatch<["max", "newMax", "factor"]>]> {
  let summary = "Raises the rows' maxima where scores have left them behind";
  let description = [{
    Where scale * (rowmax s - m) > ln 256 in any row of a group, in all rows of
    that group m' = max(m, rowmax s), factor = exp(scale * (m - m')), and `raised`
    holds. Elsewhere m' = m and factor = 1: the weights that come of such an m are
    at most 256, which neither fp32 sums nor 16-bit operands mind. Which rows are
    a group is the machine's choice, a warp's as a rule, so that a row's result
    depends, in its last bits, on its neighbours. Where `exact` holds, any rowmax
    s > m raises: the maximum of few scores says little of those that follow, and
    a largest weight of 1 needs no rounding. `exact_only` leaves all other tiles as
    they are, without a look at their scores, but for those of a group with a row
    that has no key yet (m = -inf): `kvbuffer.softmax_settle` notices what m is too
    low for.

    `unbounded` is that of `kvbuffer.online_softmax`. Where a row's |scale * m| in
    base 2 is 2^20 or more, any larger score raises: the product is rounded by too
    much there to tell by how much a score is above. It does not go with
    `exact_only`.

    Most tiles raise nothing, and then cost a comparison instead of a
    multiplication of every accumulator.

    Example:

    ```mlir
    %m1, %f, %raised = kvbuffer.raise_max %s, %m exact(%few) {scale = 0.125 : f32}
      : !kvbuffer.fragment<128x64xf32, acc>, !kvbuffer.fragment<128x1xf32, row>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_FragmentType, "accumulators: a row a query, a column a key">:$scores,
      Arg<KVBuffer_FragmentType, "each row's largest score so far">:$max,
      Arg<Optional<I1>, "whether any larger score raises">:$exact,
      Arg<F32Attr, "what scores are multiplied by">:$scale,
      Arg<UnitAttr, "else nothing raises but a row's first key">:$exact_only,
      Arg<UnitAttr, "scores may be of any size (`kvbuffer.online_softmax`)">:$unbounded);
  let results = (outs
      Res<KVBuffer_FragmentType, "the maxima that weights are relative to">:$newMax,
      Res<KVBuffer_FragmentType, "what accumulated rows are multiplied by">:$factor,
      Res<I1, "whether a row of the group was raised">:$raised);
  let assemblyFormat = [{
    $scores `,` $max (`exact` `(` $exact^ `)`)? attr-dict
    `:` type($scores) `,` type($max)
  }];
  let hasVerifier = 1;
}

def KVBuffer_ApplyRaiseOp : KVBuffer_OpOf<KVBuffer_Softmax, "apply_raise", [
    Pure, AllTypesMatch<["factor", "sum", "newSum"]>,
    AllTypesMatch<["acc", "newAcc"]>]> {
  let summary = "Rescales what was accumulated under lower maxima";
  let description = [{
    acc' = acc * factor and l' = l * factor where `raised` holds, else both as they
    are.

    Example:

    ```mlir
    %a1, %l1 = kvbuffer.apply_raise %raised, %f, %a, %l
      : !kvbuffer.fragment<128x128xf32, acc>, !kvbuffer.fragment<128x1xf32, row>
    ```
  }];
  let arguments = (ins
      Arg<I1, "whether anything is to be done">:$raised,
      Arg<KVBuffer_FragmentType, "a value for each row">:$factor,
      Arg<KVBuffer_FragmentType, "the weighted sum of values">:$acc,
      Arg<KVBuffer_FragmentType, "each row's sum of weights so far">:$sum);
  let results = (outs
      Res<KVBuffer_FragmentType, "rescaled">:$newAcc,
      Res<KVBuffer_FragmentType, "rescaled">:$newSum);
  let assemblyFormat = [{
    $raised `,` $factor `,` $acc `,` $sum attr-dict
    `:` type($acc) `,` type($sum)
  }];
}

def KVBuffer_SoftmaxHeadOp : KVBuffer_OpOf<KVBuffer_Softmax, "softmax_head", [
    Pure, AllTypesMatch<["scores", "exponents"]>,
    AllTypesMatch<["max", "excess"]>]> {
  let summary = "The first part of a softmax relative to given maxima";
  let description = [{
    x = scale * (s - m) in base 2, and exp2(x) already for the first part of each
    lane's columns: as much as runs beside one of the two products. Which columns
    these are is between this op and `kvbuffer.softmax_tail`. A row whose maximum
    is -inf has no key yet; without `masked` there is none. `exponents_only` leaves
    all of x as it is, for `kvbuffer.softmax_settle`. `unbounded` is that of
    `kvbuffer.online_softmax`.

    A maximum that is behind the scores makes the largest weight some number that
    the operand's type, `operand`, has to round, where it would be 1. `excess` is
    what the rounding adds to the largest weights (of each lane, or of the row):
    an output divided by a sum with it is, in a row that one key decides, as exact
    as that key. It goes into the sum by `kvbuffer.softmax_tail`, or beside it by
    `kvbuffer.carry_excess`.

    Example:

    ```mlir
    %x, %e = kvbuffer.softmax_head %s, %m {scale = 0.125 : f32, operand = bf16, masked}
      : !kvbuffer.fragment<128x64xf32, acc>, !kvbuffer.fragment<128x1xf32, row>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_FragmentType, "accumulators: a row a query, a column a key">:$scores,
      Arg<KVBuffer_FragmentType, "what weights are relative to">:$max,
      Arg<F32Attr, "what scores are multiplied by">:$scale,
      Arg<TypeAttrOf<AnyTypeOf<[BF16, F16]>>, "the type that weights are rounded to">:$operand,
      Arg<UnitAttr, "a row may have no key yet">:$masked,
      Arg<UnitAttr, "no weights yet">:$exponents_only,
      Arg<UnitAttr, "scores may be of any size (`kvbuffer.online_softmax`)">:$unbounded);
  let results = (outs
      Res<KVBuffer_FragmentType, "exponents, and weights of the first part of columns">:$exponents,
      Res<KVBuffer_FragmentType, "what rounding adds to the largest weights">:$excess);
  let assemblyFormat = [{
    $scores `,` $max attr-dict `:` type($scores) `,` type($max)
  }];
  let hasVerifier = 1;
}

def KVBuffer_SoftmaxTailOp : KVBuffer_OpOf<KVBuffer_Softmax, "softmax_tail", [
    Pure, AllTypesMatch<["sum", "newSum"]>,
    OptionalTypesMatchWith<"excess and sum have the same type", "sum", "excess",
                           "$_self">]> {
  let summary = "The weights and their sums";
  let description = [{
    p = exp2(x) for what `kvbuffer.softmax_head` has left as exponents; l' = l +
    rowsum p, plus `excess` where it is given. P has the type of the operand that
    it becomes. `rounded` says that l' is the sum of the weights as that operand
    rounds them, which is what O is to be divided by; there is no `excess` then. It
    is for chips that add pairs of such elements up (`TargetInfo::pairSums`).

    Example:

    ```mlir
    %p, %l1 = kvbuffer.softmax_tail %x, %l excess(%e)
      : !kvbuffer.fragment<128x64xf32, acc>, !kvbuffer.fragment<128x1xf32, row>
        -> !kvbuffer.fragment<128x64xbf16, a>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_FragmentType, "what `kvbuffer.softmax_head` has left">:$exponents,
      Arg<KVBuffer_FragmentType, "each row's sum of weights so far">:$sum,
      Arg<Optional<KVBuffer_FragmentType>, "joins the sum">:$excess,
      Arg<UnitAttr, "the sum is of weights as they are rounded">:$rounded);
  let results = (outs
      Res<KVBuffer_FragmentType, "weights, in the type of the operand that they become">:$p,
      Res<KVBuffer_FragmentType, "each row's sum, these weights included">:$newSum);
  let assemblyFormat = [{
    $exponents `,` $sum (`excess` `(` $excess^ `)`)? attr-dict
    `:` type($exponents) `,` type($sum) `->` type($p)
  }];
  let hasVerifier = 1;
}

def KVBuffer_SoftmaxSettleOp : KVBuffer_OpOf<KVBuffer_Softmax, "softmax_settle", [
    Pure, AllTypesMatch<["exponents", "all"]>,
    AllTypesMatch<["max", "sum", "newMax", "newSum"]>,
    AllTypesMatch<["acc", "newAcc"]>]> {
  let summary = "The weights and their sums, where maxima may be far too low";
  let description = [{
    What `kvbuffer.softmax_tail` with `rounded` does, of maxima m that nobody has
    compared with the scores. The sum of the weights tells: as long as the tile's
    comes to 256 at most, no weight is larger, m' = m and acc' = acc. Where it comes
    to more in a row of a group, in all rows of that group the weights are computed
    anew of all exponents x (`exponents_only`), relative to their largest: t = max(0,
    rowmax x), p = exp2(x - t), m' = m + t in the scores' unit, and l and acc are
    multiplied by exp2(-t) first. Which rows are a group, and which of a row's
    columns are added up for that, is the machine's choice, as in
    `kvbuffer.raise_max`.

    So most tiles need no maximum, for exponents that stay in registers for longer.

    Example:

    ```mlir
    %p, %m1, %l1, %a1 = kvbuffer.softmax_settle %x, %all, %m, %l, %a {scale = 0.125 : f32}
      : !kvbuffer.fragment<128x64xf32, acc>, !kvbuffer.fragment<128x1xf32, row>, !kvbuffer.fragment<128x64xf32, acc>
        -> !kvbuffer.fragment<128x64xbf16, a>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_FragmentType, "what `kvbuffer.softmax_head` has left">:$exponents,
      Arg<KVBuffer_FragmentType, "the same with `exponents_only`">:$all,
      Arg<KVBuffer_FragmentType, "the maxima that they are relative to">:$max,
      Arg<KVBuffer_FragmentType, "each row's sum of weights so far">:$sum,
      Arg<KVBuffer_FragmentType, "the weighted sum of values so far">:$acc,
      Arg<F32Attr, "what scores are multiplied by">:$scale);
  let results = (outs
      Res<KVBuffer_FragmentType, "weights, in the type of the operand that they become">:$p,
      Res<KVBuffer_FragmentType, "the maxima that they are relative to">:$newMax,
      Res<KVBuffer_FragmentType, "each row's sum, these weights included">:$newSum,
      Res<KVBuffer_FragmentType, "the weighted sum so far, under those maxima">:$newAcc);
  let assemblyFormat = [{
    $exponents `,` $all `,` $max `,` $sum `,` $acc attr-dict
    `:` type($exponents) `,` type($max) `,` type($acc) `->` type($p)
  }];
  let hasVerifier = 1;
}

def KVBuffer_CarryExcessOp : KVBuffer_OpOf<KVBuffer_Softmax, "carry_excess", [
    Pure, AllTypesMatch<["carried", "factor", "excess", "newCarried"]>]> {
  let summary = "What rounding has added to weights so far, beside their sum";
  let description = [{
    c' = c * factor + excess. Where nothing was raised `factor` is 1, so that this
    needs no branch. `kvbuffer.softmax_finish` puts c together with the sum, which
    stays that of the weights as they are: the one of which a log-sum-exp is.

    Example:

    ```mlir
    %c1 = kvbuffer.carry_excess %c, %f, %e : !kvbuffer.fragment<128x1xf32, row>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_FragmentType, "the excess so far">:$carried,
      Arg<KVBuffer_FragmentType, "what rows were rescaled by">:$factor,
      Arg<KVBuffer_FragmentType, "that of this tile">:$excess);
  let results = (outs Res<KVBuffer_FragmentType, "carried * factor + excess">:$newCarried);
  let assemblyFormat = [{
    $carried `,` $factor `,` $excess attr-dict `:` type($carried)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Loops that depend on what maxima are
//===----------------------------------------------------------------------===//

def KVBuffer_AnyNegativeOp : KVBuffer_OpOf<KVBuffer_Softmax, "any_negative", [KVBuffer_Together]> {
  let summary = "Whether a row's value has its sign bit set";
  let description = [{
    Warps that multiply together get one answer, about the rows of all of them,
    and meet for it: they may branch on it, also around products. Other warps may
    get another answer. -0 has its sign bit set. In a team of a kernel with rings.

    Example:

    ```mlir
    %some = kvbuffer.any_negative %m : !kvbuffer.fragment<128x1xf32, row>
    ```
  }];
  let arguments = (ins Arg<KVBuffer_FragmentType,
                           "a value for each row, f32">:$rows);
  let results = (outs Res<I1, "whether a value has its sign bit set">:$any);
  let assemblyFormat = "$rows attr-dict `:` type($rows)";
  let hasVerifier = 1;
}

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERSOFTMAXOPS_TD
