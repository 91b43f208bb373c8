// A sliding window of 64 keys before a row's own, and a sink: a score of each
// head's own that takes its share of the softmax.
//
//   kvbuf-run examples/window.mlir --device=emulator --size batch=1 --size seq=150 --check

!qo = memref<?x?x8x64xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 8, head_size = 64>

func.func @window(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %sink: memref<?xf32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) sink(%sink) {mask = #kvbuffer.mask<causal = true, left = 64>}
    : !qo, !kv, !kv, !qo, sink memref<?xf32>
  return
}
