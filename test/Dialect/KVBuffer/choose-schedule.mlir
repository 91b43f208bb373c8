// Schedules follow the published tile table of the sm_8x kernels: 128 x 64 up to
// head size 96, 64 x 32 above 128; LDS blocks of 64, 32 or 16 columns, whichever
// divides the head size. At 128 registers are short: 128 x 64 with the row sums in
// LDS where two blocks fit a multiprocessor, else 128 x 32. Q stays in registers at 64.
// One look-up a tile where a page can hold one.

// RUN: kvbuf-opt %s --kvbuf-choose-schedule | FileCheck %s
// RUN: kvbuf-opt %s --kvbuf-choose-schedule=chip=sm_90 | FileCheck %s --check-prefix=SM90
// RUN: kvbuf-opt %s --kvbuf-choose-schedule="schedule=BN=32,stages=3,q_in_regs=true" | FileCheck %s --check-prefix=OVER
// RUN: kvbuf-opt %s --kvbuf-choose-schedule="chip=sm_80" --remark-format=emitRemark --remarks-filter=kvbuf-choose-schedule 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// CHECK-DAG: #[[D128:.*]] = #kvbuffer.schedule<BM = 128, BN = 32, BK = 64, stages = 2, warps = 4, mma_shape = [16, 8, 16]>
// CHECK-DAG: #[[D64:.*]] = #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, stages = 2, warps = 4, mma_shape = [16, 8, 16], q_in_regs = true>
// CHECK-DAG: #[[D96:.*]] = #kvbuffer.schedule<BM = 128, BN = 64, BK = 32, stages = 2, warps = 4, mma_shape = [16, 8, 16]>
// CHECK-DAG: #[[D80:.*]] = #kvbuffer.schedule<BM = 128, BN = 64, BK = 16, stages = 2, warps = 4, mma_shape = [16, 8, 16]>
// CHECK-DAG: #[[D256:.*]] = #kvbuffer.schedule<BM = 64, BN = 32, BK = 64, stages = 2, warps = 4, mma_shape = [16, 8, 16]>
// CHECK-DAG: #[[PAGE32:.*]] = #kvbuffer.schedule<BM = 128, BN = 32, BK = 32, stages = 2, warps = 4, mma_shape = [16, 8, 16]>
// CHECK: module attributes {kvbuffer.target = "sm_80"}
// SM90: #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, stages = 2, warps = 4, mma_shape = [16, 8, 16], split_masks = false, sums_in_lds = true>
// SM90: module attributes {kvbuffer.target = "sm_90"}
// OVER: #kvbuffer.schedule<BM = 128, BN = 32, BK = 64, stages = 3, warps = 4, mma_shape = [16, 8, 16], q_in_regs = true>

!qo128 = memref<?x?x2x128xbf16>
!kv128 = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>
// REMARK: choose-schedule.mlir:[[#@LINE+4]]:3: remark: [Passed] schedule
// REMARK-SAME: #kvbuffer.schedule<BM = 128, BN = 32, BK = 64, stages = 2, warps = 4, mma_shape = [16, 8, 16]>{{.*}}sm_80
// CHECK: func.func @d128
func.func @d128(%q: !qo128, %k: !kv128, %v: !kv128, %o: !qo128) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo128, !kv128, !kv128, !qo128
  // CHECK: kvbuffer.attention {{.*}} {schedule = #[[D128]]}
  return
}

!qo96 = memref<?x?x2x96xbf16>
!kv96 = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 96>
// CHECK: func.func @d96
func.func @d96(%q: !qo96, %k: !kv96, %v: !kv96, %o: !qo96) {
  // CHECK: kvbuffer.attention {{.*}} {schedule = #[[D96]]}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo96, !kv96, !kv96, !qo96
  return
}

!qo80 = memref<?x?x2x80xbf16>
!kv80 = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 80>
// CHECK: func.func @d80
func.func @d80(%q: !qo80, %k: !kv80, %v: !kv80, %o: !qo80) {
  // CHECK: kvbuffer.attention {{.*}} {schedule = #[[D80]]}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo80, !kv80, !kv80, !qo80
  return
}

!qo256 = memref<?x?x2x256xf16>
!kv256 = !kvbuffer.cache<dense, f16, heads = 2, head_size = 256>
// CHECK: func.func @d256
func.func @d256(%q: !qo256, %k: !kv256, %v: !kv256, %o: !qo256) {
  // CHECK: kvbuffer.attention {{.*}} {schedule = #[[D256]]}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo256, !kv256, !kv256, !qo256
  return
}

!qo64 = memref<?x?x2x64xbf16>
!kv64 = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
// CHECK: func.func @d64
func.func @d64(%q: !qo64, %k: !kv64, %v: !kv64, %o: !qo64) {
  // CHECK: kvbuffer.attention {{.*}} {schedule = #[[D64]]}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo64, !kv64, !kv64, !qo64
  return
}

!page32 = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 96, page_size = 32>
// CHECK: func.func @page32
func.func @page32(%q: !qo96, %k: !page32, %v: !page32, %o: !qo96) {
  // CHECK: kvbuffer.attention {{.*}} {schedule = #[[PAGE32]]}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo96, !page32, !page32, !qo96
  return
}
