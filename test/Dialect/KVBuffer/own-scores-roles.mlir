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

// What a function reads for the sequence or the head stands before the loops over keys;
// what follows from it and is an integer, and what it reads by constants from a tensor
// that may be empty, does not.
// CHECK-LABEL: gpu.func @of_head(
// CHECK:         kvbuffer.team @consumers
// CHECK:         %[[SLOPE:.*]] = memref.load %arg4[%{{.*}}] : memref<4xf32>
// CHECK-NEXT:    %[[HALF:.*]] = arith.mulf %[[SLOPE]],
// CHECK:         %[[PREFIX:.*]] = memref.load %arg5[%{{.*}}] : memref<?xi32>
// CHECK:         kvbuffer.online_softmax
// CHECK:         kvbuffer.map
// CHECK-NOT:     memref.load %arg4
// CHECK-NOT:     memref.load %arg5
// CHECK:           arith.mulf %{{.*}}, %[[HALF]]
// CHECK:           %[[END:.*]] = arith.index_cast %[[PREFIX]]
// CHECK:           arith.cmpi slt, %{{.*}}, %[[END]]
// CHECK:           memref.load %arg6[%c0]
func.func @of_head(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %slopes: memref<4xf32>,
                   %prefix: memref<?xi32>, %first: memref<?xf32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%slopes, %prefix, %first : memref<4xf32>, memref<?xi32>, memref<?xf32>)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index,
         %a: memref<4xf32>, %b: memref<?xi32>, %c: memref<?xf32>):
      %slope = memref.load %a[%head] : memref<4xf32>
      %c2 = arith.constant 0.5 : f32
      %half = arith.mulf %slope, %c2 : f32
      %n = arith.index_cast %key : index to i32
      %f = arith.sitofp %n : i32 to f32
      %far = arith.mulf %f, %half : f32
      %x = arith.addf %s, %far : f32
      %end32 = memref.load %b[%batch] : memref<?xi32>
      %end = arith.index_cast %end32 : i32 to index
      %near = arith.cmpi slt, %key, %end : index
      %c0 = arith.constant 0 : index
      %bonus = memref.load %c[%c0] : memref<?xf32>
      %zero = arith.constant 0.0 : f32
      %y = arith.select %near, %bonus, %zero : f32
      %t = arith.addf %x, %y : f32
      kvbuffer.yield %t : f32
    }
  return
}
