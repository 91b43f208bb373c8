// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu))" | FileCheck %s

// Buffers that are filled through registers where copies are asynchronous.

#staged = #kvbuffer.kv_buffer<32x64xbf16, policy = register_staged, swizzle = [3, 0, 3]>
#copied = #kvbuffer.kv_buffer<32x64xbf16, swizzle = [3, 0, 3]>
#strip = #kvbuffer.kv_buffer<32x64xbf16, policy = streaming, swizzle = [3, 0, 3]>
#schedule = #kvbuffer.schedule<BM = 16, BN = 32, BK = 64, warps = 1, mma_shape = [16, 8, 16]>
!m = memref<?x64xbf16, strided<[?, 1]>>
!tile = !kvbuffer.tile<32x64xbf16>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // A lane loads its vectors, eight of them, where rows exist; the wait stores
    // them before its barrier, and no copy is awaited.
    // CHECK-LABEL: gpu.func @staged
    // CHECK-NOT: device_async
    // CHECK-COUNT-8: vector.load {{.*}} : memref<{{.*}}>, vector<8xbf16>
    // CHECK-NOT: vector.load
    // CHECK-COUNT-8: vector.store
    // CHECK-NEXT: gpu.barrier
    // CHECK-NOT: device_async
    // CHECK: gpu.return
    gpu.func @staged(%x: !m {kvbuffer.name = "x", kvbuffer.shape = ["m", 64]}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %rows = memref.dim %x, %c0 : !m
      %c64 = arith.constant 64 : index
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#staged>
      %tile = kvbuffer.dram_tile %x[%c0, %c0] valid(%rows, %c64) : !m -> !tile
      %token = kvbuffer.dram_load %tile into %buf[%c0] {whole} : !tile, !kvbuffer.buffer<#staged>
      %s = kvbuffer.lds_stage %token {younger = 0 : i64} : !kvbuffer.token<#staged>
      gpu.return
    }
    // Beside copies a load through registers is a group without one: waits count
    // all younger loads.
    // CHECK-LABEL: gpu.func @beside
    // CHECK: nvgpu.device_async_copy
    // CHECK: nvgpu.device_async_create_group
    // CHECK: vector.load
    // CHECK: nvgpu.device_async_create_group
    // CHECK-NEXT: nvgpu.device_async_wait {{.*}}numGroups = 1
    // CHECK-NEXT: gpu.barrier
    // CHECK-COUNT-8: vector.store
    // CHECK-NEXT: gpu.barrier
    gpu.func @beside(%x: !m {kvbuffer.name = "x", kvbuffer.shape = ["m", 64]}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %rows = memref.dim %x, %c0 : !m
      %c64 = arith.constant 64 : index
      %a = kvbuffer.alloc : !kvbuffer.buffer<#copied>
      %b = kvbuffer.alloc : !kvbuffer.buffer<#staged>
      %tile = kvbuffer.dram_tile %x[%c0, %c0] valid(%rows, %c64) : !m -> !tile
      %ta = kvbuffer.dram_load %tile into %a[%c0] {whole} : !tile, !kvbuffer.buffer<#copied>
      %tb = kvbuffer.dram_load %tile into %b[%c0] {whole} : !tile, !kvbuffer.buffer<#staged>
      %sa = kvbuffer.lds_stage %ta {younger = 1 : i64} : !kvbuffer.token<#copied>
      %sb = kvbuffer.lds_stage %tb {younger = 0 : i64} : !kvbuffer.token<#staged>
      gpu.return
    }
    // Strips are copied as any tile; the program's own barrier ends the reads.
    // CHECK-LABEL: gpu.func @strips
    // CHECK: nvgpu.device_async_wait
    // CHECK-NEXT: gpu.barrier
    // CHECK: gpu.barrier
    // CHECK: nvgpu.device_async_copy
    gpu.func @strips(%x: !m {kvbuffer.name = "x", kvbuffer.shape = ["m", 64]}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %rows = memref.dim %x, %c0 : !m
      %c64 = arith.constant 64 : index
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#strip>
      %tile = kvbuffer.dram_tile %x[%c0, %c0] valid(%rows, %c64) : !m -> !tile
      %t0 = kvbuffer.dram_load %tile into %buf[%c0] : !tile, !kvbuffer.buffer<#strip>
      %s0 = kvbuffer.lds_stage %t0 {younger = 0 : i64} : !kvbuffer.token<#strip>
      kvbuffer.meet
      %t1 = kvbuffer.dram_load %tile into %buf[%c0] : !tile, !kvbuffer.buffer<#strip>
      %s1 = kvbuffer.lds_stage %t1 {younger = 0 : i64} : !kvbuffer.token<#strip>
      gpu.return
    }
  }
}
