//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How a kernel is divided, and by which instruction it multiplies.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERSCHEDULEATTRS_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERSCHEDULEATTRS_TD

include "kvbuffer/Dialect/KVBuffer/IR/KVBufferAttrBase.td"

def KVBuffer_InstructionAttr : KVBuffer_Attr<"Instruction", "instruction"> {
  let summary = "A matrix instruction, by its unit and shape";
  let description = [{
    How a product is computed: by which unit, and M, N, K of an instruction. The
    types of its operands are the product's; which instructions a chip has for
    them is in its table. Of `wgmma`, which four warps execute together, N is the
    least of a product.

    | unit | |
    |---|---|
    | `mma_sync` | NVIDIA's, by which each warp multiplies for itself |
    | `wgmma` | that of sm_90a: four warps together, operand b in LDS |
    | `mfma` | CDNA's |
    | `wmma` | gfx1250's |

    Examples:

    ```mlir
    #kvbuffer.instruction<mma_sync, [16, 8, 16]>
    #kvbuffer.instruction<wgmma, [64, 8, 16]>
    #kvbuffer.instruction<mfma, [32, 32, 64]>
    ```
  }];
  let parameters = (ins
    "::kvbuf::MatrixUnit":$unit, ArrayRefParameter<"int64_t">:$shape);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// What a schedule holds of it.
    ProductInstruction getInstruction() const;
  }];
}

