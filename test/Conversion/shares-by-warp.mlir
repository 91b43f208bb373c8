// Beside rings one warp finds a block's share of the work, the last one, and tells it to
// all through shared memory, while the first thread makes barriers ready.

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu,canonicalize,cse))" | FileCheck %s

#slots = #kvbuffer.kv_buffer<64x64xbf16, stages = 2, BK = 64, swizzle = [3, 0, 3]>
#schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, stages = 2, warps = 4, mma_shape = [64, 8, 16], producers = 4, producer_registers = 24, consumer_registers = 240>
!x = memref<?x64xbf16>

module attributes {gpu.container_module, kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @share
    gpu.func @share(%x: !x {kvbuffer.name = "x", kvbuffer.shape = ["rows", 64]},
                    %lengths: memref<?xi32> {kvbuffer.name = "lengths", kvbuffer.shape = ["batch"]})
        kernel attributes {known_block_size = array<i32: 256, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [4, 1, 1]} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c64 = arith.constant 64 : index
      %rows = memref.dim %x, %c0 : !x
      %block = gpu.block_id x
      %batch = kvbuffer.launch_size "batch"
      // CHECK:      %[[WARP:.*]], %{{.*}} = gpu.shuffle idx
      // CHECK:      %[[LAST:.*]] = arith.cmpi eq, %[[WARP]], %c7_i32
      // CHECK:      scf.if
      // CHECK-COUNT-4: nvvm.mbarrier.init
      // CHECK-NEXT:   nvvm.fence.mbarrier.init
      // CHECK-NEXT: }
      // CHECK-NEXT: scf.if %[[LAST]] {
      // CHECK-COUNT-4: memref.load %reinterpret_cast
      // CHECK-COUNT-40: gpu.shuffle xor
      // CHECK:        scf.if
      // CHECK-COUNT-4:  memref.store {{.*}} : memref<{{.*}}xi32, #gpu.address_space<workgroup>>
      // CHECK:        }
      // CHECK-NEXT: }
      // CHECK-NEXT: gpu.barrier
      // Behind the slots of 16 KiB lie four barriers, and then the words.
      // CHECK-NEXT: %[[FIRST:.*]] = memref.load %{{.*}}[%c4105] : memref<{{.*}}xi32, #gpu.address_space<workgroup>>
      // CHECK-NEXT: gpu.shuffle idx %[[FIRST]]
      // CHECK-NEXT: memref.load %{{.*}}[%c4107]
      // All have met: that is the barriers' meeting, too.
      // CHECK-NOT:  gpu.barrier
      // CHECK:      nvvm.setmaxregister
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
            %row = arith.muli %i, %c64 : index
            %tile = kvbuffer.dram_tile %x[%row, %c0] valid(%rows, %c64)
              : !x -> !kvbuffer.tile<64x64xbf16>
            kvbuffer.ring_load %tile into %ring[%i] : !kvbuffer.tile<64x64xbf16>, !kvbuffer.ring<#slots>
          }
        }
      }
      gpu.return
    }
    // Behind the teams, or where not all come by, nobody gives words a place: each warp
    // finds the share.
    // CHECK-LABEL: gpu.func @behind
    gpu.func @behind(%x: !x {kvbuffer.name = "x", kvbuffer.shape = ["rows", 64]},
                     %lengths: memref<?xi32> {kvbuffer.name = "lengths", kvbuffer.shape = ["batch"]},
                     %arrived: memref<?xi32> {kvbuffer.name = "arrived", kvbuffer.access = "counter", kvbuffer.shape = ["batch"]})
        kernel attributes {known_block_size = array<i32: 256, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [4, 1, 1]} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c64 = arith.constant 64 : index
      %rows = memref.dim %x, %c0 : !x
      %block = gpu.block_id x
      %batch = kvbuffer.launch_size "batch"
      %some = arith.cmpi eq, %block, %c0 : index
      // CHECK-NOT:  arith.cmpi eq, %{{.*}}, %c7_i32
      // CHECK:      gpu.shuffle xor
      // CHECK-NOT:  {{arith.cmpi eq, %.*, %c7_i32|mbarrier.init}}
      // CHECK:      kvbuffer.lane_arrive
      // CHECK:      nvvm.mbarrier.init
      scf.if %some {
        %size, %first, %start, %end = kvbuffer.share_work %block of %c4 over %batch least %c1 {
        ^bb0(%i: index):
          %n = memref.load %lengths[%i] : memref<?xi32>
          %units = arith.index_cast %n : i32 to index
          kvbuffer.yield %units : index
        }
        %last = kvbuffer.arrive_last %arrived[%first] of %c4 : memref<?xi32>
      }
      %buffer = kvbuffer.alloc : !kvbuffer.buffer<#slots>
      %ring = kvbuffer.ring %buffer from @load to [@read] : !kvbuffer.buffer<#slots>
      kvbuffer.teams {
        kvbuffer.team @read warps(4) {
          %s = kvbuffer.ring_wait %ring[%c0] : !kvbuffer.ring<#slots>
          kvbuffer.ring_release %ring[%c0] : !kvbuffer.ring<#slots>
        }
        kvbuffer.team @load warps(4) {
          %tile = kvbuffer.dram_tile %x[%c0, %c0] valid(%rows, %c64)
            : !x -> !kvbuffer.tile<64x64xbf16>
          kvbuffer.ring_load %tile into %ring[%c0] : !kvbuffer.tile<64x64xbf16>, !kvbuffer.ring<#slots>
        }
      }
      // CHECK-NOT:  arith.cmpi eq, %{{.*}}, %c7_i32
      // CHECK:      gpu.shuffle xor
      // CHECK-NOT:  {{arith.cmpi eq, %.*, %c7_i32|mbarrier.init}}
      // CHECK:      kvbuffer.lane_arrive
      %size, %first, %start, %end = kvbuffer.share_work %block of %c4 over %batch least %c1 {
      ^bb0(%i: index):
        %n = memref.load %lengths[%i] : memref<?xi32>
        %units = arith.index_cast %n : i32 to index
        kvbuffer.yield %units : index
      }
      %last = kvbuffer.arrive_last %arrived[%first] of %c4 : memref<?xi32>
      gpu.return
    }
  }
}
