// A loop of two softmaxes, each with an accumulator of its own: rows of two heads that
// read the same keys and values. Both run ahead together.

// DEFINE: %{order} = scores
// DEFINE: %{ahead} = overlap
// DEFINE: %{run} = sed 's/@AHEAD@/%{ahead}/' %s | kvbuf-opt --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-run-ahead{orders=%{order}},canonicalize)))" | FileCheck %s
// RUN: %{run} --check-prefix=SCORES
// REDEFINE: %{order} = softmax
// REDEFINE: %{ahead} = overlap_products
// RUN: %{run} --check-prefix=SOFTMAX

#schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16], @AHEAD@ = true>
!acc = !kvbuffer.fragment<16x16xf32, acc>
!row = !kvbuffer.fragment<16x1xf32, row>
!a = !kvbuffer.fragment<16x16xbf16, a>
!b = !kvbuffer.fragment<16x16xbf16, b>
gpu.module @m {
  // The scores of both are carried, beside what the loop carried before.
  // SCORES-LABEL: gpu.func @two_heads(
  // SCORES-SAME:    %[[Q0:[a-z0-9]+]]: {{[^,]*, a>}}, %[[Q1:[a-z0-9]+]]:
  // SCORES:         scf.if
  // SCORES:           %[[S0:.*]] = kvbuffer.mma %[[Q0]], {{.*}} {transpose_b}
  // SCORES:           %[[S1:.*]] = kvbuffer.mma %[[Q1]], {{.*}} {transpose_b}
  // SCORES:           %[[LOOP:.*]]:8 = scf.for {{.*}} iter_args({{.*}}, %[[T0:.*]] = %[[S0]], %[[T1:.*]] = %[[S1]])
  // SCORES-DAG:         %[[N0:.*]] = kvbuffer.mma %[[Q0]], {{.*}} {transpose_b}
  // SCORES-DAG:         %[[N1:.*]] = kvbuffer.mma %[[Q1]], {{.*}} {transpose_b}
  // SCORES:             kvbuffer.online_softmax %[[T0]],
  // SCORES:             kvbuffer.online_softmax %[[T1]],
  // SCORES:             scf.yield {{.*}}, %[[N0]], %[[N1]] :
  // SCORES:           kvbuffer.online_softmax %[[LOOP]]#6,
  // SCORES:           kvbuffer.online_softmax %[[LOOP]]#7,

  // So are the weights; each product adds to its own accumulator.
  // SOFTMAX-LABEL: gpu.func @two_heads(
  // SOFTMAX-SAME:    %[[Q0:[a-z0-9]+]]: {{[^,]*, a>}}, %[[Q1:[a-z0-9]+]]:
  // SOFTMAX:         scf.if
  // SOFTMAX:           %[[P0:.*]], %[[M0:.*]], %[[L0:.*]], %[[F0:.*]] = kvbuffer.online_softmax
  // SOFTMAX:           %[[X0:.*]] = kvbuffer.rescale %{{.*}}, %[[F0]]
  // SOFTMAX:           %[[P1:.*]], %[[M1:.*]], %[[L1:.*]], %[[F1:.*]] = kvbuffer.online_softmax
  // SOFTMAX:           %[[X1:.*]] = kvbuffer.rescale %{{.*}}, %[[F1]]
  // SOFTMAX:           %[[LOOP:.*]]:8 = scf.for {{.*}} iter_args(%[[X:.*]] = %[[X0]], %[[M:.*]] = %[[M0]], %[[L:.*]] = %[[L0]], %[[Y:.*]] = %[[X1]], %[[N:.*]] = %[[M1]], %[[K:.*]] = %[[L1]], %[[P:.*]] = %[[P0]], %[[R:.*]] = %[[P1]])
  // SOFTMAX:             %[[S0:.*]] = kvbuffer.mma %[[Q0]], {{.*}} {transpose_b}
  // SOFTMAX:             %[[S1:.*]] = kvbuffer.mma %[[Q1]], {{.*}} {transpose_b}
  // SOFTMAX:             %[[XO:.*]] = kvbuffer.mma %[[P]], %{{.*}}, %[[X]] :
  // SOFTMAX:             %[[YO:.*]] = kvbuffer.mma %[[R]], %{{.*}}, %[[Y]] :
  // SOFTMAX:             kvbuffer.online_softmax %[[S0]], %[[M]], %[[L]]
  // SOFTMAX:             kvbuffer.rescale %[[XO]],
  // SOFTMAX:             kvbuffer.online_softmax %[[S1]], %[[N]], %[[K]]
  // SOFTMAX:             kvbuffer.rescale %[[YO]],
  // SOFTMAX:           kvbuffer.mma %[[LOOP]]#6, %{{.*}}, %[[LOOP]]#0 :
  // SOFTMAX:           kvbuffer.mma %[[LOOP]]#7, %{{.*}}, %[[LOOP]]#3 :
  gpu.func @two_heads(%q0: !a, %q1: !a, %k: !b, %v: !b, %zero: !acc, %r0: !row, %n: index, %out: !kvbuffer.tile<16x16xf32>) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r:6 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %zero, %m0 = %r0, %l0 = %r0, %y = %zero, %m1 = %r0, %l1 = %r0) -> (!acc, !row, !row, !acc, !row, !row) {
      %s0 = kvbuffer.mma %q0, %k, %zero {transpose_b} : !a, !b, !acc
      %p0, %mn0, %ln0, %f0 = kvbuffer.online_softmax %s0, %m0, %l0 {scale = 1.0 : f32} : !acc, !row -> !a
      %scaled0 = kvbuffer.rescale %x, %f0 : !acc, !row
      %o0 = kvbuffer.mma %p0, %v, %scaled0 : !a, !b, !acc
      %s1 = kvbuffer.mma %q1, %k, %zero {transpose_b} : !a, !b, !acc
      %p1, %mn1, %ln1, %f1 = kvbuffer.online_softmax %s1, %m1, %l1 {scale = 1.0 : f32} : !acc, !row -> !a
      %scaled1 = kvbuffer.rescale %y, %f1 : !acc, !row
      %o1 = kvbuffer.mma %p1, %v, %scaled1 : !a, !b, !acc
      scf.yield %o0, %mn0, %ln0, %o1, %mn1, %ln1 : !acc, !row, !row, !acc, !row, !row
    }
    kvbuffer.fragment_store %r#0, %out : !acc, !kvbuffer.tile<16x16xf32>
    kvbuffer.fragment_store %r#3, %out : !acc, !kvbuffer.tile<16x16xf32>
    gpu.return
  }
}
