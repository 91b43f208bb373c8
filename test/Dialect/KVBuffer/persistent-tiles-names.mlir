// Rows and sequences are those that the grid of one tile a block speaks of,
// whatever the arguments and sizes are called. Of a ragged batch, tiles are
// counted of all rows.

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-persistent-tiles)))" | FileCheck %s

#schedule = #kvbuffer.schedule<BM = 64, BN = 16, BK = 16, warps = 4, mma_shape = [16, 8, 16], producers = 4, tiles = static>
#problem = {cache = "ragged", causal = false, head_size = 16, heads = 4, kv_heads = 2, window_right = -1}
gpu.module @m {
  // CHECK-LABEL: gpu.func @ragged
  // CHECK-SAME:    kvbuffer.grid = [{min = [{product = ["sms", 1]}, {product = [{sum = [{ceildiv = ["tokens", 64]}, "users"]}, 4]}]}, 1, 1]
  // CHECK:         %[[USERS:.*]] = arith.subi
  // CHECK:         %[[TOKENS:.*]] = memref.dim %{{.*}} : memref<?x4x16xbf16>
  // CHECK:         kvbuffer.number_tiles %{{.*}} of %[[USERS]] upto %[[TOKENS]] by 64 into
  gpu.func @ragged(%x: memref<?x4x16xbf16> {kvbuffer.name = "x"}, %starts: memref<?xi32> {kvbuffer.name = "starts"}) kernel attributes {kvbuffer.grid = [{sum = [{ceildiv = ["tokens", 64]}, "users"]}, 4, 1], kvbuffer.problem = #problem, kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %c1 = arith.constant 1 : index
    %number = gpu.block_id x
    %ends = memref.dim %starts, %c0 : memref<?xi32>
    %users = arith.subi %ends, %c1 : index
    %tokens = memref.dim %x, %c0 : memref<?x4x16xbf16>
    %sequence, %tile = kvbuffer.find_tile %number in %starts of %users upto %tokens by 64 : memref<?xi32>
    %row = arith.muli %tile, %c64 : index
    %rows = kvbuffer.dram_tile %x[%row, %c0] valid(%c64) : memref<?x4x16xbf16> -> !kvbuffer.tile<64x16xbf16>
    gpu.return
  }
}
