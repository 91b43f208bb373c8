//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERATTRS_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERATTRS_TD

include "kvbuffer/Dialect/KVBuffer/IR/KVBufferAttrBase.td"
include "kvbuffer/Dialect/KVBuffer/IR/KVBufferLayouts.td"
include "mlir/IR/EnumAttr.td"

//===----------------------------------------------------------------------===//
// Enumerations
//===----------------------------------------------------------------------===//

def KVBuffer_Phase : I32Enum<"Phase", "A stage of the lowering", [
    I32EnumCase<"Tile", 0, "tile">,
    I32EnumCase<"Scheduled", 1, "scheduled">,
    I32EnumCase<"Thread", 2, "thread">,
    I32EnumCase<"Target", 3, "target">]> {
  let cppNamespace = "::kvbuf";
}

def KVBuffer_CacheKind : I32Enum<"CacheKind", "How a cache lies in memory", [
    I32EnumCase<"Dense", 0, "dense">,
    I32EnumCase<"Ragged", 1, "ragged">,
    I32EnumCase<"Continuous", 2, "continuous">,
    I32EnumCase<"Paged", 3, "paged">]> {
  let cppNamespace = "::kvbuf";
}

def KVBuffer_TileOrder : I32Enum<"TileOrder", "How blocks come by tiles of queries", [
    I32EnumCase<"Grid", 0, "grid">, I32EnumCase<"Static", 1, "static">,
    I32EnumCase<"Dynamic", 2, "dynamic">]> {
  let cppNamespace = "::kvbuf";
}

def KVBuffer_Accumulation : I32Enum<"Accumulation",
    "Where weighted values of 8-bit floats are added up", [
    I32EnumCase<"TwoLevel", 0, "two_level">,
    I32EnumCase<"Fast", 1, "fast">]> {
  let cppNamespace = "::kvbuf";
}

def KVBuffer_Path : I32Enum<"Path", "How a tile comes into LDS", [
    I32EnumCase<"Direct", 0, "direct">,
    I32EnumCase<"Registers", 1, "registers">,
    I32EnumCase<"Streaming", 2, "streaming">]> {
  let cppNamespace = "::kvbuf";
}

def KVBuffer_Operand : I32Enum<"Operand", "The operand that a buffer feeds", [
    I32EnumCase<"Q", 0, "q">, I32EnumCase<"K", 1, "k">,
    I32EnumCase<"V", 2, "v">, I32EnumCase<"O", 3, "o">,
    I32EnumCase<"Any", 4, "any">]> {
  let cppNamespace = "::kvbuf";
}

def KVBuffer_Dimension : I32Enum<"Dimension", "A dimension of a matrix", [
    I32EnumCase<"Rows", 0, "rows">, I32EnumCase<"Cols", 1, "cols">]> {
  let cppNamespace = "::kvbuf";
}

def KVBuffer_Policy : I32Enum<"Policy", "How a buffer is filled", [
    I32EnumCase<"DoubleBuffered", 0, "double_buffered">,
    I32EnumCase<"Streaming", 1, "streaming">,
    I32EnumCase<"RegisterStaged", 2, "register_staged">]> {
  let cppNamespace = "::kvbuf";
}

def KVBuffer_Role : I32Enum<"Role", "What a fragment is to the matrix unit", [
    I32EnumCase<"A", 0, "a">, I32EnumCase<"B", 1, "b">,
    I32EnumCase<"Acc", 2, "acc">, I32EnumCase<"Row", 3, "row">]> {
  let cppNamespace = "::kvbuf";
}

def KVBuffer_Reduction
    : I32Enum<"Reduction", "What becomes of the elements of a row",
              [I32EnumCase<"Sum", 0, "sum">,
               I32EnumCase<"Maximum", 1, "maximum">]> {
  let cppNamespace = "::kvbuf";
}

def KVBuffer_ArgumentKind
    : I32Enum<"ArgumentKind", "What a kernel's parameter is", [
    I32EnumCase<"Pointer", 0, "pointer">, I32EnumCase<"Stride", 1, "stride">,
    I32EnumCase<"Size", 2, "size">,
    I32EnumCase<"LaunchCounter", 3, "launch_counter">,
    I32EnumCase<"TensorMap", 4, "tensor_map">]> {
  let cppNamespace = "::kvbuf";
}

def KVBuffer_StageSpan
    : I32Enum<"StageSpan", "For which iterations an op runs ahead", [
    I32EnumCase<"Own", 0, "own">, I32EnumCase<"OneMore", 1, "one_more">,
    I32EnumCase<"All", 2, "all">]> {
  let cppNamespace = "::kvbuf";
}

