// What a function of scores adds, and does not follow from them, the product of Q and K
// begins with, over the factor of the score, which the softmax takes; where the factor is a
// power of two, queries are multiplied by it where they lie. Each other function maps the
// product.

// RUN: kvbuf-opt %s --kvbuf-to-tile=chip=sm_90a --mlir-print-local-scope | FileCheck %s

!qo = memref<?x?x4x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>
!t = memref<?x?xf32>

// A difference, twice the score, a number for the head: 2 / 8 q k - t + a.
// CHECK-LABEL: func @sums(
// CHECK:         kvbuffer.lds_stage %{{.*}} {kvbuffer.scaled_by = 2.500000e-01 : f32}
// CHECK:         %[[A:.*]] = memref.load %arg5[%{{.*}}] : memref<4xf32>
// CHECK:         scf.for
// CHECK:           %[[T:.*]] = kvbuffer.fragment_load %{{.*}} -> <192x80xf32, acc>
// CHECK:           %[[BEGIN:.*]] = kvbuffer.map %[[T]] at(
// CHECK-NEXT:      ^bb0(%[[X:.*]]: f32, %{{.*}}: index, %{{.*}}: index):
// CHECK-NEXT:        %[[SUM:.*]] = arith.subf %[[A]], %[[X]] : f32
// CHECK-NEXT:        kvbuffer.yield %[[SUM]]
// CHECK:           %[[S:.*]] = kvbuffer.mma %{{.*}}, %{{.*}}, %[[BEGIN]] {transpose_b}
// CHECK-NOT:       kvbuffer.map
// CHECK:           kvbuffer.online_softmax {{.*}}{masked, scale = 1.000000e+00 : f32, unbounded}
// CHECK:         kvbuffer.softmax_finish {{.*}}{scale = 1.000000e+00 : f32, unbounded}
func.func @sums(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %t: !t, %a: memref<4xf32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%t, %a : !t, memref<4xf32>)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index, %t_: !t, %a_: memref<4xf32>):
      %two = arith.constant 2.0 : f32
      %x = memref.load %t_[%row, %key] : !t
      %y = memref.load %a_[%head] : memref<4xf32>
      %double = arith.mulf %s, %two : f32
      %less = arith.subf %double, %x : f32
      %sum = arith.addf %y, %less : f32
      kvbuffer.yield %sum : f32
    }
  return
}

// A function of visibility hides scores behind the product. The scale is no power of two.
// CHECK-LABEL: func @hidden(
// CHECK-NOT:     scaled_by
// CHECK:           %[[BEGIN:.*]] = kvbuffer.map
// CHECK:             arith.mulf {{.*}}kvbuffer.finite_product
// CHECK:           %[[S:.*]] = kvbuffer.mma %{{.*}}, %{{.*}}, %[[BEGIN]] {transpose_b}
// CHECK:           kvbuffer.map %[[S]]
// CHECK-NOT:         arith.addf
// CHECK:             arith.select
// CHECK:           kvbuffer.online_softmax
func.func @hidden(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %t: !t, %ends: memref<?xi32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {scale = 0.1 : f32} : !qo, !kv, !kv, !qo
    captures(%t, %ends : !t, memref<?xi32>)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index, %t_: !t, %e: memref<?xi32>):
      %x = memref.load %t_[%row, %key] : !t
      %sum = arith.addf %x, %s : f32
      kvbuffer.yield %sum : f32
    }
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index, %t_: !t, %e: memref<?xi32>):
      %end = memref.load %e[%row] : memref<?xi32>
      %n = arith.index_cast %key : index to i32
      %far = arith.remsi %n, %end : i32
      %c0 = arith.constant 0 : i32
      %seen = arith.cmpi ne, %far, %c0 : i32
      kvbuffer.yield %seen : i1
    }
  return
}

// What a capped score is added to, what a score is multiplied by, what depends on it, and
// what lanes read by the row.
// CHECK-LABEL: func @capped(
// CHECK:         %[[S:.*]] = kvbuffer.mma
// CHECK:         kvbuffer.softcap %[[S]]
// CHECK:         kvbuffer.map
// CHECK:           arith.addf
// CHECK-NOT:     kvbuffer.finite_product
func.func @capped(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %t: !t) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {softcap = 30.0 : f32} : !qo, !kv, !kv, !qo
    captures(%t : !t)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index, %t_: !t):
      %x = memref.load %t_[%row, %key] : !t
      %sum = arith.addf %s, %x : f32
      kvbuffer.yield %sum : f32
    }
  return
}

// CHECK-LABEL: func @weighed(
// CHECK-NOT:     kvbuffer.finite_product
func.func @weighed(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %t: !t) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%t : !t)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index, %t_: !t):
      %x = memref.load %t_[%row, %key] : !t
      %product = arith.mulf %s, %x : f32
      kvbuffer.yield %product : f32
    }
  return
}

// CHECK-LABEL: func @negative(
// CHECK-NOT:     kvbuffer.finite_product
func.func @negative(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %t: !t) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%t : !t)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index, %t_: !t):
      %x = memref.load %t_[%row, %key] : !t
      %less = arith.subf %x, %s : f32
      kvbuffer.yield %less : f32
    }
  return
}

