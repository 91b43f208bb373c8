// Products of 8-bit floats: executed on tiles, with weights rounded to e4m3.
// RUN: kvbuf-opt %s --kvbuf-to-scheduled=chip=sm_89 | kvbuf-tile-run --size seq_q=40 --size seq_k=100 --size batch=2 | FileCheck %s
// RUN: kvbuf-opt %s --kvbuf-to-scheduled=chip=gfx950 | kvbuf-tile-run --size seq_q=40 --size seq_k=100 --size batch=2 | FileCheck %s

!q = memref<?x?x4x64xf8E4M3FN, strided<[?, ?, ?, 1]>>
!o = memref<?x?x4x64xf32, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, f8E4M3FN, heads = 2, head_size = 64, scale = f32, granularity = head>

// CHECK: float8:
// CHECK: {{^}}PASS
func.func @float8(%q: !q, %k: !kv, %v: !kv, %o: !o) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !q, !kv, !kv, !o
  return
}
