// The softmax and its rescaling in parts, where the schedule asks for it.

// RUN: kvbuf-opt %s --split-input-file --pass-pipeline='builtin.module(gpu.module(gpu.func(kvbuf-lazy-rescale)))' --remark-format=emitRemark --remarks-filter=kvbuf-lazy-rescale 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks

!s = !kvbuffer.fragment<128x64xf32, acc>
!row = !kvbuffer.fragment<128x1xf32, row>
!o = !kvbuffer.fragment<128x128xf32, acc>
!p = !kvbuffer.fragment<128x64xbf16, a>
!v = !kvbuffer.fragment<64x128xbf16, b>
#lazy = #kvbuffer.schedule<BM = 128, BN = 64, BK = 32, stages = 2, warps = 4, mma_shape = [32, 32, 16], swap_a_b = true, lazy_rescale = true>

// What rounding adds joins the sum, which only the division reads. The first two
// tiles raise maxima at once.
// CHECK-LABEL: gpu.func @lazy
// CHECK: %[[TWO:.*]] = arith.constant 1 : i32
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[A0:.*]] = %{{.*}}, %[[M0:.*]] = %{{.*}}, %[[L0:.*]] = %{{.*}}) ->
// CHECK: %[[I32:.*]] = arith.index_cast %[[I]] : index to i32
// CHECK: %[[FEW:.*]] = arith.cmpi sle, %[[I32]], %[[TWO]] : i32
// CHECK: %[[M:.*]], %[[F:.*]], %[[ANY:.*]] = kvbuffer.raise_max %[[S:.*]], %[[M0]] exact(%[[FEW]]) {scale = 1.250000e-01 : f32}
// CHECK: %[[X:.*]], %[[E:.*]] = kvbuffer.softmax_head %[[S]], %[[M]] {masked, operand = bf16, scale = 1.250000e-01 : f32}
// CHECK: %[[A:.*]], %[[L:.*]] = kvbuffer.apply_raise %[[ANY]], %[[F]], %[[A0]], %[[L0]] :
// CHECK: %[[P:.*]], %[[L1:.*]] = kvbuffer.softmax_tail %[[X]], %[[L]] excess(%[[E]]) :
// CHECK: %[[A1:.*]] = kvbuffer.mma %[[P]], %{{.*}}, %[[A]] :
// CHECK: scf.yield %[[A1]], %[[M]], %[[L1]] :
// CHECK-NOT: kvbuffer.carry_excess
// CHECK: kvbuffer.softmax_finish %{{.*}}#0, %{{.*}}#1, %{{.*}}#2 {scale
// REMARK: remark: [Passed] lazy{{.*}}accumulators are rescaled where a maximum has grown by more than 8 in base 2
gpu.module @m {
  gpu.func @lazy(%s: !s, %v: !v, %a: !o, %m: !row, %l: !row, %n: index) -> !o
      attributes {kvbuffer.schedule = #lazy} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a0 = %a, %m0 = %m, %l0 = %l) -> (!o, !row, !row) {
      %p, %m1, %l1, %f = kvbuffer.online_softmax %s, %m0, %l0 {scale = 0.125 : f32, masked} : !s, !row -> !p
      %a1 = kvbuffer.rescale %a0, %f : !o, !row
      %a2 = kvbuffer.mma %p, %v, %a1 : !p, !v, !o
      scf.yield %a2, %m1, %l1 : !o, !row, !row
    }
    %o, %lse = kvbuffer.softmax_finish %r#0, %r#1, %r#2 {scale = 0.125 : f32} : !o, !row
    gpu.return %o : !o
  }
}

// -----

!s = !kvbuffer.fragment<128x64xf32, acc>
!row = !kvbuffer.fragment<128x1xf32, row>
!o = !kvbuffer.fragment<128x128xf32, acc>
!p = !kvbuffer.fragment<128x64xbf16, a>
!v = !kvbuffer.fragment<64x128xbf16, b>
#lazy = #kvbuffer.schedule<BM = 128, BN = 64, BK = 32, stages = 2, warps = 4, mma_shape = [32, 32, 16], swap_a_b = true, lazy_rescale = true>

