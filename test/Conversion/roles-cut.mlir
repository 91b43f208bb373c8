// The last tile of a sequence of a ragged batch: the copy engine takes boxes of 32
// rows, those past the end as zeros; the warp copies the one that the end divides.

// RUN: kvbuf-opt %s --kvbuf-to-thread="chip=sm_90a schedule=BM=128,BN=128" | FileCheck %s

!qo = memref<?x2x128xbf16>
!kv = !kvbuffer.cache<ragged, bf16, heads = 2, head_size = 128>

// A map of whole tiles and one of boxes, for each tensor that is read.
// CHECK-COUNT-3: box = [64, 128, 1]{{[^}]*}}}, {{[^}]*}}box = [64, 32, 1]

// CHECK:       %[[CUT:.*]] = arith.divui %[[HI:.*]], %c32_i32
// CHECK:       %[[OVER:.*]] = arith.remui %[[HI]], %c32_i32
// CHECK:       %[[ISCUT:.*]] = arith.cmpi ne, %[[OVER]], %c0_i32
// 32 rows of 256 bytes by a warp: 16 copies of 16 bytes a lane, which looks at rows.
// CHECK:       scf.if %[[ISCUT]] {
// CHECK-COUNT-16: nvgpu.device_async_copy
// CHECK-NOT:     nvgpu.device_async_copy
// CHECK:       }
// The barrier counts what the engine brings.
// CHECK:       %[[BYTES:.*]] = arith.select %[[ISCUT]], %c24576_i32, %c32768_i32
// CHECK:       nvvm.mbarrier.expect_tx %{{.*}}, %[[BYTES]]
// CHECK:       scf.for %[[G:.*]] = %c0_i32 to %c4_i32
// CHECK:         %[[FROM:.*]] = arith.muli %[[G]], %c32_i32
// CHECK:         %[[LEFT:.*]] = arith.subi %[[HI]], %[[FROM]]
// CHECK:         %[[WHOLE:.*]] = arith.cmpi sge, %[[LEFT]], %c32_i32
// CHECK:         %[[NONE:.*]] = arith.cmpi sle, %[[LEFT]], %c0_i32
// CHECK:         %[[BOX:.*]] = arith.ori %[[WHOLE]], %[[NONE]]
// CHECK:         scf.if %[[BOX]] {
// CHECK:           %[[ROW:.*]] = arith.select %[[WHOLE]], %{{.*}}, %c-32_i32
// CHECK-COUNT-2:   nvvm.cp.async.bulk.tensor{{.*}}%[[ROW]]
// CHECK:       nvvm.cp.async.wait.group 0
// CHECK:       nvvm.fence.proxy
// CHECK:       nvvm.bar.warp.sync
// CHECK:       nvvm.mbarrier.arrive.expect_tx
func.func @attend(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %offsets: memref<?xi32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) offsets(%offsets) : !qo, !kv, !kv, !qo, offsets memref<?xi32>
  return
}
