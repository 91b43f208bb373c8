// Tiles over small pages as lanes of sm_90a: keys of 64 elements, four producer
// warps. Pages of 8 rows and more are boxes that one warp asks for; pages of 3 to 7 rows
// boxes that two warps ask for, and of 2 in clusters; pages of fewer rows the lanes of two
// warps copy.

// RUN: kvbuf-opt %s --split-input-file --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu,canonicalize,cse))" | FileCheck %s

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, stages = 2, warps = 4, mma_shape = [64, 8, 16], producers = 4, producer_registers = 40, consumer_registers = 232>
!q = memref<?x?x1x64xbf16>
!k = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 64, page_size = 16>
!tile = !kvbuffer.tile<32x64xbf16, page_size = 16>

// A box is a page's 16 rows.
// CHECK-LABEL: gpu.func @boxes(
// CHECK-SAME:  %[[MAP:arg[0-9]+]]: !llvm.ptr
// CHECK-SAME:  <tensor_map "k", box = [64, 16, 1, 1], dims = [3, 1, 2, 0], swizzle = 128>
module attributes {gpu.container_module, kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @boxes(%q: !q {kvbuffer.name = "q"}, %k: !k {kvbuffer.name = "k"}) kernel attributes {known_block_size = array<i32: 256, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c2 = arith.constant 2 : index
      %c64 = arith.constant 64 : index
      %keys = kvbuffer.cache.num_keys %k[%c0] new(%c0) : !k
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      // One arrival fills a slot.
      // CHECK-COUNT-4: nvvm.mbarrier.init %{{.*}}, %c1_i32 :
      %kring = kvbuffer.ring %kbuf from @producers to [@consumers] : !kvbuffer.buffer<#kbuf>
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) registers(232) {
        }
        kvbuffer.team @producers warps(4) registers(40) {
          %kt = kvbuffer.cache_tile %k[%c0, %c0, %c64] from %c0 upto %keys : !k -> !tile
          // CHECK:      nvvm.setmaxregister decrease 40
          // CHECK:      %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %c0_i32
          // CHECK:      scf.if %[[FIRST]] {
          // A tile whose rows are all there: lane j looks up page j, of two, ahead of
          // the wait; then every lane learns both pages, and one asks.
          // CHECK:        %[[BOX:.*]] = arith.minui %{{.*}}, %c1_i32
          // CHECK:        arith.muli %[[BOX]], %c16_i32
          // CHECK:        arith.divui %{{.*}}, %c16_i32
          // CHECK:        %[[BLOCKS:.*]] = memref.load %{{.*}}xi32
          // CHECK:        nvvm.mbarrier.try_wait.parity
          // CHECK:        %[[P0:.*]], %{{.*}} = gpu.shuffle idx %[[BLOCKS]], %c0_i32
          // CHECK:        %[[P1:.*]], %{{.*}} = gpu.shuffle idx %[[BLOCKS]], %c1_i32
          // CHECK:        %[[ONE:.*]] = nvvm.elect.sync
          // CHECK:        scf.if %[[ONE]] {
          // The whole slot's bytes.
          // CHECK:          nvvm.mbarrier.arrive.expect_tx %{{.*}}, %c4096_i32
          // CHECK:          nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[MAP]], %{{.*}}, box[%c0_i32, %c0_i32, %c0_i32, %[[P0]]] {isCTAOnly = true}
          // Sixteen rows of 128 bytes further on.
          // CHECK:          arith.addi %{{.*}}, %c2048_i32
          // CHECK:          nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[MAP]], %{{.*}}, box[%c0_i32, %c0_i32, %c0_i32, %[[P1]]] {isCTAOnly = true}
          // CHECK-NEXT:   }
          // CHECK-NOT:    nvgpu.device_async_copy
          kvbuffer.ring_load %kt into %kring[%c0] {whole} : !tile, !kvbuffer.ring<#kbuf>
          // One that may be cut: no look-up where no row is there, the nearest row's
          // page where one is not.
          // CHECK:        %[[BLOCKS2:.*]] = scf.if %{{.*}} -> (i32) {
          // CHECK:          arith.minsi
          // CHECK:          arith.maxsi
          // CHECK:          memref.load
          // CHECK:        } else {
          // CHECK-NEXT:     scf.yield %c0_i32
          // CHECK:        nvvm.mbarrier.try_wait.parity
          // CHECK:        scf.if %{{.*}} {
          // CHECK:          nvvm.elect.sync
          // CHECK-COUNT-2:  nvvm.cp.async.bulk.tensor
          // Else the warp copies, four rows at a time, in a loop that stays one.
          // CHECK:        } else {
          // CHECK:          scf.for %{{.*}} = %c0_i32 to %c8_i32 step %c1_i32
          // CHECK:            arith.divui %{{.*}}, %c16_i32
          // CHECK:            gpu.shuffle idx %[[BLOCKS2]]
          // CHECK:            nvgpu.device_async_copy
          // CHECK-NOT:        nvgpu.device_async_copy
          // CHECK:          } {llvm.loop_annotation = #[[ANNOTATION:.*]]}
          // CHECK:          nvvm.cp.async.wait.group 0
          // CHECK-NEXT:     nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>
          // CHECK-NEXT:     nvvm.bar.warp.sync
          // CHECK:          nvvm.mbarrier.arrive.expect_tx
          kvbuffer.ring_load %kt into %kring[%c2] : !tile, !kvbuffer.ring<#kbuf>
        }
      }
      gpu.return
    }
  }
}

