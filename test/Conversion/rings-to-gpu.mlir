// Rings between teams and products in flight as lanes of sm_90a: one group of four
// consumer warps with 64 queries, four producer warps, tiles of 32 keys of 64
// elements (128-byte rows), so that every number can be worked out by hand.

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu,canonicalize,cse))" | FileCheck %s

#qbuf = #kvbuffer.kv_buffer<q, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 3], BN = 64, WN = 16, BK = 64, num_threads = 128, depth = 64, stages = 1>
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, cache_depth = 192, head_dim_offset = 128, stages = 2>
#vbuf = #kvbuffer.kv_buffer<v, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, stages = 2, warps = 4, mma_shape = [64, 8, 16], producers = 4, producer_registers = 24, consumer_registers = 240>
!qo = memref<?x?x1x64xbf16>
!k = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64, cache_depth = 192, head_dim_offset = 128>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>

// A tensor map for each tensor that a box moves of: its innermost dimension, rows,
// heads, batch; a box of 64 columns by the tile's rows. K's map covers the columns
// that are K's.
// CHECK:      gpu.func @attend(
// CHECK-SAME:   %[[QMAP:arg[0-9]+]]: !llvm.ptr, %[[KMAP:arg[0-9]+]]: !llvm.ptr, %[[VMAP:arg[0-9]+]]: !llvm.ptr, %[[OMAP:arg[0-9]+]]: !llvm.ptr)
// CHECK-SAME:   known_block_size = array<i32: 256, 1, 1>
// CHECK-SAME:   <tensor_map "q", box = [64, 64, 1, 1], dims = [3, 1, 2, 0], swizzle = 128>
// CHECK-SAME:   <tensor_map "k", box = [64, 32, 1, 1], columns = [128, 64], dims = [3, 1, 2, 0], swizzle = 128>
// CHECK-SAME:   <tensor_map "v", box = [64, 32, 1, 1], dims = [3, 1, 2, 0], swizzle = 128>
// CHECK-SAME:   <tensor_map "o", box = [64, 64, 1, 1], dims = [3, 1, 2, 0], swizzle = 128>
// Q 8 KiB, two slots of 4 KiB each for K and V, O 8 KiB, a block of barriers.
// CHECK-SAME:   block = [256, 1, 1], dynamic_shared_bytes = 33792
module attributes {gpu.container_module, kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @attend(%q: !qo {kvbuffer.name = "q"}, %k: !k {kvbuffer.name = "k"}, %v: !kv {kvbuffer.name = "v"}, %o: !qo {kvbuffer.name = "o"}) kernel attributes {known_block_size = array<i32: 256, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c3 = arith.constant 3 : index
      %c64 = arith.constant 64 : index
      %keys = kvbuffer.cache.num_keys %k[%c0] new(%c0) : !k
      %qbuf = kvbuffer.alloc : !kvbuffer.buffer<#qbuf>
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %vbuf = kvbuffer.alloc : !kvbuffer.buffer<#vbuf>
      %obuf = kvbuffer.alloc : !kvbuffer.buffer<#qbuf>
      // Barriers lie behind the buffers, at 32768: Q's full and empty, then K's
      // two full and two empty. One arrival fills; the group's one empties.
      // CHECK:      %[[WARP:.*]], %{{.*}} = gpu.shuffle idx
      // CHECK:      %[[BASE:.*]] = memref.extract_aligned_pointer_as_index
      // CHECK-NEXT: %[[LDS:.*]] = arith.index_cast %[[BASE]] : index to i32
      // CHECK:      scf.if
      // CHECK-COUNT-10: nvvm.mbarrier.init %{{.*}}, %c1_i32
      // CHECK-NOT:  nvvm.mbarrier.init
      // CHECK:        nvvm.fence.mbarrier.init
      // CHECK:      }
      // CHECK-NEXT: gpu.barrier
      %qring = kvbuffer.ring %qbuf from @producers to [@consumers] : !kvbuffer.buffer<#qbuf>
      %kring = kvbuffer.ring %kbuf from @producers to [@consumers] : !kvbuffer.buffer<#kbuf>
      %vring = kvbuffer.ring %vbuf from @producers to [@consumers] : !kvbuffer.buffer<#vbuf>
      // CHECK-NEXT: %[[CONSUMES:.*]] = arith.cmpi slt, %[[WARP]], %c4_i32
      // CHECK-NEXT: scf.if %[[CONSUMES]] {
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) registers(240) {
          // 256 threads share 65536 registers: 256 each, so 240 are fewer.
          // CHECK-NEXT:   nvvm.setmaxregister decrease 240
          // Descriptors of byte 0: 128-byte swizzle in bits 62-63, 1024 bytes to the
          // next 8 rows in bits 32-45; in bits 16-29 nothing for K-major operands
          // (16 bytes) and 4096 bytes to V's next block of columns.
          // CHECK-DAG:    %[[KMAJOR:.*]] = arith.ori %{{.*}}, %c4611686293305360384_i64
          // CHECK-DAG:    %[[MNMAJOR:.*]] = arith.ori %{{.*}}, %c4611686293322072064_i64
          // Filling 0 of Q: its full barrier is byte 32768, its phase 0.
          // CHECK:        %[[QFULL:.*]] = arith.addi %[[LDS]], %c32768_i32
          // CHECK:        %[[QP:.*]] = llvm.inttoptr %[[QFULL]]
          // CHECK:        nvvm.mbarrier.try_wait.parity %[[QP]], %c0_i32
          %qs = kvbuffer.ring_wait %qring[%c0] : !kvbuffer.ring<#qbuf>
          // Filling 3 of K: slot 1, phase 1. K's barriers begin 16 bytes on.
          // CHECK:        %[[KFULL:.*]] = arith.addi %[[LDS]], %c32792_i32
          // CHECK:        %[[KP:.*]] = llvm.inttoptr %[[KFULL]]
          // CHECK:        nvvm.mbarrier.try_wait.parity %[[KP]], %c1_i32
          %ks = kvbuffer.ring_wait %kring[%c3] : !kvbuffer.ring<#kbuf>
          // Four steps of 16 columns, 32 bytes each. The slot is byte 12288, unit 768.
          // CHECK:        %[[KDESC:.*]] = arith.addi %[[KMAJOR]], %c768_i64
          // CHECK:        %[[S:.*]]:4 = kvbuffer.wgmma a_desc(%{{.*}}) b(%[[KDESC]])
          // CHECK-SAME:     a_steps = array<i64: 0, 2, 4, 6>, b_steps = array<i64: 0, 2, 4, 6>, element = bf16, n = 32 : i64
          // CHECK-NOT:      transpose_b
          // CHECK-SAME:     vector<4xf32>
          %sp = kvbuffer.mma_start %qs, %ks {transpose_b} : !kvbuffer.staged<#qbuf>, !kvbuffer.staged<#kbuf> -> !kvbuffer.pending<64x32xf32>
          // CHECK:        %{{.*}}:4 = kvbuffer.wgmma_wait %[[S]]#0, %[[S]]#1, %[[S]]#2, %[[S]]#3 {pending = 0 : i64}
          %s = kvbuffer.mma_wait %sp {younger = 0 : i64} : !kvbuffer.pending<64x32xf32>
          // The group's first thread gives the slot back: empty barriers follow the
          // full ones.
          // CHECK:        %[[KEMPTY:.*]] = arith.addi %[[LDS]], %c32808_i32
          // CHECK:        %[[KE:.*]] = llvm.inttoptr %[[KEMPTY]]
          // CHECK:        nvvm.mbarrier.arrive.expect_tx %[[KE]], %c0_i32, predicate = %{{.*}}
          kvbuffer.ring_release %kring[%c3] : !kvbuffer.ring<#kbuf>
          %m = kvbuffer.fragment_fill 0xFF800000 : !kvbuffer.fragment<64x1xf32, row>
          %l = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<64x1xf32, row>
          %zero = kvbuffer.fragment_fill 0.0 : !kvbuffer.fragment<64x64xf32, acc>
          %p, %m1, %l1, %r = kvbuffer.online_softmax %s, %m, %l {scale = 1.0 : f32} : !kvbuffer.fragment<64x32xf32, acc>, !kvbuffer.fragment<64x1xf32, row> -> !kvbuffer.fragment<64x32xbf16, a>
          %vs = kvbuffer.ring_wait %vring[%c0] : !kvbuffer.ring<#vbuf>
          // Two steps of 16 rows of 128 bytes; P in registers, four words a step; V's
          // slot is byte 16384.
          // CHECK:        %[[VDESC:.*]] = arith.addi %[[MNMAJOR]], %c1024_i64
          // CHECK:        %[[O:.*]]:8 = kvbuffer.wgmma c(%{{.*}}) a(%{{.*}} : vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>) b(%[[VDESC]])
          // CHECK-SAME:     a_steps = array<i64>, b_steps = array<i64: 0, 128>, element = bf16, n = 64 : i64, transpose_b
          %op = kvbuffer.mma_start %p, %vs, %zero : !kvbuffer.fragment<64x64xf32, acc> : !kvbuffer.fragment<64x32xbf16, a>, !kvbuffer.staged<#vbuf> -> !kvbuffer.pending<64x64xf32>
          %on = kvbuffer.mma_wait %op {younger = 0 : i64} : !kvbuffer.pending<64x64xf32>
          %o16 = kvbuffer.fragment_convert %on : !kvbuffer.fragment<64x64xf32, acc> -> !kvbuffer.fragment<64x64xbf16, acc>
          %ot = kvbuffer.dram_tile %o[%c0, %c64, %c0] valid(%c64) : !qo -> !kvbuffer.tile<64x64xbf16>
          // O goes through LDS: 64 columns in 4 steps of 16, then one box.
          // CHECK-COUNT-4: nvvm.stmatrix
          // CHECK:        nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
          // CHECK:        nvvm.barrier id = %{{.*}} number_of_threads = %c128_i32
          // CHECK:        nvvm.cp.async.bulk.tensor.global.shared.cta %[[OMAP]], %{{.*}}, box[%c0_i32, %{{.*}}, %c0_i32, %c0_i32]
          // CHECK:        nvvm.cp.async.bulk.commit.group
          // LDS outlives what is read of it.
          // CHECK:        nvvm.cp.async.bulk.wait_group 0 {read}
          kvbuffer.fragment_store %o16, %ot via %obuf : !kvbuffer.buffer<#qbuf> : !kvbuffer.fragment<64x64xbf16, acc>, !kvbuffer.tile<64x64xbf16>
        }
        kvbuffer.team @producers warps(4) registers(24) {
          %qt = kvbuffer.dram_tile %q[%c0, %c64, %c0] valid(%c64) : !qo -> !kvbuffer.tile<64x64xbf16>
          kvbuffer.ring_load %qt into %qring[%c0] : !kvbuffer.tile<64x64xbf16>, !kvbuffer.ring<#qbuf>
          %kt = kvbuffer.cache_tile %k[%c0, %c0, %c64] from %c0 upto %keys : !k -> !kvbuffer.tile<32x192xbf16>
          kvbuffer.ring_load %kt into %kring[%c3] : !kvbuffer.tile<32x192xbf16>, !kvbuffer.ring<#kbuf>
          %vt = kvbuffer.cache_tile %v[%c0, %c0, %c64] from %c0 upto %keys : !kv -> !kvbuffer.tile<32x64xbf16>
          kvbuffer.ring_load %vt into %vring[%c0] : !kvbuffer.tile<32x64xbf16>, !kvbuffer.ring<#vbuf>
        }
      }
      // CHECK:      } else {
      // CHECK-NEXT:   nvvm.setmaxregister decrease 24
      // No tile of a dense cache needs threads to copy: one thread does it all.
      // CHECK:        %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %c0_i32
      // CHECK:        scf.if %[[FIRST]] {
      // Slots start empty: the first filling waits for the parity of phase -1.
      // CHECK:          nvvm.mbarrier.try_wait.parity %{{.*}}, %c1_i32
      // CHECK:          nvvm.mbarrier.arrive.expect_tx %[[QP2:.*]], %c8192_i32 :
      // CHECK:          nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[QMAP]], %[[QP2]], box[%c0_i32, %c64_i32, %c0_i32, %c0_i32] {isCTAOnly = true}
      // Filling 3 waits for phase 0 of the slot's empty barrier.
      // CHECK:          nvvm.mbarrier.try_wait.parity %{{.*}}, %c0_i32
      // CHECK:          nvvm.mbarrier.arrive.expect_tx %{{.*}}, %c4096_i32 :
      // CHECK:          nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[KMAP]], %{{.*}}, box[%c0_i32, %c64_i32, %c0_i32, %c0_i32] {isCTAOnly = true}
      // CHECK:          nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[VMAP]]
      // CHECK-NOT:      nvgpu.device_async_copy
      gpu.return
    }
  }
}
