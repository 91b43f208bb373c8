//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERTYPES_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERTYPES_TD

include "kvbuffer/Dialect/KVBuffer/IR/CacheLayout.td"
include "kvbuffer/Dialect/KVBuffer/IR/KVBufferAttrs.td"

class KVBuffer_Type<string name, string mnem, list<Trait> traits = []>
    : TypeDef<KVBuffer_Dialect, name, traits> {
  let mnemonic = mnem;
}

def KVBuffer_CacheType : KVBuffer_Type<"Cache", "cache", [KVBuffer_CacheLayout]> {
  let summary = "A key or a value cache in DRAM (seed page KVCacheT)";
  let description = [{
    One operand (K or V) of one layer. `heads` KV heads of `head_size` elements;
    rows are tokens. The data is

    | kind | data | besides |
    |---|---|---|
    | `dense` | [batch, rows, heads, cache_depth] | |
    | `ragged` | [rows, heads, cache_depth] | offsets [batch + 1], prefix sums |
    | `continuous` | [blocks, rows, heads, cache_depth] | table [batch], lengths [batch] |
    | `paged` | [blocks, page_size, heads, cache_depth] | table [batch, pages], lengths [batch] |

    with run-time strides; tables, lengths and offsets are 32-bit integers, or
    64-bit ones where the argument says `kvbuffer.index = i64`. `lengths` excludes
    the new tokens, unless the problem says `kvbuffer.lengths = "all"`. A row may
    hold more than the operand: `cache_depth` elements (by default `head_size`), of
    which the operand is the `head_size` from `head_dim_offset` on (by default 0).

    With `scale`, elements are 8-bit floats and stand for themselves times a scale
    of that type. What has a scale of its own is the `granularity`:

    | granularity | scales |
    |---|---|
    | `tensor` | [1] |
    | `head` | [heads] |
    | a number g | as the data, with ceil(head_size / g) columns: one for each g elements of a token's head |

    With `row` a head is packed into bytes: parts of several types, with scales in
    the row or behind its page (`#kvbuffer.row`). The data's last dimension counts
    bytes then, and its elements are of the type of the first part, of 8 bits; the
    element type is what elements are widened to, each times its scale.

    Strides are free, so that pages may have their heads outside of their tokens,
    and the keys and values of a page may lie in one tensor: a cache is a view of
    it.

    Examples:

    ```mlir
    !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 64>
    !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64, cache_depth = 576, head_dim_offset = 512>
    !kvbuffer.cache<paged, f8E4M3FN, heads = 8, head_size = 128, page_size = 16, scale = f32, granularity = 32>
    !kvbuffer.cache<dense, f8E5M2, heads = 8, head_size = 128, scale = f32, granularity = head>
    !kvbuffer.cache<paged, bf16, heads = 1, head_size = 576, page_size = 64, row = <bytes = 656, parts = [<count = 512, element = f8E4M3FN, at = 0, scale = f32, granularity = 128, scale_at = 512>, <count = 64, element = bf16, at = 528>]>>
    ```
  }];
  let parameters = (ins
    EnumParameter<KVBuffer_CacheKind>:$kind,
    "::mlir::Type":$elementType,
    "int64_t":$heads,
    "int64_t":$headSize,
    DefaultValuedParameter<"int64_t", "0">:$pageSize,
    "int64_t":$cacheDepth,
    DefaultValuedParameter<"int64_t", "0">:$headDimOffset,
    OptionalParameter<"::mlir::Type">:$scaleType,
    DefaultValuedParameter<"int64_t", "0">:$granularity,
    OptionalParameter<"::kvbuf::RowAttr">:$row);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    // CacheLayout, besides the parameters.
    ::mlir::Type getStoredType() const {
      return getRow() ? getRow().getStoredType() : getElementType();
    }
    ::llvm::SmallVector<CacheDim> getLeadingDims() const;
    ::llvm::SmallVector<CacheTensor> getIndexTensors() const;
    CacheRows getRows() const;
    int64_t getRun() const { return getPageSize(); }
    ::mlir::Value emitBatch(::mlir::OpBuilder &b, ::mlir::Location loc,
                            const CacheParts &parts) const;
    ::mlir::Value emitRoom(::mlir::OpBuilder &b, ::mlir::Location loc,
                           const CacheParts &parts, ::mlir::Value batch) const;
    ::mlir::Value emitLength(::mlir::OpBuilder &b, ::mlir::Location loc,
                             const CacheParts &parts, ::mlir::Value batch) const;
    CachePlace emitPlace(::mlir::OpBuilder &b, ::mlir::Location loc,
                         const CacheParts &parts, ::mlir::Value batch,
                         ::mlir::Value token, bool checked) const;

    /// Columns of the tiles that programs load: a row of the data, or, packed,
    /// its elements.
    int64_t getTileCols() const {
      return getRow() ? getHeadSize() : getCacheDepth();
    }
    /// Whether rows are found through a table of blocks.
    bool hasTable() const {
      return getKind() == CacheKind::Continuous || getKind() == CacheKind::Paged;
    }
  }];
}

