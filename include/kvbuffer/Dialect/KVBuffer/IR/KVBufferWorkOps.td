//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Work: the items that blocks take, numbers that the launch decides, partial
// results in a workspace, the block that arrives last.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERWORKOPS_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERWORKOPS_TD

include "kvbuffer/Dialect/KVBuffer/IR/KVBufferOpBase.td"

def KVBuffer_WorkItemOp : KVBuffer_OpOf<KVBuffer_Work, "work_item", [KVBuffer_NamedResults,
                                                   InferTypeOpAdaptor]> {
  let summary = "The item of work that a block is at";
  let description = [{
    A kernel's work is a grid of items, of as many dimensions as there are
    `coordinates`; the program is that of one item, and the results say which.
    Each item is computed once, by some block, in any order.

    Which block computes which items, in which order and how many of them one
    after the other, how many blocks there are, and which of them work together as
    a cluster, `kvbuf-assign-work` decides, by the schedule (`tiles`, `cluster`,
    `xcds`) and the chip; it leaves `gpu.block_id`s and the kernel's
    `kvbuffer.grid`. What it may know of the items say the coordinates
    (`#kvbuffer.coordinate`). `reads`, an expression over the launch's sizes, is
    how many bytes the items along coordinates with `sharing = all` read of what
    they share, for one place along the others: items that run at the same time
    read as few different bytes as stay in the cache.

    The op stands once, at the beginning of a kernel without `kvbuffer.grid`.
    `kvbuf-assign-work` refuses `gpu.block_id`s and the like beside it.

    Blocks of a cluster may be given items that lie past the end of a coordinate
    counted in rows, as the last one may: such items have no rows, and a program has
    nothing valid to load and store there.

    Example:

    ```mlir
    gpu.module @kernels {
      gpu.func @attend() kernel {
        %tile, %head, %batch = kvbuffer.work_item [<"seq_q" by 128, growing, sharing = all>, <8, sharing = 4>, <"batch">] reads product(seq_k, 512)
        gpu.return
      }
    }
    ```
  }];
  let arguments = (ins
      Arg<TypedArrayAttrBase<KVBuffer_CoordinateAttr, "coordinates">,
          "extents of the work, and what neighbours share">:$coordinates,
      Arg<OptionalAttr<AnyAttr>, "bytes that items which share all read">:$reads);
  let results = (outs Res<Variadic<Index>, "the item, a number for each coordinate">:$items);
  let assemblyFormat = [{
    custom<Coordinates>($coordinates) (`reads` custom<Size>($reads)^)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The coordinate of result `i`.
    CoordinateAttr getCoordinate(unsigned i) {
      return ::llvm::cast<CoordinateAttr>(getCoordinates()[i]);
    }
    /// The op of a kernel; null if it has none.
    static WorkItemOp of(::mlir::Operation *kernel);
    /// The blocks of a launch that has one for each item, as `kvbuffer.grid` says
    /// it: a dimension for each of the first two coordinates, and one for all
    /// others, the first of them fastest.
    ::mlir::ArrayAttr getGridOfItems();
  }];
}

def KVBuffer_ItemRowsOp : KVBuffer_OpOf<KVBuffer_Work, "item_rows", [Pure, KVBuffer_NamedResults]> {
  let summary = "The first row of an item, and of those taken together with it";
  let description = [{
    Item i along a coordinate counted in rows has the rows from i * `rows` on:
    `row`. Where blocks of a cluster take neighbouring items, `first` is the first
    row of them all, the same in each of these blocks; elsewhere it is `row`.

    What the blocks of a cluster have to agree about follows from `first`: whether
    there is something to do, and which tiles to walk over. A `kvbuffer.key_range`
    of `first` becomes that of all of these rows. What a block loads, masks and
    stores for itself follows from `row`. `kvbuf-assign-work` refuses other `rows`
    than the item's coordinate has, or the search that found it.

    Example:

    ```mlir
    %first, %row = kvbuffer.item_rows %tile by 128
    ```
  }];
  let arguments = (ins
      Arg<Index, "the item: a result of kvbuffer.work_item or kvbuffer.find_tile">:$item,
      Arg<ConfinedAttr<I64Attr, [IntPositive]>, "rows of an item">:$rows);
  let results = (outs
      Res<Index, "the first row of the items that a cluster takes together">:$first,
      Res<Index, "the first row of this item">:$row);
  let assemblyFormat = "$item `by` $rows attr-dict";
}

