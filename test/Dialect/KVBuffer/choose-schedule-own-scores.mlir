// At 65 to 128 columns kernels with functions of scores take turns: what a function adds
// to the softmax only turns hide. Blocks of clusters do, too, but under a mask blocks are
// their own. Where groups always take turns, or never, clusters stay.

// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=sm_90a --mlir-print-local-scope | FileCheck %s

!q64 = memref<?x4096x2x64xbf16>
!c64 = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
!q128 = memref<?x4096x2x128xbf16>
!c128 = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>
!q256 = memref<?x4096x2x256xbf16>
!c256 = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 256>

// CHECK-LABEL: func.func @plain128
// CHECK-NOT:   ping_pong
// CHECK:       cluster = 2
func.func @plain128(%q: !q128, %k: !c128, %v: !c128, %o: !q128) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q128, !c128, !c128, !q128
  return
}

// CHECK-LABEL: func.func @score128
// CHECK:       ping_pong = true{{.*}}cluster = 2
func.func @score128(%q: !q128, %k: !c128, %v: !c128, %o: !q128) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q128, !c128, !c128, !q128
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index):
      %t = arith.addf %s, %s : f32
      kvbuffer.yield %t : f32
    }
  return
}

// Biases of 16 bits that products begin with, and lanes multiply, leave Q its registers in
// clusters, which take no turns then.
// CHECK-LABEL: func.func @bias128
// CHECK-NOT:   ping_pong
// CHECK:       q_in_regs = true{{.*}}cluster = 2
// CHECK:       kvbuffer.yield
func.func @bias128(%q: !q128, %k: !c128, %v: !c128, %o: !q128, %bias: memref<2x?x?xbf16>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q128, !c128, !c128, !q128
    captures(%bias : memref<2x?x?xbf16>)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index, %b: memref<2x?x?xbf16>):
      %x = memref.load %b[%head, %row, %key] : memref<2x?x?xbf16>
      %y = arith.extf %x : bf16 to f32
      %t = arith.addf %s, %y : f32
      kvbuffer.yield %t : f32
    }
  return
}

// Where Q takes the scale, a power of two, none is multiplied; under a mask blocks are their
// own; those of f32 take turns, too.
// CHECK-LABEL: func.func @scaled128
// CHECK-NOT:   q_in_regs
// CHECK:       ping_pong = true{{.*}}cluster = 2
func.func @scaled128(%q: !q128, %k: !c128, %v: !c128, %o: !q128, %bias: memref<2x?x?xbf16>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {scale = 0.125 : f32} : !q128, !c128, !c128, !q128
    captures(%bias : memref<2x?x?xbf16>)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index, %b: memref<2x?x?xbf16>):
      %x = memref.load %b[%head, %row, %key] : memref<2x?x?xbf16>
      %y = arith.extf %x : bf16 to f32
      %t = arith.addf %s, %y : f32
      kvbuffer.yield %t : f32
    }
  return
}

// CHECK-LABEL: func.func @masked128
// CHECK-NOT:   q_in_regs
// CHECK:       ping_pong = true
func.func @masked128(%q: !q128, %k: !c128, %v: !c128, %o: !q128, %bias: memref<2x?x?xbf16>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !q128, !c128, !c128, !q128
    captures(%bias : memref<2x?x?xbf16>)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index, %b: memref<2x?x?xbf16>):
      %x = memref.load %b[%head, %row, %key] : memref<2x?x?xbf16>
      %y = arith.extf %x : bf16 to f32
      %t = arith.addf %s, %y : f32
      kvbuffer.yield %t : f32
    }
  return
}

// CHECK-LABEL: func.func @wide128
// CHECK-NOT:   q_in_regs
// CHECK:       ping_pong = true
func.func @wide128(%q: !q128, %k: !c128, %v: !c128, %o: !q128, %bias: memref<2x?x?xf32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q128, !c128, !c128, !q128
    captures(%bias : memref<2x?x?xf32>)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index, %b: memref<2x?x?xf32>):
      %x = memref.load %b[%head, %row, %key] : memref<2x?x?xf32>
      %t = arith.addf %s, %x : f32
      kvbuffer.yield %t : f32
    }
  return
}

// CHECK-LABEL: func.func @causal128
// CHECK-NOT:   cluster =
// CHECK:       ping_pong = true
// CHECK-NOT:   cluster =
func.func @causal128(%q: !q128, %k: !c128, %v: !c128, %o: !q128) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !q128, !c128, !c128, !q128
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index):
      %t = arith.cmpi ne, %row, %key : index
      kvbuffer.yield %t : i1
    }
  return
}

// What shows keys up to a number leaves tiles out: blocks of their own, without turns.
// CHECK-LABEL: func.func @prefix128
// CHECK-NOT:   {{cluster|ping_pong}} =
// CHECK:       kvbuffer.yield
func.func @prefix128(%q: !q128, %k: !c128, %v: !c128, %o: !q128) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q128, !c128, !c128, !q128
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index):
      %end = arith.constant 1000 : index
      %t = arith.cmpi slt, %key, %end : index
      kvbuffer.yield %t : i1
    }
  return
}

// CHECK-LABEL: func.func @score64
// CHECK:       ping_pong = true{{.*}}cluster = 2
func.func @score64(%q: !q64, %k: !c64, %v: !c64, %o: !q64) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q64, !c64, !c64, !q64
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index):
      %t = arith.addf %s, %s : f32
      kvbuffer.yield %t : f32
    }
  return
}

// CHECK-LABEL: func.func @score256
// CHECK-NOT:   ping_pong
// CHECK:       cluster = 2
func.func @score256(%q: !q256, %k: !c256, %v: !c256, %o: !q256) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q256, !c256, !c256, !q256
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index):
      %t = arith.addf %s, %s : f32
      kvbuffer.yield %t : f32
    }
  return
}
