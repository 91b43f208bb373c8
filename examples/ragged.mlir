// Sequences of any lengths, one after the other, with the log-sum-exp of each
// row: offsets say where a sequence begins.
//
//   kvbuf-run examples/ragged.mlir --device=emulator --lengths-q 30,1,0,65 --lengths-k 30,9,4,65 --check

!qo = memref<?x8x64xbf16, strided<[?, ?, 1]>>
!kv = !kvbuffer.cache<ragged, bf16, heads = 8, head_size = 64>

func.func @ragged(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %offsets: memref<?xi32>, %lse: memref<8x?xf32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) offsets(%offsets) lse(%lse) {mask = #kvbuffer.mask<causal = true>}
    : !qo, !kv, !kv, !qo, offsets memref<?xi32>, lse memref<8x?xf32>
  return
}
