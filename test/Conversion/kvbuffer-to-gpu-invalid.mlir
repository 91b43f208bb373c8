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

// -----

// What a manifest could not describe.
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op has two arguments with 'kvbuffer.name' = "q"}}
    gpu.func @k(%q: memref<?x?x2x64xbf16> {kvbuffer.name = "q"}, %r: memref<?x?x2x64xbf16> {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>} {
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op has no argument with 'kvbuffer.name' = "q"}}
    gpu.func @k(%lse: memref<?x2x?xf32> {kvbuffer.name = "lse"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>} {
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op argument 1 is 'k' of type 'memref<?xbf16>'; expected a memref of rank 4}}
    gpu.func @k(%q: memref<?x?x2x64xbf16> {kvbuffer.name = "q"}, %k: memref<?xbf16> {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>} {
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op argument 1 is 'bias' of type 'index'; expected q, k, v, o, q_offsets, lse or sink}}
    gpu.func @k(%q: memref<?x?x2x64xbf16> {kvbuffer.name = "q"}, %x: index {kvbuffer.name = "bias"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>} {
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op argument 0 is 'q' of type 'memref<?x?x?x2x64xbf16>'; expected a memref of rank 4}}
    gpu.func @k(%q: memref<?x?x?x2x64xbf16> {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>} {
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op argument 0 is 'q' of type 'memref<?x?x?x64xbf16>'; expected static heads and head_size}}
    gpu.func @k(%q: memref<?x?x?x64xbf16> {kvbuffer.name = "q"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>} {
      gpu.return
    }
  }
}

// -----

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // expected-error @below {{'gpu.func' op argument 1 fixes batch at 3, an argument before it at 2}}
    gpu.func @k(%q: memref<2x?x2x64xbf16> {kvbuffer.name = "q"}, %o: memref<3x?x2x64xbf16> {kvbuffer.name = "o"}, %k: !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64> {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>} {
      gpu.return
    }
  }
}
