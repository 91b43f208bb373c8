// Functions of scores in kernels with warp roles: consumers map the scores between the
// product of Q and K and the softmax, while the product of P and V of the tile before is
// in flight; groups take turns; maxima are compared as integers. Tiles that go beyond
// the last key have a loop of their own. What a function of visibility reads by the key
// has registers of its own, and tiles fewer keys for it.

// RUN: kvbuf-opt %s --kvbuf-to-scheduled=chip=sm_90a --mlir-print-local-scope | FileCheck %s

!qo = memref<?x?x4x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>

// CHECK-LABEL: gpu.func @documents(
// CHECK-SAME:    BM = 192, BN = 96,
// CHECK:         kvbuffer.team @consumers
// CHECK:         scf.for
// CHECK:           kvbuffer.mask
// CHECK:         scf.while
// CHECK:         scf.for
// CHECK:           kvbuffer.turn_wait
// CHECK:           kvbuffer.mma_start
// CHECK:           kvbuffer.mma_start
// CHECK:           kvbuffer.turn_pass
// CHECK:           %[[S:[a-z0-9_]+]] = kvbuffer.mma_wait {{.*}}younger = 1
// CHECK:           %[[MAPPED:[a-z0-9_]+]] = kvbuffer.map %[[S]]
// CHECK:             memref.load
// CHECK-NOT:       kvbuffer.mask
// CHECK:           kvbuffer.online_softmax %[[MAPPED]], {{.*}}not_negative
// CHECK:           kvbuffer.mma_wait {{.*}}younger = 0
// CHECK:         kvbuffer.team @producers
// CHECK-NOT:     kvbuffer.map
func.func @documents(%q: !qo, %k: !kv, %v: !kv,
    %doc: memref<?x?xi32> {kvbuffer.name = "doc", kvbuffer.shape = ["batch", "seq_k"]}, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%doc : memref<?x?xi32>)
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index, %d: memref<?x?xi32>):
      %x = memref.load %d[%batch, %row] : memref<?x?xi32>
      %y = memref.load %d[%batch, %key] : memref<?x?xi32>
      %same = arith.cmpi eq, %x, %y : i32
      kvbuffer.yield %same : i1
    }
  return
}
