//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_PROGRAMS_GEMM_GEMMOPS_TD
#define KVBUFFER_PROGRAMS_GEMM_GEMMOPS_TD

include "kvbuffer/Dialect/KVBuffer/IR/KVBufferOpBase.td"

def KVBuffer_GemmOp : KVBuffer_Op<"gemm", [
    DestinationStyleOpInterface, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Product of two matrices";
  let description = [{
    out = a b, or, with `transpose_b`, out = a b^T. The elements of a row lie side by
    side; rows are any distance apart. Sums are of f32 and rounded once.

    Constraints: (C1) a and b are of the same type; (C2) sizes that types fix are those
    of a product; (C3) the last dimension's stride is 1.

    Example:

    ```mlir
    func.func @product(%a: memref<?x?xbf16, strided<[?, 1]>>, %b: memref<?x?xbf16, strided<[?, 1]>>,
                       %c: memref<?x?xbf16, strided<[?, 1]>>) {
      kvbuffer.gemm a(%a) b(%b) out(%c) {transpose_b}
        : memref<?x?xbf16, strided<[?, 1]>>, memref<?x?xbf16, strided<[?, 1]>>,
          memref<?x?xbf16, strided<[?, 1]>>
      return
    }
    ```
  }];
  let arguments = (ins
      Arg<MemRefRankOf<[BF16, F16], [2]>, "the first matrix, m x k">:$a,
      Arg<MemRefRankOf<[BF16, F16], [2]>,
          "the second matrix, k x n, or n x k with `transpose_b`">:$b,
      Arg<MemRefRankOf<[BF16, F16, F32], [2]>, "the product, m x n, which is written">:$out,
      Arg<UnitAttr, "b's rows are the product's columns">:$transpose_b,
      Arg<OptionalAttr<KVBuffer_ScheduleAttr>, "how the kernel is built; chosen without it">:$schedule);
  let assemblyFormat = [{
    `a` `(` $a `)` `b` `(` $b `)` `out` `(` $out `)` attr-dict
    `:` type($a) `,` type($b) `,` type($out)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutMutable(); }
    /// m, n and k, each dynamic where no operand's type fixes it.
    std::array<int64_t, 3> getSizes();
  }];
}

#endif // KVBUFFER_PROGRAMS_GEMM_GEMMOPS_TD
