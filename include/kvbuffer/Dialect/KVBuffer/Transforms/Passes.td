//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_PASSES_TD
#define KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def ChooseTarget : Pass<"kvbuf-choose-target", "::mlir::ModuleOp"> {
  let summary = "Choose the chip that a module is lowered for";
  let description = [{
    Sets the module's `kvbuffer.target`, by the rule of every tool, pipeline and
    API: `chip`, where it is given, wins, and a remark says so if the module
    names another one; else the chip counts that the module names; else the
    default, sm_80 (gfx950 for the vendor amd). With `vendor` (nvidia or amd) a
    chip of the other vendor is an error that names the pipeline to use. A module
    with kernels that are lowered already stays with its chip.
  }];
  let options = [
    Option<"chip", "chip", "std::string", /*default=*/"",
           "Chip to lower for; by default the one that the module names">,
    Option<"vendor", "vendor", "std::string", /*default=*/"",
           "Vendor that the chip must be of: nvidia or amd">];
  let dependentDialects = ["::kvbuf::KVBufferDialect"];
}

def ChooseSchedule : Pass<"kvbuf-choose-schedule", "::mlir::ModuleOp"> {
  let summary = "Choose a schedule for each problem";
  let description = [{
    Asks each problem (`ProblemInterface`) that is no program by lanes for its
    schedule on the chip (see `kvbuf-choose-target`), replaces parameters named in `schedule`, and checks
    that the result fits the chip: a matrix instruction of that shape, tiles that
    it divides, shared memory and registers. A schedule that the op already has
    is kept and checked. A remark says what was chosen.
  }];
  let options = [
    Option<"chip", "chip", "std::string", /*default=*/"",
           "Chip to choose for; by default the one that the module names, else "
           "sm_80">,
    Option<"schedule", "schedule", "std::string", /*default=*/"",
           "Parameters to replace, e.g. 'BM=64,warps=2'">,
    Option<"otherByLaunch", "other-by-launch", "bool", /*default=*/"false",
           "Where types leave the number of query rows open, choose for many: "
           "the caller has another kernel for launches that this does not suit, "
           "and for sequences of few rows (`kvbuffer.shared_rows`)">];
  let dependentDialects = ["::kvbuf::KVBufferDialect"];
}

def CompleteProgram
    : Pass<"kvbuf-complete-program", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Choose what a program leaves to the chip";
  let description = [{
    A hand-written program of the tile stage need not name what differs by chip:
    its schedule may leave out `mma_shape` (and then `BK`, `warps` and `stages`), its
    buffers may be `open`. For the module's chip the pass chooses

    - the matrix instruction, the first of the chip's that divides the rows of a
      warp and the columns of all products, and the order of its operands, by which
      results of one product can be operands of the next;
    - warps: as many as the program's teams have, else four, fewer where a warp
      would have less than an instruction's rows, more where it would have more
      accumulators than registers;
    - for each open buffer the columns of a block, the swizzle for the way in which
      products read it, the policy and the order (rows that the chip cannot read
      transposed, or copy directly, go through registers), and slots: what the
      schedule's `stages` allow, two by default, as many as fit into LDS. Where that
      is one, all warps meet at the end of each iteration that loads into it.

    What is named is kept, and checked where it always is. A warning says where a
    buffer gets fewer slots than the program allows; an error, what no choice
    fits. The result is the program's text: all that was chosen is printed.
  }];
  let dependentDialects = ["::kvbuf::KVBufferDialect"];
}

def LowerProblems : Pass<"kvbuf-lower-problems", "::mlir::ModuleOp"> {
  let summary = "Turn problems into tile programs";
  let description = [{
    Problem to tile: each `func.func` that consists of one problem
    (`ProblemInterface`) with a schedule becomes a kernel in a `gpu.module`; one
    anywhere else is an error. (Problems whose kernels are written by lanes stay:
    `kvbuf-lower-append`.) Loads stand right before their use;
    `kvbuf-run-ahead` moves them ahead.

    Of `kvbuffer.attention` one block computes `BM` query rows of one head of one
    sequence, walking the keys from right to left, so that the tiles that need a
    mask on the right come first.
  }];
  let dependentDialects = [
    "::kvbuf::KVBufferDialect", "::mlir::arith::ArithDialect",
    "::mlir::gpu::GPUDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"];
}

