// A ring that warps read, each for itself, as lanes of sm_90: a team of two warps and
// one of one, 32 keys of 64 elements (128-byte rows), so that every number can be
// worked out by hand.

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu,canonicalize,cse))" | FileCheck %s

#kbuf = #kvbuffer.kv_buffer<32x64xbf16, stages = 2, BK = 64, swizzle = [3, 0, 3]>
#schedule = #kvbuffer.schedule<BM = 32, BN = 32, BK = 64, stages = 2, warps = 2, mma_shape = [16, 8, 16]>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>
!a = !kvbuffer.fragment<32x64xbf16, a>
!b = !kvbuffer.fragment<32x64xbf16, b>
!s = !kvbuffer.fragment<32x32xf32, acc>
!o = memref<?x?x32xf32>

// One tensor map, of the engine that fills; two slots of 4 KiB and a block of
// barriers.
// CHECK:      gpu.func @by_warps(
// CHECK-SAME:   %[[MAP:arg[0-9]+]]: !llvm.ptr)
// CHECK-SAME:   known_block_size = array<i32: 128, 1, 1>
// CHECK-SAME:   <tensor_map "k", box = [64, 32, 1, 1], dims = [3, 1, 2, 0], swizzle = 128>
// CHECK-SAME:   dynamic_shared_bytes = 9216
module attributes {gpu.container_module, kvbuffer.target = "sm_90"} {
  gpu.module @m {
    gpu.func @by_warps(%k: !kv {kvbuffer.name = "k"}, %o: !o {kvbuffer.name = "o", kvbuffer.shape = ["teams", "rows", 32]}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %c32 = arith.constant 32 : index
      %keys = kvbuffer.cache.num_keys %k[%c0] new(%c0) : !kv
      %slots = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      // One arrival fills a slot; the three warps of both teams empty it.
      // CHECK:         %[[BASE:.*]] = memref.extract_aligned_pointer_as_index
      // CHECK-NEXT:    %[[LDS:.*]] = arith.index_cast %[[BASE]] : index to i32
      // CHECK-COUNT-2: nvvm.mbarrier.init %{{.*}}, %c1_i32
      // CHECK-COUNT-2: nvvm.mbarrier.init %{{.*}}, %c3_i32
      // CHECK-NOT:     nvvm.mbarrier.init
      // CHECK:         gpu.barrier
      %ring = kvbuffer.ring %slots from @load to [@two, @one] : !kvbuffer.buffer<#kbuf>
      kvbuffer.teams {
        kvbuffer.team @two warps(2) {
          %q = kvbuffer.fragment_fill 1.0 : !a
          %zero = kvbuffer.fragment_fill 0.0 : !s
          // Filling 3: slot 1, phase 1. Barriers lie behind the slots, at 8192.
          // CHECK:       %[[FULL:.*]] = arith.addi %[[LDS]], %c8200_i32
          // CHECK:       %[[FP:.*]] = llvm.inttoptr %[[FULL]]
          // CHECK:       nvvm.mbarrier.try_wait.parity %[[FP]], %c1_i32
          %ks = kvbuffer.ring_wait %ring[%c3] : !kvbuffer.ring<#kbuf>
          // 32 x 64 elements: 32 matrices of 8 x 8, four an instruction.
          // CHECK-COUNT-8: nvgpu.ldmatrix
          // CHECK-NOT:     nvgpu.ldmatrix
          %kf = kvbuffer.fragment_load %ks[0, 0] contracted(cols) : !kvbuffer.staged<#kbuf> -> !b
          // Once all lanes have read, the first of each warp gives the slot back.
          // CHECK:       nvvm.bar.warp.sync
          // CHECK-NEXT:  %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %c0_i32
          // CHECK:       %[[EMPTY:.*]] = arith.addi %[[LDS]], %c8216_i32
          // CHECK:       %[[EP:.*]] = llvm.inttoptr %[[EMPTY]]
          // CHECK:       nvvm.mbarrier.arrive.expect_tx %[[EP]], %c0_i32, predicate = %[[FIRST]]
          kvbuffer.ring_release %ring[%c3] : !kvbuffer.ring<#kbuf>
          // 16 rows, 32 columns, 64 contracted: 4 x 4 instructions.
          // CHECK-COUNT-16: kvbuffer.lane_mma
          // CHECK-NOT:     kvbuffer.wgmma
          %s = kvbuffer.mma %q, %kf, %zero {transpose_b} : !a, !b, !s
          %ot = kvbuffer.dram_tile %o[%c0, %c0] valid(%c32) : !o -> !kvbuffer.tile<32x32xf32>
          kvbuffer.fragment_store %s, %ot : !s, !kvbuffer.tile<32x32xf32>
        }
        // A slot that a team does not look at goes back without a word.
        // CHECK:       } else {
        // CHECK:       nvvm.mbarrier.try_wait.parity
        // CHECK-NOT:   nvvm.bar.warp.sync
        // CHECK:       nvvm.mbarrier.arrive.expect_tx %{{.*}}, %c0_i32, predicate
        kvbuffer.team @one warps(1) {
          %ks = kvbuffer.ring_wait %ring[%c3] : !kvbuffer.ring<#kbuf>
          kvbuffer.ring_release %ring[%c3] : !kvbuffer.ring<#kbuf>
        }
        // The engine fills the block's slot as one of its cluster's.
        // CHECK:       nvvm.elect.sync
        // CHECK:       nvvm.mbarrier.arrive.expect_tx %{{.*}}, %c4096_i32
        // CHECK:       nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[MAP]], %{{.*}}, box[%c0_i32,
        // CHECK-SAME:    !llvm.ptr<7>, !llvm.ptr
        kvbuffer.team @load warps(1) {
          %kt = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %keys : !kv -> !kvbuffer.tile<32x64xbf16>
          kvbuffer.ring_load %kt into %ring[%c3] : !kvbuffer.tile<32x64xbf16>, !kvbuffer.ring<#kbuf>
        }
      }
      gpu.return
    }
  }
}
