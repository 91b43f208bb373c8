// Scores of some 10^4 in f16: one key decides most rows, whose output is exactly that
// key's V. Its weight is 1 but for the rounding of the maximum's product with the
// scale, which f16 makes a larger one; the divisor has to have it, too.

// RUN: kvbuf-opt %s --kvbuf-to-scheduled | kvbuf-tile-run - --size batch=2 --size seq_q=200 --size seq_k=200 | FileCheck %s
// RUN: kvbuf-opt %s --kvbuf-to-scheduled=chip=sm_90a | kvbuf-tile-run - --size batch=2 --size seq_q=200 --size seq_k=200 | FileCheck %s
// CHECK: {{^}}PASS

!qo = memref<?x?x1x64xf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, f16, heads = 1, head_size = 64>
func.func @large_scores(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %lse: memref<?x1x?xf32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) lse(%lse) {scale = 300.0 : f32}
    : !qo, !kv, !kv, !qo, lse memref<?x1x?xf32>
  return
}
