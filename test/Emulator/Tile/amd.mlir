// The block-level programs of AMD's chips: Q straight to registers, a wait for
// each operand, V's loads behind the wait that stores their predecessors. The
// numbers are held to the pass rule; a load that is awaited too early, or a slot
// that is overwritten while it may be read, would fail the run. gfx942's default
// at this head size has halves of a block take turns.

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
// REDEFINE: %{options} = chip=gfx950 schedule=BM=256,warps=8,overlap=true,lazy_rescale=true,ping_pong=true
// RUN: %{run}
// REDEFINE: %{options} = chip=gfx942 schedule=ping_pong=false,lazy_rescale=false,overlap=false
// RUN: %{run}
// REDEFINE: %{options} = chip=gfx950 schedule=full_kv=false,stages=3
// RUN: %{run}
// REDEFINE: %{options} = chip=gfx942 schedule=full_kv=false,stages=4
// RUN: %{run}
// CHECK: PASS

// K's wait that leaves K in flight is noticed.
// RUN: kvbuf-opt %s --kvbuf-to-scheduled=chip=gfx950 | sed -e 's/younger = 1 : i64/younger = 2 : i64/' | not kvbuf-tile-run --size seq=300 2>&1 | FileCheck %s --check-prefix=EARLY
// EARLY: error: 'kvbuffer.lds_stage' op in block {{.*}}: awaits a load that it leaves in flight: younger = 2, but only 1 loads were issued behind it

// Turns without one of their meetings. In front of the loop, K's third tile goes
// to the slot of the first scores; in the loop, a half reads what the other has
// not awaited: V without the meeting behind the scores, K without the one behind
// the second product, V of the last tile unless both halves are level again.
// RUN: kvbuf-opt %s --kvbuf-to-scheduled="chip=gfx942 split-loops=false" -o %t
// RUN: kvbuf-tile-run %t --size seq=300 | FileCheck %s
// RUN: sed -e '1,/kvbuffer.meet/{/kvbuffer.meet/d;}' %t | not kvbuf-tile-run - --size seq=300 2>&1 | FileCheck %s --check-prefix=FIRST
// FIRST: error: 'kvbuffer.dram_load' op in block (0, 0, 0): overwrites slot 0 of the k buffer while threads may still read it: no kvbuffer.lds_stage or kvbuffer.meet stands behind its last read
// RUN: sed -e '/kvbuffer.softmax_tail/,/kvbuffer.meet/{/kvbuffer.meet/d;}' %t | not kvbuf-tile-run - --size seq=300 2>&1 | FileCheck %s --check-prefix=SCORES
// SCORES: error: 'kvbuffer.fragment_load' op in block (0, 0, 0), iteration 0: reads slot 0 of the v buffer before both halves of the block have awaited their parts of it
// RUN: sed -e '/kvbuffer.meet/{N;/scf.yield/s/kvbuffer.meet//;}' %t | not kvbuf-tile-run - --size seq=300 2>&1 | FileCheck %s --check-prefix=OUTPUT
// OUTPUT: error: 'kvbuffer.fragment_load' op in block (0, 0, 0), iteration 1: reads slot 0 of the k buffer before both halves of the block have awaited their parts of it
// RUN: sed -e '/kvbuffer.stagger {end}/d' %t | not kvbuf-tile-run - --size seq=300 2>&1 | FileCheck %s --check-prefix=LEVEL
// LEVEL: error: 'kvbuffer.fragment_load' op in block (0, 0, 0): reads slot 0 of the v buffer before both halves of the block have awaited their parts of it

!qo = memref<?x?x2x80xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 80>
func.func @causal(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo, !kv, !kv, !qo
  return
}
