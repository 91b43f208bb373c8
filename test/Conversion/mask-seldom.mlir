// A mask of which few tiles have any use is behind a question to all lanes: elements stay as
// they are, one by one, or are compared with the sequence's end.

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu))" | FileCheck %s

#schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 1, mma_shape = [32, 32, 16], swap_a_b = true>
!acc = !kvbuffer.fragment<32x32xf32, acc>

module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @m {
    // CHECK-LABEL:    gpu.func @masked
    // CHECK:          %[[LEFT:.*]] = arith.subi %c100, %c96 : index
    // CHECK:          %[[EDGE:.*]] = arith.{{.*}} : index to i32
    // CHECK:          %[[CUT:.*]] = arith.cmpi slt, %[[EDGE]], %c32_i32
    // CHECK-NOT:      arith.cmpi
    // CHECK:          %[[ANY:.*]] = kvbuffer.lane_any %[[CUT]]
    // CHECK-NEXT:     scf.if %[[ANY]]
    // CHECK-COUNT-16: arith.cmpi sgt
    // CHECK-NOT:      arith.cmpi
    // CHECK:          } else {
    // CHECK-NEXT:       scf.yield
    gpu.func @masked() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %key = arith.constant 96 : index
      %keys = arith.constant 100 : index
      %acc = kvbuffer.fragment_fill 2.0 : !acc
      %h = kvbuffer.mask %acc rows(%c0, %keys) keys(%key, %keys) {mask = #kvbuffer.mask<>, seldom} : !acc
      %factor = kvbuffer.fragment_fill 0.5 : !kvbuffer.fragment<32x1xf32, row>
      %r = kvbuffer.rescale %h, %factor
        : !acc, !kvbuffer.fragment<32x1xf32, row>
      gpu.return
    }
  }
}
