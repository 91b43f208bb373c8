// The default schedules of AMD's chips, and what does not fit.

// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=gfx950 | FileCheck %s --check-prefix=GFX950
// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=gfx942 | FileCheck %s --check-prefix=GFX942

// Waves of 32 queries, 8 of them: what the widest copies leave over of a tile narrower
// ones move. 16 queries above head size 192, whose accumulators would leave no
// registers. 64 keys where the fragments of a tile fit into registers beside the
// accumulators. 8 waves take turns, two to a SIMD. Products of 16 rows have rows of 64 elements in
// LDS on gfx950, whose reads have no bank conflicts.
// GFX950-DAG: #[[D64:.*]] = #kvbuffer.schedule<BM = 256, BN = 64, BK = 32, stages = 2, warps = 8, mma_shape = [32, 32, 16], swap_a_b = true, q_in_regs = true, lazy_rescale = true, teams = halves, work = one_tile<xcds = 8>, ahead = scores>
// GFX950-DAG: #[[D256:.*]] = #kvbuffer.schedule<BM = 128, BN = 32, BK = 64, stages = 2, warps = 8, mma_shape = [16, 16, 32], swap_a_b = true, q_in_regs = true, lazy_rescale = true, teams = halves, work = one_tile<xcds = 8>, ahead = scores>
// GFX950: @d64
// GFX950:   {schedule = #[[D64]]}
// GFX950: @d96
// GFX950:   {schedule = #[[D64]]}
// GFX950: @d256
// GFX950:   {schedule = #[[D256]]}
// GFX950: @lse
// GFX950:   {schedule = #[[D64]]}
// GFX950: @lse_softcap
// GFX950:   {schedule = #[[D64]], softcap
// GFX950: @lse_window
// GFX950:   {mask = #{{.*}}, schedule = #[[D64]]}
// GFX942-DAG: #[[D64:.*]] = #kvbuffer.schedule<BM = 256, BN = 64, BK = 32, stages = 2, warps = 8, mma_shape = [32, 32, 8], swap_a_b = true, q_in_regs = true, lazy_rescale = true, teams = halves, work = one_tile<xcds = 8>, ahead = scores, slots = tiles<v_path = registers>>
// GFX942-DAG: #[[D256:.*]] = #kvbuffer.schedule<BM = 128, BN = 32, BK = 32, stages = 2, warps = 8, mma_shape = [16, 16, 16], swap_a_b = true, q_in_regs = true, lazy_rescale = true, teams = halves, work = one_tile<xcds = 8>, ahead = scores, slots = tiles<v_path = registers>>
// GFX942-DAG: #[[AT_ONCE:.*]] = #kvbuffer.schedule<BM = 256, BN = 64, BK = 32, stages = 2, warps = 8, mma_shape = [32, 32, 8], swap_a_b = true, q_in_regs = true, lazy_rescale = true, work = one_tile<xcds = 8>, slots = tiles<v_path = registers>>
// GFX942: @d64
// GFX942:   {schedule = #[[D64]]}
// GFX942: @d96
// GFX942:   {schedule = #[[D64]]}
// GFX942: @d256
// GFX942:   {schedule = #[[D256]]}
// A log-sum-exp carries one value a row more. Beside V on its way through
// registers there is room for that, but with turns not for a soft cap besides.
// GFX942: @lse
// GFX942:   {schedule = #[[D64]]}
// GFX942: @lse_softcap
// GFX942:   {schedule = #[[AT_ONCE]], softcap
// GFX942: @lse_window
// GFX942:   {mask = #{{.*}}, schedule = #[[D64]]}

// Fragments of 64 keys that would leave no registers for turns: 32 keys. At head size
// 512 there are none, and K and V come block by block; on gfx942 their tiles would not fit into LDS either.
// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=gfx950 | FileCheck %s --check-prefix=LARGE950
// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=gfx942 | FileCheck %s --check-prefix=LARGE942
// LARGE950-DAG: #[[D192:.*]] = #kvbuffer.schedule<BM = 256, BN = 32, BK = 32, stages = 2, warps = 8, mma_shape = [32, 32, 16], swap_a_b = true, q_in_regs = true, lazy_rescale = true, teams = halves, work = one_tile<xcds = 8>, ahead = scores>
// LARGE950-DAG: #[[D512:.*]] = #kvbuffer.schedule<BM = 128, BN = 32, BK = 64, stages = 2, warps = 8, mma_shape = [16, 16, 32], swap_a_b = true, q_in_regs = true, lazy_rescale = true, work = one_tile<xcds = 8>, slots = blocks>
// LARGE950: @d192
// LARGE950:   {schedule = #[[D192]]}
// LARGE950: @d512
// LARGE950:   {schedule = #[[D512]]}
// LARGE942-DAG: #[[D512:.*]] = #kvbuffer.schedule<BM = 128, BN = 32, BK = 64, stages = 2, warps = 8, mma_shape = [16, 16, 16], swap_a_b = true, q_in_regs = true, work = one_tile<xcds = 8>, slots = blocks<v_path = registers>>
// LARGE942: @d512
// LARGE942:   {schedule = #[[D512]]}

