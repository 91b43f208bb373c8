//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels whose warps work in teams, each by itself.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERTEAMOPS_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERTEAMOPS_TD

include "kvbuffer/Dialect/KVBuffer/IR/KVBufferOpBase.td"

// Effects of their own, whatever is in them: warps that have nothing to do are
// warps of the block all the same, and all of them meet.
def KVBuffer_TeamsOp : KVBuffer_OpOf<KVBuffer_Teams, "teams", [
    NoTerminator, SingleBlock, NoRegionArguments, KVBuffer_NeedsBlock,
    MemoryEffects<[MemRead, MemWrite, MemRead<KVBuffer_Lds>,
                   MemWrite<KVBuffer_Lds>, MemRead<KVBuffer_Async>,
                   MemWrite<KVBuffer_Async>]>]> {
  let summary = "Divides the block's warps into teams that work at the same time";
  let description = [{
    The region holds `kvbuffer.team` ops and nothing else. They take the block's
    warps in order: the first team, all its copies, then the next one. Together
    they are the block: its warps are theirs, in each `kvbuffer.teams` of a kernel
    as many. A kernel without this op is one team, the schedule's; so is what
    stands outside of it, where the schedule has as many warps as the block.

    When every team has ended, the block meets, and goes on together. No value
    leaves a team: its results leave through memory, in LDS or in DRAM, where
    the block, and no other team before, may read them.

    Example:

    ```mlir
    kvbuffer.teams {
      kvbuffer.team @stream warps(1) x 4 (%i) {
      }
    }
    ```
  }];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$body attr-dict";
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// Warps of all the teams, with their copies.
    int64_t getWarps();
    /// The team of that name, or null.
    TeamOp getTeam(::llvm::StringRef name);
    /// What joins them, in the order of its uses.
    ::llvm::SmallVector<TeamChannelInterface> getChannels();
    /// Of these, the queues.
    ::llvm::SmallVector<QueueOp> getQueues();
  }];
}

def KVBuffer_TeamOp : KVBuffer_OpOf<KVBuffer_Teams, "team", [
    NoTerminator, SingleBlock, HasParent<"TeamsOp">,
    MemoryEffects<[MemRead, MemWrite, MemRead<KVBuffer_Lds>,
                   MemWrite<KVBuffer_Lds>, MemRead<KVBuffer_Async>,
                   MemWrite<KVBuffer_Async>]>]> {
  let summary = "Warps that work by themselves";
  let description = [{
    `copies` teams of `warps` warps each run the region at the same time, each
    for itself; the region's argument, if there is one, is the copy's number. In
    the region "the block" of other ops' descriptions is the team:

    * a `kvbuffer.alloc` belongs to it: each copy has slots of its own;
    * `kvbuffer.dram_load` is dealt to its threads, into slots of its own;
    * `kvbuffer.lds_stage` and `kvbuffer.meet` wait for its own copies and meet
      its own warps. One warp needs no barrier for that;
    * a fragment lies over its warps: `BM` rows (by default as many for each warp
      as the kernel's schedule has for one of the block), `BM / warps` a warp.

    `warps` may be left out at the tile stage: `kvbuf-complete-program` chooses them
    for the chip, of all such teams as many as its instruction has room for in the
    schedule's `BM` rows.

    Scalars, tiles, tensors and slots that the block has staged come from outside;
    fragments do not, but for those that hold one value, and neither do tokens.

    `registers` are those of a lane, on chips that hand them out anew; 0 leaves
    them as they are. They come from the teams that need fewer.

    A team that loads tiles into a ring (`kvbuffer.ring_load`), or posts to a
    mailbox, only moves: one lane of it, or some warps, do that for all, so that
    it has no fragments and its warps do not meet. One that puts fragments into a
    ring (`kvbuffer.ring_put`) is a team like others.

    Example:

    ```mlir
    kvbuffer.teams {
      kvbuffer.team @halves warps(2) x 2 BM(32) (%half) {
        kvbuffer.meet
      }
    }
    kvbuffer.teams {
      kvbuffer.team @consumers warps(8) registers(240) {
      }
      kvbuffer.team @producers warps(4) registers(24) {
      }
    }
    ```
  }];
  let arguments = (ins
    Arg<SymbolNameAttr, "what messages call the team">:$sym_name,
    Arg<DefaultValuedAttr<I64Attr, "0">, "warps of one copy; 0: still to be chosen">:$warps,
    Arg<DefaultValuedAttr<I64Attr, "1">, "how many such teams there are">:$copies,
    Arg<DefaultValuedAttr<I64Attr, "0">,
        "rows of the team's fragments; 0: the schedule's for so many warps">:$BM,
    Arg<DefaultValuedAttr<I64Attr, "0">,
        "registers of a lane; 0: as many as it starts with">:$registers);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name (`warps` `(` $warps^ `)`)? (`x` $copies^)? (`BM` `(` $BM^ `)`)?
    (`registers` `(` $registers^ `)`)? custom<TeamBody>($body) attr-dict
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The number of the copy; null if the region does not ask for it.
    ::mlir::BlockArgument getIndex() {
      return getBody().getNumArguments() ? getBody().getArgument(0)
                                         : ::mlir::BlockArgument();
    }
    /// The team's own schedule: the kernel's with its warps and rows.
    ScheduleAttr getSchedule(ScheduleAttr kernel);
    /// Whether the team only moves: what one lane or some warps do for all of
    /// it is in it.
    bool isMover();
    /// Warps of the teams that come before it, with their copies.
    int64_t getFirstWarp();
    /// Whether the team is whole groups of `warps` warps, from the first of one
    /// on; false of 0.
    bool isWholeGroups(int64_t warps);
    /// Whether the team waits for fillings of rings.
    bool readsRings();
  }];
}

