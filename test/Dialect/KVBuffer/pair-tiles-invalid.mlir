// Programs whose first row is not understood.

// RUN: kvbuf-opt %s --verify-diagnostics --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-pair-tiles)))"

#schedule = #kvbuffer.schedule<BM = 64, BN = 16, BK = 16, warps = 4, mma_shape = [16, 8, 16], producers = 4, tiles = static, cluster = 2>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @row(%row: index, %queries: index, %keys: index) kernel attributes {kvbuffer.schedule = #schedule} {
      // expected-error @below {{'kvbuffer.key_range' op expected the first row to be a number of tiles times BM = 64, as kvbuf-lower-attention leaves it}}
      %lo, %hi, %fullLo, %fullHi = kvbuffer.key_range %row of %queries keys %keys {BM = 64 : i64, mask = #kvbuffer.mask<>}
      gpu.return
    }
  }
}
