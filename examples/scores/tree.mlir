// A tree of tokens, as speculative decoding verifies it: a node sees the keys before
// the tree, itself and its ancestors. Node n's subtree are the nodes n to last[n]
// (numbered in depth-first order).
//
//   kvbuf-compile examples/scores/tree.mlir --target=sm_80 -o tree.kvbuf

!qo = memref<?x?x4x64xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>

func.func @tree(%q: !qo, %k: !kv, %v: !kv,
                 %last: memref<?x?xi32> {kvbuffer.name = "last", kvbuffer.shape = ["batch", "seq_q"]},
                 %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%last : memref<?x?xi32>)
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %position: index, %key: index, %last_: memref<?x?xi32>):
      // The key as a node of the tree; keys before it have numbers below 0.
      %c0 = arith.constant 0 : index
      %shift = arith.subi %position, %row : index
      %node = arith.subi %key, %shift : index
      %before = arith.cmpi slt, %node, %c0 : index
      %at = arith.maxsi %node, %c0 : index
      %end = memref.load %last_[%batch, %at] : memref<?x?xi32>
      %last_node = arith.index_cast %end : i32 to index
      %after = arith.cmpi sle, %node, %row : index
      %within = arith.cmpi sle, %row, %last_node : index
      %below = arith.andi %after, %within : i1
      %seen = arith.ori %before, %below : i1
      kvbuffer.yield %seen : i1
    }
  return
}
