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

def KVBuffer_MapOp : KVBuffer_Op<"map", [KVBuffer_NamedResults,
    AttrSizedOperandSegments, RecursiveMemoryEffects,
    SingleBlock]> {
  let summary = "Computes each element of a fragment by a region";
  let description = [{
    Element (r, c) of the result is what the region yields for the inputs'
    elements (r, c) and the coordinates `row` + r and `col` + c; without `at`,
    both begin at 0. Inputs and result are accumulators of one shape; the region's
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
    Arg<Variadic<KVBuffer_FragmentType>, "accumulators of one shape">:$inputs,
    Arg<Optional<Index>, "the first row's coordinate">:$row,
    Arg<Optional<Index>, "the first column's coordinate">:$col);
  let results = (outs KVBuffer_FragmentType:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $inputs (`at` `(` $row^ `,` $col `)`)? attr-dict
    `:` type($inputs) `->` type($result) $body
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def KVBuffer_YieldOp : KVBuffer_Op<"yield", [
    Pure, Terminator, ParentOneOf<["MapOp", "AttentionOp", "ShareWorkOp"]>]> {
  let summary = "Ends a region that computes an element or a number";
  let description = [{
    The element of the result of a `kvbuffer.map`; the score, or whether the key is
    visible, of a `kvbuffer.attention`; the units of an item of a
    `kvbuffer.share_work`.
  }];
  let arguments = (ins AnyType:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERMAPOPS_TD
