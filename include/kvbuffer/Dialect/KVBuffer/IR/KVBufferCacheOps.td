//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Caches lane by lane: what the methods of the seed page KVCacheT are. Any
// function may use these ops; `kvbuf-expand-cache-ops` rewrites them.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERCACHEOPS_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERCACHEOPS_TD

include "kvbuffer/Dialect/KVBuffer/IR/KVBufferOpBase.td"

/// What a cache is made of: a memref, or a tensor before bufferization.
def KVBuffer_CachePart : AnyTypeOf<[AnyMemRef, AnyRankedTensor]>;

def KVBuffer_MakeCacheOp : KVBuffer_OpOf<KVBuffer_Caches, "make_cache", [
    KVBuffer_NamedResults, AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<ConditionallySpeculatable>,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Makes a cache of memrefs or tensors";
  let description = [{
    A value that stands for the cache in these memrefs; nothing is copied. `data`
    has the dimensions that the kind of cache says, with any strides but for the
    last. `indices` are the kind's tensors of integers, each i32 or i64: none of a
    dense cache, `offsets` of a ragged one, `table` and `lengths` of a continuous or
    paged one. `scales` belong to quantized caches. `max_prompt` and `max_context`
    are the longest lengths of the request, where the program knows them.

    Each may be a tensor, too. The cache is memory then that holds the tensors'
    elements, and `kvbuffer.cache_tensor` says what they are after something was
    stored. Bufferization takes the tensors' own buffers; it copies data and scales
    first if something is stored in the cache and the tensor is read later. While a
    cache is in use no tensor of it can be written by other ops.

    Example:

    ```mlir
    %c = kvbuffer.make_cache %data indices(%table, %lengths : memref<?x?xi32>, memref<?xi32>)
      : memref<?x64x8x128xbf16> -> !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 64>
    ```
  }];
  let arguments = (ins
    Arg<KVBuffer_CachePart, "leading dimensions, heads, columns">:$data,
    Arg<Variadic<KVBuffer_CachePart>, "the kind's tables, lengths and offsets">:$indices,
    Arg<Optional<KVBuffer_CachePart>, "scales of a quantized cache">:$scales,
    Arg<Optional<Index>, "most new tokens of a sequence">:$max_prompt,
    Arg<Optional<Index>, "most tokens of a sequence">:$max_context);
  let results = (outs Res<KVBuffer_AnyCache, "the cache of these parts">:$cache);
  let assemblyFormat = [{
    $data (`indices` `(` $indices^ `:` type($indices) `)`)?
    (`scales` `(` $scales^ `:` type($scales) `)`)?
    (`max_prompt` `(` $max_prompt^ `)`)? (`max_context` `(` $max_context^ `)`)?
    attr-dict `:` type($data) `->` type($cache)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether a part is a tensor, as none is after bufferization.
    bool isOnTensors() {
      return ::llvm::any_of((*this)->getOperandTypes(), [](::mlir::Type type) {
        return ::llvm::isa<::mlir::TensorType>(type);
      });
    }
  }];
}

