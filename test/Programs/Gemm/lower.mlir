// A product at the tile stage: windows of both matrices along k, whatever the sizes.
// The chip's choices come after (kvbuf-complete-program).
//
// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=sm_80 --kvbuf-lower-problems | FileCheck %s

!any = memref<?x?xbf16, strided<[?, 1]>>

// CHECK: #[[A:.+]] = #kvbuffer.kv_buffer<128x64xbf16, open>
// CHECK: #[[B:.+]] = #kvbuffer.kv_buffer<64x128xbf16, open>

// CHECK-LABEL: gpu.func @straight
// CHECK-SAME: %[[A0:.+]]: memref<?x?xbf16, strided<[?, 1]>> {kvbuffer.access = "read", kvbuffer.name = "a", kvbuffer.shape = ["m", "k"]}
// CHECK-SAME: %[[B0:.+]]: memref{{.*}} {kvbuffer.access = "read", kvbuffer.name = "b", kvbuffer.shape = ["k", "n"]}
// CHECK-SAME: %[[C0:.+]]: memref{{.*}} {kvbuffer.access = "write", kvbuffer.name = "c", kvbuffer.shape = ["m", "n"]}
// CHECK-SAME: kvbuffer.phase = #kvbuffer.phase<tile>, kvbuffer.problem = #kvbuffer.problem<op = "gemm", transpose_b = false>
// CHECK: kvbuffer.work_item [<"m" by 128, sharing = all>, <"n" by 128, sharing = all>]
// CHECK: scf.for
// CHECK: kvbuffer.dram_tile %[[A0]]{{.*}} -> <128x64xbf16>
// CHECK: kvbuffer.dram_tile %[[B0]]{{.*}} -> <64x128xbf16>
// CHECK: kvbuffer.fragment_load {{.*}} contracted(cols)
// CHECK: kvbuffer.fragment_load {{.*}} contracted(rows)
// CHECK: kvbuffer.mma %{{.*}}, %{{.*}}, %{{.*}} : <128x64xbf16, a>, <64x128xbf16, b>
// CHECK: kvbuffer.fragment_convert
// CHECK: kvbuffer.fragment_store
func.func @straight(%a: !any, %b: !any, %c: !any) {
  kvbuffer.gemm a(%a) b(%b) out(%c) : !any, !any, !any
  return
}

// What types fix is a number; sums that are stored as they are need no rounding.
// CHECK-LABEL: gpu.func @transposed
// CHECK-SAME: kvbuffer.name = "c", kvbuffer.shape = ["m", 4096]
// CHECK-SAME: kvbuffer.name = "b", kvbuffer.shape = [4096, "k"]
// CHECK-SAME: transpose_b = true
// CHECK: kvbuffer.work_item [<"m" by 128, sharing = all>, <4096 by 128, sharing = all>]
// CHECK: kvbuffer.mma {{.*}} {transpose_b}
// CHECK-NOT: kvbuffer.fragment_convert
func.func @transposed(%c: memref<?x?xf32>, %a: memref<?x?xbf16>, %b: memref<4096x?xbf16>) {
  kvbuffer.gemm a(%a) b(%b) out(%c) {transpose_b} : memref<?x?xbf16>, memref<4096x?xbf16>, memref<?x?xf32>
  return
}
