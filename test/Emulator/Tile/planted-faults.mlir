// A generated program, broken in one place: the interpreter names it.

// RUN: kvbuf-opt %s --kvbuf-to-scheduled="schedule=BM=64,BN=32,q_in_regs=false split-loops=false" -o %t
// RUN: kvbuf-tile-run %t --size seq=70 | FileCheck %s --check-prefix=SOUND
// SOUND: PASS

// A wait that leaves one load too many in flight.
// RUN: sed 's/younger = 0/younger = 1/' %t | not kvbuf-tile-run - --size seq=70 2>&1 | FileCheck %s --check-prefix=YOUNGER
// YOUNGER: error: 'kvbuffer.lds_stage' op in block (0, 0, 0), iteration 0: awaits a load that it leaves in flight: younger = 1, but only 0 loads were issued behind it
// YOUNGER: note: the awaited load is here
// YOUNGER-NEXT: kvbuffer.dram_load

// Every load goes into slot 0.
// RUN: sed 's/arith.remui %\([0-9]*\), %c2/arith.muli %\1, %c0/' %t | not kvbuf-tile-run - --size seq=70 2>&1 | FileCheck %s --check-prefix=SLOT
// SLOT: error: 'kvbuffer.dram_load' op in block (0, 0, 0), iteration 0: overwrites slot 0 of the k buffer while threads may still read it: no kvbuffer.lds_stage or kvbuffer.meet stands behind its last read
// SLOT: note: the slot is read here
// SLOT-NEXT: kvbuffer.fragment_load

// The look-up ahead has no predicate: keys in front of the first.
// RUN: sed 's/\(kvbuffer.cache_tile.*\) if %[0-9]* :/\1 :/' %t | not kvbuf-tile-run - --size seq=70 2>&1 | FileCheck %s --check-prefix=LOOKUP
// LOOKUP: error: 'kvbuffer.cache_tile' op in block (0, 0, 0), iteration 2: looks up a tile without a valid row: keys -32 to 0 of [0, 70)

// The load ahead has none.
// RUN: sed 's/\(kvbuffer.dram_load.*\) if %[0-9]*/\1/' %t | not kvbuf-tile-run - --size seq=70 2>&1 | FileCheck %s --check-prefix=LOAD
// LOAD: error: 'kvbuffer.dram_load' op in block (0, 0, 0), iteration 2: loads a tile that was predicated off
// LOAD: note: the tile is made here
// LOAD-NEXT: kvbuffer.cache_tile

// The rows of the last query tile that do not exist.
// RUN: sed 's/valid(%[0-9]*)/valid(%c64)/' %t | not kvbuf-tile-run - --size seq=70 2>&1 | FileCheck %s --check-prefix=ROWS
// ROWS: error: 'kvbuffer.dram_tile' op in block (0, 0, 0): accesses q[0, 70, 0, 0], outside of its shape [1, 70, 1, 64]

// Wrong numbers only: the mask is gone, or the scale is not the problem's.
// RUN: sed '/kvbuffer.mask /s/causal = true//' %t | not kvbuf-tile-run - --size seq=70 | FileCheck %s --check-prefix=FAIL
// RUN: sed 's/scale = 1.250000e-01 : f32/scale = 1.280000e-01 : f32/' %t | not kvbuf-tile-run - --size seq=70 | FileCheck %s --check-prefix=FAIL
// FAIL: FAIL

!qo = memref<?x?x1x64xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>
func.func @broken(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo, !kv, !kv, !qo
  return
}
