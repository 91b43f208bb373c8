// New tokens on a paged cache: pages of 16 tokens, found by a table; the cache's
// lengths say how many tokens came before the new ones.
//
//   kvbuf-run examples/paged.mlir --device=emulator --cache-lengths 0,17,70 --size seq_q=5 --check

!qo = memref<?x?x8x128xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 128, page_size = 16>

func.func @paged(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>}
    : !qo, !kv, !kv, !qo
  return
}
