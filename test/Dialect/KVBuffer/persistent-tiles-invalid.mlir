// RUN: kvbuf-opt %s --verify-diagnostics --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-persistent-tiles)))"

#schedule = #kvbuffer.schedule<BM = 64, BN = 16, BK = 16, warps = 4, mma_shape = [16, 8, 16], producers = 4, tiles = static>
gpu.module @m {
  // expected-error @below {{expected 'kvbuffer.grid' = [{ceildiv = [rows, 64]}, heads, sequences], the grid of one tile of BM rows a block, where heads is a number}}
  gpu.func @no_grid() kernel attributes {kvbuffer.schedule = #schedule} {
    gpu.return
  }

  // expected-error @below {{expected 'kvbuffer.grid' = [{ceildiv = [rows, 64]}, heads, sequences], the grid of one tile of BM rows a block, where heads is a number}}
  gpu.func @open_heads() kernel attributes {kvbuffer.grid = [{ceildiv = ["rows", 64]}, "heads", "batch"], kvbuffer.schedule = #schedule} {
    gpu.return
  }

  // Clusters of two heads.
  // expected-error @below {{expected 'kvbuffer.grid' = [{ceildiv = [rows, 64]}, heads, sequences], the grid of one tile of BM rows a block, where heads is a number that clusters of 2 divide}}
  gpu.func @odd_heads() kernel attributes {known_cluster_size = array<i32: 1, 2, 1>, kvbuffer.grid = [{ceildiv = ["rows", 64]}, 3, "batch"], kvbuffer.schedule = #schedule} {
    gpu.return
  }

  // expected-error @below {{expected 'kvbuffer.grid' = [{ceildiv = [rows, 64]}, heads, sequences], the grid of one tile of BM rows a block, where heads is a number}}
  gpu.func @other_grid() kernel attributes {kvbuffer.grid = ["seq_q", 4, "batch"], kvbuffer.schedule = #schedule} {
    gpu.return
  }
}
