// Grouped heads: eight heads of queries share two heads of keys and values.
//
//   kvbuf-run examples/gqa.mlir --device=emulator --size batch=1 --size seq=100 --check

!qo = memref<?x?x8x128xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>

func.func @gqa(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>}
    : !qo, !kv, !kv, !qo
  return
}
