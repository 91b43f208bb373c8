// Schedules of products of 8-bit floats, and what they cannot be, said at the problem.
// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=sm_89 | FileCheck %s --check-prefix=SM89
// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=gfx950 | FileCheck %s --check-prefix=CDNA
// RUN: kvbuf-opt %s --kvbuf-choose-schedule="chip=sm_90a schedule=accumulate=fast" | FileCheck %s --check-prefix=FAST
// RUN: not kvbuf-opt %s --kvbuf-choose-schedule="chip=gfx950 schedule=accumulate=fast" 2>&1 | FileCheck %s --check-prefix=SUMS
// RUN: not kvbuf-opt %s --kvbuf-choose-schedule="chip=sm_90a schedule=producers=4,wideners=0" 2>&1 | FileCheck %s --check-prefix=ROLES
// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=sm_90a | FileCheck %s --check-prefix=TEAM
// RUN: sed -e 's/x64x/x256x/; s/head_size = 64/head_size = 256/' %s | kvbuf-opt --kvbuf-choose-schedule=chip=sm_90a | FileCheck %s --check-prefix=WIDE
// RUN: sed -e 's/x64x/x256x/; s/head_size = 64/head_size = 256/' %s | not kvbuf-opt --kvbuf-choose-schedule="chip=sm_90a schedule=overlap_products=true" 2>&1 | FileCheck %s --check-prefix=BESIDE
// RUN: sed -e 's/x64x/x128x/; s/head_size = 64/head_size = 128/' %s | not kvbuf-opt --kvbuf-choose-schedule="chip=sm_90a schedule=stage_output=true" 2>&1 | FileCheck %s --check-prefix=STAGED
// RUN: not kvbuf-opt %s --kvbuf-choose-schedule="chip=sm_90a schedule=BN=96" 2>&1 | FileCheck %s --check-prefix=NARROW
// RUN: not kvbuf-opt %s --kvbuf-choose-schedule="chip=sm_90a schedule=wideners=8,producers=4" 2>&1 | FileCheck %s --check-prefix=TURNERS
// RUN: not kvbuf-opt %s --kvbuf-choose-schedule="chip=sm_90 schedule=producers=4,swap_a_b=false" 2>&1 | FileCheck %s --check-prefix=SM90
// RUN: not kvbuf-opt %s --kvbuf-choose-schedule="chip=gfx950 schedule=lazy_rescale=true" 2>&1 | FileCheck %s --check-prefix=LAZY
// RUN: not kvbuf-opt %s --kvbuf-choose-schedule="chip=gfx950 schedule=warp_cols=2" 2>&1 | FileCheck %s --check-prefix=COLUMNS
// RUN: not kvbuf-opt %s --kvbuf-choose-schedule="chip=sm_89 schedule=mma_shape=16x8x16" 2>&1 | FileCheck %s --check-prefix=SHAPE
// RUN: kvbuf-opt %s --kvbuf-choose-schedule="chip=gfx950 schedule=scores=mfma:32x32x64,values=mfma:32x32x16,BK=64" | FileCheck %s --check-prefix=EACH
// RUN: not kvbuf-opt %s --kvbuf-choose-schedule="chip=gfx950 schedule=scores=mfma:32x32x64" 2>&1 | FileCheck %s --check-prefix=ONE
// RUN: not kvbuf-opt %s --kvbuf-choose-schedule="chip=gfx950 schedule=scores=32x32x64" 2>&1 | FileCheck %s --check-prefix=UNIT
// RUN: not kvbuf-opt %s --kvbuf-choose-schedule="chip=gfx950 schedule=scores=mfma:32x32x16,values=wmma:16x16x32" 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: not kvbuf-opt %s --kvbuf-choose-schedule="chip=gfx950 schedule=scores=mfma:32x32x16,values=mfma:16x16x32" 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: not kvbuf-opt %s --kvbuf-choose-schedule="chip=gfx950 schedule=scores=mfma:16x16x32,values=mfma:16x16x128" 2>&1 | FileCheck %s --check-prefix=KEYS
// RUN: not kvbuf-opt %s --kvbuf-choose-schedule="chip=sm_89 schedule=scores=mma_sync:16x16x32,values=mma_sync:16x8x32" 2>&1 | FileCheck %s --check-prefix=BESIDES
// RUN: not kvbuf-opt %s --kvbuf-choose-schedule="chip=sm_90a schedule=scores=wgmma:64x8x32,values=mma_sync:16x8x32,producers=4,wideners=4" 2>&1 | FileCheck %s --check-prefix=GROUPS
// RUN: sed -e 's/granularity = head/granularity = 64/' %s | not kvbuf-opt --kvbuf-choose-schedule=chip=sm_89 2>&1 | FileCheck %s --check-prefix=TOKENS
// RUN: sed -e 's/f8E4M3FN/bf16/; s/, scale = f32, granularity = head//' %s | not kvbuf-opt --kvbuf-choose-schedule="chip=sm_89 schedule=accumulate=fast" 2>&1 | FileCheck %s --check-prefix=HALF
// RUN: sed -e 's/f8E4M3FN/f8E4M3FNUZ/' %s | not kvbuf-opt --kvbuf-choose-schedule=chip=gfx950 2>&1 | FileCheck %s --check-prefix=FNUZ

