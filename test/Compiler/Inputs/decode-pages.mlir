!q = memref<?x1x32x128xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<paged, CACHE>

func.func @decode(%q: !q, %k: !kv, %v: !kv, %o: !q) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>}
    : !q, !kv, !kv, !q
  return
}