def KVBuffer_TileType : KVBuffer_Type<"Tile", "tile"> {
  let summary = "A tile in DRAM with a run-time number of valid rows";
  let description = [{
    `rows` x `cols` elements; a row is contiguous. Which rows are valid is known
    at run time; the others read as zero and are never touched. With
    `page_size`, rows come from pages smaller than the tile, each found by its
    own look-up.

    Examples:

    ```mlir
    !kvbuffer.tile<64x128xbf16>
    !kvbuffer.tile<64x128xbf16, page_size = 16>
    ```
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$cols,
                        "::mlir::Type":$elementType,
                        DefaultValuedParameter<"int64_t", "0">:$pageSize);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def KVBuffer_BufferType : KVBuffer_Type<"Buffer", "buffer"> {
  let summary = "A buffer in shared memory (LDS)";
  let description = [{
    Example:

    ```mlir
    !kvbuffer.buffer<#kvbuffer.kv_buffer<v, f16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 64, stages = 2>>
    ```
  }];
  let parameters = (ins "KVBufferAttr":$params);
  let assemblyFormat = "`<` $params `>`";
}

def KVBuffer_TokenType : KVBuffer_Type<"Token", "token"> {
  let summary = "A load on its way into a buffer's slot";
  let description = [{
    What `kvbuffer.dram_load` yields and `kvbuffer.lds_stage` awaits, once.

    Example:

    ```mlir
    !kvbuffer.token<#kbuf>
    ```
  }];
  let parameters = (ins "KVBufferAttr":$params);
  let assemblyFormat = "`<` $params `>`";
}

def KVBuffer_StagedType : KVBuffer_Type<"Staged", "staged"> {
  let summary = "A buffer's slot whose data every thread may read";
  let description = [{
    Valid until another load begins to overwrite the slot. A *view* is a part of
    a slot: `rows` x `cols` elements from (`row`, `col`) on (`kvbuffer.staged_view`).

    Examples:

    ```mlir
    !kvbuffer.staged<#kbuf>
    !kvbuffer.staged<#kbuf, 64x64 at [0, 64]>
    ```
  }];
  let parameters = (ins "KVBufferAttr":$params, "int64_t":$rows, "int64_t":$cols,
                        "int64_t":$row, "int64_t":$col);
  let builders = [TypeBuilderWithInferredContext<(ins "KVBufferAttr":$params), [{
    return $_get(params.getContext(), params, params.getBN(),
                 params.getSmemCols(), 0, 0);
  }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Whether it is all of a slot.
    bool isWhole() const {
      return getRows() == getParams().getBN() &&
             getCols() == getParams().getSmemCols();
    }
  }];
}

def KVBuffer_FragmentType : KVBuffer_Type<"Fragment", "fragment"> {
  let summary = "A matrix spread over the registers of a block";
  let description = [{
    The role says what it is to the matrix unit:

    | role | |
    |---|---|
    | `a` | the left operand |
    | `b` | the right operand |
    | `acc` | an accumulator or what is computed from it, in f32 or rounded |
    | `row` | one value for each row (`cols` is 1), such as the running maximum |

    The layout says which warp, lane and register holds which element. Programs at
    the tile stage leave it out; `kvbuf-distribute-fragments` fills in those that
    are missing at the end of the scheduled stage, and the lane level obeys them.

    Examples:

    ```mlir
    !kvbuffer.fragment<128x64xf32, acc>
    !kvbuffer.fragment<128x64xf32, acc, #kvbuffer.mma<mma_sync, acc, shape = [16, 8, 16], warps = [4, 1]>>
    ```
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$cols,
                        "::mlir::Type":$elementType,
                        EnumParameter<KVBuffer_Role>:$role,
                        DefaultValuedParameter<
                            "::kvbuf::FragmentLayoutInterface",
                            "::kvbuf::FragmentLayoutInterface()">:$layout);
  let builders = [
    TypeBuilder<(ins "int64_t":$rows, "int64_t":$cols,
                     "::mlir::Type":$elementType, "::kvbuf::Role":$role), [{
      return $_get($_ctxt, rows, cols, elementType, role,
                   FragmentLayoutInterface());
    }]>
  ];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The same fragment with another layout, or another shape.
    FragmentType withLayout(::kvbuf::FragmentLayoutInterface layout) const;
    FragmentType withShape(int64_t rows, int64_t cols) const;
  }];
}

def KVBuffer_RangeType : KVBuffer_Type<"Range", "range"> {
  let summary = "A range of DRAM whose end bounds what lanes read";
  let description = [{
    Thread stage only: what `kvbuffer.dram_range` yields.

    Example:

    ```mlir
    !kvbuffer.range
    ```
  }];
}

def KVBuffer_RingType : KVBuffer_Type<"Ring", "ring"> {
  let summary = "A buffer's slots between a team that fills and teams that read";
  let description = [{
    Example:

    ```mlir
    !kvbuffer.ring<#kbuf>
    ```
  }];
  let parameters = (ins "KVBufferAttr":$params);
  let assemblyFormat = "`<` $params `>`";
}

def KVBuffer_MailboxType : KVBuffer_Type<"Mailbox", "mailbox"> {
  let summary = "Numbers that a team posts to others";
  let description = [{
    What `kvbuffer.mailbox` makes: a ring of single numbers in LDS, such as the
    tile of queries that a block takes next.

    Example:

    ```mlir
    !kvbuffer.mailbox
    ```
  }];
}

def KVBuffer_QueueType : KVBuffer_Type<"Queue", "queue"> {
  let summary = "Fragments on their way from one team to others";
  let description = [{
    What `kvbuffer.queue` makes. One entry is a fragment of each type.

    Example:

    ```mlir
    !kvbuffer.queue<!kvbuffer.fragment<64x32xbf16, a>, !kvbuffer.fragment<64x1xf32, row>>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::Type">:$types);
  let assemblyFormat = "`<` $types `>`";
  let genVerifyDecl = 1;
}

def KVBuffer_ShelfType : KVBuffer_Type<"Shelf", "shelf"> {
  let summary = "Fragments that teams leave in LDS";
  let description = [{
    What `kvbuffer.shelf` makes. One slot holds a fragment of each type.

    Example:

    ```mlir
    !kvbuffer.shelf<!kvbuffer.fragment<16x128xf32, acc>, !kvbuffer.fragment<16x1xf32, row>>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::Type">:$types);
  let assemblyFormat = "`<` $types `>`";
  let genVerifyDecl = 1;
}

def KVBuffer_PendingType : KVBuffer_Type<"Pending", "pending"> {
  let summary = "An accumulator that the matrix unit is still writing";
  let description = [{
    What `kvbuffer.mma_start` yields and `kvbuffer.mma_wait` awaits, once. The
    layout is that of the accumulators (`!kvbuffer.fragment`).

    Example:

    ```mlir
    !kvbuffer.pending<128x128xf32>
    ```
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$cols,
                        "::mlir::Type":$elementType,
                        DefaultValuedParameter<
                            "::kvbuf::FragmentLayoutInterface",
                            "::kvbuf::FragmentLayoutInterface()">:$layout);
  let builders = [
    TypeBuilder<(ins "int64_t":$rows, "int64_t":$cols,
                     "::mlir::Type":$elementType), [{
      return $_get($_ctxt, rows, cols, elementType, FragmentLayoutInterface());
    }]>
  ];
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// The accumulators that a wait yields.
    FragmentType getFragment() const;
  }];
}

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERTYPES_TD