// -----

// Pages of five rows, 64 keys. Wherever a tile begins 12 pages lie in it whole, and 4
// rows beside them; two warps ask for half of each.
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 3], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, stages = 2, warps = 4, mma_shape = [64, 8, 16], producers = 4, producer_registers = 40, consumer_registers = 232>
!q = memref<?x?x1x64xbf16>
!k = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 64, page_size = 5>
!tile = !kvbuffer.tile<64x64xbf16, page_size = 5>

// CHECK-LABEL: gpu.func @pages(
// CHECK-SAME:  %[[MAP:arg[0-9]+]]: !llvm.ptr, %[[ROWMAP:arg[0-9]+]]: !llvm.ptr
// CHECK-SAME:  <tensor_map "k", box = [64, 5, 1, 1], dims = [3, 1, 2, 0], swizzle = 128>
// CHECK-SAME:  <tensor_map "k", box = [64, 1, 1, 1], dims = [3, 1, 2, 0], swizzle = 128>
module attributes {gpu.container_module, kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @pages(%q: !q {kvbuffer.name = "q"}, %k: !k {kvbuffer.name = "k"}) kernel attributes {known_block_size = array<i32: 256, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c2 = arith.constant 2 : index
      %c64 = arith.constant 64 : index
      %keys = kvbuffer.cache.num_keys %k[%c0] new(%c0) : !k
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      // Two warps fill a slot.
      // CHECK-COUNT-2: nvvm.mbarrier.init %{{.*}}, %c2_i32 :
      %kring = kvbuffer.ring %kbuf from @producers to [@consumers] : !kvbuffer.buffer<#kbuf>
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) registers(232) {
        }
        kvbuffer.team @producers warps(4) registers(40) {
        %kt = kvbuffer.cache_tile %k[%c0, %c0, %c64] from %c0 upto %keys : !k -> !tile
        // CHECK:      nvvm.setmaxregister decrease 40
        // CHECK:        %[[SHARE:.*]] = arith.remui %{{.*}}, %c2_i32
        // Lanes 0 to 5 look up a page each, lanes 6 and 7 that of a row beside pages.
        // CHECK:        arith.minui %{{.*}}, %c7_i32
        // CHECK:        %[[BLOCKS:.*]] = memref.load %{{.*}}xi32
        // CHECK:        nvvm.mbarrier.try_wait.parity
        // CHECK:        nvvm.elect.sync
        // Half of the slot's bytes.
        // CHECK:          nvvm.mbarrier.arrive.expect_tx %{{.*}}, %c4096_i32
        // CHECK:        %[[P0:.*]], %{{.*}} = gpu.shuffle idx %[[BLOCKS]], %c0_i32
        // CHECK:        %[[P1:.*]], %{{.*}} = gpu.shuffle idx %[[BLOCKS]], %c1_i32
        // CHECK:        nvvm.elect.sync
        // CHECK:          nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[MAP]], %{{.*}}, box[%c0_i32, %c0_i32, %c0_i32, %[[P0]]] {isCTAOnly = true}
        // Five rows of 128 bytes further on.
        // CHECK:          arith.addi %{{.*}}, %c640_i32
        // CHECK:          nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[MAP]], %{{.*}}, box[%c0_i32, %c0_i32, %c0_i32, %[[P1]]] {isCTAOnly = true}
        // CHECK-COUNT-4:  nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[MAP]]
        // The rows beside them.
        // CHECK:        %[[P6:.*]], %{{.*}} = gpu.shuffle idx %[[BLOCKS]], %c6_i32
        // CHECK:        %[[ROW:.*]], %{{.*}} = gpu.shuffle idx %{{.*}}, %c6_i32
        // CHECK:          %[[INPAGE:.*]] = arith.remui %[[ROW]], %c64_i32
        // CHECK:          nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[ROWMAP]], %{{.*}}, box[%c0_i32, %[[INPAGE]], %c0_i32, %[[P6]]] {isCTAOnly = true}
        // CHECK:          nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[ROWMAP]]
        // CHECK-NOT:    nvvm.cp.async.bulk.tensor
        // CHECK-NOT:    nvvm.cp.async.shared.global
        kvbuffer.ring_load %kt into %kring[%c0] {whole} : !tile, !kvbuffer.ring<#kbuf>
        // One that may be cut: the same if it is not; else lanes copy, wait and arrive.
        // CHECK:        scf.if %{{.*}} {
        // CHECK-COUNT-8:  nvvm.cp.async.bulk.tensor
        // CHECK:        } else {
        // CHECK-NOT:      nvvm.cp.async.bulk.tensor
        // CHECK:          nvvm.cp.async.shared.global
        // CHECK:          nvvm.cp.async.wait.group 0
        // CHECK-NEXT:     nvvm.fence.proxy
        // CHECK-NEXT:     nvvm.bar.warp.sync
        // CHECK:          nvvm.mbarrier.arrive.expect_tx
        // CHECK-NOT:    nvvm.cp.async.wait.group
        kvbuffer.ring_load %kt into %kring[%c2] : !tile, !kvbuffer.ring<#kbuf>
        }
      }
      gpu.return
    }
  }
}

