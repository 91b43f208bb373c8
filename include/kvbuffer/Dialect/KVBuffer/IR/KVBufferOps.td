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
// Caches and tiles in DRAM
//===----------------------------------------------------------------------===//

def KVBuffer_CacheNumKeysOp : KVBuffer_OpOf<KVBuffer_Tiles, "cache.num_keys", [KVBuffer_NamedResults,
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
    $cache `[` $batch `]` `new` `(` $newTokens `)` attr-dict `:` custom<CacheOrTensor>(type($cache))
  }];
  let extraClassDeclaration = [{
    CacheLayout getLayout() { return ::llvm::cast<CacheLayout>(getCache().getType()); }
  }];
}

def KVBuffer_CacheScaleOp : KVBuffer_OpOf<KVBuffer_Tiles, "cache_scale", [MemoryEffects<[MemRead]>]> {
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
    $cache `[` $batch `,` $head `,` $token `,` $headDim `]` attr-dict `:` custom<CacheOrTensor>(type($cache))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    CacheLayout getLayout() { return ::llvm::cast<CacheLayout>(getCache().getType()); }
  }];
}

def KVBuffer_CacheTileOp : KVBuffer_OpOf<KVBuffer_Tiles, "cache_tile", [KVBuffer_NamedResults,
    AttrSizedOperandSegments, MemoryEffects<[MemRead]>]> {
  let summary = "The tile of a cache that starts at a key";
  let description = [{
    `rows` keys of one sequence and KV head, from key `start` on; the keys in
    [`from`, `upto`) are valid (seed page KVCacheIterator). One page look-up a
    tile where a page holds whole tiles; a tile type with `page_size` has several,
    here (by lanes) or at the load. No look-up happens where `pred` is false or no
    row is valid. `col` says that loads take columns from that one of the head on:
    a block of threads that has a part of V's columns, which the program knows at
    run time alone.

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
      Arg<Optional<I1>, "false: the tile is not looked up">:$pred,
      Arg<Optional<Index>, "the first column; 0 without it">:$col);
  let results = (outs Res<KVBuffer_TileType, "the tile">:$tile);
  let builders = [OpBuilder<(ins "::mlir::Type":$tile, "::mlir::Value":$cache,
      "::mlir::Value":$batch, "::mlir::Value":$head, "::mlir::Value":$start,
      "::mlir::Value":$from, "::mlir::Value":$upto, "::mlir::Value":$pred), [{
    build($_builder, $_state, tile, cache, batch, head, start, from, upto, pred,
          /*col=*/::mlir::Value());
  }]>];
  let assemblyFormat = [{
    $cache `[` $batch `,` $head `,` $start `]` `from` $from `upto` $upto
    (`if` $pred^)? (`col` $col^)? attr-dict `:` custom<CacheOrTensor>(type($cache)) `->` type($tile)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    CacheLayout getLayout() { return ::llvm::cast<CacheLayout>(getCache().getType()); }
  }];
}

def KVBuffer_DramTileOp : KVBuffer_OpOf<KVBuffer_Tiles, "dram_tile", [KVBuffer_NamedResults, Pure,
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

def KVBuffer_KeyRangeOp : KVBuffer_OpOf<KVBuffer_Tiles, "key_range", [Pure]> {
  let summary = "The keys that a tile of queries can see";
  let description = [{
    For query rows [`row`, min(`row` + BM, `queries`)) and a mask: the keys
    [`lo`, `hi`) outside of which no row sees any; `hi <= lo` if there is none.
    Tiles wholly inside [`fullLo`, `fullHi`) need no masking: every row sees
    every key of it. With `group`, every `group` rows of the BM are one query (see
    `kvbuffer.dram_tile`); `row` and `queries` count queries. No row sees a key
    before `from`, whatever the mask says: `lo` is that one or behind it.

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
      Arg<Optional<Index>, "no row sees a key before it">:$from,
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
      CArg<"int64_t", "1">:$group, CArg<"::mlir::Value", "{}">:$from)>];
  let extraClassDeclaration = [{
    /// Whether the first key may be hidden from all rows.
    bool mayBeginLater() { return getFrom() || getMask().boundsLeft(); }
    /// The queries that the rows are of.
    int64_t getQueriesOfRows() {
      return (int64_t(getBM()) - 1) / int64_t(getGroup()) + 1;
    }
  }];
  let assemblyFormat = "$row `of` $queries `keys` $keys (`from` $from^)? attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Movement
//===----------------------------------------------------------------------===//

def KVBuffer_AllocOp : KVBuffer_OpOf<KVBuffer_Tiles, "alloc", [KVBuffer_NamedResults,
    MemoryEffects<[MemAlloc<KVBuffer_Lds>]>]> {
  let summary = "Allocates a buffer in LDS";
  let description = [{
    Lives as long as the block. Remarks of `kvbuf-report-buffers` print its
    derived members. It may have a `label`, by which messages, pictures and names
    of values speak of it. `offset` is its first byte in the block's LDS, a multiple of
    1024; `kvbuf-allocate-lds` gives one to every buffer that has none. Buffers
    of which no two are in use at the same time may lie in the same bytes.

    Example:

    ```mlir
    %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 128, stages = 2>>
    ```
  }];
  let arguments = (ins
      Arg<OptionalAttr<I64Attr>,
          "the first byte in the block's LDS; chosen by `kvbuf-allocate-lds` without it">:$offset,
      Arg<OptionalAttr<StrAttr>,
          "what messages and pictures call it; for nothing else">:$label);
  let results = (outs Res<KVBuffer_BufferType, "the buffer">:$buffer);
  let builders = [OpBuilder<(ins "::mlir::Type":$type, CArg<"::llvm::StringRef", "{}">:$label), [{
    build($_builder, $_state, type, ::mlir::IntegerAttr(),
          label.empty() ? ::mlir::StringAttr() : $_builder.getStringAttr(label));
  }]>];
  let assemblyFormat = "attr-dict `:` type($buffer)";
  let hasVerifier = 1;
}

def KVBuffer_DramLoadOp : KVBuffer_OpOf<KVBuffer_Tiles, "dram_load", [KVBuffer_NamedResults,
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

def KVBuffer_LdsStageOp : KVBuffer_OpOf<KVBuffer_Tiles, "lds_stage", [KVBuffer_NamedResults,
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

def KVBuffer_FragmentLoadOp : KVBuffer_OpOf<KVBuffer_Tiles, "fragment_load", [KVBuffer_NamedResults,
    MemoryEffects<[MemRead<KVBuffer_Lds>]>]> {
  let summary = "Loads a fragment from a staged slot";
  let description = [{
    The `rows` x `cols` part at (`row`, `col`) of the slot or view, as an operand
    of the matrix unit. `contracted` says which dimension products contract: of
    operand `b` the columns (`kvbuffer.mma` with `transpose_b`: b's rows are the
    product's columns) or the rows (without), for which b is transposed on the
    way where the matrix unit asks for it. Left out, it is the columns of `a`, and
    what the buffer's operand says of `b`: the columns of a buffer of `k`, the
    rows of one of `v`. A neutral buffer says nothing.

    Of operand `a` it is the columns, or, with `contracted(rows)`, the rows: the
    fragment is then the part's transpose, `cols` x `rows`, so that the product is
    that of the slot's transpose (K^T V).

    8-bit floats may be loaded as bf16 or f16, which have all their values: they
    are widened in registers.

    Words of f32, of a neutral buffer, no product takes: they are loaded as
    accumulators (`acc`), beside others for `kvbuffer.map`.

    Examples:

    ```mlir
    %kf = kvbuffer.fragment_load %ks [0, 16]
      : !kvbuffer.staged<#kbuf> -> !kvbuffer.fragment<64x16xbf16, b>
    %bf = kvbuffer.fragment_load %bs[0, 0] contracted(rows)
      : !kvbuffer.staged<#kvbuffer.kv_buffer<64x128xbf16, BK = 64>> -> !kvbuffer.fragment<64x128xbf16, b>
    %at = kvbuffer.fragment_load %bs[0, 0] contracted(rows)
      : !kvbuffer.staged<#kvbuffer.kv_buffer<64x128xbf16, BK = 64>> -> !kvbuffer.fragment<128x64xbf16, a>
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
    /// `transpose_b`, in `a` of a product of the slot's transpose.
    bool contractsRows();
    /// Whether the fragment's rows run along the slot's columns: operand `a`
    /// whose rows in the slot are contracted.
    bool isCrossed();
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

def KVBuffer_StagedViewOp : KVBuffer_OpOf<KVBuffer_Tiles, "staged_view", [KVBuffer_NamedResults, Pure]> {
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

def KVBuffer_StagedFitOp : KVBuffer_OpOf<KVBuffer_Tiles, "staged_fit", [
    KVBuffer_NamedResults, KVBuffer_Together,
    MemoryEffects<[MemRead<KVBuffer_Lds>, MemWrite<KVBuffer_Lds>]>]> {
  let summary = "Converts a slot's elements to f16 in place, by a power of two";
  let description = [{
    As `kvbuffer.fragment_fit`, for an operand that lies in LDS because lanes have
    no registers for it, and is read again for each tile of the other: elements
    become `x * 2^n` with the scale's sign, where they lie, and `factor` has
    `|scale| * 2^-n` for each row of a product. All rows of the slot share one `n`,
    which makes the largest finite magnitude lie in [2^14, 2^15). The slot is
    `fitted` from then on; `source` may be read no more.

    Example:

    ```mlir
    %fitted, %factor = kvbuffer.staged_fit %qs times(%k_scale)
      : !kvbuffer.staged<<64x128xbf16, BK = 64>>
        -> !kvbuffer.staged<<64x128xf16, BK = 64>>,
           !kvbuffer.fragment<64x1xf32, row>
    ```
  }];
  let arguments = (ins
    Arg<KVBuffer_StagedType, "a whole slot of bf16">:$source,
    Arg<Optional<F32>, "what factors are multiplied by; 1 without it">:$scale);
  let results = (outs
    Res<KVBuffer_StagedType, "the slot, of f16">:$fitted,
    Res<KVBuffer_FragmentType, "a value for each row">:$factor);
  let assemblyFormat = [{
    $source (`times` `(` $scale^ `)`)? attr-dict
    `:` type($source) `->` type($fitted) `,` type($factor)
  }];
  let extraClassDeclaration = [{
    /// What the fitted slot is, by what the source is.
    static StagedType fittedType(KVBufferAttr source);
  }];
  let hasVerifier = 1;
}

def KVBuffer_TileFragmentOp : KVBuffer_OpOf<KVBuffer_Tiles, "tile_fragment", [KVBuffer_NamedResults,
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

def KVBuffer_FragmentStoreOp : KVBuffer_OpOf<KVBuffer_Tiles, "fragment_store", [
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

def KVBuffer_RowStoreOp : KVBuffer_OpOf<KVBuffer_Tiles, "row_store", [
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

def KVBuffer_AppendTokensOp
    : KVBuffer_OpOf<KVBuffer_Tiles, "append_tokens", [KVBuffer_NeedsBlock,
                                    AttrSizedOperandSegments,
                                    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary =
      "Stores new tokens of a sequence that the block reads afterwards";
  let description = [{
    `kvbuffer.cache_append` for one sequence and one head of the cache, by one
    block: of the new tokens, those whose positions are in [`from`, `upto`). Token
    i of sequence `batch`, `k`[`batch`, i, `head`], goes to position length + i of
    the sequence, where length is that of `kvbuffer.cache.cache_length` and does not
    count the new tokens. `rope` rotates keys, a quantized cache takes quantized
    elements, and what has no row is left out, all as there.

    What the block stores here its own loads after the op see. No order with other
    blocks is made: no other block may store these tokens, nor read them in the same
    launch. Where blocks share a sequence's keys in pieces, the piece that a token
    lies in says whose it is.

    All threads of a block have to reach the op.

    Example:

    ```mlir
    kvbuffer.append_tokens[%batch, %head] from %first upto %end k(%new : memref<?x1x8x128xbf16>)
      to(%k : !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 16>)
    ```
  }];
  let arguments = (ins
      Arg<Index, "the sequence">:$batch,
      Arg<Index, "the head of the cache">:$head,
      Arg<Index, "the first position">:$from,
      Arg<Index, "one past the last position">:$upto,
      Arg<AnyMemRef, "new keys, [batch, tokens, heads, head_size]">:$k,
      Arg<KVBuffer_CacheType, "where keys go">:$k_cache,
      Arg<Optional<AnyMemRef>, "new values">:$v,
      Arg<Optional<KVBuffer_CacheType>, "where values go">:$v_cache,
      Arg<Optional<MemRefRankOf<[F32, F16, BF16], [2]>>, "cosines">:$cos,
      Arg<Optional<MemRefRankOf<[F32, F16, BF16], [2]>>, "sines">:$sin,
      Arg<UnitAttr, "neighbouring elements are rotated with each other">:$interleaved);
  let assemblyFormat = [{
    `[` $batch `,` $head `]` `from` $from `upto` $upto
    `k` `(` $k `:` type($k) `)` `to` `(` $k_cache `:` type($k_cache) `)`
    (`v` `(` $v^ `:` type($v) `)` `to` `(` $v_cache `:` type($v_cache) `)`)?
    (`rope` `(` $cos^ `,` $sin `:` type($cos) `,` type($sin) `)`)? attr-dict
  }];
  let hasVerifier = 1;
}

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFEROPS_TD
