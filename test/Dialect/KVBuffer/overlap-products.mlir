// The product of P and V of tile i - 1 beside the scores and softmax of tile i: the
// first scores and their softmax in front of the loop, the last product behind it,
// all of it only if there is a tile.

// DEFINE: %{schedule} = overlap_products=true
// DEFINE: %{passes} = kvbuf-lower-attention,canonicalize,gpu.module(gpu.func(kvbuf-overlap-products,canonicalize))
// DEFINE: %{run} = kvbuf-opt %s --split-input-file --pass-pipeline="builtin.module(kvbuf-choose-schedule{schedule=BN=32,q_in_regs=false,%{schedule}},%{passes})"

// RUN: %{run} | FileCheck %s
// RUN: %{run} --remark-format=emitRemark --remarks-filter=kvbuf-overlap-products 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// A schedule that does not ask for it is left alone.
// REDEFINE: %{schedule} = overlap_products=false
// RUN: %{run} | FileCheck %s --check-prefix=OFF
// OFF-COUNT-3: {transpose_b}
// OFF-NOT:     {transpose_b}

!qo = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>

// REMARK: overlap-products.mlir:[[#@LINE+38]]:3: remark: [Passed] overlap{{.*}}the product of the weights overlaps the next tile's scores and softmax
// CHECK-LABEL: gpu.func @attend
// CHECK:         %[[ANY:.*]] = arith.cmpi sgt, %[[COUNT:[0-9]+]], %c0
// CHECK:         scf.if %[[ANY]] -> (!kvbuffer.fragment<128x64xf32, acc>, !kvbuffer.fragment<128x1xf32, row>, !kvbuffer.fragment<128x1xf32, row>)
// The first scores and their softmax, from the maximum and sum that the loop
// began with. A mask is right for every tile: no branch.
// CHECK:           %[[K0:.*]] = kvbuffer.dram_load %{{.*}} into %kbuf[%c0]
// CHECK:           %[[S0:.*]] = kvbuffer.mma
// CHECK-SAME:        transpose_b
// CHECK:           %[[H0:.*]] = kvbuffer.mask %[[S0]] rows(%[[ROW:.*]], %[[ROWS:.*]]) keys
// CHECK:           %[[P0:.*]], %[[M0:.*]], %[[L0:.*]], %{{.*}} = kvbuffer.online_softmax %[[H0]], %fill, %zero
// CHECK:           %[[LOOP:.*]]:4 = scf.for %[[I:.*]] = %c1 to %[[COUNT]] step %c1 iter_args(%[[ACC:.*]] = %zero, %[[M:.*]] = %[[M0]], %[[L:.*]] = %[[L0]], %[[P:.*]] = %[[P0]])
// This tile's scores; no tile but the first can be cut.
// CHECK:             kvbuffer.dram_load {{.*}} into %kbuf[%[[SLOT:.*]]] {whole}
// CHECK:             %[[S:.*]] = kvbuffer.mma
// CHECK-SAME:          transpose_b
// The product of the tile before, whose V comes from that tile's slot.
// CHECK:             %[[BEFORE:.*]] = arith.subi %[[I]], %c1
// CHECK:             %[[VSLOT:.*]] = arith.remui %[[BEFORE]], %c2
// CHECK:             kvbuffer.dram_load {{.*}} into %vbuf[%[[VSLOT]]] :
// CHECK:             %[[O:.*]] = kvbuffer.mma %[[P]], %{{.*}}, %[[ACC]] :
// The mask's branch stays, for kvbuf-split-masked-loops.
// CHECK:             arith.cmpi slt, %[[I]]
// CHECK:             %[[H:.*]] = scf.if
// CHECK:               kvbuffer.mask %[[S]]
// CHECK:             %[[PN:.*]], %[[MN:.*]], %[[LN:.*]], %[[R:.*]] = kvbuffer.online_softmax %[[H]], %[[M]], %[[L]]
// CHECK:             %[[ON:.*]] = kvbuffer.rescale %[[O]], %[[R]]
// CHECK:             scf.yield %[[ON]], %[[MN]], %[[LN]], %[[PN]]
// CHECK-NOT:       transpose_b
// CHECK:           %[[LAST:.*]] = arith.subi %[[COUNT]], %c1
// CHECK:           %[[LASTSLOT:.*]] = arith.remui %[[LAST]], %c2
// CHECK:           kvbuffer.dram_load {{.*}} into %vbuf[%[[LASTSLOT]]]
// CHECK:           %[[OL:.*]] = kvbuffer.mma %[[LOOP]]#3, %{{.*}}, %[[LOOP]]#0 :
// CHECK:           scf.yield %[[OL]], %[[LOOP]]#1, %[[LOOP]]#2
// CHECK:         } else {
// CHECK:           scf.yield %zero, %fill, %zero
// CHECK-NOT:     kvbuffer.mma
func.func @attend(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo, !kv, !kv, !qo
  return
}

// -----

!qo = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>

// With a window on the left the last tiles may be cut too: no load is whole.
// CHECK-LABEL: gpu.func @window
// CHECK-NOT:     {whole}
// CHECK:       gpu.return
func.func @window(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true, left = 100>} : !qo, !kv, !kv, !qo
  return
}

// -----

!qo = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>

// What is done to the scores is done while the product is in flight, too.
// CHECK-LABEL: gpu.func @capped
// CHECK:         %[[S0:.*]] = kvbuffer.mma
// CHECK-SAME:      transpose_b
// CHECK:         %[[C0:.*]] = kvbuffer.softcap %[[S0]]
// CHECK:         %[[H0:.*]] = kvbuffer.mask %[[C0]]
// CHECK:         kvbuffer.online_softmax %[[H0]]
// CHECK:         scf.for
// CHECK:           %[[S:.*]] = kvbuffer.mma
// CHECK-SAME:        transpose_b
// CHECK-NOT:       kvbuffer.softcap
// CHECK:           kvbuffer.mma
// CHECK-NOT:       transpose_b
// CHECK:           %[[C:.*]] = kvbuffer.softcap %[[S]]
// CHECK:           %[[H:.*]] = scf.if
// CHECK:             kvbuffer.mask %[[C]]
// CHECK:           } else {
// CHECK-NEXT:        scf.yield %[[C]]
// CHECK:           kvbuffer.online_softmax %[[H]]
func.func @capped(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>, softcap = 30.0 : f32} : !qo, !kv, !kv, !qo
  return
}