def KVBuffer_Pipeline
    : I32Enum<"Pipeline", "How the iterations of a loop are made to overlap", [
    I32EnumCase<"Predicated", 0, "predicated">,
    I32EnumCase<"PeeledAhead", 1, "peeled_ahead">,
    I32EnumCase<"PeeledNow", 2, "peeled_now">,
    I32EnumCase<"Turns", 3, "turns">]> {
  let cppNamespace = "::kvbuf";
}

def KVBuffer_PipelineStart
    : I32Enum<"PipelineStart", "Where what runs ahead of a loop stands", [
    I32EnumCase<"AtLoop", 0, "at_loop">,
    I32EnumCase<"BeforeWait", 1, "before_wait">]> {
  let cppNamespace = "::kvbuf";
}

def KVBuffer_TensorAccess
    : I32Enum<"TensorAccess", "What a kernel does with a tensor", [
    I32EnumCase<"Read", 0, "read">, I32EnumCase<"Write", 1, "write">,
    I32EnumCase<"ReadWrite", 2, "read_write">,
    I32EnumCase<"Workspace", 3, "workspace">,
    I32EnumCase<"Counter", 4, "counter">]> {
  let cppNamespace = "::kvbuf";
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

def KVBuffer_ReductionAttr
    : EnumAttr<KVBuffer_Dialect, KVBuffer_Reduction, "reduction">;

def KVBuffer_DimensionAttr : EnumAttr<KVBuffer_Dialect, KVBuffer_Dimension,
                                      "dimension">;

def KVBuffer_PipelineAttr : KVBuffer_Attr<"Pipeline", "pipeline"> {
  let summary = "How a loop is made of what its ops say of when they run";
  let description = [{
    On a loop whose ops say when they run (`#kvbuffer.stage`): which of the
    iterations that overlap the new loop counts, and what becomes of the first and
    last ones.

    | | |
    |---|---|
    | `predicated` | the loop's own; what runs ahead of the last ones does so if there is such an iteration |
    | `turns` | the same, and one half of the block's warps goes through the loop one meeting later than the other (`kvbuffer.stagger`) |
    | `peeled_ahead` | of two, those of what runs ahead, from the second on: its first stands before the loop, the last of the rest behind it, both in a branch that is taken if there is an iteration |
    | `peeled_now` | of two, those of the rest, up to the last but one; likewise |

    Of `predicated` and `turns`, the first of what runs ahead stands in front of the
    loop, or, with `before_wait`, in front of the last wait there, too, which it need
    not be held up by: the wait moves behind it, or, where what is awaited is read
    before the loop, the loads move before the wait.

    Example:

    ```mlir
    #kvbuffer.pipeline<peeled_now>
    #kvbuffer.pipeline<predicated, before_wait>
    ```
  }];
  let parameters = (ins
    EnumParameter<KVBuffer_Pipeline>:$value,
    DefaultValuedParameter<"::kvbuf::PipelineStart", "::kvbuf::PipelineStart::AtLoop",
      "where the first of what runs ahead stands">:$start);
  let assemblyFormat = "`<` $value (`,` $start^)? `>`";
  let genVerifyDecl = 1;
}

def KVBuffer_PhaseAttr : KVBuffer_Attr<"Phase", "phase"> {
  let summary = "The phase contract of a kernel";
  let description = [{
    Which stage a kernel is in. The dialect verifies the contract on the
    `gpu.func` that carries it:

    | phase | what may appear |
    |---|---|
    | `tile` | block-level ops, with control flow of `scf`; no lane-level op (`gpu.thread_id`, `vector`, ...), no branch to a block |
    | `scheduled` | the same; every `kvbuffer.lds_stage` says how many younger loads may be in flight, every `kvbuffer.dram_load` which of several slots it fills |
    | `thread` | per-lane ops; no block-level op or type of this dialect |
    | `target` | `llvm` with one vendor's dialect, and structured ops that become inline assembly in the translation |

    Example:

    ```mlir
    #kvbuffer.phase<tile>
    ```
  }];
  let parameters = (ins EnumParameter<KVBuffer_Phase>:$value);
  let assemblyFormat = "`<` $value `>`";
}

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
    | | `split_keys`: blocks share the keys of a sequence, of few query rows | `split_size`, `equal_shares`, `cluster` |
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
    registers a lane and `consumer_registers` for the others; `wideners` more warps,
    with `widener_registers`, make what the producers bring in 8 bits elements that
    products read from LDS; `ping_pong` lets groups of the others take turns at the
    matrix unit; `stage_output` sends O through LDS. `xcds` deals heads to so many dies
    of a chip, which take a head's tiles one after the other, so that blocks which run
    together read the same of a cache. `tiles` says how blocks come by several tiles:
    every n-th (`static`) or from a counter (`dynamic`). `cluster` blocks work on
    neighbouring tiles of queries at the same time and load each tile of K and V once,
    a part each, for all of them (with split keys neighbouring parts of the heads). With
    split keys, tiles have the query rows of all heads that share a head of the cache
    (at most BM in all); `split_size` is the keys of a split, 0 for a share that the
    launch chooses by the batch and the room of the cache; `equal_shares` gives each
    block as many tiles of keys as the others, of one sequence or of several that
    follow each other, and each of its warps a head of the cache where they divide the
    heads. `look_ahead` looks up the page of a tile an iteration before the tile is
    loaded. `k_path` and `v_path` say whether K and V go from DRAM to LDS directly
    (`direct`), through registers (`registers`), or in strips through a single slot
    (`streaming`).

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

def KVBuffer_SizeAttr : KVBuffer_Attr<"Size", "size"> {
  let summary = "An expression over the sizes of a launch";
  let description = [{
    What grids, shapes and conditions of launches are made of: `product`, `sum`,
    `min` and `max` of one or more operands, and `ceildiv` and `floordiv` of two,
    quotients that are rounded up and down. Operands are integers, names of sizes
    and other expressions. Names that are no words stand in quotes. `sms` is the
    device's number of multiprocessors.

    An integer and a name alone are an integer and a string, wherever a size is
    expected.

    Example:

    ```mlir
    #kvbuffer.size<max(1, floordiv(sms, product(batch, 8)))>
    ```
  }];
  let parameters = (ins
    AttrOrTypeParameter<"::kvbuf::SizeOperator", "what is made of the operands">:$operation,
    ArrayRefParameter<"::mlir::Attribute", "integers, names and expressions">:$operands);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// What messages call a size.
    static constexpr ::llvm::StringLiteral kExpected =
        "an integer, the name of a size or #kvbuffer.size<...>";
    /// Whether an attribute is a size: an integer, a name, or one of these.
    static bool isSize(::mlir::Attribute attr);
    /// An operator, by its name, of sizes.
    static SizeAttr of(::mlir::MLIRContext *context, ::llvm::StringRef operation,
                       ::llvm::ArrayRef<::mlir::Attribute> operands);
    /// What evaluates a size.
    static ::kvbuf::SizeExpr getExpr(::mlir::Attribute size);
  }];
}