def KVBuffer_ScheduleAttr : KVBuffer_Attr<"Schedule", "schedule"> {
  let summary = "How a kernel is built";
  let description = [{
    Chosen for a target by `kvbuf-choose-schedule`, or written by hand: parameters of
    the tile, and of each of four questions the kind that answers it, with the
    parameters that this kind has. What is not named has its default.

    | question | kinds | parameters |
    |---|---|---|
    | `teams`: what the warps of a block are to each other | `alike` (default): every warp does everything | |
    | | `halves`: so it does, and halves of a block take turns at the matrix unit | |
    | | `moving`: a team of its own moves tiles, the others multiply | `producers`, `producer_registers`, `consumer_registers`, `wideners`, `widener_registers`, `ping_pong`, `stage_output` |
    | `work`: what a block does | `one_tile` (default) of queries | `xcds` |
    | | `several_tiles` of queries, one after the other | `tiles`, `cluster` |
    | | `split_keys`: blocks share the keys of a sequence, of few query rows | `split_size`, `equal_shares`, `cluster`, `xcds` |
    | `ahead`: what of the next tile of keys runs beside a tile | `loads` (default) | `look_ahead` |
    | | `scores`: its scores, beside the softmax of this one | |
    | | `softmax`: its scores and its softmax, beside the product of P and V | |
    | `slots`: what a slot of K and V in LDS holds | `tiles` (default) | `k_path`, `v_path` |
    | | `blocks` of BN x BK: K and V come block by block | `k_path`, `v_path` |

    The tile. Sizes in elements: `BM` queries and `BN` keys a tile, LDS blocks of `BK`
    columns. `stages` LDS slots for each of K and V; `warps` waves, each with `BM /
    warps * warp_cols` rows (`WM`); `mma_shape` is M, N, K of the matrix instruction of
    all products, of one that groups of warps execute 64 rows; `scores` and `values`
    name that of each (`#kvbuffer.instruction`) in its place: of products that
    contract the columns of operand b, and of those that contract its rows;
    `swap_a_b` computes the transposed products (S^T = K Q^T), so that an accumulator's
    lane holds a query; `q_in_regs` keeps Q's fragments in registers for the whole
    tile; `split_masks` gives tiles without a mask a loop of their own; `sums_in_lds`
    keeps each lane's running row sums in LDS, where the accumulators leave no
    registers for what is touched once an iteration; `lazy_rescale` rescales O only
    where a maximum has grown by more than 8 (in base 2), which makes a row's bits
    depend on its neighbours; `reg_chunk_depth` is how many columns of K's fragments
    are in registers at a time (0: as many as the head has); `warp_cols` warps share
    the columns of each part of the rows, so that few rows feed several warps: they
    join maxima and sums, and hand each other P, through LDS (with split keys those of
    a block share its tiles of keys then, which values that are a part of keys ask
    for; so do warps that divide a BM of more than 32 rows; else each has tiles of its
    own); `sum_keys` is how many keys' weighted values the matrix unit adds up before
    the sum is added to that of the keys before, with rounding (0: all; whole tiles,
    at least one): units that cut off what a sum has no bits for lose on very long
    sums of one sign; `accumulate` is where weighted values of 8-bit floats are added
    up on chips whose matrix unit keeps few bits of such sums: `two_level` has the
    unit add those of a tile of keys, and vector instructions add tiles in f32; `fast`
    has it add all.

    The kinds. `producers` warps beside `warps` move tiles, with `producer_registers`
    registers a lane and `consumer_registers` for the others; `wideners` more warps, with
    `widener_registers`, make what the producers bring in 8 bits elements that products read
    from LDS; `ping_pong` lets groups of the others take turns at the matrix unit;
    `stage_output` sends O through LDS. `xcds` deals heads to so many dies of a chip, which
    take a head's tiles one after the other, so that blocks which run together read the same
    of a cache; with split keys, runs of neighbouring blocks. `tiles` says how blocks come
    by several tiles: every n-th (`static`) or from a counter (`dynamic`). `cluster` blocks
    work on neighbouring tiles of queries at the same time and load each tile of K and V
    once, a part each, for all of them (with split keys neighbouring parts of the heads, or
    shares of keys, of which two that have a sequence to themselves join it through shared
    memory). With split keys, tiles have the query rows of all heads that share a head of
    the cache (at most BM in all); `split_size` is the keys of a split, 0 for a share that
    the launch chooses by the batch and the room of the cache; `equal_shares` gives each
    block as many tiles of keys as the others, of one sequence or of several that follow
    each other, and each of its warps a head of the cache where they divide the heads.
    `look_ahead` looks up the page of a tile an iteration before the tile is loaded.
    `k_path` and `v_path` say whether K and V go from DRAM to LDS directly (`direct`),
    through registers (`registers`), or in strips through a single slot (`streaming`).

    A list of parameters stands for a schedule, too, as in the option `schedule` of
    `kvbuf-choose-schedule` and the tools: that a list has `producers` makes its teams
    `moving`, `ping_pong` without them `halves`; `tiles` its work `several_tiles`,
    `split_keys = true` that; `overlap = true` means `ahead = scores`,
    `overlap_products = true` `ahead = softmax`, `full_kv = false` `slots = blocks`.
    It is parsed here, too, and printed by kinds. A question is answered in one way.

    Example:

    ```mlir
    #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, stages = 2, warps = 4, mma_shape = [16, 8, 16]>
    #kvbuffer.schedule<BM = 128, BN = 128, BK = 64, warps = 8, mma_shape = [64, 8, 16], teams = moving<producers = 4>, work = several_tiles<tiles = dynamic>, ahead = softmax>
    #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, warps = 4, scores = #kvbuffer.instruction<mfma, [32, 32, 64]>, values = #kvbuffer.instruction<mfma, [32, 32, 16]>, swap_a_b = true>
    ```
  }];
  let parameters = (ins AttrParameter<
    "::kvbuf::Schedule", "what the parameters stand for",
    "const ::kvbuf::Schedule &">:$structure);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    // The tile.
    int64_t getBM() const { return getStructure().BM; }
    int64_t getBN() const { return getStructure().BN; }
    int64_t getBK() const { return getStructure().BK; }
    int64_t getStages() const { return getStructure().stages; }
    int64_t getWarps() const { return getStructure().warps; }
    int64_t getWarpCols() const { return getStructure().warpCols; }
    /// M, N and K of the instruction of a product.
    const MatrixShape &getMmaShape(ProductKind product) const {
      return getStructure().shapeOf(product);
    }
    bool getSwapAB() const { return getStructure().swapAB; }
    /// Whether the matrix instruction is still to be chosen.
    bool isOpen() const { return getStructure().isOpen(); }
    /// Rows of a warp's tile.
    int64_t getWM() const { return getStructure().rowsOfWarp(); }
    /// Parts that the warps cut the rows of accumulators into.
    int64_t getWarpRows() const { return getStructure().warpRows(); }

    // What it is kept in.
    bool getQInRegs() const { return getStructure().qInRegs; }
    int64_t getRegChunkDepth() const { return getStructure().regChunkDepth; }
    bool getSplitMasks() const { return getStructure().splitMasks; }
    bool getLazyRescale() const { return getStructure().lazyRescale; }
    int64_t getSumKeys() const { return getStructure().sumKeys; }
    Accumulation getAccumulate() const { return getStructure().accumulate; }
    bool getSumsInLds() const { return getStructure().sumsInLds; }

    // The kinds; what each has of its own is in Schedule.h.
    const Ahead &getAhead() const { return getStructure().ahead; }
    const Movement &getKeys() const { return getStructure().keys; }
    const Movement &getValues() const { return getStructure().values; }
    /// Whether halves of a block take turns.
    bool hasHalves() const { return getStructure().hasHalves(); }
    /// The team that only moves tiles; null where all warps are alike.
    const MovingTeam *getMovingTeam() const {
      return getStructure().movingTeam();
    }
    const Work &getWork() const { return getStructure().work; }
    /// How blocks share the keys of a sequence; null where they do not.
    const SplitKeys *getSplitKeys() const {
      return getStructure().splitKeys();
    }
  }];
}

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERSCHEDULEATTRS_TD
