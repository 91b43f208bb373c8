// Where halves of a block take turns, products of tiles at an edge begin with the mask, in part A:
// a score that begins with -inf is -inf. Nothing stands behind them.

// RUN: kvbuf-opt %s --kvbuf-to-tile=chip=gfx950 --mlir-print-local-scope | FileCheck %s
// RUN: kvbuf-opt %s --kvbuf-to-scheduled=chip=gfx950 --mlir-print-local-scope | FileCheck %s --check-prefix=PARTS
// gfx942 has no registers for it at 128 columns. Without turns nothing hides what products wait for.
// RUN: sed -e 's/x64xbf16/x128xbf16/g; s/head_size = 64/head_size = 128/g' %s | kvbuf-opt --kvbuf-to-tile=chip=gfx942 --mlir-print-local-scope | FileCheck %s --check-prefix=BEHIND
// RUN: kvbuf-opt %s --kvbuf-to-tile="chip=gfx950 schedule=ping_pong=false" --mlir-print-local-scope | FileCheck %s --check-prefix=BEHIND
// Nor of other chips.
// RUN: kvbuf-opt %s --kvbuf-to-tile=chip=sm_90a --mlir-print-local-scope | FileCheck %s --check-prefix=BEHIND

!qo = memref<?x?x4x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>

// CHECK-LABEL: func @causal(
// CHECK:         scf.for %[[I:[^ ]+]] =
// CHECK:           %[[EDGE:.*]] = arith.cmpi slt, %[[I]],
// CHECK:           %[[BEGIN:.*]] = scf.if %[[EDGE]]
// CHECK:             %[[MAP:.*]] = kvbuffer.map
// CHECK-NEXT:        ^bb0(%{{.*}}: f32, %[[ROW:.*]]: index, %[[KEY:.*]]: index):
// CHECK:               %[[AT:.*]] = arith.addi %[[ROW]],
// CHECK-NEXT:          %[[DISTANCE:.*]] = arith.subi %[[KEY]], %[[AT]]
// CHECK-NEXT:          %[[HIDDEN:.*]] = arith.cmpi sgt, %[[DISTANCE]], %c0
// CHECK-NEXT:          %[[X:.*]] = arith.select %[[HIDDEN]], %{{.*}}, %{{.*}} : f32
// CHECK-NEXT:          kvbuffer.yield %[[X]]
// CHECK:             scf.yield %[[MAP]]
// CHECK:           kvbuffer.mma %{{.*}}, %{{.*}}, %[[BEGIN]] {transpose_b}
// CHECK-NOT:       kvbuffer.mask
// CHECK:           kvbuffer.online_softmax
// PARTS-LABEL: func @causal(
// PARTS:         scf.for
// PARTS:           kvbuffer.apply_raise
// PARTS:           %[[BEGIN:.*]] = kvbuffer.map
// PARTS:           kvbuffer.lds_stage
// PARTS-NEXT:      kvbuffer.mma %{{.*}}, %{{.*}}, %[[BEGIN]] {transpose_b}
// PARTS:         scf.for
// PARTS-NOT:       kvbuffer.map
// PARTS:           %[[ZERO:.*]] = kvbuffer.fragment_fill 0.0
// PARTS:           kvbuffer.mma %{{.*}}, %{{.*}}, %[[ZERO]] {transpose_b}
// BEHIND-LABEL: func @causal(
// BEHIND-NOT:     kvbuffer.map
// BEHIND:         kvbuffer.mask
func.func @causal(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo, !kv, !kv, !qo
  return
}

// The end of the sequence alone hides keys.
// CHECK-LABEL: func @end(
// CHECK:         scf.if
// CHECK:           kvbuffer.map
// CHECK-NEXT:      ^bb0(%{{.*}}: f32, %{{.*}}: index, %[[KEY:.*]]: index):
// CHECK:             %[[HIDDEN:.*]] = arith.cmpi sge, %[[KEY]], %{{.*}} : index
// CHECK-NOT:     kvbuffer.mask
// CHECK-LABEL: func @window(
func.func @end(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
  return
}

// Both sides of a window that no end hides more of.
// CHECK:         arith.cmpi sgt, %[[D:.*]], %c0
// CHECK-NEXT:    arith.cmpi slt, %[[D]], %c-50
// CHECK-NOT:     kvbuffer.mask
// CHECK-LABEL: func @ahead(
func.func @window(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true, left = 50>} : !qo, !kv, !kv, !qo
  return
}

// Of what the distance and the end hide the mask stands behind the product, and of scores that
// are more than it.
// CHECK-NOT:     kvbuffer.map
// CHECK:         kvbuffer.mask
// CHECK-LABEL: func @capped(
func.func @ahead(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<right = 5>} : !qo, !kv, !kv, !qo
  return
}
// CHECK-NOT:     kvbuffer.map
// CHECK:         kvbuffer.mask
// CHECK-LABEL: func @slopes(
func.func @capped(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>, softcap = 20.0 : f32} : !qo, !kv, !kv, !qo
  return
}

// What a function adds and the mask are one number.
// CHECK:         scf.if
// CHECK:           %[[ADDED:.*]] = arith.mulf %{{[0-9]+}}, %{{[0-9]+}} : f32
// CHECK:           %[[X:.*]] = arith.select %{{.*}}, %{{.*}}, %[[ADDED]] : f32
// CHECK-NEXT:      kvbuffer.yield %[[X]]
// CHECK:         } else {
// CHECK:           kvbuffer.map
// CHECK-NOT:     kvbuffer.mask
func.func @slopes(%q: !qo, %k: !kv, %v: !kv, %slopes: memref<4xf32>, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo, !kv, !kv, !qo
    captures(%slopes : memref<4xf32>)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index, %slopes_: memref<4xf32>):
      %slope = memref.load %slopes_[%head] : memref<4xf32>
      %distance = arith.subi %key, %at : index
      %i = arith.index_cast %distance : index to i32
      %f = arith.sitofp %i : i32 to f32
      %bias = arith.mulf %f, %slope : f32
      %t = arith.addf %s, %bias : f32
      kvbuffer.yield %t : f32
    }
  return
}