def KVBuffer_TensorAttr : KVBuffer_Attr<"Tensor", "tensor"> {
  let summary = "A tensor that a launch is given, or gives";
  let description = [{
    An entry of a kernel's `kvbuffer.tensors`: the tensor's name, the type of its
    elements, a size for each dimension, and what the kernel does with it: it may
    `read`, `write` or `read_write` what the caller gives, or the launch provides
    it, a `workspace` or a `counter`. A tensor with `cache` holds a cache's rows.

    Example:

    ```mlir
    #kvbuffer.tensor<"k" : bf16[num_blocks, 16, 8, 128], read, cache>
    ```
  }];
  let parameters = (ins
    AttrOrTypeParameter<"::mlir::StringAttr", "what arguments call it">:$name,
    AttrOrTypeParameter<"::mlir::Type", "of an element">:$elementType,
    ArrayRefParameter<"::mlir::Attribute", "sizes of its dimensions">:$shape,
    EnumParameter<KVBuffer_TensorAccess>:$access,
    AttrOrTypeParameter<"bool", "whether it holds a cache's rows">:$cache);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Whether the launch provides it, and not its caller.
    bool isScratch() const {
      return getAccess() == TensorAccess::Workspace ||
             getAccess() == TensorAccess::Counter;
    }
    /// What manifests call a type of elements, and that of this tensor's.
    static std::string getDTypeOf(::mlir::Type element);
    std::string getDType() const { return getDTypeOf(getElementType()); }
    /// Bytes of an element.
    int64_t getElementBytes() const {
      return getElementType().getIntOrFloatBitWidth() / 8;
    }
    /// The same tensor with something else.
    TensorAttr withName(::mlir::StringAttr name) const;
    TensorAttr withShape(::llvm::ArrayRef<::mlir::Attribute> shape) const;
    TensorAttr withAccess(TensorAccess access) const;
  }];
}

