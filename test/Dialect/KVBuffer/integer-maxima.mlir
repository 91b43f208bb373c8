// RUN: kvbuf-opt %s -pass-pipeline='builtin.module(gpu.module(gpu.func(kvbuf-integer-maxima)))' | FileCheck %s
// RUN: kvbuf-opt %s -pass-pipeline='builtin.module(gpu.module(gpu.func(kvbuf-integer-maxima)))' --remark-format=emitRemark --remarks-filter=kvbuf-integer-maxima 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// A chip whose maxima are of two numbers, whatever these are.
// RUN: sed 's,sm_90a,sm_80,' %s | kvbuf-opt -pass-pipeline='builtin.module(gpu.module(gpu.func(kvbuf-integer-maxima)))' | FileCheck %s --check-prefix=NONE

// NONE-NOT: not_negative
// NONE-NOT: any_negative

// Three loops; the others stay as they are.
// REMARK:     remark: [Passed] maxima{{.*}}maxima are compared as integers once no row's is negative
// REMARK: integer-maxima.mlir:{{.*}} remark: [Passed] maxima
// REMARK: integer-maxima.mlir:{{.*}} remark: [Passed] maxima
// REMARK-NOT: remark

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 2>
!k = !kvbuffer.staged<#kbuf>
!q = !kvbuffer.fragment<64x64xbf16, a>
!p = !kvbuffer.fragment<64x32xbf16, a>
!row = !kvbuffer.fragment<64x1xf32, row>
module attributes {gpu.container_module, kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @bulk
    // CHECK-SAME:    %[[N:[^:]*]]: index
    // CHECK:         %[[M:.*]] = kvbuffer.fragment_fill -1.0
    // CHECK:         %[[L:.*]] = kvbuffer.fragment_fill 0.0
    gpu.func @bulk(%n: index) kernel {
      %q = kvbuffer.fragment_fill 1.0 : !q
      %m = kvbuffer.fragment_fill -1.0 : !row
      %l = kvbuffer.fragment_fill 0.0 : !row
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %ring = kvbuffer.ring %buf from @producers to [@consumers] : <#kbuf>
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) registers(240) {
          // One iteration, and more while a row's maximum is negative.
          // CHECK:         %[[FIRST:.*]]:4 = scf.while (%[[SOME:.*]] = %true, %[[I:.*]] = %c1, %[[L0:.*]] = %[[L]], %[[M0:.*]] = %[[M]], %[[S0:.*]] = %c1)
          // CHECK-NEXT:      %[[MORE:.*]] = arith.cmpi slt, %[[I]], %[[N]]
          // CHECK-NEXT:      %[[ON:.*]] = arith.andi %[[MORE]], %[[SOME]]
          // CHECK-NEXT:      scf.condition(%[[ON]]) %[[I]], %[[L0]], %[[M0]], %[[S0]]
          // CHECK-NEXT:    } do {
          // CHECK-NEXT:    ^bb0(%[[J:.*]]: index, %[[L1:.*]]: !kvbuffer.fragment<64x1xf32, row>, %[[M1:.*]]: !kvbuffer.fragment<64x1xf32, row>, %[[S1:.*]]: index):
          // CHECK-NEXT:      kvbuffer.ring_wait %{{.*}}[%[[J]]]
          // CHECK-NEXT:      kvbuffer.mma_start
          // CHECK-NEXT:      kvbuffer.mma_wait
          // CHECK-NEXT:      kvbuffer.ring_release
          // CHECK-NEXT:      %{{.*}}, %[[M2:.*]], %[[L2:.*]], %{{.*}} = kvbuffer.online_softmax %{{.*}}, %[[M1]], %[[L1]] {scale = 1.250000e-01 : f32}
          // CHECK-NEXT:      %[[ASKED:.*]] = kvbuffer.any_negative %[[M2]]
          // CHECK-NEXT:      %[[S2:.*]] = arith.muli %[[S1]], %[[J]]
          // CHECK-NEXT:      %[[NEXT:.*]] = arith.addi %[[J]], %c2
          // CHECK-NEXT:      scf.yield %[[ASKED]], %[[NEXT]], %[[L2]], %[[M2]], %[[S2]]
          // The others go on from there, in the same steps.
          // CHECK:         scf.for %[[K:.*]] = %[[FIRST]]#0 to %[[N]] step %c2 iter_args(%[[L3:.*]] = %[[FIRST]]#1, %[[M3:.*]] = %[[FIRST]]#2, %{{.*}} = %[[FIRST]]#3)
          // CHECK-NEXT:      kvbuffer.ring_wait %{{.*}}[%[[K]]]
          // CHECK:           kvbuffer.online_softmax %{{.*}}, %[[M3]], %[[L3]] {not_negative, scale = 1.250000e-01 : f32}
          // CHECK:           scf.yield
          %r:3 = scf.for %i = %c1 to %n step %c2 iter_args(%sum = %l, %max = %m, %x = %c1) -> (!row, !row, index) {
            %ks = kvbuffer.ring_wait %ring[%i] : <#kbuf>
            %pending = kvbuffer.mma_start %q, %ks {transpose_b} : !q, <#kbuf> -> <64x32xf32>
            %s = kvbuffer.mma_wait %pending {younger = 0 : i64} : <64x32xf32>
            kvbuffer.ring_release %ring[%i] : <#kbuf>
            %p, %m1, %l1, %f = kvbuffer.online_softmax %s, %max, %sum {scale = 0.125 : f32} : <64x32xf32, acc>, <64x1xf32, row> -> <64x32xbf16, a>
            %y = arith.muli %x, %i : index
            scf.yield %l1, %m1, %y : !row, !row, index
          }
          // Scores that a mask may have hidden.
          // CHECK-NOT:     any_negative
          // CHECK:         kvbuffer.online_softmax %{{.*}} {masked, scale
          // CHECK-NOT:     any_negative
          %t:2 = scf.for %i = %c1 to %n step %c1 iter_args(%sum = %l, %max = %m) -> (!row, !row) {
            %ks = kvbuffer.ring_wait %ring[%i] : <#kbuf>
            %pending = kvbuffer.mma_start %q, %ks {transpose_b} : !q, <#kbuf> -> <64x32xf32>
            %s0 = kvbuffer.mma_wait %pending {younger = 0 : i64} : <64x32xf32>
            kvbuffer.ring_release %ring[%i] : <#kbuf>
            %s = kvbuffer.mask %s0 rows(%i, %n) keys(%i, %n) {mask = #kvbuffer.mask<causal = true>} : <64x32xf32, acc>
            %p, %m1, %l1, %f = kvbuffer.online_softmax %s, %max, %sum {masked, scale = 0.125 : f32} : <64x32xf32, acc>, <64x1xf32, row> -> <64x32xbf16, a>
            scf.yield %l1, %m1 : !row, !row
          }
          // The same, times a factor of each row.
          // CHECK-NOT:     any_negative
          // CHECK:         kvbuffer.online_softmax %{{.*}} {masked, scale = 2.500000e-01
          // CHECK-NOT:     any_negative
          %v:2 = scf.for %i = %c1 to %n step %c1 iter_args(%sum = %l, %max = %m) -> (!row, !row) {
            %ks = kvbuffer.ring_wait %ring[%i] : <#kbuf>
            %pending = kvbuffer.mma_start %q, %ks {transpose_b} : !q, <#kbuf> -> <64x32xf32>
            %s0 = kvbuffer.mma_wait %pending {younger = 0 : i64} : <64x32xf32>
            kvbuffer.ring_release %ring[%i] : <#kbuf>
            %s1 = kvbuffer.mask %s0 rows(%i, %n) keys(%i, %n) {mask = #kvbuffer.mask<causal = true>} : <64x32xf32, acc>
            %s = kvbuffer.rescale %s1, %l : <64x32xf32, acc>, <64x1xf32, row>
            %p, %m1, %l1, %f = kvbuffer.online_softmax %s, %max, %sum {masked, scale = 0.25 : f32} : <64x32xf32, acc>, <64x1xf32, row> -> <64x32xbf16, a>
            scf.yield %l1, %m1 : !row, !row
          }
          // A maximum that does not come of the one before it: it may fall.
          // CHECK:         scf.for
          // CHECK-NOT:     any_negative
          // CHECK-NOT:     not_negative
          %u:2 = scf.for %i = %c1 to %n step %c1 iter_args(%sum = %l, %max = %m) -> (!row, !row) {
            %ks = kvbuffer.ring_wait %ring[%i] : <#kbuf>
            %pending = kvbuffer.mma_start %q, %ks {transpose_b} : !q, <#kbuf> -> <64x32xf32>
            %s = kvbuffer.mma_wait %pending {younger = 0 : i64} : <64x32xf32>
            kvbuffer.ring_release %ring[%i] : <#kbuf>
            %p, %m1, %l1, %f = kvbuffer.online_softmax %s, %max, %sum {scale = 0.125 : f32} : <64x32xf32, acc>, <64x1xf32, row> -> <64x32xbf16, a>
            scf.yield %l1, %m : !row, !row
          }
          // Capped scores are looked at before they are capped.
          // CHECK:         kvbuffer.softcap
          // CHECK-NOT:     not_negative
          %w:2 = scf.for %i = %c1 to %n step %c1 iter_args(%sum = %l, %max = %m) -> (!row, !row) {
            %ks = kvbuffer.ring_wait %ring[%i] : <#kbuf>
            %pending = kvbuffer.mma_start %q, %ks {transpose_b} : !q, <#kbuf> -> <64x32xf32>
            %s0 = kvbuffer.mma_wait %pending {younger = 0 : i64} : <64x32xf32>
            kvbuffer.ring_release %ring[%i] : <#kbuf>
            %s = kvbuffer.softcap %s0 {cap = 50.0 : f32, scale = 0.125 : f32} : <64x32xf32, acc>
            %p, %m1, %l1, %f = kvbuffer.online_softmax %s, %max, %sum {scale = 1.0 : f32} : <64x32xf32, acc>, <64x1xf32, row> -> <64x32xbf16, a>
            scf.yield %l1, %m1 : !row, !row
          }
          // Scores of which each row has a factor, whose softmax counts as masked.
          // CHECK:         scf.while
          // CHECK:           %[[SCALED:.*]] = kvbuffer.rescale
          // CHECK:           kvbuffer.online_softmax %[[SCALED]]
          // CHECK:           kvbuffer.any_negative
          // CHECK:         scf.for
          // CHECK:           %[[SCALED:.*]] = kvbuffer.rescale
          // CHECK:           kvbuffer.online_softmax %[[SCALED]], {{.*}}not_negative
          %x:2 = scf.for %i = %c1 to %n step %c1 iter_args(%sum = %l, %max = %m) -> (!row, !row) {
            %ks = kvbuffer.ring_wait %ring[%i] : <#kbuf>
            %pending = kvbuffer.mma_start %q, %ks {transpose_b} : !q, <#kbuf> -> <64x32xf32>
            %s0 = kvbuffer.mma_wait %pending {younger = 0 : i64} : <64x32xf32>
            kvbuffer.ring_release %ring[%i] : <#kbuf>
            %s = kvbuffer.rescale %s0, %l : <64x32xf32, acc>, <64x1xf32, row>
            %p, %m1, %l1, %f = kvbuffer.online_softmax %s, %max, %sum {masked, scale = 1.0 : f32} : <64x32xf32, acc>, <64x1xf32, row> -> <64x32xbf16, a>
            scf.yield %l1, %m1 : !row, !row
          }
          // A product that begins with what a function adds, which may be -inf.
          // CHECK:         scf.while
          // CHECK:           kvbuffer.map
          // CHECK:           kvbuffer.online_softmax {{.*}} {masked, scale = 2.000000e+00
          // CHECK:           kvbuffer.any_negative
          // CHECK:         scf.for
          // CHECK:           kvbuffer.map
          // CHECK:           kvbuffer.online_softmax {{.*}} {masked, not_negative, scale = 2.000000e+00
          %z:2 = scf.for %i = %c1 to %n step %c1 iter_args(%sum = %l, %max = %m) -> (!row, !row) {
            %ones = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<64x32xf32, acc>
            %begin = kvbuffer.map %ones : !kvbuffer.fragment<64x32xf32, acc> -> <64x32xf32, acc> {
            ^bb0(%e: f32, %r0: index, %k0: index):
              %log = math.log2 %e : f32
              kvbuffer.yield %log : f32
            }
            %ks = kvbuffer.ring_wait %ring[%i] : <#kbuf>
            %pending = kvbuffer.mma_start %q, %ks, %begin : !kvbuffer.fragment<64x32xf32, acc> {transpose_b} : !q, <#kbuf> -> <64x32xf32>
            %s = kvbuffer.mma_wait %pending {younger = 0 : i64} : <64x32xf32>
            kvbuffer.ring_release %ring[%i] : <#kbuf>
            %p, %m1, %l1, %f = kvbuffer.online_softmax %s, %max, %sum {masked, scale = 2.0 : f32} : <64x32xf32, acc>, <64x1xf32, row> -> <64x32xbf16, a>
            scf.yield %l1, %m1 : !row, !row
          }
        }
        kvbuffer.team @producers warps(4) registers(24) {
        }
      }
      gpu.return
    }
  }
}
