// Constants of a function of scores stay in its region, and are not taken for one from
// outside, whatever general passes see.

// RUN: kvbuf-opt %s --canonicalize --cse --mlir-print-local-scope | FileCheck %s

!qo = memref<?x?x4x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>

// CHECK-LABEL: func.func @twice(
// CHECK:         arith.constant 2.000000e+00
// CHECK-NEXT:    memref.store
// CHECK-NEXT:    kvbuffer.attention
// CHECK:         ^bb0(%[[S:[a-z0-9]+]]: f32
// CHECK-NEXT:      %[[TWO:.*]] = arith.constant 2.000000e+00
// CHECK-NEXT:      %[[X:.*]] = arith.mulf %[[S]], %[[TWO]]
// CHECK-NEXT:      kvbuffer.yield %[[X]]
func.func @twice(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %m: memref<f32>) {
  %two = arith.constant 2.0 : f32
  memref.store %two, %m[] : memref<f32>
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index):
      %also = arith.constant 2.0 : f32
      %x = arith.mulf %s, %also : f32
      kvbuffer.yield %x : f32
    }
  return
}
