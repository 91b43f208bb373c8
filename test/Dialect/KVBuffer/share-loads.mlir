// Rings whose fillings are the same in all blocks of a cluster.

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-share-loads)))" -o /dev/null 2>&1 | FileCheck %s --check-prefix=WARN
// RUN: kvbuf-opt %s --split-input-file --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-share-loads)))" | FileCheck %s
// RUN: kvbuf-opt %s --split-input-file --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-share-loads)))" --remark-format=emitRemark --remarks-filter=kvbuf-share-loads 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [1, 0, 3], BN = 16, WN = 16, BK = 16, num_threads = 128, depth = 16, stages = 2>
#qbuf = #kvbuffer.kv_buffer<q, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [1, 0, 3], BN = 64, WN = 16, BK = 16, num_threads = 128, depth = 16, stages = 1>
#vbuf = #kvbuffer.kv_buffer<v, bf16, double_buffered, mma_shape = [64, 8, 16], swizzle = [1, 0, 3], BN = 16, WN = 16, BK = 16, num_threads = 128, depth = 16, stages = 2>
#schedule = #kvbuffer.schedule<BM = 64, BN = 16, BK = 16, warps = 4, mma_shape = [64, 8, 16], producers = 4, tiles = dynamic, cluster = 2>
#left = #kvbuffer.kv_buffer<64x16xbf16>
#right = #kvbuffer.kv_buffer<16x16xbf16, stages = 2>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 16>

// The tile's number is everybody's, K follows from it, Q from the block's rank.
// CHECK-LABEL: gpu.func @tile
// CHECK-DAG:     kvbuffer.ring %kbuf from @producers to [@consumers] {shared}
// CHECK-DAG:     kvbuffer.ring %qbuf from @producers to [@consumers] :
// A number that differs: of the filling; a branch that not all take; a loop of
// other lengths.
// CHECK-LABEL: gpu.func @parted
// CHECK-COUNT-3: kvbuffer.ring %{{.*}} :

// What a block's rank decides before the teams differs, too; the launch's sizes do not.
// CHECK-LABEL: gpu.func @before
// CHECK-DAG:     kvbuffer.ring %kbuf from @producers to [@consumers] :
// CHECK-DAG:     kvbuffer.ring %vbuf from @producers to [@consumers] {shared} :

// Rows of a product are each block's own, whatever their names: no word of it. For
// columns of its operand b, which all rows need, the request is lost. What a team puts is
// no load.
// CHECK-LABEL: gpu.func @columns
// CHECK-COUNT-3: kvbuffer.ring %{{.*}} :
// WARN-NOT: %{{rows|put}} =
// WARN: share-loads.mlir:{{.*}}: warning: the blocks of a cluster load tiles each for itself: what they load differs
// WARN-NEXT: %columns = kvbuffer.ring
// WARN-NOT: %{{rows|put}} =

