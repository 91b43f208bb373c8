// A generated program with roles, broken in one place: the interpreter names it.

// RUN: kvbuf-opt %s --kvbuf-to-scheduled="chip=sm_90a schedule=BM=128,BN=32,warps=8,q_in_regs=false,tiles=dynamic,ping_pong=true split-loops=false" -o %t
// RUN: kvbuf-tile-run %t --size seq=170 | FileCheck %s --check-prefix=SOUND
// SOUND: PASS

// K's slot goes back before the wait of the product that reads it: the release
// moves in front of the wait.
// RUN: %python %S/Inputs/swap_lines.py 'kvbuffer.mma_wait .*younger = 1' 'kvbuffer.ring_release %kring' < %t > %t.early
// RUN: not kvbuf-tile-run %t.early --size seq=170 2>&1 | FileCheck %s --check-prefix=EARLY
// EARLY: error: 'kvbuffer.ring_release' op in block ({{[0-2]}}, 0, 0), team @consumers, iteration 0, iteration {{[0-9]+}}: releases filling {{[0-9]+}} of the k ring while a product in flight reads it
// EARLY: note: the product starts here
// EARLY-NEXT: kvbuffer.mma_start

// A wait that leaves its own product in flight.
// RUN: sed 's/younger = 0/younger = 1/' %t | not kvbuf-tile-run - --size seq=170 2>&1 | FileCheck %s --check-prefix=YOUNGER
// YOUNGER: error: 'kvbuffer.mma_wait' op in block (0, 0, 0), team @consumers, iteration 0: leaves the product that it awaits in flight: younger = 1, but only 0 were started behind it
// YOUNGER: note: the product starts here

// The last release of V is missing: the producers wait for ever for its slot, and
// so do the consumers.
// RUN: %python %S/Inputs/drop_last.py 'kvbuffer.ring_release %vring' < %t | not kvbuf-tile-run - --size seq=170 --blocks=1 2>&1 | FileCheck %s --check-prefix=KEPT
// KEPT: error: 'kvbuffer.ring_wait' op in block (0, 0, 0), team @consumers, iteration {{.*}}: waits for ever: @producers cannot make filling {{[0-9]+}} of the {{k|v}} ring before filling {{[0-9]+}} of the v ring is released
// KEPT: note: it waits for a slot here
// KEPT-NEXT: kvbuffer.ring_load

// Producers that count Q's fillings wrong.
// RUN: sed '/kvbuffer.ring_load .* into %qring/s/\[%[a-z0-9]*\]/[%c1]/' %t | not kvbuf-tile-run - --size seq=170 2>&1 | FileCheck %s --check-prefix=NUMBER
// NUMBER: error: 'kvbuffer.ring_load' op in block (0, 0, 0), team @producers, iteration 0: makes filling 1 of the q ring, expected number 0

// Consumers that wait for what is never made.
// RUN: sed '/kvbuffer.ring_wait %qring/s/\[%[a-z0-9]*\]/[%c128]/' %t | not kvbuf-tile-run - --size seq=170 2>&1 | FileCheck %s --check-prefix=NEVER
// NEVER: error: 'kvbuffer.ring_wait' op in block (0, 0, 0), team @consumers, iteration 0: waits for ever: filling 128 of the q ring is never made, @producers makes {{[0-9]+}}

// A filling that is released twice, and one that is not waited for.
// RUN: sed '/kvbuffer.ring_release %vring/{p;}' %t | not kvbuf-tile-run - --size seq=170 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: error: 'kvbuffer.ring_release' op in block (0, 0, 0), team @consumers, iteration 0, iteration 1: releases filling 0 of the v ring again
// TWICE: note: it was released here
// RUN: sed '/kvbuffer.ring_release %vring/s/\[%[a-z0-9]*\]/[%c128]/' %t | not kvbuf-tile-run - --size seq=170 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: 'kvbuffer.ring_release' op in block (0, 0, 0), team @consumers, iteration 0, iteration 1: releases filling 128 of the v ring, which was not awaited

// A turn that is not passed on.
// RUN: sed '/kvbuffer.turn_pass/d' %t | not kvbuf-tile-run - --size seq=170 2>&1 | FileCheck %s --check-prefix=TURN
// TURN: error: 'kvbuffer.turn_wait' op in block (0, 0, 0), team @consumers, iteration {{[0-9]}}, iteration {{[0-9]}}: waits for a turn that it has already
// RUN: sed '/kvbuffer.turn_wait/d' %t | not kvbuf-tile-run - --size seq=170 2>&1 | FileCheck %s --check-prefix=PASS
// PASS: error: 'kvbuffer.turn_pass' op in block (0, 0, 0), team @consumers, iteration {{[0-9]}}, iteration {{[0-9]}}: passes on a turn that it does not have

// Wrong numbers only: the mask is gone.
// RUN: sed '/kvbuffer.mask /s/causal = true//' %t | not kvbuf-tile-run - --size seq=170 | FileCheck %s --check-prefix=FAIL
// FAIL: FAIL

!qo = memref<?x?x1x64xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>
func.func @broken(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo, !kv, !kv, !qo
  return
}