def KVBuffer_ArgumentAttr : KVBuffer_Attr<"Argument", "argument"> {
  let summary = "A parameter of a kernel, as a launch fills it in";
  let description = [{
    An entry of `args` of `#kvbuffer.launch`:

    | text | parameter |
    |---|---|
    | `<pointer "q">` | the tensor's address, 64 bits; `alignment`: bytes that it and the strides are multiples of, in place of the launch's |
    | `<stride "q", dim = 1>` | elements between neighbours along a dimension, 64 bits; `limit`: the largest that the kernel takes |
    | `<size seq_q>` | a size, 32 bits |
    | `<launch_counter>` | the address of 32 bits that are 0 when the launch starts, and its own |
    | `<tensor_map "k", box = [64, 128], dims = [1, 0], swizzle = 128>` | 128 bytes by value, for copy engines; also `columns`, `flat`, `interleave`, `l2_promotion`, `oob_fill` |

    `include/kvbuffer/Runtime/Manifest.h` says more of each.

    Example:

    ```mlir
    #kvbuffer.argument<stride "q", dim = 1>
    ```
  }];
  let parameters = (ins
    EnumParameter<KVBuffer_ArgumentKind>:$kind,
    OptionalParameter<"::mlir::StringAttr", "of which tensor">:$tensor,
    OptionalParameter<"::mlir::Attribute", "which size">:$size,
    AttrOrTypeParameter<"::mlir::DictionaryAttr", "what is said besides">:$details);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static ArgumentAttr pointer(::mlir::StringAttr tensor,
                                std::optional<int64_t> alignment = {});
    /// `limit`: the largest stride that the kernel takes, 0 for any.
    static ArgumentAttr stride(::mlir::StringAttr tensor, int64_t dim,
                               int64_t limit = 0);
    /// Of a size: an integer, a name or an expression.
    static ArgumentAttr sizeOf(::mlir::Attribute size);
    static ArgumentAttr launchCounter(::mlir::MLIRContext *context);
    /// The same with another tensor.
    ArgumentAttr withTensor(::mlir::StringAttr tensor) const;

    /// A number that is said besides.
    std::optional<int64_t> getNumber(::llvm::StringRef name) const;
    /// A list of numbers that is said besides; empty if it is not.
    ::llvm::ArrayRef<int64_t> getNumbers(::llvm::StringRef name) const;
    /// The manifest's entry.
    ::mlir::DictionaryAttr getEntry() const;
  }];
}

def KVBuffer_LaunchAttr : KVBuffer_Attr<"Launch", "launch"> {
  let summary = "How a kernel is launched";
  let description = [{
    A kernel's `kvbuffer.kernel`, from the thread stage on; the manifest's entry
    (`include/kvbuffer/Runtime/Manifest.h`):

    | field | what it is |
    |---|---|
    | `alignment` | bytes that addresses and strides of 16-bit tensors are multiples of |
    | `args` | an argument for each parameter, see `#kvbuffer.argument` |
    | `beside` | names of the kernels that are launched after this one |
    | `block` | threads of a block, in each dimension |
    | `copies` | the tensor that the kernel copies for others, into a workspace, or out of it if they write it |
    | `copies_if` | a size: where it is 1 or more, tensors that this kernel cannot take are copied for it |
    | `defaults` | sizes that callers need not say, and what they are then |
    | `dynamic_shared_bytes` | what a block takes of LDS besides what the code says |
    | `entry` | the kernel's name |
    | `grid` | blocks of a launch, a size for each dimension |
    | `instead` | the kernel for other launches |
    | `launch_if` | a size: launches that make it 1 or more are this kernel's |
    | `requires` | `"tensor_maps"` where it has such arguments |

    Example:

    ```mlir
    #kvbuffer.launch<args = [<pointer "x">, <size rows>], block = [128, 1, 1], dynamic_shared_bytes = 0, grid = [ceildiv(rows, 128), 1, 1]>
    ```
  }];
  let parameters = (ins
    AttrOrTypeParameter<"::mlir::DictionaryAttr", "by their names">:$fields);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The launch of a kernel; null if it has none.
    static LaunchAttr of(::mlir::Operation *kernel);
    /// The same with another value of a field.
    LaunchAttr with(::llvm::StringRef field, ::mlir::Attribute value) const;

    /// Threads of a block; empty if nothing says how many.
    ::llvm::ArrayRef<int64_t> getBlock() const;
    /// Those of all dimensions; 1 if nothing says.
    int64_t getThreads() const;
    /// Blocks of a launch.
    ::llvm::ArrayRef<::mlir::Attribute> getGrid() const;
    /// The arguments, each an `ArgumentAttr`; null if nothing says.
    ::mlir::ArrayAttr getArgs() const;
    /// A number of these names; 0 if nothing says.
    int64_t getDynamicSharedBytes() const;
    std::optional<int64_t> getAlignment() const;
    /// The field of this name; null if nothing says.
    ::mlir::Attribute getField(::llvm::StringRef name) const {
      return getFields().get(name);
    }
    /// Whether an argument is a tensor map.
    bool takesTensorMaps() const;
  }];
}

