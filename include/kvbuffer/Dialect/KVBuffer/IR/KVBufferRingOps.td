//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The scheduled stage of kernels whose teams divide the work: some move tiles,
// others multiply. Rings and mailboxes join them.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERRINGOPS_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERRINGOPS_TD

include "kvbuffer/Dialect/KVBuffer/IR/KVBufferOpBase.td"

//===----------------------------------------------------------------------===//
// Rings
//===----------------------------------------------------------------------===//

def KVBuffer_RingOp : KVBuffer_Op<"ring", [KVBuffer_NeedsBlock, KVBuffer_NamedResults,
    KVBuffer_TeamChannelInterface, MemoryEffects<[MemAlloc<KVBuffer_Lds>]>,
    InferTypeOpAdaptor]> {
  let summary = "A buffer's slots as a ring between the team that fills it and those that read it";
  let description = [{
    The team `from` fills the slots; each team of `to` waits for every filling,
    reads it and gives it back. They have one copy each.

    Each slot has two barriers in LDS: *full*, which a filling completes, and
    *empty*, which a release by every team of `to` completes. Fillings are
    numbered from 0; filling f lies in slot f mod stages. All slots start empty.

    Fillings are tiles (`kvbuffer.ring_load`), which a team that only moves copies
    from DRAM, or fragments (`kvbuffer.ring_put`), which a team that computes puts
    there: of one ring either the ones or the others.

    With `shared` the blocks of a cluster fill their rings alike: each loads an
    equal part of every tile, into all of them. A slot is then empty
    when the teams of every block have released it, in all of them; *full* stays a
    matter of each block.

    Example:

    ```mlir
    %kring = kvbuffer.ring %kbuf from @producers to [@consumers]
      : !kvbuffer.buffer<#kbuf>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_BufferType, "whose slots they are">:$buffer,
      Arg<FlatSymbolRefAttr, "the team that fills">:$from,
      Arg<TypedArrayAttrBase<FlatSymbolRefAttr, "names of teams">,
          "the teams that read">:$to,
      Arg<UnitAttr, "whether a cluster's blocks fill it for each other">:$shared);
  let results = (outs Res<KVBuffer_RingType, "the ring">:$ring);
  let assemblyFormat = [{
    $buffer `from` $from `to` $to attr-dict `:` type($buffer)
  }];
  let hasVerifier = 1;
}

def KVBuffer_RingLoadOp : KVBuffer_Op<"ring_load", [
    KVBuffer_FillsChannel, KVBuffer_Moves, MemoryEffects<[MemRead, MemWrite<KVBuffer_Lds>, MemRead<KVBuffer_Async>,
                   MemWrite<KVBuffer_Async>]>]> {
  let summary = "Fills the next slot of a ring";
  let description = [{
    Waits until the slot of filling `fill` is empty (the first `stages` fillings
    find it so), then loads the tile into it. *full* completes when the data is
    there. Invalid rows, and columns past the tile's, become zero. `whole` says
    that every row is valid. The slot has the tile's columns from the buffer's
    `head_dim_offset` on, or `first_col` further on: so parts of a row take turns in
    the slots of one ring.

    Example:

    ```mlir
    kvbuffer.ring_load %tile into %kring[%fill]
      : !kvbuffer.tile<64x128xbf16>, !kvbuffer.ring<#kbuf>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_TileType, "what is loaded">:$tile,
      Arg<KVBuffer_RingType, "the ring">:$ring,
      Arg<Index, "the filling's number">:$fill,
      Arg<UnitAttr, "every row of the tile is valid">:$whole,
      Arg<DefaultValuedAttr<I64Attr, "0">, "columns that come before the slot's">:$first_col);
  let assemblyFormat = [{
    $tile `into` $ring `[` $fill `]` attr-dict `:` type($tile) `,` type($ring)
  }];
  let extraClassDeclaration = [{
    /// The first of a row's columns that the slot has.
    int64_t firstColumn();
  }];
  let hasVerifier = 1;
}

def KVBuffer_RingPutOp : KVBuffer_Op<"ring_put", [
    KVBuffer_FillsChannel, KVBuffer_Together,
    MemoryEffects<[MemWrite<KVBuffer_Lds>, MemRead<KVBuffer_Async>,
                   MemWrite<KVBuffer_Async>]>]> {
  let summary = "Puts a fragment into the next slot of a ring";
  let description = [{
    Waits until the slot of filling `fill` is empty (the first `stages` fillings
    find it so), then each lane stores its elements into it, as the buffer lies in
    LDS, whatever the fragment's layout. *full* completes when every warp of the
    team has; what reads the slot then, lanes, an engine or a matrix unit, finds
    the whole fragment. So teams hand on what they compute: elements that they
    have widened, weights, or, with `transpose`, a matrix that they turn: row r of
    the fragment is column r of the slot.

    Example:

    ```mlir
    kvbuffer.ring_put %wide into %kring[%fill]
      : !kvbuffer.fragment<64x128xbf16, a>, !kvbuffer.ring<#kbuf>
    ```
  }];
  let arguments = (ins
    Arg<KVBuffer_FragmentType, "as many rows and columns as the slot; role a or acc">:$fragment,
    Arg<KVBuffer_RingType, "not shared by a cluster">:$ring,
    Arg<Index, "the filling's number">:$fill,
    Arg<UnitAttr, "whether rows of the fragment are columns of the slot">:$transpose);
  let assemblyFormat = [{
    $fragment `into` $ring `[` $fill `]` attr-dict
    `:` type($fragment) `,` type($ring)
  }];
  let hasVerifier = 1;
}

def KVBuffer_RingWaitOp : KVBuffer_Op<"ring_wait", [KVBuffer_TakesFromChannel, KVBuffer_NamedResults,
    MemoryEffects<[MemRead<KVBuffer_Async>, MemWrite<KVBuffer_Async>,
                   MemRead<KVBuffer_Lds>]>, InferTypeOpAdaptor]> {
  let summary = "Waits for a filling of a ring";
  let description = [{
    The slot may be read until it is released.

    Example:

    ```mlir
    %ks = kvbuffer.ring_wait %kring[%fill] : !kvbuffer.ring<#kbuf>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_RingType, "the ring">:$ring,
      Arg<Index, "the filling's number">:$fill);
  let results = (outs
      Res<KVBuffer_StagedType, "the slot, which may be read until it is released">:$staged);
  let assemblyFormat = "$ring `[` $fill `]` attr-dict `:` type($ring)";
}

def KVBuffer_RingReleaseOp : KVBuffer_Op<"ring_release", [
    KVBuffer_TakesFromChannel, KVBuffer_Together, MemoryEffects<[MemRead<KVBuffer_Lds>, MemWrite<KVBuffer_Async>]>]> {
  let summary = "Gives a slot back to the team that fills it";
  let description = [{
    Every read of the slot by the team has finished. Each warp arrives for itself,
    or, where nothing but products of a group of warps reads the ring and has been
    awaited, one thread for its group.

    Example:

    ```mlir
    kvbuffer.ring_release %kring[%fill] : !kvbuffer.ring<#kbuf>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_RingType, "the ring">:$ring,
      Arg<Index, "the filling's number">:$fill);
  let assemblyFormat = "$ring `[` $fill `]` attr-dict `:` type($ring)";
}

//===----------------------------------------------------------------------===//
// Mailboxes: one number, from a team that moves to others
//===----------------------------------------------------------------------===//

def KVBuffer_MailboxOp : KVBuffer_Op<"mailbox", [
    KVBuffer_NeedsBlock,
    DeclareOpInterfaceMethods<KVBuffer_TeamChannelInterface, ["doesFillerTake"]>,
    MemoryEffects<[MemAlloc<KVBuffer_Lds>]>]> {
  let summary = "A ring of single numbers";
  let description = [{
    `slots` numbers in LDS with the barriers of a ring: what the team `from` tells
    the teams of `to`, such as the next tile of a persistent kernel.

    With `shared` the boxes of a cluster's blocks receive the same numbers: those
    that its first block posts. The team `from` of every block posts, and then
    takes what was posted, as the others do.

    Example:

    ```mlir
    %box = kvbuffer.mailbox from @producers to [@consumers] {slots = 2 : i64}
    ```
  }];
  let arguments = (ins
    Arg<FlatSymbolRefAttr, "the team that posts">:$from,
    Arg<TypedArrayAttrBase<FlatSymbolRefAttr, "names of teams">,
        "the teams that take">:$to,
    Arg<I64Attr, "numbers that wait at most">:$slots,
    Arg<UnitAttr, "whether a cluster's boxes receive the same numbers">:$shared);
  let results = (outs Res<KVBuffer_MailboxType, "the mailbox">:$box);
  let assemblyFormat = "`from` $from `to` $to attr-dict";
  let hasVerifier = 1;
}

def KVBuffer_MailboxPostOp : KVBuffer_Op<"mailbox_post", [
    KVBuffer_FillsChannel, KVBuffer_Moves, MemoryEffects<[MemWrite<KVBuffer_Lds>, MemRead<KVBuffer_Async>,
                   MemWrite<KVBuffer_Async>]>]> {
  let summary = "Posts a number once its slot is empty";
  let description = [{
    Example:

    ```mlir
    kvbuffer.mailbox_post %tile to %box[%n]
    ```
  }];
  let arguments = (ins
      Arg<Index, "the number to post">:$value,
      Arg<KVBuffer_MailboxType, "the mailbox">:$box,
      Arg<Index, "the filling's number">:$number);
  let assemblyFormat = "$value `to` $box `[` $number `]` attr-dict";
}

def KVBuffer_MailboxTakeOp : KVBuffer_Op<"mailbox_take", [
    KVBuffer_TakesFromChannel, MemoryEffects<[MemRead<KVBuffer_Lds>, MemRead<KVBuffer_Async>,
                   MemWrite<KVBuffer_Async>]>]> {
  let summary = "Waits for a number, reads it and releases its slot";
  let description = [{
    Example:

    ```mlir
    %tile = kvbuffer.mailbox_take %box[%n]
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_MailboxType, "the mailbox">:$box,
      Arg<Index, "the filling's number">:$number);
  let results = (outs Res<Index, "the number that was posted">:$value);
  let assemblyFormat = "$box `[` $number `]` attr-dict";
}

def KVBuffer_LaunchSizeOp : KVBuffer_Op<"launch_size", [Pure]> {
  let summary = "A size of the launch";
  let description = [{
    One of the sizes that the manifest's expressions are made of: any that the
    shape of an argument names (`kvbuffer.shape`), and of attention `batch`
    sequences, `seq_q` query rows of each of them, or `total_q` of all of a
    ragged batch, `seq_k` keys of a dense cache, `max_seq` keys that a sequence of
    a continuous cache has room for, `pages_per_seq` entries that its row of a
    page table has room for. A kernel whose blocks do not stand for one tile each
    cannot tell the first four from its grid.

    Example:

    ```mlir
    %batch = kvbuffer.launch_size "batch"
    ```
  }];
  let arguments = (ins Arg<StrAttr, "what the size is called">:$name);
  let results = (outs Res<Index, "the size">:$size);
  let assemblyFormat = "$name attr-dict";
  let hasVerifier = 1;
}

def KVBuffer_FindTileOp : KVBuffer_Op<"find_tile", [
    AttrSizedOperandSegments, MemoryEffects<[MemRead]>]> {
  let summary = "Finds a tile of a ragged batch by its number";
  let description = [{
    Sequence i of `sequences` has the rows from `offsets`[i] to `offsets`[i + 1],
    and a tile for each `BM` of them, the last one perhaps shorter; none if it
    has no more than `over` rows. The tiles
    are numbered in the order of the sequences, the first one of sequence i by
    `offsets`[i] / BM + i, rounded down: as many numbers as a sequence has tiles
    and at most one more, so that the numbers below rows / BM + `sequences`
    cover the batch whatever the lengths are, and the sequence of a number is
    found in the offsets, without knowing those before it. Offsets below 0 or
    above `rows`, the rows of the tensor, count as 0 or `rows`.

    With `numbers`, which a `kvbuffer.number_tiles` of the same offsets has
    written, the first tile of sequence i has the number `numbers`[`block`, i]:
    each number stands for a tile.

    The results are the last sequence whose first number is not above `number`,
    and the tile in it, counted from the sequence's end with `from_end`. Of a
    number that stands for no tile, the latter is one past the last or more.

    Example:

    ```mlir
    %sequence, %tile = kvbuffer.find_tile %n in %offsets of %batch upto %rows by 128
      : memref<?xi32>
    ```
  }];
  let arguments = (ins
      Arg<Index, "which tile">:$number,
      Arg<MemRefRankOf<[I32, I64], [1]>, "prefix sums of the sequences' rows">:$offsets,
      Arg<Index, "how many there are">:$sequences,
      Arg<Index, "rows of the tensor">:$rows,
      Arg<Optional<MemRefRankOf<[I32], [2]>>,
          "each sequence's first number, of `kvbuffer.number_tiles`">:$numbers,
      Arg<Optional<Index>, "the row of `numbers`">:$block,
      Arg<ConfinedAttr<I64Attr, [IntPositive]>, "rows of a tile">:$BM,
      Arg<DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">,
          "sequences of no more rows have no tile">:$over,
      Arg<UnitAttr, "tiles count from the sequence's end">:$from_end);
  let results = (outs
      Res<Index, "the sequence">:$sequence,
      Res<Index, "the tile in it">:$tile);
  let assemblyFormat = [{
    $number `in` $offsets `of` $sequences `upto` $rows `by` $BM
    (`numbered` $numbers^ `[` $block `]`)? attr-dict
    `:` type($offsets) (`,` type($numbers)^)?
  }];
  let builders = [
    OpBuilder<(ins "::mlir::Value":$number, "::mlir::Value":$offsets,
                   "::mlir::Value":$sequences, "::mlir::Value":$rows,
                   "int64_t":$BM, "int64_t":$over, "bool":$fromEnd), [{
      build($_builder, $_state, number, offsets, sequences, rows,
            /*numbers=*/::mlir::Value(), /*block=*/::mlir::Value(), BM, over,
            fromEnd);
    }]>];
}

def KVBuffer_NumberTilesOp : KVBuffer_Op<"number_tiles", [
    KVBuffer_NeedsBlock, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Numbers the tiles of a ragged batch";
  let description = [{
    Writes for each of `sequences` sequences the tiles of those before it to
    `numbers`[`block`, i], and gives the tiles of all. Which tiles a sequence has,
    `kvbuffer.find_tile` says. The block executes it together, before its warps do
    different things; each block writes a row of its own, so that none waits for
    another.

    `kvbuffer.find_tile` can number tiles by itself, without a look at the
    sequences before: then some numbers stand for no tile, one for each sequence
    or fewer, and a block asks for each of them in vain.

    Example:

    ```mlir
    %tiles = kvbuffer.number_tiles %offsets of %batch upto %rows by 128 into %numbers[%block]
      : memref<?xi32>, memref<?x?xi32>
    ```
  }];
  let arguments = (ins
      Arg<MemRefRankOf<[I32, I64], [1]>, "prefix sums of the sequences' rows">:$offsets,
      Arg<Index, "how many there are">:$sequences,
      Arg<Index, "rows of the tensor">:$rows,
      Arg<MemRefRankOf<[I32], [2]>, "where the numbers go">:$numbers,
      Arg<Index, "the row of `numbers`">:$block,
      Arg<ConfinedAttr<I64Attr, [IntPositive]>, "rows of a tile">:$BM,
      Arg<DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">,
          "sequences of no more rows have no tile">:$over);
  let results = (outs Res<Index, "tiles of all sequences">:$tiles);
  let assemblyFormat = [{
    $offsets `of` $sequences `upto` $rows `by` $BM `into` $numbers `[` $block `]`
    attr-dict `:` type($offsets) `,` type($numbers)
  }];
}

def KVBuffer_NextTileOp : KVBuffer_Op<"next_tile", [
    KVBuffer_Moves, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Takes the next number of a counter that all blocks share";
  let description = [{
    0, 1, 2, ... in the order of the calls; every block calls until the result is
    `total` or more and then no more. The counter belongs to the launch, which
    starts with 0 there. Only a team that moves may call. In
    a kernel of clusters the first block of each takes numbers for all of its
    blocks; the result says nothing in the others, which learn it from a
    `shared` mailbox.

    Example:

    ```mlir
    %tile = kvbuffer.next_tile of %total
    ```
  }];
  let arguments = (ins Arg<Index, "numbers that stand for work">:$total);
  let results = (outs Res<Index, "the next number">:$tile);
  let assemblyFormat = "`of` $total attr-dict";
}

//===----------------------------------------------------------------------===//
// Products in flight
//===----------------------------------------------------------------------===//

def KVBuffer_MmaStartOp : KVBuffer_Op<"mma_start", [KVBuffer_Together, KVBuffer_NamedResults]> {
  let summary = "Starts a product that reads its operands from LDS";
  let description = [{
    Like `kvbuffer.mma`, but asynchronous and with b (and a, where it is a staged
    slot) read from LDS by the matrix unit itself. Without `acc` the product
    starts from zero. `acc` may be a product in flight, which this one goes on
    with in the same registers: it can then be awaited, but has no result of its
    own. One group of products: `kvbuffer.mma_wait` counts groups.
    Slots that a group reads must not be released before its wait. The operands'
    shapes are those of the slots, `BN` rows and `smem_cols` columns, or of views
    of them (`kvbuffer.staged_view`).

    Example:

    ```mlir
    %s = kvbuffer.mma_start %qf, %ks {transpose_b}
      : !kvbuffer.fragment<128x128xbf16, a>, !kvbuffer.staged<#kbuf> -> !kvbuffer.pending<128x64xf32>
    ```
  }];
  let arguments = (ins
      Arg<AnyTypeOf<[KVBuffer_FragmentType, KVBuffer_StagedType]>,
          "rows of the product, in registers or in a slot">:$a,
      Arg<KVBuffer_StagedType, "columns of the product, a slot">:$b,
      Arg<Optional<AnyTypeOf<[KVBuffer_FragmentType, KVBuffer_PendingType]>>,
          "what the product is added to; zero without it">:$acc,
      Arg<UnitAttr, "b's rows are the product's columns">:$transpose_b);
  let results = (outs Res<KVBuffer_PendingType, "the product in flight">:$result);
  let assemblyFormat = [{
    $a `,` $b (`,` $acc^ `:` type($acc))? attr-dict
    `:` type($a) `,` type($b) `->` type($result)
  }];
  let hasVerifier = 1;
}

def KVBuffer_MmaWaitOp : KVBuffer_Op<"mma_wait", [KVBuffer_Together, KVBuffer_NamedResults,
    InferTypeOpAdaptor]> {
  let summary = "Waits for a product in flight";
  let description = [{
    `younger` is the number of groups started after this one that may still run;
    older groups have then finished as well. Of a product that another one goes
    on with nothing may use the result: what the wait says of slots holds.

    Example:

    ```mlir
    %s = kvbuffer.mma_wait %pending {younger = 1 : i64} : !kvbuffer.pending<128x64xf32>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_PendingType, "the product in flight">:$pending,
      Arg<I64Attr, "later groups that may still run">:$younger);
  let results = (outs Res<KVBuffer_FragmentType, "the product">:$acc);
  let assemblyFormat = "$pending attr-dict `:` type($pending)";
  let hasVerifier = 1;
}

def KVBuffer_TurnWaitOp : KVBuffer_Op<"turn_wait", [
    KVBuffer_Together, MemoryEffects<[MemRead<KVBuffer_Async>, MemWrite<KVBuffer_Async>]>]> {
  let summary = "Waits for this matrix-unit group's turn";
  let description = [{
    The groups of a team take turns at starting products, so that one group's
    softmax runs beside another's products. The first turn is group 0's.

    Example:

    ```mlir
    kvbuffer.turn_wait
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def KVBuffer_TurnPassOp : KVBuffer_Op<"turn_pass", [
    KVBuffer_Together, MemoryEffects<[MemRead<KVBuffer_Async>, MemWrite<KVBuffer_Async>]>]> {
  let summary = "Passes the turn to the next matrix-unit group";
  let description = [{
    Example:

    ```mlir
    kvbuffer.turn_pass
    ```
  }];
  let assemblyFormat = "attr-dict";
}

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERRINGOPS_TD