// -----

// The blocks of a cluster ask for 32 rows each, in all of them: of 12 pages and 4 rows a
// warp takes a quarter. Every lane of the producers runs, and one of each warp arrives at
// the end.
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 3], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, stages = 2, warps = 4, mma_shape = [64, 8, 16], producers = 4, producer_registers = 40, consumer_registers = 232>
!q = memref<?x?x1x64xbf16>
!k = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 64, page_size = 5>
!tile = !kvbuffer.tile<64x64xbf16, page_size = 5>

// CHECK-LABEL: gpu.func @shared(
// CHECK:       nvvm.mbarrier.init %{{.*}}, %c16_i32 :
module attributes {gpu.container_module, kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @shared(%q: !q {kvbuffer.name = "q"}, %k: !k {kvbuffer.name = "k"}) kernel attributes {known_block_size = array<i32: 256, 1, 1>, known_cluster_size = array<i32: 2, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c64 = arith.constant 64 : index
      %keys = kvbuffer.cache.num_keys %k[%c0] new(%c0) : !k
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %kring = kvbuffer.ring %kbuf from @producers to [@consumers] {shared} : !kvbuffer.buffer<#kbuf>
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) registers(232) {
        }
        kvbuffer.team @producers warps(4) registers(40) {
        %kt = kvbuffer.cache_tile %k[%c0, %c0, %c64] from %c0 upto %keys : !k -> !tile
        // CHECK:        arith.minui %{{.*}}, %c3_i32
        // The whole slot's bytes come from both blocks; this block's warps expect them.
        // CHECK:          nvvm.mbarrier.arrive.expect_tx %{{.*}}, %c4096_i32
        // CHECK-COUNT-4:  nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}} multicast_mask = %c3_i16
        // CHECK-NOT:      nvvm.cp.async.bulk.tensor
        kvbuffer.ring_load %kt into %kring[%c0] {whole} : !tile, !kvbuffer.ring<#kbuf>
        }
      }
      gpu.return
    }
  }
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, stages = 2, warps = 4, mma_shape = [64, 8, 16], producers = 4, producer_registers = 40, consumer_registers = 232>
!q = memref<?x?x1x64xbf16>
!k = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 64, page_size = 2>
!tile = !kvbuffer.tile<32x64xbf16, page_size = 2>

