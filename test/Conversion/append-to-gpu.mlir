// New tokens: the block's lanes take a head each of as many tokens as there are lanes
// for, and meet once all are stored.
// RUN: kvbuf-opt %s --convert-kvbuffer-to-gpu | FileCheck %s
// RUN: kvbuf-opt %s --convert-kvbuffer-to-gpu --kvbuf-expand-cache-ops | FileCheck %s --check-prefix=MEMREFS

#schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 64, warps = 1, mma_shape = [16, 8, 16]>
!paged = !kvbuffer.cache<paged, f8E4M3FN, heads = 2, head_size = 128, page_size = 16, scale = f32, granularity = 128>
!new = memref<?x4x2x128xbf16>

module attributes {gpu.container_module, kvbuffer.target = "sm_90"} {
gpu.module @tokens {
  // What is stored is read and written, scales that are made too. Angles are loaded
  // 16 bytes at a time.
  // CHECK-LABEL: gpu.func @append
  // CHECK-SAME: <pointer "cos", alignment = 16>
  // CHECK-SAME: <size num_blocks>
  // CHECK-SAME: <size pages_per_seq>
  // CHECK-SAME: #kvbuffer.tensor<"k" : f8E4M3FN[{{[^]]*}}], read_write, cache>
  // CHECK-SAME: #kvbuffer.tensor<"k.scales" : f32[{{[^]]*}}], read_write>
  gpu.func @append(%k: !new {kvbuffer.name = "k_new", kvbuffer.shape = ["batch", 4, 2, 128]},
                   %kc: !paged {kvbuffer.name = "k"},
                   %cos: memref<?x64xf32> {kvbuffer.name = "cos"}, %sin: memref<?x64xf32> {kvbuffer.name = "sin"})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [2, "batch", 1]} {
    %head = gpu.block_id x
    %batch = gpu.block_id y
    %c32 = arith.constant 32 : index
    %c48 = arith.constant 48 : index
    // Eight lanes a head: 16 elements, 8 of each half. Four tokens at a time.
    // CHECK:     %[[LENGTH:.*]] = kvbuffer.cache.cache_length
    // CHECK:     scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c4
    // CHECK:       vector.load {{.*}} vector<8xbf16>
    // CHECK:       vector.load {{.*}} vector<8xf32>
    // CHECK-COUNT-3: gpu.shuffle  xor
    // CHECK:       kvbuffer.cache.store_scale
    // CHECK:       kvbuffer.cache.store {{.*}} : vector<8xf8E4M3FN>
    // CHECK:     gpu.barrier
    // CHECK-NEXT: gpu.return
    // MEMREFS-LABEL: gpu.func @append
    // MEMREFS-NOT: kvbuffer.cache
    // MEMREFS: vector.store {{.*}} : memref<?x16x2x128xf8E4M3FN, strided<[?, ?, ?, 1]>>
    kvbuffer.append_tokens[%batch, %head] from %c32 upto %c48 k(%k : !new) to(%kc : !paged)
      rope(%cos, %sin : memref<?x64xf32>, memref<?x64xf32>)
    gpu.return
  }
}
}
