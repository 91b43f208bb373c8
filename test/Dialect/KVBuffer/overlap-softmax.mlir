// The scores of tile i + 1 beside the softmax of tile i: the first scores in front
// of the loop, the last softmax behind it, all of it only if there is a tile.

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(kvbuf-choose-schedule{schedule=BN=32,overlap=true,q_in_regs=false},kvbuf-lower-attention,canonicalize,gpu.module(gpu.func(kvbuf-overlap-softmax,canonicalize)))" | FileCheck %s
// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(kvbuf-choose-schedule{schedule=BN=32,q_in_regs=false},kvbuf-lower-attention,canonicalize,gpu.module(gpu.func(kvbuf-overlap-softmax,canonicalize)))" | FileCheck %s --check-prefix=OFF

!qo = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>

// CHECK-LABEL: gpu.func @attend
// The first scores, before the loop.
// CHECK:         kvbuffer.mma
// CHECK-SAME:      transpose_b
// CHECK:         scf.for %[[I:[a-z0-9]+]] = %c0 to
// The next tile's scores, from its own slot.
// CHECK:           %[[NEXTI:[0-9]+]] = arith.addi %[[I]], %c1
// CHECK:           %[[SLOT:[0-9]+]] = arith.remui %[[NEXTI]], %c2
// CHECK:           %[[NEXT:s_[0-9]+]] = kvbuffer.mma
// CHECK-SAME:        transpose_b
// This tile's softmax, on the scores that the loop carries, and second product.
// CHECK:           kvbuffer.mask %arg8
// CHECK:           kvbuffer.online_softmax
// CHECK:           kvbuffer.mma
// CHECK-NOT:       transpose_b
// CHECK:           scf.yield
// CHECK-SAME:        %[[NEXT]]
// Behind the loop no scores are computed.
// CHECK-NOT:     transpose_b
// CHECK:         kvbuffer.online_softmax
// CHECK-NOT:     transpose_b
// CHECK:         kvbuffer.mma
// CHECK-NOT:     transpose_b
// CHECK:       kvbuffer.softmax_finish

// A schedule that does not ask for it is left alone.
// OFF-COUNT-1: {transpose_b}
// OFF-NOT:     {transpose_b}
func.func @attend(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
  return
}
