//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What problems say of keys: which ones a row of queries sees, and how rows of a
// cache are packed.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERPROBLEMATTRS_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERPROBLEMATTRS_TD

include "kvbuffer/Dialect/KVBuffer/IR/KVBufferAttrBase.td"

def KVBuffer_MaskAttr : KVBuffer_Attr<"Mask", "mask"> {
  let summary = "Which keys a query sees";
  let description = [{
    Query row `i` (of `len_q`) stands at key position `p = i + len_k - len_q`:
    masks are aligned bottom-right. It sees key `j` if all of these hold:
    `causal` implies `j <= p`; `left >= 0` implies `j >= p - left`;
    `right >= 0` implies `j <= p + right`. Negative: no limit on that side.

    Examples:

    ```mlir
    #kvbuffer.mask<>
    #kvbuffer.mask<causal = true>
    #kvbuffer.mask<causal = true, left = 1024>
    ```
  }];
  let parameters = (ins
    DefaultValuedParameter<"bool", "false">:$causal,
    DefaultValuedParameter<"int64_t", "-1">:$left,
    DefaultValuedParameter<"int64_t", "-1">:$right);
  let assemblyFormat = "`<` struct($causal, $left, $right) `>`";
  let extraClassDeclaration = [{
    /// Whether some key to the right (left) of a row's position is hidden.
    bool boundsRight() const { return getCausal() || getRight() >= 0; }
    bool boundsLeft() const { return getLeft() >= 0; }
    /// The last visible key of a row is its position plus this.
    int64_t rightReach() const {
      return getCausal() ? 0 : getRight();
    }
  }];
  let genVerifyDecl = 1;
}

def KVBuffer_BlockMaskAttr : KVBuffer_Attr<"BlockMask", "block_mask"> {
  let summary = "Which blocks of keys a block of queries sees, by lists";
  let description = [{
    Queries come in blocks of `rows`, keys in blocks of `keys`. `lists` are numbers
    of captures of the `kvbuffer.attention`, all of i32: how many blocks of keys a
    block of queries sees a part of, [batch, heads, blocks of queries], and which,
    [batch, heads, blocks of queries, most]; then, where there are four, the same of
    blocks of keys that all queries of the block see whole. These are not masked: no
    rule hides a key of them. (The layout is that of FlexAttention's BlockMask:
    kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices.)

    A list with one sequence, or one head, is that of all. Numbers of blocks are at
    least 0 and at most as many as a list has room for, and a block before the first
    one, or behind the last, is that one. A block of queries with no blocks of keys
    gives O = 0 and LSE = -inf (with a sink: LSE = sink[head]).

    Example:

    ```mlir
    #kvbuffer.block_mask<rows = 128, keys = 128, lists = [0, 1, 2, 3]>
    ```
  }];
  let parameters = (ins
    "int64_t":$rows, "int64_t":$keys, ArrayRefParameter<"int64_t">:$lists);
  let assemblyFormat = [{
    `<` `rows` `=` $rows `,` `keys` `=` $keys `,` `lists` `=` `[` $lists `]` `>`
  }];
  let genVerifyDecl = 1;
}

def KVBuffer_RowPartAttr : KVBuffer_Attr<"RowPart", "row_part"> {
  let summary = "Neighbouring elements of one type in a packed row";
  let description = [{
    `count` elements of type `element`, from byte `at` of the row on. With `scale`
    each `granularity` of them stand for themselves times a number of that type
    (f32, bf16, f16, or f8E8M0FNU, a power of two), the first of which is at byte
    `scale_at`. Bytes are those of the row, and after them those of its tail.

    Examples:

    ```mlir
    #kvbuffer.row_part<count = 64, element = bf16, at = 528>
    #kvbuffer.row_part<count = 512, element = f8E4M3FN, at = 0, scale = f32, granularity = 128, scale_at = 512>
    ```
  }];
  let parameters = (ins
    "int64_t":$count, "::mlir::Type":$element, "int64_t":$at,
    OptionalParameter<"::mlir::Type">:$scale,
    DefaultValuedParameter<"int64_t", "0">:$granularity,
    DefaultValuedParameter<"int64_t", "0">:$scale_at);
  let assemblyFormat = [{
    `<` struct($count, $element, $at, $scale, $granularity, $scale_at) `>`
  }];
  let genVerifyDecl = 1;
}

def KVBuffer_RowAttr : KVBuffer_Attr<"Row", "row"> {
  let summary = "How the elements of a token's head are packed into bytes";
  let description = [{
    `bytes` in which the `parts` lie, in the order of the head's elements. With
    `tail` a row has so many bytes more, which lie apart: in each `stride` bytes
    from the tensor's begin on, `rows` rows lie side by side, and then their tails
    do.

    Examples:

    ```mlir
    #kvbuffer.row<bytes = 656, parts = [<count = 512, element = f8E4M3FN, at = 0, scale = f32, granularity = 128, scale_at = 512>, <count = 64, element = bf16, at = 528>]>
    #kvbuffer.row<bytes = 576, parts = [<count = 448, element = f8E4M3FN, at = 0, scale = f8E8M0FNU, granularity = 64, scale_at = 576>, <count = 64, element = bf16, at = 448>], tail = 8, rows = 64, stride = 37440>
    ```
  }];
  let parameters = (ins
    "int64_t":$bytes, ArrayRefParameter<"::kvbuf::RowPartAttr">:$parts,
    DefaultValuedParameter<"int64_t", "0">:$tail,
    DefaultValuedParameter<"int64_t", "0">:$tail_rows,
    DefaultValuedParameter<"int64_t", "0">:$tail_stride);
  let assemblyFormat = [{
    `<` `bytes` `=` $bytes `,` `parts` `=` `[` $parts `]`
    (`,` `tail` `=` $tail^ `,` `rows` `=` $tail_rows `,` `stride` `=` $tail_stride)?
    `>`
  }];
  let extraClassDeclaration = [{
    /// Elements of a head.
    int64_t getElements() const;
    /// Bytes from a row's first one to the last that belongs to it, wherever in
    /// its block it is.
    int64_t getReach() const;
    /// The type of the elements of the tensor, each of a byte.
    ::mlir::Type getStoredType() const;
  }];
  let genVerifyDecl = 1;
}

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERPROBLEMATTRS_TD