def KVBuffer_ProblemAttr : KVBuffer_Attr<"Problem", "problem"> {
  let summary = "What a kernel computes";
  let description = [{
    A kernel's `kvbuffer.problem`, for tools that check results; the manifest's
    entry. `op` is the problem's name in `Problems.def`, `tensors` says which
    tensors play its parts where those have other names. The other fields are the
    problem's own; those of `attention` are verified.

    Example:

    ```mlir
    #kvbuffer.problem<op = "attention", heads = 16, kv_heads = 4, tensors = {q = "queries"}>
    ```
  }];
  let parameters = (ins
    AttrOrTypeParameter<"::mlir::DictionaryAttr", "by their names">:$fields);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The problem of a kernel; null if it has none.
    static ProblemAttr of(::mlir::Operation *kernel);
    /// The problem's name.
    ::llvm::StringRef getOp() const;
    /// The field of this name and kind; null if nothing says.
    template <typename AttrT>
    AttrT getField(::llvm::StringRef name) const {
      return getFields().getAs<AttrT>(name);
    }
  }];
}

def KVBuffer_LdsAttr : KVBuffer_Attr<"Lds", "lds"> {
  let summary = "What lies in a part of a kernel's LDS";
  let description = [{
    An entry of `kvbuffer.lds`, from the thread stage on: a buffer of the stages
    before. For messages and pictures alone: no code follows from it.

    | field | what it is |
    |---|---|
    | `name` | what the buffer is called |
    | `offset` | its first byte |
    | `slots`, `slot_bytes` | how many slots it has, and of how many bytes |
    | `element_bytes` | of an element |
    | `rows`, `row_bytes`, `cols` | of a block: a slot is blocks of so many rows, one after the other |
    | `swizzle` | as buffers list it; absent: none |
    | `keys`, `depth`, `key_bits`, `folds`, `banks` | in place of rows and swizzle, of a tile that was transposed on its way; `folds` absent: none |

    Example:

    ```mlir
    #kvbuffer.lds<cols = 64, element_bytes = 2, name = "k", offset = 0, row_bytes = 128, rows = 64, slot_bytes = 16384, slots = 2, swizzle = [3, 0, 3]>
    ```
  }];
  let parameters = (ins
    AttrOrTypeParameter<"::mlir::DictionaryAttr", "by their names">:$fields);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// What the buffer is called.
    ::llvm::StringRef getName() const;
    /// A number, and a list of them, that the attribute has.
    std::optional<int64_t> getNumber(::llvm::StringRef field) const;
    std::optional<::llvm::ArrayRef<int64_t>>
    getNumbers(::llvm::StringRef field) const;
  }];
}

def KVBuffer_StageAttr : KVBuffer_Attr<"Stage", "stage"> {
  let summary = "When an op of a loop runs that is being pipelined";
  let description = [{
    An op's `kvbuffer.stage`, while a pass overlaps the iterations of its loop:
    how many iterations `ahead` of its own it runs, for which iterations, and its
    place among the ops of an iteration of the new loop (`at`). Passes set it, and
    what makes the loop of it (`kvbuf-pipeline-loops`) removes it.

    | iterations | |
    |---|---|
    | `own` | the loop's: what runs ahead of the last ones is predicated |
    | `one_more` | one more than there are, as what stands after the loop goes on with it |
    | `all` | whatever there are: what stands after the loop goes on with all that ran ahead |

    Example:

    ```mlir
    #kvbuffer.stage<1 ahead, one_more>
    #kvbuffer.stage<1 ahead, own, at 3>
    ```
  }];
  let parameters = (ins
    AttrOrTypeParameter<"int64_t", "iterations">:$ahead,
    EnumParameter<KVBuffer_StageSpan>:$span,
    DefaultValuedParameter<"int64_t", "-1", "place in the new loop; -1: not known yet">:$at);
  let assemblyFormat = "`<` $ahead `ahead` `,` $span (`,` `at` $at^)? `>`";
  let genVerifyDecl = 1;
}

