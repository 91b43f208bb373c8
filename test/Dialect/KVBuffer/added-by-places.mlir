// Where halves of a block take turns and products leave few cycles for vector instructions, the
// product of Q and K begins with what a function adds by a factor of its head, as ALiBi's slope:
// over the scale, which the softmax takes. Lanes compute it in part A, while the other half
// multiplies.

// RUN: kvbuf-opt %s --kvbuf-to-tile=chip=gfx950 --mlir-print-local-scope | FileCheck %s
// RUN: kvbuf-opt %s --kvbuf-to-scheduled=chip=gfx950 --mlir-print-local-scope | FileCheck %s --check-prefix=PARTS
// A map of a program's own that it reads comes along.
// RUN: kvbuf-opt %s --kvbuf-to-tile=chip=gfx950 --mlir-print-local-scope | sed 's/^ *%mapped = kvbuffer.map \(%zero_[0-9]*\)\( at(.*{\)$/%own = kvbuffer.map \1\2\n^bb0(%x: f32, %r: index, %c: index):\n%e = math.exp %x : f32\nkvbuffer.yield %e : f32\n}\n%mapped = kvbuffer.map %own\2/' | kvbuf-opt --kvbuf-to-scheduled --mlir-print-local-scope | FileCheck %s --check-prefix=OWN
// At 192 columns gfx942's products hide it, and at 128 there are no registers for it.
// RUN: sed -e 's/x64xbf16/x192xbf16/g; s/head_size = 64/head_size = 192/' %s | kvbuf-opt --kvbuf-to-tile=chip=gfx942 --mlir-print-local-scope | FileCheck %s --check-prefix=BEHIND
// RUN: sed -e 's/x64xbf16/x128xbf16/g; s/head_size = 64/head_size = 128/' %s | kvbuf-opt --kvbuf-to-tile=chip=gfx942 --mlir-print-local-scope | FileCheck %s --check-prefix=BEHIND
// Nor without turns.
// RUN: kvbuf-opt %s --kvbuf-to-tile="chip=gfx950 schedule=ping_pong=false" --mlir-print-local-scope | FileCheck %s --check-prefix=BEHIND

!qo = memref<?x?x4x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>

// CHECK-LABEL: func @slopes(
// CHECK:         %[[SLOPE:.*]] = memref.load %{{.*}} : memref<4xf32>
// CHECK:         scf.for
// CHECK:           %[[NOTHING:.*]] = kvbuffer.fragment_fill
// CHECK:           %[[BEGIN:.*]] = kvbuffer.map %[[NOTHING]] at(
// CHECK-NEXT:      ^bb0(
// CHECK:             %[[FAR:.*]] = arith.sitofp
// CHECK-NEXT:        %[[OVER:.*]] = arith.mulf %[[SLOPE]], %{{.*}} {kvbuffer.finite_product} : f32
// CHECK-NEXT:        %[[ADDED:.*]] = arith.mulf %[[FAR]], %[[OVER]] : f32
// CHECK-NEXT:        kvbuffer.yield %[[ADDED]]
// CHECK:           kvbuffer.mma %{{.*}}, %{{.*}}, %[[BEGIN]] {transpose_b}
// CHECK-NOT:       kvbuffer.map
// CHECK:           kvbuffer.online_softmax {{.*}}scale = 1.250000e-01 : f32, unbounded}
// PARTS-LABEL: func @slopes(
// PARTS:         scf.for
// PARTS:           kvbuffer.apply_raise
// PARTS:           kvbuffer.fragment_load
// PARTS:           %[[BEGIN:.*]] = kvbuffer.map
// PARTS:           kvbuffer.lds_stage
// PARTS-NEXT:      kvbuffer.mma %{{.*}}, %{{.*}}, %[[BEGIN]] {transpose_b}
// PARTS:           kvbuffer.meet
// OWN-LABEL:   func @slopes(
// OWN:           scf.for
// OWN:             kvbuffer.apply_raise
// OWN:             %[[MADE:.*]] = kvbuffer.map
// OWN:               math.exp
// OWN:             %[[BEGIN:.*]] = kvbuffer.map %[[MADE]]
// OWN:             kvbuffer.lds_stage
// OWN-NEXT:        kvbuffer.mma %{{.*}}, %{{.*}}, %[[BEGIN]] {transpose_b}
// BEHIND-LABEL: func @slopes(
// BEHIND:         scf.for
// BEHIND-NOT:       kvbuffer.map
// BEHIND:           kvbuffer.mma
// BEHIND:           kvbuffer.map
func.func @slopes(%q: !qo, %k: !kv, %v: !kv, %slopes: memref<4xf32>, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
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

// What may be the lowest number stays finite: the product is cut off, not its factor alone.
// CHECK-LABEL: func @hidden(
// CHECK:         scf.for
// CHECK:           %[[BEGIN:.*]] = kvbuffer.map
// CHECK:             %[[FAR:.*]] = arith.select
// CHECK-NEXT:        %[[BIAS:.*]] = arith.mulf %[[FAR]], %{{.*}} : f32
// CHECK-NEXT:        %[[ADDED:.*]] = arith.mulf %[[BIAS]], %{{.*}} {kvbuffer.finite_product} : f32
// CHECK-NEXT:        kvbuffer.yield %[[ADDED]]
// CHECK:           kvbuffer.mma %{{.*}}, %{{.*}}, %[[BEGIN]] {transpose_b}
func.func @hidden(%q: !qo, %k: !kv, %v: !kv, %slopes: memref<4xf32>, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%slopes : memref<4xf32>)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index, %slopes_: memref<4xf32>):
      %slope = memref.load %slopes_[%head] : memref<4xf32>
      %lowest = arith.constant 0xFF7FFFFF : f32
      %distance = arith.subi %key, %at : index
      %i = arith.index_cast %distance : index to i32
      %f = arith.sitofp %i : i32 to f32
      %seven = arith.constant 7 : i32
      %odd = arith.cmpi eq, %i, %seven : i32
      %far = arith.select %odd, %lowest, %f : f32
      %bias = arith.mulf %far, %slope : f32
      %t = arith.addf %s, %bias : f32
      kvbuffer.yield %t : f32
    }
  return
}

// What has no such factor would be divided for each score.
// CHECK-LABEL: func @prefix(
// CHECK:         scf.for
// CHECK-NOT:       kvbuffer.map
// CHECK:           kvbuffer.mma
// CHECK:           kvbuffer.map
func.func @prefix(%q: !qo, %k: !kv, %v: !kv, %slopes: memref<4xf32>, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%slopes : memref<4xf32>)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index, %slopes_: memref<4xf32>):
      %distance = arith.subi %key, %at : index
      %i = arith.index_cast %distance : index to i32
      %f = arith.sitofp %i : i32 to f32
      %t = arith.addf %s, %f : f32
      kvbuffer.yield %t : f32
    }
  return
}