// A log-sum-exp reads the sum: what rounding adds goes beside it. With a mask,
// one tile behind those that it cuts raises maxima at once.
// CHECK-LABEL: gpu.func @lse
// CHECK-SAME: %[[EDGE:[^:]*]]: index) ->
// CHECK: %[[EDGE32:.*]] = arith.index_cast %[[EDGE]] : index to i32
// CHECK: %[[LAST:.*]] = arith.maxsi %[[EDGE32]], %{{.*}} : i32
// CHECK: %[[NONE:.*]] = kvbuffer.fragment_fill 0.000000e+00 : <128x1xf32, row>
// CHECK: %[[R:.*]]:4 = scf.for %[[I:.*]] = %{{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %[[C0:.*]] = %[[NONE]]) ->
// CHECK: %[[I32:.*]] = arith.index_cast %[[I]] : index to i32
// CHECK: %[[FEW:.*]] = arith.cmpi sle, %[[I32]], %[[LAST]] : i32
// CHECK: %[[M:.*]], %[[F:.*]], %{{.*}} = kvbuffer.raise_max %{{.*}}, %{{.*}} exact(%[[FEW]])
// CHECK: %[[X:.*]], %[[E:.*]] = kvbuffer.softmax_head
// CHECK: %{{.*}}, %[[L:.*]] = kvbuffer.apply_raise
// CHECK: %[[C1:.*]] = kvbuffer.carry_excess %[[C0]], %[[F]], %[[E]] : <128x1xf32, row>
// CHECK: %{{.*}}, %[[L1:.*]] = kvbuffer.softmax_tail %[[X]], %[[L]] :
// CHECK: scf.yield %{{.*}}, %[[M]], %[[L1]], %[[C1]] :
// CHECK: } {kvbuffer.whole_after_first}
// CHECK: kvbuffer.softmax_finish %[[R]]#0, %[[R]]#1, %[[R]]#2 excess(%[[R]]#3) {scale

// No loop, no tile in front.
// CHECK-LABEL: gpu.func @one_tile
// CHECK: kvbuffer.raise_max %{{[^ ]*}}, %{{[^ ]*}} {scale
// CHECK: %[[X:.*]], %[[E:.*]] = kvbuffer.softmax_head
// CHECK: kvbuffer.softmax_tail %[[X]], %{{[^ ]*}} :
// CHECK: kvbuffer.softmax_finish %{{.*}} excess(%[[E]]) {scale
gpu.module @m {
  gpu.func @lse(%s: !s, %v: !v, %a: !o, %m: !row, %l: !row, %n: index, %edge: index) -> (!o, !row)
      attributes {kvbuffer.schedule = #lazy} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a0 = %a, %m0 = %m, %l0 = %l) -> (!o, !row, !row) {
      %cut = arith.cmpi slt, %i, %edge : index
      %s1 = scf.if %cut -> !s {
        %s2 = kvbuffer.mask %s rows(%i, %n) keys(%i, %n) {mask = #kvbuffer.mask<causal = true>} : !s
        scf.yield %s2 : !s
      } else {
        scf.yield %s : !s
      }
      %p, %m1, %l1, %f = kvbuffer.online_softmax %s1, %m0, %l0 {scale = 0.125 : f32, masked} : !s, !row -> !p
      %a1 = kvbuffer.rescale %a0, %f : !o, !row
      %a2 = kvbuffer.mma %p, %v, %a1 : !p, !v, !o
      scf.yield %a2, %m1, %l1 : !o, !row, !row
    } {kvbuffer.whole_after_first}
    %o, %lse = kvbuffer.softmax_finish %r#0, %r#1, %r#2 {scale = 0.125 : f32} : !o, !row
    gpu.return %o, %lse : !o, !row
  }
  gpu.func @one_tile(%s: !s, %v: !v, %a: !o, %m: !row) -> (!o, !row)
      attributes {kvbuffer.schedule = #lazy} {
    %l = kvbuffer.fragment_fill 0.0 : !row
    %p, %m1, %l1, %f = kvbuffer.online_softmax %s, %m, %l {scale = 0.125 : f32, masked} : !s, !row -> !p
    %a1 = kvbuffer.rescale %a, %f : !o, !row
    %a2 = kvbuffer.mma %p, %v, %a1 : !p, !v, !o
    %o, %lse = kvbuffer.softmax_finish %a2, %m1, %l1 {scale = 0.125 : f32} : !o, !row
    gpu.return %o, %lse : !o, !row
  }
}

// -----