//===----------------------------------------------------------------------===//
// Queues between teams
//===----------------------------------------------------------------------===//

def KVBuffer_QueueOp : KVBuffer_OpOf<KVBuffer_Teams, "queue", [KVBuffer_NamedResults,
    KVBuffer_NeedsBlock, KVBuffer_TeamChannelInterface, MemoryEffects<[MemAlloc<KVBuffer_Lds>]>]> {
  let summary = "Slots in LDS through which one team hands fragments to others";
  let description = [{
    The team `from` puts entries, numbered 0, 1, 2, ..., and each team of `to`
    takes all of them, in that order. An entry lies in one of `slots` slots from
    its `kvbuffer.queue_put` until the last `kvbuffer.queue_take` of it: a put
    waits until its slot is free, a take until its entry is there.

    An entry's elements stay with the lanes of the same number: all teams of a
    queue have as many warps and rows, and one copy. On a chip whose blocks have
    no barrier but their own, there is one queue, of two slots or more, which
    every team of its `kvbuffer.teams` puts into or takes from: they all meet at
    each entry.

    Example:

    ```mlir
    %weights = kvbuffer.queue slots(2) from @scores to [@left, @right]
      : !kvbuffer.queue<!kvbuffer.fragment<64x32xbf16, a>>
    ```
  }];
  let arguments = (ins
    Arg<I64Attr, "entries that wait at most">:$slots,
    Arg<FlatSymbolRefAttr, "the team that puts">:$from,
    Arg<TypedArrayAttrBase<FlatSymbolRefAttr, "names of teams">,
        "the teams that take">:$to);
  let results = (outs Res<KVBuffer_QueueType, "the queue">:$queue);
  let assemblyFormat = [{
    `slots` `(` $slots `)` `from` $from `to` $to attr-dict `:` type($queue)
  }];
  let hasVerifier = 1;
}

