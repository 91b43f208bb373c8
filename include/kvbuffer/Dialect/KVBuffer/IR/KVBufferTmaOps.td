//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tensor maps of caches, for kernels by lanes: the makers of the seed page
// KVCacheT. `kvbuf-expand-arguments` makes parameters of their results, which the
// runtime fills at each launch.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERTMAOPS_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERTMAOPS_TD

include "kvbuffer/Dialect/KVBuffer/IR/KVBufferCacheOps.td"

class KVBuffer_TmaTileMaker<string name>
    : KVBuffer_OpOf<KVBuffer_Caches, name, [Pure]> {
  let results = (outs Res<AnyType, "the map's address, an `!llvm.ptr`">:$map);
  let assemblyFormat = "$cache attr-dict `:` type($cache) `->` type($map)";
  let hasVerifier = 1;
}

def KVBuffer_CreateTmaTileOp : KVBuffer_TmaTileMaker<"cache.create_tma_tile"> {
  let summary = "A tensor map of tiles of a head";
  let description = [{
    The cache is seen as [`num_kv_rows`, heads, head_size]
    (`kvbuffer.cache.num_kv_rows`). A box has `BN` rows of one head and the columns
    that `swizzle` spans, `BK` without one; coordinates are column, head, row
    (`kvbuffer.cache.row_idx`). Where `BK` is left out, it is the head size, rounded
    up to whole boxes. `swizzle` is in bytes: 0 (none), 32, 64 or 128. The cache is
    an argument of the kernel.

    Example:

    ```mlir
    %map = kvbuffer.cache.create_tma_tile %cache {BN = 64 : i64, swizzle = 128 : i64}
      : !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 64> -> !llvm.ptr
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_AnyCache, "the cache">:$cache,
      Arg<I64Attr, "rows of a box">:$BN,
      Arg<OptionalAttr<I64Attr>,
          "columns; the head size, rounded up to whole boxes, without it">:$BK,
      Arg<DefaultValuedAttr<I64Attr, "0">,
          "bytes that a swizzle spans: 0 (none), 32, 64 or 128">:$swizzle);
}

def KVBuffer_CreateRaggedTmaTileOp
    : KVBuffer_TmaTileMaker<"cache.create_ragged_tma_tile"> {
  let summary = "A tensor map of tiles whose last rows are cut";
  let description = [{
    As `kvbuffer.cache.create_tma_tile`, but a copy brings `n` of the `BN` rows from
    row `r` on, and zeros for the others, whatever lies there: coordinates are
    column, BN - `n`, head, `r` + `n`. Rows are a dimension of `BN` that ends at
    row `r` + `n` of the other one, so that those after them lie outside of the tensor.

    Example:

    ```mlir
    %map = kvbuffer.cache.create_ragged_tma_tile %cache {BN = 64 : i64, swizzle = 128 : i64}
      : !kvbuffer.cache<ragged, bf16, heads = 8, head_size = 128> -> !llvm.ptr
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_AnyCache, "the cache">:$cache,
      Arg<I64Attr, "rows of a box">:$BN,
      Arg<OptionalAttr<I64Attr>,
          "columns; the head size, rounded up to whole boxes, without it">:$BK,
      Arg<DefaultValuedAttr<I64Attr, "0">,
          "bytes that a swizzle spans: 0 (none), 32, 64 or 128">:$swizzle);
}

def KVBuffer_CreateRopeTmaTileOp : KVBuffer_TmaTileMaker<"cache.create_rope_tma_tile"> {
  let summary = "A tensor map of the rotated part of rows";
  let description = [{
    Rows of 8-bit elements hold `padded_depth` bytes of content and then `BK`
    elements of bf16, which this map is of: as `kvbuffer.cache.create_tma_tile`,
    with column 0 at byte `padded_depth` of a row.

    Example:

    ```mlir
    %map = kvbuffer.cache.create_rope_tma_tile %cache {BN = 64 : i64, BK = 64 : i64, padded_depth = 512 : i64, swizzle = 128 : i64}
      : !kvbuffer.cache<paged, f8E4M3FN, heads = 1, head_size = 512, cache_depth = 640, page_size = 64> -> !llvm.ptr
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_AnyCache, "the cache">:$cache,
      Arg<I64Attr, "rows of a box">:$BN,
      Arg<I64Attr, "elements of bf16 in the rotated part">:$BK,
      Arg<I64Attr, "bytes of a row before it">:$padded_depth,
      Arg<DefaultValuedAttr<I64Attr, "0">,
          "bytes that a swizzle spans: 0 (none), 32, 64 or 128">:$swizzle);
}

def KVBuffer_CreateGather4TmaTileOp
    : KVBuffer_TmaTileMaker<"cache.create_gather4_tma_tile"> {
  let summary = "A tensor map of four rows anywhere";
  let description = [{
    The cache is seen as a matrix of [`num_kv_rows`, row], of elements `tma_dtype`
    (the cache's, if left out). A copy of four rows (PTX ISA, `tile::gather4`)
    takes a column and four rows (`kvbuffer.cache.get_tma_row`). Its box has
    `tile_width` columns, or those that `swizzle` spans. `tile_height` rows, a
    multiple of 4, are what the program makes of such copies. Rows begin
    `tile_stride` elements apart, at least `tile_width`; left out, as far apart as
    the launch's tensor says. The heads of a token lie side by side.

    Example:

    ```mlir
    %map = kvbuffer.cache.create_gather4_tma_tile %cache {tile_height = 64 : i64, tile_width = 128 : i64, swizzle = 128 : i64}
      : !kvbuffer.cache<paged, bf16, heads = 1, head_size = 128, page_size = 64> -> !llvm.ptr
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_AnyCache, "the cache">:$cache,
      Arg<DefaultValuedAttr<I64Attr, "4">,
          "rows that the program makes of copies of four">:$tile_height,
      Arg<I64Attr, "columns of a tile">:$tile_width,
      Arg<OptionalAttr<I64Attr>, "elements from row to row; the tensor's without it">:$tile_stride,
      Arg<DefaultValuedAttr<I64Attr, "0">,
          "bytes that a swizzle spans: 0 (none), 32, 64 or 128">:$swizzle,
      Arg<OptionalAttr<TypeAttr>, "the map's elements; the cache's without it">:$tma_dtype,
      Arg<DefaultValuedAttr<I64Attr, "0">,
          "bytes that the L2 fetches at once: 0 (none), 64, 128 or 256">:$l2_promotion);
}

def KVBuffer_CreateRopeGather4TmaTileOp
    : KVBuffer_TmaTileMaker<"cache.create_rope_gather4_tma_tile"> {
  let summary = "A tensor map of the rotated part of four rows anywhere";
  let description = [{
    As `kvbuffer.cache.create_gather4_tma_tile`, of the `tile_width` elements of
    bf16 from byte `padded_depth` of each row on.

    Example:

    ```mlir
    %map = kvbuffer.cache.create_rope_gather4_tma_tile %cache {tile_width = 64 : i64, padded_depth = 512 : i64}
      : !kvbuffer.cache<paged, f8E4M3FN, heads = 1, head_size = 512, cache_depth = 640, page_size = 64> -> !llvm.ptr
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_AnyCache, "the cache">:$cache,
      Arg<DefaultValuedAttr<I64Attr, "4">,
          "rows that the program makes of copies of four">:$tile_height,
      Arg<I64Attr, "elements of bf16 in the rotated part">:$tile_width,
      Arg<I64Attr, "bytes of a row before it">:$padded_depth,
      Arg<DefaultValuedAttr<I64Attr, "0">,
          "bytes that a swizzle spans: 0 (none), 32, 64 or 128">:$swizzle,
      Arg<DefaultValuedAttr<I64Attr, "0">,
          "bytes that the L2 fetches at once: 0 (none), 64, 128 or 256">:$l2_promotion);
}

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERTMAOPS_TD
