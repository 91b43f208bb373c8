// The tile and scheduled stages on AMD's chips: what their descriptions change.
// Blocks take no turns here, and the softmax is eager: see run-ahead-turns.mlir,
// lazy-rescale.mlir and run-ahead-scores.mlir for the default.

// DEFINE: %{simple} = schedule=ping_pong=false,lazy_rescale=false,overlap=false

// RUN: kvbuf-opt %s --kvbuf-to-tile="chip=gfx950 %{simple}" | FileCheck %s --check-prefixes=TILE,TILE950
// RUN: kvbuf-opt %s --kvbuf-to-tile="chip=gfx942 %{simple}" | FileCheck %s --check-prefixes=TILE,TILE942
// RUN: kvbuf-opt %s --kvbuf-to-scheduled="chip=gfx950 %{simple},xcds=2 prefetch=false" | FileCheck %s --check-prefix=XCDS
// RUN: kvbuf-opt %s --kvbuf-to-scheduled="chip=gfx950 %{simple} split-loops=false" | FileCheck %s --check-prefixes=SCHED,SCHED950
// RUN: kvbuf-opt %s --kvbuf-to-scheduled="chip=gfx942 %{simple} split-loops=false" | FileCheck %s --check-prefixes=SCHED,SCHED942
// RUN: kvbuf-opt %s --kvbuf-to-thread="chip=gfx950 %{simple}" | FileCheck %s --check-prefix=THREAD950
// RUN: kvbuf-opt %s --kvbuf-to-thread="chip=gfx942 %{simple}" | FileCheck %s --check-prefix=THREAD942

// K has an XOR swizzle, for 64 banks or 32; V lies in plain order to be read
// transposed, or goes through registers to be transposed on its way.
// TILE950-DAG: #[[K:.*]] = #kvbuffer.kv_buffer<64x128xbf16, BK = 32, stages = 2, swizzle = [2, 0, 4]>
// TILE950-DAG: #[[V:.*]] = #kvbuffer.kv_buffer<64x128xbf16, BK = 32, stages = 2>
// TILE950-DAG: #kvbuffer.schedule<BM = 256, BN = 64, BK = 32, stages = 2, warps = 8, mma_shape = [32, 32, 16], swap_a_b = true, q_in_regs = true, work = one_tile<xcds = 8>>
// TILE942-DAG: #[[K:.*]] = #kvbuffer.kv_buffer<64x128xbf16, BK = 32, stages = 2, swizzle = [2, 0, 3]>
// TILE942-DAG: #[[V:.*]] = #kvbuffer.kv_buffer<64x128xbf16, BK = 32, stages = 2, policy = register_staged, order = cols>
// TILE942-DAG: #kvbuffer.schedule<BM = 256, BN = 64, BK = 32, stages = 2, warps = 8, mma_shape = [32, 32, 8], swap_a_b = true, q_in_regs = true, work = one_tile<xcds = 8>, slots = tiles<v_path = registers>>
// TILE:      gpu.func @causal
// TILE:        kvbuffer.work_item
// Q goes to registers without LDS.
// TILE-NOT:    kvbuffer.alloc {label = "q"}
// TILE:        %[[QT:.*]] = kvbuffer.dram_tile
// TILE-NEXT:   %[[QF:.*]] = kvbuffer.tile_fragment %[[QT]] : <256x128xbf16> -> <256x128xbf16, a>
// TILE:        scf.for

// A die gets a run of heads. The size of the grid is not known: tiles are counted
// from those of the sequence.
// XCDS:        kvbuffer.grid = [#kvbuffer.size<product(ceildiv(seq_q, 256), 8, batch)>, 1, 1]
// XCDS-DAG:    %[[DIE:.*]] = arith.remui %block_id_x, %c2
// XCDS-DAG:    %[[IN:.*]] = arith.divui %block_id_x, %c2
// XCDS-NOT:    gpu.grid_dim
// XCDS:        %[[LAST:.*]] = arith.subi %{{.*}}, %c1
// XCDS:        %[[OWN:.*]] = arith.subi %[[LAST]], %{{.*}}
// XCDS:        %[[ROW:.*]] = arith.muli %[[OWN]], %c256
// XCDS:        kvbuffer.dram_tile %{{.*}}[%{{.*}}, %[[ROW]], %{{.*}}]

// Each product waits for its own operand. K's wait leaves V's load in flight,
// V's both of the next tile; on gfx942 V's next registers are loaded once the
// last ones are stored, so behind V's wait.
// SCHED:       scf.for
// SCHED:         kvbuffer.lds_stage %[[KT:[^ ]*]] {younger = 1 : i64}
// SCHED:         kvbuffer.dram_load %{{.*}} into %kbuf[%{{.*}}] if
// SCHED950:      kvbuffer.dram_load %{{.*}} into %vbuf[%{{.*}}] if
// SCHED942-NOT:  into %vbuf
// SCHED:         kvbuffer.online_softmax
// SCHED950:      kvbuffer.lds_stage %{{.*}} {younger = 2 : i64}
// SCHED942:      kvbuffer.lds_stage %{{.*}} {younger = 1 : i64}
// SCHED942-NEXT: kvbuffer.dram_load %{{.*}} into %vbuf[%{{.*}}] if
// Steps of 16 on both: an instruction, or two of 8 that share a read.
// SCHED:         kvbuffer.fragment_load %{{.*}} contracted(rows) : {{.*}} -> <16x128xbf16, b, #mma_b{{[0-9]*}}>
// SCHED:         scf.yield

// The counts: one K or V tile is 16 KiB, 2 KiB a wave: two copies of 16 bytes a
// lane on gfx950; on gfx942 eight of 4 bytes, and V is four loads. K's wait leaves
// V's in flight.
// THREAD950:   scf.for
// THREAD950:     amdgpu.memory_counter_wait load(2) ds(0)
// THREAD950-NEXT: kvbuffer.wave_barrier
// THREAD950-COUNT-4: kvbuffer.range_copy {{.*}}bytes = 16 : i64
// THREAD950-COUNT-16: vector.load
// THREAD950:     amdgpu.memory_counter_wait load(4) ds(0)
// THREAD950-COUNT-32: amdgpu.transpose_load %{{.*}} -> vector<4xbf16>
// THREAD950:     scf.yield
// THREAD942:   scf.for
// THREAD942:     amdgpu.memory_counter_wait load(4) ds(0)
// THREAD942-NEXT: kvbuffer.wave_barrier
// THREAD942-COUNT-8: kvbuffer.range_copy {{.*}}bytes = 4 : i64
// THREAD942-COUNT-16: vector.load
// THREAD942-COUNT-4: vector.store {{.*}}alignment = 8 : i64{{.*}}#gpu.address_space<workgroup>>, vector<4xbf16>
// THREAD942:     amdgpu.memory_counter_wait ds(0)
// THREAD942-NEXT: kvbuffer.wave_barrier
// What is counted must stay where it is.
// THREAD942:     amdgpu.sched_barrier
// THREAD942-COUNT-4: kvbuffer.range_load %{{.*}} : vector<4xbf16>
// THREAD942:     scf.yield
!qo = memref<?x?x8x128xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>
func.func @causal(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo, !kv, !kv, !qo
  return
}
