// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu))" --split-input-file --verify-diagnostics

// Buffers that instructions do not divide, or that threads cannot copy.

#buf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 1, WN = 1, BK = 1, num_threads = 32, depth = 1, stages = 2>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @row() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>} {
      // expected-error @below {{'kvbuffer.alloc' op has a buffer with BN = 1, which no 16x8x16 instruction divides; expected a multiple of 8}}
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      gpu.return
    }
  }
}

// -----

#buf = #kvbuffer.kv_buffer<v, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 4, num_threads = 32, depth = 4, stages = 2>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @block() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>} {
      // expected-error @below {{'kvbuffer.alloc' op has a buffer with BK = 4, which no 16x8x16 instruction divides; expected a multiple of 16}}
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      gpu.return
    }
  }
}

// -----

#buf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 512, num_threads = 32, depth = 512, stages = 1>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @wide() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>} {
      // expected-error @below {{'kvbuffer.alloc' op has a buffer with BK = 512, more columns than 32 threads copy at a time; expected at most 256}}
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      gpu.return
    }
  }
}
