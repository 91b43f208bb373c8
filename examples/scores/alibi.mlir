// ALiBi: scores fall with the distance to the key, by a slope for each head.
//
//   kvbuf-compile examples/scores/alibi.mlir --target=sm_80 -o alibi.kvbuf

!qo = memref<?x?x4x64xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>

func.func @alibi(%q: !qo, %k: !kv, %v: !kv,
                  %slopes: memref<4xf32> {kvbuffer.name = "slopes"},
                  %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo, !kv, !kv, !qo
    captures(%slopes : memref<4xf32>)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %position: index, %key: index, %slopes_: memref<4xf32>):
      %slope = memref.load %slopes_[%head] : memref<4xf32>
      %distance = arith.subi %key, %position : index
      %n = arith.index_cast %distance : index to i32
      %far = arith.sitofp %n : i32 to f32
      %b = arith.mulf %far, %slope : f32
      %t = arith.addf %s, %b : f32
      kvbuffer.yield %t : f32
    }
  return
}
