// Schedules that do not fit the chip, and options that are none.

// DEFINE: %{options} =
// DEFINE: %{prefix} =
// DEFINE: %{run} = not kvbuf-opt %s --kvbuf-choose-schedule="%{options}" 2>&1 | FileCheck %s --check-prefix=%{prefix}

// REDEFINE: %{options} = chip=sm_12
// REDEFINE: %{prefix} = CHIP
// RUN: %{run}
// CHIP: error: unknown target 'sm_12'; expected one of {{.*}}sm_80, {{.*}}sm_90

// REDEFINE: %{options} = schedule=BX=3
// REDEFINE: %{prefix} = NAME
// RUN: %{run}
// NAME: error: schedule parameter 'BX=3': expected BM, BN, BK, stages, warps, mma_shape, scores, values, swap_a_b, q_in_regs, overlap, split_masks, sums_in_lds, producers, producer_registers, consumer_registers, wideners, widener_registers, overlap_products, ping_pong, tiles, stage_output, lazy_rescale, k_path, v_path, reg_chunk_depth, full_kv, xcds, cluster, split_keys, split_size, equal_shares, look_ahead, warp_cols, sum_keys or accumulate

// REDEFINE: %{options} = schedule=BM=wide
// REDEFINE: %{prefix} = NUMBER
// RUN: %{run}
// NUMBER: error: schedule parameter 'BM=wide': expected a number

// REDEFINE: %{options} = schedule=q_in_regs=1
// REDEFINE: %{prefix} = FLAG
// RUN: %{run}
// FLAG: error: schedule parameter 'q_in_regs=1': expected true or false

// REDEFINE: %{options} = schedule=mma_shape=0x0x0
// REDEFINE: %{prefix} = ZEROS
// RUN: %{run}
// ZEROS: error: 'kvbuffer.attention' op mma_shape must be three positive sizes M, N, K

// REDEFINE: %{options} = schedule=mma_shape=16x8
// REDEFINE: %{prefix} = SHAPE
// RUN: %{run}
// SHAPE: error: schedule parameter 'mma_shape=16x8': expected mma_shape=MxNxK

// REDEFINE: %{options} = schedule=BM=48
// REDEFINE: %{prefix} = POWER
// RUN: %{run}
// POWER: error: 'kvbuffer.attention' op BM must be a power of two, got 48

// REDEFINE: %{options} = schedule=mma_shape=32x32x16
// REDEFINE: %{prefix} = MMA
// RUN: %{run}
// MMA: error: 'kvbuffer.attention' op sm_80 has no matrix instruction of shape 32x32x16; it has 16x8x16

// Four warps of 8 rows.
// REDEFINE: %{options} = schedule=BM=32
// REDEFINE: %{prefix} = ROWS
// RUN: %{run}
// ROWS: error: 'kvbuffer.attention' op no 16x8x16 instruction divides the rows of a warp, BM / warps = 8; expected a multiple of 16

// REDEFINE: %{options} = schedule=BN=8
// REDEFINE: %{prefix} = KEYS
// RUN: %{run}
// KEYS: error: 'kvbuffer.attention' op no 16x8x16 instruction divides BN = 8; expected a multiple of 16

// REDEFINE: %{options} = schedule=BK=8
// REDEFINE: %{prefix} = BLOCK
// RUN: %{run}
// BLOCK: error: 'kvbuffer.attention' op no 16x8x16 instruction divides BK = 8; expected a multiple of 16

// REDEFINE: %{options} = schedule=BM=1024,warps=64
// REDEFINE: %{prefix} = THREADS
// RUN: %{run}
// THREADS: error: 'kvbuffer.attention' op a schedule of 2048 threads does not fit sm_80, which has at most 1024 in a block

// 2 bytes * 128 * (128 + 2 * 8 * 64); an sm_80 block has 163 KiB.
// REDEFINE: %{options} = schedule=BN=64,stages=8
// REDEFINE: %{prefix} = LDS
// RUN: %{run}
// LDS: error: 'kvbuffer.attention' op the schedule needs 294912 bytes of shared memory, sm_80 has 166912 for a block

// (128 * 128 + 128 * 64 + 128 * 64 / 2) / 32.
// REDEFINE: %{options} = schedule=BN=64,warps=1
// REDEFINE: %{prefix} = REGISTERS
// RUN: %{run}
// REGISTERS: error: 'kvbuffer.attention' op the schedule needs at least 896 registers in a lane, sm_80 has 255