def RunAhead : Pass<"kvbuf-run-ahead", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Let ops of loops run iterations ahead, in one of several orders";
  let description = [{
    Says at the ops of loops over tiles when they run and where they will stand
    (`#kvbuffer.stage`), and at the loops how they are made (`#kvbuffer.pipeline`),
    and makes the loops of it, as `kvbuf-pipeline-loops` does. `annotate-only`
    leaves that to it. Each order is for some loops, and the orders follow each other:

    | order | asked for by | what runs when |
    |---|---|---|
    | `scores` | `overlap` | the scores of tile i + 1 in iteration i, next to the softmax and the second product of tile i, on which they do not depend; of a softmax in two parts also its head. So one warp has work for the matrix unit and for the other units at the same time |
    | `turns` | `ping_pong` without `producers` | an iteration of such a loop has four parts with a meeting after each: the first product's fragments out of LDS; the next tile's scores beside the tail of this tile's softmax; the second product's fragments; that product beside the head of the next softmax. One half of the warps is one part later than the other (`kvbuffer.stagger`), so that at any time one multiplies while the other moves |
    | `softmax` | `overlap_products` | iteration i computes the scores of tile i, the products with the softmax's weights of tile i - 1, the softmax of tile i, and rescales the accumulators. The products depend on nothing of the iteration, so that an asynchronous matrix unit runs those of the weights beside the softmax. (`scores` carries scores, this order carries weights, of half the size) |
    | `blocks` | buffers that hold one block of BN x BK a slot, and several | the blocks of both operands come through LDS one after the other. After the wait for each, whose barrier tells that an older slot is no longer read, the load of the block `stages` - 1 further on; after the wait for the last blocks of an iteration, those of the next one's first |
    | `loads` | other buffers of several slots | loads `stages` - 1 iterations ahead, after one `kvbuffer.lds_stage` of all the tokens that an iteration needs; its barrier also tells that the slots to be loaded next are no longer read |

    `scores` and `softmax` take any number of softmaxes, each with any number of
    accumulators. What runs ahead of a product there stands before the loop for the first
    tile, and the rest behind it for the last one, all only if there is a tile. No
    load of `blocks` and `loads` is issued past the last tile. Where `scores` has
    rotated a loop, the second product's last tile, whose load stands after it, is
    loaded in the loop by `turns` and `loads`, whose first loads are issued before
    the wait for what stands before the loop.

    In `turns`, loads run ahead as far as the slots allow: those of the second
    product by one tile and those of the first, whose slot is free as soon as its
    fragments are in registers, by two. A wait stands two barriers before the reads
    that it is for, because the other half of the warps issues its part of the load,
    and waits for it, one barrier later. So a loop that moves more than its two
    products read stays as it is, and one that names slots which do not follow from
    its iterations, or after which the tile is not read that it loads last.

    `loads` fill the slots of a buffer in turn, or name a slot that is a number a
    fixed distance from the iteration's, modulo the number of slots: `(i + 1) mod n`
    in a rotated loop.

    A loop of which what an order needs cannot be shown stays as it is, with a
    warning; one whose buffers have one slot each, with a remark.
  }];
  let options = [
    ListOption<"orders", "orders", "std::string",
      "orders by name: scores, turns, softmax, blocks, loads; all by default">,
    Option<"annotateOnly", "annotate-only", "bool", "false",
      "say when ops run, and leave the loop to kvbuf-pipeline-loops">];
  let dependentDialects = [
    "::kvbuf::KVBufferDialect", "::mlir::arith::ArithDialect",
    "::mlir::scf::SCFDialect"];
}

def PipelineLoops : Pass<"kvbuf-pipeline-loops", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Make loops of what their ops say of when they run";
  let description = [{
    For loops with `kvbuffer.pipeline`, each op of whose body has its stage and its
    place (`#kvbuffer.stage<1 ahead, own, at 3>`): lets their iterations overlap as
    the attributes say. That is all that is known of them here: `kvbuf-run-ahead` says
    it so, and then makes the loop in the same way, unless `annotate-only` asks it for
    no more than that.

    Loads whose tile stands behind the loop, too, take the place of those there. Where
    slots are filled again behind a loop, all warps meet before.
  }];
  let dependentDialects = [
    "::kvbuf::KVBufferDialect", "::mlir::arith::ArithDialect",
    "::mlir::scf::SCFDialect"];
}