def KVBuffer_CacheTensorOp : KVBuffer_OpOf<KVBuffer_Caches, "cache_tensor", [
    AllTypesMatch<["into", "result"]>, MemoryEffects<[MemRead]>]> {
  let summary = "A tensor that a cache was made of, as it is now";
  let description = [{
    The data, or with `scales` the scales, of a cache that `kvbuffer.make_cache` has
    made of tensors in this function, after everything that was stored in it before.
    `into` is the tensor that the cache was made of: a destination, whose buffer the
    result has.

    Example:

    ```mlir
    func.func @step(%k: tensor<2x1x8x128xbf16>, %pages: tensor<?x64x8x128xbf16>,
                    %table: tensor<2x?xi32>, %lengths: tensor<2xi32>)
        -> tensor<?x64x8x128xbf16> {
      %c = kvbuffer.make_cache %pages indices(%table, %lengths : tensor<2x?xi32>, tensor<2xi32>)
        : tensor<?x64x8x128xbf16> -> !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 64>
      kvbuffer.cache_append k(%k : tensor<2x1x8x128xbf16>)
        to(%c : !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 64>)
      %new = kvbuffer.cache_tensor %c into(%pages)
        : !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 64> -> tensor<?x64x8x128xbf16>
      return %new : tensor<?x64x8x128xbf16>
    }
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_AnyCache, "a cache made of tensors">:$cache,
      Arg<AnyRankedTensor, "the tensor that it was made of, as a destination">:$into,
      Arg<UnitAttr, "the scales, not the data">:$scales);
  let results = (outs Res<AnyRankedTensor, "its contents after all that was stored">:$result);
  let assemblyFormat = [{
    $cache (`scales` $scales^)? `into` `(` $into `)` attr-dict `:` type($cache) `->` type($result)
  }];
  let hasVerifier = 1;
}

def KVBuffer_CacheLengthOp : KVBuffer_OpOf<KVBuffer_Caches, "cache.cache_length", [
    MemoryEffects<[MemRead]>]> {
  let summary = "The number of tokens of a sequence";
  let description = [{
    Dense: the rows of a sequence. Ragged: the difference of offsets. Continuous and
    paged: the entry of `lengths`, which excludes the new tokens. A number that
    does not fit counts as the nearest that does: none below 0, none above what the
    cache has room for.

    Example:

    ```mlir
    %n = kvbuffer.cache.cache_length %cache[%batch] : !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 64>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_AnyCache, "the cache">:$cache,
      Arg<Index, "the sequence">:$batch);
  let results = (outs
      Res<Index, "tokens, without the new ones where lengths exclude them">:$length);
  let assemblyFormat = [{
    $cache `[` $batch `]` attr-dict `:` type($cache)
  }];
}

def KVBuffer_EmptyCacheOp : KVBuffer_OpOf<KVBuffer_Caches, "cache.empty_cache", [
    MemoryEffects<[MemRead]>]> {
  let summary = "Whether no sequence has a token";
  let description = [{
    Whether `kvbuffer.cache.max_context_length` is 0.

    Example:

    ```mlir
    %none = kvbuffer.cache.empty_cache %cache : !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 64>
    ```
  }];
  let arguments = (ins Arg<KVBuffer_AnyCache, "the cache">:$cache);
  let results = (outs Res<I1, "whether no sequence has a token">:$empty);
  let assemblyFormat = [{
    $cache attr-dict `:` type($cache)
  }];
}

def KVBuffer_MaxPromptLengthOp : KVBuffer_OpOf<KVBuffer_Caches, "cache.max_prompt_length", [
    MemoryEffects<[MemRead]>]> {
  let summary = "The most new tokens of a sequence";
  let description = [{
    What the cache was made with: no tensor of it tells. The argument of a kernel
    gets it as a size of the launch, `max_prompt_length`.

    Example:

    ```mlir
    %n = kvbuffer.cache.max_prompt_length %cache : !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 64>
    ```
  }];
  let arguments = (ins Arg<KVBuffer_AnyCache, "the cache">:$cache);
  let results = (outs Res<Index, "the most new tokens of a sequence">:$length);
  let assemblyFormat = [{
    $cache attr-dict `:` type($cache)
  }];
}

def KVBuffer_MaxContextLengthOp : KVBuffer_OpOf<KVBuffer_Caches, "cache.max_context_length", [
    MemoryEffects<[MemRead]>]> {
  let summary = "The most tokens of a sequence";
  let description = [{
    What the cache was made with, else the largest `kvbuffer.cache.cache_length`,
    for which a loop reads them all.

    Example:

    ```mlir
    %n = kvbuffer.cache.max_context_length %cache : !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 64>
    ```
  }];
  let arguments = (ins Arg<KVBuffer_AnyCache, "the cache">:$cache);
  let results = (outs Res<Index, "the most tokens of a sequence">:$length);
  let assemblyFormat = [{
    $cache attr-dict `:` type($cache)
  }];
}

def KVBuffer_RowIdxOp : KVBuffer_OpOf<KVBuffer_Caches, "cache.row_idx", [
    MemoryEffects<[MemRead]>]> {
  let summary = "The row of a token in the memory seen as a matrix";
  let description = [{
    A row of that matrix is a token's heads; blocks lie `stride` rows apart, the
    quotient of the strides of blocks and tokens: block * stride + row, in 64 bits.
    Needs tokens outside of heads and blocks outside of tokens, by whole rows. A
    token that has no row (past the room of its sequence, or in a block that the
    cache lacks) gets -1.

    Example:

    ```mlir
    %row = kvbuffer.cache.row_idx %cache[%batch, %token] : !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 64>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_AnyCache, "the cache">:$cache,
      Arg<Index, "the sequence">:$batch,
      Arg<Index, "the first token's position">:$start_tok);
  let results = (outs Res<Index, "the row; -1 where the token has none">:$row);
  let assemblyFormat = [{
    $cache `[` $batch `,` $start_tok `]` attr-dict `:` type($cache)
  }];
}

def KVBuffer_NumKVRowsOp : KVBuffer_OpOf<KVBuffer_Caches, "cache.num_kv_rows", [
    Pure]> {
  let summary = "The number of rows of that matrix";
  let description = [{
    Of a cache of blocks (blocks - 1) * stride + rows of a block, the rows between
    two blocks' own included; see `kvbuffer.cache.row_idx`.

    Example:

    ```mlir
    %n = kvbuffer.cache.num_kv_rows %cache : !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 64>
    ```
  }];
  let arguments = (ins Arg<KVBuffer_AnyCache, "the cache">:$cache);
  let results = (outs Res<Index, "rows of the memory, seen as a matrix">:$rows);
  let assemblyFormat = [{
    $cache attr-dict `:` type($cache)
  }];
}

def KVBuffer_GetTmaRowOp : KVBuffer_OpOf<KVBuffer_Caches, "cache.get_tma_row", [
    Pure]> {
  let summary = "The row of an encoded index";
  let description = [{
    Of a paged cache block * stride + offset for the index block * page_size +
    offset; of others the index. See `kvbuffer.cache.row_idx`.

    Example:

    ```mlir
    %row = kvbuffer.cache.get_tma_row %cache[%encoded] : !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 64>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_AnyCache, "the cache">:$cache,
      Arg<Index, "block * page_size + offset; of caches without pages the row">:$encoded);
  let results = (outs Res<Index, "the row of the memory, seen as a matrix">:$row);
  let assemblyFormat = [{
    $cache `[` $encoded `]` attr-dict `:` type($cache)
  }];
}

def KVBuffer_MaxTileSizeOp : KVBuffer_OpOf<KVBuffer_Caches, "cache.max_tile_size", [
    Pure]> {
  let summary = "The most tokens whose rows lie together";
  let description = [{
    Of a paged cache its page size, of others the rows of a sequence's block. A
    `kvbuffer.cache.block_paged_ptr` covers at most so many.

    Example:

    ```mlir
    %n = kvbuffer.cache.max_tile_size %cache : !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 64>
    ```
  }];
  let arguments = (ins Arg<KVBuffer_AnyCache, "the cache">:$cache);
  let results = (outs Res<Index, "tokens whose rows lie together">:$rows);
  let assemblyFormat = [{
    $cache attr-dict `:` type($cache)
  }];
}

def KVBuffer_BlockPagedPtrOp : KVBuffer_OpOf<KVBuffer_Caches, "cache.block_paged_ptr", [
    MemoryEffects<[MemRead]>]> {
  let summary = "The memory of a tile of a head";
  let description = [{
    A view of the rows from token `start_tok` on at one head, and of the columns
    from `head_dim` on. The result's rows are the tile's size, which divides the
    page size; `start_tok` is a multiple of it. The caller sees to it that the first
    token has a row.

    Example:

    ```mlir
    %tile = kvbuffer.cache.block_paged_ptr %cache[%batch, %token, %head, %zero]
      : !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 64>
        -> memref<64x128xbf16, strided<[?, 1], offset: ?>>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_AnyCache, "the cache">:$cache,
      Arg<Index, "the sequence">:$batch,
      Arg<Index, "the first token's position">:$start_tok,
      Arg<Index, "the head of the cache">:$head,
      Arg<Index, "the first element of the head">:$head_dim);
  let results = (outs Res<AnyMemRef, "a view of the tile's rows and columns">:$tile);
  let assemblyFormat = [{
    $cache `[` $batch `,` $start_tok `,` $head `,` $head_dim `]` attr-dict
    `:` type($cache) `->` type($tile)
  }];
  let hasVerifier = 1;
}

def KVBuffer_CacheLoadOp : KVBuffer_OpOf<KVBuffer_Caches, "cache.load", [
    MemoryEffects<[MemRead]>]> {
  let summary = "Loads elements of a token";
  let description = [{
    The vector's elements from `head_dim` on, converted to the type of its elements;
    of a quantized cache times their scales. A token that has no row reads as zero
    (see `kvbuffer.cache.store`). Where scales are by groups of elements, `head_dim`
    is a multiple of the vector's size, and one of that size and the granularity
    divides the other. Of packed rows, too, whose parts have a multiple of the vector's
    size. `alignment` is what the caller knows of the address, bytes.

    Example:

    ```mlir
    %x = kvbuffer.cache.load %cache[%batch, %head, %token, %zero] {alignment = 16 : i64}
      : !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 64> -> vector<8xf32>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_AnyCache, "the cache">:$cache,
      Arg<Index, "the sequence">:$batch,
      Arg<Index, "the head of the cache">:$head,
      Arg<Index, "the token's position in its sequence">:$token,
      Arg<Index, "the first element of the head">:$head_dim,
      Arg<OptionalAttr<I64Attr>, "bytes that the address is known to be a multiple of">:$alignment,
      Arg<UnitAttr, "the token is known to have a row">:$in_bounds);
  let results = (outs
      Res<VectorOfRankAndType<[1], [AnyFloat]>,
          "the elements, converted, times their scales">:$result);
  let assemblyFormat = [{
    $cache `[` $batch `,` $head `,` $token `,` $head_dim `]` attr-dict `:` type($cache) `->` type($result)
  }];
  let hasVerifier = 1;
}

def KVBuffer_CacheStoreOp : KVBuffer_OpOf<KVBuffer_Caches, "cache.store", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Stores elements of a token";
  let description = [{
    Stores the vector at the elements from `head_dim` on; its type is the cache's.
    Where the token has no row, nothing is stored: at a negative position or past
    the room of its sequence, and in a block that the cache does not have, such as a
    table's entry that says "none". `in_bounds` says that there is one, and spares
    the look. Of packed rows (`#kvbuffer.row`) `part` says in which of their parts the
    elements lie, and their type is the part's.

    Example:

    ```mlir
    kvbuffer.cache.store %x, %cache[%batch, %head, %token, %zero] {alignment = 16 : i64}
      : vector<8xbf16>, !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 64>
    ```
  }];
  let arguments = (ins
      Arg<VectorOfRankAndType<[1], [AnyFloat]>, "elements of the cache's type">:$value,
      Arg<KVBuffer_AnyCache, "the cache">:$cache,
      Arg<Index, "the sequence">:$batch,
      Arg<Index, "the head of the cache">:$head,
      Arg<Index, "the token's position in its sequence">:$token,
      Arg<Index, "the first element of the head">:$head_dim,
      Arg<OptionalAttr<I64Attr>, "bytes that the address is known to be a multiple of">:$alignment,
      Arg<UnitAttr, "the token is known to have a row">:$in_bounds,
      Arg<OptionalAttr<I64Attr>, "which part of a packed row, from 0 on">:$part);
  let assemblyFormat = [{
    $value `,` $cache `[` $batch `,` $head `,` $token `,` $head_dim `]` attr-dict `:` type($value) `,` type($cache)
  }];
  let hasVerifier = 1;
}

def KVBuffer_LoadQuantizedOp : KVBuffer_OpOf<KVBuffer_Caches, "cache.load_quantized", [
    MemoryEffects<[MemRead]>]> {
  let summary = "Loads elements of a token as they are stored";
  let description = [{
    As `kvbuffer.cache.load`, without scales and conversions. Of packed rows `part` says
    in which of their parts the elements lie.

    Example:

    ```mlir
    %q = kvbuffer.cache.load_quantized %cache[%batch, %head, %token, %zero]
      : !kvbuffer.cache<paged, f8E4M3FN, heads = 8, head_size = 128, page_size = 64, scale = f32, granularity = 32> -> vector<16xf8E4M3FN>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_AnyCache, "the cache">:$cache,
      Arg<Index, "the sequence">:$batch,
      Arg<Index, "the head of the cache">:$head,
      Arg<Index, "the token's position in its sequence">:$token,
      Arg<Index, "the first element of the head">:$head_dim,
      Arg<OptionalAttr<I64Attr>, "bytes that the address is known to be a multiple of">:$alignment,
      Arg<UnitAttr, "the token is known to have a row">:$in_bounds,
      Arg<OptionalAttr<I64Attr>, "which part of a packed row, from 0 on">:$part);
  let results = (outs
      Res<VectorOfRankAndType<[1], [AnyFloat]>, "the elements as they are stored">:$result);
  let assemblyFormat = [{
    $cache `[` $batch `,` $head `,` $token `,` $head_dim `]` attr-dict `:` type($cache) `->` type($result)
  }];
  let hasVerifier = 1;
}

def KVBuffer_LoadScaleOp : KVBuffer_OpOf<KVBuffer_Caches, "cache.load_scale", [
    MemoryEffects<[MemRead]>]> {
  let summary = "Loads scales of a token";
  let description = [{
    The scale of the element `head_dim`, and those of the groups after it. One a
    tensor or head: the vector has one element. Zero where the token has no row. Of
    packed rows `part` says of which of their parts.

    Example:

    ```mlir
    %s = kvbuffer.cache.load_scale %cache[%batch, %head, %token, %zero]
      : !kvbuffer.cache<paged, f8E4M3FN, heads = 8, head_size = 128, page_size = 64, scale = f32, granularity = 32> -> vector<1xf32>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_AnyCache, "the cache">:$cache,
      Arg<Index, "the sequence">:$batch,
      Arg<Index, "the head of the cache">:$head,
      Arg<Index, "the token's position in its sequence">:$token,
      Arg<Index, "the first element of the head">:$head_dim,
      Arg<UnitAttr, "the token is known to have a row">:$in_bounds,
      Arg<OptionalAttr<I64Attr>, "which part of a packed row, from 0 on">:$part);
  let results = (outs
      Res<VectorOfRankAndType<[1], [AnyFloat]>, "scales of neighbouring groups">:$result);
  let assemblyFormat = [{
    $cache `[` $batch `,` $head `,` $token `,` $head_dim `]` attr-dict `:` type($cache) `->` type($result)
  }];
  let hasVerifier = 1;
}

def KVBuffer_StoreScaleOp : KVBuffer_OpOf<KVBuffer_Caches, "cache.store_scale", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Stores scales of a token";
  let description = [{
    At the group of the element `head_dim`, and those after it; nothing where the
    token has no row. Scales of a tensor or head are one for all tokens. Of packed rows
    `part` says of which of their parts.

    Example:

    ```mlir
    kvbuffer.cache.store_scale %s, %cache[%batch, %head, %token, %zero]
      : vector<1xf32>, !kvbuffer.cache<paged, f8E4M3FN, heads = 8, head_size = 128, page_size = 64, scale = f32, granularity = 32>
    ```
  }];
  let arguments = (ins
      Arg<VectorOfRankAndType<[1], [AnyFloat]>, "scales of neighbouring groups">:$value,
      Arg<KVBuffer_AnyCache, "the cache">:$cache,
      Arg<Index, "the sequence">:$batch,
      Arg<Index, "the head of the cache">:$head,
      Arg<Index, "the token's position in its sequence">:$token,
      Arg<Index, "the first element of the head">:$head_dim,
      Arg<UnitAttr, "the token is known to have a row">:$in_bounds,
      Arg<OptionalAttr<I64Attr>, "which part of a packed row, from 0 on">:$part);
  let assemblyFormat = [{
    $value `,` $cache `[` $batch `,` $head `,` $token `,` $head_dim `]` attr-dict `:` type($value) `,` type($cache)
  }];
  let hasVerifier = 1;
}

def KVBuffer_ScalesBlockPagedPtrOp : KVBuffer_OpOf<KVBuffer_Caches, "cache.scales_block_paged_ptr", [
    MemoryEffects<[MemRead]>]> {
  let summary = "The scales of a tile of a head";
  let description = [{
    As `kvbuffer.cache.block_paged_ptr`, of a cache with scales by tokens: columns
    are groups of elements, from that of `head_dim` on.

    Example:

    ```mlir
    %tile = kvbuffer.cache.scales_block_paged_ptr %cache[%batch, %token, %head, %zero]
      : !kvbuffer.cache<paged, f8E4M3FN, heads = 8, head_size = 128, page_size = 64, scale = f32, granularity = 32>
        -> memref<64x4xf32, strided<[?, 1], offset: ?>>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_AnyCache, "the cache">:$cache,
      Arg<Index, "the sequence">:$batch,
      Arg<Index, "the first token's position">:$start_tok,
      Arg<Index, "the head of the cache">:$head,
      Arg<Index, "the first element of the head">:$head_dim);
  let results = (outs
      Res<AnyMemRef, "a view of the tile's scales: a row a token, a column a group">:$tile);
  let assemblyFormat = [{
    $cache `[` $batch `,` $start_tok `,` $head `,` $head_dim `]` attr-dict
    `:` type($cache) `->` type($tile)
  }];
  let hasVerifier = 1;
}

def KVBuffer_ScalesRawPtrOp : KVBuffer_OpOf<KVBuffer_Caches, "cache.scales_raw_ptr", [
    Pure]> {
  let summary = "Where the scales begin";
  let description = [{
    The first scale, as a memref of rank 0.

    Example:

    ```mlir
    %s = kvbuffer.cache.scales_raw_ptr %cache
      : !kvbuffer.cache<paged, f8E4M3FN, heads = 8, head_size = 128, page_size = 64, scale = f32, granularity = 32> -> memref<f32, strided<[], offset: ?>>
    ```
  }];
  let arguments = (ins Arg<KVBuffer_AnyCache, "the cache">:$cache);
  let results = (outs Res<AnyMemRef, "the first scale">:$scales);
  let assemblyFormat = [{
    $cache attr-dict `:` type($cache) `->` type($scales)
  }];
  let hasVerifier = 1;
}

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERCACHEOPS_TD
