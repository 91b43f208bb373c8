// The softmax and its rescaling in parts, where the schedule asks for it.

// RUN: kvbuf-opt %s --split-input-file --pass-pipeline='builtin.module(gpu.module(gpu.func(kvbuf-lazy-rescale)))' --remark-format=emitRemark --remarks-filter=kvbuf-lazy-rescale 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks

!s = !kvbuffer.fragment<128x64xf32, acc>
!row = !kvbuffer.fragment<128x1xf32, row>
!o = !kvbuffer.fragment<128x128xf32, acc>
!p = !kvbuffer.fragment<128x64xbf16, a>
#lazy = #kvbuffer.schedule<BM = 128, BN = 64, BK = 32, stages = 2, warps = 4, mma_shape = [32, 32, 16], swap_a_b = true, lazy_rescale = true>

// CHECK-LABEL: gpu.func @lazy
// CHECK: %[[M:.*]], %[[F:.*]], %[[ANY:.*]] = kvbuffer.raise_max %[[S:.*]], %{{.*}} {scale = 1.250000e-01 : f32}
// CHECK: %[[X:.*]], %[[E:.*]] = kvbuffer.softmax_head %[[S]], %[[M]] {masked, operand = bf16, scale = 1.250000e-01 : f32}
// CHECK: %[[A:.*]], %[[L:.*]] = kvbuffer.apply_raise %[[ANY]], %[[F]], %{{.*}}, %{{.*}} :
// CHECK: %[[P:.*]], %[[L1:.*]] = kvbuffer.softmax_tail %[[X]], %[[E]], %[[L]] :
// CHECK-NOT: kvbuffer.online_softmax
// CHECK-NOT: kvbuffer.rescale
// REMARK: 8 in base 2
gpu.module @m {
  gpu.func @lazy(%s: !s, %m: !row, %l: !row, %a: !o) -> (!p, !row, !row, !o)
      attributes {kvbuffer.schedule = #lazy} {
    %p, %m1, %l1, %r = kvbuffer.online_softmax %s, %m, %l {scale = 0.125 : f32, masked} : !s, !row -> !p
    %a1 = kvbuffer.rescale %a, %r : !o, !row
    gpu.return %p, %m1, %l1, %a1 : !p, !row, !row, !o
  }
}

// -----

!s = !kvbuffer.fragment<128x64xf32, acc>
!row = !kvbuffer.fragment<128x1xf32, row>
!o = !kvbuffer.fragment<128x128xf32, acc>
!p = !kvbuffer.fragment<128x64xbf16, a>
#lazy = #kvbuffer.schedule<BM = 128, BN = 64, BK = 32, stages = 2, warps = 4, mma_shape = [32, 32, 16], swap_a_b = true, lazy_rescale = true>
#eager = #kvbuffer.schedule<BM = 128, BN = 64, BK = 32, stages = 2, warps = 4, mma_shape = [32, 32, 16], swap_a_b = true>

// A factor that something else reads too, and a schedule that does not ask.
// CHECK-LABEL: gpu.func @two_readers
// CHECK: kvbuffer.online_softmax
// CHECK-LABEL: gpu.func @eager
// CHECK: kvbuffer.online_softmax
// REMARK: rescaled every time: the factor is not of one accumulator that is there before the softmax
gpu.module @m {
  gpu.func @two_readers(%s: !s, %m: !row, %l: !row, %a: !o) -> (!p, !row, !o)
      attributes {kvbuffer.schedule = #lazy} {
    %p, %m1, %l1, %r = kvbuffer.online_softmax %s, %m, %l {scale = 0.125 : f32, masked} : !s, !row -> !p
    %a1 = kvbuffer.rescale %a, %r : !o, !row
    gpu.return %p, %r, %a1 : !p, !row, !o
  }
  gpu.func @eager(%s: !s, %m: !row, %l: !row, %a: !o) -> (!p, !o)
      attributes {kvbuffer.schedule = #eager} {
    %p, %m1, %l1, %r = kvbuffer.online_softmax %s, %m, %l {scale = 0.125 : f32, masked} : !s, !row -> !p
    %a1 = kvbuffer.rescale %a, %r : !o, !row
    gpu.return %p, %a1 : !p, !o
  }
}