def AssignWork : Pass<"kvbuf-assign-work", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Give blocks their items of work";
  let description = [{
    Replaces a kernel's `kvbuffer.work_item` and `kvbuffer.item_rows` by what a
    block does to come by its items, and sets `kvbuffer.grid`. What it knows of
    the items say the op's coordinates.

    **Blocks.** A block has one item, with an id for each of the first two
    coordinates and one for all others; or, in a kernel with `producers`, by the
    schedule's `tiles` every n-th item of n blocks (`static`), or items by a
    counter (`dynamic`, `kvbuffer.next_tile`).

    **Order.** Along a coordinate of growing items the last ones come first. In
    kernels with `producers`, places along the other coordinates come in groups,
    whose items read no more (`reads`) than stays in the cache, the longest items
    of a group first; the last group is larger, so that short items fill the gaps
    at the end. Where items share what they read along two coordinates, they come
    in strips of eight along the first. Else the first coordinate is the fastest.

    **Dies.** With `xcds = n`, and a block for each item, consecutive blocks go to
    n dies in turn, which have a cache each. *Places* are those along all
    coordinates but the growing one, or else the first, along which all items read
    the same (or but the first two, of which each item is in a strip). A die takes
    whole places, one after the other; places that are left when all dies have as
    many are dealt item by item. Where items grow, those of a die's last places,
    twice as many as it works on at once, come together, the longest first. Of a
    kernel that splits keys each die takes a run of items that follow each other,
    the first coordinate the fastest, as many as the others or one more.

    **Clusters.** With `cluster = n` the blocks of a cluster take n neighbouring
    items along a coordinate of which as many read the same whatever else
    (`sharing`, a multiple of n), or else of one counted in rows along which all
    do. There the range of keys of `kvbuffer.item_rows`' `first` becomes that of
    all the cluster's rows, so that its blocks walk over the same tiles; where
    items grow, they take the number's items in turn, so that none of them has the
    longest each time.

    **What a launch takes.** A launch has at most 65535 blocks along y and z. Where
    the number of blocks along z is the launch's, as that of sequences, z gets
    at most `blocks`, and y, or else x, where it is fixed, gets as many times its
    own as it takes to cover the rest. The program's ids are computed from both;
    blocks past the end, of which there are some where `blocks` does not divide
    the number, do nothing. That holds for kernels with `kvbuffer.grid` and ids of
    their own, too; those with teams stay as they are, with a remark.
    Example: of [{`ceildiv` = ["seq_q", 64]}, 4, "batch"] y becomes {`product` =
    [4, {`ceildiv` = ["batch", 32768]} ]} and z {`min` = ["batch", 32768]}.

    What the schedule asks for and the items do not allow, a warning says.
  }];
  let options = [
    Option<"severalItems", "several-items", "bool", /*default=*/"true",
           "order items, and let blocks and clusters take several, where the schedule says so; without, a block takes one">,
    Option<"blocks", "blocks", "int64_t", /*default=*/"32768",
           "most blocks along z">];
  let dependentDialects = [
    "::kvbuf::KVBufferDialect", "::mlir::arith::ArithDialect",
    "::mlir::gpu::GPUDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"];
}

def AssignTeams : Pass<"kvbuf-assign-teams", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Split a kernel between warps that move and warps that multiply";
  let description = [{
    Where the schedule has `producers`, the kernel's body becomes two teams of a
    `kvbuffer.teams`: `@consumers`, the schedule's warps, and `@producers`, which
    take the warps after them. Producers keep the control flow and the loads, which
    become `kvbuffer.ring_load`s in the same order; consumers keep everything
    else, with a `kvbuffer.ring_wait` where a load was staged and a
    `kvbuffer.ring_release` after the last read. Each buffer gets a ring. Both
    number the fillings by the same rule: in closed form within loops that fill
    the same number of slots in every iteration, by values that the loop carries
    otherwise. Scalar arithmetic that both need is done by both; look-ups of
    pages stay with the producers. What only a team that moves may do
    (`kvbuffer.next_tile`) reaches the consumers through a mailbox. A ring is filled
    in turn, also where loads name slots. What has another effect than to read, and
    no fragment, both would do: that is an error.

    With `wideners`, a third team, `@wideners`, is between them for buffers whose
    elements are narrower than the fragments that are loaded of them: it waits for
    each filling of the producers, loads it widened and puts it into the next slot
    of a ring of wider elements, which the consumers read.
  }];
  let dependentDialects = [
    "::kvbuf::KVBufferDialect", "::mlir::arith::ArithDialect",
    "::mlir::scf::SCFDialect"];
}

