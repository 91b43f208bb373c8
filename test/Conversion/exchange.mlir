// Fragments that change their layout among lanes, and layouts that types name.

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu,canonicalize,cse))" --split-input-file | FileCheck %s

// Each word of two weights is transposed once; what it is then is the operand's
// word of the same number.
#acc = #kvbuffer.mma<mma_sync, acc, shape = [16, 8, 16], warps = [1, 1], swapped = true>
!tile = memref<?x?x1x16xbf16>
module attributes {gpu.container_module, kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @weights(
    // CHECK:       %[[P:.*]] = arith.truncf {{.*}} : vector<2xf32> to vector<2xbf16>
    // CHECK:       %[[BITS:.*]] = vector.bitcast %[[P]] : vector<2xbf16> to vector<1xi32>
    // CHECK:       %[[WORD:.*]] = vector.extract %[[BITS]][0]
    // CHECK:       %[[MOVED:.*]] = kvbuffer.lane_transpose %[[WORD]]
    // CHECK:       kvbuffer.lane_transpose
    // CHECK-NOT:   kvbuffer.lane_transpose
    // CHECK:       kvbuffer.lane_mma a({{.*}}) b(
    gpu.func @weights(%q: !tile {kvbuffer.name = "q"}, %o: !tile {kvbuffer.name = "o"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 8, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16], swap_a_b = true>} {
      %c0 = arith.constant 0 : index
      %c8 = arith.constant 8 : index
      %s = kvbuffer.fragment_fill 2.0 : !kvbuffer.fragment<8x16xf32, acc>
      %m = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<8x1xf32, row>
      %p, %m1, %l1, %f = kvbuffer.online_softmax %s, %m, %m {scale = 1.0 : f32} : !kvbuffer.fragment<8x16xf32, acc>, !kvbuffer.fragment<8x1xf32, row> -> !kvbuffer.fragment<8x16xbf16, a>
      %v = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<16x16xbf16, b>
      %acc = kvbuffer.mma %p, %v, %s : !kvbuffer.fragment<8x16xbf16, a>, !kvbuffer.fragment<16x16xbf16, b>, !kvbuffer.fragment<8x16xf32, acc>
      %tile = kvbuffer.dram_tile %o[%c0, %c0, %c0] valid(%c8) : !tile -> !kvbuffer.tile<8x16xbf16>
      %o16 = kvbuffer.fragment_convert %acc : !kvbuffer.fragment<8x16xf32, acc> -> !kvbuffer.fragment<8x16xbf16, acc>
      // Two words before the store, whose pieces are two columns then.
      // CHECK-COUNT-2: kvbuffer.lane_transpose
      // CHECK-NOT:     kvbuffer.lane_transpose
      // CHECK:         vector.store {{.*}} : memref<{{.*}}>, vector<{{[248]}}xbf16>
      // CHECK-NOT:     vector<1xbf16>
      kvbuffer.fragment_store %o16, %tile : !kvbuffer.fragment<8x16xbf16, acc>, !kvbuffer.tile<8x16xbf16>
      gpu.return
    }
  }
}

// -----

// Two fragments of one kernel with instructions of two shapes.
#small = #kvbuffer.mma<mfma, acc, shape = [16, 16, 32], warps = [2, 1], swapped = true>
module attributes {gpu.container_module, kvbuffer.target = "gfx950"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @shapes(
    // CHECK:         kvbuffer.lane_mma {{.*}} c(%{{.*}} : vector<4xf32>) {shape = array<i64: 16, 16, 32>}
    // CHECK:         kvbuffer.lane_mma {{.*}} c(%{{.*}} : vector<16xf32>) {shape = array<i64: 32, 32, 16>}
    gpu.func @shapes(%q: memref<?x?x1x32xbf16> {kvbuffer.name = "q"}, %o: memref<?x?x1x32xbf16> {kvbuffer.name = "o"}) kernel attributes {kvbuffer.grid = [1, 1, 1], kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 32, warps = 2, mma_shape = [32, 32, 16], swap_a_b = true>} {
      %c0 = arith.constant 0 : index
      %c32 = arith.constant 32 : index
      %qt = kvbuffer.dram_tile %q[%c0, %c0, %c0] valid(%c32) : memref<?x?x1x32xbf16> -> !kvbuffer.tile<32x32xbf16>
      %a0 = kvbuffer.tile_fragment %qt : !kvbuffer.tile<32x32xbf16> -> !kvbuffer.fragment<32x32xbf16, a>
      %b0 = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<32x32xbf16, b>
      %z0 = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<32x32xf32, acc, #small>
      %r0 = kvbuffer.mma %a0, %b0, %z0 : !kvbuffer.fragment<32x32xbf16, a>, !kvbuffer.fragment<32x32xbf16, b>, !kvbuffer.fragment<32x32xf32, acc, #small>
      %qt1 = kvbuffer.dram_tile %q[%c0, %c32, %c0] valid(%c32) : memref<?x?x1x32xbf16> -> !kvbuffer.tile<64x32xbf16>
      %a1 = kvbuffer.tile_fragment %qt1 : !kvbuffer.tile<64x32xbf16> -> !kvbuffer.fragment<64x32xbf16, a>
      %b1 = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<32x32xbf16, b>
      %z1 = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<64x32xf32, acc>
      %r1 = kvbuffer.mma %a1, %b1, %z1 : !kvbuffer.fragment<64x32xbf16, a>, !kvbuffer.fragment<32x32xbf16, b>, !kvbuffer.fragment<64x32xf32, acc>
      %t0 = kvbuffer.dram_tile %o[%c0, %c0, %c0] valid(%c32) : memref<?x?x1x32xbf16> -> !kvbuffer.tile<32x32xbf16>
      %o0 = kvbuffer.fragment_convert %r0 : !kvbuffer.fragment<32x32xf32, acc, #small> -> !kvbuffer.fragment<32x32xbf16, acc>
      kvbuffer.fragment_store %o0, %t0 : !kvbuffer.fragment<32x32xbf16, acc>, !kvbuffer.tile<32x32xbf16>
      %t1 = kvbuffer.dram_tile %o[%c0, %c32, %c0] valid(%c32) : memref<?x?x1x32xbf16> -> !kvbuffer.tile<64x32xbf16>
      %o1 = kvbuffer.fragment_convert %r1 : !kvbuffer.fragment<64x32xf32, acc> -> !kvbuffer.fragment<64x32xbf16, acc>
      kvbuffer.fragment_store %o1, %t1 : !kvbuffer.fragment<64x32xbf16, acc>, !kvbuffer.tile<64x32xbf16>
      gpu.return
    }
  }
}
