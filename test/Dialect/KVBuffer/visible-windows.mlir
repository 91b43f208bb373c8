// What regions of visibility and scores say that attributes can: comparisons of the key
// with the row's position, and a soft cap of the score. What else they say stays.

// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=sm_90a --mlir-print-local-scope | FileCheck %s

!qo = memref<?x?x4x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>

// CHECK-LABEL: func.func @causal(
// CHECK:      mask = #kvbuffer.mask<causal = true>
// CHECK-NOT:  visible
func.func @causal(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index):
      %t = arith.cmpi sle, %key, %at : index
      kvbuffer.yield %t : i1
    }
  return
}

// CHECK-LABEL: func.func @window(
// CHECK:      mask = #kvbuffer.mask<causal = true, left = 99>
// CHECK-NOT:  visible
func.func @window(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index):
      // In 32 bits, the other way round, and one of them with its edge beside it.
      %i = arith.index_cast %at : index to i32
      %j = arith.index_cast %key : index to i32
      %c100 = arith.constant 100 : i32
      %distance = arith.subi %i, %j : i32
      %near = arith.cmpi slt, %distance, %c100 : i32
      %before = arith.cmpi sge, %i, %j : i32
      %t = arith.andi %near, %before : i1
      kvbuffer.yield %t : i1
    }
  return
}

// CHECK-LABEL: func.func @ahead(
// CHECK:      mask = #kvbuffer.mask<left = 7, right = 5>
// CHECK-NOT:  visible
func.func @ahead(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<left = 7, right = 9>} : !qo, !kv, !kv, !qo
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index):
      // The narrower one of two.
      %c6 = arith.constant 6 : index
      %end = arith.addi %at, %c6 : index
      %t = arith.cmpi sgt, %end, %key : index
      kvbuffer.yield %t : i1
    }
  return
}

// CHECK-LABEL: func.func @documents(
// CHECK:      mask = #kvbuffer.mask<causal = true>
// CHECK:      visible
// CHECK-NOT:    arith.cmpi sle
// CHECK:        %[[SAME:.*]] = arith.cmpi eq
// CHECK-NEXT:    kvbuffer.yield %[[SAME]]
func.func @documents(%q: !qo, %k: !kv, %v: !kv, %doc: memref<?x?xi32>, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%doc : memref<?x?xi32>)
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index, %d: memref<?x?xi32>):
      %x = memref.load %d[%batch, %row] : memref<?x?xi32>
      %y = memref.load %d[%batch, %key] : memref<?x?xi32>
      %same = arith.cmpi eq, %x, %y : i32
      %seen = arith.cmpi sle, %key, %at : index
      %t = arith.andi %seen, %same : i1
      kvbuffer.yield %t : i1
    }
  return
}

// Windows without a row's own position, other conditions and other rows have no
// attribute.

// CHECK-LABEL: func.func @before(
// CHECK-NOT:  mask =
// CHECK:      visible
func.func @before(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index):
      %t = arith.cmpi slt, %key, %at : index
      kvbuffer.yield %t : i1
    }
  return
}

// CHECK-LABEL: func.func @either(
// CHECK-NOT:  mask =
// CHECK:      visible
func.func @either(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index):
      %c8 = arith.constant 8 : index
      %first = arith.cmpi slt, %key, %c8 : index
      %seen = arith.cmpi sle, %key, %at : index
      %t = arith.ori %seen, %first : i1
      kvbuffer.yield %t : i1
    }
  return
}

// CHECK-LABEL: func.func @rows(
// CHECK-NOT:  mask =
// CHECK:      visible
func.func @rows(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index):
      %t = arith.cmpi sle, %key, %row : index
      kvbuffer.yield %t : i1
    }
  return
}

// CHECK-LABEL: func.func @twice(
// CHECK-NOT:  mask =
// CHECK:      visible
func.func @twice(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index):
      %far = arith.addi %key, %key : index
      %t = arith.cmpi sle, %far, %at : index
      kvbuffer.yield %t : i1
    }
  return
}

// CHECK-LABEL: func.func @capped(
// CHECK:      softcap = 3.000000e+01
// CHECK-NOT:  score
func.func @capped(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index):
      %c = arith.constant 3.000000e+01 : f32
      %x = arith.divf %s, %c : f32
      %y = math.tanh %x : f32
      %t = arith.mulf %y, %c : f32
      kvbuffer.yield %t : f32
    }
  return
}

// CHECK-LABEL: func.func @capped_and_moved(
// CHECK:      softcap = 3.000000e+01
// CHECK:      score
// CHECK-NEXT:   ^bb0(%[[S:.*]]: f32,
// CHECK-NOT:    math.tanh
// CHECK:        arith.addf %[[S]],
func.func @capped_and_moved(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index):
      %c = arith.constant 3.000000e+01 : f32
      %one = arith.constant 1.0 : f32
      %inverse = arith.constant 0.0333333351 : f32
      %x = arith.mulf %s, %inverse : f32
      %y = math.tanh %x : f32
      %z = arith.mulf %y, %c : f32
      %t = arith.addf %z, %one : f32
      kvbuffer.yield %t : f32
    }
  return
}

// CHECK-LABEL: func.func @another_cap(
// CHECK-NOT:  softcap
// CHECK:      score
func.func @another_cap(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index):
      %c = arith.constant 3.000000e+01 : f32
      %x = arith.divf %s, %c : f32
      %y = math.tanh %x : f32
      %d = arith.constant 2.900000e+01 : f32
      %t = arith.mulf %y, %d : f32
      kvbuffer.yield %t : f32
    }
  return
}
