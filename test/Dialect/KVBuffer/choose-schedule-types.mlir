// Schedules of head sizes that differ, and of an output that is wider: LDS blocks suit
// both sizes, registers follow V's columns, slots both.

// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=sm_90a | FileCheck %s --check-prefix=SM90A
// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=sm_80 | FileCheck %s --check-prefix=SM80
// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=gfx950 | FileCheck %s --check-prefix=GFX950
// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=gfx942 | FileCheck %s --check-prefix=GFX942
// RUN: not kvbuf-opt %s --kvbuf-choose-schedule="chip=sm_90a schedule=stage_output=true,BN=64" 2>&1 | FileCheck %s --check-prefix=STAGED
// STAGED: error: 'kvbuffer.attention' op stage_output = true moves elements of 16 bits through shared memory, and out is of 'f32'; expected stage_output = false

// What the sizes together need of LDS, and O of registers, is what messages say.
// RUN: not kvbuf-opt %s --kvbuf-choose-schedule="chip=sm_90a schedule=BN=160,stages=2,stage_output=false" 2>&1 | FileCheck %s --check-prefix=SHARED
// SHARED: error: 'kvbuffer.attention' op the schedule needs 254976 bytes of shared memory, sm_90a has 232448 for a block; BN = 128 would fit
// RUN: not kvbuf-opt %s --kvbuf-choose-schedule="chip=sm_80 schedule=BM=256,warps=4,BN=16" 2>&1 | FileCheck %s --check-prefix=REGISTERS
// REGISTERS: error: 'kvbuffer.attention' op the schedule needs at least 304 registers in a lane, sm_80 has 255

// Q of 192 columns and accumulators of 128: 128 keys a tile, where heads of 192 have
// 112. Of K there are three blocks of 64 columns, of V two.
// SM90A-DAG: #[[NARROW:.*]] = #kvbuffer.schedule<BM = 128, BN = 128, BK = 64, stages = 2, warps = 8, mma_shape = [64, 8, 16], teams = moving<producers = 4, producer_registers = 40, consumer_registers = 232>, work = several_tiles<tiles = dynamic>, ahead = softmax>
// SM80-DAG: #[[NARROW:.*]] = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, stages = 2, warps = 4, mma_shape = [16, 8, 16]>
// GFX950-DAG: #[[NARROW:.*]] = #kvbuffer.schedule<BM = 256, BN = 32, BK = 32, {{.*}}mma_shape = [32, 32, 16]
// GFX942-DAG: #[[NARROW:.*]] = #kvbuffer.schedule<BM = 256, BN = 32, BK = 32, {{.*}}mma_shape = [32, 32, 8]

// SM90A-DAG: #[[ODD:.*]] = #kvbuffer.schedule<BM = 128, BN = 128, BK = 16, {{.*}}stage_output = true
// SM80-DAG: #[[ODD:.*]] = #kvbuffer.schedule<BM = 128, BN = 64, BK = 16,
// GFX950-DAG: #[[ODD:.*]] = #kvbuffer.schedule<BM = 256, BN = 64, BK = 32,

// What goes through LDS on its way out has 16 bits.
// SM90A-DAG: #[[F32:.*]] = #kvbuffer.schedule<BM = 192, BN = 128, BK = 64, stages = 2, warps = 12, mma_shape = [64, 8, 16], teams = moving<producers = 4, producer_registers = 32, consumer_registers = 160, ping_pong = true>, work = several_tiles<tiles = dynamic>, ahead = softmax>

!q192 = memref<?x?x2x192xbf16>
!k192 = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 192>
!v128 = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>
!o128 = memref<?x?x2x128xbf16>
// SM90A: func.func @narrow_values
// SM90A: schedule = #[[NARROW]]
// SM80: func.func @narrow_values
// SM80: schedule = #[[NARROW]]
// GFX950: func.func @narrow_values
// GFX950: schedule = #[[NARROW]]
// GFX942: func.func @narrow_values
// GFX942: schedule = #[[NARROW]]
func.func @narrow_values(%q: !q192, %k: !k192, %v: !v128, %o: !o128) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q192, !k192, !v128, !o128
  return
}

!q80 = memref<?x?x2x80xbf16>
!k80 = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 80>
!v112 = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 112>
!o112 = memref<?x?x2x112xbf16>
// SM90A: func.func @wide_values
// SM90A: schedule = #[[ODD]]
// SM80: func.func @wide_values
// SM80: schedule = #[[ODD]]
// GFX950: func.func @wide_values
// GFX950: schedule = #[[ODD]]
func.func @wide_values(%q: !q80, %k: !k80, %v: !v112, %o: !o112) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q80, !k80, !v112, !o112
  return
}

!q64 = memref<?x?x2x64xbf16>
!k64 = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
!o64 = memref<?x?x2x64xf32>
// SM90A: func.func @wide_out
// SM90A: schedule = #[[F32]]
func.func @wide_out(%q: !q64, %k: !k64, %v: !k64, %o: !o64) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q64, !k64, !k64, !o64
  return
}
