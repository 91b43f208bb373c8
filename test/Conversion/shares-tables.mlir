// While one warp finds a block's share of the work, another one asks the L2 for the table
// of pages: for as many lines of 128 bytes as it has lanes, each block for others, up to
// the last row's end. Of what has no table, and of one whose size the kernel does not know,
// nobody asks for anything.

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu,canonicalize,cse))" | FileCheck %s

#slots = #kvbuffer.kv_buffer<64x64xbf16, stages = 2, BK = 64, swizzle = [3, 0, 3]>
#schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, stages = 2, warps = 4, mma_shape = [64, 8, 16], producers = 4, producer_registers = 24, consumer_registers = 240>
!paged = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 64, page_size = 64>
!dense = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>

module attributes {gpu.container_module, kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @paged
    gpu.func @paged(%k: !paged {kvbuffer.name = "k"},
                    %lengths: memref<?xi32> {kvbuffer.name = "lengths", kvbuffer.shape = ["batch"]})
        kernel attributes {known_block_size = array<i32: 256, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [4, 1, 1]} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c64 = arith.constant 64 : index
      %block = gpu.block_id x
      %batch = kvbuffer.launch_size "batch"
      %pages = kvbuffer.launch_size "pages_per_seq"
      // CHECK-DAG:  %[[ASKS:.*]] = arith.cmpi eq, %{{.*}}, %c6_i32
      // CHECK-DAG:  %[[FINDS:.*]] = arith.cmpi eq, %{{.*}}, %c7_i32
      // CHECK:      scf.if %[[ASKS]] {
      // CHECK:        %[[OF_BLOCK:.*]] = arith.muli %{{.*}}, %c32
      // CHECK:        %[[LINE:.*]] = arith.addi %[[OF_BLOCK]], %{{.*}}
      // CHECK:        %[[AT:.*]] = arith.muli %[[LINE]], %c32
      // CHECK:        %[[LAST:.*]] = arith.subi %{{.*}}, %c1
      // CHECK:        %[[START:.*]] = arith.muli %[[LAST]], %{{.*}}
      // CHECK:        %[[END:.*]] = arith.addi %[[START]], %{{.*}}
      // CHECK:        %[[THERE:.*]] = arith.cmpi slt, %[[AT]], %[[END]]
      // CHECK:        scf.if %[[THERE]] {
      // CHECK:          memref.prefetch %{{.*}}[%[[AT]]], read, locality<2>, data : memref<{{.*}}xi32
      // CHECK-NEXT:   }
      // CHECK-NEXT: }
      // CHECK:      nvvm.mbarrier.init
      // CHECK:      scf.if %[[FINDS]] {
      // CHECK:      gpu.barrier
      %size, %first, %start, %end = kvbuffer.share_work %block of %c4 over %batch least %c1 {
      ^bb0(%i: index):
        %n = memref.load %lengths[%i] : memref<?xi32>
        %units = arith.index_cast %n : i32 to index
        kvbuffer.yield %units : index
      }
      %buffer = kvbuffer.alloc : !kvbuffer.buffer<#slots>
      %ring = kvbuffer.ring %buffer from @load to [@read] : !kvbuffer.buffer<#slots>
      kvbuffer.teams {
        kvbuffer.team @read warps(4) registers(240) {
          scf.for %i = %first to %end step %c1 {
            %s = kvbuffer.ring_wait %ring[%i] : !kvbuffer.ring<#slots>
            kvbuffer.ring_release %ring[%i] : !kvbuffer.ring<#slots>
          }
        }
        kvbuffer.team @load warps(4) registers(24) {
          scf.for %i = %first to %end step %c1 {
            %tile = kvbuffer.cache_tile %k[%i, %c0, %c0] from %c0 upto %c64 : !paged -> !kvbuffer.tile<64x64xbf16>
            kvbuffer.ring_load %tile into %ring[%i] : !kvbuffer.tile<64x64xbf16>, !kvbuffer.ring<#slots>
          }
        }
      }
      gpu.return
    }
    // CHECK-LABEL: gpu.func @dense
    gpu.func @dense(%k: !dense {kvbuffer.name = "k"},
                    %lengths: memref<?xi32> {kvbuffer.name = "lengths", kvbuffer.shape = ["batch"]})
        kernel attributes {known_block_size = array<i32: 256, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [4, 1, 1]} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c64 = arith.constant 64 : index
      %block = gpu.block_id x
      %batch = kvbuffer.launch_size "batch"
      // CHECK-NOT:  memref.prefetch
      // CHECK:      gpu.return
      %size, %first, %start, %end = kvbuffer.share_work %block of %c4 over %batch least %c1 {
      ^bb0(%i: index):
        %n = memref.load %lengths[%i] : memref<?xi32>
        %units = arith.index_cast %n : i32 to index
        kvbuffer.yield %units : index
      }
      %buffer = kvbuffer.alloc : !kvbuffer.buffer<#slots>
      %ring = kvbuffer.ring %buffer from @load to [@read] : !kvbuffer.buffer<#slots>
      kvbuffer.teams {
        kvbuffer.team @read warps(4) registers(240) {
          scf.for %i = %first to %end step %c1 {
            %s = kvbuffer.ring_wait %ring[%i] : !kvbuffer.ring<#slots>
            kvbuffer.ring_release %ring[%i] : !kvbuffer.ring<#slots>
          }
        }
        kvbuffer.team @load warps(4) registers(24) {
          scf.for %i = %first to %end step %c1 {
            %tile = kvbuffer.cache_tile %k[%i, %c0, %c0] from %c0 upto %c64 : !dense -> !kvbuffer.tile<64x64xbf16>
            kvbuffer.ring_load %tile into %ring[%i] : !kvbuffer.tile<64x64xbf16>, !kvbuffer.ring<#slots>
          }
        }
      }
      gpu.return
    }
    // CHECK-LABEL: gpu.func @unknown
    gpu.func @unknown(%k: !paged {kvbuffer.name = "k"},
                    %lengths: memref<?xi32> {kvbuffer.name = "lengths", kvbuffer.shape = ["batch"]})
        kernel attributes {known_block_size = array<i32: 256, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [4, 1, 1]} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c64 = arith.constant 64 : index
      %block = gpu.block_id x
      %batch = kvbuffer.launch_size "batch"
      // CHECK-NOT:  memref.prefetch
      // CHECK:      gpu.return
      %size, %first, %start, %end = kvbuffer.share_work %block of %c4 over %batch least %c1 {
      ^bb0(%i: index):
        %n = memref.load %lengths[%i] : memref<?xi32>
        %units = arith.index_cast %n : i32 to index
        kvbuffer.yield %units : index
      }
      %buffer = kvbuffer.alloc : !kvbuffer.buffer<#slots>
      %ring = kvbuffer.ring %buffer from @load to [@read] : !kvbuffer.buffer<#slots>
      kvbuffer.teams {
        kvbuffer.team @read warps(4) registers(240) {
          scf.for %i = %first to %end step %c1 {
            %s = kvbuffer.ring_wait %ring[%i] : !kvbuffer.ring<#slots>
            kvbuffer.ring_release %ring[%i] : !kvbuffer.ring<#slots>
          }
        }
        kvbuffer.team @load warps(4) registers(24) {
          scf.for %i = %first to %end step %c1 {
            %tile = kvbuffer.cache_tile %k[%i, %c0, %c0] from %c0 upto %c64 : !paged -> !kvbuffer.tile<64x64xbf16>
            kvbuffer.ring_load %tile into %ring[%i] : !kvbuffer.tile<64x64xbf16>, !kvbuffer.ring<#slots>
          }
        }
      }
      gpu.return
    }
  }
}
