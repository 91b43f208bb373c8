//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The thread and target stages of NVIDIA's chips: instructions that LLVM 22's nvvm
// dialect lacks or cannot say in the form that is needed. They become inline
// assembly in the translation out of MLIR, and not before.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERNVIDIAOPS_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERNVIDIAOPS_TD

include "kvbuffer/Dialect/KVBuffer/IR/KVBufferOpBase.td"

def KVBuffer_WgmmaOp : KVBuffer_OpOf<KVBuffer_NVIDIA, "wgmma", [AttrSizedOperandSegments]> {
  let summary = "A lane's part of one group of asynchronous matrix instructions";
  let description = [{
    m64 x n x k instructions, one for each entry of `b_steps`, as one committed
    group, before which the warpgroup's registers are fenced; k is 16 elements of
    16 bits or 32 of 8 bits. Exists because
    LLVM 22's `nvvm.wgmma.mma_async` takes no operand a in registers; it becomes
    inline assembly in the translation out of MLIR and not before (PTX ISA,
    "wgmma.mma_async").

    c and the results are the lane's accumulators, vectors of 4 in the order of
    the instruction's registers: n / 8 of them; without c the group starts from
    zero. a is either `a_desc`, a shared memory descriptor to which step i adds
    `a_steps[i]`, or `a`, 4 words of 32 bits for each step. `b_desc` with
    `b_steps` likewise describes b in LDS; with `transpose_b` the contracted
    dimension is b's rows in memory (MN-major), which 8-bit elements never have.
    Descriptor steps count 16 bytes. `element` is the type of b's elements, and
    of a's where `a_element`, another 8-bit float, does not say otherwise.
    The results must not be touched before a `kvbuffer.wgmma_wait`.

    Example:

    ```mlir
    %s:2 = kvbuffer.wgmma a_desc(%qd) b(%kd) {a_steps = array<i64: 0, 2>,
        b_steps = array<i64: 0, 2>, element = bf16, n = 16 : i64}
      : vector<4xf32>, vector<4xf32>
    ```
  }];
  let arguments = (ins
      Arg<Variadic<AnyVectorOfNonZeroRank>, "the lane's accumulators, vectors of 4; none: zero">:$c,
      Arg<Variadic<AnyVectorOfNonZeroRank>,
          "words of operand a, 4 a step, if it is in registers">:$a,
      Arg<Optional<I64>, "descriptor of operand a, if it is in LDS">:$a_desc,
      Arg<I64, "descriptor of operand b">:$b_desc,
      Arg<DenseI64ArrayAttr,
          "what each instruction adds to `a_desc`, in units of 16 bytes">:$a_steps,
      Arg<DenseI64ArrayAttr,
          "what each instruction adds to `b_desc`, in units of 16 bytes">:$b_steps,
      Arg<TypeAttr, "the type of the operands">:$element,
      Arg<OptionalAttr<TypeAttr>, "the type of operand a, if it is another">:$a_element,
      Arg<I64Attr, "columns of the product">:$n,
      Arg<UnitAttr, "b's rows in memory are contracted">:$transpose_b);
  let results = (outs
      Res<Variadic<AnyVectorOfNonZeroRank>,
          "accumulators, not to be touched before the wait">:$results);
  let assemblyFormat = [{
    (`c` `(` $c^ `:` type($c) `)`)? (`a` `(` $a^ `:` type($a) `)`)?
    (`a_desc` `(` $a_desc^ `)`)? `b` `(` $b_desc `)` attr-dict `:` type($results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The type of operand a's elements.
    ::mlir::Type elementOfA() { return getAElement().value_or(getElement()); }
  }];
}

def KVBuffer_WgmmaWaitOp : KVBuffer_OpOf<KVBuffer_NVIDIA, "wgmma_wait", [
    AllTypesMatch<["values", "results"]>]> {
  let summary = "Waits until at most `pending` groups of wgmma are in flight";
  let description = [{
    The accumulators of the groups that have finished pass through, so that no
    use of them can move before the wait. There are none where the registers
    stay in flight.

    Example:

    ```mlir
    %r:2 = kvbuffer.wgmma_wait %s0, %s1 {pending = 1 : i64} : vector<4xf32>, vector<4xf32>
    ```
  }];
  let arguments = (ins
      Arg<Variadic<AnyVectorOfNonZeroRank>, "accumulators of groups in flight">:$values,
      Arg<I64Attr, "groups that may still be in flight">:$pending);
  let results = (outs
      Res<Variadic<AnyVectorOfNonZeroRank>, "the accumulators of those that have finished">:$results);
  let assemblyFormat = "($values^)? attr-dict (`:` type($values)^)?";
  let hasVerifier = 1;
}

def KVBuffer_ClusterArriveOp : KVBuffer_OpOf<KVBuffer_NVIDIA, "cluster_arrive"> {
  let summary = "Arrives at the mbarrier at the same place in another block";
  let description = [{
    Where `predicate` holds, one arrival at the mbarrier that lies in block
    `rank` of the cluster where `barrier` lies in this one; `rank` may be this
    block's own. Exists because LLVM 22's forms for other blocks take no
    predicate, where a branch would part the code that the assembler schedules;
    it becomes inline assembly in the translation out of MLIR (PTX ISA, "mapa",
    "mbarrier.arrive").

    Example:

    ```mlir
    kvbuffer.cluster_arrive %barrier in %rank if %first : !llvm.ptr<3>
    ```
  }];
  let arguments = (ins
      Arg<AnyType, "the mbarrier's place in this block">:$barrier,
      Arg<I32, "the block of the cluster">:$rank,
      Arg<I1, "whether to arrive">:$predicate);
  let assemblyFormat = [{
    $barrier `in` $rank `if` $predicate attr-dict `:` type($barrier)
  }];
}

def KVBuffer_ClusterStoreOp : KVBuffer_OpOf<KVBuffer_NVIDIA, "cluster_store", [
    AllTypesMatch<["address", "barrier"]>]> {
  let summary = "Sends one or four words to the same place in another block";
  let description = [{
    Stores `value` where `address` lies in block `rank` of the cluster and then
    completes as many bytes at the mbarrier there, asynchronously; `rank` may be
    this block's own. Four words lie at a multiple of 16 bytes. Exists because LLVM 22 has no op for it; it becomes inline
    assembly in the translation out of MLIR (PTX ISA, "st.async").

    Example:

    ```mlir
    kvbuffer.cluster_store %value to %address completes %barrier in %rank : i32, !llvm.ptr<3>
    ```
  }];
  let arguments = (ins
      Arg<AnyTypeOf<[I32, VectorOfLengthAndType<[4], [I32]>]>, "the words">:$value,
      Arg<AnyType, "where it lies in this block">:$address,
      Arg<AnyType, "the mbarrier that counts its bytes, at its place in this block">:$barrier,
      Arg<I32, "the block of the cluster">:$rank);
  let assemblyFormat = [{
    $value `to` $address `completes` $barrier `in` $rank attr-dict
    `:` type($value) `,` type($address)
  }];
}

def KVBuffer_ClusterCopyOp : KVBuffer_OpOf<KVBuffer_NVIDIA, "cluster_copy", [
    AllTypesMatch<["address", "barrier"]>]> {
  let summary = "Sends bytes to the same place in another block";
  let description = [{
    Where `predicate` holds, copies `bytes` bytes of shared memory from `address`
    on to where they lie in block `rank` of the cluster, and completes as many at
    the mbarrier there; address and bytes are multiples of 16. The copy engine
    does it: what lanes have written needs a fence before. Exists because LLVM
    22's op takes no mbarrier of another block; it becomes inline assembly in the
    translation out of MLIR (PTX ISA, "cp.async.bulk").

    Example:

    ```mlir
    kvbuffer.cluster_copy %bytes from %address completes %barrier in %rank if %first : !llvm.ptr<3>
    ```
  }];
  let arguments = (ins
      Arg<I32, "how many">:$bytes,
      Arg<AnyType, "where they lie in this block">:$address,
      Arg<AnyType, "the mbarrier that counts them, at its place in this block">:$barrier,
      Arg<I32, "the block of the cluster">:$rank,
      Arg<I1, "whether to copy">:$predicate);
  let assemblyFormat = [{
    $bytes `from` $address `completes` $barrier `in` $rank `if` $predicate
    attr-dict `:` type($address)
  }];
}

def KVBuffer_LaneTransposeOp : KVBuffer_OpOf<KVBuffer_NVIDIA, "lane_transpose"> {
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

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERNVIDIAOPS_TD