def KVBuffer_QueuePutOp : KVBuffer_OpOf<KVBuffer_Teams, "queue_put", [
    KVBuffer_FillsChannel, MemoryEffects<[MemWrite<KVBuffer_Lds>, MemRead<KVBuffer_Async>,
                   MemWrite<KVBuffer_Async>]>]> {
  let summary = "Puts an entry into a queue once its slot is free";
  let description = [{
    See `kvbuffer.queue`.

    Example:

    ```mlir
    %sums = kvbuffer.queue slots(1) from @one to [@other]
      : !kvbuffer.queue<!kvbuffer.fragment<64x1xf32, row>>
    kvbuffer.teams {
      kvbuffer.team @one warps(4) {
        %l = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<64x1xf32, row>
        kvbuffer.queue_put %l to %sums[%n]
          : !kvbuffer.queue<!kvbuffer.fragment<64x1xf32, row>>
      }
      kvbuffer.team @other warps(4) {
        %taken = kvbuffer.queue_take %sums[%n]
          : !kvbuffer.queue<!kvbuffer.fragment<64x1xf32, row>>
      }
    }
    ```
  }];
  let arguments = (ins
      Arg<Variadic<KVBuffer_FragmentType>, "a fragment of each type">:$values,
      Arg<KVBuffer_QueueType, "the queue">:$queue,
      Arg<Index, "the entry's number">:$number);
  let assemblyFormat = [{
    $values `to` $queue `[` $number `]` attr-dict
    `:` custom<QueueTypes>(type($values), type($queue))
  }];
  let hasVerifier = 1;
}