!s = !kvbuffer.fragment<128x64xf32, acc>
!row = !kvbuffer.fragment<128x1xf32, row>
!o = !kvbuffer.fragment<128x128xf32, acc>
!p = !kvbuffer.fragment<128x64xbf16, a>
#lazy = #kvbuffer.schedule<BM = 128, BN = 64, BK = 32, stages = 2, warps = 4, mma_shape = [32, 32, 16], swap_a_b = true, lazy_rescale = true>
#eager = #kvbuffer.schedule<BM = 128, BN = 64, BK = 32, stages = 2, warps = 4, mma_shape = [32, 32, 16], swap_a_b = true>

// A factor or a sum that something else reads too, a sum that starts somewhere
// else, and a schedule that does not ask. Scores of any size are told.
// CHECK-LABEL: gpu.func @two_readers
// CHECK: kvbuffer.online_softmax
// CHECK-LABEL: gpu.func @sum_read
// CHECK: kvbuffer.online_softmax
// CHECK-LABEL: gpu.func @sum_given
// CHECK: kvbuffer.online_softmax
// CHECK-LABEL: gpu.func @any_size
// CHECK: kvbuffer.raise_max {{.*}} {scale = 1.000000e+00 : f32, unbounded}
// CHECK: kvbuffer.softmax_head {{.*}} {masked, operand = bf16, scale = 1.000000e+00 : f32, unbounded}
// CHECK-LABEL: gpu.func @eager
// CHECK: kvbuffer.online_softmax
// REMARK: rescaled every time: the factor is not of one accumulator that is there before the softmax
// REMARK: rescaled every time: the sum of the weights is not one that only a division reads
// REMARK: rescaled every time: the sum of the weights is not one that only a division reads
gpu.module @m {
  gpu.func @two_readers(%s: !s, %m: !row, %l: !row, %a: !o) -> (!p, !row, !o)
      attributes {kvbuffer.schedule = #lazy} {
    %p, %m1, %l1, %r = kvbuffer.online_softmax %s, %m, %l {scale = 0.125 : f32, masked} : !s, !row -> !p
    %a1 = kvbuffer.rescale %a, %r : !o, !row
    gpu.return %p, %r, %a1 : !p, !row, !o
  }
  gpu.func @sum_read(%s: !s, %m: !row, %a: !o) -> (!p, !row, !o)
      attributes {kvbuffer.schedule = #lazy} {
    %l = kvbuffer.fragment_fill 0.0 : !row
    %p, %m1, %l1, %r = kvbuffer.online_softmax %s, %m, %l {scale = 0.125 : f32, masked} : !s, !row -> !p
    %a1 = kvbuffer.rescale %a, %r : !o, !row
    gpu.return %p, %l1, %a1 : !p, !row, !o
  }
  gpu.func @sum_given(%s: !s, %m: !row, %l: !row, %a: !o) -> (!p, !o)
      attributes {kvbuffer.schedule = #lazy} {
    %p, %m1, %l1, %r = kvbuffer.online_softmax %s, %m, %l {scale = 0.125 : f32, masked} : !s, !row -> !p
    %a1 = kvbuffer.rescale %a, %r : !o, !row
    gpu.return %p, %a1 : !p, !o
  }
  gpu.func @any_size(%s: !s, %m: !row, %a: !o) -> (!p, !o)
      attributes {kvbuffer.schedule = #lazy} {
    %l = kvbuffer.fragment_fill 0.0 : !row
    %p, %m1, %l1, %r = kvbuffer.online_softmax %s, %m, %l {scale = 1.0 : f32, masked, unbounded} : !s, !row -> !p
    %a1 = kvbuffer.rescale %a, %r : !o, !row
    gpu.return %p, %a1 : !p, !o
  }
  gpu.func @eager(%s: !s, %m: !row, %l: !row, %a: !o) -> (!p, !o)
      attributes {kvbuffer.schedule = #eager} {
    %p, %m1, %l1, %r = kvbuffer.online_softmax %s, %m, %l {scale = 0.125 : f32, masked} : !s, !row -> !p
    %a1 = kvbuffer.rescale %a, %r : !o, !row
    gpu.return %p, %a1 : !p, !o
  }
}

// -----

// CHECK-LABEL: gpu.func @gemm
// CHECK-NEXT:    gpu.return
// REMARK: remark: [Missed] lazy{{.*}}rescaled every time: there is no kvbuffer.online_softmax
#lazy = #kvbuffer.schedule<BM = 128, BN = 64, BK = 32, stages = 2, warps = 4, mma_shape = [32, 32, 16], swap_a_b = true, lazy_rescale = true>
gpu.module @m {
  gpu.func @gemm() attributes {kvbuffer.schedule = #lazy} {
    gpu.return
  }
}