def KVBuffer_CoordinateAttr : KVBuffer_Attr<"Coordinate", "coordinate"> {
  let summary = "One coordinate of a kernel's items of work";
  let description = [{
    How many items there are along a coordinate of `kvbuffer.work_item`, and what
    whoever deals items to blocks has to know of them. The extent is an expression
    over the launch's sizes (`kvbuffer.launch_value`):

    | text | meaning |
    |---|---|
    | `<8>` | 8 items |
    | `<"rows" by 128>` | an item for each 128 rows; the last ones have fewer, or none |
    | `<"rows" by 128 over "batch">` | the numbers of `kvbuffer.find_tile`: as many items, and one more for each of the sequences that have the rows |
    | `<.. over "batch" longest "seq">` | the same; the longest sequence has about so many rows. It decides over the order alone |
    | `<.., growing>` | later items take longer, as under a causal mask |
    | `<.., sharing = 4>` | items 4i to 4i + 3 read the same of some tensor |
    | `<.., sharing = all>` | all items along the coordinate do |

    What is not said is not so, and costs speed at most: no order of items, and no
    number of them that a block has, changes the result.

    Example:

    ```mlir
    #kvbuffer.coordinate<"seq_q" by 128, growing, sharing = all>
    ```
  }];
  let parameters = (ins
    AttrOrTypeParameter<"::mlir::Attribute", "rows or items">:$extent,
    AttrOrTypeParameter<"int64_t", "rows of an item; 0: the extent counts items">:$step,
    OptionalParameter<"::mlir::Attribute", "sequences that have the rows">:$sequences,
    OptionalParameter<"::mlir::Attribute", "rows of the longest one">:$longest,
    AttrOrTypeParameter<"bool", "whether later items take longer">:$growing,
    AttrOrTypeParameter<"int64_t", "neighbours that read the same; 0: all">:$sharing);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Whether all items along the coordinate read the same of some tensor.
    bool isShared() const { return getSharing() == 0; }
    /// How many items there are, an expression over the launch's sizes; of rows,
    /// `together` neighbouring items count as one.
    ::mlir::Attribute getCount(int64_t together = 1) const;
    /// The number of items where no launch changes it.
    std::optional<int64_t> getFixedCount() const;
  }];
}

