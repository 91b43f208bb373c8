// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu))" --split-input-file --verify-diagnostics

// A policy that a chip's lowering does not implement would be another one.

#buf = #kvbuffer.kv_buffer<k, bf16, streaming, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 16, stages = 2>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @streaming() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>} {
      // expected-error @below {{'kvbuffer.alloc' op has the policy streaming, which is not implemented for sm_80; expected double_buffered}}
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      gpu.return
    }
  }
}

// -----

#buf = #kvbuffer.kv_buffer<v, bf16, register_staged, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 16, stages = 2>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @staged() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>} {
      // expected-error @below {{'kvbuffer.alloc' op has the policy register_staged, which is not implemented for sm_90a; expected double_buffered}}
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      gpu.return
    }
  }
}

// -----

#buf = #kvbuffer.kv_buffer<k, bf16, streaming, mma_shape = [32, 32, 16], BN = 64, WN = 64, BK = 32, num_threads = 64, depth = 64, stages = 1, warp_size = 64>
module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @m {
    gpu.func @streaming() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 32, BN = 64, BK = 32, warps = 1, mma_shape = [32, 32, 16], swap_a_b = true>} {
      // expected-error @below {{'kvbuffer.alloc' op has the policy streaming, which is not implemented for gfx950; expected double_buffered or register_staged}}
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      gpu.return
    }
  }
}
