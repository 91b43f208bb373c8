!qo = memref<?x?x4x128xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 128>
func.func @attend(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo, !kv, !kv, !qo
  return
}
