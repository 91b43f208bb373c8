// The block-level programs of AMD's chips: Q straight to registers, a wait for
// each operand, V's loads behind the wait that stores their predecessors. The
// numbers are held to the pass rule; a load that is awaited too early, or a slot
// that is overwritten while it may be read, would fail the run.

// DEFINE: %{options} = chip=gfx950
// DEFINE: %{sizes} = --size seq=300
// DEFINE: %{run} = kvbuf-opt %s --kvbuf-to-scheduled="%{options}" | kvbuf-tile-run %{sizes} | FileCheck %s

// RUN: %{run}
// REDEFINE: %{sizes} = --size seq_q=200 --size seq_k=70 --row-pad=8
// RUN: %{run}
// REDEFINE: %{sizes} = --size seq_q=5 --size seq_k=0
// RUN: %{run}
// REDEFINE: %{options} = chip=gfx942
// RUN: %{run}
// REDEFINE: %{sizes} = --size seq=300
// RUN: %{run}
// REDEFINE: %{options} = chip=gfx942 schedule=stages=3,BN=32
// RUN: %{run}
// REDEFINE: %{options} = chip=gfx950 schedule=stages=3
// RUN: %{run}
// REDEFINE: %{options} = chip=gfx950 schedule=stages=1
// RUN: %{run}
// REDEFINE: %{options} = chip=gfx950 schedule=xcds=2
// RUN: %{run}
// CHECK: PASS

// K's wait that leaves K in flight is noticed.
// RUN: kvbuf-opt %s --kvbuf-to-scheduled=chip=gfx950 | sed -e 's/younger = 1 : i64/younger = 2 : i64/' | not kvbuf-tile-run --size seq=300 2>&1 | FileCheck %s --check-prefix=EARLY
// EARLY: error: 'kvbuffer.lds_stage' op in block {{.*}}: awaits a load that it leaves in flight: younger = 2, but only 1 loads were issued behind it

!qo = memref<?x?x2x80xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 80>
func.func @causal(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo, !kv, !kv, !qo
  return
}