def KVBuffer_KVBufferAttr : KVBuffer_Attr<"KVBuffer", "kv_buffer"> {
  let summary = "The parameters of a buffer (seed page KVBuffer)";
  let description = [{
    There are two forms. The short one says what a buffer is in LDS, and nothing
    of what is read from it: rows x columns x type of a slot, then parameters.

    | parameter | unit | meaning | default |
    |---|---|---|---|
    | `BK` | columns | columns of a block, a power of two; of f32 that are one block without a swizzle any number | the slot's |
    | `stages` | slots | slots of the buffer | 1 |
    | `swizzle` | | [bits, base, shift], perhaps of two terms, perhaps with a unit, see below | none |
    | `policy` | | how it is filled, see below | `double_buffered` |
    | `order` | | `rows`: elements of a row lie side by side. `cols`: those of a column do, in the order in which the matrix unit contracts them; elements are turned in registers, so that the buffer is `register_staged` or `streaming`, or by a team that fills a ring of 8-bit elements | `rows` |
    | `cache_depth` | columns | elements of a row in DRAM | the slot's |
    | `head_dim_offset` | columns | the slot's first column in that row | 0 |
    | `full_kv` | | false: a slot holds one block of BK columns, and loads name it | true |
    | `reg_chunk_depth` | columns | columns of operand b that are in registers at a time, where they are contracted | the slot's |
    | `open` | | what of `BK`, `stages`, `swizzle`, `policy` and `order` the attribute does not name is the chip's to choose (`kvbuf-complete-program`), not the default | |

    Which dimension a product contracts is a property of the read
    (`kvbuffer.fragment_load`, `contracted`), so that one slot may be read both
    ways. Whoever fills and reads the buffer, and by which instruction, is the
    schedule's affair.

    ```mlir
    #kvbuffer.kv_buffer<128x64xbf16, stages = 4, swizzle = [3, 0, 3]>
    #kvbuffer.kv_buffer<128x64xbf16, open>
    ```

    The long form has the parameters of the seed's `KVBuffer`, under their names.
    Who reads a buffer it says as a whole (`mma_shape`, `num_threads`), or leaves
    to the schedule, as the lowering of attention does. The buffer
    takes `depth` columns from `head_dim_offset` on of rows of `cache_depth`. It
    has `stages` slots of LDS; a slot holds BN x `smem_cols` elements as blocks of
    BN x BK, block after block. The members that the seed derives are methods
    (`KVBufferAttr::getNumMmas` and so on).

    The first three parameters have no names. The operand that the buffer feeds:

    | operand | what its rows are to a product |
    |---|---|
    | `q` | rows of the product; its columns are contracted (operand a) |
    | `k` | columns of the product; its columns are contracted: `kvbuffer.mma` with `transpose_b` (the seed's `transpose = true`) |
    | `v` | contracted; its columns are the product's: `kvbuffer.mma` without `transpose_b` |
    | `o` | rows of the result on their way out; no operand of a product |

    the type of the elements, numbers of whole bytes; and how the buffer is
    filled:

    | policy | |
    |---|---|
    | `double_buffered` | from DRAM straight into LDS, slots in turn |
    | `streaming` | one strip of a tile at a time, through a single slot; the program meets (`kvbuffer.meet`) before it loads the next |
    | `register_staged` | from DRAM into registers, which `kvbuffer.lds_stage` stores into LDS before its barrier |

    The reads of what a slot held before have ended at a barrier when
    `kvbuffer.lds_stage` stores into it: that of another slot's wait, or a
    `kvbuffer.meet`.

    The other parameters are written `name = value`, in any order. Those with a
    default may be left out:

    | parameter | unit | meaning | default |
    |---|---|---|---|
    | `mma_shape` | elements | M, N, K of the matrix instruction that reads the buffer | the schedule's |
    | `swizzle` | | [bits, base, shift], perhaps of two terms, perhaps with a unit, see below | none |
    | `BN` | rows | rows of a slot: keys of a tile, or queries for `q` and `o` | |
    | `WN` | rows | rows that one warp reads; divides BN | BN |
    | `BK` | columns | columns of a block, a power of two | |
    | `num_threads` | threads | threads that fill and read the buffer together | the schedule's |
    | `depth` | columns | columns of the operand: the head size | |
    | `kv_num_heads` | heads | heads of the cache (of Q for `q` and `o`) | 1 |
    | `full_kv` | | true: a slot holds all columns; false: one block of BK | true |
    | `cache_depth` | columns | elements of a row in DRAM | `depth` |
    | `head_dim_offset` | columns | the operand's first element in that row | 0 |
    | `reg_chunk_depth` | columns | columns of K's fragments that are in registers at a time | `depth` |
    | `smem_depth` | columns | columns of a slot, zeros past `depth`: a multiple of BK | `depth`, rounded up |
    | `stages` | slots | slots of the buffer | 1 |
    | `warp_size` | lanes | lanes of a wave | 32; without `mma_shape` the chip's |

    A swizzle [bits, base, shift] says where the 16-byte vectors of a block lie,
    so that the lanes of a wave that read a column meet different banks; [bits,
    base, shift, 8] the same of its 8-byte vectors, where lanes read no more at
    once and no copy into LDS is wider. Vector x
    of a block (row by row) lies at place
    x XOR (((x >> (base + shift)) & (2^bits - 1)) << base): the `bits` bits from
    `base` on are changed by those that stand `shift` above them. With rows of
    128 bytes, 8 vectors, [3, 0, 3] turns the vectors of row r by r mod 8. The
    changed bits must be those of a vector in the block (in a row where BN is no
    power of two), the bits looked at must begin in the block, and `shift` is not
    0.

    A second term, three numbers more before the unit, is XORed to the first.
    With rows of 64 bytes, 4 vectors, [2, 0, 4] turns the vectors of row r by
    r / 4 mod 4: 0, 1, 2 and 3. [2, 0, 4, 1, 1, 3] turns them by 0, 3, 2 and 1:
    bit 1 of a vector's number is changed by the sum of two bits of its row.

    Example:

    ```mlir
    #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 128, stages = 2>
    ```
  }];
  let parameters = (ins
    EnumParameter<KVBuffer_Operand>:$operand,
    AttrOrTypeParameter<"::mlir::Type", "type of the elements">:$elementType,
    EnumParameter<KVBuffer_Policy>:$policy,
    ArrayRefParameter<"int64_t", "M, N, K of the matrix instruction">:$mma_shape,
    ArrayRefParameter<"int64_t", "bits, base, shift, perhaps a second term, perhaps a unit; empty for none">:$swizzle,
    AttrOrTypeParameter<"int64_t", "rows of a slot">:$BN,
    AttrOrTypeParameter<"int64_t", "rows that a warp reads">:$WN,
    AttrOrTypeParameter<"int64_t", "columns of a block">:$BK,
    AttrOrTypeParameter<"int64_t", "threads that fill and read">:$num_threads,
    AttrOrTypeParameter<"int64_t", "columns of the operand">:$depth,
    AttrOrTypeParameter<"int64_t", "heads of the tensor">:$kv_num_heads,
    AttrOrTypeParameter<"bool", "whether a slot holds all columns">:$full_kv,
    AttrOrTypeParameter<"int64_t", "elements of a row in DRAM">:$cache_depth,
    AttrOrTypeParameter<"int64_t", "first element in that row">:$head_dim_offset,
    AttrOrTypeParameter<"int64_t", "columns in registers at a time">:$reg_chunk_depth,
    AttrOrTypeParameter<"int64_t", "columns of a slot">:$smem_depth,
    AttrOrTypeParameter<"int64_t", "slots">:$stages,
    AttrOrTypeParameter<"int64_t", "lanes of a wave">:$warp_size,
    EnumParameter<KVBuffer_Dimension>:$order,
    AttrOrTypeParameter<"int64_t", "what the chip chooses: bits of Open">:$open);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// What a buffer may leave to `kvbuf-complete-program`; until then it has the
    /// default.
    enum Open : int64_t {
      kOpenBK = 1, kOpenStages = 2, kOpenSwizzle = 4, kOpenPolicy = 8,
      kOpenOrder = 16
    };
    /// Whether the buffer says nothing of what is read from it (the short form).
    bool isNeutral() const { return getOperand() == Operand::Any; }
    /// The buffer in names and messages: "k"; empty if it is neutral.
    ::llvm::StringRef getLabel() const {
      return isNeutral() ? "" : stringifyOperand(getOperand());
    }

    // Members that the seed page derives; sizes in elements unless said
    // otherwise. Formulas: seed page KVBuffer.

    // What the long form's operands stand for; of a neutral buffer nothing.

    /// Whether products contract the buffer's rows.
    bool contractsRows() const { return getOperand() == Operand::V; }
    /// Whether the buffer's rows are those of a product, or of its result.
    bool hasRowsOfProduct() const {
      return getOperand() == Operand::Q || isResult();
    }
    /// Whether a result leaves through the buffer, which no product reads.
    bool isResult() const { return getOperand() == Operand::O; }
    /// The seed's `transpose`.
    bool isTranspose() const { return !contractsRows(); }
    int64_t getMmaM() const { return getMmaShape()[0]; }
    int64_t getMmaN() const { return getMmaShape()[1]; }
    int64_t getMmaK() const { return getMmaShape()[2]; }
    /// MMA tiles along the non-contracted axis: ceil((transpose ? WN : depth) / MMA_N).
    int64_t getNumMmas() const;
    /// MMA steps along the contraction in one BK strip: ceil(BK / MMA_K).
    int64_t getNumKMmas2() const;
    /// BK strips along the contraction: ceil((transpose ? depth : WN) / BK).
    int64_t getNumKTiles() const;
    /// Strips that are in registers at once: ceil(reg_chunk_depth / BK) for K.
    int64_t getRegKTiles() const;
    /// LDS blocks of a slot's full depth: smem_depth / BK.
    int64_t getNumRepeats() const;
    /// Columns of a slot: smem_depth if full_kv, else BK.
    int64_t getSmemCols() const;
    /// Columns of the operand in a slot, the rest is zero: all of `depth`, or
    /// what block `block` has of them if not full_kv.
    int64_t getColumnsOf(int64_t block) const;
    /// Elements of a slot: BN * smem_cols.
    int64_t getSmemStageSize() const;
    /// Bytes of a slot, and of all slots.
    int64_t getStageBytes() const;
    int64_t getBytes() const;
    /// Elements of a fragment in one lane: MMA_K * MMA_N / warp_size.
    int64_t getInputFragSize() const;
    /// How vectors of the slot's blocks change places.
    ::kvbuf::Swizzle getSwizzleOfBlocks() const;
    /// Elements of a 16-byte vector.
    int64_t getSimdWidth() const;
    /// Rows of a wave's DMA unit: 32.
    int64_t getWarpTileRows() const { return 32; }
    /// DMA units of one load, and of one wave's share (rounded up).
    int64_t getDmaUnits() const;
    /// Memory instructions that one wave issues for one load: the seed's
    /// 2 * ceil(units / waves), for units of two instructions.
    int64_t getVmInstrsPerLoad() const;
    /// wtile_dim0 and wtile_dim1: a warp's tile, WN x BK.
    int64_t getWtileDim0() const { return getWN(); }
    int64_t getWtileDim1() const { return getBK(); }
    /// Registers (elements a lane) of the operand's register tile:
    /// num_mmas * num_k_mmas2 * reg_k_tiles * input_frag_size.
    int64_t getRegTileSize() const;
  }];
}

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERATTRS_TD