// SM89: mma_shape = [16, 16, 32]>
// CDNA: BK = 64, {{.*}} mma_shape = [32, 32, 64], swap_a_b = true
// FAST: accumulate = fast,
// SUMS: error: 'kvbuffer.attention' op accumulate = fast leaves nothing out on gfx950, whose matrix unit adds 8-bit products up in f32; expected accumulate = two_level
// ROLES: error: 'kvbuffer.attention' op multiplies 'f8E4M3FN', of which warp groups read V turned; expected wideners > 0, which turn it, or producers = 0
// TEAM: BM = 192, BN = 128, BK = 64, stages = 2, warps = 12, mma_shape = [64, 8, 32], teams = moving<producers = 2, producer_registers = 32, consumer_registers = 160, wideners = 2, widener_registers = 32, stage_output = true>, work = several_tiles<tiles = dynamic>>
// WIDE: BM = 128, BN = 128, BK = 128, stages = 2, warps = 8, mma_shape = [64, 8, 32], teams = moving<producers = 2, producer_registers = 24, consumer_registers = 240, wideners = 2, widener_registers = 24>, work = several_tiles<tiles = dynamic>>
// BESIDE: error: 'kvbuffer.attention' op a consumer's lane needs at least 360 registers, the schedule gives it 240
// STAGED: error: 'kvbuffer.attention' op stage_output = true moves whole rows through shared memory, and products have 32 columns at a time; expected stage_output = false
// NARROW: error: 'kvbuffer.attention' op turns tiles of BN = 96 keys for warp groups; expected BN = 32, 64 or 128
// TURNERS: error: 'kvbuffer.attention' op has values of 64 columns, which 8 wideners turn; expected a power of two of 128 and more
// SM90: error: 'kvbuffer.attention' op multiplies f8E4M3FN, which no groups of warps multiply on sm_90; expected producers = 0
// LAZY: error: 'kvbuffer.attention' op multiplies weights of f8E4M3FN, which lazy_rescale would let exceed the largest number; expected lazy_rescale = false
// COLUMNS: error: 'kvbuffer.attention' op multiplies f8E4M3FN, and warp_cols = 2, whose warps hand each other weights of 16 bits; expected warp_cols = 1
// SHAPE: error: 'kvbuffer.attention' op sm_89 has no matrix instruction of shape 16x8x16 for f8E4M3FN; it has 16x16x32, 16x8x32
// EACH: scores = #kvbuffer.instruction<mfma, [32, 32, 64]>, values = #kvbuffer.instruction<mfma, [32, 32, 16]>, swap_a_b = true
// ONE: error: 'kvbuffer.attention' op scores names the instruction of some products alone; expected values beside it, or mma_shape for all
// UNIT: error: schedule parameter 'scores=32x32x64': expected scores=UNIT:MxNxK, of the units mma_sync, wgmma, mfma and wmma
// OTHER: error: 'kvbuffer.attention' op gfx950 has no matrix instruction wmma of shape 16x16x32 for f8E4M3FN; it has mfma 32x32x16, mfma 16x16x32, mfma 32x32x64, mfma 16x16x128
// ROWS: error: 'kvbuffer.attention' op scores = mfma 32x32x16 and values = mfma 16x16x32 do not go together on gfx950: the rows of their results, which share maxima and sums, lie in other lanes or registers; expected instructions whose results lie alike
// BESIDES: error: 'kvbuffer.attention' op scores = mma_sync 16x16x32 and values = mma_sync 16x8x32 do not go together on sm_89: the rows of their results, which share maxima and sums, lie in other lanes or registers; expected instructions whose results lie alike
// KEYS: error: 'kvbuffer.attention' op no 16x16x128 instruction divides BN = 64; expected a multiple of 128
// GROUPS: error: 'kvbuffer.attention' op values = mma_sync 16x8x32, by which each warp multiplies for itself, does not go with producers on sm_90a; expected values = wgmma 64x8x32
// TOKENS: error: 'kvbuffer.attention' op has a scale for each token of v, which would multiply weights of f8E4M3FN, whose range is too small for them; expected granularity = tensor or head of v
// HALF: error: 'kvbuffer.attention' op accumulate = fast is for products of 8-bit floats, and those of bf16 are added up by the matrix unit; expected accumulate = two_level
// FNUZ: error: 'kvbuffer.attention' op has elements of f8E4M3FNUZ, which gfx950 lacks; its 8-bit floats are f8E4M3FN and f8E5M2
!e = memref<?x?x4x64xf8E4M3FN>
!o = memref<?x?x4x64xbf16>
!kv = !kvbuffer.cache<dense, f8E4M3FN, heads = 2, head_size = 64, scale = f32, granularity = head>
func.func @attention(%q: !e, %k: !kv, %v: !kv, %o: !o) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !e, !kv, !kv, !o
  return
}