// (16 * 128 + 16 * 16 + 16 * 16 / 2) / 32, and 64 Ki for 1024 threads.
// REDEFINE: %{options} = schedule=BM=512,warps=32,BN=16,stages=1
// REDEFINE: %{prefix} = SHARE
// RUN: %{run}
// SHARE: error: 'kvbuffer.attention' op the schedule needs at least 76 registers in a lane, sm_80 has 64 for each of 1024 threads

// Roles: each limit, and what would keep to it.
// REDEFINE: %{options} = chip=sm_80 schedule=producers=4
// REDEFINE: %{prefix} = ROLES
// RUN: %{run}
// ROLES: error: 'kvbuffer.attention' op producers = 4 does not fit sm_80, which has no barriers in shared memory that copies complete; expected producers = 0

// Without groups of warps there is nobody to take turns, nor to get registers.
// REDEFINE: %{options} = chip=sm_90 schedule=producers=1,ping_pong=true
// REDEFINE: %{prefix} = NOGROUPS
// RUN: %{run}
// NOGROUPS: error: 'kvbuffer.attention' op ping_pong does not go with producers on sm_90, whose warps do not multiply in groups, which take turns; expected ping_pong = false

// REDEFINE: %{options} = chip=sm_90 schedule=producers=1,producer_registers=40
// REDEFINE: %{prefix} = ANEW
// RUN: %{run}
// ANEW: error: 'kvbuffer.attention' op producer_registers = 40 does not fit sm_90, which hands out none anew; expected producer_registers = 0

// Fewer warps than are to share columns: limits are counted before the rule
// that forbids it is.
// REDEFINE: %{options} = chip=sm_90a schedule=split_keys=true,BN=128,BM=64,warp_cols=2
// REDEFINE: %{prefix} = FEW
// RUN: %{run}
// FEW: error: 'kvbuffer.attention' op warp_cols must be a power of two that divides warps = 1, got 2

// REDEFINE: %{options} = chip=sm_100a schedule=producers=1,producer_registers=40
// REDEFINE: %{prefix} = OFGROUPS
// RUN: %{run}
// OFGROUPS: error: 'kvbuffer.attention' op producer_registers = 40 does not fit sm_100a, which hands out registers to whole groups of 4 warps alone; expected producer_registers = 0

// REDEFINE: %{options} = schedule=tiles=dynamic
// REDEFINE: %{prefix} = TILES
// RUN: %{run}
// TILES: error: 'kvbuffer.attention' op tiles = dynamic needs warps with roles; expected producers > 0, or tiles = grid

// REDEFINE: %{options} = chip=sm_90a schedule=warps=2
// REDEFINE: %{prefix} = WARPS
// RUN: %{run}
// WARPS: error: 'kvbuffer.attention' op warps = 2 is no whole number of groups of 4; warps = 4 would fit

// REDEFINE: %{options} = chip=sm_90a schedule=producers=2
// REDEFINE: %{prefix} = PRODUCERS
// RUN: %{run}
// PRODUCERS: error: 'kvbuffer.attention' op producers = 2 is no whole number of groups of 4; producers = 4 would fit

// REDEFINE: %{options} = chip=sm_90a schedule=BM=256
// REDEFINE: %{prefix} = GROUPS
// RUN: %{run}
// GROUPS: error: 'kvbuffer.attention' op BM = 256 is not 64 rows for each of 2 groups of 4 warps; BM = 128 would fit

// REDEFINE: %{options} = chip=sm_90a schedule=BN=272
// REDEFINE: %{prefix} = COLUMNS
// RUN: %{run}
// COLUMNS: error: 'kvbuffer.attention' op BN = 272 is more than the 256 columns of a product; BN = 256 would fit

// REDEFINE: %{options} = chip=sm_90a schedule=BN=120
// REDEFINE: %{prefix} = STEP
// RUN: %{run}
// STEP: error: 'kvbuffer.attention' op BN must be a positive multiple of 16, got 120

// REDEFINE: %{options} = chip=sm_90a schedule=overlap=true
// REDEFINE: %{prefix} = OVERLAP
// RUN: %{run}
// OVERLAP: error: 'kvbuffer.attention' op overlap = true does not go with warps that have roles; expected producers = 0, or overlap = false