// Who asks for chunks or for blocks wants no turns; who asks for turns wants whole
// tiles.
// RUN: kvbuf-opt %s --kvbuf-choose-schedule="chip=gfx950 schedule=reg_chunk_depth=32" | FileCheck %s --check-prefix=CHUNKS
// RUN: kvbuf-opt %s --kvbuf-choose-schedule="chip=gfx950 schedule=full_kv=false" | FileCheck %s --check-prefix=CHUNKS
// CHUNKS-NOT: {{teams = halves|ahead = scores}}
// CHUNKS: lazy_rescale = true, {{reg_chunk_depth = 32|(work = [^>]*>, )?slots = blocks}}
// CHUNKS-NOT: {{teams = halves|ahead = scores}}
// CHUNKS: @d64
// RUN: kvbuf-opt %s --kvbuf-choose-schedule="chip=gfx950 schedule=ping_pong=true" | FileCheck %s --check-prefix=ASKED
// ASKED-NOT: slots = blocks
// ASKED: @d64

// Without lazy rescaling no turns and nothing ahead; without turns nothing ahead;
// what is asked for is there all the same.
// RUN: kvbuf-opt %s --kvbuf-choose-schedule="chip=gfx950 schedule=lazy_rescale=false" | FileCheck %s --check-prefix=EAGER
// EAGER-NOT: {{teams = halves|ahead = scores|lazy_rescale = true}}
// EAGER: @d64
// RUN: kvbuf-opt %s --kvbuf-choose-schedule="chip=gfx950 schedule=ping_pong=false" | FileCheck %s --check-prefix=LEVEL
// LEVEL-NOT: {{teams = halves|ahead = scores}}
// LEVEL: lazy_rescale = true
// LEVEL-NOT: {{teams = halves|ahead = scores}}
// LEVEL: @d64
// RUN: kvbuf-opt %s --kvbuf-choose-schedule="chip=gfx950 schedule=lazy_rescale=false,overlap=true" | FileCheck %s --check-prefix=AHEAD
// AHEAD-NOT: {{teams = halves|lazy_rescale = true}}
// AHEAD: ahead = scores
// AHEAD-NOT: {{teams = halves|lazy_rescale = true}}
// AHEAD: @d64

// RUN: not kvbuf-opt %s --kvbuf-choose-schedule="chip=gfx942 schedule=v_path=direct" 2>&1 | FileCheck %s --check-prefix=DIRECT
// DIRECT: error: 'kvbuffer.attention' op v_path = direct does not fit gfx942, which cannot read LDS transposed: V is transposed on its way through registers; expected v_path = registers
// RUN: not kvbuf-opt %s --kvbuf-choose-schedule="chip=gfx942 schedule=mma_shape=32x32x16" 2>&1 | FileCheck %s --check-prefix=MMA
// MMA: error: 'kvbuffer.attention' op gfx942 has no matrix instruction of shape 32x32x16; it has 32x32x8, 16x16x16
// RUN: not kvbuf-opt %s --kvbuf-choose-schedule="chip=gfx950 schedule=mma_shape=32x32x8" 2>&1 | FileCheck %s --check-prefix=MMA950
// MMA950: error: 'kvbuffer.attention' op gfx950 has no matrix instruction of shape 32x32x8; it has 32x32x16, 16x16x32
// RUN: not kvbuf-opt %s --kvbuf-choose-schedule="chip=gfx942 schedule=stages=16" 2>&1 | FileCheck %s --check-prefix=LDS
// LDS: error: 'kvbuffer.attention' op the schedule needs 262144 bytes of shared memory, gfx942 has 65536 for a block
// RUN: not kvbuf-opt %s --kvbuf-choose-schedule="chip=gfx950 schedule=BM=256,warps=1" 2>&1 | FileCheck %s --check-prefix=REGISTERS
// REGISTERS: error: 'kvbuffer.attention' op the schedule needs at least 896 registers in a lane, gfx950 has 256
// RUN: not kvbuf-opt %s --kvbuf-choose-schedule="chip=gfx950 schedule=BN=16" 2>&1 | FileCheck %s --check-prefix=KEYS
// KEYS: error: 'kvbuffer.attention' op no 32x32x16 instruction divides BN = 16; expected a multiple of 32
// Two instructions of 8 share a read.
// RUN: not kvbuf-opt %s --kvbuf-choose-schedule="chip=gfx942 schedule=BK=8" 2>&1 | FileCheck %s --check-prefix=STRIP
// STRIP: error: 'kvbuffer.attention' op no 32x32x8 instruction divides BK = 8; expected a multiple of 16

!qo64 = memref<?x?x2x64xbf16>
!kv64 = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
func.func @d64(%q: !qo64, %k: !kv64, %v: !kv64, %o: !qo64) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo64, !kv64, !kv64, !qo64
  return
}

!qo96 = memref<?x?x2x96xbf16>
!kv96 = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 96>
func.func @d96(%q: !qo96, %k: !kv96, %v: !kv96, %o: !qo96) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo96, !kv96, !kv96, !qo96
  return
}