// -----

// A chip that adds pairs of rounded weights up needs no excess. Where a row of the output
// is as long as one of scores, the sums tell where a maximum is too low, and only the
// first tiles are looked at for one. Beside products of longer rows nothing is gained,
// unless scores are capped. A log-sum-exp is of weights as they are.
// CHECK-LABEL: gpu.func @long
// CHECK: kvbuffer.softmax_tail %{{[^ ]*}}, %{{[^ ]*}} excess(%{{[^ ]*}}) :
// CHECK-LABEL: gpu.func @settled
// CHECK: scf.for %{{.*}} iter_args(%[[A0:.*]] = %{{.*}}, %[[M0:.*]] = %{{.*}}, %[[L0:.*]] = %{{.*}}) ->
// CHECK: %[[M:.*]], %[[F:.*]], %[[ANY:.*]] = kvbuffer.raise_max %[[S:.*]], %[[M0]] exact(%{{.*}}) {exact_only, scale
// CHECK: %[[X:.*]], %{{.*}} = kvbuffer.softmax_head %[[S]], %[[M]] {masked, operand = bf16, scale = 1.250000e-01 : f32}
// CHECK: %[[ALL:.*]], %{{.*}} = kvbuffer.softmax_head %[[S]], %[[M]] {exponents_only, masked, operand = bf16, scale = 1.250000e-01 : f32}
// CHECK: %[[A:.*]], %[[L:.*]] = kvbuffer.apply_raise %[[ANY]], %[[F]], %[[A0]], %[[L0]]
// CHECK: %[[P:.*]], %[[M1:.*]], %[[L1:.*]], %[[A1:.*]] = kvbuffer.softmax_settle %[[X]], %[[ALL]], %[[M]], %[[L]], %[[A]] {scale
// CHECK: %[[A2:.*]] = kvbuffer.mma %[[P]], %{{.*}}, %[[A1]]
// CHECK: scf.yield %[[A2]], %[[M1]], %[[L1]] :
// CHECK-LABEL: gpu.func @with_lse
// CHECK: kvbuffer.raise_max
// CHECK-NOT: exact_only
// CHECK: kvbuffer.softmax_tail %{{[^ ]*}}, %{{[^ ]*}} :
// CHECK-LABEL: gpu.func @capped
// CHECK-NOT: exact_only
// CHECK: kvbuffer.softmax_tail %{{[^ ]*}}, %{{[^ ]*}} {rounded} :