// 32 * (8 * 240 + 4 * 40); 384 threads start with 168 registers each. 4 * 40
// leave 7 * 32 * 8 for 8 warps, in steps of 8: 232.
// REDEFINE: %{options} = chip=sm_90a schedule=producer_registers=40,consumer_registers=240
// REDEFINE: %{prefix} = POOL
// RUN: %{run}
// POOL: error: 'kvbuffer.attention' op the roles take 66560 registers, sm_90a gives 64512 to a block of 384 threads; consumer_registers = 232 would fit

// O 64, S 80, P 40, Q 32 and 28 for the rest. 144 take 204.
// REDEFINE: %{options} = chip=sm_90a schedule=BN=160,stages=1,stage_output=false
// REDEFINE: %{prefix} = CONSUMER
// RUN: %{run}
// CONSUMER: error: 'kvbuffer.attention' op a consumer's lane needs at least 244 registers, the schedule gives it 232; BN = 144 would fit

// 2 * 128 * (128 + 128 + 2 * 2 * 192) and 1 KiB; with 160 keys it is 230400.
// REDEFINE: %{options} = chip=sm_90a schedule=BN=192,q_in_regs=false,producer_registers=24,consumer_registers=240
// REDEFINE: %{prefix} = SHARED
// RUN: %{run}
// SHARED: error: 'kvbuffer.attention' op the schedule needs 263168 bytes of shared memory, sm_90a has 232448 for a block; BN = 160 would fit

// Of numbers without a limit of their own.
// REDEFINE: %{options} = schedule=stages=4294967296
// REDEFINE: %{prefix} = MANY
// RUN: %{run}
// MANY: error: 'kvbuffer.attention' op stages must be at most 65536, got 4294967296

// REDEFINE: %{options} = chip=gfx942 schedule=xcds=65537
// REDEFINE: %{prefix} = DIES
// RUN: %{run}
// DIES: error: 'kvbuffer.attention' op xcds must be at most 65536, got 65537

// More producers than a block has warps: no number of warps would fit.
// REDEFINE: %{options} = chip=sm_90a schedule=producers=48
// REDEFINE: %{prefix} = CROWD
// RUN: %{run}
// CROWD: error: 'kvbuffer.attention' op a schedule of 1792 threads does not fit sm_90a, which has at most 1024 in a block{{$}}

// What only warps with roles have.
// REDEFINE: %{options} = schedule=consumer_registers=160
// REDEFINE: %{prefix} = SHARES
// RUN: %{run}
// SHARES: error: 'kvbuffer.attention' op consumer_registers = 160 needs warps with roles; expected producers > 0, or consumer_registers = 0

// REDEFINE: %{options} = chip=gfx950 schedule=producer_registers=24
// REDEFINE: %{prefix} = NOSHARES
// RUN: %{run}
// NOSHARES: error: 'kvbuffer.attention' op producer_registers = 24 needs warps with roles; expected producers > 0, or producer_registers = 0

// Clusters of two, whose blocks take several tiles.
// REDEFINE: %{options} = chip=sm_90a schedule=cluster=3
// REDEFINE: %{prefix} = THREE
// RUN: %{run}
// THREE: error: 'kvbuffer.attention' op cluster = 3 is not supported; expected a power of two up to 8

// REDEFINE: %{options} = chip=sm_90a schedule=cluster=16
// REDEFINE: %{prefix} = SIXTEEN
// RUN: %{run}
// SIXTEEN: error: 'kvbuffer.attention' op cluster = 16 is not supported; expected a power of two up to 8

// REDEFINE: %{options} = chip=sm_90a schedule=cluster=8,BN=48
// REDEFINE: %{prefix} = PARTS
// RUN: %{run}
// PARTS: error: 'kvbuffer.attention' op cluster = 8 does not fit BN = 48: 4 blocks divide the rows of a tile of keys into parts of whole 8; BN = 32 would fit

// REDEFINE: %{options} = chip=sm_90a schedule=cluster=0
// REDEFINE: %{prefix} = NOBLOCK
// RUN: %{run}
// NOBLOCK: error: 'kvbuffer.attention' op cluster must be at least 1, got 0

// REDEFINE: %{options} = chip=sm_90a schedule=cluster=2,tiles=grid
// REDEFINE: %{prefix} = CLUSTERGRID
// RUN: %{run}
// CLUSTERGRID: error: 'kvbuffer.attention' op cluster = 2 needs blocks that take several tiles; expected tiles = static or dynamic, or cluster = 1