// CHECK-LABEL: gpu.func @copies(
// CHECK-NOT:   tensor_map
module attributes {gpu.container_module, kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @copies(%q: !q {kvbuffer.name = "q"}, %k: !k {kvbuffer.name = "k"}) kernel attributes {known_block_size = array<i32: 256, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c2 = arith.constant 2 : index
      %c64 = arith.constant 64 : index
      %keys = kvbuffer.cache.num_keys %k[%c0] new(%c0) : !k
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      // Two warps fill a slot.
      // CHECK-COUNT-2: nvvm.mbarrier.init %{{.*}}, %c2_i32 :
      // CHECK-COUNT-2: nvvm.mbarrier.init %{{.*}}, %c1_i32 :
      %kring = kvbuffer.ring %kbuf from @producers to [@consumers] : !kvbuffer.buffer<#kbuf>
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) registers(232) {
        }
        kvbuffer.team @producers warps(4) registers(40) {
          %kt = kvbuffer.cache_tile %k[%c0, %c0, %c64] from %c0 upto %keys : !k -> !tile
          // CHECK:      nvvm.setmaxregister decrease 40
          // CHECK:        %[[PAIR:.*]] = arith.divui %[[WARP:.*]], %c2_i32
          // CHECK:        %[[FIRST:.*]] = arith.cmpi eq, %[[PAIR]], %c0_i32
          // CHECK:      scf.if %[[FIRST]] {
          // Eight lanes copy a row, and then the one beside it in its page, four such
          // pairs at a time, of a warp's eight: lane l finds where pair
          // 4 (l mod 8) + l / 8 begins.
          // CHECK:        %[[PLACE:.*]] = arith.andi %[[LANE:.*]], %c7_i32
          // CHECK:        %[[GROUP:.*]] = arith.shrui %[[LANE]], %c3_i32
          // CHECK:        %[[SHARE:.*]] = arith.remui %[[WARP]], %c2_i32
          // CHECK:        arith.muli %[[SHARE]], %c16_i32
          // Places of rows are of 32 bits, in units of 16 bytes, where the cache has no more:
          // the stride of pages, of which there may be one, what they and rows reach, and both.
          // CHECK-COUNT-4: arith.cmpi ult, %{{.*}}, %c4294967296_i64
          // CHECK:        scf.if %{{.*}} {
          // CHECK:          arith.muli %[[PLACE]], %c4_i32
          // CHECK:          %[[OWN:.*]] = arith.minui %{{.*}}, %c7_i32
          // CHECK:          arith.muli %[[OWN]], %c2_i32
          // CHECK:          memref.load %{{.*}}xi32
          // CHECK:          nvvm.mbarrier.try_wait.parity
          // They are made after it. In step s the lane in place s of the own group of
          // eight knows.
          // CHECK:          nvvm.shfl.sync idx %c-1_i32, %[[AT:.*]], %c0_i32, %c6175_i32
          // CHECK:          arith.shli %{{.*}}, %c4_i64
          // CHECK:          nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache =  cg
          // CHECK-NOT:      nvvm.shfl
          // CHECK:          nvvm.cp.async.shared.global
          // CHECK:          nvvm.shfl.sync idx %c-1_i32, %[[AT]], %c1_i32, %c6175_i32
          // CHECK-NOT:      nvvm.shfl
          // CHECK-COUNT-2:  nvvm.cp.async.shared.global
          // CHECK-NOT:      nvvm.cp.async.shared
          // Else the halves of rows' addresses.
          // CHECK:        } else {
          // CHECK:          nvvm.mbarrier.try_wait.parity
          // CHECK:          %[[LOW:.*]] = arith.trunci
          // CHECK:          %[[HIGH:.*]] = arith.trunci
          // CHECK:          nvvm.shfl.sync idx %c-1_i32, %[[HIGH]], %c0_i32, %c6175_i32
          // CHECK:          nvvm.shfl.sync idx %c-1_i32, %[[LOW]], %c0_i32, %c6175_i32
          // CHECK:          nvvm.cp.async.shared.global
          // CHECK-NOT:      nvvm.shfl
          // CHECK:          nvvm.cp.async.shared.global
          // CHECK:          nvvm.shfl.sync idx %c-1_i32, %[[HIGH]], %c1_i32, %c6175_i32
          // CHECK:          nvvm.shfl.sync idx %c-1_i32, %[[LOW]], %c1_i32, %c6175_i32
          // CHECK-COUNT-2:  nvvm.cp.async.shared.global
          // CHECK-NOT:      nvvm.cp.async.shared
          // The warp waits, so that no consumer needs a fence.
          // CHECK:        nvvm.cp.async.wait.group 0
          // CHECK-NEXT:   nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>
          // CHECK-NEXT:   nvvm.bar.warp.sync
          // CHECK:        %[[ONE:.*]] = arith.cmpi eq, %[[LANE]], %c0_i32
          // CHECK:        nvvm.mbarrier.arrive.expect_tx %{{.*}}, %c0_i32, predicate = %[[ONE]]
          kvbuffer.ring_load %kt into %kring[%c0] {whole} : !tile, !kvbuffer.ring<#kbuf>
          // A tile that may be cut: the same if it is not; else
          // the page of the nearest row, and copies of no bytes where a row is not.
          // CHECK:        %[[WHOLE:.*]] = arith.cmpi sge, %{{.*}}, %c32_i32
          // CHECK:        scf.if %[[WHOLE]] {
          // CHECK-COUNT-4: nvvm.cp.async.shared.global
          // CHECK:          } else {
          // CHECK-COUNT-4: nvvm.cp.async.shared.global
          // CHECK:        } else {
          // CHECK:          nvvm.mbarrier.try_wait.parity
          // CHECK:            scf.if %{{.*}} -> (i32, i32) {
          // CHECK:              arith.minsi
          // CHECK:              memref.load
          // CHECK:            arith.cmpi sgt
          // CHECK:            %[[BYTES:.*]] = arith.select %{{.*}}, %c16_i32, %c0_i32
          // CHECK:            nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache =  cg, %[[BYTES]]
          // CHECK-COUNT-3:    nvvm.cp.async.shared.global
          // CHECK:        nvvm.cp.async.wait.group 0
          kvbuffer.ring_load %kt into %kring[%c2] : !tile, !kvbuffer.ring<#kbuf>
        }
      }
      gpu.return
    }
  }
}