// Nor does a sum tell by how much scores of any size are above a maximum.
// CHECK-LABEL: gpu.func @short_any_size
// CHECK: kvbuffer.raise_max {{.*}} {scale = 1.000000e+00 : f32, unbounded}
// CHECK-NOT: softmax_settle
// CHECK: kvbuffer.softmax_tail %{{[^ ]*}}, %{{[^ ]*}} {rounded} :
!s = !kvbuffer.fragment<128x64xf32, acc>
!row = !kvbuffer.fragment<128x1xf32, row>
!o = !kvbuffer.fragment<128x64xf32, acc>
!long = !kvbuffer.fragment<128x128xf32, acc>
!p = !kvbuffer.fragment<128x64xbf16, a>
!v = !kvbuffer.fragment<64x64xbf16, b>
!vlong = !kvbuffer.fragment<64x128xbf16, b>
#lazy = #kvbuffer.schedule<BM = 128, BN = 64, BK = 32, stages = 2, warps = 4, mma_shape = [32, 32, 16], swap_a_b = true, lazy_rescale = true>
module attributes {kvbuffer.target = "gfx950"} {
gpu.module @m {
  gpu.func @long(%s: !s, %v: !vlong, %a: !long, %m: !row, %l: !row, %n: index) -> !long
      attributes {kvbuffer.schedule = #lazy} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a0 = %a, %m0 = %m, %l0 = %l) -> (!long, !row, !row) {
      %p, %m1, %l1, %f = kvbuffer.online_softmax %s, %m0, %l0 {scale = 0.125 : f32, masked} : !s, !row -> !p
      %a1 = kvbuffer.rescale %a0, %f : !long, !row
      %a2 = kvbuffer.mma %p, %v, %a1 : !p, !vlong, !long
      scf.yield %a2, %m1, %l1 : !long, !row, !row
    }
    %o, %lse = kvbuffer.softmax_finish %r#0, %r#1, %r#2 {scale = 0.125 : f32} : !long, !row
    gpu.return %o : !long
  }
  gpu.func @settled(%s: !s, %v: !v, %a: !o, %m: !row, %l: !row, %n: index) -> !o
      attributes {kvbuffer.schedule = #lazy} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a0 = %a, %m0 = %m, %l0 = %l) -> (!o, !row, !row) {
      %p, %m1, %l1, %f = kvbuffer.online_softmax %s, %m0, %l0 {scale = 0.125 : f32, masked} : !s, !row -> !p
      %a1 = kvbuffer.rescale %a0, %f : !o, !row
      %a2 = kvbuffer.mma %p, %v, %a1 : !p, !v, !o
      scf.yield %a2, %m1, %l1 : !o, !row, !row
    }
    %o, %lse = kvbuffer.softmax_finish %r#0, %r#1, %r#2 {scale = 0.125 : f32} : !o, !row
    gpu.return %o : !o
  }
  gpu.func @with_lse(%s: !s, %v: !v, %a: !o, %m: !row, %l: !row, %n: index) -> (!o, !row)
      attributes {kvbuffer.schedule = #lazy} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a0 = %a, %m0 = %m, %l0 = %l) -> (!o, !row, !row) {
      %p, %m1, %l1, %f = kvbuffer.online_softmax %s, %m0, %l0 {scale = 0.125 : f32, masked} : !s, !row -> !p
      %a1 = kvbuffer.rescale %a0, %f : !o, !row
      %a2 = kvbuffer.mma %p, %v, %a1 : !p, !v, !o
      scf.yield %a2, %m1, %l1 : !o, !row, !row
    }
    %o, %lse = kvbuffer.softmax_finish %r#0, %r#1, %r#2 {scale = 0.125 : f32} : !o, !row
    gpu.return %o, %lse : !o, !row
  }
  gpu.func @capped(%s: !s, %v: !vlong, %a: !long, %m: !row, %l: !row, %n: index) -> !long
      attributes {kvbuffer.schedule = #lazy} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c = kvbuffer.softcap %s {scale = 0.125 : f32, cap = 20.0 : f32} : !s
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a0 = %a, %m0 = %m, %l0 = %l) -> (!long, !row, !row) {
      %p, %m1, %l1, %f = kvbuffer.online_softmax %c, %m0, %l0 {scale = 1.0 : f32, masked} : !s, !row -> !p
      %a1 = kvbuffer.rescale %a0, %f : !long, !row
      %a2 = kvbuffer.mma %p, %v, %a1 : !p, !vlong, !long
      scf.yield %a2, %m1, %l1 : !long, !row, !row
    }
    %o, %lse = kvbuffer.softmax_finish %r#0, %r#1, %r#2 {scale = 1.0 : f32} : !long, !row
    gpu.return %o : !long
  }
  gpu.func @short_any_size(%s: !s, %v: !v, %a: !o, %m: !row, %l: !row, %n: index) -> !o
      attributes {kvbuffer.schedule = #lazy} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a0 = %a, %m0 = %m, %l0 = %l) -> (!o, !row, !row) {
      %p, %m1, %l1, %f = kvbuffer.online_softmax %s, %m0, %l0 {scale = 1.0 : f32, masked, unbounded} : !s, !row -> !p
      %a1 = kvbuffer.rescale %a0, %f : !o, !row
      %a2 = kvbuffer.mma %p, %v, %a1 : !p, !v, !o
      scf.yield %a2, %m1, %l1 : !o, !row, !row
    }
    %o, %lse = kvbuffer.softmax_finish %r#0, %r#1, %r#2 {scale = 1.0 : f32, unbounded} : !o, !row
    gpu.return %o : !o
  }
}
}

// -----

!s = !kvbuffer.fragment<128x64xf32, acc>
!row = !kvbuffer.fragment<128x1xf32, row>
!o = !kvbuffer.fragment<128x128xf32, acc>
!p = !kvbuffer.fragment<128x64xbf16, a>
!v = !kvbuffer.fragment<64x128xbf16, b>
#lazy = #kvbuffer.schedule<BM = 128, BN = 64, BK = 32, stages = 2, warps = 4, mma_shape = [32, 32, 16], swap_a_b = true, lazy_rescale = true>

