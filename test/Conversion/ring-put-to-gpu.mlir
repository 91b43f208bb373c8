// Slots that a team fills, of two warps of sm_90 or four of sm_90a: 32 or 64 rows of 64
// elements (128-byte rows), so that every number can be worked out by hand.

// RUN: kvbuf-opt %s --split-input-file --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu,canonicalize,cse))" | FileCheck %s

#narrow = #kvbuffer.kv_buffer<32x64xf8E4M3FN, stages = 1, BK = 64, swizzle = [2, 0, 3]>
#wide = #kvbuffer.kv_buffer<32x64xf16, stages = 2, BK = 64, swizzle = [3, 0, 3]>
#schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 64, stages = 2, warps = 2, mma_shape = [16, 8, 16]>
!kv = !kvbuffer.cache<dense, f8E4M3FN, heads = 1, head_size = 64>
!f = !kvbuffer.fragment<32x64xf16, a>

// CHECK-LABEL: gpu.func @widened(
module attributes {gpu.container_module, kvbuffer.target = "sm_90"} {
  gpu.module @m {
    gpu.func @widened(%k: !kv {kvbuffer.name = "k"}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %c3 = arith.constant 3 : index
      %keys = kvbuffer.cache.num_keys %k[%c0] new(%c0) : !kv
      %b0 = kvbuffer.alloc : !kvbuffer.buffer<#narrow>
      %b1 = kvbuffer.alloc : !kvbuffer.buffer<#wide>
      // One arrival fills the narrow slot, two warps empty it; they fill the wide ones,
      // each once, which one warp empties.
      // CHECK:         nvvm.mbarrier.init %{{.*}}, %c1_i32
      // CHECK-COUNT-3: nvvm.mbarrier.init %{{.*}}, %c2_i32
      // CHECK-COUNT-2: nvvm.mbarrier.init %{{.*}}, %c1_i32
      // CHECK-NOT:     nvvm.mbarrier.init
      // CHECK:         gpu.barrier
      %from = kvbuffer.ring %b0 from @load to [@widen] : !kvbuffer.buffer<#narrow>
      %to = kvbuffer.ring %b1 from @widen to [@read] : !kvbuffer.buffer<#wide>
      kvbuffer.teams {
        kvbuffer.team @widen warps(2) {
          %staged = kvbuffer.ring_wait %from[%c3] : !kvbuffer.ring<#narrow>
          // 16 rows a warp, four at once: 8 elements of a lane each, widened.
          // CHECK-COUNT-4: vector.load %{{.*}} : {{.*}}, vector<8xi8>
          // CHECK-NOT:     vector.load
          %f = kvbuffer.fragment_load %staged[0, 0] contracted(cols) : !kvbuffer.staged<#narrow> -> !f
          // CHECK:         nvvm.mbarrier.arrive.expect_tx
          kvbuffer.ring_release %from[%c3] : !kvbuffer.ring<#narrow>
          // Filling 3 is phase 1 of slot 1, which is empty after phase 0. Lanes see what
          // lanes have written without a fence.
          // CHECK:         nvvm.mbarrier.try_wait.parity %{{.*}}, %c0_i32
          // CHECK-COUNT-4: vector.store %{{.*}} : {{.*}}, vector<8xf16>
          // CHECK-NOT:     vector.store
          // CHECK-NOT:     nvvm.fence.proxy
          // CHECK:         nvvm.bar.warp.sync
          // CHECK:         nvvm.mbarrier.arrive.expect_tx %{{.*}}, %c0_i32, predicate
          kvbuffer.ring_put %f into %to[%c3] : !f, !kvbuffer.ring<#wide>
        }
        kvbuffer.team @read warps(1) {
          %s = kvbuffer.ring_wait %to[%c3] : !kvbuffer.ring<#wide>
          kvbuffer.ring_release %to[%c3] : !kvbuffer.ring<#wide>
        }
        kvbuffer.team @load warps(1) {
          %t = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %keys : !kv -> !kvbuffer.tile<32x64xf8E4M3FN>
          kvbuffer.ring_load %t into %from[%c3] : !kvbuffer.tile<32x64xf8E4M3FN>, !kvbuffer.ring<#narrow>
        }
      }
      gpu.return
    }
  }
}

// -----

// What a matrix unit reads is fenced by every lane that has written it, before its warp
// meets. Turned, a lane's elements lie in rows of their own.
#wide = #kvbuffer.kv_buffer<64x64xbf16, stages = 1, BK = 64, swizzle = [3, 0, 3]>
#schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, stages = 1, warps = 4, mma_shape = [64, 8, 16]>
!f = !kvbuffer.fragment<64x64xbf16, a>
!s = !kvbuffer.fragment<64x64xf32, acc>
!o = memref<?x?x64xf32>