def KVBuffer_LaunchValueOp : KVBuffer_OpOf<KVBuffer_Work, "launch_value", [Pure]> {
  let summary = "A number that the launch computes from its sizes";
  let description = [{
    The value of an expression over the launch's sizes, as grids are made of
    (`kvbuffer.grid`): an integer, the name of a size, or what `#kvbuffer.size` is
    made of. The host computes it once a launch, so that a kernel and its grid
    agree on how work is split, without a division in the kernel. It must fit 31
    bits.

    Example:

    ```mlir
    %splits = kvbuffer.launch_value max(1, floordiv(sms, batch))
    ```
  }];
  let arguments = (ins Arg<AnyAttr, "the expression">:$expression);
  let results = (outs Res<Index, "what it comes to">:$value);
  let assemblyFormat = "custom<Size>($expression) attr-dict";
  let hasVerifier = 1;
}

def KVBuffer_ArriveLastOp : KVBuffer_OpOf<KVBuffer_Work, "arrive_last", [KVBuffer_NamedResults,
    KVBuffer_NeedsBlock, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Counts a block in; true in the block that is last";
  let description = [{
    `count` blocks arrive at the counter, each once. The op is true in exactly
    one of them, the last, and the same for all of a block's threads. What each
    block has written to global memory before it arrives is visible to the last
    one after the op: an arrival releases the block's writes, and the last one
    acquires all. The last block sets the counter back to 0, for the next launch.

    With `if_last` a block arrives only as the last one: where the op is false it
    has not been counted, and has to arrive later. So it need not store what nobody
    but itself would read.

    The counter is an element of a tensor of i32 with `kvbuffer.access` =
    "counter": zero before the first launch. All threads of a block have to reach
    the op.

    Example:

    ```mlir
    %last = kvbuffer.arrive_last %counters[%batch, %head] of %n : memref<?x8xi32>
    ```
  }];
  let arguments = (ins
    Arg<MemRefOf<[I32]>, "the counters">:$counters,
    Arg<Variadic<Index>, "which of them">:$indices,
    Arg<Index, "the blocks that arrive there, 1 or more">:$count,
    Arg<UnitAttr, "the block arrives only where it is the last">:$if_last);
  let results = (outs Res<I1, "true in the block that is last">:$last);
  let assemblyFormat = [{
    $counters `[` $indices `]` `of` $count (`if_last` $if_last^)? attr-dict `:` type($counters)
  }];
  let hasVerifier = 1;
}

def KVBuffer_AfterAllOp : KVBuffer_OpOf<KVBuffer_Work, "after_all", [KVBuffer_NeedsBlock, NoTerminator,
    SingleBlock, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Counts a block in; those that are there divide what is left to do";
  let description = [{
    `count` blocks arrive, each once. When all have, the region runs once for each of
    the numbers from 0 to `shares` - 1, each time in one of these blocks, by all of its
    threads, and in any order. What each block has written to global memory before it
    arrives is visible in the region.

    A block that is `patient` waits for the others for a limited time, and then goes on
    without a share: no block has to wait for one that may not run yet. Where all
    have waited, each has the share of its arrival's number, and those that are
    as many blocks further. Else who is still there takes one share after the other until
    none is left; the last one to arrive always is. So who has which share differs
    from launch to launch, and what is computed must not follow from that.

    The counters are the three at `indices` of a tensor [.., 3] of i32 with
    `kvbuffer.access` = "counter": zero before the first launch, and after each. All
    threads of a block have to reach the op.

    Example:

    ```mlir
    kvbuffer.after_all %counters[%head] of %count shares(%shares) patient(%last) {
    ^bb0(%share: index):
    } : memref<?x3xi32>
    ```
  }];
  let arguments = (ins
    Arg<MemRefOf<[I32]>, "the counters">:$counters,
    Arg<Variadic<Index>, "which three of them">:$indices,
    Arg<Index, "the blocks that arrive there, 1 or more">:$count,
    Arg<Index, "parts of what is left to do">:$shares,
    Arg<I1, "whether the block waits for the others">:$patient);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $counters `[` $indices `]` `of` $count `shares` `(` $shares `)` `patient` `(`
    $patient `)` $body attr-dict `:` type($counters)
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// Counters of an op: blocks that have arrived, shares that are taken, blocks
    /// that have left.
    static constexpr int64_t kCounters = 3;
  }];
}

