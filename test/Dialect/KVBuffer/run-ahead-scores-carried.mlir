// What else a loop does stays with its iteration. Which value is the larger one,
// the program chooses: only the choices that the pipeliner makes fold away.

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-run-ahead{orders=scores},canonicalize)))" | FileCheck %s

#schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16], overlap = true>
!acc = !kvbuffer.fragment<16x16xf32, acc>
!row = !kvbuffer.fragment<16x1xf32, row>
!a = !kvbuffer.fragment<16x16xbf16, a>
!b = !kvbuffer.fragment<16x16xbf16, b>
gpu.module @m {
  // CHECK-LABEL: gpu.func @largest
  // CHECK-SAME:    %[[LB:[a-z0-9]+]]: index, %[[N:[a-z0-9]+]]: index, %[[BEST:[a-z0-9]+]]: index
  // CHECK:         %[[ANY:.*]] = arith.cmpi slt, %[[LB]], %[[N]]
  // CHECK:         scf.if %[[ANY]]
  // CHECK:           %[[LAST:.*]] = arith.subi %[[N]], %c1
  // CHECK:           %[[S0:.*]] = kvbuffer.mma
  // CHECK:           %[[R:.*]]:4 = scf.for %[[I:.*]] = %[[LB]] to %[[LAST]] step %c1 iter_args(%{{.*}}, %{{.*}}, %[[B:.*]] = %[[BEST]], %[[S:.*]] = %[[S0]])
  // CHECK:             %[[NEXT:.*]] = kvbuffer.mma
  // CHECK:             kvbuffer.online_softmax %[[S]]
  // CHECK:             %[[MORE:.*]] = arith.cmpi ugt, %[[I]], %[[B]]
  // CHECK:             %[[CHOSEN:.*]] = arith.select %[[MORE]], %[[I]], %[[B]]
  // CHECK:             scf.yield %{{.*}}, %{{.*}}, %[[CHOSEN]], %[[NEXT]]
  // CHECK:           %[[MORE:.*]] = arith.cmpi ugt, %[[LAST]], %[[R]]#2
  // CHECK:           %[[CHOSEN:.*]] = arith.select %[[MORE]], %[[LAST]], %[[R]]#2
  // CHECK-NOT:       arith.select
  // CHECK:           scf.yield %[[CHOSEN]]
  // CHECK:         } else {
  // CHECK-NEXT:      scf.yield %[[BEST]]
  gpu.func @largest(%lb: index, %n: index, %best: index, %q: !a, %k: !b, %zero: !acc, %r0: !row, %out: memref<index>) kernel attributes {kvbuffer.schedule = #schedule} {
    %c1 = arith.constant 1 : index
    %r:3 = scf.for %i = %lb to %n step %c1 iter_args(%m = %r0, %l = %r0, %b = %best) -> (!row, !row, index) {
      %s = kvbuffer.mma %q, %k, %zero {transpose_b} : !a, !b, !acc
      %p, %m1, %l1, %rs = kvbuffer.online_softmax %s, %m, %l {scale = 1.0 : f32} : !acc, !row -> !a
      %more = arith.cmpi ugt, %i, %b : index
      %chosen = arith.select %more, %i, %b : index
      scf.yield %m1, %l1, %chosen : !row, !row, index
    }
    memref.store %r#2, %out[] : memref<index>
    gpu.return
  }

  // A comparison without signs is not the same of a number that is one less: of
  // `far` = 0, say.
  // CHECK-LABEL: gpu.func @unsigned
  // CHECK-SAME:    %[[FAR:[a-z0-9]+]]: index) kernel
  // CHECK:           scf.for %[[I:.*]] = %c0 to
  // CHECK:             %[[NEXT:.*]] = arith.addi %[[I]], %c1
  // CHECK:             arith.cmpi ult, %[[NEXT]], %[[FAR]]
  gpu.func @unsigned(%q: !a, %x: !b, %zero: !acc, %r0: !row, %out: memref<16xf32>, %n: index, %far: index) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %m = %r0, %l = %r0) -> (!acc, !row, !row) {
      %near = arith.cmpi ult, %i, %far : index
      %s = kvbuffer.mma %q, %x, %zero {transpose_b} : !a, !b, !acc
      %m1, %f, %raised = kvbuffer.raise_max %s, %m exact(%near) {scale = 1.0 : f32} : !acc, !row
      %e, %excess = kvbuffer.softmax_head %s, %m1 {operand = bf16, scale = 1.0 : f32} : !acc, !row
      %scaled, %l0 = kvbuffer.apply_raise %raised, %f, %acc, %l : !acc, !row
      %p, %l1 = kvbuffer.softmax_tail %e, %l0 excess(%excess) : !acc, !row -> !a
      %o = kvbuffer.mma %p, %x, %scaled : !a, !b, !acc
      scf.yield %o, %m1, %l1 : !acc, !row, !row
    }
    kvbuffer.row_store %r#2, %out[%c0] valid(%n) : !row, memref<16xf32>
    gpu.return
  }
}