def ShareLoads : Pass<"kvbuf-share-loads", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Let the blocks of a cluster fill rings for each other";
  let description = [{
    In a kernel with `cluster > 1`, a ring becomes `shared` if all its
    fillings are the same in every block of a cluster: neither their tiles nor
    their numbers nor whether they happen depend on which block it is. A ring
    for which that does not hold keeps loads of its own, with a remark.
  }];
  let dependentDialects = ["::kvbuf::KVBufferDialect"];
}

def AsyncProducts : Pass<"kvbuf-async-products", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Start products on staged operands, wait as late as possible";
  let description = [{
    In a team that reads rings and is whole groups of warps, as the chip's matrix
    unit takes them, a `kvbuffer.mma` becomes a `kvbuffer.mma_start` that reads operand b and, without `q_in_regs`, operand a
    from LDS, and a `kvbuffer.mma_wait` before the first use of its result, in the
    same iteration. An operand a of some of a slot's columns that is loaded ahead of the loop or
    branch of its product stays in registers. A product whose operand b does not lie in a ring's slot as it
    is multiplied (it is widened, or of registers) stays with each warp. The release of a slot moves after the wait of the product
    that reads it. With `ping_pong`, groups of warps take turns in loops that
    start two products: from the first one's start to the second one's.
  }];
  let dependentDialects = ["::kvbuf::KVBufferDialect"];
}

def LazyRescale : Pass<"kvbuf-lazy-rescale", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Rescale accumulators only where a maximum has grown by much";
  let description = [{
    Where the schedule asks for `lazy_rescale`: `kvbuffer.online_softmax` and the
    `kvbuffer.rescale` of its factor become `kvbuffer.raise_max`, which changes nothing
    in most tiles, `kvbuffer.softmax_head` and `kvbuffer.softmax_tail`, and
    `kvbuffer.apply_raise`. What rounding adds to weights above 1 corrects their
    sum; where a log-sum-exp reads that sum, `kvbuffer.carry_excess` carries the
    correction beside it to the division.

    In tiles that a mask may cut and in the one after them, the first two at
    least, maxima follow the scores exactly: that of a few keys at a row's end
    says little of the keys to come.

    A soft cap c leaves scores in [-c, c]. Where weights are added up as they are
    rounded, and their type has exponents for the smallest and the largest one
    beside a number for all rows, they are relative to that: `kvbuffer.raise_max`
    has it for the maximum, which nothing raises.
  }];
  let dependentDialects = [
    "::kvbuf::KVBufferDialect", "::mlir::arith::ArithDialect",
    "::mlir::scf::SCFDialect"];
}

def SplitMaskedLoops
    : Pass<"kvbuf-split-masked-loops", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Split loops where a branch on the iteration changes sides";
  let description = [{
    A loop whose body has an `scf.if` on `iv < A`, `iv >= B` or either, A and B
    invariant, becomes up to three loops in a row, in each of which the condition
    is constant. The bulk of the tiles so gets a loop without masks.
  }];
  let dependentDialects = [
    "::kvbuf::KVBufferDialect", "::mlir::arith::ArithDialect",
    "::mlir::scf::SCFDialect"];
}

def IntegerMaxima
    : Pass<"kvbuf-integer-maxima", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Compare maxima as integers once no row's is negative";
  let description = [{
    For chips of which an instruction takes the largest of three integers, but of
    two floating-point numbers. Signed integers have the order of the numbers whose
    bits they are, as long as one of these is not negative, and a maximum that a
    loop carries never falls. So a loop of a team that reads rings whose softmax
    finds its maxima itself becomes two: one for the first iteration and those after
    it, until one leaves no row's maximum negative (`kvbuffer.any_negative`), and one
    for the iterations that are left, whose softmax has `not_negative`.

    Only the bulk of the tiles gains by that: loops whose softmax is `masked`, or
    whose scores are capped, stay as they are.
  }];
  let dependentDialects = [
    "::kvbuf::KVBufferDialect", "::mlir::arith::ArithDialect",
    "::mlir::scf::SCFDialect"];
}

