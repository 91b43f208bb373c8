// Attention over a dense cache, causal: the problem, and nothing about how.
//
//   kvbuf-run examples/prefill.mlir --device=emulator --check
//   kvbuf-opt examples/prefill.mlir --kvbuf-to-tile
//
// Sequences, their lengths and all strides are run-time values; heads and head
// size are part of the types.

!qo = memref<?x?x16x128xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 16, head_size = 128>

func.func @prefill(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>}
    : !qo, !kv, !kv, !qo
  return
}
