// Head sizes that fill LDS blocks and that do not, in both element types; heads
// in groups.

// DEFINE: %{sched} = kvbuf-opt %s --kvbuf-to-scheduled
// RUN: %{sched} | kvbuf-tile-run --size seq=140 --init=outliers | FileCheck %s
// RUN: %{sched} | kvbuf-tile-run --size seq=140 --init=octaves | FileCheck %s

// CHECK: d64:
// CHECK: {{^}}PASS
!qo64 = memref<?x?x2x64xf16, strided<[?, ?, ?, 1]>>
!kv64 = !kvbuffer.cache<dense, f16, heads = 1, head_size = 64>
func.func @d64(%q: !qo64, %k: !kv64, %v: !kv64, %o: !qo64) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo64, !kv64, !kv64, !qo64
  return
}

// CHECK: d80:
// CHECK: {{^}}PASS
!qo80 = memref<?x?x3x80xbf16, strided<[?, ?, ?, 1]>>
!kv80 = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 80>
func.func @d80(%q: !qo80, %k: !kv80, %v: !kv80, %o: !qo80) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo80, !kv80, !kv80, !qo80
  return
}

// CHECK: d96:
// CHECK: {{^}}PASS
!qo96 = memref<?x?x2x96xf16, strided<[?, ?, ?, 1]>>
!kv96 = !kvbuffer.cache<dense, f16, heads = 2, head_size = 96>
func.func @d96(%q: !qo96, %k: !kv96, %v: !kv96, %o: !qo96) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo96, !kv96, !kv96, !qo96
  return
}

// CHECK: d256:
// CHECK: {{^}}PASS
!qo256 = memref<?x?x2x256xbf16, strided<[?, ?, ?, 1]>>
!kv256 = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 256>
func.func @d256(%q: !qo256, %k: !kv256, %v: !kv256, %o: !qo256) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo256, !kv256, !kv256, !qo256
  return
}

// V's head size and O's element type apart.
// CHECK: d192x128:
// CHECK: {{^}}PASS
!q192 = memref<?x?x2x192xbf16, strided<[?, ?, ?, 1]>>
!k192 = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 192>
!v128 = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>
!o128 = memref<?x?x2x128xbf16, strided<[?, ?, ?, 1]>>
func.func @d192x128(%q: !q192, %k: !k192, %v: !v128, %o: !o128) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !q192, !k192, !v128, !o128
  return
}

// CHECK: d80x112:
// CHECK: {{^}}PASS
!q80 = memref<?x?x2x80xf16, strided<[?, ?, ?, 1]>>
!k80 = !kvbuffer.cache<dense, f16, heads = 1, head_size = 80>
!v112 = !kvbuffer.cache<dense, f16, heads = 1, head_size = 112>
!o112 = memref<?x?x2x112xf32, strided<[?, ?, ?, 1]>>
func.func @d80x112(%q: !q80, %k: !k80, %v: !v112, %o: !o112) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q80, !k80, !v112, !o112
  return
}
