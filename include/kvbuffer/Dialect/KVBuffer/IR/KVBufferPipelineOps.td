//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a softmax that runs beside both products is cut into, and how halves of a
// block take turns.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERPIPELINEOPS_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERPIPELINEOPS_TD

include "kvbuffer/Dialect/KVBuffer/IR/KVBufferOpBase.td"

//===----------------------------------------------------------------------===//
// The online softmax in two parts
//===----------------------------------------------------------------------===//

def KVBuffer_RaiseMaxOp : KVBuffer_Op<"raise_max", [
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
    a largest weight of 1 needs no rounding.

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
      Arg<F32Attr, "what scores are multiplied by">:$scale);
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

def KVBuffer_ApplyRaiseOp : KVBuffer_Op<"apply_raise", [
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

def KVBuffer_SoftmaxHeadOp : KVBuffer_Op<"softmax_head", [
    Pure, AllTypesMatch<["scores", "exponents"]>,
    AllTypesMatch<["max", "excess"]>]> {
  let summary = "The first part of a softmax relative to given maxima";
  let description = [{
    x = scale * (s - m) in base 2, and exp2(x) already for the first half of each
    lane's columns: as much as runs beside one of the two products. Which columns
    these are is between this op and `kvbuffer.softmax_tail`. A row whose maximum
    is -inf has no key yet; without `masked` there is none.

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
      Arg<UnitAttr, "a row may have no key yet">:$masked);
  let results = (outs
      Res<KVBuffer_FragmentType, "exponents, and weights of the first half of columns">:$exponents,
      Res<KVBuffer_FragmentType, "what rounding adds to the largest weights">:$excess);
  let assemblyFormat = [{
    $scores `,` $max attr-dict `:` type($scores) `,` type($max)
  }];
  let hasVerifier = 1;
}

def KVBuffer_SoftmaxTailOp : KVBuffer_Op<"softmax_tail", [
    Pure, AllTypesMatch<["sum", "newSum"]>,
    OptionalTypesMatchWith<"excess and sum have the same type", "sum", "excess",
                           "$_self">]> {
  let summary = "The weights and their sums";
  let description = [{
    p = exp2(x) for what `kvbuffer.softmax_head` has left as exponents; l' = l +
    rowsum p, plus `excess` where it is given. P has the type of the operand that
    it becomes.

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
      Arg<Optional<KVBuffer_FragmentType>, "joins the sum">:$excess);
  let results = (outs
      Res<KVBuffer_FragmentType, "weights, in the type of the operand that they become">:$p,
      Res<KVBuffer_FragmentType, "each row's sum, these weights included">:$newSum);
  let assemblyFormat = [{
    $exponents `,` $sum (`excess` `(` $excess^ `)`)? attr-dict
    `:` type($exponents) `,` type($sum) `->` type($p)
  }];
  let hasVerifier = 1;
}

def KVBuffer_CarryExcessOp : KVBuffer_Op<"carry_excess", [
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
// Taking turns
//===----------------------------------------------------------------------===//

def KVBuffer_MeetOp : KVBuffer_Op<"meet", [
    KVBuffer_Together, MemoryEffects<[MemRead<KVBuffer_Async>, MemWrite<KVBuffer_Async>,
                   MemRead<KVBuffer_Lds>, MemWrite<KVBuffer_Lds>]>]> {
  let summary = "Meets the block's other warps and waits for nothing else";
  let description = [{
    Ends a part of a loop in which one half of the warps multiplies while the
    other half moves data. Loads stay in flight.

    Example:

    ```mlir
    kvbuffer.meet
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def KVBuffer_StaggerOp : KVBuffer_Op<"stagger", [
    KVBuffer_NeedsBlock, MemoryEffects<[MemRead<KVBuffer_Async>, MemWrite<KVBuffer_Async>,
                   MemRead<KVBuffer_Lds>, MemWrite<KVBuffer_Lds>]>]> {
  let summary = "Lets one half of the warps pass a meeting that the other skips";
  let description = [{
    The upper half meets the next time that the lower half does, and is from then
    on one meeting later. With `end` it is the lower half that passes one
    meeting more, so that both are level again.

    Example:

    ```mlir
    kvbuffer.stagger
    kvbuffer.stagger {end}
    ```
  }];
  let arguments = (ins Arg<UnitAttr, "the halves become level again">:$end);
  let assemblyFormat = "attr-dict";
}

//===----------------------------------------------------------------------===//
// Loops that depend on what maxima are
//===----------------------------------------------------------------------===//

def KVBuffer_AnyNegativeOp : KVBuffer_Op<"any_negative", [KVBuffer_Together]> {
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

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERPIPELINEOPS_TD