// REDEFINE: %{options} = chip=sm_90 schedule=cluster=2
// REDEFINE: %{prefix} = CLUSTERROLES
// RUN: %{run}
// CLUSTERROLES: error: 'kvbuffer.attention' op cluster = 2 needs warps with roles; expected producers > 0, or cluster = 1

// REDEFINE: %{options} = chip=sm_90a schedule=v_path=registers,producers=4
// REDEFINE: %{prefix} = PATH
// RUN: %{run}
// PATH: error: 'kvbuffer.attention' op v_path = registers does not go with warps that have roles; expected producers = 0, or v_path = direct

// REDEFINE: %{options} = chip=sm_90 schedule=k_path=streaming,stages=2
// REDEFINE: %{prefix} = STRIPSLOTS
// RUN: %{run}
// STRIPSLOTS: error: 'kvbuffer.attention' op k_path = streaming or v_path = streaming has one slot, through which strips go one after the other; expected stages = 1

// REDEFINE: %{options} = chip=sm_90 schedule=k_path=streaming,full_kv=false
// REDEFINE: %{prefix} = STRIPBLOCKS
// RUN: %{run}
// STRIPBLOCKS: error: 'kvbuffer.attention' op k_path = streaming or v_path = streaming has strips of its own; expected full_kv = true

// REDEFINE: %{options} = chip=sm_90 schedule=v_path=streaming,overlap=true
// REDEFINE: %{prefix} = STRIPAHEAD
// RUN: %{run}
// STRIPAHEAD: error: 'kvbuffer.attention' op {{overlap needs stages of at least 2|k_path = streaming or v_path = streaming goes with none of overlap}}

// REDEFINE: %{options} = chip=sm_90 schedule=v_path=streaming,BN=32,BK=64
// REDEFINE: %{prefix} = STRIPROWS
// RUN: %{run}
// STRIPROWS: error: 'kvbuffer.attention' op v_path = streaming has strips of BK = 64 keys, which do not divide BN = 32; expected a multiple of BK

// REDEFINE: %{options} = chip=gfx942 schedule=swap_a_b=false
// REDEFINE: %{prefix} = PLAIN
// RUN: %{run}
// PLAIN: error: 'kvbuffer.attention' op swap_a_b = false does not fit gfx942: results of its matrix instructions lie across other lanes than operands; expected swap_a_b = true

// REDEFINE: %{options} = schedule=reg_chunk_depth=24
// REDEFINE: %{prefix} = CHUNK
// RUN: %{run}
// CHUNK: error: 'kvbuffer.attention' op no 16x8x16 instruction divides reg_chunk_depth = 24; expected a multiple of 16

// REDEFINE: %{options} = schedule=reg_chunk_depth=256
// REDEFINE: %{prefix} = MORE
// RUN: %{run}
// MORE: error: 'kvbuffer.attention' op reg_chunk_depth = 256 is more than the padded head size 128

// REDEFINE: %{options} = schedule=reg_chunk_depth=-16
// REDEFINE: %{prefix} = NEGATIVE
// RUN: %{run}
// NEGATIVE: error: 'kvbuffer.attention' op reg_chunk_depth must not be negative, got -16

// REDEFINE: %{options} = schedule=split_keys=true,split_size=-64
// REDEFINE: %{prefix} = NEGSPLIT
// RUN: %{run}
// NEGSPLIT: error: 'kvbuffer.attention' op split_size must not be negative, got -64

// REDEFINE: %{options} = schedule=sum_keys=-64
// REDEFINE: %{prefix} = SUMS
// RUN: %{run}
// SUMS: error: 'kvbuffer.attention' op sum_keys must not be negative, got -64

// REDEFINE: %{options} = chip=gfx950 schedule=sum_keys=64,lazy_rescale=true,ping_pong=false
// REDEFINE: %{prefix} = SUMSLAZY
// RUN: %{run}
// SUMSLAZY: error: 'kvbuffer.attention' op sum_keys goes with neither split_keys nor lazy_rescale; expected sum_keys = 0

