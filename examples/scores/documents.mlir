// Documents: several in one sequence; a query sees the keys of its own up to itself.
// The mask says the one half, which the kernel uses to leave out tiles.
//
//   kvbuf-compile examples/scores/documents.mlir --target=sm_80 -o documents.kvbuf

!qo = memref<?x?x4x64xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>

func.func @documents(%q: !qo, %k: !kv, %v: !kv,
                      %doc: memref<?x?xi32> {kvbuffer.name = "doc", kvbuffer.shape = ["batch", "seq_k"]},
                      %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo, !kv, !kv, !qo
    captures(%doc : memref<?x?xi32>)
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %position: index, %key: index, %doc_: memref<?x?xi32>):
      // Rows before the first key see nothing anyway.
      %c0 = arith.constant 0 : index
      %at = arith.maxsi %position, %c0 : index
      %own = memref.load %doc_[%batch, %at] : memref<?x?xi32>
      %other = memref.load %doc_[%batch, %key] : memref<?x?xi32>
      %same = arith.cmpi eq, %own, %other : i32
      kvbuffer.yield %same : i1
    }
  return
}
