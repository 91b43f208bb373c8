// Attention with an additive bias from a tensor, one for each head, query and key.
//
//   kvbuf-compile examples/scores/bias.mlir --target=sm_80 -o bias.kvbuf

!qo = memref<?x?x4x64xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>

func.func @bias(%q: !qo, %k: !kv, %v: !kv,
                 %bias: memref<4x?x?xf32> {kvbuffer.name = "bias", kvbuffer.shape = [4, "seq_q", "seq_k"]},
                 %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%bias : memref<4x?x?xf32>)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %position: index, %key: index, %bias_: memref<4x?x?xf32>):
      %b = memref.load %bias_[%head, %row, %key] : memref<4x?x?xf32>
      %t = arith.addf %s, %b : f32
      kvbuffer.yield %t : f32
    }
  return
}