// REDEFINE: %{options} = chip=sm_90a schedule=reg_chunk_depth=64
// REDEFINE: %{prefix} = NOCHUNK
// RUN: %{run}
// NOCHUNK: error: 'kvbuffer.attention' op reg_chunk_depth = 64 does not go with warps that have roles; expected producers = 0, or reg_chunk_depth = 0

// REDEFINE: %{options} = chip=gfx950 schedule=reg_chunk_depth=64,ping_pong=true
// REDEFINE: %{prefix} = WHOLE
// RUN: %{run}
// WHOLE: error: 'kvbuffer.attention' op reg_chunk_depth = 64 does not go with ping_pong, whose fragments of K are in registers as a whole; expected ping_pong = false

// REDEFINE: %{options} = chip=sm_90a schedule=full_kv=false
// REDEFINE: %{prefix} = BLOCKS
// RUN: %{run}
// BLOCKS: error: 'kvbuffer.attention' op full_kv = false does not go with warps that have roles; expected producers = 0, or full_kv = true

// REDEFINE: %{options} = schedule=full_kv=false,stages=1
// REDEFINE: %{prefix} = SLOT
// RUN: %{run}
// SLOT: error: 'kvbuffer.attention' op full_kv = false needs stages of at least 2: the next block is loaded while one is read

// REDEFINE: %{options} = schedule=full_kv=false,overlap=true
// REDEFINE: %{prefix} = RUNAHEAD
// RUN: %{run}
// RUNAHEAD: error: 'kvbuffer.attention' op overlap does not go with full_kv = false, where no tile is in shared memory as a whole; expected overlap = false

// REDEFINE: %{options} = chip=gfx942 schedule=full_kv=false,ping_pong=true
// REDEFINE: %{prefix} = TURNS
// RUN: %{run}
// TURNS: error: 'kvbuffer.attention' op ping_pong does not go with full_kv = false, where no tile is in shared memory as a whole; expected ping_pong = false

// 2 bytes * (128 * 128 + 64 * 2 * 16 * 64).
// REDEFINE: %{options} = schedule=full_kv=false,BN=64,stages=16
// REDEFINE: %{prefix} = SLOTS
// RUN: %{run}
// SLOTS: error: 'kvbuffer.attention' op the schedule needs 294912 bytes of shared memory, sm_80 has 166912 for a block

// Parameters that mean nothing beside others, or leave them nothing to do.
// REDEFINE: %{options} = chip=sm_90a schedule=xcds=2
// REDEFINE: %{prefix} = XCDSROLES
// RUN: %{run}
// XCDSROLES: error: 'kvbuffer.attention' op xcds = 2 does not go with warps that have roles; expected producers = 0, or xcds = 1

// REDEFINE: %{options} = chip=sm_80 schedule=look_ahead=true
// REDEFINE: %{prefix} = LOOKAHEAD
// RUN: %{run}
// LOOKAHEAD: error: 'kvbuffer.attention' op look_ahead = true looks up pages, which dense caches do not have; expected look_ahead = false

// What nothing looks ahead for.
// REDEFINE: %{options} = chip=sm_80 schedule=look_ahead=true,stages=1
// REDEFINE: %{prefix} = NOLOADSAHEAD
// RUN: %{run}
// REDEFINE: %{options} = chip=sm_80 schedule=look_ahead=true,overlap=true
// RUN: %{run}
// REDEFINE: %{options} = chip=sm_80 schedule=look_ahead=true,overlap_products=true
// RUN: %{run}
// REDEFINE: %{options} = chip=sm_80 schedule=look_ahead=true,full_kv=false
// RUN: %{run}
// REDEFINE: %{options} = chip=sm_80 schedule=look_ahead=true,k_path=streaming
// RUN: %{run}
// REDEFINE: %{options} = chip=gfx950 schedule=look_ahead=true,ping_pong=true
// RUN: %{run}
// NOLOADSAHEAD: error: 'kvbuffer.attention' op look_ahead needs whole tiles of which nothing but loads runs ahead; expected stages of at least 2, full_kv = true, no path streaming, and none of overlap, overlap_products and ping_pong

// REDEFINE: %{options} = schedule=overlap=true,overlap_products=true
// REDEFINE: %{prefix} = BOTH
// RUN: %{run}
// BOTH: error: 'kvbuffer.attention' op overlap does not go with overlap_products, which rotates the same loop; expected one of them

