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

def KVBuffer_RingOp : KVBuffer_OpOf<KVBuffer_Rings, "ring", [KVBuffer_NeedsBlock, KVBuffer_NamedResults,
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

def KVBuffer_RingLoadOp : KVBuffer_OpOf<KVBuffer_Rings, "ring_load", [
    KVBuffer_FillsChannel, KVBuffer_Moves, MemoryEffects<[MemRead, MemWrite<KVBuffer_Lds>, MemRead<KVBuffer_Async>,
                   MemWrite<KVBuffer_Async>]>]> {
  let summary = "Fills the next slot of a ring";
  let description = [{
    Waits until the slot of filling `fill` is empty (the first `stages` fillings
    find it so), then loads the tile into it. *full* completes when the data is
    there. Invalid rows, and columns past the tile's, become zero. `whole` says
    that every row is valid. The slot has the tile's columns from the buffer's
    `head_dim_offset` on, or `first_col` further on: so parts of a row take turns in
    the slots of one ring, and so do blocks of BK columns in one without `full_kv`.

    Packed rows (`#kvbuffer.row`) may be asked for ahead of the slot, in which they
    take more room: with `begin` their bytes alone are on their way, and the load of
    the same filling that has `younger` ends what it began. Until then nothing else
    begins for this ring, and so many loads for other rings, no more, may have begun
    since. Each warp of the team has its rows of every tile. Where rows lie a table
    tells: with `next_rows` a load that begins asks it about the rows so many
    further on in the sequence, too: those of the ring's filling `fill` + 1. The
    load that begins that one, behind this one's end, may have `asked`, and then
    does not wait for the table.

    Rows of small pages, which lanes copy, may begin before they are awaited, too.
    They go to the slot, which `begin` waits for, and several fillings of a ring
    may be on their way.

    Examples:

    ```mlir
    kvbuffer.ring_load %tile into %kring[%fill]
      : !kvbuffer.tile<64x128xbf16>, !kvbuffer.ring<#kbuf>
    kvbuffer.ring_load %tile into %kring[%next] {begin}
      : !kvbuffer.tile<64x128xbf16>, !kvbuffer.ring<#kbuf>
    kvbuffer.ring_load %tile into %kring[%next] {asked, begin, next_rows = -64 : i64}
      : !kvbuffer.tile<64x128xbf16>, !kvbuffer.ring<#kbuf>
    kvbuffer.ring_load %tile into %kring[%next] {younger = 2 : i64}
      : !kvbuffer.tile<64x128xbf16>, !kvbuffer.ring<#kbuf>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_TileType, "what is loaded">:$tile,
      Arg<KVBuffer_RingType, "the ring">:$ring,
      Arg<Index, "the filling's number">:$fill,
      Arg<UnitAttr, "every row of the tile is valid">:$whole,
      Arg<DefaultValuedAttr<I64Attr, "0">, "columns that come before the slot's">:$first_col,
      Arg<UnitAttr, "asks for bytes alone">:$begin,
      Arg<DefaultValuedAttr<I64Attr, "-1">, "ends a load, behind whose beginning so many have begun; -1: loads all">:$younger,
      Arg<DefaultValuedAttr<I64Attr, "0">, "rows further on that the table is asked about; 0: none">:$next_rows,
      Arg<UnitAttr, "the table has been asked about the rows">:$asked);
  let assemblyFormat = [{
    $tile `into` $ring `[` $fill `]` attr-dict `:` type($tile) `,` type($ring)
  }];
  let extraClassDeclaration = [{
    /// The first of a row's columns that the slot has.
    int64_t firstColumn();
    /// Whether the load ends one that has begun, and whether bytes come ahead of
    /// the slot.
    bool ends() { return int64_t(getYounger()) >= 0; }
    bool isAhead() { return getBegin() || ends(); }
  }];
  let hasVerifier = 1;
}

def KVBuffer_RingPutOp : KVBuffer_OpOf<KVBuffer_Rings, "ring_put", [
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

def KVBuffer_RingWaitOp : KVBuffer_OpOf<KVBuffer_Rings, "ring_wait", [KVBuffer_TakesFromChannel, KVBuffer_NamedResults,
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

def KVBuffer_RingReleaseOp : KVBuffer_OpOf<KVBuffer_Rings, "ring_release", [
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

def KVBuffer_MailboxOp : KVBuffer_OpOf<KVBuffer_Rings, "mailbox", [
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

def KVBuffer_MailboxPostOp : KVBuffer_OpOf<KVBuffer_Rings, "mailbox_post", [
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

def KVBuffer_MailboxTakeOp : KVBuffer_OpOf<KVBuffer_Rings, "mailbox_take", [
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

//===----------------------------------------------------------------------===//
// Products in flight
//===----------------------------------------------------------------------===//

def KVBuffer_MmaStartOp : KVBuffer_OpOf<KVBuffer_Rings, "mma_start", [KVBuffer_Together, KVBuffer_NamedResults]> {
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

def KVBuffer_MmaWaitOp : KVBuffer_OpOf<KVBuffer_Rings, "mma_wait", [KVBuffer_Together, KVBuffer_NamedResults,
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

def KVBuffer_TurnWaitOp : KVBuffer_OpOf<KVBuffer_Rings, "turn_wait", [
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

def KVBuffer_TurnPassOp : KVBuffer_OpOf<KVBuffer_Rings, "turn_pass", [
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
