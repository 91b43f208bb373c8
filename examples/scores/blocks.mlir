// Block-sparse attention: lists say which blocks of 128 keys a block of 128 queries
// sees, wholly or in part, as FlexAttention's BlockMask does. Of the blocks that are
// partly visible a function hides the keys of other documents.
!qo = memref<?x?x4x64xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 64>
!numbers = memref<?x?x?xi32>
!blocks = memref<?x?x?x?xi32>
func.func @blocks(%q: !qo, %k: !kv, %v: !kv, %o: !qo,
    %doc: memref<?x?xi32> {kvbuffer.name = "doc", kvbuffer.shape = ["batch", "seq_k"]},
    %partly: !numbers {kvbuffer.name = "kv_num_blocks"},
    %which: !blocks {kvbuffer.name = "kv_indices"},
    %wholly: !numbers {kvbuffer.name = "full_kv_num_blocks"},
    %whole: !blocks {kvbuffer.name = "full_kv_indices"}) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o)
    {block_mask = #kvbuffer.block_mask<rows = 128, keys = 128, lists = [1, 2, 3, 4]>} : !qo, !kv, !kv, !qo
    captures(%doc, %partly, %which, %wholly, %whole : memref<?x?xi32>, !numbers, !blocks, !numbers, !blocks)
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index,
         %doc_of: memref<?x?xi32>, %a: !numbers, %b: !blocks, %c: !numbers, %d: !blocks):
      %own = memref.load %doc_of[%batch, %row] : memref<?x?xi32>
      %its = memref.load %doc_of[%batch, %key] : memref<?x?xi32>
      %same = arith.cmpi eq, %own, %its : i32
      kvbuffer.yield %same : i1
    }
  return
}
