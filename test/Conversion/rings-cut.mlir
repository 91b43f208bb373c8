// The last tile of a sequence of a ragged batch: the copy engine takes boxes of 32
// rows, those past the end as zeros; the warp copies the one that the end divides.

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu,canonicalize,cse))" | FileCheck %s

#schedule = #kvbuffer.schedule<BM = 64, BN = 128, BK = 64, stages = 1, warps = 4, mma_shape = [64, 8, 16], producers = 4, producer_registers = 24, consumer_registers = 240>
#buf = #kvbuffer.kv_buffer<128x128xbf16, BK = 64, swizzle = [3, 0, 3]>
!rows = !kvbuffer.cache<ragged, bf16, heads = 2, head_size = 128>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    // A map of whole tiles and one of boxes.
    // CHECK-LABEL: gpu.func @last
    // CHECK-SAME:    <tensor_map "x", box = [64, 128, 1], dims = [2, 0, 1], swizzle = 128>, <tensor_map "x", box = [64, 32, 1], dims = [2, 0, 1], swizzle = 128>
    // A whole tile: two boxes of 64 columns.
    // CHECK:         %[[WHOLE:.*]] = arith.cmpi sge, %[[HI:.*]], %c128_i32
    // CHECK:         scf.if %[[WHOLE]] {
    // CHECK:           nvvm.mbarrier.arrive.expect_tx %{{.*}}, %c32768_i32
    // CHECK-COUNT-2:   nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %arg4,
    // CHECK:         } else {
    // CHECK:           %[[ROWS:.*]] = arith.maxsi %[[HI]], %c0_i32
    // CHECK-NEXT:      arith.divui %[[ROWS]], %c32_i32
    // CHECK-NEXT:      %[[OVER:.*]] = arith.remui %[[ROWS]], %c32_i32
    // CHECK-NEXT:      %[[ISCUT:.*]] = arith.cmpi ne, %[[OVER]], %c0_i32
    // 32 rows of 256 bytes by a warp: 16 copies of 16 bytes a lane, which looks at rows.
    // CHECK:           scf.if %[[ISCUT]] {
    // CHECK-COUNT-16:    nvgpu.device_async_copy {{.*}}, 8, %{{.*}} {bypassL1}
    // CHECK-NOT:         nvgpu.device_async_copy
    // CHECK:           }
    // The barrier counts what the engine brings.
    // CHECK:           %[[BYTES:.*]] = arith.select %[[ISCUT]], %c24576_i32, %c32768_i32
    // CHECK:           nvvm.mbarrier.expect_tx %{{.*}}, %[[BYTES]]
    // CHECK:           scf.for %[[G:.*]] = %c0_i32 to %c4_i32
    // CHECK:             %[[FROM:.*]] = arith.muli %[[G]], %c32_i32
    // CHECK:             %[[LEFT:.*]] = arith.subi %[[ROWS]], %[[FROM]]
    // CHECK:             %[[FULL:.*]] = arith.cmpi sge, %[[LEFT]], %c32_i32
    // CHECK:             %[[NONE:.*]] = arith.cmpi sle, %[[LEFT]], %c0_i32
    // CHECK:             %[[BOX:.*]] = arith.ori %[[FULL]], %[[NONE]]
    // CHECK:             scf.if %[[BOX]] {
    // CHECK:               %[[ROW:.*]] = arith.select %[[FULL]], %{{.*}}, %c-32_i32
    // CHECK-COUNT-2:       nvvm.cp.async.bulk.tensor{{.*}} %arg5, {{.*}}%[[ROW]]
    // CHECK:           nvvm.cp.async.wait.group 0
    // CHECK:           nvvm.fence.proxy
    // CHECK:           nvvm.bar.warp.sync
    // CHECK:           nvvm.mbarrier.arrive.expect_tx
    gpu.func @last(%x: !rows {kvbuffer.name = "x"}) kernel attributes {known_block_size = array<i32: 256, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 2, "batch"]} {
      %c0 = arith.constant 0 : index
      %head = gpu.block_id y
      %sequence = gpu.block_id z
      %slots = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      %ring = kvbuffer.ring %slots from @producers to [@consumers] : !kvbuffer.buffer<#buf>
      kvbuffer.teams {
        kvbuffer.team @consumers warps(4) registers(240) {
          %s = kvbuffer.ring_wait %ring[%c0] : !kvbuffer.ring<#buf>
          %f = kvbuffer.fragment_load %s[0, 0] contracted(cols) : !kvbuffer.staged<#buf> -> !kvbuffer.fragment<128x128xbf16, b>
          kvbuffer.ring_release %ring[%c0] : !kvbuffer.ring<#buf>
        }
        kvbuffer.team @producers warps(4) registers(24) {
          %n = kvbuffer.cache.num_keys %x[%sequence] new(%c0) : !rows
          %tile = kvbuffer.cache_tile %x[%sequence, %head, %c0] from %c0 upto %n : !rows -> !kvbuffer.tile<128x128xbf16>
          kvbuffer.ring_load %tile into %ring[%c0] : !kvbuffer.tile<128x128xbf16>, !kvbuffer.ring<#buf>
        }
      }
      gpu.return
    }
  }
}
