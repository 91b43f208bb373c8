// A block of one warp: each lane looks up the page of a row, and copies get it by
// shuffles, one a page where a step of the copies lies within one.
// RUN: kvbuf-opt %s --convert-kvbuffer-to-gpu | FileCheck %s

#one = #kvbuffer.schedule<BM = 16, BN = 32, BK = 64, warps = 1, mma_shape = [16, 8, 16]>
#two = #kvbuffer.schedule<BM = 32, BN = 32, BK = 64, warps = 2, mma_shape = [16, 8, 16]>
!slot = !kvbuffer.buffer<#kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 32, depth = 64, stages = 1>>
!slot2 = !kvbuffer.buffer<#kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 64, depth = 64, stages = 1>>
!tokens = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 1>
!pages = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 16>
!three = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 3>

module attributes {gpu.container_module, kvbuffer.target = "sm_80"} {
gpu.module @work {
  // 32 rows, four a step: two pages, of rows 0 to 15 and 16 to 31. No look-up for
  // rows that are not there.
  // CHECK-LABEL: gpu.func @aligned
  // CHECK: %[[THERE:.*]] = arith.cmpi slt, %{{.*}}, %[[HI:.*]] : i32
  // CHECK: %[[PAGE:.*]] = scf.if %[[THERE]] -> (i32) {
  // CHECK:   memref.load
  // CHECK: } else {
  // CHECK:   scf.yield %c0_i32
  // CHECK: gpu.shuffle idx %[[PAGE]], %c0_i32{{.*}}, %c32_i32
  // CHECK: gpu.shuffle idx %[[PAGE]], %c16_i32{{.*}}, %c32_i32
  // CHECK-NOT: memref.load
  // CHECK-NOT: gpu.shuffle
  // A lane's place in a page is a part of the source: of each page's number, one
  // multiplication is left.
  // CHECK: scf.if
  // CHECK:   %[[SOURCE:.*]] = memref.reinterpret_cast %{{.*}} to offset: [%{{.*}}]
  // CHECK:   %[[STRIDE:.*]] = arith.muli %c4{{.*}}, %[[ROW:.*]] : index
  // CHECK:   arith.addi %{{.*}}, %[[STRIDE]] : index
  // CHECK-COUNT-8: nvgpu.device_async_copy %[[SOURCE]]
  gpu.func @aligned(%k: !pages {kvbuffer.name = "k"})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #one, kvbuffer.grid = [1, 1, 1]} {
    %c0 = arith.constant 0 : index
    %n = kvbuffer.launch_value "batch"
    %c32 = arith.constant 32 : index
    %block = gpu.block_id x
    %key = arith.muli %block, %c32 : index
    %slot = kvbuffer.alloc : !slot
    %t = kvbuffer.cache_tile %k[%c0, %c0, %key] from %c0 upto %n : !pages -> !kvbuffer.tile<32x64xbf16, page_size = 16>
    %token = kvbuffer.dram_load %t into %slot[%c0] : !kvbuffer.tile<32x64xbf16, page_size = 16>, !slot
    gpu.return
  }
  // Nothing says where pages begin: a shuffle for each step, eight in all.
  // CHECK-LABEL: gpu.func @anywhere
  // CHECK-COUNT-8: gpu.shuffle idx
  // CHECK-NOT: gpu.shuffle
  // CHECK-LABEL: gpu.func @token
  // CHECK-COUNT-8: gpu.shuffle idx
  // CHECK-NOT: gpu.shuffle
  // CHECK-LABEL: gpu.func @odd
  // CHECK-COUNT-8: gpu.shuffle idx
  // CHECK-NOT: gpu.shuffle
  gpu.func @anywhere(%k: !pages {kvbuffer.name = "k"})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #one, kvbuffer.grid = [1, 1, 1]} {
    %c0 = arith.constant 0 : index
    %n = kvbuffer.launch_value "batch"
    %key = gpu.block_id x
    %slot = kvbuffer.alloc : !slot
    %t = kvbuffer.cache_tile %k[%c0, %c0, %key] from %c0 upto %n : !pages -> !kvbuffer.tile<32x64xbf16, page_size = 16>
    %token = kvbuffer.dram_load %t into %slot[%c0] : !kvbuffer.tile<32x64xbf16, page_size = 16>, !slot
    gpu.return
  }
  gpu.func @token(%k: !tokens {kvbuffer.name = "k"})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #one, kvbuffer.grid = [1, 1, 1]} {
    %c0 = arith.constant 0 : index
    %n = kvbuffer.launch_value "batch"
    %slot = kvbuffer.alloc : !slot
    %t = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %n : !tokens -> !kvbuffer.tile<32x64xbf16, page_size = 1>
    %token = kvbuffer.dram_load %t into %slot[%c0] : !kvbuffer.tile<32x64xbf16, page_size = 1>, !slot
    gpu.return
  }
  gpu.func @odd(%k: !three {kvbuffer.name = "k"})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #one, kvbuffer.grid = [1, 1, 1]} {
    %c0 = arith.constant 0 : index
    %n = kvbuffer.launch_value "batch"
    %slot = kvbuffer.alloc : !slot
    %t = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %n : !three -> !kvbuffer.tile<32x64xbf16, page_size = 3>
    %token = kvbuffer.dram_load %t into %slot[%c0] : !kvbuffer.tile<32x64xbf16, page_size = 3>, !slot
    gpu.return
  }
  // A loop's tile is the one before it or the first: both start with a page.
  // CHECK-LABEL: gpu.func @carried
  // CHECK: scf.for
  // CHECK-COUNT-2: gpu.shuffle idx
  // CHECK-NOT: gpu.shuffle
  gpu.func @carried(%k: !pages {kvbuffer.name = "k"})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #one, kvbuffer.grid = [1, 1, 1]} {
    %c0 = arith.constant 0 : index
    %n = kvbuffer.launch_value "batch"
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %slot = kvbuffer.alloc : !slot
    %first = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %n : !pages -> !kvbuffer.tile<32x64xbf16, page_size = 16>
    %last = scf.for %i = %c0 to %n step %c1 iter_args(%t = %first) -> (!kvbuffer.tile<32x64xbf16, page_size = 16>) {
      %token = kvbuffer.dram_load %t into %slot[%c0] : !kvbuffer.tile<32x64xbf16, page_size = 16>, !slot
      %key = arith.muli %i, %c32 : index
      %next = kvbuffer.cache_tile %k[%c0, %c0, %key] from %c0 upto %n : !pages -> !kvbuffer.tile<32x64xbf16, page_size = 16>
      scf.yield %next : !kvbuffer.tile<32x64xbf16, page_size = 16>
    }
    gpu.return
  }
  // Two warps: each thread looks up the pages of its own rows.
  // CHECK-LABEL: gpu.func @two_warps
  // CHECK-NOT: gpu.shuffle
  // CHECK-COUNT-4: memref.load
  // CHECK-NOT: gpu.shuffle
  gpu.func @two_warps(%k: !pages {kvbuffer.name = "k"})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #two, kvbuffer.grid = [1, 1, 1]} {
    %c0 = arith.constant 0 : index
    %n = kvbuffer.launch_value "batch"
    %slot = kvbuffer.alloc : !slot2
    %t = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %n : !pages -> !kvbuffer.tile<32x64xbf16, page_size = 16>
    %token = kvbuffer.dram_load %t into %slot[%c0] : !kvbuffer.tile<32x64xbf16, page_size = 16>, !slot2
    gpu.return
  }
}
}
