// A schedule that the problem has already is kept.

// RUN: kvbuf-opt %s --kvbuf-choose-schedule | FileCheck %s
// RUN: not kvbuf-opt %s --kvbuf-choose-schedule="schedule=BM=64" 2>&1 | FileCheck %s --check-prefix=TWO

!qo = memref<?x?x2x128xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>
// CHECK: #schedule = #kvbuffer.schedule<BM = 32, BN = 16, BK = 32, stages = 1, warps = 2, mma_shape = [16, 8, 16]>
// CHECK: kvbuffer.attention {{.*}} {schedule = #schedule}
// TWO: error: 'kvbuffer.attention' op has a schedule already; the option schedule='BM=64' cannot replace parts of it
func.func @kept(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o)
      {schedule = #kvbuffer.schedule<BM = 32, BN = 16, BK = 32, stages = 1, warps = 2, mma_shape = [16, 8, 16]>} : !qo, !kv, !kv, !qo
  return
}