!qo256 = memref<?x?x2x256xbf16>
!kv256 = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 256>
func.func @d256(%q: !qo256, %k: !kv256, %v: !kv256, %o: !qo256) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo256, !kv256, !kv256, !qo256
  return
}

!lse = memref<?x2x?xf32>
func.func @lse(%q: !qo64, %k: !kv64, %v: !kv64, %o: !qo64, %l: !lse) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) lse(%l) : !qo64, !kv64, !kv64, !qo64, lse !lse
  return
}
func.func @lse_softcap(%q: !qo64, %k: !kv64, %v: !kv64, %o: !qo64, %l: !lse) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) lse(%l) {softcap = 20.0 : f32} : !qo64, !kv64, !kv64, !qo64, lse !lse
  return
}
func.func @lse_window(%q: !qo64, %k: !kv64, %v: !kv64, %o: !qo64, %l: !lse) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) lse(%l) {mask = #kvbuffer.mask<left = 70, right = 0>} : !qo64, !kv64, !kv64, !qo64, lse !lse
  return
}

!qo192 = memref<?x?x2x192xbf16>
!kv192 = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 192>
func.func @d192(%q: !qo192, %k: !kv192, %v: !kv192, %o: !qo192) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo192, !kv192, !kv192, !qo192
  return
}

!qo512 = memref<?x?x2x512xbf16>
!kv512 = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 512>
func.func @d512(%q: !qo512, %k: !kv512, %v: !kv512, %o: !qo512) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo512, !kv512, !kv512, !qo512
  return
}

// Pages of which a tile has more than four are looked up by lanes, an iteration ahead of
// the load before; they leave turns as those of 16 do, which are copied by whole rows.
// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=gfx950 | FileCheck %s --check-prefix=PAGES
// PAGES-DAG: #[[TURNS:.*]] = #kvbuffer.schedule<BM = 256, BN = 64, BK = 32, stages = 2, warps = 8, mma_shape = [32, 32, 16], swap_a_b = true, q_in_regs = true, lazy_rescale = true, teams = halves, work = one_tile<xcds = 8>, ahead = scores>
// PAGES: @pages8
// PAGES:   {schedule = #[[TURNS]]}
// PAGES: @pages16
// PAGES:   {schedule = #[[TURNS]]}
!qo128 = memref<?x?x2x128xbf16>
!pages8 = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 128, page_size = 8>
!pages16 = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 128, page_size = 16>
func.func @pages8(%q: !qo128, %k: !pages8, %v: !pages8, %o: !qo128) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo128, !pages8, !pages8, !qo128
  return
}
func.func @pages16(%q: !qo128, %k: !pages16, %v: !pages16, %o: !qo128) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo128, !pages16, !pages16, !qo128
  return
}

// A lazy softmax rounds the largest weight, which an output of more bits would show.
// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=gfx950 | FileCheck %s --check-prefix=FINER
// RUN: kvbuf-opt %s --kvbuf-choose-schedule="chip=gfx950 schedule=lazy_rescale=true" | FileCheck %s --check-prefix=KEPT
// FINER-DAG: #[[ONCE:.*]] = #kvbuffer.schedule<BM = 256, BN = 64, BK = 32, stages = 2, warps = 8, mma_shape = [32, 32, 16], swap_a_b = true, q_in_regs = true, work = one_tile<xcds = 8>>
// FINER-DAG: #[[LATER:.*]] = #kvbuffer.schedule<BM = 256, BN = 64, BK = 32, stages = 2, warps = 8, mma_shape = [32, 32, 16], swap_a_b = true, q_in_regs = true, lazy_rescale = true, teams = halves, work = one_tile<xcds = 8>, ahead = scores>
// FINER: @f32
// FINER:   {schedule = #[[ONCE]]}
// FINER: @f16
// FINER:   {schedule = #[[ONCE]]}
// FINER: @f16_of_f16
// FINER:   {schedule = #[[LATER]]}
// KEPT: #[[LATER:.*]] = #kvbuffer.schedule<BM = 256, BN = 64, BK = 32, stages = 2, warps = 8, mma_shape = [32, 32, 16], swap_a_b = true, q_in_regs = true, lazy_rescale = true, work = one_tile<xcds = 8>>
// KEPT: @f32
// KEPT:   {schedule = #[[LATER]]}
!f32 = memref<?x?x2x128xf32>
!f16 = memref<?x?x2x128xf16>
!kv128 = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>
!kv16 = !kvbuffer.cache<dense, f16, heads = 2, head_size = 128>
func.func @f32(%q: !qo128, %k: !kv128, %v: !kv128, %o: !f32) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo128, !kv128, !kv128, !f32
  return
}
func.func @f16(%q: !qo128, %k: !kv128, %v: !kv128, %o: !f16) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo128, !kv128, !kv128, !f16
  return
}
func.func @f16_of_f16(%q: !f16, %k: !kv16, %v: !kv16, %o: !f16) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !f16, !kv16, !kv16, !f16
  return
}
