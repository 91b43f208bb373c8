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

def KVBuffer_GemmOp : KVBuffer_OpOf<KVBuffer_Problems, "gemm", [
    DestinationStyleOpInterface, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "Product of two matrices";
  let description = [{
    out = a b, or, with `transpose_b`, out = a b^T. The elements of a row lie side by
    side; rows are any distance apart. Sums are of f32 and rounded once.

    On tensors `out` is a destination, whose contents do not matter, and there is a
    result. Kernels are made of the form on memrefs, which bufferization makes.

    Constraints: (C1) a and b are of the same type; (C2) sizes that types fix are those
    of a product; (C3) the last dimension's stride is 1; (C4) all are tensors or all
    are memrefs.

    Examples:

    ```mlir
    func.func @product(%a: memref<?x?xbf16, strided<[?, 1]>>, %b: memref<?x?xbf16, strided<[?, 1]>>,
                       %c: memref<?x?xbf16, strided<[?, 1]>>) {
      kvbuffer.gemm a(%a) b(%b) out(%c) {transpose_b}
        : memref<?x?xbf16, strided<[?, 1]>>, memref<?x?xbf16, strided<[?, 1]>>,
          memref<?x?xbf16, strided<[?, 1]>>
      return
    }
    func.func @on_tensors(%a: tensor<?x64xf16>, %b: tensor<64x32xf16>, %init: tensor<?x32xf32>)
        -> tensor<?x32xf32> {
      %c = kvbuffer.gemm a(%a) b(%b) out(%init)
        : tensor<?x64xf16>, tensor<64x32xf16>, tensor<?x32xf32> -> tensor<?x32xf32>
      return %c : tensor<?x32xf32>
    }
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_ShapedOf<[BF16, F16], 2>, "the first matrix, m x k">:$a,
      Arg<KVBuffer_ShapedOf<[BF16, F16], 2>,
          "the second matrix, k x n, or n x k with `transpose_b`">:$b,
      Arg<KVBuffer_ShapedOf<[BF16, F16, F32], 2>, "the product, m x n, which is written">:$out,
      Arg<UnitAttr, "b's rows are the product's columns">:$transpose_b,
      Arg<OptionalAttr<KVBuffer_ScheduleAttr>, "how the kernel is built; chosen without it">:$schedule);
  let results = (outs Res<Variadic<AnyRankedTensor>, "on tensors the product">:$results);
  let assemblyFormat = [{
    `a` `(` $a `)` `b` `(` $b `)` `out` `(` $out `)` attr-dict
    `:` type($a) `,` type($b) `,` type($out) (`->` type($results)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutMutable(); }
    bool isOnTensors() { return ::llvm::isa<::mlir::TensorType>(getOut().getType()); }
    /// m, n and k, each dynamic where no operand's type fixes it.
    std::array<int64_t, 3> getSizes();
  }];
}

#endif // KVBUFFER_PROGRAMS_GEMM_GEMMOPS_TD
