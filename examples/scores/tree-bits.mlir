// New tokens of each sequence that see any of each other, as a step of speculative
// decoding verifies trees: bit n of a token's word says that it sees new token n. All
// see the keys before the step. Each sequence has up to 32 new tokens, whose keys are in
// the cache already.
//
//   kvbuf-compile examples/scores/tree-bits.mlir --target=sm_80 -o tree-bits.kvbuf

!qo = memref<?x4x64xbf16, strided<[?, ?, 1]>>
!kv = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 16>

func.func @tree_bits(%q: !qo, %k: !kv, %v: !kv, %offsets: memref<?xi32>,
                 %words: memref<?x?xi32> {kvbuffer.name = "words", kvbuffer.shape = ["batch", "tokens"]},
                 %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) offsets(%offsets) {kvbuffer.lengths = "all"}
    : !qo, !kv, !kv, !qo, offsets memref<?xi32>
    captures(%words : memref<?x?xi32>)
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %position: index, %key: index, %words_: memref<?x?xi32>):
      // The key as one of the new tokens; keys before them have numbers below 0.
      %c0 = arith.constant 0 : index
      %one = arith.constant 1 : i32
      %first = arith.subi %position, %row : index
      %token = arith.subi %key, %first : index
      %before = arith.cmpi slt, %token, %c0 : index
      %at = arith.maxsi %token, %c0 : index
      %by = arith.index_cast %at : index to i32
      %word = memref.load %words_[%batch, %row] : memref<?x?xi32>
      %shifted = arith.shrui %word, %by : i32
      %low = arith.andi %shifted, %one : i32
      %marked = arith.cmpi eq, %low, %one : i32
      %seen = arith.ori %before, %marked : i1
      kvbuffer.yield %seen : i1
    }
  return
}
