// RUN: kvbuf-opt %s -pass-pipeline='builtin.module(gpu.module(gpu.func(kvbuf-tile-fragments)))' --split-input-file --verify-diagnostics

// A schedule that leaves the instruction open, as programs for every chip do.
#schedule = #kvbuffer.schedule<BM = 64, BN = 32>
gpu.module @m {
  gpu.func @open(%a: !kvbuffer.fragment<64x32xbf16, a>, %b: !kvbuffer.fragment<32x32xbf16, b>, %acc: !kvbuffer.fragment<64x32xf32, acc>) attributes {kvbuffer.schedule = #schedule} {
    // expected-error @below {{'kvbuffer.mma' op has no matrix instruction: neither its fragments' layouts nor the schedule name one; expected mma_shape in 'kvbuffer.schedule', as kvbuf-complete-program puts it in}}
    %s = kvbuffer.mma %a, %b, %acc {transpose_b} : !kvbuffer.fragment<64x32xbf16, a>, !kvbuffer.fragment<32x32xbf16, b>, !kvbuffer.fragment<64x32xf32, acc>
    gpu.return
  }
}
