// RUN: kvbuf-opt %s -pass-pipeline='builtin.module(gpu.module(gpu.func(kvbuf-tile-fragments)))' | FileCheck %s

// A layout that the program names is the step, and that of the parts.
#acc = #kvbuffer.mma<mfma, acc, shape = [16, 16, 32], warps = [1, 1]>
#a = #kvbuffer.mma<mfma, a, shape = [16, 16, 32], warps = [1, 1]>
module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @named
    // CHECK-COUNT-2: kvbuffer.mma {{.*}} : <32x32xbf16, a, #mma_a>, <32x32xbf16, b>, <32x32xf32, acc, #mma_acc>
    // CHECK-NOT:     kvbuffer.mma
    gpu.func @named(%a: !kvbuffer.fragment<32x64xbf16, a, #a>, %b: !kvbuffer.fragment<64x32xbf16, b>, %s: !kvbuffer.fragment<32x32xf32, acc, #acc>) kernel attributes {kvbuffer.schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 1, mma_shape = [32, 32, 16]>} {
      %o = kvbuffer.mma %a, %b, %s : !kvbuffer.fragment<32x64xbf16, a, #a>, !kvbuffer.fragment<64x32xbf16, b>, !kvbuffer.fragment<32x32xf32, acc, #acc>
      gpu.return
    }
  }
}
