// Any mask, as bits: key j of a query is bit j mod 32 of word j / 32 of its row.
//
//   kvbuf-compile examples/scores/bits.mlir --target=sm_80 -o bits.kvbuf

!qo = memref<?x?x4x64xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>

func.func @bits(%q: !qo, %k: !kv, %v: !kv,
                 %words: memref<?x?x?xi32> {kvbuffer.name = "words", kvbuffer.shape = ["batch", "seq_q", #kvbuffer.size<ceildiv(seq_k, 32)>]},
                 %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%words : memref<?x?x?xi32>)
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %position: index, %key: index, %words_: memref<?x?x?xi32>):
      %c32 = arith.constant 32 : index
      %one = arith.constant 1 : i32
      %number = arith.divui %key, %c32 : index
      %bit = arith.remui %key, %c32 : index
      %word = memref.load %words_[%batch, %row, %number] : memref<?x?x?xi32>
      %by = arith.index_cast %bit : index to i32
      %shifted = arith.shrui %word, %by : i32
      %low = arith.andi %shifted, %one : i32
      %seen = arith.cmpi eq, %low, %one : i32
      kvbuffer.yield %seen : i1
    }
  return
}
