// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu))" --split-input-file --verify-diagnostics

// A kernel without a chip to lower for.
gpu.module @m {
  // expected-error @below {{'gpu.func' op needs a 'kvbuffer.schedule' and a 'kvbuffer.target' on the module}}
  gpu.func @no_target() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>} {
    gpu.return
  }
}

// -----

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op is scheduled for a matrix instruction of shape 32x32x8; sm_80 has 16x8x16}}
    gpu.func @other_mma() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 32, warps = 1, mma_shape = [32, 32, 8]>} {
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op argument 0 has no 'kvbuffer.name', the role of its tensor}}
    gpu.func @nameless(%q: memref<?x?x2x64xbf16>) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>} {
      gpu.return
    }
  }
}
