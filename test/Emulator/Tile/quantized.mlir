// Quantized caches, whose unused slots hold NaN: executed on tiles.
// RUN: kvbuf-opt %s --kvbuf-to-scheduled | kvbuf-tile-run --size seq_q=1 --size batch=3 --size cache=100 --seed=3 | FileCheck %s
// RUN: kvbuf-opt %s --kvbuf-to-scheduled="chip=gfx942" | kvbuf-tile-run --size seq_q=1 --size batch=2 --size cache=70 | FileCheck %s

!q = memref<?x1x4x64xbf16, strided<[?, ?, ?, 1]>>

// CHECK: by_tensor:
// CHECK: {{^}}PASS
!tensor = !kvbuffer.cache<paged, f8E4M3FN, heads = 2, head_size = 64, page_size = 16, scale = f32, granularity = tensor>
func.func @by_tensor(%q: !q, %k: !tensor, %v: !tensor, %o: !q) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q, !tensor, !tensor, !q
  return
}

// CHECK: by_head:
// CHECK: {{^}}PASS
!head = !kvbuffer.cache<continuous, f8E5M2, heads = 2, head_size = 64, scale = f32, granularity = head>
func.func @by_head(%q: !q, %k: !head, %v: !head, %o: !q) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q, !head, !head, !q
  return
}

// CHECK: by_token:
// CHECK: {{^}}PASS
!token = !kvbuffer.cache<paged, f8E4M3FNUZ, heads = 2, head_size = 64, page_size = 3, scale = f32, granularity = 64>
!plain = !kvbuffer.cache<paged, f8E4M3FNUZ, heads = 2, head_size = 64, page_size = 3>
func.func @by_token(%q: !q, %k: !token, %v: !token, %o: !q) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q, !token, !token, !q
  return
}

// Two scales of a token.
// CHECK: by_group:
// CHECK: {{^}}PASS
!group = !kvbuffer.cache<paged, f8E4M3FNUZ, heads = 2, head_size = 64, page_size = 3, scale = f32, granularity = 32>
func.func @by_group(%q: !q, %k: !group, %v: !group, %o: !q) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q, !group, !group, !q
  return
}

// K by tokens, V without scales.
// CHECK: mixed:
// CHECK: {{^}}PASS
func.func @mixed(%q: !q, %k: !token, %v: !plain, %o: !q) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q, !token, !plain, !q
  return
}