// CHECK-LABEL: gpu.func @multiplied(
module attributes {gpu.container_module, kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @multiplied(%o: !o {kvbuffer.name = "o", kvbuffer.shape = ["teams", "rows", 64]}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %c64 = arith.constant 64 : index
      %b = kvbuffer.alloc : !kvbuffer.buffer<#wide>
      // Four warps fill a slot; one thread of the group that multiplies empties it.
      // CHECK: nvvm.mbarrier.init %{{.*}}, %c4_i32
      // CHECK: nvvm.mbarrier.init %{{.*}}, %c1_i32
      %ring = kvbuffer.ring %b from @put to [@read] : !kvbuffer.buffer<#wide>
      kvbuffer.teams {
        kvbuffer.team @read warps(4) {
          %q = kvbuffer.fragment_fill 1.0 : !f
          %s0 = kvbuffer.ring_wait %ring[%c0] : !kvbuffer.ring<#wide>
          %p = kvbuffer.mma_start %q, %s0 {transpose_b} : !f, !kvbuffer.staged<#wide> -> !kvbuffer.pending<64x64xf32>
          %s = kvbuffer.mma_wait %p {younger = 0 : i64} : !kvbuffer.pending<64x64xf32>
          kvbuffer.ring_release %ring[%c0] : !kvbuffer.ring<#wide>
          %ot = kvbuffer.dram_tile %o[%c0, %c0] valid(%c64) : !o -> !kvbuffer.tile<64x64xf32>
          kvbuffer.fragment_store %s, %ot : !s, !kvbuffer.tile<64x64xf32>
        }
        // 64 x 64 elements of four warps: 32 a lane.
        // CHECK:          nvvm.mbarrier.try_wait.parity %{{.*}}, %c1_i32
        // CHECK-COUNT-32: vector.store %{{.*}} : {{.*}}, vector<1xbf16>
        // CHECK-NOT:      vector.store
        // CHECK:          nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>
        // CHECK-NEXT:     nvvm.bar.warp.sync
        // CHECK:          nvvm.mbarrier.arrive.expect_tx %{{.*}}, %c0_i32, predicate
        kvbuffer.team @put warps(4) {
          %f = kvbuffer.fragment_fill 1.0 : !f
          kvbuffer.ring_put %f into %ring[%c0] {transpose} : !f, !kvbuffer.ring<#wide>
        }
      }
      gpu.return
    }
  }
}

// -----

// Two puts with nothing in between that has an effect: the second one's slot is awaited
// behind the first one's arrival, and what is computed for it stays behind that wait. Not
// where the number of its filling comes later.
#wide = #kvbuffer.kv_buffer<64x64xbf16, stages = 2, BK = 64, swizzle = [3, 0, 3]>
#schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 64, stages = 1, warps = 4, mma_shape = [64, 8, 16]>
!f = !kvbuffer.fragment<64x64xbf16, acc>
!s = !kvbuffer.fragment<64x64xf32, acc>
module attributes {gpu.container_module, kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @behind(
    gpu.func @behind() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c8 = arith.constant 8 : index
      %b = kvbuffer.alloc : !kvbuffer.buffer<#wide>
      %ring = kvbuffer.ring %b from @put to [@read] : !kvbuffer.buffer<#wide>
      kvbuffer.teams {
        kvbuffer.team @put warps(4) {
          %one = kvbuffer.fragment_fill 1.0 : !s
          // CHECK:     nvvm.mbarrier.try_wait.parity
          // CHECK:     nvvm.mbarrier.arrive.expect_tx
          // CHECK-NOT: arith.mulf
          // CHECK:     nvvm.mbarrier.try_wait.parity
          // CHECK:     arith.mulf
          // CHECK-NOT: nvvm.mbarrier.try_wait.parity
          // CHECK:     nvvm.mbarrier.arrive.expect_tx
          scf.for %i = %c0 to %c8 step %c2 iter_args(%x = %one) -> (!s) {
            %next = arith.addi %i, %c1 : index
            %p0 = kvbuffer.fragment_convert %x : !s -> !f
            kvbuffer.ring_put %p0 into %ring[%i] : !f, !kvbuffer.ring<#wide>
            %y = kvbuffer.fragment_scale %x {factor = 0.5 : f32} : !s
            %p1 = kvbuffer.fragment_convert %y : !s -> !f
            kvbuffer.ring_put %p1 into %ring[%next] : !f, !kvbuffer.ring<#wide>
            scf.yield %y : !s
          }
        }
        kvbuffer.team @read warps(4) {
          scf.for %i = %c0 to %c8 step %c1 {
            kvbuffer.ring_wait %ring[%i] : !kvbuffer.ring<#wide>
            kvbuffer.ring_release %ring[%i] : !kvbuffer.ring<#wide>
          }
        }
      }
      gpu.return
    }

    // CHECK-LABEL: gpu.func @later(
    gpu.func @later() kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c8 = arith.constant 8 : index
      %b = kvbuffer.alloc : !kvbuffer.buffer<#wide>
      %ring = kvbuffer.ring %b from @put to [@read] : !kvbuffer.buffer<#wide>
      kvbuffer.teams {
        kvbuffer.team @put warps(4) {
          %one = kvbuffer.fragment_fill 1.0 : !s
          // CHECK:     nvvm.mbarrier.try_wait.parity
          // CHECK:     nvvm.mbarrier.arrive.expect_tx
          // CHECK-NOT: nvvm.mbarrier.try_wait.parity
          // CHECK:     arith.mulf
          // CHECK:     nvvm.mbarrier.try_wait.parity
          // CHECK:     nvvm.mbarrier.arrive.expect_tx
          scf.for %i = %c0 to %c8 step %c2 iter_args(%x = %one) -> (!s) {
            %p0 = kvbuffer.fragment_convert %x : !s -> !f
            kvbuffer.ring_put %p0 into %ring[%i] : !f, !kvbuffer.ring<#wide>
            %next = arith.addi %i, %c1 : index
            %y = kvbuffer.fragment_scale %x {factor = 0.5 : f32} : !s
            %p1 = kvbuffer.fragment_convert %y : !s -> !f
            kvbuffer.ring_put %p1 into %ring[%next] : !f, !kvbuffer.ring<#wide>
            scf.yield %y : !s
          }
        }
        kvbuffer.team @read warps(4) {
          scf.for %i = %c0 to %c8 step %c1 {
            kvbuffer.ring_wait %ring[%i] : !kvbuffer.ring<#wide>
            kvbuffer.ring_release %ring[%i] : !kvbuffer.ring<#wide>
          }
        }
      }
      gpu.return
    }
  }
}