// -----

// A tile that begins in a page: boxes of the eight rows that divide its start, four for
// 32 keys; and one that may begin anywhere, which lanes copy.
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, stages = 2, warps = 4, mma_shape = [64, 8, 16], producers = 4, producer_registers = 40, consumer_registers = 232>
!q = memref<?x?x1x64xbf16>
!k = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 64, page_size = 16>
!tile = !kvbuffer.tile<32x64xbf16, page_size = 16>

// CHECK-LABEL: gpu.func @within(
// CHECK-SAME:  <tensor_map "k", box = [64, 8, 1, 1], dims = [3, 1, 2, 0], swizzle = 128>
// CHECK-COUNT-4: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK-NOT:   nvvm.cp.async.bulk.tensor
// CHECK-LABEL: gpu.func @anywhere(
// CHECK-NOT:   tensor_map
// CHECK-NOT:   nvvm.cp.async.bulk.tensor
// CHECK:       nvvm.cp.async.shared.global
module attributes {gpu.container_module, kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @within(%q: !q {kvbuffer.name = "q"}, %k: !k {kvbuffer.name = "k"}) kernel attributes {known_block_size = array<i32: 256, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c72 = arith.constant 72 : index
      %keys = kvbuffer.cache.num_keys %k[%c0] new(%c0) : !k
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %kring = kvbuffer.ring %kbuf from @producers to [@consumers] : !kvbuffer.buffer<#kbuf>
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) registers(232) {
        }
        kvbuffer.team @producers warps(4) registers(40) {
          %kt = kvbuffer.cache_tile %k[%c0, %c0, %c72] from %c0 upto %keys : !k -> !tile
          kvbuffer.ring_load %kt into %kring[%c0] {whole} : !tile, !kvbuffer.ring<#kbuf>
        }
      }
      gpu.return
    }
    gpu.func @anywhere(%q: !q {kvbuffer.name = "q"}, %k: !k {kvbuffer.name = "k"}) kernel attributes {known_block_size = array<i32: 256, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %start = memref.dim %q, %c1 : !q
      %keys = kvbuffer.cache.num_keys %k[%c0] new(%c0) : !k
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %kring = kvbuffer.ring %kbuf from @producers to [@consumers] : !kvbuffer.buffer<#kbuf>
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) registers(232) {
        }
        kvbuffer.team @producers warps(4) registers(40) {
          %kt = kvbuffer.cache_tile %k[%c0, %c0, %start] from %c0 upto %keys : !k -> !tile
          kvbuffer.ring_load %kt into %kring[%c0] {whole} : !tile, !kvbuffer.ring<#kbuf>
        }
      }
      gpu.return
    }
  }
}
