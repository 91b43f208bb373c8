// A team that moves pages has four warps, as many as get registers together, and
// two slots, which a warp each fills: the other two warps have no code, and nobody
// counts on them. Of five slots every warp has one.

// RUN: kvbuf-opt %s --split-input-file --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu,canonicalize,cse))" | FileCheck %s

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, stages = 2, warps = 4, mma_shape = [64, 8, 16], producers = 4, producer_registers = 40, consumer_registers = 232, tiles = dynamic, cluster = 2>
!q = memref<?x?x1x64xbf16>
!k = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 64, page_size = 16>
!tile = !kvbuffer.tile<32x64xbf16, page_size = 16>

// CHECK-LABEL: gpu.func @spare(
module attributes {gpu.container_module, kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @spare(%q: !q {kvbuffer.name = "q"}, %k: !k {kvbuffer.name = "k"}) kernel attributes {known_block_size = array<i32: 256, 1, 1>, known_cluster_size = array<i32: 2, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c64 = arith.constant 64 : index
      %keys = kvbuffer.cache.num_keys %k[%c0] new(%c0) : !k
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      // Who takes a number of a mailbox gives it back to both blocks: four warps
      // that multiply and two that move, all of their lanes. All of these warps arrive
      // at the end.
      // CHECK-DAG: nvvm.mbarrier.init %{{.*}}, %c384_i32 :
      // CHECK-DAG: nvvm.mbarrier.init %{{.*}}, %c12_i32 :
      %box = kvbuffer.mailbox from @producers to [@consumers] {shared, slots = 1 : i64}
      %kring = kvbuffer.ring %kbuf from @producers to [@consumers] : !kvbuffer.buffer<#kbuf>
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) registers(232) {
          %number = kvbuffer.mailbox_take %box[%c0]
        }
        kvbuffer.team @producers warps(4) registers(40) {
          // CHECK:      nvvm.setmaxregister decrease 40
          // CHECK:      %[[HAS:.*]] = arith.cmpi slt, %{{.*}}, %c2_i32
          // CHECK-NEXT: scf.if %[[HAS]] {
          // CHECK:        nvvm.mbarrier.try_wait.parity
          // CHECK:        nvvm.cp.async.bulk.tensor.shared.cluster.global
          %number = kvbuffer.mailbox_take %box[%c0]
          %kt = kvbuffer.cache_tile %k[%c0, %c0, %c64] from %c0 upto %keys : !k -> !tile
          kvbuffer.ring_load %kt into %kring[%number] {whole} : !tile, !kvbuffer.ring<#kbuf>
        }
      }
      gpu.return
    }
  }
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 128, depth = 64, stages = 5>
#schedule = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, stages = 2, warps = 4, mma_shape = [64, 8, 16], producers = 4, producer_registers = 40, consumer_registers = 232, tiles = dynamic, cluster = 2>
!q = memref<?x?x1x64xbf16>
!k = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 64, page_size = 16>
!tile = !kvbuffer.tile<32x64xbf16, page_size = 16>

// CHECK-LABEL: gpu.func @all(
module attributes {gpu.container_module, kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @all(%q: !q {kvbuffer.name = "q"}, %k: !k {kvbuffer.name = "k"}) kernel attributes {known_block_size = array<i32: 256, 1, 1>, known_cluster_size = array<i32: 2, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c64 = arith.constant 64 : index
      %keys = kvbuffer.cache.num_keys %k[%c0] new(%c0) : !k
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      // CHECK-DAG: nvvm.mbarrier.init %{{.*}}, %c512_i32 :
      // CHECK-DAG: nvvm.mbarrier.init %{{.*}}, %c16_i32 :
      %box = kvbuffer.mailbox from @producers to [@consumers] {shared, slots = 1 : i64}
      %kring = kvbuffer.ring %kbuf from @producers to [@consumers] : !kvbuffer.buffer<#kbuf>
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) registers(232) {
          %number = kvbuffer.mailbox_take %box[%c0]
        }
        kvbuffer.team @producers warps(4) registers(40) {
          // CHECK:      nvvm.setmaxregister decrease 40
          // CHECK-NOT:  scf.if
          // CHECK:      nvvm.mbarrier.try_wait.parity
          %number = kvbuffer.mailbox_take %box[%c0]
          %kt = kvbuffer.cache_tile %k[%c0, %c0, %c64] from %c0 upto %keys : !k -> !tile
          kvbuffer.ring_load %kt into %kring[%number] {whole} : !tile, !kvbuffer.ring<#kbuf>
        }
      }
      gpu.return
    }
  }
}
