//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Arithmetic on fragments that a program brings itself.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERMAPOPS_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERMAPOPS_TD

include "kvbuffer/Dialect/KVBuffer/IR/KVBufferOpBase.td"

def KVBuffer_MapOp : KVBuffer_OpOf<KVBuffer_Fragments, "map", [KVBuffer_NamedResults,
    Elementwise, AttrSizedOperandSegments, RecursiveMemoryEffects,
    SingleBlock]> {
  let summary = "Computes each element of a fragment by a region";
  let description = [{
    Element (r, c) of the result is what the region yields for the inputs'
    elements (r, c) and the coordinates `row` + r and `col` + c; without `at`,
    both begin at 0. Inputs and result are accumulators of one shape; inputs behind
    the first may be operands `a` of that shape, which are read from LDS, where a
    lane holds the same elements of both, or values of its rows that
    `kvbuffer.row_reduce` makes, of which an element gets that of its row. The region's
    arguments are one scalar an input, then the two coordinates. It may use any
    scalar of the program and read tensors; it runs for every element, also for
    rows and keys past the end of the problem's, so what it reads at coordinates
    has to be in bounds for all of them (clamp, or branch with `scf.if`).

    This is where a program's own score function goes: biases, positions, masks
    from tensors, weights other than a softmax's.

    Example:

    ```mlir
    %t = kvbuffer.map %s at(%row, %key)
        : !kvbuffer.fragment<128x64xf32, acc> -> !kvbuffer.fragment<128x64xf32, acc> {
    ^bb0(%x: f32, %i: index, %j: index):
      %d = arith.subi %j, %i : index
      %n = arith.index_cast %d : index to i32
      %f = arith.sitofp %n : i32 to f32
      %y = arith.addf %x, %f : f32
      kvbuffer.yield %y : f32
    }
    ```
  }];
  let arguments = (ins
    Arg<Variadic<KVBuffer_FragmentType>, "accumulators of one shape, operands behind the first">:$inputs,
    Arg<Optional<Index>, "the first row's coordinate">:$row,
    Arg<Optional<Index>, "the first column's coordinate">:$col);
  let results = (outs Res<KVBuffer_FragmentType, "accumulators of the same shape">:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $inputs (`at` `(` $row^ `,` $col `)`)? attr-dict
    `:` type($inputs) `->` type($result) custom<OwnRegion>($body)
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def KVBuffer_YieldOp : KVBuffer_OpOf<KVBuffer_Fragments, "yield", [
    Pure, Terminator, ParentOneOf<["MapOp", "AttentionOp", "ShareWorkOp", "SharePairsOp"]>]> {
  let summary = "Ends a region that computes an element or a number";
  let description = [{
    The element of the result of a `kvbuffer.map`; the score, or whether the key is
    visible, of a `kvbuffer.attention`; the units of an item of a
    `kvbuffer.share_work`.
  }];
  let arguments = (ins Arg<AnyType, "what the region computes">:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

def KVBuffer_FragmentFitOp : KVBuffer_OpOf<KVBuffer_Fragments, "fragment_fit", [KVBuffer_NamedResults, Pure]> {
  let summary = "Converts a fragment to f16, by powers of two that make it fit";
  let description = [{
    bf16 has the range of f32; f16 has three bits more and a range of 2^40. Each
    element becomes `x * 2^n` with the scale's sign, and `factor` has
    `|scale| * 2^-n` for each row: what rows of a product of `fragment` are
    multiplied by to be those of `source` times `scale`. It is positive, so that it
    keeps the order of scores: of a scale of 0, or one too small, it is the
    smallest normal number of f32.
    `n` makes the largest finite magnitude lie in [2^14, 2^15). Rows of a warp
    may share one `n`, so the only elements that lose bits are smaller than 2^-31
    of the largest that the warp holds. An infinity stays one, and a NaN; a
    subnormal element may count as 0, as subnormal numbers do on GPUs here.

    For an operand whose other one is widened from eight bits: these have all
    their values in f16, too, where a chip converts pairs at once, which it may
    not do to bf16.

    Example:

    ```mlir
    %half, %factor = kvbuffer.fragment_fit %q times(%k_scale)
      : !kvbuffer.fragment<16x128xbf16, a>
        -> !kvbuffer.fragment<16x128xf16, a>, !kvbuffer.fragment<16x1xf32, row>
    %s = kvbuffer.mma %half, %k, %zero {transpose_b}
      : !kvbuffer.fragment<16x128xf16, a>, !kvbuffer.fragment<32x128xf16, b>,
        !kvbuffer.fragment<16x32xf32, acc>
    %scores = kvbuffer.rescale %s, %factor
      : !kvbuffer.fragment<16x32xf32, acc>, !kvbuffer.fragment<16x1xf32, row>
    ```
  }];
  let arguments = (ins
    Arg<KVBuffer_FragmentType, "an operand of bf16">:$source,
    Arg<Optional<F32>, "what factors are multiplied by; 1 without it">:$scale);
  let results = (outs
    Res<KVBuffer_FragmentType, "the same operand in f16">:$fragment,
    Res<KVBuffer_FragmentType, "a value for each row">:$factor);
  let assemblyFormat = [{
    $source (`times` `(` $scale^ `)`)? attr-dict
    `:` type($source) `->` type($fragment) `,` type($factor)
  }];
  let hasVerifier = 1;
}

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERMAPOPS_TD
