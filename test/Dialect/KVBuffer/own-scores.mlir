// Functions of scores and visibility as kvbuffer.map of the tile stage. Rows and keys
// that the regions see exist; tiles may go beyond. The region scales, as the softmax
// does otherwise.

// RUN: kvbuf-opt %s --kvbuf-to-tile=chip=sm_80 --mlir-print-local-scope | FileCheck %s

!qo = memref<?x?x4x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>

// CHECK-LABEL: gpu.func @scores(
// CHECK-SAME:    %[[BIAS:[a-z0-9]+]]: memref<4x?x?xf32> {{{.*}}kvbuffer.name = "bias", kvbuffer.shape = [4, "seq_q", "seq_k"]}
// CHECK-SAME:    %[[DOC:[a-z0-9]+]]: memref<?x?xi32> {{{.*}}kvbuffer.name = "capture1", kvbuffer.shape = ["capture1_0", "capture1_1"]}
// CHECK:         kvbuffer.key_range {{.*}}causal = true
// Tiles that may go beyond the last key:
// CHECK:         scf.if
// CHECK:         kvbuffer.map
// CHECK-NEXT:    ^bb0(%[[S:.*]]: f32, %[[R:.*]]: index, %[[C:.*]]: index):
// CHECK-DAG:       %[[R0:.*]] = arith.minsi %[[R]],
// CHECK-DAG:       %[[ROW:.*]] = arith.maxsi %[[R0]],
// CHECK-DAG:       %[[C0:.*]] = arith.minsi %[[C]],
// CHECK-DAG:       %[[KEY:.*]] = arith.maxsi %[[C0]],
// CHECK:           %[[B:.*]] = memref.load %[[BIAS]][%{{.*}}, %[[ROW]], %[[KEY]]]
// CHECK:           %[[SCALED:.*]] = arith.mulf %[[S]], %{{.*}} fastmath<contract> : f32
// CHECK:           %[[T:.*]] = arith.addf %[[SCALED]], %[[B]] fastmath<contract> : f32
// CHECK:           memref.load %[[DOC]]
// CHECK:           %[[SEEN:.*]] = arith.cmpi eq
// CHECK:           %[[LAST:.*]] = arith.select %[[SEEN]], %[[T]], %{{.*}} : f32
// CHECK:           kvbuffer.yield %[[LAST]]
// CHECK:         kvbuffer.mask
// CHECK:         } else {
// CHECK:         kvbuffer.map
// CHECK-NEXT:    ^bb0(%{{.*}}: f32, %[[R2:.*]]: index, %[[C2:.*]]: index):
// CHECK:           %[[R3:.*]] = arith.minsi %[[R2]],
// CHECK:           %[[ROW2:.*]] = arith.maxsi %[[R3]],
// CHECK:           memref.load %[[BIAS]][%{{.*}}, %[[ROW2]], %[[C2]]]
// CHECK:         } {kvbuffer.edge_tiles}
// CHECK:         kvbuffer.online_softmax {{.*}}scale = 1.000000e+00 : f32, unbounded}
// CHECK:         kvbuffer.softmax_finish {{.*}}unbounded}
func.func @scores(%q: !qo, %k: !kv, %v: !kv,
    %bias: memref<4x?x?xf32> {kvbuffer.name = "bias", kvbuffer.shape = [4, "seq_q", "seq_k"]},
    %doc: memref<?x?xi32>, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo, !kv, !kv, !qo
    captures(%bias, %doc : memref<4x?x?xf32>, memref<?x?xi32>)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index, %b: memref<4x?x?xf32>, %d: memref<?x?xi32>):
      %x = memref.load %b[%head, %row, %key] : memref<4x?x?xf32>
      %t = arith.addf %s, %x : f32
      kvbuffer.yield %t : f32
    } visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index, %b: memref<4x?x?xf32>, %d: memref<?x?xi32>):
      %x = memref.load %d[%batch, %row] : memref<?x?xi32>
      %y = memref.load %d[%batch, %key] : memref<?x?xi32>
      %same = arith.cmpi eq, %x, %y : i32
      kvbuffer.yield %same : i1
    }
  return
}

// What is read for the head is read before the loop: rows and keys that there are not do no
// harm, and no key of a tile at the end is another one.
// CHECK-LABEL: gpu.func @slopes(
// CHECK:         memref.load
// CHECK:         scf.if
// CHECK:         kvbuffer.map
// CHECK-NOT:       arith.minsi
// CHECK:           kvbuffer.yield
// CHECK:         kvbuffer.mask
func.func @slopes(%q: !qo, %k: !kv, %v: !kv, %slopes: memref<4xf32>, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo, !kv, !kv, !qo
    captures(%slopes : memref<4xf32>)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index, %slopes_: memref<4xf32>):
      %slope = memref.load %slopes_[%head] : memref<4xf32>
      %distance = arith.subi %key, %at : index
      %i = arith.index_cast %distance : index to i32
      %f = arith.sitofp %i : i32 to f32
      %bias = arith.mulf %slope, %f : f32
      %t = arith.addf %s, %bias : f32
      kvbuffer.yield %t : f32
    }
  return
}