def AssignSlots : Pass<"kvbuf-assign-slots", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Give every load the slot that it fills";
  let description = [{
    Every `kvbuffer.dram_load` without a slot, into a buffer of several, gets that of
    its filling: fillings are numbered in the order in which loads run. In a loop
    whose iterations have the same number of them the number follows from the
    iteration; where it depends on which branch was taken, or how often an inner
    loop ran, loops and branches carry it. It is needed modulo the slots only: a
    loop each of whose iterations fills every slot equally often begins each at
    the same slot. After a `kvbuffer.meet` past which nothing of the buffer is
    awaited or read, all slots are free, and a number that would have to be carried
    there begins at 0 again. A loop that carries the tile of a load carries its slot,
    too.

    A slot that is filled while an earlier load into it has not been awaited, within
    one block, is an error (but of buffers that are `register_staged`, whose loads
    fill their slot when they are awaited); so is a load into a buffer of one slot that
    no meeting parts from a read before, in a kernel of several warps; so are loads of which some name their slot and some do
    not, and a load without one in a loop or branch that is not `scf.for`, `scf.while` or
    `scf.if`, or into a buffer that a loop or branch hands on.

    Runs after the passes that move loads, and before `kvbuf-count-waits`.
  }];
  let dependentDialects = [
    "::kvbuf::KVBufferDialect", "::mlir::arith::ArithDialect",
    "::mlir::scf::SCFDialect"];
}

def CountWaits : Pass<"kvbuf-count-waits", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Count the loads that may stay in flight at each wait";
  let description = [{
    Sets `younger` of each `kvbuffer.lds_stage`: the least number, over all paths,
    of `kvbuffer.dram_load`s issued after the youngest load that it awaits. The
    kernel is in phase `scheduled` then; the passes after it leave its loads and
    waits as they are.
  }];
  let dependentDialects = ["::kvbuf::KVBufferDialect"];
}

def AllocateLds : Pass<"kvbuf-allocate-lds", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Give every buffer its place in LDS";
  let description = [{
    Sets `offset` of each `kvbuffer.alloc` that has none: the lowest place that
    is free, in the order of the program. A buffer is in use from the first op of
    the kernel's block that touches it, or holds what does, to the last. With
    `overlay` buffers that are not in use at the same time may share bytes, where
    all threads meet in between. Offsets that the program gives are kept; those
    that make buffers share bytes while both are in use are an error. A remark
    says how many bytes the buffers take, and how many they share.
  }];
  let options = [
    Option<"overlay", "overlay", "bool", /*default=*/"false",
           "Let buffers share bytes that are not in use at the same time">];
  let dependentDialects = ["::kvbuf::KVBufferDialect"];
}

def ReportBuffers : Pass<"kvbuf-report-buffers"> {
  let summary = "Report the derived members of each buffer";
  let description = [{
    Emits an analysis remark for each `kvbuffer.alloc` with every member that the
    seed page derives from the buffer's parameters (`num_mmas`, `num_k_tiles`,
    `smem_stage_size`, ...). Changes nothing.
  }];
}

def RotateLoops : Pass<"kvbuf-rotate-loops", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Test loops at their end";
  let description = [{
    Every `scf.for` becomes an `scf.while` that tests after its body, inside of
    an `scf.if` on whether it is entered. Where the test stands at the head,
    loop-carried values are live on both exits, and LLVM's AMDGPU backend copies
    every accumulator once an iteration.
  }];
  let dependentDialects = [
    "::kvbuf::KVBufferDialect", "::mlir::arith::ArithDialect",
    "::mlir::scf::SCFDialect"];
}

