// Many query rows over quantized caches: executed on tiles.
// RUN: kvbuf-opt %s --kvbuf-to-scheduled | kvbuf-tile-run --size seq_q=20 --size batch=2 --size cache=100 --seed=3 | FileCheck %s
// RUN: kvbuf-opt %s --kvbuf-to-scheduled="chip=gfx942" | kvbuf-tile-run --size seq_q=20 --size batch=2 --size cache=70 | FileCheck %s

!q = memref<?x?x4x64xbf16, strided<[?, ?, ?, 1]>>

// CHECK: by_token:
// CHECK: {{^}}PASS
!token = !kvbuffer.cache<paged, f8E4M3FNUZ, heads = 2, head_size = 64, page_size = 3, scale = f32, granularity = 64>
func.func @by_token(%q: !q, %k: !token, %v: !token, %o: !q) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !q, !token, !token, !q
  return
}

// CHECK: by_head:
// CHECK: {{^}}PASS
!head = !kvbuffer.cache<continuous, f8E5M2, heads = 2, head_size = 64, scale = f32, granularity = head>
func.func @by_head(%q: !q, %k: !head, %v: !head, %o: !q) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q, !head, !head, !q
  return
}

// Two scales of a token; one of K's tensor beside two of V's tokens.
// CHECK: by_group:
// CHECK: {{^}}PASS
!group = !kvbuffer.cache<continuous, f8E4M3FN, heads = 2, head_size = 64, scale = f32, granularity = 32>
func.func @by_group(%q: !q, %k: !group, %v: !group, %o: !q) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !q, !group, !group, !q
  return
}

// CHECK: values_by_group:
// CHECK: {{^}}PASS
!tensor = !kvbuffer.cache<continuous, f8E4M3FN, heads = 2, head_size = 64, scale = f32, granularity = tensor>
func.func @values_by_group(%q: !q, %k: !tensor, %v: !group, %o: !q) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q, !tensor, !group, !q
  return
}