// REDEFINE: %{options} = schedule=overlap=true,stages=1
// REDEFINE: %{prefix} = AHEADSLOT
// RUN: %{run}
// AHEADSLOT: error: 'kvbuffer.attention' op overlap needs stages of at least 2: the next tile is loaded while one is read

// REDEFINE: %{options} = schedule=overlap_products=true,stages=1
// REDEFINE: %{prefix} = PRODUCTSLOT
// RUN: %{run}
// PRODUCTSLOT: error: 'kvbuffer.attention' op overlap_products without producers needs stages of at least 2: the next tile is loaded while one is read

// REDEFINE: %{options} = schedule=overlap_products=true,full_kv=false
// REDEFINE: %{prefix} = PRODUCTBLOCKS
// RUN: %{run}
// PRODUCTBLOCKS: error: 'kvbuffer.attention' op overlap_products does not go with full_kv = false, where V has a product for each block; expected overlap_products = false

// REDEFINE: %{options} = chip=sm_90a schedule=lazy_rescale=true
// REDEFINE: %{prefix} = LAZYPRODUCTS
// RUN: %{run}
// LAZYPRODUCTS: error: 'kvbuffer.attention' op overlap_products does not go with lazy_rescale, whose softmax has parts that it does not know; expected one of them

// REDEFINE: %{options} = chip=gfx950 schedule=sums_in_lds=true,lazy_rescale=true
// REDEFINE: %{prefix} = LAZYSUMS
// RUN: %{run}
// LAZYSUMS: error: 'kvbuffer.attention' op sums_in_lds does not go with lazy_rescale, which keeps row sums in registers; expected one of them

// REDEFINE: %{options} = chip=gfx950 schedule=ping_pong=true,overlap=false
// REDEFINE: %{prefix} = TURNSALONE
// RUN: %{run}
// TURNSALONE: error: 'kvbuffer.attention' op ping_pong without producers needs overlap = true and lazy_rescale = true, whose parts take turns

// REDEFINE: %{options} = chip=gfx950 schedule=ping_pong=true,warps=1,BM=32
// REDEFINE: %{prefix} = TURNSODD
// RUN: %{run}
// TURNSODD: error: 'kvbuffer.attention' op ping_pong needs an even number of warps, of which halves take turns

// REDEFINE: %{options} = chip=sm_90a schedule=ping_pong=true,warps=4,BM=64
// REDEFINE: %{prefix} = TURNSGROUP
// RUN: %{run}
// TURNSGROUP: error: 'kvbuffer.attention' op ping_pong needs two groups of 4 warps, which take turns; warps = 8 would fit

// REDEFINE: %{options} = schedule=ping_pong=true,overlap=true,lazy_rescale=true
// REDEFINE: %{prefix} = TURNSCHIP
// RUN: %{run}
// TURNSCHIP: error: 'kvbuffer.attention' op ping_pong needs warps with roles; expected producers > 0

// REDEFINE: %{options} = chip=sm_90a schedule=swap_a_b=true,producers=4
// REDEFINE: %{prefix} = SWAP
// RUN: %{run}
// SWAP: choose-schedule-invalid.mlir:[[@LINE+21]]:3: error: 'kvbuffer.attention' op swap_a_b = true does not go with warps that have roles; expected producers = 0, or swap_a_b = false

// Groups of warps multiply what others load.
// REDEFINE: %{options} = chip=sm_90a schedule=mma_shape=16x8x16,producers=4
// REDEFINE: %{prefix} = ALONE
// RUN: %{run}
// ALONE: error: 'kvbuffer.attention' op mma_shape = 16x8x16, by which each warp multiplies for itself, does not go with producers on sm_90a; expected mma_shape = 64x8x16

// REDEFINE: %{options} = chip=sm_90a schedule=mma_shape=64x8x16,producers=0
// REDEFINE: %{prefix} = TOGETHER
// RUN: %{run}
// TOGETHER: error: 'kvbuffer.attention' op mma_shape = 64x8x16, which groups of warps execute on what others load, does not go with producers = 0; expected 16x8x16

// REDEFINE: %{options} = schedule=swap_a_b=true,BM=8,warps=2
// REDEFINE: %{prefix} = SWAPROWS
// RUN: %{run}
// SWAPROWS: error: 'kvbuffer.attention' op no 16x8x16 instruction divides the rows of a warp, BM / warps = 4; expected a multiple of 8

!qo = memref<?x?x2x128xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>
func.func @d128(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
  return
}