def HoistReads : Pass<"kvbuf-hoist-reads", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Read in front of rotated loops what each iteration reads";
  let description = [{
    A `memref.load` of an argument that the kernel only reads moves in front of a loop
    that tests at its end (`kvbuf-rotate-loops`), with what it needs, where all iterations
    read the same. The loop's body runs at least once. LLVM's AMDGPU backend leaves such
    a load where it is, behind barriers, and each iteration awaits all loads for it: the
    number of a row's document, say.
  }];
  let dependentDialects = [
    "::kvbuf::KVBufferDialect", "::mlir::arith::ArithDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def DeferReads : Pass<"kvbuf-defer-reads", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Read fragments behind the first loads of tiles";
  let description = [{
    A `kvbuffer.tile_fragment` in front of loads of a loop's first tiles, with what is
    computed of it, moves behind them, in front of the loop, where no load and nothing
    with a region needs it. Loads of both kinds are under way together then. Before, the
    first tile's addresses waited for the fragment: an instruction that waits for a load
    into a register waits for others, too, which share its counter. Not on chips whose
    waits count loads in their order, where the fragment would wait for all tiles.
  }];
  let dependentDialects = ["::kvbuf::KVBufferDialect"];
}

def TileFragments : Pass<"kvbuf-tile-fragments", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Cut products into steps of the matrix instruction's K";
  let description = [{
    A `kvbuffer.mma` whose operands come from LDS becomes a chain of products,
    each after the loads of just its part (seed `load_from_shared<bk_tile>`), so
    that only one step's fragments are in registers at a time.
  }];
  let dependentDialects = ["::kvbuf::KVBufferDialect"];
}

def ExpandArguments
    : Pass<"kvbuf-expand-arguments", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Turn tensors and caches into kernel parameters";
  let description = [{
    For kernels of the thread stage that are written by lanes: those without
    `kvbuffer.kernel`. A tensor's or a cache's argument becomes its pointer, run-time
    strides and sizes; within the kernel it is a memref, or a `kvbuffer.make_cache`,
    again. Sets `kvbuffer.kernel` and `kvbuffer.tensors`, from the names, shapes and
    accesses that arguments have (`kvbuffer.name`, `kvbuffer.shape`,
    `kvbuffer.access`), from `known_block_size` and from `kvbuffer.grid`. A
    tensor's address and strides are to be multiples of the largest alignment that
    an access to it states.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::memref::MemRefDialect"];
}

def ExpandCacheOps : Pass<"kvbuf-expand-cache-ops"> {
  let summary = "Rewrite ops on caches into memref, vector and arith";
  let description = [{
    Every op on a cache that `kvbuffer.make_cache` made, in any function, by what
    the cache's type says of its layout (`CacheLayout`). What remains is upstream's:
    its conversions lower it, on any target.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def LowerAppend : Pass<"kvbuf-lower-append", "::mlir::ModuleOp"> {
  let summary = "Turn cache_append problems into kernels by lanes";
  let description = [{
    Each function of one `kvbuffer.cache_append` becomes a kernel of the thread
    stage: there are no tiles in it, and until then it stays a problem. Its arguments are called `k_new`, `v_new`,
    `offsets`, `at`, `cos`, `sin`, `k` and `v`. One launch takes all tokens of a
    batch, ragged or not.

    Lanes load and store several elements at once, which asks for tensors whose
    addresses and strides are multiples of up to `alignment` bytes. With less than
    16, nothing is asked of them but what an element asks.
  }];
  let options = [
    Option<"alignment", "alignment", "int64_t", "16",
           "Bytes that addresses and strides of tensors are multiples of">];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"];
}

def DistributeFragments
    : Pass<"kvbuf-distribute-fragments", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Say how each fragment lies over warps and lanes";
  let description = [{
    Fragments whose types name no layout get one: accumulators that of the
    schedule's matrix instruction, operands what their products need, row values
    the rows of what they belong to. Layouts that types name stay, and what hangs
    together with them follows.

    A product contracts both of its operands in one order: the natural one for
    what comes from memory, that of the accumulators for what is made of them.
    Where accumulators are no operand in any order, a `kvbuffer.exchange` follows
    the op that makes one of them.

    Warps that share columns (`warp_cols` of the schedule, or `warps = [rows,
    columns]` of a layout) have parts of each row. A `kvbuffer.row_reduce` before a
    softmax finds its maximum, a `kvbuffer.warp_reduce` before what ends the softmax
    its sum, and P, of which each warp multiplies all columns, goes through a
    `kvbuffer.exchange`.
  }];
  let dependentDialects = ["::kvbuf::KVBufferDialect"];
}

#endif // KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_PASSES_TD
