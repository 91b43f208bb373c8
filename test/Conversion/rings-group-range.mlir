// The keys that the rows of a group of consumers see: group g of 8 warps has 64 rows
// of the block's 128, from row 64 g on; none past the last query. With 4 rows a warp
// instruction more than its 16 the groups' rows are not neighbours: all rows' keys.

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu,canonicalize,cse))" | FileCheck %s
// RUN: sed 's/BM = 128 : i64, mask/BM = 256 : i64, mask/' %s | kvbuf-opt --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu,canonicalize,cse))" | FileCheck %s --check-prefix=WIDER

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [3, 0, 3], BN = 32, WN = 32, BK = 64, num_threads = 256, depth = 64, stages = 2>
#schedule = #kvbuffer.schedule<BM = 128, BN = 32, BK = 64, stages = 2, warps = 8, mma_shape = [64, 8, 16], producers = 4, producer_registers = 40, consumer_registers = 232>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>

module attributes {gpu.container_module, kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @walk
    // WIDER-LABEL: gpu.func @walk
    gpu.func @walk(%k: !kv {kvbuffer.name = "k"}) kernel attributes {known_block_size = array<i32: 384, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c100 = arith.constant 100 : index
      %keys = kvbuffer.cache.num_keys %k[%c0] new(%c0) : !kv
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %kring = kvbuffer.ring %kbuf from @producers to [@consumers] : !kvbuffer.buffer<#kbuf>
      kvbuffer.teams {
        kvbuffer.team @consumers warps(8) registers(232) {
          // CHECK:     %[[GROUP:.*]] = arith.shrui %{{.*}}, %c2_i32
          // CHECK:     %[[G:.*]] = arith.index_cast %[[GROUP]] : i32 to index
          // CHECK:     %[[ROW:.*]] = arith.muli %[[G]], %c64
          // CHECK:     %[[LAST:.*]] = arith.addi %[[ROW]], %c64
          // CHECK:     arith.minsi %[[LAST]], %c100
          // CHECK:     %[[ANY:.*]] = arith.cmpi slt, %[[ROW]], %c100
          // CHECK:     %[[HI:.*]] = arith.select %[[ANY]], %{{.*}}, %c0
          // CHECK:     %[[END:.*]] = arith.index_cast %[[HI]] : index to i32
          // CHECK:     scf.for %{{.*}} to %[[END]]
          // WIDER:     nvvm.setmaxregister{{ +}}increase
          // WIDER-NEXT: scf.for %{{.*}} to %arg{{[0-9]+}} step
          %lo, %hi, %full_lo, %full_hi = kvbuffer.key_range %c0 of %c100 keys %keys {BM = 128 : i64, mask = #kvbuffer.mask<causal = true>, per_group}
          scf.for %i = %c0 to %hi step %c1 {
            %ks = kvbuffer.ring_wait %kring[%i] : !kvbuffer.ring<#kbuf>
            kvbuffer.ring_release %kring[%i] : !kvbuffer.ring<#kbuf>
          }
        }
        kvbuffer.team @producers warps(4) registers(40) {
          %kt = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %keys : !kv -> !kvbuffer.tile<32x64xbf16>
          kvbuffer.ring_load %kt into %kring[%c0] : !kvbuffer.tile<32x64xbf16>, !kvbuffer.ring<#kbuf>
        }
      }
      gpu.return
    }
  }
}
