// What the order of tiles follows from is in the program, whatever its arguments
// and sizes are called, and with no problem stated: rows, heads and sequences are
// those of the grid of one tile a block; the mask is that of the ranges of keys;
// what heads share is what the arguments that are caches hold.

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-persistent-tiles)))" | FileCheck %s
// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-persistent-tiles)))" --remark-format=emitRemark --remarks-filter-missed=kvbuf-persistent-tiles 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

#schedule = #kvbuffer.schedule<BM = 64, BN = 16, BK = 16, warps = 4, mma_shape = [16, 8, 16], producers = 4, tiles = static>
#causal = #kvbuffer.mask<causal = true>
#window = #kvbuffer.mask<left = 128>
!rows = memref<?x?x4x16xbf16>
gpu.module @m {
  // Of a ragged batch, tiles are counted of all rows.
  // CHECK-LABEL: gpu.func @ragged
  // CHECK-SAME:    kvbuffer.grid = [{min = [{product = ["sms", 1]}, {product = [{sum = [{ceildiv = ["tokens", 64]}, "users"]}, 4]}]}, 1, 1]
  // CHECK:         %[[USERS:.*]] = arith.subi
  // CHECK:         %[[TOKENS:.*]] = memref.dim %{{.*}} : memref<?x4x16xbf16>
  // CHECK:         kvbuffer.number_tiles %{{.*}} of %[[USERS]] upto %[[TOKENS]] by 64 into
  gpu.func @ragged(%x: memref<?x4x16xbf16> {kvbuffer.name = "x"}, %starts: memref<?xi32> {kvbuffer.name = "starts"}) kernel attributes {kvbuffer.grid = [{sum = [{ceildiv = ["tokens", 64]}, "users"]}, 4, 1], kvbuffer.schedule = #schedule} {
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

  // One cache of 8-bit rows, of which 80 elements are a head: 80 bytes a token,
  // and 4 heads share one. Its room has a name of its own.
  // CHECK-LABEL: gpu.func @one_cache
  // CHECK:         kvbuffer.launch_size "length"
  // CHECK:         kvbuffer.launch_size "users"
  // CHECK:         %[[KEYS:.*]] = kvbuffer.launch_size "room"
  // CHECK:         %[[BYTES:.*]] = arith.constant 80 : index
  // CHECK:         %[[OF_HEAD:.*]] = arith.muli %{{.*}}, %[[BYTES]]
  // CHECK:         %[[ROOM:.*]] = arith.constant {{.*}} : index
  // CHECK:         %[[FIT:.*]] = arith.divui %[[ROOM]], %[[OF_HEAD]]
  // CHECK:         %[[HEADS:.*]] = arith.constant 4 : index
  // CHECK:         arith.muli %{{.*}}, %[[HEADS]]
  gpu.func @one_cache(%x: !rows {kvbuffer.name = "x"}, %latent: !kvbuffer.cache<continuous, f8E4M3FN, heads = 1, head_size = 80> {kvbuffer.name = "latent", kvbuffer.sizes = {max_seq = "room"}}) kernel attributes {kvbuffer.grid = [{ceildiv = ["length", 64]}, 4, "users"], kvbuffer.schedule = #schedule} {
    %c64 = arith.constant 64 : index
    %x_ = gpu.block_id x
    %head = gpu.block_id y
    %user = gpu.block_id z
    %row = arith.muli %x_, %c64 : index
    %n = kvbuffer.cache.num_keys %latent[%user] new(%c64) : !kvbuffer.cache<continuous, f8E4M3FN, heads = 1, head_size = 80>
    %lo, %hi, %full, %end = kvbuffer.key_range %row of %c64 keys %n {BM = 64, mask = #causal}
    %tile = kvbuffer.dram_tile %x[%user, %row, %head] valid(%hi) : !rows -> !kvbuffer.tile<64x16xbf16>
    gpu.return
  }

  // Nothing says what heads share: they follow each other.
  // REMARK: persistent-tiles-names.mlir:[[@LINE+5]]:{{.*}} remark: [Missed] tiles{{.*}}heads follow each other: no argument is a cache, so that nothing says what heads share
  // CHECK-LABEL: gpu.func @no_cache
  // CHECK:         scf.for %[[T:.*]] = %{{.*}} to %{{.*}} step
  // CHECK-NEXT:      %[[HEAD:.*]] = arith.divui %[[T]],
  // CHECK-NEXT:      arith.remui %[[T]],
  gpu.func @no_cache(%x: !rows {kvbuffer.name = "x"}) kernel attributes {kvbuffer.grid = [{ceildiv = ["length", 64]}, 4, "users"], kvbuffer.schedule = #schedule} {
    %c64 = arith.constant 64 : index
    %x_ = gpu.block_id x
    %head = gpu.block_id y
    %user = gpu.block_id z
    %row = arith.muli %x_, %c64 : index
    %lo, %hi, %full, %end = kvbuffer.key_range %row of %c64 keys %c64 {BM = 64, mask = #causal}
    %tile = kvbuffer.dram_tile %x[%user, %row, %head] valid(%hi) : !rows -> !kvbuffer.tile<64x16xbf16>
    gpu.return
  }

  // A mask that hides keys on the left leaves tiles as long as each other.
  // CHECK-LABEL: gpu.func @window
  // CHECK-NOT:     kvbuffer.launch_size "max_seq"
  gpu.func @window(%x: !rows {kvbuffer.name = "x"}, %latent: !kvbuffer.cache<continuous, bf16, heads = 1, head_size = 80> {kvbuffer.name = "latent"}) kernel attributes {kvbuffer.grid = [{ceildiv = ["length", 64]}, 4, "users"], kvbuffer.schedule = #schedule} {
    %c64 = arith.constant 64 : index
    %x_ = gpu.block_id x
    %head = gpu.block_id y
    %user = gpu.block_id z
    %row = arith.muli %x_, %c64 : index
    %n = kvbuffer.cache.num_keys %latent[%user] new(%c64) : !kvbuffer.cache<continuous, bf16, heads = 1, head_size = 80>
    %lo, %hi, %full, %end = kvbuffer.key_range %row of %c64 keys %n {BM = 64, mask = #window}
    %tile = kvbuffer.dram_tile %x[%user, %row, %head] valid(%hi) : !rows -> !kvbuffer.tile<64x16xbf16>
    gpu.return
  }
}
