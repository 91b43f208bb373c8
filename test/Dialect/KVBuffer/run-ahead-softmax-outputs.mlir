// A loop with the result in two parts: both are rescaled by one factor and get the
// product of the same weights, which is an iteration late.

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-run-ahead{orders=softmax},canonicalize)))" --remark-format=emitRemark --remarks-filter=kvbuf-run-ahead 2>&1 | FileCheck %s

#schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16], overlap_products = true>
#buf = #kvbuffer.kv_buffer<16x16xbf16, stages = 2>
!slots = !kvbuffer.buffer<#buf>
!tile = !kvbuffer.tile<16x16xbf16>
!acc = !kvbuffer.fragment<16x16xf32, acc>
!half = !kvbuffer.fragment<16x8xf32, acc>
!row = !kvbuffer.fragment<16x1xf32, row>
!a = !kvbuffer.fragment<16x16xbf16, a>
!b = !kvbuffer.fragment<16x16xbf16, b>
!bh = !kvbuffer.fragment<16x8xbf16, b>
gpu.module @m {
  // CHECK: remark: [Passed] overlap
  // CHECK-LABEL: gpu.func @attend
  // CHECK:         scf.if
  // CHECK:           %[[S0:.*]] = kvbuffer.mma {{.*}} {transpose_b}
  // CHECK:           %[[P0:.*]], %[[M0:.*]], %[[L0:.*]], %[[F0:.*]] = kvbuffer.online_softmax %[[S0]]
  // CHECK-DAG:       %[[X0:.*]] = kvbuffer.rescale %arg3, %[[F0]]
  // CHECK-DAG:       %[[Y0:.*]] = kvbuffer.rescale %arg4, %[[F0]]
  // CHECK:           %[[LOOP:.*]]:5 = scf.for {{.*}} iter_args(%[[X:.*]] = %[[X0]], %[[Y:.*]] = %[[Y0]], %[[M:.*]] = %[[M0]], %[[L:.*]] = %[[L0]], %[[P:.*]] = %[[P0]])
  // CHECK:             %[[S:.*]] = kvbuffer.mma {{.*}} {transpose_b}
  // CHECK:             %[[XO:.*]] = kvbuffer.mma %[[P]], %{{.*}}, %[[X]] :
  // CHECK:             %[[YO:.*]] = kvbuffer.mma %[[P]], %{{.*}}, %[[Y]] :
  // CHECK:             %[[PN:.*]], %[[MN:.*]], %[[LN:.*]], %[[F:.*]] = kvbuffer.online_softmax %[[S]], %[[M]], %[[L]]
  // CHECK-DAG:         %[[XN:.*]] = kvbuffer.rescale %[[XO]], %[[F]]
  // CHECK-DAG:         %[[YN:.*]] = kvbuffer.rescale %[[YO]], %[[F]]
  // CHECK:             scf.yield %[[XN]], %[[YN]], %[[MN]], %[[LN]], %[[PN]]
  // CHECK:           kvbuffer.mma %[[LOOP]]#4, %{{.*}}, %[[LOOP]]#0 :
  // CHECK:           kvbuffer.mma %[[LOOP]]#4, %{{.*}}, %[[LOOP]]#1 :
  gpu.func @attend(%q: !a, %tile: !tile, %zero: !acc, %z1: !half, %z2: !half, %m0: !row, %l0: !row, %n: index, %out: !kvbuffer.tile<16x8xbf16>) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %k_slots = kvbuffer.alloc : !slots
    %v_slots = kvbuffer.alloc : !slots
    %r:4 = scf.for %i = %c0 to %n step %c1 iter_args(%o1 = %z1, %o2 = %z2, %m = %m0, %l = %l0) -> (!half, !half, !row, !row) {
      %kt = kvbuffer.dram_load %tile into %k_slots : !tile, !slots
      %ks = kvbuffer.lds_stage %kt : !kvbuffer.token<#buf>
      %kf = kvbuffer.fragment_load %ks[0, 0] contracted(cols) : !kvbuffer.staged<#buf> -> !b
      %sc = kvbuffer.mma %q, %kf, %zero {transpose_b} : !a, !b, !acc
      %p, %m1, %l1, %f = kvbuffer.online_softmax %sc, %m, %l {scale = 1.0 : f32} : !acc, !row -> !a
      %x1 = kvbuffer.rescale %o1, %f : !half, !row
      %x2 = kvbuffer.rescale %o2, %f : !half, !row
      %vt = kvbuffer.dram_load %tile into %v_slots : !tile, !slots
      %vs = kvbuffer.lds_stage %vt : !kvbuffer.token<#buf>
      %v1 = kvbuffer.fragment_load %vs[0, 0] contracted(rows) : !kvbuffer.staged<#buf> -> !bh
      %v2 = kvbuffer.fragment_load %vs[0, 8] contracted(rows) : !kvbuffer.staged<#buf> -> !bh
      %y1 = kvbuffer.mma %p, %v1, %x1 : !a, !bh, !half
      %y2 = kvbuffer.mma %p, %v2, %x2 : !a, !bh, !half
      scf.yield %y1, %y2, %m1, %l1 : !half, !half, !row, !row
    }
    %left = kvbuffer.fragment_convert %r#0 : !half -> !kvbuffer.fragment<16x8xbf16, acc>
    kvbuffer.fragment_store %left, %out : !kvbuffer.fragment<16x8xbf16, acc>, !kvbuffer.tile<16x8xbf16>
    %right = kvbuffer.fragment_convert %r#1 : !half -> !kvbuffer.fragment<16x8xbf16, acc>
    kvbuffer.fragment_store %right, %out : !kvbuffer.fragment<16x8xbf16, acc>, !kvbuffer.tile<16x8xbf16>
    gpu.return
  }
}