// REMARK-DAG: [Passed] cluster{{.*}}Remark="the blocks of a cluster load ", Remark=k, Remark=" for each other"
// REMARK-DAG: [Missed] cluster{{.*}}the blocks of a cluster load q each for itself: what they load differs
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    gpu.func @tile(%q: memref<?x1x16xbf16>, %k: !kv, %total: index) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c16 = arith.constant 16 : index
      %c64 = arith.constant 64 : index
      %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %qbuf = kvbuffer.alloc : !kvbuffer.buffer<#qbuf>
      %kring = kvbuffer.ring %kbuf from @producers to [@consumers] : !kvbuffer.buffer<#kbuf>
      %qring = kvbuffer.ring %qbuf from @producers to [@consumers] : !kvbuffer.buffer<#qbuf>
      %box = kvbuffer.mailbox from @producers to [@consumers] {shared, slots = 2 : i64}
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) {
        }
        kvbuffer.team @producers warps(4) {
          %rank = gpu.cluster_block_id x
          %taken = kvbuffer.next_tile of %total
          kvbuffer.mailbox_post %taken to %box[%c0]
          %first = kvbuffer.mailbox_take %box[%c0]
          %end:2 = scf.while (%tile = %first, %n = %c0) : (index, index) -> (index, index) {
            %more = arith.cmpi slt, %tile, %total : index
            scf.condition(%more) %tile, %n : index, index
          } do {
          ^bb0(%tile: index, %n: index):
            %row = arith.addi %tile, %rank : index
            %qt = kvbuffer.dram_tile %q[%row, %c0] valid(%c64) : memref<?x1x16xbf16> -> !kvbuffer.tile<64x16xbf16>
            kvbuffer.ring_load %qt into %qring[%n] : !kvbuffer.tile<64x16xbf16>, !kvbuffer.ring<#qbuf>
            %kt = kvbuffer.cache_tile %k[%tile, %c0, %c0] from %c0 upto %c16 : !kv -> !kvbuffer.tile<16x16xbf16>
            kvbuffer.ring_load %kt into %kring[%n] : !kvbuffer.tile<16x16xbf16>, !kvbuffer.ring<#kbuf>
            %n1 = arith.addi %n, %c1 : index
            %next = kvbuffer.next_tile of %total
            kvbuffer.mailbox_post %next to %box[%n1]
            %then = kvbuffer.mailbox_take %box[%n1]
            scf.yield %then, %n1 : index, index
          }
        }
      }
      gpu.return
    }

    gpu.func @parted(%k: !kv) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c16 = arith.constant 16 : index
      %a = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %b = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %c = kvbuffer.alloc : !kvbuffer.buffer<#vbuf>
      %aring = kvbuffer.ring %a from @producers to [@consumers] : !kvbuffer.buffer<#kbuf>
      %bring = kvbuffer.ring %b from @producers to [@consumers] : !kvbuffer.buffer<#kbuf>
      %cring = kvbuffer.ring %c from @producers to [@consumers] : !kvbuffer.buffer<#vbuf>
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) {
        }
        kvbuffer.team @producers warps(4) {
          %rank = gpu.cluster_block_id x
          %kt = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %c16 : !kv -> !kvbuffer.tile<16x16xbf16>
          %first = arith.cmpi eq, %rank, %c0 : index
          %n = scf.if %first -> (index) {
            kvbuffer.ring_load %kt into %aring[%c0] : !kvbuffer.tile<16x16xbf16>, !kvbuffer.ring<#kbuf>
            scf.yield %c1 : index
          } else {
            scf.yield %c0 : index
          }
          kvbuffer.ring_load %kt into %bring[%n] : !kvbuffer.tile<16x16xbf16>, !kvbuffer.ring<#kbuf>
          scf.for %i = %c0 to %n step %c1 {
            kvbuffer.ring_load %kt into %cring[%c0] : !kvbuffer.tile<16x16xbf16>, !kvbuffer.ring<#vbuf>
          }
        }
      }
      gpu.return
    }

    gpu.func @before(%k: !kv, %total: index) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c16 = arith.constant 16 : index
      %a = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %b = kvbuffer.alloc : !kvbuffer.buffer<#vbuf>
      %aring = kvbuffer.ring %a from @producers to [@consumers] : !kvbuffer.buffer<#kbuf>
      %bring = kvbuffer.ring %b from @producers to [@consumers] : !kvbuffer.buffer<#vbuf>
      %rank = gpu.cluster_block_id x
      %row = arith.muli %rank, %c16 : index
      %start = arith.muli %total, %c16 : index
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) {
        }
        kvbuffer.team @producers warps(4) {
          %at = kvbuffer.cache_tile %k[%c0, %c0, %row] from %c0 upto %c16 : !kv -> !kvbuffer.tile<16x16xbf16>
          kvbuffer.ring_load %at into %aring[%c0] : !kvbuffer.tile<16x16xbf16>, !kvbuffer.ring<#kbuf>
          %bt = kvbuffer.cache_tile %k[%c0, %c0, %start] from %c0 upto %c16 : !kv -> !kvbuffer.tile<16x16xbf16>
          kvbuffer.ring_load %bt into %bring[%c0] : !kvbuffer.tile<16x16xbf16>, !kvbuffer.ring<#vbuf>
        }
      }
      gpu.return
    }

    gpu.func @columns(%x: memref<?x1x16xbf16>) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c16 = arith.constant 16 : index
      %c64 = arith.constant 64 : index
      %a = kvbuffer.alloc : !kvbuffer.buffer<#left>
      %b = kvbuffer.alloc : !kvbuffer.buffer<#right>
      %rows = kvbuffer.ring %a from @producers to [@consumers] : !kvbuffer.buffer<#left>
      %columns = kvbuffer.ring %b from @producers to [@consumers] : !kvbuffer.buffer<#right>
      %c = kvbuffer.alloc : !kvbuffer.buffer<#right>
      %put = kvbuffer.ring %c from @wideners to [@consumers] : !kvbuffer.buffer<#right>
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) {
          %as = kvbuffer.ring_wait %rows[%c0] : !kvbuffer.ring<#left>
          %af = kvbuffer.fragment_load %as[0, 0] contracted(cols) : !kvbuffer.staged<#left> -> !kvbuffer.fragment<64x16xbf16, a>
          %bs = kvbuffer.ring_wait %columns[%c0] : !kvbuffer.ring<#right>
          %bf = kvbuffer.fragment_load %bs[0, 0] contracted(cols) : !kvbuffer.staged<#right> -> !kvbuffer.fragment<16x16xbf16, b>
          %cs = kvbuffer.ring_wait %put[%c0] : !kvbuffer.ring<#right>
          %cf = kvbuffer.fragment_load %cs[0, 0] contracted(cols) : !kvbuffer.staged<#right> -> !kvbuffer.fragment<16x16xbf16, b>
        }
        kvbuffer.team @wideners warps(1) {
          %wide = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<16x16xbf16, a>
          kvbuffer.ring_put %wide into %put[%c0] : !kvbuffer.fragment<16x16xbf16, a>, !kvbuffer.ring<#right>
        }
        kvbuffer.team @producers warps(4) {
          %rank = gpu.cluster_block_id x
          %at = kvbuffer.dram_tile %x[%rank, %c0] valid(%c64) : memref<?x1x16xbf16> -> !kvbuffer.tile<64x16xbf16>
          kvbuffer.ring_load %at into %rows[%c0] : !kvbuffer.tile<64x16xbf16>, !kvbuffer.ring<#left>
          %bt = kvbuffer.dram_tile %x[%rank, %c0] valid(%c16) : memref<?x1x16xbf16> -> !kvbuffer.tile<16x16xbf16>
          kvbuffer.ring_load %bt into %columns[%c0] : !kvbuffer.tile<16x16xbf16>, !kvbuffer.ring<#right>
        }
      }
      gpu.return
    }
  }
}