def KVBuffer_PartialStoreOp : KVBuffer_OpOf<KVBuffer_Work, "partial_store", [
    MemoryEffects<[MemWrite]>, AllTypesMatch<["max", "sum"]>]> {
  let summary = "Stores what a softmax over some of the keys has come to";
  let description = [{
    Accumulator, maximum and sum of rows [0, `valid`) go to the matrix at
    `indices` of a tensor [.., rows, width] of f32: row r of it holds row r of
    the accumulator, from column `cols` on its maximum and its sum. `width` is at
    least `cols` + 2; a multiple of 4 keeps rows aligned.

    `columns` lists, for each bit of a column's place in the row, the column that
    stands there (`array<i64: 2, 1>`: columns 0, 2, 1, 3, 4, 6, ..); without it
    columns stand in their natural order. All that is stored to a tensor, or
    loaded from it, has the same; `kvbuf-distribute-fragments` chooses it so that
    lanes store 16 bytes at once. With an order of 8 columns and more, rows of a
    matrix of a multiple of 8 rows may have one of their own, too, which all
    lowerings share: each 8 lie together, block by block of so many columns, and
    maxima and sums behind all rows. See `kvbuffer.partial_load` and
    `kvbuffer.partial_join`.

    Example:

    ```mlir
    kvbuffer.partial_store %acc, %m, %l into %parts[%split] valid(%n)
      : !kvbuffer.fragment<16x128xf32, acc>, !kvbuffer.fragment<16x1xf32, row>, memref<?x16x132xf32>
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_FragmentType, "the weighted sum of values">:$acc,
      Arg<KVBuffer_FragmentType, "each row's maximum, as the softmax carries it">:$max,
      Arg<KVBuffer_FragmentType, "each row's sum of weights">:$sum,
      Arg<MemRefOf<[F32]>, "where partial results are kept">:$parts,
      Arg<Variadic<Index>, "which of them">:$indices,
      Arg<Index, "rows that exist">:$valid,
      Arg<OptionalAttr<DenseI64ArrayAttr>,
          "the order of columns in memory; natural without it">:$columns);
  let assemblyFormat = [{
    $acc `,` $max `,` $sum `into` $parts `[` $indices `]` `valid` `(` $valid `)`
    attr-dict `:` type($acc) `,` type($max) `,` type($parts)
  }];
  let hasVerifier = 1;
}

def KVBuffer_PartialLoadOp : KVBuffer_OpOf<KVBuffer_Work, "partial_load", [
    MemoryEffects<[MemRead]>, AllTypesMatch<["max", "sum"]>]> {
  let summary = "Loads what `kvbuffer.partial_store` has stored";
  let description = [{
    Rows from `valid` on are those of an empty partial result: accumulator 0,
    maximum -inf, sum 0.

    Example:

    ```mlir
    %acc, %m, %l = kvbuffer.partial_load %parts[%split] valid(%n)
      : memref<?x16x132xf32> -> !kvbuffer.fragment<16x128xf32, acc>, !kvbuffer.fragment<16x1xf32, row>
    ```
  }];
  let arguments = (ins
      Arg<MemRefOf<[F32]>, "where partial results are kept">:$parts,
      Arg<Variadic<Index>, "which of them">:$indices,
      Arg<Index, "rows that exist">:$valid,
      Arg<OptionalAttr<DenseI64ArrayAttr>,
          "the order of columns in memory; natural without it">:$columns);
  let results = (outs
      Res<KVBuffer_FragmentType, "the weighted sum of values">:$acc,
      Res<KVBuffer_FragmentType, "each row's maximum">:$max,
      Res<KVBuffer_FragmentType, "each row's sum of weights">:$sum);
  let assemblyFormat = [{
    $parts `[` $indices `]` `valid` `(` $valid `)` attr-dict
    `:` type($parts) `->` type($acc) `,` type($max)
  }];
  let hasVerifier = 1;
}

def KVBuffer_PartialJoinOp : KVBuffer_OpOf<KVBuffer_Work, "partial_join", [
    AttrSizedOperandSegments, MemoryEffects<[MemRead]>, AllTypesMatch<["max", "sum"]>]> {
  let summary = "Loads partial results and joins them, in their order";
  let description = [{
    Joins `count` of what `kvbuffer.partial_store` has stored: at `indices`, and
    each `step` after the one before it along the last index. What they come to
    is that of `kvbuffer.softmax_merge`, but for rounding. The same partial
    results give the same bits, whoever stored them and when. Rows from `valid`
    on are those of an empty partial result. `unbounded` is that of
    `kvbuffer.online_softmax`. With `from` the fragment's rows are those of the partial
    results from that one on, fewer than they have.

    By lanes, several are on their way at a time, as many as registers hold. The
    lanes of a row have a part of its maxima and weights each.

    Example:

    ```mlir
    %acc, %m, %l = kvbuffer.partial_join %parts[%head, %first] of %count step 1 valid(%n) {scale = 0.125 : f32}
      : memref<8x?x16x132xf32> -> !kvbuffer.fragment<16x128xf32, acc>, !kvbuffer.fragment<16x1xf32, row>
    ```
  }];
  let arguments = (ins
      Arg<MemRefOf<[F32]>, "where partial results are kept">:$parts,
      Arg<Variadic<Index>, "the first of them">:$indices,
      Arg<Index, "partial results, 1 or more">:$count,
      Arg<I64Attr, "partial results from one to the next">:$step,
      Arg<Index, "rows that exist">:$valid,
      Arg<Optional<Index>, "the first row; 0 without it">:$from,
      Arg<F32Attr, "what scores are multiplied by">:$scale,
      Arg<OptionalAttr<DenseI64ArrayAttr>,
          "the order of columns in memory; natural without it">:$columns,
      Arg<UnitAttr, "scores may be of any size (`kvbuffer.online_softmax`)">:$unbounded);
  let results = (outs
      Res<KVBuffer_FragmentType, "the weighted sum of values over all keys">:$acc,
      Res<KVBuffer_FragmentType, "each row's maximum over all keys">:$max,
      Res<KVBuffer_FragmentType, "each row's sum over all keys">:$sum);
  let assemblyFormat = [{
    $parts `[` $indices `]` `of` $count `step` $step `valid` `(` $valid `)`
    (`from` $from^)? attr-dict `:` type($parts) `->` type($acc) `,` type($max)
  }];
  let hasVerifier = 1;
}

def KVBuffer_ShareWorkOp : KVBuffer_OpOf<KVBuffer_Work, "share_work", [RecursiveMemoryEffects,
    SingleBlock, KVBuffer_NamedResults]> {
  let summary = "A worker's equal share of items of unequal size";
  let description = [{
    Items 0 to `items` - 1 lie side by side, item i as many units long as the
    region yields for i, at least 0. The units are dealt to `workers` workers in
    their order, `size` to each: as few as are enough, but at least `least`. Where
    as many workers as share the items that have units without a rest are no more
    than a tenth fewer, and the others would have no more than a tenth of an item
    of each of these, units are dealt to these alone: items of one length are
    then dealt whole, or each to as many. So worker w has the units from
    w * `size` on, and workers at the end may have none. All workers see the same sizes, read on the device: no host knows them,
    and no worker waits for another.

    `first` is the item that the worker's first unit is in, `start` the units
    before that item, `end` one past the item of its last unit; `end` is `first`
    for a worker without a unit, and `start` means nothing then. Items without a
    unit are nobody's. The sum of all items must fit 31 bits.

    The region takes the number of an item and yields an index. It runs for
    several items side by side, and more than once for each: it may read tensors
    and caches' lengths and compute with them, no more.

    Two workers that follow each other share at most one item, so pieces of items
    are told apart by the worker's number plus the item's.

    Example:

    ```mlir
    %size, %first, %start, %end = kvbuffer.share_work %block of %blocks over %batch least %least {
    ^bb0(%sequence: index):
      %keys = kvbuffer.cache.num_keys %k[%sequence] new(%c1)
        : !kvbuffer.cache<dense, bf16, heads = 8, head_size = 128>
      kvbuffer.yield %keys : index
    }
    ```
  }];
  let arguments = (ins
    Arg<Index, "the worker's number">:$worker,
    Arg<Index, "workers, 1 or more">:$workers,
    Arg<Index, "items">:$items,
    Arg<Index, "units of a share at least, 1 or more">:$least);
  let results = (outs
      Res<Index, "units of a share">:$size,
      Res<Index, "the item of the worker's first unit">:$first,
      Res<Index, "units before that item">:$start,
      Res<Index, "one past the item of its last unit">:$end);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $worker `of` $workers `over` $items `least` $least attr-dict-with-keyword
    $body
  }];
  let hasRegionVerifier = 1;
}

def KVBuffer_SharePairsOp : KVBuffer_OpOf<KVBuffer_Work, "share_pairs", [RecursiveMemoryEffects,
    SingleBlock, KVBuffer_NamedResults]> {
  let summary = "A worker's share of items of unequal size, which pairs of workers even out";
  let description = [{
    As `kvbuffer.share_work`, where pairs cannot even items out: `keep` is 0 then, and
    `other` means nothing.

    Where units are dealt to as many workers as there are items, or more, but not
    to twice as many, each of these workers has the item of its own number, or
    none, but for what another takes of it. These are put in order, the most units
    first, and of as many the first one first; the first is paired with the last,
    the second with the last but one, and so on. Of two that differ by more than
    twice `pause` the larger one's worker keeps its first `keep` units, half of
    the sum of both, rounded up, less a quarter of `pause`, as it joins both. The
    other worker has the rest of it, and has it first: it is there long before the
    larger item's worker ends. That is how units are dealt where no pair is of more units than
    two shares of `kvbuffer.share_work` and two pauses, and an item differs from
    such a share. Of more than 128 workers no pairs are made.

    `keep` is then 1 or more, and the worker has `end` - `first` pieces, none, one
    or two, from `first`, its own number, on; `start` is 0. Where `other` is not
    2147483647, the first piece is of that item, from unit `keep` on, and the
    second one, if any, the worker's own item. Else the one piece is of that, up to
    unit `keep`, which is 2147483647 where nobody takes any of it. Items and pauses
    of more than 16777215 units count as of so many here.

    Example:

    ```mlir
    %size, %first, %start, %end, %other, %keep = kvbuffer.share_pairs %block of %blocks over %batch least %least pause %c4 {
    ^bb0(%sequence: index):
      %keys = kvbuffer.cache.num_keys %k[%sequence] new(%c1)
        : !kvbuffer.cache<dense, bf16, heads = 8, head_size = 128>
      kvbuffer.yield %keys : index
    }
    ```
  }];
  let arguments = (ins
    Arg<Index, "the worker's number">:$worker,
    Arg<Index, "workers, 1 or more">:$workers,
    Arg<Index, "items">:$items,
    Arg<Index, "units of a share at least, 1 or more">:$least,
    Arg<Index, "units that a worker could have instead of one piece more, 0 or more">:$pause);
  let results = (outs
      Res<Index, "units of a share">:$size,
      Res<Index, "the item of the worker's first unit">:$first,
      Res<Index, "units before that item">:$start,
      Res<Index, "one past the item of its last unit">:$end,
      Res<Index, "the item whose rest is the first piece, if there is one">:$other,
      Res<Index, "the units of a pair's larger item that its own worker has; 0 where there are no pairs">:$keep);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $worker `of` $workers `over` $items `least` $least `pause` $pause
    attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// Workers of which pairs are made, at most: a power of 2.
    static constexpr int64_t kMostWorkers = 128;
    /// Units that an item counts as at most where items are put in order.
    static constexpr int64_t kMostUnits = (int64_t(1) << 24) - 1;
    /// `other` where there is none, and `keep` where nobody takes any of an item.
    static constexpr int64_t kNone = (int64_t(1) << 31) - 1;
  }];
}

def KVBuffer_LaunchSizeOp : KVBuffer_OpOf<KVBuffer_Work, "launch_size", [Pure]> {
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

def KVBuffer_FindTileOp : KVBuffer_OpOf<KVBuffer_Work, "find_tile", [
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

def KVBuffer_NumberTilesOp : KVBuffer_OpOf<KVBuffer_Work, "number_tiles", [
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

def KVBuffer_NextTileOp : KVBuffer_OpOf<KVBuffer_Work, "next_tile", [
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

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERWORKOPS_TD
