//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFEROPS_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFEROPS_TD

include "kvbuffer/Dialect/KVBuffer/IR/KVBufferOpBase.td"

//===----------------------------------------------------------------------===//
// Problem
//===----------------------------------------------------------------------===//

// Its functions read what they are given alone: constants stay inside of them.
def KVBuffer_AttentionOp : KVBuffer_Op<"attention", [KVBuffer_Problem,
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
    (`score` $score^)? (`visible` $visible^)?
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

//===----------------------------------------------------------------------===//
// Caches and tiles in DRAM
//===----------------------------------------------------------------------===//

def KVBuffer_CacheNumKeysOp : KVBuffer_Op<"cache.num_keys", [KVBuffer_NamedResults,
    MemoryEffects<[MemRead]>]> {
  let summary = "The number of keys of a sequence";
  let description = [{
    Dense: the cache's rows. Ragged: the difference of offsets. Continuous and
    paged: the cached length plus `new_tokens`, whose rows are already stored.
    Of another dialect's kind: the length that its type says, plus `new_tokens`, at
    most its room.

    Example:

    ```mlir
    %keys = kvbuffer.cache.num_keys %k[%batch] new(%new)
      : !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 64>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_AnyCache, "the cache">:$cache,
      Arg<Index, "the sequence">:$batch,
      Arg<Index, "new tokens, whose rows are stored already">:$newTokens);
  let results = (outs Res<Index, "keys of the sequence">:$keys);
  let assemblyFormat = [{
    $cache `[` $batch `]` `new` `(` $newTokens `)` attr-dict `:` type($cache)
  }];
  let extraClassDeclaration = [{
    CacheLayout getLayout() { return ::llvm::cast<CacheLayout>(getCache().getType()); }
  }];
}

def KVBuffer_CacheScaleOp : KVBuffer_Op<"cache_scale", [MemoryEffects<[MemRead]>]> {
  let summary = "The scale of an element of a quantized cache";
  let description = [{
    What the element `head_dim` of a token's head stands for itself times, as an
    f32. One of a whole tensor asks for nothing but the cache, one of a head for
    the head; the other operands are not looked at then. The token has a row:
    nobody checks that.

    It may stand in the region of `kvbuffer.map`.

    Example:

    ```mlir
    %s = kvbuffer.cache_scale %k[%batch, %head, %token, %dim]
      : !kvbuffer.cache<paged, f8E4M3FN, heads = 8, head_size = 128, page_size = 64, scale = f32, granularity = tensor>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_AnyCache, "the cache">:$cache,
      Arg<Index, "the sequence">:$batch,
      Arg<Index, "the head of the cache">:$head,
      Arg<Index, "the token's position in its sequence">:$token,
      Arg<Index, "the element of the head">:$headDim);
  let results = (outs Res<F32, "what the element is multiplied by">:$scale);
  let assemblyFormat = [{
    $cache `[` $batch `,` $head `,` $token `,` $headDim `]` attr-dict `:` type($cache)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    CacheLayout getLayout() { return ::llvm::cast<CacheLayout>(getCache().getType()); }
  }];
}

def KVBuffer_CacheTileOp : KVBuffer_Op<"cache_tile", [KVBuffer_NamedResults,
    MemoryEffects<[MemRead]>]> {
  let summary = "The tile of a cache that starts at a key";
  let description = [{
    `rows` keys of one sequence and KV head, from key `start` on; the keys in
    [`from`, `upto`) are valid (seed page KVCacheIterator). One page look-up a
    tile where a page holds whole tiles; a tile type with `page_size` has several,
    here (by lanes) or at the load. No look-up happens where `pred` is false or no
    row is valid.

    The cache may be of another dialect's kind (`CacheLayout`). Where its type
    states no table or offsets (`CacheRows`), each row of the tile is placed by the
    code that the type emits, at the load; a tile of which all rows lie in one run
    is placed once, here.

    Example:

    ```mlir
    %t = kvbuffer.cache_tile %k[%batch, %head, %start] from %lo upto %hi
      : !kvbuffer.cache<dense, bf16, heads = 8, head_size = 128> -> !kvbuffer.tile<64x128xbf16>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_AnyCache, "the cache">:$cache,
      Arg<Index, "the sequence">:$batch,
      Arg<Index, "the head of the cache">:$head,
      Arg<Index, "the tile's first key">:$start,
      Arg<Index, "the first valid key">:$from,
      Arg<Index, "one past the last valid key">:$upto,
      Arg<Optional<I1>, "false: the tile is not looked up">:$pred);
  let results = (outs Res<KVBuffer_TileType, "the tile">:$tile);
  let assemblyFormat = [{
    $cache `[` $batch `,` $head `,` $start `]` `from` $from `upto` $upto
    (`if` $pred^)? attr-dict `:` type($cache) `->` type($tile)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    CacheLayout getLayout() { return ::llvm::cast<CacheLayout>(getCache().getType()); }
  }];
}

def KVBuffer_DramTileOp : KVBuffer_Op<"dram_tile", [KVBuffer_NamedResults, Pure,
    AttrSizedOperandSegments]> {
  let summary = "A tile of a tensor";
  let description = [{
    With an index for every dimension: the tile's rows run along dimension
    `row_dim` (by default the last but one), its columns along the last, both from
    the index on. The first `valid` rows and `valid_cols` columns exist, as many
    as the program says at run time (less than none is none); what is beyond
    reads as zero and is not written.

    With one index less, rows `indices[rank - 3]` and on of a [.., rows, heads,
    head_size] tensor, at one head, with all the tile's columns.

    With `group` the rows of the tile are rows times heads of the tensor: row r
    is the tensor's row r / `group`, counted from the first, at head r % `group`,
    counted from the one that `indices` names. The tile's type says so too, by
    `page_size` = `group`: so many of its rows are one stride apart. With an index
    for every dimension, `row_dim` = rank - 3 says that heads follow the rows.

    With `gather` the rows of the tile are any of the tensor's: row r is the
    tensor's row `numbers`[`first` + r], counted from the one that `indices`
    names. Numbers of rows that are not valid are not looked at. A number whose
    row the tensor does not have is the program's fault: the emulator says so, a
    GPU reads what lies there. The tile's type has `page_size` = 1: no two of its
    rows are known to be one stride apart. Such a tile is read, not written.

    Examples:

    ```mlir
    %a = kvbuffer.dram_tile %m[%row, %col] valid(%rows, %cols)
      : memref<?x?xbf16, strided<[?, 1]>> -> !kvbuffer.tile<128x64xbf16>
    %h = kvbuffer.dram_tile %x[%batch, %row, %head, %col] valid(%rows, %cols) {row_dim = 1 : i64}
      : memref<?x?x16x512xbf16> -> !kvbuffer.tile<128x64xbf16>
    %t = kvbuffer.dram_tile %q[%batch, %row, %head] valid(%n)
      : memref<?x?x16x128xbf16> -> !kvbuffer.tile<128x128xbf16>
    %g = kvbuffer.dram_tile %m[%zero, %col] gather(%numbers[%row]) valid(%rows, %cols)
      : memref<?x?xbf16, strided<[?, 1]>>, memref<?xi32> -> !kvbuffer.tile<128x64xbf16, page_size = 1>
    ```
  }];
  let arguments = (ins
      Arg<AnyMemRef, "the tensor that the tile is a part of">:$tensor,
      Arg<Variadic<Index>, "where row 0 and column 0 lie in it">:$indices,
      Arg<Optional<MemRefRankOf<[I32, I64], [1]>>, "numbers of rows, side by side">:$numbers,
      Arg<Optional<Index>, "the place of row 0's number">:$first,
      Arg<Index, "how many rows there are">:$valid,
      Arg<Optional<Index>, "how many columns there are">:$valid_cols,
      Arg<OptionalAttr<I64Attr>, "the dimension of its rows; the last but one without it">:$row_dim,
      Arg<DefaultValuedAttr<I64Attr, "1">, "rows that are heads of one row of the tensor">:$group);
  let results = (outs Res<KVBuffer_TileType, "the tile">:$tile);
  let assemblyFormat = [{
    $tensor `[` $indices `]` (`gather` `(` $numbers^ `[` $first `]` `)`)?
    `valid` `(` $valid (`,` $valid_cols^)? `)` attr-dict
    `:` type($tensor) (`,` type($numbers)^)? `->` type($tile)
  }];
  let builders = [OpBuilder<(ins "::mlir::Type":$tile, "::mlir::Value":$tensor,
    "::mlir::ValueRange":$indices, "::mlir::Value":$valid,
    CArg<"::mlir::Value", "{}">:$validCols,
    CArg<"::mlir::IntegerAttr", "{}">:$rowDim, CArg<"int64_t", "1">:$group), [{
      build($_builder, $_state, tile, tensor, indices, /*numbers=*/nullptr,
            /*first=*/nullptr, valid, validCols, rowDim,
            $_builder.getI64IntegerAttr(group));
    }]>];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether the tile is a window of columns, too.
    bool isWindow() { return static_cast<bool>(getValidCols()); }
    /// The dimension that rows run along.
    int64_t getRowDimension() {
      int64_t rank = ::llvm::cast<::mlir::MemRefType>(getTensor().getType()).getRank();
      return getRowDim() ? int64_t(*getRowDim()) : rank - (isWindow() ? 2 : 3);
    }
  }];
}

def KVBuffer_KeyRangeOp : KVBuffer_Op<"key_range", [Pure]> {
  let summary = "The keys that a tile of queries can see";
  let description = [{
    For query rows [`row`, min(`row` + BM, `queries`)) and a mask: the keys
    [`lo`, `hi`) outside of which no row sees any; `hi <= lo` if there is none.
    Tiles wholly inside [`fullLo`, `fullHi`) need no masking: every row sees
    every key of it. With `group`, every `group` rows of the BM are one query (see
    `kvbuffer.dram_tile`); `row` and `queries` count queries.

    `descending` promises how the program goes through the keys: in tiles of the
    schedule's BN rows, from the one that holds key `hi` - 1 to the one that holds
    `lo`, each once; each buffer of keys is filled once a tile; and a tile that no
    row of a group of warps sees leaves what that group holds as it is.
    `kvbuf-assign-teams` then lets each group of consumers begin at the first tile
    that it sees. With `per_group` each warp group gets the range of its own
    BM / groups rows. Using the range of all BM rows instead is also correct, and
    slower; the tile interpreter does, which executes groups as one.

    Example:

    ```mlir
    %lo, %hi, %flo, %fhi = kvbuffer.key_range %row of %queries keys %keys
      {BM = 128, mask = #kvbuffer.mask<causal = true>}
    ```
  }];
  let arguments = (ins
      Arg<Index, "the first query">:$row,
      Arg<Index, "queries of the sequence">:$queries,
      Arg<Index, "keys of the sequence">:$keys,
      Arg<I64Attr, "rows of the tile">:$BM,
      Arg<KVBuffer_MaskAttr, "which keys a query sees">:$mask,
      Arg<DefaultValuedAttr<I64Attr, "1">, "rows that are one query">:$group,
      Arg<UnitAttr, "the program visits tiles from the last one, each once">:$descending,
      Arg<UnitAttr, "each warp group may have the range of its own rows">:$per_group);
  let results = (outs
      Res<Index, "the first key that a row sees">:$lo,
      Res<Index, "one past the last key that a row sees">:$hi,
      Res<Index, "the first key from which on every row sees every key">:$fullLo,
      Res<Index, "one past the last such key">:$fullHi);
  let builders = [OpBuilder<(ins "::mlir::Value":$row, "::mlir::Value":$queries,
      "::mlir::Value":$keys, "int64_t":$BM, "MaskAttr":$mask,
      CArg<"int64_t", "1">:$group)>];
  let extraClassDeclaration = [{
    /// The queries that the rows are of.
    int64_t getQueriesOfRows() {
      return (int64_t(getBM()) - 1) / int64_t(getGroup()) + 1;
    }
  }];
  let assemblyFormat = "$row `of` $queries `keys` $keys attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Movement
//===----------------------------------------------------------------------===//

def KVBuffer_AllocOp : KVBuffer_Op<"alloc", [KVBuffer_NamedResults,
    MemoryEffects<[MemAlloc<KVBuffer_Lds>]>]> {
  let summary = "Allocates a buffer in LDS";
  let description = [{
    Lives as long as the block. Remarks of `kvbuf-report-buffers` print its
    derived members. `offset` is its first byte in the block's LDS, a multiple of
    1024; `kvbuf-allocate-lds` gives one to every buffer that has none. Buffers
    of which no two are in use at the same time may lie in the same bytes.

    Example:

    ```mlir
    %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 128, stages = 2>>
    ```
  }];
  let arguments = (ins
      Arg<OptionalAttr<I64Attr>,
          "the first byte in the block's LDS; chosen by `kvbuf-allocate-lds` without it">:$offset);
  let results = (outs Res<KVBuffer_BufferType, "the buffer">:$buffer);
  let builders = [OpBuilder<(ins "::mlir::Type":$type), [{
    build($_builder, $_state, type, ::mlir::IntegerAttr());
  }]>];
  let assemblyFormat = "attr-dict `:` type($buffer)";
  let hasVerifier = 1;
}

def KVBuffer_DramLoadOp : KVBuffer_Op<"dram_load", [KVBuffer_NamedResults,
    MemoryEffects<[MemRead, MemWrite<KVBuffer_Lds>, MemWrite<KVBuffer_Async>]>,
    AttrSizedOperandSegments, InferTypeOpAdaptor]> {
  let summary = "Starts loading a tile into a buffer's slot";
  let description = [{
    Copies the `depth` columns from `head_dim_offset` on, of the tile's
    `cache_depth`; without `full_kv`, only the BK of them from `block` * BK on.
    Asynchronous: the data may be read after the `kvbuffer.lds_stage` of the token.
    Invalid rows, and columns from `depth` on, become zero. Where `pred` is false
    nothing is loaded, and the token stages nothing. `whole` says that every row of
    the tile is valid, so that none has to be looked at.

    Without a slot a load fills the next one: the loads into a buffer, in the order
    in which they run, are its fillings 0, 1, 2, ... since the `kvbuffer.alloc`, and
    filling f lies in slot f mod stages, as in a ring (`kvbuffer.ring`). A load
    whose `pred` is false takes its number, too. `kvbuf-assign-slots` writes the
    slots down, after the passes that move loads.

    With a slot, that one is filled. All loads into a buffer name theirs, or none
    does.

    Examples:

    ```mlir
    %next = kvbuffer.dram_load %tile into %kbuf
      : !kvbuffer.tile<64x128xbf16>, !kvbuffer.buffer<#kbuf>
    %token = kvbuffer.dram_load %tile into %kbuf[%slot]
      : !kvbuffer.tile<64x128xbf16>, !kvbuffer.buffer<#kbuf>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_TileType, "what is loaded">:$tile,
      Arg<KVBuffer_BufferType, "where it goes">:$buffer,
      Arg<Optional<Index>, "the slot that is filled; the next one without it">:$slot,
      Arg<Optional<I1>, "false: nothing is loaded">:$pred,
      Arg<UnitAttr, "every row of the tile is valid">:$whole,
      Arg<DefaultValuedAttr<I64Attr, "0">,
          "the block of columns, of buffers without `full_kv`">:$block);
  let results = (outs Res<KVBuffer_TokenType, "the data on its way">:$token);
  let assemblyFormat = [{
    $tile `into` $buffer (`[` $slot^ `]`)? (`if` $pred^)? attr-dict
    `:` type($tile) `,` type($buffer)
  }];
  let hasVerifier = 1;
}

def KVBuffer_LdsStageOp : KVBuffer_Op<"lds_stage", [KVBuffer_NamedResults,
    MemoryEffects<[MemRead<KVBuffer_Async>, MemWrite<KVBuffer_Async>,
                   MemRead<KVBuffer_Lds>, MemWrite<KVBuffer_Lds>]>,
    InferTypeOpAdaptor]> {
  let summary = "Waits until loads are visible to every thread";
  let description = [{
    Waits for the tokens' loads; then all the threads of the block meet at a
    barrier. After it every thread may read the slots, and every read of a slot
    before it has finished, so that older slots may be loaded anew. `younger` is the number
    of loads issued after the youngest awaited one that may stay in flight
    (counted by `kvbuf-count-waits`); absent: none is known to be younger, all
    are awaited.

    Example:

    ```mlir
    %ks, %vs = kvbuffer.lds_stage %kt, %vt {younger = 0 : i64}
      : !kvbuffer.token<#kbuf>, !kvbuffer.token<#vbuf>
    ```
  }];
  let arguments = (ins
      Arg<Variadic<KVBuffer_TokenType>, "loads to wait for">:$tokens,
      Arg<OptionalAttr<I64Attr>, "later loads that may stay in flight">:$younger);
  let results = (outs Res<Variadic<KVBuffer_StagedType>, "what they have loaded">:$staged);
  let assemblyFormat = "$tokens attr-dict `:` type($tokens)";
  let hasVerifier = 1;
}

def KVBuffer_FragmentLoadOp : KVBuffer_Op<"fragment_load", [KVBuffer_NamedResults,
    MemoryEffects<[MemRead<KVBuffer_Lds>]>]> {
  let summary = "Loads a fragment from a staged slot";
  let description = [{
    The `rows` x `cols` part at (`row`, `col`) of the slot or view, as an operand
    of the matrix unit. `contracted` says which dimension products contract: the
    columns of operand `a`; of operand `b` the columns (`kvbuffer.mma` with
    `transpose_b`: b's rows are the product's columns) or the rows (without), for
    which b is transposed on the way where the matrix unit asks for it. Left out,
    it is the columns of `a`, and what the buffer's operand says of `b`: the
    columns of a buffer of `k`, the rows of one of `v`. A neutral buffer says
    nothing.

    8-bit floats may be loaded as bf16 or f16, which have all their values: they
    are widened in registers.

    Examples:

    ```mlir
    %kf = kvbuffer.fragment_load %ks [0, 16]
      : !kvbuffer.staged<#kbuf> -> !kvbuffer.fragment<64x16xbf16, b>
    %bf = kvbuffer.fragment_load %bs[0, 0] contracted(rows)
      : !kvbuffer.staged<#kvbuffer.kv_buffer<64x128xbf16, BK = 64>> -> !kvbuffer.fragment<64x128xbf16, b>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_StagedType, "the slot, or a view of it">:$staged,
      Arg<I64Attr, "the first row">:$row,
      Arg<I64Attr, "the first column">:$col,
      Arg<OptionalAttr<KVBuffer_DimensionAttr>, "the dimension that products contract">:$contracted);
  let results = (outs Res<KVBuffer_FragmentType, "the operand">:$fragment);
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$staged,
                                 "int64_t":$row, "int64_t":$col), [{
    build($_builder, $_state, type, staged, row, col, DimensionAttr());
  }]>];
  let extraClassDeclaration = [{
    /// Whether products contract the rows: in `b` of a product without
    /// `transpose_b`.
    bool contractsRows();
    /// The row and column of the slot that the fragment begins at.
    int64_t getSlotRow() {
      return int64_t(getRow()) + getStaged().getType().getRow();
    }
    int64_t getSlotCol() {
      return int64_t(getCol()) + getStaged().getType().getCol();
    }
  }];
  let assemblyFormat = [{
    $staged `[` $row `,` $col `]` (`contracted` `(` custom<Dimension>($contracted)^ `)`)?
    attr-dict
    `:` type($staged) `->` type($fragment)
  }];
  let hasVerifier = 1;
}

def KVBuffer_StagedViewOp : KVBuffer_Op<"staged_view", [KVBuffer_NamedResults, Pure]> {
  let summary = "A part of a staged slot (seed smem_block_tile)";
  let description = [{
    The part of the result's size at (`row`, `col`) of a slot or view. No data
    moves. What holds of the slot holds of its views: they may be read until
    another load begins to overwrite it.

    Example:

    ```mlir
    %v = kvbuffer.staged_view %ks[0, 64]
      : !kvbuffer.staged<#kbuf> -> !kvbuffer.staged<#kbuf, 64x64 at [0, 64]>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_StagedType, "a slot, or a view">:$source,
      Arg<I64Attr, "the first row">:$row,
      Arg<I64Attr, "the first column">:$col);
  let results = (outs Res<KVBuffer_StagedType, "the part">:$view);
  let assemblyFormat = [{
    $source `[` $row `,` $col `]` attr-dict `:` type($source) `->` type($view)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def KVBuffer_TileFragmentOp : KVBuffer_Op<"tile_fragment", [KVBuffer_NamedResults,
    MemoryEffects<[MemRead]>]> {
  let summary = "Loads a fragment straight from a tile in DRAM";
  let description = [{
    For an operand that is read once and stays in registers, as `a` where the
    target's lanes hold pieces of rows. Rows that are not valid, and columns past
    the tile's, are zero.

    Example:

    ```mlir
    %qf = kvbuffer.tile_fragment %qtile
      : !kvbuffer.tile<256x80xbf16> -> !kvbuffer.fragment<256x96xbf16, a>
    ```
  }];
  let arguments = (ins Arg<KVBuffer_TileType, "what is loaded">:$tile);
  let results = (outs Res<KVBuffer_FragmentType, "the operand">:$fragment);
  let assemblyFormat = "$tile attr-dict `:` type($tile) `->` type($fragment)";
  let hasVerifier = 1;
}

def KVBuffer_FragmentStoreOp : KVBuffer_Op<"fragment_store", [
    MemoryEffects<[MemWrite]>]> {
  let summary = "Stores a fragment into a tile in DRAM";
  let description = [{
    Rows and columns that are not valid, and columns past the tile's, are not
    written. With `via`, a buffer in LDS, a tile that is valid as a whole may go
    through it.

    Example:

    ```mlir
    kvbuffer.fragment_store %o, %tile
      : !kvbuffer.fragment<128x128xbf16, acc>, !kvbuffer.tile<128x128xbf16>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_FragmentType, "what is stored">:$fragment,
      Arg<KVBuffer_TileType, "where it goes">:$tile,
      Arg<Optional<KVBuffer_BufferType>, "a buffer that a whole tile may go through">:$via);
  let assemblyFormat = [{
    $fragment `,` $tile (`via` $via^ `:` type($via))? attr-dict
    `:` type($fragment) `,` type($tile)
  }];
  let hasVerifier = 1;
}

def KVBuffer_RowStoreOp : KVBuffer_Op<"row_store", [
    MemoryEffects<[MemWrite]>]> {
  let summary = "Stores one value a row";
  let description = [{
    Row i of the fragment goes to `indices` with its last index plus i, for i <
    `valid`. With `group`, to its last index plus i / `group` and the one before
    plus i % `group` (see `kvbuffer.dram_tile`).

    Example:

    ```mlir
    kvbuffer.row_store %lse, %mem[%batch, %head, %row] valid(%n)
      : !kvbuffer.fragment<128x1xf32, row>, memref<?x16x?xf32>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_FragmentType, "a value for each row">:$fragment,
      Arg<AnyMemRef, "where they go">:$tensor,
      Arg<Variadic<Index>, "the place of row 0">:$indices,
      Arg<Index, "rows that exist">:$valid,
      Arg<DefaultValuedAttr<I64Attr, "1">, "rows that are heads of one row of the tensor">:$group);
  let assemblyFormat = [{
    $fragment `,` $tensor `[` $indices `]` `valid` `(` $valid `)` attr-dict
    `:` type($fragment) `,` type($tensor)
  }];
  let hasVerifier = 1;
}

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
    any lane shuffle where the layouts allow it, which the lowering checks.

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

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFEROPS_TD