def KVBuffer_QueueTakeOp : KVBuffer_OpOf<KVBuffer_Teams, "queue_take", [
    KVBuffer_TakesFromChannel, KVBuffer_NamedResults, InferTypeOpAdaptor,
    MemoryEffects<[MemRead<KVBuffer_Lds>, MemRead<KVBuffer_Async>,
                   MemWrite<KVBuffer_Async>]>]> {
  let summary = "Takes an entry from a queue once it is there";
  let description = [{
    See `kvbuffer.queue`, and the example of `kvbuffer.queue_put`.

    Example:

    ```mlir
    %pairs = kvbuffer.queue slots(2) from @one to [@other]
      : !kvbuffer.queue<!kvbuffer.fragment<64x32xbf16, a>, !kvbuffer.fragment<64x1xf32, row>>
    kvbuffer.teams {
      kvbuffer.team @one warps(4) {
        %p = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<64x32xbf16, a>
        %r = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<64x1xf32, row>
        kvbuffer.queue_put %p, %r to %pairs[%n]
          : !kvbuffer.queue<!kvbuffer.fragment<64x32xbf16, a>, !kvbuffer.fragment<64x1xf32, row>>
      }
      kvbuffer.team @other warps(4) {
        %weights, %factors = kvbuffer.queue_take %pairs[%n]
          : !kvbuffer.queue<!kvbuffer.fragment<64x32xbf16, a>, !kvbuffer.fragment<64x1xf32, row>>
      }
    }
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_QueueType, "the queue">:$queue,
      Arg<Index, "the entry's number">:$number);
  let results = (outs Res<Variadic<KVBuffer_FragmentType>, "the fragments of the entry">:$values);
  let assemblyFormat = "$queue `[` $number `]` attr-dict `:` type($queue)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// What teams leave for later
//===----------------------------------------------------------------------===//

def KVBuffer_ShelfOp : KVBuffer_OpOf<KVBuffer_Teams, "shelf", [KVBuffer_NamedResults,
    KVBuffer_NeedsBlock, MemoryEffects<[MemAlloc<KVBuffer_Lds>]>]> {
  let summary = "Slots in LDS in which teams leave fragments for the teams after them";
  let description = [{
    What a team puts into a slot, any team of a later `kvbuffer.teams` may get
    from it, as often as it likes, until a slot is put into again. The lanes of
    the team that gets find what those of the same number have put: both teams
    have as many warps and rows.

    Example:

    ```mlir
    %parts = kvbuffer.shelf slots(4)
      : !kvbuffer.shelf<!kvbuffer.fragment<16x128xf32, acc>, !kvbuffer.fragment<16x1xf32, row>>
    ```
  }];
  let arguments = (ins Arg<I64Attr, "how many entries it holds">:$slots);
  let results = (outs Res<KVBuffer_ShelfType, "the shelf">:$shelf);
  let assemblyFormat = "`slots` `(` $slots `)` attr-dict `:` type($shelf)";
  let hasVerifier = 1;
}

def KVBuffer_ShelfPutOp : KVBuffer_OpOf<KVBuffer_Teams, "shelf_put", [
    MemoryEffects<[MemWrite<KVBuffer_Lds>]>]> {
  let summary = "Leaves fragments in a slot";
  let description = [{
    Each slot is put into by one team, or by one copy of it, in a
    `kvbuffer.teams`. See `kvbuffer.shelf`.

    Example:

    ```mlir
    %sums = kvbuffer.shelf slots(4) : !kvbuffer.shelf<!kvbuffer.fragment<16x1xf32, row>>
    kvbuffer.teams {
      kvbuffer.team @stream warps(1) x 4 (%copy) {
        %l = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<16x1xf32, row>
        kvbuffer.shelf_put %l to %sums[%copy]
          : !kvbuffer.shelf<!kvbuffer.fragment<16x1xf32, row>>
      }
    }
    kvbuffer.teams {
      kvbuffer.team @join warps(1) {
        %l = kvbuffer.shelf_get %sums[%n]
          : !kvbuffer.shelf<!kvbuffer.fragment<16x1xf32, row>>
      }
      kvbuffer.team @idle warps(1) x 3 {
      }
    }
    ```
  }];
  let arguments = (ins
      Arg<Variadic<KVBuffer_FragmentType>, "a fragment of each type">:$values,
      Arg<KVBuffer_ShelfType, "the shelf">:$shelf,
      Arg<Index, "which slot">:$slot);
  let assemblyFormat = [{
    $values `to` $shelf `[` $slot `]` attr-dict
    `:` custom<ShelfTypes>(type($values), type($shelf))
  }];
  let hasVerifier = 1;
}

def KVBuffer_ShelfGetOp : KVBuffer_OpOf<KVBuffer_Teams, "shelf_get", [
    KVBuffer_NamedResults, InferTypeOpAdaptor,
    MemoryEffects<[MemRead<KVBuffer_Lds>]>]> {
  let summary = "Gets what an earlier team has left in a slot";
  let description = [{
    See `kvbuffer.shelf`, and the example of `kvbuffer.shelf_put`.

    Example:

    ```mlir
    %sums = kvbuffer.shelf slots(1) : !kvbuffer.shelf<!kvbuffer.fragment<16x1xf32, row>>
    kvbuffer.teams {
      kvbuffer.team @join warps(1) {
        %l = kvbuffer.shelf_get %sums[%n]
          : !kvbuffer.shelf<!kvbuffer.fragment<16x1xf32, row>>
      }
    }
    ```
  }];
  let arguments = (ins
      Arg<KVBuffer_ShelfType, "the shelf">:$shelf,
      Arg<Index, "which slot">:$slot);
  let results = (outs Res<Variadic<KVBuffer_FragmentType>, "the fragments of the slot">:$values);
  let assemblyFormat = "$shelf `[` $slot `]` attr-dict `:` type($shelf)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Where a team's warps meet, and take turns
//===----------------------------------------------------------------------===//

def KVBuffer_MeetOp : KVBuffer_OpOf<KVBuffer_Teams, "meet", [
    KVBuffer_Together, MemoryEffects<[MemRead<KVBuffer_Async>, MemWrite<KVBuffer_Async>,
                   MemRead<KVBuffer_Lds>, MemWrite<KVBuffer_Lds>]>]> {
  let summary = "Meets the block's other warps and waits for nothing else";
  let description = [{
    Ends a part of a loop in which one half of the warps multiplies while the
    other half moves data. Loads stay in flight.

    Example:

    ```mlir
    kvbuffer.meet
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def KVBuffer_StaggerOp : KVBuffer_OpOf<KVBuffer_Teams, "stagger", [
    KVBuffer_NeedsBlock, MemoryEffects<[MemRead<KVBuffer_Async>, MemWrite<KVBuffer_Async>,
                   MemRead<KVBuffer_Lds>, MemWrite<KVBuffer_Lds>]>]> {
  let summary = "Lets one half of the warps pass a meeting that the other skips";
  let description = [{
    The upper half meets the next time that the lower half does, and is from then
    on one meeting later. With `end` it is the lower half that passes one
    meeting more, so that both are level again.

    Example:

    ```mlir
    kvbuffer.stagger
    kvbuffer.stagger {end}
    ```
  }];
  let arguments = (ins Arg<UnitAttr, "the halves become level again">:$end);
  let assemblyFormat = "attr-dict";
}

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERTEAMOPS_TD