// Capped scores, weights of which are relative to a number: nothing raises it. A
// cap of 50 is 72.13 in base 2; the largest weight is 2^60, and 12.13 ln 2 = 8.41.
// REMARK: accumulators are not rescaled: a cap bounds scores
// CHECK-LABEL: gpu.func @bounded
// CHECK-DAG:     %[[REFERENCE:.*]] = kvbuffer.fragment_fill 8.411{{[0-9]*}} : <128x1xf32, row>
// CHECK-DAG:     %[[NEVER:.*]] = arith.constant false
// CHECK:         scf.for
// CHECK:           kvbuffer.raise_max %{{.*}}, %[[REFERENCE]] exact(%[[NEVER]]) {exact_only, scale = 1.000000e+00 : f32}
// CHECK:           kvbuffer.softmax_tail {{.*}}rounded
// A small cap: the largest weight is 1.
// REMARK: accumulators are not rescaled: a cap bounds scores
// CHECK-LABEL: gpu.func @small
// CHECK:         %[[REFERENCE:.*]] = kvbuffer.fragment_fill 3.000000e+00 : <128x1xf32, row>
// CHECK:         kvbuffer.raise_max %{{.*}}, %[[REFERENCE]] exact(
// Caps whose weights have no exponents, scores of which not all are capped,
// accumulators or a maximum of something, a log-sum-exp, a sink.
// CHECK-LABEL: gpu.func @large
// CHECK-NOT:     arith.constant false
// CHECK-LABEL: gpu.func @some_capped
// CHECK-NOT:     arith.constant false
// CHECK-LABEL: gpu.func @begun
// CHECK-NOT:     arith.constant false
// CHECK-LABEL: gpu.func @maximum
// CHECK-NOT:     arith.constant false
// CHECK-LABEL: gpu.func @lse
// CHECK-NOT:     arith.constant false
// CHECK-LABEL: gpu.func @sink
// CHECK-NOT:     arith.constant false
// What another loop comes to, which is relative to its own maximum.
// CHECK-LABEL: gpu.func @two_loops
// CHECK-NOT:     arith.constant false
// CHECK:         gpu.return
module attributes {gpu.container_module, kvbuffer.target = "gfx950"} {
gpu.module @m {
  gpu.func @bounded(%s: !s, %v: !v, %n: index) -> !o
      attributes {kvbuffer.schedule = #lazy} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = kvbuffer.fragment_fill 0xFF800000 : !row
    %l = kvbuffer.fragment_fill 0.0 : !row
    %zero = kvbuffer.fragment_fill 0.0 : !o
    %c = kvbuffer.softcap %s {scale = 0.125 : f32, cap = 50.0 : f32} : !s
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a0 = %zero, %m0 = %none, %l0 = %l) -> (!o, !row, !row) {
      %p, %m1, %l1, %f = kvbuffer.online_softmax %c, %m0, %l0 {scale = 1.0 : f32, masked} : !s, !row -> !p
      %a1 = kvbuffer.rescale %a0, %f : !o, !row
      %a2 = kvbuffer.mma %p, %v, %a1 : !p, !v, !o
      scf.yield %a2, %m1, %l1 : !o, !row, !row
    }
    %o, %lse = kvbuffer.softmax_finish %r#0, %r#1, %r#2 {scale = 1.0 : f32} : !o, !row
    gpu.return %o : !o
  }
  gpu.func @small(%s: !s, %v: !v, %n: index) -> !o
      attributes {kvbuffer.schedule = #lazy} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = kvbuffer.fragment_fill 0xFF800000 : !row
    %l = kvbuffer.fragment_fill 0.0 : !row
    %zero = kvbuffer.fragment_fill 0.0 : !o
    %c = kvbuffer.softcap %s {scale = 0.125 : f32, cap = 3.0 : f32} : !s
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a0 = %zero, %m0 = %none, %l0 = %l) -> (!o, !row, !row) {
      %p, %m1, %l1, %f = kvbuffer.online_softmax %c, %m0, %l0 {scale = 2.0 : f32, masked} : !s, !row -> !p
      %a1 = kvbuffer.rescale %a0, %f : !o, !row
      %a2 = kvbuffer.mma %p, %v, %a1 : !p, !v, !o
      scf.yield %a2, %m1, %l1 : !o, !row, !row
    }
    %o, %lse = kvbuffer.softmax_finish %r#0, %r#1, %r#2 {scale = 2.0 : f32} : !o, !row
    gpu.return %o : !o
  }
  gpu.func @large(%s: !s, %v: !v, %n: index) -> !o
      attributes {kvbuffer.schedule = #lazy} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = kvbuffer.fragment_fill 0xFF800000 : !row
    %l = kvbuffer.fragment_fill 0.0 : !row
    %zero = kvbuffer.fragment_fill 0.0 : !o
    %c = kvbuffer.softcap %s {scale = 0.125 : f32, cap = 57.3 : f32} : !s
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a0 = %zero, %m0 = %none, %l0 = %l) -> (!o, !row, !row) {
      %p, %m1, %l1, %f = kvbuffer.online_softmax %c, %m0, %l0 {scale = 1.0 : f32, masked} : !s, !row -> !p
      %a1 = kvbuffer.rescale %a0, %f : !o, !row
      %a2 = kvbuffer.mma %p, %v, %a1 : !p, !v, !o
      scf.yield %a2, %m1, %l1 : !o, !row, !row
    }
    %o, %lse = kvbuffer.softmax_finish %r#0, %r#1, %r#2 {scale = 1.0 : f32} : !o, !row
    gpu.return %o : !o
  }
  gpu.func @some_capped(%s: !s, %v: !v, %n: index, %which: i1) -> !o
      attributes {kvbuffer.schedule = #lazy} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = kvbuffer.fragment_fill 0xFF800000 : !row
    %l = kvbuffer.fragment_fill 0.0 : !row
    %zero = kvbuffer.fragment_fill 0.0 : !o
    %c = kvbuffer.softcap %s {scale = 0.125 : f32, cap = 50.0 : f32} : !s
    %h = scf.if %which -> !s {
      scf.yield %c : !s
    } else {
      scf.yield %s : !s
    }
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a0 = %zero, %m0 = %none, %l0 = %l) -> (!o, !row, !row) {
      %p, %m1, %l1, %f = kvbuffer.online_softmax %h, %m0, %l0 {scale = 1.0 : f32, masked} : !s, !row -> !p
      %a1 = kvbuffer.rescale %a0, %f : !o, !row
      %a2 = kvbuffer.mma %p, %v, %a1 : !p, !v, !o
      scf.yield %a2, %m1, %l1 : !o, !row, !row
    }
    %o, %lse = kvbuffer.softmax_finish %r#0, %r#1, %r#2 {scale = 1.0 : f32} : !o, !row
    gpu.return %o : !o
  }
  gpu.func @begun(%s: !s, %v: !v, %n: index, %a: !o) -> !o
      attributes {kvbuffer.schedule = #lazy} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = kvbuffer.fragment_fill 0xFF800000 : !row
    %l = kvbuffer.fragment_fill 0.0 : !row
    %zero = kvbuffer.fragment_fill 0.0 : !o
    %c = kvbuffer.softcap %s {scale = 0.125 : f32, cap = 50.0 : f32} : !s
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a0 = %a, %m0 = %none, %l0 = %l) -> (!o, !row, !row) {
      %p, %m1, %l1, %f = kvbuffer.online_softmax %c, %m0, %l0 {scale = 1.0 : f32, masked} : !s, !row -> !p
      %a1 = kvbuffer.rescale %a0, %f : !o, !row
      %a2 = kvbuffer.mma %p, %v, %a1 : !p, !v, !o
      scf.yield %a2, %m1, %l1 : !o, !row, !row
    }
    %o, %lse = kvbuffer.softmax_finish %r#0, %r#1, %r#2 {scale = 1.0 : f32} : !o, !row
    gpu.return %o : !o
  }
  gpu.func @maximum(%s: !s, %v: !v, %n: index, %m: !row) -> !o
      attributes {kvbuffer.schedule = #lazy} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = kvbuffer.fragment_fill 0xFF800000 : !row
    %l = kvbuffer.fragment_fill 0.0 : !row
    %zero = kvbuffer.fragment_fill 0.0 : !o
    %c = kvbuffer.softcap %s {scale = 0.125 : f32, cap = 50.0 : f32} : !s
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a0 = %zero, %m0 = %m, %l0 = %l) -> (!o, !row, !row) {
      %p, %m1, %l1, %f = kvbuffer.online_softmax %c, %m0, %l0 {scale = 1.0 : f32, masked} : !s, !row -> !p
      %a1 = kvbuffer.rescale %a0, %f : !o, !row
      %a2 = kvbuffer.mma %p, %v, %a1 : !p, !v, !o
      scf.yield %a2, %m1, %l1 : !o, !row, !row
    }
    %o, %lse = kvbuffer.softmax_finish %r#0, %r#1, %r#2 {scale = 1.0 : f32} : !o, !row
    gpu.return %o : !o
  }
  gpu.func @lse(%s: !s, %v: !v, %n: index) -> (!o, !row)
      attributes {kvbuffer.schedule = #lazy} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = kvbuffer.fragment_fill 0xFF800000 : !row
    %l = kvbuffer.fragment_fill 0.0 : !row
    %zero = kvbuffer.fragment_fill 0.0 : !o
    %c = kvbuffer.softcap %s {scale = 0.125 : f32, cap = 50.0 : f32} : !s
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a0 = %zero, %m0 = %none, %l0 = %l) -> (!o, !row, !row) {
      %p, %m1, %l1, %f = kvbuffer.online_softmax %c, %m0, %l0 {scale = 1.0 : f32, masked} : !s, !row -> !p
      %a1 = kvbuffer.rescale %a0, %f : !o, !row
      %a2 = kvbuffer.mma %p, %v, %a1 : !p, !v, !o
      scf.yield %a2, %m1, %l1 : !o, !row, !row
    }
    %o, %lse = kvbuffer.softmax_finish %r#0, %r#1, %r#2 {scale = 1.0 : f32} : !o, !row
    gpu.return %o, %lse : !o, !row
  }
  gpu.func @sink(%s: !s, %v: !v, %n: index, %x: f32) -> !o
      attributes {kvbuffer.schedule = #lazy} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = kvbuffer.fragment_fill 0xFF800000 : !row
    %l = kvbuffer.fragment_fill 0.0 : !row
    %zero = kvbuffer.fragment_fill 0.0 : !o
    %c = kvbuffer.softcap %s {scale = 0.125 : f32, cap = 50.0 : f32} : !s
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a0 = %zero, %m0 = %none, %l0 = %l) -> (!o, !row, !row) {
      %p, %m1, %l1, %f = kvbuffer.online_softmax %c, %m0, %l0 {scale = 1.0 : f32, masked} : !s, !row -> !p
      %a1 = kvbuffer.rescale %a0, %f : !o, !row
      %a2 = kvbuffer.mma %p, %v, %a1 : !p, !v, !o
      scf.yield %a2, %m1, %l1 : !o, !row, !row
    }
    %o, %lse = kvbuffer.softmax_finish %r#0, %r#1, %r#2 sink(%x) {scale = 1.0 : f32} : !o, !row
    gpu.return %o : !o
  }
  gpu.func @two_loops(%s: !s, %v: !v, %n: index) -> !o
      attributes {kvbuffer.schedule = #lazy} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = kvbuffer.fragment_fill 0xFF800000 : !row
    %l = kvbuffer.fragment_fill 0.0 : !row
    %zero = kvbuffer.fragment_fill 0.0 : !o
    %c = kvbuffer.softcap %s {scale = 0.125 : f32, cap = 50.0 : f32} : !s
    %d = kvbuffer.softcap %s {scale = 0.125 : f32, cap = 30.0 : f32} : !s
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a0 = %zero, %m0 = %none, %l0 = %l) -> (!o, !row, !row) {
      %p, %m1, %l1, %f = kvbuffer.online_softmax %c, %m0, %l0 {scale = 1.0 : f32, masked} : !s, !row -> !p
      %a1 = kvbuffer.rescale %a0, %f : !o, !row
      %a2 = kvbuffer.mma %p, %v, %a1 : !p, !v, !o
      scf.yield %a2, %m1, %l1 : !o, !row, !row
    }
    %t:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a0 = %r#0, %m0 = %r#1, %l0 = %r#2) -> (!o, !row, !row) {
      %p, %m1, %l1, %f = kvbuffer.online_softmax %d, %m0, %l0 {scale = 1.0 : f32, masked} : !s, !row -> !p
      %a1 = kvbuffer.rescale %a0, %f : !o, !row
      %a2 = kvbuffer.mma %p, %v, %a1 : !p, !v, !o
      scf.yield %a2, %m1, %l1 : !o, !row, !row
    }
    %o, %lse = kvbuffer.softmax_finish %t#0, %t#1, %t#2 {scale = 1.0 : f32} : !o, !row
    gpu.return %o : !o
  }
}
}