// CHECK-LABEL: func @twice(
// CHECK-NOT:     kvbuffer.finite_product
func.func @twice(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %t: !t) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%t : !t)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index, %t_: !t):
      %x = memref.load %t_[%row, %key] : !t
      %sum = arith.addf %s, %x : f32
      %more = arith.addf %sum, %s : f32
      kvbuffer.yield %more : f32
    }
  return
}

// CHECK-LABEL: func @by_row(
// CHECK-NOT:     kvbuffer.finite_product
func.func @by_row(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %t: !t, %r: memref<?xf32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%t, %r : !t, memref<?xf32>)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index, %t_: !t, %r_: memref<?xf32>):
      %x = memref.load %t_[%row, %key] : !t
      %y = memref.load %r_[%row] : memref<?xf32>
      %sum = arith.addf %s, %x : f32
      %more = arith.addf %sum, %y : f32
      kvbuffer.yield %more : f32
    }
  return
}

// Who asks for the log-sum-exps of rows that all keys are hidden of by f32's lowest number
// gets those.
// CHECK-LABEL: func @summed(
// CHECK-NOT:     kvbuffer.finite_product
func.func @summed(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %lse: memref<?x4x?xf32>, %t: !t) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) lse(%lse) : !qo, !kv, !kv, !qo, lse memref<?x4x?xf32>
    captures(%t : !t)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index, %t_: !t):
      %x = memref.load %t_[%row, %key] : !t
      %sum = arith.addf %s, %x : f32
      kvbuffer.yield %sum : f32
    }
  return
}

// A softmax that multiplied by more than 1.38, 2 in base 2, would take the lowest scores out of
// f32's range.
// CHECK-LABEL: func @steep(
// CHECK-NOT:     kvbuffer.finite_product
// CHECK:         kvbuffer.online_softmax {{.*}}scale = 1.000000e+00 : f32, unbounded
func.func @steep(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %t: !t) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {scale = 1.4 : f32} : !qo, !kv, !kv, !qo
    captures(%t : !t)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index, %t_: !t):
      %x = memref.load %t_[%row, %key] : !t
      %sum = arith.addf %s, %x : f32
      kvbuffer.yield %sum : f32
    }
  return
}

// So it would if queries took the scale of sums that are doubled, and the softmax the 2.
// CHECK-LABEL: func @doubled(
// CHECK-NOT:     scaled_by
// CHECK:         arith.mulf {{.*}}kvbuffer.finite_product
// CHECK:         kvbuffer.online_softmax {{.*}}scale = 2.500000e-01 : f32, unbounded
func.func @doubled(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %t: !t) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%t : !t)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index, %t_: !t):
      %x = memref.load %t_[%row, %key] : !t
      %sum = arith.addf %s, %x : f32
      %two = arith.constant 2.0 : f32
      %double = arith.mulf %sum, %two : f32
      kvbuffer.yield %double : f32
    }
  return
}

// At 256 columns a tile has few keys beside slots of words: half of Q's columns have
// registers, and the product of the others, which come from LDS, goes on with that of these.
// CHECK-LABEL: func @wide(
// CHECK:         %[[Q:.*]] = kvbuffer.lds_stage %{{.*}} {kvbuffer.scaled_by = 6.250000e-02 : f32}
// CHECK-NEXT:    %[[HELD:.*]] = kvbuffer.fragment_load %[[Q]][0, 0] : {{.*}} -> <128x128xbf16, a>
// CHECK:         scf.for
// CHECK:           %[[BEGIN:.*]] = kvbuffer.map
// CHECK:           %[[K:.*]] = kvbuffer.fragment_load %[[KS:.*]][0, 0] contracted(cols) : {{.*}} -> <48x128xbf16, b>
// CHECK-NEXT:      %[[FIRST:.*]] = kvbuffer.mma %[[HELD]], %[[K]], %[[BEGIN]] {transpose_b}
// CHECK-NEXT:      %[[REST:.*]] = kvbuffer.fragment_load %[[Q]][0, 128] : {{.*}} -> <128x128xbf16, a>
// CHECK-NEXT:      %[[KREST:.*]] = kvbuffer.fragment_load %[[KS]][0, 128] contracted(cols) : {{.*}} -> <48x128xbf16, b>
// CHECK-NEXT:      kvbuffer.mma %[[REST]], %[[KREST]], %[[FIRST]] {transpose_b}
func.func @wide(%q: memref<?x?x4x256xbf16>, %k: !kvbuffer.cache<dense, bf16, heads = 4, head_size = 256>, %v: !kvbuffer.cache<dense, bf16, heads = 4, head_size = 256>, %o: memref<?x?x4x256xbf16>, %t: !t) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : memref<?x?x4x256xbf16>, !kvbuffer.cache<dense, bf16, heads = 4, head_size = 256>, !kvbuffer.cache<dense, bf16, heads = 4, head_size = 256>, memref<?x?x4x256xbf16>
    captures(%t : !t)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index, %t_: !t):
      %x = memref.load %t_[%row, %key] : !t
      %sum = arith.addf %s, %x : f32
      kvbuffer.yield %sum : f32
    }
  return
}
