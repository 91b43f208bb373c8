// RUN: kvbuf-opt %s --verify-diagnostics --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-persistent-tiles)))"

#schedule = #kvbuffer.schedule<BM = 64, BN = 16, BK = 16, warps = 4, mma_shape = [16, 8, 16], producers = 4, tiles = static>
gpu.module @m {
  // expected-error @below {{expected 'kvbuffer.problem' with heads, kv_heads, head_size, window_right, causal and cache}}
  gpu.func @no_problem() kernel attributes {kvbuffer.schedule = #schedule} {
    gpu.return
  }

  // expected-error @below {{expected 'kvbuffer.grid' = [{ceildiv = [rows, 64]}, heads, sequences], the grid of one tile of BM rows a block}}
  gpu.func @other_grid() kernel attributes {kvbuffer.grid = ["seq_q", 4, "batch"], kvbuffer.problem = {cache = "dense", causal = true, head_size = 64, heads = 4, kv_heads = 2, window_right = -1}, kvbuffer.schedule = #schedule} {
    gpu.return
  }
}
