// Operands that the matrix unit cannot read by itself.

// RUN: kvbuf-opt %s --split-input-file --verify-diagnostics --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-async-products)))"

#schedule = #kvbuffer.schedule<BM = 64, BN = 16, BK = 16, warps = 4, mma_shape = [16, 8, 16], producers = 4>
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 128, depth = 32, stages = 1>
gpu.module @m {
  gpu.func @registers() kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %a = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<64x16xbf16, a>
    %kf = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<16x16xbf16, b>
    %acc = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<64x16xf32, acc>
    %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    %kring = kvbuffer.ring %kbuf from @producers to [@consumers] : !kvbuffer.buffer<#kbuf>
    kvbuffer.teams {
      kvbuffer.team @consumers warps(4) {
        %ks = kvbuffer.ring_wait %kring[%c0] : !kvbuffer.ring<#kbuf>
        // expected-error @below {{'kvbuffer.mma' op expected operand b to be loaded from a ring's slot, which the matrix unit reads by itself}}
        %s = kvbuffer.mma %a, %kf, %acc {transpose_b} : !kvbuffer.fragment<64x16xbf16, a>, !kvbuffer.fragment<16x16xbf16, b>, !kvbuffer.fragment<64x16xf32, acc>
      }
      kvbuffer.team @producers warps(4) {
      }
    }
    gpu.return
  }
}
