// Scores of any size that are multiplied by more than 2 in base 2: a row without a key, whose
// maximum is -inf, has an offset in f32's range, half of the lowest number times the 2 that very
// low maxima are multiplied by. (-inf and inf would be NaN.)

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu))" | FileCheck %s

#schedule = #kvbuffer.schedule<BM = 16, BN = 8, BK = 16, warps = 1, mma_shape = [16, 8, 16]>
!acc = !kvbuffer.fragment<16x8xf32, acc>
!row = !kvbuffer.fragment<16x1xf32, row>

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @steep
    // CHECK:         %[[LOWEST:.*]] = arith.constant -1.70141173E+38 : f32
    // CHECK-NEXT:    %[[FINITE:.*]] = arith.maxnumf %{{.*}}, %[[LOWEST]] : f32
    // CHECK:         %[[POWER:.*]] = arith.constant 2.000000e+00 : f32
    // CHECK:         %[[SCALE:.*]] = arith.select %{{.*}}, %[[POWER]], %{{.*}} : f32
    // CHECK:         %[[NEGATIVE:.*]] = arith.negf %[[SCALE]] : f32
    // CHECK:         arith.mulf %[[FINITE]], %[[NEGATIVE]] : f32
    gpu.func @steep(%out: memref<?x?x1x8xf16> {kvbuffer.name = "out"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c16 = arith.constant 16 : index
      %s = kvbuffer.fragment_fill 1.0 : !acc
      %m = kvbuffer.fragment_fill 0.0 : !row
      %p, %m1, %l1, %f = kvbuffer.online_softmax %s, %m, %m {masked, scale = 2.0 : f32, unbounded} : !acc, !row -> !acc
      %o = kvbuffer.fragment_convert %p : !acc -> !kvbuffer.fragment<16x8xf16, acc>
      %to = kvbuffer.dram_tile %out[%c0, %c0, %c0] valid(%c16) : memref<?x?x1x8xf16> -> !kvbuffer.tile<16x8xf16>
      kvbuffer.fragment_store %o, %to : !kvbuffer.fragment<16x8xf16, acc>, !kvbuffer.tile<16x8xf16>
      gpu.return
    }
  }
}
