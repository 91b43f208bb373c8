//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The problem stage: attention. An append is with the ops on caches, a product of
// matrices in a folder of its own (lib/Programs/Gemm).
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERPROBLEMOPS_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERPROBLEMOPS_TD

include "kvbuffer/Dialect/KVBuffer/IR/KVBufferOpBase.td"

// Its functions read what they are given alone: constants stay inside of them.
def KVBuffer_AttentionOp : KVBuffer_OpOf<KVBuffer_Problems, "attention", [KVBuffer_Problem,
    IsolatedFromAbove]> {
  let summary = "Attention of queries over key and value caches";
  let description = [{
    For every sequence, query head and query row: O = softmax(scale * Q K^T) V
    over the keys that `mask` leaves visible. `softcap` c > 0 replaces a score s
    by c * tanh(s / c) before masking. `sink` adds exp(sink[head]) to the
    denominator. `lse` receives log-sum-exp of the scores (natural logarithm).
    A row that sees no key gives O = 0 and LSE = -inf (with a sink: LSE =
    sink[head]).

    Q and O are [batch, rows, heads, head_size], or, with `offsets` (prefix sums
    of the query lengths, [batch + 1]), [rows, heads, head_size]. LSE is
    [batch, heads, rows], or [heads, rows] with `offsets`. KV head of query head
    h: h / (heads / kv_heads). Keys of a sequence: `kvbuffer.cache.num_keys`.
    Q's head size is K's, and O's is V's, which may be another one. `scale`
    defaults to 1 / sqrt(head_size), of K's.

    Where `k` and `v` are one and the same cache, V is a part of K (latent
    attention): the values are the first columns of the rows that keys are, as many
    as O has. Kernels then load and stage each row once, for both products.

    With `batch_invariant` the bits of a row of O and LSE follow from that row of
    Q, the keys and values that it sees and its place in the sequence alone: what
    other rows hold, and how many sequences there are, changes none. Schedules
    that decide for rows together (`lazy_rescale`) are refused.

    On tensors `out` and `lse` are destinations: their contents do not matter
    (with `offsets`, rows of no sequence keep them), and there is a result for
    each. `k` and `v` may be tensors [batch, keys, kv_heads, head_size] then,
    which are dense caches, or caches. Bufferization makes the form on memrefs
    and `kvbuffer.make_cache` of it; kernels are made of that form alone.

    `score` is a function of the program's own: of a score (scaled and capped,
    f32), the sequence, the head, the query's row, the query's position, the key's
    index and the elements that it reads of `captures`, it yields the score that
    counts. `visible` yields whether the query sees the key; `mask` and `visible`
    both hide. The position of a row is row + keys - queries: the index of the key
    that it stands at, less than 0 for rows before the first key. Rows and keys are
    those that there are, so tensors of these sizes are read in bounds. A capture is
    a tensor, or a memref; in the regions it is the argument after these. It is read
    by tensor.extract and tensor.dim, or memref.load and memref.dim; other ops are
    of scalars, or scf.if.

    With `block_mask` a tile of queries visits the blocks of keys that lists among
    the captures name, and no others: `mask` and `visible` hide keys of those that
    are partly visible, and none of those that are wholly so.

    Caches may be quantized (8-bit floats, with scales or without) where Q is
    bf16 or f16: an element stands for itself times its scale.

    Constraints: (C1) Q is of bf16 or f16, and the caches are of Q's type, or of
    8-bit floats (for 8-bit floats all over `kvbuf-choose-schedule` says what the
    chip has of them); O is of f32, bf16, f16 or Q's type; (C2) Q's head size is
    K's; (C3) the caches' heads divide Q's; (C4) Q's rank is 3 with `offsets` and
    4 without, and O has Q's rows and heads, and V's head size, or, where V is a
    part of K, at most that; (C5) head_size,
    cache_depth and head_dim_offset are multiples of 8, head_size at most 65536;
    (C6) Q, O, offsets, sink, LSE and captures are all tensors or all memrefs.

    Examples:

    ```mlir
    func.func @prefill(%q: memref<?x?x16x128xbf16>,
                       %k: !kvbuffer.cache<dense, bf16, heads = 16, head_size = 128>,
                       %v: !kvbuffer.cache<dense, bf16, heads = 16, head_size = 128>,
                       %o: memref<?x?x16x128xbf16>) {
      kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>}
        : memref<?x?x16x128xbf16>, !kvbuffer.cache<dense, bf16, heads = 16, head_size = 128>,
          !kvbuffer.cache<dense, bf16, heads = 16, head_size = 128>, memref<?x?x16x128xbf16>
      return
    }
    // Latent attention: the values are the first 512 columns of the keys' 576.
    func.func @latent(%q: memref<?x1x16x576xbf16>,
                      %rows: !kvbuffer.cache<paged, bf16, heads = 1, head_size = 576, page_size = 64>,
                      %o: memref<?x1x16x512xbf16>) {
      kvbuffer.attention q(%q) k(%rows) v(%rows) out(%o)
        : memref<?x1x16x576xbf16>, !kvbuffer.cache<paged, bf16, heads = 1, head_size = 576, page_size = 64>,
          !kvbuffer.cache<paged, bf16, heads = 1, head_size = 576, page_size = 64>, memref<?x1x16x512xbf16>
      return
    }
    func.func @on_tensors(%q: tensor<2x?x16x128xbf16>, %k: tensor<2x?x4x128xbf16>,
                          %v: tensor<2x?x4x128xbf16>, %init: tensor<2x?x16x128xbf16>)
        -> tensor<2x?x16x128xbf16> {
      %o = kvbuffer.attention q(%q) k(%k) v(%v) out(%init)
        : tensor<2x?x16x128xbf16>, tensor<2x?x4x128xbf16>, tensor<2x?x4x128xbf16>,
          tensor<2x?x16x128xbf16> -> tensor<2x?x16x128xbf16>
      return %o : tensor<2x?x16x128xbf16>
    }
    // ALiBi: a slope a head.
    func.func @alibi(%q: memref<?x?x16x128xbf16>,
                     %k: !kvbuffer.cache<dense, bf16, heads = 16, head_size = 128>,
                     %v: !kvbuffer.cache<dense, bf16, heads = 16, head_size = 128>,
                     %slopes: memref<16xf32>, %o: memref<?x?x16x128xbf16>) {
      kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>}
        : memref<?x?x16x128xbf16>, !kvbuffer.cache<dense, bf16, heads = 16, head_size = 128>,
          !kvbuffer.cache<dense, bf16, heads = 16, head_size = 128>, memref<?x?x16x128xbf16>
        captures(%slopes : memref<16xf32>) score {
        ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index,
             %slope_of: memref<16xf32>):
          %slope = memref.load %slope_of[%head] : memref<16xf32>
          %distance = arith.subi %key, %at : index
          %n = arith.index_cast %distance : index to i32
          %far = arith.sitofp %n : i32 to f32
          %bias = arith.mulf %far, %slope : f32
          %t = arith.addf %s, %bias : f32
          kvbuffer.yield %t : f32
        }
      return
    }
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_Shaped, "queries">:$q,
      Arg<AnyTypeOf<[KVBuffer_CacheType, AnyRankedTensor]>, "the cache of keys, or a tensor">:$keys,
      Arg<AnyTypeOf<[KVBuffer_CacheType, AnyRankedTensor]>,
          "the cache of values, or a tensor">:$values,
      Arg<Optional<KVBuffer_ShapedOf<[I32, I64], 1>>, "prefix sums of the query lengths">:$offsets,
      Arg<Optional<KVBuffer_ShapedOf<[F32], 1>>,
          "a score for each head that joins the denominator">:$sink,
      Arg<Variadic<KVBuffer_Shaped>, "tensors that the regions read">:$captures,
      Arg<KVBuffer_Shaped, "the output, a destination on tensors">:$out,
      Arg<Optional<KVBuffer_Shaped>, "log-sum-exp of the scores, a destination on tensors">:$lse,
      Arg<OptionalAttr<KVBuffer_MaskAttr>, "which keys a query sees">:$mask,
      Arg<OptionalAttr<KVBuffer_BlockMaskAttr>, "which blocks of keys are visited">:$block_mask,
      Arg<OptionalAttr<F32Attr>, "what scores are multiplied by; 1 / sqrt(head_size) without it">:$scale,
      Arg<OptionalAttr<F32Attr>, "the cap of scores; none without it">:$softcap,
      Arg<UnitAttr, "a row's bits depend on no other row">:$batch_invariant,
      Arg<OptionalAttr<KVBuffer_ScheduleAttr>, "parameters that the default gives way to">:$schedule);
  let results = (outs
      Res<Variadic<AnyRankedTensor>, "on tensors the output and the log-sum-exp">:$results);
  let regions = (region MaxSizedRegion<1>:$score, MaxSizedRegion<1>:$visible);
  let assemblyFormat = [{
    `q` `(` $q `)` `k` `(` $keys `)` `v` `(` $values `)` `out` `(` $out `)`
    (`offsets` `(` $offsets^ `)`)? (`lse` `(` $lse^ `)`)? (`sink` `(` $sink^ `)`)?
    attr-dict `:` type($q) `,` custom<CacheOrTensor>(type($keys)) `,`
    custom<CacheOrTensor>(type($values)) `,` type($out)
    `` custom<OptionalTypes>(ref($offsets), type($offsets), ref($lse), type($lse),
                          ref($sink), type($sink))
    (`->` type($results)^)? (`captures` `(` $captures^ `:` type($captures) `)`)?
    (`score` custom<OwnRegion>($score)^)? (`visible` custom<OwnRegion>($visible)^)?
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let hasCanonicalizeMethod = 1;
  let extraClassDeclaration = [{
    /// The caches of an op that takes no tensors of keys and values, as none does
    /// after bufferization.
    ::mlir::TypedValue<CacheType> getK() {
      return ::llvm::cast<::mlir::TypedValue<CacheType>>(getKeys());
    }
    ::mlir::TypedValue<CacheType> getV() {
      return ::llvm::cast<::mlir::TypedValue<CacheType>>(getValues());
    }
    /// The types of the caches that keys and values are, tensors or not; null for
    /// tensors that are none.
    CacheType getKCacheType() { return denseCacheOf(getKeys().getType()); }
    CacheType getVCacheType() { return denseCacheOf(getValues().getType()); }
    int64_t getHeads() {
      return ::llvm::cast<::mlir::ShapedType>(getQ().getType()).getShape().end()[-2];
    }
    /// The head size of Q and K, which are contracted.
    int64_t getHeadSize() { return getKCacheType().getHeadSize(); }
    /// Whether values are the first columns of the rows that keys are: both are
    /// one cache. (Tensors of both are caches of their own.)
    bool isLatent() {
      return getKeys() == getValues() && ::llvm::isa<CacheType>(getKeys().getType());
    }
    /// The head size of V and O.
    int64_t getValueHeadSize() {
      if (isLatent())
        return ::llvm::cast<::mlir::ShapedType>(getOut().getType()).getShape().back();
      return getVCacheType().getHeadSize();
    }
    int64_t getKVHeads() { return getKCacheType().getHeads(); }
    /// The type of Q's elements, which are multiplied; the caches' may be narrower.
    ::mlir::Type getElementType() {
      return ::llvm::cast<::mlir::ShapedType>(getQ().getType()).getElementType();
    }
    /// The type of O's elements, which accumulators are rounded to.
    ::mlir::Type getOutElementType() {
      return ::llvm::cast<::mlir::ShapedType>(getOut().getType()).getElementType();
    }
    /// Whether a cache has other elements than Q, or scales.
    bool isQuantized() {
      return ::llvm::any_of(
          ::llvm::ArrayRef<CacheType>{getKCacheType(), getVCacheType()},
          [&](CacheType cache) {
            return cache.getScaleType() || cache.getElementType() != getElementType();
          });
    }
    /// Q and O are tensors, and so are the other operands but caches.
    bool isOnTensors() {
      return ::llvm::isa<::mlir::TensorType>(getQ().getType());
    }
    /// O and, if it is there, LSE.
    ::mlir::MutableOperandRange getDpsInitsMutable() {
      auto [index, count] = getODSOperandIndexAndLength(6);
      return {getOperation(), index, count + (getLse() ? 1 : 0)};
    }
    bool isRagged() { return static_cast<bool>(getOffsets()); }
    /// Whether the program brings a function of scores, or of visibility.
    bool hasOwnScores() {
      return !getScore().empty() || !getVisible().empty();
    }
    /// Gives the regions' arguments the types of the captures they stand for.
    void updateRegionTypes();
    /// The mask; one that hides nothing if absent.
    MaskAttr getMaskValue() {
      MaskAttr mask = getMaskAttr();
      return mask ? mask : MaskAttr::get(getContext(), false, -1, -1);
    }
    /// The scale, or its default 1 / sqrt(head_size).
    double getScaleValue();
    /// The soft cap; 0 for none.
    double getSoftcapValue();
  }];
}

def KVBuffer_CacheAppendOp : KVBuffer_OpOf<KVBuffer_Problems, "cache_append", [KVBuffer_Problem]> {
  let summary = "Stores the keys and values of new tokens into caches";
  let description = [{
    A problem, as `kvbuffer.attention` is: what to store, and nothing about how.
    `k` and `v` are [batch, rows, heads, head_size], or, with `offsets` (prefix sums
    of the numbers of new tokens, [batch + 1]), [rows, heads, head_size]. Token i of
    sequence b goes to position at[b] + i of that sequence; without `at` to
    `kvbuffer.cache.cache_length` + i of the keys' cache, a continuous or paged one,
    whose lengths exclude the new tokens. What has no row there (see `kvbuffer.cache.store`) is
    left out, and so are rows of `k` that no sequence of `offsets` has.

    `rope` rotates keys on their way: row p of `cos` and `sin`, [positions, n], are
    for position p, of which the first 2n elements of a head are rotated: element i
    with i + n, or, with `interleaved`, 2i with 2i + 1. Positions past the tables
    take their last row. With `rope_at` token i of sequence b has row rope_at[b] + i in
    place of its position's, as where slots of a cache are named one by one.

    A quantized cache takes x times 1 / scale, rounded to the nearest element that there
    is, the largest for what exceeds it. Scales of a tensor or of heads are given;
    those of groups are made, the largest magnitude of a group over the largest
    finite element (1 where all are zero), and stored.

    On tensors the caches may be tensors [batch, rows, heads, head_size], which
    are dense caches and destinations: there is a result for each, which differs
    from it in the rows that are stored. Caches are memory and have no result.

    Examples:

    ```mlir
    func.func @append(%k: memref<?x8x128xbf16>, %v: memref<?x8x128xbf16>,
                      %kc: !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 16>,
                      %vc: !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 16>,
                      %offsets: memref<?xi32>, %cos: memref<?x64xf32>, %sin: memref<?x64xf32>) {
      kvbuffer.cache_append
        k(%k : memref<?x8x128xbf16>) to(%kc : !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 16>)
        v(%v : memref<?x8x128xbf16>) to(%vc : !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 16>)
        offsets(%offsets : memref<?xi32>) rope(%cos, %sin : memref<?x64xf32>, memref<?x64xf32>)
      return
    }
    func.func @on_tensors(%k: tensor<2x1x8x128xbf16>, %kc: tensor<2x?x8x128xbf16>,
                          %at: tensor<2xi32>) -> tensor<2x?x8x128xbf16> {
      %new = kvbuffer.cache_append k(%k : tensor<2x1x8x128xbf16>) to(%kc : tensor<2x?x8x128xbf16>)
        at(%at : tensor<2xi32>) -> tensor<2x?x8x128xbf16>
      return %new : tensor<2x?x8x128xbf16>
    }
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_Shaped, "new keys">:$k,
      Arg<Optional<KVBuffer_Shaped>, "new values">:$v,
      Arg<AnyTypeOf<[KVBuffer_AnyCache, AnyRankedTensor]>,
          "where keys go">:$k_cache,
      Arg<Optional<AnyTypeOf<[KVBuffer_AnyCache, AnyRankedTensor]>>,
          "where values go">:$v_cache,
      Arg<Optional<KVBuffer_ShapedOf<[I32, I64], 1>>, "prefix sums">:$offsets,
      Arg<Optional<KVBuffer_ShapedOf<[I32, I64], 1>>,
          "positions of first tokens">:$at,
      Arg<Optional<KVBuffer_ShapedOf<[F32, F16, BF16], 2>>, "cosines">:$cos,
      Arg<Optional<KVBuffer_ShapedOf<[F32, F16, BF16], 2>>, "sines">:$sin,
      Arg<Optional<KVBuffer_ShapedOf<[I32, I64], 1>>,
          "rows of cosines and sines for first tokens">:$rope_at,
      Arg<UnitAttr, "neighbouring elements are rotated with each other">:$interleaved);
  let results = (outs
      Res<Variadic<AnyRankedTensor>, "the caches that are tensors, with the new rows">:$results);
  let assemblyFormat = [{
    `k` `(` $k `:` type($k) `)` `to` `(` $k_cache `:` type($k_cache) `)`
    (`v` `(` $v^ `:` type($v) `)` `to` `(` $v_cache `:` type($v_cache) `)`)?
    (`offsets` `(` $offsets^ `:` type($offsets) `)`)? (`at` `(` $at^ `:` type($at) `)`)?
    (`rope` `(` $cos^ `,` $sin `:` type($cos) `,` type($sin) `)`)?
    (`rope_at` `(` $rope_at^ `:` type($rope_at) `)`)? attr-dict
    (`->` type($results)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether the caches are tensors, which are results, too.
    bool isIntoTensors() {
      return ::llvm::isa<::mlir::TensorType>(getKCache().getType());
    }
    /// New keys are tensors, and so are the other operands but caches.
    bool isOnTensors() {
      return ::llvm::isa<::mlir::TensorType>(getK().getType());
    }
    /// The layouts of the caches, tensors or not; null for tensors that are none.
    CacheLayout getKLayout() { return cacheLayoutOf(getKCache().getType()); }
    CacheLayout getVLayout() {
      return getVCache() ? cacheLayoutOf(getVCache().getType()) : CacheLayout();
    }
    /// The caches that are tensors.
    ::mlir::MutableOperandRange getDpsInitsMutable() {
      auto [index, count] = getODSOperandIndexAndLength(2);
      return {getOperation(), index,
              isIntoTensors() ? count + (getVCache() ? 1 : 0) : 0};
    }
  }];
}

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERPROBLEMOPS_TD
