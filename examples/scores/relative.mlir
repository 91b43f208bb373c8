// Relative positions: a learned bias for each head and bucket of the distance, of
// which those beyond 15 to either side share the last (T5's buckets without the
// logarithm).
//
//   kvbuf-compile examples/scores/relative.mlir --target=sm_80 -o relative.kvbuf

!qo = memref<?x?x4x64xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>

func.func @relative(%q: !qo, %k: !kv, %v: !kv,
                     %table: memref<4x31xf32> {kvbuffer.name = "table"},
                     %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%table : memref<4x31xf32>)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %position: index, %key: index, %table_: memref<4x31xf32>):
      %c15 = arith.constant 15 : index
      %cm15 = arith.constant -15 : index
      %distance = arith.subi %key, %position : index
      %least = arith.maxsi %distance, %cm15 : index
      %most = arith.minsi %least, %c15 : index
      %bucket = arith.addi %most, %c15 : index
      %b = memref.load %table_[%head, %bucket] : memref<4x31xf32>
      %t = arith.addf %s, %b : f32
      kvbuffer.yield %t : f32
    }
  return
}
